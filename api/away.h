/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations of which nobody hears (doc/reconnect.md 2.2): since when, and for how long that may
 * last. Pure.
 */
#ifndef PADDOCK_API_AWAY_H
#define PADDOCK_API_AWAY_H

#include "api/api.h"

enum { AWAY_CHAIN_MAX = 256 }; /* replacements of replacements that are followed */

/* At most one allocation of a name runs at a time (doc/fencing.md). */
bool group_fenced(const struct task_group *tg);
/* How long an allocation of the group may be unknown before it is lost, ns; 0: not at all. Of a
 * fenced one with the drift of clocks that is allowed for. */
int64_t group_lost_after(const struct task_group *tg);
/* Returns how long after the end of its node a group keeps its replacement from starting, ns; 0: it
 * does not: stop_on_client_after and what ending its tasks may take. */
int64_t group_holds_back(const struct task_group *tg);
/* May it be placed elsewhere while it is unknown? */
bool group_replaces(const struct task_group *tg);

/* When the client status became `value`, if that is the last record; 0: it is not. What came back
 * and went again before that was settled has two records of "unknown" in turn, and the second
 * counts (S17). */
int64_t alloc_recorded(const struct allocation *a, const char *value);
/* Unknown by record: the allocation was or is unknown, and its outcome is not settled. */
bool alloc_was_unknown(const struct allocation *a);
/* Unknown, and that for longer than its group allows (equality counts). A fenced one
 * never while its node, whose status this is (NULL: there is none), is heard: each answer to the
 * node lets the task run on, whatever its client has said. */
bool alloc_expired(const struct allocation *a, const struct task_group *tg, const char *node_status,
                   int64_t now);

#endif
