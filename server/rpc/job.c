/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.*: what changes jobs, and the dry run.
 */
#include <string.h>

#include "api/canonical.h"
#include "api/children.h"
#include "api/cron.h"
#include "api/jobdiff.h"
#include "api/terms.h"
#include "api/validate.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/zone.h"
#include "server/leader/view.h"
#include "server/rpc/endpoint_int.h"
#include "server/sched/constraint.h"
#include "server/sched/query/explain.h"
#include "server/sched/sched.h"

/* --- admission --- */

static void
check_constraints(const void *ctx, const char *where, const struct constraint_list *l,
                  struct str_list *errors)
{
    for (size_t i = 0; i < l->n; i++) {
        struct err e = ERR_INIT;
        if (constraint_check(l->v[i], &e) < 0)
            list_add(ctx, *errors, mem_printf(ctx, "%s: %s", where, e.text));
    }
}

/* What needs the scheduler's own eyes: patterns and versions. */
static void
check_job_constraints(const void *ctx, const struct job *job, struct str_list *errors)
{
    check_constraints(ctx, "job constraint", &job->constraints, errors);
    for (size_t g = 0; g < job->task_groups.n; g++) {
        const struct task_group *tg = job->task_groups.v[g];
        const char *where = mem_printf(ctx, "group \"%s\" constraint", str_or(tg->name, ""));
        check_constraints(ctx, where, &tg->constraints, errors);
        for (size_t t = 0; t < tg->tasks.n; t++) {
            where = mem_printf(ctx, "group \"%s\" task \"%s\" constraint", str_or(tg->name, ""),
                               str_or(tg->tasks.v[t]->name, ""));
            check_constraints(ctx, where, &tg->tasks.v[t]->constraints, errors);
        }
    }
}

/* Of the files of this machine. */
static void
check_time_zone(const void *ctx, const struct job *job, struct str_list *errors)
{
    const struct zone *z;
    struct err e = ERR_INIT;
    if (job->periodic != NULL && job->periodic->enabled.v &&
        zone_find(job->periodic->time_zone, &z, &e) < 0)
        list_add(ctx, *errors, mem_printf(ctx, "Invalid time zone \"%.64s\": %s",
                                          job->periodic->time_zone, e.text));
}

/* What only a server says of a job. Stop is the client's as well: such a job is registered stopped. */
static void
drop_server_fields(struct job *j)
{
    j->parent_id = j->dispatch_idempotency_token = NULL;
    j->dispatched = j->stable = false;
    j->consul_namespace = j->vault_namespace = j->nomad_token_id = NULL;
    j->status = j->status_description = NULL;
    j->version = j->create_index = j->modify_index = j->job_modify_index = 0;
    j->submit_time = 0;
    j->version_tag = NULL;
}

/* "default" and "all" are always there, any other pool while a node is in it. */
static bool
pool_exists(struct state_txn *t, void *ctx, const char *pool)
{
    if (str_eq(pool, POOL_DEFAULT) || str_eq(pool, POOL_ALL))
        return true;
    struct state_iter *it = state_by(t, ctx, NODES_BY_POOL, pool);
    struct node *n = state_next(it, ctx);
    if (n != NULL)
        state_iter_end(it);
    return n != NULL;
}

/* The job in canonical form, and everything that is wrong with it. */
struct admitted {
    struct job *job;
    const struct job *old; /* as it is registered, or NULL */
    const struct scheduler_configuration *cfg;
    struct str_list errors, warnings;
    struct err unsupported; /* a known field without effect yet */
};

static void
admit(struct rpc_call *call, const struct job_register_request *req, struct state_txn *t,
      struct admitted *a)
{
    void *ctx = rpc_call_ctx(call);
    const struct scheduler_configuration *cfg = state_scheduler_config(t, ctx);
    struct job_limits limits = {.memory_oversubscription = cfg->memory_oversubscription_enabled};
    struct err e = ERR_INIT;

    *a = (struct admitted){.cfg = cfg, .unsupported = ERR_INIT};
    a->job = codec_clone(ctx, &type_job, req->job);
    drop_server_fields(a->job);
    a->job->namespace = call_ns(call);
    job_canonicalize(ctx, a->job);
    job_imply_constraints(ctx, a->job);
    if (!str_eq(a->job->namespace, NS_DEFAULT))
        list_add(ctx, a->errors,
                 mem_printf(ctx, "job \"%s\" is in nonexistent namespace \"%s\"",
                            str_or(a->job->id, ""), a->job->namespace));
    else if (!pool_exists(t, ctx, a->job->node_pool))
        list_add(ctx, a->errors,
                 mem_printf(ctx, "job \"%s\" is in nonexistent node pool \"%s\"",
                            str_or(a->job->id, ""), a->job->node_pool));
    if (codec_check(&type_job, a->job, &e) < 0)
        list_add(ctx, a->errors, mem_strdup(ctx, e.text));
    job_validate(ctx, a->job, &limits, &a->errors, &a->warnings);
    check_time_zone(ctx, a->job, &a->errors);
    check_job_constraints(ctx, a->job, &a->errors);
    codec_check_later(&type_job, a->job, &a->unsupported);
    a->old = str_empty(a->job->id) ? NULL : state_job(t, ctx, a->job->namespace, a->job->id);
}

/* Fails the call when the job may not be registered. */
static bool
admit_or_fail(struct rpc_call *call, const struct job_register_request *req,
              struct state_txn *t, struct admitted *a)
{
    void *ctx = rpc_call_ctx(call);

    if (req->job == NULL || str_empty(req->job->id)) {
        rpc_failf(call, -ERR_INVALID, "Missing job ID for registration");
        return false;
    }
    if (!str_eq(str_or(req->job->namespace, call_ns(call)), call_ns(call))) {
        rpc_failf(call, -ERR_INVALID, "the job is of namespace \"%.64s\", the call of \"%.64s\"",
                  req->job->namespace, call_ns(call));
        return false;
    }
    admit(call, req, t, a);
    if (a->errors.n > 0) {
        rpc_failf(call, -ERR_INVALID, "%s", job_errors_text(ctx, &a->errors));
        return false;
    }
    return true;
}

/* To plan and to validate such a job tells more than to refuse it: only its registration is. */
static void
warn_of_unsupported(const void *ctx, struct admitted *a)
{
    if (a->unsupported.code != 0)
        list_add(ctx, a->warnings, mem_printf(ctx, "not to be registered yet: %s", a->unsupported.text));
}

static void
preserve(void *ctx, struct job *job, const struct job *old, const struct job_register_request *req)
{
    for (size_t g = 0; old != NULL && !old->stop && g < job->task_groups.n; g++) {
        struct task_group *tg = job->task_groups.v[g];
        const struct task_group *was = job_group(old, tg->name);
        if (was == NULL)
            continue;
        if (req->preserve_counts)
            tg->count = was->count;
        for (size_t t = 0; req->preserve_resources && t < tg->tasks.n; t++) {
            const struct task *task = group_task(was, tg->tasks.v[t]->name);
            if (task != NULL)
                tg->tasks.v[t]->resources = codec_clone(ctx, &type_resources, task->resources);
        }
    }
}

/* --- register --- */

/* As people write sizes: "33 B", "1.2 MB". */
static const char *
human(void *ctx, size_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB"};
    double v = (double)bytes;
    size_t i = 0;

    for (; v >= 1000 && i + 1 < ARRAY_LEN(units); i++)
        v /= 1000;
    return mem_printf(ctx, i > 0 && v < 10 ? "%.1f %s" : "%.0f %s", v, units[i]);
}

/* What is kept of the source that came with the job, or NULL, with a warning when it is too large. */
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
                        human(ctx, n), human(ctx, JOB_SOURCE_MAX)));
    return NULL;
}

struct registered {
    const char *eval_id;
    const char *warnings;
    uint64_t job_modify_index; /* of a job that is evaluated, not written */
};

static void
job_registered(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
               struct fsm_result *res)
{
    struct registered *r = arg;
    struct job_register_response resp = {
        .eval_id = r->eval_id,
        .eval_create_index = r->eval_id ? index : 0,
        .job_modify_index = res->job ? res->job->job_modify_index : r->job_modify_index,
        .warnings = r->warnings,
        .index = index,
        .known_leader = true,
    };

    (void)s;
    rpc_reply(call, &resp);
}

void
call_job_register(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_register_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    struct admitted a;
    struct err e = ERR_INIT;

    struct state_txn *t = state_read_begin(server_state(s), ctx);
    bool ok = admit_or_fail(call, req, t, &a);
    state_read_end(t);
    if (!ok)
        return;
    if (a.unsupported.code != 0) {
        err_prefix(&a.unsupported, "job \"%.64s\"", a.job->id);
        rpc_fail(call, &a.unsupported);
        return;
    }
    const struct job *old = a.old;
    if (a.cfg->reject_job_registration) {
        rpc_failf(call, -ERR_FORBIDDEN, "Job registration, dispatch, and scale are disabled by the "
                                        "scheduler configuration");
        return;
    }
    if (children_may_become(old, a.job, &e) < 0) { /* early: it is decided when the entry is applied */
        rpc_fail(call, &e);
        return;
    }
    if (req->eval_priority < 0 || req->eval_priority > 100) {
        rpc_failf(call, -ERR_INVALID, "EvalPriority %lld is outside 1..100",
                  (long long)req->eval_priority);
        return;
    }
    preserve(ctx, a.job, old, req);
    a.job->submit_time = env_wall_ns(server_env(s));
    struct intent_job_register jr = {
        .job = a.job,
        .enforce_index = req->enforce_index,
        .job_modify_index = req->job_modify_index,
        .submission = source_of(ctx, req, &a.warnings),
    };
    struct registered *r = mem_new(ctx, struct registered);
    r->warnings = job_warnings_text(ctx, &a.warnings);
    if (!job_is_parent(a.job)) {
        jr.eval = eval_of_job(ctx, server_env(s), a.job, TRIGGER_JOB_REGISTER);
        if (req->eval_priority > 0)
            jr.eval->priority = req->eval_priority;
        r->eval_id = jr.eval->id;
    }
    struct intent in = {.time = a.job->submit_time, .job_register = &jr};
    endpoint_write(s, call, &in, job_registered, r);
}

void
call_job_validate(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_register_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    struct job_validate_response resp = {.driver_config_validated = true};
    struct admitted a;

    if (req->job == NULL) {
        rpc_failf(call, -ERR_INVALID, "Job must be specified");
        return;
    }
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    admit(call, req, t, &a);
    state_read_end(t);
    warn_of_unsupported(ctx, &a);
    resp.validation_errors = a.errors;
    if (a.errors.n > 0)
        resp.error = job_errors_text(ctx, &a.errors);
    resp.warnings = job_warnings_text(ctx, &a.warnings);
    rpc_reply(call, &resp);
}

/* --- deregister, evaluate --- */

static void
job_deregistered(struct server *s, struct rpc_call *call, void *arg, uint64_t index,
                 struct fsm_result *res)
{
    struct job_deregister_response resp = {
        .eval_id = arg,
        .eval_create_index = arg != NULL ? index : 0,
        .job_modify_index = res->job ? res->job->job_modify_index : index,
        .index = index,
        .known_leader = true,
    };

    (void)s;
    rpc_reply(call, &resp);
}

/* The stored job, or the call is failed; but for that it does not exist where `missing` is to be set. */
static struct job *
job_or_fail(struct server *s, struct rpc_call *call, const char *id, bool *missing)
{
    void *ctx = rpc_call_ctx(call);

    if (str_empty(id)) {
        rpc_failf(call, -ERR_INVALID, "Missing job ID");
        return NULL;
    }
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct job *j = state_job(t, ctx, call_ns(call), id);
    state_read_end(t);
    if (j == NULL && missing)
        *missing = true;
    else if (j == NULL)
        rpc_failf(call, -ERR_NOT_FOUND, "job not found");
    return j;
}

static void deregister(struct server *s, struct rpc_call *call, const struct job_deregister_request *req,
                       uint64_t barrier);

static void
missing_written(struct server *s, struct rpc_call *call, void *arg, uint64_t index, struct fsm_result *res)
{
    (void)res;
    deregister(s, call, arg, index);
}

void
call_job_deregister(void *arg, struct rpc_call *call, const void *p)
{
    deregister(arg, call, p, 0);
}

/* What is not there is deregistered, however often one says so. But a server that stood still may have
 * lost its leadership, and a job, without having heard of it: only after an entry that was committed
 * meanwhile (`barrier`) does it know that there is none. */
static void
deregister(struct server *s, struct rpc_call *call, const struct job_deregister_request *req,
           uint64_t barrier)
{
    void *ctx = rpc_call_ctx(call);
    bool missing = false;
    struct job *j = job_or_fail(s, call, req->job_id, &missing);

    if (missing && barrier == 0) {
        struct empty none = {0};
        struct intent in = {.noop = &none};
        endpoint_write(s, call, &in, missing_written, (void *)(uintptr_t)req);
    } else if (missing) {
        struct job_deregister_response resp = {.index = barrier, .known_leader = true};
        rpc_reply(call, &resp);
    }
    if (j == NULL)
        return;
    struct evaluation *e =
        job_is_parent(j) ? NULL : eval_of_job(ctx, server_env(s), j, TRIGGER_JOB_DEREGISTER);
    if (e != NULL && req->eval_priority > 0)
        e->priority = req->eval_priority;
    struct intent_job_deregister jd = {.namespace = j->namespace,
                                       .job_id = j->id,
                                       .purge = req->purge,
                                       .eval = e,
                                       .no_shutdown_delay = req->no_shutdown_delay};
    struct intent in = {.job_deregister = &jd};
    endpoint_write(s, call, &in, job_deregistered, e != NULL ? (void *)(uintptr_t)e->id : NULL);
}

static void
force_reschedule(struct server *s, struct rpc_call *call, const struct job *j,
                 struct intent_alloc_transition *at)
{
    void *ctx = rpc_call_ctx(call);
    struct state_txn *t = state_read_begin(server_state(s), ctx);
    struct state_iter *it = state_allocs_by_job(t, ctx, j->namespace, j->id);
    struct lean *lean = lean_new(ctx, &type_allocation, &type_allocation,
                                 "ID ClientStatus DesiredStatus NextAllocation", "");

    at->transition = mem_new(ctx, struct desired_transition);
    at->transition->force_reschedule = (struct opt_bool){true, true};
    for (struct allocation *a; (a = state_next_lean(it, ctx, lean)) != NULL;)
        if (str_eq(a->client_status, ALLOC_FAILED) && !alloc_server_terminal(a) &&
            str_empty(a->next_allocation))
            list_add(ctx, at->alloc_ids, a->id);
    state_read_end(t);
}

void
call_job_evaluate(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_evaluate_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    struct job *j = job_or_fail(s, call, req->job_id, NULL);

    if (j == NULL)
        return;
    if (job_is_parent(j)) {
        rpc_failf(call, -ERR_INVALID, "can't evaluate periodic/parameterized job");
        return;
    }
    struct registered *r = mem_new(ctx, struct registered);
    struct evaluation *e = eval_of_job(ctx, server_env(s), j, TRIGGER_JOB_REGISTER);
    struct intent_alloc_transition at = {0};
    struct intent_eval_update up = {.evals = {&e, 1}};
    struct intent in = {0};
    r->eval_id = e->id;
    r->job_modify_index = j->job_modify_index;
    if (req->eval_options != NULL && req->eval_options->force_reschedule) {
        force_reschedule(s, call, j, &at);
        at.evals = up.evals;
        in.alloc_transition = &at;
    } else {
        in.eval_update = &up;
    }
    endpoint_write(s, call, &in, job_registered, r);
}

/* --- plan: a dry run on a snapshot --- */

struct plan_call {
    struct server *s;
    struct rpc_call *call;
    struct gate *gate;
    const struct job_register_request *req;
    void *ctx;
    struct job *job;
    bool ran;
    struct err refused; /* its explanation is too large */
    struct job_plan_response resp;
};

/* Makes the job what it would be once registered. */
static void
plan_version(struct plan_call *pc, const struct job *old, uint64_t index)
{
    struct job *j = pc->job;

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

static void
plan_launch(struct plan_call *pc, const struct env *env)
{
    const struct periodic_config *p = pc->job->periodic;
    const struct zone *z;
    struct cron_set set;
    struct err e = ERR_INIT;
    if (p == NULL || !p->enabled.v || zone_find(p->time_zone, &z, &e) < 0 ||
        cron_set_parse(pc->ctx, p, z, &set, &e) < 0)
        return;
    int64_t at = cron_set_next(&set, env_wall_ns(env) / NS_PER_S);
    if (at != CRON_NEVER)
        pc->resp.next_periodic_launch = at * NS_PER_S;
}

static void
plan_work(void *arg)
{
    struct plan_call *pc = arg;
    struct sched_view_state v;

    if (!gate_enter(pc->gate))
        return;
    const struct env *env = server_env(pc->s);
    struct rng rng = rng_seed(env_random(env), env_random(env));
    struct state_txn *t = state_read_begin(server_state(pc->s), pc->ctx);
    const struct job *old = state_job(t, pc->ctx, pc->job->namespace, pc->job->id);

    plan_version(pc, old, state_applied(t));
    sched_view_init(&v, pc->ctx, t, sched_view_table(pc->ctx, t));
    if (pc->req->explain) { /* before the attempt, which writes to the table */
        struct explain_in xin = {
            .view = &v.view, .job = pc->job, .rng = &rng, .n_named = EXPLAIN_NODES};
        (void)sched_explain(pc->ctx, &xin, &pc->resp.explanation, &pc->refused);
    }
    struct evaluation *e = eval_of_job(pc->ctx, env, pc->job, TRIGGER_JOB_REGISTER);
    e->annotate_plan = true;
    struct sched_in in = {
        .view = &v.view, .eval = e, .job = pc->job, .now = env_wall_ns(env), .rng = &rng};
    struct sched_out *out = sched_attempt(pc->ctx, &in);
    pc->resp.annotations = out->annotations;
    pc->resp.failed_tg_allocs = out->failed;
    pc->resp.created_evals = out->followups;
    pc->resp.job_modify_index = old ? old->job_modify_index : 0;
    pc->resp.index = state_applied(t);
    if (pc->req->diff) {
        const struct job *was = old != NULL && old->stop ? NULL : old;
        pc->resp.diff = job_diff(pc->ctx, was, pc->job, true);
        job_diff_annotate(pc->resp.diff, was, pc->job, out->annotations);
    }
    state_read_end(t);
    plan_launch(pc, env);
    pc->ran = true;
    gate_leave(pc->gate);
}

static void
plan_done(void *arg)
{
    struct plan_call *pc = arg;
    void *ctx = pc->ctx;

    gate_unref(pc->gate);
    if (pc->refused.code != 0)
        rpc_fail(pc->call, &pc->refused);
    else if (pc->ran)
        rpc_reply(pc->call, &pc->resp);
    else
        rpc_failf(pc->call, -ERR_UNAVAILABLE, "the server is stopping");
    talloc_free(ctx);
}

void
call_job_plan(void *arg, struct rpc_call *call, const void *p)
{
    const struct job_register_request *req = p;
    struct server *s = arg;
    void *ctx = rpc_call_ctx(call);
    struct admitted a;

    struct state_txn *t = state_read_begin(server_state(s), ctx);
    bool ok = admit_or_fail(call, req, t, &a);
    state_read_end(t);
    if (!ok)
        return;
    preserve(ctx, a.job, a.old, req);
    struct plan_call *pc = mem_new(ctx, struct plan_call);
    pc->s = s;
    pc->call = call;
    pc->req = req;
    pc->gate = gate_ref(server_gate(s));
    pc->ctx = mem_ctx("job plan");
    pc->job = codec_clone(pc->ctx, &type_job, a.job);
    warn_of_unsupported(ctx, &a);
    pc->resp.warnings = job_warnings_text(ctx, &a.warnings);
    env_work(server_env(s), plan_work, plan_done, pc);
}
