/* SPDX-License-Identifier: Apache-2.0
 *
 * Who calls, by the token of the envelope: resolved from the state of this server, and kept until
 * something of access control changes there. Loop thread, but for what is said of a struct caller.
 */
#ifndef PADDOCK_SERVER_CALL_CALLER_H
#define PADDOCK_SERVER_CALL_CALLER_H

#include <stdatomic.h>

#include "acl/acl.h"
#include "server/host.h"

/* The task whose identity a token is. */
struct workload {
    const char *ns, *job, *group, *task, *alloc;
    int64_t ends_s; /* since the epoch; 0: with the allocation */
};

/* Immutable, counted; for any thread. */
struct caller {
    atomic_size_t refs;
    const char *accessor;          /* "anonymous": it has no token; "acls-disabled" */
    const struct acl_token *token; /* NULL: it is none of the state */
    const struct workload *workload; /* NULL: it is no task's identity */
    struct acl *rights;
    struct acl_policy_list policies; /* it holds; those that are there */
    size_t bytes;                    /* of their texts */
    const char *too_much; /* the first policy beyond ACL_SUM_MAX: it has no right; NULL: none is */
};

struct callers;
struct callers *callers_new(const void *ctx, struct server *s);

/* Fills the table of what methods need; before the first call (needs.c). */
void authorize_begin(void);

/* One more reference. NULL with -ERR_FORBIDDEN: there is no such token, or it has ended. */
struct caller *caller_of(struct server *s, const char *secret, struct err *e);
/* The same of the token with that accessor, or "anonymous", whether it has ended or not; of any
 * thread, and kept nowhere. */
struct caller *caller_by_accessor(struct state_txn *t, const char *accessor, struct err *e);
void caller_unref(struct caller *c); /* NULL is fine */

/* Checks that a token with these policies and roles has at most ACL_SUM_MAX. -ERR_INVALID. */
int caller_check_sum(struct state_txn *t, const struct acl_token *token, struct err *e);

/* Says whether it may call still: by the clock, and of a task by its allocation. */
bool caller_is_good(const struct caller *c, struct state_txn *t, int64_t now_ns);
/* The time from which its rights are asked for anew, ns; 0: none. */
int64_t caller_ends(const struct caller *c, int64_t now_ns);

/* Reads an identity that was signed here, for a task that is to run; of any thread. NULL: it is
 * none. Owned by ctx. */
const struct workload *workload_of(const void *ctx, struct state_txn *t, const char *token,
                                   int64_t now_s);
/* Returns the task as a caller, with the rights of the policies that are for it; of any thread, and
 * kept nowhere. The task is copied. */
struct caller *caller_of_workload(struct state_txn *t, const struct workload *w);
/* Says whether the policy is for the task. */
bool workload_has(const struct workload *w, const struct acl_policy *p);

/* Says whether it holds the policy, or the role. */
bool caller_has_policy(const struct caller *c, const char *name);
bool caller_has_role(const struct caller *c, const char *id);

#endif
