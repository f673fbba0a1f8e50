/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes go from pipe to file by splice(2): none of them enters the shim's memory. Files are opened
 * below the log directory's fd with O_NOFOLLOW; the directory is root's, so the task cannot put
 * anything under these names.
 */
#include <fcntl.h>
#include <linux/errno.h>
#include <linux/poll.h>
#include <linux/stat.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "isolation/confine/raw.h"
#include "isolation/shim/parts.h"

enum { CHUNK = 65536, SCRATCH = 1024 };

static void
file_name(char *out, const char *prefix, uint32_t index)
{
    size_t n = strnlen(prefix, SHIM_NAME_MAX - 12);
    memcpy(out, prefix, n);
    char digits[10];
    unsigned k = 0;
    do {
        digits[k++] = (char)('0' + index % 10);
        index /= 10;
    } while (index > 0);
    while (k > 0)
        out[n++] = digits[--k];
    out[n] = '\0';
}

int
shim_log_open(struct shim_log *l)
{
    char name[SHIM_NAME_MAX];
    file_name(name, l->name, l->index);
    long fd = RAW(SYS_openat, l->dir, name,
                  O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);
    if (fd < 0)
        return (int)fd;
    struct statx st;
    long r = RAW(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_SIZE | STATX_GID, &st);
    if (r < 0 || (st.stx_mode & 0170000) != 0100000) {
        raw_close(fd);
        return r < 0 ? (int)r : -EINVAL;
    }
    if (st.stx_gid != l->gid) /* fails without root: then it is ours anyway */
        (void)RAW(SYS_fchown, fd, -1, l->gid);
    l->file = (int)fd;
    l->bytes = st.stx_size;
    return 0;
}

/* On to the next name; the oldest goes. */
static void
log_advance(struct shim_log *l)
{
    l->index++;
    while (l->index - l->first >= l->files_max) {
        char name[SHIM_NAME_MAX];
        file_name(name, l->name, l->first++);
        (void)RAW(SYS_unlinkat, l->dir, name, 0);
    }
}

static void
log_rotate(struct shim_log *l)
{
    raw_close(l->file);
    l->file = -1;
    log_advance(l);
}

/* A name that is taken by something else than a file of ours is passed over for the next write. */
static int
open_or_pass(struct shim_log *l)
{
    int r = shim_log_open(l);
    if (r == -ELOOP || r == -EISDIR || r == -ENXIO || r == -EINVAL)
        log_advance(l);
    return r;
}

/* Takes bytes out of the pipe that have nowhere to go. */
static long
log_discard(struct shim_log *l, uint64_t max)
{
    char scratch[SCRATCH];
    long n = RAW(SYS_read, l->pipe, scratch, max < SCRATCH ? max : SCRATCH);
    if (n > 0)
        (*l->errors)++;
    return n;
}

/* Copies, on a file system that does not support splice. Bytes that cannot be written leave no
 * hole. */
static long
log_copy(struct shim_log *l, uint64_t max)
{
    char scratch[SCRATCH];
    long n = RAW(SYS_read, l->pipe, scratch, max < SCRATCH ? max : SCRATCH);
    for (long done = 0; done < n;) {
        long w = RAW(SYS_pwrite64, l->file, scratch + done, n - done, l->bytes);
        if (w <= 0) {
            (*l->errors)++;
            break;
        }
        done += w;
        l->bytes += (uint64_t)w;
    }
    return n;
}

static long
log_move(struct shim_log *l)
{
    if (l->file < 0 && open_or_pass(l) < 0)
        return log_discard(l, SCRATCH);
    if (l->bytes >= l->bytes_max) {
        /* an empty file would push an old one out: rotate when there is something to write */
        struct pollfd p = {.fd = l->pipe, .events = POLLIN};
        struct timespec now = {0};
        if (RAW(SYS_ppoll, &p, 1, &now, NULL, 8) < 0)
            p.revents = POLLIN; /* a limit of no descriptor at all */
        if ((p.revents & POLLIN) == 0)
            return (p.revents & (POLLHUP | POLLERR)) != 0 ? 0 : -EAGAIN;
        log_rotate(l);
        if (open_or_pass(l) < 0)
            return log_discard(l, SCRATCH);
    }
    uint64_t room = l->bytes_max > l->bytes ? l->bytes_max - l->bytes : 1;
    int64_t at = (int64_t)l->bytes;
    long n = RAW(SYS_splice, l->pipe, NULL, l->file, &at, room < CHUNK ? room : CHUNK,
                 2 /* SPLICE_F_NONBLOCK */);
    if (n == -EINVAL)
        return log_copy(l, room);
    if (n < 0 && n != -EAGAIN && n != -EINTR)
        return log_discard(l, SCRATCH); /* disk full, quota, file size limit */
    if (n > 0)
        l->bytes += (uint64_t)n;
    return n;
}

bool
shim_log_pump(struct shim_log *l, unsigned rounds)
{
    while (l->pipe >= 0 && rounds-- > 0) {
        long n = log_move(l);
        if (n == -EAGAIN || n == -EINTR)
            break;
        if (n <= 0) {
            raw_close(l->pipe);
            l->pipe = -1;
        }
    }
    return l->pipe >= 0;
}
