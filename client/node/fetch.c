/* SPDX-License-Identifier: Apache-2.0
 *
 * Fetches the allocations that the list of this node named as new or changed: in parts, as many as the
 * server gives at once, each job once. A part that cannot be had is asked for in smaller ones; a single
 * allocation that cannot is reported as failed, so that it holds up no other.
 */
#include "api/terms.h"
#include "client/client_int.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

struct fetch {
    struct client *c;
    struct wanted {
        const char *id;
        uint64_t index;
    } *v;
    size_t n, next; /* those before `next` are done */
    size_t part;    /* how many are asked for at once */
    bool plain;     /* a job that was said to be known is not any more: name none */
};

static void get_part(struct fetch *f);

struct fetch *
fetch_new(struct client *c)
{
    struct fetch *f = mem_new(c, struct fetch);
    f->c = c;
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
    struct client *c = f->c;
    c->fetch = NULL;
    talloc_free(f);
    if (!c->stopping)
        sync_fetched(c, e);
}

/* ---- what comes ------------------------------------------------------------------------------- */

static bool
is_job(const struct job *j, const struct allocation *a, uint64_t index)
{
    return j->job_modify_index == index && str_eq(j->id, a->job_id) &&
           str_eq(str_or(j->namespace, NS_DEFAULT), str_or(a->namespace, NS_DEFAULT));
}

/* The job of an allocation that came without it: came with it, or is here with another one. */
static struct job *
find_job(const struct client *c, const struct alloc_get_allocs_response *r, const struct sent_alloc *s)
{
    for (size_t i = 0; i < r->jobs.n; i++)
        if (is_job(r->jobs.v[i], s->alloc, s->job_modify_index))
            return r->jobs.v[i];
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        if (is_job(ar->rec->alloc->job, s->alloc, s->job_modify_index))
            return ar->rec->alloc->job;
    }
    return NULL;
}

static void
take_alloc(struct client *c, const struct allocation *a)
{
    struct alloc_runner *ar = alloc_runner_find(c, a->id);
    if (ar)
        alloc_runner_update(ar, a);
    else if (alloc_client_terminal(a))
        gc_note_gone(c, a->id, a->alloc_modify_index);
    else if (!c->quitting) /* nothing begins on a node that ends its tasks */
        alloc_runner_add(c, a);
}

/* False: a job is missing. */
static bool
take_part(struct client *c, const struct alloc_get_allocs_response *r)
{
    bool all = true;
    for (size_t i = 0; i < r->allocs.n; i++) {
        const struct sent_alloc *s = r->allocs.v[i];
        if (!s->alloc || str_empty(s->alloc->id))
            continue;
        s->alloc->job = find_job(c, r, s);
        if (s->alloc->job)
            take_alloc(c, s->alloc);
        all = all && s->alloc->job;
    }
    return all;
}

/* ---- one that cannot be had ------------------------------------------------------------------- */

static void
on_refused(void *arg, const struct err *e, const void *resp)
{
    (void)resp;
    struct fetch *f = arg;
    struct client *c = f->c;
    c->refuse_call = 0;
    if (e || c->stopping) {
        fetch_end(f, e);
    } else {
        gc_note_gone(c, f->v[f->next].id, f->v[f->next].index);
        f->next++;
        get_part(f);
    }
    client_release(c);
}

static void
refuse(struct fetch *f, const struct err *e)
{
    struct client *c = f->c;
    const struct wanted *w = &f->v[f->next];
    log_error("client", "allocation cannot be received: it is reported as failed", "alloc_id", w->id,
              "error", e->text, NULL);
    struct alloc_runner *ar = alloc_runner_find(c, w->id);
    if (ar) { /* what it is to become is not known */
        ar->rec->server_index = w->index;
        alloc_runner_stop(ar);
    }
    struct allocation a = {.id = w->id, .client_status = ALLOC_FAILED};
    a.client_description = mem_printf(f, "the node cannot receive it: %s", e->text);
    struct allocation *one = &a;
    struct node_update_alloc_request req = {
        .node_id = c->node_id, .secret_id = c->secret, .allocs = {&one, 1}};
    struct rpc_request r = {RPC_NODE_UPDATE_ALLOC, &req, NULL, 0};
    client_hold(c);
    c->refuse_call = rpc_send(c->rpc, &r, on_refused, f);
}

/* ---- asking ----------------------------------------------------------------------------------- */

/* It came, or could not, for what it is: not for the state of the connection or the servers. */
static bool
too_large(const struct err *e)
{
    return e->code == -ERR_LIMIT || e->code == -ERR_INVALID || e->code == -ERR_CORRUPT;
}

static void
on_part(void *arg, const struct err *e, const void *resp)
{
    struct fetch *f = arg;
    struct client *c = f->c;
    const struct alloc_get_allocs_response *r = resp;
    c->get_call = 0;
    if (c->stopping) {
        fetch_end(f, NULL);
    } else if (e && too_large(e) && f->part > 1) {
        f->part /= 2;
        get_part(f);
    } else if (e && too_large(e)) {
        refuse(f, e);
    } else if (e) {
        fetch_end(f, e);
    } else if (!take_part(c, r) && !f->plain) {
        f->plain = true;
        get_part(f);
    } else {
        f->next += r->handled > 0 ? r->handled : f->n;
        get_part(f);
    }
    client_release(c);
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
name_known(const void *ctx, const struct client *c, struct alloc_get_allocs_request *req)
{
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        const struct job *j = ar->rec->alloc->job;
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
    struct client *c = f->c;
    if (f->next >= f->n) {
        fetch_end(f, NULL);
        return;
    }
    auto_mem void *tmp = mem_ctx("fetch");
    struct rpc_envelope env = {.stale = true};
    struct alloc_get_allocs_request req = {0};
    struct rpc_request r = {RPC_ALLOC_GET_ALLOCS, &req, &env, 0};
    for (size_t i = f->next; i < f->n && i - f->next < f->part; i++)
        list_add(tmp, req.alloc_ids, f->v[i].id);
    if (!f->plain)
        name_known(tmp, c, &req);
    client_hold(c);
    c->get_call = rpc_send(c->rpc, &r, on_part, f);
}

void
fetch_start(struct fetch *f)
{
    f->c->fetch = f;
    get_part(f);
}
