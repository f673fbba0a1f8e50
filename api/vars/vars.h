/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables: their sizes and locks, and the words of the key ring. Pure.
 */
#ifndef PADDOCK_API_VARS_VARS_H
#define PADDOCK_API_VARS_VARS_H

#include <stdbool.h>

#include "api/api.h"
#include "common/err.h"

/* States of a root key. */
#define KEY_ACTIVE "active"
#define KEY_PREPUBLISHED "prepublished"
#define KEY_INACTIVE "inactive"
#define KEY_REKEYING "rekeying"
#define KEY_ALGORITHM "aes256-gcm"

/* Operations of VariableApply. */
#define VAR_SET "set"
#define VAR_DELETE "delete"
#define VAR_LOCK_ACQUIRE "lock-acquire"
#define VAR_LOCK_RELEASE "lock-release"

/* The sum of all keys and values. */
enum { VAR_BYTES_MAX = 65536, VAR_ITEMS_MAX = 4096 };
/* Seconds. */
enum { VAR_LOCK_TTL_MIN = 10, VAR_LOCK_TTL_MAX = 24 * 3600, VAR_LOCK_DEFAULT = 15 };

/* -ERR_INVALID: none, too many, or too large. */
int vars_check_items(const struct str_map *items, struct err *e);
/* Fills in what it does not say. -ERR_INVALID. */
int vars_check_lock(const void *ctx, struct variable_lock *l, struct err *e);
/* The times of a lock that was checked, ns. */
int64_t vars_lock_ttl(const struct variable_lock *l);
int64_t vars_lock_delay(const struct variable_lock *l);

/* Says whether a task may read the path without any policy: that of all jobs, of its job, its group
 * and itself. */
bool vars_is_own(const char *path, const char *job, const char *group, const char *task);

#endif
