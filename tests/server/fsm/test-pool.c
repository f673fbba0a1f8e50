/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: node pools: what an older state gets, what makes one, what waits for one, and what keeps
 * one from being deleted.
 */
#include <string.h>

#include "api/limits.h"
#include "api/object.h"
#include "api/pool.h"
#include "common/duration.h"
#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

#define WAITS "Node registered but waiting for node pool to be created"

static struct node_pool *
get_pool(struct fx *f, const char *name)
{
    return READ(f, struct node_pool *, state_node_pool(rt, f->ctx, name));
}

static size_t
count_pools(struct fx *f)
{
    size_t n = 0;
    struct state_txn *t = state_read_begin(f->s, f->ctx);
    struct state_iter *it = state_node_pools(t, f->ctx, NULL);
    for (void *p; (p = state_next(it, f->ctx)) != NULL;)
        n++;
    state_read_end(t);
    return n;
}

static struct fsm_result *
enter(struct fx *f, const char *id, const char *pool, bool elsewhere)
{
    struct intent *in = intent_new(f, 0);
    in->node_register = type_new(in, &type_intent_node_register);
    in->node_register->node = make_node(in, id);
    in->node_register->node->node_pool = pool;
    in->node_register->eval_ids = strs(in, mem_printf(in, "ev-%lu", (unsigned long)f->index), NULL);
    in->node_register->pool_elsewhere = elsewhere;
    return apply(f, in);
}

static struct job *
job_in(struct fx *f, const char *id, const char *pool)
{
    struct job *j = make_job(f, id, 1);
    j->node_pool = pool;
    return j;
}

static bool
shut(struct fx *f, const char *id)
{
    return READ(f, bool, fsm_gate_shut(rt, f->ctx, id));
}

static size_t
count_waits(struct fx *f, const char *id)
{
    const struct node *n = get_node(f, id);
    size_t k = 0;
    for (size_t i = 0; i < n->events.n; i++)
        k += str_eq(n->events.v[i]->message, WAITS);
    return k;
}

START_TEST(an_older_state_gets_the_pools_that_it_names)
{
    struct fx *f = fx_new();
    enter(f, "n1", "gpu", false);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    ck_assert_int_eq(put_job(f, job_in(f, "j", "cpu"), NULL)->err.code, 0);
    ck_assert_uint_eq(count_pools(f), 0);
    make_pools(f);
    static const char *const want[] = {"all", "cpu", "default", "gpu"};
    ck_assert_uint_eq(count_pools(f), ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        ck_assert_ptr_nonnull(get_pool(f, want[i]));
        ck_assert_uint_eq(get_pool(f, want[i])->create_index, f->index);
        ck_assert_int_eq(get_pool(f, want[i])->node_identity_ttl, 24 * 3600 * NS_PER_S);
    }
    uint64_t index = table_index(f, STATE_NODE_POOLS);
    make_pools(f); /* of the next leader */
    ck_assert_uint_eq(table_index(f, STATE_NODE_POOLS), index);
    fx_free(f);
}
END_TEST

START_TEST(built_in_pools_stay_as_they_are)
{
    static const char *const names[] = {POOL_ALL, POOL_DEFAULT};
    for (int i = 0; i < 4; i++) {
        const struct node_pool p = {.name = names[i % 2]};
        struct err e = ERR_INIT;
        ck_assert_int_eq(node_pool_check(&p, i < 2, &e), -ERR_INVALID);
        ck_assert_ptr_nonnull(strstr(e.text, i < 2 ? "deleting" : "modifying"));
        ck_assert_ptr_nonnull(strstr(e.text, "is not allowed"));
    }
}
END_TEST

START_TEST(a_pool_is_changed)
{
    struct fx *f = fx_new();
    make_pools(f);
    ck_assert_int_eq(put_pool(f, "gpu")->err.code, 0);
    uint64_t made = f->index;
    enter(f, "n1", "gpu", false); /* is there: it stays as it is */
    ck_assert_uint_eq(get_pool(f, "gpu")->modify_index, made);
    ck_assert_int_eq(put_pool(f, "gpu")->err.code, 0);
    ck_assert_uint_eq(get_pool(f, "gpu")->create_index, made);
    ck_assert_uint_eq(get_pool(f, "gpu")->modify_index, f->index);
    fx_free(f);
}
END_TEST

START_TEST(the_first_node_makes_its_pool)
{
    struct fx *f = fx_new();
    make_pools(f);
    const struct fsm_result *r = enter(f, "n1", "gpu", false);
    ck_assert_str_eq(ROW(r, NODE_POOLS, STORED, 0)->name, "gpu");
    ck_assert_uint_eq(get_pool(f, "gpu")->create_index, f->index);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    ck_assert_uint_eq(count_waits(f, "n1"), 0);
    enter(f, "n1", "other", false);
    ck_assert_ptr_nonnull(get_pool(f, "other"));
    fx_free(f);
}
END_TEST

/* Scenario A10, from registration on. */
START_TEST(a_node_waits_for_its_pool_where_it_is_not_made)
{
    struct fx *f = fx_new();
    make_pools(f);
    enter(f, "n1", "gpu", true);
    ck_assert_ptr_null(get_pool(f, "gpu"));
    for (int i = 0; i < 2; i++) {
        ck_assert(shut(f, "n1"));
        ck_assert(!node_status(f, "n1", NODE_READY)->changed);
        ck_assert_str_eq(get_node(f, "n1")->status, NODE_INIT);
    }
    enter(f, "n1", "gpu", true); /* its agent has begun anew */
    ck_assert_uint_eq(count_waits(f, "n1"), 1);
    put_pool(f, "gpu");
    ck_assert(!shut(f, "n1"));
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    ck_assert_uint_eq(count_waits(f, "n1"), 1);
    fx_free(f);
}
END_TEST

START_TEST(a_node_that_was_down_waits_as_well)
{
    struct fx *f = fx_new();
    make_pools(f);
    enter(f, "n1", "gpu", true);
    node_status(f, "n1", NODE_DOWN);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_DOWN);
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_INIT);
    put_pool(f, "gpu");
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    fx_free(f);
}
END_TEST

/* The region has become the authoritative one: the next registration makes the pool, though it says nothing
 * new. */
START_TEST(a_registration_that_says_nothing_new_makes_the_pool)
{
    struct fx *f = fx_new();
    make_pools(f);
    enter(f, "n1", "gpu", true);
    enter(f, "n1", "gpu", false);
    ck_assert_ptr_nonnull(get_pool(f, "gpu"));
    node_status(f, "n1", NODE_READY);
    ck_assert_str_eq(get_node(f, "n1")->status, NODE_READY);
    fx_free(f);
}
END_TEST

START_TEST(a_pool_in_use_is_not_deleted)
{
    struct fx *f = fx_new();
    make_pools(f);
    ck_assert_int_eq(delete_pool(f, "gpu")->err.code, -ERR_NOT_FOUND);
    enter(f, "n1", "gpu", false);
    put_job(f, job_in(f, "j", "gpu"), "ev-1");
    const struct fsm_result *r = delete_pool(f, "gpu");
    ck_assert_int_eq(r->err.code, -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(r->err.text, "node pool \"gpu\" has nodes in regions: [global]"));
    ck_assert_ptr_nonnull(strstr(r->err.text, "\"gpu\" has non-terminal jobs in regions: [global]"));
    enter(f, "n1", POOL_DEFAULT, false);
    r = delete_pool(f, "gpu");
    ck_assert_int_eq(r->err.code, -ERR_CONFLICT);
    ck_assert_ptr_null(strstr(r->err.text, "has nodes"));
    stop_job(f, "j", false, "ev-2");
    ck_assert_str_eq(get_job(f, "j")->status, JOB_STATUS_DEAD);
    r = delete_pool(f, "gpu");
    ck_assert_int_eq(r->err.code, 0);
    ck_assert_str_eq(ROW(r, NODE_POOLS, DELETED, 0)->name, "gpu");
    ck_assert_ptr_null(get_pool(f, "gpu"));
    fx_free(f);
}
END_TEST

START_TEST(all_of_several_are_deleted_or_none)
{
    struct fx *f = fx_new();
    make_pools(f);
    put_pool(f, "a");
    enter(f, "n1", "b", false);
    struct intent *in = intent_new(f, 0);
    in->node_pool_delete = type_new(in, &type_object_delete);
    in->node_pool_delete->names = strs(in, "a", "b");
    in->node_pool_delete->region = "global";
    ck_assert_int_eq(apply(f, in)->err.code, -ERR_CONFLICT);
    ck_assert_ptr_nonnull(get_pool(f, "a"));
    fx_free(f);
}
END_TEST

/* Both were allowed when they were asked for: the order of the log decides. */
START_TEST(a_deletion_races_with_a_registration)
{
    struct fx *f = fx_new();
    make_pools(f);
    put_pool(f, "gpu");
    ck_assert_int_eq(delete_pool(f, "gpu")->err.code, 0);
    const struct fsm_result *r = put_job(f, job_in(f, "j", "gpu"), NULL);
    ck_assert_int_eq(r->err.code, -ERR_INVALID);
    ck_assert_str_eq(r->err.text, "job \"j\" is in nonexistent node pool \"gpu\"");
    ck_assert_ptr_null(get_job(f, "j"));
    ck_assert_int_eq(enter(f, "n1", "gpu", false)->err.code, 0); /* makes it again */
    ck_assert_int_eq(put_job(f, job_in(f, "j", "gpu"), NULL)->err.code, 0);
    ck_assert_int_eq(delete_pool(f, "gpu")->err.code, -ERR_CONFLICT);
    fx_free(f);
}
END_TEST

/* --- what one may say --- */

static const char *
wrong(const struct node_pool *p)
{
    static struct err e;
    err_clear(&e);
    return node_pool_check(p, false, &e) < 0 ? e.text : NULL;
}

START_TEST(limits_of_a_pool)
{
    auto_mem struct node_pool *p = type_new(NULL, &type_node_pool);
    char name[OBJECT_NAME_MAX + 2] = "", text[OBJECT_TEXT_MAX + 2] = "";
    memset(name, 'n', OBJECT_NAME_MAX);
    memset(text, 't', OBJECT_TEXT_MAX);
    p->name = name;
    p->description = text;
    for (int i = 0; i < OBJECT_META_MAX; i++)
        str_map_set(p, &p->meta, mem_printf(p, "key%d", i), "v");
    ck_assert_ptr_null(wrong(p));
    name[OBJECT_NAME_MAX] = 'n';
    ck_assert_ptr_nonnull(strstr(wrong(p), "a name has 1 to 128"));
    p->name = "a b";
    ck_assert_ptr_nonnull(wrong(p));
    p->name = NULL;
    ck_assert_ptr_nonnull(wrong(p));
    p->name = "gpu-1_x";
    text[OBJECT_TEXT_MAX] = 't';
    ck_assert_ptr_nonnull(strstr(wrong(p), "description longer than 256"));
    p->description = NULL;
    str_map_set(p, &p->meta, "one-more", "v");
    ck_assert_ptr_nonnull(strstr(wrong(p), "128 entries"));
    p->meta = (struct str_map){0};
    char *large = mem_array(p, char, OBJECT_META_BYTES_MAX + 1);
    memset(large, 'v', OBJECT_META_BYTES_MAX);
    str_map_set(p, &p->meta, "k", large);
    ck_assert_ptr_nonnull(strstr(wrong(p), "65536 bytes"));
    p->meta = (struct str_map){0};
    p->scheduler_configuration = type_new(p, &type_node_pool_scheduler_configuration);
    ck_assert_ptr_null(wrong(p));
    p->scheduler_configuration->scheduler_algorithm = "random";
    ck_assert_ptr_nonnull(strstr(wrong(p), "binpack or spread"));
    p->scheduler_configuration->scheduler_algorithm = "spread";
    ck_assert_ptr_null(wrong(p));
    p->node_identity_ttl = -1;
    ck_assert_ptr_nonnull(strstr(wrong(p), "negative"));
}
END_TEST

TEST_SUITE("fsm-pool", an_older_state_gets_the_pools_that_it_names, built_in_pools_stay_as_they_are,
           a_pool_is_changed, the_first_node_makes_its_pool, a_node_waits_for_its_pool_where_it_is_not_made,
           a_node_that_was_down_waits_as_well, a_registration_that_says_nothing_new_makes_the_pool,
           a_pool_in_use_is_not_deleted, all_of_several_are_deleted_or_none,
           a_deletion_races_with_a_registration, limits_of_a_pool)
