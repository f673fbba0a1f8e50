/* SPDX-License-Identifier: Apache-2.0
 *
 * volume init, create, register, status, delete: of host volumes. First the specification, then the
 * commands that write, then the tables.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"
#include "cli/views.h"
#include "common/num.h"
#include "jobspec/hcl.h"

/* --- specifications --- */

static const char example_hcl[] =
    "# A directory of one node that outlives the allocations which mount it:\n"
    "#   paddock volume create volume.host.hcl\n"
    "name      = \"database\"\n"
    "type      = \"host\"\n"
    "plugin_id = \"mkdir\"\n"
    "\n"
    "# One node, or those of a pool that the constraints leave:\n"
    "# node_id   = \"f7476465-4d6e-c0de-26d0-e383c49be941\"\n"
    "# node_pool = \"default\"\n"
    "# constraint {\n"
    "#   attribute = \"${attr.kernel.name}\"\n"
    "#   value     = \"linux\"\n"
    "# }\n"
    "\n"
    "# What groups may ask for: single-node-reader-only, single-node-writer,\n"
    "# single-node-single-writer, single-node-multi-writer.\n"
    "capability {\n"
    "  access_mode     = \"single-node-writer\"\n"
    "  attachment_mode = \"file-system\"\n"
    "}\n"
    "\n"
    "# Of the plugin mkdir.\n"
    "parameters {\n"
    "  mode = \"0700\"\n"
    "  uid  = \"0\"\n"
    "  gid  = \"0\"\n"
    "}\n";

static const char example_json[] = "{\n"
                                   "  \"name\": \"database\",\n"
                                   "  \"type\": \"host\",\n"
                                   "  \"plugin_id\": \"mkdir\",\n"
                                   "  \"capability\": [\n"
                                   "    {\n"
                                   "      \"AccessMode\": \"single-node-writer\",\n"
                                   "      \"AttachmentMode\": \"file-system\"\n"
                                   "    }\n"
                                   "  ],\n"
                                   "  \"parameters\": {\n"
                                   "    \"mode\": \"0700\",\n"
                                   "    \"uid\": \"0\",\n"
                                   "    \"gid\": \"0\"\n"
                                   "  }\n"
                                   "}\n";

/* Says whether volumes of that kind are here. */
static bool
volume_type_ok(struct cmd *c, const char *type)
{
    if (str_empty(type) || str_eq(type, "host"))
        return true;
    if (str_eq(type, "csi"))
        cmd_fail(c, "CSI volumes are not in this release: -type host, or type = \"host\"");
    else
        cmd_fail(c, "Error unknown volume type: %s", type);
    return false;
}

int
cmd_volume_init(struct cmd *c)
{
    bool json = false;
    const char *type = NULL;
    const struct opt opts[] = {{"json", OPT_BOOL, &json, NULL, "Write it in JSON."},
                               {"type", OPT_STRING, &type, "<type>", "host, which it is anyway."},
                               {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 1}, &rc))
        return rc;
    if (!volume_type_ok(c, type))
        return 1;
    const char *path = c->n_args ? c->args[0] : json ? "volume.host.json" : "volume.host.hcl";
    if (jobfile_example(c, "File", path, json ? example_json : example_hcl))
        return 1;
    cmd_say(c, "Example volume specification written to %s", path);
    return 0;
}

static struct volume_spec *
spec_parse(struct cmd *c, const char *path, struct slice text)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct err e = ERR_INIT;
    struct hcl_body *body;
    void *obj = NULL;

    if (str_suffix(path, ".json")) {
        if (json_decode(c, &type_volume_spec, text, BUDGET(CLI_ANSWER_MAX), &obj, &e) == 0 && obj)
            return obj;
        cmd_fail(c, "Error parsing the specification: %s", e.code ? e.text : "no volume");
        return NULL;
    }
    if (hcl_parse(c, path, text, 0, &body, &d) == 0 &&
        hcl_decode(c, body, &type_volume_spec, 0, &obj, &d) == 0)
        return obj;
    cmd_fail(c, "Error parsing the specification: %s", hcl_diags_text(c, &d, false));
    return NULL;
}

/* NULL: what is wrong was said. */
static struct host_volume *
spec_read(struct cmd *c, const char *path)
{
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t n = 0;

    if (jobfile_read(c, path, &text, &n, &e) < 0) {
        cmd_fail(c, "Failed to read \"%s\": %s", path, e.text);
        return NULL;
    }
    const struct volume_spec *s = spec_parse(c, path, SLICE(text, n));
    if (!s || !volume_type_ok(c, s->type))
        return NULL;
    struct host_volume *v = type_new(c, &type_host_volume);
    *v = (struct host_volume){.namespace = c->namespace ? c->namespace : s->namespace,
                              .id = s->id,
                              .name = s->name,
                              .plugin_id = s->plugin_id,
                              .node_pool = s->node_pool,
                              .node_id = s->node_id,
                              .constraints = s->constraint,
                              .requested_capabilities = s->capability,
                              .parameters = s->parameters,
                              .host_path = s->host_path};
    const struct {
        const char *name, *text;
        int64_t *ret;
    } sizes[] = {{"capacity_min", s->capacity_min, &v->requested_capacity_min_bytes},
                 {"capacity_max", s->capacity_max, &v->requested_capacity_max_bytes},
                 {"capacity", s->capacity, &v->capacity_bytes}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (!str_empty(sizes[i].text) && num_parse_size(sizes[i].text, sizes[i].ret) < 0) {
            cmd_fail(c, "%s: \"%s\" is no size like \"10GiB\"", sizes[i].name, sizes[i].text);
            return NULL;
        }
    return v;
}

/* --- writes --- */

static int
volume_write(struct cmd *c, const char *target, const char *done)
{
    const char *id = NULL;
    bool detach = false, verbose = false, override = false;
    const struct opt opts[] = {
        {"detach", OPT_BOOL, &detach, NULL, "Accepted: the agent answers when the node has."},
        {"id", OPT_STRING, &id, "<id>", "The volume to be changed."},
        {"policy-override", OPT_BOOL, &override, NULL, "Accepted: there are no such policies."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Accepted: ids are whole anyway."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    struct host_volume *v = spec_read(c, c->args[0]);
    if (!v)
        return 1;
    v->id = id ? id : v->id;
    const struct host_volume_request req = {.volume = v};
    const struct change ch = {.target = api_target(c, target, NULL),
                              .body_type = &type_host_volume_request,
                              .body = &req,
                              .answer = &type_host_volume_write_response,
                              .failed = "Error writing volume"};
    const struct host_volume_write_response *r = api_change(c, &ch);
    if (!r || !r->volume)
        return 1;
    cmd_say(c, "==> %s host volume %s with ID %s", done, r->volume->name, r->volume->id);
    cmd_say(c, "    on node %s, state %s", r->volume->node_id, str_or(r->volume->state, ""));
    return 0;
}

int
cmd_volume_create(struct cmd *c)
{
    return volume_write(c, "/v1/volume/host/create", "Created");
}

int
cmd_volume_register(struct cmd *c)
{
    return volume_write(c, "/v1/volume/host/register", "Registered");
}

/* --- finding, and tables --- */

static void
volume_table(struct cmd *c, const struct host_volume_stub_list *l, bool verbose)
{
    struct table t;

    table_init(&t, c, 7);
    table_row(&t, "ID", "Name", "Namespace", "Plugin ID", "Node ID", "Node Pool", "State");
    for (size_t i = 0; i < l->n; i++) {
        const struct host_volume_stub *v = l->v[i];
        table_row(&t, fmt_id(c, v->id, verbose), v->name, v->namespace, str_or(v->plugin_id, ""),
                  fmt_id(c, v->node_id, verbose), v->node_pool, v->state);
    }
    table_print(&t);
}

struct volume_filter {
    const char *node, *pool;
};

static int
volume_list(struct cmd *c, const struct volume_filter *f, struct host_volume_stub_list *l)
{
    struct err e = ERR_INIT;

    if (api_list(c,
                 api_target(c, "/v1/volumes", "type", "host", "node_id", f->node, "node_pool",
                            f->pool, NULL),
                 &type_host_volume_stub, l, NULL, &e))
        return cmd_fail(c, "Error querying volumes: %s", e.text);
    return 0;
}

/* The id of the one whose id begins so, or that has the name; NULL: what is wrong was said. */
static const char *
volume_find(struct cmd *c, const char *what)
{
    struct host_volume_stub_list l, found = {NULL, 0};

    if (volume_list(c, &(struct volume_filter){NULL, NULL}, &l))
        return NULL;
    for (size_t i = 0; i < l.n; i++)
        if (str_prefix(l.v[i]->id, what) || str_eq(l.v[i]->name, what))
            list_add(c, found, l.v[i]);
    if (found.n == 1)
        return found.v[0]->id;
    if (found.n == 0) {
        cmd_fail(c, "No volume(s) with prefix or ID \"%s\" found", what);
        return NULL;
    }
    cmd_say(c, "Prefix matched multiple volumes\n");
    volume_table(c, &found, true);
    return NULL;
}

static void
volume_print(struct cmd *c, const struct host_volume *v, bool verbose)
{
    char size[SIZE_TEXT];
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "ID", v->id);
    table_row(&t, "Name", v->name);
    table_row(&t, "Namespace", v->namespace);
    table_row(&t, "Plugin ID", str_or(v->plugin_id, ""));
    table_row(&t, "Node ID", v->node_id);
    table_row(&t, "Node Pool", v->node_pool);
    table_row(&t, "Capacity", size_format((uint64_t)v->capacity_bytes, size));
    table_row(&t, "State", v->state);
    if (!str_empty(v->error))
        table_row(&t, "Error", v->error);
    table_row(&t, "Host Path", str_or(v->host_path, ""));
    table_print_kv(&t);
    cmd_heading(c, "Capabilities");
    table_init(&t, c, 2);
    table_row(&t, "Access Mode", "Attachment Mode");
    for (size_t i = 0; i < v->requested_capabilities.n; i++)
        table_row(&t, v->requested_capabilities.v[i]->access_mode,
                  v->requested_capabilities.v[i]->attachment_mode);
    table_print(&t);
    if (v->claims.n > 0) {
        cmd_heading(c, "Claims");
        table_init(&t, c, 2);
        table_row(&t, "Job ID", "Allocation");
        for (size_t i = 0; i < v->claims.n; i++)
            table_row(&t, v->claims.v[i]->job_id, v->claims.v[i]->alloc_name);
        table_print(&t);
    }
    cmd_heading(c, "Allocations");
    if (v->allocations.n == 0)
        cmd_say(c, "No allocations placed");
    else
        view_allocs(c, &v->allocations, verbose);
}

int
cmd_volume_status(struct cmd *c)
{
    struct output out = {.json = false};
    struct volume_filter f = {NULL, NULL};
    struct host_volume_stub_list l;
    const char *type = NULL;
    bool verbose = false, brief = false;
    const struct opt opts[] = {
        {"node", OPT_STRING, &f.node, "<id>", "List those of this node."},
        {"node-pool", OPT_STRING, &f.pool, "<name>", "List those of this node pool."},
        {"short", OPT_BOOL, &brief, NULL, "Accepted."},
        {"type", OPT_STRING, &type, "<type>", "host, which they are anyway."},
        {"verbose", OPT_BOOL, &verbose, NULL, "Show full ids."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (!volume_type_ok(c, type))
        return 1;
    if (c->n_args == 0) {
        if (volume_list(c, &f, &l))
            return 1;
        if (output_list(c, &out, &type_host_volume_stub, &l, &rc))
            return rc;
        if (l.n == 0)
            cmd_say(c, "No dynamic host volumes");
        else
            volume_table(c, &l, verbose);
        return 0;
    }
    const char *id = volume_find(c, c->args[0]);
    const struct host_volume *v = id ? api_read(c, api_target(c, "/v1/volume/host/%", id, NULL),
                                                &type_host_volume, "Error querying volume")
                                     : NULL;
    if (!v)
        return 1;
    if (output_object(c, &out, &type_host_volume, v, &rc))
        return rc;
    volume_print(c, v, verbose);
    return 0;
}

int
cmd_volume_delete(struct cmd *c)
{
    const char *type = NULL, *secret = NULL;
    bool force = false;
    const struct opt opts[] = {
        {"force", OPT_BOOL, &force, NULL, "Forget it where its node is not heard."},
        {"secret", OPT_STRING, &secret, "<key=value>", "Accepted: host volumes have none."},
        {"type", OPT_STRING, &type, "<type>", "host, which it is anyway."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const char *id = volume_type_ok(c, type) ? volume_find(c, c->args[0]) : NULL;
    if (!id)
        return 1;
    const struct change ch = {
        .method = "DELETE",
        .target = api_target(c, "/v1/volume/host/%", id, "force", force ? "true" : NULL, NULL),
        .failed = "Error deleting volume"};
    if (!api_change(c, &ch))
        return 1;
    cmd_say(c, "Successfully deleted volume \"%s\"!", id);
    return 0;
}
