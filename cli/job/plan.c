/* SPDX-License-Identifier: Apache-2.0
 *
 * job plan: the difference, the dry run, and the line to type next.
 */
#include <string.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/explain.h"
#include "cli/format.h"
#include "cli/job/job.h"
#include "cli/jobfile.h"
#include "cli/monitor.h"

enum { EXIT_NONE = 0, EXIT_CHANGES = 1, EXIT_ERROR = 255 };

/* --- the difference --- */

static const char *
color_of(const struct cmd *c, const char *type)
{
    if (!c->color)
        return "";
    return str_eq(type, "Added")     ? "\033[32m"
           : str_eq(type, "Deleted") ? "\033[31m"
           : str_eq(type, "Edited")  ? "\033[33m"
                                     : "";
}

static const char *
plan_mark(const char *type)
{
    return str_eq(type, "Added")     ? "+ "
           : str_eq(type, "Deleted") ? "- "
           : str_eq(type, "Edited")  ? "+/- "
                                     : "";
}

/* How far what is in it is moved to the right. */
static int
plan_pad(const char *type, int width)
{
    int n = (int)strlen(plan_mark(type));
    return width > n ? width - n : 0;
}

/* `width`: of the widest mark beside it, so that names stand below each other. */
static void
plan_marker(struct cmd *c, const char *type, int indent, int width)
{
    const char *m = plan_mark(type), *color = color_of(c, type);
    fprintf(c->out, "%*s%s%s%s%*s", indent, "", color, m, *color ? "\033[0m" : "",
            plan_pad(type, width), "");
}

static int
plan_wider(int width, const char *type)
{
    int n = (int)strlen(plan_mark(type));
    return n > width ? n : width;
}

static int
plan_widest(const struct field_diff_list *f, const struct object_diff_list *o)
{
    int width = 0;
    for (size_t i = 0; i < f->n; i++)
        width = plan_wider(width, f->v[i]->type);
    for (size_t i = 0; i < o->n; i++)
        width = plan_wider(width, o->v[i]->type);
    return width;
}

static void
plan_show_annotations(struct cmd *c, const struct str_list *l)
{
    if (l->n)
        cmd_put(c, " (%s)", fmt_join(c, l, ", "));
}

static void
print_fields(struct cmd *c, const struct field_diff_list *l, int indent, int width)
{
    int w = 0;
    for (size_t i = 0; i < l->n; i++)
        w = (int)strlen(l->v[i]->name) > w ? (int)strlen(l->v[i]->name) : w;
    for (size_t i = 0; i < l->n; i++) {
        const struct field_diff *f = l->v[i];
        plan_marker(c, f->type, indent, width);
        cmd_put(c, "%s:%*s", f->name, w - (int)strlen(f->name) + 1, "");
        if (str_eq(f->type, "Added"))
            cmd_put(c, "\"%s\"", str_or(f->new, ""));
        else if (str_eq(f->type, "Edited"))
            cmd_put(c, "\"%s\" => \"%s\"", str_or(f->old, ""), str_or(f->new, ""));
        else
            cmd_put(c, "\"%s\"", str_or(f->old, ""));
        plan_show_annotations(c, &f->annotations);
        fputc('\n', c->out);
    }
}

static void
print_objects(struct cmd *c, const struct field_diff_list *fields, const struct object_diff_list *l,
              int indent, int width)
{
    print_fields(c, fields, indent, width);
    for (size_t i = 0; i < l->n && indent < 200; i++) {
        const struct object_diff *o = l->v[i];
        plan_marker(c, o->type, indent, width);
        cmd_put(c, "%s {\n", o->name);
        print_objects(c, &o->fields, &o->objects, indent + plan_pad(o->type, width) + 2,
                      plan_widest(&o->fields, &o->objects));
        cmd_put(c, "%*s}\n", indent + width, "");
    }
}

static bool
plan_detailed(const char *type, bool verbose)
{
    return verbose || str_eq(type, "Edited");
}

static void
print_task(struct cmd *c, const struct task_diff *t, int indent, int width, bool verbose)
{
    plan_marker(c, t->type, indent, width);
    cmd_put(c, "Task: \"%s\"", t->name);
    plan_show_annotations(c, &t->annotations);
    fputc('\n', c->out);
    if (!str_eq(t->type, "None") && plan_detailed(t->type, verbose))
        print_objects(c, &t->fields, &t->objects, indent + 2, plan_widest(&t->fields, &t->objects));
}

static void
print_group(struct cmd *c, const struct task_group_diff *g, int width, bool verbose)
{
    int in = plan_pad(g->type, width) + 2, inner = plan_widest(&g->fields, &g->objects);
    plan_marker(c, g->type, 0, width);
    cmd_put(c, "Task Group: \"%s\"", g->name);
    for (size_t i = 0; i < g->updates.n; i++)
        cmd_put(c, "%s%lld %s", i ? ", " : " (", (long long)g->updates.v[i].v, g->updates.v[i].k);
    fputs(g->updates.n ? ")\n" : "\n", c->out);
    for (size_t i = 0; i < g->tasks.n; i++)
        inner = plan_wider(inner, g->tasks.v[i]->type);
    if (plan_detailed(g->type, verbose))
        print_objects(c, &g->fields, &g->objects, in, inner);
    for (size_t i = 0; i < g->tasks.n; i++)
        print_task(c, g->tasks.v[i], in, inner, verbose);
    fputc('\n', c->out);
}

void
job_print_diff(struct cmd *c, const struct job_diff *d, bool verbose)
{
    int width = plan_widest(&d->fields, &d->objects);
    for (size_t i = 0; i < d->task_groups.n; i++)
        width = plan_wider(width, d->task_groups.v[i]->type);
    plan_marker(c, d->type, 0, 0);
    cmd_put(c, "Job: \"%s\"\n", d->id);
    if (plan_detailed(d->type, verbose))
        print_objects(c, &d->fields, &d->objects, 0, width);
    for (size_t i = 0; i < d->task_groups.n; i++)
        print_group(c, d->task_groups.v[i], width, verbose);
}

/* --- the rest --- */

static void
print_dry_run(struct cmd *c, const struct job *j, const struct job_plan_response *r, bool verbose)
{
    cmd_say(c, "Scheduler dry-run:");
    if (r->failed_tg_allocs.n == 0) {
        cmd_say(c, "- All tasks successfully allocated.");
        return;
    }
    cmd_say(c, "- WARNING: Failed to place %s.",
            j->type && str_eq(j->type, JOB_SYSTEM) ? "allocations on all nodes"
                                                   : "all allocations");
    monitor_print_failed(c, &r->failed_tg_allocs, verbose, "  ");
}

static void
print_launch(struct cmd *c, const struct job *j)
{
    struct err e = ERR_INIT;
    const char *next;
    if (job_next_launch(c, j, &next, &e) < 0)
        cmd_say(c, "- Invalid time zone: %s", e.text);
    else
        cmd_say(c, "- If submitted now, next periodic launch would be at %s.", next);
}

static int
exit_code(const struct job_plan_response *r)
{
    const struct plan_annotations *a = r->annotations;
    for (size_t i = 0; a && i < a->desired_tg_updates.n; i++) {
        const struct desired_updates *u = a->desired_tg_updates.v[i].v;
        if (u->place + u->stop + u->migrate + u->destructive_update + u->canary > 0)
            return EXIT_CHANGES;
    }
    return EXIT_NONE;
}

/* Prints the jobs whose allocations end for this one. */
static void
print_preemptions(struct cmd *c, const struct plan_annotations *a)
{
    struct table t;

    if (a == NULL || a->preempted_allocs.n == 0)
        return;
    cmd_say(c, "\nPreemptions:\n");
    table_init(&t, c, 3);
    table_row(&t, "Alloc ID", "Job ID", "Task Group");
    for (size_t i = 0; i < a->preempted_allocs.n; i++) {
        const struct alloc_list_stub *s = a->preempted_allocs.v[i];
        table_row(&t, s->id, s->job_id, s->task_group);
    }
    table_print(&t);
}

static void
print_next(struct cmd *c, const struct job_plan_response *r, const struct jobfile_opts *o,
           const char *path)
{
    auto_buf struct buf args = BUF_INIT(1 << 20);
    if (o->json)
        buf_puts(&args, "-json ");
    for (size_t i = 0; i < o->vars.n; i++)
        buf_printf(&args, "-var=%s ", o->vars.v[i]);
    for (size_t i = 0; i < o->var_files.n; i++)
        buf_printf(&args, "-var-file=%s ", o->var_files.v[i]);
    unsigned long long index = r->job_modify_index;
    cmd_say(c, "\nJob Modify Index: %llu", index);
    cmd_say(c, "To run the job as planned here:\n\npaddock job run -check-index %llu %s%s\n", index,
            buf_str(&args), path);
    cmd_say(c, "With -check-index the job is registered only if nobody changed it since this\n"
               "plan; otherwise plan again.");
}

int
cmd_job_plan(struct cmd *c)
{
    struct jobfile_opts o = JOBFILE_OPTS_INIT;
    struct output out = {false, NULL};
    bool diff = true, verbose = false, policy = false, explain = false;
    const struct opt opts[] = {
        {"explain", OPT_BOOL, &explain, NULL, "Say for each node why or why not."},
        {"diff", OPT_BOOL, &diff, NULL, "Show the difference to the running job (default true)."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show unchanged parts and scores too."},
        {"policy-override", OPT_BOOL, &policy, NULL, "Sent along; without effect here."},
        {"json-output", OPT_BOOL, &out.json, NULL, "Output the plan in JSON format."},
        {"t", OPT_STRING, &out.tmpl, "<template>", "Format the plan by a Go template."},
        JOBFILE_OPTS(o),
        {0}};
    int rc;
    if (!cmd_parse(c, opts,
                   &(struct cmd_args){.client = true, .min = 1, .max = 1, .usage_code = EXIT_ERROR},
                   &rc))
        return rc;
    struct jobfile f = {NULL, NULL};
    if (jobfile_load(c, &o, c->args[0], &f))
        return EXIT_ERROR;
    struct job_findings found = {.errors = {0}};
    job_check(c, f.job, &found);
    if (job_refuse(c, f.job, &found))
        return EXIT_ERROR;
    struct job_register_request req = {
        .job = f.job, .diff = diff, .policy_override = policy, .explain = explain};
    const struct job_plan_response *r =
        api_change(c, &(struct change){.target = api_target(c, "/v1/job/%/plan", f.job->id, NULL),
                                       .body_type = &type_job_register_request,
                                       .body = &req,
                                       .answer = &type_job_plan_response,
                                       .failed = "Error during plan"});
    if (!r)
        return EXIT_ERROR;
    if (output_object(c, &out, &type_job_plan_response, r, &rc))
        return rc ? EXIT_ERROR : exit_code(r);
    if (diff && r->diff)
        job_print_diff(c, r->diff, verbose);
    print_dry_run(c, f.job, r, verbose);
    if (r->next_periodic_launch != 0 && !job_parameterized(f.job))
        print_launch(c, f.job);
    print_preemptions(c, r->annotations);
    if (r->explanation != NULL) {
        cmd_heading(c, "Placement Explanation");
        explanation_print(c, r->explanation, verbose);
    }
    if (!str_empty(r->warnings))
        cmd_say(c, "\nJob Warnings:\n%s", r->warnings);
    print_next(c, r, &o, c->args[0]);
    return exit_code(r);
}
