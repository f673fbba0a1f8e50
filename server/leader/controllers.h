/* SPDX-License-Identifier: Apache-2.0
 *
 * What the leader does besides placing: a name in the list per thing, and its file, which ends with
 * its row.
 */
#ifndef PADDOCK_SERVER_LEADER_CONTROLLERS_H
#define PADDOCK_SERVER_LEADER_CONTROLLERS_H

#include <stdint.h>

struct fsm_result;
struct intent;
struct leader;
struct state_txn;

/* In the order in which they are called: each sees what those before it have made of the entry.
 * What one keeps is l->NAME, a struct NAME of its own. */
#define CONTROLLERS(X)                                                                             \
    X(alarm)                                                                                       \
    X(debts)                                                                                       \
    X(defaults)                                                                                    \
    X(evals)                                                                                       \
    X(alive)                                                                                       \
    X(gc) X(drainer) X(periodic) X(deploy) X(replicate) X(keyring) X(lock) X(turns) X(lend)        \
        X(borrow)

/* A controller's functions; NULL: it has none. */
struct controller {
    void (*init)(struct leader *l); /* with the server */
    /* Apply thread, leading or not: the state as it was found; an entry that changed something.
     * What follows the log by these (live tables) is there when an election is won. */
    void (*on_open)(struct leader *l, struct state_txn *t);
    void (*on_entry)(struct leader *l, uint64_t index, const struct intent *in,
                     const struct fsm_result *res);
    /* Apply thread, while leading: rebuild from the state; an entry that changed something, behind
     * on_entry; after a batch of them, after on_leader and when the alarm rings; drop what was
     * built. Each does a bounded part: the rest goes on by server_post_apply(). */
    void (*on_leader)(struct leader *l, struct state_txn *t);
    void (*on_applied)(struct leader *l, uint64_t index, const struct intent *in,
                       const struct fsm_result *res);
    void (*on_batch)(struct leader *l);
    void (*on_lose)(struct leader *l);
    /* Loop thread: before what on_leader posts, and behind on_lose or when the server stops; after
     * that no timer of it is left. */
    void (*begin)(struct leader *l);
    void (*end)(struct leader *l);
};

#define DECLARE(name) extern const struct controller name##_row;
CONTROLLERS(DECLARE)
#undef DECLARE

#endif
