/* SPDX-License-Identifier: Apache-2.0
 *
 * The side of a helper's own (helper.h): its request, which comes in a packet, or in a file whose
 * descriptor comes with one where it is larger; and its report.
 */
#ifndef PADDOCK_ISOLATION_LAUNCH_HELPER_TALK_H
#define PADDOCK_ISOLATION_LAUNCH_HELPER_TALK_H

#include "codec/codec.h"
#include "common/buf.h"
#include "common/err.h"

/* *ret is of type `t`, owned by ctx. -ERR_CLOSED: there is nobody who asks. */
int helper_receive(const void *ctx, const struct type *t, void **ret, struct err *e);
/* Returns the status to exit with. */
int helper_report(const struct buf *b);

#endif
