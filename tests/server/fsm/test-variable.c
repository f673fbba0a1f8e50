/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: variables and root keys, sealed by whoever proposed them.
 */
#include <string.h>

#include "api/vars/vars.h"
#include "common/duration.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct fsm_result *
put_key(struct fx *f, const char *id, const char *state, bool full)
{
    struct root_key k = {.key_id = id, .state = state};

    return apply(f, &(struct intent){.root_key_upsert = &(struct intent_root_key_upsert){
                                         .key = &k, .full = full}});
}

static const char *
key_state(struct fx *f, const char *id)
{
    const struct root_key *k = READ(f, struct root_key *, state_root_key(rt, f->ctx, id));

    return k != NULL ? k->state : "none";
}

static struct fsm_result *
drop_key(struct fx *f, const char *id, bool force)
{
    return apply(f, &(struct intent){.root_key_delete = &(struct intent_root_key_delete){id, force}});
}

struct wanted {
    const char *op, *path, *key, *lock;
    bool cas;
    uint64_t index;
};

static struct fsm_result *
do_variable(struct fx *f, struct wanted w)
{
    struct variable_lock lock = {.id = w.lock, .ttl = "15s"};
    struct sealed_variable v = {.namespace = "default",
                                .path = w.path,
                                .key_id = w.key != NULL ? w.key : "k1",
                                .sealed = {(uint8_t *)(uintptr_t) "sealed", 6},
                                .lock = w.lock != NULL ? &lock : NULL};

    return apply(f, &(struct intent){.variable_apply = &(struct intent_variable_apply){
                                         w.op, &v, w.cas, w.index}});
}
#define DO(f, ...) do_variable((f), (struct wanted){__VA_ARGS__})

static struct sealed_variable *
variable_at(struct fx *f, const char *path)
{
    return READ(f, struct sealed_variable *, state_variable(rt, f->ctx, "default", path));
}

static struct fx *
ring_new(void)
{
    struct fx *f = fx_new();

    put_key(f, "k1", KEY_ACTIVE, false);
    return f;
}

START_TEST(compared_and_set)
{
    struct fx *f = ring_new();
    struct fsm_result *r = DO(f, VAR_SET, "a", .cas = true, .index = 7);
    ck_assert(r->conflict && !r->changed && r->variable == NULL); /* it is not there */
    r = DO(f, VAR_SET, "a", .cas = true);
    ck_assert(!r->conflict && r->changed);
    uint64_t index = f->index;
    ck_assert_uint_eq(r->variable->create_index, index);
    r = DO(f, VAR_SET, "a", .cas = true);
    ck_assert(r->conflict && r->variable->modify_index == index);
    r = DO(f, VAR_SET, "a", .cas = true, .index = index);
    ck_assert(!r->conflict);
    ck_assert_uint_eq(r->variable->create_index, index);
    ck_assert_uint_eq(r->variable->modify_index, f->index);
    ck_assert(DO(f, VAR_DELETE, "a", .cas = true, .index = index)->conflict);
    ck_assert(!DO(f, VAR_DELETE, "a", .cas = true, .index = variable_at(f, "a")->modify_index)->conflict);
    ck_assert_ptr_null(variable_at(f, "a"));
    r = DO(f, VAR_DELETE, "a");
    ck_assert(!r->conflict && !r->changed);
    ck_assert_int_eq(DO(f, VAR_SET, "a", .key = "gone")->err.code, -ERR_CONFLICT);
    fx_free(f);
}
END_TEST

/* The holder of a lock writes; nobody else writes, deletes, acquires or releases. */
START_TEST(locked)
{
    static const char *const ops[] = {VAR_SET, VAR_DELETE, VAR_LOCK_ACQUIRE, VAR_LOCK_RELEASE};
    struct fx *f = ring_new();
    DO(f, VAR_SET, "a");
    ck_assert(!DO(f, VAR_LOCK_ACQUIRE, "a", .lock = "l1")->conflict);
    ck_assert_str_eq(variable_at(f, "a")->lock->id, "l1");
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        struct fsm_result *r = DO(f, ops[i], "a");
        ck_assert_msg(r->conflict && !r->changed, "%s without the lock", ops[i]);
        r = DO(f, ops[i], "a", .lock = "l2");
        ck_assert_msg(r->conflict && !r->changed, "%s with another", ops[i]);
    }
    ck_assert(!DO(f, VAR_SET, "a", .lock = "l1")->conflict);
    ck_assert_str_eq(variable_at(f, "a")->lock->id, "l1");
    ck_assert(!DO(f, VAR_LOCK_RELEASE, "a", .lock = "l1")->conflict);
    ck_assert_ptr_null(variable_at(f, "a")->lock);
    ck_assert_uint_eq(variable_at(f, "a")->sealed.n, 6);
    ck_assert(DO(f, VAR_LOCK_RELEASE, "a", .lock = "l1")->conflict);
    fx_free(f);
}
END_TEST

/* The log knows of renewals, and nobody else does. */
START_TEST(renewed)
{
    struct fx *f = ring_new();
    DO(f, VAR_LOCK_ACQUIRE, "a", .lock = "l1");
    ck_assert_int_eq(variable_at(f, "a")->lock_renewed, f->now);
    uint64_t index = table_index(f, STATE_VARIABLES);
    struct lock_renewal mine = {"default", "a", "l1", 3 * NS_PER_S},
                        other = {"default", "a", "l2", 1}, gone = {"default", "b", "l1", 1},
                        *all[] = {&mine, &other, &gone};
    f->now += 60 * NS_PER_S;
    apply(f, &(struct intent){.locks_renewed = &(struct intent_locks_renewed){{all, 3}}});
    ck_assert_int_eq(variable_at(f, "a")->lock_renewed, f->now - 3 * NS_PER_S);
    ck_assert_uint_eq(table_index(f, STATE_VARIABLES), index);
    int64_t then = variable_at(f, "a")->lock_renewed;
    f->now += 60 * NS_PER_S;
    DO(f, VAR_SET, "a", .lock = "l1"); /* a write is no renewal */
    ck_assert_int_eq(variable_at(f, "a")->lock_renewed, then);
    DO(f, VAR_LOCK_RELEASE, "a", .lock = "l1");
    ck_assert_int_eq(variable_at(f, "a")->lock_renewed, 0);
    fx_free(f);
}
END_TEST

START_TEST(keys_retire)
{
    struct fx *f = ring_new();
    struct root_key again = {.key_id = "k9", .state = KEY_ACTIVE};
    struct intent_root_key_upsert first = {.key = &again, .first = true};
    ck_assert(!apply(f, &(struct intent){.root_key_upsert = &first})->changed);
    DO(f, VAR_SET, "a");
    put_key(f, "k2", KEY_ACTIVE, false);
    ck_assert_str_eq(key_state(f, "k1"), KEY_INACTIVE);
    ck_assert_int_eq(drop_key(f, "k2", true)->err.code, -ERR_INVALID); /* it is active */
    ck_assert_int_eq(drop_key(f, "k1", false)->err.code, -ERR_INVALID); /* it seals a */
    ck_assert_int_eq(drop_key(f, "k0", true)->err.code, -ERR_INVALID);
    put_key(f, "k3", KEY_PREPUBLISHED, false);
    ck_assert_str_eq(key_state(f, "k2"), KEY_ACTIVE);
    put_key(f, "k3", KEY_ACTIVE, true);
    ck_assert_str_eq(key_state(f, "k2"), KEY_INACTIVE); /* it seals nothing */
    ck_assert_str_eq(key_state(f, "k1"), KEY_REKEYING);
    ck_assert_int_eq(drop_key(f, "k1", true)->err.code, 0);
    fx_free(f);
}
END_TEST

/* Sealing anew wakes nobody, and loses to a write. */
START_TEST(sealed_anew)
{
    struct fx *f = ring_new();
    DO(f, VAR_SET, "a");
    DO(f, VAR_SET, "b");
    DO(f, VAR_LOCK_ACQUIRE, "c", .lock = "l1");
    put_key(f, "k2", KEY_ACTIVE, true);
    struct sealed_variable *v[] = {variable_at(f, "a"), variable_at(f, "b"), variable_at(f, "c")};
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        v[i]->key_id = "k2";
        v[i]->sealed = (struct bytes){(uint8_t *)(uintptr_t) "other", 5};
    }
    DO(f, VAR_SET, "b"); /* meanwhile, by a server that has not seen the new key */
    uint64_t index = table_index(f, STATE_VARIABLES);
    struct intent_variables_rekey in = {"k1", {v, ARRAY_LEN(v)}};
    ck_assert_int_eq(apply(f, &(struct intent){.variables_rekey = &in})->err.code, 0);
    ck_assert_uint_eq(table_index(f, STATE_VARIABLES), index);
    ck_assert_str_eq(variable_at(f, "a")->key_id, "k2");
    ck_assert_uint_eq(variable_at(f, "a")->sealed.n, 5);
    ck_assert_str_eq(variable_at(f, "b")->key_id, "k1");
    ck_assert_str_eq(variable_at(f, "c")->lock->id, "l1");
    ck_assert_str_eq(key_state(f, "k1"), KEY_REKEYING);
    struct sealed_variable *b = variable_at(f, "b");
    b->key_id = "k2";
    in.variables = (struct sealed_variable_list){&b, 1};
    apply(f, &(struct intent){.variables_rekey = &in});
    ck_assert_str_eq(key_state(f, "k1"), KEY_INACTIVE);
    fx_free(f);
}
END_TEST

TEST_SUITE("variable", compared_and_set, locked, renewed, keys_retire, sealed_anew)
