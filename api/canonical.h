/* SPDX-License-Identifier: Apache-2.0
 *
 * Canonical form of a job: every default that Nomad fills in, by job type. Pure and idempotent. The
 * server does it at registration, `job run -output` and /v1/jobs/parse before printing. Meta is not
 * merged here: the client does that when it builds the environment.
 */
#ifndef PADDOCK_API_CANONICAL_H
#define PADDOCK_API_CANONICAL_H

#include "api/api.h"

/* Fills in `job`; new memory is owned by ctx, which must live as long as the job. */
void job_canonicalize(const void *ctx, struct job *job);

/* Constraints that follow from what a job uses (bridge networks, kill signals), each only where no
 * constraint on the same attribute exists. Called by the server after job_canonicalize. */
void job_imply_constraints(const void *ctx, struct job *job);

#endif
