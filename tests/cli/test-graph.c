/* SPDX-License-Identifier: Apache-2.0
 *
 * Pictures of text: node status -map, job graph. It is 2026-11-21T12:00:00Z.
 */
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

#define N(id, dc, more)                                                                            \
    "{\"ID\":\"" id "\",\"Name\":\"n" id "\",\"Datacenter\":\"" dc "\","                           \
    "\"NodeResources\":{\"Memory\":{\"MemoryMB\":1100}},"                                          \
    "\"ReservedResources\":{\"Memory\":{\"MemoryMB\":100}}," more "}"
#define READY "\"Status\":\"ready\""
#define A(node, memory)                                                                            \
    "{\"ID\":\"" ALLOC_ID "\",\"NodeID\":\"" node "\",\"AllocatedResources\":{\"Tasks\":{\"t\":"   \
    "{\"Memory\":{\"MemoryMB\":" memory "}}}}}"

START_TEST(a_map_has_a_character_for_each_node)
{
    fake_answers((struct answer[]){
        {"GET /v1/nodes?resources=true", 200,
         "[" N("6", "dc2", "\"Status\":\"down\"") "," N("1", "dc1", READY) "," N(
             "2", "dc1",
             READY) "," N("3", "dc1",
                          READY ",\"Drain\":true") "," N("5", "dc1",
                                                         READY) "," N("4", "dc1",
                                                                      READY
                                                                      ",\"SchedulingEligibility\":"
                                                                      "\"ineligible\"") "]"},
        {"GET /v1/allocations", 200,
         "[" A("1", "200") "," A("1", "49") "," A("2", "250") "," A("5", "900") "," A("none",
                                                                                      "1") "]"},
        {NULL, 0, NULL}});
    check_out("node status -map", 0,
              "dc1              .-/o@\ndc2              X\n\n. below 25 % of its memory allocated, "
              "- 50, = "
              "75, # 90, @ full; X down, / draining, o not eligible\n");
    fake_answers((struct answer[]){
        {"GET /v1/nodes", 200, "[]"}, {"GET /v1/allocations", 403, "no"}, {NULL, 0, NULL}});
    check_out("node status -map", 0, "No nodes\n");
    ck_assert_ptr_nonnull(strstr(fake_err(), "all nodes look empty"));
}
END_TEST

#define R(status, created, started, finished)                                                      \
    "{\"ID\":\"" ALLOC_ID "\",\"JobID\":\"web\",\"ClientStatus\":\"" status                        \
    "\",\"CreateTime\":" created                                                                   \
    "000000000,\"ModifyTime\":1795262400000000000,\"TaskStates\":{\"t\":{" started finished "}}}"
#define AT(name, time) "\"" name "\":\"2026-11-21T" time "Z\""

START_TEST(a_graph_has_a_column_for_each_minute)
{
    fake_answers((struct answer[]){
        {"GET /v1/jobs", 200, "[" JOB_STUB "]"},
        {"GET /v1/job/web/allocations", 200,
         "[" R("running", "1795261200", AT("StartedAt", "11:42:30"),
               "") "," R("failed", "1795260600", AT("StartedAt", "11:30:10") ",",
                         AT("FinishedAt", "11:49:00")) "," R("complete", "1795250000",
                                                             AT("StartedAt", "09:00:00") ",",
                                                             AT("FinishedAt", "10:00:00")) "]"},
        {NULL, 0, NULL}});
    check_out("job graph web", 0,
              "web: allocations in each minute of the last hour; # running, + starting\n\n"
              "     2 |                                        ++########          |\n"
              "     1 |                              ##############################|\n"
              "failed |-------------------------------------------------1----------|\n"
              "        60 min ago                                               now\n");
    ck_assert_int_eq(fake_run("job graph"), 1);
}
END_TEST

TEST_SUITE("graph", a_map_has_a_character_for_each_node, a_graph_has_a_column_for_each_minute)
