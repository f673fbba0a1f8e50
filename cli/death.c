/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/death.h"

#include <stdlib.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/limits.h"
#include "cli/stream.h"

static bool
death_is(const struct task_event *ev, const char *type)
{
    return str_eq(ev->type, type);
}

/* Says whether the task was told to end before event i, and had not begun anew since. */
static bool
death_killed(const struct task_state *s, size_t i)
{
    while (i-- > 0) {
        const struct task_event *ev = s->events.v[i];
        if (death_is(ev, "Started"))
            return false;
        if (death_is(ev, "Killing") || death_is(ev, "Restart Signaled"))
            return true;
    }
    return false;
}

static bool
is_bad(const struct task_state *s, size_t i)
{
    const struct task_event *ev = s->events.v[i];
    if (death_is(ev, "Terminated"))
        return (ev->exit_code != 0 || ev->signal != 0) && !death_killed(s, i);
    return death_is(ev, "Driver Failure") || death_is(ev, "Setup Failure") ||
           death_is(ev, "Failed Validation");
}

bool
death_of(const char *task, const struct task_state *s, bool ever, struct death *ret)
{
    bool again = false;
    for (size_t i = s->events.n; i > 0; i--) {
        const struct task_event *ev = s->events.v[i - 1];
        again = again || death_is(ev, "Started");
        if (!is_bad(s, i - 1))
            continue;
        if (again && !ever)
            return false;
        *ret = (struct death){task, ev, s->events.v[s->events.n - 1]};
        return true;
    }
    return false;
}

/* --- words --- */

static const char *
death_words(struct cmd *c, const struct task_event *ev)
{
    return mem_printf(c, "%s: %s", ev->type,
                      str_or(ev->display_message, str_or(ev->message, "no message")));
}

const char *
death_line(struct cmd *c, const char *alloc, const struct death *d, bool verbose)
{
    return mem_printf(c, "Allocation \"%s\" does not stay up: task \"%s\": %s",
                      fmt_id(c, alloc, verbose), d->task, death_words(c, d->bad));
}

static bool
print_end(struct cmd *c, const char *alloc, const char *task, const char *type, const char *prefix)
{
    struct http_ask *ask =
        api_ask(c, "GET",
                api_target(c, "/v1/client/fs/logs/%", alloc, "task", task, "type", type, "plain",
                           "true", "origin", "end", "offset", fmt_i64(c, DEATH_TAIL_MAX), NULL));
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    size_t at;
    if (c->fetch(c, c->address, ask, &r, &e) < 0 || r->status != 200 || r->body_len == 0)
        return false;
    (void)tail_start((const uint8_t *)r->body, r->body_len, DEATH_LINES, &at);
    cmd_say(c, "%sthe last lines of its %s:", prefix, type);
    for (const char *p = r->body + at, *end = r->body + r->body_len; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((nl ? nl : end) - p);
        char *text = mem_strndup(c, p, n < DEATH_LINE_MAX ? n : DEATH_LINE_MAX);
        str_tame(text, false);
        cmd_say(c, "%s  %s%s", prefix, text, n > DEATH_LINE_MAX ? " ..." : "");
        p += n + 1;
    }
    return true;
}

void
death_lines(struct cmd *c, const char *alloc, const struct death *d, const char *prefix)
{
    if (death_is(d->bad, "Terminated") && !print_end(c, alloc, d->task, "stderr", prefix))
        (void)print_end(c, alloc, d->task, "stdout", prefix);
}

void
death_more(struct cmd *c, const char *alloc, const struct death *d, const char *prefix)
{
    death_lines(c, alloc, d, prefix);
    if (death_is(d->last, "Restarting") || death_is(d->last, "Not Restarting"))
        cmd_say(c, "%s%s", prefix, death_words(c, d->last));
    cmd_say(c, "%smore: paddock alloc why %s", prefix, fmt_id(c, alloc, false));
}

/* --- of many --- */

static void
keep_death(struct cmd *c, struct death_told *keep, const char *alloc, const struct death *d,
           bool verbose)
{
    const char *key = mem_printf(c, "%s/%s", alloc, d->task), *said = death_words(c, d->bad);
    size_t i = 0, size = 0;
    char *text = NULL;
    while (i < keep->n && !str_eq(keep->v[i].key, key))
        i++;
    if (i < keep->n && (str_eq(keep->v[i].words, said) || i >= DEATHS_MAX))
        return;
    if (i == keep->n) {
        mem_resize(c, keep->v, __typeof__(*keep->v), keep->n + 1);
        keep->n++;
        keep->v[i].text = "";
    }
    keep->v[i].key = key;
    keep->v[i].words = said;
    if (i >= DEATHS_MAX)
        return;
    FILE *out = c->out;
    c->out = open_memstream(&text, &size);
    ASSERT(c->out);
    cmd_say(c, "%s", death_line(c, alloc, d, verbose));
    death_more(c, alloc, d, "  ");
    fclose(c->out);
    c->out = out;
    keep->v[i].text = mem_strdup(c, text);
    free(text);
}

bool
death_report(struct cmd *c, const struct alloc_list_stub_list *l, struct death_told *keep,
             const char *title, bool verbose)
{
    struct death_told now = {NULL, 0};
    struct death_told *told = keep ? keep : &now;
    struct death d;
    for (size_t i = 0; i < l->n; i++) {
        const struct alloc_list_stub *a = l->v[i];
        for (size_t t = 0; t < a->task_states.n; t++)
            if (str_eq(str_or(a->desired_status, ALLOC_DESIRED_RUN), ALLOC_DESIRED_RUN) &&
                death_of(a->task_states.v[t].k, a->task_states.v[t].v, keep != NULL, &d))
                keep_death(c, told, a->id, &d, verbose);
    }
    if (told->n > 0 && title)
        cmd_heading(c, title);
    for (size_t i = 0; i < told->n && i < DEATHS_MAX; i++)
        fputs(told->v[i].text, c->out);
    if (told->n > DEATHS_MAX)
        cmd_say(c, "and %zu more tasks", told->n - DEATHS_MAX);
    return told->n > 0;
}
