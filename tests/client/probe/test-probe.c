/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes of friendly and of hostile services: what counts as an answer, and that each is over in
 * its time with a bounded output.
 */
#include <string.h>

#include "client/probe/grpc.h"
#include "client/probe/probe.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/stream.h"
#include "tests/lib/test.h"

enum { PROBE_MS = 20000 }; /* the time of those that answer */

struct fixture {
    struct loop *loop;
    struct http_server *http;
    struct prober *pr;
    void *ctx;
    int port;
    unsigned requests;
    char *seen; /* the last request: method, path, Host, X-Test, body */
    /* the answer */
    bool done, ok;
    int status;
    char *output;
};

static void
flood(void *user)
{
    struct http_req *r = user;
    static char block[64 << 10];
    memset(block, 'x', sizeof(block));
    if (http_closed(r))
        http_stream_end(r);
    else
        http_stream_write(r, block, sizeof(block));
}

static void
flood_closed(void *user)
{
    http_stream_end(user);
}

static void
answer(struct fixture *f, struct http_req *r, int status, const char *location, const char *body)
{
    (void)f;
    if (location)
        http_header_add(r, "Location", location);
    http_reply(r, status, "text/plain", body, strlen(body));
}

static void
handle(void *arg, struct http_req *r)
{
    struct fixture *f = arg;
    auto_mem void *tmp = mem_ctx("t");
    f->requests++;
    mem_free(f->seen);
    f->seen = mem_printf(f->ctx, "%s %s %s %s %s", http_method_name(r->method), r->target,
                         str_or(http_header(r, "host"), "-"), str_or(http_header(r, "x-test"), "-"),
                         r->body);
    int status = 0;
    if (sscanf(r->path, "/status/%d", &status) == 1)
        answer(f, r, status, NULL, "hello \x1b[31m\xff");
    else if (str_eq(r->path, "/once"))
        answer(f, r, 302, "status/200?a=1#top", "");
    else if (str_eq(r->path, "/full"))
        answer(f, r, 307, mem_printf(tmp, "http://127.0.0.1:%d/status/204", f->port), "");
    else if (str_eq(r->path, "/loop"))
        answer(f, r, 301, "/loop", "");
    else if (str_eq(r->path, "/away"))
        answer(f, r, 302, "http://169.254.169.254/latest/meta-data/", "secret");
    else if (str_eq(r->path, "/other"))
        answer(f, r, 302, mem_printf(tmp, "http://127.0.0.1:%d/", f->port + 1), "");
    else if (str_eq(r->path, "/file"))
        answer(f, r, 302, "file:///etc/passwd", "");
    else if (str_eq(r->path, "/flood") || str_eq(r->path, "/flood-fails")) {
        r->user = r;
        r->on_close = flood_closed;
        http_stream_start(r, str_eq(r->path, "/flood") ? 201 : 500, "text/plain", flood);
    } else if (str_eq(r->path, "/hang")) {
        r->user = r;
        r->on_close = flood_closed;
        http_stream_start(r, 200, "text/plain", NULL);
    } else {
        answer(f, r, 404, NULL, "nothing here");
    }
}

static void
fixture_start(struct fixture *f)
{
    struct err e = ERR_INIT;
    *f = (struct fixture){.loop = loop_new(), .ctx = mem_ctx("probe")};
    f->http = http_server_new(f->loop, &(struct http_server_config){.handler = handle, .arg = f});
    ck_assert_msg(http_server_listen(f->http, "127.0.0.1", 0, &e) == 0, "%s", e.text);
    f->port = http_server_port(f->http);
    f->pr = prober_new(f->loop, (const uint16_t[PROBE_PORTS_MAX]){0});
}

static void
fixture_stop(struct fixture *f)
{
    prober_free(f->pr);
    http_server_close(f->http);
    loop_free(f->loop);
    talloc_free(f->ctx);
}

static void
on_probed(void *arg, const struct probe_answer *a)
{
    struct fixture *f = arg;
    ck_assert(!f->done);
    f->done = true;
    f->ok = a->ok;
    f->status = a->status;
    mem_free(f->output);
    f->output = mem_strdup(f->ctx, a->output);
}

static void
fixture_probe(struct fixture *f, const struct probe_ask *ask)
{
    struct probe_ask a = *ask;
    a.address = a.address ? a.address : "127.0.0.1";
    a.port = a.port ? a.port : f->port;
    a.timeout_ms = a.timeout_ms ? a.timeout_ms : PROBE_MS;
    f->done = false;
    ck_assert_ptr_nonnull(probe_start(f->pr, &a, on_probed, f));
    ck_assert(!f->done);
    ck_assert(loop_run_until(f->loop, &f->done, 2 * PROBE_MS));
}

START_TEST(answers_by_their_status)
{
    static const struct {
        const char *path;
        bool ok;
        int status;
        const char *output;
    } rows[] = {
        {"/status/200", true, 200, "nomad: http ok"},
        {"status/200", true, 200, "nomad: http ok"},
        {"/status/201", true, 201, "hello "},
        {"/status/399", true, 399, "hello "},
        {"/status/400", false, 400, "hello "},
        {"/status/503", false, 503, "hello "},
        {"/none", false, 404, "nothing here"},
        {"/once", true, 200, "nomad: http ok"},
        {"/full", true, 204, ""},
        {"/loop", false, 0, "nomad: stopped after 10 redirects"},
        {"/away", true, 302, "nomad: redirect to \"http://169.254.169.254/latest/meta-data/\" is"},
        {"/other", true, 302, "is not followed"},
        {"/file", true, 302, "nomad: redirect to \"file:///etc/passwd\" is not followed"},
        {"/with blank", false, 0, "nomad: its path has blanks or control characters"},
        {"/a\r\nX-Evil: 1", false, 0, "nomad: its path has blanks or control characters"},
    };
    struct fixture f;
    fixture_start(&f);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        fixture_probe(&f, &(struct probe_ask){.kind = PROBE_HTTP, .path = rows[i].path});
        ck_assert_msg(f.ok == rows[i].ok && f.status == rows[i].status &&
                          strstr(f.output, rows[i].output) != NULL,
                      "%s: %d %d %s", rows[i].path, f.ok, f.status, f.output);
        ck_assert(utf8_valid(f.output, strlen(f.output)) && !strchr(f.output, '\x1b'));
    }
    fixture_stop(&f);
}
END_TEST

START_TEST(requests_are_as_the_check_says)
{
    static const struct http_pair headers[] = {
        {"Host", "www.example"}, {"X-Test", "yes"}, {"Content-Length", "9"}};
    static const struct http_pair evil[] = {{"X-Test", "a\r\nX-Evil: 1"}};
    struct fixture f;
    fixture_start(&f);
    struct probe_ask a = {.kind = PROBE_HTTP,
                          .method = "PUT",
                          .path = "/status/200?q=%20x",
                          .body = "ping",
                          .headers = headers,
                          .n_headers = ARRAY_LEN(headers)};
    fixture_probe(&f, &a);
    ck_assert_msg(f.ok, "%s", f.output);
    ck_assert_str_eq(f.seen, "PUT /status/200?q=%20x www.example yes ping");
    a.path = "/once"; /* a redirect of this kind makes it a GET */
    fixture_probe(&f, &a);
    ck_assert_str_eq(f.seen, "GET /status/200?a=1 www.example yes ");
    a.headers = evil;
    a.n_headers = 1;
    unsigned requests = f.requests;
    fixture_probe(&f, &a);
    ck_assert(!f.ok && f.requests == requests);
    ck_assert_str_eq(f.output, "nomad: one of its headers has control characters");
    fixture_stop(&f);
}
END_TEST

START_TEST(hostile_answers_are_bounded)
{
    struct fixture f;
    fixture_start(&f);
    fixture_probe(&f, &(struct probe_ask){.kind = PROBE_HTTP, .path = "/flood"});
    ck_assert(f.ok && f.status == 201);
    ck_assert_uint_eq(strlen(f.output), PROBE_OUTPUT_MAX);
    fixture_probe(&f, &(struct probe_ask){.kind = PROBE_HTTP, .path = "/flood-fails"});
    ck_assert(!f.ok && f.status == 500);
    ck_assert_uint_eq(strlen(f.output), PROBE_OUTPUT_MAX);
    fixture_probe(&f, &(struct probe_ask){.kind = PROBE_HTTP, .path = "/hang", .timeout_ms = 50});
    ck_assert(!f.ok);
    ck_assert_str_eq(f.output, "nomad: no answer within 50ms");
    fixture_stop(&f);
}
END_TEST

START_TEST(connections_of_tcp)
{
    struct fixture f;
    fixture_start(&f);
    fixture_probe(&f, &(struct probe_ask){0});
    ck_assert(f.ok && f.status == 0);
    ck_assert_str_eq(f.output, "nomad: tcp ok");
    fixture_probe(&f, &(struct probe_ask){.address = "localhost"});
    ck_assert_msg(f.ok, "%s", f.output);
    fixture_probe(&f, &(struct probe_ask){.port = 1});
    ck_assert(!f.ok && str_prefix(f.output, "nomad: 127.0.0.1:1: "));
    fixture_probe(&f, &(struct probe_ask){.port = 70000});
    ck_assert_str_eq(f.output, "nomad: there is no port to look at");
    fixture_stop(&f);
}
END_TEST

START_TEST(metadata_services_are_not_looked_at)
{
    static const char *const refused[] = {"169.254.169.254", "::ffff:169.254.169.254", "fe80::1",
                                          "fd00:ec2::254"};
    struct fixture f;
    fixture_start(&f);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        fixture_probe(&f, &(struct probe_ask){.address = refused[i], .port = 80, .kind = PROBE_HTTP});
        ck_assert(!f.ok);
        ck_assert_str_eq(f.output, "nomad: checks of addresses of links are refused");
    }
    /* in other words, which the resolver understands */
    fixture_probe(&f, &(struct probe_ask){.address = "0xa9fea9fe", .port = 80, .timeout_ms = 500});
    ck_assert(!f.ok);
    fixture_stop(&f);
}
END_TEST

/* --- gRPC --- */

#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define HEADERS(flags) "\0\0\1\1" flags "\0\0\0\1\x88"
#define DATA(n, flags) "\0\0" n "\0" flags "\0\0\0\1"
#define ROW(ok, bytes, text) {ok, bytes, sizeof(bytes) - 1, text}

static const struct {
    bool ok;
    const char *bytes;
    size_t n;
    const char *text;
} grpc_rows[] = {
    ROW(true, SETTINGS HEADERS("\4") DATA("\7", "\0") "\0\0\0\0\2\x08\1", "grpc ok"),
    /* padded; in two frames; with a field of later days */
    ROW(true, SETTINGS DATA("\12", "\x8") "\2\0\0\0\0\2\x08\1xx", "grpc ok"),
    ROW(true, SETTINGS DATA("\6", "\0") "\0\0\0\0\2\x08" DATA("\1", "\0") "\1", "grpc ok"),
    ROW(true, SETTINGS DATA("\12", "\0") "\0\0\0\0\5\x12\1z\x08\1", "grpc ok"),
    ROW(false, SETTINGS DATA("\7", "\0") "\0\0\0\0\2\x08\2", "status NOT_SERVING"),
    ROW(false, SETTINGS DATA("\7", "\0") "\0\0\0\0\2\x08\3", "status SERVICE_UNKNOWN"),
    ROW(false, SETTINGS DATA("\7", "\0") "\0\0\0\0\2\x08\x09", "status 9"),
    ROW(false, SETTINGS DATA("\5", "\0") "\0\0\0\0\0", "status UNKNOWN"),
    ROW(false, SETTINGS DATA("\7", "\0") "\1\0\0\0\2\x08\1", "is compressed"),
    ROW(false, SETTINGS DATA("\5", "\0") "\0\0\1\0\0", "over 1024 bytes"),
    ROW(false, SETTINGS DATA("\7", "\0") "\0\0\0\0\2\x08\xff", "no HealthCheckResponse"),
    ROW(false, SETTINGS DATA("\6", "\0") "\0\0\0\0\1\x0f", "no HealthCheckResponse"),
    ROW(false, SETTINGS DATA("\11", "\0") "\0\0\0\0\4\x12\xff\xff\x7f", "no HealthCheckResponse"),
    ROW(false, SETTINGS DATA("\1", "\x8") "\1", "padded over its end"),
    ROW(false, SETTINGS DATA("\0", "\x8"), "padded over its end"),
    ROW(false, SETTINGS HEADERS("\5"), "the call was refused"),
    ROW(false, SETTINGS DATA("\0", "\1"), "the call was refused"),
    ROW(false, SETTINGS "\0\0\4\3\0\0\0\0\1\0\0\0\7", "error 7 of HTTP/2"),
    ROW(false, SETTINGS "\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\13", "error 11 of HTTP/2"),
    ROW(false, SETTINGS "\0\0\4\5\4\0\0\0\1\0\0\0\2", "it pushes"),
    ROW(false, SETTINGS "\0\0\1\1\4\0\0\0\3x", "a stream of its own"),
    ROW(false, SETTINGS "\1\0\0\0\0\0\0\0\1", "a frame is over"),
    ROW(false, "\0\0\5\4\0\0\0\0\0xxxxx", "settings are malformed"),
    ROW(false, "HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak HTTP/2"),
    ROW(false, "SSH-2.0-OpenSSH_9.2p1\r\n", "does not speak HTTP/2"),
};

struct rude { /* a server that says the same to everyone, once */
    const char *bytes;
    size_t n;
    struct rude_conn *conn; /* the last one; NULL: it has ended */
};

struct rude_conn {
    struct rude *of;
    struct stream *st;
    bool said;
};

static void
rude_data(void *arg, const uint8_t *p, size_t n)
{
    struct rude_conn *c = arg;
    struct buf b = BUF_INIT(1 << 20);
    (void)p;
    (void)n;
    if (c->said)
        return;
    c->said = true;
    buf_put(&b, c->of->bytes, c->of->n);
    stream_write(c->st, &b, 1);
}

static void
rude_close(void *arg, int code)
{
    struct rude_conn *c = arg;
    (void)code;
    if (c->of->conn == c)
        c->of->conn = NULL;
    mem_free(c);
}

static void
rude_accept(void *arg, struct stream *st)
{
    static const struct stream_ops ops = {.on_data = rude_data, .on_close = rude_close};
    struct rude_conn *c = mem_new(NULL, struct rude_conn);
    *c = (struct rude_conn){arg, st, false};
    c->of->conn = c;
    stream_accept(st, &ops, c);
    stream_read(st, true);
}

static void
rude_ask(struct fixture *f, struct rude *r, const struct listener *l, const char *bytes, size_t n)
{
    r->bytes = bytes;
    r->n = n;
    fixture_probe(f, &(struct probe_ask){.kind = PROBE_GRPC,
                                         .port = listener_port(l),
                                         .timeout_ms = n > 9 ? PROBE_MS : 50});
}

START_TEST(answers_of_grpc)
{
    struct fixture f;
    struct err e = ERR_INIT;
    struct rude r = {0};
    struct addr a = {.host = "127.0.0.1"};
    fixture_start(&f);
    const struct listener_config cfg = {
        .conns_max = 8, .per_peer = 8, .on_accept = rude_accept, .arg = &r};
    struct listener *l = listener_new(f.loop, &a, &cfg, &e);
    ck_assert_msg(l != NULL, "%s", e.text);
    for (size_t i = 0; i < ARRAY_LEN(grpc_rows); i++) {
        rude_ask(&f, &r, l, grpc_rows[i].bytes, grpc_rows[i].n);
        ck_assert_msg(f.ok == grpc_rows[i].ok && strstr(f.output, grpc_rows[i].text) != NULL &&
                          str_prefix(f.output, "nomad: grpc"),
                      "row %zu: %d %s", i, f.ok, f.output);
    }
    enum { GRANTS = 9000, GRANT = 13 };
    static const char grant[GRANT] = "\0\0\4\x8\0\0\0\0\0\0\0\0\1";
    char *flood = mem_array(f.ctx, char, 9 + GRANTS * GRANT);
    memcpy(flood, SETTINGS, 9);
    for (size_t i = 0; i < GRANTS; i++)
        memcpy(flood + 9 + i * GRANT, grant, GRANT);
    rude_ask(&f, &r, l, flood, 9 + GRANTS * GRANT);
    ck_assert_msg(!f.ok && strstr(f.output, "it sent over 65536 bytes"), "%s", f.output);
    rude_ask(&f, &r, l, SETTINGS, 9); /* and nothing more */
    ck_assert_str_eq(f.output, "nomad: no answer within 50ms");
    if (r.conn)
        stream_close(r.conn->st);
    listener_close(l);
    fixture_stop(&f);
}
END_TEST

/* Whatever the size of the pieces, and with answers to what must be answered. */
START_TEST(grpc_in_pieces)
{
    static const char bytes[] = SETTINGS "\0\0\10\6\0\0\0\0\0pingpong" HEADERS("\4")
        DATA("\7", "\0") "\0\0\0\0\2\x08\1";
    static const uint8_t want[] = "\0\0\0\4\1\0\0\0\0\0\0\10\6\1\0\0\0\0pingpong";
    for (size_t piece = 1; piece < sizeof(bytes); piece++) {
        struct grpc g = {0};
        auto_buf struct buf reply = BUF_INIT(1024);
        for (size_t at = 0; at < sizeof(bytes) - 1; at += piece) {
            size_t left = sizeof(bytes) - 1 - at;
            (void)grpc_take(&g, (const uint8_t *)bytes + at, left < piece ? left : piece, &reply);
        }
        ck_assert_int_eq(g.state, GRPC_SERVING);
        ck_assert_uint_eq(reply.len, sizeof(want) - 1);
        ck_assert_mem_eq(reply.data, want, reply.len);
    }
}
END_TEST

START_TEST(the_agent_itself_is_not_looked_at)
{
    struct fixture f;
    fixture_start(&f);
    prober_free(f.pr);
    f.pr = prober_new(f.loop, (const uint16_t[PROBE_PORTS_MAX]){0, (uint16_t)f.port, 0});
    static const char *const own[] = {"127.0.0.1", "127.1.2.3", "localhost", "0.0.0.0"};
    for (size_t i = 0; i < ARRAY_LEN(own); i++) {
        fixture_probe(&f, &(struct probe_ask){.kind = PROBE_HTTP, .address = own[i]});
        ck_assert_msg(!f.ok && str_prefix(f.output, "nomad: checks of the agent itself, on port"),
                      "%s: %s", own[i], f.output);
    }
    ck_assert_uint_eq(f.requests, 0);
    fixture_stop(&f);
}
END_TEST

START_TEST(a_probe_can_be_called_off_at_any_time)
{
    struct fixture f;
    fixture_start(&f);
    const struct probe_ask a = {.address = "127.0.0.1",
                                .port = f.port,
                                .timeout_ms = PROBE_MS,
                                .kind = PROBE_HTTP,
                                .path = "/hang"};
    bool never = false;
    for (int ms = 0; ms < 12; ms += 3) {
        struct probe *p = probe_start(f.pr, &a, on_probed, &f);
        if (ms > 0)
            loop_run_until(f.loop, &never, ms);
        probe_cancel(p);
    }
    loop_run_until(f.loop, &never, 5);
    ck_assert(!f.done);
    fixture_stop(&f);
}
END_TEST

TEST_SUITE("probe", answers_by_their_status, requests_are_as_the_check_says,
           hostile_answers_are_bounded, connections_of_tcp, metadata_services_are_not_looked_at,
           answers_of_grpc, grpc_in_pieces, the_agent_itself_is_not_looked_at,
           a_probe_can_be_called_off_at_any_time)
