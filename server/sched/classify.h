/* SPDX-License-Identifier: Apache-2.0
 *
 * The reconciler's first half, and what the two share: one group of a job, while it is worked on.
 */
#ifndef PADDOCK_SERVER_SCHED_CLASSIFY_H
#define PADDOCK_SERVER_SCHED_CLASSIFY_H

#include <stddef.h>

#include "common/mem.h"
#include "server/sched/alloc/names.h"
#include "server/sched/alloc/recon.h"
#include "server/sched/rollout.h"

enum class {
    CLASS_IGNORE,
    CLASS_COVERED,    /* nobody hears of it, and a replacement fills its place */
    CLASS_UNTAINTED,  /* counts, and stays */
    CLASS_MIGRATE,
    CLASS_LOST,
    CLASS_RESCHEDULE, /* failed, and is to be placed again now */
    CLASS_REPLACE,    /* nobody hears of it: another one is to be placed now, and it stays */
};

struct item {
    const struct allocation *a;
    enum class class;
    int64_t index;
    bool stopped;
    bool canary; /* of the deployment that is under way */
    bool destructive;
    bool covered; /* another one holds its place: away_holds() */
    bool back;    /* it was unknown, runs, and is kept */
};

struct group_run {
    const struct recon_in *in;
    struct recon *out;
    const struct task_group *tg;
    struct desired_updates *du;
    struct item *v;
    size_t n;
    int64_t count, keep; /* wanted; and what stays until a promotion, if that is more */
    bool batch;
    bool held; /* nothing is placed before the time of stop_on_client_after is over */
    struct names *names;
    struct rollout *ro;
    struct rollout_group rg;
};

#define push(ctx, list, ...)                                                  \
    do {                                                                      \
        if (((list).n & ((list).n - 1)) == 0)                                 \
            (list).v = mem_realloc((ctx), (list).v, sizeof(*(list).v),        \
                                   (list).n ? (list).n * 2 : 1, "recon");     \
        (list).v[(list).n++] = (__typeof__(*(list).v)){__VA_ARGS__};          \
    } while (0)

static inline bool
transition_flag(const struct allocation *a, size_t offset)
{
    const char *t = (const void *)a->desired_transition;
    const struct opt_bool *f = t ? (const void *)(t + offset) : NULL;
    return f && f->set && f->v;
}
#define FLAG(a, member) transition_flag((a), offsetof(struct desired_transition, member))

static inline void
stop_item(struct group_run *g, struct item *it, const char *desc, const char *client_status)
{
    push(g->out, g->out->stops, it->a, desc, client_status);
    it->stopped = true;
    g->du->stop++;
}

/* Stops one of an original and its replacement: `stays` stays. */
static inline void
stop_other(struct group_run *g, struct item *it, const char *desc, const struct item *stays)
{
    stop_item(g, it, desc, NULL);
    g->out->stops.v[g->out->stops.n - 1].stays = stays->a;
}

/* Gives each allocation of the group its class, and stops what came back for nothing.
 * Before anything else is done about it. */
void classify_group(struct group_run *g);

#endif
