/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads: a row is run on a worker, and parks until there is news for who waits (see method.h).
 * read_start() tries, on the loop where an object is small, else on a worker (read_work);
 * read_done() answers or parks (read_parks), and who is woken tries again. Then what the functions
 * of rows use, and read_one(); read_list() is in server/rpc/list.c.
 */
#include <string.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/mem.h"
#include "server/call/call_int.h"
#include "server/hook.h"

enum { QUERY_TIME_DEFAULT_MS = 300000, OBJECT_BYTES = 4096 };

static struct read *
read_of(struct call *c)
{
    return &c->reading.r;
}

/* Under the context of this try, if there is one: a worker must not touch that of the call. */
static void
read_fail(struct call *c, int code, const char *why)
{
    void *ctx = read_of(c)->ctx != NULL ? read_of(c)->ctx : (void *)c;

    c->err = mem_new(ctx, struct err);
    err_set(c->err, code, "%s", why);
}

static void
read_answer(struct call *c)
{
    struct read *r = read_of(c);
    struct rpc_call *rpc = call_leave(c);
    void *ctx = TAKE(r->ctx);

    ASSERT(c->reading.watch == NULL); /* a parked call is answered by who takes it */
    /* `c` is memory of the call and goes with the answer */
    if (atomic_load(&c->cancelled))
        rpc_failf(rpc, -ERR_CANCELED, "canceled");
    else if (c->err != NULL)
        rpc_fail(rpc, c->err);
    else if (r->meta != NULL && r->meta->rows.n > 0)
        rpc_hand_over(rpc, r->resp);
    else
        rpc_reply(rpc, r->resp);
    talloc_free(ctx);
}

static void read_try(struct call *c);
static bool read_watch(struct call *c);

/* The leader is to answer it, and that is another server by now, or none. */
static bool
read_moves(const struct call *c)
{
    return !c->env->stale && !server_is_leader(c->s);
}

static bool
read_may_wait(struct call *c, struct err *e)
{
    c->reading.rights_seen = server_rights_index(c->s);
    return authorize(c, e) == 0;
}

static void
read_woken(void *arg, enum wake_reason why)
{
    struct call *c = arg;
    struct err e = ERR_INIT;

    c->reading.watch = NULL;
    if (why != WAKE_SHUTDOWN && !read_may_wait(c, &e)) { /* its right has ended */
        read_fail(c, e.code, e.text);
        read_answer(c);
    } else if (why == WAKE_RIGHTS) {
        if (!read_watch(c))
            read_answer(c);
    } else if (why == WAKE_SHUTDOWN) {
        read_fail(c, -ERR_UNAVAILABLE, "the server is stopping");
        read_answer(c);
    } else if (why == WAKE_LEADER && read_moves(c)) {
        call_again(c);
    } else {
        c->reading.last = why == WAKE_TIMEOUT;
        read_try(c);
    }
}

void
read_give_up(struct call *c)
{
    server_watch_cancel(TAKE(c->reading.watch));
    read_answer(c);
}

void
read_saw(struct read *r, const char *id, uint64_t modify_index)
{
    uint64_t h = hash_text(r->print != 0 ? r->print : HASH_START, id);

    r->print = hash_byte(h, modify_index) | 1;
}

static bool
read_has_news(const struct reading *x)
{
    bool same = x->waits_for != 0 && x->r.print == x->waits_for;

    return x->r.news || (x->r.index > x->r.env->min_index && !same);
}

static bool
read_parks(struct call *c)
{
    struct reading *x = &c->reading;

    if (c->err != NULL || atomic_load(&c->cancelled) || gate_is_closed(c->gate))
        return false;
    if (x->last || c->env->min_index == 0 || x->r.row->query || read_has_news(x))
        return false;
    int64_t left = x->deadline_ms - env_mono_ms(server_env(c->s));
    if (left <= 0)
        return false;
    mem_free(x->r.ctx);
    x->r.resp = NULL;
    if (read_moves(c)) { /* the leadership went while a worker had it: no watch will tell */
        call_again(c);
        return true;
    }
    x->waits_for = x->r.print;
    struct err e = ERR_INIT;
    if (!read_may_wait(c, &e)) { /* what changed before the snapshot, nothing will tell */
        read_fail(c, e.code, e.text);
        return false;
    }
    if (!read_watch(c))
        return false;
    call_enter(c, CALL_PARKED);
    return true;
}

/* Waits for news. False: it fails. */
static bool
read_watch(struct call *c)
{
    struct reading *x = &c->reading;
    const struct watch_on on = {.tables = x->r.row->tables,
                                .key = x->r.key,
                                .seen = x->r.seen,
                                .timeout_ms = x->deadline_ms - env_mono_ms(server_env(c->s)),
                                .rights = c->caller != NULL && server_cfg(c->s)->acl_enabled,
                                .rights_seen = x->rights_seen};

    x->watch = server_watch(c->s, &on, read_woken, c);
    if (x->watch == NULL)
        read_fail(c, -ERR_BUSY, "too many blocking queries: retry later");
    return x->watch != NULL;
}

static void
read_released(void *arg)
{
    read_answer(arg);
}

static void
read_done(void *arg)
{
    struct call *c = arg;
    const struct read *r = read_of(c);
    const struct test_go go = {c->s, false, read_released, c};

    if (r->node != NULL && c->err == NULL && !gate_is_closed(c->gate))
        way_note(c->s, c->rpc, r->node->id);
    bool by_node = call_is_a_nodes(c); /* it is known by its envelope */
    if (!read_parks(c) &&
        !test_hook_hold(c->method->name, "reply", by_node ? &type_rpc_envelope : c->method->req,
                        by_node ? (const void *)c->env : r->req, &go))
        read_answer(c);
}

static void
read_work(void *arg)
{
    struct call *c = arg;
    struct read *r = read_of(c);
    struct err e = ERR_INIT;

    if (!gate_enter(c->gate)) {
        read_fail(c, -ERR_UNAVAILABLE, "the server is stopping");
        return;
    }
    struct state_txn *t = server_read_begin(r->s, r->ctx);
    r->seen = state_applied(t);
    r->meta = mem_new(r->ctx, struct query_meta);
    char leader[CONSENSUS_ADDR_MAX + 1];
    int64_t contact = server_last_contact_ms(r->s);
    r->meta->known_leader = server_leader_addr(r->s, leader, sizeof(leader));
    r->meta->last_contact = contact < INT64_MAX / NS_PER_MS ? contact * NS_PER_MS : INT64_MAX;
    bool turn = !r->row->query || server_query_begin(r->s);
    int rc = prove_node(c, t, r->ctx, &r->node, &e);
    if (rc == 0)
        rc = turn
                 ? r->row->run(r, t, &e)
                 : err_set(&e, -ERR_BUSY, "another explanation or simulation is being made: retry");
    if (turn && r->row->query)
        server_query_end(r->s);
    ASSERT((rc < 0) == (e.code != 0));
    if (rc < 0)
        c->err = mem_dup(r->ctx, &e, sizeof(e));
    /* a caller who waits for what comes next must not get this at once */
    r->index = r->index > 0 ? r->index : 1;
    r->meta->index = r->index;
    state_read_end(t);
    gate_leave(c->gate);
}

static bool
is_lean(const struct read *r)
{
    const struct read_row *row = r->row;

    return r->list->part != 0 && row->needs != NULL && str_empty(r->list->filter) &&
           (row->whole == NULL || !row->whole(r));
}

/* On the loop if it costs less than to ask a worker: one object of the snapshot, of which few are
 * read in one turn, and none when all who wait are woken at once. */
static bool
read_here(struct call *c)
{
    struct read *r = read_of(c);

    if (r->row->run != read_one || !is_lean(r) || r->env->min_index != 0 ||
        rpc_call_in_turn(c->rpc) > READ_HERE_MAX)
        return false;
    r->here = true;
    read_work(c);
    r->here = false;
    if (r->too_large) {
        talloc_free(r->ctx);
        r->ctx = mem_ctx("read");
    }
    return !r->too_large;
}

static void
read_try(struct call *c)
{
    struct read *r = read_of(c);

    call_enter(c, CALL_WORKING);
    r->ctx = mem_ctx("read");
    r->index = r->print = 0;
    if (read_here(c)) {
        read_done(c);
        return;
    }
    r->index = 0;
    env_work(server_env(c->s), read_work, read_done, c);
}

static int64_t
wait_ms(const struct call *c)
{
    int64_t ms = c->env->wait / NS_PER_MS;

    if (ms <= 0)
        ms = QUERY_TIME_DEFAULT_MS;
    if (ms > QUERY_TIME_MAX_MS)
        ms = QUERY_TIME_MAX_MS;
    return ms + (int64_t)(env_random(server_env(c->s)) % (uint64_t)(ms / 16 + 1));
}

/* Returns the key of the named object: that of a job, or of its rows, has its namespace as well. */
static struct state_key
read_named(const struct read *r)
{
    static const unsigned of_jobs = 1U << WATCH_JOB | 1U << WATCH_JOB_ALLOCS |
                                    1U << WATCH_JOB_EVALS | 1U << WATCH_JOB_DEPLOYMENTS |
                                    1U << WATCH_JOB_SERVICES | 1U << WATCH_SERVICE;

    if (of_jobs & 1U << r->row->about)
        return (struct state_key){read_ns(r), read_id(r), 0};
    return (struct state_key){.a = read_id(r)};
}

void
read_start(struct call *c, const struct read_row *row)
{
    static const struct list_options no_options;
    const struct list_options *const *list = type_member(c->method->req, c->req, "List");
    struct read *r = read_of(c);

    c->reading = (struct reading){.deadline_ms = env_mono_ms(server_env(c->s)) + wait_ms(c)};
    *r = (struct read){
        .s = c->s, .call = c, .method = c->method, .row = row, .req = c->req, .env = c->env};
    r->list = list != NULL && *list != NULL ? *list : &no_options;
    if (row->about != 0)
        r->key = state_watch_key(row->about, read_named(r).a, read_named(r).b);
    else
        r->key = row->key != NULL ? row->key(r) : 0;
    read_try(c);
}

/* --- what rows use --- */

const char *
read_id(const struct read *r)
{
    return str_or(((const struct id_request *)r->req)->id, "");
}

const struct caller *
read_caller(const struct read *r)
{
    return r->call->caller;
}

const char *
read_ns(const struct read *r)
{
    return r->call->ns;
}

bool
read_ns_matches(const struct read *r, const char *ns)
{
    bool all = !(r->method->flags & RPC_NS) || (r->method->flags & RPC_NS_OF_OBJECT) != 0 ||
               str_eq(read_ns(r), NS_ALL);

    return (all || str_eq(read_ns(r), str_or(ns, NS_DEFAULT))) && call_may(r->call, ns);
}

void *
read_resp(struct read *r)
{
    r->resp = type_new(r->ctx, r->method->resp);
    struct query_meta **meta = type_member(r->method->resp, r->resp, "Meta");
    if (meta != NULL)
        *meta = talloc_steal(r->resp, r->meta);
    return r->resp;
}

static enum state_table
table_of(const struct read_row *row)
{
    return (enum state_table)__builtin_ctz(row->tables);
}

struct state_iter *
read_rows(struct read *r, struct state_txn *t)
{
    const struct read_row *row = r->row;

    if (row->rows != NULL)
        return row->rows(r, t);
    if (row->about == 0 && (row->order == ORDER_ID || !str_empty(r->list->prefix)))
        return state_ids(t, r->ctx, table_of(row), r->list->prefix);
    const struct state_key key = row->about != 0 ? read_named(r) : (struct state_key){.a = NULL};
    const char *const texts[] = {key.a, key.b};
    return state_by_rows(t, r->ctx, row->by, texts, key.a == NULL ? 0 : key.b == NULL ? 1 : 2);
}

void *
read_object(struct read *r, struct state_txn *t)
{
    enum state_table table = table_of(r->row);
    struct state_key key = read_named(r);

    r->too_large = r->here && state_row_bytes(t, table, key) > READ_HERE_BYTES;
    return !r->too_large ? state_get_lean(t, r->ctx, table, key, r->lean) : NULL;
}

static int
buf_free(struct buf *b)
{
    buf_done(b);
    return 0;
}

struct buf *
read_buf(struct read *r, size_t max, size_t guess)
{
    struct buf *b = mem_new(r->meta, struct buf);

    buf_init(b, max);
    buf_reserve(b, guess);
    talloc_set_destructor(b, buf_free);
    return b;
}

struct lean *
read_lean(struct read *r, const struct type *dst, const struct type *src)
{
    static const char every[] = "ID Namespace CreateIndex ModifyIndex ";
    const struct read_row *row = r->row;

    if (!is_lean(r))
        return NULL;
    return lean_new(r->ctx, dst, src, mem_printf(r->ctx, "%s%s", every, row->needs),
                    str_or(row->makes, ""));
}

/* The object as JSON. False: it is too large, and goes as it is. */
static bool
put_json(struct read *r, struct state_txn *t, const struct type *type, const void *obj)
{
    bool pretty = r->list->part == 2;
    unsigned flags = JSON_HIDE_SECRETS | (pretty ? JSON_PRETTY : 0);
    const char *value, *name = r->row->more != NULL ? r->row->more(obj, &value) : NULL;
    struct buf *b = read_buf(r, RPC_FRAME_MAX / 2, OBJECT_BYTES);

    if (r->lean != NULL)
        lean_write(b, r->lean, obj, flags);
    else
        json_encode(b, type, obj, flags);
    if (buf_error(b) == -ERR_CORRUPT)
        state_damaged(t, type->name);
    if (name != NULL && buf_error(b) == 0) { /* before the last brace; no object of ours is empty */
        b->len -= pretty ? 2 : 1;
        buf_printf(b, pretty ? ",\n    \"%s\": %s\n}" : ",\"%s\":%s}", name, value);
    }
    if (buf_error(b) != 0)
        return false;
    r->meta->rows = (struct bytes){b->data, b->len};
    r->meta->n = 1;
    return true;
}

/* The object is the first member of the response. */
int
read_one(struct read *r, struct state_txn *t, struct err *e)
{
    const struct field *f = &r->method->resp->fields[0];

    (void)e;
    r->lean = read_lean(r, f->sub, f->sub);
    void *(*get)(struct read *, struct state_txn *) = r->row->get ? r->row->get : read_object;
    void *obj = get(r, t);
    const char *const *ns = obj != NULL ? type_member(f->sub, obj, "Namespace") : NULL;
    if (ns != NULL && !read_ns_matches(r, *ns)) /* as if there were none */
        obj = NULL;
    void **to = type_member(r->method->resp, read_resp(r), f->wire);
    if (obj != NULL && (r->list->part == 0 || !put_json(r, t, f->sub, obj))) {
        if (TAKE(r->lean) != NULL)
            obj = get(r, t);
        *to = obj;
    }
    r->index = obj != NULL ? *(const uint64_t *)type_member(f->sub, obj, "ModifyIndex")
                           : state_index(t, r->row->tables);
    return 0;
}
