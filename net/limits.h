/* SPDX-License-Identifier: Apache-2.0
 *
 * Every limit of net/, named. `make check-docs` holds paddock-limits(7) against this file: the
 * comment of each is its text there.
 */
#ifndef PADDOCK_NET_LIMITS_H
#define PADDOCK_NET_LIMITS_H

enum {
    /* --- connections --- */
    LISTENER_CONNS_MAX = 8192,     /* connections of a listener; more are answered 429 and closed */
    LISTENER_CONNS_PER_PEER = 100, /* HTTP connections of one address (http_max_conns_per_client) */
    LISTENER_LOOPBACK_FACTOR =
        8, /* times as many of a loopback address, which all of this machine share */
    LISTENER_FDS_KEPT = 64, /* file descriptors kept for all else; a connection is answered 429 */
    STREAM_BACKLOG = 256,   /* connections that wait to be accepted */
    STREAM_READ_SIZE = 64 << 10,   /* bytes of one read */
    STREAM_LOW_WATER = 64 << 10,   /* bytes queued below which more of a stream is made */
    STREAM_QUEUE_MAX = 64 << 20,   /* bytes queued to a peer; beyond, its connection is closed */
    STREAM_CONNECT_MS = 10 * 1000, /* looking up a name and connecting */
    STREAM_STALL_MS = 60 * 1000,   /* a peer to take STREAM_STALL_BYTES, or all that is queued */
    STREAM_STALL_BYTES = 64 << 10, /* bytes that a slow reader must take in that time */

    /* --- TLS --- */
    TLS_HANDSHAKE_MS = 10 * 1000, /* a handshake; then its connection is closed */
    TLS_HANDSHAKES = 8,           /* handshakes of one address at once; more wait */
    TLS_STEPS = 2,                /* steps of handshakes in a turn of the loop */
    TLS_TICKET_S = 60 * 60,       /* a session of HTTPS may be resumed */
    TLS_CHAIN_BYTES = 32 << 10,   /* bytes of the certificates that a peer presents */

    /* --- HTTP --- */
    HTTP_HEADER_BYTES_MAX = 32 << 10, /* bytes of request line and headers (431) */
    HTTP_HEADERS_MAX = 100,           /* headers (431) */
    HTTP_QUERY_PARAMS_MAX = 256,      /* query parameters (400) */
    HTTP_BODY_MAX = 16 << 20,         /* bytes of the body of a request about jobs (413) */
    HTTP_SMALL_BODY_MAX = 1 << 20,    /* bytes of the body of any other request (413) */
    HTTP_BODIES_MAX = 256 << 20,      /* bytes of all bodies that are held (503) */
    HTTP_ANSWERS_MAX = 256 << 20,     /* bytes of all answers that wait for their readers (503) */
    HTTP_PIPELINE_MAX = 64 << 10,     /* bytes kept that follow a request which is being answered */
    HTTP_TURN_MAX = 16,         /* pipelined requests of a connection before others have a turn */
    HTTP_STREAM_MAX = 4 << 20,  /* bytes queued of a streamed answer */
    WS_MESSAGE_MAX = 128 << 10, /* bytes of a WebSocket message (close code 1009) */
    HTTP_GZIP_MIN = 1024,       /* bytes from which on a body is compressed when asked for */
    HTTP_GZIP_OFFLOAD = 256 << 10, /* bytes from which on another thread does that */
    HTTP_HEADER_MS = 10 * 1000,    /* the first byte of a request to its last header (408) */
    HTTP_BODY_IDLE_MS = 15 * 1000, /* a pause within a body (408) */
    HTTP_BODY_MS = 120 * 1000,     /* a whole body (408) */
    HTTP_GIVE_WAY_MS = 100, /* a connection to send a request before it may give way to another */
    HTTP_KEEPALIVE_MS = 120 * 1000,   /* an idle connection; then it is closed */
    HTTP_LINGER_MS = 1000,            /* a peer to read a refusal; then its connection is closed */
    HTTP_CLIENT_BODY_MAX = 256 << 20, /* bytes of an answer that is collected, as a client */

    /* --- RPC --- */
    RPC_FRAME_MAX = 16 << 20,       /* bytes of a call or an answer */
    RPC_LARGE = 64 << 10,           /* bytes of a request that a worker decodes */
    RPC_ENVELOPE_MAX = 32 << 10,    /* bytes of region, namespace and token of a call */
    RPC_PARTIAL_MAX = 256 << 20,    /* bytes of all calls that are half received */
    RPC_FRAME_MS = 120 * 1000,      /* the rest of a call that has begun */
    RPC_INFLIGHT_MAX = 4096,        /* calls open on a connection */
    RPC_INFLIGHT_LOCAL_MAX = 65536, /* calls open within the process */
    RPC_STREAMS_MAX = 256,          /* streams open each way on a connection */
    RPC_LONG_STREAMS_MAX = 192, /* logs and files read at once of one node; the rest is for exec */
    RPC_STREAMS_LOCAL_MAX = 8192,  /* streams open each way within the process */
    RPC_STREAM_WINDOW = 256 << 10, /* bytes of a stream that its reader has not taken yet */
    RPC_STREAM_FRAME = 64 << 10,   /* bytes of a stream that are sent before another has its turn */
    RPC_CONNS_MAX = 8192,          /* connections */
    RPC_CONNS_PER_PEER = 256,      /* connections of one address */
    RPC_IDENTIFY_MS = 10 * 1000,   /* a new connection to name its protocol */
    RPC_TIMEOUT_DEFAULT_MS = 30 * 1000,  /* a call that names no time */
    RPC_TIMEOUT_MAX_MS = 15 * 60 * 1000, /* any call */
    RPC_PAUSE_BYTES = 4 << 20,           /* bytes of answers queued at which calls are not read */
    RPC_DECODE_FACTOR = 16,              /* times its size that a frame may take in memory */
    RPC_DECODE_EXTRA = 1 << 20,          /* bytes on top of that */
    RPC_DECODE_MAX = 128 << 20,          /* bytes of memory of any frame */
    RPC_BACKOFF_MIN_MS = 50,             /* the first pause before connecting again; it doubles */
    RPC_BACKOFF_MAX_MS = 2 * 1000,       /* such a pause at most */
    RPC_PATIENCE_MS = 5 * 1000,          /* a call to wait for a connection that fails */
    RPC_CONNECT_MS = 3 * 1000, /* connecting, before another server is tried; to a name once */
    RPC_SERVERS_MAX = 16,      /* servers known beside those of the configuration */
    RPC_REBALANCE_MS =
        2 * 60 * 1000, /* after one more server is known: the first moment to change */
    RPC_REBALANCE_MAX_MS = 10 * 60 * 1000 /* ... and the last, but while exec or logs stream */
};

#endif
