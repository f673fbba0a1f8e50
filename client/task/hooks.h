/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done around the run of a task: a name in the list per thing, and its file hook_NAME.c.
 * They are called whatever stands behind the task. A restart of the agent comes to poststart, as a
 * start does; what a hook must know after it is in the task's record (struct client_task).
 *
 * resolv.conf, limits, log files and the secrets directory are no rows but fields of the launch
 * spec: shim or warden makes them in the task's own namespaces, for which the agent has no
 * privilege.
 */
#ifndef PADDOCK_CLIENT_TASK_HOOKS_H
#define PADDOCK_CLIENT_TASK_HOOKS_H

#include <stdbool.h>

#include "common/duration.h"

struct task_exit;
struct str_map;
struct task;
struct task_runner;

/* In this order. What a hook keeps while its task runs is tr->hook.NAME, a struct NAME_hook of its
 * own. */
#define TASK_HOOKS(X)                                                                              \
    X(ready)                                                                                       \
    X(payload) X(identity) X(api) X(secret) X(artifact) X(template) X(denied) X(pressure)

#define HOOK_QUIET_NS (300 * NS_PER_S) /* between two events of one kind: a task keeps few */

/* A member that is NULL has nothing to do. */
struct task_hook {
    /* Before each launch, whose intent is durable; true: it may begin. Else go_on or failed of
     * tr->up follows, and it is asked again. */
    bool (*prestart)(struct task_runner *tr);
    /* The task runs: started, adopted, or with an updated job. */
    void (*poststart)(struct task_runner *tr);
    void (*exited)(struct task_runner *tr, const struct task_exit *x);
    void (*stop)(
        struct task_runner *tr); /* it ended, did not start, or the agent ends: no timer is left */
};

#define DECLARE(name) extern const struct task_hook task_hook_##name;
TASK_HOOKS(DECLARE)
#undef DECLARE

bool task_hooks_prestart(struct task_runner *tr);
void task_hooks_poststart(struct task_runner *tr);
void task_hooks_exited(struct task_runner *tr, const struct task_exit *x);
void task_hooks_stop(struct task_runner *tr);

/* Adds the variables of the identities that are signed, and where the API is that takes them; owned
 * by ctx. */
void identity_env(const void *ctx, const struct task_runner *tr, const char *secrets_dir,
                  struct str_map *ret);
bool identity_has_file(const struct task *t);
/* Says whether what the secrets of the task stand for is known. */
bool secrets_ready(const struct task_runner *tr);
/* Returns their values by "NAME.KEY", borrowed; NULL: none. */
const struct str_map *secrets_values(const struct task_runner *tr);

#endif
