/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pause.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agent/sdbus.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/policy.h"
#include "isolation/limits.h"
#include "isolation/supervisor.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define PATH "/org/freedesktop/systemd1"
#define MANAGER "org.freedesktop.systemd1.Manager"
#define NO_SUCH_UNIT "org.freedesktop.systemd1.NoSuchUnit"
#define RUN_DIR "/run/paddock" /* of the installed unit */

/* A job of systemd's, from the call that returns it to the job's end. */
struct wait {
    const struct sdbus *so;
    sd_bus *bus;
    sd_bus_message *reply; /* holds `job` */
    const char *job;       /* object path */
    char result[32];       /* "done", "failed", ...; empty: not yet */
    sd_bus_error error;
};

static const char *
unit_of(const void *ctx, const char *run_dir)
{
    if (str_eq(run_dir, RUN_DIR))
        return "paddock-tasks.service";
    return mem_printf(ctx, "paddock-tasks-%08x.service",
                      (unsigned)(hash_bytes(run_dir, strlen(run_dir)) & UINT32_MAX));
}

static int
bus_error(const struct wait *w, int r, const char *what, const char *unit, struct err *e)
{
    return err_set(e, r, "%s %s: %s", what, unit,
                   w->error.message ? w->error.message : err_name(r));
}

static int
on_removed(sd_bus_message *m, void *arg, sd_bus_error *unused)
{
    struct wait *w = arg;
    const char *job = NULL, *result = NULL;
    uint32_t id;
    (void)unused;
    if (w->so->message_read(m, "uoss", &id, &job, NULL, &result) >= 0 && w->job &&
        str_eq(job, w->job))
        (void)str_copy(w->result, sizeof(w->result), result);
    return 0;
}

static int
pause_begin(struct wait *w, struct err *e)
{
    *w = (struct wait){.so = sdbus_load(e)};
    if (!w->so)
        return e->code;
    int r = w->so->open_system(&w->bus);
    if (r >= 0)
        r = w->so->match_signal(w->bus, NULL, SYSTEMD, PATH, MANAGER, "JobRemoved", on_removed, w);
    if (r >= 0) /* or we would be told of no job */
        r = w->so->call_method(w->bus, SYSTEMD, PATH, MANAGER, "Subscribe", &w->error, NULL, NULL);
    return r < 0 ? bus_error(w, r, "ask", "systemd", e) : 0;
}

static void
pause_end(struct wait *w)
{
    if (!w->so)
        return;
    w->so->error_free(&w->error);
    (void)w->so->message_unref(w->reply);
    if (w->bus)
        (void)w->so->close_unref(w->bus);
}

/* `r` and w->reply are what a call returned that starts a job. */
static int
await_job(struct wait *w, int r, const char *what, const char *unit, struct err *e)
{
    int64_t until = clock_mono_ns() + PAUSE_WAIT_MS * NS_PER_MS;
    if (r >= 0)
        r = w->so->message_read(w->reply, "o", &w->job);
    while (r >= 0 && !w->result[0]) {
        r = w->so->process(w->bus, NULL);
        int64_t left = until - clock_mono_ns();
        if (r == 0 && left <= 0)
            return err_set(e, -ERR_TIMEOUT, "%s %s: systemd has not done it in time", what, unit);
        if (r == 0)
            r = w->so->wait(w->bus, (uint64_t)(left / NS_PER_US));
        if (r == -EINTR)
            r = 0;
    }
    if (r < 0)
        return bus_error(w, r, what, unit, e);
    if (!str_eq(w->result, "done"))
        return err_set(e, -ERR_UNAVAILABLE, "%s %s: %s; see journalctl -u %s", what, unit,
                       w->result, unit);
    return 0;
}

/* Starts the unit that contrib/systemd/paddock-tasks.service.in describes, by the same
 * properties. */
static int
pause_transient(struct wait *w, const char *unit, const char *exe, const char *run_dir)
{
    const struct sdbus *so = w->so;
    sd_bus_message *m = NULL;
    int r = so->message_new_method_call(w->bus, &m, SYSTEMD, PATH, MANAGER, "StartTransientUnit");
    if (r >= 0)
        r = so->message_append(m, "ss", unit, "fail");
    if (r >= 0)
        r = so->message_open_container(m, 'a', "(sv)");
    if (r >= 0)
        r = so->message_append(m, "(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)(sv)", "Description",
                               "s", "Paddock tasks", "Type", "s", "notify", "Delegate", "b", 1,
                               "OOMPolicy", "s", "continue", "OOMScoreAdjust", "i", -1000,
                               "TasksMax", "t", UINT64_MAX, "CPUAccounting", "b", 1,
                               "MemoryAccounting", "b", 1, "TasksAccounting", "b", 1,
                               "IOAccounting", "b", 1, "CollectMode", "s", "inactive-or-failed");
    if (r >= 0)
        r = so->message_append(m, "(sv)", "ExecStart", "a(sasb)", 1, exe, 2, exe, run_dir, 0);
    if (r >= 0)
        r = so->message_append(m, "(sv)", "ExecStop", "a(sasb)", 1, exe, 3, exe, "-ending", run_dir,
                               0);
    if (r >= 0)
        r = so->message_close_container(m);
    if (r >= 0)
        r = so->message_append(m, "a(sa(sv))", 0);
    if (r >= 0)
        r = so->call(w->bus, m, 0, &w->error, &w->reply);
    (void)so->message_unref(m);
    return r;
}

static int
start_unit(struct wait *w, const char *unit, const char *run_dir, struct err *e)
{
    char exe[PATH_MAX];
    int r = w->so->call_method(w->bus, SYSTEMD, PATH, MANAGER, "StartUnit", &w->error, &w->reply,
                               "ss", unit, "replace");
    if (r < 0 && w->so->error_has_name(&w->error, NO_SUCH_UNIT)) {
        r = supervisor_helpers(exe, sizeof(exe), e);
        if (r < 0)
            return r;
        w->so->error_free(&w->error);
        if (strlen(exe) + sizeof("/paddock-holder") > sizeof(exe))
            return err_set(e, -ERR_LIMIT, "the path of paddock-holder is too long");
        strncat(exe, "/paddock-holder", sizeof(exe) - strlen(exe) - 1);
        r = cgroup_clear(run_dir, PAUSE_CLEAR_MS, e);
        if (r < 0)
            return r;
        r = pause_transient(w, unit, exe, run_dir);
    }
    return await_job(w, r, "start", unit, e);
}

int
pause_start(const void *ctx, const char *run_dir, const char **ret_cgroup, struct err *e)
{
    auto_mem void *tmp = mem_ctx("pause");
    const char *unit = unit_of(tmp, run_dir);
    struct wait w;
    char *text;
    int r = pause_begin(&w, e);
    if (r == 0)
        r = start_unit(&w, unit, run_dir, e);
    pause_end(&w);
    if (r < 0)
        return r;
    const char *file = mem_printf(tmp, "%s/" POLICY_CGROUP, run_dir);
    r = file_read(ctx, AT_FDCWD, file, PATH_MAX, &text, NULL);
    if (r < 0)
        return err_errno(e, -r, "%s runs, but read \"%s\"", unit, file);
    log_info("supervisor", "tasks are held by systemd", "unit", unit, "cgroup", text, NULL);
    *ret_cgroup = text;
    return 0;
}

int
pause_stop(const char *run_dir, struct err *e)
{
    auto_mem void *tmp = mem_ctx("pause");
    const char *unit = unit_of(tmp, run_dir);
    struct wait w;
    int r = pause_begin(&w, e);
    if (r == 0) {
        r = w.so->call_method(w.bus, SYSTEMD, PATH, MANAGER, "StopUnit", &w.error, &w.reply, "ss",
                              unit, "replace");
        r = await_job(&w, r, "stop", unit, e);
    }
    pause_end(&w);
    return r;
}
