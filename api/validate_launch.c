/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of a launch, seen from the job. Texts beyond a limit come first. Then comes the load
 * that job, group and task put into one message of the warden. A config and roots that no node
 * takes come last. A text with ${...} counts as nothing.
 */
#include "api/validate_launch.h"

#include <string.h>

#include "api/drivers.h"
#include "api/limits.h"
#include "api/plain.h"
#include "codec/codec.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"

struct check {
    const void *ctx;
    const struct task *task;
    struct str_list *errors;
};

__attribute__((format(printf, 2, 3))) static void
validate_launch_complain(struct check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    list_add(c->ctx, *c->errors, mem_vprintf(c->ctx, fmt, ap));
    va_end(ap);
}

/* The limit of a field of LaunchSpec. */
static size_t
validate_launch_most(const char *field)
{
    return type_field(&type_launch_spec, field, strlen(field))->max;
}

static void
validate_launch_text(struct check *c, const char *name, const char *s, const char *field)
{
    if (strlen(str_or(s, "")) > validate_launch_most(field))
        validate_launch_complain(c, "%s has more than %zu bytes", name,
                                 validate_launch_most(field));
}

static void
config_text(struct check *c, const char *name, const char *field)
{
    const struct value *v = value_get(c->task->config, name);
    if (v && v->kind == VALUE_STRING)
        validate_launch_text(c, name, v->str.s, field);
}

static void
config_list(struct check *c, const char *name, const char *field)
{
    const struct value *v = value_get(c->task->config, name);
    if (v && v->kind == VALUE_LIST && v->list.n > validate_launch_most(field))
        validate_launch_complain(c, "%s has %zu elements: at most %zu are allowed", name, v->list.n,
                                 validate_launch_most(field));
}

/* --- how large it is --- */

enum {
    HEAD = 3,              /* bytes in front of a text on its way */
    PORT_BYTES = 94 + 87,  /* names without label and values of a port's variables */
    ALLOC_BYTES = 54 + 40, /* of those it has more in a network of its own */
};

/* Without what the node puts in, which may be nothing. */
static size_t
validate_launch_literal(const char *s)
{
    size_t n = strlen(s);
    for (const char *at = s, *end; (at = strstr(at, "${")) && (end = strchr(at, '}')); at = end + 1)
        n -= (size_t)(end + 1 - at);
    return n;
}

/* One text of `n` bytes; false: beyond what the kernel takes in one. */
static bool
load_word(struct launch_load *l, size_t n)
{
    l->bytes += n + HEAD;
    return n <= JOB_WORD_MAX;
}

static void
load_key(struct launch_load *l, const char *k, const char *value)
{
    size_t n = strlen("NOMAD_META_=") + strlen(k) + validate_launch_literal(str_or(value, ""));
    bool capitals = true;
    for (const char *p = k; *p; p++)
        capitals = capitals && !(*p >= 'a' && *p <= 'z');
    for (int times = capitals ? 1 : LAUNCH_META_VARS; times > 0; times--, l->vars++)
        if (!load_word(l, n))
            l->longest = k;
}

static void
load_meta(struct launch_load *l, const struct str_map *meta)
{
    for (size_t i = 0; i < meta->n; i++)
        load_key(l, meta->v[i].k, meta->v[i].v);
}

static void
load_keys(struct launch_load *l, const struct str_list *keys, const struct str_map *meta)
{
    for (size_t i = 0; i < keys->n; i++)
        if (str_map_get(meta, keys->v[i]) == NULL)
            load_key(l, keys->v[i], NULL);
}

void
launch_load_job(struct launch_load *l, const struct job *j)
{
    load_meta(l, &j->meta);
    if (j->parameterized_job == NULL)
        return;
    load_keys(l, &j->parameterized_job->meta_required, &j->meta);
    load_keys(l, &j->parameterized_job->meta_optional, &j->meta);
}

static void
load_network(struct launch_load *l, const struct network_resource *n)
{
    bool own = str_eq(n->mode, "bridge");
    size_t vars = LAUNCH_PORT_VARS + (own ? LAUNCH_ALLOC_VARS : 0);
    const struct port_list *lists[] = {&n->reserved_ports, &n->dynamic_ports};
    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            l->vars += vars;
            l->bytes += vars * (strlen(str_or(lists[k]->v[i]->label, "")) + 1 + HEAD) + PORT_BYTES +
                        (own ? ALLOC_BYTES : 0);
        }
}

void
launch_load_group(struct launch_load *l, const struct task_group *g)
{
    load_meta(l, &g->meta);
    for (size_t i = 0; i < g->networks.n; i++)
        load_network(l, g->networks.v[i]);
}

static void
load_object(struct launch_load *l, const struct type *type, const void *obj)
{
    auto_buf struct buf b = BUF_INIT(JOB_LAUNCH_MAX);
    if (obj)
        mp_encode(&b, type, obj);
    l->bytes += buf_error(&b) ? JOB_LAUNCH_MAX : b.len;
}

static void
load_config(struct check *c, struct launch_load *l)
{
    const struct value *v = c->task->config;
    for (size_t i = 0; v && v->kind == VALUE_MAP && i < v->map.n; i++) {
        const char *name = v->map.v[i].k;
        const struct value *x = v->map.v[i].v;
        if (x && x->kind == VALUE_STRING && !load_word(l, validate_launch_literal(x->str.s)))
            validate_launch_complain(c,
                                     "%.64s has more than %d bytes, which no kernel takes in one",
                                     name, JOB_WORD_MAX);
        for (size_t k = 0; x && x->kind == VALUE_LIST && k < x->list.n; k++)
            if (x->list.v[k]->kind == VALUE_STRING &&
                !load_word(l, validate_launch_literal(x->list.v[k]->str.s)))
                validate_launch_complain(
                    c,
                    "%.64s[%zu] has more than %d bytes, which no kernel takes in one: write "
                    "it to a "
                    "file",
                    name, k, JOB_WORD_MAX);
    }
}

/* Complains of a launch that is too large; the limits leave room for what the client adds. */
static void
validate_launch_load(struct check *c, const struct launch_load *shared)
{
    const struct task *t = c->task;
    struct launch_load l = *shared;
    load_meta(&l, &t->meta);
    if (l.longest)
        validate_launch_complain(
            c,
            "meta \"%.128s\" has more than %d bytes as a variable, which no kernel takes in one: "
            "write it to a file",
            l.longest, JOB_WORD_MAX);
    for (size_t i = 0; t->resources && i < t->resources->networks.n; i++)
        load_network(&l, t->resources->networks.v[i]);
    for (size_t i = 0; i < t->env.n; i++)
        if (!load_word(&l, strlen(t->env.v[i].k) + 1 +
                               validate_launch_literal(str_or(t->env.v[i].v, ""))))
            validate_launch_complain(
                c,
                "env \"%.128s\" has more than %d bytes with its name, which no kernel takes in "
                "one: write it to a file",
                t->env.v[i].k, JOB_WORD_MAX);
    l.vars += t->env.n;
    load_config(c, &l);
    load_object(&l, &type_task_isolation, t->isolation);
    load_object(&l, &type_task_network, t->network);
    if (l.vars > JOB_ENV_MAX)
        validate_launch_complain(
            c,
            "env, meta and ports make %zu environment variables: at most %d are allowed; "
            "remove some (a "
            "key of meta makes %d, in capitals 1, a port %d, in mode \"bridge\" %d)",
            l.vars, JOB_ENV_MAX, LAUNCH_META_VARS, LAUNCH_PORT_VARS,
            LAUNCH_PORT_VARS + LAUNCH_ALLOC_VARS);
    if (l.bytes > JOB_LAUNCH_MAX)
        validate_launch_complain(
            c,
            "command, args, env, meta, ports and isolation are %zu bytes at the task's start: "
            "at most "
            "%d are allowed; write large values to files (meta of job, group and task counts, "
            "twice "
            "unless in capitals)",
            l.bytes, JOB_LAUNCH_MAX);
}

/* --- the task --- */

/* Nesting of at most `left` levels; decoders bound how deep this goes. */
static bool
nested_within(const struct value *v, int left)
{
    bool list = v != NULL && v->kind == VALUE_LIST, map = v != NULL && v->kind == VALUE_MAP,
         ok = true;

    for (size_t i = 0; list && ok && i < v->list.n; i++)
        ok = nested_within(v->list.v[i], left - 1);
    for (size_t i = 0; map && ok && i < v->map.n; i++)
        ok = nested_within(v->map.v[i].v, left - 1);
    return ok && (left > 0 || (!list && !map));
}

/* Checks the configuration of drivers that makes a launch; other drivers check their own. */
static void
validate_launch_config(struct check *c, const struct launch_load *shared)
{
    const struct driver_can *can = driver_can(c->task->driver);
    if (!can || !can->launch)
        return;
    validate_launch_load(c, shared);
    config_text(c, "command", "Command");
    config_text(c, "work_dir", "WorkDir");
    config_list(c, "args", "Args");
    config_list(c, "cap_add", "CapAdd");
    const struct value *caps = value_get(c->task->config, "cap_add");
    for (size_t i = 0; caps && caps->kind == VALUE_LIST && i < caps->list.n; i++)
        if (caps->list.v[i]->kind == VALUE_STRING && caps->list.v[i]->str.n == 0)
            validate_launch_complain(c, "cap_add holds an empty name");
}

static void
validate_launch_verity(struct check *c, const struct task_isolation *iso)
{
    for (size_t i = 0; i < iso->verity.n; i++)
        if (!plain_path(iso->verity.v[i]->path))
            validate_launch_complain(
                c,
                "isolation: verity: path \"%.256s\" holds control characters, a name of more than "
                "255 bytes or more than %d of them, or is longer than %d bytes",
                str_or(iso->verity.v[i]->path, ""), JOB_PATH_DEPTH_MAX, JOB_PATH_MAX);
}

void
validate_launch(const void *ctx, const struct task *t, const struct launch_load *shared,
                struct str_list *errors)
{
    struct check c = {.ctx = ctx, .task = t, .errors = errors};
    if (!nested_within(t->config, JOB_CONFIG_DEPTH_MAX))
        validate_launch_complain(&c, "config is nested deeper than %d levels",
                                 JOB_CONFIG_DEPTH_MAX);
    validate_launch_text(&c, "user", t->user, "User");
    if (t->resources && t->resources->secrets_mb > JOB_SECRETS_MIB_MAX)
        validate_launch_complain(&c, "resources: secrets is more than %d MB", JOB_SECRETS_MIB_MAX);
    if (t->log_config && t->log_config->max_files.v > JOB_LOG_FILES_MAX)
        validate_launch_complain(&c, "logs: max_files is more than %d", JOB_LOG_FILES_MAX);
    validate_launch_config(&c, shared);
    if (t->isolation)
        validate_launch_verity(&c, t->isolation);
}

int
validate_launches(const void *ctx, const struct job *j, struct err *e)
{
    struct launch_load of_job = {0};
    launch_load_job(&of_job, j);
    for (size_t g = 0; g < j->task_groups.n; g++) {
        const struct task_group *tg = j->task_groups.v[g];
        struct launch_load l = of_job;
        launch_load_group(&l, tg);
        for (size_t i = 0; i < tg->tasks.n; i++) {
            struct str_list found = {0};
            validate_launch(ctx, tg->tasks.v[i], &l, &found);
            if (found.n > 0)
                return err_set(e, -ERR_INVALID, "task group \"%.128s\": task \"%.128s\": %s",
                               tg->name, tg->tasks.v[i]->name, found.v[0]);
        }
    }
    return 0;
}
