/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: host volumes. A row is pending until its node reports the volume made, and
 * deleting until the node reports it removed: then the row goes. A node finds its rows beside its
 * allocations (Node.GetClientAllocs).
 */
#include "server/fsm/volume.h"

#include "api/eval.h"
#include "api/volume/volume.h"
#include "server/fsm/fsm_int.h"

struct allocation_list
volume_claims(struct state_txn *t, const void *ctx, const struct host_volume *v)
{
    struct allocation_list l = {NULL, 0};
    struct state_iter *it = state_allocs_by_node(t, ctx, v->node_id);

    for (struct allocation *a; (a = state_next(it, ctx)) != NULL;) {
        const struct job *j = alloc_client_terminal(a) || !str_eq(a->namespace, v->namespace)
                                  ? NULL
                                  : state_alloc_job(t, a);
        const struct task_group *tg = j != NULL ? job_group(j, a->task_group) : NULL;
        for (size_t i = 0; tg != NULL && i < tg->volumes.n; i++)
            if (str_eq(tg->volumes.v[i].v->type, "host") &&
                str_eq(volume_source(ctx, tg->volumes.v[i].v, a->name), v->name)) {
                list_add(ctx, l, a);
                break;
            }
    }
    return l;
}

static struct host_volume *
volume_named(struct state_txn *t, const void *ctx, const char *node_id, const char *name)
{
    struct state_iter *it = state_host_volumes_by_node(t, ctx, node_id);

    for (struct host_volume *v; (v = state_next(it, ctx)) != NULL;)
        if (str_eq(v->name, name)) {
            state_iter_end(it);
            return v;
        }
    return NULL;
}

/* Says whether another may take its name: it never was there, or was registered, so that nothing is
 * lost. */
static bool
is_failed(struct apply *a, const struct host_volume *v)
{
    return str_eq(v->state, VOLUME_UNAVAILABLE) && (v->registered || str_empty(v->host_path)) &&
           volume_claims(a->t, a->tmp, v).n == 0;
}

static int
refuse_in_use(struct apply *a, const struct host_volume *v, const char *what)
{
    struct allocation_list l = volume_claims(a->t, a->tmp, v);

    return l.n == 0 ? 0
                    : entry_refuse(a, -ERR_CONFLICT,
                                   "volume \"%s\" cannot be %s: it is in use by %zu allocations, "
                                   "%s among them",
                                   v->name, what, l.n, l.v[0]->id);
}

int
intent_volume_put(struct apply *a, const struct intent_volume_put *in)
{
    const struct host_volume *old = state_host_volume(a->t, a->ctx, in->volume->id);
    const char *node_id = str_or(in->volume->node_id, "");
    const struct host_volume *named = volume_named(a->t, a->ctx, node_id, in->volume->name);

    if (state_node(a->t, a->ctx, node_id) == NULL)
        return entry_refuse(a, -ERR_NOT_FOUND, "node \"%s\" does not exist", node_id);
    if (old != NULL && str_eq(old->state, VOLUME_DELETING))
        return entry_refuse(a, -ERR_CONFLICT, "volume \"%s\" is being deleted", old->name);
    if (old != NULL && refuse_in_use(a, old, "updated") < 0)
        return -ERR_CONFLICT;
    if (named != NULL && !str_eq(named->id, in->volume->id) && !is_failed(a, named))
        return entry_refuse(a, -ERR_CONFLICT, "node \"%s\" has a volume \"%s\" already: %s",
                            node_id, named->name, named->id);
    if (named != NULL && !str_eq(named->id, in->volume->id))
        (void)state_del(a->t, a->index, HOST_VOLUMES, named->id);
    struct host_volume *v = codec_clone(a->ctx, &type_host_volume, in->volume);
    v->state = VOLUME_PENDING;
    v->error = NULL;
    v->claims = old != NULL ? old->claims : (struct host_volume_claim_list){NULL, 0};
    v->create_index = old != NULL ? old->create_index : a->index;
    v->create_time = old != NULL ? old->create_time : a->now;
    v->modify_index = a->index;
    v->modify_time = a->now;
    state_put(a->t, a->index, HOST_VOLUMES, v);
    return 0;
}

int
intent_volume_delete(struct apply *a, const struct intent_volume_delete *in)
{
    struct host_volume *v = state_host_volume(a->t, a->ctx, str_or(in->id, ""));

    if (v == NULL)
        return entry_refuse(a, -ERR_NOT_FOUND, "no such volume: %s", str_or(in->id, ""));
    if (refuse_in_use(a, v, "deleted") < 0)
        return -ERR_CONFLICT;
    if (in->forget) {
        (void)state_del(a->t, a->index, HOST_VOLUMES, v->id);
        return 0;
    }
    v->state = VOLUME_DELETING;
    v->error = NULL;
    v->modify_index = a->index;
    v->modify_time = a->now;
    state_put(a->t, a->index, HOST_VOLUMES, v);
    return 0;
}

static void
claim_one(struct apply *a, const struct allocation *al, const char *name)
{
    const struct host_volume *now = volume_named(a->t, a->tmp, al->node_id, name);

    if (now == NULL || !str_eq(now->namespace, al->namespace) ||
        volume_claimed(now, al->job_id, al->name))
        return;
    struct host_volume *v = codec_clone(a->ctx, &type_host_volume, now);
    struct host_volume_claim *c = mem_new(v, struct host_volume_claim);
    *c = (struct host_volume_claim){.job_id = al->job_id, .alloc_name = al->name};
    list_add(v, v->claims, c);
    v->modify_index = a->index;
    v->modify_time = a->now;
    state_put(a->t, a->index, HOST_VOLUMES, v);
}

static bool
has_sticky(const struct job *j)
{
    for (size_t g = 0; g < j->task_groups.n; g++)
        for (size_t i = 0; i < j->task_groups.v[g]->volumes.n; i++)
            if (j->task_groups.v[g]->volumes.v[i].v->sticky)
                return true;
    return false;
}

void
entry_claim_volumes(struct apply *a, const struct job *j, const struct allocation *al)
{
    const struct task_group *tg = j != NULL && has_sticky(j) ? job_group(j, al->task_group) : NULL;

    for (size_t i = 0; tg != NULL && i < tg->volumes.n; i++)
        if (tg->volumes.v[i].v->sticky)
            claim_one(a, al, volume_source(a->tmp, tg->volumes.v[i].v, al->name));
}

void
entry_release_volumes(struct apply *a, const struct job *j)
{
    struct host_volume_list found = {NULL, 0};
    struct state_iter *it =
        has_sticky(j) ? state_ids(a->t, a->tmp, STATE_HOST_VOLUMES, NULL) : NULL;

    for (struct host_volume *v; it != NULL && (v = state_next(it, a->ctx)) != NULL;)
        if (str_eq(v->namespace, j->namespace) && v->claims.n > 0)
            list_add(a->tmp, found, v);
    for (size_t i = 0; i < found.n; i++) {
        struct host_volume *v = found.v[i];
        size_t n = 0;
        for (size_t k = 0; k < v->claims.n; k++)
            if (!str_eq(v->claims.v[k]->job_id, j->id))
                v->claims.v[n++] = v->claims.v[k];
        if (n == v->claims.n)
            continue;
        v->claims.n = n;
        v->modify_index = a->index;
        v->modify_time = a->now;
        state_put(a->t, a->index, HOST_VOLUMES, v);
    }
}

static void
take_report(struct apply *a, const struct host_volume *now, const struct node_volume *r)
{
    struct host_volume *v = codec_clone(a->ctx, &type_host_volume, now);

    if (r->removed && str_empty(r->error)) {
        (void)state_del(a->t, a->index, HOST_VOLUMES, v->id);
        return;
    }
    v->error = str_empty(r->error) ? NULL : mem_strdup(v, r->error);
    v->state = v->error != NULL ? VOLUME_UNAVAILABLE : VOLUME_READY;
    if (v->error == NULL && !v->registered) {
        v->host_path = mem_strdup(v, r->host_path);
        v->capacity_bytes = r->capacity_bytes;
    }
    v->modify_index = a->index;
    v->modify_time = a->now;
    state_put(a->t, a->index, HOST_VOLUMES, v);
}

/* A report on what the row does not wait for any more comes too late. */
int
intent_volumes_report(struct apply *a, const struct intent_volumes_report *in)
{
    for (size_t i = 0; i < in->volumes.n; i++) {
        const struct node_volume *r = in->volumes.v[i];
        const struct host_volume *v = state_host_volume(a->t, a->ctx, str_or(r->id, ""));
        if (v != NULL && str_eq(v->node_id, in->node_id) &&
            str_eq(v->state, r->removed ? VOLUME_DELETING : VOLUME_PENDING))
            take_report(a, v, r);
    }
    return 0;
}
