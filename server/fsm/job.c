/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: jobs.
 */
#include <inttypes.h>

#include "api/children.h"
#include "server/fsm/fsm_int.h"

static int
check_index(struct apply *a, const struct intent_job_register *in, const struct job *old)
{
    if (!in->enforce_index)
        return 0;
    if (in->job_modify_index == 0 && old != NULL)
        return entry_refuse(a, -ERR_CONFLICT, "Enforcing job modify index 0: job already exists");
    if (in->job_modify_index != 0 && old == NULL)
        return entry_refuse(a, -ERR_CONFLICT,
                            "Enforcing job modify index %" PRIu64 ": job does not exist",
                            in->job_modify_index);
    if (old != NULL && in->job_modify_index != old->job_modify_index)
        return entry_refuse(a, -ERR_CONFLICT,
                            "Enforcing job modify index %" PRIu64
                            ": job exists with conflicting job modify index: %" PRIu64,
                            in->job_modify_index, old->job_modify_index);
    return 0;
}

static void
put_submission(struct apply *a, const struct job *j, const struct job_submission *in)
{
    if (in == NULL)
        return;
    struct job_submission *s = codec_clone(a->ctx, &type_job_submission, in);
    s->namespace = j->namespace;
    s->job_id = j->id;
    s->version = j->version;
    s->job_modify_index = j->job_modify_index;
    state_put(a->t, a->index, SUBMISSIONS, s);
}

static void
put_job_eval(struct apply *a, const struct evaluation *in, const struct job *j)
{
    if (in == NULL)
        return;
    struct evaluation *ev = codec_clone(a->tmp, &type_evaluation, in);
    if (j != NULL)
        ev->job_modify_index = j->job_modify_index;
    entry_put_eval(a, ev);
}

int
intent_job_register(struct apply *a, const struct intent_job_register *in)
{
    if (in->job == NULL || str_empty(in->job->id) || str_empty(in->job->namespace))
        return entry_refuse(a, -ERR_INVALID, "register a job: it has no ID or namespace");
    struct job *old = state_job(a->t, a->ctx, in->job->namespace, in->job->id);
    int rc = check_index(a, in, old);
    if (rc == 0)
        rc = children_may_become(old, in->job, &a->res->err);
    if (rc == 0 && !state_has_namespace(a->t, in->job->namespace))
        rc = entry_refuse(a, -ERR_INVALID, "job \"%s\" is in nonexistent namespace \"%s\"",
                          in->job->id, in->job->namespace);
    if (rc == 0 && !state_has_pool(a->t, in->job->node_pool))
        rc = entry_refuse(a, -ERR_INVALID, "job \"%s\" is in nonexistent node pool \"%s\"",
                          in->job->id, in->job->node_pool);
    if (rc < 0)
        return rc;
    entry_touch_job(a, in->job->namespace, in->job->id);
    bool same =
        old != NULL && old->stop == in->job->stop && codec_equal(&type_job, old, in->job, F_SERVER);
    if (same) {
        a->res->job = old;
    } else {
        struct job *j = codec_clone(a->ctx, &type_job, in->job);
        j->stable = false;
        if (j->submit_time == 0)
            j->submit_time = a->now;
        entry_put_job(a, j, old);
        put_submission(a, j, in->submission);
    }
    put_job_eval(a, in->eval, a->res->job);
    return 0;
}

/* Has the job's tasks stopped at once. */
static void
skip_shutdown_delay(struct apply *a, const struct intent_job_deregister *in)
{
    static const struct desired_transition dt = {.no_shutdown_delay = {true, true}};
    struct allocation_list live = {NULL, 0};
    struct state_iter *it = state_allocs_by_job(a->t, a->tmp, in->namespace, in->job_id);

    state_iter_live_only(it);
    for (struct allocation *al; (al = state_next(it, a->ctx)) != NULL;)
        list_add(a->tmp, live, al);
    for (size_t i = 0; i < live.n; i++)
        entry_transition(a, live.v[i], &dt);
}

void
entry_remove_job(struct apply *a, const struct job *j)
{
    struct str_list ids = {NULL, 0};
    struct state_iter *it = state_deployments_by_job(a->t, a->tmp, j->namespace, j->id);

    for (struct deployment *d; (d = state_next(it, a->tmp)) != NULL;)
        list_add(a->tmp, ids, d->id);
    for (size_t i = 0; i < ids.n; i++)
        (void)state_del(a->t, a->index, DEPLOYMENTS, ids.v[i]);
    entry_release_volumes(a, j);
    (void)state_del(a->t, a->index, JOBS, j->namespace, j->id);
}

int
intent_job_deregister(struct apply *a, const struct intent_job_deregister *in)
{
    struct job *old = state_job(a->t, a->ctx, in->namespace, in->job_id);
    if (old == NULL)
        return entry_refuse(a, -ERR_NOT_FOUND, "job \"%s\" not found", str_or(in->job_id, ""));
    if (in->no_shutdown_delay)
        skip_shutdown_delay(a, in);
    if (in->purge) {
        entry_count_child(a, old, old->status, JOB_STATUS_DEAD);
        entry_remove_job(a, old);
        put_job_eval(a, in->eval, old);
        return 0;
    }
    entry_touch_job(a, in->namespace, in->job_id);
    if (old->stop) {
        a->res->job = old;
    } else {
        struct job *j = codec_clone(a->ctx, &type_job, old);
        j->stop = true;
        entry_put_job(a, j, old);
    }
    put_job_eval(a, in->eval, a->res->job);
    return 0;
}
