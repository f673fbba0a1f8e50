/* SPDX-License-Identifier: Apache-2.0
 *
 * Victims (see preempt.h).
 */
#include "server/sched/preempt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double
preempt_term(int64_t need, int64_t has)
{
    if (need <= 0)
        return 0;
    double d = (double)(need - has) / (double)need;
    return d * d;
}

double
preempt_distance(const struct usage *need, const struct usage *a)
{
    return sqrt(preempt_term(need->mem, a->mem) + preempt_term(need->cpu, a->cpu) +
                preempt_term(need->disk, a->disk));
}

double
preempt_penalty(const struct preempt_cand *c)
{
    if (c->max_parallel <= 0 || c->gone < c->max_parallel)
        return 0;
    return (double)(PREEMPT_PENALTY * (c->gone + 1 - c->max_parallel));
}

double
preempt_score(const struct preempt_cand *v, size_t n)
{
    double max = 0, sum = 0;

    for (size_t i = 0; i < n; i++) {
        double p = (double)v[i].priority;
        max = p > max ? p : max;
        sum += p;
    }
    return 1 / (1 + exp(0.0048 * (max + (max > 0 ? sum / max : 0) - 2048)));
}

static void
usage_move(struct usage *u, const struct usage *by, int sign)
{
    u->cpu += sign * by->cpu;
    u->mem += sign * by->mem;
    u->disk += sign * by->disk;
}

static bool
preempt_covers(const struct usage *left, const struct usage *ask)
{
    return left->cpu >= ask->cpu && left->mem >= ask->mem && left->disk >= ask->disk;
}

static void
preempt_swap(struct preempt_cand *a, struct preempt_cand *b)
{
    struct preempt_cand x = *a;

    *a = *b;
    *b = x;
}

/* The next victim: of the least important those that are nearest to what is still needed. */
static size_t
preempt_nearest(const struct preempt_cand *v, size_t n, const struct usage *need)
{
    size_t best = 0;
    double best_d = 0;

    for (size_t i = 0; i < n; i++) {
        double d = preempt_distance(need, &v[i].u) + preempt_penalty(&v[i]);
        bool same = i > 0 && v[i].priority == v[best].priority;
        bool nearer = d < best_d || (d == best_d && strcmp(v[i].alloc->id, v[best].alloc->id) < 0);
        if (i > 0 && !(v[i].priority < v[best].priority || (same && nearer)))
            continue;
        best = i;
        best_d = d;
    }
    return best;
}

/* Spares who is not needed, the most important first, of these the largest. */
static size_t
preempt_spare(struct preempt_cand *v, size_t n, struct usage *left, const struct usage *ask)
{
    for (;;) {
        size_t best = n;
        for (size_t i = 0; i < n; i++) {
            struct usage without = *left;
            usage_move(&without, &v[i].u, -1);
            if (!preempt_covers(&without, ask))
                continue;
            if (best == n || v[i].priority > v[best].priority ||
                (v[i].priority == v[best].priority && v[i].u.mem > v[best].u.mem))
                best = i;
        }
        if (best == n)
            return n;
        usage_move(left, &v[best].u, -1);
        preempt_swap(&v[best], &v[--n]);
    }
}

size_t
preempt_choose(struct preempt_cand *v, size_t n, const struct usage *left, const struct usage *ask)
{
    struct usage sum = *left, need = *ask;
    size_t k = 0;

    for (; k < n && !preempt_covers(&sum, ask); k++) {
        size_t i = k + preempt_nearest(&v[k], n - k, &need);
        preempt_swap(&v[k], &v[i]);
        usage_move(&sum, &v[k].u, 1);
        usage_move(&need, &v[k].u, -1);
    }
    return preempt_covers(&sum, ask) ? preempt_spare(v, k, &sum, ask) : 0;
}
