/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of an allocation, where its group asks for one of its own (mode none or bridge): made
 * by the warden before the first task starts, removed when the last one has ended, since then the
 * servers give its ports to others.
 */
#ifndef PADDOCK_CLIENT_ALLOC_NETWORK_H
#define PADDOCK_CLIENT_ALLOC_NETWORK_H

#include "client/alloc/alloc_runner.h"

extern const struct alloc_hook network_hook;

#endif
