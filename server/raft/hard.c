/* SPDX-License-Identifier: Apache-2.0
 *
 * Term and vote: see hard.h.
 */
#include "server/raft/hard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/crc.h"
#include "common/fd.h"
#include "common/mem.h"

/* A block each: a write that is torn within its block cannot reach the other. */
enum { HARD_SLOT = 4096 };

static void
hard_encode(uint8_t out[HARD_SLOT], uint64_t seq, uint64_t term, uint64_t vote)
{
    struct buf b = BUF_INIT(64);
    buf_puts(&b, "PDKHARD2");
    buf_put_u64(&b, seq);
    buf_put_u64(&b, term);
    buf_put_u64(&b, vote);
    buf_put_u32(&b, crc32c(0, b.data, b.len));
    ASSERT(buf_error(&b) == 0 && b.len == 36);
    memset(out, 0, HARD_SLOT);
    memcpy(out, b.data, b.len);
    buf_done(&b);
}

static bool
hard_decode(const uint8_t in[HARD_SLOT], uint64_t *seq, uint64_t *term, uint64_t *vote)
{
    uint64_t v[3];
    uint8_t check[HARD_SLOT];
    for (size_t i = 0; i < 3; i++) {
        v[i] = 0;
        for (size_t j = 0; j < 8; j++)
            v[i] = v[i] << 8 | in[8 + i * 8 + j];
    }
    hard_encode(check, v[0], v[1], v[2]);
    if (memcmp(check, in, HARD_SLOT) != 0)
        return false;
    *seq = v[0];
    *term = v[1];
    *vote = v[2];
    return true;
}

/* Whole or not at all, with one good slot from the beginning: where none is good, data was lost. */
static int
hard_create(int dirfd)
{
    uint8_t b[2 * HARD_SLOT] = {0};
    hard_encode(b, 0, 0, 0);
    return file_write_atomic(dirfd, "hard-state", b, sizeof(b), 0600);
}

int
hard_open(struct hard *h, int dirfd, const char *dir, struct err *e)
{
    h->fd = openat(dirfd, "hard-state", O_RDWR | O_CLOEXEC);
    if (h->fd < 0 && errno == ENOENT) {
        int rc = hard_create(dirfd);
        if (rc < 0)
            return err_errno(e, -rc, "make '%s/hard-state'", dir);
        h->fd = openat(dirfd, "hard-state", O_RDWR | O_CLOEXEC);
    }
    if (h->fd < 0)
        return err_errno(e, errno, "open '%s/hard-state'", dir);
    uint8_t b[2 * HARD_SLOT] = {0};
    ssize_t n = fd_read_full(h->fd, b, sizeof(b));
    if (n < 0)
        return err_errno(e, (int)-n, "read '%s/hard-state'", dir);
    bool any = false;
    for (size_t i = 0; i < 2; i++) {
        uint64_t seq, term, vote;
        if (hard_decode(b + i * HARD_SLOT, &seq, &term, &vote) && seq >= h->seq) {
            h->seq = seq;
            h->term = term;
            h->vote = vote;
            any = true;
        }
    }
    if (!any)
        return err_set(e, -ERR_CORRUPT,
                       "'%s/hard-state' (term and vote) is damaged; this server could vote twice. "
                       "Restore the file, or remove '%s' and let the server rejoin empty",
                       dir, dir);
    return 0;
}

int
hard_set(struct hard *h, uint64_t term, uint64_t vote, const char **ret_what)
{
    if (term == h->term && vote == h->vote)
        return 0;
    /* a term does not go back, and has one vote */
    ASSERT(term > h->term || (term == h->term && h->vote == 0));
    h->seq++;
    h->term = term;
    h->vote = vote;
    uint8_t b[HARD_SLOT];
    hard_encode(b, h->seq, term, vote);
    *ret_what = "write term and vote";
    int rc = fd_pwrite_full(h->fd, b, sizeof(b), (off_t)(h->seq % 2) * HARD_SLOT);
    if (rc < 0)
        return rc;
    *ret_what = "sync term and vote";
    return fdatasync(h->fd) != 0 ? -errno : 0;
}
