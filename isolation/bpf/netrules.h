/* SPDX-License-Identifier: Apache-2.0
 *
 * Network policies, compiled for the kernel. A policy is a list of the allowed and a list of the
 * denied: denied beats allowed, and what is in neither is allowed unless something is (or the
 * default says otherwise). Several policies hold together: each must allow. The result has an entry
 * per prefix of any rule, with the verdict whole, so that the longest match decides alone. Pure.
 */
#ifndef PADDOCK_ISOLATION_BPF_NETRULES_H
#define PADDOCK_ISOLATION_BPF_NETRULES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "api/limits.h"
#include "common/err.h"
#include "common/netrule.h"
#include "isolation/bpf/layout.h"

enum { NETRULES_SIDES_MAX = 4 }; /* policies that hold together */

struct netrules_side {
    const struct netrule *allow;
    size_t n_allow;
    const struct netrule *deny;
    size_t n_deny;
    bool otherwise; /* allowed, when no rule is met */
};

struct netrules_entry {
    bool v6;
    uint8_t bits;
    uint8_t addr[16]; /* of IPv4 the first four */
    struct bpf_rule rule;
};

struct netrules {
    struct netrules_entry *v;
    size_t n;
};

/* Parses `p`; NULL and an empty one allow everything. */
int netrules_side(const void *ctx, const struct net_policy *p, struct netrules_side *ret,
                  struct err *e);
/* `ret` is owned by ctx. -ERR_LIMIT: more than BPF_RULE_RANGES ranges of ports meet at a prefix. */
int netrules_compile(const void *ctx, const struct netrules_side *sides, size_t n,
                     struct netrules *ret, struct err *e);
/* The host part of the policy that keeps tasks from the metadata services of clouds. */
const struct net_policy *netrules_metadata(void);

#endif
