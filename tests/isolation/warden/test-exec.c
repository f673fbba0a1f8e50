/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands in running tasks, through a whole warden: what they read, write and return, that they
 * are confined as the task is, and that nothing of a session is left, whoever ends it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/record.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { TASK_SECONDS = 300, ANY_USER = 65533 };

/* --- sessions --- */

static void
ask(struct rig *r, const struct exec_request *x, struct got *g)
{
    memset(g, 0, sizeof(*g));
    warden_exec(r->client, rig_id, "web", x, rig_got, g);
    rig_wait(r, g);
}

/* /bin/sh -c script */
static void
sh(struct rig *r, const char *script, bool tty, struct got *g)
{
    static const char *env[] = {"PATH=/usr/bin:/bin", "MARK=seen"};
    const char *argv[] = {"/bin/sh", "-c", script};
    const struct exec_request x = {.command = {argv, 3},
                                   .env = {env, 2},
                                   .tty = tty,
                                   .rows = tty ? 33 : 0,
                                   .columns = tty ? 77 : 0};
    ask(r, &x, g);
    ck_assert_msg(g->err.code == 0, "%s", g->err.text);
}

static void
await(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    ck_assert_msg(poll(&p, 1, 15000) == 1, "nothing comes");
}

/* Reads until the end. */
static char *
read_all(struct rig *r, int fd)
{
    char *text = mem_zalloc(r->ctx, 65536, "text");
    size_t n = 0;
    for (;;) {
        await(fd, POLLIN);
        ssize_t k = read(fd, text + n, 65535 - n);
        if (k <= 0) /* of a terminal without a process: EIO */
            return text;
        n += (size_t)k;
    }
}

static void
read_until(struct rig *r, int fd, const char *mark)
{
    char *text = mem_zalloc(r->ctx, 65536, "text");
    for (size_t n = 0; strstr(text, mark) == NULL;) {
        await(fd, POLLIN);
        ssize_t k = read(fd, text + n, 65535 - n);
        ck_assert_msg(k > 0, "the end before \"%s\": %s", mark, text);
        n += (size_t)k;
    }
}

static void
put(int fd, const char *text)
{
    ck_assert_int_eq(fd_write_full(fd, text, strlen(text)), 0);
}

static struct exec_exit
end(struct got *g)
{
    struct exec_exit x = {-1, -1};
    await(g->exit, POLLIN);
    ck_assert_int_eq(recv(g->exit, &x, sizeof(x), 0), sizeof(x));
    return x;
}

static void
expect_end(struct got *g, int code, int sig)
{
    struct exec_exit x = end(g);
    ck_assert_int_eq(x.code, code);
    ck_assert_int_eq(x.signal, sig);
    got_free(g);
}

/* A task that waits. */
static void
launch(struct rig *r, bool isolated, struct got *task)
{
    rig_alloc(r, rig_id, "web", isolated ? "exec" : "raw_exec");
    rig_launch(r, rig_spec(r, rig_id, "web", isolated, "echo here; exec sleep 300"), task);
    ck_assert_msg(task->err.code == 0, "%s", task->err.text);
    rig_await(r, "web", "here");
}

static void
begin(struct rig *r, uid_t uid, bool isolated, struct got *task)
{
    rig_start(r, uid);
    launch(r, isolated, task);
}

static void
finish(struct rig *r, struct got *task)
{
    got_free(task);
    rig_stop(r);
}

/* How many processes the task has. */
static size_t
processes(struct rig *r, struct got *task)
{
    char *text = NULL;
    size_t n = 0;
    ck_assert_int_eq(file_read(r->ctx, task->cgroup, "cgroup.procs", 65536, &text, NULL), 0);
    for (const char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        n++;
    return n;
}

static void
await_processes(struct rig *r, struct got *task, size_t want)
{
    int64_t over = clock_mono_ns() + 15 * NS_PER_S;
    while (processes(r, task) != want) {
        ck_assert_msg(clock_mono_ns() < over, "%zu processes, not %zu", processes(r, task), want);
        rig_pause(10);
    }
}

/* --- what it reads, writes and returns --- */

static void
talk(struct rig *r)
{
    struct got g;
    sh(r, "read x; echo \"got $x $MARK\"; echo bad >&2; exit 7", false, &g);
    put(g.exec[0], "this\n");
    ck_assert_str_eq(read_all(r, g.exec[1]), "got this seen\n");
    ck_assert_str_eq(read_all(r, g.exec[2]), "bad\n");
    expect_end(&g, 7, 0);
    sh(r, "cat", false, &g);
    put(g.exec[0], "until the end");
    fd_close(&g.exec[0]);
    ck_assert_str_eq(read_all(r, g.exec[1]), "until the end");
    expect_end(&g, 0, 0);
    sh(r, "kill -USR1 $$", false, &g);
    expect_end(&g, 0, SIGUSR1);
    /* its own output by name */
    sh(r, "echo again > /dev/stdout", false, &g);
    ck_assert_str_eq(read_all(r, g.exec[1]), "again\n");
    expect_end(&g, 0, 0);
}

START_TEST(talks)
{
    TEST_NEED("root");
    struct rig r;
    struct got task;
    begin(&r, 0, true, &task);
    talk(&r);
    await_processes(&r, &task, 1);
    finish(&r, &task);
}
END_TEST

START_TEST(talks_raw)
{
    TEST_NEED("root");
    struct rig r;
    struct got task;
    begin(&r, 0, false, &task);
    talk(&r);
    await_processes(&r, &task, 1);
    finish(&r, &task);
}
END_TEST

START_TEST(talks_rootless)
{
    TEST_NEED("root"); /* to become somebody */
    struct rig r;
    struct got task;
    begin(&r, ANY_USER, false, &task);
    talk(&r);
    finish(&r, &task);
}
END_TEST

/* A terminal of its own: its size, its name, job control's signals, its end of file. */
static void
on_terminal(struct rig *r)
{
    struct got g;
    sh(r, "tty; stty size; stty -echo; echo ready; read x; echo \"<$x>\"; exit 3", true, &g);
    ck_assert_int_lt(g.exec[0], 0);
    ck_assert_int_lt(g.exec[2], 0);
    read_until(r, g.exec[1], "ready");
    put(g.exec[1], "typed\n");
    char *text = read_all(r, g.exec[1]);
    ck_assert_msg(strstr(text, "<typed>") != NULL, "%s", text);
    expect_end(&g, 3, 0);
    sh(r, "stty size; ls -l $(tty) >&2; echo again > $(tty)", true, &g);
    text = read_all(r, g.exec[1]);
    ck_assert_msg(strstr(text, "33 77") != NULL && strstr(text, "/dev/pts/") != NULL &&
                      strstr(text, "again") != NULL,
                  "%s", text);
    expect_end(&g, 0, 0);
    sh(r, "trap 'stty size; exit 5' WINCH; echo ready; while :; do sleep 0.05; done", true, &g);
    read_until(r, g.exec[1], "ready");
    const struct winsize size = {.ws_row = 11, .ws_col = 22};
    ck_assert_int_eq(ioctl(g.exec[1], TIOCSWINSZ, &size), 0);
    read_until(r, g.exec[1], "11 22");
    expect_end(&g, 5, 0);
    sh(r, "echo ready; exec sleep 100", true, &g);
    read_until(r, g.exec[1], "ready");
    put(g.exec[1], "\003"); /* interrupt */
    expect_end(&g, 0, SIGINT);
}

/* By what has the same user, in a task with a user namespace and in one of the host's. */
static void
nothing_is_read(struct rig *r, const char *mine)
{
    struct got g, other;
    sh(r, "tty; echo ready; read x; echo \"<$x>\"; read y < /dev/tty; echo \"[$y]\"", true, &g);
    read_until(r, g.exec[1], "ready");
    sh(r,
       mem_printf(r->ctx,
                  "for i in %s; do exec 3<$i && echo opened; done 2>&1; "
                  "chmod a+rw %s; exec 3<>%s && echo opened",
                  mine, mine, mine),
       false, &other);
    char *text = read_all(r, other.exec[1]);
    ck_assert_msg(strstr(text, "opened") == NULL, "%s", text);
    end(&other);
    got_free(&other);
    put(g.exec[1], "typed\n");
    read_until(r, g.exec[1], "<typed>");
    put(g.exec[1], "again\n");
    text = read_all(r, g.exec[1]);
    ck_assert_msg(strstr(text, "[again]") != NULL, "%s", text);
    expect_end(&g, 0, 0);
}

START_TEST(a_task_cannot_read_what_is_typed_into_a_command_in_it)
{
    TEST_NEED("root");
    struct rig r;
    struct got task;
    begin(&r, 0, true, &task);
    nothing_is_read(&r, "/dev/pts/0");
    finish(&r, &task);
    rig_start(&r, 0);
    r.policy.userns = "off";
    rig_change_policy(&r);
    launch(&r, true, &task);
    nothing_is_read(&r, "/dev/pts/0");
    finish(&r, &task);
}
END_TEST

START_TEST(terminals)
{
    TEST_NEED("root");
    struct rig r;
    struct got task;
    begin(&r, 0, true, &task);
    on_terminal(&r);
    await_processes(&r, &task, 1);
    finish(&r, &task);
    begin(&r, 0, false, &task);
    on_terminal(&r);
    finish(&r, &task);
}
END_TEST

/* --- as the task, and no more --- */

#define FACTS                                                                                      \
    "grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Seccomp|Seccomp_filters):' /proc/self/status;"    \
    "for n in mnt pid net ipc uts user; do readlink /proc/self/ns/$n; done;"                       \
    "cat /proc/self/cgroup /proc/self/limits; umask; pwd; ls -l /proc/self/fd | wc -l;"            \
    "grep -c . /proc/self/mountinfo; cat /proc/self/oom_score_adj"

static void
expect_facts(struct rig *r, const char *own)
{
    struct got g;
    sh(r, FACTS, false, &g);
    ck_assert_str_eq(read_all(r, g.exec[1]), own);
    expect_end(&g, 0, 0);
}

/* The kernel knows the same of the task's own process and of one that joined it. */
START_TEST(confined_alike)
{
    TEST_NEED("root");
    for (int isolated = 0; isolated < 2; isolated++) {
        struct rig r;
        struct got task, g;
        rig_start(&r, 0);
        rig_alloc(&r, rig_id, "web", isolated ? "exec" : "raw_exec");
        struct launch_spec *s = rig_spec(&r, rig_id, "web", isolated,
                                         FACTS "; trap 'echo told' USR1; echo ready; "
                                               "while :; do sleep 0.05; done");
        s->isolation->nofile = 77;
        rig_launch(&r, s, &task);
        ck_assert_msg(task.err.code == 0, "%s", task.err.text);
        rig_await(&r, "web", "ready");
        char *own = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
        *strstr(own, "ready\n") = '\0';
        ck_assert_msg(strstr(own, "Max open files            77") != NULL, "%s", own);
        expect_facts(&r, own);
        rig_kill(&r, SIGKILL); /* and the next warden lets others join the same */
        rig_spawn(&r);
        (void)warden_client_ready(r.client);
        rig_connect(&r);
        expect_facts(&r, own);
        /* it may signal the task, which is what most are for */
        sh(&r, isolated ? "kill -USR1 2" : mem_printf(r.ctx, "kill -USR1 %d", (int)task.rec->pid),
           false, &g);
        expect_end(&g, 0, 0);
        rig_await(&r, "web", "told");
        finish(&r, &task);
    }
}
END_TEST

/* --- what does not start --- */

static void
refused(struct rig *r, const struct exec_request *x, int code, const char *word)
{
    struct got g;
    ask(r, x, &g);
    ck_assert_int_eq(g.err.code, -code);
    ck_assert_msg(strstr(g.err.text, word) != NULL, "%s", g.err.text);
    got_free(&g);
}

static void
pause_task(struct rig *r, bool on)
{
    struct got g = {0};
    (on ? warden_pause : warden_resume)(r->client, rig_id, "web", rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
}

/* Writes the record as an earlier release did, with the confinement under names that are no
 * more. */
static void
make_tail_old(struct rig *r)
{
    const char *path = mem_printf(r->ctx, "%s/records/%s.web", r->policy.data_dir, rig_id);
    auto_buf struct buf b = BUF_INIT(1 << 16);
    buf_put(&b, "\x81\x01", 2);
    mp_encode(&b, &type_launch_spec, rig_spec(r, rig_id, "web", true, "true"));
    auto_fd int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, sizeof(struct record)), 0);
    ck_assert_int_eq(fd_pwrite_full(fd, b.data, b.len, sizeof(struct record)), 0);
}

START_TEST(a_task_of_an_earlier_release_is_not_joined_with_less_confinement)
{
    TEST_NEED("root");
    struct rig r;
    struct got task;
    const char *fine[] = {"/bin/true"};
    const struct exec_request x = {.command = {fine, 1}};
    begin(&r, 0, true, &task);
    make_tail_old(&r);
    refused(&r, &x, ERR_UNSUPPORTED, "another version of paddock");
    finish(&r, &task);
}
END_TEST

START_TEST(refusals)
{
    TEST_NEED("root");
    struct rig r;
    struct got task, many[WARDEN_EXECS_TASK_MAX], g = {0};
    const char *none[] = {"/no/such"}, *closed[] = {"/etc/passwd"}, *fine[] = {"/bin/true"};
    struct exec_request x = {.command = {fine, 1}};
    begin(&r, 0, true, &task);
    x.command.v = none;
    refused(&r, &x, ENOENT, "execute \"/no/such\"");
    x.command.v = closed;
    refused(&r, &x, EACCES, "execute \"/etc/passwd\"");
    x.command.v = fine;
    x.work_dir = "/nowhere";
    refused(&r, &x, ENOENT, "working directory \"/nowhere\"");
    x.work_dir = NULL;
    pause_task(&r, true);
    refused(&r, &x, ERR_CONFLICT, "paused");
    pause_task(&r, false);
    for (int i = 0; i < WARDEN_EXECS_TASK_MAX; i++)
        sh(&r, "exec sleep 300", false, &many[i]);
    refused(&r, &x, ERR_BUSY, "16 commands run in it already");
    for (int i = 0; i < WARDEN_EXECS_TASK_MAX; i++)
        got_free(&many[i]);
    await_processes(&r, &task, 1);
    sh(&r, "true", false, &g);
    expect_end(&g, 0, 0);
    /* a policy that the operator changed meanwhile binds it */
    static const char *nobody[] = {"nobody"};
    r.policy.denied_users = (struct str_list){nobody, 1};
    struct err e = ERR_INIT;
    ck_assert_int_eq(policy_compile(&r.policy, r.policy_path, &e), 0);
    rig_kill(&r, SIGKILL);
    rig_spawn(&r);
    (void)warden_client_ready(r.client);
    rig_connect(&r);
    refused(&r, &x, ERR_POLICY, "nobody");
    g = (struct got){0};
    warden_kill(r.client, rig_id, "web", rig_got, &g);
    rig_wait(&r, &g);
    got_free(&g);
    (void)rig_end(&r, &task);
    refused(&r, &x, ERR_NOT_FOUND, "no task");
    finish(&r, &task);
}
END_TEST

/* --- ends --- */

/* Processes of the leaf of the shim: it alone, when no joiner lives. */
static void
await_no_joiner(struct rig *r)
{
    const char *path =
        mem_printf(r->ctx, "%s/%s/web/shim/cgroup.procs", r->policy.cgroup_root, rig_id);
    int64_t over = clock_mono_ns() + 15 * NS_PER_S;
    for (;;) {
        char *text = NULL;
        ck_assert_int_eq(file_read(r->ctx, AT_FDCWD, path, 4096, &text, NULL), 0);
        if (strchr(text, '\n') == text + strlen(text) - 1)
            return;
        ck_assert_msg(clock_mono_ns() < over, "a joiner is left: %s", text);
        rig_pause(10);
    }
}

static const char *const stubborn =
    "trap '' HUP TERM INT; (trap '' HUP; sleep 300) & sleep 300 & echo ready; wait; wait";

/* Whoever listened is gone: so is all of the session, whatever it ignores. */
START_TEST(ends_with_its_listener)
{
    TEST_NEED("root");
    for (int i = 0; i < 4; i++) {
        struct rig r;
        struct got task, g;
        bool isolated = i % 2 == 0;
        begin(&r, 0, isolated, &task);
        sh(&r, stubborn, i >= 2, &g);
        read_until(&r, g.exec[1], "ready");
        got_free(&g);
        await_processes(&r, &task, 1);
        await_no_joiner(&r);
        /* a child that stays behind when the program ends by itself goes too */
        sh(&r, "sleep 300 & exit 6", false, &g);
        expect_end(&g, 6, 0);
        await_processes(&r, &task, 1);
        await_no_joiner(&r);
        finish(&r, &task);
    }
    struct rig r;
    struct got task, g;
    begin(&r, ANY_USER, false, &task);
    sh(&r, "sleep 31234 & echo ready; wait", false, &g);
    read_until(&r, g.exec[1], "ready");
    fd_close(&g.exit);
    (void)read_all(&r, g.exec[1]); /* the last one that had it is dead */
    got_free(&g);
    finish(&r, &task);
}
END_TEST

/* A warden that dies takes no session along, and the next one lets others join. */
START_TEST(survives_the_warden)
{
    TEST_NEED("root");
    struct rig r;
    struct got task, g, other;
    begin(&r, 0, true, &task);
    sh(&r, "read x; echo \"$x\"; exec sleep 300", false, &g);
    rig_kill(&r, SIGKILL);
    rig_spawn(&r);
    (void)warden_client_ready(r.client);
    rig_connect(&r);
    put(g.exec[0], "still\n");
    read_until(&r, g.exec[1], "still");
    sh(&r, "echo joined", false, &other);
    read_until(&r, other.exec[1], "joined");
    expect_end(&other, 0, 0);
    got_free(&g);
    await_processes(&r, &task, 1);
    await_no_joiner(&r);
    finish(&r, &task);
}
END_TEST

START_TEST(ends_with_its_task)
{
    TEST_NEED("root");
    for (int i = 0; i < 3; i++) {
        struct rig r;
        struct got task, g, k = {0};
        begin(&r, i == 2 ? ANY_USER : 0, i == 0, &task);
        sh(&r, stubborn, false, &g);
        read_until(&r, g.exec[1], "ready");
        warden_kill(r.client, rig_id, "web", rig_got, &k);
        rig_wait(&r, &k);
        got_free(&k);
        (void)rig_end(&r, &task);
        (void)read_all(&r, g.exec[1]);
        await(g.exit, POLLIN);
        struct exec_exit x = {0};
        ssize_t n = recv(g.exit, &x, sizeof(x), 0);
        ck_assert_msg(n == 0 || (n == sizeof(x) && x.signal == SIGKILL), "%zd %d", n, x.signal);
        got_free(&g);
        finish(&r, &task);
    }
}
END_TEST

TEST_SUITE_TIMEOUT("exec", 60, talks, talks_raw, talks_rootless, terminals,
                   a_task_cannot_read_what_is_typed_into_a_command_in_it, confined_alike,
                   a_task_of_an_earlier_release_is_not_joined_with_less_confinement, refusals,
                   ends_with_its_listener, survives_the_warden, ends_with_its_task)
