/* SPDX-License-Identifier: Apache-2.0
 *
 * What the methods of access control share. Private to these.
 */
#ifndef PADDOCK_SERVER_RPC_ACL_INT_H
#define PADDOCK_SERVER_RPC_ACL_INT_H

#include "api/acl/token.h"
#include "api/object.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "server/call/caller.h"
#include "server/call/method.h"

/* -ERR_UNSUPPORTED where access control is off. */
int acl_endpoint_on(const struct server *s, struct err *e);
/* Answers as a read_one() whose object is `obj`, made of the row; NULL: there is none. */
int acl_reply_one(struct read *r, struct state_txn *t, void *obj);

/* Clears the indexes, checks, and sets the hash of what is to be stored. */
int acl_prepare_object(const struct type *type, void *obj, struct err *e);
/* Sets when the token, made at its CreateTime, ends by what was asked for, and checks that. */
int acl_token_set_end(const struct server_config *cfg, struct acl_token *t, struct err *e);
/* Returns the role of that name, owned by ctx; NULL: there is none. */
struct acl_role *acl_role_named(struct state_txn *t, const void *ctx, const char *name);
/* Stamps what was stored, for the answer. */
void acl_stamp(const struct type *type, void *obj, uint64_t index);

#endif
