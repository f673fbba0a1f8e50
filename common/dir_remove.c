/* SPDX-License-Identifier: Apache-2.0
 *
 * dir_remove(): removing a directory whose content somebody hostile made.
 *
 * Directories are walked with a fixed stack of REMOVE_LEVELS open ones. Deeper directories are
 * first moved up to the top directory and met again there, so depth costs neither stack nor fds,
 * and the next walk can take up all that a killed walk leaves.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/limits.h"
#include "common/random.h"

struct level {
    DIR *dir;
    char name[NAME_MAX + 1]; /* in the level above */
    size_t passes;
    size_t removed; /* in this pass */
    bool failed;    /* something in it stays */
};

struct walk {
    int parent; /* of the top directory */
    dev_t dev;
    struct level v[REMOVE_LEVELS];
    size_t n;
    bool moved; /* something came to the top in this pass */
    int first;  /* errno of the first failure */
    struct err *e;
};

static void
dir_remove_stays(struct walk *w, const char *name, int code)
{
    if (w->n > 0)
        w->v[w->n - 1].failed = true;
    if (w->first != 0)
        return;
    w->first = code;
    char where[512] = "";
    size_t at = 0;
    for (size_t i = 0; i < w->n && at < sizeof(where); i++)
        at += (size_t)snprintf(where + at, sizeof(where) - at, "%s/", w->v[i].name);
    const char *why = "";
    if (code == EPERM)
        why = " (is it immutable or append-only? chattr -i -a)";
    else if (code == EBUSY || code == EXDEV)
        why = " (something is mounted there: umount it)";
    err_errno(w->e, code, "remove \"%s%s\"%s", where, name, why);
}

/* Opens a directory for removal: ours may lack permissions (without root). */
static int
open_dir(int at, const char *name, dev_t dev)
{
    enum { FLAGS = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    struct stat st;
    int fd = openat(at, name, O_RDONLY | FLAGS);
    if (fd < 0 && errno == EACCES) {
        char self[40];
        auto_fd int path = openat(at, name, O_PATH | FLAGS);
        (void)snprintf(self, sizeof(self), "/proc/self/fd/%d", path);
        if (path < 0 || chmod(self, 0700) < 0)
            return -EACCES;
        fd = openat(at, name, O_RDONLY | FLAGS);
    }
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &st) < 0 ? -errno : 0;
    if (r == 0 && st.st_dev != dev)
        r = -EXDEV; /* a mount: not ours to empty */
    if (r == 0 && (st.st_mode & 0700) != 0700)
        (void)fchmod(fd, 0700); /* what fails for it tells */
    if (r < 0)
        fd_close(&fd);
    return r < 0 ? r : fd;
}

static int
dir_remove_push(struct walk *w, const char *name)
{
    int at = w->n > 0 ? dirfd(w->v[w->n - 1].dir) : w->parent;
    int fd = open_dir(at, name, w->dev);
    if (fd < 0)
        return fd;
    struct level *l = &w->v[w->n];
    *l = (struct level){.dir = fdopendir(fd)};
    if (l->dir == NULL) {
        int saved = errno;
        fd_close(&fd);
        return -saved;
    }
    (void)snprintf(l->name, sizeof(l->name), "%s", name);
    w->n++;
    return 0;
}

/* Too deep: the directory goes to the top, under a name of its own. */
static int
move_up(struct walk *w, int at, const char *name)
{
    char to[40];
    (void)snprintf(to, sizeof(to), ".deep-%016llx", (unsigned long long)rand_u64());
    if (renameat(at, name, dirfd(w->v[0].dir), to) < 0)
        return -errno;
    w->moved = true;
    return 0;
}

static void
dir_remove_entry(struct walk *w, const char *name)
{
    struct level *l = &w->v[w->n - 1];
    int at = dirfd(l->dir), r = 0;
    if (unlinkat(at, name, 0) == 0 || errno == ENOENT) {
        l->removed++;
        return;
    }
    int why = errno; /* EISDIR; EPERM as POSIX has it, or of an immutable file */
    if (why != EISDIR && why != EPERM) {
        dir_remove_stays(w, name, why);
        return;
    }
    if (unlinkat(at, name, AT_REMOVEDIR) == 0) {
        l->removed++;
        return;
    }
    if (w->n == REMOVE_LEVELS) {
        r = move_up(w, at, name);
        l->removed += r == 0;
    } else {
        r = dir_remove_push(w, name);
    }
    if (r < 0 && r != -ENOENT)
        dir_remove_stays(w, name, r == -ENOTDIR ? why : -r);
}

/* Is there something in it that this pass did not meet? */
static bool
dir_remove_again(struct walk *w, struct level *l, int code)
{
    bool more = (code == ENOTEMPTY && l->removed > 0) || (l == &w->v[0] && w->moved);
    if (!more || ++l->passes >= REMOVE_PASSES_MAX)
        return false;
    l->removed = 0;
    if (l == &w->v[0])
        w->moved = false;
    rewinddir(l->dir);
    return true;
}

/* The innermost directory was read to its end. */
static void
dir_remove_pop(struct walk *w)
{
    struct level *l = &w->v[w->n - 1];
    int at = w->n > 1 ? dirfd(w->v[w->n - 2].dir) : w->parent, code = 0;
    if (!l->failed && unlinkat(at, l->name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        code = errno;
    if ((code != 0 || l->failed) && dir_remove_again(w, l, code))
        return;
    char name[NAME_MAX + 1];
    memcpy(name, l->name, sizeof(name));
    bool failed = l->failed;
    closedir(l->dir);
    w->n--;
    if (code != 0)
        dir_remove_stays(w, name, code);
    else if (w->n > 0) {
        w->v[w->n - 1].failed |= failed;
        w->v[w->n - 1].removed += !failed;
    }
}

int
dir_remove(int dirfd, const char *path, struct err *e)
{
    struct stat st;
    struct walk w = {.parent = dirfd, .e = e};
    if (fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_errno(e, errno, "remove \"%s\"", path);
    w.dev = st.st_dev;
    if (!S_ISDIR(st.st_mode)) {
        if (unlinkat(dirfd, path, 0) < 0 && errno != ENOENT)
            dir_remove_stays(&w, path, errno);
        return -w.first;
    }
    int r = dir_remove_push(&w, path);
    if (r < 0 && r != -ENOENT)
        dir_remove_stays(&w, path, -r);
    while (w.n > 0) {
        struct dirent *d = readdir(w.v[w.n - 1].dir);
        if (d == NULL)
            dir_remove_pop(&w);
        else if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
            dir_remove_entry(&w, d->d_name);
    }
    return -w.first;
}
