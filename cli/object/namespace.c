/* SPDX-License-Identifier: Apache-2.0
 *
 * namespace status: how a namespace is shown. The commands are those of all objects with a name
 * (cli/object/object.c).
 */
#include "api/api.h"
#include "cli/object/object.h"

/* "*" stands for all, where a list names none. */
static const char *
names_text(struct cmd *c, const struct str_list *l, const char *none)
{
    return l->n > 0 ? fmt_join(c, l, ",") : none;
}

static void
print_pool_rules(struct cmd *c, const struct namespace_names *p)
{
    struct table t;

    cmd_heading(c, "Node Pool Configuration");
    table_init(&t, c, 2);
    table_row(&t, "Default", str_or(p->default_, "default"));
    if (p->allowed.n > 0)
        table_row(&t, "Allowed", names_text(c, &p->allowed, ""));
    if (p->denied.n > 0)
        table_row(&t, "Denied", names_text(c, &p->denied, ""));
    table_print_kv(&t);
}

void
namespace_print(struct cmd *c, const struct namespace *n)
{
    static const struct namespace_capabilities all;
    const struct namespace_capabilities *may = n->capabilities ? n->capabilities : &all;
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "Name", n->name);
    table_row(&t, "Description", str_or(n->description, "<none>"));
    table_row(&t, "Quota", str_or(n->quota, "<none>"));
    table_row(&t, "Enabled Drivers", names_text(c, &may->enabled_task_drivers, "*"));
    table_row(&t, "Disabled Drivers", names_text(c, &may->disabled_task_drivers, "<none>"));
    table_row(&t, "Enabled Network Modes", names_text(c, &may->enabled_network_modes, "*"));
    table_row(&t, "Disabled Network Modes", names_text(c, &may->disabled_network_modes, "<none>"));
    table_print_kv(&t);
    if (n->meta.n > 0)
        print_titled_map(c, "Metadata", &n->meta);
    if (n->node_pool_configuration)
        print_pool_rules(c, n->node_pool_configuration);
}
