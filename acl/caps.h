/* SPDX-License-Identifier: Apache-2.0
 *
 * Capabilities of acl/caps.def as numbers, and sets of them: a bit each, by kind of rule.
 */
#ifndef PADDOCK_ACL_CAPS_H
#define PADDOCK_ACL_CAPS_H

#include <stddef.h>
#include <stdint.h>

enum acl_caps_kind {
    ACL_CAPS_NAMESPACE,
    ACL_CAPS_VARIABLE,
    ACL_CAPS_NODE_POOL,
    ACL_CAPS_HOST_VOLUME,
    ACL_CAPS_OPERATOR,
    ACL_CAPS_SENTINEL,
    ACL_CAPS_KINDS
};

#define ACL_CAP_ENUM(symbol, name) ACL_##symbol,
enum acl_namespace_cap {
#define NAMESPACE_CAP ACL_CAP_ENUM
#include "acl/caps.def"
};
enum acl_variable_cap {
#define VARIABLE_CAP ACL_CAP_ENUM
#include "acl/caps.def"
};
enum acl_node_pool_cap {
#define NODE_POOL_CAP ACL_CAP_ENUM
#include "acl/caps.def"
};
enum acl_host_volume_cap {
#define HOST_VOLUME_CAP ACL_CAP_ENUM
#include "acl/caps.def"
};
enum acl_operator_cap {
#define OPERATOR_CAP ACL_CAP_ENUM
#include "acl/caps.def"
};
enum acl_sentinel_cap {
#define SENTINEL_CAP ACL_CAP_ENUM
#include "acl/caps.def"
};
#undef ACL_CAP_ENUM

#define ACL_CAP(symbol) (UINT64_C(1) << ACL_##symbol)

/* The set of "deny", for each kind. */
enum { ACL_DENY = 1 };

/* The name of a bit; NULL beyond the last. */
const char *acl_cap_name(enum acl_caps_kind kind, unsigned bit);
/* The bit of a name of `n` bytes; -1: there is none. */
int acl_cap_find(enum acl_caps_kind kind, const char *name, size_t n);

#endif
