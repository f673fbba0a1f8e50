/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables and locals of a job file: declarations, the values that were given, validation.
 */
#ifndef PADDOCK_JOBSPEC_VARS_H
#define PADDOCK_JOBSPEC_VARS_H

#include "jobspec/ast.h"
#include "jobspec/eval.h"

/* Takes the blocks variable, variables and locals of `body` and the values of `in` into ev->vars
 * and ev->locals. Goes on after errors; false when there was one. */
bool vars_load(struct hcl_eval *ev, const struct hcl_body *body, const struct jobspec_input *in);

#endif
