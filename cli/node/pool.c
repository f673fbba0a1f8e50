/* SPDX-License-Identifier: Apache-2.0
 *
 * node pool list, info, apply, delete, init, jobs, nodes.
 *
 * Lists take the options of all lists (filter, pages, -json, -t); a pool is found by its name or by
 * a prefix. Below them: what info prints, the tables of nodes and jobs of a pool, the file of apply
 * (HCL or JSON), and the examples that init writes.
 */
#include <errno.h>
#include <fcntl.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"
#include "cli/node.h"
#include "cli/views.h"
#include "common/duration.h"
#include "common/fd.h"
#include "jobspec/hcl.h"

struct pool_opts {
    const char *filter, *page_token;
    int64_t per_page;
    bool verbose;
    struct output out;
};

#define LIST_OPTS(o, what)                                                                         \
    {"filter", OPT_STRING, &(o).filter, "<expression>", "List only " what " that match."},         \
        {"per-page", OPT_INT, &(o).per_page, "<n>", "List so many per page."},                     \
        {"page-token", OPT_STRING, &(o).page_token, "<token>", "Where the page starts."},          \
        OUTPUT_OPTS((o).out)

/* `path` with what the options say of a list. */
static char *
list_target(struct cmd *c, const char *path, const char *pool, const struct pool_opts *o)
{
    const char *per_page = o->per_page ? fmt_i64(c, o->per_page) : NULL;

    return pool ? api_target(c, path, pool, "filter", o->filter, "per_page", per_page, "next_token",
                             o->page_token, NULL)
                : api_target(c, path, "filter", o->filter, "per_page", per_page, "next_token",
                             o->page_token, NULL);
}

static void
print_pools(struct cmd *c, const struct node_pool_list *l)
{
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "Name", "Description");
    for (size_t i = 0; i < l->n; i++)
        table_row(&t, l->v[i]->name, l->v[i]->description);
    table_print(&t);
}

/* By its name, or by a prefix that no other pool has; NULL: that was said. */
static const struct node_pool *
pool_find(struct cmd *c, const char *prefix)
{
    struct node_pool_list l;
    if (!api_read_list(c, api_target(c, "/v1/node/pools", "prefix", prefix, NULL), &type_node_pool,
                       &l, "Error retrieving node pool"))
        return NULL;
    for (size_t i = 0; i < l.n; i++)
        if (l.n == 1 || str_eq(l.v[i]->name, prefix))
            return l.v[i];
    if (l.n == 0) {
        cmd_fail(c, "Error retrieving node pool: No node pool with prefix \"%s\" found", prefix);
        return NULL;
    }
    FILE *out = c->out;
    cmd_warn(c, "Prefix matched multiple node pools\n");
    c->out = c->err;
    print_pools(c, &l);
    c->out = out;
    return NULL;
}

int
cmd_node_pool_list(struct cmd *c)
{
    struct pool_opts o = {.filter = NULL};
    const struct opt opts[] = {LIST_OPTS(o, "pools"), {0}};
    struct node_pool_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (api_list(c, list_target(c, "/v1/node/pools", NULL, &o), &type_node_pool, &l, &meta, &e))
        return cmd_fail(c, "Error querying node pools: %s", e.text);
    if (output_list(c, &o.out, &type_node_pool, &l, &rc))
        return rc;
    print_pools(c, &l);
    view_next_page(c, meta.next_token);
    return 0;
}

/* --- one --- */

static void
print_scheduler(struct cmd *c, const struct node_pool_scheduler_configuration *s)
{
    struct table t;
    cmd_heading(c, "Scheduler Configuration");
    if (!s) {
        cmd_say(c, "No scheduler configuration");
        return;
    }
    table_init(&t, c, 2);
    table_row(&t, "Scheduler Algorithm", s->scheduler_algorithm);
    if (s->memory_oversubscription_enabled.set)
        table_row(&t, "Memory Oversubscription Enabled",
                  fmt_bool(s->memory_oversubscription_enabled.v));
    table_print_kv(&t);
}

int
cmd_node_pool_info(struct cmd *c)
{
    struct pool_opts o = {.filter = NULL};
    const struct opt opts[] = {OUTPUT_OPTS(o.out), {0}};
    char ttl[DURATION_TEXT];
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct node_pool *p = pool_find(c, c->args[0]);
    if (!p)
        return 1;
    if (output_object(c, &o.out, &type_node_pool, p, &rc))
        return rc;
    struct table t;
    table_init(&t, c, 2);
    table_row(&t, "Name", p->name);
    table_row(&t, "Description", p->description);
    if (p->node_identity_ttl > 0)
        table_row(&t, "Node Identity TTL", duration_format(p->node_identity_ttl, ttl));
    table_print_kv(&t);
    if (p->meta.n > 0)
        print_titled_map(c, "Metadata", &p->meta);
    else {
        cmd_heading(c, "Metadata");
        cmd_say(c, "No metadata");
    }
    print_scheduler(c, p->scheduler_configuration);
    return 0;
}

/* --- what is in one --- */

/* The pool that a list is of; NULL: *ret_code, all is said. */
static const struct node_pool *
pool_subject(struct cmd *c, const struct opt *opts, int *ret_code)
{
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, ret_code))
        return NULL;
    *ret_code = 1;
    return pool_find(c, c->args[0]);
}

int
cmd_node_pool_nodes(struct cmd *c)
{
    struct pool_opts o = {.filter = NULL};
    const struct opt opts[] = {{"verbose", OPT_BOOL, &o.verbose, NULL, "Show full ids and more."},
                               LIST_OPTS(o, "nodes"),
                               {0}};
    struct node_list_stub_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;
    const struct node_pool *p = pool_subject(c, opts, &rc);
    if (!p)
        return rc;
    if (api_list(c, list_target(c, "/v1/node/pool/%/nodes", p->name, &o), &type_node_list_stub, &l,
                 &meta, &e))
        return cmd_fail(c, "Error querying nodes: %s", e.text);
    if (output_list(c, &o.out, &type_node_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No nodes");
        return 0;
    }
    node_table(c, &l, &(struct node_columns){.verbose = o.verbose});
    view_next_page(c, meta.next_token);
    return 0;
}

int
cmd_node_pool_jobs(struct cmd *c)
{
    struct pool_opts o = {.filter = NULL};
    const struct opt opts[] = {LIST_OPTS(o, "jobs"), {0}};
    struct job_list_stub_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;
    const struct node_pool *p = pool_subject(c, opts, &rc);
    if (!p)
        return rc;
    if (api_list(c, list_target(c, "/v1/node/pool/%/jobs", p->name, &o), &type_job_list_stub, &l,
                 &meta, &e))
        return cmd_fail(c, "Error querying jobs: %s", e.text);
    if (output_list(c, &o.out, &type_job_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No jobs");
        return 0;
    }
    view_jobs(c, &l);
    view_next_page(c, meta.next_token);
    return 0;
}

/* --- changes --- */

static int
parse_hcl(struct cmd *c, const char *name, const char *s, size_t n, struct node_pool **ret)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    void *obj = NULL;
    if (hcl_parse(c, name, SLICE(s, n), 0, &body, &d) < 0 ||
        hcl_decode(c, body, &type_node_pool_file, 0, &obj, &d) < 0)
        return cmd_fail(c, "Failed to parse input content: %s", hcl_diags_text(c, &d, false));
    const struct node_pool_file *f = obj;
    if (f->node_pools.n != 1)
        return cmd_fail(c,
                        "Failed to parse input content: %s: one node_pool block is wanted, not %zu",
                        name, f->node_pools.n);
    *ret = f->node_pools.v[0];
    return 0;
}

static int
parse_json(struct cmd *c, const char *s, size_t n, struct node_pool **ret)
{
    struct err e = ERR_INIT;
    void *obj = NULL;
    if (json_decode(c, &type_node_pool, SLICE(s, n), BUDGET(CLI_ANSWER_MAX), &obj, &e) < 0 || !obj)
        return cmd_fail(c, "Failed to parse input content: %s",
                        obj ? e.text : str_or(e.text, "no pool"));
    *ret = obj;
    return 0;
}

int
cmd_node_pool_apply(struct cmd *c)
{
    bool json = false;
    const struct opt opts[] = {
        {"json", OPT_BOOL, &json, NULL, "The file is a pool in the API's JSON."}, {0}};
    struct node_pool *p = NULL;
    struct err e = ERR_INIT;
    char *s = NULL;
    size_t n = 0;
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (jobfile_read(c, c->args[0], &s, &n, &e) < 0)
        return cmd_fail(c, "Failed to read input: %s", e.text);
    const char *name = str_eq(c->args[0], "-") ? "<stdin>" : c->args[0];
    rc = json ? parse_json(c, s, n, &p) : parse_hcl(c, name, s, n, &p);
    if (rc)
        return rc;
    if (!api_change(c, &(struct change){.target = api_target(c, "/v1/node/pools", NULL),
                                        .body_type = &type_node_pool,
                                        .body = p,
                                        .failed = "Error applying node pool"}))
        return 1;
    cmd_say(c, "Successfully applied node pool \"%s\"!", p->name);
    return 0;
}

int
cmd_node_pool_delete(struct cmd *c)
{
    const struct opt opts[] = {{0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    char *target = api_target(c, "/v1/node/pool/%", c->args[0], NULL);
    if (!api_change(c, &(struct change){.method = "DELETE",
                                        .target = target,
                                        .failed = "Error deleting node pool"}))
        return 1;
    cmd_say(c, "Successfully deleted node pool \"%s\"!", c->args[0]);
    return 0;
}

/* --- init --- */

static const char example_hcl[] =
    "# A node pool. Nodes enter it by their agent's configuration:\n"
    "#   client { node_pool = \"example\" }\n"
    "# and a job with  node_pool = \"example\"  runs on these nodes alone.\n"
    "node_pool \"example\" {\n"
    "  description = \"Example node pool\"\n"
    "\n"
    "  # For people: the scheduler does not look at it.\n"
    "  meta {\n"
    "    environment = \"prod\"\n"
    "    owner       = \"sre\"\n"
    "  }\n"
    "\n"
    "  # Over the configuration of the scheduler, for the jobs of this pool. What is left out is "
    "as\n"
    "  # `paddock operator scheduler get-config` shows it.\n"
    "  # scheduler_config {\n"
    "  #   scheduler_algorithm             = \"spread\"\n"
    "  #   memory_oversubscription_enabled = true\n"
    "  # }\n"
    "}\n";

static const char example_json[] = "{\n"
                                   "  \"Name\": \"example\",\n"
                                   "  \"Description\": \"Example node pool\",\n"
                                   "  \"Meta\": {\n"
                                   "    \"environment\": \"prod\",\n"
                                   "    \"owner\": \"sre\"\n"
                                   "  },\n"
                                   "  \"SchedulerConfiguration\": {\n"
                                   "    \"SchedulerAlgorithm\": \"spread\",\n"
                                   "    \"MemoryOversubscriptionEnabled\": true\n"
                                   "  }\n"
                                   "}\n";

int
cmd_node_pool_init(struct cmd *c)
{
    const char *format = "hcl";
    bool quiet = false;
    const struct opt opts[] = {
        {"out", OPT_STRING, &format, "<hcl|json>", "How the file is written (default hcl)."},
        {"quiet", OPT_BOOL, &quiet, NULL, "Do not say where it was written."},
        {0}};
    int rc;
    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 1}, &rc))
        return rc;
    bool json = str_eq(format, "json");
    if (!json && !str_eq(format, "hcl"))
        return cmd_fail(c, "-out is \"hcl\" or \"json\", not \"%s\"", format);
    const char *path = c->n_args ? c->args[0] : json ? "pool.nomad.json" : "pool.nomad.hcl";
    if (jobfile_example(c, "File", path, json ? example_json : example_hcl))
        return 1;
    if (!quiet)
        cmd_say(c, "Example node pool specification written to %s", path);
    return 0;
}
