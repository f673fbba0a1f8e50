/* SPDX-License-Identifier: Apache-2.0
 *
 * Term and vote of one server, durable before a message that depends on them leaves: the file
 * "hard-state" of two slots that are written in turn, so that a torn write leaves the other. Made
 * whole with one good slot: where none is good later, data was lost. Used by log.c.
 */
#ifndef PADDOCK_SERVER_RAFT_HARD_H
#define PADDOCK_SERVER_RAFT_HARD_H

#include <stdint.h>

#include "common/err.h"

struct hard {
    int fd; /* -1: not open */
    uint64_t seq;
    uint64_t term;
    uint64_t vote;
};

/* Opens or makes it in the directory `dirfd`, called `dir` in messages. -ERR_CORRUPT: no good slot.
 */
int hard_open(struct hard *h, int dirfd, const char *dir, struct err *e);
/* Durable when it returns 0; else -errno, and nobody knows what is on disk; *ret_what says at what.
 */
int hard_set(struct hard *h, uint64_t term, uint64_t vote, const char **ret_what);

#endif
