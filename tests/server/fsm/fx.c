/* SPDX-License-Identifier: Apache-2.0
 *
 * A state machine for tests: see fsm/fx.h.
 */
#include "tests/server/fsm/fx.h"

#include <check.h>

#include "common/duration.h"
#include "common/hash.h"
#include "common/str.h"
#include "server/state/state_int.h"

struct fx *
fx_new(void)
{
    struct fx *f = mem_new(NULL, struct fx);
    f->ctx = f;
    f->index = 999;
    f->now = 1000 * NS_PER_S;
    bool fresh = false;
    struct err e = ERR_INIT;
    ck_assert_int_eq(state_open(tmp_dir(), "boot", 64 << 20, &f->s, &fresh, &e), 0);
    ck_assert(fresh);
    return f;
}

void
fx_free(struct fx *f)
{
    state_close(f->s);
    mem_free(f);
}

/* --- the events of an entry against what the state holds --- */

struct row_seen {
    enum state_table table;
    const char *key;
    uint64_t modified;
};

struct rows_seen {
    struct row_seen *v;
    size_t n;
};

#define SEE(TABLE, it, key)                                                            \
    for (const __typeof__(*((struct state_types *)0)->TABLE) *x; (x = state_next(it, f)) != NULL;) \
        list_add(f, all, ((struct row_seen){STATE_##TABLE, (key), x->modify_index}))

/* Rows of the tables that events are of. */
static struct rows_seen
see(struct fx *f)
{
    struct rows_seen all = {0};
    struct state_txn *t = state_read_begin(f->s, f);
    struct state_iter *it = state_jobs(t, f, NS_ALL, NULL);
    SEE(JOBS, it, mem_printf(f, "%s %s", x->namespace, x->id));
    it = state_nodes(t, f, NULL);
    SEE(NODES, it, x->id);
#define OBJECT(TABLE, ...)                          \
    it = state_ids(t, f, STATE_##TABLE, NULL);      \
    SEE(TABLE, it, x->name);
    API_OBJECTS(OBJECT)
#undef OBJECT
    it = state_allocs(t, f, NULL);
    SEE(ALLOCS, it, x->id);
    it = state_evals(t, f, NULL);
    SEE(EVALS, it, x->id);
    it = state_deployments(t, f, NULL);
    SEE(DEPLOYMENTS, it, x->id);
    state_read_end(t);
    return all;
}

static const struct row_seen *
seen(const struct rows_seen *all, enum state_table table, const char *key)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].table == table && str_eq(all->v[i].key, key))
            return &all->v[i];
    return NULL;
}

static const char *
event_key(struct fx *f, const struct fsm_event *e, uint64_t *ret_modified)
{
#define OF(TABLE, type, key)            \
    if (e->table == STATE_##TABLE) {    \
        const struct type *x = e->row;  \
        *ret_modified = x->modify_index; \
        return key;                     \
    }
    OF(JOBS, job, mem_printf(f, "%s %s", x->namespace, x->id))
    OF(NODES, node, x->id)
#define OBJECT(TABLE, id, type, ...) OF(TABLE, type, x->name)
    API_OBJECTS(OBJECT)
#undef OBJECT
    OF(ALLOCS, allocation, x->id)
    OF(EVALS, evaluation, x->id)
    OF(DEPLOYMENTS, deployment, x->id)
    ck_abort_msg("an event of table %d", (int)e->table);
#undef OF
}

/* A row that was deleted is in the first list alone, one that was stored in the second with this index. */
static void
check_events(struct fx *f, const struct fsm_result *r, const struct rows_seen *was)
{
    struct rows_seen is = see(f);
    size_t differ = 0;
    for (size_t i = 0; i < r->events.n; i++) {
        uint64_t modified = 0;
        const struct fsm_event *e = &r->events.v[i];
        const char *key = event_key(f, e, &modified);
        const struct row_seen *now = seen(&is, e->table, key);
        ck_assert_msg((e->what == FSM_DELETED) == (now == NULL), "row %s", key);
        ck_assert_msg(now == NULL || (now->modified == modified && modified == r->index), "row %s", key);
        ck_assert_msg(now != NULL || seen(was, e->table, key) != NULL, "row %s was not there", key);
    }
    for (size_t i = 0; i < is.n; i++)
        differ += is.v[i].modified == r->index;
    for (size_t i = 0; i < was->n; i++)
        differ += seen(&is, was->v[i].table, was->v[i].key) == NULL;
    ck_assert_uint_eq(differ, r->events.n);
}

const void *
row_at(const struct fsm_result *r, enum state_table table, enum fsm_what what, size_t i)
{
    for (size_t k = 0; k < r->events.n; k++)
        if (fsm_row(r, k, table, what) != NULL && i-- == 0)
            return fsm_row(r, k, table, what);
    ck_abort_msg("there is no such event");
}

/* Applies at the next index. */
struct fsm_result *
apply(struct fx *f, struct intent *in)
{
    struct rows_seen was = f->timed ? (struct rows_seen){0} : see(f);
    in->time = f->now;
    struct state_txn *t = state_write_begin(f->s, f->ctx);
    struct fsm_result *r = fsm_apply(f->ctx, t, ++f->index, in);
    state_set_applied(t, f->index, 1);
    state_commit(t);
    if (!f->timed)
        check_events(f, r, &was);
    return r;
}

struct job *
get_job(struct fx *f, const char *id)
{
    return READ(f, struct job *, state_job(rt, f->ctx, "default", id));
}

struct allocation *
get_alloc(struct fx *f, const char *id)
{
    return READ(f, struct allocation *, state_alloc(rt, f->ctx, id));
}

struct evaluation *
get_eval(struct fx *f, const char *id)
{
    return READ(f, struct evaluation *, state_eval(rt, f->ctx, id));
}

struct node *
get_node(struct fx *f, const char *id)
{
    return READ(f, struct node *, state_node(rt, f->ctx, id));
}

const struct task_group_summary *
get_summary(struct fx *f, const char *id)
{
    struct job_summary *s = READ(f, struct job_summary *, state_summary(rt, f->ctx, "default", id));
    ck_assert_ptr_nonnull(s);
    __auto_type row = map_get(s->summary, "g");
    ck_assert_ptr_nonnull(row);
    return row->v;
}

uint64_t
table_index(struct fx *f, enum state_table table)
{
    return READ(f, uint64_t, state_index(rt, STATE_BIT(table)));
}

struct fsm_result *
put_job(struct fx *f, struct job *j, const char *eval_id)
{
    struct intent *in = intent_new(f, 0);
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = j;
    if (eval_id != NULL)
        in->job_register->eval = make_eval(in, j, eval_id);
    return apply(f, in);
}

struct fsm_result *
stop_job(struct fx *f, const char *id, bool purge, const char *eval_id)
{
    struct intent *in = intent_new(f, 0);
    in->job_deregister = type_new(in, &type_intent_job_deregister);
    in->job_deregister->namespace = "default";
    in->job_deregister->job_id = id;
    in->job_deregister->purge = purge;
    if (eval_id != NULL)
        in->job_deregister->eval = make_eval(in, make_job(in, id, 1), eval_id);
    return apply(f, in);
}

struct fsm_result *
register_node(struct fx *f, struct node *n)
{
    struct intent *in = intent_new(f, 0);
    in->node_register = type_new(in, &type_intent_node_register);
    in->node_register->node = n;
    in->node_register->eval_ids = strs(in, mem_printf(in, "ev-%lu", (unsigned long)f->index), NULL);
    return apply(f, in);
}

void
make_pools(struct fx *f)
{
    struct intent *in = intent_new(f, 0);
    in->objects_init = type_new(in, &type_empty);
    ck_assert_int_eq(apply(f, in)->err.code, 0);
}

struct fsm_result *
put_pool(struct fx *f, const char *name)
{
    struct intent *in = intent_new(f, 0);
    in->node_pool_upsert = type_new(in, &type_node_pool_upsert);
    struct node_pool *p = type_new(in, &type_node_pool);
    p->name = name;
    list_add(in, in->node_pool_upsert->node_pools, p);
    return apply(f, in);
}

struct fsm_result *
delete_pool(struct fx *f, const char *name)
{
    struct intent *in = intent_new(f, 0);
    in->node_pool_delete = type_new(in, &type_object_delete);
    in->node_pool_delete->names = strs(in, name, NULL);
    in->node_pool_delete->region = "global";
    return apply(f, in);
}

struct fsm_result *
node_status(struct fx *f, const char *id, const char *status)
{
    struct intent *in = intent_new(f, 0);
    in->node_status = type_new(in, &type_intent_node_status);
    in->node_status->node_id = id;
    in->node_status->status = status;
    in->node_status->eval_ids = strs(in, mem_printf(in, "ev-%lu", (unsigned long)f->index), NULL);
    return apply(f, in);
}

void
ready_node(struct fx *f, const char *id)
{
    register_node(f, make_node(f, id));
    node_status(f, id, NODE_READY);
    ck_assert_str_eq(get_node(f, id)->status, NODE_READY);
}

struct fsm_result *
place(struct fx *f, struct allocation *a, struct allocation *stop)
{
    return place_as_of(f, a, stop, f->index);
}

struct fsm_result *
place_as_of(struct fx *f, struct allocation *a, struct allocation *stop, uint64_t snapshot)
{
    struct intent *in = intent_new(f, 0);
    in->plan_result = type_new(in, &type_plan_result);
    in->plan_result->snapshot_index = snapshot;
    in->plan_result->job = get_job(f, a != NULL ? a->job_id : stop->job_id);
    if (a != NULL)
        list_add(in, in->plan_result->placed, a);
    if (stop != NULL)
        list_add(in, in->plan_result->stopped, stop);
    return apply(f, in);
}

struct allocation *
row_of(struct fx *f, const char *id, const char *node, const char *seen, const char *becomes)
{
    struct allocation *s = type_new(f, &type_allocation);
    struct alloc_state *st = type_new(s, &type_alloc_state);
    s->id = id;
    s->namespace = NS_DEFAULT;
    s->job_id = "web";
    s->node_id = node;
    s->client_status = becomes;
    st->field = "ClientStatus";
    st->value = seen;
    list_add(s, s->alloc_states, st);
    return s;
}

struct fsm_result *
report(struct fx *f, const char *node_id, const char *alloc_id, const char *status)
{
    struct intent *in = intent_new(f, 0);
    in->alloc_update = type_new(in, &type_intent_alloc_update);
    in->alloc_update->node_id = node_id;
    struct allocation *a = type_new(in, &type_allocation);
    a->id = alloc_id;
    a->client_status = status;
    list_add(in, in->alloc_update->allocs, a);
    in->alloc_update->eval_ids = strs(in, mem_printf(in, "ev-%lu", (unsigned long)f->index), NULL);
    return apply(f, in);
}

/* A job whose groups survive a disconnect. */
struct job *
patient_job(struct fx *f, const char *id)
{
    struct job *j = make_job(f, id, 1);
    struct disconnect_strategy *d = type_new(j, &type_disconnect_strategy);
    d->lost_after = (struct opt_i64){true, 60 * NS_PER_S};
    j->task_groups.v[0]->disconnect = d;
    return j;
}

static int
hash_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    uint64_t *h = arg;
    if (table == TABLE_ID_META) /* the index that is applied */
        return 0;
    *h = *h * 31 + table;
    *h = *h * 31 + hash_bytes(key.p, key.n);
    *h = *h * 31 + hash_bytes(val.p, val.n);
    return 0;
}

uint64_t
hash_state(struct state_txn *t)
{
    uint64_t h = 0;
    state_dump(t, hash_row, &h);
    return h;
}
