/* SPDX-License-Identifier: Apache-2.0
 *
 * Task events: what happened to a task, in words and in fields. Pure.
 */
#include <stdarg.h>
#include <string.h>

#include "client/task/task_sm.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

struct task_event *
task_event_new(const void *ctx, const char *type, int64_t now_ns)
{
    struct task_event *ev = mem_new(ctx, struct task_event);
    ev->type = mem_strdup(ev, type);
    ev->time = now_ns;
    ev->message = "";
    return ev;
}

void
task_event_detail(struct task_event *ev, const char *key, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *v = mem_vprintf(ev, fmt, ap);
    va_end(ap);
    str_map_set(ev, &ev->details, key, v);
}

static const char *
display_terminated(const void *ctx, const struct task_event *ev)
{
    char *s = mem_printf(ctx, "Exit Code: %lld", (long long)ev->exit_code);
    if (ev->signal != 0)
        s = mem_printf(ctx, "%s, Signal: %lld", s, (long long)ev->signal);
    if (!str_empty(ev->message))
        s = mem_printf(ctx, "%s, Exit Message: \"%s\"", s, ev->message);
    return s;
}

static const char *
display_killing(const void *ctx, const struct task_event *ev)
{
    if (!str_empty(ev->kill_reason))
        return mem_printf(ctx, "Killing task: %s", ev->kill_reason);
    if (!str_empty(ev->message))
        return ev->message;
    if (ev->kill_timeout == 0)
        return "Sent interrupt";
    char d[DURATION_TEXT];
    return mem_printf(ctx, "Sent interrupt. Waiting %s before force killing",
                      duration_format(ev->kill_timeout, d));
}

static const char *
display_restarting(const void *ctx, const struct task_event *ev)
{
    char d[DURATION_TEXT];
    const char *in = duration_format(ev->start_delay, d);
    if (str_empty(ev->restart_reason) || str_eq(ev->restart_reason, TASK_RESTART_POLICY))
        return mem_printf(ctx, "Task restarting in %s", in);
    return mem_printf(ctx, "%s - Task restarting in %s", ev->restart_reason, in);
}

static const char *
display_signaling(const void *ctx, const struct task_event *ev)
{
    const char *what = str_empty(ev->task_signal)
                           ? "Task being sent a signal"
                           : mem_printf(ctx, "Task being sent signal %s", ev->task_signal);
    if (str_empty(ev->task_signal_reason))
        return what;
    return mem_printf(ctx, "%s: %s", what, ev->task_signal_reason);
}

/* Types whose text is one member or a fixed sentence. */
static const char *
display_simple(const struct task_event *ev)
{
    const struct {
        const char *type;
        const char *member;
        const char *otherwise;
    } rows[] = {
        {TASK_EVENT_RECEIVED, NULL, "Task received by client"},
        {TASK_EVENT_SETUP, ev->message, "Task setup"},
        {TASK_EVENT_DRIVER, ev->driver_message, ""},
        {TASK_EVENT_DRIVER_FAILURE, ev->driver_error, "Failed to start task"},
        {TASK_EVENT_SETUP_FAILURE, ev->setup_error, "Task setup failed"},
        {TASK_EVENT_ARTIFACT_FAILURE, ev->download_error, "Failed to download artifacts"},
        {TASK_EVENT_VALIDATION, ev->validation_error, "Validation of task failed"},
        {TASK_EVENT_STARTED, NULL, "Task started by client"},
        {TASK_EVENT_NOT_RESTARTING, ev->restart_reason, "Task exceeded restart policy"},
        {TASK_EVENT_RESTART_SIGNAL, ev->restart_reason, "Task signaled to restart"},
        {TASK_EVENT_KILLED, ev->kill_error, "Task successfully killed"},
        {TASK_EVENT_LEADER, NULL, "Leader Task in Group dead"},
        {TASK_EVENT_MAIN, NULL, "Main tasks in the group died"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(ev->type, rows[i].type) == 0)
            return str_or(rows[i].member, rows[i].otherwise);
    return str_or(ev->message, "");
}

/* The text for people; owned by ctx. */
static const char *
task_event_display(const void *ctx, const struct task_event *ev)
{
    if (strcmp(ev->type, TASK_EVENT_TERMINATED) == 0)
        return display_terminated(ctx, ev);
    if (strcmp(ev->type, TASK_EVENT_KILLING) == 0)
        return display_killing(ctx, ev);
    if (strcmp(ev->type, TASK_EVENT_RESTARTING) == 0)
        return display_restarting(ctx, ev);
    if (strcmp(ev->type, TASK_EVENT_SIGNALING) == 0)
        return display_signaling(ctx, ev);
    if (strcmp(ev->type, TASK_EVENT_SIBLING) == 0)
        return str_empty(ev->failed_sibling)
                   ? "Task's sibling failed"
                   : mem_printf(ctx, "Task's sibling \"%s\" failed", ev->failed_sibling);
    return display_simple(ev);
}

void
task_event_add(struct client_task *t, struct task_event *ev)
{
    ev->display_message = task_event_display(ev, ev);
    struct task_event_list *l = &t->state->events;
    talloc_steal(t->state, ev);
    if (l->n == 0)
        l->v = mem_array(t->state, struct task_event *, TASK_EVENTS_MAX);
    while (l->n >= TASK_EVENTS_MAX) {
        mem_free(l->v[0]);
        memmove(l->v, l->v + 1, (l->n - 1) * sizeof(*l->v));
        l->n--;
    }
    /* A decoded list has room for what it holds only. */
    mem_resize(t->state, l->v, struct task_event *, TASK_EVENTS_MAX);
    l->v[l->n++] = ev;
}
