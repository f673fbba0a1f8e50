/* SPDX-License-Identifier: Apache-2.0
 *
 * Node pools: which names they may have, and what they say of their jobs. Pure.
 */
#ifndef PADDOCK_API_POOL_H
#define PADDOCK_API_POOL_H

#include <stdbool.h>

#include "api/api.h"
#include "common/err.h"

/* 1 to OBJECT_NAME_MAX of letters, digits, '-' and '_'. */
int pool_check_name(const char *name, struct err *e);
/* Return what holds for the jobs of a pool: the pool's word, else the word on all pools. Either may
 * be NULL. */
const char *pool_algorithm(const struct node_pool *p, const struct scheduler_configuration *all);
bool pool_oversubscribes(const struct node_pool *p, const struct scheduler_configuration *all);

#endif
