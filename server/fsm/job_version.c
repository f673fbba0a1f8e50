/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: what is said of a version of a job, stable or a tag.
 */
#include <inttypes.h>

#include "server/fsm/fsm_int.h"

/* Where it is stored: among the versions, and if it is the newest as the job. */
static void
put_again(struct apply *a, struct job *j)
{
    const struct job *newest = state_job(a->t, a->tmp, j->namespace, j->id);

    j->modify_index = a->index;
    state_put(a->t, a->index, JOB_VERSIONS, j);
    if (newest != NULL && newest->job_modify_index == j->job_modify_index) {
        j->status = newest->status;
        state_put(a->t, a->index, JOBS, j);
    }
    a->res->changed = true;
}

int
apply_job_stable(struct apply *a, const struct intent_job_stable *in)
{
    struct state_iter *it = state_job_versions(a->t, a->tmp, in->namespace, in->job_id);

    for (struct job *j; (j = state_next(it, a->tmp)) != NULL;) {
        if (j->version != in->job_version)
            continue;
        if (j->stable != in->stable) {
            j->stable = in->stable;
            put_again(a, j);
        }
        break; /* one that is gone meanwhile: nothing to do */
    }
    return 0;
}

static struct job *
tagged(struct apply *a, const struct intent_job_tag *in, const char *name)
{
    struct state_iter *it = state_job_versions(a->t, a->tmp, in->namespace, in->job_id);

    for (struct job *j; (j = state_next(it, a->tmp)) != NULL;)
        if (j->version_tag != NULL && str_eq(j->version_tag->name, name))
            return j;
    return NULL;
}

static struct job *
version_meant(struct apply *a, const struct intent_job_tag *in)
{
    struct state_iter *it = state_job_versions(a->t, a->tmp, in->namespace, in->job_id);

    for (struct job *j; (j = state_next(it, a->tmp)) != NULL;) /* newest first */
        if (in->latest || j->version == in->job_version)
            return j;
    return NULL;
}

int
apply_job_tag(struct apply *a, const struct intent_job_tag *in)
{
    struct job *was = tagged(a, in, in->name), *j = version_meant(a, in);

    if (in->tag == NULL) {
        if (was == NULL)
            return apply_refuse(a, -ERR_INVALID, "tag \"%s\" not found on job \"%s\"",
                                str_or(in->name, ""), str_or(in->job_id, ""));
        was->version_tag = NULL;
        put_again(a, was);
        return 0;
    }
    if (j == NULL)
        return apply_refuse(a, -ERR_INVALID, "job \"%s\" version %" PRIu64 " not found",
                            str_or(in->job_id, ""), in->job_version);
    if (was != NULL && was->version != j->version)
        return apply_refuse(a, -ERR_INVALID,
                            "tag \"%s\" already exists on a different version of job \"%s\"",
                            str_or(in->name, ""), str_or(in->job_id, ""));
    j->version_tag = in->tag;
    put_again(a, j);
    return 0;
}
