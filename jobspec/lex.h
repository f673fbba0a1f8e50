/* SPDX-License-Identifier: Apache-2.0
 *
 * The scanner of HCL: source bytes to tokens with exact ranges. A stack of modes (normal, quoted
 * template, heredoc) follows "${" and "%{" into expressions and out again, so the parser needs a
 * single token of lookahead and never tells the scanner what to expect.
 */
#ifndef PADDOCK_JOBSPEC_LEX_H
#define PADDOCK_JOBSPEC_LEX_H

#include "jobspec/diag.h"

enum tok_type {
    TOK_EOF,
    TOK_ERROR, /* a diagnostic has been given; sticky */
    TOK_NEWLINE,
    TOK_IDENT,
    TOK_NUMBER,
    TOK_OQUOTE, /* " */
    TOK_CQUOTE,
    TOK_STRING,   /* raw text of a quoted template or a heredoc: escapes are the parser's */
    TOK_INTERP,   /* ${ or ${~ */
    TOK_CONTROL,  /* %{ or %{~ */
    TOK_TEND,     /* } or ~} that ends one of them */
    TOK_OHEREDOC, /* <<NAME or <<-NAME with its newline */
    TOK_CHEREDOC, /* the line that ends it, without newline */
    TOK_LBRACE,
    TOK_RBRACE,
    TOK_LBRACK,
    TOK_RBRACK,
    TOK_LPAREN,
    TOK_RPAREN,
    TOK_COMMA,
    TOK_DOT,
    TOK_ELLIPSIS,
    TOK_ASSIGN,
    TOK_ARROW,
    TOK_COLON,
    TOK_QUESTION,
    TOK_PLUS,
    TOK_MINUS,
    TOK_STAR,
    TOK_SLASH,
    TOK_PERCENT,
    TOK_EQ,
    TOK_NE,
    TOK_LT,
    TOK_GT,
    TOK_LE,
    TOK_GE,
    TOK_AND,
    TOK_OR,
    TOK_NOT
};

struct token {
    enum tok_type type;
    bool trim;   /* "${~", "%{~", "~}" */
    bool indent; /* TOK_OHEREDOC: <<- */
    bool bol;    /* TOK_STRING in a heredoc: starts a line */
    struct hcl_range r;
};

enum lex_mode { LEX_NORMAL, LEX_QUOTED, LEX_HEREDOC };

struct lex_level {
    enum lex_mode mode;
    bool interp;        /* NORMAL that "${" or "%{" opened */
    bool bol;           /* HEREDOC: at the beginning of a line */
    uint32_t braces;    /* NORMAL: open { */
    struct hcl_pos at;  /* where it was opened, for messages */
    const char *marker; /* HEREDOC */
    size_t marker_n;
};

struct lexer {
    const struct hcl_source *src;
    struct hcl_pos p;
    struct hcl_sink *sink;
    bool failed;
    bool literal; /* "${" and "%{" are text (HCL_LITERAL) */
    unsigned level;
    struct lex_level stack[HCL_DEPTH_MAX];
};

/* Checks size and UTF-8 first: false when that failed and a diagnostic was given. */
bool lex_init(struct lexer *lx, const struct hcl_source *src, unsigned flags,
              struct hcl_sink *sink);
void lex_next(struct lexer *lx, struct token *ret);
/* "a comma", "the end of the file": for messages. */
const char *lex_token_name(enum tok_type t);
/* The name of an identifier's code points: letters, digits, _ and -, and most of Unicode. */
bool lex_is_ident(const char *s, size_t n);

#endif
