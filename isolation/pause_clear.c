/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
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
    auto_fd int pause = cgroup_open_dir(fd, PAUSE_LEAF);
    if (pause >= 0 && cgroup_populated(pause) == 1)
        return err_set(e, -ERR_CONFLICT, "a holder lives in \"%s\": nothing is touched", path);
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

/* Opens the tasks' cgroup of RUN_DIR, whose path is *ret_path; -ENOENT, without words: nothing was
 * held since the machine started, or it is gone. */
static int
open_tasks(const void *ctx, const char *run_dir, char **ret_path, struct err *e)
{
    const char *file = mem_printf(ctx, "%s/" POLICY_CGROUP, run_dir);
    int r = file_read(ctx, AT_FDCWD, file, PATH_MAX, ret_path, NULL);
    if (r < 0)
        return r == -ENOENT ? r : err_errno(e, -r, "read \"%s\"", file);
    int fd = cgroup_open_dir(AT_FDCWD, *ret_path);
    return fd >= 0 || fd == -ENOENT ? fd : err_errno(e, -fd, "open the cgroup \"%s\"", *ret_path);
}

/* Whether a process is (still) in the leaf: its id may be another's by now. */
static bool
has_process(int leaf, int64_t pid)
{
    auto_mem void *tmp = mem_ctx("procs");
    char *text, *save = NULL;
    int64_t one;
    if (file_read(tmp, leaf, "cgroup.procs", CGROUP_PROCS_MAX, &text, NULL) < 0)
        return false;
    for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save))
        if (num_parse_i64(p, &one) == 0 && one == pid)
            return true;
    return false;
}

static void
tell_leaf(int leaf)
{
    auto_mem void *tmp = mem_ctx("procs");
    char *text, *save = NULL;
    int64_t pid;
    if (leaf < 0 || file_read(tmp, leaf, "cgroup.procs", CGROUP_PROCS_MAX, &text, NULL) < 0)
        return;
    for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
        if (num_parse_i64(p, &pid) < 0 || pid <= 0)
            continue;
        auto_fd int fd = pidfd_open_pid((pid_t)pid);
        if (fd >= 0 && has_process(leaf, pid))
            (void)pidfd_signal(fd, SIGPWR);
    }
}

int
cgroup_tell_ending(const char *run_dir, struct err *e)
{
    auto_mem void *ctx = mem_ctx("ending");
    struct str_list allocs = {0};
    char *path;
    auto_fd int fd = open_tasks(ctx, run_dir, &path, e);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    cgroup_dirs(ctx, fd, &allocs);
    for (size_t i = 0; i < allocs.n; i++) {
        auto_fd int alloc = cgroup_open_dir(fd, allocs.v[i]);
        struct str_list tasks = {0};
        if (alloc < 0)
            continue;
        cgroup_dirs(ctx, alloc, &tasks);
        for (size_t k = 0; k < tasks.n; k++) {
            auto_fd int leaf = cgroup_open_dir(alloc, mem_printf(ctx, "%s/shim", tasks.v[k]));
            tell_leaf(leaf);
        }
    }
    return 0;
}

int
cgroup_clear(const char *run_dir, int timeout_ms, struct err *e)
{
    auto_mem void *ctx = mem_ctx("clear");
    char *path;
    auto_fd int fd = open_tasks(ctx, run_dir, &path, e);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    int r;
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
