/* SPDX-License-Identifier: Apache-2.0
 *
 * What every command is made of: one entry in commands[] and one function. A function fills an
 * option table over local variables and calls cmd_parse() first; the same table prints the help.
 *
 *   int cmd_x(struct cmd *c)
 *   {
 *       bool quiet = false;
 *       const struct opt opts[] = {{"quiet", OPT_BOOL, &quiet, NULL, "Print ids only."}, {0}};
 *       int rc;
 *       if (!cmd_parse(c, opts, &(struct cmd_args){.client = true, .max = 1}, &rc))
 *           return rc;
 *
 * Memory: all of a command hangs off its struct cmd. Output goes to c->out, complaints to c->err.
 */
#ifndef PADDOCK_CLI_COMMAND_H
#define PADDOCK_CLI_COMMAND_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "common/mem.h"
#include "common/opt.h"
#include "common/str.h"
#include "net/http/http.h"

struct cmd;

struct command {
    const char *name;  /* "job run" */
    const char *args;  /* "[options] <path>" */
    const char *brief; /* one line for lists */
    const char *help;  /* paragraphs for -help */
    int (*run)(struct cmd *c);
    const char *alias_of; /* NULL: not an alias */
    bool common;          /* listed first in the overview */
};

extern const struct command commands[];
extern const size_t commands_n;

typedef int cmd_fetch(const void *ctx, const char *addr, const struct http_ask *ask,
                      struct http_resp **ret, struct err *e);

typedef void cmd_complete(struct cmd *c, const struct opt *const *tables, size_t n, bool verbatim);

struct cmd {
    const struct command *command;
    int argc; /* argv[0] is the command */
    char **argv;
    const char **args; /* positional, after cmd_parse */
    size_t n_args;
    FILE *out, *err;
    FILE *in;
    /* global client flags */
    const char *address, *region, *namespace, *token, *http_auth;
    const char *tls_file, *tls_name;
    bool tls_skip;
    bool no_color, force_color;
    bool color;
    cmd_fetch *fetch; /* http_fetch, or a test's */
    int64_t now_ns;   /* 0: the clock (a test's otherwise) */
    cmd_complete *complete; /* do nothing but say how the line may go on; NULL: run */
    const struct complete *line; /* its own */
};

/* What a command takes beside its own options. */
struct cmd_args {
    bool client;   /* talks to an agent: the global client flags */
    size_t min, max; /* positional arguments */
    int usage_code;  /* exit code for wrong usage; 0: 1 */
    bool verbatim;   /* options end at the first argument: what follows is another's command line */
};

/* False: done, return *ret_code (help was asked for, or usage is wrong and was said). */
bool cmd_parse(struct cmd *c, const struct opt *opts, const struct cmd_args *want, int *ret_code);
/* Global flags that were not given: from the environment, else the usual ones. */
void cmd_client_defaults(struct cmd *c);
/* Prints to c->err and returns 1. */
int cmd_fail(struct cmd *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A line on c->out; cmd_put: a piece of one. Both, and what cmd_fail and cmd_warn print, tame what
 * names and messages of jobs and tasks would do to the terminal. */
void cmd_say(struct cmd *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cmd_put(struct cmd *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cmd_warn(struct cmd *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "\n<bold>Title</bold>\n" */
void cmd_heading(struct cmd *c, const char *title);
const char *cmd_env(const char *name); /* NULL when unset or empty */
int64_t cmd_now(const struct cmd *c);
/* Asks yes or no on a terminal; without one it is yes. */
bool cmd_confirm(struct cmd *c, const char *question);

/* commands */
int cmd_version(struct cmd *c);
int cmd_isolate_run(struct cmd *c);
int cmd_isolate_explain(struct cmd *c);
int cmd_isolate_probe(struct cmd *c);
int cmd_agent_info(struct cmd *c);
int cmd_job_init(struct cmd *c);
int cmd_job_run(struct cmd *c);
int cmd_job_plan(struct cmd *c);
int cmd_job_validate(struct cmd *c);
int cmd_job_status(struct cmd *c);
int cmd_job_stop(struct cmd *c);
int cmd_job_inspect(struct cmd *c);
int cmd_job_explain(struct cmd *c);
int cmd_job_history(struct cmd *c);
int cmd_job_allocs(struct cmd *c);
int cmd_job_eval(struct cmd *c);
int cmd_job_deployments(struct cmd *c);
int cmd_job_promote(struct cmd *c);
int cmd_job_restart(struct cmd *c);
int cmd_job_revert(struct cmd *c);
int cmd_job_tag_apply(struct cmd *c);
int cmd_job_tag_unset(struct cmd *c);
int cmd_job_dispatch(struct cmd *c);
int cmd_job_periodic_force(struct cmd *c);
int cmd_job_start(struct cmd *c);
int cmd_migrate_check(struct cmd *c);
int cmd_node_status(struct cmd *c);
int cmd_node_drain(struct cmd *c);
int cmd_node_eligibility(struct cmd *c);
int cmd_node_config(struct cmd *c);
int cmd_node_explain(struct cmd *c);
int cmd_node_meta_apply(struct cmd *c);
int cmd_node_meta_read(struct cmd *c);
int cmd_alloc_status(struct cmd *c);
int cmd_alloc_checks(struct cmd *c);
int cmd_alloc_exec(struct cmd *c);
int cmd_alloc_logs(struct cmd *c);
int cmd_alloc_fs(struct cmd *c);
int cmd_alloc_stop(struct cmd *c);
int cmd_alloc_why(struct cmd *c);
int cmd_alloc_pause(struct cmd *c);
int cmd_alloc_restart(struct cmd *c);
int cmd_alloc_signal(struct cmd *c);
int cmd_deployment_list(struct cmd *c);
int cmd_deployment_status(struct cmd *c);
int cmd_deployment_pause(struct cmd *c);
int cmd_deployment_resume(struct cmd *c);
int cmd_deployment_promote(struct cmd *c);
int cmd_deployment_fail(struct cmd *c);
int cmd_deployment_unblock(struct cmd *c);
int cmd_eval_status(struct cmd *c);
int cmd_eval_delete(struct cmd *c);
int cmd_eval_list(struct cmd *c);
int cmd_operator_api(struct cmd *c);
int cmd_operator_metrics(struct cmd *c);
int cmd_operator_raft_list(struct cmd *c);
int cmd_operator_raft_transfer(struct cmd *c);
int cmd_operator_raft_remove(struct cmd *c);
int cmd_keyring_generate(struct cmd *c);
int cmd_keyring_install(struct cmd *c);
int cmd_keyring_list(struct cmd *c);
int cmd_keyring_remove(struct cmd *c);
int cmd_keyring_use(struct cmd *c);
int cmd_server_join(struct cmd *c);
int cmd_server_force_leave(struct cmd *c);
int cmd_operator_scheduler_get(struct cmd *c);
int cmd_operator_scheduler_set(struct cmd *c);
int cmd_operator_scheduler_simulate(struct cmd *c);
int cmd_server_members(struct cmd *c);
int cmd_status(struct cmd *c);
int cmd_system_gc(struct cmd *c);
int cmd_ui(struct cmd *c);
int cmd_fmt(struct cmd *c);

#endif
