/* SPDX-License-Identifier: Apache-2.0
 *
 * A listener of the log for tests (server/hook.h): makes a copy of the state of nothing but what it
 * hears, and says where the two differ. The last events are kept, and looked at again: they stay as
 * they were. Compiled with --enable-fault-injection only.
 */
#include <string.h>
#include <xxhash.h>

#include "common/hash.h"
#include "common/mem.h"
#include "server/core/core.h"
#include "server/fsm/fsm.h"
#include "server/hook.h"
#include "server/state/state_int.h"

enum { KEPT = 64, WRONG_MAX = 20 };

struct heard_row {
    char *key; /* the table, then the row's */
    size_t n;
    uint64_t hash;
    bool there; /* in the state, when the two are compared */
    UT_hash_handle hh;
};

static struct follow {
    struct heard_row *rows;
    struct kept {
        struct fsm_events *events;
        uint64_t hash;
    } kept[KEPT];
    size_t next;
    struct buf b;
} * follow;

static struct heard_row *
find_row(unsigned table, struct slice key, bool make)
{
    uint8_t k[1 + TABLE_KEY_MAX] = {(uint8_t)table};
    struct heard_row *r;

    memcpy(k + 1, key.p, key.n);
    HASH_FIND(hh, follow->rows, k, 1 + key.n, r);
    if (r != NULL || !make)
        return r;
    r = mem_new(follow, struct heard_row);
    r->n = 1 + key.n;
    r->key = mem_dup(r, k, r->n);
    HASH_ADD_KEYPTR(hh, follow->rows, r->key, r->n, r);
    return r;
}

static void
drop_row(struct heard_row *r)
{
    if (r == NULL)
        return;
    HASH_DELETE(hh, follow->rows, r);
    mem_free(r);
}

static unsigned
table_of(unsigned id)
{
    unsigned table = 0;

    while (table < STATE_TABLES && table_rows[table].id != id)
        table++;
    return table;
}

static uint64_t
hash_value(unsigned table, struct slice val)
{
    size_t head = row_head(table);

    return XXH3_64bits((const uint8_t *)val.p + head, val.n - head);
}

static uint64_t
hash_event(const struct fsm_event *e)
{
    buf_reset(&follow->b);
    mp_encode(&follow->b, table_rows[e->table].type, e->row);
    return XXH3_64bits(follow->b.data, follow->b.len);
}

static uint64_t
hash_events(const struct fsm_events *all)
{
    uint64_t h = 0;

    for (size_t i = 0; i < all->n; i++)
        h = h * 31 + hash_event(&all->v[i]);
    return h;
}

static int
load_row(void *arg, unsigned id, struct slice key, struct slice val)
{
    unsigned table = table_of(id);

    (void)arg;
    if (table < STATE_TABLES)
        find_row(table, key, true)->hash = hash_value(table, val);
    return 0;
}

static void
follow_open(void *arg, struct state_txn *t)
{
    struct heard_row *r, *tmp;

    (void)arg;
    HASH_ITER (hh, follow->rows, r, tmp)
        drop_row(r);
    (void)state_dump(t, load_row, NULL);
}

static void
follow_applied(void *arg, uint64_t index, const struct intent *in, const struct fsm_result *res)
{
    struct kept *k = &follow->kept[follow->next++ % KEPT];

    (void)arg;
    (void)index;
    (void)in;
    for (size_t i = 0; i < res->events->n; i++) {
        const struct fsm_event *e = &res->events->v[i];
        struct key key;
        key_of(&key, table_rows[e->table].key, e->row);
        struct heard_row *r = find_row(e->table, KEY_SLICE(key), e->what != FSM_DELETED);
        if (e->what == FSM_DELETED)
            drop_row(r);
        else
            r->hash = hash_event(e);
    }
    fsm_events_unref(k->events);
    k->events = fsm_events_ref(res->events);
    k->hash = hash_events(k->events);
}

static void
say_wrong(struct value *wrong, const char *what, unsigned table, struct slice key)
{
    char name[ROW_NAME];

    if (wrong->list.n < WRONG_MAX)
        value_list_add(wrong,
                       value_str(wrong, mem_printf(wrong, "%s: %s %s", what, table_rows[table].name,
                                                   row_name(key, name))));
}

static int
compare_row(void *arg, unsigned id, struct slice key, struct slice val)
{
    unsigned table = table_of(id);

    if (table == STATE_TABLES)
        return 0;
    struct heard_row *r = find_row(table, key, false);
    if (r == NULL)
        say_wrong(arg, "never heard of", table, key);
    else if (r->hash != hash_value(table, val))
        say_wrong(arg, "heard otherwise", table, key);
    if (r != NULL)
        r->there = true;
    return 0;
}

struct value *
test_hook_compare(const void *ctx, struct state_txn *t)
{
    struct value *wrong = value_list(ctx);
    struct heard_row *r, *tmp;

    HASH_ITER (hh, follow->rows, r, tmp)
        r->there = false;
    (void)state_dump(t, compare_row, wrong);
    HASH_ITER (hh, follow->rows, r, tmp)
        if (!r->there)
            say_wrong(wrong, "never heard that it went", (uint8_t)r->key[0],
                      SLICE(r->key + 1, r->n - 1));
    for (size_t i = 0; i < KEPT; i++) {
        const struct kept *k = &follow->kept[i];
        if (k->events != NULL && hash_events(k->events) != k->hash)
            value_list_add(wrong, value_str(wrong, "events that were kept have changed"));
    }
    return wrong;
}

void
test_hook_follow(struct core *c)
{
    static const struct log_listener ops = {.on_open = follow_open, .on_applied = follow_applied};

    if (follow == NULL) {
        follow = mem_new(NULL, struct follow);
        buf_init(&follow->b, ROW_MAX);
    }
    core_add_listener(c, &ops, NULL);
}
