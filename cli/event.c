/* SPDX-License-Identifier: Apache-2.0
 *
 * event stream: what happens in the cluster, a line for each event, until it is interrupted.
 */
#include <inttypes.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/stream.h"

struct event_follow {
    struct cmd *c;
    bool json, verbose, failed;
    uint64_t last;   /* index of the last line */
    struct buf line; /* that has not ended yet */
};

/* Returns the object of a payload, its first member; NULL: there is none. */
static const struct value *
event_object(const struct stream_event *ev)
{
    const struct value *p = ev->payload;

    return p != NULL && p->kind == VALUE_MAP && p->map.n > 0 ? p->map.v[0].v : NULL;
}

/* Returns the words on an object that its type does not say. */
static const char *
event_words(struct cmd *c, const struct stream_event *ev)
{
    const struct value *o = event_object(ev);
    const char *status =
        value_get_str(o, str_eq(ev->topic, "Allocation") ? "ClientStatus" : "Status");
    const char *job = value_get_str(o, "JobID"), *name = value_get_str(o, "Name");
    const char *of = !str_empty(job) ? job : str_eq(ev->topic, "Node") ? name : "";

    return mem_printf(c, "%s%s%s", of, *of && *status ? " " : "", status);
}

static void
event_show(struct event_follow *f, const struct stream_event *ev)
{
    const char *key = ev->key, *ns = str_empty(ev->namespace) ? "-" : ev->namespace;
    bool uuid = strlen(str_or(key, "")) == 36 && strspn(key, "0123456789abcdef-") == 36;

    cmd_say(f->c, "%-8" PRIu64 " %-11s %-29s %-*s %-10s %s", ev->index, ev->topic, ev->type,
            f->verbose ? 36 : 20, uuid ? fmt_id(f->c, key, f->verbose) : key, ns,
            event_words(f->c, ev));
}

/* False: the stream is over. */
static bool
event_line(struct event_follow *f, const char *text, size_t n)
{
    auto_mem void *tmp = mem_ctx("line");
    struct err e = ERR_INIT;
    struct event_line *l = NULL;

    if (json_decode(tmp, &type_event_line, SLICE(text, n), BUDGET(CLI_ANSWER_MAX), (void **)&l,
                    &e) < 0) {
        cmd_fail(f->c, "Error reading events: %s", e.text);
        f->failed = true;
        return false;
    }
    if (!str_empty(l->error)) {
        cmd_fail(f->c, "The stream has ended: %s", l->error);
        f->failed = true;
        return false;
    }
    f->last = l->index > 0 ? l->index : f->last;
    if (f->json && l->events.n > 0)
        fprintf(f->c->out, "%.*s\n", (int)n, text);
    for (size_t i = 0; !f->json && i < l->events.n; i++)
        event_show(f, l->events.v[i]);
    fflush(f->c->out);
    return true;
}

static bool
event_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct event_follow *f = arg;
    const char *at = p, *end = at + n;

    (void)r;
    for (const char *nl; (nl = memchr(at, '\n', (size_t)(end - at))) != NULL; at = nl + 1) {
        buf_put(&f->line, at, (size_t)(nl - at));
        bool goes_on = event_line(f, (const char *)f->line.data, f->line.len);
        buf_reset(&f->line);
        if (!goes_on)
            return false;
    }
    buf_put(&f->line, at, (size_t)(end - at));
    return buf_error(&f->line) == 0;
}

static const char *
add_all(struct cmd *c, const char *target, const char *name, const struct opt_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        auto_buf struct buf b = BUF_INIT(1 << 20);
        http_escape(&b, l->v[i], false);
        target = mem_printf(c, "%s&%s=%s", target, name, buf_str(&b));
    }
    return target;
}

int
cmd_event_stream(struct cmd *c)
{
    struct event_follow f = {.c = c};
    struct opt_list topics = {0}, types = {0};
    const char *filter = NULL;
    int64_t index = 0;
    const struct opt opts[] = {
        {"topic", OPT_LIST, &topics, "<topic[:key]>",
         "Show events of the topic, or of what has the key there. May be repeated."},
        {"type", OPT_LIST, &types, "<type>", "Show events of the type. May be repeated."},
        {"filter", OPT_STRING, &filter, "<expression>", "Show those that the expression matches."},
        {"index", OPT_INT, &index, "<n>", "Begin with the entry of that index."},
        {"json", OPT_BOOL, &f.json, NULL, "Print the lines of the API as they come."},
        {"verbose", OPT_BOOL, &f.verbose, NULL, "Show full ids."},
        {0}};
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const char *target =
        api_target(c, "/v1/event/stream", "index", fmt_i64(c, index), "filter", filter, NULL);
    target = add_all(c, add_all(c, target, "topic", &topics), "type", &types);
    struct http_ask *a = api_ask(c, "GET", target);
    a->on_body = event_body;
    a->arg = &f;
    buf_init(&f.line, CLI_ANSWER_MAX);
    follow_until_interrupt();
    int fetched = c->fetch(c, c->address, a, &r, &e);
    buf_done(&f.line);
    if (f.failed)
        return 1;
    if (fetched == 0 && r->status >= 300)
        return stream_bad_status(c, "following events", r);
    return cmd_fail(c, "Error following events: %s%s", fetched < 0 ? e.text : "the agent has ended",
                    f.last > 0 ? mem_printf(c, "\nGo on with -index %" PRIu64, f.last + 1) : "");
}
