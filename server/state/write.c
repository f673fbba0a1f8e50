/* SPDX-License-Identifier: Apache-2.0
 *
 * The state: rows put and deleted, with their indexes and watches, by the rows of tables.h. In this
 * order: what a transaction has changed; rows; then the two tables whose rows keep others alive,
 * versions of jobs and allocations; and dumping and loading of a snapshot.
 *
 * A row is encoded, and one that may need much memory decoded again, before anything is written:
 * what could not be read again is refused, and nothing of it stays.
 */
#include "server/state/write.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/state/state_int.h"

static void
write_changed(struct state_txn *t, enum state_table table, uint64_t index, uint64_t key)
{
    uint8_t k[3] = {'i', 'x', (uint8_t)table_rows[table].id};
    uint8_t v[8];
    if (index == 0)
        return;
    ASSERT(index >= t->touched[table]);
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

void
state_touch(struct state_txn *t, enum state_table table, uint64_t index)
{
    write_changed(t, table, index, 0);
}

const struct state_change *
state_changes(const struct state_txn *t, size_t *ret_n)
{
    *ret_n = t->n_changes;
    return t->changes;
}

static void
put_raw(struct state_txn *t, unsigned table, const struct key *k, struct slice v)
{
    ASSERT(t->write);
    int rc = table_put(t->t, t->s->t[table], KEY_SLICE(*k), v);
    if (rc < 0)
        state_fatal(t->s, "write a row", rc);
}

static void
del_raw(struct state_txn *t, unsigned table, const struct key *k)
{
    ASSERT(t->write);
    int rc = table_del(t->t, t->s->t[table], KEY_SLICE(*k));
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        state_fatal(t->s, "remove a row", rc);
}

/* --- rows --- */

static bool
has_indexes(unsigned table)
{
    for (size_t i = 0; i < ARRAY_LEN(index_rows); i++) {
        if (index_rows[i].of == table)
            return true;
    }
    return false;
}

/* Counts the sealed bytes of the variable, which was `old` and becomes `new`, in its namespace. */
static void
write_bytes(struct state_txn *t, const struct sealed_variable *old,
            const struct sealed_variable *new)
{
    const char *ns = new != NULL ? new->namespace : old->namespace;
    struct key k = key1(ns);
    uint64_t all = state_variables_bytes(t, ns), was = old != NULL ? old->sealed.n : 0;
    uint8_t v[8];

    ASSERT(all >= was);
    all = all - was + (new != NULL ? new->sealed.n : 0);
    be64_put(v, all);
    if (all > 0)
        put_raw(t, T_VARIABLES_BYTES, &k, SLICE(v, sizeof(v)));
    else
        del_raw(t, T_VARIABLES_BYTES, &k);
}

/* Stores the index entries of row `k`, which was `old` (NULL: none) and becomes `new` (NULL:
 * none). */
static void
write_reindex(struct state_txn *t, unsigned table, const struct key *k, const void *old,
              const void *new)
{
    struct key was, is;
    if (table == STATE_VARIABLES)
        write_bytes(t, old, new);
    for (unsigned i = 0; i < ARRAY_LEN(index_rows); i++) {
        const struct index_row *r = &index_rows[i];
        if (r->of != table)
            continue;
        was.n = is.n = 0;
        if (old != NULL && (r->holds == NULL || r->holds(old)))
            key_of(&was, r->key, old);
        if (new != NULL && (r->holds == NULL || r->holds(new)))
            key_of(&is, r->key, new);
        if (was.n == is.n && memcmp(was.b, is.b, is.n) == 0)
            continue;
        if (was.n > 0)
            del_raw(t, T_INDEXES + i, &was);
        if (is.n > 0)
            put_raw(t, T_INDEXES + i, &is, KEY_SLICE(*k));
    }
}

/* Tells whoever waits for what the object is about; `new`, where it differs, was told already. */
static void
write_tell(struct state_txn *t, uint64_t index, unsigned table, const void *obj, const void *new)
{
    const struct table_row *r = &table_rows[table];
    struct key k, other;
    if (r->watches[0].kind == 0)
        write_changed(t, table, index, 0);
    for (unsigned i = 0; i < TABLE_WATCHES && r->watches[i].kind != 0; i++) {
        key_of(&k, r->watches[i].about, obj);
        if (new != NULL) {
            key_of(&other, r->watches[i].about, new);
            if (k.n == other.n && memcmp(k.b, other.b, k.n) == 0)
                continue;
        }
        write_changed(t, table, index, key_watch(r->watches[i].kind, &k));
    }
}

/* Says of what is not stored which row it is, and why. */
static void
write_refuse(struct state_txn *t, unsigned table, const struct key *k, const void *obj)
{
    const struct table_row *r = &table_rows[table];
    char name[ROW_NAME];

    if (codec_check(r->type, obj, &t->refused) == 0)
        err_set(&t->refused, -ERR_LIMIT, "larger, or nested deeper, than a row may be");
    err_prefix(&t->refused, "%s \"%s\" cannot be stored", r->name,
               row_name(KEY_SLICE(*k), name));
}

/* The row as it will be read, in t->row. What may need much memory is decoded once: how much a
 * small row can need is bounded by the structs of the schema (a test holds ROW_SURE_BYTES against
 * them). */
static bool
row_encode(struct state_txn *t, unsigned table, const void *obj, const uint8_t *head)
{
    const struct type *type = table_rows[table].type;
    size_t h = row_head(table);
    void *again = NULL;
    struct err e = ERR_INIT;

    buf_reset(&t->row);
    buf_put(&t->row, head, h);
    mp_encode(&t->row, type, obj);
    if (buf_error(&t->row) != 0)
        return false;
    if (t->row.len <= ROW_SURE_BYTES)
        return true;
    int rc = mp_decode(NULL, type, SLICE(t->row.data + h, t->row.len - h), BUDGET(ROW_BUDGET),
                       &again, &e);
    mem_free(again);
    return rc == 0;
}

void
state_follow(struct state_txn *t, const struct state_follower *f)
{
    ASSERT(t->write);
    t->follower = f;
}

static void
write_put(struct state_txn *t, uint64_t index, unsigned table, const void *obj, const uint8_t *head)
{
    const struct state_follower *f = t->follower;
    auto_mem void *old = NULL;
    struct key k;
    struct slice v;
    if (t->refused.code != 0)
        return;
    key_of(&k, table_rows[table].key, obj);
    if (!row_encode(t, table, obj, head)) {
        write_refuse(t, table, &k, obj);
        return;
    }
    if (has_indexes(table) && row_get(t, table, &k, &v))
        old = row_decode(t, NULL, table, (struct row){KEY_SLICE(k), v});
    write_reindex(t, table, &k, old, obj);
    put_raw(t, table, &k, SLICE(t->row.data, t->row.len));
    write_tell(t, index, table, obj, NULL);
    if (old != NULL)
        write_tell(t, index, table, old, obj);
    if (f != NULL)
        f->stored(f->arg, table, KEY_SLICE(k), obj, index == 0);
}

void
state_put_row(struct state_txn *t, uint64_t index, enum state_table table, const void *obj)
{
    ASSERT(row_head(table) == 0); /* state_put_alloc() */
    write_put(t, index, table, obj, NULL);
}

/* Returns the row that is about to be removed, for write_removed(). */
static void *
row_before(struct state_txn *t, unsigned table, struct row row)
{
    return row_decode(t, t->follower != NULL ? t->follower->ctx : NULL, table, row);
}

/* Takes what row_before() made. */
static void
write_removed(struct state_txn *t, unsigned table, struct slice key, void *old)
{
    const struct state_follower *f = t->follower;

    if (f != NULL)
        f->removed(f->arg, table, key, old);
    else
        mem_free(old);
}

bool
state_del_row(struct state_txn *t, uint64_t index, enum state_table table, struct state_key key)
{
    const struct table_row *r = &table_rows[table];
    struct key k = key_from(r->key, &key);
    struct slice v;
    if (!row_get(t, table, &k, &v))
        return false;
    void *old = row_before(t, table, (struct row){KEY_SLICE(k), v});
    uint64_t jmi = row_head(table) > 0 ? be64_get((const uint8_t *)v.p + 8) : 0;
    write_reindex(t, table, &k, old, NULL);
    del_raw(t, table, &k);
    write_tell(t, index, table, old, NULL);
    if (r->gone != NULL)
        r->gone(t, index, old, jmi);
    write_removed(t, table, KEY_SLICE(k), old);
    return true;
}

/* Removes the row at which the scan stands, of a table without indexes; who waits for it is told by
 * the caller. */
static void
scan_remove(struct state_txn *t, unsigned table, struct table_scan *s, void *old)
{
    struct key k = {.n = s->key.n};

    memcpy(k.b, s->key.p, k.n);
    int rc = table_scan_del(s);
    if (rc < 0)
        state_fatal(t->s, "remove a row", rc);
    write_removed(t, table, KEY_SLICE(k), old);
}

/* --- jobs: their versions stay as long as an allocation refers to one --- */

static bool
version_in_use(struct state_txn *t, const char *ns, const char *id, uint64_t jmi)
{
    struct key k = key2(ns, id);
    bool used = false;
    struct table_scan *s = table_scan(t->t, t->s->t[T_INDEXES + STATE_ALLOCS_BY_JOB], KEY_SLICE(k));
    while (!used && table_next(s)) {
        struct slice row;
        int rc = table_get(t->t, t->s->t[STATE_ALLOCS], s->val, &row);
        used = rc == 0 && row.n >= ROW_HEAD && be64_get((const uint8_t *)row.p + 8) == jmi;
    }
    table_scan_end(s);
    return used;
}

/* An old version that nobody has tagged; its source goes with it. */
static bool
version_goes(struct state_txn *t, uint64_t index, const struct job *j)
{
    if (j->version_tag == NULL)
        (void)state_del(t, index, SUBMISSIONS, j->namespace, j->id, j->version);
    return j->version_tag == NULL;
}

void
state_trim_job_versions(struct state_txn *t, uint64_t index, const char *ns, const char *id,
                        size_t keep)
{
    struct key k = key2(ns, id);
    size_t n = 0;
    bool any = false;
    struct table_scan *s = table_scan(t->t, t->s->t[STATE_JOB_VERSIONS], KEY_SLICE(k));
    while (table_next(s)) {
        if (n++ < keep || s->key.n < 8)
            continue;
        uint64_t jmi = ~be64_get((const uint8_t *)s->key.p + s->key.n - 8);
        if (version_in_use(t, ns, id, jmi))
            continue;
        void *old = row_before(t, STATE_JOB_VERSIONS, (struct row){s->key, s->val});
        if (keep > 0 && !version_goes(t, index, old)) {
            mem_free(old);
            continue;
        }
        scan_remove(t, STATE_JOB_VERSIONS, s, old);
        any = true;
    }
    table_scan_end(s);
    if (any)
        write_changed(t, STATE_JOB_VERSIONS, index, state_key_job(ns, id));
}

/* An allocation of that version is gone: so is the version, when it was the last one and the
 * version is none of the newest `keep`. The others are not looked at: each looks through the job's
 * allocations. */
static void
version_left(struct state_txn *t, uint64_t index, const struct allocation *a, uint64_t jmi,
             size_t keep)
{
    struct key k = key2(a->namespace, a->job_id);
    size_t newer = 0;
    struct table_scan *s = table_scan(t->t, t->s->t[STATE_JOB_VERSIONS], KEY_SLICE(k));
    while (newer < keep && table_next(s) && s->key.n >= 8) {
        if (~be64_get((const uint8_t *)s->key.p + s->key.n - 8) == jmi)
            break;
        newer++;
    }
    table_scan_end(s);
    struct slice row;
    key_u64(&k, ~jmi);
    if (newer < keep || version_in_use(t, a->namespace, a->job_id, jmi) ||
        !row_get(t, STATE_JOB_VERSIONS, &k, &row))
        return;
    void *old = row_before(t, STATE_JOB_VERSIONS, (struct row){KEY_SLICE(k), row});
    if (keep > 0 && !version_goes(t, index, old)) {
        mem_free(old);
        return;
    }
    del_raw(t, STATE_JOB_VERSIONS, &k);
    write_changed(t, STATE_JOB_VERSIONS, index, state_key_job(a->namespace, a->job_id));
    write_removed(t, STATE_JOB_VERSIONS, KEY_SLICE(k), old);
}

/* Removes the rows of a table whose key begins with the job's. */
static void
remove_of_job(struct state_txn *t, uint64_t index, const struct job *j, enum state_table table)
{
    struct key k = key2(j->namespace, j->id);
    bool any = false;
    struct table_scan *s = table_scan(t->t, t->s->t[table], KEY_SLICE(k));

    for (; table_next(s); any = true)
        scan_remove(t, table, s, row_before(t, table, (struct row){s->key, s->val}));
    table_scan_end(s);
    if (any)
        write_changed(t, table, index, state_key_job(j->namespace, j->id));
}

static void
remove_policies(struct state_txn *t, uint64_t index, const struct job *j)
{
    auto_mem void *tmp = mem_ctx("policies");
    struct str_list ids = {0};
    struct state_iter *it = state_scaling_by_job(t, tmp, j->namespace, j->id);

    for (struct job_scaling_policy *p; (p = state_next(it, tmp)) != NULL;)
        list_add(tmp, ids, p->id);
    for (size_t i = 0; i < ids.n; i++)
        (void)state_del(t, index, SCALING_POLICIES, ids.v[i]);
}

void
job_gone(struct state_txn *t, uint64_t index, const void *obj, uint64_t jmi)
{
    const struct job *j = obj;
    (void)jmi;
    (void)state_del(t, index, SUMMARIES, j->namespace, j->id);
    (void)state_del(t, index, PERIODIC_LAUNCHES, j->namespace, j->id);
    remove_of_job(t, index, j, STATE_SUBMISSIONS);
    remove_of_job(t, index, j, STATE_SCALING_EVENTS);
    remove_policies(t, index, j);
    state_trim_job_versions(t, index, j->namespace, j->id, 0);
}

/* --- allocations --- */

void
state_put_alloc(struct state_txn *t, uint64_t index, const struct allocation *a, uint64_t jmi)
{
    struct allocation without = *a; /* its job */
    uint8_t head[ROW_HEAD] = {1};
    head[1] = (uint8_t)((alloc_server_terminal(a) ? ROW_SERVER_TERMINAL : 0) |
                        (alloc_client_terminal(a) ? ROW_CLIENT_TERMINAL : 0));
    be64_put(head + 8, jmi);
    without.job = NULL;
    ASSERT(t->follower == NULL || a->job == NULL);
    write_put(t, index, STATE_ALLOCS, a->job == NULL ? a : &without, head);
}

void
state_end_services(struct state_txn *t, uint64_t index, enum state_by by, const char *id)
{
    auto_mem void *tmp = mem_ctx("services");
    struct str_list ids = {NULL, 0};
    struct state_iter *it = state_by_rows(t, tmp, by, &id, 1);

    for (struct service_registration *s; (s = state_next(it, tmp)) != NULL;)
        list_add(tmp, ids, s->id);
    for (size_t i = 0; i < ids.n; i++)
        (void)state_del(t, index, SERVICES, ids.v[i]);
}

/* The last reference to a version of a job that is gone, or to an old version. */
void
alloc_gone(struct state_txn *t, uint64_t index, const void *obj, uint64_t jmi)
{
    const struct allocation *a = obj;
    auto_mem struct job *j = state_job(t, NULL, a->namespace, a->job_id);
    state_end_services(t, index, STATE_SERVICES_BY_ALLOC, a->id);
    if (j == NULL || j->job_modify_index != jmi)
        version_left(t, index, a, jmi, j == NULL ? 0 : STATE_JOB_VERSIONS_KEPT);
}

/* --- snapshots --- */

int
state_dump(struct state_txn *t, state_row_fn *fn, void *arg)
{
    int rc = 0;
    for (unsigned i = 0; rc >= 0 && i <= T_META; i++) {
        unsigned id = i == T_META ? STATE_ID_META : table_rows[i].id;
        struct table_scan *s = table_scan(t->t, t->s->t[i], SLICE(NULL, 0));
        while (rc >= 0 && table_next(s))
            rc = fn(arg, id, s->key, s->val);
        if (rc >= 0 && s->error != 0)
            rc = s->error;
        table_scan_end(s);
    }
    return rc < 0 ? rc : 0;
}

unsigned
state_table_id(enum state_table table)
{
    return table_rows[table].id;
}

static unsigned
table_of_id(unsigned id)
{
    unsigned table = 0;
    while (table < STATE_TABLES && table_rows[table].id != id)
        table++;
    return id == STATE_ID_META ? T_META : table < STATE_TABLES ? table : T_ALL;
}

int
state_read_row(const void *ctx, unsigned id, struct slice key, struct slice val,
               struct state_dumped *ret)
{
    unsigned table = table_of_id(id);
    *ret = (struct state_dumped){.name = NULL};
    if (table == T_ALL || key.n == 0 || key.n > TABLE_KEY_MAX || val.n > ROW_MAX)
        return -ERR_CORRUPT;
    if (table == T_META)
        return 0;
    struct err e = ERR_INIT;
    size_t head = row_head(table);
    struct key own;
    ret->name = table_rows[table].name;
    ret->type = table_rows[table].type;
    if (val.n < head ||
        mp_decode(ctx, ret->type, SLICE((const uint8_t *)val.p + head, val.n - head),
                  BUDGET(ROW_BUDGET), &ret->obj, &e) < 0)
        return -ERR_CORRUPT;
    key_of(&own, table_rows[table].key, ret->obj);
    /* else the row is another's */
    return own.n == key.n && memcmp(own.b, key.p, key.n) == 0 ? 0 : -ERR_CORRUPT;
}

int
state_load_row(struct state_txn *t, unsigned id, struct slice key, struct slice val)
{
    auto_mem void *tmp = mem_ctx("row");
    struct state_dumped row;
    int rc = state_read_row(tmp, id, key, val, &row);
    if (rc < 0)
        return rc;
    unsigned table = table_of_id(id);
    struct key k = {.n = key.n};
    memcpy(k.b, key.p, key.n);
    put_raw(t, table, &k, val);
    if (table != T_META)
        write_reindex(t, table, &k, NULL, row.obj);
    return 0;
}
