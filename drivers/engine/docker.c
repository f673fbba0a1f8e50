/* SPDX-License-Identifier: Apache-2.0
 *
 * docker: from a task's config to what is asked of the engine hand; hand.c does the rest. What a
 * job may have of it is decided by the hand (hand/allow.c). Pure.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "drivers/engine/convert.h"
#include "drivers/engine/hand_client.h"

static const char *const auth_keys[] = {"username", "password", "email", "server_address", NULL};
static const char *const device_keys[] = {"host_path", "container_path", "cgroup_permissions",
                                          NULL};
static const char *const health_keys[] = {"disable", NULL};
static const char *const logging_keys[] = {"type", "driver", "config", NULL};
static const char *const mount_keys[] = {
    "type",         "source",        "target",         "readonly",
    "bind_options", "tmpfs_options", "volume_options", NULL};

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
    {"auth", DRIVER_MAP, .keys = auth_keys},
    {"auth_soft_fail", DRIVER_BOOL},
    {"cgroupns", DRIVER_STRING},
    {"container_exists_attempts", DRIVER_INT}, /* a container of that name is ours, or is refused */
    {"cpu_cfs_period", DRIVER_INT},
    {"cpuset_cpus", DRIVER_STRING}, /* as in Nomad: resources.cores decides */
    {"devices", DRIVER_BLOCKS, .keys = device_keys},
    {"healthchecks", DRIVER_BLOCKS, .keys = health_keys},
    {"interactive", DRIVER_BOOL},
    {"ipc_mode", DRIVER_STRING},
    {"ipv4_address", DRIVER_STRING},
    {"ipv6_address", DRIVER_STRING},
    {"load", DRIVER_STRING},
    {"logging", DRIVER_BLOCKS, .keys = logging_keys},
    {"mac_address", DRIVER_STRING},
    {"mount", DRIVER_BLOCKS, .keys = mount_keys},
    {"mounts", DRIVER_BLOCKS, .keys = mount_keys},
    {"network_aliases", DRIVER_STRINGS},
    {"oom_score_adj", DRIVER_INT},
    {"pid_mode", DRIVER_STRING},
    {"runtime", DRIVER_STRING},
    {"security_opt", DRIVER_STRINGS},
    {"storage_opt", DRIVER_MAP},
    {"tty", DRIVER_BOOL},
    {"ulimit", DRIVER_MAP},
    {"userns_mode", DRIVER_STRING},
    {"uts_mode", DRIVER_STRING},
    {"volume_driver", DRIVER_STRING},
    {"volumes", DRIVER_STRINGS},
    {"advertise_ipv6_address", .why = "no service is told the address of a container yet"},
    {"isolation", .why = "it is for Windows"},
};

static void
docker_fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    convert_fingerprint(ctx, host, "docker", ret);
}

static int
docker_check(const struct value *config, struct err *e)
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

/* --- mounts --- */

static int
one_mount(struct hand_task *t, const struct value *block, struct err *e)
{
    struct hand_mount *m = mem_new(t, struct hand_mount);
    const struct value *bind = driver_map(block, "bind_options");
    const struct value *tmpfs = driver_map(block, "tmpfs_options");
    const struct value *volume = driver_block(block, "volume_options", 0);
    const struct value *driver = driver_block(volume, "driver_config", 0);
    m->type = mem_strdup(m, driver_string(block, "type", "volume"));
    m->source = mem_strdup(m, driver_string(block, "source", ""));
    m->target = mem_strdup(m, driver_string(block, "target", ""));
    m->read_only = driver_bool(block, "readonly", false);
    m->propagation = mem_strdup(m, driver_string(bind, "propagation", ""));
    m->size = driver_int(tmpfs, "size", 0);
    m->mode = driver_int(tmpfs, "mode", 0);
    m->no_copy = driver_bool(volume, "no_copy", false);
    convert_map(t, &m->labels, driver_map(volume, "labels"));
    m->driver = mem_strdup(m, driver_string(driver, "name", ""));
    convert_map(t, &m->driver_options, driver_map(driver, "options"));
    const struct {
        const char *type, *options;
        bool given;
    } rows[] = {{"bind", "bind_options", bind != NULL},
                {"tmpfs", "tmpfs_options", tmpfs != NULL},
                {"volume", "volume_options", volume != NULL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].given && !str_eq(m->type, rows[i].type))
            return err_set(e, -ERR_INVALID, "mount at \"%.128s\": %s is for type %s", m->target,
                           rows[i].options, rows[i].type);
    list_add(t, t->mounts, m);
    return 0;
}

static int
put_mounts(struct hand_task *t, const struct value *c, struct err *e)
{
    static const char *const names[] = {"mount", "mounts"};
    const struct value *block;
    int r = 0;
    for (size_t k = 0; k < ARRAY_LEN(names); k++)
        for (size_t i = 0; r == 0 && (block = driver_block(c, names[k], i)) != NULL; i++)
            r = one_mount(t, block, e);
    return r;
}

static int
put_devices(struct hand_task *t, const struct value *c, struct err *e)
{
    const struct value *d;
    int r = 0;
    for (size_t i = 0; r == 0 && (d = driver_block(c, "devices", i)) != NULL; i++)
        r = convert_device(t, driver_string(d, "host_path", ""),
                           driver_string(d, "container_path", ""),
                           driver_string(d, "cgroup_permissions", ""), e);
    return r;
}

static void
put_logging(struct hand_task *t, const struct value *c)
{
    const struct value *log = driver_block(c, "logging", 0);
    const char *type = driver_string(log, "type", "");
    t->log_driver = mem_strdup(t, *type ? type : driver_string(log, "driver", ""));
    convert_map(t, &t->log_options, driver_map(log, "config"));
}

static const struct convert_row plain[] = {
    ROW("work_dir", STRING, work_dir),          ROW("hostname", STRING, hostname),
    ROW("network_mode", STRING, network_mode),  ROW("pid_mode", STRING, pid_mode),
    ROW("ipc_mode", STRING, ipc_mode),          ROW("uts_mode", STRING, uts_mode),
    ROW("userns_mode", STRING, userns_mode),    ROW("cgroupns", STRING, cgroupns_mode),
    ROW("load", STRING, load),                  ROW("runtime", STRING, runtime),
    ROW("ipv4_address", STRING, ipv4_address),  ROW("ipv6_address", STRING, ipv6_address),
    ROW("mac_address", STRING, mac_address),    ROW("privileged", BOOL, privileged),
    ROW("readonly_rootfs", BOOL, readonly_rootfs), ROW("init", BOOL, init),
    ROW("force_pull", BOOL, force_pull),        ROW("tty", BOOL, tty),
    ROW("interactive", BOOL, interactive),      ROW("pids_limit", INT, pids_max),
    ROW("shm_size", INT, shm_bytes),            ROW("oom_score_adj", INT, oom_score_adj),
    ROW("cpu_cfs_period", INT, cpu_period),     ROW("cap_add", STRINGS, cap_add),
    ROW("cap_drop", STRINGS, cap_drop),         ROW("extra_hosts", STRINGS, extra_hosts),
    ROW("group_add", STRINGS, group_add),       ROW("dns_servers", STRINGS, dns_servers),
    ROW("dns_search_domains", STRINGS, dns_search), ROW("dns_options", STRINGS, dns_options),
    ROW("security_opt", STRINGS, security_opt), ROW("network_aliases", STRINGS, network_aliases),
    ROW("labels", MAP, labels),                 ROW("sysctl", MAP, sysctls),
    ROW("storage_opt", MAP, storage_opt),
};

static int
task_of(const void *ctx, const struct driver_input *in, struct hand_task **ret, struct err *e)
{
    const struct value *c = in->config;
    struct hand_task *t = mem_new(ctx, struct hand_task);
    convert_image(t, c, "https://");
    convert_common(t, in);
    t->no_healthcheck = driver_bool(driver_block(c, "healthchecks", 0), "disable", false);
    convert_rows(t, c, plain, ARRAY_LEN(plain));
    put_logging(t, c);
    int r = convert_ports(t, in, e);
    r = r < 0 ? r : convert_limits(t, in, e);
    r = r < 0 ? r : convert_volumes(t, c, driver_string(c, "volume_driver", ""), e);
    r = r < 0 ? r : put_mounts(t, c, e);
    r = r < 0 ? r : put_devices(t, c, e);
    r = r < 0 ? r : convert_ulimits(t, driver_map(c, "ulimit"), e);
    r = r < 0 ? r : convert_network(t, in, "docker", e);
    convert_isolation(t, in);
    if (r < 0)
        talloc_free(t);
    else
        *ret = t;
    return r;
}

HAND_VERBS(task_of)

const struct driver driver_docker = {
    .can = &drivers_can[DRIVER_docker],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = 0, /* the image's */
    .check = docker_check,
    .fingerprint = docker_fingerprint,
    .engine = HAND_ENGINE,
    .ask = task_of,
};
