/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP server: from bytes to requests. The head is collected, scanned strictly, then given to
 * llhttp, which judges the request line and frames the body.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/http/conn_int.h"
#include "net/limits.h"

static int
on_headers_complete(llhttp_t *p)
{
    p->upgrade = 0; /* no protocol to change to: the message is an ordinary one */
    return 0;
}

/* Told before the bytes come: who claims such a size may send nothing more and keep us waiting. */
static int
on_chunk_header(llhttp_t *p)
{
    struct http_conn *c = p->data;
    c->too_large = p->content_length > c->req->body.max - c->req->body.len;
    return c->too_large ? HPE_USER : 0;
}

static int
on_body(llhttp_t *p, const char *at, size_t n)
{
    struct http_conn *c = p->data;
    struct http_server *s = c->server;

    if (n > HTTP_BODIES_MAX - s->body_bytes) {
        c->overload = true;
        return HPE_USER;
    }
    s->body_bytes += n;
    c->req->charged += n;
    buf_put(&c->req->body, at, n);
    return buf_error(&c->req->body) ? HPE_USER : 0;
}

static int
on_message_complete(llhttp_t *p)
{
    struct http_conn *c = p->data;
    c->complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

static enum http_method
method_parse(const char *s, size_t n)
{
    for (int m = METHOD_GET; m < METHOD_OTHER; m++) {
        const char *name = http_method_name((enum http_method)m);
        if (strlen(name) == n && memcmp(name, s, n) == 0)
            return (enum http_method)m;
    }
    return METHOD_OTHER;
}

/* Returns the reason why llhttp refuses, in our words where it matters to an operator. */
static const char *
parser_text(const llhttp_t *p)
{
    const char *why = llhttp_get_error_reason(p);
    return str_or(why, "malformed request");
}

static void
parse_dispatch(struct http_conn *c)
{
    struct http_request *r = c->req;

    r->keep_alive = llhttp_should_keep_alive(&c->parser) != 0;
    r->pub.body = buf_str(&r->body);
    r->pub.body_len = r->body.len;
    c->state = HTTP_OPEN;
    if (c->in.len == 0)
        buf_done(&c->in); /* a parked request waits for minutes */
    http_conn_deadline(c, -1);
    if (c->server->answer_bytes > HTTP_ANSWERS_MAX) {
        struct http_bad bad;
        http_bad_set(&bad, 503, "too many answers wait for slow readers: try again");
        http_conn_refuse(c, &bad);
        return;
    }
    c->server->cfg.handler(c->server->cfg.arg, &r->pub);
}

static int
too_large(struct http_bad *bad, size_t max)
{
    bool mib = max >= 1 << 20;
    snprintf(bad->text, sizeof(bad->text), "request body is too large: at most %zu %s",
             mib ? max >> 20 : max, mib ? "MiB" : "bytes");
    return http_bad_set(bad, 413, bad->text);
}

/* Gives body bytes to llhttp; the number it took, or -1 after a refusal. */
static ptrdiff_t
parse_feed(struct http_conn *c, const char *p, size_t n)
{
    llhttp_errno_t e = llhttp_execute(&c->parser, p, n);
    struct http_bad bad;

    if (e == HPE_OK)
        return (ptrdiff_t)n;
    if (e == HPE_PAUSED && c->complete)
        return llhttp_get_error_pos(&c->parser) - p;
    if (e == HPE_USER && c->overload)
        http_bad_set(&bad, 503, "too many large requests at once: try again");
    else if (c->too_large || (e == HPE_USER && c->req && buf_error(&c->req->body)))
        too_large(&bad, c->req->body.max);
    else if (e == HPE_INVALID_METHOD) /* one that nobody knows; they are case-sensitive */
        http_bad_set(&bad, 405, "Invalid method");
    else
        http_bad_set(&bad, 400, parser_text(&c->parser));
    http_conn_refuse(c, &bad);
    return -1;
}

static void
body_deadline(struct http_conn *c)
{
    int64_t left = c->body_deadline_ms - loop_now_ms(c->server->loop);
    int64_t idle = c->server->cfg.body_idle_ms;
    http_conn_deadline(c, left > idle ? idle : (left > 0 ? left : 0));
}

void
http_feed_body(struct http_conn *c, const uint8_t *p, size_t n)
{
    ptrdiff_t took = parse_feed(c, (const char *)p, n);
    if (took < 0)
        return;
    buf_put(&c->in, p + took, n - (size_t)took);
    if (c->complete)
        parse_dispatch(c);
    else
        body_deadline(c);
}

/* The head is in `head` (hlen bytes), llhttp has it too: routes, limits, framing. */
static int
open_request(struct http_conn *c, char *head, size_t hlen, struct http_bad *bad)
{
    struct http_request *r = c->req;
    struct http_framing f;
    const char *line;

    r->pub.headers = r->room;
    if (http_head_split(head, hlen, &line, r->room, &r->pub.n_headers, bad) < 0)
        return -1;
    r->http10 = str_suffix(line, " HTTP/1.0");
    if (!r->http10 && !str_suffix(line, " HTTP/1.1"))
        return http_line_refuse(line, bad);
    if (http_head_check(r->room, r->pub.n_headers, r->http10, &f, bad) < 0)
        return -1;
    const char *target = strchr(line, ' ');
    if (!target)
        return http_bad_set(bad, 400, "malformed request line");
    target++;
    if (!http_token(line, (size_t)(target - line) - 1))
        return http_bad_set(bad, 400, "malformed method");
    size_t tlen = strcspn(target, " ");
    r->pub.method = method_parse(line, (size_t)(target - line) - 1);
    r->pub.target = target; /* in the head, which is ours */
    *(head + (target - head) + tlen) = 0;
    r->gzip_ok = http_list_has(http_header(&r->pub, "accept-encoding"), "gzip");
    if (http_target_parse(&r->pub, head + hlen + 1, bad) < 0)
        return -1;
    const struct http_server_config *cfg = &c->server->cfg;
    size_t max =
        cfg->body_max ? cfg->body_max(cfg->arg, r->pub.method, r->pub.path) : HTTP_BODY_MAX;
    buf_init(&r->body, max);
    if (f.has_length && f.length > max)
        return too_large(bad, max);
    c->expect = f.expect_continue && (f.chunked || f.length > 0);
    return 0;
}

/* A request with room for all that its head makes; *ret_head: a copy of that, and room for the
 * target. */
static struct http_request *
request_new(const char *head, size_t hlen, char **ret_head)
{
    size_t line = strcspn(head, "\r"), lines = 0, params = http_query_max(head, line);

    for (size_t i = 0; i < hlen && lines < HTTP_HEADERS_MAX; i++)
        lines += head[i] == '\n';
    if (params > HTTP_QUERY_PARAMS_MAX)
        params = HTTP_QUERY_PARAMS_MAX;
    size_t pairs = (lines + params) * sizeof(struct http_pair);
    struct http_request *r = mem_new(NULL, struct http_request);
    r->room = calloc(1, pairs + hlen + 1 + line + 2);
    ASSERT(r->room != NULL);
    r->pub.query = r->room + lines;
    *ret_head = memcpy((char *)r->room + pairs, head, hlen);
    return r;
}

/* One request head from c->in. False: nothing more to do now. */
static bool
take_head(struct http_conn *c)
{
    struct http_bad bad;

    /* empty lines before a request (RFC 9112, 2.2) */
    while (c->in.len >= 2 && memcmp(c->in.data, "\r\n", 2) == 0) {
        buf_consume(&c->in, 2);
        c->scanned = 0;
    }
    int found = c->in.len == 0 ? 0 : http_head_find(c->in.data, c->in.len, &c->scanned, &bad);
    if (found == 0) {
        if (c->in.len > 0 && !c->in_head) {
            c->in_head = true;
            http_conn_deadline(c, c->server->cfg.header_ms);
        }
        return false;
    }
    if (found < 0) {
        http_conn_refuse(c, &bad);
        return false;
    }
    size_t hlen = c->scanned;
    char *head;
    struct http_request *r = request_new((const char *)c->in.data, hlen, &head);
    r->conn = c;
    r->server = c->server;
    r->server->refs++;
    r->loop = c->server->loop;
    r->pub.peer = stream_peer(c->stream);
    r->pub.body = "";
    c->req = r;
    c->complete = false;
    c->expect = c->overload = c->too_large = false;
    c->in_head = false;
    c->scanned = 0;
    if (open_request(c, head, hlen, &bad) < 0) {
        http_conn_refuse(c, &bad);
        return false;
    }
    c->state = HTTP_READ_BODY;
    c->since_ms = loop_now_ms(c->server->loop);
    c->body_deadline_ms = loop_now_ms(c->server->loop) + HTTP_BODY_MS;
    llhttp_init(&c->parser, HTTP_REQUEST, &settings);
    c->parser.data = c;
    if (parse_feed(c, (const char *)c->in.data, hlen) < 0)
        return false;
    buf_consume(&c->in, hlen);
    return true;
}

/* The body bytes that came with the head. */
static void
take_body(struct http_conn *c)
{
    if (c->expect) {
        struct buf b = BUF_INIT(64);
        c->expect = false;
        buf_puts(&b, "HTTP/1.1 100 Continue\r\n\r\n");
        stream_write(c->stream, &b, 1);
    }
    if (!c->complete && c->in.len > 0) {
        ptrdiff_t took = parse_feed(c, (const char *)c->in.data, c->in.len);
        if (took < 0)
            return;
        buf_consume(&c->in, (size_t)took);
    }
    if (c->complete) {
        parse_dispatch(c);
        return;
    }
    stream_read(c->stream, true);
    body_deadline(c);
}

void
http_process(struct http_conn *c)
{
    if (c->processing)
        return;
    c->processing = true;
    for (int n = 0; c->state == HTTP_READ_HEAD && c->in.len > 0 && !c->choked; n++) {
        if (n == HTTP_TURN_MAX) {
            http_conn_later(c);
            break;
        }
        if (!take_head(c))
            break;
        take_body(c);
    }
    c->processing = false;
    if (c->eof && !c->choked && !c->resume &&
        (c->state == HTTP_READ_HEAD || c->state == HTTP_READ_BODY)) {
        c->state = HTTP_CLOSING;
        stream_finish(c->stream, 0);
    }
}
