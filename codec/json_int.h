/* SPDX-License-Identifier: Apache-2.0
 *
 * What writes JSON: structs (json_write.c), and msgpack as it is (lean.c).
 */
#ifndef PADDOCK_CODEC_JSON_INT_H
#define PADDOCK_CODEC_JSON_INT_H

#include "codec/intern.h"
#include "codec/out.h"

struct writer {
    struct out o;
    unsigned flags;
    unsigned depth;
};

extern const char json_zero[32]; /* what any hidden or absent field looks like */

void json_put_f64(struct writer *w, double v);
void json_put_text(struct out *o, const char *s, size_t n); /* quoted and escaped */
void json_write_bytes(struct writer *w, const struct bytes *b);
void json_write_time(struct writer *w, int64_t ns);
void json_write_field(struct writer *w, const struct field *f, const void *p);

#define PUT(w, text) out_put(&(w)->o, text, sizeof(text) - 1)

static inline void
put_u64(struct writer *w, uint64_t v, bool neg)
{
    char t[24], *p = t + sizeof(t);
    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    if (neg)
        *--p = '-';
    out_put(&w->o, p, (size_t)(t + sizeof(t) - p));
}

static inline void
put_i64(struct writer *w, int64_t v)
{
    put_u64(w, v < 0 ? ~(uint64_t)v + 1 : (uint64_t)v, v < 0);
}

static inline void
put_bool(struct writer *w, bool b)
{
    if (b)
        PUT(w, "true");
    else
        PUT(w, "false");
}

/* --- layout --- */

static inline void
json_newline(struct writer *w)
{
    if (!(w->flags & JSON_PRETTY))
        return;
    out_putc(&w->o, '\n');
    for (unsigned i = 0; i < w->depth; i++)
        PUT(w, "    ");
}

/* False when the tree is deeper than any decoder accepts: the buffer then holds the error. */
static inline bool
open_with(struct writer *w, char c)
{
    if (w->depth >= CODEC_DEPTH_MAX) {
        out_end(&w->o);
        w->o.b->error = -ERR_LIMIT;
        w->o.p = w->o.end = NULL;
        return false;
    }
    out_putc(&w->o, c);
    w->depth++;
    return true;
}

static inline void
close_with(struct writer *w, char c, bool any)
{
    w->depth--;
    if (any)
        json_newline(w);
    out_putc(&w->o, c);
}

static inline void
json_separate(struct writer *w, bool *any)
{
    if (*any)
        out_putc(&w->o, ',');
    *any = true;
    json_newline(w);
}

static inline void
put_colon(struct writer *w)
{
    if (w->flags & JSON_PRETTY)
        PUT(w, ": ");
    else
        out_putc(&w->o, ':');
}

/* The name of a member, after the separator from the member before. */
static inline void
put_name(struct writer *w, bool *any, const struct field *f)
{
    size_t n = f->wire_len;
    bool comma = *any && !(w->flags & JSON_PRETTY);
    if (w->flags & JSON_PRETTY)
        json_separate(w, any);
    *any = true;
    if (out_need(&w->o, n + 4)) {
        uint8_t *p = w->o.p;
        *p = ',';
        p += comma;
        *p++ = '"';
        copy_short(p, f->wire, n);
        p += n;
        *p++ = '"';
        *p++ = ':';
        w->o.p = p;
    }
    if (w->flags & JSON_PRETTY)
        out_putc(&w->o, ' ');
}

#endif
