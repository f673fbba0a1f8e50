/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine behind the engine hand says of itself: asked at once, again soon while it does not
 * answer, and now and then while it does.
 */
#include "common/mem.h"
#include "common/num.h"
#include "drivers/engine/hand_client.h"
#include "net/http/http.h"

enum {
    FIRST_MS = 250, /* the hand starts when the agent does */
    FIRST_ASKS = 8,
    WAIT_MS = 2000,  /* until then it may just not be there yet */
    AGAIN_MS = 2000, /* it does not answer, or its engine does not */
    SOME_MS = 30000, /* all is well */
    ASK_MS = 10000,
    ANSWER_MAX = 1 << 20, /* bytes of memory of a decoded answer */
};

struct engine_watch {
    struct loop *loop;
    engine_told *told;
    void *arg;
    char *target;
    char *version; /* as it was last told; NULL: never */
    struct http_client *http;
    struct timer *timer;
    unsigned asked;
    int64_t began_ns;
    bool spoke; /* something was told */
};

static void info_ask(void *arg);

/* What it was stays known: a version makes it detected, health says whether it is there. */
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
    }
    int64_t ms = healthy ? SOME_MS : w->asked++ < FIRST_ASKS ? FIRST_MS : AGAIN_MS;
    w->timer = timer_start(w->loop, ms, info_ask, w);
}

static void
info_ask(void *arg)
{
    struct engine_watch *w = arg;
    w->timer = NULL;
    http_send(w->http, &(struct http_ask){.method = "GET",
                                          .target = w->target,
                                          .timeout_ms = ASK_MS,
                                          .done = on_info,
                                          .arg = w});
}

struct engine_watch *
hand_watch(const struct engine_place *p, engine_told *told, void *arg)
{
    struct engine_watch *w = mem_new(NULL, struct engine_watch);
    *w = (struct engine_watch){.loop = p->loop,
                               .told = told,
                               .arg = arg,
                               .began_ns = clock_mono_ns(),
                               .http = hand_client(p)};
    w->target = mem_printf(w, "/v1/%s/info", p->driver);
    info_ask(w);
    return w;
}

void
hand_unwatch(struct engine_watch *w)
{
    timer_stop(w->timer);
    http_client_close(w->http);
    talloc_free(w);
}
