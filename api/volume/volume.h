/* SPDX-License-Identifier: Apache-2.0
 *
 * Host volumes that are made while servers run: their specifications, and groups that may mount
 * them. Pure.
 */
#ifndef PADDOCK_API_VOLUME_VOLUME_H
#define PADDOCK_API_VOLUME_VOLUME_H

#include <stdbool.h>

#include "api/api.h"
#include "common/err.h"

#define VOLUME_PENDING "pending"
#define VOLUME_READY "ready"
#define VOLUME_UNAVAILABLE "unavailable"
#define VOLUME_DELETING "deleting"

/* The built-in plugin, and the attribute of nodes that have it. */
#define VOLUME_PLUGIN "mkdir"
#define VOLUME_PLUGIN_ATTR "plugins.host_volume.mkdir.version"

#define VOLUME_READER "single-node-reader-only"
#define VOLUME_WRITER "single-node-writer"
#define VOLUME_SINGLE_WRITER "single-node-single-writer"
#define VOLUME_MULTI_WRITER "single-node-multi-writer"

struct volume_dir { /* parameters of mkdir */
    int64_t mode, uid, gid;
    int64_t size_mb; /* what may be in it; 0: no limit */
};

/* -ERR_INVALID, and which parameter. */
int volume_dir_of(const struct str_map *parameters, struct volume_dir *ret, struct err *e);
/* Fills in the plugin and the capabilities that are not said. */
void volume_canonical(const void *ctx, struct host_volume *v);
/* -ERR_INVALID. */
int volume_check(const struct host_volume *v, struct err *e);
/* Says whether one of its capabilities is what a group asks for. */
bool volume_offers(const struct host_volume_capability_list *l, const struct volume_request *want);
/* Returns the name of the volume that an allocation has by its group's request: of per_alloc the
 * source and the allocation's index, "data[3]". Owned by ctx, or the request's. */
const char *volume_source(const void *ctx, const struct volume_request *want,
                          const char *alloc_name);
/* Says whether the request is for a volume of that name, of whichever allocation (per_alloc). */
bool volume_may_be(const struct volume_request *want, const char *name);
/* Says whether the volume is claimed by allocations of that name. */
bool volume_claimed(const struct host_volume *v, const char *job_id, const char *alloc_name);
/* Says whether an allocation of the group writes to a volume. */
bool volume_written(const struct task_group *tg);
/* Says whether allocations of two groups, by their names, may not run on one node at the same time:
 * both write to a volume, and one of them wants to write to it alone. */
bool volume_clash(const struct task_group *a, const char *a_name, const struct task_group *b,
                  const char *b_name);

#endif
