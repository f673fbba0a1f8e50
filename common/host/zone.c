/* SPDX-License-Identifier: Apache-2.0
 *
 * Time zones (see zone.h). Transitions come from the file's table, later ones from the rule in its
 * last line (POSIX TZ).
 */
#include "common/host/zone.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "common/mem.h"

enum { DAY_S = 86400, HEAD = 44 };

struct rule { /* when one of the two times of a year begins */
    char kind; /* 'M': day `d` of week `w` (5: the last) of month `m`; 'J': day 1-365 without 29
                  February; '0': day 0-365 */
    int m, w, d;
    int64_t time_s; /* of that day, by the time that ends */
};

struct zone {
    size_t n;
    int64_t *at;  /* transitions */
    int64_t *off; /* ... and what holds from there */
    int64_t first;
    bool has_rule, has_dst;
    int64_t std, dst;
    struct rule begin, end; /* of dst */
};

/* --- the rule --- */

static bool
take_int(const char **s, int max, int *ret)
{
    int v = 0;
    const char *p = *s;
    for (; isdigit((unsigned char)*p) && v <= max; p++)
        v = v * 10 + (*p - '0');
    if (p == *s || v > max)
        return false;
    *s = p;
    *ret = v;
    return true;
}

/* [+-]hh[:mm[:ss]] */
static bool
take_time(const char **s, int64_t *ret)
{
    int h, m = 0, sec = 0;
    bool minus = **s == '-';
    if (**s == '-' || **s == '+')
        ++*s;
    if (!take_int(s, 167, &h))
        return false;
    if (**s == ':' && (++*s, !take_int(s, 59, &m)))
        return false;
    if (**s == ':' && (++*s, !take_int(s, 59, &sec)))
        return false;
    *ret = (minus ? -1 : 1) * (h * INT64_C(3600) + m * 60 + sec);
    return true;
}

static bool
take_name(const char **s)
{
    const char *p = *s;
    if (*p == '<') {
        p = strchr(p, '>');
        if (p == NULL)
            return false;
        p++;
    } else {
        while (isalpha((unsigned char)*p))
            p++;
    }
    bool any = p - *s >= 3;
    *s = p;
    return any;
}

static bool
take_rule(const char **s, struct rule *r)
{
    *r = (struct rule){.kind = '0', .time_s = 2 * 3600};
    if (*(*s)++ != ',')
        return false;
    if (**s == 'M') {
        ++*s;
        r->kind = 'M';
        if (!take_int(s, 12, &r->m) || r->m == 0 || *(*s)++ != '.' || !take_int(s, 5, &r->w) ||
            r->w == 0 || *(*s)++ != '.' || !take_int(s, 6, &r->d))
            return false;
    } else {
        if (**s == 'J') {
            ++*s;
            r->kind = 'J';
        }
        if (!take_int(s, 365, &r->d) || (r->kind == 'J' && r->d == 0))
            return false;
    }
    if (**s != '/')
        return true;
    ++*s;
    return take_time(s, &r->time_s);
}

/* "CET-1CEST,M3.5.0,M10.5.0/3": what is west of Greenwich is positive there. */
static bool
parse_tz(struct zone *z, const char *s)
{
    if (!take_name(&s) || !take_time(&s, &z->std))
        return false;
    z->std = -z->std;
    z->dst = z->std + 3600;
    z->has_rule = true;
    if (*s == '\0')
        return true;
    z->has_dst = true;
    if (!take_name(&s))
        return false;
    if (*s != ',') {
        if (!take_time(&s, &z->dst))
            return false;
        z->dst = -z->dst;
    }
    return take_rule(&s, &z->begin) && take_rule(&s, &z->end) && *s == '\0';
}

static int64_t
day_s(int year, int month, int day)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return timegm(&tm);
}

/* Local seconds at which the rule holds in that year, by the time before it. */
static int64_t
rule_at(const struct rule *r, int year)
{
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (r->kind == '0')
        return day_s(year, 1, 1) + (int64_t)r->d * DAY_S + r->time_s;
    if (r->kind == 'J')
        return day_s(year, 1, r->d + (leap && r->d > 59 ? 1 : 0)) + r->time_s;
    int64_t first = day_s(year, r->m, 1);
    int64_t next = r->m == 12 ? day_s(year + 1, 1, 1) : day_s(year, r->m + 1, 1);
    int wday = (int)((first / DAY_S + 4) % 7); /* of a day after 1970 */
    int64_t at = first + ((r->d - wday + 7) % 7 + (r->w - 1) * 7) * (int64_t)DAY_S;
    return (at >= next ? at - 7 * DAY_S : at) + r->time_s;
}

/* Behind the table. */
static int64_t
by_rule(const struct zone *z, int64_t t, int64_t *ret_until)
{
    int64_t off = z->std, since = INT64_MIN;
    time_t local = t + z->std;
    struct tm tm;

    *ret_until = INT64_MAX;
    if (!z->has_dst || t < 0 || gmtime_r(&local, &tm) == NULL)
        return z->std;
    for (int y = tm.tm_year + 1899; y <= tm.tm_year + 1901; y++) {
        const int64_t at[2] = {rule_at(&z->begin, y) - z->std, rule_at(&z->end, y) - z->dst};
        for (int i = 0; i < 2; i++) {
            if (at[i] <= t && at[i] > since) {
                since = at[i];
                off = i == 0 ? z->dst : z->std;
            } else if (at[i] > t && at[i] < *ret_until) {
                *ret_until = at[i];
            }
        }
    }
    return off;
}

int64_t
zone_at(const struct zone *z, int64_t t, int64_t *ret_until)
{
    size_t lo = 0, hi = z != NULL ? z->n : 0; /* the first transition behind t */

    *ret_until = INT64_MAX;
    if (z == NULL)
        return 0;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (z->at[mid] <= t)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == z->n && z->has_rule)
        return by_rule(z, t, ret_until);
    if (lo < z->n)
        *ret_until = z->at[lo];
    return lo == 0 ? z->first : z->off[lo - 1];
}

/* --- the file --- */

struct head {
    char version;
    size_t isut, isstd, leap, time, type, chars;
};

static uint64_t
zone_be(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static bool
read_head(const uint8_t *p, size_t n, struct head *h)
{
    size_t *const counts[] = {&h->isut, &h->isstd, &h->leap, &h->time, &h->type, &h->chars};
    if (n < HEAD || memcmp(p, "TZif", 4) != 0)
        return false;
    h->version = (char)p[4];
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        *counts[i] = (size_t)zone_be(p + 20 + 4 * i, 4);
        if (*counts[i] > ZONE_BYTES_MAX)
            return false;
    }
    return true;
}

static size_t
body_bytes(const struct head *h, size_t word)
{
    return h->time * (word + 1) + h->type * 6 + h->chars + h->leap * (word + 4) + h->isstd +
           h->isut;
}

static bool
read_table(struct zone *z, const uint8_t *p, const struct head *h)
{
    const uint8_t *index = p + h->time * 8, *types = index + h->time;
    z->n = h->time;
    z->at = mem_array(z, int64_t, z->n);
    z->off = mem_array(z, int64_t, z->n);
    z->first = (int32_t)zone_be(types, 4);
    for (size_t i = 0; i < z->n; i++) {
        if (index[i] >= h->type)
            return false;
        z->at[i] = (int64_t)zone_be(p + i * 8, 8);
        z->off[i] = (int32_t)zone_be(types + index[i] * 6, 4);
        if ((i > 0 && z->at[i] <= z->at[i - 1]) || z->off[i] < -2 * DAY_S || z->off[i] > 2 * DAY_S)
            return false;
    }
    return true;
}

static bool
read_file(struct zone *z, const uint8_t *p, size_t n)
{
    struct head h;
    if (!read_head(p, n, &h) || h.version < '2')
        return false;
    size_t skip = HEAD + body_bytes(&h, 4);
    if (skip > n || !read_head(p + skip, n - skip, &h))
        return false;
    skip += HEAD;
    size_t body = body_bytes(&h, 8);
    if (h.type == 0 || body > n - skip || !read_table(z, p + skip, &h))
        return false;
    p += skip + body;
    n -= skip + body;
    if (n < 2 || p[0] != '\n')
        return false;
    const uint8_t *end = memchr(p + 1, '\n', n - 1);
    if (end == NULL)
        return false;
    char *tz = mem_strndup(z, (const char *)p + 1, (size_t)(end - p - 1));
    return *tz == '\0' || parse_tz(z, tz);
}

int
zone_parse(const void *ctx, const void *p, size_t n, struct zone **ret, struct err *e)
{
    struct zone *z = mem_new(ctx, struct zone);
    if (n > ZONE_BYTES_MAX || !read_file(z, p, n)) {
        mem_free(z);
        return err_set(e, -ERR_CORRUPT, "not a TZif file of version 2");
    }
    *ret = z;
    return 0;
}
