/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions: compiling. Matching is in filter_match.c.
 */
#include "agent/filter.h"

#include <string.h>

#include "agent/filter_int.h"
#include "common/mem.h"

enum token { T_END, T_WORD, T_STRING, T_OPEN, T_CLOSE, T_EQ, T_NE, T_DOT, T_LBRACKET, T_RBRACKET };

struct parser {
    const void *ctx;
    const struct type *type;
    const char *s;     /* behind the current token */
    const char *start; /* of the text, for positions */
    const char *at;    /* the current token */
    enum token tok;
    char *text; /* of a word or string */
    unsigned depth;
    struct err *e;
};

static int
bad(struct parser *p, const char *what)
{
    return err_set(p->e, -ERR_INVALID, "column %zu: %s", (size_t)(p->at - p->start) + 1, what);
}

static bool
word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_-/:+", c) != NULL);
}

/* A quoted string; `q` is the quote, backslash escapes only in "...". */
static int
lex_string(struct parser *p, char q)
{
    char *out = mem_array(p->ctx, char, strlen(p->s) + 1);
    size_t n = 0;

    for (p->s++; *p->s && *p->s != q; p->s++) {
        if (*p->s == '\\' && q == '"' && p->s[1]) {
            p->s++;
            out[n++] = (char)(*p->s == 'n' ? '\n' : *p->s == 't' ? '\t' : *p->s);
        } else {
            out[n++] = *p->s;
        }
    }
    if (!*p->s)
        return bad(p, "unterminated string");
    p->s++;
    p->text = out;
    p->tok = T_STRING;
    return 0;
}

static int
next(struct parser *p)
{
    static const struct {
        const char *s;
        enum token t;
    } ops[] = {{"==", T_EQ}, {"!=", T_NE}, {"(", T_OPEN}, {")", T_CLOSE},
               {".", T_DOT}, {"[", T_LBRACKET}, {"]", T_RBRACKET}};

    p->s += strspn(p->s, " \t\r\n");
    p->at = p->s;
    p->text = NULL;
    if (!*p->s) {
        p->tok = T_END;
        return 0;
    }
    if (*p->s == '"' || *p->s == '`')
        return lex_string(p, *p->s);
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (strncmp(p->s, ops[i].s, strlen(ops[i].s)) == 0) {
            p->tok = ops[i].t;
            p->s += strlen(ops[i].s);
            return 0;
        }
    size_t n = 0;
    while (word_char(p->s[n]))
        n++;
    if (n == 0)
        return bad(p, "unexpected character");
    p->text = mem_strndup(p->ctx, p->s, n);
    p->tok = T_WORD;
    p->s += n;
    return 0;
}

static bool
is_word(const struct parser *p, const char *w)
{
    return p->tok == T_WORD && strcmp(p->text, w) == 0;
}

/* Steps into `name`: a field of a struct, or a key of a map. */
static int
step(struct parser *p, struct selector *s, const char *name)
{
    if (s->n == FILTER_PATH_MAX)
        return bad(p, "the selector is too long");
    struct selector_step *st = &s->steps[s->n];
    const struct selector_step *last = s->n ? &s->steps[s->n - 1] : NULL;

    if (last && !last->key && last->field->shape == FS_MAP) {
        st->field = last->field;
        st->key = name;
        s->n++;
        return 0;
    }
    const struct type *t = last ? last->field->sub : p->type;
    if (last && (last->field->type != FT_STRUCT || (last->field->shape == FS_LIST)))
        t = NULL;
    const struct field *f = t ? type_field(t, name, strlen(name)) : NULL;
    if (!f || f->flags & F_SECRET)
        return err_set(p->e, -ERR_INVALID, "column %zu: there is no field '%s' to select%s%s",
                       (size_t)(p->at - p->start) + 1, name, t ? " in " : "", t ? t->name : "");
    st->field = f;
    s->n++;
    return 0;
}

static int
parse_selector(struct parser *p, struct selector *s, const char *first)
{
    int r = step(p, s, first);

    while (r == 0 && (p->tok == T_DOT || p->tok == T_LBRACKET)) {
        bool index = p->tok == T_LBRACKET;
        r = next(p);
        if (r < 0)
            return r;
        if (!p->text || (p->tok == T_STRING) != index)
            return bad(p, "malformed selector");
        r = step(p, s, p->text);
        if (r == 0)
            r = next(p);
        if (r == 0 && index) {
            if (p->tok != T_RBRACKET)
                return bad(p, "']' is missing");
            r = next(p);
        }
    }
    return r;
}

static int
take_value(struct parser *p, struct node_expr *n)
{
    char *dot;

    if (p->tok != T_WORD && p->tok != T_STRING)
        return bad(p, "a value is missing");
    n->value = p->text;
    bool word = p->tok == T_WORD;
    int r = next(p);
    if (r == 0 && word && p->tok == T_DOT) { /* a fraction or an unquoted dotted word */
        r = next(p);
        if (r < 0 || p->tok != T_WORD)
            return r < 0 ? r : bad(p, "malformed value");
        dot = mem_printf(p->ctx, "%s.%s", n->value, p->text);
        n->value = dot;
        r = next(p);
    }
    return r;
}

/* selector OP value; the selector is read already. */
static int
parse_operator(struct parser *p, struct node_expr *n)
{
    bool negate = false;

    if (p->tok == T_EQ || p->tok == T_NE) {
        n->op = OP_EQUAL;
        n->negate = p->tok == T_NE;
        int r = next(p);
        return r < 0 ? r : take_value(p, n);
    }
    if (is_word(p, "is")) {
        int r = next(p);
        if (r == 0 && is_word(p, "not")) {
            n->negate = true;
            r = next(p);
        }
        if (r < 0 || !is_word(p, "empty"))
            return r < 0 ? r : bad(p, "'empty' is missing");
        n->op = OP_EMPTY;
        return next(p);
    }
    if (is_word(p, "not")) {
        negate = true;
        int r = next(p);
        if (r < 0)
            return r;
    }
    if (is_word(p, "contains"))
        n->op = OP_CONTAINS;
    else if (is_word(p, "matches"))
        n->op = OP_MATCHES;
    else
        return bad(p, "an operator is missing (==, !=, in, contains, matches, is empty)");
    n->negate = negate;
    int r = next(p);
    return r < 0 ? r : take_value(p, n);
}

/* value ["not"] in selector; the value is read already. */
static int
parse_in(struct parser *p, struct node_expr *n)
{
    if (is_word(p, "not")) {
        n->negate = true;
        int r = next(p);
        if (r < 0)
            return r;
    }
    if (!is_word(p, "in"))
        return bad(p, "'in' is missing");
    int r = next(p);
    if (r < 0)
        return r;
    if (p->tok != T_WORD)
        return bad(p, "a selector is missing");
    char *first = p->text;
    n->op = OP_CONTAINS;
    r = next(p);
    return r < 0 ? r : parse_selector(p, &n->sel, first);
}

static int
parse_match(struct parser *p, struct node_expr *n)
{
    char *text = p->text;
    bool string = p->tok == T_STRING;

    if (!text)
        return bad(p, "a selector or value is missing");
    int r = next(p);
    if (r < 0)
        return r;
    /* "x" in Field, x not in Field; but Field not contains x */
    struct parser ahead = *p;
    bool in = is_word(p, "in");
    if (is_word(p, "not")) {
        if (next(&ahead) < 0)
            return -ERR_INVALID;
        in = is_word(&ahead, "in");
    }
    if (string || in) {
        n->value = text;
        r = parse_in(p, n);
    } else {
        r = parse_selector(p, &n->sel, text);
        if (r == 0)
            r = parse_operator(p, n);
    }
    return r < 0 ? r : filter_check(p->ctx, n, p->e);
}

static struct node_expr *parse_or(struct parser *p);

static struct node_expr *
parse_unary(struct parser *p)
{
    struct node_expr *n = NULL;

    if (++p->depth > FILTER_DEPTH_MAX) {
        bad(p, "the expression is nested too deep");
        return NULL;
    }
    if (is_word(p, "not")) {
        n = mem_new(p->ctx, struct node_expr);
        n->op = OP_NOT;
        if (next(p) < 0 || !(n->a = parse_unary(p)))
            return NULL;
    } else if (p->tok == T_OPEN) {
        if (next(p) < 0 || !(n = parse_or(p)))
            return NULL;
        if (p->tok != T_CLOSE) {
            bad(p, "')' is missing");
            return NULL;
        }
        if (next(p) < 0)
            return NULL;
    } else {
        n = mem_new(p->ctx, struct node_expr);
        if (parse_match(p, n) < 0)
            return NULL;
    }
    p->depth--;
    return n;
}

/* Left-associative chains become lists, so that long ones do not nest. */
static struct node_expr *
parse_chain(struct parser *p, const char *word, enum filter_op op,
            struct node_expr *(*sub)(struct parser *))
{
    struct node_expr *first = sub(p), **tail;

    if (!first || !is_word(p, word))
        return first;
    struct node_expr *n = mem_new(p->ctx, struct node_expr);
    n->op = op;
    n->a = first;
    tail = &first->next;
    while (is_word(p, word)) {
        if (next(p) < 0 || !(*tail = sub(p)))
            return NULL;
        tail = &(*tail)->next;
    }
    return n;
}

static struct node_expr *
parse_and(struct parser *p)
{
    return parse_chain(p, "and", OP_AND, parse_unary);
}

static struct node_expr *
parse_or(struct parser *p)
{
    return parse_chain(p, "or", OP_OR, parse_and);
}

struct filter *
filter_compile(const void *ctx, const struct type *t, const char *text, struct err *e)
{
    struct filter *f = mem_new(ctx, struct filter);
    struct parser p = {.ctx = f, .type = t, .s = text, .start = text, .at = text, .e = e};

    if (strlen(text) > FILTER_BYTES_MAX)
        err_set(e, -ERR_LIMIT, "the expression is longer than %d bytes", FILTER_BYTES_MAX);
    else if (next(&p) == 0)
        f->root = parse_or(&p);
    if (f->root && p.tok != T_END) {
        bad(&p, "unexpected text after the expression");
        f->root = NULL;
    }
    if (!f->root) {
        err_set(e, -ERR_INVALID, "malformed expression");
        talloc_free(f);
        return NULL;
    }
    return f;
}
