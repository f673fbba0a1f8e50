/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of the agent's log (log_file), and its rotation: a file larger than log_rotate_bytes,
 * or older than log_rotate_duration, becomes NAME-<ns since the epoch>.EXT beside it, and a new one
 * begins. The newest log_rotate_max_files of the old ones are kept (0: all; below 0: none). One in
 * a process.
 */
#ifndef PADDOCK_AGENT_LOGFILE_H
#define PADDOCK_AGENT_LOGFILE_H

#include "api/api.h"

/* Opens cfg->log_file, for as long as the process lives; -errno. What log_setup() is told to write
 * to it counts. */
int logfile_open(const struct agent_config *cfg);

#endif
