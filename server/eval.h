/* SPDX-License-Identifier: Apache-2.0
 *
 * Making evaluations: what each of them has. The strings are borrowed from what it is made of.
 */
#ifndef PADDOCK_SERVER_EVAL_H
#define PADDOCK_SERVER_EVAL_H

#include "api/api.h"
#include "server/env.h"

/* A pending one, of a job. Any thread. */
struct evaluation *eval_of_job(const void *ctx, const struct env *env, const struct job *j,
                               const char *trigger);
/* One that comes after another of the same job; it has no status yet. Any thread. */
struct evaluation *eval_after(const void *ctx, const struct env *env, const struct evaluation *e,
                              const char *trigger);

#endif
