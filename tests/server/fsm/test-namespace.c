/* SPDX-License-Identifier: Apache-2.0
 *
 * Namespaces: who keeps one, the order of the log, what may be stored of one, and what its jobs may
 * be.
 */
#include <string.h>

#include "api/limits.h"
#include "api/namespace.h"
#include "api/object.h"
#include "common/str.h"
#include "tests/lib/test.h"
#include "tests/server/fsm/fx.h"

static struct fsm_result *
put_namespace(struct fx *f, const char *name)
{
    struct intent *in = intent_new(f, 0);
    in->namespace_upsert = type_new(in, &type_namespace_upsert);
    struct namespace *n = type_new(in, &type_namespace);
    n->name = name;
    list_add(in, in->namespace_upsert->namespaces, n);
    return apply(f, in);
}

static struct fsm_result *
delete_namespace(struct fx *f, const char *name)
{
    struct intent *in = intent_new(f, 0);
    in->namespace_delete = type_new(in, &type_object_delete);
    in->namespace_delete->names = strs(in, name, NULL);
    in->namespace_delete->region = "global";
    return apply(f, in);
}

static struct job *
job_of(struct fx *f, const char *ns)
{
    struct job *j = make_job(f, "j", 1);
    j->namespace = ns;
    return j;
}

static struct fsm_result *
end_job(struct fx *f, const char *ns, bool purge)
{
    struct intent *in = intent_new(f, 0);
    in->job_deregister = type_new(in, &type_intent_job_deregister);
    *in->job_deregister = (struct intent_job_deregister){.namespace = ns, .job_id = "j", .purge = purge};
    return apply(f, in);
}

START_TEST(variables_keep_their_namespace)
{
    struct fx *f = fx_new();
    struct root_key k = {.key_id = "k1", .state = "active"};
    struct sealed_variable v = {.namespace = "team", .path = "a", .key_id = "k1"};
    struct intent_variable_apply put = {.op = "set", .variable = &v},
                                 del = {.op = "delete", .variable = &v};
    make_pools(f);
    apply(f, &(struct intent){.root_key_upsert = &(struct intent_root_key_upsert){.key = &k}});
    ck_assert_int_eq(apply(f, &(struct intent){.variable_apply = &put})->err.code, -ERR_INVALID);
    put_namespace(f, "team");
    ck_assert_int_eq(apply(f, &(struct intent){.variable_apply = &put})->err.code, 0);
    const struct err *e = &delete_namespace(f, "team")->err;
    ck_assert_int_ne(e->code, 0);
    ck_assert_ptr_nonnull(strstr(
        e->text, "namespace \"team\" has variables associated with it in regions: [global]"));
    apply(f, &(struct intent){.variable_apply = &del});
    ck_assert_int_eq(delete_namespace(f, "team")->err.code, 0);
    fx_free(f);
}
END_TEST

START_TEST(an_older_state_gets_the_namespaces_of_its_jobs)
{
    struct fx *f = fx_new();
    ck_assert_int_eq(put_job(f, job_of(f, "team"), NULL)->err.code, 0);
    make_pools(f);
    const struct namespace *n = READ(f, struct namespace *, state_namespace(rt, f->ctx, "default"));
    ck_assert_str_eq(n->description, "Default shared namespace");
    ck_assert(READ(f, bool, state_has_namespace(rt, "team")));
    ck_assert(!READ(f, bool, state_has_namespace(rt, "other")));
    uint64_t index = table_index(f, STATE_NAMESPACES);
    make_pools(f); /* of the next leader */
    ck_assert_uint_eq(table_index(f, STATE_NAMESPACES), index);
    fx_free(f);
}
END_TEST

/* A state of node pools alone, as the release before this one wrote it. */
START_TEST(a_state_with_pools_gets_the_default_namespace)
{
    struct fx *f = fx_new();
    make_pools(f);
    struct state_txn *t = state_write_begin(f->s, f->ctx);
    f->index++;
    state_del(t, f->index, NAMESPACES, "default");
    state_set_applied(t, f->index, 1);
    ck_assert_int_eq(state_commit(t), 0);
    ck_assert(!READ(f, bool, state_has_built_ins(rt)));
    uint64_t pools = table_index(f, STATE_NODE_POOLS);
    make_pools(f);
    ck_assert(READ(f, bool, state_has_built_ins(rt)));
    ck_assert_uint_eq(table_index(f, STATE_NODE_POOLS), pools);
    fx_free(f);
}
END_TEST

START_TEST(a_namespace_in_use_is_not_deleted)
{
    struct fx *f = fx_new();
    make_pools(f);
    ck_assert_int_eq(delete_namespace(f, "a")->err.code, -ERR_NOT_FOUND);
    put_namespace(f, "a");
    put_namespace(f, "ab"); /* its rows lie beside those of the first one */
    ready_node(f, "n1");
    ck_assert_int_eq(put_job(f, job_of(f, "ab"), NULL)->err.code, 0);
    ck_assert_int_eq(delete_namespace(f, "a")->err.code, 0);
    put_namespace(f, "a");
    ck_assert_int_eq(put_job(f, job_of(f, "a"), NULL)->err.code, 0);
    struct allocation *al = make_alloc(f, job_of(f, "a"), "al-1", "n1");
    al->namespace = "a";
    struct intent *in = intent_new(f, 0);
    in->plan_result = type_new(in, &type_plan_result);
    in->plan_result->job = READ(f, struct job *, state_job(rt, f->ctx, "a", "j"));
    list_add(in, in->plan_result->placed, al);
    ck_assert_int_eq(apply(f, in)->err.code, 0);
    const struct fsm_result *r = delete_namespace(f, "a");
    ck_assert_int_eq(r->err.code, -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(r->err.text, "namespace \"a\" has non-terminal jobs in regions: [global]"));
    ck_assert_ptr_nonnull(strstr(r->err.text, "\"a\" has non-terminal allocations in regions: [global]"));
    end_job(f, "a", true);
    r = delete_namespace(f, "a"); /* its client has not ended the allocation */
    ck_assert_int_eq(r->err.code, -ERR_CONFLICT);
    ck_assert_ptr_null(strstr(r->err.text, "jobs"));
    report(f, "n1", "al-1", ALLOC_COMPLETE);
    ck_assert_int_eq(delete_namespace(f, "a")->err.code, 0);
    ck_assert_int_eq(delete_namespace(f, "ab")->err.code, -ERR_CONFLICT);
    fx_free(f);
}
END_TEST

/* Both were allowed when they were asked for: the order of the log decides. */
START_TEST(a_deletion_races_with_a_registration)
{
    struct fx *f = fx_new();
    make_pools(f);
    put_namespace(f, "a");
    ck_assert_int_eq(delete_namespace(f, "a")->err.code, 0);
    const struct fsm_result *r = put_job(f, job_of(f, "a"), NULL);
    ck_assert_int_eq(r->err.code, -ERR_INVALID);
    ck_assert_str_eq(r->err.text, "job \"j\" is in nonexistent namespace \"a\"");
    fx_free(f);
}
END_TEST

/* --- what one may say --- */

static const char *
wrong(const struct namespace *n, bool deleted)
{
    static struct err e;
    err_clear(&e);
    return namespace_check(n, deleted, &e) < 0 ? e.text : NULL;
}

START_TEST(limits_of_a_namespace)
{
    auto_mem struct namespace *n = type_new(NULL, &type_namespace);
    char name[OBJECT_NAME_MAX + 2] = "";
    memset(name, 'n', OBJECT_NAME_MAX);
    n->name = name;
    ck_assert_ptr_null(wrong(n, false));
    name[OBJECT_NAME_MAX] = 'n';
    ck_assert_ptr_nonnull(strstr(wrong(n, false), "A name has 1 to 128"));
    static const char *const bad[] = {NULL, "", "*", "a_b", "a b", "a/b"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        n->name = bad[i];
        ck_assert_ptr_nonnull(strstr(wrong(n, false), "\": invalid name \""));
    }
    n->name = "default";
    ck_assert_ptr_null(wrong(n, false));
    ck_assert_str_eq(wrong(n, true), "can not delete default namespace");
    n->name = "team-1";
    ck_assert_ptr_null(wrong(n, true));
    n->vault_configuration = type_new(n, &type_namespace_names);
    ck_assert_ptr_nonnull(strstr(wrong(n, false), "vault"));
    n->vault_configuration = NULL;
    char *large = mem_array(n, char, OBJECT_META_BYTES_MAX + 1);
    memset(large, 'v', OBJECT_META_BYTES_MAX);
    str_map_set(n, &n->optional_extra_claims, "k", large);
    ck_assert_ptr_nonnull(strstr(wrong(n, false), "optional_extra_claims"));
}
END_TEST

/* --- what its jobs may be --- */

static size_t
refused(const struct namespace *n, const struct job *j, const char *word)
{
    struct str_list errors = {NULL, 0};
    namespace_admits(n, n, j, &errors);
    for (size_t i = 0; i < errors.n; i++)
        ck_assert_msg(strstr(errors.v[i], word) != NULL, "%s", errors.v[i]);
    return errors.n;
}

START_TEST(drivers_and_networks_are_allowed_and_denied)
{
    struct fx *f = fx_new();
    struct namespace *n = type_new(f->ctx, &type_namespace);
    struct job *j = make_job(f, "j", 1);
    struct task_group *g = j->task_groups.v[0];
    n->name = "a";
    g->tasks.v[0]->driver = "exec";
    list_add(g, g->networks, type_new(g, &type_network_resource));
    ck_assert_uint_eq(refused(n, j, ""), 0);
    n->capabilities = type_new(n, &type_namespace_capabilities);
    ck_assert_uint_eq(refused(n, j, ""), 0); /* empty lists allow all */
    n->capabilities->enabled_task_drivers = strs(n, "docker", NULL);
    ck_assert_uint_eq(refused(n, j, "driver \"exec\""), 1);
    n->capabilities->enabled_task_drivers = strs(n, "docker", "exec");
    ck_assert_uint_eq(refused(n, j, ""), 0);
    n->capabilities->disabled_task_drivers = strs(n, "exec", NULL); /* wins */
    ck_assert_uint_eq(refused(n, j, "driver \"exec\""), 1);
    n->capabilities->disabled_task_drivers.n = 0;
    n->capabilities->disabled_network_modes = strs(n, "host", NULL);
    ck_assert_uint_eq(refused(n, j, "mode \"host\""), 1); /* a network without a mode is the host's */
    g->networks.v[0]->mode = "bridge";
    ck_assert_uint_eq(refused(n, j, ""), 0);
    fx_free(f);
}
END_TEST

START_TEST(node_pools_of_a_namespace)
{
    struct fx *f = fx_new();
    struct namespace *n = type_new(f->ctx, &type_namespace);
    struct job *j = make_job(f, "j", 1);
    n->name = "a";
    n->node_pool_configuration = type_new(n, &type_namespace_names);
    n->node_pool_configuration->default_ = "gpu";
    j->node_pool = NULL;
    namespace_defaults(n, j);
    ck_assert_str_eq(j->node_pool, "gpu");
    ck_assert_uint_eq(refused(n, j, ""), 0);
    j->node_pool = "prod-1";
    namespace_defaults(n, j);
    ck_assert_str_eq(j->node_pool, "prod-1");
    n->node_pool_configuration->denied = strs(n, "prod-*", NULL);
    ck_assert_uint_eq(refused(n, j, "node pool \"prod-1\""), 1);
    n->node_pool_configuration->denied.n = 0;
    n->node_pool_configuration->allowed = strs(n, "dev-*", NULL);
    ck_assert_uint_eq(refused(n, j, "node pool \"prod-1\""), 1);
    j->node_pool = "gpu"; /* the default is allowed in any case */
    ck_assert_uint_eq(refused(n, j, ""), 0);
    namespace_defaults(NULL, j);
    fx_free(f);
}
END_TEST

TEST_SUITE("fsm-namespace", variables_keep_their_namespace, an_older_state_gets_the_namespaces_of_its_jobs,
           a_state_with_pools_gets_the_default_namespace, a_namespace_in_use_is_not_deleted,
           a_deletion_races_with_a_registration, limits_of_a_namespace,
           drivers_and_networks_are_allowed_and_denied, node_pools_of_a_namespace)
