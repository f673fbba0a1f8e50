/* SPDX-License-Identifier: Apache-2.0
 *
 * Time zones: a TZif file (RFC 8536) as data, and the system's by name. localtime(3) knows one zone
 * per process; a server needs that of each periodic job.
 */
#ifndef PADDOCK_COMMON_HOST_ZONE_H
#define PADDOCK_COMMON_HOST_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct zone;

/* Makes a zone of the bytes of a file, version 2 or later; owned by `ctx`. -ERR_CORRUPT: it is
 * none. */
int zone_parse(const void *ctx, const void *p, size_t n, struct zone **ret, struct err *e);
/* Seconds to add to UTC at second `unix_s`, and until the second *ret_until (INT64_MAX: for ever).
 * `z` NULL: UTC. Pure. */
int64_t zone_at(const struct zone *z, int64_t unix_s, int64_t *ret_until);
/* Finds a zone of the system: "Europe/Berlin"; "" and "UTC" are UTC (*ret NULL), "Local" is the
 * machine's (/etc/localtime; UTC where there is none, as in tzset(3)). Read once; it lives as long
 * as the process. Any thread. -ERR_NOT_FOUND: no such zone, or no database (package tzdata). */
int zone_find(const char *name, const struct zone **ret, struct err *e);

#endif
