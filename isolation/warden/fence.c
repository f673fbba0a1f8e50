/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/warden/fence.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/task.h"

#define ROOM "warden"
/* Older wardens had something else in that place of a record. */
#define MARK (UINT64_C(0xfe4c) << 48)
#define TIME_MASK ((UINT64_C(1) << 48) - 1)

static int64_t
now_ms(void)
{
    return clock_boot_ns() / NS_PER_MS;
}

bool
fence_is_over(int64_t until_ms)
{
    return until_ms != 0 && until_ms <= now_ms();
}

uint64_t
fence_put(int64_t until_ms)
{
    return until_ms > 0 ? MARK | ((uint64_t)until_ms & TIME_MASK) : 0;
}

int64_t
fence_get(uint64_t field)
{
    return (field & ~TIME_MASK) == MARK ? (int64_t)(field & TIME_MASK) : 0;
}

/* For the one that is due next. */
static void
fence_arm(struct warden *w)
{
    int64_t next = INT64_MAX;
    struct itimerspec at = {0};

    for (size_t i = 0; i < w->n_tasks; i++)
        if (w->tasks[i]->fence_ms != 0 && w->tasks[i]->fence_ms < next)
            next = w->tasks[i]->fence_ms;
    if (next != INT64_MAX)
        at.it_value = (struct timespec){.tv_sec = next / 1000, .tv_nsec = next % 1000 * NS_PER_MS};
    if (timerfd_settime(w->fence.fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
        log_error(ROOM, "the watchdog cannot be set", "error", err_name(-errno), NULL);
}

/* False: it was late, and is killed. */
static bool
in_time(struct warden *w, struct wtask *t)
{
    if (t->fence_ms == 0 || !fence_is_over(t->fence_ms))
        return true;
    log_warn(ROOM, "no server was heard in the time of its fence: the task is killed", "alloc_id",
             t->alloc, "task", t->name, NULL);
    t->fence_ms = 0;
    task_end_now(w, t);
    return false;
}

static void
fence_event(struct warden *w, struct watch *watch, uint32_t events)
{
    uint64_t n;
    (void)events;
    if (read(watch->fd, &n, sizeof(n)) != (ssize_t)sizeof(n) && errno != EAGAIN)
        log_warn(ROOM, "the watchdog's timer cannot be read", "error", err_name(-errno), NULL);
    for (size_t i = 0; i < w->n_tasks; i++)
        (void)in_time(w, w->tasks[i]);
    fence_arm(w);
}

int
fence_open(struct warden *w, struct err *e)
{
    w->fence =
        (struct watch){timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), fence_event};
    if (w->fence.fd < 0 || loop_watch(w, &w->fence, EPOLLIN) < 0)
        return err_errno(e, errno, "make the watchdog's timer");
    return 0;
}

void
fence_task(struct warden *w, struct wtask *t, int64_t until_ms)
{
    t->fence_ms = t->state == TASK_FINISHED ? 0 : until_ms;
    if (in_time(w, t))
        fence_arm(w);
}

void
fence_renew(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct wtask *t = task_find_now(w, q->alloc_id, q->task_name);
    struct answer a = {0};
    struct err e = ERR_INIT;

    if (t == NULL) {
        task_unknown(w, to, q->alloc_id, q->task_name);
        return;
    }
    /* a killed task stays so, and time does not go back */
    if (t->fence_ms != 0 && q->until > t->fence_ms) {
        uint64_t field = fence_put(q->until);
        int r = fd_pwrite_full(t->record, &field, sizeof(field), offsetof(struct record, fence));
        if (r < 0) {
            err_errno(&e, -r, "write the record of task \"%s\"", t->name);
            loop_refuse(w, to, &e);
            return;
        }
        fence_task(w, t, q->until);
    }
    loop_answer(w, to, &a);
}
