/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crc.h"

#include <string.h>

/* CRC32C, reflected polynomial 0x82f63b78 (RFC 3720, appendix B.4). */
static uint32_t
crc32c_soft(uint32_t crc, const uint8_t *p, size_t n)
{
    static uint32_t table[256];
    if (!table[1]) /* benign race: every thread writes the same values */
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int k = 0; k < 8; k++)
                c = c & 1 ? c >> 1 ^ 0x82f63b78u : c >> 1;
            __atomic_store_n(&table[i], c, __ATOMIC_RELAXED);
        }
    for (; n; n--, p++)
        crc = crc >> 8 ^ __atomic_load_n(&table[(crc ^ *p) & 255], __ATOMIC_RELAXED);
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
crc32c_sse(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t v;
        memcpy(&v, p, 8);
        c = __builtin_ia32_crc32di(c, v);
    }
    for (; n; n--, p++)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p);
    return (uint32_t)c;
}
#endif

uint32_t
crc32c(uint32_t crc, const void *p, size_t n)
{
    crc = ~crc;
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_sse(crc, p, n);
#endif
    return ~crc32c_soft(crc, p, n);
}
