/* SPDX-License-Identifier: Apache-2.0
 *
 * Launches children of periodic jobs when they are due, while this server leads. What is due is
 * kept here by time; a single child for each time is ensured when the entry is applied
 * (fsm/child.c), whoever proposed it and how often. A new leader launches the last time that was
 * missed, if any. Loop thread but where it says otherwise; without a periodic job there is no
 * timer.
 */
#include <inttypes.h>

#include "api/cron.h"
#include "api/terms.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/host/zone.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/leader/heap.h"
#include "server/leader/leader_int.h"

enum { SLEEP_MAX_MS = 60000 /* times are by the wall clock, which may be set */ };

struct due {
    const char *key; /* "namespace\nid" */
    const char *ns, *id;
    struct cron_set times;
    int64_t next_s; /* or CRON_NEVER */
    bool busy;      /* a launch is on its way to the log: those of a job go there in their order */
    size_t at;
    UT_hash_handle hh;
};

struct periodic {
    struct leader *l;
    struct due *by_key;
    struct pheap heap; /* of those that are not busy */
    struct timer *timer;
};

/* From the apply thread: a periodic job became what it is now. */
struct news {
    struct periodic *p;
    const char *ns, *id;
    const struct periodic_config *config; /* NULL: it is not launched any more */
    int64_t since_s;                      /* times behind it are due */
    bool found;                           /* in the state, by a new leader */
};

static void periodic_tick(void *arg);

static bool
due_before(const void *a, const void *b)
{
    return ((const struct due *)a)->next_s < ((const struct due *)b)->next_s;
}

static size_t *
due_slot(void *e)
{
    return &((struct due *)e)->at;
}

static struct due *
due_find(struct periodic *p, const char *ns, const char *id)
{
    auto_mem char *key = mem_printf(NULL, "%s\n%s", ns, id);
    struct due *d;
    HASH_FIND_STR(p->by_key, key, d);
    return d;
}

static void
due_del(struct periodic *p, struct due *d)
{
    pheap_remove(&p->heap, d);
    HASH_DEL(p->by_key, d);
    talloc_free(d);
}

static void
periodic_arm(struct periodic *p)
{
    const struct due *d = pheap_top(&p->heap);
    const struct env *env = p->l->env;

    env_timer_stop(env, TAKE(p->timer));
    if (d == NULL || d->next_s == CRON_NEVER)
        return;
    int64_t ms = (d->next_s * NS_PER_S - env_wall_ns(env)) / NS_PER_MS + 1;
    p->timer = env_timer(env, ms < 0 ? 0 : ms < SLEEP_MAX_MS ? ms : SLEEP_MAX_MS, periodic_tick, p);
}

/* --- launches --- */

struct launch {
    struct periodic *p;
    char *ns, *id;
};

static void
periodic_stored(void *arg, const struct fsm_result *res)
{
    struct launch *x = arg;
    struct periodic *p = x->p;
    struct due *d = due_find(p, x->ns, x->id);

    (void)res;
    talloc_free(x);
    if (d == NULL || !d->busy)
        return;
    d->busy = false;
    pheap_push(&p->heap, d);
    periodic_arm(p);
}

static void
periodic_launch_job(struct periodic *p, struct due *d, int64_t at_s)
{
    char eval[UUID_TEXT];
    struct intent_periodic_launch pl = {.namespace = d->ns,
                                        .job_id = d->id,
                                        .launch = at_s,
                                        .eval_id = env_id(p->l->env, eval)};
    struct intent in = {.periodic_launch = &pl};
    struct launch *x = mem_new(p, struct launch);

    *x = (struct launch){p, mem_strdup(x, d->ns), mem_strdup(x, d->id)};
    d->busy = true;
    d->next_s = cron_set_next(&d->times, at_s);
    pheap_remove(&p->heap, d);
    debts_add(p->l->debts, codec_clone(NULL, &type_intent, &in), NULL, periodic_stored, x);
}

/* Launches what is due. For a server that stood still for long the last of its times counts, as
 * after a change of leader. */
static void
periodic_tick(void *arg)
{
    struct periodic *p = arg;
    int64_t now_s = env_wall_ns(p->l->env) / NS_PER_S;
    struct due *d;

    p->timer = NULL;
    for (int n = 0; n < PERIODIC_TURN && (d = pheap_top(&p->heap)) != NULL && d->next_s <= now_s;
         n++) {
        int64_t at = d->next_s;
        if (now_s - at > PERIODIC_LATE_MAX_S)
            at = cron_set_last(&d->times, at - 1, now_s);
        periodic_launch_job(p, d, at);
    }
    periodic_arm(p);
}

/* --- what is launched --- */

static void
periodic_track(struct periodic *p, const struct news *n)
{
    struct due *d = mem_new(p, struct due);
    const struct zone *z;
    struct err e = ERR_INIT;

    d->ns = mem_strdup(d, n->ns);
    d->id = mem_strdup(d, n->id);
    d->key = mem_printf(d, "%s\n%s", n->ns, n->id);
    if (zone_find(n->config->time_zone, &z, &e) < 0 ||
        cron_set_parse(d, n->config, z, &d->times, &e) < 0) {
        log_error("periodic", "a periodic job is not launched", "namespace", n->ns, "job", n->id,
                  "error", e.text, NULL);
        talloc_free(d);
        return;
    }
    int64_t now_s = env_wall_ns(p->l->env) / NS_PER_S;
    int64_t missed = n->found ? cron_set_last(&d->times, n->since_s, now_s) : CRON_NEVER;
    d->next_s = missed != CRON_NEVER ? missed : cron_set_next(&d->times, n->since_s);
    HASH_ADD_KEYPTR(hh, p->by_key, d->key, strlen(d->key), d);
    pheap_push(&p->heap, d);
}

static void
periodic_told(void *arg)
{
    struct news *n = arg;
    struct periodic *p = n->p;

    if (p->l->on) { /* an older leadership's comes before its end */
        struct due *d = due_find(p, n->ns, n->id);
        if (d != NULL)
            due_del(p, d);
        if (n->config != NULL)
            periodic_track(p, n);
        periodic_arm(p);
    }
    talloc_free(n);
}

/* --- the row; apply thread --- */

static void
periodic_tell(struct leader *l, const struct job *j, int64_t since_s, bool found)
{
    struct news *n = mem_new(NULL, struct news);

    *n = (struct news){.p = l->periodic, .since_s = since_s, .found = found};
    n->ns = mem_strdup(n, j->namespace);
    n->id = mem_strdup(n, j->id);
    if (job_periodic_active(j))
        n->config = codec_clone(n, &type_periodic_config, j->periodic);
    env_post(l->env, periodic_told, n);
}

static void
row_on_leader(struct leader *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("periodic");
    struct state_iter *it = state_periodic_launches(t, tmp);

    for (struct periodic_launch *row; (row = state_next(it, tmp)) != NULL; talloc_free(row)) {
        struct job *j = state_job(t, tmp, row->namespace, row->id);
        if (j != NULL)
            periodic_tell(l, j, row->launch, true);
        mem_free(j);
    }
}

static void
row_on_applied(struct leader *l, uint64_t index, const struct intent *in,
               const struct fsm_result *res)
{
    (void)index;
    if (res->job != NULL && res->job_changed && res->job->periodic != NULL)
        periodic_tell(l, res->job, in->time / NS_PER_S, false);
    FSM_EACH(res, JOBS, DELETED, gone)
        if (gone->periodic != NULL)
            periodic_tell(l, &(struct job){.namespace = gone->namespace, .id = gone->id}, 0, false);
}

static void
row_init(struct leader *l)
{
    l->periodic = mem_new(l, struct periodic);
    l->periodic->l = l;
    l->periodic->heap = (struct pheap){.ctx = l->periodic, .before = due_before, .slot = due_slot};
}

static void
row_end(struct leader *l)
{
    struct periodic *p = l->periodic;
    struct due *d, *next;

    env_timer_stop(l->env, TAKE(p->timer));
    HASH_ITER (hh, p->by_key, d, next)
        due_del(p, d);
}

const struct controller periodic_row = {
    .init = row_init, .on_leader = row_on_leader, .on_applied = row_on_applied, .end = row_end};
