/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices, see device.h. In this order: what is given; targets of constraints and affinities, whose
 * values may have units; the choice.
 */
#include "server/sched/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

/* --- given ones --- */

bool
device_wanted(const struct task_group *tg)
{
    for (size_t i = 0; i < tg->tasks.n; i++)
        if (tg->tasks.v[i]->resources != NULL && tg->tasks.v[i]->resources->devices.n > 0)
            return true;
    return false;
}

bool
device_named(const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;

    for (size_t i = 0; r != NULL && i < r->tasks.n; i++)
        if (r->tasks.v[i].v != NULL && r->tasks.v[i].v->devices.n > 0)
            return true;
    return false;
}

static const char *
device_key(const void *ctx, const char *vendor, const char *type, const char *name, const char *id)
{
    return mem_printf(ctx, "%s/%s/%s/%s", str_or(vendor, ""), str_or(type, ""), str_or(name, ""),
                      str_or(id, ""));
}

bool
device_take(const void *ctx, struct str_list *used, const struct allocation *a)
{
    const struct allocated_resources *r = a->allocated_resources;
    bool ok = true;

    for (size_t i = 0; r != NULL && i < r->tasks.n; i++) {
        const struct allocated_task_resources *t = r->tasks.v[i].v;
        for (size_t k = 0; t != NULL && k < t->devices.n; k++) {
            const struct allocated_device_resource *d = t->devices.v[k];
            for (size_t j = 0; j < d->device_ids.n; j++) {
                const char *key = device_key(ctx, d->vendor, d->type, d->name, d->device_ids.v[j]);
                ok = ok && !str_list_has(used, key);
                list_add(ctx, *used, key);
            }
        }
    }
    return ok;
}

/* --- targets --- */

static const struct {
    const char *unit;
    double times;
} units[] = {{"KiB", 1024.0},
             {"MiB", 1048576.0},
             {"GiB", 1073741824.0},
             {"TiB", 1099511627776.0},
             {"kB", 1e3},
             {"KB", 1e3},
             {"MB", 1e6},
             {"GB", 1e9},
             {"TB", 1e12},
             {"B", 1},
             {"MHz", 1e6},
             {"GHz", 1e9},
             {"mW", 1e-3},
             {"W", 1},
             {"kW", 1e3}};

/* Returns "16 GiB" as a plain number, for all of one family to compare; other texts as they are. */
static const char *
device_plain(const void *ctx, const char *text)
{
    char *end = NULL;
    double v = text != NULL ? strtod(text, &end) : 0;

    if (end == NULL || end == text || *end == '\0')
        return text;
    end += strspn(end, " ");
    size_t n = strcspn(end, "/"); /* MB/s as MB */
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strlen(units[i].unit) == n && strncmp(end, units[i].unit, n) == 0 &&
            (end[n] == '\0' || str_eq(end + n, "/s")))
            return mem_printf(ctx, "%.17g", v * units[i].times);
    return text;
}

static const char *
device_attribute(const void *ctx, const struct device_attribute *a)
{
    if (a == NULL)
        return NULL;
    const char *unit = str_or(a->unit, "");
    return a->int_.set     ? mem_printf(ctx, "%lld%s", (long long)a->int_.v, unit)
           : a->float_.set ? mem_printf(ctx, "%.17g%s", a->float_.v, unit)
           : a->bool_.set  ? (a->bool_.v ? "true" : "false")
                           : a->string;
}

static const char *
device_ids(const void *ctx, const struct node_device_resource *d)
{
    const char *all = "";

    for (size_t i = 0; i < d->instances.n; i++)
        all = mem_printf(ctx, "%s%s%s", all, i > 0 ? "," : "", d->instances.v[i]->id);
    return all;
}

/* Returns the value of "${device.attr.memory}" and the like; NULL: there is none. */
static const char *
device_target(const void *ctx, const struct node_device_resource *d, const char *target)
{
    size_t n = target != NULL ? strlen(target) : 0;

    if (n == 0 || !str_prefix(target, "${") || target[n - 1] != '}')
        return device_plain(ctx, target);
    const char *key = mem_strndup(ctx, target + 2, n - 3);
    if (str_eq(key, "device.vendor"))
        return d->vendor;
    if (str_eq(key, "device.type"))
        return d->type;
    if (str_eq(key, "device.model"))
        return d->name;
    if (str_eq(key, "device.ids"))
        return device_ids(ctx, d);
    if (!str_prefix(key, "device.attr."))
        return NULL;
    __auto_type a = map_get(d->attributes, key + strlen("device.attr."));
    return a != NULL ? device_plain(ctx, device_attribute(ctx, a->v)) : NULL;
}

static bool
device_holds(const void *ctx, struct regexes *rx, const struct node_device_resource *d,
             const char *left, const char *op, const char *right)
{
    return constraint_compare(rx, op, device_target(ctx, d, left), device_target(ctx, d, right));
}

/* --- the choice --- */

/* Says whether a group is of the kind: "type", "vendor/type" or "vendor/type/name". */
static bool
device_is(const struct node_device_resource *d, const char *kind)
{
    auto_mem void *tmp = mem_ctx("device");
    const char *type = str_or(d->type, "");

    const char *some = mem_printf(tmp, "%s/%s", str_or(d->vendor, ""), type);

    return str_eq(kind, type) || str_eq(kind, some) ||
           str_eq(kind, mem_printf(tmp, "%s/%s", some, str_or(d->name, "")));
}

static bool
device_fits(const void *ctx, struct regexes *rx, const struct node_device_resource *d,
            const struct requested_device *want)
{
    if (!device_is(d, str_or(want->name, "")))
        return false;
    for (size_t i = 0; i < want->constraints.n; i++) {
        const struct constraint *c = want->constraints.v[i];
        if (!device_holds(ctx, rx, d, c->l_target, c->operand, c->r_target))
            return false;
    }
    return true;
}

static int64_t
device_liked(const void *ctx, struct regexes *rx, const struct node_device_resource *d,
             const struct requested_device *want)
{
    int64_t sum = 0;

    for (size_t i = 0; i < want->affinities.n; i++) {
        const struct affinity *a = want->affinities.v[i];
        if (device_holds(ctx, rx, d, a->l_target, a->operand, a->r_target))
            sum += a->weight.v;
    }
    return sum;
}

/* The first instances that are free, `count` of them; NULL: there are not so many. */
static struct allocated_device_resource *
device_free(const void *ctx, const struct node_device_resource *d, int64_t count,
            const struct str_list *used)
{
    struct allocated_device_resource *r = mem_new(ctx, struct allocated_device_resource);

    *r = (struct allocated_device_resource){.vendor = mem_strdup(r, str_or(d->vendor, "")),
                                            .type = mem_strdup(r, str_or(d->type, "")),
                                            .name = mem_strdup(r, str_or(d->name, ""))};
    for (size_t i = 0; i < d->instances.n && (int64_t)r->device_ids.n < count; i++) {
        const struct node_device *in = d->instances.v[i];
        if (in->healthy &&
            !str_list_has(used, device_key(ctx, d->vendor, d->type, d->name, in->id)))
            list_add(r, r->device_ids, mem_strdup(r, in->id));
    }
    return (int64_t)r->device_ids.n == count ? r : NULL;
}

static struct allocated_device_resource *
device_choose(const void *ctx, struct regexes *rx, const struct node *n,
              const struct requested_device *want, const struct str_list *used)
{
    const struct node_device_resource_list *l = &n->node_resources->devices;
    struct allocated_device_resource *best = NULL;
    int64_t liked = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (!device_fits(ctx, rx, l->v[i], want))
            continue;
        struct allocated_device_resource *r = device_free(ctx, l->v[i], want->count.v, used);
        int64_t how = r != NULL ? device_liked(ctx, rx, l->v[i], want) : 0;
        if (r != NULL && (best == NULL || how > liked)) {
            best = r;
            liked = how;
        }
    }
    return best;
}

bool
device_assign(const void *ctx, struct regexes *rx, const struct node *n,
              const struct task_group *tg, const struct str_list *held,
              struct allocated_resources *out)
{
    struct str_list used = {NULL, 0};

    for (size_t i = 0; i < held->n; i++)
        list_add(ctx, used, held->v[i]);
    for (size_t t = 0; t < tg->tasks.n; t++) {
        const struct resources *r = tg->tasks.v[t]->resources;
        for (size_t i = 0; r != NULL && i < r->devices.n; i++) {
            struct allocated_device_resource *got =
                n->node_resources != NULL ? device_choose(ctx, rx, n, r->devices.v[i], &used)
                                          : NULL;
            if (got == NULL)
                return false;
            for (size_t k = 0; k < got->device_ids.n; k++)
                list_add(ctx, used,
                         device_key(ctx, got->vendor, got->type, got->name, got->device_ids.v[k]));
            if (out != NULL)
                list_add(ctx, map_get(out->tasks, tg->tasks.v[t]->name)->v->devices, got);
        }
    }
    return true;
}
