/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of placements: the worked examples of the reference (V14 to V31, V37, V38), by their
 * numbers.
 */
#include <math.h>

#include "common/duration.h"
#include "server/sched/spread.h"
#include "tests/lib/test.h"
#include "tests/server/sched/harness.h"

#define V4 0.177519

/* Somebody else's use of a node, by a job of one allocation that is there alone. */
static void
used(struct harness *h, const char *node, int64_t cpu, int64_t mem)
{
    char id[32];

    snprintf(id, sizeof(id), "use-%s", node);
    struct job *j = h_job(h, id, JOB_SERVICE, 1);
    struct constraint *c = mem_new(j, struct constraint);
    c->l_target = "${node.unique.name}";
    c->operand = "=";
    c->r_target = node;
    list_add(j, j->constraints, c);
    j->task_groups.v[0]->tasks.v[0]->resources->cpu.v = cpu;
    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = mem;
    h_register(h, j);
    h_eval(h, id);
    ck_assert_uint_eq(h_live(h, id), 1);
}

static bool
near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

static void
in_dc(struct node *n, const char *dc, const char *rack)
{
    n->datacenter = dc;
    if (rack != NULL)
        str_map_set(n, &n->meta, "rack", rack);
}

static struct spread *
spread_over(struct job *j, const char *attribute, int64_t weight)
{
    struct spread *s = mem_new(j, struct spread);

    s->attribute = attribute;
    s->weight = (struct opt_i64){true, weight};
    list_add(j, j->task_groups.v[0]->spreads, s);
    return s;
}

static void
target(struct job *j, struct spread *s, const char *value, uint64_t percent)
{
    struct spread_target *t = mem_new(j, struct spread_target);

    t->value = value;
    t->percent = percent;
    list_add(j, s->spread_target, t);
}

static void
like(struct job *j, struct affinity_list *to, const char *attribute, const char *value,
     int64_t weight)
{
    struct affinity *a = mem_new(j, struct affinity);

    a->l_target = attribute;
    a->operand = "=";
    a->r_target = value;
    a->weight = (struct opt_i64){true, weight};
    list_add(j, *to, a);
}

/* The part of that name in the winner's scores; NAN when it is not there. */
static double
part(const struct allocation *a, const char *name)
{
    const struct node_score_meta *m = a->metrics->score_meta_data.v[0];
    __auto_type p = map_get(m->scores, name);

    return p != NULL ? p->v : NAN;
}

static double
final(const struct allocation *a)
{
    return a->metrics->score_meta_data.v[0]->norm_score;
}

/* Puts `n` allocations of the group on the node, which take nothing of it. */
static void
already(struct harness *h, const struct job *j, const char *node, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct allocation *a = mem_new(h, struct allocation);
        a->id = mem_printf(h, "aaaaaaaa-0000-4000-8000-%012zx", h->allocs.n);
        a->namespace = NS_DEFAULT;
        a->job_id = j->id;
        a->job = h_latest(h, j->id);
        a->task_group = "web";
        a->name = mem_printf(h, "%s.web[%zu]", j->id, h->allocs.n);
        a->node_id = h_find(h, node)->id;
        a->node_name = h_find(h, node)->name;
        a->desired_status = ALLOC_DESIRED_RUN;
        a->client_status = ALLOC_RUNNING;
        mem_resize(h, h->allocs.v, struct allocation *, h->allocs.n + 1);
        h->allocs.v[h->allocs.n++] = a;
    }
}

/* V14 and V15: how much a neighbour of the group costs depends on the count. */
START_TEST(neighbours)
{
    static const struct {
        int64_t count;
        double part, final;
    } row[] = {{4, -0.5, 0.043057}, {10, -0.2, 0.193057}};

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct harness *h = h_new();
        struct job *j = h_job(h, "web", JOB_SERVICE, row[i].count);
        h_node(h, "n1");
        used(h, "n1", 1000, 2048);
        h_register(h, j);
        already(h, j, "n1", 1);
        h_eval(h, "web");
        const struct allocation *a = h->allocs.v[2];
        ck_assert(near(part(a, "job-anti-affinity"), row[i].part));
        ck_assert_msg(near(final(a), row[i].final), "%f", final(a));
        h_free(h);
    }
}
END_TEST

/* V16 and V38: a node where it failed is left for another, and taken where there is no other. */
START_TEST(penalties)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "web", JOB_SERVICE, 1);

    h_node(h, "q");
    used(h, "q", 1000, 2048);
    h_register(h, j);
    h_eval(h, "web");
    struct allocation *first = h_alloc(h, "web.web[0]");
    ck_assert(near(final(first), 0.586114)); /* V5 */
    h_all_running(h);
    h_fail(h, first);
    h_eval(h, "web");
    h->now += 30 * NS_PER_S;
    h_eval_as(h, "web", first->followup_eval_id);
    struct allocation *second = h_alloc(h, "web.web[0]");
    ck_assert_ptr_ne(second, first);
    ck_assert(near(part(second, "node-reschedule-penalty"), -1));
    ck_assert(near(final(second), (0.586114 - 1) / 2));
    h_node(h, "r");
    used(h, "r", 2000, 2048);
    h_node(h, "p");
    h_all_running(h);
    h_fail(h, second);
    h_eval(h, "web");
    h->now += 60 * NS_PER_S;
    h_eval_as(h, "web", second->followup_eval_id);
    const struct allocation *third = h_alloc(h, "web.web[0]");
    ck_assert_str_eq(third->node_name, "r");
    ck_assert_msg(near(final(third), 0.688646), "%f", final(third));
    h_free(h);
}
END_TEST

/* V37: each value of the property once; a node without it is out. */
START_TEST(distinct_racks)
{
    static const char *const racks[] = {"r1", "r1", "r2", NULL};
    struct harness *h = h_new();
    struct job *j = h_job(h, "web", JOB_SERVICE, 3);
    struct constraint *c = mem_new(j, struct constraint);

    for (size_t i = 0; i < 4; i++)
        in_dc(h_node(h, mem_printf(h, "d%zu", i)), "dc1", racks[i]);
    c->l_target = "${meta.rack}";
    c->operand = "distinct_property";
    list_add(j, j->constraints, c);
    h_register(h, j);
    struct sched_out *o = h_eval(h, "web");
    ck_assert_uint_eq(h_live(h, "web"), 2);
    const char *a = h_find(h, h->allocs.v[0]->node_name)->name;
    const char *b = h_find(h, h->allocs.v[1]->node_name)->name;
    ck_assert((str_eq(a, "d2")) != (str_eq(b, "d2")));
    ck_assert_int_eq(map_get(o->failed, "web")->v->nodes_filtered, 4);
    h_free(h);
}
END_TEST

START_TEST(arithmetic)
{
    ck_assert(near(spread_boost(8, 2), 0.625)); /* V22 */
    ck_assert(near(spread_boost(2, 0), 0.5));
    ck_assert(near(spread_boost(8, 7), 0)); /* V23 */
    ck_assert(near(spread_boost(8, 8), -0.125));
    ck_assert(near(spread_boost(6, 2) * 100 / 150 + spread_boost(4, 1) * 50 / 150, 0.5)); /* V25 */
    ck_assert(near(spread_even(2, 2, 2), -1));                                            /* V29 */
    ck_assert(near(spread_even(0, 2, 2), 1));
    ck_assert(near(spread_even(2, 2, 3), 0.5)); /* V30 */
    ck_assert(near(spread_even(3, 2, 3), -0.5));
    ck_assert(near(spread_even(3, 3, 3), -1)); /* V31 */
    ck_assert(near(spread_even(0, 3, 3), 1));
    ck_assert(near(spread_even(0, 0, 2), 1));
    ck_assert(near(spread_even(2, 0, 2), -1));
}
END_TEST

/* V17 to V19: affinities of job, group and task are one part, and one that is 0 counts. */
START_TEST(affinity_sums)
{
    static const struct {
        const char *rack, *size;
        double part, final;
    } row[] = {{"r1", "big", 0.5, 0.338759},
               {"r2", "small", -1.0 / 3, -0.077907},
               {"r3", "small", 0, 0.088759}};

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct harness *h = h_new();
        struct job *j = h_job(h, "web", JOB_SERVICE, 1);
        struct task_group *tg = j->task_groups.v[0];
        struct node *n = h_node(h, "n1");
        in_dc(n, "dc1", row[i].rack);
        str_map_set(n, &n->meta, "size", row[i].size);
        like(j, &j->affinities, "${meta.rack}", "r1", 100);
        like(j, &tg->affinities, "${meta.rack}", "r2", -100);
        like(j, &tg->tasks.v[0]->affinities, "${meta.size}", "big", 50);
        like(j, &tg->tasks.v[0]->affinities, "${node.unique.name}", "n2", 50);
        h_register(h, j);
        h_eval(h, "web");
        ck_assert_msg(near(part(h->allocs.v[0], "node-affinity"), row[i].part), "%zu", i);
        ck_assert_msg(near(final(h->allocs.v[0]), row[i].final), "%zu: %f", i,
                      final(h->allocs.v[0]));
        ck_assert(isnan(part(h->allocs.v[0], "allocation-spread")));
        h_free(h);
    }
}
END_TEST

/* The node that is liked wins over one that packs better; a liking of nobody has no effect. */
START_TEST(affinity_chooses)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "web", JOB_SERVICE, 1);

    h_node(h, "n1")->node_resources->cpu->cpu_shares = 600; /* nearly full */
    in_dc(h_node(h, "n2"), "dc1", "r1");
    like(j, &j->task_groups.v[0]->affinities, "${meta.rack}", "r1", 50);
    h_register(h, j);
    h_eval(h, "web");
    ck_assert_str_eq(h->allocs.v[0]->node_name, "n2");
    ck_assert(near(part(h->allocs.v[0], "node-affinity"), 1));
    h_free(h);
}
END_TEST

/* V22 and V24: what targets leave is shared by the values without one. */
START_TEST(spread_parts)
{
    static const struct {
        const char *dc;
        size_t there;
        double part, final;
    } row[] = {
        {"dc1", 2, 0.625, 0.401259}, {"dc2", 0, 0.5, 0.338759}, {"dc1", 8, -0.125, 0.026259}};

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct harness *h = h_new();
        struct job *j = h_job(h, "web", JOB_SERVICE, 10);
        struct node *here = h_node(h, "here"), *old = h_node(h, "old");
        struct spread *s = spread_over(j, "${node.datacenter}", 100);
        target(j, s, "dc1", 80);
        in_dc(here, row[i].dc, NULL);
        in_dc(old, "dc1", NULL);
        old->scheduling_eligibility = NODE_INELIGIBLE;
        h_register(h, j);
        already(h, j, "old", row[i].there);
        h_eval(h, "web");
        const struct allocation *a = h->allocs.v[row[i].there];
        ck_assert_msg(near(part(a, "allocation-spread"), row[i].part), "%zu: %f", i,
                      part(a, "allocation-spread"));
        ck_assert_msg(near(final(a), row[i].final), "%zu: %f", i, final(a));
        h_free(h);
    }
}
END_TEST

/* V23: a spread part of 0 is no part. */
START_TEST(spread_of_nothing)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "web", JOB_SERVICE, 10);

    h_node(h, "here");
    h_node(h, "old")->scheduling_eligibility = NODE_INELIGIBLE;
    target(j, spread_over(j, "${node.datacenter}", 100), "dc1", 80);
    h_register(h, j);
    already(h, j, "old", 7);
    h_eval(h, "web");
    ck_assert(isnan(part(h->allocs.v[7], "allocation-spread")));
    ck_assert(near(final(h->allocs.v[7]), V4));
    h_free(h);
}
END_TEST

/* V26: a value that no target names, where nothing is left for it, is not wanted. */
START_TEST(spread_unnamed)
{
    static const char *const dcs[] = {"dc1", "dc2", "dc3"};
    static const double want[] = {0.75, 0.75, -1};

    for (size_t i = 0; i < 3; i++) {
        struct harness *h = h_new();
        struct job *j = h_job(h, "web", JOB_SERVICE, 8);
        struct spread *s = spread_over(j, "${node.datacenter}", 50);
        in_dc(h_node(h, "n1"), dcs[i], NULL);
        target(j, s, "dc1", 50);
        target(j, s, "dc2", 50);
        h_register(h, j);
        h_eval(h, "web");
        ck_assert(near(part(h->allocs.v[0], "allocation-spread"), want[i]));
        h_free(h);
    }
}
END_TEST

/* V25: two blocks. */
START_TEST(spread_two)
{
    static const char *const racks[] = {"r1", "r2"};
    static const double want[] = {0.5, 0.555556};

    for (size_t i = 0; i < 2; i++) {
        struct harness *h = h_new();
        struct job *j = h_job(h, "web", JOB_SERVICE, 10);
        struct spread *dc = spread_over(j, "${node.datacenter}", 100);
        struct spread *rack = spread_over(j, "${meta.rack}", 50);
        target(j, dc, "dc1", 60);
        target(j, dc, "dc2", 40);
        target(j, rack, "r1", 40);
        target(j, rack, "r2", 60);
        in_dc(h_node(h, "here"), "dc1", racks[i]);
        in_dc(h_node(h, "a"), "dc1", "r1");
        in_dc(h_node(h, "b"), "dc1", "r2");
        in_dc(h_node(h, "c"), "dc2", NULL);
        for (size_t k = 1; k < 4; k++)
            h->nodes.v[k]->scheduling_eligibility = NODE_INELIGIBLE;
        h_register(h, j);
        already(h, j, "a", 1);
        already(h, j, "b", 1);
        already(h, j, "c", 1);
        h_eval(h, "web");
        ck_assert_msg(near(part(h->allocs.v[3], "allocation-spread"), want[i]), "%f",
                      part(h->allocs.v[3], "allocation-spread"));
        h_free(h);
    }
}
END_TEST

/* V27: ten placements, each with the score of the reference. Equal nodes are interchangeable. */
START_TEST(spread_trace)
{
    static const struct {
        const char *dc;
        double score;
    } want[] = {{"dc1", 0.517331}, {"dc1", 0.445902}, {"dc2", 0.422093}, {"dc2", 0.255426},
                {"dc1", 0.229679}, {"dc1", 0.185906}, {"dc1", 0.134845}, {"dc1", 0.086822},
                {"dc1", 0.064573}, {"dc2", 0.058804}};
    struct harness *h = h_new();
    struct job *j = h_job(h, "web", JOB_SERVICE, 10);
    struct spread *s = spread_over(j, "${node.datacenter}", 100);
    int dc1 = 0;

    in_dc(h_node(h, "a1"), "dc1", NULL);
    in_dc(h_node(h, "a2"), "dc1", NULL);
    in_dc(h_node(h, "b1"), "dc2", NULL);
    in_dc(h_node(h, "b2"), "dc2", NULL);
    target(j, s, "dc1", 70);
    target(j, s, "dc2", 30);
    h_register(h, j);
    h_eval(h, "web");
    ck_assert_uint_eq(h_live(h, "web"), 10);
    for (size_t i = 0; i < 10; i++) {
        const struct allocation *a = h->allocs.v[i];
        const char *dc = h_find(h, a->node_name)->datacenter;
        ck_assert_msg(near(final(a), want[i].score), "%zu: %f", i, final(a));
        ck_assert_str_eq(dc, want[i].dc);
        dc1 += str_eq(dc, "dc1");
    }
    ck_assert_int_eq(dc1, 7);
    h_free(h);
}
END_TEST

/* V28 and on: without targets, evenly; a spread of the job is one of each group. */
START_TEST(spread_evenly)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "web", JOB_SERVICE, 12);
    int use[3] = {0};

    for (int i = 0; i < 6; i++)
        in_dc(h_node(h, mem_printf(h, "n%d", i)), "dc1", mem_printf(h, "r%d", i % 3));
    h_node(h, "rackless");
    spread_over(j, "${meta.rack}", 50);
    j->spreads = j->task_groups.v[0]->spreads;
    j->task_groups.v[0]->spreads = (struct spread_list){0};
    h_register(h, j);
    h_eval(h, "web");
    ck_assert(isnan(part(h->allocs.v[0], "allocation-spread"))); /* V28 */
    for (size_t i = 0; i < 12; i++) {
        const char *rack = str_map_get(&h_find(h, h->allocs.v[i]->node_name)->meta, "rack");
        ck_assert_ptr_nonnull(rack);
        use[rack[1] - '0']++;
    }
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(use[i], 4);
    h_free(h);
}
END_TEST

/* V20 without its penalty: anti-affinity, affinity and spread are one mean. */
START_TEST(mean_of_all)
{
    struct harness *h = h_new();
    struct job *j = h_job(h, "web", JOB_SERVICE, 4);
    struct node *n = h_node(h, "n1");

    n->node_resources->cpu->cpu_shares = 4000;
    like(j, &j->affinities, "${node.datacenter}", "dc1", 50);
    like(j, &j->affinities, "${node.datacenter}", "dc2", 50);
    target(j, spread_over(j, "${node.datacenter}", 100), "dc1", 100);
    h_register(h, j);
    already(h, j, "n1", 1);
    h_eval(h, "web");
    double spread = (4.0 - 2) / 4;
    ck_assert(near(part(h->allocs.v[1], "job-anti-affinity"), -0.5));
    ck_assert(near(part(h->allocs.v[1], "allocation-spread"), spread));
    ck_assert(near(final(h->allocs.v[1]), (V4 - 0.5 + 0.5 + spread) / 4));
    h_free(h);
}
END_TEST

/* Two nodes in each of three datacenters, one of the six filled more than the others; how many are where. */
static void
spread_by(const uint64_t percent[3], int64_t count, int64_t room, int64_t ret[3])
{
    static const char *const dc[] = {"dc1", "dc2", "dc3"};
    struct harness *h = h_new();
    char name[8];

    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        struct node *n = h_node(h, name);
        in_dc(n, dc[i % 3], NULL);
        n->node_max_allocs = i % 3 == 0 && room > 0 ? room / 2 : 0;
    }
    h_node(h, "far")->node_pool = "other"; /* another value, for none of the group */
    in_dc(h_find(h, "far"), "dc4", NULL);
    if (room == 0)
        used(h, "n2", 2000, 4000);
    struct job *j = h_job(h, "web", JOB_SERVICE, count);
    struct spread *s = spread_over(j, "${node.datacenter}", 100);
    for (int i = 0; i < 3; i++)
        if (percent[i] > 0)
            target(j, s, dc[i], percent[i]);
    j->task_groups.v[0]->tasks.v[0]->resources->cpu.v = 50;
    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 50;
    h_register(h, j);
    h_eval(h, "web");
    ck_assert_uint_eq(h_live(h, "web"), (size_t)count);
    ret[0] = ret[1] = ret[2] = 0;
    for (size_t i = 0; i < h->allocs.n; i++)
        for (size_t k = 0; k < h->nodes.n; k++)
            if (str_eq(h->allocs.v[i]->job_id, "web") &&
                str_eq(h->nodes.v[k]->id, h->allocs.v[i]->node_id))
                ret[h->nodes.v[k]->datacenter[2] - '1']++;
    h_free(h);
}

START_TEST(percents_are_met_to_within_one)
{
    static const struct {
        uint64_t percent[3];
        int64_t count, room; /* of dc1; 0: enough */
        int64_t want[3];
    } rows[] = {
        {{50, 0, 0}, 12, 0, {6, 3, 3}},    {{70, 30, 0}, 10, 0, {7, 3, 0}},
        {{60, 20, 0}, 10, 0, {6, 2, 2}},   {{10, 10, 80}, 20, 0, {2, 2, 16}},
        {{100, 0, 0}, 7, 0, {7, 0, 0}},    {{50, 25, 25}, 4, 0, {2, 1, 1}},
        {{50, 0, 0}, 12, 4, {4, 4, 4}}, /* no more room: the others take it */
    };
    int64_t got[3];

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        spread_by(rows[i].percent, rows[i].count, rows[i].room, got);
        for (int k = 0; k < 3; k++)
            ck_assert_msg(got[k] == rows[i].want[k], "row %zu: %d %d %d", i, (int)got[0],
                          (int)got[1], (int)got[2]);
    }
    /* a share that is no whole number is rounded up or down */
    spread_by((const uint64_t[]){34, 33, 33}, 10, 0, got);
    for (int k = 0; k < 3; k++)
        ck_assert(got[k] == 3 || got[k] == 4);
    spread_by((const uint64_t[]){45, 45, 0}, 5, 0, got);
    ck_assert((got[0] == 2 || got[0] == 3) && (got[1] == 2 || got[1] == 3) && got[2] <= 1);
}
END_TEST

TEST_SUITE("score", percents_are_met_to_within_one, neighbours, penalties, distinct_racks, arithmetic,
           affinity_sums, affinity_chooses, spread_parts, spread_of_nothing, spread_unnamed,
           spread_two, spread_trace, spread_evenly, mean_of_all)
