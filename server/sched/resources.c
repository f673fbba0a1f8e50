/* SPDX-License-Identifier: Apache-2.0
 *
 * Resource arithmetic (see resources.h).
 */
#include "server/sched/resources.h"

#include <math.h>

#include "api/terms.h"

static int64_t
sub_floor(int64_t a, int64_t b)
{
    return a > b ? a - b : 0;
}

struct usage
resources_capacity(const struct node *n)
{
    const struct node_resources *r = n->node_resources;
    const struct node_reserved_resources *v = n->reserved_resources;
    struct usage u = {0};

    if (r == NULL)
        return u;
    u.cpu = r->cpu ? r->cpu->cpu_shares : 0;
    u.mem = r->memory ? r->memory->memory_mb : 0;
    u.disk = r->disk ? r->disk->disk_mb : 0;
    u.cpu = sub_floor(u.cpu, v && v->cpu ? v->cpu->cpu_shares : 0);
    u.mem = sub_floor(u.mem, v && v->memory ? v->memory->memory_mb : 0);
    u.disk = sub_floor(u.disk, v && v->disk ? v->disk->disk_mb : 0);
    return u;
}

int64_t
resources_core_mhz(const struct node *n)
{
    const struct node_cpu_resources *c = n->node_resources ? n->node_resources->cpu : NULL;

    if (c == NULL || c->total_cpu_cores <= 0 || c->reservable_cpu_cores.n == 0)
        return 0;
    return c->cpu_shares / c->total_cpu_cores;
}

/* The phases of one group, summed. */
struct phases {
    struct usage main, prestart, poststop;
};

static void
usage_add(struct usage *u, int64_t cpu, int64_t mem)
{
    u->cpu += cpu;
    u->mem += mem;
}

static void
phases_add(struct phases *p, const struct task_lifecycle_config *lc, int64_t cpu, int64_t mem)
{
    const char *hook = lc ? lc->hook : NULL;

    if (str_eq(hook, "poststop")) {
        usage_add(&p->poststop, cpu, mem);
    } else if (str_eq(hook, "prestart")) {
        usage_add(&p->prestart, cpu, mem);
        if (lc->sidecar)
            usage_add(&p->main, cpu, mem);
    } else {
        usage_add(&p->main, cpu, mem);
    }
}

static int64_t
resources_max3(int64_t a, int64_t b, int64_t c)
{
    int64_t m = a > b ? a : b;
    return m > c ? m : c;
}

static struct usage
phases_max(const struct phases *p, int64_t disk)
{
    return (struct usage){
        .cpu = resources_max3(p->main.cpu, p->prestart.cpu, p->poststop.cpu),
        .mem = resources_max3(p->main.mem, p->prestart.mem, p->poststop.mem),
        .disk = disk,
    };
}

struct ask
resources_ask(const struct task_group *tg)
{
    struct phases p = {0};
    struct ask a = {0};

    for (size_t i = 0; i < tg->tasks.n; i++) {
        const struct task *t = tg->tasks.v[i];
        const struct resources *r = t->resources;
        if (r == NULL)
            continue;
        a.cores += r->cores.v;
        phases_add(&p, t->lifecycle, r->cores.v > 0 ? 0 : r->cpu.v, r->memory_mb.v + r->secrets_mb);
    }
    a.u = phases_max(&p, tg->ephemeral_disk ? tg->ephemeral_disk->size_mb.v : 0);
    return a;
}

struct usage
resources_of_alloc(const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;
    struct phases p = {0};
    int64_t cores_cpu = 0;

    if (r == NULL || alloc_client_terminal(a))
        return (struct usage){0};
    for (size_t i = 0; i < r->tasks.n; i++) {
        const struct allocated_task_resources *t = r->tasks.v[i].v;
        __auto_type lc = map_get(r->task_lifecycles, r->tasks.v[i].k);
        if (t == NULL)
            continue;
        int64_t cpu = t->cpu ? t->cpu->cpu_shares : 0;
        /* reserved cores are held by the allocation in every phase */
        if (t->cpu != NULL && t->cpu->reserved_cores.n > 0) {
            cores_cpu += cpu;
            cpu = 0;
        }
        phases_add(&p, lc ? lc->v : NULL, cpu, t->memory ? t->memory->memory_mb : 0);
    }
    struct usage u = phases_max(&p, r->shared ? r->shared->disk_mb : 0);
    u.cpu += cores_cpu;
    return u;
}

static double
free_fraction(int64_t cap, int64_t used)
{
    if (cap <= 0)
        return 0;
    return 1.0 - (double)used / (double)cap;
}

static double
resources_clamp18(double s)
{
    if (s < 0)
        return 0;
    return (s > 18 ? 18 : s) / 18;
}

void
resources_powers(const struct usage *cap, const struct usage *used, double *cpu, double *mem)
{
    *cpu = pow(10, free_fraction(cap->cpu, used->cpu));
    *mem = pow(10, free_fraction(cap->mem, used->mem));
}

static double
fit_total(const struct usage *cap, const struct usage *used)
{
    double cpu, mem;

    resources_powers(cap, used, &cpu, &mem);
    return cpu + mem;
}

double
resources_score_binpack(const struct usage *cap, const struct usage *used)
{
    return resources_clamp18(20.0 - fit_total(cap, used));
}

double
resources_score_spread(const struct usage *cap, const struct usage *used)
{
    return resources_clamp18(fit_total(cap, used) - 2.0);
}

const char *
resources_exhausted(const struct usage *cap, const struct usage *used)
{
    if (used->cpu > cap->cpu)
        return "cpu";
    if (used->mem > cap->mem)
        return "memory";
    if (used->disk > cap->disk)
        return "disk";
    return NULL;
}

static bool
range_number(const char **s, int64_t max, int64_t *ret)
{
    int64_t v = 0;

    while (**s == ' ')
        (*s)++;
    if (**s < '0' || **s > '9')
        return false;
    for (; **s >= '0' && **s <= '9'; (*s)++) {
        v = v * 10 + (**s - '0');
        if (v > max)
            return false;
    }
    while (**s == ' ')
        (*s)++;
    *ret = v;
    return true;
}

bool
resources_ranges(const char *s, int64_t max, void (*fn)(void *arg, int64_t v), void *arg)
{
    int64_t left = 2 * (max + 1); /* the text comes from a node: no endless repetition */

    if (str_empty(s))
        return true;
    for (;;) {
        int64_t lo, hi;
        if (!range_number(&s, max, &lo))
            return false;
        hi = lo;
        if (*s == '-') {
            s++;
            if (!range_number(&s, max, &hi) || hi < lo)
                return false;
        }
        left -= hi - lo + 1;
        if (left < 0)
            return false;
        for (int64_t v = lo; v <= hi; v++)
            fn(arg, v);
        if (*s == '\0')
            return true;
        if (*s++ != ',')
            return false;
    }
}
