/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations that the servers list and that are not, or not any more, to be run here: collected,
 * ended before they came, or refused.
 */
#ifndef PADDOCK_CLIENT_NODE_GONE_H
#define PADDOCK_CLIENT_NODE_GONE_H

#include "client/ground.h"
#include "common/hash.h"
#include "common/uuid.h"

struct gone {
    UT_hash_handle hh;
    char id[UUID_TEXT];
    uint64_t index;
    int64_t collected_ns; /* wall clock; 0: its files were not collected by this agent */
    char *why;            /* then: the reason */
};

struct gone_set {
    struct gone *all; /* hash by id */
};

void gone_note(struct gone_set *s, const char *id, uint64_t index);
void gone_collected(struct gone_set *s, const char *id, uint64_t index, const char *why);
/* Says where the allocation's files are, in words that follow a colon; owned by ctx. */
char *gone_words(const struct gone_set *s, const void *ctx, const char *id, const char *node);
/* Says whether the set has the allocation as it was at that index, or before. */
bool gone_has(const struct gone_set *s, const char *id, uint64_t index);
void gone_forget(struct gone_set *s, struct gone *g);
void gone_free(struct gone_set *s);

#endif
