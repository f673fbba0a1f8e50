/* SPDX-License-Identifier: Apache-2.0
 *
 * A server among others: peers, founding and gossip put together, and what its endpoints ask of
 * them (host.h). Order to read: its cluster, gossip, members, changes, opening.
 */
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/addr.h"
#include "server/gossip/domain.h"
#include "server/gossip/gossip.h"
#include "server/host_int.h"
#include "server/peer/found.h"
#include "server/peer/grow.h"
#include "server/peer/peers.h"
#include "server/server.h"

enum { ADDRS_MS = 1000 };

/* --- its cluster --- */

/* Tells found.c of all servers of this region that gossip knows, when that counts for the first
 * time. */
static void
hear_all(void *arg)
{
    struct server *s = arg;
    auto_mem void *tmp = mem_ctx("members");
    size_t n = 0;
    struct swim_member *v = s->stopping ? NULL : gossip_members(s->gossip, tmp, &n);
    for (size_t i = 1; i < n; i++)
        if (str_eq(v[i].about->region, s->cfg.region))
            found_hears(s->found, v[i].about, v[i].state <= MEMBER_SUSPECT);
}

/* This server is of a cluster. */
static void
cluster_ready(void *arg, const char *cluster)
{
    struct server *s = arg;
    struct err e = ERR_INIT;
    env_post(&s->env, hear_all, s);
    (void)str_copy(s->cluster, sizeof(s->cluster), cluster);
    peers_set_cluster(s->peers, cluster);
    if (core_start(s->core, &e) == 0)
        return;
    log_error("server", "cannot start", "error", e.text, NULL);
    log_fatal_exit();
}

static bool
is_gone(void *arg, uint64_t id, struct server_gone *ret)
{
    struct server *s = arg;
    auto_mem void *tmp = mem_ctx("gone");
    struct state_txn *t = server_read_begin(s, tmp);
    const struct cluster_metadata *m = state_cluster(t, tmp);
    bool gone = false;
    for (size_t i = 0; m != NULL && i < m->gone.n; i++)
        if (m->gone.v[i]->id == id) {
            gone = true;
            *ret = *m->gone.v[i];
        }
    state_read_end(t);
    return gone;
}

const char *
server_cluster(const struct server *s)
{
    return s->cluster;
}

struct server_hello *
server_hello(struct server *s, const void *ctx, const struct server_hello *from)
{
    return s->found != NULL ? found_hello(s->found, ctx, from) : NULL;
}

int
server_consent(struct server *s, const struct server_consent_request *r, struct err *e)
{
    if (s->found == NULL)
        return err_set(e, -ERR_CONFLICT, "this server is a cluster of its own");
    return found_consent(s->found, r, e);
}

/* --- gossip --- */

/* A server alone is of a cluster that no other one is of. */
static struct server_hello *
hello_of_self(struct server *s, const void *ctx)
{
    struct server_hello *h = s->found != NULL ? found_hello(s->found, ctx, NULL) : NULL;
    if (h == NULL) {
        h = mem_new(ctx, struct server_hello);
        *h = (struct server_hello){.id = core_id(s->core),
                                   .node = s->cfg.node_id,
                                   .name = s->cfg.name,
                                   .addr = s->cfg.rpc_addr,
                                   .serf = s->cfg.serf_addr,
                                   .cluster = s->cfg.node_id,
                                   .expect = 1,
                                   .region = s->cfg.region,
                                   .datacenter = s->cfg.datacenter,
                                   .build = s->cfg.version,
                                   .zone = s->cfg.agent->redundancy_zone,
                                   .workers = s->cfg.workers};
    }
    h->seen.v = NULL; /* of the founding */
    h->seen.n = 0;
    return h;
}

static void
news_of_self(void *arg)
{
    struct server *s = arg;
    auto_mem void *tmp = mem_ctx("self");
    if (s->gossip != NULL && !s->stopping)
        gossip_set_self(s->gossip, hello_of_self(s, tmp));
    if (s->on_round != NULL)
        s->on_round(s->autopilot);
}

/* In the words that operators look for. */
static void
tell_event(const char *event, const struct server_hello *h)
{
    auto_mem void *tmp = mem_ctx("member");
    const char *at = str_or(h->serf, ""), *port = strrchr(at, ':');
    int n = port != NULL ? (int)(port - at) : 0;
    log_info("serf", mem_printf(tmp, "%s: %s %.*s", event, h->name, n, at), NULL);
}

static void domains_look(void *arg);

static void
domains_arm(struct server *s)
{
    int64_t due = domains_due(s->domains);
    if (s->domain_timer == NULL && due != INT64_MAX)
        s->domain_timer = env_timer(&s->env, due - env_mono_ms(&s->env), domains_look, s);
}

/* Tells of a domain that was lost as a whole in one line. */
static void
domains_look(void *arg)
{
    struct server *s = arg;
    auto_mem void *tmp = mem_ctx("domain");
    struct domain_event e;
    size_t n = 0;
    struct swim_member *v = gossip_members(s->gossip, tmp, &n);
    s->domain_timer = NULL;
    for (size_t i = 0; i < n; i++)
        if (v[i].state == MEMBER_SUSPECT)
            domains_wait(s->domains, env_mono_ms(&s->env), v[i].about);
    while (domains_take(s->domains, tmp, env_mono_ms(&s->env), &e)) {
        s->domains_failed++;
        if (e.servers.n == 1) {
            tell_event("EventMemberFailed", e.servers.v[0]);
            continue;
        }
        auto_buf struct buf names = BUF_INIT(GOSSIP_PACKET_MAX);
        for (size_t i = 0; i < e.servers.n; i++)
            buf_printf(&names, "%s%s", i > 0 ? ", " : "", e.servers.v[i]->name);
        log_warn("serf", "EventMemberFailed: servers of one zone went together", "zone", e.zone,
                 "region", e.region, "servers", buf_str(&names), NULL);
    }
    domains_arm(s);
}

static void
member_failed(struct server *s, const struct server_hello *h)
{
    if (str_empty(h->zone) || !domains_add(s->domains, env_mono_ms(&s->env), h)) {
        s->domains_failed++;
        tell_event("EventMemberFailed", h);
    }
    domains_arm(s);
}

static void
member_changed(void *arg, enum swim_change change, const struct server_hello *h)
{
    static const char *const words[] = {[SWIM_JOIN] = "EventMemberJoin",
                                        [SWIM_UPDATE] = "EventMemberUpdate",
                                        [SWIM_LEAVE] = "EventMemberLeave",
                                        [SWIM_REAP] = "EventMemberReap"};
    struct server *s = arg;
    struct server_gone gone;
    bool ours = str_eq(h->region, s->cfg.region);
    if (s->stopping)
        return;
    bool left = change == SWIM_FAILED && ours && is_gone(s, h->id, &gone);
    if (change == SWIM_FAILED && !left)
        member_failed(s, h);
    else
        tell_event(left ? words[SWIM_LEAVE] : words[change], h);
    if (ours && s->found != NULL && change != SWIM_REAP)
        found_hears(s->found, h, change == SWIM_JOIN || change == SWIM_UPDATE);
    if (s->members_changed != NULL)
        s->members_changed(s->leader);
}

/* Ends the server, when all were asked as often as retry_max says. */
static void
nobody_answered(void *arg, const struct err *e)
{
    (void)arg;
    log_error("serf", "no address to join answered, as often as retry_max says: this server ends",
              "error", e->text, NULL);
    log_fatal_exit();
}

int
server_sync(struct server *s, const void *ctx, const struct server_sync *req,
            struct server_sync *ret, struct err *e)
{
    if (s->gossip == NULL)
        return err_set(e, -ERR_UNAVAILABLE, "this server does not gossip, or stops");
    return gossip_sync(s->gossip, ctx, req, ret, e);
}

/* --- members --- */

/* One that is gone, and began again under another id. */
static bool
is_succeeded(const struct swim_member *v, size_t n, const struct swim_member *m)
{
    for (size_t i = 0; i < n && m->state > MEMBER_SUSPECT; i++)
        if (v[i].state <= MEMBER_SUSPECT && str_eq(v[i].about->name, m->about->name))
            return true;
    return false;
}

struct server_member *
server_members(struct server *s, const void *ctx, size_t *ret_n)
{
    size_t n = 0, shown = 0;
    struct swim_member *known = s->gossip != NULL ? gossip_members(s->gossip, ctx, &n) : NULL;
    struct server_member *v = mem_array(ctx, struct server_member, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct server_hello *h = known[i].about;
        struct server_gone gone = {0};
        bool alive = known[i].state <= MEMBER_SUSPECT;
        bool taken_out = !alive && str_eq(h->region, s->cfg.region) && is_gone(s, h->id, &gone);
        bool hidden = known[i].state == MEMBER_PRUNED || (taken_out && gone.pruned);
        if (!hidden && !is_succeeded(known, n, &known[i]))
            v[shown++] =
                (struct server_member){codec_clone(ctx, &type_server_hello, h), alive,
                                       taken_out || known[i].state == MEMBER_LEFT,
                                       s->found != NULL ? found_heard_ms(s->found, h->id) : 0};
    }
    if (n == 0)
        v[shown++] = (struct server_member){hello_of_self(s, ctx), true, false, 0};
    *ret_n = shown;
    return v;
}

void
server_gossip_figures(struct server *s, struct server_gossip_figures *ret)
{
    struct gossip_figures f = {0};
    if (s->gossip != NULL)
        gossip_figures(s->gossip, &f);
    *ret = (struct server_gossip_figures){.health = f.swim.health,
                                          .stalls = f.swim.stalls,
                                          .denied = f.swim.denied,
                                          .encrypted = f.encrypted,
                                          .sent = f.sent,
                                          .received = f.received,
                                          .domains = s->domains_failed};
    for (size_t i = 0; i < REFUSALS; i++)
        ret->refused += f.refused[i];
}

struct str_list
server_region(struct server *s, const void *ctx, const char *region)
{
    struct str_list l = {0};
    size_t n = 0;
    struct swim_member *v = s->gossip != NULL ? gossip_members(s->gossip, ctx, &n) : NULL;
    for (size_t i = 0; i < n && l.n < RPC_SERVERS_MAX; i++) {
        struct addr a;
        if (v[i].state <= MEMBER_SUSPECT && str_eq(v[i].about->region, region) &&
            addr_parse(v[i].about->addr, 0, &a, NULL) == 0 && !a.is_unix)
            list_add(ctx, l, mem_strdup(ctx, v[i].about->addr));
    }
    return l;
}

struct str_list
server_regions(struct server *s, const void *ctx)
{
    struct str_list l = {0};
    size_t n = 0;
    struct server_member *v = server_members(s, ctx, &n);
    for (size_t i = 0; i < n; i++)
        if (!v[i].left && !str_list_has(&l, v[i].hello->region))
            list_add(ctx, l, v[i].hello->region);
    if (l.n > 0)
        qsort(l.v, l.n, sizeof(*l.v), str_cmp_qsort);
    return l;
}

static bool
is_dead(const struct server_member *v, size_t n, uint64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (v[i].hello->id == id)
            return !v[i].alive;
    return false;
}

/* Asked for with each heartbeat of a node. */
const struct str_list *
server_addrs(struct server *s)
{
    int64_t now = env_mono_ms(&s->env);
    if (s->addrs != NULL && now - s->addrs->made_ms < ADDRS_MS)
        return &s->addrs->l;
    auto_mem void *tmp = mem_ctx("addresses");
    struct addrs *a = mem_new(s, struct addrs);
    struct core_status st;
    size_t n = 0;
    struct server_member *v = server_members(s, tmp, &n);
    core_status(s->core, tmp, &st);
    a->made_ms = now;
    for (size_t i = 0; i < st.conf.n; i++)
        if (st.conf.v[i].role == PEER_VOTER && !is_dead(v, n, st.conf.v[i].id))
            list_add(a, a->l, mem_strdup(a, st.conf.v[i].addr));
    mem_free(s->addrs);
    s->addrs = a;
    return &a->l;
}

/* --- changes --- */

void
server_transfer(struct server *s, uint64_t to)
{
    core_transfer(s->core, to);
}

int
server_remove(struct server *s, uint64_t id, struct err *e)
{
    auto_mem void *tmp = mem_ctx("remove");
    struct core_status st;
    struct peer_list conf;
    core_status(s->core, tmp, &st);
    if (!grow_without(tmp, &st, id, &conf))
        return err_set(e, -ERR_CONFLICT, id == st.leader ? "this server leads"
                                                         : "without this server nobody would vote");
    core_change(s->core, &conf);
    return 0;
}

size_t
server_join(struct server *s, const struct str_list *addrs, struct err *e)
{
    if (s->gossip == NULL) {
        err_set(e, -ERR_CONFLICT,
                "this server is one alone that others are not to hear: servers speak in plain "
                "text; set "
                "server.plain_rpc = true on a network that you trust");
        return 0;
    }
    if (s->found != NULL)
        (void)found_join(s->found, addrs, NULL);
    return gossip_join(s->gossip, addrs, e);
}

size_t
server_joined(struct server *s, const struct str_list *addrs, struct err *e)
{
    return s->gossip != NULL ? gossip_joined(s->gossip, addrs, e) : 0;
}

void
server_forget(struct server *s, uint64_t id, bool prune)
{
    if (s->gossip != NULL)
        gossip_force(s->gossip, id, prune);
}

void
server_gossip_keys(struct server *s, const char *op, const char *key, server_gossip_keys_fn *done,
                   void *arg)
{
    struct err e = ERR_INIT;
    enum keys_op what = keys_op_of(op);
    if (s->gossip == NULL)
        err_set(&e, -ERR_UNAVAILABLE, "this server does not gossip, or stops");
    else if (what == 0)
        err_set(&e, -ERR_INVALID, "\"%.32s\" is no operation on a key ring", str_or(op, ""));
    if (e.code != 0)
        done(arg, &e, NULL);
    else
        gossip_keyring(s->gossip, what, key, done, arg);
}

uint64_t
server_leaves(struct server *s)
{
    auto_mem void *tmp = mem_ctx("leaves");
    struct core_status st;
    core_status(s->core, tmp, &st);
    if (s->gossip != NULL)
        gossip_leave(s->gossip);
    if (s->found == NULL || st.conf.n <= 1)
        return 0;
    found_leaves(s->found);
    return core_id(s->core);
}

bool
server_hand_over(struct server *s)
{
    if (!server_is_leader(s))
        return false;
    core_transfer(s->core, 0);
    return true;
}

void
server_ask(struct server *s, uint64_t id)
{
    if (s->found != NULL)
        found_ask(s->found, id);
}

void
server_raft_status(struct server *s, const void *ctx, struct core_status *ret)
{
    core_status(s->core, ctx, ret);
}

void
server_peer_take(void *arg, int fd, bool filtered, const uint8_t *p, size_t n)
{
    struct server *s = arg;
    if (s->peers != NULL)
        peers_take(s->peers, fd, filtered, p, n);
    else
        fd_close(&fd);
}

/* --- opening --- */

static int
open_peers(struct server *s, struct loop *loop, const char *dir, struct err *e)
{
    const struct server_config *c = &s->cfg;
    if (c->expect <= 1 && core_is_alone(s->core))
        return 0;
    auto_mem void *tmp = mem_ctx("cluster");
    struct state_txn *t = server_read_begin(s, tmp);
    const struct cluster_metadata *m = state_cluster(t, tmp);
    const char *known = m != NULL ? mem_strdup(tmp, m->cluster_id) : NULL;
    state_read_end(t);
    const struct dialer d = server_dialer(s, s, loop, c->region);
    struct peers_opts po = {.id = core_id(s->core),
                            .addr = c->rpc_addr,
                            .core = s->core,
                            .filter = d.filter,
                            .falls_back = d.falls_back,
                            .name = d.name};
    s->peers = peers_start(&po, e);
    if (s->peers == NULL)
        return e->code;
    struct found_opts fo = {.dialer = d,
                            .env = &s->env,
                            .core = s->core,
                            .dir = mem_printf(s, "%s/raft", dir),
                            .self = {.id = core_id(s->core),
                                     .node = c->node_id,
                                     .name = c->name,
                                     .addr = c->rpc_addr,
                                     .serf = c->serf_addr,
                                     .expect = c->expect,
                                     .region = c->region,
                                     .datacenter = c->datacenter,
                                     .build = c->version,
                                     .zone = c->agent->redundancy_zone,
                                     .non_voting = c->agent->non_voting_server,
                                     .workers = c->workers},
                            .known = known,
                            .join = c->join,
                            .is_gone = is_gone,
                            .ready = cluster_ready,
                            .news = news_of_self,
                            .arg = s};
    return found_new(&fo, &s->found, e);
}

int
cluster_open(struct server *s, struct loop *loop, const char *dir, struct err *e)
{
    const struct server_config *c = &s->cfg;
    struct addr at;
    int rc = open_peers(s, loop, dir, e);
    if (rc < 0 || str_empty(c->serf_bind))
        return rc;
    rc = addr_parse(c->serf_bind, 0, &at, e);
    if (rc < 0)
        return rc;
    auto_mem void *tmp = mem_ctx("self");
    struct gossip_opts o = {.dialer = server_dialer(s, s, loop, "*"),
                            .env = &s->env,
                            .self = *hello_of_self(s, tmp),
                            .at = at,
                            .join = c->join,
                            .retry_ms = c->retry_join_ms,
                            .retry_max = c->retry_join_max,
                            .dir = dir,
                            .key = c->agent->encrypt_key,
                            .changed = member_changed,
                            .alone = nobody_answered,
                            .arg = s};
    s->domains = domains_new(s);
    rc = gossip_open(&o, &s->gossip, e);
    if (rc == 0)
        tell_event("EventMemberJoin", &o.self);
    return rc;
}
