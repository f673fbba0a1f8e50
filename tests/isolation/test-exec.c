/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands in running tasks, through a whole warden: what they read, write and return, that they
 * are confined as the task is, and that nothing of a session is left, whoever ends it.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/plan.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { TASK_SECONDS = 300, ANY_USER = 65533 };

/* --- sessions -------------------------------------------------------------------------------- */

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

/* What comes until the end. */
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
begin(struct rig *r, uid_t uid, bool isolated, struct got *task)
{
    rig_start(r, uid);
    rig_alloc(r, rig_id, "web", isolated ? "exec" : "raw_exec");
    rig_launch(r, rig_spec(r, rig_id, "web", isolated, "echo here; exec sleep 300"), task);
    ck_assert_msg(task->err.code == 0, "%s", task->err.text);
    rig_await(r, "web", "here");
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

/* --- what it reads, writes and returns ------------------------------------------------------- */

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

TEST_SUITE_TIMEOUT("exec", 60, talks, talks_raw, talks_rootless, terminals)
