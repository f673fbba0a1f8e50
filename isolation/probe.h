/* SPDX-License-Identifier: Apache-2.0
 *
 * What this kernel lets this process do, found by trying, never by version. Each fact has a reason
 * when it is absent; the fingerprint exports them. Harmless: probes run in the caller with invalid
 * arguments, or in a short-lived child.
 */
#ifndef PADDOCK_ISOLATION_PROBE_H
#define PADDOCK_ISOLATION_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

/* id, attribute name, needed by the exec driver */
#define PROBE_FACTS(X)                                                                             \
    X(CLONE3, "clone3", true)                                                                      \
    X(CLONE_INTO_CGROUP, "clone_into_cgroup", true)                                                \
    X(PIDFD, "pidfd", true)                                                                        \
    X(OPENAT2, "openat2", true)                                                                    \
    X(CLOSE_RANGE, "close_range", true)                                                            \
    X(MOUNT_API, "mount_api", true)                                                                \
    X(MOUNT_SETATTR, "mount_setattr", true)                                                        \
    X(SECCOMP, "seccomp", true)                                                                    \
    X(LANDLOCK, "landlock", false)                                                                 \
    X(USERNS, "userns", false)                                                                     \
    X(NAMESPACES, "namespaces", true)                                                              \
    X(SETNS, "setns", true)                                                                        \
    X(KEYRING, "keyring", true)                                                                    \
    X(TIMENS, "timens", false)                                                                     \
    X(CGROUP2, "cgroup2", true)                                                                    \
    X(CGROUP_KILL, "cgroup_kill", false)                                                           \
    X(CGROUP_CPU, "cgroup_cpu", false)                                                             \
    X(CGROUP_MEMORY, "cgroup_memory", false)                                                       \
    X(CGROUP_PIDS, "cgroup_pids", false)                                                           \
    X(TMPFS_NOSWAP, "tmpfs_noswap", false)                                                         \
    X(PSI, "psi", false)                                                                           \
    X(CORE_SCHED, "core_sched", false)                                                             \
    X(APPARMOR, "apparmor", false)                                                                 \
    X(SECCOMP_AUDIT, "seccomp_audit", false)

enum probe_id {
#define PROBE_ENUM(id, name, needed) PROBE_##id,
    PROBE_FACTS(PROBE_ENUM)
#undef PROBE_ENUM
        PROBE_N
};

/* Does something work here, and why not? */
struct fact {
    bool ok;
    char why[192]; /* "" exactly when ok */
};
void fact_yes(struct fact *f);
__attribute__((format(printf, 2, 3))) void fact_no(struct fact *f, const char *fmt, ...);
/* Sets a fact to the outcome of a try: no error, yes. */
void fact_of(struct fact *f, const struct err *e);

struct probe {
    struct fact facts[PROBE_N];
    int landlock_abi;       /* 0: none */
    uint32_t controllers;   /* CGROUP_* of cgroup.h, at the cgroup2 root */
    char cgroup_mount[256]; /* "" without cgroup2 */
    bool root;              /* effective uid 0 with CAP_SYS_ADMIN */
};

/* `cgroup_root`: where own children may be made to try CLONE_INTO_CGROUP and cgroup.kill; NULL:
 * those are reported from what files exist. Never fails: facts say what is missing. Forks a child
 * when root: call it from a single-threaded process (warden), or with root == false semantics from
 * the agent. */
void probe_run(struct probe *p, const char *cgroup_root);
const char *probe_name(enum probe_id id);
/* Can the exec driver work here? Else the first missing fact as "name: why". */
void probe_exec(const struct probe *p, struct fact *ret);

#endif
