/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a job's allocations: counts, updates, lost nodes, failures, batch, system. Evaluation
 * after evaluation over the harness.
 */
#include "tests/lib/test.h"

#include <string.h>

#include "common/duration.h"
#include "server/sched/reconcile.h"
#include "tests/server/sched/harness.h"

static const struct desired_updates *
updates(const struct sched_out *o)
{
    return map_get(o->annotations->desired_tg_updates, "web")->v;
}

static struct alloc_metric *
failed_web(const struct sched_out *o)
{
    return map_get(o->failed, "web")->v;
}

static struct harness *
nodes(size_t n)
{
    struct harness *h = h_new();
    char name[16];

    for (size_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "n%zu", i + 1);
        h_node(h, name);
    }
    return h;
}

START_TEST(places_names_in_order)
{
    struct harness *h = nodes(3);
    char name[32];

    h_register(h, h_job(h, "a", JOB_SERVICE, 10));
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 10);
    ck_assert_int_eq(map_get(o->queued, "web")->v, 0);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof(name), "a.web[%d]", i);
        ck_assert_ptr_nonnull(h_alloc(h, name));
    }
    ck_assert_ptr_null(h_eval(h, "a")->plan);
    h_check(h);
    h_free(h);
}
END_TEST

START_TEST(scales_from_the_top)
{
    struct harness *h = nodes(3);
    struct job *j = h_job(h, "a", JOB_SERVICE, 5);

    h_register(h, j);
    h_eval(h, "a");
    h_all_running(h);
    j->task_groups.v[0]->count.v = 2;
    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(updates(o)->stop, 3);
    ck_assert_uint_eq(updates(o)->in_place_update, 2);
    ck_assert_ptr_nonnull(h_alloc(h, "a.web[0]"));
    ck_assert_ptr_nonnull(h_alloc(h, "a.web[1]"));
    ck_assert_uint_eq(h_live(h, "a"), 2);
    j->task_groups.v[0]->count.v = 4;
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_ptr_nonnull(h_alloc(h, "a.web[3]"));
    j->task_groups.v[0]->count.v = 0;
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 0);
    h_check(h);
    h_free(h);
}
END_TEST

START_TEST(in_place_keeps_destructive_replaces)
{
    struct harness *h = nodes(2);
    struct job *j = h_job(h, "a", JOB_SERVICE, 2);

    h_register(h, j);
    h_eval(h, "a");
    h_all_running(h);
    const char *id = h_alloc(h, "a.web[0]")->id;
    j->task_groups.v[0]->tasks.v[0]->kill_timeout = (struct opt_i64){true, 30 * NS_PER_S};
    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(updates(o)->in_place_update, 2);
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->id, id);
    ck_assert_uint_eq(h_alloc(h, "a.web[0]")->job->version, 1);
    str_map_set(j, &j->task_groups.v[0]->tasks.v[0]->env, "A", "1");
    h_register(h, j);
    o = h_eval(h, "a");
    ck_assert_uint_eq(updates(o)->destructive_update, 2);
    ck_assert_str_ne(h_alloc(h, "a.web[0]")->id, id);
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->previous_allocation, id);
    ck_assert_uint_eq(h_live(h, "a"), 2);
    h_check(h);
    h_free(h);
}
END_TEST

/* A replacement may use what it replaces, in the same plan. */
START_TEST(destructive_fits_in_place_of_old)
{
    struct harness *h = nodes(1);
    struct job *j = h_job(h, "a", JOB_SERVICE, 1);

    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 8000;
    h_register(h, j);
    h_eval(h, "a");
    h_all_running(h);
    str_map_set(j, &j->meta, "v", "2");
    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(o->failed.n, 0);
    ck_assert_uint_eq(h_live(h, "a"), 1);
    /* one that can not be replaced stays */
    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 9000;
    h_register(h, j);
    o = h_eval(h, "a");
    ck_assert_uint_eq(o->failed.n, 1);
    ck_assert_ptr_null(o->plan);
    ck_assert_uint_eq(h_live(h, "a"), 1);
    h_free(h);
}
END_TEST

START_TEST(constraint_moves_what_no_longer_fits)
{
    struct harness *h = nodes(2);
    struct job *j = h_job(h, "a", JOB_SERVICE, 1);
    struct constraint c = {.l_target = "${meta.rack}", .operand = "=", .r_target = "r2"};

    str_map_set(h_find(h, "n1"), &h_find(h, "n1")->meta, "rack", "r1");
    str_map_set(h_find(h, "n2"), &h_find(h, "n2")->meta, "rack", "r1");
    h_register(h, j);
    h_eval(h, "a");
    h_all_running(h);
    list_add(j, j->task_groups.v[0]->constraints, &c);
    str_map_set(h_find(h, "n2"), &h_find(h, "n2")->meta, "rack", "r2");
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->node_name, "n2");
    h_free(h);
}
END_TEST

START_TEST(stopped_and_purged_jobs_stop)
{
    struct harness *h = nodes(2);
    struct job *j = h_job(h, "a", JOB_SERVICE, 3);

    h_register(h, j);
    h_eval(h, "a");
    h_all_running(h);
    j->stop = true;
    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(updates(o)->stop, 3);
    ck_assert_uint_eq(h_live(h, "a"), 0);
    h_all_stopped(h);
    ck_assert_ptr_null(h_eval(h, "a")->plan);
    h_free(h);

    h = nodes(1);
    h_register(h, h_job(h, "b", JOB_SERVICE, 2));
    h_eval(h, "b");
    h->jobs.n = 0;
    h_eval(h, "b");
    ck_assert_uint_eq(h_live(h, "b"), 0);
    h_free(h);
}
END_TEST

START_TEST(group_that_left_is_stopped)
{
    struct harness *h = nodes(2);
    struct job *j = h_job(h, "a", JOB_SERVICE, 2);

    h_register(h, j);
    h_eval(h, "a");
    j->task_groups.v[0]->name = "api";
    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(map_get(o->annotations->desired_tg_updates, "web")->v->stop, 2);
    ck_assert_uint_eq(map_get(o->annotations->desired_tg_updates, "api")->v->place, 2);
    ck_assert_uint_eq(h_live(h, "a"), 2);
    h_free(h);
}
END_TEST

START_TEST(lost_ones_are_replaced)
{
    struct harness *h = nodes(3);

    h_register(h, h_job(h, "a", JOB_SERVICE, 3));
    h_eval(h, "a");
    h_all_running(h);
    struct allocation *victim = h_alloc(h, "a.web[1]");
    struct node *n = NULL;
    for (size_t i = 0; i < h->nodes.n; i++)
        if (str_eq(h->nodes.v[i]->id, victim->node_id))
            n = h->nodes.v[i];
    size_t on_it = 0;
    for (size_t i = 0; i < h->allocs.n; i++)
        on_it += str_eq(h->allocs.v[i]->node_id, n->id);
    n->status = NODE_DOWN;
    h_eval(h, "a");
    ck_assert_str_eq(victim->client_status, ALLOC_LOST);
    ck_assert_str_eq(victim->desired_status, ALLOC_DESIRED_STOP);
    ck_assert_str_eq(victim->desired_description, DESC_LOST);
    struct allocation *now = h_alloc(h, "a.web[1]");
    ck_assert_str_eq(now->previous_allocation, victim->id);
    ck_assert_str_ne(now->node_id, n->id);
    ck_assert_uint_eq(h_live(h, "a"), 3);
    ck_assert_uint_eq(h->allocs.n, 3 + on_it);
    h_check(h);
    h_free(h);
}
END_TEST

/* Server-stopped, never confirmed, and now the node is gone: it must not hold resources for ever. */
START_TEST(stopping_on_a_dead_node_is_lost)
{
    struct harness *h = nodes(1);
    struct job *j = h_job(h, "a", JOB_SERVICE, 1);

    h_register(h, j);
    h_eval(h, "a");
    h_all_running(h);
    j->task_groups.v[0]->count.v = 0;
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_str_eq(h->allocs.v[0]->client_status, ALLOC_RUNNING);
    h->nodes.v[0]->status = NODE_DOWN;
    h_eval(h, "a");
    ck_assert_str_eq(h->allocs.v[0]->client_status, ALLOC_LOST);
    h_free(h);
}
END_TEST

START_TEST(unready_nodes_take_nothing_new)
{
    struct harness *h = nodes(3);

    h->nodes.v[0]->scheduling_eligibility = NODE_INELIGIBLE;
    h->nodes.v[1]->status = NODE_INIT;
    h_register(h, h_job(h, "a", JOB_SERVICE, 2));
    h_eval(h, "a");
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->node_name, "n3");
    ck_assert_str_eq(h_alloc(h, "a.web[1]")->node_name, "n3");
    /* an allocation on a node that becomes ineligible stays */
    h_all_running(h);
    h->nodes.v[2]->scheduling_eligibility = NODE_INELIGIBLE;
    ck_assert_ptr_null(h_eval(h, "a")->plan);
    h_free(h);
}
END_TEST

START_TEST(migrate_flag_moves)
{
    struct harness *h = nodes(2);
    struct desired_transition dt = {.migrate = {true, true}};

    h_register(h, h_job(h, "a", JOB_SERVICE, 1));
    h_eval(h, "a");
    h_all_running(h);
    struct allocation *a = h_alloc(h, "a.web[0]");
    a->desired_transition = &dt;
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(updates(o)->migrate, 1);
    ck_assert_str_eq(a->desired_description, DESC_MIGRATING);
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->previous_allocation, a->id);
    h_free(h);
}
END_TEST

START_TEST(failed_service_waits_then_moves)
{
    struct harness *h = nodes(2);

    h_register(h, h_job(h, "a", JOB_SERVICE, 1));
    h_eval(h, "a");
    h_all_running(h);
    struct allocation *a = h_alloc(h, "a.web[0]");
    h_fail(h, a);
    /* default policy: 30 s, exponential, unlimited */
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(o->followups.n, 1);
    ck_assert_str_eq(o->followups.v[0]->triggered_by, TRIGGER_ALLOC_RESCHEDULE);
    ck_assert_int_eq(o->followups.v[0]->wait_until, h->now + 30 * NS_PER_S);
    ck_assert_str_eq(a->followup_eval_id, o->followups.v[0]->id);
    ck_assert_str_eq(a->desired_status, ALLOC_DESIRED_RUN);
    /* another evaluation meanwhile changes nothing */
    o = h_eval(h, "a");
    ck_assert_uint_eq(o->followups.n, 0);
    ck_assert_ptr_null(o->plan);
    h->now += 30 * NS_PER_S;
    h_eval_as(h, "a", a->followup_eval_id);
    struct allocation *b = h_alloc(h, "a.web[0]");
    ck_assert_str_eq(b->previous_allocation, a->id);
    ck_assert_str_ne(b->node_id, a->node_id);
    ck_assert_str_eq(a->desired_status, ALLOC_DESIRED_STOP);
    ck_assert_uint_eq(b->reschedule_tracker->events.n, 1);
    ck_assert_str_eq(b->reschedule_tracker->events.v[0]->prev_alloc_id, a->id);
    h_check(h);
    h_free(h);
}
END_TEST

/* An allocation that failed for good fills its place until the job is stopped or purged. */
START_TEST(failed_service_starts_again_with_its_job)
{
    for (int purged = 0; purged <= 1; purged++) {
        struct harness *h = nodes(2);
        struct job *j = h_job(h, "a", JOB_SERVICE, 1);
        struct reschedule_policy never = {.unlimited = {true, false}};
        j->task_groups.v[0]->reschedule_policy = &never;
        h_register(h, j);
        h_eval(h, "a");
        h_all_running(h);
        struct allocation *a = h_alloc(h, "a.web[0]");
        h_fail(h, a);
        ck_assert_ptr_null(h_eval(h, "a")->plan);
        if (purged) /* and registered before an evaluation sees that */
            h->jobs.n = 0;
        else {
            j->stop = true;
            h_register(h, j);
            ck_assert_uint_eq(updates(h_eval(h, "a"))->stop, 1);
            ck_assert_str_eq(a->desired_status, ALLOC_DESIRED_STOP);
            ck_assert_ptr_null(h_eval(h, "a")->plan);
            j->stop = false;
        }
        h_register(h, j);
        h_eval(h, "a");
        ck_assert_uint_eq(h_live(h, "a"), 1);
        h_check(h);
        h_free(h);
    }
}
END_TEST

START_TEST(failed_batch_uses_its_attempts)
{
    struct harness *h = nodes(2);

    /* default: one attempt in 24 h, after 5 s */
    h_register(h, h_job(h, "a", JOB_BATCH, 1));
    h_eval(h, "a");
    h_all_running(h);
    struct allocation *a = h_alloc(h, "a.web[0]");
    h_fail(h, a);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(o->followups.n, 1);
    h->now += 6 * NS_PER_S;
    h_eval_as(h, "a", a->followup_eval_id);
    struct allocation *b = h_alloc(h, "a.web[0]");
    ck_assert_ptr_nonnull(b);
    h_fail(h, b);
    h->now += 6 * NS_PER_S;
    o = h_eval(h, "a");
    ck_assert_uint_eq(o->followups.n, 0);
    ck_assert_ptr_null(o->plan);
    ck_assert_uint_eq(h_live(h, "a"), 0);
    /* a changed job starts anew */
    struct job *j = h_job(h, "a", JOB_BATCH, 1);
    str_map_set(j, &j->meta, "fixed", "yes");
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 1);
    h_free(h);
}
END_TEST

START_TEST(finished_batch_is_done)
{
    struct harness *h = nodes(2);

    h_register(h, h_job(h, "a", JOB_BATCH, 2));
    h_eval(h, "a");
    h->allocs.v[0]->client_status = ALLOC_COMPLETE;
    h->allocs.v[1]->client_status = ALLOC_RUNNING;
    ck_assert_ptr_null(h_eval(h, "a")->plan);
    h_find(h, "n1")->status = NODE_DOWN;
    h_find(h, "n2")->status = NODE_DOWN;
    h_node(h, "n3");
    h_eval(h, "a");
    /* the running one was lost and is run again, the finished one not */
    ck_assert_uint_eq(h_live(h, "a"), 1);
    ck_assert_uint_eq(h->allocs.n, 3);
    h_free(h);
}
END_TEST

/* Told to move, it stops without failing: its work is not done for that, and its replacement stays. */
START_TEST(moved_batch_is_not_done)
{
    struct harness *h = nodes(2);
    struct desired_transition dt = {.migrate = {true, true}};

    h_register(h, h_job(h, "a", JOB_BATCH, 1));
    h_eval(h, "a");
    h_all_running(h);
    struct allocation *a = h_alloc(h, "a.web[0]");
    a->desired_transition = &dt;
    h_eval(h, "a");
    a->client_status = ALLOC_COMPLETE;
    for (int i = 0; i < 3; i++)
        ck_assert_ptr_null(h_eval(h, "a")->plan);
    ck_assert_uint_eq(h_live(h, "a"), 1);
    h_free(h);

    /* the same when there was no room for the replacement at first */
    h = nodes(1);
    h_register(h, h_job(h, "a", JOB_BATCH, 1));
    h_eval(h, "a");
    h_all_running(h);
    a = h_alloc(h, "a.web[0]");
    a->desired_transition = &dt;
    h->nodes.v[0]->scheduling_eligibility = NODE_INELIGIBLE;
    h_eval(h, "a");
    a->client_status = ALLOC_COMPLETE;
    h->nodes.v[0]->scheduling_eligibility = NODE_ELIGIBLE;
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 1);
    h_free(h);
}
END_TEST

START_TEST(complete_service_is_replaced)
{
    struct harness *h = nodes(1);

    h_register(h, h_job(h, "a", JOB_SERVICE, 1));
    h_eval(h, "a");
    h->allocs.v[0]->client_status = ALLOC_COMPLETE;
    h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 1);
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->name, "a.web[0]");
    h_free(h);
}
END_TEST

START_TEST(no_node_blocks_with_reasons)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "a", JOB_SERVICE, 3);
    struct constraint c = {.l_target = "${attr.kernel.name}", .operand = "=", .r_target = "plan9"};

    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_int_eq(map_get(o->failed, "web")->v->coalesced_failures, 2);
    ck_assert_int_eq(map_get(o->queued, "web")->v, 3);
    ck_assert_int_eq(map_get(o->failed, "web")->v->nodes_evaluated, 0);
    h_node(h, "n1");
    h_node(h, "n2")->node_class = "big";
    h_node(h, "n3");
    list_add(j, j->constraints, &c);
    h_register(h, j);
    o = h_eval(h, "a");
    const struct alloc_metric *m = map_get(o->failed, "web")->v;
    ck_assert_int_eq(m->nodes_evaluated, 3);
    ck_assert_int_eq(m->nodes_filtered, 3);
    ck_assert_int_eq(map_get(m->constraint_filtered, "${attr.kernel.name} = plan9")->v, 2);
    /* a class is looked at once */
    ck_assert_int_eq(map_get(m->constraint_filtered, "computed class ineligible")->v, 1);
    ck_assert_int_eq(map_get(m->class_filtered, "big")->v, 1);
    ck_assert_int_eq(map_get(m->nodes_available, "dc1")->v, 3);
    ck_assert_uint_eq(o->class_eligibility.n, 2);
    ck_assert(!o->class_eligibility.v[0].v && !o->class_eligibility.v[1].v);
    ck_assert(!o->escaped);
    c.l_target = "${node.unique.name}";
    h_register(h, j);
    ck_assert(h_eval(h, "a")->escaped);
    h_free(h);
}
END_TEST

START_TEST(missing_driver_and_pool)
{
    struct harness *h = nodes(2);
    struct job *j = h_job(h, "a", JOB_SERVICE, 1);

    map_get(h->nodes.v[0]->drivers, "exec")->v->healthy = false;
    map_get(h->nodes.v[0]->drivers, "exec")->v->health_description = "no cgroup";
    map_get(h->nodes.v[1]->drivers, "exec")->v->detected = false;
    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_ptr_nonnull(map_get(failed_web(o)->constraint_filtered,
                                  "missing drivers"));
    ck_assert_ptr_nonnull(map_get(failed_web(o)->drivers_missing, "driver \"exec\": no cgroup"));
    j->task_groups.v[0]->tasks.v[0]->driver = "raw_exec";
    j->node_pool = "gpu";
    h_register(h, j);
    o = h_eval(h, "a");
    ck_assert_int_eq(map_get(o->failed, "web")->v->nodes_in_pool, 0);
    h->nodes.v[1]->node_pool = "gpu";
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->node_name, "n2");
    h_free(h);
}
END_TEST

START_TEST(datacenter_globs)
{
    struct harness *h = nodes(2);
    struct job *j = h_job(h, "a", JOB_SERVICE, 1);

    h->nodes.v[1]->datacenter = "eu-west";
    j->datacenters.v[0] = "eu-*";
    h_register(h, j);
    h_eval(h, "a");
    ck_assert_str_eq(h_alloc(h, "a.web[0]")->node_name, "n2");
    h_free(h);
}
END_TEST

START_TEST(distinct_hosts_and_property)
{
    struct harness *h = nodes(4);
    struct job *j = h_job(h, "a", JOB_SERVICE, 6);
    struct constraint hosts = {.operand = "distinct_hosts"};
    struct constraint rack = {
        .operand = "distinct_property", .l_target = "${meta.rack}", .r_target = "1"};

    list_add(j, j->constraints, &hosts);
    h_register(h, j);
    struct sched_out *o = h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 4);
    ck_assert_int_eq(map_get(failed_web(o)->constraint_filtered,
                             "distinct_hosts")->v, 4);
    h_free(h);

    h = nodes(4);
    for (size_t i = 0; i < 3; i++)
        str_map_set(h->nodes.v[i], &h->nodes.v[i]->meta, "rack", i < 2 ? "1" : "2");
    j = h_job(h, "a", JOB_SERVICE, 3);
    list_add(j, j->constraints, &rack);
    h_register(h, j);
    o = h_eval(h, "a");
    ck_assert_uint_eq(h_live(h, "a"), 2);
    ck_assert_int_eq(map_get(o->failed, "web")->v->nodes_filtered, 4);
    h_free(h);
}
END_TEST

static int64_t
ignored(struct harness *h, const char *id)
{
    return map_get(h_eval(h, id)->annotations->desired_tg_updates, "web")->v->ignore;
}

/* An ended allocation is nothing that a plan leaves alone. */
START_TEST(ended_ones_are_not_counted)
{
    static const char *const types[] = {JOB_SERVICE, JOB_SYSTEM};

    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct harness *h = h_new();
        struct job *j = h_job(h, "j", types[i], 2);
        h_node(h, "n1");
        for (int round = 0; round < 3; round++) {
            j->stop = false;
            h_register(h, j);
            ck_assert_int_eq(ignored(h, "j"), 0);
            h_all_running(h);
            ck_assert_int_eq(ignored(h, "j"), 2);
            j->stop = true;
            h_register(h, j);
            h_eval(h, "j");
            h_all_stopped(h);
        }
        h_free(h);
    }
}
END_TEST

START_TEST(system_runs_everywhere)
{
    struct harness *h = nodes(3);
    struct job *j = h_job(h, "sys", JOB_SYSTEM, 1);

    h->nodes.v[2]->scheduling_eligibility = NODE_INELIGIBLE;
    h_register(h, j);
    h_eval(h, "sys");
    ck_assert_uint_eq(h_live(h, "sys"), 2);
    h_all_running(h);
    h->nodes.v[2]->scheduling_eligibility = NODE_ELIGIBLE;
    h_eval(h, "sys");
    ck_assert_uint_eq(h_live(h, "sys"), 3);
    h_all_running(h);
    h->nodes.v[0]->status = NODE_DOWN;
    h_eval(h, "sys");
    ck_assert_uint_eq(h_live(h, "sys"), 2);
    /* a constraint that part of the nodes meet is no failure */
    struct constraint c = {.l_target = "${node.unique.name}", .operand = "=", .r_target = "n2"};
    list_add(j, j->constraints, &c);
    h_register(h, j);
    struct sched_out *o = h_eval(h, "sys");
    ck_assert_uint_eq(h_live(h, "sys"), 1);
    ck_assert_uint_eq(o->failed.n, 0);
    h_check(h);
    h_free(h);
}
END_TEST

/* The node lacks the driver, and the attribute with it. */
static void
lose_driver(struct node *n, bool lost)
{
    map_get(n->drivers, "exec")->v->healthy = !lost;
    str_map_set(n, &n->attributes, "driver.exec", lost ? "" : "1");
}

/* A node whose warden or engine is gone for a moment has its tasks running on; a change of the job
 * waits for it. */
static void
system_outlives_driver(const char *type)
{
    struct harness *h = nodes(2);
    struct job *j = h_job(h, "sys", type, 1);
    struct constraint c = {.l_target = "${attr.driver.exec}", .operand = "=", .r_target = "1"};

    list_add(j, j->constraints, &c);
    lose_driver(h->nodes.v[0], false);
    lose_driver(h->nodes.v[1], false);
    h_register(h, j);
    h_eval(h, "sys");
    h_all_running(h);
    lose_driver(h->nodes.v[0], true);
    struct sched_out *o = h_eval(h, "sys");
    ck_assert_ptr_null(o->plan);
    ck_assert_uint_eq(o->failed.n, 0);
    j->task_groups.v[0]->tasks.v[0]->user = "daemon";
    h_register(h, j);
    o = h_eval(h, "sys");
    ck_assert_uint_eq(updates(o)->destructive_update, 1);
    ck_assert_uint_eq(updates(o)->ignore, 1);
    ck_assert_uint_eq(updates(o)->stop, 0);
    lose_driver(h->nodes.v[0], false);
    h_all_running(h);
    h_all_stopped(h);
    o = h_eval(h, "sys");
    ck_assert_uint_eq(updates(o)->destructive_update, 1);
    ck_assert_uint_eq(updates(o)->stop, 0);
    ck_assert_uint_eq(h_live(h, "sys"), 2);
    h_free(h);
}

START_TEST(system_outlives_its_driver)
{
    system_outlives_driver(JOB_SYSTEM);
    system_outlives_driver(JOB_SYSBATCH);
}
END_TEST

START_TEST(sysbatch_runs_once)
{
    struct harness *h = nodes(2);

    h_register(h, h_job(h, "sb", JOB_SYSBATCH, 1));
    h_eval(h, "sb");
    ck_assert_uint_eq(h_live(h, "sb"), 2);
    h->allocs.v[0]->client_status = ALLOC_COMPLETE;
    h->allocs.v[1]->client_status = ALLOC_COMPLETE;
    ck_assert_ptr_null(h_eval(h, "sb")->plan);
    h_node(h, "n3");
    h_eval(h, "sb");
    ck_assert_uint_eq(h_live(h, "sb"), 1);
    h_free(h);
}
END_TEST

TEST_SUITE("reconcile", places_names_in_order, scales_from_the_top,
           in_place_keeps_destructive_replaces, destructive_fits_in_place_of_old,
           constraint_moves_what_no_longer_fits, stopped_and_purged_jobs_stop,
           group_that_left_is_stopped, lost_ones_are_replaced, stopping_on_a_dead_node_is_lost,
           unready_nodes_take_nothing_new, migrate_flag_moves, failed_service_waits_then_moves,
           failed_service_starts_again_with_its_job, failed_batch_uses_its_attempts,
           finished_batch_is_done, moved_batch_is_not_done, complete_service_is_replaced,
           no_node_blocks_with_reasons, missing_driver_and_pool, datacenter_globs,
           distinct_hosts_and_property, ended_ones_are_not_counted, system_runs_everywhere,
           system_outlives_its_driver, sysbatch_runs_once)
