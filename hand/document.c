/* SPDX-License-Identifier: Apache-2.0
 *
 * From a task to what the engine is asked for, and from what the engine says back. What a task may
 * have is decided here, whoever asks: the agent is not trusted. Pure.
 */
#include <string.h>
#include <strings.h>

#include "api/plain.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "hand/hand.h"

enum { CPU_PERIOD_US = 100000, PORT_MAX = 65535, SHARES_MIN = 2, SHARES_MAX = 262144 };

const char *
document_text(const struct value *doc, const char *name)
{
    const struct value *v = value_get(doc, name);
    return v && v->kind == VALUE_STRING ? v->str.s : "";
}

static int64_t
document_int(const struct value *doc, const char *name)
{
    const struct value *v = value_get(doc, name);
    return v && v->kind == VALUE_INT ? v->i : 0;
}

static bool
document_bool(const struct value *doc, const char *name)
{
    const struct value *v = value_get(doc, name);
    return v && v->kind == VALUE_BOOL && v->b;
}

const char *
document_name(const void *ctx, const char *alloc, const char *task)
{
    char *name = mem_printf(ctx, "%s-%s", task, alloc);
    for (char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", *p))
            *p = '_';
    if (*name == '-' || *name == '.')
        *name = '_';
    return name[0] == '_' ? mem_printf(ctx, "t%s", name) : name;
}

/* --- what a task may have --- */

static bool
cap_in(const struct str_list *l, const char *cap)
{
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
check_caps(const struct engine_policy *p, const struct str_list *add, struct err *e)
{
    for (size_t i = 0; i < add->n; i++)
        if (!cap_in(&p->caps, add->v[i]))
            return err_set(
                e, -ERR_POLICY,
                "capability \"%.64s\" is not allowed on this client (allow_caps of plugin "
                "\"docker\")",
                add->v[i]);
    return 0;
}

/* A network of the engine's own; another container's, or a path, is somebody else's. */
static int
check_network(const struct hand *h, const struct hand_task *t, struct err *e)
{
    const char *mode = str_or(t->network_mode, "");
    if (strchr(mode, ':') || strchr(mode, '/'))
        return err_set(e, -ERR_POLICY,
                       "network_mode \"%.64s\" is not the name of a network of the engine", mode);
    if (!str_eq(mode, "host"))
        return 0;
    const struct str_list *allowed = &h->policy->network_modes;
    for (size_t i = 0; i < allowed->n; i++)
        if (str_eq(allowed->v[i], "host"))
            return 0;
    return allowed->n == 0
               ? 0
               : err_set(e, -ERR_POLICY, "network mode \"host\" is not allowed on this client");
}

static int
check(const struct hand *h, const char *alloc, const char *task, const struct hand_task *t,
      struct err *e)
{
    if (!uuid_valid(alloc) || !plain_task_name(task))
        return err_set(e, -ERR_INVALID, "\"%.64s\" and \"%.64s\" are no allocation and task", alloc,
                       task);
    if (str_empty(t->image) ||
        t->image[strspn(t->image,
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@-")])
        return err_set(e, -ERR_INVALID, "\"%.128s\" is no name of an image", str_or(t->image, ""));
    if (t->privileged && !h->engine->privileged)
        return err_set(
            e, -ERR_POLICY,
            "privileged is not allowed on this client (allow_privileged of plugin \"docker\")");
    for (size_t i = 0; i < t->ports.n; i++) {
        const struct hand_port *p = t->ports.v[i];
        if (p->port < 1 || p->port > PORT_MAX || p->host_port < 1 || p->host_port > PORT_MAX)
            return err_set(e, -ERR_INVALID, "a port is not from 1 to %d", PORT_MAX);
    }
    int r = check_network(h, t, e);
    return r < 0 ? r : check_caps(h->engine, &t->cap_add, e);
}

/* --- the document --- */

static void
put_text(struct value *to, const char *name, const char *s)
{
    if (!str_empty(s))
        value_map_set(to, name, value_str(to, s));
}

static void
put_list(struct value *to, const char *name, const struct str_list *l)
{
    if (l->n == 0)
        return;
    struct value *list = value_list(to);
    for (size_t i = 0; i < l->n; i++)
        value_list_add(list, value_str(to, l->v[i]));
    value_map_set(to, name, list);
}

static void
put_int(struct value *to, const char *name, int64_t n)
{
    if (n != 0)
        value_map_set(to, name, value_int(to, n));
}

static void
put_map(struct value *to, const char *name, const struct str_map *m)
{
    struct value *map = value_map(to);
    for (size_t i = 0; i < m->n; i++)
        value_map_set(map, m->v[i].k, value_str(to, str_or(m->v[i].v, "")));
    if (m->n > 0)
        value_map_set(to, name, map);
}

/* A job cannot take the labels by which containers are known for ours: these come last. */
static void
put_labels(struct value *doc, const struct hand *h, const char *alloc, const char *task,
           const struct hand_task *t)
{
    struct value *labels = value_map(doc);
    for (size_t i = 0; i < t->labels.n; i++)
        value_map_set(labels, t->labels.v[i].k, value_str(doc, str_or(t->labels.v[i].v, "")));
    value_map_set(labels, HAND_LABEL_OWNER, value_str(doc, h->policy->alloc_dir));
    value_map_set(labels, HAND_LABEL_ALLOC, value_str(doc, alloc));
    value_map_set(labels, HAND_LABEL_TASK, value_str(doc, task));
    value_map_set(labels, HAND_LABEL_LOGS,
                  value_str(doc, mem_printf(doc, "%lld:%lld", (long long)t->log_files,
                                            (long long)t->log_file_bytes)));
    value_map_set(doc, "Labels", labels);
}

static void
put_ports(struct value *doc, struct value *host, const struct hand_task *t)
{
    static const char *const protocols[] = {"tcp", "udp"};
    struct value *exposed = value_map(doc), *bindings = value_map(doc);
    for (size_t i = 0; i < t->ports.n; i++)
        for (size_t k = 0; k < ARRAY_LEN(protocols); k++) {
            const struct hand_port *p = t->ports.v[i];
            const char *key = mem_printf(doc, "%d/%s", (int)p->port, protocols[k]);
            struct value *at = value_map(doc);
            struct value *list = (struct value *)(uintptr_t)value_get(bindings, key);
            put_text(at, "HostIp", p->host_ip);
            put_text(at, "HostPort", mem_printf(doc, "%d", (int)p->host_port));
            if (!list)
                value_map_set(bindings, key, list = value_list(doc));
            value_list_add(list, at);
            value_map_set(exposed, key, value_map(doc));
        }
    if (t->ports.n == 0)
        return;
    value_map_set(doc, "ExposedPorts", exposed);
    value_map_set(host, "PortBindings", bindings);
}

static void
put_limits(struct value *host, const struct hand_task *t)
{
    int64_t shares = t->cpu_shares < SHARES_MIN ? SHARES_MIN : t->cpu_shares;
    put_int(host, "CpuShares", shares > SHARES_MAX ? SHARES_MAX : shares);
    put_int(host, "CpuPeriod", t->cpu_max > 0 ? CPU_PERIOD_US : 0);
    put_int(host, "CpuQuota", t->cpu_max > 0 ? t->cpu_max : 0);
    put_text(host, "CpusetCpus", t->cores);
    put_int(host, "Memory", t->memory_max);
    put_int(host, "MemorySwap", t->memory_max); /* the sum of both: no swap */
    put_int(host, "MemoryReservation", t->memory_low);
    put_int(host, "PidsLimit", t->pids_max);
    put_int(host, "ShmSize", t->shm_bytes);
}

/* The allocation's own directories, and no others of the host. */
static void
put_binds(struct value *host, const struct hand *h, const char *alloc, const char *task)
{
    const char *base = mem_printf(host, "%s/%s", h->policy->alloc_dir, alloc);
    const struct {
        const char *from, *to;
        bool read_only;
    } rows[] = {
        {mem_printf(host, "%s/alloc", base), "/alloc", false},
        {mem_printf(host, "%s/alloc/logs", base), "/alloc/logs", true},
        {mem_printf(host, "%s/%s/local", base, task), "/local", false},
        {mem_printf(host, "%s/%s/secrets", base, task), "/secrets", false},
    };
    struct value *mounts = value_list(host);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) { /* not "Binds": a path may hold a colon */
        struct value *m = value_map(host);
        put_text(m, "Type", "bind");
        put_text(m, "Source", rows[i].from);
        put_text(m, "Target", rows[i].to);
        value_map_set(m, "ReadOnly", value_bool(host, rows[i].read_only));
        value_list_add(mounts, m);
    }
    value_map_set(host, "Mounts", mounts);
}

static void
put_log(struct value *host)
{
    struct value *log = value_map(host), *config = value_map(host);
    put_text(config, "max-size",
             "10m"); /* of what nobody has read yet: the hand writes our files */
    put_text(config, "max-file", "2");
    put_text(log, "Type", "json-file");
    value_map_set(log, "Config", config);
    value_map_set(host, "LogConfig", log);
}

int
document_make(const void *ctx, const struct hand *h, const char *alloc, const char *task,
              const struct hand_task *t, struct value **ret, struct err *e)
{
    int r = check(h, alloc, task, t, e);
    if (r < 0)
        return r;
    struct value *doc = value_map(ctx), *host = value_map(doc);
    put_text(doc, "Image", t->image);
    put_list(doc, "Cmd", &t->command);
    put_list(doc, "Entrypoint", &t->entrypoint);
    put_list(doc, "Env", &t->env);
    put_text(doc, "WorkingDir", t->work_dir);
    put_text(doc, "User", t->user);
    put_text(doc, "Hostname", t->hostname);
    put_labels(doc, h, alloc, task, t);
    put_text(host, "NetworkMode", t->network_mode);
    put_ports(doc, host, t);
    put_limits(host, t);
    put_binds(host, h, alloc, task);
    put_log(host);
    put_list(host, "CapAdd", &t->cap_add);
    put_list(host, "CapDrop", &t->cap_drop);
    put_list(host, "ExtraHosts", &t->extra_hosts);
    put_list(host, "GroupAdd", &t->group_add);
    put_list(host, "Dns", &t->dns_servers);
    put_list(host, "DnsSearch", &t->dns_search);
    put_list(host, "DnsOptions", &t->dns_options);
    put_map(host, "Sysctls", &t->sysctls);
    value_map_set(host, "Privileged", value_bool(doc, t->privileged));
    value_map_set(host, "ReadonlyRootfs", value_bool(doc, t->readonly_rootfs));
    value_map_set(host, "Init", value_bool(doc, t->init));
    value_map_set(doc, "HostConfig", host);
    *ret = doc;
    return 0;
}

/* --- what the engine says --- */

/* Engines have year 1 for "not yet". */
static int64_t
time_of(const struct value *state, const char *name)
{
    const char *s = document_text(state, name);
    int64_t ns;
    return time_parse(s, strlen(s), &ns) == 0 && ns > 0 ? ns : 0;
}

void
document_logs(const struct value *labels, int64_t *files, int64_t *bytes)
{
    auto_mem void *tmp = mem_ctx("logs");
    const char *logs = document_text(labels, HAND_LABEL_LOGS), *colon = strchr(logs, ':');
    *files = *bytes = 0;
    if (!colon)
        return;
    (void)num_parse_i64(mem_strndup(tmp, logs, (size_t)(colon - logs)), files);
    (void)num_parse_i64(colon + 1, bytes);
}

bool
document_state(const void *ctx, const struct hand *h, const char *alloc, const char *task,
               const struct value *doc, struct hand_state *ret)
{
    const struct value *state = value_get(doc, "State");
    const struct value *labels = value_get(value_get(doc, "Config"), "Labels");
    const char *id = document_text(doc, "Id");
    if (!state || !*id || strlen(id) >= HAND_ID_MAX || !plain_word(id) ||
        !str_eq(document_text(labels, HAND_LABEL_OWNER), h->policy->alloc_dir) ||
        !str_eq(document_text(labels, HAND_LABEL_ALLOC), alloc) ||
        !str_eq(document_text(labels, HAND_LABEL_TASK), task))
        return false;
    *ret = (struct hand_state){
        .id = mem_strdup(ctx, id),
        .running = document_bool(state, "Running"),
        .pid = document_int(state, "Pid"),
        .exit_code = document_int(state, "ExitCode"),
        .oom_killed = document_bool(state, "OOMKilled"),
        .error = mem_strndup(ctx, document_text(state, "Error"), 512),
        .started_at = time_of(state, "StartedAt"),
        .finished_at = time_of(state, "FinishedAt"),
    };
    if (ret->running)
        ret->finished_at = 0;
    return true;
}
