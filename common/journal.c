/* SPDX-License-Identifier: Apache-2.0 */
#include "common/journal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/fd.h"
#include "common/str.h"

static _Atomic int sock = -1;
static _Atomic bool stalled;       /* the last line was lost: do not wait for the next one */
static _Atomic unsigned long lost; /* lines */

static bool
is_journal_stream(int fd)
{
    char have[64];
    struct stat st;
    const char *want = getenv("JOURNAL_STREAM");
    if (str_empty(want) || fstat(fd, &st) < 0)
        return false;
    (void)snprintf(have, sizeof(have), "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    return strcmp(have, want) == 0;
}

static int
connect_to(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const struct timeval wait = {.tv_usec = JOURNAL_WAIT_MS * 1000};
    if (!str_copy(a.sun_path, sizeof(a.sun_path), path))
        return -ENAMETOOLONG;
    auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
        connect(fd, (const void *)&a, sizeof(a)) < 0)
        return -errno;
    return TAKE_FD(fd);
}

bool
journal_open(int fd, const char *path)
{
    int old = sock;
    sock = fd >= 0 && is_journal_stream(fd) ? connect_to(path) : -1;
    stalled = false;
    fd_close(&old);
    return journal_active();
}

bool
journal_active(void)
{
    return sock >= 0;
}

void
journal_field(struct buf *b, const char *prefix, const char *name, const char *value)
{
    size_t start = b->len;
    buf_puts(b, prefix);
    for (; *name; name++)
        buf_putc(b, (char)(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name));
    size_t n = strlen(value);
    if (memchr(value, '\n', n) == NULL) {
        buf_putc(b, '=');
    } else { /* NAME, newline, size as little-endian 64 bits, value */
        buf_putc(b, '\n');
        for (int i = 0; i < 8; i++)
            buf_put_u8(b, (uint8_t)((uint64_t)n >> (8 * i)));
    }
    buf_put(b, value, n);
    buf_putc(b, '\n');
    if (b->error != 0) { /* a part of a field would make the rest of the datagram void */
        b->len = start;
        b->error = 0;
    }
}

bool
journal_send(struct buf *b)
{
    bool wait = !stalled;
    unsigned long before = atomic_exchange(&lost, 0);
    if (before > 0) {
        char digits[24];
        (void)snprintf(digits, sizeof(digits), "%lu", before);
        journal_field(b, "PADDOCK_", "LOG_LOST", digits);
    }
    if (send(sock, b->data, b->len, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) >= 0) {
        stalled = false;
        return true;
    }
    bool full = errno == EAGAIN || errno == ENOBUFS;
    stalled = full;
    lost += before + full;
    return full;
}
