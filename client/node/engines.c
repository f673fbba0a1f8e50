/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/engines.h"

#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/http/http.h"

enum {
    FIRST_MS = 250,  /* the hand starts when the agent does */
    AGAIN_MS = 2000, /* it does not answer, or its engine does not */
    SOME_MS = 30000, /* all is well */
    ASK_MS = 10000,
    ANSWER_MAX = 1 << 20, /* bytes of memory of a decoded answer */
};

struct one { /* of an engine that is on */
    struct engines *all;
    size_t driver;
    struct http_client *http;
    struct timer *timer;
    struct hand_info *info; /* g->engine[driver] */
    unsigned asked;
};

struct engines {
    struct ground *g;
    void (*changed)(void *arg);
    void *arg;
    struct one one[DRIVERS_N];
    size_t n;
    bool stopped;
};

static void ask(void *arg);

static void
take(struct one *n, struct hand_info *info)
{
    bool same = n->info && codec_equal(&type_hand_info, n->info, info, 0);
    if (same) {
        talloc_free(info);
        return;
    }
    if (!n->info || n->info->healthy != info->healthy)
        log_info("client", info->healthy ? "the engine answers" : "the engine does not answer",
                 "driver", drivers_can[n->driver].name, "description",
                 str_or(info->description, ""), NULL);
    mem_free(n->info);
    n->info = info;
    n->all->g->engine[n->driver] = info;
    n->all->changed(n->all->arg);
}

/* What it was stays known: a version makes it detected, health says whether it is there. */
static struct hand_info *
unhealthy(struct one *n, const char *why)
{
    struct hand_info *i = mem_new(n->all, struct hand_info);
    i->description = mem_strndup(i, why, 500);
    i->version = n->info ? mem_strdup(i, n->info->version) : NULL;
    return i;
}

static void
on_info(void *arg, const struct err *e, const struct http_resp *r)
{
    struct one *n = arg;
    struct err own = ERR_INIT;
    void *info = NULL;
    if (n->all->stopped)
        return;
    if (e || r->status != 200)
        info = unhealthy(n, e ? "the engine hand does not answer" : r->body);
    else if (json_decode(n->all, &type_hand_info, r->body, r->body_len, 0, BUDGET(ANSWER_MAX),
                         &info, &own) < 0)
        info = unhealthy(n, own.text);
    take(n, info);
    n->timer = timer_start(n->all->g->loop,
                           n->info->healthy ? SOME_MS
                           : n->asked++ < 8 ? FIRST_MS
                                            : AGAIN_MS,
                           ask, n);
}

static void
ask(void *arg)
{
    struct one *n = arg;
    auto_mem void *tmp = mem_ctx("target");
    n->timer = NULL;
    const char *target = mem_printf(tmp, "/v1/%s/info", drivers_can[n->driver].name);
    http_send(
        n->http,
        &(struct http_ask){
            .method = "GET", .target = target, .timeout_ms = ASK_MS, .done = on_info, .arg = n});
}

struct engines *
engines_new(struct ground *g, void (*changed)(void *arg), void *arg)
{
    struct engines *n = mem_new(g, struct engines);
    *n = (struct engines){.g = g, .changed = changed, .arg = arg};
    return n;
}

static void
start_one(struct engines *n, size_t driver)
{
    struct err e = ERR_INIT;
    struct one *o = &n->one[n->n++];
    *o = (struct one){.all = n, .driver = driver};
    o->http = http_client_new(n->g->loop, n->g->cfg.hand, &e);
    if (o->http)
        ask(o);
    else
        log_error("client", "the engine hand has no address", "error", e.text, NULL);
}

void
engines_start(struct engines *n)
{
    for (size_t i = 0; i < DRIVERS_N; i++)
        if (str_list_has(&n->g->cfg.engines, drivers_can[i].name))
            start_one(n, i);
}

void
engines_stop(struct engines *n)
{
    n->stopped = true;
    for (size_t i = 0; i < n->n; i++) {
        timer_stop(TAKE(n->one[i].timer));
        http_client_close(TAKE(n->one[i].http));
    }
}
