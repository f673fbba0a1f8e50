/* SPDX-License-Identifier: Apache-2.0
 *
 * The names under which an allocation is found: its group's and its tasks' service blocks of the
 * provider "nomad", resolved, become registrations. Pure.
 *
 *   auto         the address that the block gives, else as host
 *   host         address and port of the label on the node. Of a number, or without a label where
 *                there is no single network: the node's own address
 *   alloc        address of the allocation, and the port inside of its network
 *   alloc_ipv6   ... of IPv6
 */
#ifndef PADDOCK_CLIENT_ALLOC_SERVICES_H
#define PADDOCK_CLIENT_ALLOC_SERVICES_H

#include "api/api.h"
#include "client/task/env.h"
#include "common/err.h"

struct services_in {
    const struct allocation *alloc;
    const struct task_group *group;
    const struct task *task; /* whose services; NULL: the group's */
    const struct node *node;
    struct env *env; /* of the task, or of the group */
};

/* An address and a port, as a service or a check names them. */
struct services_place {
    const char *mode;   /* NULL or "": auto */
    const char *label;  /* of a port, or its number; NULL or "": none */
    const char *custom; /* `address` of the service; NULL or "": none */
};

/* Says whether the service is registered with the servers, and not with Consul. */
bool services_is_ours(const struct service *s);

/* -ERR_INVALID: there is no such port, or no such address. *ret_address is owned by ctx. */
int services_place(const void *ctx, const struct services_in *in, const struct services_place *p,
                   const char **ret_address, int64_t *ret_port, struct err *e);
struct service_made {
    struct service_registration *registration;
    struct service *block; /* resolved */
};

struct services_made {
    struct service_made *v;
    size_t n;
};

/* Adds the services of the task, or of the group, each owned by ctx. -ERR_INVALID: one of them
 * cannot be registered, or is there twice. */
int services_make(const void *ctx, const struct services_in *in, struct services_made *ret,
                  struct err *e);

#endif
