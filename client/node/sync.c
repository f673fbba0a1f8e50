/* SPDX-License-Identifier: Apache-2.0
 *
 * What the servers want of this node, and what became of it. Down: a blocking list of allocation ids
 * and indexes, then the changed ones in full (fetch.c). Up: reports, of a new status at once, of
 * further events together within CLIENT_BATCH_NS; a report is sent again until a server takes it.
 */
#include <string.h>

#include "api/terms.h"
#include "client/client_int.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

#define LIST_WAIT_NS (300 * NS_PER_S)

static void list_send(struct client *c);
static void update_send(struct client *c);

/* ---- down ------------------------------------------------------------------------------------- */

static void
on_list_timer(void *arg)
{
    struct client *c = arg;
    c->list_timer = NULL;
    list_send(c);
}

static void
list_retry(struct client *c, const char *what, const struct err *e)
{
    int64_t ms = client_backoff(&c->list_backoff_ms);
    log_warn("client", what, "error", e->text, "retry_in", LOG_DUR(ms * NS_PER_MS), NULL);
    timer_stop(c->list_timer);
    c->list_timer = timer_start(c->loop, ms, on_list_timer, c);
}

void
sync_fetched(struct client *c, const struct err *e)
{
    if (e) {
        c->index = 0; /* ask for the list again, at once when it comes */
        list_retry(c, "allocations were not received", e);
    } else {
        list_send(c);
    }
}

static bool
listed(const struct node_client_allocs_response *r, const char *id)
{
    return codec_map_find(&r->allocs, sizeof(*r->allocs.v), id) != NULL;
}

static void
drop_unlisted(struct client *c, const struct node_client_allocs_response *r)
{
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (!listed(r, ar->id))
            alloc_runner_remove(ar);
    }
    struct gone *g, *gtmp;
    HASH_ITER(hh, c->gone, g, gtmp)
    {
        if (!listed(r, g->id))
            gc_forget(c, g->id);
    }
}

static void
take_list(struct client *c, const struct node_client_allocs_response *r)
{
    uint64_t index = r->meta ? r->meta->index : 0;
    bool fewer = index == c->index && r->allocs.n + 1 != c->listed;
    if (fewer) /* nothing was added, but some are gone */
        drop_unlisted(c, r);
    if (index >= c->index)
        c->listed = r->allocs.n + 1;
    if (index <= c->index) { /* the wait is over, or an answer from the past */
        bool early = !fewer && clock_mono_ns() - c->list_sent_ns < NS_PER_S;
        if (early) /* a server that does not block must not make us spin */
            c->list_timer = timer_start(c->loop, 1000, on_list_timer, c);
        else
            list_send(c);
        return;
    }
    c->index = index;
    drop_unlisted(c, r);
    struct fetch *f = NULL;
    for (size_t i = 0; i < r->allocs.n; i++) {
        const char *id = r->allocs.v[i].k;
        uint64_t at = (uint64_t)r->allocs.v[i].v;
        struct alloc_runner *ar = alloc_runner_find(c, id);
        if (ar ? at <= ar->rec->server_index : gc_is_gone(c, id, at))
            continue;
        f = f ? f : fetch_new(c);
        fetch_add(f, id, at);
    }
    if (f)
        fetch_start(f);
    else
        list_send(c);
}

static void
on_list(void *arg, const struct err *e, const void *resp)
{
    struct client *c = arg;
    c->list_call = 0;
    if (c->stopping) {
        /* nothing */
    } else if (e) {
        if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN)
            register_beat_now(c); /* its answer decides about registering again */
        list_retry(c, "list of allocations was not received", e);
    } else {
        c->list_backoff_ms = 0;
        take_list(c, resp);
    }
    client_release(c);
}

static void
list_send(struct client *c)
{
    if (c->stopping || c->list_call || c->fetch)
        return;
    /* The first list ends what is not in it: it must not come from a server that lags behind. Later
     * ones are held against the index of the one before. */
    struct rpc_envelope env = {
        .min_index = c->index, .wait = LIST_WAIT_NS, .stale = c->index != 0};
    struct node_client_allocs_request req = {.node_id = c->node_id,
                                             .secret_id = c->secret,
                                             .known = c->index != 0 ? c->listed : 0};
    struct rpc_request r = {RPC_NODE_GET_CLIENT_ALLOCS, &req, &env,
                            (LIST_WAIT_NS + LIST_WAIT_NS / 16) / NS_PER_MS + 10 * 1000};
    c->list_sent_ns = clock_mono_ns();
    client_hold(c);
    c->list_call = rpc_send(c->rpc, &r, on_list, c);
}

/* ---- up --------------------------------------------------------------------------------------- */

static uint64_t
report_hash(const struct allocation *r)
{
    return codec_hash(&type_allocation, r, 0);
}

static void
on_update_timer(void *arg)
{
    struct client *c = arg;
    c->update_timer = NULL;
    update_send(c);
}

static void
update_in(struct client *c, int64_t ms)
{
    timer_stop(c->update_timer);
    c->update_timer = timer_start(c->loop, ms, on_update_timer, c);
}

static void
on_update_posted(void *arg)
{
    struct client *c = arg;
    c->update_posted = false;
    if (!c->stopping && !c->update_timer)
        update_send(c);
    client_release(c);
}

/* The status is news: running, complete, failed; not only one more event. */
static bool
urgent(const struct alloc_runner *ar)
{
    return ar->dirty && !str_eq(ar->told, ar->status);
}

static bool
any_urgent(const struct client *c)
{
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (urgent(ar))
            return true;
    }
    return false;
}

/* A change of status goes out at the end of this turn (one report at a time, so a storm of them is
 * sent together), other changes a little later. */
static void
update_schedule(struct client *c, bool now)
{
    if (!c->syncing || c->stopping || c->update_call || c->update_posted)
        return;
    if (c->update_timer && (!now || c->update_backoff_ms > 0))
        return;
    timer_stop(TAKE(c->update_timer));
    if (!now) {
        update_in(c, CLIENT_BATCH_NS / NS_PER_MS);
        return;
    }
    c->update_posted = true;
    client_hold(c);
    loop_post(c->loop, on_update_posted, c);
}

static void
acknowledged(struct alloc_runner *ar)
{
    ar->in_flight = false;
    if (ar->rec->acked == ar->sent)
        return;
    ar->rec->acked = ar->sent;
    local_put_ack(ar->c->state, ar->rec);
}

static void
update_failed(struct client *c, const struct err *e)
{
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (ar->in_flight)
            ar->dirty = true;
        ar->in_flight = false;
    }
    int64_t ms = client_backoff(&c->update_backoff_ms);
    log_warn("client", "report of allocations was not taken", "error", e->text, "retry_in",
             LOG_DUR(ms * NS_PER_MS), NULL);
    update_in(c, ms);
    if (e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN)
        register_beat_now(c);
}

static bool
any_dirty(const struct client *c)
{
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (ar->dirty)
            return true;
    }
    return false;
}

static void
on_update(void *arg, const struct err *e, const void *resp)
{
    (void)resp;
    struct client *c = arg;
    c->update_call = 0;
    if (c->stopping && !c->quitting) {
        /* nothing */
    } else if (e) {
        update_failed(c, e);
    } else {
        c->update_backoff_ms = 0;
        struct alloc_runner *ar, *tmp;
        HASH_ITER(hh, c->allocs, ar, tmp)
        {
            if (ar->in_flight)
                acknowledged(ar);
        }
        if (any_dirty(c)) {
            update_schedule(c, any_urgent(c));
        } else if (c->beat_after_report) {
            c->beat_after_report = false;
            register_beat_now(c);
        }
        gc_wake(c);
    }
    client_release(c);
}

static void
update_send(struct client *c)
{
    if (c->stopping || c->update_call)
        return;
    auto_mem void *tmp = mem_ctx("report");
    struct node_update_alloc_request req = {.node_id = c->node_id, .secret_id = c->secret};
    struct alloc_runner *ar, *next;
    HASH_ITER(hh, c->allocs, ar, next)
    {
        if (!ar->dirty || req.allocs.n >= CLIENT_UPDATE_MAX)
            continue;
        struct allocation *r = alloc_runner_report(tmp, ar);
        ar->sent = report_hash(r);
        ar->told = ar->status;
        ar->dirty = false;
        ar->in_flight = true;
        list_add(tmp, req.allocs, r);
    }
    if (req.allocs.n == 0)
        return;
    struct rpc_request r = {RPC_NODE_UPDATE_ALLOC, &req, NULL, 0};
    client_hold(c);
    c->update_call = rpc_send(c->rpc, &r, on_update, c);
}

void
sync_dirty(struct client *c, struct alloc_runner *ar)
{
    if (c->adopting > 0 && !c->syncing) {
        ar->dirty = true;
        return;
    }
    auto_mem void *tmp = mem_ctx("report");
    uint64_t h = report_hash(alloc_runner_report(tmp, ar));
    /* What a server has, or is being told, need not be told again. */
    if (!ar->in_flight && h == ar->rec->acked)
        return;
    if (ar->in_flight && h == ar->sent)
        return;
    ar->dirty = true;
    update_schedule(c, urgent(ar));
}

void
sync_all_dirty(struct client *c)
{
    struct alloc_runner *ar, *tmp;
    bool any = false;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        ar->dirty = true;
        any = true;
    }
    if (any)
        update_schedule(c, true);
    else
        c->beat_after_report = false;
}

void
sync_start(struct client *c)
{
    if (!c->syncing) {
        c->syncing = true;
        if (any_dirty(c))
            update_schedule(c, true);
    }
    if (!c->list_timer)
        list_send(c);
}

void
sync_stop(struct client *c)
{
    timer_stop(c->list_timer);
    timer_stop(c->update_timer);
    c->list_timer = c->update_timer = NULL;
    uint64_t calls[] = {c->list_call, c->get_call, c->refuse_call, c->update_call};
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        if (calls[i])
            rpc_cancel(c->rpc, calls[i]);
}
