/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser of HCL: expressions. See parse.h. From the inside out: primaries (numbers, calls,
 * names, `for`, tuples, objects, parentheses), what follows a value (attributes, indices, splats),
 * unary and binary operators by precedence, and parse_expr() with the conditional.
 *
 * Within brackets a new line is a blank: `skip_nl` is set there, and restored before the token
 * behind the closing bracket is read.
 */
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "jobspec/number.h"
#include "jobspec/parse.h"

static struct expr *parse_unary(struct parser *p);

static bool
is_word(const struct parser *p, const char *word)
{
    size_t n = strlen(word);
    return p->tok.type == TOK_IDENT && p->tok.r.end.byte - p->tok.r.start.byte == n &&
           memcmp(p->src->s + p->tok.r.start.byte, word, n) == 0;
}

static struct expr *
parse_expr_literal(struct parser *p, const struct hcl_range *r, struct value *v)
{
    struct expr *e = parse_node(p, EX_LITERAL, r);
    if (e != NULL)
        e->value = v;
    return e;
}

static struct expr *
parse_number(struct parser *p)
{
    struct hcl_range r = p->tok.r;
    char *text = parse_text(p, &r);
    struct value *v = number_parse(p->ctx, text);
    struct expr *e = v != NULL ? parse_expr_literal(p, &r, v) : NULL;
    if (v == NULL)
        parse_error(p, &r, "Invalid number", "This is not a number, or one that is out of range.");
    if (e != NULL)
        parse_next(p);
    return e;
}

/* Passes the closing bracket `end` in the newline mode of what is around it. */
static bool
close_bracket(struct parser *p, enum tok_type end, bool skip_nl, const char *what)
{
    if (p->tok.type != end) {
        parse_expected(p, "Unclosed bracket", what);
        return false;
    }
    p->skip_nl = skip_nl;
    parse_next(p);
    parse_leave(p);
    return true;
}

/* After "(": arguments and ")". */
static struct expr *
parse_call(struct parser *p, const char *name, const struct hcl_range *name_r)
{
    struct expr *e = parse_node(p, EX_CALL, name_r);
    if (e == NULL || !parse_enter(p))
        return NULL;
    e->name = name;
    e->name_r = *name_r;
    bool skip = p->skip_nl;
    p->skip_nl = true;
    parse_next(p);
    while (p->tok.type != TOK_RPAREN) {
        struct expr *a = parse_expr(p);
        if (a == NULL)
            return NULL;
        parse_push(p, e, a);
        if (p->tok.type == TOK_ELLIPSIS) {
            e->flag = true;
            parse_next(p);
            break;
        }
        if (p->tok.type != TOK_COMMA)
            break;
        parse_next(p);
    }
    if (!close_bracket(p, TOK_RPAREN, skip, "a comma or \")\" after an argument of the function"))
        return NULL;
    return parse_done(p, e);
}

static struct expr *
parse_ident(struct parser *p)
{
    struct hcl_range r = p->tok.r;
    char *name = parse_text(p, &r);
    parse_next(p);
    if (p->tok.type == TOK_LPAREN)
        return parse_call(p, name, &r);
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
        return parse_expr_literal(p, &r, value_bool(p->ctx, name[0] == 't'));
    if (strcmp(name, "null") == 0)
        return parse_expr_literal(p, &r, value_null(p->ctx));
    struct expr *e = parse_node(p, EX_VAR, &r);
    if (e != NULL) {
        e->name = name;
        e->name_r = r;
    }
    return e;
}

/* "for k, v in": at "for"; fills names and a. Also for %{ for }. */
bool
parse_for_intro(struct parser *p, struct expr *e)
{
    parse_next(p);
    for (int i = 0; i < 2; i++) {
        if (p->tok.type != TOK_IDENT) {
            parse_expected(p, "Invalid 'for'", "the name of a variable");
            return false;
        }
        e->name2 = e->name;
        e->name_r = p->tok.r;
        e->name = parse_text(p, &p->tok.r);
        parse_next(p);
        if (i > 0 || p->tok.type != TOK_COMMA)
            break;
        parse_next(p);
    }
    if (!is_word(p, "in")) {
        parse_expected(p, "Invalid 'for'", "\"in\"");
        return false;
    }
    parse_next(p);
    e->a = parse_expr(p);
    return e->a != NULL;
}

/* At "for", after "[" or "{"; `skip` is the newline mode to come back to. */
static struct expr *
parse_for(struct parser *p, const struct hcl_range *open, bool object, bool skip)
{
    struct expr *e = parse_node(p, EX_FOR, open);
    p->skip_nl = true;
    if (e == NULL || !parse_for_intro(p, e))
        return NULL;
    if (p->tok.type != TOK_COLON) {
        parse_expected(p, "Invalid 'for'", "\":\" after the collection");
        return NULL;
    }
    parse_next(p);
    e->c = parse_expr(p);
    if (e->c == NULL)
        return NULL;
    if (object) {
        if (p->tok.type != TOK_ARROW) {
            parse_expected(p, "Invalid 'for'", "\"=>\" between the key and the value of an object");
            return NULL;
        }
        parse_next(p);
        e->b = e->c;
        e->c = parse_expr(p);
        if (e->c == NULL)
            return NULL;
        if (p->tok.type == TOK_ELLIPSIS) {
            e->flag = true;
            parse_next(p);
        }
    }
    if (is_word(p, "if")) {
        parse_next(p);
        e->d = parse_expr(p);
        if (e->d == NULL)
            return NULL;
    }
    if (!close_bracket(p, object ? TOK_RBRACE : TOK_RBRACK, skip,
                       "the end of the 'for' expression"))
        return NULL;
    return parse_done(p, e);
}

static struct expr *
parse_tuple(struct parser *p)
{
    struct hcl_range open = p->tok.r;
    bool skip = p->skip_nl;
    if (!parse_enter(p))
        return NULL;
    p->skip_nl = true;
    parse_next(p);
    if (is_word(p, "for"))
        return parse_for(p, &open, false, skip);
    struct expr *e = parse_node(p, EX_TUPLE, &open);
    if (e == NULL)
        return NULL;
    while (p->tok.type != TOK_RBRACK) {
        struct expr *item = parse_expr(p);
        if (item == NULL)
            return NULL;
        parse_push(p, e, item);
        if (p->tok.type != TOK_COMMA)
            break;
        parse_next(p);
    }
    if (!close_bracket(p, TOK_RBRACK, skip, "a comma or \"]\" after an element"))
        return NULL;
    return parse_done(p, e);
}

static bool
parse_object_item(struct parser *p, struct expr *e)
{
    struct expr *k = parse_expr(p);
    if (k == NULL)
        return false;
    if (k->kind == EX_VAR) {
        k->kind = EX_LITERAL;
        k->value = value_str(p->ctx, k->name);
    }
    if (p->tok.type != TOK_ASSIGN && p->tok.type != TOK_COLON) {
        parse_expected(p, "Invalid object", "\"=\" or \":\" after a key");
        return false;
    }
    parse_next(p);
    struct expr *v = parse_expr(p);
    if (v == NULL)
        return false;
    parse_push(p, e, k);
    parse_push(p, e, v);
    if (p->tok.type == TOK_COMMA) {
        parse_next(p);
        return true;
    }
    if (p->tok.type == TOK_NEWLINE || p->tok.type == TOK_RBRACE)
        return true;
    parse_expected(p, "Invalid object", "a comma, a new line or \"}\" after a value");
    return false;
}

static struct expr *
parse_object(struct parser *p)
{
    struct hcl_range open = p->tok.r;
    bool skip = p->skip_nl;
    if (!parse_enter(p))
        return NULL;
    p->skip_nl = false;
    parse_next(p);
    while (p->tok.type == TOK_NEWLINE)
        parse_next(p);
    if (is_word(p, "for"))
        return parse_for(p, &open, true, skip);
    struct expr *e = parse_node(p, EX_OBJECT, &open);
    if (e == NULL)
        return NULL;
    for (;;) {
        while (p->tok.type == TOK_NEWLINE)
            parse_next(p);
        if (p->tok.type == TOK_RBRACE)
            break;
        if (p->tok.type == TOK_EOF) {
            parse_error(p, &open, "Unclosed object", "No closing brace was found for this object.");
            return NULL;
        }
        if (!parse_object_item(p, e))
            return NULL;
    }
    if (!close_bracket(p, TOK_RBRACE, skip, "\"}\""))
        return NULL;
    return parse_done(p, e);
}

static struct expr *
parse_paren(struct parser *p)
{
    struct expr *e = parse_node(p, EX_PAREN, &p->tok.r);
    if (e == NULL || !parse_enter(p))
        return NULL;
    bool skip = p->skip_nl;
    p->skip_nl = true;
    parse_next(p);
    e->a = parse_expr(p);
    if (e->a == NULL || !close_bracket(p, TOK_RPAREN, skip, "\")\""))
        return NULL;
    return parse_done(p, e);
}

static struct expr *
parse_primary(struct parser *p)
{
    switch (p->tok.type) {
    case TOK_NUMBER:
        return parse_number(p);
    case TOK_OQUOTE:
    case TOK_OHEREDOC:
        return parse_template(p);
    case TOK_IDENT:
        return parse_ident(p);
    case TOK_LPAREN:
        return parse_paren(p);
    case TOK_LBRACK:
        return parse_tuple(p);
    case TOK_LBRACE:
        return parse_object(p);
    default:
        parse_expected(p, "Invalid expression", "the start of an expression");
        return NULL;
    }
}

/* --- what follows a value: .name .0 .* [i] [*] --- */

static struct expr *
attr_of(struct parser *p, struct expr *e)
{
    struct expr *a = parse_node(p, EX_ATTR, &e->r);
    if (a == NULL)
        return NULL;
    a->a = e;
    a->name_r = p->tok.r;
    a->name = parse_text(p, &p->tok.r);
    parse_next(p);
    return parse_done(p, a);
}

/* ".0", and ".0.1", which the scanner takes for one number. */
static struct expr *
legacy_index(struct parser *p, struct expr *e)
{
    char *text = parse_text(p, &p->tok.r);
    struct hcl_range r = p->tok.r;
    parse_next(p);
    for (char *s = text, *dot; s != NULL; s = dot) {
        dot = strchr(s, '.');
        if (dot != NULL)
            *dot++ = '\0';
        int64_t i;
        struct expr *idx = parse_node(p, EX_INDEX, &e->r);
        if (idx == NULL)
            return NULL;
        if (num_parse_i64(s, &i) != 0) {
            parse_error(p, &r, "Invalid index", "An index is a whole number.");
            return NULL;
        }
        idx->a = e;
        idx->b = parse_expr_literal(p, &r, value_int(p->ctx, i));
        if (idx->b == NULL || (e = parse_done(p, idx)) == NULL)
            return NULL;
    }
    return e;
}

static struct expr *parse_postfix(struct parser *p, struct expr *e);

/* At "*" of ".*" (`full` false) or after "[*]". */
static struct expr *
parse_splat(struct parser *p, struct expr *e, bool full)
{
    struct expr *s = parse_node(p, EX_SPLAT, &e->r);
    struct expr *item = parse_node(p, EX_ITEM, &p->tok.r);
    if (s == NULL || item == NULL || !parse_enter(p))
        return NULL;
    s->a = e;
    if (full) {
        s->b = parse_postfix(p, item);
    } else {
        parse_next(p);
        while (item != NULL && p->tok.type == TOK_DOT) {
            parse_next(p);
            if (p->tok.type == TOK_IDENT)
                item = attr_of(p, item);
            else if (p->tok.type == TOK_NUMBER)
                item = legacy_index(p, item);
            else {
                parse_expected(p, "Invalid splat", "a name after \".\"");
                return NULL;
            }
        }
        s->b = item;
    }
    parse_leave(p);
    return s->b != NULL ? parse_done(p, s) : NULL;
}

/* At "[". */
static struct expr *
parse_index(struct parser *p, struct expr *e)
{
    bool skip = p->skip_nl;
    if (!parse_enter(p))
        return NULL;
    p->skip_nl = true;
    parse_next(p);
    if (p->tok.type == TOK_STAR) {
        parse_next(p);
        if (!close_bracket(p, TOK_RBRACK, skip, "\"]\" after \"*\""))
            return NULL;
        return parse_splat(p, e, true);
    }
    struct expr *idx = parse_node(p, EX_INDEX, &e->r);
    if (idx == NULL)
        return NULL;
    idx->a = e;
    idx->b = parse_expr(p);
    if (idx->b == NULL || !close_bracket(p, TOK_RBRACK, skip, "\"]\" after the index"))
        return NULL;
    return parse_done(p, idx);
}

static struct expr *
parse_postfix(struct parser *p, struct expr *e)
{
    while (e != NULL) {
        if (p->tok.type == TOK_LBRACK) {
            e = parse_index(p, e);
        } else if (p->tok.type == TOK_DOT) {
            parse_next(p);
            if (p->tok.type == TOK_IDENT)
                e = attr_of(p, e);
            else if (p->tok.type == TOK_NUMBER)
                e = legacy_index(p, e);
            else if (p->tok.type == TOK_STAR)
                e = parse_splat(p, e, false);
            else {
                parse_expected(p, "Invalid attribute", "a name after \".\"");
                return NULL;
            }
        } else {
            return e;
        }
    }
    return NULL;
}

/* --- operators --- */

static struct expr *
parse_unary(struct parser *p)
{
    if (p->tok.type != TOK_MINUS && p->tok.type != TOK_NOT)
        return parse_postfix(p, parse_primary(p));
    struct expr *e = parse_node(p, EX_UNARY, &p->tok.r);
    if (e == NULL || !parse_enter(p))
        return NULL;
    e->op = (uint16_t)p->tok.type;
    parse_next(p);
    e->a = parse_unary(p);
    if (e->a == NULL)
        return NULL;
    parse_leave(p);
    return parse_done(p, e);
}

static int
parse_expr_precedence(enum tok_type t)
{
    switch (t) {
    case TOK_OR:
        return 1;
    case TOK_AND:
        return 2;
    case TOK_EQ:
    case TOK_NE:
        return 3;
    case TOK_LT:
    case TOK_GT:
    case TOK_LE:
    case TOK_GE:
        return 4;
    case TOK_PLUS:
    case TOK_MINUS:
        return 5;
    case TOK_STAR:
    case TOK_SLASH:
    case TOK_PERCENT:
        return 6;
    default:
        return 0;
    }
}

/* Recursion is at most one level per precedence. */
static struct expr *
parse_binary(struct parser *p, int min)
{
    ASSERT(min >= 1 && min <= 7); /* one level per precedence, and past the last */
    struct expr *left = parse_unary(p);
    while (left != NULL) {
        int prec = parse_expr_precedence(p->tok.type);
        if (prec == 0 || prec < min)
            return left;
        struct expr *e = parse_node(p, EX_BINARY, &left->r);
        if (e == NULL)
            return NULL;
        e->op = (uint16_t)p->tok.type;
        e->name_r = p->tok.r;
        e->a = left;
        parse_next(p);
        e->b = parse_binary(p, prec + 1);
        left = e->b != NULL ? parse_done(p, e) : NULL;
    }
    return NULL;
}

struct expr *
parse_expr(struct parser *p)
{
    if (!parse_enter(p))
        return NULL;
    struct expr *cond = parse_binary(p, 1);
    if (cond == NULL)
        return NULL;
    if (p->tok.type != TOK_QUESTION) {
        parse_leave(p);
        return cond;
    }
    struct expr *e = parse_node(p, EX_COND, &cond->r);
    if (e == NULL)
        return NULL;
    e->a = cond;
    parse_next(p);
    e->b = parse_expr(p);
    if (e->b == NULL)
        return NULL;
    if (p->tok.type != TOK_COLON) {
        parse_expected(p, "Invalid conditional", "\":\" and the value for false");
        return NULL;
    }
    parse_next(p);
    e->c = parse_expr(p);
    if (e->c == NULL)
        return NULL;
    parse_leave(p);
    return parse_done(p, e);
}
