/* SPDX-License-Identifier: Apache-2.0
 *
 * The callers (see caller.h): first they and their count, then the policies of a token and of a
 * task, which make their rights; last the callers that are kept.
 */
#include "server/call/caller.h"

#include <string.h>

#include "api/acl/token.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/state/state.h"

enum { KEPT_MAX = 1024 };

/* A caller by its secret; a token's end is looked at whenever it is found. */
struct kept {
    char *secret;
    struct caller *c;
    UT_hash_handle hh;
};

struct callers {
    struct server *s;
    struct kept *kept;
    uint64_t index;           /* of the tables that they were made of */
    struct caller *everybody; /* without access control */
};

static int
callers_free(struct callers *all)
{
    struct kept *k, *next;

    HASH_ITER (hh, all->kept, k, next) {
        HASH_DEL(all->kept, k);
        caller_unref(k->c);
    }
    caller_unref(all->everybody);
    return 0;
}

static void
callers_forget(struct callers *all)
{
    struct kept *k, *next;

    HASH_ITER (hh, all->kept, k, next) {
        HASH_DEL(all->kept, k);
        caller_unref(k->c);
        explicit_bzero(k->secret, strlen(k->secret));
        talloc_free(k);
    }
}

static struct caller *
caller_new(const char *accessor)
{
    struct caller *c = mem_new(NULL, struct caller);

    atomic_store(&c->refs, 1);
    c->accessor = mem_strdup(c, accessor);
    return c;
}

struct callers *
callers_new(const void *ctx, struct server *s)
{
    struct callers *all = mem_new(ctx, struct callers);

    all->s = s;
    all->everybody = caller_new("acls-disabled");
    all->everybody->rights = acl_management();
    talloc_set_destructor(all, callers_free);
    return all;
}

static struct caller *
caller_ref(struct caller *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void
caller_unref(struct caller *c)
{
    if (c == NULL || atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    acl_unref(c->rights);
    talloc_free(c);
}

bool
caller_has_policy(const struct caller *c, const char *name)
{
    for (size_t i = 0; i < c->policies.n; i++)
        if (str_eq(c->policies.v[i]->name, name))
            return true;
    return false;
}

bool
caller_has_role(const struct caller *c, const char *id)
{
    for (size_t i = 0; c->token != NULL && i < c->token->roles.n; i++)
        if (str_eq(c->token->roles.v[i]->id, id))
            return true;
    return false;
}

/* --- resolving --- */

static void
add_policy(struct caller *c, struct state_txn *t, const char *name)
{
    struct acl_policy *p;

    if (c->too_much != NULL || caller_has_policy(c, name) ||
        (p = state_acl_policy(t, c, name)) == NULL)
        return;
    c->bytes += strlen(str_or(p->rules, ""));
    if (c->bytes > ACL_SUM_MAX)
        c->too_much = p->name;
    else
        list_add(c, c->policies, p);
}

static void
add_role(struct caller *c, struct state_txn *t, const char *id)
{
    const struct acl_role *r = state_acl_role(t, c, id);

    for (size_t i = 0; r != NULL && i < r->policies.n; i++)
        add_policy(c, t, r->policies.v[i]->name);
}

static struct caller *
caller_anonymous(struct state_txn *t)
{
    struct caller *c = caller_new(ACL_ANONYMOUS);

    add_policy(c, t, ACL_ANONYMOUS);
    c->rights = acl_of_policies(&c->policies);
    return c;
}

static void
add_policies(struct caller *c, struct state_txn *t, const struct acl_token *token)
{
    for (size_t i = 0; i < token->policies.n; i++)
        add_policy(c, t, token->policies.v[i]);
    for (size_t i = 0; i < token->roles.n; i++)
        add_role(c, t, token->roles.v[i]->id);
}

/* Fills in a new caller, which is freed where there is no token. */
static struct caller *
caller_fill(struct caller *c, struct state_txn *t, const struct acl_token *token, struct err *e)
{
    c->token = token;
    if (token == NULL) {
        err_set(e, -ERR_FORBIDDEN, "Permission denied");
        talloc_free(c);
        return NULL;
    }
    c->accessor = token->accessor_id;
    if (str_eq(token->type, ACL_TOKEN_MANAGEMENT)) {
        c->rights = acl_management();
        return c;
    }
    add_policies(c, t, token);
    if (c->too_much != NULL) /* one that is not looked at may deny */
        c->policies.n = 0;
    c->rights = acl_of_policies(&c->policies);
    return c;
}

/* --- identities of tasks --- */

struct caller *
caller_of_workload(struct state_txn *t, const struct workload *w)
{
    auto_mem void *tmp = mem_ctx("workload");
    struct caller *c = caller_new("");
    struct workload *own = mem_new(c, struct workload);

    *own = (struct workload){mem_strdup(own, w->ns),    mem_strdup(own, w->job),
                             mem_strdup(own, w->group), mem_strdup(own, w->task),
                             mem_strdup(own, w->alloc), w->ends_s};
    c->workload = own;
    c->accessor = mem_printf(c, "identity:%s/%s", w->alloc, w->task);
    struct state_iter *it = state_ids(t, tmp, STATE_ACL_POLICIES, NULL);
    for (struct acl_policy *p; (p = state_next(it, tmp)) != NULL;)
        if (workload_has(w, p))
            add_policy(c, t, p->name);
    if (c->too_much != NULL)
        c->policies.n = 0;
    c->rights = acl_of_policies(&c->policies);
    return c;
}

static struct caller *
caller_of_identity(struct state_txn *t, const char *token, int64_t now_s, struct err *e)
{
    auto_mem void *tmp = mem_ctx("identity");
    const struct workload *w = workload_of(tmp, t, token, now_s);

    if (w == NULL) {
        err_set(e, -ERR_FORBIDDEN, "Permission denied");
        return NULL;
    }
    return caller_of_workload(t, w);
}

static struct caller *
caller_resolve(struct state_txn *t, const char *secret, int64_t now_ns, struct err *e)
{
    if (str_empty(secret))
        return caller_anonymous(t);
    if (strchr(secret, '.') != NULL)
        return caller_of_identity(t, secret, now_ns / NS_PER_S, e);
    struct caller *c = caller_new("");
    return caller_fill(c, t, state_acl_token_of(t, c, secret), e);
}

struct caller *
caller_by_accessor(struct state_txn *t, const char *accessor, struct err *e)
{
    if (str_eq(accessor, ACL_ANONYMOUS))
        return caller_anonymous(t);
    struct caller *c = caller_new("");
    return caller_fill(c, t, state_acl_token(t, c, accessor), e);
}

int
caller_check_sum(struct state_txn *t, const struct acl_token *token, struct err *e)
{
    struct caller *c = caller_new("");
    int rc = 0;

    add_policies(c, t, token);
    if (c->too_much != NULL)
        rc = err_set(e, -ERR_INVALID,
                     "policy \"%s\" is too much: the policies of a token, with those of its roles, "
                     "have at most %d bytes of text together: take some away, or shorten them",
                     c->too_much, ACL_SUM_MAX);
    caller_unref(c);
    return rc;
}

/* Drops what is kept when something of it may have changed, or there is too much. */
static void
callers_refresh(struct callers *all, struct state_txn *t)
{
    uint64_t index = state_index(t, STATE_RIGHTS);

    if (index != all->index || HASH_COUNT(all->kept) >= KEPT_MAX)
        callers_forget(all);
    all->index = index;
}

static void
callers_keep(struct callers *all, const char *secret, struct caller *c)
{
    struct kept *k = mem_new(all, struct kept);

    k->secret = mem_strdup(k, secret);
    k->c = caller_ref(c);
    HASH_ADD_KEYPTR(hh, all->kept, k->secret, strlen(k->secret), k);
}

struct caller *
caller_of(struct server *s, const char *secret, struct err *e)
{
    struct callers *all = server_callers(s);
    const char *key = str_or(secret, "");
    struct kept *k;
    struct caller *c;

    if (!server_cfg(s)->acl_enabled)
        return caller_ref(all->everybody);
    auto_mem void *tmp = mem_ctx("caller");
    struct state_txn *t = server_read_begin(s, tmp);
    callers_refresh(all, t);
    HASH_FIND_STR(all->kept, key, k);
    int64_t now = env_wall_ns(server_env(s));
    c = k != NULL ? caller_ref(k->c) : caller_resolve(t, key, now, e);
    if (k == NULL && c != NULL)
        callers_keep(all, key, c);
    bool good = c == NULL || caller_is_good(c, t, now);
    state_read_end(t);
    if (!good) {
        caller_unref(c);
        c = NULL;
        err_set(e, -ERR_FORBIDDEN, "Permission denied");
    }
    return c;
}
