/* SPDX-License-Identifier: Apache-2.0
 *
 * job scale, job scaling-events, scaling policy list and info.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/job/job.h"
#include "cli/monitor.h"
#include "common/num.h"

static const struct job_scale_status *
scale_status(struct cmd *c, const char *id, const char *failed)
{
    return api_read(c, api_target(c, "/v1/job/%/scale", id, NULL), &type_job_scale_status, failed);
}

/* --- job scale --- */

/* The group that is meant; NULL: said. */
static const char *
scale_group(struct cmd *c, const struct job_scale_status *s, const char *name)
{
    if (name == NULL && s->task_groups.n == 1)
        return s->task_groups.v[0].k;
    if (name == NULL)
        cmd_fail(c, "Group name required");
    else if (map_get(s->task_groups, name) == NULL)
        cmd_fail(c, "Group %s not found within job", name);
    else
        return name;
    return NULL;
}

static int
scale_submit(struct cmd *c, const struct follow *f, const char *id, struct job_scale_request *req)
{
    const struct change ch = {"PUT",
                              api_target(c, "/v1/job/%/scale", id, NULL),
                              &type_job_scale_request,
                              req,
                              &type_job_register_response,
                              "Error submitting scaling request"};
    const struct job_register_response *r = api_change(c, &ch);

    if (r == NULL)
        return 1;
    if (!f->detach && !str_empty(r->eval_id))
        return monitor_eval(c, r->eval_id, f->verbose);
    cmd_say(c, "Job scale successful");
    if (!str_empty(r->eval_id))
        cmd_say(c, "Evaluation ID: %s", r->eval_id);
    return 0;
}

int
cmd_job_scale(struct cmd *c)
{
    struct follow f = {false, false};
    int64_t index = 0, count = 0;
    const struct opt opts[] = {
        {"check-index", OPT_INT, &index, "<n>", "Scale only if the job has this modify index."},
        FOLLOW_OPTS(f),
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 2, .max = 3}, &rc))
        return rc;
    const char *text = c->args[c->n_args - 1];
    if (num_parse_i64(text, &count) < 0)
        return cmd_fail(c, "Failed to convert count string to int: \"%s\"", text);
    const struct job_list_stub *stub = api_find_job(c, c->args[0]);
    const struct job_scale_status *s =
        stub != NULL ? scale_status(c, stub->id, "Error querying job") : NULL;
    const char *group = s != NULL ? scale_group(c, s, c->n_args > 2 ? c->args[1] : NULL) : NULL;
    if (group == NULL)
        return 1;
    struct job_scale_request req = {.job_id = stub->id,
                                    .count = {true, count},
                                    .message = "submitted using the Paddock CLI",
                                    .job_modify_index = index > 0 ? (uint64_t)index : 0};
    str_map_set(c, &req.target, "Job", stub->id);
    str_map_set(c, &req.target, "Group", group);
    return scale_submit(c, &f, stub->id, &req);
}

/* --- job scaling-events --- */

struct group_event {
    const char *group;
    const struct scaling_event *ev;
};

static int
newest_first(const void *a, const void *b)
{
    const struct group_event *x = a, *y = b;

    return x->ev->time != y->ev->time ? (x->ev->time < y->ev->time ? 1 : -1)
                                      : strcmp(x->group, y->group);
}

static void
print_events(struct cmd *c, const struct group_event *v, size_t n, bool verbose)
{
    struct table t;

    table_init(&t, c, verbose ? 7 : 4);
    if (verbose)
        table_row(&t, "Task Group", "Count", "PrevCount", "Error", "Message", "Eval ID", "Date");
    else
        table_row(&t, "Task Group", "Count", "PrevCount", "Date");
    for (size_t i = 0; i < n; i++) {
        const struct scaling_event *ev = v[i].ev;
        const char *count = ev->count.set ? fmt_i64(c, ev->count.v) : "";
        const char *was = fmt_i64(c, ev->previous_count), *at = fmt_time(c, ev->time);
        if (verbose)
            table_row(&t, v[i].group, count, was, fmt_bool(ev->error), str_or(ev->message, ""),
                      str_or(ev->eval_id, ""), at);
        else
            table_row(&t, v[i].group, count, was, at);
    }
    table_print_blank(&t);
}

int
cmd_job_scaling_events(struct cmd *c)
{
    struct follow f = {false, false};
    const struct opt opts[] = {VERBOSE_OPT(f), {0}};
    struct group_event *v = NULL;
    size_t n = 0;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct job_list_stub *stub = api_find_job(c, c->args[0]);
    const struct job_scale_status *s =
        stub != NULL ? scale_status(c, stub->id, "Error listing scaling events") : NULL;
    if (s == NULL)
        return 1;
    for (size_t g = 0; g < s->task_groups.n; g++)
        for (size_t i = 0; i < s->task_groups.v[g].v->events.n; i++) {
            const struct scaling_event *ev = s->task_groups.v[g].v->events.v[i];
            mem_resize(c, v, struct group_event, n + 1);
            v[n++] = (struct group_event){s->task_groups.v[g].k, ev};
        }
    if (n == 0) {
        cmd_say(c, "No events found");
        return 0;
    }
    qsort(v, n, sizeof(*v), newest_first);
    print_events(c, v, n, f.verbose);
    return 0;
}

/* --- scaling policies --- */

/* Returns "Namespace:default,Job:web,Group:g". */
static const char *
target_text(struct cmd *c, const struct str_map *target)
{
    static const char *const first[] = {"Namespace", "Job", "Group"};
    const char *ret = "";

    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        const char *v = str_map_get(target, first[i]);
        if (v != NULL)
            ret = mem_printf(c, "%s%s%s:%s", ret, *ret ? "," : "", first[i], v);
    }
    return ret;
}

static void
print_policies(struct cmd *c, const struct object_list *l, bool verbose)
{
    struct table t;

    table_init(&t, c, 4);
    table_row(&t, "ID", "Enabled", "Type", "Target");
    for (size_t i = 0; i < l->n; i++) {
        const struct scaling_policy_list_stub *p = l->v[i];
        table_row(&t, fmt_id(c, p->id, verbose), fmt_bool(p->enabled), p->type,
                  target_text(c, &p->target));
    }
    table_print(&t);
}

static void
show_policies(struct cmd *c, const struct object_list *l)
{
    print_policies(c, l, false);
}

static int
list_policies(struct cmd *c, const struct output *out, const char *target, bool verbose)
{
    struct object_list l;
    int rc;

    if (!api_read_list(c, target, &type_scaling_policy_list_stub, &l,
                       "Error listing scaling policies"))
        return 1;
    if (output_list(c, out, &type_scaling_policy_list_stub, &l, &rc))
        return rc;
    if (l.n == 0)
        cmd_say(c, "No policies found");
    else
        print_policies(c, &l, verbose);
    return 0;
}

int
cmd_scaling_policy_list(struct cmd *c)
{
    struct follow f = {false, false};
    struct output out = {false, NULL};
    const char *job = NULL, *type = NULL;
    const struct opt opts[] = {
        {"job", OPT_STRING, &job, "<job>", "List the policies of a job."},
        {"type", OPT_STRING, &type, "<type>", "List policies of a type, or of those it begins."},
        VERBOSE_OPT(f),
        OUTPUT_OPTS(out),
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    return list_policies(
        c, &out, api_target(c, "/v1/scaling/policies", "job", job, "type", type, NULL), f.verbose);
}

static void
print_policy(struct cmd *c, const struct scaling_policy *p, bool verbose)
{
    auto_buf struct buf b = BUF_INIT(CLI_OUT_MAX);
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "ID", fmt_id(c, p->id, verbose));
    table_row(&t, "Enabled", fmt_bool(p->enabled.v));
    table_row(&t, "Target", target_text(c, &p->target));
    table_row(&t, "Min", fmt_i64(c, p->min.v));
    table_row(&t, "Max", fmt_i64(c, p->max.v));
    table_print_kv(&t);
    if (p->policy != NULL)
        json_encode_value(&b, p->policy, JSON_PRETTY);
    cmd_say(c, "\nPolicy:\n%s", b.len > 0 ? buf_str(&b) : "<empty>");
}

int
cmd_scaling_policy_info(struct cmd *c)
{
    static const struct api_kind kind = {"scaling policy", "/v1/scaling/policies",
                                         &type_scaling_policy_list_stub, show_policies};
    struct follow f = {false, false};
    struct output out = {false, NULL};
    const struct opt opts[] = {VERBOSE_OPT(f), OUTPUT_OPTS(out), {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (c->n_args == 0 && (out.json || out.tmpl != NULL))
        return list_policies(c, &out, api_target(c, "/v1/scaling/policies", NULL), true);
    if (c->n_args == 0)
        return cmd_fail(c, "This command takes a policy, or -json or -t and none");
    const char *id = api_find(c, &kind, c->args[0]);
    const struct scaling_policy *p =
        id != NULL ? api_read(c, api_target(c, "/v1/scaling/policy/%", id, NULL),
                              &type_scaling_policy, "Error querying scaling policy")
                   : NULL;
    if (p == NULL)
        return 1;
    if (output_object(c, &out, &type_scaling_policy, p, &rc))
        return rc;
    print_policy(c, p, f.verbose);
    return 0;
}
