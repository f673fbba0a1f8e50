/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that run in tasks: sessions of an owner with a command, which the handle of its task
 * runs (struct task_exec). A session is in these steps:
 *
 *   ASKED     the command is to start; input is kept here
 *   RUNS      bytes go both ways
 *   OVER      the command has ended, or is lost
 *   TOLD      the last event was given; the owner frees the session
 *
 * Nothing is read while the owner has paused. Input that the command does not read waits, bounded.
 */
#include "client/io/exec.h"

#include <errno.h>
#include <utlist.h>

#include "client/alloc/alloc_runner.h"
#include "client/limits.h"
#include "common/buf.h"
#include "common/mem.h"
#include "common/str.h"

enum { END_OF_FILE = 4 /* the terminal's character */ };

enum exec_state { EXEC_ASKED, EXEC_RUNS, EXEC_OVER, EXEC_TOLD };

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
    struct task_exec *far; /* the command; NULL: none, or over */
    bool refused;          /* there is none, which is posted */
    bool busy;             /* in an event: freed after it */
    bool freed;
    bool tty;
    bool paused;
    bool full;        /* the writer was told to stop */
    bool close_input; /* after what waits */
    bool closed[2];   /* the end of that stream was told */
    struct buf input; /* until the command runs */
    uint16_t rows, columns; /* asked for before it runs; 0: not */
    struct err e;           /* lost, or not started */
};

/* --- life --- */

static void
far_close(struct client_exec *x)
{
    struct task_exec *far = TAKE(x->far);
    if (far)
        far->verbs->close(far);
}

static void
exec_release(struct client_exec *x)
{
    struct execs *all = x->all;
    far_close(x);
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
    far_close(x);
    if (!x->refused && !x->busy)
        exec_release(x);
}

/* After an event, which may have freed the session: false, and it is gone. */
static bool
still_there(struct client_exec *x)
{
    x->busy = false;
    if (!x->freed)
        return true;
    if (!x->refused)
        exec_release(x);
    return false;
}

static void
tell_end(struct client_exec *x, int code, int sig)
{
    if (x->state == EXEC_TOLD || x->freed)
        return;
    x->state = EXEC_TOLD;
    far_close(x);
    x->busy = true;
    if (x->e.code)
        x->events->failed(x->arg, &x->e);
    else
        x->events->exited(x->arg, code, sig);
    (void)still_there(x);
}

/* --- input --- */

static size_t
exec_waiting(const struct client_exec *x)
{
    return x->input.len + (x->far ? x->far->verbs->queued(x->far) : 0);
}

/* Passes on the input that was kept, and the end of the input behind it. */
static void
pass_input(struct client_exec *x)
{
    if (x->state != EXEC_RUNS)
        return;
    if (x->input.len > 0)
        x->far->verbs->write(x->far, x->input.data, x->input.len);
    buf_reset(&x->input);
    if (x->close_input && !x->tty)
        x->far->verbs->end_input(x->far);
}

static void
far_drained(void *arg)
{
    struct client_exec *x = arg;
    if (!x->full || exec_waiting(x) > CLIENT_EXEC_INPUT_MAX / 4)
        return;
    x->full = false;
    x->busy = true;
    x->events->writable(x->arg);
    (void)still_there(x);
}

int
client_exec_write(struct client_exec *x, const void *data, size_t n)
{
    if (x->close_input || x->state >= EXEC_OVER)
        return 0;
    if (n > CLIENT_EXEC_INPUT_MAX || exec_waiting(x) > CLIENT_EXEC_INPUT_MAX - n)
        return -ERR_LIMIT;
    buf_put(&x->input, data, n);
    pass_input(x);
    x->full = x->full || exec_waiting(x) > CLIENT_EXEC_INPUT_MAX / 2;
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
    pass_input(x);
}

/* --- what the command tells --- */

static void
far_opened(void *arg)
{
    struct client_exec *x = arg;
    x->state = EXEC_RUNS;
    if (x->paused)
        x->far->verbs->read(x->far, false);
    if (x->rows || x->columns)
        x->far->verbs->resize(x->far, x->rows, x->columns);
    pass_input(x);
    far_drained(x);
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
far_closed(void *arg, int stream)
{
    struct client_exec *x = arg;
    x->closed[stream - 1] = true;
    x->busy = true;
    x->events->closed(x->arg, stream);
    (void)still_there(x);
}

static void
far_ended(void *arg, int code, int sig, const struct err *e)
{
    struct client_exec *x = arg;
    int streams = x->state != EXEC_RUNS || e ? 0 : x->tty ? 1 : 2;
    x->state = EXEC_OVER;
    if (e)
        x->e = *e;
    for (int i = 0; i < streams; i++)
        if (!x->closed[i]) {
            x->busy = true;
            x->events->closed(x->arg, i + 1);
            if (!still_there(x))
                return;
        }
    tell_end(x, code, sig);
}

static const struct task_exec_events far_events = {far_opened, far_output, far_closed, far_drained,
                                                   far_ended};

/* --- what the owner asks --- */

void
client_exec_resize(struct client_exec *x, int64_t rows, int64_t columns)
{
    if (!x->tty || rows < 0 || rows > UINT16_MAX || columns < 0 || columns > UINT16_MAX)
        return;
    x->rows = (uint16_t)rows;
    x->columns = (uint16_t)columns;
    if (x->state == EXEC_RUNS)
        x->far->verbs->resize(x->far, x->rows, x->columns);
}

void
client_exec_pause(struct client_exec *x, bool on)
{
    if (x->paused == on)
        return;
    x->paused = on;
    if (x->state == EXEC_RUNS)
        x->far->verbs->read(x->far, !on);
}

static void
exec_refused(void *arg)
{
    struct client_exec *x = arg;
    x->refused = false;
    if (x->freed)
        exec_release(x);
    else
        tell_end(x, 0, 0);
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
                             : !task_sm_lives(&ar->tasks[i].sm))
            continue;
        tr = &ar->tasks[i];
        n++;
    }
    if (n > 1)
        err_set(&x->e, -ERR_INVALID, "allocation \"%s\" runs %zu tasks: name one", ar->a.id, n);
    else if (!tr && !str_empty(task))
        err_set(&x->e, -ERR_NOT_FOUND, "allocation \"%s\" has no task \"%.100s\"", ar->a.id, task);
    else if (!tr || !task_sm_lives(&tr->sm))
        err_set(&x->e, -ERR_CONFLICT, "task \"%.100s\" is not running",
                tr ? tr->sm.t->name : str_or(task, ""));
    return x->e.code ? NULL : tr;
}

static void
exec_begin(struct client_exec *x, const char *alloc_id, const struct client_exec_request *req)
{
    const struct hand_exec spec = {
        .command = req->command, .tty = req->tty, .rows = req->rows, .columns = req->columns};
    if (x->g->stopping)
        err_set(&x->e, -ERR_UNAVAILABLE, "this agent stops");
    else if (x->all->n > CLIENT_EXECS_MAX)
        err_set(&x->e, -ERR_BUSY, "%d commands run in tasks of this node: end one",
                CLIENT_EXECS_MAX);
    else if (req->command.n == 0 || str_empty(req->command.v[0]))
        err_set(&x->e, -ERR_INVALID, "no command");
    struct task_runner *tr = x->e.code ? NULL : find_task(x, alloc_id, req->task);
    if (tr)
        x->far = tr->handle->exec(tr, &spec, &far_events, x, &x->e);
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
    buf_init(&x->input, CLIENT_EXEC_INPUT_MAX);
    DL_PREPEND(all->first, x);
    all->n++;
    hold_take(&all->g->hold);
    exec_begin(x, alloc_id, req);
    x->refused = !x->far;
    if (x->refused)
        loop_post(all->g->loop, exec_refused, x);
    return x;
}

void
execs_stop(struct execs *all)
{
    struct client_exec *x, *next;
    DL_FOREACH_SAFE (all->first, x, next) {
        if (x->state == EXEC_TOLD || x->refused)
            continue;
        err_set(&x->e, -ERR_UNAVAILABLE, "this agent stops");
        tell_end(x, 0, 0);
    }
}
