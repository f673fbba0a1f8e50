/* SPDX-License-Identifier: Apache-2.0
 *
 * A witness of the engine's end: a stream of events of a kind that there is not. Where systemd
 * holds the engine's socket, calls that come while dockerd ends its containers wait for the next
 * dockerd, which answers as if nothing had been. The connection that the old one has taken breaks.
 */
#include "hand/hand.h"

static bool
on_event(void *arg, const struct http_resp *r, const void *p, size_t n)
{
    (void)arg, (void)r, (void)p, (void)n;
    return true;
}

static void
on_over(void *arg, int status, const struct value *doc, const struct err *e)
{
    struct hand *h = arg;
    (void)doc;
    h->witness = NULL;
    h->ends += e != NULL || status == 200;
}

void
witness_keep(struct hand *h)
{
    if (h->witness || engine_is_podman(h)) /* whose service ends no container */
        return;
    const char *target = "/events?filters=%7B%22type%22%3A%5B%22none%22%5D%7D";
    h->witness = engine_ask(h, &(struct engine_ask){.method = "GET",
                                                    .target = target,
                                                    .on_body = on_event,
                                                    .done = on_over,
                                                    .arg = h});
}
