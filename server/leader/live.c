/* SPDX-License-Identifier: Apache-2.0
 *
 * The live node table and views over the state (see leader/live.h): first the table, which follows
 * the log row by row; then what answers the scheduler from a snapshot: jobs, allocations,
 * deployments, pools, evaluations that are awaited.
 */
#include "server/leader/live.h"

#include "common/hash.h"
#include <string.h>

#include "api/terms.h"
#include "api/volume/volume.h"
#include "common/mem.h"
#include "common/uuid.h"
#include "server/sched/alloc/reschedule.h"
#include "server/sched/resources.h"

/* A namespace of which something is to be known; it stays when nothing is any more. */
struct live_space {
    char *name, *quota; /* NULL: none */
    struct quota_use used;
    UT_hash_handle hh;
};

struct live_alloc {
    struct live_space *space;
    char id[UUID_TEXT];
    char node_id[UUID_TEXT];
    struct usage u;
    UT_hash_handle hh;
};

struct live_mark {
    char node_id[UUID_TEXT];
    uint64_t index;
    UT_hash_handle hh;
};

static void
live_clear(struct live *l)
{
    struct live_alloc *a, *na;
    struct live_mark *m, *nm;
    struct live_space *s, *ns;

    HASH_ITER (hh, l->spaces, s, ns) {
        HASH_DEL(l->spaces, s);
        talloc_free(s);
    }
    HASH_ITER(hh, l->allocs, a, na)
    {
        HASH_DEL(l->allocs, a);
        talloc_free(a);
    }
    HASH_ITER(hh, l->marks, m, nm)
    {
        HASH_DEL(l->marks, m);
        talloc_free(m);
    }
    mem_free(l->nodes);
    l->nodes = node_table_new(l);
    l->n_draining = 0;
}

static int
live_done(struct live *l)
{
    live_clear(l);
    return 0;
}

struct live *
live_new(const void *ctx)
{
    struct live *l = mem_new(ctx, struct live);

    l->nodes = node_table_new(l);
    talloc_set_destructor(l, live_done);
    return l;
}

static void
live_set_mark(struct live *l, const char *node_id, uint64_t index)
{
    struct live_mark *m;

    HASH_FIND_STR(l->marks, node_id, m);
    if (m == NULL) {
        m = mem_new(l, struct live_mark);
        str_copy(m->node_id, sizeof(m->node_id), node_id);
        HASH_ADD_STR(l->marks, node_id, m);
    }
    m->index = index;
}

static bool
live_drains(const struct live *l, const char *id)
{
    uint32_t row = node_table_find(l->nodes, id);

    return row != NODES_NONE && l->nodes->facts[row]->node->drain_strategy != NULL;
}

void
live_node(struct live *l, const struct node *n)
{
    ASSERT(l->n_draining >= live_drains(l, n->id));
    l->n_draining -= live_drains(l, n->id);
    l->n_draining += n->drain_strategy != NULL;
    node_table_put(l->nodes, node_facts_new(n));
    live_set_mark(l, n->id, n->modify_index);
}

void
live_node_gone(struct live *l, const char *id)
{
    struct live_mark *m;

    l->n_draining -= live_drains(l, id);
    node_table_remove(l->nodes, id);
    HASH_FIND_STR(l->marks, id, m);
    if (m != NULL) {
        HASH_DEL(l->marks, m);
        talloc_free(m);
    }
}

static struct live_space *
space_of(struct live *l, const char *name)
{
    struct live_space *s;

    name = str_or(name, NS_DEFAULT);
    HASH_FIND_STR(l->spaces, name, s);
    if (s == NULL) {
        s = mem_new(l, struct live_space);
        s->name = mem_strdup(s, name);
        HASH_ADD_KEYPTR(hh, l->spaces, s->name, strlen(s->name), s);
    }
    return s;
}

void
live_namespace(struct live *l, const struct namespace *n)
{
    struct live_space *s = space_of(l, n->name);

    mem_free(s->quota);
    s->quota = str_empty(n->quota) ? NULL : mem_strdup(s, n->quota);
}

/* Its allocations are counted still, should one of that name come before all have ended. */
void
live_namespace_gone(struct live *l, const char *name)
{
    live_namespace(l, &(struct namespace){.name = name});
}

const char *
live_quota(const struct live *l, const char *ns)
{
    struct live_space *s;

    ns = str_or(ns, NS_DEFAULT);
    HASH_FIND_STR(l->spaces, ns, s);
    return s != NULL ? s->quota : NULL;
}

static struct quota_use
live_quota_used(const struct live *l, const char *quota)
{
    struct quota_use all = {0};

    for (const struct live_space *s = l->spaces; s != NULL; s = s->hh.next)
        if (str_eq(s->quota, quota))
            quota_add(&all, &s->used, 1);
    return all;
}

static struct quota_use
use_of(const struct usage *u)
{
    return (struct quota_use){1, u->cpu, u->mem};
}

void
live_alloc_gone(struct live *l, const char *id, uint64_t index)
{
    struct live_alloc *x;

    HASH_FIND_STR(l->allocs, id, x);
    if (x == NULL)
        return;
    struct quota_use freed = use_of(&x->u);
    quota_add(&x->space->used, &freed, -1);
    ASSERT(x->space->used.count >= 0);
    node_table_use(l->nodes, x->node_id, &x->u, -1);
    live_set_mark(l, x->node_id, index);
    HASH_DEL(l->allocs, x);
    talloc_free(x);
}

void
live_alloc(struct live *l, const struct allocation *a, uint64_t index)
{
    struct live_alloc *x;

    if (alloc_client_terminal(a)) {
        live_alloc_gone(l, a->id, index);
        return;
    }
    HASH_FIND_STR(l->allocs, a->id, x);
    /* the use of an allocation never changes while it lives */
    if (x != NULL)
        return;
    x = mem_new(l, struct live_alloc);
    str_copy(x->id, sizeof(x->id), a->id);
    str_copy(x->node_id, sizeof(x->node_id), str_or(a->node_id, ""));
    x->u = resources_of_alloc(a);
    x->space = space_of(l, a->namespace);
    struct quota_use more = use_of(&x->u);
    quota_add(&x->space->used, &more, 1);
    HASH_ADD_STR(l->allocs, id, x);
    node_table_use(l->nodes, x->node_id, &x->u, 1);
    live_set_mark(l, x->node_id, index);
}

uint64_t
live_changed(const struct live *l, const char *node_id)
{
    struct live_mark *m;

    HASH_FIND_STR(l->marks, node_id, m);
    return m ? m->index : 0;
}

bool
live_holds(const struct live *l, const char *alloc_id, const char *node_id, struct usage *ret_u)
{
    struct live_alloc *x;

    HASH_FIND_STR(l->allocs, str_or(alloc_id, ""), x);
    if (x == NULL || !str_eq(x->node_id, node_id))
        return false;
    *ret_u = x->u;
    return true;
}

void
live_load(struct live *l, struct state_txn *t)
{
    auto_mem void *tmp = mem_ctx("live_load");
    struct state_iter *it = state_nodes(t, tmp, NULL);
    uint64_t index = state_applied(t);

    live_clear(l);
    for (struct node *n; (n = state_next(it, tmp)) != NULL; talloc_free(n))
        live_node(l, n);
    it = state_allocs(t, tmp, NULL);
    for (struct allocation *a; (a = state_next(it, tmp)) != NULL; talloc_free(a))
        live_alloc(l, a, index);
    it = state_ids(t, tmp, STATE_NAMESPACES, NULL);
    for (struct namespace *n; (n = state_next(it, tmp)) != NULL; talloc_free(n))
        live_namespace(l, n);
}

/* --- quotas --- */

struct quota_use
quota_used(struct state_txn *t, const char *quota)
{
    auto_mem void *tmp = mem_ctx("quota");
    struct state_iter *it = state_ids(t, tmp, STATE_NAMESPACES, NULL);
    struct str_list names = {NULL, 0};
    struct quota_use all = {0};

    for (struct namespace *n; (n = state_next(it, tmp)) != NULL;)
        if (str_eq(n->quota, quota))
            list_add(tmp, names, n->name);
    for (size_t i = 0; i < names.n; i++) {
        it = state_by(t, tmp, ALLOCS_BY_JOB, names.v[i]);
        for (struct allocation *a; (a = state_next(it, tmp)) != NULL; talloc_free(a)) {
            struct usage u = resources_of_alloc(a);
            struct quota_use more = use_of(&u);
            if (!alloc_client_terminal(a))
                quota_add(&all, &more, 1);
        }
    }
    return all;
}

const struct quota_room *
quota_room_of(const void *ctx, struct state_txn *t, const struct live *l, const char *region,
              const char *ns)
{
    const char *name = l != NULL ? live_quota(l, ns) : NULL;

    if (l == NULL) {
        const struct namespace *n = state_namespace(t, ctx, str_or(ns, NS_DEFAULT));
        name = n != NULL && !str_empty(n->quota) ? n->quota : NULL;
    }
    const struct quota *q = name != NULL ? state_get(t, ctx, QUOTAS, name) : NULL;
    if (q == NULL)
        return NULL;
    struct quota_room *room = mem_new(ctx, struct quota_room);
    room->name = q->name;
    room->limit = quota_limit(q, region);
    room->used = l != NULL ? live_quota_used(l, name) : quota_used(t, name);
    return room;
}

/* --- views --- */

struct node_table *
sched_view_table(const void *ctx, struct state_txn *t)
{
    struct node_table *nt = node_table_new(ctx);
    auto_mem void *tmp = mem_ctx("sched_view_table");
    struct state_iter *it = state_nodes(t, tmp, NULL);

    for (struct node *n; (n = state_next(it, tmp)) != NULL; talloc_free(n))
        node_table_put(nt, node_facts_new(n));
    it = state_allocs(t, tmp, NULL);
    for (struct allocation *a; (a = state_next(it, tmp)) != NULL; talloc_free(a)) {
        struct usage u = resources_of_alloc(a);
        if (!alloc_client_terminal(a))
            node_table_use(nt, a->node_id, &u, 1);
    }
    return nt;
}

static const struct job *
view_job(struct sched_view *v, const char *ns, const char *id)
{
    struct sched_view_state *s = v->arg;

    return state_job(s->txn, s->ctx, ns, id);
}

static const struct allocation *const *
live_collect(const void *ctx, struct state_iter *it, bool with_job, size_t *ret_n)
{
    const struct allocation **v = mem_array(ctx, const struct allocation *, 16);
    size_t n = 0, cap = 16;

    for (;;) {
        struct allocation *a = with_job ? state_next_with_job(it, ctx) : state_next(it, ctx);
        if (a == NULL)
            break;
        if (!with_job && alloc_client_terminal(a)) {
            talloc_free(a);
            continue;
        }
        if (n == cap) {
            cap *= 2;
            mem_resize(ctx, v, const struct allocation *, cap);
        }
        v[n++] = a;
    }
    *ret_n = n;
    return v;
}

static const struct allocation *const *
view_allocs_by_job(struct sched_view *v, const char *ns, const char *id, size_t *ret_n)
{
    struct sched_view_state *s = v->arg;

    return live_collect(s->ctx, state_allocs_by_job(s->txn, s->ctx, ns, id), true, ret_n);
}

static const struct allocation *const *
view_allocs_by_node(struct sched_view *v, const void *ctx, const char *node_id, size_t *ret_n)
{
    struct sched_view_state *s = v->arg;

    return live_collect(ctx, state_allocs_by_node(s->txn, ctx, node_id), false, ret_n);
}

static const struct deployment *
view_latest_deployment(struct sched_view *v, const char *ns, const char *id)
{
    struct sched_view_state *s = v->arg;

    return state_latest_deployment(s->txn, s->ctx, ns, id);
}

static struct str_list
view_awaited(struct sched_view *v, const void *ctx, const struct evaluation *e, const char *trigger,
             int64_t at)
{
    struct sched_view_state *s = v->arg;
    const char *ns = str_or(e->namespace, NS_DEFAULT);
    struct state_iter *it = state_evals_by_job(s->txn, ctx, ns, e->job_id);
    struct str_list ids = {0};

    for (struct evaluation *o; (o = state_next(it, ctx)) != NULL; talloc_free(o))
        if (!str_eq(o->id, e->id) && reschedule_awaits(o, trigger, at))
            list_add(ctx, ids, mem_strdup(ctx, o->id));
    return ids;
}

static const struct node_pool *
view_node_pool(struct sched_view *v, const char *name)
{
    struct sched_view_state *s = v->arg;

    return state_node_pool(s->txn, s->ctx, name);
}

static const char *
view_volume_claim(struct sched_view *v, const struct job *job, const char *alloc_name,
                  const char *volume)
{
    struct sched_view_state *s = v->arg;
    struct state_iter *it = state_ids(s->txn, s->ctx, STATE_HOST_VOLUMES, NULL);
    const char *node_id = NULL;

    for (struct host_volume *x; node_id == NULL && (x = state_next(it, s->ctx)) != NULL;) {
        if (str_eq(x->name, volume) && str_eq(x->namespace, str_or(job->namespace, NS_DEFAULT)) &&
            volume_claimed(x, job->id, alloc_name))
            node_id = mem_strdup(s->ctx, x->node_id);
        talloc_free(x);
    }
    if (node_id != NULL)
        state_iter_end(it);
    return node_id;
}

static const struct sched_view_ops ops = {
    .volume_claim = view_volume_claim,
    .awaited = view_awaited,
    .node_pool = view_node_pool,
    .latest_deployment = view_latest_deployment,
    .job = view_job,
    .allocs_by_job = view_allocs_by_job,
    .allocs_by_node = view_allocs_by_node,
};

void
sched_view_init(struct sched_view_state *v, const void *ctx, struct state_txn *t,
                struct node_table *nodes, const struct quota_room *quota)
{
    v->txn = t;
    v->ctx = ctx;
    v->view = (struct sched_view){
        .ops = &ops,
        .arg = v,
        .index = state_applied(t),
        .nodes = nodes,
        .quota = quota,
        .config = state_scheduler_config(t, ctx),
    };
}
