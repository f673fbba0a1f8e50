/* SPDX-License-Identifier: Apache-2.0
 *
 * ACL.*: policies and roles, and what agents ask of access control. Tokens: acl_token.c.
 */
#include "server/rpc/acl_int.h"

#include <string.h>

int
acl_endpoint_on(const struct server *s, struct err *e)
{
    return server_cfg(s)->acl_enabled ? 0 : err_set(e, -ERR_UNSUPPORTED, "ACL support disabled");
}

int
acl_reply_one(struct read *r, struct state_txn *t, void *obj)
{
    const struct field *f = &r->method->resp->fields[0];
    void **to = type_member(r->method->resp, read_resp(r), f->wire);

    *to = obj;
    r->index = obj != NULL ? *(const uint64_t *)type_member(f->sub, obj, "ModifyIndex")
                           : state_index(t, r->row->tables);
    return 0;
}

int
acl_prepare_object(const struct type *type, void *obj, struct err *e)
{
    *(uint64_t *)type_member(type, obj, "CreateIndex") = 0;
    *(uint64_t *)type_member(type, obj, "ModifyIndex") = 0;
    if (object_kind(type)->check(obj, false, e) < 0)
        return e->code;
    endpoint_set_hash(obj, type, obj);
    return 0;
}

void
acl_stamp(const struct type *type, void *obj, uint64_t index)
{
    uint64_t *made = type_member(type, obj, "CreateIndex");

    *made = *made == 0 ? index : *made;
    *(uint64_t *)type_member(type, obj, "ModifyIndex") = index;
}

/* --- policies --- */

static bool
may_see_policy(const struct read *r, const char *name)
{
    const struct caller *c = read_caller(r);

    return acl_is_management(c->rights) || caller_has_policy(c, name);
}

static bool
policy_takes(const struct read *r, const void *whole)
{
    return may_see_policy(r, ((const struct acl_policy *)whole)->name);
}

static int
policies_run(struct read *r, struct state_txn *t, struct err *e)
{
    return acl_endpoint_on(r->s, e) < 0 ? e->code : read_list(r, t, e);
}

const struct read_row read_acl_list_policies = {
    .tables = STATE_BIT(STATE_ACL_POLICIES), .run = policies_run, .takes = policy_takes};

static int
policy_run(struct read *r, struct state_txn *t, struct err *e)
{
    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    struct acl_policy *p = state_acl_policy(t, r->ctx, read_id(r));
    struct err ignored = ERR_INIT;

    if (!str_eq(read_id(r), ACL_ANONYMOUS) && !may_see_policy(r, read_id(r)))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (p != NULL) {
        const char *text = str_or(p->rules, "");
        (void)acl_rules_parse(p, text, strlen(text), 0, &p->rules_json, &ignored);
    }
    return acl_reply_one(r, t, p);
}

const struct read_row read_acl_get_policy = {
    .tables = STATE_BIT(STATE_ACL_POLICIES), .about = WATCH_ACL_POLICY, .run = policy_run};

static int
prepare_policies(struct write *w, struct state_txn *t, struct err *e)
{
    const struct acl_policy_upsert *req = w->req;
    struct acl_policy_upsert *put = type_new(w->ctx, &type_acl_policy_upsert);

    (void)t;
    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    if (req->acl_policies.n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one policy");
    if (codec_check(&type_acl_policy_upsert, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->acl_policies.n; i++) {
        struct acl_policy *p = codec_clone(w->ctx, &type_acl_policy, req->acl_policies.v[i]);
        const char *text = str_or(p->rules, "");
        struct acl_rules *rules;
        if (acl_rules_parse(w->ctx, text, strlen(text), ACL_STRICT, &rules, e) < 0)
            return err_prefix(e, "policy %zu invalid", i);
        p->rules_json = NULL;
        if (acl_prepare_object(&type_acl_policy, p, e) < 0)
            return err_prefix(e, "policy %zu invalid", i);
        list_add(w->ctx, put->acl_policies, p);
    }
    w->in.acl_policy_upsert = put;
    return 0;
}

const struct write_row write_acl_upsert_policies = {prepare_policies, write_reply_index};

static int
prepare_delete_policies(struct write *w, struct state_txn *t, struct err *e)
{
    (void)t;
    w->in.acl_policy_delete = codec_clone(w->ctx, &type_object_delete, w->req);
    return acl_endpoint_on(w->s, e);
}

const struct write_row write_acl_delete_policies = {prepare_delete_policies, write_reply_index,
                                                    .here = true};

/* --- roles --- */

static bool
may_see_role(const struct read *r, const struct acl_role *role)
{
    const struct caller *c = read_caller(r);

    return acl_is_management(c->rights) || caller_has_role(c, role->id);
}

static bool
role_takes(const struct read *r, const void *whole)
{
    return may_see_role(r, whole);
}

const struct read_row read_acl_list_roles = {
    .tables = STATE_BIT(STATE_ACL_ROLES), .run = policies_run, .takes = role_takes};

/* Says nothing of whether it is there to a caller who may not see it. */
static int
reply_role(struct read *r, struct state_txn *t, struct acl_role *role, struct err *e)
{
    const struct caller *c = read_caller(r);

    if (!acl_is_management(c->rights) && (role == NULL || !caller_has_role(c, role->id)))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    return acl_reply_one(r, t, role);
}

static int
role_run(struct read *r, struct state_txn *t, struct err *e)
{
    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    return reply_role(r, t, state_acl_role(t, r->ctx, read_id(r)), e);
}

const struct read_row read_acl_get_role = {
    .tables = STATE_BIT(STATE_ACL_ROLES), .about = WATCH_ACL_ROLE, .run = role_run};

struct acl_role *
acl_role_named(struct state_txn *t, const void *ctx, const char *name)
{
    struct state_iter *it = state_by(t, ctx, ACL_ROLES_BY_NAME, name);
    struct acl_role *role = state_next(it, ctx);

    if (role != NULL)
        state_iter_end(it);
    return role;
}

static int
role_by_name_run(struct read *r, struct state_txn *t, struct err *e)
{
    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    return reply_role(r, t, acl_role_named(t, r->ctx, read_id(r)), e);
}

const struct read_row read_acl_get_role_by_name = {.tables = STATE_BIT(STATE_ACL_ROLES),
                                                   .run = role_by_name_run};

static int
check_role_policies(struct acl_role *role, struct state_txn *t, struct err *e)
{
    struct acl_role_policy_list all = role->policies;
    struct acl_token sum = {0};

    role->policies = (struct acl_role_policy_list){NULL, 0};
    for (size_t i = 0; i < all.n; i++) {
        const char *name = str_or(all.v[i]->name, "");
        bool twice = false;
        list_add(role, sum.policies, name);
        if (state_acl_policy(t, role, name) == NULL)
            return err_set(e, -ERR_INVALID, "cannot find policy %.128s", name);
        for (size_t k = 0; k < role->policies.n; k++)
            twice |= str_eq(role->policies.v[k]->name, name);
        if (!twice)
            list_add(role, role->policies, all.v[i]);
    }
    return caller_check_sum(t, &sum, e);
}

static int
prepare_roles(struct write *w, struct state_txn *t, struct err *e)
{
    const struct acl_role_upsert *req = w->req;
    struct acl_role_upsert *put = type_new(w->ctx, &type_acl_role_upsert);

    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    if (req->acl_roles.n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one role");
    if (codec_check(&type_acl_role_upsert, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->acl_roles.n; i++) {
        struct acl_role *role = codec_clone(w->ctx, &type_acl_role, req->acl_roles.v[i]);
        const struct acl_role *old =
            !str_empty(role->id) ? state_acl_role(t, w->ctx, role->id) : NULL;
        if (!str_empty(role->id) && old == NULL)
            return err_set(e, -ERR_INVALID, "cannot find role %.64s", role->id);
        if (old == NULL)
            role->id = write_new_id(w);
        if (check_role_policies(role, t, e) < 0 || acl_prepare_object(&type_acl_role, role, e) < 0)
            return e->code;
        role->create_index = old != NULL ? old->create_index : 0;
        list_add(w->ctx, put->acl_roles, role);
    }
    w->memo = put;
    w->in.acl_role_upsert = put;
    return 0;
}

static void
reply_roles(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct acl_role_upsert *put = w->memo;
    struct acl_roles_response resp = {.roles = put->acl_roles, .index = index};

    (void)res;
    for (size_t i = 0; i < resp.roles.n; i++)
        acl_stamp(&type_acl_role, resp.roles.v[i], index);
    rpc_reply(w->call, &resp);
}

const struct write_row write_acl_upsert_roles = {prepare_roles, reply_roles};

static int
prepare_delete_roles(struct write *w, struct state_txn *t, struct err *e)
{
    (void)t;
    w->in.acl_role_delete = codec_clone(w->ctx, &type_object_delete, w->req);
    return acl_endpoint_on(w->s, e);
}

const struct write_row write_acl_delete_roles = {prepare_delete_roles, write_reply_index,
                                                 .here = true};

/* --- what agents ask --- */

static int
rights_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct caller *c = read_caller(r);
    struct acl_rights_response *resp = read_resp(r);

    (void)e;
    resp->accessor_id = c->accessor;
    resp->management = acl_is_management(c->rights);
    resp->expires = caller_ends(c, env_wall_ns(server_env(r->s)));
    resp->policies = c->policies;
    r->index = state_index(t, STATE_RIGHTS);
    return 0;
}

const struct read_row read_acl_rights = {.tables = STATE_RIGHTS, .run = rights_run};

/* Says, by its index alone, that something of access control has changed. */
static int
changes_run(struct read *r, struct state_txn *t, struct err *e)
{
    (void)e, (void)read_resp(r);
    r->index = state_index(t, STATE_RIGHTS);
    return 0;
}

const struct read_row read_acl_changes = {.tables = STATE_RIGHTS, .run = changes_run};
