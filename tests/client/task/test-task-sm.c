/* SPDX-License-Identifier: Apache-2.0
 *
 * The task machine: restart policy by table, kill sequence and restarts by trace, events.
 */
#include <string.h>

#include "client/task/task_sm.h"
#include "common/duration.h"
#include "common/mem.h"
#include "tests/lib/test.h"

#define S NS_PER_S
#define T0 (INT64_C(1700000000) * S)

static struct task_sm
machine(const void *ctx)
{
    struct task_sm m = {.cfg = {.attempts = 2,
                                .interval_ns = 60 * S,
                                .delay_ns = 4 * S,
                                .kill_timeout_ns = 5 * S}};
    m.t = task_sm_new_record(ctx, "web", T0);
    return m;
}

static const struct task_event *
last_event(const struct task_sm *m)
{
    return m->t->state->events.v[m->t->state->events.n - 1];
}

static void
run(struct task_sm *m, int64_t now)
{
    unsigned acts = m->t->phase == TASK_WAIT ? task_sm_start(m, now) : task_sm_timer(m, now);
    ck_assert(acts & TASK_ACT_LAUNCH);
    ck_assert_int_eq(m->t->phase, TASK_LAUNCHING);
    acts = task_sm_started(m, now, now);
    ck_assert(acts & TASK_ACT_REPORT);
    ck_assert_int_eq(m->t->phase, TASK_RUNNING);
    ck_assert_str_eq(m->t->state->state, "running");
}

static unsigned
end(struct task_sm *m, int64_t now, int64_t code)
{
    struct task_exit x = {.code = code};
    return task_sm_exited(m, now, 0, &x);
}

START_TEST(batch_success_ends)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    m.cfg.batch = true;
    run(&m, T0);
    ck_assert(end(&m, T0 + S, 0) & TASK_ACT_REPORT);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    ck_assert(!m.t->state->failed);
    ck_assert_int_eq(m.t->state->finished_at, T0 + S);
    ck_assert_str_eq(last_event(&m)->type, "Terminated");
    ck_assert_str_eq(last_event(&m)->display_message, "Exit Code: 0");
}
END_TEST

START_TEST(service_success_restarts)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    run(&m, T0);
    unsigned acts = end(&m, T0 + S, 0);
    ck_assert(acts & TASK_ACT_TIMER);
    ck_assert_int_eq(m.t->phase, TASK_DELAY);
    ck_assert_int_eq(m.t->deadline, T0 + 5 * S);
    ck_assert_int_eq((int64_t)m.t->state->restarts, 1);
    ck_assert_str_eq(m.t->state->state, "pending");
    ck_assert_str_eq(last_event(&m)->display_message,
                     "Task restarting in 4s");
}
END_TEST

START_TEST(attempts_run_out)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    int64_t now = T0;
    run(&m, now);
    for (int i = 0; i < 2; i++) {
        end(&m, now += S, 1);
        ck_assert_int_eq(m.t->phase, TASK_DELAY);
        run(&m, now = m.t->deadline);
    }
    end(&m, now += S, 1);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    ck_assert(m.t->state->failed);
    ck_assert_str_eq(last_event(&m)->type, "Not Restarting");
    ck_assert_str_eq(last_event(&m)->display_message,
                     "Exceeded allowed attempts 2 in interval 1m0s and mode is \"fail\"");
    ck_assert(last_event(&m)->fails_task);
}
END_TEST

START_TEST(window_resets)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    int64_t now = T0;
    run(&m, now);
    for (int i = 0; i < 10; i++) {
        end(&m, now += 61 * S, 1); /* each failure is after the window */
        ck_assert_int_eq(m.t->phase, TASK_DELAY);
        ck_assert_int_eq(m.t->attempts, 1);
        run(&m, now = m.t->deadline);
    }
}
END_TEST

START_TEST(mode_delay_waits_for_the_window)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    m.cfg.mode_delay = true;
    m.cfg.attempts = 1;
    run(&m, T0);
    end(&m, T0 + S, 1);
    run(&m, m.t->deadline);
    end(&m, T0 + 10 * S, 1);
    ck_assert_int_eq(m.t->phase, TASK_DELAY);
    ck_assert_int_eq(m.t->deadline, T0 + 60 * S);
}
END_TEST

/* While no agent runs, or for long. */
START_TEST(a_clock_that_was_set_back)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    const int64_t back = T0 - 30 * 24 * 3600 * S;
    run(&m, T0);
    end(&m, T0 + S, 1);
    ck_assert_int_eq(task_sm_left(&m, T0 + 2 * S), 3 * S);
    ck_assert_int_eq(task_sm_left(&m, T0 + 9 * S), 0);
    ck_assert_int_eq(task_sm_left(&m, back), 5 * S); /* the delay and its jitter */
    m.cfg.mode_delay = true;
    run(&m, back);
    end(&m, back + S, 1);
    run(&m, back + 2 * S);
    end(&m, back + 3 * S, 1); /* no attempt is left, until the interval is over */
    ck_assert_int_eq(m.t->phase, TASK_DELAY);
    ck_assert(m.t->deadline <= back + 75 * S);
    ck_assert_int_eq(task_sm_left(&m, back - 3600 * S), 75 * S);
    run(&m, back + 62 * S);
    (void)task_sm_kill(&m, back + 63 * S, TASK_KILL_STOP, NULL, true);
    ck_assert_int_eq(m.t->phase, TASK_STOPPING);
    ck_assert_int_eq(task_sm_left(&m, back), 5 * S);
}
END_TEST

START_TEST(no_attempts)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    m.cfg.attempts = 0;
    run(&m, T0);
    end(&m, T0 + S, 3);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    ck_assert_str_eq(last_event(&m)->restart_reason, "Policy allows no restarts");
}
END_TEST

START_TEST(jitter_is_at_most_a_quarter)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    run(&m, T0);
    struct task_exit x = {.code = 1};
    task_sm_exited(&m, T0, UINT64_MAX, &x);
    ck_assert_int_ge(m.t->deadline, T0 + 4 * S);
    ck_assert_int_lt(m.t->deadline, T0 + 5 * S);
}
END_TEST

START_TEST(roles)
{
    static const struct {
        enum task_role role;
        bool sidecar, batch, ends;
    } rows[] = {
        {ROLE_MAIN, false, true, true},       {ROLE_MAIN, false, false, false},
        {ROLE_PRESTART, false, false, true},  {ROLE_PRESTART, true, false, false},
        {ROLE_PRESTART, true, true, false},   {ROLE_POSTSTART, false, false, true},
        {ROLE_POSTSTART, true, false, false}, {ROLE_POSTSTOP, false, false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct task_sm m = machine(ctx);
        m.cfg.role = rows[i].role;
        m.cfg.sidecar = rows[i].sidecar;
        m.cfg.batch = rows[i].batch;
        run(&m, T0);
        end(&m, T0 + S, 0);
        ck_assert_msg((m.t->phase == TASK_DEAD) == rows[i].ends, "row %zu", i);
        ck_assert(!m.t->state->failed);
    }
}
END_TEST

START_TEST(kill_sequence)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    run(&m, T0);
    unsigned acts = task_sm_kill(&m, T0 + S, TASK_KILL_STOP, NULL, false);
    ck_assert(acts & TASK_ACT_SIGNAL);
    ck_assert(!(acts & TASK_ACT_FORCE));
    ck_assert_int_eq(m.t->phase, TASK_STOPPING);
    ck_assert_int_eq(m.t->deadline, T0 + 6 * S);
    ck_assert_str_eq(last_event(&m)->display_message,
                     "Sent interrupt. Waiting 5s before force killing");
    ck_assert_uint_eq(task_sm_kill(&m, T0 + S, TASK_KILL_STOP, NULL, false), 0);
    ck_assert(task_sm_timer(&m, T0 + 6 * S) & TASK_ACT_FORCE);
    ck_assert_int_eq(m.t->phase, TASK_FORCED);
    struct task_exit x = {.code = 137, .signal = 9};
    task_sm_exited(&m, T0 + 7 * S, 0, &x);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    ck_assert(!m.t->state->failed);
    ck_assert_str_eq(last_event(&m)->display_message, "Task successfully killed");
    ck_assert_str_eq(m.t->state->events.v[m.t->state->events.n - 2]->display_message,
                     "Exit Code: 137, Signal: 9");
}
END_TEST

START_TEST(shutdown_delay_comes_first)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    m.cfg.shutdown_delay_ns = 3 * S;
    run(&m, T0);
    unsigned acts = task_sm_kill(&m, T0, TASK_KILL_STOP, NULL, false);
    ck_assert(!(acts & TASK_ACT_SIGNAL));
    ck_assert_int_eq(m.t->phase, TASK_GRACE);
    ck_assert(task_sm_timer(&m, T0 + 3 * S) & TASK_ACT_SIGNAL);
    ck_assert_int_eq(m.t->deadline, T0 + 8 * S);
}
END_TEST

/* A timer runs on the monotonic clock, and the wall clock was set back an hour meanwhile. */
START_TEST(clock_set_back)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    const int64_t back = T0 - 3600 * S;
    m.cfg.shutdown_delay_ns = 3 * S;
    run(&m, T0);
    end(&m, T0 + S, 1);
    ck_assert_int_eq(m.t->phase, TASK_DELAY);
    ck_assert(task_sm_timer(&m, back) & TASK_ACT_LAUNCH);
    (void)task_sm_started(&m, T0, T0);
    (void)task_sm_kill(&m, T0, TASK_KILL_STOP, NULL, false);
    ck_assert_int_eq(m.t->phase, TASK_GRACE);
    ck_assert(task_sm_timer(&m, back) & TASK_ACT_SIGNAL);
    ck_assert_int_eq(m.t->deadline, back + 5 * S); /* by the clock that it will be armed with */
    ck_assert(task_sm_timer(&m, back - 3600 * S) & TASK_ACT_FORCE);
    ck_assert_uint_eq(task_sm_timer(&m, back), 0);
}
END_TEST

START_TEST(kill_before_start_and_in_delay)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    task_sm_kill(&m, T0, TASK_KILL_SIBLING, "db", false);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    ck_assert(!m.t->state->failed);
    ck_assert_str_eq(m.t->state->events.v[1]->display_message, "Task's sibling \"db\" failed");
    struct task_sm n = machine(ctx);
    run(&n, T0);
    end(&n, T0, 1);
    task_sm_kill(&n, T0, TASK_KILL_STOP, NULL, false);
    ck_assert_int_eq(n.t->phase, TASK_DEAD);
}
END_TEST

START_TEST(kill_while_launching)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    task_sm_start(&m, T0);
    task_sm_kill(&m, T0, TASK_KILL_STOP, NULL, false);
    ck_assert_int_eq(m.t->phase, TASK_LAUNCHING);
    unsigned acts = task_sm_started(&m, T0, T0);
    ck_assert(acts & TASK_ACT_SIGNAL);
    ck_assert_int_eq(m.t->phase, TASK_STOPPING);
    end(&m, T0, 0);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    struct task_sm n = machine(ctx);
    task_sm_start(&n, T0);
    task_sm_kill(&n, T0, TASK_KILL_STOP, NULL, false);
    ck_assert(task_sm_aborted(&n, T0) != 0);
    ck_assert_int_eq(n.t->phase, TASK_DEAD);
}
END_TEST

START_TEST(operator_restart_is_not_counted)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    run(&m, T0);
    ck_assert(task_sm_restart(&m, T0, "User requested") & TASK_ACT_SIGNAL);
    ck_assert(m.t->restart);
    unsigned acts = end(&m, T0 + S, 130);
    ck_assert(acts & TASK_ACT_LAUNCH);
    ck_assert_int_eq(m.t->phase, TASK_LAUNCHING);
    ck_assert_int_eq(m.t->attempts, 0);
    ck_assert_int_eq((int64_t)m.t->launches, 2);
    ck_assert(!m.t->restart);
    ck_assert_uint_eq(task_sm_restart(&m, T0, "again"), 0);
}
END_TEST

START_TEST(an_end_by_a_check_is_a_failure)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    ck_assert_uint_eq(task_sm_unhealthy(&m, T0, "too early"), 0);
    run(&m, T0);
    int64_t attempts = m.cfg.attempts;
    for (int64_t i = 1; i <= attempts; i++) {
        ck_assert(task_sm_unhealthy(&m, T0 + i, "healthcheck: check \"c\" unhealthy") &
                  TASK_ACT_SIGNAL);
        ck_assert_uint_eq(task_sm_unhealthy(&m, T0 + i, "again"), 0);
        end(&m, T0 + i, 0); /* how it went does not matter */
        ck_assert_int_eq(m.t->phase, TASK_DELAY);
        ck_assert_int_eq(m.t->attempts, i);
        ck_assert(!m.t->restart && !m.t->unhealthy);
        task_sm_timer(&m, T0 + i);
        ck_assert_int_eq(m.t->phase, TASK_LAUNCHING);
        task_sm_started(&m, T0 + i, T0 + i);
    }
    task_sm_unhealthy(&m, T0 + 9, "once more");
    end(&m, T0 + 9, 0);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    ck_assert(m.t->state->failed);
}
END_TEST

START_TEST(kill_wins_over_restart)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    run(&m, T0);
    task_sm_restart(&m, T0, "User requested");
    task_sm_kill(&m, T0, TASK_KILL_STOP, NULL, false);
    end(&m, T0 + S, 0);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
}
END_TEST

START_TEST(start_failures)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    task_sm_start(&m, T0);
    task_sm_start_failed(&m, T0, 0, TASK_EVENT_DRIVER_FAILURE, "no such file", false);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    ck_assert(m.t->state->failed);
    const struct task_state *s = m.t->state;
    ck_assert_str_eq(s->events.v[s->events.n - 2]->display_message, "no such file");
    ck_assert_str_eq(s->events.v[s->events.n - 1]->display_message, "Error was unrecoverable");
    struct task_sm n = machine(ctx);
    task_sm_start(&n, T0);
    task_sm_start_failed(&n, T0, 0, TASK_EVENT_SETUP_FAILURE, "disk full", true);
    ck_assert_int_eq(n.t->phase, TASK_DELAY);
}
END_TEST

/* doc/task-end.md: whatever the kind of job, the lifecycle and the exit status, and however often. */
START_TEST(an_end_that_is_not_its_own_is_not_counted)
{
    for (int row = 0; row < 64; row++) {
        auto_mem void *ctx = mem_ctx("t");
        struct task_sm m = machine(ctx);
        m.cfg.role = (enum task_role)(row % 4);
        m.cfg.batch = row & 4;
        m.cfg.sidecar = row & 8;
        m.cfg.attempts = row & 16 ? 0 : 1;
        run(&m, T0);
        for (int i = 0; i < 3; i++) {
            struct task_exit x = {.code = row & 32 ? 143 : 0, .with_machine = true};
            unsigned acts = i == 1 ? task_sm_vanished(&m, T0) : task_sm_exited(&m, T0, 0, &x);
            ck_assert(acts & TASK_ACT_LAUNCH);
            ck_assert_int_eq(m.t->phase, TASK_LAUNCHING);
            ck_assert_int_eq(m.t->attempts, 0);
            ck_assert_int_eq((int64_t)m.t->state->restarts, 0);
            ck_assert_str_eq(m.t->state->state, "pending");
            ck_assert(!m.t->state->failed);
            task_sm_started(&m, T0, T0);
        }
    }
}
END_TEST

/* A stop or a restart that somebody asked for comes first. */
START_TEST(what_was_asked_for_wins_over_the_machine)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_exit x = {.with_machine = true};
    struct task_sm m = machine(ctx);
    run(&m, T0);
    task_sm_kill(&m, T0, TASK_KILL_STOP, NULL, false);
    task_sm_exited(&m, T0, 0, &x);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
    struct task_sm n = machine(ctx);
    run(&n, T0);
    task_sm_rewind(&n, T0, "anew");
    task_sm_exited(&n, T0, 0, &x);
    ck_assert_int_eq(n.t->phase, TASK_WAIT);
}
END_TEST

START_TEST(events_are_bounded)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    for (int i = 0; i < 100; i++)
        task_sm_note(&m, T0 + i, "Note", "x");
    ck_assert_uint_eq(m.t->state->events.n, TASK_EVENTS_MAX);
    ck_assert_int_eq(last_event(&m)->time, T0 + 99);
    ck_assert_int_eq(m.t->state->events.v[0]->time, T0 + 90);
}
END_TEST

START_TEST(late_inputs_do_nothing)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    ck_assert_uint_eq(end(&m, T0, 0), 0);
    ck_assert_uint_eq(task_sm_timer(&m, T0), 0);
    ck_assert_uint_eq(task_sm_started(&m, T0, T0), 0);
    task_sm_kill(&m, T0, TASK_KILL_STOP, NULL, false);
    ck_assert_uint_eq(task_sm_start(&m, T0), 0);
    ck_assert_uint_eq(end(&m, T0, 0), 0);
    ck_assert_int_eq(m.t->phase, TASK_DEAD);
}
END_TEST

START_TEST(survives_the_disk)
{
    auto_mem void *ctx = mem_ctx("t");
    struct task_sm m = machine(ctx);
    run(&m, T0);
    end(&m, T0 + S, 7);
    auto_buf struct buf b = BUF_INIT(1 << 20);
    mp_encode(&b, &type_client_task, m.t);
    void *back = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(mp_decode(ctx, &type_client_task, SLICE(b.data, b.len), BUDGET(1 << 20), &back, &e), 0);
    ck_assert(codec_equal(&type_client_task, m.t, back, 0));
    m.t = back;
    for (int i = 0; i < 12; i++)
        task_sm_note(&m, T0, "Note", "x");
    ck_assert_uint_eq(m.t->state->events.n, TASK_EVENTS_MAX);
    run(&m, m.t->deadline);
}
END_TEST

TEST_SUITE("task_sm", batch_success_ends, service_success_restarts, attempts_run_out, window_resets,
           mode_delay_waits_for_the_window, a_clock_that_was_set_back, no_attempts,
           jitter_is_at_most_a_quarter, roles, kill_sequence, shutdown_delay_comes_first, clock_set_back,
           kill_before_start_and_in_delay, kill_while_launching, operator_restart_is_not_counted,
           an_end_by_a_check_is_a_failure,
           kill_wins_over_restart, start_failures, an_end_that_is_not_its_own_is_not_counted,
           what_was_asked_for_wins_over_the_machine, events_are_bounded,
           late_inputs_do_nothing, survives_the_disk)
