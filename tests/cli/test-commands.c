/* SPDX-License-Identifier: Apache-2.0
 *
 * What the commands print and return, against recorded answers.
 */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/escape.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

START_TEST(job_list)
{
    fake_answers((const struct answer[]){{"GET /v1/jobs", 200, "[" JOB_STUB "]"}, {NULL, 0, NULL}});
    check_out("job status", 0,
              "ID   Type     Priority  Status   Submit Date\n"
              "web  service  50        running  2026-11-21T11:59:55Z\n");
    check_out("status", 0,
              "ID   Type     Priority  Status   Submit Date\n"
              "web  service  50        running  2026-11-21T11:59:55Z\n");
    fake_run("job status -namespace x -region y");
    ck_assert_str_eq(fake_asked(), "GET /v1/jobs?region=y&namespace=x\n");
    fake_answers((const struct answer[]){{"GET /v1/jobs", 200, "[]"}, {NULL, 0, NULL}});
    check_out("job status", 0, "No running jobs\n");
}
END_TEST

START_TEST(job_single)
{
    fake_answers((const struct answer[]){
        {"GET /v1/jobs?prefix=web", 200, "[" JOB_STUB "]"},
        {"GET /v1/job/web/evaluations", 200,
         "[{\"ID\":\"" EVAL_ID "\",\"Status\":\"complete\",\"CreateIndex\":4,\"FailedTGAllocs\":"
         "{\"a\":{\"NodesEvaluated\":2,\"ConstraintFiltered\":{\"${attr.x} = 1\":2},"
         "\"DriversMissing\":{\"driver \\\"java\\\": none in "
         "PATH\":1}}}},"
         "{\"ID\":\"dddd\",\"Status\":\"blocked\"}]"},
        {"GET /v1/job/web/allocations", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/job/web/summary", 200,
         "{\"Summary\":{\"a\":{\"Queued\":1,\"Running\":1}}}"},
        {"GET /v1/job/web/deployment", 200, "null"},
        {"GET /v1/job/web", 200,
         "{\"ID\":\"web\",\"Name\":\"web\",\"Type\":\"service\",\"Priority\":50,\"Datacenters\":"
         "[\"dc1\",\"dc2\"],\"Namespace\":\"default\",\"NodePool\":\"default\",\"Status\":"
         "\"running\",\"SubmitTime\":1795262395000000000}"},
        {NULL, 0, NULL}});
    check_out("job status web", 0,
              "ID            = web\n"
              "Name          = web\n"
              "Submit Date   = 2026-11-21T11:59:55Z\n"
              "Type          = service\n"
              "Priority      = 50\n"
              "Datacenters   = dc1,dc2\n"
              "Namespace     = default\n"
              "Node Pool     = default\n"
              "Status        = running\n"
              "Periodic      = false\n"
              "Parameterized = false\n"
              "\nSummary\n"
              "Task Group  Queued  Starting  Running  Failed  Complete  Lost  Unknown\n"
              "a           1       0         1        0       0         0     0\n"
              "\nPlacement Failure\n"
              "Task Group \"a\":\n"
              "  * Constraint \"${attr.x} = 1\": 2 nodes excluded by filter\n"
              "      driver \"java\": none in PATH\n"
              "\nAllocations\n"
              "ID        Node ID   Task Group  Version  Desired  Status   Created    Modified\n"
              "bbbbbbbb  cccccccc  a           3        run      running  3m20s ago  5s ago\n");
}
END_TEST

START_TEST(job_lookup)
{
    fake_answers((const struct answer[]){{"GET /v1/jobs?prefix=no", 200, "[]"},
                                         {"GET /v1/jobs?prefix=w", 200,
                                          "[{\"ID\":\"w1\",\"Type\":\"batch\",\"Status\":\"dead\"},"
                                          "{\"ID\":\"w2\",\"Type\":\"batch\",\"Status\":\"dead\"}]"},
                                         {NULL, 0, NULL}});
    check_err("job status no", 1, "No job(s) with prefix or ID \"no\" found\n");
    check_err("job inspect w", 1,
              "Prefix matched multiple jobs\n\nw1  batch  dead\nw2  batch  dead\n");
    fake_run("job stop a/b?c");
    ck_assert_str_eq(fake_asked(), "GET /v1/jobs?prefix=a%2Fb%3Fc\n");
}
END_TEST

START_TEST(errors_of_the_agent)
{
    fake_answers((const struct answer[]){{"GET /v1/jobs", 500, "No cluster leader\n"},
                                         {"GET /v1/nodes", 403, "Permission denied"},
                                         {"GET /v1/evaluations", 200, "[{\"ID\":7}]"},
                                         {"GET /v1/agent/members", 0, NULL},
                                         {NULL, 0, NULL}});
    check_err("job status", 1,
              "Error querying jobs: Unexpected response code: 500 (No cluster leader)\n");
    check_err("node status", 1,
              "Error querying node status: Unexpected response code: 403 (Permission denied)\n");
    check_err("eval list", 1, "Error querying evaluations: json: [0].ID (line 1, column 8): expected "
                              "a string, found a number\n");
    check_err("server members -address http://127.0.0.1:1", 1,
              "Error querying servers: no agent answers at http://127.0.0.1:1 (is one running? see "
              "-address and NOMAD_ADDR): connecting to http://127.0.0.1:1: Connection refused\n");
}
END_TEST

START_TEST(usage)
{
    fake_answers(NULL);
    ck_assert_int_eq(fake_run("alloc status a b"), 1);
    ck_assert_int_eq(fake_run("job plan"), 255);
    ck_assert_int_eq(fake_run("job validate"), 255);
    ck_assert_int_eq(fake_run("job run -detahc x"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "did you mean \"-detach\"?"));
    ck_assert_int_eq(fake_run("alloc status b"), 1);
    ck_assert_str_eq(fake_err(), "Identifier must contain at least two characters.\n");
    ck_assert_int_eq(fake_run("node eligibility x"), 1);
    ck_assert_str_eq(fake_err(), "Either the -enable or -disable flag must be set\n");
    ck_assert_str_eq(fake_asked(), "");
    /* every command has help, and help talks to nobody */
    for (size_t i = 0; i < commands_n; i++) {
        if (!commands[i].run || commands[i].alias_of)
            continue;
        char line[64];
        snprintf(line, sizeof(line), "%s -help", commands[i].name);
        ck_assert_int_eq(fake_run(line), 0);
        ck_assert_ptr_nonnull(strstr(fake_out(), "Usage: paddock "));
        ck_assert_str_eq(fake_asked(), "");
    }
}
END_TEST

/* A user who types a command of Nomad has not mistyped one of ours. */
START_TEST(commands_of_nomad_that_are_not_here)
{
    static const struct {
        const char *first, *second, *want;
    } rows[] = {
        {"plugin", "status",
         "paddock: \"plugin\" is a command of Nomad that is not in Paddock " PACKAGE_VERSION},
        {"operator", "utilization",
         "\"operator utilization\" is a command of Nomad that is not in"},
        {"job", "statsu", "there is no command \"job statsu\", did you mean \"job status\"?"},
        {"jbo", NULL, "there is no command \"jbo\", did you mean \"job\"?"},
        {"-address=X", NULL, "options go after the command: paddock <command> -address=X ..."},
        {"xyz", NULL, "there is no command \"xyz\"; \"paddock -help\" lists them"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char *text = NULL;
        size_t n;
        FILE *before = stderr;
        char *argv[] = {(char[]){"paddock"}, (char *)(uintptr_t)rows[i].first,
                        (char *)(uintptr_t)rows[i].second, NULL};
        stderr = open_memstream(&text, &n);
        int code = cli_main(rows[i].second ? 3 : 2, argv);
        fclose(stderr);
        stderr = before;
        ck_assert_int_eq(code, 127);
        ck_assert_msg(strstr(text, rows[i].want) != NULL, "%s", text);
        free(text);
    }
}
END_TEST

START_TEST(dispatch)
{
    char *none[] = {(char[]){"paddock"}, NULL};
    char *unknown[] = {(char[]){"paddock"}, (char[]){"jbo"}, NULL};
    char *parent[] = {(char[]){"paddock"}, (char[]){"job"}, NULL};
    char *sub[] = {(char[]){"paddock"}, (char[]){"job"}, (char[]){"statsu"}, NULL};
    ck_assert_int_eq(cli_main(1, none), 127);
    ck_assert_int_eq(cli_main(2, unknown), 127);
    ck_assert_int_eq(cli_main(2, parent), 1);
    ck_assert_int_eq(cli_main(3, sub), 127);
    /* every alias names a command, every command is told about */
    for (size_t i = 0; i < commands_n; i++) {
        const struct command *m = &commands[i];
        bool found = !m->alias_of;
        for (size_t j = 0; j < commands_n && !found; j++)
            found = str_eq(commands[j].name, m->alias_of) && commands[j].run == m->run;
        ck_assert_msg(found, "%s", m->name);
        ck_assert(m->alias_of || !m->run || m->help);
    }
}
END_TEST

/* --- submitting --- */

static char *
job_file(void)
{
    static char path[] = "/tmp/paddock-cli-XXXXXX";
    static const char text[] =
        "job \"web\" {\n  group \"a\" {\n    task \"t\" {\n      driver = \"exec\"\n      config {\n"
        "        command = \"/bin/true\"\n      }\n    }\n  }\n}\n";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
    close(fd);
    return path;
}

#define REGISTERED                                                                                \
    {"PUT /v1/jobs", 200, "{\"EvalID\":\"" EVAL_ID "\",\"JobModifyIndex\":9,\"Warnings\":\"\"}"}

START_TEST(run_monitors)
{
    char line[128], want[1024];
    const char *path = job_file();
    snprintf(line, sizeof(line), "job run %s", path);
    fake_answers((const struct answer[]){
        REGISTERED,
        {"GET /v1/evaluation/" EVAL_ID "/allocations", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/evaluation/" EVAL_ID, 200,
         "{\"ID\":\"" EVAL_ID "\",\"JobID\":\"web\",\"Status\":\"complete\"}"},
        {NULL, 0, NULL}});
#define T "2026-11-21T12:00:00Z: "
    snprintf(want, sizeof(want),
             "==> " T "Monitoring evaluation \"aaaaaaaa\"\n"
             "    " T "Evaluation triggered by job \"web\"\n"
             "    " T "Allocation \"bbbbbbbb\" created: node \"cccccccc\", group \"a\"\n"
             "    " T "Evaluation status changed: \"pending\" -> \"complete\"\n"
             "==> " T "Evaluation \"aaaaaaaa\" finished with status \"complete\"\n");
    check_out(line, 0, want);
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"ID\":\"web\""));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Format\":\"hcl2\""));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"EnforceIndex\":false"));
    snprintf(line, sizeof(line), "job run -detach -check-index 7 %s", path);
    check_out(line, 0, "Job registration successful\nEvaluation ID: " EVAL_ID "\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"EnforceIndex\":true,\"JobModifyIndex\":7"));
    unlink(path);
}
END_TEST

START_TEST(run_tells_failed_placement)
{
    char line[128];
    const char *path = job_file();
    snprintf(line, sizeof(line), "job run %s", path);
    fake_answers((const struct answer[]){
        REGISTERED,
        {"GET /v1/evaluation/" EVAL_ID "/allocations", 200, "[]"},
        {"GET /v1/evaluation/" EVAL_ID, 200,
         "{\"ID\":\"" EVAL_ID "\",\"JobID\":\"web\",\"Status\":\"complete\",\"BlockedEval\":"
         "\"eeeeeeee-1\",\"FailedTGAllocs\":{\"a\":{\"NodesEvaluated\":1,\"NodesExhausted\":1,"
         "\"CoalescedFailures\":2,\"DimensionExhausted\":{\"memory\":1}}}}"},
        {NULL, 0, NULL}});
    check_out(line, 2,
              "==> " T "Monitoring evaluation \"aaaaaaaa\"\n"
              "    " T "Evaluation triggered by job \"web\"\n"
              "    " T "Evaluation status changed: \"pending\" -> \"complete\"\n"
              "==> " T "Evaluation \"aaaaaaaa\" finished with status \"complete\" but failed to place "
              "all allocations:\n"
              "    Task Group \"a\" (failed to place 3 allocations):\n"
              "      * Resources exhausted on 1 nodes\n"
              "      * Dimension \"memory\" exhausted on 1 nodes\n"
              "    " T "Evaluation \"eeeeeeee\" waiting for additional capacity to place remainder\n");
    unlink(path);
}
END_TEST

/* A crash at once is told, with what it wrote, whatever the job's type. */
START_TEST(run_tells_a_crash_at_once)
{
    char line[128];
    const char *path = job_file();
    snprintf(line, sizeof(line), "job run %s", path);
    fake_answers((const struct answer[]){
        REGISTERED,
        {"GET /v1/evaluation/" EVAL_ID "/allocations", 200,
         "[{\"ID\":\"" ALLOC_ID "\",\"ClientStatus\":\"pending\","
         "\"TaskStates\":{\"t\":{\"State\":\"pending\","
         "\"Events\":[{\"Type\":\"Started\"},{\"Type\":\"Terminated\",\"ExitCode\":1,"
         "\"DisplayMessage\":"
         "\"Exit Code: 1\"},{\"Type\":\"Restarting\"}]}}}]"},
        {"GET /v1/evaluation/" EVAL_ID, 200,
         "{\"ID\":\"" EVAL_ID "\",\"JobID\":\"web\",\"Status\":\"complete\"}"},
        {"GET /v1/client/fs/logs/" ALLOC_ID "?task=t&type=stderr", 200, "no config\n"},
        {NULL, 0, NULL}});
    for (int batch = 0; batch < 2; batch++) {
        ck_assert_int_eq(fake_run(line), 2);
        ck_assert_ptr_nonnull(strstr(fake_out(),
                                     "Allocation \"bbbbbbbb\" does not stay up: task \"t\": "
                                     "Terminated: Exit Code: 1\n"
                                     "        the last lines of its stderr:\n"
                                     "          no config\n"
                                     "        Restarting: no message\n"
                                     "        more: paddock alloc why bbbbbbbb\n"));
        FILE *f = fopen(path, "we");
        ck_assert_ptr_nonnull(f);
        fputs("job \"web\" {\n  type = \"batch\"\n  group \"a\" {\n    task \"t\" {\n      driver "
              "= \"exec\"\n"
              "      config {\n        command = \"/bin/false\"\n      }\n    }\n  }\n}\n",
              f);
        fclose(f);
    }
    unlink(path);
}
END_TEST

START_TEST(run_of_a_job_that_changed)
{
    char line[128];
    const char *path = job_file();
    snprintf(line, sizeof(line), "job run -check-index 7 %s", path);
    fake_answers((const struct answer[]){
        {"PUT /v1/jobs", 500,
         "Enforcing job modify index 7: job exists with conflicting job modify index: 5"},
        {NULL, 0, NULL}});
    check_err(line, 1, "Enforcing job modify index 7: job exists with conflicting job modify index: 5\n"
                       "Job not updated\n");
    check_err("job run https://a.b/c.hcl", 1,
              "Error getting job struct: URLs are not supported: fetch \"https://a.b/c.hcl\" first, or "
              "pipe it in and give \"-\"\n");
    unlink(path);
}
END_TEST

START_TEST(run_without_submitting)
{
    char line[128];
    const char *path = job_file();
    fake_answers(NULL);
    snprintf(line, sizeof(line), "job run -output %s", path);
    ck_assert_int_eq(fake_run(line), 0);
    ck_assert_ptr_eq(strstr(fake_out(), "{\n    \"Job\": {\n"), fake_out());
    ck_assert_str_eq(fake_asked(), "");
    ck_assert_int_eq(fake_run("job run /tmp"), 1);
    ck_assert_int_eq(fake_run("job run /nonexistent/x.hcl"), 1);
    ck_assert_str_eq(fake_err(), "Error getting job struct: reading \"/nonexistent/x.hcl\": No such "
                                 "file or directory\n");
    unlink(path);
}
END_TEST

/* A Nomad takes "" for said, and refuses it: what was not said is null, as its own command prints
 * it, and such JSON is taken here as well. */
START_TEST(what_was_not_said_is_null_in_the_output)
{
    char line[128], path[] = "/tmp/paddock-cli-XXXXXX";
    const char *hcl = job_file();
    fake_answers(NULL);
    snprintf(line, sizeof(line), "job run -output %s", hcl);
    ck_assert_int_eq(fake_run(line), 0);
    static const char *const there[] = {
        "\"Type\": null",    "\"Region\": null",     "\"Version\": null", "\"Stop\": null",
        "\"Migrate\": null", "\"Reschedule\": null", "\"User\": \"\"",    "\"Leader\": false"};
    for (size_t i = 0; i < ARRAY_LEN(there); i++)
        ck_assert_msg(strstr(fake_out(), there[i]) != NULL, "%s in %s", there[i], fake_out());
    ck_assert_ptr_null(strstr(fake_out(), "CSIPluginConfig"));
    char *first = strdup(fake_out());
    int fd = mkstemp(path);
    ck_assert_int_eq(write(fd, first, strlen(first)), (ssize_t)strlen(first));
    close(fd);
    snprintf(line, sizeof(line), "job run -json -output %s", path);
    ck_assert_int_eq(fake_run(line), 0);
    ck_assert_str_eq(fake_out(), first);
    free(first);
    unlink(path);
    unlink(hcl);
}
END_TEST

START_TEST(garbage_as_a_job_file)
{
    char path[] = "/tmp/paddock-cli-XXXXXX", line[128];
    int fd = mkstemp(path);
    char *junk = malloc(1 << 20);
    for (size_t i = 0; i < 1 << 20; i++)
        junk[i] = (char)(i * 2654435761u >> 13);
    ck_assert_int_eq(write(fd, junk, 1 << 20), 1 << 20);
    close(fd);
    free(junk);
    fake_answers(NULL);
    static const char *const commands_of[] = {"job run", "job run -json", "job plan", "job validate"};
    static const int codes[] = {1, 1, 255, 1};
    for (int i = 0; i < 4; i++) {
        snprintf(line, sizeof(line), "%s %s", commands_of[i], path);
        ck_assert_int_eq(fake_run(line), codes[i]);
        ck_assert_ptr_eq(strstr(fake_err(), "Error getting job struct: "), fake_err());
        ck_assert_uint_lt(strlen(fake_err()), 4000);
    }
    unlink(path);
}
END_TEST

START_TEST(plan)
{
    char line[128], want[2048];
    const char *path = job_file();
    fake_answers((const struct answer[]){
        {"PUT /v1/job/web/plan", 200,
         "{\"JobModifyIndex\":12,\"Annotations\":{\"DesiredTGUpdates\":{\"a\":{\"Place\":1,"
         "\"Ignore\":2}}},\"Diff\":{\"Type\":\"Edited\",\"ID\":\"web\",\"Fields\":[{\"Type\":"
         "\"Edited\",\"Name\":\"Priority\",\"Old\":\"50\",\"New\":\"60\"}],\"TaskGroups\":[{\"Type\":"
         "\"Edited\",\"Name\":\"a\",\"Fields\":[{\"Type\":\"Edited\",\"Name\":\"Count\",\"Old\":\"2\","
         "\"New\":\"3\",\"Annotations\":[\"forces create\"]}],\"Updates\":{\"create\":1,\"ignore\":2},"
         "\"Tasks\":[{\"Type\":\"None\",\"Name\":\"t\"}]}]}}"},
        {NULL, 0, NULL}});
    snprintf(line, sizeof(line), "job plan %s", path);
    snprintf(want, sizeof(want),
             "+/- Job: \"web\"\n"
             "+/- Priority: \"50\" => \"60\"\n"
             "+/- Task Group: \"a\" (1 create, 2 ignore)\n"
             "  +/- Count: \"2\" => \"3\" (forces create)\n"
             "      Task: \"t\"\n"
             "\n"
             "Scheduler dry-run:\n"
             "- All tasks successfully allocated.\n"
             "\n"
             "Job Modify Index: 12\n"
             "To run the job as planned here:\n"
             "\n"
             "paddock job run -check-index 12 %s\n"
             "\n"
             "With -check-index the job is registered only if nobody changed it since this\n"
             "plan; otherwise plan again.\n", path);
    check_out(line, 1, want);
    fake_answers((const struct answer[]){{"PUT /v1/job/web/plan", 200, "{\"JobModifyIndex\":12}"},
                                         {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run(line), 0);
    fake_answers(NULL);
    ck_assert_int_eq(fake_run(line), 255);
    unlink(path);
}
END_TEST

/* Marks are as wide as the widest beside them, as Nomad's. */
START_TEST(plan_of_a_new_job)
{
    char line[128];
    const char *path = job_file();
    fake_answers((const struct answer[]){
        {"PUT /v1/job/web/plan", 200,
         "{\"Diff\":{\"Type\":\"Added\",\"ID\":\"web\",\"Fields\":[{\"Type\":\"Added\",\"Name\":"
         "\"Priority\",\"New\":\"50\"}],\"TaskGroups\":[{\"Type\":\"Added\",\"Name\":\"a\",\"Objects\":["
         "{\"Type\":\"Added\",\"Name\":\"Network\",\"Fields\":[{\"Type\":\"None\",\"Name\":\"IP\"},"
         "{\"Type\":\"Added\",\"Name\":\"Mode\",\"New\":\"host\"}]}],\"Tasks\":[{\"Type\":\"Added\","
         "\"Name\":\"t\",\"Annotations\":[\"forces create\"]}]}]}}"},
        {NULL, 0, NULL}});
    snprintf(line, sizeof(line), "job plan -verbose %s", path);
    ck_assert_int_eq(fake_run(line), 0);
    static const char want[] = "+ Job: \"web\"\n"
                               "+ Priority: \"50\"\n"
                               "+ Task Group: \"a\"\n"
                               "  + Network {\n"
                               "      IP:   \"\"\n"
                               "    + Mode: \"host\"\n"
                               "    }\n"
                               "  + Task: \"t\" (forces create)\n\n";
    ck_assert_msg(strstr(fake_out(), want) == fake_out(), "%s", fake_out());
    unlink(path);
}
END_TEST

START_TEST(init_writes_once)
{
    char dir[] = "/tmp/paddock-cli-XXXXXX", path[64], line[128];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/example.nomad.hcl", dir);
    snprintf(line, sizeof(line), "job init %s", path);
    fake_answers(NULL);
    ck_assert_int_eq(fake_run(line), 0);
    ck_assert_int_eq(fake_run(line), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "already exists"));
    /* the output is a job */
    snprintf(line, sizeof(line), "job run -output %s", path);
    ck_assert_int_eq(fake_run(line), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "\"${NOMAD_PORT_http}\""));
    unlink(path);
    snprintf(line, sizeof(line), "job init -short %s", path);
    ck_assert_int_eq(fake_run(line), 0);
    snprintf(line, sizeof(line), "job run -output %s", path);
    ck_assert_int_eq(fake_run(line), 0);
    unlink(path);
    rmdir(dir);
}
END_TEST

/* --- allocations, nodes, servers --- */

START_TEST(alloc_status)
{
    fake_answers((const struct answer[]){{"GET /v1/allocations?prefix=bbbb", 200, "[" ALLOC_STUB "]"},
                                         {"GET /v1/allocation/" ALLOC_ID, 200, ALLOC},
                                         {NULL, 0, NULL}});
    check_out("alloc status bbbbb", 0,
              "ID                  = " ALLOC_ID "\n"
              "Eval ID             = aaaaaaaa\n"
              "Name                = web.a[0]\n"
              "Node ID             = cccccccc\n"
              "Node Name           = n1\n"
              "Job ID              = web\n"
              "Job Version         = 3\n"
              "Client Status       = complete\n"
              "Client Description  = <none>\n"
              "Desired Status      = run\n"
              "Desired Description = <none>\n"
              "Created             = 3m20s ago\n"
              "Modified            = 5s ago\n"
              "\nAllocation Addresses:\n"
              "Label  Dynamic  Address\n"
              "*http  yes      127.0.0.1:21000\n"
              "\nTask \"t\" is \"dead\"\n"
              "Task Resources:\n"
              "CPU      Memory  Disk     Addresses\n"
              "100 MHz  64 MiB  300 MiB  \n"
              "\nTask Events:\n"
              "Started At     = 2026-11-21T11:00:00Z\n"
              "Finished At    = 2026-11-21T11:01:00Z\n"
              "Total Restarts = 0\n"
              "Last Restart   = N/A\n"
              "\nRecent Events:\n"
              "Time                  Type        Description\n"
              "2026-11-21T11:01:00Z  Terminated  Exit ?[2J\n"
              "2026-11-21T11:00:00Z  Received    Task received\n");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "GET /v1/allocations?prefix=bbbb\n"));
    ck_assert_int_eq(fake_run("alloc status bcbc"), 1);
    check_err("alloc status zzz", 1, "No allocation(s) with prefix or id \"zzz\" found\n");
}
END_TEST

#define TASK(name, lifecycle) "{\"Name\":\"" name "\"" lifecycle "}"
#define STATE(name) "\"" name "\":{\"State\":\"running\"}"

/* The tasks are listed as they start: before others, beside others, the others. */
START_TEST(alloc_status_in_the_order_of_starting)
{
    fake_answers((const struct answer[]){
        {"GET /v1/allocations?prefix=bbbb", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/evaluation/later", 200, "{\"ID\":\"later\",\"WaitUntil\":\"2026-11-21T12:00:25Z\"}"},
        {"GET /v1/allocation/" ALLOC_ID, 200,
         "{\"ID\":\"" ALLOC_ID "\",\"Name\":\"web.a[0]\",\"TaskGroup\":\"a\",\"FollowupEvalID\":\"later\","
         "\"Metrics\":{\"NodesEvaluated\":3,\"ScoreMetaData\":[{\"NodeID\":\"n\",\"NormScore\":0.5,"
         "\"Scores\":{\"binpack\":0.25}}]},\"CreateTime\":1795262200000000000,\"ModifyTime\":"
         "1795262395000000000,\"Job\":{\"TaskGroups\":[{\"Name\":\"a\",\"Tasks\":["
         TASK("m", "") "," TASK("side", ",\"Lifecycle\":{\"Hook\":\"prestart\",\"Sidecar\":true}") ","
         TASK("pre", ",\"Lifecycle\":{\"Hook\":\"prestart\"}") "]}]},\"TaskStates\":{" STATE("m") ","
         STATE("pre") "," STATE("side") "}}"},
        {NULL, 0, NULL}});
    check_out("alloc status -short bbbb", 0,
              "ID       = " ALLOC_ID "\n"
              "Name     = web.a[0]\n"
              "Created  = 3m20s ago\n"
              "Modified = 5s ago\n"
              "\nTasks\n"
              "Name  State    Last Event  Time    Lifecycle\n"
              "pre   running  <none>      <none>  prestart\n"
              "side  running  <none>      <none>  prestart sidecar\n"
              "m     running  <none>      <none>  main\n");
    ck_assert_int_eq(fake_run("alloc status -verbose bbbb"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "Reschedule Eligibility = 25s from now\n"
                                             "Evaluated Nodes        = 3\n"));
    const char *pre = strstr(fake_out(), "\nTask \"pre\" (prestart) is \"running\"\n");
    const char *side = strstr(fake_out(), "\nTask \"side\" (prestart sidecar) is \"running\"\n");
    ck_assert(pre && side && pre < side && side < strstr(fake_out(), "\nTask \"m\" is \"running\"\n"));
    ck_assert_ptr_nonnull(strstr(fake_out(), "Node  binpack  final score\nn     0.25     0.5\n"));
}
END_TEST

/* Tells what is said before there is a session: tests/system/test-exec has the rest. */
START_TEST(alloc_exec)
{
    fake_answers((const struct answer[]){{"GET /v1/allocations?prefix=bbbb", 200, "[" ALLOC_STUB "]"},
                                         {"GET /v1/allocation/" ALLOC_ID, 200, ALLOC},
                                         {"GET /v1/allocations?prefix=", 200, "[]"},
                                         {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("alloc exec bbbb"), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "An argument is missing\n"));
    check_err("exec -t -i=false bbbb ls", 1, "-i must be enabled if running with tty\n");
    check_err("alloc exec -e ab bbbb ls", 1, "-e requires 'none' or a single character\n");
    check_err("alloc exec -task x bbbb ls -task t", 1, /* the last words are the command's */
              "Could not find task \"x\" in allocation \"bbbbbbbb\"; it has:\n  * t\n");
    check_err("alloc exec dddd ls", 1, "No allocation(s) with prefix or id \"dddd\" found\n");
}
END_TEST

static const struct {
    const char *in, *want; /* '|': another read */
    bool ends;
} escapes[] = {
    {"ls\r", "ls\r", false},      {"~.", "", true},          {"~|.", "", true},
    {"a~.", "a~.", false},        {"a\r~.b", "a\r", true},   {"a\n|~|.", "a\n", true},
    {"~~.\r", "~.\r", false},     {"~x~.", "~x~.", false},   {"~\r~.", "~\r", true},
    {"\r\r~|~|~.", "\r\r~~.", false},
};

START_TEST(the_escape_character)
{
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
        struct escape x;
        struct buf out = BUF_INIT(1024);
        bool ends = false;
        escape_init(&x, '~');
        for (const char *p = escapes[i].in; !ends && *p;) {
            size_t n = strcspn(p, "|");
            ends = !escape_feed(&x, p, n, &out);
            p += n + (p[n] == '|');
        }
        ck_assert_msg(strcmp(buf_str(&out), escapes[i].want) == 0 && ends == escapes[i].ends, "%s: %s",
                      escapes[i].in, buf_str(&out));
        buf_reset(&out);
        escape_init(&x, 0);
        ck_assert(escape_feed(&x, "~.", 2, &out) && out.len == 2);
        buf_done(&out);
    }
}
END_TEST

START_TEST(nodes_and_servers)
{
    fake_answers((const struct answer[]){
        {"GET /v1/nodes", 200,
         "[{\"ID\":\"" NODE_ID "\",\"Name\":\"n1\",\"Datacenter\":\"dc1\",\"NodePool\":\"default\","
         "\"SchedulingEligibility\":\"eligible\",\"Status\":\"ready\"}]"},
        {"PUT /v1/node/" NODE_ID "/eligibility", 200, "{}"},
        {"GET /v1/agent/members", 200,
         "{\"Members\":[{\"Name\":\"s1.global\",\"Addr\":\"10.0.0.1\",\"Port\":4648,\"Status\":"
         "\"alive\",\"Tags\":{\"port\":\"4647\",\"build\":\"2.0.4\",\"dc\":\"dc1\",\"region\":"
         "\"global\",\"raft_vsn\":\"3\"}}]}"},
        {"GET /v1/status/leader?region=global", 200, "\"10.0.0.1:4647\""},
        {"PUT /v1/system/gc", 200, ""},
        {NULL, 0, NULL}});
    check_out("node status", 0,
              "ID        Node Pool  DC   Name  Class   Drain  Eligibility  Status\n"
              "cccccccc  default    dc1  n1    <none>  false  eligible     ready\n");
    check_out("node status -quiet", 0, NODE_ID "\n"); /* as other commands and the API take it */
    check_out("node eligibility -disable cccc", 0,
              "Node \"" NODE_ID "\" scheduling eligibility set: ineligible for scheduling\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Eligibility\":\"ineligible\""));
    check_out("server members", 0,
              "Name       Address   Port  Status  Leader  Raft Version  Build  Datacenter  Region\n"
              "s1.global  10.0.0.1  4648  alive   true    3             2.0.4  dc1         global\n");
    check_out("server members -detailed", 0,
              "Name       Address   Port  Status  Leader  Protocol  Raft Version  Build  Datacenter  "
              "Region  Tags\n"
              "s1.global  10.0.0.1  4648  alive   true    0         3             2.0.4  dc1         "
              "global  build=2.0.4,dc=dc1,port=4647,raft_vsn=3,region=global\n");
    check_out("server members -t {{range\t.}}{{.Tags.Leader}}{{end}}", 0, "true\n");
    check_out("system gc", 0, "");
}
END_TEST
#define MEMBER(name, addr, region, status)                                                       \
    "{\"Name\":\"" name "\",\"Addr\":\"" addr "\",\"Port\":4648,\"Status\":\"" status "\",\"Tags\":{" \
    "\"port\":\"4647\",\"rpc_addr\":\"" addr "\",\"region\":\"" region "\"}}"

START_TEST(each_region_has_a_leader)
{
    fake_answers((const struct answer[]){
        {"GET /v1/agent/members", 200,
         "{\"Members\":[" MEMBER("s1.us", "10.0.0.1", "us", "alive") "," MEMBER(
             "s2.eu", "fd00::2", "eu", "alive") "," MEMBER("s3.old", "10.0.0.3", "old", "left") "," MEMBER(
             "s4.eu", "10.0.0.4", "eu", "failed") "]}"},
        {"GET /v1/status/leader?region=us", 500, "No cluster leader"},
        {"GET /v1/status/leader?region=eu", 200, "\"[fd00::2]:4647\""},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("server members"), 1);
    ck_assert_str_eq(fake_out(),
                     "Name    Address   Port  Status  Leader  Raft Version  Build   Datacenter  Region\n"
                     "s1.us   10.0.0.1  4648  alive   false   <none>        <none>  <none>      us\n"
                     "s2.eu   fd00::2   4648  alive   true    <none>        <none>  <none>      eu\n"
                     "s3.old  10.0.0.3  4648  left    false   <none>        <none>  <none>      old\n"
                     "s4.eu   10.0.0.4  4648  failed  false   <none>        <none>  <none>      eu\n");
    ck_assert_ptr_nonnull(strstr(fake_err(), "Error determining leaders: Region \"us\": "));
    ck_assert_ptr_null(strstr(fake_err(), "\"old\""));
}
END_TEST

START_TEST(a_node_is_found_by_its_name)
{
    fake_answers((const struct answer[]){{"GET /v1/nodes?filter=Name", 200, NODE_LIST},
                                         {"GET /v1/nodes", 200, "[]"},
                                         {"PUT /v1/node/" NODE_ID "/eligibility", 200, "{}"},
                                         {NULL, 0, NULL}});
    check_out("node eligibility -disable n1", 0,
              "Node \"" NODE_ID "\" scheduling eligibility set: ineligible for scheduling\n");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "GET /v1/nodes?filter=Name%20%3D%3D%20%22n1%22"));
    check_err("node eligibility -disable n2", 1, "No node(s) with prefix or id \"n2\" found\n");
}
END_TEST

START_TEST(node_status_of_one)
{
    fake_answers((const struct answer[]){
        {"GET /v1/nodes", 200, NODE_LIST},
        {"GET /v1/node/" NODE_ID "/allocations", 200,
         "[{\"ID\":\"" ALLOC_ID "\",\"ClientStatus\":\"running\"},"
         "{\"ID\":\"x\",\"ClientStatus\":\"failed\"}]"},
        {"GET /v1/node/" NODE_ID, 200, "{\"ID\":\"" NODE_ID "\",\"Status\":\"ready\"}"},
        {"GET /v1/client/stats", 200,
         "{\"Uptime\":3661,\"CPU\":[{\"CPU\":\"cpu0\",\"User\":1.5}],\"Memory\":{\"Total\":1048576},"
         "\"DiskStats\":[{\"Device\":\"/dev/vda\",\"Mountpoint\":\"/\",\"UsedPercent\":50}]}"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("node status -stats cccc"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "Uptime        = 1h1m1s\n"));
    ck_assert_ptr_nonnull(strstr(fake_out(), "CPU      Memory   Disk     Alloc Count\n"
                                             "0/0 MHz  0 B/0 B  0 B/0 B  1\n"));
    ck_assert_ptr_nonnull(strstr(fake_out(), "\nCPU Stats\nCPU    = cpu0\nUser   = 1.50%\n"));
    ck_assert_ptr_nonnull(strstr(fake_out(), "\nMemory Stats\nTotal     = 1.0 MiB\n"));
    ck_assert_ptr_nonnull(strstr(fake_out(), "\nDisk Stats\nDevice         = /dev/vda\n"));
    ck_assert_int_eq(fake_run("node status -short cccc"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "= " NODE_ID "\n"));
}
END_TEST

#define NODE_ALLOC(client, desired) \
    "[{\"ID\":\"" ALLOC_ID "\",\"JobID\":\"web\",\"ClientStatus\":\"" client \
    "\",\"DesiredStatus\":\"" desired "\"}]"

START_TEST(node_drain)
{
    fake_answers((const struct answer[]){
        {"GET /v1/nodes", 200, NODE_LIST},
        {"PUT /v1/node/" NODE_ID "/drain", 200, "{\"NodeModifyIndex\":7}"},
        {"GET /v1/node/" NODE_ID "/allocations", 200, NODE_ALLOC("complete", "stop")},
        {"GET /v1/node/" NODE_ID, 200,
         "{\"ID\":\"" NODE_ID "\",\"LastDrain\":{\"Status\":\"complete\"}}"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("node drain -enable -yes -deadline 5m -m bye -meta a=b=c cccc"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "Node \"" NODE_ID "\" drain strategy set\n"));
    ck_assert_ptr_nonnull(strstr(fake_out(), "All allocations on node \"" NODE_ID "\" have stopped\n"));
    ck_assert_ptr_nonnull(strstr(fake_out(), "drain complete\n"));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"DrainSpec\":{\"Deadline\":300000000000,"));
    ck_assert_ptr_nonnull(strstr(fake_body(), "{\"a\":\"b=c\",\"message\":\"bye\"}"));
    check_out("node drain -enable -yes -force -detach cccc", 0,
              "Node \"" NODE_ID "\" drain strategy set\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Deadline\":-1,"));
    check_out("node drain -disable -yes cccc", 0, "Node \"" NODE_ID "\" drain strategy unset\n");
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"DrainSpec\":null,\"MarkEligible\":true"));
    ck_assert_int_eq(fake_run("node drain -disable -yes -keep-ineligible cccc"), 0);
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"MarkEligible\":false"));
    ck_assert_int_eq(fake_run("node drain -enable -yes -json cccc"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "\"NodeModifyIndex\": 7"));
    ck_assert_ptr_nonnull(strstr(fake_body(), "\"Deadline\":3600000000000,"));
}
END_TEST

START_TEST(node_drain_that_is_disabled)
{
    fake_answers((const struct answer[]){
        {"GET /v1/nodes", 200, NODE_LIST},
        {"GET /v1/node/" NODE_ID "/allocations", 200, NODE_ALLOC("running", "run")},
        {"GET /v1/node/" NODE_ID, 200,
         "{\"ID\":\"" NODE_ID "\",\"LastDrain\":{\"Status\":\"canceled\"}}"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("node drain -monitor cccc"), 1);
    ck_assert_ptr_nonnull(strstr(fake_out(), "was disabled before its end"));
    check_err("node drain cccc", 1, "Give one of -enable, -disable and -monitor\n");
    check_err("node drain -enable -disable cccc", 1, "Give one of -enable, -disable and -monitor\n");
    check_err("node drain -enable -force -no-deadline cccc", 1,
              "-deadline, -force and -no-deadline exclude each other\n");
    check_err("node drain -disable -force cccc", 1,
              "-deadline, -force, -no-deadline and -ignore-system need -enable\n");
    check_err("node drain -enable", 1, "Name a node, or give -self\n");
    check_err("node drain -enable -yes -meta x cccc", 1, "-meta \"x\" is not <key>=<value>\n");
}
END_TEST

START_TEST(status_finds_the_kind)
{
    fake_answers((const struct answer[]){{"GET /v1/jobs?prefix=", 200, "[]"},
                                         {"GET /v1/allocations?prefix=bbbb", 200, "[" ALLOC_STUB "]"},
                                         {"GET /v1/allocation/" ALLOC_ID, 200, ALLOC},
                                         {"GET /v1/nodes?prefix=", 200, "[]"},
                                         {"GET /v1/evaluations?prefix=", 200, "[]"},
                                         {"GET /v1/allocations?prefix=", 200, "[]"},
                                         {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("status bbbb"), 0);
    ck_assert_ptr_nonnull(strstr(fake_out(), "Client Status       = complete\n"));
    check_err("status dddd", 1, "No matches found for id \"dddd\"\n");
    check_err("status xyz", 1, "No matches found for id \"xyz\"\n");
}
END_TEST

TEST_SUITE("cli", job_list, job_single, job_lookup, errors_of_the_agent, usage,
           commands_of_nomad_that_are_not_here, dispatch, run_monitors, run_tells_failed_placement,
           run_tells_a_crash_at_once, run_of_a_job_that_changed, run_without_submitting,
           garbage_as_a_job_file, what_was_not_said_is_null_in_the_output, plan, plan_of_a_new_job,
           init_writes_once, alloc_status, alloc_status_in_the_order_of_starting, alloc_exec,
           the_escape_character, nodes_and_servers, each_region_has_a_leader, node_status_of_one,
           a_node_is_found_by_its_name, node_drain, node_drain_that_is_disabled,
           status_finds_the_kind)
