/* SPDX-License-Identifier: Apache-2.0
 *
 * The choice of devices: kinds, constraints with units, affinities; and at random, that no instance
 * is given twice and none is withheld.
 */
#include <stdio.h>
#include <string.h>

#include "api/device/device.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/sched/device.h"
#include "server/sched/rng.h"
#include "tests/lib/test.h"

enum { MODELS = 2, EACH = 4, ROUNDS = 1000 };

static struct agent_device *
the_device(const void *ctx, const char *name, const char *memory)
{
    struct agent_device *d = mem_new(ctx, struct agent_device);
    d->name = name;
    for (int i = 0; i < EACH; i++)
        list_add(d, d->ids, mem_printf(d, "%s-%d", name + strlen(name) - 1, i));
    str_map_set(d, &d->attributes, "memory", memory);
    list_add(d, d->paths, "/dev/x%");
    return d;
}

static struct node *
the_node(const void *ctx)
{
    struct node *n = mem_new(ctx, struct node);
    const struct agent_device *v[MODELS] = {the_device(n, "acme/gpu/a", "8 GiB"),
                                            the_device(n, "acme/gpu/b", "24 GiB")};
    n->node_resources = mem_new(n, struct node_resources);
    for (int m = 0; m < MODELS; m++) {
        struct err e = ERR_INIT;
        ck_assert_msg(device_check(v[m], &e) == 0, "%s", e.text);
        struct node_device_resource *g = device_group(n, v[m]);
        for (size_t i = 0; i < v[m]->ids.n; i++) {
            struct node_device *d = mem_new(g, struct node_device);
            *d = (struct node_device){.id = v[m]->ids.v[i], .healthy = true};
            list_add(g, g->instances, d);
        }
        list_add(n, n->node_resources->devices, g);
    }
    return n;
}

static struct task_group *
the_group(const void *ctx, const char *kind, int64_t count)
{
    struct task_group *g = mem_new(ctx, struct task_group);
    struct task *t = mem_new(g, struct task);
    struct requested_device *d = mem_new(g, struct requested_device);
    t->name = "t";
    t->resources = mem_new(t, struct resources);
    *d = (struct requested_device){.name = kind, .count = {true, count}};
    list_add(t, t->resources->devices, d);
    list_add(g, g->tasks, t);
    return g;
}

static struct allocated_resources *
room_for(const void *ctx)
{
    struct allocated_resources *r = mem_new(ctx, struct allocated_resources);
    map_put(r, r->tasks, "t")->v = mem_new(r, struct allocated_task_resources);
    return r;
}

/* Says where one of the kind is had under a constraint; "": nowhere. */
static const char *
had(const void *ctx, const char *kind, const char *left, const char *op, const char *right)
{
    struct node *n = the_node(ctx);
    struct task_group *g = the_group(ctx, kind, 1);
    struct constraint *c = mem_new(ctx, struct constraint);
    struct allocated_resources *r = room_for(ctx);
    *c = (struct constraint){.l_target = left, .operand = op, .r_target = right};
    if (op != NULL)
        list_add(g, g->tasks.v[0]->resources->devices.v[0]->constraints, c);
    if (!device_assign(ctx, regexes_new(ctx), n, g, &(struct str_list){NULL, 0}, r))
        return "";
    return r->tasks.v[0].v->devices.v[0]->name;
}

START_TEST(kinds_and_constraints)
{
    auto_mem void *ctx = mem_ctx("test");
    static const struct {
        const char *kind, *left, *op, *right, *want;
    } rows[] = {{"gpu", NULL, NULL, NULL, "a"},
                {"acme/gpu", NULL, NULL, NULL, "a"},
                {"acme/gpu/b", NULL, NULL, NULL, "b"},
                {"acme/gpu/c", NULL, NULL, NULL, ""},
                {"acme", NULL, NULL, NULL, ""},
                {"acme/gpu/", NULL, NULL, NULL, ""},
                {"gpu", "${device.attr.memory}", ">=", "24 GiB", "b"},
                {"gpu", "${device.attr.memory}", ">", "24576 MiB", ""},
                {"gpu", "${device.attr.memory}", ">", "25.5 GB", "b"},
                {"gpu", "${device.attr.memory}", "<", "9 GB", "a"},
                {"gpu", "${device.attr.memory}", "=", "8192 MiB", "a"},
                {"gpu", "${device.model}", "regexp", "^b", "b"},
                {"gpu", "${device.ids}", "set_contains", "b-3", "b"},
                {"gpu", "${device.vendor}", "!=", "acme", ""},
                {"gpu", "${device.attr.none}", "is_set", "", ""},
                {"gpu", "${attr.cpu.arch}", "is_set", "", ""},
                {"gpu", "${device.attr.memory", "is_set", "", "a"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        ck_assert_msg(
            str_eq(had(ctx, rows[i].kind, rows[i].left, rows[i].op, rows[i].right), rows[i].want),
            "%zu: %s", i, rows[i].want);
}
END_TEST

START_TEST(affinities_and_health)
{
    auto_mem void *ctx = mem_ctx("test");
    struct regexes *rx = regexes_new(ctx);
    struct node *n = the_node(ctx);
    struct task_group *g = the_group(ctx, "gpu", EACH);
    struct affinity a = {
        .l_target = "${device.model}", .operand = "=", .r_target = "b", .weight = {true, 50}};
    list_add(g, g->tasks.v[0]->resources->devices.v[0]->affinities, &a);
    struct allocated_resources *r = room_for(ctx);
    ck_assert(device_assign(ctx, rx, n, g, &(struct str_list){NULL, 0}, r));
    ck_assert_str_eq(r->tasks.v[0].v->devices.v[0]->name, "b");
    n->node_resources->devices.v[1]->instances.v[2]->healthy = false;
    r = room_for(ctx);
    ck_assert(device_assign(ctx, rx, n, g, &(struct str_list){NULL, 0}, r));
    ck_assert_str_eq(r->tasks.v[0].v->devices.v[0]->name, "a");
    n->node_resources->devices.v[0]->instances.v[0]->healthy = false;
    ck_assert(!device_assign(ctx, rx, n, g, &(struct str_list){NULL, 0}, NULL));
    n->node_resources = NULL;
    ck_assert(!device_assign(ctx, rx, n, g, &(struct str_list){NULL, 0}, NULL));
}
END_TEST

/* Allocations come and go: what is given is free and enough, what is refused could not be had. */
START_TEST(at_random)
{
    auto_mem void *ctx = mem_ctx("test");
    struct regexes *rx = regexes_new(ctx);
    struct node *n = the_node(ctx);
    struct rng rng = rng_seed(7, 7);
    struct allocation *v[MODELS * EACH] = {NULL};
    size_t live = 0, refused = 0;

    for (int round = 0; round < ROUNDS; round++) {
        struct str_list used = {NULL, 0};
        for (size_t i = 0; i < live; i++)
            ck_assert(device_take(ctx, &used, v[i]));
        size_t held[MODELS] = {0};
        for (size_t i = 0; i < used.n; i++)
            held[str_prefix(used.v[i], "acme/gpu/b")]++;
        if (live > 0 && (rng_below(&rng, 3) == 0 || live == ARRAY_LEN(v))) {
            size_t at = rng_below(&rng, live);
            v[at] = v[--live];
            continue;
        }
        int64_t count = 1 + (int64_t)rng_below(&rng, EACH);
        struct task_group *g = the_group(ctx, "gpu", count);
        struct allocation *a = mem_new(ctx, struct allocation);
        a->allocated_resources = room_for(a);
        bool fits = held[0] + (size_t)count <= EACH || held[1] + (size_t)count <= EACH;
        ck_assert(device_assign(ctx, rx, n, g, &used, a->allocated_resources) == fits);
        ck_assert(device_assign(ctx, rx, n, g, &used, NULL) == fits);
        refused += !fits;
        if (!fits)
            continue;
        ck_assert(device_named(a));
        ck_assert_uint_eq(a->allocated_resources->tasks.v[0].v->devices.v[0]->device_ids.n,
                          (size_t)count);
        ck_assert(device_take(ctx, &used, a));
        ck_assert(!device_take(ctx, &used, a)); /* twice */
        v[live++] = a;
    }
    ck_assert_uint_gt(refused, ROUNDS / 20);
}
END_TEST

START_TEST(what_the_operator_may_say)
{
    auto_mem void *ctx = mem_ctx("test");
    struct agent_device *d = the_device(ctx, "acme/gpu/a", "8 GiB");
    struct err e = ERR_INIT;
    struct str_list paths = {NULL, 0};
    list_add(d, d->paths, "/dev/ctl");
    device_paths(ctx, d, "0", &paths);
    device_paths(ctx, d, "1", &paths);
    ck_assert_uint_eq(paths.n, 3);
    ck_assert_str_eq(paths.v[0], "/dev/x0");
    ck_assert_str_eq(paths.v[1], "/dev/ctl");
    static const char *const names[] = {"", "a", "a/b", "a/b/c/d", "/b/c", "a//c", "a/b/"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        d->name = names[i];
        ck_assert_int_eq(device_check(d, &e), -ERR_INVALID);
    }
}
END_TEST

TEST_SUITE("device", kinds_and_constraints, affinities_and_health, at_random,
           what_the_operator_may_say)
