/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluator: templates. What is known at run time only is put in as it is written.
 */
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "jobspec/eval_int.h"

/* The source of "${…}" without "~". */
static void
put_verbatim(struct buf *b, const struct expr *e)
{
    const char *s = e->r.src->s + e->r.start.byte;
    size_t n = e->r.end.byte - e->r.start.byte;
    bool left = n > 3 && s[2] == '~', right = n > 3 && s[n - 2] == '~';
    buf_puts(b, "${");
    size_t from = left ? 3 : 2, to = n - (right ? 2 : 1);
    if (to > from)
        buf_put(b, s + from, to - from);
    buf_putc(b, '}');
}

static bool put_part(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e,
                     struct buf *b);

static bool
put_value(struct hcl_eval *ev, const struct expr *e, const struct value *v, struct buf *b)
{
    const char *s = value_text(ev->ctx, v);
    if (s == NULL) {
        diag_error(ev->sink, &e->r, "Invalid template interpolation value",
                   v->kind == VALUE_NULL ? "The expression gives null, which is no text."
                                         : "A %s cannot be part of a text; use join() or "
                                           "jsonencode().",
                   value_kind_name(v->kind));
        return false;
    }
    size_t n = v->kind == VALUE_STRING ? v->str.n : strlen(s);
    if (!ev_charge(ev, &e->r, 1 + n / 64, n))
        return false;
    buf_put(b, s, n);
    return true;
}

static bool
put_loop(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e, struct buf *b)
{
    size_t n;
    struct value *coll = ev_loop_over(ev, sc, e, &n);
    if (coll == NULL)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct turn t;
        ev_turn(ev, &t, sc, e, coll, i);
        if (!put_part(ev, t.sc, e->b, b))
            return false;
    }
    return true;
}

static bool
put_if(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e, struct buf *b)
{
    struct value *c = ev_expr(ev, sc, e->a);
    bool yes;
    if (c == NULL)
        return false;
    if (!value_truth(c, &yes)) {
        ev_bad_operand(ev, e->a, c, "a bool");
        return false;
    }
    const struct expr *branch = yes ? e->b : e->c;
    return branch == NULL || put_part(ev, sc, branch, b);
}

static bool
put_part(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e, struct buf *b)
{
    if (!ev_charge(ev, &e->r, 1, 0))
        return false;
    switch (e->kind) {
    case EX_TEMPLATE:
        for (size_t i = 0; i < e->n; i++)
            if (!put_part(ev, sc, e->list[i], b))
                return false;
        return true;
    case EX_TIF:
        return put_if(ev, sc, e, b);
    case EX_TFOR:
        return put_loop(ev, sc, e, b);
    case EX_INTERP:
        if (ev_is_runtime(ev, sc, e->a)) {
            put_verbatim(b, e);
            return ev_charge(ev, &e->r, 1, e->r.end.byte - e->r.start.byte);
        }
        break;
    default:
        break;
    }
    const struct expr *of = e->kind == EX_INTERP ? e->a : e;
    struct value *v = ev_expr(ev, sc, of);
    return v != NULL && put_value(ev, of, v, b);
}

struct value *
ev_template(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e)
{
    /* "${x}" alone is x itself, whatever its type. */
    if (e->n == 1 && e->list[0]->kind == EX_INTERP && !ev_is_runtime(ev, sc, e->list[0]->a))
        return ev_expr(ev, sc, e->list[0]->a);
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX);
    if (!put_part(ev, sc, e, &b))
        return NULL;
    return ev_strn(ev, &e->r, b.len > 0 ? (const char *)b.data : "", b.len);
}
