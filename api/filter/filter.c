/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions: compiling. Matching is in filter_match.c. filter.h has the grammar. In this
 * order: tokens; selectors, which are resolved against the field table as they are read, so that an
 * unknown name is an error of the request; operators; `any` and `all` with the names they bind; and
 * the levels from unary to `or`.
 *
 * Depth is bounded by FILTER_DEPTH_MAX: a filter is a stranger's text.
 */
#include "api/filter/filter.h"

#include <string.h>

#include "api/filter/filter_int.h"
#include "common/mem.h"
#include "common/num.h"

enum token {
    T_END,
    T_WORD,
    T_STRING,
    T_OPEN,
    T_CLOSE,
    T_EQ,
    T_NE,
    T_DOT,
    T_LBRACKET,
    T_RBRACKET,
    T_LBRACE,
    T_RBRACE,
    T_COMMA
};

/* A name that "any" or "all" gave. */
struct var {
    const struct var *outer;
    const char *name;
    struct spot spot;
    int slot;
};

struct parser {
    const void *ctx;
    const struct type *type;
    const char *s;     /* behind the current token */
    const char *start; /* of the text, for positions */
    const char *at;    /* the current token */
    enum token tok;
    char *text;   /* of a word or string */
    bool pointer; /* a string in "..." that begins with a slash: where a selector may be, a JSON
                     pointer */
    unsigned depth;
    const struct var *vars; /* the innermost */
    int n_vars;             /* in scope */
    struct err *e;
};

static int
filter_bad(struct parser *p, const char *what)
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
        return filter_bad(p, "unterminated string");
    p->s++;
    p->text = out;
    p->tok = T_STRING;
    p->pointer = q == '"' && out[0] == '/';
    return 0;
}

static int
filter_next_token(struct parser *p)
{
    static const struct {
        const char *s;
        enum token t;
    } ops[] = {{"==", T_EQ},    {"!=", T_NE},      {"(", T_OPEN},     {")", T_CLOSE},
               {".", T_DOT},    {"[", T_LBRACKET}, {"]", T_RBRACKET}, {"{", T_LBRACE},
               {"}", T_RBRACE}, {",", T_COMMA}};

    p->s += strspn(p->s, " \t\r\n");
    p->at = p->s;
    p->text = NULL;
    p->pointer = false;
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
        return filter_bad(p, "unexpected character");
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

static int
step_field(struct parser *p, struct selector *s, const char *name)
{
    const struct type *t = s->spot.sub;
    const struct field *f = t ? type_field(t, name, strlen(name)) : NULL;

    if (f == NULL || (f->flags & F_SECRET) != 0 || strcmp(f->wire, name) != 0)
        return err_set(p->e, -ERR_INVALID, "column %zu: there is no field '%s' to select%s%s%s%s",
                       (size_t)(p->at - p->start) + 1, name, t ? " in " : "", t ? t->name : "",
                       f != NULL && (f->flags & F_SECRET) == 0 ? ": it is spelled " : "",
                       f != NULL && (f->flags & F_SECRET) == 0 ? f->wire : "");
    s->steps[s->n++].field = f;
    s->spot = (struct spot){.type = f->type,
                            .shape = f->shape,
                            .opt = (f->flags & F_OPT) != 0,
                            .sub = f->type == FT_STRUCT ? f->sub : NULL,
                            .name = f->wire};
    return 0;
}

/* Steps into `name`: a field of a struct, a key of a map, an element of a list. */
static int
filter_step(struct parser *p, struct selector *s, const char *name)
{
    if (s->n == FILTER_PATH_MAX)
        return filter_bad(p, "the selector is too long");
    struct selector_step *st = &s->steps[s->n];
    if (s->spot.shape == FS_ONE)
        return s->spot.type == FT_STRUCT ? step_field(p, s, name)
                                         : filter_bad(p, "there is nothing to select in this");
    uint64_t at = 0;
    if (s->spot.shape == FS_LIST && num_parse_u64(name, &at) < 0)
        return filter_bad(p, "an element of a list is selected by its number");
    *st = (struct selector_step){.key = s->spot.shape == FS_MAP ? name : NULL, .index = (size_t)at};
    s->n++;
    s->spot = spot_element(&s->spot);
    return 0;
}

/* The first part: a name that is in scope, or a field. */
static int
step_first(struct parser *p, struct selector *s, const char *name)
{
    s->var = -1;
    s->spot = s->start = (struct spot){.type = FT_STRUCT, .sub = p->type, .name = p->type->name};
    for (const struct var *v = p->vars; v != NULL; v = v->outer)
        if (strcmp(v->name, name) == 0) {
            s->var = v->slot;
            s->spot = s->start = v->spot;
            return 0;
        }
    return filter_step(p, s, name);
}

/* A part of a JSON pointer as what it stands for (RFC 6901, 4): "~1" is a slash, "~0" a tilde. */
static void
filter_unescape(char *s)
{
    char *out = s;
    for (; *s; s++) {
        bool escape = s[0] == '~' && (s[1] == '0' || s[1] == '1');
        *out++ = (char)(!escape ? *s : s[1] == '1' ? '/' : '~');
        s += escape;
    }
    *out = 0;
}

static bool
pointer_char(char c)
{
    return word_char(c) ? c != '+' : (c & 0x80) != 0 || (c != 0 && strchr(".~|", c) != NULL);
}

/* "/Meta/a.b": the same as Meta["a.b"]. */
static int
parse_pointer(struct parser *p, struct selector *s, const char *text)
{
    int r = 0;

    for (const char *at = text; *at; at++)
        if (!pointer_char(*at))
            return filter_bad(p,
                              "a selector in quotes is made of letters, digits and any of -_.~:|/");
    for (const char *at = text; r == 0 && *at;) {
        size_t n = strcspn(++at, "/");
        char *part = mem_strndup(p->ctx, at, n);
        filter_unescape(part);
        if (n == 0)
            r = filter_bad(p, "a part of the selector is empty");
        else
            r = at == text + 1 ? step_first(p, s, part) : filter_step(p, s, part);
        at += n;
    }
    return r;
}

/* `first` is read already, and whether it is a JSON pointer. */
static int
parse_selector(struct parser *p, struct selector *s, const char *first, bool pointer)
{
    if (pointer)
        return parse_pointer(p, s, first);
    int r = step_first(p, s, first);

    while (r == 0 && (p->tok == T_DOT || p->tok == T_LBRACKET)) {
        bool index = p->tok == T_LBRACKET;
        r = filter_next_token(p);
        if (r < 0)
            return r;
        if (!p->text || (p->tok == T_STRING) != index)
            return filter_bad(p, "malformed selector");
        r = filter_step(p, s, p->text);
        if (r == 0)
            r = filter_next_token(p);
        if (r == 0 && index) {
            if (p->tok != T_RBRACKET)
                return filter_bad(p, "']' is missing");
            r = filter_next_token(p);
        }
    }
    return r;
}

static int
take_value(struct parser *p, struct node_expr *n)
{
    char *dot;

    if (p->tok != T_WORD && p->tok != T_STRING)
        return filter_bad(p, "a value is missing");
    n->value = p->text;
    bool word = p->tok == T_WORD;
    int r = filter_next_token(p);
    if (r == 0 && word && p->tok == T_DOT) { /* a fraction or an unquoted dotted word */
        r = filter_next_token(p);
        if (r < 0 || p->tok != T_WORD)
            return r < 0 ? r : filter_bad(p, "malformed value");
        dot = mem_printf(p->ctx, "%s.%s", n->value, p->text);
        n->value = dot;
        r = filter_next_token(p);
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
        int r = filter_next_token(p);
        return r < 0 ? r : take_value(p, n);
    }
    if (is_word(p, "is")) {
        int r = filter_next_token(p);
        if (r == 0 && is_word(p, "not")) {
            n->negate = true;
            r = filter_next_token(p);
        }
        if (r < 0 || (!is_word(p, "empty") && !is_word(p, "nil")))
            return r < 0 ? r : filter_bad(p, "'empty' or 'nil' is missing");
        n->op = is_word(p, "nil") ? OP_NIL : OP_EMPTY;
        return filter_next_token(p);
    }
    if (is_word(p, "not")) {
        negate = true;
        int r = filter_next_token(p);
        if (r < 0)
            return r;
    }
    if (is_word(p, "contains"))
        n->op = OP_CONTAINS;
    else if (is_word(p, "matches"))
        n->op = OP_MATCHES;
    else
        return filter_bad(
            p, "an operator is missing (==, !=, in, contains, matches, is empty, is nil)");
    n->negate = negate;
    int r = filter_next_token(p);
    return r < 0 ? r : take_value(p, n);
}

/* value ["not"] in selector; the value is read already. */
static int
parse_in(struct parser *p, struct node_expr *n)
{
    if (is_word(p, "not")) {
        n->negate = true;
        int r = filter_next_token(p);
        if (r < 0)
            return r;
    }
    if (!is_word(p, "in"))
        return filter_bad(p, "'in' is missing");
    int r = filter_next_token(p);
    if (r < 0)
        return r;
    if (p->tok != T_WORD && !p->pointer)
        return filter_bad(p, "a selector is missing");
    char *first = p->text;
    bool pointer = p->pointer;
    n->op = OP_CONTAINS;
    r = filter_next_token(p);
    return r < 0 ? r : parse_selector(p, &n->sel, first, pointer);
}

static int
parse_match(struct parser *p, struct node_expr *n)
{
    char *text = p->text;
    bool string = p->tok == T_STRING, pointer = p->pointer;

    if (!text)
        return filter_bad(p, "a selector or value is missing");
    int r = filter_next_token(p);
    if (r < 0)
        return r;
    /* "x" in Field, x not in Field; but Field not contains x */
    struct parser ahead = *p;
    bool in = is_word(p, "in");
    if (is_word(p, "not")) {
        if (filter_next_token(&ahead) < 0)
            return -ERR_INVALID;
        in = is_word(&ahead, "in");
    }
    if ((string && !pointer) || in) {
        n->value = text;
        r = parse_in(p, n);
    } else {
        r = parse_selector(p, &n->sel, text, pointer);
        if (r == 0)
            r = parse_operator(p, n);
    }
    return r < 0 ? r : filter_check(n, p->e);
}

static struct node_expr *parse_or(struct parser *p);

static int
filter_expect(struct parser *p, enum token t, const char *what)
{
    return p->tok == t ? filter_next_token(p) : filter_bad(p, what);
}

/* The names behind "as"; "_" is NULL. */
static int
parse_names(struct parser *p, const char *ret[2])
{
    for (int i = 0; i < 2; i++) {
        if (p->tok != T_WORD)
            return filter_bad(p, "a name is missing");
        ret[i] = strcmp(p->text, "_") == 0 ? NULL : p->text;
        int r = filter_next_token(p);
        if (r < 0 || i == 1)
            return r;
        if (p->tok != T_COMMA) {
            ret[1] = NULL;
            return 1;
        }
        if (filter_next_token(p) < 0)
            return -ERR_INVALID;
    }
    return 0;
}

static int
filter_bind(struct parser *p, struct var *v, const char *name, struct spot spot)
{
    if (name == NULL)
        return -1;
    *v = (struct var){.outer = p->vars, .name = name, .spot = spot, .slot = p->n_vars++};
    p->vars = v;
    return v->slot;
}

/* any selector as names { expr }; "any" or "all" is read already, as is the selector's first name.
 */
static int
parse_each(struct parser *p, struct node_expr *n, const char *first, bool pointer)
{
    const char *names[2];
    const struct var *outer = p->vars;
    int n_vars = p->n_vars;
    struct var key, value;

    int r = parse_selector(p, &n->sel, first, pointer);
    if (r == 0 && n->sel.spot.shape == FS_ONE)
        r = filter_bad(p, "any and all are for lists and maps");
    if (r == 0 && !is_word(p, "as"))
        r = filter_bad(p, "'as' is missing");
    if (r == 0)
        r = filter_next_token(p);
    if (r < 0 || (r = parse_names(p, names)) < 0)
        return r;
    bool map = n->sel.spot.shape == FS_MAP, one = r == 1;
    struct spot key_spot = {.type = map ? FT_STRING : FT_INT, .name = "a key"};
    if (p->n_vars + 2 > FILTER_VARS_MAX)
        return filter_bad(p, "there are too many names");
    n->key_var = filter_bind(p, &key, one && !map ? NULL : names[0], key_spot);
    n->value_var =
        filter_bind(p, &value, one && !map ? names[0] : names[1], spot_element(&n->sel.spot));
    r = filter_expect(p, T_LBRACE, "'{' is missing");
    if (r == 0 && (n->a = parse_or(p)) == NULL)
        r = -ERR_INVALID;
    if (r == 0)
        r = filter_expect(p, T_RBRACE, "'}' is missing");
    p->vars = outer;
    p->n_vars = n_vars;
    return r;
}

/* "any Field as": otherwise any is the name of a field. */
static bool
begins_each(const struct parser *p)
{
    struct parser ahead = *p;
    struct err ignored = ERR_INIT;

    ahead.e = &ignored;
    return (is_word(p, "any") || is_word(p, "all")) && filter_next_token(&ahead) == 0 &&
           (ahead.tok == T_WORD || ahead.pointer) && !is_word(&ahead, "is") &&
           !is_word(&ahead, "not") && !is_word(&ahead, "contains") && !is_word(&ahead, "matches") &&
           !is_word(&ahead, "in");
}

static struct node_expr *
filter_each(struct parser *p)
{
    struct node_expr *n = mem_new(p->ctx, struct node_expr);

    n->op = is_word(p, "any") ? OP_ANY : OP_ALL;
    if (filter_next_token(p) < 0)
        return NULL;
    const char *first = p->text;
    bool pointer = p->pointer;
    return filter_next_token(p) < 0 || parse_each(p, n, first, pointer) < 0 ? NULL : n;
}

static struct node_expr *
parse_unary(struct parser *p)
{
    struct node_expr *n = NULL;

    if (++p->depth > FILTER_DEPTH_MAX) {
        filter_bad(p, "the expression is nested too deep");
        return NULL;
    }
    if (is_word(p, "not")) {
        n = mem_new(p->ctx, struct node_expr);
        n->op = OP_NOT;
        if (filter_next_token(p) < 0 || !(n->a = parse_unary(p)))
            return NULL;
    } else if (p->tok == T_OPEN) {
        if (filter_next_token(p) < 0 || !(n = parse_or(p)))
            return NULL;
        if (p->tok != T_CLOSE) {
            filter_bad(p, "')' is missing");
            return NULL;
        }
        if (filter_next_token(p) < 0)
            return NULL;
    } else if (begins_each(p)) {
        if (!(n = filter_each(p)))
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
        if (filter_next_token(p) < 0 || !(*tail = sub(p)))
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
    else if (filter_next_token(&p) == 0)
        f->root = parse_or(&p);
    if (f->root && p.tok != T_END) {
        filter_bad(&p, "unexpected text after the expression");
        f->root = NULL;
    }
    if (!f->root) {
        err_set(e, -ERR_INVALID, "malformed expression");
        talloc_free(f);
        return NULL;
    }
    return f;
}
