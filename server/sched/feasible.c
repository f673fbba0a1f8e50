/* SPDX-License-Identifier: Apache-2.0
 *
 * Static feasibility (see feasible.h).
 */
#include "server/sched/feasible.h"

#include "api/operators.h"
#include "api/terms.h"
#include "api/volume/volume.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/sched/device.h"
#include "server/sched/limits.h"
#include "server/sched/ports.h"

struct told {
    const struct constraint *c;
    const char *text;
};

struct feasible {
    struct told *texts;
    size_t n_texts;
    struct regexes *rx;
    const struct job *job;
    const struct task_group *tg;
    bool escapes;
    bool networks; /* asks for ports or a network mode */
    bool volumes;
    bool devices;
};

static bool
list_escapes(const struct constraint_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (constraint_escapes(l->v[i]))
            return true;
    return false;
}

/* A host network alias may be a target as well. */
static bool
networks_escape(const struct network_resource_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct port_list *lists[] = {&l->v[i]->reserved_ports, &l->v[i]->dynamic_ports};
        for (size_t k = 0; k < 2; k++)
            for (size_t p = 0; p < lists[k]->n; p++)
                if (str_prefix(str_or(lists[k]->v[p]->host_network, ""), "${"))
                    return true;
    }
    return false;
}

struct feasible *
feasible_new(const void *ctx, struct regexes *rx, const struct job *job,
             const struct task_group *tg)
{
    struct feasible *f = mem_new(ctx, struct feasible);

    f->rx = rx;
    f->job = job;
    f->tg = tg;
    f->escapes = list_escapes(&job->constraints) || list_escapes(&tg->constraints) ||
                 networks_escape(&tg->networks);
    for (size_t i = 0; i < tg->tasks.n; i++)
        f->escapes |= list_escapes(&tg->tasks.v[i]->constraints);
    f->volumes = tg->volumes.n > 0;
    f->devices = device_wanted(tg);
    f->networks = tg->networks.n > 0;
    for (size_t i = 0; i < tg->tasks.n; i++)
        f->networks |= tg->tasks.v[i]->resources && tg->tasks.v[i]->resources->networks.n > 0;
    return f;
}

/* Told once for all nodes that it keeps out. */
static const char *
text_of(struct feasible *f, const struct constraint *c)
{
    for (size_t i = 0; i < f->n_texts; i++)
        if (f->texts[i].c == c)
            return f->texts[i].text;
    mem_resize(f, f->texts, struct told, f->n_texts + 1);
    f->texts[f->n_texts] = (struct told){c, constraint_text(f, c)};
    return f->texts[f->n_texts++].text;
}

/* First constraint of the list that does not hold; `escaped` selects which half is looked at. */
static const char *
list_check(struct feasible *f, const struct node *n, const struct constraint_list *l, bool escaped)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct constraint *c = l->v[i];
        if (constraint_is_distinct(c) || constraint_escapes(c) != escaped)
            continue;
        if (!constraint_holds(f->rx, n, c))
            return text_of(f, c);
    }
    return NULL;
}

static bool
driver_ok(const struct node *n, const char *name)
{
    __auto_type d = map_get(n->drivers, name);
    char key[128];
    bool on;

    if (d != NULL && d->v != NULL)
        return d->v->detected && d->v->healthy;
    snprintf(key, sizeof(key), "driver.%s", name);
    const char *attr = str_map_get(&n->attributes, key);
    return attr != NULL && num_parse_bool(attr, &on) == 0 && on;
}

bool
feasible_has_drivers(const struct task_group *tg, const struct node *n)
{
    for (size_t i = 0; i < tg->tasks.n; i++)
        if (!driver_ok(n, str_or(tg->tasks.v[i]->driver, "")))
            return false;
    return true;
}

const char *
feasible_drivers(const struct feasible *f, const struct node *n)
{
    return feasible_has_drivers(f->tg, n) ? NULL : FILTER_DRIVERS;
}

char *
feasible_driver_words(const void *ctx, const struct task_group *tg, const struct node *n)
{
    for (size_t i = 0; i < tg->tasks.n; i++) {
        const char *name = str_or(tg->tasks.v[i]->driver, "");
        __auto_type d = map_get(n->drivers, name);
        const char *why = "the node does not know it";
        if (driver_ok(n, name))
            continue;
        if (d != NULL && d->v != NULL)
            why = str_or(d->v->health_description, d->v->detected ? "not healthy" : "not detected");
        return mem_printf(ctx, "driver \"%s\": %.*s", name, (int)utf8_cut(why, METRIC_TEXT_MAX / 2),
                          why);
    }
    return NULL;
}

static const char *
group_check(struct feasible *f, const struct node *n, bool escaped)
{
    const struct task_group *tg = f->tg;
    const char *why = list_check(f, n, &f->job->constraints, escaped);

    if (why == NULL && !escaped)
        why = feasible_drivers(f, n);
    if (why == NULL)
        why = list_check(f, n, &tg->constraints, escaped);
    for (size_t i = 0; why == NULL && i < tg->tasks.n; i++)
        why = list_check(f, n, &tg->tasks.v[i]->constraints, escaped);
    return why;
}

const char *
feasible_class(struct feasible *f, const struct node *n)
{
    return group_check(f, n, false);
}

bool
feasible_has_node_part(const struct feasible *f)
{
    return f->escapes || f->networks || f->volumes || f->devices;
}

/* A volume that the node lets nobody write to is for those who do not want to. A volume that was
 * made while servers run is for jobs of its namespace, in its modes. */
static bool
volume_fits(const struct job *job, const struct volume_request *want,
            const struct client_host_volume_config *have)
{
    if (have->read_only && !want->read_only)
        return false;
    return (str_empty(have->id) && !want->sticky) ||
           (str_eq(str_or(job->namespace, NS_DEFAULT), have->namespace) &&
            volume_offers(&have->capabilities, want));
}

static bool
has_volume(const struct job *job, const struct volume_request *want, const struct node *n,
           const char *alloc_name)
{
    auto_mem void *tmp = mem_ctx("volume");
    const char *source = volume_source(tmp, want, alloc_name);

    for (size_t i = 0; i < n->host_volumes.n; i++) {
        const char *name = n->host_volumes.v[i].k;
        bool named = alloc_name != NULL ? str_eq(name, source) : volume_may_be(want, name);
        if (named && n->host_volumes.v[i].v != NULL &&
            volume_fits(job, want, n->host_volumes.v[i].v))
            return true;
    }
    return false;
}

bool
feasible_volumes(const struct feasible *f, const struct node *n, const char *alloc_name)
{
    for (size_t i = 0; i < f->tg->volumes.n; i++)
        if (!has_volume(f->job, f->tg->volumes.v[i].v, n, alloc_name))
            return false;
    return true;
}

bool
feasible_by_name(const struct task_group *tg)
{
    for (size_t i = 0; i < tg->volumes.n; i++)
        if (tg->volumes.v[i].v->per_alloc || tg->volumes.v[i].v->sticky)
            return true;
    return false;
}

const char *
feasible_node(struct feasible *f, const struct node *n)
{
    const char *why = f->escapes ? group_check(f, n, true) : NULL;

    if (why == NULL && f->volumes && !feasible_volumes(f, n, NULL))
        why = FILTER_VOLUMES;
    if (why == NULL && f->devices) {
        auto_mem void *tmp = mem_ctx("devices");
        if (!device_assign(tmp, f->rx, n, f->tg, &(struct str_list){NULL, 0}, NULL))
            why = FILTER_DEVICES;
    }
    if (why == NULL && f->networks)
        why = ports_infeasible(f, n, f->tg);
    return why;
}

bool
feasible_escapes(const struct feasible *f)
{
    return f->escapes;
}

bool
feasible_datacenter(const struct job *job, const struct node *n)
{
    if (job->datacenters.n == 0)
        return true;
    for (size_t i = 0; i < job->datacenters.n; i++)
        if (str_stars(job->datacenters.v[i], str_or(n->datacenter, "")))
            return true;
    return false;
}

bool
feasible_pool(const struct job *job, const struct node *n)
{
    const char *pool = str_or(job->node_pool, POOL_DEFAULT);

    return str_eq(pool, POOL_ALL) || str_eq(pool, str_or(n->node_pool, POOL_DEFAULT));
}

bool
feasible_distinct_hosts(const struct constraint_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        bool on = true;
        if (operator_code(l->v[i]->operand) != OP_DISTINCT_HOSTS)
            continue;
        if (str_empty(l->v[i]->r_target) || num_parse_bool(l->v[i]->r_target, &on) != 0 || on)
            return true;
    }
    return false;
}
