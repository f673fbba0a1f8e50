/* SPDX-License-Identifier: Apache-2.0
 *
 * What a job must be to be registered, for the writes that register jobs and for dry runs. Worker
 * threads; memory is of w->ctx.
 */
#ifndef PADDOCK_SERVER_RPC_JOB_ADMIT_H
#define PADDOCK_SERVER_RPC_JOB_ADMIT_H

#include "api/validate.h"
#include "server/call/method.h"

/* The job in canonical form, and everything that is wrong with it. */
struct admitted {
    struct job *job;
    const struct job *old; /* as it is registered, or NULL */
    const struct scheduler_configuration *cfg;
    struct str_list errors, warnings;
    struct str_list unsupported; /* fields without effect in this release, by their places */
};

/* Returns what the configuration of this server allows. */
struct job_limits job_limits_of(const struct write *w);
void job_admit(struct write *w, struct state_txn *t, const struct job *job, struct admitted *a);
/* -ERR_INVALID or -ERR_UNSUPPORTED with all errors: the job may be neither registered nor planned.
 */
int job_admit_or_refuse(struct write *w, struct state_txn *t, const struct job *job,
                        struct admitted *a, struct err *e);
/* Counts and resources of the registered job stay, where the request says so. */
void job_preserve(void *ctx, struct job *job, const struct job *old,
                  const struct job_register_request *req);

/* The intent of a registration (job.c), and its answer; Job.Revert makes one, too. */
int prepare_registration(struct write *w, struct state_txn *t,
                         const struct job_register_request *req, struct err *e);
void job_registered(struct write *w, uint64_t index, struct fsm_result *res);

#endif
