/* SPDX-License-Identifier: Apache-2.0
 *
 * The durable Raft log: see log.h. In this order: what a failure of the disk means; segments (made,
 * replayed at open, a torn tail erased); the writer thread; and the owner's side, which appends,
 * truncates and compacts.
 *
 * The lock is held for moments and never during a write: the writer swaps the queue for an empty
 * one. Nothing of a segment counts before its head is durable, and on_durable() is told with the
 * lock held, so that a truncation comes before the report or sees it.
 */
#include "server/raft/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/limits.h"
#include "server/raft/hard.h"
#include "server/raft/log_int.h"

enum {
    SEGMENT_BYTES = 8 << 20,
    ZERO_CHUNK = 64 << 10,
    RETRY_MS = 100 /* while the disk is full */
};

static const char SPARE[] = "spare";

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
    struct hard hard;
    /* segments, oldest first; the last one is written to by the writer */
    struct segment *segs;
    size_t n_segs;
    int fd;
    uint64_t next_seq;
    uint64_t written; /* last index in the segments (writer) */
    bool short_of;    /* space: told once (writer) */
    atomic_bool spare; /* a segment in reserve, under that name */
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
    log_error("raft",
              "the disk failed under the Raft log: nothing more can be acknowledged, leaving",
              "dir", l->dir, "at", what, "error", strerror(errnum), NULL);
    log_fatal_exit();
}

/* The writer's: segments that hold nothing but entries <= index. */
static void
remove_old(struct raft_log *l, uint64_t index)
{
    pthread_mutex_lock(&l->mutex);
    size_t n = 0;
    ASSERT(l->n_segs > 0);
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

/* The writer's: nothing of this write was acknowledged, so the writer can wait until there is space
 * (or fds) again. False when the log is to be closed. */
static bool
wait_for_space(struct raft_log *l, const char *what, int errnum)
{
    if (!l->short_of)
        log_error("raft",
                  "the Raft log waits for space; writes wait with it, and new ones are refused",
                  "dir", l->dir, "at", what, "error", strerror(errnum), NULL);
    l->short_of = true;
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += RETRY_MS * NS_PER_MS;
    ts.tv_sec += ts.tv_nsec / NS_PER_S;
    ts.tv_nsec %= NS_PER_S;
    pthread_mutex_lock(&l->mutex);
    int rc = 0;
    while (!l->stop && rc == 0)
        rc = pthread_cond_timedwait(&l->wake, &l->mutex, &ts);
    bool on = !l->stop;
    uint64_t compact = l->compact_to;
    l->compact_to = 0;
    pthread_mutex_unlock(&l->mutex);
    if (compact != 0)
        remove_old(l, compact); /* which is space */
    return on;
}

static void
space_again(struct raft_log *l)
{
    if (l->short_of)
        log_info("raft", "the Raft log has space again", "dir", l->dir, NULL);
    l->short_of = false;
}

void
raft_log_set_hard(struct raft_log *l, uint64_t term, uint64_t vote)
{
    const char *what = "";
    ASSERT(term >= l->hard.term); /* and one vote in a term */
    ASSERT(term > l->hard.term || l->hard.vote == 0 || vote == l->hard.vote);
    int rc = hard_set(&l->hard, term, vote, &what);
    if (rc < 0)
        disk_fatal(l, what, -rc);
}

/* --- segments --- */

/* A file of zeros of the size of a segment, for when the disk is full. */
static void
spare_make(struct raft_log *l)
{
    if (l->spare)
        return;
    auto_fd int fd = openat(l->dirfd, SPARE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    l->spare = fd >= 0 && posix_fallocate(fd, 0, (off_t)l->segment_bytes) == 0;
    if (fd >= 0 && !l->spare)
        (void)unlinkat(l->dirfd, SPARE, 0); /* what it got of the space may be needed */
}

static int
spare_use(struct raft_log *l, const char *name)
{
    ASSERT(l->spare);
    if (renameat(l->dirfd, SPARE, l->dirfd, name) != 0)
        return -errno;
    l->spare = false;
    fd_close(&l->fd);
    l->fd = openat(l->dirfd, name, O_RDWR | O_CLOEXEC);
    return l->fd < 0 ? -errno : 0;
}

/* Makes the next file; nothing of it counts before its head is durable. 0 or -errno. */
static int
segment_try(struct raft_log *l, uint64_t first, size_t size)
{
    char name[40];
    uint8_t head[SEGMENT_HEAD];
    segment_name(name, l->next_seq);
    segment_head(head, l->next_seq, first);
    fd_close(&l->fd);
    l->fd = openat(l->dirfd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (l->fd < 0)
        return -errno;
    int rc = -posix_fallocate(l->fd, 0, (off_t)size);
    if (errno_is_shortage(-rc) && l->spare && size == l->segment_bytes)
        rc = spare_use(l, name);
    if (rc == 0)
        rc = fd_pwrite_full(l->fd, head, sizeof(head), 0);
    if (rc < 0)
        return rc;
    if (fsync(l->fd) != 0)
        disk_fatal(l, "sync a new segment", errno);
    rc = dir_fsync(l->dirfd);
    if (rc < 0)
        disk_fatal(l, "sync the directory", -rc);
    return 0;
}

/* A new segment; `first` is the next index at its start; the writer's thread, or at open. False
 * when there is no space for it and the log is to be closed. */
static bool
segment_create(struct raft_log *l, uint64_t first, size_t need)
{
    size_t size = l->segment_bytes;
    ASSERT(first > 0);
    if (size < need + SEGMENT_HEAD)
        size = need + SEGMENT_HEAD;
    int rc;
    while ((rc = segment_try(l, first, size)) < 0) {
        if (!errno_is_shortage(-rc))
            disk_fatal(l, "make a segment", -rc);
        /* the room that was reserved of it is given back meanwhile */
        if (l->fd >= 0 && ftruncate(l->fd, 0) != 0)
            disk_fatal(l, "shorten a segment", errno);
        if (!wait_for_space(l, "make a segment", -rc))
            return false;
    }
    space_again(l);
    pthread_mutex_lock(&l->mutex);
    mem_resize(l, l->segs, struct segment, l->n_segs + 1);
    l->segs[l->n_segs++] = (struct segment){l->next_seq++, first, size};
    pthread_mutex_unlock(&l->mutex);
    l->off = SEGMENT_HEAD;
    return true;
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
    uint64_t next; /* index expected; 0: the first segment says */
    uint64_t lowest; /* that was truncated at */
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
        p->lowest = r->index < p->lowest ? r->index : p->lowest;
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

/* Adds what an operator can do about a damaged log. */
static int
log_refuse(struct raft_log *l, struct err *e)
{
    char cause[ERR_TEXT_MAX];
    str_copy(cause, sizeof(cause), e->text);
    int code = e->code;
    err_clear(e);
    return err_set(
        e, code,
        "the Raft log is corrupt and the server does not start with a shortened one: %s. "
        "Restore '%s' from a backup, or, when other servers hold the data (or it may be "
        "lost), remove that directory and start again empty",
        cause, l->dir);
}

/* Zeros over a torn write, in place: no space is needed, and cut off again it is as torn as before.
 */
static int
erase_tail(int fd, size_t from, size_t to)
{
    auto_mem uint8_t *zeros = mem_array(NULL, uint8_t, ZERO_CHUNK);
    int rc = 0;
    while (rc == 0 && from < to) {
        size_t n = to - from < ZERO_CHUNK ? to - from : ZERO_CHUNK;
        rc = fd_pwrite_full(fd, zeros, n, (off_t)from);
        from += n;
    }
    return rc == 0 && fsync(fd) != 0 ? -errno : rc;
}

/* Makes the last segment ready to be appended to. */
static int
resume_last(struct raft_log *l, const struct segment_end *end, struct err *e)
{
    char name[40];
    struct segment *s = &l->segs[l->n_segs - 1];
    segment_name(name, s->seq);
    if (end->headless) {
        /* Never written to. The next segment takes its place, name and all: there must be no gap.
         */
        l->n_segs--;
        l->next_seq = s->seq;
        return 0;
    }
    l->fd = openat(l->dirfd, name, O_RDWR | O_CLOEXEC);
    if (l->fd < 0)
        return err_errno(e, errno, "open '%s/%s'", l->dir, name);
    l->off = end->end;
    if (!end->torn)
        return 0;
    log_warn("raft", "cut a torn write off the end of the log; it was never acknowledged", "file",
             name, "offset", LOG_U64(end->end), NULL);
    int rc = erase_tail(l->fd, end->end, s->size);
    return rc < 0 ? err_errno(e, -rc, "cut '%s/%s'", l->dir, name) : 0;
}

int
raft_log_replay(struct raft_log *l, uint64_t from, segment_fn *fn, void *arg, struct err *e)
{
    struct replay p = {.from = from, .fn = fn, .arg = arg, .e = e};
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
    struct replay p = {.lowest = UINT64_MAX, .e = e};
    struct segment_end end = {.headless = true};
    for (size_t i = 0; i < l->n_segs; i++) {
        uint64_t seq = l->segs[i].seq;
        l->next_seq = seq + 1;
        if (i > 0 && (end.torn || end.headless)) {
            err_set(e, -ERR_CORRUPT,
                    "'%s/log-%020" PRIu64 "' ends in damage, but later segments exist", l->dir,
                    seq - 1);
            return log_refuse(l, e);
        }
        if (i > 0 && seq != l->segs[i - 1].seq + 1) {
            err_set(e, -ERR_CORRUPT, "'%s/log-%020" PRIu64 "' is missing", l->dir,
                    l->segs[i - 1].seq + 1);
            return log_refuse(l, e);
        }
        int rc = segment_read(l, i, &p, &end);
        if (rc == -ERR_CORRUPT)
            return log_refuse(l, e);
        if (rc < 0)
            return rc;
    }
    l->first = l->n_segs > 0 ? l->segs[0].first : 1;
    if (p.lowest < l->first) /* what was truncated before its head was written to it again */
        l->first = p.lowest;
    l->last = p.next > 0 ? p.next - 1 : 0;
    if (l->first == 0)
        l->first = 1;
    return l->n_segs > 0 ? resume_last(l, &end, e) : 0;
}

/* --- the writer --- */

/* False: there is no space, and the log is to be closed. */
static bool
write_range(struct raft_log *l, const uint8_t *p, size_t n)
{
    int rc;
    ASSERT(l->fd >= 0 && l->off + n <= l->segs[l->n_segs - 1].size);
    /* Space is reserved, but a file system that copies on write may lack it all the same. */
    while ((rc = fd_pwrite_full(l->fd, p, n, (off_t)l->off)) < 0) {
        if (!errno_is_shortage(-rc))
            disk_fatal(l, "write", -rc);
        if (!wait_for_space(l, "write", -rc))
            return false;
    }
    space_again(l);
    if (fdatasync(l->fd) != 0)
        disk_fatal(l, "sync", errno);
    l->off += n;
    return true;
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

/* Seals and writes a queue of records; a new segment where one does not fit. False: not all of it.
 */
static bool
write_queue(struct raft_log *l, struct buf *q)
{
    size_t at = 0;
    spare_make(l);
    while (at < q->len) {
        size_t room = l->fd >= 0 ? l->segs[l->n_segs - 1].size - l->off : 0;
        size_t end = at;
        while (end < q->len && end - at + record_len(q->data + end) <= room) {
            uint64_t index = record_index(q->data + end);
            l->written = q->data[end + 24] == RECORD_TRUNCATE ? index - 1 : index;
            end = record_seal(q->data, end, (uint32_t)l->off);
        }
        if (end > at && !write_range(l, q->data + at, end - at))
            return false;
        at = end;
        if (at < q->len && !segment_create(l, l->written + 1, record_len(q->data + at)))
            return false;
    }
    return true;
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
        bool wrote = mine.len > 0 && write_queue(l, &mine);
        bool given_up = mine.len > 0 && !wrote;
        buf_reset(&mine);
        if (compact != 0)
            remove_old(l, compact);
        pthread_mutex_lock(&l->mutex);
        /* With the lock held: a truncation comes before the report or sees it. */
        if (wrote && l->flight_last > 0)
            l->opts.on_durable(l->opts.arg, l->flight_last);
        l->busy = false;
        if (given_up)
            buf_reset(&l->queue); /* closed while it waited: nobody was told of what is left */
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
    fd_close(&l->hard.fd);
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
    l->dirfd = l->fd = l->hard.fd = -1;
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
        rc = hard_open(&l->hard, l->dirfd, l->dir, e);
    if (rc == 0)
        rc = segments_list(l, e);
    if (rc == 0)
        rc = scan_all(l, e);
    if (rc == 0 && l->n_segs == 0)
        l->first = l->last + 1;
    l->written = l->last;
    if (rc == 0) {
        spare_make(l);
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

size_t
raft_log_files(struct raft_log *l, const void *ctx, uint64_t from, uint64_t **ret_seq,
               int *ret_dirfd)
{
    pthread_mutex_lock(&l->mutex);
    size_t i = l->n_segs;
    while (i > 0 && l->segs[i - 1].first > from)
        i--;
    i -= i > 0;
    size_t n = l->n_segs - i;
    *ret_seq = mem_array(ctx, uint64_t, n);
    for (size_t k = 0; k < n; k++)
        (*ret_seq)[k] = l->segs[i + k].seq;
    pthread_mutex_unlock(&l->mutex);
    *ret_dirfd = l->dirfd;
    return n;
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
    return l->hard.term;
}

uint64_t
raft_log_vote(const struct raft_log *l)
{
    return l->hard.vote;
}

int
raft_log_room(const struct raft_log *l, size_t elsewhere, struct err *e)
{
    struct statvfs v;
    if (fstatvfs(l->dirfd, &v) != 0)
        return 0;
    uint64_t left = (uint64_t)v.f_bavail * v.f_frsize;
    if (left >= DISK_ROOM_MIN || (left >= DISK_LOG_ROOM && left + elsewhere >= DISK_ROOM_MIN))
        return 0;
    return err_set(e, -ENOSPC,
                   "the disk of \"%s\" is nearly full: %" PRIu64
                   " MiB are free, %d MiB are needed; "
                   "free some space",
                   l->dir, left >> 20, DISK_ROOM_MIN >> 20);
}

bool
raft_log_spare(const struct raft_log *l)
{
    return l->spare;
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
    ASSERT(r->index == l->last + 1 && r->type != RECORD_TRUNCATE);
    pthread_mutex_lock(&l->mutex);
    queue_put(l, r);
    l->queue_last = r->index;
    pthread_mutex_unlock(&l->mutex);
    l->last = r->index;
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
    /* no entry that is cut off may be reported durable from now on */
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
    pthread_mutex_lock(&l->mutex);
    ASSERT(l->queue.len == 0 && !l->busy); /* the files are ours, and of who reads them */
    for (size_t i = 0; i < l->n_segs; i++) {
        char name[40];
        segment_name(name, l->segs[i].seq);
        if (unlinkat(l->dirfd, name, 0) != 0 && errno != ENOENT)
            disk_fatal(l, "remove a segment", errno);
    }
    l->n_segs = 0;
    l->queue_last = l->flight_last = l->compact_to = 0;
    pthread_mutex_unlock(&l->mutex);
    fd_close(&l->fd);
    l->written = index;
    (void)segment_create(l, keep, 0);
    l->first = keep;
    l->last = index;
}

void
raft_log_compact(struct raft_log *l, uint64_t index)
{
    ASSERT(index <= l->last);
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
