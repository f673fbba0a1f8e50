/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PADDOCK_COMMON_CRC_H
#define PADDOCK_COMMON_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC32C (Castagnoli), SSE4.2 where the cpu has it; `crc` is 0 at the start. */
uint32_t crc32c(uint32_t crc, const void *p, size_t n);

#endif
