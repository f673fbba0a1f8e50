/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls about the servers of the cluster: what they say to each other, and how an operator changes them.
 */
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/core/core.h"
#include "server/rpc/endpoint_int.h"

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

/* --- handing over --- */

enum { TRANSFER_MS = 3000, TRANSFER_LOOK_MS = 10 };

struct transfer {
    struct server *s;
    struct rpc_call *call;
    struct raft_transfer_response resp;
    uint64_t to;
    int64_t until_ms;
    struct timer *timer;
};

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

static void
transfer_look(void *arg)
{
    struct transfer *t = arg;
    const struct env *env = server_env(t->s);
    auto_mem void *tmp = mem_ctx("transfer");
    struct core_status st;
    t->timer = NULL;
    server_raft_status(t->s, tmp, &st);
    if (st.leader == t->to) {
        rpc_call_on_cancel(t->call, NULL, NULL);
        rpc_reply(t->call, &t->resp);
    } else if (env_mono_ms(env) >= t->until_ms) {
        rpc_call_on_cancel(t->call, NULL, NULL);
        rpc_failf(t->call, -ERR_TIMEOUT,
                  "server \"%s\" did not take the leadership over in %d s: it may be dead, or too far behind",
                  t->resp.to->id, TRANSFER_MS / 1000);
    } else {
        t->timer = env_timer(env, TRANSFER_LOOK_MS, transfer_look, t);
    }
}

/* It goes on, and nobody hears how it ends. */
static void
transfer_cancelled(void *arg)
{
    struct transfer *t = arg;
    env_timer_stop(server_env(t->s), t->timer);
    rpc_failf(t->call, -ERR_CANCELED, "canceled");
}

void
call_operator_transfer_leadership(void *arg, struct rpc_call *call, const void *p)
{
    const struct raft_peer_request *req = p;
    void *ctx = rpc_call_ctx(call);
    struct transfer *t = mem_new(ctx, struct transfer);
    struct core_status st;
    bool by_id = !str_empty(req->id);
    size_t n = 0;
    struct server_member *known = server_members(arg, ctx, &n);

    *t = (struct transfer){.s = arg, .call = call};
    server_raft_status(arg, ctx, &st);
    for (size_t i = 0; i < st.conf.n; i++) {
        const struct peer *peer = &st.conf.v[i];
        struct raft_id_address *x = id_address(ctx, peer, known, n);
        bool number = by_id && str_eq(req->id, mem_printf(ctx, "%llu", (unsigned long long)peer->id));
        if (peer->id == st.leader)
            t->resp.from = x;
        bool hit = by_id ? number || str_eq(req->id, x->id) : str_eq(req->address, x->address);
        if (hit && peer->role == PEER_VOTER) {
            t->to = peer->id;
            t->resp.to = x;
        }
    }
    if (t->to == 0) {
        rpc_failf(call, -ERR_INVALID, "%s \"%.100s\" was not found in the Raft configuration",
                  by_id ? "id" : "address", str_or(by_id ? req->id : req->address, ""));
        return;
    }
    t->resp.noop = t->to == st.leader;
    if (!t->resp.noop)
        server_transfer(arg, t->to);
    t->until_ms = env_mono_ms(server_env(arg)) + TRANSFER_MS;
    rpc_call_on_cancel(call, transfer_cancelled, t);
    t->timer = env_timer(server_env(arg), 0, transfer_look, t);
}

/* --- removing --- */

enum { REMOVE_MS = 5000, REMOVE_LOOK_MS = 20, REMOVE_FAILED_MS = 8000 /* until a server has failed */ };

struct removal {
    struct server *s;
    struct rpc_call *call;
    uint64_t id;
    int64_t until_ms;
    uint64_t index; /* of the entry that says so */
    uint64_t gone;  /* last entry when it was none any more; 0: it is */
    int64_t asked_ms; /* whether it is alive; 0: that does not matter */
    bool prune, left;
    struct timer *timer;
};

/* It is a member no more, and that is committed. */
static bool
is_removed(struct removal *r)
{
    auto_mem void *tmp = mem_ctx("member");
    struct core_status st;
    server_raft_status(r->s, tmp, &st);
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
    const struct env *env = server_env(r->s);
    struct write_response resp = {.index = r->index};
    struct err e = ERR_INIT;
    r->timer = NULL;
    if (is_removed(r)) {
        rpc_call_on_cancel(r->call, NULL, NULL);
        rpc_reply(r->call, &resp);
    } else if (env_mono_ms(env) >= r->until_ms ||
               (r->gone == 0 && server_remove(r->s, r->id, &e) < 0)) {
        rpc_call_on_cancel(r->call, NULL, NULL);
        if (e.code == 0)
            err_set(&e, -ERR_TIMEOUT,
                    "the server is still a member: another change may be under way; try again");
        rpc_fail(r->call, &e);
    } else {
        r->timer = env_timer(env, REMOVE_LOOK_MS, removal_look, r);
    }
}

static void
removal_cancelled(void *arg)
{
    struct removal *r = arg;
    env_timer_stop(server_env(r->s), r->timer);
    rpc_failf(r->call, -ERR_CANCELED, "canceled");
}

static void
removal_stored(void *arg, const struct err *e, uint64_t index, struct fsm_result *res)
{
    struct removal *r = arg;
    (void)res;
    if (e != NULL) {
        rpc_fail(r->call, e);
        return;
    }
    r->index = index;
    rpc_call_on_cancel(r->call, removal_cancelled, r);
    r->timer = env_timer(server_env(r->s), 0, removal_look, r);
}

/* Of the server that is meant; 0 with an error. */
static uint64_t
removed_id(struct server *s, const void *ctx, const struct raft_peer_request *req, struct err *e)
{
    size_t n = 0;
    struct server_member *known = server_members(s, ctx, &n);
    struct core_status st;
    const char *what = !str_empty(req->id) ? "id" : !str_empty(req->address) ? "address" : "name";
    const char *is = str_or(!str_empty(req->id)        ? req->id
                            : !str_empty(req->address) ? req->address
                                                       : req->name,
                            "");
    uint64_t id = 0;
    server_raft_status(s, ctx, &st);
    for (size_t i = 0; i < n; i++) {
        const struct server_hello *h = known[i].hello;
        if (str_empty(req->name) || !str_eq(h->name, req->name))
            continue;
        id = h->id;
    }
    for (size_t i = 0; i < st.conf.n; i++) {
        const struct raft_id_address *x = id_address(ctx, &st.conf.v[i], known, n);
        const char *number = mem_printf(ctx, "%llu", (unsigned long long)st.conf.v[i].id);
        if (str_eq(what, "id") ? str_eq(is, x->id) || str_eq(is, number)
                               : str_eq(what, "address") && str_eq(is, x->address))
            id = st.conf.v[i].id;
    }
    if (id == 0)
        err_set(e, -ERR_INVALID, "%s \"%.100s\" %s", what, is,
                str_eq(what, "name") ? "is no server that is known"
                                     : "was not found in the Raft configuration");
    return id;
}

/* First it is written that the server is gone, or it would be made a member again. */
static void
removal_write(struct removal *r)
{
    struct server_gone gone = {.id = r->id, .left = r->left, .pruned = r->prune};
    struct intent in = {.server_gone = &gone};
    r->until_ms = env_mono_ms(server_env(r->s)) + REMOVE_MS;
    rpc_call_on_cancel(r->call, NULL, NULL);
    server_propose(r->s, &in, removal_stored, r);
}

/* One that is taken out because it failed is asked once more. */
static void
removal_wait(void *arg)
{
    struct removal *r = arg;
    auto_mem void *tmp = mem_ctx("removal");
    size_t n = 0;
    struct server_member *known = server_members(r->s, tmp, &n);
    const struct server_member *m = NULL;
    r->timer = NULL;
    for (size_t i = 0; i < n; i++)
        if (known[i].hello->id == r->id)
            m = &known[i];
    int64_t now = env_mono_ms(server_env(r->s));
    if (m == NULL || !m->alive) {
        removal_write(r);
    } else if (m->heard_ms == 0 || m->heard_ms > r->asked_ms || now - r->asked_ms >= REMOVE_FAILED_MS) {
        rpc_call_on_cancel(r->call, NULL, NULL);
        rpc_failf(r->call, -ERR_CONFLICT,
                  "server \"%.100s\" is alive, and would come back: stop it first, or remove it by "
                  "paddock operator raft remove-peer",
                  m->hello->name);
    } else {
        r->timer = env_timer(server_env(r->s), REMOVE_LOOK_MS, removal_wait, r);
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
    *r = (struct removal){.s = arg, .call = call, .prune = req->prune, .left = req->left};
    r->id = removed_id(arg, ctx, p, &e);
    server_raft_status(arg, ctx, &st);
    if (r->id != 0 && r->id == st.leader)
        err_set(&e, -ERR_CONFLICT,
                "this server leads: let another one lead first (paddock operator raft transfer-leadership)");
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
    rpc_call_on_cancel(call, removal_cancelled, r);
    removal_wait(r);
}

/* --- joining --- */

enum { JOIN_MS = 2000, JOIN_LOOK_MS = 20 };

struct joining {
    struct server *s;
    struct rpc_call *call;
    const struct str_list *addrs;
    size_t n;
    int64_t until_ms;
    struct timer *timer;
};

static void
joining_look(void *arg)
{
    struct joining *j = arg;
    const struct env *env = server_env(j->s);
    size_t n = server_joined(j->s, j->addrs);
    j->timer = NULL;
    if (n < j->n && env_mono_ms(env) < j->until_ms) {
        j->timer = env_timer(env, JOIN_LOOK_MS, joining_look, j);
        return;
    }
    struct server_join_response resp = {.num_joined = (int64_t)n, .error = ""};
    if (n < j->n)
        resp.error = mem_printf(rpc_call_ctx(j->call),
                                "%zu of %zu addresses did not answer in %d s; they are asked on",
                                j->n - n, j->n, JOIN_MS / 1000);
    rpc_call_on_cancel(j->call, NULL, NULL);
    rpc_reply(j->call, &resp);
}

static void
joining_cancelled(void *arg)
{
    struct joining *j = arg;
    env_timer_stop(server_env(j->s), j->timer);
    rpc_failf(j->call, -ERR_CANCELED, "canceled");
}

void
call_server_join(void *arg, struct rpc_call *call, const void *p)
{
    const struct server_join_request *req = p;
    struct joining *j = mem_new(rpc_call_ctx(call), struct joining);
    struct err e = ERR_INIT;
    *j = (struct joining){.s = arg, .call = call, .addrs = &req->addresses};
    j->n = server_join(arg, &req->addresses, &e);
    if (j->n < req->addresses.n) {
        rpc_reply(call, &(struct server_join_response){.error = e.text});
        return;
    }
    j->until_ms = env_mono_ms(server_env(arg)) + JOIN_MS;
    rpc_call_on_cancel(call, joining_cancelled, j);
    j->timer = env_timer(server_env(arg), 0, joining_look, j);
}
