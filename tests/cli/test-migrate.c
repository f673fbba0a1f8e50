/* SPDX-License-Identifier: Apache-2.0
 *
 * migrate check: over a directory, and over an API that answers as a Nomad does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/str.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

static char dir[] = "/tmp/test-migrate-XXXXXX";
static const char *const names[] = {"ok.nomad",  "raw.hcl",    "bad.nomad.hcl",
                                    "agent.hcl", "policy.hcl", "job.json"};

static void
write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void
setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void
teardown(void)
{
    char path[256];
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

#define OK                                                                                         \
    "job \"ok\" {\n  group \"g\" {\n    task \"t\" {\n      driver = \"exec\"\n      config {\n"   \
    "        command = \"/bin/true\"\n      }\n    }\n  }\n}\n"
#define RAW                                                                                        \
    "job \"raw\" {\n  group \"g\" {\n    task \"a\" {\n      driver = \"exec\"\n      config {\n " \
    "       command = \"x\"\n"                                                                     \
    "      }\n    }\n    task \"t\" {\n      driver = \"raw_exec\"\n      config {\n        "      \
    "command = \"x\"\n      }\n"                                                                   \
    "    }\n  }\n}\n"

static int
check(const char *name)
{
    char line[300];
    snprintf(line, sizeof(line), "migrate check %s%s%s", dir, *name ? "/" : "", name);
    return fake_run(line);
}

static void
says(const char *text)
{
    ck_assert_msg(strstr(fake_out(), text) != NULL, "no \"%s\" in:\n%s%s", text, fake_out(),
                  fake_err());
}

START_TEST(the_exit_code_is_the_worst)
{
    write_file("ok.nomad", OK);
    ck_assert_int_eq(check(""), 0);
    says("1 jobs: 1 unchanged, 0 differ, 0 refused");
    write_file("raw.hcl", RAW);
    ck_assert_int_eq(check(""), 1);
    says("raw.hcl:10: differs: group \"g\": task \"t\": a raw_exec task that names no user");
    says("    fix: name the user it needs");
    write_file("bad.nomad.hcl", "job \"bad\" {\n  group \"g\" {\n    count = 1\n    task \"t\" {\n "
                                "     driver = \"dockre\"\n"
                                "    }\n  }\n  nonsense = 1\n}\n");
    ck_assert_int_eq(check(""), 2);
    says("bad.nomad.hcl:8: refused: Unsupported argument");
    says("3 jobs: 1 unchanged, 1 differ, 1 refused");
    ck_assert_int_eq(check("nowhere"), 255);
}
END_TEST

START_TEST(what_the_server_refuses_is_refused)
{
    write_file("bad.nomad.hcl",
               "job \"bad\" {\n  group \"g\" {\n    constraint {\n      attribute = \"${attr.x}\"\n"
               "      operator = \"regexp\"\n      value = \"(\"\n    }\n    task \"t\" {\n"
               "      driver = \"dockre\"\n    }\n    task \"u\" {\n      driver = \"exec\"\n"
               "      config {\n        comand = \"x\"\n      }\n    }\n  }\n}\n");
    ck_assert_int_eq(check(""), 2);
    says("bad.nomad.hcl:9: refused: group \"g\": task \"t\": driver \"dockre\" is not in this "
         "release");
    says("fix: did you mean \"docker\"?");
    says("bad.nomad.hcl:13: refused: group \"g\": task \"u\": ");
    says("bad.nomad.hcl:3: refused: group \"g\": constraint: ");
}
END_TEST

START_TEST(what_comes_later_is_named_with_its_line)
{
    write_file(
        "bad.nomad.hcl",
        "job \"bad\" {\n  group \"g\" {\n    service {\n      name = \"x\"\n    }\n    task \"t\" "
        "{\n"
        "      driver = \"exec\"\n      config {\n        command = \"x\"\n      }\n"
        "      vault {\n        role = \"x\"\n      }\n"
        "    }\n  }\n}\n");
    ck_assert_int_eq(check(""), 2);
    says("bad.nomad.hcl:3: refused: group \"g\": service \"x\": provider \"consul\" is not in this "
         "release; write provider = \"nomad\"");
    says("bad.nomad.hcl:11: refused: group \"g\": task \"t\": vault: known, but without effect");
    says("fix: remove it, or wait for the release that has it");
    write_file("bad.nomad.hcl",
               "job \"bad\" {\n  group \"g\" {\n    volume \"v\" {\n      type = \"csi\"\n"
               "      source = \"x\"\n      access_mode = \"single-node-writer\"\n"
               "      attachment_mode = \"file-system\"\n    }\n    task \"t\" {\n"
               "      driver = \"exec\"\n      config {\n        command = \"x\"\n      }\n"
               "    }\n  }\n}\n");
    ck_assert_int_eq(check(""), 2);
    says("refused: volume \"v\": type \"csi\" is not in this release");
}
END_TEST

START_TEST(other_files_are_told_apart)
{
    write_file("agent.hcl", "data_dir = \"/x\"\nserver {\n  enabled = true\n  nonsense = 1\n}\n");
    write_file("policy.hcl", "path \"x\" {\n}\n");
    write_file("job.json",
               "{\"Job\":{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\","
               "\"Driver\":\"exec\",\"Config\":{\"command\":\"/bin/true\"}}]}]}}");
    ck_assert_int_eq(check(""), 2);
    says("agent.hcl:4: refused: Unsupported argument");
    says("job \"j\": unchanged");
    says("1 configurations of agents read\n1 files are neither");
}
END_TEST

START_TEST(what_the_agent_refuses_is_refused)
{
    write_file("agent.hcl",
               "data_dir = \"/x\"\nserver {\n  enabled = true\n  state_max_mb = 1\n}\n"
               "plugin \"podman\" {\n  config {\n    recover_stopped = true\n  }\n}\n"
               "plugin \"exec\" {\n  config {\n    allow_caps = [\"chown\"]\n    no_pivot_root = "
               "true\n  }\n}\n"
               "bind_addr = \"{{ GetInterfaceIP \\\"of.another\\\" }}\"\n"
               "client {\n  min_dynamic_port = 20000\n  options {\n    nonsense = \"1\"\n  }\n}\n");
    ck_assert_int_eq(check("agent.hcl"), 2);
    says("agent.hcl:4: refused: server.state_max_mb = 1");
    says("agent.hcl:6: refused: plugin \"podman\": ");
    says("plugin \"exec\": allow_caps is said for all drivers: isolation { allowed_caps = "
         "[\"chown\"] }");
    says("plugin \"exec\": no_pivot_root: a task has a root of its own: remove it");
    says("agent.hcl:20: refused: client.options: \"nonsense\"");
    ck_assert_ptr_null(strstr(fake_out(), "bind_addr"));
    write_file("agent.hcl", "log_level = \"WARN\"\nserver {\n  enabled = true\n}\n");
    ck_assert_int_eq(check("agent.hcl"), 0);
}
END_TEST

START_TEST(a_running_nomad_is_asked)
{
#define GROUP(driver)                                                                              \
    "\"TaskGroups\":[{\"Name\":\"g\",\"Count\":1,\"Tasks\":[{\"Name\":\"t\",\"Driver\":\"" driver  \
    "\","                                                                                          \
    "\"Config\":{\"command\":\"/bin/"                                                              \
    "true\"},\"Identity\":{\"Name\":\"default\",\"Audience\":[\"nomadproject.io\"]}}]}]"
    fake_answers((const struct answer[]){
        {"GET /v1/agent/self", 200, "{\"config\":{\"ACL\":{\"Enabled\":true},"
         "\"TLSConfig\":{\"EnableHTTP\":true,\"EnableRPC\":false}}}"},
        {"GET /v1/nodes", 200,
         "[{\"ID\":\"" NODE_ID "\",\"Name\":\"n\",\"Drivers\":{\"lxc\":{\"Healthy\":true}}}]"},
        {"GET /v1/namespaces", 200, "[{\"Name\":\"default\"},{\"Name\":\"team\"}]"},
        {"GET /v1/node/pools", 200, "[{\"Name\":\"all\"},{\"Name\":\"default\"}]"},
        {"GET /v1/jobs", 200,
         "[{\"ID\":\"a\",\"Namespace\":\"default\"},{\"ID\":\"b\",\"Namespace\":\"team\"},"
         "{\"ID\":\"b/periodic-1\",\"ParentID\":\"b\"}]"},
        {"GET /v1/job/a", 200, "{\"ID\":\"a\",\"Type\":\"service\"," GROUP("exec") "}"},
        {"GET /v1/job/b", 200,
         "{\"ID\":\"b\",\"Type\":\"batch\",\"Namespace\":\"team\"," GROUP("lxc") "}"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("migrate check http://127.0.0.1:4646"), 2);
    says("refused: access control is on");
    says("note: HTTPS is on");
    ck_assert_ptr_null(strstr(fake_out(), "TLS between agents"));
    says("note: nodes have the driver \"lxc\"");
    says("namespace \"team\" has to be made");
    says("job \"a\": unchanged\n");
    says("job \"b\": refused: group \"g\": task \"t\": driver \"lxc\" is not in this release");
    says("2 jobs: 1 unchanged, 0 differ, 1 refused");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "GET /v1/job/b?namespace=team"));
    ck_assert_int_eq(fake_run("migrate check -json http://127.0.0.1:4646"), 2);
    says("\"refused\": 1");
}
END_TEST

TEST_SUITE_FIXTURE("cli migrate", 20, setup, teardown, the_exit_code_is_the_worst,
                   what_the_server_refuses_is_refused, what_comes_later_is_named_with_its_line,
                   other_files_are_told_apart, what_the_agent_refuses_is_refused,
                   a_running_nomad_is_asked)
