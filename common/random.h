/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers of the kernel, getrandom(2).
 */
#ifndef PADDOCK_COMMON_RANDOM_H
#define PADDOCK_COMMON_RANDOM_H

#include <stddef.h>
#include <stdint.h>

uint64_t rand_u64(void);
void rand_bytes(void *p, size_t n); /* up to 256 */

#endif
