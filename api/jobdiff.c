/* SPDX-License-Identifier: Apache-2.0
 *
 * Job differences: the generic diff of the codec, cut into JobDiff, TaskGroupDiff and TaskDiff.
 *
 * In this order: what is compared of a job; the diff into structs of the API, from the job down to
 * its tasks; and last the annotations, which say what a plan would do about it.
 */
#include "api/jobdiff.h"

#include <stdlib.h>
#include <string.h>

#include "api/terms.h"
#include "codec/diff.h"
#include "common/str.h"

/* Skips the members that have a place of their own, and those that Nomad leaves out. */
static bool
jobdiff_skip(const struct type *t, const struct field *f)
{
    static const struct {
        const struct type *t;
        const char *wire;
    } rows[] = {
        {&type_job, "ID"},
        {&type_job, "TaskGroups"},
        {&type_job, "Update"}, /* the groups have it */
        {&type_task_group, "Name"},
        {&type_task_group, "Tasks"},
        {&type_task, "Name"},
        {&type_update_strategy, "Stagger"},
        {&type_network_resource, "CIDR"},
        {&type_network_resource, "Device"},
        {&type_network_resource, "IP"},
        {&type_network_resource, "MBits"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (t == rows[i].t && strcmp(f->wire, rows[i].wire) == 0)
            return true;
    return false;
}

/* Nomad's order of objects; what is not named comes last. */
static size_t
jobdiff_rank(const char *object)
{
    static const char *const order[] = {
        "Datacenters",   "Constraint", "Affinity",      "Spread",  "Config",
        "Resources",     "LogConfig",  "RestartPolicy", "Migrate", "ReschedulePolicy",
        "EphemeralDisk", "Update",     "Network"};
    size_t i = 0;
    while (i < ARRAY_LEN(order) && !str_eq(order[i], object))
        i++;
    return i;
}

static void
put_in_order(struct object_diff_list *l)
{
    for (size_t i = 1; i < l->n; i++)
        for (size_t k = i; k > 0 && jobdiff_rank(l->v[k]->name) < jobdiff_rank(l->v[k - 1]->name);
             k--) {
            struct object_diff *o = l->v[k];
            l->v[k] = l->v[k - 1];
            l->v[k - 1] = o;
        }
}

static const char *
jobdiff_name(const struct type *t, const struct field *f)
{
    static const char *const names[][2] = {
        {"Constraints", "Constraint"},
        {"Affinities", "Affinity"},
        {"Spreads", "Spread"},
        {"Networks", "Network"},
        {"Devices", "Device"},
        {"ReservedPorts", "Static Port"},
        {"DynamicPorts", "Dynamic Port"},
        {"Links", "Link"},
        {"Services", "Service"},
        {"Templates", "Template"},
        {"Artifacts", "Artifact"},
        {"VolumeMounts", "VolumeMount"},
    };
    (void)t;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(f->wire, names[i][0]) == 0)
            return names[i][1];
    return NULL;
}

/* --- into API structs --- */

static struct object_diff *object_to_api(const void *ctx, const struct diff_object *o);

static void
contents_to_api(const void *ctx, const struct diff_object *o, struct field_diff_list *fields,
                struct object_diff_list *objects)
{
    for (size_t i = 0; o && i < o->fields.n; i++) {
        const struct diff_field *from = o->fields.v[i];
        struct field_diff *to = type_new(ctx, &type_field_diff);
        to->type = diff_type_name(from->type);
        to->name = mem_strdup(to, from->name);
        to->old = mem_strdup(to, from->old);
        to->new = mem_strdup(to, from->new);
        list_add(ctx, *fields, to);
    }
    for (size_t i = 0; o && i < o->objects.n; i++)
        list_add(ctx, *objects, object_to_api(ctx, o->objects.v[i]));
}

/* Context is for objects: a job, group or task lists only its own fields that changed. */
static void
own_fields(const void *ctx, const struct diff_object *o, struct field_diff_list *fields,
           struct object_diff_list *objects)
{
    struct field_diff_list all = {NULL, 0};
    contents_to_api(ctx, o, &all, objects);
    for (size_t i = 0; i < all.n; i++)
        if (!str_eq(all.v[i]->type, "None"))
            list_add(ctx, *fields, all.v[i]);
    put_in_order(objects);
}

static int
field_diff_cmp(const void *a, const void *b)
{
    const struct field_diff *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Adds a member that the server has of a job, and Nomad's diff too. True when it changed. */
static bool
server_field(struct job_diff *d, const char *field, const bool *old, const bool *new)
{
    if (old && new && *old == *new)
        return false;
    struct field_diff *f = type_new(d, &type_field_diff);
    f->type = diff_type_name(!old ? DIFF_ADDED : !new ? DIFF_DELETED : DIFF_EDITED);
    f->name = field;
    f->old = !old ? "" : *old ? "true" : "false";
    f->new = !new ? "" : *new ? "true" : "false";
    list_add(d, d->fields, f);
    qsort(d->fields.v, d->fields.n, sizeof(*d->fields.v), field_diff_cmp);
    return true;
}

static struct object_diff *
object_to_api(const void *ctx, const struct diff_object *o)
{
    struct object_diff *to = type_new(ctx, &type_object_diff);
    to->type = diff_type_name(o->type);
    to->name = mem_strdup(to, o->name);
    contents_to_api(to, o, &to->fields, &to->objects);
    return to;
}

/* Type of a node: by presence, else by whether anything below changed. */
static const char *
node_type(const void *old, const void *new, bool changed)
{
    return diff_type_name(!old ? DIFF_ADDED : !new ? DIFF_DELETED
                               : changed           ? DIFF_EDITED
                                                   : DIFF_NONE);
}

static struct task_diff *
diff_task(const void *ctx, const struct diff_rules *r, const struct task *old,
          const struct task *new)
{
    struct task_diff *d = type_new(ctx, &type_task_diff);
    d->name = mem_strdup(d, old ? old->name : new->name);
    struct diff_object *o = diff_structs(d, r, "Task", &type_task, old, new);
    d->type = node_type(old, new, o != NULL);
    own_fields(d, o, &d->fields, &d->objects);
    mem_free(o);
    return d;
}

static int
task_diff_cmp(const void *a, const void *b)
{
    const struct task_diff *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static struct task_group_diff *
diff_group(const void *ctx, const struct diff_rules *r, const struct task_group *old,
           const struct task_group *new)
{
    struct task_group_diff *d = type_new(ctx, &type_task_group_diff);
    d->name = mem_strdup(d, old ? old->name : new->name);
    struct diff_object *o = diff_structs(d, r, "TaskGroup", &type_task_group, old, new);
    own_fields(d, o, &d->fields, &d->objects);
    bool changed = o != NULL;
    mem_free(o);
    for (size_t i = 0; old && i < old->tasks.n; i++)
        list_add(d, d->tasks,
                 diff_task(d, r, old->tasks.v[i], group_task(new, old->tasks.v[i]->name)));
    for (size_t i = 0; new && i < new->tasks.n; i++)
        if (!group_task(old, new->tasks.v[i]->name))
            list_add(d, d->tasks, diff_task(d, r, NULL, new->tasks.v[i]));
    for (size_t i = 0; i < d->tasks.n && !changed; i++)
        changed = !str_eq(d->tasks.v[i]->type, "None");
    if (d->tasks.n)
        qsort(d->tasks.v, d->tasks.n, sizeof(*d->tasks.v), task_diff_cmp);
    d->type = node_type(old, new, changed);
    return d;
}

static int
group_diff_cmp(const void *a, const void *b)
{
    const struct task_group_diff *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

struct job_diff *
job_diff(const void *ctx, const struct job *old, const struct job *new, bool contextual)
{
    const struct diff_rules rules = {contextual, jobdiff_skip, jobdiff_name};
    struct job_diff *d = type_new(ctx, &type_job_diff);
    d->id = mem_strdup(d, old ? old->id : new->id);
    struct diff_object *o = diff_structs(d, &rules, "Job", &type_job, old, new);
    bool changed = o != NULL;
    own_fields(d, o, &d->fields, &d->objects);
    mem_free(o);
    changed |=
        server_field(d, "Dispatched", old ? &old->dispatched : NULL, new ? &new->dispatched : NULL);
    changed |= server_field(d, "Stop", old ? &old->stop : NULL, new ? &new->stop : NULL);
    for (size_t i = 0; old && i < old->task_groups.n; i++) {
        const struct task_group *tg = old->task_groups.v[i];
        list_add(d, d->task_groups, diff_group(d, &rules, tg, job_group(new, tg->name)));
    }
    for (size_t i = 0; new && i < new->task_groups.n; i++)
        if (!job_group(old, new->task_groups.v[i]->name))
            list_add(d, d->task_groups, diff_group(d, &rules, NULL, new->task_groups.v[i]));
    for (size_t i = 0; i < d->task_groups.n && !changed; i++)
        changed = !str_eq(d->task_groups.v[i]->type, "None");
    if (d->task_groups.n)
        qsort(d->task_groups.v, d->task_groups.n, sizeof(*d->task_groups.v), group_diff_cmp);
    d->type = node_type(old, new, changed);
    return d;
}

/* --- annotations --- */

static void
add_update(struct task_group_diff *d, const char *key, uint64_t n)
{
    if (n)
        map_put(d, d->updates, key)->v = (int64_t)n;
}

static void
annotate_count(struct task_group_diff *d, const struct task_group *old,
               const struct task_group *new)
{
    int64_t before = old && old->count.set ? old->count.v : 0;
    int64_t after = new && new->count.set ? new->count.v : 0;
    for (size_t i = 0; i < d->fields.n; i++) {
        struct field_diff *f = d->fields.v[i];
        if (str_eq(f->name, "Count") && before != after)
            list_add(f, f->annotations, after > before ? "forces create" : "forces destroy");
    }
}

static void
annotate_task(struct task_diff *d, const struct task *old, const struct task *new)
{
    if (str_eq(d->type, "None"))
        return;
    bool inplace = old && new && codec_equal_but_inplace(&type_task, old, new);
    list_add(d, d->annotations,
             inplace ? "forces in-place update" : "forces create/destroy update");
}

void
job_diff_annotate(struct job_diff *d, const struct job *old, const struct job *new,
                  const struct plan_annotations *ann)
{
    for (size_t i = 0; i < d->task_groups.n; i++) {
        struct task_group_diff *g = d->task_groups.v[i];
        const struct task_group *a = job_group(old, g->name), *b = job_group(new, g->name);
        const __auto_type e = ann ? map_get(ann->desired_tg_updates, g->name) : NULL;
        const struct desired_updates *u = e ? e->v : NULL;
        if (u) {
            add_update(g, "ignore", u->ignore);
            add_update(g, "create", u->place);
            add_update(g, "destroy", u->stop);
            add_update(g, "migrate", u->migrate);
            add_update(g, "canary", u->canary);
            add_update(g, "in-place update", u->in_place_update);
            add_update(g, "create/destroy update", u->destructive_update);
        }
        annotate_count(g, a, b);
        const char *whole = str_eq(g->type, "Added")     ? "forces create"
                            : str_eq(g->type, "Deleted") ? "forces destroy"
                                                         : NULL;
        for (size_t j = 0; whole != NULL && j < g->tasks.n; j++)
            list_add(g->tasks.v[j], g->tasks.v[j]->annotations, whole);
        for (size_t j = 0; a && b && j < g->tasks.n; j++)
            annotate_task(g->tasks.v[j], group_task(a, g->tasks.v[j]->name),
                          group_task(b, g->tasks.v[j]->name));
    }
}
