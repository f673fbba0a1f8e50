/* SPDX-License-Identifier: Apache-2.0
 *
 * The judgement of autopilot on the servers of a cluster: which are well, how many more may be
 * lost, and which of those that are dead is taken out next. Pure; its shell is server/autopilot.c.
 * Nobody is taken out unless those that are alive are a majority, now and without the server, nor
 * where fewer than PILOT_VOTERS_MIN servers (or min_quorum, if that is more) would be left to
 * vote: one of three keeps its vote while it is away. Otherwise the next loss would end a cluster
 * of two.
 */
#ifndef PADDOCK_SERVER_PEER_PILOT_H
#define PADDOCK_SERVER_PEER_PILOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PILOT_VOTERS_MIN = 3, /* that are left */
    PILOT_BEAT_MS = 500   /* from one heartbeat to the next of a cluster at rest */
};

struct pilot_rules {
    bool cleanup;
    int64_t contact_ms;  /* a server that is silent for longer, beside PILOT_BEAT_MS, is not well */
    uint64_t behind_max; /* entries that it may lack */
    uint64_t voters_min;
    int64_t dead_ms; /* that it must have been dead to be taken out */
};

struct pilot_server {
    uint64_t id;
    bool voter, leader, alive;
    int64_t silent_ms; /* since its last answer; INT64_MAX: none yet */
    uint64_t behind;
    int64_t dead_ms; /* since when it is not alive, in time; 0: it is alive */
    bool well;       /* out */
};

/* Says of each whether it is well, and how many that are may be lost before none can lead. */
size_t pilot_judge(const struct pilot_rules *r, struct pilot_server *v, size_t n);
/* Returns the server to take out next; NULL: none. */
const struct pilot_server *pilot_dead(const struct pilot_rules *r, const struct pilot_server *v,
                                      size_t n);

#endif
