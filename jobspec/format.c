/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical layout of a file: only blanks change, between pieces (tokens of the scanner, and
 * comments) and in front of lines. Texts of templates are never touched.
 *
 * A line of pieces is three cells: the beginning, an assignment that is whole on the line, and a
 * comment at the end. Neighbouring lines have their assignments below each other, and then their
 * comments.
 */
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "jobspec/lex.h"

enum { COMMENT = TOK_NOT + 1, INDENT = 2 };

struct piece {
    uint32_t from, to; /* bytes of the source */
    uint32_t blanks;   /* in front of it */
    uint8_t type;      /* enum tok_type, or COMMENT */
};

struct line {
    size_t lead, assign, comment,
        end; /* where each cell begins; equal to the next: there is none */
};

struct format {
    const void *ctx;
    const struct hcl_source *src;
    struct piece *v;
    size_t n, cap;
    struct line *lines;
    size_t n_lines;
};

/* --- pieces --- */

static void
piece_add(struct format *f, unsigned type, size_t from, size_t to)
{
    if (f->n == f->cap) {
        f->cap = f->cap == 0 ? 256 : f->cap * 2;
        mem_resize(f->ctx, f->v, struct piece, f->cap);
    }
    f->v[f->n++] = (struct piece){(uint32_t)from, (uint32_t)to, 0, (uint8_t)type};
}

/* The comments between two tokens. True: the last one goes to the end of its line. */
static bool
comments_add(struct format *f, size_t at, size_t to)
{
    const char *s = f->src->s;
    while (at < to) {
        size_t from = at;
        if (s[at] != '#' && s[at] != '/') {
            at++;
            continue;
        }
        bool block = s[at] == '/' && s[at + 1] == '*';
        for (at += 2; block && at < to && (s[at - 1] != '/' || s[at - 2] != '*' || at < from + 4);)
            at++;
        piece_add(f, COMMENT, from, block ? at : to);
        if (!block)
            return true;
    }
    return false;
}

static bool
ends_line(const struct format *f, const struct piece *p)
{
    return p->type == TOK_NEWLINE || (p->type == COMMENT && f->src->s[p->to - 1] == '\n');
}

/* False: a diagnostic was given. */
static bool
pieces_read(struct format *f, struct hcl_sink *sink)
{
    struct lexer *lx = mem_new(f->ctx, struct lexer);
    struct token t;
    size_t at = 0;
    if (!lex_init(lx, f->src, 0, sink))
        return false;
    for (;;) {
        lex_next(lx, &t);
        if (t.type == TOK_ERROR)
            return false;
        size_t from = t.r.start.byte, to = t.r.end.byte;
        bool open = comments_add(f, at, from);
        struct piece *last = f->n > 0 ? &f->v[f->n - 1] : NULL;
        if (t.type == TOK_NEWLINE && from > at && f->src->s[from - 1] == '\r')
            from--;
        if (last != NULL && last->type == TOK_CHEREDOC && last->to == at)
            last->to = (uint32_t)from; /* blanks behind it are its line's */
        if (last != NULL && t.type == TOK_EOF && !ends_line(f, last))
            last->to = (uint32_t)from; /* as are those that end a file */
        if (t.type == TOK_EOF)
            return true;
        if (t.type == TOK_NEWLINE && open) /* is the comment's own */
            f->v[f->n - 1].to = (uint32_t)to;
        else
            piece_add(f, t.type, from, to);
        at = to;
    }
}

/* 1: opens a bracket or a template, -1: closes one. */
static int
format_bracket(const struct piece *p)
{
    switch (p->type) {
    case TOK_LBRACE:
    case TOK_LBRACK:
    case TOK_LPAREN:
    case TOK_INTERP:
    case TOK_CONTROL:
        return 1;
    case TOK_RBRACE:
    case TOK_RBRACK:
    case TOK_RPAREN:
    case TOK_TEND:
        return -1;
    default:
        return 0;
    }
}

static int
format_net(const struct format *f, size_t from, size_t to, bool past_heredoc)
{
    int n = 0;
    for (size_t i = from; i < to && (past_heredoc || i == from || f->v[i - 1].type != TOK_OHEREDOC);
         i++)
        n += format_bracket(&f->v[i]);
    return n;
}

/* --- lines --- */

static void
line_cells(const struct format *f, struct line *l)
{
    l->assign = l->comment = l->end;
    if (l->end - l->lead > 1 && f->v[l->end - 1].type == COMMENT)
        l->assign = l->comment = l->end - 1;
    for (size_t i = l->lead + 1; i < l->comment; i++) {
        if (f->v[i].type != TOK_ASSIGN)
            continue;
        if (format_net(f, i, l->comment, true) == 0) /* else it goes on below */
            l->assign = i;
        return;
    }
}

static void
lines_make(struct format *f)
{
    size_t from = 0, k = 0;
    for (size_t i = 0; i < f->n; i++)
        f->n_lines += ends_line(f, &f->v[i]) || i + 1 == f->n;
    f->lines = mem_array(f->ctx, struct line, f->n_lines);
    for (size_t i = 0; i < f->n; i++) {
        if (!ends_line(f, &f->v[i]) && i + 1 < f->n)
            continue;
        f->lines[k] = (struct line){.lead = from, .end = i + 1};
        line_cells(f, &f->lines[k++]);
        from = i + 1;
    }
}

/* A level for each line with more opening than closing brackets, however many there are. */
static void
format_indent(struct format *f)
{
    int *open = mem_array(f->ctx, int, f->n_lines);
    size_t depth = 0;
    for (size_t k = 0; k < f->n_lines; k++) {
        const struct line *l = &f->lines[k];
        if (f->v[l->lead].type == TOK_NEWLINE)
            continue;
        int n =
            format_net(f, l->lead, l->assign, false) + format_net(f, l->assign, l->comment, true);
        while (n < 0 && depth > 0) {
            int closed = -n < open[depth - 1] ? -n : open[depth - 1];
            open[depth - 1] -= closed;
            n += closed;
            depth -= open[depth - 1] == 0;
        }
        f->v[l->lead].blanks = (uint32_t)(INDENT * depth);
        ASSERT(depth <= k);
        if (n > 0)
            open[depth++] = n;
    }
}

/* --- blanks between two pieces --- */

static bool
is_word(const struct format *f, const struct piece *p, const char *word)
{
    size_t n = strlen(word);
    return p->type == TOK_IDENT && p->to - p->from == n &&
           memcmp(f->src->s + p->from, word, n) == 0;
}

/* A minus is a sign where no operand ends before it. An arrow and the beginning of a template count
 * as operands, as everywhere else that files are laid out so. */
static bool
is_sign(const struct piece *before)
{
    if (before == NULL || (before->type >= TOK_PLUS && before->type <= TOK_NOT))
        return true;
    switch (before->type) {
    case TOK_LPAREN:
    case TOK_LBRACE:
    case TOK_LBRACK:
    case TOK_ASSIGN:
    case TOK_COLON:
    case TOK_COMMA:
    case TOK_QUESTION:
        return true;
    default:
        return false;
    }
}

/* One of them is text of a template or its border on the inner side. */
static bool
within_template(const struct piece *p, const struct piece *next)
{
    return p->type == TOK_STRING || p->type == TOK_OQUOTE || p->type == TOK_OHEREDOC ||
           next->type == TOK_STRING || next->type == TOK_CQUOTE || next->type == TOK_CHEREDOC;
}

static bool
is_template(const struct piece *p)
{
    return p->type == TOK_INTERP || p->type == TOK_CONTROL;
}

/* Rules in order: the first that says something of the pair decides. `before` NULL: `p` begins its
 * cell. */
static bool
format_apart(const struct format *f, const struct piece *before, const struct piece *p,
             const struct piece *next)
{
    if (next->type == TOK_NEWLINE || (p->type == TOK_IDENT && next->type == TOK_LPAREN) ||
        p->type == TOK_DOT || next->type == TOK_DOT || next->type == TOK_COMMA ||
        next->type == TOK_ELLIPSIS)
        return false;
    if (p->type == TOK_COMMA)
        return true;
    if (within_template(p, next))
        return false;
    if (is_word(f, p, "in") && before != NULL && before->type == TOK_IDENT)
        return true; /* of a for: what follows is a list, not an index */
    if (next->type == TOK_LBRACK &&
        (p->type == TOK_IDENT || p->type == TOK_NUMBER || format_bracket(p) < 0))
        return false;
    if (p->type == TOK_NOT)
        return false;
    if (p->type == TOK_MINUS)
        return !is_sign(before);
    if (p->type == TOK_LBRACE || next->type == TOK_RBRACE)
        return p->type != TOK_LBRACE || next->type != TOK_RBRACE;
    if ((is_template(p) && next->type == TOK_LBRACE) ||
        (p->type == TOK_RBRACE && next->type == TOK_TEND))
        return true;
    if (p->type == TOK_TEND && is_template(next))
        return false;
    return format_bracket(p) <= 0 && format_bracket(next) >= 0;
}

static void
space_cell(struct format *f, size_t from, size_t to)
{
    for (size_t i = from; i + 1 < to; i++)
        f->v[i + 1].blanks =
            format_apart(f, i > from ? &f->v[i - 1] : NULL, &f->v[i], &f->v[i + 1]);
}

/* --- columns --- */

/* Code points, and blanks in front of them. */
static size_t
format_columns(const struct format *f, size_t from, size_t to)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++) {
        n += f->v[i].blanks;
        for (size_t k = f->v[i].from; k < f->v[i].to; k++)
            n += ((unsigned char)f->src->s[k] & 0xc0) != 0x80;
    }
    return n;
}

/* The cells of neighbouring lines begin a blank behind the widest of the cells before them. */
static void
format_align(struct format *f, bool comments)
{
    size_t first = 0, widest = 0;
    size_t *width = mem_array(f->ctx, size_t, f->n_lines);
    for (size_t k = 0; k <= f->n_lines; k++) {
        const struct line *l = k < f->n_lines ? &f->lines[k] : NULL;
        if (l != NULL && (comments ? l->comment < l->end : l->assign < l->comment)) {
            width[k] = format_columns(f, l->lead, comments ? l->comment : l->assign);
            widest = width[k] > widest ? width[k] : widest;
            continue;
        }
        for (; first < k; first++) {
            const struct line *of = &f->lines[first];
            f->v[comments ? of->comment : of->assign].blanks =
                (uint32_t)(widest - width[first] + 1);
        }
        first = k + 1;
        widest = 0;
    }
}

int
hcl_format(const void *ctx, const char *name, const char *s, size_t n, struct buf *out,
           struct hcl_diags *d)
{
    auto_mem void *tmp = mem_ctx("format");
    struct hcl_body *ignored;
    bool mark = n >= 3 && memcmp(s, "\xef\xbb\xbf", 3) == 0; /* stays, and is no column */
    int rc = hcl_parse(ctx, name, SLICE(s, n), 0, &ignored, d);
    if (rc < 0)
        return rc;
    struct hcl_source src = {name, s + (mark ? 3 : 0), n - (mark ? 3 : 0)};
    struct hcl_sink sink = {.ctx = ctx, .d = d};
    struct format f = {.ctx = tmp, .src = &src};
    if (!pieces_read(&f, &sink))
        return -ERR_INVALID;
    lines_make(&f);
    for (size_t k = 0; k < f.n_lines; k++) {
        space_cell(&f, f.lines[k].lead, f.lines[k].assign);
        space_cell(&f, f.lines[k].assign, f.lines[k].comment);
    }
    format_indent(&f);
    format_align(&f, false);
    format_align(&f, true);
    buf_put(out, s, mark ? 3 : 0);
    for (size_t i = 0; i < f.n && buf_error(out) == 0; i++) {
        buf_printf(out, "%*s", (int)f.v[i].blanks, "");
        buf_put(out, src.s + f.v[i].from, f.v[i].to - f.v[i].from);
    }
    return buf_error(out);
}
