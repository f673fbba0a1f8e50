/* SPDX-License-Identifier: Apache-2.0
 *
 * Deployments, shown and watched. First the list. Then a deployment with a table of its groups,
 * whose columns are those that some group needs. Then words for why a deployment stands still, with
 * the command by which it goes on. Last the watch: it prints anew whatever has changed, and goes on
 * with the deployment of the version to which a failed one goes back.
 */
#include "cli/deployments.h"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/views.h"
#include "common/duration.h"

enum { ROLLBACK_MS = 10000, POLL_MS = 500, COLS_MAX = 9 };

static int
newest_first(const void *a, const void *b)
{
    const struct deployment *const *x = a, *const *y = b;
    if ((*x)->create_index != (*y)->create_index)
        return (*x)->create_index < (*y)->create_index ? 1 : -1;
    return strcmp(str_or((*x)->id, ""), str_or((*y)->id, ""));
}

int
deployments_get(struct cmd *c, const char *target, struct deployment_list *ret, struct err *e)
{
    int rc = api_list(c, target, &type_deployment, ret, NULL, e);
    if (rc == 0 && ret->n > 0)
        qsort(ret->v, ret->n, sizeof(*ret->v), newest_first);
    return rc;
}

void
deployments_list(struct cmd *c, const struct deployment_list *l, bool verbose)
{
    struct table t;
    if (l->n == 0) {
        cmd_say(c, "No deployments found");
        return;
    }
    table_init(&t, c, 5);
    table_row(&t, "ID", "Job ID", "Job Version", "Status", "Description");
    for (size_t i = 0; i < l->n; i++) {
        const struct deployment *d = l->v[i];
        table_row(&t, fmt_id(c, d->id, verbose), d->job_id, fmt_u64(c, d->job_version), d->status,
                  d->status_description);
    }
    table_print(&t);
}

/* --- one --- */

struct columns {
    bool revert, canaries, deadline; /* of some group */
};

static size_t
group_row(struct cmd *c, const struct columns *k, const char *name,
          const struct deployment_state *s, const char **cell)
{
    size_t n = 0;
    cell[n++] = name;
    if (k->revert)
        cell[n++] = fmt_bool(s->auto_revert);
    if (k->canaries)
        cell[n++] = s->desired_canaries > 0 ? fmt_bool(s->promoted) : "N/A";
    cell[n++] = fmt_i64(c, s->desired_total);
    if (k->canaries)
        cell[n++] = fmt_i64(c, s->desired_canaries);
    cell[n++] = fmt_i64(c, s->placed_allocs);
    cell[n++] = fmt_i64(c, s->healthy_allocs);
    cell[n++] = fmt_i64(c, s->unhealthy_allocs);
    if (k->deadline)
        cell[n++] = str_or(fmt_time(c, s->require_progress_by), "N/A");
    return n;
}

/* Columns that no group needs are left out. */
static void
show_groups(struct cmd *c, const struct deployment_state_map *m)
{
    struct columns k = {false, false, false};
    for (size_t i = 0; i < m->n; i++) {
        const struct deployment_state *s = m->v[i].v;
        k.revert = k.revert || s->auto_revert;
        k.canaries = k.canaries || s->desired_canaries > 0;
        k.deadline = k.deadline || s->progress_deadline != 0;
    }
    const char *cell[COLS_MAX];
    size_t n = 0;
    cell[n++] = "Task Group";
    if (k.revert)
        cell[n++] = "Auto Revert";
    if (k.canaries)
        cell[n++] = "Promoted";
    cell[n++] = "Desired";
    if (k.canaries)
        cell[n++] = "Canaries";
    cell[n++] = "Placed";
    cell[n++] = "Healthy";
    cell[n++] = "Unhealthy";
    if (k.deadline)
        cell[n++] = "Progress Deadline";
    struct table t;
    table_init(&t, c, n);
    table_cells(&t, cell);
    for (size_t i = 0; i < m->n; i++) {
        group_row(c, &k, m->v[i].k, m->v[i].v, cell);
        table_cells(&t, cell);
    }
    table_print(&t);
}

void
deployments_show(struct cmd *c, const struct deployment *d, bool verbose, bool brief)
{
    struct table t;
    if (!d) {
        cmd_say(c, "No deployment found");
        return;
    }
    table_init(&t, c, 2);
    table_row(&t, "ID", fmt_id(c, d->id, verbose));
    if (!brief) {
        table_row(&t, "Job ID", d->job_id);
        table_row(&t, "Job Version", fmt_u64(c, d->job_version));
    }
    table_row(&t, "Status", d->status);
    table_row(&t, "Description", d->status_description);
    table_print_kv(&t);
    if (d->task_groups.n == 0)
        return;
    cmd_heading(c, "Deployed");
    show_groups(c, &d->task_groups);
}

/* --- what it waits for --- */

static bool
deployments_runs(const struct deployment *d)
{
    return str_eq(d->status, DEPLOYMENT_RUNNING);
}

/* All canaries are there and healthy, and nobody but an operator goes on. */
static bool
waits_for_promotion(const struct deployment *d)
{
    bool waits = false;
    for (size_t i = 0; i < d->task_groups.n; i++) {
        const struct deployment_state *s = d->task_groups.v[i].v;
        if (s->desired_canaries == 0 || s->promoted)
            continue;
        if (s->auto_promote || s->healthy_allocs < s->desired_canaries)
            return false;
        waits = true;
    }
    return waits;
}

/* Something of it is not placed, and an evaluation of the job waits for room. */
static bool
waits_for_room(struct cmd *c, const struct deployment *d)
{
    struct evaluation_list l;
    struct err e = ERR_INIT;
    bool missing = false;
    for (size_t i = 0; i < d->task_groups.n; i++) {
        const struct deployment_state *s = d->task_groups.v[i].v;
        bool canaries = s->desired_canaries > 0 && !s->promoted;
        missing |= s->placed_allocs < (canaries ? s->desired_canaries : s->desired_total);
    }
    if (!missing || api_list(c, api_target(c, "/v1/job/%/evaluations", d->job_id, NULL),
                             &type_evaluation, &l, NULL, &e))
        return false;
    for (size_t i = 0; i < l.n; i++)
        if (str_eq(l.v[i]->status, EVAL_BLOCKED))
            return true;
    return false;
}

void
deployments_waits(struct cmd *c, const struct deployment *d)
{
    const char *id = fmt_id(c, d->id, false), *job = d->job_id;
    if (str_eq(d->status, DEPLOYMENT_PAUSED))
        cmd_say(c, "\nIt is paused. To go on: paddock deployment resume %s", id);
    else if (deployments_runs(d) && waits_for_promotion(d))
        cmd_say(c,
                "\nIt waits for promotion. To go on: paddock job promote %s; to end it: paddock "
                "deployment fail %s",
                job, id);
    else if (deployments_runs(d) && waits_for_room(c, d))
        cmd_say(c,
                "\nIt waits for capacity; whoever watches it may leave (Ctrl-C). Why: paddock job "
                "explain %s",
                job);
}

void
deployments_troubles(struct cmd *c, const struct deployment *d, struct death_told *keep,
                     bool verbose)
{
    struct alloc_list_stub_list l;
    struct err e = ERR_INIT;
    deployments_waits(c, d);
    if ((deployments_runs(d) || str_eq(d->status, DEPLOYMENT_FAILED)) &&
        api_list(c, api_target(c, "/v1/deployment/allocations/%", d->id, NULL),
                 &type_alloc_list_stub, &l, NULL, &e) == 0)
        (void)death_report(c, &l, keep, "Failures", verbose);
}

/* --- watching --- */

struct watch {
    struct cmd *c;
    int64_t wait_ns;
    bool verbose;
    const char *mark;
    struct death_told told;
    char *shown; /* what was printed last, without its time */
    size_t lines;
};

int
deployments_latest(struct cmd *c, const char *job, struct deployment **ret, struct err *e)
{
    void *d = NULL;
    const struct change ask = {.method = "GET",
                               .target = api_target(c, "/v1/job/%/deployment", job, NULL),
                               .answer = &type_deployment};
    int rc = api_send(c, &ask, &d, e);
    *ret = d;
    return rc;
}

static void
show_allocs(struct cmd *c, const char *id)
{
    struct alloc_list_stub_list l;
    struct err e = ERR_INIT;
    cmd_heading(c, "Allocations");
    if (api_list(c, api_target(c, "/v1/deployment/allocations/%", id, NULL), &type_alloc_list_stub,
                 &l, NULL, &e))
        cmd_say(c, "Error fetching allocations: %s", e.text);
    else if (l.n == 0)
        cmd_say(c, "No allocations placed");
    else
        view_allocs(c, &l, true);
}

static size_t
lines_of(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

/* In place on a terminal, one below the other elsewhere; nothing when it is as it was. */
static void
deployments_show_one(struct watch *w, const struct deployment *d)
{
    struct cmd *c = w->c;
    FILE *out = c->out;
    char *text = NULL;
    size_t size = 0;
    c->out = open_memstream(&text, &size);
    ASSERT(c->out);
    deployments_show(c, d, w->verbose, false);
    if (w->verbose)
        show_allocs(c, d->id);
    deployments_troubles(c, d, &w->told, w->verbose);
    fclose(c->out);
    c->out = out;
    if (!w->shown || strcmp(text, w->shown) != 0) {
        if (w->shown && isatty(fileno(out)))
            fprintf(out, "\033[%zuA\033[J", w->lines);
        fprintf(out, "%s\n%s\n", str_empty(w->mark) ? "" : "    ", fmt_time(c, cmd_now(c)));
        fputs(text, out);
        fflush(out);
        w->lines = lines_of(text) + 2;
        mem_free(w->shown);
        w->shown = mem_strdup(c, text);
    }
    free(text);
}

static bool
deployments_ended(const char *status)
{
    return str_eq(status, DEPLOYMENT_FAILED) || str_eq(status, DEPLOYMENT_SUCCESSFUL) ||
           str_eq(status, DEPLOYMENT_CANCELLED) || str_eq(status, "blocked");
}

static bool
deployments_reverts(const struct deployment *d)
{
    for (size_t i = 0; i < d->task_groups.n; i++)
        if (d->task_groups.v[i].v->auto_revert)
            return true;
    return false;
}

/* Until it ends; NULL: said. */
static const struct deployment *
watch_end(struct watch *w, const char *id)
{
    struct cmd *c = w->c;
    uint64_t index = 0;
    const char *wait =
        w->wait_ns > 0 ? mem_printf(c, "%lldms", (long long)(w->wait_ns / NS_PER_MS)) : NULL;
    for (;;) {
        void *ret = NULL;
        struct err e = ERR_INIT;
        struct api_meta meta = {0};
        /* not stale at first: a server that is behind does not know of it yet */
        char *target =
            api_target(c, "/v1/deployment/%", id, "stale", index ? "" : NULL, "index",
                       index ? fmt_u64(c, index) : NULL, "wait", index ? wait : NULL, NULL);
        if (api_get(c, target, &type_deployment, &ret, &meta, &e)) {
            cmd_fail(c, "%s%s: Error fetching deployment: %s", w->mark, fmt_time(c, cmd_now(c)),
                     e.text);
            return NULL;
        }
        const struct deployment *d = ret;
        deployments_show_one(w, d);
        if (deployments_ended(d->status))
            return d;
        index = meta.index;
        if (index == 0) /* an agent that tells no index cannot be waited on */
            poll(NULL, 0, POLL_MS);
    }
}

/* The deployment of the version that the job goes back to; NULL: there is none, or what went wrong
 * was said. */
static const struct deployment *
deployments_rollback(struct watch *w, const struct deployment *d)
{
    struct cmd *c = w->c;
    if (!deployments_reverts(d) || !strstr(str_or(d->status_description, ""), "- rolling back to"))
        return NULL;
    for (int64_t left = ROLLBACK_MS; left > 0; left -= POLL_MS) {
        struct deployment *next = NULL;
        struct err e = ERR_INIT;
        if (deployments_latest(c, d->job_id, &next, &e)) {
            cmd_fail(c, "%s%s: Error fetching deployment of previous job version: %s", w->mark,
                     fmt_time(c, cmd_now(c)), e.text);
            return NULL;
        }
        if (next && !str_eq(next->id, d->id))
            return next;
        poll(NULL, 0, POLL_MS); /* it comes with the next evaluation of the job */
    }
    return NULL;
}

const char *
deployments_watch(struct cmd *c, const char *id, int64_t wait_ns, bool verbose, const char *mark)
{
    const char *status = NULL;
    while (id) {
        struct watch w = {.c = c, .wait_ns = wait_ns, .verbose = verbose, .mark = mark};
        const struct deployment *d = watch_end(&w, id);
        if (!d)
            return status;
        status = status ? status : d->status;
        const struct deployment *next =
            str_eq(d->status, DEPLOYMENT_FAILED) ? deployments_rollback(&w, d) : NULL;
        id = next ? next->id : NULL;
        if (next)
            cmd_say(c, "%s", "");
    }
    return status;
}
