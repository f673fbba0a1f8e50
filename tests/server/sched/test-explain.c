/* SPDX-License-Identifier: Apache-2.0
 *
 * Explanations: each node has one reason, those of one reason are one line, and it is the
 * scheduler's.
 */
#include "server/sched/limits.h"
#include "tests/lib/test.h"
#include "tests/server/sched/harness.h"

static const struct node_reason *
reason(const struct job_explanation *x, const char *text)
{
    const struct group_explanation *g = x->groups.v[0];

    for (size_t i = 0; i < g->reasons.n; i++)
        if (str_eq(g->reasons.v[i]->reason, text))
            return g->reasons.v[i];
    ck_abort_msg("no reason \"%s\"", text);
    return NULL;
}

static void
constrain(struct job *j, const char *l, const char *op, const char *r)
{
    struct constraint *k = mem_new(j, struct constraint);

    k->l_target = l;
    k->operand = op;
    k->r_target = r;
    list_add(j, j->constraints, k);
}

START_TEST(each_node_has_a_reason)
{
    struct harness *h = h_new();
    for (int i = 0; i < 12; i++)
        h_node(h, mem_printf(h, "n%d", i));
    h_find(h, "n0")->status = NODE_DOWN;
    h_find(h, "n1")->scheduling_eligibility = NODE_INELIGIBLE;
    h_find(h, "n2")->drain_strategy = mem_new(h, struct drain_strategy);
    h_find(h, "n3")->node_pool = "gpu";
    h_find(h, "n4")->datacenter = "east";
    h_find(h, "n5")->node_resources->memory->memory_mb = 100;
    str_map_set(h, &h_find(h, "n6")->attributes, "kernel.name", "plan9");
    map_get(h_find(h, "n7")->drivers, "exec")->v->healthy = false;
    map_get(h_find(h, "n7")->drivers, "exec")->v->health_description = "no cgroup";
    map_get(h_find(h, "n7")->drivers, "raw_exec")->v->healthy = false;
    struct job *j = h_job(h, "web", JOB_SERVICE, 1);
    j->datacenters.v[0] = "dc1";
    constrain(j, "${attr.kernel.name}", "=", "linux");
    constrain(j, NULL, "distinct_hosts", NULL);
    h_register(h, j);
    h_eval(h, "web");
    struct allocation *a = h_alloc(h, "web.web[0]");
    const struct job_explanation *x = h_explain(h, "web", NULL, NULL);
    ck_assert_uint_eq(x->groups.n, 1);
    ck_assert_uint_eq(x->groups.v[0]->nodes, 12);
    ck_assert_uint_eq(reason(x, "the node is down")->count, 1);
    ck_assert_uint_eq(reason(x, "the node is marked as ineligible")->count, 1);
    ck_assert_uint_eq(reason(x, "the node drains")->count, 1);
    ck_assert_uint_eq(reason(x, "in node pool \"gpu\", not \"default\"")->count, 1);
    ck_assert_uint_eq(reason(x, "in datacenter \"east\"")->count, 1);
    ck_assert_uint_eq(reason(x, "${attr.kernel.name} = linux")->count, 1);
    ck_assert_uint_eq(reason(x, "missing drivers")->count, 1);
    ck_assert_str_eq(reason(x, "missing drivers")->nodes.v[0]->detail, "driver \"exec\": no cgroup");
    ck_assert_str_eq(reason(x, "memory exhausted")->nodes.v[0]->detail,
                     "wants 256 MiB, 100 of 100 are free");
    ck_assert_str_eq(reason(x, "distinct_hosts")->nodes.v[0]->id, a->node_id);
    const struct node_reason *first = x->groups.v[0]->reasons.v[0];
    ck_assert(first->fits);
    ck_assert_uint_eq(first->count, 3);
    ck_assert_uint_eq(first->nodes.n, 2); /* of those that it may name */
    h_free(h);
}
END_TEST

/* The best that it names is the one that is taken. */
START_TEST(the_best_is_the_next)
{
    struct harness *h = h_new();
    for (int i = 0; i < 5; i++)
        h_node(h, mem_printf(h, "n%d", i))->node_resources->memory->memory_mb = 8192 - 500 * i;
    h_register(h, h_job(h, "web", JOB_SERVICE, 1));
    const struct job_explanation *x = h_explain(h, "web", "web", NULL);
    const char *best = mem_strdup(h, x->groups.v[0]->reasons.v[0]->nodes.v[0]->id);
    double score = x->groups.v[0]->reasons.v[0]->nodes.v[0]->score;
    ck_assert_uint_eq(h_explain(h, "web", "db", NULL)->groups.n, 0);
    x = h_explain(h, "web", NULL, "n3");
    ck_assert_uint_eq(x->groups.v[0]->nodes, 1);
    ck_assert_str_eq(x->groups.v[0]->reasons.v[0]->nodes.v[0]->name, "n3");
    h_eval(h, "web");
    const struct allocation *a = h_alloc(h, "web.web[0]");
    ck_assert_str_eq(a->node_id, best);
    ck_assert_double_eq(a->metrics->score_meta_data.v[0]->norm_score, score);
    h_free(h);
}
END_TEST

/* The simulated drain moves what a real one does, and nothing happens. */
START_TEST(a_simulated_drain_moves_nothing)
{
    struct harness *h = h_new();
    struct err e = ERR_INIT;
    struct simulation *s;
    for (int i = 0; i < 2; i++)
        h_node(h, mem_printf(h, "n%d", i));
    struct job *j = h_job(h, "web", JOB_SERVICE, 4);
    j->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 2600; /* three to a node, and sys */
    constrain(j, "${attr.kernel.name}", "=", "linux");
    h_register(h, j);
    h_register(h, h_job(h, "sys", JOB_SYSTEM, 1));
    struct task_group *big = codec_clone(j, &type_task_group, j->task_groups.v[0]);
    big->name = "big"; /* waits with and without the drain */
    big->tasks.v[0]->resources->memory_mb.v = 100000;
    list_add(j, j->task_groups, big);
    h_register(h, j);
    h_eval(h, "web");
    h_eval(h, "sys");
    h_all_running(h);
    size_t there = 0, n_allocs = h->allocs.n;
    for (size_t i = 0; i < h->allocs.n; i++)
        there += str_eq(h->allocs.v[i]->node_id, h_node_id("n0")) &&
                 str_eq(h->allocs.v[i]->job_id, "web");
    size_t room = 3 - (4 - there);
    ck_assert_int_eq(h_simulate(h, h_node_id("n0"), &s, &e), 0);
    ck_assert_uint_eq(s->stops, 1);
    ck_assert_uint_eq(s->moves.n, room);
    for (size_t i = 0; i < s->moves.n; i++) {
        ck_assert_str_eq(s->moves.v[i]->from_node_id, h_node_id("n0"));
        ck_assert_str_eq(s->moves.v[i]->to_node, "n1");
    }
    ck_assert_uint_eq(s->failures.n, 1);
    ck_assert_int_eq(s->failures.v[0]->count, (int64_t)(there - room));
    ck_assert_str_eq(s->failures.v[0]->task_group, "web");
    ck_assert_uint_eq(h->allocs.n, n_allocs);
    ck_assert_uint_eq(h_live(h, "web"), 4);
    ck_assert_ptr_null(h_find(h, "n0")->drain_strategy);
    ck_assert_int_eq(h_simulate(h, "no-such-node", &s, &e), -ERR_NOT_FOUND);
    h_free(h);
}
END_TEST

/* The answer does not grow with the nodes of a reason, and a question that would take too long for
 * is refused. */
START_TEST(many_groups_on_many_nodes_are_bounded)
{
    struct harness *h = h_new();
    for (int i = 0; i < 200; i++)
        h_node(h, mem_printf(h, "n%d", i));
    struct job *j = h_job(h, "wide", JOB_SERVICE, 0);
    struct task_group *tg = j->task_groups.v[0];
    tg->tasks.v[0]->resources->cpu.v = 100000;
    j->task_groups.n = 0;
    for (int i = 0; i < 900; i++) {
        struct task_group *g = codec_clone(j, &type_task_group, tg);
        g->name = mem_printf(j, "g%d", i);
        list_add(j, j->task_groups, g);
    }
    h_register(h, j);
    const struct job_explanation *x = h_explain(h, "wide", NULL, NULL);
    ck_assert_uint_eq(x->groups.n, 900);
    ck_assert_int_eq(x->groups.v[899]->reasons.v[0]->count, 200);
    ck_assert_uint_eq(x->groups.v[899]->reasons.v[0]->nodes.n, 2);
    ck_assert_uint_lt(talloc_total_size(h->last_ctx), 24 << 20);

    struct node_table many = {.n = EXPLAIN_CHECKS_MAX / 900};
    struct sched_view v = {.nodes = &many};
    struct explain_in in = {.view = &v, .job = h_latest(h, "wide")};
    struct job_explanation *none = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(sched_explain(h, &in, &none, &e), -ERR_LIMIT);
    ck_assert(strstr(e.text, "(group=)") != NULL);
    h_free(h);
}
END_TEST

TEST_SUITE("explain", many_groups_on_many_nodes_are_bounded, each_node_has_a_reason,
           the_best_is_the_next, a_simulated_drain_moves_nothing)
