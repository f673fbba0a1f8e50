/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of leader/ only: the leader and its controllers. Everything here belongs to the core
 * thread unless it says otherwise.
 */
#ifndef PADDOCK_SERVER_LEADER_LEADER_INT_H
#define PADDOCK_SERVER_LEADER_LEADER_INT_H

#include <stdatomic.h>

#include "server/fsm/fsm.h"
#include "server/gate.h"
#include "server/hook.h"
#include "server/host.h"
#include "server/leader/blocked.h"
#include "server/leader/broker.h"
#include "server/leader/controllers.h"
#include "server/leader/debts.h"
#include "server/leader/heartbeat.h"
#include "server/leader/leader.h"
#include "server/leader/live.h"
#include "server/leader/moment.h"
#include "server/leader/plan.h"
#include "server/leader/worker.h"
#include "server/limits.h"
#include "server/sched/sched.h"

struct run;
/* Ends the wait of a run for its entry, which is in the log, or will not be: `code` < 0, and `res`
 * NULL unless the FSM refused it. */
typedef void run_answer_fn(struct run *r, int code, struct fsm_result *res);

/* Loop thread: `came`: r->lent is there; false: nobody took the attempt, or nothing came back. */
typedef void run_lent_fn(struct run *r, bool came);

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
    bool here;                /* a worker of this server has it */
    struct moment seen;       /* of this attempt, where it is made here */
    uint64_t lent_index;      /* where it is not: the last entry that it must see */
    struct bytes lent;        /* ... and what came back, encoded */
    run_lent_fn *lent_over;
    uint64_t snapshot_index;
    struct sched_out *out;
    struct plan_check *check;    /* under way */
    struct plan_verdict verdict; /* what holds of its plan, put into the log part by part */
    struct plan_at at;           /* where in it the part that is in the log begins */
    struct plan_at next_at;      /* and where it ends */
    size_t part_max;             /* changes of a part */
    bool refused;                /* a part of it was not done as it was */
    bool progress;               /* something of it was done */
    bool shortened;              /* its outcome could not be stored: that is stored */
    const char *failure;         /* why it is given up; NULL: it is not */
    run_answer_fn *answered;     /* the log has what it proposed last */
    struct run *next;         /* in the plan queue */
};

enum {
    FIGURE_READY,
    FIGURE_UNACKED,
    FIGURE_PENDING,
    FIGURE_WAITING,
    FIGURE_BLOCKED,
    FIGURE_PLANS,
    FIGURES
};

struct leader {
    struct server *s;
    const struct env *env;
    struct env clock; /* of the server, moved as tests want it */
    struct gate *gate;
    struct workers *workers;
    int64_t started_ns;             /* they, by the wall clock */
    atomic_size_t figures[FIGURES]; /* of the apply thread, for metrics */
    atomic_bool retired;            /* loop thread sets it */
    void (*on_alarm)(void *leader); /* apply thread: on_batch of each row */

    uint64_t applied; /* the last entry that was heard of, leading or not */
    bool leading;
    uint64_t gen; /* counts leaderships: results of an older one are dropped */
    struct broker *broker;
    struct blocked *blocked;
    struct live *live;
    size_t n_running;  /* runs of this leadership that hold a worker's place, here or elsewhere */
    size_t n_here;     /* attempts that workers of this server have */
    struct run *plans; /* waiting for the applier: by priority, then in order */
    bool plan_busy;

    /* loop thread */
    bool on; /* between begin and end */
    bool stopping;
    struct heartbeats *beats;

    /* the part of each controller: struct NAME, NULL: nothing */
#define STATE(name) struct name *name;
    CONTROLLERS(STATE)
#undef STATE
};

/* Apply thread: on_alarm() is called at this time, or before (alarm.c). */
void leader_alarm(struct leader *l, int64_t at_ms);
/* Apply thread: a write that nobody waits for (debts.h). */
void leader_owe(struct leader *l, const struct intent *in);

/* A run has ended: who asked for a step of it is told. */
#ifdef FAULT_INJECTION
void test_hook_alarm(struct leader *l); /* rings now, and is set anew */
void test_hook_ran(struct leader *l, const char *eval_id);
#else
static inline void
test_hook_ran(struct leader *l, const char *eval_id)
{
    (void)l;
    (void)eval_id;
}
#endif

/* Begins work on an evaluation that the broker handed out. */
void run_start(struct leader *l, const struct evaluation *e, uint64_t token);
/* Drops the runs that wait in the plan queue. */
void runs_drop(struct leader *l);

/* --- workers of other servers (borrow.c, lend.c) --- */
/* Any thread: how many there are. */
size_t borrow_room(const struct leader *l);
/* Another server is to make the attempt; over() comes once. */
void borrow_ask(struct leader *l, struct run *r, run_lent_fn *over);
/* Apply thread: an entry more. */
void lend_applied(struct leader *l);
/* Loop thread, when no other thread runs: what was lent and did not come to its end. */
void lend_free(struct leader *l);

/* Hands out what is ready, cancels what is superfluous, sets the alarm. */
void leader_work(struct leader *l);

#endif
