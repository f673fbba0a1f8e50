/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: the key ring, and variables. All that is secret comes sealed, and stays so.
 */
#include <inttypes.h>

#include "api/namespace.h"
#include "api/vars/vars.h"
#include "server/fsm/fsm_int.h"

/* --- the key ring --- */

static void
put_key(struct apply *a, struct root_key *k, const char *state)
{
    k->state = state;
    k->modify_index = a->index;
    state_put(a->t, a->index, ROOT_KEYS, k);
}

static bool
seals_any(struct apply *a, const char *key_id)
{
    return state_any_key(a->t, STATE_VARIABLES_BY_KEY, key_id);
}

/* The key that was active, and with `full` all that seal something, make room for another. */
static void
retire_keys(struct apply *a, const char *by, bool full)
{
    struct {
        struct root_key **v;
        size_t n;
    } all = {NULL, 0};
    struct state_iter *it = state_ids(a->t, a->ctx, STATE_ROOT_KEYS, NULL);

    for (struct root_key *k; (k = state_next(it, a->ctx)) != NULL;)
        if (!str_eq(k->key_id, by))
            list_add(a->tmp, all, k);
    for (size_t i = 0; i < all.n; i++) {
        struct root_key *k = all.v[i];
        bool active = str_eq(k->state, KEY_ACTIVE);
        if (full && (active || str_eq(k->state, KEY_INACTIVE)) && seals_any(a, k->key_id))
            put_key(a, k, KEY_REKEYING);
        else if (active)
            put_key(a, k, KEY_INACTIVE);
    }
}

int
intent_root_key_upsert(struct apply *a, const struct intent_root_key_upsert *in)
{
    struct root_key *k = codec_clone(a->ctx, &type_root_key, in->key);
    const struct root_key *old = state_root_key(a->t, a->tmp, k->key_id);

    if (in->first && state_any_row(a->t, STATE_ROOT_KEYS))
        return 0;
    k->create_time = old != NULL ? old->create_time : a->now;
    k->create_index = old != NULL ? old->create_index : a->index;
    if (str_eq(k->state, KEY_ACTIVE)) {
        k->publish_time = 0;
        retire_keys(a, k->key_id, in->full);
    }
    put_key(a, k, k->state);
    return 0;
}

int
intent_root_key_delete(struct apply *a, const struct intent_root_key_delete *in)
{
    const struct root_key *k = state_root_key(a->t, a->tmp, in->key_id);

    if (k == NULL)
        return entry_refuse(a, -ERR_INVALID, "root key not found");
    if (str_eq(k->state, KEY_ACTIVE))
        return entry_refuse(a, -ERR_INVALID,
                            "active root key cannot be deleted - call rotate first");
    if (!in->force && seals_any(a, in->key_id))
        return entry_refuse(a, -ERR_INVALID,
                            "root key in use, cannot delete: variables are sealed by it (rotate "
                            "with full, or force)");
    (void)state_del(a->t, a->index, ROOT_KEYS, in->key_id);
    return 0;
}

int
intent_variables_rekey(struct apply *a, const struct intent_variables_rekey *in)
{
    struct root_key *k = state_root_key(a->t, a->ctx, in->key_id);

    for (size_t i = 0; i < in->variables.n; i++) {
        const struct sealed_variable *v = in->variables.v[i];
        struct sealed_variable *old = state_variable(a->t, a->ctx, v->namespace, v->path);
        if (old == NULL || old->modify_index != v->modify_index ||
            !str_eq(old->key_id, in->key_id) || state_root_key(a->t, a->tmp, v->key_id) == NULL)
            continue;
        old->key_id = v->key_id;
        old->sealed = v->sealed;
        state_put(a->t, 0, VARIABLES, old); /* what it says is the same: nobody is woken */
    }
    if (k != NULL && str_eq(k->state, KEY_REKEYING) && !seals_any(a, in->key_id))
        put_key(a, k, KEY_INACTIVE);
    return 0;
}

/* --- variables --- */

/* Says whether somebody else holds its lock. */
static bool
held_by_other(const struct sealed_variable *old, const struct sealed_variable *v)
{
    return old != NULL && old->lock != NULL &&
           (v->lock == NULL || !str_same_secret(v->lock->id, old->lock->id));
}

static void
put_variable(struct apply *a, struct sealed_variable *v, const struct sealed_variable *old)
{
    v->create_index = old != NULL ? old->create_index : a->index;
    v->create_time = old != NULL ? old->create_time : a->now;
    v->modify_index = a->index;
    v->modify_time = a->now;
    state_put(a->t, a->index, VARIABLES, v);
    a->res->variable = v;
}

static int
variable_conflicts(struct apply *a, const struct sealed_variable *old)
{
    a->res->conflict = true;
    a->res->variable = old;
    return 0;
}

static int
variable_delete(struct apply *a, const struct sealed_variable *old)
{
    if (old != NULL)
        (void)state_del(a->t, a->index, VARIABLES, old->namespace, old->path);
    return 0;
}

static int
variable_release(struct apply *a, struct sealed_variable *old)
{
    if (old == NULL || old->lock == NULL)
        return variable_conflicts(a, old);
    old->lock = NULL;
    old->lock_renewed = 0;
    put_variable(a, old, old);
    return 0;
}

/* Refuses a variable that becomes larger than the quota of its namespace leaves room for. */
static int
variable_fits(struct apply *a, const struct intent_variable_apply *in,
              const struct sealed_variable *v, const struct sealed_variable *old)
{
    const struct namespace *n = state_namespace(a->t, a->tmp, str_or(v->namespace, NS_DEFAULT));
    size_t was = old != NULL ? old->sealed.n : 0;

    if (!state_has_namespace(a->t, v->namespace))
        return entry_refuse(a, -ERR_INVALID, "variable \"%s\" is in nonexistent namespace \"%s\"",
                            v->path, v->namespace);
    if (n == NULL || str_empty(n->quota) || str_empty(in->region) || v->sealed.n <= was)
        return 0;
    const struct quota *q = state_get(a->t, a->tmp, QUOTAS, n->quota);
    int64_t limit = q != NULL ? quota_limit_bytes(q, in->region) : INT64_MAX;
    uint64_t all = limit != INT64_MAX ? state_quota_bytes(a->t, n->quota) + v->sealed.n - was : 0;
    if (all <= (uint64_t)limit)
        return 0;
    return entry_refuse(a, -ERR_LIMIT,
                        "variables of quota \"%s\" exhausted: %" PRIu64 " bytes needed > %" PRId64
                        " limit (variables_limit): raise it, or remove variables",
                        n->quota, all, limit);
}

/* Stores new items; a lock stays, or begins when it is acquired. */
static int
variable_store(struct apply *a, const struct intent_variable_apply *in,
               const struct sealed_variable *old)
{
    struct sealed_variable *v = codec_clone(a->ctx, &type_sealed_variable, in->variable);

    int rc = variable_fits(a, in, v, old);
    if (rc < 0)
        return rc;
    if (state_root_key(a->t, a->tmp, v->key_id) == NULL)
        return entry_refuse(a, -ERR_CONFLICT, "its root key was removed meanwhile: retry");
    bool acquires = str_eq(in->op, VAR_LOCK_ACQUIRE);
    if (!acquires)
        v->lock = old != NULL ? old->lock : NULL;
    v->lock_renewed = acquires ? a->now : old != NULL ? old->lock_renewed : 0;
    put_variable(a, v, old);
    return 0;
}

int
intent_variable_apply(struct apply *a, const struct intent_variable_apply *in)
{
    const struct sealed_variable *v = in->variable;
    struct sealed_variable *old =
        state_variable(a->t, a->ctx, str_or(v->namespace, ""), str_or(v->path, ""));
    uint64_t index = old != NULL ? old->modify_index : 0;

    if (held_by_other(old, v) || (in->cas && index != in->modify_index))
        return variable_conflicts(a, old);
    if (str_eq(in->op, VAR_DELETE))
        return variable_delete(a, old);
    if (str_eq(in->op, VAR_LOCK_RELEASE))
        return variable_release(a, old);
    return variable_store(a, in, old);
}

/* Nothing that anybody sees of the variables changes. */
int
intent_locks_renewed(struct apply *a, const struct intent_locks_renewed *in)
{
    for (size_t i = 0; i < in->locks.n; i++) {
        const struct lock_renewal *r = in->locks.v[i];
        struct sealed_variable *v =
            state_variable(a->t, a->ctx, str_or(r->namespace, ""), str_or(r->path, ""));
        if (v == NULL || v->lock == NULL || !str_same_secret(v->lock->id, r->lock_id))
            continue;
        v->lock_renewed = a->now - r->age;
        state_put(a->t, 0, VARIABLES, v);
    }
    return 0;
}
