/* SPDX-License-Identifier: Apache-2.0
 *
 * Heartbeat timers (see heartbeat.h). Nodes whose time is over wait a moment for others whose time
 * ends, so that a rack that goes is missed at once.
 */
#include "server/leader/heartbeat.h"

#include "common/duration.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "server/leader/heap.h"

enum { LOOK_AGAIN_MS = 1000, LATE_MS = 1000, TOGETHER_MS = 2000 };

struct beat {
    char id[UUID_TEXT];
    int64_t due_ms;
    enum beat_state { BEAT_WAITS, BEAT_OVERDUE, BEAT_OVER } is;
    size_t at;
    UT_hash_handle hh;
};

struct heartbeats {
    const struct env *env;
    struct heartbeat_config cfg;
    missed_fn *missed;
    void *arg;
    struct beat *by_id;
    struct pheap heap;
    size_t n[BEAT_OVER + 1]; /* how many are so */
    struct timer *timer;
    int64_t timer_ms; /* when it fires */
};

/* Sets state and time: BEAT_WAITS is due at due_ms for the first time, what is BEAT_OVERDUE was due
 * and is looked at again then; what is BEAT_OVER is missed then at the latest, and not before the
 * others are. */
static void
beat_is(struct heartbeats *h, struct beat *b, enum beat_state is, int64_t due_ms)
{
    ASSERT(h->n[b->is] > 0);
    h->n[b->is]--;
    b->is = is;
    b->due_ms = due_ms;
    h->n[is]++;
    pheap_update(&h->heap, b);
}

static bool
beat_before(const void *a, const void *b)
{
    return ((const struct beat *)a)->due_ms < ((const struct beat *)b)->due_ms;
}

static size_t *
beat_slot(void *e)
{
    return &((struct beat *)e)->at;
}

static int
heartbeats_done(struct heartbeats *h)
{
    heartbeats_clear(h);
    return 0;
}

struct heartbeats *
heartbeats_new(const void *ctx, const struct env *env, const struct heartbeat_config *c,
               missed_fn *missed, void *arg)
{
    struct heartbeats *h = mem_new(ctx, struct heartbeats);

    h->env = env;
    h->cfg = *c;
    h->missed = missed;
    h->arg = arg;
    h->heap = (struct pheap){.ctx = h, .before = beat_before, .slot = beat_slot};
    talloc_set_destructor(h, heartbeats_done);
    return h;
}

static void
beat_del(struct heartbeats *h, struct beat *b)
{
    h->n[b->is]--;
    pheap_remove(&h->heap, b);
    HASH_DEL(h->by_id, b);
    talloc_free(b);
}

void
heartbeats_clear(struct heartbeats *h)
{
    struct beat *b, *nb;

    HASH_ITER(hh, h->by_id, b, nb)
        beat_del(h, b);
    env_timer_stop(h->env, h->timer);
    h->timer = NULL;
}

static void heartbeat_arm(struct heartbeats *h);

/* All whose time is over. */
static void
heartbeat_miss(struct heartbeats *h)
{
    auto_mem void *tmp = mem_ctx("missed");
    struct str_list ids = {0};
    struct beat *b, *nb;

    HASH_ITER(hh, h->by_id, b, nb) {
        if (b->is != BEAT_OVER)
            continue;
        list_add(tmp, ids, mem_strdup(tmp, b->id));
        beat_del(h, b);
    }
    if (ids.n > 0)
        h->missed(h->arg, &ids);
}

/* Timers may come before sockets. A node that is due is missed at a second look, when what lay in
 * its socket has been read; a look that comes late says that this server was not there to read
 * (stopped, paused, swapped out), and each node has its grace once more. Who is over then waits for
 * those that are due as well, but not for long. */
static void
heartbeat_fired(void *arg)
{
    struct heartbeats *h = arg;
    int64_t now_ms = env_mono_ms(h->env);
    int64_t again_ms = h->cfg.grace_ms > LOOK_AGAIN_MS ? h->cfg.grace_ms : LOOK_AGAIN_MS;
    bool stood_still = false, enough = false;

    h->timer = NULL;
    for (struct beat *b; !enough && (b = pheap_top(&h->heap)) != NULL && b->due_ms <= now_ms;) {
        stood_still |= now_ms - b->due_ms > LATE_MS; /* the one that is due longest comes first */
        if (stood_still)
            beat_is(h, b, BEAT_OVERDUE, now_ms + again_ms);
        else if (b->is == BEAT_WAITS)
            beat_is(h, b, BEAT_OVERDUE, now_ms + LOOK_AGAIN_MS);
        else if (b->is == BEAT_OVERDUE)
            beat_is(h, b, BEAT_OVER, now_ms + TOGETHER_MS);
        else
            enough = true;
    }
    if (h->n[BEAT_OVER] > 0 && (enough || h->n[BEAT_OVERDUE] == 0))
        heartbeat_miss(h);
    if (stood_still)
        log_warn("heartbeat", "this server stood still: the time does not count against its nodes",
                 NULL);
    heartbeat_arm(h);
}

/* A heartbeat only moves its node's deadline away: the timer fires when the old top is due and is
 * then set to the new one, so beats cost no timer calls. */
static void
heartbeat_arm(struct heartbeats *h)
{
    const struct beat *b = pheap_top(&h->heap);

    if (b == NULL || (h->timer != NULL && h->timer_ms <= b->due_ms))
        return;
    env_timer_stop(h->env, h->timer);
    h->timer_ms = b->due_ms;
    h->timer = env_timer(h->env, b->due_ms - env_mono_ms(h->env), heartbeat_fired, h);
}

static void
beat_set(struct heartbeats *h, const char *node_id, int64_t delay_ms)
{
    struct beat *b;

    HASH_FIND_STR(h->by_id, node_id, b);
    if (b == NULL) {
        b = mem_new(h, struct beat);
        str_copy(b->id, sizeof(b->id), node_id);
        b->due_ms = env_mono_ms(h->env) + delay_ms;
        HASH_ADD_STR(h->by_id, id, b);
        pheap_push(&h->heap, b);
        h->n[BEAT_WAITS]++;
    } else {
        beat_is(h, b, BEAT_WAITS, env_mono_ms(h->env) + delay_ms);
    }
    heartbeat_arm(h);
}

int64_t
heartbeat_interval(const struct heartbeat_config *c, size_t nodes)
{
    int64_t ms = c->per_second > 0 ? (int64_t)nodes * 1000 / c->per_second : 0;

    return ms > c->min_ms ? ms : c->min_ms;
}

int64_t
heartbeats_reset(struct heartbeats *h, const char *node_id)
{
    int64_t i = heartbeat_interval(&h->cfg, heartbeats_count(h));
    int64_t ttl = i + (int64_t)(env_random(h->env) % (uint64_t)i);

    beat_set(h, node_id, ttl + h->cfg.grace_ms);
    return ttl * NS_PER_MS;
}

void
heartbeats_failover(struct heartbeats *h, const char *node_id)
{
    beat_set(h, node_id, h->cfg.failover_ms);
}

void
heartbeats_remove(struct heartbeats *h, const char *node_id)
{
    struct beat *b;

    HASH_FIND_STR(h->by_id, node_id, b);
    if (b != NULL)
        beat_del(h, b);
}

size_t
heartbeats_count(const struct heartbeats *h)
{
    return HASH_COUNT(h->by_id);
}

#ifdef FAULT_INJECTION

bool
test_hook_beat(struct heartbeats *h, const struct str_list *node_ids)
{
    struct beat *b;

    for (size_t i = 0; i < node_ids->n; i++) {
        HASH_FIND_STR(h->by_id, node_ids->v[i], b);
        if (b == NULL)
            return false;
    }
    for (size_t i = 0; i < node_ids->n; i++) {
        HASH_FIND_STR(h->by_id, node_ids->v[i], b);
        beat_is(h, b, BEAT_OVER, env_mono_ms(h->env));
    }
    heartbeat_miss(h);
    return true;
}

#endif
