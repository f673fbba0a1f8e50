/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: the node rules of doc/reconnect.md (worked examples of 1.3 and the S-rules).
 */
#include <stdio.h>
#include <string.h>

#include "common/duration.h"
#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

START_TEST(registering_writes_no_status)
{
    struct fx *f = fx_new();
    struct node *n = make_node(f, "n1");
    n->status = NODE_READY; /* S2: whatever it says */
    n->last_alloc_update_index = 77;
    register_node(f, n);
    struct node *got = get_node(f, "n1");
    ck_assert_str_eq(got->status, NODE_INIT);
    ck_assert_uint_eq(got->last_alloc_update_index, 0);
    ck_assert_str_eq(got->scheduling_eligibility, NODE_ELIGIBLE);
    ck_assert_uint_eq(got->events.n, 1);
    node_status(f, "n1", NODE_READY);
    struct node *again = make_node(f, "n1");
    again->status = NODE_DOWN;
    again->scheduling_eligibility = NODE_INELIGIBLE;
    str_map_set(again, &again->attributes, "kernel.name", "linux");
    register_node(f, again);
    got = get_node(f, "n1");
    ck_assert_str_eq(got->status, NODE_READY);
    ck_assert_str_eq(got->scheduling_eligibility, NODE_ELIGIBLE);
    ck_assert_str_eq(str_map_get(&got->attributes, "kernel.name"), "linux");
    ck_assert_uint_eq(got->create_index, 1000);
    /* The same again changes nothing. */
    uint64_t before = table_index(f, STATE_NODES);
    ck_assert(!register_node(f, codec_clone(f, &type_node, again))->changed);
    ck_assert_uint_eq(table_index(f, STATE_NODES), before);
    struct node *thief = make_node(f, "n1");
    thief->secret_id = "other";
    ck_assert_int_eq(register_node(f, thief)->err.code, -ERR_FORBIDDEN);
    fx_free(f);
}
END_TEST

static void
expect(struct fx *f, const char *status, uint64_t lmh)
{
    struct node *n = get_node(f, "n1");
    ck_assert_str_eq(n->status, status);
    ck_assert_uint_eq(n->last_missed_heartbeat_index, lmh);
}

/* The worked example of doc/reconnect.md 1.3, with the S-rules in place. */
START_TEST(missed_heartbeat_index)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    expect(f, NODE_READY, 0);
    struct fsm_result *r = node_status(f, "n1", NODE_DOWN); /* a miss */
    uint64_t lmh = f->index;
    expect(f, NODE_DISCONNECTED, lmh);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->triggered_by, TRIGGER_NODE_UPDATE);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->node_id, "n1");
    /* still within its time */
    ck_assert_uint_eq(FSM_COUNT(node_status(f, "n1", NODE_DOWN), EVALS, STORED), 0);
    expect(f, NODE_DISCONNECTED, lmh);
    ck_assert_int_eq(report(f, "n1", "a1", ALLOC_RUNNING)->err.code, -ERR_CONFLICT);
    node_status(f, "n1", NODE_READY);
    expect(f, NODE_INIT, lmh);
    /* S7: it must be reported again. */
    struct allocation *a = get_alloc(f, "a1");
    ck_assert_str_eq(a->client_status, ALLOC_UNKNOWN);
    ck_assert_uint_eq(a->alloc_modify_index, f->index);
    ck_assert_uint_eq(a->alloc_states.n, 1);
    ck_assert_int_eq(get_summary(f, "web")->unknown, 1);
    node_status(f, "n1", NODE_READY);
    expect(f, NODE_INIT, lmh); /* S6: the gate is closed */
    r = report(f, "n1", "a1", ALLOC_RUNNING);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->triggered_by, TRIGGER_RECONNECT);
    ck_assert_uint_eq(get_alloc(f, "a1")->alloc_states.n, 1); /* until the scheduler has settled it */
    expect(f, NODE_INIT, lmh);
    r = node_status(f, "n1", NODE_READY);
    expect(f, NODE_READY, 0);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert(!node_status(f, "n1", NODE_READY)->changed);
    fx_free(f);
}
END_TEST

/* S12: a miss that was decided before the node's last word came into the log. */
static struct intent *
heartbeat_of(struct fx *f, bool miss_may_come)
{
    struct intent *in = intent_new(f, 0);
    in->node_status = type_new(in, &type_intent_node_status);
    in->node_status->node_id = "n1";
    in->node_status->status = NODE_READY;
    in->node_status->heard = miss_may_come;
    in->node_status->eval_ids = strs(in, mem_printf(in, "hb-%lu", (unsigned long)f->index), NULL);
    return in;
}

/* S12: void is a miss behind the first heartbeat that came since the time was over, and that one alone. */
START_TEST(a_heartbeat_voids_the_miss_behind_it)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct intent *in = intent_new(f, 0);
    in->node_status = type_new(in, &type_intent_node_status);
    in->node_status->node_id = "n1";
    in->node_status->status = NODE_DOWN;
    in->node_status->seen_index = f->index;
    apply(f, heartbeat_of(f, true));
    ck_assert(!apply(f, in)->changed);
    expect(f, NODE_READY, 0);
    in->node_status->seen_index = f->index;
    struct intent *rg = intent_new(f, 0);
    rg->node_register = type_new(rg, &type_intent_node_register);
    rg->node_register->node = make_node(rg, "n1");
    apply(f, rg);
    ck_assert(!apply(f, in)->changed);
    in->node_status->seen_index = f->index;
    apply(f, heartbeat_of(f, false)); /* accepted before the time was over */
    ck_assert(apply(f, in)->changed);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_DOWN);
    fx_free(f);
}
END_TEST

/* A miss that was before it in the log is not acted upon any more, nor what is being made of it. */
START_TEST(a_heartbeat_cancels_what_the_miss_began)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    struct fsm_result *r = node_status(f, "n1", NODE_DOWN);
    const char *miss = mem_strdup(f, ROW(r, EVALS, STORED, 0)->id);
    struct evaluation *later = make_eval(f, j, "later");
    later->previous_eval = miss;
    later->wait_until = f->now + 1000 * NS_PER_S;
    struct intent *up = intent_new(f, 0);
    up->eval_update = type_new(up, &type_intent_eval_update);
    list_add(up, up->eval_update->evals, later);
    apply(f, up);
    r = apply(f, heartbeat_of(f, true));
    ck_assert_str_eq(get_eval(f, miss)->status, EVAL_CANCELED);
    ck_assert_str_eq(get_eval(f, "later")->status, EVAL_CANCELED);
    /* somebody looks again */
    ck_assert_str_eq(ROW(r, EVALS, STORED, FSM_COUNT(r, EVALS, STORED) - 1)->status, EVAL_PENDING);
    struct intent *plan = intent_new(f, 0);
    plan->plan_result = type_new(plan, &type_plan_result);
    plan->plan_result->eval_id = miss;
    plan->plan_result->job = get_job(f, "web");
    list_add(plan, plan->plan_result->placed, make_alloc(f, j, "a2", "n2"));
    ck_assert(!apply(f, plan)->changed);
    ck_assert_ptr_null(get_alloc(f, "a2"));
    struct intent *done = intent_new(f, 0);
    done->eval_update = type_new(done, &type_intent_eval_update);
    struct evaluation *e = get_eval(f, miss);
    e->status = EVAL_COMPLETE;
    list_add(done, done->eval_update->evals, e);
    apply(f, done);
    ck_assert_str_eq(get_eval(f, miss)->status, EVAL_CANCELED);
    fx_free(f);
}
END_TEST

static struct fsm_result *
missed_together(struct fx *f, const char *first, struct str_list others, uint64_t seen)
{
    struct intent *in = intent_new(f, 0);
    in->node_status = type_new(in, &type_intent_node_status);
    *in->node_status = (struct intent_node_status){.node_id = first,
                                                   .status = NODE_DOWN,
                                                   .seen_index = seen,
                                                   .node_ids = others,
                                                   .eval_ids = strs(in, "together", NULL)};
    return apply(f, in);
}

static size_t
pending(struct fx *f, const char *job)
{
    struct state_txn *t = state_read_begin(f->s, f);
    struct state_iter *it = state_evals_by_job(t, f, NS_DEFAULT, job);
    size_t n = 0;
    for (struct evaluation *e; (e = state_next(it, f)) != NULL;)
        n += str_eq(e->status, EVAL_PENDING);
    state_read_end(t);
    return n;
}

/* A job has one evaluation for all nodes that went together, and whichever of them comes back, one
 * is left. */
START_TEST(a_rack_that_goes_is_judged_once)
{
    struct fx *f = fx_new();
    static const char *const ids[] = {"n1", "n2", "n3"};
    const char *jobs[] = {"web", "api"};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        ready_node(f, ids[i]);
    put_job(f, patient_job(f, "web"), NULL);
    put_job(f, make_job(f, "api", 2), NULL);
    for (size_t i = 0; i < 4; i++) {
        const char *id = mem_printf(f, "%s-%s", jobs[i / 2], ids[i % 2]);
        place(f, make_alloc(f, get_job(f, jobs[i / 2]), id, ids[i % 2]), NULL);
        report(f, ids[i % 2], id, ALLOC_RUNNING);
    }
    ck_assert_uint_eq(pending(f, "web") + pending(f, "api"), 0);
    struct fsm_result *r = missed_together(f, "n1", strs(f, "n2", "n3"), 0);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_DISCONNECTED);
    ck_assert_str_eq(get_node(f, "n2")->status, NODE_DISCONNECTED);
    ck_assert_str_eq(get_node(f, "n3")->status, NODE_DOWN);
    ck_assert_uint_eq(FSM_COUNT(r, NODES, STORED), 3);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 2);
    /* half of its plan was done: nothing of n1 is left, what was on n2 is not yet looked after */
    struct allocation *lost = type_new(f, &type_allocation), *old = get_alloc(f, "api-n1");
    *lost = (struct allocation){.id = old->id,
                                .namespace = NS_DEFAULT,
                                .job_id = "api",
                                .node_id = "n1",
                                .desired_status = ALLOC_DESIRED_STOP,
                                .client_status = ALLOC_LOST};
    struct intent *half = intent_new(f, 0);
    half->plan_result = type_new(half, &type_plan_result);
    half->plan_result->job = get_job(f, "api");
    list_add(half, half->plan_result->stopped, lost);
    apply(f, half);
    ck_assert_str_eq(get_alloc(f, "api-n1")->client_status, ALLOC_LOST);
    apply(f, heartbeat_of(f, true)); /* n1 */
    ck_assert_uint_eq(pending(f, "web"), 1);
    ck_assert_uint_eq(pending(f, "api"), 1);
    ck_assert_str_eq(get_node(f, "n2")->status, NODE_DISCONNECTED);
    fx_free(f);
}
END_TEST

/* S12: each by itself. One that is not there any more is no reason to spare the others. */
START_TEST(one_of_a_rack_that_was_heard_stays)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    uint64_t seen = f->index;
    apply(f, heartbeat_of(f, true)); /* n1 */
    missed_together(f, "nobody", strs(f, "n1", "n2"), seen);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    ck_assert_str_eq(get_node(f, "n2")->status, NODE_DOWN);
    ck_assert_int_eq(missed_together(f, "nobody", (struct str_list){0}, seen)->err.code,
                     -ERR_NOT_FOUND);
    fx_free(f);
}
END_TEST

/* S13, S19: what clients said since the plan's snapshot makes void what it wanted, with what was to replace
 * it; who is back needs no evaluation that was to look after it. */
START_TEST(marks_hold_while_nobody_spoke)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct allocation *a2 = make_alloc(f, j, "a2", "n2");
    a2->previous_allocation = "a1";
    report(f, "n1", "a1", ALLOC_RUNNING);
    ck_assert_uint_eq(place(f, a2, row_of(f, "a1", "n1", ALLOC_PENDING, ALLOC_UNKNOWN))->names_taken, 2);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_RUNNING);
    ck_assert_ptr_null(get_alloc(f, "a2"));
    node_status(f, "n1", NODE_DOWN);
    struct evaluation *ev = make_eval(f, j, "timeout");
    ev->triggered_by = TRIGGER_MAX_DISCONNECT;
    ev->wait_until = f->now + 1000 * NS_PER_S;
    struct intent *up = intent_new(f, 0);
    up->eval_update = type_new(up, &type_intent_eval_update);
    list_add(up, up->eval_update->evals, ev);
    apply(f, up);
    place(f, a2, row_of(f, "a1", "n1", ALLOC_RUNNING, ALLOC_UNKNOWN));
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_UNKNOWN);
    ck_assert_ptr_nonnull(get_alloc(f, "a2"));
    node_status(f, "n1", NODE_READY);
    report(f, "n1", "a1", ALLOC_RUNNING);
    ck_assert_str_eq(get_eval(f, "timeout")->status, EVAL_CANCELED);
    struct allocation *back = row_of(f, "a1", "n1", ALLOC_RUNNING, ALLOC_RUNNING);
    place(f, back, NULL);
    ck_assert_uint_eq(get_alloc(f, "a1")->alloc_states.n, 2);
    ck_assert_str_eq(get_alloc(f, "a1")->alloc_states.v[1]->value, ALLOC_RUNNING);
    fx_free(f);
}
END_TEST

/* S8: a plan that was made while nobody heard of its node comes when that heartbeats again. */
START_TEST(nothing_replaces_what_is_heard_again)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    ready_node(f, "n2");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct allocation *a2 = make_alloc(f, j, "a2", "n2");
    a2->previous_allocation = "a1";
    for (int i = 0; i < 2; i++) { /* as unknown, and as running */
        node_status(f, "n1", NODE_DOWN);
        node_status(f, "n1", NODE_READY);
        if (i == 1)
            report(f, "n1", "a1", ALLOC_RUNNING);
        ck_assert_uint_eq(place(f, a2, NULL)->names_taken, 1);
        ck_assert_ptr_null(get_alloc(f, "a2"));
    }
    node_status(f, "n1", NODE_DOWN);
    node_status(f, "n1", NODE_READY);
    node_status(f, "n1", NODE_DOWN);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_UNKNOWN);
    ck_assert_uint_eq(place(f, a2, NULL)->names_taken, 0);
    ck_assert_ptr_nonnull(get_alloc(f, "a2"));
    fx_free(f);
}
END_TEST

START_TEST(gate_waits_for_every_unknown)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    place(f, make_alloc(f, j, "a2", "n1"), NULL);
    node_status(f, "n1", NODE_DOWN);
    node_status(f, "n1", NODE_READY);
    report(f, "n1", "a1", ALLOC_RUNNING);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_INIT); /* a2 is still unknown */
    report(f, "n1", "a2", ALLOC_FAILED);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    fx_free(f);
}
END_TEST

/* The report of a client that counts. */
static int
counted(struct fx *f, const char *alloc_id, const char *status, uint64_t number, uint64_t node_index)
{
    struct allocation a = {.id = alloc_id, .client_status = status}, *v[] = {&a};
    struct intent_alloc_update up = {
        .node_id = "n1", .allocs = {v, 1}, .report = number, .node_index = node_index};

    return apply(f, &(struct intent){.alloc_update = &up})->err.code;
}

/* One that lay in a connection which was cut: newer ones were taken, or its node was missed since. */
START_TEST(an_old_report_changes_nothing)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    uint64_t then = get_node(f, "n1")->modify_index;
    ck_assert_int_eq(counted(f, "a1", ALLOC_RUNNING, 7, then), 0);
    uint64_t lau = get_node(f, "n1")->last_alloc_update_index;
    ck_assert_int_eq(counted(f, "a1", ALLOC_FAILED, 7, then), -ERR_CONFLICT);
    ck_assert_int_eq(counted(f, "a1", ALLOC_FAILED, 6, then), -ERR_CONFLICT);
    ck_assert_int_eq(counted(f, "a1", ALLOC_FAILED, 8, 0),
                     -ERR_CONFLICT); /* no heartbeat was answered yet */
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_RUNNING);
    ck_assert_uint_eq(get_node(f, "n1")->last_alloc_update_index, lau);
    /* registering does not forget it, nor can it be said by the node */
    struct node n = {.id = "n1", .name = "other", .datacenter = "dc1"};
    n.secret_id = get_node(f, "n1")->secret_id;
    struct intent_node_register r = {.node = &n};
    ck_assert_int_eq(apply(f, &(struct intent){.node_register = &r})->err.code, 0);
    ck_assert_uint_eq(get_node(f, "n1")->last_report, 7);

    node_status(f, "n1", NODE_DOWN); /* missed: a1 may wait */
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_DISCONNECTED);
    node_status(f, "n1", NODE_READY);
    uint64_t back = get_node(f, "n1")->modify_index, missed = get_node(f, "n1")->last_missed_heartbeat_index;
    ck_assert(missed > then && back > missed);
    ck_assert_int_eq(counted(f, "a1", ALLOC_RUNNING, 8, then), -ERR_CONFLICT);
    ck_assert_int_eq(counted(f, "a1", ALLOC_RUNNING, 9, missed), -ERR_CONFLICT);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_UNKNOWN);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_INIT); /* the gate is shut */
    ck_assert_int_eq(counted(f, "a1", ALLOC_RUNNING, 10, back), 0);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    fx_free(f);
}
END_TEST

/* An allocation that has ended does not run again, on the word of a client that does not count as
 * well. */
START_TEST(what_has_ended_does_not_run_again)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    report(f, "n1", "a1", ALLOC_RUNNING);
    report(f, "n1", "a1", ALLOC_COMPLETE);
    ck_assert_int_eq(report(f, "n1", "a1", ALLOC_RUNNING)->err.code, 0);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_COMPLETE);
    ck_assert_int_eq(report(f, "n1", "a1", ALLOC_FAILED)->err.code, 0);
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_FAILED);
    fx_free(f);
}
END_TEST

START_TEST(miss_while_initializing_keeps_the_promise)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    node_status(f, "n1", NODE_DOWN);
    node_status(f, "n1", NODE_READY);
    node_status(f, "n1", NODE_DOWN);
    uint64_t lmh = f->index; /* a new miss */
    expect(f, NODE_DISCONNECTED, lmh); /* S9 */
    f->now += 60 * NS_PER_S; /* not a moment longer */
    struct fsm_result *r = node_status(f, "n1", NODE_DOWN);
    expect(f, NODE_DOWN, lmh);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    fx_free(f);
}
END_TEST

START_TEST(down_node_with_work_is_gated)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    node_status(f, "n1", NODE_DISCONNECTED); /* nothing asked to wait: down */
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_DOWN);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_INIT); /* S10 */
    ck_assert_str_eq(get_alloc(f, "a1")->client_status, ALLOC_UNKNOWN);
    ck_assert_uint_eq(get_alloc(f, "a1")->alloc_states.n, 0);
    report(f, "n1", "a1", ALLOC_RUNNING);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    /* Without work it is ready at once. */
    struct allocation *stop = type_new(f, &type_allocation);
    stop->id = "a1";
    stop->job_id = "web";
    stop->node_id = "n1";
    stop->desired_status = ALLOC_DESIRED_STOP;
    stop->client_status = ALLOC_LOST;
    node_status(f, "n1", NODE_DOWN);
    place(f, NULL, stop);
    node_status(f, "n1", NODE_READY);
    expect(f, NODE_READY, 0);
    fx_free(f);
}
END_TEST

START_TEST(eligibility_and_purge)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct intent *in = intent_new(f, 0);
    in->node_eligibility = type_new(in, &type_intent_node_eligibility);
    in->node_eligibility->node_id = "n1";
    in->node_eligibility->eligibility = NODE_INELIGIBLE;
    ck_assert_uint_eq(FSM_COUNT(apply(f, in), EVALS, STORED), 0);
    ck_assert_uint_eq(place(f, make_alloc(f, j, "a2", "n1"), NULL)->rejected_nodes.n, 1);
    ck_assert_uint_eq(place(f, make_alloc(f, j, "a1", "n1"), NULL)->rejected_nodes.n, 0);
    in->node_eligibility->eligibility = NODE_ELIGIBLE;
    ck_assert_uint_eq(FSM_COUNT(apply(f, in), EVALS, STORED), 1);
    in->node_eligibility->eligibility = "maybe";
    ck_assert_int_eq(apply(f, in)->err.code, -ERR_INVALID);

    struct intent *again = intent_new(f, 0);
    again->node_evaluate = type_new(again, &type_intent_node_evaluate);
    again->node_evaluate->node_id = mem_strdup(again, "n1");
    struct fsm_result *asked = apply(f, again);
    ck_assert_uint_eq(FSM_COUNT(asked, EVALS, STORED), 1);
    ck_assert_str_eq(ROW(asked, EVALS, STORED, 0)->job_id, "web");
    ck_assert_str_eq(ROW(asked, EVALS, STORED, 0)->triggered_by, TRIGGER_NODE_UPDATE);
    again->node_evaluate->node_id = mem_strdup(again, "nowhere");
    ck_assert_int_eq(apply(f, again)->err.code, -ERR_NOT_FOUND);

    struct intent *reap = intent_new(f, 0);
    reap->reap = type_new(reap, &type_intent_reap);
    reap->reap->nodes = strs(reap, "n1", NULL);
    ck_assert_uint_eq(FSM_COUNT(apply(f, reap), NODES, DELETED), 0); /* S14 */
    struct intent *purge = intent_new(f, 0);
    purge->node_purge = type_new(purge, &type_intent_node_purge);
    purge->node_purge->node_ids = strs(purge, "n1", NULL);
    struct fsm_result *r = apply(f, purge);
    ck_assert_uint_eq(FSM_COUNT(r, NODES, DELETED), 1);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert_ptr_null(get_node(f, "n1"));
    fx_free(f);
}
END_TEST

START_TEST(collecting_a_node_is_judged_again)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = make_job(f, "web", 1);
    put_job(f, j, NULL);
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    struct intent *reap = intent_new(f, 0);
    reap->reap = type_new(reap, &type_intent_reap);
    reap->reap->nodes = strs(reap, "n1", NULL);
    ck_assert_uint_eq(FSM_COUNT(apply(f, reap), NODES, DELETED), 0); /* ready */
    node_status(f, "n1", NODE_DOWN);
    ck_assert_uint_eq(FSM_COUNT(apply(f, reap), NODES, DELETED), 0); /* a1 is not settled */
    struct allocation *lost = type_new(f, &type_allocation);
    lost->id = "a1";
    lost->job_id = "web";
    lost->node_id = "n1";
    lost->desired_status = ALLOC_DESIRED_STOP;
    lost->client_status = ALLOC_LOST;
    place(f, NULL, lost);
    reap->reap->down_before = f->now / NS_PER_S - 1;
    ck_assert_uint_eq(FSM_COUNT(apply(f, reap), NODES, DELETED), 0); /* not old enough */
    reap->reap->down_before = f->now / NS_PER_S;
    ck_assert_uint_eq(FSM_COUNT(apply(f, reap), NODES, DELETED), 1);
    ck_assert_ptr_null(get_node(f, "n1"));
    fx_free(f);
}
END_TEST

START_TEST(system_jobs_hear_of_new_nodes)
{
    struct fx *f = fx_new();
    struct job *j = make_job(f, "everywhere", 1);
    j->type = JOB_SYSTEM;
    list_add(j, j->datacenters, "dc*");
    put_job(f, j, NULL);
    struct job *far = make_job(f, "elsewhere", 1);
    far->type = JOB_SYSTEM;
    list_add(far, far->datacenters, "eu-*");
    put_job(f, far, NULL);
    register_node(f, make_node(f, "n1"));
    struct fsm_result *r = node_status(f, "n1", NODE_READY);
    ck_assert_uint_eq(FSM_COUNT(r, EVALS, STORED), 1);
    ck_assert_str_eq(ROW(r, EVALS, STORED, 0)->job_id, "everywhere");
    place(f, make_alloc(f, j, "a1", "n1"), NULL);
    /* once, though it runs there */
    ck_assert_uint_eq(FSM_COUNT(node_status(f, "n1", NODE_DOWN), EVALS, STORED), 1);
    stop_job(f, "everywhere", true, "e1");
    node_status(f, "n1", NODE_READY);
    ck_assert(READ(f, bool, state_has_live_allocs(rt, "default", "everywhere")));
    fx_free(f);
}
END_TEST

static struct fsm_result *
drain(struct fx *f, int64_t deadline, bool ignore_system)
{
    struct intent *in = intent_new(f, 0);
    in->node_drain = type_new(in, &type_intent_node_drain);
    in->node_drain->node_id = "n1";
    in->node_drain->drain_spec = type_new(in, &type_drain_spec);
    in->node_drain->drain_spec->deadline = deadline;
    in->node_drain->drain_spec->ignore_system_jobs = ignore_system;
    str_map_set(in, &in->node_drain->meta, "message", "why");
    return apply(f, in);
}

static struct fsm_result *
undrain(struct fx *f, bool mark_eligible)
{
    struct intent *in = intent_new(f, 0);
    in->node_drain = type_new(in, &type_intent_node_drain);
    in->node_drain->node_id = "n1";
    in->node_drain->mark_eligible = mark_eligible;
    in->node_drain->eval_ids = strs(in, "ev-undrain", NULL);
    return apply(f, in);
}

static struct fsm_result *
drained(struct fx *f)
{
    struct intent *in = intent_new(f, 0);
    in->node_drained = type_new(in, &type_intent_node_drained);
    in->node_drained->node_id = "n1";
    return apply(f, in);
}

static struct fsm_result *
flag(struct fx *f, const char *id)
{
    struct intent *in = intent_new(f, 0);
    struct desired_transition *t = type_new(in, &type_desired_transition);
    t->migrate = (struct opt_bool){true, true};
    in->alloc_transition = type_new(in, &type_intent_alloc_transition);
    in->alloc_transition->alloc_ids = strs(in, id, NULL);
    in->alloc_transition->transition = t;
    in->alloc_transition->draining = true;
    return apply(f, in);
}

static const char *
last_event(struct fx *f)
{
    const struct node *n = get_node(f, "n1");
    return n->events.v[n->events.n - 1]->message;
}

START_TEST(drain_is_set_changed_and_disabled)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    put_job(f, make_job(f, "web", 1), NULL);
    place(f, make_alloc(f, get_job(f, "web"), "a1", "n1"), NULL);
    ck_assert_uint_eq(undrain(f, true)->err.code, 0); /* nothing to undo */
    ck_assert_ptr_null(get_node(f, "n1")->last_drain);
    ck_assert(!flag(f, "a1")->changed); /* only where a drain asks for it */
    ck_assert_uint_eq(FSM_COUNT(drain(f, 60, false), EVALS, STORED), 0);
    const struct node *n = get_node(f, "n1");
    int64_t began = n->drain_strategy->started_at;
    ck_assert_int_eq(began, f->now);
    ck_assert_int_eq(n->drain_strategy->force_deadline, f->now + 60);
    ck_assert_str_eq(n->scheduling_eligibility, NODE_INELIGIBLE);
    ck_assert_str_eq(n->last_drain->status, DRAIN_DRAINING);
    ck_assert_str_eq(str_map_get(&n->last_drain->meta, "message"), "why");
    ck_assert_str_eq(last_event(f), "Node drain strategy set");
    ck_assert(flag(f, "a1")->changed);
    f->now += NS_PER_S;
    drain(f, -7, true); /* changes it: no second start */
    n = get_node(f, "n1");
    ck_assert_int_eq(n->drain_strategy->started_at, began);
    ck_assert_int_eq(n->drain_strategy->deadline, -1);
    ck_assert_int_eq(n->drain_strategy->force_deadline, 0);
    ck_assert_int_eq(n->last_drain->started_at, began);
    ck_assert_int_eq(n->last_drain->updated_at, f->now);
    ck_assert_str_eq(last_event(f), "Node drain strategy updated");
    ck_assert_uint_eq(FSM_COUNT(undrain(f, false), EVALS, STORED), 0);
    n = get_node(f, "n1");
    ck_assert_ptr_null(n->drain_strategy);
    ck_assert_str_eq(n->scheduling_eligibility, NODE_INELIGIBLE);
    ck_assert_str_eq(n->last_drain->status, DRAIN_CANCELED);
    ck_assert_str_eq(last_event(f), "Node drain disabled");
    /* eligible again: its jobs look at it */
    ck_assert_uint_eq(FSM_COUNT(undrain(f, true), EVALS, STORED), 1);
    ck_assert_str_eq(get_node(f, "n1")->scheduling_eligibility, NODE_ELIGIBLE);
    ck_assert_int_eq(drain(f, INT64_MAX, false)->err.code, 0);
    ck_assert_int_eq(get_node(f, "n1")->drain_strategy->force_deadline, INT64_MAX);
    fx_free(f);
}
END_TEST

/* The end of a drain is judged at apply, from what the clients have said. */
START_TEST(drain_ends_when_nothing_is_left)
{
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *sys = make_job(f, "sys", 1);
    sys->type = JOB_SYSTEM;
    put_job(f, make_job(f, "web", 1), NULL);
    put_job(f, sys, NULL);
    place(f, make_alloc(f, get_job(f, "web"), "a1", "n1"), NULL);
    place(f, make_alloc(f, get_job(f, "sys"), "s1", "n1"), NULL);
    ck_assert(!drained(f)->changed); /* it does not drain */
    drain(f, 0, true);
    report(f, "n1", "a1", ALLOC_RUNNING);
    ck_assert(!drained(f)->changed);
    report(f, "n1", "a1", ALLOC_COMPLETE);
    drain(f, 0, false);
    ck_assert(!drained(f)->changed); /* the system job's is there */
    drain(f, 0, true);
    ck_assert(drained(f)->changed);
    const struct node *n = get_node(f, "n1");
    ck_assert_ptr_null(n->drain_strategy);
    ck_assert_str_eq(n->scheduling_eligibility, NODE_INELIGIBLE);
    ck_assert_str_eq(n->last_drain->status, DRAIN_COMPLETE);
    ck_assert_str_eq(last_event(f), "Node drain complete");
    /* registering again leaves all that alone (S2) */
    struct node *again = make_node(f, "n1");
    again->name = "renamed";
    register_node(f, again);
    ck_assert_str_eq(get_node(f, "n1")->last_drain->status, DRAIN_COMPLETE);
    ck_assert_str_eq(get_node(f, "n1")->scheduling_eligibility, NODE_INELIGIBLE);
    fx_free(f);
}
END_TEST

static void
pending_eval(struct fx *f, const struct job *j, const char *id, const char *trigger)
{
    struct intent *in = intent_new(f, 0);

    in->eval_update = type_new(in, &type_intent_eval_update);
    struct evaluation *e = make_eval(in, j, id);
    e->triggered_by = trigger;
    list_add(in, in->eval_update->evals, e);
    apply(f, in);
}

/* S19, of two that wait for the same evaluations: they go with the last of the two. */
START_TEST(evaluations_go_when_nobody_waits)
{
    static const char *const ids[] = {"aaaaaaaa-0000-4000-8000-000000000001",
                                      "aaaaaaaa-0000-4000-8000-000000000002"};
    struct fx *f = fx_new();
    ready_node(f, "n1");
    struct job *j = patient_job(f, "web");
    put_job(f, j, NULL);
    pending_eval(f, j, "shared", TRIGGER_ALLOC_RESCHEDULE);
    pending_eval(f, j, "ends", TRIGGER_MAX_DISCONNECT);
    for (int i = 0; i < 2; i++) {
        struct allocation *a = make_alloc(f, j, ids[i], "n1");
        a->name = mem_printf(f, "web.g[%d]", i);
        a->client_status = ALLOC_UNKNOWN;
        a->followup_eval_id = "shared";
        place(f, a, NULL);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_str_eq(get_eval(f, "shared")->status, EVAL_PENDING);
        ck_assert_str_eq(get_eval(f, "ends")->status, EVAL_PENDING);
        report(f, "n1", ids[i], ALLOC_RUNNING);
    }
    ck_assert_str_eq(get_eval(f, "shared")->status, EVAL_CANCELED);
    ck_assert_str_eq(get_eval(f, "ends")->status, EVAL_CANCELED);
    fx_free(f);
}
END_TEST

TEST_SUITE("fsm-node", registering_writes_no_status, missed_heartbeat_index,
           a_heartbeat_voids_the_miss_behind_it, a_heartbeat_cancels_what_the_miss_began,
           a_rack_that_goes_is_judged_once, one_of_a_rack_that_was_heard_stays,
           marks_hold_while_nobody_spoke, nothing_replaces_what_is_heard_again,
           drain_is_set_changed_and_disabled, drain_ends_when_nothing_is_left,
           gate_waits_for_every_unknown, miss_while_initializing_keeps_the_promise,
           an_old_report_changes_nothing, evaluations_go_when_nobody_waits,
           what_has_ended_does_not_run_again,
           down_node_with_work_is_gated, eligibility_and_purge, system_jobs_hear_of_new_nodes,
         collecting_a_node_is_judged_again)
