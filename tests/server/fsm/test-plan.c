/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine and plans: what of a stale one is done, what an update leaves alone, and that the
 * cost of an entry grows with the entry.
 */
#include <time.h>

#include "api/volume/volume.h"
#include "common/duration.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct allocation *
named(struct fx *f, const struct job *j, const char *id, const char *node, const char *name)
{
    struct allocation *a = make_alloc(f, j, id, node);
    a->name = name;
    return a;
}

static struct allocation *
stop_of(struct fx *f, const char *id, const char *node)
{
    struct allocation *s = type_new(f, &type_allocation);
    s->id = id;
    s->job_id = "web";
    s->node_id = node;
    s->desired_status = ALLOC_DESIRED_STOP;
    return s;
}

/* Two plans of one snapshot place the same names: the second one comes too late. */
START_TEST(a_live_name_is_placed_once)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, named(f, j, "a1", "n1", "web.g[0]"), NULL);
    struct fsm_result *r = place(f, named(f, j, "a2", "n2", "web.g[0]"), NULL);
    ck_assert_uint_eq(r->names_taken, 1);
    ck_assert_uint_eq(r->rejected_nodes.n, 0);
    ck_assert_ptr_null(get_alloc(f, "a2"));
    /* another name, one that replaces it, one that follows what stopped in the same plan */
    place(f, named(f, j, "a3", "n2", "web.g[1]"), NULL);
    ck_assert_ptr_nonnull(get_alloc(f, "a3"));
    struct allocation *a4 = named(f, j, "a4", "n2", "web.g[0]");
    a4->previous_allocation = "a1";
    ck_assert_uint_eq(place(f, a4, NULL)->names_taken, 0);
    ck_assert_uint_eq(place(f, named(f, j, "a5", "n2", "web.g[1]"), stop_of(f, "a3", "n2"))->names_taken, 0);
    ck_assert_str_eq(get_alloc(f, "a5")->desired_status, ALLOC_DESIRED_RUN);
    /* an ended one bears no name; another version of the job is another matter */
    report(f, "n2", "a5", ALLOC_FAILED);
    ck_assert_uint_eq(place(f, named(f, j, "a6", "n1", "web.g[1]"), NULL)->names_taken, 0);
    j->priority.v = 60;
    put_job(f, j, NULL);
    ck_assert_uint_eq(place(f, named(f, j, "a7", "n1", "web.g[1]"), NULL)->names_taken, 0);
    ck_assert_uint_eq(place(f, named(f, j, "a8", "n1", "web.g[1]"), NULL)->names_taken, 1);
    fx_free(f);
}
END_TEST

static void
put_volume(struct fx *f, const char *id, const char *ns, const char *node)
{
    struct host_volume_claim forged = {.job_id = "web", .alloc_name = "web.g[9]"},
                             *list[] = {&forged};
    struct host_volume v = {
        .id = id, .name = "data", .namespace = ns, .node_id = node, .claims = {list, 1}};
    apply(f, &(struct intent){.volume_put = &(struct intent_volume_put){&v}});
}

static size_t
claims(struct fx *f, const char *id, const char *job, const char *name)
{
    const struct host_volume *v = READ(f, struct host_volume *, state_host_volume(rt, f->ctx, id));
    ck_assert_ptr_nonnull(v);
    ck_assert(!volume_claimed(v, "web", "web.g[9]"));
    ck_assert(name == NULL || volume_claimed(v, job, name));
    return v->claims.n;
}

static struct job *
sticky_job(struct fx *f, const char *id, bool sticky)
{
    struct job *j = make_job(f, id, 2);
    struct volume_request *v = type_new(j, &type_volume_request);
    v->type = "host";
    v->source = "data";
    v->sticky = sticky;
    map_put(j, j->task_groups.v[0]->volumes, "v")->v = v;
    put_job(f, j, NULL);
    return j;
}

/* A placement with a sticky volume claims it, once; nobody else does, and the end of the job is
 * that of its claims. */
START_TEST(sticky_volumes_are_claimed)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    put_volume(f, "v1", "default", "n1");
    put_volume(f, "v2", "default", "n2");
    ready_node(f, "n3");
    put_volume(f, "v3", "other", "n3");
    struct job *j = sticky_job(f, "web", true), *plain = sticky_job(f, "plain", false),
               *too = sticky_job(f, "too", true);
    place(f, named(f, j, "a1", "n1", "web.g[0]"), NULL);
    ck_assert_uint_eq(claims(f, "v1", "web", "web.g[0]"), 1);
    place(f, named(f, plain, "b1", "n1", "plain.g[0]"), NULL);
    place(f, named(f, too, "c1", "n1", "too.g[0]"), NULL);
    ck_assert_uint_eq(claims(f, "v1", "too", "too.g[0]"), 2);
    struct allocation *again = named(f, j, "a2", "n1", "web.g[0]");
    again->previous_allocation = "a1";
    place(f, again, NULL);
    place(f, named(f, j, "a3", "n1", "web.g[1]"), NULL);
    ck_assert_uint_eq(claims(f, "v1", "web", "web.g[1]"), 3);
    place(f, named(f, j, "a4", "n3", "web.g[2]"), NULL);
    ck_assert_uint_eq(claims(f, "v2", NULL, NULL), 0);
    ck_assert_uint_eq(claims(f, "v3", NULL, NULL), 0);
    /* a stop is not the end */
    stop_job(f, "web", false, NULL);
    ck_assert_uint_eq(claims(f, "v1", "web", "web.g[0]"), 3);
    stop_job(f, "web", true, NULL);
    ck_assert_uint_eq(claims(f, "v1", "too", "too.g[0]"), 1);
    fx_free(f);
}
END_TEST

/* A system job has the same name on each node; a node of which nobody hears does not hold it. */
START_TEST(a_system_name_is_placed_once_per_node)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = patient_job(f, "web");
    j->type = JOB_SYSTEM;
    put_job(f, j, NULL);
    place(f, named(f, j, "a1", "n1", "web.g[0]"), NULL);
    ck_assert_uint_eq(place(f, named(f, j, "a2", "n2", "web.g[0]"), NULL)->names_taken, 0);
    ck_assert_uint_eq(place(f, named(f, j, "a3", "n2", "web.g[0]"), NULL)->names_taken, 1);
    j = patient_job(f, "svc");
    put_job(f, j, NULL);
    place(f, named(f, j, "b1", "n1", "svc.g[0]"), NULL);
    node_status(f, "n1", NODE_DOWN);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_alloc(f, "b1")->client_status, ALLOC_UNKNOWN);
    ck_assert_uint_eq(place(f, named(f, j, "b2", "n2", "svc.g[0]"), NULL)->names_taken, 0);
    fx_free(f);
}
END_TEST

/* An allocation that stays, because its node takes nothing of the plan, is not replaced
 * elsewhere. */
START_TEST(what_is_not_stopped_is_not_replaced)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, named(f, j, "a1", "n1", "web.g[0]"), NULL);
    node_status(f, "n1", NODE_DOWN);
    struct intent *in = intent_new(f, 0);
    struct plan_result *r = in->plan_result = type_new(in, &type_plan_result);
    r->job = get_job(f, "web");
    struct allocation *moved = named(f, j, "a2", "n2", "web.g[0]");
    moved->previous_allocation = "a1";
    list_add(in, r->stopped, stop_of(f, "a1", "n1"));
    list_add(in, r->placed, moved);
    list_add(in, r->placed, named(f, j, "a3", "n1", "web.g[1]"));
    struct fsm_result *res = apply(f, in);
    ck_assert_uint_eq(res->rejected_nodes.n, 1);
    ck_assert_str_eq(get_alloc(f, "a1")->desired_status, ALLOC_DESIRED_RUN);
    ck_assert_ptr_null(get_alloc(f, "a2"));
    fx_free(f);
}
END_TEST

/* A plan writes an update of the allocation as it was in its snapshot. */
START_TEST(update_in_place_keeps_what_came_between)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    struct allocation *snapshot = get_alloc(f, "a1");
    snapshot->eval_id = "eval-2";
    struct allocation *stop = stop_of(f, "a1", "n1");
    stop->desired_status = ALLOC_DESIRED_EVICT;
    stop->desired_description = "preempted";
    stop->preempted_by_allocation = "b1";
    stop->followup_eval_id = "eval-3";
    struct job *high = make_job(f, "high", 1);
    put_job(f, high, NULL);
    place(f, make_alloc(f, high, "b1", "n1"), stop);
    struct intent *in = intent_new(f, 0);
    in->alloc_transition = type_new(in, &type_intent_alloc_transition);
    in->alloc_transition->alloc_ids = strs(in, "a1", NULL);
    in->alloc_transition->transition = type_new(in, &type_desired_transition);
    in->alloc_transition->transition->migrate = (struct opt_bool){true, true};
    apply(f, in);
    j->priority.v = 60;
    put_job(f, j, NULL);
    place(f, snapshot, NULL);
    struct allocation *a = get_alloc(f, "a1");
    ck_assert_str_eq(a->eval_id, "eval-2");
    ck_assert_str_eq(a->desired_status, ALLOC_DESIRED_EVICT);
    ck_assert_str_eq(a->desired_description, "preempted");
    ck_assert_str_eq(a->preempted_by_allocation, "b1");
    ck_assert_str_eq(a->followup_eval_id, "eval-3");
    ck_assert(a->desired_transition != NULL && a->desired_transition->migrate.v);
    ck_assert_str_eq(a->client_status, ALLOC_RUNNING);
    fx_free(f);
}
END_TEST

/* S13: running when the plan was made, away and back since: the status is the same. */
START_TEST(marks_hold_while_nothing_changed)
{
    static const char *const marks[] = {ALLOC_LOST, ALLOC_UNKNOWN, NULL};
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        struct fx *f = fx_new();
        ready_node(f, "n1");
        ready_node(f, "n2");
        struct job *j = patient_job(f, "web");
        put_job(f, j, NULL);
        place(f, make_alloc(f, j, "a1", "n1"), NULL);
        report(f, "n1", "a1", ALLOC_RUNNING);
        node_status(f, "n1", NODE_DOWN);
        uint64_t snapshot = f->index;
        struct evaluation *ev = make_eval(f, j, "timeout");
        ev->triggered_by = TRIGGER_MAX_DISCONNECT;
        ev->wait_until = f->now + 1000 * NS_PER_S;
        struct intent *up = intent_new(f, 0);
        up->eval_update = type_new(up, &type_intent_eval_update);
        list_add(up, up->eval_update->evals, ev);
        apply(f, up);
        node_status(f, "n1", NODE_READY);
        report(f, "n1", "a1", ALLOC_RUNNING);
        struct allocation *a2 = make_alloc(f, j, "a2", "n2");
        struct allocation *mark = row_of(f, "a1", "n1", ALLOC_RUNNING, marks[i]);
        a2->previous_allocation = "a1";
        mark->followup_eval_id = "timeout";
        ck_assert_uint_eq(place_as_of(f, a2, mark, snapshot)->names_taken, 2);
        ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_RUNNING);
        ck_assert_ptr_null(get_alloc(f, "a2"));
        ck_assert_str_eq(get_eval(f, "timeout")->status, EVAL_CANCELED); /* S19 */
        ck_assert_uint_eq(place_as_of(f, a2, NULL, snapshot)->names_taken, 1); /* unmarked */
        ck_assert_ptr_null(get_alloc(f, "a2"));
        fx_free(f);
    }
}
END_TEST

/* An allocation that nobody would look after again is not marked, nor is one whose node was heard
 * while it was unknown all the time. */
START_TEST(marks_hold_with_their_node_and_their_evaluation)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    node_status(f, "n1", NODE_DOWN);
    struct evaluation *ev = make_eval(f, j, "gone");
    ev->status = EVAL_CANCELED;
    struct intent *up = intent_new(f, 0);
    up->eval_update = type_new(up, &type_intent_eval_update);
    list_add(up, up->eval_update->evals, ev);
    apply(f, up);
    struct allocation *mark = row_of(f, "a1", "n1", ALLOC_RUNNING, ALLOC_UNKNOWN);
    mark->followup_eval_id = "gone";
    ck_assert_uint_eq(place(f, NULL, mark)->names_taken, 1);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_RUNNING);
    node_status(f, "n1", NODE_READY);
    node_status(f, "n1", NODE_DOWN);
    uint64_t snapshot = f->index, unchanged = get_alloc(f, "a1")->modify_index;
    struct allocation *lost = row_of(f, "a1", "n1", ALLOC_UNKNOWN, ALLOC_LOST);
    node_status(f, "n1", NODE_READY);
    ck_assert_uint_eq(get_alloc(f, "a1")->modify_index, unchanged);
    ck_assert_uint_eq(place_as_of(f, NULL, lost, snapshot)->names_taken, 1);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_UNKNOWN);
    ck_assert_uint_eq(place(f, NULL, lost)->names_taken, 0);
    fx_free(f);
}
END_TEST

/* Back, and away again before the entry comes: another silence, which nobody has settled. */
START_TEST(a_return_is_settled_of_the_silence_that_was_seen)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    struct allocation *back = row_of(f, "a1", "n1", ALLOC_RUNNING, ALLOC_RUNNING);
    for (int i = 0; i < 2; i++) {
        node_status(f, "n1", NODE_DOWN);
        node_status(f, "n1", NODE_READY);
        report(f, "n1", "a1", ALLOC_RUNNING);
        const struct allocation *a = get_alloc(f, "a1");
        ck_assert_uint_eq(a->alloc_states.n, (size_t)i + 1);
        if (i == 0)
            back->alloc_states.v[0]->time = a->alloc_states.v[0]->time;
        f->now += NS_PER_S;
    }
    uint64_t snapshot = f->index;
    report(f, "n1", "a1", ALLOC_RUNNING);
    ck_assert_uint_eq(place_as_of(f, back, NULL, snapshot)->names_taken, 1);
    ck_assert_uint_eq(get_alloc(f, "a1")->alloc_states.n, 2);
    back->alloc_states.v[0]->time = get_alloc(f, "a1")->alloc_states.v[1]->time;
    ck_assert_uint_eq(place_as_of(f, back, NULL, snapshot)->names_taken, 0);
    ck_assert_uint_eq(get_alloc(f, "a1")->alloc_states.n, 3);
    fx_free(f);
}
END_TEST

/* The allocation that was to be placed is not: its name is taken by now. */
START_TEST(nobody_makes_room_for_what_is_not_placed)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *low = make_job(f, "low", 1), *high = make_job(f, "high", 1);
    put_job(f, low, NULL);
    put_job(f, high, NULL);
    place(f, make_alloc(f, low, "a1", "n1"), NULL);
    struct allocation *b0 = make_alloc(f, high, "b0", "n1"), *b1 = make_alloc(f, high, "b1", "n1");
    b1->name = b0->name;
    place(f, b0, NULL);
    struct allocation *evict = type_new(f, &type_allocation);
    evict->id = "a1";
    evict->job_id = "low";
    evict->namespace = NS_DEFAULT;
    evict->node_id = "n1";
    evict->desired_status = ALLOC_DESIRED_EVICT;
    evict->preempted_by_allocation = "b1";
    struct fsm_result *r = place(f, b1, evict);
    ck_assert_uint_eq(r->names_taken, 1);
    ck_assert_str_eq(get_alloc(f, "a1")->desired_status, ALLOC_DESIRED_RUN);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 0);
    fx_free(f);
}
END_TEST

static void
put_eval(struct fx *f, const char *id, const char *status, int64_t queued)
{
    struct intent *up = intent_new(f, 0);
    struct evaluation *ev = make_eval(up, make_job(up, "web", 1), id);
    up->eval_update = type_new(up, &type_intent_eval_update);
    ev->status = status;
    map_put(ev, ev->queued_allocations, "g")->v = queued;
    list_add(up, up->eval_update->evals, ev);
    apply(f, up);
}

/* Whoever cancels an evaluation writes back what it said when it was worked on. */
START_TEST(a_cancelled_evaluation_tells_no_numbers)
{
    struct fx *f = fx_new();
    put_job(f, make_job(f, "web", 5), NULL);
    put_eval(f, "e1", EVAL_BLOCKED, 1);
    put_eval(f, "e2", EVAL_BLOCKED, 5);
    put_eval(f, "e1", EVAL_CANCELED, 1);
    ck_assert_int_eq(get_summary(f, "web")->queued, 5);
    fx_free(f);
}
END_TEST

/* --- versions --- */

static struct job_submission *
source_of(struct fx *f, uint64_t version)
{
    return READ(f, struct job_submission *,
                state_get(rt, f->ctx, SUBMISSIONS, "default", "web", version));
}

static void
register_with(struct fx *f, int count, const char *source)
{
    struct intent *in = intent_new(f, 0);
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = make_job(f, "web", count);
    if (source != NULL)
        in->job_register->submission = type_new(in, &type_job_submission);
    if (source != NULL)
        in->job_register->submission->source = source;
    ck_assert_int_eq(apply(f, in)->err.code, 0);
}

/* Stopped, started, reverted to: the version that is made has the source of what it is a copy of. */
START_TEST(a_copy_of_a_version_has_its_source)
{
    struct fx *f = fx_new();
    register_with(f, 1, "one");
    register_with(f, 2, "two");
    stop_job(f, "web", false, NULL);
    ck_assert_str_eq(source_of(f, 2)->source, "two");
    ck_assert_uint_eq(source_of(f, 2)->job_modify_index, get_job(f, "web")->job_modify_index);
    register_with(f, 2, NULL); /* started */
    ck_assert_str_eq(source_of(f, 3)->source, "two");
    register_with(f, 1, NULL); /* reverted */
    ck_assert_uint_eq(get_job(f, "web")->version, 4);
    ck_assert_str_eq(source_of(f, 4)->source, "one");
    register_with(f, 3, NULL); /* nothing is known of it */
    ck_assert_ptr_null(source_of(f, 5));
    register_with(f, 2, "another");
    ck_assert_str_eq(source_of(f, 6)->source, "another");
    fx_free(f);
}
END_TEST

/* --- garbage --- */

static struct intent *
reap_of(struct fx *f, const char *alloc, const char *eval, const char *deployment, const char *job)
{
    struct intent *in = intent_new(f, 0);
    struct intent_reap *r = in->reap = type_new(in, &type_intent_reap);
    struct job_ref *ref = type_new(in, &type_job_ref);
    if (alloc != NULL)
        r->allocs = strs(in, alloc, NULL);
    if (eval != NULL)
        r->evals = strs(in, eval, NULL);
    if (deployment != NULL)
        r->deployments = strs(in, deployment, NULL);
    ref->namespace = NS_DEFAULT;
    ref->id = job;
    if (job != NULL)
        list_add(in, r->jobs, ref);
    return in;
}

static void
complete_eval(struct fx *f, const char *id)
{
    struct intent *up = intent_new(f, 0);
    struct evaluation *ev = get_eval(f, id);
    up->eval_update = type_new(up, &type_intent_eval_update);
    ev->status = EVAL_COMPLETE;
    list_add(up, up->eval_update->evals, ev);
    apply(f, up);
}

/* It was lost when the collector searched, and its client has reported that it runs. */
START_TEST(what_runs_again_is_not_collected)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, "eval-1");
    complete_eval(f, "eval-1");
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    ck_assert_str_eq(get_alloc(f, "a1")->eval_id, "eval-1");
    struct allocation *lost = row_of(f, "a1", "n1", ALLOC_RUNNING, ALLOC_LOST);
    lost->desired_status = ALLOC_DESIRED_STOP;
    place(f, NULL, lost);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_LOST);
    report(f, "n1", "a1", ALLOC_RUNNING);
    struct intent *reap = reap_of(f, "a1", "eval-1", NULL, NULL);
    ck_assert(!apply(f, reap)->changed);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_RUNNING);
    ck_assert_ptr_nonnull(get_eval(f, "eval-1")); /* stays with its allocation */
    report(f, "n1", "a1", ALLOC_COMPLETE);
    apply(f, reap);
    ck_assert_ptr_null(get_alloc(f, "a1"));
    ck_assert_ptr_null(get_eval(f, "eval-1"));
    fx_free(f);
}
END_TEST

/* The job was stopped when the collector searched, and is wanted again: what finished counts. */
START_TEST(what_a_job_wants_again_is_not_collected)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 2);
    j->type = JOB_BATCH;
    put_job(f, j, "eval-1");
    complete_eval(f, "eval-1");
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_COMPLETE);
    stop_job(f, "web", false, NULL);
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_DEAD);
    struct intent *reap = reap_of(f, "a1", "eval-1", NULL, "web");
    put_job(f, j, "eval-2");
    ck_assert(!apply(f, reap)->changed);
    ck_assert_ptr_nonnull(get_alloc(f, "a1"));
    ck_assert_ptr_nonnull(get_eval(f, "eval-1"));
    ck_assert_ptr_nonnull(get_job(f, "web"));
    stop_job(f, "web", false, NULL);
    ck_assert_ptr_nonnull(get_job(f, "web"));
    apply(f, reap_of(f, NULL, NULL, NULL, "web"));
    ck_assert_ptr_nonnull(get_job(f, "web")); /* an evaluation of it is to be run */
    complete_eval(f, "eval-2");
    apply(f, reap);
    ck_assert_ptr_null(get_alloc(f, "a1"));
    ck_assert_ptr_null(get_eval(f, "eval-1"));
    ck_assert_ptr_null(get_job(f, "web"));
    fx_free(f);
}
END_TEST

/* Between one of which nobody hears and what stands for it; its deployment lives as long as one of
 * its allocations does. */
START_TEST(links_and_deployments_of_what_lives_are_not_collected)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    struct intent *in = intent_new(f, 0);
    in->plan_result = type_new(in, &type_plan_result);
    in->plan_result->job = get_job(f, "web");
    struct deployment *d = type_new(in, &type_deployment);
    d->id = "d1";
    d->namespace = NS_DEFAULT;
    d->job_id = "web";
    d->job_create_index = in->plan_result->job->create_index;
    d->status = DEPLOYMENT_FAILED;
    in->plan_result->deployment = d;
    struct allocation *a1 = make_alloc(f, j, "a1", "n1");
    a1->deployment_id = "d1";
    list_add(in, in->plan_result->placed, a1);
    apply(f, in);
    report(f, "n1", "a1", ALLOC_RUNNING);
    ck_assert(!apply(f, reap_of(f, NULL, NULL, "d1", NULL))->changed);
    node_status(f, "n1", NODE_DOWN);
    struct allocation *a2 = make_alloc(f, j, "a2", "n2"), *a3 = make_alloc(f, j, "a3", "n2");
    a2->previous_allocation = "a1";
    a3->previous_allocation = "a2";
    place(f, a2, row_of(f, "a1", "n1", ALLOC_RUNNING, ALLOC_UNKNOWN));
    report(f, "n2", "a2", ALLOC_FAILED);
    struct allocation *gone = row_of(f, "a2", "n2", ALLOC_FAILED, NULL);
    gone->desired_status = ALLOC_DESIRED_STOP;
    place(f, a3, gone);
    struct intent *reap = reap_of(f, "a2", NULL, NULL, NULL);
    ck_assert(!apply(f, reap)->changed);
    ck_assert_ptr_nonnull(get_alloc(f, "a2"));
    node_status(f, "n1", NODE_READY);
    report(f, "n1", "a1", ALLOC_COMPLETE);
    apply(f, reap);
    ck_assert_ptr_null(get_alloc(f, "a2"));
    ck_assert(apply(f, reap_of(f, NULL, NULL, "d1", NULL))->changed);
    fx_free(f);
}
END_TEST

/* --- cost --- */

static double
cpu_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* An entry that places n allocations. */
static double
place_many(int n)
{
    struct fx *f = fx_new();
    f->timed = true;
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", n);
    put_job(f, j, NULL);
    struct intent *in = intent_new(f, 0);
    in->plan_result = type_new(in, &type_plan_result);
    in->plan_result->job = get_job(f, "web");
    for (int i = 0; i < n; i++)
        list_add(in, in->plan_result->placed,
                 make_alloc(in, j, mem_printf(in, "aaaaaaaa-0000-4000-8000-%012d", i), "n1"));
    double t = cpu_s();
    ck_assert_uint_eq(FSM_COUNT(apply(f, in), ALLOCS, STORED), (size_t)n);
    t = cpu_s() - t;
    fx_free(f);
    return t;
}

/* Eight times as many cost eight times as much, or a little more: not 64 times. */
static void
grows_with_n(const char *what, double small, double big)
{
    printf("# %s: %.1f ms, eight times as many: %.1f ms\n", what, small * 1e3, big * 1e3);
    ck_assert_double_lt(big, 20 * small + 0.02);
}

START_TEST(placements_cost_what_they_are)
{
    double small = place_many(2000);
    grows_with_n("2,000 placements", small, place_many(16000));
}
END_TEST

/* Evaluations of one job: n are written pending, then each completes. */
static double
evaluate_often(int n)
{
    struct fx *f = fx_new();
    f->timed = true;
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    double t = cpu_s();
    for (int i = 0; i < 2 * n; i++) {
        struct intent *in = intent_new(NULL, 0);
        in->eval_update = type_new(in, &type_intent_eval_update);
        struct evaluation *e = make_eval(in, j, mem_printf(in, "eval-%d", i % n));
        e->status = i < n ? EVAL_PENDING : EVAL_COMPLETE;
        list_add(in, in->eval_update->evals, e);
        ck_assert_int_eq(apply(f, in)->err.code, 0);
        mem_free(in);
    }
    t = cpu_s() - t;
    ck_assert_str_eq(get_job(f, "web")->status, JOB_STATUS_DEAD);
    fx_free(f);
    return t;
}

START_TEST(evaluations_cost_what_they_are)
{
    double small = evaluate_often(150);
    grows_with_n("150 evaluations of a job", small, evaluate_often(1200));
}
END_TEST

/* A system job hears of each of n nodes. */
static double
nodes_become_ready(int n)
{
    struct fx *f = fx_new();
    f->timed = true;
    struct job *j = make_job(f, "everywhere", 1);
    j->type = JOB_SYSTEM;
    put_job(f, j, NULL);
    double t = cpu_s();
    for (int i = 0; i < n; i++) {
        ready_node(f, mem_printf(f, "n%d", i));
        struct intent *in = intent_new(NULL, 0);
        in->eval_update = type_new(in, &type_intent_eval_update);
        struct evaluation *e = make_eval(in, j, mem_printf(in, "done-%d", i));
        e->status = EVAL_COMPLETE;
        list_add(in, in->eval_update->evals, e);
        apply(f, in);
        mem_free(in);
    }
    t = cpu_s() - t;
    fx_free(f);
    return t;
}

START_TEST(nodes_cost_what_they_are)
{
    double small = nodes_become_ready(100);
    grows_with_n("100 nodes with a system job", small, nodes_become_ready(800));
}
END_TEST

/* n allocations of a purged job are collected; the last one is of another version than the others. */
static double
collect_many(int n)
{
    struct fx *f = fx_new();
    f->timed = true;
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", n);
    put_job(f, j, NULL);
    struct intent *in = intent_new(f, 0), *reap = intent_new(f, 0);
    reap->reap = type_new(reap, &type_intent_reap);
    for (int i = 0; i < n; i++) {
        if (i % (n - 1) == 0) {
            j->priority.v++;
            put_job(f, j, NULL);
            in = intent_new(f, 0);
            in->plan_result = type_new(in, &type_plan_result);
            in->plan_result->job = get_job(f, "web");
        }
        struct allocation *a = make_alloc(in, j, mem_printf(in, "aaaaaaaa-0000-4000-8000-%012d", i), "n1");
        a->client_status = ALLOC_COMPLETE;
        a->desired_status = ALLOC_DESIRED_STOP;
        list_add(in, in->plan_result->placed, a);
        list_add(reap, reap->reap->allocs, a->id);
        if (i >= n - 2)
            apply(f, in);
    }
    stop_job(f, "web", true, "e1");
    double t = cpu_s();
    apply(f, reap);
    t = cpu_s() - t;
    ck_assert_ptr_null(get_alloc(f, "aaaaaaaa-0000-4000-8000-000000000001"));
    fx_free(f);
    return t;
}

START_TEST(collecting_costs_what_it_is)
{
    double small = collect_many(500);
    grows_with_n("500 collected allocations", small, collect_many(4000));
}
END_TEST

/* A client that is back reports n allocations of a job, which all wait for the same evaluation. */
static double
report_many(int n)
{
    struct fx *f = fx_new();
    f->timed = true;
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", n);
    put_job(f, j, NULL);
    struct intent *in = intent_new(f, 0), *up = intent_new(f, 0), *ev = intent_new(f, 0);
    ev->eval_update = type_new(ev, &type_intent_eval_update);
    list_add(ev, ev->eval_update->evals, make_eval(ev, j, "follows"));
    apply(f, ev);
    in->plan_result = type_new(in, &type_plan_result);
    in->plan_result->job = get_job(f, "web");
    up->alloc_update = type_new(up, &type_intent_alloc_update);
    up->alloc_update->node_id = "n1";
    for (int i = 0; i < n; i++) {
        struct allocation *a = make_alloc(in, j, mem_printf(in, "aaaaaaaa-0000-4000-8000-%012d", i), "n1");
        a->name = mem_printf(in, "web.g[%d]", i);
        a->client_status = ALLOC_UNKNOWN;
        a->followup_eval_id = "follows";
        list_add(in, in->plan_result->placed, a);
        struct allocation *r = type_new(up, &type_allocation);
        r->id = a->id;
        r->client_status = ALLOC_RUNNING;
        list_add(up, up->alloc_update->allocs, r);
    }
    apply(f, in);
    double t = cpu_s();
    apply(f, up);
    t = cpu_s() - t;
    ck_assert_str_eq(get_alloc(f, "aaaaaaaa-0000-4000-8000-000000000001")->client_status, ALLOC_RUNNING);
    ck_assert_str_eq(get_eval(f, "follows")->status, EVAL_CANCELED);
    fx_free(f);
    return t;
}

START_TEST(a_return_costs_what_it_is)
{
    double small = report_many(250);
    grows_with_n("250 allocations that are back", small, report_many(2000));
}
END_TEST

TEST_SUITE_TIMEOUT("fsm-plan", 60, a_live_name_is_placed_once, sticky_volumes_are_claimed,
                   a_system_name_is_placed_once_per_node, what_is_not_stopped_is_not_replaced,
                   update_in_place_keeps_what_came_between,
                   nobody_makes_room_for_what_is_not_placed, marks_hold_while_nothing_changed,
                   marks_hold_with_their_node_and_their_evaluation,
                   a_return_is_settled_of_the_silence_that_was_seen,
                   a_cancelled_evaluation_tells_no_numbers, a_copy_of_a_version_has_its_source,
                   what_runs_again_is_not_collected, what_a_job_wants_again_is_not_collected,
                   links_and_deployments_of_what_lives_are_not_collected,
                   placements_cost_what_they_are, evaluations_cost_what_they_are,
                   nodes_cost_what_they_are, collecting_costs_what_it_is, a_return_costs_what_it_is)
