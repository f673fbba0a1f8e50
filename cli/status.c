/* SPDX-License-Identifier: Apache-2.0
 *
 * status: whatever the id belongs to. An exact job id wins, then the kind of object that alone has
 * something with this prefix.
 */
#include <string.h>

#include "cli/api.h"
#include "cli/format.h"

struct kind {
    const char *name;
    const char *path;
    const struct type *t;
    int (*show)(struct cmd *c);
    size_t n; /* matches */
};

static bool
hex(const char *s)
{
    return strspn(s, "0123456789abcdefABCDEF-") == strlen(s) && strlen(s) >= 2;
}

/* How many objects match; an exact job id counts as `*exact`. Negative: said. */
static int
count(struct cmd *c, struct kind *k, const char *id, bool *exact)
{
    struct object_list l;
    struct err e = ERR_INIT;
    bool uuid = k->t != &type_job_list_stub;
    if (uuid && !hex(id))
        return 0;
    const char *prefix = uuid ? api_uuid_prefix(c, id) : id;
    const struct field *f = type_field(k->t, "ID", 2);
    if (api_list(c, api_target(c, k->path, "prefix", prefix, NULL), k->t, &l, NULL, &e)) {
        cmd_fail(c, "Error querying %s: %s", k->name, e.text);
        return -1;
    }
    for (size_t i = 0; i < l.n; i++) {
        const char *got = *(const char *const *)(const void *)((const char *)l.v[i] + f->offset);
        k->n += str_prefix(str_or(got, ""), id);
        *exact = *exact || (!uuid && str_eq(got, id));
    }
    return 0;
}

static int
show(struct cmd *c, const struct kind *k, const char *id, bool verbose)
{
    char *argv[] = {(char *)(uintptr_t)k->name, mem_strdup(c, id),
                    (char *)(uintptr_t)(verbose ? "-verbose" : "-verbose=false"), NULL};
    c->argc = 3;
    c->argv = argv;
    return k->show(c);
}

int
cmd_status(struct cmd *c)
{
    bool verbose = false, ui = false;
    const struct opt opts[] = {
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids and more."},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: there is no web interface yet."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (c->n_args == 0) {
        c->argc = 1;
        return cmd_job_status(c);
    }
    struct kind kinds[] = {
        {"jobs", "/v1/jobs", &type_job_list_stub, cmd_job_status, 0},
        {"allocations", "/v1/allocations", &type_alloc_list_stub, cmd_alloc_status, 0},
        {"nodes", "/v1/nodes", &type_node_list_stub, cmd_node_status, 0},
        {"evaluations", "/v1/evaluations", &type_evaluation, cmd_eval_status, 0},
    };
    const char *id = c->args[0];
    const struct kind *found = NULL;
    size_t n = 0;
    bool exact = false;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (count(c, &kinds[i], id, &exact))
            return 1;
        if (i == 0 && exact)
            return show(c, &kinds[0], id, verbose);
        n += kinds[i].n > 0;
        found = kinds[i].n ? &kinds[i] : found;
    }
    if (n == 1)
        return show(c, found, id, verbose);
    if (n == 0)
        return cmd_fail(c, "No matches found for id \"%s\"", id);
    cmd_warn(c, "Id \"%s\" matched objects of several kinds:", id);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].n)
            cmd_warn(c, "  %s: %zu", kinds[i].name, kinds[i].n);
    return 1;
}
