/* SPDX-License-Identifier: Apache-2.0
 *
 * acl, login: what their commands print and send, against recorded answers.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/mem.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

#define ACCESSOR "11111111-1111-4111-8111-111111111111"
#define SECRET   "22222222-2222-4222-8222-222222222222"
#define ROLE     "33333333-3333-4333-8333-333333333333"

#define TOKEN(rest) "{\"AccessorID\":\"" ACCESSOR "\",\"SecretID\":\"" SECRET "\",\"Name\":\"t\"," rest "}"
#define MANAGEMENT \
    TOKEN("\"Type\":\"management\",\"Global\":true,\"CreateTime\":\"2026-11-21T11:00:00.5Z\"," \
          "\"CreateIndex\":7,\"ModifyIndex\":7")
#define CLIENT \
    TOKEN("\"Type\":\"client\",\"Policies\":[\"a\",\"b\"],\"Roles\":[{\"ID\":\"" ROLE "\",\"Name\":\"r\"}]," \
          "\"CreateTime\":\"2026-11-21T11:00:00Z\",\"ExpirationTime\":\"2026-11-21T19:00:00Z\"," \
          "\"ExpirationTTL\":\"8h0m0s\",\"CreateIndex\":8,\"ModifyIndex\":9")
#define MANAGEMENT_TEXT \
    "Accessor ID  = " ACCESSOR "\nSecret ID    = " SECRET "\nName         = t\nType         = management\n" \
    "Global       = true\nCreate Time  = 2026-11-21 11:00:00.5 +0000 UTC\nExpiry Time  = <none>\n" \
    "Create Index = 7\nModify Index = 7\nPolicies     = n/a\nRoles        = n/a\n"
#define CLIENT_TEXT \
    "Accessor ID  = " ACCESSOR "\nSecret ID    = " SECRET "\nName         = t\nType         = client\n" \
    "Global       = false\nCreate Time  = 2026-11-21 11:00:00 +0000 UTC\n" \
    "Expiry Time  = 2026-11-21 19:00:00 +0000 UTC\nCreate Index = 8\nModify Index = 9\n" \
    "Policies     = [a b]\n\nRoles\nID                                    Name\n" ROLE "  r\n"

/* A file with that text, which is removed with ctx's process. */
static const char *
file_of(void *ctx, const char *text)
{
    char path[] = "/tmp/paddock-cli-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return mem_strdup(ctx, path);
}

/* Runs "<command> <file>" with a file of that text: its exit code. */
static int
run_with(const char *command, const char *text)
{
    auto_mem void *ctx = mem_ctx("test");
    const char *path = file_of(ctx, text);
    int code = fake_run(mem_printf(ctx, "%s %s", command, path));
    unlink(path);
    return code;
}

static void
check_sent(const char *part)
{
    ck_assert_msg(strstr(fake_body(), part) != NULL, "%s\nhas not: %s", fake_body(), part);
}

START_TEST(bootstrap)
{
    fake_answers((const struct answer[]){{"PUT /v1/acl/bootstrap", 200, MANAGEMENT}, {NULL, 0, NULL}});
    check_out("acl bootstrap", 0, MANAGEMENT_TEXT);
    check_out("acl bootstrap -t {{.Name}}", 0, "t\n");
    ck_assert_int_eq(run_with("acl bootstrap", "\n " SECRET " \n"), 0);
    check_sent("\"BootstrapSecret\":\"" SECRET "\"");
    ck_assert_int_eq(run_with("acl bootstrap", " \n"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Failed to read secret: "));
    fake_answers((const struct answer[]){
        {"PUT /v1/acl/bootstrap", 400, "ACL bootstrap already done (reset index: 7)"}, {NULL, 0, NULL}});
    check_err("acl bootstrap", 1,
              "Error bootstrapping: Unexpected response code: 400 (ACL bootstrap already done (reset index: "
                  "7))\n");
}
END_TEST

START_TEST(policies)
{
    fake_answers((const struct answer[]){
        {"PUT /v1/acl/policy/ops", 200, ""},
        {"DELETE /v1/acl/policy/ops", 200, ""},
        {"GET /v1/acl/policies", 200,
         "[{\"Name\":\"ops\",\"Description\":\"They run it\"},{\"Name\":\"web\",\"Description\":\"\"}]"},
        {"GET /v1/acl/policy/ops", 200,
         "{\"Name\":\"ops\",\"Description\":\"\",\"Rules\":\"agent "
             "{}\\u001b[2J\\n\",\"JobACL\":{\"Namespace\":\"default\","
         "\"JobID\":\"web\",\"Group\":\"\",\"Task\":\"\"},\"CreateIndex\":5,\"ModifyIndex\":6}"},
        {"GET /v1/acl/policy/none", 404, "ACL policy not found"},
        {NULL, 0, NULL}});
    check_out("acl policy list", 0, "Name  Description\nops   They run it\nweb   <none>\n");
    check_out("acl policy list -t {{range.}}{{.Name}},{{end}}", 0, "ops,web,\n");
    /* the text of others does nothing to the terminal */
    check_out("acl policy info ops", 0,
              "Name        = ops\nDescription = <none>\nCreateIndex = 5\nModifyIndex = 6\n\nAssociated "
                  "Workload\n"
              "Namespace = default\nJobID     = web\nGroup     = <none>\nTask      = <none>\n\nRules\n\n"
              "agent {}?[2J\n\n");
    check_err("acl policy info none", 1,
              "Error fetching info on ACL policy: Unexpected response code: 404 (ACL policy not found)\n");
    check_out("acl policy delete ops", 0, "Successfully deleted ops policy!\n");
    ck_assert_int_eq(run_with("acl policy apply -description text -job web -group g -namespace dev ops",
        "agent {}"), 0);
    ck_assert_str_eq(fake_out(), "Successfully wrote \"ops\" ACL policy!\n");
    check_sent("\"Name\":\"ops\",\"Description\":\"text\",\"Rules\":\"agent "
        "{}\"");
    check_sent("\"JobACL\":{\"Namespace\":\"dev\",\"JobID\":\"web\",\"Group\":\"g\",\"Task\":\"\"}");
    ck_assert_int_eq(run_with("acl policy apply ops", "agent {}"), 0);
    check_sent("\"JobACL\":null");
    check_err("acl policy apply -job web ops -", 1, "-namespace is required if -job is set\n");
    check_err("acl policy apply -group g ops -", 1, "-job is required if -group is set\n");
    check_err("acl policy apply -task t -job web ops -", 1, "-group is required if -task is set\n");
    ck_assert_int_eq(fake_run("acl policy apply ops /nowhere/x"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Failed to read file: "));
    fake_answers((const struct answer[]){{"GET /v1/acl/policies", 200, "[]"}, {NULL, 0, NULL}});
    check_out("acl policy list", 0, "No policies found\n");
}
END_TEST

START_TEST(own_policies)
{
    fake_answers((const struct answer[]){{"GET /v1/acl/token/self", 200, MANAGEMENT}, {NULL, 0, NULL}});
    check_out("acl policy self", 0, "This is a management token. No individual policies are assigned.\n");
    fake_answers((const struct answer[]){
        {"GET /v1/acl/token/self", 200, CLIENT},
        {"GET /v1/acl/policy/self", 200,
         "[{\"Name\":\"a\"},{\"Name\":\"b\",\"JobACL\":{\"JobID\":\"web\",\"Group\":\"g\"}}]"},
        {NULL, 0, NULL}});
    check_out("acl policy self", 0,
              "Name  Job ID         Group Name     Task Name\na     <unavailable>  <unavailable>  "
                  "<unavailable>\n"
              "b     web            g              <unavailable>\n");
    check_out("acl policy self -t {{.|len}}", 0, "2\n");
}
END_TEST

START_TEST(tokens)
{
    fake_answers((const struct answer[]){
        {"PUT /v1/acl/token", 200, CLIENT},
        {"DELETE /v1/acl/token/" ACCESSOR, 200, ""},
        {"GET /v1/acl/tokens", 200,
         "[{\"AccessorID\":\"" ACCESSOR "\",\"Name\":\"t\",\"Type\":\"client\",\"ExpirationTime\":"
         "\"2026-11-21T12:00:00Z\"},{\"AccessorID\":\"" ROLE "\",\"Name\":\"u\",\"Type\":\"client\","
         "\"ExpirationTime\":\"2026-11-21T12:00:00.1Z\",\"Global\":true}]"},
        {"GET /v1/acl/token/self", 200, MANAGEMENT},
        {"GET /v1/acl/token/" ACCESSOR, 200, CLIENT},
        {"GET /v1/acl/policy/a", 200, "{\"Name\":\"a\"}"},
        {NULL, 0, NULL}});
    check_out("acl token create -name t -policy a -role-name r -role-id " ROLE " -ttl 8h -global", 0,
        CLIENT_TEXT);
    check_sent("\"AccessorID\":\"\",\"SecretID\":\"\",\"Name\":\"t\",\"Type\":\"client\","
               "\"Policies\":[\"a\"],\"Roles\":[{\"ID\":\"\",\"Name\":\"r\"},{\"ID\":\"" ROLE
               "\",\"Name\":\"\"}],\"Global\":true");
    check_sent("\"ExpirationTTL\":\"8h\"");
    /* a policy that there is not is told, and no more */
    ck_assert_int_eq(fake_run("acl token create -policy b"), 0);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Error fetching info on b policy: "));
    ck_assert_str_eq(fake_out(), CLIENT_TEXT);
    check_out("acl token list", 0,
              "Name  Type    Global  Accessor ID                           Expired\n"
              "t     client  false   " ACCESSOR "  true\nu     client  true    " ROLE "  false\n");
    check_out("acl token info " ACCESSOR, 0, CLIENT_TEXT);
    check_out("acl token self -token x", 0, MANAGEMENT_TEXT);
    check_err("acl token self", 1, "No token present in the environment or set via the CLI flag\n");
    check_out("acl token delete " ACCESSOR, 0, "Token " ACCESSOR " successfully deleted\n");
    /* members that no option names stay */
    check_out("acl token update -name new -role-name other " ACCESSOR, 0, CLIENT_TEXT);
    check_sent("\"Name\":\"new\",\"Type\":\"client\",\"Policies\":[\"a\",\"b\"],"
               "\"Roles\":[{\"ID\":\"\",\"Name\":\"other\"}]");
    check_sent("\"ExpirationTTL\":\"8h0m0s\"");
    check_out("acl token update -policy c " ACCESSOR, 0, CLIENT_TEXT);
    check_sent("\"Policies\":[\"c\"],\"Roles\":[{\"ID\":\"" ROLE "\"");
}
END_TEST

START_TEST(tokens_are_uploaded)
{
    fake_answers((const struct answer[]){{"PUT /v1/acl/token/" ACCESSOR, 200, CLIENT}, {NULL, 0, NULL}});
    ck_assert_int_eq(run_with("acl token create -role-name r -accessor " ACCESSOR, SECRET "\n"), 0);
    check_sent("\"AccessorID\":\"" ACCESSOR "\",\"SecretID\":\"" SECRET "\"");
    static const char want[] = "-accessor and a file with the SecretID (\"-\": standard input) go together\n";
    check_err("acl token create -accessor " ACCESSOR, 1, want);
    check_err("acl token create -", 1, want);
    ck_assert_int_eq(run_with("acl token create -accessor " ACCESSOR, ""), 1);
}
END_TEST

#define ROLE_OF(name, rest) \
    "{\"ID\":\"" ROLE "\",\"Name\":\"" name "\",\"Description\":\"d\",\"Policies\":[" rest "]," \
    "\"CreateIndex\":3,\"ModifyIndex\":4}"
#define ROLE_TEXT \
    "ID           = " ROLE "\nName         = r\nDescription  = d\nPolicies     = a,b\nCreate Index = 3\n" \
    "Modify Index = 4\n"

START_TEST(roles)
{
    const char *role = ROLE_OF("r", "{\"Name\":\"a\"},{\"Name\":\"b\"}");
    const struct answer answers[] = {{"PUT /v1/acl/role", 200, role},
                                     {"GET /v1/acl/role/name/r", 200, role},
                                     {"GET /v1/acl/role/" ROLE, 200, role},
                                     {"GET /v1/acl/roles", 200, "[" ROLE_OF("r", "{\"Name\":\"a\"}") "]"},
                                     {"DELETE /v1/acl/role/" ROLE, 200, ""},
                                     {NULL, 0, NULL}};
    fake_answers(answers);
    check_out("acl role create -name r -description d -policy a -policy b -policy a", 0, ROLE_TEXT);
    check_sent("\"ID\":\"\",\"Name\":\"r\",\"Description\":\"d\","
               "\"Policies\":[{\"Name\":\"a\"},{\"Name\":\"b\"}]");
    check_err("acl role create -policy a", 1, "ACL role name must be specified using the -name flag\n");
    check_err("acl role create -name r", 1, "At least one policy name must be specified using the -policy "
        "flag\n");
    check_out("acl role info -by-name r", 0, ROLE_TEXT);
    check_out("acl role info " ROLE, 0, ROLE_TEXT);
    check_out("acl role info -t {{.Name}} " ROLE, 0, "r\n");
    check_out("acl role list", 0,
              "ID                                    Name  Description  Policies\n" ROLE "  r     d         "
                  "   a\n");
    check_out("acl role delete " ROLE, 0, "ACL role " ROLE " successfully deleted\n");
    check_out("acl role update -policy c -policy a " ROLE, 0, ROLE_TEXT);
    check_sent("\"ID\":\"" ROLE "\",\"Name\":\"r\",\"Description\":\"d\",\"Policies\":"
               "[{\"Name\":\"a\"},{\"Name\":\"b\"},{\"Name\":\"c\"}]");
    check_out("acl role update -no-merge -name s -policy c " ROLE, 0, ROLE_TEXT);
    check_sent("\"Name\":\"s\",\"Description\":\"\",\"Policies\":[{\"Name\":\"c\"}]");
    check_err("acl role update " ROLE, 1, "Please provide at least one flag to update the ACL role\n");
    check_err("acl role update -no-merge -policy a " ROLE, 1,
        "ACL role name must be specified using the -name flag\n");
    fake_answers((const struct answer[]){{"GET /v1/acl/roles", 200, "[]"}, {NULL, 0, NULL}});
    check_out("acl role list", 0, "No ACL roles found\n");
}
END_TEST

#define METHOD                                                                                     \
    "{\"Name\":\"m\",\"Type\":\"JWT\",\"TokenLocality\":\"local\",\"MaxTokenTTL\":\"1h0m0s\","     \
    "\"TokenNameFormat\":\"f\",\"Config\":{\"JWKSURL\":\"https://"                                 \
    "x\",\"BoundAudiences\":[\"a\",\"b\"],"                                                        \
    "\"ClockSkewLeeway\":\"5s\",\"ClaimMappings\":{\"c\":\"d\",\"e\":\"f\"}},\"CreateIndex\":3,"   \
    "\"ModifyIndex\":4}"
#define METHOD_TEXT                                                                                \
    "Name              = m\nType              = JWT\nLocality          = local\n"                  \
    "Max Token TTL     = 1h0m0s\nToken Name Format = f\nDefault           = false\n"               \
    "Create Index      = 3\nModify Index      = 4\n\nAuth Method Config\n"                         \
    "JWT Validation Public Keys = <none>\nJWKS URL                   = https://x\n"                \
    "OIDC Discovery URL         = <none>\nBound audiences            = a,b\n"                      \
    "Bound issuer               = <none>\nDiscovery CA pem           = <none>\n"                   \
    "JWKS CA cert               = <none>\nSigning algorithms         = <none>\n"                   \
    "Expiration Leeway          = 0s\nNotBefore Leeway           = 0s\n"                           \
    "ClockSkew Leeway           = 5s\nClaim mappings             = {c: d; e: f}\n"                 \
    "List claim mappings        = <none>\n"

START_TEST(auth_methods)
{
    static const char create[] = "acl auth-method create -name m -type JWT -token-locality local "
                                 "-max-token-ttl 1h";
    auto_mem void *ctx = mem_ctx("test");
    fake_answers((const struct answer[]){
        {"PUT /v1/acl/auth-method", 200, METHOD},
        {"GET /v1/acl/auth-method/m", 200, METHOD},
        {"PUT /v1/acl/auth-method/m", 200, METHOD},
        {"DELETE /v1/acl/auth-method/m", 200, ""},
        {"GET /v1/acl/auth-methods", 200, "[{\"Name\":\"m\",\"Type\":\"JWT\",\"Default\":true}]"},
        {NULL, 0, NULL}});
    check_out(mem_printf(ctx, "%s -config {\"JWKSURL\":\"https://x\"}", create), 0, METHOD_TEXT);
    check_sent(
        "\"Name\":\"m\",\"Type\":\"JWT\",\"TokenLocality\":\"local\",\"TokenNameFormat\":\"\","
        "\"MaxTokenTTL\":\"1h\",\"Default\":false,\"Config\":{");
    check_sent("\"JWKSURL\":\"https://x\"");
    const char *path = file_of(ctx, "{\"OIDCDiscoveryURL\":\"https://y\"}");
    check_out(mem_printf(ctx, "%s -config @%s", create, path), 0, METHOD_TEXT);
    check_sent("\"OIDCDiscoveryURL\":\"https://y\"");
    unlink(path);
    ck_assert_int_eq(fake_run(mem_printf(ctx, "%s -config {\"JWKSUrls\":1}", create)), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Unable to parse config: "));
    check_err(create, 1, "Must provide ACL auth method config in JSON using the -config flag\n");
    check_err("acl auth-method create -name m -type JWT", 1,
              "Token locality must be specified using the -token-locality flag: local or global\n");
    check_out("acl auth-method info m", 0, METHOD_TEXT);
    check_out("acl auth-method info -t {{.Name}} m", 0, "m\n");
    check_out("acl auth-method update -default m", 0, METHOD_TEXT);
    check_sent("\"Default\":true,\"Config\":{");
    check_sent("\"ClaimMappings\":{\"c\":\"d\",\"e\":\"f\"}");
    check_err("acl auth-method update m", 1,
              "Please provide at least one flag to update the ACL auth method\n");
    check_out("acl auth-method list", 0, "Name  Type  Default\nm     JWT   true\n");
    check_out("acl auth-method delete m", 0, "ACL auth method m successfully deleted\n");
}
END_TEST

#define RULE                                                                                       \
    "{\"ID\":\"" ROLE "\",\"AuthMethod\":\"m\",\"Selector\":\"s\",\"BindType\":\"policy\","        \
    "\"BindName\":\"p\",\"CreateIndex\":3,\"ModifyIndex\":4}"
#define RULE_TEXT                                                                                  \
    "ID           = " ROLE "\nDescription  = <none>\nAuth Method  = m\nSelector     = s\n"         \
    "Bind Type    = policy\nBind Name    = p\nCreate Time  = \nModify Time  = \nCreate Index = "   \
    "3\n"                                                                                          \
    "Modify Index = 4\n"

START_TEST(binding_rules)
{
    fake_answers((const struct answer[]){{"PUT /v1/acl/binding-rule", 200, RULE},
                                         {"GET /v1/acl/binding-rule/" ROLE, 200, RULE},
                                         {"PUT /v1/acl/binding-rule/" ROLE, 200, RULE},
                                         {"DELETE /v1/acl/binding-rule/" ROLE, 200, ""},
                                         {"GET /v1/acl/binding-rules", 200, "[" RULE "]"},
                                         {NULL, 0, NULL}});
    check_out("acl binding-rule create -auth-method m -bind-type policy -bind-name p -selector s",
              0, RULE_TEXT);
    check_sent(
        "\"AuthMethod\":\"m\",\"Selector\":\"s\",\"BindType\":\"policy\",\"BindName\":\"p\"");
    check_err("acl binding-rule create -auth-method m", 1,
              "ACL binding rule bind type must be specified using the -bind-type flag\n");
    check_out("acl binding-rule info " ROLE, 0, RULE_TEXT);
    check_out("acl binding-rule update -bind-type management " ROLE, 0, RULE_TEXT);
    check_sent("\"Selector\":\"s\",\"BindType\":\"management\",\"BindName\":\"\"");
    check_out("acl binding-rule update -no-merge -bind-type role -bind-name r " ROLE, 0, RULE_TEXT);
    check_sent("\"Selector\":\"\",\"BindType\":\"role\",\"BindName\":\"r\"");
    check_out("acl binding-rule list", 0,
              "ID                                    Description  Auth Method\n" ROLE
              "  <none>       m\n");
    check_out("acl binding-rule delete " ROLE, 0,
              "ACL binding rule " ROLE " successfully deleted\n");
}
END_TEST

START_TEST(why)
{
    fake_answers((const struct answer[]){
        {"GET /v1/acl/why?accessor=" ACCESSOR "&method=PUT&path=%2Fv1%2Fjobs%3Fnamespace%3Dweb", 200,
         "{\"Allowed\":true,\"Needs\":\"submit-job|register-job\",\"Name\":\"web\",\"Why\":\"because\"}"},
        {NULL, 0, NULL}});
    check_out("acl why " ACCESSOR " PUT /v1/jobs?namespace=web", 0,
              "Allowed = true\nNeeds   = submit-job|register-job\nOf      = web\nWhy     = because\n");
    check_out("acl why -t {{.Why}} " ACCESSOR " PUT /v1/jobs?namespace=web", 0, "because\n");
}
END_TEST

START_TEST(logging_in)
{
    fake_answers((const struct answer[]){
        {"GET /v1/acl/auth-methods", 200,
         "[{\"Name\":\"a\",\"Type\":\"OIDC\"},{\"Name\":\"m\",\"Type\":\"JWT\",\"Default\":true}]"},
        {"PUT /v1/acl/login", 200, CLIENT},
        {NULL, 0, NULL}});
    check_out("login -login-token x.y.z", 0,
              "Successfully logged in via JWT and m\n\n" CLIENT_TEXT);
    check_sent("{\"AuthMethodName\":\"m\",\"LoginToken\":\"x.y.z\"}");
    auto_mem void *ctx = mem_ctx("test");
    const char *path = file_of(ctx, "\n a.b.c \n");
    check_out(mem_printf(ctx, "login -type=JWT -method m -t {{.SecretID}} -login-token %s", path),
              0, SECRET "\n");
    check_sent("\"LoginToken\":\"a.b.c\"");
    check_out(mem_printf(ctx, "login -t {{.Name}} -login-token @%s", path), 0, "t\n");
    unlink(path);
    ck_assert_int_eq(fake_run("login -login-token @/nowhere/x"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Failed to read login token: "));
    check_err("login", 1, "You need to provide a login token with -login-token.\n");
    check_err("login -method none", 1,
              "Error: no ACL auth method is called \"none\": acl auth-method list shows them\n");
    static const char oidc[] =
        "Error: logging in by OIDC is not here yet: log in by a method of type "
        "JWT, with -type JWT -login-token\n";
    check_err("login -method a", 1, oidc);
    check_err("login -type OIDC", 1, oidc);
    fake_answers((const struct answer[]){{"GET /v1/acl/auth-methods", 200, "[]"}, {NULL, 0, NULL}});
    check_err("login -login-token x", 1,
              "Error: no ACL auth method is the default one: name one with -method\n");
}
END_TEST

TEST_SUITE("acl", bootstrap, policies, own_policies, tokens, tokens_are_uploaded, roles,
           auth_methods, binding_rules, why, logging_in)
