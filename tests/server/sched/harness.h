/* SPDX-License-Identifier: Apache-2.0
 *
 * The scheduler without a server: jobs, nodes and allocations in arrays, plans applied at once. One
 * line runs an evaluation end to end.
 */
#ifndef PADDOCK_TESTS_SERVER_SCHED_HARNESS_H
#define PADDOCK_TESTS_SERVER_SCHED_HARNESS_H

#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/query/explain.h"
#include "server/sched/resources.h"
#include "server/sched/sched.h"
#include "server/sched/query/simulate.h"

struct harness {
    uint64_t index;
    int64_t now;
    struct rng rng;
    struct scheduler_configuration config;
    const struct node_pool *pool; /* NULL: none has a configuration of its own */
    struct { struct node **v; size_t n; } nodes;
    struct { struct job **v; size_t n; } jobs;     /* every version */
    struct { struct allocation **v; size_t n; } allocs;
    struct { struct deployment **v; size_t n; } deployments;
    struct { struct evaluation **v; size_t n; } waiting; /* follow-ups that did not come yet */
    int64_t entry_ns;    /* so much later than its evaluation is an entry made */
    const char *trigger; /* of the next evaluations; NULL: none */
    const char *rejects; /* a node whose placements are refused, as a plan applier would */
    struct sched_out *last;
    void *last_ctx;
};

struct harness *h_new(void);
void h_free(struct harness *h);

/* "n1" with 4000 MHz, 8192 MB, 100 GB, dc1, drivers exec and raw_exec, one address. */
struct node *h_node(struct harness *h, const char *name);
struct node *h_find(struct harness *h, const char *name);
const char *h_node_id(const char *name); /* static storage */

/* A canonical service job with one group "web" of one task "t" (500 MHz, 256 MB). Not stored. */
struct job *h_job(struct harness *h, const char *id, const char *type, int64_t count);
/* Stores a clone as the next version. */
struct job *h_register(struct harness *h, const struct job *j);
struct job *h_latest(struct harness *h, const char *id);

/* One attempt for the job; its plan is applied. The result lives until the next one. */
struct sched_out *h_eval(struct harness *h, const char *job_id);
/* Why one more can be placed where; names two nodes for each reason. Lives as long. */
struct job_explanation *h_explain(struct harness *h, const char *job_id, const char *group,
                                  const char *node);
/* A drain of the node, on a copy. */
int h_simulate(struct harness *h, const char *node_id, struct simulation **ret, struct err *e);
struct sched_out *h_eval_as(struct harness *h, const char *job_id, const char *eval_id);

/* The newest deployment of the job; NULL: none. */
struct deployment *h_deployment(struct harness *h, const char *job_id);
/* Its client says so; all: that run and of which nothing was said. */
void h_healthy(struct harness *h, struct allocation *a, bool healthy);
void h_all_healthy(struct harness *h);

/* Allocations of a job that the server wants to run and the client has not ended. */
size_t h_live(struct harness *h, const char *job_id);
struct allocation *h_alloc(struct harness *h, const char *name); /* a live one; NULL */
void h_all_running(struct harness *h);
/* Stopping tasks have stopped. */
void h_all_stopped(struct harness *h);
void h_fail(struct harness *h, struct allocation *a);

/* Aborts when a node is over-committed, a port is used twice or a name is live twice. */
void h_check(struct harness *h);

#endif
