/* SPDX-License-Identifier: Apache-2.0
 *
 * Workers of other servers, which the leader asks for attempts when its own are busy
 * (Sched.Attempt; lend.c is the other side). Evaluations stay in the leader's broker, and plans are
 * checked and written here, as with the leader's own workers: another server only thinks. So an
 * attempt of a server that dies, stands still or lags is made again here, at once where the
 * connection breaks or gossip finds the server dead. Nothing can come twice: a run goes on with one
 * answer.
 */
#include "common/log.h"
#include "common/mem.h"
#include "net/rpc.h"
#include "server/leader/leader_int.h"

enum { SULK_MS = 5000 }; /* a server that did not answer well is not asked */

/* Another server that has workers. */
struct helper {
    struct helper *next;
    uint64_t id;
    char *addr;
    struct rpc_client *client;
    size_t workers, out; /* attempts that it has */
    uint64_t asked;      /* for attempts, so far */
    int64_t sulks_ms;    /* until then */
    bool seen;
};

struct borrow {
    atomic_size_t room; /* workers of those that are asked */
    /* loop thread */
    struct helper *helpers;
    struct timer *timer; /* until one is asked again */
    bool on;
};

struct loan {
    struct run *r;
    struct helper *h; /* NULL: it is there no more */
};

size_t
borrow_room(const struct leader *l)
{
    return atomic_load_explicit(&l->borrow->room, memory_order_relaxed);
}

/* --- who there is; loop thread --- */

static void borrow_again(void *arg);

static void
borrow_count(struct leader *l)
{
    struct borrow *b = l->borrow;
    size_t room = 0, had = borrow_room(l);
    int64_t now = env_mono_ms(l->env), next = INT64_MAX;

    for (const struct helper *h = b->helpers; h != NULL; h = h->next) {
        room += h->sulks_ms <= now ? h->workers : 0;
        if (h->sulks_ms > now && h->sulks_ms < next)
            next = h->sulks_ms;
    }
    atomic_store_explicit(&b->room, room, memory_order_relaxed);
    if (next != INT64_MAX && b->timer == NULL)
        b->timer = env_timer(l->env, next - now, borrow_again, l);
    if (room > had)
        (void)server_post_apply(l->s, l->on_alarm, l);
}

static void
borrow_again(void *arg)
{
    struct leader *l = arg;

    l->borrow->timer = NULL;
    borrow_count(l);
}

/* Its attempts are asked for again. */
static void
helper_drop(struct helper **at)
{
    struct helper *h = *at;

    *at = h->next;
    rpc_client_close(h->client);
    ASSERT(h->out == 0);
    mem_free(h);
}

static void
helper_seen(struct leader *l, const struct server_hello *m)
{
    struct helper *h = l->borrow->helpers;

    while (h != NULL && !(h->id == m->id && str_eq(h->addr, m->addr)))
        h = h->next;
    if (h == NULL) {
        h = mem_new(l, struct helper);
        h->id = m->id;
        h->addr = mem_strdup(h, m->addr);
        h->next = l->borrow->helpers;
        l->borrow->helpers = h;
    }
    h->workers = m->workers < WORKERS_MAX ? m->workers : WORKERS_MAX;
    h->seen = true;
}

static bool
may_help(const struct leader *l, const struct server_member *m)
{
    const struct server_hello *h = m->hello;
    const struct server_config *cfg = server_cfg(l->s);

    return m->alive && !m->left && !h->leaving && h->workers > 0 &&
           str_eq(h->region, cfg->region) && !str_empty(h->cluster) &&
           str_eq(h->cluster, server_cluster(l->s)) && !str_eq(h->addr, cfg->rpc_addr);
}

void
leader_members_changed(struct leader *l)
{
    auto_mem void *tmp = mem_ctx("helpers");
    size_t n = 0;

    if (l->stopping || !l->borrow->on)
        return;
    for (struct helper *h = l->borrow->helpers; h != NULL; h = h->next)
        h->seen = false;
    struct server_member *v = server_members(l->s, tmp, &n);
    for (size_t i = 0; i < n; i++)
        if (may_help(l, &v[i]))
            helper_seen(l, v[i].hello);
    for (struct helper **at = &l->borrow->helpers; *at != NULL;)
        if ((*at)->seen)
            at = &(*at)->next;
        else
            helper_drop(at);
    borrow_count(l);
}

/* --- an attempt; loop thread --- */

static bool
helper_dial(struct leader *l, struct helper *h)
{
    struct err e = ERR_INIT;

    if (h->client == NULL)
        h->client = server_dial(l->s, h, h->addr, &e);
    return h->client != NULL;
}

static bool
helper_before(const struct helper *a, const struct helper *b)
{
    size_t free_a = a->workers - a->out, free_b = b->workers - b->out;

    return free_a != free_b ? free_a > free_b : a->asked < b->asked;
}

/* Returns the helper with most workers free, among equals the one asked least; NULL: all are busy.
 */
static struct helper *
helper_best(struct leader *l)
{
    int64_t now = env_mono_ms(l->env);
    struct helper *best = NULL;

    for (struct helper *h = l->borrow->helpers; h != NULL; h = h->next)
        if (h->sulks_ms <= now && h->out < h->workers && (best == NULL || helper_before(h, best)) &&
            helper_dial(l, h))
            best = h;
    return best;
}

static void
borrow_answered(void *arg, const struct err *e, const void *p)
{
    struct loan k = *(struct loan *)arg;
    const struct sched_attempt_response *resp = p;
    struct leader *l = k.r->l;

    talloc_free(arg);
    ASSERT(k.h->out > 0);
    k.h->out--;
    if (e == NULL) {
        (void)talloc_steal(k.r->ctx, p);
        k.r->lent = resp->outcome;
        k.r->lent_over(k.r, true);
        return;
    }
    log_debug("sched", "another server did not schedule an evaluation", "server", k.h->addr,
              "eval_id", k.r->eval->id, "error", e->text, NULL);
    if (e->code != -ERR_BUSY && e->code != -ERR_LIMIT && l->borrow->on) {
        k.h->sulks_ms = env_mono_ms(l->env) + SULK_MS;
        borrow_count(l);
    }
    k.r->lent_over(k.r, false);
}

static void
borrow_send(void *arg)
{
    struct run *r = arg;
    struct leader *l = r->l;
    struct helper *h = l->borrow->on && !l->stopping ? helper_best(l) : NULL;
    int64_t nack_ms = server_cfg(l->s)->eval_nack_ms;
    const struct sched_attempt_request req = {
        .eval = r->eval, .index = r->lent_index, .now = env_wall_ns(l->env)};
    const struct rpc_request q = {.id = RPC_SCHED_ATTEMPT,
                                  .req = &req,
                                  .timeout_ms = (nack_ms > 0 ? nack_ms : BROKER_NACK_MS) / 2};

    if (h == NULL) {
        r->lent_over(r, false);
        return;
    }
    struct loan *k = mem_new(NULL, struct loan);
    *k = (struct loan){r, h};
    h->out++;
    h->asked++;
    (void)rpc_send(h->client, &q, borrow_answered, k);
}

void
borrow_ask(struct leader *l, struct run *r, run_lent_fn *over)
{
    r->lent_over = over;
    env_post(l->env, borrow_send, r);
}

/* --- the row --- */

static void
row_init(struct leader *l)
{
    l->borrow = mem_new(l, struct borrow);
}

static void
row_begin(struct leader *l)
{
    l->borrow->on = true;
    leader_members_changed(l);
}

static void
row_end(struct leader *l)
{
    struct borrow *b = l->borrow;

    b->on = false;
    env_timer_stop(l->env, TAKE(b->timer));
    while (b->helpers != NULL)
        helper_drop(&b->helpers);
    atomic_store(&b->room, 0);
}

const struct controller borrow_row = {.init = row_init, .begin = row_begin, .end = row_end};
