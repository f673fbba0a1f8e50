/* SPDX-License-Identifier: Apache-2.0
 *
 * What servers keep and say about the log: the window of recent entries, entries read back from the
 * files, and messages as bytes.
 */
#include <string.h>

#include "common/mem.h"
#include "server/raft/log.h"
#include "server/raft/recent.h"
#include "server/raft/wire.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

/* --- the window --- */

static void
add(struct recent *r, uint64_t index, uint64_t term, size_t n)
{
    auto_mem uint8_t *data = mem_array(NULL, uint8_t, n + 1);
    memset(data, (int)index, n);
    recent_add(r, &(struct record){index, term, RECORD_COMMAND, data, n});
}

START_TEST(window_keeps_the_newest)
{
    auto_mem struct recent *r = recent_new(NULL);
    for (uint64_t i = 5; i < 5 + RECENT_ENTRIES + 10; i++)
        add(r, i, 1 + i / 1000, 8);
    ck_assert_ptr_null(recent_get(r, 14));
    ck_assert_uint_eq(recent_get(r, 15)->index, 15);
    ck_assert_uint_eq(*(const uint8_t *)recent_get(r, 15)->data, 15);
    ck_assert_uint_eq(recent_term(r, 5), 1);
    ck_assert_uint_eq(recent_term(r, 4), 0);
    ck_assert_uint_eq(recent_term(r, 2999), 3);
    ck_assert_uint_eq(recent_term(r, 5 + RECENT_ENTRIES + 10), 0);
    for (uint64_t i = 0; i < 5; i++)
        add(r, 5 + RECENT_ENTRIES + 10 + i, 20, RECENT_BYTES / 4);
    ck_assert_ptr_null(recent_get(r, 5 + RECENT_ENTRIES + 10));
    ck_assert_ptr_nonnull(recent_get(r, 5 + RECENT_ENTRIES + 11));
}
END_TEST

START_TEST(window_follows_truncation_and_compaction)
{
    auto_mem struct recent *r = recent_new(NULL);
    for (uint64_t i = 1; i <= 9; i++)
        add(r, i, i < 5 ? 1 : 2, 3);
    recent_cut(r, 4);
    ck_assert_ptr_null(recent_get(r, 4));
    ck_assert_uint_eq(recent_term(r, 4), 0);
    add(r, 4, 3, 3);
    ck_assert_uint_eq(recent_get(r, 4)->term, 3);
    ck_assert_uint_eq(recent_term(r, 3), 1);
    recent_drop(r, 4);
    ck_assert_uint_eq(recent_term(r, 3), 0);
    ck_assert_ptr_null(recent_get(r, 3));
    ck_assert_uint_eq(recent_term(r, 4), 3);
    recent_term_add(r, 5, 3); /* of a sole server: no data */
    add(r, 6, 3, 1);
    ck_assert_ptr_null(recent_get(r, 4));
    ck_assert_ptr_null(recent_get(r, 5));
    ck_assert_uint_eq(recent_get(r, 6)->index, 6);
    recent_cut(r, 1);
    ck_assert_uint_eq(recent_term(r, 4), 0);
    add(r, 1, 9, 1);
    ck_assert_uint_eq(recent_term(r, 1), 9);
}
END_TEST

/* --- from the files --- */

static void
on_durable(void *arg, uint64_t index)
{
    (void)arg;
    (void)index;
}

static void
log_add(struct raft_log *l, uint64_t index, uint64_t term)
{
    uint64_t data[64] = {index, term};
    struct record r = {index, term, RECORD_COMMAND, data, sizeof(data)};
    raft_log_append(l, &r);
    if (index % 16 == 0)
        raft_log_sync(l);
}

START_TEST(older_entries_are_read_back)
{
    struct raft_log_opts o = {.segment_bytes = 8192, .on_durable = on_durable};
    struct raft_log *l = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(raft_log_open(tmp_dir(), &o, &l, &e), 0);
    for (uint64_t i = 1; i <= 100; i++)
        log_add(l, i, 1);
    raft_log_truncate(l, 40); /* entries 40 to 100 of term 1 stay in the files */
    for (uint64_t i = 40; i <= 200; i++)
        log_add(l, i, 2);
    raft_log_sync(l);
    auto_mem void *tmp = mem_ctx("test");
    for (uint64_t from = 1; from <= 200; from += 7) {
        struct record v[64];
        size_t n = 200 - from + 1 < 64 ? (size_t)(200 - from + 1) : 64;
        for (size_t k = 0; k < n; k++)
            v[k] = (struct record){.index = from + k, .term = from + k < 40 ? 1 : 2};
        ck_assert_uint_eq(raft_log_read(l, tmp, v, n, SIZE_MAX), n);
        for (size_t k = 0; k < n; k++) {
            const uint64_t *d = v[k].data;
            ck_assert(v[k].type == RECORD_COMMAND && v[k].n == 512);
            ck_assert(d[0] == v[k].index && d[1] == v[k].term);
        }
    }
    struct record none = {.index = 201, .term = 2};
    ck_assert_uint_eq(raft_log_read(l, tmp, &none, 1, SIZE_MAX), 0);
    none = (struct record){.index = 50, .term = 3};
    ck_assert_uint_eq(raft_log_read(l, tmp, &none, 1, SIZE_MAX), 0);
    raft_log_close(l);
}
END_TEST

/* --- bytes --- */

static const struct record some[] = {{0, 3, RECORD_COMMAND, "abc", 3},
                                     {0, 3, RECORD_BARRIER, NULL, 0},
                                     {0, 4, RECORD_CONFIG, "x", 1}};

START_TEST(messages_round_trip)
{
    auto_mem void *tmp = mem_ctx("test");
    struct wire w = {.kind = WIRE_MSG,
                     .msg = {.type = MSG_APPEND,
                             .term = 4,
                             .index = 7,
                             .log_term = 3,
                             .commit = 6,
                             .rejected = 1,
                             .last = UINT64_MAX,
                             .stamp = 5,
                             .pre_vote = true,
                             .entries = some,
                             .n = ARRAY_LEN(some)}};
    struct wire r = {0};
    struct err e = ERR_INIT;
    struct buf b = BUF_INIT(4096);
    wire_put(&b, &w);
    ck_assert_int_eq(wire_get(tmp, b.data, b.len, &r, &e), 0);
    ck_assert(r.msg.type == MSG_APPEND && r.msg.term == 4 && r.msg.index == 7 &&
              r.msg.log_term == 3);
    ck_assert(r.msg.commit == 6 && r.msg.rejected == 1 && r.msg.last == UINT64_MAX &&
              r.msg.stamp == 5);
    ck_assert(r.msg.pre_vote && !r.msg.granted && !r.msg.disrupt);
    ck_assert_uint_eq(r.msg.n, ARRAY_LEN(some));
    for (size_t i = 0; i < r.msg.n; i++) {
        ck_assert(r.msg.entries[i].term == some[i].term && r.msg.entries[i].type == some[i].type);
        ck_assert_uint_eq(r.msg.entries[i].n, some[i].n);
        ck_assert(some[i].n == 0 || memcmp(r.msg.entries[i].data, some[i].data, some[i].n) == 0);
    }
    for (size_t i = 0; i < b.len; i++) { /* any byte that is changed, any end that is cut off */
        b.data[i] ^= 0x10;
        ck_assert_int_lt(wire_get(tmp, b.data, b.len, &r, &e), 0);
        b.data[i] ^= 0x10;
        ck_assert_int_lt(wire_get(tmp, b.data, i, &r, &e), 0);
    }
    buf_done(&b);
}
END_TEST

START_TEST(hello_and_refusal_round_trip)
{
    auto_mem void *tmp = mem_ctx("test");
    struct wire w = {
        .kind = WIRE_HELLO, .from = 1, .to = 2, .cluster = "c", .addr = "127.0.0.1:4647"};
    struct wire r = {0};
    struct err e = ERR_INIT;
    struct buf b = BUF_INIT(4096);
    wire_put(&b, &w);
    ck_assert_int_eq(wire_get(tmp, b.data, b.len, &r, &e), 0);
    ck_assert(r.kind == WIRE_HELLO && r.from == 1 && r.to == 2);
    ck_assert_str_eq(r.cluster, "c");
    ck_assert_str_eq(r.addr, "127.0.0.1:4647");
    buf_reset(&b);
    wire_put(&b, &(struct wire){.kind = WIRE_REFUSED, .why = "another cluster"});
    ck_assert_int_eq(wire_get(tmp, b.data, b.len, &r, &e), 0);
    ck_assert_str_eq(r.why, "another cluster");
    buf_done(&b);
}
END_TEST

/* --- configurations --- */

START_TEST(configurations_round_trip_and_reject_garbage)
{
    auto_mem void *tmp = mem_ctx("test");
    struct peer v[5];
    for (unsigned i = 0; i < 5; i++)
        v[i] = (struct peer){.id = i + 1, .addr = mem_printf(tmp, "s%u", i + 1), .role = PEER_VOTER};
    struct peer_list five = {.v = v, .n = 5}, l;
    struct record r = {.type = RECORD_CONFIG};
    void *data;
    ck_assert_int_eq(consensus_conf_encode(tmp, &five, &data, &r.n), 0);
    r.data = data;
    ck_assert_int_eq(consensus_conf_decode(tmp, r.data, r.n, &l), 0);
    ck_assert_uint_eq(l.n, 5);
    ck_assert_str_eq(l.v[4].addr, "s5");
    uint8_t *copy = mem_dup(tmp, r.data, r.n);
    for (size_t n = 0; n < r.n;
         n++) /* cut anywhere but in the padding: refused, never read beyond */
        if (consensus_conf_decode(tmp, copy, n, &l) == 0)
            ck_assert_uint_gt(n, r.n - 8);
    for (size_t i = 0; i < r.n; i++) {
        copy[i] ^= 0xff;
        consensus_conf_decode(tmp, copy, r.n, &l);
        copy[i] ^= 0xff;
    }
    v[1].id = 1;
    size_t n;
    ck_assert_int_eq(consensus_conf_encode(tmp, &five, &data, &n), -ERR_INVALID);
}
END_TEST

TEST_SUITE("raft-wire", window_keeps_the_newest, window_follows_truncation_and_compaction,
           older_entries_are_read_back, messages_round_trip, hello_and_refusal_round_trip,
           configurations_round_trip_and_reject_garbage)
