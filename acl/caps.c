/* SPDX-License-Identifier: Apache-2.0 */
#include "acl/caps.h"

#include <string.h>

#include "common/mem.h"

#define CAP_NAME(symbol, name) name,
static const char *const namespace_caps[] = {
#define NAMESPACE_CAP CAP_NAME
#include "acl/caps.def"
};
static const char *const variable_caps[] = {
#define VARIABLE_CAP CAP_NAME
#include "acl/caps.def"
};
static const char *const node_pool_caps[] = {
#define NODE_POOL_CAP CAP_NAME
#include "acl/caps.def"
};
static const char *const host_volume_caps[] = {
#define HOST_VOLUME_CAP CAP_NAME
#include "acl/caps.def"
};
static const char *const operator_caps[] = {
#define OPERATOR_CAP CAP_NAME
#include "acl/caps.def"
};
static const char *const sentinel_caps[] = {
#define SENTINEL_CAP CAP_NAME
#include "acl/caps.def"
};
_Static_assert(ARRAY_LEN(namespace_caps) <= 64, "a set is a word");

static const struct {
    const char *const *v;
    size_t n;
} tables[ACL_CAPS_KINDS] = {
    [ACL_CAPS_NAMESPACE] = {namespace_caps, ARRAY_LEN(namespace_caps)},
    [ACL_CAPS_VARIABLE] = {variable_caps, ARRAY_LEN(variable_caps)},
    [ACL_CAPS_NODE_POOL] = {node_pool_caps, ARRAY_LEN(node_pool_caps)},
    [ACL_CAPS_HOST_VOLUME] = {host_volume_caps, ARRAY_LEN(host_volume_caps)},
    [ACL_CAPS_OPERATOR] = {operator_caps, ARRAY_LEN(operator_caps)},
    [ACL_CAPS_SENTINEL] = {sentinel_caps, ARRAY_LEN(sentinel_caps)},
};

const char *
acl_cap_name(enum acl_caps_kind kind, unsigned bit)
{
    return bit < tables[kind].n ? tables[kind].v[bit] : NULL;
}

int
acl_cap_find(enum acl_caps_kind kind, const char *name, size_t n)
{
    for (size_t i = 0; i < tables[kind].n; i++)
        if (strlen(tables[kind].v[i]) == n && memcmp(tables[kind].v[i], name, n) == 0)
            return (int)i;
    return -1;
}
