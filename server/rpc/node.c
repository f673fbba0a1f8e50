/* SPDX-License-Identifier: Apache-2.0
 *
 * Node.*: registration, heartbeats, what nodes fetch and report, and reads. A node proves itself by
 * its secret, which never leaves the server again.
 */
#include <stdio.h>

#include "api/pool.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/call/method.h"
#include "server/leader/leader.h"
#include "server/rpc/identity.h"
#include "server/sched/compare/class.h"

/* Fills in what every node write answers beside its own. */
static void
fill_servers(struct write *w, struct node_update_response *resp)
{
    char addr[256];

    if (server_leader_addr(w->s, addr, sizeof(addr)))
        resp->leader_rpc_addr = mem_strdup(w->ctx, addr);
    resp->servers = *server_addrs(w->s);
    resp->known_leader = true;
}

static void
fill_evals(struct write *w, struct node_update_response *resp, uint64_t index,
           const struct fsm_result *res)
{
    FSM_EACH(res, EVALS, STORED, e)
        list_add(w->ctx, resp->eval_ids, mem_strdup(w->ctx, e->id));
    resp->eval_create_index = resp->eval_ids.n > 0 ? index : 0;
}

static void
node_written(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct node_update_response resp = {0};

    resp.index = res->changed ? index : 0;
    resp.node_modify_index = res->node_modify_index;
    fill_evals(w, &resp, index, res);
    if (res->node != NULL) {
        if (rpc_call_method(w->call)->id == RPC_NODE_REGISTER)
            way_note(w->s, w->call, res->node->id);
        resp.scheduling_eligibility = res->node->scheduling_eligibility;
        if (!str_eq(res->node->status, NODE_DOWN))
            resp.heartbeat_ttl = leader_heartbeat(server_leader(w->s), res->node->id);
    }
    fill_servers(w, &resp);
    rpc_reply(w->call, &resp);
}

static struct str_list
fresh_id(struct write *w)
{
    struct str_list l = {0};

    list_add(w->ctx, l, write_new_id(w));
    return l;
}

static int
prepare_register(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_register_request *req = w->req;
    char class[CLASS_TEXT];

    if (req->node == NULL || !uuid_valid(str_or(req->node->id, "")))
        return err_set(e, -ERR_INVALID, "missing node ID for client registration");
    if (!str_eq(req->node->id, w->env->node_id))
        return err_set(e, -ERR_FORBIDDEN, "a node registers itself, and no other");
    if (str_empty(req->node->datacenter) || str_empty(req->node->name))
        return err_set(e, -ERR_INVALID, "register node: datacenter and name are required");
    if (codec_check(&type_node, req->node, e) < 0)
        return e->code;
    if (!str_empty(w->env->agent_run) && !uuid_valid(w->env->agent_run))
        return err_set(e, -ERR_INVALID, "register node: AgentRun is no UUID");
    struct node *n = codec_clone(w->ctx, &type_node, req->node);
    n->secret_id = w->env->node_secret;
    n->agent_run = w->env->agent_run;
    n->node_pool = str_or(n->node_pool, POOL_DEFAULT);
    if (str_eq(n->node_pool, POOL_ALL))
        return err_set(e, -ERR_INVALID, "register node: its pool may not be \"" POOL_ALL "\"");
    if (pool_check_name(n->node_pool, e) < 0)
        return err_prefix(e, "register node");
    const struct server_config *cfg = server_cfg(w->s);
    bool elsewhere = !str_eq(cfg->authoritative_region, cfg->region);
    if (elsewhere && endpoint_objects_there(t, e) < 0)
        return e->code;
    if (state_node(t, w->ctx, n->id) == NULL &&
        introduction_check(w->s, t, n, req->introduction, e) < 0)
        return e->code;
    n->computed_class = mem_strdup(w->ctx, class_name(n, class));
    struct intent_node_register *nr = mem_new(w->ctx, struct intent_node_register);
    *nr = (struct intent_node_register){
        .node = n, .eval_ids = fresh_id(w), .pool_elsewhere = elsewhere};
    w->in.node_register = nr;
    return 0;
}

const struct write_row write_node_register = {prepare_register, node_written};

/* One entry for many heartbeats of a node that is initializing. */
static bool
gate_is_shut(struct write *w, struct state_txn *t, const struct node *n)
{
    return str_eq(n->status, NODE_INIT) && fsm_gate_shut(t, w->ctx, n->id);
}

/* The heartbeat. What the status becomes is decided when the entry is applied; one that cannot
 * change anything is not written, but where the log has to say whether this server leads. On the
 * loop, to which the nodes' timers and the ways to them belong. */
static int
prepare_update_status(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_update_status_request *req = w->req;
    struct leader *l = server_leader(w->s);
    const struct node *n = w->node;

    ASSERT(n != NULL); /* prove_node() has let it through */
    if (!str_eq(req->status, NODE_READY) && !str_eq(req->status, NODE_INIT))
        return err_set(e, -ERR_INVALID, "a node may ask to be ready or initializing, not \"%.64s\"",
                       str_or(req->status, ""));
    way_note(w->s, w->call, n->id);
    bool sure = leader_node_heard(l, n->id) && server_leads_surely(w->s);
    bool stays = str_eq(n->status, NODE_READY) && str_eq(n->status, req->status);
    if (!str_eq(n->status, NODE_DOWN)) /* however long the write of its request takes */
        (void)leader_heartbeat(l, n->id);
    if (sure && (stays || gate_is_shut(w, t, n))) {
        struct node_update_response *resp = mem_new(w->ctx, struct node_update_response);
        resp->heartbeat_ttl = leader_heartbeat(l, n->id);
        resp->node_modify_index = n->modify_index;
        resp->scheduling_eligibility = n->scheduling_eligibility;
        fill_servers(w, resp);
        w->resp = resp;
        return 0;
    }
    struct intent_node_status *st = mem_new(w->ctx, struct intent_node_status);
    *st = (struct intent_node_status){
        .node_id = n->id, .status = req->status, .eval_ids = fresh_id(w), .heard = !sure};
    w->in.node_status = st;
    return 0;
}

const struct write_row write_node_update_status = {prepare_update_status, node_written,
                                                   .here = true};

/* Whether work may be placed on the node has changed: by its eligibility or by a drain. */
static void
placement_written(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct node_update_response u = {0};
    struct node_eligibility_update_response resp = {0};

    fill_evals(w, &u, index, res);
    resp.eval_ids = u.eval_ids;
    resp.eval_create_index = u.eval_create_index;
    resp.node_modify_index = res->node_modify_index;
    resp.index = index;
    rpc_reply(w->call, &resp);
}

static int
prepare_eligibility(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_eligibility_request *req = w->req;
    struct intent_node_eligibility *el = mem_new(w->ctx, struct intent_node_eligibility);

    (void)t;
    (void)e;
    *el = (struct intent_node_eligibility){
        .node_id = req->node_id, .eligibility = req->eligibility, .eval_ids = fresh_id(w)};
    w->in.node_eligibility = el;
    return 0;
}

const struct write_row write_node_update_eligibility = {prepare_eligibility, placement_written,
                                                        .here = true};

static int
prepare_drain(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_drain_request *req = w->req;
    struct intent_node_drain *nd = mem_new(w->ctx, struct intent_node_drain);

    (void)t;
    if (codec_check(&type_node_drain_request, req, e) < 0)
        return e->code;
    *nd = (struct intent_node_drain){.node_id = req->node_id,
                                     .drain_spec = req->drain_spec,
                                     .mark_eligible = req->mark_eligible,
                                     .meta = req->meta,
                                     .eval_ids = fresh_id(w)};
    w->in.node_drain = nd;
    return 0;
}

const struct write_row write_node_update_drain = {prepare_drain, placement_written, .here = true};

static void
purge_written(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct node_update_response resp = {.index = index, .node_modify_index = index};

    FSM_EACH(res, NODES, DELETED, n)
        leader_node_gone(server_leader(w->s), n->id);
    fill_evals(w, &resp, index, res);
    fill_servers(w, &resp);
    rpc_reply(w->call, &resp);
}

static int
prepare_purge(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_write_request *req = w->req;
    struct intent_node_purge *np = mem_new(w->ctx, struct intent_node_purge);

    (void)t;
    (void)e;
    *np = (struct intent_node_purge){.eval_ids = fresh_id(w)};
    list_add(w->ctx, np->node_ids, req->node_id);
    w->in.node_purge = np;
    return 0;
}

const struct write_row write_node_purge = {prepare_purge, purge_written, .here = true};

static int
prepare_evaluate(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_write_request *req = w->req;
    struct intent_node_evaluate *ne = mem_new(w->ctx, struct intent_node_evaluate);

    (void)t;
    (void)e;
    *ne = (struct intent_node_evaluate){.node_id = req->node_id, .eval_ids = fresh_id(w)};
    w->in.node_evaluate = ne;
    return 0;
}

const struct write_row write_node_evaluate = {prepare_evaluate, node_written, .here = true};

/* Clients tell how their tasks are; "lost" and "unknown" are words of the servers. */
static int
check_report(const struct allocation *a, struct err *e)
{
    static const char *const own[] = {ALLOC_PENDING, ALLOC_RUNNING, ALLOC_COMPLETE, ALLOC_FAILED};

    if (a == NULL || str_empty(a->id))
        return err_set(e, -ERR_INVALID, "update of an allocation without an ID");
    bool may = str_empty(a->client_status);
    for (size_t i = 0; i < ARRAY_LEN(own) && !may; i++)
        may = str_eq(a->client_status, own[i]);
    return may ? 0
               : err_set(e, -ERR_INVALID,
                         "allocation \"%s\": a client may not report the status \"%s\": pending, "
                         "running, complete or failed",
                         a->id, a->client_status);
}

static int
prepare_update_alloc(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_update_alloc_request *req = w->req;
    struct intent_alloc_update *au = mem_new(w->ctx, struct intent_alloc_update);

    (void)t;
    if (req->allocs.n == 0 || req->allocs.n > UPDATE_ALLOCS_MAX)
        return err_set(e, -ERR_INVALID, "update of %zu allocations: 1 to %d are allowed",
                       req->allocs.n, UPDATE_ALLOCS_MAX);
    for (size_t i = 0; i < req->allocs.n; i++)
        if (check_report(req->allocs.v[i], e) < 0)
            return e->code;
    *au = (struct intent_alloc_update){
        .node_id = w->node->id, .allocs = req->allocs, .eval_ids = fresh_id(w)};
    au->report = req->report;
    au->node_index = req->node_index;
    w->in.alloc_update = au;
    return 0;
}

const struct write_row write_node_update_alloc = {prepare_update_alloc, write_reply_index,
                                                  .here = true};

/* --- reads --- */

static void *
node_get(struct read *r, struct state_txn *t)
{
    struct node *n = read_object(r, t);

    if (n != NULL)
        n->secret_id = n->agent_run = NULL;
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
                                            .about = WATCH_NODE,
                                            .run = read_one,
                                            .get = node_get,
                                            .more = node_more,
                                            .needs = "DrainStrategy"};

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
                                        .finish = list_finish,
                                        .needs = "HTTPAddr DrainStrategy",
                                        .makes = "Address Version Drain Attributes NodeResources "
                                                 "ReservedResources",
                                        .whole = list_whole};

static struct state_iter *
pool_rows(struct read *r, struct state_txn *t)
{
    const struct list_request *req = r->req;

    return str_eq(req->pool, POOL_ALL) ? state_nodes(t, r->ctx, NULL)
                                       : state_by(t, r->ctx, NODES_BY_POOL, str_or(req->pool, ""));
}

const struct read_row read_node_pool_list_nodes = {.tables = STATE_BIT(STATE_NODES),
                                                   .run = read_list,
                                                   .no_prefix = true,
                                                   .rows = pool_rows,
                                                   .finish = list_finish,
                                                   .needs = "HTTPAddr DrainStrategy",
                                                   .makes = "Address Version Drain Attributes "
                                                            "NodeResources ReservedResources",
                                                   .whole = list_whole};

static void
allocs_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    (void)r;
    (void)t;
    endpoint_alloc_totals(whole, row);
}

/* The allocations of a node in all namespaces, whichever is asked for. */
const struct read_row read_node_get_allocs = {.tables = STATE_BIT(STATE_ALLOCS),
                                              .about = WATCH_NODE_ALLOCS,
                                              .run = read_list,
                                              .by = STATE_ALLOCS_BY_NODE,
                                              .finish = allocs_finish};

/* Tells the node what it is to run: ids and the index of the server's last word on each. The
 * answer's index is the largest of those, so that a node's own reports do not wake it. A deletion
 * lowers it, if anything: the number of allocations, which the node knows, tells. */
static int
client_allocs_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct node_client_allocs_request *req = r->req;
    struct node_client_allocs_response *resp = read_resp(r);
    void *ctx = r->ctx;
    struct state_iter *it = state_allocs_by_node(t, ctx, r->node->id);

    (void)e;
    for (struct allocation *a; (a = state_next(it, ctx)) != NULL; talloc_free(a)) {
        map_put(ctx, resp->allocs, a->id)->v = (int64_t)a->alloc_modify_index;
        if (a->alloc_modify_index > r->index)
            r->index = a->alloc_modify_index;
    }
    struct state_iter *volumes = state_host_volumes_by_node(t, ctx, r->node->id);
    for (struct host_volume *v; (v = state_next(volumes, ctx)) != NULL;) {
        list_add(ctx, resp->volumes, v);
        if (v->modify_index > r->index)
            r->index = v->modify_index;
    }
    if (r->index == 0)
        r->index = 1;
    /* an allocation that a node knows up to an index is here, or was deleted, if that index is
     * applied here. */
    uint64_t asked = r->env->min_index;
    if (r->seen >= asked) {
        r->news = req->known != 0 && req->known != resp->allocs.n + 1;
        r->index = r->index > asked ? r->index : asked;
    }
    return 0;
}

static uint64_t
client_allocs_key(const struct read *r)
{
    return state_watch_key(WATCH_NODE_ALLOCS, str_or(r->env->node_id, ""), NULL);
}

const struct read_row read_node_get_client_allocs = {.tables = STATE_BIT(STATE_ALLOCS) |
                                                               STATE_BIT(STATE_HOST_VOLUMES),
                                                     .key = client_allocs_key,
                                                     .run = client_allocs_run};
