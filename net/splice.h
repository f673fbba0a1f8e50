/* SPDX-License-Identifier: Apache-2.0
 *
 * Two streams as one: what comes from each is written to the other, no faster than that takes it, and the
 * end of one is the other's.
 */
#ifndef PADDOCK_NET_SPLICE_H
#define PADDOCK_NET_SPLICE_H

#include "net/stream.h"

/* Owns both from now on; done(arg) once, from the loop, when both have gone. */
void splice(struct stream *a, struct stream *b, loop_fn *done, void *arg);

#endif
