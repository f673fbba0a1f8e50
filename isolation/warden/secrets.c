/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/warden/secrets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "isolation/confine/raw.h"
#include "isolation/root/mounts.h"
#include "isolation/warden/userns.h"

enum {
    UNMOUNT = 2 | 8, /* MNT_DETACH, UMOUNT_NOFOLLOW, whose header conflicts with linux/mount.h */
    TASKS_MAX = 200, /* of an allocation, as WardenRequest has it */
};

bool
secrets_wanted(const struct warden *w, const struct warden_request *q)
{
    bool mapped = w->probe.facts[PROBE_TMPFS_NOSWAP].ok; /* Linux 6.4, which has both */
    if (!w->root || w->host_mnt < 0 || (userns_wanted(w) && !mapped))
        return false;
    for (size_t i = 0; i < q->tasks.n; i++)
        if (q->tasks.v[i]->secrets_mb > 0)
            return true;
    return false;
}

static bool
is_mounted(int dir)
{
    struct statx x;
    return statx(dir, "", AT_EMPTY_PATH, STATX_TYPE, &x) == 0 &&
           (x.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

static int
set_option(int fs, const char *key, uint64_t v, bool octal)
{
    char text[32];
    if (octal)
        (void)snprintf(text, sizeof(text), "%llo", (unsigned long long)v);
    else
        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
    return (int)RAW(SYS_fsconfig, fs, FSCONFIG_SET_STRING, key, text, 0);
}

/* A tmpfs, mounted nowhere yet, with the owner and the mode of the directory `st`. */
static int
make_memory(const struct warden *w, const struct warden_task *t, const struct stat *st)
{
    const uint64_t size = (uint64_t)t->secrets_mb << 20;
    auto_fd int fs = (int)RAW(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);
    int r = fs < 0 ? fs : set_option(fs, "size", size, false);
    if (r == 0)
        r = set_option(fs, "nr_inodes", size / MOUNTS_BYTES_PER_INODE + 1, false);
    if (r == 0)
        r = set_option(fs, "mode", st->st_mode & 07777, true);
    if (r == 0)
        r = set_option(fs, "uid", st->st_uid, false);
    if (r == 0)
        r = set_option(fs, "gid", st->st_gid, false);
    if (r == 0 && w->probe.facts[PROBE_TMPFS_NOSWAP].ok)
        r = (int)RAW(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "noswap", NULL, 0);
    if (r == 0)
        r = (int)RAW(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    if (r < 0)
        return r;
    return (int)RAW(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

static int
put_on(int tree, int dir)
{
    return (int)RAW(SYS_move_mount, tree, "", dir, "",
                    MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

/* Sees to the memory in the warden's namespace. A copy of the mount, or -errno. */
static int
mount_here(const struct warden *w, int alloc, const struct warden_task *t)
{
    struct stat st;
    auto_fd int task = openat(alloc, t->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int dir =
        task < 0 ? -1 : openat(task, "secrets", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0 || fstat(dir, &st) < 0)
        return -errno;
    if (!is_mounted(dir)) {
        auto_fd int tree = make_memory(w, t, &st);
        int r = tree < 0 ? tree : put_on(tree, dir);
        if (r < 0)
            return r;
        fd_close(&dir);
        dir = openat(task, "secrets", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
            return -errno;
    }
    return (int)RAW(SYS_open_tree, dir, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
}

/* In the host's namespace, where no descriptor of ours leads to a place of it. */
static int
mount_there(const struct warden *w, const char *alloc_id, const struct warden_task *t, int tree)
{
    auto_fd int top = open(w->policy->alloc_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    auto_fd int alloc =
        top < 0 ? -1 : openat(top, alloc_id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int task =
        alloc < 0 ? -1 : openat(alloc, t->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    auto_fd int dir =
        task < 0 ? -1 : openat(task, "secrets", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return -errno;
    return is_mounted(dir) ? 0 : put_on(tree, dir);
}

int
secrets_mount(struct warden *w, void *request)
{
    const struct warden_request *q = request;
    int trees[TASKS_MAX], r = 0;
    size_t n = q->tasks.n < TASKS_MAX ? q->tasks.n : TASKS_MAX;
    auto_fd int alloc =
        openat(w->alloc_dir, q->alloc_id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (alloc < 0)
        return -errno;
    for (size_t i = 0; i < n && r == 0; i++) {
        trees[i] = q->tasks.v[i]->secrets_mb > 0 ? mount_here(w, alloc, q->tasks.v[i]) : -1;
        if (q->tasks.v[i]->secrets_mb > 0 && trees[i] < 0)
            r = trees[i];
    }
    if (r == 0)
        r = (int)RAW(SYS_setns, w->host_mnt, CLONE_NEWNS);
    for (size_t i = 0; i < n && r == 0; i++)
        if (trees[i] >= 0)
            r = mount_there(w, q->alloc_id, q->tasks.v[i], trees[i]);
    return r; /* and this process ends, with all descriptors */
}

void
secrets_unmount(struct warden *w, const char *dir)
{
    int fd = openat(w->alloc_dir, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL) {
        fd_close(&fd);
        return;
    }
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        if (de->d_name[0] == '.' || de->d_type != DT_DIR)
            continue;
        auto_fd int task = openat(fd, de->d_name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (task >= 0 && fchdir(task) == 0)
            (void)RAW(SYS_umount2, "secrets", UNMOUNT); /* EINVAL: none is there */
    }
    closedir(d);
}
