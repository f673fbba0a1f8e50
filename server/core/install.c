/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of a leader for a server that is further behind than the log that is kept: the file of
 * its newest snapshot, a piece at a time, each when the one before is taken. The receiver keeps it
 * beside its log (the reading thread does). Once the file is whole and good the raft half puts it
 * in place of the shorter log, and begins consensus as a start with a snapshot would; the apply
 * half loads the file into a second state, which takes the place of the first under its readers. A
 * process that ends in between does the rest at its next start.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/core/core_int.h"
#include "server/raft/snapshot.h"

enum { PIECE_BYTES = 1 << 20, GIVE_SILENT_MS = 10000 };
static const char incoming[] = "incoming", whole[] = "install";

/* --- the leader --- */

static void
ask_piece(struct core *c, struct feed *f, uint64_t offset)
{
    struct feed_read *x = mem_new(NULL, struct feed_read);
    x->what = FEED_PIECE;
    x->peer = f->id;
    x->addr = mem_strdup(x, f->addr);
    x->term = c->raft.term;
    x->piece = (struct wire_piece){.index = f->snapshot, .offset = offset};
    f->piece_ms = c->raft.now_ms;
    feed_ask(c, x);
}

/* Consensus says so again while it is under way. */
void
install_give(struct core *c, const struct peer_msg *m)
{
    struct feed *f = feed_of(c, m->peer);
    if (f == NULL && (f = feed_new(c, m->peer)) == NULL)
        return;
    if (f->piece_ms != 0 && c->raft.now_ms - f->piece_ms < GIVE_SILENT_MS)
        return;
    if (f->addr == NULL)
        f->addr = mem_strdup(c, m->addr);
    f->snapshot = 0;
    ask_piece(c, f, 0);
}

static void
piece_read(struct core *c, const struct feed_read *x)
{
    struct feed *f = feed_of(c, x->peer);
    struct wire w = {.kind = WIRE_PIECE, .piece = x->piece};
    if (f == NULL || f->piece_ms == 0 || c->raft.role != CONSENSUS_LEADER ||
        x->term != c->raft.term)
        return;
    if (x->piece.size == 0) { /* it is gone: from the beginning, when consensus asks again */
        f->piece_ms = 0;
        return;
    }
    if (x->piece.offset == 0)
        log_info("core",
                 "a server is further behind than the log that is kept, and is sent the state",
                 "server", x->addr, "index", LOG_U64(x->piece.index), "bytes",
                 LOG_U64(x->piece.size), NULL);
    f->snapshot = x->piece.index;
    (void)core_send_wire(c, x->peer, x->addr, &w);
}

static void
piece_taken(struct core *c, const struct core_msg *x)
{
    struct feed *f = feed_of(c, x->m.peer);
    if (f == NULL || f->piece_ms == 0 || f->snapshot != x->piece.index)
        return;
    if (x->piece.offset < x->piece.size)
        ask_piece(c, f, x->piece.offset);
    else
        f->piece_ms = 0;
}

/* --- in place of the log --- */

/* The log holds the snapshot's last entry, or a snapshot of our own does. Another entry at this
 * index was never committed, nor was what is behind. */
static bool
is_here(struct core *c, const struct consensus_snapshot *meta)
{
    auto_mem void *tmp = mem_ctx("here");
    struct record r = {.index = meta->index, .term = meta->term};
    struct raft_log *l = c->raft.log;

    return raft_log_first(l) > meta->index + 1 ||
           (raft_log_last(l) > meta->index && raft_log_read(l, tmp, &r, 1, SIZE_MAX) == 1);
}

/* The log goes first: without it, and with the copy still there, this is done again by the next
 * start. 1: done; 0: the copy was not needed. */
static int
take_place(struct core *c, const struct consensus_snapshot *meta, struct err *e)
{
    auto_mem void *tmp = mem_ctx("install");
    char *dir = mem_printf(tmp, "%s/raft", c->o.dir), *path = mem_printf(tmp, "%s/%s", dir, whole);
    if (is_here(c, meta) || meta->term > raft_log_term(c->raft.log)) {
        log_warn("core", "the state that a leader sent is not needed: it is dropped", NULL);
        (void)unlink(path);
        return 0;
    }
    raft_log_reset(c->raft.log, meta->index);
    int rc = snapshot_adopt(dir, whole, meta->index);
    if (rc < 0)
        return err_set(e, rc, "take the state that a leader sent, '%s': %s", path, err_name(rc));
    log_info("core", "took the state that a leader sent", "index", LOG_U64(meta->index), NULL);
    return 1;
}

int
install_open(struct core *c, const char *raft_dir, struct err *e)
{
    auto_mem void *tmp = mem_ctx("install");
    struct consensus_snapshot meta;
    struct err why = ERR_INIT;
    char *path = mem_printf(tmp, "%s/%s", raft_dir, whole);
    (void)unlink(mem_printf(tmp, "%s/%s", raft_dir, incoming));
    if (access(path, F_OK) != 0)
        return 0;
    if (snapshot_check(raft_dir, whole, tmp, &meta, &why) == 0)
        return take_place(c, &meta, e) < 0 ? e->code : 0;
    log_warn("core", "the state that a leader sent is damaged: it is dropped", "error", why.text,
             NULL);
    (void)unlink(path);
    return 0;
}

/* Takes `s`. Whatever is not committed, or not applied, is in that state, or will never be. */
static void
install_log(struct core *c, struct consensus_snapshot *s)
{
    struct raft_half *r = &c->raft;
    struct consensus_status st;
    struct err e = ERR_INIT;
    consensus_status(r->consensus, &st);
    if (st.role == CONSENSUS_LEADER || s->index <= st.commit) {
        mem_free(s); /* a start that finds the copy drops it as well */
        return;
    }
    int rc = take_place(c, s, &e);
    if (rc < 0)
        core_begin_again(c, &e);
    if (rc <= 0) {
        mem_free(s);
        return;
    }
    entries_drop(c, &r->tail);
    recent_cut(r->recent, 0);
    pthread_mutex_lock(&c->raft_in.mutex);
    c->raft_in.durable_news = false; /* of entries that are gone */
    pthread_mutex_unlock(&c->raft_in.mutex);
    r->commit = r->stored = r->handed = r->installed = s->index;
    r->conf_new = true;
    struct consensus_start start = {.term = raft_log_term(r->log),
                                    .vote = raft_log_vote(r->log),
                                    .snapshot = s,
                                    .first = s->index + 1};
    ASSERT(consensus_again(r->consensus, r->now_ms, &start) == 0);
    r->alone = consensus_peers(r->consensus)->n <= 1;
    core_hand_install(c, s);
}

/* --- the server that is behind --- */

void
install_piece(struct core *c, const struct core_msg *x)
{
    struct raft_half *r = &c->raft;
    struct consensus_status st;
    if (x->piece.n == 0) {
        piece_taken(c, x);
        return;
    }
    consensus_status(r->consensus, &st);
    if (st.role == CONSENSUS_LEADER || (st.leader != 0 && st.leader != x->m.peer) ||
        x->piece.index <= st.commit) /* the log may be longer: by what no majority has */
        return;
    struct feed_read *k = mem_new(NULL, struct feed_read);
    k->what = FEED_KEEP;
    k->peer = x->m.peer;
    k->addr = mem_strdup(k, x->m.addr);
    k->term = raft_log_term(r->log);
    k->piece = x->piece;
    k->piece.data = mem_dup(k, x->piece.data, x->piece.n);
    feed_ask(c, k);
}

static void
piece_kept(struct core *c, struct feed_read *x)
{
    struct wire w = {
        .kind = WIRE_PIECE_TAKEN,
        .piece = {.index = x->piece.index, .size = x->piece.size, .offset = x->piece.offset}};
    (void)core_send_wire(c, x->peer, x->addr, &w);
    if (x->whole != NULL)
        install_log(c, talloc_steal(NULL, TAKE(x->whole)));
}

void
install_done(struct core *c, struct feed_read *x)
{
    if (x->what == FEED_PIECE)
        piece_read(c, x);
    else if (x->piece.size != 0)
        piece_kept(c, x);
}

/* --- the thread that reads --- */

static void
read_piece(const char *dir, struct feed_read *x)
{
    struct wire_piece *p = &x->piece;
    auto_fd int fd = snapshot_open(dir, &p->index, &p->size);
    if (fd < 0 || p->offset >= p->size) {
        p->size = 0;
        return;
    }
    p->n = p->size - p->offset < PIECE_BYTES ? (size_t)(p->size - p->offset) : PIECE_BYTES;
    uint8_t *data = mem_array(x, uint8_t, p->n);
    if (pread(fd, data, p->n, (off_t)p->offset) != (ssize_t)p->n)
        p->size = 0;
    p->data = data;
}

/* The copy is good, and of a term that this server has seen, or its vote could be older than its
 * log. */
static struct consensus_snapshot *
install_finish(struct core *c, const char *dir, struct feed_read *x)
{
    __typeof__(c->reads) *k = &c->reads;
    auto_mem void *tmp = mem_ctx("install");
    struct consensus_snapshot *meta = mem_new(x, struct consensus_snapshot);
    struct err e = ERR_INIT;
    bool ok = fsync(k->fd) == 0;
    fd_close(&k->fd);
    if (ok && snapshot_check(dir, incoming, meta, meta, &e) == 0 &&
        meta->index == x->piece.index && meta->term <= x->term) {
        char *from = mem_printf(tmp, "%s/%s", dir, incoming),
             *to = mem_printf(tmp, "%s/%s", dir, whole);
        auto_fd int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (rename(from, to) == 0 && dirfd >= 0 && dir_fsync(dirfd) == 0)
            return meta;
        (void)err_errno(&e, errno, "rename '%s'", from);
    }
    log_warn("core", "the state that a leader sent cannot be used", "error", e.text, NULL);
    mem_free(meta);
    return NULL;
}

static void
keep_piece(struct core *c, const char *dir, struct feed_read *x)
{
    __typeof__(c->reads) *k = &c->reads;
    struct wire_piece *p = &x->piece;
    auto_mem void *tmp = mem_ctx("install");
    char *path = mem_printf(tmp, "%s/%s", dir, incoming);
    struct err e = ERR_INIT;
    if (p->offset == 0) {
        fd_close(&k->fd);
        k->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        k->index = p->index;
        k->size = p->size;
        k->at = 0;
    }
    int rc = k->fd >= 0 || p->offset > 0 ? 0 : -errno;
    bool begun = k->fd >= 0 && p->index == k->index && p->size == k->size;
    if (rc == 0 && begun && p->offset == k->at) {
        rc = raft_log_room(c->raft.log, 0, &e); /* the log needs the rest of the disk */
        if (rc == 0)
            rc = fd_write_full(k->fd, p->data, p->n);
        k->at += rc == 0 ? p->n : 0;
        x->whole = rc == 0 && k->at == k->size ? install_finish(c, dir, x) : NULL;
    }
    if (rc < 0) {
        log_warn("core", "the state that a leader sends cannot be kept", "error",
                 e.code != 0 ? e.text : err_name(rc), NULL);
        fd_close(&k->fd);
        (void)unlink(path);
    }
    bool useless = begun && k->at == k->size && x->whole == NULL;
    p->offset = begun ? k->at : 0; /* of another one the beginning is missing */
    p->size = rc < 0 || useless ? 0 : p->size; /* 0: nothing is said */
}

void
install_read(struct core *c, struct feed_read *x)
{
    auto_mem void *tmp = mem_ctx("install");
    char *dir = mem_printf(tmp, "%s/raft", c->o.dir);
    if (x->what == FEED_PIECE)
        read_piece(dir, x);
    else
        keep_piece(c, dir, x);
}
