/* SPDX-License-Identifier: Apache-2.0
 *
 * The node table (see nodes.h).
 */
#include "server/sched/nodes.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/class.h"
#include "server/sched/resources.h"

#define SLOT_EMPTY NODES_NONE
#define SLOT_GONE (NODES_NONE - 1)

struct node_slot {
    uint32_t hash;
    uint32_t row;
};

struct node_facts *
node_facts_new(const struct node *n)
{
    struct node_facts *f = mem_new(NULL, struct node_facts);
    struct node *own = codec_clone(f, &type_node, n);

    f->node = own;
    f->class_hash = class_hash(own);
    f->cap = resources_capacity(own);
    f->core_mhz = resources_core_mhz(own);
    f->takes_work = node_takes_work(own);
    f->refs = 1;
    return f;
}

struct node_facts *
node_facts_ref(struct node_facts *f)
{
    __atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
    return f;
}

void
node_facts_unref(struct node_facts *f)
{
    if (f != NULL && __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) == 0)
        talloc_free(f);
}

static int
table_done(struct node_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        node_facts_unref(t->facts[i]);
    return 0;
}

struct node_table *
node_table_new(const void *ctx)
{
    struct node_table *t = mem_new(ctx, struct node_table);

    talloc_set_destructor(t, table_done);
    return t;
}

struct node_table *
node_table_copy(const void *ctx, const struct node_table *t)
{
    struct node_table *c = mem_new(ctx, struct node_table);

    c->n = c->cap = t->n;
    c->live = t->live;
    c->n_slots = t->n_slots;
    c->n_filled = t->n_filled;
    c->facts = mem_array(c, struct node_facts *, t->n);
    for (size_t i = 0; i < t->n; i++)
        c->facts[i] = t->facts[i] ? node_facts_ref(t->facts[i]) : NULL;
    c->cpu = mem_dup(c, t->cpu, t->n * sizeof(*t->cpu));
    c->mem = mem_dup(c, t->mem, t->n * sizeof(*t->mem));
    c->disk = mem_dup(c, t->disk, t->n * sizeof(*t->disk));
    c->allocs = mem_dup(c, t->allocs, t->n * sizeof(*t->allocs));
    c->slots = mem_dup(c, t->slots, t->n_slots * sizeof(*t->slots));
    talloc_set_destructor(c, table_done);
    return c;
}

static uint32_t
id_hash(const char *id)
{
    uint32_t h = 2166136261u;

    for (; *id != '\0'; id++)
        h = (h ^ (uint8_t)*id) * 16777619u;
    return h ^ (h >> 15);
}

/* The slot that holds `id`, or NULL. */
static struct node_slot *
slot_find(const struct node_table *t, const char *id)
{
    uint32_t h = id_hash(id);

    if (t->n_slots == 0)
        return NULL;
    for (size_t i = h & (t->n_slots - 1);; i = (i + 1) & (t->n_slots - 1)) {
        struct node_slot *s = &t->slots[i];
        if (s->row == SLOT_EMPTY)
            return NULL;
        if (s->row != SLOT_GONE && s->hash == h && strcmp(t->facts[s->row]->node->id, id) == 0)
            return s;
    }
}

static void
slot_add(struct node_table *t, uint32_t h, uint32_t row)
{
    size_t i = h & (t->n_slots - 1);

    while (t->slots[i].row != SLOT_EMPTY)
        i = (i + 1) & (t->n_slots - 1);
    t->slots[i] = (struct node_slot){h, row};
    t->n_filled++;
}

/* Keeps at least half of the slots empty; drops the dead ones. */
static void
slots_grow(struct node_table *t)
{
    if (t->n_slots > 0 && (t->n_filled + 1) * 2 <= t->n_slots)
        return;
    size_t n = 16;
    while (n < (t->live + 1) * 4)
        n *= 2;
    mem_free(t->slots);
    t->slots = mem_array(t, struct node_slot, n);
    for (size_t i = 0; i < n; i++)
        t->slots[i].row = SLOT_EMPTY;
    t->n_slots = n;
    t->n_filled = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->facts[i] != NULL)
            slot_add(t, id_hash(t->facts[i]->node->id), (uint32_t)i);
}

static uint32_t
row_new(struct node_table *t)
{
    if (t->live < t->n) {
        for (size_t i = 0; i < t->n; i++)
            if (t->facts[i] == NULL)
                return (uint32_t)i;
    }
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 16;
        mem_resize(t, t->facts, struct node_facts *, t->cap);
        mem_resize(t, t->cpu, int64_t, t->cap);
        mem_resize(t, t->mem, int64_t, t->cap);
        mem_resize(t, t->disk, int64_t, t->cap);
        mem_resize(t, t->allocs, int32_t, t->cap);
    }
    return (uint32_t)t->n++;
}

uint32_t
node_table_put(struct node_table *t, struct node_facts *f)
{
    struct node_slot *s = slot_find(t, f->node->id);

    if (s != NULL) {
        node_facts_unref(t->facts[s->row]);
        t->facts[s->row] = f;
        return s->row;
    }
    slots_grow(t);
    uint32_t row = row_new(t);
    t->facts[row] = f;
    t->cpu[row] = t->mem[row] = t->disk[row] = 0;
    t->allocs[row] = 0;
    t->live++;
    slot_add(t, id_hash(f->node->id), row);
    return row;
}

/* Facts of a node that is gone or unknown: its id. */
static struct node_facts *
facts_stub(const char *id)
{
    struct node n = {.id = id, .status = NODE_DOWN};

    return node_facts_new(&n);
}

void
node_table_remove(struct node_table *t, const char *id)
{
    struct node_slot *s = slot_find(t, id);

    if (s == NULL)
        return;
    uint32_t row = s->row;
    if (t->allocs[row] > 0) {
        node_table_put(t, facts_stub(id));
        return;
    }
    s->row = SLOT_GONE;
    node_facts_unref(t->facts[row]);
    t->facts[row] = NULL;
    t->live--;
}

uint32_t
node_table_find(const struct node_table *t, const char *id)
{
    const struct node_slot *s = id ? slot_find(t, id) : NULL;

    return s ? s->row : NODES_NONE;
}

void
node_table_use(struct node_table *t, const char *node_id, const struct usage *u, int sign)
{
    if (str_empty(node_id))
        return;
    uint32_t row = node_table_find(t, node_id);
    if (row == NODES_NONE)
        row = node_table_put(t, facts_stub(node_id));
    t->cpu[row] += sign * u->cpu;
    t->mem[row] += sign * u->mem;
    t->disk[row] += sign * u->disk;
    t->allocs[row] += sign;
}
