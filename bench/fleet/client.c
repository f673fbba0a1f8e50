/* SPDX-License-Identifier: Apache-2.0
 *
 * A simulated client: registration, then heartbeats at the pace the server sets, as
 * client/node/register.c does.
 */
#include "api/terms.h"
#include "bench/fleet/fleet.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"
#include "common/uuid.h"

enum { BEAT_MIN_MS = 100, BEAT_TIMEOUT_MS = 10000, BACKOFF_MIN_MS = 1000, BACKOFF_MAX_MS = 15000 };

static void send_register(struct sim *s);
static void send_beat(struct sim *s);

struct dialer
fleet_dialer(const struct fleet *f, const char *from)
{
    return (struct dialer){
        .loop = f->loop, .filter = tls_rpc(f->tls), .from = from, .name = "server.global.nomad"};
}

struct rpc_client *
sim_conn(struct sim *s)
{
    struct fleet *f = s->fleet;
    struct rpc_client **c = &f->conns[s->number / f->opt.share];
    struct err e = ERR_INIT;
    char from[16];

    if (*c == NULL) {
        sim_address(&f->sims[s->number / f->opt.share * f->opt.share], from);
        const struct dialer way = fleet_dialer(f, from);
        *c = rpc_dial(&way, &f->servers, &e);
        ASSERT(*c != NULL); /* the addresses were parsed before */
    }
    return *c;
}

int64_t
sim_backoff(struct sim *s)
{
    int64_t ms = s->backoff_ms > 0 ? s->backoff_ms : BACKOFF_MIN_MS;

    s->backoff_ms = (uint16_t)(ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms * 2);
    return ms + (int64_t)(rand_u64() % (uint64_t)(ms / 2));
}

/* --- heartbeats --- */

static void
on_beat_timer(void *arg)
{
    struct sim *s = arg;

    s->beat_timer = NULL;
    hist_add(&s->fleet->stats.beat_own, (loop_now_ms(s->fleet->loop) - s->due_ms) * 1000);
    if (s->registered)
        send_beat(s);
    else
        send_register(s);
}

void
sim_beat_in(struct sim *s, int64_t ms)
{
    if (s->state != SIM_ON)
        return;
    timer_stop(s->beat_timer);
    s->due_ms = loop_now_ms(s->fleet->loop) + (ms > 0 ? ms : 0);
    s->beat_timer = timer_start(s->fleet->loop, ms, on_beat_timer, s);
}

static void
note_ttl(struct sim *s, const struct node_update_response *u)
{
    if (u->heartbeat_ttl > 0)
        s->ttl_ms = u->heartbeat_ttl / NS_PER_MS;
    s->backoff_ms = 0;
}

/* The server had to write something: was this node taken for dead? Its own events tell. */
static void
on_node(void *arg, const struct err *e, const void *resp)
{
    struct sim *s = arg;
    const struct node_response *r = resp;

    if (e != NULL || r->node == NULL || s->state != SIM_ON)
        return;
    for (size_t i = 0; i < r->node->events.n; i++) {
        const struct node_event *ev = r->node->events.v[i];
        if (ev->create_index > s->joined_index && str_eq(ev->message, "Node heartbeat missed"))
            stats_wrong_down(s, "its events");
    }
}

static void
look_at_node(struct sim *s)
{
    char id[UUID_TEXT];
    struct id_request req = {.id = id};
    struct rpc_request r = {.id = RPC_NODE_GET_NODE, .req = &req};

    sim_id(s, id);
    rpc_send(s->fleet->own, &r, on_node, s);
}

static void
joined(struct sim *s, const struct node_update_response *u)
{
    struct fleet *f = s->fleet;

    s->joined_ms = loop_now_ms(f->loop);
    s->joined_index = u->node_modify_index;
    f->n_joined++;
    if (s->starting) {
        s->starting = false;
        fleet_joined(f);
    }
}

static void
beat_answered(struct sim *s, const struct node_update_response *u)
{
    struct fleet *f = s->fleet;
    int64_t now = loop_now_ms(f->loop);

    hist_add(&f->stats.beat, (clock_mono_ns() - s->beat_sent_ns) / NS_PER_US);
    f->stats.beats++;
    if (s->answered_ms > 0 && s->ttl_ms > 0 && now - s->answered_ms > s->ttl_ms)
        f->stats.misses++;
    s->answered_ms = now;
    note_ttl(s, u);
    int64_t ms = s->ttl_ms < BEAT_MIN_MS ? BEAT_MIN_MS : s->ttl_ms;
    sim_beat_in(s, ms - (int64_t)(rand_u64() % (uint64_t)(ms / 10 + 1)));
    if (s->joined_ms == 0)
        joined(s, u);
    else if (u->index != 0)
        look_at_node(s);
    /* the answer to the heartbeat that was written may have been lost (client/node/register.c) */
    if (u->index != 0 || u->node_modify_index != s->node_index)
        s->beat_after_report = sync_all_dirty(s);
    s->node_index = u->node_modify_index;
    sync_go(s);
}

static void
on_beat(void *arg, const struct err *e, const void *resp)
{
    struct sim *s = arg;

    if (e != NULL && e->code == -ERR_CANCELED)
        return;
    s->beat_call = 0;
    if (s->state != SIM_ON)
        return;
    if (e == NULL) {
        beat_answered(s, resp);
    } else if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN) {
        s->fleet->stats.beats_failed++;
        s->registered = false;
        send_register(s);
    } else {
        s->fleet->stats.beats_failed++;
        sim_beat_in(s, sim_backoff(s));
    }
}

static void
send_beat(struct sim *s)
{
    char id[UUID_TEXT], secret[UUID_TEXT];
    struct rpc_envelope env = {.node_id = id, .node_secret = secret};
    struct node_update_status_request req = {.status = NODE_READY};
    struct rpc_request r = {.id = RPC_NODE_UPDATE_STATUS, .req = &req, .env = &env};

    if (s->beat_call != 0)
        return;
    r.timeout_ms = s->ttl_ms > 0 ? s->ttl_ms : BEAT_TIMEOUT_MS;
    sim_id(s, id);
    sim_secret(s, secret);
    s->beat_sent_ns = clock_mono_ns();
    s->beat_call = rpc_send(sim_conn(s), &r, on_beat, s);
}

/* --- registration --- */

static void
on_registered(void *arg, const struct err *e, const void *resp)
{
    struct sim *s = arg;

    if (e != NULL && e->code == -ERR_CANCELED)
        return;
    s->register_call = 0;
    if (s->state != SIM_ON)
        return;
    if (e != NULL) {
        fprintf(stderr, "fleet: node %u: %s\n", s->number, e->text);
        sim_beat_in(s, sim_backoff(s));
        return;
    }
    s->registered = true;
    s->fleet->stats.registered++;
    s->index = 0; /* the next list is the first */
    note_ttl(s, resp);
    send_beat(s);
}

static void
send_register(struct sim *s)
{
    auto_mem void *ctx = mem_ctx("register");
    char id[UUID_TEXT], secret[UUID_TEXT];
    struct rpc_envelope env = {.node_id = id, .node_secret = secret};
    struct node_register_request req = {.node = facts_of(ctx, s)};
    struct rpc_request r = {.id = RPC_NODE_REGISTER, .req = &req, .env = &env};

    sim_id(s, id);
    sim_secret(s, secret);
    if (s->register_call == 0)
        s->register_call = rpc_send(sim_conn(s), &r, on_registered, s);
}

/* --- life --- */

void
sim_start(struct sim *s)
{
    s->state = SIM_ON;
    s->on_wall_ns = clock_wall_ns();
    s->fleet->n_on++;
    s->index = 0;
    s->listed = 0;
    send_register(s);
}

static void
cancel(struct sim *s, uint64_t *call)
{
    if (*call != 0)
        rpc_cancel(sim_conn(s), *call);
    *call = 0;
}

/* Nothing more is sent. */
static void
silence(struct sim *s)
{
    s->fleet->n_on -= s->state == SIM_ON;
    s->fleet->n_joined -= s->state == SIM_ON && s->joined_ms != 0;
    s->joined_ms = s->answered_ms = 0;
    timer_stop(TAKE(s->beat_timer));
    if (s->starting) {
        s->starting = false;
        fleet_joined(s->fleet);
    }
}

/* Its calls end; a connection of its own with them. */
static void
disconnect(struct sim *s)
{
    struct fleet *f = s->fleet;

    cancel(s, &s->beat_call);
    cancel(s, &s->register_call);
    sync_stop(s);
    if (f->opt.share == 1)
        rpc_client_close(TAKE(f->conns[s->number]));
}

void
sim_pause(struct sim *s)
{
    silence(s);
    s->state = SIM_PAUSED;
}

void
sim_cut(struct sim *s)
{
    silence(s);
    s->state = SIM_CUT;
    disconnect(s);
}

void
sim_kill(struct sim *s)
{
    silence(s);
    s->state = SIM_KILLED;
    disconnect(s);
    sync_drop_all(s);
    s->registered = false;
}

void
sim_rejoin(struct sim *s)
{
    if (s->state == SIM_KILLED) {
        sim_start(s);
        return;
    }
    s->state = SIM_ON;
    s->fleet->n_on++;
    sim_beat_in(s, 0);
}

void
sim_stop(struct sim *s)
{
    silence(s);
    s->state = SIM_OFF;
    disconnect(s);
    sync_drop_all(s);
}
