/* SPDX-License-Identifier: Apache-2.0
 *
 * Columns of properties (see props.h).
 */
#include "server/sched/props.h"

#include <string.h>

#include "common/mem.h"
#include "server/sched/compare/class.h"

static size_t
text_hash(const char *s)
{
    uint64_t h = UINT64_C(14695981039346656037);

    for (; *s != '\0'; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(1099511628211);
    return (size_t)(h ^ (h >> 29));
}

/* The slot of the text, or the empty one where it belongs. */
static uint32_t *
slot_of(const struct prop *p, const char *value)
{
    for (size_t i = text_hash(value);; i++) {
        uint32_t *s = &p->slots[i & (p->n_slots - 1)];
        if (*s == PROP_NONE || strcmp(p->value[*s], value) == 0)
            return s;
    }
}

static void
props_grow(struct prop *p)
{
    if ((p->n + 1) * 2 <= p->n_slots)
        return;
    p->n_slots = p->n_slots ? p->n_slots * 2 : 16;
    mem_free(p->slots);
    p->slots = mem_array(p, uint32_t, p->n_slots);
    memset(p->slots, 0xff, p->n_slots * sizeof(*p->slots));
    mem_resize(p, p->value, const char *, p->n_slots / 2);
    for (uint32_t i = 0; i < p->n; i++)
        *slot_of(p, p->value[i]) = i;
}

uint32_t
prop_number(struct prop *p, const char *value)
{
    props_grow(p);
    uint32_t *s = slot_of(p, value);
    if (*s == PROP_NONE) {
        *s = (uint32_t)p->n;
        p->value[p->n++] = value;
    }
    return *s;
}

static uint32_t
number_of(struct prop *p, const struct node *n)
{
    const char *value;

    return target_resolve(n, p->target, &value) ? prop_number(p, value) : PROP_NONE;
}

struct prop *
prop_new(const void *ctx, const struct node_table *t, const char *target)
{
    struct prop *p = mem_new(ctx, struct prop);
    const struct node_set *set = t->set;
    bool unique = target_escapes(target);

    p->target = target;
    p->no = mem_array(p, uint32_t, t->n);
    uint32_t *of_class = mem_array(p, uint32_t, set->classes.n);
    for (size_t i = 0; !unique && i < set->classes.n; i++)
        of_class[i] = number_of(p, set->classes.sample[i]->node);
    for (size_t i = 0; i < t->n; i++) {
        if (t->facts[i] == NULL)
            p->no[i] = PROP_NONE;
        else
            p->no[i] = unique ? number_of(p, t->facts[i]->node) : of_class[set->class_no[i]];
    }
    mem_free(of_class);
    return p;
}
