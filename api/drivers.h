/* SPDX-License-Identifier: Apache-2.0
 *
 * The drivers of this build and what each can do: a row per driver, its code is the file of its
 * name below drivers/. Rooms that do not see drivers/ (validation, policy, the warden) ask here;
 * nobody compares names. What a running task can be asked for is said by its handle
 * (client/task/handle.h). Pure.
 */
#ifndef PADDOCK_API_DRIVERS_H
#define PADDOCK_API_DRIVERS_H

#include <stdbool.h>

#define DRIVERS(X)                                                                                 \
    X(exec, .launch = true, .isolation = true)                                                     \
    X(docker, .isolation = true, .opt_in = true)                                                   \
    X(podman, .isolation = true, .opt_in = true)                                                   \
    X(exec2, .launch = true, .isolation = true)                                                    \
    X(java, .launch = true, .isolation = true)                                                     \
    X(qemu, .launch = true, .isolation = true, .images = true, .kvm = true)                        \
    X(raw_exec, .launch = true, .opt_in = true)

struct driver_can {
    const char *name;
    bool launch;    /* its config becomes a launch spec: the warden starts a process; else it has an
                       engine */
    bool isolation; /* it sees paths of its own, /local and /alloc; a launch: in a box, with
                       capabilities and mounts */
    bool images;    /* it reads files of the host in image_paths of its plugin block */
    bool kvm;       /* its option accelerator may ask for the host's /dev/kvm */
    bool opt_in;    /* only where the operator turns it on */
};

enum {
#define X(name, ...) DRIVER_##name,
    DRIVERS(X)
#undef X
        DRIVERS_N
};

extern const struct driver_can drivers_can[DRIVERS_N];

/* NULL: there is no such driver in this build. */
const struct driver_can *driver_can(const char *name);
/* The name that somebody who wrote `name` may have meant; NULL: none is near. */
const char *driver_nearest(const char *name);
/* One with an engine, which is told of no box: isolation blocks and the like are not for it. */
bool driver_engine(const char *name);
/* A driver that is known to run tasks as they are on the host. */
bool driver_unboxed(const char *name);

#endif
