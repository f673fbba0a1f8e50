/* SPDX-License-Identifier: Apache-2.0
 *
 * What reaches the halves of the core and what leaves them (core_int.h): the door, where a write is
 * admitted, and counted until it is applied or failed; completions, which run at their homes; the
 * inboxes.
 */
#include <errno.h>
#include <time.h>

#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/core/core_int.h"

/* --- completions --- */

struct completion {
    struct completion *next;
    enum home home;
    propose_fn *done;
    void *arg;
    struct err e;
    uint64_t index;
    struct fsm_result *res; /* owned */
};

static void
proposal_release(struct core *c, const struct proposal *p)
{
    pthread_mutex_lock(&c->raft_in.mutex);
    ASSERT(c->raft_in.n_proposals > 0 && c->raft_in.proposal_bytes >= p->bytes);
    c->raft_in.n_proposals--;
    c->raft_in.proposal_bytes -= p->bytes;
    pthread_mutex_unlock(&c->raft_in.mutex);
}

static void
add_unadmitted(completions *l, struct proposal *p, int code, const char *why,
               struct fsm_result *res)
{
    struct completion *d = mem_new(NULL, struct completion);
    d->home = p->home;
    d->done = p->done;
    d->arg = p->arg;
    d->res = talloc_steal(d, res); /* the callee may steal it on */
    if (res != NULL) {
        d->index = res->index;
        d->e = res->err;
    } else {
        err_set(&d->e, code, "%s", why);
    }
    fifo_add(l, d);
    mem_free(p);
}

void
completions_add(struct core *c, completions *l, struct proposal *p, int code, const char *why,
                struct fsm_result *res)
{
    proposal_release(c, p);
    add_unadmitted(l, p, code, why, res);
}

/* At its home. */
static void
completion_run(void *arg)
{
    struct completion *d = arg;
    d->done(d->arg, d->e.code != 0 ? &d->e : NULL, d->index, d->res);
    mem_free(d); /* with the result, unless done() took it */
}

/* On the loop. */
static void
completions_run(void *arg)
{
    for (struct completion *d = arg, *next; d != NULL; d = next) {
        next = d->next;
        completion_run(d);
    }
}

/* Takes the completions of one home. */
static completions
completions_of(completions *l, enum home home)
{
    completions of, others;
    fifo_init(&of);
    fifo_init(&others);
    while (l->first != NULL) {
        struct completion *d = fifo_take(l);
        if (d->home == home)
            fifo_add(&of, d);
        else
            fifo_add(&others, d);
    }
    fifo_join(l, &others);
    return of;
}

static void
post_apply(struct core *c, completions *l)
{
    if (l->first == NULL)
        return;
    pthread_mutex_lock(&c->apply_in.mutex);
    while (l->first != NULL) {
        struct completion *d = fifo_take(l);
        if (c->apply_in.last) {
            fifo_add(&c->apply_in.late, d);
            continue;
        }
        struct call *k = mem_new(NULL, struct call);
        *k = (struct call){.fn = completion_run, .arg = d};
        fifo_add(&c->apply_in.calls, k);
    }
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->apply_in.wake);
}

void
completions_post(struct core *c, completions *l)
{
    completions of_apply = completions_of(l, HOME_APPLY);
    post_apply(c, &of_apply);
    if (l->first != NULL)
        env_post(c->env, completions_run, TAKE(l->first));
}

void
completions_last(struct core *c, completions *l)
{
    ASSERT(c->apply_in.last);
    fifo_join(l, &c->apply_in.late);
    completions of_apply = completions_of(l, HOME_APPLY);
    /* whatever has become of it: who hears that it went well would go on with the next step */
    for (struct completion *d = of_apply.first; d != NULL; d = d->next) {
        err_clear(&d->e);
        err_set(&d->e, -ERR_CANCELED, "the server is shutting down");
    }
    completions_run(of_apply.first);
    ASSERT(c->apply_in.late.first == NULL); /* nobody proposes any more */
    completions_post(c, l);
}

static void
queue_refuse(struct core *c, struct proposal *p, int code, const char *why)
{
    completions l;
    fifo_init(&l);
    add_unadmitted(&l, p, code, why, NULL);
    completions_post(c, &l);
}

void
core_fail(struct core *c, struct proposal *p, int code, const char *why)
{
    proposal_release(c, p);
    queue_refuse(c, p, code, why);
}

void
core_disown(struct core *c, entries *l, completions *done, int code, const char *why)
{
    for (struct entry *en = l->first; en != NULL; en = en->next) {
        en->begins = false;
        if (en->proposal != NULL)
            completions_add(c, done, TAKE(en->proposal), code, why, NULL);
    }
}

/* --- the door --- */

bool
core_is_leader(const struct core *c)
{
    return atomic_load(&c->leader);
}

static int
queue_admit(struct core *c, const struct proposal *p, const char **ret_why)
{
    if (buf_error(&p->data) == -ERR_INVALID) {
        *ret_why = "what is to be written is nested deeper than 64 levels";
        return -ERR_INVALID;
    }
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
    pthread_mutex_lock(&c->raft_in.mutex);
    if (c->raft_in.n_proposals >= SERVER_PROPOSALS_MAX ||
        c->raft_in.proposal_bytes + p->data.len > CORE_QUEUE_BYTES_MAX) {
        *ret_why = "too many writes are waiting to be committed";
        rc = -ERR_BUSY;
    } else {
        c->raft_in.n_proposals++;
        c->raft_in.proposal_bytes += p->data.len;
    }
    pthread_mutex_unlock(&c->raft_in.mutex);
    return rc;
}

static int
proposal_destroy(struct proposal *p)
{
    buf_done(&p->data);
    return 0;
}

/* False: the core is stopping. */
static bool
queue_enqueue(struct core *c, struct proposal *p)
{
    pthread_mutex_lock(&c->raft_in.mutex);
    bool ok = !c->stopping;
    if (ok)
        fifo_add(&c->raft_in.proposals, p);
    pthread_mutex_unlock(&c->raft_in.mutex);
    pthread_cond_signal(&c->raft_in.wake);
    return ok;
}

/* The clock of another leader may have been ahead of ours: time does not go back in the log. */
static int64_t
core_time(struct core *c)
{
    int64_t now = env_wall_ns(c->env), newest = atomic_load(&c->newest_ns);
    return now > newest ? now : newest;
}

void
core_propose(struct core *c, struct intent *in, enum home home, propose_fn *done, void *arg)
{
    struct proposal *p = mem_new(NULL, struct proposal);
    /* nothing is proposed and forgotten: server/leader/debts.h waits for who cannot */
    ASSERT(done != NULL);
    talloc_set_destructor(p, proposal_destroy);
    p->home = home;
    p->done = done;
    p->arg = arg;
    if (in->time == 0)
        in->time = core_time(c);
    buf_init(&p->data, SERVER_INTENT_MAX + 1);
    mp_encode(&p->data, &type_intent, in);
    p->bytes = p->data.len;
    p->room = fsm_room(in);
    const char *why = NULL;
    struct err e = ERR_INIT;
    int rc = queue_admit(c, p, &why);
    if (rc == -ERR_INVALID && codec_check(&type_intent, in, &e) < 0)
        why = e.text;
    if (rc < 0)
        queue_refuse(c, p, rc, why);
    else if (!queue_enqueue(c, p))
        core_fail(c, p, -ERR_CANCELED, "the server is shutting down");
}

/* --- entries --- */

static int
entry_destroy(struct entry *en)
{
    buf_done(&en->given);
    return 0;
}

struct entry *
entry_new(const struct record *r, struct proposal *p)
{
    struct entry *en = mem_new(NULL, struct entry);
    *en = (struct entry){
        .index = r->index, .term = r->term, .type = r->type, .n = r->n, .proposal = p};
    ASSERT(p == NULL || p->data.len == r->n); /* the entry is what was proposed */
    if (p != NULL) {
        talloc_set_destructor(en, entry_destroy);
        en->given = p->data;
        en->data = p->data.data;
        buf_init(&p->data, 0);
    } else if (r->n > 0) {
        en->data = mem_dup(en, r->data, r->n);
    }
    return en;
}

void
entries_free(entries *l)
{
    while (l->first != NULL)
        talloc_free(fifo_take(l));
}

void
entries_drop(struct core *c, entries *l)
{
    for (const struct entry *en = l->first; en != NULL; en = en->next) {
        ASSERT(en->proposal == NULL);
        atomic_fetch_sub(&c->unapplied, en->n);
    }
    entries_free(l);
}

/* --- the end --- */

void
core_begin_again(struct core *c, const struct err *e)
{
    log_error("core", "the state that a leader sent cannot be taken now", "error", e->text, NULL);
    c->o.net->begin_again(c->o.net->arg);
}

void
core_close_door(struct core *c)
{
    pthread_mutex_lock(&c->apply_in.mutex);
    pthread_mutex_lock(&c->raft_in.mutex);
    atomic_store(&c->stopping, true);
    atomic_store(&c->leader, false);
    pthread_mutex_unlock(&c->raft_in.mutex);
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->raft_in.wake);
}

void
core_nothing_comes(struct core *c)
{
    pthread_mutex_lock(&c->apply_in.mutex);
    ASSERT(c->stopping);
    c->apply_in.last = true;
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->apply_in.wake);
}

/* --- the raft half's inbox --- */

void
core_durable(void *arg, uint64_t index)
{
    struct core *c = arg;
    pthread_mutex_lock(&c->raft_in.mutex);
    c->raft_in.durable = index;
    c->raft_in.durable_news = true;
    pthread_mutex_unlock(&c->raft_in.mutex);
    pthread_cond_signal(&c->raft_in.wake);
}

void
core_snapshot_stored(struct core *c, struct consensus_snapshot *s)
{
    pthread_mutex_lock(&c->raft_in.mutex);
    mem_free(c->raft_in.snapshot); /* an older one */
    c->raft_in.snapshot = s;
    pthread_mutex_unlock(&c->raft_in.mutex);
    pthread_cond_signal(&c->raft_in.wake);
}

void
core_short_of(struct core *c, bool yes)
{
    pthread_mutex_lock(&c->raft_in.mutex);
    atomic_store(&c->short_of, yes);
    pthread_mutex_unlock(&c->raft_in.mutex);
    pthread_cond_signal(&c->raft_in.wake);
}

/* Until `end_ms`, monotonic; CONSENSUS_NEVER: without end. False: it is over. */
static bool
wait_until(pthread_cond_t *wake, pthread_mutex_t *mutex, int64_t end_ms)
{
    if (end_ms == CONSENSUS_NEVER)
        return pthread_cond_wait(wake, mutex) == 0;
    struct timespec ts = {.tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * NS_PER_MS};
    return pthread_cond_timedwait(wake, mutex, &ts) != ETIMEDOUT;
}

bool
core_wait(struct core *c, struct core_input *ret)
{
    __typeof__(c->raft_in) *in = &c->raft_in;
    *ret = (struct core_input){0};
    fifo_init(&ret->proposals);
    fifo_init(&ret->msgs);
    pthread_mutex_lock(&in->mutex);
    while ((c->short_of || in->proposals.first == NULL) && !in->durable_news &&
           in->msgs.first == NULL && in->snapshot == NULL && c->raft.todo.first == NULL &&
           !c->stopping)
        if (!wait_until(&in->wake, &in->mutex, c->raft.timeout_ms))
            break;
    ret->durable = in->durable_news ? in->durable : 0;
    in->durable_news = false;
    ret->snapshot = TAKE(in->snapshot);
    fifo_join(&ret->msgs, &in->msgs);
    in->msgs_bytes = 0;
    if (!c->short_of || c->stopping)
        fifo_join(&ret->proposals, &in->proposals);
    bool end = c->stopping && ret->proposals.first == NULL && c->raft.todo.first == NULL &&
               ret->durable == 0 && ret->snapshot == NULL && ret->msgs.first == NULL;
    pthread_mutex_unlock(&in->mutex);
    return !end;
}

/* --- the apply half's inbox --- */

bool
core_post(struct core *c, void (*fn)(void *arg), void *arg)
{
    struct call *k = mem_new(NULL, struct call);
    *k = (struct call){.fn = fn, .arg = arg};
    pthread_mutex_lock(&c->apply_in.mutex);
    bool ok = !c->stopping;
    if (ok)
        fifo_add(&c->apply_in.calls, k);
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->apply_in.wake);
    if (!ok)
        mem_free(k);
    return ok;
}

void
core_hand_over(struct core *c, entries *l)
{
    ASSERT(l->first != NULL);
    pthread_mutex_lock(&c->apply_in.mutex);
    fifo_join(&c->apply_in.entries, l);
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->apply_in.wake);
}

void
core_hand_install(struct core *c, struct consensus_snapshot *s)
{
    pthread_mutex_lock(&c->apply_in.mutex);
    entries_drop(c, &c->apply_in.entries);
    mem_free(c->apply_in.install); /* an older one */
    c->apply_in.install = s;
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->apply_in.wake);
}

void
core_lose(struct core *c, completions *done, const char *why)
{
    pthread_mutex_lock(&c->apply_in.mutex);
    atomic_store(&c->leader, false);
    c->apply_in.lost = true;
    core_disown(c, &c->apply_in.entries, done, -ERR_NOT_LEADER, why);
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->apply_in.wake);
}

void
core_lead(struct core *c)
{
    pthread_mutex_lock(&c->apply_in.mutex);
    if (!c->apply_in.lost && !c->stopping)
        atomic_store(&c->leader, true);
    pthread_mutex_unlock(&c->apply_in.mutex);
}

void
core_look(struct core *c)
{
    pthread_mutex_lock(&c->apply_in.mutex);
    c->apply_in.look = true;
    pthread_mutex_unlock(&c->apply_in.mutex);
    pthread_cond_signal(&c->apply_in.wake);
}

bool
apply_wait(struct core *c, struct apply_input *ret)
{
    __typeof__(c->apply_in) *in = &c->apply_in;
    struct apply_half *a = &c->apply;
    *ret = (struct apply_input){0};
    fifo_init(&ret->entries);
    fifo_init(&ret->calls);
    pthread_mutex_lock(&in->mutex);
    while (!in->lost && !in->look && !in->last && in->install == NULL &&
           (a->space_ms != 0 || (in->entries.first == NULL && in->calls.first == NULL &&
                                 a->todo.first == NULL && a->calls.first == NULL)))
        if (!wait_until(&in->wake, &in->mutex, a->space_ms != 0 ? a->space_ms : CONSENSUS_NEVER))
            break;
    ret->lost = in->lost;
    ret->install = TAKE(in->install);
    in->lost = in->look = false;
    fifo_join(&ret->entries, &in->entries);
    fifo_join(&ret->calls, &in->calls);
    bool end = in->last && ret->install == NULL && ret->calls.first == NULL &&
               a->calls.first == NULL &&
               ((ret->entries.first == NULL && a->todo.first == NULL) || a->space_ms != 0);
    /* the half has what is taken, even in the end */
    if (end)
        fifo_join(&a->todo, &ret->entries);
    pthread_mutex_unlock(&in->mutex);
    return !end;
}
