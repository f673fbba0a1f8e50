/* SPDX-License-Identifier: Apache-2.0
 *
 * Specifications of variables and how one is printed, for all commands of them.
 */
#ifndef PADDOCK_CLI_VAR_VAR_H
#define PADDOCK_CLI_VAR_VAR_H

#include "cli/api.h"

/* How it is printed: -out, -template. */
struct var_out {
    const char *as, *tmpl;
};
#define VAR_OUT_OPTS(o, words)                                                                     \
    {"out", OPT_STRING, &(o).as, "<format>",                                                       \
     "How it is printed: " words ". Without it a terminal gets the last of these that is for "     \
     "people, and a file or pipe JSON."},                                                          \
        {"template", OPT_STRING, &(o).tmpl, "<template>",                                          \
         "The Go template for -out go-template."}

/* Fills in what was not given; `people`: of a terminal. False: what is wrong was said. */
bool var_out_check(struct cmd *c, struct var_out *o, const char *const *words, const char *people);
/* Prints a variable: the command's code. */
int var_print(struct cmd *c, const struct var_out *o, const struct variable *v);

/* Reads the specification of args[0] ("-", "@file", or a path) and of those behind it ("@file",
 * "key=value", "key=@file", "key=-"). NULL: what is wrong was said. `in`: "hcl" or "json" of what
 * has no such name. */
struct variable_spec *var_spec_read(struct cmd *c, const char *in, size_t n_args);
/* Returns the target of the variable, in its namespace. */
char *var_target(struct cmd *c, const struct variable_spec *s, const char *param,
                 const char *value);
/* Says that another version is there; returns 1. */
int var_conflict(struct cmd *c, uint64_t index, const struct variable *there);

#endif
