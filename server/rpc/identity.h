/* SPDX-License-Identifier: Apache-2.0
 *
 * A task of an allocation, for which its node asks.
 */
#ifndef PADDOCK_SERVER_RPC_IDENTITY_H
#define PADDOCK_SERVER_RPC_IDENTITY_H

#include "server/call/method.h"

struct own {
    struct allocation *alloc;
    const struct task *task;
    const char *ns, *job; /* of a child, the job that launched it */
};

/* Finds a task of an allocation that is on the node of the call, and has not ended there.
 * -ERR_FORBIDDEN. */
int own_find(struct read *r, struct state_txn *t, const char *alloc_id, const char *task,
             struct own *ret, struct err *e);

/* Looks at the introduction of a new node, "" or NULL: none, before the node is registered.
 * -ERR_FORBIDDEN. */
int introduction_check(struct server *s, struct state_txn *t, const struct node *n,
                       const char *token, struct err *e);

#endif
