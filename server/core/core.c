/* SPDX-License-Identifier: Apache-2.0
 *
 * The raft half of the core (core_int.h): core_step(), from proposals to entries that are committed
 * and durable here, which it hands over. Nothing here waits or looks at a clock. Order to read: a
 * step (last), proposing, what consensus tells. The threads are in core/thread.c, opening and
 * replay in core/open.c.
 */
#include <errno.h>

#include "common/mem.h"
#include "server/core/core_int.h"

/* How much bigger than its entry a thing becomes in the state: a job is stored with its version and
 * its source. */
enum { STATE_PER_ENTRY = 3 };
/* Percent of its limit up to which the state may be used. */
static const size_t state_pct[] = {
    [ROOM_ADDS] = 90, [ROOM_CHANGES] = 110, [ROOM_STOPS] = 130, [ROOM_MAKES] = SIZE_MAX};

/* --- consensus tells --- */

static void
core_lose_leadership(struct core *c)
{
    static const char why[] = "the leadership was lost; the write may still be committed";
    completions done;
    fifo_init(&done);
    core_lose(c, &done, why);
    core_disown(c, &c->raft.tail, &done, -ERR_NOT_LEADER, why);
    completions_post(c, &done);
}

/* Entries from `index` on are replaced. */
static void
tail_cut(struct core *c, uint64_t index)
{
    entries gone;
    struct entry **at = &c->raft.tail.first;
    while (*at != NULL && (*at)->index < index)
        at = &(*at)->next;
    gone.first = TAKE(*at);
    c->raft.tail.last = at;
    entries_drop(c, &gone);
}

static void
core_append(struct core *c, const struct consensus_update *u)
{
    struct raft_half *r = &c->raft;
    ASSERT(u->first > r->handed); /* what is handed over is committed, and never replaced */
    if (u->first <= raft_log_last(r->log)) {
        raft_log_truncate(r->log, u->first);
        r->conf_new = true;
        recent_cut(r->recent, u->first);
        tail_cut(c, u->first);
        /* Reports that are under way are about entries that are gone. */
        pthread_mutex_lock(&c->raft_in.mutex);
        if (c->raft_in.durable >= u->first)
            c->raft_in.durable = u->first - 1;
        pthread_mutex_unlock(&c->raft_in.mutex);
        if (r->stored >= u->first)
            r->stored = u->first - 1;
    }
    ASSERT(r->batch_n == 0 || r->batch_n == u->n); /* what is proposed is all of an update */
    for (size_t i = 0; i < u->n; i++) {
        ASSERT(u->entries[i].index == u->first + i);
        raft_log_append(r->log, &u->entries[i]);
        if (r->alone)
            recent_term_add(r->recent, u->entries[i].index, u->entries[i].term);
        else
            recent_add(r->recent, &u->entries[i]);
        struct entry *en = entry_new(&u->entries[i], i < r->batch_n ? TAKE(r->batch[i]) : NULL);
        en->begins = r->beginning;
        atomic_fetch_add(&c->unapplied, en->n);
        fifo_add(&r->tail, en);
        r->conf_new |= en->type == RECORD_CONFIG;
    }
    raft_log_flush(r->log);
}

void
core_update(void *arg, const struct consensus_update *u)
{
    struct core *c = arg;
    struct raft_half *r = &c->raft;
    if (u->hard)
        raft_log_set_hard(r->log, u->term, u->vote);
    if (u->role_changed && u->role != CONSENSUS_LEADER && r->role == CONSENSUS_LEADER)
        core_lose_leadership(c);
    r->role_new |= u->role_changed && u->role == CONSENSUS_LEADER;
    r->role = u->role;
    r->term = u->term;
    if (u->first != 0) {
        atomic_store(&c->quiet, false); /* before it is sent: the answers are news */
        core_append(c, u);
    }
    r->commit = u->commit;
    r->timeout_ms = u->timeout_ms;
    ASSERT(u->install == NULL); /* snapshots are not taken from others yet: core_take_msgs() */
    for (size_t i = 0; i < u->n_msgs; i++)
        core_send(c, &u->msgs[i]);
}

/* --- handing over --- */

/* Hands over the entries that are committed and durable; a configuration is the last of it. False:
 * there is no more. */
static bool
hand_over_some(struct core *c)
{
    struct raft_half *r = &c->raft;
    uint64_t to = r->commit < r->stored ? r->commit : r->stored;
    auto_mem void *tmp = NULL;
    struct record conf = {0};
    entries l;
    fifo_init(&l);
    while (conf.index == 0 && r->tail.first != NULL && r->tail.first->index <= to) {
        struct entry *en = fifo_take(&r->tail);
        r->handed++;
        ASSERT(en->index == r->handed);
        if (en->type == RECORD_CONFIG) {
            tmp = mem_dup(NULL, en->data, en->n);
            conf = (struct record){.index = en->index, .data = tmp, .n = en->n};
        }
        fifo_add(&l, en);
    }
    ASSERT(l.first == NULL || (r->handed <= r->commit && r->handed <= r->stored));
    if (l.first != NULL)
        core_hand_over(c, &l);
    if (conf.index != 0)
        r->alone = consensus_peers(r->consensus)->n <= 1;
    if (conf.index != 0) /* only now: it may end in a loss of the leadership */
        consensus_config_applied(r->consensus, r->now_ms, conf.index, conf.data, conf.n);
    return conf.index != 0;
}

static void
hand_over(struct core *c)
{
    while (hand_over_some(c))
        ;
}

/* --- proposing --- */

/* The disk of the log and the state has space: for new work in plenty; for all else (jobs stop,
 * nodes and allocations report, plans, garbage) as long as the reserve lasts, or a full disk could
 * not be helped by stopping what fills it. */
static int
disk_room(struct core *c, bool adds, struct err *e)
{
    bool reserve = c->reserve && raft_log_spare(c->raft.log);
    if ((reserve && !adds) || raft_log_room(c->raft.log, 0, e) == 0)
        return 0;
    /* The state's file does not shrink: what was purged is room within it. */
    size_t used, spare;
    pthread_mutex_lock(&c->state_lock);
    state_file(c->state, &used, &spare);
    pthread_mutex_unlock(&c->state_lock);
    err_clear(e);
    return raft_log_room(c->raft.log, spare, e);
}

/* The state has space, with all that is on its way to it; `taken` is of this batch. */
static int
state_room(struct core *c, const struct proposal *p, size_t taken, struct err *e)
{
    size_t unapplied = c->unapplied, used = c->used; /* in this order: core_int.h */
    size_t max = c->o.state_max;
    size_t all = used + taken + (unapplied + p->data.len) * STATE_PER_ENTRY;

    if (p->room == ROOM_MAKES || all <= max / 100 * state_pct[p->room])
        return 0;
    return err_set(
        e, -ENOSPC,
        "the server's state has no room for this write (it uses %zu of %zu MiB): purge jobs, "
        "collect garbage (paddock system gc), or raise state_max_mb in the server's configuration",
        used >> 20, max >> 20);
}

/* Keeps of the batch what may be proposed now. */
static void
admit_batch(struct core *c)
{
    struct raft_half *r = &c->raft;
    size_t left = 0, taken = 0;
    struct err e[2] = {ERR_INIT, ERR_INIT};
    int rc[2] = {disk_room(c, false, &e[0]), disk_room(c, true, &e[1])};
    if (!atomic_exchange(&c->disk_short, rc[1] < 0) && rc[1] < 0)
        core_look(c);
    for (size_t i = 0; i < r->batch_n; i++) {
        struct proposal *p = TAKE(r->batch[i]);
        struct err full = ERR_INIT;
        const char *why = rc[p->room == ROOM_ADDS] < 0 ? e[p->room == ROOM_ADDS].text : NULL;
        if (state_room(c, p, taken, &full) < 0)
            why = full.text;
        if (why == NULL) {
            taken += p->data.len * STATE_PER_ENTRY;
            r->batch[left++] = p;
            continue;
        }
        core_fail(c, p, -ENOSPC, why);
    }
    ASSERT(left <= r->batch_n);
    r->batch_n = left;
}

static void
propose_batch(struct core *c)
{
    struct raft_half *r = &c->raft;
    if (r->batch_n > 0)
        admit_batch(c);
    size_t n = r->batch_n;
    if (n == 0)
        return;
    struct record *v = mem_array(NULL, struct record, n);
    for (size_t i = 0; i < n; i++)
        v[i] = (struct record){
            .type = RECORD_COMMAND, .data = r->batch[i]->data.data, .n = r->batch[i]->data.len};
    int rc = consensus_propose(r->consensus, r->now_ms, v, n);
    mem_free(v);
    for (size_t i = 0; rc < 0 && i < n; i++)
        core_fail(c, TAKE(r->batch[i]), rc, "this server is not the leader");
    r->batch_n = 0;
}

/* So that entries of earlier terms are known to be committed: listeners start from a full state. */
static void
propose_barrier(struct core *c)
{
    struct raft_half *r = &c->raft;
    struct record rec = {.type = RECORD_BARRIER, .data = "\0\0\0\0\0\0\0", .n = 8};
    ASSERT(r->batch_n == 0);
    r->role_new = false;
    r->beginning = true;
    consensus_propose(r->consensus, r->now_ms, &rec, 1);
    r->beginning = false;
}

/* A turn's part of what waits. */
static void
propose_some(struct core *c)
{
    struct raft_half *r = &c->raft;
    size_t bytes = 0;
    while (r->todo.first != NULL && r->batch_n < CORE_PROPOSE_N && bytes < CORE_PROPOSE_BYTES) {
        r->batch[r->batch_n] = fifo_take(&r->todo);
        bytes += r->batch[r->batch_n++]->data.len;
    }
    ASSERT(r->batch_n <= CORE_PROPOSE_N);
    propose_batch(c);
}

/* --- a step --- */

static void
cut_log(struct core *c, struct consensus_snapshot *s)
{
    ASSERT(s->index > 0 && s->index <= c->raft.handed); /* it holds what was applied */
    if (s->index <= c->raft.installed) {
        mem_free(s);
        return;
    }
    uint64_t most = c->o.trailing != 0 ? c->o.trailing : CORE_TRAILING;
    uint64_t trailing = c->raft.alone ? 0 : most;
    if (trailing >= s->index)
        trailing = s->index - 1;
    consensus_snapshot_taken(c->raft.consensus, c->raft.now_ms, s, (unsigned)trailing);
    raft_log_compact(c->raft.log, s->index - trailing);
    recent_drop(c->raft.recent, raft_log_first(c->raft.log));
    ASSERT(raft_log_first(c->raft.log) <= s->index + 1); /* no gap between the two */
    mem_free(s);
}

void
core_step(struct core *c, int64_t now_ms, struct core_input *in)
{
    struct raft_half *r = &c->raft;
    ASSERT(now_ms >= r->now_ms && r->batch_n == 0);
    r->now_ms = now_ms;
    if (in->durable != 0) {
        r->stored = in->durable;
        consensus_persisted(r->consensus, now_ms, in->durable);
        hand_over(c);
    }
    if (in->snapshot != NULL)
        cut_log(c, TAKE(in->snapshot));
    if (in->msgs.first != NULL)
        core_take_msgs(c, &in->msgs);
    hand_over(c);
    fifo_join(&r->todo, &in->proposals);
    propose_some(c);
    if (r->timeout_ms != CONSENSUS_NEVER && now_ms >= r->timeout_ms)
        consensus_timeout(r->consensus, now_ms);
    if (r->role_new)
        propose_barrier(c);
    hand_over(c);
    core_publish(c);
}

/* --- questions --- */

struct state_txn *
core_read_begin(struct core *c, const void *ctx)
{
    pthread_mutex_lock(&c->state_lock);
    struct state_txn *t = state_read_begin(c->state, ctx);
    pthread_mutex_unlock(&c->state_lock);
    return t;
}

void
core_add_listener(struct core *c, const struct log_listener *ops, void *arg)
{
    struct apply_half *a = &c->apply;

    ASSERT(!c->started[0] && a->n_listeners < ARRAY_LEN(a->listeners));
    a->listeners[a->n_listeners].ops = ops;
    a->listeners[a->n_listeners++].arg = arg;
}

void
core_turns(const struct core *c, int64_t *ret_raft_ns, int64_t *ret_apply_ns)
{
    *ret_raft_ns = atomic_load_explicit(&c->turn_ns[0], memory_order_relaxed);
    *ret_apply_ns = atomic_load_explicit(&c->turn_ns[1], memory_order_relaxed);
}
