/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc why: how the tasks of an allocation died, what comes next, and why this node was chosen.
 */
#include "api/terms.h"
#include "cli/alloc/alloc.h"
#include "cli/death.h"
#include "cli/explain.h"
#include "cli/monitor.h"
#include "common/duration.h"

/* --- death --- */

static void
print_last(struct cmd *c, const struct task_state *s, const char *type,
           const struct task_event *but)
{
    for (size_t i = s->events.n; i > 0; i--) {
        const struct task_event *ev = s->events.v[i - 1];
        if (!str_eq(ev->type, type) || ev == but)
            continue;
        cmd_say(c, "  %s: %s", ev->type, str_or(ev->display_message, str_or(ev->message, "")));
        return;
    }
}

/* Prints the restarts, as far as events tell: the client keeps the last ten. */
static void
print_restarts(struct cmd *c, const struct task *t, const struct task_state *s)
{
    const struct restart_policy *p = t->restart_policy;
    char interval[DURATION_TEXT];
    int64_t used = 0;
    if (!p || str_eq(s->state, "dead"))
        return;
    for (size_t i = 0; i < s->events.n; i++)
        used += str_eq(s->events.v[i]->type, "Restarting") &&
                s->events.v[i]->time > cmd_now(c) - p->interval.v;
    int64_t left = used < p->attempts.v ? p->attempts.v - used : 0;
    cmd_say(c, "  restarts left: %lld of %lld in %s, then %s", (long long)left,
            (long long)p->attempts.v, duration_format(p->interval.v, interval),
            str_eq(p->mode, "delay") ? "it waits for the next interval" : "the allocation fails");
}

static void
print_task(struct cmd *c, const struct allocation *a, const struct task *t)
{
    const __auto_type e = map_get(a->task_states, t->name);
    const struct task_state *s = e ? e->v : NULL;
    struct death d;
    if (!s) {
        cmd_say(c, "\nTask \"%s\" is pending: its node has told nothing of it yet", t->name);
        return;
    }
    cmd_say(c, "\nTask \"%s\" is %s%s, %llu restart%s", t->name, s->state,
            s->failed ? " (failed)" : "", (unsigned long long)s->restarts,
            s->restarts == 1 ? "" : "s");
    bool died = death_of(t->name, s, true, &d);
    print_last(c, s, "Driver", NULL);
    print_last(c, s, "Denied System Call", NULL);
    if (died) {
        cmd_say(c, "  %s, %s: %s", d.bad->type, fmt_ago(c, d.bad->time),
                str_or(d.bad->display_message, str_or(d.bad->message, "no message")));
        death_lines(c, a->id, &d, "  ");
    }
    const struct task_event *last = s->events.n ? s->events.v[s->events.n - 1] : NULL;
    if (last && (!died || last != d.bad))
        cmd_say(c, "  %s, %s: %s", last->type, fmt_ago(c, last->time),
                str_or(last->display_message, str_or(last->message, "")));
    print_restarts(c, t, s);
}

static void
print_next(struct cmd *c, const struct allocation *a, bool verbose)
{
    const struct task_group *g = job_group(a->job, a->task_group);
    const struct reschedule_policy *p = g ? g->reschedule_policy : NULL;
    const char *when = alloc_next_place(c, a);
    if (!str_empty(a->next_allocation))
        cmd_say(c, "\nIt was replaced by allocation \"%s\"",
                fmt_id(c, a->next_allocation, verbose));
    else if (when)
        cmd_say(c, "\nIt is placed anew %s", when);
    else if (str_eq(a->client_status, ALLOC_FAILED) && p && !p->unlimited.v)
        cmd_say(c, "\nIt is not placed anew: reschedule allows %lld attempts",
                (long long)p->attempts.v);
    else if (str_eq(a->client_status, ALLOC_FAILED))
        cmd_say(c, "\nNothing says when it is placed anew: paddock job status %s", a->job_id);
}

/* --- placement --- */

static void
print_placement(struct cmd *c, const struct allocation *a)
{
    const struct alloc_metric *m = a->metrics;
    if (m == NULL)
        return;
    cmd_say(c, "\nPlaced %s; of %lld nodes %lld were filtered and %lld exhausted:",
            fmt_ago(c, a->create_time), (long long)m->nodes_evaluated, (long long)m->nodes_filtered,
            (long long)m->nodes_exhausted);
    monitor_print_metrics(c, m, true, "  ");
}

int
cmd_alloc_why(struct cmd *c)
{
    struct explain_opts o = {.group = NULL};
    const struct opt opts[] = {
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Name all nodes, with full ids."}, {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct allocation *a = alloc_find(c, c->args[0]);
    if (a == NULL)
        return 1;
    if (!str_empty(a->namespace))
        c->namespace = a->namespace;
    cmd_say(c, "Allocation \"%s\" of job \"%s\" is %s on node \"%s\"%s%s",
            fmt_id(c, a->id, o.verbose), a->job_id, a->client_status, a->node_name,
            str_empty(a->desired_description) ? "" : ": ", str_or(a->desired_description, ""));
    const struct task_group *g = job_group(a->job, a->task_group);
    for (size_t i = 0; g && i < g->tasks.n; i++)
        print_task(c, a, g->tasks.v[i]);
    print_next(c, a, o.verbose);
    print_placement(c, a);
    fputc('\n', c->out);
    o.group = a->task_group;
    return explain_job(c, a->job_id, &o);
}
