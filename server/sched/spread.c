/* SPDX-License-Identifier: Apache-2.0
 *
 * Spreads (see spread.h), and affinities. In this order: the blocks, one for each attribute, and
 * what is wanted of its values; buckets, the combinations of values that rows have; their scores,
 * and how far they are from the targets; affinities.
 */
#include "server/sched/spread.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "server/sched/compare/class.h"
#include "common/str.h"
#include "server/sched/props.h"
#include "server/sched/rng.h"

#define NO_TARGET (-1.0)

struct spread_value {
    int64_t use;
    bool used;      /* has, or had, an allocation */
    bool named;     /* by a target */
    bool open;      /* some row that may take the group has this value */
    double desired; /* NO_TARGET: neither named nor covered by what the targets leave */
    double share;   /* the same, but what the targets leave is for all the others together */
    double score;
};

struct spread_block {
    const struct spread *said;
    double weight; /* of all spreads over this attribute */
    struct prop *prop;
    struct spread_value *v; /* number of the value */
};

double
spread_boost(double desired, int64_t use)
{
    return (desired - (double)(use + 1)) / desired;
}

double
spread_even(int64_t use, int64_t min, int64_t max)
{
    if (use != min)
        return min == 0 ? -1 : (double)(min - use) / (double)min;
    if (min == max)
        return -1;
    return min == 0 ? 1 : (double)(max - min) / (double)min;
}

/* Adds spreads. Of two over one attribute the later one says how, and both how much. */
static void
blocks_add(const void *ctx, struct spread_set *s, const struct spread_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        double w = (double)l->v[i]->weight.v;
        size_t k = 0;
        while (k < s->n && !str_eq(s->v[k].said->attribute, l->v[i]->attribute))
            k++;
        if (k == s->n) {
            mem_resize(ctx, s->v, struct spread_block, s->n + 1);
            s->v[s->n++] = (struct spread_block){0};
        }
        s->v[k].said = l->v[i];
        s->v[k].weight += w;
        s->weights += w;
    }
}

/* Gives the values without a target their share of the rest. */
static void
share_rest(struct spread_block *b, const struct spread_rows *rows, double rest)
{
    size_t others = 0;

    for (size_t i = 0; i < rows->n; i++)
        if (b->prop->no[rows->v[i]] != PROP_NONE)
            b->v[b->prop->no[rows->v[i]]].open = true;
    for (size_t i = 0; i < b->prop->n; i++)
        others += b->v[i].open && !b->v[i].named;
    for (size_t i = 0; i < b->prop->n; i++)
        b->v[i].share = b->v[i].named ? b->v[i].desired
                        : rest > 0    ? rest / (double)(others > 0 ? others : 1)
                                      : 0;
}

static void
block_open(const void *ctx, struct spread_block *b, const struct node_table *t, double count,
           const struct spread_rows *rows)
{
    const int32_t *use = rows->use;
    const struct spread_target_list *targets = &b->said->spread_target;
    double sum = 0, rest = NO_TARGET;

    b->prop = prop_new(ctx, t, b->said->attribute);
    for (size_t i = 0; i < targets->n; i++)
        prop_number(b->prop, str_or(targets->v[i]->value, ""));
    b->v = mem_array(ctx, struct spread_value, b->prop->n);
    for (size_t i = 0; i < targets->n; i++)
        sum += (double)targets->v[i]->percent / 100 * count;
    if (sum > 0 && sum < count)
        rest = count - sum;
    for (size_t i = 0; i < b->prop->n; i++)
        b->v[i].desired = rest;
    for (size_t i = 0; i < targets->n; i++) {
        struct spread_value *v = &b->v[prop_number(b->prop, str_or(targets->v[i]->value, ""))];
        v->named = true;
        v->desired = (double)targets->v[i]->percent / 100 * count;
    }
    share_rest(b, rows, rest);
    for (size_t row = 0; row < t->n; row++) {
        if (use[row] == 0 || b->prop->no[row] == PROP_NONE)
            continue;
        b->v[b->prop->no[row]].use += use[row];
        b->v[b->prop->no[row]].used = true;
    }
}

static uint64_t
bucket_key(const struct spread_set *s, const uint32_t *of)
{
    uint64_t h = 0;

    for (size_t b = 0; b < s->n; b++)
        h = rng_mix(h ^ of[b]);
    return h;
}

/* Numbers the combinations of values that rows have. */
static void
buckets_open(const void *ctx, struct spread_set *s, size_t n_rows)
{
    size_t n_slots = 64;
    uint32_t *slots, *of = mem_array(ctx, uint32_t, s->n);

    while (n_slots < n_rows * 2)
        n_slots *= 2;
    slots = mem_array(ctx, uint32_t, n_slots);
    s->bucket = mem_array(ctx, uint32_t, n_rows);
    s->of = mem_array(ctx, uint32_t, n_rows * s->n);
    for (size_t row = 0; row < n_rows; row++) {
        for (size_t b = 0; b < s->n; b++)
            of[b] = s->v[b].prop->no[row];
        size_t i = bucket_key(s, of) & (n_slots - 1);
        while (slots[i] != 0 && memcmp(&s->of[(slots[i] - 1) * s->n], of, s->n * sizeof(*of)) != 0)
            i = (i + 1) & (n_slots - 1);
        if (slots[i] == 0) {
            memcpy(&s->of[s->n_buckets * s->n], of, s->n * sizeof(*of));
            slots[i] = (uint32_t)++s->n_buckets;
        }
        ASSERT(s->n_buckets <= row + 1);
        s->bucket[row] = slots[i] - 1;
    }
    mem_free(slots);
    mem_free(of);
}

static void
score_even(struct spread_block *b)
{
    int64_t min = INT64_MAX, max = 0;

    for (size_t i = 0; i < b->prop->n; i++) {
        if (!b->v[i].used)
            continue;
        min = b->v[i].use < min ? b->v[i].use : min;
        max = b->v[i].use > max ? b->v[i].use : max;
    }
    for (size_t i = 0; i < b->prop->n; i++)
        b->v[i].score = min == INT64_MAX ? 0 : spread_even(b->v[i].use, min, max);
}

static void
score_targets(struct spread_block *b, double weights)
{
    double lowest = -1; /* of all values: what is wanted nowhere is no better than any of them */

    for (size_t i = 0; i < b->prop->n; i++) {
        struct spread_value *v = &b->v[i];
        v->score = -1;
        if (v->desired > 0)
            v->score = spread_boost(v->desired, v->use) * b->weight / weights;
        lowest = v->score < lowest ? v->score : lowest;
    }
    for (size_t i = 0; i < b->prop->n; i++)
        if (b->v[i].desired == 0)
            b->v[i].score = lowest;
}

/* Up to its share, to a part of one above it, beyond. */
static double
level_of(const struct spread_block *b, uint32_t no)
{
    static const double none = 1e-9; /* of a sum of percents */

    if (b->said->spread_target.n == 0)
        return 0;
    if (no == PROP_NONE || (double)b->v[no].use >= b->v[no].share - none)
        return 2;
    return (double)(b->v[no].use + 1) > b->v[no].share + none;
}

static void
spread_score_all(struct spread_set *s)
{
    for (size_t b = 0; b < s->n; b++) {
        if (s->v[b].said->spread_target.n == 0)
            score_even(&s->v[b]);
        else
            score_targets(&s->v[b], s->weights);
    }
    for (size_t i = 0; i < s->n_buckets; i++) {
        s->score[i] = s->level[i] = 0;
        for (size_t b = 0; b < s->n; b++) {
            uint32_t no = s->of[i * s->n + b];
            s->level[i] += level_of(&s->v[b], no) * s->v[b].weight / s->weights;
            s->score[i] += no == PROP_NONE ? -1 : s->v[b].v[no].score;
        }
    }
}

struct spread_set *
spread_new(const void *ctx, const struct node_table *t, const struct job *job,
           const struct task_group *tg, const struct spread_rows *rows)
{
    struct spread_set *s;

    if (tg->spreads.n + job->spreads.n == 0)
        return NULL;
    s = mem_new(ctx, struct spread_set);
    blocks_add(s, s, &tg->spreads);
    blocks_add(s, s, &job->spreads);
    s->weights = s->weights > 0 ? s->weights : 1;
    for (size_t b = 0; b < s->n; b++)
        block_open(s, &s->v[b], t, (double)tg->count.v, rows);
    buckets_open(s, s, t->n);
    s->score = mem_array(s, double, s->n_buckets);
    s->level = mem_array(s, double, s->n_buckets);
    spread_score_all(s);
    return s;
}

void
spread_use(struct spread_set *s, uint32_t row, int sign)
{
    for (size_t b = 0; b < s->n; b++) {
        uint32_t no = s->v[b].prop->no[row];
        if (no == PROP_NONE)
            continue;
        s->v[b].v[no].use += sign;
        s->v[b].v[no].used = true;
    }
    s->stale = true;
}

static void
spread_refresh(struct spread_set *s)
{
    if (s->stale)
        spread_score_all(s);
    s->stale = false;
}

double
spread_score(struct spread_set *s, uint32_t bucket)
{
    spread_refresh(s);
    return s->score[bucket];
}

double
spread_level(struct spread_set *s, uint32_t bucket)
{
    spread_refresh(s);
    return s->level[bucket];
}

/* --- affinities --- */

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
