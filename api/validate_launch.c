/* SPDX-License-Identifier: Apache-2.0 */
#include "api/validate_launch.h"

#include <string.h>

#include "api/limits.h"
#include "api/plain.h"
#include "codec/codec.h"
#include "common/mem.h"
#include "common/str.h"

struct check {
    const void *ctx;
    const struct task *task;
    struct str_list *errors;
};

__attribute__((format(printf, 2, 3))) static void
complain(struct check *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    list_add(c->ctx, *c->errors, mem_vprintf(c->ctx, fmt, ap));
    va_end(ap);
}

/* The limit of a field of LaunchSpec. */
static size_t
most(const char *field)
{
    return type_field(&type_launch_spec, field, strlen(field))->max;
}

static void
text(struct check *c, const char *name, const char *s, const char *field)
{
    if (strlen(str_or(s, "")) > most(field))
        complain(c, "%s has more than %zu bytes", name, most(field));
}

static void
config_text(struct check *c, const char *name, const char *field)
{
    const struct value *v = value_get(c->task->config, name);
    if (v && v->kind == VALUE_STRING)
        text(c, name, v->str.s, field);
}

static void
config_list(struct check *c, const char *name, const char *field)
{
    const struct value *v = value_get(c->task->config, name);
    if (v && v->kind == VALUE_LIST && v->list.n > most(field))
        complain(c, "%s has %zu elements: at most %zu are allowed", name, v->list.n, most(field));
}

/* Of the drivers whose config becomes a launch; what another one's means, that one knows. */
static void
config(struct check *c)
{
    if (!str_eq(c->task->driver, "exec") && !str_eq(c->task->driver, "raw_exec"))
        return;
    config_text(c, "command", "Command");
    config_text(c, "work_dir", "WorkDir");
    config_list(c, "args", "Args");
    config_list(c, "cap_add", "CapAdd");
    const struct value *caps = value_get(c->task->config, "cap_add");
    for (size_t i = 0; caps && caps->kind == VALUE_LIST && i < caps->list.n; i++)
        if (caps->list.v[i]->kind == VALUE_STRING && caps->list.v[i]->str.n == 0)
            complain(c, "cap_add holds an empty name");
}

static void
verity(struct check *c, const struct task_isolation *iso)
{
    for (size_t i = 0; i < iso->verity.n; i++)
        if (!plain_path(iso->verity.v[i]->path))
            complain(
                c,
                "isolation: verity: path \"%.256s\" holds control characters, a name of more than "
                "255 bytes or more than %d of them, or is longer than %d bytes",
                str_or(iso->verity.v[i]->path, ""), JOB_PATH_DEPTH_MAX, JOB_PATH_MAX);
}

void
validate_launch(const void *ctx, const struct task *t, struct str_list *errors)
{
    struct check c = {.ctx = ctx, .task = t, .errors = errors};
    text(&c, "user", t->user, "User");
    if (t->env.n > most("Env"))
        complain(&c,
                 "env has %zu variables: at most %zu are allowed, with those that the client adds",
                 t->env.n, most("Env"));
    if (t->resources && t->resources->secrets_mb > JOB_SECRETS_MIB_MAX)
        complain(&c, "resources: secrets is more than %d MB", JOB_SECRETS_MIB_MAX);
    if (t->log_config && t->log_config->max_files.v > JOB_LOG_FILES_MAX)
        complain(&c, "logs: max_files is more than %d", JOB_LOG_FILES_MAX);
    config(&c);
    if (t->isolation)
        verity(&c, t->isolation);
}
