/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/client/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/terms.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "tests/lib/test.h"

/* --- servers --- */

/* Every call of the client says which node it is, with the same secret. */
static void
proved(struct world *w, struct rpc_call *call)
{
    const struct rpc_envelope *env = rpc_call_envelope(call);

    ck_assert_str_eq(str_or(env->node_id, ""), client_node_id(w->client));
    ck_assert(uuid_valid(str_or(env->node_secret, "")));
    if (w->secret[0] == '\0')
        (void)str_copy(w->secret, sizeof(w->secret), env->node_secret);
    ck_assert_str_eq(w->secret, env->node_secret);
}

static void
on_register(void *arg, struct rpc_call *call, const void *req)
{
    struct world *w = arg;
    proved(w, call);
    const struct node_register_request *r = req;
    w->registrations++;
    mem_free(w->node);
    w->node = codec_clone(w->ctx, &type_node, r->node);
    struct node_update_response resp = {.heartbeat_ttl = 10 * NS_PER_S, .index = ++w->index};
    rpc_reply(call, &resp);
}

static void
on_heartbeat(void *arg, struct rpc_call *call, const void *req)
{
    (void)req;
    struct world *w = arg;
    proved(w, call);
    w->heartbeats++;
    if (w->fail_heartbeat) {
        rpc_failf(call, w->fail_heartbeat, "no");
        w->fail_heartbeat = 0;
        return;
    }
    struct node_update_response resp = {.heartbeat_ttl = 10 * NS_PER_S};
    if (w->heartbeats == 1)
        resp.index = ++w->index; /* the node became ready */
    rpc_reply(call, &resp);
}

static void
answer_list(struct world *w, struct rpc_call *call)
{
    struct query_meta meta = {.index = w->index};
    struct node_client_allocs_response resp = {.meta = &meta};
    void *ctx = rpc_call_ctx(call);
    for (size_t i = 0; i < w->n; i++)
        if (w->allocs[i].listed)
            map_put(ctx, resp.allocs, w->allocs[i].a->id)->v =
                (int64_t)w->allocs[i].a->alloc_modify_index;
    rpc_reply(call, &resp);
}

static void
list_cancelled(void *arg)
{
    struct world *w = arg;
    struct rpc_call *call = TAKE(w->parked);
    if (call)
        rpc_failf(call, -ERR_CANCELED, "cancelled");
}

static void
on_list(void *arg, struct rpc_call *call, const void *req)
{
    struct world *w = arg;
    proved(w, call);
    const struct node_client_allocs_request *r = req;
    size_t listed = 0;
    if (rpc_call_envelope(call)->stale && w->lag == NO_NODE) {
        rpc_failf(call, -ERR_FORBIDDEN, "registered by another agent since");
        return;
    }
    for (size_t i = 0; i < w->n; i++)
        listed += w->allocs[i].listed;
    bool news = r->known != 0 && r->known != listed + 1;
    if (rpc_call_envelope(call)->min_index >= w->index && !news) {
        ck_assert(!w->parked);
        w->parked = call;
        rpc_call_on_cancel(call, list_cancelled, w);
        return;
    }
    answer_list(w, call);
}

static struct world_alloc *
find(struct world *w, const char *id)
{
    for (size_t i = 0; i < w->n; i++)
        if (strcmp(w->allocs[i].a->id, id) == 0)
            return &w->allocs[i];
    return NULL;
}

/* Starts jobs as a server does: each job once, unless it is known; `per_get` at once. */
static void
on_get(void *arg, struct rpc_call *call, const void *req)
{
    struct world *w = arg;
    proved(w, call);
    const struct alloc_get_allocs_request *r = req;
    struct alloc_get_allocs_response resp = {0};
    void *ctx = rpc_call_ctx(call);
    bool stale = rpc_call_envelope(call)->stale;
    w->gets++;
    if (stale && w->lag == NO_NODE) {
        rpc_failf(call, -ERR_NOT_FOUND, "node not found");
        return;
    }
    for (; resp.handled < r->alloc_ids.n && (!w->per_get || resp.handled < w->per_get);
         resp.handled++) {
        struct world_alloc *x = find(w, r->alloc_ids.v[resp.handled]);
        if (!x || (stale && w->lag == NO_ALLOC))
            continue;
        if (x->too_large) {
            if (resp.handled > 0)
                break;
            rpc_failf(call, -ERR_LIMIT, "too large");
            return;
        }
        struct sent_alloc *s = mem_new(ctx, struct sent_alloc);
        s->alloc = mem_dup(ctx, x->a, sizeof(*x->a));
        s->alloc->job = NULL;
        if (stale && w->lag == OLDER_ALLOC) {
            s->alloc->alloc_modify_index--;
            s->alloc->desired_status = ALLOC_DESIRED_RUN;
        }
        s->job_modify_index = x->a->job->job_modify_index;
        list_add(ctx, resp.allocs, s);
        bool has = false;
        for (size_t i = 0; i < r->known.n; i++)
            has = has || (strcmp(r->known.v[i]->id, x->a->job->id) == 0 &&
                          r->known.v[i]->job_modify_index == s->job_modify_index);
        for (size_t i = 0; i < resp.jobs.n; i++)
            has = has || resp.jobs.v[i] == x->a->job;
        if (!has)
            list_add(ctx, resp.jobs, x->a->job);
        w->jobs_sent += !has;
    }
    rpc_reply(call, &resp);
}

static void
on_update(void *arg, struct rpc_call *call, const void *req)
{
    struct world *w = arg;
    proved(w, call);
    const struct node_update_alloc_request *r = req;
    w->updates++;
    if (w->fail_update) {
        rpc_failf(call, w->fail_update, "not now");
        w->fail_update = 0;
        return;
    }
    for (size_t i = 0; i < r->allocs.n; i++) {
        struct world_alloc *x = find(w, r->allocs.v[i]->id);
        ck_assert_ptr_nonnull(x);
        mem_free(x->last);
        x->last = codec_clone(w->ctx, &type_allocation, r->allocs.v[i]);
        x->reports++;
    }
    rpc_reply(call, &(struct write_response){.index = w->index});
}

static void
on_names(void *arg, struct rpc_call *call, const void *req)
{
    struct world *w = arg;
    proved(w, call);
    const struct service_set_request *r = req;
    struct world_alloc *x = find(w, r->alloc_id);
    w->asked_names++;
    for (size_t i = ARRAY_LEN(w->fail_names); i > 0; i--)
        if (w->fail_names[i - 1]) {
            rpc_failf(call, w->fail_names[i - 1], "not now");
            w->fail_names[i - 1] = 0;
            return;
        }
    ck_assert_ptr_nonnull(x);
    mem_free(x->names);
    x->names = codec_clone(w->ctx, &type_service_set_request, r);
    x->told++;
    x->fewest = r->services.n < x->fewest ? r->services.n : x->fewest;
    rpc_reply(call, &(struct write_response){.index = ++w->index});
}

static void
on_drain(void *arg, struct rpc_call *call, const void *req)
{
    struct world *w = arg;
    const struct node_drain_request *r = req;
    if (w->fail_drain) {
        rpc_failf(call, w->fail_drain, "no");
        w->fail_drain = 0;
        return;
    }
    ck_assert_str_eq(r->node_id, client_node_id(w->client));
    ck_assert_ptr_nonnull(str_map_get(&r->meta, "message"));
    w->drain_deadline = r->drain_spec->deadline;
    rpc_reply(call, &(struct node_eligibility_update_response){.index = ++w->index});
}

static void
answer_node(struct world *w, struct rpc_call *call, bool drains)
{
    struct query_meta meta = {.index = ++w->index};
    struct drain_strategy d = {0};
    struct drain_metadata last = {.status = drains ? "draining" : "complete"};
    struct node n = {.drain_strategy = drains ? &d : NULL, .last_drain = &last};
    rpc_reply(call, &(struct node_response){.node = &n, .meta = &meta});
}

static void
watch_cancelled(void *arg)
{
    struct world *w = arg;
    rpc_failf(TAKE(w->drain_watch), -ERR_CANCELED, "cancelled");
}

static void
on_node(void *arg, struct rpc_call *call, const void *req)
{
    struct world *w = arg;
    (void)req;
    if (rpc_call_envelope(call)->min_index == 0) {
        answer_node(w, call, true);
        return;
    }
    w->drain_watch = call;
    rpc_call_on_cancel(call, watch_cancelled, w);
}

void
world_drained(struct world *w)
{
    struct rpc_call *call = TAKE(w->drain_watch);
    rpc_call_on_cancel(call, NULL, NULL);
    answer_node(w, call, false);
}

static const struct rpc_service services[] = {
    {RPC_NODE_UPDATE_DRAIN, on_drain},         {RPC_NODE_GET_NODE, on_node},
    {RPC_NODE_REGISTER, on_register},          {RPC_NODE_UPDATE_STATUS, on_heartbeat},
    {RPC_NODE_GET_CLIENT_ALLOCS, on_list},     {RPC_ALLOC_GET_ALLOCS, on_get},
    {RPC_NODE_UPDATE_ALLOC, on_update},        {RPC_SERVICE_SET, on_names},
};

/* --- the world --- */

void
world_start(struct world *w, unsigned uid)
{
    memset(w, 0, sizeof(*w));
    log_set_level(getenv("RIG_LOG") ? LOG_DEBUG : LOG_ERROR);
    rig_start(&w->rig, uid);
    w->ctx = mem_ctx("world");
    w->index = 10;
    w->cfg = (struct client_config){.agent = &w->agent,
                                    .state_dir = mem_printf(w->ctx, "%s/client", w->rig.dir),
                                    .alloc_dir = w->rig.policy.alloc_dir,
                                    .name = "node1",
                                    .dev = true,
                                    .version = "0.1"};
}

void
world_client(struct world *w)
{
    struct err e = ERR_INIT;
    w->loop = loop_new();
    w->rpc = rpc_local(w->loop, services, ARRAY_LEN(services), w);
    w->warden = warden_client_new(NULL, w->rig.socket);
    w->client = client_new(w->loop, &w->cfg, w->rpc, w->warden, &e);
    ck_assert_msg(w->client != NULL, "%s", e.text);
    ck_assert_msg(client_start(w->client, &e) == 0, "%s", e.text);
}

static void
on_stopped(void *arg)
{
    *(bool *)arg = true;
}

void
world_client_free(struct world *w)
{
    client_free(w->client);
    warden_client_free(w->warden);
    list_cancelled(w);
    rpc_client_close(w->rpc);
    loop_free(w->loop);
    w->client = NULL;
}

void
world_client_stop(struct world *w)
{
    bool stopped = false;
    client_stop(w->client, on_stopped, &stopped);
    ck_assert(loop_run_until(w->loop, &stopped, 10000));
    world_client_free(w);
}

void
world_stop(struct world *w)
{
    if (w->client)
        world_client_stop(w);
    rig_stop(&w->rig);
    talloc_free(w->ctx);
}

void
world_turn(struct world *w)
{
    bool never = false;
    loop_run_until(w->loop, &never, 3);
}

void
world_wake(struct world *w)
{
    struct rpc_call *call = TAKE(w->parked);
    if (call)
        answer_list(w, call);
}

void
world_changed(struct world *w, struct world_alloc *x)
{
    w->index++;
    x->a->alloc_modify_index = w->index;
    world_wake(w);
}

struct world_alloc *
world_add(struct world *w, const char *type, const char *driver, const char *config,
          const char *group)
{
    char id[UUID_TEXT];
    struct err e = ERR_INIT;
    const char *json =
        mem_printf(w->ctx,
                   "{\"ID\":\"%s\",\"Name\":\"j.g[0]\",\"JobID\":\"j\",\"TaskGroup\":\"g\","
                   "\"Namespace\":\"default\","
                   "\"DesiredStatus\":\"run\",\"ClientStatus\":\"pending\",\"Job\":{\"ID\":\"j\","
                   "\"Type\":\"%s\","
                   "\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"%s\","
                   "\"KillTimeout\":3000000000,\"Config\":%s}]%s}]}}",
                   uuid_make(id), type, driver, config, group);
    void *a = NULL;
    ck_assert_msg(json_decode(w->ctx, &type_allocation, SLICE(json, strlen(json)), BUDGET(1 << 20), &a, &e) ==
                      0,
                  "%s", e.text);
    ck_assert_uint_lt(w->n, WORLD_ALLOCS);
    struct world_alloc *x = &w->allocs[w->n++];
    *x = (struct world_alloc){.a = a, .listed = true};
    world_changed(w, x);
    x->a->job->job_modify_index = w->index;
    return x;
}

struct world_alloc *
world_another(struct world *w, const struct world_alloc *of)
{
    char id[UUID_TEXT];
    ck_assert_uint_lt(w->n, WORLD_ALLOCS);
    struct world_alloc *x = &w->allocs[w->n++];
    *x = (struct world_alloc){.a = mem_dup(w->ctx, of->a, sizeof(*of->a)), .listed = true};
    x->a->id = mem_strdup(w->ctx, uuid_make(id));
    world_changed(w, x);
    return x;
}

struct world_alloc *
world_script(struct world *w, const char *type, const char *script)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    buf_puts(&b, "{\"command\":\"/bin/sh\",\"args\":[\"-c\",");
    json_put_string(&b, script, strlen(script));
    buf_puts(&b, "]}");
    return world_add(w, type, "raw_exec", buf_str(&b),
                     ",\"RestartPolicy\":{\"Attempts\":0,\"Mode\":\"fail\"}");
}

const struct task_state *
world_task(const struct world_alloc *x)
{
    return x->last && x->last->task_states.n > 0 ? x->last->task_states.v[0].v : NULL;
}

const struct task_event *
world_event(const struct world_alloc *x, const char *type)
{
    const struct task_state *s = world_task(x);
    for (size_t i = s ? s->events.n : 0; i > 0; i--)
        if (strcmp(s->events.v[i - 1]->type, type) == 0)
            return s->events.v[i - 1];
    return NULL;
}

bool
world_status(const struct world_alloc *x, const char *status)
{
    return x->last && str_eq(x->last->client_status, status);
}

int
world_lines(const struct world *w, const struct world_alloc *x, const char *path)
{
    auto_mem void *tmp = mem_ctx("lines");
    char *text = NULL;
    const char *file = mem_printf(tmp, "%s/%s/%s", w->cfg.alloc_dir, x->a->id, path);
    if (file_read(tmp, AT_FDCWD, file, 1 << 20, &text, NULL) < 0)
        return -1;
    int n = 0;
    for (const char *p = text; *p; p++)
        n += *p == '\n';
    return n;
}

void
world_on_done(void *arg, const struct err *e)
{
    struct world_done *d = arg;
    ck_assert(!d->done);
    d->done = true;
    if (e)
        d->e = *e;
}

/* --- streams --- */

struct reader {
    struct client_stream *s;
    struct err e;
    struct buf out;
    bool done;
};

static void
pull(void *arg)
{
    struct reader *r = arg;
    char block[4096];
    for (;;) {
        ssize_t n = client_stream_read(r->s, block, sizeof(block), pull, r);
        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            r->e.code = (int)n;
            r->done = true;
            return;
        }
        buf_put(&r->out, block, (size_t)n);
    }
}

static void
on_stream(void *arg, const struct err *e, struct client_stream *s)
{
    struct reader *r = arg;
    r->s = s;
    if (e) {
        r->e = *e;
        r->done = true;
    } else {
        pull(r);
    }
}

char *
world_read(struct world *w, const struct client_stream_request *req)
{
    struct reader r = {.out = BUF_INIT(64 << 20)};
    client_stream_open(w->client, req, on_stream, &r);
    world_until(w, r.done);
    char *text = r.e.code ? mem_printf(w->ctx, "error %d: %s", -r.e.code, r.e.text)
                          : mem_strdup(w->ctx, buf_str(&r.out));
    if (r.s)
        client_stream_close(r.s);
    buf_done(&r.out);
    return text;
}
