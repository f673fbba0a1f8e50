/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: draining of nodes. A drain is the node's DrainStrategy; what became of the
 * last one is its LastDrain. The drainer (server/leader/drain_step.h) decides what moves when; that
 * a drain is over is decided here, from the allocations at the entry's index.
 */
#include "server/fsm/fsm_int.h"

#include "common/duration.h"

#define SUBSYSTEM "Drain"

/* Deadlines count from the request: one that changes a drain begins anew. */
static struct drain_strategy *
drain_make_strategy(struct apply *a, const struct node *n, const struct drain_spec *spec)
{
    struct drain_strategy *d = type_new(a->ctx, &type_drain_strategy);

    d->deadline = spec->deadline < 0 ? -1 : spec->deadline;
    d->ignore_system_jobs = spec->ignore_system_jobs;
    d->started_at = n->drain_strategy != NULL ? n->drain_strategy->started_at : a->now;
    if (spec->deadline > 0)
        d->force_deadline =
            spec->deadline > INT64_MAX - a->now ? INT64_MAX : a->now + spec->deadline;
    return d;
}

static void
copy_meta(const void *ctx, struct str_map *to, const struct str_map *from)
{
    *to = (struct str_map){0};
    for (size_t i = 0; i < from->n; i++)
        str_map_set(ctx, to, from->v[i].k, from->v[i].v);
}

static void
note_last(struct apply *a, struct node *n, bool begins, const char *status,
          const struct str_map *meta)
{
    struct drain_metadata *m = begins || n->last_drain == NULL
                                   ? type_new(a->ctx, &type_drain_metadata)
                                   : codec_clone(a->ctx, &type_drain_metadata, n->last_drain);

    if (m->started_at == 0)
        m->started_at = a->now;
    m->updated_at = a->now;
    m->status = status;
    if (meta != NULL && meta->n > 0)
        copy_meta(m, &m->meta, meta);
    n->last_drain = m;
}

static void
drain_begin(struct apply *a, struct node *n, const struct intent_node_drain *in)
{
    bool begins = n->drain_strategy == NULL;

    n->drain_strategy = drain_make_strategy(a, n, in->drain_spec);
    n->scheduling_eligibility = NODE_INELIGIBLE;
    note_last(a, n, begins, DRAIN_DRAINING, &in->meta);
    entry_node_event(a, n, begins ? "Node drain strategy set" : "Node drain strategy updated",
                     SUBSYSTEM);
}

/* False: there was neither a drain nor anything else to undo. */
static bool
drain_cancel(struct apply *a, struct node *n, const struct intent_node_drain *in)
{
    bool drained = n->drain_strategy != NULL;
    bool opens = in->mark_eligible && !str_eq(n->scheduling_eligibility, NODE_ELIGIBLE);

    if (drained) {
        n->drain_strategy = NULL;
        note_last(a, n, false, DRAIN_CANCELED, &in->meta);
        entry_node_event(a, n, "Node drain disabled", SUBSYSTEM);
    }
    if (opens) {
        n->scheduling_eligibility = NODE_ELIGIBLE;
        if (!drained)
            entry_node_event(a, n, "Node marked as eligible for scheduling", "Cluster");
    }
    return drained || opens;
}

int
intent_node_drain(struct apply *a, const struct intent_node_drain *in)
{
    struct node *n = state_node(a->t, a->ctx, str_or(in->node_id, ""));

    if (n == NULL)
        return entry_refuse(a, -ERR_NOT_FOUND, "node \"%s\" not found", str_or(in->node_id, ""));
    bool was = str_eq(n->scheduling_eligibility, NODE_ELIGIBLE);
    a->eval_ids = &in->eval_ids;
    if (in->drain_spec != NULL) {
        drain_begin(a, n, in);
    } else if (!drain_cancel(a, n, in)) {
        a->res->node = n;
        a->res->node_modify_index = n->modify_index;
        return 0;
    }
    n->status_updated_at = a->now / NS_PER_S;
    entry_put_node(a, n);
    if (!was && str_eq(n->scheduling_eligibility, NODE_ELIGIBLE))
        entry_node_evals(a, n->id);
    return 0;
}

/* Does the allocation keep its node from being drained? */
static bool
drain_holds(struct apply *a, struct allocation *al, const struct drain_strategy *d)
{
    if (alloc_client_terminal(al))
        return false;
    if (!d->ignore_system_jobs)
        return true;
    const struct job *j = state_alloc_job(a->t, al);
    return j == NULL || !str_eq(j->type, JOB_SYSTEM);
}

int
intent_node_drained(struct apply *a, const struct intent_node_drained *in)
{
    struct node *n = state_node(a->t, a->ctx, str_or(in->node_id, ""));
    bool held = false;

    if (n == NULL || n->drain_strategy == NULL)
        return 0; /* purged, or disabled meanwhile */
    struct state_iter *it = state_allocs_by_node(a->t, a->tmp, n->id);
    for (struct allocation *al; (al = state_next(it, a->tmp)) != NULL;)
        held |= drain_holds(a, al, n->drain_strategy);
    if (held)
        return 0;
    n->drain_strategy = NULL;
    n->status_updated_at = a->now / NS_PER_S;
    note_last(a, n, false, DRAIN_COMPLETE, NULL);
    entry_node_event(a, n, "Node drain complete", SUBSYSTEM);
    entry_put_node(a, n);
    return 0;
}
