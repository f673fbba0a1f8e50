/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/logind.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "agent/sdbus.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"

enum { AGAIN_MS = 500, AGAIN_MAX_MS = 60000 }; /* doubled, to a bus that went */

#define ROOM "shutdown"
#define LOGIND "org.freedesktop.login1"
#define PATH "/org/freedesktop/login1"
#define MANAGER "org.freedesktop.login1.Manager"
#define PROPERTIES "org.freedesktop.DBus.Properties"

struct logind {
    struct loop *loop;
    const struct sdbus *so;
    sd_bus *bus;
    struct watch *watch;
    struct timer *timer;
    int lock; /* its end releases it */
    int64_t deadline_ns;
    int64_t again_ms;
    bool ended; /* by a failure, from inside a callback */
    void (*going_down)(void *arg);
    void *arg;
};

static void logind_pump(void *arg);

/* The way of every failure: the agent lives on, the machine goes down without us. */
static void
give_up(struct logind *l, const char *what, const char *why)
{
    if (!l->ended)
        log_warn(ROOM, "the machine's shutdown is not watched: tasks are not drained before it",
                 "step", what, "error", why, NULL);
    l->ended = true;
}

static bool
logind_failed(struct logind *l, sd_bus_message *m, const char *what)
{
    const sd_bus_error *why = l->so->message_get_error(m);
    if (why)
        give_up(l, what, str_or(why->message, why->name));
    return why != NULL;
}

static int
on_lock(sd_bus_message *m, void *arg, sd_bus_error *unused)
{
    struct logind *l = arg;
    int fd = -1;
    (void)unused;
    if (logind_failed(l, m, "take the lock"))
        return 0;
    int r = l->so->message_read(m, "h", &fd);
    fd = r < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3); /* the message's own goes with it */
    if (fd < 0) {
        give_up(l, "take the lock", err_name(r < 0 ? r : -errno));
        return 0;
    }
    fd_close(&l->lock);
    l->lock = fd;
    l->again_ms = 0;
    log_info(ROOM, "the machine's shutdown waits for the drain", NULL);
    return 0;
}

static void
take_lock(struct logind *l)
{
    int r = l->so->call_method_async(l->bus, NULL, LOGIND, PATH, MANAGER, "Inhibit", on_lock, l,
                                     "ssss", "shutdown", "Paddock",
                                     "Tasks are drained to other nodes", "delay");
    if (r < 0)
        give_up(l, "take the lock", err_name(r));
}

static int
on_prepare(sd_bus_message *m, void *arg, sd_bus_error *unused)
{
    struct logind *l = arg;
    int yes = 0;
    (void)unused;
    if (l->so->message_read(m, "b", &yes) < 0)
        return 0;
    if (!yes) {
        log_warn(
            ROOM,
            "the machine stays up: take this node back with `paddock node eligibility -enable`",
            NULL);
        take_lock(l);
        return 0;
    }
    log_info(ROOM, "the machine is about to go down", NULL);
    l->going_down(l->arg);
    return 0;
}

static int
on_matched(sd_bus_message *m, void *arg, sd_bus_error *unused)
{
    struct logind *l = arg;
    (void)unused;
    if (!logind_failed(l, m, "watch PrepareForShutdown"))
        take_lock(l); /* in this order no announcement is missed */
    return 0;
}

static int
on_delay(sd_bus_message *m, void *arg, sd_bus_error *unused)
{
    struct logind *l = arg;
    uint64_t us = 0;
    (void)unused;
    if (l->so->message_get_error(m) || l->so->message_read(m, "v", "t", &us) < 0)
        return 0;
    int64_t ns = us > (uint64_t)(INT64_MAX / NS_PER_US) ? INT64_MAX : (int64_t)us * NS_PER_US;
    if (ns < l->deadline_ns)
        log_warn(
            ROOM,
            "logind does not wait for the whole drain: raise InhibitDelayMaxSec in logind.conf",
            "inhibit_delay", LOG_DUR(ns), "longest_drain",
            l->deadline_ns == INT64_MAX ? "none" : LOG_DUR(l->deadline_ns), NULL);
    return 0;
}

/* --- the bus on the loop --- */

static void
on_ready(void *arg, int fd, unsigned events)
{
    (void)fd;
    (void)events;
    logind_pump(arg);
}

static void
on_timer(void *arg)
{
    struct logind *l = arg;
    l->timer = NULL;
    logind_pump(l);
}

static void
hang_up(struct logind *l)
{
    timer_stop(l->timer);
    watch_stop(l->watch);
    l->timer = NULL;
    l->watch = NULL;
    fd_close(&l->lock);
    if (l->bus)
        l->so->close_unref(l->bus);
    l->bus = NULL;
}

/* Watches for what the bus waits for next: its fd, and a deadline in absolute monotonic
 * microseconds. */
static void
logind_rearm(struct logind *l)
{
    uint64_t until = UINT64_MAX;
    int events = l->so->get_events(l->bus);
    int r = events < 0 ? events : l->so->get_timeout(l->bus, &until);
    if (r < 0) {
        give_up(l, "watch the bus", err_name(r));
        hang_up(l);
        return;
    }
    watch_set(l->watch,
              (events & POLLIN ? WATCH_READ : 0u) | (events & POLLOUT ? WATCH_WRITE : 0u));
    timer_stop(l->timer);
    l->timer = NULL;
    if (until == UINT64_MAX)
        return;
    int64_t left_ns = (int64_t)until * NS_PER_US - clock_mono_ns();
    l->timer = timer_start(l->loop, left_ns <= 0 ? 0 : left_ns / NS_PER_MS + 1, on_timer, l);
}

static void on_again(void *arg);

/* The bus was restarted, say: the lock is taken anew when there is one again. */
static void
connect_later(struct logind *l, const char *why)
{
    if (l->again_ms == 0)
        log_warn(ROOM, "the system bus is gone: it is tried again", "error", why, NULL);
    hang_up(l);
    l->again_ms = l->again_ms == 0 ? AGAIN_MS : 2 * l->again_ms;
    if (l->again_ms > AGAIN_MAX_MS)
        l->again_ms = AGAIN_MAX_MS;
    l->timer = timer_start(l->loop, l->again_ms, on_again, l);
}

static void
logind_pump(void *arg)
{
    struct logind *l = arg;
    int r;
    do
        r = l->so->process(l->bus, NULL);
    while (r > 0 && !l->ended);
    if (l->ended)
        hang_up(l);
    else if (r < 0)
        connect_later(l, err_name(r));
    else
        logind_rearm(l);
}

static int
logind_subscribe(struct logind *l)
{
    const struct sdbus *so = l->so;
    int r = so->open_system(&l->bus);
    if (r >= 0)
        r = so->match_signal_async(l->bus, NULL, LOGIND, PATH, MANAGER, "PrepareForShutdown",
                                   on_prepare, on_matched, l);
    if (r >= 0)
        r = so->call_method_async(l->bus, NULL, LOGIND, PATH, PROPERTIES, "Get", on_delay, l, "ss",
                                  MANAGER, "InhibitDelayMaxUSec");
    int fd = r < 0 ? r : so->get_fd(l->bus);
    if (fd < 0)
        return fd;
    l->watch = watch_fd(l->loop, fd, WATCH_READ, on_ready, l);
    return l->watch ? 0 : -EINVAL;
}

static void
on_again(void *arg)
{
    struct logind *l = arg;
    l->timer = NULL;
    int r = logind_subscribe(l);
    if (r < 0)
        connect_later(l, err_name(r));
    else
        logind_pump(l);
}

struct logind *
logind_start(const void *ctx, struct loop *loop, int64_t deadline_ns,
             void (*going_down)(void *arg), void *arg)
{
    struct err e = ERR_INIT;
    const struct sdbus *so = sdbus_load(&e);
    if (!so) {
        log_info(ROOM, "the machine's shutdown is not watched", "reason", e.text, NULL);
        return NULL;
    }
    struct logind *l = mem_new(ctx, struct logind);
    *l = (struct logind){.loop = loop,
                         .so = so,
                         .lock = -1,
                         .deadline_ns = deadline_ns,
                         .going_down = going_down,
                         .arg = arg};
    int r = logind_subscribe(l);
    if (r < 0) {
        give_up(l, "open the system bus", err_name(r));
        hang_up(l);
    } else {
        logind_pump(l);
    }
    return l;
}

void
logind_release(struct logind *l)
{
    if (l && l->lock >= 0)
        log_info(ROOM, "the machine may go down", NULL);
    if (l)
        fd_close(&l->lock);
}

void
logind_stop(struct logind *l)
{
    if (!l)
        return;
    hang_up(l);
    talloc_free(l);
}
