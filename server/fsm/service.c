/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: services. The registrations of an allocation are written as a set, by its
 * node; they end with it in the same entry (entry_put_alloc), and are not shown while their node is
 * not heard. So none outlives what it names, whatever its client does.
 */
#include "server/fsm/fsm_int.h"

/* Completes what a node sent by what is known of the allocation. */
static struct service_registration *
registration_new(struct apply *a, const struct service_registration *in,
                 const struct allocation *al, const struct node *n)
{
    struct service_registration *s = codec_clone(a->ctx, &type_service_registration, in);

    s->namespace = mem_strdup(s, al->namespace);
    s->job_id = mem_strdup(s, al->job_id);
    s->alloc_id = mem_strdup(s, al->id);
    s->node_id = mem_strdup(s, n->id);
    s->datacenter = mem_strdup(s, n->datacenter);
    s->away = node_away(n);
    return s;
}

static void
put_registration(struct apply *a, struct service_registration *s)
{
    const struct service_registration *old = state_get(a->t, a->tmp, SERVICES, s->id);

    s->create_index = old != NULL ? old->create_index : a->index;
    s->modify_index = old != NULL ? old->modify_index : a->index;
    if (old != NULL && codec_equal(&type_service_registration, s, old, 0))
        return;
    s->modify_index = a->index;
    state_put(a->t, a->index, SERVICES, s);
}

static bool
is_named(const struct service_registration_list *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i]->id, id))
            return true;
    return false;
}

int
intent_services_set(struct apply *a, const struct intent_services_set *in)
{
    const struct allocation *al = state_alloc(a->t, a->ctx, in->alloc_id);
    const struct node *n = al != NULL ? state_node(a->t, a->ctx, al->node_id) : NULL;
    struct str_list gone = {NULL, 0};

    if (n == NULL || !str_eq(al->node_id, in->node_id))
        return entry_refuse(a, -ERR_NOT_FOUND, "allocation \"%s\" not found on node \"%s\"",
                            str_or(in->alloc_id, ""), str_or(in->node_id, ""));
    if (alloc_client_terminal(al) && in->services.n > 0)
        return entry_refuse(a, -ERR_CONFLICT, "allocation \"%s\" has ended", al->id);
    struct state_iter *it = state_services_by_alloc(a->t, a->tmp, al->id);
    for (struct service_registration *s; (s = state_next(it, a->tmp)) != NULL;)
        if (!is_named(&in->services, s->id))
            list_add(a->tmp, gone, s->id);
    for (size_t i = 0; i < gone.n; i++)
        (void)state_del(a->t, a->index, SERVICES, gone.v[i]);
    for (size_t i = 0; i < in->services.n; i++)
        put_registration(a, registration_new(a, in->services.v[i], al, n));
    return 0;
}

int
intent_service_delete(struct apply *a, const struct intent_service_delete *in)
{
    const struct service_registration *s = state_get(a->t, a->tmp, SERVICES, in->id);

    if (s == NULL || !str_eq(s->namespace, in->namespace) ||
        !str_eq(s->service_name, in->service_name))
        return entry_refuse(a, -ERR_NOT_FOUND, "service registration not found");
    (void)state_del(a->t, a->index, SERVICES, in->id);
    return 0;
}

void
entry_services_away(struct apply *a, const struct node *n)
{
    struct service_registration_list all = {NULL, 0};
    struct state_iter *it = state_services_by_node(a->t, a->ctx, n->id);

    for (struct service_registration *s; (s = state_next(it, a->ctx)) != NULL;)
        list_add(a->tmp, all, s);
    for (size_t i = 0; i < all.n; i++) {
        all.v[i]->away = node_away(n);
        all.v[i]->modify_index = a->index;
        state_put(a->t, a->index, SERVICES, all.v[i]);
    }
}
