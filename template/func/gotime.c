/* SPDX-License-Identifier: Apache-2.0
 *
 * Times as Go's time prints them: a layout is cut into pieces, of which some stand for a part of
 * the time. The longest piece that fits is taken, in the order of the table.
 */
#include "template/func/gotime.h"

#include <string.h>
#include <time.h>

#include "common/mem.h"

static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};

enum piece {
    LONG_MONTH,
    MONTH,
    LONG_DAY,
    DAY,
    ZONE,
    MONTH_2,
    DATE_2,
    HOUR12_2,
    MINUTE_2,
    SECOND_2,
    YEAR_2,
    YEAR_DAY_3,
    YEAR,
    HOUR_2,
    UPPER_PM,
    LOWER_PM,
    OFFSET_COLON_SECONDS,
    OFFSET_SECONDS,
    OFFSET_COLON,
    OFFSET,
    OFFSET_SHORT,
    Z,
    YEAR_DAY_BLANK,
    DATE_BLANK,
    MONTH_1,
    DATE_1,
    HOUR12_1,
    MINUTE_1,
    SECOND_1,
    PIECES
};

static const char *const pieces[PIECES] = {
    [LONG_MONTH] = "January",
    [MONTH] = "Jan",
    [LONG_DAY] = "Monday",
    [DAY] = "Mon",
    [ZONE] = "MST",
    [MONTH_2] = "01",
    [DATE_2] = "02",
    [HOUR12_2] = "03",
    [MINUTE_2] = "04",
    [SECOND_2] = "05",
    [YEAR_2] = "06",
    [YEAR_DAY_3] = "002",
    [YEAR] = "2006",
    [HOUR_2] = "15",
    [UPPER_PM] = "PM",
    [LOWER_PM] = "pm",
    [OFFSET_COLON_SECONDS] = "-07:00:00",
    [OFFSET_SECONDS] = "-070000",
    [OFFSET_COLON] = "-07:00",
    [OFFSET] = "-0700",
    [OFFSET_SHORT] = "-07",
    [Z] = "Z07",
    [YEAR_DAY_BLANK] = "__2",
    [DATE_BLANK] = "_2",
    [MONTH_1] = "1",
    [DATE_1] = "2",
    [HOUR12_1] = "3",
    [MINUTE_1] = "4",
    [SECOND_1] = "5",
};

/* The length of Z07 with what belongs to it. */
static size_t
zone_length(struct gv s)
{
    static const char *const forms[] = {"Z07:00:00", "Z070000", "Z07:00", "Z0700", "Z07"};
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (s.n >= strlen(forms[i]) && memcmp(s.s, forms[i], strlen(forms[i])) == 0)
            return strlen(forms[i]);
    return 0;
}

static enum piece
find_piece(struct gv s, size_t *len)
{
    enum piece best = PIECES;
    *len = 0;
    for (enum piece i = 0; i < PIECES; i++) {
        size_t n = strlen(pieces[i]);
        if (n <= *len || s.n < n || memcmp(s.s, pieces[i], n) != 0)
            continue;
        bool lower = s.n > n && s.s[n] >= 'a' && s.s[n] <= 'z';
        if ((i == MONTH || i == DAY) && lower)
            continue; /* as in "Janet" */
        if (i == DATE_BLANK && s.n >= 5 && memcmp(s.s, "_2006", 5) == 0)
            continue;
        best = i;
        *len = n;
    }
    if (best == Z)
        *len = zone_length(s);
    return best;
}

static int
twelve_hours(const struct tm *t)
{
    return t->tm_hour % 12 == 0 ? 12 : t->tm_hour % 12;
}

static void
put_piece(struct run *r, struct text *out, enum piece p, const struct tm *t)
{
    int year = t->tm_year + 1900;
    switch (p) {
    case LONG_MONTH:
        text_puts(r, out, months[t->tm_mon]);
        return;
    case MONTH:
        text_put(r, out, months[t->tm_mon], 3);
        return;
    case LONG_DAY:
        text_puts(r, out, days[t->tm_wday]);
        return;
    case DAY:
        text_put(r, out, days[t->tm_wday], 3);
        return;
    case ZONE:
        text_puts(r, out, "UTC");
        return;
    case YEAR:
        text_printf(r, out, "%04d", year);
        return;
    case YEAR_2:
        text_printf(r, out, "%02d", year % 100);
        return;
    case YEAR_DAY_3:
        text_printf(r, out, "%03d", t->tm_yday + 1);
        return;
    case YEAR_DAY_BLANK:
        text_printf(r, out, "%3d", t->tm_yday + 1);
        return;
    case DATE_BLANK:
        text_printf(r, out, "%2d", t->tm_mday);
        return;
    case UPPER_PM:
    case LOWER_PM:
        text_putc(r, out, (char)((t->tm_hour < 12 ? 'A' : 'P') + (p == LOWER_PM ? 32 : 0)));
        text_putc(r, out, p == LOWER_PM ? 'm' : 'M');
        return;
    case OFFSET_COLON_SECONDS:
        text_puts(r, out, "+00:00:00");
        return;
    case OFFSET_SECONDS:
        text_puts(r, out, "+000000");
        return;
    case OFFSET_COLON:
        text_puts(r, out, "+00:00");
        return;
    case OFFSET:
        text_puts(r, out, "+0000");
        return;
    case OFFSET_SHORT:
        text_puts(r, out, "+00");
        return;
    case Z:
        text_putc(r, out, 'Z');
        return;
    default: {
        static const uint8_t two[PIECES] = {[MONTH_2] = 1,  [DATE_2] = 1,   [HOUR12_2] = 1,
                                            [MINUTE_2] = 1, [SECOND_2] = 1, [HOUR_2] = 1};
        int v = p == MONTH_2 || p == MONTH_1     ? t->tm_mon + 1
                : p == DATE_2 || p == DATE_1     ? t->tm_mday
                : p == HOUR12_2 || p == HOUR12_1 ? twelve_hours(t)
                : p == MINUTE_2 || p == MINUTE_1 ? t->tm_min
                : p == SECOND_2 || p == SECOND_1 ? t->tm_sec
                                                 : t->tm_hour;
        text_printf(r, out, two[p] ? "%02d" : "%d", v);
    }
    }
}

/* ".000" or ".999" behind the seconds: its length, 0 if there is none. */
static size_t
put_fraction(struct run *r, struct text *out, struct gv s, int64_t nanos)
{
    char digits[16];
    size_t n = 1;
    if (s.n < 2 || (s.s[0] != '.' && s.s[0] != ',') || (s.s[1] != '0' && s.s[1] != '9'))
        return 0;
    while (n < s.n && s.s[n] == s.s[1])
        n++;
    if (n < s.n && s.s[n] >= '0' && s.s[n] <= '9')
        return 0;
    size_t keep = n - 1;
    struct text t = {NULL, 0, 0};
    text_printf(r, &t, "%09lld", (long long)nanos);
    memcpy(digits, t.s, 9);
    size_t have = keep < 9 ? keep : 9;
    while (s.s[1] == '9' && have > 0 && digits[have - 1] == '0')
        have--;
    if (have == 0)
        return n;
    text_putc(r, out, s.s[0]);
    text_put(r, out, digits, have);
    text_fill(r, out, '0', s.s[1] == '0' ? keep - have : 0);
    return n;
}

struct gv
gotime_format(struct run *r, int64_t ns, struct gv layout)
{
    int64_t nanos = ns % 1000000000;
    time_t seconds = ns / 1000000000;
    struct tm t;
    struct text out = {NULL, 0, 0};
    if (nanos < 0) {
        nanos += 1000000000;
        seconds--;
    }
    gmtime_r(&seconds, &t);
    for (size_t i = 0; i < layout.n;) {
        struct gv rest = GV_TEXT(layout.s + i, layout.n - i);
        size_t len = put_fraction(r, &out, rest, nanos);
        if (len == 0) {
            enum piece p = find_piece(rest, &len);
            if (p == PIECES) {
                text_putc(r, &out, *rest.s);
                len = 1;
            } else
                put_piece(r, &out, p, &t);
        }
        i += len;
    }
    return text_gv(&out);
}

/* --- dependency.nanoTime --- */

static struct gv
nanos_string(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return gotime_format(r, a[0].i, GV_LIT("2006-01-02 15:04:05.999999999 -0700 MST"));
}

static struct gv
nanos_format(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return gotime_format(r, a[0].i, a[1]);
}

static struct gv
nanos_unix(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_LONG(a[0].i / 1000000000);
}

static struct gv nanos_time(struct run *r, struct gv *a, size_t n);

static const struct gv_method time_methods[] = {
    {"String", nanos_string, "", &gv_string},
    {"Format", nanos_format, "s", &gv_string},
    {"Unix", nanos_unix, "", &gv_int64},
};
static const struct gv_class time_class = {NULL, time_methods, ARRAY_LEN(time_methods), true};
static const struct gv_type time_type = {GV_INT, 64, "time.Time", NULL, NULL, &time_class, false};

static struct gv
nanos_time(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return (struct gv){.t = &time_type, .i = a[0].i};
}

static const struct gv_method nanos_methods[] = {
    {"String", nanos_string, "", &gv_string},
    {"Time", nanos_time, "", &gv_int64},
};
static const struct gv_class nanos_class = {NULL, nanos_methods, ARRAY_LEN(nanos_methods), true};
const struct gv_type gotime_nanos = {GV_INT,       64,   "dependency.nanoTime", NULL, NULL,
                                     &nanos_class, false};
