/* SPDX-License-Identifier: Apache-2.0
 *
 * Refusals that follow from the job alone, told when the job is registered, planned or validated.
 * Each task goes through its driver, and then through the checks of the warden's policy or of the
 * engine hand, with all allowed that an operator can allow. Pure; any thread.
 */
#ifndef PADDOCK_AGENT_ADMIT_H
#define PADDOCK_AGENT_ADMIT_H

#include "api/api.h"

/* Takes a canonical job that job_validate() found well; texts are owned by ctx. */
void admit_job(const void *ctx, const struct job *job, struct str_list *errors);

#endif
