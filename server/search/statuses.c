/* SPDX-License-Identifier: Apache-2.0
 *
 * Job.Statuses: jobs as an overview shows them, those that changed last first, with what becomes of
 * their allocations. Jobs are looked at by a few members; only those of the page are read whole.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/filter/filter.h"
#include "api/terms.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "server/call/method.h"

/* A job that may be on the page. */
struct status_place {
    uint64_t index;
    const char *ns, *id;
};

struct statuses {
    struct read *r;
    const struct job_statuses_request *req;
    const struct filter *filter; /* NULL: none */
    struct status_place *v;
    size_t n;
};

/* --- which jobs --- */

static bool
status_asked(const struct statuses *x, const struct job *j)
{
    const struct job_statuses_request *req = x->req;
    bool asked = req->jobs.n == 0;

    for (size_t i = 0; i < req->jobs.n && !asked; i++)
        asked = str_eq(req->jobs.v[i]->id, j->id) &&
                str_eq(str_or(req->jobs.v[i]->namespace, NS_DEFAULT), j->namespace);
    return asked && (req->include_children || str_empty(j->parent_id)) &&
           read_ns_matches(x->r, j->namespace) && (x->filter == NULL || filter_match(x->filter, j));
}

static void
status_find(struct statuses *x, struct state_txn *t)
{
    struct read *r = x->r;
    size_t room = 0;
    struct lean *lean = x->filter == NULL ? lean_new(r->ctx, &type_job, &type_job,
                                                     "ID Namespace ParentID ModifyIndex", "")
                                          : NULL;
    struct state_iter *it = state_jobs(t, r->ctx, read_ns(r), r->list->prefix);

    for (struct job *j; (j = state_next_lean(it, r->ctx, lean)) != NULL; talloc_free(j)) {
        if (!status_asked(x, j))
            continue;
        if (x->n == room) {
            room = room > 0 ? 2 * room : 64;
            mem_resize(r->ctx, x->v, struct status_place, room);
        }
        x->v[x->n++] = (struct status_place){j->modify_index, mem_strdup(r->ctx, j->namespace),
                                             mem_strdup(r->ctx, j->id)};
    }
}

static int
status_oldest(const void *a, const void *b)
{
    const struct status_place *x = a, *y = b;

    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    int ns = strcmp(x->ns, y->ns);
    return ns != 0 ? ns : strcmp(x->id, y->id);
}

static int
status_newest(const void *a, const void *b)
{
    return status_oldest(b, a);
}

/* --- one job --- */

static void
status_allocs(struct read *r, struct state_txn *t, const struct job *j, struct job_statuses_job *s)
{
    struct state_iter *it = state_allocs_by_job(t, s, j->namespace, j->id);

    for (struct allocation *al; (al = state_next(it, s)) != NULL;) {
        struct job_statuses_alloc *row = mem_new(s, struct job_statuses_alloc);
        const struct alloc_deployment_status *d = al->deployment_status;
        const struct job *of = state_alloc_job(t, al);
        *row = (struct job_statuses_alloc){.id = al->id,
                                           .group = al->task_group,
                                           .client_status = al->client_status,
                                           .node_id = al->node_id,
                                           .job_version = of != NULL ? of->version : 0,
                                           .followup_eval_id = al->followup_eval_id};
        row->deployment_status = mem_new(row, struct job_statuses_deployment);
        if (d != NULL)
            *row->deployment_status = (struct job_statuses_deployment){d->healthy, d->canary};
        for (size_t i = 0; i < al->task_states.n; i++)
            row->has_paused_task |= !str_empty(al->task_states.v[i].v->paused);
        list_add(s, s->allocs, row);
        read_saw(r, al->id, al->modify_index);
    }
}

static void
status_deployment(struct read *r, struct state_txn *t, const struct job *j,
                  struct job_statuses_job *s)
{
    const struct deployment *d = state_latest_deployment(t, s, j->namespace, j->id);

    if (d == NULL)
        return;
    struct job_statuses_latest_deployment *l = mem_new(s, struct job_statuses_latest_deployment);
    *l = (struct job_statuses_latest_deployment){.id = d->id,
                                                 .is_active = deployment_active(d),
                                                 .job_version = d->job_version,
                                                 .status = d->status,
                                                 .status_description = d->status_description,
                                                 .all_auto_promote = d->task_groups.n > 0};
    for (size_t i = 0; i < d->task_groups.n; i++) {
        const struct deployment_state *g = d->task_groups.v[i].v;
        l->all_auto_promote &= g->auto_promote;
        l->requires_promotion |= g->desired_canaries > 0 && !g->promoted;
    }
    s->latest_deployment = l;
    read_saw(r, d->id, d->modify_index);
}

static struct job_statuses_job *
status_of(struct read *r, struct state_txn *t, const struct job *j)
{
    struct job_statuses_job *s = mem_new(r->ctx, struct job_statuses_job);

    read_saw(r, j->id, j->modify_index);
    *s = (struct job_statuses_job){.id = j->id,
                                   .namespace = j->namespace,
                                   .name = j->name,
                                   .type = j->type,
                                   .node_pool = j->node_pool,
                                   .datacenters = j->datacenters,
                                   .priority = j->priority.v,
                                   .version = j->version,
                                   .submit_time = j->submit_time,
                                   .modify_index = j->modify_index,
                                   .parent_id = j->parent_id,
                                   .stop = j->stop,
                                   .is_pack = str_map_get(&j->meta, "pack.name") != NULL,
                                   .status = j->status};
    for (size_t i = 0; i < j->task_groups.n; i++)
        s->group_count_sum += j->task_groups.v[i]->count.v;
    if (!job_is_parent(j)) {
        status_allocs(r, t, j, s);
        status_deployment(r, t, j, s);
        return s;
    }
    s->child_statuses.v = mem_array(s, const char *, 1); /* it may have some */
    struct state_iter *it = state_children(t, s, j->namespace, j->id, NULL);
    for (struct job *c; (c = state_next(it, s)) != NULL;) {
        list_add(s, s->child_statuses, c->status);
        read_saw(r, c->id, c->modify_index);
    }
    return s;
}

/* --- the page --- */

static const char *
status_token(const void *ctx, const struct status_place *p)
{
    return mem_printf(ctx, "%" PRIu64 ".%s.%s", p->index, p->ns, p->id);
}

/* Returns where the page begins: at its token, or where that would be. */
static size_t
status_begin(const struct statuses *x, bool oldest)
{
    const char *token = str_or(x->r->list->next_token, ""), *dot = strchr(token, '.');
    const char *digits = mem_strndup(x->r->ctx, token, dot != NULL ? (size_t)(dot - token) : 0);
    uint64_t index = 0;
    size_t at = 0;

    if (dot == NULL || num_parse_u64(digits, &index) < 0)
        return 0;
    for (; at < x->n; at++) {
        const struct status_place *p = &x->v[at];
        bool past = oldest ? p->index > index : p->index < index;
        if (past || str_eq(status_token(x->r->ctx, p), token))
            break;
    }
    return at;
}

static int
statuses_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct statuses x = {.r = r, .req = r->req};
    struct job_statuses_response *resp = read_resp(r);
    size_t most = r->list->per_page > 0 ? (size_t)r->list->per_page : SIZE_MAX;

    if (!str_empty(r->list->filter)) {
        x.filter = filter_compile(r->ctx, &type_job, r->list->filter, e);
        if (x.filter == NULL)
            return err_prefix(e, "failed to read filter expression");
    }
    status_find(&x, t);
    if (x.n > 0)
        qsort(x.v, x.n, sizeof(*x.v), r->list->reverse ? status_oldest : status_newest);
    resp->jobs.v = mem_array(resp, struct job_statuses_job *, 1);
    for (size_t i = status_begin(&x, r->list->reverse); i < x.n; i++) {
        if (resp->jobs.n == most) {
            r->meta->next_token = status_token(r->meta, &x.v[i]);
            break;
        }
        struct job *j = state_job(t, r->ctx, x.v[i].ns, x.v[i].id);
        list_add(resp, resp->jobs, status_of(r, t, j));
    }
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_job_statuses = {
    .tables = STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_ALLOCS) | STATE_BIT(STATE_DEPLOYMENTS),
    .run = statuses_run};
