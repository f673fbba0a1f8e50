/* SPDX-License-Identifier: Apache-2.0
 *
 * The templates of a task, as hook_template.c and template_change.c share them.
 */
#ifndef PADDOCK_CLIENT_TASK_TEMPLATE_INT_H
#define PADDOCK_CLIENT_TASK_TEMPLATE_INT_H

#include "client/task/task_int.h"

struct template_hook;

/* The state of a template. */
struct template_state {
    struct template_hook *h;
    struct command *script; /* runs */
    int64_t first_ns; /* monotonic: of the first change that it is to be rendered for; 0: none */
    int64_t at_ns;    /* ... and when that is done; 0: it is not to be */
    bool waits;       /* for an answer, and there is no file that stands in */
    bool changed;     /* its file, since the task started; change_mode is to be done */
    int64_t digest;   /* of its text as it was rendered last; 0: not known */
};

struct template_hook { /* a talloc context */
    struct task_runner *tr;
    struct template_state *v;
    size_t n;
    struct template_use **uses;
    size_t n_uses;
    struct helper *helper;
    struct timer *timer; /* of the next template that is due */
    struct timer *splay; /* until change_mode is done */
    struct turn *turn;   /* of a restart that is wanted, or under way; NULL: none */
    struct timer *tell;  /* until an event tells what is missing */
    struct timer *patience; /* until the start is given up for what is missing */
    int64_t began_ns;       /* monotonic: when that start began to be waited for; 0: none is */
    char *told;          /* by the last one; NULL: none */
    struct str_map *env; /* a talloc context; NULL: none */
    int64_t backoff_ms;
    bool ready; /* all is there for the start at hand */
    bool fresh; /* the start that it is there for has not been told */
};

static inline const struct template *
template_of(const struct template_hook *h, size_t i)
{
    return h->tr->task->templates.v[i];
}

/* Notes in the record of the task that the last text of the i-th template is known to it. A text
 * that was rendered and not told, when renderer or agent were killed, differs from the record. */
void template_know(struct template_hook *h, size_t i);
/* Does what change_mode says of the files that have changed, after a splay. */
void template_apply(struct template_hook *h);
/* Runs the change_script of the i-th template; the task may end by it. */
void template_script(struct template_hook *h, size_t i);

#endif
