/* SPDX-License-Identifier: Apache-2.0
 *
 * Autopilot's configuration and the health of servers (server/autopilot.h).
 */
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/call/method.h"

static int
autopilot_get_run(struct read *r, struct state_txn *t, struct err *e)
{
    struct autopilot_get_response *resp = read_resp(r);

    (void)e;
    resp->config = server_autopilot(r->s, resp, t);
    r->index = state_index(t, r->row->tables);
    return 0;
}

const struct read_row read_operator_autopilot_get = {.tables = STATE_BIT(STATE_AUTOPILOT),
                                                     .run = autopilot_get_run};

static int
autopilot_check(const char *name, const char **text, struct err *e)
{
    int64_t ns = 0;

    *text = str_or(*text, "0s");
    if (duration_parse(*text, &ns) == 0 && ns >= 0)
        return 0;
    return err_set(e, -ERR_INVALID, "%s \"%.64s\" is no duration: \"200ms\", \"10s\"", name, *text);
}

static int
prepare_autopilot_set(struct write *w, struct state_txn *t, struct err *e)
{
    const struct autopilot_set_request *req = w->req;
    struct intent_autopilot_set *set = mem_new(w->ctx, struct intent_autopilot_set);
    struct autopilot_configuration *c =
        req->config ? codec_clone(w->ctx, &type_autopilot_configuration, req->config)
                    : mem_new(w->ctx, struct autopilot_configuration);
    const char *enterprise = c->enable_redundancy_zones     ? "EnableRedundancyZones"
                             : c->disable_upgrade_migration ? "DisableUpgradeMigration"
                             : c->enable_custom_upgrades    ? "EnableCustomUpgrades"
                                                            : NULL;

    (void)t;
    if (enterprise != NULL)
        return err_set(e, -ERR_INVALID, "%s is of Nomad Enterprise: leave it false", enterprise);
    if (autopilot_check("LastContactThreshold", &c->last_contact_threshold, e) < 0 ||
        autopilot_check("ServerStabilizationTime", &c->server_stabilization_time, e) < 0)
        return e->code;
    *set = (struct intent_autopilot_set){c, req->cas, req->modify_index};
    w->in.autopilot_set = set;
    return 0;
}

static void
autopilot_set_reply(struct write *w, uint64_t index, struct fsm_result *res)
{
    struct scheduler_set_configuration_response resp = {.updated = res->changed, .index = index};

    rpc_reply(w->call, &resp);
}

const struct write_row write_operator_autopilot_set = {prepare_autopilot_set, autopilot_set_reply,
                                                       .here = true};

void
call_operator_server_health(void *arg, struct rpc_call *call, const void *p)
{
    (void)p;
    rpc_reply(call, server_health(arg, rpc_call_ctx(call)));
}
