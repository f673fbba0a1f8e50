/* SPDX-License-Identifier: Apache-2.0 */
#include "client/node/alone.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "api/away.h"
#include "api/terms.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

enum {
    FILE_MAX = 256,
    BOOT_MAX = 64,
    BEATS_PER_FENCE = 4, /* heartbeats in the time after which the watchdog kills */
    LOOK_MS =
        2000 /* a timer does not count while the machine is suspended: it is looked at so often */
};

static const char contact_file[] = "contact";
static const char boot_file[] = "/proc/sys/kernel/random/boot_id";

struct alone {
    struct allocs *allocs;
    struct timer *timer;
    int64_t heard_ns; /* clock_boot_ns(); of the start where nothing is known */
    char boot[BOOT_MAX];
    bool writing, again; /* there was another contact meanwhile */
    bool stopped;
};

struct writing { /* a talloc context */
    struct alone *x;
    const char *dir, *text;
    int code;
};

static const struct task_group *
group_of(const struct alloc_runner *ar)
{
    const struct allocation *a = ar->a.rec->alloc;
    return job_group(a->job, a->task_group);
}

/* A fenced allocation ends by itself before its watchdog kills it, if there is the time for that.
 */
static int64_t
before_fence(const struct task_group *g)
{
    int64_t lost = g->disconnect->lost_after.v, end = 0;

    for (size_t i = 0; i < g->tasks.n; i++)
        if (g->tasks.v[i]->kill_timeout.v > end)
            end = g->tasks.v[i]->kill_timeout.v;
    return end + NS_PER_S < lost / 2 ? lost - end - NS_PER_S : lost / 2;
}

/* How long it may run without a server, ns; 0: for ever. */
static int64_t
most_alone(const struct alloc_runner *ar)
{
    const struct task_group *g = group_of(ar);

    if (ar->a.rec->stopping || alloc_runner_terminal(ar))
        return 0;
    if (group_fenced(g))
        return before_fence(g);
    if (g == NULL || g->disconnect == NULL || !g->disconnect->stop_on_client_after.set)
        return 0;
    return g->disconnect->stop_on_client_after.v > 0 ? g->disconnect->stop_on_client_after.v : 1;
}

/* --- the watchdog of the warden --- */

static void
on_fence(void *arg, const struct err *e, struct warden_reply *r)
{
    struct ground *g = arg;
    (void)r;
    if (e && e->code != -ERR_NOT_FOUND)
        log_warn("client", "the watchdog was not told of the servers", "error", e->text, NULL);
    hold_release(&g->hold);
}

/* True: heartbeats are to come more often than before. */
static bool
want_beats(struct ground *g, const struct alloc_runner *ar)
{
    int64_t ms = group_of(ar)->disconnect->lost_after.v / NS_PER_MS / BEATS_PER_FENCE;

    if (g->beat_most_ms != 0 && g->beat_most_ms <= ms)
        return false;
    g->beat_most_ms = ms;
    return true;
}

/* Lets the allocation's tasks run on for lost_after from here. */
static void
alone_renew(struct ground *g, const struct alloc_runner *ar)
{
    int64_t lost = group_of(ar)->disconnect->lost_after.v;

    (void)want_beats(g, ar);
    for (size_t i = 0; i < ar->n && g->warden != NULL; i++) {
        if (!task_sm_live(ar->tasks[i].sm.t))
            continue;
        hold_take(&g->hold);
        warden_fence(g->warden, ar->a.id, ar->tasks[i].sm.t->name, (g->heard_ns + lost) / NS_PER_MS,
                     on_fence, g);
    }
}

/* --- the file --- */

static void
write_work(void *arg)
{
    struct writing *w = arg;
    auto_fd int dir = open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->code =
        dir < 0 ? -errno : file_write_atomic(dir, contact_file, w->text, strlen(w->text), 0600);
}

static void alone_save(struct alone *x);

static void
write_done(void *arg)
{
    struct writing *w = arg;
    struct alone *x = w->x;
    struct ground *g = x->allocs->g;
    if (w->code < 0)
        log_warn("client",
                 "the last contact was not written: an agent that starts again counts from then",
                 "dir", w->dir, "error", err_name(w->code), NULL);
    talloc_free(w);
    x->writing = false;
    if (x->again && !g->stopping)
        alone_save(x);
    hold_release(&g->hold);
}

static void
alone_save(struct alone *x)
{
    struct ground *g = x->allocs->g;
    x->again = x->writing;
    if (x->writing)
        return;
    struct writing *w = mem_new(NULL, struct writing);
    *w = (struct writing){x, mem_strdup(w, g->cfg.state_dir),
                          mem_printf(w, "%s %lld\n", x->boot, (long long)x->heard_ns), 0};
    x->writing = true;
    hold_take(&g->hold);
    loop_work(g->loop, write_work, write_done, w);
}

static void
alone_load(struct alone *x)
{
    auto_mem void *tmp = mem_ctx("contact");
    auto_fd int dir = open(x->allocs->g->cfg.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *text = NULL, *space;
    size_t n = 0;
    int64_t at = 0;

    if (file_read(tmp, AT_FDCWD, boot_file, FILE_MAX, &text, &n) == 0) {
        text[strcspn(text, "\n")] = '\0';
        (void)str_copy(x->boot, sizeof(x->boot), text);
    }
    if (dir < 0 || file_read(tmp, dir, contact_file, FILE_MAX, &text, &n) < 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    space = strchr(text, ' ');
    if (space == NULL)
        return;
    *space = '\0';
    /* a word of another boot: its tasks ended with it, and none is begun again before a server was
     * heard */
    if (str_eq(text, x->boot) && num_parse_i64(space + 1, &at) == 0 && at > 0 && at < x->heard_ns)
        x->heard_ns = x->allocs->g->heard_ns = at;
}

/* --- deadlines --- */

static void alone_look(void *arg);

static void
alone_arm(struct alone *x)
{
    int64_t now = clock_boot_ns(), next = INT64_MAX;

    timer_stop(TAKE(x->timer));
    ALLOCS_EACH(x->allocs, ar) {
        int64_t most = most_alone(ar);
        if (most > 0 && x->heard_ns + most < next)
            next = x->heard_ns + most;
    }
    if (next == INT64_MAX || x->stopped)
        return;
    int64_t ms = next > now ? (next - now) / NS_PER_MS + 1 : 0;
    x->timer = timer_start(x->allocs->g->loop, ms < LOOK_MS ? ms : LOOK_MS, alone_look, x);
}

static void
alone_look(void *arg)
{
    struct alone *x = arg;
    int64_t now = clock_boot_ns();

    x->timer = NULL;
    ALLOCS_EACH(x->allocs, ar) {
        int64_t most = most_alone(ar);
        if (most == 0 || now - x->heard_ns < most)
            continue;
        log_warn("client",
                 "no server was heard for stop_on_client_after: the allocation is stopped",
                 "alloc_id", ar->a.id, "alone", LOG_DUR(now - x->heard_ns), NULL);
        alloc_runner_stop(ar);
    }
    alone_arm(x);
}

void
alone_heard(struct alone *x, int64_t sent_ns)
{
    bool wanted = false;

    if (sent_ns <= x->allocs->g->heard_ns)
        return;
    struct ground *g = x->allocs->g;
    x->heard_ns = g->heard_ns = sent_ns;
    g->beat_most_ms = 0;
    ALLOCS_EACH(x->allocs, ar) {
        wanted |= most_alone(ar) > 0;
        if (most_alone(ar) > 0 && group_fenced(group_of(ar)))
            alone_renew(g, ar);
    }
    if (wanted)
        alone_save(x);
    if (wanted && x->timer == NULL)
        alone_arm(x);
}

bool
alone_seen(struct alone *x, const struct alloc_runner *ar)
{
    bool more = false;

    if (x->stopped || most_alone(ar) == 0)
        return false;
    if (group_fenced(group_of(ar)))
        more = want_beats(x->allocs->g, ar);
    if (x->timer != NULL)
        return more;
    alone_save(x);
    alone_arm(x);
    return more;
}

void
alone_stop(struct alone *x)
{
    x->stopped = true;
    timer_stop(TAKE(x->timer));
}

struct alone *
alone_new(struct allocs *allocs)
{
    struct alone *x = mem_new(allocs->g, struct alone);
    *x = (struct alone){.allocs = allocs, .heard_ns = clock_boot_ns()};
    alone_load(x);
    return x;
}
