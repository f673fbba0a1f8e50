/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/launch/helper_talk.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "isolation/launch/helper.h"
#include "isolation/limits.h"
#include "isolation/packet.h"

#ifdef INSTRUMENTED
const char *__asan_default_options(void); /* it looks at other processes, and may not */
const char *
__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

static int
read_large(const void *ctx, int fd, uint8_t **ret, size_t *n, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_errno(e, errno, "look at the request");
    if (st.st_size <= 0 || st.st_size > HELPER_REQUEST_MAX)
        return err_set(e, -ERR_LIMIT, "the request is larger than %d bytes", HELPER_REQUEST_MAX);
    *ret = mem_array(ctx, uint8_t, (size_t)st.st_size);
    ssize_t k = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_full(fd, *ret, (size_t)st.st_size);
    if (k < 0)
        return err_errno(e, (int)-k, "read the request");
    *n = (size_t)k;
    return 0;
}

int
helper_receive(const void *ctx, const struct type *t, void **ret, struct err *e)
{
    uint8_t *p = mem_array(ctx, uint8_t, HELPER_PACKET_MAX);
    int fds[PACKET_FDS_MAX];
    size_t n_fds = 0;
    struct pollfd asked = {.fd = HELPER_FD_TALK, .events = POLLIN};
    (void)poll(&asked, 1, -1);
    long k = packet_recv(HELPER_FD_TALK, p, HELPER_PACKET_MAX, fds, &n_fds);
    auto_fd int fd = n_fds > 0 ? fds[0] : -1;
    size_t n = k > 0 ? (size_t)k : 0;
    if (n == 0)
        return err_set(e, -ERR_CLOSED, "nobody asks");
    int r = fd >= 0 ? read_large(ctx, fd, &p, &n, e) : 0;
    return r < 0 ? r : mp_decode(ctx, t, SLICE(p, n), BUDGET(4 * HELPER_REQUEST_MAX), ret, e);
}

int
helper_report(const struct buf *b)
{
    return send(HELPER_FD_TALK, b->data, b->len, MSG_NOSIGNAL) == (ssize_t)b->len ? 0 : 1;
}
