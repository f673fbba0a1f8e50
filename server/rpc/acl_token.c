/* SPDX-License-Identifier: Apache-2.0
 *
 * ACL.*: tokens. First reads, which show secrets to management and to their bearers alone; then
 * writes, where the server makes ids and times and an update keeps what is stored of them; then the
 * first token of all, and those that are exchanged once.
 */
#include "server/rpc/acl_int.h"

#include <fcntl.h>
#include <string.h>

#include "common/duration.h"
#include "common/fd.h"
#include "common/num.h"

enum { ONE_TIME_S = 600, RESET_FILE_MAX = 64 };

/* --- reads --- */

/* The roles of the token that are there, by their present names. */
static void
name_roles(struct state_txn *t, void *ctx, struct acl_token_role_list *roles)
{
    struct acl_token_role_list all = *roles;

    *roles = (struct acl_token_role_list){NULL, 0};
    for (size_t i = 0; i < all.n; i++) {
        const struct acl_role *r = state_acl_role(t, ctx, str_or(all.v[i]->id, ""));
        if (r == NULL)
            continue;
        all.v[i]->name = r->name;
        list_add(ctx, *roles, all.v[i]);
    }
}

static bool
token_takes(const struct read *r, const void *whole)
{
    const struct acl_token_list_request *req = r->req;

    return !req->global || ((const struct acl_token *)whole)->global;
}

static void
token_finish(struct read *r, struct state_txn *t, void *whole, void *row)
{
    (void)r;
    name_roles(t, whole, &((struct acl_token_list_stub *)row)->roles);
}

static int
tokens_run(struct read *r, struct state_txn *t, struct err *e)
{
    return acl_endpoint_on(r->s, e) < 0 ? e->code : read_list(r, t, e);
}

const struct read_row read_acl_list_tokens = {.tables = STATE_BIT(STATE_ACL_TOKENS),
                                              .run = tokens_run,
                                              .takes = token_takes,
                                              .finish = token_finish};

/* Shows a token to management, and to who bears its secret. */
static int
token_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct caller *c = read_caller(r);

    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    struct acl_token *token = state_acl_token(t, r->ctx, read_id(r));
    bool own = token != NULL && c->token != NULL && str_eq(c->accessor, token->accessor_id);
    if (!own && !acl_is_management(c->rights))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (token != NULL)
        name_roles(t, token, &token->roles);
    return acl_reply_one(r, t, token);
}

const struct read_row read_acl_get_token = {
    .tables = STATE_BIT(STATE_ACL_TOKENS), .about = WATCH_ACL_TOKEN, .run = token_run};

static struct acl_token *
anonymous_token(const void *ctx)
{
    struct acl_token *t = type_new(ctx, &type_acl_token);

    t->accessor_id = ACL_ANONYMOUS;
    t->name = "Anonymous Token";
    t->type = ACL_TOKEN_CLIENT;
    list_add(t, t->policies, ACL_ANONYMOUS);
    return t;
}

static int
whoami_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct caller *c = read_caller(r);

    if (acl_endpoint_on(r->s, e) < 0)
        return e->code;
    struct acl_token *token = c->token != NULL ? state_acl_token(t, r->ctx, c->accessor) : NULL;
    if (c->token != NULL && token == NULL)
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (token == NULL && c->workload != NULL)
        return acl_reply_one(r, t, NULL);
    if (token == NULL)
        token = anonymous_token(r->ctx);
    name_roles(t, token, &token->roles);
    return acl_reply_one(r, t, token);
}

const struct read_row read_acl_who_am_i = {.tables = STATE_RIGHTS, .run = whoami_run};

/* --- writes --- */

int
acl_token_set_end(const struct server_config *cfg, struct acl_token *t, struct err *e)
{
    int64_t min = cfg->acl_token_ttl_min > 0 ? cfg->acl_token_ttl_min : 60 * NS_PER_S;
    int64_t max = cfg->acl_token_ttl_max > 0 ? cfg->acl_token_ttl_max : 24 * 3600 * NS_PER_S;
    char least[DURATION_TEXT], most[DURATION_TEXT];
    int64_t ttl = 0;

    if (!str_empty(t->expiration_ttl) && duration_parse(t->expiration_ttl, &ttl) < 0)
        return err_set(e, -ERR_INVALID, "ExpirationTTL \"%.64s\" is no duration",
                       t->expiration_ttl);
    if (ttl < 0)
        return err_set(e, -ERR_INVALID, "ExpirationTTL '%.64s' should not be negative",
                       t->expiration_ttl);
    if (t->expiration_time == 0 && ttl == 0)
        return 0;
    if (t->expiration_time == 0)
        t->expiration_time = ttl <= max ? t->create_time + ttl : INT64_MAX;
    ttl = t->expiration_time - t->create_time;
    if (ttl < min || ttl > max)
        return err_set(e, -ERR_INVALID,
                       "expiration time must be %s to %s from now (acl.token_min_expiration_ttl "
                       "and token_max_expiration_ttl)",
                       duration_format(min, least), duration_format(max, most));
    return 0;
}

static int
link_roles(struct acl_token *token, struct state_txn *t, struct err *e)
{
    struct acl_token_role_list asked = token->roles;

    token->roles = (struct acl_token_role_list){NULL, 0};
    for (size_t i = 0; i < asked.n; i++) {
        const char *id = str_or(asked.v[i]->id, ""), *name = str_or(asked.v[i]->name, "");
        struct acl_role *r = !str_empty(id) ? state_acl_role(t, token, id) : NULL;
        if (str_empty(id) && !str_empty(name)) {
            struct state_iter *it = state_by(t, token, ACL_ROLES_BY_NAME, name);
            r = state_next(it, token);
            if (r != NULL)
                state_iter_end(it);
        }
        if (r == NULL)
            return err_set(e, -ERR_INVALID, "cannot find role %.128s", !str_empty(id) ? id : name);
        bool twice = false;
        for (size_t k = 0; k < token->roles.n; k++)
            twice |= str_eq(token->roles.v[k]->id, r->id);
        struct acl_token_role *link = type_new(token, &type_acl_token_role);
        link->id = r->id;
        if (!twice)
            list_add(token, token->roles, link);
    }
    return 0;
}

static int
take_stored(struct acl_token *t, const struct acl_token *old, struct err *e)
{
    if (t->global != old->global)
        return err_set(e, -ERR_INVALID, "cannot toggle global mode");
    if (t->expiration_time != 0 && t->expiration_time != old->expiration_time)
        return err_set(e, -ERR_INVALID, "cannot update expiration time");
    if (!str_empty(t->expiration_ttl) && !str_eq(t->expiration_ttl, old->expiration_ttl))
        return err_set(e, -ERR_INVALID, "cannot update expiration TTL");
    ASSERT(str_eq(t->accessor_id, old->accessor_id));
    t->secret_id = old->secret_id;
    t->create_time = old->create_time;
    t->expiration_time = old->expiration_time;
    t->expiration_ttl = old->expiration_ttl;
    return 0;
}

/* A token of a client may be uploaded with both its ids; otherwise the server makes them. */
static int
set_ids(struct write *w, struct acl_token *t, const struct acl_token *old, struct err *e)
{
    bool upload =
        !str_empty(t->accessor_id) && !str_empty(t->secret_id) && str_eq(t->type, ACL_TOKEN_CLIENT);

    if (old != NULL)
        return take_stored(t, old, e);
    if (!str_empty(t->accessor_id) && !upload)
        return err_set(e, -ERR_INVALID, "cannot find token %.64s", t->accessor_id);
    if (!upload) {
        t->accessor_id = write_new_id(w);
        t->secret_id = write_new_id(w);
    }
    t->create_time = env_wall_ns(server_env(w->s));
    return acl_token_set_end(server_cfg(w->s), t, e);
}

static int
prepare_tokens(struct write *w, struct state_txn *t, struct err *e)
{
    const struct acl_token_upsert *req = w->req;
    struct acl_token_upsert *put = type_new(w->ctx, &type_acl_token_upsert);

    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    if (req->acl_tokens.n == 0)
        return err_set(e, -ERR_INVALID, "must specify at least one token");
    if (codec_check(&type_acl_token_upsert, req, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->acl_tokens.n; i++) {
        struct acl_token *token = codec_clone(w->ctx, &type_acl_token, req->acl_tokens.v[i]);
        const struct acl_token *old =
            !str_empty(token->accessor_id) ? state_acl_token(t, w->ctx, token->accessor_id) : NULL;
        if (set_ids(w, token, old, e) < 0 || link_roles(token, t, e) < 0 ||
            caller_check_sum(t, token, e) < 0 ||
            acl_prepare_object(&type_acl_token, token, e) < 0)
            return e->code;
        token->create_index = old != NULL ? old->create_index : 0;
        list_add(w->ctx, put->acl_tokens, token);
    }
    struct acl_token_upsert *shown = codec_clone(w->ctx, &type_acl_token_upsert, put);
    for (size_t i = 0; i < shown->acl_tokens.n; i++)
        name_roles(t, shown, &shown->acl_tokens.v[i]->roles);
    w->memo = shown;
    w->in.acl_token_upsert = put;
    return 0;
}

static void
reply_tokens(struct write *w, uint64_t index, struct fsm_result *res)
{
    const struct acl_token_upsert *put = w->memo;
    struct acl_tokens_response resp = {.tokens = put->acl_tokens, .index = index};

    (void)res;
    for (size_t i = 0; i < resp.tokens.n; i++)
        acl_stamp(&type_acl_token, resp.tokens.v[i], index);
    rpc_reply(w->call, &resp);
}

const struct write_row write_acl_upsert_tokens = {prepare_tokens, reply_tokens};

static int
prepare_delete_tokens(struct write *w, struct state_txn *t, struct err *e)
{
    const struct object_delete *req = w->req;

    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    for (size_t i = 0; i < req->names.n; i++)
        if (state_acl_token(t, w->ctx, str_or(req->names.v[i], "")) == NULL)
            return err_set(e, -ERR_INVALID, "Cannot delete nonexistent tokens: %.64s",
                           str_or(req->names.v[i], ""));
    w->in.acl_token_delete = codec_clone(w->ctx, &type_object_delete, req);
    return 0;
}

const struct write_row write_acl_delete_tokens = {prepare_delete_tokens, write_reply_index};

/* --- the first token --- */

/* Returns the index in the file by which an operator allows another first token; 0: there is none.
 */
static uint64_t
reset_index(const struct write *w)
{
    const char *path =
        mem_printf(w->ctx, "%s/server/acl-bootstrap-reset", str_or(server_cfg(w->s)->data_dir, ""));
    uint64_t index = 0;
    size_t n;
    char *text;

    if (file_read(w->ctx, AT_FDCWD, path, RESET_FILE_MAX, &text, &n) < 0)
        return 0;
    text[strcspn(text, " \r\n")] = '\0';
    return num_parse_u64(text, &index) == 0 ? index : 0;
}

static int
prepare_bootstrap(struct write *w, struct state_txn *t, struct err *e)
{
    const struct acl_bootstrap_request *req = w->req;
    struct intent_acl_bootstrap *in = type_new(w->ctx, &type_intent_acl_bootstrap);
    struct acl_token *token = type_new(w->ctx, &type_acl_token);

    (void)t;
    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    if (!str_empty(req->bootstrap_secret) && !uuid_valid(req->bootstrap_secret))
        return err_set(e, -ERR_INVALID, "invalid acl token");
    token->accessor_id = write_new_id(w);
    token->secret_id = !str_empty(req->bootstrap_secret) ? req->bootstrap_secret : write_new_id(w);
    token->name = "Bootstrap Token";
    token->type = ACL_TOKEN_MANAGEMENT;
    token->global = true;
    token->create_time = env_wall_ns(server_env(w->s));
    if (acl_prepare_object(&type_acl_token, token, e) < 0)
        return e->code;
    in->token = token;
    in->reset_index = reset_index(w);
    w->memo = token;
    w->in.acl_bootstrap = in;
    return 0;
}

static void
reply_bootstrap(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct acl_token *token = (struct acl_token *)(uintptr_t)w->memo;
    struct acl_tokens_response resp = {.tokens = {&token, 1}, .index = index};

    (void)res;
    acl_stamp(&type_acl_token, token, index);
    rpc_reply(w->call, &resp);
}

const struct write_row write_acl_bootstrap = {prepare_bootstrap, reply_bootstrap};

/* --- tokens that are exchanged once --- */

static int
prepare_one_time(struct write *w, struct state_txn *t, struct err *e)
{
    const struct caller *c = write_caller(w);
    struct intent_acl_one_time *in = type_new(w->ctx, &type_intent_acl_one_time);
    struct acl_one_time_token *o = type_new(w->ctx, &type_acl_one_time_token);

    (void)t;
    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    if (c->token == NULL)
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    o->one_time_secret_id = write_new_id(w);
    o->accessor_id = mem_strdup(o, c->accessor);
    o->expires_at = env_wall_ns(server_env(w->s)) + ONE_TIME_S * NS_PER_S;
    in->token = o;
    w->memo = o;
    w->in.acl_one_time = in;
    return 0;
}

static void
reply_one_time(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct acl_one_time_token *o = (struct acl_one_time_token *)(uintptr_t)w->memo;
    struct acl_one_time_response resp = {.one_time_token = o, .index = index};

    (void)res;
    o->create_index = o->modify_index = index;
    rpc_reply(w->call, &resp);
}

const struct write_row write_acl_upsert_one_time = {prepare_one_time, reply_one_time};

static int
prepare_exchange(struct write *w, struct state_txn *t, struct err *e)
{
    const struct acl_one_time_exchange *req = w->req;
    struct intent_acl_exchange *in = type_new(w->ctx, &type_intent_acl_exchange);
    int64_t now = env_wall_ns(server_env(w->s));

    if (acl_endpoint_on(w->s, e) < 0)
        return e->code;
    const struct acl_one_time_token *o =
        state_acl_one_time_of(t, w->ctx, str_or(req->one_time_secret_id, ""));
    struct acl_token *token =
        o != NULL && o->expires_at > now ? state_acl_token(t, w->ctx, o->accessor_id) : NULL;
    if (token == NULL || acl_token_ended(token, now))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    name_roles(t, token, &token->roles);
    in->accessor_id = o->accessor_id;
    in->one_time_secret_id = o->one_time_secret_id;
    w->memo = token;
    w->in.acl_exchange = in;
    return 0;
}

static void
reply_exchange(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct acl_exchange_response resp = {.token = (struct acl_token *)(uintptr_t)w->memo,
                                         .index = index};

    (void)res;
    rpc_reply(w->call, &resp);
}

const struct write_row write_acl_exchange_one_time = {prepare_exchange, reply_exchange};
