/* SPDX-License-Identifier: Apache-2.0
 *
 * Local snapshots: the whole state at a Raft index in one file, so that the log can be kept short
 * and the state rebuilt. Written to a temporary file, synced, renamed; the newest stays.
 *
 *   head     "PDKSNAP1" | u64 index | u64 term | u64 conf index | u32 length of conf | conf |
 *            u32 crc32c of all that (big-endian)
 *   rows     msgpack arrays [table, key, value] (uint, bin, bin), in table and key order
 *   end      msgpack nil | u64 number of rows | 16 bytes XXH3-128 of everything before the hash
 *
 * Never raw pages of the table file: they would survive no change of it.
 */
#ifndef PADDOCK_SERVER_RAFT_SNAPSHOT_H
#define PADDOCK_SERVER_RAFT_SNAPSHOT_H

#include "common/err.h"
#include "common/table.h"
#include "server/limits.h"
#include "server/raft/consensus.h"

typedef int snapshot_row_fn(void *arg, unsigned table, struct slice key, struct slice val);

/* Gives its rows by calling `row` until it answers negatively. Returns 0 or negative. */
typedef int snapshot_source_fn(void *src, snapshot_row_fn *row, void *row_arg);

/* Any thread. Older snapshots in `dir` are removed once the new one is durable. */
int snapshot_write(const char *dir, const struct consensus_snapshot *meta,
                   snapshot_source_fn *source, void *src, struct err *e);
/* The newest one's head: 1 when there is one, 0 when none. What `ret` holds is owned by ctx. */
int snapshot_find(const char *dir, const void *ctx, struct consensus_snapshot *ret, struct err *e);
/* Reads the snapshot of `index` and gives every row to fn. -ERR_CORRUPT when it is damaged, known
 * only at the end: rows given before must then be thrown away. */
int snapshot_read(const char *dir, uint64_t index, snapshot_row_fn *fn, void *arg, struct err *e);

/* Gives the next piece, which stays until the next call: 1; 0: there is none. */
typedef int snapshot_more_fn(void *arg, struct slice *ret);
/* Reads a snapshot that comes in pieces and gives every row to fn, before its hash is known:
 * -ERR_CORRUPT when the file is damaged, or the answer of fn. `ret` is owned by ctx. */
int snapshot_scan(snapshot_more_fn *more, void *more_arg, const void *ctx,
                  struct consensus_snapshot *ret, snapshot_row_fn *fn, void *arg);

/* A copy of a snapshot under another name: 0 when it is whole. What `ret` holds is owned by ctx. */
int snapshot_check(const char *dir, const char *name, const void *ctx,
                   struct consensus_snapshot *ret, struct err *e);
/* Opens the newest one, or that of *index if not 0; *index and *size are filled. Negative errno. */
int snapshot_open(const char *dir, uint64_t *index, uint64_t *size);
void snapshot_remove(const char *dir, uint64_t index);
/* The copy becomes the newest snapshot; durable. Negative errno. */
int snapshot_adopt(const char *dir, const char *name, uint64_t index);

#endif
