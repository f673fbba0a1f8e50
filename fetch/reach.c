/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/reach.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"

bool
reach_refused(const struct sockaddr *sa, struct reach_name *name)
{
    static const struct in6_addr amazon = {
        .s6_addr = {0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}}; /* fd00:ec2::254 */
    struct in_addr v4 = {0};
    bool is4 = sa->sa_family == AF_INET;
    const struct sockaddr_in6 *s6 = (const void *)sa;
    name->text[0] = '\0';
    if (is4) {
        v4 = ((const struct sockaddr_in *)(const void *)sa)->sin_addr;
    } else if (sa->sa_family != AF_INET6) {
        return true;
    } else if (IN6_IS_ADDR_V4MAPPED(&s6->sin6_addr)) {
        memcpy(&v4, s6->sin6_addr.s6_addr + 12, sizeof(v4));
        is4 = true;
    }
    (void)inet_ntop(is4 ? AF_INET : AF_INET6,
                    is4 ? (const void *)&v4 : (const void *)&s6->sin6_addr, name->text,
                    sizeof(name->text));
    if (!is4)
        return IN6_IS_ADDR_LINKLOCAL(&s6->sin6_addr) || IN6_IS_ADDR_MULTICAST(&s6->sin6_addr) ||
               memcmp(&s6->sin6_addr, &amazon, sizeof(amazon)) == 0;
    uint32_t a = ntohl(v4.s_addr);
    return a >> 16 == 0xa9fe /* 169.254.0.0/16 */ || a >> 28 >= 0xe ||
           a == 0x646464c8 /* 100.100.100.200 */ || a == 0xa83f8110 /* 168.63.129.16 */;
}

int
reach_explain(const struct reach_name *name, struct err *e)
{
    return err_set(e, -ERR_POLICY,
                   "the address %s is not for artifacts: it is that of a "
                   "metadata service, or link-local",
                   name->text);
}

static int
reach_find(const char *host, const char *port, struct addrinfo **ret, struct err *e)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    int r = getaddrinfo(host, port, &hints, ret);
    return r == 0 ? 0
                  : err_set(e, -ERR_UNAVAILABLE, "find the address of \"%.255s\": %s", host,
                            r == EAI_SYSTEM ? strerror(errno) : gai_strerror(r));
}

int
reach_lookup(const char *host, const char *port, struct reach_name *ret, struct err *e)
{
    struct addrinfo *all = NULL;
    int r = reach_find(host, port, &all, e);
    if (r < 0)
        return r;
    r = -ERR_POLICY;
    for (struct addrinfo *a = all; a != NULL && r < 0; a = a->ai_next)
        r = reach_refused(a->ai_addr, ret) ? -ERR_POLICY : 0;
    freeaddrinfo(all);
    return r < 0 ? reach_explain(ret, e) : 0;
}

static int
connect_one(const struct addrinfo *a)
{
    int error = 0;
    socklen_t n = sizeof(error);
    auto_fd int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
        return TAKE_FD(fd);
    if (errno != EINPROGRESS)
        return -errno;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (poll(&p, 1, REACH_CONNECT_MS) <= 0)
        return -ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error != 0)
        return -(error != 0 ? error : errno);
    return TAKE_FD(fd);
}

int
reach_connect(const char *host, const char *port, struct err *e)
{
    struct addrinfo *all = NULL;
    struct reach_name name;
    int r = reach_find(host, port, &all, e), fd = -1;
    if (r < 0)
        return r;
    for (struct addrinfo *a = all; a != NULL && fd < 0; a = a->ai_next) {
        if (reach_refused(a->ai_addr, &name)) {
            err_clear(e);
            r = reach_explain(&name, e);
            continue;
        }
        fd = connect_one(a);
        if (fd < 0) {
            err_clear(e);
            r = err_errno(e, -fd, "connect to \"%.255s\" port %s", host, port);
        }
    }
    freeaddrinfo(all);
    if (fd >= 0)
        err_clear(e);
    return fd >= 0 ? fd : r;
}
