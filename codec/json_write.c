/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON writer: any described object, or a value, appended to a buffer. What it writes is always
 * valid UTF-8 JSON: broken bytes become U+FFFD, NaN and infinity become null.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/base64.h"
#include "codec/json_int.h"
#include "common/duration.h"
#include "common/str.h"

static void write_object(struct writer *w, const struct type *t, const void *obj);
static void write_value(struct writer *w, const struct value *v);

/* --- scalars --- */

void
json_put_f64(struct writer *w, double v)
{
    if (!isfinite(v)) {
        PUT(w, "null");
        return;
    }
    if (fabs(v) < 1e15 && v == (double)(int64_t)v && !(v == 0 && signbit(v))) {
        put_i64(w, (int64_t)v);
        return;
    }
    char t[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(t, sizeof(t), "%.*g", digits, v);
        if (strtod(t, NULL) == v)
            break;
    }
    out_put(&w->o, t, strlen(t));
}

/* Length of the valid UTF-8 sequence at s, 0 when broken. */
static size_t
utf8_len(const unsigned char *s, size_t n)
{
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    return s[0] >= 0xc2 && len <= n && utf8_valid((const char *)s, len) ? len : 0;
}

static void
put_escape(struct out *o, unsigned char c)
{
    static const char names[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof(names) - 1; i += 2) {
        if ((unsigned char)names[i] == c) {
            out_put(o, (char[]){'\\', names[i + 1]}, 2);
            return;
        }
    }
    out_put(o, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

static bool
json_write_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static void
put_odd(struct out *o, const unsigned char *s, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t from = i;
        while (i < n && json_write_plain(s[i]))
            i++;
        out_put(o, s + from, i - from);
        if (i == n)
            break;
        if (s[i] < 0x80) {
            put_escape(o, s[i++]);
            continue;
        }
        size_t len = utf8_len(s + i, n - i);
        if (len)
            out_put(o, s + i, len);
        else
            out_put(o, "\xef\xbf\xbd", 3);
        i += len ? len : 1;
    }
}

/* Eight of them: the high bit of a byte of the sum is set where it is not plain (and of some behind
 * it). */
static bool
all_plain(uint64_t v)
{
    const uint64_t ones = 0x0101010101010101, high = ones << 7;
    uint64_t quote = v ^ ones * '"', slash = v ^ ones * '\\';
    return ((v | (v - ones * 0x20) | (quote - ones) | (slash - ones)) & high) == 0;
}

/* How many bytes at the start are. */
static size_t
plain_prefix(const unsigned char *s, size_t n)
{
    size_t i = 0;
    uint64_t v;
    if (n >= sizeof(v)) {
        for (; n - i >= sizeof(v); i += sizeof(v)) {
            memcpy(&v, s + i, sizeof(v));
            if (!all_plain(v))
                break;
        }
        if (n - i < sizeof(v)) { /* the rest, with some before it once more */
            memcpy(&v, s + n - sizeof(v), sizeof(v));
            if (all_plain(v))
                return n;
        }
    }
    while (i < n && json_write_plain(s[i]))
        i++;
    return i;
}

void
json_put_text(struct out *o, const char *str, size_t n)
{
    const unsigned char *s = (const unsigned char *)str;
    if (n > SIZE_MAX / 2 || !out_need(o, n + 2))
        return;
    uint8_t *p = o->p;
    *p++ = '"';
    size_t i = plain_prefix(s, n);
    if (n <= 64)
        copy_short(p, s, i);
    else
        memcpy(p, s, i);
    p += i;
    o->p = p;
    if (i < n)
        put_odd(o, s + i, n - i);
    out_putc(o, '"');
}

void
json_put_string(struct buf *out, const char *s, size_t n)
{
    struct out o;
    out_begin(&o, out);
    json_put_text(&o, s, n);
    out_end(&o);
}

static void
put_str(struct writer *w, const char *s)
{
    json_put_text(&w->o, s ? s : "", s ? strlen(s) : 0);
}

/* --- fields --- */

static void
write_strings(struct writer *w, const struct str_list *l)
{
    if (!l->v) {
        PUT(w, "null");
        return;
    }
    bool any = false;
    if (!open_with(w, '['))
        return;
    for (size_t i = 0; i < l->n; i++) {
        json_separate(w, &any);
        put_str(w, l->v[i]);
    }
    close_with(w, ']', any);
}

void
json_write_bytes(struct writer *w, const struct bytes *b)
{
    if (!b->v) {
        PUT(w, "null");
        return;
    }
    out_putc(&w->o, '"');
    out_end(&w->o);
    base64_encode(w->o.b, b->v, b->n);
    out_begin(&w->o, w->o.b);
    out_putc(&w->o, '"');
}

void
json_write_time(struct writer *w, int64_t ns)
{
    char t[TIME_TEXT];
    if (ns == 0) {
        PUT(w, "null"); /* as the JSON of Nomad's server: never happened */
        return;
    }
    out_putc(&w->o, '"');
    time_format(ns, t);
    out_put(&w->o, t, strlen(t));
    out_putc(&w->o, '"');
}

static void
write_elem(struct writer *w, const struct field *f, const void *p)
{
    switch ((enum field_type)f->type) {
    case FT_BOOL:
        put_bool(w, *(const bool *)p);
        break;
    case FT_INT:
    case FT_DURATION:
        put_i64(w, *(const int64_t *)p);
        break;
    case FT_UINT:
        put_u64(w, *(const uint64_t *)p, false);
        break;
    case FT_FLOAT:
        json_put_f64(w, *(const double *)p);
        break;
    case FT_TIME:
        json_write_time(w, *(const int64_t *)p);
        break;
    case FT_STRING:
        put_str(w, *(const char *const *)p);
        break;
    case FT_BYTES:
        json_write_bytes(w, p);
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
    if (!l->v && !(f->flags & F_FULL)) {
        PUT(w, "null");
        return;
    }
    if (!open_with(w, map ? '{' : '['))
        return;
    for (size_t i = 0; i < l->n; i++) {
        json_separate(w, &any);
        if (map) {
            put_str(w, key_at(f, l, i));
            put_colon(w);
        }
        write_elem(w, f, elem_at(f, l, i));
    }
    close_with(w, map ? '}' : ']', any);
}

const char json_zero[32];

void
json_write_field(struct writer *w, const struct field *f, const void *p)
{
    if ((w->flags & JSON_HIDE_SECRETS) && (f->flags & F_SECRET))
        p = json_zero;
    if (f->shape != FS_ONE)
        write_list(w, f, p);
    else if (!(f->flags & F_OPT))
        write_elem(w, f, p);
    else if (*(const bool *)p)
        write_elem(w, f, opt_value(f, p));
    else
        PUT(w, "null");
}

/* An empty list or map, in an object that tells absent from empty (JSON_UNSAID). */
static bool
json_write_unsaid(const struct writer *w, const struct field *f, const void *p)
{
    return (w->flags & JSON_UNSAID) && (f->flags & F_UNSAID) && field_empty(f, p);
}

static bool
left_out(const struct writer *w, const struct field *f, const void *p)
{
    if (json_write_unsaid(w, f, p))
        return f->type == FT_STRUCT && !(f->flags & F_OMIT);
    return (f->flags & F_OMIT) && !(w->flags & JSON_NO_OMIT) && field_empty(f, p);
}

static void
write_object(struct writer *w, const struct type *t, const void *obj)
{
    if (!obj) {
        PUT(w, "null");
        return;
    }
    bool any = false;
    if (!open_with(w, '{'))
        return;
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        const void *p = field_ptr(f, obj);
        if (left_out(w, f, p))
            continue;
        put_name(w, &any, f);
        if (json_write_unsaid(w, f, p) && !(f->flags & F_OMIT))
            PUT(w, "null");
        else
            json_write_field(w, f, p);
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
        json_separate(w, &any);
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
        json_separate(w, &any);
        put_str(w, v->map.v[i].k);
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
        PUT(w, "null");
        break;
    case VALUE_BOOL:
        put_bool(w, v->b);
        break;
    case VALUE_INT:
        put_i64(w, v->i);
        break;
    case VALUE_FLOAT:
        json_put_f64(w, v->f);
        break;
    case VALUE_STRING:
        json_put_text(&w->o, v->str.s, v->str.n);
        break;
    case VALUE_LIST:
        write_value_list(w, v);
        break;
    case VALUE_MAP:
        write_value_map(w, v);
        break;
    case VALUE_BIG:
        ASSERT(false); /* a number within its room */
    }
}

/* --- entry points --- */

void
json_encode(struct buf *out, const struct type *t, const void *obj, unsigned flags)
{
    struct writer w = {.flags = flags};
    out_begin(&w.o, out);
    write_object(&w, t, obj);
    out_end(&w.o);
}

void
json_encode_list(struct buf *out, const struct type *t, const void *const *objs, size_t n,
                 unsigned flags)
{
    struct writer w = {.flags = flags};
    out_begin(&w.o, out);
    bool any = false;
    if (!open_with(&w, '['))
        return;
    for (size_t i = 0; i < n; i++) {
        json_separate(&w, &any);
        write_object(&w, t, objs[i]);
    }
    close_with(&w, ']', any);
    out_end(&w.o);
}

void
json_encode_row(struct buf *out, const struct type *t, const void *obj, unsigned flags)
{
    struct writer w = {.flags = flags, .depth = 1};
    bool any = true;
    out_begin(&w.o, out);
    json_separate(&w, &any);
    write_object(&w, t, obj);
    out_end(&w.o);
}

void
json_encode_value(struct buf *out, const struct value *v, unsigned flags)
{
    struct writer w = {.flags = flags};
    out_begin(&w.o, out);
    write_value(&w, v);
    out_end(&w.o);
}
