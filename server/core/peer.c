/* SPDX-License-Identifier: Apache-2.0
 *
 * The raft half and the other servers: messages out (those with entries are in feed.c) and in; what
 * other threads are told about the cluster.
 */
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/core/core_int.h"
#include "server/raft/wire.h"

/* --- out --- */

bool
core_send_wire(struct core *c, uint64_t to, const char *addr, const struct wire *w)
{
    struct buf b = BUF_INIT(WIRE_BODY_MAX);
    wire_put(&b, w);
    bool ok = buf_error(&b) == 0 && c->o.net->send(c->o.net->arg, to, addr, &b);
    buf_done(&b);
    return ok;
}

bool
core_send_one(struct core *c, const struct peer_msg *m)
{
    struct wire w = {.kind = WIRE_MSG, .msg = *m};
    lease_stamp(c, &w.msg);
    return core_send_wire(c, m->peer, m->addr, &w);
}

void
core_send(struct core *c, const struct peer_msg *m)
{
    if (c->o.net == NULL)
        return;
    ASSERT(m->peer != 0 && m->peer != c->raft.id);
    if (m->type == MSG_APPEND)
        feed_append(c, m);
    else if (m->type == MSG_SNAPSHOT)
        install_give(c, m);
    else
        core_send_one(c, m);
}

/* --- in --- */

/* With the lock of raft_in. Who was heard longest ago makes room. */
static void
note_heard(struct core *c, uint64_t id)
{
    struct core_heard *v = c->raft_in.heard, *at = v;

    for (size_t i = 0; i < ARRAY_LEN(c->raft_in.heard) && at->id != id; i++)
        if (v[i].id == id || v[i].ms < at->ms)
            at = &v[i];
    *at = (struct core_heard){id, env_mono_ms(c->env)};
}

int64_t
core_peer_heard_ms(struct core *c, uint64_t id)
{
    int64_t ms = 0;

    pthread_mutex_lock(&c->raft_in.mutex);
    for (size_t i = 0; i < ARRAY_LEN(c->raft_in.heard); i++)
        if (c->raft_in.heard[i].id == id)
            ms = c->raft_in.heard[i].ms;
    pthread_mutex_unlock(&c->raft_in.mutex);
    return ms;
}

int
core_receive(struct core *c, uint64_t from, const char *addr, const uint8_t *body, size_t n,
             struct err *e)
{
    struct core_msg *x = mem_new(NULL, struct core_msg);
    struct wire w;
    uint8_t *copy = n > 0 ? mem_dup(x, body, n) : NULL;
    int rc = wire_get(x, copy, n, &w, e);
    bool piece = rc == 0 && (w.kind == WIRE_PIECE || w.kind == WIRE_PIECE_TAKEN);
    if (rc == 0 && !piece && (w.kind != WIRE_MSG || w.msg.type == MSG_SNAPSHOT))
        rc = err_set(e, -ERR_INVALID, "a frame that is not a message");
    if (rc == 0) {
        if (piece)
            x->piece = w.piece;
        else
            x->m = w.msg;
        x->m.peer = from;
        x->m.addr = mem_strdup(x, addr);
        x->bytes = n;
        bool news = w.msg.type != MSG_APPEND_RESULT || w.msg.rejected != 0;
        pthread_mutex_lock(&c->raft_in.mutex);
        note_heard(c, from);
        if (c->stopping || c->raft_in.msgs_bytes + n > CORE_MSGS_BYTES_MAX)
            rc = -ERR_BUSY;
        else {
            fifo_add(&c->raft_in.msgs, x);
            c->raft_in.msgs_bytes += n;
        }
        /* a message without news is in time at the next heartbeat */
        bool wake = news || !atomic_load(&c->quiet);
        pthread_mutex_unlock(&c->raft_in.mutex);
        if (wake)
            pthread_cond_signal(&c->raft_in.wake);
    }
    if (rc < 0)
        mem_free(x);
    return rc;
}

void
core_put_msg(struct core *c, struct core_msg m)
{
    struct core_msg *x = mem_new(NULL, struct core_msg);
    *x = m;
    talloc_steal(x, x->read);
    talloc_steal(x, x->change.v);
    pthread_mutex_lock(&c->raft_in.mutex);
    fifo_add(&c->raft_in.msgs, x);
    pthread_mutex_unlock(&c->raft_in.mutex);
    pthread_cond_signal(&c->raft_in.wake);
}

void
core_gone(struct core *c, uint64_t id)
{
    core_put_msg(c, (struct core_msg){.gone = id});
}

void
core_transfer(struct core *c, uint64_t to)
{
    core_put_msg(c, (struct core_msg){.transfer = true, .to = to});
}

void
core_change(struct core *c, const struct peer_list *conf)
{
    struct core_msg m = {0};
    consensus_conf_copy(NULL, conf, &m.change);
    core_put_msg(c, m);
}

/* To that voter; 0: to the one that is known to hold most. */
static void
peer_transfer(struct core *c, uint64_t to)
{
    struct raft_half *r = &c->raft;
    const struct peer_list *l = consensus_peers(r->consensus);
    uint64_t best = to, most = 0;
    for (size_t i = 0; i < l->n && to == 0; i++) {
        uint64_t match = consensus_match(r->consensus, l->v[i].id);
        if (l->v[i].id == r->id || l->v[i].role != PEER_VOTER || match < most)
            continue;
        best = l->v[i].id;
        most = match;
    }
    if (best != 0 && consensus_transfer(r->consensus, r->now_ms, best) == 0)
        log_info("core", "hands the leadership over", "to", LOG_U64(best), NULL);
}

static void
take_one(struct core *c, const struct core_msg *x)
{
    struct raft_half *r = &c->raft;
    struct err e = ERR_INIT;
    if (x->read != NULL) {
        feed_take(c, x->read);
    } else if (x->change.n > 0) {
        if (consensus_change(r->consensus, r->now_ms, &x->change, &e) < 0)
            log_debug("core", "the servers are not changed", "error", e.text, NULL);
    } else if (x->transfer) {
        peer_transfer(c, x->to);
    } else if (x->gone != 0) {
        unsigned after = (unsigned)(env_random(c->env) % CORE_GONE_MS);
        r->timeout_ms = consensus_leader_gone(r->consensus, r->now_ms, x->gone, after);
    } else if (x->piece.index != 0) {
        install_piece(c, x);
    } else {
        lease_take(c, &x->m);
        if (consensus_receive(r->consensus, r->now_ms, &x->m, &e) < 0)
            log_warn("core", "a message of another server is refused", "from", x->m.addr, "error",
                     e.text, NULL);
    }
}

void
core_take_msgs(struct core *c, core_msgs *l)
{
    while (l->first != NULL) {
        struct core_msg *x = fifo_take(l);
        take_one(c, x);
        mem_free(x);
    }
}

void
core_msgs_free(core_msgs *l)
{
    while (l->first != NULL)
        talloc_free(fifo_take(l));
}

/* --- what others are told --- */

static void
copy_conf(struct core *c)
{
    struct core_status *v = &c->status.v;
    mem_free(v->conf.v);
    consensus_conf_copy(c, consensus_peers(c->raft.consensus), &v->conf);
}

void
core_publish(struct core *c)
{
    struct raft_half *r = &c->raft;
    struct consensus_status s;
    consensus_status(r->consensus, &s);
    atomic_store_explicit(&c->heard_ms, s.role == CONSENSUS_LEADER ? INT64_MAX : s.heard_ms,
                          memory_order_relaxed);
    atomic_store(&c->quiet, s.quiet);
    pthread_mutex_lock(&c->status.mutex);
    struct core_status *v = &c->status.v;
    bool changed = v->leader != s.leader || v->role != s.role || v->term != s.term;
    v->role = s.role;
    v->leader = s.leader;
    v->term = s.term;
    v->last = s.last;
    v->commit = s.commit;
    v->heard_ms = s.heard_ms;
    if (r->conf_new || v->conf.v == NULL)
        copy_conf(c);
    r->conf_new = false;
    lease_publish(c, &v->conf);
    c->status.leader_addr[0] = '\0';
    for (size_t i = 0; i < v->conf.n; i++) {
        v->match[i] = consensus_match(r->consensus, v->conf.v[i].id);
        if (v->conf.v[i].id == s.leader)
            (void)str_copy(c->status.leader_addr, sizeof(c->status.leader_addr), v->conf.v[i].addr);
    }
    pthread_mutex_unlock(&c->status.mutex);
    if (changed && c->o.net != NULL)
        c->o.net->leader_changed(c->o.net->arg);
}

void
core_status(struct core *c, const void *ctx, struct core_status *ret)
{
    pthread_mutex_lock(&c->status.mutex);
    *ret = c->status.v;
    consensus_conf_copy(ctx, &c->status.v.conf, &ret->conf);
    pthread_mutex_unlock(&c->status.mutex);
}

bool
core_leader_addr(const struct core *cc, char *out, size_t size)
{
    struct core *c = (struct core *)(uintptr_t)cc;
    pthread_mutex_lock(&c->status.mutex);
    bool ok = c->status.leader_addr[0] != '\0' && str_copy(out, size, c->status.leader_addr);
    pthread_mutex_unlock(&c->status.mutex);
    return ok;
}

int64_t
core_last_contact_ms(const struct core *c)
{
    int64_t heard = atomic_load_explicit(&c->heard_ms, memory_order_relaxed);
    if (heard == INT64_MAX)
        return 0;
    int64_t ms = env_mono_ms(c->env) - heard;
    return heard == 0 ? INT64_MAX : ms < 0 ? 0 : ms;
}

uint64_t
core_id(const struct core *c)
{
    return c->raft.id;
}
