/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls for another region: passed on, over a connection to any of its servers that gossip knows to
 * be there, to be answered there as if it had come there. Each region has a connection of its own,
 * so a slow or dead one delays nobody else's calls. A silent server is asked REGION_LOOK_MS after a
 * call whether it is there at all; if it has not answered within REGION_ASK_MS, the calls open
 * there fail, and the next server is tried for those that come then. Nothing is sent twice from
 * here.
 */
#include <string.h>

#include "common/mem.h"
#include "net/splice.h"
#include "server/call/call_int.h"
#include "server/call/endpoint.h"

enum {
    REGION_LOOK_MS = 400,
    REGION_ASK_MS = 1100,
    REGION_LATER_MS = 5000, /* one that answers is asked again, while calls wait */
    REGION_SPARE_MS = 500,
};

struct region {
    struct region *next;
    struct server *s;
    char *name;
    struct rpc_client *client;
    struct abroad *calls; /* that are open */
    struct timer *timer;  /* to look at it; NULL: nothing is open, or it is asked */
    int64_t heard_ms, begun_ms, look_ms; /* an answer; the timer began; it comes */
    bool asked;
};

/* A call that is open there. */
struct abroad {
    struct abroad *next, **at;
    struct region *r;
    struct call *call; /* NULL: answered */
    uint64_t id;           /* 0: it streams */
    int64_t sent_ms;
};

struct regions {
    struct server *s;
    struct loop *loop;
    struct region *v;
    bool stopping;
};

struct regions *
regions_new(const void *ctx, struct loop *l, struct server *s)
{
    struct regions *all = mem_new(ctx, struct regions);
    *all = (struct regions){.s = s, .loop = l};
    return all;
}

static int
no_path(struct err *e, const char *why)
{
    return err_set(e, -ERR_NO_REGION, "No path to region%s", why);
}

/* --- a region --- */

/* Finds or makes a region; its connection goes to the servers that are there now. */
static struct region *
region_of(struct server *s, const char *name, struct err *e)
{
    struct regions *all = server_abroad(s);
    auto_mem void *tmp = mem_ctx("region");
    struct str_list there = server_region(s, tmp, name);
    struct region *r = all->v;
    while (r != NULL && !str_eq(r->name, name))
        r = r->next;
    if (all->stopping || there.n == 0) {
        (void)no_path(e, "");
        return NULL;
    }
    if (r != NULL)
        return rpc_set_servers(r->client, &there, e) < 0 ? NULL : r;
    const struct dialer d = server_dialer(s, tmp, all->loop, name);
    struct rpc_client *c = rpc_dial(&d, &there, e);
    if (c == NULL)
        return NULL;
    r = mem_new(all, struct region);
    *r = (struct region){.next = all->v, .s = s, .name = mem_strdup(r, name), .client = c};
    all->v = r;
    return r;
}

static void
abroad_out(struct abroad *x)
{
    if (x->at == NULL)
        return;
    *x->at = x->next;
    if (x->next != NULL)
        x->next->at = x->at;
    x->at = NULL;
    if (x->r->calls == NULL)
        env_timer_stop(server_env(x->r->s), TAKE(x->r->timer));
}

static void region_look(void *arg);

/* Sooner than it would be. */
static void
region_look_in(struct region *r, int64_t ms)
{
    const struct env *env = server_env(r->s);
    int64_t now = env_mono_ms(env);
    if (r->asked || (r->timer != NULL && r->look_ms <= now + ms))
        return;
    env_timer_stop(env, r->timer);
    r->begun_ms = now;
    r->look_ms = now + ms;
    r->timer = env_timer(env, ms, region_look, r);
}

static void
abroad_in(struct region *r, struct abroad *x)
{
    x->sent_ms = env_mono_ms(server_env(r->s));
    x->next = r->calls;
    x->at = &r->calls;
    if (x->next != NULL)
        x->next->at = &x->next;
    r->calls = x;
    region_look_in(r, REGION_LOOK_MS);
}

/* Leaves a silent server: who waits is told, and the next of its servers is asked from now on. */
static void
region_lost(struct region *r)
{
    struct err e = ERR_INIT;
    (void)no_path(&e, ": its servers do not answer; a write may have been carried out");
    while (r->calls != NULL) {
        struct abroad *x = r->calls;
        struct call *c = TAKE(x->call);
        abroad_out(x);
        if (x->id != 0)
            rpc_cancel(r->client, x->id); /* region_answered() comes, and frees it */
        /* ends one that streams: stream_ended() comes */
        call_fail(c, &e);
    }
    rpc_leave(r->client);
}

static void
region_answers(void *arg, const struct err *e, const void *resp)
{
    struct region *r = arg;
    (void)resp;
    r->asked = false;
    if (server_abroad(r->s)->stopping)
        return;
    if (e != NULL &&
        (e->code == -ERR_TIMEOUT || e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED)) {
        region_lost(r);
        return;
    }
    r->heard_ms = env_mono_ms(server_env(r->s));
    if (r->calls != NULL)
        region_look_in(r, REGION_LATER_MS);
}

static void
region_ask(struct region *r)
{
    struct empty nothing = {0};
    struct rpc_envelope there = {.region = r->name, .hops = 1};
    struct rpc_request q = {RPC_STATUS_LEADER, &nothing, &there, REGION_ASK_MS};
    r->asked = true;
    rpc_send(r->client, &q, region_answers, r);
}

/* Asks a region for a sign of life, unless one was heard since the timer began. */
static void
region_look(void *arg)
{
    struct region *r = arg;
    r->timer = NULL;
    if (r->calls == NULL)
        return;
    if (r->heard_ms <= r->begun_ms)
        region_ask(r);
    else
        region_look_in(r, r->calls->sent_ms > r->begun_ms ? REGION_LOOK_MS : REGION_LATER_MS);
}

/* --- a call --- */

/* Whoever waits is told; `x` is in no list any more. */
static void
abroad_answered(struct abroad *x, const struct err *e, const void *resp)
{
    struct call *c = TAKE(x->call);
    if (c == NULL)
        return;
    abroad_out(x);
    if (e != NULL)
        call_fail(c, e);
    else
        rpc_reply(call_leave(c), resp);
}

static void
region_answered(void *arg, const struct err *e, const void *resp)
{
    struct abroad *x = arg;
    if (x->call != NULL)
        x->r->heard_ms = env_mono_ms(server_env(x->r->s));
    abroad_answered(x, e, resp);
    mem_free(x);
}

static void
stream_opened(void *arg, const struct err *e, const void *resp)
{
    abroad_answered(arg, e, resp);
}

static void
stream_ended(void *arg)
{
    struct abroad *x = arg;
    abroad_out(x);
    mem_free(x);
}

void
region_give_up(struct call *c)
{
    struct abroad *x = c->abroad;
    if (x->id != 0) {
        rpc_cancel(x->r->client, x->id); /* region_answered() comes */
        return;
    }
    x->call = NULL;
    abroad_out(x);
    call_failf(c, -ERR_CANCELED, "canceled");
}

void
region_start(struct call *c, const char *region)
{
    struct rpc_envelope env = *c->env;
    env.node_names = c->node_names;
    struct err e = ERR_INIT;
    struct region *r = NULL;
    env.region = region;
    if (env.hops > 0)
        (void)no_path(&e, ": it was passed on to a server that is of another one");
    else
        r = region_of(c->s, env.region, &e);
    if (r == NULL) {
        call_fail(c, &e);
        return;
    }
    struct abroad *x = mem_new(NULL, struct abroad);
    int64_t left = rpc_call_deadline_ms(c->rpc) - env_mono_ms(server_env(c->s));
    *x = (struct abroad){.r = r, .call = c};
    c->abroad = x;
    env.hops++;
    env.term = 0;
    struct rpc_request q = {c->method->id, c->req, &env, left > 0 ? left + REGION_SPARE_MS : 1,
                            rpc_call_encoded(c->rpc)};
    abroad_in(r, x);
    call_enter(c, CALL_ABROAD);
    if (c->method->flags & RPC_STREAM)
        splice(rpc_call_stream(c->rpc, NULL),
               rpc_link_open(rpc_client_link(r->client), &q, stream_opened, x), stream_ended, x);
    else
        x->id = rpc_send(r->client, &q, region_answered, x);
}

struct rpc_client *
server_region_client(struct server *s, const char *region, struct err *e)
{
    struct region *r = region_of(s, region, e);

    return r != NULL ? r->client : NULL;
}

void
regions_stop(struct regions *all)
{
    all->stopping = true;
    for (struct region *r = all->v; r != NULL; r = r->next) {
        env_timer_stop(server_env(all->s), TAKE(r->timer));
        rpc_client_close(TAKE(r->client));
    }
}
