/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of log segments. Any bytes as a segment; and segments built from the input with one byte
 * changed. Oracles: what is given out is what was written, in order; damage to a write that another
 * one followed is always refused; a second scan says the same. Configuration entries ride along.
 */
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "server/raft/consensus.h"
#include "server/raft/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { RECORDS_MAX = 32 };

struct written {
    struct record r[RECORDS_MAX];
    size_t end[RECORDS_MAX]; /* offset behind it */
    bool last_of_group[RECORDS_MAX];
    size_t n;
    size_t given;
};

static int
count(void *arg, const struct record *r)
{
    ASSERT(r->n <= RECORD_DATA_MAX);
    uint64_t *sum = arg;
    for (size_t i = 0; i < r->n; i++)
        *sum += ((const uint8_t *)r->data)[i];
    *sum += r->index + r->term;
    return 0;
}

static void
raw(const uint8_t *data, size_t n)
{
    struct segment_end a, b;
    struct err e = ERR_INIT;
    uint64_t x = 0;
    uint64_t y = 0;
    int rc = segment_scan(data, n, count, &x, &a, &e);
    ASSERT(rc == 0 || rc == -ERR_CORRUPT);
    ASSERT(a.end <= n || a.end == SEGMENT_HEAD);
    err_clear(&e);
    ASSERT(segment_scan(data, n, count, &y, &b, &e) == rc && x == y && a.end == b.end);
    auto_mem void *tmp = mem_ctx("fuzz");
    struct peer_list l;
    if (consensus_conf_decode(tmp, data, n, &l) == 0) {
        void *out = NULL;
        size_t len = 0;
        ASSERT(consensus_conf_encode(tmp, &l, &out, &len) == 0 && len <= n + 7);
    }
}

static int
compare(void *arg, const struct record *r)
{
    struct written *w = arg;
    ASSERT(w->given < w->n);
    const struct record *o = &w->r[w->given++];
    ASSERT(r->index == o->index && r->term == o->term && r->type == o->type && r->n == o->n);
    ASSERT(memcmp(r->data, o->data, o->n) == 0);
    return 0;
}

/* Records of sizes taken from the input, in groups; sealed as the writer does. */
static void
build(struct buf *seg, struct written *w, const uint8_t *data, size_t n)
{
    uint8_t head[SEGMENT_HEAD];
    segment_head(head, 1, 1);
    buf_put(seg, head, sizeof(head));
    uint32_t group = SEGMENT_HEAD;
    for (size_t i = 0; i < n && w->n < RECORDS_MAX; i++) {
        size_t len = data[i] & 0x3f;
        len = len < n - i ? len : n - i;
        w->r[w->n] = (struct record){.index = w->n + 1,
                                     .term = 1,
                                     .type = RECORD_COMMAND + data[i] % 3,
                                     .data = data + i,
                                     .n = len};
        size_t at = seg->len;
        record_put(seg, &w->r[w->n]);
        ASSERT(buf_error(seg) == 0 && record_seal(seg->data, at, group) == seg->len);
        w->end[w->n] = seg->len;
        w->last_of_group[w->n] = (data[i] & 0x80) != 0;
        if (w->last_of_group[w->n])
            group = (uint32_t)seg->len;
        w->n++;
    }
}

static bool
is_padding(const struct written *w, size_t at)
{
    size_t from = SEGMENT_HEAD;
    for (size_t i = 0; i < w->n; i++) {
        if (at < w->end[i])
            return at >= from + RECORD_HEAD + w->r[i].n;
        from = w->end[i];
    }
    return true;
}

static void
flipped(const uint8_t *data, size_t n)
{
    if (n < 4)
        return;
    struct buf seg = BUF_INIT(1 << 20);
    struct written w = {.n = 0};
    build(&seg, &w, data + 3, n - 3);
    for (int i = 0; i < 64; i++)
        buf_put_u64(&seg, 0);
    size_t at = ((size_t)data[0] << 8 | data[1]) % seg.len;
    seg.data[at] ^= data[2];
    size_t group_end = 0; /* end of the group that was hit, if another follows */
    for (size_t i = 0; i + 1 < w.n; i++) {
        if (w.last_of_group[i] && at < w.end[i]) {
            group_end = w.end[i];
            break;
        }
    }
    struct segment_end end;
    struct err e = ERR_INIT;
    int rc = segment_scan(seg.data, seg.len, compare, &w, &end, &e);
    bool harmless = data[2] == 0 || is_padding(&w, at);
    if (at >= SEGMENT_HEAD && !harmless && group_end != 0)
        ASSERT(rc == -ERR_CORRUPT);
    if (harmless && at >= SEGMENT_HEAD && (w.n == 0 || at < w.end[w.n - 1]))
        ASSERT(rc == 0 && w.given == w.n && !end.torn);
    buf_done(&seg);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] & 1)
        raw(data + 1, n - 1);
    else
        flipped(data + 1, n - 1);
    return 0;
}
