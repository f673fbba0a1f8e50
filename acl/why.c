/* SPDX-License-Identifier: Apache-2.0
 *
 * The same answer as acl_allows(), found by looking at each rule in turn and told in words. A rule
 * that is missing is written as in a policy.
 */
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "acl/level.h"
#include "acl/match.h"
#include "acl/rows.h"
#include "common/mem.h"
#include "common/str.h"

static enum acl_caps_kind
caps_kind(enum acl_kind kind)
{
    return kind == ACL_NAMESPACE     ? ACL_CAPS_NAMESPACE
           : kind == ACL_NODE_POOL   ? ACL_CAPS_NODE_POOL
           : kind == ACL_HOST_VOLUME ? ACL_CAPS_HOST_VOLUME
           : kind == ACL_VARIABLE    ? ACL_CAPS_VARIABLE
                                     : ACL_CAPS_OPERATOR;
}

/* "submit-job or register-job"; "any capability". */
static const char *
say_caps(const void *ctx, enum acl_kind kind, uint64_t caps)
{
    char *text = NULL;
    const char *name;
    for (unsigned i = 0; (name = acl_cap_name(caps_kind(kind), i)) != NULL; i++)
        if (caps >> i & 1)
            text = text ? mem_printf(ctx, "%s or %s", text, name) : mem_strdup(ctx, name);
    return text ? text : "any capability";
}

static const char *
say_label(const void *ctx, enum acl_kind kind, const char *label)
{
    static const char *const blocks[] = {[ACL_NAMESPACE] = "namespace",
                                         [ACL_NODE_POOL] = "node_pool",
                                         [ACL_HOST_VOLUME] = "host_volume"};
    if (kind == ACL_VARIABLE)
        return mem_printf(ctx, "namespace \"%s\", path \"%s\"", label, label + strlen(label) + 1);
    return mem_printf(ctx, "%s \"%s\"", blocks[kind], label);
}

/* A label as a text: a row's has no end. */
static const char *
row_label(const void *ctx, const struct match_row *row)
{
    char *text = mem_array(ctx, char, row->n + 1);
    memcpy(text, row->label, row->n);
    return text;
}

/* The first row of the label that counts for the name; rows->n: none matches. */
static size_t
find_row(const struct rows *rows, const char *name, size_t n)
{
    size_t best = rows->n;
    bool plain = false;
    for (size_t i = 0; i < rows->n; i++) {
        const struct match_row *row = &rows->v[i];
        if (!match_is_pattern(row->label, row->n)) {
            if (!plain && row->n == n && memcmp(row->label, name, n) == 0) {
                plain = true;
                best = i;
            }
        } else if (!plain && match_pattern(row->label, row->n, name, n) &&
                   (best == rows->n || match_closer(row, &rows->v[best]) < 0)) {
            best = i;
        }
    }
    return best;
}

static const char *
say_rule(const void *ctx, enum acl_kind kind, const struct rows *rows, size_t i)
{
    return mem_printf(ctx, "policy \"%s\": %s", rows->policies[i],
                      say_label(ctx, kind, row_label(ctx, &rows->v[i])));
}

/* Tells about the rules of one label. */
static const char *
why_label(const void *ctx, const struct rows *rows, size_t first, const struct acl_need *need)
{
    const struct match_row *label = &rows->v[first];
    size_t allows = rows->n;
    for (size_t i = first; i < rows->n; i++) {
        const struct match_row *row = &rows->v[i];
        if (row->n != label->n || memcmp(row->label, label->label, row->n) != 0)
            continue;
        if (row->caps & ACL_DENY)
            return mem_printf(ctx, "%s is denied", say_rule(ctx, need->kind, rows, i));
        uint64_t has = need->caps ? row->caps & need->caps : row->caps;
        if (allows == rows->n && has)
            allows = i;
    }
    if (allows == rows->n)
        return mem_printf(ctx, "%s counts and has not: %s", say_rule(ctx, need->kind, rows, first),
                          say_caps(ctx, need->kind, need->caps));
    uint64_t has = rows->v[allows].caps & (need->caps ? need->caps : rows->v[allows].caps);
    return mem_printf(ctx, "%s has %s", say_rule(ctx, need->kind, rows, allows),
                      say_caps(ctx, need->kind, need->caps ? has : 0));
}

static const char *
why_none(const void *ctx, const struct acl_need *need, const char *label)
{
    return mem_printf(ctx, "no rule for %s; needed: %s", say_label(ctx, need->kind, label),
                      say_caps(ctx, need->kind, need->caps));
}

/* Which rule has the capability, of any label that is not denied. `space`: only those of variables
 * there. */
static const char *
why_any(const void *ctx, const struct rows *rows, const struct acl_need *need, const char *space)
{
    const struct match_row *united;
    size_t n = match_rows(match_new(ctx, rows->v, rows->n), &united);
    for (size_t i = 0; i < n; i++) {
        const struct match_row *row = &united[i];
        bool has = (need->caps ? row->caps & need->caps : row->caps) && !(row->caps & ACL_DENY);
        if (!has || (space && !match_pattern(row->label, strlen(row->label), space, strlen(space))))
            continue;
        for (size_t k = 0; k < rows->n; k++)
            if (rows->v[k].n == row->n && memcmp(rows->v[k].label, row->label, row->n) == 0)
                return why_label(ctx, rows, k, need);
    }
    return mem_printf(ctx, "no rule for any name; needed: %s",
                      say_caps(ctx, need->kind, need->caps));
}

static const char *
why_named(const void *ctx, const struct acl_source *v, size_t n, const struct acl_need *need,
          const char *name)
{
    struct rows rows;
    rows_collect(ctx, v, n, need->kind, &rows);
    if (need->kind != ACL_HOST_VOLUME && strcmp(name, "*") == 0)
        return why_any(ctx, &rows, need, NULL);
    size_t i = find_row(&rows, name, strlen(name));
    return i == rows.n ? why_none(ctx, need, name) : why_label(ctx, &rows, i, need);
}

/* A namespace that is denied denies its variables. */
static const char *
why_variable(const void *ctx, const struct acl_source *v, size_t n, const struct acl_need *need,
             const char *space, const char *path)
{
    struct rows rows, spaces;
    size_t bytes;
    rows_collect(ctx, v, n, ACL_VARIABLE, &rows);
    if (path == NULL && strcmp(space, "*") == 0)
        return why_any(ctx, &rows, need, NULL);
    rows_collect(ctx, v, n, ACL_NAMESPACE, &spaces);
    size_t i = find_row(&spaces, space, strlen(space));
    for (size_t k = i; k < spaces.n; k++)
        if ((spaces.v[k].caps & ACL_DENY) && spaces.v[k].n == spaces.v[i].n &&
            memcmp(spaces.v[k].label, spaces.v[i].label, spaces.v[i].n) == 0)
            return mem_printf(ctx, "%s is denied, with its variables",
                              say_rule(ctx, ACL_NAMESPACE, &spaces, k));
    if (path == NULL)
        return why_any(ctx, &rows, need, space);
    const char *label = rows_variable(ctx, space, path, &bytes);
    i = find_row(&rows, label, bytes);
    if (i < rows.n)
        return why_label(ctx, &rows, i, need);
    struct match_row row = {label, bytes, 0};
    return why_none(ctx, need, row_label(ctx, &row));
}

static const char *
why_level(const void *ctx, const struct acl_source *v, size_t n, const struct acl_need *need)
{
    static const char *const blocks[] = {"agent", "node", "operator", "quota", "plugin"};
    const char *policy = NULL, *block = blocks[need->kind - ACL_AGENT];
    unsigned level = level_of(v, n, need->kind, &policy);
    if (level == LEVEL_DENY)
        return mem_printf(ctx, "policy \"%s\": %s is denied", policy, block);
    if (level_meets(level, need->level))
        return mem_printf(ctx, "policy \"%s\": %s has %s", policy, block, level_name(level));
    return mem_printf(ctx, "no rule has it: %s { policy = \"%s\" }", block,
                      level_name(need->level));
}

static const char *
why_operator(const void *ctx, const struct acl_source *v, size_t n, const struct acl_need *need)
{
    const char *policy = NULL;
    unsigned level = level_of(v, n, ACL_OPERATOR, &policy);
    if (level == LEVEL_DENY || level == ACL_LEVEL_WRITE)
        return mem_printf(ctx, "policy \"%s\": operator %s", policy,
                          level == LEVEL_DENY ? "is denied" : "has write");
    for (size_t i = 0; i < n; i++) {
        const struct acl_capabilities_rule *rule = v[i].rules->operator;
        uint64_t has = rule ? rows_caps(ACL_OPERATOR_CAP, &rule->capabilities) : 0;
        if (need->caps ? has & need->caps : has)
            return mem_printf(ctx, "policy \"%s\": operator has %s", v[i].policy,
                              say_caps(ctx, ACL_OPERATOR_CAP, has & need->caps));
    }
    return mem_printf(ctx, "no rule for operator; needed: %s",
                      say_caps(ctx, ACL_OPERATOR_CAP, need->caps));
}

const char *
acl_why(const void *ctx, const struct acl_source *v, size_t n, const struct acl_need *need,
        const char *name, const char *path)
{
    auto_mem void *tmp = mem_ctx("why");
    const char *why = "no name was given";
    switch ((enum acl_kind)need->kind) {
    case ACL_OPEN:
    case ACL_ANY:
        return mem_strdup(ctx, "anybody has it");
    case ACL_MANAGEMENT:
        return mem_strdup(ctx, "needed: a management token");
    case ACL_CLIENT:
        return mem_strdup(ctx, "needed: a node's secret, which no token replaces");
    case ACL_SERVER:
        return mem_strdup(ctx, "needed: a server's certificate, which no token replaces");
    case ACL_NAMESPACE:
    case ACL_NODE_POOL:
    case ACL_HOST_VOLUME:
        why = name ? why_named(tmp, v, n, need, name) : why;
        break;
    case ACL_VARIABLE:
        why = name ? why_variable(tmp, v, n, need, name, path) : why;
        break;
    case ACL_OPERATOR_CAP:
        why = why_operator(tmp, v, n, need);
        break;
    case ACL_AGENT:
    case ACL_NODE:
    case ACL_OPERATOR:
    case ACL_QUOTA:
    case ACL_PLUGIN:
        why = why_level(tmp, v, n, need);
        break;
    }
    return mem_strdup(ctx, why);
}
