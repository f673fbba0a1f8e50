/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable Raft log: see log.h.
 */
#include "server/raft/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/limits.h"

enum { ROOM_BYTES = 64 << 20 };
enum { SEGMENT_BYTES = 8 << 20, HARD_SLOT = 512 };

struct segment {
    uint64_t seq;   /* names the file; without gaps */
    uint64_t first; /* next index at its start */
    size_t size;    /* of the file */
};

struct raft_log {
    int dirfd;
    char *dir;
    size_t segment_bytes;
    struct raft_log_opts opts;
    uint64_t first;
    uint64_t last;
    uint64_t bytes;
    /* hard state */
    uint64_t term;
    uint64_t vote;
    uint64_t hard_seq;
    int hard_fd;
    /* segments, oldest first; the last one is written to by the writer */
    struct segment *segs;
    size_t n_segs;
    int fd;
    uint64_t next_seq;
    uint64_t written; /* last index in the segments (writer) */
    size_t off; /* end of what was written to the last segment */
    /* shared with the writer */
    pthread_mutex_t mutex;
    pthread_cond_t wake;  /* there is work, or stop */
    pthread_cond_t idle;  /* the writer has nothing to do */
    pthread_t thread;
    bool running;
    bool stop;
    bool busy;
    struct buf queue;        /* records, not sealed */
    uint64_t queue_last;     /* index to report once the queue is durable */
    uint64_t flight_last;    /* the same for the write under way */
    uint64_t compact_to;     /* asked for; 0: nothing */
};

static _Noreturn void
disk_fatal(struct raft_log *l, const char *what, int errnum)
{
    log_error("raft", "the disk failed under the Raft log; nothing more can be acknowledged", "dir",
              l->dir, "at", what, "error", strerror(errnum), NULL);
    abort();
}

static void
segment_name(char out[40], uint64_t seq)
{
    snprintf(out, 40, "log-%020" PRIu64, seq);
}

/* --- term and vote --- */

static void
hard_encode(uint8_t out[HARD_SLOT], uint64_t seq, uint64_t term, uint64_t vote)
{
    struct buf b = BUF_INIT(64);
    buf_puts(&b, "PDKHARD1");
    buf_put_u64(&b, seq);
    buf_put_u64(&b, term);
    buf_put_u64(&b, vote);
    buf_put_u32(&b, crc32c(0, b.data, b.len));
    memset(out, 0, HARD_SLOT);
    memcpy(out, b.data, b.len);
    buf_done(&b);
}

static bool
hard_decode(const uint8_t in[HARD_SLOT], uint64_t *seq, uint64_t *term, uint64_t *vote)
{
    uint64_t v[3];
    uint8_t check[HARD_SLOT];
    for (size_t i = 0; i < 3; i++) {
        v[i] = 0;
        for (size_t j = 0; j < 8; j++)
            v[i] = v[i] << 8 | in[8 + i * 8 + j];
    }
    hard_encode(check, v[0], v[1], v[2]);
    if (memcmp(check, in, HARD_SLOT) != 0)
        return false;
    *seq = v[0];
    *term = v[1];
    *vote = v[2];
    return true;
}

static int
hard_open(struct raft_log *l, struct err *e)
{
    l->hard_fd = openat(l->dirfd, "hard-state", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (l->hard_fd < 0)
        return err_errno(e, errno, "open '%s/hard-state'", l->dir);
    uint8_t b[2 * HARD_SLOT] = {0};
    ssize_t n = fd_read_full(l->hard_fd, b, sizeof(b));
    if (n < 0)
        return err_errno(e, (int)-n, "read '%s/hard-state'", l->dir);
    int rc = n == 0 ? dir_fsync(l->dirfd) : 0; /* so that it cannot vanish later */
    if (rc < 0)
        return err_errno(e, -rc, "sync '%s'", l->dir);
    bool any = false;
    for (size_t i = 0; i < 2; i++) {
        uint64_t seq, term, vote;
        if (hard_decode(b + i * HARD_SLOT, &seq, &term, &vote) && seq >= l->hard_seq) {
            l->hard_seq = seq;
            l->term = term;
            l->vote = vote;
            any = true;
        }
    }
    if (n > 0 && !any)
        return err_set(e, -ERR_CORRUPT,
                       "'%s/hard-state' (term and vote) is damaged; this server could vote twice. "
                       "Restore the file, or remove '%s' and let the server rejoin empty",
                       l->dir, l->dir);
    return 0;
}

void
raft_log_set_hard(struct raft_log *l, uint64_t term, uint64_t vote)
{
    if (term == l->term && vote == l->vote)
        return;
    l->hard_seq++;
    l->term = term;
    l->vote = vote;
    uint8_t b[HARD_SLOT];
    hard_encode(b, l->hard_seq, term, vote);
    int rc = fd_pwrite_full(l->hard_fd, b, sizeof(b), (off_t)(l->hard_seq % 2) * HARD_SLOT);
    if (rc < 0)
        disk_fatal(l, "write term and vote", -rc);
    if (fdatasync(l->hard_fd) != 0)
        disk_fatal(l, "sync term and vote", errno);
}

/* --- segments --- */

/* A new segment; `first` is the next index at its start; the writer's thread, or at open. */
static void
segment_create(struct raft_log *l, uint64_t first, size_t need)
{
    char name[40];
    uint64_t seq = l->next_seq++;
    segment_name(name, seq);
    fd_close(&l->fd);
    l->fd = openat(l->dirfd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (l->fd < 0)
        disk_fatal(l, "make a segment", errno);
    size_t size = l->segment_bytes;
    if (size < need + SEGMENT_HEAD)
        size = need + SEGMENT_HEAD;
    int rc = posix_fallocate(l->fd, 0, (off_t)size);
    if (rc != 0)
        disk_fatal(l, "reserve a segment", rc);
    uint8_t head[SEGMENT_HEAD];
    segment_head(head, seq, first);
    rc = fd_pwrite_full(l->fd, head, sizeof(head), 0);
    if (rc < 0)
        disk_fatal(l, "write a segment head", -rc);
    if (fsync(l->fd) != 0)
        disk_fatal(l, "sync a new segment", errno);
    rc = dir_fsync(l->dirfd);
    if (rc < 0)
        disk_fatal(l, "sync the directory", -rc);
    pthread_mutex_lock(&l->mutex);
    mem_resize(l, l->segs, struct segment, l->n_segs + 1);
    l->segs[l->n_segs++] = (struct segment){seq, first, size};
    pthread_mutex_unlock(&l->mutex);
    l->off = SEGMENT_HEAD;
}

static int
segment_cmp(const void *a, const void *b)
{
    uint64_t x = ((const struct segment *)a)->seq;
    uint64_t y = ((const struct segment *)b)->seq;
    return x < y ? -1 : x > y;
}

static int
segments_list(struct raft_log *l, struct err *e)
{
    int fd = fcntl(l->dirfd, F_DUPFD_CLOEXEC, 0);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d == NULL)
        return err_errno(e, errno, "list '%s'", l->dir);
    rewinddir(d);
    struct dirent *ent;
    while ((ent = readdir(d)) != NULL) {
        uint64_t seq;
        if (!str_prefix(ent->d_name, "log-") || strlen(ent->d_name) != 24)
            continue;
        const char *digits = ent->d_name + 4;
        while (digits[0] == '0' && digits[1] != '\0')
            digits++;
        if (num_parse_u64(digits, &seq) < 0)
            continue;
        mem_resize(l, l->segs, struct segment, l->n_segs + 1);
        l->segs[l->n_segs++] = (struct segment){seq, 0, 0};
    }
    closedir(d);
    if (l->n_segs > 0)
        qsort(l->segs, l->n_segs, sizeof(*l->segs), segment_cmp);
    return 0;
}

struct replay {
    uint64_t next; /* index expected */
    uint64_t from;
    segment_fn *fn;
    void *arg;
    struct err *e;
};

static int
replay_order(void *arg, const struct record *r)
{
    struct replay *p = arg;
    if (r->type == RECORD_TRUNCATE) {
        if (r->index > p->next || r->index == 0)
            return err_set(p->e, -ERR_CORRUPT, "a truncation at %" PRIu64 " lies behind the log",
                           r->index);
        p->next = r->index;
    } else {
        if (r->index != p->next)
            return err_set(p->e, -ERR_CORRUPT, "entry %" PRIu64 " follows where %" PRIu64 " is due",
                           r->index, p->next);
        p->next++;
    }
    return p->fn != NULL ? p->fn(p->arg, r) : 0;
}

/* Maps and scans segment i. */
static int
segment_read(struct raft_log *l, size_t i, struct replay *p, struct segment_end *end)
{
    char name[40];
    segment_name(name, l->segs[i].seq);
    auto_fd int fd = openat(l->dirfd, name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return err_errno(p->e, errno, "open '%s/%s'", l->dir, name);
    if (st.st_size > SEGMENT_BYTES_MAX)
        return err_set(p->e, -ERR_CORRUPT, "'%s/%s' is larger than any segment", l->dir, name);
    l->segs[i].size = (size_t)st.st_size;
    if (st.st_size == 0) {
        *end = (struct segment_end){.headless = true};
        return 0;
    }
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return err_errno(p->e, errno, "map '%s/%s'", l->dir, name);
    int rc = segment_scan(map, (size_t)st.st_size, NULL, NULL, end, p->e);
    if (rc == 0 && !end->headless && end->seq != l->segs[i].seq)
        rc = err_set(p->e, -ERR_CORRUPT, "its head names another place in the log");
    if (rc == 0 && !end->headless && p->next == 0)
        p->next = end->first;
    if (rc == 0 && !end->headless && end->first != p->next)
        rc = err_set(p->e, -ERR_CORRUPT,
                     "it starts at entry %" PRIu64 ", but entry %" PRIu64 " is due", end->first,
                     p->next);
    if (rc == 0)
        rc = segment_scan(map, (size_t)st.st_size, replay_order, p, end, p->e);
    l->segs[i].first = end->first;
    munmap(map, (size_t)st.st_size);
    if (rc < 0)
        return err_prefix(p->e, "'%s/%s'", l->dir, name);
    return 0;
}

/* What an operator can do about a damaged log. */
static int
refuse(struct raft_log *l, struct err *e)
{
    char cause[ERR_TEXT_MAX];
    str_copy(cause, sizeof(cause), e->text);
    int code = e->code;
    err_clear(e);
    return err_set(e, code,
                   "the Raft log is corrupt and the server does not start with a shortened one: %s. "
                   "Restore '%s' from a backup, or, when other servers hold the data (or it may be "
                   "lost), remove that directory and start again empty",
                   cause, l->dir);
}

/* Makes the last segment ready to be appended to. */
static int
resume_last(struct raft_log *l, const struct segment_end *end, struct err *e)
{
    char name[40];
    struct segment *s = &l->segs[l->n_segs - 1];
    segment_name(name, s->seq);
    if (end->headless) {
        if (unlinkat(l->dirfd, name, 0) != 0)
            return err_errno(e, errno, "remove the unfinished segment '%s/%s'", l->dir, name);
        l->n_segs--;
        return 0; /* a new one is made with the next write */
    }
    l->fd = openat(l->dirfd, name, O_RDWR | O_CLOEXEC);
    if (l->fd < 0)
        return err_errno(e, errno, "open '%s/%s'", l->dir, name);
    l->off = end->end;
    if (!end->torn)
        return 0;
    log_warn("raft", "cut a torn write off the end of the log; it was never acknowledged", "file",
             name, "offset", LOG_U64(end->end), NULL);
    if (ftruncate(l->fd, (off_t)end->end) != 0)
        return err_errno(e, errno, "cut '%s/%s'", l->dir, name);
    int rc = posix_fallocate(l->fd, 0, (off_t)s->size);
    if (rc != 0 || fsync(l->fd) != 0)
        return err_errno(e, rc != 0 ? rc : errno, "restore '%s/%s'", l->dir, name);
    return 0;
}

int
raft_log_replay(struct raft_log *l, uint64_t from, segment_fn *fn, void *arg, struct err *e)
{
    struct replay p = {.next = l->first, .from = from, .fn = fn, .arg = arg, .e = e};
    for (size_t i = 0; i < l->n_segs; i++) {
        /* Whole segments before `from` need not be read. */
        if (from > l->first && i + 1 < l->n_segs && l->segs[i + 1].first <= from) {
            p.next = l->segs[i + 1].first;
            continue;
        }
        struct segment_end end;
        int rc = segment_read(l, i, &p, &end);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int
scan_all(struct raft_log *l, struct err *e)
{
    struct replay p = {.e = e};
    struct segment_end end = {.headless = true};
    for (size_t i = 0; i < l->n_segs; i++) {
        uint64_t seq = l->segs[i].seq;
        l->next_seq = seq + 1;
        if (i > 0 && (end.torn || end.headless)) {
            err_set(e, -ERR_CORRUPT, "'%s/log-%020" PRIu64 "' ends in damage, but later segments exist",
                    l->dir, seq - 1);
            return refuse(l, e);
        }
        if (i > 0 && seq != l->segs[i - 1].seq + 1) {
            err_set(e, -ERR_CORRUPT, "'%s/log-%020" PRIu64 "' is missing", l->dir,
                    l->segs[i - 1].seq + 1);
            return refuse(l, e);
        }
        int rc = segment_read(l, i, &p, &end);
        if (rc == -ERR_CORRUPT)
            return refuse(l, e);
        if (rc < 0)
            return rc;
    }
    l->first = l->n_segs > 0 ? l->segs[0].first : 1;
    l->last = p.next > 0 ? p.next - 1 : 0;
    if (l->first == 0)
        l->first = 1;
    return l->n_segs > 0 ? resume_last(l, &end, e) : 0;
}

/* --- the writer --- */

static void
write_range(struct raft_log *l, const uint8_t *p, size_t n)
{
    int rc = fd_pwrite_full(l->fd, p, n, (off_t)l->off);
    if (rc < 0)
        disk_fatal(l, "write", -rc);
    if (fdatasync(l->fd) != 0)
        disk_fatal(l, "sync", errno);
    l->off += n;
}

static uint64_t
record_index(const uint8_t *p)
{
    uint64_t v = 0;
    for (size_t i = 8; i < 16; i++)
        v = v << 8 | p[i];
    return v;
}

static size_t
record_len(const uint8_t *p)
{
    return record_size((size_t)p[4] << 24 | (size_t)p[5] << 16 | (size_t)p[6] << 8 | p[7]);
}

/* Seals and writes a queue of records; a new segment where one does not fit. */
static void
write_queue(struct raft_log *l, struct buf *q)
{
    size_t at = 0;
    while (at < q->len) {
        size_t room = l->fd >= 0 ? l->segs[l->n_segs - 1].size - l->off : 0;
        size_t end = at;
        while (end < q->len && end - at + record_len(q->data + end) <= room) {
            uint64_t index = record_index(q->data + end);
            l->written = q->data[end + 24] == RECORD_TRUNCATE ? index - 1 : index;
            end = record_seal(q->data, end, (uint32_t)l->off);
        }
        if (end > at)
            write_range(l, q->data + at, end - at);
        at = end;
        if (at < q->len)
            segment_create(l, l->written + 1, record_len(q->data + at));
    }
}

static void
remove_old(struct raft_log *l, uint64_t index)
{
    pthread_mutex_lock(&l->mutex);
    size_t n = 0;
    while (n + 1 < l->n_segs && l->segs[n + 1].first <= index + 1)
        n++;
    struct segment *old = mem_dup(NULL, l->segs, (n + 1) * sizeof(*old));
    memmove(l->segs, l->segs + n, (l->n_segs - n) * sizeof(*l->segs));
    l->n_segs -= n;
    pthread_mutex_unlock(&l->mutex);
    for (size_t i = 0; i < n; i++) {
        char name[40];
        segment_name(name, old[i].seq);
        if (unlinkat(l->dirfd, name, 0) != 0 && errno != ENOENT)
            log_warn("raft", "cannot remove an old segment", "file", name, "error",
                     strerror(errno), NULL);
    }
    mem_free(old);
}

static void *
writer_main(void *arg)
{
    struct raft_log *l = arg;
    prctl(PR_SET_NAME, "raft-log");
    struct buf mine = BUF_INIT(LOG_QUEUE_MAX);
    pthread_mutex_lock(&l->mutex);
    for (;;) {
        while (l->queue.len == 0 && l->compact_to == 0 && !l->stop)
            pthread_cond_wait(&l->wake, &l->mutex);
        if (l->queue.len == 0 && l->compact_to == 0)
            break;
        struct buf t = l->queue;
        l->queue = mine;
        mine = t;
        uint64_t compact = l->compact_to;
        l->compact_to = 0;
        l->flight_last = l->queue_last;
        l->busy = true;
        pthread_mutex_unlock(&l->mutex);
        bool wrote = mine.len > 0;
        if (wrote)
            write_queue(l, &mine);
        buf_reset(&mine);
        if (compact != 0)
            remove_old(l, compact);
        pthread_mutex_lock(&l->mutex);
        /* With the lock held: a truncation comes before the report or sees it. */
        if (wrote && l->flight_last > 0)
            l->opts.on_durable(l->opts.arg, l->flight_last);
        l->busy = false;
        if (l->queue.len == 0)
            pthread_cond_broadcast(&l->idle);
    }
    pthread_mutex_unlock(&l->mutex);
    buf_done(&mine);
    return NULL;
}

/* --- the owner's side --- */

static void
log_free(struct raft_log *l)
{
    fd_close(&l->fd);
    fd_close(&l->hard_fd);
    fd_close(&l->dirfd);
    buf_done(&l->queue);
    pthread_mutex_destroy(&l->mutex);
    pthread_cond_destroy(&l->wake);
    pthread_cond_destroy(&l->idle);
    mem_free(l);
}

int
raft_log_open(const char *dir, const struct raft_log_opts *opts, struct raft_log **ret,
              struct err *e)
{
    struct raft_log *l = mem_new(NULL, struct raft_log);
    l->dirfd = l->fd = l->hard_fd = -1;
    l->dir = mem_strdup(l, dir);
    l->opts = *opts;
    l->segment_bytes = opts->segment_bytes != 0 ? opts->segment_bytes : SEGMENT_BYTES;
    buf_init(&l->queue, LOG_QUEUE_MAX);
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->wake, NULL);
    pthread_cond_init(&l->idle, NULL);
    int rc = 0;
    l->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->dirfd < 0)
        rc = err_errno(e, errno, "open the Raft log directory '%s'", dir);
    else if (flock(l->dirfd, LOCK_EX | LOCK_NB) != 0)
        rc = err_set(e, -ERR_CONFLICT, "the Raft log '%s' is in use by another process", dir);
    if (rc == 0)
        rc = hard_open(l, e);
    if (rc == 0)
        rc = segments_list(l, e);
    if (rc == 0)
        rc = scan_all(l, e);
    if (rc == 0 && l->n_segs == 0)
        l->first = l->last + 1;
    l->written = l->last;
    if (rc == 0) {
        rc = -pthread_create(&l->thread, NULL, writer_main, l);
        if (rc < 0)
            err_errno(e, -rc, "start the log writer");
    }
    if (rc < 0) {
        log_free(l);
        return rc;
    }
    l->running = true;
    *ret = l;
    return 0;
}

void
raft_log_close(struct raft_log *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->mutex);
    l->stop = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->mutex);
    pthread_join(l->thread, NULL);
    log_free(l);
}

uint64_t
raft_log_first(const struct raft_log *l)
{
    return l->first;
}

uint64_t
raft_log_last(const struct raft_log *l)
{
    return l->last;
}

uint64_t
raft_log_term(const struct raft_log *l)
{
    return l->term;
}

uint64_t
raft_log_vote(const struct raft_log *l)
{
    return l->vote;
}

uint64_t
raft_log_bytes(const struct raft_log *l)
{
    return l->bytes;
}

bool
raft_log_has_room(const struct raft_log *l)
{
    struct statvfs v;
    if (fstatvfs(l->dirfd, &v) != 0)
        return true;
    uint64_t need = 2 * (uint64_t)l->segment_bytes + ROOM_BYTES;
    return (uint64_t)v.f_bavail * v.f_frsize >= need;
}

static void
queue_put(struct raft_log *l, const struct record *r)
{
    record_put(&l->queue, r);
    if (buf_error(&l->queue) != 0)
        disk_fatal(l, "queue (the disk is too slow or memory is out)", ENOMEM);
}

void
raft_log_append(struct raft_log *l, const struct record *r)
{
    ASSERT(r->index == l->last + 1);
    pthread_mutex_lock(&l->mutex);
    queue_put(l, r);
    l->queue_last = r->index;
    pthread_mutex_unlock(&l->mutex);
    l->last = r->index;
    l->bytes += record_size(r->n);
}

void
raft_log_flush(struct raft_log *l)
{
    pthread_mutex_lock(&l->mutex);
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->mutex);
}

void
raft_log_truncate(struct raft_log *l, uint64_t index)
{
    ASSERT(index >= l->first && index <= l->last + 1);
    struct record r = {.index = index, .type = RECORD_TRUNCATE};
    pthread_mutex_lock(&l->mutex);
    queue_put(l, &r);
    /* What is reported durable from now on must still hold. */
    if (l->queue_last >= index)
        l->queue_last = index - 1;
    if (l->flight_last >= index)
        l->flight_last = index - 1;
    pthread_mutex_unlock(&l->mutex);
    l->last = index - 1;
}

void
raft_log_sync(struct raft_log *l)
{
    pthread_mutex_lock(&l->mutex);
    pthread_cond_signal(&l->wake);
    while (l->busy || l->queue.len > 0)
        pthread_cond_wait(&l->idle, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
}

void
raft_log_reset(struct raft_log *l, uint64_t index)
{
    raft_log_sync(l);
    uint64_t keep = index + 1;
    for (size_t i = 0; i < l->n_segs; i++) {
        char name[40];
        segment_name(name, l->segs[i].seq);
        if (unlinkat(l->dirfd, name, 0) != 0 && errno != ENOENT)
            disk_fatal(l, "remove a segment", errno);
    }
    l->n_segs = 0;
    l->queue_last = l->flight_last = 0;
    fd_close(&l->fd);
    l->written = index;
    segment_create(l, keep, 0);
    l->first = keep;
    l->last = index;
}

void
raft_log_compact(struct raft_log *l, uint64_t index)
{
    pthread_mutex_lock(&l->mutex);
    size_t n = 0;
    while (n + 1 < l->n_segs && l->segs[n + 1].first <= index + 1)
        n++;
    if (n > 0) {
        l->first = l->segs[n].first;
        l->compact_to = index;
        pthread_cond_signal(&l->wake);
    }
    pthread_mutex_unlock(&l->mutex);
}
