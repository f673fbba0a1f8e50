/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands in tasks as the agent's routes see them: bytes both ways, bounds, the end of a session
 * from either side.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/client/world.h"
#include "tests/lib/test.h"

struct seen { /* of one session */
    struct client_exec *x;
    struct buf out[2];
    bool closed[2], writable, exited, failed;
    bool free_at_output, pause_at_output;
    int code, signal;
    struct err e;
};

static void
on_output(void *arg, int stream, const void *data, size_t n)
{
    struct seen *s = arg;
    ck_assert(!s->exited && !s->failed && !s->closed[stream - 1]);
    ck_assert_uint_le(n, CLIENT_EXEC_CHUNK);
    buf_put(&s->out[stream - 1], data, n);
    if (s->free_at_output)
        client_exec_free(TAKE(s->x));
    if (s->pause_at_output)
        client_exec_pause(s->x, true);
}

static void
on_closed(void *arg, int stream)
{
    ((struct seen *)arg)->closed[stream - 1] = true;
}

static void
on_writable(void *arg)
{
    ((struct seen *)arg)->writable = true;
}

static void
on_exited(void *arg, int code, int signal)
{
    struct seen *s = arg;
    ck_assert(!s->exited && !s->failed);
    s->exited = true;
    s->code = code;
    s->signal = signal;
}

static void
on_failed(void *arg, const struct err *e)
{
    struct seen *s = arg;
    ck_assert(!s->exited && !s->failed);
    s->failed = true;
    s->e = *e;
}

static const struct client_exec_events events = {.output = on_output,
                                                 .closed = on_closed,
                                                 .writable = on_writable,
                                                 .exited = on_exited,
                                                 .failed = on_failed};

static void
run(struct world *w, struct seen *s, const struct world_alloc *a, const char *script, bool tty)
{
    const char *argv[] = {"/bin/sh", "-c", script};
    const struct client_exec_request req = {.command = {argv, 3}, .tty = tty, .rows = 40};
    memset(s, 0, sizeof(*s));
    buf_init(&s->out[0], 64 << 20);
    buf_init(&s->out[1], 64 << 20);
    s->x = client_exec_open(w->client, a->a->id, &req, &events, s);
    ck_assert_ptr_nonnull(s->x);
}

static const char *
text(struct seen *s, int stream)
{
    buf_putc(&s->out[stream - 1], '\0');
    s->out[stream - 1].len--;
    return (const char *)s->out[stream - 1].data;
}

static void
drop(struct seen *s)
{
    if (s->x)
        client_exec_free(s->x);
    buf_done(&s->out[0]);
    buf_done(&s->out[1]);
}

static void
expect_exit(struct world *w, struct seen *s, int code, int signal)
{
    world_until(w, s->exited || s->failed);
    ck_assert_msg(s->exited, "%s", s->e.text);
    ck_assert_int_eq(s->code, code);
    ck_assert_int_eq(s->signal, signal);
}

static void
expect_failure(struct world *w, struct seen *s, int code, const char *word)
{
    world_until(w, s->exited || s->failed);
    ck_assert_int_eq(s->e.code, -code);
    ck_assert_msg(strstr(s->e.text, word) != NULL, "%s", s->e.text);
    drop(s);
}

static struct world_alloc *
begin(struct world *w)
{
    world_start(w, 0);
    world_client(w);
    struct world_alloc *a = world_script(w, "service", "exec sleep 300");
    world_until(w, world_status(a, "running"));
    return a;
}

static void
finish(struct world *w)
{
    world_client_stop(w);
    world_stop(w);
}

START_TEST(talks)
{
    TEST_NEED("root");
    struct world w;
    struct seen s;
    struct world_alloc *a = begin(&w);
    run(&w, &s, a, "read x; echo \"$x $NOMAD_TASK_NAME\"; pwd >&2; exit 7", false);
    ck_assert_int_eq(client_exec_write(s.x, "early\n", 6), 0); /* before it has started */
    expect_exit(&w, &s, 7, 0);
    ck_assert_str_eq(text(&s, 1), "early t\n");
    ck_assert_msg(strstr(text(&s, 2), a->a->id) != NULL, "%s", text(&s, 2));
    ck_assert(s.closed[0] && s.closed[1]);
    drop(&s);
    run(&w, &s, a, "stty -echo; stty size; cat; echo over", true);
    ck_assert_int_eq(client_exec_write(s.x, "typed\n", 6), 0);
    client_exec_close_input(s.x);
    expect_exit(&w, &s, 0, 0);
    ck_assert_msg(strstr(text(&s, 1), "40 0") && strstr(text(&s, 1), "typed") &&
                      strstr(text(&s, 1), "over"),
                  "%s", text(&s, 1));
    drop(&s);
    run(&w, &s, a, "kill -9 $$", false);
    expect_exit(&w, &s, 0, 9);
    drop(&s);
    finish(&w);
}
END_TEST

/* More than any buffer holds, both ways; and a reader that pauses stops the writer. */
START_TEST(flows)
{
    enum { BYTES = 8 << 20, PIECE = 10000 };
    TEST_NEED("root");
    struct world w;
    struct seen s;
    struct world_alloc *a = begin(&w);
    run(&w, &s, a, "cat", false);
    static uint8_t piece[PIECE];
    size_t sent = 0;
    while (sent < BYTES) {
        memset(piece, (int)(sent / PIECE % 251), PIECE);
        s.writable = false;
        int r = client_exec_write(s.x, piece, PIECE);
        ck_assert_msg(r == 0 || r == -EAGAIN, "%d", r);
        sent += PIECE;
        if (r == -EAGAIN)
            world_until(&w, s.writable);
    }
    client_exec_close_input(s.x);
    expect_exit(&w, &s, 0, 0);
    ck_assert_uint_eq(s.out[0].len, sent);
    size_t same = 0;
    while (same < sent && s.out[0].data[same] == same / PIECE % 251)
        same++;
    ck_assert_uint_eq(same, sent);
    drop(&s);
    /* it reads nothing: the bound holds */
    run(&w, &s, a, "exec sleep 300", false);
    int r = 0;
    for (size_t n = 0; r != -ERR_LIMIT; n += PIECE) {
        ck_assert_uint_lt(n, 2 * CLIENT_EXEC_INPUT_MAX);
        r = client_exec_write(s.x, piece, PIECE);
    }
    drop(&s);
    run(&w, &s, a, "yes", false);
    s.pause_at_output = true;
    world_until(&w, s.out[0].len > 0);
    size_t had = s.out[0].len;
    for (int i = 0; i < 20; i++)
        world_turn(&w);
    ck_assert_uint_eq(s.out[0].len, had);
    s.pause_at_output = false;
    client_exec_pause(s.x, false);
    world_until(&w, s.out[0].len > had + (1 << 20));
    s.free_at_output = true;
    world_until(&w, s.x == NULL);
    drop(&s);
    finish(&w);
}
END_TEST

/* The output that was written is delivered though somebody else keeps the pipe open. */
START_TEST(ends)
{
    TEST_NEED("root");
    struct world w;
    struct seen s;
    struct world_alloc *a = begin(&w);
    run(&w, &s, a, "echo last; setsid sleep 300 & sleep 0.2; exit 4", false);
    expect_exit(&w, &s, 4, 0);
    ck_assert_str_eq(text(&s, 1), "last\n");
    drop(&s);
    /* the task ends meanwhile */
    run(&w, &s, a, "echo here; exec sleep 300", false);
    world_until(&w, s.out[0].len > 0);
    a->a->desired_status = "stop";
    world_changed(&w, a);
    world_until(&w, s.exited || s.failed);
    ck_assert_msg(s.failed ? s.e.code == -ERR_CLOSED : s.signal == 9, "%s", s.e.text);
    drop(&s);
    finish(&w);
}
END_TEST

START_TEST(refusals)
{
    TEST_NEED("root");
    struct world w;
    struct seen s;
    struct world_alloc *a = begin(&w);
    struct allocation unknown = {.id = "00000000-0000-0000-0000-00000000dead"};
    run(&w, &s, &(struct world_alloc){.a = &unknown}, "true", false);
    expect_failure(&w, &s, ERR_NOT_FOUND, "is not on this node");
    const char *argv[] = {"/no-such-program"};
    struct client_exec_request req = {.command = {argv, 1}};
    memset(&s, 0, sizeof(s));
    s.x = client_exec_open(w.client, a->a->id, &req, &events, &s);
    expect_failure(&w, &s, ENOENT, "no-such-program");
    req.command.n = 0;
    memset(&s, 0, sizeof(s));
    s.x = client_exec_open(w.client, a->a->id, &req, &events, &s);
    expect_failure(&w, &s, ERR_INVALID, "no command");
    req.command.n = 1;
    req.task = "other";
    memset(&s, 0, sizeof(s));
    s.x = client_exec_open(w.client, a->a->id, &req, &events, &s);
    expect_failure(&w, &s, ERR_NOT_FOUND, "has no task");
    /* freed before anybody has answered; and at the end of the client */
    run(&w, &s, a, "true", false);
    drop(&s);
    run(&w, &s, a, "echo here; exec sleep 300", false);
    world_until(&w, s.out[0].len > 0);
    struct seen late;
    run(&w, &late, a, "true", false);
    client_exec_free(late.x);
    late.x = NULL;
    drop(&late);
    drop(&s);
    finish(&w);
}
END_TEST

static void
stopped(void *arg)
{
    *(bool *)arg = true;
}

/* An agent that goes down ends what is open, and waits until its owners have let go. */
START_TEST(stops_with_the_client)
{
    TEST_NEED("root");
    struct world w;
    struct seen runs, asked;
    struct world_alloc *a = begin(&w);
    run(&w, &runs, a, "echo here; exec sleep 300", false);
    world_until(&w, runs.out[0].len > 0);
    run(&w, &asked, a, "true", false);
    bool done = false;
    client_stop(w.client, stopped, &done);
    world_until(&w, runs.failed && asked.failed);
    ck_assert_int_eq(runs.e.code, -ERR_UNAVAILABLE);
    ck_assert_int_eq(asked.e.code, -ERR_UNAVAILABLE);
    for (int i = 0; i < 5; i++)
        world_turn(&w);
    ck_assert(!done);
    drop(&runs);
    drop(&asked);
    world_until(&w, done);
    world_client_free(&w);
    world_stop(&w);
}
END_TEST

TEST_SUITE_TIMEOUT("client-exec", 60, talks, flows, ends, refusals, stops_with_the_client)
