/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of server/state share: physical tables, keys, rows.
 *
 * Keys are components ended by NUL. A component longer than KEY_PART_MAX is cut and a hash of the
 * whole is appended, so that every key fits the table; the order of such ids among each other is then
 * by hash, and prefix queries check the id in the row.
 *
 * An allocation row is: u8 version (1), u8 ROW_* flags, 6 zero bytes, u64 JobModifyIndex (big-endian)
 * of the job version it refers to, then the Allocation without Job in msgpack.
 */
#ifndef PADDOCK_SERVER_STATE_STATE_INT_H
#define PADDOCK_SERVER_STATE_STATE_INT_H

#include "common/buf.h"
#include "common/table.h"
#include "server/limits.h"
#include "server/state/state.h"
#include "server/state/write.h"

enum {
    T_JOBS,
    T_JOB_VERSIONS,
    T_SUBMISSIONS,
    T_SUMMARIES,
    T_NODES,
    T_ALLOCS,
    T_EVALS,
    T_CONFIG,
    T_META,
    T_PRIMARY, /* tables below are derived */
    T_ALLOCS_BY_JOB = T_PRIMARY,
    T_ALLOCS_BY_NODE,
    T_ALLOCS_BY_EVAL,
    T_ALLOCS_BY_CREATE, /* by CreateIndex, then id */
    T_EVALS_BY_CREATE,
    T_EVALS_BY_JOB,
    T_OPEN_EVALS,  /* of a job, with its status: pending and blocked ones */
    T_JOBS_BY_TYPE,
    T_LIVE_ALLOCS, /* of a job, by name and node: those that are terminal on neither side */
    T_ALL
};

/* Of the file: a new table or row layout needs a new number; files of another are rebuilt. */
enum { STATE_FORMAT = 4 };

enum { KEY_PART_MAX = 150, ROW_HEAD = 16 };
enum { ROW_SERVER_TERMINAL = 1, ROW_CLIENT_TERMINAL = 2 };

struct state {
    struct table_env *env;
    unsigned t[T_ALL];
    char *path;
    size_t max_bytes;
};

struct cached_job {
    struct cached_job *next;
    const char *ns;
    const char *id;
    uint64_t jmi;
    const struct job *job;
};

struct state_txn {
    struct state *s;
    struct table_txn *t;
    const void *ctx;
    bool write;
    struct cached_job *jobs;
    struct buf row; /* scratch of writes */
    struct state_change *changes;
    size_t n_changes;
    size_t cap_changes;
    uint64_t touched[STATE_TABLES]; /* index stored for the table in this transaction */
};

struct key {
    uint8_t b[TABLE_KEY_MAX];
    size_t n;
};
#define KEY_SLICE(k) SLICE((k).b, (k).n)

/* A component and its NUL. */
void key_part(struct key *k, const char *s);
void key_u64(struct key *k, uint64_t v);
/* A string of which only equality matters, as 8 bytes. */
void key_hash(struct key *k, const char *s);
struct key key_create(uint64_t create_index, const char *id);
struct key key1(const char *a);
struct key key2(const char *a, const char *b);
struct key key3(const char *a, const char *b, const char *c);
uint64_t be64_get(const void *p);
void be64_put(void *p, uint64_t v);

/* Ends the process: the cache is damaged or full. */
_Noreturn void state_fatal(const struct state *s, const char *what, int code);
/* The row, or false when absent. */
bool row_get(struct state_txn *t, unsigned table, const struct key *k, struct slice *ret);
void *row_decode(struct state_txn *t, const void *ctx, const struct type *type, struct slice row);
const struct type *row_type(unsigned table);

#endif
