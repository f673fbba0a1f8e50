/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: host volumes are made, registered and deleted. A server writes down what is to be, the
 * node does it and reports; who asks is answered when that has come, or after a while without it.
 */
#include "agent/api/api.h"
#include "agent/limits.h"
#include "api/volume/volume.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

struct volume_wait {
    int64_t end_ns;
    uint64_t index;
    bool removes;
    struct id_request by_id;
};

static void volume_seen(struct request *a, const void *resp);

static void
volume_look(struct request *a, uint64_t above)
{
    struct volume_wait *w = a->user;
    int64_t left = w->end_ns - clock_mono_ns();

    a->env.min_index = left > 0 ? above : 0;
    a->env.wait = left > 0 ? left : 0;
    call_server(a, RPC_HOST_VOLUME_GET, &w->by_id, volume_seen);
}

static void
volume_answer(struct request *a, struct host_volume *v)
{
    const struct volume_wait *w = a->user;
    const struct host_volume_write_response resp = {.volume = v, .index = w->index};

    reply_index(a, w->index);
    reply_json(a, &type_host_volume_write_response, &resp);
}

static void
volume_seen(struct request *a, const void *resp)
{
    const struct host_volume_response *r = resp;
    struct volume_wait *w = a->user;
    struct host_volume *v = r->volume;
    bool late = clock_mono_ns() >= w->end_ns;

    if (v == NULL && w->removes) {
        reply_index(a, w->index);
        http_reply(a->req, 200, "application/json", "null", 4);
    } else if (v == NULL) {
        reply_fail(a, 500, "volume %s was deleted meanwhile", w->by_id.id);
    } else if (v->error != NULL) {
        reply_fail(a, 500, "%s; node %s could not do it: volume status -type host %s", v->error,
                   v->node_id, v->id);
    } else if (!late && STR_ONE_OF(v->state, VOLUME_PENDING, VOLUME_DELETING)) {
        volume_look(a, r->meta->index);
    } else if (w->removes) {
        reply_fail(a, 504, "node %s has not removed volume %s yet: it is removed when it is heard",
                   v->node_id, v->id);
    } else {
        volume_answer(a, v);
    }
}

static void
volume_await(struct request *a, const char *id, uint64_t index, bool removes)
{
    struct volume_wait *w = mem_new(a, struct volume_wait);

    *w = (struct volume_wait){.end_ns = clock_mono_ns() + API_VOLUME_WAIT_MS * NS_PER_MS,
                              .index = index,
                              .removes = removes,
                              .by_id = {.id = mem_strdup(w, id)}};
    a->user = w;
    volume_look(a, index > 0 ? index - 1 : 0); /* its answer may be there already */
}

static void
volume_put(struct request *a, const void *resp)
{
    const struct host_volume_write_response *r = resp;

    volume_await(a, r->volume->id, r->index, false);
}

static void
routes_volume_put(struct request *a)
{
    struct host_volume_request *r = request_body(a, &type_host_volume_request, false);

    if (r == NULL)
        return;
    if (r->volume != NULL && !str_empty(r->volume->namespace))
        a->env.namespace = r->volume->namespace;
    call_server(a, a->route->rpc, r, volume_put);
}

static void
volume_deleted(struct request *a, const void *resp)
{
    volume_await(a, a->id, ((const struct write_response *)resp)->index, true);
}

static void
routes_volume_delete(struct request *a)
{
    struct host_volume_delete_request *r = mem_new(a, struct host_volume_delete_request);

    r->id = a->id;
    if (param_bool(a, "force", &r->force))
        call_server(a, RPC_HOST_VOLUME_DELETE, r, volume_deleted);
}

const struct route routes_volume[] = {
    {VERB_WRITE, "/v1/volume/host/create", NULL, routes_volume_put, RPC_HOST_VOLUME_CREATE,
     BY_SERVER},
    {VERB_WRITE, "/v1/volume/host/register", NULL, routes_volume_put, RPC_HOST_VOLUME_REGISTER,
     BY_SERVER},
    {VERB_DELETE, "/v1/volume/host/", "", routes_volume_delete, RPC_HOST_VOLUME_DELETE, BY_SERVER},
    ROUTES_END,
};
