/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that the leader answers, asked here: passed on over a connection of this server to it, over
 * which nodes that are connected here are reached as well. A call waits a second for a leader. One
 * that may have been carried out is not repeated unless it reads: a write is only when it was
 * refused at the door (No cluster leader), or was not sent.
 *
 * It bears the term in which its leader leads, and is passed on once; there it waits until that one serves.
 * What lay in a connection that was cut, or before a server that stood still, is refused when it comes
 * after all, so that no write overtakes those that were acknowledged meanwhile.
 */
#include <string.h>

#include "common/mem.h"
#include "server/rpc/endpoint_int.h"

enum { RETRY_MS = 100, SPARE_MS = 500, LOST_MS = 500 };

/* A connection to a server that leads or led. */
struct to_leader {
    struct to_leader *next;
    char *addr;
    struct rpc_client *client;
};

struct forward {
    struct forward *next, **at; /* in the list of those that wait */
    struct server *s;
    struct rpc_call *call;
    const void *req;
    struct timer *timer;  /* waits; NULL: it does not */
    struct to_leader *to; /* sent; NULL: it is not */
    uint64_t id;
    int64_t sent_ms, until_ms;
    bool again; /* asked of the next leader: it was not sent, or it reads */
    bool lost;  /* sent to a leader that was lost, and does not answer */
};

struct forwards {
    struct server *s;
    struct loop *loop;
    struct rpc_service node; /* what the other side may call over a connection of ours */
    struct to_leader *leaders;
    struct forward *waiting, *sent;
    bool stopping;
};

struct forwards *
forwards_new(const void *ctx, struct loop *l, struct server *s, rpc_handler *handle)
{
    struct forwards *f = mem_new(ctx, struct forwards);
    *f = (struct forwards){.s = s, .loop = l, .node = {RPC_CLIENT_HTTP, handle}};
    return f;
}

bool
forward_too_late(struct server *s, const struct rpc_envelope *env)
{
    char addr[256];
    uint64_t now;
    return env->term != 0 && !(server_leader_at(s, addr, sizeof(addr), &now) && now == env->term &&
                               str_eq(addr, server_cfg(s)->rpc_addr));
}

static struct to_leader *
leader_now(struct server *s, uint64_t *ret_term)
{
    struct forwards *all = server_forwards(s);
    char addr[256];
    if (all->stopping || !server_leader_at(s, addr, sizeof(addr), ret_term) ||
        str_eq(addr, server_cfg(s)->rpc_addr))
        return NULL;
    for (struct to_leader *t = all->leaders; t != NULL; t = t->next)
        if (str_eq(t->addr, addr))
            return t;
    struct to_leader *t = mem_new(all, struct to_leader);
    struct str_list one = {(const char *[]){addr}, 1};
    struct err e = ERR_INIT;
    t->addr = mem_strdup(t, addr);
    t->client = rpc_dial(all->loop, &one, NULL, &e);
    if (t->client == NULL) {
        mem_free(t);
        return NULL;
    }
    rpc_serve(t->client, &all->node, 1, s);
    t->next = all->leaders;
    all->leaders = t;
    return t;
}

struct rpc_link *
forward_link(struct server *s)
{
    uint64_t term;
    struct to_leader *t = leader_now(s, &term);
    return t != NULL ? rpc_client_link(t->client) : NULL;
}

/* --- one call --- */

static void forward_try(void *arg);

static void
list_in(struct forward **head, struct forward *f)
{
    f->next = *head;
    f->at = head;
    if (f->next != NULL)
        f->next->at = &f->next;
    *head = f;
}

static void
list_out(struct forward *f)
{
    if (f->at == NULL)
        return;
    *f->at = f->next;
    if (f->next != NULL)
        f->next->at = f->at;
    f->at = NULL;
}

static void
fail(struct forward *f, const struct err *e)
{
    list_out(f);
    rpc_call_on_cancel(f->call, NULL, NULL);
    rpc_fail(f->call, e);
}

static void
fail_without_leader(struct forward *f)
{
    struct err e = ERR_INIT;
    err_set(&e, -ERR_NO_LEADER, "No cluster leader");
    fail(f, &e);
}

/* Until there is another leader, or it is asked again. */
static void
wait_more(struct forward *f)
{
    const struct env *env = server_env(f->s);
    int64_t left = f->until_ms - env_mono_ms(env);
    if (left <= 0 || server_forwards(f->s)->stopping) {
        fail_without_leader(f);
        return;
    }
    list_in(&server_forwards(f->s)->waiting, f);
    f->timer = env_timer(env, left < RETRY_MS ? left : RETRY_MS, forward_try, f);
}

/* A node has proved itself to the leader, over this server. */
static void
note_node(struct forward *f)
{
    const struct type *t = rpc_call_method(f->call)->req;
    const char *const *node = type_member(t, f->req, "NodeID");
    if (node != NULL && !str_empty(*node) && type_member(t, f->req, "SecretID") != NULL)
        way_note(f->s, f->call, *node);
}

static bool
may_repeat(const struct forward *f, const struct err *e)
{
    bool reads = rpc_call_method(f->call)->flags & RPC_READ;
    return f->again || e->code == -ERR_NO_LEADER || e->code == -ERR_UNAVAILABLE ||
           (reads && (e->code == -ERR_CLOSED || e->code == -ERR_NOT_LEADER));
}

static void
answered(void *arg, const struct err *e, const void *resp)
{
    struct forward *f = arg;
    int64_t now = env_mono_ms(server_env(f->s));
    struct err lost = ERR_INIT;
    list_out(f);
    f->to = NULL;
    env_timer_stop(server_env(f->s), TAKE(f->timer));
    if (e != NULL && f->lost)
        err_set(&lost, -ERR_NOT_LEADER,
                "the leadership was lost; the write may still be committed");
    if (e == NULL) {
        note_node(f);
        rpc_call_on_cancel(f->call, NULL, NULL);
        rpc_reply(f->call, resp);
    } else if (may_repeat(f, e) && !server_forwards(f->s)->stopping) {
        if (f->again ||
            now - f->sent_ms >= FORWARD_WAIT_MS) /* that leader was lost now, not before */
            f->until_ms = now + FORWARD_WAIT_MS;
        f->again = false;
        wait_more(f);
    } else {
        fail(f, f->lost ? &lost : e);
    }
}

static void
cancelled(void *arg)
{
    struct forward *f = arg;
    if (f->to != NULL) {
        rpc_cancel(f->to->client, f->id); /* answered() comes */
        return;
    }
    struct err e = ERR_INIT;
    env_timer_stop(server_env(f->s), f->timer);
    err_set(&e, -ERR_CANCELED, "canceled");
    fail(f, &e);
}

static void
forward_try(void *arg)
{
    struct forward *f = arg;
    const struct env *env = server_env(f->s);
    int64_t now = env_mono_ms(env);
    list_out(f);
    f->timer = NULL;
    if (server_is_leader(f->s)) {
        rpc_call_on_cancel(f->call, NULL, NULL);
        (void)rpc_call_handle(f->call, server_forwards(f->s)->node.handle, f->s, f->req);
        return;
    }
    uint64_t term = 0;
    if (forward_too_late(f->s, rpc_call_envelope(f->call))) {
        fail_without_leader(f);
        return;
    }
    f->to = leader_now(f->s, &term);
    if (f->to == NULL) {
        wait_more(f);
        return;
    }
    struct rpc_envelope e = *rpc_call_envelope(f->call);
    int64_t left = rpc_call_deadline_ms(f->call) - now;
    e.hops++;
    e.term = term;
    struct rpc_request q = {rpc_call_method(f->call)->id, f->req, &e,
                            left > 0 ? left + SPARE_MS : 1};
    f->sent_ms = now;
    list_in(&server_forwards(f->s)->sent, f);
    f->id = rpc_send(f->to->client, &q, answered, f);
}

void
forward_start(struct server *s, struct rpc_call *call, const void *req)
{
    struct forward *f = mem_new(rpc_call_ctx(call), struct forward);
    *f = (struct forward){.s = s, .call = call, .req = req};
    f->until_ms = env_mono_ms(server_env(s)) + FORWARD_WAIT_MS;
    rpc_call_on_cancel(call, cancelled, f);
    forward_try(f);
}

/* --- all --- */

static void
give_up(void *arg)
{
    struct forward *f = arg;
    f->timer = NULL;
    f->lost = true;
    rpc_cancel(f->to->client, f->id);
}

/* What a leader was asked that does not lead any more. If it lives, it says so soon. It may stand
 * still: then reads go to the next one at once, and who waits for a write is told a while later. */
static void
leave_old_leader(struct forward *f)
{
    if (rpc_call_method(f->call)->flags & RPC_READ) {
        f->again = true;
        rpc_cancel(f->to->client, f->id); /* answered() comes in a later turn */
    } else if (f->timer == NULL) {
        f->timer = env_timer(server_env(f->s), LOST_MS, give_up, f);
    }
}

void
forwards_leader_changed(struct forwards *all)
{
    for (struct to_leader **at = &all->leaders; *at != NULL;) {
        struct to_leader *t = *at;
        if (rpc_client_up(t->client)) {
            at = &t->next;
            continue;
        }
        /* its calls were not sent: they go to the new one */
        *at = t->next;
        for (struct forward *f = all->sent; f != NULL; f = f->next)
            f->again |= f->to == t;
        rpc_client_close(t->client);
        mem_free(t);
        at = &all->leaders;
    }
    char addr[256];
    bool known = server_leader_addr(all->s, addr, sizeof(addr));
    for (struct forward *f = all->sent; known && f != NULL; f = f->next)
        if (!str_eq(f->to->addr, addr))
            leave_old_leader(f);
    struct forward *f = TAKE(all->waiting);
    while (f != NULL) {
        struct forward *next = f->next;
        f->at = NULL;
        env_timer_stop(server_env(all->s), f->timer);
        f->timer = env_timer(server_env(all->s), 0, forward_try, f);
        list_in(&all->waiting, f);
        f = next;
    }
}

void
forwards_stop(struct forwards *all)
{
    all->stopping = true;
    while (all->waiting != NULL) {
        struct forward *f = all->waiting;
        env_timer_stop(server_env(all->s), f->timer);
        fail_without_leader(f);
    }
    while (all->leaders != NULL) {
        struct to_leader *t = all->leaders;
        all->leaders = t->next;
        rpc_client_close(t->client);
        mem_free(t);
    }
}
