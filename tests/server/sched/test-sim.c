/* SPDX-License-Identifier: Apache-2.0
 *
 * A seeded simulation of the scheduler: jobs come, change and go, nodes fall and return, tasks fail and
 * finish, plans are rejected in part. After every step no node is over-committed, no port is held
 * twice, no name is live twice; at the end, when nothing disturbs any more, every job has what it
 * wants or says why not.
 *
 *   PADDOCK_SEED=17 tests/server/sched/test-sim     repeats one run
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "tests/server/sched/harness.h"

enum { SIM_JOBS = 8, SIM_NODES = 12, SIM_STEPS = 150, SIM_SEEDS = 12 };

struct sim {
    struct harness *h;
    struct rng r;
    struct job *specs[SIM_JOBS];
};

static const char *
job_id(int i)
{
    static char ids[SIM_JOBS][8];

    snprintf(ids[i], sizeof(ids[i]), "job%d", i);
    return ids[i];
}

static void
maybe_ports(struct sim *s, struct job *j)
{
    struct task_group *tg = j->task_groups.v[0];
    uint64_t kind = rng_below(&s->r, 3);

    if (kind == 0)
        return;
    struct network_resource *nr = mem_new(j, struct network_resource);
    struct port *p = mem_new(j, struct port);
    p->label = "p";
    if (kind == 1) {
        p->value = 8000 + (int64_t)rng_below(&s->r, 3);
        list_add(j, nr->reserved_ports, p);
    } else {
        list_add(j, nr->dynamic_ports, p);
    }
    list_add(j, tg->networks, nr);
}

static void
new_spec(struct sim *s, int i)
{
    bool batch = i % 4 == 3;
    struct job *j = h_job(s->h, job_id(i), batch ? JOB_BATCH : JOB_SERVICE,
                          (int64_t)rng_below(&s->r, 8));
    struct resources *r = j->task_groups.v[0]->tasks.v[0]->resources;

    r->cpu.v = 100 + (int64_t)rng_below(&s->r, 1500);
    r->memory_mb.v = 64 + (int64_t)rng_below(&s->r, 3000);
    maybe_ports(s, j);
    s->specs[i] = j;
    h_register(s->h, j);
}

static void
change_spec(struct sim *s, int i)
{
    struct job *j = s->specs[i];
    struct task_group *tg = j->task_groups.v[0];
    char text[24];

    switch (rng_below(&s->r, 5)) {
    case 0:
    case 1:
        tg->count.v = (int64_t)rng_below(&s->r, 9);
        break;
    case 2:
        snprintf(text, sizeof(text), "%llu", (unsigned long long)rng_below(&s->r, 1000));
        str_map_set(j, &tg->tasks.v[0]->env, "X", text);
        break;
    case 3:
        tg->tasks.v[0]->kill_timeout = (struct opt_i64){true, (int64_t)rng_below(&s->r, 30) * NS_PER_S};
        break;
    default:
        j->stop = !j->stop;
        break;
    }
    h_register(s->h, j);
}

static void
disturb_node(struct sim *s)
{
    struct node *n = s->h->nodes.v[rng_below(&s->r, s->h->nodes.n)];

    switch (rng_below(&s->r, 4)) {
    case 0:
        n->status = NODE_DOWN;
        break;
    case 1:
        n->scheduling_eligibility = NODE_INELIGIBLE;
        break;
    default:
        n->status = NODE_READY;
        n->scheduling_eligibility = NODE_ELIGIBLE;
        break;
    }
}

static void
disturb_alloc(struct sim *s)
{
    struct harness *h = s->h;

    if (h->allocs.n == 0)
        return;
    struct allocation *a = h->allocs.v[rng_below(&s->r, h->allocs.n)];
    if (alloc_client_terminal(a))
        return;
    switch (rng_below(&s->r, 3)) {
    case 0:
        h_fail(h, a);
        break;
    case 1:
        a->client_status = ALLOC_COMPLETE;
        break;
    default:
        a->client_status = ALLOC_RUNNING;
        break;
    }
}

static void
step(struct sim *s)
{
    struct harness *h = s->h;
    int i = (int)rng_below(&s->r, SIM_JOBS);

    switch (rng_below(&s->r, 8)) {
    case 0:
        disturb_node(s);
        break;
    case 1:
    case 2:
        disturb_alloc(s);
        break;
    case 3:
        change_spec(s, i);
        break;
    case 4:
        h_all_stopped(h);
        break;
    case 5:
        h->now += (int64_t)rng_below(&s->r, 60) * NS_PER_S;
        break;
    default:
        break;
    }
    h->rejects = rng_below(&s->r, 6) == 0 ? h->nodes.v[rng_below(&s->r, h->nodes.n)]->id : NULL;
    h_eval(h, job_id(i));
    h->rejects = NULL;
    h_check(h);
}

/* Nothing disturbs any more: one evaluation of each job settles it, the next finds nothing to do. */
static void
settle(struct sim *s)
{
    struct harness *h = s->h;

    for (size_t i = 0; i < h->nodes.n; i++) {
        h->nodes.v[i]->status = NODE_READY;
        h->nodes.v[i]->scheduling_eligibility = NODE_ELIGIBLE;
    }
    for (int round = 0; round < 4; round++) {
        h_all_running(h);
        h_all_stopped(h);
        h->now += 4000 * NS_PER_S;
        for (int i = 0; i < SIM_JOBS; i++)
            h_eval(h, job_id(i));
        h_check(h);
    }
    h_all_running(h);
    h_all_stopped(h);
    for (int i = 0; i < SIM_JOBS; i++) {
        const struct job *j = h_latest(h, job_id(i));
        struct sched_out *o = h_eval(h, job_id(i));
        int64_t want = j->stop ? 0 : j->task_groups.v[0]->count.v;
        int64_t have = (int64_t)h_live(h, j->id);
        int64_t queued = j->stop ? 0 : map_get(o->queued, "web")->v;
        ck_assert_msg(o->plan == NULL || o->failed.n > 0, "%s does not settle", j->id);
        if (str_eq(j->type, JOB_SERVICE))
            ck_assert_msg(have + queued >= want && have <= want, "%s: want %lld have %lld queued %lld",
                          j->id, (long long)want, (long long)have, (long long)queued);
        else
            ck_assert_int_le(have, want);
    }
}

static void
run(uint64_t seed)
{
    struct sim s = {.h = h_new(), .r = rng_seed(seed, 42)};
    char name[16];

    s.h->rng = rng_seed(seed, 43);
    for (int i = 0; i < SIM_NODES; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        h_node(s.h, name);
    }
    for (int i = 0; i < SIM_JOBS; i++)
        new_spec(&s, i);
    for (int i = 0; i < SIM_STEPS; i++)
        step(&s);
    settle(&s);
    h_free(s.h);
}

START_TEST(simulation)
{
    const char *one = secure_getenv("PADDOCK_SEED");

    if (one != NULL) {
        run((uint64_t)atoll(one));
        return;
    }
    for (uint64_t seed = 1; seed <= SIM_SEEDS; seed++) {
        fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
        run(seed);
    }
}
END_TEST

/* The same seed gives the same plan, to the byte. */
START_TEST(same_seed_same_plan)
{
    struct buf a = BUF_INIT(1 << 20), b = BUF_INIT(1 << 20), *out[] = {&a, &b};

    for (int k = 0; k < 2; k++) {
        struct harness *h = h_new();
        char name[16];
        for (int i = 0; i < 5; i++) {
            snprintf(name, sizeof(name), "n%d", i);
            h_node(h, name);
        }
        h_register(h, h_job(h, "a", JOB_SERVICE, 7));
        mp_encode(out[k], &type_plan, h_eval(h, "a")->plan);
        h_free(h);
    }
    ck_assert_uint_eq(a.len, b.len);
    ck_assert_mem_eq(a.data, b.data, a.len);
    buf_done(&a);
    buf_done(&b);
}
END_TEST

TEST_SUITE_TIMEOUT("sim", 120, simulation, same_seed_same_plan)
