/* SPDX-License-Identifier: Apache-2.0
 *
 * common/table.h: snapshots, prefix scans, deleting while scanning, limits.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/table.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

static struct table_env *
open_env(size_t bytes, unsigned *table)
{
    struct table_env *env = NULL;
    struct err e = ERR_INIT;
    auto_mem void *tmp = mem_ctx("path");
    const char *path = mem_printf(tmp, "%s/t.mdb", tmp_dir());
    ck_assert_msg(table_env_open(path, bytes, TABLE_NOSYNC, &env, &e) == 0, "%s", e.text);
    ck_assert_int_eq(table_open(env, "one", table, &e), 0);
    return env;
}

static struct slice
str(const char *s)
{
    return SLICE(s, strlen(s));
}

static void
put(struct table_env *env, unsigned t, const char *k, const char *v)
{
    int rc = 0;
    struct table_txn *x = table_write_begin(env, &rc);
    ck_assert_int_eq(table_put(x, t, str(k), str(v)), 0);
    ck_assert_int_eq(table_commit(x), 0);
}

static size_t
count(struct table_txn *t, unsigned table)
{
    struct table_scan *s = table_scan(t, table, (struct slice){NULL, 0});
    size_t n = 0;

    while (table_next(s))
        n++;
    table_scan_end(s);
    return n;
}

START_TEST(snapshots_do_not_move)
{
    unsigned t;
    int rc;
    struct slice v;
    struct table_env *env = open_env(1 << 20, &t);
    put(env, t, "a", "1");
    struct table_txn *old = table_read_begin(env, &rc);
    put(env, t, "a", "2");
    put(env, t, "b", "3");
    ck_assert_int_eq(table_get(old, t, str("a"), &v), 0);
    ck_assert_mem_eq(v.p, "1", 1);
    ck_assert_int_eq(table_get(old, t, str("b"), &v), -ERR_NOT_FOUND);
    ck_assert_uint_eq(count(old, t), 1);
    table_end(old);
    struct table_txn *now = table_read_begin(env, &rc);
    ck_assert_int_eq(table_get(now, t, str("a"), &v), 0);
    ck_assert_mem_eq(v.p, "2", 1);
    table_end(now);
    /* A dropped write never was. */
    struct table_txn *w = table_write_begin(env, &rc);
    ck_assert_int_eq(table_del(w, t, str("a")), 0);
    ck_assert_int_eq(table_del(w, t, str("zzz")), -ERR_NOT_FOUND);
    table_end(w);
    now = table_read_begin(env, &rc);
    ck_assert_uint_eq(count(now, t), 2);
    table_end(now);
    table_env_close(env);
}
END_TEST

START_TEST(scans_by_prefix)
{
    unsigned t;
    int rc;
    struct table_env *env = open_env(1 << 20, &t);
    static const char *const keys[] = {"a", "ab", "abc", "abd", "ac", "b", "\xff\xff"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        put(env, t, keys[i], keys[i]);
    static const struct {
        const char *prefix, *from;
        size_t n;
    } want[] = {{"", "", 7},    {"a", "a", 5},     {"ab", "ab", 3},         {"abc", "abc", 1},
                {"x", "x", 0},  {"a", "abd", 2},   {"\xff", "\xff", 1},     {"ab", "b", 0},
                {"ab", "a", 0}, {"abcd", "abcd", 0}};
    struct table_txn *r = table_read_begin(env, &rc);
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        size_t n = 0;
        struct table_scan *s = table_scan_from(r, t, str(want[i].prefix), str(want[i].from));
        for (; table_next(s); n++)
            ck_assert_mem_eq(s->key.p, s->val.p, s->key.n);
        ck_assert_int_eq(s->error, 0);
        table_scan_end(s);
        ck_assert_msg(n == want[i].n, "row %zu: %zu", i, n);
    }
    static const struct {
        const char *prefix, *from, *first;
        size_t n;
    } back[] = {{"", "", "\xff\xff", 7},
                {"a", "", "ac", 5},
                {"ab", "", "abd", 3},
                {"\xff", "", "\xff\xff", 1},
                {"x", "", NULL, 0},
                {"a", "abd", "abd", 4},
                {"a", "abcz", "abc", 3},
                {"ab", "aa", NULL, 0},
                {"", "zz", "b", 6},
                {"b", "\xff\xff\xff", NULL, 0}};
    for (size_t i = 0; i < ARRAY_LEN(back); i++) {
        size_t n = 0;
        struct table_scan *s = table_scan_back(r, t, str(back[i].prefix), str(back[i].from));
        for (; table_next(s); n++)
            if (n == 0)
                ck_assert_mem_eq(s->key.p, back[i].first, s->key.n);
        ck_assert_int_eq(s->error, 0);
        table_scan_end(s);
        ck_assert_msg(n == back[i].n, "back %zu: %zu", i, n);
    }
    table_end(r);
    struct table_txn *w = table_write_begin(env, &rc);
    struct table_scan *s = table_scan(w, t, str("ab"));
    while (table_next(s))
        ck_assert_int_eq(table_scan_del(s), 0);
    table_scan_end(s);
    ck_assert_int_eq(table_commit(w), 0);
    r = table_read_begin(env, &rc);
    ck_assert_uint_eq(count(r, t), 4);
    table_end(r);
    table_env_close(env);
}
END_TEST

START_TEST(limits_are_errors)
{
    unsigned t;
    int rc;
    struct slice v;
    char key[TABLE_KEY_MAX + 1];
    memset(key, 'k', sizeof(key));
    struct table_env *env = open_env(256 << 10, &t);
    struct table_txn *w = table_write_begin(env, &rc);
    ck_assert_int_eq(table_put(w, t, SLICE(key, 0), str("v")), -EINVAL);
    ck_assert_int_eq(table_put(w, t, SLICE(key, TABLE_KEY_MAX + 1), str("v")), -EINVAL);
    ck_assert_int_eq(table_get(w, t, SLICE(key, TABLE_KEY_MAX + 1), &v), -EINVAL);
    ck_assert_int_eq(table_put(w, t, SLICE(key, TABLE_KEY_MAX), str("v")), 0);
    ck_assert_int_eq(table_commit(w), 0);
    char big[4000];
    memset(big, 'x', sizeof(big));
    w = table_write_begin(env, &rc);
    for (int i = 0; rc == 0 && i < 1000; i++) {
        char k[16];
        snprintf(k, sizeof(k), "%d", i);
        rc = table_put(w, t, str(k), SLICE(big, sizeof(big)));
    }
    ck_assert_int_eq(rc, -ERR_LIMIT);
    table_end(w);
    ck_assert_uint_le(table_env_usage(env, SIZE_MAX), 1 << 20);
    struct table_txn *r = table_read_begin(env, &rc);
    ck_assert_int_eq(table_get(r, t, SLICE(key, TABLE_KEY_MAX), &v), 0); /* it is all still there */
    table_end(r);
    table_env_close(env);
}
END_TEST

START_TEST(deleted_pages_are_room)
{
    unsigned t;
    int rc = 0;
    char big[4000];
    struct table_env *env = open_env(4 << 20, &t);
    memset(big, 'x', sizeof(big));
    for (int i = 0; i < 700; i++) {
        char k[16];
        snprintf(k, sizeof(k), "%d", i);
        struct table_txn *w = table_write_begin(env, &rc);
        ck_assert_int_eq(table_put(w, t, str(k), SLICE(big, sizeof(big))), 0);
        ck_assert_int_eq(table_commit(w), 0);
    }
    ck_assert_uint_gt(table_env_usage(env, 0), 2 << 20);
    struct table_txn *w = table_write_begin(env, &rc);
    struct table_scan *s = table_scan(w, t, SLICE(NULL, 0));
    while (table_next(s))
        ck_assert_int_eq(table_scan_del(s), 0);
    table_scan_end(s);
    ck_assert_int_eq(table_commit(w), 0);
    ck_assert_uint_lt(table_env_usage(env, 0), 200 << 10);
    ck_assert_uint_gt(table_env_usage(env, SIZE_MAX), 2 << 20); /* the file is as long as before */
    table_env_close(env);
}
END_TEST

struct reader {
    struct table_env *env;
    unsigned t;
    atomic_bool odd;
};

/* Rows "a" and "b" are always written together. */
static void *
read_pairs(void *arg)
{
    struct reader *r = arg;
    for (int i = 0; i < 2000; i++) {
        int rc;
        struct slice a, b;
        struct table_txn *x = table_read_begin(r->env, &rc);
        if (table_get(x, r->t, str("a"), &a) != 0 || table_get(x, r->t, str("b"), &b) != 0 ||
            a.n != b.n || memcmp(a.p, b.p, a.n) != 0)
            r->odd = true;
        table_end(x);
    }
    return NULL;
}

START_TEST(readers_in_any_thread)
{
    struct reader r = {0};
    r.env = open_env(64 << 20, &r.t); /* a reader that is not scheduled pins pages */
    put(r.env, r.t, "a", "0");
    put(r.env, r.t, "b", "0");
    pthread_t th[4];
    for (size_t i = 0; i < ARRAY_LEN(th); i++)
        ck_assert_int_eq(pthread_create(&th[i], NULL, read_pairs, &r), 0);
    for (int i = 0; i < 500; i++) {
        char v[16];
        int rc;
        snprintf(v, sizeof(v), "%d", i);
        struct table_txn *w = table_write_begin(r.env, &rc);
        table_put(w, r.t, str("a"), str(v));
        table_put(w, r.t, str("b"), str(v));
        ck_assert_int_eq(table_commit(w), 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(th); i++)
        pthread_join(th[i], NULL);
    ck_assert(!r.odd);
    table_env_close(r.env);
}
END_TEST

TEST_SUITE("table", snapshots_do_not_move, scans_by_prefix, limits_are_errors,
           deleted_pages_are_room, readers_in_any_thread)
