/* SPDX-License-Identifier: Apache-2.0
 *
 * References to ports and meta; see validate_refs.h. First the names that a job gives, as
 * client/task/env.c makes them; then the walk through a config.
 */
#include "api/validate_refs.h"

#include <ctype.h>
#include <string.h>

#include "api/limits.h"
#include "common/mem.h"
#include "common/str.h"

enum {
    REFS_MAX = 4096, /* references of a task that are looked at; a client looks at all */
    REFS_TOLD = 64   /* names of a task that are told */
};

struct refs {
    const void *ctx;
    const struct job *job;
    const struct task_group *group;
    const struct task *task;
    struct str_list *errors;
    struct str_list seen;
    size_t n;
};

static const char *const of_ports[] = {"NOMAD_PORT_", "NOMAD_IP_", "NOMAD_ADDR_",
                                       "NOMAD_HOST_PORT_"};
static const char of_meta[] = "NOMAD_META_";

/* --- names that the job gives --- */

/* `name` is `given` with "_" for bytes that no name of a variable has; `upper`: or in capitals. */
static bool
is_name_of(const char *name, const char *given, bool upper)
{
    bool same = true, capital = upper;
    for (; *name && *given; name++, given++) {
        char c = isalnum((unsigned char)*given) || *given == '.' ? *given : '_';
        same &= c == *name;
        capital &= (char)toupper((unsigned char)c) == *name;
    }
    return *name == *given && (same || capital);
}

static bool
has_label(const struct network_resource_list *l, const char *label)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct port_list *lists[] = {&l->v[i]->reserved_ports, &l->v[i]->dynamic_ports};
        for (size_t k = 0; k < ARRAY_LEN(lists); k++)
            for (size_t p = 0; p < lists[k]->n; p++)
                if (is_name_of(label, str_or(lists[k]->v[p]->label, ""), false))
                    return true;
    }
    return false;
}

/* A port of the group, of the task, or of another task, whose name is in front of its label. */
static bool
has_port(const struct refs *r, const char *label)
{
    if (has_label(&r->group->networks, label))
        return true;
    for (size_t i = 0; i < r->group->tasks.n; i++) {
        const struct task *t = r->group->tasks.v[i];
        size_t n = strlen(str_or(t->name, ""));
        if (!t->resources || t->resources->networks.n == 0)
            continue;
        if (t == r->task ? has_label(&t->resources->networks, label)
                         : strlen(label) > n && label[n] == '_')
            return true;
    }
    return false;
}

static bool
has_key(const struct str_map *m, const char *key)
{
    for (size_t i = 0; i < m->n; i++)
        if (is_name_of(key, m->v[i].k, true))
            return true;
    return false;
}

static bool
has_name(const struct str_list *l, const char *key)
{
    for (size_t i = 0; i < l->n; i++)
        if (is_name_of(key, l->v[i], true))
            return true;
    return false;
}

static bool
has_meta(const struct refs *r, const char *key)
{
    const struct parameterized_job_config *p = r->job->parameterized_job;
    return has_key(&r->job->meta, key) || has_key(&r->group->meta, key) ||
           has_key(&r->task->meta, key) ||
           (p && (has_name(&p->meta_required, key) || has_name(&p->meta_optional, key)));
}

/* --- the walk --- */

static void
refs_judge(struct refs *r, const char *name)
{
    const char *what = NULL;
    if (r->seen.n >= REFS_TOLD || r->n++ >= REFS_MAX || str_map_get(&r->task->env, name))
        return;
    for (size_t i = 0; i < ARRAY_LEN(of_ports); i++) {
        size_t n = strlen(of_ports[i]);
        if (str_prefix(name, of_ports[i]) && !has_port(r, name + n))
            what = "the group has no port of that label";
    }
    if (str_prefix(name, of_meta) && !has_meta(r, name + strlen(of_meta)))
        what = "the job, the group and the task have no such meta";
    if (!what)
        return;
    for (size_t i = 0; i < r->seen.n; i++)
        if (str_eq(r->seen.v[i], name))
            return;
    list_add(r->ctx, r->seen, name);
    list_add(r->ctx, *r->errors,
             mem_printf(r->ctx, "the config refers to ${%.100s}, and %s", name, what));
}

static void
refs_text(struct refs *r, const char *s)
{
    while ((s = strstr(s, "${")) != NULL) {
        size_t n = 0;
        for (s += 2; isalnum((unsigned char)s[n]) || (s[n] != '\0' && strchr("_.-", s[n]));)
            n++;
        if (n > 0 && s[n] == '}')
            refs_judge(r, mem_strndup(r->ctx, s, n));
    }
}

static void
refs_walk(struct refs *r, const struct value *v, int depth)
{
    if (!v || depth > JOB_CONFIG_DEPTH_MAX)
        return;
    if (v->kind == VALUE_STRING)
        refs_text(r, v->str.s);
    for (size_t i = 0; v->kind == VALUE_LIST && i < v->list.n; i++)
        refs_walk(r, v->list.v[i], depth + 1);
    for (size_t i = 0; v->kind == VALUE_MAP && i < v->map.n; i++) {
        refs_text(r, v->map.v[i].k);
        refs_walk(r, v->map.v[i].v, depth + 1);
    }
}

void
validate_refs(const void *ctx, const struct job *j, const struct task_group *g,
              const struct task *t, struct str_list *errors)
{
    struct refs r = {.ctx = ctx, .job = j, .group = g, .task = t, .errors = errors};
    refs_walk(&r, t->config, 0);
}
