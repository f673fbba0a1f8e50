/* SPDX-License-Identifier: Apache-2.0
 *
 * The node's standing with the servers: registration, then heartbeats at the pace the server sets. A
 * heartbeat that the server answers with "not found" or "permission denied" registers again. One that
 * changed something there (index not 0) is followed by a full report and another heartbeat, so that the
 * server's gate for returning nodes opens (reconnect rules S4 and S7).
 */
#include "api/terms.h"
#include "client/client_int.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

static void send_register(struct client *c);
static void send_heartbeat(struct client *c);

int64_t
client_backoff(int64_t *backoff_ms)
{
    int64_t ms = *backoff_ms < CLIENT_RETRY_MIN_MS ? CLIENT_RETRY_MIN_MS : *backoff_ms;
    *backoff_ms = ms * 2 > CLIENT_RETRY_MAX_MS ? CLIENT_RETRY_MAX_MS : ms * 2;
    return ms + (int64_t)(rand_u64() % (uint64_t)(ms / 2));
}

static void
on_register_timer(void *arg)
{
    struct client *c = arg;
    c->register_timer = NULL;
    send_register(c);
}

static void
on_heartbeat_timer(void *arg)
{
    struct client *c = arg;
    c->heartbeat_timer = NULL;
    send_heartbeat(c);
}

static void
heartbeat_in(struct client *c, int64_t ms)
{
    timer_stop(c->heartbeat_timer);
    c->heartbeat_timer = timer_start(c->loop, ms, on_heartbeat_timer, c);
}

/* A little before the time the server gave. */
static int64_t
heartbeat_pace_ms(const struct client *c)
{
    int64_t ms = c->ttl_ns / NS_PER_MS;
    if (ms < 100)
        ms = 100;
    return ms - (int64_t)(rand_u64() % (uint64_t)(ms / 10 + 1));
}

static void
note_servers(struct client *c, const struct node_update_response *r)
{
    if (r->heartbeat_ttl > 0)
        c->ttl_ns = r->heartbeat_ttl;
    if (r->servers.n == 0)
        return;
    char *s = mem_strdup(c, r->servers.v[0]);
    for (size_t i = 1; i < r->servers.n && i < 16; i++)
        s = mem_printf(c, "%s,%s", s, r->servers.v[i]);
    mem_free(c->known_servers);
    c->known_servers = s;
}

/* ---- heartbeats ------------------------------------------------------------------------------- */

static void
beat_answered(struct client *c, const struct node_update_response *r)
{
    note_servers(c, r);
    c->last_heartbeat_ns = clock_mono_ns();
    c->backoff_ms = 0;
    if (r->index != 0) {
        /* Something changed there: what we last said of our allocations may be lost. */
        c->beat_after_report = true;
        sync_all_dirty(c);
    }
    heartbeat_in(c, heartbeat_pace_ms(c));
    sync_start(c);
    if (node_disk_grew(c))
        register_start(c);
}

static void
on_heartbeat(void *arg, const struct err *e, const void *resp)
{
    struct client *c = arg;
    c->heartbeat_call = 0;
    if (c->stopping) {
        /* nothing */
    } else if (!e) {
        beat_answered(c, resp);
    } else if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN) {
        log_warn("client", "the servers do not know this node: registering again", "error", e->text,
                 NULL);
        c->registered = false;
        send_register(c);
    } else {
        int64_t ms = client_backoff(&c->backoff_ms);
        log_warn("client", "heartbeat failed", "error", e->text, "retry_in", LOG_DUR(ms * NS_PER_MS),
                 NULL);
        heartbeat_in(c, ms);
    }
    client_release(c);
}

static void
send_heartbeat(struct client *c)
{
    if (c->stopping || !c->registered || c->heartbeat_call != 0)
        return;
    struct node_update_status_request req = {
        .node_id = c->node_id, .secret_id = c->secret, .status = NODE_READY};
    int64_t timeout = c->ttl_ns > 0 ? c->ttl_ns / NS_PER_MS : 10 * 1000;
    struct rpc_request r = {RPC_NODE_UPDATE_STATUS, &req, NULL, timeout};
    client_hold(c);
    c->heartbeat_call = rpc_send(c->rpc, &r, on_heartbeat, c);
}

void
register_beat_now(struct client *c)
{
    if (c->registered && c->heartbeat_call == 0)
        heartbeat_in(c, 0);
}

/* ---- registration ----------------------------------------------------------------------------- */

static void
on_registered(void *arg, const struct err *e, const void *resp)
{
    struct client *c = arg;
    c->register_call = 0;
    c->registering = false;
    if (c->stopping) {
        /* nothing */
    } else if (!e) {
        if (!c->registered)
            log_info("client", "node registered", "node_id", c->node_id, NULL);
        note_servers(c, resp);
        c->registered = true;
        c->backoff_ms = 0;
        c->index = 0; /* the list of a new record starts anew */
        if (c->fingerprint_changed)
            send_register(c);
        /* A registered node is "initializing" until its first heartbeat. */
        timer_stop(c->heartbeat_timer);
        c->heartbeat_timer = NULL;
        send_heartbeat(c);
    } else {
        int64_t ms = client_backoff(&c->backoff_ms);
        log_warn("client", "registration failed", "error", e->text, "retry_in",
                 LOG_DUR(ms * NS_PER_MS), NULL);
        timer_stop(c->register_timer);
        c->register_timer = timer_start(c->loop, ms, on_register_timer, c);
    }
    client_release(c);
}

static void
send_register(struct client *c)
{
    if (c->stopping || c->registering)
        return;
    c->registering = true;
    c->fingerprint_changed = false;
    timer_stop(c->heartbeat_timer);
    c->heartbeat_timer = NULL;
    struct node_register_request req = {.node = c->node};
    struct rpc_request r = {RPC_NODE_REGISTER, &req, NULL, 0};
    client_hold(c);
    c->register_call = rpc_send(c->rpc, &r, on_registered, c);
}

void
register_start(struct client *c)
{
    timer_stop(c->register_timer);
    c->register_timer = NULL;
    node_build(c);
    if (c->registering) {
        c->fingerprint_changed = true;
        return;
    }
    send_register(c);
}

void
register_stop(struct client *c)
{
    timer_stop(c->register_timer);
    timer_stop(c->heartbeat_timer);
    c->register_timer = c->heartbeat_timer = NULL;
    if (c->register_call)
        rpc_cancel(c->rpc, c->register_call);
    if (c->heartbeat_call)
        rpc_cancel(c->rpc, c->heartbeat_call);
}
