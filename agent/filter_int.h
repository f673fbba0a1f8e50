/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to filter.c and filter_match.c: the compiled form.
 */
#ifndef PADDOCK_AGENT_FILTER_INT_H
#define PADDOCK_AGENT_FILTER_INT_H

#include "agent/filter.h"

enum filter_op { OP_AND, OP_OR, OP_NOT, OP_EQUAL, OP_CONTAINS, OP_MATCHES, OP_EMPTY };

/* A field, or (key set) an element of the map that the step before chose. */
struct selector_step {
    const struct field *field;
    const char *key;
};

struct selector {
    struct selector_step steps[FILTER_PATH_MAX];
    size_t n;
};

struct node_expr {
    enum filter_op op;
    bool negate;
    struct node_expr *a;    /* AND, OR: first of a list; NOT: operand */
    struct node_expr *next; /* in the list of an AND or OR */
    struct selector sel;
    const char *value;
    double number; /* of value, for numeric fields */
    int64_t integer;
    bool boolean;
    void *regex; /* pcre2_code */
};

struct filter {
    struct node_expr *root;
};

/* The operator fits the selected field, the value parses; prepares constants and regexes. */
int filter_check(const void *ctx, struct node_expr *n, struct err *e);

#endif
