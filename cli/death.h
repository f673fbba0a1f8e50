/* SPDX-License-Identifier: Apache-2.0
 *
 * Why tasks do not come up: the event with which each ended badly, its last lines, and the command
 * that tells more.
 */
#ifndef PADDOCK_CLI_DEATH_H
#define PADDOCK_CLI_DEATH_H

#include "cli/command.h"

struct death {
    const char *task;
    const struct task_event *bad;  /* how it ended, or why it did not start */
    const struct task_event *last; /* what came after it; `bad` itself: nothing did */
};

/* False: the task did not end badly by itself, or runs again and `ever` is not asked for. */
bool death_of(const char *task, const struct task_state *s, bool ever, struct death *ret);

/* `Allocation "9abb4132" does not stay up: task "t": Terminated: Exit Code: 7`; owned by c. */
const char *death_line(struct cmd *c, const char *alloc, const struct death *d, bool verbose);
/* The last lines of what the task wrote to stderr (stdout when that is empty), each with `prefix`;
 * nothing where they cannot be read. */
void death_lines(struct cmd *c, const char *alloc, const struct death *d, const char *prefix);
/* Prints the last deaths, what came after, and the next command to type. */
void death_more(struct cmd *c, const char *alloc, const struct death *d, const char *prefix);

/* The words that were told of a job's allocations, to stay the same while nothing new happens. */
struct death_told {
    struct {
        const char *key, *words, *text;
    } * v;
    size_t n;
};

/* Tells of allocations that are to run: DEATHS_MAX of them in full. `keep`: also of those that run
 * again meanwhile. True: there was something to tell, below `title` (NULL: none). */
bool death_report(struct cmd *c, const struct alloc_list_stub_list *l, struct death_told *keep,
                  const char *title, bool verbose);

#endif
