/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices over many evaluations: a thousand random jobs on forty nodes with eight GPUs of two
 * models, of which none is given twice and none is withheld; and small cases beside the fewest
 * nodes that an exact solver needs.
 */
#include <stdio.h>
#include <string.h>

#include "api/device/device.h"
#include "common/str.h"
#include "server/sched/device.h"
#include "tests/lib/test.h"
#include "tests/server/sched/harness.h"

enum {
    MODELS = 2,
    EACH = 4, /* of a model on a node */
    NODES = 40,
    JOBS = 1000,
    SMALL_JOBS = 8,
    SMALL_NODES = 8,
    CASES = 200,
    SHARE_CPU = 400, /* beside each GPU */
    SHARE_MB = 800
};

static const char *const models[MODELS] = {"acme/gpu/a", "acme/gpu/b"};

static void
put_models(struct node *n)
{
    for (int m = 0; m < MODELS; m++) {
        struct node_device_resource *g = mem_new(n, struct node_device_resource);
        *g = (struct node_device_resource){.vendor = "acme", .type = "gpu", .name = m ? "b" : "a"};
        for (int i = 0; i < EACH; i++) {
            struct node_device *d = mem_new(g, struct node_device);
            *d = (struct node_device){.id = mem_printf(d, "%s-%c%d", n->name, 'a' + m, i),
                                      .healthy = true};
            list_add(g, g->instances, d);
        }
        list_add(n, n->node_resources->devices, g);
    }
}

/* A job whose share of a node is that of its GPUs. */
static void
put_job(struct harness *h, const char *id, const char *kind, int64_t gpus)
{
    struct job *j = h_job(h, id, JOB_SERVICE, 1);
    struct resources *r = j->task_groups.v[0]->tasks.v[0]->resources;
    struct requested_device *d = mem_new(j, struct requested_device);
    *d = (struct requested_device){.name = kind, .count = {true, gpus}};
    list_add(j, r->devices, d);
    r->cpu.v = SHARE_CPU * gpus;
    r->memory_mb.v = SHARE_MB * gpus;
    h_register(h, j);
    h_eval(h, id);
}

static struct allocation *
live_of(struct harness *h, const char *id)
{
    for (size_t i = 0; i < h->allocs.n; i++)
        if (str_eq(h->allocs.v[i]->job_id, id) && !alloc_terminal(h->allocs.v[i]))
            return h->allocs.v[i];
    return NULL;
}

/* --- many --- */

struct held {
    size_t of[MODELS];
};

/* Counts each node's instances in use; aborts where one is used twice. */
static void
count_held(struct harness *h, struct held *ret)
{
    auto_mem void *ctx = mem_ctx("held");
    for (size_t k = 0; k < h->nodes.n; k++) {
        struct str_list used = {NULL, 0};
        ret[k] = (struct held){{0}};
        for (size_t i = 0; i < h->allocs.n; i++)
            if (!alloc_terminal(h->allocs.v[i]) &&
                str_eq(h->allocs.v[i]->node_id, h->nodes.v[k]->id))
                ck_assert_msg(device_take(ctx, &used, h->allocs.v[i]), "twice on node %zu", k);
        for (size_t i = 0; i < used.n; i++)
            ret[k].of[str_prefix(used.v[i], models[1])]++;
    }
}

static bool
could_be(const struct held *held, size_t model, int64_t gpus)
{
    for (size_t k = 0; k < NODES; k++)
        for (size_t m = 0; m < MODELS; m++)
            if ((model == MODELS || model == m) && held[k].of[m] + (size_t)gpus <= EACH)
                return true;
    return false;
}

/* The instances of a live allocation are of its own node, one model, and as many as were asked. */
static void
check_given(struct harness *h, const struct allocation *a, size_t model, int64_t gpus)
{
    const struct allocated_device_resource *d = a->allocated_resources->tasks.v[0].v->devices.v[0];
    char prefix[32];
    ck_assert_uint_eq(a->allocated_resources->tasks.v[0].v->devices.n, 1);
    ck_assert_uint_eq(d->device_ids.n, (size_t)gpus);
    ck_assert(model == MODELS || str_eq(d->name, model == 0 ? "a" : "b"));
    for (size_t i = 0; i < h->nodes.n; i++)
        if (str_eq(h->nodes.v[i]->id, a->node_id))
            (void)snprintf(prefix, sizeof(prefix), "%s-%s", h->nodes.v[i]->name, d->name);
    for (size_t i = 0; i < d->device_ids.n; i++)
        ck_assert_msg(str_prefix(d->device_ids.v[i], prefix), "%s", d->device_ids.v[i]);
}

START_TEST(a_thousand_jobs)
{
    static struct held held[NODES];
    struct harness *h = h_new();
    struct rng rng = rng_seed(40, 8);
    size_t refused = 0, placed = 0;
    for (int i = 0; i < NODES; i++)
        put_models(h_node(h, mem_printf(h, "n%02d", i)));
    for (int i = 0; i < JOBS; i++) {
        const char *id = mem_printf(h, "j%d", i);
        size_t model = rng_below(&rng, MODELS + 1);
        int64_t gpus = 1 + (int64_t)rng_below(&rng, EACH);
        count_held(h, held);
        bool fits = could_be(held, model, gpus);
        put_job(h, id, model == MODELS ? "gpu" : models[model], gpus);
        struct allocation *a = live_of(h, id);
        ck_assert_msg((a != NULL) == fits, "job %d: %s of %zu", i, fits ? "withheld" : "given",
                      model);
        if (a != NULL)
            check_given(h, a, model, gpus);
        placed += a != NULL;
        refused += a == NULL;
        /* others end: about as much as comes */
        size_t at = rng_below(&rng, h->allocs.n + 1);
        if (i > JOBS / 6 && at < h->allocs.n)
            h->allocs.v[at]->client_status = ALLOC_COMPLETE;
    }
    count_held(h, held);
    h_check(h);
    printf("# %zu placed, %zu refused\n", placed, refused);
    ck_assert_uint_gt(placed, JOBS / 4);
    ck_assert_uint_gt(refused, JOBS / 20);
    h_free(h);
}
END_TEST

/* --- few --- */

struct wish {
    size_t model;
    int64_t gpus;
};

/* Returns the fewest nodes that hold all: by sets of jobs, those that one node holds first. */
static int
fewest(const struct wish *v)
{
    static int need[1 << SMALL_JOBS];
    for (int set = 1; set < 1 << SMALL_JOBS; set++) {
        int64_t sum[MODELS] = {0};
        for (int i = 0; i < SMALL_JOBS; i++)
            if (set >> i & 1)
                sum[v[i].model] += v[i].gpus;
        need[set] = sum[0] <= EACH && sum[1] <= EACH ? 1 : SMALL_JOBS;
        for (int part = (set - 1) & set; part > 0; part = (part - 1) & set)
            if (need[part] + need[set ^ part] < need[set])
                need[set] = need[part] + need[set ^ part];
    }
    return need[(1 << SMALL_JOBS) - 1];
}

static int
nodes_in_use(struct harness *h)
{
    int n = 0;
    for (size_t k = 0; k < h->nodes.n; k++) {
        bool used = false;
        for (size_t i = 0; i < h->allocs.n; i++)
            used = used || str_eq(h->allocs.v[i]->node_id, h->nodes.v[k]->id);
        n += used;
    }
    return n;
}

START_TEST(beside_an_exact_solver)
{
    struct rng rng = rng_seed(2, 2);
    int ours = 0, best = 0, equal = 0;
    for (int c = 0; c < CASES; c++) {
        struct harness *h = h_new();
        struct wish v[SMALL_JOBS];
        for (int i = 0; i < SMALL_NODES; i++)
            put_models(h_node(h, mem_printf(h, "n%02d", i)));
        for (int i = 0; i < SMALL_JOBS; i++) {
            v[i] = (struct wish){rng_below(&rng, MODELS), 1 + (int64_t)rng_below(&rng, EACH)};
            put_job(h, mem_printf(h, "j%d", i), models[v[i].model], v[i].gpus);
            ck_assert_ptr_nonnull(live_of(h, mem_printf(h, "j%d", i)));
        }
        int used = nodes_in_use(h), least = fewest(v);
        ck_assert_int_ge(used, least);
        ours += used;
        best += least;
        equal += used == least;
        h_free(h);
    }
    printf("# %d cases: %d nodes, the fewest are %d (%.1f %% more); %d as few as can be\n", CASES,
           ours, best, 100.0 * (ours - best) / best, equal);
    ck_assert_int_le(100 * ours, 102 * best);
}
END_TEST

TEST_SUITE_TIMEOUT("device-many", 120, a_thousand_jobs, beside_an_exact_solver)
