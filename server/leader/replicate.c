/* SPDX-License-Identifier: Apache-2.0
 *
 * Replication: a region follows the objects with a name that the authoritative region writes. The
 * leader asks there by a blocking query (Object.Export), from the index of the last answer on, and
 * proposes rows that differ here and deletions of rows that are gone there. An answer names all
 * rows, so nothing is lost however long the regions were cut off. A row in use here stays, and its
 * deletion is tried again with the next answer.
 *
 *   ASKING    the query is open           its answer: COMPARING; its failure: WAITING
 *   COMPARING a worker has it             done: WRITING
 *   WRITING   the log has an entry        the last one: ASKING; a failure: WAITING
 *   WAITING   a timer                     ASKING
 */
#include "api/object.h"
#include "api/terms.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"
#include "net/rpc.h"
#include "server/leader/leader_int.h"

enum {
    ASK_WAIT_MS = 30000, /* of a query without news; what was in use is looked at again then */
    ASK_SPARE_MS = 5000,
    RETRY_MS = 1000,
    RETRY_MAX_MS = 5000, /* a link that heals is used soon */
    ROWS_MAX = 64, /* of an entry */
};

/* An entry to be written. */
struct change {
    struct intent in;
    const char *deleted; /* the name, of a deletion; NULL */
};

/* An answer on its way into the state; touches *r as long as the gate is open. */
struct round {
    struct replicate *r;
    struct gate *gate;
    uint64_t gen;
    const struct objects_export *got;
    struct {
        struct change *v;
        size_t n;
    } changes;
    size_t at;
};

struct replicate {
    struct leader *l;
    uint64_t gen;   /* counts leaderships: rounds of an older one are dropped */
    uint64_t since; /* index of the last answer */
    bool news;      /* that index is another one than before */
    uint64_t first; /* index of the first part of an answer, */
    char *after;    /* whose next part begins behind this name; NULL: it is whole */
    int64_t retry_ms;
    struct timer *timer;
    struct rpc_client *client; /* with an open query */
    uint64_t call;
};

static void replicate_ask(void *arg);

static void
round_free(struct round *x)
{
    gate_unref(x->gate);
    talloc_free(x);
}

/* False: the server stops, or leads no more. */
static bool
round_goes_on(const struct round *x)
{
    return !gate_is_closed(x->gate) && x->r->l->on && x->r->gen == x->gen;
}

static void
replicate_later(struct replicate *r, const char *why)
{
    log_debug("replicate", "the authoritative region is asked again later", "error", why, NULL);
    r->retry_ms = r->retry_ms == 0                 ? RETRY_MS
                  : 2 * r->retry_ms > RETRY_MAX_MS ? RETRY_MAX_MS
                                                   : 2 * r->retry_ms;
    env_timer_stop(r->l->env, r->timer);
    r->timer = env_timer(r->l->env, r->retry_ms, replicate_ask, r);
}

/* --- what is otherwise here --- */

struct name {
    const char *text;
    UT_hash_handle hh;
};

static bool
same_hash(const struct type *type, const void *a, const void *b)
{
    const struct bytes *x = type_member(type, a, "Hash"), *y = type_member(type, b, "Hash");

    return x->n == y->n && (x->n == 0 || memcmp(x->v, y->v, x->n) == 0);
}

static struct change *
change_new(struct round *x)
{
    list_add(x, x->changes, (struct change){.deleted = NULL});
    return &x->changes.v[x->changes.n - 1];
}

/* The rows of a table that differ from those here. */
static struct object_list
rows_to_store(struct round *x, struct state_txn *t, enum state_table table,
              const struct object_kind *k, const struct object_list *rows)
{
    struct object_list store = {NULL, 0};

    for (size_t i = 0; i < rows->n; i++) {
        struct err e = ERR_INIT;
        const char *name = object_key(k, rows->v[i]);
        const void *here = state_get_row(t, x, table, (struct state_key){.a = name});
        if (k->check(rows->v[i], false, &e) == 0 &&
            (here == NULL || !same_hash(k->type, rows->v[i], here)))
            list_add(x, store, rows->v[i]);
    }
    return store;
}

/* Whether a row here was deleted there. */
static bool
row_is_gone(struct round *x, const struct object_kind *k, const struct name *there, void *here)
{
    struct err e = ERR_INIT;
    const char *key = mem_printf(x, "%s/%s", k->type->name, object_key(k, here));
    const struct name *found;

    HASH_FIND_STR(there, key, found);
    return found == NULL && object_is_shared(k, here) && k->check(here, true, &e) == 0;
}

static struct name *
names_of(struct round *x)
{
    struct name *all = NULL;

    for (size_t i = 0; i < x->got->names.n; i++) {
        struct name *n = mem_new(x, struct name), *known;
        n->text = x->got->names.v[i];
        HASH_FIND_STR(all, n->text, known);
        if (known == NULL)
            HASH_ADD_KEYPTR(hh, all, n->text, strlen(n->text), n);
    }
    return all;
}

#define COMPARE(TABLE, type, TYPE, member)                                                         \
    static void compare_##type(struct round *x, struct state_txn *t, struct name *there)           \
    {                                                                                              \
        const struct object_kind *k = object_kind(&type_##type);                                   \
        struct object_list store =                                                                 \
            rows_to_store(x, t, STATE_##TABLE, k, (const struct object_list *)&x->got->member);    \
        struct state_iter *it = state_ids(t, x, STATE_##TABLE, NULL);                              \
        for (size_t i = 0; i < store.n; i += ROWS_MAX) {                                           \
            struct type##_upsert *up = mem_new(x, struct type##_upsert);                           \
            size_t n = store.n - i < ROWS_MAX ? store.n - i : ROWS_MAX;                            \
            *up = (struct type##_upsert){{(struct type **)store.v + i, n}};                        \
            change_new(x)->in.type##_upsert = up;                                                  \
        }                                                                                          \
        for (struct type * row; (row = state_next(it, x)) != NULL;) {                              \
            if (!row_is_gone(x, k, there, row))                                                    \
                continue;                                                                          \
            struct object_delete *del = mem_new(x, struct object_delete);                          \
            del->region = server_cfg(x->r->l->s)->region;                                          \
            list_add(x, del->names, object_key(k, row));                                           \
            struct change *c = change_new(x);                                                      \
            c->in.type##_delete = del;                                                             \
            c->deleted = object_key(k, row);                                                       \
        }                                                                                          \
    }
API_REPLICATED_OBJECTS(COMPARE)
#undef COMPARE

static void
round_compare(void *arg)
{
    struct round *x = arg;

    if (!gate_enter(x->gate))
        return;
    struct name *there = names_of(x);
    struct state_txn *t = server_read_begin(x->r->l->s, x);
    if (state_has_built_ins(t)) {
        /* both must have access control: one without it says nothing of its objects */
        bool rights = x->got->rights && server_cfg(x->r->l->s)->acl_enabled;
#define COMPARE(TABLE, type, ...)                                                                  \
    if ((STATE_BIT(STATE_##TABLE) & STATE_RIGHTS) == 0 || rights)                                  \
        compare_##type(x, t, there);
        API_REPLICATED_OBJECTS(COMPARE)
#undef COMPARE
    }
    state_read_end(t);
    HASH_CLEAR(hh, there);
    gate_leave(x->gate);
}

/* --- writing it --- */

static void round_write(struct round *x);

/* A deletion that something here forbids is no failure: the object stays for now. */
static void
round_written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct round *x = arg;

    (void)index;
    (void)res;
    if (!round_goes_on(x)) {
        round_free(x);
        return;
    }
    ASSERT(x->at < x->changes.n); /* one answer for each entry */
    const char *deleted = x->changes.v[x->at++].deleted;
    if (e != NULL && deleted == NULL) {
        x->r->since = 0;
        mem_free(x->r->after);
        replicate_later(x->r, e->text);
        round_free(x);
        return;
    }
    if (e != NULL && x->r->news)
        log_warn("replicate", "an object that the authoritative region has deleted is used here",
                 "name", deleted, "error", e->text, NULL);
    round_write(x);
}

static void
round_write(struct round *x)
{
    struct replicate *r = x->r;

    if (x->at < x->changes.n) {
        server_propose(r->l->s, &x->changes.v[x->at].in, HOME_LOOP, round_written, x);
        return;
    }
    round_free(x);
    replicate_ask(r);
}

static void
round_compared(void *arg)
{
    struct round *x = arg;

    if (round_goes_on(x))
        round_write(x);
    else
        round_free(x);
}

/* --- asking --- */

static void
replicate_answered(void *arg, const struct err *e, const void *resp)
{
    struct round *x = arg;
    struct replicate *r = x->r;

    if (!round_goes_on(x)) {
        round_free(x);
        return;
    }
    r->call = 0;
    if (e != NULL) {
        replicate_later(r, e->text);
        round_free(x);
        return;
    }
    x->got = codec_clone(x, &type_objects_export, resp);
    uint64_t index = x->got->meta != NULL ? x->got->meta->index : 0;
    if (r->after == NULL)
        r->first = index;
    mem_free(r->after);
    if (!str_empty(x->got->next)) {
        r->after = mem_strdup(r, x->got->next);
    } else {
        r->news = r->first != r->since;
        r->since = r->first < r->since ? 0 : r->first; /* of an older state: all */
    }
    r->retry_ms = 0;
    env_work(r->l->env, round_compare, round_compared, x);
}

static void
replicate_ask(void *arg)
{
    struct replicate *r = arg;
    const struct server_config *cfg = server_cfg(r->l->s);
    const struct objects_export_request req = {.since = r->since, .after = r->after};
    const struct rpc_envelope env = {.region = cfg->authoritative_region,
                                     .auth_token = cfg->acl_replication_token,
                                     .hops = 1,
                                     .min_index = r->after != NULL ? 0 : r->since,
                                     .wait = ASK_WAIT_MS * NS_PER_MS};
    const struct rpc_request q = {RPC_OBJECT_EXPORT, &req, &env, 2 * ASK_SPARE_MS, NULL};
    struct err e = ERR_INIT;

    r->timer = NULL;
    r->client = server_region_client(r->l->s, cfg->authoritative_region, &e);
    if (r->client == NULL) {
        replicate_later(r, e.text);
        return;
    }
    struct round *x = mem_new(NULL, struct round);
    *x = (struct round){.r = r, .gate = gate_ref(r->l->gate), .gen = r->gen};
    r->call = rpc_send(r->client, &q, replicate_answered, x);
}

/* --- the row --- */

static void
replicate_init(struct leader *l)
{
    l->replicate = mem_new(l, struct replicate);
    l->replicate->l = l;
}

static void
replicate_begin(struct leader *l)
{
    struct replicate *r = l->replicate;
    const struct server_config *cfg = server_cfg(l->s);

    r->gen++;
    r->since = 0;
    r->retry_ms = 0;
    mem_free(r->after);
    if (!str_eq(cfg->authoritative_region, cfg->region))
        r->timer = env_timer(l->env, 0, replicate_ask, r);
}

static void
replicate_end(struct leader *l)
{
    struct replicate *r = l->replicate;

    r->gen++;
    env_timer_stop(l->env, TAKE(r->timer));
    if (r->call != 0)
        rpc_cancel(r->client, r->call);
    r->call = 0;
}

const struct controller replicate_row = {
    .init = replicate_init, .begin = replicate_begin, .end = replicate_end};
