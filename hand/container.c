/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a container that runs, or has: its output is pumped into the logs, its end awaited,
 * both as often as the engine goes away and comes back. When the end is known and all output is
 * written, who waits is told.
 *
 *   FOLLOWING  a call waits for the end, another brings output; an engine that goes away meanwhile
 *              may take the container along (doc/task-end.md)
 *   ENDED      the end is known; output may still come
 *   TOLD       both are complete: waits are answered at once; who asked for the container removes
 *              it, or, when its allocation has gone without that, the hand does
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <utlist.h>

#include "api/plain.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "hand/hand.h"

/* More than that at once is a burst, in which files of the engine are full within a moment. */
enum { MUCH_BYTES = 256 << 10 };
#define BEHIND_NS (100 * NS_PER_MS)
#define STALLED_NS (500 * NS_PER_MS)

struct container_wait {
    struct container_wait *prev, *next;
    struct container *c;
    container_ended *fn;
    void *arg;
};

struct container {
    struct container *prev, *next;
    struct hand *h;
    char *alloc, *task, *id;
    const char *image;    /* its id; "": not known yet */
    struct hand_log *log; /* NULL: its directory is gone */
    struct engine_call *end, *output, *removal, *info;
    struct timer *end_again, *output_again, *linger, *orphan;
    struct container_wait *waits;
    struct hand_state state; /* strings are the container's */
    bool catching;           /* what there is, from file to file, and not what comes */
    bool behind;             /* ... to begin with: what comes was left */
    bool lingered;
    bool ended, drained, told, failing;
    bool away;     /* its engine went away while it ran */
    uint64_t ends; /* of h, when its end was asked for */
};

static void ask_end(void *arg);
static void ask_output(void *arg);

static void
container_tell(struct container *c, const struct hand_state *s)
{
    while (c->waits) {
        struct container_wait *w = c->waits;
        DL_DELETE(c->waits, w);
        w->fn(w->arg, s);
        talloc_free(w);
    }
}

static void look_for_alloc(void *arg);

static void
container_step(struct container *c)
{
    if (!c->ended || !c->drained || c->told)
        return;
    c->told = true;
    timer_stop(TAKE(c->linger));
    c->orphan = timer_start(c->h->loop, HAND_ORPHAN_MS, look_for_alloc, c);
    container_tell(c, &c->state);
}

static void
free_container(struct container *c, const struct hand_state *s)
{
    DL_DELETE(c->h->first, c);
    engine_cancel(c->end);
    engine_cancel(c->info);
    engine_cancel(c->output);
    engine_cancel(c->removal);
    timer_stop(c->orphan);
    timer_stop(c->end_again);
    timer_stop(c->output_again);
    timer_stop(c->linger);
    container_tell(c, s);
    log_close(c->log);
    talloc_free(c);
}

/* --- what nobody removes --- */

static void
on_orphan_removed(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct container *c = arg;
    (void)doc;
    c->removal = NULL;
    if (!e && (status == 204 || status == 404)) {
        images_unused(c->h->images, c->image);
        free_container(c, NULL);
    } else {
        c->orphan = timer_start(c->h->loop, HAND_ORPHAN_MS, look_for_alloc, c);
    }
}

/* The agent was killed, or stopped, before it could ask. */
static void
look_for_alloc(void *arg)
{
    struct container *c = arg;
    auto_mem void *tmp = mem_ctx("orphan");
    c->orphan = NULL;
    if (leftover_owned(c->h, c->alloc)) {
        c->orphan = timer_start(c->h->loop, HAND_ORPHAN_MS, look_for_alloc, c);
        return;
    }
    log_info("hand", "a container is removed: its allocation has gone", "task", c->task, "alloc_id",
             c->alloc, NULL);
    c->removal = engine_ask(
        c->h, &(struct engine_ask){.method = "DELETE",
                                   .target = mem_printf(tmp, "/containers/%s?force=1&v=1", c->id),
                                   .timeout_ms = HAND_ASK_MS,
                                   .done = on_orphan_removed,
                                   .arg = c});
}

/* --- its end --- */

/* Something keeps the output open, or there is much of it: all that is there is asked for once
 * more, and then as long as some comes. */
static void
on_linger(void *arg)
{
    struct container *c = arg;
    c->linger = NULL;
    engine_cancel(TAKE(c->output));
    timer_stop(TAKE(c->output_again));
    c->drained = c->lingered;
    if (!c->lingered) {
        c->lingered = true;
        c->linger = timer_start(c->h->loop, HAND_LINGER_MS, on_linger, c);
        ask_output(c);
    }
    container_step(c);
}

static void
end_later(struct container *c)
{
    c->end_again = timer_start(c->h->loop, HAND_AGAIN_MS, ask_end, c);
}

static void
has_ended(struct container *c)
{
    c->ended = true;
    if (!c->drained)
        c->linger = timer_start(c->h->loop, HAND_LINGER_MS, on_linger, c);
    container_step(c);
}

/* Without `live-restore` dockerd has ended all its containers, when it went or came back. */
static void
on_info(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct container *c = arg;
    c->info = NULL;
    if (e || status != 200) {
        end_later(c);
        return;
    }
    if (!document_bool(doc, "LiveRestoreEnabled"))
        c->state.taken_by = "its engine was stopped while the task ran";
    has_ended(c);
}

static void
on_inspected(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct container *c = arg;
    struct hand_state s;
    c->end = NULL;
    if (!e && status == 404) {
        free_container(c, NULL);
        return;
    }
    if (e || status != 200 || !document_state(c, c->h, c->alloc, c->task, doc, &s) || s.running) {
        c->away |= e != NULL;
        end_later(c);
        return;
    }
    c->away |= c->ends != c->h->ends; /* another engine says so */
    c->state = s;
    c->image = mem_strndup(c, document_text(doc, "Image"), HAND_ID_MAX);
    if (c->away && str_empty(s.taken_by) && !engine_is_podman(c->h)) /* whose do not need it */
        c->info = engine_ask(c->h, &(struct engine_ask){.method = "GET",
                                                        .target = "/info",
                                                        .timeout_ms = HAND_ASK_MS,
                                                        .done = on_info,
                                                        .arg = c});
    else
        has_ended(c);
}

static void
on_waited(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct container *c = arg;
    auto_mem void *tmp = mem_ctx("target");
    (void)doc;
    c->end = NULL;
    if (e || (status != 200 && status != 404)) {
        /* the engine has gone: what became of the container is not known yet */
        const struct hand_state s = {.id = c->id, .running = true};
        c->away |= e != NULL;
        end_later(c);
        container_tell(c, &s);
        return;
    }
    c->end = engine_ask(
        c->h, &(struct engine_ask){.method = "GET",
                                   .target = mem_printf(tmp, "/containers/%s/json", c->id),
                                   .timeout_ms = HAND_ASK_MS,
                                   .done = on_inspected,
                                   .arg = c});
}

static void
ask_end(void *arg)
{
    struct container *c = arg;
    auto_mem void *tmp = mem_ctx("target");
    c->end_again = NULL;
    witness_keep(c->h);
    c->ends = c->h->ends;
    c->end = engine_ask(
        c->h, &(struct engine_ask){
                  .method = "POST",
                  .target = mem_printf(tmp, "/containers/%s/wait?condition=not-running", c->id),
                  .done = on_waited,
                  .arg = c});
}

/* --- its output --- */

/* A stream that is followed jumps to the newest file of dockerd when the reader is more than one
 * file behind, and dockerd tells nobody (its follow.go). A stream that only brings what exists goes
 * from file to file: it takes the other's place until the hand has caught up. */
static bool
container_following(const struct container *c)
{
    return !c->ended && !c->catching;
}

static bool
on_output(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct container *c = arg;
    (void)r;
    if (container_following(c) && !engine_is_podman(c->h)) /* whose times are seconds */
        log_behind(c->log, log_fresh(c->log) > MUCH_BYTES ? BEHIND_NS : STALLED_NS);
    if (c->linger && c->lingered) {
        timer_stop(c->linger);
        c->linger = timer_start(c->h->loop, HAND_LINGER_MS, on_linger, c);
    }
    int code = log_feed(c->log, p, n);
    if (code == 0) {
        c->failing = false;
    } else if (code == -ERR_BUSY) {
        c->catching = c->behind = true;
    } else if (!c->failing) {
        c->failing = true;
        log_warn("hand", "a container's output is not written: trying again", "container", c->id,
                 "task", c->task, "error", err_name(code), NULL);
    }
    return code == 0;
}

static void
on_output_over(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct container *c = arg;
    (void)doc;
    bool jumped = c->catching && c->behind;
    c->output = NULL;
    c->behind = false;
    if (jumped) { /* it was stopped by us */
        ask_output(c);
        return;
    }
    c->catching = c->catching && (e || log_fresh(c->log) > MUCH_BYTES);
    if (!e && status < 300 && log_end(c->log) < 0) {
        c->output_again = timer_start(c->h->loop, HAND_AGAIN_MS, ask_output, c);
        return;
    }
    /* it is complete if the engine ended it, and the container has ended */
    if (!e && (c->ended || status == 404)) {
        c->drained = true;
        container_step(c);
    } else {
        c->output_again =
            timer_start(c->h->loop, e || status >= 400 ? HAND_AGAIN_MS : 20, ask_output, c);
    }
}

static void
ask_output(void *arg)
{
    struct container *c = arg;
    char since[48];
    auto_mem void *tmp = mem_ctx("target");
    c->output_again = NULL;
    log_behind(c->log, 0);
    c->output = engine_ask(
        c->h, &(struct engine_ask){
                  .method = "GET",
                  .target = mem_printf(
                      tmp, "/containers/%s/logs?follow=%d&stdout=1&stderr=1&timestamps=1&since=%s",
                      c->id, container_following(c), log_since(c->log, since)),
                  .on_body = on_output,
                  .done = on_output_over,
                  .arg = c});
}

/* --- for those above --- */

struct container *
container_find(struct hand *h, const char *alloc, const char *task)
{
    struct container *c;
    DL_FOREACH(h->first, c)
    if (str_eq(c->alloc, alloc) && str_eq(c->task, task))
        return c;
    return NULL;
}

struct container *
container_follow(struct hand *h, const char *alloc, const char *task, const char *id,
                 const struct log_shape *logs)
{
    struct container *c = container_find(h, alloc, task);
    struct err e = ERR_INIT;
    if (c && str_eq(c->id, id))
        return c;
    if (c)
        free_container(c, NULL);
    c = mem_new(NULL, struct container);
    *c = (struct container){.h = h,
                            .alloc = mem_strdup(c, alloc),
                            .task = mem_strdup(c, task),
                            .id = mem_strdup(c, id)};
    DL_APPEND(h->first, c);
    c->log = logs->off ? NULL : log_open(c, h, alloc, task, &e);
    if (logs->off) {
        c->drained = true;
    } else if (c->log) {
        log_shape(c->log, logs);
        int r = log_of(c->log, id);
        if (r < 0)
            log_warn("hand", "notes of a log are not written", "task", task, "error", err_name(r),
                     NULL);
        ask_output(c);
    } else {
        log_warn("hand", "a container is without logs", "task", task, "error", e.text, NULL);
        c->drained = true;
    }
    ask_end(c);
    return c;
}

bool
container_is(const struct container *c, const char *id)
{
    return str_eq(c->id, id);
}

bool
container_waited(const struct container *c)
{
    return c->waits != NULL;
}

const struct hand_state *
container_over(const struct container *c)
{
    return c->told ? &c->state : NULL;
}

struct container_wait *
container_wait(struct container *c, container_ended *fn, void *arg)
{
    struct container_wait *w = mem_new(NULL, struct container_wait);
    *w = (struct container_wait){.c = c, .fn = fn, .arg = arg};
    DL_APPEND(c->waits, w);
    return w;
}

void
container_unwait(struct container_wait *w)
{
    DL_DELETE(w->c->waits, w);
    talloc_free(w);
}

void
container_forget(struct container *c)
{
    free_container(c, NULL);
}

/* --- after a start --- */

static void find_again(void *arg);

/* Labels may come from an image that somebody else runs: what we made has its name too. */
static bool
is_named(const struct value *row, const char *name)
{
    const struct value *all = value_get(row, "Names");
    for (size_t i = 0; all && all->kind == VALUE_LIST && i < all->list.n; i++) {
        const char *s = all->list.v[i]->kind == VALUE_STRING ? all->list.v[i]->str.s : "";
        if (str_eq(*s == '/' ? s + 1 : s, name)) /* podman's own interface has no slash */
            return true;
    }
    return false;
}

static void
follow_row(struct hand *h, const struct value *row)
{
    const struct value *labels = value_get(row, "Labels");
    const char *id = document_text(row, "Id"), *alloc = document_text(labels, HAND_LABEL_ALLOC);
    const char *task = document_text(labels, HAND_LABEL_TASK);
    const char *state = document_text(row, "State");
    auto_mem void *tmp = mem_ctx("row");
    /* an image may bear that label too */
    bool network = uuid_valid(alloc) && str_eq(document_text(labels, HAND_LABEL_NETWORK), "1") &&
                   is_named(row, network_name(tmp, alloc));
    struct log_shape logs;
    document_logs(labels, &logs);
    if (!*id || strlen(id) >= HAND_ID_MAX || !plain_word(id) || !uuid_valid(alloc) ||
        (!network && (!plain_task_name(task) || !is_named(row, document_name(tmp, alloc, task)))))
        return;
    /* A container that no allocation owns goes, whatever it does: no agent asks for its end. One
     * that was made and never started has no end to wait for. */
    if (!leftover_owned(h, alloc) || str_eq(state, "removing"))
        leftover_drop(h, id);
    else if (!network && str_eq(state, "created"))
        leftover_watch(h, id, alloc);
    else if (!network)
        (void)container_follow(h, alloc, task, id, &logs);
}

static void
on_listed(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct hand *h = arg;
    if (e || status != 200 || !doc || doc->kind != VALUE_LIST) {
        (void)timer_start(h->loop, HAND_AGAIN_MS, find_again, h);
        return;
    }
    for (size_t i = 0; i < doc->list.n; i++)
        follow_row(h, doc->list.v[i]);
}

static void
find_again(void *arg)
{
    struct hand *h = arg;
    auto_mem void *tmp = mem_ctx("target");
    struct buf text = BUF_INIT(4096);
    struct value *filter = value_map(tmp), *list = value_list(tmp);
    value_list_add(list,
                   value_str(tmp, mem_printf(tmp, HAND_LABEL_OWNER "=%s", h->policy->alloc_dir)));
    value_map_set(filter, "label", list);
    json_encode_value(&text, filter, 0);
    struct buf target = BUF_INIT(16384);
    buf_printf(&target, "%s&filters=", engine_list(h));
    http_escape(&target, buf_str(&text), false);
    (void)engine_ask(h, &(struct engine_ask){.method = "GET",
                                             .target = buf_str(&target),
                                             .timeout_ms = HAND_ASK_MS,
                                             .done = on_listed,
                                             .arg = h});
    buf_done(&text);
    buf_done(&target);
}

void
containers_find(struct hand *h)
{
    find_again(h);
}
