/* SPDX-License-Identifier: Apache-2.0
 *
 * login: exchanges a token of another service for one of Paddock.
 */
#include <sys/stat.h>

#include "cli/acl/acl.h"
#include "cli/api.h"
#include "cli/format.h"
#include "cli/jobfile.h"

/* Returns the token of another service: of a file, standard input, or as it is written; NULL: what
 * is wrong was said. */
static const char *
read_token(struct cmd *c, const char *text)
{
    struct err e = ERR_INIT;
    struct stat st;
    char *file = NULL;
    size_t n = 0;
    bool at = text[0] == '@';

    if (!at && !str_eq(text, "-") && stat(text, &st) != 0)
        return text;
    if (jobfile_read(c, at ? text + 1 : text, &file, &n, &e) < 0) {
        cmd_fail(c, "Failed to read login token: %s", e.text);
        return NULL;
    }
    char *start = file + strspn(file, " \t\r\n");
    start[strcspn(start, " \t\r\n")] = '\0';
    if (*start != '\0')
        return start;
    cmd_fail(c, "Failed to read login token: \"%s\" is empty", text);
    return NULL;
}

/* Finds the method by name, or the default one; NULL: what is wrong was said. */
static const struct acl_auth_method_list_stub *
find_method(struct cmd *c, const char *name)
{
    struct acl_auth_method_list_stub_list l;

    if (!api_read_list(c, api_target(c, "/v1/acl/auth-methods", NULL),
                       &type_acl_auth_method_list_stub, &l, "Error listing ACL auth methods"))
        return NULL;
    for (size_t i = 0; i < l.n; i++)
        if (name ? str_eq(l.v[i]->name, name) : l.v[i]->default_)
            return l.v[i];
    if (name)
        cmd_fail(c, "Error: no ACL auth method is called \"%s\": acl auth-method list shows them",
                 name);
    else
        cmd_fail(c, "Error: no ACL auth method is the default one: name one with -method");
    return NULL;
}

int
cmd_login(struct cmd *c)
{
    const char *type = NULL, *name = NULL, *token = NULL;
    struct output out = {0};
    const struct opt opts[] = {
        {"method", OPT_STRING, &name, "<name>", "The auth method (default: the default one)."},
        {"type", OPT_STRING, &type, "<type>", "Its type: JWT."},
        {"login-token", OPT_STRING, &token, "<file|->",
         "The token of the other service: a file, - for standard input, or itself, which other "
         "users of the machine can see."},
        OUTPUT_OPTS(out),
        {0}};
    struct acl_login_request req = {0};
    int rc;

    if (!cmd_parse(c, opts, &(struct cmd_args){.client = true}, &rc))
        return rc;
    const struct acl_auth_method_list_stub *m = find_method(c, name);
    if (!m)
        return 1;
    type = str_or(type, m->type);
    if (strcasecmp(type, "JWT") != 0)
        return cmd_fail(c,
                        "Error: logging in by %s is not here yet: log in by a method of type JWT, "
                        "with -type JWT -login-token",
                        type);
    if (!token)
        return cmd_fail(c, "You need to provide a login token with -login-token.");
    req.auth_method_name = m->name;
    req.login_token = read_token(c, token);
    if (!req.login_token)
        return 1;
    const struct acl_token *got =
        api_change(c, &(struct change){.target = api_target(c, "/v1/acl/login", NULL),
                                       .body_type = &type_acl_login_request,
                                       .body = &req,
                                       .answer = &type_acl_token,
                                       .failed = "Error performing login"});
    if (!got)
        return 1;
    if (output_object(c, &out, &type_acl_token, got, &rc))
        return rc;
    cmd_say(c, "Successfully logged in via JWT and %s\n", m->name);
    acl_token_print(c, got);
    return 0;
}
