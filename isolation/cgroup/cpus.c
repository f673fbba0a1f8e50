/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of processors (see cpus.h).
 */
#include "isolation/cgroup/cpus.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "common/num.h"

void
cgroup_cpus_add(struct cgroup_cpus *s, unsigned cpu)
{
    ASSERT(cpu < CGROUP_CPUS_MAX);
    s->bits[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

bool
cgroup_cpus_has(const struct cgroup_cpus *s, unsigned cpu)
{
    return (s->bits[cpu / 64] >> (cpu % 64)) & 1;
}

unsigned
cgroup_cpus_count(const struct cgroup_cpus *s)
{
    unsigned n = 0;
    for (size_t i = 0; i < ARRAY_LEN(s->bits); i++)
        n += (unsigned)__builtin_popcountll(s->bits[i]);
    return n;
}

static bool
parse_cpu(const char **p, unsigned *ret)
{
    char digits[8];
    size_t n = strspn(*p, "0123456789");
    int64_t v;
    if (n == 0 || n >= sizeof(digits))
        return false;
    memcpy(digits, *p, n);
    digits[n] = 0;
    if (num_parse_i64(digits, &v) < 0 || v >= CGROUP_CPUS_MAX)
        return false;
    *ret = (unsigned)v;
    *p += n;
    return true;
}

bool
cgroup_cpus_parse(const char *text, struct cgroup_cpus *ret)
{
    struct cgroup_cpus s = {0};
    for (const char *p = text; *p != 0 && *p != '\n';) {
        unsigned from, to;
        if (!parse_cpu(&p, &from))
            return false;
        to = from;
        if (*p == '-' && (p++, !parse_cpu(&p, &to)))
            return false;
        for (unsigned i = from; i <= to; i++)
            cgroup_cpus_add(&s, i);
        if (*p == ',')
            p++;
        else if (*p != 0 && *p != '\n')
            return false;
    }
    *ret = s;
    return true;
}

const char *
cgroup_cpus_text(const struct cgroup_cpus *s, char out[CGROUP_CPUS_TEXT_MAX])
{
    size_t n = 0;
    out[0] = 0;
    for (unsigned i = 0; i < CGROUP_CPUS_MAX; i++) {
        if (!cgroup_cpus_has(s, i))
            continue;
        unsigned to = i;
        while (to + 1 < CGROUP_CPUS_MAX && cgroup_cpus_has(s, to + 1))
            to++;
        n += (size_t)snprintf(out + n, CGROUP_CPUS_TEXT_MAX - n, "%s%u", n ? "," : "", i);
        if (to > i)
            n += (size_t)snprintf(out + n, CGROUP_CPUS_TEXT_MAX - n, "-%u", to);
        i = to;
    }
    return out;
}
