/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's wire: a msgpack struct warden_request per packet of a SOCK_SEQPACKET unix socket, a
 * struct warden_response per answer, file descriptors beside it. A row of ops.def per request says
 * which fields it may and must carry and in which phase of a connection it is allowed; anything
 * else closes the connection (the agent's side is hostile). Pure.
 */
#ifndef PADDOCK_ISOLATION_LAUNCH_PROTO_H
#define PADDOCK_ISOLATION_LAUNCH_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "isolation/limits.h"

enum warden_op {
#define OP(nr, ID, name, must, may, phases, handler, stub, params, request) WARDEN_##ID = (nr),
#include "isolation/launch/ops.def"
    WARDEN_OP_END
};

/* To be raised when a request or an answer changes its meaning. An agent does not work with a
 * warden of another version: the first answer, to WARDEN_INFO, says which it is. */
enum { PROTO_VERSION = 11 };

/* The meaning of an fd of an answer. */
enum warden_fd {
    WARDEN_FD_ENDED = 1,
    WARDEN_FD_CGROUP = 2,
    WARDEN_FD_RECORD = 3,
    WARDEN_FD_FILE = 4,
    WARDEN_FD_COUNTERS = 5,
    WARDEN_FD_RUNS = 6,
    WARDEN_FD_KEEP = 7, /* three of them, to 9 */
    WARDEN_FD_PRESSURE = 10, /* three of them, to 12: processor, memory, disks */
    WARDEN_FD_BLOCKS = 13,
    WARDEN_FD_KEEP_BLOCK = 14,
    WARDEN_FD_EXEC =
        15, /* three of them, to 17: its input, output, error; with a terminal the second */
    WARDEN_FD_EXIT = 18,
    WARDEN_FD_HELPER = 19,
    WARDEN_FD_END = 20
};

/* Phases of a connection: only INFO opens it; a warden that stops starts nothing new. */
enum proto_phase {
    PROTO_HELLO = 1,
    PROTO_READY = 2,
    PROTO_STOPPING = 4,
    PROTO_SUSPECT = 8 /* no phase: of a row, see proto_suspect() */
};

const char *proto_op_name(uint64_t op); /* "launch"; "?" */
/* Says whether the request carries what a job says, and starts or changes something: a connection
 * lost with it may have been lost because of it. What ends a task, or looks, is none. */
bool proto_suspect(uint64_t op);

/* The request is allowed in this phase, carries what its row asks for and nothing else, and every
 * name, path and number is well-formed. -ERR_INVALID: the connection must be closed. */
int proto_check(const struct warden_request *r, enum proto_phase phase, struct err *e);
/* The parts, for tests and the planner. */
int proto_check_alloc_id(const char *s);
int proto_check_spec(const struct launch_spec *s, struct err *e);
/* "MAJOR:MINOR" of a disk. */
bool proto_parse_device(const char *s, unsigned *major, unsigned *minor);

/* Decodes and checks one packet. */
int proto_decode(const void *ctx, const void *p, size_t n, enum proto_phase phase,
                 struct warden_request **ret, struct err *e);

#endif
