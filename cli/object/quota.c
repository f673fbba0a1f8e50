/* SPDX-License-Identifier: Apache-2.0
 *
 * quota status and init: a quota and its use, and the examples that init writes. The other commands
 * are those of all objects with a name (cli/object/object.c).
 */
#include "cli/api.h"
#include "cli/jobfile.h"
#include "cli/object/object.h"

static const char *
limit_text(struct cmd *c, bool known, int64_t used, int64_t limit)
{
    const char *of = limit == 0 ? "inf" : fmt_i64(c, limit < 0 ? 0 : limit);

    return mem_printf(c, "%s / %s", known ? fmt_i64(c, used) : "-", of);
}

/* Returns what is used of a region's limit; NULL: the region does not answer. */
static const struct quota_limit *
used_in(const struct quota_usage *u, const char *region)
{
    for (size_t i = 0; i < u->used.n; i++)
        if (u->used.v[i].v != NULL && str_eq(u->used.v[i].v->region, region))
            return u->used.v[i].v;
    return NULL;
}

int
quota_print(struct cmd *c, const struct quota *q)
{
    static const struct quota_resources none;
    const struct quota_usage *u = api_read(c, api_target(c, "/v1/quota/usage/%", q->name, NULL),
                                           &type_quota_usage, "Error retrieving quota usage");
    struct table t;

    if (u == NULL)
        return 1;
    table_init(&t, c, 2);
    table_row(&t, "Name", q->name);
    table_row(&t, "Description", str_or(q->description, "<none>"));
    table_row(&t, "Limits", fmt_i64(c, (int64_t)q->limits.n));
    table_print_kv(&t);
    cmd_heading(c, "Quota Limits");
    table_init(&t, c, 5);
    table_row(&t, "Region", "Allocations", "CPU Usage", "Memory Usage", "Variables Usage");
    for (size_t i = 0; i < q->limits.n; i++) {
        const struct quota_limit *l = q->limits.v[i];
        const struct quota_resources *max = l->region_limit ? l->region_limit : &none;
        const struct quota_limit *used = used_in(u, l->region);
        bool known = used != NULL && used->region_limit != NULL;
        const struct quota_resources *is = known ? used->region_limit : &none;
        table_row(&t, l->region, limit_text(c, known, is->count, max->count),
                  limit_text(c, known, is->cpu, max->cpu),
                  limit_text(c, known, is->memory_mb, max->memory_mb),
                  limit_text(c, known, known ? used->variables_limit : 0, l->variables_limit));
    }
    table_print(&t);
    return 0;
}

static const char example_hcl[] =
    "# How much the namespaces that name this quota may hold together:\n"
    "#   paddock namespace apply -quota default-quota NAME\n"
    "name        = \"default-quota\"\n"
    "description = \"Limit the shared default namespace\"\n"
    "\n"
    "# One for each region; 0, or left out: no limit, a negative number: nothing at all.\n"
    "limit {\n"
    "  region          = \"global\"\n"
    "  variables_limit = 100 # MB, of variables; what follows is of allocations\n"
    "  region_limit {\n"
    "    count  = 100  # allocations\n"
    "    cpu    = 2500 # MHz\n"
    "    memory = 1000 # MB\n"
    "  }\n"
    "}\n";

static const char example_json[] = "{\n"
                                   "  \"Name\": \"default-quota\",\n"
                                   "  \"Description\": \"Limit the shared default namespace\",\n"
                                   "  \"Limits\": [\n"
                                   "    {\n"
                                   "      \"Region\": \"global\",\n"
                                   "      \"VariablesLimit\": 100,\n"
                                   "      \"RegionLimit\": {\n"
                                   "        \"Count\": 100,\n"
                                   "        \"CPU\": 2500,\n"
                                   "        \"MemoryMB\": 1000\n"
                                   "      }\n"
                                   "    }\n"
                                   "  ]\n"
                                   "}\n";

int
cmd_quota_init(struct cmd *c)
{
    bool json = false;
    const struct opt opts[] = {{"json", OPT_BOOL, &json, NULL, "Write it in the API's JSON."}, {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 1}, &rc))
        return rc;
    const char *path = c->n_args ? c->args[0] : json ? "spec.json" : "spec.hcl";
    if (jobfile_example(c, "File", path, json ? example_json : example_hcl))
        return 1;
    cmd_say(c, "Example quota specification written to %s", path);
    return 0;
}
