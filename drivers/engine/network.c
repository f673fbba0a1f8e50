/* SPDX-License-Identifier: Apache-2.0
 *
 * The network of a group whose tasks are containers, by way of the engine hand (hand/network.c).
 */
#include "common/mem.h"
#include "common/str.h"
#include "drivers/engine/hand_client.h"
#include "net/http/http.h"

enum { ASK_MS = 90000, ANSWER_MAX = 1 << 20 };

struct net_call {
    struct http_client *http;
    engine_net_made *made;
    engine_done *removed; /* instead */
    void *arg;
};

/* -ERR_BUSY: hand or engine are away, or a moment was bad. */
static const struct err *
error_of(struct err *own, const struct err *e, const struct http_resp *r)
{
    if (e || r->status >= 500)
        err_set(own, -ERR_BUSY, "%s", e ? e->text : r->body);
    else if (r->status == 409)
        err_set(own, -ERR_CONFLICT, "%s", r->body);
    else if (r->status != 200)
        err_set(own, r->status == 403 ? -ERR_POLICY : -ERR_INVALID, "%s", r->body);
    else
        return NULL;
    return own;
}

static void
on_done(void *arg, const struct err *e, const struct http_resp *r)
{
    struct net_call *c = arg;
    struct err own = ERR_INIT, odd = ERR_INIT;
    void *state = NULL;
    const struct err *error = error_of(&own, e, r);
    if (c->removed) {
        c->removed(c->arg, error);
    } else if (!error && json_decode(c, &type_hand_network_state, SLICE(r->body, r->body_len),
                                     BUDGET(ANSWER_MAX), &state, &odd) < 0) {
        c->made(c->arg, &odd, NULL);
    } else {
        c->made(c->arg, error, state);
    }
    http_client_close(c->http);
    talloc_free(c);
}

static void
network_ask(struct net_call *c, const struct engine_place *p, const char *method, struct buf *body)
{
    auto_buf struct buf target = BUF_INIT(4096);
    buf_printf(&target, "/v1/%s/network/", p->driver);
    http_escape(&target, p->alloc_id, false);
    c->http = hand_client(p);
    http_send(c->http, &(struct http_ask){.method = method,
                                          .target = buf_str(&target),
                                          .body = body->data,
                                          .body_len = body->len,
                                          .content_type = body->len ? "application/json" : NULL,
                                          .timeout_ms = ASK_MS,
                                          .done = on_done,
                                          .arg = c});
}

void
hand_net_make(const struct engine_place *p, const struct hand_network *n, engine_net_made *done,
              void *arg)
{
    struct net_call *c = mem_new(NULL, struct net_call);
    auto_buf struct buf body = BUF_INIT(HTTP_BODY_MAX);
    *c = (struct net_call){.made = done, .arg = arg};
    json_encode(&body, &type_hand_network, n, 0);
    network_ask(c, p, "PUT", &body);
}

void
hand_net_remove(const struct engine_place *p, engine_done *done, void *arg)
{
    struct net_call *c = mem_new(NULL, struct net_call);
    struct buf none = BUF_INIT(0);
    *c = (struct net_call){.removed = done, .arg = arg};
    network_ask(c, p, "DELETE", &none);
}
