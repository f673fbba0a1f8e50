/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of cli/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_CLI_LIMITS_H
#define PADDOCK_CLI_LIMITS_H

enum {
    /* --- the command line --- */
    CLI_ANSWER_MAX = 256 << 20,  /* bytes of an answer of the agent */
    CLI_OUT_MAX = 512 << 20,     /* bytes of output in JSON or by a template */
    CLI_TAIL_MAX = 64 << 20,     /* bytes of the end of a file or log in which -n looks for lines */
    TAIL_LINES = 10,             /* last lines that -tail shows */
    PAUSE_SEEN_MS = 5000,        /* until the servers have heard that a task was paused */
    RUN_LOOK_MS = 3000,          /* until what job run has placed must begin */
    RUN_UP_MS = 400,             /* then, in which it must not crash */
    DEATHS_MAX = 3,              /* tasks that do not come up, of which a command tells in full */
    DEATH_LINES = 5,             /* last lines of what one wrote */
    DEATH_LINE_MAX = 300,        /* bytes of each */
    DEATH_TAIL_MAX = 4 << 10,    /* bytes of its end in which they are looked for */
    DEPLOYMENT_ASK_MS = 2000,    /* until job run looks anew at what a deployment has placed */
    CLI_PEM_MAX = 1 << 20,       /* bytes of a file of certificates, or of all of -ca-path */
    JOBFILE_MAX = 4 << 20,       /* bytes of a job file */
    JOBFILE_GLOB_MAX = 10000,    /* files that fileset() finds */
    JOBFILE_GLOB_DEPTH_MAX = 32, /* directories it goes down */
    DISPATCH_INPUT_MAX = 1 << 20, /* bytes of the input of job dispatch; the servers take fewer */
    TOP_ROWS_MAX = 20000,         /* rows of a view of top */
    TOP_STATS_MAX = 128,          /* nodes and allocations whose figures top keeps */
    TOP_LOG_TAIL = 64 << 10,      /* bytes of the end of a log that top shows */
    COMPLETE_IDS_MAX = 100,       /* identifiers that completion asks for */
    COMPLETE_LINE_MAX = 64 << 10, /* bytes of a command line that is completed */
    COMPLETE_WORDS_MAX = 256,     /* words of it */
    COMPLETE_MS = 1000,           /* an answer of the agent to completion */
};

#endif
