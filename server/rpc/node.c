/* SPDX-License-Identifier: Apache-2.0
 *
 * Node.*: registration, heartbeats, what nodes fetch and report, and reads. A node proves itself by
 * its secret, which never leaves the server again.
 */
#include <stdio.h>

#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/leader/leader.h"
#include "server/rpc/endpoint_int.h"
#include "server/sched/class.h"

/* The answer of every node write. */
static void
node_update(struct server *s, struct rpc_call *call, struct node_update_response *resp)
{
    void *ctx = rpc_call_ctx(call);
    char addr[256];

    if (server_leader_addr(s, addr, sizeof(addr)))
        resp->leader_rpc_addr = mem_strdup(ctx, addr);
    resp->servers = *server_addrs(s);
    resp->known_leader = true;
    rpc_reply(call, resp);
}

static void
fill_evals(struct node_update_response *resp, void *ctx, uint64_t index,
           const struct fsm_result *res)
{
    for (size_t i = 0; i < res->evals.n; i++)
        list_add(ctx, resp->eval_ids, mem_strdup(ctx, res->evals.v[i]->id));
    resp->eval_create_index = res->evals.n > 0 ? index : 0;
}

static void
node_written(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
             struct fsm_result *res)
{
    struct node_update_response resp = {0};

    (void)arg;
    resp.index = res->changed ? index : 0;
    resp.node_modify_index = res->node_modify_index;
    fill_evals(&resp, rpc_call_ctx(call), index, res);
    if (res->node != NULL) {
        if (rpc_call_method(call)->id == RPC_NODE_REGISTER)
            way_note(s, call, res->node->id);
        resp.scheduling_eligibility = res->node->scheduling_eligibility;
        if (!str_eq(res->node->status, NODE_DOWN))
            resp.heartbeat_ttl = leader_heartbeat(server_leader(s), res->node->id);
    }
    node_update(s, call, &resp);
}

static struct str_list
fresh_id(struct server *s, void *ctx)
{
    struct str_list l = {0};
    char id[UUID_TEXT];

    list_add(ctx, l, mem_strdup(ctx, env_id(server_env(s), id)));
    return l;
}

void
call_node_register(void *arg, struct rpc_call *call, const void *p)
{
    const struct node_register_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    char class[CLASS_TEXT];
    struct err e = ERR_INIT;

    if (req->node == NULL || !uuid_valid(str_or(req->node->id, ""))) {
        rpc_failf(call, -ERR_INVALID, "missing node ID for client registration");
        return;
    }
    if (str_empty(req->node->secret_id) || str_empty(req->node->datacenter) ||
        str_empty(req->node->name)) {
        rpc_failf(call, -ERR_INVALID, "register node: secret, datacenter and name are required");
        return;
    }
    if (codec_check(&type_node, req->node, &e) < 0) {
        rpc_fail(call, &e);
        return;
    }
    struct node *n = codec_clone(ctx, &type_node, req->node);
    n->node_pool = str_or(n->node_pool, POOL_DEFAULT);
    n->computed_class = mem_strdup(ctx, class_name(n, class));
    struct intent_node_register nr = {.node = n, .eval_ids = fresh_id(s, ctx)};
    struct intent in = {.node_register = &nr};
    endpoint_write(s, call, &in, node_written, NULL);
}

/* The stored node of an authenticated request, or the call is failed: what a heartbeat asks of it, not its
 * attributes. */
static struct node *
node_authenticated(struct server *s, struct rpc_call *call, const char *id, const char *secret)
{
    void *ctx = rpc_call_ctx(call);
    struct lean *lean =
        lean_new(ctx, &type_node, &type_node, "ID SecretID Status SchedulingEligibility ModifyIndex", "");

    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct node *n =
        str_empty(id) ? NULL : state_get_lean(t, ctx, STATE_NODES, (struct state_key){id, NULL, 0}, lean);
    state_read_end(t);
    if (n == NULL) {
        rpc_failf(call, -ERR_NOT_FOUND, "node not found");
        return NULL;
    }
    if (!secret_equal(n->secret_id, secret)) {
        rpc_failf(call, -ERR_FORBIDDEN, "Permission denied");
        return NULL;
    }
    return n;
}

/* The heartbeat. What the status becomes is decided when the entry is applied; one that cannot
 * change anything is not written. */
void
call_node_update_status(void *arg, struct rpc_call *call, const void *p)
{
    const struct node_update_status_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    struct node *n = node_authenticated(s, call, req->node_id, req->secret_id);

    if (n == NULL)
        return;
    if (!str_eq(req->status, NODE_READY) && !str_eq(req->status, NODE_INIT)) {
        rpc_failf(call, -ERR_INVALID, "a node may ask to be ready or initializing, not \"%.64s\"",
                  str_or(req->status, ""));
        return;
    }
    way_note(s, call, n->id);
    bool heard = leader_node_heard(server_leader(s), n->id);
    if (!str_eq(n->status, NODE_DOWN)) /* however long it takes to write what it asks for */
        (void)leader_heartbeat(server_leader(s), n->id);
    if (heard && str_eq(n->status, req->status) && str_eq(n->status, NODE_READY)) {
        struct node_update_response resp = {
            .heartbeat_ttl = leader_heartbeat(server_leader(s), n->id),
            .node_modify_index = n->modify_index,
            .scheduling_eligibility = n->scheduling_eligibility,
        };
        node_update(s, call, &resp);
        return;
    }
    struct intent_node_status st = {
        .node_id = n->id, .status = req->status, .eval_ids = fresh_id(s, ctx)};
    struct intent in = {.node_status = &st};
    endpoint_write(s, call, &in, node_written, NULL);
}

/* Whether work may be placed on the node has changed: by its eligibility or by a drain. */
static void
placement_written(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
                  struct fsm_result *res)
{
    struct node_update_response u = {0};
    struct node_eligibility_update_response resp = {0};

    (void)s;
    (void)arg;
    fill_evals(&u, rpc_call_ctx(call), index, res);
    resp.eval_ids = u.eval_ids;
    resp.eval_create_index = u.eval_create_index;
    resp.node_modify_index = res->node_modify_index;
    resp.index = index;
    rpc_reply(call, &resp);
}

void
call_node_update_eligibility(void *arg, struct rpc_call *call, const void *p)
{
    const struct node_eligibility_request *req = p;
    struct server *s = arg;

    struct intent_node_eligibility el = {.node_id = req->node_id,
                                         .eligibility = req->eligibility,
                                         .eval_ids = fresh_id(s, rpc_call_ctx(call))};
    struct intent in = {.node_eligibility = &el};
    endpoint_write(s, call, &in, placement_written, NULL);
}

void
call_node_update_drain(void *arg, struct rpc_call *call, const void *p)
{
    const struct node_drain_request *req = p;
    struct server *s = arg;
    struct err e = ERR_INIT;

    if (codec_check(&type_node_drain_request, req, &e) < 0) {
        rpc_fail(call, &e);
        return;
    }
    struct intent_node_drain nd = {.node_id = req->node_id,
                                   .drain_spec = req->drain_spec,
                                   .mark_eligible = req->mark_eligible,
                                   .meta = req->meta,
                                   .eval_ids = fresh_id(s, rpc_call_ctx(call))};
    struct intent in = {.node_drain = &nd};
    endpoint_write(s, call, &in, placement_written, NULL);
}

static void
purge_written(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
              struct fsm_result *res)
{
    struct node_update_response resp = {.index = index, .node_modify_index = index};

    (void)arg;
    for (size_t i = 0; i < res->purged_nodes.n; i++)
        leader_node_gone(server_leader(s), res->purged_nodes.v[i]);
    fill_evals(&resp, rpc_call_ctx(call), index, res);
    node_update(s, call, &resp);
}

void
call_node_purge(void *arg, struct rpc_call *call, const void *p)
{
    const struct node_write_request *req = p;
    struct server *s = arg;
    const char *id = req->node_id;

    struct intent_node_purge np = {.node_ids = {&id, 1}, .eval_ids = fresh_id(s, rpc_call_ctx(call))};
    struct intent in = {.node_purge = &np};
    endpoint_write(s, call, &in, purge_written, NULL);
}

void
call_node_evaluate(void *arg, struct rpc_call *call, const void *p)
{
    const struct node_write_request *req = p;
    struct server *s = arg;

    struct intent_node_evaluate ne = {.node_id = req->node_id,
                                      .eval_ids = fresh_id(s, rpc_call_ctx(call))};
    struct intent in = {.node_evaluate = &ne};
    endpoint_write(s, call, &in, node_written, NULL);
}

static void
allocs_written(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
               struct fsm_result *res)
{
    struct write_response resp = {.index = index};

    (void)s;
    (void)arg;
    (void)res;
    rpc_reply(call, &resp);
}

void
call_node_update_alloc(void *arg, struct rpc_call *call, const void *p)
{
    const struct node_update_alloc_request *req = p;
    struct server *s = arg;

    if (node_authenticated(s, call, req->node_id, req->secret_id) == NULL)
        return;
    if (req->allocs.n == 0 || req->allocs.n > UPDATE_ALLOCS_MAX) {
        rpc_failf(call, -ERR_INVALID, "update of %zu allocations: 1 to %d are allowed",
                  req->allocs.n, UPDATE_ALLOCS_MAX);
        return;
    }
    for (size_t i = 0; i < req->allocs.n; i++)
        if (req->allocs.v[i] == NULL || str_empty(req->allocs.v[i]->id)) {
            rpc_failf(call, -ERR_INVALID, "update of an allocation without an ID");
            return;
        }
    struct intent_alloc_update au = {
        .node_id = req->node_id, .allocs = req->allocs, .eval_ids = fresh_id(s, rpc_call_ctx(call))};
    struct intent in = {.alloc_update = &au};
    endpoint_write(s, call, &in, allocs_written, NULL);
}

/* --- reads --- */

static uint64_t
node_key(const struct read *r)
{
    return state_key_node(read_id(r));
}

static void *
node_get(struct read *r, struct state_txn *t)
{
    struct node *n = read_object(r, t, STATE_NODES, (struct state_key){.a = read_id(r)});

    if (n != NULL)
        n->secret_id = NULL;
    return n;
}

static const char *
node_more(const void *obj, const char **value)
{
    const struct node *n = obj;

    *value = n->drain_strategy != NULL ? "true" : "false";
    return "Drain";
}

const struct read_row read_node_get_node = {.tables = STATE_BIT(STATE_NODES),
                                            .key = node_key,
                                            .run = read_one,
                                            .get = node_get,
                                            .more = node_more,
                                            .needs = "DrainStrategy"};

static struct state_iter *
list_rows(struct read *r, struct state_txn *t)
{
    return state_nodes(t, r->ctx, r->list->prefix);
}

static void
copy_os(const void *ctx, struct node_list_stub *s, const struct node *n)
{
    for (size_t i = 0; i < n->attributes.n; i++)
        if (str_prefix(n->attributes.v[i].k, "os."))
            str_map_set(ctx, &s->attributes, n->attributes.v[i].k, n->attributes.v[i].v);
}

static void
list_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    const struct list_request *req = r->req;
    const struct node *n = whole;
    struct node_list_stub *s = row;
    size_t host = 0;

    (void)t;
    /* the address without its port; "[::1]:4646" as well */
    for (const char *c = str_or(n->http_addr, ""); *c != '\0'; c++)
        if (*c == ':')
            host = (size_t)(c - n->http_addr);
    s->address = host ? mem_strndup(whole, n->http_addr, host) : n->http_addr;
    s->version = r->lean != NULL ? lean_text(whole, r->lean, "Attributes", "nomad.version")
                                 : str_map_get(&n->attributes, "nomad.version");
    s->drain = n->drain_strategy != NULL;
    s->attributes = (struct str_map){0};
    if (req->os)
        copy_os(whole, s, n);
    if (!req->resources) {
        s->node_resources = NULL;
        s->reserved_resources = NULL;
    }
}

static bool
list_whole(const struct read *r)
{
    const struct list_request *req = r->req;
    return req->os || req->resources;
}

const struct read_row read_node_list = {.tables = STATE_BIT(STATE_NODES),
                                        .run = read_list,
                                        .hex = true,
                                        .rows = list_rows,
                                        .finish = list_finish,
                                        .needs = "HTTPAddr DrainStrategy",
                                        .makes = "Address Version Drain Attributes NodeResources "
                                                 "ReservedResources",
                                        .whole = list_whole};

static uint64_t
allocs_key(const struct read *r)
{
    return state_key_node_allocs(read_id(r));
}

/* Of all namespaces, whichever is asked for. */
static struct state_iter *
allocs_rows(struct read *r, struct state_txn *t)
{
    return state_allocs_by_node(t, r->ctx, read_id(r));
}

static void
allocs_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    (void)r;
    (void)t;
    endpoint_alloc_totals(whole, row);
}

const struct read_row read_node_get_allocs = {.tables = STATE_BIT(STATE_ALLOCS),
                                              .key = allocs_key,
                                              .run = read_list,
                                              .rows = allocs_rows,
                                              .finish = allocs_finish};

/* What the node is to run: ids and the index of the server's last word on each. The answer's index is
 * the largest of those, so that a node's own reports do not wake it. A deletion lowers it, if anything:
 * the number of allocations, which the node knows, tells. */
static int
client_allocs_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct node_client_allocs_request *req = r->req;
    struct node_client_allocs_response *resp = read_resp(r);
    void *ctx = r->ctx;
    const struct node *n = state_node(t, ctx, str_or(req->node_id, ""));

    if (n == NULL)
        return err_set(e, -ERR_NOT_FOUND, "node not found");
    if (!secret_equal(n->secret_id, req->secret_id))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    struct state_iter *it = state_allocs_by_node(t, ctx, n->id);
    for (struct allocation *a; (a = state_next(it, ctx)) != NULL; talloc_free(a)) {
        map_put(ctx, resp->allocs, a->id)->v = (int64_t)a->alloc_modify_index;
        if (a->alloc_modify_index > r->index)
            r->index = a->alloc_modify_index;
    }
    if (r->index == 0)
        r->index = 1;
    /* What a node knows up to an index is here, or was deleted, if that index is applied here. */
    uint64_t asked = r->env->min_index;
    if (r->seen >= asked) {
        r->news = req->known != 0 && req->known != resp->allocs.n + 1;
        r->index = r->index > asked ? r->index : asked;
    }
    return 0;
}

static const char *
client_allocs_node(const struct read *r)
{
    return str_or(((const struct node_client_allocs_request *)r->req)->node_id, "");
}

static uint64_t
client_allocs_key(const struct read *r)
{
    return state_key_node_allocs(client_allocs_node(r));
}

const struct read_row read_node_get_client_allocs = {.tables = STATE_BIT(STATE_ALLOCS),
                                                     .key = client_allocs_key,
                                                     .run = client_allocs_run,
                                                     .node = client_allocs_node};
