/* SPDX-License-Identifier: Apache-2.0
 *
 * The apply half of the core (core_int.h): apply_step(), from entries that were handed over to
 * completions, a transaction per batch, then who follows the log. Nothing here waits or looks at a
 * clock.
 */
#include "common/log.h"
#include "common/mem.h"
#include "server/core/core_int.h"
#include "server/hook.h"

/* Calls a function of every listener that has one, with the listener's `arg` first. */
#define TELL(a, member, ...)                                                                       \
    do {                                                                                           \
        for (size_t l_ = 0; l_ < (a)->n_listeners; l_++)                                           \
            if ((a)->listeners[l_].ops->member != NULL)                                            \
                (a)->listeners[l_].ops->member((a)->listeners[l_].arg, ##__VA_ARGS__);             \
    } while (0)

/* --- leadership --- */

static void
apply_lose(struct core *c)
{
    struct apply_half *a = &c->apply;
    completions done;
    fifo_init(&done);
    if (a->leading)
        TELL(a, on_lose);
    a->leading = false;
    core_disown(c, &a->todo, &done, -ERR_NOT_LEADER,
                "the leadership was lost; the write may still be committed");
    completions_post(c, &done);
}

/* Tells of the state as it is: at the begin of leadership, or as it was found. */
static void
tell_state(struct core *c, bool leads)
{
    auto_mem void *tmp = mem_ctx("listener");
    struct state_txn *t = state_read_begin(c->state, tmp);
    if (leads)
        TELL(&c->apply, on_leader, t);
    else
        TELL(&c->apply, on_open, t);
    state_read_end(t);
}

static void
begin_leading(struct core *c, uint64_t term)
{
    ASSERT(!c->apply.leading);
    c->apply.leading = true;
    core_lead(c);
    tell_state(c, true);
    if (c->o.net != NULL)
        c->o.net->leader_changed(c->o.net->arg);
    log_info("core", "leading", "term", LOG_U64(term), "index", LOG_U64(c->apply.applied), NULL);
}

/* The listeners begin again with another state. */
static void
tell_anew(struct core *c)
{
    if (c->apply.leading)
        TELL(&c->apply, on_lose);
    tell_state(c, false);
    if (c->apply.leading)
        tell_state(c, true);
}

/* --- a batch --- */

struct batch {
    completions done;
    struct entry *v[CORE_APPLY_BATCH];
    struct intent *in[CORE_APPLY_BATCH];
    struct fsm_result *res[CORE_APPLY_BATCH];
    size_t n;
    size_t bytes;
    int64_t newest_ns; /* time of an entry */
    uint64_t ahead;    /* state_ahead(), of the entry that is applied */
    bool restored;     /* the state is another one */
};

static void
apply_one(struct state_txn *t, struct batch *b, size_t i)
{
    struct entry *en = b->v[i];
    if (en->type == RECORD_COMMAND) {
        struct err e = ERR_INIT;
        void *obj = NULL;
        int rc =
            mp_decode_strict(en, &type_intent, SLICE(en->data, en->n), BUDGET(SIZE_MAX), &obj, &e);
        if (rc < 0) {
            /* applied as nothing, or in part, the state would not be that of the others any more */
            const char *why =
                rc == -ERR_UNSUPPORTED
                    ? "an entry of the Raft log is of a newer release, which knows its "
                      "intent: upgrade this server to that release"
                    : "an entry of the Raft log does not decode";
            log_error("core", why, "index", LOG_U64(en->index), "error", e.text, NULL);
            log_fatal_exit();
        }
        b->in[i] = obj;
        test_hook_apply(b->in[i]);
        b->newest_ns = b->in[i]->time > b->newest_ns ? b->in[i]->time : b->newest_ns;
        uint64_t index = en->index + b->ahead;
        b->res[i] = en->refused != NULL ? fsm_refused(NULL, index, en->refused)
                                        : fsm_apply(NULL, t, index, obj);
        if (b->res[i]->restore != NULL)
            core_restore(t, en, b->in[i]->time, b->res[i]);
        if (b->res[i]->restore != NULL) {
            b->ahead = state_ahead(t);
            b->restored = true;
        }
    }
    state_set_applied(t, en->index, en->term);
}

static void
tell_committed(struct core *c, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        if (b->res[i] == NULL)
            continue;
        (void)talloc_steal(b->res[i]->events, b->v[i]); /* with the intent */
        if (!b->restored)
            TELL(&c->apply, on_committed, b->res[i]->index, b->in[i], b->res[i]);
    }
    if (b->restored) /* what else the batch did is gone, or is in the state that is told */
        tell_anew(c);
}

static void
tell_batch(struct core *c, struct batch *b)
{
    struct apply_half *a = &c->apply;
    bool any = false;
    for (size_t i = 0; i < b->n; i++) {
        if (b->res[i] == NULL)
            continue;
        any = true;
        TELL(a, on_applied, b->res[i]->index, b->in[i], b->res[i]);
    }
    if (any && a->leading)
        TELL(a, on_batch);
}

static void
take_conf(struct core *c, const struct entry *en)
{
    struct apply_half *a = &c->apply;
    mem_free(a->conf.v);
    if (consensus_conf_decode(c, en->data, en->n, &a->conf) == 0)
        a->conf_index = en->index;
}

static void
batch_finish(struct core *c, struct batch *b)
{
    uint64_t begins = 0; /* the term */
    if (!b->restored)
        tell_batch(c, b);
    for (size_t i = 0; i < b->n; i++) {
        struct entry *en = b->v[i];
        ASSERT(en->index <= c->apply.applied); /* who hears of it can read it */
        c->apply.since_snapshot++;
        c->apply.bytes_since_snapshot += en->n;
        begins = en->begins ? en->term : begins;
        if (en->type == RECORD_CONFIG)
            take_conf(c, en);
        if (en->proposal != NULL)
            completions_add(c, &b->done, TAKE(en->proposal), 0, NULL, TAKE(b->res[i]));
        mem_free(b->res[i]);
        if (b->in[i] == NULL)
            mem_free(en);
    }
    completions_post(c, &b->done);
    if (begins != 0)
        begin_leading(c, begins);
}

static struct batch *
batch_take(struct core *c)
{
    struct apply_half *a = &c->apply;
    if (a->todo.first == NULL)
        return NULL;
    struct batch *b = mem_new(NULL, struct batch);
    fifo_init(&b->done);
    while (a->todo.first != NULL && b->n < CORE_APPLY_BATCH && b->bytes < CORE_APPLY_BYTES) {
        struct entry *en = fifo_take(&a->todo);
        ASSERT(en->index == a->applied + 1 + b->n);
        b->bytes += en->n;
        b->v[b->n++] = en;
    }
    return b;
}

/* Gives back the entries that could not be applied, from one on: a later step does, or the next
 * start. */
static void
batch_give_back(struct core *c, struct batch *b, size_t from)
{
    entries l;
    fifo_init(&l);
    ASSERT(from <= b->n);
    for (size_t i = from; i < b->n; i++) {
        ASSERT(b->bytes >= b->v[i]->n);
        b->bytes -= b->v[i]->n;
        fifo_add(&l, b->v[i]);
    }
    b->n = from;
    fifo_join(&l, &c->apply.todo);
    fifo_join(&c->apply.todo, &l);
}

void
apply_measure(struct core *c)
{
    size_t used, max;
    state_usage(c->state, &used, &max);
    atomic_store(&c->used, used);
    atomic_store(&c->reserve, state_reserve(c->state));
}

static void
batch_forget(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        mem_free(b->res[i]);
        mem_free(b->in[i]);
    }
}

/* The transaction in which all of the batch is applied. An entry that makes a row that could not be
 * read again is refused as every other refusal, without effect: this is known only from trying, so
 * what came before the entry is done again, and the batch ends with the entry. */
static struct state_txn *
batch_run(struct core *c, struct batch *b, const void *ctx)
{
    struct state_txn *t = state_write_begin(c->state, ctx);
    struct err e = ERR_INIT;

    b->ahead = state_ahead(t);
    b->restored = false;
    for (size_t i = 0; i < b->n; i++) {
        apply_one(t, b, i);
        if (!state_refused(t, &e))
            continue;
        struct entry *en = b->v[i];
        ASSERT(en->refused == NULL);
        log_error("core", "an entry of the Raft log has no effect: what it makes cannot be stored",
                  "index", LOG_U64(en->index), "error", e.text, NULL);
        en->refused = mem_dup(en, &e, sizeof(e));
        state_abort(t);
        batch_forget(b);
        batch_give_back(c, b, i + 1);
        t = state_write_begin(c->state, ctx);
        b->ahead = state_ahead(t);
        b->restored = false;
        i = SIZE_MAX; /* from the first one */
    }
    return t;
}

/* All of it in one transaction: 0, or -ENOSPC when nothing of it was done. */
static int
batch_apply(struct core *c, struct batch *b, const void *ctx)
{
    ASSERT(b->n > 0 && b->v[0]->index == c->apply.applied + 1);
    struct state_txn *t = batch_run(c, b, ctx);
    size_t n = 0;
    const struct state_change *ch = state_changes(t, &n);
    struct state_change *copy = n > 0 ? mem_dup(ctx, ch, n * sizeof(*ch)) : NULL;
    int rc = state_commit(t);
    if (rc < 0) {
        batch_forget(b);
        return rc;
    }
    apply_measure(c);
    atomic_fetch_sub(&c->unapplied, b->bytes);
    if (b->newest_ns > atomic_load(&c->newest_ns))
        atomic_store(&c->newest_ns, b->newest_ns);
    c->apply.applied = b->v[b->n - 1]->index;
    c->apply.applied_term = b->v[b->n - 1]->term;
    tell_committed(c, b);
    if ((n > 0 || b->restored) && c->o.on_changes != NULL)
        c->o.on_changes(c->o.on_changes_arg, c->apply.applied + b->ahead, b->restored ? NULL : copy,
                        b->restored ? 0 : n);
    return 0;
}

/* When the disk of the state is full, what is committed is applied when there is space again. */
static void
apply_batch(struct core *c)
{
    struct apply_half *a = &c->apply;
    struct batch *b = a->now_ms >= a->space_ms ? batch_take(c) : NULL;
    if (b == NULL)
        return;
    auto_mem void *tmp = mem_ctx("apply batch");
    int rc = batch_apply(c, b, tmp);
    if (rc < 0) {
        batch_give_back(c, b, 0);
        mem_free(b);
        a->space_ms = a->now_ms + CORE_SPACE_RETRY_MS;
        if (!c->short_of)
            log_error("core", "the state waits for space; new writes are refused", "dir", c->o.dir,
                      "error", err_name(rc), NULL);
        core_short_of(c, true);
        return;
    }
    a->space_ms = 0;
    if (c->short_of) {
        core_short_of(c, false);
        log_info("core", "the state has space again", "dir", c->o.dir, NULL);
    }
    batch_finish(c, b);
    mem_free(b);
}

/* --- the state of a leader --- */

static int
load_beside(struct core *c, const struct consensus_snapshot *s, struct state **ret, struct err *e)
{
    int rc = state_open_next(c->state, ret, e);
    if (rc == 0)
        rc = core_load(c, *ret, s->index, e);
    if (rc == 0) {
        rc = state_replace(c->state, *ret);
        if (rc < 0)
            return err_set(e, rc, "replace the state file: %s", err_name(rc));
    }
    return rc;
}

static void
take_state(struct core *c, const struct consensus_snapshot *s)
{
    struct apply_half *a = &c->apply;
    struct state *old = c->state, *next = NULL;
    struct err e = ERR_INIT;
    size_t spare;
    ASSERT(!a->leading && s->index > a->applied);
    core_join_snapshot(c); /* of the state that goes */
    entries_drop(c, &a->todo);
    if (load_beside(c, s, &next, &e) < 0) {
        state_close(next);
        core_begin_again(c, &e);
        return;
    }
    pthread_mutex_lock(&c->state_lock);
    c->state = next;
    pthread_mutex_unlock(&c->state_lock);
    state_close(old);
    a->applied = s->index;
    a->applied_term = s->term;
    mem_free(a->conf.v);
    consensus_conf_copy(c, &s->conf, &a->conf);
    a->conf_index = s->conf_index;
    a->since_snapshot = a->bytes_since_snapshot = 0;
    state_file(c->state, &a->began_used, &spare);
    a->space_ms = 0;
    core_short_of(c, false);
    apply_measure(c);
    a->opened = false; /* listeners are told of it as of the first one */
    if (c->o.on_changes != NULL) {
        auto_mem void *tmp = mem_ctx("ahead");
        struct state_txn *t = state_read_begin(c->state, tmp);
        c->o.on_changes(c->o.on_changes_arg, state_applied(t), NULL, 0);
        state_read_end(t);
    }
}

/* --- a step --- */

static void
run_calls(struct core *c)
{
    struct apply_half *a = &c->apply;
    for (int i = 0; i < CORE_APPLY_CALLS && a->calls.first != NULL; i++) {
        struct call *k = fifo_take(&a->calls);
        k->fn(k->arg);
        mem_free(k);
    }
}

void
apply_step(struct core *c, int64_t now_ms, struct apply_input *in)
{
    struct apply_half *a = &c->apply;
    ASSERT(now_ms >= a->now_ms);
    a->now_ms = now_ms;
    if (in->lost)
        apply_lose(c);
    auto_mem struct consensus_snapshot *install = TAKE(in->install);
    if (install != NULL)
        take_state(c, install);
    if (!a->opened)
        tell_state(c, false);
    a->opened = true;
    fifo_join(&a->todo, &in->entries);
    fifo_join(&a->calls, &in->calls);
    if (a->space_ms == 0 || c->stopping)
        run_calls(c);
    apply_batch(c);
    core_maybe_snapshot(c);
}
