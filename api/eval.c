/* SPDX-License-Identifier: Apache-2.0
 *
 * Making evaluations (see eval.h).
 */
#include "api/eval.h"

#include "api/terms.h"
#include "common/mem.h"

enum { PRIORITY_DEFAULT = 50 };

struct evaluation *
eval_new(const void *ctx, const struct eval_args *x)
{
    struct evaluation *e = mem_new(ctx, struct evaluation);
    const struct evaluation *a = x->after;
    const struct job *j = x->job;

    ASSERT((a == NULL) != (j == NULL) && x->id != NULL && x->trigger != NULL);
    e->id = x->id;
    e->triggered_by = x->trigger;
    e->status = EVAL_PENDING;
    e->create_time = e->modify_time = x->now;
    e->namespace = a != NULL ? a->namespace : j->namespace;
    e->type = a != NULL ? a->type : j->type;
    e->job_id = a != NULL ? a->job_id : j->id;
    e->job_modify_index = a != NULL ? a->job_modify_index : j->job_modify_index;
    e->priority = PRIORITY_DEFAULT;
    if (a != NULL)
        e->priority = a->priority;
    else if (j->priority.set)
        e->priority = j->priority.v;
    e->previous_eval = a != NULL ? a->id : NULL;
    return e;
}
