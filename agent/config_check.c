/* SPDX-License-Identifier: Apache-2.0
 *
 * What a merged configuration must satisfy before anything starts, and the addresses it yields.
 */
#include "agent/config_int.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/str.h"

static int
check_dir(const char *key, const char *path, struct err *e)
{
    if (str_empty(path) || path[0] == '/')
        return 0;
    return err_set(e, -ERR_INVALID, "%s \"%s\" is not an absolute path", key, path);
}

static int
check_port(const char *key, int64_t port, struct err *e)
{
    if (port >= 1 && port <= 65535)
        return 0;
    return err_set(e, -ERR_INVALID, "%s = %" PRId64 " is not a port: 1 to 65535", key, port);
}

/* An IP address; names and templates are not looked up at start. */
static int
check_address(const char *key, const char *addr, struct err *e)
{
    unsigned char raw[16];
    if (str_empty(addr))
        return 0;
    if (strstr(addr, "{{"))
        return err_set(e, -ERR_UNSUPPORTED, "%s \"%s\": address templates are not supported yet: "
                       "write the address", key, addr);
    if (inet_pton(AF_INET, addr, raw) == 1 || inet_pton(AF_INET6, addr, raw) == 1)
        return 0;
    return err_set(e, -ERR_INVALID, "%s \"%s\" is not an IP address", key, addr);
}

static int
check_addresses(const struct agent_config *c, struct err *e)
{
    const struct agent_addresses *a = c->addresses;
    int r = check_address("bind_addr", c->bind_addr, e);
    r = r ? r : check_address("addresses.http", a->http, e);
    r = r ? r : check_address("addresses.rpc", a->rpc, e);
    r = r ? r : check_port("ports.http", c->ports->http, e);
    r = r ? r : check_port("ports.rpc", c->ports->rpc, e);
    return r ? r : check_port("ports.serf", c->ports->serf, e);
}

static int
check_client(const struct agent_client *c, struct err *e)
{
    int r = check_dir("client.state_dir", c->state_dir, e);
    r = r ? r : check_dir("client.alloc_dir", c->alloc_dir, e);
    r = r ? r : check_port("client.min_dynamic_port", c->min_dynamic_port, e);
    r = r ? r : check_port("client.max_dynamic_port", c->max_dynamic_port, e);
    if (r < 0)
        return r;
    if (c->min_dynamic_port > c->max_dynamic_port)
        return err_set(e, -ERR_INVALID, "client.min_dynamic_port is larger than max_dynamic_port");
    if (str_eq(c->node_pool, "all"))
        return err_set(e, -ERR_INVALID, "client.node_pool may not be \"all\": it means every pool");
    for (size_t i = 0; i < c->meta.n; i++)
        if (str_empty(c->meta.v[i].k) || strpbrk(c->meta.v[i].k, " {}$\"\n"))
            return err_set(e, -ERR_INVALID, "client.meta key \"%s\" cannot be used in \"${meta.…}\"",
                           c->meta.v[i].k);
    return 0;
}

static int
check_server(const struct agent_config *c, struct str_list *warnings, const void *ctx, struct err *e)
{
    const struct agent_server *s = c->server;
    if (!s->enabled)
        return s->bootstrap_expect > 0 && !c->dev_mode
                   ? err_set(e, -ERR_INVALID,
                             "server.bootstrap_expect is set, but server.enabled is not")
                   : 0;
    if (s->bootstrap_expect > 1)
        return err_set(e, -ERR_UNSUPPORTED,
                       "server.bootstrap_expect = %" PRId64 ": several servers are not supported "
                       "yet: use 1", s->bootstrap_expect);
    if (s->bootstrap_expect < 1)
        return err_set(e, -ERR_INVALID, "server.bootstrap_expect must be 1");
    if (s->start_join.n + s->retry_join.n + s->server_join->start_join.n +
            s->server_join->retry_join.n > 0)
        list_add(ctx, *warnings,
                 "server: addresses to join have no effect yet: there is one server");
    return 0;
}

int
config_check(const void *ctx, struct agent_config *c, struct str_list *warnings, struct err *e)
{
    if (str_empty(c->node_name)) {
        char host[256] = "";
        if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
            return err_set(e, -ERR_INVALID, "this machine has no host name: set name");
        c->node_name = mem_strdup(ctx, host);
    }
    if (!c->server->enabled && !c->client->enabled)
        return err_set(e, -ERR_INVALID, "neither server nor client is enabled: set server { enabled "
                                        "= true }, client { enabled = true }, or use -dev");
    if (log_level_parse(c->log_level) == LOG_LEVEL_INVALID)
        return err_set(e, -ERR_INVALID,
                       "log_level \"%s\" is not TRACE, DEBUG, INFO, WARN, ERROR or OFF",
                       c->log_level);
    if (strchr(c->datacenter, '*'))
        return err_set(e, -ERR_INVALID, "datacenter \"%s\" may not hold '*'", c->datacenter);
    if (str_empty(c->data_dir) && !c->dev_mode)
        return err_set(e, -ERR_INVALID, "data_dir is missing: set it, or use -dev");
    int r = check_dir("data_dir", c->data_dir, e);
    r = r ? r : check_dir("isolation.run_dir", c->isolation->run_dir, e);
    r = r ? r : check_addresses(c, e);
    r = r ? r : check_client(c->client, e);
    r = r ? r : check_server(c, warnings, ctx, e);
    if (r == 0 && c->client->enabled && !c->server->enabled && c->client->servers.n == 0 &&
        c->client->server_join->retry_join.n == 0)
        list_add(ctx, *warnings, "client: no servers are configured: set client.servers");
    return r;
}

/* The configuration owns the text: it is asked for once or twice. */
static const char *
host_port(const struct agent_config *c, const char *addr, int64_t port)
{
    bool six = strchr(addr, ':') != NULL;
    return mem_printf(c, "%s%s%s:%" PRId64, six ? "[" : "", addr, six ? "]" : "", port);
}

const char *
config_http_addr(const struct agent_config *c)
{
    return host_port(c, str_or(c->addresses->http, c->bind_addr), c->ports->http);
}

const char *
config_rpc_addr(const struct agent_config *c)
{
    return host_port(c, str_or(c->addresses->rpc, c->bind_addr), c->ports->rpc);
}
