/* SPDX-License-Identifier: Apache-2.0
 *
 * What a warden finds when it starts: launches and removals that SIGKILL interrupted at each of
 * their system calls, records that are damaged, newer or of an earlier boot, cgroups and trash that
 * nobody owns; and how tasks without root end. PADDOCK_LONG=1 takes every step instead of some.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/record.h"
#include "isolation/proc.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534, STEPS_MAX = 12000, STRIDE = 37 }; /* more on a slow machine: the warden tries again */

static void
expect_code(struct rig *r, struct got *g, int code)
{
    rig_wait(r, g);
    ck_assert_msg(g->err.code == -code, "expected %d (%s), got %d: %s", code, err_name(code),
                  g->err.code, g->err.text);
    got_free(g);
}

static void
destroy(struct rig *r, const char *task)
{
    struct got d = {0};
    warden_destroy(r->client, rig_id, task, rig_got, &d);
    expect_code(r, &d, 0);
}

static void
restart(struct rig *r)
{
    if (r->warden != 0)
        rig_kill(r, SIGKILL);
    while (warden_client_ready(r->client) == 0)
        rig_pause(1); /* until the end of the connection is seen */
    rig_spawn(r);
    rig_connect(r);
}

/* Entries of a directory but "." and ".."; -1: it is not there. */
static int
entries(const char *path)
{
    int n = -2;
    DIR *d = opendir(path);
    if (d == NULL)
        return -1;
    while (readdir(d) != NULL)
        n++;
    closedir(d);
    return n;
}

static const char *
record_path(struct rig *r, const char *prefix, const char *task)
{
    return mem_printf(r->ctx, "%s/records/%s%s.%s", r->policy.data_dir, prefix, rig_id, task);
}

static void
await(bool (*cond)(void *arg), void *arg, const char *what)
{
    for (int i = 0; i < 2000; i++) {
        if (cond(arg)) /* asked once: what is true now may not be so during an execve */
            return;
        rig_pause(5);
    }
    ck_abort_msg("%s: not in time", what);
}

static bool
no_records(void *arg)
{
    struct rig *r = arg;
    return entries(mem_printf(r->ctx, "%s/records", r->policy.data_dir)) == 0;
}

static bool
no_cgroup(void *arg)
{
    struct rig *r = arg;
    return r->policy.cgroup_root == NULL ||
           access(mem_printf(r->ctx, "%s/%s", r->policy.cgroup_root, rig_id), F_OK) < 0;
}

static bool
no_trash(void *arg)
{
    struct rig *r = arg;
    return entries(r->policy.alloc_dir) == 0;
}

/* Processes whose command line holds `mark`. */
static size_t
count_marked(const char *mark)
{
    size_t n = 0;
    DIR *d = opendir("/proc");
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        char path[300], text[4096] = "";
        int64_t pid = 0;
        struct proc_stat stat;
        if (num_parse_i64(de->d_name, &pid) < 0 || pid == getpid())
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", de->d_name);
        auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t k = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
        for (ssize_t i = 0; i < k; i++)
            text[i] = text[i] == 0 ? ' ' : text[i];
        n += strstr(text, mark) != NULL && proc_stat((pid_t)pid, &stat) == 0 && stat.state != 'Z';
    }
    closedir(d);
    return n;
}

static bool
none_marked(void *arg)
{
    return count_marked(arg) == 0;
}

static bool
one_marked(void *arg) /* none: the moment of an execve */
{
    size_t n = count_marked(arg);
    ck_assert_uint_le(n, 1);
    return n == 1;
}

/* --- SIGKILL at the k-th step --- */

enum what { LAUNCH, DESTROY, REMOVE };

static void
request(struct rig *r, enum what what, const struct launch_spec *s, struct got *g)
{
    *g = (struct got){0};
    if (what == LAUNCH)
        warden_launch(r->client, s, rig_got, g);
    else if (what == DESTROY)
        warden_destroy(r->client, rig_id, "web", rig_got, g);
    else
        warden_alloc_remove(r->client, rig_id, rig_got, g);
}

static bool
answered(struct rig *r)
{
    struct pollfd p = {.fd = warden_client_fd(r->client), .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Lets the warden run for `k` entries into and returns from system calls and kills it there; false:
 * it had answered before. */
static bool
kill_at(struct rig *r, enum what what, const struct launch_spec *s, struct got *g, int k)
{
    int status;
    ck_assert_int_eq(ptrace(PTRACE_SEIZE, r->warden, NULL, PTRACE_O_TRACESYSGOOD), 0);
    ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, r->warden, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(r->warden, &status, 0), r->warden);
    request(r, what, s, g);
    for (int i = 0; i < k; i++) {
        if (answered(r)) {
            ptrace(PTRACE_DETACH, r->warden, NULL, NULL);
            return false;
        }
        int sig = WIFSTOPPED(status) && status >> 16 == 0 && WSTOPSIG(status) < 32 &&
                          WSTOPSIG(status) != SIGTRAP
                      ? WSTOPSIG(status)
                      : 0;
        ck_assert_int_eq(ptrace(PTRACE_SYSCALL, r->warden, NULL, (void *)(long)sig), 0);
        ck_assert_int_eq(waitpid(r->warden, &status, 0), r->warden);
        ck_assert_msg(WIFSTOPPED(status), "the warden ended by itself: %x", (unsigned)status);
    }
    kill(r->warden, SIGKILL);
    while (waitpid(r->warden, &status, 0) == r->warden && !WIFSIGNALED(status))
        ;
    r->warden = 0;
    return true;
}

/* After the kill: a task that is known runs, one that is not can be launched; never two. */
static void
after_launch(struct rig *r, const struct launch_spec *s, const char *mark)
{
    struct got a = {0}, again = {0};
    warden_adopt(r->client, rig_id, "web", rig_got, &a);
    rig_wait(r, &a);
    ck_assert_msg(a.err.code == 0 || a.err.code == -ERR_NOT_FOUND, "%s", a.err.text);
    bool lives = a.err.code == 0 && a.ended >= 0;
    for (int i = 0; i < 400; i++) {
        rig_launch(r, s, &again);
        if (again.err.code != -ERR_BUSY)
            break;
        got_free(&again);
        rig_pause(5);
    }
    ck_assert_msg(again.err.code == (lives ? -ERR_CONFLICT : 0), "%d: %s", again.err.code,
                  again.err.text);
    await(one_marked, (void *)(uintptr_t)mark, "one and only one of it");
    if (lives) { /* and is ours to signal */
        struct got k = {0};
        warden_signal(r->client, rig_id, "web", SIGTERM, rig_got, &k);
        expect_code(r, &k, 0);
        ck_assert_int_eq(rig_end(r, &a)->signal, SIGTERM);
    }
    got_free(&a);
    got_free(&again);
}

static void
kills(bool isolated, uid_t uid, enum what what)
{
    struct rig r;
    struct got g;
    rig_start(&r, uid);
    char mark[32];
    (void)snprintf(mark, sizeof(mark), "777%d", (int)getpid());
    struct launch_spec *s =
        rig_spec(&r, rig_id, "web", isolated, mem_printf(r.ctx, "exec sleep %s", mark));
    list_add(s, s->env, mem_printf(s, "NOMAD_ALLOC_ID=%s", rig_id));
    list_add(s, s->env, "NOMAD_TASK_NAME=web");
    const char *slow = getenv("PADDOCK_TEST_SLOW");
    int stride = getenv("PADDOCK_LONG") != NULL ? 1 : STRIDE, k = 1, done = 0;
    if (slow != NULL && strlen(slow) > 1) /* emulated: a step takes a second or two */
        stride *= 8;
    for (bool in_time = true; in_time && k < STEPS_MAX; k += stride) {
        rig_alloc(&r, rig_id, "web", s->driver);
        if (what == DESTROY) {
            rig_launch(&r, s, &g);
            ck_assert_msg(g.err.code == 0, "%s", g.err.text);
            got_free(&g);
        }
        in_time = kill_at(&r, what, s, &g, k);
        rig_wait(&r, &g);
        got_free(&g);
        if (in_time)
            restart(&r);
        if (what == LAUNCH && in_time)
            after_launch(&r, s, mark);
        destroy(&r, "web");
        await(none_marked, mark, "end of the task");
        await(no_records, &r, "removal of the record");
        await(no_cgroup, &r, "removal of the cgroup");
        if (what == REMOVE) {
            struct got d;
            request(&r, REMOVE, NULL, &d);
            expect_code(&r, &d, 0);
            await(no_trash, &r, "removal of the directory");
        }
        done++;
    }
    ck_assert_int_gt(done, 1);
    ck_assert_int_lt(k, STEPS_MAX);
    if (getenv("PADDOCK_LONG") != NULL)
        printf("# %d steps of %s %s\n", done,
               isolated   ? "exec"
               : uid != 0 ? "raw_exec without root"
                          : "raw_exec",
               what == LAUNCH    ? "launch"
               : what == DESTROY ? "destroy"
                                 : "remove");
    rig_stop(&r);
}

START_TEST(killed_at_a_step_of_a_launch)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    kills(true, 0, LAUNCH);
    kills(false, 0, LAUNCH);
    kills(false, NOBODY, LAUNCH);
}
END_TEST

START_TEST(killed_at_a_step_of_a_removal)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    kills(true, 0, DESTROY);
    kills(false, NOBODY, DESTROY);
    kills(true, 0, REMOVE);
}
END_TEST

/* --- what nobody owns --- */

static void
write_file(const char *path, const void *p, size_t n)
{
    auto_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fd_write_full(fd, p, n), 0);
}

static void
launch_marked(struct rig *r, const char *mark, bool isolated, struct got *g)
{
    rig_alloc(r, rig_id, "web", isolated ? "exec" : "raw_exec");
    rig_launch(r,
               rig_spec(r, rig_id, "web", isolated,
                        mem_printf(r->ctx, "setsid sleep %s & exec sleep %s", mark, mark)),
               g);
    ck_assert_msg(g->err.code == 0, "%s", g->err.text);
}

/* A task whose record was damaged or lost is ended; its name is free again. */
static void
strays(bool lost)
{
    struct rig r;
    struct got g;
    char mark[] = "7778881";
    rig_start(&r, 0);
    launch_marked(&r, mark, !lost, &g);
    rig_kill(&r, SIGKILL);
    if (lost)
        ck_assert_int_eq(unlink(record_path(&r, "", "web")), 0);
    else
        write_file(record_path(&r, "", "web"), "garbage", 7);
    write_file(mem_printf(r.ctx, "%s/records/what", r.policy.data_dir), "x", 1);
    const char *other =
        mem_printf(r.ctx, "%s/%s", r.policy.cgroup_root, "11111111-89ab-cdef-0123-456789abcdef");
    const char *below = mem_printf(r.ctx, "%s/x", other);
    ck_assert_int_eq(mkdir(other, 0755), 0); /* not marked, and used: somebody else's */
    ck_assert_int_eq(mkdir(below, 0755), 0);
    restart(&r);
    await(none_marked, mark, "end of the stray");
    await(no_records, &r, "removal of its record");
    await(no_cgroup, &r, "removal of its cgroup");
    ck_assert_int_eq(rmdir(below), 0);
    ck_assert_int_eq(rmdir(other), 0);
    got_free(&g);
    rig_launch(&r, rig_spec(&r, rig_id, "web", true, "exit 3"), &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 3);
    got_free(&g);
    rig_stop(&r);
}

/* The removal of an earlier run was given up, and its record stayed: the next launch is another task. */
START_TEST(a_removal_given_up_ends_no_later_run)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g, again = {0};
    rig_start(&r, 0);
    const char *doomed = record_path(&r, "-", "web");
    write_file(doomed, "garbage", 7);
    rig_alloc(&r, rig_id, "web", "exec");
    rig_launch(&r, rig_spec(&r, rig_id, "web", true, "sleep 1000"), &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_ne(access(doomed, F_OK), 0);
    got_free(&g);
    restart(&r);
    warden_adopt(r.client, rig_id, "web", rig_got, &again);
    rig_wait(&r, &again);
    ck_assert_msg(again.err.code == 0, "%s", again.err.text);
    ck_assert(!again.rec->lost && again.ended >= 0);
    destroy(&r, "web");
    got_free(&again);
    rig_stop(&r);
}
END_TEST

START_TEST(ends_strays)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    strays(true);
    strays(false);
}
END_TEST

/* A warden that was killed between making one and marking it as its own. */
START_TEST(removes_empty_cgroups_that_bear_no_mark)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    rig_kill(&r, SIGKILL);
    const char *empty = mem_printf(r.ctx, "%s/%s", r.policy.cgroup_root, rig_id);
    const char *full =
        mem_printf(r.ctx, "%s/11234567-89ab-cdef-0123-456789abcdef", r.policy.cgroup_root);
    const char *other = mem_printf(r.ctx, "%s/not-ours", r.policy.cgroup_root);
    const char *below = mem_printf(r.ctx, "%s/x", full);
    const char *const made[] = {empty, full, other, below};
    for (size_t i = 0; i < ARRAY_LEN(made); i++)
        ck_assert_int_eq(mkdir(made[i], 0755), 0);
    restart(&r);
    ck_assert_int_ne(access(empty, F_OK), 0);
    for (size_t i = ARRAY_LEN(made); --i > 0;)
        ck_assert_int_eq(rmdir(made[i]), 0);
    rig_stop(&r);
}
END_TEST

START_TEST(a_task_with_the_name_of_a_cgroup_file_leaves_no_cgroup)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g = {0};
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "cpu.stat", "raw_exec");
    warden_launch(r.client, rig_spec(&r, rig_id, "cpu.stat", false, "true"), rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_ptr_nonnull(strstr(g.err.text, "rename the task"));
    ck_assert_int_ne(access(mem_printf(r.ctx, "%s/%s", r.policy.cgroup_root, rig_id), F_OK), 0);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

START_TEST(finishes_removals)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    rig_kill(&r, SIGKILL);
    for (int i = 0; i < 100; i++) { /* more than it does at once */
        const char *dir = mem_printf(r.ctx, "%s/.trash-%d", r.policy.alloc_dir, i);
        ck_assert_int_eq(mkdir(dir, 0755), 0);
        write_file(mem_printf(r.ctx, "%s/x", dir), "x", 1);
    }
    restart(&r);
    await(no_trash, &r, "empty trash");
    rig_stop(&r);
}
END_TEST

/* --- other versions, other boots --- */

static void
change_record(struct rig *r, uint32_t version, const char *boot_id)
{
    struct record x;
    auto_fd int fd = open(record_path(r, "", "web"), O_RDWR);
    ck_assert_int_eq(record_read_raw(fd, &x), 0);
    if (version != 0)
        ck_assert_int_eq(fd_pwrite_full(fd, &version, 4, offsetof(struct record, version)), 0);
    if (boot_id != NULL)
        ck_assert_int_eq(fd_pwrite_full(fd, boot_id, 36, offsetof(struct record, boot_id)), 0);
}

START_TEST(adopts_a_newer_version)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g, a = {0}, k = {0};
    rig_start(&r, 0);
    for (int isolated = 0; isolated < 2; isolated++) {
        launch_marked(&r, "7778882", isolated, &g);
        rig_kill(&r, SIGKILL);
        change_record(&r, SHIM_VERSION + 1, NULL);
        restart(&r);
        a = k = (struct got){0};
        warden_adopt(r.client, rig_id, "web", rig_got, &a);
        rig_wait(&r, &a);
        ck_assert_msg(a.err.code == 0 && a.ended >= 0, "%s", a.err.text);
        ck_assert_int_eq(a.rec->pid, g.rec->pid); /* its oldest child */
        warden_signal(r.client, rig_id, "web", SIGTERM, rig_got, &k);
        expect_code(&r, &k, 0);
        (void)rig_end(&r, &a);
        got_free(&a);
        a = (struct got){0};
        warden_adopt(r.client, rig_id, "web", rig_got, &a);
        rig_wait(&r, &a);
        ck_assert(a.rec->lost && a.rec->finished_at > 0);
        ck_assert_msg(strstr(a.rec->error, "another version") != NULL, "%s", a.rec->error);
        got_free(&a);
        got_free(&g);
        destroy(&r, "web");
    }
    rig_stop(&r);
}
END_TEST

START_TEST(tells_a_reboot)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g, a = {0};
    rig_start(&r, 0);
    launch_marked(&r, "7778883", true, &g);
    rig_kill(&r, SIGKILL);
    ck_assert_int_eq(kill((pid_t)g.rec->shim_pid, SIGKILL), 0); /* first: it would record the end */
    ck_assert_int_eq(cgroup_kill(g.cgroup), 0);
    (void)rig_end(&r, &g);
    (void)dir_remove(AT_FDCWD, r.policy.run_dir, NULL);
    change_record(&r, 0, "00000000-0000-0000-0000-000000000000");
    struct err e = ERR_INIT; /* /run is empty after a boot */
    (void)mkdir(r.policy.run_dir, 0755);
    ck_assert_msg(policy_compile(&r.policy, r.policy_path, &e) == 0, "%s", e.text);
    for (const char *const *p = (const char *const[]){"web/shim", "web/task", "web", "", NULL};
         *p != NULL; p++)
        (void)rmdir(mem_printf(r.ctx, "%s/%s/%s", r.policy.cgroup_root, rig_id, *p));
    (void)rmdir(r.policy.cgroup_root);
    restart(&r);
    warden_adopt(r.client, rig_id, "web", rig_got, &a);
    rig_wait(&r, &a);
    ck_assert_msg(a.err.code == 0, "%s", a.err.text);
    ck_assert(a.rec->lost && a.ended < 0);
    ck_assert_msg(strstr(a.rec->error, "machine was restarted") != NULL, "%s", a.rec->error);
    got_free(&a);
    got_free(&g);
    destroy(&r, "web");
    rig_stop(&r);
}
END_TEST

START_TEST(makes_a_lost_cgroup_again)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    ck_assert_int_eq(rmdir(r.policy.cgroup_root), 0);
    rig_launch(&r, rig_spec(&r, rig_id, "web", true, "true"), &g);
    ck_assert_int_eq(g.err.code, -ERR_UNAVAILABLE);
    got_free(&g);
    int status; /* whoever started it starts it again */
    ck_assert_int_eq(waitpid(r.warden, &status, 0), r.warden);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    r.warden = 0;
    restart(&r);
    launch_marked(&r, "7778884", true, &g);
    ck_assert_int_eq(
        access(mem_printf(r.ctx, "%s/%s/web/task", r.policy.cgroup_root, rig_id), F_OK), 0);
    got_free(&g);
    destroy(&r, "web");
    rig_stop(&r);
}
END_TEST

/* --- without root --- */

static void
rootless_end(int how)
{
    struct rig r;
    struct got g, k = {0};
    char mark[] = "7778885";
    rig_start(&r, NOBODY);
    rig_alloc(&r, rig_id, "web", "raw_exec");
    struct launch_spec *s = rig_spec(
        &r, rig_id, "web", false,
        mem_printf(r.ctx,
                   "setsid sleep %s & setsid sh -c 'trap \"\" TERM; setsid sleep %s & "
                   "while :; do sleep %s; done' & echo up; %s",
                   mark, mark, mark, how == 0 ? "sleep 0.2; exit 4" : "while :; do sleep 1; done"));
    list_add(s, s->env, mem_printf(s, "NOMAD_ALLOC_ID=%s", rig_id));
    list_add(s, s->env, "NOMAD_TASK_NAME=web");
    rig_launch(&r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    for (int i = 0; i < 2000 && count_marked(mark) < 3; i++)
        rig_pause(5);
    if (how == 1) {
        warden_kill(r.client, rig_id, "web", rig_got, &k);
        expect_code(&r, &k, 0);
    } else if (how >= 2) {
        if (how == 3) /* nobody watches: the next warden sees to it */
            rig_kill(&r, SIGKILL);
        ck_assert_int_eq(kill((pid_t)g.rec->shim_pid, SIGKILL), 0);
    }
    struct task_record *t = rig_end(&r, &g);
    if (how == 0)
        ck_assert_int_eq(t->exit_code, 4);
    if (how == 1)
        ck_assert_int_eq(t->signal, SIGKILL);
    if (how == 3)
        restart(&r);
    await(none_marked, mark, "end of those who left the session");
    got_free(&g);
    destroy(&r, "web");
    rig_stop(&r);
}

/* The agent has records to read. */
START_TEST(who_reads_a_record_is_no_shim)
{
    char path[] = "/tmp/paddock-record-XXXXXX";
    auto_fd int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    for (int write = 0; write < 2; write++) {
        int p[2];
        char c;
        ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
            const struct flock l = {.l_type = write ? F_WRLCK : F_RDLCK};
            int mine = open(path, write ? O_RDWR : O_RDONLY);
            if (fcntl(mine, F_SETLK, &l) == 0)
                (void)dprintf(p[1], "x");
            (void)pause();
        }
        ck_assert_int_eq(read(p[0], &c, 1), 1);
        ck_assert_int_eq(record_shim_pid(fd), write ? pid : 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        (void)close(p[0]);
        (void)close(p[1]);
    }
    (void)unlink(path);
}
END_TEST

START_TEST(leaves_nobody_without_root)
{
    TEST_NEED("root");
    for (int how = 0; how < 4; how++)
        rootless_end(how);
}
END_TEST

/* With the same tasks, and another socket. */
START_TEST(a_second_warden_on_a_data_dir_takes_nothing_over)
{
    TEST_NEED("root");
    struct rig r, second;
    struct got g = {0};
    struct err e = ERR_INIT;
    int status = 0;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "raw_exec");
    rig_launch(&r, rig_spec(&r, rig_id, "web", false, "sleep 1000"), &g);
    second = r;
    second.policy.run_dir = mem_printf(r.ctx, "%s/run2", r.dir);
    snprintf(second.policy_path, sizeof(second.policy_path), "%s/policy", second.policy.run_dir);
    ck_assert_int_eq(mkdir(second.policy.run_dir, 0755), 0);
    ck_assert_int_eq(policy_compile(&second.policy, second.policy_path, &e), 0);
    rig_spawn(&second);
    auto_fd int fd = pidfd_open_pid(second.warden);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    ck_assert_msg(poll(&p, 1, 10000) == 1, "it runs beside the first");
    ck_assert_int_eq(waitpid(second.warden, &status, 0), second.warden);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    struct got k = {0};
    warden_kill(r.client, rig_id, "web", rig_got, &k);
    expect_code(&r, &k, 0);
    ck_assert_int_eq(rig_end(&r, &g)->signal, SIGKILL);
    destroy(&r, "web");
    got_free(&g);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("adopt", 300, a_second_warden_on_a_data_dir_takes_nothing_over,
                   killed_at_a_step_of_a_launch, killed_at_a_step_of_a_removal, ends_strays,
                   a_removal_given_up_ends_no_later_run,
                   removes_empty_cgroups_that_bear_no_mark,
                   a_task_with_the_name_of_a_cgroup_file_leaves_no_cgroup, finishes_removals,
                   adopts_a_newer_version, tells_a_reboot, makes_a_lost_cgroup_again,
                   who_reads_a_record_is_no_shim, leaves_nobody_without_root)
