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
 * The notes (.TASK.hand: container, stamp and before of both streams) are written after each
 * message. They may be older than the files, never newer: the engine is asked for all from `stamp`
 * on, and what is in the files already, `written - before` bytes of that, is left out. Where the
 * clock went back and the hand was killed as well, some lines may be there twice.
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

#include "common/fd.h"
#include "common/frame.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "hand/hand.h"

#define LOGS "alloc/logs"
enum {
    STAMP_LEN = 30,      /* of an engine's time, and a blank behind it */
    TTY_PART = 16 << 10, /* bytes of a line that come at once */
    FILES_DEFAULT = 10,
    FILE_BYTES_DEFAULT = 10 << 20,
    ENTRIES_MAX = 65536,
    NOTES_MAX = 512,
    OUT = 0,
    ERR = 1,
};

struct output {
    int fd;        /* of the last file; -1: not open */
    int64_t index; /* of it */
    int64_t first; /* oldest that is there */
    int64_t size;  /* of the last file */
    int64_t at, stamp, before;
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
written(const struct hand_log *l, int i)
{
    return l->out[i].index * l->file_bytes + l->out[i].size;
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

/* --- the notes --- */

static const char *
notes_name(const void *ctx, const struct hand_log *l)
{
    return mem_printf(ctx, ".%s.hand", l->task);
}

/* One write of a fixed length: it is there, or is not. */
static int
save(struct hand_log *l)
{
    auto_mem void *tmp = mem_ctx("notes");
    auto_fd int fd =
        openat(l->dir, notes_name(tmp, l), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    const char *text = mem_printf(tmp, "%-127.127s %020lld %020lld %020lld %020lld\n", l->container,
                                  (long long)l->out[OUT].stamp, (long long)l->out[OUT].before,
                                  (long long)l->out[ERR].stamp, (long long)l->out[ERR].before);
    return fd_pwrite_full(fd, text, strlen(text), 0);
}

static bool
load(struct hand_log *l)
{
    auto_mem void *tmp = mem_ctx("notes");
    char *text = NULL, id[HAND_ID_MAX];
    long long n[4];
    if (file_read(tmp, l->dir, notes_name(tmp, l), NOTES_MAX, &text, NULL) < 0 ||
        sscanf(text, "%127s %lld %lld %lld %lld", id, &n[0], &n[1], &n[2], &n[3]) != 5 ||
        !str_eq(id, l->container))
        return false;
    for (int i = 0; i < 2; i++) {
        l->out[i].stamp = n[2 * i];
        l->out[i].before = n[2 * i + 1];
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
    for (int i = 0; i < 2; i++)
        fd_close(&l->out[i].fd);
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
    if (load(l))
        return 0;
    for (int i = 0; i < 2; i++)
        l->out[i].stamp = 0, l->out[i].before = written(l, i);
    return save(l);
}

const char *
log_since(struct hand_log *l, char ret[48])
{
    int64_t ns = l->out[OUT].stamp < l->out[ERR].stamp ? l->out[OUT].stamp : l->out[ERR].stamp;
    buf_reset(&l->frame);
    for (int i = 0; i < 2; i++) {
        l->out[i].at = l->out[i].before;
        l->out[i].replayed = true;
    }
    snprintf(ret, 48, "%lld.%09lld", (long long)(ns / NS_PER_S), (long long)(ns % NS_PER_S));
    return ret;
}

/* --- what comes --- */

static int
message(struct hand_log *l, int i, const uint8_t *p, size_t n)
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
    o->replayed = false;
    if (stamp != o->stamp) { /* a clock may go back */
        o->stamp = stamp;
        o->before = o->at;
    }
    int64_t known = written(l, i) - o->at;
    o->at += (int64_t)n;
    if (known >= (int64_t)n)
        return 0;
    size_t skip = known > 0 ? (size_t)known : 0;
    int r = write_bytes(l, i, p + skip, n - skip);
    return r < 0 ? r : save(l);
}

static int
on_frame(void *arg, uint8_t type, const uint8_t *p, size_t n)
{
    return type > 2 ? -ERR_CORRUPT : message(arg, type == 2 ? ERR : OUT, p, n);
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
    /* what is longer comes in parts, each with its time */
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
        r = message(l, OUT, l->frame.data + at, k);
        at += k;
    }
    buf_consume(&l->frame, at);
    return r;
}

int
log_feed(struct hand_log *l, const void *p, size_t n)
{
    return l->tty ? feed_tty(l, p, n) : frame_feed(&l->frame, p, n, on_frame, l);
}

int
log_end(struct hand_log *l)
{
    int r = l->tty && l->frame.len > STAMP_LEN ? message(l, OUT, l->frame.data, l->frame.len) : 0;
    buf_reset(&l->frame);
    return r;
}
