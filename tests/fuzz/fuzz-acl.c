/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a policy, then, each behind a zero byte, a name and a path. Oracles: a refusal has words; a
 * policy that may be written may be used; rules written as JSON are read to the same rules; acl_why(), which
 * looks at each rule in turn, says the same as the rights; a policy twice allows no more than once.
 */
#include <stdint.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "common/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
put_text(struct buf *b, const char *text)
{
    json_put_string(b, text ? text : "", text ? strlen(text) : 0);
}

static void
put_members(struct buf *b, const char *policy, const struct str_list *caps)
{
    buf_puts(b, "{");
    if (policy) {
        buf_puts(b, "\"policy\":");
        put_text(b, policy);
    }
    if (caps && caps->v) {
        buf_puts(b, policy ? ",\"capabilities\":[" : "\"capabilities\":[");
        for (size_t i = 0; i < caps->n; i++) {
            buf_puts(b, i ? "," : "");
            put_text(b, caps->v[i]);
        }
        buf_puts(b, "]");
    }
}

/* A list of objects with one label each. */
static void
put_named(struct buf *b, const char *block, const struct acl_named_rule_list *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        buf_puts(b, i ? ",{" : block);
        put_text(b, rules->v[i]->name);
        buf_puts(b, ":");
        put_members(b, rules->v[i]->policy, &rules->v[i]->capabilities);
        buf_puts(b, "}}");
    }
    buf_puts(b, rules->n ? "]" : "");
}

static void
put_namespaces(struct buf *b, const struct acl_namespace_rule_list *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        const struct acl_namespace_rule *rule = rules->v[i];
        buf_puts(b, i ? ",{" : ",\"namespace\":[{");
        put_text(b, rule->name);
        buf_puts(b, ":");
        put_members(b, rule->policy, &rule->capabilities);
        for (size_t k = 0; rule->variables && k < rule->variables->paths.n; k++) {
            bool first = !rule->policy && !rule->capabilities.v;
            buf_puts(b, k ? ",{" : first ? "\"variables\":{\"path\":[{" : ",\"variables\":{\"path\":[{");
            put_text(b, rule->variables->paths.v[k]->path_spec);
            buf_puts(b, ":");
            put_members(b, NULL, &rule->variables->paths.v[k]->capabilities);
            buf_puts(b, "}}");
        }
        buf_puts(b, rule->variables ? "]}}}" : "}}");
    }
    buf_puts(b, rules->n ? "]" : "");
}

static void
put_level(struct buf *b, const char *block, const struct acl_level_rule *rule)
{
    if (rule)
        buf_puts(b, block), put_members(b, rule->policy, NULL), buf_puts(b, "}");
}

static void
put_caps(struct buf *b, const char *block, const struct acl_capabilities_rule *rule)
{
    if (rule)
        buf_puts(b, block), put_members(b, rule->policy, &rule->capabilities), buf_puts(b, "}");
}

/* Writes the rules as a policy in JSON and reads that. */
static struct acl_rules *
write_and_read(const void *ctx, const struct acl_rules *r)
{
    auto_buf struct buf b = BUF_INIT(8 << 20);
    struct acl_rules *ret = NULL;
    struct err e = ERR_INIT;
    put_namespaces(&b, &r->namespaces);
    put_named(&b, ",\"node_pool\":[{", &r->node_pools);
    put_named(&b, ",\"host_volume\":[{", &r->host_volumes);
    put_level(&b, ",\"agent\":", r->agent);
    put_level(&b, ",\"node\":", r->node);
    put_level(&b, ",\"quota\":", r->quota);
    put_level(&b, ",\"plugin\":", r->plugin);
    put_caps(&b, ",\"operator\":", r->operator);
    put_caps(&b, ",\"sentinel\":", r->sentinel);
    buf_puts(&b, "}");
    char *text = mem_strdup(ctx, buf_str(&b));
    if (b.len == 1) /* no rules, which only an empty text has */
        text = mem_strdup(ctx, "");
    else
        text[0] = '{';
    int code = acl_rules_parse(ctx, text, strlen(text), ACL_STRICT, &ret, &e);
    ASSERT(code == 0 || strlen(text) > ACL_TEXT_MAX);
    return ret;
}

/* Asks each kind of need of the names; `caps` chooses. */
static void
ask(const void *ctx, const struct acl_source *v, const char *name, const char *path, unsigned caps)
{
    struct acl *one = acl_compile(v, 1), *two = acl_compile(v, 2);
    for (unsigned kind = ACL_OPEN; kind <= ACL_SERVER; kind++) {
        bool set = kind >= ACL_NAMESPACE && kind <= ACL_OPERATOR_CAP;
        struct acl_need need = {.kind = (uint8_t)kind,
                                .level = (uint8_t)(1 + caps % 3),
                                .caps = set && caps % 7 ? UINT64_C(2) << (caps % 5) : 0};
        bool allowed = acl_allows(one, &need, name, path);
        ASSERT(acl_allows(two, &need, name, path) == allowed);
        const char *why = acl_why(ctx, v, 1, &need, name, path);
        ASSERT(*why != '\0');
        bool has = strncmp(why, "policy \"", 8) == 0 && !strstr(why, " is denied") &&
                   !strstr(why, " counts and ");
        /* a path may have any words */
        ASSERT(kind <= ACL_ANY || kind >= ACL_MANAGEMENT || kind == ACL_VARIABLE || has == allowed);
    }
    acl_unref(one);
    acl_unref(two);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    auto_mem void *ctx = mem_ctx("fuzz");
    const uint8_t *zero = n > 0 ? memchr(data, 0, n) : NULL;
    size_t bytes = zero ? (size_t)(zero - data) : n;
    char *text = mem_dup(ctx, data, bytes);
    const char *name = mem_strndup(ctx, zero ? (const char *)zero + 1 : "a", zero ? n - bytes - 1 : 1);
    size_t len = strlen(name);
    const char *path = "x/1";
    if (zero && bytes + 2 + len < n)
        path = mem_strndup(ctx, (const char *)data + bytes + 2 + len, n - bytes - 2 - len);
    struct acl_rules *r = NULL, *lenient = NULL;
    struct err e = ERR_INIT;
    int code = acl_rules_parse(ctx, text, bytes, ACL_STRICT, &r, &e);
    ASSERT(code == 0 || (code == -ERR_INVALID && e.text[0] != '\0'));
    err_clear(&e);
    int use = acl_rules_parse(ctx, text, bytes, 0, &lenient, &e);
    ASSERT(use == 0 || (code < 0 && e.text[0] != '\0'));
    if (use == 0) {
        struct acl_source v[2] = {{"p", lenient}, {"p", lenient}};
        ask(ctx, v, name, path, (unsigned)bytes);
    }
    if (code == 0) {
        ASSERT(codec_equal(&type_acl_rules, r, lenient, 0));
        struct acl_rules *again = write_and_read(ctx, r);
        r->raw = NULL;
        if (again)
            again->raw = NULL;
        ASSERT(!again || codec_equal(&type_acl_rules, r, again, 0));
    }
    return 0;
}
