/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of the API that more than one room compares: statuses, triggers, and the predicates on
 * them. Strings, because that is what the wire and the state carry.
 */
#ifndef PADDOCK_API_TERMS_H
#define PADDOCK_API_TERMS_H

#include <string.h>

#include "api/api.h"
#include "common/str.h"

#define NOMAD_VERSION "2.0.4" /* the release of Nomad whose interface we have */

#define DRAIN_DEADLINE_NS (3600 * INT64_C(1000000000)) /* of a drain that names none */

#define EXPECT_NONE 255 /* in the hello of a server that founds no cluster */

#define NS_DEFAULT "default"
#define NS_ALL "*"
#define POOL_DEFAULT "default"
#define POOL_ALL "all"

#define JOB_SERVICE "service"
#define JOB_BATCH "batch"
#define JOB_SYSTEM "system"
#define JOB_SYSBATCH "sysbatch"

#define JOB_STATUS_PENDING "pending"
#define JOB_STATUS_RUNNING "running"
#define JOB_STATUS_DEAD "dead"

#define PERIODIC_INFIX "/periodic-" /* of a child's id: the seconds follow */
#define DISPATCH_INFIX "/dispatch-"

#define ALLOC_DESIRED_RUN "run"
#define ALLOC_DESIRED_STOP "stop"
#define ALLOC_DESIRED_EVICT "evict"

#define ALLOC_PENDING "pending"
#define ALLOC_RUNNING "running"
#define ALLOC_COMPLETE "complete"
#define ALLOC_FAILED "failed"
#define ALLOC_LOST "lost"
#define ALLOC_UNKNOWN "unknown"

/* The description of an allocation that was ended so, which is complete. */
#define ALLOC_OVERDUE "allocation exceeded max_run_duration"

#define EVAL_BLOCKED "blocked"
#define EVAL_PENDING "pending"
#define EVAL_COMPLETE "complete"
#define EVAL_FAILED "failed"
#define EVAL_CANCELED "canceled"

#define TRIGGER_JOB_REGISTER "job-register"
#define TRIGGER_JOB_DEREGISTER "job-deregister"
#define TRIGGER_JOB_SCALING "job-scaling"
#define TRIGGER_PERIODIC "periodic-job"
#define TRIGGER_NODE_DRAIN "node-drain"
#define TRIGGER_NODE_UPDATE "node-update"
#define TRIGGER_ALLOC_STOP "alloc-stop"
#define TRIGGER_DEPLOYMENT_WATCHER "deployment-watcher"
#define TRIGGER_FAILED_FOLLOW_UP "failed-follow-up"
#define TRIGGER_MAX_PLANS "max-plan-attempts"
#define TRIGGER_ALLOC_FAILURE "alloc-failure"
#define TRIGGER_ALLOC_RESCHEDULE "alloc-reschedule"
#define TRIGGER_QUEUED_ALLOCS "queued-allocs"
#define TRIGGER_PREEMPTION "preemption"
#define TRIGGER_MAX_DISCONNECT "max-disconnect-timeout"
#define TRIGGER_RECONNECT "reconnect"

#define DEPLOYMENT_RUNNING "running"
#define DEPLOYMENT_PAUSED "paused"
#define DEPLOYMENT_FAILED "failed"
#define DEPLOYMENT_SUCCESSFUL "successful"
#define DEPLOYMENT_CANCELLED "cancelled"

/* StatusDescription of deployments, as Nomad's users know them. */
#define DESC_DEPLOY_RUNNING "Deployment is running"
#define DESC_DEPLOY_PROMOTE "Deployment is running but requires manual promotion"
#define DESC_DEPLOY_AUTO_PROMOTE "Deployment is running pending automatic promotion"
#define DESC_DEPLOY_PAUSED "Deployment is paused"
#define DESC_DEPLOY_DONE "Deployment completed successfully"
#define DESC_DEPLOY_STOPPED "Cancelled because job is stopped"
#define DESC_DEPLOY_NEWER "Cancelled due to newer version of job"
#define DESC_DEPLOY_UNHEALTHY "Failed due to unhealthy allocations"
#define DESC_DEPLOY_DEADLINE "Failed due to progress deadline"
#define DESC_DEPLOY_BY_USER "Deployment marked as failed"

#define NODE_INIT "initializing"
#define NODE_READY "ready"
#define NODE_DOWN "down"
#define NODE_DISCONNECTED "disconnected"
#define NODE_ELIGIBLE "eligible"
#define NODE_INELIGIBLE "ineligible"

#define DRAIN_DRAINING "draining"
#define DRAIN_COMPLETE "complete"
#define DRAIN_CANCELED "canceled"

/* The server wants it gone. */
static inline bool
alloc_server_terminal(const struct allocation *a)
{
    return str_eq(a->desired_status, ALLOC_DESIRED_STOP) ||
           str_eq(a->desired_status, ALLOC_DESIRED_EVICT);
}

/* The client says it is over (or the server knows that the client is). It holds no resources. */
static inline bool
alloc_client_terminal(const struct allocation *a)
{
    return str_eq(a->client_status, ALLOC_COMPLETE) || str_eq(a->client_status, ALLOC_FAILED) ||
           str_eq(a->client_status, ALLOC_LOST);
}

static inline bool
alloc_terminal(const struct allocation *a)
{
    return alloc_server_terminal(a) || alloc_client_terminal(a);
}

/* Says whether the deployment may still go on. */
static inline bool
deployment_active(const struct deployment *d)
{
    return !str_eq(d->status, DEPLOYMENT_FAILED) && !str_eq(d->status, DEPLOYMENT_SUCCESSFUL) &&
           !str_eq(d->status, DEPLOYMENT_CANCELLED);
}

static inline bool
alloc_healthy(const struct allocation *a)
{
    return a->deployment_status != NULL && a->deployment_status->healthy.set &&
           a->deployment_status->healthy.v;
}

static inline bool
alloc_unhealthy(const struct allocation *a)
{
    return a->deployment_status != NULL && a->deployment_status->healthy.set &&
           !a->deployment_status->healthy.v;
}

static inline bool
alloc_canary(const struct allocation *a)
{
    return a->deployment_status != NULL && a->deployment_status->canary;
}

/* Canaries of it wait for somebody to promote them. */
static inline bool
deployment_wants_promotion(const struct deployment *d)
{
    for (size_t i = 0; i < d->task_groups.n && str_eq(d->status, DEPLOYMENT_RUNNING); i++)
        if (d->task_groups.v[i].v->desired_canaries > 0 && !d->task_groups.v[i].v->promoted)
            return true;
    return false;
}

/* Takes placements: ready, eligible and not draining. */
static inline bool
node_takes_work(const struct node *n)
{
    return str_eq(n->status, NODE_READY) && n->drain_strategy == NULL &&
           !str_eq(n->scheduling_eligibility, NODE_INELIGIBLE);
}

/* Heartbeats: what the server knows of its allocations is current or about to be. */
static inline bool
node_responsive(const struct node *n)
{
    return str_eq(n->status, NODE_READY) || str_eq(n->status, NODE_INIT);
}

/* Was missed, and is not ready again: nobody knows whether what it runs can be reached. */
static inline bool
node_away(const struct node *n)
{
    return n->last_missed_heartbeat_index != 0;
}

/* Ran to the end and succeeded: a finished batch allocation that is not placed again. */
static inline bool
alloc_ran_successfully(const struct allocation *a)
{
    if (str_eq(a->client_status, ALLOC_COMPLETE))
        return true;
    if (a->task_states.n == 0)
        return false;
    for (size_t i = 0; i < a->task_states.n; i++) {
        const struct task_state *s = a->task_states.v[i].v;
        if (s == NULL || !str_eq(s->state, "dead") || s->failed)
            return false;
    }
    return true;
}

/* Runs nothing itself: it is dispatched, with a payload and meta. What was dispatched is none. */
static inline bool
job_parameterized(const struct job *j)
{
    return j->parameterized_job != NULL && !j->dispatched;
}

/* Children of it are launched when they are due. */
static inline bool
job_periodic_active(const struct job *j)
{
    return j->periodic != NULL && (!j->periodic->enabled.set || j->periodic->enabled.v) &&
           !j->stop && !job_parameterized(j);
}

/* Says whether a job is no work itself, but its children are: nothing of it is evaluated. */
static inline bool
job_is_parent(const struct job *j)
{
    return j->periodic != NULL || job_parameterized(j);
}

/* Returns the group of the name; NULL: there is none, or no job or group. */
static inline const struct task_group *
job_group(const struct job *j, const char *name)
{
    for (size_t i = 0; j != NULL && i < j->task_groups.n; i++)
        if (str_eq(j->task_groups.v[i]->name, name))
            return j->task_groups.v[i];
    return NULL;
}

static inline const struct task *
group_task(const struct task_group *tg, const char *name)
{
    for (size_t i = 0; tg != NULL && i < tg->tasks.n; i++)
        if (str_eq(tg->tasks.v[i]->name, name))
            return tg->tasks.v[i];
    return NULL;
}

#endif
