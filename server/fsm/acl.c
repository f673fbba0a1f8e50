/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: access control. Policies, tokens and roles are stored as all objects are
 * (object.c); here is what is theirs alone.
 */
#include <inttypes.h>

#include "api/acl/token.h"
#include "server/fsm/fsm_int.h"

/* A secret belongs to one token; what was a management token's accessor stays of one region or of
 * all. */
int
entry_refuses_acl_token(struct apply *a, const struct acl_token *t)
{
    const struct acl_token *same = state_acl_token_of(a->t, a->tmp, t->secret_id);
    const struct acl_token *old = state_acl_token(a->t, a->tmp, t->accessor_id);

    if (same != NULL && !str_eq(same->accessor_id, t->accessor_id))
        return entry_refuse(a, -ERR_INVALID, "the secret is another token's");
    if (old != NULL && !str_same_secret(old->secret_id, t->secret_id))
        return entry_refuse(a, -ERR_INVALID, "cannot change the secret of token %s",
                            t->accessor_id);
    if (old != NULL && old->global != t->global)
        return entry_refuse(a, -ERR_INVALID, "cannot toggle global mode of %s", t->accessor_id);
    return 0;
}

int
entry_refuses_acl_role(struct apply *a, const struct acl_role *r)
{
    struct state_iter *it = state_by(a->t, a->tmp, ACL_ROLES_BY_NAME, r->name);

    for (struct acl_role *o; (o = state_next(it, a->tmp)) != NULL; talloc_free(o))
        if (!str_eq(o->id, r->id)) {
            state_iter_end(it);
            return entry_refuse(a, -ERR_INVALID, "role with name %s already exists", r->name);
        }
    return 0;
}

int
intent_acl_bootstrap(struct apply *a, const struct intent_acl_bootstrap *in)
{
    const struct acl_bootstrapped *was = state_acl_bootstrapped(a->t, a->tmp);

    if (was != NULL && in->reset_index != was->modify_index && in->reset_index != 0)
        return entry_refuse(a, -ERR_INVALID,
                            "Invalid bootstrap reset index (specified %" PRIu64
                            ", reset index: %" PRIu64 ")",
                            in->reset_index, was->modify_index);
    if (was != NULL && in->reset_index == 0)
        return entry_refuse(a, -ERR_INVALID,
                            "ACL bootstrap already done (reset index: %" PRIu64 ")",
                            was->modify_index);
    if (entry_refuses_acl_token(a, in->token) < 0)
        return a->res->err.code;
    struct acl_bootstrapped *b = mem_new(a->ctx, struct acl_bootstrapped);
    b->create_index = was != NULL ? was->create_index : a->index;
    b->modify_index = a->index;
    state_put(a->t, a->index, ACL_BOOTSTRAPPED, b);
    entry_put_object(a, STATE_ACL_TOKENS, &type_acl_token,
                     codec_clone(a->ctx, &type_acl_token, in->token));
    return 0;
}

/* --- one-time tokens --- */

int
intent_acl_one_time(struct apply *a, const struct intent_acl_one_time *in)
{
    struct acl_one_time_token *o = codec_clone(a->ctx, &type_acl_one_time_token, in->token);

    if (state_acl_token(a->t, a->tmp, o->accessor_id) == NULL)
        return entry_refuse(a, -ERR_FORBIDDEN, "Permission denied");
    o->create_index = o->modify_index = a->index;
    state_put(a->t, a->index, ACL_ONE_TIME_TOKENS, o);
    return 0;
}

int
intent_acl_exchange(struct apply *a, const struct intent_acl_exchange *in)
{
    const struct acl_one_time_token *o =
        state_get(a->t, a->tmp, ACL_ONE_TIME_TOKENS, in->accessor_id);

    if (o == NULL || !str_same_secret(o->one_time_secret_id, in->one_time_secret_id) ||
        o->expires_at <= a->now)
        return entry_refuse(a, -ERR_FORBIDDEN, "Permission denied");
    (void)state_del_row(a->t, a->index, STATE_ACL_ONE_TIME_TOKENS,
                        (struct state_key){.a = in->accessor_id});
    return 0;
}

/* --- garbage --- */

void
entry_reap_tokens(struct apply *a, const struct intent_reap *in)
{
    for (size_t i = 0; i < in->tokens.n; i++) {
        const struct acl_token *t = state_acl_token(a->t, a->tmp, in->tokens.v[i]);
        if (t != NULL && acl_token_ended(t, a->now))
            (void)state_del_row(a->t, a->index, STATE_ACL_TOKENS,
                                (struct state_key){.a = in->tokens.v[i]});
    }
    for (size_t i = 0; i < in->one_time_tokens.n; i++) {
        const struct acl_one_time_token *o =
            state_get(a->t, a->tmp, ACL_ONE_TIME_TOKENS, in->one_time_tokens.v[i]);
        if (o != NULL && o->expires_at <= a->now)
            (void)state_del_row(a->t, a->index, STATE_ACL_ONE_TIME_TOKENS,
                                (struct state_key){.a = in->one_time_tokens.v[i]});
    }
}
