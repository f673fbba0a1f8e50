/* SPDX-License-Identifier: Apache-2.0 */
#include "acl/level.h"

#include "common/mem.h"
#include "common/str.h"

static const char *const names[] = {"", "list", "read", "write", "deny"};

const char *
level_name(unsigned level)
{
    return level < ARRAY_LEN(names) ? names[level] : "";
}

static unsigned
level_in(const struct acl_rules *r, enum acl_kind kind)
{
    const struct acl_level_rule *rule = kind == ACL_AGENT  ? r->agent
                                        : kind == ACL_NODE ? r->node
                                        : kind == ACL_QUOTA ? r->quota
                                        : kind == ACL_PLUGIN ? r->plugin
                                                             : NULL;
    const char *word = rule ? rule->policy : NULL;
    if (kind == ACL_OPERATOR && r->operator) {
        if (str_list_has(&r->operator->capabilities, "deny"))
            return LEVEL_DENY;
        word = r->operator->policy;
    }
    for (unsigned i = 1; i < ARRAY_LEN(names); i++)
        if (word && str_eq(word, names[i]))
            return i;
    return LEVEL_NONE;
}

unsigned
level_of(const struct acl_source *v, size_t n, enum acl_kind kind, const char **policy)
{
    unsigned most = LEVEL_NONE;
    for (size_t i = 0; i < n; i++) {
        unsigned level = level_in(v[i].rules, kind);
        if (level <= most)
            continue;
        most = level;
        if (policy)
            *policy = v[i].policy;
    }
    return most;
}

bool
level_meets(unsigned have, unsigned need)
{
    return have != LEVEL_DENY && have >= need && need > LEVEL_NONE;
}
