/* SPDX-License-Identifier: Apache-2.0
 *
 * Originals and replacements (doc/reconnect.md 2.5, S15): which of two is kept, and which
 * allocations came to replace another. Pure.
 */
#ifndef PADDOCK_SERVER_SCHED_AWAY_H
#define PADDOCK_SERVER_SCHED_AWAY_H

#include <stdbool.h>

#include "api/api.h"
#include "server/sched/nodes.h"

/* Which of the two. */
bool away_keeps_original(const struct task_group *tg, const struct allocation *original,
                         const struct allocation *replacement);
/* The replacement holds the place of its original: it runs, or may, or is to be placed again
 * itself. */
bool away_holds(const struct allocation *replacement, bool batch);

/* Returns the status of an allocation's node; NULL: it is gone. */
const char *away_node_status(const struct node_table *nodes, const struct allocation *a);
bool away_node_lost(const struct node_table *nodes, const struct allocation *a); /* gone or down */
/* Nobody hears of it, for now. */
bool away_node_silent(const struct node_table *nodes, const struct allocation *a);

/* Allocations by id. */
struct away_index {
    const struct allocation **v;
    size_t *at; /* of each in the list that it was made of */
    size_t n;
};
void away_index_init(void *ctx, struct away_index *x, const struct allocation *const *v, size_t n);
/* The place in that list; SIZE_MAX: it is not there. */
size_t away_find(const struct away_index *x, const char *id);

#endif
