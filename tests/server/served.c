/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/server/served.h"

#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

const char node_id[] = "11111111-1111-4111-8111-111111111111";
const char node_secret[] = "22222222-2222-4222-8222-222222222222";
const struct rpc_envelope as_node = {.node_id = node_id, .node_secret = node_secret};

bool (*world_may)(const struct rpc_envelope *env, const char *ns);
bool world_verify_servers, world_bind_names, world_acl, world_makes_keys;

static void
stopped(void *arg)
{
    *(bool *)arg = true;
}

struct world *
world_open_with(const char *dir, int64_t heartbeat_ms)
{
    struct world *w = mem_new(NULL, struct world);
    const struct agent_server agent = {.min_heartbeat_ttl = heartbeat_ms * NS_PER_MS,
                                       .heartbeat_grace = heartbeat_ms * NS_PER_MS,
                                       .root_key_rotation_threshold = 3600 * NS_PER_S,
                                       .root_key_gc_interval = 3600 * NS_PER_S};
    struct server_config cfg = {
        .agent = &agent,
        .data_dir = dir,
        .name = "test.global",
        .rpc_addr = "127.0.0.1:4647",
        .dev = true,
        .may = world_may,
        .verify_servers = world_verify_servers,
        .acl_enabled = world_acl,
        .makes_keys = world_makes_keys,
        .bind_node_name = world_bind_names,
    };
    struct err e = ERR_INIT;
    size_t n;

    w->loop = loop_new();
    ck_assert_msg(server_new(w->loop, &cfg, &w->server, &e) == 0, "%s", e.text);
    ck_assert_msg(server_start(w->server, &e) == 0, "%s", e.text);
    const struct rpc_service *v = server_services(w->server, &n);
    w->rpc = rpc_local(w->loop, v, n, w->server);
    int64_t end = clock_mono_ns() + 10 * NS_PER_S;
    while (!server_is_leader(w->server) && clock_mono_ns() < end) {
        bool never = false;
        loop_run_until(w->loop, &never, 1);
    }
    ck_assert(server_is_leader(w->server));
    return w;
}

struct world *
world_open(const char *dir)
{
    return world_open_with(dir, 0);
}

void
world_close(struct world *w)
{
    bool done = false;

    rpc_client_close(w->rpc);
    server_stop(w->server, stopped, &done);
    ck_assert(loop_run_until(w->loop, &done, 10000));
    loop_free(w->loop);
    talloc_free(w);
}

void
answered(void *arg, const struct err *e, const void *resp)
{
    struct answer *a = arg;

    a->done = true;
    if (e != NULL)
        a->err = *e;
    else
        a->resp = talloc_steal(a->w, resp);
}

/* Calls and waits; NULL with w->err set on failure. */
const void *
call_with(struct world *w, enum rpc_id id, const void *req, const struct rpc_envelope *env)
{
    struct answer *a = mem_new(w, struct answer);

    a->w = w;
    err_clear(&w->err);
    rpc_send(w->rpc, &(struct rpc_request){id, req, env, 15000}, answered, a);
    ck_assert(loop_run_until(w->loop, &a->done, 15000));
    w->err = a->err;
    return a->resp;
}

const void *
call(struct world *w, enum rpc_id id, const void *req)
{
    return call_with(w, id, req, NULL);
}

struct node *
the_node(void *ctx)
{
    struct node *n = mem_new(ctx, struct node);
    struct driver_info *d = mem_new(ctx, struct driver_info);
    struct node_network_resource *nn = mem_new(ctx, struct node_network_resource);
    struct node_network_address *na = mem_new(ctx, struct node_network_address);

    n->id = node_id;
    n->name = "host";
    n->datacenter = "dc1";
    n->http_addr = "127.0.0.1:4646";
    n->node_class = "small";
    str_map_set(ctx, &n->attributes, "kernel.name", "linux");
    d->detected = d->healthy = true;
    map_put(ctx, n->drivers, "raw_exec")->v = d;
    n->node_resources = mem_new(ctx, struct node_resources);
    n->node_resources->cpu = mem_new(ctx, struct node_cpu_resources);
    n->node_resources->cpu->cpu_shares = 4000;
    n->node_resources->memory = mem_new(ctx, struct node_memory_resources);
    n->node_resources->memory->memory_mb = 4096;
    n->node_resources->disk = mem_new(ctx, struct node_disk_resources);
    n->node_resources->disk->disk_mb = 10000;
    nn->mode = "host";
    nn->device = "lo";
    na->alias = "default";
    na->address = "127.0.0.1";
    list_add(ctx, nn->addresses, na);
    list_add(ctx, n->node_resources->node_networks, nn);
    return n;
}

void
node_up(struct world *w)
{
    struct node_register_request rr = {.node = the_node(w)};
    struct node_update_status_request sr = {.status = NODE_READY};

    const struct node_update_response *r = NODE_CALL(w, RPC_NODE_REGISTER, node_update_response, &rr);
    ck_assert_int_ge(r->heartbeat_ttl, 10 * NS_PER_S);
    ck_assert_int_lt(r->heartbeat_ttl, 20 * NS_PER_S);
    r = NODE_CALL(w, RPC_NODE_UPDATE_STATUS, node_update_response, &sr);
    ck_assert_uint_gt(r->index, 0);
    /* a heartbeat of a ready node writes nothing */
    r = NODE_CALL(w, RPC_NODE_UPDATE_STATUS, node_update_response, &sr);
    ck_assert_uint_eq(r->index, 0);
}

struct job *
the_job(void *ctx, const char *id, int64_t count)
{
    struct job *j = mem_new(ctx, struct job);
    struct task_group *tg = mem_new(ctx, struct task_group);
    struct task *t = mem_new(ctx, struct task);

    j->id = j->name = id;
    j->type = JOB_SERVICE;
    tg->name = "web";
    tg->count = (struct opt_i64){true, count};
    t->name = "server";
    t->driver = "raw_exec";
    t->config = value_map(ctx);
    value_map_set(t->config, "command", value_str(ctx, "/bin/true"));
    t->resources = mem_new(ctx, struct resources);
    t->resources->cpu = (struct opt_i64){true, 500};
    t->resources->memory_mb = (struct opt_i64){true, 256};
    list_add(ctx, tg->tasks, t);
    list_add(ctx, j->task_groups, tg);
    return j;
}

void
job_ballast(struct job *j, size_t bytes, char c)
{
    enum { VALUE = 90000, VALUES = 4 }; /* as much as a task may have */
    char *value = mem_array(j, char, VALUE + 1);

    memset(value, c, VALUE);
    for (size_t i = 0; i * VALUE < bytes; i++) {
        if (i % VALUES == 0) {
            struct job *other = the_job(j, j->id, 0);
            other->task_groups.v[0]->name = mem_printf(j, "ballast%zu", i);
            list_add(j, j->task_groups, other->task_groups.v[0]);
        }
        struct task *t = j->task_groups.v[j->task_groups.n - 1]->tasks.v[0];
        str_map_set(j, &t->env, mem_printf(j, "E%zu", i), value);
    }
}

const struct job_register_response *
run_job(struct world *w, struct job *j)
{
    struct job_register_request req = {.job = j};

    return CALL(w, RPC_JOB_REGISTER, job_register_response, &req);
}

/* The evaluation once it is not pending any more: a blocking query, as `job run` does. */
const struct evaluation *
await_eval(struct world *w, const char *id)
{
    struct rpc_envelope env = {.wait = 10 * NS_PER_S};
    struct id_request req = {.id = id};

    for (int i = 0; i < 20; i++) {
        const struct eval_response *r = CALL_WITH(w, RPC_EVAL_GET_EVAL, eval_response, &req, &env);
        ck_assert_ptr_nonnull(r->eval);
        if (!str_eq(r->eval->status, EVAL_PENDING))
            return r->eval;
        env.min_index = r->meta->index;
    }
    ck_abort_msg("evaluation %s stays pending", id);
    return NULL;
}

const struct alloc_list_response *
allocs_of(struct world *w, const char *job)
{
    struct id_request req = {.id = job};

    return CALL(w, RPC_JOB_ALLOCATIONS, alloc_list_response, &req);
}

void
report(struct world *w, const char *alloc_id, const char *status)
{
    struct allocation a = {.id = alloc_id, .client_status = status}, *v[] = {&a};
    struct node_update_alloc_request req = {.allocs = {v, 1}};

    NODE_CALL(w, RPC_NODE_UPDATE_ALLOC, write_response, &req);
}
