/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a server's configuration that binds jobs: priorities, counts, the first
 * configuration of the scheduler, events.
 */
#include <inttypes.h>

#include "agent/config/config_int.h"
#include "common/str.h"

/* Nomad's bounds of job_max_priority, and the lowest job_default_priority. */
enum { PRIORITY_MAX_LEAST = 100, PRIORITY_MAX_MOST = 32766, PRIORITY_DEFAULT_LEAST = 50 };
enum { EVENT_BUFFER_MAX = 4096 };

int
config_jobs_check(const struct agent_server *s, struct err *e)
{
    const struct agent_scheduler_config *c = s->default_scheduler_config;

    if (s->job_max_priority < PRIORITY_MAX_LEAST || s->job_max_priority > PRIORITY_MAX_MOST)
        return err_set(e, -ERR_INVALID, "server.job_max_priority = %" PRId64 " is outside %d..%d",
                       s->job_max_priority, PRIORITY_MAX_LEAST, PRIORITY_MAX_MOST);
    if (s->job_default_priority < PRIORITY_DEFAULT_LEAST ||
        s->job_default_priority >= s->job_max_priority)
        return err_set(e, -ERR_INVALID,
                       "server.job_default_priority = %" PRId64
                       " is not %d or more and less than job_max_priority, %" PRId64,
                       s->job_default_priority, PRIORITY_DEFAULT_LEAST, s->job_max_priority);
    if (s->job_max_count.v < 0)
        return err_set(e, -ERR_INVALID,
                       "server.job_max_count = %" PRId64 " is negative: 0 is no limit",
                       s->job_max_count.v);
    if (!STR_ONE_OF(c->scheduler_algorithm, "binpack", "spread"))
        return err_set(e, -ERR_INVALID,
                       "server.default_scheduler_config: scheduler_algorithm \"%s\" is not "
                       "binpack or spread",
                       c->scheduler_algorithm);
    if (c->node_limit_for_feasibility_checks < 0)
        return err_set(e, -ERR_INVALID,
                       "server.default_scheduler_config: node_limit_for_feasibility_checks is "
                       "negative");
    if (s->event_buffer_size.set &&
        (s->event_buffer_size.v < 1 || s->event_buffer_size.v > EVENT_BUFFER_MAX))
        return err_set(e, -ERR_INVALID, "server.event_buffer_size = %" PRId64 " is not 1 to %d",
                       s->event_buffer_size.v, EVENT_BUFFER_MAX);
    return 0;
}
