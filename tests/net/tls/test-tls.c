/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS between two of ours, by table; bytes in plenty, storms, and texts that are renewed.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/tls/tls_int.h"
#include "tests/lib/filter.h"
#include "tests/lib/test.h"
#include "tests/net/tls/ends.h"

/* --- pairs --- */

struct pair {
    struct test_pem at, from; /* who listens, who dials */
    const char *at_ca, *from_ca;
    bool verify;
    const char *name, *protocol;
    const char *why_at, *why_from; /* NULL: it works */
    enum peer_kind at_kind, from_kind;
};

static void
check_works(const struct pair *p, struct end *d, size_t i)
{
    ck_assert_msg(d->open && !d->closed && str_eq(d->first, "hello"), "%zu: %s", i, d->why);
    ck_assert_int_eq(guest[0].kind, p->from_kind);
    ck_assert_int_eq(d->kind, p->at_kind);
    stream_end(d->s);
    turn_until(&d->closed);
    turn_until(&guest[0].closed);
    ck_assert_msg(guest[0].eof && d->eof && d->code == 0, "%zu: %d", i, d->code);
}

static void
check_refused(const struct pair *p, struct end *d, size_t i)
{
    turn_until(&d->closed);
    turn_until(&guest[0].closed);
    ck_assert_msg(strstr(guest[0].why, p->why_at) != NULL, "%zu: %s", i, guest[0].why);
    ck_assert_msg(strstr(d->why, p->why_from) != NULL, "%zu: %s", i, d->why);
    ck_assert(d->code < 0 && guest[0].code < 0 && guest[0].n == 0);
}

static void
check_pairs(const struct pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct pair *p = &pairs[i];
        struct tls *at = tls_of(p->at, p->at_ca, p->verify);
        struct tls *from = tls_of(p->from, p->from_ca, p->verify);
        struct end d;
        listen_at(tls_rpc(at), p->protocol);
        dial(&d, tls_rpc(from), p->name, p->protocol, NULL);
        turn_until_settled(&d);
        say(&d, "hello", 5);
        turn_for_bytes(&d, 5);
        if (p->why_at == NULL)
            check_works(p, &d, i);
        else
            check_refused(p, &d, i);
        close_all();
        tls_unref(at);
        tls_unref(from);
    }
}

#define GLOBAL "server.global.nomad"
#define FOR_CLIENT "is for client.global.nomad, a server.global.nomad was wanted"
#define FOR_EU "is for server.eu.nomad, a server.global.nomad was wanted"
#define REFUSES "refuses this certificate"
#define NAMES_LEAF "certificate \"server.global.nomad\" of 127.0.0.1:"

START_TEST(two_of_ours_by_table)
{
    const struct test_pem none = {NULL, NULL}, eu = test_cert(ctx, ca, "server.eu.nomad", 0, 10);
    const char *one = ca.cert, *other = other_ca.cert;
    const char *both = mem_printf(ctx, "%s%s", one, other);
    const struct test_pem brings_ca = {mem_printf(ctx, "%s%s", stranger.cert, other), stranger.key};
    const struct pair pairs[] = {
        {server, client, one, one, true, GLOBAL, RPC, NULL, NULL, PEER_SERVER, PEER_NODE},
        {server, server, one, one, true, GLOBAL, RAFT, NULL, NULL, PEER_SERVER, PEER_SERVER},
        {eu, server, one, one, true, "server.*.nomad", RPC, NULL, NULL, PEER_SERVER, PEER_SERVER},
        {client, server, one, one, false, GLOBAL, RPC, NULL, NULL, PEER_NODE, PEER_SERVER},
        {server, stranger, one, other, true, GLOBAL, RPC, "does not know the CA",
         "is signed by \"One CA\", which is not among the CAs"},
        {stranger, client, other, both, true, GLOBAL, RPC,
         "is signed by \"One CA\", which is not among the CAs", "does not know the CA"},
        {client, server, one, one, true, GLOBAL, RPC, REFUSES, FOR_CLIENT},
        {eu, server, one, one, true, GLOBAL, RPC, REFUSES, FOR_EU},
        {server, client, one, one, true, GLOBAL, RAFT, FOR_CLIENT, REFUSES},
        {server, eu, one, one, true, GLOBAL, RAFT, FOR_EU, REFUSES},
        {client, brings_ca, one, both, true, NULL, RPC, NAMES_LEAF, "does not know the CA"},
        {server, none, one, one, true, GLOBAL, RPC, "presents no certificate", "wants a certificate"},
    };
    check_pairs(pairs, ARRAY_LEN(pairs));
}
END_TEST

START_TEST(protocols_are_not_mistaken_for_each_other)
{
    struct tls *t = tls_of(server, ca.cert, true);
    struct end d;
    listen_at(tls_rpc(t), RAFT);
    dial(&d, tls_rpc(t), "server.global.nomad", RPC, NULL);
    turn_until(&d.closed);
    ck_assert(!d.open);
    turn_until(&guest[0].closed);
    ck_assert(guest[0].code < 0);
    close_all();
    tls_unref(t);
}
END_TEST

START_TEST(https_wants_the_host)
{
    static const struct {
        const char *name, *why;
    } hosts[] = {{"localhost", NULL},
                 {"127.0.0.1", NULL},
                 {"example.org", "is for server.global.nomad, localhost, a example.org was wanted"},
                 {"127.0.0.2", "a 127.0.0.2 was wanted"}};
    struct tls *t = tls_of(server, ca.cert, false);
    struct err e = ERR_INIT;
    struct tls *plain = tls_new(&(struct tls_config){.ca = ca.cert}, &e);
    struct tls *blind = tls_new(&(struct tls_config){.skip_verify = true, .ca = other_ca.cert}, &e);
    ck_assert(plain != NULL && blind != NULL);
    for (size_t i = 0; i < 2 * ARRAY_LEN(hosts); i++) {
        struct end d;
        bool skips = i >= ARRAY_LEN(hosts);
        const char *why = skips ? NULL : hosts[i].why;
        listen_at(tls_http(t), "http/1.1");
        dial(&d, tls_http(skips ? blind : plain), hosts[i % ARRAY_LEN(hosts)].name, "http/1.1", NULL);
        turn_until_settled(&d);
        say(&d, "hello", 5);
        turn_for_bytes(&d, 5);
        ck_assert_msg(why == NULL ? d.n == 5 : strstr(d.why, why) != NULL, "%zu: %s", i, d.why);
        if (d.s != NULL)
            stream_close(d.s);
        turn_until(&d.closed);
        close_all();
    }
    tls_unref(t);
    tls_unref(plain);
    tls_unref(blind);
}
END_TEST

/* --- bytes --- */

static uint64_t
sum_of(const uint8_t *p, size_t n)
{
    uint64_t s = 0;
    for (size_t i = 0; i < n; i++)
        s = s * 31 + p[i];
    return s;
}

/* TLS over a carrier that turns bytes over, delays and cuts. */
static struct transport *
wrap_both(void *arg, struct transport *carrier, const struct filter_use *u)
{
    const struct filter *upper = arg;
    struct transport *lower = filter_turning.wrap(filter_turning.arg, carrier, u);
    struct filter_use rest = *u;
    rest.p = NULL;
    rest.n = 0;
    return upper->wrap(upper->arg, lower, &rest);
}

/* The writer writes it all at once, the reader stops now and then. */
static void
go_through_and_back(struct tls *t, const struct filter *f)
{
    enum { TOTAL = 3000000 };
    uint8_t *block = malloc(TOTAL);
    struct end d;
    for (size_t i = 0; i < TOTAL; i++)
        block[i] = (uint8_t)(i * 7 + i / 251);
    listen_at(f, RPC);
    dial(&d, f, "server.global.nomad", RPC, NULL);
    turn_until(&d.open);
    say(&d, block, TOTAL);
    for (int i = 0; i < 20 && !d.closed && d.n < TOTAL; i++) {
        turn_for_bytes(&d, d.n + TOTAL / 30);
        size_t before = d.n;
        bool never = false;
        stream_read(d.s, false);
        loop_run_until(loop, &never, 5);
        ck_assert_uint_eq(d.n, before);
        stream_read(d.s, true);
    }
    turn_for_bytes(&d, TOTAL);
    ck_assert_uint_eq(d.n, TOTAL);
    ck_assert_uint_eq(d.sum, sum_of(block, TOTAL));
    stream_end(d.s);
    turn_until(&guest[0].closed);
    turn_until(&d.closed);
    ck_assert(guest[0].eof && d.eof && d.code == 0);
    close_all();
    free(block);
    tls_unref(t);
}

START_TEST(much_goes_through_and_back)
{
    struct tls *t = tls_of(server, ca.cert, true);
    go_through_and_back(t, tls_rpc(t));
}
END_TEST

START_TEST(much_goes_over_a_bad_carrier)
{
    struct tls *t = tls_of(server, ca.cert, true);
    const struct filter both = {wrap_both, (void *)(uintptr_t)tls_rpc(t)};
    go_through_and_back(t, &both);
}
END_TEST

/* --- handshakes that do not end --- */

static int
silent(const char *from)
{
    struct sockaddr_in sin = {AF_INET, 0, {0}, {0}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(inet_pton(AF_INET, from, &sin.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    sin.sin_port = htons(listener_port(listening));
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
    return fd;
}

START_TEST(half_open_ones_keep_out_their_own_address)
{
    enum { SILENT = 20 };
    struct tls *t = tls_of(server, ca.cert, true);
    struct end other, same;
    int fd[SILENT];
    listen_at(tls_rpc(t), RPC);
    for (int i = 0; i < SILENT; i++)
        fd[i] = silent("127.0.0.2");
    while (guests < SILENT) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    dial(&same, tls_rpc(t), "server.global.nomad", RPC, "127.0.0.2");
    while (guests <= SILENT) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
    dial(&other, tls_rpc(t), "server.global.nomad", RPC, "127.0.0.3");
    turn_until(&other.open);
    ck_assert(!same.open); /* its turn has not come */
    for (int i = 0; i < SILENT; i++)
        close(fd[i]);
    turn_until(&same.open);
    stream_close(same.s);
    stream_close(other.s);
    turn_until(&same.closed);
    turn_until(&other.closed);
    close_all();
    tls_unref(t);
}
END_TEST

struct turns {
    struct timer *next;
    const struct end *ends;
    size_t n, open, most;
};

static void
count_turn(void *arg)
{
    struct turns *t = arg;
    size_t open = 0;
    for (size_t i = 0; i < t->n; i++)
        open += t->ends[i].open;
    if (open - t->open > t->most)
        t->most = open - t->open;
    t->open = open;
    t->next = open < t->n ? timer_start(loop, 0, count_turn, t) : NULL;
}

START_TEST(a_storm_leaves_others_their_turns)
{
    enum { STORM = 40 };
    struct tls *t = tls_of(server, ca.cert, true);
    struct end ends[STORM];
    struct turns turns = {.ends = ends, .n = STORM};
    listen_at(tls_rpc(t), RPC);
    for (int i = 0; i < STORM; i++) {
        char from[32];
        snprintf(from, sizeof(from), "127.0.0.%d", 2 + i);
        dial(&ends[i], tls_rpc(t), "server.global.nomad", RPC, from);
    }
    turns.next = timer_start(loop, 0, count_turn, &turns);
    for (int i = 0; i < STORM; i++)
        turn_until(&ends[i].open);
    ck_assert_uint_ge(turns.most, 1);
    ck_assert_uint_le(turns.most, TLS_STEPS);
    timer_stop(turns.next);
    for (int i = 0; i < STORM; i++) {
        stream_close(ends[i].s);
        turn_until(&ends[i].closed);
    }
    close_all();
    tls_unref(t);
}
END_TEST

struct walk {
    struct tls_step steps[6];
    struct walk_one {
        struct walk *w;
        int number;
    } ones[6];
    int order[6];
    size_t n;
    bool done;
};

static void
walk_run(void *arg)
{
    struct walk_one *o = arg;
    o->w->order[o->w->n++] = o->number;
    o->w->done = o->w->n == 5;
}

/* Else all handshakes of a storm would end late and together, when who dialled has gone. */
START_TEST(who_has_begun_goes_first)
{
    static const int order[] = {3, 5, 0, 1, 2};
    struct tls *t = tls_of(server, ca.cert, true);
    struct tls_lane *a = tls_lane_ref(t, loop);
    struct walk w = {.n = 0};
    for (int i = 0; i < 6; i++) {
        w.ones[i] = (struct walk_one){&w, i};
        w.steps[i] = (struct tls_step){.begun = i >= 3, .run = walk_run, .arg = &w.ones[i]};
        tls_lane_put(a, &w.steps[i]);
    }
    tls_lane_out(&w.steps[4]);
    turn_until(&w.done);
    ck_assert_mem_eq(w.order, order, sizeof(order));
    tls_lane_unref(t, a);
    tls_unref(t);
}
END_TEST

/* --- renewal --- */

START_TEST(new_texts_are_for_new_connections)
{
    auto_mem char *both = mem_printf(NULL, "%s%s", ca.cert, other_ca.cert);
    struct tls *at = tls_of(server, both, true), *from = tls_of(client, ca.cert, true);
    struct end old, next;
    struct err e = ERR_INIT;
    listen_at(tls_rpc(at), RPC);
    dial(&old, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&old.open);
    /* a set that nobody could use */
    struct tls_config cfg = {.ca = both, .cert = stranger.cert, .key = server.key};
    ck_assert_int_lt(tls_renew(at, &cfg, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "the key is not that of certificate"));
    dial(&next, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&next.open);
    stream_close(next.s);
    turn_until(&next.closed);
    cfg.key = stranger.key;
    e = (struct err)ERR_INIT;
    ck_assert_msg(tls_renew(at, &cfg, &e) == 0, "%s", e.text);
    dial(&next, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&next.closed);
    ck_assert_msg(strstr(next.why, "is signed by \"Other CA\"") != NULL, "%s", next.why);
    cfg = (struct tls_config){.ca = both, .cert = client.cert, .key = client.key};
    ck_assert_int_eq(tls_renew(from, &cfg, &e), 0);
    dial(&next, tls_rpc(from), "server.global.nomad", RPC, NULL);
    turn_until(&next.open);
    say(&old, "still", 5);
    turn_for_bytes(&old, 5);
    ck_assert_str_eq(old.first, "still");
    stream_close(next.s);
    stream_close(old.s);
    turn_until(&next.closed);
    turn_until(&old.closed);
    close_all();
    tls_unref(at);
    tls_unref(from);
}
END_TEST

START_TEST(texts_are_judged)
{
    const struct test_pem expired = test_cert(ctx, ca, "server.global.nomad", -20 * DAY, 10);
    const struct {
        struct tls_config cfg;
        const char *why;
    } texts[] = {
        {{.ca = "nonsense"}, "ca_file: no certificate"},
        {{.ca = ca.cert, .cert = server.cert}, "cert_file and key_file go together"},
        {{.ca = ca.cert, .cert = server.cert, .key = client.key}, "the key is not that of"},
        {{.ca = ca.cert, .cert = expired.cert, .key = expired.key}, "has expired"},
        {{.ca = ca.cert, .cert = stranger.cert, .key = stranger.key}, "which is not among the CAs"},
        {{.ca = ca.cert, .cert = client.cert, .key = client.key, .own_name = GLOBAL},
         "\"client.global.nomad\" is not for server.global.nomad"},
        {{.ca = ca.cert, .cert = server.cert, .key = server.key, .own_name = GLOBAL}, NULL},
        {{.ca = ca.cert, .min_version = "tls11"}, "tls_min_version \"tls11\""},
        {{.ca = ca.cert, .ciphers = "TLS_RSA_WITH_AES_128_CBC_SHA"}, "unknown or weak"},
        {{.ca = ca.cert, .ciphers = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,"
                                    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"},
         NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e = ERR_INIT;
        struct tls *t = tls_new(&texts[i].cfg, &e);
        ck_assert_msg((t != NULL) == (texts[i].why == NULL), "%zu: %s", i, e.text);
        ck_assert_msg(t != NULL || strstr(e.text, texts[i].why) != NULL, "%zu: %s", i, e.text);
        tls_unref(t);
    }
}
END_TEST

TEST_SUITE_FIXTURE("tls", 120, ends_setup, ends_teardown, two_of_ours_by_table,
                   protocols_are_not_mistaken_for_each_other, https_wants_the_host,
                   much_goes_through_and_back, much_goes_over_a_bad_carrier,
                   half_open_ones_keep_out_their_own_address, a_storm_leaves_others_their_turns,
                   who_has_begun_goes_first, new_texts_are_for_new_connections, texts_are_judged)
