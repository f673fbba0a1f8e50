/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluator: expressions to values, within a budget of steps and bytes. Values are immutable
 * and shared freely; maps are sorted by key, sets are sorted lists without duplicates.
 *
 * A "${…}" that refers to anything but variables, locals and iterators ("${attr.cpu.arch}",
 * "${NOMAD_PORT_http}") is not evaluated: its text stays for the scheduler and the client.
 */
#ifndef PADDOCK_JOBSPEC_EVAL_H
#define PADDOCK_JOBSPEC_EVAL_H

#include "jobspec/ast.h"
#include "jobspec/jobspec.h"
#include "jobspec/limits.h"
#include "jobspec/number.h"

/* A chain of names that are bound: iterators of `for` and `dynamic`. */
struct hcl_scope {
    const struct hcl_scope *up;
    const char *name;
    struct value *v;
};

struct hcl_local {
    const char *name;
    const struct expr *expr;
    struct hcl_range name_r;
    struct value *v;
    bool busy; /* being evaluated: a reference to it is a cycle */
};

struct hcl_eval {
    const void *ctx;
    struct hcl_sink *sink;
    unsigned flags;     /* HCL_LITERAL: no references, no functions */
    bool names;         /* `var` and `local` mean something */
    struct value *vars; /* map of all variables, sorted */
    struct hcl_local *locals;
    size_t n_locals;
    const struct jobspec_fs *fs;
    void (*random)(void *p, size_t n); /* NULL: none is at hand */
    struct value *item;                /* EX_ITEM */
    size_t steps_left;
    size_t bytes_left;
    unsigned depth;
    bool exhausted; /* a limit was hit: nothing more is evaluated */
};

void ev_init(struct hcl_eval *ev, const void *ctx, struct hcl_sink *sink, unsigned flags);
/* NULL after a diagnostic. */
struct value *ev_expr(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e);
/* NULL without one: what is wrong is not told, but that the budget is used up. */
struct value *ev_attempt(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e);
/* False, after a diagnostic at r, when the budget is used up. */
bool ev_charge(struct hcl_eval *ev, const struct hcl_range *r, size_t steps, size_t bytes);
/* True when e refers to a name that is not bound: known at run time only. */
bool ev_is_runtime(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e);

/* --- values --- */

/* The kinds of collection, in `form`: as written, or made by a type or by functions. */
enum { FORM_TUPLE = 0, FORM_LIST, FORM_SET };
enum { FORM_OBJECT = 0, FORM_MAP };

/* Collections of known size: fill v[0..n). Charged; NULL after a diagnostic. */
struct value *ev_list(struct hcl_eval *ev, const struct hcl_range *r, size_t n);
/* Sorts the pairs; of equal keys the last one stays. */
struct value *ev_map(struct hcl_eval *ev, const struct hcl_range *r, struct value_pair *pairs,
                     size_t n);
struct value *ev_strn(struct hcl_eval *ev, const struct hcl_range *r, const char *s, size_t n);
/* Sharing lets a small file make values that are huge or deep when they are walked: before a walk,
 * this bounds the depth and charges the size. False after a diagnostic. */
bool ev_measure(struct hcl_eval *ev, const struct hcl_range *r, const struct value *v);
/* Look-up in a sorted map. */
struct value *ev_get(const struct value *map, const char *key);

/* Strings, numbers and bools as text; NULL for the rest. */
const char *value_text(const void *ctx, const struct value *v);
bool value_truth(const struct value *v, bool *ret); /* true, false, and as text, with "1", "0" */
/* -1, 0, 1: a total order, in which sets are sorted. */
int value_order(const struct value *a, const struct value *b);
int value_order_at(const void *a, const void *b); /* the same for qsort over struct value * */
/* Equal, and of equal type: a tuple is no list, an object no map. */
bool value_same(const struct value *a, const struct value *b);

/* --- type constraints: string, list(number), object({a = string}) … --- */

enum vtype_kind {
    VT_ANY,
    VT_STRING,
    VT_NUMBER,
    VT_BOOL,
    VT_LIST,
    VT_SET,
    VT_MAP,
    VT_OBJECT,
    VT_TUPLE
};

struct vtype {
    enum vtype_kind kind;
    const struct vtype *elem; /* LIST SET MAP */
    const char **names;       /* OBJECT */
    bool *optional;
    struct value **dflts;       /* OBJECT: of optional ones, converted; NULL: none, it is null */
    const struct vtype **types; /* OBJECT, TUPLE */
    size_t n;
};

/* NULL after a diagnostic. `exact`: `any` is none. */
const struct vtype *vtype_parse(struct hcl_eval *ev, const struct expr *e, bool exact);
/* The type to which all of these can be converted: VT_ANY for none and for null. NULL when there is
 * none, or the budget is used up. */
const struct vtype *vtype_unify(struct hcl_eval *ev, struct value *const *v, size_t n);
/* NULL when v does not fit, with the reason in `why` ("at element 2: a number is needed"). */
struct value *vtype_convert(struct hcl_eval *ev, const struct hcl_range *r, const struct vtype *t,
                            struct value *v, char *why, size_t why_size);

#endif
