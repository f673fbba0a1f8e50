/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: a thread that steps consensus and feeds the log writer (raft), and one that applies
 * what is committed and durable, a table transaction per batch, and runs the leader's hooks
 * (apply). Both sleep without ticking when there is nothing to do (a sole server has no Raft timer
 * at all). How they meet: core_int.h.
 *
 * Opened and closed by server.c; the thread-safe calls below are what everybody else sees through
 * server.h.
 */
#ifndef PADDOCK_SERVER_CORE_CORE_H
#define PADDOCK_SERVER_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "server/fsm/fsm.h"
#include "server/host.h"
#include "server/state/state.h"
#include "server/state/write.h"

struct core;

struct core_opts {
    const char *dir;     /* ours: raft/ and state/ are made below it */
    const char *addr;    /* "ip:port" of this server */
    const char *boot_id; /* NULL: the kernel's */
    size_t state_max;    /* bytes that the state may use */
    size_t segment_bytes;
    uint64_t snapshot_entries;
    uint64_t snapshot_bytes;
    const struct env *env; /* its functions post to the loop thread; borrowed */
    /* Apply thread, after a commit: what changed up to `index`. May be NULL. */
    void (*on_changes)(void *arg, uint64_t index, const struct state_change *v, size_t n);
    void *on_changes_arg;
};

/* Opens log and state and replays; strings are copied. */
int core_open(const struct core_opts *o, struct core **ret, struct err *e);
int core_start(struct core *c, struct err *e);
/* Ends the threads; what was proposed and not applied completes with -ERR_CANCELED (through post).
 * Blocks for milliseconds; not on the core's threads. Works on a core that was not started. */
void core_stop(struct core *c);
void core_free(struct core *c); /* after core_stop() */

struct state *core_state(struct core *c);
void core_set_hooks(struct core *c, const struct leader_hooks *h,
                    void *arg); /* before core_start */
void core_propose(struct core *c, struct intent *in, propose_fn *done, void *arg);
bool core_post(struct core *c, void (*fn)(void *arg), void *arg);
bool core_is_leader(const struct core *c);
bool core_leader_addr(const struct core *c, char *out, size_t size);
/* The longest turn of each thread so far, ns. */
void core_turns(const struct core *c, int64_t *ret_raft_ns, int64_t *ret_apply_ns);

#endif
