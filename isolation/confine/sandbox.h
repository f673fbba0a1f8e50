/* SPDX-License-Identifier: Apache-2.0
 *
 * What the agent does to itself. The agent parses what comes from networks and tasks, so whoever
 * gets into it should find little: files outside of its own by no way (Landlock), no program to
 * start, no process to make or trace, no mount, no other user (seccomp). Both only take away, and
 * both are best effort: where the kernel has no such thing, the unprivileged user is what is left.
 */
#ifndef PADDOCK_ISOLATION_CONFINE_SANDBOX_H
#define PADDOCK_ISOLATION_CONFINE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"

struct sandbox_path {
    const char *path; /* and what is below; one that is not there is left out */
    bool write;       /* read otherwise */
    bool execute;     /* and read */
    int fd;           /* in place of `path`, where that is NULL; borrowed */
};

/* Leaves these to the caller, and the threads that it makes, and nothing else to read, write or
 * execute. With no_new_privs. 0, or what this kernel lacks. */
int sandbox_files(const struct sandbox_path *v, size_t n, struct err *e);
/* Takes io_uring from the caller and its later threads: an event loop made afterwards does without.
 * A loop with a ring would end the process when sandbox_calls() refuses it. With no_new_privs. */
int sandbox_rings(struct err *e);
/* From now on every thread of the process has the filter of seccomp_compile_agent(). */
int sandbox_calls(struct err *e);

#endif
