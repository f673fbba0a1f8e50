/* SPDX-License-Identifier: Apache-2.0
 *
 * From tokens to the tree. The grammar is Go's, with up to three tokens of looking ahead; a parser
 * per {{define}} and {{block}}, all of which read from one lexer. Read from the end: parse_tree(),
 * parse_action(), parse_control(), parse_pipeline(), parse_command(), parse_operand(),
 * parse_term().
 */
#include <string.h>

#include "common/mem.h"
#include "common/num.h"
#include "template/funcs.h"
#include "template/limits.h"
#include "template/node.h"
#include "template/run.h"
#include "template/rune.h"
#include "template/strconv.h"

/* Everything that is parsed. */
struct parse {
    struct run r;
    struct lexer lex;
    struct template_tree *tree;
    const struct template_grammar *g;
    unsigned nest;
};

/* One template of it. */
struct parser {
    struct parse *p;
    struct token token[3];
    int peeked;
    size_t action_line;
    int ranges, parens;
    const char *name;
    struct node *root;
    const char **vars;
    size_t n_vars, cap_vars;
};

/* --- mistakes --- */

#define parse_fail(t, fmt, ...)                                                                    \
    run_abort(&(t)->p->r, -ERR_INVALID, "template: %s:%zu: " fmt, (t)->p->tree->name,              \
              (t)->token[0].line, ##__VA_ARGS__)

static const char *
quote_text(struct parser *t, const char *s, size_t n)
{
    struct text b = {NULL, 0, 0};
    text_quote(&t->p->r, &b, s, n);
    return text_str(&t->p->r, &b);
}

static const char *
token_text(struct parser *t, const struct token *k)
{
    struct run *r = &t->p->r;
    if (k->kind == TOKEN_EOF)
        return "EOF";
    if (k->kind == TOKEN_ERROR)
        return run_dup(r, k->s.p, k->s.n);
    if (k->kind > TOKEN_KEYWORD) {
        struct text b = {NULL, 0, 0};
        text_printf(r, &b, "<%.*s>", (int)k->s.n, (const char *)k->s.p);
        return text_str(r, &b);
    }
    if (k->s.n <= 10)
        return quote_text(t, k->s.p, k->s.n);
    size_t n = 0;
    uint32_t c;
    for (int i = 0; i < 10 && n < k->s.n; i++)
        n += rune_take((const char *)k->s.p + n, k->s.n - n, &c);
    struct text b = {NULL, 0, 0};
    text_quote(r, &b, k->s.p, n);
    text_puts(r, &b, "...");
    return text_str(r, &b);
}

static _Noreturn void
parse_unexpected(struct parser *t, const struct token *k, const char *context)
{
    const char *words = token_text(t, k);
    if (k->kind != TOKEN_ERROR)
        parse_fail(t, "unexpected %s in %s", words, context);
    if (t->action_line == 0 || t->action_line == k->line)
        parse_fail(t, "%s", words);
    size_t n = strlen(words);
    bool action = n >= 7 && strcmp(words + n - 7, " action") == 0;
    parse_fail(t, "%s%s started at %s:%zu", words, action ? "" : " in action", t->p->tree->name,
               t->action_line);
}

/* --- tokens --- */

static struct token
token_next(struct parser *t)
{
    if (t->peeked > 0)
        t->peeked--;
    else {
        run_step(&t->p->r, 1);
        t->token[0] = lexer_next(&t->p->lex);
    }
    return t->token[t->peeked];
}

static struct token
token_peek(struct parser *t)
{
    if (t->peeked > 0)
        return t->token[t->peeked - 1];
    t->peeked = 1;
    t->token[0] = lexer_next(&t->p->lex);
    return t->token[0];
}

static void
token_back(struct parser *t)
{
    t->peeked++;
}

static void
token_back2(struct parser *t, struct token first)
{
    t->token[1] = first;
    t->peeked = 2;
}

static void
token_back3(struct parser *t, struct token second, struct token first)
{
    t->token[1] = first;
    t->token[2] = second;
    t->peeked = 3;
}

static struct token
token_solid(struct parser *t)
{
    struct token k = token_next(t);
    while (k.kind == TOKEN_SPACE)
        k = token_next(t);
    return k;
}

static struct token
peek_solid(struct parser *t)
{
    struct token k = token_solid(t);
    token_back(t);
    return k;
}

static struct token
token_expect(struct parser *t, enum token_kind kind, const char *context)
{
    struct token k = token_solid(t);
    if (k.kind != kind)
        parse_unexpected(t, &k, context);
    return k;
}

/* --- nodes --- */

static struct node *
node_new(struct parser *t, enum node_kind kind, size_t pos)
{
    struct node *n = run_alloc(&t->p->r, sizeof(*n));
    n->kind = kind;
    n->pos = pos;
    return n;
}

static struct node *
node_of(struct parser *t, enum node_kind kind, const struct token *k)
{
    struct node *n = node_new(t, kind, k->pos);
    n->s = k->s;
    return n;
}

/* Doubles an array of pointers when its length is a power of two. */
static void *
grow_pointers(struct parser *t, void *v, size_t n)
{
    if (n & (n - 1))
        return v;
    void *more = run_alloc(&t->p->r, (n ? 2 * n : 1) * sizeof(void *));
    if (n)
        memcpy(more, v, n * sizeof(void *));
    return more;
}

static void
add_kid(struct parser *t, struct node *n, struct node *kid)
{
    n->kid = grow_pointers(t, n->kid, n->n_kids);
    n->kid[n->n_kids++] = kid;
}

static void
add_name(struct parser *t, struct node *n, const char *s, size_t len)
{
    n->name = grow_pointers(t, n->name, n->n_names);
    n->name[n->n_names++] = run_dup(&t->p->r, s, len);
}

static void
parser_declare(struct parser *t, const char *name)
{
    if (t->n_vars == t->cap_vars) {
        const char **v = run_alloc(&t->p->r, (2 * t->cap_vars + 8) * sizeof(*v));
        if (t->n_vars)
            memcpy(v, t->vars, t->n_vars * sizeof(*v));
        t->cap_vars = 2 * t->cap_vars + 8;
        t->vars = v;
    }
    t->vars[t->n_vars++] = name;
}

static void
parser_enter(struct parser *t)
{
    if (++t->p->nest > TEMPLATE_NEST_MAX)
        parse_fail(t, "nested more than %d deep", TEMPLATE_NEST_MAX);
}

static struct parser
parser_make(struct parse *p, const char *name)
{
    struct parser t = {.p = p, .name = name};
    parser_declare(&t, "$");
    return t;
}

/* --- operands --- */

static struct node *parse_pipeline(struct parser *t, const char *context, enum token_kind end);

static const char *
unquote_token(struct parser *t, const struct token *k, size_t *n)
{
    const char *s = strconv_unquote(&t->p->r, k->s.p, k->s.n, n);
    if (!s)
        parse_fail(t, "invalid syntax");
    return s;
}

static struct node *
parse_number(struct parser *t, const struct token *k)
{
    struct node *n = node_of(t, NODE_NUMBER, k);
    const char *words = strconv_parse(&t->p->r, n, k);
    if (words)
        parse_fail(t, "%s", words);
    return n;
}

static struct node *
parse_word(struct parser *t, const struct token *k)
{
    struct node *n = node_of(t, NODE_IDENT, k);
    struct err e = ERR_INIT;
    n->fn = function_find(&t->p->r, t->p->g, k->s, &e);
    if (!n->fn && e.code)
        run_abort(&t->p->r, -ERR_UNSUPPORTED, "template: %s:%zu: %s", t->p->tree->name,
                  t->token[0].line, e.text);
    if (!n->fn)
        parse_fail(t, "function %s not defined", quote_text(t, k->s.p, k->s.n));
    return n;
}

static struct node *
parse_variable(struct parser *t, const struct token *k)
{
    struct node *n = node_of(t, NODE_VARIABLE, k);
    add_name(t, n, k->s.p, k->s.n);
    run_step(&t->p->r, t->n_vars / 16);
    for (size_t i = 0; i < t->n_vars; i++)
        if (strcmp(t->vars[i], n->name[0]) == 0)
            return n;
    parse_fail(t, "undefined variable %s", quote_text(t, k->s.p, k->s.n));
}

static struct node *
parse_parentheses(struct parser *t)
{
    parser_enter(t);
    struct node *n = parse_pipeline(t, "parenthesized pipeline", TOKEN_RIGHT_PAREN);
    t->p->nest--;
    return n;
}

/* NULL: the next token is none. */
static struct node *
parse_term(struct parser *t)
{
    struct token k = token_solid(t);
    struct node *n;
    switch (k.kind) {
    case TOKEN_IDENT:
        return parse_word(t, &k);
    case TOKEN_DOT:
        n = node_of(t, NODE_DOT, &k);
        n->s = SLICE(".", 1);
        return n;
    case TOKEN_NIL:
        return node_of(t, NODE_NIL, &k);
    case TOKEN_VARIABLE:
        return parse_variable(t, &k);
    case TOKEN_FIELD:
        n = node_of(t, NODE_FIELD, &k);
        add_name(t, n, (const char *)k.s.p + 1, k.s.n - 1);
        return n;
    case TOKEN_BOOL:
        n = node_of(t, NODE_BOOL, &k);
        n->v = GV_TRUE(k.s.n == 4);
        return n;
    case TOKEN_RUNE:
    case TOKEN_COMPLEX:
    case TOKEN_NUMBER:
        return parse_number(t, &k);
    case TOKEN_LEFT_PAREN:
        return parse_parentheses(t);
    case TOKEN_STRING:
    case TOKEN_RAW:
        n = node_of(t, NODE_STRING, &k);
        n->v = GV_TEXT(NULL, 0);
        n->v.s = unquote_token(t, &k, &n->v.n);
        return n;
    default:
        token_back(t);
        return NULL;
    }
}

/* A term and the fields behind it. */
static struct node *
parse_operand(struct parser *t)
{
    struct node *n = parse_term(t);
    if (!n || token_peek(t).kind != TOKEN_FIELD)
        return n;
    struct node *chain = node_new(t, NODE_CHAIN, token_peek(t).pos);
    if (n->kind == NODE_FIELD || n->kind == NODE_VARIABLE) {
        chain->kind = n->kind;
        for (size_t i = 0; i < n->n_names; i++)
            add_name(t, chain, n->name[i], strlen(n->name[i]));
    } else
        chain->pipe = n;
    while (token_peek(t).kind == TOKEN_FIELD) {
        struct token k = token_next(t);
        add_name(t, chain, (const char *)k.s.p + 1, k.s.n - 1);
    }
    if (n->kind == NODE_BOOL || n->kind == NODE_STRING || n->kind == NODE_NUMBER ||
        n->kind == NODE_NIL || n->kind == NODE_DOT)
        parse_fail(t, "unexpected . after term %s", quote_text(t, n->s.p, n->s.n));
    return chain;
}

static struct node *
parse_command(struct parser *t)
{
    struct node *n = node_new(t, NODE_COMMAND, peek_solid(t).pos);
    for (;;) {
        peek_solid(t);
        struct node *operand = parse_operand(t);
        if (operand)
            add_kid(t, n, operand);
        struct token k = token_next(t);
        if (k.kind == TOKEN_SPACE)
            continue;
        if (k.kind == TOKEN_RIGHT || k.kind == TOKEN_RIGHT_PAREN)
            token_back(t);
        else if (k.kind != TOKEN_PIPE)
            parse_unexpected(t, &k, "operand");
        break;
    }
    if (n->n_kids == 0)
        parse_fail(t, "empty command");
    return n;
}

/* --- pipelines --- */

static bool
is_char(const struct token *k, char c)
{
    return k->kind == TOKEN_CHAR && k->s.n == 1 && *(const char *)k->s.p == c;
}

/* "$x :=", "$x =", "$x, $y :=". */
static void
parse_declarations(struct parser *t, struct node *pipe, const char *context)
{
    while (peek_solid(t).kind == TOKEN_VARIABLE) {
        struct token v = token_solid(t);
        struct token after = token_peek(t), next = peek_solid(t);
        bool list = is_char(&next, ',');
        if (next.kind != TOKEN_ASSIGN && next.kind != TOKEN_DECLARE && !list) {
            after.kind == TOKEN_SPACE ? token_back3(t, v, after) : token_back2(t, v);
            return;
        }
        token_solid(t);
        if (!list)
            pipe->assign = next.kind == TOKEN_ASSIGN;
        add_name(t, pipe, v.s.p, v.s.n);
        parser_declare(t, pipe->name[pipe->n_names - 1]);
        if (!list)
            return;
        if (strcmp(context, "range") != 0 || pipe->n_names >= 2)
            parse_fail(t, "too many declarations in %s", context);
        enum token_kind kind = peek_solid(t).kind;
        if (kind != TOKEN_VARIABLE && kind != TOKEN_RIGHT && kind != TOKEN_RIGHT_PAREN)
            parse_fail(t, "range can only initialize variables");
    }
}

static void
check_pipeline(struct parser *t, const struct node *pipe, const char *context)
{
    if (pipe->n_kids == 0)
        parse_fail(t, "missing value for %s", context);
    for (size_t i = 1; i < pipe->n_kids; i++)
        switch (pipe->kid[i]->kid[0]->kind) {
        case NODE_BOOL:
        case NODE_DOT:
        case NODE_NIL:
        case NODE_NUMBER:
        case NODE_STRING:
            parse_fail(t, "non executable command in pipeline stage %zu", i + 1);
        default:
            break;
        }
}

static struct node *
parse_pipeline(struct parser *t, const char *context, enum token_kind end)
{
    struct node *pipe = node_new(t, NODE_PIPE, peek_solid(t).pos);
    parse_declarations(t, pipe, context);
    for (;;) {
        struct token k = token_solid(t);
        if (k.kind == end) {
            check_pipeline(t, pipe, context);
            return pipe;
        }
        switch (k.kind) {
        case TOKEN_BOOL:
        case TOKEN_RUNE:
        case TOKEN_COMPLEX:
        case TOKEN_DOT:
        case TOKEN_FIELD:
        case TOKEN_IDENT:
        case TOKEN_NUMBER:
        case TOKEN_NIL:
        case TOKEN_RAW:
        case TOKEN_STRING:
        case TOKEN_VARIABLE:
        case TOKEN_LEFT_PAREN:
            token_back(t);
            add_kid(t, pipe, parse_command(t));
            break;
        default:
            parse_unexpected(t, &k, context);
        }
    }
}

/* --- actions --- */

static struct node *parse_node(struct parser *t);
static struct node *parse_action(struct parser *t);

static const char *
node_words(const struct node *n)
{
    return n->kind == NODE_END ? "{{end}}" : "{{else}}";
}

/* Nodes up to {{end}} or {{else}}, which is *end. */
static struct node *
parse_list(struct parser *t, struct node **end)
{
    struct node *list = node_new(t, NODE_LIST, peek_solid(t).pos);
    while (peek_solid(t).kind != TOKEN_EOF) {
        struct node *n = parse_node(t);
        if (n->kind == NODE_END || n->kind == NODE_ELSE) {
            *end = n;
            return list;
        }
        add_kid(t, list, n);
    }
    parse_fail(t, "unexpected EOF");
}

static struct node *
parse_control(struct parser *t, enum node_kind kind)
{
    const char *context = kind == NODE_IF ? "if" : kind == NODE_WITH ? "with" : "range";
    size_t vars = t->n_vars;
    struct node *end, *n = node_new(t, kind, 0);
    parser_enter(t);
    n->pipe = parse_pipeline(t, context, TOKEN_RIGHT);
    n->pos = n->pipe->pos;
    t->ranges += kind == NODE_RANGE;
    n->list = parse_list(t, &end);
    t->ranges -= kind == NODE_RANGE;
    if (end->kind == NODE_ELSE) {
        enum token_kind next = token_peek(t).kind;
        if ((kind == NODE_IF && next == TOKEN_IF) || (kind == NODE_WITH && next == TOKEN_WITH)) {
            token_next(t);
            n->other = node_new(t, NODE_LIST, end->pos);
            add_kid(t, n->other, parse_control(t, kind));
        } else {
            n->other = parse_list(t, &end);
            if (end->kind != NODE_END)
                parse_fail(t, "expected end; found %s", node_words(end));
        }
    }
    t->p->nest--;
    t->n_vars = vars;
    return n;
}

static struct node *
parse_jump(struct parser *t, const struct token *k, enum node_kind kind)
{
    const char *words = kind == NODE_BREAK ? "{{break}}" : "{{continue}}";
    struct token next = token_solid(t);
    if (next.kind != TOKEN_RIGHT)
        parse_unexpected(t, &next, words);
    if (t->ranges == 0)
        parse_fail(t, "%s outside {{range}}", words);
    struct node *n = node_new(t, kind, k->pos);
    n->s = SLICE(words, strlen(words));
    return n;
}

static struct node *
parse_else(struct parser *t)
{
    struct token k = peek_solid(t);
    if (k.kind != TOKEN_IF && k.kind != TOKEN_WITH)
        k = token_expect(t, TOKEN_RIGHT, "else");
    return node_new(t, NODE_ELSE, k.pos);
}

static const char *
parse_name(struct parser *t, const struct token *k, const char *context)
{
    size_t n;
    if (k->kind != TOKEN_STRING && k->kind != TOKEN_RAW)
        parse_unexpected(t, k, context);
    return unquote_token(t, k, &n);
}

/* Adds what was parsed to the templates by name; one that is empty gives way to another. */
static void
parser_add(struct parser *t)
{
    struct template_tree *tree = t->p->tree;
    struct node_template *old = NULL;
    for (struct node_template *i = tree->all; i && !old; i = i->next)
        old = strcmp(i->name, t->name) == 0 ? i : NULL;
    if (old && !node_is_empty(old->root)) {
        if (!node_is_empty(t->root))
            parse_fail(t, "template: multiple definition of template %s",
                       quote_text(t, t->name, strlen(t->name)));
        return;
    }
    if (!old) {
        if (++tree->n_templates > TEMPLATE_NAMES_MAX)
            parse_fail(t, "defines more than %d templates", TEMPLATE_NAMES_MAX);
        old = run_alloc(&t->p->r, sizeof(*old));
        old->next = tree->all;
        tree->all = old;
    }
    old->name = t->name;
    old->root = t->root;
}

static struct node *
make_template(struct parser *t, const struct token *k, const char *name, struct node *pipe)
{
    struct node *n = node_new(t, NODE_TEMPLATE, k->pos);
    n->v = GV_TEXT(name, strlen(name));
    const char *quoted = quote_text(t, name, strlen(name));
    n->s = SLICE(quoted, strlen(quoted));
    n->pipe = pipe;
    return n;
}

/* `at` is whose line a wrong end names, as in Go. */
static void
parse_body(struct parser *t, struct parser *at, const char *context)
{
    struct node *end;
    parser_enter(t);
    t->root = parse_list(t, &end);
    t->p->nest--;
    if (end->kind != NODE_END)
        parse_fail(at, "unexpected %s in %s", node_words(end), context);
    parser_add(t);
}

static struct node *
parse_block(struct parser *t)
{
    static const char context[] = "block clause";
    struct token k = token_solid(t);
    const char *name = parse_name(t, &k, context);
    struct node *pipe = parse_pipeline(t, context, TOKEN_RIGHT);
    struct parser block = parser_make(t->p, name);
    parse_body(&block, t, context);
    return make_template(t, &k, name, pipe);
}

static struct node *
parse_template(struct parser *t)
{
    static const char context[] = "template clause";
    struct token k = token_solid(t);
    const char *name = parse_name(t, &k, context);
    struct node *pipe = NULL;
    if (token_solid(t).kind != TOKEN_RIGHT) {
        token_back(t);
        pipe = parse_pipeline(t, context, TOKEN_RIGHT);
    }
    return make_template(t, &k, name, pipe);
}

static struct node *
parse_action(struct parser *t)
{
    struct token k = token_solid(t);
    switch (k.kind) {
    case TOKEN_BLOCK:
        return parse_block(t);
    case TOKEN_BREAK:
        return parse_jump(t, &k, NODE_BREAK);
    case TOKEN_CONTINUE:
        return parse_jump(t, &k, NODE_CONTINUE);
    case TOKEN_ELSE:
        return parse_else(t);
    case TOKEN_END:
        return node_new(t, NODE_END, token_expect(t, TOKEN_RIGHT, "end").pos);
    case TOKEN_IF:
        return parse_control(t, NODE_IF);
    case TOKEN_RANGE:
        return parse_control(t, NODE_RANGE);
    case TOKEN_TEMPLATE:
        return parse_template(t);
    case TOKEN_WITH:
        return parse_control(t, NODE_WITH);
    default:
        token_back(t);
        struct node *n = node_new(t, NODE_ACTION, token_peek(t).pos);
        n->pipe = parse_pipeline(t, "command", TOKEN_RIGHT);
        return n;
    }
}

static struct node *
parse_node(struct parser *t)
{
    struct token k = token_solid(t);
    if (k.kind == TOKEN_TEXT)
        return node_of(t, NODE_TEXT, &k);
    if (k.kind != TOKEN_LEFT)
        parse_unexpected(t, &k, "input");
    t->action_line = k.line;
    struct node *n = parse_action(t);
    t->action_line = 0;
    return n;
}

static void
parse_define(struct parse *p)
{
    static const char context[] = "define clause";
    struct parser t = parser_make(p, "definition");
    struct token k = token_solid(&t);
    t.name = parse_name(&t, &k, context);
    token_expect(&t, TOKEN_RIGHT, context);
    parse_body(&t, &t, context);
}

static void
parse_tree(struct parse *p)
{
    struct parser t = parser_make(p, p->tree->name);
    t.root = node_new(&t, NODE_LIST, token_peek(&t).pos);
    while (token_peek(&t).kind != TOKEN_EOF) {
        if (token_peek(&t).kind == TOKEN_LEFT) {
            struct token left = token_next(&t);
            if (token_solid(&t).kind == TOKEN_DEFINE) {
                parse_define(p);
                continue;
            }
            token_back2(&t, left);
        }
        struct node *n = parse_node(&t);
        if (n->kind == NODE_END || n->kind == NODE_ELSE)
            parse_fail(&t, "unexpected %s", node_words(n));
        add_kid(&t, t.root, n);
    }
    parser_add(&t);
}

int
template_parse(const void *ctx, const struct template_grammar *g, struct slice text,
               struct template_tree **ret, struct err *e)
{
    struct parse p = {.g = g};
    if (text.n > TEMPLATE_TEXT_MAX)
        return err_set(e, -ERR_LIMIT, "template: over %d MiB", TEMPLATE_TEXT_MAX >> 20);
    struct template_limits limits = {.steps = 4 * TEMPLATE_STEPS_MAX};
    run_init(&p.r, ctx, &limits, e);
    if (setjmp(p.r.out_of)) {
        run_done(&p.r);
        return p.r.code;
    }
    p.tree = run_alloc(&p.r, sizeof(*p.tree));
    p.tree->name = run_dup(&p.r, g->name ? g->name : "", strlen(g->name ? g->name : ""));
    p.tree->text = run_dup(&p.r, text.p, text.n);
    p.tree->n_text = text.n;
    p.tree->table = g->table;
    p.lex.r = &p.r;
    const char *left = g->left ? run_dup(&p.r, g->left, strlen(g->left)) : NULL;
    const char *right = g->right ? run_dup(&p.r, g->right, strlen(g->right)) : NULL;
    lexer_init(&p.lex, p.tree->text, text.n, left, right);
    parse_tree(&p);
    for (const struct node_template *i = p.tree->all; i; i = i->next)
        if (strcmp(i->name, p.tree->name) == 0)
            p.tree->main = (struct node_template *)(uintptr_t)i;
    *ret = p.tree;
    return 0;
}
