/* SPDX-License-Identifier: Apache-2.0
 *
 * node drain: beginning, ending and watching a drain.
 */
#include <poll.h>
#include <stdarg.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/node.h"

enum { POLL_MS = 500 };

struct drain_opts {
    bool enable, disable, detach, force, no_deadline, ignore_system, keep_ineligible, self, yes;
    bool monitor, json;
    const char *message;
    int64_t deadline;
    struct opt_list meta;
};

/* --- watching --- */

struct watch_drain {
    struct cmd *c;
    const char *id;
    bool quiet;          /* the first look prints nothing: it is what was there before */
    struct str_map seen; /* allocation id -> what was last said of it */
    uint64_t allocs_index, node_index;
    bool ignores_system;
    size_t left;         /* allocations that have not ended and have to */
    size_t system;       /* and those that need not */
};

static void __attribute__((format(printf, 2, 3)))
drain_line(struct watch_drain *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = mem_vprintf(w->c, fmt, ap);
    va_end(ap);
    cmd_say(w->c, "%s: %s", fmt_time(w->c, cmd_now(w->c)), text);
    talloc_free(text);
    fflush(w->c->out);
}

static void
see_alloc(struct watch_drain *w, const struct allocation *a)
{
    const struct desired_transition *t = a->desired_transition;
    bool moves = (t && t->migrate.set && t->migrate.v) || alloc_server_terminal(a);
    const char *now = mem_printf(w->c, "%s%s", a->client_status, moves ? "!" : "");
    const char *before = str_map_get(&w->seen, a->id);
    bool stays = w->ignores_system && a->job && str_eq(a->job->type, JOB_SYSTEM);
    if (!alloc_client_terminal(a))
        ++*(stays ? &w->system : &w->left);
    if (str_eq(before, now))
        return;
    str_map_set(w->c, &w->seen, a->id, now);
    if (w->quiet)
        return;
    if (moves && before && !strchr(before, '!'))
        drain_line(w, "Alloc \"%s\" is stopped by the drain (job \"%s\")", a->id, a->job_id);
    size_t n = before ? strcspn(before, "!") : 0;
    if (before && (n != strlen(a->client_status) || strncmp(before, a->client_status, n) != 0))
        drain_line(w, "Alloc \"%s\" status %.*s -> %s", a->id, (int)n, before, a->client_status);
}

/* Waits for a change where there was a look before. */
static int
see_allocs(struct watch_drain *w)
{
    struct allocation_list l;
    struct err e = ERR_INIT;
    struct api_meta meta = {0};
    bool wait = w->allocs_index != 0 && w->left > 0;
    char *target = api_target(w->c, "/v1/node/%/allocations", w->id, "namespace", "*", "index",
                              wait ? fmt_u64(w->c, w->allocs_index) : NULL, "wait",
                              wait ? "2s" : NULL, NULL);
    if (api_list(w->c, target, &type_allocation, &l, &meta, &e))
        return cmd_fail(w->c, "Error reading the allocations of the node: %s", e.text);
    w->allocs_index = meta.index;
    w->left = w->system = 0;
    for (size_t i = 0; i < l.n; i++)
        see_alloc(w, l.v[i]);
    w->quiet = false;
    return 0;
}

static struct node *
see_node(struct watch_drain *w)
{
    void *ret = NULL;
    struct err e = ERR_INIT;
    struct api_meta meta = {0};
    bool wait = w->node_index != 0 && w->left == 0;
    char *target = api_target(w->c, "/v1/node/%", w->id, "index",
                              wait ? fmt_u64(w->c, w->node_index) : NULL, "wait",
                              wait ? "10s" : NULL, NULL);
    if (api_get(w->c, target, &type_node, &ret, &meta, &e)) {
        cmd_fail(w->c, "Error reading the node: %s", e.text);
        return NULL;
    }
    w->node_index = meta.index;
    const struct node *n = ret;
    if (n->drain_strategy)
        w->ignores_system = n->drain_strategy->ignore_system_jobs;
    return ret;
}

static int
drain_over(struct watch_drain *w, const struct node *n)
{
    if (n->last_drain && str_eq(n->last_drain->status, DRAIN_CANCELED)) {
        drain_line(w, "Node \"%s\": the drain was disabled before its end", w->id);
        return 1;
    }
    if (see_allocs(w))
        return 1;
    if (w->left + w->system == 0)
        drain_line(w, "All allocations on node \"%s\" have stopped", w->id);
    else
        drain_line(w, "All allocations on node \"%s\" have stopped, but for %zu of system jobs",
                   w->id, w->left + w->system);
    drain_line(w, "Node \"%s\" drain complete", w->id);
    return 0;
}

static int
drain_watch_node(struct cmd *c, const char *id)
{
    struct watch_drain w = {.c = c, .id = id, .quiet = true};
    drain_line(&w, "Monitoring node \"%s\": Ctrl-C ends this, not the drain", id);
    for (;;) {
        if (see_allocs(&w))
            return 1;
        const struct node *n = see_node(&w);
        if (!n)
            return 1;
        if (!n->drain_strategy && !n->last_drain) {
            drain_line(&w, "Node \"%s\" is not draining", id);
            return 0;
        }
        if (!n->drain_strategy)
            return drain_over(&w, n);
        if (w.node_index == 0 || w.allocs_index == 0)
            poll(NULL, 0, POLL_MS); /* an agent that tells no index cannot be waited on */
    }
}

/* --- the request --- */

static int
drain_check(struct cmd *c, const struct drain_opts *o)
{
    int modes = o->enable + o->disable + (o->monitor && !o->enable && !o->disable);
    bool timed = o->deadline != 0;
    if (modes != 1)
        return cmd_fail(c, "Give one of -enable, -disable and -monitor");
    if (o->force + o->no_deadline + timed > 1)
        return cmd_fail(c, "-deadline, -force and -no-deadline exclude each other");
    if (o->disable && (o->force || o->no_deadline || timed || o->ignore_system))
        return cmd_fail(c, "-deadline, -force, -no-deadline and -ignore-system need -enable");
    if (o->keep_ineligible && !o->disable)
        return cmd_fail(c, "-keep-ineligible needs -disable");
    if (o->detach && o->monitor)
        return cmd_fail(c, "-detach and -monitor exclude each other");
    if (o->deadline < 0)
        return cmd_fail(c, "A deadline must be positive");
    return 0;
}

static int
fill_meta(struct cmd *c, const struct drain_opts *o, struct str_map *meta)
{
    if (!str_empty(o->message))
        str_map_set(c, meta, "message", o->message);
    for (size_t i = 0; i < o->meta.n; i++) {
        const char *kv = o->meta.v[i], *eq = strchr(kv, '=');
        if (!eq || eq == kv)
            return cmd_fail(c, "-meta \"%s\" is not <key>=<value>", kv);
        str_map_set(c, meta, mem_strndup(c, kv, (size_t)(eq - kv)), eq + 1);
    }
    return 0;
}

static bool
drain_sure(struct cmd *c, const struct drain_opts *o, const char *id)
{
    if (o->yes)
        return true;
    if (o->disable)
        return cmd_confirm(c, mem_printf(c, "End the drain of node \"%s\"?", id));
    return cmd_confirm(c, mem_printf(c, "Drain node \"%s\"%s?", id,
                                     o->force ? ", stopping everything at once" : ""));
}

static int
drain_change(struct cmd *c, const struct drain_opts *o, const char *id)
{
    struct drain_spec spec = {.ignore_system_jobs = o->ignore_system};
    struct node_drain_request req = {.node_id = id,
                                     .mark_eligible = o->disable && !o->keep_ineligible};
    if (fill_meta(c, o, &req.meta))
        return 1;
    if (o->enable) {
        spec.deadline = o->deadline ? o->deadline : DRAIN_DEADLINE_NS;
        if (o->force || o->no_deadline)
            spec.deadline = o->force ? -1 : 0;
        req.drain_spec = &spec;
    }
    if (!drain_sure(c, o, id))
        return cmd_fail(c, "Nothing was changed");
    const void *answer = api_change(
        c, &(struct change){NULL, api_target(c, "/v1/node/%/drain", id, NULL),
                            &type_node_drain_request, &req, &type_node_eligibility_update_response,
                            "Error updating the drain"});
    if (!answer)
        return 1;
    if (o->json) {
        int rc = 0;
        output_object(c, &(struct output){.json = true}, &type_node_eligibility_update_response,
                      answer, &rc);
        return rc;
    }
    if (o->disable)
        cmd_say(c, "Node \"%s\" drain strategy unset", id);
    else
        cmd_say(c, "Node \"%s\" drain strategy set", id);
    return o->enable && !o->detach ? drain_watch_node(c, id) : 0;
}

int
cmd_node_drain(struct cmd *c)
{
    struct drain_opts o = {.enable = false};
    const struct opt opts[] = {
        {"enable", OPT_BOOL, &o.enable, NULL, "Drain the node."},
        {"disable", OPT_BOOL, &o.disable, NULL,
         "End the drain; the node takes new allocations again."},
        {"deadline", OPT_DURATION, &o.deadline, "<duration>",
         "What is left after this time is stopped; default 1h."},
        {"force", OPT_BOOL, &o.force, NULL, "Stop everything at once."},
        {"no-deadline", OPT_BOOL, &o.no_deadline, NULL, "Wait for as long as it takes."},
        {"ignore-system", OPT_BOOL, &o.ignore_system, NULL,
         "Leave allocations of system jobs running."},
        {"keep-ineligible", OPT_BOOL, &o.keep_ineligible, NULL,
         "With -disable: the node goes on taking no new allocations."},
        {"self", OPT_BOOL, &o.self, NULL, "The node that the agent is."},
        {"m", OPT_STRING, &o.message, "<message>", "Kept with the drain, as \"message\"."},
        {"meta", OPT_LIST, &o.meta, "<key>=<value>", "Kept with the drain; may be repeated."},
        {"monitor", OPT_BOOL, &o.monitor, NULL, "Watch a drain that is under way."},
        {"detach", OPT_BOOL, &o.detach, NULL, "Return at once instead of watching the drain."},
        {"yes", OPT_BOOL, &o.yes, NULL, "Do not ask."},
        {"json", OPT_BOOL, &o.json, NULL, "Output the answer in JSON format; do not watch."},
        {0}};
    int rc = 1;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (drain_check(c, &o))
        return 1;
    const char *id = node_arg(c, o.self, &rc);
    if (!id)
        return rc;
    return o.enable || o.disable ? drain_change(c, &o, id) : drain_watch_node(c, id);
}
