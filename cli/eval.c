/* SPDX-License-Identifier: Apache-2.0
 *
 * eval status, eval list, eval delete, in this order. Each command stands behind its parts: those
 * of status print what was placed and what was not, those of delete ask and send.
 */
#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "cli/views.h"

/* --- status --- */

static void
print_related(struct cmd *c, const struct evaluation *ev, bool verbose)
{
    struct table t;
    if (ev->related_evals.n == 0)
        return;
    cmd_heading(c, "Related Evaluations");
    table_init(&t, c, 6);
    table_row(&t, "ID", "Priority", "Triggered By", "Node ID", "Status", "Description");
    for (size_t i = 0; i < ev->related_evals.n; i++) {
        const struct evaluation_stub *r = ev->related_evals.v[i];
        table_row(&t, fmt_id(c, r->id, verbose), fmt_i64(c, r->priority), r->triggered_by,
                  fmt_id(c, r->node_id, verbose), r->status, r->status_description);
    }
    table_print(&t);
}

enum { UPDATES = 12, UPDATES_ALWAYS = 5 };

static void
updates_of(const struct desired_updates *u, uint64_t v[UPDATES])
{
    const uint64_t all[UPDATES] = {
        u->ignore,     u->place,    u->stop,        u->in_place_update, u->destructive_update,
        u->migrate,    u->canary,   u->preemptions, u->reschedule_now,  u->reschedule_later,
        u->disconnect, u->reconnect};
    memcpy(v, all, sizeof(all));
}

/* Prints the scheduler's decisions, a row for each group; what did not happen at all only with
 * `verbose`. */
static void
print_annotations(struct cmd *c, const struct evaluation *ev, bool verbose)
{
    static const char *const names[UPDATES] = {
        "Ignore", "Place",       "Stop",           "InPlace",          "Destructive", "Migrate",
        "Canary", "Preemptions", "Reschedule Now", "Reschedule Later", "Disconnect",  "Reconnect"};
    const struct plan_annotations *p = ev->plan_annotations;
    uint64_t v[UPDATES];
    bool show[UPDATES];
    const char *cell[UPDATES + 1] = {"Task Group"};
    size_t cols = 1;
    if (!p || p->desired_tg_updates.n == 0)
        return;
    for (size_t k = 0; k < UPDATES; k++) {
        show[k] = verbose || k < UPDATES_ALWAYS;
        for (size_t i = 0; i < p->desired_tg_updates.n; i++) {
            updates_of(p->desired_tg_updates.v[i].v, v);
            show[k] = show[k] || v[k];
        }
        if (show[k])
            cell[cols++] = names[k];
    }
    struct table t;
    cmd_heading(c, "Plan Annotations");
    table_init(&t, c, cols);
    table_cells(&t, cell);
    for (size_t i = 0; i < p->desired_tg_updates.n; i++) {
        size_t n = 0;
        cell[n++] = p->desired_tg_updates.v[i].k;
        updates_of(p->desired_tg_updates.v[i].v, v);
        for (size_t k = 0; k < UPDATES; k++)
            if (show[k])
                cell[n++] = fmt_u64(c, v[k]);
        table_cells(&t, cell);
    }
    table_print(&t);
}

static void
print_placed(struct cmd *c, const struct evaluation *ev, bool verbose)
{
    struct alloc_list_stub_list l;
    struct err e = ERR_INIT;
    if (api_list(c, api_target(c, "/v1/evaluation/%/allocations", ev->id, NULL),
                 &type_alloc_list_stub, &l, NULL, &e))
        cmd_warn(c, "Error querying related allocations: %s", e.text);
    else if (l.n) {
        cmd_heading(c, "Placed Allocations");
        view_allocs(c, &l, verbose);
    }
}

static void
print_eval(struct cmd *c, const struct evaluation *ev, bool verbose)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "ID", fmt_id(c, ev->id, verbose));
    table_row(&t, "Create Time",
              verbose ? fmt_time(c, ev->create_time) : fmt_ago(c, ev->create_time));
    table_row(&t, "Modify Time",
              verbose ? fmt_time(c, ev->modify_time) : fmt_ago(c, ev->modify_time));
    table_row(&t, "Status", ev->status);
    table_row(&t, "Status Description", str_or(ev->status_description, ev->status));
    table_row(&t, "Type", ev->type);
    table_row(&t, "TriggeredBy", ev->triggered_by);
    table_row(&t, "Job ID", ev->job_id);
    table_row(&t, "Namespace", ev->namespace);
    if (!str_empty(ev->node_id))
        table_row(&t, "Node ID", ev->node_id);
    table_row(&t, "Priority", fmt_i64(c, ev->priority));
    table_row(&t, "Placement Failures", view_placement(ev));
    if (ev->wait_until > 0)
        table_row(&t, "Wait Until", fmt_time(c, ev->wait_until));
    if (!str_empty(ev->quota_limit_reached))
        table_row(&t, "Quota Limit Reached", ev->quota_limit_reached);
    table_row(&t, "Previous Eval", str_or(fmt_id(c, ev->previous_eval, verbose), "<none>"));
    table_row(&t, "Next Eval", str_or(fmt_id(c, ev->next_eval, verbose), "<none>"));
    table_row(&t, "Blocked Eval", str_or(fmt_id(c, ev->blocked_eval, verbose), "<none>"));
    table_print_kv(&t);
    print_related(c, ev, verbose);
    print_annotations(c, ev, verbose);
    print_placed(c, ev, verbose);
    if (ev->failed_tg_allocs.n) {
        cmd_heading(c, "Failed Placements");
        monitor_print_failed(c, &ev->failed_tg_allocs, false, "");
        if (!str_empty(ev->blocked_eval))
            cmd_say(c, "\nEvaluation \"%s\" waiting for additional capacity to place remainder",
                    fmt_id(c, ev->blocked_eval, verbose));
    }
}

static void
show_matches(struct cmd *c, const struct object_list *l)
{
    struct table t;
    table_init(&t, c, 4);
    table_row(&t, "ID", "Priority", "Triggered By", "Status");
    for (size_t i = 0; i < l->n; i++) {
        const struct evaluation *ev = l->v[i];
        table_row(&t, ev->id, fmt_i64(c, ev->priority), ev->triggered_by, ev->status);
    }
    table_print(&t);
}

static const struct api_kind evaluation = {"evaluation", "/v1/evaluations", &type_evaluation,
                                           show_matches};

int
cmd_eval_status(struct cmd *c)
{
    bool monitor = false, verbose = false, ui = false;
    struct output out = {false, NULL};
    const struct opt opts[] = {
        {"monitor", OPT_BOOL, &monitor, NULL, "Watch the evaluation until it ends."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids and more."},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: the command ui prints the address."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const char *id = api_find(c, &evaluation, c->args[0]);
    if (!id)
        return 1;
    if (monitor)
        return monitor_eval(c, id, verbose);
    void *ret = api_read(c, api_target(c, "/v1/evaluation/%", id, "related", "true", NULL),
                         &type_evaluation, "Error querying evaluation");
    if (!ret)
        return 1;
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
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        {"per-page", OPT_INT, &per_page, "<n>", "List so many per page."},
        {"page-token", OPT_STRING, &token, "<token>", "Where the page starts."},
        {"filter", OPT_STRING, &filter, "<expression>", "List only evaluations that match."},
        {"job", OPT_STRING, &job, "<job>", "List only evaluations of this job."},
        {"status", OPT_STRING, &status, "<status>", "List only evaluations with this status."},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: the command ui prints the address."},
        OUTPUT_OPTS(out),
        {0}};
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
    table_init(&t, c, 8);
    table_row(&t, "ID", "Priority", "Triggered By", "Job ID", "Namespace", "Node ID", "Status",
              "Placement Failures");
    for (size_t i = 0; i < l.n; i++) {
        const struct evaluation *ev = l.v[i];
        table_row(&t, fmt_id(c, ev->id, verbose), fmt_i64(c, ev->priority), ev->triggered_by,
                  ev->job_id, ev->namespace, fmt_id(c, ev->node_id, verbose), ev->status,
                  view_placement(ev));
    }
    table_print(&t);
    view_next_page(c, meta.next_token);
    return 0;
}

/* --- delete --- */

static int
delete_evals(struct cmd *c, const struct eval_delete_request *req)
{
    const struct eval_delete_response *r =
        api_change(c, &(struct change){"DELETE", api_target(c, "/v1/evaluations", NULL),
                                       &type_eval_delete_request, req, &type_eval_delete_response,
                                       "Error deleting evaluations"});
    if (!r)
        return 1;
    if (r->count == 0)
        cmd_say(c, "No evaluations were deleted");
    else
        cmd_say(c, "Successfully deleted %lld evaluation%s", (long long)r->count,
                r->count == 1 ? "" : "s");
    return 0;
}

/* How many a filter matches; negative: said. */
static int64_t
count_evals(struct cmd *c, const char *filter)
{
    const struct eval_count_response *r =
        api_read(c, api_target(c, "/v1/evaluations/count", "filter", filter, NULL),
                 &type_eval_count_response, "Error counting evaluations");
    return r ? r->count : -1;
}

int
cmd_eval_delete(struct cmd *c)
{
    bool yes = false;
    const char *filter = NULL;
    const struct opt opts[] = {{"filter", OPT_STRING, &filter, "<expression>",
                                "Delete what matches, as eval list shows it."},
                               {"yes", OPT_BOOL, &yes, NULL, "With -filter: do not ask."},
                               {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (str_empty(filter) == (c->n_args == 0))
        return cmd_fail(
            c, "Error validating command args and flags: evaluation ID or filter flag required");
    if (c->n_args > 0) {
        const char *id = api_find(c, &evaluation, c->args[0]);
        return id ? delete_evals(c, &(struct eval_delete_request){.eval_ids = {&id, 1}}) : 1;
    }
    int64_t n = yes ? 0 : count_evals(c, filter);
    if (n < 0)
        return 1;
    if (!yes && !cmd_confirm(c, mem_printf(c, "Are you sure you want to delete %lld evals?",
                                           (long long)n))) {
        cmd_say(c, "Cancelling eval deletion");
        return 0;
    }
    return delete_evals(c, &(struct eval_delete_request){.filter = filter});
}
