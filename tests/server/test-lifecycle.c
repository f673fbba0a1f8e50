/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole server on a real loop, spoken to by RPC: a node registers and becomes ready, a job is placed
 * on it, a blocking query wakes, a restart keeps it all, and stopping leaves nothing behind.
 */
#include <string.h>

#include "common/duration.h"
#include "common/str.h"
#include "net/loop.h"
#include "net/rpc.h"
#include "server/fsm/fsm.h"
#include "server/server.h"
#include "server/state/state.h"
#include "tests/lib/test.h"
#include "tests/server/util.h"

enum { WAIT_MS = 10000 };

struct fx {
    struct loop *l;
    struct server *s;
    struct rpc_client *c;
    const char *dir;
};

struct reply {
    bool done;
    struct err e;
    void *resp;
};

static void
start(struct fx *f, const char *dir)
{
    struct err e = ERR_INIT;
    struct server_config cfg = {.data_dir = dir, .rpc_addr = "127.0.0.1:4647", .dev = true};
    f->dir = dir;
    f->l = loop_new();
    ck_assert_msg(server_new(f->l, &cfg, &f->s, &e) == 0, "%s", e.text);
    ck_assert_int_eq(server_start(f->s, &e), 0);
    size_t n = 0;
    const struct rpc_service *sv = server_services(f->s, &n);
    f->c = rpc_local(f->l, sv, n, f->s);
    bool never = false;
    for (int i = 0; i < 1000 && !server_is_leader(f->s); i++)
        loop_run_until(f->l, &never, 5);
    ck_assert(server_is_leader(f->s));
}

static void
stopped(void *arg)
{
    *(bool *)arg = true;
}

static void
stop(struct fx *f)
{
    bool done = false;
    rpc_client_close(f->c);
    server_stop(f->s, stopped, &done);
    ck_assert(loop_run_until(f->l, &done, WAIT_MS));
    loop_free(f->l);
}

static void
replied(void *arg, const struct err *e, const void *resp)
{
    struct reply *r = arg;
    if (e != NULL)
        r->e = *e;
    r->resp = resp != NULL ? talloc_steal(NULL, (void *)(uintptr_t)resp) : NULL;
    r->done = true;
}

static void *
call_with(struct fx *f, const void *ctx, enum rpc_id id, const void *req,
          const struct rpc_envelope *env)
{
    struct reply r = {0};
    rpc_send(f->c, &(struct rpc_request){id, req, env, 0}, replied, &r);
    ck_assert(loop_run_until(f->l, &r.done, WAIT_MS));
    ck_assert_msg(r.e.code == 0, "%s", r.e.text);
    talloc_steal(ctx, r.resp);
    return r.resp;
}

static void *
call(struct fx *f, const void *ctx, enum rpc_id id, const void *req)
{
    return call_with(f, ctx, id, req, NULL);
}

static struct node *
big_node(const void *ctx, const char *id)
{
    struct node *n = make_node(ctx, id);
    n->status = NODE_INIT;
    n->node_resources = type_new(n, &type_node_resources);
    struct node_resources *r = n->node_resources;
    r->cpu = type_new(n, &type_node_cpu_resources);
    r->cpu->cpu_shares = 8000;
    r->memory = type_new(n, &type_node_memory_resources);
    r->memory->memory_mb = 8000;
    r->disk = type_new(n, &type_node_disk_resources);
    r->disk->disk_mb = 100000;
    struct driver_info *d = type_new(n, &type_driver_info);
    d->detected = d->healthy = true;
    map_put(n, n->drivers, "raw_exec")->v = d;
    str_map_set(n, &n->attributes, "driver.raw_exec", "1");
    str_map_set(n, &n->attributes, "kernel.name", "linux");
    return n;
}

static const char node_id[] = "11111111-2222-3333-4444-555555555555";
static const struct rpc_envelope as_node = {.node_id = node_id, .node_secret = "secret"};

static void
make_ready(struct fx *f, const void *ctx)
{
    struct node_register_request reg = {.node = big_node(ctx, node_id)};
    struct node_update_response *r = call_with(f, ctx, RPC_NODE_REGISTER, &reg, &as_node);
    ck_assert_int_gt(r->heartbeat_ttl, 0);
    struct node_update_status_request up = {.status = NODE_READY};
    call_with(f, ctx, RPC_NODE_UPDATE_STATUS, &up, &as_node);
    struct id_request get = {.id = node_id};
    struct node_response *n = call(f, ctx, RPC_NODE_GET_NODE, &get);
    ck_assert_str_eq(n->node->status, NODE_READY);
}

static struct job *
real_job(const void *ctx, const char *id, int64_t count)
{
    struct job *j = make_job(ctx, id, count);
    struct task *t = j->task_groups.v[0]->tasks.v[0];
    t->config = value_map(j);
    value_map_set(t->config, "command", value_str(j, "/bin/true"));
    str_map_set(j, &j->meta, "k", "v");
    list_add(j, j->datacenters, "*");
    return j;
}

static struct node_client_allocs_response *
client_allocs(struct fx *f, const void *ctx, uint64_t min_index)
{
    struct rpc_envelope env = as_node;
    env.min_index = min_index;
    env.wait = 5 * NS_PER_S;
    struct node_client_allocs_request req = {0};
    return call_with(f, ctx, RPC_NODE_GET_CLIENT_ALLOCS, &req, &env);
}

START_TEST(job_is_placed_on_a_node)
{
    auto_mem void *tmp = mem_ctx("test");
    struct fx f;
    start(&f, tmp_dir());
    make_ready(&f, tmp);
    struct node_client_allocs_response *before = client_allocs(&f, tmp, 0);
    ck_assert_uint_eq(before->allocs.n, 0);
    struct job_register_request req = {.job = real_job(tmp, "web", 3)};
    struct job_register_response *r = call(&f, tmp, RPC_JOB_REGISTER, &req);
    ck_assert(!str_empty(r->eval_id));
    struct node_client_allocs_response *now = before;
    for (int i = 0; i < 20 && now->allocs.n < 3; i++)
        now = client_allocs(&f, tmp, now->meta->index > 0 ? now->meta->index : 1);
    ck_assert_uint_eq(now->allocs.n, 3);
    struct id_request get = {.id = now->allocs.v[0].k};
    struct alloc_response *a = call(&f, tmp, RPC_ALLOC_GET_ALLOC, &get);
    ck_assert_str_eq(a->alloc->job->id, "web");
    ck_assert_str_eq(a->alloc->node_id, node_id);
    stop(&f);

    /* Everything is there after a restart, and the job is not placed again. */
    start(&f, f.dir);
    struct id_request job = {.id = "web"};
    struct job_response *j = call(&f, tmp, RPC_JOB_GET_JOB, &job);
    ck_assert_str_eq(j->job->status, JOB_STATUS_RUNNING);
    ck_assert_uint_eq(client_allocs(&f, tmp, 0)->allocs.n, 3);
    stop(&f);
}
END_TEST

struct woken {
    bool done;
    enum wake_reason why;
};

static void
on_wake(void *arg, enum wake_reason why)
{
    struct woken *w = arg;
    ck_assert(!w->done);
    w->done = true;
    w->why = why;
}

START_TEST(watches_wake_for_what_they_watch)
{
    auto_mem void *tmp = mem_ctx("test");
    struct fx f;
    start(&f, tmp_dir());
    struct state_txn *t = server_read_begin(f.s, tmp);
    uint64_t seen = state_applied(t);
    state_read_end(t);
    struct woken job = {0}, other = {0}, table = {0}, nodes = {0}, late = {0}, gone = {0};
    ck_assert_ptr_nonnull(server_watch(
        f.s, &(struct watch_on){STATE_BIT(STATE_JOBS), state_key_job("default", "web"), seen, WAIT_MS},
        on_wake, &job));
    struct server_watch *o = server_watch(
        f.s, &(struct watch_on){STATE_BIT(STATE_JOBS), state_key_job("default", "other"), seen, 60000},
        on_wake, &other);
    server_watch(f.s, &(struct watch_on){STATE_BIT(STATE_JOBS) | STATE_BIT(STATE_NODES), 0, seen, WAIT_MS},
                 on_wake, &table);
    server_watch(f.s, &(struct watch_on){STATE_BIT(STATE_NODES), 0, seen, 50}, on_wake, &nodes);
    struct server_watch *g =
        server_watch(f.s, &(struct watch_on){STATE_BIT(STATE_JOBS), 0, seen, WAIT_MS}, on_wake, &gone);
    server_watch_cancel(g);
    struct job_register_request req = {.job = real_job(tmp, "web", 1)};
    call(&f, tmp, RPC_JOB_REGISTER, &req);
    ck_assert(loop_run_until(f.l, &job.done, WAIT_MS));
    ck_assert(loop_run_until(f.l, &table.done, WAIT_MS));
    ck_assert_int_eq(job.why, WAKE_CHANGED);
    ck_assert_int_eq(table.why, WAKE_CHANGED);
    /* Parked too late for the change, but it says what it saw. */
    server_watch(f.s, &(struct watch_on){STATE_BIT(STATE_JOBS), state_key_job("default", "x"), seen, WAIT_MS},
                 on_wake, &late);
    ck_assert(!late.done);
    ck_assert(loop_run_until(f.l, &late.done, WAIT_MS));
    ck_assert_int_eq(late.why, WAKE_CHANGED);
    ck_assert(loop_run_until(f.l, &nodes.done, WAIT_MS));
    ck_assert_int_eq(nodes.why, WAKE_TIMEOUT);
    ck_assert(!other.done && !gone.done);
    ck_assert_ptr_nonnull(o);
    stop(&f);
    ck_assert_int_eq(other.why, WAKE_SHUTDOWN);
    ck_assert(other.done && !gone.done);
}
END_TEST

START_TEST(starts_and_stops)
{
    struct fx f;
    const char *dir = tmp_dir();
    for (int i = 0; i < 5; i++) {
        start(&f, dir);
        stop(&f);
    }
}
END_TEST

START_TEST(refuses_to_start_without_its_things)
{
    struct err e = ERR_INIT;
    struct loop *l = loop_new();
    struct server *s = NULL;
    struct server_config cfg = {.rpc_addr = "127.0.0.1:1"};
    ck_assert_int_eq(server_new(l, &cfg, &s, &e), -ERR_INVALID);
    err_clear(&e);
    cfg.data_dir = "/proc/nowhere";
    ck_assert_int_lt(server_new(l, &cfg, &s, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "/proc/nowhere"));
    loop_free(l);
}
END_TEST

TEST_SUITE_TIMEOUT("lifecycle", 60, starts_and_stops, refuses_to_start_without_its_things,
                   watches_wake_for_what_they_watch, job_is_placed_on_a_node)
