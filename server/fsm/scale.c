/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: scaling. A group is scaled by a version of its own, within its policy, while
 * no deployment is under way.
 */
#include <inttypes.h>

#include "server/fsm/fsm_int.h"

enum { EVENTS_KEPT = 20 };

/* --- events --- */

static void
put_event(struct apply *a, const struct job *j, const char *group, struct scaling_event *ev)
{
    struct group_scaling_events *row =
        state_get(a->t, a->ctx, SCALING_EVENTS, j->namespace, j->id, .c = group);
    struct scaling_event_list kept = {NULL, 0};

    if (row == NULL) {
        row = type_new(a->ctx, &type_group_scaling_events);
        row->namespace = mem_strdup(row, j->namespace);
        row->job_id = mem_strdup(row, j->id);
        row->group = mem_strdup(row, group);
        row->create_index = a->index;
    }
    ev->time = a->now;
    ev->create_index = a->index;
    list_add(row, kept, ev);
    for (size_t i = 0; i < row->events.n && kept.n < EVENTS_KEPT; i++)
        list_add(row, kept, row->events.v[i]);
    row->events = kept;
    row->modify_index = a->index;
    state_put(a->t, a->index, SCALING_EVENTS, row);
}

/* --- scaling --- */

/* Refuses with what Nomad answers by 400. */
#define REFUSE_SCALE(a, ...) entry_refuse((a), -ERR_UNSUPPORTED, __VA_ARGS__)

static int
check_count(struct apply *a, const struct intent_job_scale *in, const struct job *j,
            const struct task_group *g)
{
    const struct scaling_policy *s = g->scaling;
    int64_t count = in->event->count.v;

    if (count < 0)
        return REFUSE_SCALE(a, "scaling action count can't be negative");
    if (str_eq(j->type, JOB_SYSTEM) && count > 1)
        return REFUSE_SCALE(a, "jobs of type \"system\" can only be scaled between 0 and 1");
    if (s != NULL && count < s->min.v)
        return REFUSE_SCALE(
            a, "group count was less than scaling policy minimum: %" PRId64 " < %" PRId64, count,
            s->min.v);
    if (s != NULL && count > s->max.v)
        return REFUSE_SCALE(
            a, "group count was greater than scaling policy maximum: %" PRId64 " > %" PRId64, count,
            s->max.v);
    if (state_has_active_deployment(a->t, j->namespace, j->id))
        return REFUSE_SCALE(a, "job scaling blocked due to active deployment");
    if (in->job_modify_index != 0 && in->job_modify_index != j->job_modify_index)
        return entry_refuse(a, -ERR_CONFLICT,
                            "Enforcing job modify index %" PRIu64
                            ": job exists with conflicting job modify index: %" PRIu64,
                            in->job_modify_index, j->job_modify_index);
    return 0;
}

/* Stores a version of the job with the count, unless the group has it. */
static void
put_count(struct apply *a, struct job *old, const char *group, int64_t count)
{
    if (job_group(old, group)->count.v == count) {
        a->res->job = old;
        return;
    }
    struct job *j = codec_clone(a->ctx, &type_job, old);
    for (size_t i = 0; i < j->task_groups.n; i++)
        if (str_eq(j->task_groups.v[i]->name, group))
            j->task_groups.v[i]->count = (struct opt_i64){true, count};
    j->stable = false;
    j->submit_time = a->now;
    entry_put_job(a, j, old);
}

int
intent_job_scale(struct apply *a, const struct intent_job_scale *in)
{
    struct job *old = state_job(a->t, a->ctx, in->namespace, in->job_id);
    const struct task_group *g = old != NULL ? job_group(old, in->group) : NULL;

    if (old == NULL)
        return entry_refuse(a, -ERR_NOT_FOUND, "job \"%s\" not found", str_or(in->job_id, ""));
    if (g == NULL)
        return REFUSE_SCALE(a, "task group \"%s\" specified for scaling does not exist in job",
                            str_or(in->group, ""));
    if (in->event->count.set && check_count(a, in, old, g) < 0)
        return a->res->err.code;
    struct scaling_event *ev = codec_clone(a->ctx, &type_scaling_event, in->event);
    ev->previous_count = g->count.v;
    a->res->job = old;
    if (ev->count.set) {
        entry_touch_job(a, old->namespace, old->id);
        put_count(a, old, in->group, ev->count.v);
        if (in->eval != NULL) {
            struct evaluation *e = codec_clone(a->tmp, &type_evaluation, in->eval);
            e->job_modify_index = a->res->job->job_modify_index;
            entry_put_eval(a, e);
            ev->eval_id = mem_strdup(ev, e->id);
        }
    }
    put_event(a, old, in->group, ev);
    return 0;
}
