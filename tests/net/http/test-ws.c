/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket: frames by table, cut at every byte; handshakes; a server and a client that echo; hostile
 * frames; reading held on either side; a peer that does not read its pongs; teardown.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "net/http/ws.h"
#include "tests/lib/filter.h"
#include "tests/lib/test.h"

/* --- frames --- */

/* One stream of a client's bytes (mask 0: the payload is as written) and what it must come to: each
 * message as "opcode:bytes;", or "!code". */
#define M "\0\0\0\0"
static const struct {
    const char *in;
    size_t n;
    const char *want;
} frames[] = {
#define IN(s) (s), sizeof(s) - 1
    {IN("\x81\x82" M "hi"), "1:hi;"},
    {IN("\x81\x82\x01\x02\x03\x04\x69\x6b"), "1:hi;"}, /* masked for good */
    {IN("\x82\x80" M), "2:;"},
    {IN("\x01\x81" M "a" "\x00\x81" M "b" "\x80\x81" M "c"), "1:abc;"},
    {IN("\x01\x81" M "a" "\x89\x81" M "p" "\x80\x81" M "c"), "9:p;1:ac;"}, /* a ping between */
    {IN("\x01\x81" M "\xc3" "\x80\x81" M "\xa4"), "1:\xc3\xa4;"}, /* a character over two frames */
    {IN("\x8a\x80" M "\x81\x81" M "x"), "10:;1:x;"},
    {IN("\x88\x80" M), "8:1005 ;"},
    {IN("\x88\x82" M "\x03\xe8"), "8:1000 ;"},
    {IN("\x88\x85" M "\x0f\xa0" "bye"), "8:4000 bye;"},
    {IN("\x81\x02hi"), "!1002"},                /* not masked */
    {IN("\xc1\x82" M "hi"), "!1002"},           /* a reserved bit */
    {IN("\x91\x82" M "hi"), "!1002"},
    {IN("\x83\x80" M), "!1002"},                /* opcodes that nobody defined */
    {IN("\x8b\x80" M), "!1002"},
    {IN("\x80\x81" M "c"), "!1002"},            /* nothing to continue */
    {IN("\x01\x81" M "a" "\x81\x81" M "b"), "!1002"}, /* a message in a message */
    {IN("\x09\x80" M), "!1002"},                /* a fragment of a ping */
    {IN("\x89\xfe\x00\x7e" M), "!1002"},        /* a long ping */
    {IN("\x88\x81" M "\x03"), "!1002"},         /* half a code */
    {IN("\x88\x82" M "\x03\xed"), "!1002"},     /* 1005 on the wire */
    {IN("\x88\x82" M "\x03\xe7"), "!1002"},     /* 999 */
    {IN("\x88\x82" M "\x13\x88"), "!1002"},     /* 5000 */
    {IN("\x88\x83" M "\x03\xe8\xff"), "!1007"}, /* a reason that is no text */
    {IN("\x81\x81" M "\xff"), "!1007"},
    {IN("\x81\xfe\x00\x02" M "hi"), "!1002"},   /* lengths that are longer than they need be */
    {IN("\x81\xff\0\0\0\0\0\0\0\x02" M "hi"), "!1002"},
    {IN("\x81\xff\x80\0\0\0\0\0\0\0" M), "!1002"},
    {IN("\x82\xff\0\0\0\0\0\x01\0\0" M), "!1009"},
    {IN("\x82\xe5" M), "!1009"},                /* 101 bytes where 100 are the most */
    {IN("\x02\xb3" M "aaaaaaaaaabbbbbbbbbbaaaaaaaaaabbbbbbbbbbaaaaaaaaaab" "\x80\xb2" M), "!1009"},
    {IN("\x82\x82" M "h"), ""},                 /* not all there */
};

static void
put_message(struct buf *out, const struct ws_message *m)
{
    buf_printf(out, "%d:", m->op);
    if (m->op == WS_CLOSE)
        buf_printf(out, "%u ", m->code);
    if (m->n > 0)
        buf_put(out, m->p, m->n);
    buf_putc(out, ';');
}

/* The stream in pieces of `step` bytes, each in memory of its own size. */
static void
read_frames(const char *in, size_t len, size_t step, struct buf *out)
{
    struct ws_reader r;
    struct ws_message m;
    int rc = 0;

    ws_reader_init(&r, true, 100);
    for (size_t at = 0; at < len && rc >= 0; at += step) {
        size_t n = len - at < step ? len - at : step;
        uint8_t *piece = malloc(n);
        const uint8_t *p = piece;
        memcpy(piece, in + at, n);
        while ((rc = ws_reader_take(&r, &p, &n, &m)) > 0)
            put_message(out, &m);
        ck_assert(rc < 0 || n == 0);
        free(piece);
    }
    if (rc < 0) {
        ck_assert_ptr_nonnull(r.why);
        buf_printf(out, "!%d", -rc);
    }
    ws_reader_done(&r);
}

START_TEST(frames_by_table_cut_anywhere)
{
    for (size_t i = 0; i < ARRAY_LEN(frames); i++)
        for (size_t step = 1; step <= frames[i].n; step++) {
            struct buf out = BUF_INIT(4096);
            read_frames(frames[i].in, frames[i].n, step, &out);
            ck_assert_msg(strcmp(buf_str(&out), frames[i].want) == 0, "frame %zu in steps of %zu: %s, not %s",
                          i, step, buf_str(&out), frames[i].want);
            buf_done(&out);
        }
}
END_TEST

START_TEST(frames_of_every_length_come_back)
{
    static const size_t sizes[] = {0, 1, 125, 126, 127, 65535, 65536, 70000};
    static const uint8_t mask[4] = {1, 2, 3, 250};
    static uint8_t data[70000];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < 2 * ARRAY_LEN(sizes); i++) {
        bool masked = i & 1;
        size_t len = sizes[i / 2];
        struct buf b = BUF_INIT(1 << 20);
        struct ws_reader r;
        struct ws_message m;
        ws_put(&b, WS_BINARY, data, len, masked ? mask : NULL);
        const uint8_t *p = b.data;
        size_t n = b.len;
        ws_reader_init(&r, masked, sizeof(data));
        ck_assert_int_eq(ws_reader_take(&r, &p, &n, &m), 1);
        ck_assert(n == 0 && m.op == WS_BINARY && m.n == len);
        ck_assert(len == 0 || memcmp(m.p, data, len) == 0);
        ck_assert_int_eq(ws_reader_take(&r, &p, &n, &m), 0);
        ck_assert_ptr_null(r.message.data); /* idle: no memory */
        ws_reader_done(&r);
        buf_done(&b);
    }
}
END_TEST

START_TEST(close_reasons_are_cut_at_a_character)
{
    struct buf b = BUF_INIT(1024), reason = BUF_INIT(1024);

    for (int i = 0; i < 62; i++)
        buf_puts(&reason, "\xc3\xa4");
    ws_put_close(&b, 1011, buf_str(&reason), NULL);
    buf_done(&reason);
    ck_assert_uint_eq(b.len, 2 + 2 + 122);
    ck_assert_mem_eq(b.data, "\x88\x7c\x03\xf3", 4);
    buf_done(&b);
}
END_TEST

/* --- connections --- */

static struct loop *loop;
static struct http_server *server;
static char addr[64];
static struct ws *served;
static unsigned closed_code;
static char closed_why[256];
static bool closed, stop_in_message;
static size_t received, drained;

static void
echo(void *arg, const void *p, size_t n)
{
    (void)arg;
    received += n;
    if (n == 4 && memcmp(p, "quit", 4) == 0)
        ws_close(served, WS_POLICY, "as you wish");
    else if (n == 4 && memcmp(p, "hold", 4) == 0)
        ws_read(served, false);
    else if (!stop_in_message)
        ws_send(served, p, n);
}

static void
count_drain(void *arg)
{
    (void)arg;
    drained++;
}

static void
note_close(void *arg, unsigned code, const char *why)
{
    (void)arg;
    closed = true;
    closed_code = code;
    snprintf(closed_why, sizeof(closed_why), "%s", why);
}

static const struct ws_ops server_ops = {
    .on_message = echo, .on_drain = count_drain, .on_close = note_close};

static void
handler(void *arg, struct http_req *r)
{
    (void)arg;
    served = ws_accept(loop, r, &server_ops, NULL);
}

static void
setup(void)
{
    struct err e = ERR_INIT;
    struct http_server_config cfg = {.filter = TEST_FILTER, .handler = handler};
    loop = loop_new();
    server = http_server_new(loop, &cfg);
    ck_assert_int_eq(http_server_listen(server, "127.0.0.1", 0, &e), 0);
    snprintf(addr, sizeof(addr), TEST_SCHEME "127.0.0.1:%u", http_server_port(server));
}

static void
teardown(void)
{
    http_server_close(server);
    loop_free(loop);
}

static void
turns(int n)
{
    bool never = false;
    while (n-- > 0)
        loop_run_until(loop, &never, 5);
}

static int
dial(void)
{
    struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(http_server_port(server))};
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    return fd;
}

/* Writes, lets the loop turn until something has come, reads that. */
static size_t
talk(int fd, const void *p, size_t n, char *out, size_t size)
{
    if (n > 0)
        ck_assert_int_eq(TEST_SEND(fd, p, n, MSG_NOSIGNAL), (ssize_t)n);
    for (int i = 0; i < 400; i++) {
        struct pollfd pfd = {.fd = fd, .events = POLLIN};
        turns(1);
        if (poll(&pfd, 1, 0) == 1)
            break;
    }
    turns(2);
    ssize_t got = TEST_RECV(fd, out, size - 1, MSG_DONTWAIT);
    out[got > 0 ? got : 0] = 0;
    return got > 0 ? (size_t)got : 0;
}

#define HELLO "GET /x HTTP/1.1\r\nHost: h:1\r\n"
#define UP "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
#define V "Sec-WebSocket-Version: 13\r\n"
#define K "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static const struct {
    const char *in;
    const char *want;
} handshakes[] = {
    {HELLO UP V K "\r\n", "HTTP/1.1 101 Switching Protocols\r\n"},
    {HELLO "\r\n", "HTTP/1.1 400 "},
    {HELLO "Upgrade: websocket\r\n" V K "\r\n", "HTTP/1.1 400 "},
    {HELLO "Connection: Upgrade\r\nUpgrade: h2c\r\n" V K "\r\n", "HTTP/1.1 400 "},
    {HELLO UP K "\r\n", "HTTP/1.1 426 "},
    {HELLO UP K "Sec-WebSocket-Version: 8\r\n\r\n", "HTTP/1.1 426 "},
    {HELLO UP V "\r\n", "HTTP/1.1 400 "},
    {HELLO UP V K K "\r\n", "HTTP/1.1 400 "},
    {HELLO UP V "Sec-WebSocket-Key: c2hvcnQ=\r\n\r\n", "HTTP/1.1 400 "},
    {HELLO UP V "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j!Q==\r\n\r\n", "HTTP/1.1 400 "},
    {"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n" UP V K "\r\n", "HTTP/1.1 400 "},
};

START_TEST(handshakes_by_table)
{
    char out[4096];
    for (size_t i = 0; i < ARRAY_LEN(handshakes); i++) {
        int fd = dial();
        talk(fd, handshakes[i].in, strlen(handshakes[i].in), out, sizeof(out));
        ck_assert_msg(strncmp(out, handshakes[i].want, strlen(handshakes[i].want)) == 0, "%zu: %s", i, out);
        if (i == 0) { /* the example of RFC 6455, 1.3 */
            ck_assert_ptr_nonnull(strstr(out, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
            ck_assert_ptr_nonnull(strstr(out, "\r\nConnection: Upgrade\r\n"));
            ck_assert_ptr_null(strstr(out, "Content-Length"));
        }
        close(fd);
    }
    turns(20);
    ck_assert_uint_eq(http_server_conns(server), 0);
}
END_TEST

/* Opens; `more` bytes go out in the same write. */
static int
open_raw(const void *more, size_t n, char *out, size_t size)
{
    char in[1024];
    size_t len = (size_t)snprintf(in, sizeof(in), "%s", HELLO UP V K "\r\n");
    int fd = dial();
    closed = false;
    memcpy(in + len, more, n);
    size_t got = talk(fd, in, len + n, out, size);
    char *body = strstr(out, "\r\n\r\n");
    ck_assert_ptr_nonnull(body);
    body += 4;
    got -= (size_t)(body - out);
    memmove(out, body, got + 1);
    if (n > 0 && got == 0)
        talk(fd, NULL, 0, out, size);
    return fd;
}

START_TEST(speaks_and_says_goodbye)
{
    char out[4096];
    int fd = open_raw(IN("\x81\x82" M "hi"), out, sizeof(out)); /* too early, but not lost */
    ck_assert_mem_eq(out, "\x81\x02hi", 4);
    ck_assert_uint_eq(talk(fd, IN("\x89\x82" M "xy"), out, sizeof(out)), 4);
    ck_assert_mem_eq(out, "\x8a\x02xy", 4);
    talk(fd, IN("\x88\x82" M "\x03\xe9"), out, sizeof(out));
    ck_assert_mem_eq(out, "\x88\x02\x03\xe9", 4);
    ck_assert(closed && closed_code == 1001);
    close(fd);
    fd = open_raw("", 0, out, sizeof(out));
    talk(fd, IN("\x81\x84" M "quit"), out, sizeof(out));
    ck_assert_mem_eq(out, "\x88\x0d\x03\xf0" "as you wish", 15);
    ck_assert(!closed); /* who closes is told nothing */
    close(fd);
    turns(20);
    ck_assert_uint_eq(http_server_conns(server), 0);
}
END_TEST

START_TEST(hostile_frames_end_with_their_code)
{
    char out[4096];
    int fd = open_raw("", 0, out, sizeof(out));
    talk(fd, IN("\x81\x02hi"), out, sizeof(out));
    ck_assert_mem_eq(out + 2, "\x03\xea", 2);
    ck_assert(closed && closed_code == WS_PROTOCOL);
    close(fd);
    fd = open_raw("", 0, out, sizeof(out));
    talk(fd, IN("\x81\xff\0\0\0\0\x7f\xff\xff\xff" M), out, sizeof(out));
    ck_assert_mem_eq(out + 2, "\x03\xf1", 2);
    ck_assert(closed && closed_code == WS_TOO_BIG);
    close(fd);
    fd = open_raw("", 0, out, sizeof(out));
    shutdown(fd, SHUT_WR);
    talk(fd, NULL, 0, out, sizeof(out));
    ck_assert(closed && closed_code == WS_ABNORMAL);
    close(fd);
    turns(20);
    ck_assert_uint_eq(http_server_conns(server), 0);
}
END_TEST

/* Sends one frame again and again until the server takes no more; the bytes it took. */
static size_t
flood(int fd, const char *frame, size_t n)
{
    static char block[64000];
    size_t sent = 0;

    for (size_t i = 0; i < sizeof(block); i++)
        block[i] = frame[i % n];
    for (int idle = 0; idle < 20 && sent < 64 << 20;) {
        size_t at = sent % n;
        ssize_t w = TEST_SEND(fd, block + at, sizeof(block) - at, MSG_NOSIGNAL | MSG_DONTWAIT);
        idle = w > 0 ? 0 : idle + 1;
        sent += w > 0 ? (size_t)w : 0;
        turns(1);
    }
    return sent;
}

START_TEST(reading_is_held_and_goes_on)
{
    static char out[1 << 20];
    size_t n = 0;
    received = 0;
    stop_in_message = false;
    int fd = open_raw("", 0, out, sizeof(out));
    talk(fd, IN("\x81\x84" M "hold" "\x81\x81" M "1" "\x81\x81" M "2"), out, sizeof(out));
    ck_assert_uint_eq(received, 4); /* not one message more, though they came in one read */
    ws_read(served, true);
    for (int i = 0; n < 6 && i < 100; i++)
        n += talk(fd, NULL, 0, out + n, sizeof(out) - n);
    ck_assert_mem_eq(out, "\x81\x01" "1" "\x81\x01" "2", 6);
    ws_read(served, false);
    stop_in_message = true;
    size_t sent = flood(fd, IN("\x82\x81" M "z"));
    ck_assert_uint_lt(sent, 64 << 20);
    ck_assert_uint_eq(received, 6);
    ws_read(served, true);
    for (int i = 0; received < 6 + sent / 7 && i < 1000; i++)
        turns(1);
    ck_assert_uint_eq(received, 6 + sent / 7);
    close(fd);
    turns(20);
    ck_assert(closed);
}
END_TEST

START_TEST(pings_of_a_deaf_peer_are_not_hoarded)
{
    static char frame[6 + 125] = "\x89\xfd";
    char out[4096];
    int fd = open_raw("", 0, out, sizeof(out));
    size_t sent = flood(fd, frame, sizeof(frame));
    ck_assert_uint_lt(sent, 64 << 20); /* the server reads no more */
    ck_assert_uint_lt(ws_queued(served), 4 * STREAM_LOW_WATER);
    ck_assert(!closed);
    close(fd);
    turns(20);
    ck_assert(closed);
}
END_TEST

/* --- our own client --- */

struct peer {
    struct ws *ws;
    bool opened, over;
    size_t got;
    char text[64], why[512];
    unsigned code;
};

static void
peer_open(void *arg)
{
    ((struct peer *)arg)->opened = true;
}

static void
peer_message(void *arg, const void *p, size_t n)
{
    struct peer *k = arg;
    snprintf(k->text, sizeof(k->text), "%.*s", (int)n, (const char *)p);
    k->got += n;
}

static void
peer_close(void *arg, unsigned code, const char *why)
{
    struct peer *k = arg;
    k->over = true;
    k->code = code;
    snprintf(k->why, sizeof(k->why), "%s", why);
}

static const struct ws_ops peer_ops = {
    .on_open = peer_open, .on_message = peer_message, .on_drain = count_drain, .on_close = peer_close};

static void
connect_peer(struct peer *k, const char *where)
{
    static const struct http_pair plain[] = {{"X-Test", "1"}};
    struct http_ask ask = {.target = "/x",
                           .headers = plain,
                           .n_headers = 1,
                           .dialer = &(struct dialer){.filter = TEST_FILTER}};
    struct err e = ERR_INIT;
    *k = (struct peer){NULL};
    closed = false;
    k->ws = ws_connect(loop, where, &ask, &peer_ops, k, &e);
    ck_assert_ptr_nonnull(k->ws);
}

START_TEST(our_client_speaks_to_our_server)
{
    static char block[100000];
    struct peer k;

    stop_in_message = false;
    connect_peer(&k, addr);
    ck_assert(loop_run_until(loop, &k.opened, 5000));
    ws_send(k.ws, "hello", 5);
    for (int i = 0; k.got < 5 && i < 400; i++)
        turns(1);
    ck_assert_str_eq(k.text, "hello");
    memset(block, 'b', sizeof(block));
    for (size_t sent = 0; sent < 50;) {
        if (ws_queued(k.ws) < STREAM_LOW_WATER && ws_queued(served) < STREAM_LOW_WATER) {
            ws_send(k.ws, block, sizeof(block));
            sent++;
        }
        turns(1);
    }
    for (int i = 0; k.got < 5 + 50 * sizeof(block) && i < 4000; i++)
        turns(1);
    ck_assert_uint_eq(k.got, 5 + 50 * sizeof(block));
    ws_send(k.ws, "quit", 4);
    ck_assert(loop_run_until(loop, &k.over, 5000));
    ck_assert_uint_eq(k.code, WS_POLICY);
    ck_assert_str_eq(k.why, "as you wish");
    connect_peer(&k, addr);
    ck_assert(loop_run_until(loop, &k.opened, 5000));
    ws_close(k.ws, WS_NORMAL, "");
    ck_assert(loop_run_until(loop, &closed, 5000));
    ck_assert(!k.over);
    connect_peer(&k, addr); /* closed before it was open */
    ws_close(k.ws, WS_NORMAL, "");
    connect_peer(&k, "127.0.0.1:1");
    ck_assert(loop_run_until(loop, &k.over, 5000));
    ck_assert(!k.opened && k.code == WS_ABNORMAL);
}
END_TEST

static void
refuse(void *arg, struct http_req *r)
{
    (void)arg;
    http_fail(r, 404, "Unknown allocation");
}

static void
lie(void *arg, struct http_req *r)
{
    (void)arg;
    http_header_add(r, "Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    http_tunnel_start(r, NULL, NULL);
    http_stream_end(r);
}

START_TEST(our_client_is_refused)
{
    struct http_server_config cfg[] = {{.filter = TEST_FILTER, .handler = refuse},
                                       {.filter = TEST_FILTER, .handler = lie}};
    static const char *const want[] = {"Unexpected response code: 404 (Unknown allocation)",
                                       "the answer is not that of a WebSocket server"};
    for (size_t i = 0; i < 2; i++) {
        struct err e = ERR_INIT;
        struct peer k;
        char where[64];
        struct http_server *s = http_server_new(loop, &cfg[i]);
        ck_assert_int_eq(http_server_listen(s, "127.0.0.1", 0, &e), 0);
        snprintf(where, sizeof(where), TEST_SCHEME "127.0.0.1:%u", http_server_port(s));
        connect_peer(&k, where);
        ck_assert(loop_run_until(loop, &k.over, 5000));
        ck_assert(!k.opened && k.code == 0);
        ck_assert_str_eq(k.why, want[i]);
        http_server_close(s);
    }
}
END_TEST

START_TEST(teardown_with_an_open_connection)
{
    struct peer k;
    connect_peer(&k, addr);
    ck_assert(loop_run_until(loop, &k.opened, 5000));
    http_server_close(server);
    ck_assert(closed);
    ck_assert(loop_run_until(loop, &k.over, 5000));
    server = http_server_new(loop, &(struct http_server_config){.handler = handler});
}
END_TEST

TEST_SUITE_FIXTURE("ws", 60, setup, teardown, frames_by_table_cut_anywhere,
                   frames_of_every_length_come_back, close_reasons_are_cut_at_a_character,
                   handshakes_by_table, speaks_and_says_goodbye, hostile_frames_end_with_their_code,
                   reading_is_held_and_goes_on, pings_of_a_deaf_peer_are_not_hoarded,
                   our_client_speaks_to_our_server, our_client_is_refused,
                   teardown_with_an_open_connection)
