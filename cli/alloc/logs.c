/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc logs: what a task wrote, streamed from its node.
 */
#include <stddef.h>

#include "api/terms.h"
#include "cli/alloc/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/limits.h"
#include "cli/stream.h"

enum { STREAMS_MAX = 2 };

struct log_opts {
    bool follow, tail, err, out, job, verbose;
    const char *task, *group;
    int64_t lines, bytes;
};

struct log {
    struct cmd *c;
    const struct log_opts *o;
    const char *alloc, *task;
};

/* offset < 0: from the beginning; else so many bytes before the end. */
static char *
logs_target(const struct log *l, const char *type, bool follow, int64_t offset)
{
    return api_target(l->c, "/v1/client/fs/logs/%", l->alloc, "task", l->task, "type", type,
                      "follow", fmt_bool(follow), "plain", "true", "origin",
                      offset < 0 ? "start" : "end", "offset",
                      fmt_i64(l->c, offset < 0 ? 0 : offset), NULL);
}

static const char *
type_of(const struct log_opts *o)
{
    return o->err ? "stderr" : "stdout";
}

/* --- both streams at once --- */

struct follow {
    struct cmd *c;
    struct loop *loop;
    size_t open;
    int code;
    struct follow_one {
        struct follow *all;
        struct sink sink;
        struct http_client *client;
    } one[STREAMS_MAX];
};

static void
follow_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct sink *s = arg;
    struct follow_one *o =
        (struct follow_one *)(void *)((char *)s - offsetof(struct follow_one, sink));
    if (e && !o->all->code)
        o->all->code = cmd_fail(o->all->c, "Error reading logs: %s", e->text);
    else if (r && r->status >= 300)
        o->all->code = stream_bad_status(o->all->c, "reading logs", r);
    if (--o->all->open == 0 || o->all->code)
        loop_stop(o->all->loop);
}

static int
follow_start(struct follow *f, size_t i, char *to_get, FILE *to)
{
    struct err e = ERR_INIT;
    struct follow_one *o = &f->one[i];
    o->all = f;
    o->sink = (struct sink){.c = f->c, .to = to};
    o->client = http_client_new(&(struct dialer){.loop = f->loop}, f->c->address, &e);
    if (!o->client)
        return cmd_fail(f->c, "Error reading logs: %s", e.text);
    struct http_ask *ask = api_ask(f->c, "GET", to_get);
    ask->on_body = sink_body;
    ask->done = follow_done;
    ask->arg = &o->sink;
    f->open++;
    http_send(o->client, ask);
    return 0;
}

/* Nothing says in which order old lines of the two were written: both from now on, as Nomad. */
static int
follow_both(const struct log *l)
{
    struct follow f = {.c = l->c, .loop = loop_new()};
    f.code = follow_start(&f, 0, logs_target(l, "stdout", true, 0), l->c->out);
    if (!f.code)
        f.code = follow_start(&f, 1, logs_target(l, "stderr", true, 0), l->c->err);
    if (!f.code)
        loop_run(f.loop);
    int code = f.code;
    for (size_t i = 0; i < STREAMS_MAX; i++) {
        if (!f.one[i].client)
            continue;
        f.open += 1; /* what closing completes is no news */
        http_client_close(f.one[i].client);
    }
    loop_free(f.loop);
    return code;
}

/* --- one --- */

static char *
window_target(void *arg, int64_t window)
{
    const struct log *l = arg;
    return logs_target(l, type_of(l->o), false, window);
}

static int
last_lines(struct log *l)
{
    struct sink s = {.to = l->c->out, .lines = l->o->lines >= 0 ? l->o->lines : TAIL_LINES};
    const struct tail t = {window_target, l, l->o->follow};
    int64_t window = 0;
    int code = tail_read(l->c, "reading logs", &t, &s, &window);
    if (code || !l->o->follow) {
        if (!code)
            sink_end(&s);
        buf_done(&s.kept);
        return code;
    }
    s.begin = s.kept.len;
    s.cut = s.begin > 0;
    buf_done(&s.kept);
    return stream_get(l->c, "reading logs", logs_target(l, type_of(l->o), true, window), &s);
}

static int
show_logs(struct log *l)
{
    const struct log_opts *o = l->o;
    bool from_end = o->tail || o->lines >= 0 || o->bytes >= 0;
    if (o->lines >= 0 && o->bytes >= 0)
        return cmd_fail(l->c, "Error reading logs: both -n and -c set");
    if (o->out && o->err)
        return cmd_fail(l->c, "Unable to support both -stdout and -stderr: -f alone follows both");
    if (o->follow)
        follow_until_interrupt();
    if (o->follow && !from_end && !o->out && !o->err)
        return follow_both(l);
    if (from_end && o->bytes < 0)
        return last_lines(l);
    struct sink s = {.c = l->c, .to = l->c->out};
    return stream_get(l->c, "reading logs", logs_target(l, type_of(o), o->follow, o->bytes), &s);
}

/* A task that never started has written nothing; who follows waits for it. */
static bool
not_started(const struct allocation *a, const char *task)
{
    const __auto_type e = map_get(a->task_states, task);
    if (!e)
        return str_eq(a->client_status, ALLOC_PENDING);
    return e->v->started_at == 0 && !str_eq(e->v->state, "running");
}

int
cmd_alloc_logs(struct cmd *c)
{
    struct log_opts o = {.lines = -1, .bytes = -1};
    const struct opt opts[] = {
        {"stdout", OPT_BOOL, &o.out, NULL, "Standard output (the default; -f alone: both)."},
        {"stderr", OPT_BOOL, &o.err, NULL, "Standard error."},
        {"f", OPT_BOOL, &o.follow, NULL,
         "Follow: go on as the log grows. Alone it shows both streams, from now on."},
        {"tail", OPT_BOOL, &o.tail, NULL, "Start near the end (10 lines)."},
        {"n", OPT_INT, &o.lines, "<lines>", "Start so many lines before the end."},
        {"c", OPT_INT, &o.bytes, "<bytes>", "Start so many bytes before the end."},
        {"task", OPT_STRING, &o.task, "<task>", "The task."},
        {"job", OPT_BOOL, &o.job, NULL, "The argument is a job; one of its allocations is used."},
        {"group", OPT_STRING, &o.group, "<group>", "With -job: the group."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    const struct allocation *a =
        o.job ? alloc_of_job(c, c->args[0], o.group) : alloc_find(c, c->args[0]);
    if (!a)
        return 1;
    const char *task = alloc_task(c, a, o.task ? o.task : c->n_args > 1 ? c->args[1] : NULL);
    if (task && !o.follow && not_started(a, task))
        return cmd_fail(
            c,
            "Error reading logs: task \"%s\" has not started yet. No logs available; why: "
            "paddock alloc why %s",
            task, fmt_id(c, a->id, false));
    struct log l = {c, &o, a->id, task};
    return task ? show_logs(&l) : 1;
}
