/* SPDX-License-Identifier: Apache-2.0
 *
 * From the agent's configuration to the launch policy. In this order: what plugin blocks say,
 * engines, drivers that are on, the agent's user, directories; agent_policy() puts them together.
 */
#include "agent/policy.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "api/artifact/artifact.h"
#include "api/device/device.h"
#include "api/drivers.h"
#include "common/duration.h"
#include "common/host/path.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/confine/users.h"

#define RUN_DIR_DEFAULT "/run/paddock"
#define USER_DEFAULT "paddock"

static bool
text_true(const char *s)
{
    bool on = false;
    return s && num_parse_bool(s, &on) == 0 && on;
}

/* A block may come as a map or as a list of maps (HCL1 habits). */
static bool
value_true(const struct value *v, const char *key)
{
    if (v && v->kind == VALUE_LIST)
        v = v->list.n > 0 ? v->list.v[0] : NULL;
    const struct value *x = v && v->kind == VALUE_MAP ? value_get(v, key) : NULL;
    return x &&
           ((x->kind == VALUE_BOOL && x->b) || (x->kind == VALUE_STRING && text_true(x->str.s)) ||
            (x->kind == VALUE_INT && x->i == 1));
}

/* The endpoints of engines, Nomad's; drivers of engines that are not here have none. */
static const struct {
    const char *driver, *endpoint;
} endpoints[] = {{"docker", "unix:///var/run/docker.sock"},
                 {"podman", "unix:///run/podman/podman.sock"}};
/* The capabilities that, as in Nomad, a container may have without a word of the operator's. */
static const char *const caps_default[] = {
    "audit_write",      "chown",   "dac_override", "fowner",  "fsetid", "kill",      "mknod",
    "net_bind_service", "setfcap", "setgid",       "setpcap", "setuid", "sys_chroot"};

/* plugin "raw_exec" { config { enabled = true } }, or -dev. */
static bool
turned_on(const struct agent_config *cfg, const char *driver)
{
    bool on = cfg->dev_mode;
    for (size_t i = 0; i < cfg->plugins.n; i++)
        if (str_eq(cfg->plugins.v[i]->name, driver))
            on |= value_true(cfg->plugins.v[i]->config, "enabled");
    auto_mem void *tmp = mem_ctx("driver");
    const char *option = mem_printf(tmp, "driver.%s.enable", driver);
    return on || (cfg->client && text_true(str_map_get(&cfg->client->options, option)));
}

static const char *const runtimes_default[] = {"runc", "crun", "nvidia"};

/* A block of a block. */
static const struct value *
policy_inner(const struct value *v, const char *name)
{
    v = value_get(v, name);
    return v && v->kind == VALUE_LIST && v->list.n > 0 ? v->list.v[0] : v;
}

static void
add_texts(const void *ctx, struct str_list *to, const struct value *v)
{
    for (size_t i = 0; v && v->kind == VALUE_LIST && i < v->list.n; i++)
        if (v->list.v[i]->kind == VALUE_STRING)
            list_add(ctx, *to, v->list.v[i]->str.s);
}

static const char *
text_of(const void *ctx, const struct value *v, const char *name)
{
    v = value_get(v, name);
    return v && v->kind == VALUE_STRING ? mem_strdup(ctx, v->str.s) : NULL;
}

static int64_t
number_of(const struct value *v, const char *name)
{
    int64_t n = 0;
    v = value_get(v, name);
    if (v && v->kind == VALUE_STRING)
        (void)num_parse_i64(v->str.s, &n);
    return v && v->kind == VALUE_INT ? v->i : n;
}

static int64_t
duration_of(const struct value *v, const char *name)
{
    int64_t ns = 0;
    v = value_get(v, name);
    if (v && v->kind == VALUE_STRING)
        (void)duration_parse(v->str.s, &ns);
    return ns;
}

/* Sets the values that hold where a job has none. Nomad's own log drivers are ours. */
static void
set_defaults(struct engine_policy *e, const struct value *v)
{
    const struct value *log = policy_inner(v, "logging"), *options = policy_inner(log, "config");
    const char *type = str_or(text_of(e, log, "type"), text_of(e, log, "driver"));
    options = options ? options : policy_inner(log, "options");
    e->pull_timeout = duration_of(v, "image_pull_timeout");
    e->pull_idle = duration_of(v, "pull_activity_timeout");
    e->oom_score_adj = number_of(v, "oom_score_adj");
    e->no_logs = value_true(v, "disable_log_collection");
    e->log_driver = str_eq(type, "nomad") || str_eq(type, "k8s-file") ? NULL : type;
    for (size_t i = 0; options && options->kind == VALUE_MAP && i < options->map.n; i++)
        if (options->map.v[i].v && options->map.v[i].v->kind == VALUE_STRING)
            str_map_set(e, &e->log_options, options->map.v[i].k, options->map.v[i].v->str.s);
    add_texts(e, &e->extra_labels, value_get(v, "extra_labels"));
    add_texts(e, &e->dns_servers, value_get(v, "dns_servers"));
}

static void
set_more(struct engine_policy *e, const struct value *v)
{
    const struct value *modes = policy_inner(v, "allowed_modes");
    const struct value *runtimes = value_get(v, "allow_runtimes");
    const struct value *gc = policy_inner(v, "gc");
    const struct {
        const char *name;
        struct str_list *to;
    } rows[] = {{"pid", &e->pid_modes},
                {"ipc", &e->ipc_modes},
                {"uts", &e->uts_modes},
                {"userns", &e->userns_modes}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        add_texts(e, rows[i].to, value_get(modes, rows[i].name));
    e->image_delay = duration_of(gc, "image_delay");
    set_defaults(e, v);
    e->keep_images = value_get(gc, "image") && !value_true(gc, "image");
    e->volumes = value_true(policy_inner(v, "volumes"), "enabled");
    e->pids_max = number_of(v, "pids_limit");
    e->auth_config = text_of(e, policy_inner(v, "auth"), "config");
    e->auth_helper = text_of(e, policy_inner(v, "auth"), "helper");
    add_texts(e, &e->devices, value_get(v, "allow_devices"));
    add_texts(e, &e->runtimes, runtimes);
    for (size_t i = 0; !runtimes && i < ARRAY_LEN(runtimes_default); i++)
        list_add(e, e->runtimes, runtimes_default[i]);
}

/* An engine is root on the host: it is on where its plugin block says so, and nowhere else, -dev
 * included. NULL: off. */
static struct engine_policy *
set_engine(const struct policy *p, const struct agent_config *cfg, const char *driver)
{
    for (size_t i = 0; i < cfg->plugins.n; i++) {
        const struct value *v = cfg->plugins.v[i]->config;
        if (!str_eq(cfg->plugins.v[i]->name, driver) || !value_true(v, "enabled"))
            continue;
        if (v->kind == VALUE_LIST && v->list.n > 0)
            v = v->list.v[0];
        struct engine_policy *e = mem_new(p, struct engine_policy);
        const struct value *at = value_get(v, "endpoint"), *caps = value_get(v, "allow_caps");
        at = at ? at : value_get(v, "socket_path"); /* as podman's is called */
        e->name = driver;
        for (size_t k = 0; k < ARRAY_LEN(endpoints); k++)
            if (str_eq(endpoints[k].driver, driver))
                e->endpoint = endpoints[k].endpoint;
        if (at && at->kind == VALUE_STRING)
            e->endpoint = mem_strdup(e, at->str.s);
        e->privileged = value_true(v, "allow_privileged");
        add_texts(e, &e->caps, caps);
        for (size_t k = 0; !caps && k < ARRAY_LEN(caps_default); k++)
            list_add(e, e->caps, caps_default[k]);
        set_more(e, v);
        return e;
    }
    return NULL;
}

static void
set_drivers(struct policy *p, const struct agent_config *cfg)
{
    for (size_t i = 0; i < DRIVERS_N; i++) {
        const struct driver_can *can = &drivers_can[i];
        if (!can->launch) {
            struct engine_policy *engine = set_engine(p, cfg, can->name);
            if (engine)
                list_add(p, p->engines, engine);
            continue;
        }
        if ((can->opt_in && !turned_on(cfg, can->name)))
            continue;
        for (size_t k = 0; can->images && k < cfg->plugins.n; k++)
            if (str_eq(cfg->plugins.v[k]->name, can->name))
                add_texts(p, &p->image_paths, value_get(cfg->plugins.v[k]->config, "image_paths"));
        list_add(p, p->drivers, can->name);
        p->raw_exec |= !can->isolation;
    }
}

static int
set_user(struct policy *p, const struct agent_config *cfg, struct err *e)
{
    if (geteuid() != 0) {
        p->agent_uid = getuid();
        p->agent_gid = getgid();
        return 0;
    }
    const char *name = str_or(cfg->isolation ? cfg->isolation->user : NULL, USER_DEFAULT);
    struct user account;
    if (users_resolve(name, NULL, 0, NULL, &account, NULL) < 0)
        return err_set(e, -ERR_NOT_FOUND,
                       "the agent runs as user '%s', which does not exist: make it with "
                       "'useradd --system --home-dir /var/lib/paddock "
                       "--shell /usr/sbin/nologin %s'",
                       name, name);
    if (account.uid == 0)
        return err_set(e, -ERR_INVALID, "isolation.user must not be root");
    p->agent_user = mem_strdup(p, name);
    p->agent_uid = account.uid;
    p->agent_gid = account.gid;
    return 0;
}

static int
set_dirs(struct policy *p, const struct agent_config *cfg, const char *data_dir, struct err *e)
{
    const struct agent_isolation *iso = cfg->isolation;
    const char *run = iso ? iso->run_dir : NULL;

    p->data_dir = mem_strdup(p, str_or(cfg->data_dir, data_dir));
    if (str_empty(p->data_dir))
        return err_set(e, -ERR_INVALID, "data_dir is required (or -dev)");
    bool named = !str_empty(run) && !str_eq(run, RUN_DIR_DEFAULT);
    if (named)
        p->run_dir = mem_strdup(p, run);
    else if (cfg->dev_mode || geteuid() != 0 || !cfg->client || !cfg->client->enabled)
        p->run_dir = mem_printf(p, "%s/run", p->data_dir);
    else
        p->run_dir = RUN_DIR_DEFAULT;
    const char *alloc = cfg->client ? cfg->client->alloc_dir : NULL;
    p->alloc_dir = str_empty(alloc) ? mem_printf(p, "%s/alloc", p->data_dir) : mem_strdup(p, alloc);
    p->state_dir = p->data_dir;
    return 0;
}

/* In bytes; what is out of range stays so, for policy_check(). */
static int64_t
policy_mib(int64_t n)
{
    return n < 0 ? -1 : n > INT64_MAX >> 20 ? INT64_MAX : n << 20;
}

/* Makes the policy of the block: members of the same name are the same; the rest differs in name,
 * unit or default. */
static struct policy *
of_isolation(const void *ctx, const struct agent_isolation *iso)
{
    auto_mem void *tmp = mem_ctx("policy");
    const struct projection *same = projection_new(tmp, &type_policy, &type_agent_isolation);
    struct policy *p = iso ? codec_project(ctx, same, iso) : mem_new(ctx, struct policy);

    p->seccomp = !iso || !iso->seccomp.set || iso->seccomp.v;
    if (iso) {
        p->pids_max_default = iso->pids_max;
        p->metadata = iso->cloud_metadata;
        p->swap_max = policy_mib(iso->swap_max);
        p->hugetlb_max = policy_mib(iso->hugetlb_max);
        p->memory_min_max = policy_mib(iso->memory_min_max);
    }
    return p;
}

static void
set_devices(struct policy *p, const struct agent_config *cfg)
{
    for (size_t i = 0; cfg->client && i < cfg->client->devices.n; i++)
        for (size_t k = 0; k < cfg->client->devices.v[i]->ids.n; k++)
            device_paths(p, cfg->client->devices.v[i], cfg->client->devices.v[i]->ids.v[k],
                         &p->device_paths);
}

static void
set_volumes(struct policy *p, const struct agent_config *cfg)
{
    const char *dir = cfg->client ? cfg->client->host_volumes_dir : NULL;
    p->host_volumes_dir =
        str_empty(dir) ? mem_printf(p, "%s/host_volumes", p->data_dir) : mem_strdup(p, dir);
    for (size_t i = 0; cfg->client && i < cfg->client->host_volumes.n; i++) {
        const struct agent_host_volume *h = cfg->client->host_volumes.v[i];
        char real[PATH_MAX];
        if (path_real(h->path, real) < 0)
            continue; /* the node has none of that name either */
        struct policy_volume *v = mem_new(p, struct policy_volume);
        *v = (struct policy_volume){
            .name = h->name, .path = mem_strdup(v, real), .read_only = h->read_only};
        list_add(p, p->host_volumes, v);
    }
}

/* The configuration was checked. */
static void
set_artifacts(struct policy *p, const struct agent_config *cfg)
{
    const struct agent_artifact *a = cfg->client != NULL ? cfg->client->artifact : NULL;
    struct err e = ERR_INIT;
    if (a != NULL && !str_empty(a->cache_size))
        (void)artifact_size(a->cache_size, &p->artifact_cache, &e);
}

int
agent_policy(const void *ctx, const struct agent_config *cfg, const char *data_dir,
             struct policy **ret, struct err *e)
{
    const struct agent_isolation *iso = cfg->isolation;
    struct policy *p = of_isolation(ctx, iso);

    int r = set_user(p, cfg, e);
    if (r == 0)
        r = set_dirs(p, cfg, data_dir, e);
    if (r < 0) {
        talloc_free(p);
        return r;
    }
    set_drivers(p, cfg);
    set_volumes(p, cfg);
    set_devices(p, cfg);
    set_artifacts(p, cfg);
    p->drain_time = config_drain_ns(cfg);
    if (cfg->client) {
        p->bridge_name = cfg->client->bridge_network_name;
        p->bridge_subnet = cfg->client->bridge_network_subnet;
    }
    if (!iso || !iso->agent_api)
        policy_deny_agent(p, cfg);
    p->agent_files = config_tls_files(p, cfg);
    *ret = p;
    return 0;
}
