/* SPDX-License-Identifier: Apache-2.0
 *
 * Parked blocking queries: see watch.h.
 *
 * No wake-up is lost: the core stores the index of a table's last change before it looks whether
 * anybody waits; who parks counts itself before it looks at that index. One of both sees the other.
 */
#include "server/state/watch.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/mem.h"

enum { BUCKETS = 1024 };

struct server_watch {
    struct server_watch *next;
    struct server_watch **link; /* what points at us */
    struct watches *w;
    struct timer *timer;
    unsigned tables;
    bool rights;
    uint64_t key;
    enum wake_reason why; /* once due */
    wake_fn *fn;
    void *arg;
};

struct watches {
    const struct env *env;
    struct server_watch *keyed[BUCKETS];
    struct server_watch *any; /* key 0 */
    struct server_watch *due; /* woken, fn not called yet (for cancel) */
    bool stopped;
    atomic_size_t n;
    atomic_uint_fast64_t last[STATE_TABLES];
};

struct news {
    struct watches *w;
    unsigned tables;
    size_t n;
    struct state_change v[];
};

struct watches *
watches_new(const struct env *env)
{
    struct watches *w = mem_new(NULL, struct watches);
    w->env = env;
    return w;
}

static void
unlink_watch(struct server_watch *x)
{
    *x->link = x->next;
    if (x->next != NULL)
        x->next->link = x->link;
}

static void
link_watch(struct server_watch **head, struct server_watch *x)
{
    x->next = *head;
    x->link = head;
    if (x->next != NULL)
        x->next->link = &x->next;
    *head = x;
}

static void
watch_finish(void *arg)
{
    struct server_watch *x = arg;
    x->timer = NULL;
    wake_fn *fn = x->fn;
    void *a = x->arg;
    enum wake_reason why = x->why;
    unlink_watch(x);
    atomic_fetch_sub(&x->w->n, 1);
    free(x);
    fn(a, why);
}

/* Wakes a watch: its function comes in the next turn. */
static void
watch_wake(struct server_watch *x, enum wake_reason why)
{
    unlink_watch(x);
    link_watch(&x->w->due, x);
    x->why = why;
    env_timer_stop(x->w->env, x->timer);
    x->timer = env_timer(x->w->env, 0, watch_finish, x);
}

/* Returns the index of the last change of the tables. */
static uint64_t
watches_index(const struct watches *w, unsigned tables)
{
    uint64_t index = 0;
    for (unsigned i = 0; i < STATE_TABLES; i++) {
        uint64_t last = (tables & STATE_BIT(i)) != 0 ? atomic_load(&w->last[i]) : 0;
        index = last > index ? last : index;
    }
    return index;
}

uint64_t
watches_rights_index(const struct watches *w)
{
    return watches_index(w, STATE_RIGHTS);
}

struct server_watch *
watches_park(struct watches *w, const struct watch_on *on, wake_fn *fn, void *arg)
{
    if (w->stopped || atomic_load(&w->n) >= SERVER_WATCHES_MAX)
        return NULL;
    struct server_watch *x = malloc(sizeof(*x)); /* many wait: no 96 bytes of talloc for each */
    ASSERT(x != NULL);
    *x = (struct server_watch){.w = w,
                               .tables = on->tables,
                               .rights = on->rights,
                               .key = on->key,
                               .why = WAKE_TIMEOUT,
                               .fn = fn,
                               .arg = arg};
    atomic_fetch_add(&w->n, 1);
    link_watch(on->key == 0 ? &w->any : &w->keyed[on->key % BUCKETS], x);
    x->timer = env_timer(w->env, on->timeout_ms > 0 ? on->timeout_ms : 0, watch_finish, x);
    if (watches_index(w, on->tables) > on->seen)
        watch_wake(x, WAKE_CHANGED);
    else if (on->rights && watches_rights_index(w) > on->rights_seen)
        watch_wake(x, WAKE_RIGHTS);
    return x;
}

void
server_watch_cancel(struct server_watch *x)
{
    if (x == NULL)
        return;
    env_timer_stop(x->w->env, x->timer);
    unlink_watch(x);
    atomic_fetch_sub(&x->w->n, 1);
    free(x);
}

static void
wake_list(struct server_watch *x, unsigned tables, uint64_t key)
{
    while (x != NULL) {
        struct server_watch *next = x->next;
        if (x->key == key && (x->tables & tables) != 0)
            watch_wake(x, WAKE_CHANGED);
        x = next;
    }
}

static void
wake_all(struct server_watch *x, enum wake_reason why)
{
    while (x != NULL) {
        struct server_watch *next = x->next;
        watch_wake(x, why);
        x = next;
    }
}

static void
watch_everybody(struct watches *w, enum wake_reason why)
{
    wake_all(w->any, why);
    for (size_t i = 0; i < BUCKETS; i++)
        wake_all(w->keyed[i], why);
}

static void
wake_those_with_rights(struct server_watch *x)
{
    while (x != NULL) {
        struct server_watch *next = x->next;
        if (x->rights)
            watch_wake(x, WAKE_RIGHTS);
        x = next;
    }
}

/* On the loop. */
static void
news_arrive(void *arg)
{
    struct news *m = arg;
    struct watches *w = m->w;
    if (m->n == 0)
        watch_everybody(w, WAKE_CHANGED);
    wake_list(w->any, m->tables, 0);
    for (size_t i = 0; i < m->n; i++) {
        if (m->v[i].key != 0)
            wake_list(w->keyed[m->v[i].key % BUCKETS], STATE_BIT(m->v[i].table), m->v[i].key);
    }
    if ((m->tables & STATE_RIGHTS) != 0) {
        wake_those_with_rights(w->any);
        for (size_t i = 0; i < BUCKETS; i++)
            wake_those_with_rights(w->keyed[i]);
    }
    mem_free(m);
}

void
watches_changed(void *arg, uint64_t index, const struct state_change *v, size_t n)
{
    struct watches *w = arg;
    unsigned tables = v == NULL ? STATE_BIT(STATE_TABLES) - 1 : 0;
    for (size_t i = 0; i < n; i++)
        tables |= STATE_BIT(v[i].table);
    for (unsigned i = 0; i < STATE_TABLES; i++) {
        if ((tables & STATE_BIT(i)) != 0)
            atomic_store(&w->last[i], index);
    }
    if (atomic_load(&w->n) == 0)
        return;
    struct news *m = mem_zalloc(NULL, sizeof(*m) + n * sizeof(*v), "news");
    m->w = w;
    m->tables = tables;
    m->n = n;
    for (size_t i = 0; i < n; i++)
        m->v[i] = v[i];
    env_post(w->env, news_arrive, m);
}

void
watches_stop(struct watches *w)
{
    w->stopped = true;
    watch_everybody(w, WAKE_SHUTDOWN);
}

void
watches_leader_lost(struct watches *w)
{
    watch_everybody(w, WAKE_LEADER);
}

size_t
watches_parked(const struct watches *w)
{
    return atomic_load(&w->n);
}

void
watches_free(struct watches *w)
{
    if (w == NULL)
        return;
    ASSERT(atomic_load(&w->n) == 0);
    mem_free(w);
}
