/* SPDX-License-Identifier: Apache-2.0
 *
 * A command in a task that the warden started. The warden starts the command as well and hands over
 * its descriptors; then all is between this loop and the process. Nothing is read while the owner
 * has paused: the pipe fills and the process waits. Input that the process does not read waits
 * here.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/limits.h"
#include "client/task/handle.h"
#include "client/task/launch.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/mem.h"
#include "isolation/launch/plan.h"

enum { LINGER_MS = 1000 /* output after the end, where something else keeps it open */ };

struct channel {
    int fd; /* -1: closed */
    struct watch *watch;
};

struct process_exec { /* a talloc context */
    struct task_exec base;
    struct ground *g;
    const struct task_exec_events *up;
    void *arg;
    struct channel in, out[2], exit; /* with a terminal out[0] alone, for both directions */
    struct buf input;
    size_t input_at;
    struct timer *linger;
    struct exec_exit end;
    struct err e; /* of its end: lost, or not started */
    bool asking;  /* the warden's answer is to come */
    bool busy;    /* in an event: freed after it */
    bool closed;  /* by its owner */
    bool tty;
    bool held;    /* its output is not read */
    bool no_more; /* input: closed when all is written */
    bool over;    /* it has ended; what it wrote is still delivered */
};

static struct process_exec *
process_exec_of(struct task_exec *x)
{
    return (struct process_exec *)x;
}

/* --- life --- */

static void
channel_close(struct channel *ch)
{
    watch_stop(TAKE(ch->watch));
    fd_close(&ch->fd);
}

static void
process_exec_release(struct process_exec *x)
{
    struct ground *g = x->g;
    buf_done(&x->input);
    talloc_free(x);
    hold_release(&g->hold);
}

static void
exec_close(struct task_exec *base)
{
    struct process_exec *x = process_exec_of(base);
    x->closed = true;
    channel_close(&x->in);
    channel_close(&x->out[0]);
    channel_close(&x->out[1]);
    channel_close(&x->exit);
    timer_stop(TAKE(x->linger));
    if (!x->asking && !x->busy)
        process_exec_release(x);
}

/* After an event, in which it may have been closed: false, and it is gone. */
static bool
still_there(struct process_exec *x)
{
    x->busy = false;
    if (x->closed)
        process_exec_release(x);
    else
        return true;
    return false;
}

static void
tell_end(struct process_exec *x)
{
    x->busy = true;
    x->up->ended(x->arg, x->end.code, x->end.signal, x->e.code ? &x->e : NULL);
    (void)still_there(x);
}

/* --- output --- */

static unsigned
input_events(const struct process_exec *x)
{
    return x->input.len > x->input_at ? WATCH_WRITE : 0;
}

static void
process_exec_arrange(struct process_exec *x)
{
    unsigned events = (x->held ? 0 : WATCH_READ) | (x->tty ? input_events(x) : 0);
    for (int i = 0; i < 2; i++)
        if (x->out[i].watch)
            watch_set(x->out[i].watch, events);
    if (x->in.watch)
        watch_set(x->in.watch, input_events(x));
}

static void
on_linger(void *arg)
{
    struct process_exec *x = arg;
    x->linger = NULL;
    tell_end(x);
}

/* The end is told when all is delivered, or when nothing more came for a while: what has left the
 * session may keep its output open. */
static void
await_output(struct process_exec *x)
{
    if (!x->over)
        return;
    timer_stop(TAKE(x->linger));
    if (x->out[0].fd < 0 && x->out[1].fd < 0)
        tell_end(x);
    else if (!x->held)
        x->linger = timer_start(x->g->loop, LINGER_MS, on_linger, x);
}

static void
read_output(struct process_exec *x, int i)
{
    uint8_t chunk[CLIENT_EXEC_CHUNK];
    ssize_t n = read(x->out[i].fd, chunk, sizeof(chunk));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    x->busy = true;
    if (n > 0) {
        x->up->output(x->arg, i + 1, chunk, (size_t)n);
    } else { /* EIO: nobody has the terminal any more */
        channel_close(&x->out[i]);
        x->up->closed(x->arg, i + 1);
    }
    if (still_there(x))
        await_output(x);
}

static void
exec_read(struct task_exec *base, bool on)
{
    struct process_exec *x = process_exec_of(base);
    x->held = !on;
    process_exec_arrange(x);
    if (!on)
        timer_stop(TAKE(x->linger));
    else if (x->over && !x->linger)
        x->linger = timer_start(x->g->loop, LINGER_MS, on_linger, x);
}

/* --- input --- */

static size_t
exec_queued(const struct task_exec *base)
{
    const struct process_exec *x = (const struct process_exec *)base;
    return x->input.len - x->input_at;
}

static void
drop_input(struct process_exec *x)
{
    buf_reset(&x->input);
    x->input_at = 0;
    channel_close(&x->in);
}

static void
write_input(struct process_exec *x)
{
    int fd = x->tty ? x->out[0].fd : x->in.fd;
    while (fd >= 0 && x->input_at < x->input.len) {
        ssize_t n = write(fd, x->input.data + x->input_at, x->input.len - x->input_at);
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
    buf_reset(&x->input);
    x->input_at = 0;
    if (x->no_more)
        channel_close(&x->in);
}

static void
exec_write(struct task_exec *base, const void *p, size_t n)
{
    struct process_exec *x = process_exec_of(base);
    if (x->over)
        return;
    if (x->input_at > 0) { /* what was written makes room */
        buf_consume(&x->input, x->input_at);
        x->input_at = 0;
    }
    buf_put(&x->input, p, n);
    write_input(x);
    process_exec_arrange(x);
}

static void
exec_end_input(struct task_exec *base)
{
    struct process_exec *x = process_exec_of(base);
    x->no_more = true;
    write_input(x);
    process_exec_arrange(x);
}

static void
exec_resize(struct task_exec *base, uint16_t rows, uint16_t columns)
{
    const struct winsize size = {.ws_row = rows, .ws_col = columns};
    if (process_exec_of(base)->out[0].fd >= 0)
        (void)ioctl(process_exec_of(base)->out[0].fd, TIOCSWINSZ, &size);
}

static const struct task_exec_verbs verbs = {.write = exec_write,
                                             .queued = exec_queued,
                                             .end_input = exec_end_input,
                                             .resize = exec_resize,
                                             .read = exec_read,
                                             .close = exec_close};

/* --- events of the loop --- */

static void
on_input(void *arg, int fd, unsigned events)
{
    struct process_exec *x = arg;
    (void)fd;
    if ((events & WATCH_ERROR) != 0)
        drop_input(x); /* nobody reads it */
    else
        write_input(x);
    process_exec_arrange(x);
    x->busy = true;
    x->up->drained(x->arg);
    (void)still_there(x);
}

static void
on_output(void *arg, int fd, unsigned events)
{
    struct process_exec *x = arg;
    if (x->tty && (events & WATCH_WRITE) != 0) {
        write_input(x);
        process_exec_arrange(x);
        if ((events & ~(unsigned)WATCH_WRITE) == 0) {
            x->busy = true;
            x->up->drained(x->arg);
            (void)still_there(x);
            return;
        }
    }
    if (!x->held)
        read_output(x, fd == x->out[0].fd ? 0 : 1);
}

/* The joiner's only word, or none: the task ended, and its joiner with it. */
static void
on_exit_told(void *arg, int fd, unsigned events)
{
    struct process_exec *x = arg;
    (void)events;
    ssize_t n = recv(fd, &x->end, sizeof(x->end), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n != sizeof(x->end))
        err_set(&x->e, -ERR_CLOSED, "the task ended, and the command with it");
    x->over = true;
    channel_close(&x->exit);
    if (!x->tty)
        drop_input(x);
    await_output(x);
}

static bool
watch_channel(struct process_exec *x, struct channel *ch, int fd, unsigned events, watch_fn *fn)
{
    ch->fd = fd;
    if (fd < 0)
        return true;
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    ch->watch = watch_fd(x->g->loop, fd, events, fn, x);
    return ch->watch != NULL;
}

static bool
take_channels(struct process_exec *x, struct warden_reply *r)
{
    bool ok = watch_channel(x, &x->in, TAKE_FD(r->exec[0]), WATCH_WRITE, on_input);
    ok = watch_channel(x, &x->out[0], TAKE_FD(r->exec[1]), WATCH_READ, on_output) && ok;
    ok = watch_channel(x, &x->out[1], TAKE_FD(r->exec[2]), WATCH_READ, on_output) && ok;
    return watch_channel(x, &x->exit, TAKE_FD(r->exit), WATCH_READ, on_exit_told) && ok &&
           x->exit.fd >= 0;
}

static void
on_begun(void *arg, const struct err *e, struct warden_reply *r)
{
    struct process_exec *x = arg;
    x->asking = false;
    if (x->closed) { /* the command is told by the closing of the reply's end */
        process_exec_release(x);
        return;
    }
    if (e)
        x->e = *e;
    else if (!take_channels(x, r))
        err_set(&x->e, -ERR_INTERNAL, "the warden sent no descriptors of the command's");
    if (x->e.code) {
        tell_end(x);
        return;
    }
    x->busy = true;
    x->up->opened(x->arg);
    if (still_there(x))
        process_exec_arrange(x);
}

struct task_exec *
process_exec(struct task_runner *tr, const struct hand_exec *spec,
             const struct task_exec_events *up, void *arg, struct err *e)
{
    struct ground *g = tr->ar->g;
    auto_mem void *tmp = mem_ctx("exec");
    if (!g->warden) {
        err_set(e, -ERR_UNAVAILABLE, "the warden is not running: no command can start");
        return NULL;
    }
    const struct launch_spec *launch = launch_spec_build(tmp, tr, e);
    if (!launch)
        return NULL;
    const struct exec_request q = {.command = spec->command,
                                   .tty = spec->tty,
                                   .rows = spec->rows,
                                   .columns = spec->columns,
                                   .env = launch->env,
                                   .work_dir = launch->work_dir};
    struct process_exec *x = mem_new(NULL, struct process_exec);
    *x = (struct process_exec){.base = {&verbs}, .g = g, .up = up, .arg = arg, .tty = spec->tty};
    x->in.fd = x->out[0].fd = x->out[1].fd = x->exit.fd = -1;
    buf_init(&x->input, CLIENT_EXEC_INPUT_MAX);
    hold_take(&g->hold);
    x->asking = true;
    warden_exec(g->warden, tr->ar->id, tr->sm.t->name, &q, on_begun, x);
    return &x->base;
}
