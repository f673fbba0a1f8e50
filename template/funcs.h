/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that a template calls: rows of tables, a table per file.
 */
#ifndef PADDOCK_TEMPLATE_FUNCS_H
#define PADDOCK_TEMPLATE_FUNCS_H

#include "template/collect.h"

/* Arguments are of the types that `params` says, a letter each:
 *   s string, i int, I int64, f float64, b bool, a interface{}, v a value of any kind or none,
 *   l []interface{}, S []string, m map[string]interface{}, t map[string]string, F an option
 * A dot at the end: the last may come any number of times. A function fails by run_fail(). */
typedef struct gv function_fn(struct run *r, struct gv *a, size_t n);

struct function {
    const char *name;
    function_fn *fn;
    const char *params;
    enum { FUNCTION_PLAIN, FUNCTION_AND, FUNCTION_OR, FUNCTION_CALL } special;
};

/* NULL at the end of each table. */
extern const struct function functions_go[], functions_text[], functions_math[], functions_ask[],
    functions_data[], functions_sprig_case[], functions_sprig_lists[], functions_sprig_numbers[],
    functions_sprig_text[], functions_semver[], functions_url[];
extern const struct function function_disabled;

/* NULL: unknown, or refused with words in e. */
const struct function *function_find(struct run *r, const struct template_grammar *g,
                                     struct slice word, struct err *e);
/* The type that a letter of `params` stands for. */
const struct gv_type *function_type(char letter);

#endif
