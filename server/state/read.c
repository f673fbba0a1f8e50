/* SPDX-License-Identifier: Apache-2.0
 *
 * State: single rows and lists, see state.h. A row is found, then decoded, whole or lean; the job
 * of an allocation comes from a cache of the transaction. An iterator goes over a table or an
 * index; those above it say from which key on, state_next() and its kin what is made of each row.
 */
#include <string.h>

#include "api/terms.h"
#include "api/vars/vars.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/state/state_int.h"

struct state_iter {
    struct state_txn *t;
    struct table_scan *scan;
    unsigned table;     /* of the rows */
    unsigned scanned;   /* that, or what names them */
    bool by_index;      /* scan values are ids of rows */
    bool live_only;
    size_t left;        /* rows still to give */
    const char *prefix; /* of the id, checked in the row; NULL: none */
    struct key prefix_key;
    uint64_t create_index; /* of a job's versions: only this incarnation; 0: any */
    const char *name;      /* of an allocation, where keys hold its hash; NULL: any */
};

bool
row_get(struct state_txn *t, unsigned table, const struct key *k, struct slice *ret)
{
    int rc = table_get(t->t, t->s->t[table], KEY_SLICE(*k), ret);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        state_fatal(t->s, "read a row", rc);
    return rc == 0;
}

/* All of it, or what `lean` needs. The key is told of a row that cannot be read. */
static void *
row_open(struct state_txn *t, const void *ctx, unsigned table, struct row r, struct lean *lean)
{
    struct slice row = r.val;
    const struct type *type = table_rows[table].type;
    size_t head = row_head(table);
    struct err e = ERR_INIT;
    void *obj = NULL;
    if (row.n < head)
        row_fatal(t->s, table, r.key, "its head is missing");
    struct slice in = SLICE((const uint8_t *)row.p + head, row.n - head);
    int rc = lean != NULL ? lean_open(ctx, lean, in, BUDGET(ROW_BUDGET), &obj, &e)
                          : mp_decode(ctx, type, in, BUDGET(ROW_BUDGET), &obj, &e);
    if (rc < 0)
        row_fatal(t->s, table, r.key, e.text);
    return obj;
}

void *
row_decode(struct state_txn *t, const void *ctx, unsigned table, struct row row)
{
    return row_open(t, ctx, table, row, NULL);
}

void
state_damaged(struct state_txn *t, const char *what)
{
    state_fatal(t->s, what, -ERR_CORRUPT);
}

void *
state_get_row(struct state_txn *t, const void *ctx, enum state_table table, struct state_key key)
{
    return state_get_lean(t, ctx, table, key, NULL);
}

void *
state_get_lean(struct state_txn *t, const void *ctx, enum state_table table, struct state_key key,
               struct lean *lean)
{
    struct key k = key_from(table_rows[table].key, &key);
    struct slice v;
    return row_get(t, table, &k, &v) ? row_open(t, ctx, table, (struct row){KEY_SLICE(k), v}, lean)
                                     : NULL;
}

size_t
state_row_bytes(struct state_txn *t, enum state_table table, struct state_key key)
{
    struct key k = key_from(table_rows[table].key, &key);
    struct slice v;
    return row_get(t, table, &k, &v) ? v.n : 0;
}

bool
state_has_job_at(struct state_txn *t, const char *ns, const char *id, uint64_t jmi)
{
    struct key k = key2(ns, id);
    struct slice v;
    key_u64(&k, ~jmi);
    return row_get(t, STATE_JOB_VERSIONS, &k, &v);
}

/* Both kinds have a built-in row of one name. */
static bool
has_default(struct state_txn *t, enum state_table table)
{
    return state_row_bytes(t, table, (struct state_key){.a = POOL_DEFAULT}) > 0;
}

bool
state_has_built_ins(struct state_txn *t)
{
    return has_default(t, STATE_NODE_POOLS) && has_default(t, STATE_NAMESPACES);
}

bool
state_has_pool(struct state_txn *t, const char *name)
{
    struct state_key key = {.a = str_or(name, POOL_DEFAULT)};

    return state_row_bytes(t, STATE_NODE_POOLS, key) > 0 || !has_default(t, STATE_NODE_POOLS);
}

bool
state_has_namespace(struct state_txn *t, const char *name)
{
    struct state_key key = {.a = str_or(name, NS_DEFAULT)};

    return state_row_bytes(t, STATE_NAMESPACES, key) > 0 || !has_default(t, STATE_NAMESPACES);
}

struct scheduler_configuration *
state_scheduler_config(struct state_txn *t, const void *ctx)
{
    struct scheduler_configuration *c = state_get(t, ctx, SCHEDULER_CONFIG, NULL);
    if (c == NULL) {
        c = type_new(ctx, &type_scheduler_configuration);
        codec_defaults(c, &type_scheduler_configuration, c);
    }
    return c;
}

struct autopilot_configuration *
state_autopilot(struct state_txn *t, const void *ctx)
{
    return state_get(t, ctx, AUTOPILOT, NULL);
}

uint64_t
state_alloc_job_index(struct state_txn *t, const char *alloc_id)
{
    struct slice v;
    struct key k = key1(alloc_id);
    if (!row_get(t, STATE_ALLOCS, &k, &v) || v.n < ROW_HEAD)
        return 0;
    return be64_get((const uint8_t *)v.p + 8);
}

static const struct job *
cached_job(struct state_txn *t, const char *ns, const char *id, uint64_t jmi)
{
    struct cached_job **first = &t->jobs[jmi % JOB_BUCKETS];

    for (struct cached_job *c = *first; c != NULL; c = c->next) {
        if (c->jmi == jmi && str_eq(c->id, id) && str_eq(c->ns, ns))
            return c->job;
    }
    struct cached_job *c = mem_new(t->ctx, struct cached_job);
    c->ns = mem_strdup(c, ns);
    c->id = mem_strdup(c, id);
    c->jmi = jmi;
    c->job = state_job_at(t, c, ns, id, jmi);
    c->next = *first;
    *first = c;
    return c->job;
}

const struct job *
state_alloc_job(struct state_txn *t, struct allocation *a)
{
    uint64_t jmi = state_alloc_job_index(t, a->id);
    const struct job *j = jmi != 0 ? cached_job(t, a->namespace, a->job_id, jmi) : NULL;
    a->job = (struct job *)(uintptr_t)j;
    return j;
}

void
state_alloc_job_lean(struct state_txn *t, struct allocation *a, struct lean *lean)
{
    struct state_key key = {a->namespace, a->job_id, state_alloc_job_index(t, a->id)};
    a->job = key.n != 0 ? state_get_lean(t, a, STATE_JOB_VERSIONS, key, lean) : NULL;
}

struct root_key *
state_active_key(struct state_txn *t, const void *ctx)
{
    struct state_iter *it = state_ids(t, ctx, STATE_ROOT_KEYS, NULL);

    for (struct root_key *k; (k = state_next(it, ctx)) != NULL; talloc_free(k))
        if (str_eq(k->state, KEY_ACTIVE)) {
            state_iter_end(it);
            return k;
        }
    return NULL;
}

/* --- lists --- */

static int
iter_destroy(struct state_iter *it)
{
    table_scan_end(TAKE(it->scan));
    return 0;
}

static struct state_iter *
iter_new(struct state_txn *t, const void *ctx, unsigned scanned, struct key k)
{
    struct state_iter *it = mem_new(ctx, struct state_iter);
    it->t = t;
    it->scanned = scanned;
    it->by_index = scanned >= T_INDEXES;
    it->table = it->by_index ? index_rows[scanned - T_INDEXES].of : scanned;
    it->left = SIZE_MAX;
    it->prefix_key = k;
    it->scan = table_scan(t->t, t->s->t[scanned], KEY_SLICE(k));
    talloc_set_destructor(it, iter_destroy);
    return it;
}

/* The key of the row that a token names, in the table that is scanned; n 0: the token is none. */
static struct key
token_key(const struct state_iter *it, const char *token)
{
    const struct part *parts = it->by_index ? index_rows[it->scanned - T_INDEXES].key
                                            : table_rows[it->table].key;
    struct key none = {.n = 0}, k = it->prefix_key;
    const char *dot = strchr(token, '.');
    auto_mem char *first = mem_strndup(NULL, token, dot != NULL ? (size_t)(dot - token) : 0);
    struct state_key from = {.a = first, .b = dot != NULL ? dot + 1 : NULL};

    if (parts[0].kind == PART_OLDEST) { /* by creation: the number comes before the id */
        if (dot == NULL || num_parse_u64(first, &from.n) < 0)
            return none;
        from.a = from.b;
        return key_from(parts, &from);
    }
    if (!it->by_index && parts[1].kind == PART_STR)
        return dot != NULL ? key_from(parts, &from) : none;
    k.n = it->by_index ? k.n : 0;
    key_part(&k, token);
    return k;
}

void
state_iter_seek(struct state_iter *it, const char *token, bool back)
{
    struct key k = str_empty(token) ? (struct key){.n = 0} : token_key(it, token);
    if (k.n == 0 && !back)
        return;
    table_scan_end(it->scan);
    it->scan = (back ? table_scan_back : table_scan_from)(
        it->t->t, it->t->s->t[it->scanned], KEY_SLICE(it->prefix_key), KEY_SLICE(k));
}

/* Rows of a namespace (or all) whose id starts with prefix. */
static struct state_iter *
iter_ns(struct state_txn *t, const void *ctx, unsigned table, const char *ns, const char *prefix)
{
    struct key k = {.n = 0};
    bool all = str_empty(ns) || str_eq(ns, "*");
    if (!all)
        key_part(&k, ns);
    if (!all && !str_empty(prefix)) {
        size_t n = strlen(prefix);
        n = n < KEY_PART_MAX - 9 ? n : KEY_PART_MAX - 9;
        memcpy(k.b + k.n, prefix, n);
        k.n += n;
    }
    struct state_iter *it = iter_new(t, ctx, table, k);
    if (!str_empty(prefix))
        it->prefix = mem_strdup(it, prefix);
    return it;
}

struct state_iter *
state_ids(struct state_txn *t, const void *ctx, enum state_table table, const char *prefix)
{
    struct key k = {.n = 0};
    size_t n = str_empty(prefix) ? 0 : strlen(prefix);
    bool cut = n > KEY_PART_MAX - 9;
    k.n = cut ? KEY_PART_MAX - 9 : n;
    if (k.n > 0)
        memcpy(k.b, prefix, k.n);
    struct state_iter *it = iter_new(t, ctx, table, k);
    if (cut)
        it->left = 0; /* ids are shorter */
    return it;
}

struct state_iter *
state_jobs(struct state_txn *t, const void *ctx, const char *ns, const char *prefix)
{
    return iter_ns(t, ctx, STATE_JOBS, ns, prefix);
}

struct state_iter *
state_variables(struct state_txn *t, const void *ctx, const char *ns, const char *prefix)
{
    return iter_ns(t, ctx, STATE_VARIABLES, ns, prefix);
}

uint64_t
state_variables_bytes(struct state_txn *t, const char *ns)
{
    struct key k = key1(ns);
    struct slice v;

    return row_get(t, T_VARIABLES_BYTES, &k, &v) && v.n == 8 ? be64_get(v.p) : 0;
}

uint64_t
state_quota_bytes(struct state_txn *t, const char *quota)
{
    auto_mem void *tmp = mem_ctx("quota");
    struct state_iter *it = state_ids(t, tmp, STATE_NAMESPACES, NULL);
    uint64_t n = 0;

    for (struct namespace *ns; (ns = state_next(it, tmp)) != NULL; talloc_free(ns))
        if (str_eq(ns->quota, quota))
            n += state_variables_bytes(t, ns->name);
    return n;
}

struct state_iter *
state_by_rows(struct state_txn *t, const void *ctx, enum state_by index, const char *const *texts,
              size_t n)
{
    struct key k = {.n = 0};
    for (size_t i = 0; i < n; i++)
        key_part(&k, texts[i]);
    return iter_new(t, ctx, T_INDEXES + index, k);
}

static bool
any_below(struct state_txn *t, unsigned table, struct slice prefix)
{
    struct table_scan *s = table_scan(t->t, table, prefix);
    bool any = table_next(s);

    if (s->error != 0)
        state_fatal(t->s, "a list", s->error);
    table_scan_end(s);
    return any;
}

bool
state_any(struct state_txn *t, enum state_by index, const char *ns, const char *id)
{
    struct key k = key2(ns, id);

    return any_below(t, t->s->t[T_INDEXES + index], KEY_SLICE(k));
}

bool
state_any_key(struct state_txn *t, enum state_by index, const char *first)
{
    struct key k = key1(first);

    return any_below(t, t->s->t[T_INDEXES + index], KEY_SLICE(k));
}

bool
state_any_row(struct state_txn *t, enum state_table table)
{
    return any_below(t, t->s->t[table], SLICE("", 0));
}

struct state_iter *
state_live_named(struct state_txn *t, const void *ctx, const struct allocation *like,
                 const char *node_id)
{
    struct key k = key2(like->namespace, like->job_id);
    key_hash(&k, like->name);
    if (node_id != NULL)
        key_hash(&k, node_id);
    struct state_iter *it = iter_new(t, ctx, T_INDEXES + STATE_LIVE_ALLOCS, k);
    it->name = mem_strdup(it, like->name);
    return it;
}

struct state_iter *
state_children(struct state_txn *t, const void *ctx, const char *ns, const char *parent,
               const char *token)
{
    struct key k = key2(ns, parent);
    if (!str_empty(token))
        key_hash(&k, token);
    return iter_new(t, ctx, T_INDEXES + STATE_JOBS_BY_PARENT, k);
}

/* Returns the row of those with the hash whose secret is the same; each byte is looked at. */
static void *
row_of_secret(struct state_txn *t, const void *ctx, unsigned index, const char *wire,
              const struct type *type, const char *secret)
{
    struct key k = {.n = 0};

    key_hash(&k, secret);
    struct state_iter *it = iter_new(t, ctx, T_INDEXES + index, k);
    for (void *row; (row = state_next(it, ctx)) != NULL; talloc_free(row))
        if (str_same_secret(*(const char *const *)type_member(type, row, wire), secret)) {
            state_iter_end(it);
            return row;
        }
    return NULL;
}

struct acl_token *
state_acl_token_of(struct state_txn *t, const void *ctx, const char *secret)
{
    return row_of_secret(t, ctx, STATE_ACL_TOKENS_BY_SECRET, "SecretID", &type_acl_token, secret);
}

struct acl_one_time_token *
state_acl_one_time_of(struct state_txn *t, const void *ctx, const char *secret)
{
    return row_of_secret(t, ctx, STATE_ACL_ONE_TIME_BY_SECRET, "OneTimeSecretID",
                         &type_acl_one_time_token, secret);
}

struct state_iter *
state_periodic_launches(struct state_txn *t, const void *ctx)
{
    return iter_ns(t, ctx, STATE_PERIODIC_LAUNCHES, NULL, NULL);
}

struct state_iter *
state_blocked_evals(struct state_txn *t, const void *ctx, const char *ns, const char *id)
{
    struct key k = key2(ns, id);
    key_part(&k, EVAL_BLOCKED);
    return iter_new(t, ctx, T_INDEXES + STATE_OPEN_EVALS, k);
}

struct state_iter *
state_scaling_events(struct state_txn *t, const void *ctx, const char *ns, const char *id)
{
    return iter_new(t, ctx, STATE_SCALING_EVENTS, key2(ns, id));
}

struct state_iter *
state_job_versions(struct state_txn *t, const void *ctx, const char *ns, const char *id)
{
    struct state_iter *it = iter_new(t, ctx, STATE_JOB_VERSIONS, key2(ns, id));
    it->left = STATE_JOB_VERSIONS_KEPT;
    /* A purged job of that id may have left versions that old allocations refer to. */
    struct job *j = state_job(t, it, ns, id);
    it->create_index = j != NULL ? j->create_index : UINT64_MAX;
    mem_free(j);
    return it;
}

void
state_job_versions_seek(struct state_iter *it, uint64_t jmi)
{
    struct key k = it->prefix_key;

    key_u64(&k, ~jmi);
    while (it->left > 0 && table_next(it->scan) && it->scan->key.n == k.n &&
           memcmp(it->scan->key.p, k.b, k.n) < 0)
        it->left--;
    table_scan_end(it->scan);
    it->scan = table_scan_from(it->t->t, it->t->s->t[it->scanned], KEY_SLICE(it->prefix_key),
                               KEY_SLICE(k));
}

struct lean *
state_version_lean(const void *ctx)
{
    return lean_new(ctx, &type_job, &type_job,
                    "Version VersionTag Stable CreateIndex ModifyIndex JobModifyIndex", "");
}

struct job *
state_find_version(struct state_txn *t, const void *ctx, const char *ns, const char *id,
                   state_version_fn *is, const void *arg)
{
    auto_mem void *tmp = mem_ctx("versions");
    struct lean *lean = state_version_lean(tmp);
    struct state_iter *it = state_job_versions(t, tmp, ns, id);

    for (struct job *j; (j = state_next_lean(it, tmp, lean)) != NULL; talloc_free(j))
        if (is(j, arg))
            return state_job_at(t, ctx, ns, id, j->job_modify_index);
    return NULL;
}

struct deployment *
state_latest_deployment(struct state_txn *t, const void *ctx, const char *ns, const char *id)
{
    struct state_iter *it = state_deployments_by_job(t, ctx, ns, str_or(id, ""));
    struct deployment *d = state_next(it, ctx);

    if (d != NULL)
        state_iter_end(it);
    return d;
}

void
state_iter_live_only(struct state_iter *it)
{
    ASSERT(it->table == STATE_ALLOCS);
    it->live_only = true;
}

/* The id that a prefix query is about: the second part of the key. */
static const char *
row_id(const struct state_iter *it, const void *obj)
{
    const void *at = (const char *)obj + table_rows[it->table].key[1].at;
    return *(const char *const *)at;
}

static bool
next_row(struct state_iter *it, struct row *ret)
{
    while (it->scan != NULL && table_next(it->scan)) {
        *ret = (struct row){it->scan->key, it->scan->val};
        if (it->by_index) {
            ret->key = it->scan->val;
            int rc = table_get(it->t->t, it->t->s->t[it->table], ret->key, &ret->val);
            if (rc < 0)
                state_fatal(it->t->s, "a row that an index names", rc);
        }
        if (it->live_only && (ret->val.n < ROW_HEAD || ((const uint8_t *)ret->val.p)[1] != 0))
            continue;
        return true;
    }
    if (it->scan != NULL && it->scan->error != 0)
        state_fatal(it->t->s, "a list", it->scan->error);
    return false;
}

void *
state_next(struct state_iter *it, const void *ctx)
{
    return state_next_lean(it, ctx, NULL);
}

void *
state_next_lean(struct state_iter *it, const void *ctx, struct lean *lean)
{
    struct row row;
    bool versions = it->create_index != 0;
    while ((it->left > 0 || versions) && next_row(it, &row)) {
        void *obj = row_open(it->t, ctx, it->table, row, lean);
        bool other = it->prefix != NULL && !str_prefix(row_id(it, obj), it->prefix);
        if (versions) {
            const struct job *j = obj;
            other |=
                j->create_index != it->create_index || (it->left == 0 && j->version_tag == NULL);
        }
        if (it->name != NULL)
            other |= !str_eq(((const struct allocation *)obj)->name, it->name);
        if (other) {
            mem_free(obj);
            continue;
        }
        it->left -= it->left > 0;
        return obj;
    }
    state_iter_end(it);
    return NULL;
}

struct allocation *
state_next_with_job(struct state_iter *it, const void *ctx)
{
    ASSERT(it->table == STATE_ALLOCS);
    struct state_txn *t = it->t;
    struct allocation *a = state_next(it, ctx);
    if (a != NULL)
        state_alloc_job(t, a);
    return a;
}

void
state_iter_end(struct state_iter *it)
{
    mem_free(it);
}
