/* SPDX-License-Identifier: Apache-2.0
 *
 * node intro create: a token by which a new node may register.
 */
#include "cli/api.h"
#include "cli/format.h"

int
cmd_node_intro_create(struct cmd *c)
{
    struct introduction_request req = {.node_name = NULL};
    const char *ttl = NULL;
    struct output out = {.json = false};
    const struct opt opts[] = {
        {"ttl", OPT_STRING, &ttl, "<duration>", "How long it is good; default as the servers say."},
        {"node-name", OPT_STRING, &req.node_name, "<name>",
         "The node must have this name; default any."},
        {"node-pool", OPT_STRING, &req.node_pool, "<pool>",
         "The node must be in this pool; default \"default\"."},
        OUTPUT_OPTS(out),
        {0}};
    int rc = 1;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    req.ttl = value_str(c, ttl != NULL ? ttl : "");
    const struct change make = {"POST",
                                api_target(c, "/v1/acl/identity/client-introduction-token", NULL),
                                &type_introduction_request,
                                &req,
                                &type_introduction_response,
                                "Error generating client introduction token"};
    const struct introduction_response *r = api_change(c, &make);
    if (r == NULL)
        return 1;
    if (output_object(c, &out, &type_introduction_response, r, &rc))
        return rc;
    cmd_say(c, "%s", str_or(r->jwt, ""));
    return 0;
}
