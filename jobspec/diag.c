/* SPDX-License-Identifier: Apache-2.0
 *
 * The making of diagnostics: header line, source line, caret line.
 */
#include "jobspec/diag.h"

#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"

enum { LINE_SHOWN_MAX = 100, DIAG_TEXT_MAX = 4096 };

struct hcl_range
range_join(const struct hcl_range *a, const struct hcl_range *b)
{
    struct hcl_range r = *a;
    r.end = b->end;
    return r;
}

/* Control characters would let a file draw on the terminal; they are shown as "?". */
static void
put_text(struct buf *b, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '\t')
            buf_putc(b, ' ');
        else if (c < 0x20 || c == 0x7f || (c == 0xc2 && i + 1 < n && (uint8_t)s[i + 1] < 0xa0))
            buf_putc(b, '?');
        else
            buf_putc(b, s[i]);
    }
}

static bool
is_cont(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The line of `r`, cut around its start when it is long, and carets under the range. */
static void
put_source(struct buf *b, const struct hcl_range *r)
{
    const char *s = r->src->s;
    size_t from = r->start.byte, to = r->start.byte, n = r->src->n;
    if (from > n)
        return;
    bool cut_left = false, cut_right = false;
    while (from > 0 && s[from - 1] != '\n') {
        if (r->start.byte - from >= LINE_SHOWN_MAX / 2 && !is_cont(s[from])) {
            cut_left = true;
            break;
        }
        from--;
    }
    while (to < n && s[to] != '\n' && s[to] != '\r') {
        if (to - from >= LINE_SHOWN_MAX && !is_cont(s[to])) {
            cut_right = true;
            break;
        }
        to++;
    }
    char num[16];
    buf_printf(b, "\n\n  %u: %s", r->start.line, cut_left ? "..." : "");
    snprintf(num, sizeof(num), "%u", r->start.line);
    put_text(b, s + from, to - from);
    buf_puts(b, cut_right ? "...\n" : "\n");
    for (size_t i = 0; i < strlen(num) + 4 + (cut_left ? 3 : 0); i++)
        buf_putc(b, ' ');
    size_t end = r->end.byte > to ? to : r->end.byte;
    for (size_t i = from; i < r->start.byte; i++)
        if (!is_cont(s[i]))
            buf_putc(b, ' ');
    buf_putc(b, '^');
    for (size_t i = (size_t)r->start.byte + 1; i < end; i++)
        if (!is_cont(s[i]))
            buf_putc(b, '~');
}

__attribute__((format(printf, 5, 0))) static void
diag_add(struct hcl_sink *sink, const struct hcl_range *r, bool warning, const char *summary,
         const char *detail, va_list ap)
{
    if (!warning)
        sink->d->errors++;
    if (!diag_wanted(sink))
        return;
    auto_buf struct buf b = BUF_INIT(64 << 10);
    if (r != NULL && r->src != NULL) {
        put_text(&b, r->src->name, strlen(r->src->name));
        buf_printf(&b, ":%u,%u", r->start.line, r->start.col);
        if (r->end.line == r->start.line && r->end.col > r->start.col)
            buf_printf(&b, "-%u", r->end.col);
        else if (r->end.line > r->start.line)
            buf_printf(&b, "-%u,%u", r->end.line, r->end.col);
        buf_puts(&b, ": ");
    }
    char text[DIAG_TEXT_MAX];
    vsnprintf(text, sizeof(text), detail, ap);
    size_t n = strlen(text);
    while (n > 0 && !utf8_valid(text, n))
        n--;
    buf_puts(&b, summary);
    if (n > 0) {
        buf_puts(&b, "; ");
        put_text(&b, text, n);
    }
    if (r != NULL && r->src != NULL)
        put_source(&b, r);
    sink->d->v[sink->d->n].warning = warning;
    sink->d->v[sink->d->n++].text = mem_strdup(sink->ctx, buf_str(&b));
}

int
diag_error(struct hcl_sink *sink, const struct hcl_range *r, const char *summary,
           const char *detail, ...)
{
    va_list ap;
    va_start(ap, detail);
    diag_add(sink, r, false, summary, detail, ap);
    va_end(ap);
    return -ERR_INVALID;
}

void
diag_warn(struct hcl_sink *sink, const struct hcl_range *r, const char *summary, const char *detail,
          ...)
{
    va_list ap;
    va_start(ap, detail);
    diag_add(sink, r, true, summary, detail, ap);
    va_end(ap);
}

bool
diag_wanted(const struct hcl_sink *sink)
{
    return !sink->quiet && sink->d->n < HCL_DIAGS_MAX;
}

const char *
diag_suggest(const struct hcl_sink *sink, const char *given, const char *const *names, size_t n)
{
    const char *near = diag_wanted(sink) ? str_nearest(given, names, n) : NULL;
    return near != NULL ? mem_printf(sink->ctx, " Did you mean \"%s\"?", near) : "";
}

char *
hcl_diags_text(const void *ctx, const struct hcl_diags *d, bool warnings)
{
    auto_buf struct buf b = BUF_INIT(256 << 10);
    size_t shown = 0;
    for (size_t i = 0; i < d->n; i++) {
        if (d->v[i].warning && !warnings)
            continue;
        if (b.len > 0)
            buf_puts(&b, "\n\n");
        buf_puts(&b, d->v[i].text);
        shown += d->v[i].warning ? 0 : 1;
    }
    if (d->errors > shown)
        buf_printf(&b, "\n\nand %zu more errors", d->errors - shown);
    return mem_strdup(ctx, buf_str(&b));
}
