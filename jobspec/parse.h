/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser of HCL: recursive descent, precedence climbing for operators, bounded depth. It stops
 * at the first error.
 */
#ifndef PADDOCK_JOBSPEC_PARSE_H
#define PADDOCK_JOBSPEC_PARSE_H

#include "jobspec/ast.h"
#include "jobspec/lex.h"
#include "jobspec/limits.h"

struct parser {
    const void *ctx;
    struct hcl_sink *sink;
    const struct hcl_source *src;
    unsigned flags;
    struct lexer lx;
    struct token tok;      /* the one that is looked at */
    struct hcl_range last; /* the one before it */
    bool skip_nl;          /* inside brackets: newlines are space */
    unsigned depth;
    size_t nodes;
};

/* Each returns NULL after a diagnostic. `name` and `s` must live as long as ctx. */
struct hcl_body *parse_file(const void *ctx, const struct hcl_source *src, unsigned flags,
                            struct hcl_sink *sink);
/* The whole source is one expression. */
struct expr *parse_expression(const void *ctx, const struct hcl_source *src, struct hcl_sink *sink);
struct hcl_body *parse_json_file(const void *ctx, const struct hcl_source *src, unsigned flags,
                                 struct hcl_sink *sink);
/* Members of the body that are blocks of a job file become these. False after a diagnostic. */
bool parse_json_job(const void *ctx, struct hcl_body *body, struct hcl_sink *sink);
/* Literals, and tuples and objects of these. */
struct expr *parse_json_value(const void *ctx, const struct hcl_source *src, struct hcl_sink *sink);

/* An object expression, as it stands in JSON or after `=`, seen as a body of attributes. NULL after
 * a diagnostic: a key that is no name. */
struct hcl_body *body_of_object(const void *ctx, const struct expr *e, struct hcl_sink *sink);

/* --- between parse.c, parse_expr.c and parse_tmpl.c --- */
void parse_next(struct parser *p);
bool parse_enter(struct parser *p); /* false after a diagnostic: too deep */
void parse_leave(struct parser *p);
struct expr *parse_expr(struct parser *p);
bool parse_for_intro(struct parser *p, struct expr *e); /* "for k, v in coll", at "for" */
struct expr *parse_template(struct parser *p);          /* at TOK_OQUOTE or TOK_OHEREDOC */
struct expr *parse_node(struct parser *p, enum expr_kind kind, const struct hcl_range *r);
/* Sets the depth from the children and the end of the range; NULL when too deep. */
struct expr *parse_done(struct parser *p, struct expr *e);
void parse_push(struct parser *p, struct expr *e, struct expr *child);
char *parse_text(struct parser *p, const struct hcl_range *r);
/* "Expected X, but found Y." */
void parse_expected(struct parser *p, const char *summary, const char *what);
void parse_error(struct parser *p, const struct hcl_range *r, const char *summary,
                 const char *detail);

#endif
