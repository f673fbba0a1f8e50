/* SPDX-License-Identifier: Apache-2.0
 *
 * Downloads that this node keeps for the next task that asks for the same, by a key of the agent:
 * files of root in ".artifacts" of the directory of allocations, of which the least used go when
 * there are more than the operator allows. Nothing there is believed: whoever gets a file copies
 * it, and checks the sum of the copy.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_CACHE_H
#define PADDOCK_ISOLATION_WARDEN_CACHE_H

#include "isolation/warden/warden.h"

/* 64 hexadecimal digits. */
bool cache_key_is_good(const char *key);
/* Returns what is kept under the key, to be read; < 0: nothing. */
int cache_open(const struct warden *w, const char *key);
/* Keeps the file CACHE_NAME of the directory of a helper that has ended. */
void cache_take(struct warden *w, int scratch, const char *key);
/* Removes what is beyond the limit, as it is now. */
void cache_trim(const struct warden *w);

#endif
