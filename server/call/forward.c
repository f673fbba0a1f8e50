/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls that the leader answers, asked here: passed on over a connection of this server to it, over
 * which nodes that are connected here are reached as well. A call waits a second for a leader. A
 * call that may have been carried out is not repeated unless it reads: a write is only when it was
 * refused at the door (No cluster leader), or was not sent.
 *
 * It bears the term in which its leader leads, and is passed on once; there it waits until the
 * leader serves. A call that lay in a cut connection, or before a server standing still, is refused
 * when it comes after all: no write overtakes those acknowledged meanwhile.
 */
#include <string.h>

#include "common/mem.h"
#include "server/call/call_int.h"
#include "server/call/endpoint.h"

enum { RETRY_MS = 100, SPARE_MS = 500, LOST_MS = 500 };

/* A connection to a server that leads or led. */
struct to_leader {
    struct to_leader *next;
    char *addr;
    struct rpc_client *client;
};

struct forwards {
    struct server *s;
    struct loop *loop;
    struct rpc_service node; /* what the other side may call over a connection of ours */
    struct to_leader *leaders;
    struct call *waiting, *sent;
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
forward_too_late(const struct call *c)
{
    char addr[256];
    uint64_t now;
    return c->env->term != 0 && !(server_leader_at(c->s, addr, sizeof(addr), &now) &&
                                  now == c->env->term && str_eq(addr, server_cfg(c->s)->rpc_addr));
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
    const struct dialer d = server_dialer(s, t, all->loop, server_cfg(s)->region);
    t->client = rpc_dial(&d, &one, &e);
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
list_in(struct call **head, struct call *c)
{
    struct forward *f = &c->forward;
    f->next = *head;
    f->at = head;
    if (f->next != NULL)
        f->next->forward.at = &f->next;
    *head = c;
}

static void
list_out(struct call *c)
{
    struct forward *f = &c->forward;
    if (f->at == NULL)
        return;
    *f->at = f->next;
    if (f->next != NULL)
        f->next->forward.at = f->at;
    f->at = NULL;
}

static void
fail_without_leader(struct call *c)
{
    list_out(c);
    call_failf(c, -ERR_NO_LEADER, "No cluster leader");
}

/* Until there is another leader, or it is asked again. */
static void
wait_more(struct call *c)
{
    const struct env *env = server_env(c->s);
    struct forwards *all = server_forwards(c->s);
    int64_t left = c->forward.until_ms - env_mono_ms(env);
    call_enter(c, CALL_WAITING);
    if (left <= 0 || all->stopping) {
        fail_without_leader(c);
        return;
    }
    list_in(&all->waiting, c);
    c->forward.timer = env_timer(env, left < RETRY_MS ? left : RETRY_MS, forward_try, c);
}

/* A node has proved itself to the leader, over this server. */
static void
note_node(const struct call *c)
{
    const char *const *node = type_member(c->method->req, c->req, "NodeID");
    if (node != NULL && !str_empty(*node) &&
        type_member(c->method->req, c->req, "SecretID") != NULL)
        way_note(c->s, c->rpc, *node);
}

static bool
may_repeat(const struct call *c, const struct err *e)
{
    bool reads = c->method->flags & RPC_READ;
    if (atomic_load(&c->cancelled) || server_forwards(c->s)->stopping)
        return false;
    return c->forward.again || e->code == -ERR_NO_LEADER || e->code == -ERR_UNAVAILABLE ||
           (reads && (e->code == -ERR_CLOSED || e->code == -ERR_NOT_LEADER));
}

static void
forward_answered(void *arg, const struct err *e, const void *resp)
{
    struct call *c = arg;
    struct forward *f = &c->forward;
    int64_t now = env_mono_ms(server_env(c->s));
    list_out(c);
    f->to = NULL;
    env_timer_stop(server_env(c->s), TAKE(f->timer));
    if (e == NULL) {
        note_node(c);
        rpc_reply(call_leave(c), resp);
    } else if (may_repeat(c, e)) {
        if (f->again ||
            now - f->sent_ms >= FORWARD_WAIT_MS) /* that leader was lost now, not before */
            f->until_ms = now + FORWARD_WAIT_MS;
        f->again = false;
        wait_more(c);
    } else if (f->lost) {
        call_failf(c, -ERR_NOT_LEADER, "the leadership was lost; the write may still be committed");
    } else {
        call_fail(c, e);
    }
}

void
forward_give_up(struct call *c)
{
    struct forward *f = &c->forward;
    if (c->state == CALL_FORWARDED) {
        rpc_cancel(f->to->client, f->id); /* forward_answered() comes */
        return;
    }
    env_timer_stop(server_env(c->s), f->timer);
    list_out(c);
    call_failf(c, -ERR_CANCELED, "canceled");
}

static void
forward_send(struct call *c, uint64_t term)
{
    struct forward *f = &c->forward;
    struct rpc_envelope e = *c->env;
    e.node_names = c->node_names;
    f->sent_ms = env_mono_ms(server_env(c->s));
    int64_t left = rpc_call_deadline_ms(c->rpc) - f->sent_ms;
    e.hops++;
    e.term = term;
    struct rpc_request q = {c->method->id, c->req, &e, left > 0 ? left + SPARE_MS : 1,
                            rpc_call_encoded(c->rpc)};
    call_enter(c, CALL_FORWARDED);
    list_in(&server_forwards(c->s)->sent, c);
    f->id = rpc_send(f->to->client, &q, forward_answered, c);
}

static void
forward_try(void *arg)
{
    struct call *c = arg;
    uint64_t term = 0;
    list_out(c);
    c->forward.timer = NULL;
    if (server_is_leader(c->s))
        call_again(c);
    else if (forward_too_late(c))
        fail_without_leader(c);
    else if ((c->forward.to = leader_now(c->s, &term)) != NULL)
        forward_send(c, term);
    else
        wait_more(c);
}

void
forward_start(struct call *c)
{
    c->forward = (struct forward){.until_ms = env_mono_ms(server_env(c->s)) + FORWARD_WAIT_MS};
    forward_try(c);
}

/* --- all --- */

static void
give_up(void *arg)
{
    struct call *c = arg;
    c->forward.timer = NULL;
    c->forward.lost = true;
    rpc_cancel(c->forward.to->client, c->forward.id);
}

/* Leaves a leader that does not lead any more. If it lives, it says so soon. It may stand still:
 * then reads go to the next one at once, and who waits for a write is told a while later. */
static void
leave_old_leader(struct call *c)
{
    struct forward *f = &c->forward;
    if ((c->method->flags & RPC_READ) || !rpc_client_up(f->to->client)) { /* or it was not sent */
        f->again = true;
        rpc_cancel(f->to->client, f->id); /* forward_answered() comes in a later turn */
    } else if (f->timer == NULL) {
        f->timer = env_timer(server_env(c->s), LOST_MS, give_up, c);
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
        for (struct call *c = all->sent; c != NULL; c = c->forward.next)
            c->forward.again |= c->forward.to == t;
        rpc_client_close(t->client);
        mem_free(t);
        at = &all->leaders;
    }
    char addr[256];
    bool known = server_leader_addr(all->s, addr, sizeof(addr));
    for (struct call *c = all->sent; known && c != NULL; c = c->forward.next)
        if (!str_eq(c->forward.to->addr, addr))
            leave_old_leader(c);
    for (struct call *c = all->waiting; c != NULL; c = c->forward.next) {
        env_timer_stop(server_env(all->s), c->forward.timer);
        c->forward.timer = env_timer(server_env(all->s), 0, forward_try, c);
    }
}

void
forwards_stop(struct forwards *all)
{
    all->stopping = true;
    while (all->waiting != NULL) {
        struct call *c = all->waiting;
        env_timer_stop(server_env(all->s), c->forward.timer);
        fail_without_leader(c);
    }
    while (all->leaders != NULL) {
        struct to_leader *t = all->leaders;
        all->leaders = t->next;
        rpc_client_close(t->client);
        mem_free(t);
    }
}
