/* SPDX-License-Identifier: Apache-2.0
 *
 * job restart: the allocations of a job, batch by batch, in place or each by a new one. From the
 * bottom: the command checks its options, restart_run() finds the allocations, restart_all() takes
 * the batches, and each allocation is restarted in place, or stopped and its replacement awaited
 * until it runs.
 */
#include <poll.h>
#include <unistd.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "common/duration.h"
#include "common/num.h"

struct restart {
    struct cmd *c;
    bool all_tasks, yes, no_delay, reschedule, verbose;
    struct opt_list groups, tasks;
    const char *batch_size, *batch_wait, *on_error;
    bool ask_wait;
    int64_t wait_ns;
    size_t batch; /* allocations */
    struct job_list_stub *job;
};

static void __attribute__((format(printf, 3, 4)))
restart_step(struct restart *r, const char *mark, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(r->c, fmt, ap);
    va_end(ap);
    cmd_say(r->c, "%s%s: %s", mark, fmt_time(r->c, cmd_now(r->c)), text);
    fflush(r->c->out);
}

#define STEP "    "
#define ARROW "==> "

static const char *
restart_id(struct restart *r, const char *uuid)
{
    return fmt_id(r->c, uuid, r->verbose);
}

static bool
restart_listed(const struct opt_list *l, const char *name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i], name))
            return true;
    return false;
}

/* --- one, in place --- */

static int
restart_task(struct restart *r, const char *alloc, const char *task)
{
    struct cmd *c = r->c;
    struct err e = ERR_INIT;
    struct alloc_restart_request req = {.task_name = task, .all_tasks = r->all_tasks};
    const struct change ch = {.target =
                                  api_target(c, "/v1/client/allocation/%/restart", alloc, NULL),
                              .body_type = &type_alloc_restart_request,
                              .body = &req};
    if (!api_send(c, &ch, NULL, &e))
        return 0;
    return task ? cmd_fail(c, "Error restarting task \"%s\" of allocation \"%s\": %s", task,
                           restart_id(r, alloc), e.text)
                : cmd_fail(c, "Error restarting allocation \"%s\": %s", restart_id(r, alloc),
                           e.text);
}

static int
restart_in_place(struct restart *r, const struct alloc_list_stub *a)
{
    int code = 0;
    if (r->tasks.n == 0) {
        restart_step(r, STEP, "Restarting %s tasks in allocation \"%s\" for group \"%s\"",
                     r->all_tasks ? "all" : "running", restart_id(r, a->id), a->task_group);
        return restart_task(r, a->id, NULL);
    }
    for (size_t i = 0; i < r->tasks.n; i++) {
        if (!map_get(a->task_states, r->tasks.v[i]))
            continue;
        restart_step(r, STEP, "Restarting task \"%s\" in allocation \"%s\" for group \"%s\"",
                     r->tasks.v[i], restart_id(r, a->id), a->task_group);
        code |= restart_task(r, a->id, r->tasks.v[i]);
    }
    return code;
}

/* --- one by another --- */

/* Blocks until done(object) or an error, which was said; `t` has what path names. */
static void *
wait_for(struct restart *r, const char *path, const char *uuid, const struct type *t,
         bool (*done)(const void *obj))
{
    uint64_t index = 0;
    for (;;) {
        struct err e = ERR_INIT;
        struct api_meta meta = {0};
        void *ret = NULL;
        char *target = api_target(r->c, path, uuid, "index", index ? fmt_u64(r->c, index) : NULL,
                                  "wait", index ? "10s" : NULL, NULL);
        if (api_get(r->c, target, t, &ret, &meta, &e)) {
            cmd_fail(r->c, "Error waiting for \"%s\": %s", restart_id(r, uuid), e.text);
            return NULL;
        }
        if (done(ret))
            return ret;
        if (meta.index == 0) /* an agent that tells no index cannot be waited on */
            poll(NULL, 0, 500);
        index = meta.index;
    }
}

static bool
eval_ended(const void *obj)
{
    const struct evaluation *ev = obj;
    return !str_eq(ev->status, EVAL_PENDING) && !str_eq(ev->status, EVAL_BLOCKED);
}

static bool
alloc_began(const void *obj)
{
    const struct allocation *a = obj;
    return !str_eq(a->client_status, ALLOC_PENDING);
}

static int
stop_one(struct restart *r, const struct alloc_list_stub *a, const char **ret_eval)
{
    struct cmd *c = r->c;
    restart_step(r, STEP, "Rescheduling allocation \"%s\" for group \"%s\"", restart_id(r, a->id),
                 a->task_group);
    char *target = api_target(c, "/v1/allocation/%/stop", a->id, "no_shutdown_delay",
                              r->no_delay ? "true" : NULL, NULL);
    const struct alloc_stop_response *stopped =
        api_change(c, &(struct change){.target = target,
                                       .answer = &type_alloc_stop_response,
                                       .failed = mem_printf(c, "Failed to stop allocation \"%s\"",
                                                            restart_id(r, a->id))});
    if (!stopped)
        return 1;
    *ret_eval = stopped->eval_id;
    if (!str_eq(r->job->type, JOB_SYSTEM))
        return 0;
    /* one of a system job is not replaced without being asked for */
    struct eval_options eo = {.force_reschedule = true};
    struct job_evaluate_request req = {.job_id = r->job->id, .eval_options = &eo};
    const struct job_register_response *evaluated = api_change(
        c, &(struct change){NULL, api_target(c, "/v1/job/%/evaluate", r->job->id, NULL),
                            &type_job_evaluate_request, &req, &type_job_register_response,
                            mem_printf(c, "Failed to evaluate job \"%s\"", r->job->id)});
    if (evaluated)
        *ret_eval = evaluated->eval_id;
    return evaluated ? 0 : 1;
}

static int
await_replacement(struct restart *r, const struct alloc_list_stub *a, const char *eval)
{
    struct cmd *c = r->c;
    struct err e = ERR_INIT;
    void *ret = NULL;
    const struct evaluation *ev =
        wait_for(r, "/v1/evaluation/%", eval, &type_evaluation, eval_ended);
    if (!ev)
        return 1;
    if (map_get(ev->failed_tg_allocs, a->task_group))
        return cmd_fail(
            c,
            "Allocation \"%s\" has no replacement yet: evaluation \"%s\" could not place "
            "group \"%s\"",
            restart_id(r, a->id), restart_id(r, eval), a->task_group);
    if (api_get(c, api_target(c, "/v1/allocation/%", a->id, NULL), &type_allocation, &ret, NULL,
                &e))
        return cmd_fail(c, "Failed to retrieve allocation \"%s\": %s", restart_id(r, a->id),
                        e.text);
    const char *next = ((struct allocation *)ret)->next_allocation;
    if (str_empty(next)) {
        restart_step(r, STEP, "Allocation \"%s\" has ended and needs no replacement",
                     restart_id(r, a->id));
        return 0;
    }
    restart_step(r, STEP,
                 "Allocation \"%s\" replaced by \"%s\", waiting for \"%s\" to start running",
                 restart_id(r, a->id), restart_id(r, next), restart_id(r, next));
    const struct allocation *n =
        wait_for(r, "/v1/allocation/%", next, &type_allocation, alloc_began);
    if (!n)
        return 1;
    restart_step(r, STEP, "Allocation \"%s\" is \"%s\"", restart_id(r, next), n->client_status);
    return str_eq(n->client_status, ALLOC_RUNNING) || str_eq(n->client_status, ALLOC_COMPLETE)
               ? 0
               : cmd_fail(c, "Allocation \"%s\" is \"%s\"", restart_id(r, next), n->client_status);
}

static int
restart_replace(struct restart *r, struct alloc_list_stub *const *v, size_t n)
{
    const char **eval = mem_array(r->c, const char *, n + 1);
    int code = 0;
    for (size_t i = 0; i < n; i++)
        code |= stop_one(r, v[i], &eval[i]);
    for (size_t i = 0; i < n; i++)
        if (!str_empty(eval[i]))
            code |= await_replacement(r, v[i], eval[i]);
    return code;
}

/* --- all --- */

static bool
restart_wanted(const struct restart *r, const struct alloc_list_stub *a)
{
    bool starts =
        str_eq(a->client_status, ALLOC_PENDING) && str_eq(a->desired_status, ALLOC_DESIRED_RUN);
    bool stops = str_eq(a->desired_status, ALLOC_DESIRED_STOP) ||
                 str_eq(a->desired_status, ALLOC_DESIRED_EVICT);
    if ((!str_eq(a->client_status, ALLOC_RUNNING) && !starts) || stops ||
        !str_empty(a->next_allocation) ||
        (r->groups.n && !restart_listed(&r->groups, a->task_group)))
        return false;
    for (size_t i = 0; i < r->tasks.n; i++)
        if (map_get(a->task_states, r->tasks.v[i]))
            return true;
    return r->tasks.n == 0;
}

/* False: it ends here. */
static bool
go_on(struct restart *r, int code)
{
    bool ask = r->ask_wait || (code && str_eq(r->on_error, "ask"));
    if (code && str_eq(r->on_error, "fail")) {
        restart_step(r, ARROW, "Stopping job restart due to error");
        return false;
    }
    if (ask && !r->yes && !cmd_confirm(r->c, "Restart the next batch?")) {
        restart_step(r, ARROW, "Job restart canceled");
        return false;
    }
    if (r->wait_ns > 0) {
        char t[DURATION_TEXT];
        restart_step(r, ARROW, "Waiting %s before restarting the next batch",
                     duration_format(r->wait_ns, t));
        poll(NULL, 0, (int)(r->wait_ns / 1000000));
    }
    return true;
}

static int
restart_all(struct restart *r, struct alloc_list_stub *const *v, size_t n)
{
    int code = 0;
    restart_step(r, ARROW, "Restarting %zu allocation%s", n, n == 1 ? "" : "s");
    for (size_t at = 0; at < n; at += r->batch) {
        size_t k = n - at < r->batch ? n - at : r->batch;
        int failed = 0;
        if (r->batch > 1)
            restart_step(r, ARROW, "Restarting batch %zu of %zu allocations", at / r->batch + 1, k);
        if (r->reschedule)
            failed = restart_replace(r, v + at, k);
        for (size_t i = 0; !r->reschedule && i < k; i++)
            failed |= restart_in_place(r, v[at + i]);
        code |= failed;
        if (at + k < n && !go_on(r, failed))
            return 1;
    }
    restart_step(r, ARROW, "Job restart finished%s", code ? " with errors" : "");
    if (!code)
        cmd_say(r->c, "\nJob restarted successfully!");
    return code;
}

/* --- the command --- */

/* "3" or "20%", of n allocations; 0: said. */
static size_t
batch_size(struct restart *r, size_t n)
{
    uint64_t v;
    size_t len = strlen(r->batch_size);
    bool percent = len && r->batch_size[len - 1] == '%';
    const char *digits = percent ? mem_strndup(r->c, r->batch_size, len - 1) : r->batch_size;
    if (num_parse_u64(digits, &v) || v == 0 || v > 1000000) {
        cmd_fail(r->c, "Invalid -batch-size value \"%s\": want a number above 0, or a percentage",
                 r->batch_size);
        return 0;
    }
    return percent ? (n * (size_t)v + 99) / 100 : (size_t)v;
}

static int
restart_check(struct restart *r)
{
    struct cmd *c = r->c;
    bool ask = isatty(STDIN_FILENO) || r->yes;
    r->ask_wait = str_eq(r->batch_wait, "ask");
    if (!r->ask_wait && (duration_parse(r->batch_wait, &r->wait_ns) || r->wait_ns < 0 ||
                         r->wait_ns > INT32_MAX * INT64_C(1000000)))
        return cmd_fail(c, "Invalid -batch-wait value \"%s\": want a duration, or ask",
                        r->batch_wait);
    if (!str_eq(r->on_error, "ask") && !str_eq(r->on_error, "fail"))
        return cmd_fail(c, "Invalid -on-error value \"%s\": want ask or fail", r->on_error);
    if (!ask && (r->ask_wait || str_eq(r->on_error, "ask")))
        return cmd_fail(c, "Nobody can be asked without a terminal: give -on-error=fail%s, or -yes",
                        r->ask_wait ? " and a -batch-wait in seconds" : "");
    if (r->all_tasks && r->tasks.n)
        return cmd_fail(c, "The -all-tasks option cannot be used with -task");
    if (r->reschedule && r->tasks.n)
        return cmd_fail(c, "The -reschedule option cannot be used with -task");
    return batch_size(r, 100) ? 0 : 1;
}

static int
restart_run(struct restart *r, const char *job)
{
    struct cmd *c = r->c;
    struct alloc_list_stub_list l;
    struct err e = ERR_INIT;
    r->job = api_find_job(c, job);
    if (!r->job)
        return 1;
    if (r->reschedule && str_eq(r->job->type, JOB_SYSBATCH))
        return cmd_fail(c, "Jobs of type \"%s\" are not allowed to be rescheduled.", r->job->type);
    if (api_list(c, api_target(c, "/v1/job/%/allocations", r->job->id, "all", "true", NULL),
                 &type_alloc_list_stub, &l, NULL, &e))
        return cmd_fail(c, "Error retrieving allocations for job \"%s\": %s", r->job->id, e.text);
    size_t n = 0;
    for (size_t i = 0; i < l.n; i++)
        if (restart_wanted(r, l.v[i]))
            l.v[n++] = l.v[i];
    if (n == 0) {
        cmd_say(c, "No allocations to restart");
        return 0;
    }
    r->batch = batch_size(r, n);
    return restart_all(r, l.v, n);
}

int
cmd_job_restart(struct cmd *c)
{
    struct restart r = {.c = c, .batch_size = "1", .batch_wait = "0s", .on_error = "ask"};
    const struct opt opts[] = {
        {"all-tasks", OPT_BOOL, &r.all_tasks, NULL, "Restart tasks that have ended too."},
        {"batch-size", OPT_STRING, &r.batch_size, "<n|n%>", "Allocations at once (default 1)."},
        {"batch-wait", OPT_STRING, &r.batch_wait, "<duration|ask>",
         "Wait so long between batches, or ask (default 0s)."},
        {"group", OPT_LIST, &r.groups, "<group>", "Only this group; may be repeated."},
        {"no-shutdown-delay", OPT_BOOL, &r.no_delay, NULL,
         "With -reschedule: do not wait for shutdown delays."},
        {"on-error", OPT_STRING, &r.on_error, "<ask|fail>",
         "What to do when a batch fails (default ask)."},
        {"reschedule", OPT_BOOL, &r.reschedule, NULL,
         "Stop each allocation, and wait until the one that replaces it runs."},
        {"task", OPT_LIST, &r.tasks, "<task>", "Only this task; may be repeated."},
        {"yes", OPT_BOOL, &r.yes, NULL, "Do not ask."},
        {"verbose", OPT_BOOL, &r.verbose, NULL, "Show full ids."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    return restart_check(&r) ? 1 : restart_run(&r, c->args[0]);
}
