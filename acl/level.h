/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules without a label, which have a level: of several policies the strongest counts. Pure.
 */
#ifndef PADDOCK_ACL_LEVEL_H
#define PADDOCK_ACL_LEVEL_H

#include "acl/acl.h"

enum {
    LEVEL_NONE,                       /* then enum acl_level */
    LEVEL_DENY = ACL_LEVEL_WRITE + 1, /* is the strongest */
    LEVEL_KINDS = ACL_PLUGIN - ACL_AGENT + 1,
};

/* The strongest of all; *policy, unless NULL, is the first that has it. "deny" as a capability of
 * the operator's rule denies all of that. */
unsigned level_of(const struct acl_source *v, size_t n, enum acl_kind kind, const char **policy);
bool level_meets(unsigned have, unsigned need);
const char *level_name(unsigned level);

#endif
