/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities of tasks: signed when a node asks for those of its own allocations, and nowhere
 * stored. First the claims and their signing, then introductions of nodes and what nodes are,
 * tokens of the same kind, and at the end what others need to check them.
 */
#include "server/rpc/identity.h"

#include <string.h>

#include "api/pool.h"
#include "api/terms.h"
#include "common/duration.h"
#include "common/log.h"
#include "common/mem.h"
#include "server/call/caller.h"
#include "server/jwt/token.h"
#include "server/keys/jwt.h"

#define IDENTITY_DEFAULT "default"
#define JWKS_PATH "/.well-known/jwks.json"
#define NODE_IDENTITY_TTL (24 * 3600 * NS_PER_S)

static const struct task *
own_task(const struct job *j, const char *group, const char *name)
{
    const struct task_group *g = j != NULL ? job_group(j, group) : NULL;

    for (size_t i = 0; g != NULL && i < g->tasks.n; i++)
        if (str_eq(g->tasks.v[i]->name, name))
            return g->tasks.v[i];
    return NULL;
}

int
own_find(struct read *r, struct state_txn *t, const char *alloc_id, const char *task,
         struct own *ret, struct err *e)
{
    struct allocation *a = state_alloc(t, r->ctx, str_or(alloc_id, ""));

    if (a == NULL || !str_eq(a->node_id, r->node->id))
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    if (alloc_client_terminal(a))
        return err_set(e, -ERR_FORBIDDEN, "allocation \"%s\" has ended", a->id);
    const struct job *j = state_alloc_job(t, a);
    const struct task *own = own_task(j, a->task_group, task);
    if (own == NULL)
        return err_set(e, -ERR_FORBIDDEN, "allocation \"%s\" has no task \"%.128s\"", a->id,
                       str_or(task, ""));
    *ret = (struct own){a, own, str_or(a->namespace, NS_DEFAULT),
                        !str_empty(j->parent_id) ? j->parent_id : j->id};
    return 0;
}

/* --- extra claims of the namespace --- */

/* The things that a claim may name. */
struct named {
    const struct own *o;
    const struct node *node;
    const char *region;
};

/* Returns the value of "${name}"; NULL: there is none of that name. */
static const char *
claim_value(const struct named *v, const char *name)
{
    const struct job *j = v->o->alloc->job;
    const struct {
        const char *name, *value;
    } rows[] = {{"job.region", v->region},
                {"job.namespace", v->o->ns},
                {"job.id", v->o->job},
                {"job.node_pool", j->node_pool},
                {"group.name", v->o->alloc->task_group},
                {"alloc.id", v->o->alloc->id},
                {"task.name", v->o->task->name},
                {"node.id", v->node->id},
                {"node.datacenter", v->node->datacenter},
                {"node.pool", v->node->node_pool},
                {"node.class", v->node->node_class}};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (str_eq(rows[i].name, name))
            return str_or(rows[i].value, "");
    if (!str_prefix(name, "job.meta."))
        return NULL;
    __auto_type meta = map_get(j->meta, name + strlen("job.meta."));
    return meta != NULL ? str_or(meta->v, "") : NULL;
}

/* Fills in the values that the text names; others stay as they are written. */
static const char *
claim_text(const void *ctx, const struct named *v, const char *text)
{
    auto_buf struct buf b = BUF_INIT(JWT_MAX);

    for (const char *end; *text != '\0';) {
        const char *value = NULL;
        if (text[0] == '$' && text[1] == '{' && (end = strchr(text, '}')) != NULL)
            value = claim_value(v, mem_strndup(ctx, text + 2, (size_t)(end - text) - 2));
        if (value != NULL) {
            buf_puts(&b, value);
            text = end + 1;
        } else {
            buf_putc(&b, *text++);
        }
    }
    return mem_strdup(ctx, buf_str(&b));
}

/* The claims that the namespace requires, and those of its optional ones that the identity names.
 */
static const struct str_map *
extra_claims(struct read *r, struct state_txn *t, const struct own *o,
             const struct workload_identity *w)
{
    const struct namespace *ns = state_namespace(t, r->ctx, o->ns);
    struct named v = {o, state_node(t, r->ctx, r->node->id), server_cfg(r->s)->region};
    struct str_map *all = mem_new(r->ctx, struct str_map);

    for (size_t i = 0; ns != NULL && i < ns->required_extra_claims.n; i++)
        str_map_set(r->ctx, all, ns->required_extra_claims.v[i].k,
                    claim_text(r->ctx, &v, str_or(ns->required_extra_claims.v[i].v, "")));
    for (size_t i = 0; ns != NULL && i < w->extra_claims.n; i++) {
        __auto_type row = map_get(ns->optional_extra_claims, str_or(w->extra_claims.v[i], ""));
        if (row != NULL)
            str_map_set(r->ctx, all, row->k, claim_text(r->ctx, &v, str_or(row->v, "")));
    }
    return all;
}

/* --- signing --- */

/* The block of that name; the default identity has one without being written. */
static const struct workload_identity *
identity_of(const struct task *task, const char *name)
{
    static const char *const audience[] = {JWT_AUDIENCE};
    static const struct workload_identity plain = {
        .name = IDENTITY_DEFAULT, .audience = {(const char **)(uintptr_t)audience, 1}};

    if (str_eq(name, IDENTITY_DEFAULT))
        return &plain;
    for (size_t i = 0; i < task->identities.n; i++)
        if (str_eq(task->identities.v[i]->name, name))
            return task->identities.v[i];
    return NULL;
}

static void
identity_reject(struct alloc_identities_response *resp, const struct identity_request *q,
                const char *why)
{
    struct rejected_identity *x = type_new(resp, &type_rejected_identity);

    *x = (struct rejected_identity){q->alloc_id, q->task, q->identity, mem_strdup(x, why)};
    list_add(resp, resp->rejected, x);
}

static void
identity_sign(struct read *r, struct state_txn *t, const struct key *k,
              const struct identity_request *q, const struct own *o,
              struct alloc_identities_response *resp)
{
    const struct env *env = server_env(r->s);
    const struct server_config *cfg = server_cfg(r->s);
    const char *name = str_empty(q->identity) ? IDENTITY_DEFAULT : q->identity;
    const struct workload_identity *w = identity_of(o->task, name);
    char id[UUID_TEXT];

    ASSERT(o->alloc != NULL && o->task != NULL); /* own_find() */
    if (w == NULL) {
        identity_reject(resp, q, "identity not found");
        return;
    }
    int64_t now = env_wall_ns(env) / NS_PER_S;
    const struct jwt_claims c = {.audience = w->audience,
                                 .issued = now,
                                 .expires = w->ttl > 0 ? now + w->ttl / NS_PER_S : 0,
                                 .id = env_id(env, id),
                                 .issuer = cfg->agent->oidc_issuer,
                                 .region = cfg->region,
                                 .namespace = o->ns,
                                 .job = o->job,
                                 .group = o->alloc->task_group,
                                 .task = o->task->name,
                                 .alloc = o->alloc->id,
                                 .identity = name,
                                 .extra = extra_claims(r, t, o, w)};
    struct signed_identity *s = type_new(resp, &type_signed_identity);
    s->jwt = jwt_sign(s, k, &c);
    if (s->jwt == NULL) {
        identity_reject(resp, q, "its claims are too long");
        return;
    }
    s->alloc_id = q->alloc_id;
    s->task = q->task;
    s->identity = mem_strdup(s, name);
    s->expiration = c.expires * NS_PER_S;
    list_add(resp, resp->signed_, s);
}

static int
sign_run(struct read *r, struct state_txn *t, struct err *e)
{
    const struct alloc_identities_request *req = r->req;

    if (codec_check(&type_alloc_identities_request, req, e) < 0)
        return e->code;
    struct key *k = keys_active(server_keys(r->s), t, e);
    if (k == NULL)
        return e->code;
    struct alloc_identities_response *resp = read_resp(r);
    for (size_t i = 0; i < req->identities.n; i++) {
        const struct identity_request *q = req->identities.v[i];
        struct err why = ERR_INIT;
        struct own o;
        if (own_find(r, t, q->alloc_id, q->task, &o, &why) < 0)
            identity_reject(resp, q, why.text);
        else
            identity_sign(r, t, k, q, &o, resp);
    }
    key_unref(k);
    jwt_signed();
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_alloc_sign_identities = {.tables = STATE_BIT(STATE_ROOT_KEYS),
                                                    .run = sign_run};

/* --- introductions of nodes that are new --- */

#define INTRODUCTION "node-introduction:"

static const struct agent_introduction *
introduction_config(struct server *s)
{
    static const struct agent_introduction usual = {"warn", 300 * NS_PER_S, 1800 * NS_PER_S};
    const struct agent_introduction *c = server_cfg(s)->agent->client_introduction;

    return c != NULL ? c : &usual;
}

/* The time that is asked for: a text, or nanoseconds. */
static int
introduction_ttl(struct read *r, const struct value *v, int64_t *ret, struct err *e)
{
    const struct agent_introduction *c = introduction_config(r->s);
    bool none = v == NULL || v->kind == VALUE_NULL || (v->kind == VALUE_INT && v->i == 0) ||
                (v->kind == VALUE_STRING && v->str.n == 0);
    int64_t ttl = none ? c->default_identity_ttl : v->kind == VALUE_INT ? v->i : 0;

    if (!none && v->kind == VALUE_STRING && duration_parse(v->str.s, &ttl) < 0)
        ttl = 0;
    if (ttl < NS_PER_S)
        return err_set(e, -ERR_INVALID, "TTL is no duration of a second or more");
    *ret = ttl < c->max_identity_ttl ? ttl : c->max_identity_ttl;
    return 0;
}

static int
introduction_run(struct read *r, struct state_txn *t, struct err *e)
{
    static const char *const audience[] = {JWT_AUDIENCE};
    const struct introduction_request *q = r->req;
    const struct server_config *cfg = server_cfg(r->s);
    const char *pool = str_or(q->node_pool, POOL_DEFAULT);
    int64_t now = env_wall_ns(server_env(r->s)) / NS_PER_S, ttl = 0;
    char id[UUID_TEXT];

    if (codec_check(&type_introduction_request, q, e) < 0 || pool_check_name(pool, e) < 0 ||
        introduction_ttl(r, q->ttl, &ttl, e) < 0)
        return e->code;
    if (strpbrk(str_or(q->node_name, ""), ":/") != NULL)
        return err_set(e, -ERR_INVALID, "NodeName is no name of a node");
    struct key *k = keys_active(server_keys(r->s), t, e);
    if (k == NULL)
        return e->code;
    const struct jwt_claims c = {.audience = {(const char **)(uintptr_t)audience, 1},
                                 .issued = now,
                                 .expires = now + ttl / NS_PER_S,
                                 .id = env_id(server_env(r->s), id),
                                 .issuer = cfg->agent->oidc_issuer,
                                 .subject = mem_printf(r->ctx, INTRODUCTION "%s:%s:%s:default",
                                                       cfg->region, pool, str_or(q->node_name, "")),
                                 .node_name = q->node_name,
                                 .node_pool = pool};
    struct introduction_response *resp = read_resp(r);
    resp->jwt = jwt_sign(resp, k, &c);
    key_unref(k);
    jwt_signed();
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_acl_create_introduction = {.tables = STATE_BIT(STATE_ROOT_KEYS),
                                                      .run = introduction_run};

/* Says why a token that is there is none for the node; NULL: it is. */
static const char *
introduction_wrong(struct server *s, struct state_txn *t, const struct node *n, const char *token)
{
    auto_mem void *tmp = mem_ctx("introduction");
    int64_t now = env_wall_ns(server_env(s)) / NS_PER_S;
    const char *own = mem_printf(tmp, INTRODUCTION "%s:", server_cfg(s)->region);
    struct jwt_claims c;

    if (jwt_open(tmp, t, token, now, &c) < 0 || !str_prefix(str_or(c.subject, ""), own))
        return "it is none of this region's, or its time is over";
    if (!str_eq(c.node_pool, n->node_pool))
        return "it is for another node pool";
    if (!str_empty(c.node_name) && !str_eq(c.node_name, n->name))
        return "it is for a node of another name";
    return NULL;
}

int
introduction_check(struct server *s, struct state_txn *t, const struct node *n, const char *token,
                   struct err *e)
{
    const char *enforcement = introduction_config(s)->enforcement;
    const char *wrong = str_empty(token) ? NULL : introduction_wrong(s, t, n, token);

    if (wrong != NULL)
        return err_set(e, -ERR_FORBIDDEN, "the introduction of node \"%.128s\": %s", n->name,
                       wrong);
    if (!str_empty(token) || str_eq(enforcement, "none"))
        return 0;
    if (str_eq(enforcement, "strict"))
        return err_set(e, -ERR_FORBIDDEN,
                       "node \"%.128s\" is new and has no introduction: put what `paddock node "
                       "intro create` says into intro_token.jwt of its client's state_dir",
                       n->name);
    log_warn("server", "a node that is new registers without an introduction", "node_id", n->id,
             "name", n->name, NULL);
    return 0;
}

/* --- identities of nodes --- */

/* Returns the claims of a token of ours as they are in it. */
static struct value *
identity_claims(const void *ctx, const char *jwt)
{
    struct jwt_token parts;
    struct value *v = NULL;
    struct err e = ERR_INIT;

    ASSERT(jwt_read(ctx, jwt, JWT_MAX, &parts, &e) == 0);
    ASSERT(json_decode_value(ctx, parts.payload, BUDGET(8 * JWT_MAX), &v, &e) == 0);
    return v;
}

static int
node_sign_run(struct read *r, struct state_txn *t, struct err *e)
{
    static const char *const audience[] = {JWT_AUDIENCE};
    const struct server_config *cfg = server_cfg(r->s);
    const struct node *n = state_node(t, r->ctx, r->node->id);
    int64_t now = env_wall_ns(server_env(r->s)) / NS_PER_S;
    char id[UUID_TEXT];

    if (n == NULL)
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    const struct node_pool *pool = state_node_pool(t, r->ctx, str_or(n->node_pool, POOL_DEFAULT));
    int64_t ttl =
        pool != NULL && pool->node_identity_ttl > 0 ? pool->node_identity_ttl : NODE_IDENTITY_TTL;
    struct key *k = keys_active(server_keys(r->s), t, e);
    if (k == NULL)
        return e->code;
    const struct jwt_claims c = {.audience = {(const char **)(uintptr_t)audience, 1},
                                 .issued = now,
                                 .expires = now + (ttl < NS_PER_S ? 1 : ttl / NS_PER_S),
                                 .id = env_id(server_env(r->s), id),
                                 .issuer = cfg->agent->oidc_issuer,
                                 .subject = mem_printf(r->ctx, "node:%s:%s:%s:default", cfg->region,
                                                       str_or(n->node_pool, POOL_DEFAULT), n->id),
                                 .node = n->id,
                                 .node_pool = str_or(n->node_pool, POOL_DEFAULT),
                                 .node_class = n->node_class,
                                 .node_datacenter = n->datacenter};
    struct node_identity *resp = read_resp(r);
    resp->jwt = jwt_sign(resp, k, &c);
    key_unref(k);
    jwt_signed();
    if (resp->jwt == NULL)
        return err_set(e, -ERR_LIMIT, "the claims of the node are too long");
    resp->claims = identity_claims(resp, resp->jwt);
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_node_sign_identity = {.tables = STATE_BIT(STATE_ROOT_KEYS),
                                                 .run = node_sign_run};

/* --- for those who check them --- */

/* Says whether the token of the call is an identity that holds; without access control too. */
static int
check_identity_run(struct read *r, struct state_txn *t, struct err *e)
{
    int64_t now = env_wall_ns(server_env(r->s));
    const struct workload *w =
        workload_of(r->ctx, t, str_or(r->env->auth_token, ""), now / NS_PER_S);
    struct acl_rights_response *resp = read_resp(r);

    if (w == NULL)
        return err_set(e, -ERR_FORBIDDEN, "Permission denied");
    resp->accessor_id = mem_printf(resp, "identity:%s/%s", w->alloc, w->task);
    resp->expires = w->ends_s * NS_PER_S;
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_keyring_check_identity = {
    .tables = STATE_BIT(STATE_ROOT_KEYS) | STATE_BIT(STATE_ALLOCS), .run = check_identity_run};

void
call_keyring_get_config(void *arg, struct rpc_call *call, const void *req)
{
    static const char *const code[] = {"code"}, *const public[] = {"public"},
                             *const algorithms[] = {"RS256"};
    const char *issuer = server_cfg(arg)->agent->oidc_issuer;
    auto_mem void *tmp = mem_ctx("config");
    struct oidc_config c = {.issuer = issuer};

    (void)req;
    if (str_empty(issuer)) {
        rpc_failf(call, -ERR_NOT_FOUND, "OIDC Discovery endpoint disabled");
        return;
    }
    size_t n = strlen(issuer);
    c.jwks_uri = mem_printf(tmp, "%.*s" JWKS_PATH, (int)(issuer[n - 1] == '/' ? n - 1 : n), issuer);
    c.response_types_supported = (struct str_list){(const char **)(uintptr_t)code, 1};
    c.subject_types_supported = (struct str_list){(const char **)(uintptr_t)public, 1};
    c.id_token_signing_alg_values_supported =
        (struct str_list){(const char **)(uintptr_t)algorithms, 1};
    rpc_reply(call, &c);
}
