/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on timestamps. There is no function for the current time: evaluation is pure.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/buf.h"
#include "common/duration.h"
#include "jobspec/func/func.h"

static int64_t
arg_time(struct call *c, size_t i)
{
    int64_t ns = 0;
    const char *s = arg_str(c, i);
    if (time_parse(s, strlen(s), &ns) != 0)
        arg_error(c, i, "a timestamp as in 2026-01-31T12:00:00Z is needed");
    return ns;
}

/* Seconds part of the civil time in the zone that the text names. */
struct civil {
    struct tm tm;
    int offset_min;
};

static void
put_rfc3339(char *out, size_t size, int64_t seconds, int offset_min)
{
    time_t t = (time_t)(seconds + offset_min * 60);
    struct tm tm;
    gmtime_r(&t, &tm);
    int n = snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                     tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
    if (offset_min == 0)
        snprintf(out + n, size - (size_t)n, "Z");
    else
        snprintf(out + n, size - (size_t)n, "%c%02d:%02d", offset_min < 0 ? '-' : '+',
                 (offset_min < 0 ? -offset_min : offset_min) / 60,
                 (offset_min < 0 ? -offset_min : offset_min) % 60);
}

static int
zone_minutes(const char *s)
{
    size_t n = strlen(s);
    int h, m;
    char sign;
    if (n < 6 || sscanf(s + n - 6, "%c%2d:%2d", &sign, &h, &m) != 3 || (sign != '+' && sign != '-'))
        return 0;
    return (sign == '-' ? -1 : 1) * (h * 60 + m);
}

static int64_t
floor_seconds(int64_t ns)
{
    return ns / NS_PER_S - (ns % NS_PER_S < 0);
}

static struct value *
fn_timeadd(struct call *c)
{
    int64_t ns = arg_time(c, 0), d = 0;
    if (c->failed)
        return NULL;
    if (duration_parse(arg_str(c, 1), &d) != 0)
        return arg_error(c, 1, "a duration such as \"1h30m\" is needed");
    if (__builtin_add_overflow(ns, d, &ns))
        return arg_error(c, 1, "the result is out of range");
    char out[64];
    put_rfc3339(out, sizeof(out), floor_seconds(ns), zone_minutes(arg_str(c, 0)));
    return ret_str(c, out);
}

/* --- formatdate --- */

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};

static void
put_zone(struct buf *b, const struct civil *t, size_t n)
{
    int m = t->offset_min < 0 ? -t->offset_min : t->offset_min;
    char sign = t->offset_min < 0 ? '-' : '+';
    if (m == 0 && n == 1)
        buf_putc(b, 'Z');
    else if (m == 0 && n == 3)
        buf_puts(b, "UTC");
    else
        buf_printf(b, n == 4 || n == 3 ? "%c%02d%02d" : "%c%02d:%02d", sign, m / 60, m % 60);
}

/* A run of `n` letters `ch`. False when it is no verb. */
static bool
put_verb(struct buf *b, const struct civil *t, char ch, size_t n)
{
    const struct tm *tm = &t->tm;
    int hour12 = tm->tm_hour % 12 == 0 ? 12 : tm->tm_hour % 12;
    int v = ch == 'D'   ? tm->tm_mday
            : ch == 'h' ? tm->tm_hour
            : ch == 'H' ? hour12
            : ch == 'm' ? tm->tm_min
                        : tm->tm_sec;
    switch (ch) {
    case 'Y':
        if (n == 4)
            buf_printf(b, "%04d", tm->tm_year + 1900);
        else
            buf_printf(b, "%02d", tm->tm_year % 100);
        return n == 4 || n == 2;
    case 'M':
        if (n > 2)
            buf_printf(b, "%.*s", n == 3 ? 3 : 20, months[tm->tm_mon]);
        else
            buf_printf(b, n == 2 ? "%02d" : "%d", tm->tm_mon + 1);
        return n <= 4;
    case 'E':
        buf_printf(b, "%.*s", n == 3 ? 3 : 20, days[tm->tm_wday]);
        return n == 3 || n == 4;
    case 'A':
    case 'a':
        buf_puts(b,
                 ch == 'A' ? (tm->tm_hour < 12 ? "AM" : "PM") : (tm->tm_hour < 12 ? "am" : "pm"));
        return n == 2;
    case 'Z':
        put_zone(b, t, n);
        return n == 1 || (n >= 3 && n <= 5);
    case 'D':
    case 'h':
    case 'H':
    case 'm':
    case 's':
        buf_printf(b, n == 2 ? "%02d" : "%d", v);
        return n <= 2;
    default:
        return false;
    }
}

static struct value *
fn_formatdate(struct call *c)
{
    const char *f = arg_str(c, 0);
    int64_t ns = arg_time(c, 1);
    if (c->failed)
        return NULL;
    struct civil t = {.offset_min = zone_minutes(arg_str(c, 1))};
    time_t s = (time_t)(floor_seconds(ns) + t.offset_min * 60);
    gmtime_r(&s, &t.tm);
    auto_buf struct buf b = BUF_INIT(1 << 20);
    while (*f != '\0') {
        if (*f == '\'') {
            for (f++; *f != '\0' && (*f != '\'' || f[1] == '\''); f++) {
                f += *f == '\'';
                buf_putc(&b, *f);
            }
            if (*f++ == '\0')
                return arg_error(c, 0, "a quote is not closed");
            continue;
        }
        if (!((*f >= 'a' && *f <= 'z') || (*f >= 'A' && *f <= 'Z'))) {
            buf_putc(&b, *f++);
            continue;
        }
        size_t n = strspn(f, (char[2]){*f, '\0'});
        if (!put_verb(&b, &t, *f, n))
            return arg_error(c, 0, "\"%.*s\" is not known; put literal letters in single quotes",
                             (int)(n < 20 ? n : 20), f);
        f += n;
    }
    return ret_str(c, buf_str(&b));
}

const struct func func_date[] = {{"formatdate", 2, 2, fn_formatdate, false},
                                 {"timeadd", 2, 2, fn_timeadd, false},
                                 {NULL, 0, 0, NULL, false}};
