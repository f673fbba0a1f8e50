/* SPDX-License-Identifier: Apache-2.0 */
#include "common/random.h"

#include <errno.h>
#include <sys/random.h>

#include "common/mem.h"

void
rand_bytes(void *p, size_t n)
{
    ssize_t r;
    do
        r = getrandom(p, n, 0);
    while (r < 0 && errno == EINTR);
    ASSERT(r == (ssize_t)n); /* up to 256 bytes are never cut short, random(4) */
}

uint64_t
rand_u64(void)
{
    uint64_t v;
    rand_bytes(&v, sizeof(v));
    return v;
}
