/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers say to each other about the log, as bytes. Pure (fuzzed by fuzz-raft). Each is the
 * body of a frame (net/peer_conn.h), integers big-endian:
 *
 *   u32 crc32c of all behind it | u8 kind | u8 version | what the kind has:
 *
 *   1 hello     u64 from | u64 to | u8 length | cluster id | u8 length | address of the sender
 *   2 welcome   nothing
 *   3 refused   u16 length | why
 *   4 message   u8 type | u8 flags (1 disrupt, 2 pre-vote, 4 granted) | u64 term | u64 index |
 *               u64 term of the entry at it | u64 commit | u64 rejected | u64 last | u64 stamp |
 *               u32 entries | each: u64 term | u8 type | u32 length | data
 *
 * A connection begins with a hello of who made it, which alone sends messages then; the other side
 * answers it once, with welcome or refused. A server that is behind the log is sent the leader's
 * snapshot file, piece after piece; with each piece it says how much of the file it has.
 */
#ifndef PADDOCK_SERVER_RAFT_WIRE_H
#define PADDOCK_SERVER_RAFT_WIRE_H

#include "common/buf.h"
#include "server/raft/consensus.h"

#define WIRE_PROTOCOL_BYTE 'R'
#define WIRE_PROTOCOL "paddock-raft" /* the same to a filter */
enum {
    WIRE_VERSION = 2,
    WIRE_CLUSTER_MAX = 36, /* bytes of the id of a cluster, a UUID */
    WIRE_BODY_MAX = RECORD_DATA_MAX + (1 << 20),
    WIRE_ENTRY_MIN = 13,
};

enum wire_kind {
    WIRE_HELLO = 1,
    WIRE_WELCOME,
    WIRE_REFUSED,
    WIRE_MSG,
    WIRE_PIECE,
    WIRE_PIECE_TAKEN
};

/* A piece of a snapshot's file; taken: only index and offset, up to which it is there. */
struct wire_piece {
    uint64_t index; /* of the snapshot */
    uint64_t size;  /* of the file */
    uint64_t offset;
    const uint8_t *data; /* borrowed from the bytes */
    size_t n;
};

struct wire {
    enum wire_kind kind;
    /* hello */
    uint64_t from, to;
    const char *cluster;
    const char *addr;
    const char *why; /* refused */
    /* message: entries' data is borrowed from the bytes; `peer`, `addr` and `conf` are not on the
     * wire */
    struct peer_msg msg;
    struct wire_piece piece;
};

/* Appends the body. */
void wire_put(struct buf *out, const struct wire *w);
/* -ERR_INVALID, or -ERR_UNSUPPORTED for another version, with words; strings and entries are owned
 * by ctx. */
int wire_get(const void *ctx, const uint8_t *p, size_t n, struct wire *ret, struct err *e);
/* Bytes that an entry takes. */
size_t wire_entry_size(const struct record *r);

#endif
