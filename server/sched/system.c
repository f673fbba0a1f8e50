/* SPDX-License-Identifier: Apache-2.0
 *
 * System and sysbatch: `count` allocations of each group on every node that can run it. A change of
 * the job reaches all nodes at once; pacing comes with deployments.
 */
#include <string.h>

#include "api/away.h"
#include "api/terms.h"
#include "common/mem.h"
#include "server/sched/away.h"
#include "server/sched/alloc/names.h"
#include "server/sched/feasible.h"
#include "server/sched/sched_int.h"

struct system_run {
    struct attempt *t;
    const struct task_group *tg;
    struct desired_updates *du;
    int64_t count;
    bool sysbatch;
    bool stays;    /* something of the group runs on, or is placed */
    bool *ok;      /* row: feasible and takes work */
    uint8_t *done; /* row * count + index: nothing more to do there */
};

static void
system_stop(struct system_run *r, const struct allocation *a, const char *desc, const char *client)
{
    (void)attempt_stop(r->t, a, desc, client);
    if (r->t->select != NULL)
        select_stop(r->t->select, a);
    r->du->stop++;
}

/* A driver of the group is gone for now (its helper or engine starts again, the machine has just
 * come up), and attributes with it: what runs there goes on, whatever the constraints make of
 * that. */
static bool
system_lacks_driver(const struct system_run *r, uint32_t row)
{
    const struct node *n = r->t->in->view->nodes->facts[row]->node;

    return !r->ok[row] && !feasible_has_drivers(r->tg, n);
}

/* A live allocation on a node that is still there. True when it fills its place. */
static bool
system_keep(struct system_run *r, const struct allocation *a, uint32_t row)
{
    enum rollout_change c = rollout_change(a->job, r->t->job, r->tg);
    bool takes_work = r->t->in->view->nodes->facts[row]->takes_work;

    bool back = alloc_was_unknown(a);

    if (back && c == CHANGE_NONE) {
        attempt_update(r->t, a, true);
        r->du->reconnect++;
        return true;
    }
    if ((!takes_work && c == CHANGE_NONE) || (takes_work && system_lacks_driver(r, row))) {
        r->du->ignore++;
        return true;
    }
    if (takes_work && !r->ok[row]) {
        system_stop(r, a, DESC_NOT_NEEDED, NULL);
        return true;
    }
    if (c == CHANGE_NONE) {
        r->du->ignore++;
        return true;
    }
    if (c == CHANGE_INPLACE && select_may_stay(r->t->select, r->tg, a->node_id)) {
        attempt_update(r->t, a, back);
        r->du->in_place_update++;
        return true;
    }
    if (!takes_work) {
        system_stop(r, a, DESC_NOT_NEEDED, NULL);
        return true;
    }
    struct recon_place p = {r->tg, a->name, a, DESC_UPDATING, false};
    r->du->destructive_update++;
    attempt_place(r->t, &p, a->node_id);
    return true;
}

static const struct task_group *
then_group(const struct system_run *r, const struct allocation *a)
{
    const struct task_group *tg = a->job != NULL ? job_group(a->job, a->task_group) : NULL;

    return tg != NULL ? tg : r->tg;
}

/* Says whether the allocation is of a silent node, or its client has not spoken of it yet. Then
 * nothing is decided, but it is unknown from now on. */
static bool
system_silent(struct system_run *r, const struct allocation *a, uint32_t row, int64_t index)
{
    bool away = away_node_silent(r->t->in->view->nodes, a);

    if (!away && !str_eq(a->client_status, ALLOC_UNKNOWN))
        return false;
    if (away && str_eq(a->client_status, ALLOC_RUNNING) && group_lost_after(then_group(r, a)) > 0) {
        attempt_mark(r->t, a, NULL, ALLOC_UNKNOWN);
        r->du->disconnect++;
    } else {
        r->du->ignore++;
    }
    if (index >= 0 && index < r->count)
        r->done[row * (size_t)r->count + (size_t)index] = 1;
    r->stays = true;
    return true;
}

static void
system_alloc(struct system_run *r, const struct allocation *a)
{
    const struct node_table *nodes = r->t->in->view->nodes;
    uint32_t row = node_table_find(nodes, a->node_id);
    int64_t index = name_index(a->name);
    const struct desired_transition *dt = a->desired_transition;

    if (alloc_client_terminal(a)) {
        bool same = rollout_change(a->job, r->t->job, r->tg) == CHANGE_NONE;
        if (r->sysbatch && same && row != NODES_NONE && index >= 0 && index < r->count) {
            uint8_t *done = &r->done[row * (size_t)r->count + (size_t)index];
            r->du->ignore += *done == 0;
            *done = 1;
        }
        return;
    }
    bool expired = alloc_expired(a, then_group(r, a), away_node_status(nodes, a), r->t->in->now);
    bool waits =
        row != NODES_NONE && str_eq(a->client_status, ALLOC_UNKNOWN) && alloc_was_unknown(a);
    if (expired || (away_node_lost(nodes, a) && !waits)) {
        system_stop(r, a, DESC_LOST, ALLOC_LOST);
        return;
    }
    if (alloc_server_terminal(a))
        return;
    if (system_silent(r, a, row, index))
        return;
    if (index < 0 || index >= r->count) {
        system_stop(r, a, DESC_NOT_NEEDED, NULL);
        return;
    }
    uint8_t *done = &r->done[row * (size_t)r->count + (size_t)index];
    if (*done) {
        system_stop(r, a, DESC_NOT_NEEDED, NULL);
    } else if (dt != NULL && dt->migrate.set && dt->migrate.v) {
        system_stop(r, a, DESC_MIGRATING, NULL);
    } else {
        *done = system_keep(r, a, row);
        r->stays |= r->ok[row] || !nodes->facts[row]->takes_work || system_lacks_driver(r, row);
    }
}

static void
system_group(struct system_run *r)
{
    struct attempt *t = r->t;
    const struct node_table *nodes = t->in->view->nodes;
    const uint32_t *rows;
    size_t n = select_feasible(t->select, r->tg, &rows);

    r->ok = mem_array(t->out, bool, nodes->n);
    r->done = mem_array(t->out, uint8_t, nodes->n * (size_t)r->count);
    for (size_t i = 0; i < n; i++)
        r->ok[rows[i]] = true;
    for (size_t i = 0; i < t->n_allocs; i++)
        if (str_eq(t->allocs[i]->task_group, r->tg->name))
            system_alloc(r, t->allocs[i]);
    for (size_t i = 0; i < n; i++)
        for (int64_t k = 0; k < r->count; k++) {
            if (r->done[rows[i] * (size_t)r->count + (size_t)k])
                continue;
            struct recon_place p = {.tg = r->tg};
            p.name = name_make(t->out, str_or(t->job->name, t->job->id), r->tg->name, k);
            r->du->place++;
            attempt_place(t, &p, nodes->facts[rows[i]]->node->id);
        }
    /* No blocked evaluation: a node that comes or changes gives each system job one of its own. */
    struct alloc_metric *m = n == 0 && !r->stays ? select_filtered(t->select, r->tg) : NULL;
    if (m != NULL && m->nodes_filtered > 0)
        attempt_note(t, r->tg, m);
}

void
system_attempt(struct attempt *t)
{
    bool stopped = t->job == NULL || t->job->stop;

    t->out->annotations = mem_new(t->out, struct plan_annotations);
    __auto_type desired = &t->out->annotations->desired_tg_updates;
    for (size_t i = 0; i < t->n_allocs; i++) {
        const struct allocation *a = t->allocs[i];
        if (!stopped && job_group(t->job, a->task_group) != NULL)
            continue;
        bool lost = away_node_lost(t->in->view->nodes, a);
        if (alloc_client_terminal(a) || (alloc_server_terminal(a) && !lost))
            continue;
        __auto_type e = map_put(t->out, *desired, str_or(a->task_group, ""));
        e->v = e->v ? e->v : mem_new(t->out, struct desired_updates);
        struct system_run r = {.t = t, .du = e->v};
        system_stop(&r, a, lost ? DESC_LOST : DESC_NOT_NEEDED, lost ? ALLOC_LOST : NULL);
    }
    for (size_t i = 0; !stopped && i < t->job->task_groups.n; i++) {
        const struct task_group *tg = t->job->task_groups.v[i];
        __auto_type e = map_put(t->out, *desired, tg->name);
        e->v = e->v ? e->v : mem_new(t->out, struct desired_updates);
        struct system_run r = {.t = t, .tg = tg, .du = e->v};
        r.count = tg->count.v > 0 ? tg->count.v : 0;
        r.sysbatch = str_eq(t->job->type, JOB_SYSBATCH);
        if (r.count > 0)
            system_group(&r);
    }
}
