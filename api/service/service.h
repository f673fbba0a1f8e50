/* SPDX-License-Identifier: Apache-2.0
 *
 * Services: names, and the ids of their registrations. Pure.
 */
#ifndef PADDOCK_API_SERVICE_SERVICE_H
#define PADDOCK_API_SERVICE_SERVICE_H

#include <stdbool.h>

/* Health of a registration, by its checks; empty: it has none. */
#define SERVICE_PENDING "pending"
#define SERVICE_PASSING "passing"
#define SERVICE_FAILING "failing"

/* Each registration of an allocation begins with this and the allocation's id. */
#define SERVICE_ID_PREFIX "_nomad-task-"
enum { SERVICE_NAME_MAX = 63, SERVICE_ID_MAX = 512, SERVICE_ADDRESS_MAX = 256 };
/* Tags of one; services and checks of an allocation. */
enum { SERVICE_TAGS_MAX = 256, SERVICES_MAX = 256, SERVICE_CHECKS_MAX = 256 };

/* Says whether it can be a host's name (RFC 1123, 2.1): 1 to 63 letters, digits and hyphens, none
 * of these at its ends. NULL is none. */
bool service_name_valid(const char *name);
/* Says whether a registration's id is one of the allocation's. NULL is none. */
bool service_id_is_of(const char *id, const char *alloc_id);

#endif
