/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables.*, and what a node asks for its tasks. Lists see rows as they are stored, and nothing
 * of what they seal; one variable is opened on a worker, for who may read it. First reads, then
 * those of nodes, then writes.
 */
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "api/terms.h"
#include "api/var_path.h"
#include "api/vars/vars.h"
#include "common/mem.h"
#include "server/call/caller.h"
#include "server/call/method.h"
#include "server/keys/keys.h"
#include "server/leader/leader.h"
#include "server/rpc/identity.h"

enum { SMALL_BYTES = 2048 };

#define NOWHERE "variables are in one namespace: name it"

/* --- reads --- */

static bool
sees_locks(const struct caller *c)
{
    return c != NULL && acl_is_management(c->rights);
}

static struct state_iter *
variables_rows(struct read *r, struct state_txn *t)
{
    return state_variables(t, r->ctx, read_ns(r), r->list->prefix);
}

static bool
variables_takes(const struct read *r, const void *whole)
{
    const struct sealed_variable *v = whole;

    return call_may_path(r->call, v->namespace, v->path);
}

static void
variables_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    (void)t;
    (void)whole;
    if (!sees_locks(read_caller(r)))
        ((struct variable_metadata *)row)->lock = NULL;
}

const struct read_row read_variables_list = {.tables = STATE_BIT(STATE_VARIABLES),
                                             .run = read_list,
                                             .order = ORDER_NS,
                                             .rows = variables_rows,
                                             .takes = variables_takes,
                                             .finish = variables_finish,
                                             .needs = "Path Lock",
                                             .makes = "Lock"};

static struct variable *
variable_of(const void *ctx, const struct sealed_variable *v, bool lock)
{
    struct variable *to = type_new(ctx, &type_variable);

    *to = (struct variable){.namespace = v->namespace,
                            .path = v->path,
                            .create_index = v->create_index,
                            .create_time = v->create_time,
                            .modify_index = v->modify_index,
                            .modify_time = v->modify_time,
                            .lock = lock ? v->lock : NULL};
    return to;
}

static int
open_items(struct server *s, struct state_txn *t, const struct sealed_variable *v,
           struct variable *to, struct err *e)
{
    struct key *k = keys_get(server_keys(s), t, v->key_id, e);
    struct variable_items *items = NULL;
    int rc = k != NULL ? keys_open_items(to, k, v, &items, e) : e->code;

    key_unref(k);
    if (rc == 0)
        to->items = items->items;
    return rc;
}

static uint64_t
variable_key(const char *ns, const char *path)
{
    return state_watch_key(WATCH_VARIABLE, ns, str_or(path, ""));
}

/* Answers with the variable, as who reads it may see it. */
static int
read_variable(struct read *r, struct state_txn *t, const char *ns, const char *path, struct err *e)
{
    const struct sealed_variable *v = state_variable(t, r->ctx, ns, str_or(path, ""));
    struct variable_response *resp = read_resp(r);

    r->index = v != NULL ? v->modify_index : state_index(t, r->row->tables);
    if (v == NULL)
        return 0;
    resp->variable = variable_of(resp, v, sees_locks(read_caller(r)));
    return open_items(r->s, t, v, resp->variable, e);
}

static int
variable_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct variable_request *req = r->req;

    if (str_eq(read_ns(r), NS_ALL))
        return err_set(e, -ERR_UNSUPPORTED, NOWHERE);
    return read_variable(r, t, read_ns(r), req->path, e);
}

static uint64_t
variable_read_key(const struct read *r)
{
    return variable_key(read_ns(r), ((const struct variable_request *)r->req)->path);
}

const struct read_row read_variables_read = {
    .tables = STATE_BIT(STATE_VARIABLES), .key = variable_read_key, .run = variable_run};

/* --- reads of a node, for a task --- */

static bool
owns_path(const struct own *o, const char *ns, const char *path)
{
    return str_eq(ns, o->ns) && vars_is_own(path, o->job, o->alloc->task_group, o->task->name);
}

/* Returns the task as a caller, for what is not its own; NULL: there is no access control, and it
 * may read all. */
static struct caller *
own_caller(struct read *r, struct state_txn *t, const struct own *o)
{
    const struct workload w = {o->ns, o->job, o->alloc->task_group, o->task->name, o->alloc->id, 0};

    return server_cfg(r->s)->acl_enabled ? caller_of_workload(t, &w) : NULL;
}

static bool
own_may(const struct caller *c, uint64_t cap, const char *ns, const char *path)
{
    const struct acl_need need = {.kind = ACL_VARIABLE, .caps = cap};

    return c == NULL || acl_allows(c->rights, &need, ns, path);
}

static int
own_variable_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct alloc_variable_request *req = r->req;
    struct own o;

    if (own_find(r, t, req->alloc_id, req->task, &o, e) < 0)
        return e->code;
    const char *ns = str_or(req->namespace, o.ns), *path = str_or(req->path, "");
    if (!owns_path(&o, ns, path)) {
        struct caller *c = own_caller(r, t, &o);
        bool may = own_may(c, ACL_CAP(VAR_READ), ns, path);
        caller_unref(c);
        if (!may)
            return err_set(
                e, -ERR_FORBIDDEN,
                "Permission denied: no policy lets task \"%s\" read \"%.128s\" in namespace "
                "\"%.128s\"; without any it reads nomad/jobs, nomad/jobs/%s and what is below "
                "that for its group and itself, in namespace \"%s\"",
                o.task->name, path, ns, o.job, o.ns);
    }
    r->key = variable_key(ns, path); /* known by the allocation alone */
    return read_variable(r, t, ns, path, e);
}

const struct read_row read_alloc_get_variable = {.tables = STATE_BIT(STATE_VARIABLES),
                                                 .run = own_variable_run};

static int
own_variables_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct alloc_variables_request *req = r->req;
    struct own o;

    if (own_find(r, t, req->alloc_id, req->task, &o, e) < 0)
        return e->code;
    const char *ns = str_or(req->namespace, o.ns);
    struct caller *c = own_caller(r, t, &o);
    struct variable_list_response *resp = read_resp(r);
    const struct projection *p =
        projection_new(r->ctx, &type_variable_metadata, &type_sealed_variable);
    struct state_iter *it = state_variables(t, r->ctx, ns, str_or(req->prefix, ""));
    for (struct sealed_variable *v; (v = state_next(it, r->ctx)) != NULL;) {
        const char *at = str_or(v->namespace, NS_DEFAULT);
        if (!owns_path(&o, at, v->path) && !own_may(c, ACL_CAP(VAR_LIST), at, v->path))
            continue;
        v->lock = NULL;
        list_add(resp, resp->variables, codec_project(v, p, v));
        read_saw(r, v->path, v->modify_index);
    }
    caller_unref(c);
    r->print = r->print == 0 ? 1 : r->print;
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_alloc_list_variables = {.tables = STATE_BIT(STATE_VARIABLES),
                                                   .run = own_variables_run};

/* --- writes --- */

/* Says whether the write would change nothing. */
static bool
is_same(struct write *w, struct state_txn *t, const struct variable *to)
{
    struct sealed_variable *old = state_variable(t, w->ctx, w->ns, to->path);
    struct variable was = {.path = NULL};
    struct err e = ERR_INIT;

    if (old == NULL || old->lock != NULL)
        return false;
    struct variable *opened = variable_of(w->ctx, old, false);
    if (open_items(w->s, t, old, opened, &e) < 0)
        return false;
    was.items = opened->items;
    bool same = codec_equal(&type_variable, &was, &(struct variable){.items = to->items}, 0);
    keys_wipe_items(&opened->items);
    if (same) {
        struct variable_apply_response *resp = mem_new(w->ctx, struct variable_apply_response);
        opened->items = to->items;
        *resp = (struct variable_apply_response){opened, false, old->modify_index};
        w->resp = resp;
    }
    return same;
}

static int
check_apply(struct write *w, struct state_txn *t, struct variable *v, struct err *e)
{
    const struct variable_apply_request *req = w->req;
    bool acquires = str_eq(req->op, VAR_LOCK_ACQUIRE), sets = str_eq(req->op, VAR_SET);

    if (str_eq(w->ns, NS_ALL))
        return err_set(e, -ERR_UNSUPPORTED, NOWHERE);
    if (str_eq(req->op, VAR_LOCK_RELEASE) && (v->lock == NULL || str_empty(v->lock->id)))
        return err_set(e, -ERR_INVALID, "the lock to be released is not named: Lock.ID is empty");
    if ((sets || acquires) && !state_has_namespace(t, w->ns))
        return err_set(e, -ERR_UNSUPPORTED,
                       "variable \"%.128s\" is in nonexistent namespace \"%s\"",
                       str_or(v->path, ""), w->ns);
    if (vars_check_path(v->path, e) < 0 || (sets && vars_check_items(&v->items, e) < 0) ||
        (acquires && v->items.n > 0 && vars_check_items(&v->items, e) < 0))
        return e->code;
    if (sets && v->lock != NULL && (!str_empty(v->lock->ttl) || !str_empty(v->lock->lock_delay)))
        return err_set(e, -ERR_INVALID, "a lock is not set by a write: acquire it");
    return acquires ? vars_check_lock(w->ctx, v->lock, e) : 0;
}

/* Nomad answers 400 to what is wrong with a request here. */
static int
apply_bad(struct err *e)
{
    if (e->code == -ERR_INVALID)
        e->code = -ERR_UNSUPPORTED;
    return e->code;
}

static int
seal_variable(struct write *w, struct state_txn *t, const struct variable *from,
              struct sealed_variable *v, struct err *e)
{
    struct key *k = keys_active(server_keys(w->s), t, e);

    if (k == NULL && server_cfg(w->s)->makes_keys && !state_any_row(t, STATE_ROOT_KEYS))
        w->awaits = STATE_BIT(STATE_ROOT_KEYS);
    if (k == NULL)
        return e->code;
    keys_seal_items(w->ctx, k, &from->items, v);
    key_unref(k);
    return 0;
}

/* Says whether who writes may read it as well. */
static bool
may_read(const struct write *w, const char *path)
{
    static const struct acl_need read = {.kind = ACL_VARIABLE, .caps = ACL_CAP(VAR_READ)};
    const struct caller *c = write_caller(w);

    return c != NULL && acl_allows(c->rights, &read, w->ns, path);
}

static int
prepare_apply(struct write *w, struct state_txn *t, struct err *e)
{
    const struct variable_apply_request *req = w->req;
    bool acquires = str_eq(req->op, VAR_LOCK_ACQUIRE), sets = str_eq(req->op, VAR_SET);
    struct variable *v = mem_new(w->ctx, struct variable);
    struct intent_variable_apply *in = mem_new(w->ctx, struct intent_variable_apply);

    *v = req->variable != NULL ? *req->variable : (struct variable){.path = NULL};
    v->path = req->path;
    v->lock = codec_clone(w->ctx, &type_variable_lock, v->lock);
    if (acquires && v->lock == NULL)
        v->lock = type_new(w->ctx, &type_variable_lock);
    if (check_apply(w, t, v, e) < 0)
        return apply_bad(e);
    if (sets && !req->cas && is_same(w, t, v))
        return 0;
    struct sealed_variable *s = mem_new(w->ctx, struct sealed_variable);
    *s = (struct sealed_variable){.namespace = w->ns, .path = v->path, .lock = v->lock};
    if (acquires && str_empty(s->lock->id))
        s->lock->id = write_new_id(w);
    if ((sets || acquires) && seal_variable(w, t, v, s, e) < 0)
        return e->code;
    *in = (struct intent_variable_apply){req->op, s, req->cas, req->modify_index,
                                         str_or(server_cfg(w->s)->region, "global")};
    w->memo = may_read(w, v->path) ? w : NULL; /* who calls is not known any more by the answer */
    w->in.variable_apply = in;
    return 0;
}

/* The variable that is in the way: nothing of it where another holds its lock, else what the caller
 * may read. */
static struct variable *
conflict_of(struct write *w, const struct fsm_result *res)
{
    const struct variable_apply_request *req = w->req;
    const struct sealed_variable *v = res->variable;
    struct variable *none = type_new(w->ctx, &type_variable);
    struct err e = ERR_INIT;

    ASSERT(res->conflict);
    if (v != NULL && v->lock != NULL)
        return none;
    *none = (struct variable){.namespace = w->ns, .path = req->path};
    if (v == NULL)
        return none;
    struct variable *now = variable_of(w->ctx, v, false);
    if (w->memo != NULL) {
        struct state_txn *t = server_read_begin(w->s, w->ctx);
        (void)open_items(w->s, t, v, now, &e);
        state_read_end(t);
    }
    return now;
}

static void
reply_apply(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct variable_apply_request *req = w->req;
    struct variable_apply_response resp = {.conflict = res->conflict, .index = index};

    if (res->conflict) {
        resp.variable = conflict_of(w, res);
        resp.index = res->variable != NULL ? res->variable->modify_index : index;
    } else if (res->variable != NULL) {
        resp.variable = variable_of(w->ctx, res->variable, true);
        if (req->variable != NULL && !str_eq(req->op, VAR_LOCK_RELEASE))
            resp.variable->items = req->variable->items;
    }
    rpc_reply(w->call, &resp);
    if (res->conflict)
        keys_wipe_items(&resp.variable->items);
}

/* Says whether it is sealed sooner than a worker would be asked. */
static bool
apply_is_small(const void *req)
{
    const struct variable_apply_request *r = req;
    size_t n = 0;

    for (size_t i = 0; r->variable != NULL && i < r->variable->items.n; i++)
        n += strlen(str_or(r->variable->items.v[i].v, ""));
    return n <= SMALL_BYTES;
}

const struct write_row write_variables_apply = {
    .prepare = prepare_apply, .reply = reply_apply, .small = apply_is_small};

/* --- renewals: at the leader, and not written --- */

static void
reply_renewed(struct rpc_call *call, const struct sealed_variable *v)
{
    struct variable_metadata m = {.namespace = v->namespace,
                                  .path = v->path,
                                  .lock = v->lock,
                                  .create_index = v->create_index,
                                  .create_time = v->create_time,
                                  .modify_index = v->modify_index,
                                  .modify_time = v->modify_time};
    struct variable_renew_response resp = {.variable = &m, .index = v->modify_index};

    rpc_reply(call, &resp);
}

void
call_variables_renew_lock(void *arg, struct rpc_call *call, const void *req)
{
    struct server *s = arg;
    const struct variable_renew_request *r = req;
    auto_mem void *tmp = mem_ctx("renew");
    const char *ns = str_or(rpc_call_envelope(call)->namespace, NS_DEFAULT);
    struct state_txn *t = server_read_begin(s, tmp);
    const struct sealed_variable *v = state_variable(t, tmp, ns, str_or(r->path, ""));

    state_read_end(t);
    if (v == NULL || v->lock == NULL)
        rpc_failf(call, -ERR_NOT_FOUND, "the variable has no lock");
    else if (!str_same_secret(v->lock->id, r->lock_id) ||
             leader_lock_renew(server_leader(s), v) < 0)
        rpc_failf(call, -ERR_CONFLICT, "attempting to modify locked variable");
    else
        reply_renewed(call, v);
}
