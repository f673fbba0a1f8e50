/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a command against recorded answers: what it printed, its exit code, what it asked.
 */
#ifndef PADDOCK_TESTS_CLI_FAKE_H
#define PADDOCK_TESTS_CLI_FAKE_H

#include "cli/command.h"

struct answer {
    const char *target; /* "GET /v1/jobs"; a prefix of method, blank and target */
    int status;         /* 0: the connection is refused */
    const char *body;
};

/* Ends with a NULL target; borrowed until the next call. */
void fake_answers(const struct answer *a);
/* The command line after "paddock", split at blanks; returns the exit code. */
int fake_run(const char *line);
const char *fake_out(void);
const char *fake_err(void);
/* What was asked, one "METHOD target" per line. */
const char *fake_asked(void);
/* Body of the last request that had one. */
const char *fake_body(void);

#endif
