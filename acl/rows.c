/* SPDX-License-Identifier: Apache-2.0 */
#include "acl/rows.h"

#include <string.h>

#include "acl/caps.h"
#include "common/mem.h"
#include "common/str.h"

uint64_t
rows_caps(enum acl_kind kind, const struct str_list *caps)
{
    enum acl_caps_kind k = kind == ACL_NAMESPACE     ? ACL_CAPS_NAMESPACE
                           : kind == ACL_NODE_POOL   ? ACL_CAPS_NODE_POOL
                           : kind == ACL_HOST_VOLUME ? ACL_CAPS_HOST_VOLUME
                           : kind == ACL_VARIABLE    ? ACL_CAPS_VARIABLE
                                                     : ACL_CAPS_OPERATOR;
    uint64_t set = 0;
    for (size_t i = 0; i < caps->n; i++) {
        int bit = acl_cap_find(k, caps->v[i], strlen(caps->v[i]));
        set |= bit < 0 ? 0 : UINT64_C(1) << bit;
    }
    return set & ACL_DENY ? ACL_DENY : set;
}

char *
rows_variable(const void *ctx, const char *space, const char *path, size_t *n)
{
    size_t first = strlen(space) + 1;
    *n = first + strlen(path);
    char *label = mem_array(ctx, char, *n);
    memcpy(label, space, first);
    memcpy(label + first, path, *n - first);
    return label;
}

static void
row_add(const void *ctx, struct rows *rows, struct match_row row, const char *policy)
{
    if ((rows->n & (rows->n - 1)) == 0) {
        size_t room = rows->n ? rows->n * 2 : 1;
        mem_resize(ctx, rows->v, struct match_row, room);
        mem_resize(ctx, rows->policies, const char *, room);
    }
    rows->policies[rows->n] = policy;
    rows->v[rows->n++] = row;
}

static void
add_variables(const void *ctx, const struct acl_namespace_rule *rule, const char *policy,
              struct rows *ret)
{
    for (size_t i = 0; rule->variables && i < rule->variables->paths.n; i++) {
        const struct acl_path_rule *path = rule->variables->paths.v[i];
        struct match_row row = {.caps = rows_caps(ACL_VARIABLE, &path->capabilities)};
        row.label = rows_variable(ctx, rule->name, path->path_spec, &row.n);
        row_add(ctx, ret, row, policy);
    }
}

void
rows_collect(const void *ctx, const struct acl_source *v, size_t n, enum acl_kind kind,
             struct rows *ret)
{
    *ret = (struct rows){0};
    for (size_t i = 0; i < n; i++) {
        const struct acl_rules *r = v[i].rules;
        const struct acl_named_rule_list *named = kind == ACL_NODE_POOL ? &r->node_pools
                                                                        : &r->host_volumes;
        bool named_kind = kind == ACL_NODE_POOL || kind == ACL_HOST_VOLUME;
        for (size_t k = 0; named_kind && k < named->n; k++) {
            const char *label = named->v[k]->name;
            struct match_row row = {label, strlen(label),
                                    rows_caps(kind, &named->v[k]->capabilities)};
            row_add(ctx, ret, row, v[i].policy);
        }
        for (size_t k = 0; !named_kind && k < r->namespaces.n; k++) {
            const struct acl_namespace_rule *rule = r->namespaces.v[k];
            struct match_row row = {rule->name, strlen(rule->name),
                                    rows_caps(kind, &rule->capabilities)};
            if (kind == ACL_VARIABLE)
                add_variables(ctx, rule, v[i].policy, ret);
            else
                row_add(ctx, ret, row, v[i].policy);
        }
    }
}
