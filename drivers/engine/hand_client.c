/* SPDX-License-Identifier: Apache-2.0
 *
 * A task of an engine, by way of the engine hand. It lives in these steps:
 *
 *   STARTING   the hand makes a container
 *   LOOKING    what is there is asked for: after a restart of the agent, or when an answer was lost
 *   WAITING    it runs: its end is awaited
 *   FORGETTING it has ended: the container is removed
 *   OVER       nothing is asked any more
 *
 * A hand or an engine that does not answer decides nothing: it is asked again until it does.
 */
#include "drivers/engine/hand_client.h"

#include <signal.h>
#include <string.h>

#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "net/http/http.h"

enum {
    AGAIN_MS = 1000,
    PULL_MS = 86400000, /* the hand ends it before */
    START_MS = 120000,
    ASK_MS = 20000,
    ANSWER_MAX = 1 << 20, /* bytes of memory of a decoded answer */
};

enum step { STARTING, LOOKING, WAITING, FORGETTING, OVER };

struct engine_task {
    struct engine_place at; /* strings are the task's own */
    const struct engine_events *up;
    void *arg;
    enum step step;
    bool adopting;            /* ... of LOOKING: nothing was told yet */
    bool closing;             /* nobody is told any more */
    bool lost;                /* ... a start whose answer did not come */
    bool away;                /* the engine does not answer, which was told */
    struct buf line;          /* of STARTING: what came of one */
    struct hand_news *news;   /* ... the last one */
    struct buf body;          /* ... what is asked for */
    int64_t start_ms;         /* ... how long that may take */
    int64_t pid;              /* of a container that runs, or ran when it was last looked at */
    char *id;                 /* ... and the container's */
    int end_signal;           /* that it has to end was said by this signal; -1: not */
    struct http_client *main; /* of the step: one request at a time */
    struct http_client *side; /* signals */
    struct timer *again, *end_again;
};

static bool on_news(void *arg, const struct http_resp *r, const void *p, size_t n);
static void hand_client_look(void *arg);
static void await_end(struct engine_task *t);
static void send_end(void *arg);

/* --- asking --- */

void
hand_target(struct buf *b, const struct engine_place *p, const char *verb)
{
    buf_printf(b, "/v1/%s/task/", p->driver);
    http_escape(b, p->alloc_id, false);
    buf_puts(b, "/");
    http_escape(b, p->task, false);
    buf_puts(b, verb);
}

/* `ask` has no target yet: `verb` of the task. A body is JSON. */
static void
hand_client_ask(struct engine_task *t, struct http_client **c, const char *verb,
                struct http_ask *ask)
{
    auto_buf struct buf target = BUF_INIT(4096);
    hand_target(&target, &t->at, verb);
    if (!*c)
        *c = hand_client(&t->at);
    ask->target = buf_str(&target);
    ask->content_type = ask->body ? "application/json" : NULL;
    http_send(*c, ask);
}

/* NULL: it is none. */
static const struct hand_state *
state_of(const void *ctx, const struct http_resp *r)
{
    void *s = NULL;
    struct err e = ERR_INIT;
    struct budget *budget = BUDGET(ANSWER_MAX);
    if (json_decode(ctx, &type_hand_state, SLICE(r->body, r->body_len), budget, &s, &e) < 0)
        return NULL;
    return s;
}

const struct engine_place *
hand_place(const struct engine_task *t)
{
    return &t->at;
}

static void
look_later(struct engine_task *t)
{
    t->step = LOOKING;
    t->again = timer_start(t->at.loop, AGAIN_MS, hand_client_look, t);
}

/* --- its end --- */

static void
tell_end(struct engine_task *t, const struct hand_state *s)
{
    auto_mem void *tmp = mem_ctx("exit");
    struct engine_exit x = {.code = (int)s->exit_code, .oom_killed = s->oom_killed};
    x.taken = !str_empty(s->taken_by);
    if (x.taken)
        x.error = s->taken_by;
    else if (s->oom_killed)
        x.error = "OOM Killed";
    else if (!str_empty(s->error))
        x.error = s->error;
    else if (s->exit_code != 0)
        x.error =
            mem_printf(tmp, "%c%s container exited with non-zero exit code: %lld",
                       t->at.driver[0] - 'a' + 'A', t->at.driver + 1, (long long)s->exit_code);
    t->step = OVER;
    t->pid = 0;
    timer_stop(TAKE(t->end_again));
    t->up->exited(t->arg, &x);
}

/* Told once. */
static void
say_away(struct engine_task *t)
{
    if (!t->away)
        t->up->said(t->arg, "The engine does not answer: waiting for it");
    t->away = true;
}

static void
engine_away(struct engine_task *t)
{
    look_later(t);
    say_away(t);
}

static void
on_waited(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_task *t = arg;
    if (t->closing)
        return;
    auto_mem void *tmp = mem_ctx("state");
    const struct hand_state *s = !e && r->status == 200 ? state_of(tmp, r) : NULL;
    if (s && !s->running)
        tell_end(t, s);
    else if (s)
        engine_away(t);
    else if (!e && r->status == 404) {
        t->step = OVER;
        t->up->absent(t->arg);
    } else {
        look_later(t);
    }
}

static void
hand_client_note(struct engine_task *t, const struct hand_state *s)
{
    t->pid = s->running ? s->pid : 0;
    mem_free(t->id);
    t->id = mem_strdup(t, str_or(s->id, ""));
}

/* The cgroup is opened each time, since it is the engine's. */
bool
hand_stats(const struct engine_task *t, struct cgroup_stats *ret, int *ret_dir)
{
    return t->pid > 0 && !str_empty(t->id) &&
           cgroup_process_stats(t->pid, t->id, ret, ret_dir) == 0;
}

static void
await_end(struct engine_task *t)
{
    t->step = WAITING;
    hand_client_ask(t, &t->main, "/wait",
                    &(struct http_ask){.method = "GET", .done = on_waited, .arg = t});
}

/* --- what is there --- */

static void
hand_client_looked(struct engine_task *t, const struct hand_state *s)
{
    bool there = s && s->started_at != 0; /* else it was made, and never started */
    bool adopting = t->adopting, lost = t->lost, away = t->away;
    t->adopting = t->lost = t->away = false;
    if (there) {
        hand_client_note(t, s);
        await_end(t);
    } else {
        t->step = OVER;
    }
    if (away && there)
        t->up->said(t->arg, "The engine answers again");
    if (!there && lost)
        t->up->failed(
            t->arg,
            t->end_signal >= 0 ? NULL : "the engine hand went away while the container was started",
            true);
    else if (!there)
        t->up->absent(t->arg);
    else if (lost)
        t->up->started(t->arg, s->started_at);
    else if (adopting)
        t->up->adopted(t->arg, s->started_at, !s->running);
}

static void
on_looked(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_task *t = arg;
    if (t->closing)
        return;
    auto_mem void *tmp = mem_ctx("state");
    const struct hand_state *s = !e && r->status == 200 ? state_of(tmp, r) : NULL;
    if (s || (!e && r->status == 404))
        hand_client_looked(t, s);
    else
        look_later(t);
}

static void
hand_client_look(void *arg)
{
    struct engine_task *t = arg;
    t->again = NULL;
    hand_client_ask(
        t, &t->main, "",
        &(struct http_ask){.method = "GET", .timeout_ms = ASK_MS, .done = on_looked, .arg = t});
}

/* --- its start --- */

static void
take_news(struct engine_task *t)
{
    void *news = NULL;
    struct err e = ERR_INIT;
    if (json_decode(t, &type_hand_news, SLICE(t->line.data, t->line.len), BUDGET(ANSWER_MAX), &news,
                    &e) < 0)
        return;
    mem_free(t->news);
    t->news = news;
    if (!t->closing && !str_empty(t->news->said))
        t->up->said(t->arg, t->news->said);
}

static bool
on_news(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct engine_task *t = arg;
    (void)r;
    for (const char *s = p, *end = s + n; s < end && !t->closing;) {
        const char *nl = memchr(s, '\n', (size_t)(end - s));
        buf_put(&t->line, s, (size_t)((nl ? nl : end) - s));
        if (!nl || buf_error(&t->line))
            break;
        take_news(t);
        buf_reset(&t->line);
        s = nl + 1;
    }
    return buf_error(&t->line) == 0;
}

static void on_started(void *arg, const struct err *e, const struct http_resp *r);

static void
start_now(void *arg)
{
    struct engine_task *t = arg;
    t->again = NULL;
    hand_expect(&t->at);
    buf_reset(&t->line);
    mem_free(t->news);
    hand_client_ask(t, &t->main, "",
                    &(struct http_ask){.method = "PUT",
                                       .body = t->body.data,
                                       .body_len = t->body.len,
                                       .timeout_ms = t->start_ms,
                                       .on_body = on_news,
                                       .done = on_started,
                                       .arg = t});
}

static void
on_started(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_task *t = arg;
    if (t->closing)
        return;
    const struct hand_news *news = t->news;
    const struct hand_state *s = !e && r->status == 200 && news ? news->state : NULL;
    if (s && s->started_at != 0) {
        hand_client_note(t, s);
        await_end(t);
        if (t->away)
            t->up->said(t->arg, "The engine answers again");
        t->away = false;
        t->up->started(t->arg, s->started_at);
    } else if (!e && (r->status == 502 || (news && news->status == 502))) {
        /* no attempt of the job's is lost by that */
        t->again = timer_start(t->at.loop, AGAIN_MS, start_now, t);
        say_away(t);
    } else if (e || (r->status == 200 && (!news || news->status == 0))) {
        t->lost = true;
        look_later(t);
    } else {
        int status = r->status == 200 ? (int)news->status : r->status;
        t->step = OVER;
        t->up->failed(t->arg, r->status == 200 ? str_or(news->error, "") : r->body, status == 503);
    }
}

static struct engine_task *
hand_client_make(const struct engine_place *p, const struct engine_events *up, void *arg)
{
    struct engine_task *t = mem_new(NULL, struct engine_task);
    *t = (struct engine_task){.at = *p, .up = up, .arg = arg, .end_signal = -1};
    t->at.hand = mem_strdup(t, p->hand);
    t->at.driver = mem_strdup(t, p->driver);
    t->at.alloc_id = mem_strdup(t, p->alloc_id);
    t->at.task = mem_strdup(t, p->task);
    buf_init(&t->line, ANSWER_MAX);
    buf_init(&t->body, HTTP_BODY_MAX);
    return t;
}

struct engine_task *
hand_start(const struct engine_place *p, const struct hand_task *spec,
           const struct engine_events *up, void *arg)
{
    struct engine_task *t = hand_client_make(p, up, arg);
    json_encode(&t->body, &type_hand_task, spec, 0);
    t->step = STARTING;
    t->start_ms = START_MS + (spec->pull_timeout > 0 ? spec->pull_timeout / NS_PER_MS : PULL_MS);
    start_now(t);
    return t;
}

struct engine_task *
hand_adopt(const struct engine_place *p, const struct driver_input *in,
           const struct engine_events *up, void *arg)
{
    struct engine_task *t = hand_client_make(p, up, arg);
    (void)in; /* the hand knows it by its place */
    t->step = LOOKING;
    t->adopting = true;
    hand_client_look(t);
    return t;
}

/* --- what is asked of it --- */

static void
on_end_sent(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_task *t = arg;
    if (!t->closing && (e || r->status >= 500) && t->step != OVER && t->end_signal >= 0 &&
        !t->end_again)
        t->end_again = timer_start(t->at.loop, AGAIN_MS, send_end, t);
}

static void
send_end(void *arg)
{
    struct engine_task *t = arg;
    auto_mem void *tmp = mem_ctx("verb");
    t->end_again = NULL;
    hand_expect(&t->at);
    if (t->step != OVER)
        hand_client_ask(t, &t->side, mem_printf(tmp, "/end?signal=%d", t->end_signal),
                        &(struct http_ask){
                            .method = "POST", .timeout_ms = ASK_MS, .done = on_end_sent, .arg = t});
}

void
hand_stop(struct engine_task *t, int sig)
{
    t->end_signal = sig;
    timer_stop(TAKE(t->end_again));
    if (t->step == STARTING && t->again) { /* its engine is away */
        timer_stop(TAKE(t->again));
        t->lost = true;
        look_later(t);
    } else if (t->step == STARTING) /* which may pull an image for long: the hand gives it up, and
                                what is there is found out */
        http_client_close(TAKE(t->main));
    else
        send_end(t);
}

void
hand_kill(struct engine_task *t)
{
    hand_stop(t, SIGKILL);
}

struct aside { /* a request beside that of the step; it outlives the task */
    engine_done *done;
    void *arg;
    struct http_client *http;
};

static void
on_aside(void *arg, const struct err *e, const struct http_resp *r)
{
    struct aside *s = arg;
    struct err own = ERR_INIT;
    if (!e && r->status != 200)
        e = (err_set(&own, -ERR_UNAVAILABLE, "%s", r->body), &own);
    s->done(s->arg, e);
    http_client_close(s->http);
    talloc_free(s);
}

/* `limits` NULL: the request has no body. */
static void
ask_aside(struct engine_task *t, const char *method, const char *verb,
          const struct hand_task *limits, engine_done *done, void *arg)
{
    struct aside *s = mem_new(NULL, struct aside);
    auto_buf struct buf body = BUF_INIT(HTTP_BODY_MAX);
    *s = (struct aside){.done = done, .arg = arg};
    if (limits)
        json_encode(&body, &type_hand_task, limits, 0);
    hand_client_ask(t, &s->http, verb,
                    &(struct http_ask){.method = method,
                                       .body = body.data,
                                       .body_len = body.len,
                                       .timeout_ms = ASK_MS,
                                       .done = on_aside,
                                       .arg = s});
}

void
hand_signal(struct engine_task *t, int sig, engine_done *done, void *arg)
{
    auto_mem void *tmp = mem_ctx("verb");
    ask_aside(t, "POST", mem_printf(tmp, "/signal?signal=%d", sig), NULL, done, arg);
}

void
hand_pause(struct engine_task *t, bool on, engine_done *done, void *arg)
{
    ask_aside(t, "POST", on ? "/pause" : "/resume", NULL, done, arg);
}

void
hand_resize(struct engine_task *t, const struct hand_task *limits, engine_done *done, void *arg)
{
    ask_aside(t, "PUT", "/limits", limits, done, arg);
}

/* --- its removal --- */

static void hand_client_forget(void *arg);

static void
on_forgotten(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_task *t = arg;
    if (t->closing)
        return;
    if (e || r->status >= 500)
        t->again = timer_start(t->at.loop, AGAIN_MS, hand_client_forget, t);
    else
        t->step = OVER;
}

static void
hand_client_forget(void *arg)
{
    struct engine_task *t = arg;
    auto_mem void *tmp = mem_ctx("verb");
    t->again = NULL;
    hand_client_ask(t, &t->main, mem_printf(tmp, "?started=%lld", (long long)t->at.started_ns),
                    &(struct http_ask){
                        .method = "DELETE", .timeout_ms = ASK_MS, .done = on_forgotten, .arg = t});
}

struct engine_task *
hand_forget(const struct engine_place *p)
{
    struct engine_task *t = hand_client_make(p, NULL, NULL);
    t->step = FORGETTING;
    hand_client_forget(t);
    return t;
}

void
hand_close(struct engine_task *t)
{
    timer_stop(t->again);
    timer_stop(t->end_again);
    t->closing = true;
    http_client_close(t->main);
    http_client_close(t->side);
    buf_done(&t->line);
    buf_done(&t->body);
    talloc_free(t);
}
