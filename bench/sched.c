/* SPDX-License-Identifier: Apache-2.0
 *
 * Placements per second of the pure scheduler on 10,000 nodes: few large jobs, many small ones,
 * with constraints and with ports. In memory, one thread, in processor time; what a plan places is
 * added to the table.
 */
#include <stdio.h>
#include <time.h>

#include "api/canonical.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/resources.h"
#include "server/sched/sched.h"

enum { NODES = 10000, CLASSES = 64 };

static struct node *
make_node(const void *ctx, int i)
{
    struct node *n = mem_new(ctx, struct node);
    struct node_network_resource *nn = mem_new(n, struct node_network_resource);
    struct node_network_address *a = mem_new(n, struct node_network_address);
    struct driver_info *d = mem_new(n, struct driver_info);
    char key[32];

    n->id = mem_printf(n, "00000000-0000-4000-8000-%012x", i);
    n->name = mem_printf(n, "node-%d", i);
    n->datacenter = "dc1";
    n->node_pool = POOL_DEFAULT;
    n->status = NODE_READY;
    str_map_set(n, &n->meta, "rack", mem_printf(n, "r%d", i % CLASSES));
    for (int k = 0; k < 40; k++) {
        snprintf(key, sizeof(key), "fact.%d", k);
        str_map_set(n, &n->attributes, key, "some value of it");
    }
    d->detected = d->healthy = true;
    map_put(n, n->drivers, "exec")->v = d;
    n->node_resources = mem_new(n, struct node_resources);
    n->node_resources->cpu = mem_new(n, struct node_cpu_resources);
    n->node_resources->cpu->cpu_shares = 16000 + 1000 * (i % 7);
    n->node_resources->memory = mem_new(n, struct node_memory_resources);
    n->node_resources->memory->memory_mb = 65536;
    n->node_resources->disk = mem_new(n, struct node_disk_resources);
    n->node_resources->disk->disk_mb = 1 << 20;
    a->address = "10.0.0.1";
    list_add(n, nn->addresses, a);
    list_add(n, n->node_resources->node_networks, nn);
    return n;
}

static const struct job *the_job;

static const struct job *
view_job(struct sched_view *v, const char *ns, const char *id)
{
    (void)v;
    (void)ns;
    (void)id;
    return the_job;
}

static const struct allocation *const *
view_none(struct sched_view *v, const char *a, const char *b, size_t *ret_n)
{
    (void)v;
    (void)a;
    (void)b;
    *ret_n = 0;
    return NULL;
}

static const struct allocation *const *
view_none_on_node(struct sched_view *v, const void *ctx, const char *id, size_t *ret_n)
{
    (void)ctx;
    return view_none(v, id, NULL, ret_n);
}

static const struct deployment *
view_no_deployment(struct sched_view *v, const char *ns, const char *id)
{
    (void)v;
    (void)ns;
    (void)id;
    return NULL;
}

static const struct node_pool *
view_no_pool(struct sched_view *v, const char *name)
{
    (void)v;
    (void)name;
    return NULL;
}

static const struct sched_view_ops ops = {view_job, view_none, view_none_on_node,
                                          view_no_deployment, .node_pool = view_no_pool};

static struct job *
make_job(const void *ctx, int64_t count, bool constrained, bool port)
{
    struct job *j = mem_new(ctx, struct job);
    struct task_group *tg = mem_new(j, struct task_group);
    struct task *t = mem_new(j, struct task);

    j->id = j->name = "bench";
    j->type = JOB_SERVICE;
    tg->name = "g";
    tg->count = (struct opt_i64){true, count};
    t->name = "t";
    t->driver = "exec";
    t->resources = mem_new(j, struct resources);
    t->resources->cpu = (struct opt_i64){true, 10};
    t->resources->memory_mb = (struct opt_i64){true, 32};
    list_add(j, tg->tasks, t);
    list_add(j, j->task_groups, tg);
    if (constrained) {
        struct constraint *c = mem_new(j, struct constraint);
        c->l_target = "${meta.rack}";
        c->operand = "regexp";
        c->r_target = "^r[1-4]";
        list_add(j, tg->constraints, c);
    }
    if (port) {
        struct network_resource *nr = mem_new(j, struct network_resource);
        struct port *p = mem_new(j, struct port);
        p->label = "http";
        list_add(j, nr->dynamic_ports, p);
        list_add(j, tg->networks, nr);
    }
    job_canonicalize(j, j);
    return j;
}

/* Processor time: other programs on the machine do not count. */
static double
cpu_s(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Half of the racks, and even over these. */
static struct job *
make_spread(const void *ctx, int64_t count)
{
    struct job *j = make_job(ctx, count, false, false);
    struct task_group *tg = j->task_groups.v[0];
    struct constraint *c = mem_new(j, struct constraint);
    struct spread *s = mem_new(j, struct spread);
    char *half = mem_strdup(j, "r0");

    for (int i = 1; i < CLASSES / 2; i++)
        half = mem_printf(j, "%s,r%d", half, i);
    c->l_target = s->attribute = "${meta.rack}";
    c->operand = "set_contains_any";
    c->r_target = half;
    s->weight = (struct opt_i64){true, 50};
    list_add(j, tg->constraints, c);
    list_add(j, tg->spreads, s);
    return j;
}

static double run_job(struct node_table *nodes, const char *what, int jobs);

static double
run(struct node_table *nodes, const char *what, int jobs, int64_t count, bool constrained,
    bool port)
{
    void *ctx = mem_ctx("job");

    the_job = make_job(ctx, count, constrained, port);
    double rate = run_job(nodes, what, jobs);
    talloc_free(ctx);
    return rate;
}

static void
run_spread(struct node_table *nodes, const char *what, int jobs, int64_t count)
{
    void *ctx = mem_ctx("job");

    the_job = make_spread(ctx, count);
    run_job(nodes, what, jobs);
    talloc_free(ctx);
}

static double
run_job(struct node_table *nodes, const char *what, int jobs)
{
    struct rng rng = rng_seed(1, 2);
    size_t placed = 0;
    double start = cpu_s();

    for (int i = 0; i < jobs; i++) {
        void *ctx = mem_ctx("bench");
        struct sched_view v = {.ops = &ops, .nodes = node_table_copy(ctx, nodes), .index = 1};
        struct evaluation e = {.id = "e", .job_id = "bench", .type = JOB_SERVICE, .priority = 50};
        struct sched_in in = {.view = &v, .eval = &e, .now = 1, .rng = &rng};
        struct sched_out *out = sched_attempt(ctx, &in);
        for (size_t k = 0; out->plan && k < out->plan->node_allocation.n; k++) {
            const struct allocation *a = out->plan->node_allocation.v[k];
            struct usage u = resources_of_alloc(a);
            node_table_use(nodes, a->node_id, &u, 1);
            placed++;
        }
        talloc_free(ctx);
    }
    double s = cpu_s() - start;
    printf("  %-44s %8zu placed  %10.0f /s  %8.1f us each\n", what, placed, (double)placed / s,
           s * 1e6 / (double)placed);
    return (double)placed / s;
}

/* --- preemption: nodes that are full of less important work --- */

enum { FULL_NODES = 40, LOW = 1500, HIGH = 780 };

static struct allocation_list low_allocs; /* of node i are those from i * LOW / FULL_NODES on */
static const struct job *low_job;

static const struct job *
full_job(struct sched_view *v, const char *ns, const char *id)
{
    (void)v;
    (void)ns;
    return str_eq(id, "low") ? low_job : the_job;
}

static const struct allocation *const *
full_allocs(struct sched_view *v, const void *ctx, const char *id, size_t *ret_n)
{
    const struct allocation **l = mem_array(ctx, const struct allocation *, low_allocs.n);

    (void)v;
    *ret_n = 0;
    /* each is decoded for who asks, as those from the state */
    for (size_t i = 0; i < low_allocs.n; i++)
        if (str_eq(low_allocs.v[i]->node_id, id))
            l[(*ret_n)++] = codec_clone(ctx, &type_allocation, low_allocs.v[i]);
    return l;
}

static const struct sched_view_ops full_ops = {full_job, view_none, full_allocs, view_no_deployment,
                                               .node_pool = view_no_pool};

static struct job *
job_of(const void *ctx, const char *id, int64_t count, int64_t cpu, int64_t priority)
{
    struct job *j = make_job(ctx, count, false, false);

    j->id = j->name = id;
    j->priority = (struct opt_i64){true, priority};
    j->task_groups.v[0]->tasks.v[0]->resources->cpu.v = cpu;
    return j;
}

/* False when a bar is missed: a second, 100 MB. */
static bool
run_preemption(void)
{
    auto_mem void *ctx = mem_ctx("preemption");
    struct node_table *nodes = node_table_new(ctx);
    struct preemption_config all = {true, true, true, true};
    struct scheduler_configuration cfg = {.preemption_config = &all};
    struct rng rng = rng_seed(1, 2);

    low_job = job_of(ctx, "low", LOW, 100, 10);
    the_job = job_of(ctx, "high", HIGH, 200, 90);
    for (int i = 0; i < FULL_NODES; i++) {
        struct node *n = make_node(ctx, i);
        n->node_resources->cpu->cpu_shares = 4000;
        node_table_put(nodes, node_facts_new(n));
    }
    struct sched_view first = {.ops = &full_ops, .nodes = node_table_copy(ctx, nodes), .index = 1};
    struct evaluation e = {.id = "e", .job_id = "low", .type = JOB_SERVICE, .priority = 10};
    struct sched_out *out =
        sched_attempt(ctx, &(struct sched_in){.view = &first, .eval = &e, .now = 1, .rng = &rng});
    low_allocs = out->plan->node_allocation;
    for (size_t i = 0; i < low_allocs.n; i++) {
        struct usage u = resources_of_alloc(low_allocs.v[i]);
        node_table_use(nodes, low_allocs.v[i]->node_id, &u, 1);
    }
    void *own = mem_ctx("attempt");
    struct sched_view v = {.ops = &full_ops, .nodes = nodes, .index = 2, .config = &cfg};
    double start = cpu_s();
    e = (struct evaluation){.id = "e", .job_id = "high", .type = JOB_SERVICE, .priority = 90};
    out = sched_attempt(own, &(struct sched_in){.view = &v, .eval = &e, .now = 1, .rng = &rng});
    double s = cpu_s() - start, mb = (double)talloc_total_size(own) / 1e6;
    size_t placed = out->plan->node_allocation.n;
    printf("  %-44s %8zu placed  %10.0f /s  %8.1f us each, %.1f MB\n",
           "780 by preemption, 40 nodes of 1,500", placed, (double)placed / s,
           s * 1e6 / (double)placed, mb);
    talloc_free(own);
    return placed == HIGH && s <= 1 && mb <= 100;
}

int
main(void)
{
    void *ctx = mem_ctx("nodes");
    struct node_table *nodes = node_table_new(ctx);
    double start = cpu_s();

    for (int i = 0; i < NODES; i++) {
        struct node *n = make_node(ctx, i);
        node_table_put(nodes, node_facts_new(n));
        talloc_free(n);
    }
    printf("scheduler, %d nodes, %d classes, every feasible row scored (table made in %.0f ms)\n",
           NODES, CLASSES, (cpu_s() - start) * 1e3);
    double large = run(nodes, "20 jobs of 1,000", 20, 1000, false, false);
    run(nodes, "20 jobs of 1,000, regexp constraint", 20, 1000, true, false);
    run(nodes, "20 jobs of 1,000, a dynamic port", 20, 1000, false, true);
    run(nodes, "200 jobs of 10", 200, 10, false, false);
    run(nodes, "500 jobs of 1", 500, 1, false, false);
    run_spread(nodes, "100 jobs of 50, spread over half of the racks", 100, 50);
    run_spread(nodes, "100 jobs of 300, spread over half of the racks", 100, 300);
    talloc_free(ctx);
    if (!run_preemption()) {
        printf("  bar missed: 780 placements by preemption in 1 s and 100 MB\n");
        return 1;
    }
    /* no target of its own: this bar only catches a change of order */
    if (large < 50000) {
        printf("  bar missed: 50,000 placements/s of large jobs\n");
        return 1;
    }
    return 0;
}
