/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server remembers of its log for others: the newest entries with their data (a window of
 * RECENT_BYTES and RECENT_ENTRIES), and the term of every entry that the log holds, by which older
 * ones are read from the segments. The raft thread's alone; a sole server keeps terms only.
 */
#ifndef PADDOCK_SERVER_RAFT_RECENT_H
#define PADDOCK_SERVER_RAFT_RECENT_H

#include "server/raft/segment.h"

enum { RECENT_BYTES = 16 << 20, RECENT_ENTRIES = 8192 };

struct recent;

struct recent *recent_new(const void *ctx);
/* The next entry of the log has that term. The first one may have any index. */
void recent_term_add(struct recent *r, uint64_t index, uint64_t term);
/* The same, and the data is copied into the window. Indexes without a gap. */
void recent_add(struct recent *r, const struct record *rec);
/* Entries >= index are not in the log any more. */
void recent_cut(struct recent *r, uint64_t index);
/* Entries < first are not in it any more. */
void recent_drop(struct recent *r, uint64_t first);
/* 0: not in the log. */
uint64_t recent_term(const struct recent *r, uint64_t index);
/* Borrowed until the next call that changes `r`; NULL: not in the window. */
const struct record *recent_get(const struct recent *r, uint64_t index);

#endif
