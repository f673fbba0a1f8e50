/* SPDX-License-Identifier: Apache-2.0
 *
 * job explain, node explain: why a job's allocations can be here, and cannot be there.
 */
#include "cli/explain.h"

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/node.h"

static void
print_reason(struct cmd *c, const struct node_reason *r, bool verbose)
{
    cmd_say(c, "  %s: %llu node%s%s", r->reason, (unsigned long long)r->count,
            r->count == 1 ? "" : "s", r->fits && r->nodes.n > 1 ? ", best first" : "");
    for (size_t i = 0; i < r->nodes.n; i++) {
        const struct reason_node *n = r->nodes.v[i];
        const char *more = r->fits ? mem_printf(c, "score %.3f", n->score) : str_or(n->detail, "");
        cmd_say(c, "    %s  %s%s%s", fmt_id(c, n->id, verbose), n->name, *more ? "  " : "", more);
    }
    if (r->count > r->nodes.n)
        cmd_say(c, "    and %llu more", (unsigned long long)(r->count - r->nodes.n));
}

void
explanation_print(struct cmd *c, const struct job_explanation *x, bool verbose)
{
    for (size_t i = 0; i < x->groups.n; i++) {
        const struct group_explanation *g = x->groups.v[i];
        cmd_say(c, "%sTask Group \"%s\": one more allocation on %llu node%s", i ? "\n" : "",
                g->name, (unsigned long long)g->nodes, g->nodes == 1 ? "" : "s");
        for (size_t k = 0; k < g->reasons.n; k++)
            print_reason(c, g->reasons.v[k], verbose);
        if (g->nodes == 0)
            cmd_say(c, "  no node is known");
    }
}

int
explain_job(struct cmd *c, const char *job, const struct explain_opts *o)
{
    const char *target = api_target(c, "/v1/job/%/explain", job, "group", o->group, "node", o->node,
                                    "nodes", o->verbose ? "10000" : NULL, NULL);
    int rc;

    const struct job_explanation *x =
        api_read(c, target, &type_job_explanation, "Error explaining job");
    if (!x)
        return 1;
    if (output_object(c, &o->out, &type_job_explanation, x, &rc))
        return rc;
    if (o->group != NULL && x->groups.n == 0)
        return cmd_fail(c, "Task group \"%s\" not found in job \"%s\"", o->group, job);
    explanation_print(c, x, o->verbose);
    return 0;
}

int
cmd_job_explain(struct cmd *c)
{
    struct explain_opts o = {.group = NULL};
    const struct opt opts[] = {
        {"group", OPT_STRING, &o.group, "<group>", "Only this task group."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Name all nodes, with full ids."},
        OUTPUT_OPTS(o.out),
        {0}};
    int rc;
    const char *id = api_job_arg(c, opts, &rc);
    return id ? explain_job(c, id, &o) : rc;
}

int
cmd_node_explain(struct cmd *c)
{
    struct explain_opts o = {.group = NULL};
    const struct opt opts[] = {{"group", OPT_STRING, &o.group, "<group>", "Only this task group."},
                               {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids."},
                               OUTPUT_OPTS(o.out),
                               {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 2, .max = 2}, &rc))
        return rc;
    o.node = node_find(c, c->args[1], &rc);
    const struct job_list_stub *stub = o.node ? api_find_job(c, c->args[0]) : NULL;
    return stub ? explain_job(c, stub->id, &o) : rc;
}
