/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of a log segment: see segment.h.
 */
#include "server/raft/segment.h"

#include <string.h>

#include "common/crc.h"
#include "common/mem.h"

static const uint8_t segment_magic[8] = {'P', 'D', 'K', 'L', 'O', 'G', '1', '\n'};
enum { RECORD_MAGIC = 0x50524543, CRC_AT = 32 };

static uint32_t
get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t
get_u64(const uint8_t *p)
{
    return (uint64_t)get_u32(p) << 32 | get_u32(p + 4);
}

static void
put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static size_t
segment_pad8(size_t n)
{
    return (n + 7) & ~(size_t)7;
}

size_t
record_size(size_t n)
{
    return RECORD_HEAD + segment_pad8(n);
}

void
record_put(struct buf *out, const struct record *r)
{
    ASSERT(r->n <= RECORD_DATA_MAX);
    static const uint8_t zeros[8];
    buf_put_u32(out, RECORD_MAGIC);
    buf_put_u32(out, (uint32_t)r->n);
    buf_put_u64(out, r->index);
    buf_put_u64(out, r->term);
    buf_put_u8(out, (uint8_t)r->type);
    buf_put(out, zeros, 3);
    buf_put_u32(out, 0);
    buf_put_u64(out, 0);
    buf_put(out, r->data, r->n);
    buf_put(out, zeros, segment_pad8(r->n) - r->n);
}

static uint32_t
record_crc(const uint8_t *p, size_t n)
{
    return crc32c(crc32c(0, p, CRC_AT), p + RECORD_HEAD, n);
}

size_t
record_seal(uint8_t *p, size_t at, uint32_t group)
{
    uint8_t *r = p + at;
    size_t n = get_u32(r + 4);
    ASSERT(get_u32(r) == RECORD_MAGIC && n <= RECORD_DATA_MAX);
    put_u32(r + 28, group);
    put_u32(r + CRC_AT, record_crc(r, n));
    return at + record_size(n);
}

void
segment_head(uint8_t out[SEGMENT_HEAD], uint64_t seq, uint64_t first)
{
    memset(out, 0, SEGMENT_HEAD);
    memcpy(out, segment_magic, sizeof(segment_magic));
    put_u32(out + 8, (uint32_t)(first >> 32));
    put_u32(out + 12, (uint32_t)first);
    put_u32(out + 16, (uint32_t)(seq >> 32));
    put_u32(out + 20, (uint32_t)seq);
    put_u32(out + 28, crc32c(0, out, 28));
}

/* The record at `at`, if a whole and valid one is there. */
static bool
record_get(const uint8_t *p, size_t n, size_t at, struct record *r, uint32_t *ret_group)
{
    if (n - at < RECORD_HEAD)
        return false;
    const uint8_t *h = p + at;
    size_t len = get_u32(h + 4);
    if (get_u32(h) != RECORD_MAGIC || len > RECORD_DATA_MAX || record_size(len) > n - at)
        return false;
    if (h[24] < RECORD_COMMAND || h[24] > RECORD_TRUNCATE || get_u32(h + 36) != 0 ||
        get_u32(h + CRC_AT) != record_crc(h, len))
        return false;
    r->index = get_u64(h + 8);
    r->term = get_u64(h + 16);
    r->type = h[24];
    r->data = h + RECORD_HEAD;
    r->n = len;
    *ret_group = get_u32(h + 28);
    return true;
}

/* Nothing valid at `at`: the clean end, a torn write, or corruption? */
static int
judge_end(const uint8_t *p, size_t n, size_t at, struct segment_end *ret, struct err *e)
{
    size_t i = at;
    while (i < n && p[i] == 0)
        i++;
    if (i == n)
        return 0;
    for (size_t o = segment_pad8(at); o < n && n - o >= RECORD_HEAD; o += 8) {
        struct record r;
        uint32_t group;
        if (get_u32(p + o) == RECORD_MAGIC && record_get(p, n, o, &r, &group) && group > at) {
            return err_set(e, -ERR_CORRUPT,
                           "acknowledged data at offset %zu is damaged (entry %llu at offset %zu "
                           "was written after it)",
                           at, (unsigned long long)r.index, o);
        }
    }
    ret->torn = true;
    return 0;
}

int
segment_scan(const uint8_t *p, size_t n, segment_fn *fn, void *arg, struct segment_end *ret,
             struct err *e)
{
    *ret = (struct segment_end){.end = SEGMENT_HEAD};
    bool head = n >= SEGMENT_HEAD && memcmp(p, segment_magic, sizeof(segment_magic)) == 0 &&
                get_u32(p + 28) == crc32c(0, p, 28);
    if (!head) {
        ret->headless = true;
        ret->end = 0;
        size_t at = SEGMENT_HEAD < n ? SEGMENT_HEAD : n;
        struct record r;
        uint32_t group;
        for (size_t o = at; o < n && n - o >= RECORD_HEAD; o += 8) {
            if (record_get(p, n, o, &r, &group))
                return err_set(e, -ERR_CORRUPT, "the head of the segment is damaged");
        }
        return 0;
    }
    ret->first = get_u64(p + 8);
    ret->seq = get_u64(p + 16);
    size_t at = SEGMENT_HEAD;
    struct record r;
    uint32_t group;
    while (at < n && record_get(p, n, at, &r, &group)) {
        if (group > at)
            return err_set(e, -ERR_CORRUPT, "the record at offset %zu claims a later write", at);
        int rc = fn != NULL ? fn(arg, &r) : 0;
        if (rc < 0)
            return rc;
        at += record_size(r.n);
        ret->end = at;
    }
    return at < n ? judge_end(p, n, at, ret, e) : 0;
}
