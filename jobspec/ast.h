/* SPDX-License-Identifier: Apache-2.0
 *
 * The syntax tree of a file: a body of attributes and blocks, and expressions. Made by parse.c
 * (native syntax) and json.c (JSON form); immutable afterwards; owned by the context of the parse.
 */
#ifndef PADDOCK_JOBSPEC_AST_H
#define PADDOCK_JOBSPEC_AST_H

#include "codec/value.h"
#include "jobspec/diag.h"
#include "jobspec/limits.h"

enum expr_kind {
    EX_LITERAL,  /* value */
    EX_TEMPLATE, /* list: parts */
    EX_INTERP,   /* a: the expression of one "${…}"; range is that of the whole */
    EX_TIF,      /* a ? b : c, where b and c are templates (c may be NULL) */
    EX_TFOR,     /* over a: name2 (key, may be NULL), name (value), b template */
    EX_VAR,      /* name */
    EX_ATTR,     /* a.name */
    EX_INDEX,    /* a[b] */
    EX_SPLAT,    /* a[*]b or a.*b: b is applied to each EX_ITEM */
    EX_ITEM,     /* the element that a splat looks at */
    EX_CALL,     /* name(list), last one expanded when `flag` */
    EX_UNARY,    /* op a */
    EX_BINARY,   /* a op b */
    EX_COND,     /* a ? b : c */
    EX_TUPLE,    /* list */
    EX_OBJECT,   /* list: key, value, key, value … */
    EX_FOR,      /* over a: name2 (key, may be NULL), name; key b (NULL: tuple), value c, if d;
                  * `flag`: grouping */
    EX_PAREN     /* a */
};

struct expr {
    enum expr_kind kind;
    uint16_t op; /* enum tok_type of an operator */
    uint16_t depth;
    bool flag;
    bool quoted; /* EX_LITERAL and EX_TEMPLATE: written in quotes or as a heredoc */
    struct hcl_range r;
    struct hcl_range name_r;
    const char *name;
    const char *name2;
    struct value *value;
    struct expr *a, *b, *c, *d;
    struct expr **list;
    size_t n;
};

struct attr {
    const char *name;
    struct hcl_range name_r;
    struct expr *expr;
};

struct label {
    const char *s;
    struct hcl_range r;
};

struct block {
    const char *type;
    struct hcl_range type_r;
    struct label labels[HCL_LABELS_MAX];
    size_t n_labels;
    struct hcl_body *body;
    struct hcl_range r; /* type and labels, without the body */
};

struct hcl_body {
    struct attr **attrs;
    size_t n_attrs;
    struct block **blocks;
    size_t n_blocks;
    struct hcl_range r;
};

#endif
