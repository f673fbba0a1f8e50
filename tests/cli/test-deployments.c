/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands of deployments against recorded answers: as Nomad's, character by character.
 */
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

#define D1 "eeeeeeee-1111-2222-3333-444444444444"
#define D2 "eeeeeeff-1111-2222-3333-444444444444"
#define T "2026-11-21T12:00:00Z"
#define D(id, version, status, text, more)                                                         \
    "{\"ID\":\"" id "\",\"Namespace\":\"default\",\"JobID\":\"web\",\"JobVersion\":" version       \
    ",\"Status\":\"" status "\",\"StatusDescription\":\"" text "\",\"CreateIndex\":1" version      \
    ",\"TaskGroups\":{\"a\":{\"DesiredTotal\":3,\"PlacedAllocs\":2,"                               \
    "\"HealthyAllocs\":1,\"UnhealthyAllocs\":1" more "}}}"
#define OLD D(D1, "1", "successful", "Deployment completed successfully", "")
#define NEW                                                                                        \
    D(D2, "2", "running", "Deployment is running but requires manual promotion",                   \
      ",\"AutoRevert\":true,\"DesiredCanaries\":1,\"ProgressDeadline\":5,\"RequireProgressBy\":"   \
      "\"2026-11-21T12:01:00Z\"")
#define DEPLOYED                                                                                   \
    "\nDeployed\nTask Group  Desired  Placed  Healthy  Unhealthy\n"                                \
    "a           3        2       1        1\n"
#define SHOWN(id, version, status, text)                                                           \
    "ID          = " id "\nJob ID      = web\nJob Version = " version "\nStatus      = " status    \
    "\nDescription = " text "\n" DEPLOYED
#define FIND_JOB                                                                                   \
    {                                                                                              \
        "GET /v1/jobs?prefix=web", 200, "[" JOB_STUB "]"                                           \
    }

START_TEST(lists_and_finds)
{
    fake_answers(
        (const struct answer[]){{"GET /v1/deployments?prefix=eeeeeeff", 200, "[" NEW "]"},
                                {"GET /v1/deployments?prefix=eeee", 200, "[" OLD "," NEW "]"},
                                {"GET /v1/deployments?prefix=ab", 200, "[]"},
                                {"GET /v1/deployments", 200, "[" OLD "," NEW "]"},
                                {"GET /v1/deployment/" D1, 200, OLD},
                                FIND_JOB,
                                {"GET /v1/job/web/deployments", 200, "[]"},
                                {"GET /v1/job/web/deployment", 200, "null"},
                                {NULL, 0, NULL}});
#define TWO                                                                                        \
    "ID        Job ID  Job Version  Status      Description\n"                                     \
    "eeeeeeff  web     2            running     Deployment is running but requires manual "        \
    "promotion\n"                                                                                  \
    "eeeeeeee  web     1            successful  Deployment completed successfully\n"
    check_out("deployment list", 0, TWO);
    check_out("deployment status", 0, TWO);
    check_out("deployment list -t {{range.}}{{.JobVersion}}{{end}}", 0, "21\n");
    check_out("deployment status " D1, 0,
              SHOWN("eeeeeeee", "1", "successful", "Deployment completed successfully"));
    check_out(
        "deployment status eeeeeeff1", 0, /* an odd digit is no part of it */
        "ID          = eeeeeeff\nJob ID      = web\nJob Version = 2\nStatus      = running\n"
        "Description = Deployment is running but requires manual promotion\n\nDeployed\n"
        "Task Group  Auto Revert  Promoted  Desired  Canaries  Placed  Healthy  Unhealthy  "
        "Progress Deadline\n"
        "a           true         false     3        1         2       1        1          "
        "2026-11-21T12:01:00Z\n\n"
        "It waits for promotion. To go on: paddock job promote web; to end it: paddock deployment "
        "fail eeeeeeff\n");
    check_err("deployment status eeee", 1, "Prefix matched multiple deployments\n\n" TWO);
    check_err("deployment status abc", 1,
              "Error retrieving deployment: Deployment ID \"ab\" matched no deployments\n");
    check_err("deployment status a", 1,
              "Error retrieving deployment: Identifier must contain at least two characters.\n");
    check_err("deployment status -monitor -json " D1, 1,
              "The monitor flag cannot be used with the '-json' or '-t' flags\n");
    check_out("job deployments web", 0, "No deployments found\n");
    check_out("job deployments -latest web", 0, "No deployment found\n");
    check_err("job promote web", 1, "Job \"web\" has no deployment to promote\n");
}
END_TEST

#define UPDATE(verb)                                                                               \
    {                                                                                              \
        "PUT /v1/deployment/" verb "/" D1, 200, "{\"EvalID\":\"" EVAL_ID "\"}"                     \
    }

START_TEST(changes)
{
    fake_answers((const struct answer[]){
        {"GET /v1/deployment/" D1, 200, OLD},
        UPDATE("pause"),
        UPDATE("promote"),
        UPDATE("unblock"),
        {"PUT /v1/deployment/fail/" D1, 200, "{\"EvalID\":\"\",\"RevertedJobVersion\":0}"},
        FIND_JOB,
        {"GET /v1/job/web/deployment", 200, OLD},
        {"GET /v1/job/web/versions", 200,
         "{\"Versions\":[{\"ID\":\"web\",\"Version\":7,\"VersionTag\":{\"Name\":\"good\"}}]}"},
        {"PUT /v1/job/web/versions/x/tag", 200, "{}"},
        {"DELETE /v1/job/web/versions/x/tag", 200, "{}"},
        {"PUT /v1/job/web/revert", 200, "{\"EvalID\":\"" EVAL_ID "\"}"},
        {NULL, 0, NULL}});
    check_out("deployment pause " D1, 0, "Deployment \"" D1 "\" paused\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Pause\":true"));
    check_out("deployment resume -detach " D1, 0,
              "Deployment \"" D1 "\" resumed\nEvaluation ID: " EVAL_ID "\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Pause\":false"));
    check_out("deployment unblock -detach " D1, 0,
              "Deployment \"" D1 "\" unblocked\nEvaluation ID: " EVAL_ID "\n");
    check_out("deployment fail " D1, 0,
              "Deployment \"" D1 "\" failed. Auto-reverted to job version 0.\n");
    check_out("deployment promote -detach " D1, 0, "Evaluation ID: " EVAL_ID "\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"All\":true"));
    check_out("job promote -group a -group b -detach web", 0, "Evaluation ID: " EVAL_ID "\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"All\":false,\"Groups\":[\"a\",\"b\"]"));
    check_out("job revert -detach web good", 0, "Evaluation ID: " EVAL_ID "\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"JobVersion\":7"));
    check_out("job tag apply -name x -version 7 -description why web", 0,
              "Job version 7 tagged with name \"x\"\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Version\":7"));
    check_out("job tag unset -name x web", 0, "Tag \"x\" removed from job \"web\"\n");
    check_err("job tag unset web", 1,
              "A version tag name must be specified using the '-name' flag\n");
    check_err("job revert web bad", 1,
              "Error retrieving job versions: version tag bad not found for job web\n");
}
END_TEST

/* To its end, and on with the version that the job goes back to; the exit code is that of the
 * first. */
START_TEST(is_followed)
{
#define FAILED(text) D(D2, "2", "failed", text, ",\"AutoRevert\":true")
#define ROLLING "Failed due to unhealthy allocations - rolling back to job version 1"
    const char *eval = "{\"ID\":\"" EVAL_ID "\",\"JobID\":\"web\",\"Status\":\"complete\","
                       "\"DeploymentID\":\"" D2 "\"}";
    fake_answers(
        (const struct answer[]){FIND_JOB,
                                {"PUT /v1/job/web/evaluate", 200, "{\"EvalID\":\"" EVAL_ID "\"}"},
                                {"GET /v1/evaluation/" EVAL_ID "/allocations", 200, "[]"},
                                {"GET /v1/evaluation/" EVAL_ID, 200, eval},
                                {"GET /v1/deployment/" D2, 200, FAILED(ROLLING)},
                                {"GET /v1/deployment/" D1, 200, OLD},
                                {"GET /v1/job/web/deployment", 200, OLD},
                                {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("job eval web"), 1);
    const char *out = strstr(fake_out(), "    " T ": Evaluation triggered by job \"web\"\n");
    ck_assert_msg(out, "%s", fake_out());
    ck_assert_str_eq(out, "    " T ": Evaluation triggered by job \"web\"\n"
                          "    " T ": Evaluation within deployment: \"eeeeeeff\"\n"
                          "    " T ": Evaluation status changed: \"pending\" -> \"complete\"\n"
                          "==> " T ": Evaluation \"aaaaaaaa\" finished with status \"complete\"\n"
                          "==> " T ": Monitoring deployment \"eeeeeeff\"\n"
                          "    \n" T "\n"
                          "ID          = eeeeeeff\nJob ID      = web\nJob Version = 2\n"
                          "Status      = failed\nDescription = " ROLLING "\n\nDeployed\n"
                          "Task Group  Auto Revert  Desired  Placed  Healthy  Unhealthy\n"
                          "a           true         3        2       1        1\n"
                          "\n    \n" T "\n" SHOWN("eeeeeeee", "1", "successful",
                                                  "Deployment completed successfully"));
    check_out("deployment status -monitor " D1, 0,
              T ": Monitoring deployment \"eeeeeeee\"\n\n" T
                "\n" SHOWN("eeeeeeee", "1", "successful", "Deployment completed successfully"));
}
END_TEST

START_TEST(what_waits_says_which_command_ends_it)
{
    fake_answers((const struct answer[]){
        {"GET /v1/deployment/" D1, 200, D(D1, "1", "paused", "Deployment is paused", "")},
        {"GET /v1/deployment/" D2, 200, D(D2, "2", "running", "Deployment is running", "")},
        {"GET /v1/job/web/evaluations", 200, "[{\"ID\":\"x\",\"Status\":\"blocked\"}]"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("deployment status " D1), 0);
    ck_assert_ptr_nonnull(
        strstr(fake_out(), "\nIt is paused. To go on: paddock deployment resume eeeeeeee\n"));
    ck_assert_int_eq(fake_run("deployment status " D2), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(),
                                 "\nIt waits for capacity; whoever watches it may leave (Ctrl-C). "
                                 "Why: paddock job explain web\n"));
}
END_TEST

/* Nothing is told of a task that was told to end; of one that runs again only who watches hears. */
START_TEST(why_tasks_do_not_come_up)
{
#define STATE(id, desired, state, events)                                                          \
    "{\"ID\":\"" id "\",\"DesiredStatus\":\"" desired                                              \
    "\",\"ClientStatus\":\"pending\",\"TaskStates\":{"                                             \
    "\"t\":{\"State\":\"" state "\",\"Events\":[" events "]}}}"
#define CRASH                                                                                      \
    "{\"Type\":\"Started\"},{\"Type\":\"Terminated\",\"ExitCode\":7,\"DisplayMessage\":\"Exit "    \
    "Code: 7\"},"                                                                                  \
    "{\"Type\":\"Restarting\",\"DisplayMessage\":\"Task restarting in 15s\"}"
    const char *allocs =
        "[" STATE("bbbbbbbb-1", "run", "pending", CRASH) "," STATE(
            "cccccccc-1", "stop", "dead",
            CRASH) "," STATE("dddddddd-1", "run", "running",
                             CRASH
                             ",{\"Type\":\"Started\"}") "," STATE("eeeeeeee-1", "run", "dead",
                                                                  "{\"Type\":\"Killing\"},{"
                                                                  "\"Type\":\"Terminated\","
                                                                  "\"Signal\":9}") "," STATE("fffff"
                                                                                             "fff-"
                                                                                             "1",
                                                                                             "run",
                                                                                             "dead",
                                                                                             "{\"Ty"
                                                                                             "pe\":"
                                                                                             "\"Dri"
                                                                                             "ver "
                                                                                             "Failu"
                                                                                             "re\","
                                                                                             "\"Dis"
                                                                                             "playM"
                                                                                             "essag"
                                                                                             "e\":"
                                                                                             "\"no "
                                                                                             "such "
                                                                                             "file"
                                                                                             "\"}") "]";
    fake_answers((const struct answer[]){
        {"GET /v1/deployment/allocations/" D2, 200, allocs},
        {"GET /v1/client/fs/logs/bbbbbbbb-1?task=t&type=stderr", 200,
         "one\n2\n3\n4\n5\n\033[1msix"},
        {"GET /v1/deployment/" D2, 200, D(D2, "2", "running", "Deployment is running", "")},
        FIND_JOB,
        {"GET /v1/job/web/evaluations", 200, "[]"},
        {"GET /v1/job/web/allocations", 200, allocs},
        {"GET /v1/job/web/summary", 200, "{}"},
        {"GET /v1/job/web/deployment", 200, "null"},
        {"GET /v1/job/web", 200, "{\"ID\":\"web\"}"},
        {NULL, 0, NULL}});
    static const char told[] =
        "\nFailures\n"
        "Allocation \"bbbbbbbb\" does not stay up: task \"t\": Terminated: Exit Code: 7\n"
        "  the last lines of its stderr:\n"
        "    2\n    3\n    4\n    5\n    ?[1msix\n"
        "  Restarting: Task restarting in 15s\n"
        "  more: paddock alloc why bbbbbbbb\n";
    static const char missing[] =
        "Allocation \"ffffffff\" does not stay up: task \"t\": Driver Failure: no such "
        "file\n  more: paddock alloc why ffffffff\n";
    static const char again[] = "Allocation \"dddddddd\" does not stay up";
    static const char *const commands_of[] = {"deployment status " D2, "job status web"};
    for (size_t i = 0; i < ARRAY_LEN(commands_of); i++) {
        ck_assert_int_eq(fake_run(commands_of[i]), 0);
        ck_assert_msg(strstr(fake_out(), told) != NULL, "%s", fake_out());
        ck_assert_ptr_nonnull(strstr(fake_out(), missing));
        ck_assert_int_eq(strstr(fake_out(), again) != NULL, i == 0);
        ck_assert_ptr_null(strstr(fake_out(), "Allocation \"cccccccc\""));
        ck_assert_ptr_null(strstr(fake_out(), "Allocation \"eeeeeeee\""));
    }
}
END_TEST

START_TEST(is_part_of_the_job)
{
    fake_answers((const struct answer[]){FIND_JOB,
                                         {"GET /v1/job/web/evaluations", 200, "[]"},
                                         {"GET /v1/job/web/allocations", 200, "[]"},
                                         {"GET /v1/job/web/summary", 200, "{}"},
                                         {"GET /v1/job/web/deployment", 200, OLD},
                                         {"GET /v1/job/web", 200, "{\"ID\":\"web\"}"},
                                         {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("job status web"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(),
                                 "\nLatest Deployment\nID          = eeeeeeee\n"
                                 "Status      = successful\n"
                                 "Description = Deployment completed successfully\n" DEPLOYED
                                 "\nAllocations\nNo allocations placed\n"));
}
END_TEST

START_TEST(checks_of_an_allocation)
{
    fake_answers((const struct answer[]){
        {"GET /v1/allocations", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/allocation/" ALLOC_ID, 200, ALLOC},
        {"GET /v1/client/allocation/" ALLOC_ID "/checks", 200,
         "{\"c1\":{\"ID\":\"c1\",\"Check\":\"up\",\"Group\":\"web.a[0]\",\"Mode\":\"healthiness\","
         "\"Output\":\"nomad: http ok\",\"Service\":\"s\",\"Status\":\"success\","
         "\"StatusCode\":200,\"Task\":\"\",\"Timestamp\":1795262395}}"},
        {NULL, 0, NULL}});
    check_out("alloc checks bbbbbbbb", 0,
              "Status of 1 Nomad Service Checks\n\n"
              "ID          =  c1\nName        =  up\nGroup       =  web.a[0]\n"
              "Task        =  (group)\nService     =  s\nStatus      =  success\n"
              "StatusCode  =  200\nMode        =  healthiness\n"
              "Timestamp   =  2026-11-21T11:59:55Z\nOutput      =  nomad: http ok\n\n");
}
END_TEST

TEST_SUITE("deployments", lists_and_finds, changes, is_followed,
           what_waits_says_which_command_ends_it, why_tasks_do_not_come_up, is_part_of_the_job,
           checks_of_an_allocation)
