/* SPDX-License-Identifier: Apache-2.0
 *
 * Who a task may run as; above all, root by no spelling (attempt A50).
 */
#include "isolation/confine/users.h"
#include "isolation/launch/policy.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/fd.h"
#include "tests/lib/test.h"

static char dir[64];
static char passwd[96], group[96];
static struct users_files files;

static void
put(const char *path, const char *text)
{
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, text, strlen(text), 0644), 0);
}

static void
setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/paddock-users-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(passwd, sizeof(passwd), "%s/passwd", dir);
    snprintf(group, sizeof(group), "%s/group", dir);
    files = (struct users_files){passwd, group};
    put(passwd, "root:x:0:0:root:/root:/bin/sh\n"
                "toor:x:0:0::/root:/bin/sh\n"
                "wheelie:x:50:0::/:/bin/sh\n"
                "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
                "web:x:1000:1000:Web:/home/web:/bin/sh\n"
                "dock:x:1001:1001::/home/dock:/bin/sh\n"
                "disky:x:1002:6::/:/bin/sh\n"
                "1234:x:4321:4321::/:/bin/sh\n"
                "shim:x:65535:1000::/:/bin/sh\n");
    put(group, "root:x:0:\ndisk:x:6:\ndocker:x:900:dock\nweb:x:1000:\nteam:x:2000:web,other\n"
               "games:x:60:other,web\nlast:x:61:");
}

static void
teardown(void)
{
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}

static int
resolve(const char *spec, const char *const *denied, size_t n, struct user *u)
{
    struct err e = ERR_INIT;
    int r = users_resolve(spec, denied, n, &files, u, &e);
    ck_assert_msg(r == 0 || (e.text[0] && e.code == r), "%s", spec);
    return r;
}

static const char *const root_denied[] = {"root"};

START_TEST(names_and_uids_resolve)
{
    setup();
    struct user u;
    ck_assert_int_eq(resolve("web", root_denied, 1, &u), 0);
    ck_assert_uint_eq(u.uid, 1000);
    ck_assert_uint_eq(u.gid, 1000);
    ck_assert_uint_eq(u.n_groups, 3);
    ck_assert_uint_eq(u.groups[1], 2000);
    ck_assert_uint_eq(u.groups[2], 60);
    ck_assert_str_eq(u.home, "/home/web");
    ck_assert_int_eq(resolve("1000", root_denied, 1, &u), 0);
    ck_assert_str_eq(u.name, "web");
    ck_assert_int_eq(resolve("nobody", root_denied, 1, &u), 0);
    ck_assert_uint_eq(u.uid, 65534);
    /* digits are a uid, never a name */
    ck_assert_int_eq(resolve("1234", root_denied, 1, &u), -ERR_NOT_FOUND);
    ck_assert_int_eq(resolve("nosuchuser", root_denied, 1, &u), -ERR_NOT_FOUND);
    ck_assert_int_eq(resolve("shim", NULL, 0, &u), -ERR_POLICY); /* whoever shims run as */
    teardown();
}
END_TEST

START_TEST(root_by_no_spelling)
{
    static const char *const spellings[] = {
        "root", "0",          "0:0",        "+0",     " 0",       "0 ",      "00",    "0x0",
        "-0",   "",           "root:root",  "toor",   "ROOT",     "root ",   " root", "\troot",
        "#0",   "4294967296", "4294967295", "-1",     "65535",    "0.0",     "１",    "root\n",
        "0\n",  "1000:0",     "web:root",   "./root", "../root",  "wheelie", "50",    "dock",
        "1001", "disky",      "1002",       "ro ot",  "\xc0\xb0",
    };
    setup();
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        struct user u = {.uid = 42};
        ck_assert_msg(resolve(spellings[i], root_denied, 1, &u) < 0, "\"%s\"", spellings[i]);
        ck_assert_uint_eq(u.uid, 42);
        static const char *const zero[] = {"0"};
        ck_assert_msg(resolve(spellings[i], zero, 1, &u) < 0, "\"%s\"", spellings[i]);
    }
    teardown();
}
END_TEST

START_TEST(policy_bounds_limits)
{
    struct policy p = {.swap_max = 8 << 20, .hugetlb_max = 4 << 20};
    struct task_isolation l = {.swap = 8, .hugetlb = 4, .memory_low = 1 << 10};
    struct err e = ERR_INIT;
    ck_assert_int_eq(policy_check_limits(&p, NULL, &e), 0);
    ck_assert_msg(policy_check_limits(&p, &l, &e) == 0, "%s", e.text);
    l.swap++;
    ck_assert_int_eq(policy_check_limits(&p, &l, &e), -ERR_POLICY);
    ck_assert_ptr_nonnull(strstr(e.text, "isolation.swap_max"));
    err_clear(&e);
    l.swap = 0;
    l.memory_min = 1;
    ck_assert_int_eq(policy_check_limits(&p, &l, &e), -ERR_POLICY);
    ck_assert_ptr_nonnull(strstr(e.text, "isolation.memory_min_max"));
    ck_assert(!policy_limits_required(&p));
    p.limits = "required";
    ck_assert(policy_limits_required(&p));
}
END_TEST

START_TEST(who_denies_nobody_and_who_root_but_in_a_user_namespace)
{
    setup();
    static const char *web[] = {"web"}, *nobody[1];
    const struct str_list unset = {0}, empty = {nobody, 0}, some = {web, 1};
    const struct {
        struct str_list denied;
        bool userns_root, inside;
        const char *user;
        int want;
    } rows[] = {
        {unset, false, true, "root", -ERR_POLICY}, {unset, false, true, "dock", -ERR_POLICY},
        {empty, false, false, "root", 0},          {empty, false, false, "toor", 0},
        {some, false, false, "root", 0},           {some, false, false, "web", -ERR_POLICY},
        {unset, true, true, "root", 0},            {unset, true, true, "dock", 0},
        {unset, true, false, "root", -ERR_POLICY}, {unset, true, false, "dock", -ERR_POLICY},
        {some, true, true, "web", -ERR_POLICY},    {unset, true, true, "web", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct policy p = {
            .agent_uid = 1, .denied_users = rows[i].denied, .userns_root = rows[i].userns_root};
        struct launch_spec s = {.user = rows[i].user};
        struct err e = ERR_INIT;
        struct user u;
        ck_assert_msg(policy_user(&p, &s, rows[i].inside, &files, &u, &e) == rows[i].want,
                      "row %zu: %s", i, e.text);
    }
    teardown();
}
END_TEST

/* Such a process of the host would be the owner of a user namespace, and in it whatever it wants. */
START_TEST(nobody_is_an_id_of_the_ranges)
{
    setup();
    put(passwd, "owner:x:1879113728:1000::/:/bin/sh\nlast:x:2147352575:1000::/:/bin/sh\n"
                "above:x:2147352576:1000::/:/bin/sh\nbelow:x:1879048191:1000::/:/bin/sh\n");
    struct policy p = {.agent_uid = 1, .userns_base = 0};
    static const struct {
        const char *user;
        int want;
    } rows[] = {{"owner", -ERR_POLICY}, {"last", -ERR_POLICY}, {"above", 0}, {"below", 0}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err e = ERR_INIT;
        struct user u;
        struct launch_spec s = {.user = rows[i].user};
        ck_assert_msg(policy_user(&p, &s, false, &files, &u, &e) == rows[i].want, "%s: %s", rows[i].user,
                      e.text);
        ck_assert(rows[i].want == 0 || strstr(e.text, "isolation.userns_base") != NULL);
    }
    teardown();
}
END_TEST

START_TEST(policy_decides)
{
    setup();
    struct user u;
    /* an operator who allows root gets it, and the groups that go with it */
    ck_assert_int_eq(resolve("root", NULL, 0, &u), 0);
    ck_assert_uint_eq(u.uid, 0);
    ck_assert_int_eq(resolve("dock", NULL, 0, &u), 0);
    static const char *const web[] = {"root", "web"};
    ck_assert_int_eq(resolve("web", web, 2, &u), -ERR_POLICY);
    ck_assert_int_eq(resolve("1000", web, 2, &u), -ERR_POLICY);
    static const char *const by_id[] = {"1000", "ghost"};
    ck_assert_int_eq(resolve("web", by_id, 2, &u), -ERR_POLICY);
    ck_assert_int_eq(resolve("nobody", by_id, 2, &u), 0);
    teardown();
}
END_TEST

START_TEST(broken_files_are_survived)
{
    setup();
    struct user u;
    put(passwd, "");
    ck_assert_int_eq(resolve("web", root_denied, 1, &u), -ERR_NOT_FOUND);
    put(passwd, "::::::\nweb\nweb:x:\nweb:x:abc:def:::\n\xff\xfe\nweb:x:1000:1000:::\n");
    ck_assert_int_eq(resolve("web", root_denied, 1, &u), 0);
    ck_assert_int_eq(unlink(group), 0);
    ck_assert_int_lt(resolve("web", root_denied, 1, &u), 0);
    ck_assert_int_eq(unlink(passwd), 0);
    ck_assert_int_lt(resolve("web", root_denied, 1, &u), 0);
    teardown();
}
END_TEST

TEST_SUITE("users", names_and_uids_resolve, root_by_no_spelling, policy_bounds_limits,
           who_denies_nobody_and_who_root_but_in_a_user_namespace, nobody_is_an_id_of_the_ranges,
           policy_decides, broken_files_are_survived)
