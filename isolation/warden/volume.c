/* SPDX-License-Identifier: Apache-2.0
 *
 * Volumes that the node makes while servers run (plugin mkdir): directories beneath
 * host_volumes_dir, which is root's alone, named by their ids. So no name of anybody's becomes a
 * path, and tasks come to one by a mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/root/quota.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"

static int
volume_open_top(struct warden *w, struct err *e)
{
    const char *path = w->policy->host_volumes_dir;
    if (str_empty(path))
        return err_set(e, -ERR_POLICY, "this client has no directory for volumes");
    int r = dir_make(AT_FDCWD, path, 0700);
    int fd = r < 0 ? r : open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, r < 0 ? -r : errno, "open the directory of volumes \"%s\"", path);
    return fd;
}

/* Limits an empty volume, or one that has a limit already. */
static int
volume_limit(struct warden *w, int top, int fd, const struct warden_volume *v, struct err *e)
{
    if (v->size_mb == 0 && quota_project(fd) == 0)
        return 0;
    int r =
        w->root ? quota_probe(top, e) : err_set(e, -ERR_UNSUPPORTED, "paddock runs without root");
    if (r == 0)
        r = quota_set(fd, v->size_mb, &w->quota_next, e);
    return r < 0 ? err_prefix(e, "limit volume \"%s\" to %lld MiB (parameter size)", v->id,
                              (long long)v->size_mb)
                 : 0;
}

/* With its owner and mode from before anybody can see it. What was not there before is not there
 * when it cannot be limited. */
static int
volume_put(struct warden *w, int top, const struct warden_volume *v, struct err *e)
{
    bool made = mkdirat(top, v->id, 0700) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    auto_fd int fd = openat(top, v->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    if (volume_limit(w, top, fd, v, e) < 0) {
        if (made)
            (void)unlinkat(top, v->id, AT_REMOVEDIR);
        return e->code;
    }
    if ((w->root && fchown(fd, (uid_t)v->uid, (gid_t)v->gid) < 0) ||
        fchmod(fd, (mode_t)v->mode) < 0)
        return -errno;
    int r = dir_fsync(fd);
    return r < 0 ? r : dir_fsync(top);
}

void
volume_make(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    struct answer a = {0};
    auto_fd int top = volume_open_top(w, &e);
    int r = top < 0 ? top : volume_put(w, top, q->volume, &e);
    if (r < 0 && e.code == 0)
        err_errno(&e, -r, "make the directory of volume \"%s\"", q->volume->id);
    if (r < 0)
        loop_refuse(w, to, &e);
    else
        loop_answer(w, to, &a);
}

/* In a child: a tree may be large. */
static int
volume_remove_tree(struct warden *w, void *arg)
{
    struct err e = ERR_INIT;
    auto_fd int top = volume_open_top(w, &e);
    auto_fd int fd =
        top < 0 ? -1 : openat(top, arg, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        (void)quota_lift(fd); /* or it is left to the next that the project is given to */
    fd_close(&fd);
    int r = top < 0 ? -EIO : dir_remove(top, arg, NULL);
    return r < 0 ? r : dir_fsync(top);
}

void
volume_remove(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    const struct loop_work work = {"remove the directory of the volume", volume_remove_tree,
                                   (void *)(uintptr_t)q->volume->id, NULL};
    auto_fd int top = volume_open_top(w, &e);
    if (top >= 0)
        (void)loop_fork(w, to, &work, &e);
    if (e.code != 0)
        loop_refuse(w, to, &e);
}
