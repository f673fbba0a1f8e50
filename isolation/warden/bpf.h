/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of the kernel that count and police tasks. A task is known to them from bpf_add() or
 * bpf_adopt() to bpf_remove(), by its cgroup.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_BPF_H
#define PADDOCK_ISOLATION_WARDEN_BPF_H

#include "isolation/warden/loop.h"

void bpf_start(struct warden *w);
/* May this task have its network policed? Its user and capabilities must not lead around it. */
int bpf_check(struct warden *w, const struct launch_spec *s, const struct user *u, struct err *e);
/* Before the first process of a task. Fails when a job or the operator named a policy that cannot
 * be enforced. */
int bpf_add(struct warden *w, const struct wtask *t, const struct launch_spec *s, struct err *e);
/* A living task that an earlier warden launched. */
void bpf_adopt(struct warden *w, const struct wtask *t);
/* Everything of it is gone. */
void bpf_remove(struct warden *w, const struct wtask *t);
/* Adds to the answer the descriptors that the agent reads the counters from, and holds. */
void bpf_fds(struct warden *w, const void *ctx, struct answer *a);

#endif
