/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON writer: any described object, or a value, appended to a buffer. What it writes is always
 * valid UTF-8 JSON: broken bytes become U+FFFD, NaN and infinity become null.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/base64.h"
#include "codec/intern.h"
#include "common/num.h"
#include "common/str.h"

struct writer {
    struct buf *out;
    unsigned flags;
    unsigned depth;
};

static void write_object(struct writer *w, const struct type *t, const void *obj);
static void write_value(struct writer *w, const struct value *v);

/* --- scalars --- */

static void
put_u64(struct buf *out, uint64_t v, bool neg)
{
    char t[24], *p = t + sizeof(t);
    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    if (neg)
        *--p = '-';
    buf_put(out, p, (size_t)(t + sizeof(t) - p));
}

static void
put_i64(struct buf *out, int64_t v)
{
    put_u64(out, v < 0 ? ~(uint64_t)v + 1 : (uint64_t)v, v < 0);
}

static void
put_f64(struct buf *out, double v)
{
    if (!isfinite(v)) {
        buf_puts(out, "null");
        return;
    }
    if (v == (double)(int64_t)(fabs(v) < 1e15 ? v : 0) && fabs(v) < 1e15 && !(v == 0 && signbit(v))) {
        put_i64(out, (int64_t)v);
        return;
    }
    char t[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(t, sizeof(t), "%.*g", digits, v);
        if (strtod(t, NULL) == v)
            break;
    }
    buf_puts(out, t);
}

/* Length of the valid UTF-8 sequence at s, 0 when broken. */
static size_t
utf8_len(const unsigned char *s, size_t n)
{
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    return s[0] >= 0xc2 && len <= n && utf8_valid((const char *)s, len) ? len : 0;
}

static void
put_escape(struct buf *out, unsigned char c)
{
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i < sizeof(names) - 1; i += 2) {
        if ((unsigned char)names[i] == c) {
            buf_put(out, (char[]){'\\', names[i + 1]}, 2);
            return;
        }
    }
    buf_printf(out, "\\u%04x", c);
}

static bool
plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

void
json_put_string(struct buf *out, const char *str, size_t n)
{
    const unsigned char *s = (const unsigned char *)str;
    uint8_t *w = buf_reserve(out, n + 2);
    if (!w)
        return;
    w[0] = '"';
    size_t i = 0;
    while (i < n && plain(s[i])) {
        w[i + 1] = s[i];
        i++;
    }
    out->len += i + 1;
    while (i < n) {
        size_t from = i;
        while (i < n && plain(s[i]))
            i++;
        buf_put(out, s + from, i - from);
        if (i == n)
            break;
        if (s[i] < 0x80 && s[i] != 0x7f) {
            put_escape(out, s[i++]);
            continue;
        }
        size_t len = s[i] == 0x7f ? 1 : utf8_len(s + i, n - i);
        if (len)
            buf_put(out, s + i, len);
        else
            buf_put(out, "\xef\xbf\xbd", 3);
        i += len ? len : 1;
    }
    buf_putc(out, '"');
}

static void
put_str(struct buf *out, const char *s)
{
    json_put_string(out, s ? s : "", s ? strlen(s) : 0);
}

/* --- layout --- */

static void
newline(struct writer *w)
{
    if (!(w->flags & JSON_PRETTY))
        return;
    buf_putc(w->out, '\n');
    for (unsigned i = 0; i < w->depth; i++)
        buf_put(w->out, "    ", 4);
}

/* False when the tree is deeper than any decoder accepts: the buffer then holds the error. */
static bool
open_with(struct writer *w, char c)
{
    if (w->depth >= CODEC_DEPTH_MAX) {
        w->out->error = -ERR_LIMIT;
        return false;
    }
    buf_putc(w->out, c);
    w->depth++;
    return true;
}

static void
close_with(struct writer *w, char c, bool any)
{
    w->depth--;
    if (any)
        newline(w);
    buf_putc(w->out, c);
}

static void
separate(struct writer *w, bool *any)
{
    if (*any)
        buf_putc(w->out, ',');
    *any = true;
    newline(w);
}

static void
put_colon(struct writer *w)
{
    if (w->flags & JSON_PRETTY)
        buf_put(w->out, ": ", 2);
    else
        buf_putc(w->out, ':');
}

/* --- fields --- */

static void
write_strings(struct writer *w, const struct str_list *l)
{
    if (!l->v) {
        buf_puts(w->out, "null");
        return;
    }
    bool any = false;
    if (!open_with(w, '['))
        return;
    for (size_t i = 0; i < l->n; i++) {
        separate(w, &any);
        put_str(w->out, l->v[i]);
    }
    close_with(w, ']', any);
}

static void
write_bytes(struct writer *w, const struct bytes *b)
{
    if (!b->v) {
        buf_puts(w->out, "null");
        return;
    }
    buf_putc(w->out, '"');
    base64_encode(w->out, b->v, b->n);
    buf_putc(w->out, '"');
}

static void
write_time(struct writer *w, int64_t ns)
{
    char t[TIME_TEXT];
    buf_putc(w->out, '"');
    buf_puts(w->out, time_format(ns, t));
    buf_putc(w->out, '"');
}

static void
write_elem(struct writer *w, const struct field *f, const void *p)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        buf_puts(w->out, *(const bool *)p ? "true" : "false");
        break;
    case FT_INT:
    case FT_DURATION:
        put_i64(w->out, *(const int64_t *)p);
        break;
    case FT_UINT:
        put_u64(w->out, *(const uint64_t *)p, false);
        break;
    case FT_FLOAT:
        put_f64(w->out, *(const double *)p);
        break;
    case FT_TIME:
        write_time(w, *(const int64_t *)p);
        break;
    case FT_STRING:
        put_str(w->out, *(const char *const *)p);
        break;
    case FT_BYTES:
        write_bytes(w, p);
        break;
    case FT_VALUE:
        write_value(w, *(struct value *const *)p);
        break;
    case FT_STRUCT:
        write_object(w, f->sub, *(const any_ptr *)p);
        break;
    case FT_STRINGS:
        write_strings(w, p);
        break;
    }
}

static void
write_list(struct writer *w, const struct field *f, const struct any_list *l)
{
    bool map = f->shape == FS_MAP, any = false;
    if (!l->v) {
        buf_puts(w->out, "null");
        return;
    }
    if (!open_with(w, map ? '{' : '['))
        return;
    for (size_t i = 0; i < l->n; i++) {
        separate(w, &any);
        if (map) {
            put_str(w->out, key_at(f, l, i));
            put_colon(w);
        }
        write_elem(w, f, elem_at(f, l, i));
    }
    close_with(w, map ? '}' : ']', any);
}

static void
write_field(struct writer *w, const struct field *f, const void *p)
{
    static const char zero[32]; /* what any hidden field looks like */
    if ((w->flags & JSON_HIDE_SECRETS) && (f->flags & F_SECRET))
        p = zero;
    if (f->shape != FS_ONE)
        write_list(w, f, p);
    else if (!(f->flags & F_OPT))
        write_elem(w, f, p);
    else if (*(const bool *)p)
        write_elem(w, f, opt_value(f, p));
    else
        buf_puts(w->out, "null");
}

static void
write_object(struct writer *w, const struct type *t, const void *obj)
{
    if (!obj) {
        buf_puts(w->out, "null");
        return;
    }
    bool any = false;
    if (!open_with(w, '{'))
        return;
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        if ((f->flags & F_OMIT) && !(w->flags & JSON_NO_OMIT) && codec_field_empty(f, obj))
            continue;
        separate(w, &any);
        buf_putc(w->out, '"');
        buf_puts(w->out, f->wire);
        buf_putc(w->out, '"');
        put_colon(w);
        write_field(w, f, field_ptr(f, obj));
    }
    close_with(w, '}', any);
}

static void
write_value_list(struct writer *w, const struct value *v)
{
    bool any = false;
    if (!open_with(w, '['))
        return;
    for (size_t i = 0; i < v->list.n; i++) {
        separate(w, &any);
        write_value(w, v->list.v[i]);
    }
    close_with(w, ']', any);
}

static void
write_value_map(struct writer *w, const struct value *v)
{
    bool any = false;
    if (!open_with(w, '{'))
        return;
    for (size_t i = 0; i < v->map.n; i++) {
        separate(w, &any);
        put_str(w->out, v->map.v[i].k);
        put_colon(w);
        write_value(w, v->map.v[i].v);
    }
    close_with(w, '}', any);
}

static void
write_value(struct writer *w, const struct value *v)
{
    switch (v ? v->kind : VALUE_NULL) {
    case VALUE_NULL:
        buf_puts(w->out, "null");
        break;
    case VALUE_BOOL:
        buf_puts(w->out, v->b ? "true" : "false");
        break;
    case VALUE_INT:
        put_i64(w->out, v->i);
        break;
    case VALUE_FLOAT:
        put_f64(w->out, v->f);
        break;
    case VALUE_STRING:
        json_put_string(w->out, v->str.s, v->str.n);
        break;
    case VALUE_LIST:
        write_value_list(w, v);
        break;
    case VALUE_MAP:
        write_value_map(w, v);
        break;
    }
}

/* --- entry points --- */

void
json_encode(struct buf *out, const struct type *t, const void *obj, unsigned flags)
{
    struct writer w = {out, flags, 0};
    write_object(&w, t, obj);
}

void
json_encode_list(struct buf *out, const struct type *t, const void *const *objs, size_t n,
                 unsigned flags)
{
    struct writer w = {out, flags, 0};
    bool any = false;
    if (!open_with(&w, '['))
        return;
    for (size_t i = 0; i < n; i++) {
        separate(&w, &any);
        write_object(&w, t, objs[i]);
    }
    close_with(&w, ']', any);
}

void
json_encode_value(struct buf *out, const struct value *v, unsigned flags)
{
    struct writer w = {out, flags, 0};
    write_value(&w, v);
}
