/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/announce.h"

#include "client/alloc/hooks_run.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"

struct announcer {
    struct ground *g;
    struct allocs *allocs;
    bool on; /* a server knows this run of the node */
};

static void announce_send(struct alloc_runner *ar);

static void
on_names_timer(void *arg)
{
    struct alloc_runner *ar = arg;
    ar->names.timer = NULL;
    announce_send(ar);
}

static void
announce_again(struct alloc_runner *ar, const struct err *e)
{
    int64_t ms = backoff_next(&ar->names.backoff_ms);
    ar->names.dirty = true;
    log_warn("client", "services of the allocation were not registered", "alloc_id", ar->a.id,
             "error", e->text, "retry_in", LOG_DUR(ms * NS_PER_MS), NULL);
    timer_stop(ar->names.timer);
    ar->names.timer = timer_start(ar->a.g->loop, ms, on_names_timer, ar);
}

/* Says whether the servers refuse what they do not know: an end that this node is told of soon. */
static bool
announce_is_over(const struct alloc_runner *ar, const struct err *e)
{
    bool refused = e->code == -ERR_NOT_FOUND || e->code == -ERR_CONFLICT;
    return refused && ar->names.set->services.n == 0;
}

/* Says whether it would be refused as often as it is sent. */
static bool
announce_is_wrong(const struct err *e)
{
    return e->code == -ERR_INVALID || e->code == -ERR_LIMIT;
}

/* Tells the user, and waits for another set: an update, or the change of a check's health. */
static void
announce_give_up(struct alloc_runner *ar, const struct err *e)
{
    log_warn("client", "the servers refuse the services of the allocation", "alloc_id", ar->a.id,
             "error", e->text, NULL);
    ar->names.refused = true;
    for (size_t i = 0; i < ar->n; i++)
        if (ar->tasks[i].sm.cfg.role == ROLE_MAIN)
            hooks_blame(&ar->tasks[i], "services are not registered", e);
}

static void
on_announced(void *arg, const struct err *e, const void *resp)
{
    struct alloc_runner *ar = arg;
    (void)resp;
    ar->names.call = 0;
    if (ar->a.stopped || ar->a.g->stopping || alloc_runner_terminal(ar)) {
        /* the servers end its names, or the next agent tells them */
    } else if (e && announce_is_wrong(e)) {
        announce_give_up(ar, e);
        announce_send(ar);
    } else if (e && !announce_is_over(ar, e)) {
        announce_again(ar, e);
    } else {
        ar->names.backoff_ms = 0;
        ar->names.refused = false;
        announce_send(ar); /* if it has changed meanwhile */
    }
    hold_release(&ar->a.hold);
}

static void
announce_send(struct alloc_runner *ar)
{
    struct ground *g = ar->a.g;
    if (!ar->names.dirty || ar->names.call || ar->a.stopped || g->stopping ||
        alloc_runner_terminal(ar))
        return;
    const struct rpc_envelope env = ground_proof(g);
    struct rpc_request r = {RPC_SERVICE_SET, ar->names.set, &env, 0};
    ar->names.dirty = false;
    timer_stop(TAKE(ar->names.timer));
    hold_take(&ar->a.hold);
    ar->names.call = rpc_send(g->rpc, &r, on_announced, ar);
}

void
announce_set(struct announcer *an, struct alloc_runner *ar)
{
    ar->names.dirty = true;
    if (an->on)
        announce_send(ar);
}

void
announce_start(struct announcer *an, bool anew)
{
    an->on = true;
    ALLOCS_EACH (an->allocs, ar) {
        if (!ar->names.set)
            continue;
        ar->names.dirty = ar->names.dirty || anew;
        ar->names.backoff_ms = 0;
        announce_send(ar);
    }
}

void
announce_stop(struct announcer *an)
{
    ALLOCS_EACH (an->allocs, ar) {
        timer_stop(TAKE(ar->names.timer));
        if (ar->names.call)
            rpc_cancel(an->g->rpc, ar->names.call);
    }
}

struct announcer *
announce_new(struct allocs *allocs)
{
    struct announcer *an = mem_new(allocs->g, struct announcer);
    *an = (struct announcer){.g = allocs->g, .allocs = allocs};
    return an;
}
