/* SPDX-License-Identifier: Apache-2.0
 *
 * A task that the warden starts: what was asked of it and has to be asked again, the watch on its
 * end, adoption. What makes `kill -9` harmless: a launch whose intent is durable and that the
 * warden does not know has not happened; anything else has a record, which stays until its end is
 * durable.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "client/task/handle.h"
#include "client/task/launch.h"
#include "client/task/task_limits.h"
#include "client/warden_link.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/record.h"

static void ask_adopt(struct task_runner *tr);

static const char *
name_of(const struct task_runner *tr)
{
    return tr->sm.t->name;
}

/* The connection to the warden broke: what was asked may have happened or not. */
static bool
process_unreachable(const struct err *e)
{
    return e->code == -ERR_UNAVAILABLE || e->code == -ERR_CLOSED;
}

/* Errors of a moment: the restart policy may try again. */
static bool
process_recoverable(int code)
{
    switch (-code) {
    case ERR_LIMIT: /* of the node: another task may end */
    case ERR_UNAVAILABLE:
    case ERR_TIMEOUT:
    case ERR_INTERNAL: /* the shim was killed during the start */
    case EAGAIN:
    case ETXTBSY: /* a file to seal is open for writing */
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
    case ENFILE:
        return true;
    default:
        return false;
    }
}

/* The warden answers, or is there again: what was not decided goes on. */
static void
process_decide(struct task_runner *tr)
{
    if (!tr->proc.want_adopt)
        return;
    tr->proc.want_adopt = false;
    if (tr->launching && !tr->proc.clean)
        tr->up->go_on(tr); /* it was to destroy the old record */
    else
        ask_adopt(tr);
}

static void
on_again(void *arg)
{
    struct task_runner *tr = arg;
    tr->proc.again = NULL;
    process_decide(tr);
}

static void
ask_again(struct task_runner *tr)
{
    tr->proc.want_adopt = true;
    timer_stop(tr->proc.again);
    tr->proc.again = timer_start(tr->ar->g->loop, CLIENT_AGAIN_MS, on_again, tr);
}

/* --- its end --- */

static void
close_fds(struct task_runner *tr)
{
    watch_stop(tr->proc.watch);
    tr->proc.watch = NULL;
    fd_close(&tr->proc.ended);
    fd_close(&tr->proc.cgroup);
    fd_close(&tr->proc.record);
}

static void
process_close(struct task_runner *tr)
{
    timer_stop(tr->proc.again);
    tr->proc.again = NULL;
    tr->proc.clean = false;
    close_fds(tr);
}

static void
on_destroyed(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct task_runner *tr = arg;
    if (!e && !tr->launching)
        tr->proc.clean = true;
    else if (e && process_unreachable(e))
        tr->proc.want_clean = true;
    hold_release(&tr->ar->hold);
}

/* A launch that has begun meanwhile forgets the end by itself, first. */
static void
process_destroy(struct task_runner *tr)
{
    tr->proc.want_clean = false;
    if (tr->launching || tr->proc.clean || task_sm_process(tr->sm.t) || !tr->ar->g->warden)
        return;
    hold_take(&tr->ar->hold);
    warden_destroy(tr->ar->g->warden, tr->ar->id, name_of(tr), on_destroyed, tr);
}

/* Returns the id of the task's leaf; 0: none. */
static uint64_t
process_cgroup_id(struct task_runner *tr)
{
    struct record rec;
    if (tr->proc.cgroup_id == 0 && tr->proc.record >= 0 &&
        record_read_raw(tr->proc.record, &rec) == 0)
        tr->proc.cgroup_id = rec.cgroup_id;
    return tr->proc.cgroup_id;
}

static void
ended_with(struct task_runner *tr, const struct task_record *rec)
{
    struct task_exit x = {.code = rec->exit_code,
                          .signal = rec->signal,
                          .oom_killed = rec->oom_killed,
                          .error = str_empty(rec->error) ? NULL : rec->error,
                          .with_machine = rec->with_machine,
                          .record = rec};
    struct bpf_run_counts n;
    if (bpf_read_run(&tr->ar->g->link->counters, process_cgroup_id(tr), &tr->runs_at, &n) &&
        n.ooms > 0) {
        x.oom_killed |= x.signal == SIGKILL;
        x.oom_pid = n.oom_pid;
        x.oom_comm = n.oom_comm;
        for (char *p = n.oom_comm; *p; p++)
            *p = *p < ' ' || *p > '~' ? '?' : *p;
    }
    if (x.signal != 0 && x.code == 0)
        x.code = 128 + x.signal;
    log_info("client", "task ended", "alloc_id", tr->ar->id, "task", name_of(tr), "exit_code",
             LOG_I64(x.code), "signal", LOG_I64(x.signal), NULL);
    tr->up->exited(tr, &x);
}

static void
process_vanished(struct task_runner *tr)
{
    log_warn("client", "task is gone without a record of its end", "alloc_id", tr->ar->id, "task",
             name_of(tr), NULL);
    tr->up->vanished(tr);
}

/* The pause process is ending, and what would be started now would end with it. It starts again
 * with another one, by another warden, of whose connection process_decide() hears. */
static void
await_pause(struct task_runner *tr)
{
    watch_stop(TAKE(tr->proc.watch));
    tr->proc.want_adopt = true;
    timer_stop(tr->proc.again);
    tr->proc.again = timer_start(tr->ar->g->loop, CLIENT_PAUSE_MS, on_again, tr);
}

static void
on_ended(void *arg, int fd, unsigned events)
{
    (void)fd;
    (void)events;
    struct task_runner *tr = arg;
    auto_mem void *tmp = mem_ctx("record");
    struct record r = {0};
    if (tr->proc.record >= 0)
        (void)record_read_raw(tr->proc.record, &r);
    (void)record_settle(&r, clock_wall_ns()); /* the shim was killed; the warden may not be there */
    if ((r.run.flags & RECORD_ENDING) != 0 && !task_sm_unwanted(tr->sm.t))
        await_pause(tr);
    else
        ended_with(tr, record_export(tmp, &r));
}

static void
take_fds(struct task_runner *tr, struct warden_reply *r)
{
    close_fds(tr);
    tr->proc.ended = TAKE_FD(r->ended);
    tr->proc.cgroup = TAKE_FD(r->cgroup);
    tr->proc.record = TAKE_FD(r->record);
    tr->proc.cgroup_id = 0;
    tr->proc.clean = false;
    if (tr->proc.ended >= 0)
        tr->proc.watch = watch_fd(tr->ar->g->loop, tr->proc.ended, WATCH_READ, on_ended, tr);
}

/* --- its launch --- */

static bool
process_begin(struct task_runner *tr)
{
    if (!tr->ar->g->warden) {
        tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, "the warden is not running", false);
        return false;
    }
    tr->events->need_ready(tr->ar);
    return true;
}

static void
on_cleared(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct task_runner *tr = arg;
    tr->asked = false;
    if (tr->ar->stopped) {
        /* nothing */
    } else if (!e) {
        tr->proc.clean = true;
        tr->up->go_on(tr);
    } else if (process_unreachable(e)) {
        tr->proc.want_adopt = true; /* link_up goes on with the chain */
    } else if (e->code == -ERR_BUSY) {
        ask_again(tr); /* it is being removed already */
    } else {
        tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE, e->text,
                       e->code != -ERR_INVALID && e->code != -ERR_POLICY);
    }
    hold_release(&tr->ar->hold);
}

static bool
process_clear(struct task_runner *tr)
{
    if (tr->proc.clean)
        return true;
    tr->asked = true;
    hold_take(&tr->ar->hold);
    warden_destroy(tr->ar->g->warden, tr->ar->id, name_of(tr), on_cleared, tr);
    return false;
}

static void
on_launched(void *arg, const struct err *e, struct warden_reply *r)
{
    struct task_runner *tr = arg;
    bool runs = !e && !tr->ar->stopped;
    if (runs) {
        take_fds(tr, r);
        log_info("client", "task started", "alloc_id", tr->ar->id, "task", name_of(tr), NULL);
        /* Before: the last event is then that it started. It still counts as asked for: a task
         * killed meanwhile is ended as a running one, not as never launched. */
        task_limits_warn(tr, r->msg->warning);
    }
    tr->asked = false;
    if (tr->ar->stopped) {
        /* nothing */
    } else if (runs) {
        int64_t started = r->msg->records.n > 0 ? r->msg->records.v[0]->started_at : 0;
        tr->up->started(tr, started != 0 ? clock_civil_of(started) : clock_civil_ns());
    } else if (process_unreachable(e)) {
        /* a launch may have happened: ask when the warden is back. */
        tr->proc.want_adopt = true;
    } else if (e->code == -ERR_CONFLICT) {
        ask_adopt(tr);
    } else if (e->code == -ERR_BUSY) {
        tr->proc.clean = false;
        ask_again(tr); /* the last run is being removed */
    } else {
        tr->proc.clean = false;
        if (alloc_network(tr->ar))
            tr->ar->ready = READY_NONE; /* the network may be what is missing: look again */
        tr->up->failed(tr, TASK_EVENT_DRIVER_FAILURE, e->text, process_recoverable(e->code));
    }
    hold_release(&tr->ar->hold);
}

static void
process_start(struct task_runner *tr)
{
    ASSERT(tr->launching && tr->persisted && !tr->asked); /* else kill -9 would lose or double it */
    ASSERT(tr->ar->ready == READY_YES);
    auto_mem void *tmp = mem_ctx("launch");
    struct err e = ERR_INIT;
    struct launch_spec *spec = launch_spec_build(tmp, tr, &e);
    if (!spec) {
        tr->up->failed(tr,
                       e.code == -ERR_INVALID ? TASK_EVENT_VALIDATION : TASK_EVENT_DRIVER_FAILURE,
                       e.text, false);
        return;
    }
    tr->asked = true;
    hold_take(&tr->ar->hold);
    warden_launch(tr->ar->g->warden, spec, on_launched, tr);
}

static bool
process_abort(struct task_runner *tr)
{
    if (tr->proc.want_adopt && tr->proc.clean)
        return false; /* it was asked for, and may have happened */
    tr->proc.want_adopt = false;
    return true;
}

/* --- adoption --- */

/* Takes over a task that runs, as the record says. */
static void
adopted_running(struct task_runner *tr, struct warden_reply *r, const struct task_record *rec)
{
    take_fds(tr, r);
    log_info("client", "task adopted", "alloc_id", tr->ar->id, "task", name_of(tr), NULL);
    tr->up->adopted(tr, rec->started_at, false);
    if (!tr->proc.watch)
        process_vanished(tr);
    else if (tr->task->isolation) /* they may have changed since the agent was told */
        task_limits_resize(tr);
}

static void
adopt_decided(struct task_runner *tr, const struct err *e, struct warden_reply *r)
{
    struct ground *g = tr->ar->g;
    if (g->adopting > 0)
        g->adopting--;
    if (!task_sm_process(tr->sm.t)) { /* it ended otherwise meanwhile */
        process_destroy(tr);
        return;
    }
    const struct task_record *rec = !e && r->msg->records.n > 0 ? r->msg->records.v[0] : NULL;
    if (e && e->code == -ERR_NOT_FOUND) {
        tr->proc.clean = true;
        if (tr->sm.t->phase == TASK_LAUNCHING)
            tr->up->not_launched(tr);
        else
            process_vanished(tr);
    } else if (!rec) {
        process_vanished(tr);
    } else if (rec->finished_at != 0 || r->ended < 0) {
        tr->proc.clean = false;
        tr->up->adopted(tr, rec->started_at, true);
        ended_with(tr, rec);
    } else {
        adopted_running(tr, r, rec);
    }
}

static void
on_adopted(void *arg, const struct err *e, struct warden_reply *r)
{
    struct task_runner *tr = arg;
    tr->asked = false;
    if (tr->ar->stopped) {
        /* nothing */
    } else if (e && process_unreachable(e)) {
        tr->proc.want_adopt = true;
    } else if (e && e->code == -ERR_BUSY) {
        ask_again(tr);
    } else {
        adopt_decided(tr, e, r);
    }
    hold_release(&tr->ar->hold);
}

static void
ask_adopt(struct task_runner *tr)
{
    tr->proc.want_adopt = false;
    tr->asked = true;
    hold_take(&tr->ar->hold);
    warden_adopt(tr->ar->g->warden, tr->ar->id, name_of(tr), on_adopted, tr);
}

static void
process_adopt(struct task_runner *tr)
{
    tr->ar->g->adopting++;
    if (tr->ar->g->link->up)
        ask_adopt(tr);
    else
        tr->proc.want_adopt = true;
}

/* --- what is asked of it --- */

static void
on_signaled(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)r;
    struct task_runner *tr = arg;
    if (e && process_unreachable(e))
        tr->proc.want_kill = true;
    else if (e && e->code != -ERR_NOT_FOUND)
        log_warn("client", "signal was not sent", "alloc_id", tr->ar->id, "task", name_of(tr),
                 "error", e->text, NULL);
    hold_release(&tr->ar->hold);
}

static void
process_stop(struct task_runner *tr, int sig)
{
    if (tr->proc.want_adopt && tr->proc.again != NULL) { /* it has ended, and need not run again */
        ask_adopt(tr);
        return;
    }
    hold_take(&tr->ar->hold);
    warden_signal(tr->ar->g->warden, tr->ar->id, name_of(tr), sig, on_signaled, tr);
}

static void
process_kill(struct task_runner *tr)
{
    hold_take(&tr->ar->hold);
    warden_kill(tr->ar->g->warden, tr->ar->id, name_of(tr), on_signaled, tr);
}

struct answer {
    client_done *done;
    void *arg;
};

static struct answer *
answer_to(client_done *done, void *arg)
{
    struct answer *a = mem_new(NULL, struct answer);
    *a = (struct answer){done, arg};
    return a;
}

static void
on_answer(void *arg, const struct err *e, struct warden_reply *r)
{
    struct answer *a = arg;
    (void)r;
    a->done(a->arg, e);
    talloc_free(a);
}

static void
process_signal(struct task_runner *tr, int sig, client_done *done, void *arg)
{
    warden_signal(tr->ar->g->warden, tr->ar->id, name_of(tr), sig, on_answer, answer_to(done, arg));
}

static void
process_pause(struct task_runner *tr, bool on, client_done *done, void *arg)
{
    (on ? warden_pause : warden_resume)(tr->ar->g->warden, tr->ar->id, name_of(tr), on_answer,
                                        answer_to(done, arg));
}

static bool
process_stats(struct task_runner *tr, struct task_reading *ret)
{
    struct record r;
    ret->cgroup = tr->proc.cgroup;
    ret->id = process_cgroup_id(tr);
    if (ret->cgroup >= 0)
        return cgroup_stats_read(ret->cgroup, &ret->cg) == 0;
    if (tr->proc.record >= 0 && record_read_raw(tr->proc.record, &r) == 0 && r.run.finished_ns == 0)
        ret->root = r.shim_pid;
    return false;
}

static int64_t
process_logs(struct task_runner *tr, int stream, int64_t at, void *p, size_t n)
{
    (void)tr, (void)stream, (void)at, (void)p, (void)n;
    return -ERR_UNSUPPORTED;
}

void
process_put(struct task_runner *tr, const struct warden_put *put, client_done *done, void *arg)
{
    (put->whole ? warden_replace : warden_put)(tr->ar->g->warden, put, on_answer,
                                               answer_to(done, arg));
}

static void
process_link_up(struct task_runner *tr)
{
    process_decide(tr);
    if (tr->proc.want_kill) {
        tr->proc.want_kill = false;
        tr->up->end_it(tr);
    }
    if (tr->proc.want_clean)
        process_destroy(tr);
    if (tr->proc.want_resize)
        task_limits_resize(tr);
}

void
process_init(struct task_runner *tr)
{
    tr->proc = (struct process){.ended = -1, .cgroup = -1, .record = -1};
    tr->proc.clean = tr->sm.t->launches == 0;
    tr->proc.want_clean = !tr->proc.clean && !task_sm_process(tr->sm.t);
}

const struct task_handle handle_process = {
    .begin = process_begin,
    .clear = process_clear,
    .start = process_start,
    .abort = process_abort,
    .adopt = process_adopt,
    .stop = process_stop,
    .kill = process_kill,
    .close = process_close,
    .destroy = process_destroy,
    .link_up = process_link_up,
    .signal = process_signal,
    .pause = process_pause,
    .resize = task_limits_resize,
    .exec = process_exec,
    .stats = process_stats,
    .logs = process_logs,
    .put = process_put,
};
