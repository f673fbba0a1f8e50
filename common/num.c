/* SPDX-License-Identifier: Apache-2.0 */
#include "common/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/mem.h"

int
num_parse_u64(const char *s, uint64_t *ret)
{
    uint64_t v = 0;
    if (!*s)
        return -EINVAL;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return -EINVAL;
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
            return -ERANGE;
    }
    *ret = v;
    return 0;
}

int
num_parse_i64(const char *s, int64_t *ret)
{
    bool neg = *s == '-';
    uint64_t v;
    int r = num_parse_u64(s + (neg || *s == '+'), &v);
    if (r < 0)
        return r;
    if (v > (uint64_t)INT64_MAX + (neg ? 1u : 0u))
        return -ERANGE;
    *ret = neg ? (int64_t)(0 - v) : (int64_t)v;
    return 0;
}

int
num_parse_f64(const char *s, double *ret)
{
    /* strtod accepts more than numbers: hex, inf, nan, blanks. */
    if (!*s || strspn(s, "+-0123456789.eE") != strlen(s))
        return -EINVAL;
    char *end;
    errno = 0;
    double v = strtod(s, &end); /* the agent never calls setlocale */
    if (*end || end == s)
        return -EINVAL;
    if (errno == ERANGE && !isfinite(v))
        return -ERANGE;
    *ret = v;
    return 0;
}

int
num_parse_bool(const char *s, bool *ret)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
        if (strcmp(s, yes[i]) == 0) {
            *ret = true;
            return 0;
        }
        if (strcmp(s, no[i]) == 0) {
            *ret = false;
            return 0;
        }
    }
    return -EINVAL;
}

int
num_parse_size(const char *s, int64_t *ret)
{
    static const struct {
        const char *unit;
        int64_t bytes;
    } units[] = {{"", 1},
                 {"K", 1000},
                 {"M", 1000000},
                 {"G", 1000000000},
                 {"T", INT64_C(1000000000000)},
                 {"Ki", 1 << 10},
                 {"Mi", 1 << 20},
                 {"Gi", 1 << 30},
                 {"Ti", INT64_C(1) << 40}};
    char number[32];
    double v = 0;
    size_t n = strspn(s, "0123456789.");
    if (n == 0 || n >= sizeof(number))
        return -EINVAL;
    (void)snprintf(number, sizeof(number), "%.*s", (int)n, s);
    int r = num_parse_f64(number, &v);
    s += n + strspn(s + n, " ");
    n = strlen(s);
    n -= n > 0 && (s[n - 1] == 'B' || s[n - 1] == 'b');
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(units); i++) {
        if (n != strlen(units[i].unit) || strncasecmp(s, units[i].unit, n) != 0)
            continue;
        v *= (double)units[i].bytes;
        if (v > 9e18)
            return -ERANGE;
        *ret = (int64_t)v;
        return 0;
    }
    return -EINVAL;
}

const char *
size_format(uint64_t bytes, char out[SIZE_TEXT])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1024 && u + 1 < ARRAY_LEN(units)) {
        v /= 1024;
        u++;
    }
    v = floor(v * 10 + 0.5) / 10;
    if (v >= 10 || u == 0)
        (void)snprintf(out, SIZE_TEXT, "%.0f %s", v, units[u]);
    else
        (void)snprintf(out, SIZE_TEXT, "%.1f %s", v, units[u]);
    return out;
}
