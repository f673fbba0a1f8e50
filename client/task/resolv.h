/* SPDX-License-Identifier: Apache-2.0
 *
 * The resolv.conf of a group that has a `dns` block (resolv.conf(5)). Pure.
 */
#ifndef PADDOCK_CLIENT_TASK_RESOLV_H
#define PADDOCK_CLIENT_TASK_RESOLV_H

#include "api/api.h"
#include "client/task/env.h"
#include "common/err.h"

/* Makes a resolv.conf of servers, searches and options: those of `dns`, interpolated; of which it
 * has none, those of `host`, the text of the host's file (NULL: none). Owned by ctx. NULL: what was
 * interpolated is no word or no address, which would put lines of its own there. */
const char *resolv_text(const void *ctx, struct env *env, const struct dns_config *dns,
                        const char *host, struct err *e);

#endif
