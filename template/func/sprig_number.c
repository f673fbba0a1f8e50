/* SPDX-License-Identifier: Apache-2.0
 *
 * Sprig's functions of numbers, of defaults and types, and of JSON. Anything is taken as a number:
 * what is none is 0. Fractions are added in decimal, so that 0.1 and 0.2 are 0.3.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "template/fmt.h"
#include "template/func/cast.h"
#include "template/func/json.h"
#include "template/func/strs.h"
#include "template/funcs.h"
#include "template/limits.h"
#include "template/strconv.h"

/* --- whole numbers --- */

static struct gv
fn_add(struct run *r, struct gv *a, size_t n)
{
    uint64_t v = 0;
    (void)r;
    for (size_t i = 0; i < n; i++)
        v += (uint64_t)cast_int(a[i]);
    return GV_LONG(v);
}

static struct gv
fn_add1(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_LONG((uint64_t)cast_int(a[0]) + 1);
}

static struct gv
fn_sub(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_LONG((uint64_t)cast_int(a[0]) - (uint64_t)cast_int(a[1]));
}

static struct gv
fn_mul(struct run *r, struct gv *a, size_t n)
{
    uint64_t v = (uint64_t)cast_int(a[0]);
    (void)r;
    for (size_t i = 1; i < n; i++)
        v *= (uint64_t)cast_int(a[i]);
    return GV_LONG(v);
}

static struct gv
divide_ints(struct run *r, struct gv *a, bool rest)
{
    int64_t x = cast_int(a[0]), y = cast_int(a[1]);
    if (y == 0)
        run_fail(r, "runtime error: integer divide by zero");
    if (y == -1)
        return GV_LONG(rest ? 0 : 0 - (uint64_t)x);
    return GV_LONG(rest ? x % y : x / y);
}

static struct gv
fn_div(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return divide_ints(r, a, false);
}

static struct gv
fn_mod(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return divide_ints(r, a, true);
}

static struct gv
fn_max(struct run *r, struct gv *a, size_t n)
{
    int64_t v = cast_int(a[0]);
    (void)r;
    for (size_t i = 1; i < n; i++)
        v = cast_int(a[i]) > v ? cast_int(a[i]) : v;
    return GV_LONG(v);
}

static struct gv
fn_min(struct run *r, struct gv *a, size_t n)
{
    int64_t v = cast_int(a[0]);
    (void)r;
    for (size_t i = 1; i < n; i++)
        v = cast_int(a[i]) < v ? cast_int(a[i]) : v;
    return GV_LONG(v);
}

/* --- fractions --- */

/* The number that the shortest digits of f say, with more digits than a double has. */
static long double
exact_decimal(struct run *r, struct gv v)
{
    struct text t = {NULL, 0, 0};
    double f = cast_float(v);
    if (isnan(f) || isinf(f))
        run_fail(r, "Cannot create a Decimal from %s", isnan(f) ? "NaN" : f > 0 ? "+Inf" : "-Inf");
    strconv_put(r, &t, f, 'e', -1);
    return strtold(text_str(r, &t), NULL);
}

enum op { ADD, SUB, MUL, DIV };

static struct gv
do_decimal(struct run *r, enum op op, long double v, const struct gv *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        long double x = exact_decimal(r, a[i]);
        if (op == DIV) {
            char digits[512];
            if (x == 0)
                run_fail(r, "decimal division by 0");
            snprintf(digits, sizeof(digits), "%.16Lf", v / x);
            v = strtold(digits, NULL);
        } else
            v = op == ADD ? v + x : op == SUB ? v - x : v * x;
    }
    double f = (double)v;
    return GV_REAL(f == 0 ? 0 : f);
}

static struct gv
fn_addf(struct run *r, struct gv *a, size_t n)
{
    return do_decimal(r, ADD, 0, a, n);
}

static struct gv
fn_add1f(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return do_decimal(r, ADD, exact_decimal(r, a[0]), &GV_REAL(1), 1);
}

static struct gv
fn_subf(struct run *r, struct gv *a, size_t n)
{
    return do_decimal(r, SUB, exact_decimal(r, a[0]), a + 1, n - 1);
}

static struct gv
fn_mulf(struct run *r, struct gv *a, size_t n)
{
    return do_decimal(r, MUL, exact_decimal(r, a[0]), a + 1, n - 1);
}

static struct gv
fn_divf(struct run *r, struct gv *a, size_t n)
{
    return do_decimal(r, DIV, exact_decimal(r, a[0]), a + 1, n - 1);
}

static struct gv
fn_maxf(struct run *r, struct gv *a, size_t n)
{
    double v = cast_float(a[0]);
    (void)r;
    for (size_t i = 1; i < n; i++) {
        double x = cast_float(a[i]);
        v = isnan(v) || isnan(x) ? NAN : x > v ? x : v;
    }
    return GV_REAL(v);
}

static struct gv
fn_minf(struct run *r, struct gv *a, size_t n)
{
    double v = cast_float(a[0]);
    (void)r;
    for (size_t i = 1; i < n; i++) {
        double x = cast_float(a[i]);
        v = isnan(v) || isnan(x) ? NAN : x < v ? x : v;
    }
    return GV_REAL(v);
}

static struct gv
fn_floor(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_REAL(floor(cast_float(a[0])));
}

static struct gv
fn_ceil(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_REAL(ceil(cast_float(a[0])));
}

static struct gv
fn_round(struct run *r, struct gv *a, size_t n)
{
    double on = n > 2 ? a[2].f : .5, power = pow(10, (double)a[1].i), whole;
    double digit = power * cast_float(a[0]), rest = modf(digit, &whole);
    (void)r;
    return GV_REAL((rest >= on ? ceil(digit) : floor(digit)) / power);
}

/* --- from one to the other --- */

static struct gv
fn_int(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_INTEGER(cast_int(a[0]));
}

static struct gv
fn_int64(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_LONG(cast_int(a[0]));
}

static struct gv
fn_float64(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_REAL(cast_float(a[0]));
}

static struct gv
fn_atoi(struct run *r, struct gv *a, size_t n)
{
    int64_t v = 0;
    (void)r, (void)n;
    strconv_int(a[0].s, a[0].n, 10, &v);
    return GV_INTEGER(v);
}

static struct gv
fn_to_decimal(struct run *r, struct gv *a, size_t n)
{
    struct gv s = cast_text(r, a[0]);
    int64_t v = 0;
    (void)n;
    return GV_LONG(strconv_int(s.s, s.n, 8, &v) == STRCONV_OK ? v : 0);
}

static struct gv
make_steps(struct run *r, int64_t from, int64_t to, int64_t step)
{
    struct gv list = gv_list_new(r, &gv_ints, 0);
    if (to < from ? step >= 0 : step <= 0)
        return list;
    for (int64_t i = from; to < from ? i > to : i < to;) {
        run_step(r, 1);
        gv_list_add(r, list.list, GV_INTEGER(i));
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return list;
}

static struct gv
fn_until(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return make_steps(r, 0, a[0].i, a[0].i < 0 ? -1 : 1);
}

static struct gv
fn_until_step(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return make_steps(r, a[0].i, a[1].i, a[2].i);
}

static struct gv
fn_seq(struct run *r, struct gv *a, size_t n)
{
    struct text t = {NULL, 0, 0};
    if (n == 0 || n > 3)
        return GV_LIT("");
    int64_t from = n == 1 ? 1 : a[0].i, to = a[n - 1].i, sign = to < from ? -1 : 1;
    int64_t step = n == 3 ? a[1].i : sign;
    if (n == 3 && to < from && step > 0)
        return GV_LIT("");
    struct gv list = make_steps(r, from, (int64_t)((uint64_t)to + (uint64_t)sign), step);
    for (size_t i = 0; i < gv_len(list); i++)
        text_printf(r, &t, i ? " %lld" : "%lld", (long long)list.list->v[i].i);
    return text_gv(&t);
}

/* --- defaults and types --- */

static struct gv
any_of(struct gv v)
{
    return gv_box(gv_none(v) ? GV_NULL : v, &gv_any);
}

static struct gv
fn_default(struct run *r, struct gv *a, size_t n)
{
    (void)r;
    return any_of(n < 2 || cast_empty(a[1]) ? a[0] : a[1]);
}

static struct gv
fn_empty(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(cast_empty(a[0]));
}

static struct gv
fn_coalesce(struct run *r, struct gv *a, size_t n)
{
    (void)r;
    for (size_t i = 0; i < n; i++)
        if (!cast_empty(a[i]))
            return any_of(a[i]);
    return GV_NULL;
}

static struct gv
fn_all(struct run *r, struct gv *a, size_t n)
{
    bool all = true;
    (void)r;
    for (size_t i = 0; i < n; i++)
        all = all && !cast_empty(a[i]);
    return GV_TRUE(all);
}

static struct gv
fn_any(struct run *r, struct gv *a, size_t n)
{
    bool any = false;
    (void)r;
    for (size_t i = 0; i < n; i++)
        any = any || !cast_empty(a[i]);
    return GV_TRUE(any);
}

static struct gv
fn_ternary(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return any_of(a[2].b ? a[0] : a[1]);
}

static struct gv
type_text(struct gv v)
{
    const char *s = gv_none(v) ? "<nil>" : gv_type_name(v);
    return GV_TEXT(s, strlen(s));
}

static struct gv
fn_type_of(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return type_text(a[0]);
}

static struct gv
fn_type_is(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)n;
    return GV_TRUE(gv_key_compare(a[0], type_text(a[1])) == 0);
}

static struct gv
fn_type_is_like(struct run *r, struct gv *a, size_t n)
{
    struct gv t = type_text(a[1]), bare = t.n && *t.s == '*' ? GV_TEXT(t.s + 1, t.n - 1) : t;
    (void)r, (void)n;
    return GV_TRUE(gv_key_compare(a[0], t) == 0 || gv_key_compare(a[0], bare) == 0);
}

static struct gv
fn_kind_of(struct run *r, struct gv *a, size_t n)
{
    const char *s = cast_kind(a[0]);
    (void)r, (void)n;
    return GV_TEXT(s, strlen(s));
}

static struct gv
fn_kind_is(struct run *r, struct gv *a, size_t n)
{
    return GV_TRUE(gv_key_compare(a[0], fn_kind_of(r, a + 1, n)) == 0);
}

static struct gv
fn_fail(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    run_fail(r, "%s", run_dup(r, a[0].s, a[0].n));
}

static struct gv
fn_hello(struct run *r, struct gv *a, size_t n)
{
    (void)r, (void)a, (void)n;
    return GV_LIT("Hello!");
}

/* --- durations --- */

static struct gv
fn_duration(struct run *r, struct gv *a, size_t n)
{
    char text[DURATION_TEXT];
    int64_t s = 0;
    (void)n;
    if (gv_kind(a[0]) == GV_STRING)
        strconv_int(a[0].s, a[0].n, 10, &s);
    else if (a[0].t == &gv_int64)
        s = a[0].i;
    const char *p = duration_format((int64_t)((uint64_t)s * 1000000000), text);
    return text_copy(r, p, strlen(p));
}

static struct gv
fn_duration_round(struct run *r, struct gv *a, size_t n)
{
    static const struct {
        uint64_t seconds;
        const char *unit;
    } units[] = {{31536000, "y"}, {2592000, "mo"}, {86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    struct text t = {NULL, 0, 0};
    int64_t ns = 0;
    (void)n;
    if (gv_kind(a[0]) == GV_STRING)
        duration_parse(run_dup(r, a[0].s, a[0].n), &ns);
    else if (a[0].t == &gv_int64)
        ns = a[0].i;
    uint64_t u = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        uint64_t unit = units[i].seconds * 1000000000;
        if (u > unit) {
            text_printf(r, &t, "%llu%s", (unsigned long long)(u / unit), units[i].unit);
            return text_gv(&t);
        }
    }
    return GV_LIT("0s");
}

/* --- JSON --- */

static struct gv
fn_from_json(struct run *r, struct gv *a, size_t n)
{
    struct gv v;
    (void)n;
    return json_text_read(r, a[0], &v) ? GV_NULL : any_of(v);
}

static struct gv
fn_must_from_json(struct run *r, struct gv *a, size_t n)
{
    struct gv v;
    (void)n;
    const char *bad = json_text_read(r, a[0], &v);
    if (bad)
        run_fail(r, "%s", bad);
    return any_of(v);
}

static struct gv
write_json(struct run *r, struct gv v, struct json_style style, bool must)
{
    struct text t = {NULL, 0, 0};
    const char *bad = json_text_write(r, &t, v, &style);
    if (bad && must)
        run_fail(r, "%s", bad);
    return bad ? GV_LIT("") : text_gv(&t);
}

static struct gv
fn_to_json(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], (struct json_style){true, NULL}, false);
}

static struct gv
fn_must_to_json(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], (struct json_style){true, NULL}, true);
}

static struct gv
fn_to_pretty_json(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], (struct json_style){true, "  "}, false);
}

static struct gv
fn_must_to_pretty_json(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], (struct json_style){true, "  "}, true);
}

static struct gv
fn_to_raw_json(struct run *r, struct gv *a, size_t n)
{
    (void)n;
    return write_json(r, a[0], (struct json_style){false, NULL}, true);
}

const struct function functions_sprig_numbers[] = {
    {"sprig_add", fn_add, "a.", FUNCTION_PLAIN},
    {"sprig_add1", fn_add1, "a", FUNCTION_PLAIN},
    {"sprig_sub", fn_sub, "aa", FUNCTION_PLAIN},
    {"sprig_mul", fn_mul, "aa.", FUNCTION_PLAIN},
    {"sprig_div", fn_div, "aa", FUNCTION_PLAIN},
    {"sprig_mod", fn_mod, "aa", FUNCTION_PLAIN},
    {"sprig_max", fn_max, "aa.", FUNCTION_PLAIN},
    {"sprig_biggest", fn_max, "aa.", FUNCTION_PLAIN},
    {"sprig_min", fn_min, "aa.", FUNCTION_PLAIN},
    {"sprig_addf", fn_addf, "a.", FUNCTION_PLAIN},
    {"sprig_add1f", fn_add1f, "a", FUNCTION_PLAIN},
    {"sprig_subf", fn_subf, "aa.", FUNCTION_PLAIN},
    {"sprig_mulf", fn_mulf, "aa.", FUNCTION_PLAIN},
    {"sprig_divf", fn_divf, "aa.", FUNCTION_PLAIN},
    {"sprig_maxf", fn_maxf, "aa.", FUNCTION_PLAIN},
    {"sprig_minf", fn_minf, "aa.", FUNCTION_PLAIN},
    {"sprig_floor", fn_floor, "a", FUNCTION_PLAIN},
    {"sprig_ceil", fn_ceil, "a", FUNCTION_PLAIN},
    {"sprig_round", fn_round, "aif.", FUNCTION_PLAIN},
    {"sprig_int", fn_int, "a", FUNCTION_PLAIN},
    {"sprig_int64", fn_int64, "a", FUNCTION_PLAIN},
    {"sprig_float64", fn_float64, "a", FUNCTION_PLAIN},
    {"sprig_atoi", fn_atoi, "s", FUNCTION_PLAIN},
    {"sprig_toDecimal", fn_to_decimal, "a", FUNCTION_PLAIN},
    {"sprig_until", fn_until, "i", FUNCTION_PLAIN},
    {"sprig_untilStep", fn_until_step, "iii", FUNCTION_PLAIN},
    {"sprig_seq", fn_seq, "i.", FUNCTION_PLAIN},
    {"sprig_default", fn_default, "aa.", FUNCTION_PLAIN},
    {"sprig_empty", fn_empty, "a", FUNCTION_PLAIN},
    {"sprig_coalesce", fn_coalesce, "a.", FUNCTION_PLAIN},
    {"sprig_all", fn_all, "a.", FUNCTION_PLAIN},
    {"sprig_any", fn_any, "a.", FUNCTION_PLAIN},
    {"sprig_ternary", fn_ternary, "aab", FUNCTION_PLAIN},
    {"sprig_typeOf", fn_type_of, "a", FUNCTION_PLAIN},
    {"sprig_typeIs", fn_type_is, "sa", FUNCTION_PLAIN},
    {"sprig_typeIsLike", fn_type_is_like, "sa", FUNCTION_PLAIN},
    {"sprig_kindOf", fn_kind_of, "a", FUNCTION_PLAIN},
    {"sprig_kindIs", fn_kind_is, "sa", FUNCTION_PLAIN},
    {"sprig_fail", fn_fail, "s", FUNCTION_PLAIN},
    {"sprig_hello", fn_hello, "", FUNCTION_PLAIN},
    {"sprig_duration", fn_duration, "a", FUNCTION_PLAIN},
    {"sprig_durationRound", fn_duration_round, "a", FUNCTION_PLAIN},
    {"sprig_fromJson", fn_from_json, "s", FUNCTION_PLAIN},
    {"sprig_mustFromJson", fn_must_from_json, "s", FUNCTION_PLAIN},
    {"sprig_toJson", fn_to_json, "a", FUNCTION_PLAIN},
    {"sprig_mustToJson", fn_must_to_json, "a", FUNCTION_PLAIN},
    {"sprig_toPrettyJson", fn_to_pretty_json, "a", FUNCTION_PLAIN},
    {"sprig_mustToPrettyJson", fn_must_to_pretty_json, "a", FUNCTION_PLAIN},
    {"sprig_toRawJson", fn_to_raw_json, "a", FUNCTION_PLAIN},
    {"sprig_mustToRawJson", fn_to_raw_json, "a", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
