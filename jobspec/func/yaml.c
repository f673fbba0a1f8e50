/* SPDX-License-Identifier: Apache-2.0
 *
 * yamlencode(): block style, strings in double quotes or, of several lines, literal; as Nomad
 * writes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "jobspec/func/func.h"

enum { STEP = 2, WIDTH = 80, KEY_MAX = 128 };

struct yaml {
    const void *ctx;
    struct buf *b;
    bool long_key;
};

static size_t
yaml_column(const struct buf *b)
{
    size_t n = 0;
    for (size_t i = b->len; i > 0 && b->data[i - 1] != '\n'; i--)
        n += (b->data[i - 1] & 0xc0) != 0x80; /* characters, not bytes */
    return n;
}

/* To a fresh line, with n blanks before what follows. */
static void
yaml_line(struct buf *b, size_t n)
{
    if (b->len > 0 && b->data[b->len - 1] != '\n')
        buf_putc(b, '\n');
    for (; n > 0; n--)
        buf_putc(b, ' ');
}

/* One character of text that is valid UTF-8. */
static uint32_t
yaml_next(const char **s)
{
    const uint8_t *p = (const uint8_t *)*s;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    uint32_t c = n == 1 ? p[0] : p[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n && p[i] != 0; i++)
        c = c << 6 | (p[i] & 0x3f);
    *s += n;
    return c;
}

static bool
yaml_printable(uint32_t c)
{
    return c == '\n' || (c >= 0x20 && c < 0x7f) ||
           (c >= 0xa0 && c < 0xfffe && c != 0xfeff && !(c >= 0xd800 && c < 0xe000));
}

static void
yaml_escape(struct buf *b, uint32_t c)
{
    static const struct {
        uint32_t c;
        char letter;
    } named[] = {{7, 'a'},    {8, 'b'},      {9, 't'},     {10, 'n'},  {11, 'v'},
                 {12, 'f'},   {13, 'r'},     {27, 'e'},    {'"', '"'}, {'\\', '\\'},
                 {0x85, 'N'}, {0x2028, 'L'}, {0x2029, 'P'}};
    for (size_t i = 0; i < ARRAY_LEN(named); i++)
        if (named[i].c == c) {
            buf_printf(b, "\\%c", named[i].letter);
            return;
        }
    buf_printf(b, c > 0xffff ? "\\U%08X" : c > 0xff ? "\\u%04X" : "\\x%02X", (unsigned)c);
}

/* Long lines are folded at blanks, but not those of keys. */
static void
yaml_quoted(struct buf *b, const char *s, size_t indent, bool fold)
{
    const char *start = s;
    bool blank = false;
    buf_putc(b, '"');
    while (*s != '\0') {
        const char *at = s;
        uint32_t c = yaml_next(&s);
        if (c == ' ' && fold && !blank && at != start && *s != '\0' && yaml_column(b) > WIDTH) {
            yaml_line(b, indent);
            if (*s == ' ')
                buf_putc(b, '\\');
        } else if (!yaml_printable(c) || c == '"' || c == '\\' || c == '\n' || c == 0x2028 ||
                   c == 0x2029) {
            yaml_escape(b, c);
        } else {
            buf_put(b, at, (size_t)(s - at));
        }
        blank = c == ' ';
    }
    buf_putc(b, '"');
}

static bool
is_literal(const char *s)
{
    size_t n = strlen(s);
    if (strchr(s, '\n') == NULL || s[n - 1] == ' ' || strstr(s, " \n") != NULL)
        return false;
    while (*s != '\0')
        if (!yaml_printable(yaml_next(&s)))
            return false;
    return true;
}

static void
yaml_literal(struct buf *b, const char *s, size_t indent)
{
    size_t n = strlen(s);
    buf_putc(b, '|');
    if (*s == ' ' || *s == '\n')
        buf_printf(b, "%d", STEP);
    if (s[n - 1] != '\n')
        buf_putc(b, '-');
    else if (n == 1 || s[n - 2] == '\n')
        buf_putc(b, '+');
    buf_putc(b, '\n');
    while (*s != '\0') {
        size_t k = strcspn(s, "\n");
        if (k > 0)
            yaml_line(b, indent);
        buf_put(b, s, k);
        s += k;
        if (*s == '\n') {
            buf_putc(b, '\n');
            s++;
        }
    }
}

/* The place of a node, which decides how its content is indented. */
enum place { ROOT, OF_MAP, OF_LIST };

static void yaml_node(struct yaml *y, const struct value *v, size_t indent, enum place at);

static void
yaml_scalar(struct yaml *y, const struct value *v, size_t indent, enum place at)
{
    if (v->kind == VALUE_STRING) {
        if (is_literal(v->str.s))
            yaml_literal(y->b, v->str.s, indent + STEP);
        else
            yaml_quoted(y->b, v->str.s, indent + STEP, true);
        return;
    }
    if (v->kind == VALUE_NULL)
        buf_puts(y->b, "null");
    else if (v->kind == VALUE_BOOL)
        buf_puts(y->b, v->b ? "true" : "false");
    else
        buf_puts(y->b, number_text(y->ctx, v));
    if (at == ROOT)
        buf_puts(y->b, "\n...");
}

static void
yaml_list(struct yaml *y, const struct value *v, size_t indent, enum place at)
{
    for (size_t i = 0; i < v->list.n; i++) {
        if (i > 0 || at != OF_LIST)
            yaml_line(y->b, indent);
        buf_puts(y->b, "- ");
        yaml_node(y, v->list.v[i], indent, OF_LIST);
    }
}

static void
yaml_map(struct yaml *y, const struct value *v, size_t indent, enum place at)
{
    for (size_t i = 0; i < v->map.n; i++) {
        const char *k = v->map.v[i].k;
        const struct value *in = v->map.v[i].v;
        bool block =
            (in->kind == VALUE_LIST && in->list.n > 0) || (in->kind == VALUE_MAP && in->map.n > 0);
        if (i > 0 || at != OF_LIST)
            yaml_line(y->b, indent);
        y->long_key |= strlen(k) > KEY_MAX || strchr(k, '\n') != NULL;
        yaml_quoted(y->b, k, 0, false);
        buf_puts(y->b, block ? ":" : ": ");
        yaml_node(y, in, indent, OF_MAP);
    }
}

static void
yaml_node(struct yaml *y, const struct value *v, size_t indent, enum place at)
{
    if (v->kind == VALUE_LIST && v->list.n == 0)
        buf_puts(y->b, "[]");
    else if (v->kind == VALUE_MAP && v->map.n == 0)
        buf_puts(y->b, "{}");
    else if (v->kind == VALUE_LIST)
        yaml_list(y, v, at == OF_LIST ? indent + STEP : indent, at);
    else if (v->kind == VALUE_MAP)
        yaml_map(y, v, at == ROOT ? 0 : indent + STEP, at);
    else
        yaml_scalar(y, v, at == ROOT ? 0 : indent, at);
}

static struct value *
fn_yamlencode(struct call *c)
{
    auto_buf struct buf b = BUF_INIT(HCL_BYTES_MAX / 4);
    struct yaml y = {c->ev->ctx, &b, false};
    yaml_node(&y, c->args[0], 0, ROOT);
    yaml_line(&b, 0);
    if (y.long_key)
        return arg_error(c, 0, "a key is longer than %d bytes or has several lines", KEY_MAX);
    if (buf_error(&b) != 0)
        return arg_error(c, 0, "the result is too large");
    return ret_strn(c, (const char *)b.data, b.len);
}

const struct func func_yaml[] = {{"yamlencode", 1, 1, fn_yamlencode, false},
                                 {NULL, 0, 0, NULL, false}};
