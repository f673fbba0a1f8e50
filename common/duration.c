/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations are read as fixed-point numbers, so that no text loses a nanosecond.
 */
#include "common/duration.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"

/* "12.5" at *s as a fixed-point number: whole part, and fraction in units of 1e-15. */
static int
parse_decimal(const char **s, uint64_t *ret_whole, uint64_t *ret_frac)
{
    const char *p = *s;
    uint64_t whole = 0, frac = 0, unit = UINT64_C(100000000000000);
    bool digits = false;
    for (; *p >= '0' && *p <= '9'; p++, digits = true)
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(*p - '0'), &whole))
            return -ERANGE;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9'; p++, digits = true) {
            frac += (uint64_t)(*p - '0') * unit;
            unit /= 10;
        }
    if (!digits)
        return -EINVAL;
    *s = p;
    *ret_whole = whole;
    *ret_frac = frac;
    return 0;
}

int
duration_parse(const char *s, int64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {
        {"ns", 1},
        {"us", 1000},
        {"\xc2\xb5s", 1000}, /* micro sign */
        {"\xce\xbcs", 1000}, /* Greek mu */
        {"ms", 1000000},
        {"s", 1000000000},
        {"m", UINT64_C(60000000000)},
        {"h", UINT64_C(3600000000000)},
    };
    bool neg = *s == '-';
    if (neg || *s == '+')
        s++;
    if (strcmp(s, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    if (!*s)
        return -EINVAL;
    uint64_t total = 0;
    while (*s) {
        uint64_t whole, frac;
        int r = parse_decimal(&s, &whole, &frac);
        if (r < 0)
            return r;
        size_t n = 0;
        while (s[n] && s[n] != '.' && (s[n] < '0' || s[n] > '9'))
            n++;
        uint64_t unit = 0;
        for (size_t i = 0; i < ARRAY_LEN(units) && !unit; i++)
            if (strlen(units[i].name) == n && memcmp(units[i].name, s, n) == 0)
                unit = units[i].ns;
        if (!unit)
            return -EINVAL;
        s += n;
        uint64_t part;
        if (__builtin_mul_overflow(whole, unit, &part) ||
            __builtin_add_overflow(part, (uint64_t)((__uint128_t)frac * unit / 1000000000000000u),
                                   &part) ||
            __builtin_add_overflow(total, part, &total) || total > INT64_MAX)
            return -ERANGE;
    }
    *ret_ns = neg ? -(int64_t)total : (int64_t)total;
    return 0;
}

/* v / 10^digits with trailing zeros removed: "1.5", "2" */
static size_t
put_fraction(char *out, size_t size, uint64_t v, unsigned digits)
{
    uint64_t scale = 1;
    for (unsigned i = 0; i < digits; i++)
        scale *= 10;
    int n = snprintf(out, size, "%" PRIu64, v / scale);
    if (v % scale) {
        n += snprintf(out + n, size - (size_t)n, ".%0*" PRIu64, (int)digits, v % scale);
        while (out[n - 1] == '0')
            out[--n] = 0;
    }
    return (size_t)n;
}

const char *
duration_format(int64_t ns, char out[DURATION_TEXT])
{
    char *p = out;
    uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    if (u == 0)
        return strcpy(out, "0s");
    if (ns < 0)
        *p++ = '-';
    size_t left = DURATION_TEXT - 1;
    if (u < 1000000000) {
        const char *unit = u < 1000 ? "ns" : u < 1000000 ? "\xc2\xb5s" : "ms";
        p += put_fraction(p, left, u, u < 1000 ? 0 : u < 1000000 ? 3 : 6);
        strcpy(p, unit);
        return out;
    }
    uint64_t h = u / UINT64_C(3600000000000), m = u / UINT64_C(60000000000) % 60;
    if (h)
        p += snprintf(p, left, "%" PRIu64 "h", h);
    if (h || m)
        p += snprintf(p, 4, "%" PRIu64 "m", m);
    p += put_fraction(p, 16, u % UINT64_C(60000000000), 9);
    strcpy(p, "s");
    return out;
}

const char *
time_format(int64_t ns, char out[TIME_TEXT])
{
    if (ns == 0)
        return strcpy(out, "0001-01-01T00:00:00Z");
    int64_t sec = ns / NS_PER_S, frac = ns % NS_PER_S;
    if (frac < 0) {
        frac += NS_PER_S;
        sec--;
    }
    struct tm tm;
    time_t t = (time_t)sec;
    if (!gmtime_r(&t, &tm))
        return strcpy(out, "0001-01-01T00:00:00Z");
    size_t n = strftime(out, TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    if (frac) {
        n += (size_t)snprintf(out + n, TIME_TEXT - n, ".%09" PRId64, frac);
        while (out[n - 1] == '0')
            n--;
    }
    strcpy(out + n, "Z");
    return out;
}

static bool
num_digits(const char *s, size_t n, int *ret)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = v * 10 + (s[i] - '0');
    }
    *ret = v;
    return true;
}

int
time_parse(const char *s, size_t len, int64_t *ret_ns)
{
    int y, mo, d, h, mi, sec, oh, om;
    if (len < 20 || !num_digits(s, 4, &y) || s[4] != '-' || !num_digits(s + 5, 2, &mo) ||
        s[7] != '-' || !num_digits(s + 8, 2, &d) || (s[10] | 0x20) != 't' ||
        !num_digits(s + 11, 2, &h) || s[13] != ':' || !num_digits(s + 14, 2, &mi) || s[16] != ':' ||
        !num_digits(s + 17, 2, &sec))
        return -EINVAL;
    if (mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 || sec > 60)
        return -ERANGE;
    size_t i = 19;
    int64_t frac = 0, unit = 100000000;
    if (s[i] == '.')
        for (i++; i < len && s[i] >= '0' && s[i] <= '9'; i++, unit /= 10)
            frac += (s[i] - '0') * unit;
    int64_t off = 0;
    if (i + 1 == len && (s[i] | 0x20) == 'z')
        off = 0;
    else if (i + 6 == len && (s[i] == '+' || s[i] == '-') && num_digits(s + i + 1, 2, &oh) &&
             s[i + 3] == ':' && num_digits(s + i + 4, 2, &om) && oh < 24 && om < 60)
        off = (s[i] == '-' ? -1 : 1) * (oh * 3600 + om * 60);
    else
        return -EINVAL;
    if (y == 1 && mo == 1 && d == 1 && h == 0 && mi == 0 && sec == 0) {
        *ret_ns = 0; /* Go's zero time */
        return 0;
    }
    struct tm tm = {.tm_year = y - 1900, .tm_mon = mo - 1, .tm_mday = d, .tm_hour = h, .tm_min = mi,
                    .tm_sec = sec};
    int64_t t = (int64_t)timegm(&tm) - off, ns;
    if (__builtin_mul_overflow(t, NS_PER_S, &ns) || __builtin_add_overflow(ns, frac, &ns))
        return -ERANGE;
    *ret_ns = ns;
    return 0;
}
