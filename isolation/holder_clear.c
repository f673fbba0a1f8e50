/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/cgroup/dir.h"
#include "isolation/launch/policy.h"
#include "isolation/limits.h"

enum { OPEN_DIRS = 8 };

/* Files of a cgroup go with it. */
static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
    (void)st;
    (void)f;
    if (type != FTW_DP || rmdir(path) == 0 || errno == ENOENT)
        return 0;
    return errno;
}

static int
remove_tree(const char *path)
{
    int r = nftw(path, remove_one, OPEN_DIRS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    return r < 0 ? (errno == ENOENT ? 0 : -errno) : -r;
}

static int
end_processes(const char *path, int fd, int timeout_ms, struct err *e)
{
    auto_fd int holder = cgroup_open_dir(fd, HOLDER_LEAF);
    if (holder >= 0 && cgroup_populated(holder) == 1)
        return err_set(e, -ERR_CONFLICT, "a holder lives in \"%s\": stop it first", path);
    int r = cgroup_kill(fd);
    if (r == 0 || r == -ENOENT)
        r = cgroup_wait_empty(fd, timeout_ms);
    if (r == -ETIMEDOUT)
        return err_set(e, -ERR_TIMEOUT,
                       "processes of ended tasks in \"%s\" do not die within %d s: they wait for a "
                       "disk or a file system that does not answer",
                       path, timeout_ms / 1000);
    return r < 0 && r != -ENODEV ? err_errno(e, -r, "end what is left in \"%s\"", path) : 0;
}

int
cgroup_clear(const char *run_dir, int timeout_ms, struct err *e)
{
    auto_mem void *ctx = mem_ctx("clear");
    char *path;
    const char *file = mem_printf(ctx, "%s/" POLICY_CGROUP, run_dir);
    int r = file_read(ctx, AT_FDCWD, file, PATH_MAX, &path, NULL);
    if (r == -ENOENT) /* nothing was held since the machine started */
        return 0;
    if (r < 0)
        return err_errno(e, -r, "read \"%s\"", file);
    auto_fd int fd = cgroup_open_dir(AT_FDCWD, path);
    if (fd == -ENOENT)
        return 0;
    if (fd < 0)
        return err_errno(e, -fd, "open the cgroup \"%s\"", path);
    int64_t end = clock_mono_ns() + timeout_ms * NS_PER_MS;
    r = end_processes(path, fd, timeout_ms, e);
    /* A cgroup whose last process is on its way out is busy for a moment more. */
    while (r == 0 && (r = remove_tree(path)) == -EBUSY && clock_mono_ns() < end) {
        r = cgroup_wait_empty(fd, timeout_ms);
        (void)poll(NULL, 0, WARDEN_RETRY_MS);
    }
    return r < 0 && e != NULL && e->code == 0 ? err_errno(e, -r, "remove the cgroup \"%s\"", path)
                                              : r;
}
