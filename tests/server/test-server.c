/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole server on the loop of the test: a job goes in by RPC, is scheduled by the leader's machines,
 * and a client that is the test itself reports what became of it.
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>

#include "api/terms.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "net/rpc.h"
#include "server/sched/rng.h"
#include "server/server.h"
#include "tests/server/served.h"
#include "tests/server/util.h"

START_TEST(job_becomes_allocation)
{
    struct world *w = world_open(tmp_dir());

    node_up(w);
    const struct job_register_response *r = run_job(w, the_job(w, "web", 1));
    const struct evaluation *e = await_eval(w, r->eval_id);
    ck_assert_str_eq(e->status, EVAL_COMPLETE);
    ck_assert_uint_eq(e->failed_tg_allocs.n, 0);
    const struct alloc_list_response *al = allocs_of(w, "web");
    ck_assert_uint_eq(al->allocations.n, 1);
    ck_assert_str_eq(al->allocations.v[0]->name, "web.web[0]");
    ck_assert_str_eq(al->allocations.v[0]->node_id, node_id);
    ck_assert_str_eq(al->allocations.v[0]->client_status, ALLOC_PENDING);
    ck_assert_ptr_null(al->allocations.v[0]->allocated_resources);

    /* the client's view */
    struct node_client_allocs_request cr = {0};
    const struct node_client_allocs_response *ca =
        NODE_CALL(w, RPC_NODE_GET_CLIENT_ALLOCS, node_client_allocs_response, &cr);
    ck_assert_uint_eq(ca->allocs.n, 1);
    struct alloc_get_allocs_request gr = {.alloc_ids = {&al->allocations.v[0]->id, 1}};
    const struct alloc_get_allocs_response *ar =
        NODE_CALL(w, RPC_ALLOC_GET_ALLOCS, alloc_get_allocs_response, &gr);
    ck_assert_uint_eq(ar->allocs.n, 1);
    ck_assert_uint_eq(ar->jobs.n, 1);
    ck_assert_uint_eq(ar->jobs.v[0]->job_modify_index, ar->allocs.v[0]->job_modify_index);
    ck_assert_int_eq(map_get(ar->allocs.v[0]->alloc->allocated_resources->tasks, "server")
                         ->v->memory->memory_mb, 256);

    report(w, al->allocations.v[0]->id, ALLOC_RUNNING);
    al = allocs_of(w, "web");
    ck_assert_str_eq(al->allocations.v[0]->client_status, ALLOC_RUNNING);
    struct id_request jr = {.id = "web"};
    const struct job_response *job = CALL(w, RPC_JOB_GET_JOB, job_response, &jr);
    ck_assert_str_eq(job->job->status, JOB_STATUS_RUNNING);
    const struct job_summary_response *sum = CALL(w, RPC_JOB_SUMMARY, job_summary_response, &jr);
    ck_assert_int_eq(map_get(sum->job_summary->summary, "web")->v->running, 1);
    world_close(w);
}
END_TEST

START_TEST(counts_change_and_stop)
{
    struct world *w = world_open(tmp_dir());

    node_up(w);
    await_eval(w, run_job(w, the_job(w, "web", 3))->eval_id);
    ck_assert_uint_eq(allocs_of(w, "web")->allocations.n, 3);
    await_eval(w, run_job(w, the_job(w, "web", 5))->eval_id);
    ck_assert_uint_eq(allocs_of(w, "web")->allocations.n, 5);
    await_eval(w, run_job(w, the_job(w, "web", 2))->eval_id);
    const struct alloc_list_response *al = allocs_of(w, "web");
    size_t run = 0;
    for (size_t i = 0; i < al->allocations.n; i++) {
        const struct alloc_list_stub *a = al->allocations.v[i];
        run += str_eq(a->desired_status, ALLOC_DESIRED_RUN);
        if (str_eq(a->desired_status, ALLOC_DESIRED_RUN))
            ck_assert(str_eq(a->name, "web.web[0]") || str_eq(a->name, "web.web[1]"));
    }
    ck_assert_uint_eq(run, 2);
    struct job_deregister_request dr = {.job_id = "web"};
    const struct job_deregister_response *d =
        CALL(w, RPC_JOB_DEREGISTER, job_deregister_response, &dr);
    await_eval(w, d->eval_id);
    al = allocs_of(w, "web");
    for (size_t i = 0; i < al->allocations.n; i++)
        ck_assert_str_eq(al->allocations.v[i]->desired_status, ALLOC_DESIRED_STOP);
    dr.purge = true;
    d = CALL(w, RPC_JOB_DEREGISTER, job_deregister_response, &dr);
    await_eval(w, d->eval_id);
    struct id_request jr = {.id = "web"};
    ck_assert_ptr_null(CALL(w, RPC_JOB_GET_JOB, job_response, &jr)->job);
    world_close(w);
}
END_TEST

START_TEST(blocked_until_there_is_room)
{
    struct world *w = world_open(tmp_dir());
    struct job *big = the_job(w, "big", 2);

    big->task_groups.v[0]->tasks.v[0]->resources->memory_mb.v = 3000;
    node_up(w);
    const struct evaluation *e = await_eval(w, run_job(w, big)->eval_id);
    ck_assert_uint_eq(e->failed_tg_allocs.n, 1);
    const struct alloc_metric *m = e->failed_tg_allocs.v[0].v;
    ck_assert_int_eq(m->nodes_evaluated, 1);
    ck_assert_int_eq(map_get(m->dimension_exhausted, "memory")->v, 1);
    ck_assert_int_eq(map_get(e->queued_allocations, "web")->v, 1);
    ck_assert_uint_eq(map_get(e->plan_annotations->desired_tg_updates, "web")->v->place, 2);
    ck_assert(!str_empty(e->blocked_eval));
    /* the first one ends: its memory is free, and the second is placed without being asked for */
    const struct alloc_list_response *al = allocs_of(w, "big");
    ck_assert_uint_eq(al->allocations.n, 1);
    const char *first = al->allocations.v[0]->id;
    struct alloc_stop_request sr = {.alloc_id = first};
    CALL(w, RPC_ALLOC_STOP, alloc_stop_response, &sr);
    report(w, first, ALLOC_COMPLETE);
    struct rpc_envelope env = {.wait = 5 * NS_PER_S};
    struct id_request req = {.id = e->blocked_eval};
    for (int i = 0; i < 10; i++) {
        const struct eval_response *r = CALL_WITH(w, RPC_EVAL_GET_EVAL, eval_response, &req, &env);
        if (r->eval->modify_index > e->modify_index)
            break;
        env.min_index = r->meta->index;
    }
    for (int i = 0; i < 50; i++) {
        al = allocs_of(w, "big");
        size_t live = 0;
        for (size_t k = 0; k < al->allocations.n; k++)
            live += str_eq(al->allocations.v[k]->desired_status, ALLOC_DESIRED_RUN);
        if (al->allocations.n >= 2 && live == 1)
            break;
        bool never = false;
        loop_run_until(w->loop, &never, 10);
    }
    ck_assert_uint_ge(al->allocations.n, 2);
    world_close(w);
}
END_TEST

START_TEST(refusals_name_the_problem)
{
    struct world *w = world_open(tmp_dir());
    struct job *j = the_job(w, "bad", 1);
    struct job_register_request req = {.job = j};
    struct constraint c = {.l_target = "${attr.kernel.name}", .operand = "regexp", .r_target = "(a)\\1"};

    list_add(w, j->constraints, &c);
    ck_assert_ptr_null(call(w, RPC_JOB_REGISTER, &req));
    ck_assert_int_eq(w->err.code, -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(w->err.text, "back-reference"));
    req.job = NULL;
    ck_assert_ptr_null(call(w, RPC_JOB_REGISTER, &req));
    ck_assert_int_eq(w->err.code, -ERR_INVALID);

    struct job nameless = {.id = NULL};
    req.job = &nameless;
    const struct job_validate_response *v = CALL(w, RPC_JOB_VALIDATE, job_validate_response, &req);
    ck_assert_ptr_nonnull(strstr(v->error, "the job has no ID"));

    node_up(w);
    struct node_update_status_request sr = {.status = NODE_READY};
    struct rpc_envelope thief = {.node_id = node_id, .node_secret = "33333333-3333-4333-8333-333333333333"};
    ck_assert_ptr_null(call_with(w, RPC_NODE_UPDATE_STATUS, &sr, &thief));
    ck_assert_int_eq(w->err.code, -ERR_FORBIDDEN);
    sr.status = NODE_DOWN;
    ck_assert_ptr_null(call_with(w, RPC_NODE_UPDATE_STATUS, &sr, &as_node));
    ck_assert_int_eq(w->err.code, -ERR_INVALID);
    struct id_request ir = {.id = node_id};
    const struct node_response *n = CALL(w, RPC_NODE_GET_NODE, node_response, &ir);
    ck_assert(str_empty(n->node->secret_id));
    ck_assert(str_prefix(n->node->computed_class, "v1:"));
    world_close(w);
}
END_TEST

START_TEST(plan_is_a_dry_run)
{
    struct world *w = world_open(tmp_dir());

    node_up(w);
    struct job_register_request req = {.job = the_job(w, "web", 2), .diff = true};
    const struct job_plan_response *p = CALL(w, RPC_JOB_PLAN, job_plan_response, &req);
    ck_assert_uint_eq(map_get(p->annotations->desired_tg_updates, "web")->v->place, 2);
    ck_assert_str_eq(p->diff->type, "Added");
    ck_assert_uint_eq(p->failed_tg_allocs.n, 0);
    ck_assert_uint_eq(allocs_of(w, "web")->allocations.n, 0);
    await_eval(w, run_job(w, the_job(w, "web", 2))->eval_id);
    req.job = the_job(w, "web", 3);
    p = CALL(w, RPC_JOB_PLAN, job_plan_response, &req);
    const struct desired_updates *du = map_get(p->annotations->desired_tg_updates, "web")->v;
    ck_assert_uint_eq(du->place, 1);
    ck_assert_uint_eq(du->in_place_update, 2);
    ck_assert_str_eq(p->diff->type, "Edited");
    req.job = the_job(w, "web", 2);
    str_map_set(w, &req.job->task_groups.v[0]->tasks.v[0]->env, "A", "b");
    p = CALL(w, RPC_JOB_PLAN, job_plan_response, &req);
    du = map_get(p->annotations->desired_tg_updates, "web")->v;
    ck_assert_uint_eq(du->destructive_update, 1); /* the first of them */
    ck_assert_uint_eq(du->ignore, 1);
    world_close(w);
}
END_TEST

START_TEST(survives_a_restart)
{
    const char *dir = tmp_dir();
    struct world *w = world_open(dir);

    node_up(w);
    await_eval(w, run_job(w, the_job(w, "web", 2))->eval_id);
    world_close(w);
    w = world_open(dir);
    ck_assert_uint_eq(allocs_of(w, "web")->allocations.n, 2);
    await_eval(w, run_job(w, the_job(w, "web", 4))->eval_id);
    ck_assert_uint_eq(allocs_of(w, "web")->allocations.n, 4);
    world_close(w);
}
END_TEST

static size_t
running(struct world *w, const char *job)
{
    const struct alloc_list_response *al = allocs_of(w, job);
    size_t n = 0;

    for (size_t i = 0; i < al->allocations.n; i++)
        n += str_eq(al->allocations.v[i]->desired_status, ALLOC_DESIRED_RUN) &&
             !str_eq(al->allocations.v[i]->client_status, ALLOC_LOST);
    return n;
}

/* Turns the loop until the job has `want` live allocations. */
static void
await_running(struct world *w, const char *job, size_t want)
{
    int64_t end = clock_mono_ns() + 10 * NS_PER_S;

    while (running(w, job) != want) {
        bool never = false;
        ck_assert_msg(clock_mono_ns() < end, "%s: %zu allocations, not %zu", job, running(w, job), want);
        loop_run_until(w->loop, &never, 5);
    }
}

/* An evaluation that waits for capacity waits on after a restart, and is woken by a node. */
START_TEST(blocked_survives_a_restart)
{
    const char *dir = tmp_dir();
    struct world *w = world_open(dir);

    const struct evaluation *e = await_eval(w, run_job(w, the_job(w, "web", 2))->eval_id);
    ck_assert_uint_eq(e->failed_tg_allocs.n, 1);
    world_close(w);
    w = world_open(dir);
    ck_assert_uint_eq(running(w, "web"), 0);
    node_up(w);
    await_running(w, "web", 2);
    world_close(w);
}
END_TEST

/* No heartbeat: down, its allocations lost; back again: work returns. */
START_TEST(silence_loses_the_node)
{
    struct world *w = world_open_with(tmp_dir(), 150);
    struct node_register_request rr = {.node = the_node(w)};
    struct node_update_status_request sr = {.status = NODE_READY};

    NODE_CALL(w, RPC_NODE_REGISTER, node_update_response, &rr);
    NODE_CALL(w, RPC_NODE_UPDATE_STATUS, node_update_response, &sr);
    run_job(w, the_job(w, "web", 1));
    await_running(w, "web", 1);
    const char *first = allocs_of(w, "web")->allocations.v[0]->id;
    await_running(w, "web", 0);
    struct id_request ir = {.id = node_id};
    ck_assert_str_eq(CALL(w, RPC_NODE_GET_NODE, node_response, &ir)->node->status, NODE_DOWN);
    ir.id = first;
    const struct allocation *a = CALL(w, RPC_ALLOC_GET_ALLOC, alloc_response, &ir)->alloc;
    ck_assert_str_eq(a->client_status, ALLOC_LOST);
    ck_assert_str_eq(a->desired_status, ALLOC_DESIRED_STOP);
    NODE_CALL(w, RPC_NODE_UPDATE_STATUS, node_update_response, &sr);
    await_running(w, "web", 1);
    world_close(w);
}
END_TEST

/* The server goes while queries are parked and while one is being answered. */
START_TEST(stops_under_load)
{
    struct world *w = world_open(tmp_dir());
    struct rpc_envelope parked = {.min_index = 1000000, .wait = 60 * NS_PER_S};
    struct id_request req = {.id = "nothing"};
    struct answer *a[40];

    node_up(w);
    for (size_t i = 0; i < ARRAY_LEN(a); i++) {
        a[i] = mem_new(w, struct answer);
        a[i]->w = w;
        struct rpc_request r = {i % 2 ? RPC_JOB_GET_JOB : RPC_JOB_ALLOCATIONS, &req,
                                i < 20 ? &parked : NULL, 60000};
        rpc_send(w->rpc, &r, answered, a[i]);
        if (i == 20) {
            bool never = false;
            loop_run_until(w->loop, &never, 20);
        }
    }
    world_close(w);
}
END_TEST

/* --- many things at once --- */

enum { SOAK_JOBS = 12, SOAK_STEPS = 600 };

struct soak {
    struct world *w;
    struct rng r;
    size_t open; /* calls on their way */
};

static void
soak_done(void *arg, const struct err *e, const void *resp)
{
    struct soak *s = arg;

    (void)resp;
    s->open--;
    if (e != NULL && e->code != -ERR_NOT_FOUND && e->code != -ERR_CONFLICT)
        ck_abort_msg("%s", e->text);
}

static void
soak_send(struct soak *s, enum rpc_id id, const void *req)
{
    s->open++;
    rpc_send(s->w->rpc, &(struct rpc_request){id, req, &as_node, 30000}, soak_done, s);
}

static void
soak_report(struct soak *s)
{
    static const char *const states[] = {ALLOC_RUNNING, ALLOC_RUNNING, ALLOC_COMPLETE, ALLOC_FAILED};
    struct list_request lr = {0};
    const struct alloc_list_response *al = CALL(s->w, RPC_ALLOC_LIST, alloc_list_response, &lr);

    for (size_t i = 0; i < al->allocations.n; i++) {
        const struct alloc_list_stub *st = al->allocations.v[i];
        bool over = str_eq(st->client_status, ALLOC_COMPLETE) || str_eq(st->client_status, ALLOC_FAILED);
        if (over || rng_below(&s->r, 3) == 0)
            continue;
        bool stop = !str_eq(st->desired_status, ALLOC_DESIRED_RUN);
        struct allocation a = {.id = st->id, .client_status = stop ? ALLOC_COMPLETE
                                                 : states[rng_below(&s->r, ARRAY_LEN(states))]};
        struct allocation *v[] = {&a};
        struct node_update_alloc_request req = {.allocs = {v, 1}};
        soak_send(s, RPC_NODE_UPDATE_ALLOC, &req);
    }
}

static void
soak_step(struct soak *s, int i)
{
    char id[16];

    snprintf(id, sizeof(id), "job-%d", (int)rng_below(&s->r, SOAK_JOBS));
    if (i % 20 == 0)
        soak_report(s);
    switch (rng_below(&s->r, 8)) {
    case 0: {
        struct job_deregister_request dr = {.job_id = id, .purge = rng_below(&s->r, 2) == 0};
        soak_send(s, RPC_JOB_DEREGISTER, &dr);
        break;
    }
    case 1: {
        struct job_evaluate_request er = {.job_id = id};
        soak_send(s, RPC_JOB_EVALUATE, &er);
        break;
    }
    default: {
        struct job_register_request rr = {.job = the_job(s->w, id, (int64_t)rng_below(&s->r, 6))};
        if (rng_below(&s->r, 3) == 0)
            str_map_set(s->w, &rr.job->task_groups.v[0]->tasks.v[0]->env, "X", id + 4);
        soak_send(s, RPC_JOB_REGISTER, &rr);
        break;
    }
    }
    bool never = false;
    if (s->open > 8)
        loop_run_until(s->w->loop, &never, 1);
}

/* The leader has nothing left to do: no pending evaluation but delayed ones. */
static bool
soak_idle(struct soak *s)
{
    struct list_request lr = {.status = EVAL_PENDING};
    const struct eval_list_response *el = CALL(s->w, RPC_EVAL_LIST, eval_list_response, &lr);

    for (size_t i = 0; i < el->evaluations.n; i++)
        if (el->evaluations.v[i]->wait_until == 0)
            return false;
    return s->open == 0;
}

/* Whatever the order of events: the node is never over-committed and no place is filled twice. */
START_TEST(soak)
{
    struct soak s = {.w = world_open(tmp_dir()), .r = rng_seed(5, 6)};
    int64_t end = clock_mono_ns() + 40 * NS_PER_S, cpu = 0, mem = 0;
    bool never = false;

    node_up(s.w);
    for (int i = 0; i < SOAK_STEPS; i++)
        soak_step(&s, i);
    while (!soak_idle(&s)) {
        ck_assert_int_lt(clock_mono_ns(), end);
        loop_run_until(s.w->loop, &never, 20);
    }
    struct id_request ir = {.id = node_id};
    const struct allocs_response *ar = CALL(s.w, RPC_NODE_GET_ALLOCS, allocs_response, &ir);
    ck_assert_uint_gt(ar->allocations.n, 10);
    for (size_t i = 0; i < ar->allocations.n; i++) {
        const struct allocation *a = ar->allocations.v[i];
        if (alloc_terminal(a))
            continue;
        struct allocated_task_resources *t = a->allocated_resources->tasks.v[0].v;
        cpu += t->cpu->cpu_shares;
        mem += t->memory->memory_mb;
        for (size_t k = 0; k < i; k++)
            ck_assert_msg(alloc_terminal(ar->allocations.v[k]) ||
                              !str_eq(ar->allocations.v[k]->name, a->name),
                          "%s is live twice", a->name);
    }
    ck_assert_int_le(cpu, 4000);
    ck_assert_int_le(mem, 4096);
    world_close(s.w);
}
END_TEST

START_TEST(what_is_not_there_is_deregistered_already)
{
    struct world *w = world_open(tmp_dir());
    struct job_deregister_request req = {.job_id = "nope", .purge = true};
    const struct job_deregister_response *r =
        CALL(w, RPC_JOB_DEREGISTER, job_deregister_response, &req);
    ck_assert_str_eq(r->eval_id ? r->eval_id : "", "");
    const struct scheduler_configuration_response *c =
        CALL(w, RPC_OPERATOR_SCHEDULER_GET, scheduler_configuration_response, &(struct empty){0});
    ck_assert(c->scheduler_config->preemption_config->system_scheduler_enabled); /* never set */
    world_close(w);
}
END_TEST

/* A caller who waits for what comes after an answer needs an index that is true. */
START_TEST(what_changes_nothing_tells_the_index_of_the_state)
{
    struct world *w = world_open(tmp_dir());
    struct job_deregister_request req = {.job_id = "nope"};
    uint64_t index = run_job(w, the_job(w, "web", 1))->index;
    const struct job_deregister_response *r = CALL(w, RPC_JOB_DEREGISTER, job_deregister_response, &req);
    ck_assert_uint_ge(r->index, index);
    ck_assert_uint_eq(r->job_modify_index, 0);
    struct empty none = {0};
    const struct write_response *g = CALL(w, RPC_SYSTEM_GC, write_response, &none);
    ck_assert_uint_ge(g->index, index);
    world_close(w);
}
END_TEST

START_TEST(a_member_has_an_id_that_stays_and_the_tags_of_nomad)
{
    static const char *const tags[] = {"role", "region", "dc", "build", "rpc_addr", "port", "raft_vsn",
                                       "bootstrap", "expect", "revision", "vsn", "id"};
    const char *dir = tmp_dir();
    char id[UUID_TEXT] = "";
    for (int i = 0; i < 2; i++) {
        struct world *w = world_open(dir);
        struct empty req = {0};
        const struct agent_member *m =
            CALL(w, RPC_STATUS_MEMBERS, server_members_response, &req)->members.v[0];
        for (size_t t = 0; t < ARRAY_LEN(tags); t++)
            ck_assert_msg(str_map_get(&m->tags, tags[t]) != NULL, "%s", tags[t]);
        ck_assert(uuid_valid(str_map_get(&m->tags, "id")));
        if (i > 0)
            ck_assert_str_eq(id, str_map_get(&m->tags, "id"));
        (void)str_copy(id, sizeof(id), str_map_get(&m->tags, "id"));
        world_close(w);
    }
}
END_TEST

START_TEST(an_evaluated_job_tells_its_index)
{
    struct world *w = world_open(tmp_dir());
    const struct job_register_response *r = run_job(w, the_job(w, "web", 1));
    uint64_t index = r->job_modify_index;
    struct job_evaluate_request req = {.job_id = "web"};

    r = CALL(w, RPC_JOB_EVALUATE, job_register_response, &req);
    ck_assert_uint_gt(index, 0);
    ck_assert_uint_eq(r->job_modify_index, index);
    world_close(w);
}
END_TEST

static void
node_refused(struct world *w, enum rpc_id id, const void *req, const struct rpc_envelope *env, int code)
{
    ck_assert_msg(call_with(w, id, req, env) == NULL, "%s was answered", rpc_method_by_id(id)->name);
    ck_assert_msg(w->err.code == code, "%s: %s", rpc_method_by_id(id)->name, w->err.text);
}

/* Every method that is a node's own asks for its proof: without one, with a wrong secret, as a node that
 * nobody knows, as another node and as one that was purged it is refused. */
START_TEST(a_node_proves_itself_in_each_call)
{
    static const char other_id[] = "99999999-1111-4111-8111-111111111111";
    static const char other_secret[] = "22222222-9999-4222-8222-222222222222";
    static const char no_id[] = "77777777-1111-4111-8111-111111111111";
    static const struct rpc_envelope nobody = {.node_id = no_id, .node_secret = other_secret};
    static const struct rpc_envelope other = {.node_id = other_id, .node_secret = other_secret};
    struct world *w = world_open(tmp_dir());
    size_t of_nodes = 0;

    node_up(w);
    run_job(w, the_job(w, "web", 1));
    await_running(w, "web", 1);
    struct node_register_request rr = {.node = the_node(w)};
    ck_assert_ptr_null(call_with(w, RPC_NODE_REGISTER, &rr, &other));
    rr.node->id = other_id;
    CALL_WITH(w, RPC_NODE_REGISTER, node_update_response, &rr, &other);

    const struct rpc_envelope thief = {.node_id = node_id, .node_secret = other_secret};
    for (size_t i = 0; i < api_methods_n; i++) {
        const struct rpc_method *m = &api_methods[i];
        if (!str_eq(m->cap, "client"))
            continue;
        of_nodes++;
        const void *req = m->id == RPC_NODE_REGISTER ? &rr : type_new(w, m->req);
        node_refused(w, m->id, req, NULL, -ERR_FORBIDDEN);
        node_refused(w, m->id, req, &thief, -ERR_FORBIDDEN);
        if (m->id != RPC_NODE_REGISTER)
            node_refused(w, m->id, req, &nobody, -ERR_NOT_FOUND);
    }
    ck_assert_uint_eq(of_nodes, 14);

    /* the allocation of one node is not the other's to read */
    const char *id = allocs_of(w, "web")->allocations.v[0]->id;
    struct alloc_get_allocs_request gr = {.alloc_ids = {&id, 1}};
    const struct alloc_get_allocs_response *got =
        NODE_CALL(w, RPC_ALLOC_GET_ALLOCS, alloc_get_allocs_response, &gr);
    ck_assert_uint_eq(got->allocs.n, 1);
    node_refused(w, RPC_ALLOC_GET_ALLOCS, &gr, &other, -ERR_FORBIDDEN);
    struct node_write_request pr = {.node_id = node_id};
    CALL(w, RPC_NODE_PURGE, node_update_response, &pr);
    node_refused(w, RPC_ALLOC_GET_ALLOCS, &gr, &as_node, -ERR_NOT_FOUND);
    world_close(w);
}
END_TEST

static bool refuse;

static bool
may_unless_refused(const struct rpc_envelope *env, const char *ns)
{
    (void)env;
    ck_assert_str_eq(ns, "default");
    return !refuse;
}

/* A request of the type that names the one job, or what belongs to it. */
static void *
request_of(struct world *w, const struct rpc_method *m, const char *const ids[4])
{
    static const char *const of[] = {"Job.", "Alloc.", "Eval.", "Deployment."};
    void *req = type_new(w, m->req);
    struct job **job = type_member(m->req, req, "Job");

    if (job != NULL && m->req == &type_job_register_request)
        *job = the_job(w, ids[0], 2);
    const char **id = type_member(m->req, req, "ID");
    for (size_t i = 0; id != NULL && i < ARRAY_LEN(of); i++)
        if (str_prefix(m->name, of[i]))
            *id = ids[i];
    if (m->id == RPC_NODE_GET_ALLOCS)
        *id = node_id;
    static const char *const named[] = {"JobID", "AllocID", "EvalID", "DeploymentID"};
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if ((id = type_member(m->req, req, named[i])) != NULL && m->req != &type_list_request)
            *id = ids[i];
    if ((id = type_member(m->req, req, "Context")) != NULL)
        *id = "all";
    struct str_list *healthy = type_member(m->req, req, "HealthyAllocationIDs");
    if (healthy != NULL)
        *healthy = (struct str_list){(const char **)(uintptr_t)&ids[1], 1};
    return req;
}

/* False: the call failed, or it reads and what it says is nothing of the job. */
static bool
tells_of_the_job(struct world *w, const struct rpc_method *m, const char *const ids[4], const char *ns)
{
    const struct rpc_envelope env = {.namespace = ns};
    const void *resp = call_with(w, m->id, request_of(w, m, ids), &env);
    auto_buf struct buf b = BUF_INIT(4 << 20);

    if (resp == NULL || !(m->flags & RPC_READ))
        return resp != NULL;
    json_encode(&b, m->resp, resp, 0);
    bool told = false;
    for (size_t i = 0; i < 4; i++)
        told |= strstr(buf_str(&b), ids[i]) != NULL;
    return told;
}

/* Every method that is in a namespace, walked from the table of methods: who may not, is told of nothing
 * there and changes nothing. */
START_TEST(nothing_goes_around_the_question_who_may)
{
    world_may = may_unless_refused;
    struct world *w = world_open(tmp_dir());
    world_may = NULL;
    node_up(w);
    struct job *j = the_job(w, "hidden-job", 1);
    await_eval(w, run_job(w, j)->eval_id);
    const struct alloc_list_stub *a = allocs_of(w, "hidden-job")->allocations.v[0];
    struct id_request jr = {.id = "hidden-job"};
    struct list_request lr = {0};
    const struct deployment_list_response *dl = CALL(w, RPC_DEPLOYMENT_LIST, deployment_list_response, &lr);
    ck_assert_uint_gt(dl->deployments.n, 0);
    const char *const ids[] = {"hidden-job", a->id, a->eval_id, dl->deployments.v[0]->id};
    size_t walked = 0, told = 0;

    for (size_t i = 0; i < api_methods_n; i++) {
        const struct rpc_method *m = &api_methods[i];
        bool of = m->of == &type_job || m->of == &type_allocation || m->of == &type_evaluation;
        if (m->id == RPC_JOB_VALIDATE || (!(m->flags & RPC_NS) && !of))
            continue; /* a validation says what it was given */
        walked++;
        uint64_t index = CALL(w, RPC_JOB_GET_JOB, job_response, &jr)->job->modify_index;
        refuse = true;
        ck_assert_msg(!tells_of_the_job(w, m, ids, NULL), "%s", m->name);
        if (m->flags & RPC_READ)
            ck_assert_msg(!tells_of_the_job(w, m, ids, "*"), "%s of all namespaces", m->name);
        refuse = false;
        const struct job *now = CALL(w, RPC_JOB_GET_JOB, job_response, &jr)->job;
        ck_assert_msg(now != NULL && now->modify_index == index && !now->stop, "%s changed it", m->name);
        if (m->flags & RPC_READ)
            told += tells_of_the_job(w, m, ids, NULL);
    }
    ck_assert_uint_gt(walked, 30);
    ck_assert_uint_gt(told, 15); /* the same requests, of who may */
    world_close(w);
}
END_TEST

TEST_SUITE_TIMEOUT("server", 60, nothing_goes_around_the_question_who_may, a_node_proves_itself_in_each_call,
                   an_evaluated_job_tells_its_index, what_is_not_there_is_deregistered_already,
                   what_changes_nothing_tells_the_index_of_the_state,
                   a_member_has_an_id_that_stays_and_the_tags_of_nomad,
                   job_becomes_allocation, counts_change_and_stop,
                   blocked_until_there_is_room, refusals_name_the_problem, plan_is_a_dry_run,
                   survives_a_restart, blocked_survives_a_restart, silence_loses_the_node,
                   stops_under_load, soak)
