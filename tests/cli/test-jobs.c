/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of jobs, evaluations and operators against recorded answers: as Nomad's, character by
 * character.
 */
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

#define FIND_JOB                                                                                   \
    {                                                                                              \
        "GET /v1/jobs?prefix=web", 200, "[" JOB_STUB "]"                                           \
    }
#define LATER "dddddddd-1111-2222-3333-444444444444"
#define T "2026-11-21T12:00:00Z: "
#define COMPLETE(id)                                                                               \
    {                                                                                              \
        "GET /v1/evaluation/" id, 200,                                                             \
            "{\"ID\":\"" id "\",\"JobID\":\"web\",\"Status\":\"complete\"}"                        \
    }

START_TEST(status_as_json_is_a_list_of_parts)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/jobs", 200, "[" JOB_STUB "]"},
        {"GET /v1/job/web/evaluations", 200, "[{\"ID\":\"e1\"},{\"ID\":\"e2\"}]"},
        {"GET /v1/job/web/allocations", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/job/web/summary", 200, "{\"JobID\":\"web\"}"},
        {"GET /v1/job/web/deployment", 200, "null"},
        {NULL, 0, NULL}});
    check_out("job status -t "
              "{{range\t.}}{{.Evaluations|len}}-{{if\t.LatestDeployment}}y{{else}}n{{end}}-{{."
              "Summary.JobID}}{{end}} web",
              0, "2-n-web\n");
    check_out("job status -t {{range.}}{{.Allocations|len}}{{end}}", 0, "1\n");
    ck_assert_int_eq(fake_run("job status -json web"), 0);
    ck_assert_ptr_eq(strstr(fake_out(), "[\n    {\n        \"Allocations\": [\n"), fake_out());
}
END_TEST

/* A job that failed and waits looks dead without it. */
START_TEST(a_job_that_waits_for_its_next_place)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/job/web/evaluations", 200,
         "[{\"ID\":\"old\",\"CreateIndex\":1},{\"ID\":\"new\",\"CreateIndex\":9}]"},
        {"GET /v1/job/web/allocations", 200,
         "[{\"ID\":\"" ALLOC_ID
         "\",\"TaskGroup\":\"a\",\"ModifyTime\":5,\"FollowupEvalID\":\"" LATER
         "\"},{\"ID\":\"x\",\"TaskGroup\":\"a\",\"ModifyTime\":4,\"FollowupEvalID\":\"gone\"}]"},
        {"GET /v1/job/web/summary", 200, "{}"},
        {"GET /v1/evaluation/" LATER, 200,
         "{\"ID\":\"" LATER "\",\"WaitUntil\":\"2026-11-21T12:01:25Z\"}"},
        {"GET /v1/job/web", 200, "{\"ID\":\"web\"}"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("job status -evals web"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "\nFuture Rescheduling Attempts\n"
                                             "Task Group  Eval ID   Eval Time\n"
                                             "a           dddddddd  1m25s from now\n"));
    ck_assert(strstr(fake_out(), "\nnew ") < strstr(fake_out(), "\nold ")); /* newest first */
}
END_TEST

START_TEST(history_and_allocs)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/job/web/allocations", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/job/web/versions?diffs=true", 200,
         "{\"Versions\":[{\"ID\":\"web\"},{\"ID\":\"web\"}]}"},
        {"GET /v1/job/web/versions", 200,
         "{\"Versions\":[{\"ID\":\"web\",\"Version\":1,\"Stable\":true,\"SubmitTime\":"
         "1795262395000000000},{\"ID\":\"web\",\"Version\":0,\"SubmitTime\":1795262395000000000}]"
         "}"},
        {NULL, 0, NULL}});
#define V(n, stable)                                                                               \
    "Version     = " n "\nStable      = " stable "\nSubmit Date = 2026-11-21T11:59:55Z\n"
    check_out("job history web", 0, V("1", "true") "\n" V("0", "false"));
    check_out("job history -version 0 web", 0, V("0", "false"));
    check_out("job history -t {{range.}}{{.Version}}{{end}} web", 0, "10\n");
    check_err("job history -version 7 web", 1,
              "Error printing job history for non-existing job or job version\n");
    check_err("job history -json -p web", 1, "-json and -t are exclusive with -p and -full\n");
    check_err("job history -diff-version 1 web", 1,
              "-diff-tag and -diff-version can only be used with -p\n");
    ck_assert_int_eq(fake_run("job history -p web"), 1); /* no difference is not said to be none */
    check_out("job allocs web", 0,
              "ID        Node ID   Task Group  Version  Desired  Status   Created    Modified\n"
              "bbbbbbbb  cccccccc  a           3        run      running  3m20s ago  5s ago\n");
}
END_TEST

START_TEST(eval_and_start)
{
    fake_answers(
        (const struct answer[]){FIND_JOB,
                                {"PUT /v1/job/web/evaluate", 200, "{\"EvalID\":\"" EVAL_ID "\"}"},
                                {"PUT /v1/jobs", 200, "{\"EvalID\":\"" EVAL_ID "\"}"},
                                {"GET /v1/evaluation/" EVAL_ID "/allocations", 200, "[]"},
                                COMPLETE(EVAL_ID),
                                {"GET /v1/job/web", 200, "{\"ID\":\"web\",\"Stop\":true}"},
                                {NULL, 0, NULL}});
    check_out("job eval -detach web", 0, "Created eval ID: \"aaaaaaaa\"\n");
    ck_assert_int_eq(fake_run("job eval -force-reschedule web"), 0);
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"ForceReschedule\":true"));
    check_out("job start -detach web", 0, "Job start successful\nEvaluation ID: " EVAL_ID "\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Stop\":false"));
    fake_answers((const struct answer[]){
        FIND_JOB, {"GET /v1/job/web", 200, "{\"ID\":\"web\"}"}, {NULL, 0, NULL}});
    check_err("job start web", 1, "Job \"web\" has not been stopped\n");
}
END_TEST

START_TEST(restart_in_batches)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/job/web/allocations", 200,
         "[" ALLOC_STUB ",{\"ID\":\"ended\",\"ClientStatus\":\"complete\"},{\"ID\":\"" LATER
         "\",\"TaskGroup\":\"a\",\"ClientStatus\":\"running\"}]"},
        {"PUT /v1/client/allocation/" LATER, 500, "unknown"},
        {"PUT /v1/client/allocation/" ALLOC_ID "/restart", 200, "null"},
        {NULL, 0, NULL}});
    check_out("job restart -on-error fail -yes web", 1,
              "==> " T "Restarting 2 allocations\n"
              "    " T "Restarting running tasks in allocation \"bbbbbbbb\" for group \"a\"\n"
              "    " T "Restarting running tasks in allocation \"dddddddd\" for group \"a\"\n"
              "==> " T "Job restart finished with errors\n");
    check_err("job restart -yes -batch-size 0 web", 1,
              "Invalid -batch-size value \"0\": want a number above 0, or a percentage\n");
    check_err("job restart -yes -on-error x web", 1,
              "Invalid -on-error value \"x\": want ask or fail\n");
    check_err("job restart -yes -task t -reschedule web", 1,
              "The -reschedule option cannot be used with -task\n");
    check_out("job restart -yes -group b web", 0, "No allocations to restart\n");
}
END_TEST

START_TEST(restart_leaves_out_what_is_told_to_stop)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/job/web/allocations", 200,
         "[{\"ID\":\"" LATER "\",\"TaskGroup\":\"a\",\"ClientStatus\":\"running\","
         "\"DesiredStatus\":\"stop\"},{\"ID\":\"" LATER "\",\"TaskGroup\":\"a\","
         "\"ClientStatus\":\"running\",\"DesiredStatus\":\"evict\"}]"},
        {NULL, 0, NULL}});
    check_out("job restart -yes web", 0, "No allocations to restart\n");
}
END_TEST

START_TEST(restart_by_new_allocations)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/job/web/allocations", 200, "[" ALLOC_STUB "]"},
        {"PUT /v1/allocation/" ALLOC_ID "/stop", 200, "{\"EvalID\":\"" EVAL_ID "\"}"},
        COMPLETE(EVAL_ID),
        {"GET /v1/allocation/" ALLOC_ID, 200,
         "{\"ID\":\"" ALLOC_ID "\",\"NextAllocation\":\"" LATER "\"}"},
        {"GET /v1/allocation/" LATER, 200, "{\"ID\":\"" LATER "\",\"ClientStatus\":\"running\"}"},
        {NULL, 0, NULL}});
    check_out("job restart -yes -reschedule web", 0,
              "==> " T "Restarting 1 allocation\n"
              "    " T "Rescheduling allocation \"bbbbbbbb\" for group \"a\"\n"
              "    " T
              "Allocation \"bbbbbbbb\" replaced by \"dddddddd\", waiting for \"dddddddd\" to "
              "start running\n"
              "    " T "Allocation \"dddddddd\" is \"running\"\n"
              "==> " T "Job restart finished\n\nJob restarted successfully!\n");
}
END_TEST

START_TEST(evaluations)
{
    fake_answers((const struct answer[]){
        {"GET /v1/evaluations?prefix=", 200, "[{\"ID\":\"" EVAL_ID "\"}]"},
        {"GET /v1/evaluations?", 200,
         "[{\"ID\":\"" EVAL_ID
         "\",\"Namespace\":\"default\",\"JobID\":\"web\",\"Status\":\"complete\"}]"},
        {"GET /v1/evaluation/" EVAL_ID "/allocations", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/evaluation/" EVAL_ID, 200,
         "{\"ID\":\"" EVAL_ID "\",\"Status\":\"complete\",\"Type\":\"service\",\"JobID\":\"web\","
         "\"TriggeredBy\":\"job-register\",\"Priority\":50,\"Namespace\":\"default\","
         "\"CreateTime\":"
         "1795262395000000000,\"ModifyTime\":1795262395000000000,\"BlockedEval\":\"" LATER "\","
         "\"PlanAnnotations\":{\"DesiredTGUpdates\":{\"a\":{\"Place\":2,\"Canary\":1}}},"
         "\"RelatedEvals\":[{\"ID\":\"" LATER
         "\",\"Priority\":50,\"TriggeredBy\":\"queued-allocs\","
         "\"Status\":\"blocked\"}]}"},
        {NULL, 0, NULL}});
    check_out("eval status aaaa", 0,
              "ID                 = aaaaaaaa\n"
              "Create Time        = 5s ago\n"
              "Modify Time        = 5s ago\n"
              "Status             = complete\n"
              "Status Description = complete\n"
              "Type               = service\n"
              "TriggeredBy        = job-register\n"
              "Job ID             = web\n"
              "Namespace          = default\n"
              "Priority           = 50\n"
              "Placement Failures = false\n"
              "Previous Eval      = <none>\n"
              "Next Eval          = <none>\n"
              "Blocked Eval       = dddddddd\n"
              "\nRelated Evaluations\n"
              "ID        Priority  Triggered By   Node ID  Status   Description\n"
              "dddddddd  50        queued-allocs  <none>   blocked  <none>\n"
              "\nPlan Annotations\n"
              "Task Group  Ignore  Place  Stop  InPlace  Destructive  Canary\n"
              "a           0       2      0     0        0            1\n"
              "\nPlaced Allocations\n"
              "ID        Node ID   Task Group  Version  Desired  Status   Created    Modified\n"
              "bbbbbbbb  cccccccc  a           3        run      running  3m20s ago  5s ago\n");
    ck_assert_int_eq(fake_run("eval list"), 0);
    ck_assert_ptr_eq(
        strstr(fake_out(), "ID        Priority  Triggered By  Job ID  Namespace  Node ID"),
        fake_out());
}
END_TEST

START_TEST(operators)
{
    fake_answers((const struct answer[]){
        {"GET /v1/operator/scheduler/configuration", 200,
         "{\"SchedulerConfig\":{\"SchedulerAlgorithm\":\"binpack\",\"ModifyIndex\":7,"
         "\"NodeLimitForFeasibilityChecks\":100,\"PreemptionConfig\":{\"SystemSchedulerEnabled\":"
         "true}}}"},
        {"PUT /v1/operator/scheduler/configuration?cas=7", 200, "{\"Updated\":true}"},
        {"GET /v1/jobs?filter=x&region=y", 200, "[1]"},
        {"GET /v1/agent/servers", 200, "[\"10.0.0.1:4647\"]"},
        {"PUT /v1/agent/servers?address=10.0.0.1&address=%5B%3A%3A1%5D%3A4647", 200, "{}"},
        {"GET /v1/nope", 404, "no such path"},
        {NULL, 0, NULL}});
    check_out("operator scheduler get-config", 0,
              "Scheduler Algorithm               = binpack\n"
              "Memory Oversubscription           = false\n"
              "Reject Job Registration           = false\n"
              "Pause Eval Broker                 = false\n"
              "Preemption System Scheduler       = true\n"
              "Preemption Service Scheduler      = false\n"
              "Preemption Batch Scheduler        = false\n"
              "Preemption SysBatch Scheduler     = false\n"
              "Node Limit For Feasibility Checks = 100\n"
              "Modify Index                      = 7\n");
    check_out(
        "operator scheduler set-config -memory-oversubscription=true -preempt-batch-scheduler true",
        0, "Scheduler configuration updated!\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"MemoryOversubscriptionEnabled\":true"));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"SystemSchedulerEnabled\":true"));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"BatchSchedulerEnabled\":true"));
    check_err(
        "operator scheduler set-config -check-index 3", 1,
        "Error performing check index set: check-index 3 does not match current state value 7\n");
    check_err("operator scheduler set-config -pause-eval-broker=x", 1,
              "-pause-eval-broker is true or false, not \"x\"\n");
    check_out("operator api -X GET -filter x -region y /v1/jobs", 0, "[1]");
    check_out("operator api -X GET http://10.0.0.1:4646/v1/nope", 0, "no such path"); /* as Nomad */
    check_err("operator api -fail -X GET /v1/nope", 1, "404: no such path\n");
    check_out("operator api -dryrun -X PUT -H a:b -token t /v1/x", 0,
              "curl \\\n  -X PUT \\\n  -H \"X-Nomad-Token: ${NOMAD_TOKEN}\" \\\n  -H 'a: b' \\\n"
              "  'http://127.0.0.1:4646/v1/x'\n");
    check_out("node config -servers", 0, "10.0.0.1:4647\n");
    check_out("node config -update-servers 10.0.0.1 [::1]:4647", 0, "Updated server list\n");
}
END_TEST

START_TEST(an_explanation_is_one_line_per_reason)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/job/web/explain?group=a", 200,
         "{\"JobID\":\"web\",\"Groups\":[{\"Name\":\"a\",\"Nodes\":4,\"Reasons\":[{\"Reason\":\"has room\","
         "\"Fits\":true,\"Count\":1,\"Nodes\":[{\"ID\":\"" NODE_ID "\",\"Name\":\"n1\",\"Score\":0.5}]},"
         "{\"Reason\":\"memory exhausted\",\"Count\":3,\"Nodes\":[{\"ID\":\"" NODE_ID
         "\",\"Name\":\"n2\",\"Detail\":\"wants 9 MiB, 1 of 8 are free\"}]}]}]}"},
        {NULL, 0, NULL}});
    check_out("job explain -group a web", 0,
              "Task Group \"a\": one more allocation on 4 nodes\n"
              "  has room: 1 node\n"
              "    cccccccc  n1  score 0.500\n"
              "  memory exhausted: 3 nodes\n"
              "    cccccccc  n2  wants 9 MiB, 1 of 8 are free\n"
              "    and 2 more\n");
}
END_TEST

START_TEST(a_missing_driver_is_named_with_the_nodes_reason)
{
    fake_answers((const struct answer[]){
        FIND_JOB,
        {"GET /v1/job/web/explain", 200,
         "{\"Groups\":[{\"Name\":\"a\",\"Nodes\":1,\"Reasons\":[{\"Reason\":\"missing "
         "drivers\",\"Count\":1,"
         "\"Nodes\":[{\"ID\":\"" NODE_ID
         "\",\"Name\":\"n1\",\"Detail\":\"driver \\\"java\\\": there is no java in PATH\"}]}]}]}"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("job explain web"), 0);
    ck_assert_msg(strstr(fake_out(), "cccccccc  n1  driver \"java\": there is no java in PATH\n") !=
                      NULL,
                  "%s", fake_out());
}
END_TEST

START_TEST(evaluations_are_deleted_by_id_or_filter)
{
    fake_answers((const struct answer[]){
        {"GET /v1/evaluations/count?filter=JobID", 200, "{\"Count\":7}"},
        {"GET /v1/evaluations?prefix=aa", 200, "[{\"ID\":\"" EVAL_ID "\"}]"},
        {"DELETE /v1/evaluations", 200, "{\"Count\":1,\"Index\":9}"},
        {NULL, 0, NULL}});
    check_out("eval delete aaaa", 0, "Successfully deleted 1 evaluation\n");
    ck_assert_str_eq(fake_body(), "{\"EvalIDs\":[\"" EVAL_ID "\"],\"Filter\":\"\",\"Skip\":false}");
    check_out("eval delete -yes -filter JobID==web", 0, "Successfully deleted 1 evaluation\n");
    ck_assert_str_eq(fake_body(), "{\"EvalIDs\":null,\"Filter\":\"JobID==web\",\"Skip\":false}");
    check_out("eval delete -filter JobID==web", 0, "Successfully deleted 1 evaluation\n");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "GET /v1/evaluations/count?filter=JobID%3D%3Dweb\n"));
    check_err("eval delete", 1,
              "Error validating command args and flags: evaluation ID or filter flag required\n");
    check_err("eval delete -filter x aaaa", 1,
              "Error validating command args and flags: evaluation ID or filter flag required\n");
    fake_answers((const struct answer[]){
        {"GET /v1/evaluations?prefix=aa", 200, "[{\"ID\":\"" EVAL_ID "\"}]"},
        {"DELETE /v1/evaluations", 409, "eval broker is enabled"},
        {NULL, 0, NULL}});
    check_err("eval delete aaaa", 1,
              "Error deleting evaluations: Unexpected response code: 409 (eval broker is enabled)\n");
}
END_TEST

START_TEST(where_nomad_has_its_pages)
{
    fake_answers((const struct answer[]){
        {"GET /v1/jobs?prefix=we", 200, "[{\"ID\":\"we b\"}]"},
        {"GET /v1/jobs?prefix=w", 200, "[{\"ID\":\"w/1\"},{\"ID\":\"w2\"}]"},
        {"GET /v1/jobs", 200, "[]"},
        {"GET /v1/allocations?prefix=bb", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/nodes?prefix=cc", 200, "[{\"ID\":\"" NODE_ID "\"}]"},
        {"GET /v1/", 200, "[]"},
        {NULL, 0, NULL}});
    check_out("ui -show-url -address http://h:1", 0, "URL for web UI: http://h:1\n");
    check_out("ui -show-url -address http://h:1 -namespace x -region=y", 0,
              "URL for web UI: http://h:1?namespace=x&region=y\n");
    check_out("ui -show-url -address http://h:1 we", 0, "URL for web UI: http://h:1/ui/jobs/we%20b\n");
    check_out("ui -show-url -address http://h:1 -namespace n w/1", 0,
              "URL for web UI: http://h:1/ui/jobs/w/1@n?namespace=n\n");
    check_out("ui -show-url -address http://h:1 bbbb", 0,
              "URL for web UI: http://h:1/ui/allocations/" ALLOC_ID "\n");
    check_out("ui -show-url -address http://h:1 cccc", 0,
              "URL for web UI: http://h:1/ui/clients/" NODE_ID "\n");
    check_err("ui -show-url w", 1, "Multiple matches found for id \"w\": 2 jobs\n");
    check_err("ui -show-url none", 1, "No matches found for id \"none\"\n");
    check_out("ui -address http://h:1", 0, "URL for web UI: http://h:1\n");
}
END_TEST

/* The command tells what the allocation died of, what comes next, and where its job can be. */
START_TEST(alloc_why_tells_death_and_placement)
{
    fake_answers((const struct answer[]){
        {"GET /v1/allocations?prefix=bbbbbbbb", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/allocation/" ALLOC_ID, 200,
         "{\"ID\":\"" ALLOC_ID
         "\",\"JobID\":\"web\",\"TaskGroup\":\"a\",\"ClientStatus\":\"failed\",\"NodeName\":"
         "\"vm\",\"FollowupEvalID\":\"ffff\",\"Job\":{\"TaskGroups\":[{\"Name\":\"a\",\"Tasks\":[{"
         "\"Name\":\"t\","
         "\"RestartPolicy\":{\"Attempts\":3,\"Interval\":600000000000,\"Mode\":\"fail\"}}]}]},"
         "\"TaskStates\":{\"t\":{\"State\":\"pending\",\"Restarts\":1,\"Events\":["
         "{\"Type\":\"Started\"},{\"Type\":\"Denied System Call\",\"DisplayMessage\":\"Denied "
         "system calls: "
         "mount\"},{\"Type\":\"Terminated\",\"Time\":1795262395000000000,\"Signal\":9,"
         "\"DisplayMessage\":"
         "\"OOM Killed\"},"
         "{\"Type\":\"Restarting\",\"Time\":1795262395000000000,\"DisplayMessage\":\"Task "
         "restarting\"}]}}}"},
        {"GET /v1/client/fs/logs/" ALLOC_ID "?task=t&type=stdout", 200, "hello\n"},
        {"GET /v1/evaluation/ffff", 200,
         "{\"ID\":\"ffff\",\"WaitUntil\":\"2026-11-21T12:00:25Z\"}"},
        {"GET /v1/job/web/explain", 200, "{\"Groups\":[{\"Name\":\"a\",\"Nodes\":1}]}"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("alloc why bbbbbbbb"), 0);
    static const char want[] = "\nTask \"t\" is pending, 1 restart\n"
                               "  Denied System Call: Denied system calls: mount\n"
                               "  Terminated, 5s ago: OOM Killed\n"
                               "  the last lines of its stdout:\n    hello\n"
                               "  Restarting, 5s ago: Task restarting\n"
                               "  restarts left: 2 of 3 in 10m0s, then the allocation fails\n"
                               "\nIt is placed anew 25s from now\n";
    ck_assert_msg(strstr(fake_out(), want) != NULL, "%s%s", fake_out(), fake_err());
    ck_assert_ptr_nonnull(strstr(fake_out(), "Task Group \"a\": one more allocation on"));
}
END_TEST

TEST_SUITE("cli jobs", an_explanation_is_one_line_per_reason, status_as_json_is_a_list_of_parts,
           a_job_that_waits_for_its_next_place, history_and_allocs, eval_and_start,
           restart_in_batches, restart_by_new_allocations, restart_leaves_out_what_is_told_to_stop,
           evaluations, operators, alloc_why_tells_death_and_placement,
           a_missing_driver_is_named_with_the_nodes_reason,
           evaluations_are_deleted_by_id_or_filter, where_nomad_has_its_pages)
