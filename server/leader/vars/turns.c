/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns of tasks whose templates have changed, while this server leads: of a group as many
 * allocations restart at a time as its update block lets. They are kept in memory alone: a new
 * leader knows of none, and lets that many more begin. Loop thread.
 */
#include "api/terms.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/leader/leader_int.h"

struct turn {          /* a talloc context */
    const char *group; /* "namespace\njob\ngroup" */
    const char *alloc, *task;
    int64_t until_ms;
    struct turn *next;
};

struct turns {
    struct turn *all;
};

/* Says whether nothing of its allocation runs any more. */
static bool
turn_is_stale(struct state_txn *t, const struct turn *x)
{
    auto_mem void *tmp = mem_ctx("turn");
    const struct allocation *a = state_alloc(t, tmp, x->alloc);

    return a == NULL || alloc_client_terminal(a);
}

/* Returns how many other allocations of the group restart; *own: this one does already. */
static int64_t
turns_count(struct leader *l, struct state_txn *t, const char *group, const char *alloc, bool *own)
{
    int64_t n = 0, now = env_mono_ms(l->env);

    for (struct turn **at = &l->turns->all; *at != NULL;) {
        struct turn *x = *at;
        if (now >= x->until_ms || (str_eq(x->group, group) && turn_is_stale(t, x))) {
            *at = x->next;
            talloc_free(x);
            continue;
        }
        at = &x->next;
        *own = *own || str_eq(x->alloc, alloc);
        if (!str_eq(x->group, group) || str_eq(x->alloc, alloc))
            continue;
        const struct turn *y = l->turns->all;
        while (y != x && !str_eq(y->alloc, x->alloc))
            y = y->next;
        n += y == x; /* else it is counted by another task of it */
    }
    return n;
}

/* Removes the turn of the task, if it has one. */
static void
turns_drop(struct leader *l, const char *alloc, const char *task)
{
    for (struct turn **at = &l->turns->all; *at != NULL; at = &(*at)->next)
        if (str_eq((*at)->alloc, alloc) && str_eq((*at)->task, task)) {
            struct turn *x = *at;
            *at = x->next;
            talloc_free(x);
            return;
        }
}

bool
leader_turn(struct leader *l, struct state_txn *t, const struct allocation *a,
            const struct alloc_turn_request *q)
{
    const struct task_group *g = job_group(a->job, a->task_group);
    const struct update_strategy *u = g != NULL ? g->update : NULL;
    struct turn *x = mem_new(l, struct turn);
    bool own = false;

    x->group = mem_printf(x, "%s\n%s\n%s", a->namespace, a->job_id, a->task_group);
    x->alloc = mem_strdup(x, a->id);
    x->task = mem_strdup(x, str_or(q->task, ""));
    turns_drop(l, x->alloc, x->task);
    bool free = u == NULL || u->max_parallel.v <= 0;
    if (q->over || free ||
        (turns_count(l, t, x->group, x->alloc, &own) >= u->max_parallel.v && !own)) {
        talloc_free(x);
        return q->over || free;
    }
    x->until_ms = env_mono_ms(l->env) + u->healthy_deadline.v / NS_PER_MS;
    x->next = l->turns->all;
    l->turns->all = x;
    return true;
}

/* --- the row --- */

static void
turns_init(struct leader *l)
{
    l->turns = mem_new(l, struct turns);
}

static void
turns_end(struct leader *l)
{
    while (l->turns->all != NULL) {
        struct turn *x = l->turns->all;
        l->turns->all = x->next;
        talloc_free(x);
    }
}

const struct controller turns_row = {.init = turns_init, .end = turns_end};
