/* SPDX-License-Identifier: Apache-2.0
 *
 * The server: joins core, watches, leader's machines and endpoints. See server.h. In this order:
 * the configuration, copied with its defaults, and the id; what the core tells of other servers and
 * leaders; start; stop; and what the agent asks.
 *
 * The stop goes in steps on the loop, and their order is what matters here: a leader hands over;
 * then nothing new is begun (gossip, forwards, watches, the leader's machines, the gate); a worker
 * waits for the core's threads; and when the last woken query has run, memory goes.
 */
#include "server/server.h"

#include <stdatomic.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "server/autopilot.h"
#include "server/call/caller.h"
#include "server/call/endpoint.h"
#include "server/call/ways.h"
#include "server/core/core.h"
#include "server/events/ring.h"
#include "server/gate.h"
#include "server/gossip/gossip.h"
#include "server/hook.h"
#include "server/host_int.h"
#include "server/jwt/jwks.h"
#include "server/keys/fetch.h"
#include "server/keys/keys.h"
#include "server/leader/leader.h"
#include "server/peer/found.h"
#include "server/peer/peers.h"
#include "server/state/watch.h"

enum { HAND_OVER_MS = 1000 };

/* A clone, where what is not set, or nothing that could be meant, has the default of the schema. */
static struct agent_server *
agent_block(const void *ctx, const struct agent_server *from)
{
    static const struct agent_server unsaid;
    struct agent_server *a = codec_clone(ctx, &type_agent_server, from ? from : &unsaid);
    int64_t *const times[] = {&a->min_heartbeat_ttl,       &a->heartbeat_grace,
                              &a->failover_heartbeat_ttl,  &a->job_gc_interval,
                              &a->job_gc_threshold,        &a->eval_gc_threshold,
                              &a->batch_eval_gc_threshold, &a->node_gc_threshold,
                              &a->deployment_gc_threshold, &a->root_key_gc_interval,
                              &a->root_key_gc_threshold,   &a->root_key_rotation_threshold};
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        *times[i] = *times[i] < NS_PER_MS ? 0 : *times[i];
    if (a->max_heartbeats_per_second < 1)
        a->max_heartbeats_per_second = 0;
    if (a->raft_snapshot_threshold < 0)
        a->raft_snapshot_threshold = 0;
    codec_defaults(ctx, &type_agent_server, a);
    return a;
}

static void
copy_config(struct server *s, const struct server_config *in)
{
    struct server_config *c = &s->cfg;
    *c = *in;
    c->region = str_or(in->region, "global");
    c->datacenter = str_or(in->datacenter, "dc1");
    if (str_empty(c->authoritative_region))
        c->authoritative_region = c->region;
    const char **strings[] = {&c->data_dir,
                              &c->name,
                              &c->region,
                              &c->datacenter,
                              &c->node_id,
                              &c->rpc_addr,
                              &c->serf_addr,
                              &c->http_addr,
                              &c->version,
                              &c->serf_bind,
                              &c->authoritative_region,
                              &c->acl_replication_token,
                              &c->wrapping_key};
    for (size_t i = 0; i < ARRAY_LEN(strings); i++)
        *strings[i] = mem_strdup(s, *strings[i]);
    if (c->no_workers || c->workers == 0)
        c->workers = c->no_workers ? 0 : leader_workers_default();
    c->workers = c->workers < WORKERS_MAX ? c->workers : WORKERS_MAX;
    if (c->state_max == 0)
        c->state_max = (uint64_t)(c->dev ? 1 : 16) << 30;
    if (c->snapshot_bytes == 0)
        c->snapshot_bytes = 64 << 20;
    c->agent = agent_block(s, in->agent);
    c->autopilot = codec_clone(s, &type_agent_autopilot, in->autopilot);
}

/* The id that members show: made once, kept beside the log. */
static int
keep_id(struct server *s, const char *dir, struct err *e)
{
    const char *path = mem_printf(s, "%s/id", dir);
    char id[UUID_TEXT], *text = NULL;
    size_t n = 0;

    int r = file_read(s, AT_FDCWD, path, 256, &text, &n);
    if (r == 0 && uuid_valid(text)) {
        s->cfg.node_id = text;
        return 0;
    }
    if (r != 0 && r != -ENOENT)
        return err_set(e, r, "read \"%s\": %s", path, err_name(r));
    s->cfg.node_id = mem_strdup(s, env_id(&s->env, id));
    r = file_write_atomic(AT_FDCWD, path, id, strlen(id), 0600);
    return r < 0 ? err_set(e, r, "write \"%s\": %s", path, err_name(r)) : 0;
}

/* --- other servers --- */

static void stop_begin(void *arg);

static bool
net_send(void *arg, uint64_t to, const char *addr, struct buf *body)
{
    struct server *s = arg;
    return s->peers != NULL && peers_send(s->peers, to, addr, body);
}

/* A leader was a candidate before, however short. */
static void
note_role(struct server *s, bool leads)
{
    auto_mem void *tmp = mem_ctx("role");
    struct raft_figures *r = &s->raft;
    struct core_status st;
    int64_t now = env_mono_ns(&s->env);
    core_status(s->core, tmp, &st);
    if ((int)st.role != r->role || (st.role == CONSENSUS_LEADER && st.term != r->term)) {
        r->entered[st.role]++;
        r->entered[CONSENSUS_CANDIDATE] +=
            st.role == CONSENSUS_LEADER && r->role != CONSENSUS_CANDIDATE;
        r->won_ns = st.role == CONSENSUS_LEADER ? now : 0;
    }
    if (leads && r->won_ns != 0) {
        server_note_time(&r->establish, now - r->won_ns);
        r->won_ns = 0;
    }
    r->role = (int)st.role;
    r->term = st.term;
}

static void
leader_is_new(void *arg)
{
    struct server *s = arg;
    bool leads = server_is_leader(s);
    if (s->stopping)
        return;
    note_role(s, leads);
    if (s->led && !leads)
        watches_leader_lost(s->watches);
    s->led = leads;
    if (s->handing != NULL && !leads) {
        env_timer_stop(&s->env, TAKE(s->handing));
        env_post(&s->env, stop_begin, s);
    }
    forwards_leader_changed(s->forwards);
}

static void
leader_changed(void *arg)
{
    struct server *s = arg;
    env_post(&s->env, leader_is_new, s);
}

static void
begin_again(void *arg)
{
    (void)arg;
    log_info("server", "has the state of the leader now: the agent begins again with it", NULL);
    log_fatal_exit(); /* its supervisor starts it at once */
}

static int
open_keys(struct server *s, const char *dir, struct err *e)
{
    const struct agent_keyring *transit = s->cfg.transit;
    const char *plain = mem_printf(s, "%s/keyring/wrapping.key", dir);
    const char *own = transit != NULL ? mem_printf(s, "%s/keyring/wrapping.transit", dir) : plain;
    const struct keys_place at = {.path = str_or(s->cfg.wrapping_key, own),
                                  .given = !str_empty(s->cfg.wrapping_key),
                                  .transit = transit,
                                  .plain = plain};

    return keys_open(s, &at, &s->keys, e);
}

int
server_new(struct loop *loop, const struct server_config *cfg, struct server **ret, struct err *e)
{
    if (str_empty(cfg->data_dir))
        return err_set(e, -ERR_INVALID, "start the server: no data_dir is set");
    if (str_empty(cfg->rpc_addr))
        return err_set(e, -ERR_INVALID, "start the server: it has no RPC address");
    struct server *s = mem_new(NULL, struct server);
    s->loop = loop;
    env_of_loop(&s->env, loop);
    test_hook_env(&s->env, false);
    copy_config(s, cfg);
    s->watches = watches_new(&s->env);
    s->raft.role = -1;
    s->net = (struct core_net){net_send, leader_changed, begin_again, s};
    struct core_opts o = {
        .dir = mem_printf(s, "%s/server", s->cfg.data_dir),
        .addr = s->cfg.rpc_addr,
        .state_max = s->cfg.state_max,
        .segment_bytes = s->cfg.dev ? 1 << 20 : 0,
        .snapshot_entries = (uint64_t)s->cfg.agent->raft_snapshot_threshold,
        .snapshot_bytes = s->cfg.snapshot_bytes,
        .expect = s->cfg.expect,
        .net = &s->net,
        .env = &s->env,
        .on_changes = watches_changed,
        .on_changes_arg = s->watches,
    };
    int rc = core_open(&o, &s->core, e);
    if (rc < 0) {
        watches_free(s->watches);
        mem_free(s);
        return err_prefix(e, "start the server");
    }
    rc = str_empty(s->cfg.node_id) ? keep_id(s, o.dir, e) : 0;
    if (rc == 0)
        rc = open_keys(s, o.dir, e);
    if (rc == 0)
        rc = cluster_open(s, loop, o.dir, e);
    if (rc < 0) {
        gossip_close(s->gossip);
        found_free(s->found);
        peers_stop(s->peers);
        core_free(s->core);
        watches_free(s->watches);
        mem_free(s);
        return err_prefix(e, "start the server");
    }
    s->gate = gate_new();
    s->ways = ways_new(s);
    authorize_begin();
    s->callers = callers_new(s, s);
    s->jwks = jwks_new(loop, &s->env);
    s->forwards = forwards_new(s, loop, s, endpoint_call);
    s->abroad = regions_new(s, loop, s);
    s->leader = leader_new(s);
    s->autopilot = autopilot_new(s);
    s->on_round = autopilot_round;
    s->members_changed = leader_members_changed;
    s->events = events_new(s, (size_t)s->cfg.agent->event_buffer_size.v, 0);
    if (s->cfg.agent->enable_event_broker.v)
        core_add_listener(s->core, &events_listener, s->events);
    core_add_listener(s->core, &leader_listener, s->leader);
    test_hook_follow(s->core);
    *ret = s;
    return 0;
}

int
server_start(struct server *s, struct err *e)
{
    int rc = 0;
    if (s->found == NULL)
        rc = core_start(s->core, e);
    else
        found_start(s->found);
    if (rc == 0 && s->gossip != NULL)
        gossip_start(s->gossip);
    if (rc == 0)
        s->fetch = keys_fetch_start(s, s->loop);
    return rc;
}

static void
stop_last(void *arg)
{
    struct server *s = arg;
    void (*stopped)(void *a) = s->stopped;
    void *a = s->stopped_arg;
    leader_free(s->leader);
    gate_unref(s->gate);
    core_free(s->core);
    watches_free(s->watches);
    mem_free(s);
    if (stopped != NULL)
        stopped(a);
}

static void
stop_wait(void *arg)
{
    struct server *s = arg;
    /* Woken queries run first (they may hold a snapshot only within their turn). */
    if (watches_parked(s->watches) > 0)
        env_timer(&s->env, 1, stop_wait, s);
    else
        stop_last(s);
}

static void
stop_work(void *arg)
{
    struct server *s = arg;
    core_stop(s->core);
    peers_stop(TAKE(s->peers));
}

static void
stop_done(void *arg)
{
    struct server *s = arg;
    env_post(&s->env, stop_wait, s); /* behind everything the core posted */
}

void
server_retire(struct server *s)
{
    leader_retire(s->leader);
}

static void
stop_begin(void *arg)
{
    struct server *s = arg;
    s->handing = NULL;
    s->stopping = true;
    env_timer_stop(&s->env, TAKE(s->domain_timer));
    keys_fetch_stop(TAKE(s->fetch));
    gate_close(s->gate); /* before those who wait for keys go on */
    jwks_close(TAKE(s->jwks));
    gossip_close(TAKE(s->gossip));
    found_free(TAKE(s->found));
    forwards_stop(s->forwards);
    regions_stop(s->abroad);
    watches_stop(s->watches);
    leader_stop(s->leader);
    gate_close(s->gate);
    env_work(&s->env, stop_work, stop_done, s);
}

void
server_stop(struct server *s, void (*done)(void *arg), void *arg)
{
    ASSERT(!s->stopping && s->handing == NULL);
    s->stopped = done;
    s->stopped_arg = arg;
    test_hook_end(s);
    if (s->peers != NULL && server_is_leader(s)) {
        core_transfer(s->core, 0);
        s->handing = env_timer(&s->env, HAND_OVER_MS, stop_begin, s);
    } else {
        stop_begin(s);
    }
}

const struct rpc_service *
server_services(struct server *s, size_t *ret_n)
{
    (void)s;
    return endpoint_services(ret_n);
}

const struct rpc_service *
server_join_services(struct server *s, size_t *ret_n)
{
    (void)s;
    return endpoint_join_services(ret_n);
}

void
server_info(struct server *s, const void *ctx, struct server_info *ret)
{
    struct core_status st;
    char addr[CONSENSUS_ADDR_MAX + 1] = "";
    size_t n = 0;
    struct server_member *m = server_members(s, ctx, &n);

    core_status(s->core, ctx, &st);
    (void)server_leader_addr(s, addr, sizeof(addr));
    *ret = (struct server_info){.leader_addr = mem_strdup(ctx, addr),
                                .expect = s->cfg.expect,
                                .role = (unsigned)st.role,
                                .peers = st.conf.n,
                                .term = st.term,
                                .last = st.last,
                                .commit = st.commit,
                                .members = n,
                                .last_contact_ms = core_last_contact_ms(s->core)};
    ret->regions = server_regions(s, ctx).n;
    for (size_t i = 0; i < n; i++) {
        ret->failed += !m[i].alive && !m[i].left;
        ret->left += m[i].left;
    }
}

void
server_figures(struct server *s, struct server_figures *ret)
{
    leader_figures(s->leader, ret);
    core_turns(s->core, &ret->raft_turn_ns, &ret->apply_turn_ns);
    ret->writes = atomic_load_explicit(&s->raft.writes, memory_order_relaxed);
    ret->commit = s->raft.commit;
    ret->establish = s->raft.establish;
    for (size_t i = 0; i < ARRAY_LEN(ret->entered); i++)
        ret->entered[i] = s->raft.entered[i];
}
