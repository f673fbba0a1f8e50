/* SPDX-License-Identifier: Apache-2.0
 *
 * acl bootstrap, and acl token create, update, info, self, list, delete, in this order behind how a
 * token is printed. A secret comes in by a file or standard input and goes out by standard output,
 * alone.
 */
#include "cli/acl/acl.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"
#include "common/duration.h"

/* --- printing --- */

/* Times as Nomad prints them: "2026-11-21 11:00:00.5 +0000 UTC". */
static const char *
time_text(struct cmd *c, int64_t ns)
{
    char text[TIME_TEXT];

    if (ns == 0)
        return "<none>";
    time_format(ns, text);
    char *s = mem_printf(c, "%.*s +0000 UTC", (int)strcspn(text, "Z"), text);
    char *t = strchr(s, 'T');
    if (t)
        *t = ' ';
    return s;
}

static void
print_roles(struct cmd *c, const struct acl_token *token)
{
    struct table t;

    cmd_heading(c, "Roles");
    if (token->roles.n == 0) {
        cmd_say(c, "<none>");
        return;
    }
    table_init(&t, c, 2);
    table_row(&t, "ID", "Name");
    for (size_t i = 0; i < token->roles.n; i++)
        table_row(&t, token->roles.v[i]->id, token->roles.v[i]->name);
    table_print(&t);
}

void
acl_token_print(struct cmd *c, const struct acl_token *token)
{
    bool client = !str_eq(token->type, "management");
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "Accessor ID", token->accessor_id);
    table_row(&t, "Secret ID", token->secret_id);
    table_row(&t, "Name", token->name);
    table_row(&t, "Type", token->type);
    table_row(&t, "Global", fmt_bool(token->global));
    table_row(&t, "Create Time", time_text(c, token->create_time));
    table_row(&t, "Expiry Time", time_text(c, token->expiration_time));
    table_row(&t, "Create Index", fmt_u64(c, token->create_index));
    table_row(&t, "Modify Index", fmt_u64(c, token->modify_index));
    if (client)
        table_row(&t, "Policies",
                  mem_printf(c, "[%s]", str_or(fmt_join(c, &token->policies, " "), "")));
    else {
        table_row(&t, "Policies", "n/a");
        table_row(&t, "Roles", "n/a");
    }
    table_print_kv(&t);
    if (client)
        print_roles(c, token);
}

static int
token_show(struct cmd *c, const struct output *out, const struct acl_token *token)
{
    int rc = 0;

    if (!token)
        return 1;
    if (!output_object(c, out, &type_acl_token, token, &rc))
        acl_token_print(c, token);
    return rc;
}

/* --- secrets that are given --- */

/* Reads a file's only line; NULL: what is wrong was said. */
static const char *
read_secret(struct cmd *c, const char *path)
{
    struct err e = ERR_INIT;
    char *text = NULL;
    size_t n = 0;

    if (jobfile_read(c, path, &text, &n, &e) < 0) {
        cmd_fail(c, "Failed to read secret: %s", e.text);
        return NULL;
    }
    char *start = text + strspn(text, " \t\r\n");
    start[strcspn(start, " \t\r\n")] = '\0';
    if (*start != '\0')
        return start;
    cmd_fail(c, "Failed to read secret: \"%s\" is empty", path);
    return NULL;
}

int
cmd_acl_bootstrap(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct acl_bootstrap_request req = {0};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (c->n_args > 0 && !(req.bootstrap_secret = read_secret(c, c->args[0])))
        return 1;
    struct change change = {.target = api_target(c, "/v1/acl/bootstrap", NULL),
                            .answer = &type_acl_token,
                            .failed = "Error bootstrapping"};
    if (req.bootstrap_secret) {
        change.body_type = &type_acl_bootstrap_request;
        change.body = &req;
    }
    return token_show(c, &out, api_change(c, &change));
}

/* --- tokens --- */

struct token_opts {
    const char *name, *type;
    struct opt_list policies, role_names, role_ids;
};
#define TOKEN_OPTS(o)                                                                              \
    {"name", OPT_STRING, &(o).name, "<name>", "Its name."},                                        \
        {"type", OPT_STRING, &(o).type, "<type>", "client or management."},                        \
        {"policy", OPT_LIST, &(o).policies, "<policy>", "A policy of it; may be repeated."},       \
        {"role-name", OPT_LIST, &(o).role_names, "<role>",                                         \
         "A role of it, by name; may be repeated."},                                               \
        {"role-id", OPT_LIST, &(o).role_ids, "<id>", "A role of it, by id; may be repeated."}

static void
add_roles(struct cmd *c, struct acl_token *token, const struct opt_list *l, bool by_name)
{
    for (size_t i = 0; i < l->n; i++) {
        struct acl_token_role *role = mem_new(c, struct acl_token_role);
        *(by_name ? &role->name : &role->id) = l->v[i];
        list_add(c, token->roles, role);
    }
}

/* Says of policies that there are not: the token has nothing of them until they are written. */
static void
warn_of_policies(struct cmd *c, const struct opt_list *policies)
{
    for (size_t i = 0; i < policies->n; i++) {
        struct err e = ERR_INIT;
        void *policy = NULL;
        const char *target = api_target(c, "/v1/acl/policy/%", policies->v[i], NULL);
        if (api_get(c, target, &type_acl_policy, &policy, NULL, &e) < 0)
            cmd_warn(c, "Error fetching info on %s policy: %s\n", policies->v[i], e.text);
    }
}

/* Options take the place of the members that they name. */
static void
apply_opts(struct cmd *c, struct acl_token *token, const struct token_opts *o)
{
    token->name = o->name ? o->name : token->name;
    token->type = str_or(o->type, token->type);
    if (o->policies.n > 0)
        token->policies = (struct str_list){o->policies.v, o->policies.n};
    if (o->role_names.n + o->role_ids.n == 0)
        return;
    token->roles = (struct acl_token_role_list){NULL, 0};
    add_roles(c, token, &o->role_names, true);
    add_roles(c, token, &o->role_ids, false);
}

/* Takes both ids of a token that is uploaded; false: what is wrong was said. */
static bool
take_ids(struct cmd *c, const char *accessor, struct acl_token *token)
{
    if (!str_empty(accessor) != (c->n_args > 0)) {
        cmd_fail(c, "-accessor and a file with the SecretID (\"-\": standard input) go together");
        return false;
    }
    token->accessor_id = accessor;
    token->secret_id = c->n_args > 0 ? read_secret(c, c->args[0]) : NULL;
    return c->n_args == 0 || token->secret_id != NULL;
}

int
cmd_acl_token_create(struct cmd *c)
{
    struct token_opts o = {.type = "client"};
    struct output out = {0};
    struct acl_token *token = type_new(c, &type_acl_token);
    const char *accessor = NULL, *ttl = NULL;
    const struct opt opts[] = {
        TOKEN_OPTS(o),
        {"global", OPT_BOOL, &token->global, NULL, "It holds in all regions."},
        {"ttl", OPT_STRING, &ttl, "<duration>", "How long it holds (default for ever)."},
        {"accessor", OPT_STRING, &accessor, "<id>",
         "Upload a token with this accessor id, and the secret that the file has."},
        OUTPUT_OPTS(out),
        {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
        return rc;
    if (!take_ids(c, accessor, token))
        return 1;
    apply_opts(c, token, &o);
    token->expiration_ttl = ttl;
    warn_of_policies(c, &o.policies);
    const char *target = accessor ? api_target(c, "/v1/acl/token/%", accessor, NULL)
                                  : api_target(c, "/v1/acl/token", NULL);
    return token_show(
        c, &out,
        api_change(c,
                   &(struct change){.target = target,
                                    .body_type = &type_acl_token,
                                    .body = token,
                                    .answer = &type_acl_token,
                                    .failed = accessor ? "Error uploading token"
                                                       : "Error creating token"}));
}

int
cmd_acl_token_update(struct cmd *c)
{
    struct token_opts o = {.type = NULL};
    const struct opt opts[] = {TOKEN_OPTS(o), {0}};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    const char *target = api_target(c, "/v1/acl/token/%", c->args[0], NULL);
    struct acl_token *token = api_read(c, target, &type_acl_token, "Error fetching token");
    if (!token)
        return 1;
    apply_opts(c, token, &o);
    return token_show(c, &(struct output){0},
                      api_change(c, &(struct change){.target = target,
                                                     .body_type = &type_acl_token,
                                                     .body = token,
                                                     .answer = &type_acl_token,
                                                     .failed = "Error updating token"}));
}

int
cmd_acl_token_info(struct cmd *c)
{
    int rc;

    if (!cmd_parse(c, NULL, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    return token_show(c, &(struct output){0},
                      api_read(c, api_target(c, "/v1/acl/token/%", c->args[0], NULL),
                               &type_acl_token, "Error fetching token"));
}

int
cmd_acl_token_self(struct cmd *c)
{
    int rc;

    if (!cmd_parse(c, NULL, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (str_empty(c->token))
        return cmd_fail(c, "No token present in the environment or set via the CLI flag");
    return token_show(c, &(struct output){0},
                      api_read(c, api_target(c, "/v1/acl/token/self", NULL), &type_acl_token,
                               "Error fetching token"));
}

int
cmd_acl_token_list(struct cmd *c)
{
    struct output out = {0};
    const struct opt opts[] = {OUTPUT_OPTS(out), {0}};
    struct acl_token_list_stub_list l;
    struct table t;
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    if (!api_read_list(c, api_target(c, "/v1/acl/tokens", NULL), &type_acl_token_list_stub, &l,
                       "Error listing ACL tokens"))
        return 1;
    if (output_list(c, &out, &type_acl_token_list_stub, &l, &rc))
        return rc;
    if (l.n == 0) {
        cmd_say(c, "No tokens found");
        return 0;
    }
    table_init(&t, c, 5);
    table_row(&t, "Name", "Type", "Global", "Accessor ID", "Expired");
    for (size_t i = 0; i < l.n; i++) {
        const struct acl_token_list_stub *s = l.v[i];
        bool expired = s->expiration_time != 0 && s->expiration_time <= cmd_now(c);
        table_row(&t, s->name, s->type, fmt_bool(s->global), s->accessor_id, fmt_bool(expired));
    }
    table_print(&t);
    return 0;
}

int
cmd_acl_token_delete(struct cmd *c)
{
    int rc;

    if (!cmd_parse(c, NULL, &(struct cmd_args){.client = true, .min = 1, .max = 1}, &rc))
        return rc;
    if (!api_change(c,
                    &(struct change){.method = "DELETE",
                                     .target = api_target(c, "/v1/acl/token/%", c->args[0], NULL),
                                     .failed = "Error deleting token"}))
        return 1;
    cmd_say(c, "Token %s successfully deleted", c->args[0]);
    return 0;
}
