/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls about the servers of the cluster: what they say to each other, and how an operator changes
 * them.
 */
#include "common/mem.h"
#include "common/str.h"
#include "server/call/method.h"
#include "server/core/core.h"
#include "server/leader/leader.h"

/* --- other servers --- */

void
call_server_hello(void *arg, struct rpc_call *call, const void *p)
{
    struct server_hello *h = server_hello(arg, rpc_call_ctx(call), p);

    if (h != NULL)
        rpc_reply(call, h);
    else
        rpc_failf(call, -ERR_UNAVAILABLE, "this server is a cluster of its own, or stops");
}

void
call_server_consent(void *arg, struct rpc_call *call, const void *p)
{
    struct empty resp = {0};
    struct err e = ERR_INIT;

    if (server_consent(arg, p, &e) < 0)
        rpc_fail(call, &e);
    else
        rpc_reply(call, &resp);
}

void
call_server_sync(void *arg, struct rpc_call *call, const void *p)
{
    struct server_sync *resp = mem_new(rpc_call_ctx(call), struct server_sync);
    struct err e = ERR_INIT;

    if (server_sync(arg, resp, p, resp, &e) < 0)
        rpc_fail(call, &e);
    else
        rpc_reply(call, resp);
}

void
call_sched_workers(void *arg, struct rpc_call *call, const void *p)
{
    (void)p;
    rpc_reply(call, leader_workers(server_leader(arg), rpc_call_ctx(call)));
}

void
call_sched_attempt(void *arg, struct rpc_call *call, const void *p)
{
    leader_lend(server_leader(arg), call, p);
}

static void
keyring_done(void *arg, const struct err *e, const struct gossip_keys_response *resp)
{
    struct rpc_call *call = arg;
    if (e != NULL)
        rpc_fail(call, e);
    else
        rpc_reply(call, resp);
}

/* Answers callers of this process alone: whoever reaches the port of RPC is not told keys. */
void
call_operator_gossip_keyring(void *arg, struct rpc_call *call, const void *p)
{
    const struct gossip_keys_request *req = p;
    if (rpc_call_link(call) == NULL || !str_eq(rpc_call_peer(call), "local"))
        rpc_failf(call, -ERR_FORBIDDEN,
                  "the key ring of gossip is asked for at the agent of a server");
    else
        server_gossip_keys(arg, req->op, req->key, keyring_done, call);
}

void
call_operator_raft_configuration(void *arg, struct rpc_call *call, const void *p)
{
    void *ctx = rpc_call_ctx(call);
    struct raft_configuration resp = {0};
    struct core_status st;
    size_t n = 0;
    struct server_member *known = server_members(arg, ctx, &n);

    (void)p;
    server_raft_status(arg, ctx, &st);
    for (size_t i = 0; i < st.conf.n; i++) {
        const struct peer *peer = &st.conf.v[i];
        struct raft_server *r = mem_new(ctx, struct raft_server);
        *r = (struct raft_server){.id = mem_printf(ctx, "%llu", (unsigned long long)peer->id),
                                  .node = "(unknown)",
                                  .address = peer->addr,
                                  .leader = peer->id == st.leader,
                                  .voter = peer->role == PEER_VOTER,
                                  .raft_protocol = "3"};
        for (size_t k = 0; k < n; k++)
            if (known[k].hello->id == peer->id) {
                r->id = str_or(known[k].hello->node, r->id);
                r->node = known[k].hello->name;
            }
        list_add(ctx, resp.servers, r);
    }
    resp.index = st.commit;
    rpc_reply(call, &resp);
}

/* --- calls that wait for what others do --- */

enum { LOOK_MS = 20 };

/* The first member of what a call waits with. Who cancels the call ends the waiting, not what it
 * waits for. */
struct wait {
    struct server *s;
    struct rpc_call *call;
    loop_fn *look; /* ends with wait_more() or wait_over() and an answer */
    int64_t until_ms;
    struct timer *timer;
};

static void
wait_look(void *arg)
{
    struct wait *w = arg;
    w->timer = NULL;
    w->look(w);
}

static void
wait_more(struct wait *w)
{
    ASSERT(w->timer == NULL); /* only a look asks for more */
    w->timer = env_timer(server_env(w->s), LOOK_MS, wait_look, w);
}

static void
wait_over(struct wait *w)
{
    rpc_call_on_cancel(w->call, NULL, NULL);
}

static void
wait_cancelled(void *arg)
{
    struct wait *w = arg;
    env_timer_stop(server_env(w->s), w->timer);
    rpc_failf(w->call, -ERR_CANCELED, "canceled");
}

static bool
wait_late(const struct wait *w)
{
    return env_mono_ms(server_env(w->s)) >= w->until_ms;
}

static void
wait_begin(struct wait *w, loop_fn *look, int64_t most_ms)
{
    w->look = look;
    w->until_ms = env_mono_ms(server_env(w->s)) + most_ms;
    rpc_call_on_cancel(w->call, wait_cancelled, w);
    w->timer = env_timer(server_env(w->s), 0, wait_look, w);
}

/* --- a member, as an operator names it --- */

static struct raft_id_address *
id_address(const void *ctx, const struct peer *p, const struct server_member *known, size_t n)
{
    struct raft_id_address *x = mem_new(ctx, struct raft_id_address);
    *x = (struct raft_id_address){.address = mem_strdup(x, p->addr),
                                 .id = mem_printf(x, "%llu", (unsigned long long)p->id)};
    for (size_t i = 0; i < n; i++)
        if (known[i].hello->id == p->id && !str_empty(known[i].hello->node))
            x->id = mem_strdup(x, known[i].hello->node);
    return x;
}

/* By its id (as members show it, or Raft's number) or its address; NULL with an error that says
 * which. */
static const struct peer *
peer_meant(const void *ctx, const struct core_status *st, const struct server_member *known,
           size_t n, const struct raft_peer_request *req, struct err *e)
{
    bool by_id = !str_empty(req->id);
    const char *is = str_or(by_id ? req->id : req->address, "");
    for (size_t i = 0; i < st->conf.n; i++) {
        const struct peer *p = &st->conf.v[i];
        const struct raft_id_address *x = id_address(ctx, p, known, n);
        const char *number = mem_printf(ctx, "%llu", (unsigned long long)p->id);
        if (by_id ? str_eq(is, x->id) || str_eq(is, number) : str_eq(is, x->address))
            return p;
    }
    err_set(e, -ERR_INVALID, "%s \"%.100s\" was not found in the Raft configuration",
            by_id ? "id" : "address", is);
    return NULL;
}

/* --- handing over --- */

enum { TRANSFER_MS = 3000, TRANSFER_AGAIN_MS = 1000 };

struct transfer {
    struct wait w;
    struct raft_transfer_response resp;
    uint64_t to;
    int64_t again_ms;
};

/* A transfer that takes longer than an election is dropped by Raft without a word (a machine that
 * is slow for a moment): asked for again while this server leads. */
static void
transfer_ask(struct transfer *t)
{
    int64_t now = env_mono_ms(server_env(t->w.s));

    if (now < t->again_ms || !server_is_leader(t->w.s))
        return;
    server_transfer(t->w.s, t->to);
    t->again_ms = now + TRANSFER_AGAIN_MS;
}

static void
transfer_look(void *arg)
{
    struct transfer *t = arg;
    auto_mem void *tmp = mem_ctx("transfer");
    struct core_status st;
    server_raft_status(t->w.s, tmp, &st);
    bool done = st.leader == t->to;
    if (!done && !wait_late(&t->w)) {
        transfer_ask(t);
        wait_more(&t->w);
        return;
    }
    wait_over(&t->w);
    if (done)
        rpc_reply(t->w.call, &t->resp);
    else
        rpc_failf(t->w.call, -ERR_TIMEOUT,
                  "server \"%s\" did not take the leadership over in %d s: it may be dead, or too "
                  "far behind",
                  t->resp.to->id, TRANSFER_MS / 1000);
}

void
call_operator_transfer_leadership(void *arg, struct rpc_call *call, const void *p)
{
    void *ctx = rpc_call_ctx(call);
    struct transfer *t = mem_new(ctx, struct transfer);
    struct core_status st;
    struct err e = ERR_INIT;
    size_t n = 0;
    struct server_member *known = server_members(arg, ctx, &n);

    *t = (struct transfer){.w = {.s = arg, .call = call}};
    server_raft_status(arg, ctx, &st);
    const struct peer *to = peer_meant(ctx, &st, known, n, p, &e);
    if (to != NULL && to->role != PEER_VOTER)
        err_set(&e, -ERR_INVALID, "server \"%.100s\" has no vote, and cannot lead", to->addr);
    if (e.code != 0) {
        rpc_fail(call, &e);
        return;
    }
    t->to = to->id;
    t->resp.to = id_address(ctx, to, known, n);
    for (size_t i = 0; i < st.conf.n; i++)
        if (st.conf.v[i].id == st.leader)
            t->resp.from = id_address(ctx, &st.conf.v[i], known, n);
    t->resp.noop = t->to == st.leader;
    wait_begin(&t->w, transfer_look, TRANSFER_MS);
}

/* --- removing --- */

enum { REMOVE_MS = 5000, REMOVE_FAILED_MS = 8000 /* until a server has failed */ };

struct removal {
    struct wait w;
    uint64_t id;
    uint64_t index;   /* of the entry that says so */
    uint64_t gone;    /* last entry when it was none any more; 0: it is */
    int64_t asked_ms; /* whether it is alive */
    bool prune, left;
    bool abroad; /* of another region: it is no member of this one */
};

/* Says whether the server is a member no more, and that is committed. */
static bool
is_removed(struct removal *r)
{
    auto_mem void *tmp = mem_ctx("member");
    struct core_status st;
    server_raft_status(r->w.s, tmp, &st);
    for (size_t i = 0; i < st.conf.n; i++)
        if (st.conf.v[i].id == r->id)
            return false;
    if (r->gone == 0)
        r->gone = st.last;
    return st.commit >= r->gone;
}

static void
removal_look(void *arg)
{
    struct removal *r = arg;
    struct write_response resp = {.index = r->index};
    struct err e = ERR_INIT;
    bool done = is_removed(r);
    if (!done && wait_late(&r->w))
        err_set(&e, -ERR_TIMEOUT,
                "the server is still a member: another change may be under way; try again");
    else if (!done && r->gone == 0)
        (void)server_remove(r->w.s, r->id, &e);
    if (!done && e.code == 0) {
        wait_more(&r->w);
        return;
    }
    wait_over(&r->w);
    if (done) {
        server_forget(r->w.s, r->id, r->prune);
        rpc_reply(r->w.call, &resp);
    } else {
        rpc_fail(r->w.call, &e);
    }
}

static void
removal_stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct removal *r = arg;
    (void)res;
    if (e != NULL) {
        rpc_fail(r->w.call, e);
        return;
    }
    r->index = index;
    wait_begin(&r->w, removal_look, REMOVE_MS);
}

/* The id of the server that is meant, by its name also of a server that is no member, or of another
 * region; 0 with an error. */
static uint64_t
removed_id(struct server *s, const void *ctx, const struct raft_peer_request *req, bool *abroad,
           struct err *e)
{
    size_t n = 0;
    struct server_member *known = server_members(s, ctx, &n);
    struct core_status st;
    server_raft_status(s, ctx, &st);
    if (str_empty(req->name)) {
        const struct peer *p = peer_meant(ctx, &st, known, n, req, e);
        return p != NULL ? p->id : 0;
    }
    uint64_t id = 0;
    for (size_t i = 0; i < n; i++) /* one that began again has left under another id */
        if (str_eq(known[i].hello->name, req->name) && (id == 0 || !known[i].left)) {
            id = known[i].hello->id;
            *abroad = !str_eq(known[i].hello->region, server_cfg(s)->region);
        }
    if (id == 0)
        err_set(e, -ERR_NOT_FOUND, "name \"%.100s\" is no server that is known", req->name);
    return id;
}

/* First the log is told that the server is gone, or it would be made a member again. */
static void
removal_write(struct removal *r)
{
    struct server_gone gone = {.id = r->id, .left = r->left, .pruned = r->prune};
    struct intent in = {.server_gone = &gone};
    server_propose(r->w.s, &in, HOME_LOOP, removal_stored, r);
}

/* A server that is taken out because it failed is asked once more. */
static void
removal_wait(void *arg)
{
    struct removal *r = arg;
    auto_mem void *tmp = mem_ctx("removal");
    size_t n = 0;
    struct server_member *known = server_members(r->w.s, tmp, &n);
    const struct server_member *m = NULL;
    for (size_t i = 0; i < n; i++)
        if (known[i].hello->id == r->id)
            m = &known[i];
    bool failed = m == NULL || !m->alive;
    if (!failed && !r->abroad && m->heard_ms <= r->asked_ms && !wait_late(&r->w)) {
        server_ask(r->w.s, r->id);
        wait_more(&r->w);
        return;
    }
    wait_over(&r->w);
    if (failed && r->abroad) {
        server_forget(r->w.s, r->id, r->prune);
        rpc_reply(r->w.call, &(struct write_response){0});
    } else if (failed) {
        removal_write(r);
    } else {
        rpc_failf(r->w.call, -ERR_CONFLICT,
                  "server \"%.100s\" is alive, and would come back: stop it first, or remove it by "
                  "paddock operator raft remove-peer",
                  m->hello->name);
    }
}

void
call_operator_remove_peer(void *arg, struct rpc_call *call, const void *p)
{
    const struct raft_peer_request *req = p;
    void *ctx = rpc_call_ctx(call);
    struct removal *r = mem_new(ctx, struct removal);
    struct core_status st;
    struct err e = ERR_INIT;
    *r = (struct removal){
        .w = {.s = arg, .call = call}, .prune = req->prune, .left = req->left};
    r->id = removed_id(arg, ctx, p, &r->abroad, &e);
    server_raft_status(arg, ctx, &st);
    if (r->id != 0 && r->id == st.leader)
        err_set(&e, -ERR_CONFLICT,
                "this server leads: let another one lead first (paddock operator raft "
                "transfer-leadership)");
    if (e.code != 0) {
        rpc_fail(call, &e);
        return;
    }
    if (str_empty(req->name)) {
        removal_write(r);
        return;
    }
    r->asked_ms = env_mono_ms(server_env(arg));
    server_ask(arg, r->id);
    wait_begin(&r->w, removal_wait, REMOVE_FAILED_MS);
}

/* A server leaves by its own word: the same, of itself. */
void
call_server_leave(void *arg, struct rpc_call *call, const void *p)
{
    call_operator_remove_peer(arg, call, p);
}

/* --- joining --- */

enum { JOIN_MS = 2000 };

struct joining {
    struct wait w;
    const struct str_list *addrs;
    size_t n;
};

static void
joining_look(void *arg)
{
    struct joining *j = arg;
    struct err e = ERR_INIT;
    size_t n = server_joined(j->w.s, j->addrs, &e);
    if (n < j->n && !wait_late(&j->w)) {
        wait_more(&j->w);
        return;
    }
    struct server_join_response resp = {.num_joined = (int64_t)n, .error = "", .warning = ""};
    const char *silent =
        mem_printf(rpc_call_ctx(j->w.call),
                   "%zu of %zu addresses did not answer in %d s%s%s; they are asked on", j->n - n,
                   j->n, JOIN_MS / 1000, e.code != 0 ? ": " : "", e.text);
    if (n == 0)
        resp.error = silent;
    else if (n < j->n)
        resp.warning = silent;
    wait_over(&j->w);
    rpc_reply(j->w.call, &resp);
}

void
call_server_join(void *arg, struct rpc_call *call, const void *p)
{
    const struct server_join_request *req = p;
    struct joining *j = mem_new(rpc_call_ctx(call), struct joining);
    struct err e = ERR_INIT;
    *j = (struct joining){.w = {.s = arg, .call = call}, .addrs = &req->addresses};
    j->n = server_join(arg, &req->addresses, &e);
    if (j->n < req->addresses.n) {
        rpc_reply(call, &(struct server_join_response){.error = e.text, .warning = ""});
        return;
    }
    wait_begin(&j->w, joining_look, JOIN_MS);
}
