/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser of HCL: templates, that is quoted strings and heredocs. First a flat list of parts is
 * read, then indentation and "~" are stripped, then directives are nested.
 */
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "jobspec/parse.h"

enum part_kind { PART_TEXT, PART_EXPR, PART_IF, PART_ELSE, PART_ENDIF, PART_FOR, PART_ENDFOR };

struct part {
    enum part_kind kind;
    bool bol; /* TEXT of a heredoc that starts a line */
    bool trim_l, trim_r;
    const char *s; /* TEXT, without escapes */
    size_t n;
    struct expr *e; /* EXPR: EX_INTERP; IF: the condition; FOR: EX_TFOR without its body */
    struct hcl_range r;
};

struct parts {
    struct part *v;
    size_t n;
    size_t at; /* while nesting */
};

static struct part *
add_part(struct parser *p, struct parts *ps, enum part_kind kind, const struct hcl_range *r)
{
    if ((ps->n & (ps->n - 1)) == 0)
        mem_resize(p->ctx, ps->v, struct part, ps->n > 0 ? ps->n * 2 : 1);
    struct part *q = &ps->v[ps->n++];
    memset(q, 0, sizeof(*q));
    q->kind = kind;
    q->r = *r;
    return q;
}

/* --- escapes --- */

static void
bad_escape(struct parser *p, const struct hcl_range *r, size_t at, size_t n, const char *detail)
{
    struct hcl_range e = *r;
    const char *s = p->src->s + r->start.byte;
    for (size_t i = 0; i < at; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            e.start.col++;
    e.start.byte += (uint32_t)at;
    e.end = e.start;
    e.end.byte += (uint32_t)n;
    e.end.col += (uint32_t)n;
    parse_error(p, &e, "Invalid escape sequence", detail);
}

static size_t
put_utf8(char *out, uint32_t u)
{
    if (u < 0x80) {
        out[0] = (char)u;
        return 1;
    }
    size_t n = u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, u >>= 6)
        out[i] = (char)(0x80 | (u & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xff) | u);
    return n;
}

/* \uNNNN and \UNNNNNNNN at s; the code point, or 0 when it is none that a string may hold. */
static uint32_t
hex_escape(const char *s, size_t n, size_t digits)
{
    uint32_t u = 0;
    if (n < digits)
        return 0;
    for (size_t i = 0; i < digits; i++) {
        char c = s[i];
        uint32_t d = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                            : 16;
        if (d == 16 || u > 0x110000)
            return 0;
        u = u << 4 | d;
    }
    return u > 0x10ffff || (u >= 0xd800 && u < 0xe000) ? 0 : u;
}

/* One "\x" at byte `at` of the text; bytes taken, 0 after a diagnostic. */
static size_t
parse_tmpl_backslash(struct parser *p, const struct hcl_range *r, size_t at, char *out, size_t *len)
{
    static const char from[] = "nrt\"\\", to[] = "\n\r\t\"\\";
    const char *s = p->src->s + r->start.byte;
    size_t n = r->end.byte - r->start.byte;
    char c = at + 1 < n ? s[at + 1] : '\0';
    const char *f = c != '\0' ? strchr(from, c) : NULL;
    if (f != NULL) {
        out[(*len)++] = to[f - from];
        return 2;
    }
    if (c == 'u' || c == 'U') {
        size_t digits = c == 'u' ? 4 : 8;
        uint32_t u = hex_escape(s + at + 2, n - at - 2, digits);
        if (u != 0) {
            *len += put_utf8(out + *len, u);
            return 2 + digits;
        }
        bad_escape(p, r, at, 2, "\\u takes four and \\U eight hexadecimal digits of a character.");
        return 0;
    }
    bad_escape(p, r, at, 2, "Only \\n \\r \\t \\\" \\\\ \\uNNNN and \\UNNNNNNNN are known.");
    return 0;
}

/* Raw text to what it means. False after a diagnostic. */
static bool
parse_tmpl_unescape(struct parser *p, const struct hcl_range *r, bool quoted, const char **ret,
                    size_t *ret_n)
{
    const char *s = p->src->s + r->start.byte;
    size_t n = r->end.byte - r->start.byte, len = 0;
    char *out = mem_zalloc_array(p->ctx, 1, n + 1, "text"); /* never longer than the raw text */
    for (size_t i = 0; i < n;) {
        char c = s[i];
        if (c == '\\' && quoted) {
            size_t took = parse_tmpl_backslash(p, r, i, out, &len);
            if (took == 0)
                return false;
            i += took;
        } else if (!p->lx.literal && (c == '$' || c == '%') && i + 2 < n && s[i + 1] == c &&
                   s[i + 2] == '{') {
            out[len++] = c;
            out[len++] = '{';
            i += 3;
        } else if (c == '\r' && !quoted && i + 1 < n && s[i + 1] == '\n') {
            i++;
        } else {
            out[len++] = c;
            i++;
        }
    }
    *ret = out;
    *ret_n = len;
    return true;
}

/* --- reading parts --- */

static bool
parse_tmpl_word(struct parser *p, const char *w)
{
    size_t n = strlen(w);
    return p->tok.type == TOK_IDENT && p->tok.r.end.byte - p->tok.r.start.byte == n &&
           memcmp(p->src->s + p->tok.r.start.byte, w, n) == 0;
}

/* After "%{". */
static bool
read_control(struct parser *p, struct part *q)
{
    if (parse_tmpl_word(p, "if")) {
        q->kind = PART_IF;
        parse_next(p);
        q->e = parse_expr(p);
        return q->e != NULL;
    }
    if (parse_tmpl_word(p, "for")) {
        q->kind = PART_FOR;
        q->e = parse_node(p, EX_TFOR, &q->r);
        return q->e != NULL && parse_for_intro(p, q->e);
    }
    if (parse_tmpl_word(p, "else"))
        q->kind = PART_ELSE;
    else if (parse_tmpl_word(p, "endif"))
        q->kind = PART_ENDIF;
    else if (parse_tmpl_word(p, "endfor"))
        q->kind = PART_ENDFOR;
    else {
        parse_expected(p, "Invalid template directive", "if, else, endif, for or endfor");
        return false;
    }
    parse_next(p);
    return true;
}

/* At "${" or "%{". */
static bool
read_sequence(struct parser *p, struct parts *ps)
{
    bool control = p->tok.type == TOK_CONTROL, skip = p->skip_nl;
    struct part q = {.kind = PART_EXPR, .r = p->tok.r, .trim_l = p->tok.trim};
    if (!parse_enter(p))
        return false;
    p->skip_nl = true;
    parse_next(p);
    if (control) {
        if (!read_control(p, &q))
            return false;
    } else {
        q.e = parse_node(p, EX_INTERP, &q.r);
        if (q.e == NULL || (q.e->a = parse_expr(p)) == NULL)
            return false;
    }
    if (p->tok.type != TOK_TEND) {
        parse_expected(p, "Unclosed template",
                       "\"}\" after the expression (write $${ for a literal ${)");
        return false;
    }
    q.trim_r = p->tok.trim;
    q.r.end = p->tok.r.end;
    p->skip_nl = skip;
    parse_next(p);
    parse_leave(p);
    if (!control && parse_done(p, q.e) == NULL)
        return false;
    if (!control)
        q.e->r = q.r;
    *add_part(p, ps, q.kind, &q.r) = q;
    return true;
}

static bool
read_parts(struct parser *p, struct parts *ps, enum tok_type end)
{
    while (p->tok.type != end) {
        if (p->tok.type == TOK_STRING) {
            struct part *q = add_part(p, ps, PART_TEXT, &p->tok.r);
            q->bol = p->tok.bol;
            if (!parse_tmpl_unescape(p, &p->tok.r, end == TOK_CQUOTE, &q->s, &q->n))
                return false;
            parse_next(p);
        } else if (p->tok.type == TOK_INTERP || p->tok.type == TOK_CONTROL) {
            if (!read_sequence(p, ps))
                return false;
        } else {
            parse_expected(p, "Invalid template", "text");
            return false;
        }
    }
    return true;
}

/* --- stripping --- */

static size_t
indent_of(const struct part *q)
{
    size_t i = 0;
    while (i < q->n && (q->s[i] == ' ' || q->s[i] == '\t'))
        i++;
    return i;
}

/* <<-: the least indentation of the lines that are not blank goes away everywhere. */
static void
strip_indent(struct parts *ps)
{
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < ps->n; i++) {
        struct part *q = &ps->v[i];
        bool after_text = i > 0 && ps->v[i - 1].kind == PART_TEXT && ps->v[i - 1].n > 0 &&
                          ps->v[i - 1].s[ps->v[i - 1].n - 1] == '\n';
        if (q->kind != PART_TEXT) {
            if (i == 0 || after_text)
                least = 0; /* a line that starts with a template */
            continue;
        }
        size_t n = indent_of(q);
        bool blank = n < q->n && q->s[n] == '\n';
        if (q->bol && !blank && n < least)
            least = n;
    }
    if (least == SIZE_MAX)
        return;
    for (size_t i = 0; i < ps->n; i++) {
        struct part *q = &ps->v[i];
        if (q->kind != PART_TEXT || !q->bol)
            continue;
        size_t n = indent_of(q);
        n = n < least ? n : least;
        q->s += n;
        q->n -= n;
    }
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void
strip_tilde(struct parts *ps)
{
    for (size_t i = 0; i < ps->n; i++) {
        if (ps->v[i].trim_l && i > 0 && ps->v[i - 1].kind == PART_TEXT) {
            struct part *q = &ps->v[i - 1];
            while (q->n > 0 && is_space(q->s[q->n - 1]))
                q->n--;
        }
        if (ps->v[i].trim_r && i + 1 < ps->n && ps->v[i + 1].kind == PART_TEXT) {
            struct part *q = &ps->v[i + 1];
            while (q->n > 0 && is_space(*q->s)) {
                q->s++;
                q->n--;
            }
        }
    }
}

/* --- nesting --- */

static struct expr *parse_tmpl_nest(struct parser *p, struct parts *ps, const struct hcl_range *r);

/* Neighbouring texts become one literal. */
static bool
nest_text(struct parser *p, struct parts *ps, struct expr *e)
{
    auto_buf struct buf b = BUF_INIT(HCL_SOURCE_MAX + 1);
    ASSERT(ps->at < ps->n);
    struct hcl_range r = ps->v[ps->at].r;
    while (ps->at < ps->n && ps->v[ps->at].kind == PART_TEXT) {
        buf_put(&b, ps->v[ps->at].s, ps->v[ps->at].n);
        r.end = ps->v[ps->at++].r.end;
    }
    if (b.len == 0)
        return true;
    struct expr *lit = parse_node(p, EX_LITERAL, &r);
    if (lit == NULL)
        return false;
    lit->value = value_strn(p->ctx, (const char *)b.data, b.len);
    parse_push(p, e, lit);
    return true;
}

static bool
nest_end(struct parser *p, struct parts *ps, enum part_kind kind, const struct hcl_range *open,
         const char *what)
{
    if (ps->at < ps->n && ps->v[ps->at].kind == kind) {
        ps->at++;
        return true;
    }
    parse_error(p, ps->at < ps->n ? &ps->v[ps->at].r : open, "Unclosed template directive", what);
    return false;
}

static bool
nest_if(struct parser *p, struct parts *ps, struct expr *e)
{
    const struct part *q = &ps->v[ps->at++];
    struct expr *t = parse_node(p, EX_TIF, &q->r);
    if (t == NULL)
        return false;
    t->a = q->e;
    if ((t->b = parse_tmpl_nest(p, ps, &q->r)) == NULL)
        return false;
    if (ps->at < ps->n && ps->v[ps->at].kind == PART_ELSE) {
        ps->at++;
        if ((t->c = parse_tmpl_nest(p, ps, &q->r)) == NULL)
            return false;
    }
    if (!nest_end(p, ps, PART_ENDIF, &q->r, "%{ if } needs its %{ endif }.") ||
        parse_done(p, t) == NULL)
        return false;
    t->r = q->r;
    parse_push(p, e, t);
    return true;
}

static bool
nest_for(struct parser *p, struct parts *ps, struct expr *e)
{
    const struct part *q = &ps->v[ps->at++];
    struct expr *t = q->e;
    if ((t->b = parse_tmpl_nest(p, ps, &q->r)) == NULL ||
        !nest_end(p, ps, PART_ENDFOR, &q->r, "%{ for } needs its %{ endfor }.") ||
        parse_done(p, t) == NULL)
        return false;
    t->r = q->r;
    parse_push(p, e, t);
    return true;
}

/* Up to the end or a directive that ends or divides an open one. */
static struct expr *
parse_tmpl_nest(struct parser *p, struct parts *ps, const struct hcl_range *r)
{
    struct expr *e = parse_node(p, EX_TEMPLATE, r);
    if (e == NULL || !parse_enter(p))
        return NULL;
    bool ok = true;
    while (ok && ps->at < ps->n) {
        struct part *q = &ps->v[ps->at];
        if (q->kind == PART_TEXT) {
            ok = nest_text(p, ps, e);
        } else if (q->kind == PART_EXPR) {
            parse_push(p, e, q->e);
            ps->at++;
        } else if (q->kind == PART_IF) {
            ok = nest_if(p, ps, e);
        } else if (q->kind == PART_FOR) {
            ok = nest_for(p, ps, e);
        } else {
            break;
        }
    }
    parse_leave(p);
    if (!ok || parse_done(p, e) == NULL)
        return NULL;
    e->r = *r;
    return e;
}

struct expr *
parse_template(struct parser *p)
{
    struct token open = p->tok;
    enum tok_type end = open.type == TOK_OQUOTE ? TOK_CQUOTE : TOK_CHEREDOC;
    struct parts ps = {NULL, 0, 0};
    parse_next(p);
    if (!read_parts(p, &ps, end))
        return NULL;
    struct hcl_range r = range_join(&open.r, &p->tok.r);
    if (open.indent)
        strip_indent(&ps);
    strip_tilde(&ps);
    struct expr *e = parse_tmpl_nest(p, &ps, &r);
    if (e == NULL)
        return NULL;
    if (ps.at < ps.n) {
        parse_error(p, &ps.v[ps.at].r, "Unexpected template directive",
                    "It ends or divides an %{ if } or %{ for } that is not open.");
        return NULL;
    }
    parse_next(p);
    if (e->n == 0 || (e->n == 1 && e->list[0]->kind == EX_LITERAL)) {
        struct value *v = e->n == 0 ? value_str(p->ctx, "") : e->list[0]->value;
        e->kind = EX_LITERAL;
        e->value = v;
        e->n = 0;
        e->depth = 1;
    }
    e->quoted = true;
    mem_free(ps.v);
    return e;
}
