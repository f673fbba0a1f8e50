/* SPDX-License-Identifier: Apache-2.0
 *
 * The defaults of blocks in groups and tasks, as Nomad fills them in.
 *
 * In this order: setters, services, blocks of a task, and last the group, which goes through all of
 * them.
 */
#include "api/canonical_blocks.h"

#include <ctype.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"

#define SECOND INT64_C(1000000000)

static void
set_str(const void *ctx, const char **s, const char *v)
{
    if (str_empty(*s))
        *s = mem_strdup(ctx, v);
}

static void
set_bool(struct opt_bool *o, bool v)
{
    if (!o->set)
        *o = (struct opt_bool){true, v};
}

static void
set_opt(struct opt_i64 *o, int64_t v)
{
    if (!o->set)
        *o = (struct opt_i64){true, v};
}

/* --- services --- */

/* Gives the check the values of its service; those of the check go before. */
static void
check_restart(const void *ctx, struct service_check *c, const struct check_restart *of_service)
{
    struct check_restart *own = c->check_restart;
    if (!own) {
        own = c->check_restart = codec_clone(ctx, &type_check_restart, of_service);
    } else if (of_service) {
        if (own->limit <= 0)
            own->limit = of_service->limit;
        if (!own->grace.set)
            own->grace = of_service->grace;
        own->ignore_warnings = own->ignore_warnings || of_service->ignore_warnings;
    }
    if (own)
        set_opt(&own->grace, SECOND);
}

static void
canonical_blocks_connect(const void *ctx, struct consul_connect *c)
{
    if (c && c->gateway && c->gateway->proxy)
        set_opt(&c->gateway->proxy->connect_timeout, 5 * SECOND);
    struct sidecar_task *t = c ? c->sidecar_task : NULL;
    if (!t)
        return;
    set_opt(&t->kill_timeout, 5 * SECOND);
    if (!t->log_config)
        t->log_config = mem_new(ctx, struct log_config);
    set_opt(&t->log_config->max_files, 10);
    set_opt(&t->log_config->max_file_size_mb, 10);
    if (!t->resources)
        t->resources = mem_new(ctx, struct resources);
    set_opt(&t->resources->cores, 0);
    set_opt(&t->resources->cpu, t->resources->cores.v > 0 ? 0 : 100);
    set_opt(&t->resources->memory_mb, 300);
}

/* Replaces what stands for the job's own names. */
static const char *
service_name_of(const void *ctx, const char *name, const char *const (*words)[2])
{
    auto_buf struct buf b = BUF_INIT(SIZE_MAX);

    for (const char *p = name; *p != '\0';) {
        const char *const(*w)[2] = words;
        while ((*w)[0] != NULL && !str_prefix(p, (*w)[0]))
            w++;
        if ((*w)[0] != NULL)
            buf_puts(&b, (*w)[1]);
        else
            buf_putc(&b, *p);
        p += (*w)[0] != NULL ? strlen((*w)[0]) : 1;
    }
    return mem_strdup(ctx, buf_str(&b));
}

/* `task` NULL: of the group. */
static void
canonical_blocks_service(const void *ctx, struct service *s, const struct job *j,
                         const struct task_group *g, const char *task)
{
    const char *of = str_or(task, "group");
    const char *const words[][2] = {
        {"${JOB}", str_or(j->name, "")},
        {"${TASKGROUP}", str_or(g->name, "")},
        {"${TASK}", of},
        {"${BASE}", mem_printf(ctx, "%s-%s-%s", str_or(j->name, ""), str_or(g->name, ""), of)},
        {NULL, NULL}};

    set_str(ctx, &s->name,
            task != NULL ? mem_printf(ctx, "%s-%s-%s", j->name, g->name, task)
                         : mem_printf(ctx, "%s-%s", j->name, g->name));
    if (strstr(s->name, "${") != NULL)
        s->name = service_name_of(ctx, s->name, words);
    set_str(ctx, &s->address_mode, "auto");
    set_str(ctx, &s->on_update, "require_healthy");
    set_str(ctx, &s->provider, "consul");
    set_str(ctx, &s->cluster, "default");
    canonical_blocks_connect(ctx, s->connect);
    if (s->weights) {
        s->weights->passing = s->weights->passing > 0 ? s->weights->passing : 1;
        s->weights->warning = s->weights->warning > 0 ? s->weights->warning : 1;
    }
    for (size_t i = 0; i < s->checks.n; i++) {
        struct service_check *c = s->checks.v[i];
        check_restart(ctx, c, s->check_restart);
        set_str(ctx, &c->name, mem_printf(ctx, "service: \"%s\" check", s->name));
        set_str(ctx, &c->on_update, s->on_update);
    }
}

/* --- task --- */

/* `dir`: where it goes when nothing is said. */
static void
canonical_blocks_artifact(const void *ctx, const char *dir, struct task_artifact *a)
{
    set_str(ctx, &a->getter_mode, "any");
    set_bool(&a->getter_insecure, false);
    if (!str_empty(a->relative_dest))
        return;
    const char *source = str_or(a->getter_source, ""), *slash = strrchr(source, '/');
    a->relative_dest = str_eq(a->getter_mode, "file")
                           ? mem_printf(ctx, "%s%s", dir, slash ? slash + 1 : source)
                           : mem_strdup(ctx, dir);
}

static const char *
canonical_blocks_upper(const void *ctx, const char *s)
{
    char *up = mem_strdup(ctx, s);
    for (char *p = up; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return up;
}

static void
canonical_blocks_template(const void *ctx, struct template *t)
{
    set_str(ctx, &t->change_mode, "restart");
    if (!str_empty(t->change_signal))
        t->change_signal = canonical_blocks_upper(ctx, t->change_signal);
    else if (str_eq(t->change_mode, "signal"))
        t->change_signal = mem_strdup(ctx, "SIGHUP");
    set_bool(&t->once, false);
    set_opt(&t->splay, 5 * SECOND);
    set_str(ctx, &t->perms, "0644");
    set_str(ctx, &t->left_delim, "{{");
    set_str(ctx, &t->right_delim, "}}");
    set_bool(&t->envvars, false);
    set_bool(&t->err_missing_key, false);
    set_opt(&t->vault_grace, 0);
    if (t->change_script) {
        set_opt(&t->change_script->timeout, 5 * SECOND);
        set_bool(&t->change_script->fail_on_error, false);
        set_bool(&t->change_script->run_on_first_render, false);
    }
}

static void
canonical_blocks_vault(const void *ctx, struct vault *v)
{
    set_bool(&v->env, true);
    set_bool(&v->disable_file, false);
    set_str(ctx, &v->cluster, "default");
    set_str(ctx, &v->change_mode, "restart");
    set_str(ctx, &v->change_signal, "SIGHUP");
    set_bool(&v->allow_token_expiration, false);
}

static void
canonical_blocks_devices(struct resources *r, const void *ctx)
{
    for (size_t i = 0; i < r->devices.n; i++) {
        struct requested_device *d = r->devices.v[i];
        set_opt(&d->count, 1);
        for (size_t k = 0; k < d->affinities.n; k++)
            set_opt(&d->affinities.v[k]->weight, 50);
    }
    if (r->numa)
        set_str(ctx, &r->numa->affinity, "none");
}

static void
canonical_blocks_identity(const void *ctx, struct workload_identity *w)
{
    if (!str_empty(w->change_signal))
        w->change_signal = canonical_blocks_upper(ctx, w->change_signal);
}

/* The one that every task has is kept apart from those with a name. */
static void
canonical_blocks_identities(const void *ctx, struct task *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->identities.n; i++) {
        struct workload_identity *w = t->identities.v[i];
        canonical_blocks_identity(ctx, w);
        if (t->identity == NULL && str_eq(str_or(w->name, "default"), "default"))
            t->identity = w;
        else
            t->identities.v[kept++] = w;
    }
    t->identities.n = kept;
    if (t->identity != NULL) {
        set_str(ctx, &t->identity->name, "default");
        canonical_blocks_identity(ctx, t->identity);
    }
}

static void
canonical_blocks_task(const void *ctx, const struct job *j, const struct task_group *g,
                      struct task *t)
{
    for (size_t i = 0; i < t->services.n; i++)
        canonical_blocks_service(ctx, t->services.v[i], j, g, t->name);
    for (size_t i = 0; i < t->artifacts.n; i++)
        canonical_blocks_artifact(ctx, "local/", t->artifacts.v[i]);
    for (size_t i = 0; i < t->templates.n; i++)
        canonical_blocks_template(ctx, t->templates.v[i]);
    canonical_blocks_identities(ctx, t);
    for (size_t i = 0; i < t->volume_mounts.n; i++) {
        set_bool(&t->volume_mounts.v[i]->read_only, false);
        set_str(ctx, &t->volume_mounts.v[i]->propagation_mode, "private");
    }
    if (t->vault)
        canonical_blocks_vault(ctx, t->vault);
    if (t->consul)
        set_str(ctx, &t->consul->cluster, "default");
    if (t->csi_plugin_config) {
        struct task_csi_plugin_config *c = t->csi_plugin_config;
        set_str(ctx, &c->mount_dir, "/csi");
        set_str(ctx, &c->stage_publish_base_dir, "/local/csi");
        c->health_timeout = c->health_timeout ? c->health_timeout : 30 * SECOND;
    }
    canonical_blocks_devices(t->resources, ctx);
}

/* --- group --- */

void
canonical_count(struct task_group *g)
{
    if (g->scaling && g->scaling->min.set)
        set_opt(&g->count, g->scaling->min.v);
}

/* Fills in from the older fields what the disconnect block, which took their place, leaves out. */
static void
older_disconnect(const void *ctx, struct task_group *g)
{
    if (!g->max_client_disconnect.set && !g->stop_after_client_disconnect.set &&
        !g->prevent_reschedule_on_lost)
        return;
    if (g->disconnect == NULL)
        g->disconnect = type_new(ctx, &type_disconnect_strategy);
    struct disconnect_strategy *d = g->disconnect;
    if (g->max_client_disconnect.set)
        set_opt(&d->lost_after, g->max_client_disconnect.v);
    if (g->stop_after_client_disconnect.set)
        set_opt(&d->stop_on_client_after, g->stop_after_client_disconnect.v);
    if (g->prevent_reschedule_on_lost)
        set_bool(&d->replace, false);
}

void
canonical_blocks(const void *ctx, const struct job *j, struct task_group *g)
{
    if (g->scaling) {
        set_bool(&g->scaling->enabled, true);
        set_opt(&g->scaling->min, g->count.v);
        set_str(ctx, &g->scaling->type, "horizontal");
    }
    if (g->consul)
        set_str(ctx, &g->consul->cluster, "default");
    older_disconnect(ctx, g);
    if (g->disconnect) {
        set_bool(&g->disconnect->replace, true);
        set_str(ctx, &g->disconnect->reconcile, "best_score");
    }
    for (size_t i = 0; i < g->services.n; i++)
        canonical_blocks_service(ctx, g->services.v[i], j, g, NULL);
    for (size_t i = 0; i < g->artifacts.n; i++)
        canonical_blocks_artifact(ctx, "data/", g->artifacts.v[i]);
    for (size_t i = 0; i < g->tasks.n; i++)
        canonical_blocks_task(ctx, j, g, g->tasks.v[i]);
}
