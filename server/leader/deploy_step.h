/* SPDX-License-Identifier: Apache-2.0
 *
 * What is to be done about one deployment: a function of one moment of the state.
 */
#ifndef PADDOCK_SERVER_LEADER_DEPLOY_STEP_H
#define PADDOCK_SERVER_LEADER_DEPLOY_STEP_H

#include "api/api.h"

struct deploy_in {
    const struct deployment *d; /* active */
    const struct job *job;      /* as it is registered */
    const struct allocation *const *allocs; /* of the deployment */
    size_t n_allocs;
    uint64_t seen; /* index up to which an evaluation has seen the job */
    int64_t now;   /* wall clock, ns */
};

struct deploy_out {
    const char *fails; /* with this description; NULL: it does not */
    bool revert;
    bool promote;
    bool evaluate;
    struct str_list replace; /* unhealthy allocations that may be placed again */
    int64_t deadline;        /* when time alone may change the answer, wall ns; INT64_MAX: never */
};

/* Lists are owned by ctx. */
struct deploy_out deploy_step(const void *ctx, const struct deploy_in *in);

#endif
