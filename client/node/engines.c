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

struct engines {
    struct ground *g;
    void (*changed)(void *arg);
    void *arg;
    struct http_client *http;
    struct timer *timer;
    struct hand_info *info; /* g->engine */
    unsigned asked;
    bool stopped;
};

static void ask(void *arg);

static void
take(struct engines *n, struct hand_info *info)
{
    bool same = n->info && codec_equal(&type_hand_info, n->info, info, 0);
    if (same) {
        talloc_free(info);
        return;
    }
    if (!n->info || n->info->healthy != info->healthy)
        log_info("client", info->healthy ? "the engine answers" : "the engine does not answer",
                 "description", str_or(info->description, ""), NULL);
    mem_free(n->info);
    n->info = info;
    n->g->engine = info;
    n->changed(n->arg);
}

/* What it was stays known: a version makes it detected, health says whether it is there. */
static struct hand_info *
unhealthy(struct engines *n, const char *why)
{
    struct hand_info *i = mem_new(n, struct hand_info);
    i->description = mem_strndup(i, why, 500);
    i->version = n->info ? mem_strdup(i, n->info->version) : NULL;
    return i;
}

static void
on_info(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engines *n = arg;
    struct err own = ERR_INIT;
    void *info = NULL;
    if (n->stopped)
        return;
    if (e || r->status != 200)
        info = unhealthy(n, e ? "the engine hand does not answer" : r->body);
    else if (json_decode(n, &type_hand_info, r->body, r->body_len, 0, BUDGET(ANSWER_MAX), &info,
                         &own) < 0)
        info = unhealthy(n, own.text);
    take(n, info);
    n->timer = timer_start(n->g->loop,
                           n->info->healthy ? SOME_MS
                           : n->asked++ < 8 ? FIRST_MS
                                            : AGAIN_MS,
                           ask, n);
}

static void
ask(void *arg)
{
    struct engines *n = arg;
    n->timer = NULL;
    http_send(n->http, &(struct http_ask){.method = "GET",
                                          .target = "/v1/info",
                                          .timeout_ms = ASK_MS,
                                          .done = on_info,
                                          .arg = n});
}

struct engines *
engines_new(struct ground *g, void (*changed)(void *arg), void *arg)
{
    struct engines *n = mem_new(g, struct engines);
    *n = (struct engines){.g = g, .changed = changed, .arg = arg};
    return n;
}

void
engines_start(struct engines *n)
{
    struct err e = ERR_INIT;
    if (!n->g->cfg.hand)
        return;
    n->http = http_client_new(n->g->loop, n->g->cfg.hand, &e);
    if (n->http)
        ask(n);
    else
        log_error("client", "the engine hand has no address", "error", e.text, NULL);
}

void
engines_stop(struct engines *n)
{
    n->stopped = true;
    timer_stop(TAKE(n->timer));
    http_client_close(TAKE(n->http));
}
