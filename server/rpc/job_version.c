/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.*: one version of a job: back to it, stable, a tag, the source it came from.
 */
#include <inttypes.h>

#include "api/limits.h"
#include "api/plain.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/rpc/job_admit.h"

static bool
of_number(const struct job *j, const void *arg)
{
    return j->version == *(const uint64_t *)arg;
}

static struct job *
version_of(struct state_txn *t, void *ctx, const char *ns, const char *id, uint64_t version)
{
    return state_find_version(t, ctx, ns, id, of_number, &version);
}

/* --- revert --- */

/* Registers the specification of the version once more. */
static int
prepare_revert(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_revert_request *req = w->req;
    const char *id = str_or(req->job_id, "");
    struct job *now = state_job(t, w->ctx, w->ns, id);
    struct job *then = version_of(t, w->ctx, w->ns, id, req->job_version);
    bool enforced = req->enforce_prior_version.set;

    if (now == NULL)
        return err_set(e, -ERR_INVALID, "job \"%s\" not found", id);
    if (req->job_version == now->version)
        return err_set(e, -ERR_INVALID, "can't revert to current version");
    if (then == NULL)
        return err_set(e, -ERR_INVALID,
                       "job \"%s\" in namespace \"%s\" at version %" PRIu64 " not found", id, w->ns,
                       req->job_version);
    if (enforced && now->version != (uint64_t)req->enforce_prior_version.v)
        return err_set(e, -ERR_INVALID,
                       "Current job has version %" PRIu64 "; enforcing version %" PRId64,
                       now->version, req->enforce_prior_version.v);
    struct job_register_request *r = mem_new(w->ctx, struct job_register_request);
    r->job = then;
    r->job->stop = false;
    r->enforce_index = enforced;
    r->job_modify_index = enforced ? now->job_modify_index : 0;
    return prepare_registration(w, t, r, e);
}

const struct write_row write_job_revert = {prepare_revert, job_registered};

/* --- stable --- */

static int
prepare_stable(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_stability_request *req = w->req;
    const char *id = str_or(req->job_id, "");
    struct intent_job_stable *js = mem_new(w->ctx, struct intent_job_stable);

    if (version_of(t, w->ctx, w->ns, id, req->job_version) == NULL)
        return err_set(e, -ERR_INVALID,
                       "job \"%s\" in namespace \"%s\" at version %" PRIu64 " not found", id, w->ns,
                       req->job_version);
    *js = (struct intent_job_stable){
        .namespace = w->ns, .job_id = id, .job_version = req->job_version, .stable = req->stable};
    w->in.job_stable = js;
    return 0;
}

const struct write_row write_job_stable = {prepare_stable, write_reply_index};

/* --- tags --- */

static void
job_version_tagged(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct job_version_tag *tag = w->memo;
    struct job_tag_response resp = {.index = index, .known_leader = true};

    (void)res;
    if (tag != NULL) {
        resp.name = tag->name;
        resp.description = tag->description;
        resp.tagged_time = tag->tagged_time;
    }
    rpc_reply(w->call, &resp);
}

static int
prepare_tag(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_apply_tag_request *req = w->req;
    struct intent_job_tag *jt = mem_new(w->ctx, struct intent_job_tag);

    (void)t;
    *jt = (struct intent_job_tag){.namespace = w->ns,
                                  .job_id = req->job_id,
                                  .job_version = req->version,
                                  .latest = req->latest,
                                  .name = req->name};
    if (req->latest && req->version > 0)
        return err_set(e, -ERR_INVALID, "version must be zero when tagging latest, got: %" PRIu64,
                       req->version);
    if (req->tag != NULL && !plain_text(req->name, JOB_TAG_MAX))
        return err_set(e, -ERR_INVALID,
                       "the name of a tag has 1 to %d bytes and no control character", JOB_TAG_MAX);
    if (req->tag != NULL && strlen(str_or(req->tag->description, "")) > JOB_TAG_TEXT_MAX)
        return err_set(e, -ERR_INVALID, "the description of a tag has more than %d bytes",
                       JOB_TAG_TEXT_MAX);
    if (req->tag != NULL) {
        jt->tag = codec_clone(w->ctx, &type_job_version_tag, req->tag);
        jt->tag->name = req->name;
        jt->tag->tagged_time = env_wall_ns(server_env(w->s));
    }
    w->memo = jt->tag;
    w->in.job_tag = jt;
    return 0;
}

const struct write_row write_job_tag_version = {prepare_tag, job_version_tagged, .here = true};

/* --- the source --- */

static uint64_t
submission_key(const struct read *r)
{
    return state_key_job(read_ns(r), ((const struct job_submission_request *)r->req)->job_id);
}

static int
submission_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct job_submission_request *req = r->req;
    struct job_submission_response *resp = read_resp(r);

    (void)e;
    resp->submission =
        state_get(t, r->ctx, SUBMISSIONS, read_ns(r), str_or(req->job_id, ""), req->version);
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_job_submission = {
    .tables = STATE_BIT(STATE_SUBMISSIONS), .key = submission_key, .run = submission_run};
