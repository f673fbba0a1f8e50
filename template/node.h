/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of a template, and the tokens it is made of.
 */
#ifndef PADDOCK_TEMPLATE_NODE_H
#define PADDOCK_TEMPLATE_NODE_H

#include "common/buf.h"
#include "template/goval.h"
#include "template/template.h"

struct function;

enum node_kind {
    NODE_LIST,
    NODE_TEXT,
    NODE_ACTION,
    NODE_PIPE,
    NODE_COMMAND,
    NODE_IDENT,
    NODE_DOT,
    NODE_NIL,
    NODE_FIELD,
    NODE_VARIABLE,
    NODE_CHAIN,
    NODE_BOOL,
    NODE_NUMBER,
    NODE_STRING,
    NODE_IF,
    NODE_WITH,
    NODE_RANGE,
    NODE_TEMPLATE,
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_END, /* only while it is parsed */
    NODE_ELSE
};

/* The forms in which a number may be used. */
enum { NUMBER_INT = 1, NUMBER_UINT = 2, NUMBER_FLOAT = 4, NUMBER_COMPLEX = 8 };

struct node {
    enum node_kind kind;
    unsigned forms;    /* of a number */
    size_t pos;        /* in the text */
    struct slice s;    /* text, name, or as it is written */
    struct node **kid; /* list: nodes; pipe: commands; command: arguments */
    size_t n_kids;
    const char **name; /* field, variable, chain: names; pipe: declared variables */
    size_t n_names;
    bool assign;                      /* pipe: = instead of := */
    struct node *pipe, *list, *other; /* chain: pipe is its first part */
    const struct function *fn;        /* ident */
    struct gv v;                      /* bool, string, number */
    int64_t i;
    uint64_t u;
    double f;
};

struct node_template {
    const char *name;
    struct node *root;
    struct node_template *next;
};

struct template_tree {
    enum template_table table;
    const char *name; /* of the text, in front of errors */
    const char *text;
    size_t n_text;
    struct node_template *main, *all;
    size_t n_templates;
};

/* NULL: there is none. */
const struct node_template *node_template_find(const struct template_tree *t, const char *name,
                                               size_t n);
/* Nothing but white space and comments. */
bool node_is_empty(const struct node *n);
/* Writes a node as errors show it; stops soon after `max` bytes. */
void node_write(struct buf *out, const struct node *n, size_t max);

enum token_kind {
    TOKEN_ERROR,
    TOKEN_BOOL,
    TOKEN_CHAR,
    TOKEN_RUNE, /* a character constant */
    TOKEN_COMPLEX,
    TOKEN_ASSIGN,
    TOKEN_DECLARE,
    TOKEN_EOF,
    TOKEN_FIELD,
    TOKEN_IDENT,
    TOKEN_LEFT,
    TOKEN_LEFT_PAREN,
    TOKEN_NUMBER,
    TOKEN_PIPE,
    TOKEN_RAW,
    TOKEN_RIGHT,
    TOKEN_RIGHT_PAREN,
    TOKEN_SPACE,
    TOKEN_STRING,
    TOKEN_TEXT,
    TOKEN_VARIABLE,
    TOKEN_KEYWORD, /* those from here on are words */
    TOKEN_BLOCK,
    TOKEN_BREAK,
    TOKEN_CONTINUE,
    TOKEN_DOT,
    TOKEN_DEFINE,
    TOKEN_ELSE,
    TOKEN_END,
    TOKEN_IF,
    TOKEN_NIL,
    TOKEN_RANGE,
    TOKEN_TEMPLATE,
    TOKEN_WITH
};

struct token {
    enum token_kind kind;
    size_t pos;
    struct slice s;
    size_t line;
};

struct lexer {
    struct run *r; /* of the words of mistakes */
    const char *in;
    size_t n;
    const char *left, *right;
    size_t n_left, n_right;
    size_t pos, start, line, start_line;
    int parens;
    bool inside;
    struct token item;
};

void lexer_init(struct lexer *l, const char *text, size_t n, const char *left, const char *right);
struct token lexer_next(struct lexer *l);

#endif
