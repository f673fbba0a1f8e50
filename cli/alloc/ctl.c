/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc stop, alloc restart, alloc signal, alloc pause.
 */
#include "api/terms.h"
#include "cli/alloc/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/limits.h"
#include "cli/monitor.h"
#include "common/clock.h"
#include "common/duration.h"

int
cmd_alloc_stop(struct cmd *c)
{
    struct follow o = {.detach = false};
    bool no_delay = false;
    const struct opt opts[] = {
        FOLLOW_OPTS(o),
        {"no-shutdown-delay", OPT_BOOL, &no_delay, NULL,
         "Do not wait for the shutdown delay of the group and its tasks."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct allocation *a = alloc_find(c, c->args[0]);
    if (!a)
        return 1;
    const struct change stop = {.target =
                                    api_target(c, "/v1/allocation/%/stop", a->id,
                                               "no_shutdown_delay", no_delay ? "true" : NULL, NULL),
                                .answer = &type_alloc_stop_response,
                                .failed = "Error stopping allocation"};
    return monitor_change(c, &o, &stop, "");
}

int
cmd_alloc_restart(struct cmd *c)
{
    bool all = false, verbose = false;
    const char *task = NULL;
    const struct opt opts[] = {
        {"all-tasks", OPT_BOOL, &all, NULL, "Restart tasks that have ended too."},
        {"task", OPT_STRING, &task, "<task>", "The task to restart."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    task = c->n_args > 1 ? c->args[1] : task;
    if (all && task)
        return cmd_fail(c, "The -all-tasks option is not allowed when a task is named");
    const struct allocation *a = alloc_find(c, c->args[0]);
    if (!a || (task && !(task = alloc_task(c, a, task))))
        return 1;
    struct alloc_restart_request req = {.task_name = task, .all_tasks = all};
    const struct change restart = {NULL,
                                   api_target(c, "/v1/client/allocation/%/restart", a->id, NULL),
                                   &type_alloc_restart_request, &req, NULL,
                                   "Failed to restart allocation"};
    return api_change(c, &restart) ? 0 : 1;
}

int
cmd_alloc_signal(struct cmd *c)
{
    const char *task = NULL, *signal = "SIGKILL";
    bool verbose = false;
    const struct opt opts[] = {
        {"s", OPT_STRING, &signal, "<signal>", "The signal (default SIGKILL)."},
        {"task", OPT_STRING, &task, "<task>", "The task; default: all that run."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    task = task ? task : c->n_args > 1 ? c->args[1] : NULL;
    const struct allocation *a = alloc_find(c, c->args[0]);
    if (!a || (task && !(task = alloc_task(c, a, task))))
        return 1;
    struct alloc_signal_request req = {.task = task, .signal = signal};
    const struct change send = {NULL, api_target(c, "/v1/client/allocation/%/signal", a->id, NULL),
                                &type_alloc_signal_request, &req, NULL,
                                "Error signalling allocation"};
    return api_change(c, &send) ? 0 : 1;
}

/* --- pause --- */

static void
print_paused(struct cmd *c, const struct allocation *a, const char *task)
{
    for (size_t i = 0; i < a->task_states.n; i++) {
        const struct task_state *s = a->task_states.v[i].v;
        if (!task || str_eq(task, a->task_states.v[i].k))
            cmd_say(c, "%s: %s", a->task_states.v[i].k,
                    str_eq(s->state, "dead") ? "ended" : str_or(s->paused, "run"));
    }
}

static bool
paused_as(const struct allocation *a, const char *task, bool paused)
{
    for (size_t i = 0; i < a->task_states.n; i++) {
        const struct task_state *s = a->task_states.v[i].v;
        if (str_eq(s->state, "running") && (!task || str_eq(task, a->task_states.v[i].k)) &&
            str_eq(s->paused, "pause") != paused)
            return false;
    }
    return true;
}

/* The node has done it; the servers hear of it a little later. Who asks them next must not be told
 * what was before. */
static void
await_paused(struct cmd *c, const char *id, const char *task, bool paused)
{
    int64_t end = clock_mono_ns() + PAUSE_SEEN_MS * NS_PER_MS;
    uint64_t index = 0;
    do {
        void *ret = NULL;
        struct err e = ERR_INIT;
        struct api_meta meta = {0};
        if (api_get(c,
                    api_target(c, "/v1/allocation/%", id, "index", index ? fmt_u64(c, index) : NULL,
                               "wait", index ? "1s" : NULL, NULL),
                    &type_allocation, &ret, &meta, &e) ||
            paused_as(ret, task, paused))
            return;
        index = meta.index;
    } while (index && clock_mono_ns() < end);
}

int
cmd_alloc_pause(struct cmd *c)
{
    const char *task = NULL, *state = "pause";
    bool status = false, verbose = false;
    const struct opt opts[] = {
        {"state", OPT_STRING, &state, "<state>",
         "What is to be: pause (the default), or run for it to go on."},
        {"status", OPT_BOOL, &status, NULL, "Change nothing, show which tasks are paused."},
        {"task", OPT_STRING, &task, "<task>", "The task; default: all that run."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    task = c->n_args > 1 ? c->args[1] : task;
    if (!str_eq(state, "pause") && !str_eq(state, "run"))
        return cmd_fail(c, "The -state option is pause or run, not \"%s\"", state);
    const struct allocation *a = alloc_find(c, c->args[0]);
    if (!a || (task && !(task = alloc_task(c, a, task))))
        return 1;
    if (status) {
        print_paused(c, a, task);
        return 0;
    }
    struct alloc_pause_request req = {.task = task, .schedule_state = state};
    if (!api_change(c, &(struct change){
                           NULL, api_target(c, "/v1/client/allocation/%/pause", a->id, NULL),
                           &type_alloc_pause_request, &req, NULL,
                           mem_printf(c, "Failed to %s allocation", state)}))
        return 1;
    await_paused(c, a->id, task, str_eq(state, "pause"));
    return 0;
}
