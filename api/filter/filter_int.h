/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to filter.c and filter_match.c: the compiled form.
 */
#ifndef PADDOCK_API_FILTER_FILTER_INT_H
#define PADDOCK_API_FILTER_FILTER_INT_H

#include "api/filter/filter.h"

enum filter_op {
    OP_AND,
    OP_OR,
    OP_NOT,
    OP_ANY,
    OP_ALL,
    OP_EQUAL,
    OP_CONTAINS,
    OP_MATCHES,
    OP_EMPTY,
    OP_NIL
};

/* The kind of thing that a selector chooses, as far as it is known without an object. */
struct spot {
    uint8_t type, shape;
    bool opt;
    const struct type *sub; /* of a struct */
    const char *name;       /* for messages */
};

struct selector_step {
    const struct field *field; /* of a struct; else of a map or list: */
    const char *key;
    size_t index;
};

struct selector {
    int var; /* it begins at what "any" or "all" named; -1: at the object */
    struct spot spot, start;
    struct selector_step steps[FILTER_PATH_MAX];
    size_t n;
};

struct node_expr {
    enum filter_op op;
    bool negate;
    struct node_expr *a;    /* AND, OR: first of a list; NOT, ANY, ALL: operand */
    struct node_expr *next; /* in the list of an AND or OR */
    struct selector sel;
    int key_var, value_var; /* ANY, ALL; -1: not named */
    const char *value;
    double number; /* of value, for numeric fields */
    int64_t integer;
    bool boolean;
    struct regex *regex;
};

struct filter {
    struct node_expr *root;
};

/* Returns the spot of an element of a map or list. */
struct spot spot_element(const struct spot *s);
/* The operator fits the selected field, the value parses; prepares constants and regexes. */
int filter_check(struct node_expr *n, struct err *e);

#endif
