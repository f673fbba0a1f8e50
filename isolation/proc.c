/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "isolation/confine/raw.h"
#include "isolation/limits.h"

static ssize_t
proc_slurp(const char *path, char *buf, size_t size)
{
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    ssize_t n = read(fd, buf, size - 1);
    if (n < 0)
        return -errno;
    buf[n] = '\0';
    return n;
}

static uint64_t
proc_number(const char **p)
{
    uint64_t v = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++)
        v = v * 10 + (uint64_t)(**p - '0');
    return v;
}

int
proc_stat(pid_t pid, struct proc_stat *ret)
{
    char path[40], buf[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    ssize_t n = proc_slurp(path, buf, sizeof(buf));
    return n < 0 ? (int)n : proc_parse_stat(buf, ret);
}

int
proc_parse_stat(const char *text, struct proc_stat *ret)
{
    const char *p = strrchr(text, ')'); /* the name before it may hold anything */
    if (p == NULL || p[1] != ' ' || p[2] == '\0' || p[3] != ' ')
        return -EINVAL;
    ret->state = p[2];
    p += 4;
    ret->parent = (pid_t)proc_number(&p);
    for (int field = 4; field < 22; field++) {
        p = strchr(p, ' ');
        if (p == NULL)
            return -EINVAL;
        p++;
    }
    ret->start = proc_number(&p);
    return 0;
}

pid_t
proc_parent(pid_t pid)
{
    struct proc_stat s;
    return pid > 0 && proc_stat(pid, &s) == 0 ? s.parent : 0;
}

pid_t
proc_inner_pid(pid_t pid)
{
    char path[40], buf[4096];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
    return proc_slurp(path, buf, sizeof(buf)) < 0 ? 0 : proc_parse_inner(buf);
}

pid_t
proc_parse_inner(const char *text)
{
    const char *p = strstr(text, "\nNSpid:");
    pid_t last = 0;
    if (p == NULL)
        return 0;
    for (p += 7; *p == '\t' || *p == ' ';) {
        p++;
        last = (pid_t)proc_number(&p);
    }
    return last;
}

int
proc_boot_id(char out[40])
{
    ssize_t n = proc_slurp("/proc/sys/kernel/random/boot_id", out, 40);
    if (n < 36)
        return n < 0 ? (int)n : -EINVAL;
    out[36] = '\0';
    return 0;
}

/* PIDFD_GET_INFO of Linux 6.13, whose struct older headers do not have: the first 64 bytes of it.
 */
struct pidfd_info_v0 {
    uint64_t mask;
    uint64_t cgroup_id;
    uint32_t pid;
    uint32_t tgid;
    uint32_t ppid;
    uint32_t ids[8];
    int32_t exit_code;
};
_Static_assert(sizeof(struct pidfd_info_v0) == 64, "kernel interface");
#define PIDFD_INFO_CALL _IOWR(0xFF, 11, struct pidfd_info_v0)

pid_t
proc_pidfd_pid(int pidfd)
{
    struct pidfd_info_v0 info = {.mask = 1 /* PIDFD_INFO_PID */};
    if (ioctl(pidfd, PIDFD_INFO_CALL, &info) == 0)
        return (pid_t)info.pid;
    char path[40], buf[512];
    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
    if (proc_slurp(path, buf, sizeof(buf)) < 0)
        return 0;
    const char *p = strstr(buf, "\nPid:\t");
    if (p == NULL || p[6] == '-')
        return 0;
    p += 6;
    return (pid_t)proc_number(&p);
}

pid_t
proc_fork_into(uint64_t flags, int cgroup, int *ret_pidfd)
{
    struct clone_args a = {.flags = CLONE_CLEAR_SIGHAND | flags, .exit_signal = SIGCHLD};
    if (cgroup >= 0) {
        a.flags |= (uint64_t)CLONE_INTO_CGROUP;
        a.cgroup = (unsigned)cgroup;
    }
    if (ret_pidfd != NULL) {
        a.flags |= CLONE_PIDFD;
        a.pidfd = (uint64_t)(uintptr_t)ret_pidfd;
    }
    return (pid_t)RAW(SYS_clone3, &a, sizeof(a));
}

static pid_t
fork_with(uint64_t flags, int *ret_pidfd)
{
    return proc_fork_into(flags, -1, ret_pidfd);
}

pid_t
proc_fork(int *ret_pidfd)
{
    return fork_with(0, ret_pidfd);
}

static void
close_between(int a, int b)
{
    if (a + 1 < b)
        (void)RAW(SYS_close_range, a + 1, b - 1, 0);
}

/* The table is shared until the child takes a copy of the part that it keeps. */
pid_t
proc_fork_bare(uint64_t flags, int keep, int also, int *ret_pidfd)
{
    pid_t pid = fork_with(CLONE_FILES | flags, ret_pidfd);
    if (pid != 0)
        return pid;
    int low = keep < also ? keep : also, high = keep < also ? also : keep;
    low = low > STDERR_FILENO ? low : STDERR_FILENO;
    high = high > STDERR_FILENO ? high : STDERR_FILENO;
    if (RAW(SYS_close_range, high + 1, ~0U, CLOSE_RANGE_UNSHARE) < 0)
        _exit(EMFILE);
    close_between(STDERR_FILENO, low);
    close_between(low, high);
    return 0;
}

struct pair {
    pid_t pid, parent;
    bool mine;
};

/* All living processes; the caller owns the array by ctx. */
static size_t
list_all(const void *ctx, struct pair **ret)
{
    struct pair *v = NULL;
    size_t n = 0;
    DIR *d = opendir("/proc");
    if (d == NULL)
        return 0;
    for (struct dirent *de; (de = readdir(d)) != NULL && n < PROC_PROCS_MAX;) {
        const char *p = de->d_name;
        pid_t pid = (pid_t)proc_number(&p);
        struct proc_stat s;
        if (*p != '\0' || pid <= 0 || proc_stat(pid, &s) < 0 || s.state == 'Z')
            continue;
        if ((n & (n - 1)) == 0)
            mem_resize(ctx, v, struct pair, n > 0 ? n * 2 : 1);
        v[n++] = (struct pair){pid, s.parent, false};
    }
    closedir(d);
    *ret = v;
    return n;
}

static bool
proc_mark(struct pair *v, size_t n, pid_t top)
{
    bool any = false;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < n; i++) {
            bool mine = v[i].parent == top;
            for (size_t k = 0; k < n && !mine; k++)
                mine = v[k].mine && v[k].pid == v[i].parent;
            if (mine && !v[i].mine)
                v[i].mine = more = any = true;
        }
    }
    return any;
}

void
proc_kill_descendants(pid_t pid)
{
    for (int pass = 0; pass < PROC_PASSES_MAX; pass++) {
        auto_mem void *ctx = mem_ctx("descendants");
        struct pair *v = NULL;
        size_t n = list_all(ctx, &v);
        if (n == 0 || !proc_mark(v, n, pid))
            return;
        for (size_t i = 0; i < n; i++) {
            if (!v[i].mine)
                continue;
            auto_fd int fd = pidfd_open_pid(v[i].pid);
            if (fd >= 0 && proc_parent(v[i].pid) == v[i].parent)
                (void)pidfd_signal(fd, SIGKILL);
        }
    }
}

/* False for a process of another user, or without memory of its own. */
static bool
is_marked(pid_t pid, const char *const *marks)
{
    auto_mem void *ctx = mem_ctx("environ");
    char path[40], *text = mem_array(ctx, char, PROC_ENVIRON_MAX);
    (void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
    auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? fd : fd_read_full(fd, text, PROC_ENVIRON_MAX - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    for (; *marks != NULL; marks++) {
        const char *p = text;
        while (p < text + n && strcmp(p, *marks) != 0)
            p += strlen(p) + 1;
        if (p >= text + n)
            return false;
    }
    return true;
}

void
proc_kill_marked(const char *const *marks)
{
    bool any = true;
    for (int pass = 0; any && pass < PROC_PASSES_MAX; pass++) {
        auto_mem void *ctx = mem_ctx("marked");
        struct pair *v = NULL;
        size_t n = list_all(ctx, &v);
        any = false;
        for (size_t i = 0; i < n; i++) {
            auto_fd int fd =
                v[i].pid == getpid() || !is_marked(v[i].pid, marks) ? -1 : pidfd_open_pid(v[i].pid);
            if (fd >= 0 && is_marked(v[i].pid, marks) && pidfd_signal(fd, SIGKILL) == 0)
                any = true;
        }
    }
}
