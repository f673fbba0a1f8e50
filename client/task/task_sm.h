/* SPDX-License-Identifier: Apache-2.0
 *
 * One task's life, as a pure machine: no clock, randomness or I/O. Inputs are calls, each with the
 * wall clock in ns; outputs are a set of actions for the runner and changes of `t`, the record that
 * is written to the local state and whose State member the servers get.
 *
 *      WAIT -> LAUNCHING -> RUNNING -> (exit) -> DELAY -> LAUNCHING ...
 *                              |                   \-> DEAD
 *                              \-> GRACE -> STOPPING -> FORCED -> (exit) -> DEAD, LAUNCHING or WAIT
 *
 * The restart policy counts restarts per window: the window begins with the task, and again at the
 * first failure after its end. Restarts that an operator asks for are not counted, nor those of a
 * task that did not end by itself (doc/task-end.md).
 */
#ifndef PADDOCK_CLIENT_TASK_TASK_SM_H
#define PADDOCK_CLIENT_TASK_TASK_SM_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

enum task_phase {
    TASK_WAIT,      /* its turn in the lifecycle has not come */
    TASK_LAUNCHING, /* the intent is (being) written, the warden (being) asked */
    TASK_RUNNING,
    TASK_DELAY,     /* waits out the delay before a restart */
    TASK_GRACE,     /* to be killed: waits out shutdown_delay */
    TASK_STOPPING,  /* the kill signal was sent; kill_timeout runs */
    TASK_FORCED,    /* SIGKILL was sent */
    TASK_DEAD
};

enum task_role { ROLE_MAIN, ROLE_PRESTART, ROLE_POSTSTART, ROLE_POSTSTOP };

struct task_sm_config {
    enum task_role role;
    bool sidecar;
    bool leader;
    bool batch;        /* batch or sysbatch: success ends a main task */
    bool mode_delay;   /* restart.mode = "delay" */
    int64_t attempts;
    int64_t interval_ns;
    int64_t delay_ns;
    int64_t kill_timeout_ns; /* already bounded by the client's maximum */
    int64_t shutdown_delay_ns;
};

/* The acts that the runner must do after a call, in this order. */
enum {
    TASK_ACT_PERSIST = 1 << 0, /* write `t` to the local state */
    TASK_ACT_REPORT = 1 << 1,  /* State changed: tell the allocation */
    TASK_ACT_SIGNAL = 1 << 2,  /* send the kill signal to the task's process */
    TASK_ACT_FORCE = 1 << 3,   /* SIGKILL everything in the task's cgroup */
    TASK_ACT_LAUNCH = 1 << 4,  /* after the write is durable */
    TASK_ACT_TIMER = 1 << 5    /* (re)arm for t->deadline; 0 there: disarm */
};

struct task_exit {
    int64_t code;
    int64_t signal;
    bool oom_killed;
    uint64_t
        oom_pid; /* of the last process that the kernel ended for want of memory; 0: not known */
    const char *oom_comm; /* its name; a task chose it */
    const char *error; /* NULL: none */
    bool with_machine; /* that of the machine or of the pause process: not its own */
    const struct task_record *record; /* what the warden knows of it; NULL: nothing */
};

enum task_kill_reason {
    TASK_KILL_STOP,    /* the server or an operator wants the allocation to stop */
    TASK_KILL_SIBLING, /* another task failed */
    TASK_KILL_LEADER,  /* the leader ended */
    TASK_KILL_MAIN,    /* only sidecars are left */
    TASK_KILL_OVERDUE  /* the allocation has run for max_run_duration */
};

struct task_sm {
    struct task_sm_config cfg;
    struct client_task *t; /* a talloc context of its own; owns everything below it */
};

/* Says whether the task's process is there, and may have been asked to end. */
static inline bool
task_sm_lives(const struct task_sm *m)
{
    return m->t->phase == TASK_RUNNING || m->t->phase == TASK_GRACE ||
           m->t->phase == TASK_STOPPING;
}

/* Fills role, policy and delays from the job; `max_kill_timeout_ns` bounds kill_timeout. */
void task_sm_configure(struct task_sm_config *cfg, const struct job *job,
                       const struct task_group *tg, const struct task *task,
                       int64_t max_kill_timeout_ns);
/* A new record in phase WAIT with the event "Received". */
struct client_task *task_sm_new_record(const void *ctx, const char *name, int64_t now_ns);

/* The lifecycle lets it start. */
unsigned task_sm_start(struct task_sm *m, int64_t now_ns);
/* The process runs (since started_ns): after a launch or an adoption. */
unsigned task_sm_started(struct task_sm *m, int64_t now_ns, int64_t started_ns);
/* The task could not be started. `type` is TASK_EVENT_DRIVER_FAILURE, TASK_EVENT_SETUP_FAILURE
 * and the like.
 * `rnd` here and below: 64 random bits for the jitter of the delay. */
unsigned task_sm_start_failed(struct task_sm *m, int64_t now_ns, uint64_t rnd, const char *type,
                              const char *why, bool recoverable);
/* A launch that was not begun, because it was unwanted before. */
unsigned task_sm_aborted(struct task_sm *m, int64_t now_ns);
unsigned task_sm_exited(struct task_sm *m, int64_t now_ns, uint64_t rnd,
                        const struct task_exit *x);
/* The task ran when the agent was last there and left no trace: runs again, uncounted. */
unsigned task_sm_vanished(struct task_sm *m, int64_t now_ns);
/* The timer for t->deadline is over, whatever the wall clock says now; the next deadline is by that
 * clock. */
unsigned task_sm_timer(struct task_sm *m, int64_t now_ns);
/* Until t->deadline, which is not 0; never longer than its phase lasts: the clock may have been set
 * back while no agent ran. */
int64_t task_sm_left(const struct task_sm *m, int64_t now_ns);
/* Ends it for good. `sibling`: the failed task's name, for TASK_KILL_SIBLING. Idempotent. */
unsigned task_sm_kill(struct task_sm *m, int64_t now_ns, enum task_kill_reason why,
                      const char *sibling, bool no_shutdown_delay);
/* Ends it for good as failed, for a reason of its own surroundings. */
unsigned task_sm_fail(struct task_sm *m, int64_t now_ns, const char *why);
/* Ends and starts it again, not counted. Only while it runs or waits for a restart; else 0. */
unsigned task_sm_restart(struct task_sm *m, int64_t now_ns, const char *reason);
/* Ends it because of a check, which the policy counts as a failure. Only while it runs; else 0. */
unsigned task_sm_unhealthy(struct task_sm *m, int64_t now_ns, const char *reason);
/* Sends it back to WAIT from any phase, once its process has ended; not counted. For each task of
 * an allocation that begins anew (alloc restart -all-tasks). 0: it waits, or is to end for good. */
unsigned task_sm_rewind(struct task_sm *m, int64_t now_ns, const char *reason);
/* Notes that an operator's signal was sent. */
unsigned task_sm_signaled(struct task_sm *m, int64_t now_ns, const char *signal,
                          const char *reason);
/* "Task Setup" and other messages. */
unsigned task_sm_note(struct task_sm *m, int64_t now_ns, const char *type, const char *message);
/* Gives the last event another message, where it is of this type: how far what it tells of is. */
unsigned task_sm_note_again(struct task_sm *m, const char *type, const char *message);

bool task_sm_live(const struct client_task *t);    /* not DEAD */
bool task_sm_process(const struct client_task *t); /* there is, or may be, a process */
bool task_sm_started_once(const struct client_task *t);
/* To be killed, or sent back: a launch that is under way is given up. */
bool task_sm_unwanted(const struct client_task *t);

/* Event types, as the API has them. */
#define TASK_EVENT_RECEIVED "Received"
#define TASK_EVENT_SETUP "Task Setup"
#define TASK_EVENT_DRIVER "Driver"
#define TASK_RESTART_POLICY "Restart within policy" /* the reason that goes without saying */
#define TASK_EVENT_DRIVER_FAILURE "Driver Failure"
#define TASK_EVENT_SETUP_FAILURE "Setup Failure"
#define TASK_EVENT_ARTIFACTS "Downloading Artifacts"
#define TASK_EVENT_ARTIFACT_FAILURE "Failed Artifact Download"
#define TASK_EVENT_VALIDATION "Failed Validation"
#define TASK_EVENT_STARTED "Started"
#define TASK_EVENT_TERMINATED "Terminated"
#define TASK_EVENT_RESTARTING "Restarting"
#define TASK_EVENT_NOT_RESTARTING "Not Restarting"
#define TASK_EVENT_RESTART_SIGNAL "Restart Signaled"
#define TASK_EVENT_SIGNALING "Signaling"
#define TASK_EVENT_KILLING "Killing"
#define TASK_EVENT_KILLED "Killed"
#define TASK_EVENT_SIBLING "Sibling Task Failed"
#define TASK_EVENT_LEADER "Leader Task Dead"
#define TASK_EVENT_MAIN "Main Tasks Dead"
#define TASK_EVENT_RESTORE_FAILED "Failed Restoring Task"
#define TASK_EVENT_SHUTDOWN_DELAY "Waiting for shutdown delay"

#define TASK_EVENT_HOOK_FAILED "Task hook failed"
#define TASK_EVENT_HOOK_MESSAGE "Task hook message"
#define TASK_EVENT_TEMPLATE "Template"
#define TASK_EVENT_UNHEALTHY "Alloc Unhealthy"
#define TASK_EVENT_CHECK "Service Check"
#define TASK_EVENT_PAUSED "Paused"
#define TASK_EVENT_RESUMED "Resumed"
#define TASK_EVENT_PRESSURE "Pressure"
#define TASK_EVENT_DENIED "Denied System Call"

#define TASK_PAUSED "pause" /* TaskState.Paused; "" while it is not */

#define TASK_EVENTS_MAX 10 /* kept per task */

/* task_event.c: a new event owned by ctx, with Type and Time; the setters of task_event.c fill the
 * rest. task_event_add renders DisplayMessage, appends to the record and drops the oldest. */
struct task_event *task_event_new(const void *ctx, const char *type, int64_t now_ns);
void task_event_detail(struct task_event *ev, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void task_event_add(struct client_task *t, struct task_event *ev);

#endif
