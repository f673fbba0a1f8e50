/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: the agent itself, status, system, operator. What is asked of the servers goes by
 * call_server(); what this agent knows of itself (self, health, servers) is put together here.
 * Changes of the cluster check their parameters as Nomad does and name what is missing. The table
 * of routes is at the end.
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/api/api.h"
#include "agent/config/config.h"
#include "api/terms.h"
#include "client/client.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "net/addr.h"
#include "server/server.h"

/* --- status --- */

static void
leader_done(struct request *a, const void *resp)
{
    const struct status_leader_response *r = resp;
    reply_value(a, value_str(a, str_or(r->leader, "")));
}

static void
status_leader(struct request *a)
{
    call_server(a, RPC_STATUS_LEADER, mem_new(a, struct empty), leader_done);
}

static void
routes_agent_strings(struct request *a, const char *const *v, size_t n)
{
    struct value *list = value_list(a);
    for (size_t i = 0; i < n; i++)
        value_list_add(list, value_str(list, v[i]));
    reply_value(a, list);
}

static void
peers_done(struct request *a, const void *resp)
{
    const struct status_leader_response *r = resp;
    routes_agent_strings(a, r->peers.v, r->peers.n);
}

static void
status_peers(struct request *a)
{
    call_server(a, RPC_STATUS_LEADER, mem_new(a, struct empty), peers_done);
}

static void
regions_done(struct request *a, const void *resp)
{
    const struct regions_response *r = resp;
    routes_agent_strings(a, r->regions.v, r->regions.n);
}

static void
routes_agent_regions(struct request *a)
{
    a->env.region = a->api->region; /* any server knows all of them */
    call_server(a, RPC_STATUS_REGIONS, mem_new(a, struct empty), regions_done);
}

/* --- agent --- */

static void
routes_agent_set(struct value *map, const char *k, const char *v)
{
    value_map_set(map, k, value_str(map, str_or(v, "")));
}

static void
set_u64(struct value *map, const char *k, uint64_t v)
{
    routes_agent_set(map, k, LOG_U64(v));
}

/* Adds the numbers of a server. */
static void
server_stats(struct request *a, struct value *stats)
{
    static const char *const roles[] = {"Follower", "Candidate", "Leader"};
    struct api *api = a->api;
    struct value *s = value_map(stats), *raft = value_map(stats), *serf = value_map(stats);
    struct server_info i;
    struct server_gossip_figures g;
    char contact[32];

    server_info(api->server, a, &i);
    server_gossip_figures(api->server, &g);
    routes_agent_set(s, "server", "true");
    routes_agent_set(s, "leader", server_is_leader(api->server) ? "true" : "false");
    routes_agent_set(s, "leader_addr", i.leader_addr);
    routes_agent_set(s, "bootstrap", i.expect <= 1 ? "true" : "false");
    set_u64(s, "known_regions", i.regions);
    value_map_set(stats, "nomad", s);
    routes_agent_set(raft, "state", roles[i.role]);
    set_u64(raft, "num_peers", i.peers > 0 ? i.peers - 1 : 0);
    set_u64(raft, "term", i.term);
    set_u64(raft, "last_log_index", i.last);
    set_u64(raft, "commit_index", i.commit);
    if (i.last_contact_ms == INT64_MAX)
        routes_agent_set(raft, "last_contact", "never");
    else if (snprintf(contact, sizeof(contact), "%lldms", (long long)i.last_contact_ms) > 0)
        routes_agent_set(raft, "last_contact", i.last_contact_ms == 0 ? "0" : contact);
    routes_agent_set(raft, "protocol_version", "3");
    set_u64(raft, "applied_index", server_applied(api->server));
    value_map_set(stats, "raft", raft);
    set_u64(serf, "members", i.members);
    set_u64(serf, "failed", i.failed);
    set_u64(serf, "left", i.left);
    set_u64(serf, "health_score", g.health);
    routes_agent_set(serf, "encrypted", g.encrypted ? "true" : "false");
    value_map_set(stats, "serf", serf);
}

static void
runtime_stats(struct value *stats)
{
    struct value *r = value_map(stats);
    struct utsname u;

    if (uname(&u) == 0)
        routes_agent_set(r, "arch", mem_strdup(r, u.machine));
    routes_agent_set(r, "kernel.name", "linux");
    routes_agent_set(r, "version", "C, " __VERSION__);
    routes_agent_set(r, "cpu_count", LOG_I64(sysconf(_SC_NPROCESSORS_ONLN)));
    value_map_set(stats, "runtime", r);
}

static struct value *
stats_of(struct request *a)
{
    struct api *api = a->api;
    struct value *stats = value_map(a), *paddock = value_map(stats);
    char dur[DURATION_TEXT], expires[TIME_TEXT];

    routes_agent_set(paddock, "version", api->version);
    routes_agent_set(paddock, "api_release", NOMAD_VERSION);
    routes_agent_set(paddock, "pid", LOG_I64(getpid()));
    routes_agent_set(
        paddock, "uptime",
        duration_format((clock_mono_ns() - api->started_ns) / NS_PER_S * NS_PER_S, dur));
    set_u64(paddock, "http_connections", api->http ? http_server_conns(api->http) : 0);
    if (api->tls_end_s > 0) {
        routes_agent_set(paddock, "certificate_expires",
                         time_format(api->tls_end_s * NS_PER_S, expires));
        routes_agent_set(paddock, "certificate_days_left",
                         LOG_I64((api->tls_end_s - clock_wall_ns() / NS_PER_S) / (24 * 60 * 60)));
    }
    value_map_set(stats, "paddock", paddock);
    if (api->server)
        server_stats(a, stats);
    runtime_stats(stats);
    if (api->client) {
        struct value *c = value_map(stats);
        struct client_info info;
        client_info(api->client, &info);
        routes_agent_set(c, "node_id", info.node_id);
        routes_agent_set(c, "known_servers", info.known_servers);
        set_u64(c, "num_allocations", info.allocs);
        routes_agent_set(c, "heartbeat_ttl", duration_format(info.heartbeat_ttl_ns, dur));
        routes_agent_set(c, "last_heartbeat",
                         info.last_heartbeat_ns < 0 ? "never"
                                                    : duration_format(info.last_heartbeat_ns, dur));
        value_map_set(stats, "client", c);
    }
    return stats;
}

/* Objects of schema types become values by way of their JSON. */
static struct value *
value_of(const void *ctx, const struct type *t, const void *obj)
{
    struct buf b = BUF_INIT(1 << 20);
    struct value *v = NULL;
    struct err e = ERR_INIT;

    json_encode(&b, t, obj, JSON_HIDE_SECRETS);
    if (buf_error(&b) ||
        json_decode_value(ctx, SLICE(buf_str(&b), b.len), BUDGET(16 << 20), &v, &e) < 0)
        v = value_null(ctx);
    buf_done(&b);
    return v;
}

static void
send_self(struct request *a, const struct agent_member *m)
{
    struct value *self = value_map(a);
    struct value *cfg = a->api->cfg ? config_value(a, a->api->cfg) : value_map(a);
    struct value *v = value_map(cfg);

    routes_agent_set(v, "Version", NOMAD_VERSION);
    routes_agent_set(v, "VersionMetadata", "");
    routes_agent_set(v, "VersionPrerelease", "");
    routes_agent_set(v, "Revision", "");
    value_map_set(cfg, "Version", v);
    routes_agent_set(cfg, "PaddockVersion", a->api->version);
    value_map_set(self, "config", cfg);
    value_map_set(self, "member", m ? value_of(a, &type_agent_member, m) : value_map(a));
    value_map_set(self, "stats", stats_of(a));
    reply_value(a, self);
}

static void
self_done(struct request *a, const void *resp)
{
    const struct server_members_response *r = resp;

    send_self(a, r->members.n > 0 ? r->members.v[0] : NULL); /* this server comes first */
}

static bool
self_error(struct request *a, const struct err *e)
{
    (void)e;
    send_self(a, NULL); /* what we know of ourselves we can always tell */
    return true;
}

static void
agent_self(struct request *a)
{
    a->on_error = self_error;
    if (a->api->server)
        call_server(a, RPC_STATUS_MEMBERS, mem_new(a, struct empty), self_done);
    else
        send_self(a, NULL);
}

static void
put_json_string(struct buf *b, const char *s)
{
    s = str_or(s, "");
    json_put_string(b, s, strlen(s));
}

static void
put_health(struct buf *b, const char *role, bool ok, const char *message)
{
    if (b->len > 1)
        buf_putc(b, ',');
    put_json_string(b, role);
    buf_printf(b, ":{\"message\":");
    put_json_string(b, message);
    buf_printf(b, ",\"ok\":%s}", ok ? "true" : "false");
}

static void
agent_health(struct request *a)
{
    struct buf b = BUF_INIT(4096);
    bool all = true, want_client = a->api->client != NULL, want_server = a->api->server != NULL;
    bool typed = false;

    for (size_t i = 0; i < a->req->n_query; i++)
        typed |= strcmp(a->req->query[i].k, "type") == 0;
    if (typed) {
        want_client = want_server = false;
        for (size_t i = 0; i < a->req->n_query; i++) {
            want_client |= strcmp(a->req->query[i].k, "type") == 0 &&
                           strcmp(a->req->query[i].v, "client") == 0;
            want_server |= strcmp(a->req->query[i].k, "type") == 0 &&
                           strcmp(a->req->query[i].v, "server") == 0;
        }
    }
    buf_putc(&b, '{');
    if (want_client) {
        struct client_info info = {0};
        if (a->api->client)
            client_info(a->api->client, &info);
        bool ok = a->api->client && info.registered;
        put_health(&b, "client", ok,
                   ok               ? "ok"
                   : a->api->client ? "no known servers"
                                    : "client not enabled");
        all &= ok;
    }
    if (want_server) {
        char leader[256];
        bool ok = a->api->server && server_leader_addr(a->api->server, leader, sizeof(leader));
        put_health(&b, "server", ok,
                   ok               ? "ok"
                   : a->api->server ? "No cluster leader"
                                    : "server not enabled");
        all &= ok;
    }
    buf_putc(&b, '}');
    http_reply_buf(a->req, all ? 200 : 500, "application/json", &b);
}

static void
on_reload_gone(struct request *a)
{
    a->api->reload_forget(a->api->reload_arg, a);
}

static void
on_reloaded(void *arg, const struct reload_response *resp, const struct err *e)
{
    struct request *a = arg;
    a->gone = NULL;
    if (e)
        reply_error(a, e);
    else
        reply_json(a, &type_reload_response, resp);
}

static void
agent_reload(struct request *a)
{
    if (!a->api->reload) {
        reply_fail(a, 501, "this agent cannot reload");
        return;
    }
    a->gone = on_reload_gone;
    a->api->reload(a->api->reload_arg, on_reloaded, a);
}

static void
agent_servers(struct request *a)
{
    struct str_list l = rpc_servers(a->api->servers, a);
    if (l.n > 0)
        routes_agent_strings(a, l.v, l.n);
    else /* the one in this process */
        call_server(a, RPC_STATUS_LEADER, mem_new(a, struct empty), peers_done);
}

/* Checks addresses for an agent that is a server: its client asks that one and no other. */
static int
check_servers(const struct str_list *l, struct err *e)
{
    struct addr addr;
    for (size_t i = 0; i < l->n; i++) {
        if (addr_parse(l->v[i], 4647, &addr, e) < 0)
            return e->code;
        if (addr.is_unix)
            return err_set(e, -ERR_INVALID, "\"%.100s\" is no address of a server", l->v[i]);
    }
    log_info("http", "the servers of this client are not set: it asks the one in its agent", NULL);
    return 0;
}

static void
agent_set_servers(struct request *a)
{
    struct str_list l = {0};
    struct err e = ERR_INIT;

    for (size_t i = 0; i < a->req->n_query; i++)
        if (str_eq(a->req->query[i].k, "address"))
            list_add(a, l, a->req->query[i].v);
    if (l.n == 0)
        reply_fail(a, 400, "missing server address");
    else if (l.n > RPC_SERVERS_MAX)
        reply_fail(a, 400, "more than %d server addresses", RPC_SERVERS_MAX);
    else if (a->api->client == NULL)
        reply_fail(a, 501, "this agent has no client whose servers could be set");
    else if ((a->api->server != NULL ? check_servers(&l, &e)
                                     : client_set_servers(a->api->client, &l, &e)) < 0)
        reply_fail(a, 400, "%s", e.text);
    else
        reply_json(a, &type_empty, NULL);
}

/* --- system, operator --- */

static void
gc_done(struct request *a, const void *resp)
{
    const struct write_response *r = resp;
    reply_index(a, r->index);
    reply_json(a, &type_empty, NULL);
}

static void
system_gc(struct request *a)
{
    call_server(a, RPC_SYSTEM_GC, mem_new(a, struct empty), gc_done);
}

static bool
routes_agent_refused(struct request *a, const struct err *e)
{
    if (e->code != -ERR_INVALID)
        return false;
    reply_fail(a, 400, "%s", e->text);
    return true;
}

/* The one value of a parameter that is there; NULL with `wrong` set. */
static const char *
routes_agent_only(const struct request *a, const char *name, const char **wrong)
{
    const char *v = NULL;
    for (size_t i = 0; i < a->req->n_query; i++) {
        if (!str_eq(a->req->query[i].k, name))
            continue;
        if (v != NULL)
            *wrong = mem_printf(a, "must specify only one %s", name);
        v = a->req->query[i].v;
    }
    if (str_empty(v))
        *wrong = mem_printf(a, "%s must be non-empty", name);
    return v;
}

/* One server, by exactly one of its id and its address. NULL: refused. */
static struct raft_peer_request *
one_peer(struct request *a)
{
    bool id = http_query(a->req, "id") != NULL, address = http_query(a->req, "address") != NULL;
    struct raft_peer_request *r = mem_new(a, struct raft_peer_request);
    const char *wrong = NULL;

    if (id == address)
        wrong = id ? "must specify either id or address" : "must specify id or address";
    else if (id)
        r->id = routes_agent_only(a, "id", &wrong);
    else
        r->address = routes_agent_only(a, "address", &wrong);
    a->on_error = routes_agent_refused;
    if (wrong == NULL)
        return r;
    reply_fail(a, 400, "%s", wrong);
    return NULL;
}

static void
transfer_leadership(struct request *a)
{
    struct raft_peer_request *r = one_peer(a);
    if (r != NULL)
        call_server(a, RPC_OPERATOR_TRANSFER_LEADERSHIP, r, method_done);
}

static void
routes_agent_removed(struct request *a, const void *resp)
{
    (void)resp;
    reply_json(a, &type_empty, NULL);
}

static void
remove_peer(struct request *a)
{
    struct raft_peer_request *r = one_peer(a);
    if (r != NULL)
        call_server(a, RPC_OPERATOR_REMOVE_PEER, r, routes_agent_removed);
}

static void
agent_join(struct request *a)
{
    struct server_join_request *r = mem_new(a, struct server_join_request);
    for (size_t i = 0; i < a->req->n_query; i++)
        if (str_eq(a->req->query[i].k, "address"))
            list_add(a, r->addresses, a->req->query[i].v);
    if (a->api->server == NULL)
        reply_fail(a, 501, "this agent is no server");
    else if (r->addresses.n == 0)
        reply_fail(a, 400, "missing address to join");
    else
        call_server(a, RPC_SERVER_JOIN, r, method_done);
}

static void
keyring_done(struct request *a, const void *resp)
{
    const struct gossip_keys_response *r = resp;
    if (r->messages.n == 0)
        reply_json(a, &type_gossip_keys_response, r);
    else
        reply_fail(a, 500, "%zu/%lld nodes reported failure: %s: %s", r->messages.n,
                   (long long)r->num_nodes, r->messages.v[0].k, r->messages.v[0].v);
}

/* At this server, for all that know of each other. */
static void
agent_keyring(struct request *a)
{
    struct gossip_keys_request *r;
    if (a->api->server == NULL) {
        reply_fail(a, 501, "this agent is no server");
        return;
    }
    if (str_eq(a->id, "list"))
        r = mem_new(a, struct gossip_keys_request);
    else if (!(r = request_body(a, &type_gossip_keys_request, false)))
        return; /* answered, and gone */
    r->op = a->id;
    call_server(a, RPC_OPERATOR_GOSSIP_KEYRING, r, keyring_done);
}

/* A name that nobody has is gone already. */
static bool
left_anyway(struct request *a, const struct err *e)
{
    if (e->code != -ERR_NOT_FOUND)
        return false;
    reply_json(a, &type_empty, NULL);
    return true;
}

static void
agent_force_leave(struct request *a)
{
    struct raft_peer_request *r = mem_new(a, struct raft_peer_request);
    r->name = http_query(a->req, "node");
    r->prune = http_query(a->req, "prune") != NULL;
    a->on_error = left_anyway;
    if (a->api->server == NULL)
        reply_fail(a, 501, "this agent is no server");
    else if (str_empty(r->name))
        reply_fail(a, 400, "missing node to force leave");
    else
        call_server(a, RPC_OPERATOR_REMOVE_PEER, r, routes_agent_removed);
}

static void
scheduler_set(struct request *a)
{
    struct scheduler_configuration *c = request_body(a, &type_scheduler_configuration, false);

    if (!c)
        return; /* answered, and gone */
    a->on_error = routes_agent_refused;
    const char *cas = http_query(a->req, "cas");
    struct scheduler_set_request *r = mem_new(a, struct scheduler_set_request);
    r->scheduler_config = c;
    r->cas = cas != NULL;
    if (cas && num_parse_u64(cas, &r->modify_index) < 0)
        reply_fail(a, 400, "Error parsing cas value: \"%s\" is no number", cas);
    else
        call_server(a, RPC_OPERATOR_SCHEDULER_SET, r, method_done);
}

const struct route routes_agent[] = {
    {VERB_GET, "/v1/status/leader", NULL, status_leader, RPC_STATUS_LEADER, BY_SERVER},
    {VERB_GET, "/v1/status/peers", NULL, status_peers, RPC_STATUS_LEADER, BY_SERVER},
    {VERB_GET, "/v1/regions", NULL, routes_agent_regions, RPC_STATUS_REGIONS, BY_SERVER},
    {VERB_GET, "/v1/agent/self", NULL, agent_self, 0, "agent:read"},
    {VERB_GET, "/v1/agent/health", NULL, agent_health, 0, "none"},
    {VERB_GET, "/v1/agent/servers", NULL, agent_servers, 0, "agent:read"},
    {VERB_WRITE, "/v1/agent/servers", NULL, agent_set_servers, 0, "agent:write"},
    {VERB_WRITE, "/v1/agent/reload", NULL, agent_reload, 0, "agent:write"},
    {VERB_GET, "/v1/metrics", NULL, metrics_get, 0, "none"},
    {VERB_PUT, "/v1/system/gc", NULL, system_gc, RPC_SYSTEM_GC, BY_SERVER},
    {VERB_WRITE, "/v1/operator/scheduler/configuration", NULL, scheduler_set,
     RPC_OPERATOR_SCHEDULER_SET, BY_SERVER},
    {VERB_WRITE, "/v1/operator/raft/transfer-leadership", NULL, transfer_leadership,
     RPC_OPERATOR_TRANSFER_LEADERSHIP, BY_SERVER},
    {VERB_DELETE, "/v1/operator/raft/peer", NULL, remove_peer, RPC_OPERATOR_REMOVE_PEER, BY_SERVER},
    {VERB_WRITE, "/v1/agent/join", NULL, agent_join, RPC_SERVER_JOIN, BY_SERVER},
    {VERB_ANY | VERB_UNSAFE, "/v1/agent/keyring/", "", agent_keyring, RPC_OPERATOR_GOSSIP_KEYRING,
     BY_SERVER},
    {VERB_WRITE, "/v1/agent/force-leave", NULL, agent_force_leave, RPC_OPERATOR_REMOVE_PEER,
     BY_SERVER},
    ROUTES_END,
};
