/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries on their way to followers. What the window holds leaves at once, in pieces. Older entries
 * are read from the files by a thread of their own, or a slow disk would stop heartbeats: while the
 * thread reads for a follower, what consensus adds goes to the feed, and the follower gets empty
 * appends behind the last entry that left. What does not leave is not told: consensus hears of it
 * by a rejection.
 */
#include "common/mem.h"
#include "server/core/core_int.h"

struct feed *
feed_of(struct core *c, uint64_t id)
{
    for (size_t i = 0; i < CONSENSUS_PEERS_MAX; i++)
        if (c->raft.feeds[i].id == id)
            return &c->raft.feeds[i];
    return NULL;
}

/* NULL: all are in use, of servers that are in the configuration or were lately. */
struct feed *
feed_new(struct core *c, uint64_t id)
{
    struct feed *f = feed_of(c, 0);
    for (size_t i = 0; i < CONSENSUS_PEERS_MAX && f == NULL; i++)
        if (c->raft.feeds[i].term < c->raft.term)
            f = &c->raft.feeds[i];
    if (f != NULL) {
        mem_free(f->addr);
        *f = (struct feed){.id = id};
    }
    return f;
}

static bool
put_part(struct core *c, struct feed *f, const struct record *v, size_t n)
{
    struct peer_msg m = {.type = MSG_APPEND,
                         .peer = f->id,
                         .addr = f->addr,
                         .term = f->term,
                         .index = f->next - 1,
                         .log_term = f->prev_term,
                         .commit = c->raft.commit,
                         .entries = v,
                         .n = n,
                         .quiet = f->quiet};
    ASSERT(n == 0 || (v[0].index == f->next && v[n - 1].index == f->next + n - 1));
    if (!core_send_one(c, &m))
        return false;
    ASSERT(f->next + n <= f->end);
    f->next += n;
    if (n > 0)
        f->prev_term = v[n - 1].term;
    return true;
}

/* How many of `n` entries one message takes. They end before a configuration that is not durable
 * here (guard 11). */
static size_t
feed_piece(const struct core *c, const struct record *v, size_t n)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += wire_entry_size(&v[i]);
        if ((v[i].type == RECORD_CONFIG && v[i].index > c->raft.stored) ||
            (i > 0 && bytes > CORE_SEND_BYTES))
            return i;
    }
    return n;
}

void
feed_ask(struct core *c, struct feed_read *x)
{
    pthread_mutex_lock(&c->reads.mutex);
    fifo_add(&c->reads.wanted, x);
    pthread_mutex_unlock(&c->reads.mutex);
    pthread_cond_signal(&c->reads.wake);
}

/* Asks for the next ones, if they are durable and still there. */
static bool
feed_want(struct core *c, struct feed *f)
{
    struct raft_half *r = &c->raft;
    struct feed_read *x = mem_new(NULL, struct feed_read);
    x->peer = f->id;
    x->term = f->term;
    x->v = mem_array(x, struct record, CORE_READ_N);
    for (uint64_t i = f->next; i < f->end && i <= r->stored && x->n < CORE_READ_N; i++) {
        uint64_t term = recent_term(r->recent, i);
        if (term == 0)
            break;
        x->v[x->n++] = (struct record){.index = i, .term = term};
    }
    if (x->n == 0) {
        mem_free(x);
        return false;
    }
    f->reading = true;
    feed_ask(c, x);
    return true;
}

static void
feed_on(struct core *c, struct feed *f)
{
    auto_mem struct record *v = NULL;
    while (f->next < f->end && !f->reading) {
        size_t n = 0;
        if (v == NULL)
            v = mem_array(NULL, struct record, CORE_READ_N);
        for (; f->next + n < f->end && n < CORE_READ_N; n++) {
            const struct record *x = recent_get(c->raft.recent, f->next + n);
            if (x == NULL)
                break;
            v[n] = *x;
        }
        size_t fits = feed_piece(c, v, n);
        if (n == 0 && feed_want(c, f))
            return;
        if (fits == 0 || !put_part(c, f, v, fits))
            f->end = f->next;
    }
}

void
feed_append(struct core *c, const struct peer_msg *m)
{
    struct feed *f = feed_of(c, m->peer);
    if (f == NULL && (f = feed_new(c, m->peer)) == NULL)
        return;
    f->quiet = m->quiet;
    if (f->term == m->term && f->reading && (m->n == 0 || m->index + 1 == f->end)) {
        f->end += m->n;
        put_part(c, f, NULL, 0);
        return;
    }
    mem_free(f->addr);
    f->addr = mem_strdup(c, m->addr);
    f->term = m->term;
    f->next = m->index + 1;
    f->end = f->next + m->n;
    f->prev_term = m->log_term;
    uint64_t from = f->next;
    feed_on(c, f);
    if (f->next == from) /* nothing left; it is a heartbeat all the same */
        put_part(c, f, NULL, 0);
}

void
feed_take(struct core *c, struct feed_read *x)
{
    if (x->what != FEED_ENTRIES) {
        install_done(c, x);
        return;
    }
    struct feed *f = feed_of(c, x->peer);
    if (f == NULL || !f->reading)
        return;
    f->reading = false;
    if (c->raft.role != CONSENSUS_LEADER || f->term != c->raft.term)
        return;
    /* else another range was asked for meanwhile. None found: the files do not have them any more
     */
    if (x->term == f->term && x->v[0].index == f->next &&
        (x->found == 0 || !put_part(c, f, x->v, feed_piece(c, x->v, x->found))))
        f->end = f->next;
    feed_on(c, f);
}

/* --- the thread that reads --- */

struct feed_read *
feed_wanted(struct core *c, bool wait)
{
    struct feed_read *x = NULL;
    pthread_mutex_lock(&c->reads.mutex);
    while (wait && !c->reads.end && c->reads.wanted.first == NULL)
        pthread_cond_wait(&c->reads.wake, &c->reads.mutex);
    if (!c->reads.end && c->reads.wanted.first != NULL)
        x = fifo_take(&c->reads.wanted);
    pthread_mutex_unlock(&c->reads.mutex);
    return x;
}

void
feed_do(struct core *c, struct feed_read *x)
{
    if (x->what == FEED_ENTRIES)
        x->found = raft_log_read(c->raft.log, x, x->v, x->n, CORE_SEND_BYTES);
    else
        install_read(c, x);
    core_put_msg(c, (struct core_msg){.read = x});
}

void
feed_end(struct core *c)
{
    pthread_mutex_lock(&c->reads.mutex);
    c->reads.end = true;
    while (c->reads.wanted.first != NULL)
        talloc_free(fifo_take(&c->reads.wanted));
    pthread_mutex_unlock(&c->reads.mutex);
    pthread_cond_signal(&c->reads.wake);
}
