/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations and times, parsed and printed. Parsers accept the whole text or nothing (-EINVAL, or
 * -ERANGE) and leave *ret_ns untouched on failure.
 */
#ifndef PADDOCK_COMMON_DURATION_H
#define PADDOCK_COMMON_DURATION_H

#include <stddef.h>
#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* Go's time.ParseDuration: "1h30m", "1.5s", "-2ms", "0"; nanoseconds. */
int duration_parse(const char *s, int64_t *ret_ns);
#define DURATION_TEXT 32
/* Go's Duration.String: "1h30m0s", "1.5s", "0s". Returns `out`. */
const char *duration_format(int64_t ns, char out[DURATION_TEXT]);

/* RFC 3339 <-> nanoseconds since the epoch. 0 prints as Go's zero time, 0001-01-01T00:00:00Z. */
#define TIME_TEXT 40
const char *time_format(int64_t ns, char out[TIME_TEXT]);
int time_parse(const char *s, size_t len, int64_t *ret_ns);

#endif
