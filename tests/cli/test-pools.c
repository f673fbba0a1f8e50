/* SPDX-License-Identifier: Apache-2.0
 *
 * node pool, namespace: what their commands print and take, against recorded answers.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/mem.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

#define POOL(name, text) "{\"Name\":\"" name "\",\"Description\":\"" text "\""

START_TEST(node_pools)
{
    fake_answers((const struct answer[]){
        {"GET /v1/node/pools?prefix=gpu", 200,
         "[" POOL("gpu", "Fast") ",\"Meta\":{\"b\":\"2\",\"a\":\"1\"},\"NodeIdentityTTL\":86400000000000,"
         "\"SchedulerConfiguration\":{\"SchedulerAlgorithm\":\"spread\","
         "\"MemoryOversubscriptionEnabled\":true}}," POOL("gpu-2", "") "}]"},
        {"GET /v1/node/pools?prefix=g", 200, "[" POOL("gpu", "Fast") "}," POOL("gpu-2", "") "}]"},
        {"GET /v1/node/pools?prefix=x", 200, "[]"},
        {"GET /v1/node/pools", 200, "[" POOL("all", "All") "}," POOL("gpu", "") "}]"},
        {"GET /v1/node/pool/gpu/nodes", 200,
         "[{\"ID\":\"" NODE_ID "\",\"Name\":\"n1\",\"Datacenter\":\"dc1\",\"NodePool\":\"gpu\","
         "\"SchedulingEligibility\":\"eligible\",\"Status\":\"ready\"}]"},
        {"GET /v1/node/pool/gpu/jobs", 200, "[" JOB_STUB "]"},
        {"DELETE /v1/node/pool/gpu", 500, "node pool \"gpu\" has nodes in regions: [global]"},
        {"DELETE /v1/node/pool/old", 200, ""},
        {NULL, 0, NULL}});
    check_out("node pool list", 0, "Name  Description\nall   All\ngpu   <none>\n");
    check_out("node pool info gpu", 0,
              "Name              = gpu\nDescription       = Fast\nNode Identity TTL = 24h0m0s\n\n"
              "Metadata\na = 1\nb = 2\n\nScheduler Configuration\n"
              "Scheduler Algorithm             = spread\nMemory Oversubscription Enabled = true\n");
    check_out("node pool info -t {{.Name}} gpu", 0, "gpu\n");
    ck_assert_int_eq(fake_run("node pool info g"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Prefix matched multiple node pools\n\nName   Desc"));
    ck_assert_int_eq(fake_run("node pool nodes x"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "No node pool with prefix \"x\" found"));
    check_out("node pool nodes gpu", 0,
              "ID        Node Pool  DC   Name  Class   Drain  Eligibility  Status\n"
              "cccccccc  gpu        dc1  n1    <none>  false  eligible     ready\n");
    check_out("node pool jobs gpu", 0,
              "ID   Type     Priority  Status   Submit Date\n"
              "web  service  50        running  2026-11-21T11:59:55Z\n");
    check_out("node pool delete old", 0, "Successfully deleted node pool \"old\"!\n");
    ck_assert_int_eq(fake_run("node pool delete gpu"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "Error deleting node pool: "));
}
END_TEST

/* The files that init writes are those that apply takes, in both forms. */
START_TEST(node_pool_files)
{
    auto_mem void *ctx = mem_ctx("test");
    char dir[] = "/tmp/paddock-cli-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    const char *path = mem_printf(ctx, "%s/pool", dir);
    for (int i = 0; i < 2; i++) {
        fake_answers((const struct answer[]){{"PUT /v1/node/pools", 200, ""}, {NULL, 0, NULL}});
        const char *init = mem_printf(ctx, "node pool init %s%s", i == 0 ? "" : "-out json ", path);
        const char *apply = mem_printf(ctx, "node pool apply %s%s", i == 0 ? "" : "-json ", path);
        check_out(init, 0, mem_printf(ctx, "Example node pool specification written to %s\n", path));
        ck_assert_int_eq(fake_run(init), 1);
        ck_assert_ptr_nonnull(strstr(fake_err(), "already exists"));
        check_out(apply, 0, "Successfully applied node pool \"example\"!\n");
        ck_assert_ptr_nonnull(strstr(fake_body(), "\"Meta\":{\"environment\":\"prod\",\"owner\":\"sre\"}"));
        unlink(path);
    }
    FILE *f = fopen(path, "w");
    fputs("node_pool \"a\" {\n  descripton = \"x\"\n}\n", f);
    fclose(f);
    ck_assert_int_eq(fake_run(mem_printf(ctx, "node pool apply %s", path)), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "\"description\""));
    f = fopen(path, "w");
    fputs("node_pool \"a\" {}\nnode_pool \"b\" {}\n", f);
    fclose(f);
    ck_assert_int_eq(fake_run(mem_printf(ctx, "node pool apply %s", path)), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "one node_pool block is wanted, not 2"));
    unlink(path);
    rmdir(dir);
}
END_TEST

START_TEST(namespaces)
{
    fake_answers((const struct answer[]){
        {"GET /v1/namespaces?prefix=dev", 200,
         "[{\"Name\":\"dev\",\"Description\":\"\",\"Meta\":{\"a\":\"1\"},"
         "\"Capabilities\":{\"EnabledTaskDrivers\":[\"exec\","
         "\"docker\"]},\"NodePoolConfiguration\":{\"Default\":\"gpu\","
         "\"Denied\":[\"prod\"]}}]"},
        {"GET /v1/namespaces?prefix=new", 200, "[{\"Name\":\"new-one\"}]"},
        {"GET /v1/namespaces", 200, "[{\"Name\":\"default\",\"Description\":\"All\"},{\"Name\":\"dev\"}]"},
        {"PUT /v1/namespace", 200, ""},
        {"DELETE /v1/namespace/dev", 200, ""},
        {NULL, 0, NULL}});
    check_out("namespace list", 0, "Name     Description\ndefault  All\ndev      <none>\n");
    check_out("namespace status dev", 0,
              "Name                   = dev\nDescription            = <none>\n"
              "Quota                  = <none>\n"
              "Enabled Drivers        = exec,docker\nDisabled Drivers       = <none>\n"
              "Enabled Network Modes  = *\nDisabled Network Modes = <none>\n\nMetadata\na = 1\n\n"
              "Node Pool Configuration\nDefault = gpu\nDenied  = prod\n");
    check_out("namespace inspect -t {{.Name}} dev", 0, "dev\n");
    /* the members that are not named stay as they are */
    check_out("namespace apply -description text dev", 0, "Successfully applied namespace \"dev\"!\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Description\":\"text\""));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Meta\":{\"a\":\"1\"}"));
    check_out("namespace apply new", 0, "Successfully applied namespace \"new\"!\n");
    check_out("namespace delete dev", 0, "Successfully deleted namespace \"dev\"!\n");
}
END_TEST

START_TEST(a_file_of_a_namespace)
{
    char path[] = "/tmp/paddock-cli-XXXXXX";
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    fputs("name = \"dev\"\ncapabilities {\n  disabled_network_modes = [\"host\"]\n}\n"
          "node_pool_config {\n  default = \"gpu\"\n}\nmeta {\n  a = \"1\"\n}\n", f);
    fclose(f);
    fake_answers((const struct answer[]){{"PUT /v1/namespace", 200, ""}, {NULL, 0, NULL}});
    auto_mem char *line = mem_printf(NULL, "namespace apply %s", path);
    check_out(line, 0, "Successfully applied namespace \"dev\"!\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"DisabledNetworkModes\":[\"host\"]"));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Default\":\"gpu\""));
    f = fopen(path, "w");
    fputs("name = \"dev\"\ncapabilites {}\n", f);
    fclose(f);
    ck_assert_int_eq(fake_run(line), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "\"capabilities\""));
    unlink(path);
}
END_TEST

START_TEST(node_meta)
{
    fake_answers((const struct answer[]){
        {"GET /v1/nodes", 200, NODE_LIST},
        {"POST /v1/client/metadata", 200, "{}"},
        {"GET /v1/client/metadata", 200,
         "{\"Meta\":{\"a\":\"1\"},\"Dynamic\":{\"a\":\"1\",\"b\":null},\"Static\":{\"b\":\"2\"}}"},
        {NULL, 0, NULL}});
    check_out("node meta apply -node-id cccc -unset b,c a=1 d==", 0, "");
    ck_assert_str_eq(fake_body(), "{\"NodeID\":\"" NODE_ID
                                  "\",\"Meta\":{\"b\":null,\"c\":null,\"a\":\"1\",\"d\":\"=\"}}");
    check_out("node meta read", 0,
              "\nAll Meta\na = 1\n\nDynamic Meta\na = 1\nb = <unset>\n\nStatic Meta\nb = 2\n");
    check_err("node meta apply", 1, "Name a <key>=<value>, or -unset a key\n");
    check_err("node meta apply =x", 1, "\"=x\" is not <key>=<value>\n");
}
END_TEST

START_TEST(node_identity)
{
    fake_answers((const struct answer[]){
        {"GET /v1/nodes", 200, NODE_LIST},
        {"GET /v1/client/identity?node_id=" NODE_ID, 200,
         "{\"Claims\":{\"sub\":\"node:global:default:x:default\",\"exp\":1795000000,\"n\":7}}"},
        {"POST /v1/client/identity/renew", 200, "{}"},
        {NULL, 0, NULL}});
    check_out("node identity get cccc", 0,
              "\nClaims\nexp = 2026-11-18T11:06:40Z\nn   = 7\n"
              "sub = node:global:default:x:default\n");
    check_out("node identity renew cccc", 0, "");
    ck_assert_str_eq(fake_body(), "{\"NodeID\":\"" NODE_ID "\"}");
}
END_TEST

TEST_SUITE("cli pools", node_pools, node_pool_files, namespaces, a_file_of_a_namespace, node_meta,
           node_identity)
