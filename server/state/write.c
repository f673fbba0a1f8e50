/* SPDX-License-Identifier: Apache-2.0
 *
 * State: writing rows, what is derived from them, and what changed. See write.h.
 */
#include "server/state/write.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/state/state_int.h"

static void
changed(struct state_txn *t, enum state_table table, uint64_t index, uint64_t key)
{
    uint8_t k[3] = {'i', 'x', (uint8_t)table};
    uint8_t v[8];
    if (index == 0)
        return;
    if (t->touched[table] != index) {
        be64_put(v, index);
        int rc = table_put(t->t, t->s->t[T_META], SLICE(k, sizeof(k)), SLICE(v, sizeof(v)));
        if (rc < 0)
            state_fatal(t->s, "table index", rc);
        t->touched[table] = index;
    }
    if (t->n_changes == t->cap_changes) {
        t->cap_changes = t->cap_changes == 0 ? 16 : t->cap_changes * 2;
        mem_resize(t, t->changes, struct state_change, t->cap_changes);
    }
    t->changes[t->n_changes++] = (struct state_change){table, key};
}

const struct state_change *
state_changes(const struct state_txn *t, size_t *ret_n)
{
    *ret_n = t->n_changes;
    return t->changes;
}

static void
put_raw(struct state_txn *t, unsigned table, struct key k, struct slice v)
{
    ASSERT(t->write);
    int rc = table_put(t->t, t->s->t[table], KEY_SLICE(k), v);
    if (rc < 0)
        state_fatal(t->s, "write a row", rc);
}

static void
del_raw(struct state_txn *t, unsigned table, struct key k)
{
    ASSERT(t->write);
    int rc = table_del(t->t, t->s->t[table], KEY_SLICE(k));
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        state_fatal(t->s, "remove a row", rc);
}

static void
put_obj(struct state_txn *t, unsigned table, struct key k, const void *obj)
{
    buf_reset(&t->row);
    mp_encode(&t->row, row_type(table), obj);
    if (buf_error(&t->row) != 0)
        state_fatal(t->s, "encode a row", buf_error(&t->row));
    put_raw(t, table, k, SLICE(t->row.data, t->row.len));
}

/* --- jobs --- */

void
state_put_job(struct state_txn *t, uint64_t index, const struct job *j)
{
    auto_mem void *tmp = mem_ctx("put job");
    const struct job *old = state_job(t, tmp, j->namespace, j->id);
    if (old != NULL && !str_eq(old->type, j->type))
        del_raw(t, T_JOBS_BY_TYPE, key3(old->type, j->namespace, j->id));
    struct key k = key2(j->namespace, j->id);
    if (old == NULL || !str_eq(old->type, j->type))
        put_raw(t, T_JOBS_BY_TYPE, key3(j->type, j->namespace, j->id), KEY_SLICE(k));
    put_obj(t, T_JOBS, key2(j->namespace, j->id), j);
    changed(t, STATE_JOBS, index, state_key_job(j->namespace, j->id));
}

static struct key
version_key(const char *ns, const char *id, uint64_t v)
{
    struct key k = key2(ns, id);
    key_u64(&k, ~v);
    return k;
}

void
state_put_job_version(struct state_txn *t, uint64_t index, const struct job *j)
{
    put_obj(t, T_JOB_VERSIONS, version_key(j->namespace, j->id, j->job_modify_index), j);
    changed(t, STATE_JOB_VERSIONS, index, state_key_job(j->namespace, j->id));
}

static bool
version_in_use(struct state_txn *t, const char *ns, const char *id, uint64_t jmi)
{
    struct key k = key2(ns, id);
    bool used = false;
    struct table_scan *s = table_scan(t->t, t->s->t[T_ALLOCS_BY_JOB], KEY_SLICE(k));
    while (!used && table_next(s)) {
        struct slice row;
        int rc = table_get(t->t, t->s->t[T_ALLOCS], s->val, &row);
        used = rc == 0 && row.n >= ROW_HEAD && be64_get((const uint8_t *)row.p + 8) == jmi;
    }
    table_scan_end(s);
    return used;
}

void
state_trim_job_versions(struct state_txn *t, uint64_t index, const char *ns, const char *id,
                        size_t keep)
{
    struct key k = key2(ns, id);
    size_t n = 0;
    bool any = false;
    struct table_scan *s = table_scan(t->t, t->s->t[T_JOB_VERSIONS], KEY_SLICE(k));
    while (table_next(s)) {
        if (n++ < keep || s->key.n < 8)
            continue;
        uint64_t jmi = ~be64_get((const uint8_t *)s->key.p + s->key.n - 8);
        if (version_in_use(t, ns, id, jmi))
            continue;
        int rc = table_scan_del(s);
        if (rc < 0)
            state_fatal(t->s, "remove a job version", rc);
        any = true;
    }
    table_scan_end(s);
    if (any)
        changed(t, STATE_JOB_VERSIONS, index, state_key_job(ns, id));
}

/* An allocation of that version is gone: so is the version, when it was the last one and the version is
 * none of the newest `keep`. The others are not looked at: each looks through the job's allocations. */
static void
version_left(struct state_txn *t, uint64_t index, const struct allocation *a, uint64_t jmi, size_t keep)
{
    struct key k = key2(a->namespace, a->job_id);
    size_t newer = 0;
    struct table_scan *s = table_scan(t->t, t->s->t[T_JOB_VERSIONS], KEY_SLICE(k));
    while (newer < keep && table_next(s) && s->key.n >= 8) {
        if (~be64_get((const uint8_t *)s->key.p + s->key.n - 8) == jmi)
            break;
        newer++;
    }
    table_scan_end(s);
    if (newer < keep || version_in_use(t, a->namespace, a->job_id, jmi))
        return;
    del_raw(t, T_JOB_VERSIONS, version_key(a->namespace, a->job_id, jmi));
    changed(t, STATE_JOB_VERSIONS, index, state_key_job(a->namespace, a->job_id));
}

static void
del_prefix(struct state_txn *t, unsigned table, struct key k)
{
    struct table_scan *s = table_scan(t->t, t->s->t[table], KEY_SLICE(k));
    while (table_next(s)) {
        int rc = table_scan_del(s);
        if (rc < 0)
            state_fatal(t->s, "remove rows", rc);
    }
    table_scan_end(s);
}

void
state_del_job(struct state_txn *t, uint64_t index, const char *ns, const char *id)
{
    uint64_t key = state_key_job(ns, id);
    auto_mem void *tmp = mem_ctx("del job");
    const struct job *old = state_job(t, tmp, ns, id);
    if (old != NULL)
        del_raw(t, T_JOBS_BY_TYPE, key3(old->type, ns, id));
    del_raw(t, T_JOBS, key2(ns, id));
    changed(t, STATE_JOBS, index, key);
    del_raw(t, T_SUMMARIES, key2(ns, id));
    changed(t, STATE_SUMMARIES, index, key);
    del_prefix(t, T_SUBMISSIONS, key2(ns, id));
    changed(t, STATE_SUBMISSIONS, index, key);
    state_trim_job_versions(t, index, ns, id, 0);
}

void
state_put_summary(struct state_txn *t, uint64_t index, const struct job_summary *s)
{
    put_obj(t, T_SUMMARIES, key2(s->namespace, s->job_id), s);
    changed(t, STATE_SUMMARIES, index, state_key_job(s->namespace, s->job_id));
}

void
state_put_submission(struct state_txn *t, uint64_t index, const struct job_submission *s)
{
    put_obj(t, T_SUBMISSIONS, version_key(s->namespace, s->job_id, s->version), s);
    changed(t, STATE_SUBMISSIONS, index, state_key_job(s->namespace, s->job_id));
}

/* --- nodes --- */

void
state_put_node(struct state_txn *t, uint64_t index, const struct node *n)
{
    put_obj(t, T_NODES, key1(n->id), n);
    changed(t, STATE_NODES, index, state_key_node(n->id));
}

void
state_del_node(struct state_txn *t, uint64_t index, const char *id)
{
    del_raw(t, T_NODES, key1(id));
    changed(t, STATE_NODES, index, state_key_node(id));
}

/* --- allocations --- */

static void
alloc_indexes(struct state_txn *t, const struct allocation *a, bool put)
{
    struct key id = key1(a->id);
    struct key keys[] = {key3(a->namespace, a->job_id, a->id), key2(a->node_id, a->id),
                         key2(a->eval_id, a->id), key_create(a->create_index, a->id)};
    static const unsigned tables[] = {T_ALLOCS_BY_JOB, T_ALLOCS_BY_NODE, T_ALLOCS_BY_EVAL,
                                      T_ALLOCS_BY_CREATE};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        if (put)
            put_raw(t, tables[i], keys[i], KEY_SLICE(id));
        else
            del_raw(t, tables[i], keys[i]);
    }
}

/* The row that says that it lives. */
static void
alloc_lives(struct state_txn *t, const struct allocation *a, bool lives)
{
    struct key id = key1(a->id), k = key2(a->namespace, a->job_id);
    key_hash(&k, a->name);
    key_hash(&k, a->node_id);
    key_part(&k, a->id);
    if (lives)
        put_raw(t, T_LIVE_ALLOCS, k, KEY_SLICE(id));
    else
        del_raw(t, T_LIVE_ALLOCS, k);
}

static void
alloc_changed(struct state_txn *t, uint64_t index, const struct allocation *a)
{
    changed(t, STATE_ALLOCS, index, state_key_alloc(a->id));
    changed(t, STATE_ALLOCS, index, state_key_job_allocs(a->namespace, a->job_id));
    changed(t, STATE_ALLOCS, index, state_key_node_allocs(a->node_id));
    changed(t, STATE_ALLOCS, index, state_key_eval_allocs(a->eval_id));
}

void
state_put_alloc(struct state_txn *t, uint64_t index, const struct allocation *a, uint64_t jmi)
{
    auto_mem void *tmp = mem_ctx("put alloc");
    struct allocation *old = state_alloc(t, tmp, a->id);
    bool same = old != NULL && str_eq(old->eval_id, a->eval_id) &&
                str_eq(old->node_id, a->node_id) && str_eq(old->job_id, a->job_id) &&
                str_eq(old->namespace, a->namespace) &&
                old->create_index == a->create_index && str_eq(old->name, a->name);
    if (old != NULL && !same) {
        alloc_changed(t, index, old);
        alloc_indexes(t, old, false);
    }
    bool was_live = old != NULL && !alloc_terminal(old);
    if (was_live && (!same || alloc_terminal(a)))
        alloc_lives(t, old, false);
    if (!alloc_terminal(a) && (!same || !was_live))
        alloc_lives(t, a, true);
    uint8_t head[ROW_HEAD] = {1};
    head[1] = (uint8_t)((alloc_server_terminal(a) ? ROW_SERVER_TERMINAL : 0) |
                        (alloc_client_terminal(a) ? ROW_CLIENT_TERMINAL : 0));
    be64_put(head + 8, jmi);
    struct allocation copy = *a;
    copy.job = NULL;
    buf_reset(&t->row);
    buf_put(&t->row, head, sizeof(head));
    mp_encode(&t->row, &type_allocation, &copy);
    if (buf_error(&t->row) != 0)
        state_fatal(t->s, "encode an allocation", buf_error(&t->row));
    put_raw(t, T_ALLOCS, key1(a->id), SLICE(t->row.data, t->row.len));
    if (!same)
        alloc_indexes(t, a, true);
    alloc_changed(t, index, a);
}

void
state_del_alloc(struct state_txn *t, uint64_t index, const char *id)
{
    auto_mem void *tmp = mem_ctx("del alloc");
    struct allocation *a = state_alloc(t, tmp, id);
    if (a == NULL)
        return;
    uint64_t jmi = state_alloc_job_index(t, id);
    alloc_indexes(t, a, false);
    if (!alloc_terminal(a))
        alloc_lives(t, a, false);
    del_raw(t, T_ALLOCS, key1(id));
    alloc_changed(t, index, a);
    /* The last reference to a version of a job that is gone, or to an old version. */
    struct job *j = state_job(t, tmp, a->namespace, a->job_id);
    if (j == NULL || j->job_modify_index != jmi)
        version_left(t, index, a, jmi, j == NULL ? 0 : STATE_JOB_VERSIONS_KEPT);
}

/* --- evaluations --- */

static void
eval_changed(struct state_txn *t, uint64_t index, const struct evaluation *ev)
{
    changed(t, STATE_EVALS, index, state_key_eval(ev->id));
    changed(t, STATE_EVALS, index, state_key_job_evals(ev->namespace, ev->job_id));
}

/* Its rows among the open ones of the job: one, or none when it is over (or goes: NULL). */
static void
eval_open(struct state_txn *t, const struct evaluation *ev, const char *status)
{
    static const char *const open[] = {EVAL_PENDING, EVAL_BLOCKED};
    struct key id = key1(ev->id);
    for (size_t i = 0; i < ARRAY_LEN(open); i++) {
        struct key k = key3(ev->namespace, ev->job_id, open[i]);
        key_part(&k, ev->id);
        if (str_eq(status, open[i]))
            put_raw(t, T_OPEN_EVALS, k, KEY_SLICE(id));
        else
            del_raw(t, T_OPEN_EVALS, k);
    }
}

void
state_put_eval(struct state_txn *t, uint64_t index, const struct evaluation *ev)
{
    struct key id = key1(ev->id);
    put_obj(t, T_EVALS, id, ev);
    put_raw(t, T_EVALS_BY_JOB, key3(ev->namespace, ev->job_id, ev->id), KEY_SLICE(id));
    put_raw(t, T_EVALS_BY_CREATE, key_create(ev->create_index, ev->id), KEY_SLICE(id));
    eval_open(t, ev, ev->status);
    eval_changed(t, index, ev);
}

void
state_del_eval(struct state_txn *t, uint64_t index, const char *id)
{
    auto_mem void *tmp = mem_ctx("del eval");
    struct evaluation *ev = state_eval(t, tmp, id);
    if (ev == NULL)
        return;
    del_raw(t, T_EVALS_BY_JOB, key3(ev->namespace, ev->job_id, ev->id));
    del_raw(t, T_EVALS_BY_CREATE, key_create(ev->create_index, ev->id));
    eval_open(t, ev, NULL);
    del_raw(t, T_EVALS, key1(id));
    eval_changed(t, index, ev);
}

void
state_put_scheduler_config(struct state_txn *t, uint64_t index,
                           const struct scheduler_configuration *c)
{
    put_obj(t, T_CONFIG, key1("config"), c);
    changed(t, STATE_SCHEDULER_CONFIG, index, 0);
}

/* --- snapshots --- */

int
state_dump(struct state_txn *t, state_row_fn *fn, void *arg)
{
    int rc = 0;
    for (unsigned i = 0; rc >= 0 && i < T_PRIMARY; i++) {
        struct table_scan *s = table_scan(t->t, t->s->t[i], SLICE(NULL, 0));
        while (rc >= 0 && table_next(s))
            rc = fn(arg, i, s->key, s->val);
        if (rc >= 0 && s->error != 0)
            rc = s->error;
        table_scan_end(s);
    }
    return rc < 0 ? rc : 0;
}

int
state_load_row(struct state_txn *t, unsigned table, struct slice key, struct slice val)
{
    if (table >= T_PRIMARY || key.n == 0 || key.n > TABLE_KEY_MAX || val.n > ROW_MAX)
        return -ERR_CORRUPT;
    auto_mem void *tmp = mem_ctx("load row");
    void *obj = NULL;
    const struct type *type = row_type(table);
    if (type != NULL) {
        size_t skip = table == T_ALLOCS ? ROW_HEAD : 0;
        if (val.n < skip)
            return -ERR_CORRUPT;
        struct err e = ERR_INIT;
        if (mp_decode(tmp, type, (const uint8_t *)val.p + skip, val.n - skip, BUDGET(ROW_BUDGET),
                      &obj, &e) < 0)
            return -ERR_CORRUPT;
    }
    struct key k = {.n = key.n};
    memcpy(k.b, key.p, key.n);
    put_raw(t, table, k, val);
    if (table == T_ALLOCS) {
        alloc_indexes(t, obj, true);
        if (!alloc_terminal(obj))
            alloc_lives(t, obj, true);
    }
    if (table == T_JOBS) {
        const struct job *j = obj;
        put_raw(t, T_JOBS_BY_TYPE, key3(j->type, j->namespace, j->id), KEY_SLICE(k));
    }
    if (table == T_EVALS) {
        const struct evaluation *ev = obj;
        put_raw(t, T_EVALS_BY_JOB, key3(ev->namespace, ev->job_id, ev->id), KEY_SLICE(k));
        put_raw(t, T_EVALS_BY_CREATE, key_create(ev->create_index, ev->id), KEY_SLICE(k));
        eval_open(t, ev, ev->status);
    }
    return 0;
}
