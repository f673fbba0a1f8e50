/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: the deployments that an entry touches, whose counters follow their
 * allocations.
 */
#include "server/fsm/fsm_int.h"

struct touched_deployment *
entry_touch_deployment(struct apply *a, const char *id)
{
    for (size_t i = 0; i < a->n_deployments; i++)
        if (str_eq(a->deployments[i].d->id, id))
            return &a->deployments[i];
    struct deployment *d = str_empty(id) ? NULL : state_deployment(a->t, a->ctx, id);
    if (d == NULL)
        return NULL;
    mem_resize(a->tmp, a->deployments, struct touched_deployment, a->n_deployments + 1);
    a->deployments[a->n_deployments] = (struct touched_deployment){d, false};
    return &a->deployments[a->n_deployments++];
}

static struct deployment_state *
group_state(const struct deployment *d, const char *group)
{
    __auto_type e = map_get(d->task_groups, group);
    return e != NULL ? e->v : NULL;
}

/* --- counters --- */

static void
note_canary(struct deployment *d, struct deployment_state *s, const struct allocation *al)
{
    for (size_t i = 0; i < s->placed_canaries.n; i++)
        if (str_eq(s->placed_canaries.v[i], al->id))
            return;
    list_add(d, s->placed_canaries, mem_strdup(d, al->id));
}

/* The first placement starts the time in which there must be progress, each healthy report starts
 * it anew. */
static void
push_deadline(struct deployment_state *s, const struct allocation *al, bool placed, bool healthy)
{
    if (s->progress_deadline == 0)
        return;
    if (placed && s->require_progress_by == 0)
        s->require_progress_by = al->modify_time + s->progress_deadline;
    else if (healthy &&
             al->deployment_status->timestamp + s->progress_deadline > s->require_progress_by)
        s->require_progress_by = al->deployment_status->timestamp + s->progress_deadline;
}

void
entry_count_deployed(struct apply *a, struct allocation *al, const struct allocation *old)
{
    if (str_empty(al->deployment_id))
        return;
    bool placed = old == NULL || !str_eq(old->deployment_id, al->deployment_id);
    bool was_healthy = !placed && alloc_healthy(old), was_bad = !placed && alloc_unhealthy(old);
    bool healthy = alloc_healthy(al), bad = alloc_unhealthy(al);
    /* one that was unhealthy once is never counted as healthy */
    bool turns = !placed && ((healthy && !was_healthy && !was_bad) || (bad && !was_bad));
    struct touched_deployment *td =
        placed || turns ? entry_touch_deployment(a, al->deployment_id) : NULL;
    struct deployment_state *s = td != NULL ? group_state(td->d, al->task_group) : NULL;

    if (s == NULL)
        return;
    td->changed = true;
    s->placed_allocs += placed;
    if (turns) {
        al->deployment_status->modify_index = a->index;
        s->healthy_allocs += healthy ? 1 : was_healthy ? -1 : 0;
        s->unhealthy_allocs += bad;
    }
    if (alloc_canary(al))
        note_canary(td->d, s, al);
    push_deadline(s, al, placed, turns && healthy);
}
