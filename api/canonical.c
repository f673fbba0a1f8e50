/* SPDX-License-Identifier: Apache-2.0
 *
 * From a job as it was written to the job with every default of Nomad's (canonical.h). In this
 * order: constraints, policies (restart, reschedule, migrate, update), group and task, which the
 * two last sections use; what Nomad's own JSON says without meaning anything, which is dropped;
 * job_canonicalize(), the way through all of that; and constraints that follow from what tasks ask
 * for.
 *
 * Blocks that came later, such as disconnect, are in canonical_blocks.c. To run it twice changes
 * nothing.
 */
#include "api/canonical.h"

#include <string.h>

#include "api/canonical_blocks.h"
#include "api/drivers.h"
#include "api/terms.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static void
set_opt(struct opt_i64 *o, int64_t v)
{
    if (!o->set)
        *o = (struct opt_i64){true, v};
}

static void
set_str(const void *ctx, const char **s, const char *v)
{
    if (str_empty(*s))
        *s = mem_strdup(ctx, v);
}

static bool
is_batch(const struct job *j)
{
    return str_eq(j->type, JOB_BATCH) || str_eq(j->type, JOB_SYSBATCH);
}

/* Takes over from there a value that is not said here. */
static void
canonical_inherit(struct opt_i64 *o, const struct opt_i64 *from)
{
    if (!o->set)
        *o = *from;
}

/* --- constraints --- */

static void
canonical_affinities(struct affinity_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        set_opt(&l->v[i]->weight, 50);
}

static void
canonical_spreads(struct spread_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        set_opt(&l->v[i]->weight, 50);
}

/* --- policies --- */

static struct restart_policy *
canonical_restart(const void *ctx, struct restart_policy *p, bool batch)
{
    if (!p)
        p = mem_new(ctx, struct restart_policy);
    set_opt(&p->attempts, batch ? 3 : 2);
    set_opt(&p->interval, batch ? 24 * HOUR : 30 * MINUTE);
    set_opt(&p->delay, 15 * SECOND);
    set_str(ctx, &p->mode, "fail");
    return p;
}

/* Returns the policy of the group, else the job's; NULL when neither does. */
static struct reschedule_policy *
reschedule_said(const void *ctx, struct reschedule_policy *p, const struct reschedule_policy *job)
{
    if (!p)
        return codec_clone(ctx, &type_reschedule_policy, job);
    if (job) {
        canonical_inherit(&p->attempts, &job->attempts);
        canonical_inherit(&p->interval, &job->interval);
        canonical_inherit(&p->delay, &job->delay);
        set_str(ctx, &p->delay_function, str_or(job->delay_function, ""));
        canonical_inherit(&p->max_delay, &job->max_delay);
        if (!p->unlimited.set)
            p->unlimited = job->unlimited;
    }
    return p;
}

/* Over what the job's type implies. */
static struct reschedule_policy *
canonical_reschedule(const void *ctx, struct reschedule_policy *p, bool batch)
{
    if (!p)
        p = mem_new(ctx, struct reschedule_policy);
    bool counted = p->attempts.set && p->attempts.v > 0;
    set_opt(&p->attempts, batch ? 1 : 0);
    set_opt(&p->interval, batch ? 24 * HOUR : 0);
    set_opt(&p->delay, batch ? 5 * SECOND : 30 * SECOND);
    set_str(ctx, &p->delay_function, batch ? "constant" : "exponential");
    set_opt(&p->max_delay, batch ? 0 : HOUR);
    if (!p->unlimited.set)
        p->unlimited = (struct opt_bool){true, !batch && !counted};
    return p;
}

static struct migrate_strategy *
migrate_said(const void *ctx, struct migrate_strategy *m, const struct migrate_strategy *job)
{
    if (!m)
        return codec_clone(ctx, &type_migrate_strategy, job);
    if (job) {
        canonical_inherit(&m->max_parallel, &job->max_parallel);
        set_str(ctx, &m->health_check, str_or(job->health_check, ""));
        canonical_inherit(&m->min_healthy_time, &job->min_healthy_time);
        canonical_inherit(&m->healthy_deadline, &job->healthy_deadline);
    }
    return m;
}

static struct migrate_strategy *
canonical_migrate(const void *ctx, struct migrate_strategy *m)
{
    if (!m)
        m = mem_new(ctx, struct migrate_strategy);
    set_opt(&m->max_parallel, 1);
    set_str(ctx, &m->health_check, "checks");
    set_opt(&m->min_healthy_time, 10 * SECOND);
    set_opt(&m->healthy_deadline, 5 * MINUTE);
    return m;
}

static struct update_strategy *
canonical_update(const void *ctx, struct update_strategy *u, const struct update_strategy *job)
{
    if (!u)
        u = job ? codec_clone(ctx, &type_update_strategy, job)
                : mem_new(ctx, struct update_strategy);
    static const struct update_strategy none;
    if (!job)
        job = &none;
    set_opt(&u->stagger, job->stagger.set ? job->stagger.v : 30 * SECOND);
    set_opt(&u->max_parallel, job->max_parallel.set ? job->max_parallel.v : 1);
    set_str(ctx, &u->health_check, str_or(job->health_check, "checks"));
    set_opt(&u->min_healthy_time,
            job->min_healthy_time.set ? job->min_healthy_time.v : 10 * SECOND);
    set_opt(&u->healthy_deadline, job->healthy_deadline.set ? job->healthy_deadline.v : 5 * MINUTE);
    set_opt(&u->progress_deadline,
            job->progress_deadline.set ? job->progress_deadline.v : 10 * MINUTE);
    u->auto_revert = u->auto_revert || job->auto_revert;
    u->auto_promote = u->auto_promote || job->auto_promote;
    u->canary = u->canary ? u->canary : job->canary;
    return u;
}

/* --- group and task --- */

static void
canonical_network(const void *ctx, struct network_resource *n)
{
    set_str(ctx, &n->mode, "host");
    struct port_list *lists[] = {&n->reserved_ports, &n->dynamic_ports};
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            set_str(ctx, &lists[l]->v[i]->host_network, "default");
}

static void
canonical_resources(const void *ctx, struct task *t)
{
    if (!t->resources)
        t->resources = mem_new(ctx, struct resources);
    struct resources *r = t->resources;
    /* whole cores stand for their MHz, which only the node knows */
    set_opt(&r->cores, 0);
    set_opt(&r->cpu, r->cores.v > 0 ? 0 : 100);
    set_opt(&r->memory_mb, 300);
    for (size_t i = 0; i < r->networks.n; i++)
        canonical_network(ctx, r->networks.v[i]);
    r->disk_mb = 0; /* ephemeral_disk of the group says it: dropped, as Nomad does */
}

static void
canonical_task(const void *ctx, const struct job *j, const struct task_group *g, struct task *t)
{
    canonical_resources(ctx, t);
    canonical_affinities(&t->affinities);
    if (t->restart_policy) {
        /* the group says what the task does not */
        struct restart_policy *p = t->restart_policy, *from = g->restart_policy;
        set_opt(&p->attempts, from->attempts.v);
        set_opt(&p->interval, from->interval.v);
        set_opt(&p->delay, from->delay.v);
        set_str(ctx, &p->mode, from->mode);
    } else {
        t->restart_policy = codec_clone(ctx, &type_restart_policy, g->restart_policy);
    }
    t->restart_policy = canonical_restart(ctx, t->restart_policy, is_batch(j));
    set_opt(&t->kill_timeout, 5 * SECOND);
    if (!t->log_config)
        t->log_config = mem_new(ctx, struct log_config);
    set_opt(&t->log_config->max_files, 10);
    set_opt(&t->log_config->max_file_size_mb, 10);
}

static void
canonical_group(const void *ctx, const struct job *j, struct task_group *g)
{
    bool batch = is_batch(j), system = str_eq(j->type, JOB_SYSTEM) || str_eq(j->type, JOB_SYSBATCH);
    canonical_count(g);
    set_opt(&g->count, 1);
    canonical_affinities(&g->affinities);
    canonical_spreads(&g->spreads);
    g->restart_policy = canonical_restart(ctx, g->restart_policy, batch);
    g->reschedule_policy = reschedule_said(ctx, g->reschedule_policy, j->reschedule);
    g->migrate = migrate_said(ctx, g->migrate, j->migrate);
    if (!system)
        g->reschedule_policy = canonical_reschedule(ctx, g->reschedule_policy, batch);
    if (str_eq(j->type, JOB_SERVICE)) {
        g->migrate = canonical_migrate(ctx, g->migrate);
        g->update = canonical_update(ctx, g->update, j->update);
    } else if (str_eq(j->type, JOB_SYSTEM)) {
        g->update = canonical_update(ctx, g->update, j->update);
    }
    if (!g->ephemeral_disk)
        g->ephemeral_disk = mem_new(ctx, struct ephemeral_disk);
    set_opt(&g->ephemeral_disk->size_mb, 300);
    for (size_t i = 0; i < g->networks.n; i++)
        canonical_network(ctx, g->networks.v[i]);
    for (size_t i = 0; i < g->tasks.n; i++)
        canonical_task(ctx, j, g, g->tasks.v[i]);
    canonical_blocks(ctx, j, g);
}

/* Empty and null are the same to Nomad: null it is, everywhere, so that they compare equal. */
static void
drop_empty(const struct type *t, void *obj)
{
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        void *at = (char *)obj + f->offset;
        if (f->shape == FS_ONE) {
            if (f->type == FT_STRUCT && *(void **)at)
                drop_empty(f->sub, *(void **)at);
            continue;
        }
        struct object_list *l = at;
        if (l->n == 0)
            l->v = NULL;
        for (size_t k = 0; f->shape == FS_LIST && f->type == FT_STRUCT && k < l->n; k++)
            drop_empty(f->sub, l->v[k]);
    }
}

/* --- what Nomad's own JSON says without meaning anything --- */

/* `consul { cluster = "default" }`, which Nomad adds to every group. */
static void
drop_default_consul(struct consul **c)
{
    if (*c && str_empty((*c)->namespace) && str_empty((*c)->partition) &&
        str_eq(str_or((*c)->cluster, "default"), "default"))
        *c = NULL;
}

/* The identity that Nomad gives every task, which nothing reads when it is in no file or variable.
 */
static void
drop_default_identity(struct workload_identity **w)
{
    if (*w && str_eq(str_or((*w)->name, "default"), "default") && !(*w)->env && !(*w)->file &&
        str_empty((*w)->service_name))
        *w = NULL;
}

/* Nomad asks for CNI plugins wherever a group has a bridge; ours needs none. */
static void
drop_cni_constraints(struct constraint_list *l)
{
    static const char prefix[] = "${attr.plugins.cni.version.";
    static const char *const plugins[] = {"bridge}", "firewall}", "host-local}", "loopback}",
                                          "portmap}"};
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct constraint *c = l->v[i];
        bool cni = false;
        for (size_t k = 0; k < ARRAY_LEN(plugins) && str_prefix(str_or(c->l_target, ""), prefix);
             k++)
            cni |= str_eq(c->l_target + strlen(prefix), plugins[k]);
        if (!cni || !str_eq(c->operand, "semver") || !str_eq(c->r_target, ">= 0.4.0"))
            l->v[kept++] = l->v[i];
    }
    l->n = kept;
    if (kept == 0)
        l->v = NULL;
}

/* Nomad prints the block of the job with zeroes for what only its groups say. */
static void
unset_zero(struct update_strategy *u)
{
    struct opt_i64 *durations[] = {&u->stagger, &u->min_healthy_time, &u->healthy_deadline,
                                   &u->progress_deadline};
    for (size_t i = 0; i < ARRAY_LEN(durations); i++)
        if (durations[i]->v == 0)
            durations[i]->set = false;
}

/* Leaves of the job's own block the pace alone: the groups have all of it. */
static void
job_update(const void *ctx, struct job *j)
{
    const struct update_strategy *u = j->update;
    if (is_batch(j))
        return;
    struct opt_i64 parallel = {true, 1}, stagger = {true, 30 * SECOND};
    if (u && u->max_parallel.set)
        parallel = u->max_parallel;
    if (u && u->stagger.set)
        stagger = u->stagger;
    j->update = mem_new(ctx, struct update_strategy);
    j->update->stagger = stagger;
    j->update->max_parallel = parallel;
    set_opt(&j->update->min_healthy_time, 0);
    set_opt(&j->update->healthy_deadline, 0);
    set_opt(&j->update->progress_deadline, 0);
}

static void
drop_nomad_zeroes(struct job *j)
{
    struct update_strategy *u = j->update;
    if (u) {
        unset_zero(u);
        if (is_batch(j) && u->max_parallel.v == 0 && u->canary == 0 && str_empty(u->health_check))
            j->update = NULL;
    }
    for (size_t i = 0; i < j->task_groups.n; i++) {
        struct task_group *g = j->task_groups.v[i];
        drop_default_consul(&g->consul);
        drop_cni_constraints(&g->constraints);
        for (size_t k = 0; k < g->tasks.n; k++) {
            drop_default_consul(&g->tasks.v[k]->consul);
            drop_default_identity(&g->tasks.v[k]->identity);
        }
    }
}

void
job_canonicalize(const void *ctx, struct job *j)
{
    drop_empty(&type_job, j);
    drop_nomad_zeroes(j);
    if (j->priority.v == 0)
        j->priority.set = false;
    set_str(ctx, &j->name, j->id);
    set_str(ctx, &j->namespace, NS_DEFAULT);
    set_str(ctx, &j->region, "global");
    set_str(ctx, &j->type, JOB_SERVICE);
    set_str(ctx, &j->node_pool, POOL_DEFAULT);
    set_opt(&j->priority, 50);
    if (j->datacenters.n == 0)
        list_add(ctx, j->datacenters, mem_strdup(ctx, "*"));
    canonical_affinities(&j->affinities);
    canonical_spreads(&j->spreads);
    codec_defaults(ctx, &type_periodic_config, j->periodic);
    codec_defaults(ctx, &type_parameterized_job_config, j->parameterized_job);
    for (size_t i = 0; i < j->task_groups.n; i++)
        canonical_group(ctx, j, j->task_groups.v[i]);
    job_update(ctx, j);
    j->reschedule = NULL; /* both are the groups' now, as in Nomad */
    j->migrate = NULL;
}

/* --- implied constraints --- */

static bool
canonical_constrains(const struct constraint_list *l, const char *attribute)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->l_target, attribute))
            return true;
    return false;
}

/* The signals that the tasks of a group ask for, as "SIGUSR1,SIGHUP". */
static const char *
canonical_signals(const void *ctx, const struct task_group *g)
{
    const char *list = NULL;
    for (size_t i = 0; i < g->tasks.n; i++) {
        const char *s = g->tasks.v[i]->kill_signal;
        if (!str_empty(s))
            list = list ? mem_printf(ctx, "%s,%s", list, s) : mem_strdup(ctx, s);
    }
    return list;
}

/* A machine that insists on the host's processor waits for a node with /dev/kvm for tasks. */
static void
imply_kvm(const void *ctx, struct task *t)
{
    static const char attribute[] = "${attr.driver.qemu.kvm}";
    const struct driver_can *can = driver_can(t->driver);
    const struct value *v = can && can->kvm ? value_get(t->config, "accelerator") : NULL;
    if (!v || v->kind != VALUE_STRING || !str_eq(v->str.s, "kvm") ||
        canonical_constrains(&t->constraints, attribute))
        return;
    struct constraint *c = mem_new(ctx, struct constraint);
    *c = (struct constraint){.l_target = mem_strdup(ctx, attribute),
                             .r_target = "",
                             .operand = mem_strdup(ctx, "is_set")};
    list_add(ctx, t->constraints, c);
}

/* A service is found where a node tells of it. */
static void
imply_services(const void *ctx, const struct job *j, struct task_group *g)
{
    static const char attribute[] = "${attr.nomad.service_discovery}";
    bool any = false;

    for (size_t i = 0; i < g->services.n; i++)
        any |= str_eq(g->services.v[i]->provider, "nomad");
    for (size_t k = 0; k < g->tasks.n; k++)
        for (size_t i = 0; i < g->tasks.v[k]->services.n; i++)
            any |= str_eq(g->tasks.v[k]->services.v[i]->provider, "nomad");
    if (!any || canonical_constrains(&j->constraints, attribute) ||
        canonical_constrains(&g->constraints, attribute))
        return;
    struct constraint *c = mem_new(ctx, struct constraint);
    *c = (struct constraint){.l_target = mem_strdup(ctx, attribute),
                             .r_target = mem_strdup(ctx, "true"),
                             .operand = mem_strdup(ctx, "=")};
    list_add(ctx, g->constraints, c);
}

void
job_imply_constraints(const void *ctx, struct job *j)
{
    static const char attribute[] = "${attr.os.signals}";
    for (size_t i = 0; i < j->task_groups.n; i++) {
        struct task_group *g = j->task_groups.v[i];
        for (size_t k = 0; k < g->tasks.n; k++)
            imply_kvm(ctx, g->tasks.v[k]);
        imply_services(ctx, j, g);
        const char *want = canonical_signals(ctx, g);
        if (!want || canonical_constrains(&j->constraints, attribute) ||
            canonical_constrains(&g->constraints, attribute))
            continue;
        struct constraint *c = mem_new(ctx, struct constraint);
        c->l_target = mem_strdup(ctx, attribute);
        c->r_target = want;
        c->operand = mem_strdup(ctx, "set_contains");
        list_add(ctx, g->constraints, c);
    }
}
