/* SPDX-License-Identifier: Apache-2.0
 *
 * A look at a service: a connection over TCP, a request of HTTP and its answer, or a call of gRPC's
 * health protocol (grpc.h). What is looked at is a task's, and hostile: of an answer
 * PROBE_OUTPUT_MAX bytes are read, whatever it does it is over in its time. Refused are, also where
 * a name leads there, addresses of links (169.254.0.0/16 with the metadata services of clouds,
 * fe80::/10, fd00:ec2::254) and, on this machine, the agent's own ports.
 *
 * Redirects are followed on the same host and port, PROBE_REDIRECTS_MAX times; one to elsewhere is
 * the answer, as its status says.
 */
#ifndef PADDOCK_CLIENT_PROBE_PROBE_H
#define PADDOCK_CLIENT_PROBE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/http/http.h"
#include "net/loop.h"

enum {
    PROBE_OUTPUT_MAX = 3 << 10, /* bytes of an answer that are kept */
    PROBE_REDIRECTS_MAX = 10,
    PROBES_MAX = 256, /* under way at once; the others wait a little */
    PROBE_PORTS_MAX = 3 /* of the agent: HTTP, RPC, gossip */
};

enum probe_kind { PROBE_TCP, PROBE_HTTP, PROBE_GRPC };

struct probe_ask { /* copied */
    const char *address; /* numeric, or a name */
    int64_t port;
    int64_t timeout_ms;
    enum probe_kind kind;
    bool tls, skip_verify; /* but of TCP */
    const char *service;   /* of gRPC; NULL: the server as a whole. The rest is of HTTP */
    const char *method, *path; /* NULL: GET, "/"; the path is a reference of RFC 3986 */
    const char *body;
    const struct http_pair *headers; /* Host among them is honoured */
    size_t n_headers;
};

struct probe_answer {
    bool ok;
    int status;         /* of HTTP; 0: none came */
    const char *output; /* printable UTF-8; valid during the call */
};

/* Makes text of bytes that harms no terminal, of PROBE_OUTPUT_MAX at most; owned by ctx. */
const char *probe_text(const void *ctx, const char *bytes, size_t n);

struct prober;
struct probe;

/* Never looks at these ports of this machine; 0: none. */
struct prober *prober_new(struct loop *loop, const uint16_t ports[PROBE_PORTS_MAX]);
void prober_free(struct prober *pr); /* when no probe is under way; NULL is fine */

typedef void probe_done(void *arg, const struct probe_answer *a);
/* `done` comes once, never from inside the call. */
struct probe *probe_start(struct prober *pr, const struct probe_ask *ask, probe_done *done,
                          void *arg);
/* `done` does not come any more. Not after it came; NULL is fine. */
void probe_cancel(struct probe *p);

#endif
