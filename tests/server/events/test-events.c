/* SPDX-License-Identifier: Apache-2.0
 *
 * The ring of events and what becomes of rows: bounded, found by index, each event once, with
 * Nomad's topics, types and keys, and without what is secret.
 */
#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "server/events/ring.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct intent *
of(unsigned member)
{
    static struct intent in;
    static struct intent_node_status status;
    static struct plan_result plan;

    in = (struct intent){.node_status = member == INTENT_NODE_STATUS ? &status : NULL,
                         .plan_result = member == INTENT_PLAN_RESULT ? &plan : NULL};
    return &in;
}

static void
feed(struct events *r, struct fx *f, unsigned by, const struct fsm_result *res)
{
    events_listener.on_committed(r, f->index, of(by), res);
}

/* A ring that was fed a job at each index from 1 to n, "j1" and so on. */
static struct events *
ring_of(struct fx *f, size_t kept, size_t bytes, size_t n)
{
    struct events *r = events_new(f->ctx, kept, bytes);

    for (size_t i = 1; i <= n; i++) {
        const char *id = mem_printf(f->ctx, "j%zu", i);
        feed(r, f, 0, put_job(f, make_job(f, id, 1), NULL));
    }
    return r;
}

static uint64_t zero; /* the index before the first entry, from which the others are counted */

static void
expect(struct events *r, uint64_t after, size_t n, uint64_t first, uint64_t base)
{
    struct events_part p;

    events_after(r, zero + after, &p);
    ck_assert_uint_eq(p.n, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_uint_eq(p.v[i]->index, zero + first + i);
    ck_assert_uint_eq(p.base, base > 0 ? zero + base : 0);
    events_part_done(&p);
}

START_TEST(entries_are_found_by_index)
{
    struct fx *f = fx_new();
    zero = f->index;
    struct events *r = ring_of(f, 4, 0, 3);

    expect(r, 0, 3, 1, 0);
    expect(r, 1, 2, 2, 0);
    expect(r, 3, 0, 0, 0);
    expect(r, 99, 0, 0, 0);
    for (int i = 4; i <= 9; i++)
        feed(r, f, 0, put_job(f, make_job(f, mem_printf(f->ctx, "j%d", i), 1), NULL));
    expect(r, 0, 4, 6, 5);
    expect(r, 5, 4, 6, 5);
    expect(r, 8, 1, 9, 5);
    /* an entry without events takes no place, but is heard of */
    struct events_part p;
    struct fsm_result *none = put_job(f, make_job(f, "j9", 1), NULL);
    none->events->n = 0;
    feed(r, f, 0, none);
    events_after(r, zero + 9, &p);
    ck_assert_uint_eq(p.n, 0);
    ck_assert_uint_eq(p.last, zero + 10);
    ck_assert_uint_eq(p.base, zero + 5);
    mem_free(r);
    fx_free(f);
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct fx *f = fx_new();
    struct events *all = ring_of(f, 100, 0, 1);
    struct events_part p;

    events_after(all, 0, &p);
    size_t each = p.v[0]->bytes;
    ck_assert_uint_gt(each, 100);
    struct event_batch *kept = event_batch_ref(p.v[0]);
    events_part_done(&p);
    struct events *r = ring_of(f, 100, 3 * each + each / 2, 10);
    events_after(r, 0, &p);
    ck_assert_uint_ge(p.n, 2);
    ck_assert_uint_le(p.n, 4);
    ck_assert_uint_eq(p.v[p.n - 1]->index, f->index);
    ck_assert_uint_eq(p.base + p.n, f->index);
    events_part_done(&p);
    struct events *none = events_new(f->ctx, 100, each / 2); /* less than one */
    feed(none, f, 0, put_job(f, make_job(f, "huge", 1), NULL));
    events_after(none, 0, &p);
    ck_assert_uint_eq(p.n, 0);
    ck_assert_uint_eq(p.base, f->index);
    mem_free(none);
    mem_free(all);
    ck_assert_uint_gt(kept->rows->n, 0); /* a reader keeps what it has */
    event_batch_unref(kept);
    mem_free(r);
    fx_free(f);
}
END_TEST

START_TEST(another_state_is_a_gap)
{
    struct fx *f = fx_new();
    zero = f->index;
    struct events *r = ring_of(f, 100, 0, 5);
    struct state_txn *t = state_read_begin(f->s, f->ctx);

    events_listener.on_open(r, t);
    state_read_end(t);
    expect(r, 2, 0, 0, 5);
    feed(r, f, 0, put_job(f, make_job(f, "next", 1), NULL));
    expect(r, 2, 1, 6, 5);
    mem_free(r);
    fx_free(f);
}
END_TEST

/* "Topic Type Key keys", of all events of the last entry. */
static const char *
told(struct fx *f, struct events *r, const char **ret_json)
{
    struct events_part p;
    const char *ret = "";
    struct buf b = BUF_INIT(1 << 20);

    events_after(r, f->index - 1, &p);
    for (size_t i = 0; p.n > 0 && i < p.v[0]->rows->n; i++) {
        struct event_head h;
        if (event_head(f->ctx, p.v[0], i, &h) == NULL)
            continue;
        ret = mem_printf(f->ctx, "%s%s%s %s %s", ret, *ret ? ", " : "", h.topic, h.type, h.key);
        for (size_t k = 0; k < h.filter_keys.n; k++)
            ret = mem_printf(f->ctx, "%s %s", ret, h.filter_keys.v[k]);
        event_write(&b, p.v[0], i, &h, true);
        event_write(&b, p.v[0], i, &h, false);
    }
    if (ret_json != NULL)
        *ret_json = mem_strdup(f->ctx, buf_str(&b));
    buf_done(&b);
    events_part_done(&p);
    return ret;
}

START_TEST(rows_become_events_of_nomads_names)
{
    struct fx *f = fx_new();
    struct events *r = events_new(f->ctx, 0, 0);
    struct node *n = make_node(f, "n1");
    const char *json;

    make_pools(f);
    n->secret_id = "5ec7e700-0000-4000-8000-000000000000";
    feed(r, f, 0, register_node(f, n));
    ck_assert_str_eq(told(f, r, &json), "Node NodeRegistration n1");
    ck_assert_ptr_null(strstr(json, "5ec7e7"));
    ck_assert_ptr_nonnull(strstr(json, "\"Payload\":{\"Node\":{\"ID\":\"n1\",\"SecretID\":\"\""));
    ck_assert_ptr_nonnull(strstr(json, "\"Payload\":null}"));
    feed(r, f, INTENT_NODE_STATUS, node_status(f, "n1", NODE_READY));
    ck_assert_str_eq(told(f, r, NULL), "Node NodeStreamEvent n1");
    feed(r, f, INTENT_NODE_STATUS, node_status(f, "n1", NODE_READY)); /* it was heard */
    ck_assert_str_eq(told(f, r, NULL), "");
    struct job *j = make_job(f, "web", 1);
    feed(r, f, 0, put_job(f, j, "e1"));
    ck_assert_str_eq(told(f, r, &json),
                     "Job JobRegistered web, Evaluation EvaluationUpdated e1 web");
    feed(r, f, INTENT_PLAN_RESULT, place(f, make_alloc(f, j, "a1", "n1"), NULL));
    const char *all = told(f, r, &json);
    ck_assert_msg(strstr(all, "Allocation PlanResult a1 web") != NULL, "%s", all);
    ck_assert_ptr_nonnull(strstr(json, "\"FilterKeys\":[\"web\"]"));
    feed(r, f, 0, stop_job(f, "web", true, NULL));
    all = told(f, r, &json);
    ck_assert_msg(strstr(all, "Job JobDeregistered web") != NULL, "%s", all);
    ck_assert_ptr_nonnull(strstr(json, ",\"Deleted\":true}}"));
    feed(r, f, 0, put_pool(f, "gpu"));
    ck_assert_str_eq(told(f, r, NULL), "NodePool NodePoolUpserted gpu");
    feed(r, f, 0, delete_pool(f, "gpu"));
    ck_assert_str_eq(told(f, r, NULL), "NodePool NodePoolDeleted gpu");
    mem_free(r);
    fx_free(f);
}
END_TEST

START_TEST(topics_are_matched_by_any_key)
{
    const char *keys[] = {"web", "d1"};
    const struct event_head h = {.topic = "Allocation", .key = "a1", .filter_keys = {keys, 2}};
    static const struct {
        const char *want;
        bool matches;
    } rows[] = {{"*", true},
                {"*:*", true},
                {"*:d1", true},
                {"*:d2", false},
                {"Allocation", true},
                {"Allocation:*", true},
                {"Allocation:a1", true},
                {"Allocation:web", true},
                {"Allocation:we", false},
                {"Alloc", false},
                {"Allocations", false},
                {"allocation", false},
                {"Job:web", false},
                {"", false},
                {":web", false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        ck_assert_msg(event_matches(&h, rows[i].want) == rows[i].matches, "%s", rows[i].want);
    ck_assert_str_eq(event_topic("Node")->need, "node:read");
    ck_assert_str_eq(event_topic("*")->need, "management");
    ck_assert_ptr_null(event_topic("node"));
}
END_TEST

TEST_SUITE("events", entries_are_found_by_index, memory_is_bounded, another_state_is_a_gap,
           rows_become_events_of_nomads_names, topics_are_matched_by_any_key)
