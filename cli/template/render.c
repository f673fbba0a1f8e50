/* SPDX-License-Identifier: Apache-2.0
 *
 * template render: the text that a task's template gives, without a job. Variables and services are
 * those that the agent has; the environment is that of an allocation's task, or of a file. Each
 * question of the template is kept for -explain, with the reason why its answer is missing.
 */
#include "api/plain.h"
#include "api/terms.h"
#include "cli/alloc/alloc.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"
#include "client/task/env.h"
#include "common/fd.h"
#include "render/envfile.h"
#include "template/digest.h"
#include "template/template.h"

struct asked {
    const char *name;
    const char *why; /* NULL: it is there */
};

struct render {
    struct cmd *c;
    struct str_map env;
    const struct allocation *alloc; /* NULL: none */
    const char *task;
    struct asked *asked;
    size_t n_asked;
};

/* --- the environment --- */

static bool
env_of_file(struct render *r, const char *path)
{
    char *text;
    size_t n;
    struct err e = ERR_INIT;
    if (jobfile_read(r->c, path, &text, &n, &e) ||
        envfile_parse(r->c, SLICE(text, n), &r->env, &e)) {
        cmd_fail(r->c, "Error reading \"%s\": %s", path, e.text);
        return false;
    }
    return true;
}

static const struct allocated_task_resources *
resources_of(const struct allocation *a, const char *task)
{
    const struct allocated_resources *r = a->allocated_resources;
    for (size_t i = 0; r && i < r->tasks.n; i++)
        if (str_eq(r->tasks.v[i].k, task))
            return r->tasks.v[i].v;
    return NULL;
}

/* Takes over what the client gives a task, as far as an agent tells: not the directories of a task
 * without a root of its own, and nothing of hooks. */
static bool
env_of_alloc(struct render *r, const char *id, const char *task)
{
    struct cmd *c = r->c;
    r->alloc = alloc_find(c, id);
    r->task = r->alloc ? alloc_task(c, r->alloc, task) : NULL;
    if (!r->task)
        return false;
    const struct task_group *g = job_group(r->alloc->job, r->alloc->task_group);
    const struct node *node = api_read(c, api_target(c, "/v1/node/%", r->alloc->node_id, NULL),
                                       &type_node, "Error querying node");
    if (!node || !g)
        return false;
    struct env_input in = {.node = node, .region = c->region, .alloc = r->alloc, .group = g};
    for (size_t i = 0; i < g->tasks.n; i++)
        if (str_eq(g->tasks.v[i]->name, r->task))
            in.task = g->tasks.v[i];
    in.resources = resources_of(r->alloc, r->task);
    in.alloc_dir = "/alloc";
    in.task_dir = "/local";
    in.secrets_dir = "/secrets";
    struct str_list list = {0};
    env_list(c, env_build(c, &in), &list);
    for (size_t i = 0; i < list.n; i++) {
        const char *equals = strchr(list.v[i], '=');
        str_map_set(c, &r->env, mem_strndup(c, list.v[i], (size_t)(equals - list.v[i])),
                    equals + 1);
    }
    c->namespace = str_or(r->alloc->namespace, "default");
    return true;
}

/* --- answers --- */

static void
remember_ask(struct render *r, const char *name, const char *why)
{
    for (size_t i = 0; i < r->n_asked; i++)
        if (str_eq(r->asked[i].name, name))
            return;
    mem_resize(r->c, r->asked, struct asked, r->n_asked + 1);
    r->asked[r->n_asked++] =
        (struct asked){mem_strdup(r->c, name), why ? mem_strdup(r->c, why) : NULL};
}

/* Asks the agent, in the namespace and region of the question. */
static int
ask_agent(struct render *r, const struct template_ask *a, const char *path,
          const struct value **ret, struct err *e)
{
    struct cmd *c = r->c;
    const char *ns = c->namespace, *region = c->region;
    struct value *v = NULL;
    c->namespace = *a->ns ? a->ns : ns;
    c->region = *a->region ? a->region : region;
    int rc = api_get_value(c, api_raw_target(c, path, NULL), &v, e);
    c->namespace = ns;
    c->region = region;
    *ret = v;
    return rc;
}

/* The services of the first namespace of the answer. */
static const struct value *
services_of(struct cmd *c, const struct value *v)
{
    const struct value *first = v->kind == VALUE_LIST && v->list.n > 0 ? v->list.v[0] : NULL;
    const struct value *list = first ? value_get(first, "Services") : NULL;
    return list ? list : value_list(c);
}

static char *
path_of(struct render *r, const struct template_ask *a)
{
    struct cmd *c = r->c;
    switch (a->kind) {
    case TEMPLATE_VARIABLES:
        return mem_printf(c, "/v1/vars?prefix=%s", a->key);
    case TEMPLATE_SERVICE:
        return mem_printf(c, "/v1/service/%s", a->key);
    case TEMPLATE_SERVICES:
        return mem_strdup(c, "/v1/services");
    default:
        return mem_printf(c, "/v1/var/%s", a->key);
    }
}

static enum template_answer
ask_file(struct render *r, const struct template_ask *a, const struct value **ret)
{
    struct err e = ERR_INIT;
    char *text;
    size_t n;
    if (r->alloc) {
        remember_ask(r, a->name, "files of an allocation are read on its node only");
        return TEMPLATE_MISSING;
    }
    if (jobfile_read(r->c, a->key, &text, &n, &e)) {
        remember_ask(r, a->name, e.text);
        return TEMPLATE_MISSING;
    }
    remember_ask(r, a->name, NULL);
    *ret = value_strn(r->c, text, n);
    return TEMPLATE_VALUE;
}

static enum template_answer
answer_template(void *data, const struct template_ask *a, const struct value **ret,
                struct err *unused)
{
    struct render *r = data;
    struct err e = ERR_INIT;
    (void)unused;
    if (a->kind == TEMPLATE_ENV) {
        const char *v = str_map_get(&r->env, a->key);
        *ret = v ? value_str(r->c, v) : NULL;
        return v ? TEMPLATE_VALUE : TEMPLATE_MISSING;
    }
    if (a->kind == TEMPLATE_FILE)
        return ask_file(r, a, ret);
    int rc = ask_agent(r, a, path_of(r, a), ret, &e);
    bool absent = rc == -ERR_NOT_FOUND;
    if (a->kind == TEMPLATE_VARIABLE_EXISTS && (rc == 0 || absent)) {
        *ret = value_bool(r->c, rc == 0);
        rc = 0;
    } else if (a->kind == TEMPLATE_SERVICES && rc == 0)
        *ret = services_of(r->c, *ret);
    remember_ask(r, a->name, rc == 0 ? NULL : absent ? "there is none" : e.text);
    return rc == 0 ? TEMPLATE_VALUE : TEMPLATE_MISSING;
}

/* --- the command --- */

static void
explain_asked(struct render *r)
{
    struct table t;
    table_init(&t, r->c, 2);
    table_row(&t, "Dependency", "State");
    for (size_t i = 0; i < r->n_asked; i++)
        table_row(&t, r->asked[i].name,
                  r->asked[i].why ? mem_printf(r->c, "missing: %s", r->asked[i].why) : "there");
    if (r->n_asked)
        table_print(&t);
    else
        cmd_say(r->c, "It asks for nothing but its environment.");
}

static int
carry_out(struct render *r, const struct template_tree *tree, bool explain)
{
    struct cmd *c = r->c;
    auto_buf struct buf out = BUF_INIT(CLI_OUT_MAX);
    struct template_env env = {.ask = answer_template,
                               .data = r,
                               .digest = template_digest,
                               .now_ns = cmd_now(c),
                               .ns = c->namespace,
                               .region = c->region};
    struct template_result res;
    struct err e = ERR_INIT;
    int rc = template_exec(c, &(struct template_input){tree, NULL, &env, NULL}, &out, &res, &e);
    if (explain)
        explain_asked(r);
    if (res.missing.n == 0 && rc)
        return cmd_fail(c, "Error rendering \"%s\": %s", c->args[0], e.text);
    if (rc)
        cmd_warn(c, "Waiting, it stops here: %s", e.text);
    if (res.missing.n > 0 && !explain) {
        cmd_warn(c, "The template waits for:");
        for (size_t i = 0; i < r->n_asked; i++)
            if (r->asked[i].why)
                cmd_warn(c, "    %s: %s", r->asked[i].name, r->asked[i].why);
    }
    if (res.missing.n > 0)
        return 2;
    if (!explain)
        fwrite(out.data, 1, out.len, c->out);
    return 0;
}

int
cmd_template_render(struct cmd *c)
{
    const char *alloc = NULL, *task = NULL, *env_file = NULL;
    bool explain = false;
    const struct opt opts[] = {
        {"alloc", OPT_STRING, &alloc, "<id>",
         "Take the environment and namespace of this allocation's task."},
        {"task", OPT_STRING, &task, "<task>", "With -alloc: the task, if there are several."},
        {"env-file", OPT_STRING, &env_file, "<file>",
         "Take the environment from lines KEY=VALUE of a file."},
        {"explain", OPT_BOOL, &explain, NULL,
         "Print what the template asks for, and whether it is there, and not its text."},
        {0}};
    struct render r = {.c = c};
    char *text;
    size_t n;
    struct err e = ERR_INIT;
    struct template_tree *tree;
    struct template_grammar g = {.name = "", .table = TEMPLATE_TASK};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (alloc && env_file)
        return cmd_fail(c, "Only one of -alloc and -env-file is possible.");
    if (task && !alloc)
        return cmd_fail(c, "-task needs -alloc.");
    if (jobfile_read(c, c->args[0], &text, &n, &e))
        return cmd_fail(c, "Error reading the template: %s", e.text);
    if (template_parse(c, &g, SLICE(text, n), &tree, &e))
        return cmd_fail(c, "Error parsing \"%s\": %s", c->args[0], e.text);
    if ((alloc && !env_of_alloc(&r, alloc, task)) || (env_file && !env_of_file(&r, env_file)))
        return 1;
    return carry_out(&r, tree, explain);
}
