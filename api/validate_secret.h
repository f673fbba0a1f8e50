/* SPDX-License-Identifier: Apache-2.0
 *
 * The secret blocks of a task: variables whose values ${secret.NAME.KEY} stands for. Pure.
 */
#ifndef PADDOCK_API_VALIDATE_SECRET_H
#define PADDOCK_API_VALIDATE_SECRET_H

#include "api/api.h"

/* Adds to `errors`, whose texts are ctx's. */
void secret_validate(const void *ctx, const struct task *t, struct str_list *errors);
/* Providers that are not there. */
void secret_unsupported(const void *ctx, const struct job *job, struct str_list *errors);

#endif
