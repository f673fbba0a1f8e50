/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process does to itself on the way into its box, in the order that the kernel forces:
 *
 *   launch pad              confine_signals
 *   shim (pid 1, root)
 *     confine_keyring       session keyring
 *     confine_hostname      hostname
 *     -- clone (CLONE_VM) --> payload
 *     confine_task          signal mask, setsid, rlimits, AppArmor profile of what is executed
 *                           (a file of root's), user namespace, securebits, bounding set,
 *                           groups, gid, uid, capabilities and ambient set, close_range,
 *                           no_new_privs, Landlock; when the root is built: working directory;
 *                           seccomp last, or before that wait where it surely lets the rest
 *                           pass; then execve
 *   shim, while the payload does that
 *     mounts_apply          the root
 *     confine_end           all capabilities, no_new_privs, seccomp
 *
 * Without no_new_privs the filter would have to go in before CAP_SYS_ADMIN is dropped; we always
 * set no_new_privs, so the filter is last and need not allow what comes before it.
 *
 * Free-standing: raw system calls only, no allocation, no locks, because confine_task runs in the
 * shim's memory. Returns 0 or -errno with *what a literal naming the step.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_CONFINE_H
#define PADDOCK_ISOLATION_CONFINE_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "isolation/limits.h"

struct sock_filter;

enum {
    CONFINE_ISOLATED =
        1,           /* exec: everything below; without it (raw_exec) only setsid, rlimits, ids */
    CONFINE_IDS = 2, /* set groups, gid and uid (root warden) */
    CONFINE_NO_NEW_PRIVS = 4,
    CONFINE_HOSTNAME = 8, /* own uts namespace */
    CONFINE_USERNS = 16,  /* enter confine_exec.userns; ids are those inside */
    CONFINE_BIND = 32,    /* to no TCP port but those of `bind`; the same for `connect` */
    CONFINE_CONNECT = 64,
    CONFINE_CORE_SCHED = 128, /* a core-scheduling cookie of its own */
    CONFINE_JOINS = 256,      /* signals processes of the task that it joins */
    CONFINE_FILTER_FIRST = 512, /* it is the default one: see confine_exec.built */
};

/* The user of shims: the id that is "unchanged" in 16 bits, which nobody gives out and no task may
 * have (users.h). */
enum { CONFINE_SHIM_UID = 65535 };

#define CONFINE_RLIMIT_STEP "setrlimit"
#define CONFINE_APPARMOR_STEP "AppArmor profile" /* plan_explain() knows it */

struct confine_rlimit {
    uint32_t resource;
    uint32_t exact; /* asked for: else clamped to the hard limit where that may not be raised */
    uint64_t soft;  /* UINT64_MAX: infinity */
    uint64_t hard;
};

/* Flat: part of the plan that the shim gets. */
struct confine {
    uint32_t flags;
    uint32_t uid;
    uint32_t gid;
    uint32_t n_groups;
    uint32_t n_rlimits;
    uint32_t landlock_abi; /* of the kernel; 0: without */
    uint32_t n_bind;
    uint32_t n_connect;
    uint64_t
        caps; /* bit per capability kept (bounding, permitted, effective, inheritable, ambient) */
    struct confine_rlimit rlimits[CONFINE_RLIMITS_MAX];
    uint32_t groups[CONFINE_GROUPS_MAX];
    uint16_t bind[CONFINE_PORTS_MAX]; /* only with Landlock of version 4 and above */
    uint16_t connect[CONFINE_PORTS_MAX];
    char hostname[CONFINE_HOSTNAME_MAX + 1];
};

/* Once, in the ancestor of all shims: execve resets handlers by itself but not ignored signals
 * (SIGPIPE in the warden, those of the shell that started us, the real-time signals of a runtime
 * above us). */
int confine_signals(const char **what);
/* A session keyring of its own, for who is isolated. */
int confine_keyring(const char **what);
int confine_hostname(const struct confine *c, const char **what);
/* `work_dir`: absolute, entered as the task's user; NULL: left alone. `keep_fds`: highest fd that
 * the payload keeps (2). All above are closed at once, in this process only: a failure is told
 * through the memory shared with the parent, and no path of the job may meet an inherited
 * directory. `filter` NULL: no seccomp. */
enum { CONFINE_PROGRAM_FD = 3 };
struct confine_listener {
    int channel; /* stays open too, perhaps by another number */
    int fd;      /* out: who has it is told what the filter notifies of, and answers */
};
struct confine_exec {
    const char *work_dir;
    const char *apparmor; /* profile of what is executed; NULL: none */
    int keep_fds;
    int program;   /* becomes CONFINE_PROGRAM_FD, for execveat(2); 0: none */
    bool script;   /* it stays open in what is executed */
    bool terminal; /* standard input is its controlling terminal */
    int userns;
    const struct sock_filter *filter;
    uint16_t n_filter;
    struct confine_listener *listener; /* NULL: the filter does not notify */
    const uint32_t *built; /* not 0 when the root is complete (futex): nothing of it is used before.
                              With CONFINE_FILTER_FIRST the filter goes in before the wait */
};
int confine_task(const struct confine *c, const struct confine_exec *x, const char **what);
/* Whether what this process does counts as done with `cap`, which it has. 1: that is new. */
long confine_use_cap(unsigned cap, bool use);
/* The end state of a shim or joiner, which keeps the capabilities of `keep` (a bit each). */
int confine_end(const struct sock_filter *filter, uint16_t n_filter, uint64_t keep,
                const char **what);

#endif
