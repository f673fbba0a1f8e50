/* SPDX-License-Identifier: Apache-2.0
 *
 * docker: from a task's config to what is asked of the engine hand; hand.c does the rest. What a
 * job may have of it is decided by the hand (hand/document.c). Pure.
 */
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "drivers/engine/hand.h"

enum { PERIOD_US = 100000 };

static const struct driver_option options[] = {
    {"image", DRIVER_STRING, .required = true},
    {"command", DRIVER_STRING},
    {"args", DRIVER_STRINGS},
    {"entrypoint", DRIVER_STRINGS},
    {"work_dir", DRIVER_STRING},
    {"hostname", DRIVER_STRING},
    {"labels", DRIVER_MAP},
    {"network_mode", DRIVER_STRING},
    {"ports", DRIVER_STRINGS},
    {"port_map", DRIVER_MAP},
    {"privileged", DRIVER_BOOL},
    {"cap_add", DRIVER_STRINGS},
    {"cap_drop", DRIVER_STRINGS},
    {"readonly_rootfs", DRIVER_BOOL},
    {"init", DRIVER_BOOL},
    {"pids_limit", DRIVER_INT},
    {"extra_hosts", DRIVER_STRINGS},
    {"group_add", DRIVER_STRINGS},
    {"shm_size", DRIVER_INT},
    {"dns_servers", DRIVER_STRINGS},
    {"dns_search_domains", DRIVER_STRINGS},
    {"dns_options", DRIVER_STRINGS},
    {"sysctl", DRIVER_MAP},
    {"cpu_hard_limit", DRIVER_BOOL},
    {"memory_hard_limit", DRIVER_INT},
    {"force_pull", DRIVER_BOOL},
    {"image_pull_timeout", DRIVER_DURATION},
    {"auth", DRIVER_MAP},
    /* of Nomad's, not there yet */
    {"advertise_ipv6_address", .later = true},
    {"auth_soft_fail", .later = true},
    {"cgroupns", .later = true},
    {"container_exists_attempts", .later = true},
    {"cpu_cfs_period", .later = true},
    {"cpuset_cpus", .later = true},
    {"devices", .later = true},
    {"healthchecks", .later = true},
    {"interactive", .later = true},
    {"ipc_mode", .later = true},
    {"ipv4_address", .later = true},
    {"ipv6_address", .later = true},
    {"isolation", .later = true},
    {"load", .later = true},
    {"logging", .later = true},
    {"mac_address", .later = true},
    {"mount", .later = true},
    {"mounts", .later = true},
    {"network_aliases", .later = true},
    {"oom_score_adj", .later = true},
    {"pid_mode", .later = true},
    {"runtime", .later = true},
    {"security_opt", .later = true},
    {"storage_opt", .later = true},
    {"tty", .later = true},
    {"ulimit", .later = true},
    {"userns_mode", .later = true},
    {"uts_mode", .later = true},
    {"volume_driver", .later = true},
    {"volumes", .later = true},
};

static void
fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    const struct hand_info *i = host->engine;
    ret->detected = i && !str_empty(i->version);
    ret->healthy = i && i->healthy;
    ret->health_description =
        i ? mem_strdup(ctx, str_or(i->description, ""))
          : "docker is off: plugin \"docker\" { config { enabled = true } } turns it on";
    for (size_t k = 0; ret->healthy && k < i->attributes.n; k++)
        str_map_set(ctx, &ret->attributes, i->attributes.v[k].k, i->attributes.v[k].v);
}

static int
check(const struct value *config, struct err *e)
{
    const char *command = driver_string(config, "command", "");
    size_t n = strlen(command);
    if (n > 0 && (strchr(" \t\n", command[0]) || strchr(" \t\n", command[n - 1])))
        return err_set(e, -ERR_INVALID, "command \"%.64s\" begins or ends with a blank", command);
    if (driver_int(config, "pids_limit", 0) < 0 || driver_int(config, "shm_size", 0) < 0 ||
        driver_int(config, "memory_hard_limit", 0) < 0)
        return err_set(e, -ERR_INVALID,
                       "pids_limit, shm_size and memory_hard_limit may not be negative");
    return 0;
}

/* --- ports --- */

static const struct driver_port *
find_port(const struct driver_input *in, const char *label)
{
    for (size_t i = 0; i < in->n_ports; i++)
        if (str_eq(in->ports[i].label, label))
            return &in->ports[i];
    return NULL;
}

static int
put_port(struct hand_task *t, const struct driver_input *in, const char *option, const char *label,
         int64_t to, struct err *e)
{
    const struct driver_port *p = find_port(in, label);
    if (!p)
        return err_set(e, -ERR_INVALID, "%s: there is no port \"%.64s\": check the network block",
                       option, label);
    struct hand_port *h = mem_new(t, struct hand_port);
    *h = (struct hand_port){.host_ip = mem_strdup(h, p->host_ip),
                            .host_port = p->value,
                            .port = to > 0      ? to
                                    : p->to > 0 ? p->to
                                                : p->value};
    list_add(t, t->ports, h);
    return 0;
}

static int
put_ports(struct hand_task *t, const struct driver_input *in, struct err *e)
{
    auto_mem void *tmp = mem_ctx("ports");
    const struct value *map = driver_map(in->config, "port_map");
    struct str_list labels;
    int r = 0;
    driver_strings(tmp, in->config, "ports", &labels);
    for (size_t i = 0; i < labels.n && r == 0; i++)
        r = put_port(t, in, "ports", labels.v[i], 0, e);
    for (size_t i = 0; map && i < map->map.n && r == 0; i++) {
        const struct value *v = map->map.v[i].v;
        int64_t to = v->kind == VALUE_INT ? v->i : 0;
        if (v->kind == VALUE_STRING)
            (void)num_parse_i64(v->str.s, &to);
        if (to < 1 || to > 65535)
            return err_set(e, -ERR_INVALID, "port_map: \"%.64s\" is not a port from 1 to 65535",
                           map->map.v[i].k);
        r = put_port(t, in, "port_map", map->map.v[i].k, to, e);
    }
    return r;
}

/* --- limits --- */

static int
put_limits(struct hand_task *t, const struct driver_input *in, struct err *e)
{
    const struct allocated_cpu_resources *cpu = in->resources ? in->resources->cpu : NULL;
    const struct allocated_memory_resources *m = in->resources ? in->resources->memory : NULL;
    int64_t high = driver_int(in->config, "memory_hard_limit", 0);
    if (m) {
        high = m->memory_max_mb > high ? m->memory_max_mb : high;
        if (high > 0 && high < m->memory_mb)
            return err_set(e, -ERR_INVALID,
                           "task memory requirements exceed driver hard limit of %lld MB",
                           (long long)high);
        t->memory_max = m->memory_max_mb < 0 ? 0 : (high > 0 ? high : m->memory_mb) << 20;
        t->memory_low = high > 0 || m->memory_max_mb < 0 ? m->memory_mb << 20 : 0;
    }
    for (size_t i = 0; cpu && i < cpu->reserved_cores.n; i++)
        t->cores = mem_printf(t, "%s%s%lld", str_or(t->cores, ""), i ? "," : "",
                              (long long)cpu->reserved_cores.v[i]);
    t->cpu_shares = cpu ? cpu->cpu_shares : 0;
    if (!cpu || !driver_bool(in->config, "cpu_hard_limit", false) || cpu->reserved_cores.n > 0)
        return 0;
    if (in->core_mhz <= 0)
        return err_set(e, -ERR_UNSUPPORTED,
                       "cpu_hard_limit: the frequency of this node's processors is not known: set "
                       "client.cpu_total_compute");
    t->cpu_max = (int64_t)((double)cpu->cpu_shares / in->core_mhz * PERIOD_US + 0.5);
    return 0;
}

static void
put_map(struct hand_task *t, struct str_map *to, const struct value *map)
{
    for (size_t i = 0; map && i < map->map.n; i++) {
        const struct value *v = map->map.v[i].v;
        str_map_set(t, to, map->map.v[i].k,
                    v->kind == VALUE_STRING ? v->str.s
                    : v->kind == VALUE_INT  ? mem_printf(t, "%lld", (long long)v->i)
                                            : (v->b ? "true" : "false"));
    }
}

static void
put_auth(struct hand_task *t, const struct value *map)
{
    if (!map)
        return;
    t->auth = mem_new(t, struct hand_auth);
    t->auth->username = mem_strdup(t, driver_string(map, "username", ""));
    t->auth->password = mem_strdup(t, driver_string(map, "password", ""));
    t->auth->server_address = mem_strdup(t, driver_string(map, "server_address", ""));
}

static int
refuse(const struct driver_input *in, struct err *e)
{
    if (in->own_network)
        return err_set(e, -ERR_UNSUPPORTED,
                       "driver \"docker\" cannot join the network of a group with a mode of its "
                       "own yet: leave "
                       "the mode out, and name the group's ports in \"ports\"");
    if (in->egress || in->bind)
        return err_set(
            e, -ERR_UNSUPPORTED,
            "egress and bind rules do not hold in a container of driver \"docker\": take them out");
    return 0;
}

static void
put_program(struct hand_task *t, const struct driver_input *in)
{
    const struct value *c = in->config;
    const char *command = driver_string(c, "command", "");
    struct str_list args;
    if (*command)
        list_add(t, t->command, mem_strdup(t, command));
    driver_strings(t, c, "args", &args);
    for (size_t i = 0; i < args.n; i++)
        list_add(t, t->command, args.v[i]);
    driver_strings(t, c, "entrypoint", &t->entrypoint);
    for (size_t i = 0; i < in->env->n; i++)
        list_add(t, t->env, mem_strdup(t, in->env->v[i]));
}

static int
task_of(const void *ctx, const struct driver_input *in, struct hand_task **ret, struct err *e)
{
    static const char scheme[] = "https://";
    const struct value *c = in->config;
    const struct log_config *log = in->task->log_config;
    struct hand_task *t = mem_new(ctx, struct hand_task);
    const char *image = driver_string(c, "image", "");
    t->image =
        mem_strdup(t, strncmp(image, scheme, strlen(scheme)) == 0 ? image + strlen(scheme) : image);
    t->work_dir = mem_strdup(t, driver_string(c, "work_dir", ""));
    t->hostname = mem_strdup(t, driver_string(c, "hostname", ""));
    t->user = mem_strdup(t, str_or(in->user, ""));
    t->network_mode = mem_strdup(t, driver_string(c, "network_mode", ""));
    t->privileged = driver_bool(c, "privileged", false);
    t->readonly_rootfs = driver_bool(c, "readonly_rootfs", false);
    t->init = driver_bool(c, "init", false);
    t->pids_max = driver_int(c, "pids_limit", 0);
    t->shm_bytes = driver_int(c, "shm_size", 0);
    t->log_files = log && log->max_files.set ? log->max_files.v : 0;
    t->log_file_bytes = log && log->max_file_size_mb.set ? log->max_file_size_mb.v << 20 : 0;
    t->force_pull = driver_bool(c, "force_pull", false);
    t->pull_timeout = driver_duration(c, "image_pull_timeout", 0);
    put_auth(t, driver_map(c, "auth"));
    put_program(t, in);
    put_map(t, &t->labels, driver_map(c, "labels"));
    put_map(t, &t->sysctls, driver_map(c, "sysctl"));
    driver_strings(t, c, "cap_add", &t->cap_add);
    driver_strings(t, c, "cap_drop", &t->cap_drop);
    driver_strings(t, c, "extra_hosts", &t->extra_hosts);
    driver_strings(t, c, "group_add", &t->group_add);
    driver_strings(t, c, "dns_servers", &t->dns_servers);
    driver_strings(t, c, "dns_search_domains", &t->dns_search);
    driver_strings(t, c, "dns_options", &t->dns_options);
    int r = refuse(in, e);
    r = r < 0 ? r : put_ports(t, in, e);
    r = r < 0 ? r : put_limits(t, in, e);
    if (r < 0)
        talloc_free(t);
    else
        *ret = t;
    return r;
}

static struct engine_task *
start(const struct engine_place *p, const struct driver_input *in, const struct engine_events *up,
      void *arg, struct err *e)
{
    auto_mem void *tmp = mem_ctx("docker");
    struct hand_task *t = NULL;
    return task_of(tmp, in, &t, e) < 0 ? NULL : hand_start(p, t, up, arg);
}

const struct driver driver_docker = {
    .can = &drivers_can[DRIVER_docker],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = 0, /* the image's */
    .check = check,
    .fingerprint = fingerprint,
    .engine = &(const struct engine){.start = start,
                                     .adopt = hand_adopt,
                                     .signal = hand_signal,
                                     .stop = hand_stop,
                                     .kill = hand_kill,
                                     .forget = hand_forget,
                                     .process = hand_process,
                                     .exec = &hand_exec_ops,
                                     .close = hand_close},
};
