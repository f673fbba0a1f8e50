/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.*: what changes jobs, and the dry run: register, deregister, evaluate, plan. Each write is a
 * prepare_NAME(), pure on a snapshot and run by a worker, which makes the entry or refuses, and a
 * completion that answers from what was applied.
 *
 * What must hold when the entry is applied is decided there (server/fsm/job_put.c). What a job must
 * be to be taken is in job_admit.c.
 */
#include <inttypes.h>
#include <string.h>

#include "api/children.h"
#include "api/cron.h"
#include "api/jobdiff.h"
#include "api/terms.h"
#include "api/validate.h"
#include "common/duration.h"
#include "common/host/zone.h"
#include "common/mem.h"
#include "server/leader/live.h"
#include "server/rpc/job_admit.h"
#include "server/sched/query/explain.h"
#include "server/sched/sched.h"

/* To validate such a job tells more than to refuse it: its plan and registration are. */
static void
warn_of_unsupported(const void *ctx, struct admitted *a)
{
    for (size_t i = 0; i < a->unsupported.n; i++)
        list_add(ctx, a->warnings,
                 mem_printf(ctx, "not to be registered yet: %s", a->unsupported.v[i]));
}

/* --- register --- */

/* Prints a size as people do: "33 B", "1.2 MB". */
static const char *
job_human(void *ctx, size_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB"};
    double v = (double)bytes;
    size_t i = 0;

    for (; v >= 1000 && i + 1 < ARRAY_LEN(units); i++)
        v /= 1000;
    return mem_printf(ctx, i > 0 && v < 10 ? "%.1f %s" : "%.0f %s", v, units[i]);
}

/* Returns the part that is kept of the job's source, or NULL, with a warning when it is too
 * large. */
static struct job_submission *
source_of(void *ctx, const struct job_register_request *req, struct str_list *warnings)
{
    struct job_submission *s = req->submission;
    size_t n = s == NULL ? 0 : strlen(str_or(s->source, "")) + strlen(str_or(s->variables, ""));

    for (size_t i = 0; s != NULL && i < s->variable_flags.n; i++)
        n += strlen(s->variable_flags.v[i].k) + strlen(s->variable_flags.v[i].v);
    if (n <= JOB_SOURCE_MAX)
        return s;
    list_add(ctx, *warnings,
             mem_printf(ctx, "job source size of %s exceeds maximum of %s and will be discarded",
                        job_human(ctx, n), job_human(ctx, JOB_SOURCE_MAX)));
    return NULL;
}

struct registered {
    const char *eval_id;
    const char *warnings;
    uint64_t job_modify_index; /* of a job that is evaluated, not written */
};

void
job_registered(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct registered *r = w->memo;
    struct job_register_response resp = {
        .eval_id = r->eval_id,
        .eval_create_index = r->eval_id ? index : 0,
        .job_modify_index = res->job ? res->job->job_modify_index : r->job_modify_index,
        .warnings = r->warnings,
        .index = index,
        .known_leader = true,
    };

    rpc_reply(w->call, &resp);
}

static int
check_registration(const struct write *w, const struct admitted *a,
                   const struct job_register_request *req, struct err *e)
{
    const int64_t most = job_limits_of(w).max_priority;
    if (a->cfg->reject_job_registration)
        return err_set(e, -ERR_FORBIDDEN,
                       "Job registration, dispatch, and scale are disabled by the "
                       "scheduler configuration");
    /* early: it is decided when the entry is applied */
    if (children_may_become(a->old, a->job, e) < 0)
        return e->code;
    if (req->eval_priority < 0 || req->eval_priority > most)
        return err_set(e, -ERR_INVALID, "EvalPriority %" PRId64 " is outside 1..%" PRId64,
                       req->eval_priority, most);
    return 0;
}

int
prepare_registration(struct write *w, struct state_txn *t, const struct job_register_request *req,
                     struct err *e)
{
    struct admitted a;

    if (job_admit_or_refuse(w, t, req->job, &a, e) < 0 || check_registration(w, &a, req, e) < 0)
        return e->code;
    ASSERT(a.job != NULL);
    job_preserve(w->ctx, a.job, a.old, req);
    a.job->submit_time = env_wall_ns(server_env(w->s));
    struct intent_job_register *jr = mem_new(w->ctx, struct intent_job_register);
    struct registered *r = mem_new(w->ctx, struct registered);
    *jr = (struct intent_job_register){
        .job = a.job,
        .enforce_index = req->enforce_index,
        .job_modify_index = req->job_modify_index,
        .submission = source_of(w->ctx, req, &a.warnings),
    };
    r->warnings = job_warnings_text(w->ctx, &a.warnings);
    if (!job_is_parent(a.job)) {
        jr->eval = eval_of_job(w->ctx, server_env(w->s), a.job, TRIGGER_JOB_REGISTER);
        if (req->eval_priority > 0)
            jr->eval->priority = req->eval_priority;
        r->eval_id = jr->eval->id;
    }
    w->in = (struct intent){.time = a.job->submit_time, .job_register = jr};
    w->memo = r;
    return 0;
}

static int
prepare_register(struct write *w, struct state_txn *t, struct err *e)
{
    return prepare_registration(w, t, w->req, e);
}

const struct write_row write_job_register = {prepare_register, job_registered};

static int
prepare_validate(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_register_request *req = w->req;
    struct job_validate_response *resp = mem_new(w->ctx, struct job_validate_response);
    struct admitted a;

    if (req->job == NULL)
        return err_set(e, -ERR_INVALID, "Job must be specified");
    job_admit(w, t, req->job, &a);
    warn_of_unsupported(w->ctx, &a);
    resp->driver_config_validated = true;
    resp->validation_errors = a.errors;
    if (a.errors.n > 0)
        resp->error = job_errors_text(w->ctx, &a.errors);
    resp->warnings = job_warnings_text(w->ctx, &a.warnings);
    w->resp = resp;
    return 0;
}

const struct write_row write_job_validate = {prepare_validate};

/* --- deregister, evaluate --- */

static void
job_deregistered(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct job_deregister_response resp = {
        .eval_id = w->memo,
        .eval_create_index = w->memo != NULL ? index : 0,
        .job_modify_index = res->job ? res->job->job_modify_index : index,
        .index = index,
        .known_leader = true,
    };

    rpc_reply(w->call, &resp);
}

/* Answers for a job that is not there: it is deregistered, however often one says so. But a server
 * that stood still may have lost its leadership, and a job, without having heard of it: only after
 * an entry committed meanwhile (`barrier`) does it know that there is none. */
static void
deregister_missing(struct write *w)
{
    if (w->barrier == 0) {
        w->in.noop = mem_new(w->ctx, struct empty);
        return;
    }
    struct job_deregister_response *resp = mem_new(w->ctx, struct job_deregister_response);
    resp->index = w->barrier;
    resp->known_leader = true;
    w->resp = resp;
}

static bool
only_barrier(const struct write *w)
{
    return w->in.noop != NULL;
}

static int
prepare_deregister(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_deregister_request *req = w->req;

    if (str_empty(req->job_id))
        return err_set(e, -ERR_INVALID, "Missing job ID");
    struct job *j = state_job(t, w->ctx, w->ns, req->job_id);
    if (j == NULL) {
        deregister_missing(w);
        return 0;
    }
    struct intent_job_deregister *jd = mem_new(w->ctx, struct intent_job_deregister);
    *jd = (struct intent_job_deregister){.namespace = j->namespace,
                                         .job_id = j->id,
                                         .purge = req->purge,
                                         .no_shutdown_delay = req->no_shutdown_delay};
    if (!job_is_parent(j)) {
        jd->eval = eval_of_job(w->ctx, server_env(w->s), j, TRIGGER_JOB_DEREGISTER);
        if (req->eval_priority > 0)
            jd->eval->priority = req->eval_priority;
        w->memo = jd->eval->id;
    }
    w->in.job_deregister = jd;
    return 0;
}

const struct write_row write_job_deregister = {prepare_deregister, job_deregistered,
                                               .again = only_barrier};

static void
force_reschedule(struct write *w, struct state_txn *t, const struct job *j,
                 struct intent_alloc_transition *at)
{
    struct state_iter *it = state_allocs_by_job(t, w->ctx, j->namespace, j->id);
    struct lean *lean = lean_new(w->ctx, &type_allocation, &type_allocation,
                                 "ID ClientStatus DesiredStatus NextAllocation", "");

    at->transition = mem_new(w->ctx, struct desired_transition);
    at->transition->force_reschedule = (struct opt_bool){true, true};
    for (struct allocation *a; (a = state_next_lean(it, w->ctx, lean)) != NULL;)
        if (str_eq(a->client_status, ALLOC_FAILED) && !alloc_server_terminal(a) &&
            str_empty(a->next_allocation))
            list_add(w->ctx, at->alloc_ids, a->id);
}

static int
prepare_evaluate(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_evaluate_request *req = w->req;

    if (str_empty(req->job_id))
        return err_set(e, -ERR_INVALID, "Missing job ID");
    struct job *j = state_job(t, w->ctx, w->ns, req->job_id);
    if (j == NULL)
        return err_set(e, -ERR_NOT_FOUND, "job not found");
    if (job_is_parent(j))
        return err_set(e, -ERR_INVALID, "can't evaluate periodic/parameterized job");
    struct registered *r = mem_new(w->ctx, struct registered);
    struct evaluation *ev = eval_of_job(w->ctx, server_env(w->s), j, TRIGGER_JOB_REGISTER);
    *r = (struct registered){.eval_id = ev->id, .job_modify_index = j->job_modify_index};
    w->memo = r;
    if (req->eval_options != NULL && req->eval_options->force_reschedule) {
        struct intent_alloc_transition *at = mem_new(w->ctx, struct intent_alloc_transition);
        force_reschedule(w, t, j, at);
        list_add(w->ctx, at->evals, ev);
        w->in.alloc_transition = at;
    } else {
        struct intent_eval_update *up = mem_new(w->ctx, struct intent_eval_update);
        list_add(w->ctx, up->evals, ev);
        w->in.eval_update = up;
    }
    return 0;
}

const struct write_row write_job_evaluate = {prepare_evaluate, job_registered};

/* --- plan: a dry run on a snapshot --- */

/* Makes the job what it would be once registered. */
static void
plan_version(struct job *j, const struct job *old, uint64_t index)
{
    if (old == NULL) {
        j->create_index = j->job_modify_index = index + 1;
        return;
    }
    j->create_index = old->create_index;
    if (old->stop == j->stop && codec_equal(&type_job, old, j, F_SERVER)) {
        j->version = old->version;
        j->job_modify_index = old->job_modify_index;
    } else {
        j->version = old->version + 1;
        j->job_modify_index = index + 1;
    }
}

static int64_t
plan_launch(void *ctx, const struct job *j, int64_t now_ns)
{
    const struct periodic_config *p = j->periodic;
    const struct zone *z;
    struct cron_set set;
    struct err e = ERR_INIT;
    if (p == NULL || !p->enabled.v || zone_find(p->time_zone, &z, &e) < 0 ||
        cron_set_parse(ctx, p, z, &set, &e) < 0)
        return 0;
    int64_t at = cron_set_next(&set, now_ns / NS_PER_S);
    return at != CRON_NEVER ? at * NS_PER_S : 0;
}

static void
plan_diff(void *ctx, struct job_plan_response *resp, const struct job *old, struct job *j)
{
    const struct job *was = old != NULL && old->stop ? NULL : old;

    resp->diff = job_diff(ctx, was, j, true);
    job_diff_annotate(resp->diff, was, j, resp->annotations);
}

/* The evaluation that would wait for room after a registration. */
static struct evaluation *
blocked_eval(void *ctx, const struct env *env, const struct evaluation *ev)
{
    struct evaluation *b = eval_after(ctx, env, ev, TRIGGER_QUEUED_ALLOCS);

    b->status = EVAL_BLOCKED;
    b->status_description = "created to place remaining allocations";
    return b;
}

static int
prepare_plan(struct write *w, struct state_txn *t, struct err *e)
{
    const struct job_register_request *req = w->req;
    const struct env *env = server_env(w->s);
    struct job_plan_response *resp = mem_new(w->ctx, struct job_plan_response);
    struct rng rng = rng_seed(env_random(env), env_random(env));
    struct sched_view_state v;
    struct admitted a;

    if (job_admit_or_refuse(w, t, req->job, &a, e) < 0 ||
        children_may_become(a.old, a.job, e) < 0)
        return e->code;
    job_preserve(w->ctx, a.job, a.old, req);
    resp->warnings = job_warnings_text(w->ctx, &a.warnings);
    plan_version(a.job, a.old, state_applied(t));
    sched_view_init(&v, w->ctx, t, sched_view_table(w->ctx, t),
                    quota_room_of(w->ctx, t, NULL, server_cfg(w->s)->region, a.job->namespace));
    struct explain_in xin = {.view = &v.view, .job = a.job, .rng = &rng, .n_named = EXPLAIN_NODES};
    /* before the attempt, which writes to the table */
    if (req->explain && sched_explain(w->ctx, &xin, &resp->explanation, e) < 0)
        return e->code;
    struct evaluation *ev = eval_of_job(w->ctx, env, a.job, TRIGGER_JOB_REGISTER);
    ev->annotate_plan = true;
    struct sched_in in = {
        .view = &v.view, .eval = ev, .job = a.job, .now = env_wall_ns(env), .rng = &rng};
    struct sched_out *out = sched_attempt(w->ctx, &in);
    resp->annotations = out->annotations;
    resp->failed_tg_allocs = out->failed;
    if (out->waits)
        list_add(w->ctx, out->followups, blocked_eval(w->ctx, env, ev));
    resp->created_evals = out->followups;
    resp->job_modify_index = a.old ? a.old->job_modify_index : 0;
    resp->index = state_applied(t);
    if (req->diff)
        plan_diff(w->ctx, resp, a.old, a.job);
    resp->next_periodic_launch = plan_launch(w->ctx, a.job, env_wall_ns(env));
    w->resp = resp;
    return 0;
}

const struct write_row write_job_plan = {prepare_plan};
