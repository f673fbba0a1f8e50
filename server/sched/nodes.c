/* SPDX-License-Identifier: Apache-2.0
 *
 * The node table (see nodes.h). From the inside out: facts of a node, counted by reference; kinds,
 * numbered by what they have in common; sets, with the hash from id to row; tables, which share a
 * set until one of them is written.
 *
 * A set that is shared is never written: table_own() copies it first. Rows keep their number for as
 * long as their node lives, since columns of use and plans name rows by it.
 */
#include "server/sched/nodes.h"

#include <string.h>

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/compare/class.h"
#include "server/sched/resources.h"
#include "server/sched/rng.h"

#define SLOT_EMPTY NODES_NONE
#define SLOT_GONE (NODES_NONE - 1)

struct node_slot {
    uint32_t hash;
    uint32_t row;
};

/* --- facts --- */

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

static struct node_facts *
node_facts_ref(struct node_facts *f)
{
    __atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
    return f;
}

static void
node_facts_unref(struct node_facts *f)
{
    if (f != NULL && __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) == 0)
        talloc_free(f);
}

/* --- kinds --- */

static void
kinds_slot(struct node_kinds *k, uint32_t no)
{
    size_t i = rng_mix(k->key[no]) & (k->n_slots - 1);

    while (k->slots[i] != SLOT_EMPTY)
        i = (i + 1) & (k->n_slots - 1);
    k->slots[i] = no;
}

static void
kinds_grow(void *ctx, struct node_kinds *k)
{
    if (k->n == k->cap) {
        k->cap = k->cap ? k->cap * 2 : 8;
        mem_resize(ctx, k->key, uint64_t, k->cap);
        mem_resize(ctx, k->sample, struct node_facts *, k->cap);
    }
    if ((k->n + 1) * 2 <= k->n_slots)
        return;
    mem_free(k->slots);
    k->n_slots = k->n_slots ? k->n_slots * 2 : 16;
    k->slots = mem_array(ctx, uint32_t, k->n_slots);
    memset(k->slots, 0xff, k->n_slots * sizeof(*k->slots));
    for (uint32_t i = 0; i < k->n; i++)
        kinds_slot(k, i);
}

static uint32_t
kinds_number(void *ctx, struct node_kinds *k, uint64_t key, struct node_facts *f)
{
    for (size_t i = rng_mix(key); k->n_slots > 0; i++) {
        uint32_t no = k->slots[i & (k->n_slots - 1)];
        if (no == SLOT_EMPTY)
            break;
        if (k->key[no] == key)
            return no;
    }
    kinds_grow(ctx, k);
    uint32_t no = (uint32_t)k->n++;
    k->key[no] = key;
    k->sample[no] = node_facts_ref(f);
    kinds_slot(k, no);
    return no;
}

static void
kinds_done(struct node_kinds *k)
{
    for (size_t i = 0; i < k->n; i++)
        node_facts_unref(k->sample[i]);
    mem_free(k->key);
    mem_free(k->sample);
    mem_free(k->slots);
    *k = (struct node_kinds){0};
}

static uint64_t
text_key(uint64_t h, const char *s)
{
    for (; *s != '\0'; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(1099511628211);
    return rng_mix(h);
}

static uint64_t
place_key(const struct node *n)
{
    return text_key(text_key(1, str_or(n->datacenter, "")), str_or(n->node_pool, POOL_DEFAULT));
}

static uint64_t
shape_key(const struct usage *cap)
{
    return rng_mix(rng_mix((uint64_t)cap->cpu) ^ (uint64_t)cap->mem);
}

/* --- sets --- */

static struct node_set *
set_ref(struct node_set *s)
{
    __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

static void
set_unref(struct node_set *s)
{
    if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < s->n; i++)
        node_facts_unref(s->facts[i]);
    kinds_done(&s->classes);
    kinds_done(&s->places);
    kinds_done(&s->shapes);
    talloc_free(s);
}

static struct node_set *
set_new(void)
{
    struct node_set *s = mem_new(NULL, struct node_set);

    s->refs = 1;
    return s;
}

static void
set_room(struct node_set *s, size_t cap)
{
    if (cap <= s->cap)
        return;
    s->cap = cap;
    mem_resize(s, s->facts, struct node_facts *, cap);
    mem_resize(s, s->takes_work, bool, cap);
    mem_resize(s, s->cap_cpu, int64_t, cap);
    mem_resize(s, s->cap_mem, int64_t, cap);
    mem_resize(s, s->cap_disk, int64_t, cap);
    mem_resize(s, s->max_allocs, int32_t, cap);
    mem_resize(s, s->class_no, uint32_t, cap);
    mem_resize(s, s->place_no, uint32_t, cap);
    mem_resize(s, s->shape_no, uint32_t, cap);
}

/* Fills a row's columns. Takes the reference. */
static void
set_row(struct node_set *s, uint32_t row, struct node_facts *f)
{
    s->facts[row] = f;
    s->takes_work[row] = f->takes_work;
    s->cap_cpu[row] = f->cap.cpu;
    s->cap_mem[row] = f->cap.mem;
    s->cap_disk[row] = f->cap.disk;
    s->max_allocs[row] = f->node->node_max_allocs > 0 && f->node->node_max_allocs < INT32_MAX
                             ? (int32_t)f->node->node_max_allocs
                             : 0;
    s->class_no[row] = kinds_number(s, &s->classes, f->class_hash, f);
    s->place_no[row] = kinds_number(s, &s->places, place_key(f->node), f);
    s->shape_no[row] = kinds_number(s, &s->shapes, shape_key(&f->cap), f);
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
slot_find(const struct node_set *t, const char *id)
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
slot_add(struct node_set *t, uint32_t h, uint32_t row)
{
    size_t i = h & (t->n_slots - 1);

    ASSERT(t->n_filled < t->n_slots); /* or the search for an empty one has no end */
    while (t->slots[i].row != SLOT_EMPTY)
        i = (i + 1) & (t->n_slots - 1);
    t->slots[i] = (struct node_slot){h, row};
    t->n_filled++;
}

/* Keeps at least half of the slots empty; drops the dead ones. */
static void
slots_grow(struct node_set *t)
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

/* A private copy; kinds that no row has any more are left behind. */
static struct node_set *
set_clone(const struct node_set *o)
{
    struct node_set *s = set_new();

    set_room(s, o->n + o->n / 4 + 16);
    s->n = o->n;
    s->live = o->live;
    for (uint32_t i = 0; i < o->n; i++) {
        s->facts[i] = NULL;
        s->takes_work[i] = false;
        if (o->facts[i] != NULL)
            set_row(s, i, node_facts_ref(o->facts[i]));
    }
    slots_grow(s);
    return s;
}

/* --- tables --- */

static int
table_done(struct node_table *t)
{
    set_unref(t->set);
    return 0;
}

static void
table_follow(struct node_table *t)
{
    t->n = t->set->n;
    t->facts = t->set->facts;
}

struct node_table *
node_table_new(const void *ctx)
{
    struct node_table *t = mem_new(ctx, struct node_table);

    t->set = set_new();
    talloc_set_destructor(t, table_done);
    return t;
}

struct node_table *
node_table_copy(const void *ctx, const struct node_table *t)
{
    struct node_table *c = mem_new(ctx, struct node_table);

    c->set = set_ref(t->set);
    talloc_set_destructor(c, table_done);
    table_follow(c);
    c->cap = t->n;
    c->cpu = mem_dup(c, t->cpu, t->n * sizeof(*t->cpu));
    c->mem = mem_dup(c, t->mem, t->n * sizeof(*t->mem));
    c->disk = mem_dup(c, t->disk, t->n * sizeof(*t->disk));
    c->allocs = mem_dup(c, t->allocs, t->n * sizeof(*t->allocs));
    c->pow_cpu = mem_dup(c, t->pow_cpu, t->n * sizeof(*t->pow_cpu));
    c->pow_mem = mem_dup(c, t->pow_mem, t->n * sizeof(*t->pow_mem));
    return c;
}

/* Before a write of the set: it must be ours alone. */
static void
table_own(struct node_table *t)
{
    if (__atomic_load_n(&t->set->refs, __ATOMIC_ACQUIRE) > 1 ||
        t->set->classes.n > 2 * t->set->live + 64) {
        struct node_set *own = set_clone(t->set);
        set_unref(t->set);
        t->set = own;
        table_follow(t);
    }
}

static void
row_powers(struct node_table *t, uint32_t row)
{
    struct usage used = {t->cpu[row], t->mem[row], t->disk[row]};

    resources_powers(&t->facts[row]->cap, &used, &t->pow_cpu[row], &t->pow_mem[row]);
}

static uint32_t
row_new(struct node_table *t)
{
    struct node_set *s = t->set;

    if (s->live < s->n) {
        for (size_t i = 0; i < s->n; i++)
            if (s->facts[i] == NULL)
                return (uint32_t)i;
    }
    if (s->n == s->cap)
        set_room(s, s->cap ? s->cap * 2 : 16);
    s->n++;
    table_follow(t);
    if (t->n > t->cap) {
        t->cap = s->cap;
        mem_resize(t, t->cpu, int64_t, t->cap);
        mem_resize(t, t->mem, int64_t, t->cap);
        mem_resize(t, t->disk, int64_t, t->cap);
        mem_resize(t, t->allocs, int32_t, t->cap);
        mem_resize(t, t->pow_cpu, double, t->cap);
        mem_resize(t, t->pow_mem, double, t->cap);
    }
    return (uint32_t)(t->n - 1);
}

uint32_t
node_table_put(struct node_table *t, struct node_facts *f)
{
    table_own(t);
    struct node_slot *slot = slot_find(t->set, f->node->id);
    uint32_t row;

    if (slot != NULL) {
        struct node_facts *old = t->facts[slot->row];
        row = slot->row;
        set_row(t->set, row, f);
        node_facts_unref(old);
    } else {
        slots_grow(t->set);
        row = row_new(t);
        set_row(t->set, row, f);
        t->cpu[row] = t->mem[row] = t->disk[row] = 0;
        t->allocs[row] = 0;
        t->set->live++;
        slot_add(t->set, id_hash(f->node->id), row);
    }
    row_powers(t, row);
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
    uint32_t row = node_table_find(t, id);

    if (row == NODES_NONE)
        return;
    if (t->allocs[row] > 0) {
        node_table_put(t, facts_stub(id));
        return;
    }
    table_own(t);
    slot_find(t->set, id)->row = SLOT_GONE;
    node_facts_unref(t->facts[row]);
    t->set->facts[row] = NULL;
    t->set->takes_work[row] = false;
    ASSERT(t->set->live > 0);
    t->set->live--;
}

uint32_t
node_table_find(const struct node_table *t, const char *id)
{
    const struct node_slot *s = id ? slot_find(t->set, id) : NULL;

    return s ? s->row : NODES_NONE;
}

void
node_table_use_row(struct node_table *t, uint32_t row, const struct usage *u, int sign)
{
    t->cpu[row] += sign * u->cpu;
    t->mem[row] += sign * u->mem;
    t->disk[row] += sign * u->disk;
    t->allocs[row] += sign;
    row_powers(t, row);
}

void
node_table_use(struct node_table *t, const char *node_id, const struct usage *u, int sign)
{
    if (str_empty(node_id))
        return;
    uint32_t row = node_table_find(t, node_id);
    if (row == NODES_NONE)
        row = node_table_put(t, facts_stub(node_id));
    node_table_use_row(t, row, u, sign);
}
