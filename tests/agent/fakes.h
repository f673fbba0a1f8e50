/* SPDX-License-Identifier: Apache-2.0
 *
 * The other side of the routes: a table of RPC handlers that answer from constants, and a client role
 * of fakes (fakes.c defines the functions of client.h, server.h, config.h and jobspec.h that routes
 * call).
 */
#ifndef PADDOCK_TESTS_AGENT_FAKES_H
#define PADDOCK_TESTS_AGENT_FAKES_H

#include <stdbool.h>

#include "client/client.h"
#include "common/buf.h"
#include "net/rpc.h"

extern const struct rpc_service fake_services[];
extern const size_t fake_services_n;
/* The HTTP server that answers as node FAKE_NODE, asked through the server; other nodes there is no
 * way to. FAKE_FAR is an allocation of it, if it is asked there. */
extern struct http_server *fake_node;
#define FAKE_NODE "22222222-2222-3333-4444-555555555555"
#define FAKE_FAR "33333333-2222-3333-4444-555555555555"
/* The words of the last request. */
extern struct rpc_envelope fake_env;
extern char fake_text[256], fake_token[64];
extern bool fake_canceled, fake_parked;
/* How many allocations are listed: more bytes than one answer may have. Asked for those from
 * fake_fails_at on (0: never), the server is gone. */
enum { FAKE_ALLOCS = 150000 };
extern unsigned fake_fails_at;

/* The last command in a task: a test raises its events by hand. */
struct fake_exec {
    struct client_exec *x; /* NULL: none, or freed */
    const struct client_exec_events *events;
    void *arg;
    int write_rc; /* what client_exec_write() answers; -ERR_LIMIT takes nothing */
    struct buf in;
    bool input_closed, paused;
    int64_t rows, columns;
};
extern struct fake_exec fake_exec;

#define FAKE_ALLOC "11111111-2222-3333-4444-555555555555"

#endif
