/* SPDX-License-Identifier: Apache-2.0
 *
 * eval status, eval list.
 */
#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "cli/views.h"

/* --- status --- */

static void
print_eval(struct cmd *c, const struct evaluation *ev, bool verbose)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "ID", fmt_id(c, ev->id, verbose));
    table_row(&t, "Create Time", verbose ? fmt_time(c, ev->create_time) : fmt_ago(c, ev->create_time));
    table_row(&t, "Modify Time", verbose ? fmt_time(c, ev->modify_time) : fmt_ago(c, ev->modify_time));
    table_row(&t, "Status", ev->status);
    table_row(&t, "Status Description", str_or(ev->status_description, ev->status));
    table_row(&t, "Type", ev->type);
    table_row(&t, "TriggeredBy", ev->triggered_by);
    table_row(&t, "Job ID", ev->job_id);
    table_row(&t, "Namespace", ev->namespace);
    if (!str_empty(ev->node_id))
        table_row(&t, "Node ID", fmt_id(c, ev->node_id, verbose));
    table_row(&t, "Priority", fmt_i64(c, ev->priority));
    table_row(&t, "Placement Failures", view_placement(ev));
    if (verbose) {
        table_row(&t, "Previous Eval", str_or(ev->previous_eval, "<none>"));
        table_row(&t, "Next Eval", str_or(ev->next_eval, "<none>"));
        table_row(&t, "Blocked Eval", str_or(ev->blocked_eval, "<none>"));
    }
    table_print_kv(&t);
    if (ev->failed_tg_allocs.n) {
        cmd_heading(c, "Failed Placements");
        monitor_print_failed(c, &ev->failed_tg_allocs, verbose, "");
        if (!str_empty(ev->blocked_eval))
            cmd_say(c, "\nEvaluation \"%s\" waiting for additional capacity to place remainder",
                    fmt_id(c, ev->blocked_eval, verbose));
    }
}

static const char *
find_eval(struct cmd *c, const char *prefix)
{
    struct evaluation_list found;
    switch (api_find(c, "evaluation", "/v1/evaluations", &type_evaluation, prefix,
                     (struct object_list *)(void *)&found)) {
    case API_ONE:
        return found.v[0]->id;
    case API_MANY: {
        struct table t;
        table_init(&t, c, 4);
        table_row(&t, "ID", "Priority", "Triggered By", "Status");
        for (size_t i = 0; i < found.n; i++)
            table_row(&t, found.v[i]->id, fmt_i64(c, found.v[i]->priority),
                      found.v[i]->triggered_by, found.v[i]->status);
        cmd_say(c, "Prefix matched multiple evaluations\n");
        table_print(&t);
        return NULL;
    }
    default:
        return NULL;
    }
}

int
cmd_eval_status(struct cmd *c)
{
    bool monitor = false, verbose = false, ui = false;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"monitor", OPT_BOOL, &monitor, NULL, "Watch the evaluation until it ends.", NULL},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids and more.", NULL},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: there is no web interface yet.", NULL},
        OUTPUT_OPTS(out),
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const char *id = find_eval(c, c->args[0]);
    struct err e = ERR_INIT;
    void *ret = NULL;
    if (!id)
        return 1;
    if (monitor)
        return monitor_eval(c, id, verbose);
    if (api_get(c, api_target(c, "/v1/evaluation/%", id, NULL), &type_evaluation, &ret, NULL, &e))
        return cmd_fail(c, "Error querying evaluation: %s", e.text);
    if (output_object(c, &out, &type_evaluation, ret, &rc))
        return rc;
    print_eval(c, ret, verbose);
    return 0;
}

/* --- list --- */

int
cmd_eval_list(struct cmd *c)
{
    bool verbose = false, ui = false;
    const char *token = NULL, *filter = NULL, *job = NULL, *status = NULL;
    int64_t per_page = 0;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids.", NULL},
        {"per-page", OPT_INT, &per_page, "<n>", "List so many per page.", NULL},
        {"page-token", OPT_STRING, &token, "<token>", "Where the page starts.", NULL},
        {"filter", OPT_STRING, &filter, "<expression>", "List only evaluations that match.", NULL},
        {"job", OPT_STRING, &job, "<job>", "List only evaluations of this job.", NULL},
        {"status", OPT_STRING, &status, "<status>", "List only evaluations with this status.", NULL},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: there is no web interface yet.", NULL},
        OUTPUT_OPTS(out),
        {NULL, OPT_BOOL, NULL, NULL, NULL, NULL}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    struct evaluation_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    char *target = api_target(c, "/v1/evaluations", "per_page",
                              per_page ? fmt_i64(c, per_page) : NULL, "next_token", token, "filter",
                              filter, "job", job, "status", status, "reverse", "true", NULL);
    if (api_list(c, target, &type_evaluation, &l, &meta, &e))
        return cmd_fail(c, "Error querying evaluations: %s", e.text);
    if (output_list(c, &out, &type_evaluation, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No evals found");
        return 0;
    }
    struct table t;
    table_init(&t, c, 7);
    table_row(&t, "ID", "Priority", "Triggered By", "Job ID", "Node ID", "Status",
              "Placement Failures");
    for (size_t i = 0; i < l.n; i++) {
        const struct evaluation *ev = l.v[i];
        table_row(&t, fmt_id(c, ev->id, verbose), fmt_i64(c, ev->priority), ev->triggered_by,
                  ev->job_id, fmt_id(c, ev->node_id, verbose), ev->status, view_placement(ev));
    }
    table_print(&t);
    if (!str_empty(meta.next_token))
        cmd_say(c, "\nResults have been paginated. To get the next page run:\n\n"
                   "paddock eval list -page-token %s", meta.next_token);
    return 0;
}
