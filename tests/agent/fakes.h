/* SPDX-License-Identifier: Apache-2.0
 *
 * The other side of the routes: a table of RPC handlers that answer from constants, and a client role
 * of fakes (fakes.c defines the functions of client.h, server.h, config.h and jobspec.h that routes
 * call).
 */
#ifndef PADDOCK_TESTS_AGENT_FAKES_H
#define PADDOCK_TESTS_AGENT_FAKES_H

#include <stdbool.h>

#include "net/rpc.h"

extern const struct rpc_service fake_services[];
extern const size_t fake_services_n;
/* What the last request said. */
extern struct query_options fake_query;
extern char fake_text[256];
extern bool fake_canceled, fake_parked;

#define FAKE_ALLOC "11111111-2222-3333-4444-555555555555"

#endif
