/* SPDX-License-Identifier: Apache-2.0
 *
 * A state machine for tests: see fsm/fx.h.
 */
#include "tests/server/fsm/fx.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

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
    unsigned table;
    struct slice key, val;
};

struct rows_seen {
    void *ctx;
    struct row_seen *v;
    size_t n;
};

static int
see_row(void *arg, unsigned id, struct slice key, struct slice val)
{
    struct rows_seen *all = arg;
    struct row_seen r = {0};

    if (id == STATE_ID_META)
        return 0;
    while (table_rows[r.table].id != id)
        r.table++;
    r.key = SLICE(mem_dup(all->ctx, key.p, key.n), key.n);
    r.val = SLICE(mem_dup(all->ctx, val.p, val.n), val.n);
    list_add(all->ctx, *all, r);
    return 0;
}

/* Every row of every table, by table and key. */
static struct rows_seen
see(struct fx *f)
{
    struct rows_seen all = {.ctx = mem_ctx("rows")};
    struct state_txn *t = state_read_begin(f->s, f);
    ck_assert_int_eq(state_dump(t, see_row, &all), 0);
    state_read_end(t);
    return all;
}

static int
compare_rows(const void *pa, const void *pb)
{
    const struct row_seen *a = pa, *b = pb;
    size_t n = a->key.n < b->key.n ? a->key.n : b->key.n;

    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    int rc = memcmp(a->key.p, b->key.p, n);
    return rc != 0 ? rc : (a->key.n > b->key.n) - (a->key.n < b->key.n);
}

static const struct row_seen *
seen(const struct rows_seen *all, unsigned table, struct slice key)
{
    struct row_seen like = {table, key, {NULL, 0}};

    return all->n > 0 ? bsearch(&like, all->v, all->n, sizeof(like), compare_rows) : NULL;
}

static void
check_event(const struct fsm_result *r, const struct fsm_event *e, const struct rows_seen *was,
            const struct rows_seen *is)
{
    const struct table_row *row = &table_rows[e->table];
    struct key k;
    char name[ROW_NAME];
    key_of(&k, row->key, e->row);
    const struct row_seen *now = seen(is, e->table, KEY_SLICE(k)),
                          *before = seen(was, e->table, KEY_SLICE(k));
    row_name(KEY_SLICE(k), name);
    ck_assert_msg((e->what == FSM_DELETED) == (now == NULL), "%s %s", row->name, name);
    ck_assert_msg(now != NULL || before != NULL, "%s %s was not there", row->name, name);
    auto_buf struct buf b;
    buf_init(&b, ROW_MAX);
    size_t head = row_head(e->table);
    mp_encode(&b, row->type, e->row);
    const struct row_seen *as = now != NULL ? now : before;
    ck_assert_msg(as->val.n == head + b.len &&
                      memcmp((const uint8_t *)as->val.p + head, b.data, b.len) == 0,
                  "%s %s is not as the event says", row->name, name);
    const uint64_t *modified = type_member(row->type, e->row, "ModifyIndex");
    ck_assert_msg(e->what == FSM_QUIET || e->what == FSM_DELETED || modified == NULL ||
                      *modified == r->index,
                  "%s %s was not stamped", row->name, name);
}

/* Says whether the row differs between the lists. */
static bool
row_differs(const struct row_seen *x, const struct rows_seen *other)
{
    const struct row_seen *o = seen(other, x->table, x->key);

    return o == NULL || o->val.n != x->val.n || memcmp(o->val.p, x->val.p, x->val.n) != 0;
}

static bool
event_of(const struct fsm_result *r, const struct row_seen *x)
{
    for (size_t i = 0; i < r->events->n; i++) {
        const struct fsm_event *e = &r->events->v[i];
        struct key k;
        if (e->table != x->table)
            continue;
        key_of(&k, table_rows[e->table].key, e->row);
        if (k.n == x->key.n && memcmp(k.b, x->key.p, k.n) == 0)
            return true;
    }
    return false;
}

/* The events are the difference between the states before and after, with the bytes of each row. */
static void
check_events(struct fx *f, const struct fsm_result *r, const struct rows_seen *was)
{
    struct rows_seen is = see(f);
    char name[ROW_NAME];

    for (size_t i = 0; i < r->events->n; i++)
        check_event(r, &r->events->v[i], was, &is);
    for (size_t i = 0; i < is.n; i++)
        ck_assert_msg(!row_differs(&is.v[i], was) || event_of(r, &is.v[i]), "nobody heard of %s",
                      row_name(is.v[i].key, name));
    for (size_t i = 0; i < was->n; i++)
        ck_assert_msg(seen(&is, was->v[i].table, was->v[i].key) != NULL || event_of(r, &was->v[i]),
                      "nobody heard that %s is gone", row_name(was->v[i].key, name));
    mem_free(is.ctx);
}

const void *
row_at(const struct fsm_result *r, enum state_table table, enum fsm_what what, size_t i)
{
    for (size_t k = 0; k < r->events->n; k++)
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
    mem_free(was.ctx);
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
    if (table == STATE_ID_META) /* the index that is applied */
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

void
make_objects(struct fx *f)
{
    struct quota *q = &(struct quota){.name = "q"};
    struct acl_policy *p = &(struct acl_policy){.name = "p"};
    struct acl_role *r = &(struct acl_role){.id = "r1", .name = "r"};
    struct acl_auth_method *m = &(struct acl_auth_method){.name = "m"};
    struct acl_binding_rule *b = &(struct acl_binding_rule){.id = "b1", .auth_method = "m"};
    struct acl_token *k = &(struct acl_token){.accessor_id = "k1", .secret_id = "s1"};
    struct acl_token *boot = &(struct acl_token){.accessor_id = "k2", .secret_id = "s2"};
    struct acl_one_time_token once = {.accessor_id = "k1", .one_time_secret_id = "o1"};

    apply(f, &(struct intent){.quota_upsert = &(struct quota_upsert){{&q, 1}}});
    apply(f, &(struct intent){.acl_policy_upsert = &(struct acl_policy_upsert){{&p, 1}}});
    apply(f, &(struct intent){.acl_role_upsert = &(struct acl_role_upsert){{&r, 1}}});
    apply(f, &(struct intent){.acl_auth_method_upsert = &(struct acl_auth_method_upsert){{&m, 1}}});
    apply(f,
          &(struct intent){.acl_binding_rule_upsert = &(struct acl_binding_rule_upsert){{&b, 1}}});
    apply(f, &(struct intent){.acl_token_upsert = &(struct acl_token_upsert){{&k, 1}}});
    apply(f, &(struct intent){.acl_bootstrap = &(struct intent_acl_bootstrap){.token = boot}});
    apply(f, &(struct intent){.acl_one_time = &(struct intent_acl_one_time){.token = &once}});
    struct service_registration *v =
        &(struct service_registration){.id = "_nomad-task-a1-web", .service_name = "web"};
    struct intent_services_set set = {"n2", "a1", {&v, 1}};
    apply(f, &(struct intent){.services_set = &set});
    struct host_volume vol = {.id = "v1", .name = "v", .node_id = "n2"};
    apply(f, &(struct intent){.volume_put = &(struct intent_volume_put){&vol}});
    struct root_key key = {.key_id = "k1", .state = "active"};
    apply(f, &(struct intent){.root_key_upsert = &(struct intent_root_key_upsert){.key = &key}});
    struct variable_lock lock = {.id = "l1"};
    struct sealed_variable var = {.namespace = "default",
                                  .path = "a",
                                  .key_id = "k1",
                                  .sealed = {(uint8_t *)(uintptr_t) "sealed", 6},
                                  .lock = &lock};
    apply(f, &(struct intent){
                 .variable_apply = &(struct intent_variable_apply){"lock-acquire", &var}});
    struct job *scaled = make_job(f, "scaled", 0);
    scaled->task_groups.v[0]->scaling = type_new(scaled, &type_scaling_policy);
    put_job(f, scaled, NULL);
    struct scaling_event told = {.message = "m"};
    struct intent_job_scale scale = {
        .namespace = "default", .job_id = "scaled", .group = "g", .event = &told};
    ck_assert_int_eq(apply(f, &(struct intent){.job_scale = &scale})->err.code, 0);
    struct autopilot_configuration pilot = {.max_trailing_logs = 1};
    apply(f, &(struct intent){.autopilot_set = &(struct intent_autopilot_set){.config = &pilot}});
    struct restore_piece piece = {.id = "r", .data = {(const uint8_t *)"x", 1}};
    apply(f, &(struct intent){.restore_piece = &piece});
}
