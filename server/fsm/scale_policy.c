/* SPDX-License-Identifier: Apache-2.0
 *
 * The state machine: scaling policies, which follow the groups of a job's newest version.
 */
#include <xxhash.h>

#include "server/fsm/fsm_int.h"

/* Apply makes no random ids: a policy's is made of the group's name and the first index. */
static const char *
policy_id(struct apply *a, const struct job *j, const struct task_group *g)
{
    const char *of = mem_printf(a->tmp, "scaling\n%s\n%s\n%s", j->namespace, j->id, g->name);
    XXH128_hash_t h = XXH3_128bits_withSeed(of, strlen(of), a->index);

    return mem_printf(a->ctx, "%08x-%04x-8%03x-8%03x-%012llx", (unsigned)(h.low64 >> 32),
                      (unsigned)(h.low64 >> 16) & 0xffffU, (unsigned)h.low64 & 0xfffU,
                      (unsigned)(h.high64 >> 52) & 0xfffU,
                      (unsigned long long)(h.high64 & 0xffffffffffffULL));
}

static void
put_policy(struct apply *a, const struct job *j, const struct task_group *g,
           const struct job_scaling_policy *old)
{
    const struct scaling_policy *s = g->scaling;
    struct job_scaling_policy *p = type_new(a->ctx, &type_job_scaling_policy);

    p->id = old != NULL ? mem_strdup(p, old->id) : policy_id(a, j, g);
    p->namespace = mem_strdup(p, j->namespace);
    p->job_id = mem_strdup(p, j->id);
    p->group = mem_strdup(p, g->name);
    p->type = mem_strdup(p, s->type);
    str_map_set(p, &p->target, "Namespace", p->namespace);
    str_map_set(p, &p->target, "Job", p->job_id);
    str_map_set(p, &p->target, "Group", p->group);
    p->policy = s->policy != NULL ? value_clone(p, s->policy) : NULL;
    p->min = s->min.v;
    p->max = s->max.v;
    p->enabled = s->enabled.v;
    p->create_index = old != NULL ? old->create_index : a->index;
    p->modify_index = old != NULL ? old->modify_index : a->index;
    if (old != NULL && codec_equal(&type_job_scaling_policy, p, old, 0))
        return;
    p->modify_index = a->index;
    state_put(a->t, a->index, SCALING_POLICIES, p);
}

void
entry_put_policies(struct apply *a, const struct job *j)
{
    struct {
        struct job_scaling_policy **v;
        size_t n;
    } old = {NULL, 0};
    struct state_iter *it = state_scaling_by_job(a->t, a->tmp, j->namespace, j->id);

    for (struct job_scaling_policy *p; (p = state_next(it, a->tmp)) != NULL;)
        list_add(a->tmp, old, p);
    for (size_t i = 0; i < j->task_groups.n; i++) {
        const struct task_group *g = j->task_groups.v[i];
        const struct job_scaling_policy *was = NULL;
        for (size_t k = 0; k < old.n && was == NULL; k++)
            was = str_eq(old.v[k]->group, g->name) ? old.v[k] : NULL;
        if (g->scaling != NULL)
            put_policy(a, j, g, was);
    }
    for (size_t i = 0; i < old.n; i++) {
        const struct task_group *g = job_group(j, old.v[i]->group);
        if (g == NULL || g->scaling == NULL)
            (void)state_del(a->t, a->index, SCALING_POLICIES, old.v[i]->id);
    }
}
