/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of an allocation's services: each block becomes a plan for a look at it. Pure.
 *
 * The id of a plan covers block, service and allocation, so that a result with the same id is of
 * this very check. The address is no part: a port that was mapped anew makes no other check.
 */
#ifndef PADDOCK_CLIENT_ALLOC_CHECKS_H
#define PADDOCK_CLIENT_ALLOC_CHECKS_H

#include "client/alloc/services.h"

#define CHECK_PENDING "pending"
#define CHECK_SUCCESS "success"
#define CHECK_FAILURE "failure"
#define CHECK_HEALTHINESS "healthiness"
#define CHECK_READINESS "readiness"
#define CHECK_WAITS "nomad: waiting to run"

struct check_plan { /* a talloc context of its own */
    const char *id;
    const char *registration; /* id of what its health is a part of */
    const char *group;        /* the allocation's name */
    const char *task;         /* whose service it is; NULL: the group's */
    const char *restarts;     /* the task that it restarts; NULL: all of the group */
    const char *runs;         /* the task in which its command runs; NULL: it has none */
    const char *service, *name;
    const struct service_check *check; /* resolved */
    const struct check_restart *restart; /* NULL: never */
    bool readiness; /* counts for nothing */
    const char *address;
    int64_t port;
    const char *error; /* why it has no address; NULL: it has one */
};

struct check_plans {
    struct check_plan **v;
    size_t n;
};

/* Adds those of a service, each owned by ctx. */
void checks_add(const void *ctx, const struct services_in *in, const struct service_made *s,
                struct check_plans *ret);
/* Returns a new result of the plan: nobody has looked yet; owned by ctx. */
struct check_result *checks_waiting(const void *ctx, const struct check_plan *p, int64_t now_ns);
/* Returns the health of a registration with such results, of which those of readiness do not count;
 * "": none does. */
const char *checks_health(const struct check_result *const *v, size_t n);
/* Says whether a check that has failed since bad_ns is to restart a task that began at started_ns.
 */
bool checks_restarts(const struct check_plan *p, int64_t bad_ns, int64_t now_ns);
/* Says whether failures count for a task that began at started_ns. */
bool checks_counts(const struct check_plan *p, int64_t started_ns, int64_t now_ns);

#endif
