/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that run in tasks. The warden starts one and hands over its descriptors; then a session
 * is between this loop and the process. Where an engine runs the task, it has the command as well, and
 * what goes both ways is its driver's (`far`). It lives in these steps:
 *
 *   ASKED     the warden is to start it; input is kept
 *   RUNS      bytes go both ways
 *   OVER      the process has ended, or is lost; what it wrote is still delivered
 *   TOLD      the last event was given; the owner frees it
 *
 * Nothing is read while the owner has paused; then the pipe fills and the process waits. Input that
 * the process does not read waits here, bounded.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "client/alloc/alloc_runner.h"
#include "client/io/exec.h"
#include "client/limits.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/plan.h"

enum {
    LINGER_MS = 1000, /* output after the end, where something else keeps it open */
    END_OF_FILE = 4   /* the terminal's character */
};

enum exec_state { EXEC_ASKED, EXEC_RUNS, EXEC_OVER, EXEC_TOLD };

struct channel {
    int fd; /* -1: closed */
    struct watch *watch;
};

struct execs {
    struct ground *g;
    struct allocs *allocs;
    struct client_exec *first;
    size_t n;
};

struct client_exec {                 /* a talloc context */
    struct client_exec *prev, *next; /* of all */
    struct execs *all;
    struct ground *g;
    const struct client_exec_events *events;
    void *arg;
    enum exec_state state;
    bool asking; /* a request to the warden, or a posted refusal, is out */
    bool busy;   /* in an event: freed after it */
    bool freed;
    bool tty;
    bool paused;
    bool full; /* the writer was told to stop */
    bool close_input;
    struct channel in, out[2], exit; /* with a terminal out[0] alone, for both directions */
    const struct engine_exec_ops *engine; /* instead of the channels; NULL: none */
    struct engine_exec *far;              /* ... its side; NULL: not yet, or over */
    struct buf input;
    size_t input_at;
    struct winsize size; /* asked for before it runs */
    bool resize;
    struct timer *linger;
    struct exec_exit end;
    struct err e; /* lost, or not started */
};

/* --- life --- */

static void
channel_close(struct channel *ch)
{
    watch_stop(TAKE(ch->watch));
    fd_close(&ch->fd);
}

static void
close_all(struct client_exec *x)
{
    channel_close(&x->in);
    channel_close(&x->out[0]);
    channel_close(&x->out[1]);
    channel_close(&x->exit);
    timer_stop(TAKE(x->linger));
    if (x->far)
        x->engine->close(TAKE(x->far));
}

static void
exec_release(struct client_exec *x)
{
    struct execs *all = x->all;
    close_all(x);
    buf_done(&x->input);
    DL_DELETE(all->first, x);
    all->n--;
    talloc_free(x);
    hold_release(&all->g->hold);
}

void
client_exec_free(struct client_exec *x)
{
    x->freed = true;
    close_all(x);
    if (!x->asking && !x->busy)
        exec_release(x);
}

/* After an event, which may have freed the session: false, and it is gone. */
static bool
still_there(struct client_exec *x)
{
    x->busy = false;
    if (x->freed && !x->asking)
        exec_release(x);
    else
        return !x->freed;
    return false;
}

static void
tell_end(struct client_exec *x)
{
    if (x->state == EXEC_TOLD || x->freed)
        return;
    x->state = EXEC_TOLD;
    close_all(x);
    x->busy = true;
    if (x->e.code)
        x->events->failed(x->arg, &x->e);
    else
        x->events->exited(x->arg, x->end.code, x->end.signal);
    (void)still_there(x);
}

/* --- output --- */

static unsigned
terminal_events(const struct client_exec *x)
{
    return (x->paused ? 0 : WATCH_READ) | (x->input.len > x->input_at ? WATCH_WRITE : 0);
}

static void
arrange(struct client_exec *x)
{
    for (int i = 0; i < 2; i++)
        if (x->out[i].watch)
            watch_set(x->out[i].watch, x->tty ? terminal_events(x) : x->paused ? 0 : WATCH_READ);
    if (x->in.watch)
        watch_set(x->in.watch, x->input.len > x->input_at ? WATCH_WRITE : 0);
}

static void
on_linger(void *arg)
{
    struct client_exec *x = arg;
    x->linger = NULL;
    tell_end(x);
}

/* The end is told when all is delivered, or when nothing more came for a while: what has left the
 * session may keep its output open. */
static void
await_output(struct client_exec *x)
{
    if (x->state != EXEC_OVER)
        return;
    timer_stop(TAKE(x->linger));
    if (x->out[0].fd < 0 && x->out[1].fd < 0)
        tell_end(x);
    else if (!x->paused)
        x->linger = timer_start(x->g->loop, LINGER_MS, on_linger, x);
}

static void
output_ended(struct client_exec *x, int i)
{
    channel_close(&x->out[i]);
    x->busy = true;
    x->events->closed(x->arg, i + 1);
    if (still_there(x))
        await_output(x);
}

static void
read_output(struct client_exec *x, int i)
{
    uint8_t chunk[CLIENT_EXEC_CHUNK];
    ssize_t n = read(x->out[i].fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* EIO: nobody has the terminal any more */
        output_ended(x, i);
        return;
    }
    x->busy = true;
    x->events->output(x->arg, i + 1, chunk, (size_t)n);
    if (still_there(x))
        await_output(x);
}

/* --- input --- */

static size_t
waiting(const struct client_exec *x)
{
    return x->input.len - x->input_at + (x->far ? x->engine->queued(x->far) : 0);
}

static void
drop_input(struct client_exec *x)
{
    buf_reset(&x->input);
    x->input_at = 0;
    channel_close(&x->in);
}

static void
write_far(struct client_exec *x)
{
    if (x->state != EXEC_RUNS || !x->far)
        return;
    if (x->input.len > 0)
        x->engine->write(x->far, x->input.data, x->input.len);
    buf_reset(&x->input);
    if (x->close_input && !x->tty)
        x->engine->end_input(x->far);
}

static void
write_input(struct client_exec *x)
{
    if (x->engine) {
        write_far(x);
        return;
    }
    int fd = x->tty ? x->out[0].fd : x->in.fd;
    while (fd >= 0 && waiting(x) > 0) {
        ssize_t n = write(fd, x->input.data + x->input_at, waiting(x));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) { /* it reads no more */
            drop_input(x);
            return;
        }
        x->input_at += (size_t)n;
    }
    if (fd < 0 && x->state == EXEC_ASKED)
        return;
    buf_reset(&x->input);
    x->input_at = 0;
    if (x->close_input)
        channel_close(&x->in);
}

static void
room_again(struct client_exec *x)
{
    if (!x->full || waiting(x) > CLIENT_EXEC_INPUT_MAX / 4)
        return;
    x->full = false;
    x->busy = true;
    x->events->writable(x->arg);
    (void)still_there(x);
}

int
client_exec_write(struct client_exec *x, const void *data, size_t n)
{
    if (x->close_input || x->state >= EXEC_OVER ||
        (x->state == EXEC_RUNS && !x->tty && !x->engine && x->in.fd < 0))
        return 0;
    if (n > CLIENT_EXEC_INPUT_MAX - waiting(x))
        return -ERR_LIMIT;
    if (x->input_at > 0) { /* what was written makes room */
        size_t left = waiting(x);
        memmove(x->input.data, x->input.data + x->input_at, left);
        x->input.len = left;
        x->input_at = 0;
    }
    buf_put(&x->input, data, n);
    write_input(x);
    arrange(x);
    x->full = x->full || waiting(x) > CLIENT_EXEC_INPUT_MAX / 2;
    return x->full ? -EAGAIN : 0;
}

void
client_exec_close_input(struct client_exec *x)
{
    static const char end = END_OF_FILE;
    if (x->close_input)
        return;
    if (x->tty)
        (void)client_exec_write(x, &end, 1);
    x->close_input = true;
    write_input(x);
    arrange(x);
}

/* --- events of the loop --- */

static void
on_input(void *arg, int fd, unsigned events)
{
    struct client_exec *x = arg;
    (void)fd;
    if ((events & WATCH_ERROR) != 0)
        drop_input(x); /* nobody reads it */
    else
        write_input(x);
    arrange(x);
    room_again(x);
}

static void
on_output(void *arg, int fd, unsigned events)
{
    struct client_exec *x = arg;
    if (x->tty && (events & WATCH_WRITE) != 0) {
        write_input(x);
        arrange(x);
        if ((events & ~(unsigned)WATCH_WRITE) == 0) {
            room_again(x);
            return;
        }
    }
    if (!x->paused)
        read_output(x, fd == x->out[0].fd ? 0 : 1);
}

/* The joiner's only word, or none: the task ended, and its joiner with it. */
static void
on_exit_told(void *arg, int fd, unsigned events)
{
    struct client_exec *x = arg;
    (void)events;
    ssize_t n = recv(fd, &x->end, sizeof(x->end), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof(x->end))
        err_set(&x->e, -ERR_CLOSED, "the task ended, and the command with it");
    x->state = EXEC_OVER;
    channel_close(&x->exit);
    if (!x->tty)
        drop_input(x);
    await_output(x);
}

static bool
watch_channel(struct client_exec *x, struct channel *ch, int fd, unsigned events, watch_fn *fn)
{
    ch->fd = fd;
    if (fd < 0)
        return true;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    ch->watch = watch_fd(x->g->loop, fd, events, fn, x);
    return ch->watch != NULL;
}

static void
on_started(void *arg, const struct err *e, struct warden_reply *r)
{
    struct client_exec *x = arg;
    x->asking = false;
    if (x->freed || x->state == EXEC_TOLD) { /* who is told by the closing of the reply's end */
        if (x->freed)
            exec_release(x);
        return;
    }
    if (e) {
        x->e = *e;
        tell_end(x);
        return;
    }
    bool ok = watch_channel(x, &x->in, TAKE_FD(r->exec[0]), WATCH_WRITE, on_input);
    ok = watch_channel(x, &x->out[0], TAKE_FD(r->exec[1]), WATCH_READ, on_output) && ok;
    ok = watch_channel(x, &x->out[1], TAKE_FD(r->exec[2]), WATCH_READ, on_output) && ok;
    ok = watch_channel(x, &x->exit, TAKE_FD(r->exit), WATCH_READ, on_exit_told) && ok;
    if (!ok || x->exit.fd < 0) {
        err_set(&x->e, -ERR_INTERNAL, "the warden sent no descriptors of the command's");
        tell_end(x);
        return;
    }
    x->state = EXEC_RUNS;
    if (x->resize)
        (void)ioctl(x->out[0].fd, TIOCSWINSZ, &x->size);
    write_input(x);
    arrange(x);
    room_again(x);
}

/* --- a command of an engine's --- */

static void
far_opened(void *arg)
{
    struct client_exec *x = arg;
    x->state = EXEC_RUNS;
    if (x->paused)
        x->engine->read(x->far, false);
    if (x->resize)
        x->engine->resize(x->far, x->size.ws_row, x->size.ws_col);
    write_input(x);
    room_again(x);
}

static void
far_output(void *arg, int stream, const void *p, size_t n)
{
    struct client_exec *x = arg;
    bool there = true;
    for (size_t at = 0; at < n && there;) {
        size_t k = n - at < CLIENT_EXEC_CHUNK ? n - at : CLIENT_EXEC_CHUNK;
        x->busy = true;
        x->events->output(x->arg, stream, (const char *)p + at, k);
        there = still_there(x);
        at += k;
    }
}

static void
far_drained(void *arg)
{
    room_again(arg);
}

static void
far_ended(void *arg, int code, const struct err *e)
{
    struct client_exec *x = arg;
    bool ran = x->state == EXEC_RUNS;
    x->state = EXEC_OVER;
    x->end.code = code;
    if (e)
        x->e = *e;
    for (int i = 0; i < 2 && ran && !e; i++)
        if (i == 0 || !x->tty) {
            x->busy = true;
            x->events->closed(x->arg, i + 1);
            if (!still_there(x))
                return;
        }
    tell_end(x);
}

static const struct engine_exec_events far_events = {far_opened, far_output, far_drained,
                                                     far_ended};

static void
open_far(struct client_exec *x, const struct task_runner *tr,
         const struct client_exec_request *req)
{
    const struct engine_place p = engine_place(tr);
    const struct hand_exec spec = {
        .command = req->command, .tty = req->tty, .rows = req->rows, .columns = req->columns};
    x->engine = tr->driver->engine->exec;
    x->asking = false;
    x->far = x->engine->open(&p, &spec, &far_events, x);
}

/* --- what the owner asks --- */

void
client_exec_resize(struct client_exec *x, int64_t rows, int64_t columns)
{
    if (!x->tty || rows < 0 || rows > UINT16_MAX || columns < 0 || columns > UINT16_MAX)
        return;
    x->size = (struct winsize){.ws_row = (uint16_t)rows, .ws_col = (uint16_t)columns};
    x->resize = true;
    if (x->far && x->state == EXEC_RUNS)
        x->engine->resize(x->far, x->size.ws_row, x->size.ws_col);
    if (x->out[0].fd >= 0)
        (void)ioctl(x->out[0].fd, TIOCSWINSZ, &x->size);
}

void
client_exec_pause(struct client_exec *x, bool on)
{
    if (x->paused == on)
        return;
    x->paused = on;
    arrange(x);
    if (x->far)
        x->engine->read(x->far, !on);
    if (on)
        timer_stop(TAKE(x->linger));
    else if (x->state == EXEC_OVER && !x->linger)
        x->linger = timer_start(x->g->loop, LINGER_MS, on_linger, x);
}

static void
refused(void *arg)
{
    struct client_exec *x = arg;
    x->asking = false;
    if (x->freed)
        exec_release(x);
    else
        tell_end(x);
}

static bool
by_engine(const struct task_runner *tr)
{
    return tr->driver && tr->driver->engine && tr->driver->engine->exec;
}

/* The task that is meant; NULL with x->e set. */
static struct task_runner *
find_task(struct client_exec *x, const char *alloc_id, const char *task)
{
    struct alloc_runner *ar = alloc_runner_find(x->all->allocs, alloc_id);
    struct task_runner *tr = NULL;
    size_t n = 0;
    if (!ar) {
        err_set(&x->e, -ERR_NOT_FOUND, "allocation \"%.40s\" is not on this node", alloc_id);
        return NULL;
    }
    for (size_t i = 0; i < ar->n; i++) {
        if (!str_empty(task) ? !str_eq(ar->tasks[i].sm.t->name, task)
                             : ar->tasks[i].sm.t->phase != TASK_RUNNING)
            continue;
        tr = &ar->tasks[i];
        n++;
    }
    if (n > 1)
        err_set(&x->e, -ERR_INVALID, "allocation \"%s\" runs %zu tasks: name one", ar->a.id, n);
    else if (!tr && !str_empty(task))
        err_set(&x->e, -ERR_NOT_FOUND, "allocation \"%s\" has no task \"%.100s\"", ar->a.id, task);
    else if (!tr || tr->sm.t->phase != TASK_RUNNING)
        err_set(&x->e, -ERR_CONFLICT, "task \"%.100s\" is not running",
                tr ? tr->sm.t->name : str_or(task, ""));
    else if (!tr->handle->exec && !by_engine(tr))
        err_set(&x->e, -ERR_UNSUPPORTED, "task \"%s\" of driver \"%s\" is no process",
                tr->sm.t->name, tr->task->driver);
    return x->e.code ? NULL : tr;
}

static void
begin(struct client_exec *x, const char *alloc_id, const struct client_exec_request *req)
{
    if (x->g->stopping)
        err_set(&x->e, -ERR_UNAVAILABLE, "this agent stops");
    else if (!x->g->warden)
        err_set(&x->e, -ERR_UNAVAILABLE, "the warden is not running: no command can start");
    else if (x->all->n > CLIENT_EXECS_MAX)
        err_set(&x->e, -ERR_BUSY, "%d commands run in tasks of this node: end one",
                CLIENT_EXECS_MAX);
    else if (req->command.n == 0 || str_empty(req->command.v[0]))
        err_set(&x->e, -ERR_INVALID, "no command");
    if (x->e.code)
        return;
    struct task_runner *tr = find_task(x, alloc_id, req->task);
    const struct exec_request q = {
        .command = req->command, .tty = req->tty, .rows = req->rows, .columns = req->columns};
    if (tr && !tr->handle->exec && engine_place(tr).hand)
        open_far(x, tr, req);
    else if (tr && !tr->handle->exec)
        err_set(&x->e, -ERR_UNAVAILABLE, "the driver is off on this node");
    else if (tr)
        (void)tr->handle->exec(tr, &q, on_started, x, &x->e);
}

struct execs *
execs_new(struct allocs *allocs)
{
    struct execs *all = mem_new(allocs->g, struct execs);
    *all = (struct execs){.g = allocs->g, .allocs = allocs};
    return all;
}

struct client_exec *
execs_open(struct execs *all, const char *alloc_id, const struct client_exec_request *req,
           const struct client_exec_events *events, void *arg)
{
    struct client_exec *x = mem_new(NULL, struct client_exec);
    *x = (struct client_exec){
        .all = all, .g = all->g, .events = events, .arg = arg, .tty = req->tty};
    x->in.fd = x->out[0].fd = x->out[1].fd = x->exit.fd = -1;
    buf_init(&x->input, CLIENT_EXEC_INPUT_MAX);
    DL_PREPEND(all->first, x);
    all->n++;
    hold_take(&all->g->hold);
    x->asking = true;
    begin(x, alloc_id, req);
    if (x->e.code)
        loop_post(all->g->loop, refused, x);
    return x;
}

void
execs_stop(struct execs *all)
{
    struct client_exec *x, *next;
    DL_FOREACH_SAFE (all->first, x, next) {
        if (x->state == EXEC_TOLD || (x->asking && x->e.code))
            continue;
        err_set(&x->e, -ERR_UNAVAILABLE, "this agent stops");
        tell_end(x);
    }
}
