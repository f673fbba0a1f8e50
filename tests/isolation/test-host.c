/* SPDX-License-Identifier: Apache-2.0
 *
 * What needs a real kernel: probing, forks, cgroup leaves with processes in them, kill, freeze,
 * statistics.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/raw.h"
#include "isolation/probe.h"
#include "isolation/proc.h"
#include "tests/lib/test.h"

START_TEST(probe_tells_what_is_here)
{
    struct probe p;
    probe_run(&p, NULL);
    for (int i = 0; i < PROBE_N; i++) {
        printf("# %s: %s%s\n", probe_name((enum probe_id)i), p.facts[i].ok ? "yes" : "no, ",
               p.facts[i].why);
        ck_assert(p.facts[i].ok == (p.facts[i].why[0] == 0));
    }
    ck_assert(p.facts[PROBE_CLONE3].ok);
    ck_assert(p.facts[PROBE_OPENAT2].ok);
    ck_assert(p.facts[PROBE_CLOSE_RANGE].ok);
    ck_assert(p.facts[PROBE_SECCOMP].ok);
    ck_assert_int_eq(p.root, geteuid() == 0);
}
END_TEST

static char root_path[160];

static void
open_root(const void *ctx, struct cgroup_root *r)
{
    struct cgroup_info info;
    struct err e = ERR_INIT;
    ck_assert_msg(cgroup_find(ctx, &info, &e) == 0, "%s", e.text);
    snprintf(root_path, sizeof(root_path), "%s/paddock-test-%d", info.mount, (int)getpid());
    ck_assert_msg(cgroup_root_open(r, root_path, true, &e) == 0, "%s", e.text);
}

/* Agents of one machine that start at once have one directory to try in. */
START_TEST(two_probe_at_once)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct cgroup_root r = {0};
    open_root(ctx, &r);
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        for (int n = 0; children[i] == 0 && n < 200; n++) {
            struct probe p;
            probe_run(&p, root_path);
            if (!p.facts[PROBE_CLONE_INTO_CGROUP].ok || !p.facts[PROBE_CGROUP_KILL].ok) {
                printf("# %s; %s\n", p.facts[PROBE_CLONE_INTO_CGROUP].why,
                       p.facts[PROBE_CGROUP_KILL].why);
                fflush(stdout);
                _exit(1);
            }
        }
        if (children[i] == 0)
            _exit(0);
    }
    int wrong = 0, status = 0;
    for (int i = 0; i < 4; i++)
        wrong += waitpid(children[i], &status, 0) != children[i] || status != 0;
    cgroup_root_remove(&r, root_path);
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_lt(access(root_path, F_OK), 0);
}
END_TEST

static pid_t
sleeper(int cgroup)
{
    struct clone_args a = {
        .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (unsigned)cgroup};
    long pid = RAW(SYS_clone3, &a, sizeof(a));
    if (pid == 0) {
        signal(SIGTERM, SIG_IGN);
        for (;;)
            pause();
    }
    ck_assert_int_gt(pid, 0);
    return (pid_t)pid;
}

/* A removal, a user namespace: not one of the descriptors of ten thousand tasks. */
START_TEST(a_bare_child_has_what_it_keeps)
{
    int keep = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 20), status = 0;
    int low = fcntl(keep, F_DUPFD_CLOEXEC, 10), high = fcntl(keep, F_DUPFD_CLOEXEC, 200);
    ck_assert(keep >= 20 && low < keep && high >= 200);
    for (int with = 0; with < 3; with++) {
        pid_t pid = proc_fork_bare(0, with > 0 ? keep : -1, with > 1 ? high : -1, NULL);
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            int wrong = fcntl(STDERR_FILENO, F_GETFD) < 0;
            wrong += (fcntl(keep, F_GETFD) >= 0) != (with > 0);
            wrong += (fcntl(high, F_GETFD) >= 0) != (with > 1);
            for (int i = STDERR_FILENO + 1; i < 1024; i++)
                wrong += i != keep && i != high && fcntl(i, F_GETFD) >= 0;
            (void)close(STDOUT_FILENO); /* its own table: ours stays */
            _exit(wrong);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
    }
    ck_assert(fcntl(STDOUT_FILENO, F_GETFD) >= 0 && fcntl(low, F_GETFD) >= 0 &&
              fcntl(high, F_GETFD) >= 0);
    fd_close(&keep);
    fd_close(&low);
    fd_close(&high);
}
END_TEST

START_TEST(probe_as_root)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct cgroup_root r;
    open_root(ctx, &r);
    struct probe p;
    probe_run(&p, root_path);
    struct fact exec;
    probe_exec(&p, &exec);
    ck_assert_msg(exec.ok, "%s", exec.why);
    ck_assert(p.facts[PROBE_CGROUP_KILL].ok);
    cgroup_root_close(&r);
    ck_assert_int_eq(rmdir(root_path), 0); /* the probe left nothing in it */
}
END_TEST

START_TEST(leaves_live_and_die)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct cgroup_root r;
    open_root(ctx, &r);
    struct cgroup_plan plan;
    struct cgroup_limits l = {.cpu_shares = 100, .memory_max = 64 << 20};
    cgroup_plan(&l, &r, &plan);
    struct cgroup_task t, again;
    struct err e = ERR_INIT;
    ck_assert_int_eq(cgroup_shim_make(&r, "../x", "web", &t, &e), -ERR_INVALID);
    err_clear(&e);
    ck_assert_msg(cgroup_shim_make(&r, "alloc1", "web", &t, &e) == 0, "%s", e.text);
    /* a warden that died here: the next one finds what there is */
    ck_assert_msg(cgroup_task_open(&r, "alloc1", "web", &again, &e) == 0, "%s", e.text);
    ck_assert(again.shim_fd >= 0 && again.task_fd == -1);
    cgroup_task_close(&again);
    ck_assert_msg(cgroup_task_make(&r, "alloc1", "web", &t, &e) == 0, "%s", e.text);
    ck_assert_msg(cgroup_task_limit(&r, "alloc1", "web", &plan, &t, &e) == 0, "%s", e.text);
    ck_assert_int_eq(cgroup_populated(t.task_fd), 0);
    pid_t shim = sleeper(t.shim_fd), task = sleeper(t.task_fd), other = sleeper(t.task_fd);
    ck_assert_int_eq(cgroup_populated(t.task_fd), 1);
    /* occupied leaves are not taken over */
    ck_assert_int_eq(cgroup_shim_make(&r, "alloc1", "web", &again, &e), -EBUSY);
    err_clear(&e);
    ck_assert_int_eq(cgroup_task_remove(&r, "alloc1", "web", &e), -EBUSY);
    err_clear(&e);
    /* found again after a restart */
    ck_assert_msg(cgroup_task_open(&r, "alloc1", "web", &again, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(again.id, t.id);
    cgroup_task_close(&again);
    struct cgroup_stats s;
    ck_assert_int_eq(cgroup_stats_read(t.task_fd, &s), 0);
    ck_assert_int_ge(s.usage_us, 0);
    ck_assert_int_eq(cgroup_freeze(t.task_fd, true), 0);
    ck_assert_int_eq(cgroup_freeze(t.task_fd, false), 0);
    ck_assert_int_eq(cgroup_wait_empty(t.task_fd, 1), -ETIMEDOUT);
    /* kills the task, not the shim */
    ck_assert_int_eq(cgroup_kill(t.task_fd), 0);
    int st;
    ck_assert_int_eq(waitpid(task, &st, 0), task);
    ck_assert(WIFSIGNALED(st) && WTERMSIG(st) == SIGKILL);
    ck_assert_int_eq(waitpid(other, &st, 0), other);
    ck_assert_int_eq(cgroup_wait_empty(t.task_fd, 5000), 0);
    ck_assert_int_eq(waitpid(shim, &st, WNOHANG), 0);
    ck_assert_int_eq(cgroup_kill(t.shim_fd), 0);
    ck_assert_int_eq(waitpid(shim, &st, 0), shim);
    ck_assert_int_eq(cgroup_wait_empty(t.shim_fd, 5000), 0);
    ck_assert_msg(cgroup_task_remove(&r, "alloc1", "web", &e) == 0, "%s", e.text);
    ck_assert_int_lt(cgroup_stats_read(t.task_fd, &s), 0);
    ck_assert_int_eq(cgroup_wait_empty(t.task_fd, 1000), 0);
    ck_assert_int_eq(cgroup_task_remove(&r, "alloc1", "web", &e), 0); /* gone is fine */
    cgroup_task_close(&t);
    cgroup_root_close(&r);
    ck_assert_int_eq(rmdir(root_path), 0);
}
END_TEST

START_TEST(the_leaf_is_polled)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct cgroup_root r;
    open_root(ctx, &r);
    struct cgroup_task t;
    struct err e = ERR_INIT;
    ck_assert_msg(cgroup_shim_make(&r, "a", "t", &t, &e) == 0, "%s", e.text);
    ck_assert_msg(cgroup_task_make(&r, "a", "t", &t, &e) == 0, "%s", e.text);
    pid_t pid = sleeper(t.task_fd);
    int fd = cgroup_events_open(t.task_fd);
    ck_assert_int_ge(fd, 0);
    char text[128];
    ck_assert_int_gt(read(fd, text, sizeof(text)), 0);
    struct pollfd p = {.fd = fd, .events = POLLPRI};
    ck_assert_int_eq(cgroup_kill(t.task_fd), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    ck_assert_int_eq(cgroup_populated(t.task_fd), 0);
    (void)close(fd);
    ck_assert_msg(cgroup_task_remove(&r, "a", "t", &e) == 0, "%s", e.text);
    cgroup_task_close(&t);
    cgroup_root_close(&r);
    ck_assert_int_eq(rmdir(root_path), 0);
}
END_TEST

TEST_SUITE("host", probe_tells_what_is_here, a_bare_child_has_what_it_keeps, probe_as_root,
           two_probe_at_once, leaves_live_and_die, the_leaf_is_polled)
