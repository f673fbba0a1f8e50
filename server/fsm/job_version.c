/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: what is said of a version of a job, stable or a tag.
 */
#include <inttypes.h>

#include "api/limits.h"
#include "server/fsm/fsm_int.h"

/* Stores a version in its places: among the versions, and if it is the newest as the job. */
static void
put_again(struct apply *a, struct job *j)
{
    const struct job *newest = state_job(a->t, a->ctx, j->namespace, j->id);

    j->modify_index = a->index;
    state_put(a->t, a->index, JOB_VERSIONS, j);
    if (newest != NULL && newest->job_modify_index == j->job_modify_index) {
        struct job *now = codec_clone(a->ctx, &type_job, j);
        now->status = newest->status;
        entry_store_job(a, now);
    }
}

static bool
of_number(const struct job *j, const void *arg)
{
    return j->version == *(const uint64_t *)arg;
}

int
intent_job_stable(struct apply *a, const struct intent_job_stable *in)
{
    struct job *j =
        state_find_version(a->t, a->ctx, in->namespace, in->job_id, of_number, &in->job_version);

    if (j != NULL && j->stable != in->stable) { /* one that is gone meanwhile: nothing to do */
        j->stable = in->stable;
        put_again(a, j);
    }
    return 0;
}

static bool
job_version_tagged(const struct job *j, const void *arg)
{
    const struct intent_job_tag *in = arg;

    return j->version_tag != NULL && str_eq(j->version_tag->name, in->name);
}

static bool
job_version_meant(const struct job *j, const void *arg)
{
    const struct intent_job_tag *in = arg;

    return in->latest || j->version == in->job_version;
}

static size_t
count_tags(struct apply *a, const struct intent_job_tag *in)
{
    struct state_iter *it = state_job_versions(a->t, a->tmp, in->namespace, in->job_id);
    struct lean *lean = state_version_lean(a->tmp);
    size_t n = 0;

    for (struct job *j; (j = state_next_lean(it, a->tmp, lean)) != NULL; talloc_free(j))
        n += j->version_tag != NULL;
    return n;
}

int
intent_job_tag(struct apply *a, const struct intent_job_tag *in)
{
    struct job *was =
        state_find_version(a->t, a->ctx, in->namespace, in->job_id, job_version_tagged, in);
    struct job *j =
        state_find_version(a->t, a->ctx, in->namespace, in->job_id, job_version_meant, in);

    if (in->tag == NULL) {
        if (was == NULL)
            return entry_refuse(a, -ERR_INVALID, "tag \"%s\" not found on job \"%s\"",
                                str_or(in->name, ""), str_or(in->job_id, ""));
        was->version_tag = NULL;
        put_again(a, was);
        return 0;
    }
    if (j == NULL)
        return entry_refuse(a, -ERR_INVALID, "job \"%s\" version %" PRIu64 " not found",
                            str_or(in->job_id, ""), in->job_version);
    if (was != NULL && was->version != j->version)
        return entry_refuse(a, -ERR_INVALID,
                            "tag \"%s\" already exists on a different version of job \"%s\"",
                            str_or(in->name, ""), str_or(in->job_id, ""));
    if (j->version_tag == NULL && count_tags(a, in) >= JOB_TAGS_MAX)
        return entry_refuse(a, -ERR_LIMIT,
                            "job \"%s\" has %d tagged versions already: remove a tag first",
                            str_or(in->job_id, ""), JOB_TAGS_MAX);
    j->version_tag = in->tag;
    put_again(a, j);
    return 0;
}
