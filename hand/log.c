/* SPDX-License-Identifier: Apache-2.0
 *
 * A container's output becomes the files of its task's logs, TASK.stdout.N and TASK.stderr.N, each
 * of `file_bytes` but the last. No byte is lost and none is there twice, whoever is killed when:
 *
 *   at        bytes of the stream since the container began, up to the message that comes next;
 *             starts with what an earlier container of the task has left in the files
 *   written   bytes in the files, ever: (number of the last) * file_bytes + its size
 *   stamp     the engine's time of the newest message
 *   before    what `at` was ahead of the first message of that time
 *
 * The notes (.TASK.hand: container, stamp and before of both streams) are written after what came
 * at once. They may be older than the files, never newer: the engine is asked for all from `stamp`
 * on, and what is in the files already, `written - before` bytes of that, is left out. Where the
 * clock went back and the hand was killed as well, some lines may be there twice.
 *
 * An engine keeps a bounded part of the output. When it has the newest message no more, all up to
 * its oldest one is lost: a line of the log says so.
 *
 * Engines frame each message (common/frame.h: its type is the stream) and put its time in front;
 * those of a terminal are not framed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/frame.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "hand/hand.h"

#define LOGS "alloc/logs"
#define SKEW_NS (NS_PER_S / 2) /* the streams of a container are in order but for that */
enum {
    STAMP_LEN = 30,      /* of an engine's time, and a blank behind it */
    TTY_PART = 16 << 10, /* bytes of a line that come at once */
    FILES_DEFAULT = 10,
    FILE_BYTES_DEFAULT = 10 << 20,
    ENTRIES_MAX = 65536,
    NOTES_MAX = 512,
    PENDING_BYTES = 256 << 10, /* that are written at once */
    OUT = 0,
    ERR = 1,
};

struct output {
    int fd;        /* of the last file; -1: not open */
    int64_t index; /* of it */
    int64_t first; /* oldest that is there */
    int64_t size;  /* of the last file */
    int64_t at, stamp, before;
    int64_t noted, noted_before, noted_at; /* those of what is in the files */
    struct buf pending;                    /* what comes behind the files */
    bool replayed; /* what comes is in the files, as long as it is older than `stamp` */
};

struct hand_log {
    int dir;
    char *task;
    char container[HAND_ID_MAX];
    int64_t files, file_bytes;
    bool tty;
    struct output out[2];
    struct buf frame; /* what came of a message */
    int64_t fresh;    /* bytes that were not known, since the engine was asked */
    int64_t behind_ns; /* 0: what comes may be old; else the stream stops where it is older */
};

static const char *const names[2] = {"stdout", "stderr"};

/* --- the files --- */

static const char *
file_name(const void *ctx, const struct hand_log *l, int i, int64_t index)
{
    return mem_printf(ctx, "%s.%s.%lld", l->task, names[i], (long long)index);
}

static bool
number_of(const struct hand_log *l, const char *name, int i, int64_t *ret)
{
    size_t n = strlen(l->task), m = strlen(names[i]);
    if (strncmp(name, l->task, n) != 0 || name[n] != '.' ||
        strncmp(name + n + 1, names[i], m) != 0 || name[n + 1 + m] != '.')
        return false;
    return num_parse_i64(name + n + m + 2, ret) == 0 && *ret >= 0 && *ret < INT32_MAX;
}

static int
find_files(struct hand_log *l)
{
    bool any[2] = {false, false};
    int fd = fcntl(l->dir, F_DUPFD_CLOEXEC, 0);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        fd_close(&fd);
        return -errno;
    }
    rewinddir(d);
    struct dirent *de;
    for (size_t k = 0; k < ENTRIES_MAX && (de = readdir(d)) != NULL; k++)
        for (int i = 0; i < 2; i++) {
            struct output *o = &l->out[i];
            int64_t n;
            if (!number_of(l, de->d_name, i, &n))
                continue;
            o->index = any[i] && o->index > n ? o->index : n;
            o->first = any[i] && o->first < n ? o->first : n;
            any[i] = true;
        }
    (void)closedir(d);
    return 0;
}

/* Only a file that is ours alone is written: root in a container may have made a link in its place.
 */
static int
open_file(struct hand_log *l, int i)
{
    struct output *o = &l->out[i];
    auto_mem void *tmp = mem_ctx("log");
    struct stat st;
    if (o->fd >= 0)
        return 0;
    auto_fd int fd = openat(l->dir, file_name(tmp, l, i, o->index),
                            O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        return -EEXIST;
    o->size = st.st_size > l->file_bytes ? l->file_bytes : st.st_size;
    o->fd = TAKE_FD(fd);
    return 0;
}

static void
next_file(struct hand_log *l, int i)
{
    struct output *o = &l->out[i];
    auto_mem void *tmp = mem_ctx("log");
    fd_close(&o->fd);
    o->index++;
    o->size = 0;
    for (; o->first <= o->index - l->files; o->first++)
        (void)unlinkat(l->dir, file_name(tmp, l, i, o->first), 0);
}

static int64_t
log_written(const struct hand_log *l, int i)
{
    return l->out[i].index * l->file_bytes + l->out[i].size + (int64_t)l->out[i].pending.len;
}

static int
write_bytes(struct hand_log *l, int i, const uint8_t *p, size_t n)
{
    struct output *o = &l->out[i];
    while (n > 0) {
        if (o->size >= l->file_bytes)
            next_file(l, i);
        int r = open_file(l, i);
        if (r < 0)
            return r;
        size_t room = (size_t)(l->file_bytes - o->size), k = n < room ? n : room;
        ssize_t w = pwrite(o->fd, p, k, o->size);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -errno;
        o->size += w;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

/* Lines that could not be written come again: the notes do not have them. */
static int
log_flush(struct hand_log *l, int i)
{
    struct output *o = &l->out[i];
    int r = o->pending.len ? write_bytes(l, i, o->pending.data, o->pending.len) : 0;
    buf_reset(&o->pending);
    if (r == 0) {
        o->noted = o->stamp;
        o->noted_before = o->before;
        o->noted_at = o->at;
    } else {
        o->stamp = o->noted;
        o->before = o->noted_before;
        o->at = o->noted_at;
    }
    return r;
}

static int
log_put(struct hand_log *l, int i, const uint8_t *p, size_t n)
{
    buf_put(&l->out[i].pending, p, n);
    return l->out[i].pending.len < PENDING_BYTES ? 0 : log_flush(l, i);
}

/* --- the notes --- */

static const char *
notes_name(const void *ctx, const struct hand_log *l)
{
    return mem_printf(ctx, ".%s.hand", l->task);
}

/* One write of a fixed length: it is there, or is not. */
static int
log_save(struct hand_log *l)
{
    auto_mem void *tmp = mem_ctx("notes");
    auto_fd int fd =
        openat(l->dir, notes_name(tmp, l), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    const struct output *a = &l->out[OUT], *b = &l->out[ERR];
    const char *text =
        mem_printf(tmp, "%-127.127s %020lld %020lld %020lld %020lld %020lld %020lld\n",
                   l->container, (long long)a->stamp, (long long)a->before, (long long)b->stamp,
                   (long long)b->before, (long long)a->at, (long long)b->at);
    return fd_pwrite_full(fd, text, strlen(text), 0);
}

static int
save_all(struct hand_log *l)
{
    int r = log_flush(l, OUT), k = log_flush(l, ERR);
    return r < 0 ? r : k < 0 ? k : log_save(l);
}

static bool
log_load(struct hand_log *l)
{
    auto_mem void *tmp = mem_ctx("notes");
    char *text = NULL, id[HAND_ID_MAX];
    int found = 0;
    long long n[6];
    if (file_read(tmp, l->dir, notes_name(tmp, l), NOTES_MAX, &text, NULL) < 0 ||
        (found = sscanf(text, "%127s %lld %lld %lld %lld %lld %lld", id, &n[0], &n[1], &n[2], &n[3],
                        &n[4], &n[5])) < 5 ||
        !str_eq(id, l->container))
        return false;
    for (int i = 0; i < 2; i++) {
        l->out[i].stamp = n[2 * i];
        l->out[i].before = n[2 * i + 1];
        l->out[i].noted = l->out[i].stamp;
        l->out[i].noted_before = l->out[i].before;
        l->out[i].noted_at = found == 7 ? n[4 + i] : -1; /* of an earlier release */
        l->out[i].at = l->out[i].noted_at;
    }
    return true;
}

/* --- life --- */

void
log_shape(struct hand_log *l, const struct log_shape *s)
{
    l->files = s->files > 0 ? s->files : FILES_DEFAULT;
    l->file_bytes = s->file_bytes > 0 ? s->file_bytes : FILE_BYTES_DEFAULT;
    l->tty = s->tty;
}

struct hand_log *
log_open(const void *ctx, struct hand *h, const char *alloc, const char *task, struct err *e)
{
    auto_mem void *tmp = mem_ctx("log");
    struct hand_log *l = mem_new(ctx, struct hand_log);
    l->task = mem_strdup(l, task);
    l->out[OUT].fd = l->out[ERR].fd = -1;
    buf_init(&l->frame, 2 * HAND_FRAME_MAX);
    for (int i = 0; i < 2; i++)
        buf_init(&l->out[i].pending, PENDING_BYTES + 2 * HAND_FRAME_MAX);
    log_shape(l, &(struct log_shape){0});
    l->dir = fd_open_beneath(h->allocs, mem_printf(tmp, "%s/" LOGS, alloc),
                             O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, false);
    int r = l->dir < 0 ? l->dir : find_files(l);
    if (r == 0)
        return l;
    err_errno(e, -r, "open the directory of logs of allocation \"%s\"", alloc);
    log_close(l);
    return NULL;
}

void
log_close(struct hand_log *l)
{
    if (!l)
        return;
    for (int i = 0; i < 2; i++) {
        fd_close(&l->out[i].fd);
        buf_done(&l->out[i].pending);
    }
    fd_close(&l->dir);
    buf_done(&l->frame);
    talloc_free(l);
}

int
log_of(struct hand_log *l, const char *container)
{
    (void)str_copy(l->container, sizeof(l->container), container);
    for (int i = 0; i < 2; i++) {
        int r = open_file(l, i);
        if (r < 0)
            return r;
    }
    if (log_load(l))
        return 0;
    for (int i = 0; i < 2; i++)
        l->out[i].stamp = 0, l->out[i].before = l->out[i].at = log_written(l, i);
    return save_all(l);
}

const char *
log_since(struct hand_log *l, char ret[48])
{
    int64_t newest = l->out[OUT].stamp > l->out[ERR].stamp ? l->out[OUT].stamp : l->out[ERR].stamp;
    int64_t ns = newest > SKEW_NS ? newest - SKEW_NS : 0;
    for (int i = 0; i < 2; i++) /* notes of an earlier release do not say how much there was */
        if (l->out[i].noted_at < l->out[i].before && l->out[i].stamp < ns)
            ns = l->out[i].stamp;
    buf_reset(&l->frame);
    l->fresh = 0;
    for (int i = 0; i < 2; i++) {
        struct output *o = &l->out[i];
        o->replayed = o->stamp >= ns;
        o->at = o->replayed ? o->before : o->noted_at;
    }
    snprintf(ret, 48, "%lld.%09lld", (long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S));
    return ret;
}

/* --- what comes --- */

/* Between the newest message and the one of `stamp`. The line is no part of the stream: what
 * follows is counted from behind it. */
static int
say_lost(struct hand_log *l, int i, int64_t stamp)
{
    struct output *o = &l->out[i];
    char from[TIME_TEXT], to[TIME_TEXT];
    auto_mem void *tmp = mem_ctx("lost");
    const char *line = mem_printf(
        tmp, "paddock: output is lost: of what was written from %s to %s the engine had no more\n",
        time_format(o->stamp, from), time_format(stamp, to));
    int r = log_flush(l, i);
    r = r < 0 ? r : log_put(l, i, (const uint8_t *)line, strlen(line));
    o->at = log_written(l, i);
    o->stamp = stamp;
    o->before = o->at;
    return r < 0 ? r : save_all(l);
}

static int
log_message(struct hand_log *l, int i, const uint8_t *p, size_t n)
{
    struct output *o = &l->out[i];
    const uint8_t *blank = memchr(p, ' ', n);
    int64_t stamp;
    if (!blank || time_parse((const char *)p, (size_t)(blank - p), &stamp) < 0)
        return -ERR_CORRUPT;
    n -= (size_t)(blank + 1 - p);
    p = blank + 1;
    if (o->replayed && stamp < o->stamp)
        return 0; /* `before` has it */
    bool fresh = stamp != o->stamp || log_written(l, i) - o->at < (int64_t)n;
    if (fresh && l->behind_ns > 0 && stamp < clock_wall_ns() - l->behind_ns)
        return -ERR_BUSY; /* the engine may leave out without a word what it has no more */
    int lost = o->replayed && o->stamp != 0 && stamp > o->stamp ? say_lost(l, i, stamp) : 0;
    if (lost < 0)
        return lost;
    o->replayed = false;
    if (stamp != o->stamp) { /* a clock may go back */
        o->stamp = stamp;
        o->before = o->at;
    }
    int64_t known = log_written(l, i) - o->at;
    o->at += (int64_t)n;
    if (known >= (int64_t)n)
        return 0;
    size_t skip = known > 0 ? (size_t)known : 0;
    l->fresh += (int64_t)(n - skip);
    return log_put(l, i, p + skip, n - skip);
}

static int
on_frame(void *arg, uint8_t type, const uint8_t *p, size_t n)
{
    return type > 2 ? -ERR_CORRUPT : log_message(arg, type == 2 ? ERR : OUT, p, n);
}

static bool
stamp_at(const uint8_t *p)
{
    int64_t ns;
    return p[STAMP_LEN] == ' ' && time_parse((const char *)p, STAMP_LEN, &ns) == 0;
}

/* The length of the message at `p`, with its time; 0: it is not whole. */
static size_t
tty_message(const uint8_t *p, size_t n)
{
    const size_t head = STAMP_LEN + 1;
    const uint8_t *nl = n > head ? memchr(p + head, '\n', n - head) : NULL;
    if (nl && nl - p <= (ptrdiff_t)(head + TTY_PART))
        return (size_t)(nl + 1 - p);
    /* a longer line comes in parts, each with its time */
    bool part = n >= 2 * head + TTY_PART && stamp_at(p + head + TTY_PART);
    return part ? head + TTY_PART : nl ? (size_t)(nl + 1 - p) : 0;
}

/* A terminal has one stream, of lines; each begins with its time. */
static int
feed_tty(struct hand_log *l, const void *p, size_t n)
{
    buf_put(&l->frame, p, n);
    if (buf_error(&l->frame))
        return -ERR_CORRUPT;
    size_t at = 0, k;
    int r = 0;
    while (r == 0 && (k = tty_message(l->frame.data + at, l->frame.len - at)) > 0) {
        r = log_message(l, OUT, l->frame.data + at, k);
        at += k;
    }
    buf_consume(&l->frame, at);
    return r;
}

int
log_feed(struct hand_log *l, const void *p, size_t n)
{
    int r = l->tty ? feed_tty(l, p, n) : frame_feed(&l->frame, p, n, on_frame, l);
    int k = save_all(l);
    return r < 0 ? r : k;
}

int64_t
log_fresh(const struct hand_log *l)
{
    return l->fresh;
}

void
log_behind(struct hand_log *l, int64_t ns)
{
    l->behind_ns = ns;
}

int
log_end(struct hand_log *l)
{
    int r =
        l->tty && l->frame.len > STAMP_LEN ? log_message(l, OUT, l->frame.data, l->frame.len) : 0;
    int k = save_all(l);
    buf_reset(&l->frame);
    return r < 0 ? r : k;
}
