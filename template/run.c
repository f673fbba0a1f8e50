/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of a template, from what is needed most: chunks of memory, counters of steps and calls,
 * mistakes with their places, and text that grows in the memory of the run, with Go's quotation
 * marks.
 */
#include "template/run.h"

#include <stdio.h>
#include <string.h>

#include "common/mem.h"
#include "template/limits.h"
#include "template/node.h"
#include "template/rune.h"

/* --- memory --- */

enum { CHUNK_BYTES = 8192, ALIGN = 16 };

struct run_chunk {
    size_t used, size;
    struct run_chunk *next;
    uint8_t data[] __attribute__((aligned(ALIGN)));
};

void
run_init(struct run *r, const void *ctx, const struct template_limits *l, struct err *e)
{
    static const struct template_limits none;
    l = l ? l : &none;
    r->ctx = mem_zalloc(ctx, 1, "run");
    r->memory_max = l->memory ? l->memory : TEMPLATE_MEMORY_MAX;
    r->steps = l->steps ? l->steps : TEMPLATE_STEPS_MAX;
    r->depth_max = l->depth ? l->depth : TEMPLATE_DEPTH_MAX;
    r->out_max = l->output ? l->output : TEMPLATE_OUTPUT_MAX;
    r->stop = l->stop;
    r->e = e;
}

void
run_done(struct run *r)
{
    mem_free(r->ctx);
    buf_done(&r->buf);
    r->chunks = NULL;
}

static void *
chunk_take(struct run *r, size_t n)
{
    size_t size = n > CHUNK_BYTES / 4 ? n : CHUNK_BYTES;
    if (n > r->memory_max || r->memory + size > r->memory_max)
        run_abort(r, -ERR_LIMIT, "template: needs more than %zu MiB of memory",
                  r->memory_max >> 20);
    struct run_chunk *c =
        (struct run_chunk *)mem_realloc(r->ctx, NULL, 1, sizeof(*c) + size, "chunk");
    r->memory += size;
    c->size = size;
    c->used = n;
    if (size > CHUNK_BYTES && r->chunks) { /* behind the chunk that has room */
        c->next = r->chunks->next;
        r->chunks->next = c;
    } else {
        c->next = r->chunks;
        r->chunks = c;
    }
    return c->data;
}

void *
run_bytes(struct run *r, size_t n)
{
    struct run_chunk *c = r->chunks;
    n = n > SIZE_MAX / 2 ? SIZE_MAX / 2 : (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (!c || c->size - c->used < n)
        return chunk_take(r, n);
    void *p = c->data + c->used;
    c->used += n;
    return p;
}

void *
run_alloc(struct run *r, size_t n)
{
    void *p = run_bytes(r, n);
    memset(p, 0, n);
    return p;
}

char *
run_dup(struct run *r, const char *s, size_t n)
{
    char *p = run_bytes(r, n + 1);
    if (n)
        memcpy(p, s, n);
    p[n] = 0;
    return p;
}

/* --- limits --- */

void
run_step(struct run *r, size_t n)
{
    if (n >= r->steps)
        run_abort(r, -ERR_LIMIT, "template: takes too many steps");
    r->steps -= n;
    if (r->stop && atomic_load_explicit(r->stop, memory_order_relaxed))
        run_abort(r, -ERR_LIMIT, "template: takes too long");
}

void
run_enter(struct run *r)
{
    run_step(r, 1);
    if (++r->calls > TEMPLATE_CALLS_MAX)
        run_abort(r, -ERR_LIMIT, "template: more than %d steps wait for each other",
                  TEMPLATE_CALLS_MAX);
}

void
run_leave(struct run *r)
{
    r->calls--;
}

/* --- mistakes --- */

static void
put_place(struct run *r, struct text *t, const struct node_template *tmpl, const struct node *node,
          const char *call)
{
    size_t line = 1, column = node->pos;
    auto_buf struct buf b = BUF_INIT(2 * ERR_TEXT_MAX);
    for (size_t i = node->pos; i > 0; i--)
        if (r->tree->text[i - 1] == '\n') {
            if (line == 1)
                column = node->pos - i;
            line++;
        }
    node_write(&b, node, ERR_TEXT_MAX);
    text_printf(r, t, "template: %s:%zu:%zu: executing ", r->tree->name, line, column);
    text_quote(r, t, tmpl->name, strlen(tmpl->name));
    text_puts(r, t, " at <");
    text_put(r, t, b.data, b.len);
    text_puts(r, t, ">: ");
    if (call)
        text_printf(r, t, "error calling %s: ", call);
}

static void
put_places(struct run *r, struct text *t, const struct run_frame *f)
{
    if (f) {
        put_places(r, t, f->up);
        if (t->n > ERR_TEXT_MAX)
            return;
        put_place(r, t, f->tmpl, f->node, f->call);
    }
}

static _Noreturn void
run_leave_all(struct run *r, int code, const char *words)
{
    r->code = err_set(r->e, code, "%s", words);
    longjmp(r->out_of, 1);
}

void
run_abort(struct run *r, int code, const char *fmt, ...)
{
    char words[ERR_TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    run_leave_all(r, code, words);
}

void
run_fail(struct run *r, const char *fmt, ...)
{
    char words[ERR_TEXT_MAX];
    struct text t = {NULL, 0, 0};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    r->memory_max += 1 << 20; /* for the words themselves */
    r->steps += 1 << 20;
    r->stop = NULL;
    if (r->tree) {
        put_places(r, &t, r->frame);
        put_place(r, &t, r->tmpl, r->node, r->call);
    }
    text_puts(r, &t, words);
    run_leave_all(r, -ERR_INVALID, text_str(r, &t));
}

/* --- text --- */

void
text_put(struct run *r, struct text *t, const void *s, size_t n)
{
    if (t == r->out && n > r->out_max - t->n)
        run_abort(r, -ERR_LIMIT, "template: gives more than %zu MiB", r->out_max >> 20);
    if (n > t->cap - t->n) {
        size_t cap = t->n + n + t->n / 2 + 48;
        char *more = run_bytes(r, cap);
        run_step(r, t->n / 1024);
        if (t->n)
            memcpy(more, t->s, t->n);
        t->s = more;
        t->cap = cap;
    }
    if (n)
        memcpy(t->s + t->n, s, n);
    t->n += n;
}

void
text_putc(struct run *r, struct text *t, char c)
{
    text_put(r, t, &c, 1);
}

void
text_puts(struct run *r, struct text *t, const char *s)
{
    text_put(r, t, s, strlen(s));
}

void
text_fill(struct run *r, struct text *t, char c, size_t n)
{
    char block[256];
    memset(block, c, n < sizeof(block) ? n : sizeof(block));
    run_step(r, n / 1024);
    while (n > 0) {
        size_t k = n < sizeof(block) ? n : sizeof(block);
        text_put(r, t, block, k);
        n -= k;
    }
}

void
text_rune(struct run *r, struct text *t, uint32_t c)
{
    char s[4];
    text_put(r, t, s, rune_write(c, s));
}

void
text_printf(struct run *r, struct text *t, const char *fmt, ...)
{
    char words[512], *s = words;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(words, sizeof(words), fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof(words)) {
        s = run_bytes(r, (size_t)n + 1);
        va_start(ap, fmt);
        vsnprintf(s, (size_t)n + 1, fmt, ap);
        va_end(ap);
    }
    text_put(r, t, s, (size_t)n);
}

static void
put_escaped(struct run *r, struct text *t, uint32_t c, char quote, bool ascii)
{
    static const char from[] = "\a\b\f\n\r\t\v\\", to[] = "abfnrtv\\";
    const char *k = c < 0x80 && c ? strchr(from, (int)c) : NULL;
    if (c == (uint8_t)quote || k) {
        text_putc(r, t, '\\');
        text_putc(r, t, k ? to[k - from] : quote);
    } else if (rune_print(c) && (c < 0x80 || !ascii))
        text_rune(r, t, c);
    else if (c < ' ' || c == 0x7f)
        text_printf(r, t, "\\x%02x", c);
    else if (c < 0x10000)
        text_printf(r, t, "\\u%04x", c);
    else
        text_printf(r, t, "\\U%08x", c);
}

void
text_quote_with(struct run *r, struct text *t, const char *s, size_t n, char quote, bool ascii)
{
    text_putc(r, t, quote);
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = rune_take(s + i, n - i, &c);
        if (c == RUNE_BAD && len == 1)
            text_printf(r, t, "\\x%02x", (uint8_t)s[i]);
        else
            put_escaped(r, t, c, quote, ascii);
        i += len;
    }
    text_putc(r, t, quote);
}

void
text_quote(struct run *r, struct text *t, const char *s, size_t n)
{
    text_quote_with(r, t, s, n, '"', false);
}

const char *
text_str(struct run *r, struct text *t)
{
    text_put(r, t, "", 1);
    t->n--;
    return t->s;
}
