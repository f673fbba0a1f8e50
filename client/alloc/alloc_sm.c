/* SPDX-License-Identifier: Apache-2.0
 *
 * The lifecycle of an allocation; see alloc_sm.h. Pure.
 */
#include "client/alloc/alloc_sm.h"

#include <string.h>

#include "api/terms.h"

typedef const struct task_sm *const *task_list;

static bool
is_dead(const struct task_sm *m)
{
    return m->t->phase == TASK_DEAD;
}

static bool
is_poststop(const struct task_sm *m)
{
    return m->cfg.role == ROLE_POSTSTOP;
}

/* Why all tasks but poststop ones must end, if they must. */
struct end {
    bool all;
    enum task_kill_reason why;
    const char *sibling;
};

static bool
all_main_dead(task_list tasks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tasks[i]->cfg.role == ROLE_MAIN && !is_dead(tasks[i]))
            return false;
    return true;
}

/* Sidecars, and poststart tasks whose turn never came, do not keep an allocation alive. */
static bool
follows_main(const struct task_sm *m)
{
    if (m->cfg.role == ROLE_POSTSTART && m->t->phase == TASK_WAIT)
        return true;
    return m->cfg.sidecar && m->cfg.role != ROLE_MAIN;
}

static struct end
why_end(task_list tasks, size_t n, enum alloc_end wanted)
{
    if (wanted != ALLOC_END_NONE)
        return (struct end){true, wanted == ALLOC_END_STOP ? TASK_KILL_STOP : TASK_KILL_OVERDUE,
                            NULL};
    bool others = false;
    for (size_t i = 0; i < n; i++) {
        if (is_poststop(tasks[i]))
            continue;
        if (is_dead(tasks[i]) && tasks[i]->t->state->failed)
            return (struct end){true, TASK_KILL_SIBLING, tasks[i]->t->name};
        if (!is_dead(tasks[i]) && !follows_main(tasks[i]))
            others = true;
    }
    for (size_t i = 0; i < n; i++)
        if (tasks[i]->cfg.leader && is_dead(tasks[i]))
            return (struct end){true, TASK_KILL_LEADER, NULL};
    if (all_main_dead(tasks, n) && !others)
        return (struct end){true, TASK_KILL_MAIN, NULL};
    return (struct end){false, TASK_KILL_STOP, NULL};
}

/* The stage of the stop order: 0 leader, 1 the others, 2 sidecars. */
static int
stop_stage(const struct task_sm *m)
{
    if (m->cfg.leader)
        return 0;
    return m->cfg.sidecar ? 2 : 1;
}

static void
end_all(task_list tasks, size_t n, const struct end *end, struct alloc_verdict *v)
{
    int stage = 3;
    for (size_t i = 0; i < n; i++)
        if (!is_poststop(tasks[i]) && !is_dead(tasks[i]) && stop_stage(tasks[i]) < stage)
            stage = stop_stage(tasks[i]);
    for (size_t i = 0; i < n; i++) {
        if (is_poststop(tasks[i]) || is_dead(tasks[i]))
            continue;
        /* a task that does not run yet need not wait for its turn to die */
        if (stop_stage(tasks[i]) != stage && task_sm_process(tasks[i]->t))
            continue;
        v[i] = (struct alloc_verdict){.kill = true, .why = end->why, .sibling = end->sibling};
    }
}

static bool
prestart_done(task_list tasks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct task_sm *m = tasks[i];
        if (m->cfg.role != ROLE_PRESTART)
            continue;
        if (m->cfg.sidecar ? !task_sm_started_once(m->t) : !is_dead(m))
            return false;
    }
    return true;
}

static bool
main_started(task_list tasks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tasks[i]->cfg.role == ROLE_MAIN && !task_sm_started_once(tasks[i]->t))
            return false;
    return true;
}

/* An allocation that begins anew: nobody starts before all that ran have ended. */
static bool
alloc_sm_rewinds(task_list tasks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (tasks[i]->t->rewind)
            return true;
    return false;
}

static void
start_some(task_list tasks, size_t n, struct alloc_verdict *v)
{
    if (alloc_sm_rewinds(tasks, n))
        return;
    bool main_may = prestart_done(tasks, n);
    bool poststart_may = main_started(tasks, n);
    for (size_t i = 0; i < n; i++) {
        if (tasks[i]->t->phase != TASK_WAIT)
            continue;
        switch (tasks[i]->cfg.role) {
        case ROLE_PRESTART:
            v[i].start = true;
            break;
        case ROLE_MAIN:
            v[i].start = main_may;
            break;
        case ROLE_POSTSTART:
            v[i].start = poststart_may;
            break;
        case ROLE_POSTSTOP:
            break;
        }
    }
}

/* Runs poststop tasks, unless nothing ran that they could clean up after, or there is no time. */
static void
poststop_step(task_list tasks, size_t n, bool any_launched, bool overdue, struct alloc_verdict *v)
{
    for (size_t i = 0; i < n; i++) {
        bool waits = tasks[i]->t->phase == TASK_WAIT;
        v[i].start = waits && any_launched && !overdue;
        v[i].kill = overdue ? !is_dead(tasks[i]) : waits && !any_launched;
        v[i].why = overdue ? TASK_KILL_OVERDUE : TASK_KILL_STOP;
    }
}

void
alloc_sm_step(task_list tasks, size_t n, enum alloc_end wanted, struct alloc_verdict *v)
{
    memset(v, 0, n * sizeof(*v));
    bool others_dead = true;
    bool any_launched = false;
    for (size_t i = 0; i < n; i++) {
        if (is_poststop(tasks[i]))
            continue;
        others_dead = others_dead && is_dead(tasks[i]);
        any_launched = any_launched || tasks[i]->t->launches > 0;
    }
    if (others_dead) {
        poststop_step(tasks, n, any_launched, wanted == ALLOC_END_OVERDUE, v);
        return;
    }
    struct end end = why_end(tasks, n, wanted);
    if (end.all)
        end_all(tasks, n, &end, v);
    else
        start_some(tasks, n, v);
}

const char *
alloc_sm_status(task_list tasks, size_t n, const char **ret_description)
{
    bool failed = false, running = false, pending = false, dead = false;
    for (size_t i = 0; i < n; i++) {
        const struct task_state *s = tasks[i]->t->state;
        if (str_eq(s->state, "running"))
            running = true;
        else if (str_eq(s->state, "dead"))
            *(s->failed ? &failed : &dead) = true;
        else
            pending = true;
    }
    if (failed) {
        *ret_description = "Failed tasks";
        return ALLOC_FAILED;
    }
    if (running) {
        *ret_description = "Tasks are running";
        return ALLOC_RUNNING;
    }
    if (pending || !dead) {
        *ret_description = "No tasks have started";
        return ALLOC_PENDING;
    }
    *ret_description = "All tasks have completed";
    return ALLOC_COMPLETE;
}
