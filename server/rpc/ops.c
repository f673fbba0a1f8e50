/* SPDX-License-Identifier: Apache-2.0
 *
 * Status.*, System.*, Operator.*.
 */
#include <string.h>

#include "api/limits.h"
#include "api/terms.h"
#include "codec/base64.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/addr.h"
#include "server/call/method.h"
#include "server/core/core.h"
#include "server/leader/leader.h"
#include "server/leader/live.h"
#include "server/sched/query/simulate.h"

void
call_status_leader(void *arg, struct rpc_call *call, const void *p)
{
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    struct status_leader_response resp = {0};
    struct core_status st;
    char addr[256];

    (void)p;
    if (!server_leader_addr(s, addr, sizeof(addr))) {
        rpc_failf(call, -ERR_NO_LEADER, "No cluster leader");
        return;
    }
    resp.leader = mem_strdup(ctx, addr);
    server_raft_status(s, ctx, &st);
    for (size_t i = 0; i < st.conf.n; i++)
        list_add(ctx, resp.peers, st.conf.v[i].addr);
    rpc_reply(call, &resp);
}

static struct agent_member *
member_of(void *ctx, const struct server_member *sm)
{
    const struct server_hello *h = sm->hello;
    struct agent_member *m = mem_new(ctx, struct agent_member);
    struct addr rpc = {0}, serf = {0};

    (void)addr_parse(str_or(h->addr, ""), 0, &rpc, NULL);
    if (addr_parse(str_or(h->serf, ""), 0, &serf, NULL) < 0)
        serf = rpc;
    m->name = h->name;
    m->addr = mem_strdup(ctx, serf.host);
    m->port = serf.port;
    m->status = sm->alive ? "alive" : sm->left ? "left" : "failed";
    m->protocol_min = 1;
    m->delegate_min = 2;
    m->protocol_max = m->delegate_max = 5;
    m->protocol_cur = 2;
    m->delegate_cur = 4;
    str_map_set(ctx, &m->tags, "role", "nomad");
    str_map_set(ctx, &m->tags, "region", str_or(h->region, "global"));
    str_map_set(ctx, &m->tags, "dc", str_or(h->datacenter, "dc1"));
    str_map_set(ctx, &m->tags, "id", str_or(h->node, ""));
    str_map_set(ctx, &m->tags, "build", str_or(h->build, ""));
    str_map_set(ctx, &m->tags, "rpc_addr", mem_strdup(ctx, rpc.host));
    str_map_set(ctx, &m->tags, "port", mem_printf(ctx, "%u", rpc.port));
    str_map_set(ctx, &m->tags, "raft_vsn", "3");
    if (!str_empty(h->zone))
        str_map_set(ctx, &m->tags, "ap_zone", h->zone);
    if (h->non_voting)
        str_map_set(ctx, &m->tags, "nonvoter", "1");
    if (h->expect <= 1)
        str_map_set(ctx, &m->tags, "bootstrap", "1");
    if (h->expect != EXPECT_NONE)
        str_map_set(ctx, &m->tags, "expect",
                    mem_printf(ctx, "%lld", (long long)(h->expect > 0 ? h->expect : 1)));
    str_map_set(ctx, &m->tags, "revision", "");
    str_map_set(ctx, &m->tags, "vsn", "1");
    return m;
}

void
call_status_members(void *arg, struct rpc_call *call, const void *p)
{
    const struct server_config *c = server_cfg(arg);
    void *ctx = rpc_call_ctx(call);
    struct server_members_response resp = {0};
    size_t n = 0;
    struct server_member *v = server_members(arg, ctx, &n);

    (void)p;
    resp.server_region = str_or(c->region, "global");
    resp.server_name = mem_strndup(ctx, c->name, strlen(c->name) - strlen(resp.server_region) - 1);
    resp.server_dc = str_or(c->datacenter, "dc1");
    for (size_t i = 0; i < n; i++)
        list_add(ctx, resp.members, member_of(ctx, &v[i]));
    rpc_reply(call, &resp);
}

void
call_status_regions(void *arg, struct rpc_call *call, const void *p)
{
    struct regions_response resp = {.regions = server_regions(arg, rpc_call_ctx(call))};

    (void)p;
    rpc_reply(call, &resp);
}

static void
gc_done(void *arg, uint64_t index)
{
    struct rpc_call *call = arg;
    struct write_response resp = {.index = index};

    rpc_reply(call, &resp);
}

void
call_system_gc(void *arg, struct rpc_call *call, const void *p)
{
    (void)p;
    leader_gc(server_leader(arg), gc_done, call);
}

static int
scheduler_get_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct scheduler_configuration_response *resp = read_resp(r);

    (void)e;
    resp->scheduler_config = state_scheduler_config(t, r->ctx);
    struct scheduler_configuration *c = resp->scheduler_config;
    if (c && !c->preemption_config) { /* never set */
        c->preemption_config = mem_new(r->ctx, struct preemption_config);
        c->preemption_config->system_scheduler_enabled = true;
    }
    r->index = state_index(t, r->row->tables);
    resp->index = r->index;
    resp->known_leader = true;
    return 0;
}

const struct read_row read_operator_scheduler_get = {.tables = STATE_BIT(STATE_SCHEDULER_CONFIG),
                                                     .run = scheduler_get_run};

/* --- simulation --- */

static int
simulate_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct simulate_request *req = r->req;
    struct simulate_response *resp = read_resp(r);
    const struct env *env = server_env(r->s);
    struct rng rng = rng_seed(env_random(env), env_random(env));
    struct sched_view_state v;
    struct str_list drain = {NULL, 0};

    for (const char *p = str_or(req->drain, ""); *p != '\0'; p += *p == ',') {
        size_t n = strcspn(p, ",");
        if (n > 0)
            list_add(r->ctx, drain, mem_strndup(r->ctx, p, n));
        p += n;
    }
    if (drain.n == 0 || drain.n > SIMULATE_NODES_MAX)
        return err_set(e, -ERR_INVALID, "drain names 1 to %d nodes", SIMULATE_NODES_MAX);
    r->index = state_index(t, r->row->tables);
    sched_view_init(&v, r->ctx, t, sched_view_table(r->ctx, t), NULL);
    struct simulate_in in = {.view = &v.view,
                             .drain = drain.v,
                             .n_drain = drain.n,
                             .now = env_wall_ns(env),
                             .rng = &rng};
    return sched_simulate(r->ctx, &in, &resp->simulation, e);
}

const struct read_row read_operator_simulate = {
    .tables = STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_NODES) | STATE_BIT(STATE_ALLOCS),
    .run = simulate_run,
    .query = true};

/* --- scheduler configuration --- */

static void
scheduler_set(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct scheduler_set_configuration_response resp = {.updated = res->changed, .index = index};

    rpc_reply(w->call, &resp);
}

static int
prepare_scheduler_set(struct write *w, struct state_txn *t, struct err *e)
{
    const struct scheduler_set_request *req = w->req;
    struct scheduler_configuration *c =
        req->scheduler_config
            ? codec_clone(w->ctx, &type_scheduler_configuration, req->scheduler_config)
            : mem_new(w->ctx, struct scheduler_configuration);

    (void)t;
    c->scheduler_algorithm = str_or(c->scheduler_algorithm, "binpack");
    if (!str_eq(c->scheduler_algorithm, "binpack") && !str_eq(c->scheduler_algorithm, "spread"))
        return err_set(e, -ERR_INVALID, "invalid scheduler algorithm \"%.64s\": binpack or spread",
                       c->scheduler_algorithm);
    struct intent_scheduler_cas *cas = mem_new(w->ctx, struct intent_scheduler_cas);
    *cas = (struct intent_scheduler_cas){c, req->modify_index};
    if (req->cas)
        w->in.scheduler_cas = cas;
    else
        w->in.scheduler_config = c;
    return 0;
}

const struct write_row write_operator_scheduler_set = {prepare_scheduler_set, scheduler_set,
                                                       .here = true};

/* --- a backup of the state, taken at the leader or any server, read, restored --- */

static int
save_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct snapshot_save_response *resp = read_resp(r);
    struct core_backup b;
    struct buf text = BUF_INIT(2 * BACKUP_DIGEST);

    if (server_backup(r->s, t, &b, e) < 0)
        return e->code;
    base64_encode(&text, b.digest, sizeof(b.digest));
    resp->snapshot = b.index;
    resp->size = b.size;
    resp->digest = mem_strndup(resp, (const char *)text.data, text.len);
    buf_done(&text);
    r->index = state_applied(t);
    return 0;
}

const struct read_row read_operator_snapshot_save = {.run = save_run, .query = true};

static int
piece_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct snapshot_read_request *req = r->req;
    struct snapshot_read_response *resp = read_resp(r);
    uint8_t *to = mem_array(resp, uint8_t, RESTORE_PIECE);
    int n = server_backup_read(r->s, req->snapshot, req->offset, to, RESTORE_PIECE, e);

    if (n < 0)
        return n;
    if (n == 0)
        server_backup_drop(r->s, req->snapshot);
    resp->data = (struct bytes){to, (size_t)n};
    r->index = state_applied(t);
    return 0;
}

const struct read_row read_operator_snapshot_read = {.run = piece_run};

static int
prepare_restore(struct write *w, struct state_txn *t, struct err *e)
{
    const struct snapshot_restore_request *req = w->req;
    uint64_t most = server_restore_max(w->s);

    (void)t;
    if ((req->piece == NULL) == (req->end == NULL))
        return err_set(e, -ERR_INVALID, "either a piece of a backup, or its end");
    if (req->piece != NULL && req->piece->offset + req->piece->data.n > most)
        return err_set(e, -ERR_LIMIT,
                       "the backup is larger than the %llu MiB that may be restored here: raise "
                       "state_max_mb of the servers",
                       (unsigned long long)most >> 20);
    w->in.restore_piece = req->piece;
    w->in.restore_end = req->end;
    return 0;
}

const struct write_row write_operator_snapshot_restore = {prepare_restore, write_reply_index};
