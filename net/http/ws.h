/* SPDX-License-Identifier: Apache-2.0
 *
 * WebSocket connections (RFC 6455) over the HTTP server and client: the handshake of both sides,
 * messages, pings answered, the end. One message at a time of at most WS_MESSAGE_MAX bytes; an idle
 * connection costs no timer and no buffer (dead peers are TCP's to find).
 *
 * A `struct ws` belongs to its owner until ws_close() or on_close, whichever comes first; after
 * either nothing of it may be touched and no callback comes. Callbacks come on the loop, never from
 * inside ws_accept() or ws_connect().
 */
#ifndef PADDOCK_NET_HTTP_WS_H
#define PADDOCK_NET_HTTP_WS_H

#include "net/http/http.h"
#include "net/http/ws_frame.h"

struct ws;

struct ws_ops {
    void (*on_open)(void *arg); /* of ws_connect: the server agreed; may be NULL */
    void (*on_message)(void *arg, const void *p, size_t n); /* text or binary */
    void (*on_drain)(void *arg); /* less than STREAM_LOW_WATER is queued, after a write */
    /* Once: the peer closed (its code and reason), broke the protocol or has gone (WS_ABNORMAL), or
     * refused the handshake (code 0). `why` is never NULL. */
    void (*on_close)(void *arg, unsigned code, const char *why);
};

/* Is it a handshake that ws_accept() would answer? False: answered (400, 426; 499 when the client
 * has gone). Which pages may speak for whoever sits before a browser is the caller's to judge. */
bool ws_check(struct http_req *r);
/* Answers the handshake. NULL: answered by ws_check(). Takes over user and on_close of the request,
 * which is answered when the connection ends: `r`, and all it owns, is gone with the ws. */
struct ws *ws_accept(struct loop *l, struct http_req *r, const struct ws_ops *ops, void *arg);
/* `target` and headers as in struct http_ask. NULL: the address is none. */
struct ws *ws_connect(struct loop *l, const char *addr, const struct http_ask *ask,
                      const struct ws_ops *ops, void *arg, struct err *e);

/* One text message; it must be UTF-8. More than HTTP_STREAM_MAX queued bytes close the connection:
 * who produces much asks ws_queued() and waits for on_drain. */
void ws_send(struct ws *w, const void *p, size_t n);
size_t ws_queued(const struct ws *w);
/* Stops and resumes the coming of messages. */
void ws_read(struct ws *w, bool on);
/* Says goodbye and ends the connection. NULL is fine. */
void ws_close(struct ws *w, unsigned code, const char *reason);

#endif
