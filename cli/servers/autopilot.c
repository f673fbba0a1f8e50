/* SPDX-License-Identifier: Apache-2.0
 *
 * operator autopilot get-config, set-config and health. A change is the whole configuration, read
 * before, and accepted only if it is still the same then.
 */
#include <string.h>

#include "cli/api.h"
#include "cli/format.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/num.h"

#define CONFIG "/v1/operator/autopilot/configuration"
#define HEALTH "/v1/operator/autopilot/health"

int
cmd_autopilot_get(struct cmd *c)
{
    struct output out = {false, NULL};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const struct autopilot_configuration *a =
        api_read(c, api_target(c, CONFIG, NULL), &type_autopilot_configuration,
                 "Error querying Autopilot configuration");
    if (!a)
        return 1;
    if (output_object(c, &out, &type_autopilot_configuration, a, &rc))
        return rc;
    cmd_say(c, "CleanupDeadServers = %s", fmt_bool(a->cleanup_dead_servers));
    cmd_say(c, "LastContactThreshold = %s", str_or(a->last_contact_threshold, "0s"));
    cmd_say(c, "MaxTrailingLogs = %s", fmt_u64(c, a->max_trailing_logs));
    cmd_say(c, "MinQuorum = %s", fmt_u64(c, a->min_quorum));
    cmd_say(c, "ServerStabilizationTime = %s", str_or(a->server_stabilization_time, "0s"));
    cmd_say(c, "EnableRedundancyZones = %s", fmt_bool(a->enable_redundancy_zones));
    cmd_say(c, "DisableUpgradeMigration = %s", fmt_bool(a->disable_upgrade_migration));
    cmd_say(c, "EnableCustomUpgrades = %s", fmt_bool(a->enable_custom_upgrades));
    return 0;
}

/* The options of set-config; NULL: not given. */
struct given {
    const char *cleanup, *trailing, *quorum, *contact, *stable, *zones, *migration, *upgrades;
};

static int
given_flag(struct cmd *c, const char *name, const char *text, bool *dst)
{
    if (text != NULL && num_parse_bool(text, dst) != 0)
        return cmd_fail(c, "-%s is true or false, not \"%s\"", name, text);
    return 0;
}

static int
given_number(struct cmd *c, const char *name, const char *text, uint64_t *dst)
{
    if (text != NULL && num_parse_u64(text, dst) != 0)
        return cmd_fail(c, "-%s is a number, not \"%s\"", name, text);
    return 0;
}

static int
given_time(struct cmd *c, const char *name, const char *text, const char **dst)
{
    int64_t ns;

    if (text == NULL)
        return 0;
    if (duration_parse(text, &ns) != 0 || ns < 0)
        return cmd_fail(c, "-%s is a duration as \"200ms\" or \"10s\", not \"%s\"", name, text);
    *dst = text;
    return 0;
}

static int
given_put(struct cmd *c, const struct given *g, struct autopilot_configuration *a)
{
    return given_flag(c, "cleanup-dead-servers", g->cleanup, &a->cleanup_dead_servers) ||
           given_number(c, "max-trailing-logs", g->trailing, &a->max_trailing_logs) ||
           given_number(c, "min-quorum", g->quorum, &a->min_quorum) ||
           given_time(c, "last-contact-threshold", g->contact, &a->last_contact_threshold) ||
           given_time(c, "server-stabilization-time", g->stable, &a->server_stabilization_time) ||
           given_flag(c, "enable-redundancy-zones", g->zones, &a->enable_redundancy_zones) ||
           given_flag(c, "disable-upgrade-migration", g->migration,
                      &a->disable_upgrade_migration) ||
           given_flag(c, "enable-custom-upgrades", g->upgrades, &a->enable_custom_upgrades);
}

/* The answer is true, or false where another one was faster. */
static int
autopilot_put(struct cmd *c, const struct autopilot_configuration *a)
{
    auto_buf struct buf b = BUF_INIT(1 << 16);
    struct http_ask *ask =
        api_ask(c, "PUT", api_target(c, CONFIG, "cas", fmt_u64(c, a->modify_index), NULL));
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;

    json_encode(&b, &type_autopilot_configuration, a, 0);
    ask->body = b.data;
    ask->body_len = b.len;
    ask->content_type = "application/json";
    if (c->fetch(c, c->address, ask, &r, &e) < 0)
        return cmd_fail(c, "Error setting Autopilot configuration: %s", e.text);
    if (r->status != 200)
        return cmd_fail(
            c, "Error setting Autopilot configuration: Unexpected response code: %d (%.900s)",
            r->status, r->body);
    if (r->body_len < 4 || strncmp(r->body, "true", 4) != 0) {
        cmd_say(c, "Configuration could not be atomically updated, please try again");
        return 1;
    }
    cmd_say(c, "Configuration updated!");
    return 0;
}

int
cmd_autopilot_set(struct cmd *c)
{
    struct given g = {0};
    const struct opt opts[] = {{"cleanup-dead-servers", OPT_STRING, &g.cleanup, "<bool>",
                                "Whether servers that are dead are taken out of the cluster."},
                               {"disable-upgrade-migration", OPT_STRING, &g.migration, "<bool>",
                                "Refused: of Nomad Enterprise."},
                               {"enable-custom-upgrades", OPT_STRING, &g.upgrades, "<bool>",
                                "Refused: of Nomad Enterprise."},
                               {"enable-redundancy-zones", OPT_STRING, &g.zones, "<bool>",
                                "Refused: of Nomad Enterprise."},
                               {"last-contact-threshold", OPT_STRING, &g.contact, "<duration>",
                                "A server that is silent for longer is not well."},
                               {"max-trailing-logs", OPT_STRING, &g.trailing, "<n>",
                                "A server that lacks more entries of the log is not well."},
                               {"min-quorum", OPT_STRING, &g.quorum, "<n>",
                                "Dead servers stay members where fewer would be left."},
                               {"server-stabilization-time", OPT_STRING, &g.stable, "<duration>",
                                "A server that was dead for so long is taken out."},
                               {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    struct autopilot_configuration *a =
        api_read(c, api_target(c, CONFIG, NULL), &type_autopilot_configuration,
                 "Error querying for Autopilot configuration");
    if (!a || given_put(c, &g, a) != 0)
        return 1;
    return autopilot_put(c, a);
}

/* --- health --- */

static void
print_health(struct cmd *c, const struct operator_health_reply *r)
{
    struct table t;

    cmd_say(c, "Healthy: %s", fmt_bool(r->healthy));
    cmd_say(c, "FailureTolerance: %lld", (long long)r->failure_tolerance);
    cmd_say(c, "Leader: %s", str_or(r->leader, ""));
    cmd_say(c, "Voters:");
    for (size_t i = 0; i < r->voters.n; i++)
        cmd_say(c, "\t%s", r->voters.v[i]);
    cmd_say(c, "Servers:");
    table_init(&t, c, 12);
    table_row(&t, "ID", "Name", "Address", "SerfStatus", "Version", "Leader", "Voter", "Healthy",
              "LastContact", "LastTerm", "LastIndex", "StableSince");
    for (size_t i = 0; i < r->servers.n; i++) {
        const struct server_health *s = r->servers.v[i];
        table_row(&t, s->id, s->name, s->address, s->serf_status, s->version, fmt_bool(s->leader),
                  fmt_bool(s->voter), fmt_bool(s->healthy), s->last_contact,
                  fmt_u64(c, s->last_term), fmt_u64(c, s->last_index),
                  fmt_time(c, s->stable_since));
    }
    table_print(&t);
}

int
cmd_autopilot_health(struct cmd *c)
{
    struct output out = {false, NULL};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    void *obj;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (c->fetch(c, c->address, api_ask(c, "GET", api_target(c, HEALTH, NULL)), &r, &e) < 0)
        return cmd_fail(c, "Error querying Autopilot health: %s", e.text);
    if (r->status != 200 && r->status != 429)
        return cmd_fail(c, "Error querying Autopilot health: Unexpected response code: %d (%.900s)",
                        r->status, r->body);
    if (json_decode(c, &type_operator_health_reply, SLICE(r->body, r->body_len),
                    BUDGET((size_t)64 << 20), &obj, &e) < 0)
        return cmd_fail(c, "Error querying Autopilot health: %s", e.text);
    const struct operator_health_reply *h = obj;
    if (output_object(c, &out, &type_operator_health_reply, h, &rc))
        return rc != 0 ? rc : !h->healthy;
    print_health(c, h);
    return !h->healthy;
}
