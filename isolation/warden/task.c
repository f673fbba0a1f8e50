/* SPDX-License-Identifier: Apache-2.0
 *
 * The tasks that the warden knows: one entry and one record file each, from launch to destroy. The
 * record is there before anything of a task may run, and goes after everything else.
 */
#include "isolation/warden/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/proc.h"
#include "isolation/warden/bpf.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/payload.h"

#define ROOM "warden"

static void shim_event(struct warden *w, struct watch *watch, uint32_t events);

static uint64_t
task_hash(const char *alloc, const char *name)
{
    return hash_text(hash_text(HASH_START, alloc), name);
}

static struct wtask *
task_bucket(const struct warden *w, uint64_t h)
{
    return w->n_buckets > 0 ? w->buckets[h & (w->n_buckets - 1)] : NULL;
}

static bool
task_named(const struct wtask *t, uint64_t h, const char *alloc, const char *name)
{
    return t->hash == h && str_eq(t->alloc, alloc) && str_eq(t->name, name);
}

struct wtask *
task_find(struct warden *w, const char *alloc, const char *name)
{
    uint64_t h = task_hash(alloc, name);
    struct wtask *t = task_bucket(w, h);
    while (t != NULL && (t->forgotten || !task_named(t, h, alloc, name)))
        t = t->same_bucket;
    return t;
}

static void
into_bucket(struct warden *w, struct wtask *t)
{
    struct wtask **at = &w->buckets[t->hash & (w->n_buckets - 1)];
    t->same_bucket = *at;
    *at = t;
}

static void
task_grow(struct warden *w)
{
    w->n_buckets = w->n_tasks > 0 ? w->n_tasks * 2 : 1;
    mem_resize(w, w->tasks, struct wtask *, w->n_buckets);
    mem_resize(w, w->buckets, struct wtask *, w->n_buckets);
    memset(w->buckets, 0, w->n_buckets * sizeof(w->buckets[0]));
    for (size_t i = 0; i < w->n_tasks; i++)
        into_bucket(w, w->tasks[i]);
}

struct wtask *
task_add(struct warden *w, const char *alloc, const char *name)
{
    ASSERT(task_find(w, alloc, name) == NULL);
    struct wtask *t = mem_new(NULL, struct wtask);
    str_copy(t->alloc, sizeof(t->alloc), alloc);
    str_copy(t->name, sizeof(t->name), name);
    t->hash = task_hash(alloc, name);
    t->shim = (struct watch){-1, shim_event};
    t->status.fd = t->payload = t->record = -1;
    t->cgroup = (struct cgroup_task){.shim_fd = -1, .task_fd = -1};
    if (w->n_tasks == w->n_buckets)
        task_grow(w);
    t->at = w->n_tasks;
    w->tasks[w->n_tasks++] = t;
    into_bucket(w, t);
    return t;
}

void
task_free(struct warden *w, struct wtask *t)
{
    ASSERT(t->at < w->n_tasks && w->tasks[t->at] == t);
    w->tasks[t->at] = w->tasks[--w->n_tasks];
    w->tasks[t->at]->at = t->at;
    struct wtask **at = &w->buckets[t->hash & (w->n_buckets - 1)];
    while (*at != t)
        at = &(*at)->same_bucket;
    *at = t->same_bucket;
    task_deadline(w, t, 0);
    loop_unwatch(w, &t->shim);
    loop_unwatch(w, &t->status);
    fd_close(&t->payload);
    fd_close(&t->record);
    cgroup_task_close(&t->cgroup);
    mem_free(t);
}

void
task_record_name(char out[256], const char *alloc, const char *name)
{
    (void)snprintf(out, 256, "%s.%s", alloc, name);
}

void
task_deadline(struct warden *w, struct wtask *t, int64_t at_ns)
{
    if (t->deadline_ns != 0) {
        ASSERT(*t->due_at == t); /* in warden.due exactly when it has one */
        *t->due_at = t->due_next;
        if (t->due_next != NULL)
            t->due_next->due_at = t->due_at;
    }
    t->deadline_ns = at_ns;
    if (at_ns == 0)
        return;
    t->due_next = w->due;
    t->due_at = &w->due;
    if (w->due != NULL)
        w->due->due_at = &t->due_next;
    w->due = t;
}

/* --- launches that an earlier warden began --- */

/* The record says that the payload ran. */
static bool
task_launched(const struct wtask *t)
{
    struct record r;
    return record_read_raw(t->record, &r) == 0 && r.run.state != RECORD_LAUNCHING;
}

static void task_answer(struct warden *w, struct waiter to, struct wtask *t);

/* Answers who asked meanwhile. */
void
task_decided(struct warden *w, struct wtask *t, bool launched)
{
    struct waiter to = t->launch;
    if (to.conn == 0 || t->failure != NULL) /* which is told when all is removed */
        return;
    t->launch = (struct waiter){0};
    if (launched)
        task_answer(w, to, t);
    else
        task_unknown(w, to, t->alloc, t->name);
}

bool
task_await(struct warden *w, struct wtask *t, int64_t now)
{
    if (t->state != TASK_LAUNCHING || t->status.fd >= 0 || t->destroying || t->forgotten)
        return false;
    if (task_launched(t)) {
        t->state = TASK_RUNNING;
        payload_find(t);
        task_deadline(w, t, 0);
        task_decided(w, t, true);
        return true;
    }
    if (now >= t->launch_by_ns)
        return false;
    task_deadline(w, t, now + WARDEN_RETRY_MS * NS_PER_MS);
    return true;
}

/* Everything is removed: whoever waits for that is told. */
static void
task_gone(struct warden *w, struct wtask *t)
{
    t->gone = true;
    w->sweep = true;
    bpf_remove(w, t);
    if (t->failure != NULL)
        loop_refuse(w, t->launch, t->failure);
    struct answer a = {0};
    if (t->destroying)
        loop_answer(w, t->destroy, &a);
}

void
task_record_unlink_doomed(struct warden *w, const struct wtask *t)
{
    char doomed[256 + 1];
    (void)snprintf(doomed, sizeof(doomed), "%c%s.%s", RECORD_DOOMED, t->alloc, t->name);
    (void)unlinkat(w->records, doomed, 0);
}

/* To requests the task is unknown from here on; its processes and cgroup go as fast as the kernel
 * lets them, without anybody waiting in the loop. Its record goes last, under another name: a
 * warden that starts in our place meanwhile goes on with the removal. */
void
task_forget(struct warden *w, struct wtask *t)
{
    if (t->gone)
        return;
    if (!t->forgotten) {
        char name[256], doomed[256 + 1];
        task_record_name(name, t->alloc, t->name);
        (void)snprintf(doomed, sizeof(doomed), "%c%s", RECORD_DOOMED, name);
        (void)renameat(w->records, name, w->records, doomed);
        t->forgotten = true;
    }
    if (t->shim.fd >= 0) { /* its event calls again */
        task_deadline(w, t, clock_mono_ns() + WARDEN_DESTROY_MS * NS_PER_MS);
        return;
    }
    task_deadline(w, t, 0);
    struct err e = ERR_INIT;
    int r = w->cgroup.fd >= 0 ? cgroup_task_remove(&w->cgroup, t->alloc, t->name, &e) : 0;
    if (r == -EBUSY &&
        t->retries++ < WARDEN_RETRIES_MAX) { /* the killed ones are on their way out */
        task_deadline(w, t, clock_mono_ns() + WARDEN_RETRY_MS * NS_PER_MS);
        return;
    }
    if (r < 0) {
        log_warn(ROOM, "a cgroup is left behind until the warden starts again", "alloc_id",
                 t->alloc, "task", t->name, "error", e.text, NULL);
    } else {
        task_record_unlink_doomed(w, t);
    }
    task_gone(w, t);
}

void
task_sweep(struct warden *w)
{
    for (size_t i = w->n_tasks; i-- > 0;)
        if (w->tasks[i]->gone)
            task_free(w, w->tasks[i]);
}

/* A forgotten task whose remains are not removed yet. */
bool
task_remains(struct warden *w, const char *alloc, const char *name)
{
    uint64_t h = task_hash(alloc, name);
    for (struct wtask *t = task_bucket(w, h); t != NULL; t = t->same_bucket)
        if (t->forgotten && !t->gone && task_named(t, h, alloc, name))
            return true;
    return false;
}

bool
task_alloc_busy(struct warden *w, const char *alloc)
{
    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i]->state != TASK_FINISHED && str_eq(w->tasks[i]->alloc, alloc))
            return true;
    return false;
}

/* SIGKILL to everything of the task but the shim (which reports), or with it. */
static void
kill_tree(struct wtask *t, bool shim)
{
    if (t->cgroup.shim_fd >= 0) {
        if (t->cgroup.task_fd >= 0)
            (void)cgroup_kill(t->cgroup.task_fd);
        if (shim)
            (void)cgroup_kill(t->cgroup.shim_fd);
    } else if (t->shim_pid > 0 && t->shim.fd >= 0 && pidfd_signal(t->shim.fd, 0) == 0) {
        proc_kill_descendants(t->shim_pid);
    }
    if (t->shim.fd >= 0) /* which reports nothing where somebody has stopped it */
        (void)pidfd_signal(t->shim.fd, shim ? SIGKILL : SIGCONT);
}

/* Without root and without a shim: its children are nobody's descendants any more, but carry the
 * environment that the launch gave them. */
static void
kill_orphans(struct wtask *t)
{
    char alloc[64], name[sizeof("NOMAD_TASK_NAME=") + JOB_TASK_NAME_MAX];
    (void)snprintf(alloc, sizeof(alloc), "NOMAD_ALLOC_ID=%s", t->alloc);
    (void)snprintf(name, sizeof(name), "NOMAD_TASK_NAME=%s", t->name);
    proc_kill_marked((const char *const[]){alloc, name, NULL});
}

void
task_kill_now(struct warden *w, struct wtask *t)
{
    (void)w;
    kill_tree(t, true);
}

void
task_end_now(struct warden *w, struct wtask *t)
{
    (void)w;
    kill_tree(t, t->state == TASK_LAUNCHING);
}

void
task_kill_all(struct warden *w)
{
    for (size_t i = 0; i < w->n_tasks; i++) {
        struct wtask *t = w->tasks[i];
        kill_tree(t, t->state == TASK_LAUNCHING);
        if (t->forgotten)
            continue;
        if (!t->destroying) {
            t->destroying = true;
            task_deadline(w, t, clock_mono_ns() + WARDEN_DESTROY_MS * NS_PER_MS);
        }
        if (t->state == TASK_FINISHED)
            task_forget(w, t);
    }
    w->sweep = true;
}

/* Settles a task whose shim is gone: what the record does not say is said in its place. */
void
task_settle(struct warden *w, struct wtask *t, uint32_t why)
{
    struct record r;
    t->state = TASK_FINISHED;
    kill_tree(t, true); /* raw_exec: what the payload left behind */
    if (record_read_raw(t->record, &r) < 0 || !record_settle(&r, clock_wall_ns()))
        return;
    r.run.flags |= why;
    if (fd_pwrite_full(t->record, &r, sizeof(r), 0) < 0)
        log_warn(ROOM, "the end of a task cannot be written to its record", "alloc_id", t->alloc,
                 "task", t->name, NULL);
    if (!w->root)
        kill_orphans(t);
}

/* The shim has ended: so has the task. */
static void
shim_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct wtask *t = WATCH_OWNER(watch, struct wtask, shim);
    if (t->state == TASK_LAUNCHING && t->status.fd >= 0)
        t->status.fn(w, &t->status,
                     EPOLLIN); /* its report, or the end of the socket, comes first */
    siginfo_t info = {0};
    (void)waitid(P_PIDFD, (id_t)watch->fd, &info, WEXITED | WNOHANG); /* ECHILD after adoption */
    bool launched = t->state != TASK_LAUNCHING || task_launched(t);
    task_settle(w, t, 0);
    loop_unwatch(w, watch);
    fd_close(&t->payload);
    if (!t->forgotten)
        log_debug(ROOM, "task ended", "alloc_id", t->alloc, "task", t->name, NULL);
    task_decided(w, t, launched);
    if (t->destroying || t->forgotten || !launched)
        task_forget(w, t);
}

bool
task_ended(const struct wtask *t)
{
    struct record r;
    return t->state == TASK_FINISHED ||
           (record_read_raw(t->record, &r) == 0 && r.run.state == RECORD_FINISHED);
}

/* Hears of the task's end first: the caller may have seen it before we did, since its event waits
 * behind the request. */
struct wtask *
task_find_now(struct warden *w, const char *alloc, const char *name)
{
    struct wtask *t = task_find(w, alloc, name);
    struct pollfd p = {.fd = t != NULL ? t->shim.fd : -1, .events = POLLIN};
    if (t == NULL || p.fd < 0 || poll(&p, 1, 0) != 1)
        return t;
    shim_event(w, &t->shim, EPOLLIN);
    return task_find(w, alloc, name);
}

/* Milliseconds until the next deadline; -1: none. */
int
task_timeout(struct warden *w, int64_t now)
{
    int64_t next = INT64_MAX;
    for (struct wtask *t = w->due; t != NULL; t = t->due_next)
        if (t->deadline_ns < next)
            next = t->deadline_ns;
    if (next == INT64_MAX)
        return -1;
    return next <= now ? 0 : (int)((next - now) / NS_PER_MS) + 1;
}

void
task_deadlines(struct warden *w, int64_t now)
{
    struct wtask *next;
    for (struct wtask *t = w->due; t != NULL; t = next) {
        next = t->due_next; /* what follows changes no other's */
        if (t->deadline_ns > now)
            continue;
        if (t->forgotten && t->shim.fd < 0) {
            task_forget(w, t);
            continue;
        }
        if (task_await(w, t, now))
            continue;
        log_warn(ROOM, "a task does not launch or end in time: its shim is killed", "alloc_id",
                 t->alloc, "task", t->name, NULL);
        task_deadline(w, t, now + WARDEN_DESTROY_MS * NS_PER_MS);
        kill_tree(t, true); /* the pidfd brings the rest */
    }
}

/* --- answers --- */

void
task_unknown(struct warden *w, struct waiter to, const char *alloc, const char *name)
{
    struct err e = ERR_INIT;
    err_set(&e, -ERR_NOT_FOUND, "no task \"%s\" of allocation \"%s\" is here", name, alloc);
    loop_refuse(w, to, &e);
}

static void
not_found(struct warden *w, struct waiter to, const struct warden_request *q)
{
    task_unknown(w, to, q->alloc_id, q->task_name);
}

static void
answer_busy(struct warden *w, struct waiter to, const struct wtask *t)
{
    struct err e = ERR_INIT;
    err_set(&e, -ERR_BUSY, "task \"%s\" is being %s", t->name,
            t->destroying ? "destroyed" : "launched");
    loop_refuse(w, to, &e);
}

static void
task_export(const void *ctx, struct wtask *t, struct answer *a)
{
    struct record r;
    if (record_read_raw(t->record, &r) < 0)
        return;
    struct task_record *x = record_export(ctx, &r);
    x->pid = t->pid;
    x->shim_pid = t->shim_pid;
    x->launch_time = t->launch_ns;
    list_add(ctx, a->msg.records, x);
}

/* The task's record and fds. */
static void
task_answer(struct warden *w, struct waiter to, struct wtask *t)
{
    auto_mem void *ctx = mem_ctx("task");
    struct answer a = {0};
    char name[256];
    task_record_name(name, t->alloc, t->name);
    auto_fd int record = openat(w->records, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    task_export(ctx, t, &a);
    a.msg.warning = t->warning;
    /* a task that has just been launched: what its shim closes first when it ends */
    loop_answer_fd(ctx, &a, WARDEN_FD_ENDED, t->status.fd >= 0 ? t->status.fd : t->shim.fd);
    loop_answer_fd(ctx, &a, WARDEN_FD_CGROUP, t->cgroup.task_fd);
    loop_answer_fd(ctx, &a, WARDEN_FD_RECORD, record);
    loop_answer(w, to, &a);
}

void
task_adopt(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct wtask *t = task_find_now(w, q->alloc_id, q->task_name);
    if (t == NULL || t->destroying)
        not_found(w, to, q);
    else if (t->state != TASK_LAUNCHING)
        task_answer(w, to, t);
    else if (t->status.fd < 0) /* begun by an earlier warden: task_decided() answers */
        t->launch = to;
    else
        answer_busy(w, to, t);
}

static int
task_compare(const char *alloc_a, const char *name_a, const char *alloc_b, const char *name_b)
{
    int r = strcmp(alloc_a, alloc_b);
    return r != 0 ? r : strcmp(name_a, name_b);
}

static int
compare_tasks(const void *a, const void *b)
{
    const struct wtask *x = *(struct wtask *const *)a, *y = *(struct wtask *const *)b;
    return task_compare(x->alloc, x->name, y->alloc, y->name);
}

/* A page of the tasks behind the one that the request names, in order of their names: tasks that
 * come and go between two pages move no other. */
void
task_list(struct warden *w, struct waiter to, const struct warden_request *q)
{
    auto_mem void *ctx = mem_ctx("list");
    struct answer a = {0};
    struct wtask **v = mem_array(ctx, struct wtask *, w->n_tasks);
    const char *alloc = str_or(q->alloc_id, ""), *name = str_or(q->task_name, "");
    size_t n = 0;
    for (size_t i = 0; i < w->n_tasks; i++) {
        struct wtask *t = w->tasks[i];
        if (!t->forgotten && t->state != TASK_LAUNCHING &&
            task_compare(t->alloc, t->name, alloc, name) > 0)
            v[n++] = t;
    }
    if (n > 0)
        qsort(v, n, sizeof(*v), compare_tasks);
    for (size_t i = 0; i < n && i < PROTO_LIST_MAX; i++)
        task_export(ctx, v[i], &a);
    a.msg.next = n > PROTO_LIST_MAX;
    loop_answer(w, to, &a);
}

void
task_signal(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct wtask *t = task_find_now(w, q->alloc_id, q->task_name);
    struct err e = ERR_INIT;
    if (t == NULL || t->state != TASK_RUNNING) {
        not_found(w, to, q);
        return;
    }
    if (t->payload < 0)
        payload_find(t); /* adopted before it was there */
    int r = t->payload >= 0 ? pidfd_signal(t->payload, (int)q->signal) : -ESRCH;
    struct answer a = {0};
    if (r < 0 && r != -ESRCH) {
        err_errno(&e, -r, "signal %lld to task \"%s\"", (long long)q->signal, t->name);
        loop_refuse(w, to, &e);
    } else if (r < 0) {
        not_found(w, to, q);
    } else {
        loop_answer(w, to, &a);
    }
}

void
task_kill(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct wtask *t = task_find_now(w, q->alloc_id, q->task_name);
    if (t == NULL) {
        not_found(w, to, q);
        return;
    }
    kill_tree(t, false);
    struct answer a = {0};
    loop_answer(w, to, &a);
}

void
task_destroy(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct wtask *t = task_find_now(w, q->alloc_id, q->task_name);
    struct answer a = {0};
    if (t == NULL) {
        loop_answer(w, to, &a);
        return;
    }
    if (t->destroying || t->state == TASK_LAUNCHING) {
        answer_busy(w, to, t);
        return;
    }
    kill_tree(t, false);
    t->destroying = true;
    t->destroy = to;
    if (t->state == TASK_FINISHED) {
        task_forget(w, t);
        return;
    }
    task_deadline(w, t, clock_mono_ns() + WARDEN_DESTROY_MS * NS_PER_MS);
}
