/* SPDX-License-Identifier: Apache-2.0
 *
 * podman: job files of Nomad's driver of this name, by the interface that podman's service has in
 * common with docker's engine; hand.c does the rest. What a job may have of it is decided by the
 * hand (hand/allow.c). Pure.
 */
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "drivers/engine/convert.h"
#include "drivers/engine/hand_client.h"

static const char *const auth_keys[] = {"username", "password", "tls_verify", NULL};
static const char *const logging_keys[] = {"driver", "options", NULL};

static const struct driver_option options[] = {
    {"image", DRIVER_STRING, .required = true},
    {"command", DRIVER_STRING},
    {"args", DRIVER_STRINGS},
    {"entrypoint", DRIVER_WORDS},
    {"working_dir", DRIVER_STRING},
    {"hostname", DRIVER_STRING},
    {"labels", DRIVER_MAP},
    {"network_mode", DRIVER_STRING},
    {"ipv4_address", DRIVER_STRING},
    {"ipv6_address", DRIVER_STRING},
    {"ports", DRIVER_STRINGS},
    {"port_map", DRIVER_MAP},
    {"extra_hosts", DRIVER_STRINGS},
    {"auth", DRIVER_MAP, .keys = auth_keys},
    {"auth_soft_fail", DRIVER_BOOL},
    {"force_pull", DRIVER_BOOL},
    {"image_pull_timeout", DRIVER_DURATION},
    {"cap_add", DRIVER_STRINGS},
    {"cap_drop", DRIVER_STRINGS},
    {"privileged", DRIVER_BOOL},
    {"security_opt", DRIVER_STRINGS},
    {"apparmor_profile", DRIVER_STRING},
    {"userns", DRIVER_STRING},
    {"ipc_mode", DRIVER_STRING},
    {"readonly_rootfs", DRIVER_BOOL},
    {"init", DRIVER_BOOL},
    {"tty", DRIVER_BOOL},
    {"tmpfs", DRIVER_STRINGS},
    {"volumes", DRIVER_STRINGS},
    {"devices", DRIVER_STRINGS},
    {"sysctl", DRIVER_MAP},
    {"ulimit", DRIVER_MAP},
    {"shm_size", DRIVER_STRING},
    {"pids_limit", DRIVER_INT},
    {"oom_score_adj", DRIVER_INT},
    {"memory_reservation", DRIVER_STRING},
    {"cpu_hard_limit", DRIVER_BOOL},
    {"cpu_cfs_period", DRIVER_INT},
    {"logging", DRIVER_BLOCKS, .keys = logging_keys},
    {"socket", DRIVER_STRING},
    {"arch", .why = "the image is that of this machine"},
    {"os", .why = "the image is that of this machine"},
    {"variant", .why = "the image is that of this machine"},
    {"init_path", .why = "it would be a program of the host's: the engine has one of its own"},
    {"memory_swap", .why = "a task has no swap"},
    {"memory_swappiness", .why = "a task has no swap"},
    {"selinux_opts", .why = "labels are the engine's: take it out"},
    {"static_ips", .why = "ipv4_address and ipv6_address are supported"},
    {"static_mac", .why = "the engine chooses it"},
};

static void
podman_fingerprint(const void *ctx, const struct driver_host *host, struct driver_info *ret)
{
    convert_fingerprint(ctx, host, "podman", ret);
}

/* "64m", or bytes: "N", with b, k, m or g behind it. -1: it is none. */
static int64_t
size_of(const char *s)
{
    static const char units[] = "bkmg";
    auto_mem void *tmp = mem_ctx("size");
    size_t digits = strspn(s, "0123456789");
    const char *unit = s[digits] ? strchr(units, s[digits]) : units;
    int64_t n;
    if (!*s)
        return 0;
    if (!unit || (s[digits] && s[digits + 1]) ||
        num_parse_i64(mem_strndup(tmp, s, digits), &n) < 0 || n < 0 || n > INT64_MAX >> 30)
        return -1;
    return n << (10 * (unit - units));
}

/* "1777", of the bits of a mode. -1: it is none. */
static int64_t
mode_of(const char *s)
{
    int64_t mode = 0;
    if (!*s || strlen(s) > 4 || s[strspn(s, "01234567")])
        return -1;
    for (; *s; s++)
        mode = mode * 8 + (*s - '0');
    return mode;
}

static int
podman_check(const struct value *config, struct err *e)
{
    static const char *const schemes[] = {
        "oci-archive:", "docker-archive:", "oci:", "dir:", "http://", "https://"};
    const char *image = driver_string(config, "image", "");
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncmp(image, schemes[i], strlen(schemes[i])) == 0)
            return err_set(e, -ERR_UNSUPPORTED,
                           "image \"%.128s\": images come from registries, or are on the node",
                           image);
    if (!str_eq(driver_string(config, "socket", "default"), "default"))
        return err_set(e, -ERR_UNSUPPORTED,
                       "socket: there is one, \"default\", which the client's plugin block names");
    if (size_of(driver_string(config, "shm_size", "")) < 0 ||
        size_of(driver_string(config, "memory_reservation", "")) < 0)
        return err_set(e, -ERR_INVALID,
                       "shm_size and memory_reservation are sizes such as \"64m\"");
    return 0;
}

/* "/path", or "/path:size=64m,mode=1777". */
static int
put_tmpfs(struct hand_task *t, const struct value *c, struct err *e)
{
    auto_mem void *tmp = mem_ctx("tmpfs");
    struct str_list all;
    driver_strings(tmp, c, "tmpfs", &all);
    for (size_t i = 0; i < all.n; i++) {
        struct hand_mount *m = mem_new(t, struct hand_mount);
        char *save = NULL, *path = mem_strdup(m, all.v[i]), *rest = strchr(path, ':');
        if (rest)
            *rest++ = 0;
        m->type = "tmpfs";
        m->target = path;
        for (char *o = rest ? strtok_r(rest, ",", &save) : NULL; o;
             o = strtok_r(NULL, ",", &save)) {
            if (strncmp(o, "size=", 5) == 0 && size_of(o + 5) >= 0)
                m->size = size_of(o + 5);
            else if (strncmp(o, "mode=", 5) == 0 && mode_of(o + 5) >= 0)
                m->mode = mode_of(o + 5);
            else if (!str_eq(o, "rw"))
                return err_set(e, -ERR_UNSUPPORTED, "tmpfs: \"%.64s\" is not supported", o);
        }
        list_add(t, t->mounts, m);
    }
    return 0;
}

/* "/dev/x[:/dev/y[:rwm]]". */
static int
put_devices(struct hand_task *t, const struct value *c, struct err *e)
{
    auto_mem void *tmp = mem_ctx("devices");
    struct str_list all;
    int r = 0;
    driver_strings(tmp, c, "devices", &all);
    for (size_t i = 0; i < all.n && r == 0; i++) {
        char *save = NULL, *host = strtok_r(mem_strdup(tmp, all.v[i]), ":", &save);
        const char *path = strtok_r(NULL, ":", &save), *rights = strtok_r(NULL, ":", &save);
        bool swapped = path && *path != '/'; /* "/dev/x:rw" */
        r = convert_device(t, str_or(host, ""), swapped ? "" : str_or(path, ""),
                           swapped ? path : str_or(rights, ""), e);
    }
    return r;
}

static const struct convert_row plain[] = {
    ROW("working_dir", STRING, work_dir),       ROW("hostname", STRING, hostname),
    ROW("network_mode", STRING, network_mode),  ROW("ipc_mode", STRING, ipc_mode),
    ROW("userns", STRING, userns_mode),         ROW("ipv4_address", STRING, ipv4_address),
    ROW("ipv6_address", STRING, ipv6_address),  ROW("privileged", BOOL, privileged),
    ROW("readonly_rootfs", BOOL, readonly_rootfs), ROW("init", BOOL, init),
    ROW("force_pull", BOOL, force_pull),        ROW("tty", BOOL, tty),
    ROW("pids_limit", INT, pids_max),           ROW("oom_score_adj", INT, oom_score_adj),
    ROW("cpu_cfs_period", INT, cpu_period),     ROW("cap_add", STRINGS, cap_add),
    ROW("cap_drop", STRINGS, cap_drop),         ROW("extra_hosts", STRINGS, extra_hosts),
    ROW("security_opt", STRINGS, security_opt), ROW("labels", MAP, labels),
    ROW("sysctl", MAP, sysctls),
};

/* The list is as long as it was read: a new one. */
static void
add_profile(struct hand_task *t, const char *profile)
{
    struct str_list all = {0};
    for (size_t i = 0; i < t->security_opt.n; i++)
        list_add(t, all, t->security_opt.v[i]);
    list_add(t, all, mem_printf(t, "apparmor=%s", profile));
    t->security_opt = all;
}

/* Nomad's own is that of the task's log files; the hand reads it from a file of the engine's. */
static void
put_logging(struct hand_task *t, const struct value *c)
{
    const struct value *log = driver_block(c, "logging", 0);
    const char *driver = driver_string(log, "driver", "nomad");
    bool usual = str_eq(driver, "nomad") || str_eq(driver, "k8s-file");
    t->log_driver = mem_strdup(t, usual ? "" : driver);
    convert_map(t, &t->log_options, driver_map(log, "options"));
}

static int
task_of(const void *ctx, const struct driver_input *in, struct hand_task **ret, struct err *e)
{
    const struct value *c = in->config;
    struct hand_task *t = mem_new(ctx, struct hand_task);
    const char *profile = driver_string(c, "apparmor_profile", "");
    convert_image(t, c, "docker://");
    t->pull_insecure = !driver_bool(driver_map(c, "auth"), "tls_verify", true);
    convert_common(t, in);
    convert_rows(t, c, plain, ARRAY_LEN(plain));
    if (*profile)
        add_profile(t, profile);
    t->shm_bytes = size_of(driver_string(c, "shm_size", ""));
    put_logging(t, c);
    int r = convert_ports(t, in, e);
    r = r < 0 ? r : convert_limits(t, in, e);
    r = r < 0 ? r : convert_volumes(t, c, "", e);
    r = r < 0 ? r : put_tmpfs(t, c, e);
    r = r < 0 ? r : put_devices(t, c, e);
    r = r < 0 ? r : convert_ulimits(t, driver_map(c, "ulimit"), e);
    r = r < 0 ? r : convert_network(t, in, "podman", e);
    convert_isolation(t, in);
    int64_t low = size_of(driver_string(c, "memory_reservation", ""));
    if (low > 0 && (t->memory_max == 0 || low < t->memory_max))
        t->memory_low = low;
    if (r < 0)
        talloc_free(t);
    else
        *ret = t;
    return r;
}

HAND_VERBS(task_of)

const struct driver driver_podman = {
    .can = &drivers_can[DRIVER_podman],
    .options = options,
    .n_options = ARRAY_LEN(options),
    .kill_signal = 0, /* the image's */
    .check = podman_check,
    .fingerprint = podman_fingerprint,
    .engine = HAND_ENGINE,
    .ask = task_of,
};
