/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.*: one version of a job: back to it, stable, a tag, the source it came from.
 */
#include <inttypes.h>

#include "api/limits.h"
#include "api/plain.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/rpc/endpoint_int.h"

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

/* NULL: the call has failed, with words. */
static struct job *
revert_to(struct server *s, struct rpc_call *call, const struct job_revert_request *req,
          struct job **ret_now)
{
    void *ctx = rpc_call_ctx(call);
    const char *ns = call_ns(call), *id = str_or(req->job_id, "");
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct job *now = *ret_now = state_job(t, ctx, ns, id);
    struct job *then = version_of(t, ctx, ns, id, req->job_version);
    bool enforced = req->enforce_prior_version.set;

    state_read_end(t);
    if (now == NULL)
        rpc_failf(call, -ERR_INVALID, "job \"%s\" not found", id);
    else if (req->job_version == now->version)
        rpc_failf(call, -ERR_INVALID, "can't revert to current version");
    else if (then == NULL)
        rpc_failf(call, -ERR_INVALID,
                  "job \"%s\" in namespace \"%s\" at version %" PRIu64 " not found", id, ns,
                  req->job_version);
    else if (enforced && now->version != (uint64_t)req->enforce_prior_version.v)
        rpc_failf(call, -ERR_INVALID,
                  "Current job has version %" PRIu64 "; enforcing version %" PRId64, now->version,
                  req->enforce_prior_version.v);
    else
        return then;
    return NULL;
}

/* Registers the specification of the version once more. */
void
call_job_revert(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_revert_request *req = p;
    struct job *now, *then = revert_to(arg, call, req, &now);

    if (then == NULL)
        return;
    struct job_register_request *r = mem_new(rpc_call_ctx(call), struct job_register_request);
    r->job = then;
    r->job->stop = false;
    r->enforce_index = req->enforce_prior_version.set;
    r->job_modify_index = r->enforce_index ? now->job_modify_index : 0;
    call_job_register(arg, call, r);
}

/* --- stable --- */

static void
stable_done(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
            struct fsm_result *res)
{
    struct write_response resp = {.index = index};

    (void)s;
    (void)arg;
    (void)res;
    rpc_reply(call, &resp);
}

void
call_job_stable(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_stability_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    const char *ns = call_ns(call), *id = str_or(req->job_id, "");
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    bool known = version_of(t, ctx, ns, id, req->job_version) != NULL;

    state_read_end(t);
    if (!known) {
        rpc_failf(call, -ERR_INVALID,
                  "job \"%s\" in namespace \"%s\" at version %" PRIu64 " not found", id, ns,
                  req->job_version);
        return;
    }
    struct intent_job_stable js = {
        .namespace = ns, .job_id = id, .job_version = req->job_version, .stable = req->stable};
    struct intent in = {.job_stable = &js};
    endpoint_write(s, call, &in, stable_done, NULL);
}

/* --- tags --- */

static void
tag_done(struct server *s, struct rpc_call *call, void *arg, uint64_t index, struct fsm_result *res)
{
    const struct job_version_tag *tag = arg;
    struct job_tag_response resp = {.index = index, .known_leader = true};

    (void)s;
    (void)res;
    if (tag != NULL) {
        resp.name = tag->name;
        resp.description = tag->description;
        resp.tagged_time = tag->tagged_time;
    }
    rpc_reply(call, &resp);
}

void
call_job_tag_version(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_apply_tag_request *req = p;
    struct server *s = arg;
    struct job_version_tag *tag = NULL;
    struct intent_job_tag jt = {.namespace = call_ns(call),
                                .job_id = req->job_id,
                                .job_version = req->version,
                                .latest = req->latest,
                                .name = req->name};
    struct intent in = {.job_tag = &jt};

    if (req->latest && req->version > 0) {
        rpc_failf(call, -ERR_INVALID, "version must be zero when tagging latest, got: %" PRIu64,
                  req->version);
        return;
    }
    if (req->tag != NULL && !plain_text(req->name, JOB_TAG_MAX)) {
        rpc_failf(call, -ERR_INVALID, "the name of a tag has 1 to %d bytes and no control character",
                  JOB_TAG_MAX);
        return;
    }
    if (req->tag != NULL && strlen(str_or(req->tag->description, "")) > JOB_TAG_TEXT_MAX) {
        rpc_failf(call, -ERR_INVALID, "the description of a tag has more than %d bytes", JOB_TAG_TEXT_MAX);
        return;
    }
    if (req->tag != NULL) {
        tag = jt.tag = codec_clone(rpc_call_ctx(call), &type_job_version_tag, req->tag);
        tag->name = req->name;
        tag->tagged_time = env_wall_ns(server_env(s));
    }
    endpoint_write(s, call, &in, tag_done, tag);
}

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
