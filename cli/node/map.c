/* SPDX-License-Identifier: Apache-2.0
 *
 * node status -map: a character for each node, by its allocated memory or its state, and a line for
 * each datacenter.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/node.h"

enum { MAP_COLUMNS = 64, MAP_LABEL = 16 };
static const char steps[] = ".-=#@"; /* below 25, 50, 75, 90 percent, and above */

struct map_node {
    const struct node_list_stub *n;
    int64_t used, has;
};

static int
map_cmp(const void *a, const void *b)
{
    const struct map_node *x = a, *y = b;
    int r = strcmp(str_or(x->n->datacenter, ""), str_or(y->n->datacenter, ""));
    return r != 0 ? r : strcmp(str_or(x->n->name, ""), str_or(y->n->name, ""));
}

static int
map_id_cmp(const void *a, const void *b)
{
    const struct map_node *x = a, *y = b;
    return strcmp(str_or(x->n->id, ""), str_or(y->n->id, ""));
}

static int
map_find_cmp(const void *id, const void *node)
{
    return strcmp(id, str_or(((const struct map_node *)node)->n->id, ""));
}

static char
map_sign(const struct map_node *m)
{
    static const int64_t percent[] = {25, 50, 75, 90};
    size_t k = 0;

    if (!str_eq(m->n->status, "ready"))
        return str_eq(m->n->status, "initializing") ? 'o' : 'X';
    if (m->n->drain)
        return '/';
    if (str_eq(m->n->scheduling_eligibility, "ineligible"))
        return 'o';
    while (k < ARRAY_LEN(percent) && m->used * 100 >= percent[k] * m->has)
        k++;
    return steps[k];
}

static void
map_add_allocs(struct map_node *nodes, size_t n, const struct alloc_list_stub_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct alloc_list_stub *a = l->v[i];
        struct map_node *m =
            bsearch(str_or(a->node_id, ""), nodes, n, sizeof(*nodes), map_find_cmp);
        if (m == NULL || a->allocated_resources == NULL)
            continue;
        for (size_t k = 0; k < a->allocated_resources->tasks.n; k++) {
            const struct allocated_task_resources *t = a->allocated_resources->tasks.v[k].v;
            m->used += t != NULL && t->memory != NULL ? t->memory->memory_mb : 0;
        }
    }
}

static void
map_print(struct cmd *c, const struct map_node *nodes, size_t n)
{
    char line[MAP_COLUMNS + 1];
    size_t at = 0;
    const char *label = NULL;

    for (size_t i = 0; i < n; i++) {
        bool first = i == 0 || !str_eq(nodes[i].n->datacenter, nodes[i - 1].n->datacenter);
        if (first)
            label = nodes[i].n->datacenter;
        line[at++] = map_sign(&nodes[i]);
        bool last = i + 1 == n || !str_eq(nodes[i].n->datacenter, nodes[i + 1].n->datacenter);
        if (last || at == MAP_COLUMNS) {
            line[at] = '\0';
            cmd_say(c, "%-*.*s %s", MAP_LABEL, MAP_LABEL, str_or(label, ""), line);
            label = NULL;
            at = 0;
        }
    }
    cmd_say(
        c, "\n. below 25 %% of its memory allocated, - 50, = 75, # 90, @ full; X down, / draining, "
           "o not eligible");
}

int
node_map(struct cmd *c, const char *filter)
{
    struct node_list_stub_list l = {0};
    struct alloc_list_stub_list allocs = {0};
    struct err e = ERR_INIT;

    if (!api_read_list(c, api_target(c, "/v1/nodes", "filter", filter, "resources", "true", NULL),
                       &type_node_list_stub, &l, "Error querying node status"))
        return 1;
    struct cmd *all = mem_new(c, struct cmd);
    *all = *c;
    all->namespace = "*";
    const char *live = "ClientStatus == \"running\" or ClientStatus == \"pending\"";
    if (api_list(all,
                 api_target(all, "/v1/allocations", "filter", live, "resources", "true",
                            "task_states", "false", NULL),
                 &type_alloc_list_stub, &allocs, NULL, &e) < 0)
        cmd_warn(c, "Allocations cannot be read, so that all nodes look empty: %s", e.text);
    struct map_node *nodes = mem_array(c, struct map_node, l.n + 1);
    for (size_t i = 0; i < l.n; i++) {
        const struct node_resources *r = l.v[i]->node_resources;
        const struct node_reserved_resources *kept = l.v[i]->reserved_resources;
        nodes[i] = (struct map_node){.n = l.v[i]};
        nodes[i].has = r != NULL && r->memory != NULL ? r->memory->memory_mb : 0;
        nodes[i].has -= kept != NULL && kept->memory != NULL ? kept->memory->memory_mb : 0;
    }
    qsort(nodes, l.n, sizeof(*nodes), map_id_cmp);
    map_add_allocs(nodes, l.n, &allocs);
    qsort(nodes, l.n, sizeof(*nodes), map_cmp);
    if (l.n == 0)
        cmd_say(c, "No nodes");
    else
        map_print(c, nodes, l.n);
    return 0;
}
