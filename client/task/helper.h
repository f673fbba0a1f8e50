/* SPDX-License-Identifier: Apache-2.0
 *
 * A program of our own, working for a task that need not run (isolation/launch/helper.h): one
 * request, one report. While the warden is away, or has as many helpers as it may, it is asked
 * again.
 */
#ifndef PADDOCK_CLIENT_TASK_HELPER_H
#define PADDOCK_CLIENT_TASK_HELPER_H

#include "client/task/task_int.h"

struct helper;

/* `e` NULL: the program has ended, and `p` is its report. Else it made none, and `e` says why.
 * Nothing of the program is left. */
typedef void helper_done(void *arg, const struct err *e, const void *p, size_t n);

/* Copies `h` and the packet. Later `done`, once, unless helper_cancel() was called before. */
struct helper *helper_run(struct task_runner *tr, const struct helper_request *h, const void *p,
                          size_t n, helper_done *done, void *arg);
/* Has the program's packets before its report told to `note`, with the argument of `done`; the
 * report may be, too. */
typedef void helper_note(void *arg, const void *p, size_t n);
void helper_follow(struct helper *h, helper_note *note);
/* Has the program killed. NULL: nothing. */
void helper_cancel(struct helper *h);

#endif
