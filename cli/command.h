/* SPDX-License-Identifier: Apache-2.0
 *
 * What every command is made of: a row of command.def and a function. A function fills an
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

typedef void cmd_complete(struct cmd *c, const struct opt *const *tables, bool verbatim);

/* Paths and words, as they were given. */
struct cmd_tls {
    const char *ca_cert, *ca_path, *cert, *key, *name;
    bool skip_verify;
};

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
    struct cmd_tls tls;
    const struct dialer *dialer; /* of connections to the agent; NULL: plain */
    bool no_color, force_color;
    bool color;
    cmd_fetch *fetch; /* http_fetch, or a test's */
    int64_t now_ns;   /* 0: the clock (a test's otherwise) */
    cmd_complete *complete; /* do nothing but say how the line may go on; NULL: run */
    const struct complete *line; /* its own */
};

/* The arguments that a command takes beside its own options. */
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
int64_t cmd_now(const struct cmd *c);
/* Asks yes or no on a terminal; without one it is yes. */
bool cmd_confirm(struct cmd *c, const char *question);

/* The functions of the rows of command.def. */
#define COMMON(name, args, brief, help, fn) int cmd_##fn(struct cmd *c);
#define COMMAND(name, args, brief, help, fn) int cmd_##fn(struct cmd *c);
#define PARENT(name, brief, common)
#define AGENT(name, args, brief)
#define ALIAS(name, args, brief, fn, of, common)
#include "cli/command.def"

#endif
