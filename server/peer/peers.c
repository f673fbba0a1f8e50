/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections to and from other servers: see peers.h. Order to read: links (we speak), guests (they
 * speak), what comes from other threads, life.
 */
#include "server/peer/peers.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/peer_conn.h"
#include "server/env.h"
#include "server/limits.h"
#include "server/peer/lossy.h"
#include "server/raft/wire.h"

enum {
    PEER_QUEUE_BYTES = 32 << 20, /* for one server */
    PEER_EARLY_N = 64,           /* messages that wait for a connection */
    PEER_BACKOFF_MIN_MS = 50,
    PEER_BACKOFF_MAX_MS = 500,
    PEER_ASKS = 8,
    PEER_REFUSED_MS = 5000, /* before one that refused is asked again */
    PEER_GREET_MS = 5000,   /* to connect, to say hello, or to answer it */
    PEER_GUESTS_MAX = 2 * CONSENSUS_PEERS_MAX,
    TELL_MS = 60000, /* between two lines about the same */
};

struct out {
    struct out *next;
    uint64_t to;
    char *addr;
    struct buf body;
};

enum link_state { LINK_DOWN, LINK_DIALING, LINK_GREETING, LINK_UP };

/* To another server. */
struct link {
    struct link *next;
    struct peers *peers;
    uint64_t id;
    char *addr;
    struct peer_conn *conn;
    enum link_state state;
    struct timer *timer; /* of the backoff, or of a greeting */
    int64_t backoff_ms;
    bool refused, was_up;
    bool plain; /* this time, as the other side knows no filter */
    unsigned asks; /* how often it is still dialled although there is nothing to say */
    int64_t told_ms;
    struct out *early;
    size_t n_early;
};

/* From another server. */
struct guest {
    struct guest *next;
    struct peers *peers;
    struct peer_conn *conn;
    struct timer *timer;
    uint64_t id; /* 0: it has not said hello */
    char *addr;
};

/* A message that a test delays. */
struct late {
    struct late *next;
    struct peers *peers;
    struct out *x;
    struct timer *timer;
};

struct peers {
    struct peers_opts o;
    struct late *late;
    struct loop *loop;
    struct env env; /* of it */
    pthread_t thread;
    struct link *links;
    struct guest *guests;
    size_t n_guests, open; /* open: connections not closed yet */
    int64_t told_ms;
    bool stopping;
    pthread_mutex_t mutex; /* for what follows */
    struct out *first, **last;
    bool posted;
    char cluster[WIRE_CLUSTER_MAX + 1];
    struct {
        uint64_t id;
        size_t bytes;
    } waiting[CONSENSUS_PEERS_MAX];
};

static void
peers_put(struct peer_conn *c, const struct wire *w)
{
    struct buf b = BUF_INIT(WIRE_BODY_MAX);
    wire_put(&b, w);
    peer_conn_send(c, &b);
}

static void
our_cluster(struct peers *p, char out[WIRE_CLUSTER_MAX + 1])
{
    pthread_mutex_lock(&p->mutex);
    (void)str_copy(out, WIRE_CLUSTER_MAX + 1, p->cluster);
    pthread_mutex_unlock(&p->mutex);
}

static void
conn_closed(struct peers *p)
{
    ASSERT(p->open > 0);
    if (--p->open == 0 && p->stopping)
        loop_stop(p->loop);
}

static struct peer_conn_config
conn_config(const struct peers *p, const struct peer_conn_ops *ops, void *arg)
{
    return (struct peer_conn_config){.loop = p->loop,
                                     .body_max = WIRE_BODY_MAX,
                                     .ops = ops,
                                     .arg = arg,
                                     .filter = p->o.filter,
                                     .protocol = WIRE_PROTOCOL,
                                     .first = WIRE_PROTOCOL_BYTE};
}

/* --- links --- */

static void link_dial(struct link *l);

static void
out_free(struct out *x)
{
    buf_done(&x->body);
    mem_free(x);
}

static struct out *
out_copy(const struct out *x)
{
    struct out *c = mem_new(NULL, struct out);
    c->to = x->to;
    c->addr = mem_strdup(c, x->addr);
    buf_init(&c->body, x->body.max);
    buf_put(&c->body, x->body.data, x->body.len);
    return c;
}

static void
link_drop_early(struct link *l)
{
    while (l->early != NULL) {
        struct out *x = l->early;
        l->early = x->next;
        out_free(x);
    }
    l->n_early = 0;
}

static void
link_retry(void *arg)
{
    struct link *l = arg;
    l->timer = NULL;
    l->asks -= l->asks > 0;
    if (l->early != NULL || l->asks > 0)
        link_dial(l);
}

static void
link_greet_late(void *arg)
{
    struct link *l = arg;
    l->timer = NULL;
    peer_conn_close(l->conn);
}

static void
link_open(void *arg)
{
    struct link *l = arg;
    char cluster[WIRE_CLUSTER_MAX + 1];
    our_cluster(l->peers, cluster);
    l->state = LINK_GREETING;
    env_timer_stop(&l->peers->env, l->timer);
    l->timer = env_timer(&l->peers->env, PEER_GREET_MS, link_greet_late, l);
    peers_put(l->conn, &(struct wire){.kind = WIRE_HELLO,
                                      .from = l->peers->o.id,
                                      .to = l->id,
                                      .cluster = cluster,
                                      .addr = l->peers->o.addr});
}

static void
link_up(struct link *l)
{
    env_timer_stop(&l->peers->env, TAKE(l->timer));
    l->state = LINK_UP;
    l->was_up = true;
    l->asks = 0;
    l->backoff_ms = PEER_BACKOFF_MIN_MS;
    struct out *x = TAKE(l->early), *turned = NULL;
    l->n_early = 0;
    while (x != NULL) { /* the newest is the first of the list */
        struct out *next = x->next;
        x->next = turned;
        turned = x;
        x = next;
    }
    while (turned != NULL) {
        x = turned;
        turned = x->next;
        peer_conn_send(l->conn, &x->body);
        out_free(x);
    }
}

static void
link_frame(void *arg, const uint8_t *body, size_t n)
{
    struct link *l = arg;
    auto_mem void *tmp = mem_ctx("frame");
    struct err e = ERR_INIT;
    struct wire w;
    int rc = wire_get(tmp, body, n, &w, &e);
    if (rc == 0 && l->state == LINK_GREETING && w.kind == WIRE_WELCOME) {
        link_up(l);
        return;
    }
    int64_t now = env_mono_ms(&l->peers->env);
    l->refused = true;
    if (l->told_ms == 0 || now - l->told_ms >= TELL_MS) {
        l->told_ms = now;
        log_warn("peers", "another server refuses this one", "server", l->addr, "why",
                 rc < 0                   ? e.text
                 : w.kind == WIRE_REFUSED ? w.why
                                          : "an answer that was not asked for",
                 NULL);
    }
    peer_conn_close(l->conn);
}

static void
link_closed(void *arg, int code)
{
    struct link *l = arg;
    struct peers *p = l->peers;
    bool worked = l->was_up;
    l->plain = p->o.falls_back && p->o.filter != NULL && !l->plain && l->state == LINK_DIALING &&
               code == -ERR_CLOSED;
    l->conn = NULL;
    l->state = LINK_DOWN;
    l->was_up = false;
    env_timer_stop(&l->peers->env, TAKE(l->timer));
    if (code == -ECONNREFUSED && !p->stopping) {
        l->asks = 0;
        core_gone(p->o.core, l->id);
    }
    conn_closed(p);
    if (p->stopping)
        return;
    if (l->plain) {
        link_dial(l);
        return;
    }
    if (worked && !l->refused) {
        /* the other's process may be gone: ask at once. A process that is just ending may still
         * take the connection, and reset it: then ask again. */
        l->asks = PEER_ASKS;
        link_dial(l);
        return;
    }
    link_drop_early(l);
    int64_t wait =
        l->refused ? PEER_REFUSED_MS
                   : l->backoff_ms / 2 + (int64_t)(env_random(&p->env) % (uint64_t)l->backoff_ms);
    l->backoff_ms =
        l->backoff_ms * 2 > PEER_BACKOFF_MAX_MS ? PEER_BACKOFF_MAX_MS : l->backoff_ms * 2;
    l->refused = false;
    l->timer = env_timer(&p->env, wait, link_retry, l);
}

static const struct peer_conn_ops link_ops = {link_open, link_frame, link_closed};

static void
link_dial(struct link *l)
{
    struct peer_conn_config cfg = conn_config(l->peers, &link_ops, l);
    struct err e = ERR_INIT;
    if (l->plain)
        cfg.filter = NULL;
    if (l->state != LINK_DOWN || l->timer != NULL || l->peers->stopping)
        return;
    l->conn = peer_conn_dial(&cfg, l->addr, l->peers->o.name, &e);
    if (l->conn == NULL) {
        link_drop_early(l);
        return;
    }
    l->peers->open++;
    /* for so long: the kernel asks less and less often a host that was away */
    l->state = LINK_DIALING;
    l->timer = env_timer(&l->peers->env, PEER_GREET_MS, link_greet_late, l);
}

static struct link *
link_to(struct peers *p, uint64_t id, const char *addr)
{
    struct link *l = p->links;
    while (l != NULL && l->id != id)
        l = l->next;
    if (l == NULL) {
        l = mem_new(p, struct link);
        l->peers = p;
        l->id = id;
        l->backoff_ms = PEER_BACKOFF_MIN_MS;
        l->next = p->links;
        p->links = l;
    }
    if (!str_eq(str_or(l->addr, ""), addr)) {
        mem_free(l->addr);
        l->addr = mem_strdup(l, addr);
        if (l->conn != NULL)
            peer_conn_close(l->conn);
    }
    return l;
}

static void
link_send(struct link *l, struct out *x)
{
    if (l->state == LINK_UP && peer_conn_queued(l->conn) < PEER_QUEUE_BYTES)
        peer_conn_send(l->conn, &x->body);
    ASSERT(l->n_early <= PEER_EARLY_N);
    if (l->state == LINK_UP || l->n_early == PEER_EARLY_N) {
        out_free(x);
        return;
    }
    x->next = l->early;
    l->early = x;
    l->n_early++;
    link_dial(l);
}

/* --- guests --- */

static void
guest_closed(void *arg, int code)
{
    struct guest *g = arg, **at = &g->peers->guests;
    struct peers *p = g->peers;
    (void)code;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    ASSERT(p->n_guests > 0);
    p->n_guests--;
    env_timer_stop(&p->env, g->timer);
    mem_free(g);
    conn_closed(p);
}

static void
guest_late(void *arg)
{
    struct guest *g = arg;
    g->timer = NULL;
    peer_conn_close(g->conn);
}

/* Why it is not let in; NULL: it is. One that comes again takes the place of its older connection.
 */
static const char *
guest_check(struct guest *g, const void *ctx, const struct wire *w)
{
    struct peers *p = g->peers;
    char cluster[WIRE_CLUSTER_MAX + 1];
    our_cluster(p, cluster);
    if (w->kind != WIRE_HELLO)
        return "it does not say who it is";
    if (cluster[0] == '\0')
        return "this server is of no cluster yet";
    if (!str_eq(cluster, w->cluster))
        return mem_printf(ctx, "it is of the cluster %s, this server of %s", w->cluster, cluster);
    if (w->from == p->o.id)
        return "it has the id of this server: the data of one was copied to the other";
    if (w->from == 0 || w->to != p->o.id)
        return "it looks for another server at this address";
    for (struct guest *o = p->guests; o != NULL; o = o->next) {
        if (o == g || o->id != w->from)
            continue;
        if (!str_eq(o->addr, w->addr))
            return mem_printf(
                ctx,
                "its id is in use by the server at %s: the data of one was copied to the other",
                o->addr);
        peer_conn_close(o->conn);
    }
    return NULL;
}

static void
guest_hello(struct guest *g, const uint8_t *body, size_t n)
{
    struct peers *p = g->peers;
    auto_mem void *tmp = mem_ctx("hello");
    struct err e = ERR_INIT;
    struct wire w;
    const char *why = wire_get(tmp, body, n, &w, &e) < 0 ? e.text : guest_check(g, tmp, &w);
    int64_t now = env_mono_ms(&p->env);
    if (why == NULL) {
        env_timer_stop(&p->env, TAKE(g->timer));
        g->id = w.from;
        g->addr = mem_strdup(g, w.addr);
        peer_conn_trust(g->conn);
        peers_put(g->conn, &(struct wire){.kind = WIRE_WELCOME});
        return;
    }
    if (p->told_ms == 0 || now - p->told_ms >= TELL_MS) {
        p->told_ms = now;
        log_warn("peers", "another server is refused", "from", peer_conn_address(g->conn), "why",
                 why, NULL);
    }
    peers_put(g->conn, &(struct wire){.kind = WIRE_REFUSED,
                                      .why = why}); /* it closes; or we, when it is late */
    g->id = UINT64_MAX;
}

static void
guest_frame(void *arg, const uint8_t *body, size_t n)
{
    struct guest *g = arg;
    struct err e = ERR_INIT;
    if (g->id == UINT64_MAX)
        peer_conn_close(g->conn);
    else if (g->id == 0)
        guest_hello(g, body, n);
    else if (test_hook_in(g->addr))
        return;
    else if (core_receive(g->peers->o.core, g->id, g->addr, body, n, &e) < 0 && e.code != 0) {
        log_warn("peers", "a connection of another server is closed", "from", g->addr, "why",
                 e.text, NULL);
        peer_conn_close(g->conn);
    }
}

static const struct peer_conn_ops guest_ops = {NULL, guest_frame, guest_closed};

struct arrival {
    struct peers *peers;
    int fd;
    bool filtered;
    size_t n;
    uint8_t p[];
};

static void
peers_arrive(void *arg)
{
    struct arrival *a = arg;
    struct peers *p = a->peers;
    if (p->stopping || p->n_guests == PEER_GUESTS_MAX) {
        (void)close(a->fd);
        mem_free(a);
        return;
    }
    struct guest *g = mem_new(p, struct guest);
    struct peer_conn_config cfg = conn_config(p, &guest_ops, g);
    g->peers = p;
    g->next = p->guests;
    p->guests = g;
    p->n_guests++;
    p->open++;
    g->timer = env_timer(&p->env, PEER_GREET_MS, guest_late, g);
    g->conn = peer_conn_adopt(&cfg, a->fd, a->filtered, a->p, a->n);
    mem_free(a);
}

/* --- from other threads --- */

static size_t *
waiting_for(struct peers *p, uint64_t id)
{
    size_t i = 0;
    while (i < CONSENSUS_PEERS_MAX && p->waiting[i].id != id && p->waiting[i].id != 0)
        i++;
    if (i == CONSENSUS_PEERS_MAX)
        return NULL;
    p->waiting[i].id = id;
    return &p->waiting[i].bytes;
}

/* Which is at once, but in a test. */
static void
send_late(void *arg)
{
    struct late *l = arg;
    struct peers *p = l->peers;
    struct late **at = &p->late;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    link_send(link_to(p, l->x->to, l->x->addr), l->x);
    mem_free(l);
}

static void
send_as_told(struct peers *p, struct out *x)
{
    struct test_way w = test_hook_out(x->addr, &p->env);
    if (w.lost) {
        out_free(x);
        return;
    }
    for (int i = w.twice ? 0 : 1; i < 2; i++) {
        struct out *one = i == 1 ? x : out_copy(x);
        if (w.delay_ms <= 0) {
            link_send(link_to(p, one->to, one->addr), one);
            continue;
        }
        struct late *l = mem_new(p, struct late);
        *l = (struct late){.next = p->late, .peers = p, .x = one};
        p->late = l;
        l->timer = env_timer(&p->env, w.delay_ms, send_late, l);
    }
}

static void
peers_drain(void *arg)
{
    struct peers *p = arg;
    pthread_mutex_lock(&p->mutex);
    struct out *x = TAKE(p->first);
    p->last = &p->first;
    p->posted = false;
    for (size_t i = 0; i < CONSENSUS_PEERS_MAX; i++)
        p->waiting[i].bytes = 0;
    pthread_mutex_unlock(&p->mutex);
    while (x != NULL) {
        struct out *next = x->next;
        x->next = NULL;
        if (p->stopping)
            out_free(x);
        else
            send_as_told(p, x);
        x = next;
    }
}

bool
peers_send(void *arg, uint64_t to, const char *addr, struct buf *body)
{
    struct peers *p = arg;
    struct out *x = mem_new(NULL, struct out);
    x->to = to;
    x->addr = mem_strdup(x, addr);
    x->body = *body;
    buf_init(body, 0);
    pthread_mutex_lock(&p->mutex);
    size_t *bytes = waiting_for(p, to);
    bool ok = bytes != NULL && (*bytes == 0 || *bytes + x->body.len <= PEER_QUEUE_BYTES);
    bool post = ok && !p->posted;
    if (ok) {
        *bytes += x->body.len;
        *p->last = x;
        p->last = &x->next;
        p->posted = true;
    }
    pthread_mutex_unlock(&p->mutex);
    if (post)
        env_post(&p->env, peers_drain, p);
    if (!ok)
        out_free(x);
    return ok;
}

void
peers_take(void *arg, int fd, bool filtered, const uint8_t *bytes, size_t n)
{
    struct peers *p = arg;
    struct arrival *a = mem_zalloc(NULL, sizeof(*a) + n, "arrival");
    a->peers = p;
    a->fd = fd;
    a->filtered = filtered;
    a->n = n;
    if (n > 0)
        memcpy(a->p, bytes, n);
    env_post(&p->env, peers_arrive, a);
}

void
peers_set_cluster(struct peers *p, const char *cluster)
{
    pthread_mutex_lock(&p->mutex);
    (void)str_copy(p->cluster, sizeof(p->cluster), cluster);
    pthread_mutex_unlock(&p->mutex);
}

/* --- life --- */

static void *
peers_main(void *arg)
{
    prctl(PR_SET_NAME, "peers");
    loop_run(((struct peers *)arg)->loop);
    return NULL;
}

struct peers *
peers_start(const struct peers_opts *o, struct err *e)
{
    struct peers *p = mem_new(NULL, struct peers);
    p->o = *o;
    p->o.addr = mem_strdup(p, o->addr);
    p->o.name = mem_strdup(p, o->name);
    p->last = &p->first;
    pthread_mutex_init(&p->mutex, NULL);
    p->loop = loop_new();
    env_of_loop(&p->env, p->loop);
    int rc = pthread_create(&p->thread, NULL, peers_main, p);
    if (rc == 0)
        return p;
    err_errno(e, rc, "start the thread of the other servers");
    loop_free(p->loop);
    mem_free(p);
    return NULL;
}

static void
stop_all(void *arg)
{
    struct peers *p = arg;
    p->stopping = true;
    for (struct late *l = TAKE(p->late), *next; l != NULL; l = next) {
        next = l->next;
        env_timer_stop(&p->env, l->timer);
        out_free(l->x);
        mem_free(l);
    }
    for (struct link *l = p->links; l != NULL; l = l->next) {
        env_timer_stop(&l->peers->env, TAKE(l->timer));
        link_drop_early(l);
        if (l->conn != NULL)
            peer_conn_close(l->conn);
    }
    for (struct guest *g = p->guests; g != NULL; g = g->next)
        peer_conn_close(g->conn);
    if (p->open == 0)
        loop_stop(p->loop);
}

void
peers_stop(struct peers *p)
{
    if (p == NULL)
        return;
    env_post(&p->env, stop_all, p);
    pthread_join(p->thread, NULL);
    loop_free(p->loop);
    for (struct out *x = p->first, *next; x != NULL; x = next) {
        next = x->next;
        out_free(x);
    }
    pthread_mutex_destroy(&p->mutex);
    mem_free(p);
}
