/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: a job is stored, with its version, its summary, and when it is due.
 */
#include "server/fsm/fsm_int.h"

#include "common/duration.h"

/* --- the summary of the parent --- */

static int64_t *
child_counter(struct job_children_summary *s, const char *status)
{
    if (str_eq(status, JOB_STATUS_PENDING))
        return &s->pending;
    return str_eq(status, JOB_STATUS_RUNNING) ? &s->running : &s->dead;
}

/* Into a summary that is made for a job whose children may be there before. */
static void
count_children(struct apply *a, const struct job *j, struct job_children_summary *s)
{
    struct state_iter *it = state_children(a->t, a->tmp, j->namespace, j->id, NULL);
    for (struct job *c; (c = state_next(it, a->tmp)) != NULL; talloc_free(c))
        ++*child_counter(s, c->status);
}

void
entry_count_child(struct apply *a, const struct job *child, const char *was, const char *is)
{
    if (str_empty(child->parent_id) || (was != NULL && str_eq(was, is)))
        return;
    struct touched_job *parent = entry_touch_job(a, child->namespace, child->parent_id);
    if (parent->summary == NULL)
        parent->summary = state_summary(a->t, a->ctx, child->namespace, child->parent_id);
    struct job_summary *s = parent->summary;
    if (s == NULL)
        return;
    if (s->children == NULL)
        s->children = type_new(s, &type_job_children_summary);
    int64_t *from = was != NULL ? child_counter(s->children, was) : NULL;
    if (from != NULL && *from > 0)
        --*from;
    ++*child_counter(s->children, is);
    s->modify_index = a->index;
    state_put(a->t, a->index, SUMMARIES, s);
}

/* --- when it is due --- */

void
entry_put_launch(struct apply *a, const struct job *j, int64_t at_s)
{
    struct periodic_launch *old = state_periodic_launch(a->t, a->tmp, j->namespace, j->id);
    struct periodic_launch *row = type_new(a->ctx, &type_periodic_launch);
    row->id = mem_strdup(row, j->id);
    row->namespace = mem_strdup(row, j->namespace);
    row->launch = old != NULL && old->launch > at_s ? old->launch : at_s;
    row->create_index = old != NULL ? old->create_index : a->index;
    row->modify_index = a->index;
    state_put(a->t, a->index, PERIODIC_LAUNCHES, row);
}

/* A version of a job was stored: from now on it is launched when due, or not at all. */
static void
job_put_schedule(struct apply *a, const struct job *j)
{
    if (job_periodic_active(j))
        entry_put_launch(a, j, a->now / NS_PER_S);
    else
        (void)state_del(a->t, a->index, PERIODIC_LAUNCHES, j->namespace, j->id);
}

/* --- the job --- */

/* Every group of the job has counters. */
static void
put_summary(struct apply *a, const struct job *j)
{
    struct job_summary *s = state_summary(a->t, a->ctx, j->namespace, j->id);
    bool changed = s == NULL;
    if (s == NULL) {
        s = type_new(a->ctx, &type_job_summary);
        s->namespace = mem_strdup(s, j->namespace);
        s->job_id = mem_strdup(s, j->id);
        s->create_index = a->index;
        s->children = type_new(s, &type_job_children_summary);
        count_children(a, j, s->children);
    }
    for (size_t i = 0; i < j->task_groups.n; i++) {
        __auto_type row = map_put(s, s->summary, mem_strdup(s, j->task_groups.v[i]->name));
        if (row->v == NULL) {
            row->v = type_new(s, &type_task_group_summary);
            changed = true;
        }
    }
    if (!changed)
        return;
    s->modify_index = a->index;
    state_put(a->t, a->index, SUMMARIES, s);
}

/* A version without a source of its own (reverted to, stopped, started again) has that of the
 * newest version with the same specification. */
static void
carry_source(struct apply *a, const struct job *j)
{
    struct state_iter *it = state_job_versions(a->t, a->tmp, j->namespace, j->id);
    struct job_submission *s = NULL;
    struct job *v;

    while (s == NULL && (v = state_next(it, a->tmp)) != NULL)
        if (v->version != j->version && v->create_index == j->create_index &&
            codec_equal(&type_job, v, j, F_SERVER))
            s = state_get(a->t, a->ctx, SUBMISSIONS, v->namespace, v->id, v->version);
    if (s == NULL)
        return;
    state_iter_end(it);
    s->version = j->version;
    s->job_modify_index = j->job_modify_index;
    state_put(a->t, a->index, SUBMISSIONS, s);
}

void
entry_put_job(struct apply *a, struct job *j, const struct job *old)
{
    j->version = old != NULL ? old->version + 1 : 0;
    j->create_index = old != NULL ? old->create_index : a->index;
    j->modify_index = a->index;
    j->job_modify_index = a->index;
    j->status = old != NULL ? old->status : JOB_STATUS_PENDING;
    j->version_tag = NULL; /* stays with the version that has it */
    ASSERT(old == NULL ||
           (j->version > old->version && j->job_modify_index > old->job_modify_index));
    entry_store_job(a, j);
    state_put(a->t, a->index, JOB_VERSIONS, j);
    carry_source(a, j);
    state_trim_job_versions(a->t, a->index, j->namespace, j->id, STATE_JOB_VERSIONS_KEPT);
    put_summary(a, j);
    job_put_schedule(a, j);
    entry_put_policies(a, j);
    a->res->job = j;
    a->res->job_changed = true;
}

struct job *
entry_put_version(struct apply *a, const struct job *spec)
{
    const struct job *old = state_job(a->t, a->ctx, spec->namespace, spec->id);
    struct job *j = codec_clone(a->ctx, &type_job, spec);

    j->stable = false;
    j->version_tag = NULL;
    j->submit_time = a->now;
    entry_touch_job(a, j->namespace, j->id);
    entry_put_job(a, j, old);
    return j;
}
