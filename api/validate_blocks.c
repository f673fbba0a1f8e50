/* SPDX-License-Identifier: Apache-2.0
 *
 * What validate.c asks about blocks beyond the tasks' own, in this order: warnings and rules of a
 * group (disconnect, scaling, volumes), then a task (artifacts, mounts
 * of volumes, devices, identities).
 *
 * Each rule complains in Nomad's words and goes on: a job is told everything at once.
 */
#include "api/validate_blocks.h"

#include <stdarg.h>
#include <string.h>

#include "api/artifact/artifact.h"
#include "api/children.h"
#include "api/drivers.h"
#include "api/limits.h"
#include "api/terms.h"
#include "api/validate_secret.h"
#include "api/validate_service.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

#define SECOND INT64_C(1000000000)
#define FENCE_LOST_AFTER_LEAST (10 * SECOND)

struct check {
    const void *ctx;
    struct str_list *errors;
};

__attribute__((format(printf, 2, 3))) static void
validate_blocks_complain(const struct check *c, const char *fmt, ...)
{
    if (c->errors->n >= JOB_ERRORS_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    list_add(c->ctx, *c->errors, mem_vprintf(c->ctx, fmt, ap));
    va_end(ap);
}

/* Says whether the text is interpolated later, by its file's word, and cannot be looked at. */
static bool
validate_blocks_interpolated(const char *s)
{
    return strstr(str_or(s, ""), "${") != NULL;
}

/* Out of the directory that is `depth` above where the path begins: what the client will check once
 * more when it is there. */
static bool
validate_blocks_leaves(const char *path, int depth)
{
    for (const char *p = path; *p && depth >= 0;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && strncmp(p, "..", 2) == 0)
            depth--;
        else if (n > 0 && !(n == 1 && *p == '.'))
            depth++;
        p += n;
        p += *p == '/';
    }
    return depth < 0;
}

/* Out of the allocation's directory, from the task's in it (../alloc is inside). */
static bool
validate_blocks_escapes(const char *path)
{
    return validate_blocks_leaves(path, 1);
}

static void
change_mode(const struct check *c, const char *what, const char *mode, const char *signal)
{
    if (str_eq(str_or(mode, ""), "signal") && str_empty(signal))
        validate_blocks_complain(c, "%s: change_mode \"signal\" needs a change_signal", what);
    if (!str_eq(str_or(mode, ""), "signal") && !str_empty(signal) &&
        !STR_ONE_OF(what, "template", "vault"))
        validate_blocks_complain(c, "%s: change_signal goes with change_mode \"signal\"", what);
}

static void
validate_blocks_artifact(const struct check *c, const struct task_artifact *a)
{
    if (str_empty(a->getter_source))
        validate_blocks_complain(c, "artifact: the source is missing");
    struct artifact_source s;
    struct err e = ERR_INIT;
    auto_mem void *tmp = mem_ctx("artifact");
    const char *source = str_or(a->getter_source, "");
    bool known = !validate_blocks_interpolated(source);
    for (size_t i = 0; i < a->getter_options.n; i++)
        known = known && !validate_blocks_interpolated(a->getter_options.v[i].v);
    if (known && artifact_parse(tmp, source, &a->getter_options, &s, &e) == 0)
        (void)artifact_supported(&s, &e);
    if (!str_empty(source) && e.code != 0)
        validate_blocks_complain(c, "artifact: %s", e.text);
    if (!STR_ONE_OF(a->getter_mode, "any", "file", "dir"))
        validate_blocks_complain(c, "artifact: mode \"%s\" is not any, file or dir",
                                 a->getter_mode);
    if (!validate_blocks_interpolated(a->relative_dest) &&
        validate_blocks_escapes(str_or(a->relative_dest, "")))
        validate_blocks_complain(
            c, "artifact: destination \"%s\" leaves the directory of the allocation",
            a->relative_dest);
}

/* --- group --- */

/* The watchdog of the node ends what it has launched, and clocks may differ (doc/fencing.md). */
static void
validate_blocks_fence(const struct check *c, const struct job *j, const struct task_group *g)
{
    const struct update_strategy *u = g->update ? g->update : j->update;
    if (!g->disconnect->fence)
        return;
    if (g->disconnect->lost_after.v < FENCE_LOST_AFTER_LEAST)
        validate_blocks_complain(c, "disconnect: fence needs a lost_after of 10s or more");
    if (!STR_ONE_OF(j->type, JOB_SERVICE, JOB_BATCH))
        validate_blocks_complain(c, "disconnect: fence is for service and batch jobs");
    if (u && u->canary > 0)
        validate_blocks_complain(
            c, "disconnect: fence excludes canaries, which run beside what they replace");
    for (size_t i = 0; i < g->tasks.n; i++) {
        const struct driver_can *can = driver_can(g->tasks.v[i]->driver);
        if (can != NULL && !can->launch)
            validate_blocks_complain(
                c,
                "disconnect: fence is not for driver \"%s\": its engine runs on without the client",
                g->tasks.v[i]->driver);
    }
}

static void
validate_blocks_disconnect(const struct check *c, const struct job *j, const struct task_group *g)
{
    const struct disconnect_strategy *d = g->disconnect;
    if (!d)
        return;
    validate_blocks_fence(c, j, g);
    if (d->lost_after.v < 0 || d->stop_on_client_after.v < 0)
        validate_blocks_complain(
            c, "disconnect: lost_after and stop_on_client_after may not be negative");
    if (d->stop_on_client_after.set && !STR_ONE_OF(j->type, JOB_SERVICE, JOB_BATCH))
        validate_blocks_complain(c,
                                 "disconnect: stop_on_client_after is for service and batch jobs");
    if (d->stop_on_client_after.set && d->lost_after.v != 0)
        validate_blocks_complain(
            c, "disconnect: lost_after and stop_on_client_after exclude each other");
    if (!STR_ONE_OF(d->reconcile, "", "best_score", "keep_original", "keep_replacement",
                    "longest_running"))
        validate_blocks_complain(
            c,
            "disconnect: reconcile \"%s\" is not best_score, keep_original, keep_replacement or "
            "longest_running",
            d->reconcile);
}

static void
validate_identity_warnings(const void *ctx, const struct task *t, struct str_list *warnings)
{
    for (size_t i = 0; i < t->identities.n; i++) {
        const struct workload_identity *w = t->identities.v[i];
        const struct {
            bool so;
            const char *text;
        } rows[] = {
            {w->audience.n == 0, "no aud: it is good for whoever does not look at that"},
            {w->audience.n > 1, "several in aud: each of them can use it at the others"},
            {w->ttl == 0, "no ttl: who steals it has it for long"},
            {w->ttl > 0 && w->env && !str_eq(w->change_mode, "restart"),
             "its variable ends with its ttl: write change_mode = \"restart\""},
        };
        for (size_t k = 0; k < ARRAY_LEN(rows); k++)
            if (rows[k].so)
                list_add(ctx, *warnings,
                         mem_printf(ctx, "task \"%s\": identity \"%s\": %s", t->name,
                                    str_or(w->name, ""), rows[k].text));
    }
}

void
validate_group_warnings(const void *ctx, const struct task_group *g, struct str_list *warnings)
{
    const struct {
        bool said;
        const char *old, *now;
    } rows[] = {{g->max_client_disconnect.set, "max_client_disconnect", "lost_after"},
                {g->stop_after_client_disconnect.set, "stop_after_client_disconnect",
                 "stop_on_client_after"},
                {g->prevent_reschedule_on_lost, "prevent_reschedule_on_lost", "replace"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].said)
            list_add(
                ctx, *warnings,
                mem_printf(
                    ctx,
                    "task group \"%s\": %s is an older name: write disconnect { %s = ... }",
                    g->name, rows[i].old, rows[i].now));
    for (size_t i = 0; i < g->tasks.n; i++)
        validate_identity_warnings(ctx, g->tasks.v[i], warnings);
}

static void
validate_blocks_scaling(const struct check *c, const struct task_group *g)
{
    const struct scaling_policy *s = g->scaling;
    if (!s)
        return;
    if (!str_eq(str_or(s->type, ""), "horizontal"))
        validate_blocks_complain(
            c, "scaling: the type of a group's policy is \"horizontal\", not \"%s\"",
            str_or(s->type, ""));
    if (!s->max.set || s->max.v < 0)
        validate_blocks_complain(c, "scaling: max is needed, and may not be negative");
    else if (s->max.v < s->min.v)
        validate_blocks_complain(c, "scaling: max is less than min");
    if (s->min.v < 0)
        validate_blocks_complain(c, "scaling: min may not be negative");
    if (s->max.set && g->count.v > s->max.v)
        validate_blocks_complain(c, "scaling: count is more than max");
    if (g->count.v < s->min.v)
        validate_blocks_complain(c, "scaling: count is less than min");
}

static void
validate_blocks_volume(const struct check *c, const struct job *j, const struct task_group *g,
                       const struct volume_request *v)
{
    const char *name = str_or(v->name, "");
    bool csi = str_eq(str_or(v->type, ""), "csi"), lone = g->count.v > 1 && !v->per_alloc;
    if (!STR_ONE_OF(v->type, "host", "csi"))
        validate_blocks_complain(c, "volume \"%s\": type \"%s\" is not host or csi", name,
                                 str_or(v->type, ""));
    if (str_empty(v->source))
        validate_blocks_complain(c, "volume \"%s\": the source is missing", name);
    if (csi && (str_empty(v->access_mode) || str_empty(v->attachment_mode)))
        validate_blocks_complain(
            c, "volume \"%s\": a CSI volume needs an access_mode and an attachment_mode", name);
    if (!csi && v->mount_options)
        validate_blocks_complain(c, "volume \"%s\": mount_options are for CSI volumes", name);
    if (csi && v->sticky)
        validate_blocks_complain(c, "volume \"%s\": sticky is for host volumes", name);
    if (v->per_alloc && v->sticky)
        validate_blocks_complain(c, "volume \"%s\": per_alloc and sticky exclude each other", name);
    if (v->per_alloc && STR_ONE_OF(j->type, JOB_SYSTEM, JOB_SYSBATCH))
        validate_blocks_complain(c, "volume \"%s\": a %s job has no per_alloc volumes", name,
                                 j->type);
    if (v->per_alloc && g->update && g->update->canary > 0)
        validate_blocks_complain(c, "volume \"%s\": canaries cannot have per_alloc volumes", name);
    if (STR_ONE_OF(v->access_mode, "single-node-reader-only", "multi-node-reader-only") &&
        !v->read_only)
        validate_blocks_complain(c, "volume \"%s\": access_mode \"%s\" needs read_only = true",
                                 name, v->access_mode);
    if (csi && lone &&
        STR_ONE_OF(v->access_mode, "single-node-reader-only", "single-node-writer",
                   "multi-node-single-writer"))
        validate_blocks_complain(c, "volume \"%s\": access_mode \"%s\" is for a count of 1", name,
                                 v->access_mode);
    if (str_eq(str_or(v->attachment_mode, ""), "block-device") && v->mount_options)
        validate_blocks_complain(c, "volume \"%s\": a block-device has no mount_options", name);
}

/* --- group --- */

/* Says whether a text has a variable that another task of the group has otherwise. */
static bool
validate_blocks_of_a_task(const char *s)
{
    static const char *const names[] = {"NOMAD_TASK_", "NOMAD_SECRETS_DIR", "${secret."};
    bool has = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        has = has || strstr(str_or(s, ""), names[i]) != NULL;
    return has;
}

/* It is fetched once, by whichever task comes first. */
static void
validate_blocks_group_artifact(const struct check *c, const struct task_artifact *a)
{
    const char *dest = str_or(a->relative_dest, "");
    bool of_a_task = validate_blocks_of_a_task(a->getter_source) || validate_blocks_of_a_task(dest);
    validate_blocks_artifact(c, a);
    for (size_t i = 0; i < a->getter_options.n; i++)
        of_a_task = of_a_task || validate_blocks_of_a_task(a->getter_options.v[i].v);
    for (size_t i = 0; i < a->getter_headers.n; i++)
        of_a_task = of_a_task || validate_blocks_of_a_task(a->getter_headers.v[i].v);
    if (of_a_task)
        validate_blocks_complain(c, "artifact of a group: variables of one task, such as "
                                    "NOMAD_TASK_DIR, are not known there: use NOMAD_ALLOC_DIR, or "
                                    "write the artifact into the task");
    if (!validate_blocks_interpolated(dest) && validate_blocks_leaves(dest, 0))
        validate_blocks_complain(c,
                                 "artifact of a group: destination \"%s\" is not in the "
                                 "directory that its tasks share",
                                 dest);
}

void
validate_group_blocks(const void *ctx, const struct job *j, const struct task_group *g,
                      struct str_list *errors)
{
    const struct check c = {ctx, errors};
    validate_blocks_disconnect(&c, j, g);
    validate_blocks_scaling(&c, g);
    for (size_t i = 0; i < g->volumes.n; i++)
        validate_blocks_volume(&c, j, g, g->volumes.v[i].v);
    service_validate(ctx, g, NULL, errors);
    for (size_t i = 0; i < g->artifacts.n; i++)
        validate_blocks_group_artifact(&c, g->artifacts.v[i]);
}

/* --- task --- */

static void
validate_blocks_template(const struct check *c, const struct template *t)
{
    uint64_t perms;
    if (str_empty(t->source_path) == str_empty(t->embedded_tmpl))
        validate_blocks_complain(c, "template: one of source and data is needed, and only one");
    if (str_empty(t->dest_path))
        validate_blocks_complain(c, "template: the destination is missing");
    else if (!validate_blocks_interpolated(t->dest_path) && validate_blocks_escapes(t->dest_path))
        validate_blocks_complain(
            c, "template: destination \"%s\" leaves the directory of the allocation", t->dest_path);
    if (!STR_ONE_OF(t->change_mode, "restart", "signal", "noop", "script"))
        validate_blocks_complain(
            c, "template: change_mode \"%s\" is not restart, signal, noop or script",
            t->change_mode);
    change_mode(c, "template", t->change_mode, t->change_signal);
    if (t->envvars.v && STR_ONE_OF(t->change_mode, "signal"))
        validate_blocks_complain(c, "template: env = true does not go with change_mode \"signal\"");
    if (STR_ONE_OF(t->change_mode, "script") &&
        (!t->change_script || str_empty(t->change_script->command)))
        validate_blocks_complain(
            c, "template: change_mode \"script\" needs a change_script with a command");
    if (t->splay.v < 0)
        validate_blocks_complain(c, "template: splay may not be negative");
    if (t->missing_timeout < 0)
        validate_blocks_complain(c, "template: missing_timeout may not be negative");
    if (!validate_blocks_interpolated(t->perms) &&
        (strspn(t->perms, "01234567") != strlen(t->perms) || strlen(t->perms) > 5 ||
         num_parse_u64(t->perms, &perms) < 0))
        validate_blocks_complain(c, "template: perms \"%s\" is not an octal mode such as 0644",
                                 t->perms);
    const struct wait_config *w = t->wait;
    if (w && (!w->min.set || !w->max.set || w->min.v > w->max.v))
        validate_blocks_complain(c, "template: wait needs a min and a max that is not less");
}

/* Says whether a mount there would hide what each task has, or the kernel's own. */
static bool
is_taken(const char *at)
{
    static const char *const below[] = {"/proc", "/sys", "/dev", "/secrets"};
    for (size_t i = 0; i < ARRAY_LEN(below); i++) {
        size_t n = strlen(below[i]);
        if (strncmp(at, below[i], n) == 0 && (at[n] == '\0' || at[n] == '/'))
            return true;
    }
    return STR_ONE_OF(at, "/", "/alloc", "/local");
}

static void
volume_mount(const struct check *c, const struct task_group *g, const struct volume_mount *m)
{
    if (!str_empty(m->destination) && m->destination[0] != '/' &&
        !validate_blocks_interpolated(m->destination))
        validate_blocks_complain(c, "volume_mount: destination \"%.128s\" is no absolute path",
                                 m->destination);
    if (is_taken(str_or(m->destination, "")))
        validate_blocks_complain(c, "volume_mount: destination \"%.128s\" has something of its own",
                                 m->destination);
    __auto_type of = map_get(g->volumes, str_or(m->volume, ""));
    if (str_empty(m->destination))
        validate_blocks_complain(c, "volume_mount: the destination is missing");
    if (!of && !validate_blocks_interpolated(m->volume))
        validate_blocks_complain(c, "volume_mount: the group has no volume \"%s\"",
                                 str_or(m->volume, ""));
    if (!STR_ONE_OF(m->propagation_mode, "", "private", "host-to-task", "bidirectional"))
        validate_blocks_complain(
            c,
            "volume_mount: propagation_mode \"%s\" is not private, host-to-task or bidirectional",
            m->propagation_mode);
}

static void
validate_blocks_devices(const struct check *c, const struct resources *r)
{
    for (size_t i = 0; i < r->devices.n; i++) {
        const struct requested_device *d = r->devices.v[i];
        if (str_empty(d->name))
            validate_blocks_complain(
                c, "device: the name is missing: type, vendor/type or vendor/type/name");
        if (d->count.v < 1)
            validate_blocks_complain(c, "device \"%s\": count must be at least 1",
                                     str_or(d->name, ""));
        for (size_t k = 0; k < d->constraints.n; k++)
            if (STR_ONE_OF(d->constraints.v[k]->operand, "distinct_hosts", "distinct_property"))
                validate_blocks_complain(
                    c, "device \"%s\": constraint: operator \"%s\" is for jobs, groups and tasks",
                    str_or(d->name, ""), d->constraints.v[k]->operand);
    }
    const struct numa *n = r->numa;
    if (n && !STR_ONE_OF(n->affinity, "", "none", "prefer", "require"))
        validate_blocks_complain(c, "numa: affinity \"%s\" is not none, prefer or require",
                                 n->affinity);
    if (n && STR_ONE_OF(n->affinity, "prefer", "require") && r->cores.v < 1)
        validate_blocks_complain(c, "numa: affinity \"%s\" needs cores", n->affinity);
    for (size_t i = 0; n && i < n->devices.n; i++) {
        bool asked = false;
        for (size_t k = 0; k < r->devices.n; k++)
            asked |= str_eq(r->devices.v[k]->name, n->devices.v[i]);
        if (!asked)
            validate_blocks_complain(c, "numa: device \"%s\" is not among the devices of the task",
                                     n->devices.v[i]);
    }
}

/* The name is part of a file's and a variable's. */
static bool
validate_blocks_identity_name(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= JOB_IDENTITY_NAME_MAX &&
           strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == n;
}

/* Beneath the task's directory. */
static bool
validate_blocks_beneath(const char *path)
{
    for (const char *p = path; *p != '\0'; p += *p == '/') {
        size_t n = strcspn(p, "/");
        if ((n == 2 && strncmp(p, "..", 2) == 0) || n > 200)
            return false;
        p += n;
    }
    return path[strlen(path) - (*path != '\0')] != '/' && strlen(path) <= JOB_PATH_MAX;
}

static void
validate_blocks_identity(const struct check *c, const struct workload_identity *w, bool is_default)
{
    const char *name = is_default ? "default" : str_or(w->name, "");
    if (!is_default && !validate_blocks_identity_name(name))
        validate_blocks_complain(
            c, "identity \"%.140s\": a name is 1 to %d letters, digits, \"-\" and \"_\"", name,
            JOB_IDENTITY_NAME_MAX);
    if (w->ttl < 0)
        validate_blocks_complain(c, "identity \"%s\": ttl may not be negative", name);
    if (is_default && w->ttl > 0)
        validate_blocks_complain(c, "identity \"default\": it has no ttl: write one with a name");
    if (!str_empty(w->service_name))
        validate_blocks_complain(
            c, "identity \"%s\": service_name is for services of Consul: remove it", name);
    for (size_t i = 0; i < w->audience.n; i++)
        if (str_empty(w->audience.v[i]))
            validate_blocks_complain(c, "identity \"%s\": an audience may not be empty", name);
    if (!validate_blocks_beneath(str_or(w->filepath, "")))
        validate_blocks_complain(
            c, "identity \"%s\": filepath \"%.200s\" is no file beneath the task's directory", name,
            w->filepath);
    if (!STR_ONE_OF(str_or(w->change_mode, ""), "", "noop", "restart", "signal"))
        validate_blocks_complain(
            c, "identity \"%s\": change_mode \"%s\" is not noop, restart or signal", name,
            w->change_mode);
    else
        change_mode(c, "identity", w->change_mode, w->change_signal);
}

static void
validate_blocks_identities(const struct check *c, const struct task *t)
{
    if (t->identity != NULL)
        validate_blocks_identity(c, t->identity, true);
    if (t->identities.n > JOB_IDENTITIES_MAX)
        validate_blocks_complain(c, "a task has at most %d identities", JOB_IDENTITIES_MAX);
    for (size_t i = 0; i < t->identities.n; i++) {
        const struct workload_identity *w = t->identities.v[i];
        validate_blocks_identity(c, w, false);
        for (size_t k = 0; k < i; k++)
            if (str_eq(t->identities.v[k]->name, w->name))
                validate_blocks_complain(c, "two identities are called \"%s\"",
                                         str_or(w->name, ""));
    }
}

static void
validate_blocks_actions(const struct check *c, const struct task *t)
{
    for (size_t i = 0; i < t->actions.n; i++) {
        const struct action *x = t->actions.v[i];
        const char *name = str_or(x->name, "");
        if (*name == '\0')
            validate_blocks_complain(c, "action: the name is missing");
        if (str_empty(x->command))
            validate_blocks_complain(c, "action \"%s\": the command is missing", name);
        for (size_t k = 0; k < i; k++)
            if (str_eq(t->actions.v[k]->name, name))
                validate_blocks_complain(c, "action \"%s\" is there twice", name);
    }
}

void
validate_task_blocks(const void *ctx, const struct task_group *g, const struct task *t,
                     struct str_list *errors)
{
    const struct check c = {ctx, errors};
    service_validate(ctx, g, t, errors);
    for (size_t i = 0; i < t->templates.n; i++)
        validate_blocks_template(&c, t->templates.v[i]);
    for (size_t i = 0; i < t->artifacts.n; i++)
        validate_blocks_artifact(&c, t->artifacts.v[i]);
    for (size_t i = 0; i < t->volume_mounts.n; i++)
        volume_mount(&c, g, t->volume_mounts.v[i]);
    validate_blocks_devices(&c, t->resources);
    validate_blocks_identities(&c, t);
    const struct dispatch_payload_config *payload = t->dispatch_payload;
    if (payload && !str_empty(payload->file) &&
        !children_payload_path(ctx, str_or(t->name, ""), payload->file))
        validate_blocks_complain(&c, "dispatch_payload: destination escapes allocation directory");
    validate_blocks_actions(&c, t);
    secret_validate(ctx, t, errors);
    const struct task_csi_plugin_config *p = t->csi_plugin_config;
    if (p && (str_empty(p->id) || !STR_ONE_OF(p->type, "controller", "node", "monolith")))
        validate_blocks_complain(
            &c, "csi_plugin: an id is needed, and a type: controller, node or monolith");
}

/* --- what is not there --- */

static void
group_unsupported(const struct check *c, const struct task_group *g)
{
    for (size_t i = 0; i < g->volumes.n; i++) {
        const struct volume_request *v = g->volumes.v[i].v;
        if (str_eq(v->type, "csi"))
            validate_blocks_complain(c,
                                     "volume \"%s\": type \"csi\" is not in this release; write "
                                     "type = \"host\", with a host_volume of a client as source",
                                     str_or(v->name, ""));
    }
}

static void
task_unsupported(const struct check *c, const struct task *t)
{
    const char *name = str_or(t->name, "");
    if (t->volume_mounts.n > 0 && STR_ONE_OF(t->driver, "raw_exec", "qemu"))
        validate_blocks_complain(c,
                                 "task \"%s\": volume_mount: driver \"%s\" has no mounts; use "
                                 "exec, java, docker or podman",
                                 name, t->driver);
    if (t->resources && t->resources->devices.n > 0 && str_eq(t->driver, "qemu"))
        validate_blocks_complain(c,
                                 "task \"%s\": device: driver \"qemu\" passes no devices on; use "
                                 "exec, java, docker or podman",
                                 name);
    for (size_t i = 0; i < t->volume_mounts.n; i++) {
        const struct volume_mount *m = t->volume_mounts.v[i];
        if (STR_ONE_OF(m->propagation_mode, "host-to-task", "bidirectional"))
            validate_blocks_complain(c,
                                     "task \"%s\": volume_mount: propagation_mode \"%s\" is not in "
                                     "this release: remove it",
                                     name, m->propagation_mode);
        if (!str_empty(m->se_linux_label))
            validate_blocks_complain(
                c, "task \"%s\": volume_mount: selinux_label is not in this release: remove it",
                name);
    }
}

void
volume_unsupported(const void *ctx, const struct job *job, struct str_list *errors)
{
    const struct check c = {ctx, errors};
    for (size_t g = 0; g < job->task_groups.n; g++) {
        const struct task_group *tg = job->task_groups.v[g];
        group_unsupported(&c, tg);
        for (size_t i = 0; i < tg->tasks.n; i++)
            task_unsupported(&c, tg->tasks.v[i]);
    }
}
