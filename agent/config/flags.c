/* SPDX-License-Identifier: Apache-2.0
 *
 * The option table of `paddock agent`, and flags laid over a configuration.
 */
#include "agent/config/config_int.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* Flags of Nomad that belong to what does not exist yet: named when they are given. */
static const struct {
    const char *name;
    bool boolean;
} refused[] = {
    {"dev-connect", true},          {"dev-consul", true},        {"dev-vault", true},
    {"consul-address", false},      {"consul-auth", false},      {"consul-token", false},
    {"consul-ssl", true},           {"consul-verify-ssl", true}, {"vault-enabled", true},
    {"vault-address", false},       {"vault-namespace", false},  {"client-intro-token", false},
    {"log-include-location", true},
};

enum { N_REFUSED = sizeof(refused) / sizeof(refused[0]) };

/* The place of the refused options, beside the public struct. */
struct flags_more {
    struct config_flags *f;
    bool given[N_REFUSED];
    bool b[N_REFUSED];
    const char *s[N_REFUSED];
};

static const struct opt *
flags_known(const void *ctx, struct config_flags *f, size_t more, size_t *ret_n)
{
    const struct opt rows[] = {
        {"config", OPT_LIST, &f->config, "path", "Configuration file or directory; repeatable.", 0},
        {"dev", OPT_BOOL, &f->dev, 0, "Server and client on loopback, state thrown away.", 0},
        {"server", OPT_BOOL, &f->server, 0, "Runs the server role.", 0},
        {"client", OPT_BOOL, &f->client, 0, "Runs the client role.", 0},
        {"bind", OPT_STRING, &f->bind, "address", "Address to listen on.", 0},
        {"region", OPT_STRING, &f->region, "name", "Region of the agent.", 0},
        {"dc", OPT_STRING, &f->dc, "name", "Datacenter of the agent.", 0},
        {"data-dir", OPT_STRING, &f->data_dir, "path", "Where state is kept.", 0},
        {"plugin-dir", OPT_STRING, &f->plugin_dir, "path", "Accepted; there are no plugins.", 0},
        {"node", OPT_STRING, &f->node, "name", "Name of the agent.", 0},
        {"log-level", OPT_STRING, &f->log_level, "level", "TRACE, DEBUG, INFO, WARN or ERROR.", 0},
        {"log-json", OPT_BOOL, &f->log_json, 0, "Logs as JSON.", 0},
        {"bootstrap-expect", OPT_INT, &f->bootstrap_expect, "n",
         "Servers that found the cluster: 1, 3, 5 or 7.", 0},
        {"raft-protocol", OPT_INT, &f->raft_protocol, "n", "Accepted for compatibility.", 0},
        {"rejoin", OPT_BOOL, &f->rejoin, 0, "Accepted for compatibility.", 0},
        {"encrypt", OPT_STRING, &f->encrypt, "key", "Key of gossip, in base64.", 0},
        {"join", OPT_LIST, &f->join, "address", "Server to join; repeatable.", 0},
        {"retry-join", OPT_LIST, &f->retry_join, "address", "As -join, until it works.", 0},
        {"retry-max", OPT_INT, &f->retry_max, "n", "Attempts of -retry-join.", 0},
        {"retry-interval", OPT_DURATION, &f->retry_interval_ns, "duration", "Between attempts.", 0},
        {"state-dir", OPT_STRING, &f->state_dir, "path", "State of the client.", 0},
        {"alloc-dir", OPT_STRING, &f->alloc_dir, "path", "Directories of allocations.", 0},
        {"alloc-mounts-dir", OPT_STRING, &f->alloc_mounts_dir, "path", "Accepted.", 0},
        {"host-volumes-dir", OPT_STRING, &f->host_volumes_dir, "path", "Accepted.", 0},
        {"node-class", OPT_STRING, &f->node_class, "class", "Class of the node.", 0},
        {"node-pool", OPT_STRING, &f->node_pool, "pool", "Pool of the node.", 0},
        {"servers", OPT_STRING, &f->servers, "list", "RPC addresses, separated by commas.", 0},
        {"meta", OPT_LIST, &f->meta, "key=value", "Metadata of the node; repeatable.", 0},
        {"network-interface", OPT_STRING, &f->network_interface, "name", "Interface to offer.", 0},
        {"network-speed", OPT_INT, &f->network_speed, "mbit", "Speed of that interface.", 0},
        {"acl-enabled", OPT_BOOL, &f->acl_enabled, 0, "Tokens decide who may what.", 0},
        {"acl-replication-token", OPT_STRING, &f->acl_replication_token, "token",
         "Management token of the authoritative region.", 0},
        {"preferred-address-family", OPT_STRING, &f->preferred_address_family, "family",
         "ipv4 or ipv6.", 0},
    };
    struct opt *t = mem_array(ctx, struct opt, ARRAY_LEN(rows) + more + 1);
    memcpy(t, rows, sizeof(rows));
    *ret_n = ARRAY_LEN(rows);
    return t;
}

const struct opt *
config_options(const void *ctx, struct config_flags *f)
{
    size_t n;
    struct opt *t = (struct opt *)(uintptr_t)flags_known(ctx, f, N_REFUSED, &n);
    struct flags_more *m = mem_new(ctx, struct flags_more);
    m->f = f;
    f->more = m;
    for (size_t i = 0; i < N_REFUSED; i++)
        t[n + i] = (struct opt){
            refused[i].name,
            refused[i].boolean ? OPT_BOOL : OPT_STRING,
            refused[i].boolean ? (void *)&m->b[i] : (void *)&m->s[i],
            refused[i].boolean ? NULL : "value",
            "Not supported yet: refused when given.",
            &m->given[i],
        };
    return t;
}

static void
put_str(const char **dst, const char *s)
{
    if (!str_empty(s))
        *dst = s;
}

static void
put_int(int64_t *dst, int64_t v)
{
    if (v != 0)
        *dst = v;
}

static int
put_meta(const void *ctx, struct agent_client *c, const struct opt_list *meta, struct err *e)
{
    for (size_t i = 0; i < meta->n; i++) {
        const char *eq = strchr(meta->v[i], '=');
        if (!eq || eq == meta->v[i])
            return err_set(e, -ERR_INVALID, "flag -meta \"%s\": want key=value", meta->v[i]);
        str_map_set(ctx, &c->meta, mem_strndup(ctx, meta->v[i], (size_t)(eq - meta->v[i])), eq + 1);
    }
    return 0;
}

static void
put_servers(const void *ctx, struct agent_client *c, const char *list)
{
    if (str_empty(list))
        return;
    c->servers = (struct str_list){NULL, 0};
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        if (n > 0)
            list_add(ctx, c->servers, mem_strndup(ctx, p, n));
        p += n + (p[n] == ',');
    }
}

static void
flags_append(const void *ctx, struct str_list *dst, const struct opt_list *src)
{
    for (size_t i = 0; i < src->n; i++)
        list_add(ctx, *dst, mem_strdup(ctx, src->v[i]));
}

int
config_apply_flags(const void *ctx, struct agent_config *c, const struct config_flags *f,
                   struct err *e)
{
    const struct flags_more *m = f->more;
    for (size_t i = 0; m && i < N_REFUSED; i++)
        if (m->given[i] && (!refused[i].boolean || m->b[i]))
            return err_set(e, -ERR_UNSUPPORTED, "flag -%s is not supported yet", refused[i].name);
    put_str(&c->bind_addr, f->bind);
    put_str(&c->region, f->region);
    put_str(&c->datacenter, f->dc);
    put_str(&c->data_dir, f->data_dir);
    put_str(&c->plugin_dir, f->plugin_dir);
    put_str(&c->node_name, f->node);
    put_str(&c->log_level, f->log_level);
    c->log_json = c->log_json || f->log_json;
    struct agent_server *s = c->server;
    s->enabled = s->enabled || f->server;
    put_int(&s->bootstrap_expect, f->bootstrap_expect);
    put_int(&s->raft_protocol, f->raft_protocol);
    s->rejoin_after_leave = s->rejoin_after_leave || f->rejoin;
    put_str(&s->encrypt_key, f->encrypt);
    flags_append(ctx, &s->start_join, &f->join);
    flags_append(ctx, &s->retry_join, &f->retry_join);
    put_int(&s->retry_max_attempts, f->retry_max);
    put_int(&s->retry_interval, f->retry_interval_ns);
    c->acl->enabled = c->acl->enabled || f->acl_enabled;
    put_str(&c->acl->replication_token, f->acl_replication_token);
    struct agent_client *cl = c->client;
    cl->enabled = cl->enabled || f->client;
    put_str(&cl->state_dir, f->state_dir);
    put_str(&cl->alloc_dir, f->alloc_dir);
    put_str(&cl->alloc_mounts_dir, f->alloc_mounts_dir);
    put_str(&cl->host_volumes_dir, f->host_volumes_dir);
    put_str(&cl->node_class, f->node_class);
    put_str(&cl->node_pool, f->node_pool);
    put_str(&cl->network_interface, f->network_interface);
    put_str(&cl->preferred_address_family, f->preferred_address_family);
    put_int(&cl->network_speed, f->network_speed);
    put_servers(ctx, cl, f->servers);
    return put_meta(ctx, cl, &f->meta, e);
}
