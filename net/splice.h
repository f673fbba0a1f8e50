/* SPDX-License-Identifier: Apache-2.0
 *
 * Two streams as one: the bytes of each are written to the other, no faster than its reader takes
 * them, and both end together.
 */
#ifndef PADDOCK_NET_SPLICE_H
#define PADDOCK_NET_SPLICE_H

#include "net/stream.h"

/* Owns both from now on; done(arg) once, from the loop, when both have gone. */
void splice(struct stream *a, struct stream *b, loop_fn *done, void *arg);

#endif
