/* SPDX-License-Identifier: Apache-2.0
 *
 * Plugin blocks: each option of Nomad's drivers has a row. It is taken, or refused with the line
 * that says the same here; what is false or null promises nothing and holds anyway.
 */
#include <string.h>

#include "agent/config/config_int.h"
#include "api/drivers.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

enum { HELPER_MAX = 64, OOM_MAX = 1000 };

enum kind {
    BOOL,
    NUMBER, /* not negative */
    TEXT,
    TEXTS,
    PATHS,
    DURATION,
    BLOCK,   /* whose keys are of `blocks` */
    PRIVATE, /* "private", which is how it is */
    REFUSED,
    USERS, /* refused: "7,9-12" */
    CAPS,  /* refused: a list */
};

#define BIT(driver) (1u << DRIVER_##driver)
#define ENGINES (BIT(docker) | BIT(podman))
#define BOXES (BIT(exec) | BIT(java))

static const struct option {
    const char *name;
    unsigned drivers;
    enum kind kind;
    const char *why; /* of REFUSED, and of BOOL that may not be true */
} options[] = {
    {"enabled", ENGINES | BIT(raw_exec), BOOL, NULL},
    {"endpoint", ENGINES, TEXT, NULL},
    {"socket_path", ENGINES, TEXT, NULL},
    {"socket", BIT(podman), REFUSED, "there is one: socket_path = \"unix:///PATH\""},
    {"networking", BIT(podman), REFUSED, "it is for the podman of another user: remove it"},
    {"auth", ENGINES, BLOCK, NULL},
    {"tls", BIT(docker), REFUSED, "the engine is on this machine, behind a socket: remove it"},
    {"extra_labels", ENGINES, TEXTS, NULL},
    {"logging", ENGINES, BLOCK, NULL},
    {"gc", ENGINES, BLOCK, NULL},
    {"volumes", ENGINES, BLOCK, NULL},
    {"allow_privileged", ENGINES, BOOL, NULL},
    {"allow_caps", ENGINES, TEXTS, NULL},
    {"allow_devices", ENGINES, TEXTS, NULL},
    {"allow_runtimes", ENGINES, TEXTS, NULL},
    {"allowed_modes", ENGINES, BLOCK, NULL},
    {"nvidia_runtime", BIT(docker), REFUSED,
     "name it in allow_runtimes here, and in runtime of the jobs that want it"},
    {"infra_image", BIT(docker), TEXT, NULL}, /* nothing is pulled for a group's network */
    {"infra_image_pull_timeout", BIT(docker), DURATION, NULL},
    {"image_pull_timeout", ENGINES, DURATION, NULL},
    {"pull_activity_timeout", ENGINES, DURATION, NULL},
    {"client_http_timeout", BIT(podman), DURATION, NULL},     /* each call has a limit */
    {"container_exists_attempts", BIT(docker), NUMBER, NULL}, /* tried again anyway */
    {"oom_score_adj", ENGINES, NUMBER, NULL},
    {"pids_limit", ENGINES, NUMBER, NULL},
    {"dns_servers", BIT(podman), TEXTS, NULL},
    {"disable_log_collection", ENGINES, BOOL, NULL},
    {"recover_stopped", BIT(podman), BOOL, "a container that has ended stays so: remove it"},
    {"windows_allow_insecure_container_admin", BIT(docker), BOOL, "it is for Windows: remove it"},
    {"no_pivot_root", BIT(exec), BOOL, "a task has a root of its own: remove it"},
    {"no_cgroups", BIT(raw_exec), BOOL, "a task is ended by its cgroup: remove it"},
    {"default_pid_mode", BOXES, PRIVATE, NULL},
    {"default_ipc_mode", BOXES, PRIVATE, NULL},
    {"allow_caps", BOXES, CAPS, NULL},
    {"denied_host_uids", BOXES | BIT(raw_exec), USERS, NULL},
    {"denied_host_gids", BOXES | BIT(raw_exec), REFUSED,
     "users are denied, not groups: isolation { denied_users = [...] }"},
    {"denied_envvars", BIT(raw_exec), TEXTS, NULL},
    {"image_paths", BIT(qemu), PATHS, NULL},
    {"args_allowlist", BIT(qemu), TEXTS, NULL},
    {"emulators_allowlist", BIT(qemu), TEXTS, NULL},
};

/* A key of a block, with what it may be; true where `why` is: refused. */
static const struct key {
    const char *block, *name;
    enum kind kind;
    const char *why;
} keys[] = {
    {"auth", "config", TEXT, NULL},
    {"auth", "helper", TEXT, NULL},
    {"logging", "type", TEXT, NULL},
    {"logging", "driver", TEXT, NULL},
    {"logging", "config", BLOCK, NULL},
    {"logging", "options", BLOCK, NULL},
    {"gc", "image", BOOL, NULL},
    {"gc", "image_delay", DURATION, NULL},
    {"gc", "container", BOOL, NULL},
    {"gc", "dangling_containers", BLOCK, NULL},
    {"dangling_containers", "enabled", BOOL, NULL},
    {"dangling_containers", "dry_run", BOOL,
     "containers of this agent that no allocation owns are removed: remove it"},
    {"dangling_containers", "period", DURATION, NULL},
    {"dangling_containers", "creation_grace", DURATION, NULL},
    {"volumes", "enabled", BOOL, NULL},
    {"volumes", "selinuxlabel", REFUSED, "labels are the engine's: remove it"},
    {"allowed_modes", "pid", TEXTS, NULL},
    {"allowed_modes", "ipc", TEXTS, NULL},
    {"allowed_modes", "uts", TEXTS, NULL},
    {"allowed_modes", "userns", TEXTS, NULL},
};

struct judged {
    const void *ctx;
    const struct agent_plugin *p;
    struct str_list *errors;
};

__attribute__((format(printf, 2, 3))) static void
plugins_complain(struct judged *j, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = mem_vprintf(j->ctx, fmt, ap);
    va_end(ap);
    list_add(j->ctx, *j->errors, mem_printf(j->ctx, "plugin \"%s\": %s", j->p->name, text));
}

/* --- values --- */

/* False, 0, an empty text and null only deny. */
static bool
plugins_denies(const struct value *v)
{
    return v->kind == VALUE_NULL || (v->kind == VALUE_BOOL && !v->b) ||
           (v->kind == VALUE_STRING && !*v->str.s);
}

/* A block comes as a map or as a list of maps (HCL1 habits). */
static const struct value *
block_of(const struct value *v)
{
    return v && v->kind == VALUE_LIST && v->list.n == 1 ? v->list.v[0] : v;
}

static bool
is_texts(const struct value *v, bool paths)
{
    bool ok = v->kind == VALUE_LIST;
    for (size_t i = 0; ok && i < v->list.n; i++)
        ok = v->list.v[i]->kind == VALUE_STRING && (!paths || v->list.v[i]->str.s[0] == '/');
    return ok;
}

static bool
is_number(const struct value *v)
{
    int64_t n = v->kind == VALUE_INT ? v->i : -1;
    if (v->kind == VALUE_STRING)
        (void)num_parse_i64(v->str.s, &n);
    return n >= 0;
}

static bool
is_bool(const struct value *v)
{
    bool b;
    return v->kind == VALUE_BOOL || (v->kind == VALUE_INT && (v->i == 0 || v->i == 1)) ||
           (v->kind == VALUE_STRING && num_parse_bool(v->str.s, &b) == 0);
}

/* NULL: it is as it must be. */
static const char *
plugins_wanted(enum kind kind, const struct value *v)
{
    int64_t ns;
    switch (kind) {
    case BOOL:
        return is_bool(v) ? NULL : "true or false";
    case NUMBER:
        return is_number(v) ? NULL : "a whole number that is not negative";
    case TEXT:
        return v->kind == VALUE_STRING ? NULL : "a text";
    case TEXTS:
        return is_texts(v, false) ? NULL : "a list of texts";
    case PATHS:
        return is_texts(v, true) ? NULL : "a list of absolute paths";
    case DURATION:
        return v->kind == VALUE_STRING && duration_parse(v->str.s, &ns) == 0 && ns > 0
                   ? NULL
                   : "a duration such as \"3m\"";
    case BLOCK:
        return block_of(v)->kind == VALUE_MAP ? NULL : "one block";
    case PRIVATE:
        return v->kind == VALUE_STRING && str_eq(v->str.s, "private")
                   ? NULL
                   : "\"private\": each task has namespaces of its own";
    case REFUSED:
    case USERS:
    case CAPS:
        break;
    }
    return NULL;
}

/* --- what is refused --- */

/* ["root", "7"] of "7,9-12": those that are one user. */
static const char *
users_line(const void *ctx, const struct value *v)
{
    auto_mem void *tmp = mem_ctx("users");
    char *save = NULL, *all = mem_strdup(tmp, v->kind == VALUE_STRING ? v->str.s : "");
    const char *line = "\"root\"";
    for (char *s = strtok_r(all, ", ", &save); s; s = strtok_r(NULL, ", ", &save))
        if (!strchr(s, '-'))
            line = mem_printf(ctx, "%s, \"%s\"", line, s);
    return line;
}

static const char *
caps_line(const void *ctx, const struct value *v)
{
    auto_buf struct buf b = BUF_INIT(1 << 16);
    json_encode_value(&b, v, 0);
    return mem_strdup(ctx, buf_str(&b));
}

static void
plugins_refuse(struct judged *j, const struct option *o, const struct value *v)
{
    if (o->kind == USERS)
        plugins_complain(
            j,
            "%s is said for all drivers, by names and single uids: isolation { denied_users = "
            "[%s] }",
            o->name, users_line(j->ctx, v));
    else if (o->kind == CAPS)
        plugins_complain(j, "%s is said for all drivers: isolation { allowed_caps = %s }", o->name,
                         caps_line(j->ctx, v));
    else
        plugins_complain(j, "%s: %s", o->name, o->why);
}

/* --- blocks --- */

static void
judge_block(struct judged *j, const char *block, const struct value *v)
{
    for (size_t i = 0; i < v->map.n; i++) {
        const char *name = v->map.v[i].k;
        const struct value *x = v->map.v[i].v;
        const struct key *k = NULL;
        bool free = str_eq(block, "config") || str_eq(block, "options"); /* of the log */
        for (size_t n = 0; !k && n < ARRAY_LEN(keys); n++)
            if (str_eq(keys[n].block, block) && str_eq(keys[n].name, name))
                k = &keys[n];
        if (free || (k && (k->why || k->kind != BOOL) && plugins_denies(x)))
            continue;
        const char *want = k ? plugins_wanted(k->kind, x) : NULL;
        if (!k)
            plugins_complain(j, "\"%s\" of %s is unknown or not supported", name, block);
        else if (k->why)
            plugins_complain(j, "%s of %s: %s", name, block, k->why);
        else if (want)
            plugins_complain(j, "%s of %s must be %s", name, block, want);
        else if (k->kind == BLOCK)
            judge_block(j, name, block_of(x));
    }
}

static const struct value *
in_block(const struct agent_plugin *p, const char *block, const char *name)
{
    return value_get(block_of(value_get(block_of(p->config), block)), name);
}

static bool
is_off(const struct value *v)
{
    bool on = true;
    return v && ((v->kind == VALUE_BOOL && !v->b) || (v->kind == VALUE_INT && v->i == 0) ||
                 (v->kind == VALUE_STRING && num_parse_bool(v->str.s, &on) == 0 && !on));
}

static void
judge_gc(struct judged *j)
{
    const struct value *dangling = block_of(in_block(j->p, "gc", "dangling_containers"));
    if (is_off(in_block(j->p, "gc", "container")))
        plugins_complain(j,
                         "gc: a container is removed when its task has ended: its output is in the "
                         "task's log");
    if (is_off(value_get(dangling, "enabled")))
        plugins_complain(j,
                         "gc: containers of this agent that no allocation owns are removed: take "
                         "dangling_containers out");
}

static void
judge_auth(struct judged *j)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    const struct value *config = in_block(j->p, "auth", "config");
    const struct value *helper = in_block(j->p, "auth", "helper");
    if (config && config->kind == VALUE_STRING && config->str.s[0] != '/')
        plugins_complain(j, "auth: config must be the path of a config.json of docker's");
    if (helper && helper->kind == VALUE_STRING &&
        (strlen(helper->str.s) > HELPER_MAX || helper->str.s[strspn(helper->str.s, plain)]))
        plugins_complain(j, "auth: helper must be the end of a program's name, as \"pass\" for "
                            "docker-credential-pass");
}

/* Checks the log driver as hand/allow.c checks that of a job. */
static void
judge_logging(struct judged *j)
{
    static const char *const names[] = {"type", "driver"};
    static const char *const types[] = {"", "json-file", "local", "nomad", "k8s-file"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct value *v = in_block(j->p, "logging", names[i]);
        bool known = !v || v->kind != VALUE_STRING;
        for (size_t k = 0; !known && k < ARRAY_LEN(types); k++)
            known = str_eq(v->str.s, types[k]);
        if (!known)
            plugins_complain(
                j,
                "logging: \"%s\" would have the engine send output elsewhere: it is in the "
                "task's log; remove the block",
                v->str.s);
    }
}

static void
judge_socket(struct judged *j)
{
    static const char *const names[] = {"endpoint", "socket_path"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const struct value *v = value_get(block_of(j->p->config), names[i]);
        if (v && v->kind == VALUE_STRING && strncmp(v->str.s, "unix:///", 8) != 0)
            plugins_complain(
                j, "endpoint, or socket_path, must be \"unix:///PATH\" of an engine on this "
                   "machine");
    }
}

/* --- all of it --- */

static void
judge_unknown(struct judged *j, unsigned bit, const char *name)
{
    const char *known[ARRAY_LEN(options)];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (options[i].drivers & bit)
            known[n++] = options[i].name;
    const char *near = str_nearest(name, known, n);
    plugins_complain(j, "option \"%s\" is unknown or not supported%s", name,
                     near     ? mem_printf(j->ctx, ": did you mean \"%s\"?", near)
                     : n == 0 ? ": what tasks may do is said in the isolation block"
                              : "");
}

static void
judge_option(struct judged *j, unsigned bit, const char *name, const struct value *v)
{
    const struct option *o = NULL;
    for (size_t i = 0; !o && i < ARRAY_LEN(options); i++)
        if ((options[i].drivers & bit) && str_eq(options[i].name, name))
            o = &options[i];
    if (!o) {
        judge_unknown(j, bit, name);
        return;
    }
    if (plugins_denies(v))
        return;
    const char *want = plugins_wanted(o->kind, v);
    if (want)
        plugins_complain(j, "%s must be %s", name, want);
    else if (o->kind >= REFUSED || (o->why && !is_off(v)))
        plugins_refuse(j, o, v);
    else if (o->kind == BLOCK)
        judge_block(j, name, block_of(v));
}

void
config_plugin(const void *ctx, const struct agent_plugin *p, struct str_list *errors)
{
    struct judged j = {ctx, p, errors};
    const struct driver_can *can = driver_can(p->name);
    const struct value *config = block_of(p->config);
    if (config && config->kind != VALUE_MAP && config->kind != VALUE_NULL)
        plugins_complain(&j, "config must be one block");
    for (size_t i = 0; config && config->kind == VALUE_MAP && i < config->map.n; i++) {
        const char *name = config->map.v[i].k;
        if (can)
            judge_option(&j, 1u << (can - drivers_can), name, config->map.v[i].v);
        else if (!plugins_denies(config->map.v[i].v))
            plugins_complain(
                &j,
                "there is no such driver in this release, so \"%s\" is promised in vain: "
                "remove the block (what is false in it may stay)",
                name);
    }
    if (!can || can->launch)
        return;
    judge_socket(&j);
    judge_auth(&j);
    judge_gc(&j);
    judge_logging(&j);
}
