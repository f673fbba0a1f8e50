/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams of the agent, and their last lines.
 */
#include "cli/stream.h"

#include <signal.h>
#include <unistd.h>

#include "cli/api.h"
#include "cli/limits.h"

enum { WINDOW_FIRST = 64 << 10, WINDOW_GROWTH = 8 };

/* --- lines --- */

bool
tail_start(const uint8_t *p, size_t n, int64_t lines, size_t *ret)
{
    size_t at = n;
    *ret = n;
    if (lines <= 0)
        return true;
    if (at && p[at - 1] == '\n')
        at--; /* ends the last line, begins none */
    for (; at > 0; at--)
        if (p[at - 1] == '\n' && --lines == 0)
            break;
    *ret = at;
    return lines == 0;
}

/* --- sinks --- */

static bool
stream_put(struct sink *s, const void *p, size_t n)
{
    s->failed = fwrite(p, 1, n, s->to) != n || fflush(s->to) != 0;
    return !s->failed;
}

static bool
put_kept(struct sink *s)
{
    const uint8_t *p = s->kept.data;
    size_t n = s->kept.len, at = 0;
    if (!tail_start(p, n, s->lines, &at) && !s->whole && n) {
        /* never the second half of a line, unless there is no other */
        const uint8_t *nl = memchr(p, '\n', n);
        at = nl && nl + 1 < p + n ? (size_t)(nl + 1 - p) : 0;
    }
    bool ok = stream_put(s, p + at, n - at);
    s->cut = false;
    buf_done(&s->kept);
    return ok;
}

bool
sink_body(void *sink, const struct http_resp *r, const void *p, size_t n)
{
    struct sink *s = sink;
    (void)r;
    if (!s->cut)
        return stream_put(s, p, n);
    buf_put(&s->kept, p, n);
    if (buf_error(&s->kept))
        return false;
    return s->kept.len < s->begin || put_kept(s);
}

void
sink_end(struct sink *s)
{
    if (s->cut)
        (void)put_kept(s);
    buf_done(&s->kept);
}

int
stream_bad_status(struct cmd *c, const char *what, const struct http_resp *r)
{
    const char *body = mem_strndup(c, r->body, r->body_len < 900 ? r->body_len : 900);
    bool gone = r->status == 404 && strstr(body, "nknown allocation");
    return cmd_fail(
        c, "Error %s: Unexpected response code: %d (%s)%s", what, r->status, body,
        gone ? "\nIts events are still told: paddock alloc status" : api_hint(r));
}

static int
stream_ask(struct cmd *c, char *target, struct sink *s, struct http_resp **ret, struct err *e)
{
    struct http_ask *a = api_ask(c, "GET", target);
    a->on_body = sink_body;
    a->arg = s;
    return c->fetch(c, c->address, a, ret, e);
}

int
stream_get(struct cmd *c, const char *what, char *target, struct sink *s)
{
    struct http_resp *r = NULL;
    struct err e = ERR_INIT;
    int code = 0;
    if (s->cut)
        buf_init(&s->kept, CLI_TAIL_MAX * 2);
    if (stream_ask(c, target, s, &r, &e) < 0)
        code = cmd_fail(c, "Error %s: %s", what, s->failed ? "writing the output failed" : e.text);
    else if (r->status >= 300)
        code = stream_bad_status(c, what, r);
    sink_end(s);
    return code;
}

int
tail_read(struct cmd *c, const char *what, const struct tail *t, struct sink *s,
          int64_t *ret_window)
{
    for (int64_t window = WINDOW_FIRST;; window *= WINDOW_GROWTH) {
        struct http_resp *r = NULL;
        struct err e = ERR_INIT;
        size_t at;
        if (window > CLI_TAIL_MAX)
            window = CLI_TAIL_MAX;
        *s = (struct sink){.c = c, .cut = true, .begin = SIZE_MAX, .lines = s->lines, .to = s->to};
        buf_init(&s->kept, CLI_TAIL_MAX * 2);
        *ret_window = window;
        if (stream_ask(c, t->target(t->arg, window), s, &r, &e) < 0)
            return cmd_fail(c, "Error %s: %s", what, e.text);
        if (r->status == 404 && t->may_miss)
            return 0;
        if (r->status >= 300)
            return stream_bad_status(c, what, r);
        s->whole = s->kept.len < (size_t)window;
        if (s->whole || window == CLI_TAIL_MAX ||
            (tail_start(s->kept.data, s->kept.len, s->lines, &at) && at >= s->kept.len / 2))
            return 0;
        buf_done(&s->kept);
    }
}

/* --- the end of following --- */

static void
stream_leave(int sig)
{
    (void)sig;
    _exit(0); /* every piece was flushed when it came */
}

void
follow_until_interrupt(void)
{
    signal(SIGINT, stream_leave);
    signal(SIGTERM, stream_leave);
}
