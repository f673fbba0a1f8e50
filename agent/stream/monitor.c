/* SPDX-License-Identifier: Apache-2.0
 *
 * HTTP API: following the log of an agent. Lines come on any thread (common/log.h) and are kept,
 * bounded, until the loop writes them as fast as they are read; those beyond that are counted, and
 * the reader is told. Another node is asked as for its files (other_node.h).
 */
#include <pthread.h>
#include <string.h>

#include "agent/api/other_node.h"
#include "agent/limits.h"
#include "agent/stream/stream.h"
#include "client/client.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "server/server.h"

struct monitor {
    struct request *a; /* NULL: the reader has gone */
    struct loop *loop;
    struct log_tap tap;
    struct timer *beat; /* frames only */
    bool plain;
    pthread_mutex_t lock; /* of what follows */
    struct buf lines;
    size_t dropped;
    bool posted; /* monitor_ready() will come */
};

static void
monitor_free(struct monitor *m)
{
    pthread_mutex_destroy(&m->lock);
    buf_done(&m->lines);
    mem_free(m);
}

static void
monitor_end(struct request *a)
{
    struct monitor *m = TAKE(a->user);

    log_tap_remove(&m->tap);
    timer_stop(TAKE(m->beat));
    m->a = NULL;
    http_stream_end(a->req);
    pthread_mutex_lock(&m->lock);
    bool comes = m->posted;
    pthread_mutex_unlock(&m->lock);
    if (!comes)
        monitor_free(m);
}

static void monitor_beat(void *arg);

static void
monitor_write(struct monitor *m, struct buf *lines)
{
    auto_buf struct buf out = BUF_INIT(SIZE_MAX);
    const struct stream_frame f = {.data = {lines->data, lines->len}};

    if (m->plain) {
        http_stream_write(m->a->req, lines->data, lines->len);
        return;
    }
    json_encode(&out, &type_stream_frame, &f, 0);
    http_stream_write(m->a->req, out.data, out.len);
    timer_stop(m->beat);
    m->beat = timer_start(m->loop, API_EVENT_BEAT_MS, monitor_beat, m);
}

static void
monitor_beat(void *arg)
{
    struct monitor *m = arg;

    m->beat = timer_start(m->loop, API_EVENT_BEAT_MS, monitor_beat, m);
    if (http_stream_queued(m->a->req) < STREAM_LOW_WATER)
        http_stream_write(m->a->req, "{}", 2);
}

/* Writes what has come, if the reader has taken what was written before. */
static void
monitor_pull(void *user)
{
    struct request *a = user;
    struct monitor *m = a->user;

    if (m == NULL || http_stream_queued(a->req) >= STREAM_LOW_WATER)
        return;
    if (http_closed(a->req) || a->req->method == METHOD_HEAD) {
        monitor_end(a);
        return;
    }
    pthread_mutex_lock(&m->lock);
    struct buf lines = m->lines;
    buf_init(&m->lines, MONITOR_LINES_MAX);
    size_t dropped = m->dropped;
    m->dropped = 0;
    pthread_mutex_unlock(&m->lock);
    if (dropped > 0) {
        lines.max = SIZE_MAX;
        buf_printf(&lines,
                   "[WARN] monitor: %zu lines were dropped: they came faster than they are "
                   "read\n",
                   dropped);
    }
    if (lines.len > 0)
        monitor_write(m, &lines);
    buf_done(&lines);
}

static void
monitor_ready(void *arg)
{
    struct monitor *m = arg;

    pthread_mutex_lock(&m->lock);
    m->posted = false;
    pthread_mutex_unlock(&m->lock);
    if (m->a == NULL)
        monitor_free(m);
    else
        monitor_pull(m->a);
}

/* Any thread. */
static void
monitor_line(void *arg, const char *line, size_t n)
{
    struct monitor *m = arg;

    pthread_mutex_lock(&m->lock);
    bool fits = m->lines.len + n <= MONITOR_LINES_MAX;
    if (fits)
        buf_put(&m->lines, line, n);
    else
        m->dropped++;
    bool post = !m->posted && fits;
    m->posted |= post;
    pthread_mutex_unlock(&m->lock);
    if (post)
        loop_post(m->loop, monitor_ready, m);
}

/* Says whether this agent's log is meant; else the request was answered, or passed on. */
static bool
monitor_here(struct request *a)
{
    const char *node = http_query(a->req, "node_id"), *server = http_query(a->req, "server_id");
    const struct client *c = a->api->client;
    struct server_info info = {.role = 0};

    if (!str_empty(node) && !str_empty(server)) {
        reply_fail(a, 400, "Cannot target node and server simultaneously");
        return false;
    }
    if (!str_empty(node) && !(c != NULL && str_eq(node, client_node_id(c)))) {
        other_node_ask(a, node);
        return false;
    }
    if (str_empty(server))
        return true;
    if (a->api->server != NULL)
        server_info(a->api->server, a, &info);
    const char *name = mem_printf(a, "%s.%s", a->api->name, a->api->region);
    if (a->api->server != NULL && (str_eq(server, a->api->name) || str_eq(server, name) ||
                                   (str_eq(server, "leader") && info.role == 2)))
        return true;
    reply_fail(a, 501,
               "the log of server \"%s\" is followed at its own address: this agent is "
               "another one",
               server);
    return false;
}

void
monitor_get(struct request *a)
{
    const char *level = http_query(a->req, "log_level");
    bool json = false, plain = false;
    enum log_level from = str_empty(level) ? LOG_INFO : log_level_parse(level);

    if (from == LOG_LEVEL_INVALID) {
        reply_fail(a, 400, "Unknown log level: %s", level);
        return;
    }
    if (!param_bool(a, "log_json", &json) || !param_bool(a, "plain", &plain) || !monitor_here(a))
        return;
    struct monitor *m = mem_new(NULL, struct monitor);
    *m = (struct monitor){.a = a, .loop = a->api->loop, .plain = plain};
    m->tap = (struct log_tap){.level = from, .json = json, .fn = monitor_line, .arg = m};
    pthread_mutex_init(&m->lock, NULL);
    buf_init(&m->lines, MONITOR_LINES_MAX);
    a->user = m;
    a->gone = monitor_end;
    http_stream_start(a->req, 200, plain ? "text/plain" : "application/json", monitor_pull);
    if (!plain)
        m->beat = timer_start(m->loop, 0, monitor_beat, m);
    log_tap_add(&m->tap);
}
