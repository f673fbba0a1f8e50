/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes, see probe.h. Each is a chain of hops: connect, look where that led, ask, and go on where
 * the answer is a redirect. In this order: the end of a probe; the text of an answer; redirects;
 * hops; making.
 */
#include "client/probe/probe.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>
#include <sys/socket.h>

#include "client/probe/grpc.h"
#include "common/duration.h"
#include "common/err.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/addr.h"
#include "net/stream.h"
#include "net/tls/tls.h"

enum { PROBE_WAIT_MS = 50 }; /* for others to end, where there are too many */

#define PROBE_IS_AGENT "nomad: checks of the agent itself, on port %d, are refused"

struct prober {
    struct loop *loop;
    struct tls *tls[2]; /* that verifies, that does not; made when they are needed */
    uint16_t ports[PROBE_PORTS_MAX]; /* of the agent */
    size_t running;
};

struct probe { /* a talloc context of its own */
    struct prober *pr;
    struct probe_ask ask;
    const char *host; /* for the header; NULL: the address */
    const char *path; /* of this hop */
    bool plain_get;   /* after a redirect that drops method and body */
    int hops;
    struct timer *timer; /* the end of its time, or its beginning */
    struct stream *stream; /* until it is the HTTP client's */
    struct http_client *http;
    struct grpc *grpc; /* what came of a call; NULL: none was made */
    struct tls *tls; /* held as long as its stream lives */
    probe_done *done;
    void *arg;
    bool counted, over;
};

static void probe_hop(struct probe *p);

/* --- its end --- */

static void
probe_free_if_over(struct probe *p)
{
    if (!p->over || p->stream)
        return;
    tls_unref(p->tls);
    talloc_free(p);
}

/* Ends what is under way; the memory goes with the stream. */
static void
probe_end(struct probe *p)
{
    p->over = true;
    p->done = NULL;
    p->pr->running -= p->counted;
    timer_stop(TAKE(p->timer));
    http_client_close(TAKE(p->http));
    if (p->stream)
        stream_close(p->stream);
    probe_free_if_over(p);
}

static void
probe_finish(struct probe *p, bool ok, int status, const char *output)
{
    probe_done *done = p->done;
    void *arg = p->arg;
    auto_mem void *tmp = mem_ctx("probe");
    const struct probe_answer a = {ok, status, mem_strdup(tmp, output)};
    probe_end(p);
    done(arg, &a);
}

__attribute__((format(printf, 2, 3))) static void
probe_fail(struct probe *p, const char *fmt, ...)
{
    va_list ap;
    auto_mem void *tmp = mem_ctx("probe");
    va_start(ap, fmt);
    const char *why = mem_vprintf(tmp, fmt, ap);
    va_end(ap);
    probe_finish(p, false, 0, why);
}

static void
on_late(void *arg)
{
    struct probe *p = arg;
    char text[DURATION_TEXT];
    p->timer = NULL;
    probe_fail(p, "nomad: no answer within %s",
               duration_format(p->ask.timeout_ms * NS_PER_MS, text));
}

/* --- answers --- */

const char *
probe_text(const void *ctx, const char *body, size_t n)
{
    n = n < PROBE_OUTPUT_MAX ? n : PROBE_OUTPUT_MAX;
    char *s = mem_strndup(ctx, body, n);
    s[utf8_cut(s, n)] = 0;
    bool text = utf8_valid(s, strlen(s));
    for (char *c = s; *c && !text; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    str_tame(s, true);
    return s;
}

/* --- redirects --- */

static bool
probe_redirects(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Says whether an URL's authority is where this probe looks. */
static bool
probe_is_here(const struct probe *p, const char *authority, size_t n, bool tls)
{
    struct addr a;
    struct err none = ERR_INIT;
    auto_mem void *tmp = mem_ctx("redirect");
    if (addr_parse(mem_strndup(tmp, authority, n), tls ? 443 : 80, &a, &none) < 0)
        return false;
    return !a.is_unix && a.port == p->ask.port && strcasecmp(a.host, p->ask.address) == 0;
}

/* The path that a reference leads to, from that of this hop; owned by p. NULL: it leads elsewhere.
 */
static const char *
probe_location(struct probe *p, const char *to)
{
    const char *rest = to;
    if (str_prefix(to, p->ask.tls ? "https:" : "http:"))
        rest = strchr(to, ':') + 1;
    if (str_prefix(rest, "//")) {
        size_t n = strcspn(rest + 2, "/?#");
        if (!probe_is_here(p, rest + 2, n, p->ask.tls))
            return NULL;
        rest += 2 + n;
        return mem_printf(p, "%s%.*s", rest[0] == '/' ? "" : "/", (int)strcspn(rest, "#"), rest);
    }
    if (rest != to || to[strspn(to, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "+-.")] == ':')
        return NULL; /* another scheme */
    if (to[0] == '/')
        return mem_strndup(p, to, strcspn(to, "#"));
    size_t dir = strcspn(p->path, "?");
    while (dir > 0 && p->path[dir - 1] != '/')
        dir--;
    return mem_printf(p, "%.*s%.*s", (int)dir, p->path, (int)strcspn(to, "#"), to);
}

/* False: it leads nowhere that is looked at. */
static bool
probe_follow(struct probe *p, const struct http_resp *r)
{
    const char *to = http_resp_header(r, "location");
    const char *path = to ? probe_location(p, to) : NULL;
    if (!path)
        return false;
    if (++p->hops > PROBE_REDIRECTS_MAX) {
        probe_fail(p, "nomad: stopped after %d redirects", PROBE_REDIRECTS_MAX);
        return true;
    }
    p->plain_get = p->plain_get || (r->status != 307 && r->status != 308);
    p->path = path;
    http_client_close(TAKE(p->http));
    probe_hop(p);
    return true;
}

/* --- hops --- */

static void
on_answer(void *arg, const struct err *e, const struct http_resp *r)
{
    struct probe *p = arg;
    if (p->over)
        return;
    if (e) {
        probe_fail(p, "nomad: %s", e->text);
        return;
    }
    if (probe_redirects(r->status) && probe_follow(p, r))
        return;
    auto_mem void *tmp = mem_ctx("probe");
    const char *text = probe_text(tmp, r->body, r->body_len);
    if (r->status == 200)
        text = "nomad: http ok";
    else if (probe_redirects(r->status))
        text = mem_printf(tmp, "nomad: redirect to \"%s\" is not followed",
                          probe_text(tmp, str_or(http_resp_header(r, "location"), ""), 512));
    probe_finish(p, r->status < 400, r->status, text);
}

static void
probe_request(struct probe *p)
{
    struct stream *st = TAKE(p->stream);
    auto_mem void *tmp = mem_ctx("probe");
    char host[ADDR_TEXT];
    struct addr a = {.port = (uint16_t)p->ask.port};
    str_copy(a.host, sizeof(a.host), p->ask.address);
    struct http_pair *headers = mem_array(tmp, struct http_pair, p->ask.n_headers + 2);
    size_t n = 0;
    bool named = false;
    for (size_t i = 0; i < p->ask.n_headers; i++) {
        named = named || strcasecmp(p->ask.headers[i].k, "user-agent") == 0;
        headers[n++] = p->ask.headers[i];
    }
    if (!named)
        headers[n++] = (struct http_pair){"User-Agent", "Paddock"};
    headers[n++] = (struct http_pair){"Connection", "close"};
    const char *body = p->plain_get ? NULL : p->ask.body;
    bool head = strcmp(p->ask.method, "HEAD") == 0;
    const struct http_ask ask = {.method = p->plain_get && !head ? "GET" : p->ask.method,
                                 .target = p->path,
                                 .headers = headers,
                                 .n_headers = n,
                                 .host = p->host ? p->host : addr_format(&a, host),
                                 .body = body,
                                 .body_len = body ? strlen(body) : 0,
                                 .body_enough = PROBE_OUTPUT_MAX,
                                 .done = on_answer,
                                 .arg = p};
    p->http = http_client_over(p->pr->loop, st);
    http_send(p->http, &ask);
}

/* Says whether it is an address of this machine: no other can be bound to. */
static bool
probe_is_local(const char *host)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    bool four = inet_pton(AF_INET, host, &v4.sin_addr) == 1;
    if (!four && inet_pton(AF_INET6, host, &v6.sin6_addr) != 1)
        return false;
    auto_fd int fd = socket(four ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *sa = four ? (const void *)&v4 : (const void *)&v6;
    return fd < 0 || bind(fd, sa, four ? sizeof(v4) : sizeof(v6)) == 0;
}

static bool
probe_is_agent(const struct probe *p, const char *host)
{
    bool named = false;
    for (size_t i = 0; i < PROBE_PORTS_MAX; i++)
        named = named || p->pr->ports[i] == p->ask.port;
    return named && probe_is_local(host);
}

static void
probe_call(struct probe *p)
{
    struct buf b = BUF_INIT(8 << 10);
    char host[ADDR_TEXT];
    struct addr a = {.port = (uint16_t)p->ask.port};
    str_copy(a.host, sizeof(a.host), p->ask.address);
    p->grpc = mem_new(p, struct grpc);
    grpc_ask(&b, addr_format(&a, host), p->ask.service, p->ask.tls);
    stream_write(p->stream, &b, 1);
    stream_read(p->stream, true);
}

static void
on_reached(void *arg)
{
    struct probe *p = arg;
    struct addr a;
    stream_reached(p->stream, &a);
    if (p->over)
        return;
    if (addr_is_of_link(a.host))
        probe_fail(p, "nomad: checks of addresses of links, as %s, are refused", a.host);
    else if (probe_is_agent(p, a.host))
        probe_fail(p, PROBE_IS_AGENT, (int)p->ask.port);
    else if (p->ask.kind == PROBE_HTTP)
        probe_request(p);
    else if (p->ask.kind == PROBE_GRPC)
        probe_call(p);
    else
        probe_finish(p, true, 0, "nomad: tcp ok");
}

static void
on_unreached(void *arg, int code)
{
    struct probe *p = arg;
    char text[ADDR_TEXT];
    struct addr a = {.port = (uint16_t)p->ask.port};
    auto_mem void *tmp = mem_ctx("probe");
    const char *why = mem_strdup(tmp, str_or(stream_why(p->stream), err_name(code)));
    str_copy(a.host, sizeof(a.host), p->ask.address);
    p->stream = NULL;
    if (p->over)
        probe_free_if_over(p);
    else if (p->grpc)
        probe_fail(p, "nomad: grpc: the connection was closed before an answer");
    else
        probe_fail(p, "nomad: %s: %s", addr_format(&a, text), why);
}

static void
on_bytes(void *arg, const uint8_t *b, size_t n)
{
    struct probe *p = arg;
    struct buf reply = BUF_INIT(2 * GRPC_BYTES_MAX);
    if (p->over || !p->grpc)
        return;
    enum grpc_state is = grpc_take(p->grpc, b, n, &reply);
    if (is == GRPC_OPEN && reply.len > 0)
        stream_write(p->stream, &reply, 1);
    buf_done(&reply);
    if (is == GRPC_SERVING)
        probe_finish(p, true, 0, "nomad: grpc ok");
    else if (is == GRPC_FAILED)
        probe_fail(p, "nomad: grpc: %s", p->grpc->why);
}

static const struct stream_ops probe_ops = {
    .on_connect = on_reached, .on_data = on_bytes, .on_close = on_unreached};

static void
probe_hop(struct probe *p)
{
    struct addr a = {.port = (uint16_t)p->ask.port};
    const char *protocol = p->ask.kind == PROBE_GRPC ? GRPC_PROTOCOL : HTTP_PROTOCOL;
    struct stream_way way = {.name = p->ask.address, .protocol = protocol};
    str_copy(a.host, sizeof(a.host), p->ask.address);
    if (p->tls)
        way.filter = tls_http(p->tls);
    p->stream = stream_connect(p->pr->loop, &a, &way, &probe_ops, p);
}

/* --- making --- */

/* Makes what speaks TLS, once for the node. NULL: *e. */
static struct tls *
prober_tls(struct prober *pr, bool skip_verify, struct err *e)
{
    struct tls **t = &pr->tls[skip_verify];
    if (!*t)
        *t = tls_new(&(struct tls_config){.skip_verify = skip_verify, .quiet = true}, e);
    return *t ? tls_ref(*t) : NULL;
}

/* Says whether the text can be a part of a request's head. */
static bool
probe_is_plain(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < ' ' || *s == 0x7f)
            return false;
    return true;
}

static const char *
probe_what_is_wrong(const struct probe *p)
{
    const struct probe_ask *a = &p->ask;
    if (str_empty(a->address) || strlen(a->address) > 255)
        return "there is no address to look at";
    if (a->port <= 0 || a->port > 65535)
        return "there is no port to look at";
    if (addr_is_of_link(a->address))
        return "checks of addresses of links are refused";
    if (a->kind == PROBE_GRPC)
        return strlen(a->service) > GRPC_TEXT_MAX ? "the name of its service is too long" : NULL;
    if (a->kind != PROBE_HTTP)
        return NULL;
    if (!probe_is_plain(a->method) || strchr(a->method, ' '))
        return "its method is none";
    if (!probe_is_plain(p->path) || strchr(p->path, ' '))
        return "its path has blanks or control characters";
    if (p->host && !probe_is_plain(p->host))
        return "its header Host has control characters";
    for (size_t i = 0; i < a->n_headers; i++)
        if (!probe_is_plain(a->headers[i].k) || !probe_is_plain(a->headers[i].v) ||
            strpbrk(a->headers[i].k, " :") || str_empty(a->headers[i].k))
            return "one of its headers has control characters";
    return NULL;
}

static void
on_begin(void *arg)
{
    struct probe *p = arg;
    struct err e = ERR_INIT;
    p->timer = NULL;
    if (p->pr->running >= PROBES_MAX) {
        p->timer = timer_start(p->pr->loop, PROBE_WAIT_MS, on_begin, p);
        return;
    }
    const char *wrong = probe_what_is_wrong(p);
    if (wrong) {
        probe_fail(p, "nomad: %s", wrong);
        return;
    }
    if (probe_is_agent(p, p->ask.address)) {
        probe_fail(p, PROBE_IS_AGENT, (int)p->ask.port);
        return;
    }
    bool tls = p->ask.kind != PROBE_TCP && p->ask.tls;
    if (tls && !(p->tls = prober_tls(p->pr, p->ask.skip_verify, &e))) {
        probe_fail(p, "nomad: %s", e.text);
        return;
    }
    p->counted = true;
    p->pr->running++;
    p->timer = timer_start(p->pr->loop, p->ask.timeout_ms, on_late, p);
    probe_hop(p);
}

static void
probe_copy_headers(struct probe *p, const struct probe_ask *ask)
{
    struct http_pair *to = mem_array(p, struct http_pair, ask->n_headers);
    p->ask.n_headers = 0;
    for (size_t i = 0; i < ask->n_headers; i++) {
        const struct http_pair *h = &ask->headers[i];
        if (strcasecmp(h->k, "host") == 0)
            p->host = mem_strdup(p, h->v);
        else if (strcasecmp(h->k, "connection") != 0 && strcasecmp(h->k, "content-length") != 0 &&
                 strcasecmp(h->k, "transfer-encoding") != 0)
            to[p->ask.n_headers++] = (struct http_pair){mem_strdup(p, h->k), mem_strdup(p, h->v)};
    }
    p->ask.headers = to;
}

struct probe *
probe_start(struct prober *pr, const struct probe_ask *ask, probe_done *done, void *arg)
{
    struct probe *p = mem_new(NULL, struct probe);
    p->pr = pr;
    p->ask = *ask;
    p->done = done;
    p->arg = arg;
    p->ask.address = mem_strdup(p, str_or(ask->address, ""));
    p->ask.method = mem_strdup(p, str_or(ask->method, "GET"));
    p->ask.service = mem_strdup(p, str_or(ask->service, ""));
    p->ask.body = str_empty(ask->body) ? NULL : mem_strdup(p, ask->body);
    const char *path = str_or(ask->path, "/");
    p->path = mem_printf(p, "%s%s", path[0] == '/' ? "" : "/", path);
    probe_copy_headers(p, ask);
    p->timer = timer_start(pr->loop, 0, on_begin, p);
    return p;
}

void
probe_cancel(struct probe *p)
{
    if (p)
        probe_end(p);
}

struct prober *
prober_new(struct loop *loop, const uint16_t ports[PROBE_PORTS_MAX])
{
    struct prober *pr = mem_new(NULL, struct prober);
    pr->loop = loop;
    memcpy(pr->ports, ports, sizeof(pr->ports));
    return pr;
}

void
prober_free(struct prober *pr)
{
    if (!pr)
        return;
    ASSERT(pr->running == 0);
    for (size_t i = 0; i < ARRAY_LEN(pr->tls); i++)
        tls_unref(pr->tls[i]);
    talloc_free(pr);
}
