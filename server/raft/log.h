/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable Raft log of one server: entries in segment files (segment.h), term and vote in a file
 * of two slots. One writer thread; everything queued since the last sync goes out in one pwrite and
 * one fdatasync (group commit), then on_durable() is told. A write for which there is no space
 * waits until there is some; any other failed write, and every failed sync, ends the process: after
 * a failed fsync nobody knows what is on disk.
 *
 * Threads: open, replay, set_hard and close on the owner's (raft) thread; append, truncate and
 * compact on the raft thread; on_durable is called on the writer thread with the log's lock held
 * and only posts.
 */
#ifndef PADDOCK_SERVER_RAFT_LOG_H
#define PADDOCK_SERVER_RAFT_LOG_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "server/raft/segment.h"

struct raft_log;

struct raft_log_opts {
    size_t segment_bytes; /* 0: 8 MiB */
    void (*on_durable)(void *arg, uint64_t index); /* everything up to `index` is on disk */
    void *arg;
};

/* Opens or creates the log in the directory, which must exist. Damage other than a torn last write
 * is -ERR_CORRUPT, and the message says what to do. */
int raft_log_open(const char *dir, const struct raft_log_opts *opts, struct raft_log **ret,
                  struct err *e);
/* Waits until what was appended is durable. NULL is fine. */
void raft_log_close(struct raft_log *l);

/* Indexes held: first..last; last == first - 1 when empty. */
uint64_t raft_log_first(const struct raft_log *l);
uint64_t raft_log_last(const struct raft_log *l);
uint64_t raft_log_term(const struct raft_log *l);
uint64_t raft_log_vote(const struct raft_log *l);

/* Every entry from `from` on, truncations applied, in order; before anything is appended. */
int raft_log_replay(struct raft_log *l, uint64_t from, segment_fn *fn, void *arg, struct err *e);

/* Fills type and data (owned by ctx) of entries that are durable, of which index and term are
 * given, without a gap: of how many, from the first on; no more when they have `bytes` together.
 * Reads the files; any thread, until the log is closed. */
size_t raft_log_read(struct raft_log *l, const void *ctx, struct record *v, size_t n, size_t bytes);

/* Durable when it returns. Ends the process when the disk fails. */
void raft_log_set_hard(struct raft_log *l, uint64_t term, uint64_t vote);
/* Queues an entry; r->index must be last + 1. The data is copied. */
void raft_log_append(struct raft_log *l, const struct record *r);
/* Lets the writer go after a batch of appends. */
void raft_log_flush(struct raft_log *l);
/* Waits until everything queued is durable. */
void raft_log_sync(struct raft_log *l);
/* Drops entries >= index. */
void raft_log_truncate(struct raft_log *l, uint64_t index);
/* The log is replaced by a snapshot of `index`: empty, next entry index + 1. Waits for the writer.
 */
void raft_log_reset(struct raft_log *l, uint64_t index);
/* Entries <= index are not needed any more: removes segments that hold nothing else. */
void raft_log_compact(struct raft_log *l, uint64_t index);
/* 0, or -ENOSPC with words when the disk is nearly full: refuse new work before a write must wait.
 * Of the room, DISK_LOG_ROOM must be on the disk itself; `elsewhere` are bytes that others will not
 * take from it. */
int raft_log_room(const struct raft_log *l, size_t elsewhere, struct err *e);
/* A segment is in reserve: what ends work can still be written when the disk is full. */
bool raft_log_spare(const struct raft_log *l);

#endif
