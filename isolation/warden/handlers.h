/* SPDX-License-Identifier: Apache-2.0
 *
 * The handlers of requests: one for each row of launch/ops.def, in the file that its name begins
 * with.
 */
#ifndef PADDOCK_ISOLATION_WARDEN_HANDLERS_H
#define PADDOCK_ISOLATION_WARDEN_HANDLERS_H

#include "isolation/warden/warden.h"

/* A handler: `q` has passed proto_check(), so all of it is well-formed and what the row asks for is
 * there; it is the caller's, and gone after the call. It answers `to` once, by loop_answer() or
 * loop_refuse(), in the call or later. Whether the agent may ask for this (the policy) is the
 * handler's to find out. */
#define OP(nr, ID, name, must, may, phases, handler, stub, params, request)                        \
    void handler(struct warden *w, struct waiter to, const struct warden_request *q);
#include "isolation/launch/ops.def"

#endif
