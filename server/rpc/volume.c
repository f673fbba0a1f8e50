/* SPDX-License-Identifier: Apache-2.0
 *
 * HostVolume.*, and what nodes report of their volumes. First reads, then the choice of a node,
 * then writes.
 */
#include "server/fsm/volume.h"

#include "api/terms.h"
#include "api/volume/volume.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/method.h"
#include "server/sched/compare/constraint.h"

/* --- reads --- */

static bool
list_takes(const struct read *r, const void *whole)
{
    const struct host_volume_list_request *req = r->req;
    const struct host_volume *v = whole;

    return str_eq(req->type, "host") && read_ns_matches(r, v->namespace) &&
           (str_empty(req->node_id) || str_prefix(v->node_id, req->node_id)) &&
           (str_empty(req->node_pool) || str_eq(v->node_pool, req->node_pool));
}

/* Says how a volume is that was made: not to be had while its node is not heard. */
static const char *
state_now(struct state_txn *t, const void *ctx, const struct host_volume *v)
{
    if (!str_eq(v->state, VOLUME_READY))
        return v->state;
    const struct node *n = state_node(t, ctx, str_or(v->node_id, ""));
    return n != NULL && str_eq(n->status, NODE_READY) ? v->state : VOLUME_UNAVAILABLE;
}

static void
list_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    (void)r;
    ((struct host_volume_stub *)row)->state = state_now(t, whole, whole);
}

const struct read_row read_host_volume_list = {.tables = STATE_BIT(STATE_HOST_VOLUMES),
                                               .run = read_list,
                                               .takes = list_takes,
                                               .finish = list_finish,
                                               .needs = "Namespace NodeID NodePool State",
                                               .makes = "State"};

static void *
volume_get(struct read *r, struct state_txn *t)
{
    struct host_volume *v = read_object(r, t);

    if (v == NULL)
        return NULL;
    const struct projection *p = projection_new(v, &type_alloc_list_stub, &type_allocation);
    struct allocation_list l = volume_claims(t, v, v);
    for (size_t i = 0; i < l.n; i++) {
        struct alloc_list_stub *s = codec_project(v, p, l.v[i]);
        endpoint_alloc_row(r, t, l.v[i], s);
        list_add(v, v->allocations, s);
    }
    v->state = state_now(t, v, v);
    return v;
}

const struct read_row read_host_volume_get = {.tables = STATE_BIT(STATE_HOST_VOLUMES),
                                              .about = WATCH_HOST_VOLUME,
                                              .run = read_one,
                                              .get = volume_get,
                                              .needs = "Namespace ID Name NodeID State",
                                              .makes = "Allocations State"};

/* --- where it is made --- */

/* NULL: a volume can be made there; else why not. */
static const char *
node_refuses(struct regexes *rx, const struct node *n, const struct host_volume *v)
{
    if (!v->registered && str_empty(str_map_get(&n->attributes, VOLUME_PLUGIN_ATTR)))
        return "it has no plugin \"" VOLUME_PLUGIN "\"";
    for (size_t i = 0; i < v->constraints.n; i++)
        if (!constraint_holds(rx, n, v->constraints.v[i]))
            return "a constraint of the volume keeps it out";
    return str_eq(n->status, NODE_READY) ? NULL : "it is not ready";
}

static int
take_node(struct write *w, struct state_txn *t, struct host_volume *v, struct err *e)
{
    const struct node *n = state_node(t, w->ctx, v->node_id);

    if (n == NULL)
        return err_set(e, -ERR_INVALID, "node \"%.64s\" does not exist", v->node_id);
    if (!str_empty(v->node_pool) && !str_eq(v->node_pool, n->node_pool))
        return err_set(e, -ERR_INVALID, "node ID \"%s\" is not in pool \"%.128s\"", n->id,
                       v->node_pool);
    const char *why = node_refuses(regexes_new(w->ctx), n, v);
    if (why != NULL)
        return err_set(e, -ERR_INVALID,
                       "could not place volume \"%s\": node %s is not feasible for volume: %s",
                       v->name, n->id, why);
    v->node_pool = n->node_pool;
    return 0;
}

/* Chooses a node without a volume of that name, the one with the fewest volumes. */
static int
find_node(struct write *w, struct state_txn *t, struct host_volume *v, struct err *e)
{
    struct regexes *rx = regexes_new(w->ctx);
    size_t existing = 0, infeasible = 0, fewest = SIZE_MAX;
    struct state_iter *it = state_nodes(t, w->ctx, NULL);

    for (struct node *n; (n = state_next(it, w->ctx)) != NULL;) {
        size_t has = 0;
        bool named = false;
        if (!str_empty(v->node_pool) && !str_eq(v->node_pool, n->node_pool))
            continue;
        struct state_iter *of = state_host_volumes_by_node(t, w->ctx, n->id);
        for (struct host_volume *o; (o = state_next(of, w->ctx)) != NULL; has++)
            named = named || str_eq(o->name, v->name);
        if (named || map_get(n->host_volumes, v->name) != NULL) {
            existing++;
        } else if (node_refuses(rx, n, v) != NULL) {
            infeasible++;
        } else if (has < fewest) {
            fewest = has;
            v->node_id = n->id;
        }
    }
    if (fewest == SIZE_MAX)
        return err_set(e, -ERR_INVALID,
                       "could not place volume \"%s\": no node meets constraints: %zu nodes had "
                       "existing volume, %zu nodes were infeasible",
                       v->name, existing, infeasible);
    return take_node(w, t, v, e);
}

/* --- writes --- */

/* Keeps what cannot be changed of the volume that is there. */
static int
take_existing(struct write *w, struct state_txn *t, struct host_volume *v, struct err *e)
{
    const struct host_volume *old = write_object(w, t, HOST_VOLUMES, v->id);

    if (old == NULL)
        return err_set(e, -ERR_INVALID, "cannot update volume \"%.64s\": volume does not exist",
                       v->id);
    if (!str_empty(v->node_id) && !str_eq(v->node_id, old->node_id))
        return err_set(e, -ERR_INVALID, "node ID cannot be updated");
    if (!str_empty(v->node_pool) && !str_eq(v->node_pool, old->node_pool))
        return err_set(e, -ERR_INVALID, "node pool cannot be updated");
    if (!str_eq(v->name, old->name) || !str_eq(v->namespace, old->namespace))
        return err_set(e, -ERR_INVALID, "name and namespace cannot be updated");
    if (v->requested_capacity_max_bytes > 0 &&
        v->requested_capacity_max_bytes < old->capacity_bytes)
        return err_set(e, -ERR_INVALID,
                       "capacity_max (%lld) cannot be less than existing provisioned capacity "
                       "(%lld)",
                       (long long)v->requested_capacity_max_bytes, (long long)old->capacity_bytes);
    v->node_id = old->node_id;
    v->node_pool = old->node_pool;
    v->constraints = old->constraints;
    v->registered = old->registered;
    v->host_path = str_or(v->host_path, old->host_path);
    return 0;
}

static int
prepare_put(struct write *w, struct state_txn *t, bool registers, struct err *e)
{
    const struct host_volume_request *req = w->req;
    struct intent_volume_put *in = mem_new(w->ctx, struct intent_volume_put);

    if (req->volume == NULL)
        return err_set(e, -ERR_INVALID, "missing volume definition");
    struct host_volume *v = codec_clone(w->ctx, &type_host_volume, req->volume);
    bool is_new = str_empty(v->id);
    v->namespace = w->ns;
    v->registered = registers;
    v->allocations = (struct alloc_list_stub_list){NULL, 0};
    if (!state_has_namespace(t, w->ns))
        return err_set(e, -ERR_INVALID, "volume validation failed: no such namespace \"%s\"",
                       w->ns);
    if (volume_check(v, e) < 0 || (!is_new && take_existing(w, t, v, e) < 0))
        return e->code;
    if (registers && (str_empty(v->node_id) || str_empty(v->host_path)))
        return err_set(e, -ERR_INVALID, "cannot register volume: %s is required",
                       str_empty(v->node_id) ? "node ID" : "host path");
    if (!registers && is_new)
        v->host_path = NULL;
    volume_canonical(w->ctx, v);
    if (is_new) {
        v->id = write_new_id(w);
        v->capacity_bytes = registers ? v->capacity_bytes : 0;
        int r = str_empty(v->node_id) ? find_node(w, t, v, e) : take_node(w, t, v, e);
        if (r < 0)
            return r;
    }
    v->state = VOLUME_PENDING;
    in->volume = v;
    w->in.volume_put = in;
    w->memo = v;
    return 0;
}

static void
reply_put(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct host_volume *v = codec_clone(w->ctx, &type_host_volume, w->memo);
    struct host_volume_write_response resp = {.volume = v, .index = index};

    (void)res;
    v->modify_index = index;
    rpc_reply(w->call, &resp);
}

static int
prepare_create(struct write *w, struct state_txn *t, struct err *e)
{
    return prepare_put(w, t, false, e);
}

const struct write_row write_host_volume_create = {prepare_create, reply_put};

static int
prepare_register(struct write *w, struct state_txn *t, struct err *e)
{
    return prepare_put(w, t, true, e);
}

const struct write_row write_host_volume_register = {prepare_register, reply_put};

static int
prepare_delete(struct write *w, struct state_txn *t, struct err *e)
{
    const struct host_volume_delete_request *req = w->req;
    struct intent_volume_delete *in = mem_new(w->ctx, struct intent_volume_delete);
    const struct host_volume *v = write_object(w, t, HOST_VOLUMES, req->id);

    if (v == NULL)
        return err_set(e, -ERR_NOT_FOUND, "no such volume: %.64s", str_or(req->id, ""));
    const struct node *n = state_node(t, w->ctx, str_or(v->node_id, ""));
    bool heard = n != NULL && str_eq(n->status, NODE_READY);
    if (!heard && !req->force)
        return err_set(e, -ERR_CONFLICT,
                       "volume cannot be removed from unknown node without force=true: node %s is "
                       "not heard",
                       v->node_id);
    *in = (struct intent_volume_delete){.id = v->id, .forget = !heard};
    w->in.volume_delete = in;
    return 0;
}

const struct write_row write_host_volume_delete = {prepare_delete, write_reply_index};

static int
prepare_report(struct write *w, struct state_txn *t, struct err *e)
{
    const struct node_volumes_request *req = w->req;
    struct intent_volumes_report *in = mem_new(w->ctx, struct intent_volumes_report);

    (void)t;
    if (codec_check(&type_node_volumes_request, req, e) < 0)
        return e->code;
    *in = (struct intent_volumes_report){w->node->id, req->volumes};
    w->in.volumes_report = in;
    return 0;
}

const struct write_row write_node_update_volumes = {prepare_report, write_reply_index,
                                                    .here = true};
