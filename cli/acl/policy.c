/* SPDX-License-Identifier: Apache-2.0
 *
 * acl policy apply, list, info, delete, self.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"

static const struct cmd_args one_name = {.client = true, .min = 1, .max = 1};

/* NULL: the options go together. */
static const char *
find_mistake(const struct acl_job *job)
{
    if (!str_empty(job->task) && str_empty(job->group))
        return "-group is required if -task is set";
    if (!str_empty(job->group) && str_empty(job->job_id))
        return "-job is required if -group is set";
    if (!str_empty(job->job_id) && str_empty(job->namespace))
        return "-namespace is required if -job is set";
    return NULL;
}

int
cmd_acl_policy_apply(struct cmd *c)
{
    struct acl_policy *p = type_new(c, &type_acl_policy);
    struct acl_job *job = type_new(c, &type_acl_job);
    const struct opt opts[] = {
        {"description", OPT_STRING, &p->description, "<text>", "Its description."},
        {"job", OPT_STRING, &job->job_id, "<job>",
         "Give the policy to the tasks of this job, in -namespace."},
        {"group", OPT_STRING, &job->group, "<group>", "To those of this group of it alone."},
        {"task", OPT_STRING, &job->task, "<task>", "To this task of it alone."},
        {0}};
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t n = 0;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 2, .max = 2}, &rc))
        return rc;
    job->namespace = c->namespace;
    const char *mistake = find_mistake(job);
    if (mistake)
        return cmd_fail(c, "%s", mistake);
    if (jobfile_read(c, c->args[1], &text, &n, &e) < 0)
        return cmd_fail(c, "Failed to read file: %s", e.text);
    p->name = c->args[0];
    p->rules = text;
    p->job_acl = str_empty(job->job_id) ? NULL : job;
    if (!api_change(c, &(struct change){.target = api_target(c, "/v1/acl/policy/%", p->name, NULL),
                                        .body_type = &type_acl_policy,
                                        .body = p,
                                        .failed = "Error writing ACL policy"}))
        return 1;
    cmd_say(c, "Successfully wrote \"%s\" ACL policy!", p->name);
    return 0;
}

int
cmd_acl_policy_list(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct acl_policy_list_stub_list l;
    struct table t;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/acl/policies", NULL), &type_acl_policy_list_stub, &l,
                       "Error listing ACL policies"))
        return 1;
    if (output_list(c, &out, &type_acl_policy_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No policies found");
        return 0;
    }
    table_init(&t, c, 2);
    table_row(&t, "Name", "Description");
    for (size_t i = 0; i < l.n; i++)
        table_row(&t, l.v[i]->name, l.v[i]->description);
    table_print(&t);
    return 0;
}

static void
print_workload(struct cmd *c, const struct acl_job *job)
{
    struct table t;

    cmd_heading(c, "Associated Workload");
    table_init(&t, c, 2);
    table_row(&t, "Namespace", str_or(job->namespace, "<none>"));
    table_row(&t, "JobID", str_or(job->job_id, "<none>"));
    table_row(&t, "Group", str_or(job->group, "<none>"));
    table_row(&t, "Task", str_or(job->task, "<none>"));
    table_print_kv(&t);
}

int
cmd_acl_policy_info(struct cmd *c)
{
    struct table t;
    int rc;

    if (!cmd_parse(c, NULL, &one_name, &rc))
        return rc;
    const struct acl_policy *p =
        api_read(c, api_target(c, "/v1/acl/policy/%", c->args[0], NULL), &type_acl_policy,
                 "Error fetching info on ACL policy");
    if (!p)
        return 1;
    table_init(&t, c, 2);
    table_row(&t, "Name", p->name);
    table_row(&t, "Description", str_or(p->description, "<none>"));
    table_row(&t, "CreateIndex", fmt_u64(c, p->create_index));
    table_row(&t, "ModifyIndex", fmt_u64(c, p->modify_index));
    table_print_kv(&t);
    if (p->job_acl)
        print_workload(c, p->job_acl);
    cmd_heading(c, "Rules");
    cmd_say(c, "\n%s", str_or(p->rules, ""));
    return 0;
}

int
cmd_acl_policy_delete(struct cmd *c)
{
    int rc;

    if (!cmd_parse(c, NULL, &one_name, &rc))
        return rc;
    if (!api_change(c,
                    &(struct change){.method = "DELETE",
                                     .target = api_target(c, "/v1/acl/policy/%", c->args[0], NULL),
                                     .failed = "Error deleting ACL policy"}))
        return 1;
    cmd_say(c, "Successfully deleted %s policy!", c->args[0]);
    return 0;
}

static void
print_own(struct cmd *c, const struct acl_policy_list_stub_list *l)
{
    static const struct acl_job none;
    const char *blank = "<unavailable>";
    struct table t;

    table_init(&t, c, 4);
    table_row(&t, "Name", "Job ID", "Group Name", "Task Name");
    for (size_t i = 0; i < l->n; i++) {
        const struct acl_job *job = l->v[i]->job_acl ? l->v[i]->job_acl : &none;
        table_row(&t, l->v[i]->name, str_or(job->job_id, blank), str_or(job->group, blank),
                  str_or(job->task, blank));
    }
    table_print(&t);
}

int
cmd_acl_policy_self(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct acl_policy_list_stub_list l;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const struct acl_token *token = api_read(c, api_target(c, "/v1/acl/token/self", NULL),
                                             &type_acl_token, "Error fetching token");
    if (!token)
        return 1;
    if (str_eq(token->type, "management")) {
        cmd_say(c, "This is a management token. No individual policies are assigned.");
        return 0;
    }
    if (!api_read_list(c, api_target(c, "/v1/acl/policy/self", NULL), &type_acl_policy_list_stub,
                       &l, "Error fetching policies"))
        return 1;
    if (output_list(c, &out, &type_acl_policy_list_stub, &l, &rc))
        return rc;
    if (l.n == 0)
        cmd_say(c, "No policies found");
    else
        print_own(c, &l);
    return 0;
}
