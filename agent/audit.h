/* SPDX-License-Identifier: Apache-2.0
 *
 * The audit log: a line of JSON for each request to this agent and each command in a task of its
 * node. A line goes out before its answer does. With delivery_guarantee "enforced" the
 * room of the line is taken before anything is done, and an answer whose line cannot be written is
 * not given. Loop thread.
 */
#ifndef PADDOCK_AGENT_AUDIT_H
#define PADDOCK_AGENT_AUDIT_H

#include "api/api.h"
#include "common/err.h"

struct audit;

struct audit_config {
    const struct agent_audit *block; /* checked (config_audit_check); borrowed */
    const char *dir;                 /* of a file without a path: audit.log there */
    const char *journal;             /* journald's socket */
};

/* Opens the sink, until ctx goes; NULL with *e. A file is made with its directory, and appended
 * to. */
struct audit *audit_open(const void *ctx, const struct audit_config *cfg, struct err *e);

/* False: a filter leaves it out. */
bool audit_takes(const struct audit *x, const char *method, const char *path);
/* Takes the room of one line, which audit_write() is owed then. -ERR_UNAVAILABLE in words: there is
 * none, and nothing may be done; only where it is enforced. */
int audit_begin(struct audit *x, struct err *e);
/* Writes the line, once for each audit_begin() that returned 0. -ERR_UNAVAILABLE as above. */
int audit_write(struct audit *x, const struct audit_entry *line, struct err *e);

#endif
