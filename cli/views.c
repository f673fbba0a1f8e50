/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared tables.
 */
#include "cli/views.h"

#include <stdlib.h>

#include "api/terms.h"
#include "cli/format.h"

static int
newest_first(const void *a, const void *b)
{
    const struct alloc_list_stub *const *x = a, *const *y = b;
    if ((*x)->create_index != (*y)->create_index)
        return (*x)->create_index < (*y)->create_index ? 1 : -1;
    return strcmp(str_or((*x)->name, ""), str_or((*y)->name, ""));
}

void
view_allocs(struct cmd *c, const struct alloc_list_stub_list *l, bool verbose)
{
    struct table t;
    if (l->n)
        qsort(l->v, l->n, sizeof(*l->v), newest_first);
    table_init(&t, c, verbose ? 10 : 8);
    if (verbose)
        table_row(&t, "ID", "Eval ID", "Node ID", "Node Name", "Task Group", "Version", "Desired",
                  "Status", "Created", "Modified");
    else
        table_row(&t, "ID", "Node ID", "Task Group", "Version", "Desired", "Status", "Created",
                  "Modified");
    for (size_t i = 0; i < l->n; i++) {
        const struct alloc_list_stub *a = l->v[i];
        const char *id = fmt_id(c, a->id, verbose), *node = fmt_id(c, a->node_id, verbose);
        const char *version = fmt_u64(c, a->job_version);
        if (verbose)
            table_row(&t, id, a->eval_id, node, a->node_name, a->task_group, version,
                      a->desired_status, a->client_status, fmt_time(c, a->create_time),
                      fmt_time(c, a->modify_time));
        else
            table_row(&t, id, node, a->task_group, version, a->desired_status, a->client_status,
                      fmt_ago(c, a->create_time), fmt_ago(c, a->modify_time));
    }
    table_print(&t);
}

const char *
view_job_status(struct cmd *c, const char *status, bool stop)
{
    return stop ? mem_printf(c, "%s (stopped)", status) : str_or(status, "");
}

void
view_jobs(struct cmd *c, const struct job_list_stub_list *l)
{
    bool all = str_eq(c->namespace, "*");
    struct table t;
    table_init(&t, c, all ? 6 : 5);
    if (all)
        table_row(&t, "ID", "Namespace", "Type", "Priority", "Status", "Submit Date");
    else
        table_row(&t, "ID", "Type", "Priority", "Status", "Submit Date");
    for (size_t i = 0; i < l->n; i++) {
        const struct job_list_stub *j = l->v[i];
        const char *prio = fmt_i64(c, j->priority), *when = fmt_time(c, j->submit_time);
        const char *status = view_job_status(c, j->status, j->stop);
        if (all)
            table_row(&t, j->id, j->namespace, j->type, prio, status, when);
        else
            table_row(&t, j->id, j->type, prio, status, when);
    }
    table_print(&t);
}

const char *
view_placement(const struct evaluation *ev)
{
    if (str_eq(ev->status, EVAL_BLOCKED))
        return "N/A - In Progress";
    return fmt_bool(ev->failed_tg_allocs.n > 0);
}

int
view_eval_cmp(const void *a, const void *b)
{
    const struct evaluation *const *x = a, *const *y = b;
    if ((*x)->create_index != (*y)->create_index)
        return (*x)->create_index < (*y)->create_index ? 1 : -1;
    return strcmp(str_or((*x)->id, ""), str_or((*y)->id, ""));
}

/* A word as a shell takes it. */
static void
put_word(struct buf *b, const char *s)
{
    if (*s && s[strcspn(s, " \t\n\"'\\$`&|;<>()*?[]#~")] == '\0') {
        buf_puts(b, s);
        return;
    }
    buf_putc(b, '\'');
    for (; *s; s++)
        if (*s == '\'')
            buf_puts(b, "'\\''");
        else
            buf_putc(b, *s);
    buf_putc(b, '\'');
}

void
view_next_page(struct cmd *c, const char *token)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    if (str_empty(token))
        return;
    for (int i = 1; i < c->argc; i++) {
        const char *name = c->argv[i] + strspn(c->argv[i], "-");
        if (c->argv[i][0] == '-' && str_prefix(name, "page-token")) {
            i += strchr(name, '=') == NULL; /* and its value */
            continue;
        }
        put_word(&b, c->argv[i]);
        buf_putc(&b, ' ');
    }
    cmd_say(
        c,
        "\nResults have been paginated. To get the next page run:\n\npaddock %s %s-page-token %s",
        c->command->name, buf_str(&b), token);
}
