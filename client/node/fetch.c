/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/fetch.h"

#include "api/terms.h"
#include "client/limits.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct fetch {
    struct fetch_to to;
    struct ground *g;
    uint64_t call; /* 0: none */
    struct wanted {
        const char *id;
        uint64_t index;
    } *v;
    size_t n, next; /* those before `next` are done */
    size_t part;    /* how many are asked for at once */
    bool plain;     /* a job that was said to be known is not any more: name none */
    bool surely;    /* the leader is asked: another server lagged behind what the list said */
};

static void get_part(struct fetch *f);

struct fetch *
fetch_new(const struct fetch_to *to)
{
    struct fetch *f = mem_new(to->allocs->g, struct fetch);
    f->to = *to;
    f->g = to->allocs->g;
    f->part = CLIENT_FETCH_MAX;
    return f;
}

void
fetch_add(struct fetch *f, const char *id, uint64_t index)
{
    if ((f->n & (f->n - 1)) == 0)
        mem_resize(f, f->v, struct wanted, f->n ? f->n * 2 : 1);
    f->v[f->n++] = (struct wanted){mem_strdup(f, id), index};
}

static void
fetch_end(struct fetch *f, const struct err *e)
{
    struct fetch_to to = f->to;
    talloc_free(f);
    to.done(to.arg, e);
}

/* --- what comes --- */

static bool
is_job(const struct job *j, const struct allocation *a, uint64_t index)
{
    return j->job_modify_index == index && str_eq(j->id, a->job_id) &&
           str_eq(str_or(j->namespace, NS_DEFAULT), str_or(a->namespace, NS_DEFAULT));
}

/* The job of an allocation that came without it: came with it, or is here with another one. */
static struct job *
find_job(const struct fetch *f, const struct alloc_get_allocs_response *r,
         const struct sent_alloc *s)
{
    for (size_t i = 0; i < r->jobs.n; i++)
        if (is_job(r->jobs.v[i], s->alloc, s->job_modify_index))
            return r->jobs.v[i];
    ALLOCS_EACH(f->to.allocs, ar)
        if (is_job(ar->a.rec->alloc->job, s->alloc, s->job_modify_index))
            return ar->a.rec->alloc->job;
    return NULL;
}

static void
take_alloc(struct fetch *f, const struct allocation *a)
{
    struct alloc_runner *ar = alloc_runner_find(f->to.allocs, a->id);
    if (ar)
        alloc_runner_update(ar, a);
    else if (alloc_client_terminal(a))
        gone_note(f->to.gone, a->id, a->alloc_modify_index);
    else if (!f->g->quitting) { /* nothing begins on a node that ends its tasks */
        alloc_runner_add(f->to.allocs, a);
        gc_make_room(f->to.gc);
    }
}

/* False: a job is missing. */
static bool
take_part(struct fetch *f, const struct alloc_get_allocs_response *r)
{
    bool all = true;
    for (size_t i = 0; i < r->allocs.n; i++) {
        const struct sent_alloc *s = r->allocs.v[i];
        if (!s->alloc || str_empty(s->alloc->id))
            continue;
        s->alloc->job = find_job(f, r, s);
        if (s->alloc->job)
            take_alloc(f, s->alloc);
        all = all && s->alloc->job;
    }
    return all;
}

/* False: an allocation is older than the list had it, or missing, as if it were collected. */
static bool
is_recent(const struct fetch *f, const struct alloc_get_allocs_response *r)
{
    size_t n = f->n - f->next < (size_t)r->handled ? f->n - f->next : (size_t)r->handled;
    for (size_t i = 0; i < n; i++) { /* they come in the order in which they were asked for */
        const struct wanted *w = &f->v[f->next + i];
        const struct allocation *a = i < r->allocs.n ? r->allocs.v[i]->alloc : NULL;
        if (!a || !str_eq(a->id, w->id) || a->alloc_modify_index < w->index)
            return false;
    }
    return true;
}

/* --- one that cannot be had --- */

static void
on_refused(void *arg, const struct err *e, const void *resp)
{
    (void)resp;
    struct fetch *f = arg;
    struct ground *g = f->g;
    f->call = 0;
    if (e || g->stopping) {
        fetch_end(f, e);
    } else {
        gone_note(f->to.gone, f->v[f->next].id, f->v[f->next].index);
        f->next++;
        get_part(f);
    }
    hold_release(&g->hold);
}

static void
fetch_refuse(struct fetch *f, const struct err *e)
{
    struct ground *g = f->g;
    const struct wanted *w = &f->v[f->next];
    log_error("client", "allocation cannot be received: it is reported as failed", "alloc_id",
              w->id, "error", e->text, NULL);
    struct alloc_runner *ar = alloc_runner_find(f->to.allocs, w->id);
    if (ar) { /* what it is to become is not known */
        ar->a.rec->server_index = w->index;
        alloc_runner_stop(ar);
    }
    struct allocation a = {.id = w->id, .client_status = ALLOC_FAILED};
    a.client_description = mem_printf(f, "the node cannot receive it: %s", e->text);
    struct allocation *one = &a;
    const struct rpc_envelope env = ground_proof(g);
    struct node_update_alloc_request req = {.allocs = {&one, 1}};
    req.report = ++g->report;
    req.node_index = g->node_index;
    struct rpc_request r = {RPC_NODE_UPDATE_ALLOC, &req, &env, 0};
    hold_take(&g->hold);
    f->call = rpc_send(g->rpc, &r, on_refused, f);
}

/* --- asking --- */

/* A server that lags may not know the node yet either. */
static bool
is_behind(const struct fetch *f, const struct err *e, const struct alloc_get_allocs_response *r)
{
    if (f->surely)
        return false;
    return e ? e->code == -ERR_NOT_FOUND || e->code == -ERR_FORBIDDEN : !is_recent(f, r);
}

/* The answer came, or could not, for its size or content: not for the state of the connection or
 * the servers. */
static bool
too_large(const struct err *e)
{
    return e->code == -ERR_LIMIT || e->code == -ERR_INVALID || e->code == -ERR_CORRUPT;
}

static void
on_part(void *arg, const struct err *e, const void *resp)
{
    struct fetch *f = arg;
    struct ground *g = f->g;
    const struct alloc_get_allocs_response *r = resp;
    f->call = 0;
    if (g->stopping) {
        fetch_end(f, NULL);
    } else if (is_behind(f, e, r)) {
        f->surely = true;
        get_part(f);
    } else if (e && too_large(e) && f->part > 1) {
        f->part /= 2;
        get_part(f);
    } else if (e && too_large(e)) {
        fetch_refuse(f, e);
    } else if (e) {
        fetch_end(f, e);
    } else if (!take_part(f, r) && !f->plain) {
        f->plain = true;
        get_part(f);
    } else {
        f->next += r->handled > 0 ? r->handled : f->n;
        get_part(f);
    }
    hold_release(&g->hold);
}

static bool
has_ref(const struct alloc_get_allocs_request *req, const struct job *j)
{
    for (size_t i = 0; i < req->known.n; i++)
        if (req->known.v[i]->job_modify_index == j->job_modify_index)
            return true;
    return false;
}

static void
name_known(const void *ctx, const struct fetch *f, struct alloc_get_allocs_request *req)
{
    ALLOCS_EACH(f->to.allocs, ar) {
        const struct job *j = ar->a.rec->alloc->job;
        if (req->known.n >= CLIENT_KNOWN_MAX || has_ref(req, j))
            continue;
        struct known_job *ref = mem_new(ctx, struct known_job);
        *ref = (struct known_job){j->namespace, j->id, j->job_modify_index};
        list_add(ctx, req->known, ref);
    }
}

static void
get_part(struct fetch *f)
{
    struct ground *g = f->g;
    if (f->next >= f->n) {
        fetch_end(f, NULL);
        return;
    }
    auto_mem void *tmp = mem_ctx("fetch");
    struct rpc_envelope env = ground_proof(g);
    env.stale = !f->surely;
    if (env.stale)
        env.agent_run = NULL; /* a server that lags may know the run before this one */
    struct alloc_get_allocs_request req = {0};
    struct rpc_request r = {RPC_ALLOC_GET_ALLOCS, &req, &env, 0};
    for (size_t i = f->next; i < f->n && i - f->next < f->part; i++)
        list_add(tmp, req.alloc_ids, f->v[i].id);
    if (!f->plain)
        name_known(tmp, f, &req);
    hold_take(&g->hold);
    f->call = rpc_send(g->rpc, &r, on_part, f);
}

void
fetch_start(struct fetch *f)
{
    get_part(f);
}

void
fetch_cancel(struct fetch *f)
{
    if (f->call)
        rpc_cancel(f->g->rpc, f->call);
}
