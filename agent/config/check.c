/* SPDX-License-Identifier: Apache-2.0
 *
 * What a merged configuration must satisfy before anything starts, and the addresses it yields.
 * Small checks of one value; then a function for each block, listed in checks[]; config_check()
 * goes through them for an agent that starts, config_judge() for a configuration that is looked at
 * (migrate check). At the end what others ask of a configuration that holds: the drain, the
 * addresses.
 */
#include "agent/config/config_int.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/guard.h"
#include "api/artifact/artifact.h"
#include "api/device/device.h"
#include "api/drivers.h"
#include "api/limits.h"
#include "api/pool.h"
#include "api/terms.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/netrule.h"
#include "common/num.h"
#include "common/str.h"

struct looking {
    const void *ctx;
    struct agent_config *c;
    struct str_list *warnings;
    struct err *e;
    struct str_list *errors; /* all but one are added; NULL: one is enough */
};

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

/* An IP address; names are not looked up. */
static int
check_address(const char *key, const char *addr, struct err *e)
{
    unsigned char raw[16];
    if (str_empty(addr))
        return 0;
    if (inet_pton(AF_INET, addr, raw) == 1 || inet_pton(AF_INET6, addr, raw) == 1)
        return 0;
    return err_set(e, -ERR_INVALID, "%s \"%s\" is not an IP address", key, addr);
}

/* "ip" or "ip:port", "[v6]:port": what others are told. */
static int
check_advertise(const char *key, const char *addr, struct err *e)
{
    char ip[64];
    unsigned char raw[16];
    int64_t port = 1;
    if (str_empty(addr) || inet_pton(AF_INET6, addr, raw) == 1)
        return 0;
    const char *from = addr[0] == '[' ? addr + 1 : addr;
    const char *end = addr[0] == '[' ? strchr(from, ']') : from + strcspn(from, ":");
    size_t n = end ? (size_t)(end - from) : sizeof(ip);
    if (n >= sizeof(ip))
        return err_set(e, -ERR_INVALID, "%s \"%s\" is not an address", key, addr);
    memcpy(ip, from, n);
    ip[n] = '\0';
    const char *rest = end + (addr[0] == '[');
    bool ok = inet_pton(addr[0] == '[' ? AF_INET6 : AF_INET, ip, raw) == 1;
    if (ok && *rest)
        ok = *rest == ':' && num_parse_i64(rest + 1, &port) == 0 && port >= 1 && port <= 65535;
    return ok ? 0
              : err_set(e, -ERR_INVALID, "%s \"%s\" is not an IP address with or without a port",
                        key, addr);
}

static int
check_hosts(struct looking *k)
{
    const struct str_list *hosts = &k->c->httpapi_hosts;
    for (size_t i = 0; i < hosts->n; i++)
        if (!guard_name_ok(hosts->v[i]))
            return err_set(
                k->e, -ERR_INVALID,
                "http_api_hosts: \"%s\" is not a host name such as \"nomad.example.com\" or "
                "\"*.example.com\", without a port",
                hosts->v[i]);
    return 0;
}

static int
expand_addresses(const void *ctx, struct agent_config *c, struct err *e)
{
    struct agent_addresses *a = c->addresses, *adv = c->advertise_addrs;
    int r = config_expand_addr(ctx, "bind_addr", &c->bind_addr, e);
    r = r ? r : config_expand_addr(ctx, "addresses.http", &a->http, e);
    r = r ? r : config_expand_addr(ctx, "addresses.rpc", &a->rpc, e);
    r = r ? r : config_expand_addr(ctx, "addresses.serf", &a->serf, e);
    r = r ? r : config_expand_addr(ctx, "advertise.http", &adv->http, e);
    r = r ? r : config_expand_addr(ctx, "advertise.rpc", &adv->rpc, e);
    return r ? r : config_expand_addr(ctx, "advertise.serf", &adv->serf, e);
}

static int
check_addresses(struct looking *k)
{
    const struct agent_config *c = k->c;
    const struct agent_addresses *a = c->addresses;
    struct err *e = k->e;
    int r = check_address("bind_addr", c->bind_addr, e);
    r = r ? r : check_address("addresses.http", a->http, e);
    r = r ? r : check_address("addresses.rpc", a->rpc, e);
    const struct agent_addresses *adv = c->advertise_addrs;
    r = r ? r : check_advertise("advertise.http", adv->http, e);
    r = r ? r : check_advertise("advertise.rpc", adv->rpc, e);
    r = r ? r : check_advertise("advertise.serf", adv->serf, e);
    r = r ? r : check_port("ports.http", c->ports->http, e);
    r = r ? r : check_port("ports.rpc", c->ports->rpc, e);
    return r ? r : check_port("ports.serf", c->ports->serf, e);
}

/* "22,80,8500-8600" */
static int
check_port_ranges(const char *key, const char *spec, struct err *e)
{
    while (!str_empty(spec)) {
        char one[24];
        int64_t lo, hi;
        size_t n = strcspn(spec, ",");
        if (n >= sizeof(one))
            break;
        memcpy(one, spec, n);
        one[n] = '\0';
        char *dash = strchr(one, '-');
        if (dash)
            *dash++ = '\0';
        if (num_parse_i64(one, &lo) < 0 || num_parse_i64(dash ? dash : one, &hi) < 0 || lo < 1 ||
            hi > 65535 || lo > hi)
            break;
        spec += n + (spec[n] == ',');
    }
    return str_empty(spec) ? 0
                           : err_set(e, -ERR_INVALID,
                                     "%s: \"%s\" is not a list of ports such as "
                                     "\"22,80,8500-8600\"",
                                     key, spec);
}

static int
check_reserved(const struct agent_reserved *r, struct err *e)
{
    if (!r)
        return 0;
    if (r->cpu < 0 || r->memory_mb < 0 || r->disk_mb < 0)
        return err_set(e, -ERR_INVALID,
                       "client.reserved: cpu, memory and disk may not be negative");
    return check_port_ranges("client.reserved.reserved_ports", r->reserved_ports, e);
}

/* The server that seals the key that wraps the others. */
static int
check_transit(const struct agent_keyring *r, struct err *e)
{
    bool url = str_prefix(str_or(r->address, ""), "https://") ||
               str_prefix(str_or(r->address, ""), "http://");

    if (!url || strchr(strstr(r->address, "://") + 3, '/') != NULL)
        return err_set(e, -ERR_INVALID,
                       "keyring \"transit\": address \"%.200s\" must be https://host:port or "
                       "http://host:port",
                       str_or(r->address, ""));
    if (str_empty(r->key_name))
        return err_set(e, -ERR_INVALID, "keyring \"transit\" needs the name of a key: key_name");
    if (str_empty(r->token) && str_empty(getenv("VAULT_TOKEN")))
        return err_set(e, -ERR_INVALID,
                       "keyring \"transit\" needs a token: token, or VAULT_TOKEN in the agent's "
                       "environment");
    if (!str_empty(r->key_file) || !str_empty(r->credential))
        return err_set(e, -ERR_INVALID,
                       "keyring \"transit\": key_file and credential are of keyring \"aead\"");
    if (!str_empty(r->tls_ca_cert) && r->tls_ca_cert[0] != '/')
        return err_set(e, -ERR_INVALID,
                       "keyring \"transit\": tls_ca_cert \"%.200s\" must be an absolute path",
                       r->tls_ca_cert);
    return 0;
}

/* The key that wraps the others comes from one place. */
static int
check_keyrings(struct looking *k)
{
    const struct agent_keyring_list *l = &k->c->keyrings;
    size_t active = 0;

    for (size_t i = 0; i < l->n; i++) {
        const struct agent_keyring *r = l->v[i];
        bool file = !str_empty(r->key_file), credential = !str_empty(r->credential);
        bool transit = str_eq(r->type, "transit");
        if (!transit && !str_eq(r->type, "aead"))
            return err_set(
                k->e, -ERR_INVALID,
                "keyring \"%.40s\" is not in this release: keyring \"aead\" { key_file "
                "} or { credential } keeps the wrapping key apart from the data, keyring "
                "\"transit\" sealed by another server",
                str_or(r->type, ""));
        if (transit && check_transit(r, k->e) < 0)
            return k->e->code;
        if (file && credential)
            return err_set(
                k->e, -ERR_INVALID,
                "keyring \"aead\": key_file and credential are two places: take one out");
        if (file && r->key_file[0] != '/')
            return err_set(k->e, -ERR_INVALID,
                           "keyring \"aead\": key_file \"%.200s\" must be an absolute path",
                           r->key_file);
        if (credential && strchr(r->credential, '/') != NULL)
            return err_set(k->e, -ERR_INVALID,
                           "keyring \"aead\": credential \"%.100s\" is the name of a credential, "
                           "without a slash",
                           r->credential);
        active += r->active.v ? 1 : 0;
    }
    if (active > 1 || (l->n > 0 && active == 0))
        return err_set(k->e, -ERR_INVALID, "of the keyring blocks one is active");
    return 0;
}

static int
check_plugins(struct looking *k)
{
    const struct agent_config *c = k->c;
    struct str_list errors = {0};
    for (size_t i = 0; i < c->plugins.n; i++)
        config_plugin(k->ctx, c->plugins.v[i], &errors);
    for (size_t i = 0; k->errors && i + 1 < errors.n; i++) /* the last one is the caller's */
        list_add(k->ctx, *k->errors, errors.v[i]);
    return errors.n == 0
               ? 0
               : err_set(k->e, -ERR_UNSUPPORTED, "%s", errors.v[k->errors ? errors.n - 1 : 0]);
}

/* Nomad's names of the parts of the fingerprint that are here; what others find is not looked
 * for. */
static const char *const detected[] = {"arch",  "bridge",   "cgroup", "cpu",
                                       "host",  "landlock", "memory", "network",
                                       "nomad", "signal",   "storage"};

static bool
in_list(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *s = list; *s; s += *s == ',') {
        s += strspn(s, " ");
        size_t len = strcspn(s, ", ");
        if (len == n && strncmp(s, name, n) == 0)
            return true;
        s += strcspn(s, ",");
    }
    return false;
}

/* A list of parts of the fingerprint holds when none that is here should be left out. */
static int
check_fingerprints(const char *key, const char *list, bool deny, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(detected); i++)
        if (in_list(list, detected[i]) == deny)
            return err_set(e, -ERR_UNSUPPORTED,
                           "client.options: \"%s\": \"%s\" is always detected: %s it", key,
                           detected[i], deny ? "do not deny" : "name");
    return 0;
}

/* Options that work, or deny what is not here; Nomad reads more of them, some of which promise to
 * keep somebody out. */
static int
check_option(const char *k, const char *v, struct err *e)
{
    static const char *const known[] = {
        "driver.allowlist",     "driver.whitelist",       "driver.denylist",
        "driver.blacklist",     "driver.raw_exec.enable", "env.denylist",
        "env.blacklist",        "fingerprint.allowlist",  "fingerprint.whitelist",
        "fingerprint.denylist", "fingerprint.blacklist"};
    bool on;
    if (str_eq(k, "docker.privileged.enabled") && num_parse_bool(v, &on) == 0 && !on)
        return 0;
    if (str_eq(k, "test.tighten_network_timeouts"))
        return 0; /* of questions to clouds, and none is asked */
    for (size_t n = 0; n < ARRAY_LEN(known); n++)
        if (str_eq(k, known[n]))
            return str_prefix(k, "fingerprint.")
                       ? check_fingerprints(k, v, strstr(k, "deny") || strstr(k, "black"), e)
                       : 0;
    const char *near = str_nearest(k, known, ARRAY_LEN(known));
    return err_set(e, -ERR_UNSUPPORTED,
                   "client.options: \"%s\" is unknown or not supported yet: %s%s%s", k,
                   near                     ? "did you mean \""
                   : str_prefix(k, "user.") ? "set isolation.denied_users"
                                            : "remove it",
                   near ? near : "", near ? "\"?" : "");
}

static int
check_options(const struct str_map *options, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < options->n && r == 0; i++)
        r = check_option(options->v[i].k, str_or(options->v[i].v, ""), e);
    return r;
}

static int
check_artifact_policy(const struct artifact_policy *p, struct err *e)
{
    static const char *const schemes[] = {"http", "https", "ssh", "git", "hg", "s3", "gcs", NULL};
    const struct {
        const char *name;
        const struct str_list *rules;
    } lists[] = {{"allow", &p->allow}, {"deny", &p->deny}};
    struct netrule rule;
    for (size_t i = 0; i < p->schemes.n; i++)
        if (!str_is_one(p->schemes.v[i], schemes))
            return err_set(e, -ERR_INVALID,
                           "client.artifact.policy.schemes: \"%.32s\" is none of http, https, ssh, "
                           "git, hg, s3, gcs",
                           p->schemes.v[i]);
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (size_t k = 0; k < lists[i].rules->n; k++)
            if (netrule_parse(lists[i].rules->v[k], &rule, e) < 0)
                return err_prefix(e, "client.artifact.policy.%s", lists[i].name);
    if (!str_empty(p->proxy) && !str_prefix(p->proxy, "http://"))
        return err_set(e, -ERR_INVALID,
                       "client.artifact.policy.proxy is not http://[user:password@]host:port");
    return 0;
}

static int
check_artifact(const struct agent_artifact *a, struct err *e)
{
    int64_t v;
    const struct {
        const char *name;
        int64_t v;
    } times[] = {{"http_read_timeout", a->http_read_timeout},
                 {"git_timeout", a->git_timeout},
                 {"hg_timeout", a->hg_timeout},
                 {"s3_timeout", a->s3_timeout},
                 {"gcs_timeout", a->gcs_timeout}};
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        if (times[i].v < 0)
            return err_set(e, -ERR_INVALID, "client.artifact.%s is negative", times[i].name);
    if (!str_empty(a->http_max_size) && artifact_size(a->http_max_size, &v, e) < 0)
        return err_prefix(e, "client.artifact.http_max_size");
    if (!str_empty(a->decompression_size_limit) &&
        artifact_size(a->decompression_size_limit, &v, e) < 0)
        return err_prefix(e, "client.artifact.decompression_size_limit");
    if (!str_empty(a->cache_size) && artifact_size(a->cache_size, &v, e) < 0)
        return err_prefix(e, "client.artifact.cache_size");
    return a->policy != NULL ? check_artifact_policy(a->policy, e) : 0;
}

static int
check_wait(const char *what, const struct wait_config *w, struct err *e)
{
    if (w == NULL || (w->min.v >= 0 && (!w->max.set || w->min.v <= w->max.v)))
        return 0;
    return err_set(e, -ERR_INVALID, "client.template.%s needs a max that is not less than its min",
                   what);
}

/* Refuses what would let templates read and write elsewhere. */
static int
check_template(const struct agent_template *t, struct err *e)
{
    if (t->disable_file_sandbox)
        return err_set(e, -ERR_UNSUPPORTED,
                       "client.template.disable_file_sandbox: templates read and write below the "
                       "directory of their allocation alone: remove it, and mount what a task "
                       "needs of the host");
    int r = check_wait("wait", t->wait, e);
    return r < 0 ? r : check_wait("wait_bounds", t->wait_bounds, e);
}

static int
check_volumes(const struct agent_host_volume_list *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *name = str_or(l->v[i]->name, ""), *path = str_or(l->v[i]->path, "");
        if (*name == '\0' || strlen(name) > HOST_VOLUME_NAME_MAX)
            return err_set(e, -ERR_INVALID,
                           "client.host_volume: a name has 1 to %d characters, \"%.32s\" has not",
                           HOST_VOLUME_NAME_MAX, name);
        if (path[0] != '/' || path[1] == '\0')
            return err_set(e, -ERR_INVALID,
                           "client.host_volume \"%s\": path \"%.200s\" is no absolute path of a "
                           "directory below \"/\"",
                           name, path);
        for (size_t k = 0; k < i; k++)
            if (str_eq(l->v[k]->name, name))
                return err_set(e, -ERR_INVALID, "client.host_volume \"%s\" is there twice", name);
    }
    return 0;
}

static int
check_devices(const struct agent_device_list *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        if (device_check(l->v[i], e) < 0)
            return e->code;
        for (size_t k = 0; k < i; k++)
            if (str_eq(l->v[k]->name, l->v[i]->name))
                return err_set(e, -ERR_INVALID, "client.device \"%s\" is there twice",
                               l->v[i]->name);
    }
    return 0;
}

static int
check_client(struct looking *k)
{
    const struct agent_client *c = k->c->client;
    struct err *e = k->e;
    int r = check_dir("client.state_dir", c->state_dir, e);
    r = r ? r : check_reserved(c->reserved, e);
    r = r ? r : check_options(&c->options, e);
    r = r ? r : check_dir("client.alloc_dir", c->alloc_dir, e);
    r = r ? r : check_volumes(&c->host_volumes, e);
    r = r ? r : check_devices(&c->devices, e);
    r = r ? r : check_port("client.min_dynamic_port", c->min_dynamic_port, e);
    r = r ? r : check_port("client.max_dynamic_port", c->max_dynamic_port, e);
    if (r < 0)
        return r;
    if (c->min_dynamic_port > c->max_dynamic_port)
        return err_set(e, -ERR_INVALID, "client.min_dynamic_port is larger than max_dynamic_port");
    if (c->server_join && c->server_join->retry_max_attempts < 0)
        return err_set(e, -ERR_INVALID, "client.server_join.retry_max is negative: 0 is no end");
    if (c->server_join && c->server_join->retry_interval < 0)
        return err_set(e, -ERR_INVALID, "client.server_join.retry_interval is negative");
    if (str_eq(c->node_pool, POOL_ALL))
        return err_set(e, -ERR_INVALID, "client.node_pool may not be \"all\": it means every pool");
    if (!str_empty(c->node_pool) && pool_check_name(c->node_pool, e) < 0)
        return err_prefix(e, "client.node_pool");
    if (c->drain && c->drain->force && c->drain->deadline.set)
        return err_set(e, -ERR_INVALID,
                       "client.drain_on_shutdown: force and deadline exclude each other");
    if (c->drain && c->drain->deadline.set && c->drain->deadline.v < 0)
        return err_set(e, -ERR_INVALID, "client.drain_on_shutdown.deadline is negative");
    r = c->artifact ? check_artifact(c->artifact, e) : 0;
    r = r == 0 && c->template_config ? check_template(c->template_config, e) : r;
    if (r < 0)
        return r;
    for (size_t i = 0; i < c->meta.n; i++)
        if (str_empty(c->meta.v[i].k) || strpbrk(c->meta.v[i].k, " {}$\"\n"))
            return err_set(e, -ERR_INVALID,
                           "client.meta key \"%s\" cannot be used in \"${meta.…}\"",
                           c->meta.v[i].k);
    return 0;
}

enum { BOOTSTRAP_EXPECT_MAX = 7 };
enum { STATE_MAX_MB_LEAST = 64, STATE_MAX_MB_MOST = 4 << 20 };

static size_t
check_joins(const struct agent_server *s)
{
    return s->start_join.n + s->retry_join.n + s->server_join->start_join.n +
           s->server_join->retry_join.n;
}

bool
config_is_loopback(const char *addr)
{
    return str_prefix(addr, "127.") || str_prefix(addr, "[::1]") || str_eq(addr, "::1");
}

bool
config_rpc_guarded(const struct agent_config *c)
{
    const struct agent_tls *t = c->tls_config;

    return c->server->plain_rpc ||
           (t && t->enable_rpc && !t->rpc_upgrade_mode && !str_empty(c->server->encrypt_key));
}

int
config_refuse_plain(const struct agent_config *c, struct err *e)
{
    const struct agent_tls *t = c->tls_config;

    if (t && t->enable_rpc && t->rpc_upgrade_mode)
        return err_set(e, -ERR_INVALID,
                       "tls { rpc_upgrade_mode = true } takes plain connections as well: on a "
                       "network that you trust so long, set server { plain_rpc = true }");
    if (t && t->enable_rpc)
        return err_set(e, -ERR_INVALID,
                       "gossip over UDP is not covered by TLS: give all servers the same key, "
                       "server { encrypt = \"...\" } (paddock operator gossip keyring generate)");
    return err_set(
        e, -ERR_INVALID,
        "several servers speak to each other in plain text: whoever is on their network could "
        "read and change the state. Set tls { rpc = true } with certificates (paddock tls) and "
        "server { encrypt = \"...\" }, or bind them to addresses of 127.0.0.0/8, or, on a network "
        "that you trust, set server { plain_rpc = true }");
}

/* Several servers. */
static int
check_cluster(const struct agent_config *c, struct err *e)
{
    const struct agent_server *s = c->server;
    const char *bound = config_rpc_addr(c), *told = c->advertise_addrs->rpc;

    if (s->bootstrap_expect == 0)
        return 0; /* it may be joined by others, and is heard as one alone is */
    if (s->bootstrap_expect % 2 == 0 || s->bootstrap_expect > BOOTSTRAP_EXPECT_MAX)
        return err_set(e, -ERR_INVALID,
                       "server.bootstrap_expect = %" PRId64
                       ": use 1, 3, 5 or 7; an even number of servers "
                       "survives no more failures than one less",
                       s->bootstrap_expect);
    if (check_joins(s) == 0)
        return err_set(e, -ERR_INVALID,
                       "server.bootstrap_expect = %" PRId64
                       " needs addresses of the other servers: set "
                       "server.server_join.retry_join",
                       s->bootstrap_expect);
    if (config_rpc_guarded(c) ||
        (config_is_loopback(bound) && (str_empty(told) || config_is_loopback(told))))
        return 0;
    return config_refuse_plain(c, e);
}

static int
check_introduction(const struct agent_introduction *c, struct err *e)
{
    if (c == NULL)
        return 0;
    if (!STR_ONE_OF(c->enforcement, "none", "warn", "strict"))
        return err_set(e, -ERR_INVALID,
                       "server.client_introduction: enforcement \"%s\" is not none, warn or strict",
                       c->enforcement);
    if (c->default_identity_ttl < NS_PER_S || c->max_identity_ttl < c->default_identity_ttl)
        return err_set(e, -ERR_INVALID,
                       "server.client_introduction: default_identity_ttl is a second or more, and "
                       "max_identity_ttl no less");
    return 0;
}

static int
check_server(struct looking *k)
{
    const struct agent_server *s = k->c->server;
    struct err *e = k->e;
    if (!s->enabled)
        return s->bootstrap_expect > 0 && !k->c->dev_mode
                   ? err_set(e, -ERR_INVALID,
                             "server.bootstrap_expect is set, but server.enabled is not")
                   : 0;
    if (s->bootstrap_expect < 0)
        return err_set(e, -ERR_INVALID, "server.bootstrap_expect must be 0, 1, 3, 5 or 7");
    if (s->retry_max_attempts < 0 || s->server_join->retry_max_attempts < 0)
        return err_set(e, -ERR_INVALID, "server.server_join.retry_max is negative: 0 is no end");
    if (check_introduction(s->client_introduction, e) < 0 || config_jobs_check(s, e) < 0)
        return e->code;
    if (s->bootstrap_expect == 1 && s->non_voting_server)
        return err_set(
            e, -ERR_INVALID,
            "server.non_voting_server: a server alone has the only vote; set bootstrap_expect as "
            "the servers that vote have it, and their addresses in server_join.retry_join");
    if (s->bootstrap_expect != 1 && check_cluster(k->c, e) < 0)
        return e->code;
    if (s->state_max_mb != 0 &&
        (s->state_max_mb < STATE_MAX_MB_LEAST || s->state_max_mb > STATE_MAX_MB_MOST))
        return err_set(e, -ERR_INVALID, "server.state_max_mb = %" PRId64 " is outside %d..%d",
                       s->state_max_mb, STATE_MAX_MB_LEAST, STATE_MAX_MB_MOST);
    if (s->bootstrap_expect == 1 && check_joins(s) > 0 && !config_rpc_guarded(k->c) &&
        !config_is_loopback(config_serf_addr(k->c)))
        list_add(
            k->ctx, *k->warnings,
            "server: addresses to join have no effect: servers speak to each other in plain text, "
            "and are not to be heard by others without tls { rpc = true } and server.encrypt, or "
            "plain_rpc");
    return 0;
}

static int
check_tls(struct looking *k)
{
    return config_tls_check(k->c, k->warnings, k->e);
}

static int
check_audit(struct looking *k)
{
    return config_audit_check(k->c->audit, k->e);
}

static int
check_ui(struct looking *k)
{
    return config_ui_check(k->c->ui, k->e);
}

/* Checks the options of the machine itself, and those without effect. */
static int
check_rest(struct looking *k)
{
    struct agent_config *c = k->c;
    if (c->log_rotate_bytes < 0 || c->log_rotate_duration < 0)
        return err_set(k->e, -ERR_INVALID,
                       "log_rotate_bytes and log_rotate_duration must not be negative");
    if (log_level_parse(c->log_level) == LOG_LEVEL_INVALID)
        return err_set(k->e, -ERR_INVALID,
                       "log_level \"%s\" is not TRACE, DEBUG, INFO, WARN, ERROR or OFF",
                       c->log_level);
    if (strchr(c->datacenter, '*'))
        return err_set(k->e, -ERR_INVALID, "datacenter \"%s\" may not hold '*'", c->datacenter);
    int r = check_dir("data_dir", c->data_dir, k->e);
    return r ? r : check_dir("isolation.run_dir", c->isolation->run_dir, k->e);
}

/* The checks of single options, wherever the rest of the configuration stands. */
static int (*const checks[])(struct looking *k) = {
    check_rest,   check_addresses, check_hosts,  check_plugins, check_keyrings,
    check_client, check_tls,       check_server, check_audit,   check_ui};

/* Checks that options which must be there are said in one of the files. */
static int
check_whole(struct looking *k)
{
    struct agent_config *c = k->c;
    if (str_empty(c->node_name)) {
        char host[256] = "";
        if (gethostname(host, sizeof(host) - 1) < 0 || !host[0])
            return err_set(k->e, -ERR_INVALID, "this machine has no host name: set name");
        c->node_name = mem_strdup(k->ctx, host);
    }
    if (!c->server->enabled && !c->client->enabled)
        return err_set(k->e, -ERR_INVALID,
                       "neither server nor client is enabled: set server { enabled "
                       "= true }, client { enabled = true }, or use -dev");
    return 0;
}

int
config_check(const void *ctx, struct agent_config *c, struct str_list *warnings, struct err *e)
{
    struct looking k = {ctx, c, warnings, e, NULL};
    int r = check_whole(&k);
    r = r ? r : expand_addresses(ctx, c, e);
    for (size_t i = 0; i < ARRAY_LEN(checks) && r == 0; i++)
        r = checks[i](&k);
    if (r == 0 && str_empty(c->data_dir) && !c->dev_mode)
        r = err_set(e, -ERR_INVALID, "data_dir is missing: set it, or use -dev");
    if (c->enable_debug && !c->dev_mode)
        list_add(ctx, *warnings,
                 "enable_debug has no effect yet: there are no profiling endpoints");
    if (r == 0 && c->client->enabled && !c->server->enabled && c->client->servers.n == 0 &&
        c->client->server_join->retry_join.n == 0)
        list_add(ctx, *warnings, "client: no servers are configured: set client.servers");
    return r;
}

/* An address template is of the machine that reads it: only its form can be looked at elsewhere. */
static void
judge_templates(const void *ctx, struct agent_config *c, struct str_list *errors)
{
    const char **all[] = {&c->bind_addr,
                          &c->addresses->http,
                          &c->addresses->rpc,
                          &c->addresses->serf,
                          &c->advertise_addrs->http,
                          &c->advertise_addrs->rpc,
                          &c->advertise_addrs->serf};
    static const char *const keys[] = {"bind_addr",      "addresses.http", "addresses.rpc",
                                       "addresses.serf", "advertise.http", "advertise.rpc",
                                       "advertise.serf"};
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        struct err e = ERR_INIT;
        int r = config_expand_addr(ctx, keys[i], all[i], &e);
        if (r < 0 && r != -ERR_NOT_FOUND)
            list_add(ctx, *errors, mem_strdup(ctx, e.text));
        if (r < 0)
            *all[i] = NULL;
    }
}

void
config_judge(const void *ctx, struct agent_config *c, struct str_list *errors,
             struct str_list *warnings)
{
    config_blocks(ctx, c);
    codec_defaults(ctx, &type_agent_config, c);
    c->server->enabled |= c->server->bootstrap_expect > 0;
    if (c->server->bootstrap_expect == 0)
        c->server->bootstrap_expect = c->server->enabled;
    judge_templates(ctx, c, errors);
    for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
        struct err e = ERR_INIT;
        if (checks[i](&(struct looking){ctx, c, warnings, &e, errors}) < 0)
            list_add(ctx, *errors, mem_strdup(ctx, e.text));
    }
}

#define DRAIN_REPORTS (15 * NS_PER_S) /* what comes after the last task's end */

bool
config_drain(const struct agent_config *c, struct drain_spec *ret)
{
    const struct agent_drain_on_shutdown *d = c->client ? c->client->drain : NULL;

    if (!d || !c->client->enabled || c->dev_mode)
        return false;
    int64_t deadline = d->deadline.set ? d->deadline.v : DRAIN_DEADLINE_NS;
    *ret = (struct drain_spec){.deadline = d->force ? -1 : deadline,
                               .ignore_system_jobs = d->ignore_system_jobs};
    return true;
}

int64_t
config_drain_ns(const struct agent_config *c)
{
    struct drain_spec d;

    if (!config_drain(c, &d))
        return 0;
    int64_t more = c->client->max_kill_timeout + DRAIN_REPORTS;
    if (d.deadline == 0 || d.deadline > INT64_MAX - more)
        return INT64_MAX;
    return more + (d.deadline > 0 ? d.deadline : 0);
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

const char *
config_serf_addr(const struct agent_config *c)
{
    return host_port(c, str_or(c->addresses->serf, c->bind_addr), c->ports->serf);
}
