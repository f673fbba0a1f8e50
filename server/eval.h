/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluations (api/eval.h) with an id and the time of the server.
 */
#ifndef PADDOCK_SERVER_EVAL_H
#define PADDOCK_SERVER_EVAL_H

#include "api/api.h"
#include "server/env.h"

/* A pending one, of a job. Any thread. */
struct evaluation *eval_of_job(const void *ctx, const struct env *env, const struct job *j,
                               const char *trigger);
/* One that comes after another of the same job. Any thread. */
struct evaluation *eval_after(const void *ctx, const struct env *env, const struct evaluation *e,
                              const char *trigger);

#endif
