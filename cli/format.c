/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables, ages, ids, JSON and template output.
 */
#include "cli/format.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

#include "cli/limits.h"
#include "common/duration.h"
#include "template/template.h"

/* --- tables --- */

void
table_init(struct table *t, struct cmd *c, size_t cols)
{
    *t = (struct table){.cols = cols, .c = c};
}

static void
add_cell(struct table *t, size_t col, const char *s)
{
    char *cell = s ? mem_strdup(t->c, s) : NULL;
    if (cell)
        str_tame(cell, false);
    t->cell[t->rows * t->cols + col] = cell;
}

void
table_row(struct table *t, ...)
{
    va_list ap;
    mem_resize(t->c, t->cell, const char *, (t->rows + 1) * t->cols);
    va_start(ap, t);
    for (size_t i = 0; i < t->cols; i++)
        add_cell(t, i, va_arg(ap, const char *));
    va_end(ap);
    t->rows++;
}

void
table_cells(struct table *t, const char *const *cell)
{
    mem_resize(t->c, t->cell, const char *, (t->rows + 1) * t->cols);
    for (size_t i = 0; i < t->cols; i++)
        add_cell(t, i, cell[i]);
    t->rows++;
}

/* Columns a text takes on the terminal: code points, near enough. */
static int
format_width(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

static void
put_cell(FILE *f, const char *s, int pad)
{
    fprintf(f, "%s%*s", s, pad, "");
}

static void
format_print(struct table *t, const char *glue, const char *empty, bool bold)
{
    int *w = mem_array(t->c, int, t->cols);
    for (size_t i = 0; i < t->rows * t->cols; i++) {
        t->cell[i] = str_or(t->cell[i], empty);
        int n = format_width(t->cell[i]);
        if (n > w[i % t->cols])
            w[i % t->cols] = n;
    }
    for (size_t r = 0; r < t->rows; r++) {
        if (bold && r == 0 && t->c->color)
            fputs("\033[1m", t->c->out);
        for (size_t i = 0; i < t->cols; i++) {
            const char *s = t->cell[r * t->cols + i];
            bool last = i + 1 == t->cols;
            put_cell(t->c->out, s, last ? 0 : w[i] - format_width(s));
            fputs(last ? "" : glue, t->c->out);
        }
        if (bold && r == 0 && t->c->color)
            fputs("\033[0m", t->c->out);
        fputc('\n', t->c->out);
    }
}

void
table_print(struct table *t)
{
    format_print(t, "  ", "<none>", true);
}

void
table_print_blank(struct table *t)
{
    format_print(t, "  ", "", true);
}

void
table_print_kv(struct table *t)
{
    format_print(t, " = ", "", false);
}

void
print_titled_map(struct cmd *c, const char *title, const struct str_map *m)
{
    struct table t;
    cmd_heading(c, title);
    table_init(&t, c, 2);
    for (size_t i = 0; i < m->n; i++)
        table_row(&t, m->v[i].k, m->v[i].v);
    table_print_kv(&t);
}

/* --- texts --- */

const char *
fmt_id(struct cmd *c, const char *id, bool verbose)
{
    if (str_empty(id))
        return "";
    return verbose ? id : mem_strndup(c, id, ID_SHORT);
}

const char *
fmt_i64(struct cmd *c, int64_t v)
{
    return mem_printf(c, "%lld", (long long)v);
}

const char *
fmt_u64(struct cmd *c, uint64_t v)
{
    return mem_printf(c, "%llu", (unsigned long long)v);
}

const char *
fmt_bool(bool b)
{
    return b ? "true" : "false";
}

const char *
fmt_time(struct cmd *c, int64_t ns)
{
    if (ns == 0)
        return "";
    time_t s = (time_t)(ns / NS_PER_S);
    struct tm tm;
    char t[64];
    if (!localtime_r(&s, &tm) || strftime(t, sizeof(t), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return "";
    long off = tm.tm_gmtoff / 60;
    if (off == 0)
        return mem_printf(c, "%sZ", t);
    return mem_printf(c, "%s%c%02ld:%02ld", t, off < 0 ? '-' : '+', (off < 0 ? -off : off) / 60,
                      (off < 0 ? -off : off) % 60);
}

const char *
fmt_ago(struct cmd *c, int64_t ns)
{
    static const struct {
        int64_t s;
        const char *unit;
    } units[] = {{31104000, "y"}, {2592000, "mo"}, {86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
    if (ns == 0)
        return "";
    int64_t s = (cmd_now(c) - ns) / NS_PER_S;
    const char *when = s < 0 ? "from now" : "ago";
    s = s < 0 ? -s : s;
    for (size_t i = 0; i + 1 < ARRAY_LEN(units); i++) {
        if (s < units[i].s)
            continue;
        int64_t rest = s % units[i].s / units[i + 1].s;
        if (rest)
            return mem_printf(c, "%lld%s%lld%s %s", (long long)(s / units[i].s), units[i].unit,
                              (long long)rest, units[i + 1].unit, when);
        return mem_printf(c, "%lld%s %s", (long long)(s / units[i].s), units[i].unit, when);
    }
    return mem_printf(c, "%llds %s", (long long)s, when);
}

const char *
fmt_join(struct cmd *c, const struct str_list *l, const char *sep)
{
    auto_buf struct buf b = BUF_INIT(CLI_OUT_MAX);
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            buf_puts(&b, sep);
        buf_puts(&b, l->v[i]);
    }
    return mem_strdup(c, buf_str(&b));
}

/* --- JSON and templates --- */

bool
output_value(struct cmd *c, const struct output *o, const struct value *v, int *ret_code)
{
    auto_buf struct buf b = BUF_INIT(CLI_OUT_MAX);
    struct err e = ERR_INIT;
    if (!o->json && !o->tmpl)
        return false;
    *ret_code = 1;
    if (o->json && o->tmpl) {
        cmd_fail(c, "Both json and template formatting are not allowed");
        return true;
    }
    if (o->tmpl && template_render(&b, o->tmpl, v, &e)) {
        cmd_fail(c, "%s", e.text);
        return true;
    }
    if (o->json)
        json_encode_value(&b, v, JSON_PRETTY);
    buf_putc(&b, '\n');
    fwrite(b.data, 1, b.len, c->out);
    *ret_code = buf_error(&b) ? cmd_fail(c, "the output is too large") : 0;
    return true;
}

static bool
output_text(struct cmd *c, const struct output *o, struct buf *b, int *ret_code)
{
    struct err e = ERR_INIT;
    struct value *v = NULL;
    if (buf_error(b) || json_decode_value(c, SLICE(b->data, b->len), BUDGET(CLI_OUT_MAX), &v, &e)) {
        *ret_code = cmd_fail(c, "the output is too large: %s", e.text);
        return true;
    }
    return output_value(c, o, v, ret_code);
}

bool
output_object(struct cmd *c, const struct output *o, const struct type *t, const void *obj,
              int *ret_code)
{
    auto_buf struct buf b = BUF_INIT(CLI_OUT_MAX);
    if (!o->json && !o->tmpl)
        return false;
    json_encode(&b, t, obj, 0);
    return output_text(c, o, &b, ret_code);
}

bool
output_list(struct cmd *c, const struct output *o, const struct type *t, const void *list,
            int *ret_code)
{
    auto_buf struct buf b = BUF_INIT(CLI_OUT_MAX);
    struct object_list l;
    if (!o->json && !o->tmpl)
        return false;
    memcpy(&l, list, sizeof(l));
    json_encode_list(&b, t, (const void *const *)l.v, l.n, 0);
    return output_text(c, o, &b, ret_code);
}
