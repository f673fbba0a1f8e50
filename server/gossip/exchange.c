/* SPDX-License-Identifier: Apache-2.0
 *
 * Exchanges of all that is known, by Server.Sync: see gossip.h. Order to read: asking, answering,
 * addresses to join.
 */
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/addr.h"
#include "server/gossip/gossip_int.h"

enum { GOSSIP_PORT = 4648 /* where none is said */ };

/* An address at which there may be a server. */
struct join {
    struct join *next;
    struct gossip *g;
    char *addr;
    struct timer *timer;
    int64_t wait_ms;
    bool asking, done, configured;
    int64_t failed; /* attempts */
    struct err why; /* it has not answered */
};

struct exchange {
    struct exchange *next;
    struct gossip *g;
    struct join *join; /* for whom; NULL: for the machine */
    struct rpc_client *client;
    uint64_t to, nonce;
    enum keys_op op; /* 0: everything is exchanged */
    char *key, *name;
    struct str_list keys; /* that it has */
    bool again; /* it asked who we are */
    bool over;
};

static void join_told(struct join *j, const struct err *e);

/* --- asking --- */

/* One packet, in the list of those that go. */
static void
pack_one(struct gossip *g, struct server_sync *s, struct packet *p)
{
    struct buf b = BUF_INIT(GOSSIP_PACKET_MAX);
    struct gossip_packet *out = mem_new(s, struct gossip_packet);
    gossip_seal(g, &b, p);
    ASSERT(buf_error(&b) == 0);
    out->data = (struct bytes){mem_dup(out, b.data, b.len), b.len};
    list_add(s, s->packets, out);
    buf_done(&b);
}

static struct server_sync *
exchange_pack(struct gossip *g, const void *ctx, uint64_t to, uint64_t nonce)
{
    struct server_sync *s = mem_new(ctx, struct server_sync);
    struct swim_sync all;
    swim_all(g->swim, s, to, &all);
    for (size_t i = 0; i < all.n; i++) {
        all.v[i].token = nonce;
        pack_one(g, s, &all.v[i]);
    }
    return s;
}

static struct server_sync *
pack_keys(const struct exchange *x, const void *ctx)
{
    struct server_sync *s = mem_new(ctx, struct server_sync);
    struct packet p = {
        .kind = PACKET_KEYS, .to = x->to, .token = x->nonce, .target = x->op, .addr = x->key};
    pack_one(x->g, s, &p);
    return s;
}

static void
exchange_free(void *arg)
{
    struct exchange *x = arg;
    rpc_client_close(TAKE(x->client)); /* not in its own answer */
    mem_free(x);
}

static void
exchange_over(struct exchange *x, const struct err *e)
{
    struct exchange **at = &x->g->exchanges;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    x->over = true;
    if (x->join != NULL)
        join_told(TAKE(x->join), e);
    if (x->op != 0)
        keyring_told(x->g, x->name, &x->keys, e);
    env_post(x->g->o.env, exchange_free, x);
}

static void exchange_answered(void *arg, const struct err *e, const void *resp);

static void
exchange_ask(struct exchange *x)
{
    auto_mem void *tmp = mem_ctx("sync");
    struct server_sync *s =
        x->op != 0 ? pack_keys(x, tmp) : exchange_pack(x->g, tmp, x->to, x->nonce);
    struct rpc_request q = {RPC_SERVER_SYNC, s, NULL, GOSSIP_SYNC_MS};
    rpc_send(x->client, &q, exchange_answered, x);
}

/* One packet of the answer; -ERR_UNAVAILABLE: it asks who we are. */
static int
take_answer(struct exchange *x, const struct gossip_packet *in, struct swim_out *out, struct err *e)
{
    struct gossip *g = x->g;
    auto_mem void *tmp = mem_ctx("answer");
    struct packet p;
    uint64_t cookie = 0;
    enum packet_fault fault = packet_get(tmp, in->data.v, in->data.n, &g->keys, &p);
    if (fault != PACKET_FINE) {
        gossip_refuse(g, fault, "an answer");
        return err_set(e, -ERR_FORBIDDEN, "its packet is %s", packet_fault_text(fault));
    }
    if (p.to != g->id || p.from == g->id || p.token != x->nonce ||
        (x->to != 0 && p.from != x->to)) {
        gossip_refuse(g, REFUSED_MISLED, "an answer");
        return err_set(e, -ERR_FORBIDDEN, "another server answers there than was asked");
    }
    x->to = p.from;
    if (p.kind == PACKET_WHO && p.target == g->session) {
        gossip_keep_cookie(g, p.from, p.cookie);
        return -ERR_UNAVAILABLE;
    }
    if (p.kind != (x->op != 0 ? PACKET_KEYS : PACKET_SYNC) ||
        guard_take(g->guard, &p, true, &cookie) != GUARD_FRESH) {
        gossip_refuse(g, REFUSED_AGAIN, "an answer");
        return err_set(e, -ERR_FORBIDDEN, "its packet was sent before");
    }
    if (x->op != 0 && p.target != 0)
        return err_set(e, -ERR_CONFLICT, "%s", p.addr);
    if (x->op != 0) {
        list_add(x, x->keys, mem_strdup(x, p.addr));
        return 0;
    }
    swim_take(g->swim, env_mono_ms(g->o.env), &p, "", out);
    return 0;
}

static void
exchange_answered(void *arg, const struct err *failed, const void *resp)
{
    struct exchange *x = arg;
    const struct server_sync *s = resp;
    struct err e = ERR_INIT;
    int rc = 0;
    uint64_t before = swim_figures(x->g->swim)->foreign + swim_figures(x->g->swim)->full;
    if (x->over)
        return; /* it is closing */
    if (failed != NULL) {
        exchange_over(x, failed);
        return;
    }
    struct gossip *g = x->g;
    struct swim_out out = {.ctx = mem_ctx("gossip")};
    for (size_t i = 0; i < s->packets.n && rc == 0; i++)
        rc = take_answer(x, s->packets.v[i], &out, &e);
    if (swim_figures(g->swim)->foreign + swim_figures(g->swim)->full != before)
        gossip_refuse(g, REFUSED_MEMBER, "an answer");
    if (rc == -ERR_UNAVAILABLE && !x->again) {
        x->again = true;
        exchange_ask(x);
    } else {
        exchange_over(x, rc < 0 ? &e : NULL);
    }
    gossip_carry(g, &out);
}

static struct exchange *
exchange_new(struct gossip *g, const char *addr, uint64_t to, struct err *e)
{
    struct str_list one = {(const char *[]){addr}, 1};
    struct rpc_client *c = rpc_dial(&g->o.dialer, &one, e);
    if (c == NULL)
        return NULL;
    struct exchange *x = mem_new(NULL, struct exchange);
    *x = (struct exchange){.g = g, .client = c, .to = to, .nonce = env_random(g->o.env) | 1};
    x->next = g->exchanges;
    g->exchanges = x;
    return x;
}

void
exchange_start(struct gossip *g, const char *addr, uint64_t to)
{
    struct err e = ERR_INIT;
    struct exchange *x = exchange_new(g, addr, to, &e);
    if (x != NULL)
        exchange_ask(x);
}

bool
exchange_keys(struct gossip *g, const struct server_hello *member, enum keys_op op, const char *key,
              struct err *e)
{
    struct exchange *x = exchange_new(g, member->serf, member->id, e);
    if (x == NULL)
        return false;
    x->op = op;
    x->key = mem_strdup(x, key);
    x->name = mem_strdup(x, member->name);
    exchange_ask(x);
    return true;
}

/* --- answering --- */

/* A packet of who asks; GUARD_WHO with the answer that asks who he is. */
static int
take_asked(struct gossip *g, const void *ctx, const struct gossip_packet *in, struct packet *p,
           struct server_sync *ret, struct err *e)
{
    uint64_t cookie = 0;
    enum packet_fault fault = packet_get(ctx, in->data.v, in->data.n, &g->keys, p);
    if (fault != PACKET_FINE) {
        gossip_refuse(g, fault, "a connection");
        return err_set(e, -ERR_FORBIDDEN, "the packet is %s", packet_fault_text(fault));
    }
    if (p->from == g->id && p->session == g->session)
        return err_set(e, -ERR_CONFLICT, "this is the server itself");
    if (p->from == g->id) {
        gossip_refuse(g, REFUSED_MISLED, "a connection");
        return err_set(
            e, -ERR_FORBIDDEN,
            "its id is in use by another server: the data of one was copied to the other");
    }
    if ((p->kind != PACKET_SYNC && p->kind != PACKET_KEYS) || (p->to != 0 && p->to != g->id)) {
        gossip_refuse(g, REFUSED_MISLED, "a connection");
        return err_set(e, -ERR_FORBIDDEN, "the packet is for another server");
    }
    switch (guard_take(g->guard, p, false, &cookie)) {
    case GUARD_FRESH:
        return 0;
    case GUARD_AGAIN:
        gossip_refuse(g, REFUSED_AGAIN, "a connection");
        return err_set(e, -ERR_FORBIDDEN, "the packet was sent before");
    case GUARD_WHO:
        break;
    }
    struct packet who = {.kind = PACKET_WHO,
                         .to = p->from,
                         .target = p->session,
                         .cookie = cookie,
                         .token = p->token};
    pack_one(g, ret, &who);
    return 1;
}

/* All keys that this server has then, or why not. */
static void
answer_keys(struct gossip *g, const void *ctx, const struct packet *asked, struct server_sync *ret)
{
    struct packet p = {.kind = PACKET_KEYS, .to = asked->from, .token = asked->token};
    struct err e = ERR_INIT;
    if (asked->target < KEYS_LIST || asked->target > KEYS_OPS)
        err_set(&e, -ERR_UNSUPPORTED,
                "this server does not know that operation: run one release on all");
    else
        (void)keyring_here(g, (enum keys_op)asked->target, asked->addr, &e);
    e.text[GOSSIP_ADDR_MAX] = '\0';
    if (e.code != 0) {
        p.target = 1;
        p.addr = e.text;
        pack_one(g, ret, &p);
        return;
    }
    for (size_t i = 0; i < g->keys.n; i++) {
        p.addr = keys_text(ctx, &g->keys.v[i]);
        pack_one(g, ret, &p);
    }
}

int
gossip_sync(struct gossip *g, const void *ctx, const struct server_sync *req,
            struct server_sync *ret, struct err *e)
{
    struct swim_out out = {.ctx = mem_ctx("gossip")};
    struct packet p = {0};
    uint64_t before = swim_figures(g->swim)->foreign + swim_figures(g->swim)->full;
    int rc = req->packets.n > 0 ? 0 : err_set(e, -ERR_INVALID, "there is no packet");
    *ret = (struct server_sync){0};
    for (size_t i = 0; i < req->packets.n && rc == 0; i++) {
        rc = take_asked(g, ctx, req->packets.v[i], &p, ret, e);
        if (rc == 0 && p.kind == PACKET_SYNC)
            swim_take(g->swim, env_mono_ms(g->o.env), &p, "", &out);
    }
    if (rc == 0 && p.kind == PACKET_KEYS)
        answer_keys(g, ctx, &p, ret);
    else if (rc == 0)
        *ret = *exchange_pack(g, ctx, p.from, p.token);
    if (swim_figures(g->swim)->foreign + swim_figures(g->swim)->full != before)
        gossip_refuse(g, REFUSED_MEMBER, "a connection");
    gossip_carry(g, &out);
    return rc < 0 ? rc : 0;
}

/* --- addresses to join --- */

static void
join_ask(void *arg)
{
    struct join *j = arg;
    struct err e = ERR_INIT;
    j->timer = NULL;
    if (j->asking || j->done)
        return;
    struct exchange *x = exchange_new(j->g, j->addr, 0, &e);
    if (x == NULL) {
        j->why = e;
        return;
    }
    x->join = j;
    j->asking = true;
    exchange_ask(x);
}

/* Says whether all were asked as often as they are to be, and none has answered. */
static bool
all_have_failed(const struct gossip *g)
{
    bool all = g->o.retry_max > 0;
    for (const struct join *j = g->joins; j != NULL && all; j = j->next)
        all = !j->configured || (!j->done && j->failed >= g->o.retry_max);
    return all;
}

static void
join_told(struct join *j, const struct err *e)
{
    struct gossip *g = j->g;
    int64_t most = g->o.retry_ms > 0 ? g->o.retry_ms : GOSSIP_RETRY_MS;
    j->asking = false;
    j->done = e == NULL || e->code == -ERR_CONFLICT;
    err_clear(&j->why);
    if (e != NULL)
        j->why = *e;
    if (j->done || g->closing)
        return;
    if (j->failed++ == 0 && e->code == -ERR_FORBIDDEN)
        log_warn("serf", "this server is refused where it is to join", "server", j->addr, "why",
                 e->text, NULL);
    if (j->configured && all_have_failed(g)) {
        g->o.alone(g->o.arg, &j->why);
        return;
    }
    j->timer = env_timer(g->o.env, j->wait_ms, join_ask, j);
    j->wait_ms = 2 * j->wait_ms < most ? 2 * j->wait_ms : most;
}

static struct join *
join_at(struct gossip *g, const char *text, struct err *e)
{
    struct addr a;
    char full[ADDR_TEXT];
    if (addr_parse(text, GOSSIP_PORT, &a, e) < 0)
        return NULL;
    (void)addr_format(&a, full);
    for (struct join *j = g->joins; j != NULL; j = j->next)
        if (str_eq(j->addr, full))
            return j;
    if (g->n_joins == GOSSIP_JOINS_MAX) {
        err_set(e, -ERR_LIMIT, "more than %d addresses to join are known already",
                GOSSIP_JOINS_MAX);
        return NULL;
    }
    struct join *j = mem_new(g, struct join);
    j->g = g;
    j->addr = mem_strdup(j, full);
    j->wait_ms = GOSSIP_RETRY_MIN_MS;
    j->next = g->joins;
    g->joins = j;
    g->n_joins++;
    return j;
}

size_t
gossip_join(struct gossip *g, const struct str_list *addrs, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < addrs->n; i++) {
        struct join *j = join_at(g, addrs->v[i], e);
        n += j != NULL;
        if (j == NULL || j->asking)
            continue;
        env_timer_stop(g->o.env, TAKE(j->timer));
        j->done = false;
        j->wait_ms = GOSSIP_RETRY_MIN_MS;
        join_ask(j);
    }
    return n;
}

size_t
gossip_joined(struct gossip *g, const struct str_list *addrs, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < addrs->n; i++) {
        struct join *j = join_at(g, addrs->v[i], e);
        n += j != NULL && j->done;
        if (j != NULL && !j->done && j->why.code != 0)
            err_set(e, j->why.code, "%s: %s", j->addr, j->why.text);
    }
    return n;
}

void
exchange_begin(struct gossip *g)
{
    for (size_t i = 0; i < g->o.join.n; i++) {
        struct str_list one = {&g->o.join.v[i], 1};
        struct err e = ERR_INIT;
        struct join *j = join_at(g, one.v[0], &e);
        if (j != NULL)
            j->configured = true;
        if (gossip_join(g, &one, &e) == 0)
            log_warn("serf", "an address to join is ignored", "address", one.v[0], "error", e.text,
                     NULL);
    }
}

void
exchange_end(struct gossip *g)
{
    for (struct join *j = g->joins; j != NULL; j = j->next)
        env_timer_stop(g->o.env, TAKE(j->timer));
    while (g->exchanges != NULL)
        exchange_over(g->exchanges, &(struct err){-ERR_CANCELED, "canceled"});
}
