/* SPDX-License-Identifier: Apache-2.0
 *
 * The environment of a task and the resolution of ${...} at run time. Pure: host environment, user
 * and directories come in as arguments.
 *
 * Layers, later wins: directories, limits, ids, ports; what hooks of the allocation add; meta; the
 * host's environment (never overrides the former); the task's env block; what its hooks add.
 * Names that resolve: NOMAD_* and every variable of the task (plain or as env.X), node.*, attr.*,
 * meta.* (the node's), secret.NAME.KEY; anything else stays as written.
 */
#ifndef PADDOCK_CLIENT_TASK_ENV_H
#define PADDOCK_CLIENT_TASK_ENV_H

#include "api/api.h"
#include "client/limits.h"

struct env_input {
    const struct node *node;
    const char *region;
    const struct allocation *alloc; /* with Job */
    const struct task_group *group;
    const struct task *task; /* NULL: the group's environment, for what it has besides tasks */
    const struct allocated_task_resources *resources; /* may be NULL */
    /* the paths as the task sees them */
    const char *alloc_dir;
    const char *task_dir;
    const char *secrets_dir;
    const char *parent_cgroup; /* NULL: none */
    const struct str_map *hooks; /* variables of the allocation's hooks; NULL: none */
    const struct str_map *secrets; /* by "NAME.KEY"; NULL: none */
    const struct str_map *last;  /* variables that go before all others, as they are; NULL: none */
    const char *user;          /* name, for USER and LOGNAME; NULL: left out */
    const char *home;
    const char *const *host_env; /* NAME=value, NULL-terminated; NULL: none */
    const char *const *host_deny; /* names not taken from the host, NULL-terminated; NULL: none */
};

struct env; /* variables in a sorted map, plus the node, for look-ups */

/* Owned by ctx; keeps pointers into `in`. */
struct env *env_build(const void *ctx, const struct env_input *in);
/* The ports that a driver maps by label, so that the task's are others than the host's. NULL: it
 * maps none. */
void env_map_ports(struct env *env, const struct value *map);
/* NAME=value, sorted by name. */
void env_list(const void *ctx, const struct env *env, struct str_list *ret);
const char *env_get(const struct env *env, const char *name);
/* All of them; borrowed. */
const struct str_map *env_all(const struct env *env);

/* Replaces what resolves. The result is owned by ctx (or is `s` when nothing was replaced); it is
 * cut after ENV_VALUE_MAX bytes, which env_check() tells. */
const char *env_interpolate(const void *ctx, struct env *env, const char *s);
/* Strings at any depth, keys of maps as well. NULL stays NULL. A reference to NOMAD_*, attr, meta,
 * node, env or secret that has no value is told by env_check(), of a secret in the env block as
 * well; any other text in ${} stays. */
struct value *env_interpolate_value(const void *ctx, struct env *env, const struct value *v);
/* -ERR_INVALID: a text was too long, the environment's own included, or a value refers to what
 * there is not; to be asked before any is used. */
int env_check(const struct env *env, struct err *e);

#endif
