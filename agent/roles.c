/* SPDX-License-Identifier: Apache-2.0
 *
 * Starting and stopping the roles of an agent. Names and addresses as others are told them; then
 * the server, the client and the HTTP server, each with a function that makes its configuration of
 * the agent's and starts it; roles_start() in which order, and roles_stop() how all of it ends, the
 * client first. Between them the drain of the own node.
 */
#include "agent/roles.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/admit.h"
#include "agent/config/config.h"
#include "agent/limits.h"
#include "agent/tls.h"
#include "api/terms.h"
#include "client/client.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/journal.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/client.h"
#include "isolation/launch/policy.h"
#include "net/addr.h"
#include "net/tls/tls.h"
#include "server/server.h"

/* --- names and addresses --- */

static const char *
host_name(const void *ctx)
{
    char name[256] = "";
    if (gethostname(name, sizeof(name) - 1) < 0 || !name[0])
        return "localhost";
    return mem_strdup(ctx, name);
}

/* The first IPv4 address that others can reach; loopback when there is none. */
static const char *
first_address(const void *ctx)
{
    struct ifaddrs *list = NULL;
    char text[INET_ADDRSTRLEN] = "127.0.0.1";

    if (getifaddrs(&list) < 0)
        return "127.0.0.1";
    for (struct ifaddrs *i = list; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || (i->ifa_flags & IFF_LOOPBACK) ||
            !(i->ifa_flags & IFF_UP))
            continue;
        inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)i->ifa_addr)->sin_addr, text,
                  sizeof(text));
        break;
    }
    freeifaddrs(list);
    return mem_strdup(ctx, text);
}

/* Returns the address by which others reach a bound one: `want` ("ip[:port]") if given, else the
 * bound one, with a real address in place of the wildcard. */
static const char *
roles_advertised(const void *ctx, const char *bound, const char *want, struct err *e)
{
    struct addr a, w;
    char text[ADDR_TEXT];

    if (addr_parse(bound, 0, &a, e) < 0)
        return NULL;
    if (!str_empty(want)) {
        if (addr_parse(want, a.port ? a.port : 1, &w, e) < 0)
            return NULL;
        a = w;
    } else if (str_eq(a.host, "0.0.0.0") || str_eq(a.host, "::")) {
        (void)str_copy(a.host, sizeof(a.host), first_address(ctx));
    }
    return mem_strdup(ctx, addr_format(&a, text));
}

static int
set_names(struct roles *r, struct err *e)
{
    const struct agent_config *c = r->rc.cfg;
    const struct agent_addresses *adv = c->advertise_addrs;

    r->region = str_or(c->region, "global");
    r->datacenter = str_or(c->datacenter, "dc1");
    r->name = str_empty(c->node_name) ? host_name(r) : c->node_name;
    r->http_bind = config_http_addr(c);
    r->rpc_bind = config_rpc_addr(c);
    r->http_advertise = roles_advertised(r, r->http_bind, adv ? adv->http : NULL, e);
    r->rpc_advertise = roles_advertised(r, r->rpc_bind, adv ? adv->rpc : NULL, e);
    r->serf_advertise = roles_advertised(r, config_serf_addr(c), adv ? adv->serf : NULL, e);
    return e->code;
}

/* Which connections are encrypted. */
static void
set_filters(struct roles *r)
{
    const struct agent_tls *t = r->rc.cfg->tls_config;

    if (r->rc.tls == NULL || t == NULL)
        return;
    if (t->enable_rpc)
        r->rpc_filter = tls_rpc(r->rc.tls);
    if (t->enable_http)
        r->http_filter = tls_http(r->rc.tls);
    r->rpc_plain = t->rpc_upgrade_mode;
}

/* --- server --- */

/* All addresses of servers to join, however they are written. */
static struct str_list
to_join(struct roles *r, const struct agent_server *s)
{
    struct str_list all = {0};
    const struct str_list *const from[] = {
        &s->start_join, &s->retry_join, &s->server_join->start_join, &s->server_join->retry_join};

    for (size_t i = 0; i < ARRAY_LEN(from); i++)
        for (size_t k = 0; k < from[i]->n; k++)
            list_add(r, all, from[i]->v[k]);
    return all;
}

/* The older of two spellings counts where the other one is not set. */
static int64_t
retry_interval_ms(const struct agent_server *s)
{
    int64_t ns = s->server_join->retry_interval;
    return (ns != 0 ? ns : s->retry_interval) / NS_PER_MS;
}

static int64_t
retry_max(const struct agent_server *s)
{
    int64_t n = s->server_join->retry_max_attempts;
    return n != 0 ? n : s->retry_max_attempts;
}

/* The address at which this server hears others; NULL: none. A server alone is heard where
 * whoever is on its network may hear it; advertised at loopback, it is heard there alone. */
static const char *
gossip_addr(const struct roles *r)
{
    const struct agent_config *c = r->rc.cfg;
    const char *bind = config_serf_addr(c);
    if (c->server->bootstrap_expect > 1 || config_rpc_guarded(c) || config_is_loopback(bind))
        return bind;
    return config_is_loopback(r->serf_advertise) && config_is_loopback(r->rpc_advertise)
               ? r->serf_advertise
               : NULL;
}

/* Listens for other servers: on the port of RPC, and on gossip's for those that join. */
static int
listen_to_servers(struct roles *r, struct err *e)
{
    struct addr a;
    size_t n;
    const struct rpc_service *join = server_join_services(r->server, &n);

    rpc_server_secure(r->rpc, r->rpc_filter, r->rpc_plain);
    rpc_server_give(r->rpc, SERVER_PEER_BYTE, server_peer_take, r->server);
    if (gossip_addr(r) == NULL)
        return 0;
    if (addr_parse(gossip_addr(r), 0, &a, e) < 0)
        return e->code;
    r->join = rpc_listen(r->rc.loop, &a, join, n, r->server, e);
    if (r->join == NULL)
        return err_prefix(e, "serf");
    rpc_server_secure(r->join, r->rpc_filter, r->rpc_plain);
    return 0;
}

/* Hides a server that waits for a cluster: other servers reach it at loopback alone, or on a
 * network that is trusted. */
static int
hide_from_strangers(struct roles *r, struct err *e)
{
    if (config_rpc_guarded(r->rc.cfg) || config_is_loopback(r->rpc_bind))
        return 0;
    if (gossip_addr(r) == NULL)
        return config_refuse_plain(r->rc.cfg, e);
    r->rpc_bind = r->rpc_advertise;
    return config_is_loopback(r->rpc_bind) ? 0 : config_refuse_plain(r->rc.cfg, e);
}

/* Finds what the block keyring names: a file, or a server that seals one; both stay NULL where
 * there is none. */
static int
find_wrapping_key(const struct roles *r, const char **ret, const struct agent_keyring **transit,
                  struct err *e)
{
    const struct agent_keyring_list *l = &r->rc.cfg->keyrings;
    const char *dir = getenv("CREDENTIALS_DIRECTORY");

    for (size_t i = 0; i < l->n; i++) {
        const struct agent_keyring *k = l->v[i];
        if (!k->active.v)
            continue;
        if (str_eq(k->type, "transit"))
            *transit = k;
        if (!str_empty(k->key_file))
            *ret = k->key_file;
        if (str_empty(k->credential))
            continue;
        if (str_empty(dir))
            return err_set(e, -ERR_INVALID,
                           "keyring \"aead\" { credential = \"%s\" }: systemd has given no "
                           "credentials: add LoadCredential=%s:/path to paddock.service",
                           k->credential, k->credential);
        *ret = mem_printf(r, "%s/%s", dir, k->credential);
    }
    return 0;
}

static int
start_server(struct roles *r, struct err *e)
{
    const struct agent_config *c = r->rc.cfg;
    const struct agent_server *s = c->server;
    struct addr a;
    size_t n;
    const char *wrapping_key = NULL;
    const struct agent_keyring *transit = NULL;
    if (find_wrapping_key(r, &wrapping_key, &transit, e) < 0)
        return e->code;
    struct server_config sc = {
        .agent = s,
        .data_dir = r->rc.policy->state_dir,
        .name = mem_printf(r, "%s.%s", r->name, r->region),
        .region = r->region,
        .datacenter = r->datacenter,
        .authoritative_region = s->authoritative_region,
        .rpc_addr = r->rpc_advertise,
        .serf_addr = r->serf_advertise,
        .serf_bind = gossip_addr(r),
        .http_addr = r->http_advertise,
        .version = NOMAD_VERSION,
        .admit = admit_job,
        .autopilot = c->autopilot,
        .acl_enabled = c->acl->enabled,
        .acl_replication_token = c->acl->replication_token,
        .acl_token_ttl_min = c->acl->token_min_expiration_ttl,
        .acl_token_ttl_max = c->acl->token_max_expiration_ttl,
        .filter = r->rpc_filter,
        .falls_back = r->rpc_plain,
        .makes_keys = true,
        .wrapping_key = wrapping_key,
        .transit = transit,
        .verify_servers =
            r->rpc_filter != NULL && !r->rpc_plain && c->tls_config->verify_server_hostname,
        .bind_node_name = c->tls_config != NULL && c->tls_config->bind_node_name,
        .expect = s->bootstrap_expect == 0 ? EXPECT_NONE : (unsigned)s->bootstrap_expect,
        .join = to_join(r, s),
        .retry_join_ms = retry_interval_ms(s),
        .retry_join_max = retry_max(s),
        .dev = c->dev_mode,
        .state_max = (uint64_t)s->state_max_mb << 20,
        .workers = s->num_schedulers.set && s->num_schedulers.v > 0 && s->num_schedulers.v < 1024
                       ? (unsigned)s->num_schedulers.v
                       : 0,
        .no_workers = s->num_schedulers.set && s->num_schedulers.v == 0,
    };

    if (s->bootstrap_expect == 0 && hide_from_strangers(r, e) < 0)
        return e->code;
    if (server_new(r->rc.loop, &sc, &r->server, e) < 0)
        return err_prefix(e, "server");
    const struct rpc_service *services = server_services(r->server, &n);
    if (addr_parse(r->rpc_bind, 0, &a, e) < 0)
        return e->code;
    r->rpc = rpc_listen(r->rc.loop, &a, services, n, r->server, e);
    if (!r->rpc)
        return err_prefix(e, "rpc");
    if (listen_to_servers(r, e) < 0)
        return e->code;
    if (server_start(r->server, e) < 0)
        return err_prefix(e, "server");
    if (c->limits && c->limits->rpc_max_conns_per_client.set &&
        c->limits->rpc_max_conns_per_client.v >= 0)
        rpc_server_limit(r->rpc, (size_t)c->limits->rpc_max_conns_per_client.v);
    r->servers = rpc_local(r->rc.loop, services, n, r->server);
    r->api_servers = rpc_local(r->rc.loop, services, n, r->server);
    return 0;
}

/* --- client --- */

static int
dial_servers(struct roles *r, struct err *e)
{
    const struct agent_client *c = r->rc.cfg->client;
    struct str_list all = {0};

    for (size_t i = 0; c && i < c->servers.n; i++)
        list_add(r, all, c->servers.v[i]);
    if (c && c->server_join) {
        for (size_t i = 0; i < c->server_join->retry_join.n; i++)
            list_add(r, all, c->server_join->retry_join.v[i]);
        for (size_t i = 0; i < c->server_join->start_join.n; i++)
            list_add(r, all, c->server_join->start_join.v[i]);
    }
    if (all.n == 0)
        return err_set(e, -ERR_INVALID, "a client without the server role needs client.servers");
    const struct dialer d = {.loop = r->rc.loop,
                             .filter = r->rpc_filter,
                             .falls_back = r->rpc_plain,
                             .name = mem_printf(r, "server.%s.nomad", r->region)};
    r->servers = rpc_dial(&d, &all, e);
    if (r->servers)
        r->api_servers = rpc_dial(&d, &all, e);
    return r->api_servers ? 0 : err_prefix(e, "client.servers");
}

/* The client knows other servers than it is configured with. */
static int
set_servers(void *arg, const struct str_list *l, struct err *e)
{
    struct roles *r = arg;
    int rc = rpc_set_servers(r->servers, l, e);
    return rc < 0 || rpc_set_servers(r->api_servers, l, e) >= 0 ? rc : e->code;
}

static void
leave_server(void *arg)
{
    struct roles *r = arg;
    rpc_leave(r->servers);
    rpc_leave(r->api_servers);
}

static struct str_list
roles_engines(struct roles *r)
{
    struct str_list l = {0};
    for (size_t i = 0; i < r->rc.policy->engines.n; i++)
        list_add(r, l, r->rc.policy->engines.v[i]->name);
    return l;
}

/* The API at the socket of a task. */
static void *
open_door(void *arg, int fd, const char *alloc_id, const char *task)
{
    const struct roles *r = arg;
    auto_mem void *tmp = mem_ctx("door");

    if (r->doors == NULL) {
        close(fd);
        return NULL;
    }
    return http_door_open(r->doors, fd, mem_printf(tmp, "%s/%s", alloc_id, task));
}

static void
close_door(void *door)
{
    http_door_close(door);
}

static int
start_client(struct roles *r, struct err *e)
{
    const struct agent_config *c = r->rc.cfg;
    const struct agent_client *k = c->client;
    const struct policy *p = r->rc.policy;
    struct client_config cc = {
        .agent = k,
        .plugins = c,
        .state_dir =
            str_empty(k->state_dir) ? mem_printf(r, "%s/client", p->state_dir) : k->state_dir,
        .alloc_dir = p->alloc_dir,
        .volumes_dir = p->host_volumes_dir,
        .hand = mem_printf(r, "unix://%s/" POLICY_HAND_SOCKET, p->run_dir),
        .engines = roles_engines(r),
        .name = r->name,
        .region = r->region,
        .datacenter = r->datacenter,
        .http_addr = r->http_advertise,
        .http_tls = c->tls_config != NULL && c->tls_config->enable_http,
        .dev = c->dev_mode,
        .stop_tasks = c->dev_mode,
        .servers = r->server ? NULL : set_servers,
        .leave = r->server ? NULL : leave_server,
        .servers_arg = r,
        .version = PACKAGE_VERSION,
        .door_open = open_door,
        .door_close = close_door,
        .door_arg = r,
    };

    const char *const bound[] = {r->http_bind, r->rpc_bind, config_serf_addr(c)};
    struct addr a;
    for (size_t i = 0; i < ARRAY_LEN(bound); i++)
        if (addr_parse(bound[i], 0, &a, NULL) == 0)
            cc.ports[i] = a.port;
    r->warden = warden_client_new(r, mem_printf(r, "%s/" POLICY_SOCKET, p->run_dir));
    r->client = client_new(r->rc.loop, &cc, r->servers, r->warden, e);
    if (!r->client || client_start(r->client, e) < 0)
        return err_prefix(e, "client");
    r->node_id = mem_strdup(r, client_node_id(r->client));
    return 0;
}

/* Client.Http: the call becomes a connection of the API. */
static void
serve_http(void *arg, struct rpc_call *call, const void *p)
{
    struct roles *r = arg;
    const struct client_http_request *req = p;
    bool named = strlen(str_or(req->peer, "")) < ADDR_TEXT;
    struct stream *st = rpc_call_stream(call, named ? req->peer : NULL);
    struct empty resp = {0};

    rpc_reply(call, &resp);
    http_server_serve(r->passed_on, st);
}

static const struct rpc_service node_services[] = {{RPC_CLIENT_HTTP, serve_http}};

/* --- HTTP --- */

static void
roles_rights_changed(void *arg)
{
    api_rights_changed(arg);
    exec_rights_changed(arg);
}

static int
start_http(struct roles *r, struct err *e)
{
    const struct agent_config *c = r->rc.cfg;
    struct http_pair *headers = mem_array(r, struct http_pair, c->httpapi_response_headers.n);
    struct addr a;

    for (size_t i = 0; i < c->httpapi_response_headers.n; i++)
        headers[i] = (struct http_pair){c->httpapi_response_headers.v[i].k,
                                        c->httpapi_response_headers.v[i].v};
    struct http_server_config hc = {
        .handler = api_handle,
        .arg = &r->api,
        .body_max = api_body_max,
        .headers = headers,
        .n_headers = c->httpapi_response_headers.n,
        .filter = r->http_filter,
    };
    if (c->limits && c->limits->http_max_conns_per_client.set)
        hc.conns_per_peer = c->limits->http_max_conns_per_client.v > 0
                                ? (size_t)c->limits->http_max_conns_per_client.v
                                : SIZE_MAX;
    hc.conns_per_loopback = hc.conns_per_peer ? hc.conns_per_peer : LISTENER_CONNS_PER_PEER;
    if (hc.conns_per_loopback != SIZE_MAX)
        hc.conns_per_loopback *= LISTENER_LOOPBACK_FACTOR;
    r->api = (struct api){
        .loop = r->rc.loop,
        .servers = r->api_servers,
        .server = r->server,
        .cfg = c,
        .region = r->region,
        .name = r->name,
        .version = PACKAGE_VERSION,
        .reload = r->rc.reload,
        .reload_forget = r->rc.reload_forget,
        .reload_arg = r->rc.reload_arg,
        .started_ns = clock_mono_ns(),
        .tls_end_s = agent_tls_end(c),
    };
    if (c->acl->enabled)
        r->api.rights =
            rights_new(r, &(struct rights_config){.loop = r->rc.loop,
                                                  .servers = r->api_servers,
                                                  .ttl_ms = c->acl->token_ttl / NS_PER_MS,
                                                  .changed = roles_rights_changed,
                                                  .arg = &r->api});
    if (c->audit != NULL && c->audit->enabled) {
        struct audit_config ac = {.block = c->audit,
                                  .dir = mem_printf(r, "%s/audit", r->rc.policy->data_dir),
                                  .journal = JOURNAL_SOCKET};
        if ((r->api.audit = audit_open(r, &ac, e)) == NULL)
            return e->code;
    }
    r->api.guard.hosts = c->httpapi_hosts;
    list_add(r, r->api.guard.own, r->name);
    list_add(r, r->api.guard.own, host_name(r));
    r->http = r->api.http = http_server_new(r->rc.loop, &hc);
    hc.handler = api_handle_passed_on;
    r->passed_on = http_server_new(r->rc.loop, &hc);
    hc.handler = api_handle_task;
    hc.conns_max = AGENT_TASK_CONNS_MAX;
    hc.conns_all = AGENT_TASKS_CONNS_MAX;
    r->doors = http_server_new(r->rc.loop, &hc);
    rpc_serve(r->servers, node_services, ARRAY_LEN(node_services), r);
    if (addr_parse(r->http_bind, 0, &a, e) < 0)
        return e->code;
    if (http_server_listen(r->http, a.host, a.port, e) < 0)
        return err_prefix(e, "http");
    return 0;
}

/* --- together --- */

static void
set_flag(void *arg)
{
    *(bool *)arg = true;
}

struct roles *
roles_start(const void *ctx, const struct roles_config *rc, struct err *e)
{
    struct roles *r = mem_new(ctx, struct roles);
    bool server = rc->cfg->server && rc->cfg->server->enabled;
    bool client = rc->cfg->client && rc->cfg->client->enabled;

    r->rc = *rc;
    set_filters(r);
    int x = set_names(r, e);
    if (x == 0)
        x = server ? start_server(r, e) : dial_servers(r, e);
    if (x == 0)
        /* before the client touches tasks: a taken port is the common mistake */
        x = start_http(r, e);
    if (x == 0 && client)
        x = start_client(r, e);
    r->api.client = r->client;
    if (x < 0) {
        bool down = false;
        roles_stop(r, set_flag, &down);
        loop_run_until(rc->loop, &down, 10000);
        return NULL;
    }
    return r;
}

/* --- drain --- */

struct drain_wait {
    struct drain_wait *next;
    void (*done)(void *arg);
    void *arg;
};

static void
drain_over(void *arg)
{
    struct roles *r = arg;

    while (r->drain_waits != NULL && !r->stopping) {
        struct drain_wait *w = r->drain_waits;
        r->drain_waits = w->next;
        w->done(w->arg);
        talloc_free(w);
    }
}

static void
on_drained(void *arg, const struct err *e)
{
    struct roles *r = arg;

    r->draining = false;
    r->drained = e == NULL;
    if (e != NULL && e->code != -ERR_CANCELED)
        log_error("agent", "this node was not drained", "error", e->text, NULL);
    drain_over(r);
}

/* A shutdown that was called off leaves a drained node that may have got work again. */
static bool
idle_since(const struct roles *r)
{
    struct client_info i;

    client_info(r->client, &i);
    return r->drained && i.allocs_running + i.allocs_pending == 0;
}

int64_t
roles_drain_ns(const struct roles *r)
{
    return config_drain_ns(r->rc.cfg);
}

void
roles_drain(struct roles *r, void (*done)(void *arg), void *arg)
{
    struct drain_wait *w = mem_new(r, struct drain_wait);
    struct drain_wait **end = &r->drain_waits;
    struct drain_spec spec;

    *w = (struct drain_wait){NULL, done, arg};
    while (*end != NULL)
        end = &(*end)->next;
    *end = w;
    if (r->draining)
        return;
    if (r->client == NULL || idle_since(r) || !config_drain(r->rc.cfg, &spec)) {
        loop_post(r->rc.loop, drain_over, r);
        return;
    }
    r->draining = true;
    client_drain(r->client, &spec, on_drained, r);
}

static void
roles_finished(void *arg)
{
    struct roles *r = arg;
    r->server = NULL;
    r->stopped(r->stopped_arg);
}

static void
stop_server(struct roles *r)
{
    rpc_server_close(TAKE(r->join));
    rpc_server_close(TAKE(r->rpc));
    rpc_client_close(TAKE(r->api_servers));
    r->api.servers = NULL; /* workers may still have requests, which go on to ask */
    rpc_client_close(TAKE(r->servers));
    if (r->server)
        server_stop(r->server, roles_finished, r);
    else
        loop_post(r->rc.loop, roles_finished, r);
}

static void
client_stopped(void *arg)
{
    struct roles *r = arg;
    client_free(TAKE(r->client));
    if (r->warden)
        warden_client_free(TAKE(r->warden));
    stop_server(r);
}

void
roles_stop(struct roles *r, void (*stopped)(void *arg), void *arg)
{
    r->stopping = true;
    r->stopped = stopped;
    r->stopped_arg = arg;
    if (r->servers)
        rpc_serve(r->servers, NULL, 0, NULL); /* what is under way ends with its connections */
    http_server_close(TAKE(r->passed_on));
    http_server_close(TAKE(r->doors));
    http_server_close(TAKE(r->http));
    rights_free(TAKE(r->api.rights));
    r->api.client = NULL; /* requests that are still open find no role */
    r->api.server = NULL;
    if (r->server)
        server_retire(r->server);
    if (r->client)
        client_stop(r->client, client_stopped, r);
    else
        stop_server(r);
}
