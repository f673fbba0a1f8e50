/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose name an image is pulled in, where its job does not say: as the operator's file for docker
 * (config.json) and credential helpers say, asked of the process beside (helper.c), which has one
 * question at a time. In this order, the first that says something: the file's auths, its
 * credHelpers, its credsStore, the helper of the plugin block.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "common/mem.h"
#include "common/str.h"
#include "hand/hand.h"

struct credentials_ask {
    struct credentials_ask *prev, *next;
    struct credentials *c;
    char *server, *helper; /* `helper`: asked now; NULL: the file is */
    credentials_done *done;
    void *arg;
    bool canceled; /* its answer is still to come */
};

struct credentials {
    struct hand *h;
    int sock;
    struct watch *watch;
    struct credentials_ask *asks; /* the first one has been sent */
    struct timer *again;          /* for those that need no question */
};

static void credentials_next(struct credentials *c);

static void
credentials_settle(struct credentials_ask *a, const struct hand_auth *auth, const char *why)
{
    struct credentials *c = a->c;
    DL_DELETE(c->asks, a);
    if (!a->canceled)
        a->done(a->arg, auth, why);
    talloc_free(a);
    credentials_next(c);
}

static void
send_ask(struct credentials *c)
{
    struct credentials_ask *a = c->asks;
    auto_buf struct buf b = BUF_INIT(HAND_HELPER_NAME_MAX + HAND_SERVER_MAX + 2);
    if (a->helper) {
        buf_printf(&b, "h%s", a->helper);
        buf_putc(&b, 0);
        buf_puts(&b, a->server);
    } else {
        buf_puts(&b, "c");
    }
    if (buf_error(&b))
        credentials_settle(a, NULL, "the name of its registry, or of the helper, is too long");
    else if (send(c->sock, b.data, b.len, MSG_NOSIGNAL) < 0)
        credentials_settle(a, NULL, "the process that asks credential helpers has gone");
}

/* The file has nothing, or there is none: a helper is asked. False: there is none either. */
static bool
ask_helper(struct credentials_ask *a, const char *name)
{
    name = str_empty(name) ? str_or(a->c->h->engine->auth_helper, "") : name;
    if (!*name)
        return false;
    a->helper = mem_strdup(a, name);
    send_ask(a->c);
    return true;
}

static void
credentials_take(struct credentials_ask *a, const char *text, size_t n)
{
    auto_mem void *tmp = mem_ctx("answer");
    struct value *doc = NULL;
    struct err e = ERR_INIT;
    const char *helper = NULL;
    const struct hand_auth *auth = NULL;
    const char *from = a->helper ? mem_printf(tmp, "docker-credential-%s", a->helper)
                                 : str_or(a->c->h->engine->auth_config, "");
    if (a->canceled || n == 0 || text[0] != '+') {
        credentials_settle(a, NULL,
                           n > 0 ? mem_strndup(tmp, text + 1, n - 1) : "no reason is given");
        return;
    }
    if (json_decode_value(tmp, SLICE(text + 1, n - 1), BUDGET(HAND_DOCUMENT_MAX), &doc, &e) < 0) {
        credentials_settle(a, NULL, mem_printf(tmp, "%s: %s", from, e.text));
        return;
    }
    auth = a->helper ? registry_of_helper(tmp, doc, a->server)
                     : registry_in_file(tmp, doc, a->server, &helper);
    if (auth || a->helper || !ask_helper(a, helper))
        credentials_settle(a, auth, NULL);
}

static void
on_answer(void *arg, int fd, unsigned events)
{
    struct credentials *c = arg;
    auto_mem void *tmp = mem_ctx("answer");
    char *text = mem_array(tmp, char, HAND_CREDENTIALS_MAX + 1);
    (void)events;
    ssize_t n = recv(fd, text, HAND_CREDENTIALS_MAX, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <=
        0) { /* it has gone, and will not come again: every question is told so when it is sent */
        watch_stop(TAKE(c->watch));
        if (c->asks)
            credentials_settle(c->asks, NULL, "the process that asks credential helpers has gone");
    } else if (c->asks) {
        text[n] = 0;
        credentials_take(c->asks, text, (size_t)n);
    }
}

static void
on_turn(void *arg)
{
    struct credentials *c = arg;
    struct credentials_ask *a = c->asks;
    c->again = NULL;
    if (!a)
        return;
    if (a->canceled)
        credentials_settle(a, NULL, NULL);
    else if (!str_empty(c->h->engine->auth_config))
        send_ask(c);
    else if (!ask_helper(a, NULL))
        credentials_settle(a, NULL, NULL);
}

static void
credentials_next(struct credentials *c)
{
    if (c->asks && !c->again)
        c->again = timer_start(c->h->loop, 0, on_turn, c);
}

struct credentials_ask *
credentials_find(struct credentials *c, const char *image, credentials_done *done, void *arg)
{
    struct credentials_ask *a = mem_new(NULL, struct credentials_ask);
    *a = (struct credentials_ask){.c = c, .done = done, .arg = arg};
    a->server = mem_strdup(a, registry_name(a, image));
    bool first = !c->asks;
    DL_APPEND(c->asks, a);
    if (first)
        credentials_next(c);
    return a;
}

void
credentials_cancel(struct credentials_ask *a)
{
    if (a)
        a->canceled = true; /* its turn, or its answer, comes */
}

struct credentials *
credentials_new(const void *ctx, struct hand *h, struct err *e)
{
    int sock = helper_start(str_or(h->engine->auth_config, ""), e);
    if (sock < 0)
        return NULL;
    struct credentials *c = mem_new(ctx, struct credentials);
    *c = (struct credentials){.h = h, .sock = sock};
    c->watch = watch_fd(h->loop, sock, WATCH_READ, on_answer, c);
    ASSERT(c->watch);
    return c;
}
