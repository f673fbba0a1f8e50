/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/net/tls/ends.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

#define WAIT_MS 30000

struct loop *loop;
void *ctx;
struct test_pem ca, other_ca, server, client, stranger;

void
ends_setup(void)
{
    loop = loop_new();
    ctx = mem_ctx("test");
    ca = test_ca(ctx, "One CA");
    other_ca = test_ca(ctx, "Other CA");
    server = test_cert(ctx, ca, "server.global.nomad,localhost", 0, 10);
    client = test_cert(ctx, ca, "client.global.nomad", 0, 10);
    stranger = test_cert(ctx, other_ca, "server.global.nomad", 0, 10);
}

void
ends_teardown(void)
{
    loop_free(loop);
    talloc_free(ctx);
}

struct tls *
tls_of(struct test_pem own, const char *cas, bool verify)
{
    struct err e = ERR_INIT;
    struct tls *t = tls_new(&(struct tls_config){.ca = cas,
                                                 .cert = own.cert,
                                                 .key = own.key,
                                                 .verify_server_hostname = verify,
                                                 .verify_https_client = verify},
                            &e);
    ck_assert_msg(t != NULL, "%s", e.text);
    return t;
}

/* --- ends --- */

static void
end_open(void *arg)
{
    ((struct end *)arg)->open = true;
}

static void
end_data(void *arg, const uint8_t *p, size_t n)
{
    struct end *d = arg;
    for (size_t i = 0; i < n; i++) {
        if (d->n < sizeof(d->first) - 1)
            d->first[d->n] = (char)p[i];
        d->sum = d->sum * 31 + p[i];
        d->n++;
    }
    if (stream_identity(d->s) != NULL)
        d->kind = stream_identity(d->s)->kind;
    if (d->echoes) {
        struct buf b = BUF_INIT(1 << 20);
        buf_put(&b, p, n);
        stream_write(d->s, &b, 1);
    }
}

static void
end_eof(void *arg)
{
    struct end *d = arg;
    d->eof = true;
    stream_finish(d->s, 0);
}

static void
end_close(void *arg, int code)
{
    struct end *d = arg;
    d->closed = true;
    d->code = code;
    snprintf(d->why, sizeof(d->why), "%s", str_or(stream_why(d->s), ""));
    d->s = NULL;
}

const struct stream_ops end_ops = {
    .on_connect = end_open, .on_data = end_data, .on_eof = end_eof, .on_close = end_close};

struct end guest[GUESTS];
size_t guests;
struct listener *listening;

static void
on_accept(void *arg, struct stream *s)
{
    (void)arg;
    ck_assert_uint_lt(guests, GUESTS);
    struct end *d = &guest[guests++];
    *d = (struct end){.s = s, .echoes = true};
    stream_accept(s, &end_ops, d);
}

void
listen_at(const struct filter *f, const char *protocol)
{
    struct err e = ERR_INIT;
    struct addr a = {.host = "0.0.0.0"};
    guests = 0;
    listening = listener_new(loop, &a,
                             &(struct listener_config){.conns_max = GUESTS,
                                                       .per_peer = GUESTS,
                                                       .on_accept = on_accept,
                                                       .filter = f,
                                                       .protocol = protocol},
                             &e);
    ck_assert_msg(listening != NULL, "%s", e.text);
}

void
dial(struct end *d, const struct filter *f, const char *name, const char *protocol, const char *from)
{
    struct addr a = {.host = "127.0.0.1", .port = listener_port(listening)};
    const struct stream_way way = {.filter = f, .name = name, .protocol = protocol};
    (void)str_copy(a.from, sizeof(a.from), str_or(from, ""));
    *d = (struct end){NULL};
    d->s = stream_connect(loop, &a, &way, &end_ops, d);
}

void
say(struct end *d, const void *p, size_t n)
{
    struct buf b = BUF_INIT(64 << 20);
    if (d->s == NULL)
        return;
    buf_put(&b, p, n);
    stream_write(d->s, &b, 1);
}

void
turn_until(const bool *flag)
{
    ck_assert(loop_run_until(loop, flag, WAIT_MS));
}

void
turn_for_bytes(const struct end *d, size_t n)
{
    int64_t until = clock_mono_ns() + WAIT_MS * NS_PER_MS;
    while (d->n < n && !d->closed) {
        bool never = false;
        ck_assert_int_lt(clock_mono_ns(), until);
        loop_run_until(loop, &never, 1);
    }
}

/* It is open, or never will be. */
void
turn_until_settled(const struct end *d)
{
    while (!d->open && !d->closed) {
        bool never = false;
        loop_run_until(loop, &never, 1);
    }
}

void
close_all(void)
{
    for (size_t i = 0; i < guests; i++)
        if (guest[i].s != NULL) {
            stream_close(guest[i].s);
            turn_until(&guest[i].closed);
        }
    listener_close(TAKE(listening));
}
