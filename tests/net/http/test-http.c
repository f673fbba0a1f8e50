/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP server and client over real sockets: malformed input, pipelining, chunked bodies, slow and
 * vanishing clients, backpressure, compression, teardown. The server runs on the test's thread, raw
 * clients on another.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "net/http/http.h"
#include "net/http/gzip_int.h"
#include "tests/lib/filter.h"
#include "tests/lib/test.h"

static struct loop *loop;
static struct http_server *server;
static uint16_t port;

/* --- a handler that does what the path says --- */

static struct http_req *parked;
static bool parked_gone, stream_gone, seen;
static size_t streamed, most_queued;

enum { STREAM_TOTAL = 24 << 20 };

static void
on_gone(void *user)
{
    *(bool *)user = true;
}

static void
reply_later(void *arg)
{
    struct http_req *r = arg;
    http_reply(r, 200, "text/plain", r->path, strlen(r->path));
}

static void
pull(void *user)
{
    static char block[32768];
    struct http_req *r = *(struct http_req **)user;
    while (streamed < STREAM_TOTAL && http_stream_queued(r) < STREAM_LOW_WATER) {
        http_stream_write(r, block, sizeof(block));
        streamed += sizeof(block);
        if (http_stream_queued(r) > most_queued)
            most_queued = http_stream_queued(r);
    }
    if (streamed >= STREAM_TOTAL)
        http_stream_end(r);
}

static void
echo(struct http_req *r)
{
    struct buf b = BUF_INIT(1 << 20);
    buf_printf(&b, "%s %s n=%zu", http_method_name(r->method), r->path, r->body_len);
    for (size_t i = 0; i < r->n_query; i++)
        buf_printf(&b, " %s=%s", r->query[i].k, r->query[i].v);
    buf_puts(&b, "\n");
    buf_put(&b, r->body, r->body_len);
    http_reply_buf(r, 200, "text/plain", &b);
}

static void
handler(void *arg, struct http_req *r)
{
    (void)arg;
    seen = true;
    if (strncmp(r->path, "/later", 6) == 0) {
        timer_start(loop, 5, reply_later, r);
    } else if (strcmp(r->path, "/park") == 0) {
        parked = r;
        r->user = &parked_gone;
        r->on_close = on_gone;
    } else if (strcmp(r->path, "/stream") == 0) {
        parked = r;
        r->user = &parked;
        http_stream_start(r, 200, "application/octet-stream", pull);
    } else if (strcmp(r->path, "/endless") == 0) {
        parked = r;
        r->user = &stream_gone;
        r->on_close = on_gone;
        http_stream_start(r, 200, "text/plain", NULL);
        http_stream_write(r, "first\n", 6);
    } else if (strcmp(r->path, "/cut") == 0) {
        http_stream_start(r, 200, "text/plain", NULL);
        http_stream_write(r, "first\n", 6);
        http_stream_cut(r);
    } else if (strcmp(r->path, "/big") == 0) {
        struct buf b = BUF_INIT(1 << 20);
        for (int i = 0; i < 60000; i++)
            buf_puts(&b, "0123456789");
        http_reply_buf(r, 200, "text/plain", &b);
    } else {
        echo(r);
    }
}

static size_t
body_max(void *arg, enum http_method m, const char *path)
{
    (void)arg;
    (void)m;
    return strcmp(path, "/small") == 0 ? 10 : 1 << 20;
}

static void
setup(void)
{
    struct err e = ERR_INIT;
    static const struct http_pair extra[] = {{"X-Test", "yes"}};
    struct http_server_config cfg = {.filter = TEST_FILTER, .handler = handler,
                                     .body_max = body_max,
                                     .headers = extra,
                                     .n_headers = 1,
                                     .header_ms = 300,
                                     .body_idle_ms = 300};
    loop = loop_new();
    server = http_server_new(loop, &cfg);
    ck_assert_int_eq(http_server_listen(server, "127.0.0.1", 0, &e), 0);
    port = http_server_port(server);
    ck_assert_uint_ne(port, 0);
}

static void
teardown(void)
{
    http_server_close(server);
    loop_free(loop);
}

/* --- a raw client on another thread --- */

struct raw {
    const char *in;
    size_t in_len;
    size_t step;     /* bytes per send, 0: all at once */
    bool half_close; /* after sending */
    size_t read_max; /* stop reading after so many bytes and close; 0: until the end */
    char *out;
    size_t out_len, out_cap;
    bool done;
};

static int
dial(void)
{
    struct sockaddr_in sin = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}, {0}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){10, 0}, sizeof(struct timeval));
    if (connect(fd, (struct sockaddr *)&sin, sizeof(sin)) < 0)
        abort();
    return fd;
}

static void
raw_done(void *arg)
{
    ((struct raw *)arg)->done = true;
}

static void *
raw_thread(void *arg)
{
    struct raw *r = arg;
    int fd = dial();
    size_t at = 0;

    while (at < r->in_len) {
        size_t n = r->step && r->in_len - at > r->step ? r->step : r->in_len - at;
        ssize_t w = TEST_SEND(fd, r->in + at, n, MSG_NOSIGNAL);
        if (w <= 0)
            break;
        at += (size_t)w;
    }
    if (r->half_close)
        shutdown(fd, SHUT_WR);
    for (;;) {
        if (r->out_cap - r->out_len < 65536)
            r->out = realloc(r->out, (r->out_cap = r->out_cap * 2 + 131072) + 1);
        ssize_t n = TEST_RECV(fd, r->out + r->out_len, 65536, 0);
        if (n <= 0)
            break;
        r->out_len += (size_t)n;
        if (r->read_max && r->out_len >= r->read_max)
            break;
    }
    r->out[r->out_len] = 0;
    close(fd);
    loop_post(loop, raw_done, r);
    return NULL;
}

static void
exchange(struct raw *r)
{
    pthread_t t;
    r->done = false;
    ck_assert_int_eq(pthread_create(&t, NULL, raw_thread, r), 0);
    ck_assert(loop_run_until(loop, &r->done, 15000));
    pthread_join(t, NULL);
}

static void
turn(void)
{
    bool never = false;
    loop_run_until(loop, &never, 1);
}

static char *
ask(const char *in)
{
    struct raw r = {.in = in, .in_len = strlen(in)};
    exchange(&r);
    return r.out;
}

#define H "Host: x\r\n"
#define C "Connection: close\r\n"

START_TEST(answers_a_get)
{
    char *out = ask("GET /a%20b/c?x=1&y=%2F+z&flag HTTP/1.1\r\n" H C "\r\n");
    ck_assert_msg(strncmp(out, "HTTP/1.1 200 OK\r\n", 17) == 0, "%s", out);
    ck_assert_ptr_nonnull(strstr(out, "GET /a b/c n=0 x=1 y=/ z flag=\n"));
    ck_assert_ptr_nonnull(strstr(out, "X-Test: yes\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "Connection: close\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "Date: "));
    free(out);
}
END_TEST

static const struct {
    const char *in;
    int status;
} malformed[] = {
    {"GET / HTTP/1.1\n" H "\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: x\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: x\r\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: x\r\nA: \rb\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" H "A: b\r\n folded\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" H "A: b\r\n\tfolded\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" H "A\t: b\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" H H "\r\n", 400},
    {"GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: +0\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 3, 3\r\n\r\nabc", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Content-Length: 99999999\r\n\r\n", 413},
    {"POST /small HTTP/1.1\r\n" H "Content-Length: 11\r\n\r\n", 413},
    {"POST /small HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nb\r\n", 413},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, identity\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n", 501},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {"POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\nx\n", 400},
    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 413}, /* by its size */
    {"POST /small HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\na\r\n", 413},
    {"GET / HTTP/1.2\r\n" H "\r\n", 505},
    {"GET / HTTP/2.0\r\n" H "\r\n", 505},
    {"GET /\r\n\r\n", 400},
    {"GET / HTTP/x.y\r\n" H "\r\n", 400},
    {"get / HTTP/1.1\r\n" H "\r\n", 405},
    {"BREW / HTTP/1.1\r\n" H "\r\n", 405},
    {"GET / a HTTP/1.1\r\n" H "\r\n", 400},
    {"GET x HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /%00 HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /%zz HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /%ff%fe HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /?a=%1 HTTP/1.1\r\n" H "\r\n", 400},
    {"GET /#f HTTP/1.1\r\n" H "\r\n", 400},
    {"GET / HTTP/1.1\r\n" H ": empty\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" H "no colon\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" H "A: \x01\r\n\r\n", 400},
    {"GET / HTTP/1.1\r\n" H "A(b): c\r\n\r\n", 400},
    {"G@T / HTTP/1.1\r\n" H "\r\n", 400},
    {"\x16\x03\x01\x02\r\n\r\n", 400},
    {"CONNECT a:1 HTTP/1.1\r\n" H "\r\n", 400},
    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
    {"GET / HTTP/1.1\r\n" H "Expect: tea\r\n\r\n", 417},
};

START_TEST(refuses_malformed_input_with_a_status)
{
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        seen = false;
        char *out = ask(malformed[i].in);
        int status = 0;
        sscanf(out, "HTTP/1.1 %d ", &status);
        ck_assert_msg(status == malformed[i].status, "%s -> %s", malformed[i].in, out);
        ck_assert_msg(!seen, "%s reached the handler", malformed[i].in);
        ck_assert_ptr_nonnull(strstr(out, status == 413 ? "too large: at most 1" : "\r\n\r\n"));
        free(out);
    }
    while (http_server_conns(server) > 0)
        turn();
}
END_TEST

START_TEST(refuses_large_and_many_headers)
{
    struct buf b = BUF_INIT(1 << 20);
    buf_puts(&b, "GET / HTTP/1.1\r\n" H "A: ");
    for (int i = 0; i < 70000; i++)
        buf_putc(&b, 'x');
    buf_puts(&b, "\r\n\r\n");
    char *out = ask(buf_str(&b));
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 431 "));
    free(out);
    buf_reset(&b);
    buf_puts(&b, "GET / HTTP/1.1\r\n" H);
    for (int i = 0; i < 100; i++)
        buf_printf(&b, "h%d: v\r\n", i);
    buf_puts(&b, "\r\n");
    out = ask(buf_str(&b));
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 431 "));
    free(out);
    buf_done(&b);
}
END_TEST

START_TEST(nul_bytes_are_refused)
{
    static const char in[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
    struct raw r = {.in = in, .in_len = sizeof(in) - 1};
    exchange(&r);
    ck_assert_ptr_nonnull(strstr(r.out, "HTTP/1.1 400 "));
    free(r.out);
}
END_TEST

START_TEST(byte_by_byte)
{
    static const char in[] = "\r\nPOST /x HTTP/1.1\r\n" H C
                             "Transfer-Encoding: chunked\r\n\r\n"
                             "3\r\nabc\r\n4;e=1\r\ndefg\r\n0\r\nT: v\r\n\r\n";
    struct raw r = {.in = in, .in_len = sizeof(in) - 1, .step = 1};
    exchange(&r);
    ck_assert_msg(strstr(r.out, "POST /x n=7\nabcdefg") != NULL, "%s", r.out);
    free(r.out);
}
END_TEST

START_TEST(pipelined_requests_are_answered_in_order)
{
    char *out = ask("GET /later1 HTTP/1.1\r\n" H "\r\nPOST /x HTTP/1.1\r\n" H
                    "Content-Length: 2\r\n\r\nhiGET /later2 HTTP/1.1\r\n" H "\r\n"
                    "GET /end HTTP/1.1\r\n" H C "\r\nGET /never HTTP/1.1\r\n" H "\r\n");
    char *a = strstr(out, "/later1"), *b = strstr(out, "POST /x n=2\nhi"), *c = strstr(out, "/later2"),
         *d = strstr(out, "GET /end");
    ck_assert_msg(a && b && c && d && a < b && b < c && c < d, "%s", out);
    ck_assert_ptr_null(strstr(out, "/never"));
    free(out);
}
END_TEST

START_TEST(what_follows_an_open_request_waits)
{
    enum { BODY = 900000 };
    struct buf b = BUF_INIT(2 << 20);
    buf_puts(&b, "GET /later HTTP/1.1\r\n" H "\r\nPOST /x HTTP/1.1\r\n" H C);
    buf_printf(&b, "Content-Length: %d\r\n\r\n", BODY);
    for (int i = 0; i < BODY; i++)
        buf_putc(&b, (char)('a' + i % 26));
    struct raw r = {.in = buf_str(&b), .in_len = b.len};
    exchange(&r); /* more than a server keeps: it stops reading, and goes on after the answer */
    ck_assert_msg(strstr(r.out, "/later") != NULL, "%.200s", r.out);
    char *second = strstr(r.out, "POST /x n=900000\n");
    ck_assert_ptr_nonnull(second);
    ck_assert_int_eq(memcmp(strchr(second, '\n') + 1, (char *)b.data + b.len - BODY, BODY), 0);
    free(r.out);
    buf_done(&b);
}
END_TEST

START_TEST(half_closed_clients_get_their_answer)
{
    struct raw r = {.in = "GET /x HTTP/1.1\r\n" H "\r\n", .half_close = true};
    r.in_len = strlen(r.in);
    exchange(&r);
    ck_assert_msg(strstr(r.out, "GET /x n=0") != NULL, "%s", r.out);
    free(r.out);
    r = (struct raw){.in = "POST /x HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nabc", .half_close = true};
    r.in_len = strlen(r.in);
    exchange(&r);
    ck_assert_ptr_null(strstr(r.out, "POST /x"));
    free(r.out);
}
END_TEST

START_TEST(http10_and_expect)
{
    char *out = ask("GET /old HTTP/1.0\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(out, "GET /old n=0"));
    ck_assert_msg(strncmp(out, "HTTP/1.0 200 ", 13) == 0, "%s", out);
    free(out);
    out = ask("POST /x HTTP/1.1\r\n" H C "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    ck_assert_msg(strncmp(out, "HTTP/1.1 100 Continue\r\n\r\n", 25) == 0, "%s", out);
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 408 ")); /* the body never came */
    free(out);
    out = ask("POST /x HTTP/1.1\r\n" H C "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc");
    ck_assert_msg(strncmp(out, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ", 38) == 0, "%s", out);
    free(out);
    out = ask("HEAD /x HTTP/1.1\r\n" H C "\r\n");
    ck_assert_ptr_nonnull(strstr(out, "Content-Length: 12\r\n"));
    ck_assert_str_eq(strstr(out, "\r\n\r\n"), "\r\n\r\n");
    free(out);
}
END_TEST

START_TEST(slow_clients_are_cut_off)
{
    char *out = ask("GET / HTTP/1.1\r\nHost: ");
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 408 "));
    free(out);
    out = ask("POST / HTTP/1.1\r\n" H "Content-Length: 10\r\n\r\nabc");
    ck_assert_ptr_nonnull(strstr(out, "HTTP/1.1 408 "));
    free(out);
    out = ask("");
    ck_assert_str_eq(out, "");
    free(out);
}
END_TEST

static void *
closer(void *arg)
{
    const char *in = arg;
    int fd = dial();
    char c;
    (void)!TEST_SEND(fd, in, strlen(in), 0);
    if (strstr(in, "endless"))
        (void)!TEST_RECV(fd, &c, 1, 0);
    close(fd);
    return NULL;
}

START_TEST(a_parked_request_notices_that_its_client_left)
{
    pthread_t t;
    pthread_create(&t, NULL, closer, (char[]){"GET /park HTTP/1.1\r\n" H "\r\n"});
    ck_assert(loop_run_until(loop, &parked_gone, 10000));
    pthread_join(t, NULL);
    ck_assert(http_closed(parked));
    http_reply(parked, 200, "text/plain", "late", 4); /* dropped */
}
END_TEST

START_TEST(a_stream_notices_that_its_client_left)
{
    pthread_t t;
    pthread_create(&t, NULL, closer, (char[]){"GET /endless HTTP/1.1\r\n" H "\r\n"});
    ck_assert(loop_run_until(loop, &stream_gone, 10000));
    pthread_join(t, NULL);
    http_stream_write(parked, "x", 1);
    http_stream_end(parked);
}
END_TEST

START_TEST(streams_are_pulled_and_bounded)
{
    struct raw r = {.in = "GET /stream HTTP/1.1\r\n" H C "\r\n"};
    r.in_len = strlen(r.in);
    exchange(&r);
    ck_assert_uint_gt(r.out_len, STREAM_TOTAL);
    ck_assert_str_eq(r.out + r.out_len - 5, "0\r\n\r\n");
    ck_assert_uint_le(most_queued, STREAM_LOW_WATER + 40000);
    free(r.out);
}
END_TEST

START_TEST(large_bodies_are_compressed)
{
    char *out;
    struct raw r = {.in = "GET /big HTTP/1.1\r\n" H C "Accept-Encoding: br, gzip;q=0.5\r\n\r\n"};
    r.in_len = strlen(r.in);
    exchange(&r);
    ck_assert_ptr_nonnull(strstr(r.out, "Content-Encoding: gzip\r\n"));
    char *body = strstr(r.out, "\r\n\r\n") + 4;
    struct buf b = BUF_INIT(1 << 20);
    ck_assert_int_eq(http_gunzip(&b, body, r.out_len - (size_t)(body - r.out)), 0);
    ck_assert_uint_eq(b.len, 600000);
    buf_done(&b);
    free(r.out);
    out = ask("GET /big HTTP/1.1\r\n" H C "Accept-Encoding: gzip;q=0\r\n\r\n");
    ck_assert_ptr_null(strstr(out, "Content-Encoding"));
    free(out);
}
END_TEST

START_TEST(closing_with_open_requests_leaks_nothing)
{
    pthread_t t;
    struct raw r = {.in = "GET /park HTTP/1.1\r\n" H "\r\n"};
    r.in_len = strlen(r.in);
    pthread_create(&t, NULL, raw_thread, &r);
    while (!parked)
        turn();
    http_server_close(server);
    ck_assert(parked_gone);
    server = NULL;
    ck_assert(loop_run_until(loop, &r.done, 5000));
    pthread_join(t, NULL);
    http_reply(parked, 200, NULL, "", 0);
    free(r.out);
}
END_TEST

/* --- our client against our server --- */

struct got {
    bool done;
    int code, status;
    char body[65536];
    size_t n;
    size_t stop_after;
};

static void
got_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct got *g = arg;
    g->done = true;
    g->code = e ? e->code : 0;
    if (r) {
        g->status = r->status;
        if (r->body_len)
            g->n = r->body_len < sizeof(g->body) ? r->body_len : sizeof(g->body) - 1;
        if (r->body_len)
            memcpy(g->body, r->body, g->n);
    }
}

static bool
got_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct got *g = arg;
    (void)p;
    ck_assert_int_eq(r->status, 200);
    g->n += n;
    return g->stop_after == 0 || g->n < g->stop_after;
}

static struct http_client *
client_of(void)
{
    char addr[64];
    struct err e = ERR_INIT;
    snprintf(addr, sizeof(addr), TEST_SCHEME "127.0.0.1:%u", port);
    return http_client_new(&(struct dialer){.loop = loop, .filter = TEST_FILTER}, addr, &e);
}

START_TEST(client_keeps_the_connection)
{
    struct http_client *c = client_of();
    struct got g[3] = {0};
    for (int i = 0; i < 3; i++) {
        struct http_ask a = {
            .method = i == 1 ? "POST" : "GET", .target = "/x?a=b", .body = "hello", .timeout_ms = 5000};
        a.body_len = i == 1 ? 5 : 0;
        a.done = got_done;
        a.arg = &g[i];
        http_send(c, &a);
    }
    ck_assert(!g[0].done);
    ck_assert(loop_run_until(loop, &g[2].done, 5000));
    ck_assert_str_eq(g[0].body, "GET /x n=0 a=b\n");
    ck_assert_str_eq(g[1].body, "POST /x n=5 a=b\nhello");
    ck_assert_int_eq(g[2].status, 200);
    ck_assert_uint_eq(http_server_conns(server), 1);
    http_client_close(c);
}
END_TEST

START_TEST(client_streams_and_stops)
{
    struct http_client *c = client_of();
    struct got g = {0};
    struct http_ask a = {"GET", "/stream", .on_body = got_body, .done = got_done, .arg = &g};
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &g.done, 15000));
    ck_assert_int_eq(g.code, 0);
    ck_assert_uint_eq(g.n, STREAM_TOTAL);
    struct got h = {.stop_after = 3};
    a.target = "/endless";
    a.arg = &h;
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &h.done, 5000));
    ck_assert_int_eq(h.code, -ERR_CANCELED);
    ck_assert(loop_run_until(loop, &stream_gone, 5000));
    http_stream_end(parked);
    http_client_close(c);
}
END_TEST

/* The part that was written comes; a missing rest is an error. */
START_TEST(client_sees_a_cut)
{
    struct http_client *c = client_of();
    struct got g = {0};
    struct http_ask a = {"GET", "/cut", .on_body = got_body, .done = got_done, .arg = &g};
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_uint_eq(g.n, 6);
    ck_assert_int_ne(g.code, 0);
    http_client_close(c);
}
END_TEST

START_TEST(client_errors)
{
    struct http_client *c = client_of();
    struct got g = {0}, h = {0};
    struct http_ask a = {"GET", "/park", .done = got_done, .arg = &g, .timeout_ms = 50};
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_int_eq(g.code, -ERR_TIMEOUT);
    ck_assert(loop_run_until(loop, &parked_gone, 5000));
    http_reply(parked, 200, NULL, "", 0);
    http_client_close(c);
    struct err e = ERR_INIT;
    c = http_client_new(&(struct dialer){.loop = loop, .filter = TEST_FILTER}, "127.0.0.1:1", &e);
    a.arg = &h;
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &h.done, 5000));
    ck_assert_int_ne(h.code, 0);
    http_client_close(c);
}
END_TEST

static void *
fetch_thread(void *arg)
{
    struct raw *r = arg;
    char addr[64];
    struct err e = ERR_INIT;
    struct http_resp *resp = NULL;
    auto_mem void *ctx = mem_ctx("fetch");
    const struct dialer filtered = {.filter = TEST_FILTER};
    struct http_ask a = {.method = "GET", .target = "/fetch", .timeout_ms = 5000, .dialer = &filtered};
    snprintf(addr, sizeof(addr), TEST_SCHEME "localhost:%u", port);
    if (http_fetch(ctx, addr, &a, &resp, &e) == 0)
        r->out = strdup(resp->body);
    loop_post(loop, raw_done, r);
    return NULL;
}

START_TEST(fetch_is_synchronous)
{
    struct raw r = {0};
    pthread_t t;
    pthread_create(&t, NULL, fetch_thread, &r);
    ck_assert(loop_run_until(loop, &r.done, 5000));
    pthread_join(t, NULL);
    ck_assert_ptr_nonnull(r.out);
    ck_assert_str_eq(r.out, "GET /fetch n=0\n");
    free(r.out);
}
END_TEST

static struct http_server *
small_server(size_t per_loopback)
{
    struct err e = ERR_INIT;
    struct http_server_config cfg = {.handler = handler, .conns_per_peer = 2, .give_way_ms = 1};
    cfg.conns_per_loopback = per_loopback;
    cfg.filter = TEST_FILTER;
    struct http_server *s = http_server_new(loop, &cfg);
    ck_assert_int_eq(http_server_listen(s, "127.0.0.1", 0, &e), 0);
    port = http_server_port(s);
    return s;
}

static int
dial_and_say(struct http_server *s, const char *text)
{
    size_t before = http_server_conns(s);
    int fd = dial();
    ck_assert_int_eq(TEST_SEND(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    while (http_server_conns(s) == before)
        turn();
    return fd;
}

START_TEST(connections_of_one_peer_are_limited)
{
    struct http_server *s = small_server(0);
    parked = NULL;
    struct http_req *one = NULL;
    int fds[2];
    for (int i = 0; i < 2; i++, one = one ? one : parked) {
        parked = NULL;
        fds[i] = dial_and_say(s, "GET /park HTTP/1.1\r\n" H "\r\n");
        while (!parked)
            turn();
    }
    char *out = ask("GET / HTTP/1.1\r\n" H "\r\n"); /* two are being answered: no room */
    TEST_IN_CLEAR(out);
    ck_assert_msg(strncmp(out, "HTTP/1.1 429 ", 13) == 0, "%s", out);
    free(out);
    http_fail(one, 200, "done");
    close(fds[0]);
    while (http_server_conns(s) > 1)
        turn();
    out = ask("GET / HTTP/1.1\r\n" H C "\r\n");
    ck_assert_msg(strncmp(out, "HTTP/1.1 200 ", 13) == 0, "%s", out);
    free(out);
    http_fail(parked, 200, "done");
    close(fds[1]);
    http_server_close(s);
}
END_TEST

START_TEST(who_says_nothing_keeps_nobody_out)
{
    static const char *const halves[] = {"", "GET /", "POST /x HTTP/1.1\r\n" H "Content-Length: 9\r\n\r\nab"};
    for (size_t i = 0; i < 3; i++) {
        struct http_server *s = small_server(0);
        int fds[4], n = 0;
        for (; n < 2; n++)
            fds[n] = dial_and_say(s, halves[i]);
        for (int again = 0; again < 3; again++) {
            turn(), turn();
            char *out = ask("GET / HTTP/1.1\r\n" H C "\r\n");
            ck_assert_msg(strncmp(out, "HTTP/1.1 200 ", 13) == 0, "%s", out);
            free(out);
        }
        for (int k = 0; k < n; k++)
            close(fds[k]);
        http_server_close(s);
    }
}
END_TEST

START_TEST(loopback_may_have_more_connections)
{
    struct http_server *s = small_server(3);
    int a = dial_and_say(s, ""), b = dial_and_say(s, ""), c = dial_and_say(s, "");
    ck_assert_uint_eq(http_server_conns(s), 3);
    close(a), close(b), close(c);
    http_server_close(s);
}
END_TEST

START_TEST(unix_sockets)
{
    char dir[] = "/tmp/paddock-http-XXXXXX", addr[128], path[64];
    struct err e = ERR_INIT;
    struct got g = {0};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/s", dir);
    snprintf(addr, sizeof(addr), "unix://%s", path);
    ck_assert_int_eq(http_server_listen(server, addr, 0, &e), 0);
    ck_assert_int_lt(http_server_listen(server, addr, 0, &e), 0); /* somebody listens */
    struct http_client *c = http_client_new(&(struct dialer){.loop = loop, .filter = TEST_FILTER}, addr, &e);
    struct http_ask a = {.method = "GET", .target = "/u", .done = got_done, .arg = &g};
    http_send(c, &a);
    ck_assert(loop_run_until(loop, &g.done, 5000));
    ck_assert_str_eq(g.body, "GET /u n=0\n");
    http_client_close(c);
    http_server_close(server);
    server = NULL;
    ck_assert_int_ne(access(path, F_OK), 0);
    rmdir(dir);
}
END_TEST

TEST_SUITE_FIXTURE("http", 60, setup, teardown, answers_a_get,
                   refuses_malformed_input_with_a_status, refuses_large_and_many_headers,
                   nul_bytes_are_refused, byte_by_byte, pipelined_requests_are_answered_in_order,
                   what_follows_an_open_request_waits, half_closed_clients_get_their_answer,
                   http10_and_expect, slow_clients_are_cut_off,
                   a_parked_request_notices_that_its_client_left,
                   a_stream_notices_that_its_client_left, streams_are_pulled_and_bounded,
                   large_bodies_are_compressed, closing_with_open_requests_leaks_nothing,
                   client_keeps_the_connection, client_streams_and_stops, client_sees_a_cut,
                   client_errors, fetch_is_synchronous, connections_of_one_peer_are_limited,
                   who_says_nothing_keeps_nobody_out, loopback_may_have_more_connections,
                   unix_sockets)
