/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the state machine share: one entry being applied.
 */
#ifndef PADDOCK_SERVER_FSM_FSM_INT_H
#define PADDOCK_SERVER_FSM_FSM_INT_H

#include "api/terms.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/fsm/fsm.h"
#include "server/state/write.h"

/* A job whose status and summary the entry touched. */
struct touched_job {
    const char *ns;
    const char *id;
    struct job_summary *summary; /* loaded when first needed */
    bool summary_changed;
    bool settled;              /* something of the job is not silent any more */
    struct str_list followups; /* that were named by what is not */
};

/* A deployment that the entry looked at, as it will be stored. */
struct touched_deployment {
    struct deployment *d;
    bool changed;
};

/* The place where the entry put what it touched: position in a list, by key. */
struct place_of {
    const char *key;
    size_t at;
    UT_hash_handle hh;
};

struct apply {
    void *ctx; /* of the events, and of what is pointed to by them or by the result */
    void *tmp; /* until the entry is applied */
    struct state_txn *t;
    uint64_t index;
    int64_t now; /* stamped by the leader, ns */
    struct fsm_result *res;
    const struct str_list *eval_ids; /* stamped for evaluations that apply decides; may be NULL */
    size_t n_eval_ids;
    const char *plan_eval;           /* whose plan the entry is; NULL: it is none */
    struct touched_job *jobs;
    size_t n_jobs, cap_jobs;
    size_t last_touched;            /* in `jobs`; entries come in runs of one job */
    struct place_of *at_jobs;       /* by "namespace\njob" */
    struct place_of *at_rows[STATE_TABLES]; /* in the events, by the key of the row */
    struct touched_deployment *deployments;
    size_t n_deployments;
    struct job *last_job; /* of entry_job() */
    const char *last_ns;
    const char *last_id;
};

/* Refuses the entry; nothing may have been written before. */
int entry_refuse(struct apply *a, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The position kept for `key`, or `next`, which is kept from then on. *all is cleared by
 * HASH_CLEAR. */
size_t entry_place_of(struct apply *a, struct place_of **all, const char *key, size_t next);

/* Makes the events of an entry of all that is stored or removed in its transaction. So an object
 * to be stored is a->ctx's or the intent's, and stays unchanged from then on. */
struct state_follower entry_follower(struct apply *a);
/* Says of the evaluation that was put last: nothing of it is new. */
void entry_stamped(struct apply *a);

/* All that the state says of responsive nodes is to be told anew by them. */
void entry_doubt_nodes(struct apply *a);

/* --- evaluations --- */
/* Stamps and stores; cancels the job's blocked evaluations when this one completed and placed all.
 */
void entry_put_eval(struct apply *a, const struct evaluation *ev);
/* A new pending evaluation of a job, with the next stamped id; not stored yet. */
struct evaluation *entry_new_eval(struct apply *a, const struct job *j, const char *trigger);
/* Cancels a stored evaluation that is not terminal. */
void entry_cancel_eval(struct apply *a, const char *id, const char *why);

/* --- allocations --- */
/* Stores, counts in the summary, adds to the result. `old` NULL: new. */
void entry_put_alloc(struct apply *a, struct allocation *al, const struct allocation *old,
                     uint64_t job_modify_index);
/* Sets what `s` has set. `old` as stored. */
void entry_transition(struct apply *a, const struct allocation *old,
                      const struct desired_transition *s);
/* lost_after of the allocation's group in ns, 0: none. */
int64_t entry_lost_after(struct apply *a, struct allocation *al);
/* Says whether an allocation may run (doc/fencing.md): it is of a fenced group, not ended by its
 * client's word and not expired. */
bool entry_may_run(struct apply *a, struct allocation *al);
/* Nobody waits for news of this allocation any more; `followup` (may be NULL) was to look after it,
 * and lives as long as the entry. */
void entry_settled(struct apply *a, const struct allocation *al, const char *followup);
/* Records a change of client status (doc/reconnect.md 2.2). */
void entry_append_state(struct apply *a, struct allocation *al, const char *value);

/* --- jobs --- */
/* The job as stored before the entry touched it, or NULL; cheap for runs of the same one. */
const struct job *entry_job(struct apply *a, const char *ns, const char *id);
struct touched_job *entry_touch_job(struct apply *a, const char *ns, const char *id);
/* At the end of the entry, of a job of which something was settled: what was to be done about the
 * silence is not needed any more (S19), unless others of the job wait for it. */
void entry_drop_followups(struct apply *a, const struct touched_job *j);
/* Stores the newest version of it again. */
void entry_store_job(struct apply *a, const struct job *j);
/* Stores `j` as the newest version. */
void entry_put_job(struct apply *a, struct job *j, const struct job *old);

/* --- children of periodic and parameterized jobs (job_put.c) --- */
/* The periodic job was launched at that time, or is looked at from then on. */
void entry_put_launch(struct apply *a, const struct job *j, int64_t at_s);
/* In the summary of the parent. `was` NULL: the child is new. */
void entry_count_child(struct apply *a, const struct job *child, const char *was, const char *is);

/* The job goes, and its deployments with it. */
void entry_remove_job(struct apply *a, const struct job *j);
/* Writes down which volumes an allocation that was placed has by groups with `sticky`: those of its
 * name come back to them. Forgotten with the job. */
void entry_claim_volumes(struct apply *a, const struct job *j, const struct allocation *al);
void entry_release_volumes(struct apply *a, const struct job *j);

/* The scaling policies of its groups are those of the job, which was stored
 * (scale_policy.c). */
void entry_put_policies(struct apply *a, const struct job *j);

/* Stores the specification as the newest version. */
struct job *entry_put_version(struct apply *a, const struct job *spec);

/* --- deployments (deployment_entry.c) --- */
/* Returns the deployment as the entry will store it; NULL: there is none. */
struct touched_deployment *entry_touch_deployment(struct apply *a, const char *id);
/* Counts what has become of an allocation in its deployment; `al` as it is about to be stored. */
void entry_count_deployed(struct apply *a, struct allocation *al, const struct allocation *old);
/* Applies the deployments of a plan: a new one, and changes of status of those that are not
 * over. */
void entry_plan_deployments(struct apply *a, const struct plan_result *in);

/* --- nodes --- */
/* Appended to those of the node; `message` and `subsystem` are constants. */
void entry_node_event(struct apply *a, struct node *n, const char *message, const char *subsystem);
void entry_put_node(struct apply *a, struct node *n);
/* One evaluation for every job that has work on the node, or should have (doc/reconnect.md 1.6). */
void entry_node_evals(struct apply *a, const char *node_id);

/* The built-in ones, and those that jobs and nodes of an older state name. */
void entry_make_pools(struct apply *a);
void entry_make_namespaces(struct apply *a);
/* A pool that is not there yet; texts are constants or live as long as the entry. */
void entry_make_pool(struct apply *a, const char *name, const char *description);

/* --- objects with a name --- */
/* Stamps its indexes and stores it. */
void entry_put_object(struct apply *a, enum state_table table, const struct type *t, void *obj);
/* Adds to *why who still uses the object, so that it may not go; `region` is for the words. */
#define KEPT(TABLE, type)                                                                          \
    void entry_keeps_##type(struct apply *a, const char *name, const char *region,                 \
                            struct str_list *why);
API_KEPT_OBJECTS(KEPT)
#undef KEPT
/* Refuses the entry when the object may not be stored as the state is. */
#define CHECKED(TABLE, type) int entry_refuses_##type(struct apply *a, const struct type *obj);
API_CHECKED_OBJECTS(CHECKED)
#undef CHECKED

/* Shows the registrations of a node or not, by whether it is away. */
void entry_services_away(struct apply *a, const struct node *n);
/* Removes tokens that have ended. */
void entry_reap_tokens(struct apply *a, const struct intent_reap *in);
/* GC of a node (rule S14), if it may go. */
void entry_reap_node(struct apply *a, const char *id, int64_t down_before);

/* --- intents: a function for each member of Intent in api/schema/intents.schema --- */
#define INTENT(id, member)                                                                         \
    int intent_##member(struct apply *a, const __typeof__(*((struct intent *)0)->member) *in);
INTENT_MEMBERS(INTENT)
#undef INTENT

/* Wanted by the server and not finished by the client (doc/reconnect.md 1.4). */
static inline bool
alloc_live(const struct allocation *al)
{
    return str_eq(al->desired_status, ALLOC_DESIRED_RUN) && !alloc_client_terminal(al);
}

/* Live, and nobody hears of it. */
static inline bool
alloc_silent(const struct allocation *al)
{
    return str_eq(al->desired_status, ALLOC_DESIRED_RUN) &&
           str_eq(al->client_status, ALLOC_UNKNOWN);
}

#endif
