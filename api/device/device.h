/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that the operator of a client names: client { device "vendor/type/name" { } }. Pure.
 */
#ifndef PADDOCK_API_DEVICE_DEVICE_H
#define PADDOCK_API_DEVICE_DEVICE_H

#include "api/api.h"
#include "common/err.h"

/* -ERR_INVALID. */
int device_check(const struct agent_device *d, struct err *e);
/* Returns the group as a node has it, without its instances; owned by ctx. */
struct node_device_resource *device_group(const void *ctx, const struct agent_device *d);
/* Adds the paths of an instance, "%" in them replaced by its id; owned by ctx, none twice. */
void device_paths(const void *ctx, const struct agent_device *d, const char *id,
                  struct str_list *ret);
/* The one of that vendor, type and name; NULL: there is none. */
const struct agent_device *device_find(const struct agent_device_list *l,
                                       const struct allocated_device_resource *of);

#endif
