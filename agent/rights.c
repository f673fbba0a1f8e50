/* SPDX-License-Identifier: Apache-2.0
 *
 * Rights of tokens, as servers told them (see rights.h). From the first question on a blocking
 * query (ACL.Changes) is open at a server: its answer empties what is kept.
 */
#include "agent/rights.h"

#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/str.h"

enum {
    KEPT_MAX = 1024,
    ASK_MS = 10000,
    WATCH_LEAST_MS = 1000,
    WATCH_MOST_MS = 300000,
    RETRY_MS = 1000,
};

struct wait {
    struct wait *next;
    rights_done *done;
    void *arg;
};

/* The rights of one token. */
struct holder {
    struct rights *x;
    char *token;
    struct acl *acl; /* NULL: not known yet */
    char *accessor;
    int64_t ends_ns;  /* by the clock of the day; 0: never */
    int64_t asked_ms; /* when a server said so */
    uint64_t call;    /* open; 0: none */
    bool old;         /* something has changed since it was begun */
    struct wait *waits;
    UT_hash_handle hh;
};

struct rights {
    struct rights_config cfg;
    struct holder *holders;
    uint64_t index;       /* of the last change heard of */
    uint64_t watch;       /* call; 0: none */
    bool watching, heard; /* the query was begun; an answer came since it last failed */
    struct timer *retry;
    size_t open; /* calls; each is answered, also when it is given up */
    bool over;   /* freed with the last of them */
};

static int
holder_wipe(struct holder *h)
{
    explicit_bzero(h->token, strlen(h->token));
    acl_unref(h->acl);
    return 0;
}

static void
holder_free(struct holder *h)
{
    HASH_DEL(h->x->holders, h);
    talloc_free(h);
}

static void
rights_end(struct rights *x)
{
    HASH_CLEAR(hh, x->holders);
    talloc_free(x);
}

/* True: nobody wants the answer of a call any more. */
static bool
rights_is_over(struct rights *x)
{
    x->open--;
    if (x->over && x->open == 0)
        rights_end(x);
    else if (!x->over)
        return false;
    return true;
}

static void
holder_answer(struct holder *h, const struct err *e)
{
    struct wait *w;

    while ((w = h->waits) != NULL) {
        h->waits = w->next;
        w->done(w->arg, e, e == NULL ? h->acl : NULL, e == NULL ? h->accessor : "");
        talloc_free(w);
    }
}

/* --- changes --- */

static void rights_watch(void *arg);

static void
rights_empty(struct rights *x)
{
    struct holder *h, *next;

    HASH_ITER (hh, x->holders, h, next) {
        if (h->call == 0)
            holder_free(h);
        else
            h->old = true;
    }
}

static void
on_change(void *arg, const struct err *e, const void *resp)
{
    struct rights *x = arg;
    const struct acl_rights_response *r = resp;

    if (rights_is_over(x))
        return;
    x->watch = 0;
    if (e != NULL) {
        x->heard = false;
        x->retry = timer_start(x->cfg.loop, RETRY_MS, rights_watch, x);
        return;
    }
    uint64_t index = r->meta != NULL ? r->meta->index : 0;
    bool news = index != x->index || !x->heard;
    x->index = index;
    x->heard = true;
    rights_watch(x);
    if (news) {
        rights_empty(x);
        x->cfg.changed(x->cfg.arg);
    }
}

static void
rights_watch(void *arg)
{
    struct rights *x = arg;
    static const struct empty none;
    /* a server that is cut off says nothing: it is not believed for longer */
    int64_t ttl = x->cfg.ttl_ms < WATCH_MOST_MS ? x->cfg.ttl_ms : WATCH_MOST_MS;
    int64_t ms = ttl > WATCH_LEAST_MS ? ttl : WATCH_LEAST_MS;
    struct rpc_envelope env = {.min_index = x->heard ? x->index : 0, .wait = ms * NS_PER_MS};
    struct rpc_request q = {RPC_ACL_CHANGES, &none, &env, ms + ms / 8 + WATCH_LEAST_MS, NULL};

    x->retry = NULL;
    x->watching = true;
    x->open++;
    x->watch = rpc_send(x->cfg.servers, &q, on_change, x);
}

/* --- one token --- */

/* Makes rights of what a server says the token holds. */
static void
holder_learn(struct holder *h, const struct acl_rights_response *r)
{
    acl_unref(h->acl);
    h->acl = r->management ? acl_management() : acl_of_policies(&r->policies);
    mem_free(h->accessor);
    h->accessor = mem_strdup(h, str_or(r->accessor_id, ""));
    h->ends_ns = r->expires;
    h->asked_ms = loop_now_ms(h->x->cfg.loop);
}

static bool
holder_is_good(const struct holder *h)
{
    const struct rights *x = h->x;
    int64_t age = loop_now_ms(x->cfg.loop) - h->asked_ms;

    if (h->acl == NULL || h->asked_ms == 0 || (h->ends_ns != 0 && h->ends_ns <= clock_wall_ns()))
        return false;
    return x->heard || age < x->cfg.ttl_ms;
}

static void holder_ask(struct holder *h);

/* The last answer holds for its time where no server can be asked. */
static void
holder_answered(void *arg, const struct err *e, const void *resp)
{
    struct holder *h = arg;
    struct err copy = e != NULL ? *e : (struct err)ERR_INIT;
    bool known = e == NULL || e->code == -ERR_FORBIDDEN;

    if (rights_is_over(h->x))
        return;
    if (h->old && known) { /* the answer may be older than the change */
        holder_ask(h);
        return;
    }
    if (e == NULL)
        holder_learn(h, resp);
    if (!known && holder_is_good(h))
        copy = (struct err)ERR_INIT;
    holder_answer(h, copy.code != 0 ? &copy : NULL); /* with the call open, so that it stays */
    h->call = 0;
    if (h->old || copy.code != 0)
        holder_free(h);
}

static void
holder_ask(struct holder *h)
{
    static const struct empty none;
    struct rpc_envelope env = {.auth_token = h->token};
    struct rpc_request q = {RPC_ACL_RIGHTS, &none, &env, ASK_MS, NULL};

    h->x->open++;
    h->old = false;
    h->call = rpc_send(h->x->cfg.servers, &q, holder_answered, h);
}

static struct holder *
holder_find(struct rights *x, const char *token)
{
    struct holder *h;

    HASH_FIND_STR(x->holders, token, h);
    if (h != NULL)
        return h;
    if (HASH_COUNT(x->holders) >= KEPT_MAX)
        rights_empty(x);
    h = mem_new(x, struct holder);
    h->x = x;
    h->token = mem_strdup(h, token);
    talloc_set_destructor(h, holder_wipe);
    HASH_ADD_KEYPTR(hh, x->holders, h->token, strlen(h->token), h);
    return h;
}

void
rights_ask(struct rights *x, const char *token, rights_done *done, void *arg)
{
    struct holder *h = holder_find(x, str_or(token, ""));

    if (!x->watching)
        rights_watch(x);
    if (h->call == 0 && holder_is_good(h)) {
        done(arg, NULL, h->acl, h->accessor);
        return;
    }
    struct wait *w = mem_new(h, struct wait);
    *w = (struct wait){h->waits, done, arg};
    h->waits = w;
    if (h->call == 0)
        holder_ask(h);
}

void
rights_forget(struct rights *x, void *arg)
{
    for (struct holder *h = x->holders; h != NULL; h = h->hh.next)
        for (struct wait **p = &h->waits; *p != NULL;) {
            struct wait *w = *p;
            if (w->arg != arg) {
                p = &w->next;
                continue;
            }
            *p = w->next;
            talloc_free(w);
        }
}

struct rights *
rights_new(const void *ctx, const struct rights_config *cfg)
{
    struct rights *x = mem_new(ctx, struct rights);

    x->cfg = *cfg;
    return x;
}

void
rights_free(struct rights *x)
{
    struct holder *h, *next;
    struct err e = ERR_INIT;

    if (x == NULL)
        return;
    err_set(&e, -ERR_UNAVAILABLE, "the agent stops");
    timer_stop(TAKE(x->retry));
    if (x->watch != 0)
        rpc_cancel(x->cfg.servers, x->watch);
    HASH_ITER (hh, x->holders, h, next) {
        if (h->call != 0)
            rpc_cancel(x->cfg.servers, h->call);
        holder_answer(h, &e);
    }
    x->over = true;
    if (x->open == 0)
        rights_end(x);
}
