/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/packet.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "common/mem.h"
#include "isolation/limits.h"

union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int) * PACKET_FDS_MAX)];
};

int
packet_send(int fd, const void *p, size_t n, const int *fds, size_t n_fds)
{
    union control c = {0};
    struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    ASSERT(n_fds <= PACKET_FDS_MAX);
    if (n_fds > 0) {
        m.msg_control = c.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *h = CMSG_FIRSTHDR(&m);
        h->cmsg_level = SOL_SOCKET;
        h->cmsg_type = SCM_RIGHTS;
        h->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(h), fds, sizeof(int) * n_fds);
    }
    ssize_t r;
    do
        r = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return errno == ENOBUFS ? -EAGAIN : -errno;
    return 0;
}

static void
take_fds(struct msghdr *m, int *fds, size_t *n_fds)
{
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h != NULL; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(h) + i * sizeof(int), sizeof(fd));
            if (*n_fds < PACKET_FDS_MAX)
                fds[(*n_fds)++] = fd;
            else
                fd_close(&fd);
        }
    }
}

long
packet_recv(int fd, void *buf, size_t size, int *fds, size_t *n_fds)
{
    union control c;
    struct iovec iov = {.iov_base = buf, .iov_len = size};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (fds != NULL) {
        m.msg_control = c.bytes;
        m.msg_controllen = sizeof(c.bytes);
        *n_fds = 0;
    }
    ssize_t r;
    do
        r = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (r < 0 && errno == EINTR);
    if (r < 0)
        return errno == ECONNRESET ? 0 : -errno;
    if (fds != NULL)
        take_fds(&m, fds, n_fds);
    if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        for (size_t i = 0; fds != NULL && i < *n_fds; i++)
            fd_close(&fds[i]);
        return -ERR_LIMIT;
    }
    return r;
}

void
packet_buffers(int fd)
{
    int n = PROTO_PACKET_MAX + 65536;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n, sizeof(n));
}
