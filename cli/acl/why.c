/* SPDX-License-Identifier: Apache-2.0
 *
 * acl why: which rule lets a token make a request, or does not.
 */
#include "cli/api.h"
#include "cli/format.h"

int
cmd_acl_why(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct table t;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 3, .max = 3}, &rc))
        return rc;
    const char *target = api_target(c, "/v1/acl/why", "accessor", c->args[0], "method", c->args[1],
                                    "path", c->args[2], NULL);
    const struct acl_why *w = api_read(c, target, &type_acl_why, "Error asking why");
    if (!w)
        return 1;
    if (output_object(c, &out, &type_acl_why, w, &rc))
        return rc;
    table_init(&t, c, 2);
    table_row(&t, "Allowed", fmt_bool(w->allowed));
    table_row(&t, "Needs", w->needs);
    if (!str_empty(w->name))
        table_row(&t, "Of", w->name);
    table_row(&t, "Why", w->why);
    table_print_kv(&t);
    return 0;
}
