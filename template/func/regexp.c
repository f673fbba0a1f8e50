/* SPDX-License-Identifier: Apache-2.0 */
#include "template/func/regexp.h"

#include "common/mem.h"
#include "template/limits.h"
#include "template/rune.h"

void
regexp_open(struct run *r, struct regexp *x, struct gv pattern)
{
    struct err e = ERR_INIT;
    run_step(r, 16 + pattern.n);
    *x = (struct regexp){r, regex_new(r->ctx, pattern.s, pattern.n, TEMPLATE_REGEX_STEPS_MAX, &e)};
    if (!x->rx)
        run_fail(r, "error parsing regexp: %s", e.text);
}

void
regexp_close(struct regexp *x)
{
    mem_free(x->rx);
}

bool
regexp_find(struct regexp *x, struct gv s, size_t at, size_t *from, size_t *to)
{
    struct err e = ERR_INIT;
    run_step(x->r, 1 + (s.n - at) / 64);
    int rc = regex_find(x->rx, SLICE(s.s, s.n), at, from, to, &e);
    if (rc < 0)
        run_fail(x->r, "%s", e.text);
    return rc > 0;
}

/* Returns where to look for the next match behind one from `at`, which ended at `to`. */
static size_t
next_start(struct gv s, size_t at, size_t to)
{
    uint32_t c;
    size_t width = at < s.n ? rune_take(s.s + at, s.n - at, &c) : 1;
    return at + width > to ? at + width : to;
}

size_t
regexp_find_all(struct regexp *x, struct gv s, int64_t limit, size_t (**ret)[2])
{
    size_t n = 0, cap = 0, from, to, last = SIZE_MAX;
    *ret = NULL;
    for (size_t at = 0; at <= s.n && (limit < 0 || (int64_t)n < limit);) {
        if (!regexp_find(x, s, at, &from, &to))
            break;
        bool counts = to > from || from != last;
        last = to;
        if (counts) {
            if (n == cap) {
                size_t(*more)[2] = run_bytes(x->r, (2 * cap + 8) * sizeof(*more));
                for (size_t i = 0; i < n; i++) {
                    more[i][0] = (*ret)[i][0];
                    more[i][1] = (*ret)[i][1];
                }
                *ret = more;
                cap = 2 * cap + 8;
            }
            (*ret)[n][0] = from;
            (*ret)[n++][1] = to;
        }
        at = to > at ? to : next_start(s, at, to);
    }
    return n;
}

static void
put_expanded(struct regexp *x, struct text *t, const char *with)
{
    struct err e = ERR_INIT;
    struct buf *b = &x->r->buf;
    buf_reset(b);
    b->max = x->r->memory_max;
    if (regex_expand(x->rx, with, b, &e))
        run_fail(x->r, "%s", e.text);
    text_put(x->r, t, b->data, b->len);
}

struct gv
regexp_replace(struct regexp *x, struct gv s, struct gv with, bool literal)
{
    struct text t = {NULL, 0, 0};
    size_t end = 0, from, to;
    const char *pattern = run_dup(x->r, with.s, with.n);
    for (size_t at = 0; at <= s.n && regexp_find(x, s, at, &from, &to);) {
        text_put(x->r, &t, s.s + end, from - end);
        if (to > end || from == 0)
            literal ? text_put(x->r, &t, with.s, with.n) : put_expanded(x, &t, pattern);
        end = to;
        at = next_start(s, at, to);
    }
    text_put(x->r, &t, s.s + end, s.n - end);
    return text_gv(&t);
}
