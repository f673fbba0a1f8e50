/* SPDX-License-Identifier: Apache-2.0
 *
 * A state machine for tests: a state in a temporary directory to which entries are applied one by one.
 */
#ifndef PADDOCK_TESTS_SERVER_FSM_FX_H
#define PADDOCK_TESTS_SERVER_FSM_FX_H

#include "tests/server/util.h"

struct fx {
    void *ctx;
    struct state *s;
    uint64_t index;
    int64_t now; /* ns */
    bool timed;  /* what entries take is measured: their events are not looked at */
};

#define READ(f, T, call)                                           \
    ({                                                             \
        struct state_txn *rt = state_read_begin((f)->s, (f)->ctx); \
        T _r = (call);                                             \
        state_read_end(rt);                                         \
        _r;                                                        \
    })

/* The i-th row of a table to which an entry did that, as FSM_EACH has them. */
#define ROW(res, TABLE, WHAT, i)                                        \
    ((const __typeof__(*((struct state_types *)0)->TABLE) *)row_at(     \
        (res), STATE_##TABLE, FSM_##WHAT, (i)))
const void *row_at(const struct fsm_result *r, enum state_table table, enum fsm_what what, size_t i);

struct fx *fx_new(void);
void fx_free(struct fx *f);
/* Looks, too, whether its events say what has become of the rows. */
struct fsm_result *apply(struct fx *f, struct intent *in);
/* Stores a quota, and a row in each table of access control. */
void make_objects(struct fx *f);
/* Returns a hash of all rows. */
uint64_t hash_state(struct state_txn *t);
struct job *get_job(struct fx *f, const char *id);
struct allocation *get_alloc(struct fx *f, const char *id);
struct evaluation *get_eval(struct fx *f, const char *id);
struct node *get_node(struct fx *f, const char *id);
const struct task_group_summary *get_summary(struct fx *f, const char *id);
uint64_t table_index(struct fx *f, enum state_table table);
struct fsm_result *put_job(struct fx *f, struct job *j, const char *eval_id);
struct fsm_result *stop_job(struct fx *f, const char *id, bool purge, const char *eval_id);
struct fsm_result *register_node(struct fx *f, struct node *n);
/* The built-in pools, as a leader makes them. */
void make_pools(struct fx *f);
struct fsm_result *put_pool(struct fx *f, const char *name);
struct fsm_result *delete_pool(struct fx *f, const char *name);
struct fsm_result *node_status(struct fx *f, const char *id, const char *status);
void ready_node(struct fx *f, const char *id);
struct fsm_result *place(struct fx *f, struct allocation *a, struct allocation *stop);
/* A plan that was made of the state at that index. */
struct fsm_result *place_as_of(struct fx *f, struct allocation *a, struct allocation *stop,
                               uint64_t snapshot);
/* Makes a plan's row about an allocation whose client status was seen so. */
struct allocation *row_of(struct fx *f, const char *id, const char *node, const char *seen,
                          const char *becomes);
struct fsm_result *report(struct fx *f, const char *node_id, const char *alloc_id, const char *status);
struct job *patient_job(struct fx *f, const char *id);

#endif
