/* SPDX-License-Identifier: Apache-2.0
 *
 * operator scheduler simulate.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "cli/node.h"

static void
print_failures(struct cmd *c, const struct simulated_failure_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct simulated_failure *f = l->v[i];
        cmd_say(c, "\nJob \"%s\", task group \"%s\": %lld allocation%s would find no place",
                f->job_id, f->task_group, (long long)f->count, f->count == 1 ? "" : "s");
        if (f->metric != NULL)
            monitor_print_metrics(c, f->metric, false, "  ");
    }
}

static void
print_simulation(struct cmd *c, const struct simulation *s, bool verbose)
{
    long long failed = 0;
    struct table t;

    for (size_t i = 0; i < s->failures.n; i++)
        failed += s->failures.v[i]->count;
    cmd_say(c,
            "%zu allocation%s would move, %lld would find no place, %llu of system jobs would end",
            s->moves.n, s->moves.n == 1 ? "" : "s", failed, (unsigned long long)s->stops);
    print_failures(c, &s->failures);
    if (s->moves.n == 0)
        return;
    fputc('\n', c->out);
    table_init(&t, c, 5);
    table_row(&t, "Allocation", "Job ID", "Name", "From", "To");
    for (size_t i = 0; i < s->moves.n; i++) {
        const struct simulated_move *m = s->moves.v[i];
        table_row(&t, fmt_id(c, m->alloc_id, verbose), m->job_id, m->name, m->from_node,
                  m->to_node);
    }
    table_print(&t);
}

int
cmd_operator_scheduler_simulate(struct cmd *c)
{
    struct output out = {false, NULL};
    struct opt_list drain = {NULL, 0};
    bool verbose = false;
    const struct opt opts[] = {
        {"drain", OPT_LIST, &drain, "<node>", "A node that drains; may be repeated."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (drain.n == 0)
        return cmd_fail(c, "-drain must name a node");
    auto_buf struct buf ids = BUF_INIT(1 << 20);
    for (size_t i = 0; i < drain.n; i++) {
        const char *id = node_find(c, drain.v[i], &rc);
        if (id == NULL)
            return rc;
        buf_printf(&ids, "%s%s", i ? "," : "", id);
    }
    const struct simulation *s =
        api_read(c, api_target(c, "/v1/operator/scheduler/simulate", "drain", buf_str(&ids), NULL),
                 &type_simulation, "Error simulating");
    if (!s)
        return 1;
    if (output_object(c, &out, &type_simulation, s, &rc))
        return rc;
    print_simulation(c, s, verbose);
    return s->failures.n > 0 ? 2 : 0;
}
