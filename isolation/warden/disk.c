/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk that an allocation takes over from the one before on this node: the directories in which
 * tasks keep their files are renamed, so nothing is copied. Where the disk of allocations is
 * limited, all files in them go to the new project first.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "isolation/root/quota.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/task.h"

/* Renames `name` of the directory `parent` of one allocation into the other's. Files that the other
 * has already stay. */
static int
disk_move_one(int from, int to, const char *parent, const char *name)
{
    const int how = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    auto_fd int a = fd_open_beneath(from, parent, how, 0, false);
    if (a == -ENOENT)
        return 0; /* a task that the one before had not */
    auto_fd int b = a < 0 ? a : fd_open_beneath(to, parent, how, 0, false);
    int r = b < 0 ? b : quota_give(a, name, b);
    if (r == 0 && renameat(a, name, b, name) < 0)
        r = -errno;
    return r == -ENOENT || r == -ENOTEMPTY || r == -EEXIST ? 0 : r;
}

/* In a child: a tree may be large. */
static int
disk_move_all(struct warden *w, void *arg)
{
    const struct warden_request *q = arg;
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    auto_fd int from = openat(w->alloc_dir, q->from, how);
    auto_fd int to = openat(w->alloc_dir, q->alloc_id, how);
    if (from < 0 || to < 0)
        return -errno;
    int r = disk_move_one(from, to, "alloc", "data");
    for (size_t i = 0; i < q->tasks.n && r == 0; i++)
        r = disk_move_one(from, to, q->tasks.v[i]->name, "local");
    return r;
}

void
disk_move(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    const struct loop_work work = {"move the disk of the allocation before", disk_move_all,
                                   (void *)(uintptr_t)q, NULL};
    struct stat st;
    const char *busy = task_alloc_busy(w, q->from)       ? q->from
                       : task_alloc_busy(w, q->alloc_id) ? q->alloc_id
                                                         : NULL;
    if (busy != NULL)
        err_set(&e, -ERR_BUSY, "a task of allocation \"%s\" still runs", busy);
    else if (fstatat(w->alloc_dir, q->from, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        err_set(&e, -ERR_NOT_FOUND, "allocation \"%s\" has no directory here", q->from);
    else
        (void)loop_fork(w, to, &work, &e);
    if (e.code != 0)
        loop_refuse(w, to, &e);
}
