/* SPDX-License-Identifier: Apache-2.0
 *
 * `paddock agent` without systemd: a small process that parses nothing itself, starts the warden
 * and the agent and restarts them when they die. As root it drops the agent to the policy's user;
 * without root everything runs as the caller.
 *
 *     supervisor (root)
 *     |- paddock policy (once, first: the only root parser; a child of its own)
 *     |- paddock-warden -policy RUNDIR/policy
 *     `- paddock agent -supervised RUNDIR ...     user paddock, no capabilities, no_new_privs
 *
 * SIGTERM and SIGINT: the agent gets the signal and time to stop, then the warden; tasks live on,
 * except with `stop_tasks` (-dev), where the warden is asked to end them, and where the kernel asks
 * it should the supervisor be killed. At SIGHUP the policy is compiled again, for the warden, and
 * both get the signal. The agent's exit code 0 ends all; other codes, or a signal, restart the
 * agent after a pause that doubles from 0.25 s to 30 s (and end all if no agent ran for a second: a
 * configuration error).
 */
#ifndef PADDOCK_ISOLATION_SUPERVISOR_H
#define PADDOCK_ISOLATION_SUPERVISOR_H

#include <stdbool.h>

#include "api/api.h"
#include "common/err.h"

struct supervisor {
    /* Called in a child process of its own, as root: loads the configuration, returns the policy
     * owned by ctx. Its stderr is the caller's: it says itself what is wrong beyond `e`. */
    int (*load)(void *arg, const void *ctx, struct policy **ret, struct err *e);
    /* Called here, as root, before each start of the agent and before it gets SIGHUP: leaves in the
     * run directory what the agent's user may not read. When it fails, what is there already stays
     * good. */
    int (*before_agent)(void *arg, const struct policy *p, struct err *e);
    /* Optional, called here when all has ended, with stop_tasks: undoes what load() did beyond
     * `ret`. */
    void (*ended)(void *arg, const struct policy *p);
    void *arg;
    /* The agent's command line as given: argv[0] "agent" ...; the child is started as
     * /proc/self/exe paddock argv[0] -supervised RUNDIR argv[1..]. */
    int argc;
    char *const *argv;
    bool stop_tasks; /* -dev: tasks end with the agent */
};

/* Returns the exit status of the program. Call it before any thread is started. */
int supervisor_main(const struct supervisor *s);

/* Directory of paddock-warden and paddock-shim: where the running program is, else pkglibexecdir.
 * -ERR_NOT_FOUND names both. `ret` of PATH_MAX bytes. */
int supervisor_helpers(char *ret, unsigned long size, struct err *e);

#endif
