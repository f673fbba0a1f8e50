/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers tell each other by gossip, as bytes. Pure (fuzzed by fuzz-gossip). Integers are
 * big-endian.
 *
 *   u8 version | u8 sealed | sealed 0: inner | u32 crc32c of all before it
 *                            sealed 1: 12 bytes nonce | inner, in AES-GCM | 16 bytes tag
 *
 *   inner: u8 kind | u64 from | u64 to | u64 session | u64 seq | u64 cookie | u64 token
 *          | u64 target | u8 more | u8 length | address | u16 statements
 *   each:  u8 state | u64 id | u32 incarnation | u64 by | u16 length | what the member says of
 *          itself
 *
 * `from` and `to` are ids of servers (`to` 0: whoever is at that address). The session is new with
 * each start of the sender, the sequence number new with each packet, so that what was recorded and
 * is sent again is known (server/gossip/guard.h). A key ring has a first key, by which this server
 * seals, and others, by which it still opens; with one, what is not sealed is refused.
 */
#ifndef PADDOCK_SERVER_GOSSIP_PACKET_H
#define PADDOCK_SERVER_GOSSIP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/buf.h"
#include "common/err.h"
#include "server/limits.h"

enum {
    PACKET_VERSION = 1,
    PACKET_NONCE = 12,
    PACKET_TAG = 16,
    GOSSIP_KEY_MAX = 32,
    PACKET_HEAD = 2 + PACKET_NONCE + PACKET_TAG + 1 + 7 * 8 + 1 + 1 + 2, /* without address */
    STATEMENT_HEAD = 1 + 8 + 4 + 8 + 2,
};

enum packet_kind {
    PACKET_PING = 1, /* of a member: is it there? */
    PACKET_ASK,      /* of another: is the member `target`, at `addr`, there? */
    PACKET_ACK,      /* to either */
    PACKET_NACK,     /* to the second: this server is, that one may not be */
    PACKET_TELL,     /* statements alone */
    PACKET_WHO,      /* the session `target` is new: say it again with this cookie */
    PACKET_SYNC,     /* all members; over a connection */
    PACKET_KEYS, /* enum keys_op `target` on the key ring, key `addr`; in answer, each a key, or,
                  * `target` not 0, why not; over a connection */
    PACKET_KINDS = PACKET_KEYS,
};

enum member_state {
    MEMBER_ALIVE = 1,
    MEMBER_SUSPECT,
    MEMBER_FAILED,
    MEMBER_LEFT,
    MEMBER_PRUNED, /* it left, and is not shown any more */
};

/* About one member; `by` says it. */
struct statement {
    enum member_state state;
    uint64_t id, by;
    uint32_t incarnation;
    const struct server_hello *about; /* NULL: nothing new */
};

struct packet {
    enum packet_kind kind;
    uint64_t from, to, session, seq;
    uint64_t cookie; /* 0: none was given */
    uint64_t token;  /* of the question, and of its answer */
    uint64_t target;
    const char *addr; /* "": none */
    bool more;        /* of a sync: there is another packet */
    struct statements { struct statement *v; size_t n; } says;
};

/* A key of 16, 24 or 32 bytes: AES-128, -192, -256. */
struct gossip_key {
    uint8_t v[GOSSIP_KEY_MAX];
    size_t n;
};
struct gossip_keys {
    struct gossip_key v[GOSSIP_KEYS_MAX]; /* the first one seals */
    size_t n;                             /* 0: nothing is sealed */
};

/* Why a packet is refused, to be counted. */
enum packet_fault {
    PACKET_FINE,
    PACKET_CUT,      /* no packet, or damaged */
    PACKET_VERSION_OTHER,
    PACKET_OPEN,     /* not sealed, where there are keys */
    PACKET_NO_KEY,   /* sealed, where there is none */
    PACKET_FORGED,   /* not by one of our keys */
    PACKET_BAD,      /* what it holds does not decode */
    PACKET_FAULTS,
};
const char *packet_fault_text(enum packet_fault f);

/* Bytes of a member's own words in a statement; 0: more than there may be, or others than there may
 * be. */
size_t packet_about_size(const struct server_hello *about);
/* Appends. `nonce` is used for no other packet; without keys it is not read. The buffer's error
 * says that it does not fit. */
void packet_put(struct buf *out, const struct packet *p, const struct gossip_keys *keys,
                const uint8_t nonce[PACKET_NONCE]);
/* Strings and statements are owned by ctx. */
enum packet_fault packet_get(const void *ctx, const uint8_t *p, size_t n,
                             const struct gossip_keys *keys, struct packet *ret);

#endif
