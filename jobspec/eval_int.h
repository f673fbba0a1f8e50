/* SPDX-License-Identifier: Apache-2.0
 *
 * What eval.c and eval_tmpl.c share.
 */
#ifndef PADDOCK_JOBSPEC_EVAL_INT_H
#define PADDOCK_JOBSPEC_EVAL_INT_H

#include "jobspec/eval.h"

/* One turn of a loop: binds the names of `e` to element i of `coll`. */
struct turn {
    struct hcl_scope key, val;
    const struct hcl_scope *sc;
};

/* Binds; `sc` is what was visible before, `coll` a list or a map. */
void ev_turn(struct hcl_eval *ev, struct turn *t, const struct hcl_scope *sc, const struct expr *e,
             const struct value *coll, size_t i);
/* The collection of a loop and its length, charged; NULL after a diagnostic. */
struct value *ev_loop_over(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e,
                           size_t *ret_n);
/* "Unsuitable value: a bool is needed, this is a list." Returns NULL. */
struct value *ev_bad_operand(struct hcl_eval *ev, const struct expr *e, const struct value *v,
                             const char *need);
/* EX_TEMPLATE and its parts. */
struct value *ev_template(struct hcl_eval *ev, const struct hcl_scope *sc, const struct expr *e);

#endif
