/* SPDX-License-Identifier: Apache-2.0
 *
 * What sync.h says, in its two directions. Down: the list of this node's allocations is a blocking
 * query, whose answer is compared with what runs here; what is new or changed goes to fetch.c, what
 * the list has no more is dropped. Up: one report at a time, with all allocations that are dirty
 * then; each stays dirty until a server has taken its newest state. Last the start and stop of
 * both.
 */
#include "client/node/sync.h"

#include <string.h>

#include "api/terms.h"
#include "client/limits.h"
#include "client/local.h"
#include "client/node/fetch.h"
#include "client/node/volumes.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

#define LIST_WAIT_NS (300 * NS_PER_S)
/* Limits of the short question, for where heartbeats are frequent, since nodes are few: a server
 * that stands still is left for another one before they are due. */
#define LIST_SHORT_NS (5 * NS_PER_S)
#define LIST_SHORT_TTL_NS (30 * NS_PER_S)
#define LIST_LATE_MS 1500 /* after the wait; then the server is taken to stand still */

struct sync {
    struct ground *g;
    struct allocs *allocs;
    struct gc *gc;
    struct gone_set *gone;
    struct registration *reg;
    bool on; /* reports are sent */
    /* down */
    uint64_t list_call;
    struct fetch *fetch; /* what the list said is new; NULL: nothing */
    uint64_t index;
    bool list_stale; /* any server answers the list that was asked for */
    int64_t list_sent_ns;
    uint64_t listed; /* allocations in the last list, plus one; 0: none yet */
    struct timer *list_timer;
    int64_t list_backoff_ms;
    /* up */
    uint64_t update_call;
    struct timer *update_timer;
    bool update_posted;
    int64_t update_backoff_ms;
    bool beat_after_report;
};

/* Nothing else tells a client of few words that its server stands still. */
static bool
is_impatient(const struct sync *s)
{
    const struct registration *r = s->reg;

    return s->index != 0 && r->ttl_ns > 0 && r->ttl_ns <= LIST_SHORT_TTL_NS &&
           known_others(r->known) && s->g->cfg.leave != NULL;
}

static void list_send(struct sync *s);
static void update_send(struct sync *s);

/* --- down --- */

static void
on_list_timer(void *arg)
{
    struct sync *s = arg;
    s->list_timer = NULL;
    list_send(s);
}

static void
list_retry(struct sync *s, const char *what, const struct err *e)
{
    int64_t ms = backoff_next(&s->list_backoff_ms);
    log_warn("client", what, "error", e->text, "retry_in", LOG_DUR(ms * NS_PER_MS), NULL);
    timer_stop(s->list_timer);
    s->list_timer = timer_start(s->g->loop, ms, on_list_timer, s);
}

static void
on_fetched(void *arg, const struct err *e)
{
    struct sync *s = arg;
    s->fetch = NULL;
    if (s->g->stopping)
        return;
    if (e) {
        s->index = 0; /* ask for the list again, at once when it comes */
        list_retry(s, "allocations were not received", e);
    } else {
        list_send(s);
    }
}

static bool
sync_listed(const struct node_client_allocs_response *r, const char *id)
{
    return codec_map_find(&r->allocs, sizeof(*r->allocs.v), id) != NULL;
}

static void
drop_unlisted(struct sync *s, const struct node_client_allocs_response *r)
{
    ALLOCS_EACH(s->allocs, ar)
        if (!sync_listed(r, ar->a.id))
            alloc_runner_remove(ar);
    struct gone *g, *gtmp;
    HASH_ITER(hh, s->gone->all, g, gtmp)
    {
        if (!sync_listed(r, g->id))
            gone_forget(s->gone, g);
    }
}

static void
take_list(struct sync *s, const struct node_client_allocs_response *r)
{
    uint64_t index = r->meta ? r->meta->index : 0;
    bool fewer = index == s->index && r->allocs.n + 1 != s->listed;
    if (fewer) /* nothing was added, but some are gone */
        drop_unlisted(s, r);
    if (index >= s->index)
        s->listed = r->allocs.n + 1;
    if (index <= s->index) { /* the wait is over, or an answer from the past */
        bool early = !fewer && clock_mono_ns() - s->list_sent_ns < NS_PER_S;
        if (early) /* a server that does not block must not make us spin */
            s->list_timer = timer_start(s->g->loop, 1000, on_list_timer, s);
        else
            list_send(s);
        return;
    }
    s->index = index;
    drop_unlisted(s, r);
    volumes_take(s->g->volumes, &r->volumes);
    struct fetch_to to = {s->allocs, s->gc, s->gone, on_fetched, s};
    for (size_t i = 0; i < r->allocs.n; i++) {
        const char *id = r->allocs.v[i].k;
        uint64_t at = (uint64_t)r->allocs.v[i].v;
        struct alloc_runner *ar = alloc_runner_find(s->allocs, id);
        if (ar ? at <= ar->a.rec->server_index : gone_has(s->gone, id, at))
            continue;
        s->fetch = s->fetch ? s->fetch : fetch_new(&to);
        fetch_add(s->fetch, id, at);
    }
    if (s->fetch)
        fetch_start(s->fetch);
    else
        list_send(s);
}

static void
on_list(void *arg, const struct err *e, const void *resp)
{
    struct sync *s = arg;
    s->list_call = 0;
    if (s->g->stopping) {
        /* nothing */
    } else if (e) {
        bool unknown = e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN;
        if (unknown && s->list_stale)
            s->index = 0; /* it lags, and may know the run before this one: the leader is asked */
        else if (unknown)
            register_beat_now(s->reg); /* its answer decides about registering again */
        if (e->code == -ERR_TIMEOUT && is_impatient(s)) {
            log_info("client", "the server does not answer: another one is asked", NULL);
            s->g->cfg.leave(s->g->cfg.servers_arg);
            list_send(s);
        } else {
            list_retry(s, "list of allocations was not received", e);
        }
    } else {
        s->list_backoff_ms = 0;
        take_list(s, resp);
    }
    hold_release(&s->g->hold);
}

static void
list_send(struct sync *s)
{
    if (s->g->stopping || s->list_call || s->fetch)
        return;
    /* The first list ends what is not in it: it must not come from a server that lags behind. Later
     * ones are held against the index of the one before. */
    bool soon = is_impatient(s);
    int64_t wait = soon ? LIST_SHORT_NS : LIST_WAIT_NS;
    struct rpc_envelope env = ground_proof(s->g);
    env.min_index = s->index;
    env.wait = wait;
    env.stale = s->list_stale = s->index != 0;
    struct node_client_allocs_request req = {.known = s->index != 0 ? s->listed : 0};
    struct rpc_request r = {RPC_NODE_GET_CLIENT_ALLOCS, &req, &env,
                            (wait + wait / 16) / NS_PER_MS + (soon ? LIST_LATE_MS : 10 * 1000)};
    s->list_sent_ns = clock_mono_ns();
    hold_take(&s->g->hold);
    s->list_call = rpc_send(s->g->rpc, &r, on_list, s);
}

/* --- up --- */

static uint64_t
report_hash(const struct allocation *r)
{
    return codec_hash(&type_allocation, r, 0);
}

static void
on_update_timer(void *arg)
{
    struct sync *s = arg;
    s->update_timer = NULL;
    update_send(s);
}

static void
update_in(struct sync *s, int64_t ms)
{
    timer_stop(s->update_timer);
    s->update_timer = timer_start(s->g->loop, ms, on_update_timer, s);
}

static void
on_update_posted(void *arg)
{
    struct sync *s = arg;
    s->update_posted = false;
    if (!s->g->stopping && !s->update_timer)
        update_send(s);
    hold_release(&s->g->hold);
}

/* The status is news: running, complete, failed; not only one more event. */
static bool
sync_urgent(const struct alloc_runner *ar)
{
    return ar->report.dirty && !str_eq(ar->report.told, ar->status);
}

/* A change of status goes out at the end of this turn (one report at a time, so a storm of them is
 * sent together), other changes a little later. */
static void
update_schedule(struct sync *s, bool now)
{
    if (!s->on || s->g->stopping || s->update_call || s->update_posted)
        return;
    if (s->update_timer && (!now || s->update_backoff_ms > 0))
        return;
    timer_stop(TAKE(s->update_timer));
    if (!now) {
        update_in(s, SYNC_BATCH_NS / NS_PER_MS);
        return;
    }
    s->update_posted = true;
    hold_take(&s->g->hold);
    loop_post(s->g->loop, on_update_posted, s);
}

static void
sync_acknowledged(struct alloc_runner *ar)
{
    ar->report.in_flight = false;
    if (ar->a.rec->acked == ar->report.sent)
        return;
    ar->a.rec->acked = ar->report.sent;
    local_put_ack(ar->a.g->local, ar->a.rec);
}

static void
update_failed(struct sync *s, const struct err *e)
{
    ALLOCS_EACH(s->allocs, ar) {
        if (ar->report.in_flight)
            ar->report.dirty = true;
        ar->report.in_flight = false;
    }
    int64_t ms = backoff_next(&s->update_backoff_ms);
    log_warn("client", "report of allocations was not taken", "error", e->text, "retry_in",
             LOG_DUR(ms * NS_PER_MS), NULL);
    update_in(s, ms);
    if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN)
        register_beat_now(s->reg);
}

/* False: nothing is to be reported. */
static bool
schedule_dirty(struct sync *s, bool now)
{
    bool any = false;
    ALLOCS_EACH(s->allocs, ar) {
        any |= ar->report.dirty;
        now |= sync_urgent(ar);
    }
    if (any)
        update_schedule(s, now);
    return any;
}

static void
on_update(void *arg, const struct err *e, const void *resp)
{
    (void)resp;
    struct sync *s = arg;
    s->update_call = 0;
    if (s->g->stopping && !s->g->quitting) {
        /* nothing */
    } else if (e) {
        update_failed(s, e);
    } else {
        s->update_backoff_ms = 0;
        ALLOCS_EACH(s->allocs, ar)
            if (ar->report.in_flight)
                sync_acknowledged(ar);
        if (!schedule_dirty(s, false) && s->beat_after_report) {
            s->beat_after_report = false;
            register_beat_now(s->reg);
        }
        gc_wake(s->gc);
    }
    hold_release(&s->g->hold);
}

static void
update_send(struct sync *s)
{
    if (s->g->stopping || s->update_call)
        return;
    auto_mem void *tmp = mem_ctx("report");
    const struct rpc_envelope env = ground_proof(s->g);
    struct node_update_alloc_request req = {.report = ++s->g->report,
                                            .node_index = s->g->node_index};
    ALLOCS_EACH(s->allocs, ar) {
        if (!ar->report.dirty || req.allocs.n >= CLIENT_UPDATE_MAX)
            continue;
        struct allocation *r = alloc_runner_report(tmp, ar);
        ar->report.sent = report_hash(r);
        ar->report.told = ar->status;
        ar->report.dirty = false;
        ar->report.in_flight = true;
        list_add(tmp, req.allocs, r);
    }
    if (req.allocs.n == 0)
        return;
    struct rpc_request r = {RPC_NODE_UPDATE_ALLOC, &req, &env, 0};
    hold_take(&s->g->hold);
    s->update_call = rpc_send(s->g->rpc, &r, on_update, s);
}

void
sync_dirty(struct sync *s, struct alloc_runner *ar)
{
    if (s->g->adopting > 0 && !s->on) {
        ar->report.dirty = true;
        return;
    }
    auto_mem void *tmp = mem_ctx("report");
    uint64_t h = report_hash(alloc_runner_report(tmp, ar));
    /* a report that a server has, or is being told, need not be told again */
    if (!ar->report.in_flight && h == ar->a.rec->acked)
        return;
    if (ar->report.in_flight && h == ar->report.sent)
        return;
    ar->report.dirty = true;
    update_schedule(s, sync_urgent(ar));
}

void
sync_all_dirty(struct sync *s)
{
    s->beat_after_report = false;
    ALLOCS_EACH(s->allocs, ar) {
        ar->report.dirty = true;
        s->beat_after_report = true;
    }
    if (s->beat_after_report)
        update_schedule(s, true);
}

void
sync_start(struct sync *s)
{
    if (!s->on) {
        s->on = true;
        schedule_dirty(s, true);
    }
    if (s->list_backoff_ms > 0) { /* the servers answer again: no need to wait it out */
        timer_stop(s->list_timer);
        s->list_timer = NULL;
    }
    if (!s->list_timer)
        list_send(s);
    if (s->update_backoff_ms > 0) {
        s->update_backoff_ms = 0;
        timer_stop(TAKE(s->update_timer));
        update_send(s);
    }
}

void
sync_stop(struct sync *s)
{
    timer_stop(s->list_timer);
    timer_stop(s->update_timer);
    s->list_timer = s->update_timer = NULL;
    if (s->list_call)
        rpc_cancel(s->g->rpc, s->list_call);
    if (s->update_call)
        rpc_cancel(s->g->rpc, s->update_call);
    if (s->fetch)
        fetch_cancel(s->fetch);
}

void
sync_anew(struct sync *s)
{
    s->index = 0;
}

struct sync *
sync_new(struct allocs *allocs, struct gc *gc, struct gone_set *gone, struct registration *reg)
{
    struct sync *s = mem_new(allocs->g, struct sync);
    *s = (struct sync){.g = allocs->g, .allocs = allocs, .gc = gc, .gone = gone, .reg = reg};
    return s;
}
