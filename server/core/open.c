/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: opening (log, snapshot, state; replay) and local snapshots.
 *
 * The state is a cache of the log: kept after a crash of the process (same boot), rebuilt from the
 * snapshot after a crash of the machine. Whatever is kept must reach from the snapshot or the applied
 * index to the end of the log without a gap, or the server does not start.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"

enum { LOAD_BATCH = 10000 };

/* --- identity --- */

static int
load_id(struct core *c, const char *dir, struct err *e)
{
    auto_mem void *tmp = mem_ctx("server id");
    char *path = mem_printf(tmp, "%s/id", dir);
    char *text = NULL;
    size_t n = 0;
    int rc = file_read(tmp, AT_FDCWD, path, 64, &text, &n);
    if (rc >= 0) {
        uint64_t id = 0;
        while (n > 0 && text[n - 1] == '\n')
            text[--n] = '\0';
        if (num_parse_u64(text, &id) < 0 || id == 0)
            return err_set(e, -ERR_CORRUPT,
                           "'%s' holds no server id: restore it, or remove '%s' and start again empty",
                           path, dir);
        c->id = id;
        return 0;
    }
    if (rc != -ENOENT)
        return err_errno(e, -rc, "read '%s'", path);
    do
        c->id = env_random(c->env) >> 1;
    while (c->id == 0);
    text = mem_printf(tmp, "%" PRIu64 "\n", c->id);
    rc = file_write_atomic(AT_FDCWD, path, text, strlen(text), 0600);
    return rc < 0 ? err_errno(e, -rc, "write '%s'", path) : 0;
}

static int
make_dirs(const char *dir, const char *raft_dir, const char *state_dir, struct err *e)
{
    int rc = dir_make(AT_FDCWD, raft_dir, 0700);
    if (rc == 0)
        rc = dir_make(AT_FDCWD, state_dir, 0700);
    return rc < 0 ? err_errno(e, -rc, "make the server's directories below '%s'", dir) : 0;
}

/* --- loading a snapshot --- */

struct loader {
    struct state *s;
    struct state_txn *t;
    size_t n;
    unsigned table;
    size_t in_table;
};

static int
load_row(void *arg, unsigned table, struct slice key, struct slice val)
{
    struct loader *l = arg;
    if (l->t == NULL)
        l->t = state_write_begin(l->s, NULL);
    int rc = state_load_row(l->t, table, key, val);
    l->n++;
    l->in_table = table == l->table ? l->in_table + 1 : 1;
    l->table = table;
    /* The last table says how far the state reaches: a few rows, which are never split. */
    if (rc == 0 && l->in_table % LOAD_BATCH == 0)
        rc = state_commit(TAKE(l->t));
    return rc;
}

static int
load_snapshot(struct core *c, const char *dir, uint64_t index, struct err *e)
{
    struct loader l = {.s = c->state};
    state_clear(c->state);
    int rc = snapshot_read(dir, index, load_row, &l, e);
    if (l.t != NULL && rc == 0)
        rc = state_commit(TAKE(l.t));
    if (l.t != NULL)
        state_abort(l.t);
    if (rc < 0) /* what is loaded stays without the mark of the last rows, and is cleared first again */
        return err_set(e, rc, "rebuild the state below '%s': %s%s", c->o.dir, err_name(rc),
                       errno_is_shortage(-rc) ? ": free some space" : "");
    log_info("core", "rebuilt the state from a snapshot", "index", LOG_U64(index), "rows",
             LOG_U64(l.n), NULL);
    return 0;
}

static int
open_state(struct core *c, const char *raft_dir, const char *state_dir,
           const struct consensus_snapshot *snap, struct err *e)
{
    bool fresh = false;
    int rc = state_open(state_dir, c->o.boot_id, c->o.state_max, &c->state, &fresh, e);
    if (rc < 0)
        return rc;
    void *tmp = mem_ctx("applied");
    struct state_txn *t = state_read_begin(c->state, tmp);
    c->applied = state_applied(t);
    c->applied_term = state_applied_term(t);
    state_read_end(t);
    mem_free(tmp);
    uint64_t base = snap != NULL ? snap->index : 0;
    if (c->applied >= base && !fresh)
        return 0;
    if (snap == NULL) {
        state_clear(c->state);
        return 0;
    }
    rc = load_snapshot(c, raft_dir, base, e);
    c->applied = base;
    c->applied_term = snap->term;
    return rc;
}

/* --- replay --- */

struct replayed {
    struct core *c;
    struct record *v;
    size_t n;
    size_t cap;
};

/* Keeps what is not applied yet, and of the rest what consensus needs to know. */
static int
replay_record(void *arg, const struct record *r)
{
    struct replayed *p = arg;
    struct core *c = p->c;
    uint64_t first = p->n > 0 ? p->v[0].index : r->index;
    if (r->type == RECORD_TRUNCATE) {
        while (p->n > 0 && p->v[p->n - 1].index >= r->index)
            p->n--;
        return 0;
    }
    ASSERT(r->index == first + p->n);
    if (p->n == p->cap) {
        p->cap = p->cap == 0 ? 1024 : p->cap * 2;
        mem_resize(c->start_ctx, p->v, struct record, p->cap);
    }
    struct record *o = &p->v[p->n++];
    *o = *r;
    bool keep = r->type == RECORD_CONFIG || r->index > c->applied;
    o->data = keep && r->n > 0 ? mem_dup(c->start_ctx, r->data, r->n) : NULL;
    if (!keep)
        o->n = 0;
    return 0;
}

static void
take_entries(struct core *c, const struct replayed *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct record *r = &p->v[i];
        if (r->type == RECORD_CONFIG && r->index <= c->applied) {
            mem_free(c->conf.v);
            if (consensus_conf_decode(c, r->data, r->n, &c->conf) == 0)
                c->conf_index = r->index;
        }
        if (r->index <= c->applied)
            continue;
        struct entry *en = mem_new(NULL, struct entry);
        *en = (struct entry){.index = r->index, .term = r->term, .type = r->type, .n = r->n};
        en->data = r->n > 0 ? mem_dup(en, r->data, r->n) : NULL;
        *c->entries_last = en;
        c->entries_last = &en->next;
        c->unapplied += en->n;
    }
}

static int
check_reach(struct core *c, const struct consensus_snapshot *snap, const char *dir, struct err *e)
{
    uint64_t first = raft_log_first(c->log);
    uint64_t last = raft_log_last(c->log);
    uint64_t known = snap != NULL && snap->index > c->applied ? snap->index : c->applied;
    if (last >= known && first <= c->applied + 1)
        return 0;
    return err_set(e, -ERR_CORRUPT,
                   "the Raft log in '%s' holds entries %" PRIu64 " to %" PRIu64
                   ", but the state was applied up to %" PRIu64
                   ": part of it is missing. Restore the directory from a backup, or, when other "
                   "servers hold the data (or it may be lost), remove it and start again empty",
                   dir, first, last, known);
}

/* The first server of a cluster writes the first configuration itself. */
static int
bootstrap(struct core *c, struct err *e)
{
    struct peer self = {.id = c->id, .addr = c->o.addr, .role = PEER_VOTER};
    struct peer_list conf = {&self, 1};
    struct record r = {.index = 1, .term = 1, .type = RECORD_CONFIG};
    void *data = NULL;
    int rc = consensus_conf_encode(c->start_ctx, &conf, &data, &r.n);
    if (rc < 0)
        return err_set(e, rc, "the server's address '%s' is invalid", c->o.addr);
    r.data = data;
    rc = raft_log_room(c->log, 0, e);
    if (rc < 0)
        return rc;
    raft_log_set_hard(c->log, 1, 0);
    raft_log_append(c->log, &r);
    raft_log_sync(c->log);
    return 0;
}

static int
load(struct core *c, const char *raft_dir, const char *state_dir, struct err *e)
{
    struct consensus_snapshot *snap = mem_new(c->start_ctx, struct consensus_snapshot);
    int rc = snapshot_find(raft_dir, c->start_ctx, snap, e);
    if (rc < 0)
        return rc;
    if (rc == 0)
        snap = NULL;
    rc = open_state(c, raft_dir, state_dir, snap, e);
    if (rc < 0)
        return rc;
    bool empty = raft_log_last(c->log) == 0 && snap == NULL && c->applied == 0;
    rc = empty ? bootstrap(c, e) : check_reach(c, snap, raft_dir, e);
    if (rc < 0)
        return rc;
    struct replayed p = {.c = c};
    rc = raft_log_replay(c->log, 1, replay_record, &p, e);
    if (rc < 0)
        return rc;
    uint64_t term = p.n > 0 ? p.v[p.n - 1].term : 0;
    if (raft_log_term(c->log) < term || (snap != NULL && raft_log_term(c->log) < snap->term))
        return err_set(e, -ERR_CORRUPT,
                       "'%s/hard-state' (term and vote) is older than the log beside it; this server "
                       "could vote twice. Restore the file, or remove the directory and let the "
                       "server rejoin empty",
                       raft_dir);
    if (snap != NULL) {
        consensus_conf_copy(c, &snap->conf, &c->conf);
        c->conf_index = snap->conf_index;
    }
    take_entries(c, &p);
    c->since_snapshot = c->applied - (snap != NULL ? snap->index : 0);
    c->stored = raft_log_last(c->log);
    c->start = (struct consensus_start){.term = raft_log_term(c->log),
                                        .vote = raft_log_vote(c->log),
                                        .snapshot = snap,
                                        .first = raft_log_first(c->log),
                                        .entries = p.v,
                                        .n = p.n};
    return 0;
}

void
core_begin(struct core *c, int64_t now_ms)
{
    int rc = consensus_begin(c->consensus, now_ms, &c->start);
    if (rc < 0) {
        log_error("core", "consensus cannot start from the log", "error", err_name(rc), NULL);
        log_fatal_exit();
    }
    mem_free(c->start_ctx);
}

int
core_open(const struct core_opts *o, struct core **ret, struct err *e)
{
    struct core *c = mem_new(NULL, struct core);
    c->o = *o;
    c->env = o->env;
    c->o.dir = mem_strdup(c, o->dir);
    c->o.addr = mem_strdup(c, o->addr);
    c->o.boot_id = mem_strdup(c, o->boot_id);
    c->entries_last = &c->entries;
    c->queue_last = &c->queue;
    c->timeout_ms = CONSENSUS_NEVER;
    c->began_used = SIZE_MAX / 2; /* the one before may be of any size */
    c->start_ctx = mem_ctx("core start");
    pthread_mutex_init(&c->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->wake, &attr);
    pthread_condattr_destroy(&attr);
    char *raft_dir = mem_printf(c, "%s/raft", o->dir);
    char *state_dir = mem_printf(c, "%s/state", o->dir);
    int rc = make_dirs(c->o.dir, raft_dir, state_dir, e);
    struct raft_log_opts lo = {
        .segment_bytes = o->segment_bytes, .on_durable = core_durable, .arg = c};
    if (rc == 0)
        rc = raft_log_open(raft_dir, &lo, &c->log, e);
    if (rc == 0)
        rc = load_id(c, raft_dir, e);
    if (rc == 0)
        rc = load(c, raft_dir, state_dir, e);
    if (rc < 0) {
        core_free(c);
        return rc;
    }
    c->consensus = consensus_new(c->id, c->o.addr, (uint32_t)env_random(c->env), core_update, c);
    *ret = c;
    return 0;
}

void
core_free(struct core *c)
{
    if (c == NULL)
        return;
    raft_log_close(c->log);
    consensus_free(c->consensus);
    state_close(c->state);
    mem_free(c->start_ctx);
    while (c->entries != NULL) {
        struct entry *en = c->entries;
        c->entries = en->next;
        mem_free(en);
    }
    while (c->queue != NULL) {
        struct item *it = c->queue;
        c->queue = it->next;
        mem_free(it);
    }
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->wake);
    mem_free(c);
}

/* --- local snapshots --- */

struct snapshot_job {
    struct core *c;
    struct state_txn *t;
    struct consensus_snapshot meta;
    int rc;
    struct err e;
};

static int
dump_source(void *src, snapshot_row_fn *row, void *arg)
{
    return state_dump(src, row, arg);
}

static void
snapshot_done(void *arg)
{
    struct snapshot_job *j = arg;
    struct core *c = j->c;
    core_join_snapshot(c);
    if (j->rc < 0) {
        log_warn("core", "could not write a snapshot; the log grows until the next try", "error",
                 j->e.text, NULL);
    } else {
        log_debug("core", "wrote a snapshot", "index", LOG_U64(j->meta.index), NULL);
        consensus_snapshot_taken(c->consensus, c->now_ms, &j->meta, 0);
        raft_log_compact(c->log, j->meta.index);
    }
    mem_free(j);
}

static void *
snapshot_main(void *arg)
{
    struct snapshot_job *j = arg;
    prctl(PR_SET_NAME, "snapshot");
    auto_mem void *tmp = mem_ctx("snapshot");
    char *dir = mem_printf(tmp, "%s/raft", j->c->o.dir);
    j->rc = snapshot_write(dir, &j->meta, dump_source, j->t, &j->e);
    state_read_end(TAKE(j->t));
    if (!core_post(j->c, snapshot_done, j))
        mem_free(j); /* shutting down; the file is there all the same */
    return NULL;
}

/* It is due before its time when the disk is nearly full and it would free some of it: segments of the
 * log, and the snapshot before it where the state has shrunk. Measured from the last try, failed or not. */
static bool
snapshot_makes_room(struct core *c)
{
    size_t used, spare;
    if (!c->disk_short || c->since_snapshot == 0)
        return false;
    uint64_t gain = raft_log_bytes(c->log) - c->began_bytes;
    state_file(c->state, &used, &spare);
    gain += used < c->began_used ? c->began_used - used : 0;
    return gain >= CORE_SHORT_GAIN;
}

void
core_maybe_snapshot(struct core *c)
{
    if (c->snapshotting || c->conf_index == 0 || c->stopping ||
        (c->since_snapshot < c->o.snapshot_entries &&
         c->bytes_since_snapshot < c->o.snapshot_bytes && !snapshot_makes_room(c)))
        return;
    c->since_snapshot = c->bytes_since_snapshot = 0;
    size_t spare;
    c->began_bytes = raft_log_bytes(c->log);
    state_file(c->state, &c->began_used, &spare);
    struct snapshot_job *j = mem_new(NULL, struct snapshot_job);
    j->c = c;
    j->meta = (struct consensus_snapshot){
        .index = c->applied, .term = c->applied_term, .conf_index = c->conf_index};
    consensus_conf_copy(j, &c->conf, &j->meta.conf);
    j->t = state_read_begin(c->state, j); /* here: the moment of `applied` */
    int rc = pthread_create(&c->snapshot_thread, NULL, snapshot_main, j);
    if (rc != 0) {
        log_warn("core", "cannot start the snapshot thread", "error", strerror(rc), NULL);
        state_read_end(j->t);
        mem_free(j);
        return;
    }
    c->job = j;
    c->snapshotting = true;
}

void
core_join_snapshot(struct core *c)
{
    if (!c->snapshotting)
        return;
    pthread_join(c->snapshot_thread, NULL);
    c->snapshotting = false;
    c->job = NULL;
}
