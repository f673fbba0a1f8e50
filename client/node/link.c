/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to the warden: made, watched, and made again when it breaks.
 */
#include <poll.h>
#include <string.h>

#include "client/client_int.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/proto.h"

static void try_connect(void *arg);

static unsigned
wanted_events(struct client *c)
{
    short ev = warden_client_events(c->warden);
    return (ev & POLLIN ? WATCH_READ : 0u) | (ev & POLLOUT ? WATCH_WRITE : 0u);
}

static void
retry_later(struct client *c)
{
    if (c->link_timer)
        return;
    c->link_retry_ms = c->link_retry_ms ? c->link_retry_ms * 2 : CLIENT_LINK_RETRY_MS;
    if (c->link_retry_ms > CLIENT_LINK_RETRY_MAX_MS)
        c->link_retry_ms = CLIENT_LINK_RETRY_MAX_MS;
    c->link_timer = timer_start(c->loop, c->link_retry_ms, try_connect, c);
}

static void
link_lost(struct client *c)
{
    if (c->link_up && !c->stopping)
        log_warn("client", "connection to the warden lost", "why", warden_client_lost(c->warden), NULL);
    if (c->link_up && clock_mono_ns() - c->link_since_ns > CLIENT_LINK_RETRY_MAX_MS * NS_PER_MS)
        c->link_retry_ms = 0; /* one that is lost again at once is not asked for as fast as it goes */
    c->link_up = false;
    watch_stop(c->link_watch);
    c->link_watch = NULL;
    retry_later(c);
}

static void
on_ready(void *arg, int fd, unsigned events)
{
    (void)fd;
    (void)events;
    struct client *c = arg;
    client_hold(c);
    if (warden_client_ready(c->warden) < 0)
        link_lost(c);
    else if (c->link_watch)
        watch_set(c->link_watch, wanted_events(c));
    client_release(c);
}

static void
on_change(void *arg)
{
    struct client *c = arg;
    if (c->link_watch)
        watch_set(c->link_watch, wanted_events(c));
    else
        retry_later(c);
}

void
link_drop(struct client *c)
{
    for (size_t i = 0; i < ARRAY_LEN(c->keep); i++)
        fd_close(&c->keep[i]);
}

static void
take_facts(struct client *c, const struct warden_info *info, struct warden_reply *r)
{
    mem_free(c->warden_facts);
    c->warden_facts = mem_new(c, struct str_map);
    for (size_t i = 0; info && i < info->facts.n; i++)
        str_map_set(c->warden_facts, c->warden_facts, info->facts.v[i].k, info->facts.v[i].v);
    bpf_read_close(&c->counters);
    if (r->counters >= 0 && bpf_read_open(&c->counters, r->counters) < 0)
        log_warn("client", "the network counters of tasks cannot be read", NULL);
    if (r->runs >= 0 && bpf_read_open_runs(&c->counters, r->runs) < 0)
        log_warn("client", "the counters of processes cannot be read", NULL);
    if (r->blocks >= 0 && bpf_read_open_blocks(&c->counters, r->blocks) < 0)
        log_warn("client", "the counters of disks cannot be read", NULL);
    link_drop(c);
    for (size_t i = 0; i < ARRAY_LEN(c->keep); i++)
        c->keep[i] = TAKE_FD(r->keep[i]);
}

/* What it can do, and what the policy lets it. */
static void
take_info(struct client *c, const struct warden_info *info, struct warden_reply *r)
{
    mem_free(c->warden_missing);
    mem_free(c->warden_cgroup);
    mem_free(c->warden_bridge);
    c->warden_root = info->root;
    c->warden_raw_exec = info->raw_exec;
    if (info->missing.n > 0)
        c->warden_missing = mem_strdup(c, info->missing.v[0]);
    if (!str_empty(info->cgroup_root))
        c->warden_cgroup = mem_strdup(c, info->cgroup_root);
    if (!str_empty(info->bridge))
        c->warden_bridge = mem_strdup(c, info->bridge);
    take_facts(c, info, r);
    c->link_info = true;
}

static void
link_is_up(struct client *c)
{
    c->link_up = true;
    c->link_since_ns = clock_mono_ns();
    c->link_refused = 0;
    struct alloc_runner *ar, *tmp;
    HASH_ITER(hh, c->allocs, ar, tmp)
    {
        alloc_runner_link_up(ar);
    }
    sweep_start(c);
}

/* During an upgrade: the older of the two will be restarted, and the connection made again. */
static void
refuse(struct client *c, const struct warden_info *info)
{
    int64_t theirs = info ? info->protocol : 0;
    if (c->link_refused != theirs + 1)
        log_error("client",
                  "the warden speaks another version of the protocol: restart paddock and "
                  "paddock-warden of one installation; tasks run on",
                  "warden", LOG_I64(theirs), "agent", LOG_I64(PROTO_VERSION), "warden_version",
                  str_or(info ? info->version : NULL, "?"), NULL);
    c->link_refused = theirs + 1;
}

static void
on_info(void *arg, const struct err *e, struct warden_reply *r)
{
    struct client *c = arg;
    const struct warden_info *info = e ? NULL : r->msg->info;
    if (e || c->stopping) {
        /* lost again, or no matter */
    } else if (!info || info->protocol != PROTO_VERSION) {
        c->link_info = false;
        refuse(c, info);
        register_start(c);
    } else {
        take_info(c, info, r);
        link_is_up(c);
        register_start(c);
    }
    client_release(c);
}

static void
on_info_again(void *arg, const struct err *e, struct warden_reply *r)
{
    struct client *c = arg;
    if (!e && !c->stopping && c->link_up && r->msg->info) {
        take_info(c, r->msg->info, r);
        register_start(c);
    }
    client_release(c);
}

void
client_reload(struct client *c)
{
    if (c->stopping || !c->link_up)
        return; /* who connects asks */
    client_hold(c);
    warden_info(c->warden, on_info_again, c);
}

static void
try_connect(void *arg)
{
    struct client *c = arg;
    c->link_timer = NULL;
    struct err e = ERR_INIT;
    client_hold(c);
    if (warden_client_connect(c->warden, &e) < 0) {
        log_debug("client", "the warden cannot be reached", "error", e.text, NULL);
        if (!c->stopping)
            retry_later(c);
    } else {
        /* completions of requests that were made without a connection made new ones: on_change */
        timer_stop(TAKE(c->link_timer));
        c->link_watch = watch_fd(c->loop, warden_client_fd(c->warden), WATCH_READ, on_ready, c);
        ASSERT(c->link_watch);
        client_hold(c);
        warden_info(c->warden, on_info, c);
        watch_set(c->link_watch, wanted_events(c));
    }
    client_release(c);
}

void
link_start(struct client *c)
{
    if (!c->warden)
        return;
    warden_client_on_change(c->warden, on_change, c);
    try_connect(c);
}

void
link_stop(struct client *c)
{
    timer_stop(c->link_timer);
    c->link_timer = NULL;
    watch_stop(c->link_watch);
    c->link_watch = NULL;
    c->link_up = false;
    if (c->warden)
        warden_client_on_change(c->warden, NULL, NULL);
}
