/* SPDX-License-Identifier: Apache-2.0
 *
 * What is special about job files: the blocks at the top, tasks without a group, constraints with
 * sugar keys, ports of networks.
 */
#include "jobspec/jobspec.h"

#include <string.h>
#include <strings.h>

#include "api/operators.h"
#include "common/mem.h"
#include "common/str.h"
#include "jobspec/decode.h"
#include "jobspec/normalize.h"
#include "jobspec/parse.h"
#include "jobspec/vars.h"

struct group_shared {
    const struct task_group *group;
    struct job_shared shared;
    struct group_shared *next;
};

/* The decoder with what a job file says for others than where it stands. */
struct job_decoder {
    struct decoder dc; /* first: hooks get its address */
    struct job_shared job;
    struct group_shared *groups;
    struct task_group_list alone; /* tasks right below the job */
};

/* --- constraints --- */

static int
constraint_sugar(struct decoder *dc, const char **ltarget, const char **rtarget,
                 const char **operand, const struct attr *a, const struct hcl_scope *sc)
{
    const char *const *key = operator_keys;
    while (*key != NULL && strcmp(*key, a->name) != 0)
        key++;
    if (*key == NULL)
        return 0;
    const struct operator* op = operator_find(*key);
    struct value *v = ev_expr(dc->ev, sc, a->expr);
    if (v == NULL)
        return -1;
    const char *s = value_text(dc->ctx, v);
    bool truth;
    if (s == NULL || (op->takes == TAKES_SWITCH && !value_truth(v, &truth))) {
        diag_error(dc->sink, &a->expr->r, "Incorrect value type", "\"%s\" needs %s.", a->name,
                   s == NULL ? "a string" : "true or false");
        return -1;
    }
    *operand = *key;
    if (op->takes == TAKES_COUNT)
        *ltarget = s;
    else
        *rtarget = s;
    return 1;
}

/* --- networks --- */

static int
network_port(struct decoder *dc, struct network_resource *net, const struct block *b,
             const struct hcl_scope *sc)
{
    struct port *p = type_new(dc->ctx, &type_port);
    if (!decode_block(dc, b, sc, &type_port, p))
        return -1;
    if (p->value != 0)
        list_add(dc->ctx, net->reserved_ports, p);
    else
        list_add(dc->ctx, net->dynamic_ports, p);
    return 1;
}

/* --- hooks --- */

static int
hook_attr(struct decoder *dc, const struct type *t, void *obj, const struct attr *a,
          const struct hcl_scope *sc)
{
    if (t == &type_constraint) {
        struct constraint *c = obj;
        return constraint_sugar(dc, &c->l_target, &c->r_target, &c->operand, a, sc);
    }
    if (t == &type_affinity) {
        struct affinity *c = obj;
        return constraint_sugar(dc, &c->l_target, &c->r_target, &c->operand, a, sc);
    }
    if (t == &type_log_config && strcmp(a->name, "enabled") == 0) {
        struct value *v = ev_expr(dc->ev, sc, a->expr);
        bool on;
        if (v == NULL || !value_truth(v, &on))
            return -1;
        ((struct log_config *)obj)->disabled = !on;
        return 1;
    }
    if (t == &type_job && strcmp(a->name, "id") == 0) {
        struct value *v = ev_expr(dc->ev, sc, a->expr);
        return v != NULL && decode_set(dc, type_field(t, "ID", 2), obj, v, &a->expr->r) ? 1 : -1;
    }
    return 0;
}

/* `vault` and `secret` of a job or group are those of its tasks. */
static int
shared_block(struct decoder *dc, struct job_shared *s, const struct block *b,
             const struct hcl_scope *sc)
{
    if (strcmp(b->type, "secret") == 0) {
        struct secret *x = type_new(dc->ctx, &type_secret);
        list_add(dc->ctx, s->secrets, x);
        return decode_block(dc, b, sc, &type_secret, x) ? 1 : -1;
    }
    if (s->vault != NULL) {
        diag_error(dc->sink, &b->r, "Duplicate vault block",
                   "Only one \"vault\" block is allowed here.");
        return -1;
    }
    s->vault = type_new(dc->ctx, &type_vault);
    return decode_block(dc, b, sc, &type_vault, s->vault) ? 1 : -1;
}

static bool
is_shared(const struct block *b)
{
    return strcmp(b->type, "vault") == 0 || strcmp(b->type, "secret") == 0;
}

static int
job_block(struct job_decoder *jd, const struct block *b, const struct hcl_scope *sc)
{
    struct decoder *dc = &jd->dc;
    if (is_shared(b))
        return shared_block(dc, &jd->job, b, sc);
    if (strcmp(b->type, "task") != 0)
        return 0;
    struct task_group *g = type_new(dc->ctx, &type_task_group);
    struct task *task = type_new(dc->ctx, &type_task);
    bool ok = decode_block(dc, b, sc, &type_task, task);
    g->name = task->name;
    list_add(dc->ctx, g->tasks, task);
    list_add(dc->ctx, jd->alone, g);
    return ok ? 1 : -1;
}

static int
group_block(struct job_decoder *jd, struct task_group *g, const struct block *b,
            const struct hcl_scope *sc)
{
    if (!is_shared(b))
        return 0;
    struct group_shared *s = jd->groups;
    if (s == NULL || s->group != g) { /* groups are decoded one after the other */
        s = mem_new(jd->dc.ctx, struct group_shared);
        *s = (struct group_shared){.group = g, .next = jd->groups};
        jd->groups = s;
    }
    return shared_block(&jd->dc, &s->shared, b, sc);
}

/* scaling "cpu" { ... } of a task: the label is the policy's type. */
static int
task_block(struct decoder *dc, struct task *task, const struct block *b, const struct hcl_scope *sc)
{
    if (strcmp(b->type, "scaling") != 0)
        return 0;
    const char *type = b->n_labels != 1                         ? NULL
                       : strcasecmp(b->labels[0].s, "cpu") == 0 ? "vertical_cpu"
                       : strcasecmp(b->labels[0].s, "mem") == 0 ? "vertical_mem"
                                                                : NULL;
    if (type == NULL) {
        diag_error(dc->sink, b->n_labels ? &b->labels[0].r : &b->r, "Invalid scaling policy name",
                   "scaling policy name must be \"cpu\" or \"mem\"");
        return -1;
    }
    for (size_t i = 0; i < task->scaling_policies.n; i++)
        if (str_eq(task->scaling_policies.v[i]->type, type)) {
            diag_error(dc->sink, &b->r, "Duplicate scaling block",
                       "Only one scaling \"%s\" block is allowed.", b->labels[0].s);
            return -1;
        }
    struct block bare = *b;
    bare.n_labels = 0;
    struct scaling_policy *p = type_new(dc->ctx, &type_scaling_policy);
    list_add(dc->ctx, task->scaling_policies, p);
    if (!decode_block(dc, &bare, sc, &type_scaling_policy, p))
        return -1;
    if (!str_empty(p->type) && !str_eq(p->type, type)) {
        diag_error(dc->sink, &b->r, "Invalid scaling policy type",
                   "Invalid policy type, expected \"%s\" but found \"%s\"", type, p->type);
        return -1;
    }
    p->type = type;
    return 1;
}

static int
hook_block(struct decoder *dc, const struct type *t, void *obj, const struct block *b,
           const struct hcl_scope *sc)
{
    struct job_decoder *jd = (struct job_decoder *)dc;
    if (t == &type_job)
        return job_block(jd, b, sc);
    if (t == &type_network_resource && strcmp(b->type, "port") == 0)
        return network_port(dc, obj, b, sc);
    if (t == &type_task_group)
        return group_block(jd, obj, b, sc);
    return t == &type_task ? task_block(dc, obj, b, sc) : 0;
}

static const char *const *
hook_names(const struct type *t)
{
    static const char *const job[] = {"id", "task", "vault", "secret", NULL};
    static const char *const group[] = {"vault", "secret", NULL};
    static const char *const task[] = {"scaling", NULL};
    static const char *const network[] = {"port", NULL};
    if (t == &type_constraint || t == &type_affinity)
        return operator_keys;
    return t == &type_job                ? job
           : t == &type_task_group       ? group
           : t == &type_task             ? task
           : t == &type_network_resource ? network
                                         : NULL;
}

static const struct decode_hooks hooks = {hook_attr, hook_block, hook_names};

/* --- the file --- */

/* Spreads the settings of jobs and groups to their tasks, the nearest first; and tasks that are a
 * group of their own. */
static void
spread_shared(struct job_decoder *jd, struct job *job)
{
    const void *ctx = jd->dc.ctx;
    struct task_group_list groups = job->task_groups;
    job->task_groups = jd->alone;
    for (size_t i = 0; i < groups.n; i++)
        list_add(ctx, job->task_groups, groups.v[i]);
    ASSERT(job->task_groups.n == jd->alone.n + groups.n);
    for (const struct group_shared *s = jd->groups; s != NULL; s = s->next)
        normalize_share(ctx, s->group, &s->shared);
    for (size_t i = 0; i < job->task_groups.n; i++)
        normalize_share(ctx, job->task_groups.v[i], &jd->job);
}

/* The one job block; names what else is at the top. */
static const struct block *
find_job(struct hcl_sink *sink, const struct hcl_body *body, bool *ok)
{
    static const char *const known[] = {"job", "variable", "variables", "locals"};
    const struct block *job = NULL;
    for (size_t i = 0; i < body->n_attrs; i++) {
        const struct attr *a = body->attrs[i];
        diag_error(sink, &a->name_r, "Unsupported argument",
                   "An argument named \"%s\" is not expected here.%s", a->name,
                   diag_suggest(sink, a->name, known, ARRAY_LEN(known)));
        *ok = false;
    }
    for (size_t i = 0; i < body->n_blocks; i++) {
        const struct block *b = body->blocks[i];
        size_t k = 0;
        while (k < ARRAY_LEN(known) && strcmp(known[k], b->type) != 0)
            k++;
        if (k == ARRAY_LEN(known)) {
            diag_error(sink, &b->type_r, "Unsupported block type",
                       "Blocks of type \"%s\" are not expected here.%s", b->type,
                       diag_suggest(sink, b->type, known, ARRAY_LEN(known)));
            *ok = false;
        } else if (k == 0 && job != NULL) {
            diag_error(sink, &b->r, "Duplicate job",
                       "A file holds one job; the first is at line %u.", job->r.start.line);
            *ok = false;
        } else if (k == 0) {
            job = b;
        }
    }
    if (job == NULL && *ok) {
        struct hcl_range r = body->r;
        r.end = r.start;
        diag_error(sink, &r, "No job", "The file has no block job \"name\" { ... }.");
        *ok = false;
    }
    return job;
}

static bool
is_json(const struct jobspec_input *in)
{
    size_t i = 0;
    while (i < in->n && in->s[i] != '\0' && strchr(" \t\r\n", in->s[i]) != NULL)
        i++;
    return i < in->n && in->s[i] == '{';
}

/* The API's form has no member "job", but "Job", or the members of one. */
static bool
is_api_json(const struct jobspec_input *in)
{
    auto_mem void *tmp = mem_ctx("json");
    struct hcl_diags quiet = HCL_DIAGS_INIT;
    struct hcl_sink sink = {.ctx = tmp, .d = &quiet, .quiet = true};
    const struct hcl_source src = {in->name, in->s, in->n};
    const struct hcl_body *body = parse_json_file(tmp, &src, 0, &sink);
    for (size_t i = 0; body != NULL && i < body->n_attrs; i++)
        if (str_eq(body->attrs[i]->name, "job"))
            return false;
    for (size_t i = 0; body != NULL && i < body->n_attrs; i++)
        if (str_eq(body->attrs[i]->name, "Job") || str_eq(body->attrs[i]->name, "ID"))
            return true;
    return false;
}

static int
parse_api(const void *ctx, const struct jobspec_input *in, struct job **ret, struct hcl_sink *sink)
{
    struct err e = ERR_INIT;
    int r = jobspec_parse_json(ctx, in->s, in->n, ret, &e);
    if (r < 0)
        diag_error(sink, NULL, "Invalid job in JSON", "%s.", e.text);
    return r;
}

int
jobspec_parse(const void *ctx, const struct jobspec_input *in, struct job **ret,
              struct hcl_diags *d)
{
    struct hcl_sink sink = {.ctx = ctx, .d = d};
    struct hcl_body *body;
    bool json = is_json(in);
    if (json && is_api_json(in))
        return parse_api(ctx, in, ret, &sink);
    int r = hcl_parse(ctx, in->name, SLICE(in->s, in->n), json ? HCL_JSON | HCL_TEMPLATES : 0,
                      &body, d);
    if (r == 0 && json && !parse_json_job(ctx, body, &sink))
        r = -ERR_INVALID;
    if (r < 0)
        return r;
    bool ok = true;
    const struct block *b = find_job(&sink, body, &ok);
    /* The tree of expressions outlives the call only with ctx; values are made beside it. */
    struct hcl_eval ev;
    ev_init(&ev, ctx, &sink, 0);
    ev.fs = in->fs;
    ev.random = in->random;
    ok = vars_load(&ev, body, in) && ok;
    if (b == NULL || (!ok && ev.exhausted))
        return -ERR_INVALID;
    struct job_decoder jd = {
        .dc = {.ctx = ctx, .sink = &sink, .ev = &ev, .hooks = &hooks, .later = true}};
    jd.dc.flags = json ? HCL_JSON : 0;
    struct job *job = type_new(ctx, &type_job);
    if (ok)
        ok = decode_block(&jd.dc, b, NULL, &type_job, job);
    if (!ok)
        return ev.exhausted ? -ERR_LIMIT : -ERR_INVALID;
    spread_shared(&jd, job);
    normalize_job(ctx, job);
    *ret = job;
    return 0;
}

int
jobspec_parse_json(const void *ctx, const char *s, size_t n, struct job **ret, struct err *e)
{
    if (n > HCL_SOURCE_MAX)
        return err_set(e, -ERR_LIMIT, "the job has %zu bytes, the limit is %d", n, HCL_SOURCE_MAX);
    void *obj = NULL;
    int r = json_decode(ctx, &type_job_register_request, SLICE(s, n), BUDGET(64 << 20), &obj, e);
    if (r < 0)
        return r;
    struct job_register_request *req = obj;
    struct job *job = req->job;
    if (job == NULL) {
        r = json_decode(ctx, &type_job, SLICE(s, n), BUDGET(64 << 20), &obj, e);
        if (r < 0)
            return r;
        job = obj;
    }
    if (str_empty(job->id))
        return err_set(e, -ERR_INVALID, "the JSON holds no job: \"ID\" is missing");
    *ret = job;
    return 0;
}
