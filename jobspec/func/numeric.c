/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions on numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobspec/func/func.h"

/* NULL of an argument that was a number: there is no room for the result. */
static struct value *
ret_number(struct call *c, struct value *v)
{
    if (v == NULL)
        return arg_error(c, 0, "the result is out of range");
    return call_charge(c, 1, sizeof(*v) + NUMBER_BITS / 8) ? v : NULL;
}

/* By doubles, as a Nomad. */
static struct value *
ret_double(struct call *c, double f)
{
    return ret_number(c, isfinite(f) ? number_of_double(c->ev->ctx, f) : NULL);
}

static struct value *
fn_abs(struct call *c)
{
    const struct value *v = arg_number(c, 0);
    return c->failed ? NULL : ret_number(c, number_abs(c->ev->ctx, v));
}

static struct value *
fn_ceil(struct call *c)
{
    const struct value *v = arg_number(c, 0);
    return c->failed ? NULL : ret_number(c, number_ceil(c->ev->ctx, v));
}

static struct value *
fn_floor(struct call *c)
{
    const struct value *v = arg_number(c, 0);
    return c->failed ? NULL : ret_number(c, number_floor(c->ev->ctx, v));
}

static struct value *
fn_log(struct call *c)
{
    double x = arg_num(c, 0), base = arg_num(c, 1);
    return c->failed ? NULL : ret_double(c, log(x) / log(base));
}

/* A whole exponent by squares of a fraction in [0.5, 1), so that each step rounds as in Go. */
static double
numeric_power(double x, double y)
{
    double whole, part = modf(fabs(y), &whole);
    if (part != 0 || whole > 9e15 || x == 0 || !isfinite(x))
        return pow(x, y);
    int e2 = 0;
    long e = 0;
    double r = 1, f = frexp(x, &e2);
    long step = e2;
    for (uint64_t n = (uint64_t)whole; n != 0; n >>= 1) {
        if (step < -4096 || step > 4096) /* beyond what a double is */
            return pow(x, y);
        if (n & 1) {
            r *= f;
            e += step;
        }
        f *= f;
        step *= 2;
        if (f < 0.5) {
            f += f;
            step--;
        }
    }
    if (y < 0) {
        r = 1 / r;
        e = -e;
    }
    return ldexp(r, (int)e);
}

static struct value *
fn_pow(struct call *c)
{
    double x = arg_num(c, 0), y = arg_num(c, 1);
    return c->failed ? NULL : ret_double(c, numeric_power(x, y));
}

static struct value *
fn_signum(struct call *c)
{
    int64_t i = arg_int(c, 0);
    return number_counted(c->ev->ctx, (i > 0) - (i < 0));
}

static struct value *
numeric_pick(struct call *c, int sign)
{
    const struct value *best = arg_number(c, 0);
    for (size_t i = 1; i < c->n && !c->failed; i++) {
        const struct value *v = arg_number(c, i);
        if (number_compare(v, best) == sign)
            best = v;
    }
    return c->failed ? NULL : (struct value *)(uintptr_t)best;
}

static struct value *
fn_max(struct call *c)
{
    return numeric_pick(c, 1);
}

static struct value *
fn_min(struct call *c)
{
    return numeric_pick(c, -1);
}

static struct value *
fn_parseint(struct call *c)
{
    int64_t base = arg_int(c, 1);
    if (c->args[0]->kind != VALUE_STRING)
        return arg_error(c, 0, "first argument must be a string, not %s",
                         value_kind_name(c->args[0]->kind));
    if (base < 2 || base > 62)
        return arg_error(c, 1, "base must be a whole number between 2 and 62 inclusive");
    const char *s = arg_str(c, 0);
    struct value *v = number_parse_base(c->ev->ctx, s, (int)base);
    if (v == NULL)
        return arg_error(c, 0, "cannot parse \"%.200s\" as a base %d integer", s, (int)base);
    return ret_number(c, v);
}

const struct func func_numeric[] = {
    {"abs", 1, 1, fn_abs, false},           {"ceil", 1, 1, fn_ceil, false},
    {"floor", 1, 1, fn_floor, false},       {"log", 2, 2, fn_log, false},
    {"max", 1, -1, fn_max, false},          {"min", 1, -1, fn_min, false},
    {"parseint", 2, 2, fn_parseint, false}, {"pow", 2, 2, fn_pow, false},
    {"signum", 1, 1, fn_signum, false},     {NULL, 0, 0, NULL, false}};
