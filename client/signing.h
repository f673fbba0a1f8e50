/* SPDX-License-Identifier: Apache-2.0
 *
 * Identities of tasks, which the servers sign when they are asked. The wishes of a moment are one
 * call, and a call is under way at a time: thousands of tasks are no thousands of calls. While no
 * server answers, wishes wait.
 */
#ifndef PADDOCK_CLIENT_SIGNING_H
#define PADDOCK_CLIENT_SIGNING_H

#include "client/ground.h"

struct signings;
struct signing;

/* `s` NULL: the servers refuse to, and `why` says why. Valid during the call, after which the wish
 * is gone. Never from inside signing_begin(). */
typedef void signing_done(void *arg, const struct signed_identity *s, const char *why);

struct signings *signings_new(struct ground *g);
/* Ends all; wishes stay valid, and are told nothing more. */
void signings_stop(struct signings *f);

/* Wishes for an identity of a task; texts are copied. */
struct signing *signing_begin(struct signings *f, const struct identity_request *q,
                              signing_done *done, void *arg);
void signing_end(struct signing *s); /* before it was told; NULL: nothing */

#endif
