/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's own mount namespace: private, pruned to what launches need (the cost of a launch
 * grows with the number of mounts here), with templates prepared once that tasks only bind:
 *
 *   DIR/root   where the launch pad's own root is made
 *   DIR/dev    read-only tmpfs: null zero full random urandom tty, fd links, empty pts/ and shm/
 *   DIR/sys    read-only sysfs with its dangerous parts hidden
 *   DIR/etc    read-only: the selected files of the host's /etc a program needs to start
 *   DIR/empty  a read-only empty directory: what masks of directories are made of
 *   DIR/root-of/usr ...   the policy's bind roots, read-only
 *
 * Root only, once per warden, single-threaded.
 */
#ifndef PADDOCK_ISOLATION_ROOT_BASE_H
#define PADDOCK_ISOLATION_ROOT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "isolation/root/mounts.h"

struct base_conf {
    const char *dir;               /* RunDir/base: made if missing, a tmpfs goes on it */
    const char *const *bind_roots; /* NULL: /bin /lib ... /usr /etc ... */
    size_t n_bind_roots;
    const char *const *keep; /* paths that must stay reachable: alloc dir, run dir, state dir,
                                cgroup root, allowed job binds, directory of the helpers */
    size_t n_keep;
    bool kvm; /* tasks may be given /dev/kvm */
    const char *const *devices; /* others of /dev that they may be given */
    size_t n_devices;
};

struct base {
    const char *dir;
    struct mounts_root *roots; /* give these to mounts_plan() */
    size_t n_roots;
    int host_ns; /* fd of the mount namespace the warden came from: raw_exec goes back */
    struct base_file *files; /* what base_refresh() knows of the host's /etc */
    int64_t refreshed_ns;
    int kvm; /* 0: DIR/kvm is a node for mounts_spec; -errno: /dev/kvm is not to be had */
    dev_t kvm_number;
    struct base_device {
        const char *path; /* as in base_conf; NULL: it was not there */
        dev_t number;
        bool block;
    } * devices; /* the node of the i-th is DIR/dev-i */
    size_t n_devices;
    uint32_t proc_absent; /* of the kernel's /proc, for mounts_plan(); a module may add to it */
};

/* Leaves the process in a new mount namespace. *ret is filled, strings owned by ctx. */
int base_make(const void *ctx, const struct base_conf *conf, struct base *ret, struct err *e);

/* In a child of the warden that becomes the launch pad: leaves the process in a mount namespace of
 * its own with nothing but the templates at their places (/usr, /etc, /dev, /sys ...) on an empty,
 * read-only root. What mounts_apply() expects; see there. */
int base_enter(const struct base *b, struct err *e);

/* Detaches every mount below `path` in the caller's mount namespace. */
void base_detach_below(const char *path);

/* Brings DIR/etc up to date with the host's files that changed (resolv.conf, passwd ...), and looks
 * at what /proc has. Cheap when nothing did: one stat per file, at most once per second of `now_ns`
 * (any monotonic clock). Call before a launch. Running tasks see the change too. */
int base_refresh(struct base *b, int64_t now_ns, struct err *e);

#endif
