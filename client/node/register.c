/* SPDX-License-Identifier: Apache-2.0
 *
 * Registration, and heartbeats behind it. First the heartbeats, then the wait for the first answer
 * of a server, the registration, and at the end who starts and stops them.
 */
#include "client/node/register.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "api/terms.h"
#include "client/node/node.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"

#define INTRODUCTION_FILE "intro_token.jwt"

enum {
    INTRODUCTION_MAX = 8192,
    HEARTBEAT_WAIT_MS = 5000,
    RETRY_PART = 8,         /* of a TTL, which is long where there are many nodes */
    TTL_UNHEARD_MS = 10000, /* the least that servers give by default */
    LEADERLESS_MAX =
        2 /* an election takes less than that; a server that is cut off has none for long */
};

static void send_register(struct registration *r);
static void send_heartbeat(struct registration *r);

static void
on_register_timer(void *arg)
{
    struct registration *r = arg;
    r->timer = NULL;
    send_register(r);
}

static void
on_heartbeat_timer(void *arg)
{
    struct registration *r = arg;
    r->heartbeat_timer = NULL;
    send_heartbeat(r);
}

static void
heartbeat_in(struct registration *r, int64_t ms)
{
    timer_stop(r->heartbeat_timer);
    r->heartbeat_timer = timer_start(r->g->loop, ms, on_heartbeat_timer, r);
}

/* A lost network may be back at any moment, and then all waits for the heartbeat. An agent that
 * began while it was alone was given no TTL yet. */
static int64_t
retry_ms(struct registration *r)
{
    int64_t most = (r->ttl_ns > 0 ? r->ttl_ns / NS_PER_MS : TTL_UNHEARD_MS) / RETRY_PART;

    if (r->backoff_ms > most)
        r->backoff_ms = most; /* not less than the first */
    return backoff_next(&r->backoff_ms);
}

/* A little before the time the server gave. */
static int64_t
heartbeat_pace_ms(const struct registration *r)
{
    int64_t ms = r->ttl_ns / NS_PER_MS;
    if (r->g->beat_most_ms > 0 && r->g->beat_most_ms < ms)
        ms = r->g->beat_most_ms;
    if (ms < 100)
        ms = 100;
    return ms - (int64_t)(rand_u64() % (uint64_t)(ms / 10 + 1));
}

static void
note_servers(struct registration *r, const struct node_update_response *u)
{
    if (u->heartbeat_ttl > 0)
        r->ttl_ns = u->heartbeat_ttl;
    struct err e = ERR_INIT;
    if (u->servers.n > 0 && known_set(r->known, &u->servers, &e) < 0)
        log_warn("client", "the servers told addresses that are none", "error", e.text, NULL);
}

/* --- heartbeats --- */

static void
beat_answered(struct registration *r, const struct node_update_response *u)
{
    note_servers(r, u);
    r->last_heartbeat_ns = clock_mono_ns();
    r->events->heard(r->arg, r->sent_ns);
    r->backoff_ms = 0;
    r->leaderless = 0;
    heartbeat_in(r, heartbeat_pace_ms(r));
    /* the answer to the one that was written may have been lost */
    bool news = u->index != 0 || u->node_modify_index != r->g->node_index;
    r->g->node_index = u->node_modify_index;
    r->events->beaten(r->arg, news);
    if (node_disk_grew(r->g))
        register_start(r);
}

/* The server that is asked may be cut off from the others, which this node reaches. */
static void
note_leaderless(struct registration *r, const struct err *e)
{
    bool none = e->code == -ERR_NO_LEADER || e->code == -ERR_NOT_LEADER;
    r->leaderless = none ? r->leaderless + 1 : 0;
    if (r->leaderless < LEADERLESS_MAX || r->g->cfg.leave == NULL)
        return;
    r->leaderless = 0;
    r->g->cfg.leave(r->g->cfg.servers_arg);
}

static void
on_heartbeat(void *arg, const struct err *e, const void *resp)
{
    struct registration *r = arg;
    r->heartbeat_call = 0;
    if (r->g->stopping) {
        /* nothing */
    } else if (!e) {
        beat_answered(r, resp);
    } else if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN) {
        log_warn("client", "the servers do not know this node: registering again", "error", e->text,
                 NULL);
        r->registered = false;
        send_register(r);
    } else {
        int64_t ms = retry_ms(r);
        note_leaderless(r, e);
        log_warn("client", "heartbeat failed", "error", e->text, "retry_in",
                 LOG_DUR(ms * NS_PER_MS), NULL);
        heartbeat_in(r, ms);
    }
    hold_release(&r->g->hold);
}

static void
send_heartbeat(struct registration *r)
{
    if (r->g->stopping || !r->registered || r->heartbeat_call != 0)
        return;
    const struct rpc_envelope env = ground_proof(r->g);
    struct node_update_status_request req = {.status = NODE_READY};
    int64_t timeout = r->ttl_ns > 0 ? r->ttl_ns / NS_PER_MS : 10 * 1000;
    /* A server that says nothing is left in time for another one to hear the node. */
    if (known_others(r->known))
        timeout = timeout / 2 < HEARTBEAT_WAIT_MS ? timeout / 2 : HEARTBEAT_WAIT_MS;
    struct rpc_request q = {RPC_NODE_UPDATE_STATUS, &req, &env, timeout};
    hold_take(&r->g->hold);
    r->sent_ns = clock_boot_ns();
    r->heartbeat_call = rpc_send(r->g->rpc, &q, on_heartbeat, r);
}

void
register_beat_now(struct registration *r)
{
    if (r->registered && r->heartbeat_call == 0)
        heartbeat_in(r, 0);
}

/* --- the first answer of a server (client { server_join }) --- */

static void
nobody_answered(void *arg)
{
    struct registration *r = arg;
    r->join_timer = NULL;
    log_error("client", "no server answered, as often as server_join.retry_max says: it ends",
              NULL);
    log_fatal_exit();
}

static void
expect_answer(struct registration *r)
{
    const struct agent_client_join *j = r->g->cfg.agent->server_join;
    if (j == NULL || j->retry_max_attempts == 0)
        return;
    int64_t ms = (j->retry_interval + NS_PER_MS - 1) / NS_PER_MS;
    ASSERT(j->retry_max_attempts > 0 && ms > 0);
    if (j->retry_max_attempts <= INT64_MAX / 2 / ms)
        r->join_timer = timer_start(r->g->loop, j->retry_max_attempts * ms, nobody_answered, r);
}

/* One that has no leader yet is there all the same. */
static void
note_answer(struct registration *r, const struct err *e)
{
    if (e != NULL && e->code != -ERR_NO_LEADER && e->code != -ERR_NOT_LEADER &&
        e->code != -ERR_FORBIDDEN && e->code != -ERR_INVALID)
        return;
    timer_stop(r->join_timer);
    r->join_timer = NULL;
}

/* --- registration --- */

static void
on_registered(void *arg, const struct err *e, const void *resp)
{
    struct registration *r = arg;
    r->call = 0;
    r->under_way = false;
    note_answer(r, e);
    if (r->g->stopping) {
        /* nothing */
    } else if (!e) {
        if (!r->registered)
            log_info("client", "node registered", "node_id", r->g->node_id, NULL);
        note_servers(r, resp);
        r->events->heard(r->arg, r->register_sent_ns);
        r->registered = true;
        r->backoff_ms = 0;
        r->events->registered(r->arg);
        if (r->again)
            send_register(r);
        /* A registered node is "initializing" until its first heartbeat. */
        timer_stop(r->heartbeat_timer);
        r->heartbeat_timer = NULL;
        send_heartbeat(r);
    } else {
        int64_t ms = retry_ms(r);
        note_leaderless(r, e);
        log_warn("client", "registration failed", "error", e->text, "retry_in",
                 LOG_DUR(ms * NS_PER_MS), NULL);
        timer_stop(r->timer);
        r->timer = timer_start(r->g->loop, ms, on_register_timer, r);
    }
    hold_release(&r->g->hold);
}

/* Reads the token that introduces this node, until a server knows the node. The operator may put
 * the file here while servers refuse. NULL: there is none. */
static const char *
register_introduction(const void *ctx, const struct registration *r)
{
    char *text = NULL;
    if (r->registered)
        return NULL;
    const char *path = mem_printf(ctx, "%s/" INTRODUCTION_FILE, r->g->cfg.state_dir);
    int rc = file_read(ctx, AT_FDCWD, path, INTRODUCTION_MAX, &text, NULL);
    if (rc < 0 && rc != -ENOENT)
        log_warn("client", "the introduction of this node cannot be read", "path", path, "error",
                 err_name(rc), NULL);
    if (rc < 0)
        return NULL;
    text[strcspn(text, " \r\n\t")] = '\0';
    return text;
}

static void
send_register(struct registration *r)
{
    if (r->g->stopping || r->under_way)
        return;
    r->under_way = true;
    r->again = false;
    timer_stop(r->heartbeat_timer);
    r->heartbeat_timer = NULL;
    const struct rpc_envelope env = ground_proof(r->g);
    auto_mem void *tmp = mem_ctx("register");
    struct node_register_request req = {.node = r->g->node,
                                        .introduction = register_introduction(tmp, r)};
    struct rpc_request q = {RPC_NODE_REGISTER, &req, &env, 0};
    hold_take(&r->g->hold);
    r->register_sent_ns = clock_boot_ns();
    r->call = rpc_send(r->g->rpc, &q, on_registered, r);
}

void
register_start(struct registration *r)
{
    timer_stop(r->timer);
    r->timer = NULL;
    node_build(r->g, r->meta);
    if (r->under_way) {
        r->again = true;
        return;
    }
    send_register(r);
}

static void
on_first(void *arg)
{
    struct registration *r = arg;
    r->timer = NULL;
    register_start(r);
}

void
register_start_in(struct registration *r, int64_t ms)
{
    expect_answer(r);
    if (!r->under_way && !r->registered)
        r->timer = timer_start(r->g->loop, ms, on_first, r);
}

void
register_stop(struct registration *r)
{
    timer_stop(r->timer);
    timer_stop(r->heartbeat_timer);
    timer_stop(r->join_timer);
    r->timer = r->heartbeat_timer = r->join_timer = NULL;
    if (r->call)
        rpc_cancel(r->g->rpc, r->call);
    if (r->heartbeat_call)
        rpc_cancel(r->g->rpc, r->heartbeat_call);
}
