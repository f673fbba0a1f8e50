/* SPDX-License-Identifier: Apache-2.0
 *
 * Static feasibility with a memo per computed class (see feasible.h).
 */
#include "server/sched/feasible.h"

#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/sched/ports.h"

enum memo_state { MEMO_EMPTY, MEMO_OK, MEMO_BAD };

struct memo {
    uint64_t class_hash;
    enum memo_state state;
};

struct feasible {
    struct regexes *rx;
    const struct job *job;
    const struct task_group *tg;
    bool escapes;
    struct memo *memo; /* open addressing */
    size_t n_memo, n_used;
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
feasible_new(const void *ctx, struct regexes *rx, const struct job *job, const struct task_group *tg)
{
    struct feasible *f = mem_new(ctx, struct feasible);

    f->rx = rx;
    f->job = job;
    f->tg = tg;
    f->escapes = list_escapes(&job->constraints) || list_escapes(&tg->constraints) ||
                 networks_escape(&tg->networks);
    for (size_t i = 0; i < tg->tasks.n; i++)
        f->escapes |= list_escapes(&tg->tasks.v[i]->constraints);
    f->n_memo = 16;
    f->memo = mem_array(f, struct memo, f->n_memo);
    return f;
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
            return constraint_text(f, c);
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

static const char *
group_check(struct feasible *f, const struct node *n, bool escaped)
{
    const struct task_group *tg = f->tg;
    const char *why = list_check(f, n, &f->job->constraints, escaped);

    for (size_t i = 0; why == NULL && !escaped && i < tg->tasks.n; i++)
        if (!driver_ok(n, str_or(tg->tasks.v[i]->driver, "")))
            why = FILTER_DRIVERS;
    if (why == NULL)
        why = list_check(f, n, &tg->constraints, escaped);
    for (size_t i = 0; why == NULL && i < tg->tasks.n; i++)
        why = list_check(f, n, &tg->tasks.v[i]->constraints, escaped);
    return why;
}

static struct memo *
memo_slot(struct memo *m, size_t n, uint64_t hash)
{
    size_t i = (hash ^ (hash >> 29)) & (n - 1);

    while (m[i].state != MEMO_EMPTY && m[i].class_hash != hash)
        i = (i + 1) & (n - 1);
    return &m[i];
}

static void
memo_put(struct feasible *f, uint64_t hash, bool ok)
{
    if ((f->n_used + 1) * 2 > f->n_memo) {
        size_t n = f->n_memo * 2;
        struct memo *m = mem_array(f, struct memo, n);
        for (size_t i = 0; i < f->n_memo; i++)
            if (f->memo[i].state != MEMO_EMPTY)
                *memo_slot(m, n, f->memo[i].class_hash) = f->memo[i];
        mem_free(f->memo);
        f->memo = m;
        f->n_memo = n;
    }
    *memo_slot(f->memo, f->n_memo, hash) = (struct memo){hash, ok ? MEMO_OK : MEMO_BAD};
    f->n_used++;
}

const char *
feasible_check(struct feasible *f, const struct node_facts *n)
{
    const struct memo *m = memo_slot(f->memo, f->n_memo, n->class_hash);

    if (m->state == MEMO_BAD)
        return FILTER_CLASS;
    if (m->state == MEMO_EMPTY) {
        const char *why = group_check(f, n->node, false);
        memo_put(f, n->class_hash, why == NULL);
        if (why != NULL)
            return why;
    }
    const char *why = f->escapes ? group_check(f, n->node, true) : NULL;
    /* addresses differ from node to node: never cached */
    return why ? why : ports_infeasible(f, n->node, f->tg);
}

bool
feasible_escapes(const struct feasible *f)
{
    return f->escapes;
}

void
feasible_classes(const struct feasible *f, void (*fn)(void *arg, uint64_t class_hash, bool ok),
                 void *arg)
{
    for (size_t i = 0; i < f->n_memo; i++)
        if (f->memo[i].state != MEMO_EMPTY)
            fn(arg, f->memo[i].class_hash, f->memo[i].state == MEMO_OK);
}

bool
feasible_datacenter(const struct job *job, const struct node *n)
{
    if (job->datacenters.n == 0)
        return true;
    for (size_t i = 0; i < job->datacenters.n; i++)
        if (str_glob(job->datacenters.v[i], str_or(n->datacenter, "")))
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
        if (!str_eq(l->v[i]->operand, "distinct_hosts"))
            continue;
        if (str_empty(l->v[i]->r_target) || num_parse_bool(l->v[i]->r_target, &on) != 0 || on)
            return true;
    }
    return false;
}
