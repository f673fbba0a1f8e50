/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan applier's judgement: what is committed of a plan, whole or in part. And garbage collection,
 * which reads the same state.
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/volume/volume.h"
#include "common/duration.h"
#include "server/leader/deploy_step.h"
#include "server/leader/gc.h"
#include "server/leader/plan.h"
#include "server/sched/reconcile.h"
#include "server/state/write.h"
#include "tests/server/util.h"

struct world {
    struct state *state;
    struct live *live;
    uint64_t index;
    struct plan plan;
    struct plan_verdict verdict;
    struct state_txn *txn;
    const struct quota_room *quota;
};

static struct world *
world_new(void)
{
    struct world *w = mem_new(NULL, struct world);
    struct err e = ERR_INIT;
    bool fresh;

    ck_assert_msg(state_open(tmp_dir(), "boot", 64 << 20, &w->state, &fresh, &e) == 0, "%s", e.text);
    w->live = live_new(w);
    w->index = 100;
    w->plan = (struct plan){.eval_id = "e", .priority = 50};
    return w;
}

static void
world_free(struct world *w)
{
    state_read_end(w->txn);
    mem_free(w->live);
    state_close(w->state);
    talloc_free(w);
}

static struct node *
add_node(struct world *w, const char *id, const char *status)
{
    struct node *n = make_node(w, id);
    struct node_network_resource *nn = mem_new(w, struct node_network_resource);
    struct node_network_address *a = mem_new(w, struct node_network_address);

    n->status = status;
    n->scheduling_eligibility = NODE_ELIGIBLE;
    n->node_resources = mem_new(w, struct node_resources);
    n->node_resources->cpu = mem_new(w, struct node_cpu_resources);
    n->node_resources->cpu->cpu_shares = 1000;
    n->node_resources->memory = mem_new(w, struct node_memory_resources);
    n->node_resources->memory->memory_mb = 1000;
    n->node_resources->disk = mem_new(w, struct node_disk_resources);
    n->node_resources->disk->disk_mb = 1000;
    a->address = "10.0.0.1";
    list_add(w, nn->addresses, a);
    list_add(w, n->node_resources->node_networks, nn);
    n->modify_index = ++w->index;
    live_node(w->live, n);
    return n;
}

static struct allocation *
alloc_of(struct world *w, const char *id, const char *node, int64_t mb, int64_t port)
{
    static const struct job j = {.id = "job", .namespace = NS_DEFAULT};
    struct allocation *a = make_alloc(w, &j, id, node);
    struct allocated_resources *r = a->allocated_resources = mem_new(w, struct allocated_resources);
    struct allocated_task_resources *t = mem_new(w, struct allocated_task_resources);

    t->memory = mem_new(w, struct allocated_memory_resources);
    t->memory->memory_mb = mb;
    map_put(w, r->tasks, "t")->v = t;
    r->shared = mem_new(w, struct allocated_shared_resources);
    if (port > 0) {
        struct allocated_port_mapping *m = mem_new(w, struct allocated_port_mapping);
        m->label = "http";
        m->value = port;
        m->host_ip = "10.0.0.1";
        list_add(w, r->shared->ports, m);
    }
    return a;
}

/* Runs on the node already. */
static struct allocation *
existing(struct world *w, const char *id, const char *node, int64_t mb, int64_t port)
{
    struct allocation *a = alloc_of(w, id, node, mb, port);
    auto_mem void *tmp = mem_ctx("write");
    struct state_txn *t = state_write_begin(w->state, tmp);

    a->client_status = ALLOC_RUNNING;
    state_put_alloc(t, ++w->index, a, 1);
    state_commit(t);
    live_alloc(w->live, a, w->index);
    return a;
}

static void
place(struct world *w, struct allocation *a)
{
    list_add(w, w->plan.node_allocation, a);
}

static void
stop(struct world *w, const struct allocation *a, const char *desc)
{
    struct allocation *s = mem_new(w, struct allocation);

    s->id = a->id;
    s->node_id = a->node_id;
    s->desired_status = ALLOC_DESIRED_STOP;
    s->desired_description = desc;
    list_add(w, w->plan.node_update, s);
}

static void
verify(struct world *w)
{
    state_read_end(w->txn);
    w->txn = state_read_begin(w->state, w);
    plan_sort(&w->plan);
    struct plan_check *v = plan_check_new(w, w->live, &w->plan, w->quota);
    while (!plan_check_step(v, w->txn, 2, &w->verdict)) /* in the smallest of steps */
        ;
}

static size_t
placed(const struct world *w)
{
    return w->verdict.result ? w->verdict.result->placed.n : 0;
}

static size_t
stopped(const struct world *w)
{
    return w->verdict.result ? w->verdict.result->stopped.n : 0;
}

START_TEST(fits_whole)
{
    struct world *w = world_new();

    add_node(w, "n1", NODE_READY);
    place(w, alloc_of(w, "a1", "n1", 400, 0));
    place(w, alloc_of(w, "a2", "n1", 600, 0));
    verify(w);
    ck_assert_uint_eq(placed(w), 2);
    ck_assert_uint_eq(w->verdict.rejected.n, 0);
    world_free(w);
}
END_TEST

/* Another plan was first: what the quota had room for is not there any more. */
START_TEST(a_quota_has_no_room_for_both)
{
    struct world *w = world_new();
    struct quota_room room = {"q", {INT64_MAX, INT64_MAX, 1000}, {1, 100, 500}};

    add_node(w, "n1", NODE_READY);
    add_node(w, "n2", NODE_READY);
    w->quota = &room;
    place(w, alloc_of(w, "a1", "n1", 300, 0));
    place(w, alloc_of(w, "a2", "n2", 200, 0));
    verify(w);
    ck_assert_uint_eq(placed(w), 2);
    room.used.mem = 600;
    verify(w);
    ck_assert_uint_eq(placed(w), 0);
    ck_assert_uint_eq(w->verdict.rejected.n, 2);
    ck_assert_str_eq(w->verdict.why, "memory exhausted (1100 needed > 1000 limit)");
    world_free(w);

    w = world_new(); /* a stop of the same plan makes room */
    add_node(w, "n1", NODE_READY);
    w->quota = &room;
    stop(w, existing(w, "old", "n1", 300, 0), DESC_UPDATING);
    place(w, alloc_of(w, "a1", "n1", 600, 0));
    verify(w);
    ck_assert_uint_eq(placed(w), 1);
    room.used.mem = 800;
    verify(w);
    ck_assert_uint_eq(placed(w), 0);
    world_free(w);
}
END_TEST

START_TEST(part_of_the_nodes)
{
    struct world *w = world_new();

    add_node(w, "n1", NODE_READY);
    add_node(w, "n2", NODE_READY);
    existing(w, "old", "n2", 800, 0);
    place(w, alloc_of(w, "a1", "n1", 400, 0));
    place(w, alloc_of(w, "a2", "n2", 400, 0));
    verify(w);
    ck_assert_uint_eq(placed(w), 1);
    ck_assert_str_eq(w->verdict.result->placed.v[0]->id, "a1");
    ck_assert_uint_eq(w->verdict.rejected.n, 1);
    ck_assert_str_eq(w->verdict.rejected.v[0], "n2");
    ck_assert_str_eq(w->verdict.why, "memory");
    w->plan.all_at_once = true;
    verify(w);
    ck_assert_ptr_null(w->verdict.result);
    world_free(w);
}
END_TEST

START_TEST(stop_makes_room)
{
    struct world *w = world_new();

    add_node(w, "n1", NODE_READY);
    stop(w, existing(w, "old", "n1", 800, 80), DESC_NOT_NEEDED);
    place(w, alloc_of(w, "a1", "n1", 900, 80));
    verify(w);
    ck_assert_uint_eq(placed(w), 1);
    ck_assert_uint_eq(stopped(w), 1);
    world_free(w);
}
END_TEST

START_TEST(ports_collide)
{
    struct world *w = world_new();

    add_node(w, "n1", NODE_READY);
    existing(w, "old", "n1", 100, 80);
    place(w, alloc_of(w, "a1", "n1", 100, 80));
    verify(w);
    ck_assert_uint_eq(placed(w), 0);
    ck_assert_str_eq(w->verdict.why, "reserved port collision http=80");
    world_free(w);
}
END_TEST

static void
give(struct world *w, struct allocation *a, const char *id)
{
    struct allocated_device_resource *d = mem_new(w, struct allocated_device_resource);

    d->vendor = "acme";
    d->type = "gpu";
    d->name = "one";
    list_add(w, d->device_ids, id);
    list_add(w, a->allocated_resources->tasks.v[0].v->devices, d);
}

/* Two leaders, or two workers, gave the same instance to two allocations. */
START_TEST(devices_collide)
{
    struct world *w = world_new();
    struct allocation *a = alloc_of(w, "a1", "n1", 1, 0), *b = alloc_of(w, "a2", "n1", 1, 0);

    add_node(w, "n1", NODE_READY);
    give(w, a, "0");
    give(w, b, "1");
    place(w, a);
    place(w, b);
    verify(w);
    ck_assert_uint_eq(placed(w), 2);
    give(w, b, "0");
    verify(w);
    ck_assert_uint_eq(placed(w), 0);
    ck_assert_str_eq(w->verdict.why, "device oversubscribed");
    world_free(w);
}
END_TEST

static struct job *
writer_job(struct world *w, const char *ns, const char *mode, bool read_only)
{
    struct job *j = mem_new(w, struct job);
    struct task_group *tg = mem_new(w, struct task_group);
    struct volume_request *v = mem_new(w, struct volume_request);

    j->id = "job";
    j->namespace = ns;
    tg->name = "web";
    v->type = "host";
    v->source = "data";
    v->access_mode = mode;
    v->read_only = read_only;
    map_put(w, tg->volumes, "v")->v = v;
    list_add(w, j->task_groups, tg);
    return j;
}

static struct allocation *
writer(struct world *w, const char *id, const char *ns)
{
    struct allocation *a = alloc_of(w, id, "n1", 1, 0);

    a->namespace = ns;
    a->task_group = "web";
    a->name = mem_printf(w, "%s.web[0]", id);
    return a;
}

/* A group that wants to write to a volume alone does, also where others do not want to. */
START_TEST(writers_collide)
{
    static const char *const many = VOLUME_MULTI_WRITER, *const one = VOLUME_SINGLE_WRITER;
    static const struct {
        const char *has, *wants, *ns;
        bool reads, same_plan, stops, placed;
    } rows[] = {
        {one, one, NS_DEFAULT, false, false, false, false},
        {one, many, NS_DEFAULT, false, false, false, false},
        {many, one, NS_DEFAULT, false, false, false, false},
        {many, many, NS_DEFAULT, false, false, false, true},
        {one, one, "other", false, false, false, false},
        {one, one, NS_DEFAULT, true, false, false, true},
        {one, one, NS_DEFAULT, false, false, true, true},
        {one, one, NS_DEFAULT, false, true, false, false},
        {many, many, NS_DEFAULT, false, true, false, true},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world *w = world_new();
        struct allocation *old = writer(w, "old", rows[i].ns);
        add_node(w, "n1", NODE_READY);
        w->plan.job = writer_job(w, NS_DEFAULT, rows[i].wants, rows[i].reads);
        if (rows[i].same_plan) {
            place(w, old);
        } else {
            auto_mem void *tmp = mem_ctx("write");
            struct state_txn *t = state_write_begin(w->state, tmp);
            struct job *j = writer_job(w, rows[i].ns, rows[i].has, false);
            j->job_modify_index = j->modify_index = ++w->index;
            state_put(t, w->index, JOB_VERSIONS, j);
            old->client_status = ALLOC_RUNNING;
            state_put_alloc(t, ++w->index, old, j->job_modify_index);
            state_commit(t);
            live_alloc(w->live, old, w->index);
        }
        if (rows[i].stops)
            stop(w, old, DESC_NOT_NEEDED);
        place(w, writer(w, "new", NS_DEFAULT));
        verify(w);
        ck_assert_msg((placed(w) > 0) == rows[i].placed, "row %zu: %s", i, w->verdict.why);
        if (!rows[i].placed)
            ck_assert_ptr_nonnull(strstr(w->verdict.why, "a volume has a writer, "));
        world_free(w);
    }
}
END_TEST

START_TEST(status_of_nodes)
{
    static const struct {
        const char *status, *eligibility;
        bool new, update;
    } t[] = {
        {NODE_READY, NODE_ELIGIBLE, true, true},
        {NODE_READY, NODE_INELIGIBLE, false, true},
        {NODE_INIT, NODE_ELIGIBLE, false, true},
        {NODE_DOWN, NODE_ELIGIBLE, false, false},
        {NODE_DISCONNECTED, NODE_ELIGIBLE, false, false},
    };

    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        struct world *w = world_new();
        struct node *n = add_node(w, "n1", t[i].status);
        n->scheduling_eligibility = t[i].eligibility;
        live_node(w->live, n);
        struct allocation *old = existing(w, "old", "n1", 100, 0);
        place(w, alloc_of(w, "a1", "n1", 100, 0));
        verify(w);
        ck_assert_msg((placed(w) == 1) == t[i].new, "new on %s", t[i].status);
        w->plan.node_allocation.n = 0;
        place(w, old);
        verify(w);
        ck_assert_msg((placed(w) == 1) == t[i].update, "update on %s", t[i].status);
        w->plan.node_allocation.n = 0;
        stop(w, old, DESC_LOST);
        verify(w);
        ck_assert_uint_eq(stopped(w), 1);
        world_free(w);
    }
    struct world *w = world_new();
    place(w, alloc_of(w, "a1", "gone", 100, 0));
    verify(w);
    ck_assert_str_eq(w->verdict.why, "node does not exist");
    world_free(w);
}
END_TEST

/* An update whose new half is rejected keeps its old half; what counted on the room goes too. */
START_TEST(update_is_tied)
{
    struct world *w = world_new();
    struct allocation *a, *old;

    add_node(w, "n1", NODE_READY);
    add_node(w, "n2", NODE_READY);
    old = existing(w, "old", "n1", 900, 0);
    existing(w, "full", "n2", 900, 0);
    stop(w, old, DESC_UPDATING);
    a = alloc_of(w, "new", "n2", 900, 0);
    a->previous_allocation = "old";
    place(w, a);
    place(w, alloc_of(w, "other", "n1", 800, 0));
    verify(w);
    ck_assert_ptr_null(w->verdict.result);
    ck_assert_uint_eq(w->verdict.rejected.n, 2);
    /* one that stops in any case does */
    w->plan.node_update.v[0]->desired_description = DESC_MIGRATING;
    verify(w);
    ck_assert_uint_eq(stopped(w), 1);
    ck_assert_uint_eq(placed(w), 1);
    world_free(w);
}
END_TEST

/* A snapshot that is still current needs no second look; a newer change does. */
START_TEST(current_snapshot_is_trusted)
{
    struct world *w = world_new();

    add_node(w, "n1", NODE_READY);
    place(w, alloc_of(w, "a1", "n1", 5000, 0));
    w->plan.snapshot_index = w->index;
    verify(w);
    ck_assert_uint_eq(placed(w), 1);
    existing(w, "late", "n1", 1, 0);
    verify(w);
    ck_assert_uint_eq(placed(w), 0);
    world_free(w);
}
END_TEST

/* n replacements, all on a node that went down. */
static double
reject_many(int n)
{
    struct world *w = world_new();
    struct timespec from, to;

    add_node(w, "n1", NODE_READY);
    add_node(w, "n2", NODE_DOWN);
    for (int i = 0; i < n; i++) {
        struct allocation *a = alloc_of(w, mem_printf(w, "new-%d", i), "n2", 1, 0);
        struct allocation old = {.id = mem_printf(w, "old-%d", i), .node_id = "n1"};
        a->previous_allocation = old.id;
        stop(w, &old, DESC_UPDATING);
        place(w, a);
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    verify(w);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    ck_assert_ptr_null(w->verdict.result);
    world_free(w);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

START_TEST(rejections_cost_what_they_are)
{
    double small = reject_many(2000), big = reject_many(16000);

    printf("# 2,000 rejected replacements: %.1f ms, 16,000: %.1f ms\n", small * 1e3, big * 1e3);
    ck_assert_double_lt(big, 20 * small + 0.02);
}
END_TEST

/* By node, stops first, so that each part may be the last one. */
START_TEST(parts_of_a_plan)
{
    struct world *w = world_new();
    struct plan_at at = {0};
    struct plan_result part;
    size_t stops = 0, places = 0, parts = 0;

    add_node(w, "n1", NODE_READY);
    add_node(w, "n2", NODE_READY);
    for (int i = 0; i < 3; i++)
        stop(w, existing(w, mem_printf(w, "old%d", i), i < 2 ? "n1" : "n2", 300, 0), DESC_NOT_NEEDED);
    for (int i = 0; i < 4; i++)
        place(w, alloc_of(w, mem_printf(w, "a%d", i), i % 2 == 0 ? "n1" : "n2", 200, 0));
    verify(w);
    while (plan_part(&w->verdict, 2, &at, &part)) {
        static const char *const first[] = {"old0", NULL, "old2", NULL};
        ck_assert_uint_le(part.stopped.n + part.placed.n, 2);
        ck_assert_uint_eq(part.stopped.n > 0, first[parts] != NULL);
        if (first[parts] != NULL)
            ck_assert_str_eq(part.stopped.v[0]->id, first[parts]);
        stops += part.stopped.n;
        places += part.placed.n;
        parts++;
    }
    ck_assert_uint_eq(stops, 3);
    ck_assert_uint_eq(places, 4);
    ck_assert_uint_eq(parts, 4);
    world_free(w);
}
END_TEST

START_TEST(live_follows)
{
    struct world *w = world_new();
    struct usage u;

    add_node(w, "n1", NODE_READY);
    struct allocation *a = existing(w, "a", "n1", 300, 0);
    uint32_t row = node_table_find(w->live->nodes, "n1");
    ck_assert_int_eq(w->live->nodes->mem[row], 300);
    live_alloc(w->live, a, ++w->index);
    ck_assert_int_eq(w->live->nodes->mem[row], 300);
    ck_assert(live_holds(w->live, "a", "n1", &u));
    ck_assert(!live_holds(w->live, "a", "n2", &u));
    a->desired_status = ALLOC_DESIRED_STOP; /* it still runs */
    live_alloc(w->live, a, ++w->index);
    ck_assert_int_eq(w->live->nodes->mem[row], 300);
    live_node_gone(w->live, "n1");
    ck_assert_int_eq(w->live->nodes->mem[node_table_find(w->live->nodes, "n1")], 300);
    a->client_status = ALLOC_COMPLETE;
    live_alloc(w->live, a, ++w->index);
    ck_assert_int_eq(w->live->nodes->mem[node_table_find(w->live->nodes, "n1")], 0);
    ck_assert_uint_eq(live_changed(w->live, "n1"), w->index);
    world_free(w);
}
END_TEST

/* --- garbage --- */

static void
put_eval(struct world *w, const char *id, const char *type, const char *status, int64_t age_s)
{
    static const struct job j = {.id = "job", .namespace = NS_DEFAULT};
    auto_mem void *tmp = mem_ctx("write");
    struct state_txn *t = state_write_begin(w->state, tmp);
    struct evaluation *e = make_eval(tmp, &j, id);

    e->type = type;
    e->status = status;
    e->modify_time = (1000000 - age_s) * NS_PER_S;
    state_put(t, ++w->index, EVALS, e);
    state_commit(t);
}

static bool
reaps(const struct str_list *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i], id))
            return true;
    return false;
}

START_TEST(garbage)
{
    struct world *w = world_new();
    static const struct gc_ages none = {0}, ages = {3600, 86400, 14400, 86400};

    put_eval(w, "old", JOB_SERVICE, EVAL_COMPLETE, 4000);
    put_eval(w, "young", JOB_SERVICE, EVAL_COMPLETE, 100);
    put_eval(w, "open", JOB_SERVICE, EVAL_BLOCKED, 90000);
    put_eval(w, "batch", JOB_BATCH, EVAL_COMPLETE, 4000);
    put_eval(w, "ahead", JOB_SERVICE, EVAL_COMPLETE, -4000); /* the clock was set back since */
    /* an evaluation stays as long as an allocation of it runs */
    put_eval(w, "eval-1", JOB_SERVICE, EVAL_COMPLETE, 4000);
    struct allocation *a = existing(w, "a", "n1", 1, 0);
    w->txn = state_read_begin(w->state, w);
    int64_t due = 0;
    struct intent_reap *r = gc_find(w, w->txn, &ages, 1000000 * NS_PER_S, &due);
    /* the young one is the next */
    ck_assert_int_eq(due, (1000000 - 100 + ages.eval_s) * NS_PER_S);
    ck_assert_uint_eq(r->evals.n, 1);
    ck_assert(reaps(&r->evals, "old"));
    ck_assert_uint_eq(r->allocs.n, 0);
    r = gc_find(w, w->txn, &none, 1000000 * NS_PER_S, &due);
    ck_assert(reaps(&r->evals, "young") && reaps(&r->evals, "batch") && reaps(&r->evals, "ahead"));
    ck_assert_int_eq(due, INT64_MAX); /* what has not ended is not waited for */
    ck_assert(!reaps(&r->evals, "open") && !reaps(&r->evals, "eval-1"));
    state_read_end(TAKE(w->txn));
    a->client_status = ALLOC_COMPLETE;
    a->desired_status = ALLOC_DESIRED_STOP;
    auto_mem void *tmp = mem_ctx("write");
    struct state_txn *t = state_write_begin(w->state, tmp);
    state_put_alloc(t, ++w->index, a, 1);
    state_commit(t);
    w->txn = state_read_begin(w->state, w);
    r = gc_find(w, w->txn, &ages, 1000000 * NS_PER_S, &due);
    ck_assert(reaps(&r->evals, "eval-1") && reaps(&r->allocs, "a"));
    world_free(w);
}
END_TEST

/* It was healthy when it was lost; the one in its place is. */
START_TEST(a_lost_canary_is_in_the_way_of_no_promotion)
{
    auto_mem void *ctx = mem_ctx("promotion");
    struct deployment *d = type_new(ctx, &type_deployment);
    struct deployment_state *s = type_new(d, &type_deployment_state);
    struct allocation *v[2];

    d->status = DEPLOYMENT_RUNNING;
    s->desired_canaries = s->desired_total = 1;
    s->auto_promote = true;
    map_put(d, d->task_groups, "g")->v = s;
    for (int i = 0; i < 2; i++) {
        v[i] = type_new(ctx, &type_allocation);
        v[i]->id = i == 0 ? "lost" : "runs";
        v[i]->task_group = "g";
        v[i]->desired_status = i == 0 ? ALLOC_DESIRED_STOP : ALLOC_DESIRED_RUN;
        v[i]->client_status = i == 0 ? ALLOC_LOST : ALLOC_RUNNING;
        v[i]->deployment_status = type_new(v[i], &type_alloc_deployment_status);
        v[i]->deployment_status->healthy = (struct opt_bool){true, true};
        list_add(d, s->placed_canaries, v[i]->id);
    }
    struct deploy_in in = {.d = d,
                           .job = type_new(ctx, &type_job),
                           .allocs = (const struct allocation *const *)v,
                           .n_allocs = 1};
    ck_assert(!deploy_step(ctx, &in).promote); /* of the lost one alone */
    in.n_allocs = 2;
    ck_assert(deploy_step(ctx, &in).promote);
}
END_TEST

TEST_SUITE("plan", a_lost_canary_is_in_the_way_of_no_promotion, fits_whole,
           a_quota_has_no_room_for_both, part_of_the_nodes, stop_makes_room, ports_collide,
           devices_collide, writers_collide, status_of_nodes, update_is_tied,
           current_snapshot_is_trusted, parts_of_a_plan, rejections_cost_what_they_are,
           live_follows, garbage)
