/* SPDX-License-Identifier: Apache-2.0
 *
 * Affinities (see affinity.h).
 */
#include "server/sched/affinity.h"

#include <stdlib.h>

#include "common/mem.h"
#include "server/sched/class.h"

struct likes {
    struct regexes *rx;
    const struct affinity **v;
    size_t n;
    int64_t weights;
    bool unique; /* something depends on what is unique to a node */
};

static void
likes_add(const void *ctx, struct likes *k, const struct affinity_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct affinity *a = l->v[i];
        mem_resize(ctx, k->v, const struct affinity *, k->n + 1);
        k->v[k->n++] = a;
        k->weights += llabs(a->weight.v);
        k->unique |= target_escapes(a->l_target) || target_escapes(a->r_target);
    }
}

static double
likes_node(const struct likes *k, const struct node *n)
{
    int64_t sum = 0;

    for (size_t i = 0; i < k->n; i++) {
        const struct affinity *a = k->v[i];
        struct constraint c = {
            .l_target = a->l_target, .r_target = a->r_target, .operand = a->operand};
        sum += constraint_holds(k->rx, n, &c) ? a->weight.v : 0;
    }
    return k->weights > 0 ? (double)sum / (double)k->weights : 0;
}

double *
affinity_column(const void *ctx, struct regexes *rx, const struct node_table *t,
                const struct job *job, const struct task_group *tg)
{
    struct likes k = {.rx = rx};
    const struct node_kinds *classes = &t->set->classes;

    likes_add(ctx, &k, &job->affinities);
    likes_add(ctx, &k, &tg->affinities);
    for (size_t i = 0; i < tg->tasks.n; i++)
        likes_add(ctx, &k, &tg->tasks.v[i]->affinities);
    if (k.n == 0)
        return NULL;
    double *col = mem_array(ctx, double, t->n), *of_class = mem_array(ctx, double, classes->n);
    for (size_t i = 0; !k.unique && i < classes->n; i++)
        of_class[i] = likes_node(&k, classes->sample[i]->node);
    for (size_t i = 0; i < t->n; i++)
        if (t->facts[i] != NULL)
            col[i] = k.unique ? likes_node(&k, t->facts[i]->node) : of_class[t->set->class_no[i]];
    mem_free(of_class);
    mem_free(k.v);
    return col;
}
