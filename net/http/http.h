/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP/1.1 (RFC 9110, 9112): a strict server and a small client, over TCP or unix sockets.
 *
 * --- Server ---
 * One handler gets every request, whole, on the loop thread. It answers exactly once, then or
 * later, with http_reply*() or http_stream_start() ... http_stream_end(): also when the client has
 * gone meanwhile, in which case the answer is dropped. A `struct http_req` is a talloc context and
 * lives until that answer is complete, so a late completion never meets freed memory. A handler
 * that parks sets `on_close` to learn that the client went away, cancels its work, and still
 * answers. Malformed input never reaches the handler: it gets a 4xx text and the connection closes.
 */
#ifndef PADDOCK_NET_HTTP_HTTP_H
#define PADDOCK_NET_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/err.h"
#include "net/filter.h"
#include "net/limits.h"
#include "net/loop.h"

enum http_method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_OPTIONS,
    METHOD_PATCH,
    METHOD_OTHER /* valid, not known here: answer 405 */
};

const char *http_method_name(enum http_method m);

enum { HTTP_NOBODY = 499 }; /* the status of an answer to a client that has gone */

struct http_pair {
    const char *k;
    const char *v;
};

struct http_req {
    enum http_method method;
    const char *target; /* as sent */
    const char *path;   /* percent-decoded, no NUL, valid UTF-8, starts with '/' */
    struct http_pair *query; /* decoded, in order of appearance */
    size_t n_query;
    struct http_pair *headers; /* names lower case, values trimmed, in order */
    size_t n_headers;
    const char *body; /* NUL-terminated; never NULL */
    size_t body_len;
    const char *peer; /* "127.0.0.1:41234" or "unix" */
    void *user;       /* the handler's */
    bool ends_well;   /* a stream is whole wherever it ends: it gets its last chunk at a close */
    /* Asked with the status before the first byte of the answer goes out, once; false with words:
     * that is answered 503 with them, and a stream or tunnel ends. NULL: nobody asks. */
    bool (*on_answer)(void *arg, int status, struct err *e);
    void *on_answer_arg;
    void (*on_close)(
        void *user); /* the client has gone; called at most once, never after the answer */
};

const char *http_query(const struct http_req *r, const char *name);  /* first value; NULL: absent */
const char *http_header(const struct http_req *r, const char *name); /* name in lower case */

typedef void http_handler(void *arg, struct http_req *req);

struct http_server_config {
    http_handler *handler;
    void *arg;
    /* Largest body this route takes, asked when headers are complete; NULL: HTTP_BODY_MAX. */
    size_t (*body_max)(void *arg, enum http_method m, const char *path);
    const struct http_pair *headers; /* added to every response; borrowed */
    size_t n_headers;
    size_t conns_max;      /* of a listener; 0: LISTENER_CONNS_MAX */
    size_t conns_all;      /* of all; more are closed; 0: no limit of its own */
    size_t conns_per_peer; /* 0: LISTENER_CONNS_PER_PEER; SIZE_MAX: unlimited */
    size_t conns_per_loopback; /* of 127.0.0.1 and the like; 0: conns_per_peer */
    int64_t header_ms, body_idle_ms; /* 0: HTTP_HEADER_MS, HTTP_BODY_IDLE_MS */
    const struct filter *filter; /* of connections over TCP; NULL: plain; borrowed */
    int64_t give_way_ms; /* 0: HTTP_GIVE_WAY_MS */
};

#define HTTP_PROTOCOL "http/1.1" /* to a filter */

struct http_server;
struct stream;

/* Stays until http_server_close; the config is copied. */
struct http_server *http_server_new(struct loop *l, const struct http_server_config *cfg);
/* Listens on "host" + port (0: any free one) or "unix:///path"; may be called several times. */
int http_server_listen(struct http_server *s, const char *addr, uint16_t port, struct err *e);
/* Serves on a socket of unix that listens and is the door's from then on; `name` is the peer of its
 * requests. A door that is closed leaves its connections; one of a closed server lets nobody in. */
struct http_door;
struct http_door *http_door_open(struct http_server *s, int fd, const char *name);
void http_door_close(struct http_door *d);
uint16_t http_server_port(const struct http_server *s); /* of the first TCP listener */
/* A connection that came in some other way; `st` is the server's from now on. */
void http_server_serve(struct http_server *s, struct stream *st);
/* Stops listening and closes every connection (on_close is called for open requests, which must
 * still be answered). `s` is gone for the caller. */
void http_server_close(struct http_server *s);
size_t http_server_conns(const struct http_server *s);

/* Target, path, parameters and headers of a request that is answered later are not looked at any
 * more. */
void http_forget(struct http_req *r);

/* Header of the answer; before it is sent. Values with control characters are dropped. */
void http_header_add(struct http_req *r, const char *name, const char *value);
void http_reply(struct http_req *r, int status, const char *content_type, const void *p, size_t n);
/* Takes the memory of `b` (which is empty afterwards); a buffer in error answers 500. */
void http_reply_buf(struct http_req *r, int status, const char *content_type, struct buf *b);
/* Plain text error. */
void http_fail(struct http_req *r, int status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A chunked answer of unknown length. `pull(user)` says that less than STREAM_LOW_WATER is queued:
 * it comes, in a later turn, after the start and after writes (coalesced); the producer writes
 * then, or later when it has something. Writing over HTTP_STREAM_MAX queued bytes closes the
 * connection. After on_close writes are dropped and no pull comes; the producer calls
 * http_stream_end all the same. */
void http_stream_start(struct http_req *r, int status, const char *content_type,
                       void (*pull)(void *user));
void http_stream_write(struct http_req *r, const void *p, size_t n);
void http_stream_write_buf(struct http_req *r, struct buf *b); /* takes its memory */
size_t http_stream_queued(const struct http_req *r);
bool http_closed(const struct http_req *r); /* the client has gone */
void http_stream_end(struct http_req *r);
/* The same where the rest is missing: the connection ends without a last chunk, so that the client
 * knows. */
void http_stream_cut(struct http_req *r);

/* A tunnel: answers 101, and the connection carries bytes of another protocol from then on, both
 * ways. The headers that go with it (Upgrade, ...) were added before. The client's bytes come to
 * `on_data`, on the loop; writing, `pull` and the end are those of a stream, without its framing; a
 * client that sends no more has gone (on_close). After http_tunnel_read(r, false) what is on its
 * way still comes, at most HTTP_PIPELINE_MAX and one read. */
void http_tunnel_start(struct http_req *r, void (*on_data)(void *user, const void *p, size_t n),
                       void (*pull)(void *user));
void http_tunnel_read(struct http_req *r, bool on);

/* --- Client --- */
/* One connection per client object, kept alive; requests are queued and sent one after another. A
 * streaming request (on_body) holds the connection until it ends: use another client beside it.
 */
struct http_client;

struct http_resp {
    int status;
    const struct http_pair *headers; /* names lower case */
    size_t n_headers;
    const char *body; /* collected; "" when on_body took it; NUL-terminated */
    size_t body_len;
};

struct http_ask {
    const char *method; /* "GET" */
    const char *target; /* path and query, already escaped: "/v1/job/a%2Fb?pretty" */
    const struct http_pair *headers;
    size_t n_headers;
    const char *host; /* for the header Host; NULL: the address */
    size_t body_enough; /* the exchange is over with so many bytes of the body; 0: with all of it */
    const void *body; /* copied */
    size_t body_len;
    int body_fd; /* where `body` is NULL and body_len is not 0: a file that has so many bytes, until
                    `done` */
    const char *content_type; /* NULL: none */
    int64_t timeout_ms;       /* whole exchange; 0: no limit */
    const struct dialer *dialer; /* of http_fetch() and ws_connect(), but for the loop; NULL: plain
                                  */
    /* Given: told of a 200, before its body, which may be long in coming. `r` has status and
     * headers. */
    void (*on_head)(void *arg, const struct http_resp *r);
    /* Given: the body arrives here piece by piece (for statuses below 300), and false stops the
     * exchange (done gets -ERR_CANCELED). `r` has status and headers. */
    bool (*on_body)(void *arg, const struct http_resp *r, const void *p, size_t n);
    /* Given: a 101 makes the connection a tunnel, told here. What the server sends then comes to
     * on_body, http_client_write() sends, and `done` comes at its end (e NULL: the server has ended
     * it). False stops the exchange. */
    bool (*on_tunnel)(void *arg, const struct http_resp *r);
    void (*on_drain)(
        void *arg); /* of a tunnel: its queue fell below STREAM_LOW_WATER; may be NULL */
    /* Exactly once, never from inside http_send. e NULL: r is the response (any status). */
    void (*done)(void *arg, const struct err *e, const struct http_resp *r);
    void *arg;
};

/* "http://host:port", "host:port", "unix:///path", and with a filter "https://host:port", for which
 * alone it is used; who is wanted there is the host, where the dialer names nobody. Copied. */
struct http_client *http_client_new(const struct dialer *d, const char *addr, struct err *e);
/* Over a connection that there is, and no other when that has gone; `st` is the client's from now
 * on. */
struct http_client *http_client_over(struct loop *l, struct stream *st);
/* Open exchanges complete with -ERR_CANCELED before this returns. Fine inside done(), not inside
 * on_body (return false there). */
void http_client_close(struct http_client *c);
void http_send(struct http_client *c, const struct http_ask *ask);
/* Stops and resumes reading of the response, so that on_body does not outrun its consumer. */
void http_client_read(struct http_client *c, bool on);
/* Writes to a tunnel. Takes the memory of `b`; dropped where there is none any more. */
void http_client_write(struct http_client *c, struct buf *b);
/* Ends what is sent by a tunnel: end of file to the server, behind what was written; it may go on
 * sending. */
void http_client_end(struct http_client *c);
size_t http_client_queued(const struct http_client *c);

/* Synchronous, for the CLI: runs a loop of its own. `ask->done` is not used. The response is owned
 * by ctx. -ERR_CLOSED and friends when there was none. */
int http_fetch(const void *ctx, const char *addr, const struct http_ask *ask,
               struct http_resp **ret, struct err *e);

const char *http_resp_header(const struct http_resp *r, const char *name);
/* Percent-encodes everything but unreserved characters (keep_slash: and '/'). */
void http_escape(struct buf *out, const char *s, bool keep_slash);

#endif
