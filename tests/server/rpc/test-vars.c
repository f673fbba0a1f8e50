/* SPDX-License-Identifier: Apache-2.0
 *
 * Variables of a whole server: written, read, listed; through rotations and restarts; by tasks; and
 * never in clear in a file.
 */
#include "tests/lib/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/vars/vars.h"
#include "codec/base64.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/str.h"
#include "server/host.h"
#include "server/keys/jwt.h"
#include "tests/server/served.h"
#include "tests/server/util.h"

#define PLANTED "planted-where-nobody-may-find-it"

static const struct variable_apply_response *
put(struct world *w, const char *path, const char *value)
{
    struct variable v = {.path = NULL};
    struct variable_apply_request req = {.op = VAR_SET, .path = path, .variable = &v};

    str_map_set(w, &v.items, "k", value);
    return CALL(w, RPC_VARIABLES_APPLY, variable_apply_response, &req);
}

/* NULL: there is none. */
static const char *
get(struct world *w, const char *path)
{
    struct variable_request req = {path};
    const struct variable *v =
        CALL(w, RPC_VARIABLES_READ, variable_response, &req)->variable;

    return v != NULL ? v->items.v[0].v : NULL;
}

static const char *
rotate(struct world *w, bool full)
{
    struct keyring_rotate_request req = {.full = full};

    return CALL(w, RPC_KEYRING_ROTATE, keyring_rotate_response, &req)->key->key_id;
}

static const char *
key_state(struct world *w, const char *id)
{
    struct list_request all = {.status = NULL};
    const struct root_key_list_response *l =
        CALL(w, RPC_KEYRING_LIST, root_key_list_response, &all);

    for (size_t i = 0; i < l->keys.n; i++)
        if (str_eq(l->keys.v[i]->key_id, id))
            return l->keys.v[i]->state;
    return "none";
}

START_TEST(written_read_and_deleted)
{
    struct world *w = world_open(tmp_dir());
    struct variable v = {.path = NULL};
    struct variable_apply_request req = {.op = VAR_SET, .path = "a/b", .variable = &v};

    str_map_set(w, &v.items, "k", "v");
    ck_assert_ptr_null(call(w, RPC_VARIABLES_APPLY, &req)); /* there is no key yet */
    ck_assert_int_eq(w->err.code, -ERR_UNAVAILABLE);
    rotate(w, false);
    const struct variable_apply_response *r = put(w, "a/b", "one");
    uint64_t index = r->index;
    ck_assert_uint_eq(r->variable->modify_index, index);
    ck_assert_str_eq(get(w, "a/b"), "one");
    ck_assert_uint_eq(put(w, "a/b", "one")->index, index); /* it changes nothing */
    ck_assert_uint_gt(put(w, "a/b", "two")->index, index);
    ck_assert_str_eq(get(w, "a/b"), "two");
    req.cas = true;
    req.modify_index = index;
    r = CALL(w, RPC_VARIABLES_APPLY, variable_apply_response, &req);
    ck_assert(r->conflict);
    ck_assert_str_eq(r->variable->items.v[0].v, "two");
    req = (struct variable_apply_request){.op = VAR_DELETE, .path = "a/b"};
    (void)CALL(w, RPC_VARIABLES_APPLY, variable_apply_response, &req);
    ck_assert_ptr_null(get(w, "a/b"));
    world_close(w);
}
END_TEST

static struct world *
making_world(const char *dir)
{
    world_makes_keys = true;
    struct world *w = world_open(dir);
    world_makes_keys = false;
    return w;
}

START_TEST(the_first_write_waits_for_the_first_key)
{
    struct world *w = making_world(tmp_dir());

    (void)put(w, "a", "one");
    ck_assert_str_eq(get(w, "a"), "one");
    world_close(w);
}
END_TEST

/* The leader cannot make a key: the wrapping key cannot be written where it is to be. */
START_TEST(a_write_that_waits_is_given_up)
{
    auto_mem void *tmp = mem_ctx("way");
    const char *dir = tmp_dir(), *at = mem_printf(tmp, "%s/server", dir);
    ck_assert_int_eq(mkdir(at, 0700), 0);
    ck_assert_int_eq(symlink("/proc", mem_printf(tmp, "%s/keyring", at)), 0);
    struct world *w = making_world(dir);
    struct variable v = {.path = NULL};
    struct variable_apply_request req = {.op = VAR_SET, .path = "a", .variable = &v};
    struct answer *a = mem_new(w, struct answer), *b = mem_new(w, struct answer);
    bool never = false;

    a->w = b->w = w;
    str_map_set(w, &v.items, "k", "v");
    uint64_t id = rpc_send(w->rpc, &(struct rpc_request){RPC_VARIABLES_APPLY, &req, NULL, 60000},
                           answered, a);
    (void)rpc_send(w->rpc, &(struct rpc_request){RPC_VARIABLES_APPLY, &req, NULL, 60000}, answered,
                   b);
    loop_run_until(w->loop, &never, 300);
    ck_assert(!a->done && !b->done);
    rpc_cancel(w->rpc, id);
    ck_assert(loop_run_until(w->loop, &a->done, 10000));
    ck_assert_int_eq(a->err.code, -ERR_CANCELED);
    world_close(w); /* and the other one with the server */
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        const char *path, *ns;
        size_t bytes;
    } rows[] = {{"", NULL, 1},         {"a b", NULL, 1},     {"nomad", NULL, 1},
                {"nomad/x", NULL, 1},  {"a", "*", 1},        {"a", "nowhere", 1},
                {"a", NULL, 65536},    {"nomad/job-templates/a/b", NULL, 1}};
    struct world *w = world_open(tmp_dir());

    rotate(w, false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct variable v = {.path = NULL};
        struct variable_apply_request req = {
            .op = VAR_SET, .path = rows[i].path, .variable = &v};
        const struct rpc_envelope env = {.namespace = rows[i].ns};
        char *value = mem_array(w, char, rows[i].bytes + 1);
        memset(value, 'x', rows[i].bytes);
        str_map_set(w, &v.items, "k", value);
        ck_assert_msg(call_with(w, RPC_VARIABLES_APPLY, &req, &env) == NULL, "%zu", i);
        ck_assert_int_eq(w->err.code, -ERR_UNSUPPORTED);
    }
    world_close(w);
}
END_TEST

/* Looks through every file below. */
static bool
is_in_files(const char *dir, const char *text)
{
    DIR *d = opendir(dir);
    bool found = false;

    ck_assert_ptr_nonnull(d);
    for (struct dirent *de; (de = readdir(d)) != NULL && !found;) {
        auto_mem void *tmp = mem_ctx("file");
        const char *path = mem_printf(tmp, "%s/%s", dir, de->d_name);
        char *data;
        size_t n;
        struct stat st;
        if (de->d_name[0] == '.' || stat(path, &st) < 0)
            continue;
        if (S_ISDIR(st.st_mode))
            found = is_in_files(path, text);
        else if (file_read(tmp, AT_FDCWD, path, 256 << 20, &data, &n) == 0)
            found = memmem(data, n, text, strlen(text)) != NULL;
    }
    closedir(d);
    return found;
}

START_TEST(nothing_is_stored_in_clear)
{
    auto_mem void *ctx = mem_ctx("dir");
    const char *dir = mem_strdup(ctx, tmp_dir());
    struct world *w = world_open(dir);

    const char *first = rotate(w, false);
    put(w, "secret", PLANTED);
    rotate(w, true);
    for (int64_t end = clock_mono_ns() + 30 * NS_PER_S; clock_mono_ns() < end;)
        if (str_eq(key_state(w, first), KEY_INACTIVE))
            break;
    ck_assert_str_eq(key_state(w, first), KEY_INACTIVE);
    ck_assert_str_eq(get(w, "secret"), PLANTED);
    struct job *j = the_job(w, "clear", 0);
    str_map_set(w, &j->meta, "k", "planted-in-clear");
    run_job(w, j);
    world_close(w);
    ck_assert(is_in_files(dir, "planted-in-clear"));
    ck_assert(!is_in_files(dir, PLANTED));
    w = world_open(dir);
    ck_assert_str_eq(get(w, "secret"), PLANTED);
    world_close(w);
    /* log and state without the wrapping key yield nothing, and say what is missing */
    ck_assert_int_eq(unlink(mem_printf(ctx, "%s/server/keyring/wrapping.key", dir)), 0);
    w = world_open(dir);
    struct variable_request req = {"secret"};
    ck_assert_ptr_null(call(w, RPC_VARIABLES_READ, &req));
    ck_assert_int_eq(w->err.code, -ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(w->err.text, "wrapping.key"));
    ck_assert_ptr_null(call(w, RPC_KEYRING_ROTATE, &(struct keyring_rotate_request){.full = true}));
    world_close(w);
    /* another key is of no use, and wraps nothing */
    const char *path = mem_printf(ctx, "%s/server/keyring/wrapping.key", dir);
    static const char zeros[] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, zeros, strlen(zeros), 0600), 0);
    w = world_open(dir);
    ck_assert_ptr_null(call(w, RPC_VARIABLES_READ, &req));
    ck_assert_ptr_nonnull(strstr(w->err.text, "is another one"));
    ck_assert_ptr_null(call(w, RPC_KEYRING_ROTATE, &(struct keyring_rotate_request){.full = true}));
    ck_assert_int_eq(w->err.code, -ERR_UNAVAILABLE);
    world_close(w);
}
END_TEST

START_TEST(a_published_key_becomes_active)
{
    struct world *w = world_open(tmp_dir());
    const char *first = rotate(w, false);
    struct keyring_rotate_request req = {.publish_time = clock_wall_ns() + NS_PER_S};
    const char *next = CALL(w, RPC_KEYRING_ROTATE, keyring_rotate_response, &req)->key->key_id;

    ck_assert_str_eq(key_state(w, next), KEY_PREPUBLISHED);
    ck_assert_str_eq(key_state(w, first), KEY_ACTIVE);
    for (int64_t end = clock_mono_ns() + 30 * NS_PER_S; clock_mono_ns() < end;)
        if (str_eq(key_state(w, next), KEY_ACTIVE))
            break;
    ck_assert_str_eq(key_state(w, next), KEY_ACTIVE);
    ck_assert_int_ge(clock_wall_ns(), req.publish_time);
    ck_assert_str_eq(key_state(w, first), KEY_INACTIVE);
    req.full = true;
    ck_assert_ptr_null(call(w, RPC_KEYRING_ROTATE, &req)); /* they do not go together */
    world_close(w);
}
END_TEST

/* --- by tasks --- */

static const void *
own(struct world *w, const char *alloc, const char *task, const char *path)
{
    struct alloc_variable_request req = {alloc, task, path, NULL};

    return call_with(w, RPC_ALLOC_GET_VARIABLE, &req, &as_node);
}

/* A task that waits for its variable is told of that one, and of no other. */
START_TEST(a_task_is_told_of_news)
{
    struct world *w = world_open(tmp_dir());

    node_up(w);
    rotate(w, false);
    await_eval(w, run_job(w, the_job(w, "web", 1))->eval_id);
    put(w, "nomad/jobs/web", "old");
    struct alloc_variable_request req = {allocs_of(w, "web")->allocations.v[0]->id, "server",
                                         "nomad/jobs/web", NULL};
    put(w, "a", "everybody's");
    ck_assert_ptr_nonnull(own(w, req.alloc_id, "server", "a")); /* without access control */
    const struct variable_response *now =
        NODE_CALL(w, RPC_ALLOC_GET_VARIABLE, variable_response, &req);
    struct answer a = {.w = w};
    const struct rpc_envelope env = {.node_id = node_id,
                                     .node_secret = node_secret,
                                     .min_index = now->meta->index,
                                     .wait = 20 * NS_PER_S};
    const struct rpc_request q = {RPC_ALLOC_GET_VARIABLE, &req, &env, 30000, NULL};
    rpc_send(w->rpc, &q, answered, &a);
    put(w, "nomad/jobs", "other");
    put(w, "nomad/jobs/web/web", "other");
    ck_assert(!a.done);
    put(w, "nomad/jobs/web", "new");
    ck_assert(loop_run_until(w->loop, &a.done, 10000));
    now = a.resp;
    ck_assert_str_eq(now->variable->items.v[0].v, "new");
    world_close(w);
}
END_TEST

/* --- identities --- */

static const char *
sign(struct world *w, const char *alloc, const char *task)
{
    struct identity_request q = {alloc, task, NULL}, *one = &q;
    struct alloc_identities_request req = {{&one, 1}};
    const struct alloc_identities_response *r =
        NODE_CALL(w, RPC_ALLOC_SIGN_IDENTITIES, alloc_identities_response, &req);

    return r->signed_.n == 1 ? r->signed_.v[0]->jwt : NULL;
}

/* The payload of the token has the text. */
static void
claims_are(struct world *w, const char *token, const char *text)
{
    const char *from = strchr(token, '.') + 1;
    size_t n = strcspn(from, "."), whole = (n + 3) / 4 * 4, len = 0;
    char *b64 = mem_array(w, char, whole + 1), *out = mem_array(w, char, whole + 1);

    for (size_t i = 0; i < whole; i++)
        b64[i] = i >= n ? '=' : from[i] == '-' ? '+' : from[i] == '_' ? '/' : from[i];
    ck_assert_int_eq(base64_decode(b64, whole, (uint8_t *)out, &len), 0);
    ck_assert_msg(strstr(out, text) != NULL, "%s is not in %s", text, out);
}

static int
read_as(struct world *w, const char *token, const char *path)
{
    const struct rpc_envelope env = {.auth_token = token};
    struct variable_request req = {path};

    w->err = (struct err)ERR_INIT;
    (void)call_with(w, RPC_VARIABLES_READ, &req, &env);
    return w->err.code;
}

/* A token with the claims as they are said, signed by the server's own key. */
static const char *
forge(struct world *w, const char *alloc, const char *audience, int64_t issued, int64_t expires)
{
    struct err e = ERR_INIT;
    struct state_txn *t = server_read_begin(w->server, w);
    struct key *k = keys_active(server_keys(w->server), t, &e);
    const struct jwt_claims c = {.audience = {&audience, 1},
                                 .issued = issued,
                                 .expires = expires,
                                 .region = "global",
                                 .namespace = "default",
                                 .job = "web",
                                 .group = "web",
                                 .task = "server",
                                 .alloc = alloc,
                                 .identity = "default"};

    ck_assert_ptr_nonnull(k);
    state_read_end(t);
    const char *token = jwt_sign(w, k, &c);
    key_unref(k);
    return token;
}

/* Another header and signature for what a token says. */
static const char *
with_header(struct world *w, const char *token, const char *header, const char *sig)
{
    auto_buf struct buf b = BUF_INIT(4096);
    const char *dot = strchr(token, '.'), *last = strrchr(token, '.');

    base64_encode(&b, header, strlen(header));
    while (b.len > 0 && b.data[b.len - 1] == '=')
        b.len--;
    return mem_printf(w, "%.*s%.*s.%s", (int)b.len, (const char *)b.data, (int)(last - dot), dot,
                      sig);
}

static const char *
bootstrap(struct world *w)
{
    struct acl_bootstrap_request req = {.bootstrap_secret = NULL};

    return CALL(w, RPC_ACL_BOOTSTRAP, acl_tokens_response, &req)->tokens.v[0]->secret_id;
}

static void
put_as(struct world *w, const char *token, const char *path)
{
    const struct rpc_envelope env = {.auth_token = token};
    struct variable v = {.path = NULL};
    struct variable_apply_request req = {.op = VAR_SET, .path = path, .variable = &v};

    str_map_set(w, &v.items, "k", path);
    (void)CALL_WITH(w, RPC_VARIABLES_APPLY, variable_apply_response, &req, &env);
}

static void
job_policy(struct world *w, const char *token, const char *name, const char *group)
{
    const struct rpc_envelope env = {.auth_token = token};
    struct acl_job of = {"default", "web", group, NULL};
    struct acl_policy p = {.name = name,
                           .rules = "namespace \"default\" { variables { path \"shared/*\" { "
                                    "capabilities = [\"read\"] } } }",
                           .job_acl = &of},
                      *one = &p;
    struct acl_policy_upsert up = {{&one, 1}};

    (void)CALL_WITH(w, RPC_ACL_UPSERT_POLICIES, write_response, &up, &env);
}

static struct world *
acl_world(const char **ret_token, const char **ret_alloc)
{
    world_acl = true;
    struct world *w = world_open(tmp_dir());
    world_acl = false;
    const char *token = bootstrap(w);
    const struct rpc_envelope env = {.auth_token = token};
    struct keyring_rotate_request rr = {.full = false};
    struct job_register_request jr = {.job = the_job(w, "web", 1)};
    struct id_request of_job = {.id = "web"};
    const char *id = NULL;

    node_up(w);
    (void)CALL_WITH(w, RPC_KEYRING_ROTATE, keyring_rotate_response, &rr, &env);
    (void)CALL_WITH(w, RPC_JOB_REGISTER, job_register_response, &jr, &env);
    for (int64_t end = clock_mono_ns() + 30 * NS_PER_S; id == NULL && clock_mono_ns() < end;) {
        const struct alloc_list_response *l =
            CALL_WITH(w, RPC_JOB_ALLOCATIONS, alloc_list_response, &of_job, &env);
        id = l->allocations.n > 0 ? l->allocations.v[0]->id : NULL;
    }
    ck_assert_ptr_nonnull(id);
    *ret_token = token;
    *ret_alloc = id;
    return w;
}

START_TEST(a_task_calls_as_itself)
{
    const char *token, *id;
    struct world *w = acl_world(&token, &id);
    const struct rpc_envelope manager = {.auth_token = token};
    struct namespace ns = {.name = "default"}, *one_ns = &ns;
    struct namespace_upsert up_ns = {{&one_ns, 1}};

    str_map_set(w, &ns.required_extra_claims, "who", "${task.name}@${job.id} ${job.meta.none} \"$");
    str_map_set(w, &ns.optional_extra_claims, "not", "asked for");
    (void)CALL_WITH(w, RPC_NAMESPACE_UPSERT, write_response, &up_ns, &manager);
    const char *jwt = sign(w, id, "server");
    ck_assert_ptr_nonnull(jwt);
    claims_are(w, jwt, "\"extra_claims\":{\"who\":\"server@web ${job.meta.none} \\\"$\"}}");
    claims_are(w, jwt, "\"sub\":\"global:default:web:web:server:default\"");
    ck_assert_ptr_null(sign(w, id, "none"));
    ck_assert_ptr_null(sign(w, node_id, "server"));
    put_as(w, token, "nomad/jobs/web/web/server");
    put_as(w, token, "nomad/jobs/other");
    put_as(w, token, "shared/a");
    ck_assert_int_eq(read_as(w, jwt, "nomad/jobs/web/web/server"), 0);
    ck_assert_int_eq(read_as(w, jwt, "nomad/jobs"), 0);
    ck_assert_int_eq(read_as(w, jwt, "nomad/jobs/other"), -ERR_FORBIDDEN);
    ck_assert_int_eq(read_as(w, jwt, "shared/a"), -ERR_FORBIDDEN);
    job_policy(w, token, "of-another", "another");
    ck_assert_int_eq(read_as(w, jwt, "shared/a"), -ERR_FORBIDDEN);
    job_policy(w, token, "of-the-job", NULL);
    ck_assert_int_eq(read_as(w, jwt, "shared/a"), 0);

    const struct rpc_envelope as_task = {.auth_token = jwt};
    struct list_request lr = {.status = NULL};
    const struct variable_list_response *l =
        CALL_WITH(w, RPC_VARIABLES_LIST, variable_list_response, &lr, &as_task);
    ck_assert_uint_eq(l->variables.n, 2);
    struct empty none = {0};
    (void)CALL_WITH(w, RPC_SERVICE_LIST, service_list_response, &none, &as_task);
    ck_assert_ptr_null(call_with(w, RPC_JOB_LIST, &lr, &as_task));
    ck_assert_ptr_null(CALL_WITH(w, RPC_ACL_WHO_AM_I, acl_token_response, &none, &as_task)->token);
    struct variable v = {.path = NULL};
    struct variable_apply_request up = {.op = VAR_SET, .path = "nomad/jobs/web", .variable = &v};
    str_map_set(w, &v.items, "k", "v");
    ck_assert_ptr_null(call_with(w, RPC_VARIABLES_APPLY, &up, &as_task)); /* it only reads */
    up = (struct variable_apply_request){.op = VAR_DELETE, .path = "nomad/jobs/web/web/server"};
    ck_assert_ptr_null(call_with(w, RPC_VARIABLES_APPLY, &up, &as_task));
    ck_assert_int_eq(w->err.code, -ERR_FORBIDDEN);

    const struct acl_rights_response *r =
        CALL_WITH(w, RPC_KEYRING_CHECK_IDENTITY, acl_rights_response, &none, &as_task);
    ck_assert_str_eq(r->accessor_id, mem_printf(w, "identity:%s/server", id));
    ck_assert_ptr_null(call_with(w, RPC_KEYRING_CHECK_IDENTITY, &none, &manager));
    report(w, id, ALLOC_COMPLETE); /* and it is nobody any more */
    ck_assert_ptr_null(call_with(w, RPC_KEYRING_CHECK_IDENTITY, &none, &as_task));
    ck_assert_int_eq(w->err.code, -ERR_FORBIDDEN);
    ck_assert_int_eq(read_as(w, jwt, "nomad/jobs"), -ERR_FORBIDDEN);
    ck_assert_ptr_null(sign(w, id, "server"));
    world_close(w);
}
END_TEST

START_TEST(a_task_reads_its_own)
{
    static const char *const all[] = {"nomad/jobs",
                                      "nomad/jobs/web",
                                      "nomad/jobs/web/web",
                                      "nomad/jobs/web/web/server",
                                      "nomad/jobs/web/web/other",
                                      "nomad/jobs/web/h",
                                      "nomad/jobs/webx",
                                      "a"};
    const char *token, *id;
    struct world *w = acl_world(&token, &id);

    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        put_as(w, token, all[i]);
        const struct variable_response *r = own(w, id, "server", all[i]);
        ck_assert_msg((r != NULL) == (i < 4), "%s", all[i]);
        if (r != NULL)
            ck_assert_str_eq(r->variable->items.v[0].v, all[i]);
        else
            ck_assert_int_eq(w->err.code, -ERR_FORBIDDEN);
    }
    struct alloc_variables_request lr = {.alloc_id = id, .task = "server"};
    ck_assert_uint_eq(
        NODE_CALL(w, RPC_ALLOC_LIST_VARIABLES, variable_list_response, &lr)->variables.n, 4);
    lr.prefix = "nomad/jobs/web/";
    ck_assert_uint_eq(
        NODE_CALL(w, RPC_ALLOC_LIST_VARIABLES, variable_list_response, &lr)->variables.n, 2);
    ck_assert_ptr_null(own(w, id, "none", "nomad/jobs"));
    ck_assert_ptr_null(own(w, node_id, "server", "nomad/jobs"));
    struct alloc_variable_request req = {id, "server", "nomad/jobs", "default"};
    ck_assert_ptr_nonnull(call_with(w, RPC_ALLOC_GET_VARIABLE, &req, &as_node));
    ck_assert_ptr_null(call(w, RPC_ALLOC_GET_VARIABLE, &req)); /* without a node's proof */
    req.namespace = "other";                                   /* nothing is its own there */
    ck_assert_ptr_null(call_with(w, RPC_ALLOC_GET_VARIABLE, &req, &as_node));
    report(w, id, ALLOC_COMPLETE);
    ck_assert_ptr_null(own(w, id, "server", "nomad/jobs"));
    ck_assert_int_eq(w->err.code, -ERR_FORBIDDEN);
    world_close(w);
}
END_TEST

START_TEST(a_task_reads_what_policies_of_its_job_allow)
{
    const char *token, *id;
    struct world *w = acl_world(&token, &id);
    struct alloc_variables_request lr = {.alloc_id = id, .task = "server"};

    put_as(w, token, "shared/a");
    put_as(w, token, "nomad/jobs/web");
    job_policy(w, token, "of-another", "another");
    ck_assert_ptr_null(own(w, id, "server", "shared/a"));
    ck_assert(strstr(w->err.text, "no policy lets task \"server\" read \"shared/a\""));
    job_policy(w, token, "of-the-job", NULL);
    ck_assert_ptr_nonnull(own(w, id, "server", "shared/a"));
    ck_assert_ptr_null(own(w, id, "server", "unshared/a"));
    struct alloc_variable_request req = {id, "server", "shared/a", "other"};
    ck_assert_ptr_null(call_with(w, RPC_ALLOC_GET_VARIABLE, &req, &as_node));
    ck_assert_uint_eq(
        NODE_CALL(w, RPC_ALLOC_LIST_VARIABLES, variable_list_response, &lr)->variables.n, 2);
    lr.namespace = "*";
    ck_assert_uint_eq(
        NODE_CALL(w, RPC_ALLOC_LIST_VARIABLES, variable_list_response, &lr)->variables.n, 2);
    world_close(w);
}
END_TEST

START_TEST(hostile_identities)
{
    const char *token, *id;
    struct world *w = acl_world(&token, &id);
    const char *jwt = sign(w, id, "server"), *kid;
    int64_t now = clock_wall_ns() / NS_PER_S;
    struct list_request all = {.status = NULL};
    const struct rpc_envelope env = {.auth_token = token};

    kid = CALL_WITH(w, RPC_KEYRING_LIST, root_key_list_response, &all, &env)->keys.v[0]->key_id;
    ck_assert_int_eq(read_as(w, forge(w, id, JWT_AUDIENCE, now, now + 60), "nomad/jobs"), 0);
    const char *headers[] = {
        "{\"alg\":\"none\",\"kid\":\"%s\"}", "{\"alg\":\"HS256\",\"kid\":\"%s\"}",
        "{\"alg\":\"\",\"kid\":\"%s\"}",     "{\"kid\":\"%s\"}",
        "{\"alg\":\"RS256\",\"kid\":\"%s\"}", "{\"alg\":\"RS256\",\"kid\":\"x%s\"}",
        "{\"alg\":\"rs256\",\"kid\":\"%s\"}", "[\"%s\"]", "%s"};
    const char *bad[64];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
        char *h = mem_strdup(w, headers[i]), *at = strstr(h, "%s");
        h = mem_printf(w, "%.*s%s%s", (int)(at - h), h, kid, at + 2);
        bad[n++] = with_header(w, jwt, h, "");
        bad[n++] = with_header(w, jwt, h, strrchr(jwt, '.') + 1);
    }
    bad[n++] = forge(w, id, "vault.io", now, 0);
    bad[n++] = forge(w, id, JWT_AUDIENCE, now - 60, now - 1);
    bad[n++] = forge(w, id, JWT_AUDIENCE, now + 3600, 0);
    bad[n++] = forge(w, node_id, JWT_AUDIENCE, now, 0);
    bad[n++] = ".";
    bad[n++] = "..";
    bad[n++] = "...";
    bad[n++] = mem_printf(w, "%s.x", jwt);
    bad[n++] = mem_printf(w, "%s=", jwt);
    bad[n++] = mem_strndup(w, jwt, strlen(jwt) - 1);
    char *other = mem_strdup(w, jwt);
    char *mid = strchr(other, '.') + 40;
    *mid = *mid == 'A' ? 'B' : 'A';
    bad[n++] = other;
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(read_as(w, bad[i], "nomad/jobs") == -ERR_FORBIDDEN, "%zu: %s", i, bad[i]);
    ck_assert_int_eq(read_as(w, jwt, "nomad/jobs"), 0);
    world_close(w);
}
END_TEST

TEST_SUITE_TIMEOUT("vars", 60, written_read_and_deleted, the_first_write_waits_for_the_first_key,
                   a_write_that_waits_is_given_up, refusals, nothing_is_stored_in_clear,
                   a_published_key_becomes_active, a_task_reads_its_own,
                   a_task_reads_what_policies_of_its_job_allow, a_task_is_told_of_news,
                   a_task_calls_as_itself, hostile_identities)
