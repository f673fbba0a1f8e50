/* SPDX-License-Identifier: Apache-2.0
 *
 * node pool nodes, jobs, init: the tables of a pool's nodes and jobs, and the examples that init
 * writes. The other commands are those of all objects with a name (cli/object/object.c).
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"
#include "cli/node.h"
#include "cli/object/object.h"
#include "cli/views.h"

/* --- what is in one --- */

/* The pool that a list is of; NULL: *ret_code, all is said. */
static const struct node_pool *
pool_subject(struct cmd *c, const struct opt *opts, int *ret_code)
{
    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, ret_code))
        return NULL;
    *ret_code = 1;
    return object_find(c, &type_node_pool, c->args[0]);
}

int
cmd_node_pool_nodes(struct cmd *c)
{
    struct list_opts o = {.filter = NULL};
    bool verbose = false;
    const struct opt opts[] = {{"verbose", OPT_BOOL, &verbose, NULL, "Show full ids and more."},
                               LIST_OPTS(o, "nodes"),
                               {0}};
    struct node_list_stub_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;
    const struct node_pool *p = pool_subject(c, opts, &rc);
    if (!p)
        return rc;
    if (api_list(c, object_list_target(c, "/v1/node/pool/%/nodes", p->name, &o),
                 &type_node_list_stub, &l, &meta, &e))
        return cmd_fail(c, "Error querying nodes: %s", e.text);
    if (output_list(c, &o.out, &type_node_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No nodes");
        return 0;
    }
    node_table(c, &l, &(struct node_columns){.verbose = verbose});
    view_next_page(c, meta.next_token);
    return 0;
}

int
cmd_node_pool_jobs(struct cmd *c)
{
    struct list_opts o = {.filter = NULL};
    const struct opt opts[] = {LIST_OPTS(o, "jobs"), {0}};
    struct job_list_stub_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;
    const struct node_pool *p = pool_subject(c, opts, &rc);
    if (!p)
        return rc;
    if (api_list(c, object_list_target(c, "/v1/node/pool/%/jobs", p->name, &o), &type_job_list_stub,
                 &l, &meta, &e))
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
