/* SPDX-License-Identifier: Apache-2.0
 *
 * acl role create, update, info, list, delete: policies under one name.
 */
#include "cli/api.h"
#include "cli/format.h"

#define NO_NAME "ACL role name must be specified using the -name flag"
#define NO_POLICY "At least one policy name must be specified using the -policy flag"

struct role_opts {
    const char *name, *description;
    struct opt_list policies;
    struct output out;
};
#define ROLE_OPTS(o)                                                                               \
    {"name", OPT_STRING, &(o).name, "<name>", "Its name."},                                        \
        {"description", OPT_STRING, &(o).description, "<text>", "Its description."},               \
        {"policy", OPT_LIST, &(o).policies, "<policy>", "A policy of it; may be repeated."},       \
        OUTPUT_OPTS((o).out)

static const char *
join_policies(struct cmd *c, const struct acl_role *r)
{
    struct str_list names = {0};

    for (size_t i = 0; i < r->policies.n; i++)
        list_add(c, names, r->policies.v[i]->name);
    return fmt_join(c, &names, ",");
}

static void
role_print(struct cmd *c, const struct acl_role *r)
{
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "ID", r->id);
    table_row(&t, "Name", r->name);
    table_row(&t, "Description", str_or(r->description, "<none>"));
    table_row(&t, "Policies", str_or(join_policies(c, r), "<none>"));
    table_row(&t, "Create Index", fmt_u64(c, r->create_index));
    table_row(&t, "Modify Index", fmt_u64(c, r->modify_index));
    table_print_kv(&t);
}

static bool
has_policy(const struct acl_role *r, const char *name)
{
    for (size_t i = 0; i < r->policies.n; i++)
        if (str_eq(r->policies.v[i]->name, name))
            return true;
    return false;
}

static void
add_policies(struct cmd *c, struct acl_role *r, const struct opt_list *names)
{
    for (size_t i = 0; i < names->n; i++) {
        if (has_policy(r, names->v[i]))
            continue;
        struct acl_role_policy *p = mem_new(c, struct acl_role_policy);
        p->name = names->v[i];
        list_add(c, r->policies, p);
    }
}

/* Writes the role and prints what became of it. */
static int
role_write(struct cmd *c, const struct acl_role *r, const struct output *out, const char *failed)
{
    const char *target = str_empty(r->id) ? api_target(c, "/v1/acl/role", NULL)
                                          : api_target(c, "/v1/acl/role/%", r->id, NULL);
    int rc = 0;
    const struct acl_role *got = api_change(c, &(struct change){.target = target,
                                                                .body_type = &type_acl_role,
                                                                .body = r,
                                                                .answer = &type_acl_role,
                                                                .failed = failed});
    if (!got)
        return 1;
    if (!output_object(c, out, &type_acl_role, got, &rc))
        role_print(c, got);
    return rc;
}

int
cmd_acl_role_create(struct cmd *c)
{
    struct role_opts o = {.name = NULL};
    const struct opt opts[] = {ROLE_OPTS(o), {0}};
    struct acl_role *r = type_new(c, &type_acl_role);
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (str_empty(o.name))
        return cmd_fail(c, NO_NAME);
    if (o.policies.n == 0)
        return cmd_fail(c, NO_POLICY);
    r->name = o.name;
    r->description = o.description;
    add_policies(c, r, &o.policies);
    return role_write(c, r, &o.out, "Error creating ACL role");
}

int
cmd_acl_role_update(struct cmd *c)
{
    struct role_opts o = {.name = NULL};
    bool replace = false;
    const struct opt opts[] = {
        ROLE_OPTS(o),
        {"no-merge", OPT_BOOL, &replace, NULL,
         "Replace the role by what is given, instead of adding to it."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!o.name && !o.description && o.policies.n == 0)
        return cmd_fail(c, "Please provide at least one flag to update the ACL role");
    if (replace && str_empty(o.name))
        return cmd_fail(c, NO_NAME);
    if (replace && o.policies.n == 0)
        return cmd_fail(c, NO_POLICY);
    struct acl_role *r = api_read(c, api_target(c, "/v1/acl/role/%", c->args[0], NULL),
                                  &type_acl_role, "Error reading ACL role");
    if (!r)
        return 1;
    if (replace) {
        r->policies = (struct acl_role_policy_list){NULL, 0};
        r->description = NULL;
    }
    r->name = str_or(o.name, r->name);
    r->description = o.description ? o.description : r->description;
    add_policies(c, r, &o.policies);
    return role_write(c, r, &o.out, "Error updating ACL role");
}

int
cmd_acl_role_info(struct cmd *c)
{
    struct output out = {0};
    bool by_name = false;
    const struct opt opts[] = {
        {"by-name", OPT_BOOL, &by_name, NULL, "The argument is the role's name, not its id."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const char *path = by_name ? "/v1/acl/role/name/%" : "/v1/acl/role/%";
    const struct acl_role *r = api_read(c, api_target(c, path, c->args[0], NULL), &type_acl_role,
                                        "Error reading ACL role");
    if (!r)
        return 1;
    if (!output_object(c, &out, &type_acl_role, r, &rc))
        role_print(c, r);
    return rc;
}

int
cmd_acl_role_list(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct acl_role_list l;
    struct table t;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/acl/roles", NULL), &type_acl_role, &l,
                       "Error listing ACL roles"))
        return 1;
    if (output_list(c, &out, &type_acl_role, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No ACL roles found");
        return 0;
    }
    table_init(&t, c, 4);
    table_row(&t, "ID", "Name", "Description", "Policies");
    for (size_t i = 0; i < l.n; i++)
        table_row(&t, l.v[i]->id, l.v[i]->name, l.v[i]->description, join_policies(c, l.v[i]));
    table_print(&t);
    return 0;
}

int
cmd_acl_role_delete(struct cmd *c)
{
    int rc;

    if (!cmd_parse(c, NULL, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!api_change(c,
                    &(struct change){.method = "DELETE",
                                     .target = api_target(c, "/v1/acl/role/%", c->args[0], NULL),
                                     .failed = "Error deleting ACL role"}))
        return 1;
    cmd_say(c, "ACL role %s successfully deleted", c->args[0]);
    return 0;
}
