/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables: ordered byte keys to byte values with snapshots, in one file (LMDB behind it; table.c
 * alone includes <lmdb.h>). Any number of read transactions in any thread, one writer at a time.
 *
 * A read transaction sees one moment and keeps the pages of that moment from being reused: hold the
 * transaction for an evaluation or an answer, never while waiting for a peer. Slices point into the
 * map and live until the transaction ends or, in a write transaction, until the next write.
 *
 * A key is 1..TABLE_KEY_MAX bytes. Functions return 0 or a negative code: -ERR_NOT_FOUND,
 * -ERR_LIMIT (the map is full), -ENOSPC (the disk is full: nothing was written, try again),
 * -ERR_CORRUPT, -EINVAL (key size), or -errno of the disk.
 */
#ifndef PADDOCK_COMMON_TABLE_H
#define PADDOCK_COMMON_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/limits.h"

enum {
    TABLE_NOSYNC = 1 << 0, /* a cache: a commit is safe against a process crash only */
    TABLE_READ_ONLY = 1 << 1
};

struct table_env;
struct table_txn;

/* Opens or creates the file `path` (and `path`-lock). `map_bytes` bounds the file. */
int table_env_open(const char *path, size_t map_bytes, unsigned flags, struct table_env **ret,
                   struct err *e);
/* All transactions must have ended. NULL is fine. */
void table_env_close(struct table_env *env);
/* Bytes in use. Of a file that is longer than `exact_from` what was deleted is not counted. */
size_t table_env_usage(struct table_env *env, size_t exact_from);
/* Bytes of the file that writes will use again. */
size_t table_env_free(struct table_env *env);
/* Keeps `bytes` of disk behind the last page in use allocated to the file, so that writes go on for
 * a while when others have filled the disk. *ret_left (may be NULL) is what is reserved: less than
 * asked for when there is no more. One thread at a time. */
void table_env_reserve(struct table_env *env, size_t bytes, size_t *ret_left);
/* Opens or creates a table; at start, before other threads use the env. */
int table_open(struct table_env *env, const char *name, unsigned *ret_table, struct err *e);

/* Begin; NULL when readers are exhausted (-> -ERR_BUSY) or memory is out: *ret_code says. */
struct table_txn *table_read_begin(struct table_env *env, int *ret_code);
/* Blocks while another writer is active. The transaction belongs to the calling thread. */
struct table_txn *table_write_begin(struct table_env *env, int *ret_code);
/* Ends a read transaction, or drops what a write transaction did. NULL is fine. */
void table_end(struct table_txn *t);
/* Ends a write transaction; nothing is written unless it returns 0. */
int table_commit(struct table_txn *t);

int table_get(struct table_txn *t, unsigned table, struct slice key, struct slice *ret);
int table_put(struct table_txn *t, unsigned table, struct slice key, struct slice val);
/* -ERR_NOT_FOUND when absent. */
int table_del(struct table_txn *t, unsigned table, struct slice key);

/* Rows whose key starts with `prefix`, in byte order:
 *   for (struct table_scan *s = table_scan(t, table, prefix); table_next(s);) use s->key, s->val
 * table_scan_end() frees it (NULL is fine). Close before the transaction ends. In a write
 * transaction the current row may be deleted with table_scan_del(); no other writes to that table
 * while a scan is open. */
struct table_scan {
    struct slice key;
    struct slice val;
    int error; /* 0, or why table_next() ended early */
};
struct table_scan *table_scan(struct table_txn *t, unsigned table, struct slice prefix);
/* Starts at the first key >= `from` that still has `prefix`. */
struct table_scan *table_scan_from(struct table_txn *t, unsigned table, struct slice prefix,
                                   struct slice from);
/* Backwards: from the last key <= `from` (`from` empty: from the last) that has `prefix`. */
struct table_scan *table_scan_back(struct table_txn *t, unsigned table, struct slice prefix,
                                   struct slice from);
bool table_next(struct table_scan *s);
int table_scan_del(struct table_scan *s);
void table_scan_end(struct table_scan *s);

#endif
