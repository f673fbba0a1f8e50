/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of a template: its memory, its limits, its mistakes. A mistake leaves everything at once,
 * as a panic does in Go: run_fail() does not return (longjmp), and all memory is the arena's,
 * which goes with the run. So no function below may hold what is not the arena's over a call that
 * can fail.
 */
#ifndef PADDOCK_TEMPLATE_RUN_H
#define PADDOCK_TEMPLATE_RUN_H

#include <setjmp.h>

#include "common/buf.h"
#include "common/regex.h"
#include "template/goval.h"
#include "template/template.h"

/* Text that grows, in the arena. */
struct text {
    char *s;
    size_t n, cap;
};

struct node;
struct node_template;

struct run_var {
    const char *name;
    struct gv v;
};

/* A call of a function that carries out a template itself: its mistakes are told inside of ours. */
struct run_frame {
    const struct run_frame *up;
    const struct node_template *tmpl;
    const struct node *node;
    const char *call;
};

struct run {
    void *ctx; /* of the arena; freed by the run's owner */
    struct run_chunk *chunks;
    size_t memory, memory_max;
    uint64_t steps;
    unsigned calls, depth, depth_max;
    const atomic_bool *stop;
    jmp_buf out_of;
    struct err *e;
    int code;

    const struct template_tree *tree; /* NULL: only memory and limits */
    const struct template_env *env;
    const struct node_template *tmpl;
    const struct node *node; /* the place that mistakes name */
    const char *call;        /* the function that runs; NULL: none does */
    const struct run_frame *frame;
    struct run_var *vars;
    size_t n_vars, cap_vars, first_var; /* those before first_var are of another template */
    enum { MISSING_INVALID, MISSING_ZERO, MISSING_ERROR } missing_key;
    struct text *out;
    size_t out_max;
    struct gv scratch;
    struct buf buf; /* of regular expressions */
    /* Carries out a template by name; its text is the result. */
    struct gv (*carry_out)(struct run *r, const char *name, size_t n, struct gv data);
    struct template_result *res;
    const void *res_ctx;
    size_t cap_missing, cap_used;
};

/* --- memory and limits --- */

void run_init(struct run *r, const void *ctx, const struct template_limits *l, struct err *e);
void run_done(struct run *r);
void *run_alloc(struct run *r, size_t n);              /* zeroed, aligned; never NULL */
void *run_bytes(struct run *r, size_t n);              /* not zeroed, for text */
char *run_dup(struct run *r, const char *s, size_t n); /* terminated */
void run_step(struct run *r, size_t n);                /* n steps of work, about 100 ns each */
void run_enter(struct run *r);                         /* one call deeper; run_leave afterwards */
void run_leave(struct run *r);
/* A mistake of the template, with its place in front, and the function if one runs. */
_Noreturn void run_fail(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A mistake whose words are all there is. */
_Noreturn void run_abort(struct run *r, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* --- text --- */

void text_put(struct run *r, struct text *t, const void *s, size_t n);
void text_putc(struct run *r, struct text *t, char c);
void text_puts(struct run *r, struct text *t, const char *s);
void text_fill(struct run *r, struct text *t, char c, size_t n);
void text_rune(struct run *r, struct text *t, uint32_t c); /* as UTF-8; U+FFFD for none */
void text_printf(struct run *r, struct text *t, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Go's strconv.Quote. */
void text_quote(struct run *r, struct text *t, const char *s, size_t n);
void text_quote_with(struct run *r, struct text *t, const char *s, size_t n, char quote,
                     bool ascii);
static inline struct gv
text_gv(const struct text *t)
{
    return GV_TEXT(t->n ? t->s : "", t->n);
}
/* A copy in the run's memory. */
static inline struct gv
text_copy(struct run *r, const char *s, size_t n)
{
    return GV_TEXT(run_dup(r, s, n), n);
}
const char *text_str(struct run *r, struct text *t); /* terminated */

#endif
