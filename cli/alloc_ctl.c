/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc stop, alloc restart, alloc signal, alloc pause.
 */
#include "cli/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"

int
cmd_alloc_stop(struct cmd *c)
{
    bool detach = false, verbose = false, no_delay = false;
    const struct opt opts[] = {
        {"detach", OPT_BOOL, &detach, NULL, "Return at once, with the id of the evaluation.", NULL},
        {"no-shutdown-delay", OPT_BOOL, &no_delay, NULL,
         "Do not wait for the shutdown delay of the group and its tasks.", NULL},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids.", NULL},
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct allocation *a = alloc_find(c, c->args[0]);
    struct err e = ERR_INIT;
    void *ret = NULL;
    if (!a)
        return 1;
    char *target = api_target(c, "/v1/allocation/%/stop", a->id, "no_shutdown_delay",
                              no_delay ? "true" : NULL, NULL);
    if (api_send(c, "PUT", target, NULL, NULL, &type_alloc_stop_response, &ret, &e))
        return cmd_fail(c, "Error stopping allocation: %s", e.text);
    const struct alloc_stop_response *r = ret;
    if (!r || str_empty(r->eval_id))
        return 0;
    if (detach) {
        cmd_say(c, "%s", r->eval_id);
        return 0;
    }
    return monitor_eval(c, r->eval_id, verbose);
}

int
cmd_alloc_restart(struct cmd *c)
{
    bool all = false, verbose = false;
    const char *task = NULL;
    const struct opt opts[] = {
        {"all-tasks", OPT_BOOL, &all, NULL, "Restart tasks that have ended too.", NULL},
        {"task", OPT_STRING, &task, "<task>", "The task to restart.", NULL},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids.", NULL},
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    task = c->n_args > 1 ? c->args[1] : task;
    if (all && task)
        return cmd_fail(c, "The -all-tasks option is not allowed when a task is named");
    const struct allocation *a = alloc_find(c, c->args[0]);
    struct err e = ERR_INIT;
    if (!a || (task && !(task = alloc_task(c, a, task))))
        return 1;
    struct alloc_restart_request req = {.task_name = task, .all_tasks = all};
    if (api_send(c, "PUT", api_target(c, "/v1/client/allocation/%/restart", a->id, NULL),
                 &type_alloc_restart_request, &req, NULL, NULL, &e))
        return cmd_fail(c, "Failed to restart allocation: %s", e.text);
    return 0;
}

int
cmd_alloc_signal(struct cmd *c)
{
    const char *task = NULL, *signal = "SIGKILL";
    bool verbose = false;
    const struct opt opts[] = {
        {"s", OPT_STRING, &signal, "<signal>", "The signal (default SIGKILL).", NULL},
        {"task", OPT_STRING, &task, "<task>", "The task; default: all that run.", NULL},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids.", NULL},
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    task = task ? task : c->n_args > 1 ? c->args[1] : NULL;
    const struct allocation *a = alloc_find(c, c->args[0]);
    struct err e = ERR_INIT;
    if (!a || (task && !(task = alloc_task(c, a, task))))
        return 1;
    struct alloc_signal_request req = {.task = task, .signal = signal};
    if (api_send(c, "PUT", api_target(c, "/v1/client/allocation/%/signal", a->id, NULL),
                 &type_alloc_signal_request, &req, NULL, NULL, &e))
        return cmd_fail(c, "Error signalling allocation: %s", e.text);
    return 0;
}

int
cmd_alloc_pause(struct cmd *c)
{
    const char *task = NULL, *state = "pause";
    bool status = false, verbose = false;
    const struct opt opts[] = {
        {"state", OPT_STRING, &state, "<state>",
         "What is to be: pause (the default), or run for it to go on.", NULL},
        {"status", OPT_BOOL, &status, NULL, "Change nothing, show which tasks are paused.", NULL},
        {"task", OPT_STRING, &task, "<task>", "The task; default: all that run.", NULL},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids.", NULL},
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    task = c->n_args > 1 ? c->args[1] : task;
    if (!str_eq(state, "pause") && !str_eq(state, "run"))
        return cmd_fail(c, "The -state option is pause or run, not \"%s\"", state);
    const struct allocation *a = alloc_find(c, c->args[0]);
    struct err e = ERR_INIT;
    if (!a || (task && !(task = alloc_task(c, a, task))))
        return 1;
    for (size_t i = 0; status && i < a->task_states.n; i++)
        if (!task || str_eq(task, a->task_states.v[i].k))
            cmd_say(c, "%s: %s", a->task_states.v[i].k,
                    str_or(a->task_states.v[i].v->paused, "run"));
    if (status)
        return 0;
    struct alloc_pause_request req = {.task = task, .schedule_state = state};
    if (api_send(c, "PUT", api_target(c, "/v1/client/allocation/%/pause", a->id, NULL),
                 &type_alloc_pause_request, &req, NULL, NULL, &e))
        return cmd_fail(c, "Failed to %s allocation: %s", state, e.text);
    return 0;
}
