/* SPDX-License-Identifier: Apache-2.0
 *
 * Byte streams of files and logs. A stream is in one of these states:
 *
 *   LIST     the log directory is being listed     OPEN   a file is being opened
 *   READ     there is a file, and perhaps data     WAIT   at the end, following: woken by inotify
 *                                                         on the directory or file, or by the
 *                                                         task's end
 *   END, FAIL
 *
 * The warden opens every file. A watch is set before the directory is listed, so nothing is missed.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utlist.h>

#include "client/alloc/alloc_runner.h"
#include "client/io/fs.h"
#include "client/io/log_index.h"
#include "client/io/stream.h"
#include "client/limits.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

enum {
    STREAM_BEAT_MS = 1000, /* an empty frame while nothing happens */
    STREAM_POLL_MS = 250   /* only where the kernel refuses the watch */
};

static const char log_dir[] = "alloc/logs";

enum stream_state { STREAM_LIST, STREAM_OPEN, STREAM_READ, STREAM_WAIT, STREAM_END, STREAM_FAIL };

struct streams {
    struct ground *g;
    struct allocs *allocs;
    struct client_stream *first;
    size_t n;
};

struct client_stream {
    struct client_stream *prev, *next; /* of all */
    struct streams *all;
    struct ground *g;
    struct client_stream_request req; /* strings owned */
    char id[UUID_TEXT];
    enum stream_state state;
    bool frames;
    bool closed;
    bool busy;   /* in a callback: freed after it */
    bool kept;   /* the output is its engine's, and in no file */
    bool listed_last; /* polled: the directory was listed after the task's end */
    bool asking; /* a request to the warden is out */
    bool deleted;
    struct err e;
    /* opening */
    client_stream_opened *opened;
    void *opened_arg;
    /* logs */
    struct log_set set;
    uint64_t index;
    bool have_index;
    bool overflow;   /* the kernel dropped events: the directory is to be listed again */
    unsigned missed; /* files in a row that were rotated away before they were opened */
    /* file */
    int fd;
    int64_t pos;
    int64_t left; /* FILE with limit; -1: all */
    const char *name; /* of the file, for frames */
    /* watch */
    int inotify;
    struct watch *watch;
    struct timer *timer;
    bool polled;
    struct buf out;
    size_t out_at;
    void (*ready)(void *arg);
    void *ready_arg;
};

static void open_current(struct client_stream *s);
static void list_logs(struct client_stream *s, int64_t offset);

/* --- life --- */

static void
stream_free(struct client_stream *s)
{
    struct streams *all = s->all;
    watch_stop(s->watch);
    timer_stop(s->timer);
    fd_close(&s->inotify);
    fd_close(&s->fd);
    buf_done(&s->out);
    DL_DELETE(all->first, s);
    all->n--;
    talloc_free(s);
    hold_release(&all->g->hold);
}

void
client_stream_close(struct client_stream *s)
{
    s->closed = true;
    s->ready = NULL;
    if (!s->asking && !s->opened && !s->busy)
        stream_free(s);
}

static void
stream_wake(struct client_stream *s)
{
    void (*ready)(void *) = s->ready;
    s->ready = NULL;
    if (ready)
        ready(s->ready_arg);
}

static void
stream_fail(struct client_stream *s, int code, const char *text)
{
    s->state = STREAM_FAIL;
    err_set(&s->e, code, "%s", text);
}

static void
stream_opened(struct client_stream *s)
{
    client_stream_opened *fn = TAKE(s->opened);
    if (!fn)
        return;
    if (s->state == STREAM_FAIL) {
        fn(s->opened_arg, &s->e, NULL);
        s->closed = true;
    } else {
        fn(s->opened_arg, NULL, s);
    }
}

/* After any completion: tells the opener or the reader; frees what was closed meanwhile. */
static void
stream_progress(struct client_stream *s)
{
    if (s->asking || s->busy)
        return;
    s->busy = true;
    if (s->opened)
        stream_opened(s);
    else if (!s->closed)
        stream_wake(s);
    s->busy = false;
    if (s->closed && !s->asking)
        stream_free(s);
}

/* --- following --- */

static bool
task_is_over(const struct client_stream *s)
{
    struct alloc_runner *ar = alloc_runner_find(s->all->allocs, s->id);
    if (!ar || s->g->stopping)
        return true;
    if (s->req.kind != CLIENT_STREAM_LOGS)
        return alloc_runner_terminal(ar);
    struct task_runner *tr = alloc_runner_task(ar, s->req.task);
    return !tr || !task_sm_live(tr->sm.t);
}

static void
note_event(struct client_stream *s, const struct inotify_event *ev)
{
    uint64_t index;
    if (ev->mask & (IN_DELETE_SELF | IN_MOVE_SELF))
        s->deleted = true;
    if (ev->mask & IN_Q_OVERFLOW)
        s->overflow = true;
    if (s->req.kind != CLIENT_STREAM_LOGS || ev->len == 0 ||
        !log_index_parse(ev->name, s->req.task, s->req.log_type, &index))
        return;
    if (ev->mask & (IN_CREATE | IN_MOVED_TO))
        log_index_add(s, &s->set, index, 0);
    else if (ev->mask & (IN_DELETE | IN_MOVED_FROM))
        log_index_remove(&s->set, index);
}

static void
pump_events(struct client_stream *s)
{
    char buf[16 << 10] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n = s->inotify >= 0 ? read(s->inotify, buf, sizeof(buf)) : 0;
    for (ssize_t at = 0; n > 0 && at + (ssize_t)sizeof(struct inotify_event) <= n;) {
        const struct inotify_event *ev = (const void *)(buf + at);
        note_event(s, ev);
        at += (ssize_t)sizeof(*ev) + (ssize_t)ev->len;
    }
}

static void
on_inotify(void *arg, int fd, unsigned events)
{
    (void)fd;
    (void)events;
    struct client_stream *s = arg;
    pump_events(s);
    if (s->state == STREAM_WAIT)
        s->state = STREAM_READ;
    stream_progress(s);
}

static void
watch_set_up(struct client_stream *s, int fd, uint32_t mask)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    s->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (s->inotify < 0 || inotify_add_watch(s->inotify, path, mask) < 0) {
        fd_close(&s->inotify);
        s->polled = true;
        return;
    }
    s->watch = watch_fd(s->g->loop, s->inotify, WATCH_READ, on_inotify, s);
}

/* Lists the files again, for a watch that does not tell: the kernel refused it or dropped some of
 * its events. */
static void
list_again(struct client_stream *s)
{
    s->state = STREAM_LIST;
    s->overflow = false;
    s->set.n = 0;
    list_logs(s, 0);
}

static void
on_beat(void *arg)
{
    struct client_stream *s = arg;
    s->timer = NULL;
    if (s->state == STREAM_WAIT && s->polled && s->req.kind == CLIENT_STREAM_LOGS && !s->kept &&
        !s->closed)
        list_again(s);
    else if (s->state == STREAM_WAIT && s->polled)
        s->state = STREAM_READ;
    else if (s->state == STREAM_WAIT && s->frames && s->out.len == s->out_at)
        buf_puts(&s->out, "{}");
    stream_progress(s);
}

static void
wait_more(struct client_stream *s)
{
    s->state = STREAM_WAIT;
    if (!s->timer && (s->frames || s->polled))
        s->timer = timer_start(s->g->loop, s->polled ? STREAM_POLL_MS : STREAM_BEAT_MS, on_beat, s);
}

void
streams_wake(struct streams *all, const char *alloc_id)
{
    struct client_stream *s, *next;
    DL_FOREACH_SAFE (all->first, s, next) {
        if (s->state != STREAM_WAIT || strcmp(s->id, alloc_id) != 0)
            continue;
        s->state = STREAM_READ;
        stream_progress(s);
    }
}

void
streams_stop(struct streams *all)
{
    struct client_stream *s, *next;
    DL_FOREACH_SAFE (all->first, s, next) {
        if (s->state != STREAM_FAIL)
            s->state = STREAM_END;
        stream_progress(s);
    }
}

/* --- opening --- */

static bool
file_is_regular(int fd, int64_t *ret_size)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    *ret_size = st.st_size;
    return true;
}

static void
take_file(struct client_stream *s, int fd)
{
    int64_t size = 0;
    fd_close(&s->fd);
    s->fd = fd;
    if (!file_is_regular(fd, &size)) {
        stream_fail(s, -ERR_INVALID, "only regular files can be read");
        return;
    }
    s->state = STREAM_READ;
    if (s->req.kind == CLIENT_STREAM_LOGS)
        return;
    s->pos = s->req.from_end ? (s->req.offset < size ? size - s->req.offset : 0) : s->req.offset;
    if (s->req.follow)
        watch_set_up(s, fd, IN_MODIFY | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF);
}

/* The file to open was rotated away. The oldest that is left may be gone as well before it is
 * opened; the newest lives longest: whoever is that slow goes on there, or he would never catch up.
 */
static void
open_next(struct client_stream *s, const struct err *e)
{
    pump_events(s);
    if (log_index_next(&s->set, s->index, &s->index)) {
        if (s->missed > 1)
            s->index = s->set.v[s->set.n - 1].index;
        s->pos = 0;
        open_current(s);
    } else if (s->req.follow && !task_is_over(s)) {
        wait_more(s);
    } else {
        stream_fail(s, e->code, e->text);
    }
}

static void
on_open(void *arg, const struct err *e, struct warden_reply *r)
{
    struct client_stream *s = arg;
    s->asking = false;
    if (s->closed || s->state == STREAM_END) {
        /* nothing */
    } else if (!e && r->file >= 0) {
        s->missed = 0;
        take_file(s, TAKE_FD(r->file));
    } else if (e && e->code == -ERR_NOT_FOUND && s->req.kind == CLIENT_STREAM_LOGS) {
        s->missed++;
        log_index_remove(&s->set, s->index);
        open_next(s, e);
    } else if (e && e->code == -ERR_NOT_FOUND && s->req.kind == CLIENT_STREAM_FRAMES) {
        /* 400, though Nomad's other readers of files say 404 */
        stream_fail(s, -ERR_INVALID, e->text);
    } else {
        stream_fail(s, e ? e->code : -ERR_INTERNAL, e ? e->text : "the warden sent no file");
    }
    stream_progress(s);
}

static void
open_current(struct client_stream *s)
{
    s->state = STREAM_OPEN;
    s->asking = true;
    if (s->req.kind == CLIENT_STREAM_LOGS) {
        mem_free(s->name);
        s->name = mem_printf(s, "%s/%s.%s.%llu", log_dir, s->req.task, s->req.log_type,
                             (unsigned long long)s->index);
    }
    warden_open(s->g->warden, s->id, s->name, on_open, s);
}

static void no_log(struct client_stream *s);

/* Begins to read once there is a file. */
static void
stream_seek(struct client_stream *s)
{
    if (log_index_seek(&s->set, s->req.offset, s->req.from_end, &s->index, &s->pos)) {
        s->have_index = true;
        open_current(s);
    } else if (s->req.follow && !task_is_over(s)) {
        wait_more(s);
    } else if (s->req.follow) {
        s->state = STREAM_END;
    } else {
        no_log(s);
    }
}

static void
on_listed(void *arg, const struct err *e, struct warden_reply *r)
{
    struct client_stream *s = arg;
    s->asking = false;
    if (s->closed || s->state == STREAM_END) {
        stream_progress(s);
        return;
    }
    if (e && e->code != -ERR_NOT_FOUND) {
        stream_fail(s, e->code, e->text);
        stream_progress(s);
        return;
    }
    for (size_t i = 0; !e && i < r->msg->files.n; i++) {
        const struct alloc_file_info *f = r->msg->files.v[i];
        uint64_t index;
        if (!f->is_dir && log_index_parse(f->name, s->req.task, s->req.log_type, &index))
            log_index_add(s, &s->set, index, f->size);
    }
    if (!e && r->msg->next > 0)
        list_logs(s, r->msg->next);
    else if (s->have_index)
        s->state = STREAM_READ;
    else
        stream_seek(s);
    stream_progress(s);
}

static void
list_logs(struct client_stream *s, int64_t offset)
{
    s->asking = true;
    warden_readdir(s->g->warden, s->id, log_dir, offset, on_listed, s);
}

static void
on_log_dir(void *arg, const struct err *e, struct warden_reply *r)
{
    struct client_stream *s = arg;
    s->asking = false;
    if (!s->closed && s->state != STREAM_END) {
        if (!e && r->file >= 0) {
            auto_fd int fd = TAKE_FD(r->file); /* the watch holds on to the directory itself */
            watch_set_up(s, fd, IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM);
        } else {
            s->polled = true;
        }
        list_logs(s, 0);
    }
    stream_progress(s);
}

/* Output that its engine keeps; as `logs` of a handle. */
static int64_t
read_kept(const struct client_stream *s, int64_t at, void *p, size_t n)
{
    struct alloc_runner *ar = alloc_runner_find(s->all->allocs, s->id);
    struct task_runner *tr = ar ? alloc_runner_task(ar, s->req.task) : NULL;
    return tr ? tr->handle->logs(tr, str_eq(s->req.log_type, "stdout") ? 1 : 2, at, p, n) : 0;
}

static void
no_log(struct client_stream *s)
{
    char text[ERR_TEXT_MAX];
    snprintf(text, sizeof(text), "task \"%.100s\" has no %s log yet", s->req.task, s->req.log_type);
    stream_fail(s, -ERR_NOT_FOUND, text);
}

static void
stream_posted(void *arg)
{
    stream_progress(arg);
}

static void
begin_kept(struct client_stream *s, int64_t size)
{
    s->kept = s->polled = true;
    s->name = mem_printf(s, "%s/%s.%s.0", log_dir, s->req.task, s->req.log_type);
    s->pos = !s->req.from_end ? s->req.offset : s->req.offset < size ? size - s->req.offset : 0;
    s->state = STREAM_READ;
    if (size == 0 && !s->req.follow)
        no_log(s);
    loop_post(s->g->loop, stream_posted, s);
}

static void
stream_begin(struct client_stream *s)
{
    int64_t kept = s->req.kind == CLIENT_STREAM_LOGS ? read_kept(s, 0, NULL, 0) : -1;
    if (kept >= 0) {
        begin_kept(s, kept);
        return;
    }
    if (!s->g->warden) {
        stream_fail(s, -ERR_UNAVAILABLE, "the warden is not running: files cannot be read");
        loop_post(s->g->loop, stream_posted, s);
        return;
    }
    s->asking = true;
    if (s->req.kind != CLIENT_STREAM_LOGS) {
        s->asking = false;
        open_current(s);
    } else if (s->req.follow) {
        warden_open(s->g->warden, s->id, log_dir, on_log_dir, s);
    } else {
        list_logs(s, 0);
    }
}

static void
check_request(struct client_stream *s, const struct client_stream_request *req)
{
    struct alloc_runner *ar = alloc_runner_find(s->all->allocs, req->alloc_id);
    if (!ar)
        err_set(&s->e, -ERR_NOT_FOUND, "allocation \"%.40s\" is not on this node", req->alloc_id);
    else if (s->all->n > CLIENT_STREAMS_MAX)
        err_set(&s->e, -ERR_BUSY, "%d streams are open on this node: close some",
                CLIENT_STREAMS_MAX);
    else if (req->offset < 0 || req->limit < 0)
        err_set(&s->e, -ERR_INVALID, "offset and limit cannot be negative");
    else if (req->kind != CLIENT_STREAM_LOGS)
        fs_check_path(s, str_or(req->path, ""), &s->name, &s->e);
    else if (!str_eq(req->log_type, "stdout") && !str_eq(req->log_type, "stderr"))
        err_set(&s->e, -ERR_INVALID, "log type \"%.32s\" must be \"stdout\" or \"stderr\"",
                str_or(req->log_type, ""));
    else if (!alloc_runner_task(ar, str_or(req->task, "")))
        err_set(&s->e, -ERR_INVALID, "unknown task name \"%.100s\"", str_or(req->task, ""));
    if (s->e.code)
        s->state = STREAM_FAIL;
}

struct streams *
streams_new(struct allocs *allocs)
{
    struct streams *all = mem_new(allocs->g, struct streams);
    *all = (struct streams){.g = allocs->g, .allocs = allocs};
    return all;
}

void
streams_open(struct streams *all, const struct client_stream_request *req, client_stream_opened *fn,
             void *arg)
{
    struct client_stream *s = mem_new(NULL, struct client_stream);
    s->all = all;
    s->g = all->g;
    s->fd = s->inotify = -1;
    s->req = *req;
    s->req.task = mem_strdup(s, req->task);
    s->req.log_type = mem_strdup(s, req->log_type);
    s->req.path = s->req.alloc_id = NULL;
    s->opened = fn;
    s->opened_arg = arg;
    s->frames =
        req->kind == CLIENT_STREAM_FRAMES || (req->kind == CLIENT_STREAM_LOGS && !req->plain);
    s->left = req->limit > 0 ? req->limit : -1;
    buf_init(&s->out, CLIENT_STREAM_OUT_MAX);
    str_copy(s->id, sizeof(s->id), str_or(req->alloc_id, ""));
    DL_PREPEND(all->first, s);
    all->n++;
    hold_take(&all->g->hold);
    check_request(s, req);
    if (s->state == STREAM_FAIL)
        loop_post(all->g->loop, stream_posted, s);
    else
        stream_begin(s);
}

/* --- reading --- */

static void
put_frame(struct client_stream *s, const void *data, size_t n, const char *event)
{
    struct stream_frame f = {.offset = s->pos, .file = s->name, .file_event = event};
    f.data = (struct bytes){data, n};
    json_encode(&s->out, &type_stream_frame, &f, 0);
}

/* The task is dead and this file read: was there a rotation that we have not seen? */
static void
last_look(struct client_stream *s)
{
    uint64_t next;
    pump_events(s);
    if (s->req.kind == CLIENT_STREAM_LOGS &&
        (s->overflow || log_index_next(&s->set, s->index, &next)))
        return; /* still READ: the next step lists or opens it */
    if (s->req.kind == CLIENT_STREAM_LOGS && s->polled && !s->kept && !s->listed_last) {
        s->listed_last = true;
        list_again(s);
        return;
    }
    s->state = STREAM_END;
}

/* At the end of the current file. */
static void
at_end(struct client_stream *s)
{
    uint64_t next;
    struct stat st;
    if (s->req.kind == CLIENT_STREAM_LOGS && log_index_next(&s->set, s->index, &next)) {
        s->index = next;
        s->pos = 0;
        fd_close(&s->fd);
        open_current(s);
        return;
    }
    if (!s->req.follow || s->left == 0) {
        s->state = STREAM_END;
        return;
    }
    if (s->req.kind == CLIENT_STREAM_FRAMES && fstat(s->fd, &st) == 0) {
        if (st.st_size < s->pos) {
            s->pos = 0;
            put_frame(s, NULL, 0, "file truncated");
            return;
        }
        s->deleted = s->deleted || st.st_nlink == 0;
    }
    if (s->deleted) {
        put_frame(s, NULL, 0, "file deleted");
        s->state = STREAM_END;
    } else if (!task_is_over(s)) {
        wait_more(s);
    } else {
        last_look(s);
    }
}

/* Data of the file, or of the engine, into `p`; 0 at its end. */
static ssize_t
read_file(struct client_stream *s, void *p, size_t n)
{
    if (s->left >= 0 && (int64_t)n > s->left)
        n = (size_t)s->left;
    if (n == 0)
        return 0;
    ssize_t got = s->kept ? read_kept(s, s->pos, p, n) : pread(s->fd, p, n, s->pos);
    if (got < 0)
        return s->kept ? got : -errno;
    s->pos += got;
    if (s->left >= 0)
        s->left -= got;
    return got;
}

static size_t
stream_drain(struct client_stream *s, void *p, size_t n)
{
    size_t have = s->out.len - s->out_at;
    if (have == 0)
        return 0;
    if (n > have)
        n = have;
    memcpy(p, s->out.data + s->out_at, n);
    s->out_at += n;
    if (s->out_at == s->out.len) {
        buf_reset(&s->out);
        s->out_at = 0;
    }
    return n;
}

/* One step in state READ: > 0 bytes in p, 0 look at the state again, < 0 error. */
static ssize_t
read_step(struct client_stream *s, void *p, size_t n)
{
    if (s->overflow && s->req.kind == CLIENT_STREAM_LOGS) {
        list_again(s);
        return 0;
    }
    if (s->fd < 0 && !s->kept) { /* logs, woken before there was a file */
        stream_seek(s);
        return 0;
    }
    if (!s->frames) {
        ssize_t got = read_file(s, p, n);
        if (got == 0)
            at_end(s);
        return got;
    }
    uint8_t chunk[CLIENT_FRAME_MAX];
    ssize_t got = read_file(s, chunk, sizeof(chunk));
    if (got > 0)
        put_frame(s, chunk, (size_t)got, NULL);
    else if (got == 0)
        at_end(s);
    return got < 0 ? got : 0;
}

ssize_t
client_stream_read(struct client_stream *s, void *p, size_t n, void (*ready)(void *arg), void *arg)
{
    ASSERT(n > 0 && !s->closed);
    for (;;) {
        size_t got = stream_drain(s, p, n);
        if (got > 0)
            return (ssize_t)got;
        if (s->state == STREAM_END)
            return 0;
        if (s->state == STREAM_FAIL)
            return s->e.code;
        if (s->state != STREAM_READ || s->asking) {
            s->ready = ready;
            s->ready_arg = arg;
            return -EAGAIN;
        }
        ssize_t r = read_step(s, p, n);
        if (r > 0)
            return r;
        if (r < 0)
            stream_fail(s, (int)r, "read failed");
    }
}
