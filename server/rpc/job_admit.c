/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job must be to be registered: canonical form, everything wrong with it, what is kept of
 * the version before. Worker threads.
 */
#include "server/rpc/job_admit.h"

#include <string.h>

#include "api/canonical.h"
#include "api/namespace.h"
#include "api/pool.h"
#include "api/terms.h"
#include "api/validate.h"
#include "common/host/zone.h"
#include "common/mem.h"
#include "server/sched/compare/constraint.h"
#include "template/template.h"

/* --- what is wrong with it --- */

static void
check_constraints(const void *ctx, const char *where, const struct constraint_list *l,
                  struct str_list *errors)
{
    for (size_t i = 0; i < l->n; i++) {
        struct err e = ERR_INIT;
        if (constraint_check(l->v[i], &e) < 0)
            list_add(ctx, *errors, mem_printf(ctx, "%s: %s", where, e.text));
    }
}

/* Checks what needs the scheduler's own eyes: patterns and versions. */
static void
check_job_constraints(const void *ctx, const struct job *job, struct str_list *errors)
{
    check_constraints(ctx, "job constraint", &job->constraints, errors);
    for (size_t g = 0; g < job->task_groups.n; g++) {
        const struct task_group *tg = job->task_groups.v[g];
        const char *where = mem_printf(ctx, "group \"%s\" constraint", str_or(tg->name, ""));
        check_constraints(ctx, where, &tg->constraints, errors);
        for (size_t t = 0; t < tg->tasks.n; t++) {
            where = mem_printf(ctx, "group \"%s\" task \"%s\" constraint", str_or(tg->name, ""),
                               str_or(tg->tasks.v[t]->name, ""));
            check_constraints(ctx, where, &tg->tasks.v[t]->constraints, errors);
        }
    }
}

/* Looks for the time zone in the files of this machine. */
static void
check_time_zone(const void *ctx, const struct job *job, struct str_list *errors)
{
    const struct zone *z;
    struct err e = ERR_INIT;
    if (job->periodic != NULL && job->periodic->enabled.v &&
        zone_find(job->periodic->time_zone, &z, &e) < 0)
        list_add(
            ctx, *errors,
            mem_printf(ctx, "Invalid time zone \"%.64s\": %s", job->periodic->time_zone, e.text));
}

/* Drops what only a server says of a job. Stop is the client's as well: such a job is registered
 * stopped. */
static void
drop_server_fields(struct job *j)
{
    j->parent_id = j->dispatch_idempotency_token = NULL;
    j->dispatched = j->stable = false;
    j->consul_namespace = j->vault_namespace = j->nomad_token_id = NULL;
    j->status = j->status_description = NULL;
    j->version = j->create_index = j->modify_index = j->job_modify_index = 0;
    j->submit_time = 0;
    j->version_tag = NULL;
}

/* Adds the first mistake of each text that can be parsed here already: a file may be read later. A
 * node may allow functions that another one denies. */
static void
check_templates(void *ctx, const struct task_group *g, const struct task *task,
                struct str_list *errors)
{
    for (size_t i = 0; i < task->templates.n; i++) {
        const struct template *x = task->templates.v[i];
        const struct template_grammar grammar = {
            .left = x->left_delim, .right = x->right_delim, .table = TEMPLATE_TASK};
        struct template_tree *tree = NULL;
        struct err e = ERR_INIT;
        auto_mem void *tmp = mem_ctx("template");
        const char *text = str_or(x->embedded_tmpl, "");
        if (template_parse(tmp, &grammar, SLICE(text, strlen(text)), &tree, &e) < 0)
            list_add(ctx, *errors,
                     mem_printf(ctx, "task group \"%s\": task \"%s\": template of \"%.200s\": %s",
                                str_or(g->name, ""), str_or(task->name, ""),
                                str_or(x->dest_path, ""), e.text));
    }
}

struct job_limits
job_limits_of(const struct write *w)
{
    const struct agent_server *s = server_cfg(w->s)->agent;
    struct job_limits ret = {100, 50000, false};

    if (s == NULL)
        return ret;
    ret.max_priority = s->job_max_priority;
    ret.max_count = s->job_max_count.v == 0 ? -1 : s->job_max_count.v;
    return ret;
}

void
job_admit(struct write *w, struct state_txn *t, const struct job *job, struct admitted *a)
{
    void *ctx = w->ctx;
    const struct scheduler_configuration *cfg = state_scheduler_config(t, ctx);
    const struct agent_server *server = server_cfg(w->s)->agent;
    struct job_limits limits = job_limits_of(w);

    *a = (struct admitted){.cfg = cfg};
    a->job = codec_clone(ctx, &type_job, job);
    drop_server_fields(a->job);
    a->job->namespace = w->ns;
    const struct namespace *ns = state_namespace(t, ctx, a->job->namespace);
    namespace_defaults(ns, a->job);
    if (server != NULL && a->job->priority.v == 0)
        a->job->priority = (struct opt_i64){true, server->job_default_priority};
    job_canonicalize(ctx, a->job);
    job_imply_constraints(ctx, a->job);
    limits.memory_oversubscription =
        pool_oversubscribes(state_node_pool(t, ctx, a->job->node_pool), cfg);
    if (!state_has_namespace(t, a->job->namespace))
        list_add(ctx, a->errors,
                 mem_printf(ctx, "job \"%s\" is in nonexistent namespace \"%s\"",
                            str_or(a->job->id, ""), a->job->namespace));
    else if (!state_has_pool(t, a->job->node_pool))
        list_add(ctx, a->errors,
                 mem_printf(ctx, "job \"%s\" is in nonexistent node pool \"%s\"",
                            str_or(a->job->id, ""), a->job->node_pool));
    if (ns != NULL)
        namespace_admits(ctx, ns, a->job, &a->errors);
    if (job_validate(ctx, a->job, &limits, &a->errors, &a->warnings) == 0 &&
        server_cfg(w->s)->admit)
        server_cfg(w->s)->admit(ctx, a->job, &a->errors);
    check_time_zone(ctx, a->job, &a->errors);
    for (size_t i = 0; i < a->job->task_groups.n; i++)
        for (size_t k = 0; k < a->job->task_groups.v[i]->tasks.n; k++)
            check_templates(ctx, a->job->task_groups.v[i], a->job->task_groups.v[i]->tasks.v[k],
                            &a->errors);
    check_job_constraints(ctx, a->job, &a->errors);
    job_unsupported(ctx, a->job, &a->unsupported);
    a->old = str_empty(a->job->id) ? NULL : state_job(t, ctx, a->job->namespace, a->job->id);
}

/* All of them, in Nomad's form; the last lines give way to a count where an error has no room. */
static int
refuse_for_all(void *ctx, int code, const struct str_list *why, struct err *e)
{
    struct str_list told = {mem_array(ctx, const char *, why->n + 1), why->n};
    const char *text = job_errors_text(ctx, why);

    memcpy(told.v, why->v, why->n * sizeof(*why->v));
    for (size_t n = why->n; strlen(text) >= sizeof(e->text) && n-- > 1;) {
        told.v[n] =
            mem_printf(ctx, "and %zu more, which paddock job validate -strict names", why->n - n);
        told.n = n + 1;
        text = job_errors_text(ctx, &told);
    }
    return err_set(e, code, "%s", text);
}

int
job_admit_or_refuse(struct write *w, struct state_txn *t, const struct job *job, struct admitted *a,
                    struct err *e)
{
    if (job == NULL || str_empty(job->id))
        return err_set(e, -ERR_INVALID, "Missing job ID for registration");
    if (!str_eq(str_or(job->namespace, w->ns), w->ns))
        return err_set(e, -ERR_INVALID, "the job is of namespace \"%.64s\", the call of \"%.64s\"",
                       job->namespace, w->ns);
    job_admit(w, t, job, a);
    size_t invalid = a->errors.n;
    for (size_t i = 0; i < a->unsupported.n; i++)
        list_add(w->ctx, a->errors, a->unsupported.v[i]);
    if (a->errors.n == 0)
        return 0;
    return refuse_for_all(w->ctx, invalid > 0 ? -ERR_INVALID : -ERR_UNSUPPORTED, &a->errors, e);
}

/* --- what is kept of the one before --- */

void
job_preserve(void *ctx, struct job *job, const struct job *old,
             const struct job_register_request *req)
{
    for (size_t g = 0; old != NULL && !old->stop && g < job->task_groups.n; g++) {
        struct task_group *tg = job->task_groups.v[g];
        const struct task_group *was = job_group(old, tg->name);
        if (was == NULL)
            continue;
        if (req->preserve_counts)
            tg->count = was->count;
        for (size_t t = 0; req->preserve_resources && t < tg->tasks.n; t++) {
            const struct task *task = group_task(was, tg->tasks.v[t]->name);
            if (task != NULL)
                tg->tasks.v[t]->resources = codec_clone(ctx, &type_resources, task->resources);
        }
    }
}
