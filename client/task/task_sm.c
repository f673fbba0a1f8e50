/* SPDX-License-Identifier: Apache-2.0
 *
 * The task state machine; see task_sm.h for its states. Pure.
 *
 * task_sm_move() holds every change of phase against the table of what may follow. In this order:
 * configuration; ends, where the restart policy decides between another launch and death; inputs,
 * one function for each thing that can happen to a task, which may come in any phase; and what
 * callers ask. A launch or kill that is under way is never forgotten by an input that comes in
 * between.
 */
#include "client/task/task_sm.h"

#include <string.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

#define CHANGED (TASK_ACT_PERSIST | TASK_ACT_REPORT)

/* Which phases may follow which; checked on every move. */
static const uint16_t next_phases[] = {
    [TASK_WAIT] = 1 << TASK_LAUNCHING | 1 << TASK_DEAD,
    [TASK_LAUNCHING] = 1 << TASK_RUNNING | 1 << TASK_DELAY | 1 << TASK_DEAD | 1 << TASK_FORCED |
                       1 << TASK_LAUNCHING | 1 << TASK_WAIT,
    [TASK_RUNNING] = 1 << TASK_DELAY | 1 << TASK_GRACE | 1 << TASK_STOPPING | 1 << TASK_DEAD |
                     1 << TASK_LAUNCHING | 1 << TASK_WAIT,
    [TASK_DELAY] = 1 << TASK_LAUNCHING | 1 << TASK_DEAD | 1 << TASK_WAIT,
    [TASK_GRACE] = 1 << TASK_STOPPING | 1 << TASK_DELAY | 1 << TASK_DEAD | 1 << TASK_LAUNCHING |
                   1 << TASK_WAIT,
    [TASK_STOPPING] = 1 << TASK_FORCED | 1 << TASK_DELAY | 1 << TASK_DEAD | 1 << TASK_LAUNCHING |
                      1 << TASK_WAIT,
    [TASK_FORCED] = 1 << TASK_DELAY | 1 << TASK_DEAD | 1 << TASK_LAUNCHING | 1 << TASK_WAIT,
    [TASK_DEAD] = 1 << TASK_WAIT,
};

static void
task_sm_move(struct task_sm *m, enum task_phase to)
{
    ASSERT(m->t->phase >= 0 && m->t->phase <= TASK_DEAD);
    ASSERT(next_phases[m->t->phase] & (1u << to));
    m->t->phase = to;
}

static void
set_state(struct task_sm *m, const char *state)
{
    m->t->state->state = state;
}

static void
task_sm_emit(struct task_sm *m, struct task_event *ev)
{
    task_event_add(m->t, ev);
}

static void
emit_plain(struct task_sm *m, const char *type, int64_t now_ns)
{
    task_sm_emit(m, task_event_new(m->t, type, now_ns));
}

/* --- configuration --- */

static enum task_role
role_of(const struct task *task)
{
    if (!task->lifecycle)
        return ROLE_MAIN;
    const char *hook = task->lifecycle->hook;
    if (str_eq(hook, "prestart"))
        return ROLE_PRESTART;
    if (str_eq(hook, "poststart"))
        return ROLE_POSTSTART;
    if (str_eq(hook, "poststop"))
        return ROLE_POSTSTOP;
    return ROLE_MAIN;
}

static int64_t
or_i64(struct opt_i64 o, int64_t dflt)
{
    return o.set ? o.v : dflt;
}

void
task_sm_configure(struct task_sm_config *cfg, const struct job *job, const struct task_group *tg,
                  const struct task *task, int64_t max_kill_timeout_ns)
{
    *cfg = (struct task_sm_config){0};
    cfg->role = role_of(task);
    cfg->sidecar = task->lifecycle && task->lifecycle->sidecar;
    cfg->leader = task->leader;
    cfg->batch = str_eq(job->type, JOB_BATCH) || str_eq(job->type, JOB_SYSBATCH);
    static const struct restart_policy none;
    const struct restart_policy *g = tg->restart_policy ? tg->restart_policy : &none;
    const struct restart_policy *p = task->restart_policy ? task->restart_policy : g;
    cfg->attempts = or_i64(p->attempts, or_i64(g->attempts, cfg->batch ? 3 : 2));
    cfg->interval_ns =
        or_i64(p->interval, or_i64(g->interval, (cfg->batch ? 24 * 60 : 30) * 60 * NS_PER_S));
    cfg->delay_ns = or_i64(p->delay, or_i64(g->delay, 15 * NS_PER_S));
    cfg->mode_delay = str_eq(str_or(p->mode, str_or(g->mode, "fail")), "delay");
    int64_t kill = or_i64(task->kill_timeout, 5 * NS_PER_S);
    if (kill < 0)
        kill = 0;
    if (kill > max_kill_timeout_ns)
        kill = max_kill_timeout_ns;
    cfg->kill_timeout_ns = kill;
    int64_t group_delay = or_i64(tg->shutdown_delay, 0);
    cfg->shutdown_delay_ns = task->shutdown_delay > 0 ? task->shutdown_delay : 0;
    if (group_delay > 0)
        cfg->shutdown_delay_ns += group_delay;
}

struct client_task *
task_sm_new_record(const void *ctx, const char *name, int64_t now_ns)
{
    struct client_task *t = mem_new(ctx, struct client_task);
    t->name = mem_strdup(t, name);
    t->state = mem_new(t, struct task_state);
    t->state->state = "pending";
    t->phase = TASK_WAIT;
    t->window_start = now_ns;
    task_event_add(t, task_event_new(t, TASK_EVENT_RECEIVED, now_ns));
    return t;
}

/* --- ends --- */

static unsigned
task_sm_die(struct task_sm *m, int64_t now_ns, bool failed)
{
    task_sm_move(m, TASK_DEAD);
    set_state(m, "dead");
    m->t->state->failed = m->t->state->failed || failed;
    m->t->state->finished_at = now_ns;
    m->t->deadline = 0;
    m->t->restart = m->t->rewind = m->t->unhealthy = false;
    return CHANGED | TASK_ACT_TIMER;
}

/* Waits for its turn as if it never ran; Restarts and events stay. */
static unsigned
wait_again(struct task_sm *m)
{
    struct client_task *t = m->t;
    task_sm_move(m, TASK_WAIT);
    set_state(m, "pending");
    t->kill = t->kill_fails = t->restart = t->rewind = t->unhealthy = false;
    t->state->failed = false;
    t->state->finished_at = 0;
    t->state->started_at = 0;
    t->attempts = 0;
    t->deadline = 0;
    return CHANGED | TASK_ACT_TIMER;
}

static unsigned
task_sm_launch(struct task_sm *m)
{
    task_sm_move(m, TASK_LAUNCHING);
    m->t->deadline = 0;
    m->t->restart = m->t->unhealthy = false;
    m->t->launches++;
    return TASK_ACT_PERSIST | TASK_ACT_LAUNCH | TASK_ACT_TIMER;
}

static void
emit_restarting(struct task_sm *m, int64_t now_ns, const char *reason, int64_t delay_ns)
{
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_RESTARTING, now_ns);
    ev->restart_reason = mem_strdup(ev, reason);
    ev->start_delay = delay_ns;
    task_event_detail(ev, "restart_reason", "%s", reason);
    task_event_detail(ev, "start_delay", "%lld", (long long)delay_ns);
    task_sm_emit(m, ev);
    m->t->state->restarts++;
    m->t->state->last_restart = now_ns;
    set_state(m, "pending");
}

static unsigned
not_restarting(struct task_sm *m, int64_t now_ns, const char *reason)
{
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_NOT_RESTARTING, now_ns);
    ev->restart_reason = mem_strdup(ev, reason);
    ev->fails_task = true;
    task_event_detail(ev, "restart_reason", "%s", reason);
    task_event_detail(ev, "fails_task", "true");
    task_sm_emit(m, ev);
    return task_sm_die(m, now_ns, true);
}

static unsigned
restart_after(struct task_sm *m, int64_t now_ns, const char *reason, int64_t delay_ns)
{
    emit_restarting(m, now_ns, reason, delay_ns);
    task_sm_move(m, TASK_DELAY);
    m->t->restart = m->t->unhealthy = false;
    m->t->deadline = now_ns + delay_ns;
    return CHANGED | TASK_ACT_TIMER;
}

static int64_t
task_sm_jitter(int64_t delay_ns, uint64_t rnd)
{
    int64_t span = delay_ns / 4;
    return span > 0 ? delay_ns + (int64_t)(rnd % (uint64_t)span) : delay_ns;
}

/* The policy: restart or end after a failure (or a success that counts as one). */
static unsigned
apply_policy(struct task_sm *m, int64_t now_ns, uint64_t rnd)
{
    struct client_task *t = m->t;
    if (m->cfg.attempts == 0)
        return not_restarting(m, now_ns, "Policy allows no restarts");
    if (t->window_start > now_ns) /* by a clock that was set back since */
        t->window_start = now_ns;
    if (now_ns - t->window_start > m->cfg.interval_ns) {
        t->attempts = 0;
        t->window_start = now_ns;
    }
    t->attempts++;
    if (t->attempts <= m->cfg.attempts)
        return restart_after(m, now_ns, TASK_RESTART_POLICY, task_sm_jitter(m->cfg.delay_ns, rnd));
    if (m->cfg.mode_delay) {
        int64_t left = t->window_start + m->cfg.interval_ns - now_ns;
        return restart_after(m, now_ns, "Exceeded allowed attempts, applying a delay",
                             task_sm_jitter(left > 0 ? left : 0, rnd));
    }
    char d[DURATION_TEXT];
    auto_mem void *tmp = mem_ctx("policy");
    return not_restarting(m, now_ns,
                          mem_printf(tmp,
                                     "Exceeded allowed attempts %lld in interval %s and mode is "
                                     "\"fail\"",
                                     (long long)m->cfg.attempts,
                                     duration_format(m->cfg.interval_ns, d)));
}

/* A success that needs no restart, by role and job type. */
static bool
success_ends(const struct task_sm_config *c)
{
    switch (c->role) {
    case ROLE_MAIN:
        return c->batch;
    case ROLE_PRESTART:
    case ROLE_POSTSTART:
        return !c->sidecar;
    case ROLE_POSTSTOP:
        return true;
    }
    return true;
}

static unsigned
task_sm_killed(struct task_sm *m, int64_t now_ns)
{
    emit_plain(m, TASK_EVENT_KILLED, now_ns);
    return task_sm_die(m, now_ns, m->t->kill_fails);
}

/* How a process went; doc/task-end.md has the table, with how each is known. */
enum end {
    END_SUCCESS,
    END_FAILURE,   /* also a shim that was killed, or a container that a stranger removed */
    END_NOT_ITS_OWN /* the machine, the pause process or the agent's absence took it along */
};

/* Decides what follows an end: the one place. */
static unsigned
after_exit(struct task_sm *m, int64_t now_ns, uint64_t rnd, enum end how)
{
    if (m->t->kill)
        return task_sm_killed(m, now_ns);
    if (m->t->rewind) {
        emit_restarting(m, now_ns, "", 0);
        return wait_again(m);
    }
    if (m->t->restart && m->t->unhealthy)
        return apply_policy(m, now_ns, rnd);
    if (m->t->restart) {
        emit_restarting(m, now_ns, "", 0);
        return task_sm_launch(m) | TASK_ACT_REPORT;
    }
    if (how == END_NOT_ITS_OWN) {
        set_state(m, "pending");
        return task_sm_launch(m) | TASK_ACT_REPORT;
    }
    if (how == END_SUCCESS && success_ends(&m->cfg))
        return task_sm_die(m, now_ns, false);
    return apply_policy(m, now_ns, rnd);
}

static unsigned begin_kill(struct task_sm *m, int64_t now_ns, const char *message,
                           bool no_shutdown_delay);

/* --- inputs --- */

unsigned
task_sm_start(struct task_sm *m, int64_t now_ns)
{
    if (m->t->phase != TASK_WAIT || m->t->kill)
        return 0;
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_SETUP, now_ns);
    ev->message = "Building Task Directory";
    task_event_detail(ev, "message", "%s", ev->message);
    task_sm_emit(m, ev);
    m->t->window_start = now_ns;
    return task_sm_launch(m) | TASK_ACT_REPORT;
}

unsigned
task_sm_started(struct task_sm *m, int64_t now_ns, int64_t started_ns)
{
    struct client_task *t = m->t;
    if (t->phase != TASK_LAUNCHING)
        return 0;
    emit_plain(m, TASK_EVENT_STARTED, now_ns);
    set_state(m, "running");
    if (t->state->started_at == 0 || t->launches > 1)
        t->state->started_at = started_ns;
    task_sm_move(m, TASK_RUNNING);
    if (task_sm_unwanted(t)) /* while it was being launched */
        return CHANGED | begin_kill(m, now_ns, NULL, true);
    return CHANGED;
}

unsigned
task_sm_start_failed(struct task_sm *m, int64_t now_ns, uint64_t rnd, const char *type,
                     const char *why, bool recoverable)
{
    if (m->t->phase != TASK_LAUNCHING)
        return 0;
    struct task_event *ev = task_event_new(m->t, type, now_ns);
    if (strcmp(type, TASK_EVENT_DRIVER_FAILURE) == 0) {
        ev->driver_error = mem_strdup(ev, why);
        task_event_detail(ev, "driver_error", "%s", why);
    } else if (strcmp(type, TASK_EVENT_VALIDATION) == 0) {
        ev->validation_error = mem_strdup(ev, why);
        task_event_detail(ev, "validation_error", "%s", why);
    } else if (strcmp(type, TASK_EVENT_ARTIFACT_FAILURE) == 0) {
        ev->download_error = mem_strdup(ev, why);
        task_event_detail(ev, "download_error", "%s", why);
    } else {
        ev->setup_error = mem_strdup(ev, why);
        task_event_detail(ev, "setup_error", "%s", why);
    }
    task_sm_emit(m, ev);
    if (m->t->kill)
        return task_sm_killed(m, now_ns);
    if (m->t->rewind)
        return wait_again(m);
    if (!recoverable && m->cfg.attempts > 0) /* else the policy is what is told */
        return not_restarting(m, now_ns, "Error was unrecoverable");
    return apply_policy(m, now_ns, rnd);
}

unsigned
task_sm_aborted(struct task_sm *m, int64_t now_ns)
{
    if (m->t->phase != TASK_LAUNCHING || !task_sm_unwanted(m->t))
        return 0;
    return m->t->kill ? task_sm_killed(m, now_ns) : wait_again(m);
}

static void
emit_terminated(struct task_sm *m, int64_t now_ns, const struct task_exit *x)
{
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_TERMINATED, now_ns);
    ev->exit_code = x->code;
    ev->signal = x->signal;
    const char *msg = x->error;
    if (x->oom_killed && str_empty(msg))
        msg = "OOM Killed";
    if (x->oom_killed && x->oom_pid != 0) {
        task_event_detail(ev, "oom_victim", "%.15s", str_or(x->oom_comm, "?"));
        task_event_detail(ev, "oom_victim_pid", "%llu", (unsigned long long)x->oom_pid);
        if (str_empty(x->error))
            msg = mem_printf(ev, "OOM Killed: %.15s (pid %llu)", str_or(x->oom_comm, "?"),
                             (unsigned long long)x->oom_pid);
    }
    if (!str_empty(msg)) {
        ev->message = mem_strdup(ev, msg);
        task_event_detail(ev, "exit_message", "%s", msg);
    }
    task_event_detail(ev, "exit_code", "%lld", (long long)x->code);
    task_event_detail(ev, "signal", "%lld", (long long)x->signal);
    task_event_detail(ev, "oom_killed", "%s", x->oom_killed ? "true" : "false");
    task_sm_emit(m, ev);
}

unsigned
task_sm_exited(struct task_sm *m, int64_t now_ns, uint64_t rnd, const struct task_exit *x)
{
    if (!task_sm_process(m->t))
        return 0;
    emit_terminated(m, now_ns, x);
    bool success = x->code == 0 && x->signal == 0 && !x->oom_killed && str_empty(x->error);
    enum end how = success ? END_SUCCESS : END_FAILURE;
    return after_exit(m, now_ns, rnd, x->with_machine ? END_NOT_ITS_OWN : how);
}

unsigned
task_sm_vanished(struct task_sm *m, int64_t now_ns)
{
    if (!task_sm_process(m->t))
        return 0;
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_RESTORE_FAILED, now_ns);
    ev->message = "the task ran when the agent stopped and left no record of its end";
    task_event_detail(ev, "message", "%s", ev->message);
    task_sm_emit(m, ev);
    return after_exit(m, now_ns, 0, END_NOT_ITS_OWN);
}

unsigned
task_sm_timer(struct task_sm *m, int64_t now_ns)
{
    struct client_task *t = m->t;
    if (t->deadline == 0)
        return 0;
    t->deadline = 0; /* also where now_ns is less: the wall clock may have been set back */
    switch ((enum task_phase)t->phase) {
    case TASK_DELAY:
        return task_sm_launch(m);
    case TASK_GRACE:
        task_sm_move(m, TASK_STOPPING);
        t->deadline = now_ns + m->cfg.kill_timeout_ns;
        return TASK_ACT_PERSIST | TASK_ACT_SIGNAL | TASK_ACT_TIMER;
    case TASK_STOPPING:
        task_sm_move(m, TASK_FORCED);
        return TASK_ACT_PERSIST | TASK_ACT_FORCE;
    default:
        return 0;
    }
}

/* The longest time that a phase lasts. */
static int64_t
task_sm_longest(const struct task_sm *m)
{
    const struct task_sm_config *c = &m->cfg;
    int64_t delay = c->mode_delay && c->interval_ns > c->delay_ns ? c->interval_ns : c->delay_ns;
    switch ((enum task_phase)m->t->phase) {
    case TASK_DELAY:
        return delay + delay / 4;
    case TASK_GRACE:
        return c->shutdown_delay_ns;
    case TASK_STOPPING:
        return c->kill_timeout_ns;
    default:
        return INT64_MAX;
    }
}

int64_t
task_sm_left(const struct task_sm *m, int64_t now_ns)
{
    int64_t left = m->t->deadline - now_ns, most = task_sm_longest(m);
    return left < 0 ? 0 : left < most ? left : most;
}

static void
emit_killing(struct task_sm *m, int64_t now_ns, const char *message)
{
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_KILLING, now_ns);
    ev->message = mem_strdup(ev, message);
    ev->kill_timeout = m->cfg.kill_timeout_ns;
    char d[DURATION_TEXT];
    task_event_detail(ev, "kill_timeout", "%s", duration_format(ev->kill_timeout, d));
    task_sm_emit(m, ev);
}

static void
emit_reason(struct task_sm *m, int64_t now_ns, enum task_kill_reason why, const char *sibling)
{
    if (why == TASK_KILL_SIBLING) {
        struct task_event *ev = task_event_new(m->t, TASK_EVENT_SIBLING, now_ns);
        ev->failed_sibling = mem_strdup(ev, str_or(sibling, ""));
        task_event_detail(ev, "failed_sibling", "%s", ev->failed_sibling);
        task_sm_emit(m, ev);
    } else if (why == TASK_KILL_LEADER) {
        emit_plain(m, TASK_EVENT_LEADER, now_ns);
    } else if (why == TASK_KILL_MAIN) {
        emit_plain(m, TASK_EVENT_MAIN, now_ns);
    }
}

/* Signal now, or after shutdown_delay. `message`: of the event, NULL: how long it has. */
static unsigned
begin_kill(struct task_sm *m, int64_t now_ns, const char *message, bool no_shutdown_delay)
{
    struct client_task *t = m->t;
    emit_killing(m, now_ns, message);
    if (m->cfg.shutdown_delay_ns > 0 && !no_shutdown_delay) {
        struct task_event *ev = task_event_new(t, TASK_EVENT_SHUTDOWN_DELAY, now_ns);
        char d[DURATION_TEXT];
        ev->message = mem_printf(ev, "Waiting for shutdown_delay of %s before killing the task.",
                                 duration_format(m->cfg.shutdown_delay_ns, d));
        task_event_detail(ev, "message", "%s", ev->message);
        task_sm_emit(m, ev);
        task_sm_move(m, TASK_GRACE);
        t->deadline = now_ns + m->cfg.shutdown_delay_ns;
        return CHANGED | TASK_ACT_TIMER;
    }
    task_sm_move(m, TASK_STOPPING);
    t->deadline = now_ns + m->cfg.kill_timeout_ns;
    return CHANGED | TASK_ACT_SIGNAL | TASK_ACT_TIMER;
}

static unsigned
go_to_end(struct task_sm *m, int64_t now_ns, const char *message, bool no_shutdown_delay)
{
    switch ((enum task_phase)m->t->phase) {
    case TASK_WAIT:
    case TASK_DELAY:
        return task_sm_killed(m, now_ns);
    case TASK_RUNNING:
        return begin_kill(m, now_ns, message, no_shutdown_delay);
    default: /* being launched, or being stopped for a restart: the end is decided later */
        return CHANGED;
    }
}

unsigned
task_sm_kill(struct task_sm *m, int64_t now_ns, enum task_kill_reason why, const char *sibling,
             bool no_shutdown_delay)
{
    struct client_task *t = m->t;
    if (t->phase == TASK_DEAD || t->kill)
        return 0;
    t->kill = true;
    emit_reason(m, now_ns, why, sibling);
    return go_to_end(m, now_ns, why == TASK_KILL_OVERDUE ? ALLOC_OVERDUE : NULL, no_shutdown_delay);
}

unsigned
task_sm_fail(struct task_sm *m, int64_t now_ns, const char *why)
{
    struct client_task *t = m->t;
    if (t->phase == TASK_DEAD || t->kill)
        return 0;
    struct task_event *ev = task_event_new(t, TASK_EVENT_KILLING, now_ns);
    ev->message = mem_strdup(ev, why);
    ev->fails_task = true;
    task_event_detail(ev, "fails_task", "true");
    task_sm_emit(m, ev);
    t->kill = t->kill_fails = true;
    return go_to_end(m, now_ns, NULL, true);
}

static void
emit_restart_signal(struct task_sm *m, int64_t now_ns, const char *reason)
{
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_RESTART_SIGNAL, now_ns);
    ev->restart_reason = mem_strdup(ev, reason);
    task_event_detail(ev, "restart_reason", "%s", reason);
    task_sm_emit(m, ev);
}

unsigned
task_sm_restart(struct task_sm *m, int64_t now_ns, const char *reason)
{
    struct client_task *t = m->t;
    if (task_sm_unwanted(t) || t->restart || (t->phase != TASK_RUNNING && t->phase != TASK_DELAY))
        return 0;
    emit_restart_signal(m, now_ns, reason);
    if (t->phase == TASK_DELAY) {
        t->deadline = now_ns;
        return CHANGED | TASK_ACT_TIMER;
    }
    t->restart = true;
    return begin_kill(m, now_ns, NULL, true);
}

unsigned
task_sm_unhealthy(struct task_sm *m, int64_t now_ns, const char *reason)
{
    if (m->t->phase != TASK_RUNNING)
        return 0;
    unsigned acts = task_sm_restart(m, now_ns, reason);
    m->t->unhealthy = acts != 0;
    return acts;
}

unsigned
task_sm_rewind(struct task_sm *m, int64_t now_ns, const char *reason)
{
    struct client_task *t = m->t;
    if (t->phase == TASK_WAIT || (t->phase != TASK_DEAD && task_sm_unwanted(t)))
        return 0;
    emit_restart_signal(m, now_ns, reason);
    if (!task_sm_process(t))
        return wait_again(m);
    t->rewind = true;
    t->restart = t->unhealthy = false;
    return t->phase == TASK_RUNNING ? begin_kill(m, now_ns, NULL, true) : CHANGED;
}

unsigned
task_sm_signaled(struct task_sm *m, int64_t now_ns, const char *signal, const char *reason)
{
    struct task_event *ev = task_event_new(m->t, TASK_EVENT_SIGNALING, now_ns);
    ev->task_signal = mem_strdup(ev, signal);
    ev->task_signal_reason = mem_strdup(ev, reason);
    task_event_detail(ev, "task_signal", "%s", signal);
    task_event_detail(ev, "task_signal_reason", "%s", reason);
    task_sm_emit(m, ev);
    return CHANGED;
}

unsigned
task_sm_note(struct task_sm *m, int64_t now_ns, const char *type, const char *message)
{
    struct task_event *ev = task_event_new(m->t, type, now_ns);
    ev->message = mem_strdup(ev, message);
    if (str_eq(type, TASK_EVENT_DRIVER))
        ev->driver_message = ev->message;
    task_event_detail(ev, str_eq(type, TASK_EVENT_DRIVER) ? "driver_message" : "message", "%s",
                      message);
    task_sm_emit(m, ev);
    return CHANGED;
}

unsigned
task_sm_note_again(struct task_sm *m, const char *type, const char *message)
{
    struct task_event_list *l = &m->t->state->events;
    if (l->n == 0 || !str_eq(l->v[l->n - 1]->type, type))
        return 0;
    int64_t when = l->v[l->n - 1]->time;
    l->n--;
    mem_free(l->v[l->n]);
    return task_sm_note(m, when, type, message);
}

bool
task_sm_live(const struct client_task *t)
{
    return t->phase != TASK_DEAD;
}

bool
task_sm_process(const struct client_task *t)
{
    switch ((enum task_phase)t->phase) {
    case TASK_LAUNCHING:
    case TASK_RUNNING:
    case TASK_GRACE:
    case TASK_STOPPING:
    case TASK_FORCED:
        return true;
    default:
        return false;
    }
}

bool
task_sm_started_once(const struct client_task *t)
{
    return t->state->started_at != 0;
}

bool
task_sm_unwanted(const struct client_task *t)
{
    return t->kill || t->rewind;
}
