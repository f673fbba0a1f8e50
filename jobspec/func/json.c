/* SPDX-License-Identifier: Apache-2.0
 *
 * jsonencode() and jsondecode(), and JSON for format(). Numbers keep all of their digits.
 */
#include "jobspec/func/json.h"

#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "jobspec/parse.h"

/* A text that may stand in a page of HTML or a script, as a Nomad writes it. */
void
json_put_safe(struct buf *b, const char *s, size_t n)
{
    auto_buf struct buf plain = BUF_INIT(HCL_BYTES_MAX);
    json_put_string(&plain, s, n);
    for (size_t i = 0; i < plain.len; i++) {
        const char *p = (const char *)plain.data + i;
        if (*p == '<' || *p == '>' || *p == '&') {
            buf_printf(b, "\\u%04x", *p);
        } else if (plain.len - i >= 3 && memcmp(p, "\xe2\x80", 2) == 0 &&
                   (p[2] == '\xa8' || p[2] == '\xa9')) { /* ends of lines for scripts */
            buf_printf(b, "\\u202%c", p[2] == '\xa8' ? '8' : '9');
            i += 2;
        } else {
            buf_putc(b, *p);
        }
    }
}

void
json_put_value(const void *ctx, struct buf *b, const struct value *v)
{
    switch (v->kind) {
    case VALUE_NULL:
        buf_puts(b, "null");
        return;
    case VALUE_BOOL:
        buf_puts(b, v->b ? "true" : "false");
        return;
    case VALUE_STRING:
        json_put_safe(b, v->str.s, v->str.n);
        return;
    case VALUE_LIST:
        for (size_t i = 0; i < v->list.n; i++) {
            buf_putc(b, i == 0 ? '[' : ',');
            json_put_value(ctx, b, v->list.v[i]);
        }
        buf_puts(b, v->list.n == 0 ? "[]" : "]");
        return;
    case VALUE_MAP:
        for (size_t i = 0; i < v->map.n; i++) {
            buf_putc(b, i == 0 ? '{' : ',');
            json_put_safe(b, v->map.v[i].k, strlen(v->map.v[i].k));
            buf_putc(b, ':');
            json_put_value(ctx, b, v->map.v[i].v);
        }
        buf_puts(b, v->map.n == 0 ? "{}" : "}");
        return;
    default:
        buf_puts(b, number_text(ctx, v));
    }
}

static struct value *
fn_jsonencode(struct call *c)
{
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    auto_mem void *tmp = mem_ctx("jsonencode");
    json_put_value(tmp, &b, c->args[0]);
    if (buf_error(&b) != 0)
        return arg_error(c, 0, "the result is too large");
    return ret_strn(c, (const char *)b.data, b.len);
}

/* The value of a tree of literals; the tree goes. */
static struct value *
value_of(struct call *c, const struct expr *e)
{
    struct hcl_eval *ev = c->ev;
    if (e->kind == EX_LITERAL && e->value->kind == VALUE_STRING)
        return ret_strn(c, e->value->str.s, e->value->str.n);
    if (e->kind == EX_LITERAL && !call_charge(c, 1, 128))
        return NULL;
    if (e->kind == EX_LITERAL)
        return number_is(e->value)            ? number_copy(ev->ctx, e->value)
               : e->value->kind == VALUE_NULL ? value_null(ev->ctx)
                                              : value_bool(ev->ctx, e->value->b);
    if (e->kind == EX_TUPLE) {
        struct value *out = ret_list(c, e->n);
        for (size_t i = 0; out != NULL && i < e->n; i++)
            if ((out->list.v[i] = value_of(c, e->list[i])) == NULL)
                return NULL;
        return out;
    }
    size_t n = e->n / 2;
    if (!call_charge(c, n, n * sizeof(struct value_pair)))
        return NULL;
    struct value_pair *pairs = mem_array(ev->ctx, struct value_pair, n);
    for (size_t i = 0; i < n; i++) {
        pairs[i].k = mem_strdup(ev->ctx, e->list[2 * i]->value->str.s);
        if ((pairs[i].v = value_of(c, e->list[2 * i + 1])) == NULL)
            return NULL;
    }
    return ev_map(ev, &c->e->r, pairs, n);
}

static struct value *
fn_jsondecode(struct call *c)
{
    const char *s = arg_str(c, 0);
    size_t n = arg_len(c, 0);
    if (c->failed || !call_charge(c, 1 + n / 8, n))
        return NULL;
    auto_mem void *tmp = mem_ctx("jsondecode");
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_sink sink = {.ctx = tmp, .d = &d};
    struct hcl_source src = {"the text", s, n};
    const struct expr *e = parse_json_value(tmp, &src, &sink);
    if (e == NULL) {
        const char *why = hcl_diags_text(tmp, &d, false);
        return arg_error(c, 0, "%.*s", (int)strcspn(why, "\n"), why);
    }
    return value_of(c, e);
}

const struct func func_json[] = {{"jsondecode", 1, 1, fn_jsondecode, false},
                                 {"jsonencode", 1, 1, fn_jsonencode, false},
                                 {NULL, 0, 0, NULL, false}};
