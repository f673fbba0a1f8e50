/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing and printing of numbers, durations and sizes. Parsers accept the whole string or nothing
 * (-EINVAL, or -ERANGE) and leave *ret untouched on failure.
 */
#ifndef PADDOCK_COMMON_NUM_H
#define PADDOCK_COMMON_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

int num_parse_i64(const char *s, int64_t *ret);
int num_parse_u64(const char *s, uint64_t *ret);
int num_parse_f64(const char *s, double *ret); /* locale-free; no inf, no nan */
int num_parse_bool(const char *s, bool *ret);  /* Go: 1 t T TRUE true True 0 f … */

/* Go's time.ParseDuration: "1h30m", "1.5s", "-2ms", "0"; nanoseconds. */
int duration_parse(const char *s, int64_t *ret_ns);
#define DURATION_TEXT 32
/* Go's Duration.String: "1h30m0s", "1.5s", "0s". Returns `out`. */
const char *duration_format(int64_t ns, char out[DURATION_TEXT]);

#define SIZE_TEXT 32
/* "300 MiB" */
const char *size_format(uint64_t bytes, char out[SIZE_TEXT]);

/* RFC 3339 <-> nanoseconds since the epoch. 0 prints as Go's zero time, 0001-01-01T00:00:00Z. */
#define TIME_TEXT 40
const char *time_format(int64_t ns, char out[TIME_TEXT]);
int time_parse(const char *s, size_t len, int64_t *ret_ns);

/* CLOCK_MONOTONIC, CLOCK_BOOTTIME (which goes on while the machine is suspended) and
 * CLOCK_REALTIME. */
int64_t clock_mono_ns(void);
int64_t clock_boot_ns(void);
int64_t clock_wall_ns(void);
/* The time of day as this process believes it (civil.h), any thread; and a time that the wall clock
 * just had, in that. */
int64_t clock_civil_ns(void);
int64_t clock_civil_of(int64_t wall_ns);

#define UUID_TEXT 37
/* Random (version 4) UUID from getrandom(2), lower case. Returns `out`. */
const char *uuid_make(char out[UUID_TEXT]);
bool uuid_valid(const char *s);

uint64_t rand_u64(void);
void rand_bytes(void *p, size_t n); /* up to 256, from getrandom(2) */
/* CRC32C (Castagnoli), SSE4.2 where the cpu has it; `crc` is 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

#endif
