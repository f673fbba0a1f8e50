/* SPDX-License-Identifier: Apache-2.0
 *
 * monitor: the log of an agent, until it is interrupted.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/node.h"
#include "cli/stream.h"

int
cmd_monitor(struct cmd *c)
{
    const char *level = NULL, *node = NULL, *server = NULL;
    bool json = false;
    const struct opt opts[] = {
        {"log-level", OPT_STRING, &level, "<level>",
         "Show lines of this level and above: trace, debug, info (the default), warn, error."},
        {"node-id", OPT_STRING, &node, "<node>", "Follow the agent of a node."},
        {"server-id", OPT_STRING, &server, "<server>", "Follow a server, by its name or leader."},
        {"json", OPT_BOOL, &json, NULL, "Print the lines in JSON."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (node != NULL && (node = node_find(c, node, &rc)) == NULL)
        return rc;
    struct sink s = {.c = c, .to = c->out};
    follow_until_interrupt();
    return stream_get(c, "following the log",
                      api_target(c, "/v1/agent/monitor", "plain", "true", "log_json",
                                 json ? "true" : NULL, "log_level", level, "node_id", node,
                                 "server_id", server, NULL),
                      &s);
}
