/* SPDX-License-Identifier: Apache-2.0
 *
 * Datagrams over libuv: see datagram.h.
 */
#include "net/datagram.h"

#include <arpa/inet.h>

#include "common/mem.h"
#include "net/limits.h"
#include "net/loop_int.h"

struct datagram {
    uv_udp_t h;
    struct loop *loop;
    datagram_fn *got;
    void *arg;
    bool closing;
};

static bool
datagram_numeric(const char *host, uint16_t port, struct sockaddr_storage *ret)
{
    return uv_ip4_addr(host, port, (struct sockaddr_in *)ret) == 0 ||
           uv_ip6_addr(host, port, (struct sockaddr_in6 *)ret) == 0;
}

static void
alloc_cb(uv_handle_t *h, size_t hint, uv_buf_t *b)
{
    struct datagram *d = h->data;
    (void)hint;
    b->base = loop_read_buffer(d->loop);
    b->len = STREAM_READ_SIZE;
}

static void
recv_cb(uv_udp_t *h, ssize_t n, const uv_buf_t *b, const struct sockaddr *sa, unsigned flags)
{
    struct datagram *d = h->data;
    struct addr a = {0};
    char from[ADDR_TEXT];
    if (n <= 0 || sa == NULL || (flags & UV_UDP_PARTIAL) || d->closing)
        return; /* nothing more, or an error of what was sent before: its silence tells */
    if (sa->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        uv_ip6_name(in6, a.host, sizeof(a.host));
        a.port = ntohs(in6->sin6_port);
    } else {
        const struct sockaddr_in *in = (const void *)sa;
        uv_ip4_name(in, a.host, sizeof(a.host));
        a.port = ntohs(in->sin_port);
    }
    d->got(d->arg, addr_format(&a, from), (const uint8_t *)b->base, (size_t)n);
}

static void
closed_cb(uv_handle_t *h)
{
    struct datagram *d = h->data;
    mem_free(d);
}

int
datagram_open(struct loop *l, const struct addr *at, datagram_fn *got, void *arg,
              struct datagram **ret, struct err *e)
{
    struct sockaddr_storage ss = {0};
    if (!datagram_numeric(at->host, at->port, &ss))
        return err_set(e, -ERR_INVALID, "'%s' is no IP address: UDP needs one",
                       at->host);
    struct datagram *d = mem_new(NULL, struct datagram);
    d->loop = l;
    d->got = got;
    d->arg = arg;
    ASSERT(uv_udp_init(loop_uv(l), &d->h) == 0);
    d->h.data = d;
    int r = uv_udp_bind(&d->h, (struct sockaddr *)&ss, 0);
    if (r == 0)
        r = uv_udp_recv_start(&d->h, alloc_cb, recv_cb);
    if (r < 0) {
        datagram_close(d);
        return err_errno(e, -r, "listen on UDP %s port %u", at->host, at->port);
    }
    *ret = d;
    return 0;
}

bool
datagram_send(struct datagram *d, const char *to, const uint8_t *p, size_t n)
{
    struct sockaddr_storage ss = {0};
    struct addr a;
    uv_buf_t b = uv_buf_init((char *)(uintptr_t)p, (unsigned)n);
    if (addr_parse(to, 0, &a, NULL) < 0 || a.is_unix || !datagram_numeric(a.host, a.port, &ss))
        return false;
    return uv_udp_try_send(&d->h, &b, 1, (struct sockaddr *)&ss) >= 0;
}

void
datagram_close(struct datagram *d)
{
    if (d == NULL || d->closing)
        return;
    d->closing = true;
    uv_close((uv_handle_t *)&d->h, closed_cb);
}
