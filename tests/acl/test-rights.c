/* SPDX-License-Identifier: Apache-2.0
 *
 * Needs, and what policies allow: tables. The policies p1 to p12, and the rows that name one, are the
 * vectors that a Nomad server was asked as well.
 */
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "common/mem.h"
#include "tests/lib/test.h"

static const struct {
    const char *name, *text;
} policies[] = {
    {"p1", "namespace \"a\" { policy = \"read\" }"},
    {"p2", "namespace \"a\" { policy = \"deny\" }"},
    {"p3", "namespace \"*\" { policy = \"write\" }"},
    {"p4", "namespace \"prod-*\" { policy = \"write\" } namespace \"prod-a*\" { policy = \"deny\" }"},
    {"p5", "namespace \"a\" { variables { path \"x/*\" { capabilities = [\"read\"] } "
           "path \"x/secret\" { capabilities = [\"deny\"] } } }"},
    {"p6", "namespace \"a\" { variables { path \"x/secret\" { capabilities = [\"read\"] } } }"},
    {"p7", "node { policy = \"read\" }"},
    {"p8", "node_pool \"gpu-*\" { policy = \"write\" } node_pool \"gpu-1\" { capabilities = [\"read\"] }"},
    {"p9", "operator { capabilities = [\"snapshot-save\"] }"},
    {"p10", "namespace \"a\" { capabilities = [\"register-job\"] }"},
    {"p11", "namespace \"a\" { capabilities = [\"purge-job\"] }"},
    {"p12", "host_volume \"data\" { policy = \"read\" }"},
    {"opwrite", "operator { policy = \"write\" capabilities = [\"deny\"] }"},
    {"opfull", "operator { policy = \"write\" }"},
    {"opread", "operator { policy = \"read\" }"},
    {"opdeny", "operator { policy = \"deny\" }"},
    {"plugin", "plugin { policy = \"write\" }"},
    {"plist", "plugin { policy = \"list\" }"},
    {"agentw", "agent { policy = \"write\" }"},
    {"agentr", "agent { policy = \"read\" }"},
    {"agentd", "agent { policy = \"deny\" }"},
    {"agents", "agent { policy = \"scale\" } quota { policy = \"scale\" }"},
    {"quota", "quota { policy = \"write\" }"},
    {"empty", "namespace \"a\" {}"},
    {"poold", "node_pool \"*\" { policy = \"deny\" }"},
    {"vars", "namespace \"*\" { variables { path \"*\" { capabilities = [\"list\"] } path \"a*b\" { "
             "capabilities = [\"write\"] } path \"a*c\" { capabilities = [\"destroy\"] } } }"},
    {"varno", "namespace \"a\" { policy = \"deny\" variables { path \"x/*\" { capabilities = [\"read\"] } } "
     "}"},
    {"tie", "namespace \"a*b\" { capabilities = [\"read-job\"] } namespace \"*ab\" { capabilities = "
     "[\"read-logs\"] }"},
    {"long", "namespace \"x-*-y*\" { capabilities = [\"read-job\"] } namespace \"x*\" { capabilities = "
     "[\"read-fs\"] }"},
    {"mid", "namespace \"*mid*\" { capabilities = [\"read-job\"] } namespace \"*\" { capabilities = "
     "[\"read-fs\"] }"},
    {"stars", "namespace \"**\" { capabilities = [\"read-job\"] } namespace \"***\" { capabilities = "
     "[\"read-fs\"] }"},
};

static const struct {
    const char *held, *need, *name, *path;
    bool allowed;
} rows[] = {
    {"p1", "list-jobs", "a", NULL, true},
    {"p1", "list-jobs", "b", NULL, false},
    {"p1", "list-jobs", "*", NULL, true},
    {"p1", "submit-job", "*", NULL, false},
    {"p1", "submit-job|read-job", "a", NULL, true},
    {"p1", "read-job", "A", NULL, false},
    {"p1", "read-job", "", NULL, false},
    {"p1", "read-job", NULL, NULL, false},
    {"p1 p2", "list-jobs", "a", NULL, false},
    {"p2 p1", "list-jobs", "a", NULL, false},
    {"p2 p1", "list-jobs", "*", NULL, false},
    {"p1 p3", "submit-job", "a", NULL, false}, /* the plain rule hides the pattern */
    {"p3", "submit-job", "a", NULL, true},
    {"p3", "submit-job", "anything", NULL, true},
    {"p4", "list-jobs", "prod-api", NULL, false},
    {"p4", "list-jobs", "prod-b", NULL, true},
    {"p4", "list-jobs", "prod-", NULL, true},
    {"p4", "list-jobs", "prod", NULL, false},
    {"p5", "variable:read", "a", "x/one", true},
    {"p5", "variable:list", "a", "x/one", true},
    {"p5", "variable:write", "a", "x/one", false},
    {"p5", "variable:read", "a", "x/secret", false},
    {"p5", "variable:read", "b", "x/one", false},
    {"p5 p6", "variable:read", "a", "x/secret", false}, /* flaw 3 */
    {"p6", "variable:read", "a", "x/secret", true},
    {"p2 p6", "variable:read", "a", "x/secret", false}, /* flaw 4 */
    {"p6 p2", "variable:any", "a", NULL, false},
    {"varno", "variable:read", "a", "x/one", false},
    {"p5", "variable:list", "a", NULL, true},
    {"p5", "variable:write", "a", NULL, false},
    {"p5", "variable:any", "prod", NULL, false}, /* flaw 6 */
    {"p5", "variable:list", "*", NULL, true},
    {"p5", "read-job", "a", NULL, false},
    {"p5 p3", "read-job", "a", NULL, false}, /* it has a plain rule, which holds nothing */
    {"vars", "variable:list", "a", "q", true},
    {"vars", "variable:write", "a", "a/x/b", true},
    {"vars", "variable:list", "a", "a/x/b", false},
    {"vars", "variable:destroy", "a", "a/x/c", true},
    {"vars", "variable:write", "zz", NULL, true},
    {"p7", "node:read", NULL, NULL, true},
    {"p7", "node:write", NULL, NULL, false},
    {"p7", "agent:read", NULL, NULL, false},
    {"p8", "node-pool:write", "gpu-1", NULL, false},
    {"p8", "node-pool:read", "gpu-1", NULL, true},
    {"p8", "node-pool:write", "gpu-2", NULL, true},
    {"p8", "node-pool:any", "*", NULL, true},
    {"p8", "node-pool:any", "cpu", NULL, false},
    {"poold", "node-pool:any", "*", NULL, false},
    {"p9", "operator-cap:snapshot-save", NULL, NULL, true},
    {"p9", "operator-cap:keyring-read", NULL, NULL, false},
    {"p9", "operator:read", NULL, NULL, false},
    {"opread", "operator-cap:keyring-read", NULL, NULL, true},
    {"opread", "operator-cap:keyring-rotate", NULL, NULL, false},
    {"opread p9", "operator-cap:snapshot-save", NULL, NULL, true},
    {"opread", "operator:read", NULL, NULL, true},
    {"opfull", "operator-cap:keyring-rotate", NULL, NULL, true},
    {"opwrite", "operator-cap:keyring-rotate", NULL, NULL, false}, /* flaw 7 */
    {"opwrite", "operator:write", NULL, NULL, false},
    {"opfull opdeny", "operator:read", NULL, NULL, false},
    {"p9 opdeny", "operator-cap:snapshot-save", NULL, NULL, false},
    {"p10", "submit-job|register-job", "a", NULL, true},
    {"p10", "submit-job|plan-job", "a", NULL, false},
    {"p11", "submit-job|purge-job", "a", NULL, true},
    {"p11", "namespace:any", "a", NULL, true},
    {"empty", "namespace:any", "a", NULL, false},
    {"empty p3", "read-job", "a", NULL, false},
    {"p2", "namespace:any", "a", NULL, false},
    {"p12", "host-volume:mount-readonly", "data", NULL, true},
    {"p12", "host-volume:mount-readwrite", "data", NULL, false},
    {"p12", "host-volume:any", "*", NULL, false},
    {"plugin", "plugin:list", NULL, NULL, true}, /* flaw 8 */
    {"plugin", "plugin:read", NULL, NULL, true},
    {"plist", "plugin:list", NULL, NULL, true},
    {"plist", "plugin:read", NULL, NULL, false},
    {"agentw", "agent:read", NULL, NULL, true},
    {"agentr", "agent:write", NULL, NULL, false},
    {"agentr agentw", "agent:write", NULL, NULL, true},
    {"agentw agentd agentr", "agent:read", NULL, NULL, false},
    {"agents", "agent:read", NULL, NULL, false},
    {"agents", "quota:read", NULL, NULL, false},
    {"quota", "quota:read", NULL, NULL, true},
    {"tie", "read-logs", "aab", NULL, true}, /* equally close: first in byte order */
    {"tie", "read-job", "aab", NULL, false},
    {"tie", "read-job", "axb", NULL, true},
    {"long", "read-job", "x-1-y", NULL, true},
    {"long", "read-job", "x-1-y2", NULL, true},
    {"long", "read-fs", "x-1-z", NULL, true},
    {"mid", "read-job", "amidb", NULL, true},
    {"mid", "read-job", "mid", NULL, true},
    {"mid", "read-fs", "midd", NULL, false},
    {"mid", "read-fs", "mi", NULL, true},
    {"stars", "read-job", "q", NULL, true},
    {"stars", "read-fs", "q", NULL, false},
    {"", "none", NULL, NULL, true},
    {"", "any", NULL, NULL, true},
    {"", "management", NULL, NULL, false},
    {"p3 agentw opfull", "management", NULL, NULL, false},
    {"p3 agentw opfull", "client", NULL, NULL, false},
    {"p3 agentw opfull", "server", NULL, NULL, false},
    {"", "read-job", "a", NULL, false},
    {"", "read-job", "*", NULL, false},
    {"", "variable:any", "*", NULL, false},
};

/* The policies of a list of names. */
static size_t
hold(const void *ctx, const char *names, struct acl_source *ret)
{
    size_t n = 0;
    for (const char *p = names; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        const char *name = mem_strndup(ctx, p, len);
        p += len;
        for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
            struct acl_rules *r = NULL;
            struct err e = ERR_INIT;
            if (strcmp(policies[i].name, name) != 0)
                continue;
            int code = acl_rules_parse(ctx, policies[i].text, strlen(policies[i].text), ACL_STRICT, &r, &e);
            ck_assert_msg(code == 0, "%s: %s", name, e.text);
            ret[n++] = (struct acl_source){name, r};
        }
    }
    return n;
}

static struct acl_need
need_of(const char *word)
{
    struct err e = ERR_INIT;
    struct acl_need need = {0};
    ck_assert_msg(acl_need_parse(word, &need, &e) == 0, "%s: %s", word, e.text);
    return need;
}

START_TEST(policies_allow_what_they_say)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("row");
        struct acl_source v[8];
        size_t n = hold(ctx, rows[i].held, v);
        struct acl *a = acl_compile(v, n);
        struct acl_need need = need_of(rows[i].need);
        bool got = acl_allows(a, &need, rows[i].name, rows[i].path);
        ck_assert_msg(got == rows[i].allowed, "%s: %s of %s %s: %d", rows[i].held, rows[i].need,
                      rows[i].name ? rows[i].name : "-", rows[i].path ? rows[i].path : "-", got);
        ck_assert(!acl_is_management(a));
        acl_unref(a);
    }
}
END_TEST

START_TEST(management_has_all_but_what_is_proved_otherwise)
{
    struct acl *a = acl_management();
    ck_assert_ptr_eq(acl_ref(a), a);
    acl_unref(a);
    acl_unref(a);
    acl_unref(NULL);
    ck_assert(acl_is_management(a));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct acl_need need = need_of(rows[i].need);
        bool proved = need.kind == ACL_CLIENT || need.kind == ACL_SERVER;
        ck_assert(acl_allows(a, &need, rows[i].name, rows[i].path) == !proved);
    }
}
END_TEST

START_TEST(rights_are_counted_and_own_all)
{
    void *ctx = mem_ctx("test");
    struct acl_source v[8];
    size_t n = hold(ctx, "p1 p5 p8", v);
    struct acl *a = acl_ref(acl_compile(v, n));
    talloc_free(ctx);
    acl_unref(a);
    struct acl_need need = need_of("read-job"), pool = need_of("node-pool:write");
    ck_assert(acl_allows(a, &need, "a", NULL));
    ck_assert(acl_allows(a, &pool, "gpu-7", NULL));
    acl_unref(a);
}
END_TEST

static const char *const no_need[] = {
    "", "deny", "read-job|", "|read-job", "read-job|deny", "fly", "agent:", "agent:list",
        "agent:read|write", "plugin:deny",
    "namespace:", "variable:submit-job", "node-pool:mount-readonly", "none|any", "read-job ",
        "operator-cap:sentinel-read",
};

START_TEST(needs_are_read_or_refused)
{
    struct acl_need need = need_of("submit-job|register-job");
    ck_assert_uint_eq(need.kind, ACL_NAMESPACE);
    ck_assert_uint_eq(need.caps, ACL_CAP(NS_SUBMIT_JOB) | ACL_CAP(NS_REGISTER_JOB));
    need = need_of("plugin:list");
    ck_assert_uint_eq(need.level, ACL_LEVEL_LIST);
    need = need_of("namespace:any");
    ck_assert_uint_eq(need.caps, 0);
    for (size_t i = 0; i < ARRAY_LEN(no_need); i++) {
        struct err e = ERR_INIT;
        ck_assert_msg(acl_need_parse(no_need[i], &need, &e) == -ERR_INVALID, "%s", no_need[i]);
        ck_assert_str_ne(e.text, "");
    }
    /* each capability but deny is a need of its kind */
    static const char *const prefixes[] = {"", "variable:", "node-pool:", "host-volume:", "operator-cap:"};
    static const unsigned counts[] = {45, 5, 4, 3, 6, 4};
    for (unsigned k = 0; k < ACL_CAPS_KINDS; k++) {
        unsigned n = 0;
        for (const char *name; (name = acl_cap_name((enum acl_caps_kind)k, n)) != NULL; n++) {
            char word[64];
            ck_assert_int_eq(acl_cap_find((enum acl_caps_kind)k, name, strlen(name)), (int)n);
            snprintf(word, sizeof(word), "%s%s", k < 5 ? prefixes[k] : "", name);
            if (n > 0 && k < 5)
                ck_assert_uint_eq(need_of(word).caps, UINT64_C(1) << n);
        }
        ck_assert_uint_eq(n, counts[k]);
    }
}
END_TEST

static const struct {
    const char *held, *need, *name, *path, *why;
} whys[] = {
    {"p1", "read-job", "a", NULL, "policy \"p1\": namespace \"a\" has read-job"},
    {"p1 p10", "submit-job|register-job", "a", NULL, "policy \"p10\": namespace \"a\" has register-job"},
    {"p1", "submit-job|register-job", "a", NULL,
     "policy \"p1\": namespace \"a\" counts and has not: submit-job or register-job"},
    {"p1 p3", "submit-job", "a", NULL, "policy \"p1\": namespace \"a\" counts and has not: submit-job"},
    {"p1 p2", "read-job", "a", NULL, "policy \"p2\": namespace \"a\" is denied"},
    {"p4", "read-job", "prod-api", NULL, "policy \"p4\": namespace \"prod-a*\" is denied"},
    {"p1", "read-job", "b", NULL, "no rule for namespace \"b\"; needed: read-job"},
    {"p2 p1 p4", "read-job", "*", NULL, "policy \"p4\": namespace \"prod-*\" has read-job"},
    {"p1", "submit-job", "*", NULL, "no rule for any name; needed: submit-job"},
    {"p5", "variable:read", "a", "x/1", "policy \"p5\": namespace \"a\", path \"x/*\" has read"},
    {"p6 p5", "variable:read", "a", "x/secret",
     "policy \"p5\": namespace \"a\", path \"x/secret\" is denied"},
    {"p6 p2", "variable:read", "a", "x/secret",
     "policy \"p2\": namespace \"a\" is denied, with its variables"},
    {"p6", "variable:read", "a", "y", "no rule for namespace \"a\", path \"y\"; needed: read"},
    {"p6", "variable:list", "a", NULL, "policy \"p6\": namespace \"a\", path \"x/secret\" has list"},
    {"p7", "node:read", NULL, NULL, "policy \"p7\": node has read"},
    {"p7", "node:write", NULL, NULL, "no rule has it: node { policy = \"write\" }"},
    {"agentw agentd", "agent:read", NULL, NULL, "policy \"agentd\": agent is denied"},
    {"p9", "operator-cap:snapshot-save", NULL, NULL, "policy \"p9\": operator has snapshot-save"},
    {"p9", "operator-cap:keyring-read", NULL, NULL, "no rule for operator; needed: keyring-read"},
    {"p9 opwrite", "operator-cap:snapshot-save", NULL, NULL, "policy \"opwrite\": operator is denied"},
    {"opfull", "operator-cap:snapshot-save", NULL, NULL, "policy \"opfull\": operator has write"},
    {"p12", "host-volume:any", "data", NULL, "policy \"p12\": host_volume \"data\" has any capability"},
    {"p8", "node-pool:write", "gpu-1", NULL, "policy \"p8\": node_pool \"gpu-1\" counts and has not: write"},
    {"", "management", NULL, NULL, "needed: a management token"},
    {"", "none", NULL, NULL, "anybody has it"},
    {"", "read-job", NULL, NULL, "no name was given"},
};

START_TEST(answers_have_reasons)
{
    for (size_t i = 0; i < ARRAY_LEN(whys); i++) {
        auto_mem void *ctx = mem_ctx("row");
        struct acl_source v[8];
        size_t n = hold(ctx, whys[i].held, v);
        struct acl_need need = need_of(whys[i].need);
        ck_assert_str_eq(acl_why(ctx, v, n, &need, whys[i].name, whys[i].path), whys[i].why);
    }
}
END_TEST

TEST_SUITE("rights", policies_allow_what_they_say, management_has_all_but_what_is_proved_otherwise,
           rights_are_counted_and_own_all, needs_are_read_or_refused, answers_have_reasons)
