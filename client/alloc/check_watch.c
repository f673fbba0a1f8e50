/* SPDX-License-Identifier: Apache-2.0
 *
 * The looks at checks, see check_watch.h. In this order: results, with the restarts that come of
 * them, and the looks themselves; which checks there are, from one set of plans to the next; and
 * the answers to hooks.
 */
#include "client/alloc/check_watch.h"

#include <string.h>

#include "client/alloc/check_script.h"
#include "client/alloc/hooks_run.h"
#include "client/probe/probe.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum {
    TELL_MS = 100, /* changes of health are told together */
    NOTE_MS = 10000,       /* between two events of one check, so that others are kept as well */
    NOTE_TEXT = 256,       /* bytes of its output in an event */
    INTERVAL_MIN_MS = 100, /* whatever a job says */
    INTERVAL_MOST_MS = 24 * 3600 * 1000
};

struct check_watch {
    UT_hash_handle hh;
    struct check_watches *in;
    struct check_plan *plan;
    struct check_result *result; /* in the record, a context of its own */
    char *text;                  /* its output, once there was a look */
    struct timer *timer;
    struct probe *probe;         /* a look, of one kind or the other; NULL: none is under way */
    struct check_script *script;
    int64_t good_ns; /* passes since; 0: it does not. Wall clock */
    int64_t bad_ns;  /* fails since, after the grace; 0: it does not */
    int64_t noted_ns; /* when an event told its status; boot clock */
    const char *noted; /* ... which was; NULL: none yet. A constant */
    bool kept;
};

struct check_watches {
    struct alloc_runner *ar;
    struct check_watch *all;
    struct timer *tell;
};

static void check_watch_look(void *arg);

static int64_t
check_watch_ms(int64_t ns)
{
    int64_t ms = ns / NS_PER_MS;
    return ms < INTERVAL_MIN_MS ? INTERVAL_MIN_MS : ms > INTERVAL_MOST_MS ? INTERVAL_MOST_MS : ms;
}

static void
check_watch_in(struct check_watch *w, int64_t ms)
{
    timer_stop(w->timer);
    w->timer = timer_start(w->in->ar->a.g->loop, ms, check_watch_look, w);
}

/* --- results --- */

/* Says whether an event is due: the status is another one than the last told. Success after nothing
 * is what all expect. */
static bool
check_watch_owes(struct check_watch *w)
{
    const char *is = w->result->status;
    if (!w->noted && str_eq(is, CHECK_SUCCESS))
        w->noted = CHECK_SUCCESS;
    return !str_eq(w->noted, is) && !str_eq(is, CHECK_PENDING) &&
           (w->noted_ns == 0 || clock_boot_ns() - w->noted_ns >= NOTE_MS * NS_PER_MS);
}

/* The text of the event, owned by ctx. */
static const char *
check_watch_note(const void *ctx, struct check_watch *w)
{
    bool ok = str_eq(w->result->status, CHECK_SUCCESS);
    char *output = mem_strdup(ctx, w->result->output);
    output[utf8_cut(output, NOTE_TEXT)] = 0;
    w->noted = ok ? CHECK_SUCCESS : CHECK_FAILURE;
    w->noted_ns = clock_boot_ns();
    return mem_printf(ctx, "check \"%s\" of service \"%s\" %s: %s", w->plan->name,
                      w->plan->service, ok ? "passes" : "fails", output);
}

/* Says whether the check is of this task, or of its group, of which it is a main one. */
static bool
check_watch_concerns(const struct check_watch *w, const struct task_runner *tr)
{
    const char *named = w->plan->restarts;
    return named ? str_eq(named, tr->sm.t->name) : tr->sm.cfg.role == ROLE_MAIN;
}

/* Tells tasks of it by events. Watches may be gone when the first is told. */
static void
check_watch_note_all(struct check_watches *in)
{
    struct alloc_runner *ar = in->ar;
    auto_mem void *tmp = mem_ctx("check");
    struct str_list *of_task = mem_array(tmp, struct str_list, ar->n);
    for (struct check_watch *w = in->all; w; w = w->hh.next) {
        if (!check_watch_owes(w))
            continue;
        const char *text = check_watch_note(tmp, w);
        for (size_t i = 0; i < ar->n; i++)
            if (check_watch_concerns(w, &ar->tasks[i]))
                list_add(tmp, of_task[i], text);
    }
    for (size_t i = 0; i < ar->n; i++)
        for (size_t k = 0; k < of_task[i].n; k++)
            task_runner_act(&ar->tasks[i], task_sm_note(&ar->tasks[i].sm, clock_civil_ns(),
                                                        TASK_EVENT_CHECK, of_task[i].v[k]));
}

static void
on_tell(void *arg)
{
    struct check_watches *in = arg;
    struct alloc_runner *ar = in->ar;
    in->tell = NULL;
    check_watch_note_all(in);
    hooks_changed(ar);
}

static void
check_watch_tell(struct check_watches *in)
{
    if (!in->tell)
        in->tell = timer_start(in->ar->a.g->loop, TELL_MS, on_tell, in);
}

/* Says whether a failure of the check restarts the task. */
static bool
check_watch_is_target(const struct check_watch *w, const struct task_runner *tr, int64_t now)
{
    const struct task_sm *m = &tr->sm;
    if (w->plan->restarts ? !str_eq(w->plan->restarts, m->t->name) : m->cfg.role != ROLE_MAIN)
        return false;
    return m->t->phase == TASK_RUNNING && checks_counts(w->plan, m->t->state->started_at, now);
}

/* Restarts what it must. The watch may be gone after this. */
static void
check_watch_punish(struct check_watch *w, int64_t now)
{
    struct alloc_runner *ar = w->in->ar;
    auto_mem bool *target = mem_array(NULL, bool, ar->n);
    bool any = false;
    for (size_t i = 0; i < ar->n; i++) {
        target[i] = check_watch_is_target(w, &ar->tasks[i], now);
        any = any || target[i];
    }
    w->bad_ns = !any ? 0 : w->bad_ns == 0 || w->bad_ns > now ? now : w->bad_ns;
    if (!any || !checks_restarts(w->plan, w->bad_ns, now))
        return;
    w->bad_ns = 0;
    auto_mem void *tmp = mem_ctx("check");
    const char *why = mem_printf(tmp, "healthcheck: check \"%s\" unhealthy", w->plan->name);
    for (size_t i = 0; i < ar->n; i++)
        if (target[i])
            task_runner_act(&ar->tasks[i], task_sm_unhealthy(&ar->tasks[i].sm, now, why));
}

static void
check_watch_take(struct check_watch *w, bool ok, int code, const char *output)
{
    struct alloc_runner *ar = w->in->ar;
    struct check_result *r = w->result;
    int64_t now = clock_civil_ns();
    const char *status = ok ? CHECK_SUCCESS : CHECK_FAILURE;
    bool changed = !str_eq(status, r->status);
    r->status = status;
    r->status_code = code;
    if (!str_eq(r->output, output)) {
        mem_free(w->text);
        r->output = w->text = mem_strdup(r, output);
    }
    r->timestamp = now / NS_PER_S;
    w->good_ns = !ok ? 0 : w->good_ns == 0 || w->good_ns > now ? now : w->good_ns;
    if (changed) {
        log_info("client", "check is now", "alloc_id", ar->a.id, "check", w->plan->name, "status",
                 status, "output", output, NULL);
        alloc_runner_persist(ar);
    }
    if (changed || check_watch_owes(w))
        check_watch_tell(w->in);
    check_watch_in(w, check_watch_ms(w->plan->check->interval));
    if (ok)
        w->bad_ns = 0;
    if (!ok && w->plan->restart)
        check_watch_punish(w, now);
}

static void
on_probed(void *arg, const struct probe_answer *a)
{
    struct check_watch *w = arg;
    w->probe = NULL;
    w->script = NULL;
    check_watch_take(w, a->ok, a->status, a->output);
}

/* Looks by a command in a task. */
static void
check_watch_run(struct check_watch *w)
{
    struct alloc_runner *ar = w->in->ar;
    struct task_runner *tr = alloc_runner_task(ar, w->plan->runs);
    auto_mem void *tmp = mem_ctx("check");
    struct err e = ERR_INIT;
    if (!tr || !task_sm_lives(&tr->sm))
        err_set(&e, -ERR_CONFLICT, "task \"%.100s\" is not running", w->plan->runs);
    else
        w->script = check_script_start(tr, w->plan->check, check_watch_ms(w->plan->check->timeout),
                                       on_probed, w, &e);
    if (!w->script)
        check_watch_take(w, false, 0, mem_printf(tmp, "nomad: %s", e.text));
}

static enum probe_kind
check_watch_kind(const struct service_check *c)
{
    return str_eq(c->type, "http") ? PROBE_HTTP : str_eq(c->type, "grpc") ? PROBE_GRPC : PROBE_TCP;
}

static void
check_watch_probe(struct check_watch *w)
{
    const struct check_plan *p = w->plan;
    const struct service_check *c = p->check;
    auto_mem void *tmp = mem_ctx("check");
    struct probe_ask ask = {.address = p->address,
                            .port = p->port,
                            .timeout_ms = check_watch_ms(c->timeout),
                            .kind = check_watch_kind(c),
                            .skip_verify = c->tls_skip_verify,
                            .service = c->grpc_service,
                            .method = str_or(c->method, "GET"),
                            .path = c->path,
                            .body = c->body};
    ask.tls = ask.kind == PROBE_GRPC ? c->grpc_use_tls : str_eq(c->protocol, "https");
    struct http_pair *headers = NULL;
    size_t n = 0;
    for (size_t i = 0; i < c->header.n; i++)
        for (size_t k = 0; k < c->header.v[i].v.n; k++) {
            mem_resize(tmp, headers, struct http_pair, n + 1);
            headers[n++] = (struct http_pair){c->header.v[i].k, str_or(c->header.v[i].v.v[k], "")};
        }
    ask.headers = headers;
    ask.n_headers = n;
    w->probe = probe_start(w->in->ar->in->prober, &ask, on_probed, w);
}

static void
check_watch_look(void *arg)
{
    struct check_watch *w = arg;
    w->timer = NULL;
    if (w->plan->error) {
        auto_mem void *tmp = mem_ctx("check");
        check_watch_take(w, false, 0, mem_printf(tmp, "nomad: %s", w->plan->error));
    } else if (w->plan->runs) {
        check_watch_run(w);
    } else {
        check_watch_probe(w);
    }
}

/* --- which --- */

/* Finds the result in the record, as an earlier agent left it, or adds one. */
static struct check_result *
check_watch_result(struct client_alloc *rec, const struct check_plan *p, int64_t now)
{
    for (size_t i = 0; i < rec->checks.n; i++)
        if (str_eq(rec->checks.v[i]->id, p->id))
            return rec->checks.v[i] = codec_clone(rec, &type_check_result, rec->checks.v[i]);
    struct check_result *r = checks_waiting(rec, p, now);
    list_add(rec, rec->checks, r);
    return r;
}

static void
check_watch_begin(struct check_watches *in, struct check_plan *plan)
{
    struct alloc_runner *ar = in->ar;
    struct check_watch *w = mem_new(in, struct check_watch);
    int64_t now = clock_civil_ns();
    w->in = in;
    w->kept = true;
    w->plan = talloc_steal(w, plan);
    w->result = check_watch_result(ar->a.rec, plan, now);
    w->good_ns = str_eq(w->result->status, CHECK_SUCCESS) ? now : 0;
    HASH_ADD_KEYPTR(hh, in->all, w->plan->id, strlen(w->plan->id), w);
    check_watch_in(w, check_watch_ms(plan->check->interval) / 2);
}

static void
check_watch_end(struct check_watch *w)
{
    timer_stop(w->timer);
    probe_cancel(w->probe);
    check_script_cancel(w->script);
    HASH_DEL(w->in->all, w);
    talloc_free(w);
}

static void
check_watch_forget(struct client_alloc *rec, struct check_result *r)
{
    size_t n = 0;
    for (size_t i = 0; i < rec->checks.n; i++)
        if (rec->checks.v[i] != r)
            rec->checks.v[n++] = rec->checks.v[i];
    rec->checks.n = n;
    talloc_free(r);
}

/* Leaves in the record the results of checks that there are: others are of an earlier agent. */
static void
check_watch_tidy(struct check_watches *in)
{
    struct client_alloc *rec = in->ar->a.rec;
    size_t n = 0;
    for (size_t i = 0; i < rec->checks.n; i++) {
        struct check_watch *w = NULL;
        HASH_FIND_STR(in->all, rec->checks.v[i]->id, w);
        if (w)
            rec->checks.v[n++] = rec->checks.v[i];
    }
    rec->checks.n = n;
}

void
check_watch_set(struct alloc_runner *ar, struct check_plans *plans)
{
    struct check_watches *in = ar->checks;
    struct check_watch *w, *next;
    if (!in && plans->n == 0 && ar->a.rec->checks.n == 0)
        return;
    if (!in) {
        in = ar->checks = mem_new(ar, struct check_watches);
        in->ar = ar;
    }
    for (w = in->all; w; w = w->hh.next)
        w->kept = false;
    for (size_t i = 0; i < plans->n; i++) {
        HASH_FIND_STR(in->all, plans->v[i]->id, w);
        if (!w) {
            check_watch_begin(in, plans->v[i]);
        } else if (!w->kept) { /* its address may be another one */
            w->kept = true;
            HASH_DEL(in->all, w);
            mem_free(w->plan);
            w->plan = talloc_steal(w, plans->v[i]);
            HASH_ADD_KEYPTR(hh, in->all, w->plan->id, strlen(w->plan->id), w);
        }
    }
    HASH_ITER(hh, in->all, w, next)
    {
        if (!w->kept) {
            struct check_result *r = w->result;
            check_watch_end(w);
            check_watch_forget(ar->a.rec, r);
        }
    }
    check_watch_tidy(in);
}

/* --- what comes of it --- */

const char *
check_watch_health(const struct alloc_runner *ar, const char *registration)
{
    const struct check_watches *in = ar->checks;
    auto_mem void *tmp = mem_ctx("health");
    size_t n = 0;
    const struct check_result **v =
        mem_array(tmp, const struct check_result *, in ? HASH_COUNT(in->all) : 0);
    for (const struct check_watch *w = in ? in->all : NULL; w; w = w->hh.next)
        if (str_eq(w->plan->registration, registration))
            v[n++] = w->result;
    return checks_health(v, n);
}

int64_t
check_watch_since(const struct alloc_runner *ar, size_t *ret_passing, size_t *ret_n)
{
    int64_t since = 0;
    *ret_passing = *ret_n = 0;
    for (const struct check_watch *w = ar->checks ? ar->checks->all : NULL; w; w = w->hh.next) {
        if (w->plan->readiness)
            continue;
        ++*ret_n;
        *ret_passing += w->good_ns != 0;
        since = w->good_ns > since ? w->good_ns : since;
    }
    return since;
}

void
check_watch_stop(struct alloc_runner *ar)
{
    struct check_watches *in = TAKE(ar->checks);
    struct check_watch *w, *next;
    if (!in)
        return;
    timer_stop(in->tell);
    HASH_ITER(hh, in->all, w, next)
    check_watch_end(w);
    talloc_free(in);
}
