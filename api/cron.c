/* SPDX-License-Identifier: Apache-2.0
 *
 * Cron expressions of periodic jobs: cron.h has the grammar. A parsed expression is a bit for each
 * value that matches, so that the next time is a search for bits.
 *
 * In this order: fields, days with their specials (L, W, #), whole expressions; which days of a
 * month match; the next time on the wall, then in UTC by the zone; and the block of the job, which
 * may have several expressions.
 */
#include "api/cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "api/limits.h"
#include "common/host/zone.h"
#include "common/mem.h"
#include "common/str.h"

enum { CRON_YEAR_MIN = 1970, CRON_YEAR_MAX = 2099, DAY_S = 86400, WEEK = 7 };

struct cron { /* a bit for each value that matches */
    uint64_t second, minute, hour, month;
    uint64_t dom, workday; /* days of the month, and those whose nearest working day is meant */
    uint64_t dow, nth,
        last; /* days of the week; 7 * (n - 1) + day: the nth of the month; its last one */
    bool last_day, last_workday;
    bool any_dom, any_dow;
    uint64_t year[3]; /* from CRON_YEAR_MIN on */
};

/* --- fields --- */

static const char *const months[] = {"january",   "february", "march",    "april",
                                     "may",       "june",     "july",     "august",
                                     "september", "october",  "november", "december"};
static const char *const days[] = {"sunday",   "monday", "tuesday", "wednesday",
                                   "thursday", "friday", "saturday"};

struct cron_field {
    const char *name;
    int min, max;
    const char *const *names; /* of min and on */
};

static const struct cron_field second_field = {"second", 0, 59, NULL};
static const struct cron_field minute_field = {"minute", 0, 59, NULL};
static const struct cron_field hour_field = {"hour", 0, 23, NULL};
static const struct cron_field dom_field = {"day-of-month", 1, 31, NULL};
static const struct cron_field month_field = {"month", 1, 12, months};
static const struct cron_field dow_field = {"day-of-week", 0, 6, days};
static const struct cron_field year_field = {"year", CRON_YEAR_MIN, CRON_YEAR_MAX, NULL};

/* One of a list: values, or what only its field understands. */
struct entry {
    enum { ENTRY_OTHER, ENTRY_ONE, ENTRY_SPAN, ENTRY_ALL } kind;
    int first, last, step;
};

/* In full, or its first three letters. */
static bool
take_name(const struct cron_field *f, const char **s, int *ret)
{
    size_t n = 0;
    while (isalpha((unsigned char)(*s)[n]))
        n++;
    for (int i = 0; f->names != NULL && i <= f->max - f->min; i++) {
        size_t full = strlen(f->names[i]);
        /* an L may follow: "friL" */
        for (size_t k = full; k >= 3; k = k == full && full > 3 ? 3 : 0)
            if (n >= k && strncasecmp(*s, f->names[i], k) == 0 &&
                (n == k || (n == k + 1 && tolower((unsigned char)(*s)[k]) == 'l'))) {
                *s += k;
                *ret = f->min + i;
                return true;
            }
    }
    return false;
}

static bool
take_value(const struct cron_field *f, const char **s, int *ret)
{
    const char *p = *s;
    int v = 0;
    while (isdigit((unsigned char)*p) && p - *s < 4)
        v = v * 10 + (*p++ - '0');
    size_t n = (size_t)(p - *s);
    if (n == 0)
        return take_name(f, s, ret);
    bool week = f == &dow_field; /* 7 is Sunday, too */
    if (isdigit((unsigned char)*p) || (f == &year_field ? n != 4 : n > 2) || v < f->min ||
        v > (week ? WEEK : f->max))
        return false;
    *s = p;
    *ret = week ? v % WEEK : v;
    return true;
}

/* "/5" to the end; *ret 0: no such step. */
static bool
take_step(const struct cron_field *f, const char *s, int *ret)
{
    int v = 0;
    if (*s++ != '/' || !isdigit((unsigned char)*s))
        return false;
    size_t n = strspn(s, "0123456789");
    if (s[n] != '\0')
        return false;
    for (size_t i = 0; i < n && n <= 4; i++)
        v = v * 10 + (s[i] - '0');
    bool known = (n <= 2 && v <= 59) || (n == 4 && v >= CRON_YEAR_MIN && v <= CRON_YEAR_MAX);
    *ret = known && v <= f->max ? v : 0;
    return true;
}

static int
parse_entry(const struct cron_field *f, const char *s, struct entry *ret, struct err *e)
{
    const char *p = s;
    *ret = (struct entry){.first = f->min, .last = f->max, .step = 1};
    if (str_eq(s, "*") || str_eq(s, "?")) {
        ret->kind = ENTRY_ALL;
        return 0;
    }
    if (*p == '*') {
        p++;
    } else {
        if (!take_value(f, &p, &ret->first))
            return 0;
        if (*p == '\0') {
            ret->kind = ENTRY_ONE;
            ret->last = ret->first;
            return 0;
        }
        if (*p == '-') {
            p++;
            if (!take_value(f, &p, &ret->last))
                return 0;
            if (*p == '\0')
                ret->kind = ENTRY_SPAN;
        }
    }
    if (ret->kind == ENTRY_OTHER && take_step(f, p, &ret->step)) {
        if (ret->step == 0)
            return err_set(e, -ERR_INVALID, "invalid interval %.64s", s);
        ret->kind = ENTRY_SPAN;
    }
    if (ret->kind == ENTRY_SPAN && f == &dow_field && ret->last == 0)
        ret->last = 6; /* as Nomad: "fri-sun" is friday and saturday */
    return 0;
}

static void
set_bits(uint64_t *bits, const struct cron_field *f, const struct entry *x)
{
    int base = f == &year_field ? CRON_YEAR_MIN : 0;
    for (int v = x->first; v <= x->last; v += x->step)
        bits[(v - base) / 64] |= UINT64_C(1) << ((v - base) % 64);
}

/* --- what only days have --- */

static bool
dom_special(struct cron *c, const char *s)
{
    int v;
    if (strcasecmp(s, "l") == 0) {
        c->last_day = true;
    } else if (strcasecmp(s, "lw") == 0) {
        c->last_workday = true;
    } else {
        if (!take_value(&dom_field, &s, &v) || strcasecmp(s, "w") != 0)
            return false;
        c->workday |= UINT64_C(1) << v;
    }
    return true;
}

static bool
dow_special(struct cron *c, const char *s)
{
    int v;
    if (!take_value(&dow_field, &s, &v))
        return false;
    if (strcasecmp(s, "l") == 0)
        c->last |= UINT64_C(1) << v;
    else if (s[0] == '#' && s[1] >= '1' && s[1] <= '5' && s[2] == '\0')
        c->nth |= UINT64_C(1) << ((s[1] - '1') * WEEK + v);
    else
        return false;
    return true;
}

static int
parse_field(struct cron *c, const struct cron_field *f, uint64_t *bits, char *s, struct err *e)
{
    const bool day = f == &dom_field || f == &dow_field;
    bool any = false, all = false;
    char *save = NULL;
    for (char *p = strtok_r(s, ",", &save); p != NULL; p = strtok_r(NULL, ",", &save)) {
        struct entry x;
        if (parse_entry(f, p, &x, e) < 0)
            return e->code;
        any = true;
        all |= x.kind == ENTRY_ALL;
        if (x.kind != ENTRY_OTHER)
            set_bits(bits, f, &x);
        else if (!(f == &dom_field && dom_special(c, p)) &&
                 !(f == &dow_field && dow_special(c, p)) &&
                 (day || !all)) /* behind a "*" nothing else matters */
            return err_set(e, -ERR_INVALID, "syntax error in %s field: '%.64s'", f->name, p);
    }
    if (!any)
        return err_set(e, -ERR_INVALID, "%s field: missing directive", f->name);
    if (f == &dom_field)
        c->any_dom = all;
    else if (f == &dow_field)
        c->any_dow = all;
    if (!day && f != &year_field && bits[0] == 0)
        return err_set(e, -ERR_INVALID,
                       "nothing matches the %s field: a range begins behind its end", f->name);
    return 0;
}

/* --- expressions --- */

enum { FIELDS_MIN = 5, FIELDS_MAX = 7 };

static const struct {
    const char *word, *fields;
} words[] = {
    {"@yearly", "0 0 0 1 1 * *"}, {"@annually", "0 0 0 1 1 * *"}, {"@monthly", "0 0 0 1 * * *"},
    {"@weekly", "0 0 0 * * 0 *"}, {"@daily", "0 0 0 * * * *"},    {"@hourly", "0 0 * * * * *"},
};

/* Words stand for fields wherever they are. */
static char *
cron_expand(const void *ctx, const char *text)
{
    char *out = mem_strdup(ctx, "");
    for (const char *p = text; *p != '\0';) {
        size_t i = 0;
        while (i < ARRAY_LEN(words) && !str_prefix(p, words[i].word))
            i++;
        if (i < ARRAY_LEN(words)) {
            out = mem_printf(ctx, "%s%s", out, words[i].fields);
            p += strlen(words[i].word);
        } else {
            size_t n = strcspn(p + 1, "@") + 1;
            out = mem_printf(ctx, "%s%.*s", out, (int)n, p);
            p += n;
        }
    }
    return out;
}

static int
cron_parse(const char *text, struct cron *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("cron");
    char *v[FIELDS_MAX], *save = NULL;
    size_t n = 0;

    if (strlen(text) > JOB_CRON_MAX)
        return err_set(e, -ERR_LIMIT, "longer than %d bytes", JOB_CRON_MAX);
    for (char *p = strtok_r(cron_expand(tmp, text), " \t\n\v\f\r", &save);
         p != NULL && n < FIELDS_MAX; p = strtok_r(NULL, " \t\n\v\f\r", &save))
        v[n++] = p;
    if (n < FIELDS_MIN)
        return err_set(e, -ERR_INVALID, "missing field(s)");
    *ret = (struct cron){.second = 1};
    size_t at = n == FIELDS_MAX ? 1 : 0;
    if (at == 1) {
        ret->second = 0;
        if (parse_field(ret, &second_field, &ret->second, v[0], e) < 0)
            return e->code;
    }
    if (parse_field(ret, &minute_field, &ret->minute, v[at], e) < 0 ||
        parse_field(ret, &hour_field, &ret->hour, v[at + 1], e) < 0 ||
        parse_field(ret, &dom_field, &ret->dom, v[at + 2], e) < 0 ||
        parse_field(ret, &month_field, &ret->month, v[at + 3], e) < 0 ||
        parse_field(ret, &dow_field, &ret->dow, v[at + 4], e) < 0)
        return e->code;
    if (n > FIELDS_MIN)
        return parse_field(ret, &year_field, ret->year, v[at + 5], e);
    memset(ret->year, 0xff, sizeof(ret->year));
    return 0;
}

/* --- days --- */

static int
month_days(int year, int month)
{
    static const int n[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return n[month - 1] + (month == 2 && leap);
}

static int64_t
day_start(int year, int month, int day)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return timegm(&tm);
}

/* The working day nearest to it, within the month. */
static int
nearest_workday(int day, int wday, int n)
{
    if (wday == 6)
        return day > 1 ? day - 1 : day + 2;
    if (wday == 0)
        return day < n ? day + 1 : day - 2;
    return day;
}

/* A bit for each day of the month. */
static uint64_t
days_of(const struct cron *c, int year, int month)
{
    const int n = month_days(year, month);
    /* 1970 began on a Thursday */
    const int wday1 = (int)((day_start(year, month, 1) / DAY_S + 4) % WEEK);
    uint64_t r = 0;
    for (int d = 1; d <= n; d++) {
        const uint64_t bit = UINT64_C(1) << d;
        const int wday = (wday1 + d - 1) % WEEK;
        bool dom = !c->any_dom && ((c->dom & bit) != 0 || (c->last_day && d == n));
        bool dow = !c->any_dow && ((c->dow >> wday & 1) != 0 ||
                                   (c->nth >> ((d - 1) / WEEK * WEEK + wday) & 1) != 0 ||
                                   ((c->last >> wday & 1) != 0 && d + WEEK > n));
        if (dom || dow || (c->any_dom && c->any_dow))
            r |= bit;
        if (!c->any_dom && ((c->workday & bit) != 0 || (c->last_workday && d == n)))
            r |= UINT64_C(1) << nearest_workday(d, wday, n);
    }
    return r;
}

/* --- the next time --- */

static int
next_bit(uint64_t bits, int from)
{
    bits = from < 64 ? bits >> from << from : 0;
    return bits != 0 ? __builtin_ctzll(bits) : -1;
}

/* Returns the first second of a day at or after `from` that fits; -1: none. */
static int64_t
time_of_day(const struct cron *c, int64_t from)
{
    int h = (int)(from / 3600), m = (int)(from / 60 % 60), s = (int)(from % 60);
    for (;;) {
        int hour = next_bit(c->hour, h);
        if (hour < 0)
            return -1;
        if (hour != h)
            m = s = 0;
        h = hour;
        int minute = next_bit(c->minute, m);
        if (minute >= 0) {
            int second = next_bit(c->second, minute != m ? 0 : s);
            if (second >= 0)
                return h * INT64_C(3600) + minute * 60 + second;
            minute = next_bit(c->minute, minute + 1);
            if (minute >= 0)
                return h * INT64_C(3600) + minute * 60 + next_bit(c->second, 0);
        }
        h++;
        m = s = 0;
    }
}

/* The first time on the wall from `local` on, as seconds since 1970 there. */
static int64_t
next_local(const struct cron *c, int64_t local)
{
    time_t t = local > 0 ? local : 0;
    struct tm tm;
    if (gmtime_r(&t, &tm) == NULL || tm.tm_year + 1900 > CRON_YEAR_MAX)
        return CRON_NEVER;
    int month = tm.tm_mon + 1, day = tm.tm_mday;
    int64_t from = t % DAY_S;
    for (int y = tm.tm_year + 1900; y <= CRON_YEAR_MAX; y++, month = 1) {
        bool year = c->year[(y - CRON_YEAR_MIN) / 64] >> ((y - CRON_YEAR_MIN) % 64) & 1;
        for (; month <= 12; month++, day = 1, from = 0) {
            uint64_t bits = year && (c->month >> month & 1) != 0 ? days_of(c, y, month) : 0;
            for (int d = next_bit(bits, day); d > 0; d = next_bit(bits, d + 1)) {
                int64_t at = time_of_day(c, d == day ? from : 0);
                if (at >= 0)
                    return day_start(y, month, d) + at;
            }
        }
    }
    return CRON_NEVER;
}

static int64_t
cron_next(const struct cron *c, const struct zone *z, int64_t after_s)
{
    int64_t t = after_s < 0 ? 0 : after_s + 1, until;
    /* Between two changes of the clocks the time on the wall goes with ours. */
    for (;; t = until) {
        int64_t off = zone_at(z, t, &until);
        int64_t local = next_local(c, t + off);
        if (local != CRON_NEVER && local - off < until)
            return local - off;
        if (local == CRON_NEVER || until == INT64_MAX)
            return CRON_NEVER;
    }
}

/* --- the block --- */

static size_t
specs_n(const struct periodic_config *p)
{
    return str_empty(p->spec) ? p->specs.n : 1;
}

static const char *
cron_spec(const struct periodic_config *p, size_t i)
{
    return str_empty(p->spec) ? str_or(p->specs.v[i], "") : p->spec;
}

int
cron_set_parse(const void *ctx, const struct periodic_config *p, const struct zone *z,
               struct cron_set *ret, struct err *e)
{
    size_t n = specs_n(p);
    if (n > JOB_CRONS_MAX)
        return err_set(e, -ERR_LIMIT, "more than %d cron expressions", JOB_CRONS_MAX);
    *ret = (struct cron_set){.n = n, .v = mem_array(ctx, struct cron, n), .zone = z};
    for (size_t i = 0; i < n; i++)
        if (cron_parse(cron_spec(p, i), &ret->v[i], e) < 0)
            return e->code;
    return 0;
}

int64_t
cron_set_next(const struct cron_set *s, int64_t after_s)
{
    int64_t min = CRON_NEVER;
    for (size_t i = 0; i < s->n; i++) {
        int64_t at = cron_next(&s->v[i], s->zone, after_s);
        min = at < min ? at : min;
    }
    return min;
}

int64_t
cron_set_last(const struct cron_set *s, int64_t after_s, int64_t until_s)
{
    /* behind lo there is one up to until_s, behind hi there is none */
    int64_t lo = after_s, hi = until_s;
    if (lo >= hi || cron_set_next(s, lo) > until_s)
        return CRON_NEVER;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (cron_set_next(s, mid) <= until_s)
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}

void
cron_validate(const void *ctx, const struct periodic_config *p, struct str_list *errors)
{
    struct cron c;
    if (!str_empty(p->spec) && p->specs.n > 0)
        list_add(ctx, *errors, mem_strdup(ctx, "Only cron or crons may be used"));
    if (specs_n(p) == 0)
        list_add(ctx, *errors, mem_strdup(ctx, "Must specify a spec"));
    if (specs_n(p) > JOB_CRONS_MAX)
        list_add(ctx, *errors, mem_printf(ctx, "more than %d cron expressions", JOB_CRONS_MAX));
    if (!str_eq(p->spec_type, "cron")) {
        list_add(ctx, *errors,
                 mem_printf(ctx, "Unknown periodic specification type \"%.64s\"",
                            str_or(p->spec_type, "")));
        return;
    }
    for (size_t i = 0; i < specs_n(p) && i < JOB_CRONS_MAX; i++) {
        struct err e = ERR_INIT;
        if (cron_parse(cron_spec(p, i), &c, &e) < 0)
            list_add(ctx, *errors,
                     mem_printf(ctx, "Invalid cron spec \"%.128s\": %s", cron_spec(p, i), e.text));
    }
}
