/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/agent/fakes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/config/config.h"
#include "api/canonical.h"
#include "api/filter/filter.h"
#include "client/client.h"
#include "common/mem.h"
#include "common/str.h"
#include "jobspec/jobspec.h"
#include "net/http/http.h"
#include "server/hook.h"
#include "server/server.h"
#include "tests/lib/test.h"

struct rpc_envelope fake_env;
char fake_text[256], fake_token[64];
bool fake_canceled, fake_parked;
unsigned fake_fails_at;
struct http_server *fake_node;

static struct query_meta *
meta(void *ctx)
{
    struct query_meta *m = mem_new(ctx, struct query_meta);
    m->index = 42;
    m->known_leader = true;
    return m;
}

static void
remember(struct rpc_call *call)
{
    fake_env = *rpc_call_envelope(call);
    snprintf(fake_token, sizeof(fake_token), "%s", str_or(fake_env.auth_token, ""));
    snprintf(fake_text, sizeof(fake_text), "%s", str_or(fake_env.namespace, ""));
}

/* Says whether the filter wants job `i`, of which it sees more than its row. */
static bool
wanted(void *ctx, const struct list_options *q, const struct job_list_stub *row)
{
    struct err e = ERR_INIT;
    struct job j = {.id = row->id, .status = row->status, .version = 7};
    if (str_empty(q->filter))
        return true;
    struct filter *f = filter_compile(ctx, &type_job, q->filter, &e);
    return f && filter_match(f, &j);
}

/* a to e, in parts of two rows; a, b: running. All at once are more than an answer may have. */
static void
job_list(void *arg, struct rpc_call *call, const void *req)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    const struct list_request *r = req;
    const struct list_options *q = r->list;
    struct job_list_response *resp = mem_new(rpc_call_ctx(call), struct job_list_response);
    auto_buf struct buf rows = BUF_INIT(1 << 20);
    (void)arg;
    if (str_empty(q->next_token))
        remember(call);
    if (q->part == 0) {
        rpc_failf(call, -ERR_LIMIT, "the answer is over 16 MiB");
        return;
    }
    struct query_meta *m = resp->meta = meta(resp);
    for (size_t i = 0; i < ARRAY_LEN(ids) && !str_eq(q->prefix, "none"); i++) {
        size_t at = q->reverse ? ARRAY_LEN(ids) - 1 - i : i;
        char *token = mem_printf(resp, "default.%s", ids[at]);
        int order = str_empty(q->next_token) ? 0 : strcmp(token, q->next_token);
        if (q->reverse ? order > 0 : order < 0)
            continue;
        struct job_list_stub *j = mem_new(resp, struct job_list_stub);
        j->id = ids[at];
        j->namespace = "default";
        j->status = at < 2 ? "running" : "dead";
        j->job_summary = mem_new(j, struct job_summary);
        struct task_group_summary *g = mem_new(j, struct task_group_summary);
        g->queued = (int64_t)at;
        map_put(j, j->job_summary->summary, "g")->v = g;
        if (!wanted(resp, q, j))
            continue;
        m->full = m->n == (q->per_page < 0   ? 0
                           : q->per_page > 0 ? (uint64_t)q->per_page
                                             : UINT64_MAX);
        if (m->full || m->n == 2) {
            m->next_token = token;
            break;
        }
        m->n++;
        json_encode_row(&rows, &type_job_list_stub, j, q->part == 2 ? JSON_PRETTY : 0);
    }
    m->rows = (struct bytes){rows.data, rows.len};
    rpc_reply(call, resp);
}

/* Versions 1 and 0, of JobModifyIndex 8 and 5, and their difference: in an answer each. */
static void
job_versions(void *arg, struct rpc_call *call, const void *req)
{
    const struct id_request *r = req;
    const char *token = str_or(r->list->next_token, "");
    bool old = str_eq(token, "5") || str_eq(token, "5.diff"), diff = strchr(token, '.') != NULL;
    struct job j = {.id = r->id, .version = !old, .job_modify_index = old ? 5 : 8}, *versions[] = {&j};
    struct job_diff d = {.type = "Edited"}, *diffs[] = {&d};
    struct job_versions_response resp = {.index = 42, .known_leader = true};
    (void)arg;
    if (!diff && !str_eq(r->id, "missing")) {
        resp.versions.v = versions;
        resp.versions.n = 1;
    } else if (!old && !str_eq(r->id, "missing")) {
        resp.diffs.v = diffs;
        resp.diffs.n = 1;
    }
    if (!old && !str_eq(r->id, "missing"))
        resp.next_token = "5";
    rpc_reply(call, &resp);
}

static void
on_cancel(void *arg)
{
    fake_canceled = true;
    rpc_failf(arg, -ERR_CANCELED, "canceled");
}

static void
job_get(void *arg, struct rpc_call *call, const void *req)
{
    const struct id_request *r = req;
    struct job_response *resp = mem_new(rpc_call_ctx(call), struct job_response);
    (void)arg;
    remember(call);
    if (rpc_call_envelope(call)->min_index == 100) {
        fake_parked = true;
        rpc_call_on_cancel(call, on_cancel, call);
        return;
    }
    if (str_eq(r->id, "boom")) {
        rpc_failf(call, -ERR_NO_LEADER, "x");
        return;
    }
    if (str_eq(r->id, "busy")) {
        rpc_failf(call, -ERR_BUSY, "too many watches");
        return;
    }
    resp->meta = meta(resp);
    if (!str_eq(r->id, "missing")) {
        resp->job = mem_new(resp, struct job);
        resp->job->id = r->id;
        resp->job->submit_time = 1234567890123456789;
    }
    rpc_reply(call, resp);
}

static void
job_register(void *arg, struct rpc_call *call, const void *req)
{
    const struct job_register_request *r = req;
    struct job_register_response *resp = mem_new(rpc_call_ctx(call), struct job_register_response);
    (void)arg;
    snprintf(fake_text, sizeof(fake_text), "%s/%s/%s", str_or(rpc_call_envelope(call)->namespace, "default"),
             str_or(r->job->namespace, ""), str_or(r->job->region, ""));
    if (str_eq(r->job->id, "invalid")) {
        rpc_failf(call, -ERR_INVALID, "1 error occurred:\n\t* Missing job task groups\n\n");
        return;
    }
    resp->eval_id = "e1";
    resp->job_modify_index = 17;
    resp->index = 18;
    rpc_reply(call, resp);
}

static void
job_validate_rpc(void *arg, struct rpc_call *call, const void *req)
{
    const struct job_register_request *r = req;
    struct job_validate_response resp = {.error = str_empty(r->job->id) ? "the job has no ID" : NULL};
    (void)arg;
    rpc_reply(call, &resp);
}

static void
job_deregister(void *arg, struct rpc_call *call, const void *req)
{
    const struct job_deregister_request *r = req;
    struct job_deregister_response *resp =
        mem_new(rpc_call_ctx(call), struct job_deregister_response);
    (void)arg;
    snprintf(fake_text, sizeof(fake_text), "%s purge=%d", r->job_id, r->purge);
    resp->index = 20;
    rpc_reply(call, resp);
}

static void
node_get(void *arg, struct rpc_call *call, const void *req)
{
    const struct id_request *r = req;
    struct node_response *resp = mem_new(rpc_call_ctx(call), struct node_response);
    (void)arg;
    resp->meta = meta(resp);
    resp->node = mem_new(resp, struct node);
    resp->node->id = r->id;
    resp->node->secret_id = "do not tell";
    if (r->list) { /* as JSON */
        auto_buf struct buf b = BUF_INIT(64 << 10);
        json_encode(&b, &type_node, resp->node, JSON_HIDE_SECRETS | (r->list->part == 2 ? JSON_PRETTY : 0));
        resp->meta->rows = (struct bytes){mem_dup(resp, b.data, b.len), b.len};
        resp->node = NULL;
    }
    rpc_reply(call, resp);
}

static void
node_drain(void *arg, struct rpc_call *call, const void *req)
{
    const struct node_drain_request *r = req;
    struct node_eligibility_update_response resp = {.index = 42, .node_modify_index = 42};
    (void)arg;
    snprintf(fake_text, sizeof(fake_text), "%s %lld %d %d %s", r->node_id,
             r->drain_spec ? (long long)r->drain_spec->deadline : -99LL,
             r->drain_spec && r->drain_spec->ignore_system_jobs, r->mark_eligible,
             str_or(str_map_get(&r->meta, "message"), ""));
    rpc_reply(call, &resp);
}

static void
regions(void *arg, struct rpc_call *call, const void *p)
{
    struct regions_response r = {.regions = {(const char *[]){"global"}, 1}};
    (void)arg;
    (void)p;
    rpc_reply(call, &r);
}

static void
leader(void *arg, struct rpc_call *call, const void *req)
{
    struct status_leader_response *resp =
        mem_new(rpc_call_ctx(call), struct status_leader_response);
    (void)arg;
    (void)req;
    resp->leader = "127.0.0.1:4647";
    list_add(resp, resp->peers, "127.0.0.1:4647");
    rpc_reply(call, resp);
}

static void
gc(void *arg, struct rpc_call *call, const void *req)
{
    struct write_response *resp = mem_new(rpc_call_ctx(call), struct write_response);
    (void)arg;
    (void)req;
    resp->index = 33;
    rpc_reply(call, resp);
}

static void
alloc_get_place(void *arg, struct rpc_call *call, const void *req)
{
    const struct id_request *r = req;
    struct alloc_place_response *resp = mem_new(rpc_call_ctx(call), struct alloc_place_response);
    (void)arg;
    resp->meta = meta(resp);
    if (str_eq(r->id, FAKE_ALLOC) || str_eq(r->id, FAKE_FAR)) {
        resp->place = mem_new(resp, struct alloc_place);
        resp->place->node_id = FAKE_NODE;
    }
    rpc_reply(call, resp);
}

static void
client_http(void *arg, struct rpc_call *call, const void *req)
{
    const struct client_http_request *r = req;
    struct empty resp = {0};
    (void)arg;
    if (!fake_node || !str_eq(r->node_id, FAKE_NODE)) {
        rpc_failf(call, -ERR_NOT_FOUND, "No path to node");
        return;
    }
    remember(call);
    http_server_serve(fake_node, rpc_call_stream(call, r->peer));
    rpc_reply(call, &resp);
}

static void
node_allocs(void *arg, struct rpc_call *call, const void *req)
{
    struct allocs_response *resp = mem_new(rpc_call_ctx(call), struct allocs_response);
    (void)arg;
    (void)req;
    remember(call);
    resp->meta = meta(resp);
    rpc_reply(call, resp);
}

/* FAKE_ALLOCS rows, a hundred in each part. */
static void
alloc_list(void *arg, struct rpc_call *call, const void *req)
{
    const struct list_request *r = req;
    struct query_meta *m = meta(rpc_call_ctx(call));
    struct alloc_list_response resp = {.meta = m};
    auto_buf struct buf rows = BUF_INIT(1 << 20);
    unsigned first = 0;
    (void)arg;
    snprintf(fake_text, sizeof(fake_text), "task_states=%d resources=%d %s", r->task_states, r->resources,
             str_or(r->list->prefix, ""));
    if (r->list->next_token)
        ck_assert_int_eq(sscanf(r->list->next_token, "%u", &first), 1);
    if (first == fake_fails_at && first > 0) {
        rpc_failf(call, -ERR_UNAVAILABLE, "the server is stopping");
        return;
    }
    struct alloc_list_stub row = {.name = "a"};
    for (; m->n < 100 && first + m->n < FAKE_ALLOCS; m->n++)
        json_encode_row(&rows, &type_alloc_list_stub, &row, 0);
    if (first + m->n < FAKE_ALLOCS)
        m->next_token = mem_printf(m, "%u", first + (unsigned)m->n);
    m->rows = (struct bytes){rows.data, rows.len};
    rpc_reply(call, &resp);
}

/* Answers as a server: a request for another region is not done. */
static void
fake_call(void *arg, struct rpc_call *call, const void *req)
{
    static rpc_handler *const fakes[] = {
        [RPC_ALLOC_LIST] = alloc_list,
        [RPC_JOB_LIST] = job_list,
        [RPC_JOB_GET_JOB] = job_get,
        [RPC_JOB_VERSIONS] = job_versions,
        [RPC_JOB_REGISTER] = job_register,
        [RPC_JOB_VALIDATE] = job_validate_rpc,
        [RPC_JOB_DEREGISTER] = job_deregister,
        [RPC_STATUS_LEADER] = leader,
        [RPC_STATUS_REGIONS] = regions,
        [RPC_SYSTEM_GC] = gc,
        [RPC_ALLOC_GET_PLACE] = alloc_get_place,
        [RPC_CLIENT_HTTP] = client_http,
        [RPC_NODE_GET_NODE] = node_get,
        [RPC_NODE_UPDATE_DRAIN] = node_drain,
        [RPC_NODE_GET_ALLOCS] = node_allocs,
    };
    if (!str_eq(str_or(rpc_call_envelope(call)->region, "global"), "global"))
        rpc_failf(call, -ERR_NO_REGION, "No path to region");
    else if (rpc_call_method(call)->id < ARRAY_LEN(fakes) && fakes[rpc_call_method(call)->id])
        fakes[rpc_call_method(call)->id](arg, call, req);
    else
        rpc_failf(call, -ERR_METHOD, "not faked");
}

#define FAKE(id, name) {id, fake_call},
const struct rpc_service fake_services[] = {RPC_METHODS(FAKE, FAKE, FAKE, FAKE)};
const size_t fake_services_n = ARRAY_LEN(fake_services);

/* --- the client role: one allocation, one log that comes in three pieces --- */

bool
client_has_alloc(const struct client *c, const char *alloc_id)
{
    (void)c;
    return str_eq(alloc_id, FAKE_ALLOC);
}

const char *
client_alloc_namespace(const struct client *c, const char *alloc_id)
{
    return client_has_alloc(c, alloc_id) ? "default" : NULL;
}

const char *
client_task_driver(const struct client *c, const char *alloc_id, const char *task)
{
    return client_has_task(c, alloc_id, task) ? "exec" : NULL;
}

const struct action *
client_task_action(const struct client *c, const char *alloc_id, const char *job, const char *task,
                   const char *action)
{
    static const struct action hello = {.name = "hello", .command = "echo"};

    return client_has_task(c, alloc_id, task) && str_eq(job, "web") && str_eq(action, "hello")
               ? &hello
               : NULL;
}

struct node_meta_response *
client_meta(const struct client *c, const void *ctx)
{
    struct node_meta_response *r = mem_new(ctx, struct node_meta_response);
    (void)c;
    str_map_set(r, &r->meta, "a", "1");
    return r;
}

void
client_meta_apply(struct client *c, const struct value *meta, client_done *done, void *arg)
{
    (void)c;
    snprintf(fake_text, sizeof(fake_text), "%s", value_kind_name(value_get(meta, "b")->kind));
    done(arg, NULL);
}

void
client_identity(struct client *c, bool renew, client_identity_done *done, void *arg)
{
    (void)c;
    snprintf(fake_text, sizeof(fake_text), "%s", renew ? "renewed" : "told");
    done(arg, NULL, &(struct node_identity){0});
}

const char *
client_node_id(const struct client *c)
{
    (void)c;
    return "node-1";
}

const struct node *
client_node(const struct client *c)
{
    (void)c;
    return NULL;
}

void
client_info(const struct client *c, struct client_info *ret)
{
    (void)c;
    *ret = (struct client_info){
        .node_id = "node-1", .known_servers = "", .registered = true, .allocs_running = 3,
        .tasks_running = 4, .tasks_pending = 5, .tasks_dead = 6};
}

int
client_set_servers(struct client *c, const struct str_list *servers, struct err *e)
{
    (void)c;
    return str_eq(servers->v[0], "bad") ? err_set(e, -ERR_INVALID, "bad address") : 0;
}

void
client_alloc_restart(struct client *c, const char *id, const char *task, bool all,
                     client_done *done, void *arg)
{
    (void)c;
    snprintf(fake_text, sizeof(fake_text), "restart %s %s %d", id, str_or(task, ""), all);
    done(arg, NULL);
}

void
client_alloc_pause(struct client *c, const char *id, const char *task, bool on, client_done *done,
                   void *arg)
{
    (void)c;
    (void)id;
    (void)task;
    (void)on;
    done(arg, NULL);
}

void
client_alloc_signal(struct client *c, const char *id, const char *task, const char *signal,
                    client_done *done, void *arg)
{
    struct err e = ERR_INIT;
    (void)c;
    (void)id;
    (void)task;
    err_set(&e, -ERR_INVALID, "unknown signal '%s'", signal);
    done(arg, &e);
}

void
client_alloc_gc(struct client *c, const char *id, client_done *done, void *arg)
{
    (void)c;
    (void)id;
    done(arg, NULL);
}

void
client_gc(struct client *c, client_done *done, void *arg)
{
    (void)c;
    done(arg, NULL);
}

const struct check_result_list *
client_alloc_checks(const struct client *c, const char *id)
{
    static struct check_result one = {.id = "abc", .status = "success", .check = "c"}, *v[] = {&one};
    static const struct check_result_list list = {v, ARRAY_LEN(v)};
    (void)c;
    (void)id;
    return &list;
}

void
client_each_services(struct client *c, client_services_fn *fn, void *arg)
{
    (void)c;
    (void)fn;
    (void)arg;
}

int
client_alloc_stats(struct client *c, const void *ctx, const char *id, const char *task,
                   struct alloc_resource_usage **ret, struct err *e)
{
    (void)c;
    (void)id;
    (void)task;
    (void)e;
    *ret = mem_new(ctx, struct alloc_resource_usage);
    return 0;
}

void
client_each_usage(struct client *c, client_usage_fn *fn, void *arg)
{
    (void)c;
    (void)fn;
    (void)arg;
}

void
client_each_live(struct client *c, client_alloc_fn *fn, void *arg)
{
    struct allocated_cpu_resources cpu = {.cpu_shares = 20};
    struct allocated_memory_resources memory = {.memory_mb = 30};
    struct allocated_task_resources task = {.cpu = &cpu, .memory = &memory};
    struct allocated_shared_resources shared = {.disk_mb = 300};
    struct allocated_resources r = {.shared = &shared};
    auto_mem void *ctx = mem_ctx("live");
    (void)c;
    map_put(ctx, r.tasks, "t")->v = &task;
    fn(arg, &(struct allocation){.allocated_resources = &r});
}

void
server_figures(struct server *s, struct server_figures *ret)
{
    (void)s;
    *ret = (struct server_figures){.evals_ready = 4,
                                   .heartbeats = 5,
                                   .writes = 12,
                                   .entered = {2, 1, 1},
                                   .commit = {2, 5000000, 1000000, 4000000}};
}

void
server_gossip_figures(struct server *s, struct server_gossip_figures *ret)
{
    (void)s;
    *ret = (struct server_gossip_figures){.health = 2, .sent = 7};
}

struct host_stats *
client_host_stats(struct client *c, const void *ctx)
{
    struct host_stats *s = mem_new(ctx, struct host_stats);
    (void)c;
    s->uptime = 5;
    return s;
}

void
client_fs(struct client *c, const char *id, const char *path, bool stat, client_files_done *done,
          void *arg)
{
    struct err e = ERR_INIT;
    (void)c;
    (void)id;
    (void)stat;
    err_set(&e, -ERR_NOT_FOUND, "no such directory '%s'", path);
    done(arg, &e, NULL);
}

struct client_stream {
    int piece;
};

void
client_stream_open(struct client *c, const struct client_stream_request *r,
                   client_stream_opened *opened, void *arg)
{
    (void)c;
    snprintf(fake_text, sizeof(fake_text), "%s %s follow=%d plain=%d", str_or(r->task, ""),
             str_or(r->log_type, ""), r->follow, r->plain);
    opened(arg, NULL, mem_new(NULL, struct client_stream));
}

ssize_t
client_stream_read(struct client_stream *s, void *buf, size_t n, void (*ready)(void *arg),
                   void *arg)
{
    (void)ready;
    (void)arg;
    (void)n;
    if (s->piece == 3)
        return 0;
    memcpy(buf, "line\n", 5);
    s->piece++;
    return 5;
}

void
client_stream_close(struct client_stream *s)
{
    talloc_free(s);
}

/* --- commands in tasks --- */

struct fake_exec fake_exec = {.in = BUF_INIT(256 << 20)};

char *
client_gone_words(const struct client *c, const void *ctx, const char *alloc_id)
{
    (void)c;
    (void)alloc_id;
    return mem_strdup(ctx, "its files were collected");
}

bool
client_has_task(const struct client *c, const char *alloc_id, const char *task)
{
    return client_has_alloc(c, alloc_id) && str_eq(task, "web");
}

struct client_exec *
client_exec_open(struct client *c, const char *id, const struct client_exec_request *r,
                 const struct client_exec_events *events, void *arg)
{
    static char one;
    struct buf b = BUF_INIT(sizeof(fake_text));

    buf_printf(&b, "%s %s tty=%d ", id, r->task, r->tty);
    for (size_t i = 0; i < r->command.n; i++)
        buf_printf(&b, "%s|", r->command.v[i]);
    snprintf(fake_text, sizeof(fake_text), "%s", buf_str(&b));
    buf_done(&b);
    buf_done(&fake_exec.in);
    fake_exec = (struct fake_exec){
        .x = (struct client_exec *)&one, .events = events, .arg = arg, .in = BUF_INIT(256 << 20)};
    (void)c;
    return fake_exec.x;
}

int
client_exec_write(struct client_exec *x, const void *data, size_t n)
{
    (void)x;
    if (fake_exec.write_rc != -ERR_LIMIT)
        buf_put(&fake_exec.in, data, n);
    return fake_exec.write_rc;
}

void
client_exec_close_input(struct client_exec *x)
{
    (void)x;
    fake_exec.input_closed = true;
}

void
client_exec_resize(struct client_exec *x, int64_t rows, int64_t columns)
{
    (void)x;
    fake_exec.rows = rows;
    fake_exec.columns = columns;
}

void
client_exec_pause(struct client_exec *x, bool on)
{
    (void)x;
    fake_exec.paused = on;
}

void
client_exec_free(struct client_exec *x)
{
    (void)x;
    fake_exec.x = NULL;
}

/* --- server, configuration, job files --- */

bool
server_is_leader(const struct server *s)
{
    (void)s;
    return true;
}

uint64_t
server_applied(struct server *s)
{
    (void)s;
    return 77;
}

void
server_info(struct server *s, const void *ctx, struct server_info *ret)
{
    (void)s;
    (void)ctx;
    *ret = (struct server_info){
        .leader_addr = "127.0.0.1:4647", .expect = 1, .role = 2, .peers = 1, .members = 1};
}

bool
server_leader_addr(const struct server *s, char *out, size_t size)
{
    (void)s;
    return str_copy(out, size, "127.0.0.1:4647");
}

struct value *
config_value(const void *ctx, const struct agent_config *c)
{
    (void)c;
    return value_map(ctx);
}

int
jobspec_parse(const void *ctx, const struct jobspec_input *in, struct job **ret,
              struct hcl_diags *d)
{
    (void)d;
    if (memchr(in->s, '!', in->n))
        return -ERR_INVALID;
    *ret = mem_new(ctx, struct job);
    (*ret)->id = "parsed";
    return 0;
}

char *
hcl_diags_text(const void *ctx, const struct hcl_diags *d, bool warnings)
{
    (void)d;
    (void)warnings;
    return mem_strdup(ctx, "input.hcl:1,1: no");
}

void
job_canonicalize(const void *ctx, struct job *job)
{
    (void)ctx;
    job->name = job->id;
}

/* --- what tests hold a server by (server/hook.h) --- */

#ifdef FAULT_INJECTION
uint64_t
test_hook_rule(const char *point, const struct value *match, int64_t count)
{
    (void)point;
    (void)match;
    (void)count;
    return 0;
}

bool
test_hook_release(uint64_t id)
{
    (void)id;
    return false;
}

void
test_hook_ask(struct server *s, const char *what, const struct value *body, test_answer_fn *done, void *arg)
{
    (void)s;
    (void)what;
    (void)body;
    done(arg, 404, "{}");
}

struct value *
test_hook_held(const void *ctx)
{
    (void)ctx;
    return NULL;
}
#endif
