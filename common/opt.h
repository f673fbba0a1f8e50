/* SPDX-License-Identifier: Apache-2.0
 *
 * Command-line option tables, Go flag style: -name value, -name=value, --name, booleans as -name or
 * -name=false. One table drives parsing, help text, shell completion and the check of man pages.
 */
#ifndef PADDOCK_COMMON_OPT_H
#define PADDOCK_COMMON_OPT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

enum opt_kind { OPT_BOOL, OPT_STRING, OPT_INT, OPT_DURATION, OPT_LIST };

/* The values that OPT_LIST collects, or positional arguments, in order of appearance; values point
 * into argv. */
struct opt_list {
    const char **v; /* talloc'ed under the ctx given to opt_parse */
    size_t n;
};

struct opt {
    const char *name; /* without dash; NULL ends the table */
    enum opt_kind kind;
    void *dst;        /* bool *, const char **, int64_t *, int64_t * (ns), struct opt_list * */
    const char *arg;  /* placeholder in help, NULL for booleans */
    const char *help; /* one sentence */
    bool *seen;       /* optional: set when given */
};

/* Parses argv[1..] by `tables`, up to NULL; options may come before, between and after positional
 * arguments, which *ret gets, "--" ends them. -h, -help, --help: returns 1. Unknown option:
 * -ERR_INVALID with the nearest name suggested. */
typedef int opt_parse_fn(const void *ctx, const struct opt *const *tables, int argc, char **argv,
                         struct opt_list *ret, struct err *e);
opt_parse_fn opt_parse;
/* The same, but options end at the first positional argument; a "--" right after it is dropped. */
opt_parse_fn opt_parse_leading;

#endif
