/* SPDX-License-Identifier: Apache-2.0
 *
 * var put, get, list, purge, init.
 */
#include "cli/var/var.h"

#include "api/vars/vars.h"
#include "cli/format.h"
#include "cli/jobfile.h"
#include "cli/views.h"
#include "common/num.h"

static const char *const var_formats[] = {"go-template", "hcl", "json", "none", "table", NULL};

/* Reads -check-index. False: it is no number, which was said. */
static bool
take_index(struct cmd *c, const char *text, uint64_t *ret)
{
    if (!text || num_parse_u64(text, ret) == 0)
        return true;
    cmd_fail(c, "Invalid -check-index value \"%s\": not parsable as uint64", text);
    return false;
}

/* --- put --- */

struct put_opts {
    struct var_out out;
    const char *index, *in;
    bool force, verbose;
};

static int
put_spec(struct cmd *c, const struct put_opts *o, const struct variable_spec *s, uint64_t index)
{
    const struct variable v = {.namespace = c->namespace ? c->namespace : s->namespace,
                               .path = s->path,
                               .items = s->items};
    struct change ch = {.target = o->force ? var_target(c, s, NULL, NULL)
                                           : var_target(c, s, "cas", fmt_u64(c, index)),
                        .body_type = &type_variable,
                        .body = &v,
                        .answer = &type_variable};
    struct err e = ERR_INIT;
    void *got = NULL;

    if (o->verbose)
        cmd_warn(c, "Writing to path \"%s\"", str_or(s->path, ""));
    int rc = api_send(c, &ch, &got, &e);
    if (rc == -ERR_CONFLICT)
        return var_conflict(c, index, got);
    if (rc < 0 || !got)
        return cmd_fail(c, "Error creating variable: %s", e.text);
    const struct variable *now = got;
    if (o->verbose)
        cmd_warn(c, "%s variable \"%s\" with modify index %s",
                 now->create_index == now->modify_index ? "Created" : "Updated", now->path,
                 fmt_u64(c, now->modify_index));
    return var_print(c, &o->out, now);
}

int
cmd_var_put(struct cmd *c)
{
    struct put_opts o = {.force = false};
    const struct opt opts[] = {
        VAR_OUT_OPTS(o.out, "go-template, hcl, json, table, none"),
        {"check-index", OPT_STRING, &o.index, "<index>",
         "Write only when the variable has this modify index; 0: when it is not there (default: "
         "what the specification says)."},
        {"force", OPT_BOOL, &o.force, NULL, "Write whatever is there."},
        {"in", OPT_STRING, &o.in, "<format>",
         "hcl or json: of standard input, and of files without such an ending (default json)."},
        {"verbose", OPT_BOOL, &o.verbose, NULL, "Say on standard error what is done."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = SIZE_MAX}, &rc))
        return rc;
    if (!var_out_check(c, &o.out, var_formats, "none"))
        return 1;
    if (o.force && o.index)
        return cmd_fail(c, "-force and -check-index do not go together");
    struct variable_spec *s = var_spec_read(c, o.in, c->n_args);
    if (!s)
        return 1;
    uint64_t index = s->modify_index;
    if (!take_index(c, o.index, &index))
        return 1;
    return s->items.n > 0 ? put_spec(c, &o, s, index) : cmd_fail(c, "Must supply data");
}

/* --- get --- */

int
cmd_var_get(struct cmd *c)
{
    struct var_out out = {NULL, NULL};
    const char *item = NULL;
    const struct opt opts[] = {VAR_OUT_OPTS(out, "go-template, hcl, json, none, table"),
                               {"item", OPT_STRING, &item, "<key>",
                                "Print the value of this item alone, without a line break."},
                               {0}};
    struct err e = ERR_INIT;
    void *got = NULL;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!var_out_check(c, &out, var_formats, "table"))
        return 1;
    const struct variable_spec s = {.path = c->args[0]};
    rc = api_get(c, var_target(c, &s, NULL, NULL), &type_variable, &got, NULL, &e);
    if (rc == -ERR_NOT_FOUND)
        return cmd_fail(c, "Variable not found");
    if (rc < 0)
        return cmd_fail(c, "Error retrieving variable: %s", e.text);
    const struct variable *v = got;
    if (!item)
        return var_print(c, &out, v);
    __auto_type row = map_get(v->items, item);
    if (!row)
        return cmd_fail(c, "Variable does not contain \"%s\" item", item);
    fputs(str_or(row->v, ""), c->out); /* as it is, for another program */
    return 0;
}

/* --- list --- */

static void
list_print(struct cmd *c, const struct variable_metadata_list *l, const char *as)
{
    bool all = str_eq(c->namespace, "*"), terse = str_eq(as, "terse");
    struct table t;

    if (l->n == 0) {
        cmd_say(c, "No matching variables found.");
        return;
    }
    table_init(&t, c, 3);
    table_row(&t, "Namespace", "Path", "Last Updated");
    for (size_t i = 0; i < l->n; i++) {
        const struct variable_metadata *v = l->v[i];
        if (!terse)
            table_row(&t, v->namespace, v->path, fmt_time(c, v->modify_time));
        else if (all)
            cmd_say(c, "%s|%s", v->namespace, v->path);
        else
            cmd_say(c, "%s", v->path);
    }
    if (!terse)
        table_print(&t);
}

int
cmd_var_list(struct cmd *c)
{
    static const char *const formats[] = {"go-template", "json", "table", "terse", NULL};
    struct var_out out = {NULL, NULL};
    const char *filter = NULL, *token = NULL;
    int64_t per_page = 0;
    const struct opt opts[] = {
        VAR_OUT_OPTS(out, "go-template, json, terse, table"),
        {"filter", OPT_STRING, &filter, "<expression>", "List only variables that match."},
        {"per-page", OPT_INT, &per_page, "<n>", "List so many per page."},
        {"page-token", OPT_STRING, &token, "<token>", "Where the page starts."},
        {0}};
    struct variable_metadata_list l;
    struct api_meta meta = {0};
    struct err e = ERR_INIT;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (!var_out_check(c, &out, formats, "table"))
        return 1;
    char *target = api_target(c, "/v1/vars", "prefix", c->n_args ? c->args[0] : NULL, "filter",
                              filter, "per_page", per_page ? fmt_i64(c, per_page) : NULL,
                              "next_token", token, NULL);
    if (api_list(c, target, &type_variable_metadata, &l, &meta, &e))
        return cmd_fail(c, "Error retrieving vars: %s", e.text);
    struct output as = {.json = str_eq(out.as, "json"), .tmpl = out.tmpl};
    if (output_list(c, &as, &type_variable_metadata, &l, &rc))
        return rc;
    list_print(c, &l, out.as);
    if (meta.next_token)
        cmd_say(c, "Next page token: %s", meta.next_token);
    return 0;
}

/* --- purge --- */

int
cmd_var_purge(struct cmd *c)
{
    const char *text = NULL;
    const struct opt opts[] = {{"check-index", OPT_STRING, &text, "<index>",
                                "Delete only when the variable has this modify index."},
                               {0}};
    struct err e = ERR_INIT;
    uint64_t index = 0;
    void *got = NULL;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!take_index(c, text, &index))
        return 1;
    const struct variable_spec s = {.path = c->args[0]};
    const struct change ch = {.method = "DELETE",
                              .target = text ? var_target(c, &s, "cas", fmt_u64(c, index))
                                             : var_target(c, &s, NULL, NULL),
                              .answer = &type_variable};
    rc = api_send(c, &ch, &got, &e);
    if (rc == -ERR_CONFLICT)
        return var_conflict(c, index, got);
    if (rc < 0)
        return cmd_fail(c, "Error purging variable: %s", e.text);
    cmd_say(c, "Successfully purged variable \"%s\"!", c->args[0]);
    return 0;
}

/* --- init --- */

static const char spec_hcl_text[] =
    "# A specification of a variable, for `paddock var put @spec.nv.hcl`.\n"
    "# The path may be named here, or by the command.\n"
    "# path = \"nomad/jobs/example\"\n"
    "# namespace = \"default\"\n"
    "\n"
    "# The items are sealed and opened together: at most 64 KiB of keys and values.\n"
    "items {\n"
    "  key1 = \"value 1\"\n"
    "  key2 = \"value 2\"\n"
    "}\n";
static const char spec_json_text[] = "{\n"
                                     "  \"Namespace\": \"default\",\n"
                                     "  \"Path\": \"path/to/variable\",\n"
                                     "  \"Items\": {\n"
                                     "    \"key1\": \"value 1\",\n"
                                     "    \"key2\": \"value 2\"\n"
                                     "  }\n"
                                     "}\n";

int
cmd_var_init(struct cmd *c)
{
    const char *as = "hcl";
    bool quiet = false;
    const struct opt opts[] = {
        {"out", OPT_STRING, &as, "<format>", "hcl (default) or json."},
        {"quiet", OPT_BOOL, &quiet, NULL, "Do not say that the file was written."},
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.max = 1}, &rc))
        return rc;
    bool json = str_eq(as, "json");
    if (!json && !str_eq(as, "hcl"))
        return cmd_fail(c, "Invalid value for \"-out\"; valid values are [hcl, json]");
    const char *path = c->n_args ? c->args[0] : json ? "spec.nv.json" : "spec.nv.hcl";
    if (jobfile_example(c, "File", path, json ? spec_json_text : spec_hcl_text) < 0)
        return 1;
    if (!quiet)
        cmd_say(c, "Example variable specification written to %s", path);
    return 0;
}
