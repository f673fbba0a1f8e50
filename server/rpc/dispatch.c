/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.Dispatch and Periodic.Force: children of a job, asked for. The errors are Nomad's, in its
 * words.
 */
#include <inttypes.h>

#include "api/limits.h"
#include "api/plain.h"
#include "api/terms.h"
#include "api/validate_launch.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/call/method.h"
#include "server/rpc/job_admit.h"

enum { PRIORITY_MIN = 1 };

/* Go's %v of a list. */
static const char *
dispatch_brackets(const void *ctx, const struct str_list *l)
{
    const char *s = "";
    for (size_t i = 0; i < l->n; i++)
        s = mem_printf(ctx, "%s%s%s", s, i > 0 ? " " : "", l->v[i]);
    return mem_printf(ctx, "[%s]", s);
}

static int
check_meta(const void *ctx, const struct job_dispatch_request *req,
           const struct parameterized_job_config *p, struct err *e)
{
    struct str_list over = {0}, missing = {0};

    for (size_t i = 0; i < req->meta.n; i++) {
        const char *k = req->meta.v[i].k;
        if (!str_list_has(&p->meta_required, k) && !str_list_has(&p->meta_optional, k))
            list_add(ctx, over, k);
    }
    if (over.n > 0)
        return err_set(e, -ERR_INTERNAL, "Dispatch request included unpermitted metadata keys: %s",
                       dispatch_brackets(ctx, &over));
    for (size_t k = 0; k < p->meta_required.n; k++) {
        size_t i = 0;
        while (i < req->meta.n && !str_eq(req->meta.v[i].k, p->meta_required.v[k]))
            i++;
        if (i == req->meta.n)
            list_add(ctx, missing, p->meta_required.v[k]);
    }
    if (missing.n > 0)
        return err_set(e, -ERR_INTERNAL, "Dispatch did not provide required meta keys: %s",
                       dispatch_brackets(ctx, &missing));
    return 0;
}

static int
check_request(const struct write *w, const struct job_dispatch_request *req, const struct job *j,
              struct err *e)
{
    const void *ctx = w->ctx;
    const int64_t priority_max = job_limits_of(w).max_priority;
    const struct parameterized_job_config *p = j->parameterized_job;

    if (str_eq(p->payload, "required") && req->payload.n == 0)
        return err_set(e, -ERR_INTERNAL,
                       "Payload is not provided but required by parameterized job");
    if (str_eq(p->payload, "forbidden") && req->payload.n > 0)
        return err_set(e, -ERR_INTERNAL, "Payload provided but forbidden by parameterized job");
    if (req->payload.n > DISPATCH_PAYLOAD_MAX)
        return err_set(e, -ERR_INTERNAL, "Payload exceeds maximum size; %zu > %d", req->payload.n,
                       DISPATCH_PAYLOAD_MAX);
    if (check_meta(ctx, req, p, e) < 0)
        return e->code;
    if (req->priority != 0 && (req->priority < PRIORITY_MIN || req->priority > priority_max))
        return err_set(e, -ERR_INTERNAL, "dispatch job priority must be between [%d, %" PRId64 "]",
                       PRIORITY_MIN, priority_max);
    if (strlen(j->id) + strlen(str_or(req->id_prefix_template, "")) > JOB_DISPATCH_ID_MAX)
        return err_set(e, -ERR_INVALID,
                       "the id of the job and IdPrefixTemplate are longer than %d bytes",
                       JOB_DISPATCH_ID_MAX);
    if (!str_empty(req->id_prefix_template) && !plain_job_id(req->id_prefix_template))
        return err_set(e, -ERR_INVALID, "IdPrefixTemplate holds a blank or a control character");
    return 0;
}

/* With what the dispatch adds the child must start, as a job that says all of this itself. */
static int
check_child(const void *ctx, const struct job_dispatch_request *req, struct job *j, struct err *e)
{
    for (size_t i = 0; i < req->meta.n; i++)
        str_map_set(j, &j->meta, req->meta.v[i].k, req->meta.v[i].v);
    return validate_launches(ctx, j, e);
}

/* The job that can be dispatched; NULL with an error. */
static struct job *
template_of(struct write *w, struct state_txn *t, const char *id, struct err *e)
{
    struct job *j = str_empty(id) ? NULL : state_job(t, w->ctx, w->ns, id);

    if (state_scheduler_config(t, w->ctx)->reject_job_registration)
        err_set(e, -ERR_FORBIDDEN, "Job registration, dispatch, and scale are disabled by the "
                                   "scheduler configuration");
    else if (str_empty(id))
        err_set(e, -ERR_INTERNAL, "missing parameterized job ID");
    else if (j == NULL)
        err_set(e, -ERR_INTERNAL, "parameterized job not found");
    else if (!job_parameterized(j))
        err_set(e, -ERR_INTERNAL, "Specified job \"%s\" is not a parameterized job", id);
    else if (j->stop)
        err_set(e, -ERR_INTERNAL, "Specified job \"%s\" is stopped", id);
    return e->code == 0 ? j : NULL;
}

static void
dispatch_dispatched(struct write *w, uint64_t index, struct fsm_result *res)
{
    bool again = !res->changed; /* its token has a child */
    bool evaluated = FSM_COUNT(res, EVALS, STORED) > 0;
    struct job_dispatch_response resp = {
        .dispatched_job_id = res->job->id,
        .eval_id = evaluated ? w->memo : NULL,
        .eval_create_index = evaluated ? index : 0,
        .job_create_index = again ? res->job->create_index : index,
        .index = again ? res->job->modify_index : index,
    };

    rpc_reply(w->call, &resp);
}

static int
prepare_dispatch(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_dispatch_request *req = w->req;
    const struct env *env = server_env(w->s);
    char some[UUID_TEXT];
    struct job *j = template_of(w, t, req->job_id, e);

    if (j == NULL || check_request(w, req, j, e) < 0 || check_child(w->ctx, req, j, e) < 0)
        return e->code;
    int64_t now = env_wall_ns(env);
    const char *prefix = str_or(req->id_prefix_template, "");
    struct intent_job_dispatch *jd = mem_new(w->ctx, struct intent_job_dispatch);
    *jd = (struct intent_job_dispatch){
        .namespace = j->namespace,
        .job_id = j->id,
        .child_id = mem_printf(w->ctx, "%s" DISPATCH_INFIX "%s%s%" PRId64 "-%.8s", j->id, prefix,
                               *prefix ? "-" : "", now / NS_PER_S, env_id(env, some)),
        .payload = req->payload,
        .meta = req->meta,
        .priority = req->priority != 0 ? req->priority : j->priority.v,
        .idempotency_token = req->idempotency_token,
        .eval_id = write_new_id(w),
    };
    w->in = (struct intent){.time = now, .job_dispatch = jd};
    w->memo = jd->eval_id;
    return 0;
}

const struct write_row write_job_dispatch = {prepare_dispatch, dispatch_dispatched};

static void
dispatch_forced(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct periodic_force_response resp = {
        .eval_id = w->memo, .eval_create_index = index, .index = index};

    (void)res;
    rpc_reply(w->call, &resp);
}

static int
prepare_force(struct write *w, struct state_txn *t, struct err *e)
{
    const struct periodic_force_request *req = w->req;

    if (str_empty(req->job_id))
        return err_set(e, -ERR_INTERNAL, "missing job ID for evaluation");
    const struct job *j = state_job(t, w->ctx, w->ns, req->job_id);
    if (j == NULL || j->periodic == NULL)
        return err_set(e, -ERR_INTERNAL, "%s",
                       j == NULL ? "job not found" : "can't force launch non-periodic job");
    if (!job_periodic_active(j))
        return err_set(
            e, -ERR_INTERNAL,
            "force launch for job \"%s\" failed: can't force run non-tracked job \"%s\" (%s)",
            j->id, j->id, j->namespace);
    struct intent_periodic_launch *pl = mem_new(w->ctx, struct intent_periodic_launch);
    *pl = (struct intent_periodic_launch){.namespace = j->namespace,
                                          .job_id = j->id,
                                          .launch = env_wall_ns(server_env(w->s)) / NS_PER_S,
                                          .eval_id = write_new_id(w),
                                          .force = true};
    w->in.periodic_launch = pl;
    w->memo = pl->eval_id;
    return 0;
}

const struct write_row write_periodic_force = {prepare_force, dispatch_forced};
