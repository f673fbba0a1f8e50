/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluation monitor. It waits by blocking queries, so the end is seen when it happens. Read
 * from monitor_eval(): the evaluation and those that follow it (watch_evals), then its deployment.
 * Above are the reasons for what was not placed, which other commands print, too; below a look at
 * whether tasks come up, for job run.
 */
#include "cli/monitor.h"

#include <poll.h>
#include <stdarg.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/death.h"
#include "cli/deployments.h"
#include "cli/format.h"
#include "cli/limits.h"
#include "common/clock.h"
#include "common/duration.h"

enum { FAILURES_MAX = 5, HOPS_MAX = 16, POLL_MS = 500 };

struct monitor {
    struct cmd *c;
    bool verbose;
    const char *status;
    bool triggered;      /* the first line was printed */
    const char *deployment; /* of the evaluation; NULL: none */
    struct str_map seen; /* allocation id -> client status */
};

static void __attribute__((format(printf, 3, 4)))
monitor_line(struct monitor *m, const char *mark, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(m->c, fmt, ap);
    va_end(ap);
    cmd_say(m->c, "%s%s: %s", mark, fmt_time(m->c, cmd_now(m->c)), text);
    talloc_free(text);
    fflush(m->c->out);
}

#define STEP "    "
#define ARROW "==> "

/* --- why something was not placed --- */

static void
print_counts(struct cmd *c, const struct i64_map *m, const char *prefix, const char *fmt_open,
             const char *fmt_close)
{
    for (size_t i = 0; i < m->n; i++)
        cmd_say(c, "%s  * %s%s%s%lld nodes", prefix, fmt_open, m->v[i].k, fmt_close,
                (long long)m->v[i].v);
}

static void
print_filtered(struct cmd *c, const struct i64_map *m, const char *prefix, const char *what)
{
    for (size_t i = 0; i < m->n; i++)
        cmd_say(c, "%s  * %s \"%s\": %lld nodes excluded by filter", prefix, what, m->v[i].k,
                (long long)m->v[i].v);
}

/* A column for each score that some node has. */
static void
print_scores(struct cmd *c, const struct alloc_metric *m)
{
    struct table t;
    struct str_map names = {NULL, 0};
    if (m->score_meta_data.n == 0)
        return;
    for (size_t i = 0; i < m->score_meta_data.n; i++)
        for (size_t j = 0; j < m->score_meta_data.v[i]->scores.n; j++)
            str_map_set(c, &names, m->score_meta_data.v[i]->scores.v[j].k, "");
    const char **cell = mem_array(c, const char *, names.n + 2);
    table_init(&t, c, names.n + 2);
    cell[0] = "Node";
    cell[names.n + 1] = "final score";
    for (size_t j = 0; j < names.n; j++)
        cell[j + 1] = names.v[j].k;
    table_cells(&t, cell);
    for (size_t i = 0; i < m->score_meta_data.n; i++) {
        const struct node_score_meta *s = m->score_meta_data.v[i];
        cell[0] = s->node_id;
        cell[names.n + 1] = mem_printf(c, "%.3g", s->norm_score);
        for (size_t j = 0; j < names.n; j++) {
            const __auto_type e = map_get(s->scores, names.v[j].k);
            cell[j + 1] = mem_printf(c, "%.3g", e ? e->v : 0.0);
        }
        table_cells(&t, cell);
    }
    table_print(&t);
}

void
monitor_print_metrics(struct cmd *c, const struct alloc_metric *m, bool scores, const char *prefix)
{
    if (m->nodes_evaluated == 0)
        cmd_say(c, "%s  * No nodes were eligible for evaluation", prefix);
    for (size_t i = 0; i < m->nodes_available.n; i++)
        if (m->nodes_available.v[i].v == 0)
            cmd_say(c, "%s  * No nodes are available in datacenter \"%s\"", prefix,
                    m->nodes_available.v[i].k);
    print_filtered(c, &m->class_filtered, prefix, "Class");
    print_filtered(c, &m->constraint_filtered, prefix, "Constraint");
    for (size_t i = 0; i < m->drivers_missing.n; i++)
        cmd_say(c, "%s      %s", prefix, m->drivers_missing.v[i].k);
    if (m->nodes_exhausted > 0)
        cmd_say(c, "%s  * Resources exhausted on %lld nodes", prefix,
                (long long)m->nodes_exhausted);
    print_counts(c, &m->class_exhausted, prefix, "Class \"", "\" exhausted on ");
    print_counts(c, &m->dimension_exhausted, prefix, "Dimension \"", "\" exhausted on ");
    for (size_t i = 0; i < m->quota_exhausted.n; i++)
        cmd_say(c, "%s  * Quota limit hit \"%s\"", prefix, m->quota_exhausted.v[i]);
    if (scores)
        print_scores(c, m);
}

void
monitor_print_failed(struct cmd *c, const struct alloc_metric_map *groups, bool verbose,
                     const char *prefix)
{
    for (size_t i = 0; i < groups->n && (verbose || i < FAILURES_MAX); i++) {
        const struct alloc_metric *m = groups->v[i].v;
        long long n = (long long)m->coalesced_failures + 1;
        cmd_say(c, "%sTask Group \"%s\" (failed to place %lld allocation%s):", prefix,
                groups->v[i].k, n, n == 1 ? "" : "s");
        monitor_print_metrics(c, m, verbose, prefix);
    }
    if (!verbose && groups->n > FAILURES_MAX)
        cmd_say(c, "%s... and %zu more task groups (-verbose shows all)", prefix,
                groups->n - FAILURES_MAX);
}

/* --- allocations --- */

static void
show_alloc(struct monitor *m, const struct alloc_list_stub *a, const struct evaluation *ev)
{
    struct cmd *c = m->c;
    const char *id = fmt_id(c, a->id, m->verbose), *before = str_map_get(&m->seen, a->id);
    const char *status = str_or(a->client_status, "");
    bool ours = str_eq(a->eval_id, ev->id);
    if (!before && ours && a->create_index >= ev->create_index)
        monitor_line(m, STEP, "Allocation \"%s\" created: node \"%s\", group \"%s\"", id,
                     fmt_id(c, a->node_id, m->verbose), a->task_group);
    else if (!before && ours)
        monitor_line(m, STEP, "Allocation \"%s\" %s: node \"%s\", group \"%s\"", id,
                     str_eq(a->desired_status, ALLOC_DESIRED_RUN) ? "modified" : "stopped",
                     fmt_id(c, a->node_id, m->verbose), a->task_group);
    else if (before && !str_eq(before, status))
        monitor_line(m, STEP, "Allocation \"%s\" status changed: \"%s\" -> \"%s\"%s%s%s", id,
                     before, status, str_empty(a->client_description) ? "" : " (",
                     str_or(a->client_description, ""),
                     str_empty(a->client_description) ? "" : ")");
    if (!before || !str_eq(before, status))
        str_map_set(m, &m->seen, a->id, status);
}

static int
show_allocs(struct monitor *m, const struct evaluation *ev)
{
    struct alloc_list_stub_list l;
    struct err e = ERR_INIT;
    if (api_list(m->c, api_target(m->c, "/v1/evaluation/%/allocations", ev->id, NULL),
                 &type_alloc_list_stub, &l, NULL, &e))
        return cmd_fail(m->c, "Error reading allocations: %s", e.text);
    for (size_t i = 0; i < l.n; i++)
        show_alloc(m, l.v[i], ev);
    return 0;
}

/* --- the evaluation --- */

static bool
monitor_terminal(const char *status)
{
    return str_eq(status, EVAL_COMPLETE) || str_eq(status, EVAL_FAILED) ||
           str_eq(status, EVAL_CANCELED);
}

static void
show_trigger(struct monitor *m, const struct evaluation *ev)
{
    if (!m->triggered && !str_empty(ev->node_id) && str_eq(ev->triggered_by, TRIGGER_NODE_UPDATE))
        monitor_line(m, STEP, "Evaluation triggered by node \"%s\"",
                     fmt_id(m->c, ev->node_id, m->verbose));
    else if (!m->triggered)
        monitor_line(m, STEP, "Evaluation triggered by job \"%s\"", str_or(ev->job_id, ""));
    if (!m->deployment && !str_empty(ev->deployment_id))
        monitor_line(m, STEP, "Evaluation within deployment: \"%s\"",
                     fmt_id(m->c, ev->deployment_id, m->verbose));
    m->triggered = true;
    if (!str_empty(ev->deployment_id))
        m->deployment = ev->deployment_id;
}

/* Until the evaluation has a terminal status; NULL on error. */
static struct evaluation *
wait_end(struct monitor *m, const char *id)
{
    uint64_t index = 0;
    for (;;) {
        void *ret = NULL;
        struct err e = ERR_INIT;
        struct api_meta meta = {0};
        char *target = index ? api_target(m->c, "/v1/evaluation/%", id, "index",
                                          fmt_u64(m->c, index), "wait", "10s", NULL)
                             : api_target(m->c, "/v1/evaluation/%", id, NULL);
        if (api_get(m->c, target, &type_evaluation, &ret, &meta, &e)) {
            cmd_fail(m->c, "Error reading evaluation: %s", e.text);
            return NULL;
        }
        struct evaluation *ev = ret;
        index = meta.index;
        show_trigger(m, ev);
        if (show_allocs(m, ev))
            return NULL;
        if (!str_eq(ev->status, m->status)) {
            monitor_line(m, STEP, "Evaluation status changed: \"%s\" -> \"%s\"", m->status,
                         ev->status);
            m->status = ev->status;
        }
        if (monitor_terminal(ev->status))
            return ev;
        if (index == 0) /* an agent that tells no index cannot be waited on */
            poll(NULL, 0, POLL_MS);
    }
}

static int
monitor_finish(struct monitor *m, const struct evaluation *ev)
{
    const char *id = fmt_id(m->c, ev->id, m->verbose);
    if (ev->failed_tg_allocs.n == 0) {
        monitor_line(m, ARROW, "Evaluation \"%s\" finished with status \"%s\"%s%s", id, ev->status,
                     str_empty(ev->status_description) ? "" : ": ",
                     str_or(ev->status_description, ""));
        return str_eq(ev->status, EVAL_FAILED) ? 1 : 0;
    }
    monitor_line(
        m, ARROW,
        "Evaluation \"%s\" finished with status \"%s\" but failed to place all allocations:", id,
        ev->status);
    monitor_print_failed(m->c, &ev->failed_tg_allocs, m->verbose, STEP);
    if (!str_empty(ev->blocked_eval))
        monitor_line(m, STEP,
                     "Evaluation \"%s\" waiting for additional capacity to place remainder",
                     fmt_id(m->c, ev->blocked_eval, m->verbose));
    return 2;
}

/* The evaluation, and those that follow it. */
static int
watch_evals(struct monitor *m, const char *eval_id)
{
    struct cmd *c = m->c;
    /* an evaluation that was put off names the next */
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        monitor_line(m, ARROW, "Monitoring evaluation \"%s\"", fmt_id(c, eval_id, m->verbose));
        m->status = EVAL_PENDING; /* as every evaluation begins: its end is always a change */
        m->triggered = false;
        m->deployment = NULL;
        struct evaluation *ev = wait_end(m, eval_id);
        if (!ev)
            return 1;
        int code = monitor_finish(m, ev);
        if (str_empty(ev->next_eval) || code == 2)
            return code;
        eval_id = ev->next_eval;
    }
    return cmd_fail(c, "The chain of evaluations does not end; see \"paddock eval status %s\"",
                    eval_id);
}

/* Watches the deployment, by whose end all may be placed that was not at once. */
static int
watch_deployment(struct monitor *m, int code)
{
    if (!m->deployment || code == 1)
        return code;
    monitor_line(m, ARROW, "Monitoring deployment \"%s\"", fmt_id(m->c, m->deployment, m->verbose));
    const char *status =
        deployments_watch(m->c, m->deployment, DEPLOYMENT_ASK_MS * NS_PER_MS, m->verbose, ARROW);
    return str_eq(status, DEPLOYMENT_SUCCESSFUL) ? 0 : 1;
}

int
monitor_eval(struct cmd *c, const char *eval_id, bool verbose)
{
    struct monitor *m = mem_new(c, struct monitor);
    m->c = c;
    m->verbose = verbose;
    return watch_deployment(m, watch_evals(m, eval_id));
}

int
monitor_follow(struct cmd *c, const struct follow *f, const char *eval_id, const char *text)
{
    if (str_empty(eval_id))
        return 0;
    if (!f->detach)
        return monitor_eval(c, eval_id, f->verbose);
    cmd_say(c, "%s%s", text, eval_id);
    return 0;
}

int
monitor_change(struct cmd *c, const struct follow *f, const struct change *ch, const char *text)
{
    const void *answer = api_change(c, ch);
    if (!answer)
        return 1;
    return monitor_follow(c, f, *(const char **)type_member(ch->answer, answer, "EvalID"), text);
}

/* --- a look at what runs --- */

/* Prints how the tasks of an allocation ended badly. *begun: it needs no further look. */
static bool
look_at(struct monitor *m, const struct alloc_list_stub *a, bool *begun)
{
    bool told = false;
    struct death d;
    *begun = !str_eq(a->client_status, ALLOC_PENDING);
    for (size_t i = 0; i < a->task_states.n; i++) {
        if (!death_of(a->task_states.v[i].k, a->task_states.v[i].v, true, &d))
            continue;
        monitor_line(m, STEP, "%s", death_line(m->c, a->id, &d, m->verbose));
        death_more(m->c, a->id, &d, STEP STEP);
        told = true;
    }
    return told;
}

/* A look at what a finished evaluation has placed: RUN_LOOK_MS until it begins, then RUN_UP_MS. 2
 * when a task of it has crashed by then, which is said. */
static int
monitor_look(struct monitor *m, const char *eval_id)
{
    struct cmd *c = m->c;
    int64_t end = clock_mono_ns() + RUN_LOOK_MS * NS_PER_MS;
    uint64_t index = 0;
    bool up = false;
    for (;;) {
        struct alloc_list_stub_list l;
        struct err e = ERR_INIT;
        struct api_meta meta = {0};
        char *target = api_target(c, "/v1/evaluation/%/allocations", eval_id, "index",
                                  index ? fmt_u64(c, index) : NULL, "wait",
                                  mem_printf(c, "%dms", RUN_UP_MS), NULL);
        size_t waiting = 0, crashed = 0, done = 0;
        if (api_list(c, target, &type_alloc_list_stub, &l, &meta, &e))
            return 0;
        for (size_t i = 0; i < l.n; i++) {
            bool begun = true;
            crashed += crashed < DEATHS_MAX && look_at(m, l.v[i], &begun);
            waiting += !begun;
            done += str_eq(l.v[i]->client_status, ALLOC_COMPLETE);
        }
        if (crashed)
            return 2;
        if (done == l.n)
            return 0;
        index = meta.index;
        if (!waiting && !up) {
            up = true;
            end = clock_mono_ns() + RUN_UP_MS * NS_PER_MS;
        }
        if (!index || clock_mono_ns() >= end)
            return 0;
    }
}

int
monitor_run(struct cmd *c, const char *eval_id, bool verbose)
{
    struct monitor *m = mem_new(c, struct monitor);
    m->c = c;
    m->verbose = verbose;
    int code = watch_evals(m, eval_id);
    if (m->deployment)
        return watch_deployment(m, code);
    return code ? code : monitor_look(m, eval_id);
}
