/* SPDX-License-Identifier: Apache-2.0
 *
 * Watching an evaluation and its deployment until they end, as `job run` does; and telling why
 * something was not placed.
 */
#ifndef PADDOCK_CLI_MONITOR_H
#define PADDOCK_CLI_MONITOR_H

#include "cli/command.h"

/* The options of commands that make an evaluation. */
struct follow {
    bool detach, verbose;
};
#define VERBOSE_OPT(f) {"verbose", OPT_BOOL, &(f).verbose, NULL, "Show full ids."}
#define FOLLOW_OPTS(f)                                                                             \
    {"detach", OPT_BOOL, &(f).detach, NULL, "Return at once, with the id of the evaluation."},     \
        VERBOSE_OPT(f)

struct change;
/* Follows an evaluation until its end, or, detached, its id is printed behind `text`. */
int monitor_follow(struct cmd *c, const struct follow *f, const char *eval_id, const char *text);
/* Sends a change whose answer has an EvalID, and follows it in the same way. */
int monitor_change(struct cmd *c, const struct follow *f, const struct change *ch,
                   const char *text);
/* Exit code: 0 done, 1 an error, a failed evaluation or a deployment of it that does not succeed, 2
 * not everything was placed. */
int monitor_eval(struct cmd *c, const char *eval_id, bool verbose);
/* The same of a job that was submitted. Without a deployment, a look at what was placed: 2 when a
 * task of it has crashed by then, which is said. */
int monitor_run(struct cmd *c, const char *eval_id, bool verbose);
/* The lines that explain a failed placement, each with `prefix`. */
void monitor_print_metrics(struct cmd *c, const struct alloc_metric *m, bool scores,
                           const char *prefix);
/* "Task Group "web" (failed to place 2 allocations):" and the reasons, for each group. */
void monitor_print_failed(struct cmd *c, const struct alloc_metric_map *groups, bool verbose,
                          const char *prefix);

#endif
