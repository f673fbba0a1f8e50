/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing the state: for the FSM and for loading a snapshot. One writer; the transaction belongs to
 * the thread that began it. `index` is the Raft index of the entry being applied: every function
 * below moves the index of its table to it and notes what a blocking query may wait for (0:
 * neither). They store what they are given: stamping CreateIndex and the like is the FSM's work. A
 * full map or a damaged file ends the process; the damaged one is dropped, and rebuilt by the next
 * start.
 */
#ifndef PADDOCK_SERVER_STATE_WRITE_H
#define PADDOCK_SERVER_STATE_WRITE_H

#include "common/mem.h"
#include "common/table.h"
#include "server/state/state.h"

/* Opens the cache in `dir` for this boot (NULL: of the running kernel); files of other boots are
 * removed. `max_bytes` is for whoever admits writes (state_usage): the file can become several
 * times as big. *ret_fresh: it is empty and must be loaded. */
int state_open(const char *dir, const char *boot_id, size_t max_bytes, struct state **ret,
               bool *ret_fresh, struct err *e);
/* A second file beside it, empty: loaded while the first one is read, then put in its place. */
int state_open_next(const struct state *s, struct state **ret, struct err *e);
/* `next` is the file of this boot from here on; who reads `s` goes on with what is in it. Nobody
 * begins to read it any more: close it. Negative errno. */
int state_replace(struct state *s, struct state *next);
/* The file is closed when the last transaction ends, by the thread that ends it. */
void state_close(struct state *s);
/* Removes every row (before a snapshot is loaded). */
void state_clear(struct state *s);
/* Bytes in use, and those that may be. */
void state_usage(struct state *s, size_t *ret_used, size_t *ret_max);
/* Bytes of its file that are in use, and that will be used again: exact, and too slow for every
 * write. */
void state_file(struct state *s, size_t *ret_used, size_t *ret_free);
/* Keeps DISK_RESERVE bytes of disk; true when (at least half of) it is there. The FSM's thread. */
bool state_reserve(struct state *s);

struct state_txn *state_write_begin(struct state *s, const void *ctx);
/* True when a row was put that could not be read again (over a limit of the schema or of the codec,
 * or over ROW_MAX or ROW_BUDGET): from there on nothing was written, and the transaction can only
 * be aborted. *e names the row. It depends on what was to be stored alone, so every server says the
 * same. */
bool state_refused(const struct state_txn *t, struct err *e);
/* Ends the transaction. -ENOSPC and the like (errno_is_shortage): nothing was written, do it again
 * later; any other failure ends the process. */
int state_commit(struct state_txn *t);
void state_abort(struct state_txn *t);

/* Index in the log, and term, of the last applied entry; 0 in an empty state. */
uint64_t state_logged(const struct state_txn *t);
void state_set_applied(struct state_txn *t, uint64_t index, uint64_t term);
uint64_t state_applied_term(struct state_txn *t);

/* Hears of every row that a transaction stores or removes, whoever asked for it: also of what goes
 * along with another row. `key` is the row's in its table, valid during the call. */
struct state_follower {
    /* `obj` is the writer's, who keeps it as it is for as long as the follower wants; an allocation
     * is without Job. `quiet`: neither the index of the table moved nor was anybody woken. */
    void (*stored)(void *arg, enum state_table table, struct slice key, const void *obj,
                   bool quiet);
    /* `obj` is the row as it was, owned by `ctx`. */
    void (*removed)(void *arg, enum state_table table, struct slice key, const void *obj);
    void *arg;
    const void *ctx;
};
/* The follower from here on, borrowed; NULL: nobody, as at first. */
void state_follow(struct state_txn *t, const struct state_follower *f);

/* state_put(t, index, NODES, n) stores an object; state_del(t, index, NODES, id) removes one, false
 * when it is not there. Along goes what belongs to it: with a job all but its allocations,
 * evaluations and the versions these need. */
#define state_put(t, index, TABLE, obj)                                              \
    ({                                                                               \
        const __typeof__(*((struct state_types *)0)->TABLE) *_obj = (obj);           \
        state_put_row((t), (index), STATE_##TABLE, _obj);                            \
    })
#define state_del(t, index, TABLE, ...)                                                            \
    state_del_row((t), (index), STATE_##TABLE, (struct state_key){__VA_ARGS__})
void state_put_row(struct state_txn *t, uint64_t index, enum state_table table, const void *obj);
bool state_del_row(struct state_txn *t, uint64_t index, enum state_table table,
                   struct state_key key);
/* Removes the registrations of an allocation (STATE_SERVICES_BY_ALLOC), or of a node. */
void state_end_services(struct state_txn *t, uint64_t index, enum state_by by, const char *id);
/* In place of state_put: a->job is not stored; `job_modify_index` says which version it refers to.
 */
void state_put_alloc(struct state_txn *t, uint64_t index, const struct allocation *a,
                     uint64_t job_modify_index);
/* Removes versions beyond the newest `keep` that no allocation refers to. */
void state_trim_job_versions(struct state_txn *t, uint64_t index, const char *ns, const char *id,
                             size_t keep);

/* The tables and keys that a write transaction touched so far, for the watches. */
struct state_change {
    enum state_table table;
    uint64_t key; /* state_key_*(); 0: none */
};
const struct state_change *state_changes(const struct state_txn *t, size_t *ret_n);

/* --- for snapshots: every row of every table that is not derived, in key order --- */
typedef int state_row_fn(void *arg, unsigned table, struct slice key, struct slice val);
/* Stops at the first negative answer and returns it. */
int state_dump(struct state_txn *t, state_row_fn *fn, void *arg);
/* Stores a row of a dump and what is derived from it. -ERR_CORRUPT when it does not decode. */
int state_load_row(struct state_txn *t, unsigned table, struct slice key, struct slice val);

/* --- for a restore of what a backup holds (server/core/restore.c) --- */
/* Reads a row of a dump that tells of the state itself: adds to *applied what state_applied() was
 * made of. */
void state_read_applied(unsigned table, struct slice key, struct slice val, uint64_t *applied);
/* Removes all rows but those of `keep`, and nobody hears of it but by state_restored(). */
void state_wipe(struct state_txn *t, enum state_table keep);
/* The same of one table, which nobody follows. */
void state_wipe_table(struct state_txn *t, enum state_table table);
/* All tables are others, as of `index`, which is that of the log's entry `logged`; entries that
 * follow have indexes above it. */
void state_restored(struct state_txn *t, uint64_t index, uint64_t logged);

#endif
