/* SPDX-License-Identifier: Apache-2.0
 *
 * Preemption: the worked examples of the reference (V39 to V49) by their numbers, and what is done
 * with a plan.
 */
#include <math.h>

#include "server/sched/preempt.h"
#include "tests/lib/test.h"
#include "tests/server/sched/harness.h"

static bool
near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

static struct usage
use(int64_t mem, int64_t cpu, int64_t disk)
{
    return (struct usage){.cpu = cpu, .mem = mem, .disk = disk};
}

START_TEST(arithmetic)
{
    static const double penalty[] = {0, 0, 50, 100};
    struct usage ask = use(2048, 512, 4096), u = ask;
    struct preempt_cand v[3] = {{.priority = 20}, {.priority = 30}};

    ck_assert(near(preempt_distance(&ask, &u), 0)); /* V39 */
    u = use(1024, 400, 1024);
    ck_assert(near(preempt_distance(&ask, &u), 0.927551)); /* V40 */
    u = use(8192, 200, 1024);
    ck_assert(near(preempt_distance(&ask, &u), 3.151799)); /* V41 */
    u = use(2048, 500, 4096);
    ck_assert(near(preempt_distance(&ask, &u), 0.023438)); /* V42 */
    for (int k = 1; k < 4; k++) {                          /* V43 */
        struct preempt_cand c = {.max_parallel = 2, .gone = k};
        ck_assert(near(preempt_penalty(&c), penalty[k]));
    }
    ck_assert(fabs(preempt_score(v, 1) - 0.99994051) < 1e-8); /* V44 */
    ck_assert(fabs(preempt_score(v, 2) - 0.99993738) < 1e-8); /* V45 */
    v[0].priority = v[1].priority = v[2].priority = 40;
    ck_assert(fabs(preempt_score(v, 3) - 0.99993388) < 1e-8); /* V46 */
    v[0].priority = 2047;                                     /* V47 */
    ck_assert(near(preempt_score(v, 1), 0.5));
}
END_TEST

/* V49: less important goes before a better match; and P2: who is not needed is spared. */
START_TEST(victims)
{
    struct allocation a[3] = {{.id = "a"}, {.id = "b"}, {.id = "c"}};
    struct usage left = use(512, 300, 5000), ask = use(2048, 1000, 300);
    struct preempt_cand v[3] = {{.alloc = &a[0], .u = use(512, 200, 300), .priority = 20},
                                {.alloc = &a[1], .u = use(3000, 1800, 300), .priority = 20},
                                {.alloc = &a[2], .u = use(2048, 1000, 300), .priority = 40}};

    ck_assert_uint_eq(preempt_choose(v, 3, &left, &ask), 1);
    ck_assert_str_eq(v[0].alloc->id, "b");
    ck_assert(near(preempt_distance(&ask, &v[0].u), 0.925246));
    /* the small one is the nearest by far, and then of no use */
    left = use(0, 300, 5000);
    ask = use(2000, 300, 0);
    v[0] = (struct preempt_cand){.alloc = &a[0], .u = use(1900, 300, 0), .priority = 20};
    v[1] = (struct preempt_cand){.alloc = &a[1], .u = use(4000, 900, 0), .priority = 20};
    ck_assert_uint_eq(preempt_choose(v, 2, &left, &ask), 1);
    ck_assert_str_eq(v[0].alloc->id, "b");
    /* not enough */
    ask = use(9000, 300, 0);
    ck_assert_uint_eq(preempt_choose(v, 2, &left, &ask), 0);
}
END_TEST

static struct preemption_config all = {true, true, true, true};

static struct job *
job_of(struct harness *h, const char *id, int64_t priority, int64_t count, int64_t mem)
{
    struct job *j = h_job(h, id, JOB_SERVICE, count);

    j->priority = (struct opt_i64){true, priority};
    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = mem;
    return h_register(h, j);
}

static size_t
evicted(struct harness *h, const char *job)
{
    size_t n = 0;

    for (size_t i = 0; i < h->allocs.n; i++)
        n += str_eq(h->allocs.v[i]->job_id, job) &&
             str_eq(h->allocs.v[i]->desired_status, ALLOC_DESIRED_EVICT);
    return n;
}

/* A delta of 10 is enough, one of 9 is not; off by default for services. */
START_TEST(less_important_ends)
{
    struct harness *h = h_new();

    h_node(h, "n1");
    job_of(h, "low", 40, 1, 8000);
    h_eval(h, "low");
    job_of(h, "high", 50, 1, 8000);
    h_eval(h, "high");
    ck_assert_uint_eq(h_live(h, "high"), 0);
    h->config.preemption_config = &all;
    job_of(h, "nearly", 49, 1, 8000);
    h_eval(h, "nearly");
    ck_assert_uint_eq(h_live(h, "nearly"), 0);
    struct sched_out *o = h_eval(h, "high");
    ck_assert_uint_eq(h_live(h, "high"), 1);
    ck_assert_uint_eq(evicted(h, "low"), 1);
    const struct allocation *low = h->allocs.v[0], *high = h->allocs.v[1];
    ck_assert_str_eq(low->preempted_by_allocation, high->id);
    ck_assert_str_eq(low->desired_description, mem_printf(h, "Preempted by alloc ID %s", high->id));
    ck_assert_uint_eq(high->preempted_allocations.n, 1);
    ck_assert_str_eq(high->preempted_allocations.v[0], low->id);
    ck_assert_uint_eq(map_get(o->annotations->desired_tg_updates, "web")->v->preemptions, 1);
    ck_assert_uint_eq(o->annotations->preempted_allocs.n, 1);
    ck_assert_str_eq(o->annotations->preempted_allocs.v[0]->id, low->id);
    /* scored as the node will be, not as it was (V48 for a full one) */
    const struct node_score_meta *m = high->metrics->score_meta_data.v[0];
    ck_assert(map_get(m->scores, "binpack")->v < 1);
    ck_assert(near(map_get(m->scores, "preemption")->v,
                   preempt_score(&(struct preempt_cand){.priority = 40}, 1)));
    ck_assert(near(m->norm_score,
                   (map_get(m->scores, "binpack")->v + map_get(m->scores, "preemption")->v) / 2));
    h_check(h);
    h_free(h);
}
END_TEST

/* Not its own, not more than needed, and where less important work is. */
START_TEST(as_few_as_possible)
{
    struct harness *h = h_new();

    h->config.preemption_config = &all;
    h_node(h, "n1");
    job_of(h, "low", 20, 4, 2000);
    h_eval(h, "low");
    ck_assert_uint_eq(h_live(h, "low"), 4);
    job_of(h, "high", 70, 3, 2000);
    h_eval(h, "high");
    ck_assert_uint_eq(h_live(h, "high"), 3);
    ck_assert_uint_eq(evicted(h, "low"), 3);
    ck_assert_uint_eq(evicted(h, "high"), 0);
    h_check(h);
    h_free(h);
}
END_TEST

static void
put_gpus(struct node *n, int count)
{
    struct node_device_resource *g = mem_new(n, struct node_device_resource);

    g->vendor = "acme";
    g->type = "gpu";
    g->name = "one";
    for (int i = 0; i < count; i++) {
        struct node_device *d = mem_new(g, struct node_device);
        *d = (struct node_device){.id = mem_printf(d, "%d", i), .healthy = true};
        list_add(g, g->instances, d);
    }
    list_add(n, n->node_resources->devices, g);
}

static void
gpu_job(struct harness *h, const char *id, int64_t priority, int64_t count, int64_t gpus)
{
    struct job *j = h_job(h, id, JOB_SERVICE, count);
    struct requested_device *d = mem_new(j, struct requested_device);

    *d = (struct requested_device){.name = "gpu", .count = {true, gpus}};
    j->priority = (struct opt_i64){true, priority};
    list_add(j, j->task_groups.v[0]->tasks.v[0]->resources->devices, d);
    h_register(h, j);
    h_eval(h, id);
}

/* Devices are had from less important allocations: the least important ones first, none that is not
 * needed for it, and nobody without a device. */
START_TEST(devices_are_had_by_preemption)
{
    struct harness *h = h_new();

    h->config.preemption_config = &all;
    put_gpus(h_node(h, "n1"), 4);
    job_of(h, "none", 5, 1, 256);
    h_eval(h, "none");
    gpu_job(h, "low10", 10, 2, 1);
    gpu_job(h, "low20", 20, 1, 2);
    gpu_job(h, "mid", 50, 1, 2);
    ck_assert_uint_eq(h_live(h, "mid"), 1);
    ck_assert_uint_eq(evicted(h, "low10"), 2);
    ck_assert_uint_eq(evicted(h, "low20"), 0);
    gpu_job(h, "high", 60, 1, 1);
    ck_assert_uint_eq(h_live(h, "high"), 1);
    ck_assert_uint_eq(evicted(h, "low20"), 1);
    gpu_job(h, "more", 55, 1, 2); /* one is free, and the others' are too important */
    ck_assert_uint_eq(h_live(h, "more"), 0);
    gpu_job(h, "many", 90, 1, 5);
    ck_assert_uint_eq(h_live(h, "many"), 0);
    ck_assert_uint_eq(evicted(h, "none") + evicted(h, "mid") + evicted(h, "high"), 0);
    h_check(h);
    h_free(h);

    h = h_new(); /* who was added first and is not needed in the end is spared */
    h->config.preemption_config = &all;
    put_gpus(h_node(h, "n1"), 3);
    gpu_job(h, "one", 10, 1, 1);
    gpu_job(h, "two", 20, 1, 2);
    gpu_job(h, "high", 50, 1, 2);
    ck_assert_uint_eq(h_live(h, "high"), 1);
    ck_assert_uint_eq(evicted(h, "one"), 0);
    ck_assert_uint_eq(evicted(h, "two"), 1);
    h_free(h);

    h = h_new(); /* for memory and for devices at once; and not unasked */
    put_gpus(h_node(h, "n1"), 1);
    job_of(h, "big", 10, 1, 8000);
    h_eval(h, "big");
    gpu_job(h, "low", 20, 1, 1);
    h->config.preemption_config = &all;
    gpu_job(h, "low", 20, 1, 1);
    ck_assert_uint_eq(h_live(h, "low"), 1);
    h_all_stopped(h);
    job_of(h, "again", 20, 1, 7500);
    h_eval(h, "again");
    ck_assert_uint_eq(h_live(h, "again"), 1);
    struct job *j = h_job(h, "high", JOB_SERVICE, 1);
    struct requested_device *d = mem_new(j, struct requested_device);
    *d = (struct requested_device){.name = "gpu", .count = {true, 1}};
    j->priority = (struct opt_i64){true, 70};
    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 8000;
    list_add(j, j->task_groups.v[0]->tasks.v[0]->resources->devices, d);
    h_register(h, j);
    h_eval(h, "high");
    ck_assert_uint_eq(h_live(h, "high"), 1);
    ck_assert_uint_eq(evicted(h, "low"), 1);
    ck_assert_uint_eq(evicted(h, "again"), 1);
    h_free(h);
}
END_TEST

/* System jobs preempt unless they are told not to. */
START_TEST(system_preempts)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "sys", JOB_SYSTEM, 1);
    struct preemption_config none = {0};

    h_node(h, "n1");
    job_of(h, "low", 50, 1, 8000);
    h_eval(h, "low");
    j->priority = (struct opt_i64){true, 90};
    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 1000;
    h_register(h, j);
    h->config.preemption_config = &none;
    h_eval(h, "sys");
    ck_assert_uint_eq(h_live(h, "sys"), 0);
    h->config.preemption_config = NULL;
    h_eval(h, "sys");
    ck_assert_uint_eq(h_live(h, "sys"), 1);
    ck_assert_uint_eq(evicted(h, "low"), 1);
    h_check(h);
    h_free(h);
}
END_TEST

/* A victim of another job frees nothing of this one's distinct_property, though its group has the same name;
 * and many placements by preemption are each on what the ones before them have left. */
START_TEST(victims_count_for_their_own_job_only)
{
    struct harness *h = h_new();
    struct constraint c = {
        .l_target = "${node.datacenter}", .operand = "distinct_property", .r_target = "3"};

    h->config.preemption_config = &all;
    for (int i = 0; i < 4; i++)
        h_node(h, mem_printf(h, "n%d", i + 1));
    job_of(h, "low", 20, 16, 2000);
    h_eval(h, "low");
    ck_assert_uint_eq(h_live(h, "low"), 16);
    struct job *high = h_job(h, "high", JOB_SERVICE, 5);
    high->priority = (struct opt_i64){true, 70};
    high->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 2000;
    list_add(high, high->constraints, &c);
    h_register(h, high);
    h_eval(h, "high");
    ck_assert_uint_eq(h_live(h, "high"), 3);
    ck_assert_uint_eq(evicted(h, "low"), 3);
    h_check(h);
    high->constraints.n = 0;
    high->task_groups.v[0]->count.v = 16;
    h_register(h, high);
    h_all_stopped(h);
    h_eval(h, "high");
    ck_assert_uint_eq(h_live(h, "high"), 16);
    ck_assert_uint_eq(evicted(h, "low"), 16);
    h_check(h);
    h_free(h);
}
END_TEST

TEST_SUITE("preempt", victims_count_for_their_own_job_only, arithmetic, victims,
           less_important_ends, as_few_as_possible, devices_are_had_by_preemption, system_preempts)
