/* SPDX-License-Identifier: Apache-2.0
 *
 * Parsing of numbers, printing of sizes. Parsers accept the whole string or nothing (-EINVAL, or
 * -ERANGE) and leave *ret untouched on failure.
 */
#ifndef PADDOCK_COMMON_NUM_H
#define PADDOCK_COMMON_NUM_H

#include <stdbool.h>
#include <stdint.h>

int num_parse_i64(const char *s, int64_t *ret);
int num_parse_u64(const char *s, uint64_t *ret);
int num_parse_f64(const char *s, double *ret); /* locale-free; no inf, no nan */
int num_parse_bool(const char *s, bool *ret);  /* Go: 1 t T TRUE true True 0 f … */

/* Reads bytes: "10GiB" and "10 Gi" are powers of 1024, "500MB" and "500m" of 1000, as in Nomad;
 * "1024". None is negative. */
int num_parse_size(const char *s, int64_t *ret);

#define SIZE_TEXT 32
/* "300 MiB" */
const char *size_format(uint64_t bytes, char out[SIZE_TEXT]);

#endif
