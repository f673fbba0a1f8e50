/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/network/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { ANSWER_S = 10, SEND_BYTES = 16 << 20 };

int
netlink_open(struct netlink *n, int bus)
{
    const struct timeval limit = {.tv_sec = ANSWER_S};
    const int on = 1, bytes = SEND_BYTES;
    *n = (struct netlink){.s = mnl_socket_open2(bus, SOCK_CLOEXEC)};
    if (n->s == NULL || mnl_socket_bind(n->s, 0, MNL_SOCKET_AUTOPID) < 0) {
        int r = -errno;
        netlink_close(n);
        return r;
    }
    int fd = mnl_socket_get_fd(n->s);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
    (void)mnl_socket_setsockopt(n->s, NETLINK_CAP_ACK, (void *)(uintptr_t)&on, sizeof(on));
    return 0;
}

void
netlink_close(struct netlink *n)
{
    if (n->s != NULL)
        (void)mnl_socket_close(n->s);
    n->s = NULL;
}

struct nlmsghdr *
netlink_begin(char *buf, uint16_t type, uint16_t flags, size_t extra, void **ret_extra)
{
    struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
    h->nlmsg_type = type;
    h->nlmsg_flags = NLM_F_REQUEST | flags;
    *ret_extra = mnl_nlmsg_put_extra_header(h, extra);
    return h;
}

/* One datagram; mnl_socket_recvfrom() refuses what is not the kernel's. */
static int
netlink_receive(struct netlink *n, char *buf, size_t size)
{
    ssize_t r;
    do
        r = mnl_socket_recvfrom(n->s, buf, size);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    return (int)r;
}

/* Reads an NLMSG_ERROR message: 0, or the kernel's -errno. */
static int
error_of(const struct nlmsghdr *h)
{
    const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);
    if (mnl_nlmsg_get_payload_len(h) < sizeof(e->error))
        return -EPROTO;
    return e->error > 0 ? -EPROTO : e->error;
}

static int
send_all(struct netlink *n, const void *p, size_t bytes)
{
    ssize_t r;
    do
        r = mnl_socket_sendto(n->s, p, bytes);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : r != (ssize_t)bytes ? -EMSGSIZE : 0;
}

static int
netlink_none(const struct nlmsghdr *h, void *arg)
{
    (void)h;
    (void)arg;
    return 0;
}

int
netlink_each(struct netlink *n, struct nlmsghdr *h, int (*fn)(const struct nlmsghdr *, void *),
             void *arg)
{
    char buf[NETLINK_BUFFER * 4];
    uint32_t seq = h->nlmsg_seq = ++n->seq;
    bool many = (h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP,
         ack = (h->nlmsg_flags & NLM_F_ACK) != 0;
    int result = 0, r = send_all(n, h, h->nlmsg_len);
    while (r == 0) {
        int len = netlink_receive(n, buf, sizeof(buf));
        if (len < 0)
            return len;
        for (const struct nlmsghdr *m = (void *)buf; mnl_nlmsg_ok(m, len);
             m = mnl_nlmsg_next(m, &len)) {
            if (m->nlmsg_seq != seq)
                continue;
            if (m->nlmsg_type == NLMSG_ERROR)
                return result < 0 ? result : error_of(m);
            if (m->nlmsg_type == NLMSG_DONE)
                return result;
            int x = fn(m, arg);
            result = result < 0 ? result : x;
            if (!many && !ack)
                return result;
        }
    }
    return r;
}

int
netlink_ack(struct netlink *n, struct nlmsghdr *h)
{
    h->nlmsg_flags |= NLM_F_ACK;
    return netlink_each(n, h, netlink_none, NULL);
}

int
netlink_batch(struct netlink *n, const void *p, size_t bytes, uint32_t first, uint32_t last)
{
    char buf[NETLINK_BUFFER * 4];
    int r = send_all(n, p, bytes);
    while (r == 0) {
        int len = netlink_receive(n, buf, sizeof(buf));
        if (len < 0)
            return len;
        for (const struct nlmsghdr *m = (void *)buf; mnl_nlmsg_ok(m, len);
             m = mnl_nlmsg_next(m, &len)) {
            if (m->nlmsg_type != NLMSG_ERROR || m->nlmsg_seq < first || m->nlmsg_seq > last)
                continue;
            r = error_of(m);
            if (r < 0 || m->nlmsg_seq == last)
                return r;
        }
    }
    return r;
}
