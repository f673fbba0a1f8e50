/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server answers to those who read: lists that block, pages, what a client fetches.
 */
#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/str.h"
#include "tests/server/served.h"
#include "tests/server/util.h"

/* Far more than a frame together: each job once, in parts that go on where the one before ended. */
START_TEST(allocations_are_sent_in_parts)
{
    enum { JOBS = 7, EACH = 2, MEBIBYTE = 1 << 20 };
    struct world *w = world_open(tmp_dir());
    struct str_list ids = {0};

    node_up(w);
    for (int i = 0; i < JOBS; i++) {
        struct job *j = the_job(w, mem_printf(w, "large%d", i), EACH);
        job_ballast(j, MEBIBYTE, 'x');
        j->task_groups.v[0]->tasks.v[0]->resources->cpu.v = 100;
        await_eval(w, run_job(w, j)->eval_id);
        const struct alloc_list_response *al = allocs_of(w, j->id);
        ck_assert_uint_eq(al->allocations.n, EACH);
        for (size_t k = 0; k < EACH; k++)
            list_add(w, ids, al->allocations.v[k]->id);
    }
    size_t parts = 0, allocs = 0, jobs = 0;
    for (size_t at = 0; at < ids.n; parts++) {
        struct alloc_get_allocs_request gr = {.alloc_ids = {ids.v + at, ids.n - at}};
        const struct alloc_get_allocs_response *r =
            NODE_CALL(w, RPC_ALLOC_GET_ALLOCS, alloc_get_allocs_response, &gr);
        ck_assert_uint_gt(r->handled, 0);
        ck_assert_str_eq(r->allocs.v[0]->alloc->id, ids.v[at]);
        at += r->handled;
        allocs += r->allocs.n;
        jobs += r->jobs.n;
    }
    ck_assert_uint_gt(parts, 1);
    ck_assert_uint_eq(allocs, JOBS * EACH);
    ck_assert_uint_lt(jobs,
                      JOBS + parts); /* one that a part ends within is sent with the next as well */
    world_close(w);
}
END_TEST

/* --- blocking lists --- */

/* A list of the job's allocations or evaluations, or of jobs by prefix. */
struct blocked {
    struct world *w;
    struct rpc_envelope env;
    struct list_options l;
    struct id_request by_id;
    struct list_request list;
    struct answer answer;
    enum rpc_id rpc;
};

static struct blocked *
block(struct world *w, enum rpc_id rpc, const char *job, uint64_t index)
{
    struct blocked *b = mem_new(w, struct blocked);

    b->env = (struct rpc_envelope){.min_index = index, .wait = 10 * NS_PER_S};
    b->w = b->answer.w = w;
    b->rpc = rpc;
    bool list = rpc == RPC_JOB_LIST || rpc == RPC_EVAL_LIST;
    if (rpc == RPC_JOB_LIST)
        b->l.prefix = job;
    else if (rpc == RPC_EVAL_LIST)
        b->list.job_id = job;
    b->list.list = b->by_id.list = &b->l;
    b->by_id.id = job;
    struct rpc_request r = {rpc, list ? (const void *)&b->list : &b->by_id, &b->env, 15000};
    rpc_send(w->rpc, &r, answered, &b->answer);
    return b;
}

static uint64_t
index_of(const struct blocked *b)
{
    ck_assert(loop_run_until(b->w->loop, (bool *)(uintptr_t)&b->answer.done, 10000));
    ck_assert_msg(b->answer.resp != NULL, "%s", b->answer.err.text);
    const struct job_list_response *jl = b->answer.resp;
    const struct alloc_list_response *al = b->answer.resp;
    const struct eval_list_response *el = b->answer.resp;
    return b->rpc == RPC_JOB_LIST          ? jl->meta->index
           : b->rpc == RPC_JOB_ALLOCATIONS ? al->meta->index
                                           : el->meta->index;
}

static void
purge(struct world *w, const char *job)
{
    struct job_deregister_request req = {.job_id = job, .purge = true};
    await_eval(w, CALL(w, RPC_JOB_DEREGISTER, job_deregister_response, &req)->eval_id);
}

static bool
parked(const struct blocked *b)
{
    bool never = false;
    loop_run_until(b->w->loop, &never, 60);
    return !b->answer.done;
}

/* A deleted row is not seen by its own index: the list's must grow all the same, and wake. */
START_TEST(deletions_wake_and_move_the_index)
{
    static const enum rpc_id lists[] = {RPC_JOB_ALLOCATIONS, RPC_JOB_EVALUATIONS};
    struct world *w = world_open(tmp_dir());
    uint64_t before[2], after;

    node_up(w);
    await_eval(w, run_job(w, the_job(w, "other", 1))->eval_id);
    await_eval(w, run_job(w, the_job(w, "web", 2))->eval_id);
    const struct alloc_list_response *al = allocs_of(w, "web");
    purge(w, "web");
    for (size_t i = 0; i < al->allocations.n; i++)
        report(w, al->allocations.v[i]->id, ALLOC_COMPLETE);
    struct blocked *b[2];
    for (size_t i = 0; i < 2; i++) {
        do { /* what follows the reports may still come */
            before[i] = index_of(block(w, lists[i], "web", 0));
            b[i] = block(w, lists[i], "web", before[i]);
        } while (!parked(b[i]));
    }
    CALL(w, RPC_SYSTEM_GC, write_response, &(struct empty){0});
    for (size_t i = 0; i < 2; i++) {
        after = index_of(b[i]);
        ck_assert_uint_gt(after, before[i]);
        ck_assert_uint_ge(index_of(block(w, lists[i], "web", 0)), after);
    }
    ck_assert_uint_eq(allocs_of(w, "web")->allocations.n, 0);
    world_close(w);
}
END_TEST

START_TEST(a_purge_wakes_lists_of_its_prefix_only)
{
    struct world *w = world_open(tmp_dir());

    node_up(w);
    await_eval(w, run_job(w, the_job(w, "web", 1))->eval_id);
    await_eval(w, run_job(w, the_job(w, "other", 1))->eval_id);
    struct blocked *web = block(w, RPC_JOB_LIST, "we", index_of(block(w, RPC_JOB_LIST, "we", 0)));
    struct blocked *none = block(w, RPC_JOB_LIST, "no", index_of(block(w, RPC_JOB_LIST, "no", 0)));
    purge(w, "other");
    ck_assert(parked(web) && parked(none));
    purge(w, "web");
    ck_assert_uint_gt(index_of(web), web->env.min_index);
    ck_assert(parked(none));
    run_job(w, the_job(w, "node", 0));
    ck_assert_uint_gt(index_of(none), none->env.min_index);
    world_close(w);
}
END_TEST

START_TEST(evaluations_of_a_job_wake_for_that_job_only)
{
    struct world *w = world_open(tmp_dir());

    node_up(w);
    await_eval(w, run_job(w, the_job(w, "web", 1))->eval_id);
    await_eval(w, run_job(w, the_job(w, "other", 1))->eval_id);
    struct blocked *web =
        block(w, RPC_EVAL_LIST, "web", index_of(block(w, RPC_EVAL_LIST, "web", 0)));
    purge(w, "other");
    ck_assert(parked(web));
    purge(w, "web");
    ck_assert_uint_gt(index_of(web), web->env.min_index);
    world_close(w);
}
END_TEST

/* A changed job fails, is refused by index, and a page is a page. */
START_TEST(indexes_and_pages)
{
    struct world *w = world_open(tmp_dir());
    char id[16];

    node_up(w);
    for (int i = 0; i < 5; i++) {
        snprintf(id, sizeof(id), "job-%d", i);
        struct job_register_request req = {.job = the_job(w, mem_strdup(w, id), 0),
                                           .enforce_index = true};
        CALL(w, RPC_JOB_REGISTER, job_register_response, &req);
        ck_assert_ptr_null(call(w, RPC_JOB_REGISTER, &req));
        ck_assert_int_eq(w->err.code, -ERR_CONFLICT);
    }
    struct list_options q = {.per_page = 2};
    struct list_request lr = {.list = &q};
    const struct job_list_response *jl = CALL(w, RPC_JOB_LIST, job_list_response, &lr);
    ck_assert_uint_eq(jl->jobs.n, 2);
    ck_assert_str_eq(jl->meta->next_token, "default.job-2");
    q.next_token = jl->meta->next_token;
    q.per_page = 10;
    jl = CALL(w, RPC_JOB_LIST, job_list_response, &lr);
    ck_assert_uint_eq(jl->jobs.n, 3);
    ck_assert(str_empty(jl->meta->next_token));
    q = (struct list_options){.per_page = 2, .reverse = true};
    jl = CALL(w, RPC_JOB_LIST, job_list_response, &lr);
    ck_assert_str_eq(jl->jobs.v[0]->id, "job-4");
    ck_assert_str_eq(jl->meta->next_token, "default.job-2");
    q.next_token = jl->meta->next_token;
    jl = CALL(w, RPC_JOB_LIST, job_list_response, &lr);
    ck_assert_str_eq(jl->jobs.v[0]->id, "job-2");
    q = (struct list_options){.prefix = "job-3"};
    ck_assert_uint_eq(CALL(w, RPC_JOB_LIST, job_list_response, &lr)->jobs.n, 1);
    q = (struct list_options){.prefix = "abc"};
    ck_assert_ptr_null(call(w, RPC_NODE_LIST, &lr));
    ck_assert_ptr_nonnull(strstr(w->err.text, "even length"));
    world_close(w);
}
END_TEST

/* --- parts of lists --- */

/* All rows of a list as one JSON text; *ret_parts: in how many answers they came. */
static struct object_list
parts_of(struct world *w, struct list_request *req, size_t *ret_parts)
{
    auto_buf struct buf text = BUF_INIT(64 << 20);
    struct list_options *q = req->list;
    struct object_list l;
    struct err e = ERR_INIT;

    q->part = 2;
    *ret_parts = 0;
    do {
        const struct job_list_response *r = CALL(w, RPC_JOB_LIST, job_list_response, req);
        buf_put(&text, r->meta->rows.v, r->meta->rows.n);
        q->next_token = r->meta->next_token;
        ++*ret_parts;
    } while (!str_empty(q->next_token));
    buf_puts(&text, text.len > 0 ? "]" : "[]");
    text.data[0] = '[';
    int rc = json_decode_list(w, &type_job_list_stub, SLICE(text.data, text.len), BUDGET(256 << 20), &l, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    return l;
}

/* However large together; both ways, and in pages. */
START_TEST(lists_come_in_parts)
{
    enum { JOBS = 40, BALLAST = 30000 };
    struct world *w = world_open(tmp_dir());
    char *ballast = mem_array(w, char, BALLAST + 1);
    size_t parts;

    memset(ballast, 'x', BALLAST);
    for (int i = 0; i < JOBS; i++) {
        struct job *j = the_job(w, mem_printf(w, "job-%02d", i), 0);
        str_map_set(w, &j->meta, "ballast", ballast);
        run_job(w, j);
    }
    for (int back = 0; back < 2; back++) {
        struct list_options q = {.reverse = back == 1};
        struct list_request lr = {.list = &q, .meta = true};
        struct object_list l = parts_of(w, &lr, &parts);
        ck_assert_uint_gt(parts, JOBS * BALLAST / (LIST_PART_BYTES + BALLAST));
        ck_assert_uint_eq(l.n, JOBS);
        for (int i = 0; i < JOBS; i++)
            ck_assert_str_eq(((struct job_list_stub *)l.v[i])->id,
                             mem_printf(w, "job-%02d", back ? JOBS - 1 - i : i));
    }
    struct list_options q = {.part = 1, .per_page = 3};
    struct list_request lr = {.list = &q};
    const struct job_list_response *r = CALL(w, RPC_JOB_LIST, job_list_response, &lr);
    size_t n = r->meta->n;
    while (!r->meta->full) { /* the part ended before the page */
        q.per_page = n < 3 ? 3 - (int64_t)n : -1;
        q.next_token = mem_strdup(w, r->meta->next_token);
        r = CALL(w, RPC_JOB_LIST, job_list_response, &lr);
        n += r->meta->n;
    }
    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(r->meta->next_token, "default.job-03");
    q.per_page = -1;
    q.next_token = r->meta->next_token;
    r = CALL(w, RPC_JOB_LIST, job_list_response, &lr);
    ck_assert(r->meta->full && r->meta->n == 0);
    ck_assert_str_eq(r->meta->next_token, "default.job-03");
    world_close(w);
}
END_TEST

START_TEST(an_object_comes_as_json)
{
    struct world *w = world_open(tmp_dir());
    struct list_options as_json = {.part = 1};
    struct id_request job = {.id = "j"}, node = {.id = node_id, .list = &as_json};
    auto_buf struct buf b = BUF_INIT(1 << 20);

    node_up(w);
    await_eval(w, run_job(w, the_job(w, "j", 0))->eval_id); /* the status of the job follows it */
    json_encode(&b, &type_job, CALL(w, RPC_JOB_GET_JOB, job_response, &job)->job,
                JSON_HIDE_SECRETS);
    job.list = &as_json;
    const struct job_response *r = CALL(w, RPC_JOB_GET_JOB, job_response, &job);
    ck_assert_ptr_null(r->job);
    ck_assert_uint_eq(r->meta->rows.n, b.len);
    ck_assert_mem_eq(r->meta->rows.v, b.data, b.len);
    job.id = "other";
    r = CALL(w, RPC_JOB_GET_JOB, job_response, &job);
    ck_assert(r->job == NULL && r->meta->rows.n == 0);

    for (int pretty = 0; pretty < 2; pretty++) {
        const char *end = pretty ? ",\n    \"Drain\": false\n}" : ",\"Drain\":false}";
        as_json.part = pretty ? 2 : 1;
        const struct query_meta *m = CALL(w, RPC_NODE_GET_NODE, node_response, &node)->meta;
        const char *text = mem_strndup(w, (const char *)m->rows.v, m->rows.n);
        ck_assert_msg(str_suffix(text, end), "%s", text);
        ck_assert_ptr_null(strstr(text, node_secret));
    }
    world_close(w);
}
END_TEST

/* Asserts that the rows of a list, or the object, are the same as JSON. */
static void
same_as_json(struct world *w, enum rpc_id id, const void *req, struct list_options *q)
{
    const struct rpc_method *m = rpc_method_by_id(id);
    const struct field *f = &m->resp->fields[0];

    for (unsigned part = 1; part <= 2; part++) {
        auto_buf struct buf want = BUF_INIT(1 << 20);
        unsigned flags = JSON_HIDE_SECRETS | (part == 2 ? JSON_PRETTY : 0);
        q->part = 0;
        const char *resp = call(w, id, req);
        ck_assert_msg(resp != NULL, "%s: %s", m->name, w->err.text);
        const void *at = resp + f->offset;
        const struct object_list *l = at;
        if (f->shape == FS_ONE)
            json_encode(&want, f->sub, *(void *const *)at, flags);
        for (size_t i = 0; f->shape != FS_ONE && i < l->n; i++)
            json_encode_row(&want, f->sub, l->v[i], flags);
        q->part = part;
        auto_buf struct buf got = BUF_INIT(1 << 20);
        do { /* a part ends after some time, also without a row */
            resp = call(w, id, req);
            const struct query_meta *meta = *(void *const *)type_member(m->resp, resp, "Meta");
            buf_put(&got, meta->rows.v, meta->rows.n);
            q->next_token = mem_strdup(w, meta->next_token);
        } while (!str_empty(q->next_token));
        ck_assert_uint_gt(got.len, 2);
        if (id == RPC_NODE_GET_NODE) /* has one more than its type: whether the node drains */
            want.len -= part; /* "}" or "\n}" */
        ck_assert_msg(strncmp(buf_str(&got), buf_str(&want), want.len) == 0 &&
                          (got.len == want.len || id == RPC_NODE_GET_NODE),
                      "%s: %s\n%s", m->name, buf_str(&got), buf_str(&want));
    }
}

/* The pools, once the leader's first entry has made them. */
static const struct node_pool_list_response *
await_pools(struct world *w)
{
    static struct list_options q;
    struct list_request req = {.list = &q};
    const struct node_pool_list_response *r = NULL;
    int64_t end = clock_mono_ns() + 15 * NS_PER_S;

    while (r == NULL && clock_mono_ns() < end) {
        r = call(w, RPC_NODE_POOL_LIST, &req);
        ck_assert(r != NULL || w->err.code == -ERR_UNAVAILABLE);
    }
    ck_assert_ptr_nonnull(r);
    return r;
}

/* The id that the methods of a group name. */
struct named {
    const char *group, *id;
};

static const char *
id_for(const struct rpc_method *m, const struct named *v)
{
    for (; v->group != NULL; v++)
        if (str_prefix(m->name, v->group))
            return v->id;
    ck_abort_msg("%s: of which id is it asked here?", m->name);
    return NULL;
}

static void
register_api(struct world *w, const char *alloc)
{
    const char *tag = "a";
    struct service_registration reg = {.id = mem_printf(w, "_nomad-task-%s-group-g-api-", alloc),
                                       .service_name = "api",
                                       .tags = {&tag, 1},
                                       .health = "passing"};
    struct service_registration *all = &reg;
    struct service_set_request set = {alloc, {&all, 1}};

    (void)NODE_CALL(w, RPC_SERVICE_SET, write_response, &set);
}

/* Returns the id of its key. */
static const char *
lock_variable(struct world *w)
{
    struct keyring_rotate_request rr = {.full = false};
    const char *key = CALL(w, RPC_KEYRING_ROTATE, keyring_rotate_response, &rr)->key->key_id;
    struct variable var = {.path = NULL};
    struct variable_apply_request vr = {.op = "lock-acquire", .path = "a/b", .variable = &var};

    (void)CALL(w, RPC_VARIABLES_APPLY, variable_apply_response, &vr);
    return key;
}

static const char *
make_volume(struct world *w)
{
    struct host_volume v = {.name = "v", .node_id = node_id, .host_path = "/v"};
    struct host_volume_request req = {.volume = &v};

    return CALL(w, RPC_HOST_VOLUME_REGISTER, host_volume_write_response, &req)->volume->id;
}

static const char *
policy_of(struct world *w)
{
    const struct scaling_policy_list_request req = {.job = "web"};

    return CALL(w, RPC_SCALING_LIST_POLICIES, scaling_policy_list_response, &req)
        ->policies.v[0]
        ->id;
}

/* Every method whose answer may be made of bytes, without decoding what it is made of: members that
 * its row looks at and does not name would be missing in one of both. */
START_TEST(json_is_that_of_the_objects)
{
    struct world *w = world_open(tmp_dir());
    struct job *j = the_job(w, "web", 2);
    struct list_options q = {0};
    size_t n = 0;

    node_up(w);
    await_pools(w);
    str_map_set(w, &j->meta, "a", "b\"\n");
    j->task_groups.v[0]->scaling = mem_new(w, struct scaling_policy);
    j->task_groups.v[0]->scaling->max = (struct opt_i64){true, 9};
    const char *eval = run_job(w, j)->eval_id;
    await_eval(w, eval);
    await_eval(w, run_job(w, the_job(w, "two", 1))->eval_id);
    const struct alloc_list_response *al = allocs_of(w, "web");
    report(w, al->allocations.v[1]->id, ALLOC_COMPLETE);
    register_api(w, al->allocations.v[0]->id);
    const struct deployment_list_response *dl = CALL(
        w, RPC_DEPLOYMENT_LIST, deployment_list_response, &(struct list_request){.list = &q});
    ck_assert_uint_gt(dl->deployments.n, 0);
    struct quota_limit limit = {.region = "global"}, *one_limit = &limit;
    struct quota quota = {.name = "q-1", .limits = {&one_limit, 1}}, *one_quota = &quota;
    struct quota_upsert up = {{&one_quota, 1}};
    (void)CALL(w, RPC_QUOTA_UPSERT, write_response, &up);
    const char *key = lock_variable(w);
    const struct named ids[] = {{"Job.", "web"},
                                {"Node.", node_id},
                                {"NodePool.", "default"},
                                {"Namespace.", "default"},
                                {"Quota.", "q-1"},
                                {"Alloc.", al->allocations.v[0]->id},
                                {"Service.", "api"},
                                {"Keyring.", key},
                                {"Variables.", "a/b"},
                                {"HostVolume.", make_volume(w)},
                                {"Eval.", eval},
                                {"Scaling.", policy_of(w)},
                                {"Deployment.", dl->deployments.v[0]->id},
                                {NULL, NULL}};
    for (size_t k = 0; k < api_methods_n; k++) {
        const struct rpc_method *m = &api_methods[k];
        bool list = m->req == &type_list_request, one = m->req == &type_id_request;
        bool in_pool = m->id == RPC_NODE_POOL_LIST_NODES || m->id == RPC_NODE_POOL_LIST_JOBS;
        if (str_prefix(m->name, "ACL.") || str_eq(m->cap, "client"))
            continue; /* refused here: tests/acl/; those of nodes are not asked for as JSON */
        if (!(m->flags & RPC_READ) || (!list && !one) || type_field(m->resp, "Meta", 4) == NULL)
            continue;
        for (unsigned i = 0; i < 16; i++) {
            struct list_request lr = {
                .list = &q, .meta = i & 2, .os = i & 2, .task_states = i & 4, .resources = i & 8};
            struct id_request ir = {.list = &q, .all = i & 2, .related = i & 2};
            q = (struct list_options){.reverse = list && (i & 2)};
            ir.id = one ? id_for(m, ids) : NULL;
            lr.pool = in_pool ? "default" : NULL;
            if (list && (i & 1) && !in_pool)
                q.prefix = mem_strndup(w, id_for(m, ids), 2);
            same_as_json(w, m->id, list ? (const void *)&lr : &ir, &q);
            lr.job_id = "web";
            q.prefix = NULL;
            if (str_eq(m->name, "Eval.List"))
                same_as_json(w, m->id, &lr, &q);
            q.filter = "Job.Type == \"service\"";
            if (str_eq(m->name, "Alloc.List"))
                same_as_json(w, m->id, &lr, &q);
            q.filter = NULL;
        }
        n++;
    }
    ck_assert_uint_ge(n, 15);
    world_close(w);
}
END_TEST

/* Six of them, of three megabytes each, are more than an answer may be; so are their differences.
 */
START_TEST(versions_of_a_large_job)
{
    enum { VERSIONS = 6, BALLAST = 3 << 20 };
    struct world *w = world_open(tmp_dir());
    size_t versions = 0, diffs = 0, parts = 0;
    uint64_t newest = 0;

    for (int i = 0; i < VERSIONS; i++) {
        struct job *j = the_job(w, "large", 0);
        job_ballast(j, BALLAST, (char)('a' + i));
        run_job(w, j);
    }
    struct list_options q = {0};
    struct id_request req = {.id = "large", .list = &q};
    for (int pass = 0; pass < 2; pass++) { /* the versions, then the differences */
        do {
            const struct job_versions_response *r =
                CALL(w, RPC_JOB_VERSIONS, job_versions_response, &req);
            for (size_t i = 0; i < r->versions.n; i++)
                ck_assert_uint_eq(r->versions.v[i]->version, VERSIONS - 1 - versions++);
            if (newest == 0)
                newest = r->versions.v[0]->job_modify_index;
            for (size_t i = 0; i < r->diffs.n; i++, diffs++)
                ck_assert_str_eq(r->diffs.v[i]->type, "Edited");
            q.next_token = pass == 0 || str_empty(r->next_token)
                               ? r->next_token
                               : mem_printf(w, "%s.diff", r->next_token);
            ck_assert_uint_le(++parts, 2 * VERSIONS);
        } while (!str_empty(q.next_token));
        q.next_token = mem_printf(w, "%" PRIu64 ".diff", newest);
    }
    ck_assert_uint_eq(versions, VERSIONS);
    ck_assert_uint_eq(diffs, VERSIONS - 1);
    world_close(w);
}
END_TEST

/* Writes what a release without node pools has left: a node and a job that name some, in a
 * snapshot. */
static void
older_state(const char *dir)
{
    auto_mem void *ctx = mem_ctx("older");
    const char *path = mem_printf(ctx, "%s/server", dir);
    struct err e = ERR_INIT;
    ck_assert_int_eq(mkdir(path, 0700), 0);
    struct bench *b =
        bench_open_opts((struct core_opts){.dir = path,
                                           .addr = "127.0.0.1:4647",
                                           .boot_id = "older", /* the cache is not kept */
                                           .state_max = 256 << 20,
                                           .segment_bytes = 64 << 10,
                                           .snapshot_entries = 2,
                                           .snapshot_bytes = 1 << 20});
    struct intent *in = intent_new(ctx, 1);
    in->node_register = type_new(in, &type_intent_node_register);
    in->node_register->node = make_node(in, "n1");
    in->node_register->node->node_pool = "gpu";
    bench_apply(b, ctx, in, &e);
    in = intent_new(ctx, 2);
    in->job_register = type_new(in, &type_intent_job_register);
    in->job_register->job = make_job(in, "j", 1);
    in->job_register->job->node_pool = "cpu";
    for (int i = 0; i < 5; i++) /* until a snapshot is due */
        bench_apply(b, ctx, in, &e);
    ck_assert_int_eq(e.code, 0);
    bench_close(b);
}

START_TEST(an_older_state_has_pools_as_soon_as_somebody_leads)
{
    const char *dir = tmp_dir();
    older_state(dir);
    struct list_options q = {0};
    struct list_request req = {.list = &q};
    static const char *const want[] = {"all", "cpu", "default", "gpu"};
    for (int again = 0; again < 2; again++) {
        struct world *w = world_open(dir);
        const struct node_pool_list_response *r = await_pools(w);
        ck_assert_uint_eq(r->node_pools.n, ARRAY_LEN(want));
        for (size_t i = 0; i < ARRAY_LEN(want); i++)
            ck_assert_str_eq(r->node_pools.v[i]->name, want[i]);
        req.pool = "gpu";
        ck_assert_uint_eq(CALL(w, RPC_NODE_POOL_LIST_NODES, node_list_response, &req)->nodes.n, 1);
        req.pool = "cpu";
        ck_assert_uint_eq(CALL(w, RPC_NODE_POOL_LIST_JOBS, job_list_response, &req)->jobs.n, 1);
        req.pool = "all";
        ck_assert_uint_eq(CALL(w, RPC_NODE_POOL_LIST_NODES, node_list_response, &req)->nodes.n, 1);
        req.pool = "none";
        ck_assert_uint_eq(CALL(w, RPC_NODE_POOL_LIST_JOBS, job_list_response, &req)->jobs.n, 0);
        ck_assert_uint_eq(CALL(w, RPC_NODE_POOL_LIST_NODES, node_list_response, &req)->nodes.n, 0);
        req.pool = NULL;
        world_close(w);
    }
}
END_TEST

static size_t
found(struct world *w, enum rpc_id rpc, const char *filter)
{
    struct list_options q = {.part = 1, .filter = filter};
    struct list_request lr = {.list = &q};
    const struct type *t = rpc_method_by_id(rpc)->resp;
    size_t n = 0;

    do { /* a part ends after some time */
        const char *r = call(w, rpc, &lr);
        if (r == NULL)
            return SIZE_MAX;
        const struct query_meta *m = *(struct query_meta *const *)type_member(t, r, "Meta");
        n += m->n;
        q.next_token = mem_strdup(w, m->next_token);
    } while (!str_empty(q.next_token));
    return n;
}

/* Filters see what is stored, of which the rows are a part. */
START_TEST(filters_see_whole_objects)
{
    static const struct {
        enum rpc_id rpc;
        const char *filter;
        size_t n;
    } all[] = {
        {RPC_JOB_LIST, "Meta.team == a", 1},
        {RPC_JOB_LIST, "team in Meta", 1},
        {RPC_JOB_LIST, "TaskGroups is not empty", 2},
        {RPC_JOB_LIST, "Version == 0 and Region == global", 2},
        {RPC_JOB_LIST, "Version == 1", 0},
        {RPC_JOB_LIST, "any TaskGroups as g { any g.Tasks as t { t.Driver == raw_exec } }", 2},
        {RPC_JOB_LIST, "Periodic is not nil", 0},
        {RPC_JOB_LIST, "ParentID == \"\" and ParameterizedJob is not nil", 0},
        {RPC_JOB_LIST, "JobSummary.Children is nil", SIZE_MAX},
        {RPC_NODE_LIST, "Attributes[\"kernel.name\"] == linux", 1},
        {RPC_NODE_LIST, "Drivers.raw_exec.Healthy == true", 1},
        {RPC_NODE_LIST, "HTTPAddr contains 4646", 1},
        {RPC_NODE_LIST, "SecretID is not empty", SIZE_MAX},
        {RPC_NODE_LIST, "Drain == false", SIZE_MAX},
        {RPC_NODE_POOL_LIST, "Name == default", 1},
        {RPC_NODE_POOL_LIST, "Name != default", 1},
        {RPC_ALLOC_LIST, "Job.Type == service and Job.Priority == 50", 2},
        {RPC_ALLOC_LIST, "Job.Meta.team == a", 1},
        {RPC_ALLOC_LIST, "server in TaskStates", 1},
        {RPC_ALLOC_LIST, "TaskStates.server.State == running", 1},
        {RPC_ALLOC_LIST, "PreviousAllocation is empty", 2},
        {RPC_ALLOC_LIST, "JobVersion == 0", SIZE_MAX},
        {RPC_EVAL_LIST, "TriggeredBy == job-register", 2},
        {RPC_EVAL_LIST, "QueuedAllocations is not empty", 2},
    };
    struct world *w = world_open(tmp_dir());
    struct job *j = the_job(w, "a", 1);

    node_up(w);
    await_pools(w);
    str_map_set(w, &j->meta, "team", "a");
    await_eval(w, run_job(w, j)->eval_id);
    await_eval(w, run_job(w, the_job(w, "b", 1))->eval_id);
    struct allocation a = {.id = allocs_of(w, "a")->allocations.v[0]->id,
                           .client_status = "running"};
    struct allocation *v[] = {&a};
    struct task_state s = {.state = "running"};
    map_put(w, a.task_states, "server")->v = &s;
    struct node_update_alloc_request ur = {.allocs = {v, 1}};
    NODE_CALL(w, RPC_NODE_UPDATE_ALLOC, write_response, &ur);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        size_t n = found(w, all[i].rpc, all[i].filter);
        ck_assert_msg(n == all[i].n, "%s: %zu %s", all[i].filter, n, w->err.text);
    }
    world_close(w);
}
END_TEST

/* The questions to all methods are asked once, before any of them. */
START_TEST(a_call_for_others_is_refused_before_its_method)
{
    static const struct rpc_envelope mars = {.region = "mars"}, far = {.hops = SERVER_HOPS_MAX + 1},
                                     ours = {.region = "global", .hops = SERVER_HOPS_MAX};
    struct world *w = world_open(tmp_dir());
    for (size_t i = 0; i < api_methods_n; i++) {
        auto_mem void *ctx = mem_ctx("request");
        const void *req = type_new(ctx, api_methods[i].req);
        ck_assert_ptr_null(call_with(w, api_methods[i].id, req, &mars));
        ck_assert_int_eq(w->err.code, -ERR_NO_REGION);
        ck_assert_str_eq(w->err.text, "No path to region");
        ck_assert_ptr_null(call_with(w, api_methods[i].id, req, &far));
        ck_assert_ptr_nonnull(strstr(w->err.text, "passed on by more than"));
    }
    uint64_t applied = server_applied(w->server);
    CALL_WITH(w, RPC_SYSTEM_GC, write_response, &(struct empty){0}, &ours);
    ck_assert_uint_gt(applied, 0);
    /* passed on to the leader of another term, it comes too late */
    struct server_info info;
    server_info(w->server, w, &info);
    struct rpc_envelope now = {.hops = 1, .term = info.term},
                        late = {.hops = 1, .term = info.term + 1};
    CALL_WITH(w, RPC_SYSTEM_GC, write_response, &(struct empty){0}, &now);
    for (int i = 0; i < 2; i++, late.term = info.term - 1) {
        ck_assert_ptr_null(call_with(w, RPC_SYSTEM_GC, &(struct empty){0}, &late));
        ck_assert_int_eq(w->err.code, -ERR_NO_LEADER);
    }
    world_close(w);
}
END_TEST

/* The caller's right is asked in one namespace, the one in which the work is done. */
START_TEST(a_job_is_of_the_namespace_of_its_call)
{
    struct world *w = world_open(tmp_dir());
    struct job *j = the_job(w, "elsewhere", 0);
    struct job_register_request req = {.job = j};
    struct rpc_envelope env = {.namespace = "mine"};
    j->namespace = "theirs";
    ck_assert_ptr_null(call(w, RPC_JOB_REGISTER, &req));
    ck_assert_str_eq(w->err.text, "the job is of namespace \"theirs\", the call of \"default\"");
    ck_assert_ptr_null(call_with(w, RPC_JOB_PLAN, &req, &env));
    ck_assert_str_eq(w->err.text, "the job is of namespace \"theirs\", the call of \"mine\"");
    world_close(w);
}
END_TEST

TEST_SUITE_TIMEOUT("reads", 60, a_job_is_of_the_namespace_of_its_call,
                   a_call_for_others_is_refused_before_its_method, allocations_are_sent_in_parts,
                   deletions_wake_and_move_the_index, a_purge_wakes_lists_of_its_prefix_only,
                   evaluations_of_a_job_wake_for_that_job_only, indexes_and_pages,
                   lists_come_in_parts, an_object_comes_as_json, json_is_that_of_the_objects,
                   versions_of_a_large_job, an_older_state_has_pools_as_soon_as_somebody_leads,
                   filters_see_whole_objects)
