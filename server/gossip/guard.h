/* SPDX-License-Identifier: Apache-2.0
 *
 * What was recorded and is sent again is not listened to. Each start of a server is a session; of
 * each server the session is known, and which of its latest packets have come. A session that is
 * not known is asked for (PACKET_WHO): its next packet bears the cookie of that question, which was
 * never given for another session, nor before the last one was accepted. An answer proves itself by
 * the token of its question. Pure.
 */
#ifndef PADDOCK_SERVER_GOSSIP_GUARD_H
#define PADDOCK_SERVER_GOSSIP_GUARD_H

#include <stdint.h>

#include "server/gossip/packet.h"

struct guard;

/* `key`: chance, by which cookies are made. */
struct guard *guard_new(const void *ctx, const uint64_t key[2]);

enum guard_says {
    GUARD_FRESH,
    GUARD_AGAIN, /* it has come before, or is too old to tell */
    GUARD_WHO,   /* its session is not known: ask by *ret_cookie */
};
/* A packet that decodes. `proved`: it answers a question that was never asked before. */
enum guard_says guard_take(struct guard *g, const struct packet *p, bool proved,
                           uint64_t *ret_cookie);
/* Forgets a server that is not known any more. */
void guard_forget(struct guard *g, uint64_t id);

#endif
