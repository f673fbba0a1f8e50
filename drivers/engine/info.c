/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine behind the engine hand says of itself: asked at once, again soon while it does not
 * answer, and now and then while it does. That the hand goes away the kernel tells, by a request
 * that is never answered; that it stands still is found out when a task is to start (hand_expect).
 */
#include <utlist.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "drivers/engine/hand_client.h"
#include "net/http/http.h"

enum {
    FIRST_MS = 250, /* the hand starts when the agent does */
    FIRST_ASKS = 8,
    WAIT_MS = 2000,  /* until then it may just not be there yet */
    AGAIN_MS = 2000, /* it does not answer, or its engine does not */
    SOME_MS = 30000, /* all is well */
    ASK_MS = 10000,
    AWAY_MS = 1500, /* longer than a restart takes */
    PING_MS = 700,  /* two of them are not answered: the hand stands still */
    PINGS = 2,
    ANSWER_MAX = 1 << 20, /* bytes of memory of a decoded answer */
};

struct engine_watch {
    struct engine_watch *prev, *next;
    struct loop *loop;
    engine_told *told;
    void *arg;
    char *target, *stay;
    char *version; /* as it was last told; NULL: never */
    struct http_client *http, *stays, *pings;
    struct timer *timer;
    bool asking, staying, pinging, closing;
    unsigned silent; /* pings of one after the other; the next one is under way */
    unsigned asked;
    int64_t began_ns;
    bool spoke; /* something was told */
};

struct http_client *
hand_client(const struct engine_place *p)
{
    struct err e = ERR_INIT;
    struct http_client *c = http_client_new(&(struct dialer){.loop = p->loop}, p->hand, &e);
    ASSERT(c); /* a path of ours */
    return c;
}

static struct engine_watch *watches; /* of the loop's thread */

static void info_ask(void *arg);

static void
ask_in(struct engine_watch *w, int64_t ms)
{
    timer_stop(TAKE(w->timer));
    if (!w->asking)
        w->timer = timer_start(w->loop, ms, info_ask, w);
}

/* --- a hand that goes away --- */

static void
on_stay(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_watch *w = arg;
    (void)r;
    if (w->closing)
        return;
    w->staying = e == NULL; /* one that does not know the request is asked now and then */
    if (e)
        ask_in(w, AWAY_MS);
}

static void
info_stay(struct engine_watch *w)
{
    if (w->staying)
        return;
    w->staying = true;
    http_send(w->stays, &(struct http_ask){
                            .method = "GET", .target = w->stay, .done = on_stay, .arg = w});
}

/* Tells that the engine is unhealthy. Its version stays known: a version makes it detected, health
 * says whether it is there. */
static void
tell_unhealthy(struct engine_watch *w, const char *why)
{
    if (!w->spoke && clock_mono_ns() - w->began_ns < WAIT_MS * NS_PER_MS)
        return;
    w->spoke = true;
    auto_mem void *tmp = mem_ctx("why");
    const struct hand_info i = {.description = mem_strndup(tmp, why, 500), .version = w->version};
    w->told(w->arg, &i);
}

static void
on_info(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_watch *w = arg;
    auto_mem void *tmp = mem_ctx("info");
    struct err own = ERR_INIT;
    void *doc = NULL;
    bool healthy = false;
    if (w->closing)
        return;
    w->asking = false;
    if (e || r->status != 200) {
        tell_unhealthy(w, e ? "the engine hand does not answer" : r->body);
    } else if (json_decode(tmp, &type_hand_info, SLICE(r->body, r->body_len), BUDGET(ANSWER_MAX),
                           &doc, &own) < 0) {
        tell_unhealthy(w, own.text);
    } else {
        const struct hand_info *info = doc;
        mem_free(w->version);
        w->version = mem_strdup(w, info->version);
        healthy = info->healthy;
        w->spoke = true;
        w->told(w->arg, info);
        info_stay(w);
    }
    int64_t ms = healthy ? SOME_MS : w->asked++ < FIRST_ASKS ? FIRST_MS : AGAIN_MS;
    ask_in(w, ms);
}

static void
info_ask(void *arg)
{
    struct engine_watch *w = arg;
    w->timer = NULL;
    w->asking = true;
    http_send(w->http, &(struct http_ask){.method = "GET",
                                          .target = w->target,
                                          .timeout_ms = ASK_MS,
                                          .done = on_info,
                                          .arg = w});
}

/* --- a hand that stands still --- */

static void info_ping(struct engine_watch *w);

static void
on_ping(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_watch *w = arg;
    (void)r;
    if (w->closing)
        return;
    w->pinging = false;
    w->silent = e ? w->silent + 1 : 0;
    if (w->silent >= PINGS) {
        w->silent = 0;
        tell_unhealthy(w, "the engine hand does not answer");
        ask_in(w, 0);
    } else if (e) {
        info_ping(w);
    }
}

static void
info_ping(struct engine_watch *w)
{
    w->pinging = true;
    http_send(w->pings, &(struct http_ask){.method = "GET",
                                           .target = "/v1/ping",
                                           .timeout_ms = PING_MS,
                                           .done = on_ping,
                                           .arg = w});
}

void
hand_expect(const struct engine_place *p)
{
    auto_mem void *tmp = mem_ctx("target");
    const char *target = mem_printf(tmp, "/v1/%s/info", p->driver);
    struct engine_watch *w;
    DL_FOREACH(watches, w)
    if (w->loop == p->loop && str_eq(w->target, target) && !w->pinging)
        info_ping(w);
}

struct engine_watch *
hand_watch(const struct engine_place *p, engine_told *told, void *arg)
{
    struct engine_watch *w = mem_new(NULL, struct engine_watch);
    *w = (struct engine_watch){.loop = p->loop,
                               .told = told,
                               .arg = arg,
                               .began_ns = clock_mono_ns(),
                               .http = hand_client(p),
                               .stays = hand_client(p),
                               .pings = hand_client(p)};
    w->target = mem_printf(w, "/v1/%s/info", p->driver);
    w->stay = mem_printf(w, "/v1/%s/stay", p->driver);
    DL_APPEND(watches, w);
    info_ask(w);
    return w;
}

void
hand_unwatch(struct engine_watch *w)
{
    DL_DELETE(watches, w);
    w->closing = true;
    timer_stop(w->timer);
    http_client_close(w->http);
    http_client_close(w->stays);
    http_client_close(w->pings);
    talloc_free(w);
}
