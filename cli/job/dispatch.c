/* SPDX-License-Identifier: Apache-2.0
 *
 * job dispatch.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "api/terms.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/monitor.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"

enum { WAIT_MAX_MS = 300 * 1000, WAIT_POLL_MS = 1000 };

struct dispatch_opts {
    bool detach, verbose, wait, ui;
    const char *token, *prefix;
    struct opt_list meta;
    int64_t priority;
};

static int
read_payload(struct cmd *c, const char *path, struct job_dispatch_request *req)
{
    char *p;
    size_t n;
    int rc = 0;
    if (str_eq(path, "-")) {
        p = mem_array(c, char, DISPATCH_INPUT_MAX + 1);
        n = fread(p, 1, DISPATCH_INPUT_MAX + 1, c->in);
        rc = n > DISPATCH_INPUT_MAX ? -ERR_LIMIT : 0;
    } else {
        rc = file_read(c, AT_FDCWD, path, DISPATCH_INPUT_MAX, &p, &n);
    }
    if (rc == -ERR_LIMIT)
        return cmd_fail(c, "Error reading input data: larger than %d bytes", DISPATCH_INPUT_MAX);
    if (rc < 0)
        return cmd_fail(c, "Error reading input data: open %s: %s", path, strerror(-rc));
    req->payload.v = (uint8_t *)p;
    req->payload.n = n;
    return 0;
}

static int
parse_meta(struct cmd *c, const struct opt_list *l, struct str_map *ret)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *eq = strchr(l->v[i], '=');
        if (!eq)
            return cmd_fail(c, "Error parsing meta value: %s", l->v[i]);
        str_map_set(c, ret, mem_strndup(c, l->v[i], (size_t)(eq - l->v[i])), eq + 1);
    }
    return 0;
}

static void
print_groups(struct cmd *c, const struct job_summary *s)
{
    struct table t;
    table_init(&t, c, 8);
    table_row(&t, "Task Group", "Queued", "Complete", "Failed", "Running", "Starting", "Lost",
              "Unknown");
    for (size_t i = 0; i < s->summary.n; i++) {
        const struct task_group_summary *g = s->summary.v[i].v;
        table_row(&t, s->summary.v[i].k, fmt_i64(c, g->queued), fmt_i64(c, g->complete),
                  fmt_i64(c, g->failed), fmt_i64(c, g->running), fmt_i64(c, g->starting),
                  fmt_i64(c, g->lost), fmt_i64(c, g->unknown));
    }
    table_print(&t);
}

/* Until nothing of the job is to be done; 2: some of it failed. */
static int
wait_dead(struct cmd *c, const char *id)
{
    int64_t end = clock_mono_ns() + WAIT_MAX_MS * NS_PER_MS;
    for (uint64_t index = 0;;) {
        struct err e = ERR_INIT;
        struct api_meta meta = {0};
        void *ret = NULL;
        char *target = api_target(c, "/v1/job/%", id, "index", index ? fmt_u64(c, index) : NULL,
                                  "wait", "5s", NULL);
        if (api_get(c, target, &type_job, &ret, &meta, &e))
            return cmd_fail(c, "Error querying allocations: %s", e.text);
        index = meta.index;
        if (str_eq(((const struct job *)ret)->status, JOB_STATUS_DEAD)) {
            const struct job_summary *s = api_read(c, api_target(c, "/v1/job/%/summary", id, NULL),
                                                   &type_job_summary, "Error querying allocations");
            if (!s)
                return 1;
            int code = 0;
            for (size_t i = 0; i < s->summary.n; i++)
                code = s->summary.v[i].v->failed > 0 ? 2 : code;
            cmd_heading(c, "Deployed");
            print_groups(c, s);
            return code;
        }
        if (clock_mono_ns() >= end) {
            cmd_warn(c, "Timeout reached after 5m0s");
            return 1;
        }
        if (index == 0)
            poll(NULL, 0, WAIT_POLL_MS);
    }
}

static int
dispatch_job(struct cmd *c, const struct dispatch_opts *o, const struct job_dispatch_request *req)
{
    struct table t;
    char *target =
        api_target(c, "/v1/job/%/dispatch", req->job_id, "idempotency_token", o->token, NULL);
    const struct job_dispatch_response *r =
        api_change(c, &(struct change){NULL, target, &type_job_dispatch_request, req,
                                       &type_job_dispatch_response, "Failed to dispatch job"});
    if (!r)
        return 1;
    bool evaluated = !str_empty(r->eval_id);
    table_init(&t, c, 2);
    table_row(&t, "Dispatched Job ID", r->dispatched_job_id);
    if (evaluated)
        table_row(&t, "Evaluation ID", fmt_id(c, r->eval_id, o->verbose));
    table_print_kv(&t);
    if (o->detach || !evaluated)
        return 0;
    cmd_say(c, "%s", "");
    if (monitor_eval(c, r->eval_id, o->verbose))
        return 1;
    return o->wait ? wait_dead(c, r->dispatched_job_id) : 0;
}

int
cmd_job_dispatch(struct cmd *c)
{
    struct dispatch_opts o = {.detach = false};
    const struct opt opts[] = {
        {"detach", OPT_BOOL, &o.detach, NULL, "Return at once, with the id of the evaluation."},
        {"id-prefix-template", OPT_STRING, &o.prefix, "<prefix>",
         "Begin the part of the new job's id that is its own with this."},
        {"idempotency-token", OPT_STRING, &o.token, "<token>",
         "Do nothing if a job that was dispatched with this token is still there."},
        {"meta", OPT_LIST, &o.meta, "<key>=<value>",
         "Set a key of the job's meta; may be repeated."},
        {"priority", OPT_INT, &o.priority, "<priority>",
         "Priority of the new job, 1 to 100 (default that of the parameterized one)."},
        {"ui", OPT_BOOL, &o.ui, NULL, "Without effect: the command ui prints the address."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids."},
        {"wait", OPT_BOOL, &o.wait, NULL,
         "Wait until the new job has ended, at most 5 minutes. Exit code 2: a task of it failed."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 2}, &rc))
        return rc;
    struct job_dispatch_request req = {.id_prefix_template = o.prefix, .priority = o.priority};
    if ((c->n_args == 2 && read_payload(c, c->args[1], &req)) || parse_meta(c, &o.meta, &req.meta))
        return 1;
    const struct job_list_stub *stub = api_find_job_of(
        c, c->args[0], "ParentID == \"\" and ParameterizedJob is not nil", "parameterized ");
    if (!stub)
        return 1;
    req.job_id = stub->id;
    return dispatch_job(c, &o, &req);
}
