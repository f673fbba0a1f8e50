/* SPDX-License-Identifier: Apache-2.0
 *
 * What is kept of a job, of each version once.
 */
#include <string.h>

#include "api/terms.h"
#include "bench/fleet/fleet.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"

static char *
key_of(const void *ctx, const char *ns, const char *id, uint64_t index)
{
    return mem_printf(ctx, "%s\n%s\n%llu", str_or(ns, NS_DEFAULT), str_or(id, ""),
                      (unsigned long long)index);
}

struct spec *
spec_find(struct fleet *f, const char *ns, const char *id, uint64_t index)
{
    auto_mem void *tmp = mem_ctx("key");
    const char *key = key_of(tmp, ns, id, index);
    struct spec *s = NULL;

    HASH_FIND_STR(f->specs, key, s);
    return s;
}

static int64_t
number(const struct value *config, const char *option, int64_t dflt)
{
    const struct value *v = value_get(config, option);

    if (v == NULL)
        return dflt;
    return v->kind == VALUE_INT ? v->i : v->kind == VALUE_FLOAT ? (int64_t)v->f : dflt;
}

static int64_t
duration_ms(const struct value *config, const char *option)
{
    const struct value *v = value_get(config, option);
    int64_t ns = -NS_PER_MS;

    if (v != NULL && v->kind == VALUE_STRING)
        (void)duration_parse(v->str.s, &ns);
    else
        ns = number(config, option, ns);
    return ns / NS_PER_MS;
}

static void
fill_group(struct spec *s, struct spec_group *g, const struct task_group *tg)
{
    g->name = mem_strdup(s, tg->name);
    g->run_ms = g->block_ms = -1;
    g->min_healthy_ms = tg->update != NULL && tg->update->min_healthy_time.set
                            ? tg->update->min_healthy_time.v / NS_PER_MS
                            : 0;
    for (size_t i = 0; i < tg->tasks.n; i++) {
        const struct task *t = tg->tasks.v[i];
        list_add(s, g->tasks, mem_strdup(s, t->name));
        if (i > 0 || !str_eq(t->driver, "mock_driver"))
            continue;
        const struct value *err = value_get(t->config, "start_error");
        g->mock = true;
        g->run_ms = duration_ms(t->config, "run_for");
        g->block_ms = duration_ms(t->config, "start_block_for");
        g->exit_code = number(t->config, "exit_code", 0);
        g->start_error =
            err != NULL && err->kind == VALUE_STRING ? mem_strdup(s, err->str.s) : NULL;
    }
}

struct spec *
spec_of_job(struct fleet *f, const struct job *j)
{
    struct spec *s = spec_find(f, j->namespace, j->id, j->job_modify_index);

    if (s != NULL)
        return s;
    s = mem_new(NULL, struct spec);
    s->key = key_of(s, j->namespace, j->id, j->job_modify_index);
    s->ns = mem_strdup(s, str_or(j->namespace, NS_DEFAULT));
    s->id = mem_strdup(s, j->id);
    s->job_modify_index = j->job_modify_index;
    s->per_node = str_eq(j->type, JOB_SYSTEM) || str_eq(j->type, JOB_SYSBATCH);
    s->groups = mem_array(s, struct spec_group, j->task_groups.n);
    for (; s->n_groups < j->task_groups.n; s->n_groups++)
        fill_group(s, &s->groups[s->n_groups], j->task_groups.v[s->n_groups]);
    HASH_ADD_KEYPTR(hh, f->specs, s->key, strlen(s->key), s);
    return s;
}

void
spec_unref(struct fleet *f, struct spec *s)
{
    if (--s->refs == 0) {
        HASH_DEL(f->specs, s);
        talloc_free(s);
    }
}
