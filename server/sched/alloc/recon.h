/* SPDX-License-Identifier: Apache-2.0
 *
 * The input and the result of the reconciler (see ../reconcile.h).
 */
#ifndef PADDOCK_SERVER_SCHED_ALLOC_RECON_H
#define PADDOCK_SERVER_SCHED_ALLOC_RECON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"

struct node_table;
struct rng;

#define DESC_NOT_NEEDED "alloc not needed due to job update"
#define DESC_MIGRATING "alloc is being migrated"
#define DESC_UPDATING "alloc is being updated due to job update"
#define DESC_LOST "alloc is lost since its node is down"
#define DESC_RESCHEDULED "alloc was rescheduled because it failed"
#define DESC_RECONNECTED "alloc not needed: the allocation that it replaced is back"
#define DESC_SILENT "its client is disconnected"

struct recon_stop {
    const struct allocation *alloc;
    const char *desc;          /* NULL: keeps its description */
    const char *client_status; /* "lost", or NULL */
    const struct allocation *stays; /* since that one does; NULL: whatever others do */
};

struct recon_place {
    const struct task_group *tg;
    const char *name;
    const struct allocation *prev; /* NULL: a new one */
    const char *stop_desc;         /* prev stops only if this one finds a place; NULL: no matter */
    bool reschedule;               /* prev failed: penalty for its nodes, tracker */
    bool canary;
    const struct job *job; /* an older version, of which `tg` is; NULL: the newest */
};

struct recon_update {
    const struct allocation *alloc;
    const struct task_group *tg;
    bool back; /* it came back, and is kept: that is settled */
};

struct recon_mark {
    const struct allocation *alloc;
    const char *eval_id;       /* of the follow-up evaluation to wait for; NULL: as it was */
    const char *client_status; /* "unknown", or NULL */
};

/* The allocation that becomes a part of a follow-up evaluation, with others of its kind. */
struct recon_later {
    const struct allocation *alloc;
    const char *trigger;
    int64_t at;
    size_t mark; /* that bears its id; SIZE_MAX: none */
};

struct recon {
    struct { struct recon_stop *v; size_t n; } stops;
    struct { struct recon_place *v; size_t n; } places; /* with a stop_desc first, per group */
    struct { struct recon_update *v; size_t n; } updates;
    struct { struct recon_mark *v; size_t n; } marks;
    struct { struct recon_later *v; size_t n; } laters;
    const struct deployment *deployment; /* that placements are of; NULL: none */
    struct deployment *made;             /* the same, when this round makes it */
    struct deployment_status_update_list status; /* of the latest one */
    struct desired_updates_map desired; /* per group */
};

struct recon_in {
    const struct job *job; /* NULL: purged */
    const char *job_id;
    const struct evaluation *eval;
    const struct allocation *const *allocs; /* of the job, with their job versions */
    size_t n_allocs;
    const struct node_table *nodes;
    const struct deployment *latest; /* of the job, whatever its version; NULL: none */
    int64_t now;
    struct rng *rng;
    /* May an allocation of the group stay on its node under the new specification? */
    bool (*may_stay)(void *arg, const struct task_group *tg, const char *node_id);
    /* Does another evaluation of the job come at that time, for that reason? */
    bool (*is_awaited)(void *arg, const char *trigger, int64_t at);
    void *arg;
};

#endif
