/* SPDX-License-Identifier: Apache-2.0
 *
 * The identities of a task: signed before it starts, in its environment and its files, and signed
 * anew before they end. They are kept in memory alone; the task's record has the time of the next
 * renewal. No task ends because no server signs: what it has stays, and is asked for until somebody
 * answers.
 *
 *      begin: signing -> signed -> files put, one after the other -> the task starts
 *      runs:  (half of the shortest life) signing -> files replaced -> change_mode
 */
#include <string.h>

#include "client/local.h"
#include "client/signing.h"
#include "client/task/handle.h"
#include "client/task/launch.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/random.h"
#include "common/str.h"

#define IDENTITY_DEFAULT "default"
#define AT_DEFAULT SIZE_MAX

enum {
    START_PATIENCE_MS = 60000,   /* then it starts without */
    TIMER_MOST_MS = 3600 * 1000, /* clocks are set */
    TIMER_LEAST_MS = 1000,       /* between two renewals */
    REFUSED_AGAIN_MS = 60000,    /* after the servers refused a task that runs */
    PUT_AGAIN_MS = 5000,         /* after a file could not be replaced */
};
#define ENDLESS_NS (24 * 3600 * NS_PER_S) /* of those without a ttl: keys go */

struct identity_state {
    struct identity_hook *h;
    size_t at; /* in the job's list; AT_DEFAULT: that beside it */
    struct signing *signing;
    char *jwt;    /* NULL: not signed by this agent */
    bool stale;   /* its file is to be written */
    bool had;     /* the task runs with an earlier one */
    bool changed; /* change_mode is to be done */
};

/* A file that is being written. */
struct identity_put {
    struct identity_hook *h; /* NULL: it has gone */
    struct alloc_core *ar;
    size_t at;
};

struct identity_hook { /* a talloc context */
    struct task_runner *tr;
    struct identity_state *v;
    size_t n;
    struct identity_put *put; /* under way */
    struct timer *timer;      /* of the next renewal, or until it starts without, or tries again */
    int64_t told_ns;          /* when an event said that something failed */
    bool ready;               /* all is there for the start at hand */
};

static void identity_arm(struct identity_hook *h);
static void identity_step(struct identity_hook *h);

/* An update of the job has them as they are. */
static const struct workload_identity *
identity_of(const struct identity_state *s)
{
    const struct task *t = s->h->tr->task;
    return s->at == AT_DEFAULT ? t->identity : t->identities.v[s->at];
}

static const char *
identity_name(const struct identity_state *s)
{
    return s->at == AT_DEFAULT ? IDENTITY_DEFAULT : identity_of(s)->name;
}

static bool
identity_launching(const struct identity_hook *h)
{
    return h->tr->launching && !h->ready;
}

static void
identity_forget(struct identity_state *s)
{
    if (s->jwt != NULL)
        explicit_bzero(s->jwt, strlen(s->jwt));
    mem_free(s->jwt);
    s->jwt = NULL;
}

/* --- what the task sees --- */

static bool
identity_wanted(const struct workload_identity *w)
{
    return w != NULL && (w->env || w->file);
}

bool
identity_has_file(const struct task *t)
{
    bool any = t->identity != NULL && t->identity->file;
    for (size_t i = 0; i < t->identities.n; i++)
        any = any || t->identities.v[i]->file;
    return any;
}

void
identity_env(const void *ctx, const struct task_runner *tr, const char *secrets_dir,
             struct str_map *ret)
{
    const struct identity_hook *h = tr->hook.identity;
    if (h == NULL)
        return;
    str_map_set(ctx, ret, "NOMAD_UNIX_ADDR", mem_printf(ctx, "unix://%s/api.sock", secrets_dir));
    for (size_t i = 0; i < h->n; i++) {
        const struct identity_state *s = &h->v[i];
        const char *name = s->at == AT_DEFAULT
                               ? "NOMAD_TOKEN"
                               : mem_printf(ctx, "NOMAD_TOKEN_%s", identity_name(s));
        if (identity_of(s)->env && s->jwt != NULL)
            str_map_set(ctx, ret, name, s->jwt);
    }
}

/* Returns the path below the allocation's directory. */
static const char *
identity_path(const void *ctx, const struct identity_state *s)
{
    const char *task = s->h->tr->sm.t->name, *path = identity_of(s)->filepath;
    while (path != NULL && *path == '/')
        path++;
    if (!str_empty(path))
        return mem_printf(ctx, "%s/%s", task, path);
    if (s->at == AT_DEFAULT)
        return mem_printf(ctx, "%s/secrets/nomad_token", task);
    return mem_printf(ctx, "%s/secrets/nomad_%s.jwt", task, identity_name(s));
}

/* --- failures --- */

/* A task that runs goes on. */
static void
identity_told(struct identity_hook *h, const struct identity_state *s, const char *what,
              const char *why)
{
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("identity");
    int64_t now = clock_mono_ns();
    if (h->told_ns != 0 && now - h->told_ns < HOOK_QUIET_NS)
        return;
    h->told_ns = now;
    log_warn("client", "an identity of a task is not as it should be", "alloc_id", tr->ar->id,
             "task", tr->sm.t->name, "identity", identity_name(s), "what", what, "error", why,
             NULL);
    tr->act(tr,
            task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_HOOK_MESSAGE,
                         mem_printf(tmp, "Identity[%s]: %s: %.600s", identity_name(s), what, why)));
}

static void
identity_failed(struct identity_hook *h, const struct identity_state *s, const char *what,
                const char *why)
{
    auto_mem void *tmp = mem_ctx("identity");
    h->tr->up->failed(h->tr, TASK_EVENT_SETUP_FAILURE,
                      mem_printf(tmp, "Identity[%s]: %s: %.600s", identity_name(s), what, why),
                      true);
}

/* --- files --- */

static void
identity_on_put(void *arg, const struct err *e)
{
    struct identity_put *p = arg;
    struct identity_hook *h = p->h;
    struct alloc_core *ar = p->ar;
    size_t at = p->at;
    talloc_free(p);
    if (h != NULL && !ar->stopped) {
        struct identity_state *s = &h->v[at];
        h->put = NULL;
        if (e == NULL) {
            s->stale = false;
            identity_step(h);
        } else if (identity_launching(h)) {
            identity_failed(h, s, "its file cannot be written", e->text);
        } else {
            identity_told(h, s, "its file cannot be written", e->text);
            identity_arm(h);
        }
    }
    hold_release(&ar->hold);
}

static void
identity_put(struct identity_hook *h, size_t at)
{
    struct task_runner *tr = h->tr;
    struct identity_state *s = &h->v[at];
    struct identity_put *p = mem_new(NULL, struct identity_put);
    *p = (struct identity_put){h, tr->ar, at};
    struct warden_put put = {.alloc_id = tr->ar->id,
                             .task = tr->sm.t->name,
                             .path = identity_path(p, s),
                             .data = s->jwt,
                             .n = strlen(s->jwt),
                             .whole = true};
    launch_owner(p, tr, false, &put);
    h->put = p;
    hold_take(&tr->ar->hold);
    tr->handle->put(tr, &put, identity_on_put, p);
}

/* --- after a renewal --- */

static void
identity_change(struct identity_hook *h)
{
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("identity");
    const struct identity_state *restart = NULL;
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].changed && str_eq(identity_of(&h->v[i])->change_mode, "restart"))
            restart = &h->v[i];
    for (size_t i = 0; i < h->n; i++) {
        struct identity_state *s = &h->v[i];
        bool send = s->changed && restart == NULL && str_eq(identity_of(s)->change_mode, "signal");
        for (size_t k = 0; k < i; k++)
            send = send &&
                   !(h->v[k].changed && str_eq(identity_of(&h->v[k])->change_mode, "signal") &&
                     str_eq(identity_of(&h->v[k])->change_signal, identity_of(s)->change_signal));
        int sig = send ? signal_parse(identity_of(s)->change_signal) : 0;
        if (sig > 0 && tr->sm.t->phase == TASK_RUNNING)
            tr->signal(
                tr, sig,
                mem_printf(tmp, "Identity[%s]: new Identity token acquired", identity_name(s)),
                NULL, NULL);
    }
    for (size_t i = 0; i < h->n; i++)
        h->v[i].changed = false;
    if (restart != NULL)
        tr->act(tr, task_sm_restart(&tr->sm, clock_civil_ns(),
                                    mem_printf(tmp, "Identity[%s]: new token acquired",
                                               identity_name(restart))));
}

/* Does what is next: a file, the start, change_mode. */
static void
identity_step(struct identity_hook *h)
{
    struct task_runner *tr = h->tr;
    bool launching = identity_launching(h);
    if (h->put != NULL)
        return;
    for (size_t i = 0; i < h->n; i++)
        if (launching && h->v[i].signing != NULL)
            return;
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].stale && h->v[i].jwt != NULL && identity_of(&h->v[i])->file) {
            identity_put(h, i);
            return;
        }
    if (launching) {
        h->ready = true;
        for (size_t i = 0; i < h->n; i++)
            h->v[i].had = true;
        identity_arm(h);
        tr->up->go_on(tr);
        return;
    }
    identity_arm(h);
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].signing != NULL)
            return;
    if (tr->sm.t->phase == TASK_RUNNING)
        identity_change(h);
}

/* --- signing --- */

/* Says whether a new one is of use while the task runs. */
static bool
identity_renews(const struct identity_state *s)
{
    return identity_of(s)->file || identity_of(s)->ttl > 0;
}

/* Returns how long those that are renewed are good, the shortest; 0: none is. */
static int64_t
identity_life(const struct identity_hook *h)
{
    int64_t life = 0;
    for (size_t i = 0; i < h->n; i++) {
        int64_t own = identity_of(&h->v[i])->ttl > 0 ? identity_of(&h->v[i])->ttl : ENDLESS_NS;
        if (identity_renews(&h->v[i]) && (life == 0 || own < life))
            life = own;
    }
    return life;
}

/* Sets when all are signed anew: at half of that life, and up to a tenth of that later. */
static void
identity_plan(struct identity_hook *h)
{
    struct client_task *t = h->tr->sm.t;
    int64_t life = identity_life(h);
    t->renew =
        life == 0 ? 0
                  : clock_civil_ns() + life / 2 + (int64_t)(rand_u64() % (uint64_t)(life / 20 + 1));
    local_put_task(h->tr->ar->g->local, h->tr->ar->id, t);
}

static void
identity_on_signed(void *arg, const struct signed_identity *id, const char *why)
{
    struct identity_state *s = arg;
    struct identity_hook *h = s->h;
    s->signing = NULL;
    if (h->tr->ar->stopped)
        return;
    if (id != NULL) {
        identity_forget(s);
        s->jwt = mem_strdup(h, id->jwt);
        s->stale = identity_of(s)->file;
        s->changed = s->had && identity_of(s)->ttl > 0;
        identity_plan(h);
    } else if (!identity_launching(h)) {
        identity_told(h, s, "it was not renewed", why);
        h->tr->sm.t->renew = clock_civil_ns() + REFUSED_AGAIN_MS * NS_PER_MS;
    } else if (!h->tr->task->lifecycle || !str_eq(h->tr->task->lifecycle->hook, "poststop")) {
        identity_failed(h, s, "the servers do not sign it", why);
        return;
    } /* else its allocation has ended, and what is after that goes without */
    identity_step(h);
}

static void
identity_sign(struct identity_state *s)
{
    const struct task_runner *tr = s->h->tr;
    const struct identity_request q = {tr->ar->id, tr->sm.t->name, identity_name(s)};
    if (s->signing == NULL)
        s->signing = signing_begin(tr->ar->g->signings, &q, identity_on_signed, s);
}

static bool
identity_due(const struct identity_hook *h)
{
    int64_t at = h->tr->sm.t->renew, now = clock_civil_ns();
    return at != 0 && (at <= now || at > now + identity_life(h)); /* the clock was set back */
}

static void
identity_on_timer(void *arg)
{
    struct identity_hook *h = arg;
    h->timer = NULL;
    if (h->tr->ar->stopped)
        return;
    if (identity_launching(h)) {
        for (size_t i = 0; i < h->n; i++)
            if (h->v[i].jwt == NULL) {
                identity_told(h, &h->v[i], "the task starts without it", "no server has signed it");
                break;
            }
        h->ready = true;
        h->tr->up->go_on(h->tr);
        return;
    }
    if (identity_due(h))
        for (size_t i = 0; i < h->n; i++)
            if (identity_renews(&h->v[i]))
                identity_sign(&h->v[i]);
    identity_step(h);
}

static void
identity_arm(struct identity_hook *h)
{
    int64_t at = h->tr->sm.t->renew, now = clock_civil_ns(), ms = TIMER_MOST_MS;
    bool signing = false, stale = false;
    timer_stop(TAKE(h->timer));
    for (size_t i = 0; i < h->n; i++) {
        signing = signing || h->v[i].signing != NULL;
        stale = stale || (h->v[i].stale && h->v[i].jwt != NULL);
    }
    if (identity_launching(h)) {
        ms = START_PATIENCE_MS;
    } else if (stale && h->put == NULL) {
        ms = PUT_AGAIN_MS;
    } else if (at == 0 || signing) { /* its answer arms again */
        return;
    } else if (at - now < TIMER_MOST_MS * NS_PER_MS) {
        ms = (at - now + NS_PER_MS - 1) / NS_PER_MS;
        ms = ms < TIMER_LEAST_MS ? TIMER_LEAST_MS : ms;
    }
    h->timer = timer_start(h->tr->ar->g->loop, ms, identity_on_timer, h);
}

/* --- the hook --- */

static struct identity_hook *
identity_hook_of(struct task_runner *tr)
{
    struct identity_hook *h = tr->hook.identity;
    const struct task *t = tr->task;
    if (h != NULL)
        return h;
    h = tr->hook.identity = mem_new(tr->ar, struct identity_hook);
    h->tr = tr;
    h->v = mem_array(h, struct identity_state, t->identities.n + 1);
    if (identity_wanted(t->identity))
        h->v[h->n++] = (struct identity_state){h, AT_DEFAULT};
    for (size_t i = 0; i < t->identities.n; i++)
        if (identity_wanted(t->identities.v[i]))
            h->v[h->n++] = (struct identity_state){h, i};
    return h;
}

static bool
identity_none(const struct task *t)
{
    bool any = identity_wanted(t->identity);
    for (size_t i = 0; i < t->identities.n; i++)
        any = any || identity_wanted(t->identities.v[i]);
    return !any;
}

static bool
hook_identity_prestart(struct task_runner *tr)
{
    if (identity_none(tr->task))
        return true;
    struct identity_hook *h = identity_hook_of(tr);
    if (h->ready)
        return true;
    if (tr->ar->g->warden == NULL && identity_has_file(tr->task)) {
        tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE,
                       "the warden is not running: no identity is put into a file", false);
        return false;
    }
    if (h->timer != NULL || h->put != NULL)
        return false;
    bool due = identity_due(h), wait = false;
    for (size_t i = 0; i < h->n; i++) {
        struct identity_state *s = &h->v[i];
        s->had = s->changed = false;
        s->stale = identity_of(s)->file;
        if (s->jwt == NULL || due)
            identity_sign(s);
        wait = wait || s->signing != NULL || s->stale;
    }
    h->ready = !wait;
    identity_arm(h);
    if (wait)
        identity_step(h);
    return h->ready;
}

/* An adopted task has the identities of its start. */
static void
hook_identity_poststart(struct task_runner *tr)
{
    if (tr->sm.t->phase != TASK_RUNNING || identity_none(tr->task) || tr->hook.identity != NULL)
        return;
    struct identity_hook *h = identity_hook_of(tr);
    for (size_t i = 0; i < h->n; i++)
        h->v[i].had = true;
    h->ready = true;
    identity_arm(h);
}

/* Keeps those that are still good, for the next start. */
static void
hook_identity_stop(struct task_runner *tr)
{
    struct identity_hook *h = tr->hook.identity;
    if (h == NULL)
        return;
    timer_stop(TAKE(h->timer));
    for (size_t i = 0; i < h->n; i++)
        signing_end(TAKE(h->v[i].signing));
    if (h->put != NULL)
        h->put->h = NULL;
    h->put = NULL;
    h->ready = false;
    if (!tr->ar->stopped && tr->sm.t->phase != TASK_DEAD)
        return;
    for (size_t i = 0; i < h->n; i++)
        identity_forget(&h->v[i]);
    tr->hook.identity = NULL;
    talloc_free(h);
}

const struct task_hook task_hook_identity = {.prestart = hook_identity_prestart,
                                             .poststart = hook_identity_poststart,
                                             .stop = hook_identity_stop};
