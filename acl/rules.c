/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of a policy's text becomes rules: `blocks` has a row per block of the grammar and
 * `grants` one per shorthand. Faults are collected, so that a policy shows all of them at once.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "acl/text.h"
#include "common/str.h"

enum { FAULTS_MAX = 800 }; /* bytes of them; later ones are left out */

struct reader {
    struct acl_rules *rules; /* owns all that is read */
    unsigned flags;
    size_t n_rules;
    size_t n_blocks; /* that are known */
    char faults[FAULTS_MAX + 256];
    size_t n_faults;
};

/* The keys of a block. */
enum { KEY_POLICY = 1, KEY_CAPABILITIES = 2, KEY_VARIABLES = 4 };

struct keys {
    const char *policy;
    const struct text_node *capabilities;
    unsigned seen;
};

struct block {
    const char *name, *what; /* `what`: as faults call it */
    bool label;
    bool underscore; /* is taken in its label */
    enum acl_caps_kind caps;
    unsigned keys;
    const char *policies; /* that it takes, separated by blanks */
    int (*read)(struct reader *r, const struct block *b, const struct text_node *node);
};

__attribute__((format(printf, 3, 4))) static int
rules_fault(struct reader *r, const struct text_node *node, const char *fmt, ...)
{
    if (r->n_faults >= FAULTS_MAX)
        return 0;
    char why[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    char *at = r->faults + r->n_faults;
    size_t left = sizeof(r->faults) - r->n_faults;
    const char *sep = r->n_faults ? "; " : "";
    if (node && node->line)
        snprintf(at, left, "%s%s (line %u)", sep, why, node->line);
    else
        snprintf(at, left, "%s%s", sep, why);
    r->n_faults += strlen(at);
    return 0;
}

/* --- shorthands --- */

#define GRANT(name, ...) static const uint8_t name[] = {__VA_ARGS__}
GRANT(namespace_read, ACL_NS_LIST_JOBS, ACL_NS_PARSE_JOB, ACL_NS_READ_JOB, ACL_NS_CSI_LIST_VOLUME,
      ACL_NS_CSI_READ_VOLUME, ACL_NS_READ_JOB_SCALING, ACL_NS_LIST_SCALING_POLICIES,
      ACL_NS_READ_SCALING_POLICY, ACL_NS_HOST_VOLUME_READ);
GRANT(namespace_write, ACL_NS_LIST_JOBS, ACL_NS_PARSE_JOB, ACL_NS_READ_JOB, ACL_NS_CSI_LIST_VOLUME,
      ACL_NS_CSI_READ_VOLUME, ACL_NS_READ_JOB_SCALING, ACL_NS_LIST_SCALING_POLICIES,
      ACL_NS_READ_SCALING_POLICY, ACL_NS_HOST_VOLUME_READ, ACL_NS_SCALE_JOB, ACL_NS_SUBMIT_JOB,
      ACL_NS_DISPATCH_JOB, ACL_NS_READ_LOGS, ACL_NS_READ_FS, ACL_NS_ALLOC_EXEC,
      ACL_NS_ALLOC_LIFECYCLE, ACL_NS_CSI_MOUNT_VOLUME, ACL_NS_CSI_WRITE_VOLUME,
      ACL_NS_SUBMIT_RECOMMENDATION, ACL_NS_HOST_VOLUME_CREATE);
GRANT(namespace_scale, ACL_NS_LIST_SCALING_POLICIES, ACL_NS_READ_SCALING_POLICY,
      ACL_NS_READ_JOB_SCALING, ACL_NS_SCALE_JOB, ACL_NS_READ_JOB, ACL_NS_SUBMIT_RECOMMENDATION);
GRANT(host_volume_write, ACL_NS_HOST_VOLUME_REGISTER, ACL_NS_HOST_VOLUME_CREATE,
      ACL_NS_HOST_VOLUME_DELETE, ACL_NS_HOST_VOLUME_READ);
GRANT(host_volume_register, ACL_NS_HOST_VOLUME_CREATE, ACL_NS_HOST_VOLUME_READ);
GRANT(host_volume_create, ACL_NS_HOST_VOLUME_READ);
GRANT(pool_read, ACL_POOL_READ);
GRANT(pool_write, ACL_POOL_DELETE, ACL_POOL_READ, ACL_POOL_WRITE);
GRANT(volume_read, ACL_VOLUME_MOUNT_READONLY);
GRANT(volume_write, ACL_VOLUME_MOUNT_READONLY, ACL_VOLUME_MOUNT_READWRITE);
GRANT(operator_read, ACL_OPERATOR_LICENSE_READ, ACL_OPERATOR_KEYRING_READ);
GRANT(operator_write, ACL_OPERATOR_SNAPSHOT_SAVE, ACL_OPERATOR_LICENSE_READ,
      ACL_OPERATOR_KEYRING_ROTATE, ACL_OPERATOR_KEYRING_READ, ACL_OPERATOR_KEYRING_DELETE);
GRANT(sentinel_read, ACL_SENTINEL_READ);
GRANT(sentinel_write, ACL_SENTINEL_READ, ACL_SENTINEL_SUBMIT, ACL_SENTINEL_DELETE);
GRANT(variable_read, ACL_VAR_LIST);

static const struct grant {
    enum acl_caps_kind kind;
    const char *word; /* of `policy`, or a capability that holds others */
    const uint8_t *caps;
    size_t n;
} policies[] =
    {
#define ROW(kind, word, caps) {ACL_CAPS_##kind, word, caps, sizeof(caps)}
        ROW(NAMESPACE, "read", namespace_read), ROW(NAMESPACE, "write", namespace_write),
        ROW(NAMESPACE, "scale", namespace_scale), ROW(NODE_POOL, "read", pool_read),
        ROW(NODE_POOL, "write", pool_write), ROW(HOST_VOLUME, "read", volume_read),
        ROW(HOST_VOLUME, "write", volume_write), ROW(OPERATOR, "read", operator_read),
        ROW(OPERATOR, "write", operator_write), ROW(SENTINEL, "read", sentinel_read),
        ROW(SENTINEL, "write", sentinel_write)},
  holders[] = {ROW(NAMESPACE, "host-volume-write", host_volume_write),
               ROW(NAMESPACE, "host-volume-register", host_volume_register),
               ROW(NAMESPACE, "host-volume-create", host_volume_create),
               ROW(VARIABLE, "read", variable_read)};
#undef ROW

static void
caps_add(struct reader *r, struct str_list *caps, const char *name)
{
    if (!str_list_has(caps, name))
        list_add(r->rules, *caps, name);
}

static void
caps_grant(struct reader *r, struct str_list *caps, const struct grant *g)
{
    for (size_t i = 0; i < g->n; i++)
        caps_add(r, caps, acl_cap_name(g->kind, g->caps[i]));
}

/* Adds what `policy` is short for. */
static void
expand_policy(struct reader *r, enum acl_caps_kind kind, const char *policy, struct str_list *caps)
{
    if (str_eq(policy, "deny"))
        caps_add(r, caps, acl_cap_name(kind, 0));
    for (size_t i = 0; i < ARRAY_LEN(policies); i++)
        if (policies[i].kind == kind && str_eq(policies[i].word, policy))
            caps_grant(r, caps, &policies[i]);
}

/* Adds the capabilities that a block names, and what these hold. */
static void
read_caps(struct reader *r, const struct block *b, const struct text_node *node,
          struct str_list *caps)
{
    for (size_t i = 0; node && i < node->list.n; i++) {
        const char *name = node->list.v[i];
        int bit = acl_cap_find(b->caps, name, strlen(name));
        if (bit < 0)
            rules_fault(r, node, "Invalid %s capability \"%.64s\"", b->what, name);
        else
            caps_add(r, caps, acl_cap_name(b->caps, (unsigned)bit));
    }
    for (size_t i = 0, n = caps->n; i < n; i++)
        for (size_t k = 0; k < ARRAY_LEN(holders); k++)
            if (holders[k].kind == b->caps && strcmp(holders[k].word, caps->v[i]) == 0)
                caps_grant(r, caps, &holders[k]);
}

/* --- blocks --- */

static bool
has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; *p; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, word, n) == 0)
            return true;
        p += len;
    }
    return false;
}

static bool
known_label(const struct block *b, const char *label)
{
    size_t n = label ? strlen(label) : 0;
    for (size_t i = 0; i < n; i++) {
        char c = label[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!letter && c != '-' && c != '*' && !(c == '_' && b->underscore))
            return false;
    }
    return n > 0 && n <= ACL_NAME_MAX;
}

/* A key that is not known, or there twice, is left out when the policy is only used. */
static void
refuse_key(struct reader *r, const struct block *in, const struct text_node *node)
{
    if (!(r->flags & ACL_STRICT))
        return;
    if (in)
        rules_fault(r, node, "Invalid or duplicate policy keys: %.64s in %s", node->key, in->what);
    else
        rules_fault(r, node, "Invalid or duplicate policy keys: %.64s", node->key);
}

/* Reads policy and capabilities of a block; the rest is its own business. */
static void
read_keys(struct reader *r, const struct block *b, const struct text_node *block, struct keys *ret)
{
    *ret = (struct keys){0};
    for (const struct text_node *c = block->first; c; c = c->next) {
        unsigned key = strcmp(c->key, "policy") == 0         ? KEY_POLICY
                       : strcmp(c->key, "capabilities") == 0 ? KEY_CAPABILITIES
                       : strcmp(c->key, "variables") == 0    ? KEY_VARIABLES
                                                             : 0;
        if (!(key & b->keys) || (key & ret->seen & ~(unsigned)KEY_VARIABLES))
            refuse_key(r, b, c);
        ret->seen |= key;
        if (!(key & b->keys))
            continue;
        if (key == KEY_POLICY && c->kind == TEXT_STRING)
            ret->policy = mem_strdup(r->rules, c->string);
        else if (key == KEY_POLICY)
            rules_fault(r, c, "Invalid %s policy: it is no text in quotes", b->what);
        else if (key == KEY_CAPABILITIES && c->kind == TEXT_LIST)
            ret->capabilities = c;
        else if (key == KEY_CAPABILITIES)
            rules_fault(r, c, "Invalid %s capabilities: they are no list of texts", b->what);
    }
    if (ret->policy && *ret->policy && !has_word(b->policies, ret->policy))
        rules_fault(r, block, "Invalid %s policy \"%.64s\": it takes %s", b->what, ret->policy,
                    b->policies);
}

static int
count_rule(struct reader *r, const struct text_node *node)
{
    if (r->n_rules++ < ACL_RULES_MAX)
        return 0;
    rules_fault(r, node, "Invalid policy: more than %d rules with a label", ACL_RULES_MAX);
    return -ERR_LIMIT;
}

static const struct block path_block = {
    "path", "variable", true, false, ACL_CAPS_VARIABLE, KEY_CAPABILITIES, "", NULL};

static int
read_path(struct reader *r, const struct text_node *node, const char *space,
          struct acl_variables_rule *variables)
{
    struct keys keys;
    struct str_list caps = {0};
    const char *path = node->label;
    if (str_empty(path))
        return rules_fault(r, node, "Invalid missing variable path in namespace \"%s\"", space);
    if (*path == '/')
        return rules_fault(r, node,
                           "Invalid variable path \"%.64s\" in namespace \"%s\": it cannot start "
                           "with a leading \"/\"",
                           path, space);
    read_keys(r, &path_block, node, &keys);
    read_caps(r, &path_block, keys.capabilities, &caps);
    if (str_list_has(&caps, "deny"))
        caps.v[0] = "deny", caps.n = 1;
    struct acl_path_rule *rule = mem_new(r->rules, struct acl_path_rule);
    rule->path_spec = mem_strdup(r->rules, path);
    rule->capabilities = caps;
    list_add(r->rules, variables->paths, rule);
    return count_rule(r, node);
}

static int
read_variables(struct reader *r, const struct block *b, const struct text_node *node,
               struct acl_namespace_rule *rule)
{
    if (node->kind != TEXT_BLOCK || node->label)
        return rules_fault(r, node, "Invalid variable policy: variables is a block without label");
    if (!rule->variables)
        rule->variables = mem_new(r->rules, struct acl_variables_rule);
    bool any = false;
    for (const struct text_node *c = node->first; c; c = c->next) {
        if (strcmp(c->key, "path") != 0 || c->kind != TEXT_BLOCK) {
            refuse_key(r, b, c);
            continue;
        }
        any = true;
        int e = read_path(r, c, rule->name, rule->variables);
        if (e < 0)
            return e;
    }
    if (!any)
        rules_fault(r, node, "Invalid variable policy: no variable paths in namespace \"%s\"",
                    rule->name);
    return 0;
}

static int
read_namespace(struct reader *r, const struct block *b, const struct text_node *node)
{
    struct keys keys;
    struct acl_namespace_rule *rule = mem_new(r->rules, struct acl_namespace_rule);
    rule->name = mem_strdup(r->rules, node->label);
    read_keys(r, b, node, &keys);
    read_caps(r, b, keys.capabilities, &rule->capabilities);
    expand_policy(r, b->caps, keys.policy, &rule->capabilities);
    rule->policy = keys.policy;
    list_add(r->rules, r->rules->namespaces, rule);
    int e = count_rule(r, node);
    for (const struct text_node *c = node->first; c && e == 0; c = c->next)
        if (strcmp(c->key, "variables") == 0)
            e = read_variables(r, b, c, rule);
    return e;
}

static int
read_named(struct reader *r, const struct block *b, const struct text_node *node)
{
    struct keys keys;
    struct acl_named_rule *rule = mem_new(r->rules, struct acl_named_rule);
    rule->name = mem_strdup(r->rules, node->label);
    read_keys(r, b, node, &keys);
    read_caps(r, b, keys.capabilities, &rule->capabilities);
    expand_policy(r, b->caps, keys.policy, &rule->capabilities);
    rule->policy = keys.policy;
    if (b->caps == ACL_CAPS_NODE_POOL)
        list_add(r->rules, r->rules->node_pools, rule);
    else
        list_add(r->rules, r->rules->host_volumes, rule);
    return count_rule(r, node);
}

/* The later of two blocks counts, but a deny stays. */
static int
read_level(struct reader *r, const struct block *b, const struct text_node *node)
{
    struct keys keys;
    struct acl_level_rule **at = type_member(&type_acl_rules, r->rules, b->what), *rule = *at;
    if (rule)
        refuse_key(r, NULL, node);
    else
        rule = *at = mem_new(r->rules, struct acl_level_rule);
    read_keys(r, b, node, &keys);
    if (!(keys.seen & KEY_POLICY) || (keys.policy && *keys.policy == '\0'))
        return rules_fault(r, node, "Invalid %s policy: it has none of %s", b->what, b->policies);
    if (!str_eq(rule->policy, "deny"))
        rule->policy = keys.policy;
    return 0;
}

static int
read_capabilities(struct reader *r, const struct block *b, const struct text_node *node)
{
    struct keys keys;
    struct acl_capabilities_rule **at = type_member(&type_acl_rules, r->rules, b->what);
    struct acl_capabilities_rule *rule = *at;
    if (rule)
        refuse_key(r, NULL, node);
    else
        rule = *at = mem_new(r->rules, struct acl_capabilities_rule);
    read_keys(r, b, node, &keys);
    read_caps(r, b, keys.capabilities, &rule->capabilities);
    expand_policy(r, b->caps, keys.policy, &rule->capabilities);
    if (!str_eq(rule->policy, "deny") && keys.policy)
        rule->policy = keys.policy;
    return 0;
}

static const struct block blocks[] = {
    {"namespace", "namespace", true, false, ACL_CAPS_NAMESPACE,
     KEY_POLICY | KEY_CAPABILITIES | KEY_VARIABLES, "deny read write scale", read_namespace},
    {"node_pool", "node pool", true, true, ACL_CAPS_NODE_POOL, KEY_POLICY | KEY_CAPABILITIES,
     "deny read write scale", read_named},
    {"host_volume", "host volume", true, false, ACL_CAPS_HOST_VOLUME, KEY_POLICY | KEY_CAPABILITIES,
     "deny read write scale", read_named},
    {"agent", "agent", false, false, 0, KEY_POLICY, "deny read write scale", read_level},
    {"node", "node", false, false, 0, KEY_POLICY, "deny read write scale", read_level},
    {"quota", "quota", false, false, 0, KEY_POLICY, "deny read write scale", read_level},
    {"plugin", "plugin", false, false, 0, KEY_POLICY, "deny list read write", read_level},
    {"operator", "operator", false, false, ACL_CAPS_OPERATOR, KEY_POLICY | KEY_CAPABILITIES,
     "deny read write", read_capabilities},
    {"sentinel", "sentinel", false, false, ACL_CAPS_SENTINEL, KEY_POLICY | KEY_CAPABILITIES,
     "deny read write", read_capabilities},
};

static int
read_block(struct reader *r, const struct text_node *node)
{
    const struct block *b = blocks, *end = blocks + ARRAY_LEN(blocks);
    while (b < end && strcmp(b->name, node->key) != 0)
        b++;
    if (b == end) {
        list_add(r->rules, r->rules->extra_keys_hcl, mem_strdup(r->rules, node->key));
        refuse_key(r, NULL, node);
        return 0;
    }
    r->n_blocks++;
    if (node->kind != TEXT_BLOCK)
        return rules_fault(r, node, "Invalid %s policy: it is no block", b->what);
    if (b->label && !known_label(b, node->label))
        return rules_fault(r, node, "Invalid %s name \"%.128s\"", b->what,
                           str_or(node->label, ""));
    if (!b->label && node->label)
        return rules_fault(r, node, "Invalid %s policy: it takes no label", b->what);
    return b->read(r, b, node);
}

int
acl_rules_parse(const void *ctx, const char *text, size_t n, unsigned flags,
                struct acl_rules **ret, struct err *e)
{
    if (n > ACL_TEXT_MAX)
        return err_set(e, -ERR_INVALID, "Invalid policy: it has %zu bytes, %d are allowed", n,
                       ACL_TEXT_MAX);
    auto_mem void *tmp = mem_ctx("policy");
    struct err why = ERR_INIT;
    struct text_node *tree = NULL;
    struct reader r = {.flags = flags, .rules = type_new(tmp, &type_acl_rules)};
    int code = text_parse(tmp, text, n, &tree, &why);
    if (code < 0) {
        str_tame(why.text, false);
        return err_set(e, -ERR_INVALID, "%s", why.text);
    }
    for (const struct text_node *c = tree->first; c; c = c->next)
        if (read_block(&r, c) < 0)
            break;
    if (r.n_faults == 0 && r.n_blocks == 0 && n > 0 && (flags & ACL_STRICT))
        rules_fault(&r, NULL, "Invalid policy: it has no rule");
    if (r.n_faults > 0) {
        str_tame(r.faults, false);
        return err_set(e, -ERR_INVALID, "%s", r.faults);
    }
    r.rules->raw = mem_strndup(r.rules, text, n);
    *ret = talloc_steal(ctx, r.rules);
    return 0;
}
