/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole server on the loop of the test, and plans: of a size that no entry of the log may have,
 * on their way while the log stalls, and how long others wait for them.
 */
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/str.h"
#include "server/fsm/fsm.h"
#include "server/leader/leader.h"
#include "server/server.h"
#include "server/state/state.h"
#include "tests/lib/faults.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

enum { WAIT_MS = 60000, NODES = 20 };

struct fx {
    struct loop *loop;
    struct server *s;
};

static void
run_for(struct fx *f, int64_t ms)
{
    bool never = false;
    loop_run_until(f->loop, &never, ms);
}

static const struct agent_server slow_beats = {.min_heartbeat_ttl = 600 * NS_PER_S};

static struct fx *
fx_open(struct server_config *cfg)
{
    struct fx *f = mem_new(NULL, struct fx);
    struct err e = ERR_INIT;
    if (cfg->data_dir == NULL)
        cfg->data_dir = tmp_dir();
    cfg->name = "test.global";
    cfg->rpc_addr = "127.0.0.1:4647";
    cfg->agent = &slow_beats;
    f->loop = loop_new();
    ck_assert_msg(server_new(f->loop, cfg, &f->s, &e) == 0, "%s", e.text);
    ck_assert_msg(server_start(f->s, &e) == 0, "%s", e.text);
    for (int i = 0; i < 2000 && !server_is_leader(f->s); i++)
        run_for(f, 5);
    ck_assert(server_is_leader(f->s));
    return f;
}

static void
stopped(void *arg)
{
    *(bool *)arg = true;
}

static void
fx_close(struct fx *f)
{
    bool done = false;
    server_stop(f->s, stopped, &done);
    ck_assert(loop_run_until(f->loop, &done, WAIT_MS));
    loop_free(f->loop);
    mem_free(f);
}

static void
written(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    (void)index;
    (void)res;
    ck_assert_msg(e == NULL, "%s", e->text);
    *(bool *)arg = true;
}

static void
write_one(struct fx *f, struct intent *in)
{
    bool done = false;
    server_propose(f->s, in, HOME_LOOP, written, &done);
    ck_assert(loop_run_until(f->loop, &done, WAIT_MS));
    mem_free(in);
}

static void
nodes_up(struct fx *f, int n, int64_t mb)
{
    for (int i = 0; i < n; i++) {
        struct intent *in = intent_new(NULL, 0);
        struct node *nd = make_node(in, mem_printf(in, "0000000%x-2222-4333-8444-555555555555", i));
        struct node_resources *r = nd->node_resources = type_new(nd, &type_node_resources);
        struct driver_info *d = type_new(nd, &type_driver_info);
        r->cpu = type_new(nd, &type_node_cpu_resources);
        r->cpu->cpu_shares = 1 << 30;
        r->memory = type_new(nd, &type_node_memory_resources);
        r->memory->memory_mb = mb;
        r->disk = type_new(nd, &type_node_disk_resources);
        r->disk->disk_mb = 1 << 30;
        d->detected = d->healthy = true;
        map_put(nd, nd->drivers, "raw_exec")->v = d;
        in->node_register = type_new(in, &type_intent_node_register);
        in->node_register->node = nd;
        const char *id = mem_strdup(f, nd->id);
        write_one(f, in);
        in = intent_new(NULL, 0);
        in->node_status = type_new(in, &type_intent_node_status);
        in->node_status->node_id = id;
        in->node_status->status = NODE_READY;
        in->node_status->eval_ids = strs(in, mem_printf(in, "eval-of-%d", i), NULL);
        write_one(f, in);
    }
}

static struct intent *
job_intent(const char *id, int64_t count)
{
    struct intent *in = intent_new(NULL, 0);
    struct job *j = make_job(in, id, count);
    struct resources *r = j->task_groups.v[0]->tasks.v[0]->resources = type_new(j, &type_resources);
    r->cpu = (struct opt_i64){true, 1};
    r->memory_mb = (struct opt_i64){true, 1};
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = j;
    in->job_register->eval = make_eval(in, j, mem_printf(in, "eval-%s", id));
    return in;
}

/* The first evaluation of a job, once it is over; owned by f. */
static struct evaluation *
await_eval(struct fx *f, const char *job)
{
    const char *id = mem_printf(f, "eval-%s", job);
    for (int64_t i = 0; i < WAIT_MS; i += 10) {
        struct state_txn *t = server_read_begin(f->s, f);
        struct evaluation *e = state_eval(t, f, id);
        state_read_end(t);
        if (e != NULL && !str_eq(e->status, EVAL_PENDING))
            return e;
        mem_free(e);
        run_for(f, 10);
    }
    ck_abort_msg("the evaluation of %s stays pending", job);
    return NULL;
}

struct counted {
    size_t live, entries;
};

/* Live allocations of a job, and the entries of the log that placed them. */
static struct counted
count(struct fx *f, const char *job)
{
    auto_mem void *tmp = mem_ctx("count");
    struct counted c = {0};
    uint64_t seen[256] = {0};
    struct state_txn *t = server_read_begin(f->s, tmp);
    struct state_iter *it = state_allocs_by_job(t, tmp, "default", job);
    state_iter_live_only(it);
    for (struct allocation *a; (a = state_next(it, tmp)) != NULL; talloc_free(a)) {
        size_t i = 0;
        c.live++;
        while (i < c.entries && seen[i] != a->create_index)
            i++;
        ck_assert_uint_lt(i, ARRAY_LEN(seen));
        seen[i] = a->create_index;
        c.entries += i == c.entries;
    }
    state_read_end(t);
    return c;
}

/* More than an evaluation's time passes while its plan waits for the disk of the log: it is neither
 * given to another worker meanwhile, nor placed twice. */
START_TEST(a_stalled_log_places_nothing_twice)
{
    struct server_config cfg = {.dev = true, .workers = 4, .eval_nack_ms = 200};
    struct fx *f = fx_open(&cfg);
    nodes_up(f, 2, 1000);
    struct intent *in = job_intent("web", 5);
    faults_set(
        "write */raft/log-* 2+ fail ENOSPC\n"); /* the first one is the job, the second the plan */
    write_one(f, in);
    run_for(f, 2000); /* 200 ms, a second until it is tried again, and more */
    ck_assert_uint_gt(faults_made(), 0);
    ck_assert_uint_eq(count(f, "web").live, 0);
    faults_set(NULL);
    ck_assert_str_eq(await_eval(f, "web")->status, EVAL_COMPLETE);
    ck_assert_uint_eq(count(f, "web").live, 5);
    write_one(f, job_intent("next", 1));
    await_eval(f, "next");
    ck_assert_uint_eq(count(f, "web").live, 5);
    fx_close(f);
}
END_TEST

/* Small writes, one after the other; the slowest counts. */
struct probe {
    struct fx *f;
    int64_t since_ns, slowest_ns;
    bool end, idle;
};

static void probe_write(struct probe *p);

static void
probed(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct probe *p = arg;
    int64_t took = clock_mono_ns() - p->since_ns;
    (void)index;
    (void)res;
    ck_assert(e == NULL);
    p->slowest_ns = took > p->slowest_ns ? took : p->slowest_ns;
    p->idle = p->end;
    if (!p->end)
        probe_write(p);
}

static void
probe_write(struct probe *p)
{
    struct intent *in = intent_new(NULL, 0);
    in->noop = type_new(in, &type_empty);
    p->since_ns = clock_mono_ns();
    server_propose(p->f->s, in, HOME_LOOP, probed, p);
    mem_free(in);
}

START_TEST(a_plan_larger_than_an_entry_is_placed)
{
    enum { COUNT = 18000 };
    struct server_config cfg = {.dev = true, .workers = 2};
    struct fx *f = fx_open(&cfg);
    nodes_up(f, NODES, 2000);
    struct probe p = {.f = f};
    probe_write(&p);
    int64_t start = clock_mono_ns();
    write_one(f, job_intent("big", COUNT));
    struct evaluation *e = await_eval(f, "big");
    int64_t took = clock_mono_ns() - start;
    p.end = true;
    ck_assert(loop_run_until(f->loop, &p.idle, WAIT_MS));
    printf("# %d placements in %lld ms, the slowest other write took %lld ms\n", COUNT,
           (long long)(took / NS_PER_MS), (long long)(p.slowest_ns / NS_PER_MS));
    ck_assert_msg(str_eq(e->status, EVAL_COMPLETE), "%s: %s", e->status, e->status_description);
    struct counted c = count(f, "big");
    ck_assert_uint_eq(c.live, COUNT);
    /* no entry keeps the others waiting for all of it */
    ck_assert_uint_ge(c.entries, COUNT / PLAN_PART_MAX);
    fx_close(f);
}
END_TEST

START_TEST(all_at_once_fails_with_words_where_it_cannot_be)
{
    struct server_config cfg = {.dev = true, .workers = 2};
    struct fx *f = fx_open(&cfg);
    nodes_up(f, NODES, 2000);
    struct intent *in = job_intent("big", 18000);
    in->job_register->job->all_at_once = true;
    write_one(f, in);
    struct evaluation *e = await_eval(f, "big");
    ck_assert_str_eq(e->status, EVAL_FAILED);
    ck_assert_msg(strstr(e->status_description, "remove all_at_once") != NULL, "%s",
                  e->status_description);
    ck_assert_int_eq(map_get(e->queued_allocations, "g")->v, 18000);
    ck_assert_uint_eq(count(f, "big").live, 0);
    /* the next one is not kept waiting */
    write_one(f, job_intent("small", 3));
    await_eval(f, "small");
    ck_assert_uint_eq(count(f, "small").live, 3);
    fx_close(f);
}
END_TEST

/* Owned by f. */
static struct allocation_list
live_of(struct fx *f, const char *job)
{
    struct allocation_list l = {NULL, 0};
    struct state_txn *t = server_read_begin(f->s, f);
    struct state_iter *it = state_allocs_by_job(t, f, "default", job);
    state_iter_live_only(it);
    for (struct allocation *a; (a = state_next(it, f)) != NULL;)
        list_add(f, l, a);
    state_read_end(t);
    return l;
}

/* Two of one name, as an older release made them when its log stalled: when one of them moves, its
 * replacement gets a name of its own, and the evaluation comes to its end. */
START_TEST(a_name_borne_twice_is_sorted_out)
{
    struct server_config cfg = {.dev = true, .workers = 1};
    struct fx *f = fx_open(&cfg);
    nodes_up(f, 2, 1000);
    write_one(f, job_intent("web", 2));
    await_eval(f, "web");
    struct allocation_list l = live_of(f, "web");
    ck_assert_uint_eq(l.n, 2);
    struct intent *in = intent_new(NULL, 0);
    struct plan_result *r = in->plan_result = type_new(in, &type_plan_result);
    struct allocation *twin = codec_clone(in, &type_allocation, l.v[0]);
    struct allocation *stop = type_new(in, &type_allocation);
    struct state_txn *t = server_read_begin(f->s, in);
    r->job = state_job(t, in, "default", "web");
    state_read_end(t);
    twin->id = "aaaaaaaa-2222-4333-8444-555555555555";
    twin->previous_allocation = l.v[0]->id;
    stop->id = l.v[1]->id;
    stop->node_id = l.v[1]->node_id;
    stop->desired_status = ALLOC_DESIRED_STOP;
    list_add(in, r->placed, twin);
    list_add(in, r->stopped, stop);
    const char *name = l.v[0]->name, *moved = l.v[0]->id;
    write_one(f, in);
    l = live_of(f, "web");
    ck_assert_uint_eq(l.n, 2);
    ck_assert(str_eq(l.v[0]->name, name) && str_eq(l.v[1]->name, name));
    in = intent_new(NULL, 0);
    in->alloc_transition = type_new(in, &type_intent_alloc_transition);
    in->alloc_transition->alloc_ids = strs(in, moved, NULL);
    in->alloc_transition->transition = type_new(in, &type_desired_transition);
    in->alloc_transition->transition->migrate = (struct opt_bool){true, true};
    list_add(in, in->alloc_transition->evals, make_eval(in, make_job(in, "web", 2), "eval-moved"));
    write_one(f, in);
    ck_assert_str_eq(await_eval(f, "moved")->status, EVAL_COMPLETE);
    l = live_of(f, "web");
    ck_assert_uint_eq(l.n, 2);
    ck_assert(!str_eq(l.v[0]->name, l.v[1]->name));
    fx_close(f);
}
END_TEST

static size_t
evals_of(struct fx *f, const char *job)
{
    size_t n = 0;
    struct state_txn *t = server_read_begin(f->s, f);
    struct state_iter *it = state_evals_by_job(t, f, "default", job);
    for (struct evaluation *e; (e = state_next(it, f)) != NULL;)
        n += str_eq(e->triggered_by, TRIGGER_NODE_UPDATE);
    state_read_end(t);
    return n;
}

START_TEST(a_ready_node_makes_one_evaluation_per_system_job)
{
    struct server_config cfg = {.dev = true, .workers = 2};
    struct fx *f = fx_open(&cfg);
    const char *const types[] = {JOB_SYSTEM, JOB_SYSBATCH, JOB_SERVICE};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        struct intent *in = job_intent(types[i], 1);
        in->job_register->job->type = types[i];
        in->job_register->eval->type = types[i];
        write_one(f, in);
        await_eval(f, types[i]);
    }
    nodes_up(f, 3, 1000);
    for (int64_t i = 0; i < WAIT_MS && count(f, JOB_SYSTEM).live < 3; i += 10)
        run_for(f, 10);
    ck_assert_uint_eq(count(f, JOB_SYSTEM).live, 3);
    write_one(f, job_intent("next", 1));
    await_eval(f, "next");
    ck_assert_uint_eq(evals_of(f, JOB_SYSTEM), 3);
    ck_assert_uint_eq(evals_of(f, JOB_SYSBATCH), 0);
    ck_assert_uint_eq(evals_of(f, JOB_SERVICE), 0);
    fx_close(f);
}
END_TEST

/* --- losing and winning --- */

/* Apply thread: as if another server had led for a moment. */
static void
lose_and_win(void *arg)
{
    struct fx *f = arg;
    auto_mem void *tmp = mem_ctx("win");
    leader_listener.on_lose(server_leader(f->s));
    struct state_txn *t = server_read_begin(f->s, tmp);
    leader_listener.on_leader(server_leader(f->s), t);
    state_read_end(t);
}

static struct server_figures
settled(struct fx *f)
{
    struct server_figures g = {0};
    for (int64_t i = 0; i < WAIT_MS; i += 10) {
        run_for(f, 10);
        server_figures(f->s, &g);
        if (g.evals_blocked == 1 &&
            g.evals_ready + g.evals_unacked + g.evals_pending + g.plans == 0)
            return g;
    }
    ck_abort_msg("%zu blocked, %zu ready, %zu unacked, %zu pending evaluations, %zu plans",
                 g.evals_blocked, g.evals_ready, g.evals_unacked, g.evals_pending, g.plans);
    return g;
}

/* In the middle of its work, again and again: nothing is lost, nothing is placed twice, and what
 * its controllers hold in the end is what those of a leader hold that has just started. */
START_TEST(who_loses_and_wins_is_as_a_new_leader)
{
    enum { JOBS = 40 };
    struct server_config cfg = {.dev = true, .workers = 4};
    struct fx *f = fx_open(&cfg);
    nodes_up(f, NODES, 1000);
    struct intent *big = job_intent("big", 1);
    big->job_register->job->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 2000;
    write_one(f, big);
    await_eval(f, "big");
    bool done[JOBS] = {false};
    for (int i = 0; i < JOBS; i++) {
        struct intent *in = job_intent(mem_printf(f, "job-%d", i), 10);
        server_propose(f->s, in, HOME_LOOP, written, &done[i]);
        mem_free(in);
        ck_assert(server_post_apply(f->s, lose_and_win, f));
        run_for(f, i % 4);
    }
    for (int i = 0; i < JOBS; i++) {
        const char *job = mem_printf(f, "job-%d", i);
        ck_assert_str_eq(await_eval(f, job)->status, EVAL_COMPLETE);
        ck_assert_uint_eq(count(f, job).live, 10);
    }
    struct server_figures won = settled(f);
    ck_assert_uint_eq(won.heartbeats, NODES);
    fx_close(f);
    f = fx_open(&cfg);
    struct server_figures fresh = settled(f);
    ck_assert_uint_eq(won.heartbeats, fresh.heartbeats);
    ck_assert_uint_eq(won.evals_waiting, fresh.evals_waiting);
    fx_close(f);
}
END_TEST

TEST_SUITE_TIMEOUT("server-plan", 120, a_stalled_log_places_nothing_twice,
                   a_plan_larger_than_an_entry_is_placed, a_name_borne_twice_is_sorted_out,
                   all_at_once_fails_with_words_where_it_cannot_be,
                   a_ready_node_makes_one_evaluation_per_system_job,
                   who_loses_and_wins_is_as_a_new_leader)
