/* SPDX-License-Identifier: Apache-2.0
 *
 * The templates of a task, rendered by a helper (paddock-render) before each start, and again when
 * the servers have another answer to a question of theirs. The first time all must be whole; later
 * the file stands in for a template that waits. So a task starts again while no server can be
 * reached, and nothing that runs ends because a source is away.
 *
 *      due -> rendering -> waits for an answer -> due ...
 *                       -> whole: the task starts, or, where it runs and the file is another one,
 *                          change_mode is done after a splay
 */
#include <string.h>

#include "api/artifact/artifact.h"
#include "client/lookup.h"
#include "client/task/command.h"
#include "client/task/env.h"
#include "client/task/handle.h"
#include "client/task/helper.h"
#include "client/task/hook_template.h"
#include "client/task/launch.h"
#include "client/turn.h"
#include "common/buf.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/helper.h"
#include "template/template.h"

enum {
    RENDER_MEMORY = 256 << 20,
    RENDER_THREADS = 1,
    RENDER_MS = 60000,
    RENDER_FILE_MAX = 64 << 20,
    MISSING_QUIET_MS = 3000, /* before an event tells what is missing, and between two of them */
    MISSING_SHOWN = 3,
};

/* A question that templates ask. */
struct template_use {
    struct template_hook *h;
    struct lookup *lookup;
    int64_t kind;
    char *key, *ns, *region, *name;
    bool *by;     /* which templates */
    bool missing; /* one of them waits for it */
};

static void template_render_due(struct template_hook *h);
static void template_arm(struct template_hook *h);

static bool
template_launching(const struct template_hook *h)
{
    return h->tr->launching && !h->ready;
}

/* --- what they ask for --- */

static void
template_use_free(struct template_use *u)
{
    lookup_end(u->lookup);
    talloc_free(u);
}

static int64_t
wait_between(const struct template_hook *h, const struct template *t, bool max)
{
    static const struct agent_template none;
    const struct agent_template *c = h->tr->ar->g->cfg.agent->template_config;
    c = c != NULL ? c : &none;
    const struct wait_config *w = t->wait != NULL ? t->wait : c->wait, *b = c->wait_bounds;
    int64_t ns = w == NULL ? (max ? 240 : 5) * NS_PER_S : max ? w->max.v : w->min.v;
    if (t->wait != NULL && b != NULL) {
        ns = b->min.set && ns < b->min.v ? b->min.v : ns;
        ns = b->max.set && ns > b->max.v ? b->max.v : ns;
    }
    return ns < 0 ? 0 : ns;
}

/* A change is waited out for `min`, and changes one behind the other for `max`. */
static void
template_due(struct template_hook *h, size_t i, int64_t now)
{
    struct template_state *s = &h->v[i];
    const struct template *t = template_of(h, i);
    if (template_launching(h)) {
        s->at_ns = now;
        return;
    }
    if (s->first_ns == 0)
        s->first_ns = now;
    int64_t most = s->first_ns + wait_between(h, t, true);
    s->at_ns = now + wait_between(h, t, false);
    s->at_ns = s->at_ns > most ? most : s->at_ns;
}

static void
on_looked_up(void *arg)
{
    struct template_use *u = arg;
    struct template_hook *h = u->h;
    int64_t now = clock_mono_ns();
    if (h->tr->ar->stopped)
        return;
    for (size_t i = 0; i < h->n; i++)
        if (u->by[i] && (!template_of(h, i)->once.v || template_launching(h)))
            template_due(h, i, now);
    template_arm(h);
}

/* *known: it is new, and its answer is there already. */
static struct template_use *
template_use_find(struct template_hook *h, const struct render_asked *a, bool *known)
{
    static const enum lookup_kind kinds[TEMPLATE_KINDS] = {[TEMPLATE_SERVICE] = LOOKUP_SERVICE,
                                                           [TEMPLATE_VARIABLE] = LOOKUP_VARIABLE,
                                                           [TEMPLATE_VARIABLES] = LOOKUP_VARIABLES,
                                                           [TEMPLATE_SERVICES] = LOOKUP_SERVICES};
    for (size_t i = 0; i < h->n_uses; i++) {
        struct template_use *u = h->uses[i];
        if (u->kind == a->kind && str_eq(u->key, str_or(a->key, "")) &&
            str_eq(u->ns, str_or(a->namespace, "")) && str_eq(u->region, str_or(a->region, "")))
            return u;
    }
    if (a->kind < 0 || a->kind >= TEMPLATE_KINDS)
        return NULL;
    struct template_use *u = mem_new(h, struct template_use);
    *u = (struct template_use){.h = h, .kind = a->kind, .by = mem_array(u, bool, h->n)};
    u->key = mem_strdup(u, str_or(a->key, ""));
    u->ns = mem_strdup(u, str_or(a->namespace, ""));
    u->region = mem_strdup(u, str_or(a->region, ""));
    u->name = mem_strdup(u, str_or(a->name, ""));
    const struct lookup_key k = {kinds[a->kind], h->tr->sm.t->name, u->ns, u->region, u->key};
    u->lookup = lookup_begin(h->tr->ar->g->lookups, h->tr->ar, &k, on_looked_up, u);
    mem_resize(h, h->uses, struct template_use *, h->n_uses + 1);
    h->uses[h->n_uses++] = u;
    *known = lookup_value(u->lookup) != NULL || lookup_refusal(u->lookup) != NULL;
    return u;
}

/* Follows what the rendered templates asked for, and nothing that none asks for any more. again:
 * those for which there is an answer already. */
static void
template_follow(struct template_hook *h, const struct render_report *r, bool *again)
{
    for (size_t k = 0; k < h->n_uses; k++)
        for (size_t i = 0; i < r->results.n; i++) {
            int64_t at = r->results.v[i]->index;
            if (at >= 0 && (size_t)at < h->n)
                h->uses[k]->by[at] = false;
        }
    for (size_t k = 0; k < h->n_uses; k++)
        h->uses[k]->missing = false;
    for (size_t i = 0; i < r->asked.n; i++) {
        const struct render_asked *a = r->asked.v[i];
        bool known = false;
        struct template_use *u =
            a->index >= 0 && (size_t)a->index < h->n ? template_use_find(h, a, &known) : NULL;
        if (u == NULL)
            continue;
        u->by[a->index] = true;
        again[a->index] = again[a->index] || known;
        u->missing = u->missing || a->missing;
    }
    size_t n = 0;
    for (size_t k = 0; k < h->n_uses; k++) {
        bool used = false;
        for (size_t i = 0; i < h->n; i++)
            used = used || h->uses[k]->by[i];
        if (used)
            h->uses[n++] = h->uses[k];
        else
            template_use_free(h->uses[k]);
    }
    h->n_uses = n;
}

static void
template_unfollow(struct template_hook *h)
{
    for (size_t k = 0; k < h->n_uses; k++)
        template_use_free(h->uses[k]);
    h->n_uses = 0;
}

/* --- the event of what is missing --- */

static int
by_name(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

/* Names what the templates wait for: "Missing: a, b"; NULL: nothing. Owned by ctx. */
static const char *
template_missing(const void *ctx, const struct template_hook *h)
{
    const char **names = mem_array(ctx, const char *, h->n_uses + 1);
    size_t n = 0;
    for (size_t k = 0; k < h->n_uses; k++)
        if (h->uses[k]->missing)
            names[n++] = h->uses[k]->name;
    if (n == 0)
        return NULL;
    qsort(names, n, sizeof(*names), by_name);
    char *text = mem_strdup(ctx, "Missing: ");
    for (size_t i = 0; i < n && i < MISSING_SHOWN; i++)
        text = mem_printf(ctx, "%s%s%.200s", text, i > 0 ? ", " : "", names[i]);
    return n > MISSING_SHOWN ? mem_printf(ctx, "%s, and %zu more", text, n - MISSING_SHOWN) : text;
}

static void
on_tell(void *arg)
{
    struct template_hook *h = arg;
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("missing");
    h->tell = NULL;
    const char *text = template_missing(tmp, h);
    if (text == NULL || !template_launching(h) || (h->told != NULL && str_eq(h->told, text)))
        return;
    mem_free(h->told);
    h->told = mem_strdup(h, text);
    tr->act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_TEMPLATE, text));
}

/* Gives a start up whose template has waited for longer than its job allows. */
static void
on_patience(void *arg)
{
    struct template_hook *h = arg;
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("patience");
    h->patience = NULL;
    if (!template_launching(h))
        return;
    const char *what = str_or(template_missing(tmp, h), "Missing: an answer of the servers");
    tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE,
                   mem_printf(tmp, "template waited for longer than its missing_timeout. %s", what),
                   true);
}

/* Waits no longer than the least patient of those that wait. */
static void
template_be_patient(struct template_hook *h)
{
    int64_t least = 0, now = clock_mono_ns();
    for (size_t i = 0; i < h->n; i++) {
        int64_t ns = template_of(h, i)->missing_timeout;
        if (h->v[i].waits && ns > 0 && (least == 0 || ns < least))
            least = ns;
    }
    timer_stop(TAKE(h->patience));
    if (least == 0)
        return;
    int64_t left = h->began_ns + least - now;
    h->patience = timer_start(h->tr->ar->g->loop, left > 0 ? (left + NS_PER_MS - 1) / NS_PER_MS : 0,
                              on_patience, h);
}

/* --- a rendering --- */

/* A mistake fails a task that is to start; a task that runs is told of, and goes on. */
static void
template_failed(struct template_hook *h, const char *why)
{
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("failed");
    const char *text = mem_printf(tmp, "Template failed: %.900s", why);
    if (template_launching(h)) {
        tr->act(tr, task_sm_fail(&tr->sm, clock_civil_ns(), text));
        return;
    }
    log_warn("client", "template of a task that runs was not rendered", "alloc_id", tr->ar->id,
             "task", tr->sm.t->name, "error", why, NULL);
    if (h->told == NULL || !str_eq(h->told, text))
        tr->act(tr, task_sm_note(&tr->sm, clock_civil_ns(), TASK_EVENT_TEMPLATE, text));
    mem_free(h->told);
    h->told = mem_strdup(h, text);
}

static void
on_again(void *arg)
{
    struct template_hook *h = arg;
    h->timer = NULL;
    template_render_due(h);
}

/* The helper itself was not to be had. */
static void
template_retry(struct template_hook *h, const struct err *e)
{
    struct task_runner *tr = h->tr;
    auto_mem void *tmp = mem_ctx("retry");
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].at_ns == -1)
            h->v[i].at_ns = 1;
    if (template_launching(h)) {
        tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE,
                       mem_printf(tmp, "templates were not rendered: %s", e->text), true);
        return;
    }
    int64_t ms = backoff_next(&h->backoff_ms);
    log_warn("client", "templates were not rendered", "alloc_id", tr->ar->id, "task",
             tr->sm.t->name, "error", e->text, "retry_in", LOG_DUR(ms * NS_PER_MS), NULL);
    timer_stop(h->timer);
    h->timer = timer_start(tr->ar->g->loop, ms, on_again, h);
}

/* Says whether the text, whoever has put it in its place, is another one than the task knows. */
static bool
template_is_news(const struct template_hook *h, const struct render_result *x)
{
    const struct client_task *t = h->tr->sm.t;
    int64_t known = t->told.n == h->n ? t->told.v[x->index] : 0;
    return known != 0 && x->digest != 0 && x->digest != known;
}

/* Returns whether all that was asked for is there. */
static bool
template_take(struct template_hook *h, const struct render_report *r)
{
    bool whole = true;
    for (size_t i = 0; i < r->results.n; i++) {
        const struct render_result *x = r->results.v[i];
        if (x->index < 0 || (size_t)x->index >= h->n)
            continue;
        struct template_state *s = &h->v[x->index];
        s->waits = x->waits && !x->kept;
        s->digest = x->digest != 0 ? x->digest : s->digest;
        s->changed = s->changed || x->changed || template_is_news(h, x);
    }
    for (size_t i = 0; i < h->n; i++) {
        whole = whole && !h->v[i].waits;
        if (h->v[i].at_ns == -1)
            h->v[i].at_ns = h->v[i].first_ns = 0;
    }
    for (size_t i = 0; i < r->env.n; i++) {
        if (h->env == NULL)
            h->tr->vars = h->env = mem_new(h, struct str_map);
        str_map_set(h->env, h->env, r->env.v[i].k, str_or(r->env.v[i].v, ""));
    }
    return whole;
}

static void
template_whole(struct template_hook *h)
{
    struct task_runner *tr = h->tr;
    bool starts = template_launching(h);
    h->ready = true;
    timer_stop(TAKE(h->tell));
    timer_stop(TAKE(h->patience));
    h->began_ns = 0;
    mem_free(h->told);
    h->told = NULL;
    tr->sm.t->templates =
        task_blocks_key(&type_template, &tr->task->templates); /* durable with the next change */
    if (!starts) {
        template_apply(h);
        return;
    }
    int64_t now = clock_mono_ns();
    for (size_t i = 0; i < h->n; i++) {
        h->v[i].changed = false;
        template_know(h, i);
        if (h->v[i].at_ns > 0) /* meanwhile there is news: that of a task that runs, which waits */
            template_due(h, i, now);
    }
    h->fresh = true;
    tr->up->go_on(tr);
}

static bool
any_true(const bool *v, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++)
        any = any || v[i];
    return any;
}

static void
on_rendered(void *arg, const struct err *e, const void *p, size_t n)
{
    struct template_hook *h = arg;
    auto_mem void *tmp = mem_ctx("rendered");
    struct err own = ERR_INIT;
    void *v = NULL;
    h->helper = NULL;
    if (e == NULL && mp_decode(tmp, &type_render_report, SLICE(p, n), BUDGET(8 * HELPER_REPORT_MAX),
                               &v, &own) < 0)
        e = &own;
    if (e != NULL) {
        template_retry(h, e);
        return;
    }
    const struct render_report *r = v;
    struct task_runner *tr = h->tr;
    h->backoff_ms = 0;
    bool *again = mem_array(tmp, bool, h->n);
    template_follow(h, r, again);
    bool whole = template_take(h, r);
    for (size_t i = 0; i < h->n; i++)
        h->v[i].at_ns = again[i] ? 1 : h->v[i].at_ns;
    if (!whole && template_launching(h))
        template_be_patient(h);
    if (!str_empty(r->error))
        template_failed(h, r->error);
    else if (whole && !any_true(again, h->n))
        template_whole(h);
    else if (!whole && h->tell == NULL && template_launching(h))
        h->tell = timer_start(tr->ar->g->loop, MISSING_QUIET_MS, on_tell, h);
    if (tr->hook.template == h && h->helper == NULL) /* the task may be dead */
        template_arm(h);
}

/* --- the request --- */

/* The request of a rendering while it is made. */
struct asking {
    void *ctx;
    struct env *env;
    struct artifact_dirs dirs;
    struct render_request *q;
};

static int
template_path(const struct asking *a, const char *path, struct artifact_place *ret, struct err *e)
{
    if (artifact_path(a->ctx, path, &a->dirs, ret, e) < 0)
        return e->code;
    return ret->named ? 0 : err_set(e, -ERR_INVALID, "path escapes alloc directory");
}

static int
add_template(struct template_hook *h, size_t i, const struct asking *a, struct err *e)
{
    const struct template *t = template_of(h, i);
    struct render_template *x = type_new(a->ctx, &type_render_template);
    struct artifact_place from, to;
    bool before =
        h->tr->sm.t->templates == task_blocks_key(&type_template, &h->tr->task->templates);
    *x = (struct render_template){.index = (int64_t)i,
                                  .text = t->embedded_tmpl,
                                  .left = t->left_delim,
                                  .right = t->right_delim,
                                  .missing_key = t->err_missing_key.v,
                                  .env = t->envvars.v,
                                  .perms = t->perms,
                                  .uid = t->uid,
                                  .gid = t->gid};
    x->keep = !before ? RENDER_KEEP_NEVER : t->once.v ? RENDER_KEEP_ALWAYS : RENDER_KEEP_WAITING;
    list_add(a->ctx, a->q->templates, x);
    const char *source = env_interpolate(a->ctx, a->env, str_or(t->source_path, ""));
    const char *dest = env_interpolate(a->ctx, a->env, str_or(t->dest_path, ""));
    if (template_path(a, source, &from, e) < 0)
        return artifact_prefix(e, "template source");
    if (template_path(a, dest, &to, e) < 0)
        return artifact_prefix(e, "template destination");
    x->source_shared = from.shared;
    x->source = from.path;
    x->shared = to.shared;
    x->path = to.path;
    return 0;
}

static void
add_data(const void *ctx, const struct template_hook *h, struct render_request *q)
{
    for (size_t k = 0; k < h->n_uses; k++) {
        const struct template_use *u = h->uses[k];
        const struct value *known = lookup_value(u->lookup);
        const char *refusal = lookup_refusal(u->lookup);
        if (known == NULL && refusal == NULL)
            continue;
        struct render_datum *d = type_new(ctx, &type_render_datum);
        d->kind = u->kind;
        d->key = u->key;
        d->namespace = u->ns;
        d->region = u->region;
        d->value = (struct value *)(uintptr_t)known;
        d->error = refusal;
        list_add(ctx, q->data, d);
    }
}

static void
put_denied(const void *ctx, const struct task_runner *tr, struct render_request *q)
{
    static const char *const usual[] = {"executeTemplate", "plugin", "writeToFile"};
    const struct agent_template *c = tr->ar->g->cfg.agent->template_config;
    const struct str_list *said = NULL;
    if (c != NULL)
        said = c->function_denylist.v != NULL ? &c->function_denylist : &c->function_blacklist;
    for (size_t i = 0; (said == NULL || said->v == NULL) && i < ARRAY_LEN(usual); i++)
        list_add(ctx, q->denied, usual[i]);
    for (size_t i = 0; said != NULL && i < said->n; i++)
        if (!str_empty(said->v[i]))
            list_add(ctx, q->denied, said->v[i]);
}

static int
make_request(void *ctx, struct template_hook *h, struct render_request *q, struct err *e)
{
    struct task_runner *tr = h->tr;
    struct asking a = {.ctx = ctx, .q = q};
    a.env = launch_env(ctx, tr, &a.dirs, e);
    int r = a.env == NULL ? e->code : 0;
    for (size_t i = 0; r == 0 && i < h->n; i++)
        if (h->v[i].at_ns == -1)
            r = add_template(h, i, &a, e);
    if (r == 0)
        r = env_check(a.env, e);
    if (r < 0)
        return r;
    q->env = *env_all(a.env);
    q->now = clock_civil_ns();
    q->namespace = tr->ar->rec->alloc->namespace;
    q->region = tr->ar->g->cfg.region;
    q->alloc_dir = a.dirs.alloc;
    q->task_dir = a.dirs.task;
    q->secrets_dir = a.dirs.secrets;
    add_data(ctx, h, q);
    put_denied(ctx, tr, q);
    return 0;
}

static void
template_run(struct template_hook *h)
{
    auto_mem void *tmp = mem_ctx("render");
    struct render_request q = {0};
    struct err e = ERR_INIT;
    auto_buf struct buf b = BUF_INIT(HELPER_REQUEST_MAX);
    int r = make_request(tmp, h, &q, &e);
    if (r == 0)
        r = codec_check(&type_render_request, &q, &e);
    if (r == 0)
        mp_encode(&b, &type_render_request, &q);
    if (r == 0 && buf_error(&b) < 0)
        r = err_set(&e, -ERR_LIMIT, "the templates and what they ask for are more than %d bytes",
                    HELPER_REQUEST_MAX);
    if (r < 0) {
        for (size_t i = 0; i < h->n; i++)
            h->v[i].at_ns = h->v[i].at_ns == -1 ? 0 : h->v[i].at_ns;
        template_failed(h, e.text);
        return;
    }
    const struct helper_request run = {.program = "render",
                                       .memory_max = RENDER_MEMORY,
                                       .pids_max = RENDER_THREADS,
                                       .file_max = RENDER_FILE_MAX,
                                       .deadline_ms = RENDER_MS};
    h->helper = helper_run(h->tr, &run, b.data, b.len, on_rendered, h);
}

/* Marks what is due by -1 while the helper works. */
static void
template_render_due(struct template_hook *h)
{
    int64_t now = clock_mono_ns();
    bool any = false, env = false;
    if (h->helper != NULL || h->tr->ar->stopped || h->tr->sm.t->phase == TASK_DEAD)
        return;
    for (size_t i = 0; i < h->n; i++) {
        if (h->v[i].at_ns == 0 || h->v[i].at_ns > now)
            continue;
        h->v[i].at_ns = -1;
        any = true;
        env = env || template_of(h, i)->envvars.v;
    }
    for (size_t i = 0; env && i < h->n; i++) /* variables are made of all of them */
        if (template_of(h, i)->envvars.v)
            h->v[i].at_ns = -1;
    if (env) {
        talloc_free(h->env);
        h->env = NULL;
        h->tr->vars = NULL;
    }
    if (any)
        template_run(h);
}

static void
template_arm(struct template_hook *h)
{
    int64_t next = 0;
    for (size_t i = 0; i < h->n; i++)
        if (h->v[i].at_ns > 0 && (next == 0 || h->v[i].at_ns < next))
            next = h->v[i].at_ns;
    timer_stop(TAKE(h->timer));
    if (next == 0 || h->helper != NULL)
        return;
    int64_t left = next - clock_mono_ns();
    h->timer = timer_start(h->tr->ar->g->loop, (left + NS_PER_MS - 1) / NS_PER_MS, on_again, h);
}

/* --- the hook --- */

static struct template_hook *
template_hook_of(struct task_runner *tr)
{
    struct template_hook *h = tr->hook.template;
    if (h != NULL)
        return h;
    h = tr->hook.template = mem_new(tr->ar, struct template_hook);
    h->tr = tr;
    h->n = tr->task->templates.n;
    h->v = mem_array(h, struct template_state, h->n);
    for (size_t i = 0; i < h->n; i++)
        h->v[i].h = h;
    return h;
}

static void
template_all_due(struct template_hook *h)
{
    for (size_t i = 0; i < h->n; i++)
        h->v[i].at_ns = 1;
}

static bool
hook_template_prestart(struct task_runner *tr)
{
    if (tr->task->templates.n == 0)
        return true;
    struct template_hook *h = template_hook_of(tr);
    if (h->ready)
        return true;
    if (tr->ar->g->warden == NULL) {
        tr->up->failed(tr, TASK_EVENT_SETUP_FAILURE,
                       "the warden is not running: no template is rendered", false);
        return false;
    }
    if (h->helper == NULL && h->tell == NULL && h->timer == NULL) {
        h->began_ns = h->began_ns != 0 ? h->began_ns : clock_mono_ns();
        template_all_due(h);
        template_render_due(h);
    }
    return false;
}

/* A task that was adopted has its files; what has changed meanwhile, and its variables, are found
 * by rendering once. */
static void
hook_template_poststart(struct task_runner *tr)
{
    if (tr->task->templates.n == 0 || tr->sm.t->phase != TASK_RUNNING)
        return;
    struct template_hook *h = template_hook_of(tr);
    if (turn_is_granted(h->turn))
        turn_end(TAKE(h->turn));
    if (h->ready) {
        bool fresh = h->fresh;
        h->fresh = false;
        for (size_t i = 0; fresh && i < h->n && tr->hook.template == h; i++)
            if (template_of(h, i)->change_script != NULL &&
                template_of(h, i)->change_script->run_on_first_render.v)
                template_script(h, i);
        if (tr->hook.template == h)
            template_apply(h);
    } else if (tr->ar->g->warden != NULL && secrets_ready(tr)) {
        template_all_due(h);
        template_render_due(h);
    }
}

/* Answers of the servers are followed on, for the next start. */
static void
hook_template_stop(struct task_runner *tr)
{
    struct template_hook *h = tr->hook.template;
    if (h == NULL)
        return;
    helper_cancel(TAKE(h->helper));
    timer_stop(TAKE(h->timer));
    timer_stop(TAKE(h->splay));
    timer_stop(TAKE(h->tell));
    timer_stop(TAKE(h->patience));
    if (!turn_is_granted(h->turn) || tr->ar->stopped || tr->sm.t->phase == TASK_DEAD)
        turn_end(TAKE(h->turn));
    h->began_ns = 0;
    h->ready = h->fresh = false;
    for (size_t i = 0; i < h->n; i++) {
        command_cancel(h->v[i].script);
        h->v[i] = (struct template_state){.h = h};
    }
    if (!tr->ar->stopped && tr->sm.t->phase != TASK_DEAD)
        return;
    template_unfollow(h);
    tr->hook.template = NULL;
    tr->vars = NULL;
    talloc_free(h);
}

const struct task_hook task_hook_template = {.prestart = hook_template_prestart,
                                             .poststart = hook_template_poststart,
                                             .stop = hook_template_stop};
