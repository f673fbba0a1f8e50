/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the language: a table from names to C functions. Arguments come evaluated, but
 * for try(), can() and convert(), which look at expressions.
 */
#ifndef PADDOCK_JOBSPEC_FUNC_FUNC_H
#define PADDOCK_JOBSPEC_FUNC_FUNC_H

#include "jobspec/eval.h"

struct call {
    struct hcl_eval *ev;
    const struct hcl_scope *sc;
    const struct expr *e;
    struct value **args;
    size_t n;
    bool failed; /* an argument did not fit: a diagnostic was given */
    struct regex *clusters; /* of functions on text, made when one needs it */
};

struct func {
    const char *name;
    short min;
    short max;                           /* -1: any number */
    struct value *(*fn)(struct call *c); /* NULL after a diagnostic */
    bool lazy;                           /* gets no args */
};

/* Tables, ended by a NULL name. */
extern const struct func func_numeric[];
extern const struct func func_string[];
extern const struct func func_regex[];
extern const struct func func_collection[];
extern const struct func func_set[];
extern const struct func func_encoding[];
extern const struct func func_json[];
extern const struct func func_date[];
extern const struct func func_digest[];
extern const struct func func_yaml[];
extern const struct func func_network[];
extern const struct func func_file[];
extern const struct func func_type[];

struct value *func_call(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e);

/* --- for the functions: on a mismatch they set c->failed and return something harmless --- */
const char *arg_str(struct call *c, size_t i);
size_t arg_len(struct call *c, size_t i); /* bytes of arg_str */
int64_t arg_int(struct call *c, size_t i);
double arg_num(struct call *c, size_t i);
/* A number, of text that is one as well. */
const struct value *arg_number(struct call *c, size_t i);
struct value *arg_list(struct call *c, size_t i); /* a map gives an error */
struct value *arg_map(struct call *c, size_t i);
/* A list, tuple or set as a list of strings, or of whatever its elements have in common. */
struct value *arg_strings(struct call *c, size_t i);
struct value *arg_uniform(struct call *c, size_t i);
/* True, after a diagnostic: it is null. */
bool arg_null(struct call *c, size_t i);
/* `v`, which came by argument i, as a value of the type. NULL after a diagnostic. */
struct value *ret_converted(struct call *c, size_t i, const struct vtype *t, struct value *v);
/* Diagnostic at argument i (or the call, when i >= n): NULL. */
void *arg_error(struct call *c, size_t i, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
struct value *ret_str(struct call *c, const char *s);
struct value *ret_strn(struct call *c, const char *s, size_t n);
struct value *ret_int(struct call *c, int64_t i); /* counted: with NUMBER_INT_BITS */
struct value *ret_bool(struct call *c, bool b);
struct value *ret_list(struct call *c, size_t n);
bool call_charge(struct call *c, size_t steps, size_t bytes);

#endif
