/* SPDX-License-Identifier: Apache-2.0
 *
 * acl auth-method create, update, info, list, delete: how people and machines log in.
 */
#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"

enum { CONFIG_BUDGET = 16 << 20 };

struct method_opts {
    const char *name, *type, *locality, *format, *ttl, *config;
    bool is_default;
    struct output out;
};
#define METHOD_OPTS(o)                                                                             \
    {"type", OPT_STRING, &(o).type, "<type>", "JWT."},                                             \
        {"max-token-ttl", OPT_STRING, &(o).ttl, "<duration>",                                      \
         "How long a token of the method holds."},                                                 \
        {"token-locality", OPT_STRING, &(o).locality, "<local|global>",                            \
         "Whether its tokens hold in this region, or in all."},                                    \
        {"token-name-format", OPT_STRING, &(o).format, "<template>",                               \
         "The names of its tokens (default ${auth_method_type}-${auth_method_name})."},            \
        {"default", OPT_BOOL, &(o).is_default, NULL, "Logins that name no method take this one."}, \
        {"config", OPT_STRING, &(o).config, "<JSON>",                                              \
         "Its configuration, in JSON; @path reads a file, - standard input."},                     \
        OUTPUT_OPTS((o).out)

/* --- printing --- */

/* "{a: b; c: d}" */
static const char *
map_text(struct cmd *c, const struct str_map *m)
{
    const char *text = "";

    for (size_t i = 0; i < m->n; i++)
        text = mem_printf(c, "%s%s%s: %s", text, i > 0 ? "; " : "", m->v[i].k, m->v[i].v);
    return m->n > 0 ? mem_printf(c, "{%s}", text) : NULL;
}

static void
add_config_row(struct table *t, const char *name, const char *value)
{
    table_row(t, name, str_or(value, "<none>"));
}

static void
config_print(struct cmd *c, const struct acl_auth_method_config *f)
{
    struct table t;

    cmd_heading(c, "Auth Method Config");
    table_init(&t, c, 2);
    add_config_row(&t, "JWT Validation Public Keys", fmt_join(c, &f->jwt_validation_pub_keys, ","));
    add_config_row(&t, "JWKS URL", f->jwks_url);
    add_config_row(&t, "OIDC Discovery URL", f->oidc_discovery_url);
    add_config_row(&t, "Bound audiences", fmt_join(c, &f->bound_audiences, ","));
    add_config_row(&t, "Bound issuer", fmt_join(c, &f->bound_issuer, ","));
    add_config_row(&t, "Discovery CA pem", fmt_join(c, &f->discovery_ca_pem, ","));
    add_config_row(&t, "JWKS CA cert", f->jwks_ca);
    add_config_row(&t, "Signing algorithms", fmt_join(c, &f->signing_algs, ","));
    add_config_row(&t, "Expiration Leeway", str_or(f->expiration_leeway, "0s"));
    add_config_row(&t, "NotBefore Leeway", str_or(f->not_before_leeway, "0s"));
    add_config_row(&t, "ClockSkew Leeway", str_or(f->clock_skew_leeway, "0s"));
    add_config_row(&t, "Claim mappings", map_text(c, &f->claim_mappings));
    add_config_row(&t, "List claim mappings", map_text(c, &f->list_claim_mappings));
    table_print_kv(&t);
}

static void
method_print(struct cmd *c, const struct acl_auth_method *m)
{
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "Name", m->name);
    table_row(&t, "Type", m->type);
    table_row(&t, "Locality", m->token_locality);
    table_row(&t, "Max Token TTL", m->max_token_ttl);
    table_row(&t, "Token Name Format", m->token_name_format);
    table_row(&t, "Default", fmt_bool(m->default_));
    table_row(&t, "Create Index", fmt_u64(c, m->create_index));
    table_row(&t, "Modify Index", fmt_u64(c, m->modify_index));
    table_print_kv(&t);
    if (m->config != NULL)
        config_print(c, m->config);
}

/* --- writes --- */

/* Reads what -config says; NULL: what is wrong was said. */
static struct acl_auth_method_config *
config_read(struct cmd *c, const char *text)
{
    struct err e = ERR_INIT;
    char *file = NULL;
    size_t n = 0;
    void *config = NULL;
    bool in_file = text[0] == '@' || str_eq(text, "-");

    if (in_file && jobfile_read(c, text[0] == '@' ? text + 1 : text, &file, &n, &e) < 0) {
        cmd_fail(c, "Error reading config: %s", e.text);
        return NULL;
    }
    struct slice json = in_file ? SLICE(file, n) : SLICE(text, strlen(text));
    if (json_decode_strict(c, &type_acl_auth_method_config, json, BUDGET(CONFIG_BUDGET), &config,
                           &e) == 0)
        return config;
    cmd_fail(c, "Unable to parse config: %s", e.text);
    return NULL;
}

/* Options take the place of the members that they name; false: what is wrong was said. */
static bool
apply_opts(struct cmd *c, struct acl_auth_method *m, const struct method_opts *o)
{
    m->type = o->type ? o->type : m->type;
    m->token_locality = o->locality ? o->locality : m->token_locality;
    m->token_name_format = o->format ? o->format : m->token_name_format;
    m->max_token_ttl = o->ttl ? o->ttl : m->max_token_ttl;
    m->default_ = o->is_default || m->default_;
    return !o->config || (m->config = config_read(c, o->config)) != NULL;
}

static int
method_write(struct cmd *c, const char *target, const struct acl_auth_method *m,
             const struct output *out, const char *failed)
{
    int rc = 0;
    const struct acl_auth_method *got =
        api_change(c, &(struct change){.target = target,
                                       .body_type = &type_acl_auth_method,
                                       .body = m,
                                       .answer = &type_acl_auth_method,
                                       .failed = failed});
    if (!got)
        return 1;
    if (!output_object(c, out, &type_acl_auth_method, got, &rc))
        method_print(c, got);
    return rc;
}

int
cmd_acl_auth_method_create(struct cmd *c)
{
    struct method_opts o = {.name = NULL};
    const struct opt opts[] = {
        {"name", OPT_STRING, &o.name, "<name>", "Its name."}, METHOD_OPTS(o), {0}};
    struct acl_auth_method *m = type_new(c, &type_acl_auth_method);
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (str_empty(o.name))
        return cmd_fail(c, "ACL auth method name must be specified using the -name flag");
    if (str_empty(o.locality))
        return cmd_fail(c, "Token locality must be specified using the -token-locality flag: local "
                           "or global");
    if (str_empty(o.ttl))
        return cmd_fail(c, "Max token TTL must be set to a duration between the min and max TTL of "
                           "the cluster, as -max-token-ttl 8h");
    if (str_empty(o.type))
        return cmd_fail(c, "ACL auth method type must be specified using the -type flag: JWT");
    if (str_empty(o.config))
        return cmd_fail(c, "Must provide ACL auth method config in JSON using the -config flag");
    m->name = o.name;
    if (!apply_opts(c, m, &o))
        return 1;
    return method_write(c, api_target(c, "/v1/acl/auth-method", NULL), m, &o.out,
                        "Error creating ACL auth method");
}

int
cmd_acl_auth_method_update(struct cmd *c)
{
    struct method_opts o = {.name = NULL};
    const struct opt opts[] = {METHOD_OPTS(o), {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!o.type && !o.locality && !o.format && !o.ttl && !o.config && !o.is_default)
        return cmd_fail(c, "Please provide at least one flag to update the ACL auth method");
    const char *target = api_target(c, "/v1/acl/auth-method/%", c->args[0], NULL);
    struct acl_auth_method *m =
        api_read(c, target, &type_acl_auth_method, "Error reading ACL auth method");
    if (!m || !apply_opts(c, m, &o))
        return 1;
    return method_write(c, target, m, &o.out, "Error updating ACL auth method");
}

/* --- reads, deletion --- */

int
cmd_acl_auth_method_info(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const struct acl_auth_method *m =
        api_read(c, api_target(c, "/v1/acl/auth-method/%", c->args[0], NULL), &type_acl_auth_method,
                 "Error reading ACL auth method");
    if (!m)
        return 1;
    if (!output_object(c, &out, &type_acl_auth_method, m, &rc))
        method_print(c, m);
    return rc;
}

int
cmd_acl_auth_method_list(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct acl_auth_method_list_stub_list l;
    struct table t;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/acl/auth-methods", NULL),
                       &type_acl_auth_method_list_stub, &l, "Error listing ACL auth methods"))
        return 1;
    if (output_list(c, &out, &type_acl_auth_method_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No ACL auth methods found");
        return 0;
    }
    table_init(&t, c, 3);
    table_row(&t, "Name", "Type", "Default");
    for (size_t i = 0; i < l.n; i++)
        table_row(&t, l.v[i]->name, l.v[i]->type, fmt_bool(l.v[i]->default_));
    table_print(&t);
    return 0;
}

int
cmd_acl_auth_method_delete(struct cmd *c)
{
    int rc;

    if (!cmd_parse(c, NULL, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!api_change(
            c, &(struct change){.method = "DELETE",
                                .target = api_target(c, "/v1/acl/auth-method/%", c->args[0], NULL),
                                .failed = "Error deleting ACL auth method"}))
        return 1;
    cmd_say(c, "ACL auth method %s successfully deleted", c->args[0]);
    return 0;
}
