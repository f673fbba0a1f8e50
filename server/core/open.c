/* SPDX-License-Identifier: Apache-2.0
 *
 * The core: opening (log, snapshot, state; replay).
 *
 * The state is a cache of the log: kept after a crash of the process (same boot), rebuilt from the
 * snapshot after a crash of the machine. Whatever is kept must reach from the snapshot or the
 * applied index to the end of the log without a gap, or the server does not start.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"

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
            return err_set(
                e, -ERR_CORRUPT,
                "'%s' holds no server id: restore it, or remove '%s' and start again empty", path,
                dir);
        c->raft.id = id;
        return 0;
    }
    if (rc != -ENOENT)
        return err_errno(e, -rc, "read '%s'", path);
    c->raft.id = c->o.id;
    while (c->raft.id == 0)
        c->raft.id = env_random(c->env) >> 1;
    text = mem_printf(tmp, "%" PRIu64 "\n", c->raft.id);
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

/* --- loading --- */

static int
open_state(struct core *c, const char *state_dir, const struct consensus_snapshot *snap,
           struct err *e)
{
    bool fresh = false;
    int rc = state_open(state_dir, c->o.boot_id, c->o.state_max, &c->state, &fresh, e);
    if (rc < 0)
        return rc;
    void *tmp = mem_ctx("applied");
    struct state_txn *t = state_read_begin(c->state, tmp);
    c->apply.applied = state_logged(t);
    c->apply.applied_term = state_applied_term(t);
    state_read_end(t);
    mem_free(tmp);
    uint64_t base = snap != NULL ? snap->index : 0;
    if (c->apply.applied >= base && !fresh)
        return 0;
    if (snap == NULL) {
        state_clear(c->state);
        return 0;
    }
    rc = core_load(c, c->state, base, e);
    c->apply.applied = base;
    c->apply.applied_term = snap->term;
    return rc;
}

/* --- replay --- */

struct replayed {
    struct core *c;
    struct record *v;
    size_t n;
    size_t cap;
    uint64_t after; /* index of the snapshot */
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
    if (r->index > p->after && r->index <= c->apply.applied)
        c->apply.bytes_since_snapshot += r->n;
    if (p->n == p->cap) {
        p->cap = p->cap == 0 ? 1024 : p->cap * 2;
        mem_resize(c->raft.start_ctx, p->v, struct record, p->cap);
    }
    struct record *o = &p->v[p->n++];
    *o = *r;
    bool keep = r->type == RECORD_CONFIG || r->index > c->apply.applied;
    o->data = keep && r->n > 0 ? mem_dup(c->raft.start_ctx, r->data, r->n) : NULL;
    if (!keep)
        o->n = 0;
    return 0;
}

static void
take_entries(struct core *c, const struct replayed *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct record *r = &p->v[i];
        recent_term_add(c->raft.recent, r->index, r->term);
        if (r->type == RECORD_CONFIG && r->index <= c->apply.applied) {
            mem_free(c->apply.conf.v);
            if (consensus_conf_decode(c, r->data, r->n, &c->apply.conf) == 0)
                c->apply.conf_index = r->index;
        }
        if (r->index <= c->apply.applied)
            continue;
        struct entry *en = entry_new(r, NULL);
        fifo_add(&c->raft.tail, en);
        c->unapplied += en->n;
    }
}

static int
check_reach(struct core *c, const struct consensus_snapshot *snap, const char *dir, struct err *e)
{
    uint64_t first = raft_log_first(c->raft.log);
    uint64_t last = raft_log_last(c->raft.log);
    uint64_t known =
        snap != NULL && snap->index > c->apply.applied ? snap->index : c->apply.applied;
    if (last >= known && first <= c->apply.applied + 1)
        return 0;
    return err_set(e, -ERR_CORRUPT,
                   "the Raft log in '%s' holds entries %" PRIu64 " to %" PRIu64
                   ", but the state was applied up to %" PRIu64
                   ": part of it is missing. Restore the directory from a backup, or, when other "
                   "servers hold the data (or it may be lost), remove it and start again empty",
                   dir, first, last, known);
}

/* Writes the first configuration, of a server that founds a cluster. */
static int
open_bootstrap(struct core *c, const struct peer_list *conf, struct err *e)
{
    struct record r = {.index = 1, .term = 1, .type = RECORD_CONFIG};
    void *data = NULL;
    int rc = consensus_conf_encode(c->raft.start_ctx, conf, &data, &r.n);
    if (rc < 0)
        return err_set(e, rc, "the servers' addresses (ours is '%s') are invalid", c->o.addr);
    r.data = data;
    rc = raft_log_room(c->raft.log, 0, e);
    if (rc < 0)
        return rc;
    raft_log_set_hard(c->raft.log, 1, 0);
    raft_log_append(c->raft.log, &r);
    raft_log_sync(c->raft.log);
    return 0;
}

static size_t
open_members(const struct consensus_snapshot *snap, const struct replayed *p)
{
    auto_mem void *tmp = mem_ctx("members");
    struct peer_list conf = snap != NULL ? snap->conf : (struct peer_list){NULL, 0};
    for (size_t i = 0; i < p->n; i++)
        if (p->v[i].type == RECORD_CONFIG)
            (void)consensus_conf_decode(tmp, p->v[i].data, p->v[i].n, &conf);
    return conf.n;
}

/* The log, from which consensus starts, and what of it is not applied. */
static int
load_log(struct core *c, const char *raft_dir, const struct consensus_snapshot *snap, struct err *e)
{
    struct replayed p = {.c = c, .after = snap != NULL ? snap->index : 0};
    int rc = raft_log_replay(c->raft.log, 1, replay_record, &p, e);
    if (rc < 0)
        return rc;
    uint64_t term = p.n > 0 ? p.v[p.n - 1].term : 0;
    if (raft_log_term(c->raft.log) < term ||
        (snap != NULL && raft_log_term(c->raft.log) < snap->term))
        return err_set(
            e, -ERR_CORRUPT,
            "'%s/hard-state' (term and vote) is older than the log beside it; this server "
            "could vote twice. Restore the file, or remove the directory and let the "
            "server rejoin empty",
            raft_dir);
    if (snap != NULL) {
        consensus_conf_copy(c, &snap->conf, &c->apply.conf);
        c->apply.conf_index = snap->conf_index;
    }
    take_entries(c, &p);
    c->raft.alone = open_members(snap, &p) <= 1;
    c->raft.handed = c->apply.applied;
    c->raft.stored = raft_log_last(c->raft.log);
    c->raft.start = (struct consensus_start){.term = raft_log_term(c->raft.log),
                                             .vote = raft_log_vote(c->raft.log),
                                             .snapshot = snap,
                                             .first = raft_log_first(c->raft.log),
                                             .entries = p.v,
                                             .n = p.n};
    return 0;
}

static int
open_load(struct core *c, const char *raft_dir, const char *state_dir, struct err *e)
{
    struct consensus_snapshot *snap = mem_new(c->raft.start_ctx, struct consensus_snapshot);
    int rc = snapshot_find(raft_dir, c->raft.start_ctx, snap, e);
    if (rc < 0)
        return rc;
    if (rc == 0)
        snap = NULL;
    rc = open_state(c, state_dir, snap, e);
    if (rc < 0)
        return rc;
    bool empty = raft_log_last(c->raft.log) == 0 && snap == NULL && c->apply.applied == 0;
    c->raft.is_new = empty && c->o.expect > 1;
    struct peer self = {.id = c->raft.id, .addr = c->o.addr, .role = PEER_VOTER};
    if (empty && !c->raft.is_new)
        rc = open_bootstrap(c, &(struct peer_list){&self, 1}, e);
    else if (!empty)
        rc = check_reach(c, snap, raft_dir, e);
    if (rc == 0)
        rc = load_log(c, raft_dir, snap, e);
    if (rc < 0)
        return rc;
    apply_measure(c);
    c->apply.since_snapshot = c->apply.applied - (snap != NULL ? snap->index : 0);
    return 0;
}

bool
core_is_alone(const struct core *c)
{
    return c->raft.alone;
}

bool
core_is_new(const struct core *c)
{
    return c->raft.is_new;
}

int
core_found(struct core *c, const struct peer_list *conf, struct err *e)
{
    ASSERT(c->raft.is_new && !c->started[0]);
    int rc = open_bootstrap(c, conf, e);
    if (rc == 0)
        rc = load_log(c, c->o.dir, NULL, e);
    c->raft.is_new = rc < 0;
    return rc;
}

void
core_begin(struct core *c, int64_t now_ms)
{
    int rc = consensus_begin(c->raft.consensus, now_ms, &c->raft.start);
    if (rc < 0) {
        log_error("core", "consensus cannot start from the log", "error", err_name(rc), NULL);
        log_fatal_exit();
    }
    mem_free(c->raft.start_ctx);
    c->raft.alone = consensus_peers(c->raft.consensus)->n <= 1;
    core_publish(c);
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
    fifo_init(&c->raft.todo);
    fifo_init(&c->raft.tail);
    fifo_init(&c->apply.todo);
    fifo_init(&c->apply.calls);
    fifo_init(&c->raft_in.proposals);
    fifo_init(&c->raft_in.msgs);
    fifo_init(&c->apply_in.entries);
    fifo_init(&c->apply_in.calls);
    fifo_init(&c->apply_in.late);
    fifo_init(&c->reads.wanted);
    c->reads.fd = -1;
    c->raft.timeout_ms = CONSENSUS_NEVER;
    c->raft.recent = recent_new(c);
    c->apply.began_used = SIZE_MAX / 2; /* the one before may be of any size */
    c->raft.start_ctx = mem_ctx("core start");
    pthread_mutex_init(&c->raft_in.mutex, NULL);
    pthread_mutex_init(&c->reads.mutex, NULL);
    pthread_mutex_init(&c->apply_in.mutex, NULL);
    pthread_mutex_init(&c->status.mutex, NULL);
    pthread_mutex_init(&c->state_lock, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->raft_in.wake, &attr);
    pthread_cond_init(&c->apply_in.wake, &attr);
    pthread_cond_init(&c->reads.wake, &attr);
    pthread_condattr_destroy(&attr);
    char *raft_dir = mem_printf(c, "%s/raft", o->dir);
    char *state_dir = mem_printf(c, "%s/state", o->dir);
    int rc = make_dirs(c->o.dir, raft_dir, state_dir, e);
    struct raft_log_opts lo = {
        .segment_bytes = o->segment_bytes, .on_durable = core_durable, .arg = c};
    if (rc == 0)
        rc = raft_log_open(raft_dir, &lo, &c->raft.log, e);
    if (rc == 0)
        rc = load_id(c, raft_dir, e);
    if (rc == 0)
        rc = install_open(c, raft_dir, e);
    if (rc == 0)
        rc = open_load(c, raft_dir, state_dir, e);
    if (rc < 0) {
        core_free(c);
        return rc;
    }
    struct consensus_opts co = {.id = c->raft.id,
                                .addr = c->o.addr,
                                .seed = (uint32_t)env_random(c->env),
                                .busy = CONSENSUS_BUSY,
                                .quiet = CONSENSUS_QUIET,
                                .quiet_after_ms = CONSENSUS_QUIET_AFTER_MS};
    c->raft.consensus = consensus_new(&co, core_update, c);
    *ret = c;
    return 0;
}

void
core_free(struct core *c)
{
    if (c == NULL)
        return;
    raft_log_close(c->raft.log);
    consensus_free(c->raft.consensus);
    state_close(c->state);
    mem_free(c->raft.start_ctx);
    mem_free(c->raft_in.snapshot);
    mem_free(c->apply_in.install);
    entries_free(&c->raft.tail);
    entries_free(&c->apply.todo);
    core_msgs_free(&c->raft_in.msgs);
    feed_end(c);
    fd_close(&c->reads.fd);
    pthread_mutex_destroy(&c->status.mutex);
    pthread_mutex_destroy(&c->state_lock);
    pthread_mutex_destroy(&c->raft_in.mutex);
    pthread_cond_destroy(&c->raft_in.wake);
    pthread_mutex_destroy(&c->apply_in.mutex);
    pthread_cond_destroy(&c->apply_in.wake);
    pthread_mutex_destroy(&c->reads.mutex);
    pthread_cond_destroy(&c->reads.wake);
    mem_free(c);
}
