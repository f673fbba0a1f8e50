/* SPDX-License-Identifier: Apache-2.0
 *
 * Allocations of which nobody hears (see away.h).
 */
#include "api/away.h"

#include "api/terms.h"
#include "common/duration.h"

#define FENCE_DRIFT_PART 100             /* one part in so many, */
#define FENCE_DRIFT_LEAST (5 * NS_PER_S) /* and so much more */
#define END_AT_LEAST (5 * NS_PER_S) /* what ending the tasks takes, whatever their kill_timeout */

/* By how much the clocks of a node and of the servers may differ in that time, and the time that
 * ending a task takes. */
static int64_t
fence_drift(int64_t lost_after)
{
    return lost_after / FENCE_DRIFT_PART + FENCE_DRIFT_LEAST;
}

bool
group_fenced(const struct task_group *tg)
{
    return tg != NULL && tg->disconnect != NULL && tg->disconnect->fence;
}

int64_t
group_lost_after(const struct task_group *tg)
{
    int64_t most = tg != NULL && tg->disconnect != NULL ? tg->disconnect->lost_after.v : 0;

    return most > 0 && group_fenced(tg) ? most + fence_drift(most) : most;
}

int64_t
group_holds_back(const struct task_group *tg)
{
    int64_t end = END_AT_LEAST;

    if (tg == NULL || tg->disconnect == NULL || !tg->disconnect->stop_on_client_after.set)
        return 0;
    for (size_t i = 0; i < tg->tasks.n; i++)
        if (tg->tasks.v[i]->kill_timeout.v > end)
            end = tg->tasks.v[i]->kill_timeout.v;
    return tg->disconnect->stop_on_client_after.v + end;
}

bool
group_replaces(const struct task_group *tg)
{
    return tg != NULL && tg->disconnect != NULL && tg->disconnect->lost_after.v > 0 &&
           !group_fenced(tg) && (!tg->disconnect->replace.set || tg->disconnect->replace.v);
}

/* Records without a value are none. */
static const struct alloc_state *
last_record(const struct allocation *a)
{
    for (size_t i = a->alloc_states.n; i > 0; i--) {
        const struct alloc_state *s = a->alloc_states.v[i - 1];
        if (str_eq(s->field, "ClientStatus") && !str_empty(s->value))
            return s;
    }
    return NULL;
}

int64_t
alloc_recorded(const struct allocation *a, const char *value)
{
    const struct alloc_state *s = last_record(a);

    return s != NULL && str_eq(s->value, value) ? s->time : 0;
}

bool
alloc_was_unknown(const struct allocation *a)
{
    const struct alloc_state *s = last_record(a);

    return s != NULL && str_eq(s->value, ALLOC_UNKNOWN);
}

bool
alloc_expired(const struct allocation *a, const struct task_group *tg, const char *node_status,
              int64_t now)
{
    int64_t since = alloc_recorded(a, ALLOC_UNKNOWN), most = group_lost_after(tg);

    if (group_fenced(tg) && (str_eq(node_status, NODE_READY) || str_eq(node_status, NODE_INIT)))
        return false;
    return str_eq(a->client_status, ALLOC_UNKNOWN) && since != 0 && now - since >= most;
}
