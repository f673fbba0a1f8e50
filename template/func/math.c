/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic of consul-template: the second argument comes first, so that `10 | divide 2` is 5.
 */
#include "template/fmt.h"
#include "template/funcs.h"

enum op { ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, MINIMUM, MAXIMUM };

static const char *const op_names[] = {"add",    "subtract", "multiply", "divide",
                                       "modulo", "minimum",  "maximum"};

static bool
is_number(struct gv v, bool floats)
{
    enum gv_kind k = gv_kind(v);
    return k == GV_INT || k == GV_UINT || (floats && k == GV_FLOAT);
}

/* %q of a number is a character, of another thing a complaint: so it is in consul-template. */
static _Noreturn void
unknown_type(struct run *r, enum op op, struct gv v)
{
    struct text t = {NULL, 0, 0};
    if (gv_none(v))
        text_puts(r, &t, "<invalid reflect.Value>");
    else
        fmt_printf(r, &t, GV_LIT("%q"), &v, 1);
    run_fail(r, "%s: unknown type for %s (%s)", op_names[op], text_str(r, &t),
             gv_none(v) ? "<nil>" : gv_type_name(v));
}

static double
as_float(struct gv v)
{
    return gv_kind(v) == GV_FLOAT ? v.f : gv_kind(v) == GV_INT ? (double)v.i : (double)v.u;
}

static struct gv
do_floats(enum op op, double a, double b)
{
    return GV_REAL(op == ADD ? a + b : op == SUBTRACT ? a - b : op == MULTIPLY ? a * b : a / b);
}

static struct gv
do_uints(struct run *r, enum op op, uint64_t a, uint64_t b)
{
    if ((op == DIVIDE || op == MODULO) && b == 0)
        run_fail(r, "runtime error: integer divide by zero");
    uint64_t v = op == ADD        ? a + b
                 : op == SUBTRACT ? a - b
                 : op == MULTIPLY ? a * b
                 : op == DIVIDE   ? a / b
                                  : a % b;
    return (struct gv){.t = &gv_uint64, .u = v};
}

static struct gv
do_ints(struct run *r, enum op op, int64_t a, int64_t b)
{
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    if (op == ADD || op == SUBTRACT || op == MULTIPLY)
        return GV_LONG(op == ADD ? x + y : op == SUBTRACT ? x - y : x * y);
    if (b == 0)
        run_fail(r, "runtime error: integer divide by zero");
    if (b == -1)
        return GV_LONG(op == DIVIDE ? 0 - x : 0);
    return GV_LONG(op == DIVIDE ? a / b : a % b);
}

/* The smaller of both, or the larger, in its own type but 64 bits wide. */
static struct gv
choose_number(enum op op, struct gv a, struct gv b)
{
    bool less, more;
    if (gv_kind(a) == GV_FLOAT || gv_kind(b) == GV_FLOAT) {
        less = as_float(a) < as_float(b);
        more = as_float(a) > as_float(b);
    } else if (gv_kind(a) == GV_UINT && gv_kind(b) == GV_UINT) {
        less = a.u < b.u;
        more = a.u > b.u;
    } else {
        less = a.i < b.i;
        more = a.i > b.i;
    }
    struct gv v = (op == MINIMUM ? less : more) ? a : b;
    v.t = gv_kind(v) == GV_INT ? &gv_int64 : gv_kind(v) == GV_UINT ? &gv_uint64 : v.t;
    return v;
}

static struct gv
do_math(struct run *r, enum op op, const struct gv *args)
{
    struct gv a = args[1], b = args[0];
    if (!is_number(a, op != MODULO))
        unknown_type(r, op, a);
    if (!is_number(b, op != MODULO))
        unknown_type(r, op, b);
    if (op == MINIMUM || op == MAXIMUM)
        return choose_number(op, a, b);
    if (gv_kind(a) == GV_FLOAT || gv_kind(b) == GV_FLOAT)
        return do_floats(op, as_float(a), as_float(b));
    if (gv_kind(a) == GV_UINT && gv_kind(b) == GV_UINT)
        return do_uints(r, op, a.u, b.u);
    return do_ints(r, op, a.i, b.i);
}

#define MATH_FN(name, op)                                                                          \
    static struct gv fn_##name(struct run *r, struct gv *a, size_t n)                              \
    {                                                                                              \
        (void)n;                                                                                   \
        return do_math(r, op, a);                                                                  \
    }
MATH_FN(add, ADD)
MATH_FN(subtract, SUBTRACT)
MATH_FN(multiply, MULTIPLY)
MATH_FN(divide, DIVIDE)
MATH_FN(modulo, MODULO)
MATH_FN(minimum, MINIMUM)
MATH_FN(maximum, MAXIMUM)

const struct function functions_math[] = {
    {"add", fn_add, "aa", FUNCTION_PLAIN},
    {"subtract", fn_subtract, "aa", FUNCTION_PLAIN},
    {"multiply", fn_multiply, "aa", FUNCTION_PLAIN},
    {"divide", fn_divide, "aa", FUNCTION_PLAIN},
    {"modulo", fn_modulo, "aa", FUNCTION_PLAIN},
    {"minimum", fn_minimum, "aa", FUNCTION_PLAIN},
    {"maximum", fn_maximum, "aa", FUNCTION_PLAIN},
    {NULL, NULL, NULL, FUNCTION_PLAIN},
};
