/* SPDX-License-Identifier: Apache-2.0
 *
 * What a task may have of an engine: decided here, whoever asks, since the agent is not trusted.
 * Pure. Each refusal names the option of a job file, and what of the client's configuration
 * would allow it.
 */
#include <string.h>
#include <strings.h>

#include "api/plain.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "hand/allow.h"
#include "hand/hand.h"
#include "isolation/launch/policy.h"

enum { PORT_MAX = 65535, PERIOD_MIN_US = 1000, PERIOD_MAX_US = 1000000, OOM_MAX = 1000,
       IO_WEIGHT_MIN = 10, IO_WEIGHT_MAX = 1000 };

bool
allow_cap(const struct hand *h, const char *cap)
{
    const struct str_list *l = &h->engine->caps;
    if (strncasecmp(cap, "CAP_", 4) == 0)
        cap += 4;
    for (size_t i = 0; i < l->n; i++) {
        const char *have = l->v[i];
        if (strncasecmp(have, "CAP_", 4) == 0)
            have += 4;
        if (strcasecmp(have, "all") == 0 || strcasecmp(have, cap) == 0)
            return true;
    }
    return false;
}

static int
check_caps(const struct hand *h, const struct hand_task *t, struct err *e)
{
    for (size_t i = 0; i < t->cap_add.n; i++)
        if (!allow_cap(h, t->cap_add.v[i]))
            return err_set(e, -ERR_POLICY,
                           "cap_add: \"%.64s\" is not allowed on this client (allow_caps of its "
                           "plugin block)",
                           t->cap_add.v[i]);
    return 0;
}

static int
check_ports(const struct hand_port *const *v, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (v[i]->port < 1 || v[i]->port > PORT_MAX || v[i]->host_port < 1 ||
            v[i]->host_port > PORT_MAX)
            return err_set(e, -ERR_INVALID, "a port is not from 1 to %d", PORT_MAX);
    return 0;
}

/* Refuses what comes with the group's network and is not the task's to say. */
static int
check_group(const struct hand_task *t, struct err *e)
{
    bool own = !str_empty(t->network_mode) || !str_empty(t->hostname) || t->ports.n > 0 ||
               t->dns_servers.n > 0 || t->dns_search.n > 0 || t->dns_options.n > 0 ||
               t->extra_hosts.n > 0 || !str_empty(t->mac_address);
    return own ? err_set(e, -ERR_INVALID,
                         "hostname, ports, dns, extra_hosts and mac_address of a container in the "
                         "network of its group are those of the group's network block")
               : 0;
}

int
allow_network(const struct hand *h, const struct hand_network *n, struct err *e)
{
    const char *mode = str_or(n->mode, "");
    if (!str_eq(mode, "bridge") && !str_eq(mode, "none"))
        return err_set(e, -ERR_INVALID, "network mode \"%.16s\" is neither bridge nor none", mode);
    if (h->policy->network_modes.n > 0 && !str_list_has(&h->policy->network_modes, mode))
        return err_set(e, -ERR_POLICY, "network mode \"%s\" is not allowed on this client", mode);
    if (str_eq(mode, "none") && n->ports.n > 0)
        return err_set(e, -ERR_INVALID, "a network of mode none has no ports");
    return check_ports((const struct hand_port *const *)n->ports.v, n->ports.n, e);
}

/* A network of the engine's own; another container's, or a path, is somebody else's. */
static int
check_network(const struct hand *h, const struct hand_task *t, struct err *e)
{
    const char *mode = str_or(t->network_mode, "");
    if (strchr(mode, ':') || strchr(mode, '/'))
        return err_set(e, -ERR_POLICY,
                       "network_mode \"%.64s\" is not the name of a network of the engine", mode);
    if (str_eq(mode, "host") && h->policy->network_modes.n > 0 &&
        !str_list_has(&h->policy->network_modes, "host"))
        return err_set(e, -ERR_POLICY, "network mode \"host\" is not allowed on this client");
    bool named = !str_empty(mode) && !str_eq(mode, "bridge") && !str_eq(mode, "host") &&
                 !str_eq(mode, "none") && !str_eq(mode, "default");
    if (!named &&
        (t->network_aliases.n > 0 || !str_empty(t->ipv4_address) || !str_empty(t->ipv6_address)))
        return err_set(e, -ERR_INVALID,
                       "network_aliases, ipv4_address and ipv6_address are for a network of the "
                       "engine that network_mode names");
    int r = t->group_network ? check_group(t, e) : 0;
    return r < 0 ? r : check_ports((const struct hand_port *const *)t->ports.v, t->ports.n, e);
}

/* --- namespaces --- */

static int
check_modes(const struct hand *h, const struct hand_task *t, struct err *e)
{
    const struct {
        const char *option, *mode;
        const struct str_list *allowed;
        bool own; /* "private" and the like are the container's own */
    } rows[] = {
        {"pid_mode", t->pid_mode, &h->engine->pid_modes, false},
        {"ipc_mode", t->ipc_mode, &h->engine->ipc_modes, true},
        {"uts_mode", t->uts_mode, &h->engine->uts_modes, false},
        {"userns_mode", t->userns_mode, &h->engine->userns_modes, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *mode = str_or(rows[i].mode, "");
        if (strchr(mode, ':') || strchr(mode, '/'))
            return err_set(e, -ERR_POLICY,
                           "%s \"%.64s\": the namespaces of other containers are not for a job",
                           rows[i].option, mode);
        bool own = !*mode || (rows[i].own && (str_eq(mode, "private") || str_eq(mode, "none") ||
                                              str_eq(mode, "shareable")));
        if (!own && !h->engine->privileged && !str_list_has(rows[i].allowed, mode))
            return err_set(e, -ERR_POLICY,
                           "%s \"%.64s\" is not allowed on this client (allowed_modes of its "
                           "plugin block)",
                           rows[i].option, mode);
    }
    const char *cg = str_or(t->cgroupns_mode, "");
    if (*cg && !str_eq(cg, "private") && !str_eq(cg, "host"))
        return err_set(e, -ERR_INVALID, "cgroupns \"%.64s\" is neither private nor host", cg);
    return 0;
}

/* --- its confinement --- */

static bool
is_on(const char *opt, const char *name)
{
    size_t n = strlen(name);
    return strncmp(opt, name, n) == 0 &&
           (!opt[n] || ((opt[n] == '=' || opt[n] == ':') && str_eq(opt + n + 1, "true")));
}

/* Lets through options that keep more from the container than the engine does by itself: everybody
 * may have them. */
static int
check_security(const struct hand *h, const struct hand_task *t, struct err *e)
{
    static const char profile[] = "apparmor";
    for (size_t i = 0; i < t->security_opt.n; i++) {
        const char *opt = t->security_opt.v[i], *name = opt + strcspn(opt, "=:");
        bool apparmor = *name && (size_t)(name++ - opt) == strlen(profile) &&
                        strncmp(opt, profile, strlen(profile)) == 0;
        if (strncmp(opt, "seccomp", 7) == 0 && strchr(opt, '/'))
            return err_set(e, -ERR_UNSUPPORTED,
                           "security_opt: a profile of system calls is not read from a file: the "
                           "engine's own holds");
        if (!is_on(opt, "no-new-privileges") && !h->engine->privileged &&
            !(apparmor && str_list_has(&h->policy->apparmor_allowed, name)))
            return err_set(e, -ERR_POLICY,
                           "security_opt \"%.64s\" is not allowed on this client (allow_privileged "
                           "of its plugin block%s)",
                           opt, apparmor ? ", or isolation.apparmor_allowed" : "");
    }
    return 0;
}

static int
check_devices(const struct hand *h, const struct hand_task *t, struct err *e)
{
    for (size_t i = 0; i < t->devices.n; i++) {
        const struct hand_device *d = t->devices.v[i];
        const char *rights = str_or(d->permissions, "");
        if (rights[strspn(rights, "rwm")])
            return err_set(e, -ERR_INVALID, "devices: cgroup_permissions \"%s\" are not of r, w, m",
                           rights);
        if (d->given && str_list_has(&h->policy->device_paths, str_or(d->host_path, "")))
            continue;
        if (!h->engine->privileged && !str_list_has(&h->engine->devices, str_or(d->host_path, "")))
            return err_set(e, -ERR_POLICY,
                           "devices: \"%.128s\" is not allowed on this client (allow_devices of "
                           "its plugin block)",
                           str_or(d->host_path, ""));
    }
    return 0;
}

/* --- its output --- */

/* The hand reads output back from the engine, and an engine that sends it elsewhere connects as
 * root.
 */
static int
check_log(const struct hand_task *t, struct err *e)
{
    static const char *const options[] = {"max-size", "max-file", "compress",        "labels",
                                          "env",      "mode",     "max-buffer-size", "tag"};
    const char *driver = str_or(t->log_driver, "");
    if (*driver && !str_eq(driver, "json-file") && !str_eq(driver, "local"))
        return err_set(
            e, -ERR_POLICY,
            "logging: driver \"%.64s\" is not allowed: it is json-file or local, and what "
            "a task writes is in the logs of its allocation",
            driver);
    for (size_t i = 0; i < t->log_options.n; i++) {
        bool known = false;
        for (size_t k = 0; k < ARRAY_LEN(options); k++)
            known |= str_eq(t->log_options.v[i].k, options[k]);
        if (!known)
            return err_set(e, -ERR_INVALID, "logging: option \"%.64s\" is not supported",
                           t->log_options.v[i].k);
    }
    return 0;
}

/* --- mounts --- */

static int
check_bind(const struct hand *h, const struct hand_mount *m, struct err *e)
{
    static const char *const modes[] = {"", "private", "rprivate", "slave", "rslave"};
    const char *spread = str_or(m->propagation, ""), *source = str_or(m->source, "");
    bool ok = h->engine->privileged && (str_eq(spread, "shared") || str_eq(spread, "rshared"));
    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        ok |= str_eq(spread, modes[i]);
    if (!ok)
        return err_set(e, -ERR_POLICY,
                       "mount of \"%.128s\": propagation \"%s\" is not allowed on this client "
                       "(allow_privileged of its plugin block)",
                       source, spread);
    if (!*source)
        return err_set(e, -ERR_INVALID, "mount at \"%.128s\": a bind mount needs its source",
                       str_or(m->target, ""));
    if (!str_empty(m->host_volume))
        return policy_check_volume(h->policy, m->host_volume, m->read_only, e);
    if (*source != '/' || h->engine->volumes)
        return 0; /* places.c finds the former in the allocation */
    if (str_list_has(&h->policy->bind_allowed, source))
        return 0; /* not what is below it: a task that writes there could put a link */
    return err_set(e, -ERR_POLICY,
                   "mount of \"%.128s\": that path of the host is not allowed on this client "
                   "(volumes of its plugin block, or that very path in isolation.bind_allowed)",
                   source);
}

static int
check_mount(const struct hand *h, const struct hand_mount *m, struct err *e)
{
    const char *type = str_or(m->type, ""), *target = str_or(m->target, "");
    if (*target != '/')
        return err_set(e, -ERR_INVALID, "mount: target \"%.128s\" is not absolute", target);
    if (str_eq(type, "bind"))
        return check_bind(h, m, e);
    if (str_eq(type, "tmpfs")) {
        if (str_empty(m->source) && m->size >= 0 && m->mode >= 0 && m->mode <= 07777)
            return 0;
        return err_set(e, -ERR_INVALID,
                       "mount at \"%.128s\": a tmpfs has no source, and no negative size", target);
    }
    if (!str_eq(type, "volume"))
        return err_set(e, -ERR_INVALID,
                       "mount at \"%.128s\": type \"%.64s\" is none of bind, tmpfs, volume", target,
                       type);
    /* one with a name is whoever's made it, and a driver's options name paths of the host */
    if ((str_empty(m->source) && str_empty(m->driver) && m->driver_options.n == 0) ||
        h->engine->volumes)
        return 0;
    return err_set(
        e, -ERR_POLICY,
        "mount of volume \"%.128s\": volumes of the engine are not allowed on this client "
        "(volumes of its plugin block)",
        str_or(m->source, ""));
}

static int
check_mounts(const struct hand *h, const struct hand_task *t, struct err *e)
{
    int r = 0;
    for (size_t i = 0; i < t->mounts.n && r == 0; i++)
        r = check_mount(h, t->mounts.v[i], e);
    return r;
}

/* --- limits and the rest --- */

static int
check_limits(const struct hand *h, const struct hand_task *t, struct err *e)
{
    if (t->cpu_period != 0 && (t->cpu_period < PERIOD_MIN_US || t->cpu_period > PERIOD_MAX_US))
        return err_set(e, -ERR_INVALID, "cpu_cfs_period is not from %d to %d", PERIOD_MIN_US,
                       PERIOD_MAX_US);
    if (t->oom_score_adj < -OOM_MAX || t->oom_score_adj > OOM_MAX)
        return err_set(e, -ERR_INVALID, "oom_score_adj is not from -%d to %d", OOM_MAX, OOM_MAX);
    if (t->oom_score_adj < 0 && !h->engine->privileged)
        return err_set(e, -ERR_POLICY,
                       "oom_score_adj: a negative one is not allowed on this client "
                       "(allow_privileged of its plugin block)");
    if (t->swap < 0 || t->io_weight < 0 || t->io_weight > IO_WEIGHT_MAX ||
        (t->io_weight > 0 && t->io_weight < IO_WEIGHT_MIN))
        return err_set(e, -ERR_INVALID,
                       "isolation: swap is negative, or io_weight not from %d to %d", IO_WEIGHT_MIN,
                       IO_WEIGHT_MAX);
    if (h->engine->pids_max > 0 && t->pids_max > h->engine->pids_max)
        return err_set(e, -ERR_POLICY, "pids_limit may be at most %lld on this client",
                       (long long)h->engine->pids_max);
    for (size_t i = 0; i < t->ulimits.n; i++) {
        const struct hand_ulimit *u = t->ulimits.v[i];
        if (str_empty(u->name) || u->soft < -1 || u->hard < -1)
            return err_set(e, -ERR_INVALID, "ulimit \"%s\" is not a limit", str_or(u->name, ""));
    }
    return 0;
}

static int
check_program(const struct hand *h, const struct hand_task *t, struct err *e)
{
    const char *runtime = str_or(t->runtime, "");
    if (str_empty(t->image) ||
        t->image[strspn(t->image,
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@-")])
        return err_set(e, -ERR_INVALID, "\"%.128s\" is no name of an image", str_or(t->image, ""));
    if (t->privileged && !h->engine->privileged)
        return err_set(e, -ERR_POLICY,
                       "privileged is not allowed on this client (allow_privileged of its plugin "
                       "block)");
    if (*runtime && !str_list_has(&h->engine->runtimes, runtime))
        return err_set(e, -ERR_POLICY,
                       "runtime \"%.64s\" is not allowed on this client (allow_runtimes of its "
                       "plugin block)",
                       runtime);
    if (!str_empty(t->load) && !plain_path(t->load))
        return err_set(e, -ERR_INVALID, "load: \"%.128s\" is not a file in the task's local/",
                       t->load);
    return 0;
}

int
allow_ever(const struct hand_task *t, struct err *e)
{
    auto_mem void *tmp = mem_ctx("ever");
    static const char *all[] = {"all"};
    const char *runtime = t->runtime;
    const struct engine_policy engine = {
        .privileged = true, .volumes = true, .caps = {all, 1}, .runtimes = {&runtime, 1}};
    const struct policy policy = {.alloc_dir = "/"};
    const struct hand h = {.policy = &policy, .engine = &engine, .allocs = -1};
    int r = allow_task(&h, "00000000-0000-0000-0000-000000000000", "task", t, e);
    for (size_t i = 0; i < t->mounts.n && r == 0; i++)
        if (str_eq(t->mounts.v[i]->type, "bind") && t->mounts.v[i]->source[0] != '/')
            r = places_path(tmp, t->mounts.v[i]->source, e) ? 0 : e->code;
    return r;
}

int
allow_task(const struct hand *h, const char *alloc, const char *task, const struct hand_task *t,
           struct err *e)
{
    static int (*const checks[])(const struct hand *h, const struct hand_task *t, struct err *e) = {
        check_program,  check_network, check_caps,   check_modes,
        check_security, check_devices, check_limits, check_mounts};
    if (!uuid_valid(alloc) || !plain_task_name(task))
        return err_set(e, -ERR_INVALID, "\"%.64s\" and \"%.64s\" are no allocation and task", alloc,
                       task);
    int r = 0;
    for (size_t i = 0; i < ARRAY_LEN(checks) && r == 0; i++)
        r = checks[i](h, t, e);
    return r < 0 ? r : check_log(t, e);
}
