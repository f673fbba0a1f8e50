/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to the warden, see warden_link.h: patience with one that is away or silent; the
 * connection's loss, and its being ready; what the warden tells of itself; connecting; life.
 */
#include "client/warden_link.h"

#include <poll.h>
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/proto.h"

enum {
    RETRY_MS = 50, /* doubled */
    RETRY_MAX_MS = 1000,
    AWAY_MS = 1500,  /* longer than a restart takes */
    SILENT_MS = 700, /* without a word while something waits: asked; and again: in trouble */
};

static void try_connect(void *arg);

static unsigned
wanted_events(struct link *k)
{
    short ev = warden_client_events(k->g->warden);
    return (ev & POLLIN ? WATCH_READ : 0u) | (ev & POLLOUT ? WATCH_WRITE : 0u);
}

static void
retry_later(struct link *k)
{
    if (k->timer)
        return;
    k->retry_ms = k->retry_ms ? k->retry_ms * 2 : RETRY_MS;
    if (k->retry_ms > RETRY_MAX_MS)
        k->retry_ms = RETRY_MAX_MS;
    k->timer = timer_start(k->g->loop, k->retry_ms, try_connect, k);
}

/* --- a warden that is away, or stands still --- */

static void
set_trouble(struct link *k, const char *why)
{
    if (k->trouble == why || k->g->stopping)
        return;
    if (why)
        log_warn("client", "nothing can be started on this node", "why", why, NULL);
    else
        log_info("client", "the warden is there again", NULL);
    k->trouble = why;
    k->events->info(k->arg);
}

static void
on_pong(void *arg, const struct err *e, struct warden_reply *r)
{
    (void)e;
    (void)r;
    struct link *k = arg;
    hold_release(&k->g->hold);
}

static void
on_silent(void *arg)
{
    struct link *k = arg;
    k->patience = NULL;
    if (!k->up || k->g->stopping)
        return;
    bool silent = warden_client_heard(k->g->warden) == k->heard;
    if (!silent)
        set_trouble(k, NULL);
    if (warden_client_outstanding(k->g->warden) == 0)
        return;
    if (silent && k->pinged)
        set_trouble(k, "the warden does not answer");
    k->pinged = silent;
    k->heard = warden_client_heard(k->g->warden);
    k->patience = timer_start(k->g->loop, SILENT_MS, on_silent, k);
    if (silent && !k->trouble) { /* what waits may be slow; this is not */
        hold_take(&k->g->hold);
        warden_info(k->g->warden, on_pong, k);
    }
}

/* Something waits for the warden: it is given a moment. Whoever waits for nothing has no timer. */
static void
expect_answer(struct link *k)
{
    if (!k->up || k->patience || warden_client_outstanding(k->g->warden) == 0)
        return;
    k->pinged = false;
    k->heard = warden_client_heard(k->g->warden);
    k->patience = timer_start(k->g->loop, SILENT_MS, on_silent, k);
}

static void
on_away(void *arg)
{
    struct link *k = arg;
    k->patience = NULL;
    if (!k->up)
        set_trouble(k, k->refused != 0 ? "the warden is of another version"
                                       : "the warden is not running");
}

/* --- the connection --- */

static void
link_lost(struct link *k)
{
    if (k->up) {
        timer_stop(k->patience);
        k->patience = timer_start(k->g->loop, AWAY_MS, on_away, k);
    }
    if (k->up && !k->g->stopping)
        log_warn("client", "connection to the warden lost", "why", warden_client_lost(k->g->warden),
                 NULL);
    if (k->up && clock_mono_ns() - k->since_ns > RETRY_MAX_MS * NS_PER_MS)
        k->retry_ms = 0; /* a link lost again at once is not asked for as fast as it goes */
    k->up = false;
    watch_stop(k->watch);
    k->watch = NULL;
    retry_later(k);
}

static void
on_ready(void *arg, int fd, unsigned events)
{
    (void)fd;
    (void)events;
    struct link *k = arg;
    hold_take(&k->g->hold);
    if (warden_client_ready(k->g->warden) < 0)
        link_lost(k);
    else if (k->watch)
        watch_set(k->watch, wanted_events(k));
    if (k->up && k->trouble)
        set_trouble(k, NULL);
    hold_release(&k->g->hold);
}

static void
on_change(void *arg)
{
    struct link *k = arg;
    expect_answer(k);
    if (k->watch)
        watch_set(k->watch, wanted_events(k));
    else
        retry_later(k);
}

static void
drop_kept(struct link *k)
{
    for (size_t i = 0; i < ARRAY_LEN(k->keep); i++)
        fd_close(&k->keep[i]);
}

static void
take_facts(struct link *k, const struct warden_info *info, struct warden_reply *r)
{
    mem_free(k->facts);
    k->facts = mem_new(k, struct str_map);
    for (size_t i = 0; info && i < info->facts.n; i++)
        str_map_set(k->facts, k->facts, info->facts.v[i].k, info->facts.v[i].v);
    bpf_read_close(&k->counters);
    if (r->counters >= 0 && bpf_read_open(&k->counters, r->counters) < 0)
        log_warn("client", "the network counters of tasks cannot be read", NULL);
    if (r->runs >= 0 && bpf_read_open_runs(&k->counters, r->runs) < 0)
        log_warn("client", "the counters of processes cannot be read", NULL);
    if (r->blocks >= 0 && bpf_read_open_blocks(&k->counters, r->blocks) < 0)
        log_warn("client", "the counters of disks cannot be read", NULL);
    drop_kept(k);
    for (size_t i = 0; i < ARRAY_LEN(r->keep); i++)
        k->keep[i] = TAKE_FD(r->keep[i]);
    k->keep[WARDEN_KEEP - 1] = TAKE_FD(r->keep_block);
}

/* Takes what the warden can do, and what the policy allows. */
static void
take_info(struct link *k, const struct warden_info *info, struct warden_reply *r)
{
    mem_free(k->missing);
    mem_free(k->cgroup);
    mem_free(k->bridge);
    k->root = info->root;
    k->raw_exec = info->raw_exec;
    if (info->missing.n > 0)
        k->missing = mem_strdup(k, info->missing.v[0]);
    if (!str_empty(info->cgroup_root))
        k->cgroup = mem_strdup(k, info->cgroup_root);
    if (!str_empty(info->bridge))
        k->bridge = mem_strdup(k, info->bridge);
    take_facts(k, info, r);
    k->informed = true;
}

static void
link_is_up(struct link *k)
{
    k->up = true;
    k->since_ns = clock_mono_ns();
    k->refused = 0;
    timer_stop(TAKE(k->patience));
    if (k->trouble)
        log_info("client", "the warden is there again", NULL);
    k->trouble = NULL; /* `info` follows */
    k->events->up(k->arg);
}

/* During an upgrade: the older of the two will be restarted, and the connection made again. */
static void
warden_link_refuse(struct link *k, const struct warden_info *info)
{
    int64_t theirs = info ? info->protocol : 0;
    if (k->refused != theirs + 1)
        log_error("client",
                  "the warden speaks another version of the protocol: restart paddock and "
                  "paddock-warden of one installation; tasks run on",
                  "warden", LOG_I64(theirs), "agent", LOG_I64(PROTO_VERSION), "warden_version",
                  str_or(info ? info->version : NULL, "?"), NULL);
    k->refused = theirs + 1;
}

static void
on_info(void *arg, const struct err *e, struct warden_reply *r)
{
    struct link *k = arg;
    const struct warden_info *info = e ? NULL : r->msg->info;
    if (e || k->g->stopping) {
        /* lost again, or no matter */
    } else if (!info || info->protocol != PROTO_VERSION) {
        k->informed = false;
        warden_link_refuse(k, info);
        k->events->info(k->arg);
    } else {
        take_info(k, info, r);
        link_is_up(k);
        k->events->info(k->arg);
    }
    hold_release(&k->g->hold);
}

static void
on_info_again(void *arg, const struct err *e, struct warden_reply *r)
{
    struct link *k = arg;
    if (!e && !k->g->stopping && k->up && r->msg->info) {
        take_info(k, r->msg->info, r);
        k->events->info(k->arg);
    }
    hold_release(&k->g->hold);
}

void
link_reload(struct link *k)
{
    if (k->g->stopping || !k->up)
        return; /* who connects asks */
    hold_take(&k->g->hold);
    warden_info(k->g->warden, on_info_again, k);
}

static void
try_connect(void *arg)
{
    struct link *k = arg;
    k->timer = NULL;
    struct err e = ERR_INIT;
    hold_take(&k->g->hold);
    if (warden_client_connect(k->g->warden, &e) < 0) {
        log_debug("client", "the warden cannot be reached", "error", e.text, NULL);
        if (!k->g->stopping)
            retry_later(k);
    } else {
        /* completions of requests that were made without a connection made new ones: on_change */
        timer_stop(TAKE(k->timer));
        k->watch = watch_fd(k->g->loop, warden_client_fd(k->g->warden), WATCH_READ, on_ready, k);
        ASSERT(k->watch);
        hold_take(&k->g->hold);
        warden_info(k->g->warden, on_info, k);
        watch_set(k->watch, wanted_events(k));
    }
    hold_release(&k->g->hold);
}

void
link_start(struct link *k)
{
    if (!k->g->warden)
        return;
    warden_client_on_change(k->g->warden, on_change, k);
    try_connect(k);
}

void
link_stop(struct link *k)
{
    timer_stop(TAKE(k->timer));
    timer_stop(TAKE(k->patience));
    watch_stop(k->watch);
    k->watch = NULL;
    k->up = false;
    if (k->g->warden)
        warden_client_on_change(k->g->warden, NULL, NULL);
}

void
link_close(struct link *k)
{
    bpf_read_close(&k->counters);
    drop_kept(k);
}

const char *
link_fact(const struct link *k, const char *name)
{
    return k->facts ? str_map_get(k->facts, name) : NULL;
}

struct link *
link_new(struct ground *g, const struct link_events *events, void *arg)
{
    struct link *k = g->link = mem_new(g, struct link);
    *k = (struct link){.g = g, .events = events, .arg = arg};
    memset(k->keep, 0xff, sizeof(k->keep)); /* -1 */
    return k;
}
