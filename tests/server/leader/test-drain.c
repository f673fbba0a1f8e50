/* SPDX-License-Identifier: Apache-2.0
 *
 * The drainer's step: tables, and a seeded simulation together with the scheduler. In the simulation
 * nodes are drained in every way while allocations start, fail and finish at random; after every step
 * no group has fewer settled allocations because of a drain than its migrate block allows, nothing of
 * a batch or system job goes before its turn, and every drain ends.
 *
 *   PADDOCK_SEED=17 tests/server/leader/test-drain     repeats one run
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "common/num.h"
#include "server/leader/drain_step.h"
#include "tests/server/sched/harness.h"

#define SECOND NS_PER_S

/* --- the view over a harness --- */

struct world {
    struct harness *h;
    void *ctx; /* of the last step */
};

static const struct allocation *const *
pick(struct world *w, const char *node_id, const char *job_id, size_t *ret_n)
{
    const struct allocation **v = mem_array(w->ctx, const struct allocation *, w->h->allocs.n);
    size_t n = 0;

    for (size_t i = 0; i < w->h->allocs.n; i++) {
        const struct allocation *a = w->h->allocs.v[i];
        if ((node_id == NULL || str_eq(a->node_id, node_id)) &&
            (job_id == NULL || str_eq(a->job_id, job_id)))
            v[n++] = a;
    }
    *ret_n = n;
    return v;
}

static const struct allocation *const *
by_node(void *arg, const char *node_id, size_t *ret_n)
{
    return pick(arg, node_id, NULL, ret_n);
}

static const struct allocation *const *
by_job(void *arg, const char *ns, const char *id, size_t *ret_n)
{
    ck_assert_str_eq(ns, NS_DEFAULT);
    return pick(arg, NULL, id, ret_n);
}

static const struct job *
job(void *arg, const char *ns, const char *id)
{
    struct world *w = arg;

    (void)ns;
    return h_latest(w->h, id);
}

static int
node_cmp(const void *a, const void *b)
{
    return strcmp((*(const struct node *const *)a)->id, (*(const struct node *const *)b)->id);
}

static struct drain_out *
look(struct world *w)
{
    const struct node **v;
    size_t n = 0;

    mem_free(w->ctx);
    w->ctx = mem_ctx("step");
    v = mem_array(w->ctx, const struct node *, w->h->nodes.n);
    for (size_t i = 0; i < w->h->nodes.n; i++)
        if (w->h->nodes.v[i]->drain_strategy != NULL)
            v[n++] = w->h->nodes.v[i];
    qsort(v, n, sizeof(*v), node_cmp);
    const struct drain_in in = {
        .nodes = v,
        .n_nodes = n,
        .now = w->h->now,
        .allocs_by_node = by_node,
        .allocs_by_job = by_job,
        .job = job,
        .arg = w,
    };
    return drain_step(w->ctx, &in);
}

static struct allocation *
alloc_by_id(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->h->allocs.n; i++)
        if (str_eq(w->h->allocs.v[i]->id, id))
            return w->h->allocs.v[i];
    ck_abort_msg("no allocation %s", id);
    return NULL;
}

static void
set_flags(struct world *w, const struct drain_move *m, bool replace)
{
    for (size_t i = 0; i < m->allocs.n; i++) {
        struct desired_transition *t = mem_new(w->h, struct desired_transition);
        t->migrate = (struct opt_bool){true, true};
        t->migrate_disable_placement = (struct opt_bool){!replace, !replace};
        alloc_by_id(w, m->allocs.v[i])->desired_transition = t;
    }
    for (size_t i = 0; i < m->n_jobs; i++)
        h_eval(w->h, m->jobs[i]->id);
}

/* Carries out the machine's orders, as a leader does. */
static void
carry_out(struct world *w, const struct drain_out *o)
{
    set_flags(w, &o->move, true);
    set_flags(w, &o->end, false);
    for (size_t i = 0; i < o->done.n; i++)
        for (size_t k = 0; k < w->h->nodes.n; k++)
            if (str_eq(w->h->nodes.v[k]->id, o->done.v[i]))
                w->h->nodes.v[k]->drain_strategy = NULL;
}

static void
set_task(struct world *w, struct allocation *a, const char *client, const char *task, int64_t started)
{
    struct task_state *s = mem_new(w->h, struct task_state);

    s->state = task;
    s->started_at = started;
    a->client_status = client;
    a->task_states = (struct task_state_map){0};
    map_put(w->h, a->task_states, "t")->v = s;
}

static void
run_all(struct world *w)
{
    for (size_t i = 0; i < w->h->allocs.n; i++)
        if (str_eq(w->h->allocs.v[i]->client_status, ALLOC_PENDING))
            set_task(w, w->h->allocs.v[i], ALLOC_RUNNING, "running", w->h->now);
}

static struct world
world(int nodes)
{
    struct world w = {.h = h_new()};
    char name[16];

    for (int i = 1; i <= nodes; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        h_node(w.h, name);
    }
    return w;
}

static void
world_free(struct world *w)
{
    mem_free(w->ctx);
    h_free(w->h);
}

static void
drain(struct world *w, const char *name, int64_t deadline, bool ignore_system)
{
    struct node *n = h_find(w->h, name);
    struct drain_strategy *d = mem_new(w->h, struct drain_strategy);

    d->deadline = deadline;
    d->ignore_system_jobs = ignore_system;
    d->started_at = w->h->now;
    d->force_deadline = deadline > 0 ? w->h->now + deadline : 0;
    n->drain_strategy = d;
    n->scheduling_eligibility = NODE_INELIGIBLE;
}

/* A job whose allocations all run on n1, since when it is long settled. */
static void
on_first(struct world *w, const char *id, const char *type, int64_t count)
{
    for (size_t i = 0; i < w->h->nodes.n; i++)
        w->h->nodes.v[i]->scheduling_eligibility = i == 0 ? NODE_ELIGIBLE : NODE_INELIGIBLE;
    h_register(w->h, h_job(w->h, id, type, count));
    h_eval(w->h, id);
    run_all(w);
    for (size_t i = 0; i < w->h->nodes.n; i++)
        w->h->nodes.v[i]->scheduling_eligibility = NODE_ELIGIBLE;
    w->h->now += 60 * SECOND;
}

/* --- tables --- */

START_TEST(room)
{
    static const struct {
        int64_t count, max_parallel, settled, drainable, want;
    } rows[] = {{5, 1, 5, 5, 1}, {5, 2, 5, 5, 2}, {5, 1, 4, 5, 0}, {5, 2, 4, 1, 1},
                {5, 0, 5, 5, 0}, {3, 9, 3, 3, 3}, {3, 1, 0, 3, 0}, {0, 1, 2, 2, 2}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ck_assert_int_eq(drain_room(rows[i].count, rows[i].max_parallel, rows[i].settled,
                                    rows[i].drainable),
                         rows[i].want);
}
END_TEST

START_TEST(services_wait_for_each_other)
{
    struct world w = world(2);

    on_first(&w, "web", JOB_SERVICE, 3);
    ck_assert_uint_eq(look(&w)->move.allocs.n, 0); /* nothing drains */
    drain(&w, "n1", 3600 * SECOND, false);
    for (int round = 0; round < 3; round++) {
        struct drain_out *o = look(&w);
        ck_assert_uint_eq(o->move.allocs.n, 1);
        ck_assert_uint_eq(o->move.n_jobs, 1);
        ck_assert_uint_eq(o->end.allocs.n + o->done.n, 0);
        carry_out(&w, o);
        ck_assert_uint_eq(look(&w)->move.allocs.n, 0); /* its replacement does not run */
        run_all(&w);
        o = look(&w);
        ck_assert_uint_eq(o->move.allocs.n, 0); /* nor long enough */
        if (round < 2)
            ck_assert_int_eq(o->look_again, w.h->now + 10 * SECOND);
        w.h->now += 10 * SECOND;
    }
    ck_assert_uint_eq(look(&w)->done.n, 0);
    h_all_stopped(w.h);
    ck_assert_uint_eq(look(&w)->done.n, 1);
    ck_assert_int_eq(look(&w)->look_again, INT64_MAX);
    world_free(&w);
}
END_TEST

START_TEST(what_never_settles_is_given_up)
{
    struct world w = world(2);

    on_first(&w, "web", JOB_SERVICE, 2);
    drain(&w, "n1", 0, false);
    carry_out(&w, look(&w));
    struct drain_out *o = look(&w); /* the replacement stays pending */
    ck_assert_uint_eq(o->move.allocs.n, 0);
    ck_assert_int_eq(o->look_again, w.h->now + 300 * SECOND);
    w.h->now += 300 * SECOND;
    ck_assert_uint_eq(look(&w)->move.allocs.n, 1);
    world_free(&w);
}
END_TEST

/* Within a deployment the client alone says what settles an allocation. */
START_TEST(health_within_a_deployment_is_told)
{
    struct world w = world(2);

    on_first(&w, "web", JOB_SERVICE, 2);
    drain(&w, "n1", 0, false);
    carry_out(&w, look(&w));
    run_all(&w);
    struct allocation *last = w.h->allocs.v[w.h->allocs.n - 1];
    last->deployment_id = "d";
    w.h->now += 60 * SECOND;
    ck_assert_uint_eq(look(&w)->move.allocs.n, 0);
    last->deployment_status = type_new(last, &type_alloc_deployment_status);
    last->deployment_status->healthy = (struct opt_bool){true, false};
    ck_assert_uint_eq(look(&w)->move.allocs.n, 1);
    world_free(&w);
}
END_TEST

START_TEST(batch_waits_for_the_deadline)
{
    struct world w = world(2);

    on_first(&w, "crunch", JOB_BATCH, 2);
    drain(&w, "n1", 100 * SECOND, false);
    struct drain_out *o = look(&w);
    ck_assert_uint_eq(o->move.allocs.n + o->end.allocs.n + o->done.n, 0);
    ck_assert_int_eq(o->look_again, w.h->now + 100 * SECOND);
    w.h->now += 100 * SECOND - 1;
    ck_assert_uint_eq(look(&w)->end.allocs.n, 0);
    w.h->now++;
    o = look(&w);
    ck_assert_uint_eq(o->end.allocs.n, 2);
    ck_assert_uint_eq(o->move.allocs.n, 0);
    carry_out(&w, o);
    ck_assert_uint_eq(h_live(w.h, "crunch"), 0); /* and is not placed again */
    ck_assert_uint_eq(look(&w)->end.allocs.n, 0);
    h_all_stopped(w.h);
    ck_assert_uint_eq(look(&w)->done.n, 1);
    world_free(&w);
}
END_TEST

START_TEST(system_is_last_or_left)
{
    for (int ignore = 0; ignore <= 1; ignore++) {
        struct world w = world(2);
        on_first(&w, "crunch", JOB_BATCH, 1);
        h_register(w.h, h_job(w.h, "sys", JOB_SYSTEM, 1));
        h_eval(w.h, "sys");
        run_all(&w);
        drain(&w, "n1", 0, ignore);
        ck_assert_uint_eq(look(&w)->move.allocs.n, 0);
        ck_assert_int_eq(look(&w)->look_again, INT64_MAX);
        set_task(&w, h_alloc(w.h, "crunch.web[0]"), ALLOC_COMPLETE, "dead", 1);
        struct drain_out *o = look(&w);
        ck_assert_uint_eq(o->move.allocs.n, ignore ? 0 : 1);
        ck_assert_uint_eq(o->done.n, ignore ? 1 : 0);
        carry_out(&w, o);
        ck_assert_uint_eq(h_live(w.h, "sys"), ignore ? 2 : 1);
        h_all_stopped(w.h);
        ck_assert_uint_eq(look(&w)->done.n, ignore ? 0 : 1); /* ignored: it was done before */
        world_free(&w);
    }
}
END_TEST

START_TEST(force_takes_everything)
{
    struct world w = world(2);

    on_first(&w, "web", JOB_SERVICE, 3);
    on_first(&w, "crunch", JOB_BATCH, 1);
    h_register(w.h, h_job(w.h, "sys", JOB_SYSTEM, 1));
    h_eval(w.h, "sys");
    run_all(&w);
    drain(&w, "n1", -1, false);
    struct drain_out *o = look(&w);
    ck_assert_uint_eq(o->move.allocs.n, 4);
    ck_assert_uint_eq(o->move.n_jobs, 2);
    ck_assert_uint_eq(o->end.allocs.n, 1);
    carry_out(&w, o);
    h_all_stopped(w.h);
    ck_assert_uint_eq(h_live(w.h, "web"), 3);
    ck_assert_uint_eq(look(&w)->done.n, 1);
    world_free(&w);
}
END_TEST

/* A node that does not answer: what is unknown may still run. */
START_TEST(unknown_holds_the_node)
{
    struct world w = world(2);

    on_first(&w, "web", JOB_SERVICE, 1);
    drain(&w, "n1", -1, false);
    struct allocation *a = h_alloc(w.h, "web.web[0]");
    carry_out(&w, look(&w));
    a->client_status = ALLOC_UNKNOWN;
    ck_assert_uint_eq(look(&w)->done.n, 0);
    a->client_status = ALLOC_LOST;
    ck_assert_uint_eq(look(&w)->done.n, 1);
    world_free(&w);
}
END_TEST

/* Two nodes at once share one budget; a stopped job is not the drainer's. */
START_TEST(nodes_share_the_budget)
{
    struct world w = world(4);
    struct job *j = h_job(w.h, "web", JOB_SERVICE, 4);

    j->task_groups.v[0]->migrate->max_parallel.v = 2;
    list_add(w.h, j->constraints, mem_new(w.h, struct constraint));
    j->constraints.v[0]->operand = "distinct_hosts";
    h_register(w.h, j);
    h_eval(w.h, "web");
    run_all(&w);
    w.h->now += 60 * SECOND;
    drain(&w, "n1", 0, false);
    drain(&w, "n2", 0, false);
    drain(&w, "n3", 0, false);
    ck_assert_uint_eq(look(&w)->move.allocs.n, 2);
    /* a silent one does not count as running, and cannot move before it is replaced */
    w.h->allocs.v[0]->client_status = ALLOC_UNKNOWN;
    struct drain_out *o = look(&w);
    ck_assert_uint_eq(o->move.allocs.n, 1);
    ck_assert_str_ne(o->move.allocs.v[0], w.h->allocs.v[0]->id);
    w.h->allocs.v[0]->client_status = ALLOC_RUNNING;
    struct allocation *on_n1 = w.h->allocs.v[0];
    for (size_t i = 1; !str_eq(on_n1->node_name, "n1"); i++)
        on_n1 = w.h->allocs.v[i];
    on_n1->client_status = ALLOC_UNKNOWN;
    ck_assert_uint_eq(look(&w)->move.allocs.n, 1);
    h_latest(w.h, "web")->task_groups.v[0]->count.v = 3; /* as many as are wanted run without it */
    o = look(&w);
    ck_assert_uint_eq(o->move.allocs.n, 3);
    ck_assert_str_eq(o->move.allocs.v[2], on_n1->id);
    h_latest(w.h, "web")->task_groups.v[0]->count.v = 4;
    on_n1->client_status = ALLOC_RUNNING;
    w.h->allocs.v[0]->client_status = ALLOC_UNKNOWN;
    w.h->allocs.v[1]->client_status = ALLOC_UNKNOWN;
    ck_assert_uint_eq(look(&w)->move.allocs.n, 0);
    h_latest(w.h, "web")->stop = true;
    ck_assert_uint_eq(look(&w)->move.allocs.n, 0);
    world_free(&w);
}
END_TEST

START_TEST(migration_forgets_failures)
{
    struct world w = world(2);

    on_first(&w, "web", JOB_SERVICE, 1);
    struct allocation *a = h_alloc(w.h, "web.web[0]");
    a->reschedule_tracker = mem_new(w.h, struct reschedule_tracker);
    list_add(w.h, a->reschedule_tracker->events, mem_new(w.h, struct reschedule_event));
    drain(&w, "n1", 0, false);
    carry_out(&w, look(&w));
    ck_assert_ptr_null(h_alloc(w.h, "web.web[0]")->reschedule_tracker);
    world_free(&w);
}
END_TEST

/* --- simulation --- */

enum { SIM_NODES = 6, SIM_STEPS = 120, SIM_SEEDS = 20 };

static const struct {
    const char *id, *type;
    int64_t count, max_parallel;
} sim_jobs[] = {{"web", JOB_SERVICE, 5, 1}, {"api", JOB_SERVICE, 4, 2}, {"crunch", JOB_BATCH, 3, 0},
                {"sys", JOB_SYSTEM, 1, 0}};

static bool
is_moving(const struct allocation *a)
{
    return alloc_server_terminal(a) ||
           (a->desired_transition != NULL && a->desired_transition->migrate.set);
}

static int64_t
settled(struct world *w, const char *job_id)
{
    int64_t n = 0;

    for (size_t i = 0; i < w->h->allocs.n; i++) {
        const struct allocation *a = w->h->allocs.v[i];
        if (!str_eq(a->job_id, job_id) || alloc_client_terminal(a) || is_moving(a))
            continue;
        bool runs = str_eq(a->client_status, ALLOC_RUNNING) &&
                    a->task_states.v[0].v->started_at + 10 * SECOND <= w->h->now;
        n += runs || a->create_time + 300 * SECOND <= w->h->now;
    }
    return n;
}

static const struct node *
node_of(struct world *w, const struct allocation *a)
{
    for (size_t i = 0; i < w->h->nodes.n; i++)
        if (str_eq(w->h->nodes.v[i]->id, a->node_id))
            return w->h->nodes.v[i];
    return NULL;
}

static bool
overdue(struct world *w, const struct drain_strategy *d)
{
    return d->deadline < 0 || (d->force_deadline != 0 && d->force_deadline <= w->h->now);
}

static void
check_turn(struct world *w, const struct allocation *a)
{
    const struct node *n = node_of(w, a);
    size_t n_on;

    ck_assert_ptr_nonnull(n->drain_strategy);
    ck_assert(!alloc_client_terminal(a) && !is_moving(a));
    if (overdue(w, n->drain_strategy))
        return;
    ck_assert_str_ne(a->job->type, JOB_BATCH);
    if (!str_eq(a->job->type, JOB_SYSTEM))
        return;
    ck_assert(!n->drain_strategy->ignore_system_jobs);
    const struct allocation *const *v = pick(w, n->id, NULL, &n_on);
    for (size_t i = 0; i < n_on; i++)
        ck_assert(alloc_client_terminal(v[i]) || str_eq(v[i]->job->type, JOB_SYSTEM));
}

/* One step of the drainer, judged before and after. */
static void
sim_drain(struct world *w)
{
    int64_t before[ARRAY_LEN(sim_jobs)];
    bool pressed = false;

    for (size_t i = 0; i < ARRAY_LEN(sim_jobs); i++)
        before[i] = settled(w, sim_jobs[i].id);
    for (size_t i = 0; i < w->h->nodes.n; i++)
        pressed |= w->h->nodes.v[i]->drain_strategy != NULL && overdue(w, w->h->nodes.v[i]->drain_strategy);
    struct drain_out *o = look(w);
    for (size_t i = 0; i < o->move.allocs.n; i++)
        check_turn(w, alloc_by_id(w, o->move.allocs.v[i]));
    for (size_t i = 0; i < o->end.allocs.n; i++)
        check_turn(w, alloc_by_id(w, o->end.allocs.v[i]));
    carry_out(w, o);
    for (size_t i = 0; i < ARRAY_LEN(sim_jobs) && !pressed; i++) {
        int64_t floor = sim_jobs[i].count - sim_jobs[i].max_parallel;
        int64_t after = settled(w, sim_jobs[i].id);
        if (str_eq(sim_jobs[i].type, JOB_SERVICE))
            ck_assert_msg(after >= (before[i] < floor ? before[i] : floor),
                          "%s: %lld of %lld settled", sim_jobs[i].id, (long long)after,
                          (long long)sim_jobs[i].count);
    }
    o = look(w);
    ck_assert_uint_eq(o->move.allocs.n + o->end.allocs.n, 0); /* nothing is asked for twice */
    h_check(w->h);
}

/* Does what clients do meanwhile. */
static void
sim_clients(struct world *w, struct rng *r, bool calm)
{
    for (size_t i = 0; i < w->h->allocs.n; i++) {
        struct allocation *a = w->h->allocs.v[i];
        if (alloc_client_terminal(a) || (!calm && rng_below(r, 2) == 0))
            continue;
        if (alloc_server_terminal(a))
            set_task(w, a, ALLOC_COMPLETE, "dead", 1);
        else if (str_eq(a->client_status, ALLOC_PENDING))
            set_task(w, a, ALLOC_RUNNING, "running", w->h->now);
        else if (!calm && rng_below(r, 40) == 0)
            set_task(w, a, ALLOC_RUNNING, "running", w->h->now); /* restarted in place */
        else if (!calm && rng_below(r, 60) == 0 && !str_eq(a->job->type, JOB_SYSTEM))
            h_fail(w->h, a);
        else if (str_eq(a->job->type, JOB_BATCH) && rng_below(r, 30) == 0)
            set_task(w, a, ALLOC_COMPLETE, "dead", 1);
    }
}

static void
sim_operator(struct world *w, struct rng *r)
{
    static const int64_t deadlines[] = {-1, 0, 60 * SECOND, 900 * SECOND};
    struct node *n = w->h->nodes.v[rng_below(r, w->h->nodes.n)];
    size_t draining = 0;

    for (size_t i = 0; i < w->h->nodes.n; i++)
        draining += w->h->nodes.v[i]->drain_strategy != NULL;
    if (n->drain_strategy == NULL && draining < 2 && rng_below(r, 6) == 0) {
        /* one after the other: compilers differ in the order of arguments, and a seed is for all */
        bool ignore_system = rng_below(r, 3) == 0;
        drain(w, n->name, deadlines[rng_below(r, ARRAY_LEN(deadlines))], ignore_system);
    } else if (rng_below(r, 10) == 0) {
        n->drain_strategy = NULL; /* disabled, or opened again after a drain */
        n->scheduling_eligibility = NODE_ELIGIBLE;
    }
}

/* Somebody looks after the fleet again. */
static void
sim_open(struct world *w)
{
    for (size_t i = 0; i < w->h->nodes.n; i++)
        if (w->h->nodes.v[i]->drain_strategy == NULL)
            w->h->nodes.v[i]->scheduling_eligibility = NODE_ELIGIBLE;
}

static void
sim_run(uint64_t seed)
{
    struct world w = world(SIM_NODES);
    struct rng r = rng_seed(seed, 1);

    for (size_t i = 0; i < ARRAY_LEN(sim_jobs); i++) {
        struct job *j = h_job(w.h, sim_jobs[i].id, sim_jobs[i].type, sim_jobs[i].count);
        if (j->task_groups.v[0]->migrate != NULL)
            j->task_groups.v[0]->migrate->max_parallel.v = sim_jobs[i].max_parallel;
        h_register(w.h, j);
    }
    for (int step = 0; step < SIM_STEPS * 4; step++) {
        bool calm = step >= SIM_STEPS; /* operators and failures rest: every drain must end */
        if (calm)
            sim_open(&w);
        else
            sim_operator(&w, &r);
        for (size_t i = 0; i < ARRAY_LEN(sim_jobs); i++)
            if (calm || rng_below(&r, 3) == 0)
                h_eval(w.h, sim_jobs[i].id);
        sim_clients(&w, &r, calm);
        w.h->now += (int64_t)rng_below(&r, 15) * SECOND;
        sim_drain(&w);
    }
    for (size_t i = 0; i < w.h->nodes.n; i++)
        ck_assert_msg(w.h->nodes.v[i]->drain_strategy == NULL, "seed %llu: %s still drains",
                      (unsigned long long)seed, w.h->nodes.v[i]->name);
    world_free(&w);
}

START_TEST(simulation)
{
    const char *one = secure_getenv("PADDOCK_SEED");
    uint64_t only;

    if (one != NULL) {
        ck_assert_int_eq(num_parse_u64(one, &only), 0);
        sim_run(only);
        return;
    }
    for (uint64_t seed = 1; seed <= SIM_SEEDS; seed++)
        sim_run(seed);
}
END_TEST

TEST_SUITE("drain", room, services_wait_for_each_other, what_never_settles_is_given_up,
           health_within_a_deployment_is_told,
           batch_waits_for_the_deadline, system_is_last_or_left, force_takes_everything,
           unknown_holds_the_node, nodes_share_the_budget, migration_forgets_failures, simulation)
