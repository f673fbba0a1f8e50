/* SPDX-License-Identifier: Apache-2.0
 *
 * node identity get, node identity renew: the claims that servers sign for a node.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/node.h"
#include "common/duration.h"

/* Returns the claim in words: times are civil ones. */
static const char *
claim_text(struct cmd *c, const char *name, const struct value *v)
{
    if (v->kind == VALUE_STRING)
        return v->str.s;
    if (v->kind == VALUE_INT && STR_ONE_OF(name, "exp", "iat", "nbf"))
        return fmt_time(c, v->i * NS_PER_S);
    auto_buf struct buf b = BUF_INIT(8192);
    json_encode_value(&b, v, 0);
    return mem_strdup(c, buf_str(&b));
}

int
cmd_node_identity_get(struct cmd *c)
{
    struct output out = {.json = false};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    int rc = 1;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const char *id = node_find(c, c->args[0], &rc);
    if (!id)
        return rc;
    const struct node_identity *r =
        api_read(c, api_target(c, "/v1/client/identity", "node_id", id, NULL), &type_node_identity,
                 "Error requesting node identity");
    if (!r)
        return 1;
    if (output_object(c, &out, &type_node_identity, r, &rc))
        return rc;
    struct str_map claims = {0};
    for (size_t i = 0; r->claims && r->claims->kind == VALUE_MAP && i < r->claims->map.n; i++)
        str_map_set(c, &claims, r->claims->map.v[i].k,
                    claim_text(c, r->claims->map.v[i].k, r->claims->map.v[i].v));
    print_titled_map(c, "Claims", &claims);
    return 0;
}

int
cmd_node_identity_renew(struct cmd *c)
{
    int rc = 1;
    if (!cmd_parse(c, NULL, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    struct node_identity_renew_request req = {.node_id = node_find(c, c->args[0], &rc)};
    if (!req.node_id)
        return rc;
    const struct change renew = {"POST",
                                 api_target(c, "/v1/client/identity/renew", NULL),
                                 &type_node_identity_renew_request,
                                 &req,
                                 NULL,
                                 "Error requesting node identity renewal"};
    return api_change(c, &renew) ? 0 : 1;
}
