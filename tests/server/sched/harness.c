/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler's harness (see harness.h).
 */
#include "tests/server/sched/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/away.h"
#include "api/canonical.h"
#include "common/duration.h"
#include "common/uuid.h"
#include "server/sched/alloc/reschedule.h"
#include "server/sched/compare/class.h"
#include "server/sched/ports.h"

#define add(h, list, e)                                                              \
    do {                                                                             \
        mem_resize((h), (list).v, __typeof__(*(list).v), (list).n + 1);              \
        (list).v[(list).n++] = (e);                                                  \
    } while (0)

#define FAIL(...)                        \
    do {                                 \
        fprintf(stderr, __VA_ARGS__);    \
        fputc('\n', stderr);             \
        abort();                         \
    } while (0)

static bool
live(const struct allocation *a)
{
    return !alloc_terminal(a);
}

struct harness *
h_new(void)
{
    struct harness *h = mem_new(NULL, struct harness);

    h->index = 1000;
    h->now = INT64_C(1700000000) * NS_PER_S;
    h->rng = rng_seed(1, 2);
    h->config.scheduler_algorithm = "binpack";
    return h;
}

void
h_free(struct harness *h)
{
    mem_free(h->last_ctx);
    talloc_free(h);
}

const char *
h_node_id(const char *name)
{
    static char ids[4][UUID_TEXT];
    static unsigned at;
    uint64_t x = 1469598103934665603u;

    for (const char *s = name; *s != '\0'; s++)
        x = (x ^ (uint8_t)*s) * 1099511628211u;
    char *out = ids[at++ % 4];
    snprintf(out, UUID_TEXT, "00000000-0000-4000-8000-%012llx",
             (unsigned long long)(x & 0xffffffffffff));
    return out;
}

struct node *
h_find(struct harness *h, const char *name)
{
    for (size_t i = 0; i < h->nodes.n; i++)
        if (str_eq(h->nodes.v[i]->name, name))
            return h->nodes.v[i];
    FAIL("no node %s", name);
    return NULL;
}

static void
add_driver(struct node *n, const char *name)
{
    struct driver_info *d = mem_new(n, struct driver_info);

    d->detected = d->healthy = true;
    map_put(n, n->drivers, name)->v = d;
}

struct node *
h_node(struct harness *h, const char *name)
{
    struct node *n = mem_new(h, struct node);
    struct node_resources *r = n->node_resources = mem_new(n, struct node_resources);
    struct node_network_resource *nn = mem_new(n, struct node_network_resource);
    struct node_network_address *a = mem_new(n, struct node_network_address);
    char host[32];

    n->id = mem_strdup(n, h_node_id(name));
    n->name = mem_strdup(n, name);
    n->datacenter = "dc1";
    n->node_pool = POOL_DEFAULT;
    n->status = NODE_READY;
    n->scheduling_eligibility = NODE_ELIGIBLE;
    str_map_set(n, &n->attributes, "kernel.name", "linux");
    str_map_set(n, &n->attributes, "unique.hostname", name);
    add_driver(n, "exec");
    add_driver(n, "raw_exec");
    r->cpu = mem_new(n, struct node_cpu_resources);
    r->cpu->cpu_shares = 4000;
    r->memory = mem_new(n, struct node_memory_resources);
    r->memory->memory_mb = 8192;
    r->disk = mem_new(n, struct node_disk_resources);
    r->disk->disk_mb = 100 * 1024;
    nn->mode = "host";
    nn->device = "eth0";
    a->alias = "default";
    snprintf(host, sizeof(host), "10.0.%zu.%zu", h->nodes.n / 250, h->nodes.n % 250 + 1);
    a->address = mem_strdup(n, host);
    list_add(n, nn->addresses, a);
    list_add(n, r->node_networks, nn);
    add(h, h->nodes, n);
    h->index++;
    return n;
}

struct job *
h_job(struct harness *h, const char *id, const char *type, int64_t count)
{
    struct job *j = mem_new(h, struct job);
    struct task_group *tg = mem_new(j, struct task_group);
    struct task *t = mem_new(j, struct task);

    j->id = j->name = mem_strdup(j, id);
    j->type = type;
    j->namespace = NS_DEFAULT;
    list_add(j, j->datacenters, "*");
    tg->name = "web";
    tg->count = (struct opt_i64){true, count};
    t->name = "t";
    t->driver = "exec";
    t->resources = mem_new(j, struct resources);
    t->resources->cpu = (struct opt_i64){true, 500};
    t->resources->memory_mb = (struct opt_i64){true, 256};
    list_add(j, tg->tasks, t);
    list_add(j, j->task_groups, tg);
    job_canonicalize(j, j);
    if (tg->update != NULL) /* paced by those tests that say so */
        tg->update->max_parallel = (struct opt_i64){true, 0};
    return j;
}

struct job *
h_latest(struct harness *h, const char *id)
{
    struct job *best = NULL;

    for (size_t i = 0; i < h->jobs.n; i++)
        if (str_eq(h->jobs.v[i]->id, id) && (best == NULL || h->jobs.v[i]->version >= best->version))
            best = h->jobs.v[i];
    return best;
}

struct job *
h_register(struct harness *h, const struct job *j)
{
    struct job *old = h_latest(h, j->id), *new = codec_clone(h, &type_job, j);

    h->index++;
    new->version = old ? old->version + 1 : 0;
    new->create_index = old ? old->create_index : h->index;
    new->modify_index = new->job_modify_index = h->index;
    add(h, h->jobs, new);
    return new;
}

struct deployment *
h_deployment(struct harness *h, const char *job_id)
{
    struct deployment *d = NULL;

    for (size_t i = 0; i < h->deployments.n; i++)
        if (str_eq(h->deployments.v[i]->job_id, job_id))
            d = h->deployments.v[i];
    return d;
}

/* --- the view --- */

static const struct job *
view_job(struct sched_view *v, const char *ns, const char *id)
{
    (void)ns;
    return h_latest(v->arg, id);
}

static const struct allocation *const *
view_allocs_by_job(struct sched_view *v, const char *ns, const char *id, size_t *ret_n)
{
    struct harness *h = v->arg;
    const struct allocation **l = mem_array(h->last_ctx, const struct allocation *, h->allocs.n);
    size_t n = 0;

    (void)ns;
    for (size_t i = 0; i < h->allocs.n; i++)
        if (str_eq(h->allocs.v[i]->job_id, id))
            l[n++] = h->allocs.v[i];
    *ret_n = n;
    return l;
}

static const struct allocation *const *
view_allocs_by_node(struct sched_view *v, const void *ctx, const char *id, size_t *ret_n)
{
    struct harness *h = v->arg;
    const struct allocation **l = mem_array(ctx, const struct allocation *, h->allocs.n);
    size_t n = 0;

    for (size_t i = 0; i < h->allocs.n; i++)
        if (str_eq(h->allocs.v[i]->node_id, id) && !alloc_client_terminal(h->allocs.v[i]))
            l[n++] = h->allocs.v[i];
    *ret_n = n;
    return l;
}

static const struct deployment *
view_latest_deployment(struct sched_view *v, const char *ns, const char *id)
{
    (void)ns;
    return h_deployment(v->arg, id);
}

static struct str_list
view_awaited(struct sched_view *v, const void *ctx, const struct evaluation *e, const char *trigger,
             int64_t at)
{
    struct harness *h = v->arg;
    struct str_list ids = {0};

    for (size_t i = 0; i < h->waiting.n; i++)
        if (str_eq(h->waiting.v[i]->job_id, e->job_id) &&
            reschedule_awaits(h->waiting.v[i], trigger, at))
            list_add(ctx, ids, h->waiting.v[i]->id);
    return ids;
}

static const struct node_pool *
view_node_pool(struct sched_view *v, const char *name)
{
    const struct harness *h = v->arg;

    return h->pool != NULL && str_eq(h->pool->name, name) ? h->pool : NULL;
}

/* No volume is anybody's. */
static const char *
view_volume_claim(struct sched_view *v, const struct job *job, const char *alloc_name,
                  const char *volume)
{
    (void)v;
    (void)job;
    (void)alloc_name;
    (void)volume;
    return NULL;
}

static const struct sched_view_ops ops = {
    view_job,     view_allocs_by_job, view_allocs_by_node, view_latest_deployment,
    view_awaited, view_volume_claim,  view_node_pool};

/* Takes the evaluation of that id from those that wait, since it comes now; what it has made comes
 * later. */
static void
wait_for(struct harness *h, const char *id, const struct sched_out *o)
{
    size_t n = 0;

    for (size_t i = 0; i < h->waiting.n; i++)
        if (!str_eq(h->waiting.v[i]->id, id))
            h->waiting.v[n++] = h->waiting.v[i];
    h->waiting.n = n;
    for (size_t i = 0; o != NULL && i < o->followups.n; i++)
        add(h, h->waiting, codec_clone(h, &type_evaluation, o->followups.v[i]));
}

static struct node_table *
table(struct harness *h, const void *ctx)
{
    struct node_table *t = node_table_new(ctx);

    for (size_t i = 0; i < h->nodes.n; i++)
        node_table_put(t, node_facts_new(h->nodes.v[i]));
    for (size_t i = 0; i < h->allocs.n; i++) {
        struct usage u = resources_of_alloc(h->allocs.v[i]);
        if (!alloc_client_terminal(h->allocs.v[i]))
            node_table_use(t, h->allocs.v[i]->node_id, &u, 1);
    }
    return t;
}

static struct allocation *
by_id(struct harness *h, const char *id)
{
    for (size_t i = 0; i < h->allocs.n; i++)
        if (str_eq(h->allocs.v[i]->id, id))
            return h->allocs.v[i];
    return NULL;
}

static void
apply_deployments(struct harness *h, const struct plan *p)
{
    if (p->deployment != NULL)
        add(h, h->deployments, codec_clone(h, &type_deployment, p->deployment));
    for (size_t i = 0; i < p->deployment_updates.n; i++)
        for (size_t k = 0; k < h->deployments.n; k++) {
            struct deployment *d = h->deployments.v[k];
            if (!str_eq(d->id, p->deployment_updates.v[i]->deployment_id))
                continue;
            d->status = mem_strdup(h, p->deployment_updates.v[i]->status);
            d->status_description = mem_strdup(h, p->deployment_updates.v[i]->status_description);
        }
}

static struct deployment_state *
state_of(struct harness *h, const struct allocation *a)
{
    for (size_t k = 0; k < h->deployments.n; k++)
        if (str_eq(h->deployments.v[k]->id, a->deployment_id))
            return map_get(h->deployments.v[k]->task_groups, a->task_group)->v;
    return NULL;
}

static void
count_placed(struct harness *h, const struct allocation *a)
{
    struct deployment_state *s = str_empty(a->deployment_id) ? NULL : state_of(h, a);

    if (s == NULL)
        return;
    s->placed_allocs++;
    if (alloc_canary(a))
        list_add(h, s->placed_canaries, a->id);
}

void
h_healthy(struct harness *h, struct allocation *a, bool healthy)
{
    struct deployment_state *s = state_of(h, a);

    if (a->deployment_status == NULL)
        a->deployment_status = mem_new(h, struct alloc_deployment_status);
    a->deployment_status->healthy = (struct opt_bool){true, healthy};
    s->healthy_allocs += healthy;
    s->unhealthy_allocs += !healthy;
}

void
h_all_healthy(struct harness *h)
{
    h_all_running(h);
    for (size_t i = 0; i < h->allocs.n; i++) {
        struct allocation *a = h->allocs.v[i];
        if (live(a) && !str_empty(a->deployment_id) && !alloc_healthy(a) && !alloc_unhealthy(a))
            h_healthy(h, a, true);
    }
}

static void
record(struct harness *h, struct allocation *a, const char *status)
{
    struct alloc_state *s = mem_new(h, struct alloc_state);

    *s = (struct alloc_state){.field = "ClientStatus", .value = status, .time = h->now + h->entry_ns};
    list_add(h, a->alloc_states, s);
}

static void
apply(struct harness *h, const struct plan *p)
{
    h->index++;
    apply_deployments(h, p);
    for (size_t i = 0; i < p->node_update.n; i++) {
        const struct allocation *s = p->node_update.v[i];
        struct allocation *a = by_id(h, s->id);
        if (!str_empty(s->desired_status))
            a->desired_status = mem_strdup(h, s->desired_status);
        if (!str_empty(s->desired_description))
            a->desired_description = mem_strdup(h, s->desired_description);
        if (!str_empty(s->client_status) && !str_eq(s->client_status, a->client_status)) {
            a->client_status = mem_strdup(h, s->client_status);
            if (str_eq(s->client_status, ALLOC_UNKNOWN) || str_eq(s->client_status, ALLOC_LOST))
                record(h, a, a->client_status);
        }
        if (!str_empty(s->preempted_by_allocation))
            a->preempted_by_allocation = mem_strdup(h, s->preempted_by_allocation);
        if (!str_empty(s->followup_eval_id))
            a->followup_eval_id = mem_strdup(h, s->followup_eval_id);
    }
    for (size_t i = 0; i < p->node_allocation.n; i++) {
        struct allocation *in = codec_clone(h, &type_allocation, p->node_allocation.v[i]);
        struct allocation *old = by_id(h, in->id);
        if (h->rejects != NULL && str_eq(in->node_id, h->rejects))
            continue;
        in->job = h_latest(h, in->job_id);
        if (old != NULL) {
            bool back = in->alloc_states.n == 1 && alloc_was_unknown(old);
            in->client_status = old->client_status;
            in->alloc_states = old->alloc_states;
            *old = *in;
            if (back)
                record(h, old, old->client_status);
            continue;
        }
        in->create_index = h->index;
        add(h, h->allocs, in);
        count_placed(h, in);
        if (!str_empty(in->previous_allocation))
            by_id(h, in->previous_allocation)->next_allocation = in->id;
    }
}

struct sched_out *
h_eval_as(struct harness *h, const char *job_id, const char *eval_id)
{
    struct sched_view v = {.ops = &ops, .arg = h, .index = h->index, .config = &h->config};
    const struct job *j = h_latest(h, job_id);
    struct evaluation e = {.id = eval_id,
                           .namespace = NS_DEFAULT,
                           .job_id = job_id,
                           .priority = 50,
                           .type = j ? j->type : JOB_SERVICE,
                           .triggered_by = h->trigger,
                           .status = EVAL_PENDING};
    struct sched_in in = {.view = &v, .eval = &e, .now = h->now, .rng = &h->rng};

    mem_free(h->last_ctx);
    h->last_ctx = mem_ctx("harness");
    v.nodes = table(h, h->last_ctx);
    wait_for(h, eval_id, NULL);
    h->last = sched_attempt(h->last_ctx, &in);
    wait_for(h, eval_id, h->last);
    if (h->last->plan != NULL)
        apply(h, h->last->plan);
    return h->last;
}

struct job_explanation *
h_explain(struct harness *h, const char *job_id, const char *group, const char *node)
{
    struct sched_view v = {.ops = &ops, .arg = h, .index = h->index, .config = &h->config};
    struct err e = ERR_INIT;
    struct job_explanation *x = NULL;
    struct explain_in in = {.view = &v,
                            .job = h_latest(h, job_id),
                            .rng = &h->rng,
                            .group = group,
                            .node = node,
                            .n_named = 2};

    mem_free(h->last_ctx);
    h->last_ctx = mem_ctx("harness");
    v.nodes = table(h, h->last_ctx);
    ASSERT(sched_explain(h->last_ctx, &in, &x, &e) == 0);
    return x;
}

int
h_simulate(struct harness *h, const char *node_id, struct simulation **ret, struct err *e)
{
    struct sched_view v = {.ops = &ops, .arg = h, .index = h->index, .config = &h->config};
    struct simulate_in in = {
        .view = &v, .drain = &node_id, .n_drain = 1, .now = h->now, .rng = &h->rng};

    mem_free(h->last_ctx);
    h->last_ctx = mem_ctx("harness");
    v.nodes = table(h, h->last_ctx);
    return sched_simulate(h->last_ctx, &in, ret, e);
}

struct sched_out *
h_eval(struct harness *h, const char *job_id)
{
    return h_eval_as(h, job_id, "eeeeeeee-0000-4000-8000-000000000000");
}

/* --- looking and acting --- */

size_t
h_live(struct harness *h, const char *job_id)
{
    size_t n = 0;

    for (size_t i = 0; i < h->allocs.n; i++)
        n += str_eq(h->allocs.v[i]->job_id, job_id) && live(h->allocs.v[i]);
    return n;
}

struct allocation *
h_alloc(struct harness *h, const char *name)
{
    for (size_t i = 0; i < h->allocs.n; i++)
        if (str_eq(h->allocs.v[i]->name, name) && live(h->allocs.v[i]))
            return h->allocs.v[i];
    return NULL;
}

void
h_all_running(struct harness *h)
{
    for (size_t i = 0; i < h->allocs.n; i++)
        if (live(h->allocs.v[i]))
            h->allocs.v[i]->client_status = ALLOC_RUNNING;
}

void
h_all_stopped(struct harness *h)
{
    for (size_t i = 0; i < h->allocs.n; i++)
        if (alloc_server_terminal(h->allocs.v[i]) && !alloc_client_terminal(h->allocs.v[i]))
            h->allocs.v[i]->client_status = ALLOC_COMPLETE;
}

void
h_fail(struct harness *h, struct allocation *a)
{
    struct task_state *s = mem_new(h, struct task_state);

    s->state = "dead";
    s->failed = true;
    s->finished_at = h->now;
    map_put(h, a->task_states, "t")->v = s;
    a->client_status = ALLOC_FAILED;
    a->modify_time = h->now;
}

static void
check_node(struct harness *h, const struct node *n, struct ports *ports)
{
    struct usage cap = resources_capacity(n), used = {0};

    for (size_t i = 0; i < h->allocs.n; i++) {
        const struct allocation *a = h->allocs.v[i];
        if (!str_eq(a->node_id, n->id) || alloc_terminal(a))
            continue;
        struct usage u = resources_of_alloc(a);
        used.cpu += u.cpu;
        used.mem += u.mem;
        used.disk += u.disk;
        const char *clash = ports_add(ports, ports, a);
        if (clash != NULL)
            FAIL("node %s: port %s is used twice", n->name, clash);
    }
    if (resources_exhausted(&cap, &used) != NULL)
        FAIL("node %s is over-committed in %s", n->name, resources_exhausted(&cap, &used));
}

static int
name_cmp(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void
h_check(struct harness *h)
{
    void *tmp = mem_ctx("check");
    const char **names = mem_array(tmp, const char *, h->allocs.n);
    size_t n = 0;

    for (size_t i = 0; i < h->nodes.n; i++)
        check_node(h, h->nodes.v[i], ports_new(tmp, h->nodes.v[i]));
    for (size_t i = 0; i < h->allocs.n; i++)
        if (live(h->allocs.v[i]) && !str_eq(h->allocs.v[i]->job->type, JOB_SYSTEM))
            names[n++] = h->allocs.v[i]->name;
    qsort(names, n, sizeof(*names), name_cmp);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i], names[i - 1]) == 0)
            FAIL("%s is live twice", names[i]);
    talloc_free(tmp);
}
