/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "acl/acl.h"
#include "acl/caps.h"
#include "acl/level.h"
#include "acl/match.h"
#include "acl/rows.h"
#include "common/mem.h"
#include "common/str.h"

enum { KEY_MAX = 264 }; /* bytes of a variable's label that is made on the stack */

struct acl {
    unsigned refs; /* of any thread, by atomic operations */
    bool management;
    uint8_t levels[LEVEL_KINDS];
    uint64_t operator_caps;
    struct match *namespaces, *node_pools, *host_volumes, *variables;
    struct match *variable_spaces; /* by namespace: what any of its paths has */
};

static struct acl management = {.management = true};

static struct match *
compile_kind(const struct acl *a, const struct acl_source *v, size_t n, enum acl_kind kind)
{
    auto_mem void *tmp = mem_ctx("rows");
    struct rows rows;
    rows_collect(tmp, v, n, kind, &rows);
    return match_new(a, rows.v, rows.n);
}

static struct match *
compile_spaces(const struct acl *a)
{
    auto_mem void *tmp = mem_ctx("spaces");
    const struct match_row *rows;
    size_t n = match_rows(a->variables, &rows), used = 0;
    struct match_row *v = mem_array(tmp, struct match_row, n);
    for (size_t i = 0; i < n; i++)
        if (!(rows[i].caps & ACL_DENY))
            v[used++] = (struct match_row){rows[i].label, strlen(rows[i].label), rows[i].caps};
    return match_new(a, v, used);
}

struct acl *
acl_compile(const struct acl_source *v, size_t n)
{
    struct acl *a = mem_new(NULL, struct acl);
    a->refs = 1;
    for (unsigned i = 0; i < LEVEL_KINDS; i++)
        a->levels[i] = (uint8_t)level_of(v, n, ACL_AGENT + i, NULL);
    for (size_t i = 0; i < n; i++)
        if (v[i].rules->operator)
            a->operator_caps |= rows_caps(ACL_OPERATOR_CAP, &v[i].rules->operator->capabilities);
    a->namespaces = compile_kind(a, v, n, ACL_NAMESPACE);
    a->node_pools = compile_kind(a, v, n, ACL_NODE_POOL);
    a->host_volumes = compile_kind(a, v, n, ACL_HOST_VOLUME);
    a->variables = compile_kind(a, v, n, ACL_VARIABLE);
    a->variable_spaces = compile_spaces(a);
    return a;
}

struct acl *
acl_management(void)
{
    return &management;
}

struct acl *
acl_ref(struct acl *a)
{
    if (a != &management)
        __atomic_fetch_add(&a->refs, 1, __ATOMIC_RELAXED);
    return a;
}

void
acl_unref(struct acl *a)
{
    if (a && a != &management && __atomic_fetch_sub(&a->refs, 1, __ATOMIC_ACQ_REL) == 1)
        talloc_free(a);
}

bool
acl_is_management(const struct acl *a)
{
    return a->management;
}

static bool
caps_meet(uint64_t have, uint64_t need)
{
    return !(have & ACL_DENY) && (need ? have & need : have) != 0;
}

/* `all`: "*" asks for any label that is not denied. */
static bool
name_allowed(const struct match *m, uint64_t caps, const char *name, bool all)
{
    if (name == NULL)
        return false;
    if (all && strcmp(name, "*") == 0)
        return caps_meet(match_caps(m), caps);
    const struct match_row *row = match_find(m, name, strlen(name));
    return row && caps_meet(row->caps, caps);
}

static bool
variable_allowed(const struct acl *a, uint64_t caps, const char *space, const char *path)
{
    if (space == NULL)
        return false;
    size_t n = strlen(space) + 1, pn = path ? strlen(path) : 0;
    if (path == NULL && strcmp(space, "*") == 0)
        return caps_meet(match_caps(a->variables), caps);
    const struct match_row *row = match_find(a->namespaces, space, n - 1);
    if (row && row->caps & ACL_DENY)
        return false;
    if (path == NULL)
        return caps_meet(match_caps_of(a->variable_spaces, space, n - 1), caps);
    if (n + pn > KEY_MAX) {
        auto_mem void *tmp = mem_ctx("variable");
        size_t bytes;
        const char *label = rows_variable(tmp, space, path, &bytes);
        row = match_find(a->variables, label, bytes);
        return row && caps_meet(row->caps, caps);
    }
    char key[KEY_MAX] __attribute__((uninitialized));
    memcpy(key, space, n);
    memcpy(key + n, path, pn);
    row = match_find(a->variables, key, n + pn);
    return row && caps_meet(row->caps, caps);
}

bool
acl_allows(const struct acl *a, const struct acl_need *need, const char *name, const char *path)
{
    switch ((enum acl_kind)need->kind) {
    case ACL_OPEN:
    case ACL_ANY:
        return true;
    case ACL_CLIENT:
    case ACL_SERVER:
        return false;
    default:
        break;
    }
    if (a->management)
        return true;
    switch ((enum acl_kind)need->kind) {
    case ACL_NAMESPACE:
        return name_allowed(a->namespaces, need->caps, name, true);
    case ACL_NODE_POOL:
        return name_allowed(a->node_pools, need->caps, name, true);
    case ACL_HOST_VOLUME:
        return name_allowed(a->host_volumes, need->caps, name, false);
    case ACL_VARIABLE:
        return variable_allowed(a, need->caps, name, path);
    case ACL_OPERATOR_CAP:
        return level_meets(a->levels[ACL_OPERATOR - ACL_AGENT], ACL_LEVEL_WRITE) ||
               (a->levels[ACL_OPERATOR - ACL_AGENT] != LEVEL_DENY &&
                caps_meet(a->operator_caps, need->caps));
    case ACL_AGENT:
    case ACL_NODE:
    case ACL_OPERATOR:
    case ACL_QUOTA:
    case ACL_PLUGIN:
        return level_meets(a->levels[need->kind - ACL_AGENT], need->level);
    default:
        return false;
    }
}

struct acl_source *
acl_sources(const void *ctx, const struct acl_policy_list *l, const char **bad)
{
    struct acl_source *v = mem_array(ctx, struct acl_source, l->n + 1);

    for (size_t i = 0; i < l->n; i++) {
        const char *text = str_or(l->v[i]->rules, "");
        struct acl_rules *rules;
        struct err e = ERR_INIT;
        if (acl_rules_parse(ctx, text, strlen(text), 0, &rules, &e) < 0) {
            if (bad != NULL)
                *bad = l->v[i]->name;
            return NULL;
        }
        v[i] = (struct acl_source){l->v[i]->name, rules};
    }
    return v;
}

struct acl *
acl_of_policies(const struct acl_policy_list *l)
{
    auto_mem void *tmp = mem_ctx("policies");
    const struct acl_source *v = acl_sources(tmp, l, NULL);

    return v != NULL ? acl_compile(v, l->n) : acl_compile(NULL, 0);
}
