/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine, entry by entry: jobs and versions, evaluations, plans, reports of clients.
 */
#include <stdio.h>
#include <string.h>

#include "common/crc.h"
#include "common/duration.h"
#include "common/str.h"
#include "server/state/state_int.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

/* --- jobs --- */

/* NULL: the job has no such version. */
static struct job *
job_version(struct state_txn *t, const void *ctx, uint64_t version)
{
    struct state_iter *it = state_job_versions(t, ctx, "default", "web");
    struct job *j;

    while ((j = state_next(it, ctx)) != NULL && j->version != version)
        ;
    return j;
}

START_TEST(versions_change_only_with_the_spec)
{
    struct fx *f = fx_new();
    struct fsm_result *r = put_job(f, make_job(f, "web", 1), "e1");
    ck_assert(r->job_changed);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    struct job *j = get_job(f, "web");
    ck_assert_uint_eq(j->version, 0);
    ck_assert_uint_eq(j->create_index, 1000);
    ck_assert_uint_eq(j->job_modify_index, 1000);
    ck_assert_str_eq(j->status, JOB_STATUS_PENDING);
    ck_assert_uint_eq(get_eval(f, "e1")->job_modify_index, 1000);
    ck_assert_uint_eq(get_eval(f, "e1")->create_index, 1000);

    r = put_job(f, make_job(f, "web", 1), "e2");
    ck_assert(!r->job_changed);
    ck_assert_uint_eq(get_job(f, "web")->job_modify_index, 1000);
    ck_assert_uint_eq(get_eval(f, "e2")->create_index, 1001);

    r = put_job(f, make_job(f, "web", 2), NULL);
    ck_assert(r->job_changed);
    j = get_job(f, "web");
    ck_assert_uint_eq(j->version, 1);
    ck_assert_uint_eq(j->create_index, 1000);
    ck_assert_uint_eq(j->job_modify_index, 1002);
    struct job *old = READ(f, struct job *, job_version(rt, f->ctx, 0));
    ck_assert_int_eq(old->task_groups.v[0]->count.v, 1);
    fx_free(f);
}
END_TEST

static size_t
count_versions(struct fx *f, const char *id)
{
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    struct state_iter *it = state_job_versions(t, f->ctx, "default", id);
    size_t n = 0;
    uint64_t last = UINT64_MAX;
    for (struct job *j; (j = state_next(it, f->ctx)) != NULL; n++) {
        ck_assert_uint_lt(j->version, last);
        last = j->version;
    }
    state_read_end(t);
    return n;
}

START_TEST(six_versions_and_those_in_use_are_kept)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    for (int i = 2; i <= 10; i++)
        put_job(f, make_job(f, "web", i), NULL);
    ck_assert_uint_eq(count_versions(f, "web"), 6);
    /* The allocation still shows its own job. */
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    struct allocation *a = state_alloc(t, f->ctx, "a1");
    const struct job *of = state_alloc_job(t, a);
    state_read_end(t);
    ck_assert_ptr_nonnull(of);
    ck_assert_uint_eq(of->version, 0);
    ck_assert_ptr_null(
        READ(f, struct job *, job_version(rt, f->ctx, 2)));
    /* Purged and registered anew: the old one's versions are not its own. */
    stop_job(f, "web", true, "e1");
    put_job(f, make_job(f, "web", 3), NULL);
    ck_assert_uint_eq(get_job(f, "web")->version, 0);
    ck_assert_uint_eq(count_versions(f, "web"), 1);
    fx_free(f);
}
END_TEST

static int
tag(struct fx *f, uint64_t version, const char *name, bool set)
{
    struct intent *in = intent_new(f, 0);
    struct intent_job_tag *jt = in->job_tag = type_new(in, &type_intent_job_tag);
    *jt = (struct intent_job_tag){
        .namespace = "default", .job_id = "web", .job_version = version, .name = name};
    if (set) {
        jt->tag = type_new(jt, &type_job_version_tag);
        jt->tag->name = name;
    }
    return apply(f, in)->err.code;
}

static struct job_submission *
source_of(struct fx *f, uint64_t version)
{
    return READ(f, struct job_submission *,
                state_get(rt, f->ctx, SUBMISSIONS, "default", "web", version));
}

/* A tagged version and its source stay until the tag goes; a tag is on one version. */
START_TEST(tagged_versions_are_kept)
{
    struct fx *f = fx_new();
    for (int i = 0; i <= 10; i++) {
        struct intent *in = intent_new(f, 0);
        in->job_register = type_new(in, &type_intent_job_register);
        in->job_register->job = make_job(f, "web", i + 1);
        in->job_register->submission = type_new(in, &type_job_submission);
        in->job_register->submission->source = "job";
        ck_assert_int_eq(apply(f, in)->err.code, 0);
        if (i == 1)
            ck_assert_int_eq(tag(f, 1, "golden", true), 0);
    }
    ck_assert_uint_eq(count_versions(f, "web"), 7);
    ck_assert_ptr_nonnull(source_of(f, 1));
    ck_assert_ptr_nonnull(source_of(f, 10));
    ck_assert_ptr_null(source_of(f, 2));
    ck_assert_int_eq(tag(f, 9, "golden", true), -ERR_INVALID);
    ck_assert_int_eq(tag(f, 3, "other", true), -ERR_INVALID); /* is gone */
    ck_assert_int_eq(tag(f, 10, "newest", true), 0);
    ck_assert_str_eq(get_job(f, "web")->version_tag->name, "newest");
    ck_assert_int_eq(tag(f, 0, "golden", false), 0);
    ck_assert_int_eq(tag(f, 0, "golden", false), -ERR_INVALID);
    put_job(f, make_job(f, "web", 99), NULL);
    ck_assert_uint_eq(count_versions(f, "web"), 6);
    ck_assert_ptr_null(source_of(f, 1));
    fx_free(f);
}
END_TEST

START_TEST(stable_is_said_of_one_version)
{
    struct fx *f = fx_new();
    struct intent *in = intent_new(f, 0);
    put_job(f, make_job(f, "web", 1), NULL);
    put_job(f, make_job(f, "web", 2), NULL);
    struct intent_job_stable *js = in->job_stable = type_new(in, &type_intent_job_stable);
    *js = (struct intent_job_stable){
        .namespace = "default", .job_id = "web", .job_version = 0, .stable = true};
    ck_assert_int_eq(apply(f, in)->err.code, 0);
    ck_assert(READ(f, struct job *, job_version(rt, f->ctx, 0))->stable);
    ck_assert(!get_job(f, "web")->stable);
    js->job_version = 1;
    ck_assert_int_eq(apply(f, in)->err.code, 0);
    ck_assert(get_job(f, "web")->stable);
    js->job_version = 77; /* gone: no matter */
    ck_assert_int_eq(apply(f, in)->err.code, 0);
    put_job(f, make_job(f, "web", 3), NULL);
    ck_assert(!get_job(f, "web")->stable);
    fx_free(f);
}
END_TEST

START_TEST(enforced_index_and_stop_and_purge)
{
    struct fx *f = fx_new();
    put_job(f, make_job(f, "web", 1), NULL);
    struct intent *in = intent_new(f, 0);
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = make_job(f, "web", 5);
    in->job_register->enforce_index = true;
    ck_assert_int_eq(apply(f, in)->err.code, -ERR_CONFLICT);
    in->job_register->job_modify_index = 7;
    ck_assert_int_eq(apply(f, in)->err.code, -ERR_CONFLICT);
    in->job_register->job_modify_index = 1000;
    ck_assert_int_eq(apply(f, in)->err.code, 0);
    ck_assert_uint_eq(get_job(f, "web")->version, 1);

    stop_job(f, "web", false, "e9");
    struct job *j = get_job(f, "web");
    ck_assert(j->stop);
    ck_assert_uint_eq(j->version, 2);
    ck_assert_str_eq(j->status, JOB_STATUS_DEAD);
    /* The same specification again starts it. */
    ck_assert(put_job(f, make_job(f, "web", 5), "e10")->job_changed);
    ck_assert(!get_job(f, "web")->stop);
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_PENDING);

    stop_job(f, "web", true, "e11");
    ck_assert_ptr_null(get_job(f, "web"));
    ck_assert_uint_eq(count_versions(f, "web"), 0);
    ck_assert_ptr_null(READ(f, struct job_summary *, state_summary(rt, f->ctx, "default", "web")));
    ck_assert_str_eq(get_eval(f, "e11")->status, EVAL_PENDING);
    ck_assert_int_eq(stop_job(f, "web", true, "e12")->err.code, -ERR_NOT_FOUND);
    ck_assert_ptr_null(get_eval(f, "e12"));
    fx_free(f);
}
END_TEST

START_TEST(long_ids_and_prefixes)
{
    struct fx *f = fx_new();
    char *id = mem_zalloc(f, 1025, "id");
    memset(id, 'x', 1024);
    put_job(f, make_job(f, id, 1), NULL);
    id[1023] = 'y';
    put_job(f, make_job(f, id, 2), NULL);
    put_job(f, make_job(f, "web/a", 1), NULL);
    put_job(f, make_job(f, "web", 1), NULL);
    ck_assert_int_eq(get_job(f, id)->task_groups.v[0]->count.v, 2);
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    size_t n = 0;
    struct state_iter *it = state_jobs(t, f->ctx, "default", "web");
    for (struct job *j; (j = state_next(it, f->ctx)) != NULL; n++)
        ck_assert_str_eq(j->id, n == 0 ? "web" : "web/a");
    ck_assert_uint_eq(n, 2);
    it = state_jobs(t, f->ctx, "default", id);
    ck_assert_str_eq(((struct job *)state_next(it, f->ctx))->id, id);
    ck_assert_ptr_null(state_next(it, f->ctx));
    it = state_jobs(t, f->ctx, "*", NULL);
    for (n = 0; state_next(it, f->ctx) != NULL; n++)
        ;
    ck_assert_uint_eq(n, 4);
    it = state_jobs(t, f->ctx, "other", NULL);
    ck_assert_ptr_null(state_next(it, f->ctx));
    state_read_end(t);
    fx_free(f);
}
END_TEST

/* --- evaluations --- */

START_TEST(success_cancels_what_was_blocked)
{
    struct fx *f = fx_new();
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, "e1");
    struct intent *in = intent_new(f, 0);
    in->eval_update = type_new(in, &type_intent_eval_update);
    struct evaluation *blocked = make_eval(in, j, "e2");
    blocked->status = EVAL_BLOCKED;
    struct evaluation *failed = make_eval(in, j, "e1");
    failed->status = EVAL_COMPLETE;
    map_put(failed, failed->failed_tg_allocs, "g")->v = type_new(failed, &type_alloc_metric);
    map_put(failed, failed->queued_allocations, "g")->v = 3;
    list_add(in, in->eval_update->evals, failed);
    list_add(in, in->eval_update->evals, blocked);
    apply(f, in);
    ck_assert_str_eq(get_eval(f, "e2")->status, EVAL_BLOCKED);
    ck_assert_int_eq(get_summary(f, "web")->queued, 3);
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_PENDING);

    struct intent *ok = intent_new(f, 0);
    ok->eval_update = type_new(ok, &type_intent_eval_update);
    struct evaluation *done = make_eval(ok, j, "e3");
    done->status = EVAL_COMPLETE;
    list_add(ok, ok->eval_update->evals, done);
    struct fsm_result *r = apply(f, ok);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 2);
    ck_assert_str_eq(get_eval(f, "e2")->status, EVAL_CANCELED);
    ck_assert_uint_eq(get_eval(f, "e2")->create_index, 1001);
    ck_assert_uint_eq(get_eval(f, "e2")->modify_index, 1002);
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_DEAD);
    fx_free(f);
}
END_TEST

/* --- plans and reports --- */

START_TEST(life_of_an_allocation)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, "e1");
    struct fsm_result *r = place(f, make_alloc(f, j, "a1", "n1"), NULL);
    ck_assert_uint_eq(FSM_COUNT(r, ALLOCS, STORED), 1);
    struct allocation *a = get_alloc(f, "a1");
    ck_assert_uint_eq(a->create_index, f->index);
    ck_assert_uint_eq(a->alloc_modify_index, f->index);
    ck_assert_int_eq(a->create_time, f->now);
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_RUNNING);
    ck_assert_int_eq(get_summary(f, "web")->starting, 1);

    uint64_t nodes_before = table_index(f, STATE_NODES);
    report(f, "n1", "a1", ALLOC_RUNNING);
    a = get_alloc(f, "a1");
    ck_assert_str_eq(a->client_status, ALLOC_RUNNING);
    ck_assert_uint_eq(a->modify_index, f->index);
    ck_assert_uint_eq(a->alloc_modify_index, f->index - 1); /* the client need not fetch it again */
    ck_assert_uint_eq(get_node(f, "n1")->last_alloc_update_index, f->index);
    ck_assert_uint_eq(table_index(f, STATE_NODES), nodes_before);
    ck_assert_int_eq(get_summary(f, "web")->running, 1);
    ck_assert_int_eq(get_summary(f, "web")->starting, 0);

    /* An update in place keeps what the client reported. */
    struct job *j2 = make_job(f, "web", 1);
    j2->priority.v = 70;
    put_job(f, j2, NULL);
    place(f, make_alloc(f, j2, "a1", "n1"), NULL);
    a = get_alloc(f, "a1");
    ck_assert_str_eq(a->client_status, ALLOC_RUNNING);
    ck_assert_uint_eq(a->alloc_modify_index, f->index);
    ck_assert_uint_eq(READ(f, uint64_t, state_alloc_job_index(rt, "a1")), f->index - 1);

    struct allocation *stop = type_new(f, &type_allocation);
    stop->id = "a1";
    stop->job_id = "web";
    stop->node_id = "n1";
    stop->desired_status = ALLOC_DESIRED_STOP;
    stop->desired_description = "not needed";
    place(f, NULL, stop);
    a = get_alloc(f, "a1");
    ck_assert_str_eq(a->desired_status, ALLOC_DESIRED_STOP);
    ck_assert_str_eq(a->desired_description, "not needed");
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_PENDING); /* e1 waits */
    report(f, "n1", "a1", ALLOC_COMPLETE);
    ck_assert_int_eq(get_summary(f, "web")->complete, 1);
    ck_assert_int_eq(get_summary(f, "web")->running, 0);
    fx_free(f);
}
END_TEST

static void
report_health(struct fx *f, const char *deployment, bool healthy)
{
    struct intent *in = intent_new(f, 0);
    in->alloc_update = type_new(in, &type_intent_alloc_update);
    in->alloc_update->node_id = "n1";
    struct allocation *a = type_new(in, &type_allocation);
    a->id = "a1";
    a->client_status = ALLOC_RUNNING;
    a->deployment_id = deployment;
    a->deployment_status = type_new(a, &type_alloc_deployment_status);
    a->deployment_status->healthy = (struct opt_bool){true, healthy};
    a->deployment_status->timestamp = 7000 + f->now;
    a->deployment_status->canary = !healthy; /* not the client's to say */
    list_add(in, in->alloc_update->allocs, a);
    apply(f, in);
}

/* The client's words on health are whether and when, and of the deployment that it knows of. */
START_TEST(health_is_of_one_deployment)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    struct allocation *a = make_alloc(f, j, "a1", "n1");
    a->deployment_id = "two";
    a->deployment_status = type_new(a, &type_alloc_deployment_status);
    a->deployment_status->canary = true;
    place(f, a, NULL);
    report_health(f, "one", false);
    ck_assert(!get_alloc(f, "a1")->deployment_status->healthy.set);
    report_health(f, "two", true);
    const struct alloc_deployment_status *d = get_alloc(f, "a1")->deployment_status;
    ck_assert(d->healthy.set && d->healthy.v && d->canary);
    ck_assert_int_eq(d->timestamp, 7000 + f->now);
    ck_assert_uint_eq(d->modify_index, f->index);
    uint64_t at = f->index;
    report_health(f, "two", true); /* said before */
    ck_assert_uint_eq(get_alloc(f, "a1")->deployment_status->modify_index, at);
    report_health(f, "two", false);
    d = get_alloc(f, "a1")->deployment_status;
    ck_assert(d->healthy.set && !d->healthy.v && d->canary);
    fx_free(f);
}
END_TEST

START_TEST(failure_makes_an_evaluation_with_the_entry)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 2);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct fsm_result *r = report(f, "n1", "a1", ALLOC_FAILED);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->triggered_by, TRIGGER_ALLOC_FAILURE);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->status, EVAL_PENDING);
    ck_assert_uint_eq(ROW(r, EVALS, STORED, 0)->create_index, f->index);
    ck_assert_ptr_nonnull(get_eval(f, ROW(r, EVALS, STORED, 0)->id));
    ck_assert_uint_eq(FSM_COUNT(report(f, "n1", "a1", ALLOC_FAILED), EVALS, STORED), 0); /* said before */

    struct job *never = make_job(f, "once", 1);
    struct reschedule_policy *p = type_new(never, &type_reschedule_policy);
    p->attempts = (struct opt_i64){true, 0};
    p->unlimited = (struct opt_bool){true, false};
    never->task_groups.v[0]->reschedule_policy = p;
    put_job(f, never, NULL);
    place(f, make_alloc(f, never, "a2", "n1"), NULL);
    ck_assert_uint_eq(FSM_COUNT(report(f, "n1", "a2", ALLOC_FAILED), EVALS, STORED), 0);
    ck_assert_str_eq(get_job(f, "once")->status, JOB_STATUS_DEAD);

    place(f, make_alloc(f, j, "a3", "n1"), NULL);
    stop_job(f, "web", true, "e1");
    r = report(f, "n1", "a3", ALLOC_RUNNING);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->triggered_by, TRIGGER_JOB_DEREGISTER);
    fx_free(f);
}
END_TEST

START_TEST(reports_of_others_are_refused)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    ck_assert_int_eq(report(f, "n2", "a1", ALLOC_FAILED)->err.code, -ERR_FORBIDDEN);
    ck_assert_int_eq(report(f, "n3", "a1", ALLOC_FAILED)->err.code, -ERR_NOT_FOUND);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_PENDING);
    ck_assert_uint_eq(get_node(f, "n2")->last_alloc_update_index, 0);
    ck_assert_int_eq(report(f, "n2", "unknown", ALLOC_FAILED)->err.code, 0);
    ck_assert_uint_eq(get_node(f, "n2")->last_alloc_update_index, 0); /* S5 */
    node_status(f, "n1", NODE_DOWN);
    ck_assert_int_eq(report(f, "n1", "a1", ALLOC_RUNNING)->err.code, -ERR_CONFLICT); /* S4 */
    fx_free(f);
}
END_TEST

START_TEST(plans_are_judged_again_at_apply)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    register_node(f, make_node(f, "init"));
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    struct fsm_result *r = place(f, make_alloc(f, j, "a1", "init"), NULL);
    ck_assert_uint_eq(r->rejected_nodes.n, 1);
    ck_assert_ptr_null(get_alloc(f, "a1"));
    r = place(f, make_alloc(f, j, "a1", "gone"), NULL);
    ck_assert_uint_eq(r->rejected_nodes.n, 1);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    ck_assert_ptr_nonnull(get_alloc(f, "a1"));
    /* A loss is not recorded over what the client said meanwhile. */
    report(f, "n1", "a1", ALLOC_COMPLETE);
    struct allocation *lost = type_new(f, &type_allocation);
    lost->id = "a1";
    lost->job_id = "web";
    lost->node_id = "n1";
    lost->desired_status = ALLOC_DESIRED_STOP;
    lost->client_status = ALLOC_LOST;
    place(f, NULL, lost);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_COMPLETE);
    ck_assert_str_eq(get_alloc(f, "a1")->desired_status, ALLOC_DESIRED_STOP);
    /* Nothing new for a stopped job. */
    stop_job(f, "web", false, "e1");
    place(f, make_alloc(f, j, "a2", "n1"), NULL);
    ck_assert_ptr_null(get_alloc(f, "a2"));
    fx_free(f);
}
END_TEST

START_TEST(refused_replacement_spares_its_original)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct allocation *stop = type_new(f, &type_allocation);
    stop->id = "a1";
    stop->job_id = "web";
    stop->node_id = "n1";
    stop->desired_status = ALLOC_DESIRED_STOP;
    struct allocation *a2 = make_alloc(f, j, "a2", "gone");
    a2->previous_allocation = "a1";
    place(f, a2, stop);
    ck_assert_ptr_null(get_alloc(f, "a2"));
    ck_assert_str_eq(get_alloc(f, "a1")->desired_status, ALLOC_DESIRED_RUN);
    a2->node_id = "n1";
    place(f, a2, stop);
    ck_assert_str_eq(get_alloc(f, "a1")->desired_status, ALLOC_DESIRED_STOP);
    fx_free(f);
}
END_TEST

/* Each job that lost something to a more important one is looked at again, once. */
START_TEST(preemption_makes_an_evaluation)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *low = make_job(f, "low", 1), *high = make_job(f, "high", 1);
    put_job(f, low, NULL);
    put_job(f, high, NULL);
    place(f, make_alloc(f, low, "a1", "n1"), NULL);
    struct allocation *evict = type_new(f, &type_allocation);
    evict->id = "a1";
    evict->job_id = "low";
    evict->namespace = NS_DEFAULT;
    evict->node_id = "n1";
    evict->desired_status = ALLOC_DESIRED_EVICT;
    evict->preempted_by_allocation = "b1";
    struct fsm_result *r = place(f, make_alloc(f, high, "b1", "n1"), evict);
    ck_assert_str_eq(get_alloc(f, "a1")->desired_status, ALLOC_DESIRED_EVICT);
    ck_assert_str_eq(get_alloc(f, "a1")->preempted_by_allocation, "b1");
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->triggered_by, TRIGGER_PREEMPTION);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->job_id, "low");
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->status, EVAL_PENDING);
    fx_free(f);
}
END_TEST

START_TEST(replacement_is_linked)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct allocation *a2 = make_alloc(f, j, "a2", "n1");
    a2->previous_allocation = "a1";
    place(f, a2, NULL);
    ck_assert_str_eq(get_alloc(f, "a1")->next_allocation, "a2");
    fx_free(f);
}
END_TEST

START_TEST(garbage_collection_leaves_what_lives)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, "e1");
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct intent *in = intent_new(f, 0);
    in->reap = type_new(in, &type_intent_reap);
    in->reap->allocs = strs(in, "a1", "none");
    struct job_ref *ref = type_new(in, &type_job_ref);
    ref->namespace = "default";
    ref->id = "web";
    list_add(in, in->reap->jobs, ref);
    apply(f, in);
    ck_assert_ptr_nonnull(get_alloc(f, "a1"));
    ck_assert_ptr_nonnull(get_job(f, "web"));
    stop_job(f, "web", false, NULL);
    report(f, "n1", "a1", ALLOC_COMPLETE);
    in->reap->evals = strs(in, "e1", NULL);
    apply(f, in);
    ck_assert_ptr_nonnull(get_eval(f, "e1")); /* it is to be run */
    ck_assert_ptr_nonnull(get_job(f, "web"));
    struct intent *up = intent_new(f, 0);
    up->eval_update = type_new(up, &type_intent_eval_update);
    struct evaluation *e1 = get_eval(f, "e1");
    e1->status = EVAL_COMPLETE;
    list_add(up, up->eval_update->evals, e1);
    apply(f, up);
    apply(f, in);
    ck_assert_ptr_null(get_alloc(f, "a1"));
    ck_assert_ptr_null(get_eval(f, "e1"));
    ck_assert_ptr_null(get_job(f, "web"));
    ck_assert_uint_eq(count_versions(f, "web"), 0);
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    ck_assert_ptr_null(state_next(state_allocs_by_job(t, f->ctx, "default", "web"), f->ctx));
    ck_assert_ptr_null(state_next(state_allocs_by_node(t, f->ctx, "n1"), f->ctx));
    ck_assert_ptr_null(state_next(state_evals_by_job(t, f->ctx, "default", "web"), f->ctx));
    state_read_end(t);
    fx_free(f);
}
END_TEST

/* Same entries, same state: compared row by row. */
static int
hash_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    uint32_t *crc = arg;
    *crc = crc32c(*crc, &table, sizeof(table));
    *crc = crc32c(*crc, key.p, key.n);
    *crc = crc32c(*crc, val.p, val.n);
    return 0;
}

/* Some life: every table has rows, and indexes from which some were taken. */
static struct fx *
play(void)
{
    struct fx *f = fx_new();
    make_pools(f);
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = patient_job(f, "web");
    put_job(f, j, "e1");
    struct deployment d = {"d1", "default", .job_id = "web", .status = DEPLOYMENT_RUNNING};
    d.job_create_index = get_job(f, "web")->create_index;
    struct plan_result made = {.job = get_job(f, "web"), .deployment = &d};
    apply(f, &(struct intent){.plan_result = &made});
    for (int i = 0; i < 10; i++) {
        struct allocation *al = make_alloc(f, j, mem_printf(f, "a%d", i), i % 2 == 0 ? "n1" : "n2");
        al->deployment_id = "d1";
        place(f, al, NULL);
    }
    for (int i = 0; i < 10; i++)
        report(f, i % 2 == 0 ? "n1" : "n2", mem_printf(f, "a%d", i),
               i % 3 == 0 ? ALLOC_FAILED : ALLOC_RUNNING);
    node_status(f, "n1", NODE_DOWN);
    node_status(f, "n2", NODE_DOWN);
    node_status(f, "n1", NODE_READY);
    j = make_job(f, "cron", 1);
    j->periodic = mem_new(j, struct periodic_config);
    put_job(f, j, NULL);
    struct intent_periodic_launch pl = {"default", "cron", f->now / NS_PER_S + 1, "e2"};
    apply(f, &(struct intent){.periodic_launch = &pl});
    apply(f, &(struct intent){.cluster_metadata = &(struct cluster_metadata){.cluster_id = "c1"}});
    make_objects(f);
    return f;
}

START_TEST(a_cluster_is_named_once)
{
    struct fx *f = play();
    struct cluster_metadata other = {.cluster_id = "c2"};
    ck_assert(!apply(f, &(struct intent){.cluster_metadata = &other})->changed);
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    ck_assert_str_eq(state_cluster(t, f->ctx)->cluster_id, "c1");
    state_read_end(t);
    for (uint64_t i = 1; i <= SERVERS_GONE_MAX + 5; i++) { /* one of them twice */
        struct server_gone gone = {.id = i == 4 ? 3 : i, .left = i == 4};
        ck_assert(apply(f, &(struct intent){.server_gone = &gone})->changed);
    }
    t = state_read_begin(f->s, f->ctx);
    const struct cluster_metadata *m = state_cluster(t, f->ctx);
    ck_assert_uint_eq(m->gone.n, SERVERS_GONE_MAX);
    ck_assert_uint_eq(m->gone.v[0]->id, 6);
    ck_assert_uint_eq(m->gone.v[SERVERS_GONE_MAX - 1]->id, SERVERS_GONE_MAX + 5);
    state_read_end(t);
    fx_free(f);
}
END_TEST

static uint32_t
hash_rows(struct fx *f)
{
    uint32_t crc = 0;
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    ck_assert_int_eq(state_dump(t, hash_row, &crc), 0);
    state_read_end(t);
    return crc;
}

START_TEST(apply_is_deterministic)
{
    struct fx *a = play(), *b = play();
    ck_assert_uint_eq(hash_rows(a), hash_rows(b));
    fx_free(a);
    fx_free(b);
}
END_TEST

static int
load_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct slice forged = SLICE("x", 2);
    if (table != STATE_ID_META)
        ck_assert_int_eq(state_load_row(arg, table, forged, val), -ERR_CORRUPT);
    return state_load_row(arg, table, key, val);
}

static uint32_t
hash_physical(struct state_txn *t, unsigned table)
{
    uint32_t crc = 0;
    size_t n = 0;
    struct table_scan *s = table_scan(t->t, t->s->t[table], SLICE(NULL, 0));
    for (; table_next(s); n++)
        hash_row(&crc, table, s->key, s->val);
    table_scan_end(s);
    ck_assert_msg(n > 0 || table == STATE_SUBMISSIONS || table == STATE_SCHEDULER_CONFIG, "table %u", table);
    return crc;
}

/* A snapshot makes the same indexes as entries do. */
START_TEST(a_snapshot_gives_the_same_indexes)
{
    struct fx *f = play(), *g = fx_new();
    struct state_txn *from = state_read_begin(f->s, f->ctx), *to = state_write_begin(g->s, g->ctx);
    ck_assert_int_eq(state_dump(from, load_row, to), 0);
    for (unsigned i = 0; i < T_ALL; i++)
        ck_assert_uint_eq(hash_physical(from, i), hash_physical(to, i));
    ck_assert_int_eq(state_load_row(to, 250, SLICE("x", 2), SLICE("", 0)), -ERR_CORRUPT);
    state_read_end(from);
    state_abort(to);
    fx_free(f);
    fx_free(g);
}
END_TEST

/* In the entry that stops it: neither is without the other. */
START_TEST(a_stop_without_delay_says_so_to_what_lives)
{
    for (int purge = 0; purge < 2; purge++) {
        struct fx *f = fx_new();
        ready_node(f, "n1");
        struct job *j = make_job(f, "web", 2);
        put_job(f, j, NULL);
        place(f, make_alloc(f, j, "a1", "n1"), NULL);
        place(f, make_alloc(f, j, "a2", "n1"), NULL);
        report(f, "n1", "a2", ALLOC_COMPLETE);
        struct intent *in = intent_new(f, 0);
        in->job_deregister = type_new(in, &type_intent_job_deregister);
        *in->job_deregister = (struct intent_job_deregister){.namespace = "default",
                                                             .job_id = "web",
                                                             .purge = purge,
                                                             .no_shutdown_delay = true,
                                                             .eval = make_eval(in, j, "e2")};
        ck_assert_int_eq(apply(f, in)->err.code, 0);
        ck_assert(get_alloc(f, "a1")->desired_transition->no_shutdown_delay.v);
        ck_assert_ptr_null(get_alloc(f, "a2")->desired_transition);
        ck_assert(purge ? get_job(f, "web") == NULL : get_job(f, "web")->stop);
        fx_free(f);
    }
}
END_TEST

static struct fsm_result *
delete_evals(struct fx *f, bool skip, const char *a, const char *b)
{
    struct intent *in = intent_new(f, 0);
    in->eval_delete = type_new(in, &type_intent_eval_delete);
    in->eval_delete->skip = skip;
    list_add(in, in->eval_delete->eval_ids, a);
    list_add(in, in->eval_delete->eval_ids, b);
    return apply(f, in);
}

static void
pause_broker(struct fx *f, bool on)
{
    struct intent *in = intent_new(f, 0);
    in->scheduler_config = type_new(in, &type_scheduler_configuration);
    in->scheduler_config->pause_eval_broker = on;
    apply(f, in);
}

/* All or none, and none whose allocations only it could take along; while nothing is handed out. */
START_TEST(evaluations_are_deleted_while_none_is_handed_out)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1), *idle = make_job(f, "idle", 1);
    put_job(f, j, "e1");
    put_job(f, idle, "e2");
    struct allocation *a = make_alloc(f, j, "a1", "n1");
    a->eval_id = "e1";
    place(f, a, NULL);
    ck_assert_str_eq(get_job(f, "idle")->status, JOB_STATUS_PENDING);
    struct fsm_result *r = delete_evals(f, true, "e2", "e2");
    ck_assert_int_eq(r->err.code, -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(r->err.text, "eval broker is enabled"));
    pause_broker(f, true);
    r = delete_evals(f, false, "e2", "nobodys");
    ck_assert_int_eq(r->err.code, -ERR_NOT_FOUND);
    r = delete_evals(f, false, "e2", "e1");
    ck_assert_int_eq(r->err.code, -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(r->err.text, "eval e1 is not safe to delete"));
    ck_assert_ptr_nonnull(get_eval(f, "e2"));
    r = delete_evals(f, true, "e1", "e2");
    ck_assert_int_eq(r->err.code, 0);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, DELETED), 1);
    ck_assert_str_eq(ROW(r, EVALS, DELETED, 0)->id, "e2");
    ck_assert_ptr_null(get_eval(f, "e2"));
    ck_assert_ptr_nonnull(get_eval(f, "e1"));
    /* allocations of a job that is stopped go with it */
    stop_job(f, "web", false, "e3");
    r = delete_evals(f, false, "e1", "e1");
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, DELETED), 1);
    ck_assert_ptr_null(get_eval(f, "e1"));
    fx_free(f);
}
END_TEST

TEST_SUITE("fsm", versions_change_only_with_the_spec, six_versions_and_those_in_use_are_kept,
           tagged_versions_are_kept, evaluations_are_deleted_while_none_is_handed_out,
           stable_is_said_of_one_version, enforced_index_and_stop_and_purge,
           a_stop_without_delay_says_so_to_what_lives, long_ids_and_prefixes,
           success_cancels_what_was_blocked, life_of_an_allocation,
           health_is_of_one_deployment, failure_makes_an_evaluation_with_the_entry,
           reports_of_others_are_refused,
           plans_are_judged_again_at_apply, preemption_makes_an_evaluation, replacement_is_linked,
           refused_replacement_spares_its_original,
           garbage_collection_leaves_what_lives, apply_is_deterministic, a_cluster_is_named_once,
           a_snapshot_gives_the_same_indexes)
