/* SPDX-License-Identifier: Apache-2.0
 *
 * A node that is alone: since when no server has answered, and stop_on_client_after of groups that
 * are not to run on for long without one (doc/reconnect.md 2.8). Time counts while the machine is
 * suspended, and over an end of the agent: the last contact is kept in a file while an allocation
 * asks for it. No server is needed for any of it. Of fenced groups the warden is told of each
 * contact: it kills their tasks when there is none for lost_after (doc/fencing.md); they are
 * stopped a little before that.
 */
#ifndef PADDOCK_CLIENT_NODE_ALONE_H
#define PADDOCK_CLIENT_NODE_ALONE_H

#include "client/alloc/alloc_runner.h"

struct alone;

/* Reads the file. */
struct alone *alone_new(struct allocs *allocs);
/* A server has answered what was sent at that time, clock_boot_ns(): it has heard this node since.
 */
void alone_heard(struct alone *x, int64_t sent_ns);
/* There is another allocation, or one has changed. True: heartbeats are to come more often from now
 * on. */
bool alone_seen(struct alone *x, const struct alloc_runner *ar);
void alone_stop(struct alone *x);

#endif
