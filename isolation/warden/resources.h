/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of running tasks: what the cgroup gets of what a job asks for and the policy's defaults.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_RESOURCES_H
#define PADDOCK_ISOLATION_WARDEN_RESOURCES_H

#include "isolation/warden/warden.h"

/* `l`, `iso` NULL: the defaults. */
void resources_plan(const struct warden *w, const struct launch_limits *l,
                    const struct task_isolation *iso, struct cgroup_plan *ret);
/* Notes for the answer which parts of the plan could not be had. */
void resources_warn(struct wtask *t, const struct cgroup_plan *plan);

#endif
