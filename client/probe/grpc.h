/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC's health protocol, grpc.health.v1.Health/Check, over HTTP/2 with prior knowledge (RFC 9113):
 * one request on a connection of its own. Pure.
 *
 * The answer is in the message: SERVING, or not. Heads are skipped and not decoded, which needs no
 * table of HPACK (RFC 7541) and no Huffman code: a server without such a service, or with
 * another name for it, sends no message. All that comes is a task's, and hostile: of a
 * connection GRPC_BYTES_MAX bytes are read, the message is bounded, and whatever is no HTTP/2 ends
 * it.
 */
#ifndef PADDOCK_CLIENT_PROBE_GRPC_H
#define PADDOCK_CLIENT_PROBE_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

#define GRPC_PROTOCOL "h2" /* to a filter */

enum {
    GRPC_BYTES_MAX = 64 << 10,
    GRPC_FRAME_MAX = 16 << 10, /* of a payload: what we say we take */
    GRPC_MESSAGE_MAX = 1024,   /* of an answer */
    GRPC_TEXT_MAX = 512        /* of an authority, and of a service's name */
};

enum grpc_state { GRPC_OPEN, GRPC_SERVING, GRPC_FAILED };

struct grpc { /* all zeros is the beginning */
    uint8_t head[9];
    size_t head_n;
    uint8_t payload[GRPC_FRAME_MAX];
    size_t payload_n;
    uint8_t message[5 + GRPC_MESSAGE_MAX];
    size_t message_n;
    size_t bytes;
    bool settled; /* the first frame was one of settings */
    enum grpc_state state;
    char why[160]; /* of GRPC_FAILED */
};

/* Writes all that a client sends: texts of GRPC_TEXT_MAX at most. */
void grpc_ask(struct buf *b, const char *authority, const char *service, bool tls);
/* Takes bytes of the server. Adds to `reply` what it is to be answered meanwhile. */
enum grpc_state grpc_take(struct grpc *g, const uint8_t *p, size_t n, struct buf *reply);

#endif
