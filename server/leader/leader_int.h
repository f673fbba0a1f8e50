/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of leader.c and evalrun.c only. Everything here belongs to the core thread unless it says
 * otherwise.
 */
#ifndef PADDOCK_SERVER_LEADER_LEADER_INT_H
#define PADDOCK_SERVER_LEADER_LEADER_INT_H

#include <stdatomic.h>

#include "common/num.h"
#include "net/loop.h"
#include "server/fsm/fsm.h"
#include "server/gate.h"
#include "server/host.h"
#include "server/leader/blocked.h"
#include "server/leader/broker.h"
#include "server/leader/drainer.h"
#include "server/leader/heartbeat.h"
#include "server/leader/leader.h"
#include "server/leader/owed.h"
#include "server/leader/plan.h"
#include "server/leader/view.h"
#include "server/leader/worker.h"
#include "server/limits.h"
#include "server/sched/sched.h"

/* One evaluation being worked on: snapshot -> worker -> plan queue -> log -> (again) -> status. */
struct run {
    struct leader *l;
    uint64_t gen;             /* of the leadership it belongs to */
    struct evaluation *eval;  /* owned by the run */
    uint64_t token;
    int attempt;
    bool placed;              /* its plans are done: it holds no worker's place any more */
    bool conflicts;           /* some plan was only committed in part */
    void *ctx;                /* of this attempt: owns out */
    bool heavy;               /* it took its time */
    struct state_txn *txn;
    struct node_table *nodes;
    uint64_t snapshot_index;
    struct sched_out *out;
    struct plan_result *verdict; /* what holds of its plan, put into the log part by part */
    struct plan_at at;           /* where in it the part that is in the log begins */
    struct plan_at next_at;      /* and where it ends */
    size_t part_max;             /* changes of a part */
    bool refused;                /* a part of it was not done as it was */
    bool progress;               /* something of it was done */
    const char *failure;         /* why it is given up; NULL: it is not */
    struct run *next;         /* in the plan queue */
};

enum { FIGURE_READY, FIGURE_UNACKED, FIGURE_PENDING, FIGURE_WAITING, FIGURE_BLOCKED, FIGURE_PLANS, FIGURES };

struct leader {
    struct server *s;
    atomic_size_t figures[FIGURES]; /* of the core thread, for metrics */
    struct workers *workers;
    struct gate *gate;
    bool leading;
    uint64_t gen;     /* counts leaderships: results of an older one are dropped */
    struct broker *broker;
    struct blocked *blocked;
    struct live *live;
    size_t n_running; /* runs of this leadership that hold a worker's place */
    struct run *plans; /* waiting for the applier: by priority, then in order */
    bool plan_busy;
    size_t n_draining; /* nodes */
    bool drain_news;   /* of them, or of allocations while there are some */
    int64_t alarm_ms; /* when the loop wakes us; INT64_MAX: never */

    /* loop thread */
    struct owed *owed;
    struct heartbeats *beats;
    bool beats_on;
    struct timer *alarm;
    int64_t alarm_set_ms;
    struct timer *gc_timer;
    struct drainer *drainer;
    int64_t gc_at_ns; /* when it fires, monotonic */
    atomic_bool gc_noted; /* any thread: something has ended since the last look */
    bool stopping;
    atomic_bool retired; /* loop thread sets it */
};

/* Begins work on an evaluation that the broker handed out. */
void run_start(struct leader *l, const struct evaluation *e, uint64_t token);
/* Hands out what is ready, cancels what is superfluous, sets the alarm. */
void leader_work(struct leader *l);
/* Stores evaluations, now or as soon as writes are taken again (owed.h). */
void leader_put_evals(struct leader *l, struct evaluation **v, size_t n);
/* The next plan, if none is in the log already. */
void leader_next_plan(struct leader *l);

#endif
