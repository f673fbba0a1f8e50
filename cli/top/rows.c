/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock top: what the agent is asked, and rows of its answers. A list is asked for again when
 * its index has moved, which an answer of one row tells; so a fleet at rest costs two small
 * requests a second. Figures are asked for of the rows in sight, one agent each.
 */
#include <inttypes.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/top/top.h"
#include "common/duration.h"

enum { STAT_NS_KEPT = 3 };

static const struct top_column job_columns[] = {
    {"Job", 0, false},     {"State", 22, false}, {"Running", 8, true},
    {"Waiting", 8, true},  {"Failed", 7, true},  {"Type", 8, false},
    {"Priority", 8, true}, {"Age", 9, true},     {NULL, 0, false}};
static const struct top_column node_columns[] = {
    {"Node", 0, false},        {"State", 13, false}, {"Processor", 10, true}, {"Memory", 8, true},
    {"Datacenter", 11, false}, {"Pool", 10, false},  {"Address", 16, false},  {NULL, 0, false}};
static const struct top_column alloc_columns[] = {
    {"Allocation", 0, false}, {"Id", 9, false},     {"State", 10, false},
    {"Processor", 10, true},  {"Memory", 10, true}, {"Stalled", 8, true},
    {"Restarts", 9, true},    {"Node", 12, false},  {NULL, 0, false}};
static const struct top_column log_columns[] = {{"Log", 0, false}, {NULL, 0, false}};

const struct top_column *
top_columns(enum top_view v)
{
    switch (v) {
    case TOP_JOBS:
        return job_columns;
    case TOP_NODES:
        return node_columns;
    case TOP_ALLOCS:
        return alloc_columns;
    case TOP_LOGS:
        return log_columns;
    }
    return log_columns;
}

static struct top_row *
row_new(struct top_data *d)
{
    d->rows = talloc_realloc(d->c, d->rows, struct top_row, d->n + 1);
    ASSERT(d->rows != NULL);
    struct top_row *r = &d->rows[d->n++];
    *r = (struct top_row){.rank = 0};
    return r;
}

static const char *
row_age(struct cmd *c, int64_t ns)
{
    char text[DURATION_TEXT];
    int64_t s = ns > 0 ? (cmd_now(c) - ns) / NS_PER_S : 0;

    if (ns <= 0)
        return "-";
    s = s < 0 ? 0 : s < 60 ? s : s < 3600 ? s - s % 60 : s - s % 3600;
    return mem_strdup(c, duration_format(s * NS_PER_S, text));
}

/* --- jobs --- */

struct job_sum {
    int64_t queued, running, starting, failed, unknown;
};

static struct job_sum
job_sum(const struct job_list_stub *j)
{
    struct job_sum s = {0};

    for (size_t i = 0; j->job_summary != NULL && i < j->job_summary->summary.n; i++) {
        const struct task_group_summary *g = j->job_summary->summary.v[i].v;
        if (g == NULL)
            continue;
        s.queued += g->queued;
        s.running += g->running;
        s.starting += g->starting;
        s.failed += g->failed + g->lost;
        s.unknown += g->unknown;
    }
    return s;
}

static void
job_row(struct top_data *d, const struct job_list_stub *j)
{
    struct cmd *c = d->c;
    struct top_row *r = row_new(d);
    struct job_sum s = job_sum(j);

    r->id = j->id;
    r->ns = str_or(j->namespace, j->job_summary ? j->job_summary->namespace : NULL);
    r->cell[0] = j->id;
    r->tone = TONE_GOOD;
    r->rank = 4;
    r->cell[1] = str_or(j->status, "");
    if (j->stop) {
        r->cell[1] = "stopped", r->rank = 6, r->tone = TONE_SOFT;
    } else if (s.queued > 0) {
        r->cell[1] = mem_printf(c, "%" PRId64 " not placed", s.queued);
        r->rank = 0, r->tone = TONE_BAD;
    } else if (s.unknown > 0) {
        r->cell[1] = mem_printf(c, "%" PRId64 " on lost nodes", s.unknown);
        r->rank = 1, r->tone = TONE_WAITS;
    } else if (str_eq(j->status, "dead")) {
        r->cell[1] = s.failed > 0 ? "failed" : "complete";
        r->rank = s.failed > 0 ? 2 : 5, r->tone = s.failed > 0 ? TONE_BAD : TONE_SOFT;
    } else if (s.starting > 0) {
        r->cell[1] = mem_printf(c, "%" PRId64 " starting", s.starting);
        r->rank = 3, r->tone = TONE_WAITS;
    }
    const double n[] = {0,
                        0,
                        (double)s.running,
                        (double)(s.queued + s.starting),
                        (double)s.failed,
                        0,
                        (double)j->priority,
                        (double)(cmd_now(c) - j->submit_time)};
    memcpy(r->n, n, sizeof(n));
    r->cell[2] = fmt_i64(c, s.running);
    r->cell[3] = fmt_i64(c, s.queued + s.starting);
    r->cell[4] = fmt_i64(c, s.failed);
    r->cell[5] = j->type;
    r->cell[6] = fmt_i64(c, j->priority);
    r->cell[7] = row_age(c, j->submit_time);
}

/* --- nodes --- */

static bool
node_down(const struct node_list_stub *n)
{
    return !str_eq(n->status, "ready") && !str_eq(n->status, "initializing");
}

static void
node_row(struct top_data *d, const struct node_list_stub *n)
{
    struct top_row *r = row_new(d);

    r->id = n->id;
    r->cell[0] = n->name;
    r->cell[1] = n->status;
    r->tone = TONE_GOOD;
    r->rank = 3;
    if (node_down(n)) {
        r->rank = 0, r->tone = TONE_BAD;
    } else if (n->drain) {
        r->cell[1] = "draining", r->rank = 1, r->tone = TONE_WAITS;
    } else if (str_eq(n->scheduling_eligibility, "ineligible")) {
        r->cell[1] = "not eligible", r->rank = 2, r->tone = TONE_WAITS;
    }
    r->cell[2] = r->cell[3] = "-";
    r->n[2] = r->n[3] = -1;
    r->cell[4] = n->datacenter;
    r->cell[5] = n->node_pool;
    r->cell[6] = n->address;
}

/* --- allocations --- */

static void
alloc_row(struct top_data *d, const struct alloc_list_stub *a)
{
    struct cmd *c = d->c;
    struct top_row *r = row_new(d);
    uint64_t restarts = 0;

    for (size_t i = 0; i < a->task_states.n; i++)
        restarts += a->task_states.v[i].v != NULL ? a->task_states.v[i].v->restarts : 0;
    r->id = a->id;
    r->ns = a->namespace;
    r->task = a->task_states.n > 0 ? a->task_states.v[0].k : NULL;
    r->cell[0] = a->name;
    r->cell[1] = fmt_id(c, a->id, false);
    r->cell[2] = a->client_status;
    bool runs = str_eq(a->client_status, "running");
    bool bad = STR_ONE_OF(a->client_status, "failed", "lost");
    r->tone = runs                                   ? TONE_GOOD
              : bad                                  ? TONE_BAD
              : str_eq(a->client_status, "complete") ? TONE_SOFT
                                                     : TONE_WAITS;
    r->rank = bad ? 1 : runs ? 2 : str_eq(a->client_status, "complete") ? 3 : 0;
    for (int i = 3; i < 6; i++) {
        r->cell[i] = "-";
        r->n[i] = -1;
    }
    r->cell[6] = fmt_u64(c, restarts);
    r->n[6] = (double)restarts;
    r->cell[7] = str_or(a->node_name, fmt_id(c, a->node_id, false));
}

/* --- what is asked --- */

static void
data_fail(struct top_data *d, const struct err *e)
{
    d->error = mem_strdup(d->c, str_or(e->text, err_name(e->code)));
}

static void
load_allocs(struct top *t, struct top_data *d)
{
    struct alloc_list_stub_list l = {0};
    struct api_meta m = {0};
    struct err e = ERR_INIT;
    struct cmd *c = d->c;
    char *target;

    if (t->of_job != NULL) {
        struct cmd of = *c;
        struct cmd *own = mem_new(c, struct cmd);
        *own = of;
        own->namespace = t->of_ns;
        target = api_target(own, "/v1/job/%/allocations", t->of_job, NULL);
    } else {
        const char *filter = t->of_node != NULL
                                 ? mem_printf(c, "NodeID == \"%s\"", t->of_node)
                                 : "ClientStatus == \"running\" or ClientStatus == \"pending\"";
        target = api_target(c, "/v1/allocations", "filter", filter, "per_page",
                            fmt_i64(c, TOP_ROWS_MAX), "reverse", "true", NULL);
    }
    if (api_list(c, target, &type_alloc_list_stub, &l, &m, &e) < 0) {
        data_fail(d, &e);
        return;
    }
    d->seen[2] = m.index;
    for (size_t i = 0; i < l.n && i < TOP_ROWS_MAX; i++)
        alloc_row(d, l.v[i]);
}

/* The end of a log, a row for each line. */
static void
load_log(struct top *t, struct top_data *d)
{
    struct cmd *c = d->c;
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    struct http_ask *a = api_ask(
        c, "GET",
        api_target(c, "/v1/client/fs/logs/%", t->log_id, "task", t->log_task, "type", t->log_type,
                   "plain", "true", "origin", "end", "offset", fmt_i64(c, TOP_LOG_TAIL), NULL));

    if (c->fetch(c, c->address, a, &r, &e) < 0) {
        data_fail(d, &e);
        return;
    }
    if (r->status != 200) {
        d->error = mem_strdup(c, r->body);
        return;
    }
    for (const char *p = r->body; *p != '\0';) {
        size_t n = strcspn(p, "\n");
        struct top_row *row = row_new(d);
        row->id = row->cell[0] = mem_strndup(c, p, n);
        p += n + (p[n] == '\n');
    }
}

static void
rows_judge(struct top_data *d, const struct job_list_stub_list *jobs,
           const struct node_list_stub_list *nodes)
{
    struct cmd *c = d->c;
    int64_t missing = 0, running = 0;
    size_t short_of = 0, failed = 0, down = 0, ready = 0;
    const char *v = "";

    for (size_t i = 0; i < jobs->n; i++) {
        struct job_sum s = job_sum(jobs->v[i]);
        running += s.running;
        if (jobs->v[i]->stop)
            continue;
        missing += s.queued;
        short_of += s.queued > 0;
        failed += s.queued == 0 && s.failed > 0 && str_eq(jobs->v[i]->status, "dead");
    }
    for (size_t i = 0; i < nodes->n; i++) {
        down += node_down(nodes->v[i]);
        ready += str_eq(nodes->v[i]->status, "ready");
    }
    if (short_of > 0)
        v = mem_printf(c, "%zu job%s short of %" PRId64 " allocation%s", short_of,
                       short_of == 1 ? " is" : "s are", missing, missing == 1 ? "" : "s");
    if (down > 0)
        v = mem_printf(c, "%s%s%zu node%s down", v, *v ? ", " : "", down,
                       down == 1 ? " is" : "s are");
    if (failed > 0)
        v = mem_printf(c, "%s%s%zu job%s failed", v, *v ? ", " : "", failed,
                       failed == 1 ? " has" : "s have");
    size_t rest = jobs->n - short_of - failed;
    if (*v)
        d->verdict = rest == 0 ? mem_printf(c, "%s.", v)
                               : mem_printf(c, "%s. %zu other%s as asked.", v, rest,
                                            rest == 1 ? " runs" : "s run");
    else
        d->verdict = jobs->n == 0 ? "No job runs here yet."
                                  : mem_printf(c, "All %zu job%s as asked.", jobs->n,
                                               jobs->n == 1 ? " runs" : "s run");
    d->tone = short_of + failed > 0 ? TONE_BAD : down > 0 ? TONE_WAITS : TONE_GOOD;
    d->line =
        mem_printf(c, "%zu of %zu node%s ready, %" PRId64 " allocation%s running, index %" PRIu64,
                   ready, nodes->n, nodes->n == 1 ? "" : "s", running, running == 1 ? "" : "s",
                   d->seen[0] > d->seen[1] ? d->seen[0] : d->seen[1]);
}

static void
load_lists(struct top *t, struct top_data *d)
{
    struct job_list_stub_list jobs = {0};
    struct node_list_stub_list nodes = {0};
    struct api_meta m = {0};
    struct err e = ERR_INIT;
    struct cmd *c = d->c;

    if (api_list(c, api_target(c, "/v1/jobs", NULL), &type_job_list_stub, &jobs, &m, &e) < 0) {
        data_fail(d, &e);
        return;
    }
    d->seen[0] = m.index;
    struct err no = ERR_INIT; /* who may not see nodes sees jobs */
    if (api_list(c, api_target(c, "/v1/nodes", NULL), &type_node_list_stub, &nodes, &m, &no) == 0)
        d->seen[1] = m.index;
    else if (t->view == TOP_NODES)
        data_fail(d, &no);
    rows_judge(d, &jobs, &nodes);
    for (size_t i = 0; t->view == TOP_JOBS && i < jobs.n && i < TOP_ROWS_MAX; i++)
        job_row(d, jobs.v[i]);
    for (size_t i = 0; t->view == TOP_NODES && i < nodes.n && i < TOP_ROWS_MAX; i++)
        node_row(d, nodes.v[i]);
}

/* A command of its own, whose memory goes with the answer. */
static struct cmd *
cmd_copy(struct top *t)
{
    struct cmd *c = mem_new(t->c, struct cmd);
    *c = *t->c;
    c->namespace = str_or(c->namespace, "*");
    return c;
}

/* Says whether a list has moved on since it was read, by the index of an answer of one row. */
static bool
list_moved(struct cmd *c, const char *path, uint64_t seen)
{
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;

    if (c->fetch(c, c->address, api_ask(c, "GET", api_target(c, path, "per_page", "1", NULL)), &r,
                 &e) < 0)
        return true;
    const char *index = http_resp_header(r, "x-nomad-index");
    return index == NULL || !str_eq(index, fmt_u64(c, seen));
}

static bool
top_unchanged(struct top *t)
{
    struct top_data *d = t->data;

    if (d == NULL || d->error != NULL || t->view == TOP_LOGS)
        return false;
    struct cmd *c = cmd_copy(t);
    bool same = !list_moved(c, "/v1/jobs", d->seen[0]) &&
                (d->seen[1] == 0 || !list_moved(c, "/v1/nodes", d->seen[1])) &&
                (t->view != TOP_ALLOCS || !list_moved(c, "/v1/allocations", d->seen[2]));
    talloc_free(c);
    return same;
}

bool
top_load(struct top *t, bool always)
{
    if (!always && top_unchanged(t))
        return false;
    struct cmd *c = cmd_copy(t);
    struct top_data *d = mem_new(c, struct top_data);
    d->c = c;
    load_lists(t, d);
    if (t->view == TOP_ALLOCS && d->error == NULL)
        load_allocs(t, d);
    if (t->view == TOP_LOGS && d->error == NULL)
        load_log(t, d);
    if (t->data != NULL && d->error != NULL && !always) { /* the last rows stay */
        t->data->error = mem_strdup(t->data->c, d->error);
        talloc_free(c);
        return true;
    }
    if (t->data != NULL)
        talloc_free(t->data->c);
    t->data = d;
    top_order(t);
    return true;
}

/* --- figures --- */

static struct top_stat *
stat_find(struct top *t, const char *id)
{
    for (size_t i = 0; i < TOP_STATS_MAX; i++)
        if (str_eq(t->stats[i].id, id))
            return &t->stats[i];
    struct top_stat *s = &t->stats[t->next_stat++ % TOP_STATS_MAX];
    *s = (struct top_stat){.cpu = -1, .memory = -1, .pressure = -1};
    (void)str_copy(s->id, sizeof(s->id), id);
    return s;
}

static void
ask_node(struct cmd *c, struct top_stat *s)
{
    struct host_stats *h = NULL;
    struct err e = ERR_INIT;

    if (api_get(c, api_target(c, "/v1/client/stats", "node_id", s->id, NULL), &type_host_stats,
                (void **)&h, NULL, &e) < 0 ||
        h == NULL)
        return;
    double all = 0;
    for (size_t i = 0; i < h->cpu.n; i++)
        all += h->cpu.v[i]->total_percent;
    s->cpu = h->cpu.n > 0 ? all / (double)h->cpu.n : -1;
    s->memory = h->memory != NULL && h->memory->total > 0
                    ? 100.0 * (double)h->memory->used / (double)h->memory->total
                    : -1;
}

static void
ask_alloc(struct cmd *c, struct top_stat *s)
{
    struct alloc_resource_usage *u = NULL;
    struct err e = ERR_INIT;

    if (api_get(c, api_target(c, "/v1/client/allocation/%/stats", s->id, NULL),
                &type_alloc_resource_usage, (void **)&u, NULL, &e) < 0 ||
        u == NULL || u->resource_usage == NULL)
        return;
    if (u->resource_usage->cpu_stats != NULL)
        s->cpu = u->resource_usage->cpu_stats->total_ticks;
    if (u->resource_usage->memory_stats != NULL) {
        const struct memory_stats *m = u->resource_usage->memory_stats;
        s->memory = (double)(m->usage > 0 ? m->usage : m->rss) / (1 << 20);
    }
    for (size_t i = 0; i < u->tasks.n; i++) {
        const struct task_resource_usage *task = u->tasks.v[i].v;
        const struct pressure_stats *p =
            task && task->resource_usage ? task->resource_usage->pressure_stats : NULL;
        if (p == NULL)
            continue;
        const struct pressure *each[] = {p->cpu, p->memory, p->io};
        for (size_t k = 0; k < ARRAY_LEN(each); k++)
            if (each[k] != NULL && each[k]->some_avg10 > s->pressure)
                s->pressure = each[k]->some_avg10;
    }
}

static void
set_figure(struct cmd *c, struct top_row *r, int column, double v, const char *unit)
{
    if (v < 0 || r->n[column] == v)
        return;
    r->n[column] = v;
    r->cell[column] = mem_printf(c, v < 10 && v > 0 ? "%.1f%s" : "%.0f%s", v, unit);
}

void
top_figures(struct top *t, size_t from, size_t n)
{
    struct top_data *d = t->data;

    if (d == NULL || (t->view != TOP_NODES && t->view != TOP_ALLOCS))
        return;
    for (size_t i = from; i < d->n && i < from + n; i++) {
        struct top_row *r = &d->rows[i];
        struct top_stat *s = stat_find(t, r->id);
        bool lives = r->tone == TONE_GOOD || (t->view == TOP_NODES && r->tone != TONE_BAD);
        if (lives && cmd_now(t->c) - s->at_ns > STAT_NS_KEPT * NS_PER_S) {
            struct cmd *c = cmd_copy(t);
            s->at_ns = cmd_now(t->c);
            if (t->view == TOP_NODES)
                ask_node(c, s);
            else
                ask_alloc(c, s);
            talloc_free(c);
        }
        if (!lives)
            continue;
        if (t->view == TOP_NODES) {
            set_figure(d->c, r, 2, s->cpu, " %");
            set_figure(d->c, r, 3, s->memory, " %");
        } else {
            set_figure(d->c, r, 3, s->cpu, " MHz");
            set_figure(d->c, r, 4, s->memory, " MiB");
            set_figure(d->c, r, 5, s->pressure, " %");
        }
    }
}

/* --- order --- */

static const struct top *ordered; /* of the comparison, which gets no argument */

static int
row_cmp(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    int k = ordered->sort, r = 0;

    if (k < 0)
        r = x->rank - y->rank;
    else if (top_columns(ordered->view)[k].number)
        r = x->n[k] > y->n[k] ? -1 : x->n[k] < y->n[k];
    else
        r = strcmp(str_or(x->cell[k], ""), str_or(y->cell[k], ""));
    if (r == 0)
        return strcmp(str_or(x->cell[0], ""), str_or(y->cell[0], ""));
    return ordered->reverse ? -r : r;
}

static bool
row_fits(const struct top *t, const struct top_row *r)
{
    if (str_empty(t->filter))
        return true;
    for (int i = 0; i < TOP_COLUMNS; i++)
        if (r->cell[i] != NULL && strcasestr(r->cell[i], t->filter) != NULL)
            return true;
    return false;
}

void
top_order(struct top *t)
{
    struct top_data *d = t->data;
    size_t n = 0;

    if (t->view == TOP_LOGS)
        return;
    for (size_t i = 0; i < d->n; i++)
        if (row_fits(t, &d->rows[i]))
            d->rows[n++] = d->rows[i];
    d->n = n;
    ordered = t;
    if (n > 0)
        qsort(d->rows, n, sizeof(*d->rows), row_cmp);
}
