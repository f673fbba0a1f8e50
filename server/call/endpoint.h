/* SPDX-License-Identifier: Apache-2.0
 *
 * The RPC methods of a server (method.h). Their argument is the struct server.
 */
#ifndef PADDOCK_SERVER_CALL_ENDPOINT_H
#define PADDOCK_SERVER_CALL_ENDPOINT_H

#include "net/rpc.h"

/* Does what each call needs before its method; again for one that waited for a leader. */
rpc_handler endpoint_call;
/* Every method of api/schema/rpc.schema that servers answer; what server_services() returns. */
const struct rpc_service *endpoint_services(size_t *ret_n);

/* Returns the methods by which servers become a cluster. */
const struct rpc_service *endpoint_join_services(size_t *ret_n);

/* --- calls that the leader answers (forward.c) --- */
struct loop;
struct server;
/* `handle`: endpoint_call, which a call that waited comes to once more. */
struct forwards *forwards_new(const void *ctx, struct loop *l, struct server *s,
                              rpc_handler *handle);
/* Another leader, or none: calls that wait for one go on. */
void forwards_leader_changed(struct forwards *f);
/* Calls under way end. */
void forwards_stop(struct forwards *f);

/* --- those that other regions answer (region.c) --- */
struct regions *regions_new(const void *ctx, struct loop *l, struct server *s);
void regions_stop(struct regions *r);

#endif
