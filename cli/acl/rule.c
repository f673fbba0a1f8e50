/* SPDX-License-Identifier: Apache-2.0
 *
 * acl binding-rule create, update, info, list, delete: what a token of a login may.
 */
#include "cli/api.h"
#include "cli/format.h"

struct rule_opts {
    const char *description, *method, *selector, *type, *name;
    struct output out;
};
#define RULE_OPTS(o)                                                                               \
    {"description", OPT_STRING, &(o).description, "<text>", "Its description."},                   \
        {"selector", OPT_STRING, &(o).selector, "<expression>",                                    \
         "Logins that it is for, by value.NAME and list.NAME (default all)."},                     \
        {"bind-type", OPT_STRING, &(o).type, "<type>", "role, policy or management."},             \
        {"bind-name", OPT_STRING, &(o).name, "<template>",                                         \
         "The role or policy; ${value.NAME} stands for a claim."},                                 \
        OUTPUT_OPTS((o).out)

static void
rule_print(struct cmd *c, const struct acl_binding_rule *r)
{
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "ID", r->id);
    table_row(&t, "Description", str_or(r->description, "<none>"));
    table_row(&t, "Auth Method", r->auth_method);
    table_row(&t, "Selector", str_or(r->selector, "<none>"));
    table_row(&t, "Bind Type", r->bind_type);
    table_row(&t, "Bind Name", str_or(r->bind_name, "<none>"));
    table_row(&t, "Create Time", fmt_time(c, r->create_time));
    table_row(&t, "Modify Time", fmt_time(c, r->modify_time));
    table_row(&t, "Create Index", fmt_u64(c, r->create_index));
    table_row(&t, "Modify Index", fmt_u64(c, r->modify_index));
    table_print_kv(&t);
}

static int
rule_write(struct cmd *c, const char *target, const struct acl_binding_rule *r,
           const struct output *out, const char *failed)
{
    int rc = 0;
    const struct acl_binding_rule *got =
        api_change(c, &(struct change){.target = target,
                                       .body_type = &type_acl_binding_rule,
                                       .body = r,
                                       .answer = &type_acl_binding_rule,
                                       .failed = failed});
    if (!got)
        return 1;
    if (!output_object(c, out, &type_acl_binding_rule, got, &rc))
        rule_print(c, got);
    return rc;
}

static void
apply_opts(struct acl_binding_rule *r, const struct rule_opts *o)
{
    r->description = o->description ? o->description : r->description;
    r->selector = o->selector ? o->selector : r->selector;
    r->bind_type = o->type ? o->type : r->bind_type;
    r->bind_name = o->name ? o->name : r->bind_name;
    if (o->type && !o->name && str_eq(o->type, "management"))
        r->bind_name = NULL;
}

int
cmd_acl_binding_rule_create(struct cmd *c)
{
    struct rule_opts o = {.method = NULL};
    const struct opt opts[] = {
        {"auth-method", OPT_STRING, &o.method, "<name>", "The auth method that it is of."},
        RULE_OPTS(o),
        {0}};
    struct acl_binding_rule *r = type_new(c, &type_acl_binding_rule);
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (str_empty(o.method))
        return cmd_fail(c, "ACL binding rule auth method must be specified using the -auth-method "
                           "flag");
    if (str_empty(o.type))
        return cmd_fail(c,
                        "ACL binding rule bind type must be specified using the -bind-type flag");
    r->auth_method = o.method;
    apply_opts(r, &o);
    return rule_write(c, api_target(c, "/v1/acl/binding-rule", NULL), r, &o.out,
                      "Error creating ACL binding rule");
}

int
cmd_acl_binding_rule_update(struct cmd *c)
{
    struct rule_opts o = {.method = NULL};
    bool replace = false;
    const struct opt opts[] = {
        RULE_OPTS(o),
        {"no-merge", OPT_BOOL, &replace, NULL,
         "Replace the rule by what is given, instead of changing parts of it."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!o.description && !o.selector && !o.type && !o.name)
        return cmd_fail(c, "Please provide at least one flag to update the ACL binding rule");
    if (replace && str_empty(o.type))
        return cmd_fail(c,
                        "ACL binding rule bind type must be specified using the -bind-type flag");
    const char *target = api_target(c, "/v1/acl/binding-rule/%", c->args[0], NULL);
    struct acl_binding_rule *r =
        api_read(c, target, &type_acl_binding_rule, "Error reading ACL binding rule");
    if (!r)
        return 1;
    if (replace)
        r->description = r->selector = r->bind_name = NULL;
    apply_opts(r, &o);
    return rule_write(c, target, r, &o.out, "Error updating ACL binding rule");
}

int
cmd_acl_binding_rule_info(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct acl_binding_rule *r =
        api_read(c, api_target(c, "/v1/acl/binding-rule/%", c->args[0], NULL),
                 &type_acl_binding_rule, "Error reading ACL binding rule");
    if (!r)
        return 1;
    if (!output_object(c, &out, &type_acl_binding_rule, r, &rc))
        rule_print(c, r);
    return rc;
}

int
cmd_acl_binding_rule_list(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct acl_binding_rule_list_stub_list l;
    struct table t;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/acl/binding-rules", NULL),
                       &type_acl_binding_rule_list_stub, &l, "Error listing ACL binding rules"))
        return 1;
    if (output_list(c, &out, &type_acl_binding_rule_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No ACL binding rules found");
        return 0;
    }
    table_init(&t, c, 3);
    table_row(&t, "ID", "Description", "Auth Method");
    for (size_t i = 0; i < l.n; i++)
        table_row(&t, l.v[i]->id, l.v[i]->description, l.v[i]->auth_method);
    table_print(&t);
    return 0;
}

int
cmd_acl_binding_rule_delete(struct cmd *c)
{
    int rc;

    if (!cmd_parse(c, NULL, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!api_change(
            c, &(struct change){.method = "DELETE",
                                .target = api_target(c, "/v1/acl/binding-rule/%", c->args[0], NULL),
                                .failed = "Error deleting ACL binding rule"}))
        return 1;
    cmd_say(c, "ACL binding rule %s successfully deleted", c->args[0]);
    return 0;
}
