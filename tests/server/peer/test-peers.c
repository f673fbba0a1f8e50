/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections between servers: messages arrive whole and in order; another cluster, another id and
 * bytes that are none are refused; a host that refuses the connection has no such process any more.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/crc.h"
#include "common/duration.h"
#include "common/str.h"
#include "net/rpc.h"
#include "server/core/core_int.h"
#include "server/peer/peers.h"
#include "server/raft/wire.h"
#include "tests/lib/filter.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

enum { WAIT_MS = 10000 };

struct pair {
    struct loop *loop;
    struct env env[2];
    struct core *core[2];
    struct peers *peers[2];
    struct rpc_server *listen; /* of the second */
    char addr[32];
};

static bool
no_send(void *arg, uint64_t to, const char *addr, struct buf *body)
{
    (void)arg;
    (void)to;
    (void)addr;
    (void)body;
    return false;
}

static void
nothing(void *arg)
{
    (void)arg;
}

static void
pair_open(struct pair *p)
{
    static const struct core_net net = {no_send, nothing, nothing, NULL};
    struct err e = ERR_INIT;
    p->loop = loop_new();
    p->listen = rpc_listen(p->loop, &(struct addr){.host = "127.0.0.1"}, NULL, 0, NULL, &e);
    ck_assert(p->listen != NULL);
    snprintf(p->addr, sizeof(p->addr), "127.0.0.1:%u", rpc_server_port(p->listen));
    for (unsigned i = 0; i < 2; i++) {
        env_of_loop(&p->env[i], p->loop);
        struct core_opts o = {.dir = tmp_dir(),
                              .addr = i == 0 ? "127.0.0.1:1" : p->addr,
                              .boot_id = "boot",
                              .id = i + 1,
                              .expect = 2,
                              .state_max = 16 << 20,
                              .segment_bytes = 64 << 10,
                              .snapshot_entries = 1000,
                              .snapshot_bytes = 1 << 20,
                              .net = &net,
                              .env = &p->env[i]};
        ck_assert_msg(core_open(&o, &p->core[i], &e) == 0, "%s", e.text);
        struct peers_opts po = {
            .id = i + 1, .addr = o.addr, .core = p->core[i], .filter = TEST_FILTER,
            .name = "server.global.nomad"};
        p->peers[i] = peers_start(&po, &e);
        ck_assert(p->peers[i] != NULL);
        peers_set_cluster(p->peers[i], "the cluster");
    }
    rpc_server_secure(p->listen, TEST_FILTER, true);
    rpc_server_give(p->listen, WIRE_PROTOCOL_BYTE, peers_take, p->peers[1]);
}

static void
pair_close(struct pair *p)
{
    rpc_server_close(p->listen);
    for (unsigned i = 0; i < 2; i++) {
        core_stop(p->core[i]);
        peers_stop(p->peers[i]);
        core_free(p->core[i]);
    }
    loop_free(p->loop);
}

static bool
say(struct pair *p, uint64_t to, uint64_t term)
{
    struct wire w = {.kind = WIRE_MSG, .msg = {.type = MSG_VOTE, .term = term}};
    struct buf b = BUF_INIT(WIRE_BODY_MAX);
    wire_put(&b, &w);
    bool ok = peers_send(p->peers[0], to, p->addr, &b);
    buf_done(&b);
    return ok;
}

/* Returns what has come to a core, after so many messages; the loop runs meanwhile. */
static core_msgs
heard(struct pair *p, unsigned i, size_t n)
{
    core_msgs l;
    fifo_init(&l);
    int64_t end = clock_mono_ns() + WAIT_MS * NS_PER_MS;
    size_t have = 0;
    while (have < n && clock_mono_ns() < end) {
        bool never = false;
        loop_run_until(p->loop, &never, 1);
        pthread_mutex_lock(&p->core[i]->raft_in.mutex);
        for (struct core_msg *m = p->core[i]->raft_in.msgs.first; m != NULL; m = m->next)
            have++;
        fifo_join(&l, &p->core[i]->raft_in.msgs);
        pthread_mutex_unlock(&p->core[i]->raft_in.mutex);
    }
    ck_assert_uint_ge(have, n);
    return l;
}

START_TEST(messages_arrive_in_order)
{
    struct pair p;
    pair_open(&p);
    for (uint64_t i = 1; i <= 50; i++) /* before there is a connection: as many as are kept */
        ck_assert(say(&p, 2, i));
    core_msgs l = heard(&p, 1, 50);
    uint64_t term = 0;
    for (struct core_msg *m = l.first; m != NULL; m = m->next) {
        ck_assert_uint_eq(m->m.term, ++term);
        ck_assert_uint_eq(m->m.peer, 1);
        ck_assert_str_eq(m->m.addr, "127.0.0.1:1");
    }
    ck_assert_uint_eq(term, 50);
    core_msgs_free(&l);
    pair_close(&p);
}
END_TEST

struct greeting {
    int fd;
    uint8_t kind;
    char why[512]; /* refused */
};

/* Its first words, byte by byte, over a socket that stays open, and what the other side says. */
static struct greeting
greet(struct pair *p, const struct wire *w, int version)
{
    struct greeting g = {0};
    struct buf b = BUF_INIT(WIRE_BODY_MAX), frame = BUF_INIT(WIRE_BODY_MAX);
    wire_put(&b, w);
    if (version != WIRE_VERSION) {
        b.data[5] = (uint8_t)version;
        uint32_t crc = htonl(crc32c(0, b.data + 4, b.len - 4));
        memcpy(b.data, &crc, sizeof(crc));
    }
    buf_put_u8(&frame, WIRE_PROTOCOL_BYTE);
    buf_put_u32(&frame, (uint32_t)b.len);
    buf_put(&frame, b.data, b.len);
    int fd = g.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons(rpc_server_port(p->listen)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
    ck_assert_int_eq(send(fd, frame.data, frame.len, 0), (ssize_t)frame.len);
    uint8_t answer[1024];
    size_t n = 0;
    int64_t end = clock_mono_ns() + WAIT_MS * NS_PER_MS;
    while ((n < 4 || n < 4 + big_endian(answer, 4)) && clock_mono_ns() < end) {
        bool never = false;
        loop_run_until(p->loop, &never, 1);
        ssize_t k = recv(fd, answer + n, sizeof(answer) - n, MSG_DONTWAIT);
        n += k > 0 ? (size_t)k : 0;
    }
    auto_mem void *tmp = mem_ctx("answer");
    struct err e = ERR_INIT;
    struct wire said;
    ck_assert_msg(n >= 4 && wire_get(tmp, answer + 4, n - 4, &said, &e) == 0, "%s", e.text);
    g.kind = (uint8_t)said.kind;
    if (said.kind == WIRE_REFUSED)
        ck_assert(str_copy(g.why, sizeof(g.why), said.why));
    buf_done(&b);
    buf_done(&frame);
    return g;
}

static void
refused(struct pair *p, const struct wire *w, int version, const char *words)
{
    struct greeting g = greet(p, w, version);
    ck_assert_int_eq(g.kind, WIRE_REFUSED);
    ck_assert_msg(strstr(g.why, words) != NULL, "\"%s\" without \"%s\"", g.why, words);
    close(g.fd);
}

START_TEST(strangers_are_refused)
{
    struct pair p;
    pair_open(&p);
    struct wire good = {
        .kind = WIRE_HELLO, .from = 7, .to = 2, .cluster = "the cluster", .addr = "a:1"};
    struct wire w = good;
    struct greeting in = greet(&p, &good, WIRE_VERSION);
    ck_assert_int_eq(in.kind, WIRE_WELCOME);
    w.cluster = "another";
    refused(&p, &w, WIRE_VERSION, "it is of the cluster another, this server of the cluster");
    w.cluster = "";
    refused(&p, &w, WIRE_VERSION, "it is of the cluster ,");
    w = good;
    w.to = 3;
    refused(&p, &w, WIRE_VERSION, "it looks for another server");
    w = good;
    w.from = 2;
    refused(&p, &w, WIRE_VERSION, "it has the id of this server");
    w.from = 0;
    refused(&p, &w, WIRE_VERSION, "it looks for another server");
    /* an id that is claimed twice, while the first one is connected */
    w = good;
    w.addr = "b:1";
    refused(&p, &w, WIRE_VERSION, "its id is in use by the server at a:1");
    char byte;
    ck_assert_int_eq(recv(in.fd, &byte, 1, MSG_DONTWAIT), -1); /* which is not disturbed by that */
    ck_assert_int_eq(errno, EAGAIN);
    /* the same server once more takes its place */
    struct greeting again = greet(&p, &good, WIRE_VERSION);
    ck_assert_int_eq(again.kind, WIRE_WELCOME);
    close(again.fd);
    close(in.fd);
    refused(&p, &good, WIRE_VERSION + 1, "version");
    refused(&p, &(struct wire){.kind = WIRE_WELCOME}, WIRE_VERSION, "it does not say who it is");
    peers_set_cluster(p.peers[1], "");
    refused(&p, &good, WIRE_VERSION, "this server is of no cluster yet");
    pair_close(&p);
}
END_TEST

START_TEST(a_process_that_is_gone_is_told)
{
    struct pair p;
    pair_open(&p);
    ck_assert(say(&p, 2, 1));
    core_msgs l = heard(&p, 1, 1);
    core_msgs_free(&l);
    /* it ends: its listener, and its connections */
    rpc_server_close(TAKE(p.listen));
    core_stop(p.core[1]);
    peers_stop(TAKE(p.peers[1]));
    l = heard(&p, 0, 1);
    ck_assert_uint_eq(l.first->gone, 2);
    core_msgs_free(&l);
    pair_close(&p);
}
END_TEST

TEST_SUITE("peers", messages_arrive_in_order, strangers_are_refused, a_process_that_is_gone_is_told)
