/* SPDX-License-Identifier: Apache-2.0
 *
 * The client as a whole: made, started, stopped; and the operations of the agent's routes on
 * allocations. Files and statistics are in fs.c and stats.c.
 */
#include "client/client.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api/terms.h"
#include "client/client_int.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum { QUIT_EXTRA_MS = 5000 };

int64_t
client_now_ns(void)
{
    return clock_wall_ns();
}

/* ---- making ----------------------------------------------------------------------------------- */

static void
copy_map(const void *ctx, struct str_map *dst, const struct str_map *src)
{
    *dst = (struct str_map){0};
    for (size_t i = 0; i < src->n; i++)
        str_map_set(ctx, dst, src->v[i].k, src->v[i].v);
}

static const char *
text(struct client *c, const char *s, const char *dflt)
{
    return mem_strdup(c, str_or(s, dflt));
}

static void
copy_config(struct client *c, const struct client_config *from)
{
    struct client_config *cfg = &c->cfg;
    *cfg = *from;
    char host[256] = "";
    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = 0;
    cfg->state_dir = text(c, from->state_dir, "");
    cfg->alloc_dir = text(c, from->alloc_dir, "");
    cfg->name = text(c, from->name, str_or(host, "localhost"));
    cfg->region = text(c, from->region, "global");
    cfg->datacenter = text(c, from->datacenter, "dc1");
    cfg->node_class = text(c, from->node_class, "");
    cfg->node_pool = text(c, from->node_pool, POOL_DEFAULT);
    cfg->http_addr = text(c, from->http_addr, "");
    cfg->network_interface = text(c, from->network_interface, "");
    cfg->version = text(c, from->version, "");
    copy_map(c, &cfg->meta, &from->meta);
    copy_map(c, &cfg->options, &from->options);
    cfg->reserved = codec_clone(c, &type_node_reserved_resources, from->reserved);
    if (cfg->min_dynamic_port <= 0)
        cfg->min_dynamic_port = 20000;
    if (cfg->max_dynamic_port <= 0)
        cfg->max_dynamic_port = 32000;
    if (cfg->max_kill_timeout_ns <= 0)
        cfg->max_kill_timeout_ns = 30 * NS_PER_S;
    if (cfg->gc_max_allocs <= 0)
        cfg->gc_max_allocs = 50;
    if (cfg->gc_interval_ns <= 0)
        cfg->gc_interval_ns = 60 * NS_PER_S;
    if (cfg->gc_parallel_destroys <= 0)
        cfg->gc_parallel_destroys = 2;
    if (cfg->gc_disk_usage_threshold <= 0)
        cfg->gc_disk_usage_threshold = 80;
    if (cfg->gc_inode_usage_threshold <= 0)
        cfg->gc_inode_usage_threshold = 70;
}

static void
restore_row(void *arg, struct client_alloc *a, struct client_task **tasks, size_t n)
{
    alloc_runner_restore(arg, a, tasks, n);
}

struct client *
client_new(struct loop *loop, const struct client_config *cfg, struct rpc_client *servers,
           struct warden_client *warden, struct err *e)
{
    if (str_empty(cfg->state_dir) || str_empty(cfg->alloc_dir)) {
        err_set(e, -ERR_INVALID, "the client needs a state_dir and an alloc_dir");
        return NULL;
    }
    struct client *c = mem_new(NULL, struct client);
    memset(c->keep, 0xff, sizeof(c->keep)); /* -1 */
    c->loop = loop;
    c->rpc = servers;
    c->warden = warden;
    copy_config(c, cfg);
    if (local_open(loop, c->cfg.state_dir, (size_t)CLIENT_STATE_GIB << 30, &c->state, e) < 0 ||
        local_node_ids(c->state, c->node_id, c->secret, e) < 0 || meta_load(c, e) < 0) {
        local_close(c->state);
        talloc_free(c);
        return NULL;
    }
    node_build(c);
    return c;
}

static void
first_registration(void *arg)
{
    struct client *c = arg;
    c->register_timer = NULL;
    register_start(c);
}

int
client_start(struct client *c, struct err *e)
{
    ASSERT(!c->started);
    auto_mem void *tmp = mem_ctx("restore");
    int r = local_load(c->state, tmp, restore_row, c, e);
    if (r < 0)
        return r;
    c->started = true;
    log_info("client", "client started", "node_id", c->node_id, "allocations",
             LOG_U64(HASH_COUNT(c->allocs)), NULL);
    struct alloc_runner *ar, *next;
    HASH_ITER(hh, c->allocs, ar, next)
    {
        alloc_runner_resume(ar);
    }
    link_start(c);
    /* The warden's info comes within a turn or two and registers; without it, later and without
     * drivers. */
    if (!c->registering && !c->registered)
        c->register_timer = timer_start(c->loop, c->warden ? CLIENT_LINK_FIRST_MS : 0,
                                        first_registration, c);
    return 0;
}

/* ---- stopping --------------------------------------------------------------------------------- */

void
client_hold(struct client *c)
{
    c->held++;
}

void
client_release(struct client *c)
{
    ASSERT(c->held > 0);
    c->held--;
    client_maybe_stopped(c);
}

static void
stop_for_good(struct client *c)
{
    c->stopping = true;
    register_stop(c);
    sync_stop(c);
    gc_stop(c);
    streams_stop(c);
    execs_stop(c);
    struct alloc_runner *ar, *next;
    HASH_ITER(hh, c->allocs, ar, next)
    {
        alloc_runner_detach(ar);
    }
    local_stop(c->state);
}

/* Tasks did not end in time (the warden may be gone): leave them. */
static void
quit_overdue(void *arg)
{
    struct client *c = arg;
    c->quit_timer = NULL;
    log_warn("client", "tasks did not end in time", NULL);
    c->quitting = false;
    stop_for_good(c);
    client_maybe_stopped(c);
}

static void
stop_tick(void *arg)
{
    struct client *c = arg;
    c->stop_posted = false;
    if (c->quitting) {
        if (HASH_COUNT(c->allocs) > 0)
            return; /* the last one's release comes here again */
        c->quitting = false;
        timer_stop(TAKE(c->quit_timer));
        stop_for_good(c);
    }
    if (!c->stopping || c->held > 0 || !c->stop_done)
        return;
    if (local_busy(c->state)) { /* its completion holds nothing: look again */
        c->stop_posted = true;
        loop_post(c->loop, stop_tick, c);
        return;
    }
    link_stop(c);
    void (*done)(void *) = c->stop_done;
    c->stop_done = NULL;
    done(c->stop_arg);
}

void
client_maybe_stopped(struct client *c)
{
    if ((!c->stopping && !c->quitting) || !c->stop_done || c->stop_posted)
        return;
    c->stop_posted = true;
    loop_post(c->loop, stop_tick, c);
}

void
client_stop(struct client *c, void (*done)(void *arg), void *arg)
{
    ASSERT(!c->stop_done);
    c->stop_done = done;
    c->stop_arg = arg;
    drain_stop(c);
    if (c->cfg.stop_tasks && c->started) {
        c->quitting = true;
        c->quit_timer = timer_start(c->loop, c->cfg.max_kill_timeout_ns / NS_PER_MS + QUIT_EXTRA_MS,
                                    quit_overdue, c);
        struct alloc_runner *ar, *next;
        HASH_ITER(hh, c->allocs, ar, next)
        {
            alloc_runner_remove(ar);
        }
    } else {
        stop_for_good(c);
    }
    client_maybe_stopped(c);
}

void
client_free(struct client *c)
{
    if (!c)
        return;
    struct alloc_runner *ar, *next;
    HASH_ITER(hh, c->allocs, ar, next)
    {
        HASH_DEL(c->allocs, ar);
        talloc_free(ar);
    }
    struct gone *g, *gnext;
    HASH_ITER(hh, c->gone, g, gnext)
    {
        HASH_DEL(c->gone, g);
        talloc_free(g);
    }
    local_close(c->state);
    bpf_read_close(&c->counters);
    link_drop(c);
    talloc_free(c);
}

/* ---- what the agent asks ---------------------------------------------------------------------- */

const char *
client_node_id(const struct client *c)
{
    return c->node_id;
}

const struct node *
client_node(const struct client *c)
{
    return c->node;
}

bool
client_has_alloc(const struct client *c, const char *alloc_id)
{
    return alloc_runner_find(c, alloc_id) != NULL;
}

bool
client_has_task(const struct client *c, const char *alloc_id, const char *task)
{
    struct alloc_runner *ar = alloc_runner_find(c, alloc_id);
    return ar != NULL && alloc_runner_task(ar, task) != NULL;
}

void
client_info(const struct client *c, struct client_info *ret)
{
    *ret = (struct client_info){
        .node_id = c->node_id,
        .known_servers = str_or(c->known_servers, ""),
        .heartbeat_ttl_ns = c->ttl_ns,
        .last_heartbeat_ns = c->last_heartbeat_ns ? clock_mono_ns() - c->last_heartbeat_ns : -1,
        .registered = c->registered,
    };
    struct alloc_runner *ar, *next;
    HASH_ITER(hh, c->allocs, ar, next)
    {
        ret->allocs++;
        if (alloc_runner_terminal(ar))
            ret->allocs_terminal++;
        else if (str_eq(ar->status, ALLOC_RUNNING))
            ret->allocs_running++;
        else
            ret->allocs_pending++;
    }
}

/* ---- operations on allocations ---------------------------------------------------------------- */

struct operation { /* answers in a later turn, once all its parts have */
    struct client *c;
    client_done *done;
    void *arg;
    size_t left;
    struct err e;
};

static void
operation_part(void *arg, const struct err *e)
{
    struct operation *op = arg;
    if (e)
        err_set(&op->e, e->code, "%s", e->text);
    if (--op->left > 0)
        return;
    op->done(op->arg, op->e.code ? &op->e : NULL);
    client_release(op->c);
    talloc_free(op);
}

static void
operation_posted(void *arg)
{
    operation_part(arg, NULL);
}

static struct operation *
operation_new(struct client *c, client_done *done, void *arg)
{
    struct operation *op = mem_new(NULL, struct operation);
    *op = (struct operation){.c = c, .done = done, .arg = arg, .left = 1};
    client_hold(c);
    loop_post(c->loop, operation_posted, op);
    return op;
}

/* The runner and the task asked for; false with op->e set. */
static bool
target(struct operation *op, const char *alloc_id, const char *task, struct alloc_runner **ret_ar,
       struct task_runner **ret_tr)
{
    *ret_tr = NULL;
    *ret_ar = alloc_runner_find(op->c, alloc_id);
    if (!*ret_ar) {
        err_set(&op->e, -ERR_NOT_FOUND, "allocation \"%.40s\" is not on this node", alloc_id);
        return false;
    }
    if (str_empty(task))
        return true;
    *ret_tr = alloc_runner_task(*ret_ar, task);
    if (!*ret_tr)
        err_set(&op->e, -ERR_NOT_FOUND, "allocation \"%s\" has no task \"%.100s\"", alloc_id, task);
    return *ret_tr != NULL;
}

static const char restart_all_text[] = "User requested all tasks to restart";
static const char restart_running_text[] = "User requested running tasks to restart";

static void
restart_one(struct task_runner *tr, bool all)
{
    const char *why = all ? restart_all_text : restart_running_text;
    unsigned acts = task_sm_restart(&tr->sm, client_now_ns(), why);
    if (acts == 0 && all)
        acts = task_sm_rerun(&tr->sm, client_now_ns(), why);
    task_runner_act(tr, acts);
}

void
client_alloc_restart(struct client *c, const char *alloc_id, const char *task, bool all_tasks,
                     client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    struct alloc_runner *ar;
    struct task_runner *tr;
    if (!target(op, alloc_id, task, &ar, &tr))
        return;
    if (alloc_runner_terminal(ar) || ar->rec->stopping) {
        err_set(&op->e, -ERR_CONFLICT, "allocation \"%s\" has ended or is to stop: it cannot restart",
                ar->id);
        return;
    }
    if (tr && tr->sm.t->phase != TASK_RUNNING && tr->sm.t->phase != TASK_DELAY) {
        err_set(&op->e, -ERR_CONFLICT, "task \"%s\" is not running", tr->sm.t->name);
        return;
    }
    if (tr) {
        restart_one(tr, false);
        return;
    }
    for (size_t i = 0; i < ar->n; i++)
        restart_one(&ar->tasks[i], all_tasks);
}

/* Asks for something of the task, or of all tasks, that run. */
static void
each_running(struct operation *op, struct alloc_runner *ar, struct task_runner *tr,
             void (*ask)(struct task_runner *t, int what, client_done *done, void *arg), int what)
{
    size_t sent = 0;
    for (size_t i = 0; i < ar->n; i++) {
        struct task_runner *t = &ar->tasks[i];
        if ((tr && tr != t) || t->sm.t->phase != TASK_RUNNING || t->sim)
            continue;
        op->left++;
        sent++;
        ask(t, what, operation_part, op);
    }
    if (sent == 0)
        err_set(&op->e, -ERR_CONFLICT, "%s of allocation \"%s\"%s running",
                tr ? "the task" : "no task", ar->id, tr ? " is not" : " is");
}

void
client_alloc_signal(struct client *c, const char *alloc_id, const char *task, const char *signal,
                    client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    struct alloc_runner *ar;
    struct task_runner *tr;
    if (!target(op, alloc_id, task, &ar, &tr))
        return;
    int sig = str_empty(signal) ? SIGKILL : signal_parse(signal);
    if (sig <= 0) {
        err_set(&op->e, -ERR_INVALID, "\"%.32s\" is not a signal", signal);
        return;
    }
    each_running(op, ar, tr, task_runner_signal, sig);
}

void
client_alloc_pause(struct client *c, const char *alloc_id, const char *task, bool on,
                   client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    struct alloc_runner *ar;
    struct task_runner *tr;
    if (target(op, alloc_id, task, &ar, &tr))
        each_running(op, ar, tr, task_limits_pause, on);
}
