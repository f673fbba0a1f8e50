/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of the net room, named. Documented in paddock-api(7).
 */
#ifndef PADDOCK_NET_LIMITS_H
#define PADDOCK_NET_LIMITS_H

enum {
    /* streams */
    STREAM_READ_SIZE = 64 << 10,       /* one shared read buffer per loop */
    STREAM_LOW_WATER = 64 << 10,       /* a producer is asked below this many queued bytes */
    STREAM_QUEUE_MAX = 64 << 20,       /* more queued bytes than this close the stream */
    STREAM_CONNECT_MS = 10 * 1000,     /* name look-up and connect */
    STREAM_STALL_MS = 60 * 1000,       /* queued bytes that make no progress for so long: closed */
    STREAM_BACKLOG = 256,
    LISTENER_CONNS_MAX = 8192,         /* all peers of one listener */
    LISTENER_CONNS_PER_PEER = 100,     /* limits.http_max_conns_per_client */

    /* HTTP, both directions */
    HTTP_HEADER_BYTES_MAX = 32 << 10,  /* request line and headers */
    HTTP_HEADERS_MAX = 100,
    HTTP_QUERY_PARAMS_MAX = 256,
    HTTP_BODY_MAX = 16 << 20,          /* default; a server may say less per route */
    HTTP_BODIES_MAX = 256 << 20,       /* all bodies that one server holds; beyond: 503 */
    HTTP_PIPELINE_MAX = 64 << 10,      /* bytes kept that follow an open request */
    HTTP_STREAM_MAX = 4 << 20,         /* a streamed response may queue so much */
    HTTP_GZIP_MIN = 1024,              /* smaller bodies are not compressed */
    HTTP_GZIP_OFFLOAD = 256 << 10,     /* larger bodies are compressed on a worker thread */
    HTTP_HEADER_MS = 10 * 1000,        /* from the first byte of a request to its last header */
    HTTP_BODY_IDLE_MS = 15 * 1000,     /* no byte of the body for so long */
    HTTP_BODY_MS = 120 * 1000,         /* the whole body */
    HTTP_KEEPALIVE_MS = 120 * 1000,    /* an idle connection */
    HTTP_LINGER_MS = 1000,             /* after an error answer: read and drop, then close */
    HTTP_CLIENT_BODY_MAX = 256 << 20,  /* a collected response */

    /* RPC */
    RPC_FRAME_MAX = 16 << 20,          /* body of one frame */
    RPC_INFLIGHT_MAX = 4096,           /* calls open on one connection */
    RPC_INFLIGHT_LOCAL_MAX = 65536,    /* in process: as many as server watches */
    RPC_TIMEOUT_DEFAULT_MS = 30 * 1000,
    RPC_TIMEOUT_MAX_MS = 15 * 60 * 1000,
    RPC_BACKOFF_MIN_MS = 50,           /* reconnect, doubled and jittered */
    RPC_BACKOFF_MAX_MS = 5 * 1000,
    RPC_PATIENCE_MS = 5 * 1000,        /* a call waits so long for a connection that fails */
    RPC_PAUSE_BYTES = 4 << 20,         /* queued answers at which a connection is not read */
    RPC_DECODE_EXTRA = 64 << 10,       /* plus so much */
    RPC_IDENTIFY_MS = 10 * 1000,       /* a new connection must name its protocol within */
    RPC_CONNS_MAX = 8192,
    RPC_CONNS_PER_PEER = 256,
    RPC_DECODE_FACTOR = 16             /* a decoded frame may take so many times its own size */
};

#endif
