/* SPDX-License-Identifier: Apache-2.0
 *
 * The format of a log segment, and its reader. Pure: bytes in, records out (fuzzed by fuzz-log).
 *
 * A segment is a preallocated file of zeros, written front to back. It starts with a head:
 *
 *   "PDKLOG1\n" | u64 next index at its start | u64 sequence number | u32 0 |
 *   u32 crc32c of the 28 bytes before
 *
 * then records, each at a multiple of 8, all integers big-endian:
 *
 *   u32 magic | u32 length of data | u64 index | u64 term | u8 type | u8 0[3] | u32 group |
 *   u32 crc32c of the 32 bytes before, followed by the data | u32 0 | data, zero-padded
 *
 * `group` is the offset at which the write that carried this record began. A write begins only
 * after the write before is durable, so a valid record behind damage, whose group lies behind the
 * damage as well, proves that acknowledged data was damaged afterwards (corruption). Damage with
 * nothing behind it but records of the same write is a torn write, which nobody was told about.
 */
#ifndef PADDOCK_SERVER_RAFT_SEGMENT_H
#define PADDOCK_SERVER_RAFT_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "server/limits.h"

enum {
    SEGMENT_HEAD = 32,
    RECORD_HEAD = 40,
};

enum record_type { RECORD_COMMAND = 1, RECORD_BARRIER = 2, RECORD_CONFIG = 3, RECORD_TRUNCATE = 4 };

struct record {
    uint64_t index; /* RECORD_TRUNCATE: the first index that is dropped */
    uint64_t term;
    enum record_type type;
    const void *data; /* borrowed */
    size_t n;
};

/* Bytes that a record of `n` bytes of data takes. */
size_t record_size(size_t n);
/* Appends a record without group and crc; record_seal() fills them in place and returns the offset
 * behind it. */
void record_put(struct buf *out, const struct record *r);
size_t record_seal(uint8_t *p, size_t at, uint32_t group);

void segment_head(uint8_t out[SEGMENT_HEAD], uint64_t seq, uint64_t first);

struct segment_end {
    uint64_t first; /* of the head */
    uint64_t seq;
    size_t end;     /* offset behind the last good record */
    bool torn;      /* what follows is a torn write and must be cut off */
    bool headless;  /* the head itself is missing or torn, and nothing valid follows */
};

typedef int segment_fn(void *arg, const struct record *r);

/* Gives every good record to fn (may be NULL) in order; a negative answer stops and is returned.
 * -ERR_CORRUPT, with the offset in the message, when acknowledged data is damaged. */
int segment_scan(const uint8_t *p, size_t n, segment_fn *fn, void *arg, struct segment_end *ret,
                 struct err *e);

#endif
