/* SPDX-License-Identifier: Apache-2.0 */
#include "jobspec/normalize.h"

#include "common/mem.h"
#include "common/str.h"

#define SECOND INT64_C(1000000000)

void
normalize_share(const void *ctx, const struct task_group *g, const struct job_shared *s)
{
    for (size_t i = 0; i < g->tasks.n; i++) {
        struct task *t = g->tasks.v[i];
        if (!t->vault)
            t->vault = codec_clone(ctx, &type_vault, s->vault);
        for (size_t k = 0; k < s->secrets.n; k++)
            list_add(ctx, t->secrets, codec_clone(ctx, &type_secret, s->secrets.v[k]));
    }
}

static void
normalize_say(const void *ctx, const char **s, const char *v)
{
    if (!*s)
        *s = mem_strdup(ctx, v);
}

static void
say_bool(struct opt_bool *o, bool v)
{
    if (!o->set)
        *o = (struct opt_bool){true, v};
}

static void
normalize_vault(const void *ctx, struct vault *v)
{
    say_bool(&v->env, true);
    say_bool(&v->disable_file, false);
    normalize_say(ctx, &v->change_mode, "restart");
}

static void
normalize_template(const void *ctx, struct template *t)
{
    normalize_say(ctx, &t->change_mode, "restart");
    normalize_say(ctx, &t->perms, "0644");
    if (!t->splay.set)
        t->splay = (struct opt_i64){true, 5 * SECOND};
    say_bool(&t->err_missing_key, false);
    struct change_script *c = t->change_script;
    if (!c)
        return;
    if (!c->timeout.set)
        c->timeout = (struct opt_i64){true, 5 * SECOND};
    say_bool(&c->fail_on_error, false);
    say_bool(&c->run_on_first_render, false);
}

/* The identity that every task has is kept apart from those with a name. */
static void
default_identity(struct task *t)
{
    for (size_t i = 0; i < t->identities.n; i++) {
        if (!str_eq(str_or(t->identities.v[i]->name, "default"), "default"))
            continue;
        t->identity = t->identities.v[i];
        for (size_t k = i + 1; k < t->identities.n; k++)
            t->identities.v[k - 1] = t->identities.v[k];
        t->identities.n--;
        return;
    }
}

/* A constraint without an operator is "=" in a file; in JSON it is an error. */
static void
normalize_equals(const struct constraint_list *l, const struct affinity_list *a)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_empty(l->v[i]->operand))
            l->v[i]->operand = "=";
    for (size_t i = 0; i < a->n; i++)
        if (str_empty(a->v[i]->operand))
            a->v[i]->operand = "=";
}

static void
normalize_task(const void *ctx, struct task *t)
{
    normalize_equals(&t->constraints, &t->affinities);
    for (size_t i = 0; t->resources && i < t->resources->devices.n; i++)
        normalize_equals(&t->resources->devices.v[i]->constraints,
                         &t->resources->devices.v[i]->affinities);
    if (t->vault)
        normalize_vault(ctx, t->vault);
    for (size_t i = 0; i < t->templates.n; i++)
        normalize_template(ctx, t->templates.v[i]);
    default_identity(t);
}

void
normalize_job(const void *ctx, struct job *job)
{
    if (str_empty(job->name))
        job->name = mem_strdup(ctx, job->id);
    if (job->periodic && (job->periodic->spec || job->periodic->specs.n > 0))
        job->periodic->spec_type = mem_strdup(ctx, "cron");
    normalize_equals(&job->constraints, &job->affinities);
    for (size_t g = 0; g < job->task_groups.n; g++) {
        struct task_group *tg = job->task_groups.v[g];
        normalize_equals(&tg->constraints, &tg->affinities);
        if (tg->scaling && str_empty(tg->scaling->type))
            tg->scaling->type = mem_strdup(ctx, "horizontal");
        for (size_t t = 0; t < tg->tasks.n; t++)
            normalize_task(ctx, tg->tasks.v[t]);
    }
}
