/* SPDX-License-Identifier: Apache-2.0
 *
 * Properties of nodes as columns: the values of a target (${meta.rack}) over all rows, numbered. A
 * value is looked up once per computed class, or once per row where the target is unique to nodes.
 */
#ifndef PADDOCK_SERVER_SCHED_PROPS_H
#define PADDOCK_SERVER_SCHED_PROPS_H

#include "server/sched/nodes.h"

#define PROP_NONE UINT32_MAX

struct prop {
    const char *target;
    uint32_t *no;       /* row: number of its value, PROP_NONE: it has none */
    const char **value; /* number: the text, which the node owns */
    size_t n;
    uint32_t *slots; /* hash of the text -> number */
    size_t n_slots;  /* a power of two */
};

/* Owned by ctx; the table's facts must outlive it. */
struct prop *prop_new(const void *ctx, const struct node_table *t, const char *target);
/* The number of a text that some node may have: added where it is new. */
uint32_t prop_number(struct prop *p, const char *value);

#endif
