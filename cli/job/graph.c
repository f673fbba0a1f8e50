/* SPDX-License-Identifier: Apache-2.0
 *
 * job graph: how many allocations of a job started and ran in each minute of the last hour, as bars
 * of text. What the servers have collected since is not in it.
 */
#include <inttypes.h>

#include "cli/api.h"
#include "cli/format.h"
#include "common/duration.h"

enum { MINUTES = 60, GRAPH_ROWS = 10 };
#define MINUTE_NS (60 * NS_PER_S)

struct graph {
    int64_t from_ns;
    size_t running[MINUTES], starting[MINUTES], failed[MINUTES];
};

/* The minute of a time, within the hour. */
static int64_t
graph_minute(const struct graph *g, int64_t at)
{
    int64_t m = at < g->from_ns ? 0 : (at - g->from_ns) / MINUTE_NS;
    return m >= MINUTES ? MINUTES - 1 : m;
}

static void
graph_add(struct graph *g, const struct alloc_list_stub *a, int64_t now)
{
    bool lives = STR_ONE_OF(a->client_status, "running", "pending", "unknown");
    int64_t began = 0, ended = 0;

    for (size_t i = 0; i < a->task_states.n; i++) {
        const struct task_state *s = a->task_states.v[i].v;
        if (s == NULL)
            continue;
        if (s->started_at > 0 && (began == 0 || s->started_at < began))
            began = s->started_at;
        if (s->finished_at > ended)
            ended = s->finished_at;
    }
    if (lives)
        ended = now;
    else if (ended <= 0)
        ended = a->modify_time;
    if (ended < g->from_ns)
        return;
    int64_t last = graph_minute(g, ended);
    int64_t first_run = began > 0 ? graph_minute(g, began) : lives ? MINUTES : last + 1;
    for (int64_t m = graph_minute(g, a->create_time); m <= last && m < MINUTES; m++)
        (m < first_run ? g->starting : g->running)[m]++;
    if (STR_ONE_OF(a->client_status, "failed", "lost"))
        g->failed[last]++;
}

static void
graph_print(struct cmd *c, const struct graph *g)
{
    size_t most = 1;
    bool failed = false;
    char line[MINUTES + 1] = "";

    for (size_t m = 0; m < MINUTES; m++)
        if (g->running[m] + g->starting[m] > most)
            most = g->running[m] + g->starting[m];
    size_t per = (most + GRAPH_ROWS - 1) / GRAPH_ROWS, rows = (most + per - 1) / per;
    for (size_t r = rows; r > 0; r--) {
        for (size_t m = 0; m < MINUTES; m++) {
            size_t at = (r - 1) * per;
            line[m] = g->running[m] > at ? '#' : g->running[m] + g->starting[m] > at ? '+' : ' ';
        }
        cmd_say(c, "%6zu |%s|", r * per, line);
    }
    for (size_t m = 0; m < MINUTES; m++) {
        line[m] = g->failed[m] == 0 ? '-' : g->failed[m] < 10 ? (char)('0' + g->failed[m]) : '*';
        failed |= g->failed[m] > 0;
    }
    cmd_say(c, "%6s |%s|", failed ? "failed" : "", line);
    cmd_say(c, "%6s  %-30s%30s", "", "60 min ago", "now");
}

int
cmd_job_graph(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    struct alloc_list_stub_list l = {0};
    int rc;
    const char *id = api_job_arg(c, opts, &rc);

    if (id == NULL)
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/job/%/allocations", id, NULL), &type_alloc_list_stub,
                       &l, "Error querying job allocations"))
        return 1;
    int64_t now = cmd_now(c);
    struct graph *g = mem_new(c, struct graph);
    *g = (struct graph){.from_ns = now - MINUTES * MINUTE_NS};
    for (size_t i = 0; i < l.n; i++)
        graph_add(g, l.v[i], now);
    cmd_say(c, "%s: allocations in each minute of the last hour; # running, + starting\n", id);
    graph_print(c, g);
    return 0;
}
