/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to the HTTP server: a connection and its open request. server.c owns life and timers,
 * parse.c turns bytes into requests, reply.c sends answers.
 *
 * A connection handles one request at a time: READ_HEAD -> READ_BODY -> OPEN (with the handler) ->
 * READ_HEAD ... -> CLOSING. While one is OPEN, bytes that follow are kept (up to HTTP_PIPELINE_MAX)
 * and the end of the connection is noticed. A request outlives its connection until it is answered.
 */
#ifndef PADDOCK_NET_HTTP_CONN_INT_H
#define PADDOCK_NET_HTTP_CONN_INT_H

#include <llhttp.h>

#include "net/http/http.h"
#include "net/http/scan_int.h"
#include "net/stream.h"

#define HTTP_LAST_CHUNK "0\r\n\r\n"

enum http_state { HTTP_READ_HEAD, HTTP_READ_BODY, HTTP_OPEN, HTTP_CLOSING };

struct http_request;

struct http_conn {
    struct http_server *server;
    struct stream *stream;
    struct http_conn *prev, *next;
    enum http_state state;
    struct buf in;    /* bytes not parsed yet */
    size_t scanned;   /* of them, what http_head_find has seen */
    llhttp_t parser;
    bool complete;    /* llhttp saw the end of the message */
    bool eof;         /* the client sends no more */
    bool in_head;     /* the header timer runs */
    bool overload;    /* HTTP_BODIES_MAX is reached */
    bool too_large;   /* a chunk is more than the body may be */
    bool expect;      /* waits for 100 Continue */
    bool choked;      /* the client does not read its answers: no further request is taken */
    bool processing;  /* inside http_process: no recursion */
    struct http_request *req; /* being read or open */
    int64_t deadline_ms, body_deadline_ms;
    int64_t since_ms; /* it waits for the client to send a request, or the rest of one */
    int64_t timer_at_ms;
    struct timer *timer;
    size_t owed;          /* answer bytes that wait for the peer, as counted in the server */
    struct timer *resume; /* zero delay: parse what is in `in` */
};

struct http_request {
    struct http_req pub; /* first */
    struct http_conn *conn; /* NULL: the client has gone */
    struct http_server *server;
    size_t charged; /* of server->body_bytes */
    struct loop *loop;
    struct buf body;
    bool http10, keep_alive, gzip_ok;
    bool answered, streaming, chunked, told; /* told: on_close was called */
    bool muted; /* the stream was refused; what its producer writes is dropped */
    struct http_pair *out;   /* headers of the answer */
    size_t n_out;
    void (*pull)(void *user);
    void (*on_data)(void *user, const void *p, size_t n); /* of a tunnel */
    struct timer *pull_timer;
    /* Headers, parameters, the head as it came, the decoded target: malloc'ed in one piece; NULL
     * once the handler has read it (http_forget), since a query waits for minutes and many do. */
    struct http_pair *room;
};

struct http_server {
    struct loop *loop;
    struct http_server_config cfg;
    struct listener **listeners;
    size_t n_listeners;
    struct http_conn *conns;
    size_t n_conns;
    size_t body_bytes; /* of all requests */
    size_t answer_bytes; /* owed on all connections */
    size_t refs; /* the owner, every connection and every request */
    bool closed;
    char date[40]; /* cached Date header */
    int64_t date_s;
};

/* server.c */
void http_server_unref(struct http_server *s);
void http_conn_deadline(struct http_conn *c, int64_t delay_ms); /* < 0: none */
/* Answers a malformed message and closes the connection. */
void http_conn_refuse(struct http_conn *c, const struct http_bad *bad);
/* Counts what is queued on the connection, from STREAM_LOW_WATER on. */
void http_conn_owes(struct http_conn *c);
/* The client is gone for the open request: tells its handler once. */
void http_conn_tell(struct http_conn *c);
/* Parses on in a later turn. */
void http_conn_later(struct http_conn *c);
/* The answer is complete: the next request, or the end. */
void http_conn_next(struct http_conn *c, bool keep_alive);
const char *http_server_date(struct http_server *s);

/* parse.c */
void http_process(struct http_conn *c);
void http_feed_body(struct http_conn *c, const uint8_t *p, size_t n);

/* reply.c */
const char *http_status_text(int status);
void http_request_drop(struct http_request *r); /* one that no handler has seen */

#endif
