/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the log: log.c, and log_read.c, which reads segments that it writes.
 */
#ifndef PADDOCK_SERVER_RAFT_LOG_INT_H
#define PADDOCK_SERVER_RAFT_LOG_INT_H

#include <inttypes.h>
#include <stdio.h>

#include "server/raft/log.h"

static inline void
segment_name(char out[40], uint64_t seq)
{
    snprintf(out, 40, "log-%020" PRIu64, seq);
}

/* The segments in which entry `from`, and those behind it, may be: their names, owned by ctx,
 * oldest first. */
size_t raft_log_files(struct raft_log *l, const void *ctx, uint64_t from, uint64_t **ret_seq,
                      int *ret_dirfd);

#endif
