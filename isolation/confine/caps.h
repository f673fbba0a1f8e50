/* SPDX-License-Identifier: Apache-2.0
 *
 * Capability names and sets: pure. Nothing is kept by default; a job's cap_add passes only where
 * the operator's policy allows the name.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_CAPS_H
#define PADDOCK_ISOLATION_CONFINE_CAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* "net_bind_service", "CAP_NET_BIND_SERVICE", any case -> bit number, or -ERR_INVALID. */
int caps_from_name(const char *name);
/* Lower case, without CAP_; NULL beyond what this build knows. */
const char *caps_name(unsigned bit);

/* The set of `add`, each of which must be in `allowed`. "all" in `add` is refused, in `allowed` it
 * means every name. Errors: -ERR_INVALID (unknown name, with a suggestion), -ERR_POLICY. */
int caps_plan(const char *const *add, size_t n_add, const char *const *allowed, size_t n_allowed,
              uint64_t *ret, struct err *e);
/* Some mean something over what belongs to a task's own user namespace. The others are about the
 * machine or its network: a job that asks for such a capability, where the operator allows
 * that, asks for the host's namespace. True: there are such in the set. */
bool caps_need_host(uint64_t caps);

#endif
