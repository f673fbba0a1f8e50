/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser of HCL: what both halves use, then bodies, attributes and blocks, and the ways in: a
 * file, or an expression alone. See parse.h. Expressions are in parse_expr.c, templates in
 * parse_tmpl.c.
 *
 * `tok` is the one token of lookahead: a parse function begins at its first token and ends with
 * `tok` behind its last. The first error ends the parse: NULL or false is handed up.
 */
#include "jobspec/parse.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

void
parse_next(struct parser *p)
{
    p->last = p->tok.r;
    do
        lex_next(&p->lx, &p->tok);
    while (p->skip_nl && p->tok.type == TOK_NEWLINE);
}

bool
parse_enter(struct parser *p)
{
    if (++p->depth <= HCL_DEPTH_MAX)
        return true;
    parse_error(p, &p->tok.r, "Nested too deeply", "Blocks and expressions may nest 100 levels.");
    return false;
}

void
parse_leave(struct parser *p)
{
    ASSERT(p->depth > 0);
    p->depth--;
}

void
parse_error(struct parser *p, const struct hcl_range *r, const char *summary, const char *detail)
{
    if (p->tok.type == TOK_ERROR)
        return; /* the scanner has told */
    diag_error(p->sink, r, summary, "%s", detail);
    p->tok.type = TOK_ERROR;
    p->lx.failed = true;
}

void
parse_expected(struct parser *p, const char *summary, const char *what)
{
    if (p->tok.type == TOK_ERROR)
        return;
    diag_error(p->sink, &p->tok.r, summary, "Expected %s, but found %s.", what,
               lex_token_name(p->tok.type));
    p->tok.type = TOK_ERROR;
    p->lx.failed = true;
}

char *
parse_text(struct parser *p, const struct hcl_range *r)
{
    return mem_strndup(p->ctx, p->src->s + r->start.byte, r->end.byte - r->start.byte);
}

struct expr *
parse_node(struct parser *p, enum expr_kind kind, const struct hcl_range *r)
{
    if (++p->nodes > EXPR_NODES_MAX) {
        parse_error(p, r, "File too large", "It holds more than 200000 expressions.");
        return NULL;
    }
    struct expr *e = mem_new(p->ctx, struct expr);
    e->kind = kind;
    e->r = *r;
    e->depth = 1;
    return e;
}

struct expr *
parse_done(struct parser *p, struct expr *e)
{
    const struct expr *kids[] = {e->a, e->b, e->c, e->d};
    for (size_t i = 0; i < ARRAY_LEN(kids); i++)
        if (kids[i] != NULL && kids[i]->depth >= e->depth)
            e->depth = (uint16_t)(kids[i]->depth + 1);
    for (size_t i = 0; i < e->n; i++)
        if (e->list[i]->depth >= e->depth)
            e->depth = (uint16_t)(e->list[i]->depth + 1);
    if (e->depth > EXPR_DEPTH_MAX) {
        parse_error(p, &e->r, "Expression too deep", "It combines more than 300 levels.");
        return NULL;
    }
    if (e->r.end.byte < p->last.end.byte)
        e->r.end = p->last.end;
    return e;
}

void
parse_push(struct parser *p, struct expr *e, struct expr *child)
{
    if ((e->n & (e->n - 1)) == 0)
        mem_resize(p->ctx, e->list, struct expr *, e->n > 0 ? e->n * 2 : 1);
    e->list[e->n++] = child;
}

/* A quoted string without templates: block labels and names. NULL after a diagnostic. */
static const char *
parse_plain_string(struct parser *p, struct hcl_range *ret_r)
{
    struct hcl_range at = p->tok.r;
    struct expr *e = parse_template(p);
    if (e == NULL)
        return NULL;
    *ret_r = e->r;
    if (e->kind != EX_LITERAL) {
        parse_error(p, &at, "Invalid name", "Templates cannot be used in names and labels.");
        return NULL;
    }
    return e->value->str.s;
}

/* --- bodies --- */

static struct hcl_body *parse_body(struct parser *p, enum tok_type end);

static void
add_attr(struct parser *p, struct hcl_body *body, struct attr *a)
{
    if ((body->n_attrs & (body->n_attrs - 1)) == 0)
        mem_resize(p->ctx, body->attrs, struct attr *, body->n_attrs > 0 ? body->n_attrs * 2 : 1);
    body->attrs[body->n_attrs++] = a;
}

static int
attr_cmp(const void *a, const void *b)
{
    const struct attr *x = *(struct attr *const *)a, *y = *(struct attr *const *)b;
    int c = strcmp(x->name, y->name);
    return c != 0 ? c : (x->name_r.start.byte > y->name_r.start.byte ? 1 : -1);
}

/* The first name that is set a second time is told. */
static bool
check_twice(struct parser *p, const struct hcl_body *body)
{
    const struct attr *again = NULL, *first = NULL;
    if (body->n_attrs < 2)
        return true;
    struct attr **v = mem_dup(p->ctx, body->attrs, body->n_attrs * sizeof(*v));
    qsort(v, body->n_attrs, sizeof(struct attr *), attr_cmp);
    for (size_t i = 1; i < body->n_attrs; i++)
        if (strcmp(v[i - 1]->name, v[i]->name) == 0 &&
            (again == NULL || v[i]->name_r.start.byte < again->name_r.start.byte)) {
            first = v[i - 1];
            again = v[i];
        }
    mem_free(v);
    if (again == NULL)
        return true;
    diag_error(
        p->sink, &again->name_r, "Attribute redefined",
        "The argument \"%s\" was already set at line %u. Each argument may be set only once.",
        again->name, first->name_r.start.line);
    p->tok.type = TOK_ERROR;
    p->lx.failed = true;
    return false;
}

static void
add_block(struct parser *p, struct hcl_body *body, struct block *b)
{
    if ((body->n_blocks & (body->n_blocks - 1)) == 0)
        mem_resize(p->ctx, body->blocks, struct block *,
                   body->n_blocks > 0 ? body->n_blocks * 2 : 1);
    body->blocks[body->n_blocks++] = b;
}

/* At "{". */
static bool
parse_block_body(struct parser *p, struct hcl_body *body, struct block *b)
{
    if (!parse_enter(p))
        return false;
    bool skip = p->skip_nl;
    unsigned line = p->tok.r.start.line;
    p->skip_nl = false;
    parse_next(p);
    b->body = parse_body(p, TOK_RBRACE);
    p->skip_nl = skip;
    if (b->body == NULL)
        return false;
    if ((p->flags & HCL_LOOSE) == 0 && b->body->n_blocks > 0 && p->tok.r.start.line == line)
        diag_warn(p->sink, &b->r, "Blocks on one line",
                  "Nomad refuses a block within a block on one line: begin a line for \"%s\".",
                  b->body->blocks[0]->type);
    parse_next(p); /* } */
    parse_leave(p);
    add_block(p, body, b);
    return true;
}

static bool
parse_attr(struct parser *p, struct hcl_body *body, const char *name,
           const struct hcl_range *name_r)
{
    parse_next(p); /* = */
    if ((p->flags & HCL_LOOSE) != 0 && p->tok.type == TOK_LBRACE) {
        struct block *b = mem_new(p->ctx, struct block);
        b->type = name;
        b->type_r = b->r = *name_r;
        return parse_block_body(p, body, b);
    }
    struct attr *a = mem_new(p->ctx, struct attr);
    a->name = name;
    a->name_r = *name_r;
    a->expr = parse_expr(p);
    if (a->expr == NULL)
        return false;
    add_attr(p, body, a);
    return true;
}

static bool
parse_block(struct parser *p, struct hcl_body *body, const char *type,
            const struct hcl_range *type_r)
{
    struct block *b = mem_new(p->ctx, struct block);
    b->type = type;
    b->type_r = b->r = *type_r;
    while (p->tok.type == TOK_OQUOTE || p->tok.type == TOK_IDENT) {
        if (b->n_labels == HCL_LABELS_MAX) {
            parse_error(p, &p->tok.r, "Too many labels", "A block has at most 8 labels.");
            return false;
        }
        struct label *l = &b->labels[b->n_labels++];
        if (p->tok.type == TOK_IDENT) {
            l->r = p->tok.r;
            l->s = parse_text(p, &p->tok.r);
            parse_next(p);
        } else {
            l->s = parse_plain_string(p, &l->r);
            if (l->s == NULL)
                return false;
        }
        b->r = range_join(type_r, &l->r);
    }
    if (p->tok.type == TOK_LBRACE)
        return parse_block_body(p, body, b);
    if (b->n_labels == 0)
        parse_expected(p, "Invalid argument or block",
                       "an equals sign (to set an argument) or \"{\" (to open a block)");
    else
        parse_expected(p, "Invalid block", "a quoted label or \"{\"");
    return false;
}

static bool
parse_item(struct parser *p, struct hcl_body *body)
{
    struct hcl_range name_r = p->tok.r;
    const char *name;
    bool quoted = p->tok.type == TOK_OQUOTE;
    if (quoted) {
        name = parse_plain_string(p, &name_r);
    } else if (p->tok.type == TOK_IDENT) {
        name = parse_text(p, &p->tok.r);
        parse_next(p);
    } else {
        parse_expected(p, "Invalid argument or block", "the name of an argument or block");
        return false;
    }
    if (name == NULL)
        return false;
    if (quoted && (p->flags & HCL_LOOSE) == 0) {
        parse_error(p, &name_r, "Invalid argument name", "Argument names must not be quoted.");
        return false;
    }
    if (p->tok.type == TOK_ASSIGN || (p->tok.type == TOK_COLON && (p->flags & HCL_LOOSE) != 0))
        return parse_attr(p, body, name, &name_r);
    return parse_block(p, body, name, &name_r);
}

/* The end of an item: a new line, or the end of the body. */
static bool
parse_item_end(struct parser *p, enum tok_type end)
{
    if (p->tok.type == TOK_NEWLINE || p->tok.type == end)
        return true;
    if ((p->flags & HCL_LOOSE) != 0) {
        if (p->tok.type == TOK_COMMA)
            parse_next(p);
        return p->tok.type != TOK_ERROR;
    }
    if (p->tok.type == TOK_COMMA)
        parse_error(p, &p->tok.r, "Unexpected comma",
                    "Arguments of a block are separated by new lines, not by commas.");
    else
        parse_expected(p, "Missing new line", "a new line after an argument or block");
    return false;
}

static struct hcl_body *
parse_body(struct parser *p, enum tok_type end)
{
    struct hcl_body *body = mem_new(p->ctx, struct hcl_body);
    struct hcl_range open = p->last;
    body->r = p->tok.r;
    for (;;) {
        while (p->tok.type == TOK_NEWLINE)
            parse_next(p);
        if (p->tok.type == end) {
            body->r.end = p->tok.r.end;
            return check_twice(p, body) ? body : NULL;
        }
        if (p->tok.type == TOK_EOF) {
            parse_error(p, &open, "Unclosed block", "No closing brace was found for this block.");
            return NULL;
        }
        if (p->tok.type == TOK_RBRACE) {
            parse_error(p, &p->tok.r, "Unexpected closing brace", "No block is open here.");
            return NULL;
        }
        if (++p->nodes > EXPR_NODES_MAX) {
            parse_error(p, &p->tok.r, "File too large", "It holds more than 200000 items.");
            return NULL;
        }
        if (!parse_item(p, body) || !parse_item_end(p, end))
            return NULL;
    }
}

static bool
parser_init(struct parser *p, const void *ctx, const struct hcl_source *src, unsigned flags,
            struct hcl_sink *sink)
{
    memset(p, 0, sizeof(*p));
    p->ctx = ctx;
    p->sink = sink;
    p->src = src;
    p->flags = flags;
    p->last.src = src;
    if (!lex_init(&p->lx, src, flags, sink))
        return false;
    parse_next(p);
    return p->tok.type != TOK_ERROR;
}

struct hcl_body *
parse_file(const void *ctx, const struct hcl_source *src, unsigned flags, struct hcl_sink *sink)
{
    if ((flags & HCL_JSON) != 0)
        return parse_json_file(ctx, src, flags, sink);
    struct parser p;
    if (!parser_init(&p, ctx, src, flags, sink))
        return NULL;
    return parse_body(&p, TOK_EOF);
}

struct expr *
parse_expression(const void *ctx, const struct hcl_source *src, struct hcl_sink *sink)
{
    struct parser p;
    if (!parser_init(&p, ctx, src, 0, sink))
        return NULL;
    p.skip_nl = true;
    while (p.tok.type == TOK_NEWLINE)
        parse_next(&p);
    struct expr *e = parse_expr(&p);
    if (e != NULL && p.tok.type != TOK_EOF) {
        parse_expected(&p, "Extra text after the expression", "the end of the expression");
        return NULL;
    }
    return e;
}

int
hcl_parse(const void *ctx, const char *name, struct slice text, unsigned flags,
          struct hcl_body **ret, struct hcl_diags *d)
{
    struct hcl_source *src = mem_new(ctx, struct hcl_source);
    *src = (struct hcl_source){mem_strdup(ctx, name), text.p, text.n};
    if (src->n >= 3 && memcmp(src->s, "\xef\xbb\xbf", 3) == 0) {
        /* the mark that some editors put before UTF-8 */
        src->s += 3;
        src->n -= 3;
    }
    struct hcl_sink sink = {.ctx = ctx, .d = d};
    struct hcl_body *body = parse_file(ctx, src, flags, &sink);
    if (body == NULL)
        return -ERR_INVALID;
    *ret = body;
    return 0;
}
