/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of RPC over TCP (0) and in process (1): bytes, windows, turns, ends of all kinds, calls to the side
 * that dialled, hostile frames.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "net/rpc.h"
#include "net/rpc_wire_int.h"
#include "net/splice.h"
#include "net/stream.h"
#include "tests/lib/filter.h"
#include "tests/lib/test.h"

enum { MANY = 3 << 20 };

static struct loop *loop;
static struct rpc_server *server;
static struct rpc_client *client;

/* One end of a stream. */
struct end {
    struct stream *st; /* NULL: it has gone */
    size_t got, to_write, wrote;
    uint32_t sum; /* of what came, by place */
    bool echo, eof, closed;
    int code;
};

struct opened {
    bool done;
    int code;
    char text[ERR_TEXT_MAX];
};

static struct end accepted[2]; /* by the server, by the client */
static struct rpc_link *last_link;
static struct rpc_call *kept;
static enum { ACCEPT, REFUSE, KEEP } what;
static bool cancelled;

static uint8_t
byte_at(size_t i)
{
    return (uint8_t)(i * 31 + i / 251);
}

static void
write_some(struct end *e)
{
    while (e->wrote < e->to_write && e->st && stream_queued(e->st) < STREAM_LOW_WATER) {
        struct buf b = BUF_INIT(SIZE_MAX);
        for (size_t i = 0; i < 10000 && e->wrote < e->to_write; i++)
            buf_put_u8(&b, byte_at(e->wrote++));
        stream_write(e->st, &b, 1);
    }
}

static void
on_data(void *arg, const uint8_t *p, size_t n)
{
    struct end *e = arg;
    struct buf b = BUF_INIT(SIZE_MAX);

    for (size_t i = 0; i < n; i++)
        if (p[i] == byte_at(e->got + i))
            e->sum++;
    e->got += n;
    buf_put(&b, p, n);
    if (e->echo)
        stream_write(e->st, &b, 1);
    if (e->echo && stream_queued(e->st) >= STREAM_LOW_WATER)
        stream_read(e->st, false);
    buf_done(&b);
}

static void
on_drain(void *arg)
{
    struct end *e = arg;
    if (e->echo)
        stream_read(e->st, true);
    write_some(e);
}

static void
on_eof(void *arg)
{
    ((struct end *)arg)->eof = true;
}

static void
on_close(void *arg, int code)
{
    struct end *e = arg;
    e->st = NULL;
    e->closed = true;
    e->code = code;
}

static const struct stream_ops end_ops = {
    .on_data = on_data, .on_eof = on_eof, .on_drain = on_drain, .on_close = on_close};

static void
on_cancel(void *arg)
{
    cancelled = true;
    rpc_failf(arg, -ERR_CANCELED, "gone");
}

static void
serve_http(void *arg, struct rpc_call *call, const void *req)
{
    struct end *e = arg;
    struct empty resp = {0};
    (void)req;
    last_link = rpc_call_link(call);
    if (what == REFUSE) {
        rpc_failf(call, -ERR_NOT_FOUND, "No path to node");
    } else if (what == KEEP) {
        kept = call;
        rpc_call_on_cancel(call, on_cancel, call);
    } else {
        e->st = rpc_call_stream(call, "peer");
        ck_assert_str_eq(stream_peer(e->st), "peer");
        stream_accept(e->st, &end_ops, e);
        rpc_reply(call, &resp);
    }
}

static void
serve_leader(void *arg, struct rpc_call *call, const void *req)
{
    struct status_leader_response resp = {.leader = arg == &accepted[0] ? "server" : "client"};
    (void)req;
    last_link = rpc_call_link(call);
    rpc_reply(call, &resp);
}

static const struct rpc_service services[] = {{RPC_CLIENT_HTTP, serve_http},
                                              {RPC_STATUS_LEADER, serve_leader}};

static void
setup(void)
{
    loop = loop_new();
    memset(accepted, 0, sizeof(accepted));
}

static void
start(bool local)
{
    struct err e = ERR_INIT;
    char addr[64];
    const char *v[] = {addr};

    if (local) {
        client = rpc_local(loop, services, ARRAY_LEN(services), &accepted[0]);
    } else {
        server = rpc_listen(loop, &(struct addr){.host = "127.0.0.1"}, services, ARRAY_LEN(services),
                            &accepted[0], &e);
        rpc_server_secure(server, TEST_FILTER, true);
        ck_assert_msg(server != NULL, "%s", e.text);
        snprintf(addr, sizeof(addr), "127.0.0.1:%u", rpc_server_port(server));
        client = rpc_dial(&(struct dialer){.loop = loop, .filter = TEST_FILTER},
                          &(struct str_list){v, 1}, &e);
    }
    rpc_serve(client, services, ARRAY_LEN(services), &accepted[1]);
}

static void
teardown(void)
{
    rpc_client_close(client);
    rpc_server_close(server);
    loop_free(loop); /* aborts when a stream or timer is left */
}

static void
turn(void)
{
    bool never = false;
    loop_run_until(loop, &never, 1);
}

static void
on_opened(void *arg, const struct err *e, const void *resp)
{
    struct opened *o = arg;
    ck_assert(!o->done && (e != NULL || resp != NULL));
    o->done = true;
    o->code = e ? e->code : 0;
    snprintf(o->text, sizeof(o->text), "%s", e ? e->text : "");
}

static void
open_on(struct rpc_link *l, struct end *e, struct opened *o)
{
    struct client_http_request req = {.node_id = "n"};
    *e = (struct end){0};
    *o = (struct opened){0};
    e->st = rpc_link_open(l, &(struct rpc_request){RPC_CLIENT_HTTP, &req, NULL, 0}, on_opened, o);
    stream_accept(e->st, &end_ops, e);
}

static void
close_all(struct end *a)
{
    struct end *all[] = {a, &accepted[0], &accepted[1]};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->st)
            stream_close(all[i]->st);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        while (all[i]->st)
            turn();
}

struct leader {
    bool done;
    int code;
    char name[16];
};

static void
got_leader(void *arg, const struct err *e, const void *resp)
{
    struct leader *l = arg;
    const struct status_leader_response *r = resp;
    l->done = true;
    l->code = e ? e->code : 0;
    snprintf(l->name, sizeof(l->name), "%s", e ? "" : r->leader);
}

static const char *
leader_of(struct rpc_link *l)
{
    static struct leader got;
    struct empty req = {0};
    got = (struct leader){0};
    rpc_link_send(l, &(struct rpc_request){RPC_STATUS_LEADER, &req, NULL, 0}, got_leader, &got);
    ck_assert(loop_run_until(loop, &got.done, 10000));
    ck_assert_int_eq(got.code, 0);
    return got.name;
}

START_TEST(bytes_go_both_ways_and_end)
{
    struct end a;
    struct opened o;
    start(_i);
    accepted[0].echo = true;
    open_on(rpc_client_link(client), &a, &o);
    a.to_write = MANY;
    write_some(&a); /* before anything was answered */
    while (a.got < MANY)
        turn();
    ck_assert(o.done && o.code == 0);
    ck_assert_uint_eq(a.sum, MANY);
    stream_finish(accepted[0].st, 0);
    ck_assert(loop_run_until(loop, &a.eof, 10000));
    ck_assert(accepted[0].closed && accepted[0].code == 0 && !a.closed);
    struct buf late = BUF_INIT(16);
    buf_puts(&late, "late"); /* to nobody: dropped */
    stream_write(a.st, &late, 1);
    close_all(&a);
    ck_assert_int_eq(a.code, 0);
}
END_TEST

START_TEST(both_sides_call_and_open_at_once)
{
    struct end a, b;
    struct opened oa, ob;
    start(_i);
    ck_assert_str_eq(leader_of(rpc_client_link(client)), "server");
    struct rpc_link *back = last_link;
    ck_assert_str_eq(leader_of(back), "client");
    /* the same ids on both sides */
    open_on(rpc_client_link(client), &a, &oa);
    open_on(back, &b, &ob);
    a.to_write = accepted[0].to_write = MANY;
    b.to_write = accepted[1].to_write = MANY / 2;
    write_some(&a);
    write_some(&b);
    while (!accepted[0].st || !accepted[1].st)
        turn();
    write_some(&accepted[0]);
    write_some(&accepted[1]);
    while (a.got < MANY || b.got < MANY / 2 || accepted[0].got < MANY || accepted[1].got < MANY / 2)
        turn();
    ck_assert_uint_eq(a.sum + accepted[0].sum, 2 * MANY);
    ck_assert_uint_eq(b.sum + accepted[1].sum, MANY);
    stream_close(b.st);
    close_all(&a);
    while (b.st)
        turn();
}
END_TEST

/* It costs a window; other streams and calls of the connection go on. */
START_TEST(a_reader_that_stands_still_blocks_nobody)
{
    struct end slow, a;
    struct opened os, oa;
    start(_i);
    open_on(rpc_client_link(client), &slow, &os);
    ck_assert(loop_run_until(loop, &os.done, 10000));
    struct stream *still = accepted[0].st;
    struct end stuck = accepted[0];
    stream_accept(still, &end_ops, &stuck);
    stream_read(still, false);
    slow.to_write = MANY;
    write_some(&slow);
    for (int i = 0; i < 100; i++)
        turn();
    ck_assert_uint_eq(stuck.got, 0);
    ck_assert_uint_eq(slow.wrote - stream_queued(slow.st), RPC_STREAM_WINDOW);
    ck_assert_uint_lt(stream_queued(slow.st), STREAM_LOW_WATER + 10000);
    accepted[0] = (struct end){.echo = true};
    open_on(rpc_client_link(client), &a, &oa);
    a.to_write = MANY;
    write_some(&a);
    while (a.got < MANY) {
        turn();
        ck_assert_str_eq(leader_of(rpc_client_link(client)), "server");
    }
    ck_assert_uint_eq(stuck.got, 0);
    stream_read(still, true);
    while (stuck.got < MANY)
        turn();
    ck_assert_uint_eq(stuck.sum, MANY);
    stream_close(slow.st);
    close_all(&a);
    while (slow.st || stuck.st)
        turn();
}
END_TEST

/* Calls go before what waits of streams, and streams take turns. */
START_TEST(a_call_goes_before_what_streams_have_to_send)
{
    struct end a;
    struct opened o;
    start(_i);
    open_on(rpc_client_link(client), &a, &o);
    ck_assert(loop_run_until(loop, &o.done, 10000));
    a.to_write = 8 * MANY;
    write_some(&a);
    ck_assert_str_eq(leader_of(rpc_client_link(client)), "server");
    ck_assert_uint_lt(accepted[0].got, MANY);
    close_all(&a);
}
END_TEST

START_TEST(a_refused_stream_says_why)
{
    struct end a;
    struct opened o;
    what = REFUSE;
    start(_i);
    open_on(rpc_client_link(client), &a, &o);
    a.to_write = 10;
    write_some(&a);
    ck_assert(loop_run_until(loop, &a.closed, 10000));
    ck_assert(o.done);
    ck_assert_int_eq(o.code, -ERR_NOT_FOUND);
    ck_assert_str_eq(o.text, "No path to node");
    ck_assert_int_eq(a.code, -ERR_NOT_FOUND);
}
END_TEST

/* Its owner ends it before there was an answer: nothing more is told, there or here. */
START_TEST(a_stream_that_is_closed_early_cancels_its_call)
{
    struct end a;
    struct opened o;
    what = KEEP;
    start(_i);
    open_on(rpc_client_link(client), &a, &o);
    a.to_write = MANY;
    write_some(&a);
    while (!kept)
        turn();
    for (int i = 0; i < 20; i++)
        turn();
    stream_close(a.st);
    ck_assert(loop_run_until(loop, &cancelled, 10000));
    while (a.st)
        turn();
    ck_assert(!o.done);
}
END_TEST

START_TEST(each_side_sees_the_end_of_the_other)
{
    struct end a;
    struct opened o;
    start(_i);
    open_on(rpc_client_link(client), &a, &o);
    ck_assert(loop_run_until(loop, &o.done, 10000));
    stream_close(a.st);
    ck_assert(loop_run_until(loop, &accepted[0].closed, 10000));
    ck_assert_int_eq(accepted[0].code, -ERR_CANCELED);
    while (a.st)
        turn();
    /* in the middle: what was written did not go out */
    accepted[0] = (struct end){0};
    open_on(rpc_client_link(client), &a, &o);
    ck_assert(loop_run_until(loop, &o.done, 10000));
    stream_read(a.st, false);
    accepted[0].to_write = MANY;
    write_some(&accepted[0]);
    for (int i = 0; i < 100; i++)
        turn();
    stream_close(accepted[0].st);
    ck_assert(loop_run_until(loop, &a.closed, 10000));
    ck_assert_int_eq(a.code, -ERR_CLOSED);
    ck_assert(!a.eof);
}
END_TEST

START_TEST(a_connection_that_breaks_ends_its_streams)
{
    struct end a, b;
    struct opened oa, ob;
    start(_i);
    open_on(rpc_client_link(client), &a, &oa);
    ck_assert(loop_run_until(loop, &oa.done, 10000));
    what = KEEP;
    open_on(rpc_client_link(client), &b, &ob);
    while (!kept)
        turn();
    a.to_write = b.to_write = MANY;
    write_some(&a);
    write_some(&b);
    if (_i) {
        rpc_client_close(TAKE(client));
    } else {
        rpc_server_close(TAKE(server));
    }
    while (a.st || b.st || accepted[0].st)
        turn();
    ck_assert(cancelled && ob.done);
    ck_assert_int_eq(ob.code, _i ? -ERR_CANCELED : -ERR_CLOSED);
    ck_assert_int_eq(a.code, _i ? -ERR_CANCELED : -ERR_CLOSED);
    ck_assert_int_lt(accepted[0].code, 0);
}
END_TEST

START_TEST(there_are_so_many_and_no_more)
{
    static struct end e[RPC_STREAMS_MAX + 1];
    static struct opened o[RPC_STREAMS_MAX + 1];
    start(0);
    what = KEEP;
    for (int i = 0; i <= RPC_STREAMS_MAX; i++)
        open_on(rpc_client_link(client), &e[i], &o[i]);
    ck_assert(loop_run_until(loop, &e[RPC_STREAMS_MAX].closed, 10000));
    ck_assert_int_eq(o[RPC_STREAMS_MAX].code, -ERR_BUSY);
    ck_assert_str_eq(leader_of(rpc_client_link(client)), "server");
    for (int i = 0; i < RPC_STREAMS_MAX; i++) {
        ck_assert(!o[i].done);
        stream_close(e[i].st);
        while (e[i].st)
            turn();
    }
}
END_TEST

/* The bytes of one connection go to the other and back, at the pace of the slower. */
static bool spliced_over;

static void
over(void *arg)
{
    *(bool *)arg = true;
}

START_TEST(a_splice_is_one_stream)
{
    struct end a;
    struct opened oa, ob;
    struct client_http_request req = {.node_id = "n"};
    start(_i);
    open_on(rpc_client_link(client), &a, &oa);
    ck_assert(loop_run_until(loop, &oa.done, 10000));
    struct stream *in = accepted[0].st;
    ob = (struct opened){0};
    accepted[1].echo = true;
    struct stream *out = rpc_link_open(
        last_link, &(struct rpc_request){RPC_CLIENT_HTTP, &req, NULL, 0}, on_opened, &ob);
    splice(in, out, over, &spliced_over);
    a.to_write = MANY;
    write_some(&a);
    stream_read(a.st, false);
    for (int i = 0; i < 200; i++)
        turn();
    ck_assert_uint_lt(a.wrote, MANY);
    stream_read(a.st, true);
    while (a.got < MANY)
        turn();
    ck_assert_uint_eq(a.sum, MANY);
    stream_finish(accepted[1].st, 0);
    ck_assert(loop_run_until(loop, &a.eof, 10000));
    stream_close(a.st);
    ck_assert(loop_run_until(loop, &spliced_over, 10000));
    accepted[0].st = NULL;
    while (a.st || accepted[1].st)
        turn();
}
END_TEST

static void
put_frame(struct buf *b, enum rpc_kind kind, uint64_t id, const void *body, size_t n)
{
    struct rpc_head h = {
        .kind = kind, .version = RPC_VERSION, .method = RPC_CLIENT_HTTP, .id = id};
    size_t at = rpc_frame_begin(b, &h);
    buf_put(b, body, n);
    rpc_frame_end(b, at);
}

/* After a call that is accepted: is the connection closed upon the frames? */
static bool
closes(const struct buf *frames)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(rpc_server_port(server))};
    struct buf b = BUF_INIT(1 << 20);
    char back[4096];
    bool closed = false;

    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    accepted[0] = (struct end){0};
    buf_put_u8(&b, RPC_PROTOCOL_BYTE);
    put_frame(&b, RPC_KIND_CALL, 1, "\0\0\x80", 3);
    buf_put(&b, frames->data, frames->len);
    put_frame(&b, RPC_KIND_CALL, 100, "\0\0\xc1", 3); /* an answer says that all was read */
    for (size_t at = 0; at < b.len;) {
        ssize_t n = send(fd, b.data + at, b.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN)
            break;
        at += n > 0 ? (size_t)n : 0;
        turn();
    }
    buf_done(&b);
    size_t n = 0;
    for (ssize_t r = -1; !closed; r = recv(fd, back + n, sizeof(back) - n, MSG_DONTWAIT)) {
        n += r > 0 ? (size_t)r : 0;
        closed = r == 0 || (r < 0 && errno == ECONNRESET);
        if (memmem(back, n, "rpc Client.Http", 15))
            break;
        errno = 0;
        turn();
    }
    close(fd);
    fd = -1;
    while (accepted[0].st)
        turn();
    return closed;
}

START_TEST(hostile_frames_close_the_connection)
{
    static uint8_t bytes[RPC_STREAM_WINDOW + 1];
    static const struct {
        bool closes;
        enum rpc_kind kind;
        uint64_t id;
        size_t n;
        uint8_t body[4];
    } cases[] = {
        {false, RPC_KIND_DATA, 1, 4, {1}},
        {true, RPC_KIND_DATA, 1, 0, {0}},            /* nothing */
        {true, RPC_KIND_DATA, 7, 4, {1}},            /* no such call was made */
        {true, RPC_KIND_BACK_DATA, 1, 4, {1}},       /* nor that one, from here */
        {true, RPC_KIND_BACK_END, 1, 0, {0}},
        {true, RPC_KIND_REPLY, 1, 0, {0}},
        {true, RPC_KIND_GRANT, 1, 4, {0, 0, 0, 1}},  /* for what was never sent */
        {true, RPC_KIND_GRANT, 1, 4, {255, 255, 255, 255}},
        {true, RPC_KIND_GRANT, 1, 4, {0}},
        {true, RPC_KIND_GRANT, 1, 3, {0, 0, 1}},
        {true, RPC_KIND_CALL, 1, 3, {0, 0, 0x80}},   /* an id twice, though answered */
        {false, RPC_KIND_CANCEL, 50, 0, {0}},
        {false, RPC_KIND_CANCEL, 1, 0, {0}},
    };
    start(0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_buf struct buf b = BUF_INIT(256);
        put_frame(&b, cases[i].kind, cases[i].id, cases[i].body, cases[i].n);
        ck_assert_msg(closes(&b) == cases[i].closes, "case %zu", i);
    }
    auto_buf struct buf old = BUF_INIT(256);
    put_frame(&old, RPC_KIND_DATA, 1, "x", 1);
    old.data[5] = RPC_VERSION - 1;
    ck_assert(closes(&old));
    auto_buf struct buf much = BUF_INIT(1 << 20);
    put_frame(&much, RPC_KIND_DATA, 1, bytes, sizeof(bytes)); /* in one frame as in many */
    what = KEEP; /* nobody reads */
    ck_assert(closes(&much));
    ck_assert(cancelled);
    /* a frame for a stream that has ended is not looked at */
    auto_buf struct buf after = BUF_INIT(1 << 20);
    put_frame(&after, RPC_KIND_CANCEL, 1, NULL, 0);
    put_frame(&after, RPC_KIND_DATA, 1, bytes, sizeof(bytes));
    ck_assert(!closes(&after));
}
END_TEST

int
main(void)
{
    const TTest *const each[] = {bytes_go_both_ways_and_end,
                                        both_sides_call_and_open_at_once,
                                        a_reader_that_stands_still_blocks_nobody,
                                        a_call_goes_before_what_streams_have_to_send,
                                        a_refused_stream_says_why,
                                        a_stream_that_is_closed_early_cancels_its_call,
                                        each_side_sees_the_end_of_the_other,
                                        a_connection_that_breaks_ends_its_streams,
                                        a_splice_is_one_stream};
    Suite *s = suite_create("streams");
    TCase *tc = tcase_create("streams");
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(each); i++)
        tcase_add_loop_test(tc, each[i], 0, 2);
    tcase_add_test(tc, there_are_so_many_and_no_more);
    tcase_add_test(tc, hostile_frames_close_the_connection);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_set_tap(sr, "-");
    srunner_run_all(sr, CK_SILENT);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? 1 : 0;
}
