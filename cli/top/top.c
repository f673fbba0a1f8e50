/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock top: the command, its picture and its keys. To read it: top_run() at the end is the loop;
 * above it are the keys, each a line of on_key(), and above those the picture, draw_all().
 */
#include <inttypes.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/top/top.h"
#include "common/clock.h"
#include "common/duration.h"

enum { HEAD_LINES = 4, LEAST_MS = 100 };

static const char keys_text[] = "q quit  Enter open  Esc back  j jobs  n nodes  a allocations  l "
                                "log  s sort  r reverse  / filter";

/* --- the picture --- */

static size_t
lines_for_rows(const struct screen *s)
{
    return s->rows > HEAD_LINES + 2 ? s->rows - HEAD_LINES - 1 : 1;
}

/* The widths of columns; those at the right go where there is no room. Returns how many stay. */
static size_t
lay_out(const struct screen *s, const struct top_column *col, unsigned *width)
{
    unsigned used = 0;
    size_t n = 1;

    width[0] = 12;
    for (; col[n].name != NULL && used + width[0] + col[n].width + 1 <= s->columns; n++) {
        width[n] = col[n].width;
        used += col[n].width + 1;
    }
    width[0] = s->columns > used ? s->columns - used : 1;
    return n;
}

static const char *
view_title(const struct top *t, const void *tmp)
{
    static const char *const names[] = {"jobs", "nodes", "allocations", "log"};

    if (t->view == TOP_LOGS)
        return mem_printf(tmp, "%s of %s in %.8s", t->log_type, t->log_task, t->log_id);
    if (t->view == TOP_ALLOCS && t->of_name != NULL)
        return mem_printf(tmp, "allocations of %s", t->of_name);
    return names[t->view];
}

static void
draw_head(struct top *t, struct screen *s, const struct top_column *col, const unsigned *width,
          size_t n)
{
    struct top_data *d = t->data;
    auto_mem void *tmp = mem_ctx("head");

    screen_tone(s, d->tone, false);
    screen_put(s, str_or(d->verdict, ""), s->columns, false);
    screen_end_line(s);
    screen_tone(s, d->error ? TONE_BAD : TONE_SOFT, false);
    screen_put(s, d->error ? mem_printf(tmp, "no answer: %s", d->error) : d->line, s->columns,
               false);
    screen_end_line(s);
    screen_put(s,
               mem_printf(tmp, "%s: %zu%s%s", view_title(t, tmp), d->n,
                          str_empty(t->filter) ? "" : ", filter ", str_or(t->filter, "")),
               s->columns, false);
    screen_end_line(s);
    screen_tone(s, TONE_NONE, true);
    for (size_t i = 0; i < n; i++) {
        const char *mark = (int)i == t->sort ? (t->reverse ? "^" : "v") : "";
        screen_put(s, mem_printf(tmp, "%s%s", col[i].name, mark), width[i], i > 0 && col[i].number);
        if (i + 1 < n)
            screen_put(s, " ", 1, false);
    }
    screen_end_line(s);
}

/* Marks the row that was marked before, wherever it is now. */
static void
mark_place(struct top *t, size_t lines)
{
    struct top_data *d = t->data;

    for (size_t i = 0; t->key != NULL && t->view != TOP_LOGS && i < d->n; i++)
        if (str_eq(d->rows[i].id, t->key)) {
            t->at = i;
            break;
        }
    if (t->view == TOP_LOGS && t->follows)
        t->at = d->n > 0 ? d->n - 1 : 0;
    if (t->at >= d->n)
        t->at = d->n > 0 ? d->n - 1 : 0;
    if (t->at < t->from)
        t->from = t->at;
    if (t->at >= t->from + lines)
        t->from = t->at - lines + 1;
    if (t->from + lines > d->n)
        t->from = d->n > lines ? d->n - lines : 0;
}

static void
draw_all(struct top *t, struct screen *s, const char *prompt)
{
    const struct top_column *col = top_columns(t->view);
    unsigned width[TOP_COLUMNS];
    size_t n = lay_out(s, col, width), lines = lines_for_rows(s);

    mark_place(t, lines);
    top_figures(t, t->from, lines);
    screen_begin(s);
    draw_head(t, s, col, width, n);
    for (size_t i = t->from; i < t->from + lines; i++) {
        const struct top_row *r = i < t->data->n ? &t->data->rows[i] : NULL;
        bool marked = r != NULL && i == t->at && t->view != TOP_LOGS;
        for (size_t k = 0; r != NULL && k < n; k++) {
            screen_tone(s, k == (t->view == TOP_ALLOCS ? 2 : 1) ? r->tone : TONE_NONE, marked);
            screen_put(s, r->cell[k], width[k], k > 0 && col[k].number);
            if (k + 1 < n)
                screen_put(s, " ", 1, false);
        }
        screen_end_line(s);
    }
    screen_tone(s, TONE_SOFT, false);
    screen_put(s, prompt ? prompt : keys_text, s->columns, false);
    screen_end_line(s);
    screen_end(s);
}

/* --- keys --- */

static void
go_to(struct top *t, enum top_view v)
{
    t->view = v;
    t->sort = -1;
    t->reverse = false;
    t->at = t->from = 0;
    t->key = NULL;
    t->filter = NULL;
    t->follows = true;
    top_load(t, true);
}

static void
open_row(struct top *t, bool log)
{
    const struct top_row *r = t->at < t->data->n ? &t->data->rows[t->at] : NULL;

    if (r == NULL)
        return;
    if (t->view == TOP_ALLOCS && r->task != NULL) {
        t->log_id = mem_strdup(t->c, r->id);
        t->log_task = mem_strdup(t->c, r->task);
        t->log_type = "stdout";
        go_to(t, TOP_LOGS);
        return;
    }
    if (log || t->view == TOP_LOGS)
        return;
    t->of_job = t->view == TOP_JOBS ? mem_strdup(t->c, r->id) : NULL;
    t->of_ns = t->view == TOP_JOBS ? mem_strdup(t->c, str_or(r->ns, "default")) : NULL;
    t->of_node = t->view == TOP_NODES ? mem_strdup(t->c, r->id) : NULL;
    t->of_name = mem_strdup(t->c, r->cell[0]);
    go_to(t, TOP_ALLOCS);
}

static void
go_back(struct top *t)
{
    if (!str_empty(t->filter)) {
        t->filter = NULL;
        top_load(t, true);
    } else if (t->view == TOP_LOGS) {
        go_to(t, TOP_ALLOCS);
    } else if (t->view == TOP_ALLOCS) {
        go_to(t, t->of_node != NULL ? TOP_NODES : TOP_JOBS);
    }
}

/* Reads a filter, a letter at a time; what it lets through is seen at once. */
static void
read_filter(struct top *t, struct screen *s)
{
    char text[64] = "";
    size_t n = 0;

    for (;;) {
        char prompt[sizeof(text) + 16];
        snprintf(prompt, sizeof(prompt), "filter: %s", text);
        draw_all(t, s, prompt);
        int k = screen_key(INT32_MAX);
        if (k == '\r' || k == '\n' || k == KEY_GONE || k == KEY_ESCAPE)
            break;
        if (k == KEY_RESIZE)
            screen_size(s);
        else if ((k == 127 || k == 8) && n > 0)
            text[--n] = '\0';
        else if (k >= ' ' && k < 256 && n + 1 < sizeof(text))
            text[n++] = (char)k, text[n] = '\0';
        else
            continue;
        t->filter = n > 0 ? mem_strdup(t->c, text) : NULL;
        t->key = NULL;
        top_load(t, true);
    }
}

static void
sort_next(struct top *t)
{
    t->sort++;
    if (t->sort >= TOP_COLUMNS || top_columns(t->view)[t->sort].name == NULL)
        t->sort = -1;
    top_order(t);
}

static void
mark_move(struct top *t, int64_t by)
{
    int64_t to = (int64_t)t->at + by, last = (int64_t)t->data->n - 1;

    to = to > last ? last : to;
    t->at = to < 0 ? 0 : (size_t)to;
    t->follows = (int64_t)t->at >= last;
    t->key = t->at < t->data->n ? mem_strdup(t->c, t->data->rows[t->at].id) : NULL;
}

/* False: that was the end. */
static bool
on_key(struct top *t, struct screen *s, int k)
{
    int64_t page = (int64_t)lines_for_rows(s);

    switch (k) {
    case 'q':
    case 3: /* ^C */
    case KEY_GONE:
        return false;
    case KEY_RESIZE:
        screen_size(s);
        break;
    case KEY_UP:
    case 'k':
        mark_move(t, -1);
        break;
    case KEY_DOWN:
        mark_move(t, 1);
        break;
    case KEY_PAGE_UP:
        mark_move(t, -page);
        break;
    case KEY_PAGE_DOWN:
    case ' ':
        mark_move(t, page);
        break;
    case KEY_HOME:
        mark_move(t, INT32_MIN);
        break;
    case KEY_END:
        mark_move(t, INT32_MAX);
        break;
    case '\r':
    case '\n':
        open_row(t, false);
        break;
    case KEY_ESCAPE:
    case 127:
        go_back(t);
        break;
    case 'j':
        go_to(t, TOP_JOBS);
        break;
    case 'n':
        go_to(t, TOP_NODES);
        break;
    case 'a':
        t->of_job = t->of_node = t->of_name = NULL;
        go_to(t, TOP_ALLOCS);
        break;
    case 'l':
        open_row(t, true);
        break;
    case 'e':
        t->log_type = str_eq(t->log_type, "stdout") ? "stderr" : "stdout";
        top_load(t, true);
        break;
    case 's':
        sort_next(t);
        break;
    case 'r':
        t->reverse = !t->reverse;
        top_order(t);
        break;
    case '/':
        read_filter(t, s);
        break;
    default:
        break;
    }
    return true;
}

/* --- the command --- */

static int
top_once(struct top *t)
{
    struct top_data *d = t->data;
    const struct top_column *col = top_columns(t->view);
    const char *cells[TOP_COLUMNS] = {0};
    struct table out;
    size_t n = 0;

    if (d->error != NULL)
        return cmd_fail(t->c, "Error asking the agent: %s", d->error);
    while (col[n].name != NULL)
        n++;
    cmd_say(t->c, "%s", d->verdict);
    cmd_say(t->c, "%s\n", d->line);
    table_init(&out, t->c, n);
    for (size_t i = 0; i < n; i++)
        cells[i] = col[i].name;
    table_cells(&out, cells);
    top_figures(t, 0, TOP_STATS_MAX);
    for (size_t i = 0; i < d->n; i++)
        table_cells(&out, d->rows[i].cell);
    table_print(&out);
    return 0;
}

static int
top_run(struct top *t, int64_t interval_ms)
{
    struct screen s = {.color = t->c->color};
    bool goes_on = true;

    if (!screen_open(&s))
        return cmd_fail(t->c, "This is no terminal: -once prints what top shows");
    for (int64_t next = 0; goes_on;) {
        int64_t now = clock_mono_ns() / NS_PER_MS;
        if (now >= next) {
            top_load(t, false);
            next = now + interval_ms;
        }
        draw_all(t, &s, NULL);
        goes_on = on_key(t, &s, screen_key(next > now ? next - now : 0));
    }
    screen_close(&s);
    return 0;
}

int
cmd_top(struct cmd *c)
{
    static const char *const views[] = {"jobs", "nodes", "allocations"};
    struct top *t = mem_new(c, struct top);
    bool once = false;
    int64_t interval = NS_PER_S;
    const char *view = NULL;
    const struct opt opts[] = {
        {"once", OPT_BOOL, &once, NULL, "Print it once, as a table."},
        {"interval", OPT_DURATION, &interval, "<duration>", "Look that often (1s)."},
        {"view", OPT_STRING, &view, "<view>", "Begin with jobs, nodes or allocations."},
        {"filter", OPT_STRING, &t->filter, "<text>", "Show rows with that text in them."},
        {0}};
    int rc;

    *t = (struct top){.c = c, .sort = -1, .log_type = "stdout"};
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    for (size_t i = 0; view != NULL && i < ARRAY_LEN(views); i++)
        if (str_eq(view, views[i]))
            t->view = (enum top_view)i, view = NULL;
    if (view != NULL)
        return cmd_fail(c, "-view is jobs, nodes or allocations, not \"%s\"", view);
    if (interval < LEAST_MS * NS_PER_MS)
        return cmd_fail(c, "-interval must be %d ms or more", LEAST_MS);
    top_load(t, true);
    if (once || t->data->error != NULL)
        return top_once(t);
    return top_run(t, interval / NS_PER_MS);
}
