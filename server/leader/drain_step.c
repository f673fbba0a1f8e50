/* SPDX-License-Identifier: Apache-2.0
 *
 * The drainer's decisions (see drain.h).
 */
#include "server/leader/drain_step.h"

#include <stdlib.h>
#include <string.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"

/* For groups that were stored without a migrate block. */
static const struct migrate_strategy pace_default = {
    .max_parallel = {true, 1},
    .min_healthy_time = {true, 10 * NS_PER_S},
    .healthy_deadline = {true, 300 * NS_PER_S},
};

struct step {
    const struct drain_in *in;
    struct drain_out *out;
    /* jobs with service allocations that wait for their turn, each once */
    const struct allocation **paced;
    size_t n_paced;
};

static bool
drain_step_moving(const struct allocation *a)
{
    const struct desired_transition *t = a->desired_transition;

    return alloc_server_terminal(a) || (t != NULL && t->migrate.set && t->migrate.v);
}

static const char *
type_of(const struct allocation *a)
{
    return a->job != NULL ? str_or(a->job->type, JOB_SERVICE) : JOB_SERVICE;
}

static bool
same_job(const struct job *j, const char *ns, const char *id)
{
    return str_eq(j->id, id) && str_eq(j->namespace, ns);
}

static void
drain_step_flag(struct step *s, struct drain_move *m, const struct allocation *a)
{
    const struct job *j = s->in->job(s->in->arg, a->namespace, a->job_id);

    list_add(s->out, m->allocs, a->id);
    j = j != NULL ? j : a->job;
    for (size_t i = 0; j != NULL && i < m->n_jobs; i++)
        if (same_job(m->jobs[i], j->namespace, j->id))
            j = NULL;
    if (j == NULL)
        return;
    mem_resize(s->out, m->jobs, const struct job *, m->n_jobs + 1);
    m->jobs[m->n_jobs++] = j;
}

static void
drain_step_wake(struct step *s, int64_t at)
{
    if (at < s->out->look_again)
        s->out->look_again = at;
}

/* --- one node --- */

static bool
drain_step_forced(const struct step *s, const struct drain_strategy *d)
{
    return d->deadline < 0 || (d->force_deadline != 0 && d->force_deadline <= s->in->now);
}

static void
drain_step_pace(struct step *s, const struct allocation *a)
{
    for (size_t i = 0; i < s->n_paced; i++)
        if (str_eq(s->paced[i]->job_id, a->job_id) && str_eq(s->paced[i]->namespace, a->namespace))
            return;
    mem_resize(s->out, s->paced, const struct allocation *, s->n_paced + 1);
    s->paced[s->n_paced++] = a;
}

static void
look_at_alloc(struct step *s, const struct allocation *a, bool now)
{
    bool service = str_eq(type_of(a), JOB_SERVICE);

    if (drain_step_moving(a))
        return;
    if (now)
        drain_step_flag(s, service ? &s->out->move : &s->out->end, a);
    else if (service)
        drain_step_pace(s, a);
}

static void
look_at_node(struct step *s, const struct node *n)
{
    const struct drain_strategy *d = n->drain_strategy;
    bool now = drain_step_forced(s, d);
    size_t n_allocs, system = 0, others = 0;
    const struct allocation *const *v = s->in->allocs_by_node(s->in->arg, n->id, &n_allocs);

    for (size_t i = 0; i < n_allocs; i++) {
        if (alloc_client_terminal(v[i]))
            continue;
        if (str_eq(type_of(v[i]), JOB_SYSTEM)) {
            system++;
            continue;
        }
        others++;
        look_at_alloc(s, v[i], now);
    }
    if (d->ignore_system_jobs)
        system = 0;
    for (size_t i = 0; system > 0 && (now || others == 0) && i < n_allocs; i++)
        if (str_eq(type_of(v[i]), JOB_SYSTEM) && !alloc_client_terminal(v[i]) &&
            !drain_step_moving(v[i]))
            drain_step_flag(s, &s->out->move, v[i]);
    if (others + system == 0)
        list_add(s->out, s->out->done, n->id);
    else if (!now && d->force_deadline != 0)
        drain_step_wake(s, d->force_deadline);
}

/* --- one group, wherever it runs --- */

static int64_t
drain_step_value(struct opt_i64 v, struct opt_i64 dflt)
{
    return v.set ? v.v : dflt.v;
}

/* When the last of its tasks that are to run began to; INT64_MAX: some do not. */
static int64_t
running_since(const struct allocation *a)
{
    int64_t since = 0;

    if (!str_eq(a->client_status, ALLOC_RUNNING))
        return INT64_MAX;
    for (size_t i = 0; i < a->task_states.n; i++) {
        const struct task_state *t = a->task_states.v[i].v;
        if (t != NULL && str_eq(t->state, "dead") && !t->failed)
            continue; /* before or beside the main tasks, and done */
        if (t == NULL || !str_eq(t->state, "running"))
            return INT64_MAX;
        since = t->started_at > since ? t->started_at : since;
    }
    return since != 0 ? since : INT64_MAX;
}

static int64_t
drain_step_later(int64_t at, int64_t by)
{
    return at > INT64_MAX - by ? INT64_MAX : at + by;
}

/* From when on nobody waits for it any more. */
static int64_t
settled_at(const struct allocation *a, const struct migrate_strategy *m)
{
    if (a->deployment_status != NULL && a->deployment_status->healthy.set)
        return 0;
    /* Within a deployment its update block says what healthy is, and the client alone when. */
    int64_t since = str_empty(a->deployment_id) ? running_since(a) : INT64_MAX;
    int64_t good = drain_step_later(
        since, drain_step_value(m->min_healthy_time, pace_default.min_healthy_time));
    int64_t given_up = drain_step_later(
        a->create_time, drain_step_value(m->healthy_deadline, pace_default.healthy_deadline));
    return good < given_up ? good : given_up;
}

int64_t
drain_room(int64_t count, int64_t max_parallel, int64_t settled, int64_t drainable)
{
    int64_t n = settled - (count - max_parallel);

    n = n < drainable ? n : drainable;
    return n > 0 ? n : 0;
}

static int
node_cmp(const void *id, const void *n)
{
    return strcmp(id, (*(const struct node *const *)n)->id);
}

/* The draining node that it is on, or NULL. */
static const struct node *
drain_step_draining(const struct step *s, const struct allocation *a)
{
    const struct node *const *n =
        bsearch(str_or(a->node_id, ""), s->in->nodes, s->in->n_nodes, sizeof(*n), node_cmp);

    return n != NULL ? *n : NULL;
}

static void
pace_group(struct step *s, const struct task_group *tg, const struct allocation *const *v, size_t n)
{
    const struct migrate_strategy *m = tg->migrate != NULL ? tg->migrate : &pace_default;
    const struct allocation **ready = mem_array(s->out, const struct allocation *, n);
    const struct allocation **silent = mem_array(s->out, const struct allocation *, n);
    int64_t settled = 0, drainable = 0, heard = 0, n_silent = 0, next = INT64_MAX;

    for (size_t i = 0; i < n; i++) {
        const struct allocation *a = v[i];
        if (!str_eq(a->task_group, tg->name) || alloc_client_terminal(a) || drain_step_moving(a))
            continue;
        const struct node *from = drain_step_draining(s, a);
        if (from != NULL && drain_step_forced(s, from->drain_strategy))
            continue;                                  /* has just got its flag */
        if (str_eq(a->client_status, ALLOC_UNKNOWN)) { /* nobody knows whether it runs */
            if (from != NULL)
                silent[n_silent++] = a;
            continue;
        }
        heard++;
        int64_t at = settled_at(a, m);
        if (at <= s->in->now)
            settled++;
        else
            next = at < next ? at : next;
        if (from != NULL)
            ready[drainable++] = a;
    }
    int64_t room =
        drain_room(tg->count.v, drain_step_value(m->max_parallel, pace_default.max_parallel),
                   settled, drainable);
    for (int64_t i = 0; i < room; i++)
        drain_step_flag(s, &s->out->move, ready[i]);
    /* the allocation is replaced already: when it comes back, its replacement stays (scenario
     * A54). */
    for (int64_t i = 0; i < n_silent && heard >= tg->count.v; i++)
        drain_step_flag(s, &s->out->move, silent[i]);
    if (drainable > room)
        drain_step_wake(s, next);
}

/* A job that is stopped or gone, or lost the group, ends by itself. */
static void
pace_job(struct step *s, const struct allocation *of)
{
    const struct job *j = s->in->job(s->in->arg, of->namespace, of->job_id);
    size_t n;

    if (j == NULL || j->stop)
        return;
    const struct allocation *const *v =
        s->in->allocs_by_job(s->in->arg, of->namespace, of->job_id, &n);
    for (size_t i = 0; i < j->task_groups.n; i++)
        pace_group(s, j->task_groups.v[i], v, n);
}

struct drain_out *
drain_step(const void *ctx, const struct drain_in *in)
{
    struct drain_out *out = mem_new(ctx, struct drain_out);
    struct step s = {.in = in, .out = out};

    out->look_again = INT64_MAX;
    for (size_t i = 0; i < in->n_nodes; i++)
        look_at_node(&s, in->nodes[i]);
    for (size_t i = 0; i < s.n_paced; i++)
        pace_job(&s, s.paced[i]);
    return out;
}
