/* SPDX-License-Identifier: Apache-2.0
 *
 * What the core does (see core.h): core_step(), from proposals to completions. Nothing here waits or looks
 * at a clock. The thread around it is in core/thread.c, opening and replay are in core/open.c.
 */
#include "server/core/core.h"

#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/core/core_int.h"

/* How much bigger than its entry a thing becomes in the state: a job is stored with its version and its
 * source. */
enum { STATE_PER_ENTRY = 3 };
/* Percent of its limit up to which the state may be used. */
static const size_t state_pct[] = {
    [ROOM_ADDS] = 90, [ROOM_CHANGES] = 110, [ROOM_STOPS] = 130, [ROOM_MAKES] = SIZE_MAX};

/* --- completions --- */

struct completion {
    struct completion *next;
    propose_fn *done;
    void *arg;
    struct err e;
    uint64_t index;
    struct fsm_result *res; /* owned */
};

struct completions {
    struct completion *first;
    struct completion **last;
};

static void
completions_init(struct completions *l)
{
    l->first = NULL;
    l->last = &l->first;
}

static void
completions_add(struct completions *l, struct proposal *p, int code, const char *why,
                struct fsm_result *res)
{
    struct completion *d = mem_new(NULL, struct completion);
    d->done = p->done;
    d->arg = p->arg;
    d->res = talloc_steal(d, res); /* the callee may steal it on */
    if (res != NULL) {
        d->index = res->index;
        d->e = res->err;
    } else {
        err_set(&d->e, code, "%s", why != NULL ? why : "not committed");
    }
    *l->last = d;
    l->last = &d->next;
    mem_free(p);
}

/* On the loop. */
static void
completions_run(void *arg)
{
    struct completion *d = arg;
    while (d != NULL) {
        struct completion *next = d->next;
        if (d->res != NULL)
            talloc_steal(d, d->res); /* freed with it, unless done() takes it */
        d->done(d->arg, d->e.code != 0 ? &d->e : NULL, d->index, d->res);
        mem_free(d);
        d = next;
    }
}

static void
completions_post(struct core *c, struct completions *l)
{
    if (l->first != NULL)
        env_post(c->env, completions_run, l->first);
}

static void
fail_one(struct core *c, struct proposal *p, int code, const char *why)
{
    struct completions l;
    completions_init(&l);
    completions_add(&l, p, code, why, NULL);
    completions_post(c, &l);
}

/* --- proposals --- */

static int
admit(struct core *c, const struct proposal *p, const char **ret_why)
{
    if (buf_error(&p->data) != 0 || p->data.len > SERVER_INTENT_MAX) {
        *ret_why = "the entry is larger than a Raft entry may be (16 MiB)";
        return -ERR_LIMIT;
    }
    if (!core_is_leader(c)) {
        *ret_why = "this server is not the leader";
        return -ERR_NOT_LEADER;
    }
    if (atomic_load(&c->short_of)) {
        *ret_why = "the disk under the server's data_dir is full: free some space";
        return -ENOSPC;
    }
    int rc = 0;
    pthread_mutex_lock(&c->mutex);
    if (c->n_proposals >= SERVER_PROPOSALS_MAX ||
        c->proposal_bytes + p->data.len > CORE_QUEUE_BYTES_MAX) {
        *ret_why = "too many writes are waiting to be committed";
        rc = -ERR_BUSY;
    } else {
        c->n_proposals++;
        c->proposal_bytes += p->data.len;
    }
    pthread_mutex_unlock(&c->mutex);
    return rc;
}

static int
proposal_destroy(struct proposal *p)
{
    buf_done(&p->data);
    return 0;
}

static void
proposal_release(struct core *c, const struct proposal *p)
{
    pthread_mutex_lock(&c->mutex);
    ASSERT(c->n_proposals > 0 && c->proposal_bytes >= p->bytes);
    c->n_proposals--;
    c->proposal_bytes -= p->bytes;
    pthread_mutex_unlock(&c->mutex);
}

void
core_propose(struct core *c, struct intent *in, propose_fn *done, void *arg)
{
    struct proposal *p = mem_new(NULL, struct proposal);
    ASSERT(done != NULL); /* nothing is proposed and forgotten: server/leader/owed.h waits for who cannot */
    talloc_set_destructor(p, proposal_destroy);
    p->done = done;
    p->arg = arg;
    if (in->time == 0)
        in->time = env_wall_ns(c->env);
    buf_init(&p->data, SERVER_INTENT_MAX + 1);
    mp_encode(&p->data, &type_intent, in);
    p->bytes = p->data.len;
    p->room = fsm_room(in);
    const char *why = NULL;
    int rc = admit(c, p, &why);
    if (rc < 0) {
        fail_one(c, p, rc, why);
        return;
    }
    struct item *it = mem_new(NULL, struct item);
    it->proposal = p;
    if (core_enqueue(c, it))
        return;
    mem_free(it);
    proposal_release(c, p);
    fail_one(c, p, -ERR_CANCELED, "the server is shutting down");
}

void
core_fail_entries(struct core *c, int code, const char *why)
{
    struct completions l;
    completions_init(&l);
    for (struct entry *en = c->entries; en != NULL; en = en->next) {
        if (en->proposal == NULL)
            continue;
        proposal_release(c, en->proposal);
        completions_add(&l, TAKE(en->proposal), code, why, NULL);
    }
    completions_post(c, &l);
}

/* --- consensus tells --- */

static void
lose(struct core *c)
{
    atomic_store(&c->leader, false);
    if (c->leading && c->hooks.on_lose != NULL)
        c->hooks.on_lose(c->hooks_arg);
    c->leading = false;
    c->barrier = 0; /* the next leadership begins with its own */
    core_fail_entries(c, -ERR_NOT_LEADER, "the leadership was lost; the write may still be committed");
}

static void
entry_add(struct core *c, const struct record *r, struct proposal *p)
{
    struct entry *en = mem_new(NULL, struct entry);
    en->index = r->index;
    en->term = r->term;
    en->type = r->type;
    en->n = r->n;
    en->data = r->n > 0 ? mem_dup(en, r->data, r->n) : NULL;
    en->proposal = p;
    c->unapplied += en->n;
    *c->entries_last = en;
    c->entries_last = &en->next;
}

/* Entries from `index` on are replaced. */
static void
entries_cut(struct core *c, uint64_t index)
{
    struct entry **at = &c->entries;
    while (*at != NULL && (*at)->index < index)
        at = &(*at)->next;
    struct entry *en = *at;
    *at = NULL;
    c->entries_last = at;
    while (en != NULL) {
        struct entry *next = en->next;
        ASSERT(en->proposal == NULL);
        c->unapplied -= en->n;
        mem_free(en);
        en = next;
    }
}

static void
append(struct core *c, const struct consensus_update *u)
{
    ASSERT(u->first > c->applied); /* what is applied is committed, and never replaced */
    if (u->first <= raft_log_last(c->log)) {
        raft_log_truncate(c->log, u->first);
        entries_cut(c, u->first);
        /* Reports that are under way are about entries that are gone. */
        pthread_mutex_lock(&c->mutex);
        if (c->durable >= u->first)
            c->durable = u->first - 1;
        pthread_mutex_unlock(&c->mutex);
        if (c->stored >= u->first)
            c->stored = u->first - 1;
    }
    for (size_t i = 0; i < u->n; i++) {
        raft_log_append(c->log, &u->entries[i]);
        struct proposal *p = c->batch_n > 0 && i < c->batch_n ? TAKE(c->batch[i]) : NULL;
        entry_add(c, &u->entries[i], p);
    }
    raft_log_flush(c->log);
}

void
core_update(void *arg, const struct consensus_update *u)
{
    struct core *c = arg;
    if (u->hard)
        raft_log_set_hard(c->log, u->term, u->vote);
    if (u->role_changed && u->role != CONSENSUS_LEADER && c->role == CONSENSUS_LEADER)
        lose(c);
    c->role_new |= u->role_changed && u->role == CONSENSUS_LEADER;
    c->role = u->role;
    if (u->first != 0)
        append(c, u);
    c->commit = u->commit;
    c->timeout_ms = u->timeout_ms;
    /* Peers, their messages and snapshot installation come with the cluster. */
    ASSERT(u->install == NULL);
}

/* --- applying --- */

struct batch {
    struct completions done;
    struct entry *v[CORE_APPLY_BATCH];
    struct intent *in[CORE_APPLY_BATCH];
    struct fsm_result *res[CORE_APPLY_BATCH];
    size_t n;
};

static void
apply_one(struct state_txn *t, struct batch *b, size_t i)
{
    struct entry *en = b->v[i];
    if (en->type == RECORD_COMMAND) {
        struct err e = ERR_INIT;
        void *obj = NULL;
        int rc = mp_decode_strict(en, &type_intent, en->data, en->n, BUDGET(SIZE_MAX), &obj, &e);
        if (rc < 0) {
            /* applied as nothing, or in part, the state would not be that of the others any more */
            const char *why = rc == -ERR_UNSUPPORTED
                                  ? "an entry of the Raft log is of a newer release, which knows its "
                                    "intent: upgrade this server to that release"
                                  : "an entry of the Raft log does not decode";
            log_error("core", why, "index", LOG_U64(en->index), "error", e.text, NULL);
            log_fatal_exit();
        }
        b->in[i] = obj;
        b->res[i] = fsm_apply(NULL, t, en->index, obj);
    }
    state_set_applied(t, en->index, en->term);
}

static void
batch_hooks(struct core *c, struct batch *b)
{
    if (!c->leading)
        return;
    bool any = false;
    for (size_t i = 0; i < b->n; i++) {
        if (b->res[i] == NULL)
            continue;
        any = true;
        if (c->hooks.on_applied != NULL)
            c->hooks.on_applied(c->hooks_arg, b->v[i]->index, b->in[i], b->res[i]);
    }
    if (any && c->hooks.on_batch != NULL)
        c->hooks.on_batch(c->hooks_arg);
}

/* Configuration entries, and the first entry of our own term: we lead from here on. */
static void
batch_consensus(struct core *c, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct entry *en = b->v[i];
        if (en->type == RECORD_CONFIG) {
            mem_free(c->conf.v);
            if (consensus_conf_decode(c, en->data, en->n, &c->conf) == 0)
                c->conf_index = en->index;
            consensus_config_applied(c->consensus, c->now_ms, en->index, en->data, en->n);
        }
    }
}

static void
begin_leading(struct core *c)
{
    ASSERT(c->role == CONSENSUS_LEADER && !c->leading);
    c->leading = true;
    atomic_store(&c->leader, true);
    if (c->hooks.on_leader != NULL) {
        auto_mem void *tmp = mem_ctx("on_leader");
        struct state_txn *t = state_read_begin(c->state, tmp);
        c->hooks.on_leader(c->hooks_arg, t);
        state_read_end(t);
    }
    log_info("core", "leading", "term", LOG_U64(consensus_term(c->consensus)), "index",
             LOG_U64(c->applied), NULL);
}

static void
batch_finish(struct core *c, struct batch *b)
{
    batch_hooks(c, b);
    for (size_t i = 0; i < b->n; i++) {
        struct entry *en = b->v[i];
        c->since_snapshot++;
        c->bytes_since_snapshot += en->n;
        if (en->proposal != NULL) {
            proposal_release(c, en->proposal);
            completions_add(&b->done, TAKE(en->proposal), 0, NULL, TAKE(b->res[i]));
        }
        mem_free(b->res[i]);
    }
    completions_post(c, &b->done);
    batch_consensus(c, b);
    bool ours = c->barrier != 0 && c->applied >= c->barrier;
    for (size_t i = 0; i < b->n; i++)
        mem_free(b->v[i]);
    if (ours) {
        c->barrier = 0;
        if (c->role == CONSENSUS_LEADER && !c->leading)
            begin_leading(c);
    }
}

/* Takes up to a batch of entries that are committed and durable. */
static struct batch *
batch_take(struct core *c)
{
    uint64_t to = c->commit < c->stored ? c->commit : c->stored;
    if (c->entries == NULL || c->entries->index > to)
        return NULL;
    struct batch *b = mem_new(NULL, struct batch);
    completions_init(&b->done);
    while (c->entries != NULL && c->entries->index <= to && b->n < CORE_APPLY_BATCH) {
        struct entry *en = c->entries;
        c->entries = en->next;
        ASSERT(en->index == c->applied + 1 + b->n && c->unapplied >= en->n);
        c->unapplied -= en->n;
        b->v[b->n++] = en;
    }
    if (c->entries == NULL)
        c->entries_last = &c->entries;
    return b;
}

/* The batch could not be applied: a later step does, or the next start. */
static void
batch_give_back(struct core *c, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++)
        c->unapplied += b->v[i]->n;
    if (c->entries == NULL)
        c->entries_last = &b->v[b->n - 1]->next;
    b->v[b->n - 1]->next = c->entries;
    c->entries = b->v[0];
    mem_free(b);
}

/* All of it in one transaction: 0, or -ENOSPC when nothing of it was done. */
static int
batch_apply(struct core *c, struct batch *b, const void *ctx)
{
    ASSERT(b->n > 0 && b->v[0]->index == c->applied + 1);
    struct state_txn *t = state_write_begin(c->state, ctx);
    for (size_t i = 0; i < b->n; i++)
        apply_one(t, b, i);
    size_t n = 0;
    const struct state_change *ch = state_changes(t, &n);
    struct state_change *copy = n > 0 ? mem_dup(ctx, ch, n * sizeof(*ch)) : NULL;
    int rc = state_commit(t);
    for (size_t i = 0; rc < 0 && i < b->n; i++) {
        mem_free(b->res[i]);
        mem_free(b->in[i]);
    }
    if (rc < 0)
        return rc;
    c->applied = b->v[b->n - 1]->index;
    c->applied_term = b->v[b->n - 1]->term;
    if (n > 0 && c->o.on_changes != NULL)
        c->o.on_changes(c->o.on_changes_arg, c->applied, copy, n);
    return 0;
}

/* One batch; false when nothing is left to apply, or the disk of the state is full: what is committed is
 * applied when there is space again. */
static bool
apply_batch(struct core *c)
{
    struct batch *b = c->now_ms >= c->space_ms ? batch_take(c) : NULL;
    if (b == NULL)
        return false;
    auto_mem void *tmp = mem_ctx("apply batch");
    int rc = batch_apply(c, b, tmp);
    if (rc < 0) {
        batch_give_back(c, b);
        c->space_ms = c->now_ms + CORE_SPACE_RETRY_MS;
        if (!atomic_exchange(&c->short_of, true))
            log_error("core", "the state waits for space; new writes are refused", "dir", c->o.dir, "error",
                      err_name(rc), NULL);
        return false;
    }
    c->space_ms = 0;
    if (atomic_exchange(&c->short_of, false))
        log_info("core", "the state has space again", "dir", c->o.dir, NULL);
    batch_finish(c, b);
    mem_free(b);
    return true;
}

/* --- proposing --- */

/* The disk of the log and the state has space: for new work in plenty; for all else (jobs stop, nodes and
 * allocations report, plans, garbage) as long as the reserve lasts, or a full disk could not be helped by
 * stopping what fills it. */
static int
disk_room(struct core *c, bool adds, struct err *e)
{
    bool reserve = state_reserve(c->state) && raft_log_spare(c->log);
    if ((reserve && !adds) || raft_log_room(c->log, 0, e) == 0)
        return 0;
    /* The state's file does not shrink: what was purged is room within it. */
    size_t used, spare;
    state_file(c->state, &used, &spare);
    err_clear(e);
    return raft_log_room(c->log, spare, e);
}

/* The state has space, with all that is on its way to it; `taken` is of this batch. */
static int
state_room(struct core *c, const struct proposal *p, size_t used, size_t taken, size_t max, struct err *e)
{
    size_t all = used + taken + (c->unapplied + p->data.len) * STATE_PER_ENTRY;

    if (p->room == ROOM_MAKES || all <= max / 100 * state_pct[p->room])
        return 0;
    return err_set(e, -ENOSPC,
                   "the server's state has no room for this write (it uses %zu of %zu MiB): purge jobs, "
                   "collect garbage (paddock system gc), or raise state_max_mb in the server's configuration",
                   used >> 20, max >> 20);
}

/* Keeps of the batch what may be proposed now. */
static void
admit_batch(struct core *c)
{
    size_t used = 0, max = 0, left = 0, taken = 0;
    state_usage(c->state, &used, &max);
    struct err e[2] = {ERR_INIT, ERR_INIT};
    int rc[2] = {disk_room(c, false, &e[0]), disk_room(c, true, &e[1])};
    c->disk_short = rc[1] < 0;
    for (size_t i = 0; i < c->batch_n; i++) {
        struct proposal *p = TAKE(c->batch[i]);
        struct err full = ERR_INIT;
        const char *why = rc[p->room == ROOM_ADDS] < 0 ? e[p->room == ROOM_ADDS].text : NULL;
        if (state_room(c, p, used, taken, max, &full) < 0)
            why = full.text;
        if (why == NULL) {
            taken += p->data.len * STATE_PER_ENTRY;
            c->batch[left++] = p;
            continue;
        }
        proposal_release(c, p);
        fail_one(c, p, -ENOSPC, why);
    }
    c->batch_n = left;
}

static void
propose_batch(struct core *c)
{
    if (c->batch_n > 0)
        admit_batch(c);
    size_t n = c->batch_n;
    if (n == 0)
        return;
    struct record *r = mem_array(NULL, struct record, n);
    for (size_t i = 0; i < n; i++)
        r[i] = (struct record){.type = RECORD_COMMAND,
                               .data = c->batch[i]->data.data,
                               .n = c->batch[i]->data.len};
    int rc = consensus_propose(c->consensus, c->now_ms, r, n);
    mem_free(r);
    for (size_t i = 0; rc < 0 && i < n; i++) {
        proposal_release(c, c->batch[i]);
        fail_one(c, TAKE(c->batch[i]), rc, "this server is not the leader");
    }
    c->batch_n = 0;
}

/* So that entries of earlier terms are known to be committed, and hooks start from a full state. */
static void
propose_barrier(struct core *c)
{
    c->role_new = false;
    struct record r = {.type = RECORD_BARRIER, .data = "\0\0\0\0\0\0\0", .n = 8};
    ASSERT(c->batch_n == 0);
    if (consensus_propose(c->consensus, c->now_ms, &r, 1) == 0)
        c->barrier = consensus_last(c->consensus);
}

/* --- a step --- */

static void
run_items(struct core *c, struct item *it)
{
    while (it != NULL) {
        struct item *next = it->next;
        if (it->proposal != NULL) {
            c->batch[c->batch_n++] = it->proposal;
            if (c->batch_n == ARRAY_LEN(c->batch))
                propose_batch(c);
        } else {
            propose_batch(c);
            it->fn(it->arg);
        }
        mem_free(it);
        it = next;
    }
    propose_batch(c);
}

void
core_step(struct core *c, int64_t now_ms, const struct core_input *in)
{
    c->now_ms = now_ms;
    if (in->durable != 0) {
        c->stored = in->durable;
        consensus_persisted(c->consensus, now_ms, in->durable);
    }
    run_items(c, in->items);
    if (c->timeout_ms != CONSENSUS_NEVER && now_ms >= c->timeout_ms)
        consensus_timeout(c->consensus, now_ms);
    if (c->role_new)
        propose_barrier(c);
    while (apply_batch(c))
        ;
    core_maybe_snapshot(c);
}

/* --- questions --- */

struct state *
core_state(struct core *c)
{
    return c->state;
}

void
core_set_hooks(struct core *c, const struct leader_hooks *h, void *arg)
{
    ASSERT(!c->started);
    c->hooks = *h;
    c->hooks_arg = arg;
}

bool
core_is_leader(const struct core *c)
{
    return atomic_load(&c->leader);
}

bool
core_leader_addr(const struct core *c, char *out, size_t size)
{
    return core_is_leader(c) && str_copy(out, size, c->o.addr);
}
