/* SPDX-License-Identifier: Apache-2.0
 *
 * System call filters: a profile (table of names with argument conditions) is compiled once into a
 * classic BPF program that shims load with the raw call. Names are resolved by libseccomp; the code
 * is ours: architecture check, then a binary search over ranges of numbers with the same verdict,
 * because the shape of the filter is the largest controllable cost of a launch (reference: ranges
 * load in 49 us, a linear list of the same rules in 284 us).
 *
 * Verdicts: allowed; EPERM; ENOSYS where a libc probes and falls back (clone3, and every number
 * above the highest that libseccomp knows). A foreign architecture (int 0x80, x32) kills the
 * process with SIGSYS.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_SECCOMP_H
#define PADDOCK_ISOLATION_CONFINE_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "isolation/limits.h"

enum seccomp_verdict {
    SECCOMP_V_EPERM, /* the default of every profile */
    SECCOMP_V_ALLOW,
    SECCOMP_V_ENOSYS,
    SECCOMP_V_KILL,
};

/* One condition on an argument: (arg & mask) == value. A rule's conditions are alternatives of
 * conjunctions: `more` ties one to the next. */
struct seccomp_cond {
    uint8_t arg; /* 0..5 */
    bool low32;  /* the kernel takes an int here: the upper half is ignored, as it does */
    bool more;   /* and the next condition too */
    uint64_t mask;
    uint64_t value;
};

/* At most one per name. With conditions: `verdict` when they hold, else EPERM (`invert`: the other
 * way round). */
struct seccomp_rule {
    const char *name;
    enum seccomp_verdict verdict;
    bool invert;
    const struct seccomp_cond *conds; /* NULL: always */
    size_t n_conds;
};

/* The fate of a call that a profile denies with EPERM. */
enum seccomp_denied {
    SECCOMP_D_EPERM,
    SECCOMP_D_LOG,    /* it happens and is written to the kernel's log */
    SECCOMP_D_NOTIFY, /* whoever listens is told, and answers */
};

struct seccomp_profile {
    const char *name;
    const struct seccomp_rule *rules;
    size_t n_rules;
    enum seccomp_denied denied;
};

/* Returns the profile of tasks. */
const struct seccomp_profile *seccomp_profile_default(void);
/* The shim's own steady state: exactly its calls. */
const struct seccomp_profile *seccomp_profile_shim(void);
/* The same of a shim that answers what a task is denied (shim/audit.c). */
const struct seccomp_profile *seccomp_profile_audit(void);
/* The same of a joiner. */
const struct seccomp_profile *seccomp_profile_join(void);
/* By the name of a launch spec: "" and "default"; NULL for unknown ("unconfined" is the caller's).
 */
const struct seccomp_profile *seccomp_profile_find(const char *name);

struct seccomp_program {
    struct sock_filter *insns;
    uint16_t n;
    size_t unknown; /* names that this libseccomp does not know: skipped, denied by default */
};

/* insns owned by ctx. */
int seccomp_compile(const void *ctx, const struct seccomp_profile *p, struct seccomp_program *ret,
                    struct err *e);

/* Makes the filter that the agent loads for itself (seccomp_agent.c). */
int seccomp_compile_agent(const void *ctx, struct seccomp_program *ret, struct err *e);

/* Makes the filter of helpers (warden/helper.h): the agent's, and neither a socket to another
 * process of the machine. The program may be executed; with `programs` it may start others, end
 * them, and listen for them. */
int seccomp_compile_helper(const void *ctx, bool programs, struct seccomp_program *ret,
                           struct err *e);

/* --- what a job changes (seccomp_task.c) --- */
struct task_seccomp;
struct str_list;
/* All are calls of Linux; -ERR_INVALID names one that is not, and the nearest. */
int seccomp_check_names(const struct str_list *names, struct err *e);
/* Names, and that the task can start. */
int seccomp_check_task(const struct task_seccomp *t, struct err *e);
/* Without conditions. */
bool seccomp_allows(const struct seccomp_profile *p, const char *name);
/* Whether what is denied is to be told (mode "audit"); t may be NULL. */
bool seccomp_audits(const struct task_seccomp *t);
/* "mount", or "call 1000" of one without a name. */
enum { SECCOMP_CALL_TEXT = 64 };
void seccomp_call_name(uint32_t nr, char out[SECCOMP_CALL_TEXT]);
/* `p`, with t->allow without conditions and without t->deny, which goes before; and with
 * `no_setuid` whatever they say without a call that makes a file run as its owner or group. */
int seccomp_compile_task(const void *ctx, const struct seccomp_profile *p,
                         const struct task_seccomp *t, bool no_setuid, struct seccomp_program *ret,
                         struct err *e);

#endif
