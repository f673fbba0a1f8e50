/* SPDX-License-Identifier: Apache-2.0
 *
 * Reloading: see reload.h. First come functions that change a part of the configuration in force,
 * and functions that refuse; then their table, `reloadables`; then reload_now(), which compares and
 * goes through the table; at the end those who asked for a reload and wait.
 */
#include "agent/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "agent/limits.h"
#include "agent/roles.h"
#include "agent/tls.h"
#include "api/drivers.h"
#include "client/client.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"
#include "server/server.h"

struct reload_wait {
    struct reload_wait *next;
    reload_done *done;
    void *arg;
};

enum { RELOADABLES = 8 };

struct reload {
    struct reload_host host;
    struct reload_wait *waits;
    struct timer *timer;     /* of those who wait: until the bell is rung again */
    int64_t until_ns;        /* they are told that nobody came */
    void *kept[RELOADABLES]; /* what a reload put into cfg, until the next one does */
};

/* --- what can be changed --- */

static void
apply_log_level(struct reload *r, void *ctx, const struct agent_config *now)
{
    log_set_level(log_level_parse(now->log_level));
    r->host.cfg->log_level = mem_strdup(ctx, now->log_level);
}

static void
apply_telemetry(struct reload *r, void *ctx, const struct agent_config *now)
{
    r->host.cfg->telemetry = codec_clone(ctx, &type_agent_telemetry, now->telemetry);
}

static void
apply_client(struct reload *r, void *ctx, const struct agent_config *now)
{
    struct agent_client *c = r->host.cfg->client;
    struct agent_client *copy = codec_clone(ctx, &type_agent_client, now->client);

    c->meta = copy->meta;
    c->reserved = copy->reserved;
    if ((*r->host.roles)->client)
        client_configure((*r->host.roles)->client, c, NULL);
}

static void
apply_plugins(struct reload *r, void *ctx, const struct agent_config *now)
{
    struct agent_config *copy = mem_new(ctx, struct agent_config);

    for (size_t i = 0; i < now->plugins.n; i++)
        list_add(copy, copy->plugins, codec_clone(copy, &type_agent_plugin, now->plugins.v[i]));
    r->host.cfg->plugins = copy->plugins;
    if ((*r->host.roles)->client)
        client_configure((*r->host.roles)->client, NULL, copy);
}

/* The warden and the policy's compiler have read it already. */
static void
apply_isolation(struct reload *r, void *ctx, const struct agent_config *now)
{
    r->host.cfg->isolation = codec_clone(ctx, &type_agent_isolation, now->isolation);
}

static void
on_key_installed(void *arg, const struct err *e, const struct gossip_keys_response *r)
{
    (void)arg;
    if (e || r->messages.n > 0)
        log_error("agent", "the key of server.encrypt is not installed everywhere", "error",
                  e ? e->text : r->messages.v[0].v, NULL);
}

/* Installs the key at all servers; they seal by another until `operator gossip keyring use`. */
static void
apply_encrypt(struct reload *r, void *ctx, const struct agent_config *now)
{
    const char *key = mem_strdup(ctx, now->server->encrypt_key);

    r->host.cfg->server->encrypt_key = key;
    server_gossip_keys((*r->host.roles)->server, "install", key, on_key_installed, NULL);
}

/* The texts are good: load() has made a struct tls of them. */
static void
apply_tls(struct reload *r, void *ctx, const struct agent_config *now)
{
    struct err e = ERR_INIT;
    struct agent_tls *t = codec_clone(ctx, &type_agent_tls, now->tls_config);

    t->enable_http = r->host.cfg->tls_config->enable_http;
    t->enable_rpc = r->host.cfg->tls_config->enable_rpc;
    t->rpc_upgrade_mode = r->host.cfg->tls_config->rpc_upgrade_mode;
    t->verify_server_hostname = r->host.cfg->tls_config->verify_server_hostname;
    t->bind_node_name = r->host.cfg->tls_config->bind_node_name;
    r->host.cfg->tls_config = t;
    if (agent_tls_renew(r->host.tls, r->host.cfg, &e) < 0)
        log_error("agent", "the certificates stay as they were", "error", e.text, NULL);
    (*r->host.roles)->api.tls_end_s = agent_tls_end(r->host.cfg);
    agent_tls_warn(r->host.cfg);
}

/* A server that seals already may have one more key; without any, nobody would hear it. */
static bool
may_encrypt(const struct reload *r, const struct agent_config *now, const char *key)
{
    struct server_gossip_figures g;

    (void)key;
    if (!(*r->host.roles)->server || str_empty(now->server->encrypt_key))
        return false;
    server_gossip_figures((*r->host.roles)->server, &g);
    return g.encrypted;
}

/* Engines are told by the hand, which reads the policy when it starts. */
static bool
may_plugin(const struct reload *r, const struct agent_config *now, const char *key)
{
    const struct driver_can *can = driver_can(key + strlen("plugin."));

    (void)r, (void)now;
    return can && can->launch;
}

/* Directories and the agent's own user are those of the start. */
static bool
may_isolation(const struct reload *r, const struct agent_config *now, const char *key)
{
    static const char *const fixed[] = {"isolation.user",         "isolation.run_dir",
                                        "isolation.cgroup_root",  "isolation.bind_roots",
                                        "isolation.bind_allowed", "isolation.allowed_devices"};
    (void)r, (void)now;
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (str_eq(key, fixed[i]))
            return false;
    return true;
}

/* Whether connections are encrypted, and who is a server there, is settled once, by those who
 * listen and dial. */
static bool
may_tls(const struct reload *r, const struct agent_config *now, const char *key)
{
    (void)now;
    static const char *const fixed[] = {"tls.http", "tls.rpc", "tls.rpc_upgrade_mode",
                                        "tls.verify_server_hostname", "tls.bind_node_name"};
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        if (str_eq(key, fixed[i]))
            return false;
    return r->host.tls != NULL;
}

static const struct reloadable {
    const char *key; /* and all below it */
    void (*apply)(struct reload *r, void *ctx, const struct agent_config *now);
    bool (*may)(const struct reload *r, const struct agent_config *now, const char *key);
} reloadables[RELOADABLES] = {
    {"log_level", apply_log_level, NULL},
    {"telemetry", apply_telemetry, NULL},
    {"client.meta", apply_client, NULL},
    {"client.reserved", apply_client, NULL},
    {"plugin", apply_plugins, may_plugin},
    {"isolation", apply_isolation, may_isolation},
    {"server.encrypt", apply_encrypt, may_encrypt},
    {"tls", apply_tls, may_tls},
};

static const struct reloadable *
reload_find(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(reloadables); i++) {
        size_t n = strlen(reloadables[i].key);
        if (strncmp(key, reloadables[i].key, n) == 0 && (key[n] == '\0' || key[n] == '.'))
            return &reloadables[i];
    }
    return NULL;
}

/* --- together --- */

static struct reload_response *
reload_apply(struct reload *r, const void *ctx, const struct agent_config *now)
{
    struct reload_response *resp = mem_new(ctx, struct reload_response);
    struct str_list keys = {NULL, 0};
    bool due[ARRAY_LEN(reloadables)] = {false};

    config_changes(ctx, r->host.cfg, now, &keys);
    for (size_t i = 0; i < keys.n; i++) {
        const struct reloadable *x = reload_find(keys.v[i]);
        bool can = x && (!x->may || x->may(r, now, keys.v[i]));
        if (can)
            list_add(ctx, resp->changed, keys.v[i]);
        else
            list_add(ctx, resp->needs_restart, keys.v[i]);
        if (can)
            due[x - reloadables] = true;
    }
    for (size_t i = 0; i < ARRAY_LEN(reloadables); i++) {
        if (!due[i]) {
            list_add(ctx, resp->unchanged, reloadables[i].key);
            continue;
        }
        void *before = r->kept[i];
        r->kept[i] = talloc_new(r);
        reloadables[i].apply(r, r->kept[i], now);
        mem_free(before);
    }
    return resp;
}

static const char *
reload_list(const void *ctx, const struct str_list *l)
{
    auto_buf struct buf b = BUF_INIT(64 << 10);
    for (size_t i = 0; i < l->n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", l->v[i]);
    return mem_strdup(ctx, buf_str(&b));
}

static void
reload_answer(struct reload *r, const struct reload_response *resp, const struct err *e)
{
    timer_stop(TAKE(r->timer));
    while (r->waits) {
        struct reload_wait *w = r->waits;
        r->waits = w->next;
        w->done(w->arg, resp, e);
        talloc_free(w);
    }
}

void
reload_now(struct reload *r)
{
    auto_mem void *ctx = mem_ctx("reload");
    struct err e = ERR_INIT;
    struct agent_config *now;

    if (r->host.load(r->host.arg, ctx, &now, &e) < 0) {
        log_error("agent", "reload failed: the old configuration stays", "error", e.text, NULL);
        reload_answer(r, NULL, &e);
        return;
    }
    struct reload_response *resp = reload_apply(r, ctx, now);
    if ((*r->host.roles)->client)
        client_reload((*r->host.roles)->client);
    if (resp->needs_restart.n > 0)
        log_warn("agent", "changes of the configuration need a restart of the agent", "keys",
                 reload_list(ctx, &resp->needs_restart), NULL);
    log_info("agent", "configuration reloaded", "changed",
             resp->changed.n > 0 ? reload_list(ctx, &resp->changed) : "nothing", "log_level",
             r->host.cfg->log_level, NULL);
    reload_answer(r, resp, NULL);
}

/* --- who asks --- */

static int
reload_touch(struct reload *r, struct err *e)
{
    auto_mem void *ctx = mem_ctx("reload");
    const char *path = mem_printf(ctx, "%s/" POLICY_RELOAD, r->host.run_dir);
    auto_fd int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

    if (fd < 0 || write(fd, "reload\n", 7) != 7)
        return err_errno(e, errno, "ask by \"%s\" for the configuration to be read anew", path);
    return 0;
}

/* Rings again: systemd hears nothing while it does what an earlier word asked for. */
static void
on_reload_silence(void *arg)
{
    struct reload *r = arg;
    struct err e = ERR_INIT;

    r->timer = NULL;
    if (clock_mono_ns() >= r->until_ns) {
        err_set(&e, -ERR_TIMEOUT,
                "nobody read the configuration anew within %d s: send SIGHUP to the "
                "agent's supervisor, or use systemctl reload paddock",
                RELOAD_WAIT_MS / 1000);
    } else if (reload_touch(r, &e) == 0) {
        r->timer = timer_start(r->host.loop, RELOAD_RING_MS, on_reload_silence, r);
        return;
    }
    reload_answer(r, NULL, &e);
}

void
reload_ask(void *arg, reload_done *done, void *done_arg)
{
    struct reload *r = arg;
    struct err e = ERR_INIT;

    if (reload_touch(r, &e) < 0) {
        done(done_arg, NULL, &e);
        return;
    }
    struct reload_wait *w = mem_new(r, struct reload_wait);
    *w = (struct reload_wait){r->waits, done, done_arg};
    r->waits = w;
    if (!r->timer) {
        r->until_ns = clock_mono_ns() + RELOAD_WAIT_MS * NS_PER_MS;
        r->timer = timer_start(r->host.loop, RELOAD_RING_MS, on_reload_silence, r);
    }
}

void
reload_forget(void *arg, void *done_arg)
{
    struct reload *r = arg;
    for (struct reload_wait **p = &r->waits; *p;) {
        struct reload_wait *w = *p;
        if (w->arg != done_arg) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        talloc_free(w);
    }
}

void
reload_stop(struct reload *r)
{
    struct err e = ERR_INIT;
    err_set(&e, -ERR_UNAVAILABLE, "the agent stops");
    reload_answer(r, NULL, &e);
}

struct reload *
reload_new(const void *ctx, const struct reload_host *host)
{
    struct reload *r = mem_new(ctx, struct reload);
    r->host = *host;
    return r;
}
