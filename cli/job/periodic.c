/* SPDX-License-Identifier: Apache-2.0
 *
 * job periodic force; and when a periodic job is launched next.
 */
#include <time.h>

#include "api/cron.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/job/job.h"
#include "cli/monitor.h"
#include "common/duration.h"
#include "common/host/zone.h"

/* Prints a time as the clocks of the zone show it. */
static const char *
zone_time(struct cmd *c, const struct zone *z, int64_t at_s)
{
    int64_t until, off = zone_at(z, at_s, &until), min = off / 60;
    time_t local = at_s + off;
    struct tm tm;
    char t[64];
    if (!gmtime_r(&local, &tm) || strftime(t, sizeof(t), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
        return "";
    if (min == 0)
        return mem_printf(c, "%sZ", t);
    min = min < 0 ? -min : min;
    return mem_printf(c, "%s%c%02d:%02d", t, off < 0 ? '-' : '+', (int)(min / 60), (int)(min % 60));
}

int
job_next_launch(struct cmd *c, const struct job *j, const char **ret, struct err *e)
{
    const struct zone *z;
    struct cron_set set;
    char d[DURATION_TEXT];
    int64_t now_s = cmd_now(c) / NS_PER_S;
    if (zone_find(j->periodic->time_zone, &z, e) < 0 ||
        cron_set_parse(c, j->periodic, z, &set, e) < 0)
        return e->code;
    int64_t at = cron_set_next(&set, now_s);
    *ret = at == CRON_NEVER ? "none"
                            : mem_printf(c, "%s (%s from now)", zone_time(c, z, at),
                                         duration_format((at - now_s) * NS_PER_S, d));
    return 0;
}

void
job_say_next_launch(struct cmd *c, const struct job *j)
{
    struct err e = ERR_INIT;
    const char *next;
    if (job_next_launch(c, j, &next, &e) < 0)
        cmd_warn(c, "Error determining next launch time: %s", e.text);
    else
        cmd_say(c, "Approximate next launch time: %s", next);
}

int
cmd_job_periodic_force(struct cmd *c)
{
    struct follow o = {.detach = false};
    const struct opt opts[] = {FOLLOW_OPTS(o), {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct job_list_stub *stub =
        api_find_job_of(c, c->args[0], "Periodic is not nil", "periodic ");
    if (!stub)
        return 1;
    const struct change force = {
        .target = api_target(c, "/v1/job/%/periodic/force", stub->id, NULL),
        .answer = &type_periodic_force_response,
        .failed = mem_printf(c, "Error forcing periodic job \"%s\"", stub->id)};
    return monitor_change(c, &o, &force, "Force periodic successful\nEvaluation ID: ");
}
