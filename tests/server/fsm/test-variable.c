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

/* --- bytes, and quotas of them --- */

static void
put_namespace(struct fx *f, const char *name, const char *quota)
{
    struct namespace n = {.name = name, .quota = quota}, *one = &n;

    apply(f, &(struct intent){.namespace_upsert = &(struct namespace_upsert){{&one, 1}}});
}

static void
put_quota(struct fx *f, int64_t mb)
{
    struct quota_limit l = {.region = "here", .variables_limit = mb}, *limits = &l;
    struct quota q = {.name = "q", .limits = {&limits, 1}}, *one = &q;

    apply(f, &(struct intent){.quota_upsert = &(struct quota_upsert){{&one, 1}}});
}

static const struct fsm_result *
put_bytes(struct fx *f, const char *ns, const char *path, const char *op, size_t bytes)
{
    struct variable_lock lock = {.id = "l1", .ttl = "15s"};
    struct sealed_variable v = {.namespace = ns,
                                .path = path,
                                .key_id = "k1",
                                .sealed = {mem_array(f->ctx, uint8_t, bytes + 1), bytes},
                                .lock = str_prefix(op, "lock") ? &lock : NULL};

    return apply(f, &(struct intent){.variable_apply = &(struct intent_variable_apply){
                                         .op = op, .variable = &v, .region = "here"}});
}

/* Counts what the state says that it counts. */
static uint64_t
bytes_of(struct fx *f, struct state *s, const char *ns)
{
    struct state_txn *t = state_read_begin(s, f->ctx);
    struct state_iter *it = state_variables(t, f->ctx, ns, NULL);
    uint64_t said = state_variables_bytes(t, ns), n = 0;

    for (struct sealed_variable *v; (v = state_next(it, f->ctx)) != NULL;)
        n += v->sealed.n;
    state_read_end(t);
    ck_assert_uint_eq(said, n);
    return n;
}

static int
copy_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    return state_load_row(arg, table, key, val);
}

/* Whatever is done with variables, in whatever order; and after a snapshot. */
START_TEST(bytes_are_counted)
{
    static const char
        *const ops[] = {VAR_SET, VAR_SET, VAR_DELETE, VAR_LOCK_ACQUIRE, VAR_LOCK_RELEASE},
               *const spaces[] = {"default", "one", "two"}, *const paths[] = {"a", "b", "c"};
    struct fx *f = ring_new(), *g = fx_new();
    uint64_t seed = 7, most = 0;

    put_namespace(f, "one", NULL);
    put_namespace(f, "two", NULL);
    for (size_t i = 0; i < 600; i++) {
        seed = seed * 6364136223846793005U + 1442695040888963407U;
        uint64_t r = seed >> 20;
        const char *ns = spaces[r % 3];
        put_bytes(f, ns, paths[r / 3 % 3], ops[r / 9 % 5], 1 + r / 45 % 5000);
        uint64_t n = bytes_of(f, f->s, ns);
        most = n > most ? n : most;
    }
    ck_assert_uint_gt(most, 5000);
    struct state_txn *from = state_read_begin(f->s, f->ctx), *to = state_write_begin(g->s, g->ctx);
    ck_assert_int_eq(state_dump(from, copy_row, to), 0);
    state_read_end(from);
    state_commit(to);
    for (size_t i = 0; i < ARRAY_LEN(spaces); i++)
        ck_assert_uint_eq(bytes_of(f, f->s, spaces[i]), bytes_of(g, g->s, spaces[i]));
    fx_free(f);
    fx_free(g);
}
END_TEST

START_TEST(bytes_are_limited)
{
    enum { MB = 1 << 20, HALF = MB / 2 };
    struct fx *f = ring_new();

    put_quota(f, 1);
    put_namespace(f, "one", "q");
    put_namespace(f, "two", "q");
    ck_assert_int_eq(put_bytes(f, "default", "a", VAR_SET, 2 * MB)->err.code, 0); /* has no quota */
    ck_assert_int_eq(put_bytes(f, "one", "a", VAR_SET, HALF)->err.code, 0);
    ck_assert_int_eq(put_bytes(f, "two", "a", VAR_SET, HALF)->err.code, 0); /* to the last byte */
    const struct fsm_result *r = put_bytes(f, "one", "b", VAR_SET, 1);
    ck_assert_int_eq(r->err.code, -ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(r->err.text, "\"q\" exhausted: 1048577 bytes needed > 1048576"));
    ck_assert_int_eq(put_bytes(f, "one", "b", VAR_LOCK_ACQUIRE, 1)->err.code, -ERR_LIMIT);
    ck_assert_int_eq(put_bytes(f, "two", "a", VAR_SET, HALF + 1)->err.code, -ERR_LIMIT);
    ck_assert_int_eq(put_bytes(f, "two", "a", VAR_SET, HALF)->err.code, 0);
    ck_assert_int_eq(put_bytes(f, "two", "a", VAR_DELETE, 0)->err.code, 0);
    ck_assert_int_eq(put_bytes(f, "one", "b", VAR_SET, HALF)->err.code, 0);
    put_quota(f, -1); /* what is there may become smaller */
    ck_assert_int_eq(put_bytes(f, "one", "b", VAR_SET, 10)->err.code, 0);
    ck_assert_int_eq(put_bytes(f, "one", "b", VAR_SET, 11)->err.code, -ERR_LIMIT);
    put_quota(f, INT64_MAX);
    ck_assert_int_eq(put_bytes(f, "one", "b", VAR_SET, 2 * MB)->err.code, 0);
    put_quota(f, 0);
    ck_assert_int_eq(put_bytes(f, "one", "c", VAR_SET, 2 * MB)->err.code, 0);
    put_quota(f, 1);
    put_namespace(f, "one", NULL);
    ck_assert_int_eq(put_bytes(f, "one", "d", VAR_SET, 1)->err.code, 0);
    ck_assert_int_eq(put_bytes(f, "two", "d", VAR_SET, MB)->err.code, 0);
    fx_free(f);
}
END_TEST

TEST_SUITE("variable", compared_and_set, locked, renewed, keys_retire, sealed_anew,
           bytes_are_counted, bytes_are_limited)
