/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: the servers of a cluster: autopilot, and the workers of the agent's own.
 */
#include "agent/api/api.h"
#include "common/mem.h"
#include "common/num.h"

enum { HEALTH_BYTES_MAX = 1 << 20 };

/* --- autopilot --- */

static void
autopilot_got(struct request *a, const void *resp)
{
    const struct autopilot_get_response *r = resp;

    reply_meta(a, r->meta);
    reply_json(a, &type_autopilot_configuration, r->config);
}

static void
autopilot_get(struct request *a)
{
    call_server(a, RPC_OPERATOR_AUTOPILOT_GET, mem_new(a, struct empty), autopilot_got);
}

static void
autopilot_was_set(struct request *a, const void *resp)
{
    const struct scheduler_set_configuration_response *r = resp;

    reply_index(a, r->index);
    reply_value(a, value_bool(a, r->updated));
}

/* Nomad's status of a configuration that is wrong. */
static bool
autopilot_refused(struct request *a, const struct err *e)
{
    if (e->code == -ERR_INVALID)
        reply_fail(a, 400, "%s", e->text);
    return e->code == -ERR_INVALID;
}

static void
autopilot_set(struct request *a)
{
    struct autopilot_configuration *c = request_body(a, &type_autopilot_configuration, false);

    if (!c)
        return; /* answered, and gone */
    a->on_error = autopilot_refused;
    const char *cas = http_query(a->req, "cas");
    struct autopilot_set_request *r = mem_new(a, struct autopilot_set_request);
    r->config = c;
    r->cas = cas != NULL;
    if (cas && num_parse_u64(cas, &r->modify_index) < 0)
        reply_fail(a, 400, "Error parsing cas value: \"%s\" is no number", cas);
    else
        call_server(a, RPC_OPERATOR_AUTOPILOT_SET, r, autopilot_was_set);
}

static void
health_done(struct request *a, const void *resp)
{
    const struct operator_health_reply *r = resp;

    if (r->healthy) {
        reply_json(a, &type_operator_health_reply, r);
        return;
    }
    struct buf b = BUF_INIT(HEALTH_BYTES_MAX);
    json_encode(&b, &type_operator_health_reply, r, a->pretty ? JSON_PRETTY : 0);
    http_reply_buf(a->req, 429, "application/json", &b);
}

static void
autopilot_health(struct request *a)
{
    call_server(a, RPC_OPERATOR_SERVER_HEALTH, mem_new(a, struct empty), health_done);
}

/* --- workers, of the server that is asked --- */

static void
config_done(struct request *a, const void *resp)
{
    const struct scheduler_workers_response *r = resp;
    struct scheduler_workers_config c = {.server_id = r->server_id,
                                         .num_schedulers = (int64_t)r->schedulers.n};

    if (r->schedulers.n > 0)
        c.enabled_schedulers = r->schedulers.v[0]->enabled_schedulers;
    reply_json(a, &type_scheduler_workers_config, &c);
}

static void
workers_get(struct request *a)
{
    call_server(a, RPC_SCHED_WORKERS, mem_new(a, struct empty), method_done);
}

static void
workers_config(struct request *a)
{
    call_server(a, RPC_SCHED_WORKERS, mem_new(a, struct empty), config_done);
}

const struct route routes_servers[] = {
    {VERB_GET, "/v1/operator/autopilot/configuration", NULL, autopilot_get,
     RPC_OPERATOR_AUTOPILOT_GET, BY_SERVER},
    {VERB_WRITE, "/v1/operator/autopilot/configuration", NULL, autopilot_set,
     RPC_OPERATOR_AUTOPILOT_SET, BY_SERVER},
    {VERB_GET, "/v1/operator/autopilot/health", NULL, autopilot_health, RPC_OPERATOR_SERVER_HEALTH,
     BY_SERVER},
    {VERB_GET, "/v1/agent/schedulers", NULL, workers_get, RPC_SCHED_WORKERS, BY_SERVER},
    {VERB_GET, "/v1/agent/schedulers/config", NULL, workers_config, RPC_SCHED_WORKERS, BY_SERVER},
    ROUTES_END,
};
