/* SPDX-License-Identifier: Apache-2.0
 *
 * The node table: what the scheduler scans. Struct of arrays, one row per node. What only a write
 * of a node changes (facts, capacity, class) is a *set*, shared by all copies of the table until
 * somebody writes it; what placements change (use) is a column of each copy. So a worker's copy is
 * some 40 bytes per node, and sees one moment.
 *
 * Rows are found by node id; a removed row is left empty and reused. A table is not thread-safe;
 * sets and facts are never written while they are shared, and their reference counts are atomic.
 */
#ifndef PADDOCK_SERVER_SCHED_NODES_H
#define PADDOCK_SERVER_SCHED_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "server/sched/resources.h"

#define NODES_NONE UINT32_MAX

/* Immutable once made. */
struct node_facts {
    const struct node *node; /* owned */
    uint64_t
        class_hash; /* of computed_class: equal for nodes that no class constraint tells apart */
    struct usage cap;        /* total minus reserved, never negative */
    int64_t core_mhz;        /* of one core; 0: no cores can be reserved here */
    bool takes_work;         /* ready, eligible, not draining */
    int refs;
};

/* Distinct values that many rows share, numbered: classes, places (datacenter and pool), shapes
 * (capacities). A number is an index here and a column in the set. */
struct node_kinds {
    uint64_t *key;
    struct node_facts **sample; /* one node of that kind (referenced) */
    size_t n, cap;
    uint32_t *slots; /* hash of key -> number */
    size_t n_slots;
};

struct node_set {
    int refs;
    size_t n;                  /* rows, including empty ones */
    size_t cap;
    size_t live;               /* rows in use */
    struct node_facts **facts; /* NULL: empty row, to be reused */
    bool *takes_work;
    int64_t *cap_cpu, *cap_mem, *cap_disk;
    int32_t *max_allocs;       /* 0: no limit */
    uint32_t *class_no, *place_no, *shape_no;
    struct node_kinds classes, places, shapes;
    struct node_slot *slots;   /* id -> row, open addressing */
    size_t n_slots;            /* a power of two */
    size_t n_filled;           /* slots in use or once used */
};

struct node_table {
    struct node_set *set;
    size_t n;                  /* set->n */
    struct node_facts **facts; /* set->facts */
    size_t cap;
    int64_t *cpu;              /* used, by allocations that are not client-terminal */
    int64_t *mem;
    int64_t *disk;
    int32_t *allocs;
    double *pow_cpu, *pow_mem; /* 10 ^ (free / capacity): the terms of the fit score */
};

/* Takes a deep copy of `n`. */
struct node_facts *node_facts_new(const struct node *n);

struct node_table *node_table_new(const void *ctx); /* talloc; its set goes with it */
struct node_table *node_table_copy(const void *ctx, const struct node_table *t);
/* Adds or replaces; usage of a known row is kept. Takes the reference. Returns the row. */
uint32_t node_table_put(struct node_table *t, struct node_facts *f);
void node_table_remove(struct node_table *t, const char *id);
uint32_t node_table_find(const struct node_table *t, const char *id); /* NODES_NONE */
/* Adds (sign = 1) or takes off (-1) what an allocation uses. A row may be made for a node that is
 * not known (any more): its facts hold nothing but the id, and it is never chosen. */
void node_table_use(struct node_table *t, const char *node_id, const struct usage *u, int sign);
void node_table_use_row(struct node_table *t, uint32_t row, const struct usage *u, int sign);

#endif
