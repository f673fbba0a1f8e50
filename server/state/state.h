/* SPDX-License-Identifier: Apache-2.0
 *
 * State: what the Raft log says, as typed tables (over common/table.h). The FSM alone writes it
 * (server/state/write.h); everybody reads it through a snapshot, on any thread:
 *
 *   struct state_txn *t = state_read_begin(state, ctx);
 *   const struct job *job = state_job(t, ctx, "default", "web");
 *   struct state_iter *it = state_allocs_by_job(t, ctx, "default", "web");
 *   for (struct allocation *a; (a = state_next(it, ctx)) != NULL;) ...
 *   state_read_end(t);
 *
 * A snapshot pins pages: never hold it while waiting. Rows are decoded into the context given and
 * live as long as that; they are the caller's to change. An Allocation row holds no Job: the row
 * refers to a job version, and state_alloc_job() fills alloc->job from a cache owned by the context
 * given to state_read_begin(). So all allocations of a version share an immutable Job, which lives
 * as long as the context, not only as long as the snapshot.
 *
 * It is a cache of the log, without sync; a row that does not decode means a damaged file: the file
 * is dropped and the process ends, so that the next process rebuilds the state from snapshot and
 * log.
 */
#ifndef PADDOCK_SERVER_STATE_STATE_H
#define PADDOCK_SERVER_STATE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "common/str.h"
#include "server/limits.h"
#include "server/state/tables.h"

struct state;
struct state_txn;
struct state_iter;

/* Tables, each with an index of its own (X-Nomad-Index): the rows of server/state/tables.h. */
enum state_table {
#define ROW(NAME, id, type, name, key, watches, gone) STATE_##NAME,
    STATE_ROWS(ROW)
#undef ROW
    STATE_TABLES
};
/* Indexes of them, in the same file. */
enum state_by {
#define INDEX(NAME, TABLE, name, key, holds) STATE_##NAME,
    STATE_INDEXES(INDEX)
#undef INDEX
    STATE_INDEXES_N
};
#define STATE_BIT(table) (1U << (table))

/* --- snapshots --- */
/* Aborts when readers are exhausted for good; bounded by TABLE_READERS_MAX concurrent snapshots.
 * `ctx` owns the transaction's caches; state_read_end() must be called (NULL is fine). */
struct state_txn *state_read_begin(struct state *s, const void *ctx);
void state_read_end(struct state_txn *t);
/* Index of the last entry applied in this snapshot, as rows, answers and who waits know it: that of
 * the log, and what a restore put on top (state_restored()). */
uint64_t state_applied(const struct state_txn *t);
/* Returns how far indexes of rows, and of who waits, are ahead of the log. */
uint64_t state_ahead(const struct state_txn *t);
/* Highest index that touched any of the tables in the mask (STATE_BIT); 0: never written. */
uint64_t state_index(struct state_txn *t, unsigned mask);

/* --- single objects: NULL when absent --- */
/* The parts of a key, as far as the row of the table takes it. */
struct state_key {
    const char *a;
    const char *b;
    uint64_t n;
    const char *c;
};
void *state_get_row(struct state_txn *t, const void *ctx, enum state_table table,
                    struct state_key key);
/* The same, but only what `lean` needs is decoded, and its bytes are those of the snapshot (NULL:
 * all is). */
void *state_get_lean(struct state_txn *t, const void *ctx, enum state_table table,
                     struct state_key key, struct lean *lean);
/* Returns the bytes of a row as it is stored; 0: it is not there. */
size_t state_row_bytes(struct state_txn *t, enum state_table table, struct state_key key);
/* --- rows of a dump (server/state/write.h) --- */
enum { STATE_ID_META = 8 }; /* of what tells of the state itself */
/* Returns the permanent number of a table, as dumps have it. */
unsigned state_table_id(enum state_table table);
/* The object of such a row; name NULL: it tells of the state itself. */
struct state_dumped {
    const char *name; /* of the table */
    const struct type *type;
    void *obj;
};
/* 0, or -ERR_CORRUPT: this release could not have written it. `ret` is owned by ctx. */
int state_read_row(const void *ctx, unsigned table, struct slice key, struct slice val,
                   struct state_dumped *ret);
/* Ends the process: a row is not what its table holds. */
_Noreturn void state_damaged(struct state_txn *t, const char *what);
/* The type of each table's rows. */
struct state_types {
#define ROW(NAME, id, type, name, key, watches, gone) struct type *NAME;
    STATE_ROWS(ROW)
#undef ROW
};
const struct type *state_type(enum state_table table);
/* state_get(t, ctx, JOBS, ns, id). */
#define state_get(t, ctx, TABLE, ...)                                     \
    ((__typeof__(((struct state_types *)0)->TABLE))state_get_row(         \
        (t), (ctx), STATE_##TABLE, (struct state_key){__VA_ARGS__}))
#define state_job(t, ctx, ns, id) state_get(t, ctx, JOBS, ns, id)
/* By JobModifyIndex, which names one specification of one job for ever. */
#define state_job_at(t, ctx, ns, id, job_modify_index) \
    state_get(t, ctx, JOB_VERSIONS, ns, id, job_modify_index)
bool state_has_job_at(struct state_txn *t, const char *ns, const char *id,
                      uint64_t job_modify_index);
#define state_summary(t, ctx, ns, id) state_get(t, ctx, SUMMARIES, ns, id)
#define state_periodic_launch(t, ctx, ns, id) state_get(t, ctx, PERIODIC_LAUNCHES, ns, id)
#define state_node(t, ctx, id) state_get(t, ctx, NODES, id)
#define state_node_pool(t, ctx, name) state_get(t, ctx, NODE_POOLS, name)
#define state_alloc(t, ctx, id)                                                                    \
    state_get(t, ctx, ALLOCS, id) /* without Job; see state_alloc_job() */
#define state_eval(t, ctx, id) state_get(t, ctx, EVALS, id)
#define state_deployment(t, ctx, id) state_get(t, ctx, DEPLOYMENTS, id)
/* NULL: this server began alone. */
#define state_cluster(t, ctx) state_get(t, ctx, CLUSTER, NULL)
/* False: no leader has made the built-in objects yet; an older release has written what is there.
 */
bool state_has_built_ins(struct state_txn *t);
/* Is there a pool of that name (NULL: the default one)? Always, as long as there is none at all. */
bool state_has_pool(struct state_txn *t, const char *name);
/* The same of a namespace. */
bool state_has_namespace(struct state_txn *t, const char *name);
#define state_namespace(t, ctx, name) state_get(t, ctx, NAMESPACES, name)
#define state_acl_policy(t, ctx, name) state_get(t, ctx, ACL_POLICIES, name)
#define state_acl_token(t, ctx, accessor) state_get(t, ctx, ACL_TOKENS, accessor)
#define state_acl_role(t, ctx, id) state_get(t, ctx, ACL_ROLES, id)
#define state_acl_auth_method(t, ctx, name) state_get(t, ctx, ACL_AUTH_METHODS, name)
#define state_acl_binding_rule(t, ctx, id) state_get(t, ctx, ACL_BINDING_RULES, id)
#define state_acl_bootstrapped(t, ctx) state_get(t, ctx, ACL_BOOTSTRAPPED, NULL)
#define state_host_volume(t, ctx, id) state_get(t, ctx, HOST_VOLUMES, id)
#define state_root_key(t, ctx, id) state_get(t, ctx, ROOT_KEYS, id)
/* The key that seals; NULL: there is none yet. */
struct root_key *state_active_key(struct state_txn *t, const void *ctx);
#define state_variable(t, ctx, ns, path) state_get(t, ctx, VARIABLES, ns, path)
/* Never NULL: defaults when nothing was stored. */
struct scheduler_configuration *state_scheduler_config(struct state_txn *t, const void *ctx);
/* NULL: nobody has set it. */
struct autopilot_configuration *state_autopilot(struct state_txn *t, const void *ctx);

/* Sets a->job (shared, immutable) to the version the row refers to and returns it. NULL only for an
 * allocation that is not stored. */
const struct job *state_alloc_job(struct state_txn *t, struct allocation *a);
/* The same, not cached, with what `lean` needs; it goes with the allocation. */
void state_alloc_job_lean(struct state_txn *t, struct allocation *a, struct lean *lean);
/* The JobModifyIndex of the version that the stored allocation refers to; 0 when not stored. */
uint64_t state_alloc_job_index(struct state_txn *t, const char *alloc_id);

/* --- lists, in key order; the iterator, a child of ctx, is used before state_read_end --- */
/* `ns` NULL or "*": all namespaces. `prefix` NULL or "": all. */
struct state_iter *state_jobs(struct state_txn *t, const void *ctx, const char *ns,
                              const char *prefix);
struct state_iter *state_variables(struct state_txn *t, const void *ctx, const char *ns,
                                   const char *prefix);
/* Returns how many sealed bytes the variables of the namespace have; of all that name the quota. */
uint64_t state_variables_bytes(struct state_txn *t, const char *ns);
uint64_t state_quota_bytes(struct state_txn *t, const char *quota);
/* By an index, those whose key begins with the given texts: state_by(t, ctx, ALLOCS_BY_JOB, ns,
 * id). */
#define state_by(t, ctx, INDEX, ...)                                                 \
    state_by_rows((t), (ctx), STATE_##INDEX, (const char *const[]){__VA_ARGS__},      \
                  ARRAY_LEN(((const char *const[]){__VA_ARGS__})))
struct state_iter *state_by_rows(struct state_txn *t, const void *ctx, enum state_by index,
                                 const char *const *texts, size_t n);
/* Iterates over the jobs of a type, in all namespaces. */
#define state_jobs_by_type(t, ctx, type) state_by(t, ctx, JOBS_BY_TYPE, type)
/* Says whether a job has such rows, without reading it all. Live: terminal on neither side; open:
 * pending or blocked. */
bool state_any(struct state_txn *t, enum state_by index, const char *ns, const char *id);
/* The same of rows whose key begins with one text. */
bool state_any_key(struct state_txn *t, enum state_by index, const char *first);
/* Says whether the table has a row. */
bool state_any_row(struct state_txn *t, enum state_table table);
#define state_has_live_allocs(t, ns, id) state_any(t, STATE_LIVE_ALLOCS, ns, id)
#define state_has_allocs(t, ns, id) state_any(t, STATE_ALLOCS_BY_JOB, ns, id)
#define state_has_open_evals(t, ns, id) state_any(t, STATE_OPEN_EVALS, ns, id)
#define state_has_evals(t, ns, id) state_any(t, STATE_EVALS_BY_JOB, ns, id)
/* Live allocations of a job that bear the name; only those on the node unless that is NULL. */
struct state_iter *state_live_named(struct state_txn *t, const void *ctx,
                                    const struct allocation *like, const char *node_id);
/* Children of a job; with `token` (not empty) those whose dispatch may have borne it. */
struct state_iter *state_children(struct state_txn *t, const void *ctx, const char *ns,
                                  const char *parent, const char *token);
struct state_iter *state_blocked_evals(struct state_txn *t, const void *ctx, const char *ns,
                                       const char *id);
/* The token, or one-time token, that has the secret; NULL: none. */
struct acl_token *state_acl_token_of(struct state_txn *t, const void *ctx, const char *secret);
struct acl_one_time_token *state_acl_one_time_of(struct state_txn *t, const void *ctx,
                                                 const char *secret);
/* Newest first: STATE_JOB_VERSIONS_KEPT, and those that bear a tag. */
struct state_iter *state_job_versions(struct state_txn *t, const void *ctx, const char *ns,
                                      const char *id);
/* The iterator goes on with that version (by JobModifyIndex), or the next older one. */
void state_job_versions_seek(struct state_iter *it, uint64_t job_modify_index);
/* The newest of these for which `is` is true, or NULL. It is asked about versions of which only
 * numbers, tag and stability are decoded: a specification may have megabytes. */
typedef bool state_version_fn(const struct job *j, const void *arg);
struct job *state_find_version(struct state_txn *t, const void *ctx, const char *ns, const char *id,
                               state_version_fn *is, const void *arg);
/* For state_next_lean() of versions: as state_find_version() sees them. */
struct lean *state_version_lean(const void *ctx);
/* Iterates over the periodic jobs that are active, in all namespaces. */
struct state_iter *state_periodic_launches(struct state_txn *t, const void *ctx);
/* Iterates over the rows of a table whose key is the id. */
struct state_iter *state_ids(struct state_txn *t, const void *ctx, enum state_table table,
                             const char *prefix);
#define state_nodes(t, ctx, prefix) state_ids(t, ctx, STATE_NODES, prefix)
#define state_node_pools(t, ctx, prefix) state_ids(t, ctx, STATE_NODE_POOLS, prefix)
#define state_allocs(t, ctx, prefix) state_ids(t, ctx, STATE_ALLOCS, prefix)
#define state_evals(t, ctx, prefix) state_ids(t, ctx, STATE_EVALS, prefix)
#define state_deployments(t, ctx, prefix) state_ids(t, ctx, STATE_DEPLOYMENTS, prefix)
#define state_allocs_by_job(t, ctx, ns, id) state_by(t, ctx, ALLOCS_BY_JOB, ns, id)
#define state_allocs_by_node(t, ctx, node_id) state_by(t, ctx, ALLOCS_BY_NODE, node_id)
#define state_allocs_by_eval(t, ctx, eval_id) state_by(t, ctx, ALLOCS_BY_EVAL, eval_id)
#define state_evals_by_job(t, ctx, ns, id) state_by(t, ctx, EVALS_BY_JOB, ns, id)
#define state_allocs_by_deployment(t, ctx, id) state_by(t, ctx, ALLOCS_BY_DEPLOYMENT, id)
/* The newest first. */
#define state_deployments_by_job(t, ctx, ns, id) state_by(t, ctx, DEPLOYMENTS_BY_JOB, ns, id)
/* The newest of the job with this id, or of a purged job of the same id; NULL: none. */
struct deployment *state_latest_deployment(struct state_txn *t, const void *ctx, const char *ns,
                                           const char *id);
/* The registrations of a name, an allocation, a node. */
#define state_services_by_name(t, ctx, ns, name) state_by(t, ctx, SERVICES_BY_NAME, ns, name)
#define state_services_by_alloc(t, ctx, id) state_by(t, ctx, SERVICES_BY_ALLOC, id)
#define state_services_by_node(t, ctx, id) state_by(t, ctx, SERVICES_BY_NODE, id)
#define state_host_volumes_by_node(t, ctx, id) state_by(t, ctx, HOST_VOLUMES_BY_NODE, id)
/* The scaling policies of a job's groups. */
#define state_scaling_by_job(t, ctx, ns, id) state_by(t, ctx, SCALING_BY_JOB, ns, id)
/* Iterates over the scaling events of a job, a row of each group that was scaled. */
struct state_iter *state_scaling_events(struct state_txn *t, const void *ctx, const char *ns,
                                        const char *id);
#define state_has_active_deployment(t, ns, id) state_any(t, STATE_ACTIVE_DEPLOYMENTS, ns, id)
/* Before the first row: starts at the row of `token`, or where it would be ("" or NULL: at the
 * first), and goes backwards when asked to. Tokens: "namespace.id" of jobs, "index.id" by creation,
 * ids elsewhere. */
void state_iter_seek(struct state_iter *it, const char *token, bool back);
/* Skip allocations that are terminal on either side, without decoding them. */
void state_iter_live_only(struct state_iter *it);
/* The next row decoded into ctx, or NULL at the end (the iterator is then closed). */
void *state_next(struct state_iter *it, const void *ctx);
/* The same as state_get_lean. */
void *state_next_lean(struct state_iter *it, const void *ctx, struct lean *lean);
/* Returns what state_next does, with alloc->job filled; allocation iterators only. */
struct allocation *state_next_with_job(struct state_iter *it, const void *ctx);
/* Closes early. NULL is fine. */
void state_iter_end(struct state_iter *it);

/* The tables that rights are made of, and logins. */
#define STATE_RIGHTS                                                                               \
    (STATE_BIT(STATE_ACL_TOKENS) | STATE_BIT(STATE_ACL_POLICIES) | STATE_BIT(STATE_ACL_ROLES) |    \
     STATE_BIT(STATE_ACL_AUTH_METHODS) | STATE_BIT(STATE_ACL_BINDING_RULES))

/* --- watch keys: what a blocking query can wait for besides tables (server/state/watch.h) --- */
enum state_watch_kind {
    WATCH_JOB = 1,
    WATCH_NODE,
    WATCH_ALLOC,
    WATCH_EVAL,
    WATCH_JOB_ALLOCS,
    WATCH_JOB_EVALS,
    WATCH_NODE_ALLOCS,
    WATCH_EVAL_ALLOCS,
    WATCH_DEPLOYMENT,
    WATCH_JOB_DEPLOYMENTS,
    WATCH_DEPLOYMENT_ALLOCS,
    WATCH_SERVICE,
    WATCH_JOB_SERVICES,
    WATCH_ALLOC_SERVICES,
    WATCH_VARIABLE,
    WATCH_HOST_VOLUME,
#define OBJECT(TABLE, id, type, TYPE, ...) WATCH_##TYPE,
    API_OBJECTS(OBJECT)
#undef OBJECT
};
uint64_t state_watch_key(enum state_watch_kind kind, const char *a,
                         const char *b); /* b NULL: no more */
#define state_key_job(ns, id)                                                                      \
    state_watch_key(WATCH_JOB, ns, str_or(id, "")) /* job, its summary, versions */

#endif
