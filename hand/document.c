/* SPDX-License-Identifier: Apache-2.0
 *
 * From an allowed task to what the engine is asked for, and from what the engine says back. Pure.
 *
 * First reading and writing members of JSON values; then the document of a container, member by
 * member, from a task that allow.c has let pass, and last of a group's network; then what the
 * engine says of containers, networks and logs. An absent or odd member of an answer counts as its
 * zero, and what does not bear the labels of its allocation and task is not ours.
 */
#include <string.h>
#include <strings.h>

#include "api/plain.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "hand/hand.h"

enum {
    CPU_PERIOD_US = 100000,
    CPU_QUOTA_MIN_US = 1000,
    SHARES_MIN = 2,
    SHARES_MAX = 262144,
    PAUSE_PIDS = 4
};

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

bool
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

/* The labels that the operator wants to see, under Nomad's names for them. */
static void
put_names(struct value *labels, const struct hand *h, const struct hand_task *t)
{
    static const char *const known[] = {"job_name",  "job_id",    "task_group_name", "task_name",
                                        "namespace", "node_name", "node_id"};
    const struct str_list *globs = &h->engine->extra_labels;
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        const char *value = str_map_get(&t->names, known[i]);
        bool wanted = false;
        for (size_t k = 0; k < globs->n; k++)
            wanted |= str_glob(globs->v[k], known[i]);
        if (wanted && value)
            value_map_set(labels, mem_printf(labels, "com.hashicorp.nomad.%s", known[i]),
                          value_str(labels, value));
    }
}

/* A job cannot take the labels by which containers are known for ours: these come last. */
static void
put_labels(struct value *doc, const struct hand *h, const char *alloc, const char *task,
           const struct hand_task *t)
{
    struct value *labels = value_map(doc);
    for (size_t i = 0; i < t->labels.n; i++)
        value_map_set(labels, t->labels.v[i].k, value_str(doc, str_or(t->labels.v[i].v, "")));
    put_names(labels, h, t);
    value_map_set(labels, HAND_LABEL_OWNER, value_str(doc, h->policy->alloc_dir));
    value_map_set(labels, HAND_LABEL_ALLOC, value_str(doc, alloc));
    value_map_set(labels, HAND_LABEL_TASK, value_str(doc, task));
    if (*h->boot)
        value_map_set(labels, HAND_LABEL_BOOT, value_str(doc, h->boot));
    const char *how = t->logs_off || h->engine->no_logs ? ":off" : t->tty ? ":tty" : "";
    value_map_set(labels, HAND_LABEL_LOGS,
                  value_str(doc, mem_printf(doc, "%lld:%lld%s", (long long)t->log_files,
                                            (long long)t->log_file_bytes, how)));
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
put_limits(struct value *host, const struct hand *h, const struct hand_task *t)
{
    int64_t shares = t->cpu_shares < SHARES_MIN ? SHARES_MIN : t->cpu_shares;
    put_int(host, "CpuShares", shares > SHARES_MAX ? SHARES_MAX : shares);
    if (t->cpu_max > 0) {
        int64_t period = t->cpu_period > 0 ? t->cpu_period : CPU_PERIOD_US;
        put_int(host, "CpuPeriod", period);
        int64_t quota = (int64_t)((double)t->cpu_max / CPU_PERIOD_US * (double)period);
        put_int(host, "CpuQuota", quota < CPU_QUOTA_MIN_US ? CPU_QUOTA_MIN_US : quota);
    }
    put_text(host, "CpusetCpus", t->cores);
    put_int(host, "Memory", t->memory_max);
    /* the sum of both */
    put_int(host, "MemorySwap", t->memory_max > 0 ? t->memory_max + t->swap : 0);
    put_int(host, "MemoryReservation", t->memory_low);
    put_int(host, "PidsLimit", t->pids_max > 0 ? t->pids_max : h->engine->pids_max);
    put_int(host, "BlkioWeight", t->io_weight);
}

struct value *
document_limits(const void *ctx, const struct hand *h, const struct hand_task *t)
{
    struct value *doc = value_map(ctx);
    put_limits(doc, h, t);
    return doc;
}

static struct value *
bind_of(const void *ctx, const char *from, const char *to, bool read_only)
{
    struct value *m = value_map(ctx);
    put_text(m, "Type", "bind");
    put_text(m, "Source", from);
    put_text(m, "Target", to);
    value_map_set(m, "ReadOnly", value_bool(ctx, read_only));
    return m;
}

static struct value *
mount_of(const void *ctx, const struct hand_mount *t, const char *source)
{
    struct value *options = value_map(ctx), *driver = value_map(ctx);
    struct value *m = bind_of(ctx, source, t->target, t->read_only);
    const char *type = str_eq(t->type, "bind")    ? "Bind"
                       : str_eq(t->type, "tmpfs") ? "Tmpfs"
                                                  : "Volume";
    put_text(m, "Type", t->type);
    if (str_eq(type, "Bind")) {
        put_text(options, "Propagation", t->propagation);
    } else if (str_eq(type, "Tmpfs")) {
        put_int(options, "SizeBytes", t->size);
        put_int(options, "Mode", t->mode);
    } else {
        value_map_set(options, "NoCopy", value_bool(ctx, t->no_copy));
        put_map(options, "Labels", &t->labels);
        put_text(driver, "Name", t->driver);
        put_map(driver, "Options", &t->driver_options);
        if (driver->map.n > 0)
            value_map_set(options, "DriverConfig", driver);
    }
    value_map_set(m, mem_printf(ctx, "%sOptions", type), options);
    return m;
}

/* The allocation's own directories, and what the task asks for beside. Not "Binds": a path may hold
 * a colon. */
static void
put_mounts(struct value *host, const struct hand *h, const char *alloc, const char *task,
           const struct hand_task *t, const struct str_list *sources)
{
    const char *base = mem_printf(host, "%s/%s", h->policy->alloc_dir, alloc);
    struct value *mounts = value_list(host);
    value_list_add(mounts, bind_of(host, mem_printf(host, "%s/alloc", base), "/alloc", false));
    value_list_add(mounts,
                   bind_of(host, mem_printf(host, "%s/alloc/logs", base), "/alloc/logs", true));
    value_list_add(mounts,
                   bind_of(host, mem_printf(host, "%s/%s/local", base, task), "/local", false));
    value_list_add(mounts,
                   bind_of(host, mem_printf(host, "%s/%s/secrets", base, task), "/secrets", false));
    for (size_t i = 0; i < t->mounts.n; i++)
        value_list_add(mounts, mount_of(host, t->mounts.v[i], sources->v[i]));
    value_map_set(host, "Mounts", mounts);
}

static void
put_devices(struct value *host, const struct hand_task *t)
{
    struct value *all = value_list(host);
    for (size_t i = 0; i < t->devices.n; i++) {
        const struct hand_device *d = t->devices.v[i];
        struct value *v = value_map(host);
        put_text(v, "PathOnHost", d->host_path);
        put_text(v, "PathInContainer", str_empty(d->path) ? d->host_path : d->path);
        put_text(v, "CgroupPermissions", str_empty(d->permissions) ? "rwm" : d->permissions);
        value_list_add(all, v);
    }
    if (t->devices.n > 0)
        value_map_set(host, "Devices", all);
}

static void
put_ulimits(struct value *host, const struct hand_task *t)
{
    struct value *all = value_list(host);
    for (size_t i = 0; i < t->ulimits.n; i++) {
        const struct hand_ulimit *u = t->ulimits.v[i];
        struct value *v = value_map(host);
        put_text(v, "Name", u->name);
        value_map_set(v, "Soft", value_int(host, u->soft));
        value_map_set(v, "Hard", value_int(host, u->hard));
        value_list_add(all, v);
    }
    if (t->ulimits.n > 0)
        value_map_set(host, "Ulimits", all);
}

/* Sets the driver of the engine's log, bounded by default: nobody has read it yet, the hand writes
 * our files. */
static void
put_log(struct value *host, const struct hand *h, const struct hand_task *t)
{
    struct value *log = value_map(host), *config = value_map(host);
    bool own = !str_empty(t->log_driver) || t->log_options.n > 0;
    const struct str_map *options = own ? &t->log_options : &h->engine->log_options;
    const char *type = own ? t->log_driver : h->engine->log_driver;
    put_text(config, "max-size", "10m");
    put_text(config, "max-file", "2");
    for (size_t i = 0; i < options->n; i++)
        put_text(config, options->v[i].k, options->v[i].v);
    put_text(log, "Type", str_empty(type) ? "json-file" : type);
    value_map_set(log, "Config", config);
    value_map_set(host, "LogConfig", log);
}

/* Addresses and names in the network that network_mode names. */
static void
put_endpoint(struct value *doc, const struct hand_task *t)
{
    struct value *end = value_map(doc), *at = value_map(doc), *all = value_map(doc);
    put_list(end, "Aliases", &t->network_aliases);
    put_text(at, "IPv4Address", t->ipv4_address);
    put_text(at, "IPv6Address", t->ipv6_address);
    if (at->map.n > 0)
        value_map_set(end, "IPAMConfig", at);
    if (end->map.n == 0)
        return;
    value_map_set(all, t->network_mode, end);
    value_map_set(at = value_map(doc), "EndpointsConfig", all);
    value_map_set(doc, "NetworkingConfig", at);
}

static void
put_health(struct value *doc, const struct hand_task *t)
{
    static const char *none[] = {"NONE"};
    const struct str_list test = {none, 1};
    struct value *health = value_map(doc);
    put_list(health, "Test", &test);
    if (t->no_healthcheck)
        value_map_set(doc, "Healthcheck", health);
}

/* Takes away the capabilities that the engine gives by itself and the client does not allow: a list
 * of those to add would be given to a user other than root as well. */
static void
put_caps(struct value *host, const struct hand *h, const struct hand_task *t)
{
    static const char *const given[] = {"audit_write",      "chown",     "dac_override", "fowner",
                                        "fsetid",           "kill",      "mknod",        "net_raw",
                                        "setfcap",          "setgid",    "setuid",       "setpcap",
                                        "net_bind_service", "sys_chroot"};
    struct str_list drop = {0};
    for (size_t i = 0; i < t->cap_drop.n; i++)
        list_add(host, drop, t->cap_drop.v[i]);
    for (size_t i = 0; i < ARRAY_LEN(given) && !t->privileged; i++)
        if (!allow_cap(h, given[i]))
            list_add(host, drop, given[i]);
    put_list(host, "CapAdd", &t->cap_add);
    put_list(host, "CapDrop", &drop);
}

static void
put_host(struct value *host, const struct hand *h, const struct hand_task *t)
{
    bool own = t->dns_servers.n > 0 || !str_empty(t->network_mode); /* a group's has its own */
    const struct str_list *dns = own ? &t->dns_servers : &h->engine->dns_servers;
    const struct {
        const char *name;
        const struct str_list *l;
    } lists[] = {{"ExtraHosts", &t->extra_hosts},
                 {"GroupAdd", &t->group_add},
                 {"Dns", dns},
                 {"DnsSearch", &t->dns_search},
                 {"DnsOptions", &t->dns_options},
                 {"SecurityOpt", &t->security_opt}};
    const struct {
        const char *name, *text;
    } texts[] = {{"NetworkMode", t->network_mode}, {"PidMode", t->pid_mode},
                 {"IpcMode", t->ipc_mode},         {"UTSMode", t->uts_mode},
                 {"UsernsMode", t->userns_mode},   {"CgroupnsMode", t->cgroupns_mode},
                 {"Runtime", t->runtime}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        put_list(host, lists[i].name, lists[i].l);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        put_text(host, texts[i].name, texts[i].text);
    put_map(host, "Sysctls", &t->sysctls);
    put_map(host, "StorageOpt", &t->storage_opt);
    put_int(host, "OomScoreAdj",
            t->oom_score_adj != 0 ? t->oom_score_adj : h->engine->oom_score_adj);
    put_int(host, "ShmSize", t->shm_bytes);
    value_map_set(host, "Privileged", value_bool(host, t->privileged));
    value_map_set(host, "ReadonlyRootfs", value_bool(host, t->readonly_rootfs));
    value_map_set(host, "Init", value_bool(host, t->init));
}

struct value *
document_make(const void *ctx, const struct hand *h, const char *alloc, const char *task,
              const struct hand_task *t, const struct str_list *sources)
{
    struct value *doc = value_map(ctx), *host = value_map(doc);
    put_text(doc, "Image", t->image);
    put_list(doc, "Cmd", &t->command);
    put_list(doc, "Entrypoint", &t->entrypoint);
    put_list(doc, "Env", &t->env);
    put_text(doc, "WorkingDir", t->work_dir);
    put_text(doc, "User", t->user);
    put_text(doc, "Hostname", t->hostname);
    put_text(doc, "MacAddress", t->mac_address);
    value_map_set(doc, "Tty", value_bool(doc, t->tty));
    value_map_set(doc, "OpenStdin", value_bool(doc, t->interactive));
    put_health(doc, t);
    put_labels(doc, h, alloc, task, t);
    put_ports(doc, host, t);
    put_limits(host, h, t);
    put_mounts(host, h, alloc, task, t, sources);
    put_devices(host, t);
    put_ulimits(host, t);
    put_log(host, h, t);
    put_caps(host, h, t);
    put_host(host, h, t);
    put_endpoint(doc, t);
    value_map_set(doc, "HostConfig", host);
    return doc;
}

/* Has nothing that it does not need to sit there; comes again with its engine. */
struct value *
document_network(const void *ctx, const struct hand *h, const char *alloc,
                 const struct hand_network *n)
{
    static const char *const all[] = {"ALL"}, *const command[] = {"/pause"};
    static const char *const opts[] = {"no-new-privileges"};
    struct value *doc = value_map(ctx), *host = value_map(doc), *labels = value_map(doc);
    struct value *log = value_map(doc), *again = value_map(doc);
    const struct hand_task ports = {.ports = n->ports};
    put_text(doc, "Image", NETWORK_IMAGE);
    put_list(doc, "Cmd", &(struct str_list){(const char **)(uintptr_t)command, 1});
    put_text(doc, "Hostname", n->hostname);
    put_text(labels, HAND_LABEL_OWNER, h->policy->alloc_dir);
    put_text(labels, HAND_LABEL_ALLOC, alloc);
    put_text(labels, HAND_LABEL_NETWORK, "1");
    value_map_set(doc, "Labels", labels);
    put_ports(doc, host, &ports);
    put_text(host, "NetworkMode", n->mode);
    put_list(host, "Dns", &n->dns_servers);
    put_list(host, "DnsSearch", &n->dns_search);
    put_list(host, "DnsOptions", &n->dns_options);
    put_list(host, "CapDrop", &(struct str_list){(const char **)(uintptr_t)all, 1});
    put_list(host, "SecurityOpt", &(struct str_list){(const char **)(uintptr_t)opts, 1});
    value_map_set(host, "ReadonlyRootfs", value_bool(host, true));
    put_int(host, "PidsLimit", PAUSE_PIDS);
    if (n->joined) { /* by its directory the warden knows whose it is */
        struct value *mounts = value_list(host), *sysctls = value_map(host);
        const char *dir = mem_printf(host, "%s/%s/alloc", h->policy->alloc_dir, alloc);
        value_list_add(mounts, bind_of(host, dir, "/alloc", true));
        value_map_set(host, "Mounts", mounts);
        put_text(sysctls, "net.ipv4.ip_unprivileged_port_start", "0");
        value_map_set(host, "Sysctls", sysctls);
    }
    put_text(log, "Type", "none");
    value_map_set(host, "LogConfig", log);
    put_text(again, "Name", "unless-stopped");
    value_map_set(host, "RestartPolicy", again);
    value_map_set(doc, "HostConfig", host);
    return doc;
}

/* --- what the engine says --- */

bool
document_network_state(const void *ctx, const struct hand *h, const char *alloc,
                       const struct value *doc, struct hand_network_state *ret, bool *ret_running)
{
    const struct value *labels = value_get(value_get(doc, "Config"), "Labels");
    const struct value *net = value_get(doc, "NetworkSettings"), *all = value_get(net, "Networks");
    const char *id = document_text(doc, "Id"), *address = document_text(net, "IPAddress");
    if (!*id || strlen(id) >= HAND_ID_MAX || !plain_word(id) ||
        !str_eq(document_text(labels, HAND_LABEL_OWNER), h->policy->alloc_dir) ||
        !str_eq(document_text(labels, HAND_LABEL_ALLOC), alloc) ||
        !str_eq(document_text(labels, HAND_LABEL_NETWORK), "1"))
        return false;
    for (size_t i = 0; !*address && all && all->kind == VALUE_MAP && i < all->map.n; i++)
        address = document_text(all->map.v[i].v, "IPAddress");
    *ret = (struct hand_network_state){.id = mem_strdup(ctx, id),
                                       .address = mem_strndup(ctx, address, 64),
                                       .pid = document_int(value_get(doc, "State"), "Pid")};
    *ret_running = document_bool(value_get(doc, "State"), "Running");
    return true;
}

/* Engines have year 1 for "not yet". */
static int64_t
time_of(const struct value *state, const char *name)
{
    const char *s = document_text(state, name);
    int64_t ns;
    return time_parse(s, strlen(s), &ns) == 0 && ns > 0 ? ns : 0;
}

void
document_logs(const struct value *labels, struct log_shape *ret)
{
    auto_mem void *tmp = mem_ctx("logs");
    char *save = NULL, *logs = mem_strdup(tmp, document_text(labels, HAND_LABEL_LOGS));
    const char *files = strtok_r(logs, ":", &save),
               *bytes = files ? strtok_r(NULL, ":", &save) : NULL;
    *ret = (struct log_shape){0};
    if (!bytes)
        return;
    (void)num_parse_i64(files, &ret->files);
    (void)num_parse_i64(bytes, &ret->file_bytes);
    const char *how = strtok_r(NULL, ":", &save);
    ret->tty = str_eq(how, "tty");
    ret->off = str_eq(how, "off");
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
    const char *boot = document_text(labels, HAND_LABEL_BOOT);
    if (ret->running)
        ret->finished_at = 0;
    else if (ret->started_at != 0 && *boot && *h->boot && !str_eq(boot, h->boot))
        ret->taken_by = "the machine was restarted while the task ran";
    return true;
}
