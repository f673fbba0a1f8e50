/* SPDX-License-Identifier: Apache-2.0
 *
 * template render: against recorded answers, and files of variables.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/mem.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

static char dir[32];

static const char *
write_file(void *ctx, const char *name, const char *text)
{
    const char *path = mem_printf(ctx, "%s/%s", dir, name);
    FILE *f = fopen(path, "we");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    fclose(f);
    return path;
}

static void
make_dir(void)
{
    strcpy(dir, "/tmp/paddock-render-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void
remove_files(void)
{
    auto_mem void *ctx = mem_ctx("test");
    unlink(mem_printf(ctx, "%s/t", dir));
    unlink(mem_printf(ctx, "%s/e", dir));
    rmdir(dir);
}

static const struct answer answers[] = {
    {"GET /v1/var/app?", 404, "variable not found"},
    {"GET /v1/var/app/db?namespace=prod", 200,
     "{\"Namespace\":\"prod\",\"Path\":\"app/db\",\"Items\":{\"user\":\"root\"}}"},
    {"GET /v1/vars?prefix=app", 200, "[{\"Namespace\":\"default\",\"Path\":\"app/db\"}]"},
    {"GET /v1/service/web", 200,
     "[{\"ServiceName\":\"web\",\"Address\":\"10.0.0.1\",\"Port\":80,\"Tags\":[\"b\",\"a\"]}]"},
    {"GET /v1/services", 200,
     "[{\"Namespace\":\"default\",\"Services\":[{\"ServiceName\":\"web\",\"Tags\":[\"x\"]}]}]"},
    {"GET /v1/allocations?prefix=bbbb", 200, "[" ALLOC_STUB "]"},
    {"GET /v1/allocation/" ALLOC_ID, 200, ALLOC},
    {"GET /v1/node/" NODE_ID, 200, "{\"ID\":\"" NODE_ID "\",\"Datacenter\":\"dc7\"}"},
    {NULL, 0, NULL}};

START_TEST(renders_what_is_there)
{
    auto_mem void *ctx = mem_ctx("test");
    fake_answers(answers);
    const char *t = write_file(ctx, "t",
                               "{{with nomadVar \"app/db@prod\"}}{{.user}}{{end}} {{range "
                               "nomadService \"web\"}}{{.Address}}:"
                               "{{.Port}} {{.Tags}}{{end}} {{range nomadServices}}{{.Name}}{{end}} "
                               "{{range nomadVarList \"app\"}}{{.Path}}{{end}} {{nomadVarExists "
                               "\"app\"}} {{env \"HOME\"}}.\n");
    check_out(mem_printf(ctx, "template render %s", t), 0,
              "root 10.0.0.1:80 [a b] web app/db false .\n");
    const char *e =
        write_file(ctx, "e", "# comment\nexport A=\"x\\ty\" # more\nB = 'it''s' z \nHOME=/h\n");
    t = write_file(ctx, "t", "{{env \"A\"}}|{{env \"B\"}}|{{env \"HOME\"}}|{{env \"C\"}}\n");
    check_out(mem_printf(ctx, "template render -env-file %s %s", e, t), 0, "x\ty|its z|/h|\n");
    t = write_file(
        ctx, "t",
        "{{env \"NOMAD_TASK_NAME\"}} {{env \"NOMAD_DC\"}} {{env \"NOMAD_PORT_http\"}} {{env "
        "\"NOMAD_ALLOC_INDEX\"}} {{env \"NOMAD_MEMORY_LIMIT\"}}\n");
    check_out(mem_printf(ctx, "template render -alloc bbbb %s", t), 0, "t dc7 21000 0 64\n");
}
END_TEST

START_TEST(tells_what_is_missing)
{
    auto_mem void *ctx = mem_ctx("test");
    fake_answers(answers);
    const char *t = write_file(
        ctx, "t",
        "{{with nomadVar \"app\"}}{{.user}}{{end}}{{range nomadService \"web\"}}x{{end}}\n");
    ck_assert_int_eq(fake_run(mem_printf(ctx, "template render %s", t)), 2);
    ck_assert_str_eq(fake_out(), "");
    ck_assert_str_eq(
        fake_err(),
        "The template waits for:\n    nomad.var.block(app@default.global): there is none\n");
    ck_assert_int_eq(fake_run(mem_printf(ctx, "template render -explain %s", t)), 2);
    ck_assert_str_eq(fake_out(), "Dependency                           State\n"
                                 "nomad.var.block(app@default.global)  missing: there is none\n"
                                 "nomad.service(web)                   there\n");
    t = write_file(ctx, "t", "{{(nomadVar \"app\").user}}");
    ck_assert_int_eq(fake_run(mem_printf(ctx, "template render %s", t)), 2);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Waiting, it stops here: template: :1:12: executing"));
    t = write_file(ctx, "t", "{{index 1 2}}");
    check_err(
        mem_printf(ctx, "template render %s", t), 1,
        mem_printf(
            ctx,
            "Error rendering \"%s\": template: :1:2: executing \"\" at <index 1 2>: error calling "
            "index: can't index item of type int\n",
            t));
    t = write_file(ctx, "t", "\n{{key \"a\"}}");
    ck_assert_int_eq(fake_run(mem_printf(ctx, "template render %s", t)), 1);
    ck_assert_ptr_nonnull(
        strstr(fake_err(), "template: :2: function \"key\" asks Consul: use nomadVar"));
    ck_assert_int_eq(fake_run(mem_printf(ctx, "template render -task x %s", t)), 1);
    ck_assert_int_eq(fake_run(mem_printf(ctx, "template render -alloc a -env-file b %s", t)), 1);
}
END_TEST

TEST_SUITE_FIXTURE("cli render", 20, make_dir, remove_files, renders_what_is_there,
                   tells_what_is_missing)
