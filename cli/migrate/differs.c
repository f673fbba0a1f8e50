/* SPDX-License-Identifier: Apache-2.0
 *
 * What runs, and does something else than in Nomad: the differences of paddock-nomad(7) that a job
 * can meet, a row each.
 */
#include "api/drivers.h"
#include "api/terms.h"
#include "cli/migrate/migrate.h"

struct subject { /* a task; its group; or the job alone */
    const struct job *job;
    const struct task_group *group;
    const struct task *task;
};

/* --- predicates --- */

static bool
raw_exec_of_nobody(const struct subject *s)
{
    return s->task && str_eq(s->task->driver, "raw_exec") && str_empty(s->task->user);
}

static bool
drops_capabilities(const struct subject *s)
{
    return s->task && str_eq(s->task->driver, "exec") &&
           value_get(s->task->config, "cap_drop") != NULL;
}

static bool
differs_says(const struct value *v, const char *const *words)
{
    if (!v)
        return false;
    if (v->kind == VALUE_STRING)
        for (const char *const *w = words; *w; w++)
            if (strstr(v->str.s, *w))
                return true;
    for (size_t i = 0; v->kind == VALUE_LIST && i < v->list.n; i++)
        if (differs_says(v->list.v[i], words))
            return true;
    for (size_t i = 0; v->kind == VALUE_MAP && i < v->map.n; i++)
        if (differs_says(v->map.v[i].v, words))
            return true;
    return false;
}

static bool
task_says(const struct task *t, const char *const *words)
{
    for (size_t i = 0; i < t->env.n; i++)
        for (const char *const *w = words; *w; w++)
            if (strstr(str_or(t->env.v[i].v, ""), *w))
                return true;
    return differs_says(t->config, words);
}

static bool
talks_to_agent(const struct subject *s)
{
    static const char *const words[] = {":4646", ":4647", NULL};
    return s->task && task_says(s->task, words);
}

static bool
raw_exec_secrets(const struct subject *s)
{
    static const char *const words[] = {"NOMAD_SECRETS_DIR", "/secrets", "secrets/", NULL};
    return s->task && str_eq(s->task->driver, "raw_exec") && task_says(s->task, words);
}

static bool
has_mode(const struct subject *s, const char *mode)
{
    bool is = false;
    for (size_t i = 0; s->group && !s->task && i < s->group->networks.n; i++)
        is = is || str_eq(s->group->networks.v[i]->mode, mode);
    return is;
}

/* By Paddock's bridge, and not an engine's. */
static bool
differs_bridged(const struct subject *s)
{
    return has_mode(s, "bridge") && s->group->tasks.n > 0 &&
           !driver_engine(s->group->tasks.v[0]->driver);
}

/* Says whether a group is of containers and others, or of two engines: they cannot share a
 * network. */
static bool
differs_mixed(const struct subject *s)
{
    bool own = has_mode(s, "bridge") || has_mode(s, "none"), is = false;
    for (size_t i = 1; own && i < s->group->tasks.n; i++) {
        const char *a = s->group->tasks.v[0]->driver, *b = s->group->tasks.v[i]->driver;
        is = is || ((driver_engine(a) || driver_engine(b)) && !str_eq(a, b));
    }
    return is;
}

static bool
other_region(const struct subject *s)
{
    return !s->group && !str_empty(s->job->region) && !str_eq(s->job->region, "global");
}

static bool
other_namespace(const struct subject *s)
{
    return !s->group && !str_empty(s->job->namespace) && !str_eq(s->job->namespace, NS_DEFAULT);
}

static bool
other_pool(const struct subject *s)
{
    return !s->group && !str_empty(s->job->node_pool) && !str_eq(s->job->node_pool, POOL_DEFAULT) &&
           !str_eq(s->job->node_pool, POOL_ALL);
}

/* --- rows --- */

static const struct row {
    bool (*applies)(const struct subject *s);
    const char *word; /* which argument or block it is about */
    const char *text, *fix;
} rows[] = {
    {raw_exec_of_nobody, "driver",
     "a raw_exec task that names no user is run by nobody, in Nomad by root",
     "name the user it needs; for root, take root off denied_users (paddock.hcl(5))"},
    {raw_exec_secrets, "driver",
     "the secrets directory of a raw_exec task is on the client's disk, in Nomad a tmpfs",
     "use exec, or keep what the disk must not hold out of it"},
    {drops_capabilities, "cap_drop",
     "cap_drop changes nothing: a task has no capability but those of cap_add",
     "list in cap_add what the task needs"},
    {talks_to_agent, "config", "a task does not reach the HTTP and RPC addresses of its own agent",
     "set isolation { agent_api = true } in the client's configuration"},
    {differs_bridged, "network",
     "an allocation in mode bridge has at most 8192 tracked connections that it began",
     "nothing below that; else mode host"},
    {differs_mixed, "network",
     "containers share the network of their group with containers of the same engine alone: it "
     "does not start",
     "give its tasks one driver, or the group mode host"},
    {other_region, "region", "the servers have to be of the job's region",
     "set region in the agents' configuration, or leave it out of the job"},
    {other_namespace, "namespace", "the job's namespace has to be made first",
     "make it before the job runs"},
    {other_pool, "node_pool", "the job's node pool has to be there first",
     "give the nodes their node_pool, or make it"},
};

static void
differs_look(struct cmd *c, struct checked *k, const struct subject *s)
{
    const char *who =
        s->task    ? mem_printf(c, "group \"%s\": task \"%s\": ", s->group->name, s->task->name)
        : s->group ? mem_printf(c, "group \"%s\": ", s->group->name)
                   : "";

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].applies(s))
            checked_add(c, k, MIGRATE_DIFFERS,
                        checked_place(c, k, s->group ? s->group->name : NULL,
                                      s->task ? s->task->name : NULL, rows[i].word),
                        mem_printf(c, "%s%s", who, rows[i].text), rows[i].fix);
}

void
check_differences(struct cmd *c, struct checked *k, const struct job *job)
{
    differs_look(c, k, &(struct subject){job, NULL, NULL});
    for (size_t g = 0; g < job->task_groups.n; g++) {
        const struct task_group *tg = job->task_groups.v[g];
        differs_look(c, k, &(struct subject){job, tg, NULL});
        for (size_t t = 0; t < tg->tasks.n; t++)
            differs_look(c, k, &(struct subject){job, tg, tg->tasks.v[t]});
    }
}
