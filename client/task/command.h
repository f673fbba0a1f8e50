/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in a task that runs, of which the end is waited for: scripts of checks and templates.
 */
#ifndef PADDOCK_CLIENT_TASK_COMMAND_H
#define PADDOCK_CLIENT_TASK_COMMAND_H

#include "client/task/task_int.h"

struct command;

struct command_wish {
    const char *program;
    const struct str_list *args;
    int64_t timeout_ms;
    size_t output_max; /* bytes of its output that are kept */
};

struct command_end {
    const struct err *e; /* it could not be run to its end; NULL: it ended by itself, or is late */
    bool late;           /* it was killed at its timeout */
    int code;
    int sig;            /* 0: it exited */
    const char *output; /* the first bytes, both streams together */
    size_t n;
};

/* Once, unless the command is cancelled; never from inside command_start(). */
typedef void command_done(void *arg, const struct command_end *end);

/* Its input is empty. NULL: *e says why it cannot be run. */
struct command *command_start(struct task_runner *tr, const struct command_wish *w,
                              command_done *done, void *arg, struct err *e);
void command_cancel(struct command *x); /* NULL: nothing */

#endif
