/* SPDX-License-Identifier: Apache-2.0
 *
 * A world of gossiping servers in virtual time: packets as bytes, with loss, delay and doubles; nodes that
 * are killed, stand still or have clocks that jump; links that are cut. Everything by a seed.
 */
#ifndef PADDOCK_TESTS_GOSSIP_WORLD_H
#define PADDOCK_TESTS_GOSSIP_WORLD_H

#include "server/gossip/guard.h"
#include "server/gossip/swim.h"

enum { NODES_MAX = 16 };

struct host {
    struct swim *swim;
    struct guard *guard;
    uint64_t id, session, seq;
    uint64_t cookies[NODES_MAX];
    bool dead, frozen;
    int64_t ahead; /* of its clock */
    int64_t failed_at[NODES_MAX]; /* when it last said that this one failed; -1: it does not */
    unsigned failed_n[NODES_MAX], joined_n[NODES_MAX], left_n[NODES_MAX];
    bool cut[NODES_MAX]; /* it does not reach that one */
    uint64_t woken;      /* milliseconds in which it did something */
    int64_t woken_at;
};

struct world {
    int64_t t;
    uint64_t rng;
    size_t n;
    struct host v[NODES_MAX];
    struct letter *letters;
    unsigned loss; /* percent */
    int64_t delay_min, delay_max;
    unsigned doubles;   /* percent */
    uint64_t sent, refused; /* packets; those that guards refused */
    const char *(*region)(size_t i);
    uint32_t lives;
    unsigned without; /* SWIM_WITHOUT_, of all */
};

struct world *world_new(uint64_t seed, size_t n);
void world_free(struct world *w);
uint64_t world_random(struct world *w, uint64_t below);
/* Starts (again), with an empty memory. */
void world_start(struct world *w, size_t i);
/* They exchange everything. */
void world_join(struct world *w, size_t i, size_t by);
void world_run(struct world *w, int64_t ms);
/* Until `i` says that of k, or `ms` are over. */
bool world_until(struct world *w, size_t i, size_t k, enum member_state st, int64_t ms);
enum member_state world_state(const struct world *w, size_t i, size_t k); /* 0: unknown */
/* All that live know each other, and as alive. */
bool world_agrees(const struct world *w);
void world_leave(struct world *w, size_t i);
/* A world of n that have joined. */
struct world *world_joined(uint64_t seed, size_t n);
struct world *world_of(uint64_t seed, size_t n, unsigned without); /* the same without parts of the machine */

#endif
