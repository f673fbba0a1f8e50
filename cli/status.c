/* SPDX-License-Identifier: Apache-2.0
 *
 * status and ui: whatever the id belongs to. An exact job id wins, then the kind of object that
 * alone has something with this prefix.
 */
#include <string.h>

#include "cli/api.h"
#include "cli/format.h"

struct kind {
    const char *name;
    const char *path;
    const struct type *t;
    int (*show)(struct cmd *c);
    const char *page; /* of Nomad's web interface; NULL: none */
    size_t n;         /* matches */
    const char *id;   /* of the last one */
};

static bool
status_hex(const char *s)
{
    return strspn(s, "0123456789abcdefABCDEF-") == strlen(s) && strlen(s) >= 2;
}

/* How many objects match; an exact job id counts as `*exact`. Negative: said. */
static int
status_count(struct cmd *c, struct kind *k, const char *id, bool *exact)
{
    struct object_list l;
    struct err e = ERR_INIT;
    bool uuid = k->t != &type_job_list_stub;
    if (uuid && !status_hex(id))
        return 0;
    const char *prefix = uuid ? api_uuid_prefix(c, id) : id;
    const struct field *f = type_field(k->t, "ID", 2);
    if (api_list(c, api_target(c, k->path, "prefix", prefix, NULL), k->t, &l, NULL, &e)) {
        cmd_fail(c, "Error querying %s: %s", k->name, e.text);
        return -1;
    }
    for (size_t i = 0; i < l.n; i++) {
        const char *got = *(const char *const *)(const void *)((const char *)l.v[i] + f->offset);
        if (!str_prefix(str_or(got, ""), id))
            continue;
        k->n++;
        *exact = *exact || (!uuid && str_eq(got, id));
        k->id = *exact && !uuid ? id : got;
    }
    return 0;
}

static int
status_show(struct cmd *c, const struct kind *k, const char *id, bool verbose)
{
    char *argv[] = {(char *)(uintptr_t)k->name, mem_strdup(c, id),
                    (char *)(uintptr_t)(verbose ? "-verbose" : "-verbose=false"), NULL};
    c->argc = 3;
    c->argv = argv;
    return k->show(c);
}

/* The kind that the id is of; NULL: what is wrong was said. */
static const struct kind *
status_find(struct cmd *c, struct kind *kinds, size_t n_kinds, const char *id)
{
    const struct kind *found = NULL;
    size_t n = 0;
    bool exact = false;
    for (size_t i = 0; i < n_kinds; i++) {
        if (status_count(c, &kinds[i], id, &exact))
            return NULL;
        if (i == 0 && exact)
            return &kinds[0];
        n += kinds[i].n > 0;
        found = kinds[i].n ? &kinds[i] : found;
    }
    if (n == 1)
        return found;
    if (n == 0) {
        cmd_fail(c, "No matches found for id \"%s\"", id);
        return NULL;
    }
    cmd_warn(c, "Id \"%s\" matched objects of several kinds:", id);
    for (size_t i = 0; i < n_kinds; i++)
        if (kinds[i].n)
            cmd_warn(c, "  %s: %zu", kinds[i].name, kinds[i].n);
    return NULL;
}

#define JOBS {"jobs", "/v1/jobs", &type_job_list_stub, cmd_job_status, "jobs", 0, NULL}
#define ALLOCS                                                                                     \
    {                                                                                              \
        "allocations", "/v1/allocations", &type_alloc_list_stub, cmd_alloc_status, "allocations",  \
            0, NULL                                                                                \
    }
#define NODES {"nodes", "/v1/nodes", &type_node_list_stub, cmd_node_status, "clients", 0, NULL}
#define EVALS {"evaluations", "/v1/evaluations", &type_evaluation, cmd_eval_status, NULL, 0, NULL}

int
cmd_status(struct cmd *c)
{
    bool verbose = false, ui = false;
    const struct opt opts[] = {
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids and more."},
        {"ui", OPT_BOOL, &ui, NULL, "Without effect: the command ui prints the address."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (c->n_args == 0) {
        c->argc = 1;
        return cmd_job_status(c);
    }
    struct kind kinds[] = {JOBS, ALLOCS, NODES, EVALS};
    const struct kind *k = status_find(c, kinds, ARRAY_LEN(kinds), c->args[0]);
    return k ? status_show(c, k, c->args[0], verbose) : 1;
}

/* --- ui --- */

static void
put_query(struct buf *b, char *mark, const char *name, const char *value)
{
    if (str_empty(value))
        return;
    buf_printf(b, "%c%s=", *mark, name);
    http_escape(b, value, false);
    *mark = '&';
}

int
cmd_ui(struct cmd *c)
{
    bool show_url = false;
    const struct opt opts[] = {
        {"show-url", OPT_BOOL, &show_url, NULL, "Print the address, as without it."}, {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    struct kind kinds[] = {JOBS, ALLOCS, NODES};
    const struct kind *k =
        c->n_args > 0 ? status_find(c, kinds, ARRAY_LEN(kinds), c->args[0]) : NULL;
    if (c->n_args > 0 && !k)
        return 1;
    if (k && k->n > 1 && !str_eq(k->id, c->args[0]))
        return cmd_fail(c, "Multiple matches found for id \"%s\": %zu %s", c->args[0], k->n,
                        k->name);
    auto_buf struct buf b = BUF_INIT(HTTP_BODY_MAX);
    char mark = '?';
    buf_puts(&b, c->address);
    if (k) {
        buf_printf(&b, "/ui/%s/", k->page);
        http_escape(&b, k->id, true);
        if (k == kinds && !str_empty(c->namespace)) {
            buf_puts(&b, "@");
            http_escape(&b, c->namespace, true);
        }
    }
    put_query(&b, &mark, "namespace", c->namespace);
    put_query(&b, &mark, "region", c->region);
    cmd_say(c, "URL for web UI: %s", buf_str(&b));
    return 0;
}
