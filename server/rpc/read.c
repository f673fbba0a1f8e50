/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads: a row is run on a worker, and parks until there is news for who waits (see endpoint_int.h).
 */
#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/rpc/endpoint_int.h"

enum { QUERY_TIME_DEFAULT_MS = 300000, OBJECT_BYTES = 4096 };

/* Under the context of this try, if there is one: a worker must not touch that of the call. */
static void
read_fail(struct read *r, int code, const char *why)
{
    r->err = mem_new(r->ctx != NULL ? r->ctx : (void *)r, struct err);
    err_set(r->err, code, "%s", why);
}

static void
read_answer(struct read *r)
{
    struct rpc_call *call = r->call;
    void *ctx = TAKE(r->ctx);

    ASSERT(r->watch == NULL); /* one that is parked is answered by who takes it */
    gate_unref(r->gate);
    rpc_call_on_cancel(call, NULL, NULL);
    /* `r` is memory of the call and goes with the answer */
    if (r->cancelled)
        rpc_failf(call, -ERR_CANCELED, "canceled");
    else if (r->err != NULL)
        rpc_fail(call, r->err);
    else if (r->meta != NULL && r->meta->rows.n > 0)
        rpc_hand_over(call, r->resp);
    else
        rpc_reply(call, r->resp);
    talloc_free(ctx);
}

static void read_try(struct read *r);

static void
read_woken(void *arg, enum wake_reason why)
{
    struct read *r = arg;

    r->watch = NULL;
    if (why == WAKE_SHUTDOWN) {
        read_fail(r, -ERR_UNAVAILABLE, "the server is stopping");
        read_answer(r);
        return;
    }
    if (why == WAKE_LEADER && !r->env->stale && !server_is_leader(r->s)) {
        struct server *s = r->s;
        struct rpc_call *call = r->call;
        gate_unref(r->gate);
        forward_start(s, call, r->req);
        return;
    }
    r->last = why == WAKE_TIMEOUT;
    read_try(r);
}

static void
read_cancelled(void *arg)
{
    struct read *r = arg;

    r->cancelled = true;
    if (r->watch == NULL)
        return; /* a worker has it */
    server_watch_cancel(TAKE(r->watch));
    read_answer(r);
}

void
read_saw(struct read *r, const char *id, uint64_t modify_index)
{
    uint64_t h = r->print != 0 ? r->print : 0xcbf29ce484222325; /* FNV-1a */

    for (const char *c = id; *c != '\0'; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3;
    r->print = ((h ^ modify_index) * 0x100000001b3) | 1;
}

static bool
read_has_news(const struct read *r)
{
    bool same = r->waits_for != 0 && r->print == r->waits_for;

    return r->news || (r->index > r->env->min_index && !same);
}

static bool
read_parks(struct read *r)
{
    if (r->err != NULL || r->cancelled || r->last || r->env->min_index == 0 || r->row->query ||
        read_has_news(r) || gate_is_closed(r->gate))
        return false;
    int64_t left = r->deadline_ms - env_mono_ms(server_env(r->s));
    if (left <= 0)
        return false;
    mem_free(r->ctx);
    r->resp = NULL;
    r->waits_for = r->print;
    r->watch = server_watch(r->s, r->row->tables, r->key, r->seen, left, read_woken, r);
    if (r->watch == NULL) {
        read_fail(r, -ERR_BUSY, "too many blocking queries: retry later");
        return false;
    }
    return true;
}

static void
read_done(void *arg)
{
    struct read *r = arg;

    if (r->row->node != NULL && r->err == NULL && !gate_is_closed(r->gate))
        way_note(r->s, r->call, r->row->node(r));
    if (!read_parks(r))
        read_answer(r);
}

static void
read_work(void *arg)
{
    struct read *r = arg;
    struct err e = ERR_INIT;

    if (!gate_enter(r->gate)) {
        read_fail(r, -ERR_UNAVAILABLE, "the server is stopping");
        return;
    }
    struct state_txn *t = state_read_begin(server_state(r->s), r->ctx);
    r->seen = state_applied(t);
    r->meta = mem_new(r->ctx, struct query_meta);
    char leader[CONSENSUS_ADDR_MAX + 1];
    int64_t contact = server_last_contact_ms(r->s);
    r->meta->known_leader = server_leader_addr(r->s, leader, sizeof(leader));
    r->meta->last_contact = contact < INT64_MAX / NS_PER_MS ? contact * NS_PER_MS : INT64_MAX;
    bool turn = !r->row->query || server_query_begin(r->s);
    int rc = turn ? r->row->run(r, t, &e)
                  : err_set(&e, -ERR_BUSY, "another explanation or simulation is being made: retry");
    if (turn && r->row->query)
        server_query_end(r->s);
    ASSERT((rc < 0) == (e.code != 0));
    if (rc < 0)
        r->err = mem_dup(r->ctx, &e, sizeof(e));
    r->index = r->index > 0 ? r->index : 1; /* who waits for what comes after it must not get it at once */
    r->meta->index = r->index;
    state_read_end(t);
    gate_leave(r->gate);
}

static bool
is_lean(const struct read *r)
{
    const struct read_row *row = r->row;

    return r->list->part != 0 && row->needs != NULL && str_empty(r->list->filter) &&
           (row->whole == NULL || !row->whole(r));
}

/* On the loop if it costs less than to ask a worker: one object of the snapshot, of which few are read in one
 * turn, and none when all who wait are woken at once. */
static bool
read_here(struct read *r)
{
    if (r->row->run != read_one || !is_lean(r) || r->env->min_index != 0 ||
        rpc_call_in_turn(r->call) > READ_HERE_MAX)
        return false;
    r->here = true;
    read_work(r);
    r->here = false;
    if (r->too_large) {
        talloc_free(r->ctx);
        r->ctx = mem_ctx("read");
    }
    return !r->too_large;
}

static void
read_try(struct read *r)
{
    r->ctx = mem_ctx("read");
    r->index = r->print = 0;
    if (read_here(r)) {
        read_done(r);
        return;
    }
    r->index = 0;
    env_work(server_env(r->s), read_work, read_done, r);
}

static int64_t
wait_ms(const struct read *r)
{
    int64_t ms = r->env->wait / NS_PER_MS;

    if (ms <= 0)
        ms = QUERY_TIME_DEFAULT_MS;
    if (ms > QUERY_TIME_MAX_MS)
        ms = QUERY_TIME_MAX_MS;
    return ms + (int64_t)(env_random(server_env(r->s)) % (uint64_t)(ms / 16 + 1));
}

void
read_start(struct server *s, struct rpc_call *call, const void *req, const struct read_row *row)
{
    static const struct list_options no_options;
    struct read *r = mem_new(rpc_call_ctx(call), struct read);

    r->s = s;
    r->call = call;
    r->method = rpc_call_method(call);
    r->row = row;
    r->req = req;
    r->env = rpc_call_envelope(call);
    const struct list_options *const *list = type_member(r->method->req, req, "List");
    r->list = list != NULL && *list != NULL ? *list : &no_options;
    r->key = row->key != NULL ? row->key(r) : 0;
    r->gate = gate_ref(server_gate(s));
    r->deadline_ms = env_mono_ms(server_env(s)) + wait_ms(r);
    rpc_call_on_cancel(call, read_cancelled, r);
    read_try(r);
}

/* --- what rows use --- */

const char *
read_id(const struct read *r)
{
    return str_or(((const struct id_request *)r->req)->id, "");
}

const char *
read_ns(const struct read *r)
{
    return str_or(r->env->namespace, NS_DEFAULT);
}

bool
read_ns_matches(const struct read *r, const char *ns)
{
    return str_eq(read_ns(r), NS_ALL) || str_eq(read_ns(r), str_or(ns, NS_DEFAULT));
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

void *
read_object(struct read *r, struct state_txn *t, enum state_table table, struct state_key key)
{
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
    void *obj = r->row->get(r, t);
    void **to = type_member(r->method->resp, read_resp(r), f->wire);
    if (obj != NULL && (r->list->part == 0 || !put_json(r, t, f->sub, obj))) {
        if (TAKE(r->lean) != NULL)
            obj = r->row->get(r, t);
        *to = obj;
    }
    r->index = obj != NULL ? *(const uint64_t *)type_member(f->sub, obj, "ModifyIndex")
                           : state_index(t, r->row->tables);
    return 0;
}
