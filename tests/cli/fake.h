/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a command against recorded answers: what it printed, its exit code, what it asked.
 */
#ifndef PADDOCK_TESTS_CLI_FAKE_H
#define PADDOCK_TESTS_CLI_FAKE_H

#include "cli/command.h"

/* --- what an agent may have --- */

#define JOB_STUB "{\"ID\":\"web\",\"Type\":\"service\",\"Priority\":50,\"Status\":\"running\"," \
                 "\"SubmitTime\":1795262395000000000}"
#define EVAL_ID "aaaaaaaa-1111-2222-3333-444444444444"
#define ALLOC_ID "bbbbbbbb-1111-2222-3333-444444444444"
#define NODE_ID "cccccccc-1111-2222-3333-444444444444"
#define ALLOC_STUB                                                                              \
    "{\"ID\":\"" ALLOC_ID "\",\"EvalID\":\"" EVAL_ID "\",\"Name\":\"web.a[0]\",\"NodeID\":\""    \
    NODE_ID "\",\"TaskGroup\":\"a\",\"JobVersion\":3,\"DesiredStatus\":\"run\","                  \
    "\"ClientStatus\":\"running\",\"CreateIndex\":5,\"ModifyIndex\":5,"                          \
    "\"CreateTime\":1795262200000000000,\"ModifyTime\":1795262395000000000}"
#define ALLOC                                                                                     \
    "{\"ID\":\"" ALLOC_ID "\",\"EvalID\":\"" EVAL_ID "\",\"Name\":\"web.a[0]\",\"NodeID\":\""     \
    NODE_ID "\",\"NodeName\":\"n1\",\"JobID\":\"web\",\"TaskGroup\":\"a\",\"Job\":{\"ID\":\"web\","\
    "\"Version\":3,\"TaskGroups\":[{\"Name\":\"a\",\"Tasks\":[{\"Name\":\"t\"}]}]},"              \
    "\"DesiredStatus\":\"run\",\"ClientStatus\":\"complete\",\"AllocatedResources\":{\"Tasks\":"  \
    "{\"t\":{\"Cpu\":{\"CpuShares\":100},\"Memory\":{\"MemoryMB\":64}}},\"Shared\":{\"DiskMB\":300,"\
    "\"Networks\":[{\"DynamicPorts\":[{\"Label\":\"http\"}]}],\"Ports\":[{\"Label\":\"http\","    \
    "\"Value\":21000,\"HostIP\":\"127.0.0.1\"}]}},\"TaskStates\":{\"t\":{\"State\":\"dead\","     \
    "\"StartedAt\":\"2026-11-21T11:00:00Z\",\"FinishedAt\":\"2026-11-21T11:01:00Z\",\"Events\":[" \
    "{\"Type\":\"Received\",\"Time\":1795258800000000000,\"DisplayMessage\":\"Task received\"},"  \
    "{\"Type\":\"Terminated\",\"Time\":1795258860000000000,\"DisplayMessage\":\"Exit \\u001b[2J\"}" \
    "]}},\"CreateTime\":1795262200000000000,\"ModifyTime\":1795262395000000000}"
#define NODE_LIST "[{\"ID\":\"" NODE_ID "\",\"Name\":\"n1\",\"Status\":\"ready\"}]"

/* --- asking --- */

struct answer {
    const char *target; /* "GET /v1/jobs"; a prefix of method, blank and target */
    int status;         /* 0: the connection is refused */
    const char *body;
};

/* Ends with a NULL target; borrowed until the next call. */
void fake_answers(const struct answer *a);
/* The command line after "paddock", split at blanks; returns the exit code. */
int fake_run(const char *line);
const char *fake_out(void);
const char *fake_err(void);
/* Returns the requests that came, one "METHOD target" per line. */
const char *fake_asked(void);
/* Body of the last request that had one. */
const char *fake_body(void);
/* Runs a line: what is printed, and its exit code, are these. */
void check_out(const char *line, int code, const char *want);
void check_err(const char *line, int code, const char *want);

#endif
