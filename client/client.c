/* SPDX-License-Identifier: Apache-2.0
 *
 * The client as a whole: its modules are put together, started, stopped; what they report goes to
 * those behind them (the tables of events); and the operations of the agent's routes on
 * allocations.
 */
#include "client/client.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "api/terms.h"
#include "client/alloc/gc.h"
#include "client/alloc/sweep.h"
#include "client/dns/dns.h"
#include "client/local.h"
#include "client/lookup.h"
#include "client/node/alone.h"
#include "client/node/announce.h"
#include "client/node/drain.h"
#include "client/node/engines.h"
#include "client/node/identity.h"
#include "client/node/node.h"
#include "client/node/sync.h"
#include "client/node/volumes.h"
#include "client/probe/probe.h"
#include "client/signing.h"
#include "client/warden_link.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"

enum {
    LINK_FIRST_MS = 2000, /* registration waits so long for the warden */
    QUIT_EXTRA_MS = 5000
};

struct client {
    struct ground *g;
    struct link *link;
    struct allocs allocs;
    struct gc *gc;
    struct gone_set gone;
    struct meta *meta;
    struct node_claims *claims;
    struct known *known;
    struct registration reg;
    struct sync *sync;
    struct alone *alone;
    struct announcer *announcer;
    struct dns *dns; /* NULL: it is off */
    struct engines *engines;
    struct node_drain *drain; /* NULL but during one */
    struct streams *streams;
    struct execs *execs;
    struct host_cpus *cpus;
    struct timer *quit_timer;
    void (*stop_done)(void *arg);
    void *stop_arg;
    bool stop_posted;
};

/* --- making --- */

static const char *
client_text(const void *ctx, const char *s, const char *dflt)
{
    return mem_strdup(ctx, str_or(s, dflt));
}

static struct agent_config *
copy_plugins(const void *ctx, const struct agent_config *from)
{
    struct agent_config *c = mem_new(ctx, struct agent_config);
    for (size_t i = 0; from && i < from->plugins.n; i++)
        list_add(c, c->plugins, codec_clone(c, &type_agent_plugin, from->plugins.v[i]));
    return c;
}

static void
copy_config(struct ground *g, const struct client_config *from)
{
    static const struct agent_client unsaid;
    struct client_config *cfg = &g->cfg;
    struct agent_client *a =
        codec_clone(g, &type_agent_client, from->agent ? from->agent : &unsaid);
    *cfg = *from;
    char host[256] = "";
    if (gethostname(host, sizeof(host) - 1) < 0)
        host[0] = 0;
    cfg->state_dir = client_text(g, from->state_dir, "");
    cfg->hand = mem_strdup(g, from->hand);
    cfg->engines = (struct str_list){0};
    for (size_t i = 0; i < from->engines.n; i++)
        list_add(g, cfg->engines, mem_strdup(g, from->engines.v[i]));
    cfg->plugins = copy_plugins(g, from->plugins);
    cfg->alloc_dir = client_text(g, from->alloc_dir, "");
    cfg->volumes_dir = client_text(g, from->volumes_dir, "");
    cfg->name = client_text(g, from->name, str_or(host, "localhost"));
    cfg->region = client_text(g, from->region, "global");
    cfg->datacenter = client_text(g, from->datacenter, "dc1");
    cfg->http_addr = client_text(g, from->http_addr, "");
    cfg->version = client_text(g, from->version, "");
    int64_t *const numbers[] = {&a->min_dynamic_port, &a->max_dynamic_port,
                                &a->max_kill_timeout, &a->gc_max_allocs,
                                &a->gc_interval,      &a->gc_parallel_destroys};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        *numbers[i] = *numbers[i] < 0 ? 0 : *numbers[i]; /* as if it were not said */
    a->gc_disk_usage_threshold = a->gc_disk_usage_threshold < 0 ? 0 : a->gc_disk_usage_threshold;
    a->gc_inode_usage_threshold = a->gc_inode_usage_threshold < 0 ? 0 : a->gc_inode_usage_threshold;
    codec_defaults(g, &type_agent_client, a);
    cfg->agent = a;
}

/* --- what modules report --- */

static void
on_alloc_changed(void *arg, struct alloc_runner *ar)
{
    struct client *c = arg;
    sync_dirty(c->sync, ar);
    if (alone_seen(c->alone, ar))
        register_beat_now(&c->reg);
    streams_wake(c->streams, ar->a.id);
}

static void
on_alloc_ended(void *arg, struct alloc_runner *ar)
{
    struct client *c = arg;
    if (ar->removed)
        gc_collect(c->gc, ar, GC_FORGOTTEN, NULL, NULL);
    else
        gc_wake(c->gc);
}

static void
on_alloc_gone(void *arg, struct alloc_runner *ar, const struct err *e)
{
    struct client *c = arg;
    if (!e && !ar->removed)
        gone_collected(&c->gone, ar->a.id, ar->a.rec->server_index, ar->gc.why);
    gc_ended(c->gc, ar, e);
}

static void
on_alloc_named(void *arg, struct alloc_runner *ar)
{
    struct client *c = arg;
    announce_set(c->announcer, ar);
}

static const struct alloc_events alloc_events = {on_alloc_changed, on_alloc_ended, on_alloc_named,
                                                 on_alloc_gone};

static void
on_link_up(void *arg)
{
    struct client *c = arg;
    allocs_link_up(&c->allocs);
    volumes_link_up(c->g->volumes);
    sweep_start(&c->allocs);
}

/* Something else is to be registered: what the warden can do, or metadata. */
static void
on_node_changed(void *arg)
{
    struct client *c = arg;
    if (c->link->trouble)
        ALLOCS_EACH (&c->allocs, ar)
            alloc_runner_note_wait(ar);
    register_start(&c->reg);
}

static const struct link_events link_events = {on_link_up, on_node_changed};

static void
on_registered(void *arg)
{
    struct client *c = arg;
    sync_anew(c->sync);
}

static void
on_beaten(void *arg, bool changed)
{
    struct client *c = arg;
    if (changed)
        sync_all_dirty(c->sync);
    sync_start(c->sync);
    announce_start(c->announcer, changed);
}

static void
on_heard(void *arg, int64_t sent_ns)
{
    struct client *c = arg;
    alone_heard(c->alone, sent_ns);
}

static const struct register_events register_events = {on_registered, on_beaten, on_heard};

static void on_released(void *arg);

/* --- starting --- */

static void
restore_row(void *arg, struct client_alloc *a, struct client_task **tasks, size_t n)
{
    struct client *c = arg;
    alloc_runner_restore(&c->allocs, a, tasks, n);
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
    struct ground *g = c->g = mem_new(c, struct ground);
    *g = (struct ground){.loop = loop, .rpc = servers, .warden = warden};
    g->hold = (struct hold){.released = on_released, .arg = c};
    copy_config(g, cfg);
    c->link = link_new(g, &link_events, c);
    g->lookups = lookups_new(g);
    g->signings = signings_new(g);
    c->allocs = (struct allocs){.g = g, .events = &alloc_events, .arg = c};
    c->allocs.prober = prober_new(loop, cfg->ports);
    c->gc = gc_new(&c->allocs);
    c->reg = (struct registration){.g = g, .events = &register_events, .arg = c};
    c->sync = sync_new(&c->allocs, c->gc, &c->gone, &c->reg);
    c->announcer = announce_new(&c->allocs);
    c->engines = engines_new(g, on_node_changed, c);
    c->streams = streams_new(&c->allocs);
    c->execs = execs_new(&c->allocs);
    if (local_open(loop, g->cfg.state_dir, (size_t)CLIENT_STATE_GIB << 30, &g->local, e) < 0 ||
        local_node_ids(g->local, g->node_id, g->secret, e) < 0 ||
        local_run(g->local, &g->report, e) < 0 ||
        !(c->reg.meta = c->meta = meta_new(g, on_node_changed, c, e))) {
        local_close(g->local);
        prober_free(c->allocs.prober);
        talloc_free(c);
        return NULL;
    }
    uuid_make(g->run);
    c->reg.known = c->known = known_new(g);
    c->alone = alone_new(&c->allocs);
    engines_recall(c->engines);
    c->claims = node_claims_new(g);
    g->volumes = volumes_new(g, on_node_changed, c);
    node_build(g, c->meta);
    return c;
}

int
client_start(struct client *c, struct err *e)
{
    ASSERT(!c->g->started);
    auto_mem void *tmp = mem_ctx("restore");
    int r = local_load(c->g->local, tmp, restore_row, c, e);
    if (r < 0)
        return r;
    c->dns = dns_start(c->g, e);
    if (e->code)
        return e->code;
    c->g->started = true;
    uint64_t ended = 0;
    ALLOCS_EACH (&c->allocs, ar)
        ended += alloc_runner_terminal(ar);
    log_info("client", "client started", "node_id", c->g->node_id, "allocations",
             LOG_U64(HASH_COUNT(c->allocs.all)), "ended", LOG_U64(ended), NULL);
    ALLOCS_EACH (&c->allocs, ar)
        alloc_runner_resume(ar);
    link_start(c->link);
    engines_start(c->engines);
    /* The warden's info comes within a turn or two and registers; without it, later and without
     * drivers. */
    register_start_in(&c->reg, c->g->warden ? LINK_FIRST_MS : 0);
    return 0;
}

/* --- stopping --- */

static void
stop_for_good(struct client *c)
{
    c->g->stopping = true;
    register_stop(&c->reg);
    engines_stop(c->engines);
    sync_stop(c->sync);
    announce_stop(c->announcer);
    volumes_stop(c->g->volumes);
    dns_stop(c->dns);
    lookups_stop(c->g->lookups);
    signings_stop(c->g->signings);
    alone_stop(c->alone);
    gc_stop(c->gc);
    streams_stop(c->streams);
    execs_stop(c->execs);
    ALLOCS_EACH (&c->allocs, ar)
        alloc_runner_detach(ar);
    local_stop(c->g->local);
}

/* Tasks did not end in time (the warden may be gone): leave them. */
static void
quit_overdue(void *arg)
{
    struct client *c = arg;
    c->quit_timer = NULL;
    log_warn("client", "tasks did not end in time", NULL);
    c->g->quitting = false;
    stop_for_good(c);
    on_released(c);
}

static void
stop_tick(void *arg)
{
    struct client *c = arg;
    c->stop_posted = false;
    if (c->g->quitting) {
        if (HASH_COUNT(c->allocs.all) > 0)
            return; /* the last one's release comes here again */
        c->g->quitting = false;
        timer_stop(TAKE(c->quit_timer));
        stop_for_good(c);
    }
    if (!c->g->stopping || c->g->hold.n > 0 || !c->stop_done)
        return;
    if (local_busy(c->g->local)) { /* its completion holds nothing: look again */
        c->stop_posted = true;
        loop_post(c->g->loop, stop_tick, c);
        return;
    }
    link_stop(c->link);
    void (*done)(void *) = c->stop_done;
    c->stop_done = NULL;
    done(c->stop_arg);
}

static void
on_released(void *arg)
{
    struct client *c = arg;
    if ((!c->g->stopping && !c->g->quitting) || !c->stop_done || c->stop_posted)
        return;
    c->stop_posted = true;
    loop_post(c->g->loop, stop_tick, c);
}

void
client_stop(struct client *c, void (*done)(void *arg), void *arg)
{
    ASSERT(!c->stop_done);
    c->stop_done = done;
    c->stop_arg = arg;
    drain_stop(c->drain);
    if (c->g->cfg.stop_tasks && c->g->started) {
        c->g->quitting = true;
        c->quit_timer =
            timer_start(c->g->loop, c->g->cfg.agent->max_kill_timeout / NS_PER_MS + QUIT_EXTRA_MS,
                        quit_overdue, c);
        ALLOCS_EACH (&c->allocs, ar)
            alloc_runner_remove(ar);
    } else {
        stop_for_good(c);
    }
    on_released(c);
}

void
client_free(struct client *c)
{
    if (!c)
        return;
    allocs_free(&c->allocs);
    prober_free(c->allocs.prober);
    gone_free(&c->gone);
    local_close(c->g->local);
    link_close(c->link);
    talloc_free(c);
}

/* --- what the agent asks --- */

const char *
client_node_id(const struct client *c)
{
    return c->g->node_id;
}

const struct node *
client_node(const struct client *c)
{
    return c->g->node;
}

bool
client_has_alloc(const struct client *c, const char *alloc_id)
{
    return alloc_runner_find(&c->allocs, alloc_id) != NULL;
}

const char *
client_alloc_namespace(const struct client *c, const char *alloc_id)
{
    const struct alloc_runner *r = alloc_runner_find(&c->allocs, alloc_id);

    return r != NULL && r->a.rec->alloc != NULL ? str_or(r->a.rec->alloc->namespace, NS_DEFAULT)
                                                : NULL;
}

char *
client_gone_words(const struct client *c, const void *ctx, const char *alloc_id)
{
    return gone_words(&c->gone, ctx, alloc_id, str_or(client_node(c)->name, ""));
}

bool
client_has_task(const struct client *c, const char *alloc_id, const char *task)
{
    struct alloc_runner *ar = alloc_runner_find(&c->allocs, alloc_id);
    return ar != NULL && alloc_runner_task(ar, task) != NULL;
}

static const struct task *
client_task(const struct client *c, const char *alloc_id, const char *task)
{
    const struct alloc_runner *ar = alloc_runner_find(&c->allocs, alloc_id);
    for (size_t i = 0; ar != NULL && ar->a.tg != NULL && i < ar->a.tg->tasks.n; i++)
        if (str_eq(ar->a.tg->tasks.v[i]->name, task))
            return ar->a.tg->tasks.v[i];
    return NULL;
}

const char *
client_task_driver(const struct client *c, const char *alloc_id, const char *task)
{
    const struct task *t = client_task(c, alloc_id, task);
    return t != NULL ? t->driver : NULL;
}

const struct action *
client_task_action(const struct client *c, const char *alloc_id, const char *job, const char *task,
                   const char *action)
{
    const struct alloc_runner *ar = alloc_runner_find(&c->allocs, alloc_id);
    const struct task *t = client_task(c, alloc_id, task);
    for (size_t i = 0; t != NULL && str_eq(ar->a.rec->alloc->job_id, job) && i < t->actions.n; i++)
        if (str_eq(t->actions.v[i]->name, action))
            return t->actions.v[i];
    return NULL;
}

static void
count_task(const char *state, struct client_info *ret)
{
    if (str_eq(state, "running"))
        ret->tasks_running++;
    else if (str_eq(state, "dead"))
        ret->tasks_dead++;
    else
        ret->tasks_pending++;
}

void
client_info(const struct client *c, struct client_info *ret)
{
    *ret = (struct client_info){
        .node_id = c->g->node_id,
        .known_servers = known_text(c->known),
        .heartbeat_ttl_ns = c->reg.ttl_ns,
        .last_heartbeat_ns =
            c->reg.last_heartbeat_ns ? clock_mono_ns() - c->reg.last_heartbeat_ns : -1,
        .registered = c->reg.registered,
    };
    ALLOCS_EACH (&c->allocs, ar) {
        ret->allocs++;
        if (alloc_runner_terminal(ar))
            ret->allocs_terminal++;
        else if (str_eq(ar->status, ALLOC_RUNNING))
            ret->allocs_running++;
        else
            ret->allocs_pending++;
        for (size_t i = 0; i < ar->n; i++)
            count_task(ar->tasks[i].sm.t->state->state, ret);
    }
}

int
client_set_servers(struct client *c, const struct str_list *servers, struct err *e)
{
    return known_set(c->known, servers, e);
}

/* --- operations on allocations --- */

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
    hold_release(&op->c->g->hold);
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
    hold_take(&c->g->hold);
    loop_post(c->g->loop, operation_posted, op);
    return op;
}

/* The runner and the task asked for; false with op->e set. */
static bool
client_target(struct operation *op, const char *alloc_id, const char *task,
              struct alloc_runner **ret_ar, struct task_runner **ret_tr)
{
    *ret_tr = NULL;
    *ret_ar = alloc_runner_find(&op->c->allocs, alloc_id);
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

/* An end of the whole that is under way, poststop tasks in it, is not called back for some tasks.
 */
static bool
is_ending(const struct alloc_runner *ar)
{
    bool killed = false, over = true;
    for (size_t i = 0; i < ar->n; i++) {
        const struct task_sm *m = &ar->tasks[i].sm;
        killed = killed || (task_sm_live(m->t) && m->t->kill);
        over = over && (m->cfg.role == ROLE_POSTSTOP || !task_sm_live(m->t));
    }
    return ar->a.rec->stopping || ar->a.rec->overdue || killed || over;
}

void
client_alloc_restart(struct client *c, const char *alloc_id, const char *task, bool all_tasks,
                     client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    struct alloc_runner *ar;
    struct task_runner *tr;
    if (!client_target(op, alloc_id, task, &ar, &tr))
        return;
    if (is_ending(ar)) {
        err_set(&op->e, -ERR_CONFLICT,
                "restart of an alloc that should not run: \"%s\" has ended or is to stop",
                ar->a.id);
        return;
    }
    if (tr && tr->sm.t->phase != TASK_RUNNING && tr->sm.t->phase != TASK_DELAY) {
        err_set(&op->e, -ERR_CONFLICT, "task \"%s\" is not running", tr->sm.t->name);
        return;
    }
    if (!tr && all_tasks) {
        alloc_runner_begin_anew(ar, "User requested all tasks to restart");
        return;
    }
    for (size_t i = 0; i < ar->n; i++)
        if (!tr || tr == &ar->tasks[i])
            task_runner_act(&ar->tasks[i],
                            task_sm_restart(&ar->tasks[i].sm, clock_civil_ns(),
                                            "User requested running tasks to restart"));
}

static void
signal_for_user(struct task_runner *t, int sig, client_done *done, void *arg)
{
    task_runner_signal(t, sig, "User requested signal", done, arg);
}

/* Asks for something of the task, or of all tasks, that run; a signal also of those that are being
 * stopped. */
static void
each_running(struct operation *op, struct alloc_runner *ar, struct task_runner *tr,
             void (*ask)(struct task_runner *t, int what, client_done *done, void *arg), int what)
{
    size_t sent = 0;
    for (size_t i = 0; i < ar->n; i++) {
        struct task_runner *t = &ar->tasks[i];
        bool stops = ask == signal_for_user && task_sm_lives(&t->sm);
        if ((tr && tr != t) || (t->sm.t->phase != TASK_RUNNING && !stops))
            continue;
        op->left++;
        sent++;
        ask(t, what, operation_part, op);
    }
    if (sent == 0)
        err_set(&op->e, -ERR_CONFLICT, "%s of allocation \"%s\"%s running",
                tr ? "the task" : "no task", ar->a.id, tr ? " is not" : " is");
}

void
client_alloc_signal(struct client *c, const char *alloc_id, const char *task, const char *signal,
                    client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    struct alloc_runner *ar;
    struct task_runner *tr;
    if (!client_target(op, alloc_id, task, &ar, &tr))
        return;
    int sig = str_empty(signal) ? SIGKILL : signal_parse(signal);
    if (sig <= 0) {
        err_set(&op->e, -ERR_INVALID, "invalid signal \"%.32s\"", signal);
        return;
    }
    each_running(op, ar, tr, signal_for_user, sig);
}

void
client_alloc_pause(struct client *c, const char *alloc_id, const char *task, bool on,
                   client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    struct alloc_runner *ar;
    struct task_runner *tr;
    if (client_target(op, alloc_id, task, &ar, &tr))
        each_running(op, ar, tr, task_runner_pause, on);
}

void
client_alloc_gc(struct client *c, const char *alloc_id, client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    struct alloc_runner *ar;
    struct task_runner *tr;
    if (!client_target(op, alloc_id, NULL, &ar, &tr))
        return;
    op->left++;
    if (!gc_collect(c->gc, ar, GC_ASKED, operation_part, op)) {
        op->left--;
        err_set(&op->e, -ERR_CONFLICT,
                ar->lent > 0 ? "allocation \"%s\" gives its disk to the next one: try again"
                             : "allocation \"%s\" is not terminal: stop it first",
                ar->a.id);
    }
}

void
client_gc(struct client *c, client_done *done, void *arg)
{
    struct operation *op = operation_new(c, done, arg);
    ALLOCS_EACH (&c->allocs, ar)
        op->left += gc_collect(c->gc, ar, GC_ASKED, operation_part, op);
}

/* --- passed on to its modules --- */

void
client_reload(struct client *c)
{
    link_reload(c->link);
}

/* Leaves in memory what was before: the node that is registered now refers to it. */
void
client_configure(struct client *c, const struct agent_client *agent,
                 const struct agent_config *plugins)
{
    struct client_config *cfg = &c->g->cfg;

    if (plugins)
        cfg->plugins = copy_plugins(c->g, plugins);
    if (!agent)
        return;
    struct agent_client now = *cfg->agent;
    now.meta = agent->meta;
    now.reserved = agent->reserved;
    cfg->agent = codec_clone(c->g, &type_agent_client, &now);
    on_node_changed(c);
}

void
client_drain(struct client *c, const struct drain_spec *spec, client_done *done, void *arg)
{
    drain_start(&c->drain, c->g, spec, done, arg);
}

void
client_identity(struct client *c, bool renew, client_identity_done *done, void *arg)
{
    node_claims_get(c->claims, renew, done, arg);
}

struct node_meta_response *
client_meta(const struct client *c, const void *ctx)
{
    return meta_response(c->meta, ctx);
}

void
client_meta_apply(struct client *c, const struct value *meta, client_done *done, void *arg)
{
    meta_apply(c->meta, meta, done, arg);
}

void
client_each_live(struct client *c, client_alloc_fn *fn, void *arg)
{
    ALLOCS_EACH (&c->allocs, ar)
        if (!alloc_runner_terminal(ar))
            fn(arg, ar->a.rec->alloc);
}

void
client_each_services(struct client *c, client_services_fn *fn, void *arg)
{
    ALLOCS_EACH (&c->allocs, ar)
        if (ar->names.set && !alloc_runner_terminal(ar))
            fn(arg, ar->a.rec->alloc, ar->names.set->services.n, &ar->a.rec->checks);
}

const struct check_result_list *
client_alloc_checks(const struct client *c, const char *alloc_id)
{
    const struct alloc_runner *ar = alloc_runner_find(&c->allocs, alloc_id);
    return ar ? &ar->a.rec->checks : NULL;
}

int
client_alloc_stats(struct client *c, const void *ctx, const char *alloc_id, const char *task,
                   struct alloc_resource_usage **ret, struct err *e)
{
    return stats_alloc(&c->allocs, ctx, alloc_id, task, ret, e);
}

void
client_each_usage(struct client *c, client_usage_fn *fn, void *arg)
{
    stats_each_usage(&c->allocs, fn, arg);
}

struct host_stats *
client_host_stats(struct client *c, const void *ctx)
{
    return stats_host(c->g, &c->cpus, ctx);
}

void
client_fs(struct client *c, const char *alloc_id, const char *path, bool stat,
          client_files_done *done, void *arg)
{
    fs_list(&c->allocs, alloc_id, path, stat, done, arg);
}

void
client_stream_open(struct client *c, const struct client_stream_request *req,
                   client_stream_opened *opened, void *arg)
{
    streams_open(c->streams, req, opened, arg);
}

struct client_exec *
client_exec_open(struct client *c, const char *alloc_id, const struct client_exec_request *req,
                 const struct client_exec_events *events, void *arg)
{
    return execs_open(c->execs, alloc_id, req, events, arg);
}
