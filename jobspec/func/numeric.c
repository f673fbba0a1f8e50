/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobspec/func/func.h"

static struct value *
number(struct call *c, double f)
{
    if (!isfinite(f))
        return arg_error(c, 0, "the result is out of range");
    return ev_number(c->ev, f);
}

static struct value *
fn_abs(struct call *c)
{
    double f = arg_num(c, 0);
    int64_t i;
    if (value_integer(c->args[0], &i) && i != INT64_MIN)
        return ret_int(c, i < 0 ? -i : i);
    return number(c, fabs(f));
}

static struct value *
fn_ceil(struct call *c)
{
    return number(c, ceil(arg_num(c, 0)));
}

static struct value *
fn_floor(struct call *c)
{
    return number(c, floor(arg_num(c, 0)));
}

static struct value *
fn_log(struct call *c)
{
    double x = arg_num(c, 0), base = arg_num(c, 1);
    return number(c, log(x) / log(base));
}

static struct value *
fn_pow(struct call *c)
{
    double x = arg_num(c, 0), y = arg_num(c, 1);
    return number(c, pow(x, y));
}

static struct value *
fn_signum(struct call *c)
{
    double f = arg_num(c, 0);
    return ret_int(c, (f > 0) - (f < 0));
}

static struct value *
pick(struct call *c, bool max)
{
    size_t best = 0;
    for (size_t i = 0; i < c->n; i++) {
        double f = arg_num(c, i), b = arg_num(c, best);
        if (max ? f > b : f < b)
            best = i;
    }
    return c->args[best]->kind == VALUE_STRING ? number(c, arg_num(c, best)) : c->args[best];
}

static struct value *
fn_max(struct call *c)
{
    return pick(c, true);
}

static struct value *
fn_min(struct call *c)
{
    return pick(c, false);
}

static int
digit(char ch)
{
    if (ch >= '0' && ch <= '9')
        return ch - '0';
    if (ch >= 'a' && ch <= 'z')
        return ch - 'a' + 10;
    if (ch >= 'A' && ch <= 'Z')
        return ch - 'A' + 10;
    return 99;
}

static struct value *
fn_parseint(struct call *c)
{
    const char *s = arg_str(c, 0);
    int64_t base = arg_int(c, 1), v = 0;
    if (base < 2 || base > 36)
        return arg_error(c, 1, "the base must be between 2 and 36");
    bool neg = *s == '-';
    s += neg || *s == '+';
    if (*s == '\0')
        return arg_error(c, 0, "this is not a number");
    for (; *s != '\0'; s++) {
        int d = digit(*s);
        if (d >= base)
            return arg_error(c, 0, "\"%c\" is not a digit of base %lld", *s, (long long)base);
        if (__builtin_mul_overflow(v, base, &v) || __builtin_sub_overflow(v, d, &v))
            return arg_error(c, 0, "the number does not fit 64 bits");
    }
    if (!neg && v == INT64_MIN)
        return arg_error(c, 0, "the number does not fit 64 bits");
    return ret_int(c, neg ? v : -v);
}

const struct func func_numeric[] = {
    {"abs", 1, 1, fn_abs, false},           {"ceil", 1, 1, fn_ceil, false},
    {"floor", 1, 1, fn_floor, false},       {"log", 2, 2, fn_log, false},
    {"max", 1, -1, fn_max, false},          {"min", 1, -1, fn_min, false},
    {"parseint", 2, 2, fn_parseint, false}, {"pow", 2, 2, fn_pow, false},
    {"signum", 1, 1, fn_signum, false},     {NULL, 0, 0, NULL, false}};
