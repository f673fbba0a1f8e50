/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a policy: its grammar, what is refused and in which words, what a shorthand stands for.
 */
#include <string.h>

#include "acl/acl.h"
#include "common/mem.h"
#include "tests/lib/test.h"

/* The rules as JSON, without their text. */
static const char *
shown(const void *ctx, const char *text, unsigned flags)
{
    struct err e = ERR_INIT;
    struct acl_rules *r = NULL;
    if (acl_rules_parse(ctx, text, strlen(text), flags, &r, &e) < 0)
        return mem_printf(ctx, "! %s", e.text);
    r->raw = NULL;
    auto_buf struct buf out = BUF_INIT(1 << 20);
    json_encode(&out, &type_acl_rules, r, 0);
    return mem_strdup(ctx, buf_str(&out));
}

#define READ9 \
    "[\"list-jobs\",\"parse-job\",\"read-job\",\"csi-list-volume\",\"csi-read-volume\"," \
    "\"read-job-scaling\",\"list-scaling-policies\",\"read-scaling-policy\",\"host-volume-read\"]"

/* Texts that say the same, one after the other; NULL between groups. */
static const char *const same[] = {
    "namespace \"a\" { policy = \"read\" }",
    "\"namespace\" \"a\" {\n policy = \"read\"\n}\n",
    "namespace a { policy = \"read\" }",
    "namespace \"a\" = { policy = \"read\", }",
    "# one\n// two\n/* three\n*/namespace/**/\"a\"{policy=\"read\"}# end",
    "namespace \"\\x61\" { policy = <<EOF\nread\nEOF\n}",
    "{\"namespace\": {\"a\": {\"policy\": \"read\"}}}",
    "  {\"namespace\": [{\"a\": {\"policy\": \"read\"}}]}",
    "{\"namespace\": [{\"a\": [{\"policy\": \"read\"}]}]}",
    NULL,
    "agent { policy = \"read\" } node { policy = \"write\" } node_pool \"x_*\" { policy = \"read\" "
        "capabilities = [ ] }",
    "{\"agent\": {\"policy\": \"read\"}, \"node\": [{\"policy\": \"write\"}],"
    " \"node_pool\": {\"x_*\": {\"policy\": \"read\"}}}",
    NULL,
    "namespace \"a\" { variables { path \"x/*\" { capabilities = [\"read\", \"list\", ] } path \"y\" {} } }",
    "{\"namespace\": {\"a\": {\"variables\": {\"path\": {\"x/*\": {\"capabilities\": [\"read\", \"list\"]}, "
        "\"y\": {}}}}}}",
    "namespace \"a\" { variables { path \"x/*\" { capabilities = [/**/\"read\" // all\n] } }\n"
    "variables { path \"y\" {} } }",
    NULL,
};

START_TEST(several_texts_say_the_same)
{
    auto_mem void *ctx = mem_ctx("test");
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        const char *first = shown(ctx, same[i], ACL_STRICT);
        ck_assert_msg(*first != '!', "%s\n%s", same[i], first);
        /* heredocs end with a line */
        for (i++; same[i]; i++) {
            const char *other = shown(ctx, same[i], ACL_STRICT);
            if (strstr(same[i], "EOF"))
                ck_assert_msg(strstr(other, "Invalid namespace policy \"read?\"") != NULL, "%s", other);
            else
                ck_assert_msg(strcmp(first, other) == 0, "%s\n%s\n%s", same[i], first, other);
        }
    }
}
END_TEST

static const struct {
    const char *text, *has; /* what the JSON has, or the beginning of the fault behind "! " */
} rows[] = {
    {"", "{\"Namespaces\":null"},
    {"namespace \"a\" { policy = \"read\" }", "\"Policy\":\"read\",\"Capabilities\":" READ9 ","},
    {"namespace \"a\" { policy = \"write\" }",
     "\"host-volume-read\",\"scale-job\",\"submit-job\",\"dispatch-job\",\"read-logs\","
     "\"read-fs\",\"alloc-exec\","
     "\"alloc-lifecycle\",\"csi-mount-volume\",\"csi-write-volume\",\"submit-recommendation\","
     "\"host-volume-create\"]"},
    {"namespace \"a\" { policy = \"scale\" }",
     "[\"list-scaling-policies\",\"read-scaling-policy\",\"read-job-scaling\",\"scale-job\",\"read-job\","
     "\"submit-recommendation\"]"},
    {"namespace \"a\" { policy = \"deny\" capabilities = [\"read-job\"] }", "[\"read-job\",\"deny\"]"},
    {"namespace \"a\" { capabilities = [\"host-volume-write\"] }",
     "[\"host-volume-write\",\"host-volume-register\",\"host-volume-create\","
     "\"host-volume-delete\",\"host-volume-read\"]"},
    {"namespace \"a\" { capabilities = [\"host-volume-register\"] }",
     "[\"host-volume-register\",\"host-volume-create\",\"host-volume-read\"]"},
    {"namespace \"a\" { capabilities = [\"host-volume-create\"] }",
     "[\"host-volume-create\",\"host-volume-read\"]"},
    {"namespace \"a\" { variables { path \"p\" { capabilities = [\"read\"] } } }", "[\"read\",\"list\"]"},
    {"namespace \"a\" { variables { path \"p\" { capabilities = [\"read\", \"deny\"] } } }", ":[\"deny\"]"},
    {"node_pool \"a_b\" { policy = \"write\" }", "[\"delete\",\"read\",\"write\"]"},
    {"node_pool \"a\" { policy = \"scale\" }", "\"Policy\":\"scale\",\"Capabilities\":null"},
    {"host_volume \"a\" { policy = \"read\" }", "[\"mount-readonly\"]"},
    {"host_volume \"a\" { policy = \"write\" }", "[\"mount-readonly\",\"mount-readwrite\"]"},
    {"operator { policy = \"read\" }", "[\"license-read\",\"keyring-read\"]"},
    {"operator { policy = \"write\" }",
     "[\"snapshot-save\",\"license-read\",\"keyring-rotate\",\"keyring-read\",\"keyring-delete\"]"},
    {"operator { capabilities = [\"snapshot-save\"] }", "[\"snapshot-save\"]"},
    {"sentinel { policy = \"write\" }", "[\"sentinel-read\",\"sentinel-submit\",\"sentinel-delete\"]"},
    {"plugin { policy = \"list\" }", "\"Plugin\":{\"Policy\":\"list\"}"},
    {"agent { policy = \"scale\" }", "\"Agent\":{\"Policy\":\"scale\"}"},
    /* refused, whatever for */
    {"namespace { policy = \"read\" }", "! Invalid namespace name \"\" (line 1)"},
    {"\n\nnamespace \"a b\" {}", "! Invalid namespace name \"a b\" (line 3)"},
    {"namespace \"a_b\" {}", "! Invalid namespace name"},
    {"{\"namespace\": {\"\": {}}}", "! Invalid namespace name \"\""},
    {"node_pool \"\" {}", "! Invalid node pool name"},
    {"host_volume \"a_b\" {}", "! Invalid host volume name"},
    {"namespace \"a\" { policy = \"list\" }", "! Invalid namespace policy \"list\": it takes deny read "
     "write scale"},
    {"namespace \"a\" { policy = 5 }", "! Invalid namespace policy: it is no text"},
    {"namespace \"a\" { policy = \"deny read\" }", "! Invalid namespace policy"},
    {"namespace \"a\" { capabilities = [\"fly\"] }", "! Invalid namespace capability \"fly\""},
    {"namespace \"a\" { capabilities = \"read-job\" }", "! Invalid namespace capabilities"},
    {"namespace \"a\" { variables {} }", "! Invalid variable policy: no variable paths in namespace \"a\""},
    {"namespace \"a\" { variables { path \"\" {} } }", "! Invalid missing variable path in namespace \"a\""},
    {"namespace \"a\" { variables { path \"/x\" {} } }", "! Invalid variable path \"/x\" in namespace \"a\""},
    {"namespace \"a\" { variables { path \"x\" { capabilities = [\"submit-job\"] } } }",
     "! Invalid variable capability \"submit-job\""},
    {"host_volume \"a\" { capabilities = [\"read\"] }", "! Invalid host volume capability"},
    {"agent {}", "! Invalid agent policy: it has none of"},
    {"agent { policy = \"list\" }", "! Invalid agent policy \"list\""},
    {"plugin { policy = \"scale\" }", "! Invalid plugin policy \"scale\""},
    {"operator { policy = \"scale\" }", "! Invalid operator policy \"scale\""},
    {"quota \"x\" { policy = \"read\" }", "! Invalid quota policy: it takes no label"},
    {"agent = \"read\"", "! Invalid agent policy: it is no block"},
    {" ", "! Invalid policy: it has no rule"},
    {"# nothing", "! Invalid policy: it has no rule"},
    {"namespace \"\" {}\nagent { policy = \"x\" }",
     "! Invalid namespace name \"\" (line 1); Invalid agent policy \"x\": it takes deny read write scale "
         "(line 2)"},
    /* no grammar */
    {"namespace \"a\" \"b\" {}", "! Failed to parse ACL Policy: line 1: \"{\" is expected after namespace "
     "\"a\""},
    {"namespace \"a\" {", "! Failed to parse ACL Policy: line 1: namespace of line 1 is not closed"},
    {"namespace \"a\" {}}", "! Failed to parse ACL Policy: line 1: a key is expected"},
    {"agent \"a", "! Failed to parse ACL Policy: line 1: a text is not closed"},
    {"agent \"\\q\" {}", "! Failed to parse ACL Policy: line 1: a text has an escape"},
    {"agent \"\\u0000\" {}", "! Failed to parse ACL Policy: line 1: a text has an escape"},
    {"agent \"\\ud800\" {}", "! Failed to parse ACL Policy: line 1: a text is no UTF-8"},
    {"agent \"\\", "! Failed to parse ACL Policy: line 1: a text is not closed"},
    {"agent \"\\u12\" {}", "! Failed to parse ACL Policy: line 1: a text has an escape"},
    {"\n/* agent", "! Failed to parse ACL Policy: line 2: a comment is not closed"},
    {"agent policy", "! Failed to parse ACL Policy: line 1: \"{\" is expected"},
    {"agent { policy }", "! Failed to parse ACL Policy: line 1: \"=\" or \"{\" is expected after policy"},
    {"agent { policy = }", "! Failed to parse ACL Policy: line 1: policy: a value is expected"},
    {"agent { policy = <<E\nx\n", "! Failed to parse ACL Policy: line 3: the text that begins with <<"},
    {"agent { policy = <<\nx\n", "! Failed to parse ACL Policy: line 1: << is followed"},
    {"namespace \"a\" { capabilities = [1] }",
     "! Failed to parse ACL Policy: line 1: capabilities: a text in quotes"},
    {"namespace \"a\" { capabilities = [\"x\" \"y\"] }",
     "! Failed to parse ACL Policy: line 1: capabilities: \",\" or"},
    {"a { a { a { a { a { a { a { a { a {", "! Failed to parse ACL Policy: line 1: blocks are more than 8 "
     "deep"},
    {"{\"a\": {\"a\": {\"a\": {\"a\": {\"a\": {\"a\": {\"a\": {\"a\": {\"a\": {}}}}}}}}}}",
     "! Failed to parse ACL Policy: objects are more than 8 deep"},
    {"{\"namespace\": 1}", "! Failed to parse ACL Policy: namespace: an object"},
    {"{\"namespace\": {\"a\": 1}}", "! Failed to parse ACL Policy: namespace a: an object is expected"},
    {"{\"namespace\": {\"a\": {\"capabilities\": [1]}}}",
     "! Failed to parse ACL Policy: capabilities: a list of texts"},
    {"{\"namespace\": ", "! Failed to parse ACL Policy: "},
    {"agent \xff", "! Failed to parse ACL Policy: it is no UTF-8"},
};

START_TEST(each_text_has_its_rules_or_its_fault)
{
    auto_mem void *ctx = mem_ctx("test");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const char *got = shown(ctx, rows[i].text, ACL_STRICT);
        bool ok = *rows[i].has == '!' ? strncmp(got, rows[i].has, strlen(rows[i].has)) == 0
                                      : *got != '!' && strstr(got, rows[i].has);
        ck_assert_msg(ok, "%s\ngot: %s\nnot: %s", rows[i].text, got, rows[i].has);
    }
}
END_TEST

static const char *const strict_only[] = {
    "namespace \"a\" {} quotas {}",
    "agent { policy = \"read\" } agent { policy = \"read\" }",
    "operator {} operator {}",
    "namespace \"a\" { policy = \"read\" policy = \"read\" }",
    "namespace \"a\" { polizy = \"read\" }",
    "agent { policy = \"read\" capabilities = [] }",
    "namespace \"a\" { variables { path \"x\" { policy = \"read\" } } }",
    "namespace \"a\" { variables { way \"x\" {} path \"y\" {} } }",
    "{\"quotas\": 1, \"agent\": {\"policy\": \"read\"}}",
};

START_TEST(keys_that_are_not_known_are_refused_for_writing_alone)
{
    auto_mem void *ctx = mem_ctx("test");
    for (size_t i = 0; i < ARRAY_LEN(strict_only); i++) {
        const char *got = shown(ctx, strict_only[i], ACL_STRICT);
        ck_assert_msg(strncmp(got, "! Invalid or duplicate policy keys: ", 36) == 0, "%s\n%s",
            strict_only[i], got);
        got = shown(ctx, strict_only[i], 0);
        ck_assert_msg(*got != '!', "%s\n%s", strict_only[i], got);
    }
    ck_assert_ptr_nonnull(strstr(shown(ctx, "x {}", 0), "\"ExtraKeysHCL\":[\"x\"]"));
    /* a deny is not taken back by a second block */
    const char *text = "agent { policy = \"deny\" } agent { policy = \"write\" }";
    ck_assert_ptr_nonnull(strstr(shown(ctx, text, 0), "\"Agent\":{\"Policy\":\"deny\"}"));
}
END_TEST

START_TEST(texts_are_kept_and_tame)
{
    auto_mem void *ctx = mem_ctx("test");
    struct acl_rules *r = NULL;
    struct err e = ERR_INIT;
    const char *text = "# why\nagent { policy = \"read\" }\n";
    ck_assert_int_eq(acl_rules_parse(ctx, text, strlen(text), ACL_STRICT, &r, &e), 0);
    ck_assert_str_eq(r->raw, text);
    text = "\"\\u001b[2J\" {}";
    ck_assert_int_eq(acl_rules_parse(ctx, text, strlen(text), ACL_STRICT, &r, &e), -ERR_INVALID);
    ck_assert_ptr_null(strchr(e.text, '\033'));
    ck_assert_int_eq(acl_rules_parse(ctx, "a\0b", 3, ACL_STRICT, &r, NULL), -ERR_INVALID);
    /* an indented text loses the indentation of its last line, and no more */
    const char *got = shown(ctx, "agent {\n policy = <<-X\n    read\n   X\n}", ACL_STRICT);
    ck_assert_msg(strstr(got, "policy \" read?\"") != NULL, "%s", got);
}
END_TEST

/* --- bounds --- */

static void
put_many(struct buf *b, const char *fmt, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        buf_printf(b, "%s", fmt);
        buf_printf(b, "\"n%u\" { policy = \"write\" }\n", i);
    }
}

START_TEST(sizes_have_bounds)
{
    auto_mem void *ctx = mem_ctx("test");
    struct acl_rules *r = NULL;
    struct err e = ERR_INIT;
    auto_buf struct buf b = BUF_INIT(4 << 20);
    put_many(&b, "namespace ", ACL_RULES_MAX);
    ck_assert_int_eq(acl_rules_parse(ctx, buf_str(&b), b.len, ACL_STRICT, &r, &e), 0);
    ck_assert_uint_eq(r->namespaces.n, ACL_RULES_MAX);
    put_many(&b, "namespace ", 1);
    ck_assert_int_eq(acl_rules_parse(ctx, buf_str(&b), b.len, ACL_STRICT, &r, &e), -ERR_INVALID);
    ck_assert_msg(strncmp(e.text, "Invalid policy: more than 10000 rules", 37) == 0, "%s", e.text);
    buf_reset(&b);
    for (int i = 0; i < (1 << 20) + 1; i++)
        buf_putc(&b, ' ');
    err_clear(&e);
    ck_assert_int_eq(acl_rules_parse(ctx, buf_str(&b), b.len, ACL_STRICT, &r, &e), -ERR_INVALID);
    ck_assert_msg(strncmp(e.text, "Invalid policy: it has 1048577 bytes", 36) == 0, "%s", e.text);
    /* a megabyte of everything that is short */
    static const char *const units[] = {"a{}", "a=1 ", "#\n", "/**/", "\"\"{}", "a{", "agent{}",
        "a=<<E\nE\n", "{"};
    for (size_t u = 0; u < ARRAY_LEN(units); u++) {
        auto_mem void *mine = mem_ctx("unit");
        buf_reset(&b);
        while (b.len + strlen(units[u]) <= 1 << 20)
            buf_puts(&b, units[u]);
        ck_assert_int_eq(acl_rules_parse(mine, buf_str(&b), b.len, ACL_STRICT, &r, NULL), -ERR_INVALID);
    }
    static const char *const lists[][3] = {{"a=[", "\"\",", "]"},
                                           {"{\"a\":[", "\"\",", "\"\"]}"},
                                           {"{\"namespace\":[", "{},", "{}]}"},
                                           {"{\"agent\":[", "{},", "{}]}"},
                                           {"{\"a\":", "[", ""}};
    for (size_t u = 0; u < ARRAY_LEN(lists); u++) {
        auto_mem void *mine = mem_ctx("list");
        buf_reset(&b);
        buf_puts(&b, lists[u][0]);
        while (b.len < (1 << 20) - 16)
            buf_puts(&b, lists[u][1]);
        buf_puts(&b, lists[u][2]);
        ck_assert_int_eq(acl_rules_parse(mine, buf_str(&b), b.len, ACL_STRICT, &r, NULL), -ERR_INVALID);
    }
}
END_TEST

TEST_SUITE_TIMEOUT("rules", 60, several_texts_say_the_same, each_text_has_its_rules_or_its_fault,
                   keys_that_are_not_known_are_refused_for_writing_alone, texts_are_kept_and_tame,
                       sizes_have_bounds)
