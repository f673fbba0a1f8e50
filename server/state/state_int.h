/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of server/state share: physical tables, keys, rows.
 *
 * Keys are components ended by NUL. A component longer than KEY_PART_MAX is cut and a hash of the
 * whole is appended, so that every key fits the table; the order of such ids among each other is
 * then by hash, and prefix queries check the id in the row.
 *
 * An allocation row is: u8 version (1), u8 ROW_* flags, 6 zero bytes, u64 JobModifyIndex
 * (big-endian) of the job version it refers to, then the Allocation without Job in msgpack.
 */
#ifndef PADDOCK_SERVER_STATE_STATE_INT_H
#define PADDOCK_SERVER_STATE_STATE_INT_H

#include <stdatomic.h>

#include "common/buf.h"
#include "common/table.h"
#include "server/limits.h"
#include "server/state/state.h"
#include "server/state/write.h"

/* Physical tables: those of enum state_table, what is not the log's but ours, the bytes of the
 * variables of each namespace, which are derived as indexes are, then the indexes. */
enum { T_META = STATE_TABLES, T_VARIABLES_BYTES, T_INDEXES, T_ALL = T_INDEXES + STATE_INDEXES_N };

enum part_kind { PART_END, PART_STR, PART_HASH, PART_OLDEST, PART_NEWEST, PART_WORD };
enum { KEY_PARTS = 5, TABLE_WATCHES = 5 };
/* A part of a key: its kind, and where in the object it stands. */
struct part {
    enum part_kind kind;
    size_t at;
    const char *word;
};
struct table_row {
    const char *name;
    const struct type *type;
    unsigned id;
    struct part key[KEY_PARTS];
    struct {
        enum state_watch_kind kind; /* 0: none */
        struct part about[KEY_PARTS];
    } watches[TABLE_WATCHES];
    /* `jmi` is what the head of the row says. */
    void (*gone)(struct state_txn *t, uint64_t index, const void *obj, uint64_t jmi);
};
struct index_row {
    const char *name;
    unsigned of; /* table */
    struct part key[KEY_PARTS];
    bool (*holds)(const void *obj);
};
extern const struct table_row table_rows[STATE_TABLES];
extern const struct index_row index_rows[STATE_INDEXES_N];

/* The format of the file: a new table or row layout needs a new number; files of another are
 * rebuilt. */
enum { STATE_FORMAT = 18 };

enum { KEY_PART_MAX = 150, ROW_HEAD = 16 };
enum { ROW_SERVER_TERMINAL = 1, ROW_CLIENT_TERMINAL = 2 };

struct state {
    atomic_size_t refs; /* of its owner, and of each transaction */
    struct table_env *env;
    unsigned t[T_ALL];
    char *dir, *path;
    size_t max_bytes;
};

enum { JOB_BUCKETS = 256 };

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
    struct cached_job *jobs[JOB_BUCKETS]; /* by jmi */
    struct buf row; /* scratch of writes */
    struct state_change *changes;
    size_t n_changes;
    size_t cap_changes;
    uint64_t touched[STATE_TABLES]; /* index stored for the table in this transaction */
    struct err refused;             /* a row could not be stored: nothing more is written */
    const struct state_follower *follower; /* of the rows that are written; or NULL */
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
struct key key1(const char *a);
struct key key2(const char *a, const char *b);
/* Make the key of an object, and of what names one. */
void key_of(struct key *k, const struct part *parts, const void *obj);
struct key key_from(const struct part *parts, const struct state_key *from);
uint64_t key_watch(enum state_watch_kind kind, const struct key *about);
uint64_t be64_get(const void *p);
void be64_put(void *p, uint64_t v);

/* Ends the process: the cache is damaged or full. */
_Noreturn void state_fatal(const struct state *s, const char *what, int code);
/* The row, or false when absent. */
bool row_get(struct state_txn *t, unsigned table, const struct key *k, struct slice *ret);
struct row {
    struct slice key, val;
};
void *row_decode(struct state_txn *t, const void *ctx, unsigned table, struct row row);
/* A key as people may read it, cut. */
enum { ROW_NAME = 80 };
const char *row_name(struct slice key, char out[ROW_NAME]);
/* The same as state_fatal(), of a row that cannot be decoded: none such is written
 * (state_refused()), so the file is damaged, or of a release that did write such a row and whose
 * log this release gets past. */
_Noreturn void row_fatal(const struct state *s, unsigned table, struct slice key, const char *why);
/* Returns the bytes before an object in the rows of the table: ROW_HEAD bytes or none. */
static inline size_t
row_head(unsigned table)
{
    return table == STATE_ALLOCS ? ROW_HEAD : 0;
}

/* Notes a change of the table at `index`, of no row. */
void state_touch(struct state_txn *t, enum state_table table, uint64_t index);
/* Clean up behind rows that go (tables.h). */
void job_gone(struct state_txn *t, uint64_t index, const void *obj, uint64_t jmi);
void alloc_gone(struct state_txn *t, uint64_t index, const void *obj, uint64_t jmi);

#endif
