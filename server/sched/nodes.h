/* SPDX-License-Identifier: Apache-2.0
 *
 * The node table: what the scheduler scans. Struct of arrays, one row per node: capacity, what is
 * used of it, and a pointer to the node's facts, which are immutable and shared by all copies of the
 * table. Rows are found by node id; a removed row is left empty and reused.
 *
 * The owner of the live table applies node writes and changes of allocations to it; a worker takes a
 * copy (some 30 bytes per node), and sees one moment. Not thread-safe; facts are never written after
 * they are published, and their reference counts are atomic.
 */
#ifndef PADDOCK_SERVER_SCHED_NODES_H
#define PADDOCK_SERVER_SCHED_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"

#define NODES_NONE UINT32_MAX

/* Scalar demand or capacity. MHz, MB. */
struct usage {
    int64_t cpu;
    int64_t mem;
    int64_t disk;
};

/* Immutable once made. */
struct node_facts {
    const struct node *node; /* owned */
    uint64_t class_hash;     /* of computed_class: equal for nodes that no class constraint tells apart */
    struct usage cap;        /* total minus reserved, never negative */
    int64_t core_mhz;        /* of one core; 0: no cores can be reserved here */
    bool takes_work;         /* ready, eligible, not draining */
    int refs;
};

struct node_table {
    size_t n;                 /* rows, including empty ones */
    size_t cap;
    size_t live;              /* rows in use */
    struct node_facts **facts; /* NULL: empty row, to be reused */
    int64_t *cpu;             /* used, by allocations that are not client-terminal */
    int64_t *mem;
    int64_t *disk;
    int32_t *allocs;
    struct node_slot *slots; /* id -> row, open addressing */
    size_t n_slots;           /* a power of two */
    size_t n_filled;          /* slots in use or once used */
};

/* Takes a deep copy of `n`. */
struct node_facts *node_facts_new(const struct node *n);
struct node_facts *node_facts_ref(struct node_facts *f);
void node_facts_unref(struct node_facts *f);

struct node_table *node_table_new(const void *ctx); /* talloc; its facts go with it */
struct node_table *node_table_copy(const void *ctx, const struct node_table *t);
/* Adds or replaces; usage of a known row is kept. Takes the reference. Returns the row. */
uint32_t node_table_put(struct node_table *t, struct node_facts *f);
void node_table_remove(struct node_table *t, const char *id);
uint32_t node_table_find(const struct node_table *t, const char *id); /* NODES_NONE */
/* Adds (sign = 1) or takes off (-1) what an allocation uses. A row may be made for a node that is
 * not known (any more): its facts hold nothing but the id, and it is never chosen. */
void node_table_use(struct node_table *t, const char *node_id, const struct usage *u, int sign);

#endif
