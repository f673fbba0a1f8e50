/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server does with calls that write: each is answered once, whatever comes first of the worker, the
 * log, the caller who gives up, and the end of the server.
 */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/str.h"
#include "tests/server/served.h"
#include "tests/server/util.h"

enum { CALLS = 40, KINDS = 7, BALLAST = 300000 };

struct one {
    uint64_t id;
    unsigned answers;
    int code; /* 0: accepted */
    bool cancelled;
};

static void
one_answered(void *arg, const struct err *e, const void *resp)
{
    struct one *o = arg;

    (void)resp;
    o->answers++;
    o->code = e != NULL ? e->code : 0;
}

static struct job *
some_job(struct world *w, unsigned seed, unsigned i)
{
    struct job *j = the_job(w, mem_printf(w, "job%u", (seed + i) % 5), 1 + i % 3);

    if (i % 3 == 0)
        job_ballast(j, BALLAST, (char)('a' + i % 26));
    return j;
}

static struct rpc_request
some_request(struct world *w, unsigned seed, unsigned i)
{
    static struct node_update_status_request beat = {.status = NODE_READY};
    struct job_register_request *jr = mem_new(w, struct job_register_request);
    struct job_deregister_request *jd = mem_new(w, struct job_deregister_request);
    struct job_evaluate_request *je = mem_new(w, struct job_evaluate_request);

    jr->job = some_job(w, seed, i);
    jd->job_id = i % 2 == 0 ? jr->job->id : "never"; /* the second one takes two rounds */
    je->job_id = jr->job->id;
    switch ((seed + i) % KINDS) {
    case 0:
    case 1:
        return (struct rpc_request){RPC_JOB_REGISTER, jr, NULL, 15000};
    case 2:
        return (struct rpc_request){RPC_JOB_PLAN, jr, NULL, 15000};
    case 3:
        jr->job->type = "nonsense";
        return (struct rpc_request){RPC_JOB_VALIDATE, jr, NULL, 15000};
    case 4:
        return (struct rpc_request){RPC_JOB_DEREGISTER, jd, NULL, 15000};
    case 5:
        return (struct rpc_request){RPC_NODE_UPDATE_STATUS, &beat, &as_node, 15000};
    default:
        return (struct rpc_request){RPC_JOB_EVALUATE, je, NULL, 15000};
    }
}

static void
turns(struct world *w, unsigned ms)
{
    bool never = false;

    loop_run_until(w->loop, &never, ms);
}

static void
send_all(struct world *w, struct one *v, unsigned seed)
{
    unsigned random = seed;

    for (unsigned i = 0; i < CALLS; i++) {
        struct rpc_request q = some_request(w, seed, i);
        v[i].id = rpc_send(w->rpc, &q, one_answered, &v[i]);
        if (rand_r(&random) % 4 == 0)
            turns(w, 1);
        if (rand_r(&random) % 5 == 0) {
            unsigned k = (unsigned)rand_r(&random) % (i + 1);
            v[k].cancelled = true;
            rpc_cancel(w->rpc, v[k].id);
        }
    }
}

START_TEST(every_call_is_answered_once)
{
    struct world *w = world_open(tmp_dir());

    node_up(w);
    for (unsigned seed = 0; seed < 6; seed++) {
        struct one v[CALLS] = {0};
        send_all(w, v, seed);
        for (unsigned i = 0; i < CALLS; i++)
            while (v[i].answers == 0)
                turns(w, 1);
        for (unsigned i = 0; i < CALLS; i++) {
            ck_assert_uint_eq(v[i].answers, 1);
            /* a job may be gone when it is evaluated */
            if (v[i].code != -ERR_NOT_FOUND)
                ck_assert_msg(v[i].code == 0 || (v[i].cancelled && v[i].code == -ERR_CANCELED), "%u: %d", i,
                              v[i].code);
        }
    }
    world_close(w);
}
END_TEST

/* Writes are prepared, under way and about to be answered when the server stops. */
START_TEST(a_server_stops_with_writes_in_every_state)
{
    for (unsigned seed = 0; seed < 8; seed++) {
        struct world *w = world_open(tmp_dir());
        struct one v[CALLS] = {0};
        node_up(w);
        send_all(w, v, seed);
        turns(w, seed / 2);
        world_close(w);
        for (unsigned i = 0; i < CALLS; i++)
            ck_assert_uint_eq(v[i].answers, 1);
    }
}
END_TEST

/* Its first round writes a barrier: also where nobody waits any more, and where the job comes meanwhile. */
START_TEST(what_is_not_there_is_deregistered_in_two_rounds)
{
    struct world *w = world_open(tmp_dir());
    struct job_deregister_request req = {.job_id = "never"};

    node_up(w);
    const struct job_deregister_response *r =
        CALL(w, RPC_JOB_DEREGISTER, job_deregister_response, &req);
    ck_assert_uint_gt(r->index, 0);
    ck_assert(str_empty(r->eval_id));
    ck_assert_uint_eq(r->job_modify_index, 0);
    run_job(w, the_job(w, "never", 1));
    r = CALL(w, RPC_JOB_DEREGISTER, job_deregister_response, &req);
    ck_assert(!str_empty(r->eval_id));
    ck_assert_uint_gt(r->job_modify_index, 0);
    world_close(w);
}
END_TEST

/* The proof of a node lets it read nodes, and nothing of what runs on them. */
START_TEST(a_node_reads_no_work_of_others)
{
    struct id_request node = {.id = node_id};
    struct acl_bootstrap_request boot = {NULL};

    world_acl = true;
    struct world *w = world_open(tmp_dir());
    world_acl = false;
    const struct acl_tokens_response *t = CALL(w, RPC_ACL_BOOTSTRAP, acl_tokens_response, &boot);
    struct rpc_envelope as_manager = {.auth_token = t->tokens.v[0]->secret_id};
    struct job_register_request rr = {.job = the_job(w, "web", 1)};
    node_up(w);
    ck_assert_ptr_null(call(w, RPC_JOB_REGISTER, &rr));
    ck_assert_int_eq(w->err.code, -ERR_FORBIDDEN);
    ck_assert_ptr_null(call_with(w, RPC_JOB_REGISTER, &rr, &as_node));
    ck_assert_int_eq(w->err.code, -ERR_FORBIDDEN);
    (void)CALL_WITH(w, RPC_JOB_REGISTER, job_register_response, &rr, &as_manager);
    const struct allocs_response *all = NULL;
    for (int64_t end = clock_mono_ns() + 30 * NS_PER_S; clock_mono_ns() < end;) {
        all = CALL_WITH(w, RPC_NODE_GET_ALLOCS, allocs_response, &node, &as_manager);
        if (all->allocations.n > 0)
            break;
    }
    ck_assert_uint_eq(all->allocations.n, 1);
    all = CALL_WITH(w, RPC_NODE_GET_ALLOCS, allocs_response, &node, &as_node);
    ck_assert_uint_eq(all->allocations.n, 0);
    ck_assert_ptr_nonnull(CALL_WITH(w, RPC_NODE_GET_NODE, node_response, &node, &as_node)->node);
    ck_assert_ptr_null(call(w, RPC_NODE_GET_NODE, &node));
    world_close(w);
}
END_TEST

/* A node writes what its own allocation has, and nothing else; it is found by name, job and allocation. */
START_TEST(a_node_registers_services)
{
    struct world *w = world_open(tmp_dir());
    struct job_register_request rr = {.job = the_job(w, "web", 1)};
    struct id_request of_job = {.id = "web"}, of_name = {.id = "api"};
    node_up(w);
    (void)CALL(w, RPC_JOB_REGISTER, job_register_response, &rr);
    const char *id = NULL;
    for (int64_t end = clock_mono_ns() + 30 * NS_PER_S; id == NULL && clock_mono_ns() < end;) {
        const struct alloc_list_response *l =
            CALL(w, RPC_JOB_ALLOCATIONS, alloc_list_response, &of_job);
        id = l->allocations.n > 0 ? l->allocations.v[0]->id : NULL;
    }
    ck_assert_ptr_nonnull(id);
    const char *tag = "blue";
    struct service_registration one = {.id = mem_printf(w, "_nomad-task-%s-t-api-http", id),
                                       .service_name = "api",
                                       .namespace = "foreign", /* the server knows better */
                                       .node_id = "another",
                                       .tags = {&tag, 1},
                                       .address = "127.0.0.1",
                                       .port = 80};
    struct service_registration two = one, *all[] = {&one, &two};
    struct service_set_request set = {id, {all, 1}};
    ck_assert_ptr_null(call(w, RPC_SERVICE_SET, &set)); /* without a node's proof */
    (void)CALL_WITH(w, RPC_SERVICE_SET, write_response, &set, &as_node);
    const struct services_response *r = CALL(w, RPC_SERVICE_GET, services_response, &of_name);
    ck_assert_uint_eq(r->services.n, 1);
    ck_assert_str_eq(r->services.v[0]->namespace, "default");
    ck_assert_str_eq(r->services.v[0]->node_id, node_id);
    ck_assert_uint_eq(CALL(w, RPC_JOB_SERVICES, services_response, &of_job)->services.n, 1);
    struct id_request of_alloc = {.id = id};
    ck_assert_uint_eq(CALL(w, RPC_ALLOC_SERVICES, services_response, &of_alloc)->services.n, 1);
    struct empty any = {0};
    const struct service_list_response *l = CALL(w, RPC_SERVICE_LIST, service_list_response, &any);
    ck_assert_uint_eq(l->services.n, 1);
    ck_assert_str_eq(l->services.v[0]->services.v[0]->service_name, "api");
    ck_assert_str_eq(l->services.v[0]->services.v[0]->tags.v[0], "blue");

    struct service_registration_list *in = &set.services;
    in->n = 2; /* one id twice */
    ck_assert_ptr_null(call_with(w, RPC_SERVICE_SET, &set, &as_node));
    in->n = 1;
    one.id = mem_printf(w, "_nomad-task-%s-t-api-http", node_id); /* of another allocation */
    ck_assert_ptr_null(call_with(w, RPC_SERVICE_SET, &set, &as_node));
    ck_assert_int_eq(w->err.code, -ERR_INVALID);
    one = two;
    one.service_name = "a_b";
    ck_assert_ptr_null(call_with(w, RPC_SERVICE_SET, &set, &as_node));
    one = two;
    one.port = 65536;
    ck_assert_ptr_null(call_with(w, RPC_SERVICE_SET, &set, &as_node));
    one = two;
    one.health = "fine";
    ck_assert_ptr_null(call_with(w, RPC_SERVICE_SET, &set, &as_node));
    struct service_delete_request del = {"api", two.id};
    (void)CALL(w, RPC_SERVICE_DELETE, write_response, &del);
    ck_assert_ptr_null(call(w, RPC_SERVICE_DELETE, &del));
    ck_assert_int_eq(w->err.code, -ERR_NOT_FOUND);
    ck_assert_uint_eq(CALL(w, RPC_SERVICE_GET, services_response, &of_name)->services.n, 0);
    world_close(w);
}
END_TEST

TEST_SUITE_TIMEOUT("writes", 60, every_call_is_answered_once,
                   a_server_stops_with_writes_in_every_state,
                   what_is_not_there_is_deregistered_in_two_rounds, a_node_reads_no_work_of_others,
                   a_node_registers_services)
