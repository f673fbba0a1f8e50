/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of the engine's API: each has a connection of its own, so that a waiting one is in nobody's
 * way. What the engine answers is bounded and parsed as hostile.
 */
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

struct engine_call {
    struct engine_ask ask;
    struct http_client *http;
    bool canceled;
};

/* Podman has one status for what docker's engine has several for. */
static int
status_of(const struct http_resp *r, const struct value *doc)
{
    const char *said = r->status == 500 ? engine_said(doc) : "";
    /* the second one: killed between two steps, it knows the container and not its files */
    return strstr(said, "no such container") || strstr(said, "container not known") ? 404
           : strstr(said, "already in use") || strstr(said, "container already exists") ||
                   strstr(said, "container state improper")
               ? 409
               : r->status;
}

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct engine_call *c = arg;
    struct err own = ERR_INIT;
    struct value *doc = NULL;
    if (c->canceled)
        return;
    if (!e && r->body_len > 0 &&
        json_decode_value(c, SLICE(r->body, r->body_len), BUDGET(HAND_DOCUMENT_MAX), &doc, &own) <
            0) {
        doc = NULL;
        if (r->status < 300 && !c->ask.on_body) {
            err_prefix(&own, "the engine's answer to %s", c->ask.target);
            e = &own;
        }
    }
    c->ask.done(c->ask.arg, e ? 0 : status_of(r, doc), e ? NULL : doc, e);
    http_client_close(c->http);
    talloc_free(c);
}

static bool
on_body(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    struct engine_call *c = arg;
    return c->ask.on_body(c->ask.arg, r, p, n);
}

static bool
on_tunnel(void *arg, const struct http_resp *r)
{
    struct engine_call *c = arg;
    (void)r;
    return c->ask.on_tunnel(c->ask.arg);
}

static void
on_drain(void *arg)
{
    struct engine_call *c = arg;
    if (!c->canceled)
        c->ask.on_drain(c->ask.arg);
}

/* `ret` has room for those of a tunnel and for one more. */
static size_t
headers_of(const struct engine_ask *ask, struct http_pair ret[static 3])
{
    size_t n = 0;
    if (ask->auth)
        ret[n++] = (struct http_pair){"X-Registry-Auth", ask->auth};
    if (ask->on_tunnel) {
        ret[n++] = (struct http_pair){"Connection", "Upgrade"};
        ret[n++] = (struct http_pair){"Upgrade", "tcp"};
    }
    return n;
}

struct engine_call *
engine_ask(struct hand *h, const struct engine_ask *ask)
{
    struct engine_call *c = mem_new(NULL, struct engine_call);
    struct err e = ERR_INIT;
    auto_buf struct buf body = BUF_INIT(HAND_DOCUMENT_MAX);
    c->ask = *ask;
    c->ask.target = mem_strdup(c, ask->target);
    c->ask.body = NULL;
    if (ask->body)
        json_encode_value(&body, ask->body, 0);
    struct http_pair headers[3];
    c->http = http_client_new(&(struct dialer){.loop = h->loop}, h->engine->endpoint, &e);
    ASSERT(c->http); /* main() has looked at it */
    http_send(c->http, &(struct http_ask){
                           .method = ask->method,
                           .target = c->ask.target,
                           .body = body.data,
                           .body_len = ask->file_len > 0 ? ask->file_len : body.len,
                           .body_fd = ask->file,
                           .headers = headers,
                           .n_headers = headers_of(ask, headers),
                           .content_type = ask->file_len > 0 ? "application/x-tar"
                                           : ask->body       ? "application/json"
                                                             : NULL,
                           .timeout_ms = ask->timeout_ms,
                           .on_body = ask->on_body ? on_body : NULL,
                           .on_tunnel = ask->on_tunnel ? on_tunnel : NULL,
                           .on_drain = ask->on_drain ? on_drain : NULL,
                           .done = on_done,
                           .arg = c,
                       });
    return c;
}

void
engine_cancel(struct engine_call *c)
{
    if (!c)
        return;
    c->canceled = true;
    http_client_close(c->http);
    talloc_free(c);
}

void
engine_read(struct engine_call *c, bool on)
{
    http_client_read(c->http, on);
}

void
engine_write(struct engine_call *c, const void *p, size_t n)
{
    struct buf b = BUF_INIT(SIZE_MAX);
    buf_put(&b, p, n);
    http_client_write(c->http, &b);
}

size_t
engine_queued(const struct engine_call *c)
{
    return http_client_queued(c->http);
}

void
engine_end(struct engine_call *c)
{
    http_client_end(c->http);
}

bool
engine_is_podman(const struct hand *h)
{
    return str_eq(h->engine->name, "podman");
}

/* Podman's own interface: of docker's form it makes an error as long as there is one container
 * whose removal was cut off. */
const char *
engine_list(const struct hand *h)
{
    return engine_is_podman(h) ? "/v4.0.0/libpod/containers/json?all=true"
                               : "/containers/json?all=1";
}

const char *
engine_said(const struct value *doc)
{
    return str_or(document_text(doc, "message"), "no reason is given");
}
