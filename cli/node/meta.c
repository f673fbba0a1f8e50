/* SPDX-License-Identifier: Apache-2.0
 *
 * node meta apply, node meta read: metadata of a node that is set at run time.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/node.h"

/* The full id of -node-id; "" for the agent's own node; NULL when something was said. */
static const char *
meta_target(struct cmd *c, const char *node, int *rc)
{
    return str_empty(node) ? "" : node_find(c, node, rc);
}

static void
meta_unset(const void *ctx, struct value *meta, const char *keys)
{
    while (*keys) {
        size_t n = strcspn(keys, ",");
        if (n > 0)
            value_map_set(meta, mem_strndup(ctx, keys, n), value_null(ctx));
        keys += n + (keys[n] == ',');
    }
}

int
cmd_node_meta_apply(struct cmd *c)
{
    const char *node = NULL, *drop = NULL;
    const struct opt opts[] = {
        {"node-id", OPT_STRING, &node, "<node>", "The node; default the agent's own."},
        {"unset", OPT_STRING, &drop, "<key>[,<key>...]", "Keys to take away."},
        {0}};
    int rc = 1;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = SIZE_MAX}, &rc))
        return rc;
    struct node_meta_apply_request req = {.meta = value_map(c)};
    meta_unset(c, req.meta, str_or(drop, ""));
    for (size_t i = 0; i < c->n_args; i++) {
        const char *eq = strchr(c->args[i], '=');
        if (!eq || eq == c->args[i])
            return cmd_fail(c, "\"%s\" is not <key>=<value>", c->args[i]);
        value_map_set(req.meta, mem_strndup(c, c->args[i], (size_t)(eq - c->args[i])),
                      value_str(c, eq + 1));
    }
    if (req.meta->map.n == 0)
        return cmd_fail(c, "Name a <key>=<value>, or -unset a key");
    req.node_id = meta_target(c, node, &rc);
    if (!req.node_id)
        return rc;
    const struct change apply = {"POST", api_target(c, "/v1/client/metadata", NULL),
                                 &type_node_meta_apply_request, &req, NULL,
                                 "Error applying metadata"};
    return api_change(c, &apply) ? 0 : 1;
}

int
cmd_node_meta_read(struct cmd *c)
{
    const char *node = NULL;
    struct output out = {.json = false};
    const struct opt opts[] = {
        {"node-id", OPT_STRING, &node, "<node>", "The node; default the agent's own."},
        OUTPUT_OPTS(out),
        {0}};
    int rc = 1;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const char *id = meta_target(c, node, &rc);
    if (!id)
        return rc;
    const struct node_meta_response *r =
        api_read(c, api_target(c, "/v1/client/metadata", "node_id", *id ? id : NULL, NULL),
                 &type_node_meta_response, "Error reading metadata");
    if (!r)
        return 1;
    if (output_object(c, &out, &type_node_meta_response, r, &rc))
        return rc;
    struct str_map dynamic = {0};
    for (size_t i = 0; r->dynamic && r->dynamic->kind == VALUE_MAP && i < r->dynamic->map.n; i++) {
        const struct value *v = r->dynamic->map.v[i].v;
        str_map_set(c, &dynamic, r->dynamic->map.v[i].k,
                    v->kind == VALUE_STRING ? v->str.s : "<unset>");
    }
    print_titled_map(c, "All Meta", &r->meta);
    print_titled_map(c, "Dynamic Meta", &dynamic);
    print_titled_map(c, "Static Meta", &r->static_);
    return 0;
}
