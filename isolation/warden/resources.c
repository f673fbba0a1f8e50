/* SPDX-License-Identifier: Apache-2.0
 *
 * Limits of a task: from the agent's numbers to cgroup files, at its launch and while it runs.
 */
#include "isolation/warden/resources.h"

#include <stdio.h>

#include "api/isolation.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "isolation/launch/policy.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/task.h"

#define ROOM "warden"

static void
plan_io(const struct task_isolation *iso, struct cgroup_limits *ret)
{
    for (size_t i = 0; i < iso->io.n && ret->n_io < CGROUP_IO_MAX; i++) {
        const struct task_io *io = iso->io.v[i];
        struct cgroup_io o = {.rbps = io->read_bps,
                              .wbps = io->write_bps,
                              .riops = io->read_iops,
                              .wiops = io->write_iops};
        if (proto_parse_device(io->device, &o.major, &o.minor)) /* so it was, with the request */
            ret->io[ret->n_io++] = o;
    }
}

void
resources_plan(const struct warden *w, const struct launch_limits *l,
               const struct task_isolation *iso, struct cgroup_plan *ret)
{
    iso = isolation_of(iso);
    struct cgroup_limits lim = {
        .cpu_burst_us = iso->cpu_burst / NS_PER_US,
        .cpu_idle = iso->cpu_idle,
        .memory_high = iso->memory_high << 20,
        .memory_min = iso->memory_min << 20,
        .swap_max = iso->swap << 20,
        .zswap_max = iso->zswap.set ? iso->zswap.v << 20 : -1,
        .hugetlb_max = iso->hugetlb << 20,
        .pids_max = iso->pids_max,
        .io_weight = iso->io_weight,
    };
    plan_io(iso, &lim);
    if (l != NULL) {
        lim.cpu_shares = l->cpu_shares;
        lim.cpu_max_us = l->cpu_max;
        lim.memory_max = l->memory_max;
        lim.memory_low = l->memory_low;
        for (size_t i = 0; i < l->cores.n; i++)
            cgroup_cpus_add(&lim.cores, (unsigned)l->cores.v[i]);
    }
    if (lim.pids_max == 0)
        lim.pids_max = w->policy->pids_max_default;
    cgroup_plan(&lim, &w->cgroup, ret);
    ret->strict = policy_limits_required(w->policy);
}

void
resources_warn(struct wtask *t, const struct cgroup_plan *plan)
{
    auto_mem void *tmp = mem_ctx("limits");
    const char *missing = cgroup_plan_missing(tmp, plan), *unheld = cgroup_plan_unheld(tmp, plan);
    mem_free(t->warning);
    t->warning = NULL;
    if (missing[0] == '\0' && unheld[0] == '\0')
        return;
    t->warning =
        mem_printf(t, "%s%s%s%s%s%.400s", unheld[0] != '\0' ? "limits not enforced: no " : "",
                   unheld, unheld[0] != '\0' ? " controller on cgroup v2" : "",
                   unheld[0] != '\0' && missing[0] != '\0' ? "; " : "",
                   missing[0] != '\0' ? "limits that this client cannot set: " : "", missing);
    if (missing[0] != '\0') /* of the others the start of the warden told */
        log_info(ROOM, "a task runs without limits that it was to have", "alloc_id", t->alloc,
                 "task", t->name, "limits", missing, NULL);
}

static struct wtask *
find_running(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    struct wtask *t = task_find_now(w, q->alloc_id, q->task_name);
    if (t == NULL || t->state != TASK_RUNNING) {
        task_unknown(w, to, q->alloc_id, q->task_name);
        return NULL;
    }
    if (t->cgroup.task_fd >= 0)
        return t;
    err_set(&e, -ERR_UNSUPPORTED, "task \"%s\" has no cgroup: paddock runs without root", t->name);
    loop_refuse(w, to, &e);
    return NULL;
}

void
resources_resize(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct err e = ERR_INIT;
    struct wtask *t = find_running(w, to, q);
    if (t == NULL)
        return;
    struct cgroup_plan plan;
    struct answer a = {0};
    int r = policy_check_limits(w->policy, q->isolation, &e);
    if (r == 0) {
        resources_plan(w, q->limits, q->isolation, &plan);
        r = cgroup_task_resize(&w->cgroup, t->alloc, t->name, &plan, &e);
    }
    if (r < 0) {
        loop_refuse(w, to, &e);
        return;
    }
    resources_warn(t, &plan);
    a.msg.warning = t->warning;
    loop_answer(w, to, &a);
}

static void
resources_freeze(struct warden *w, struct waiter to, const struct warden_request *q, bool on)
{
    struct err e = ERR_INIT;
    struct answer a = {0};
    struct wtask *t = find_running(w, to, q);
    if (t == NULL)
        return;
    int r = cgroup_freeze(t->cgroup.task_fd, on);
    if (r < 0) {
        err_errno(&e, -r, "%s task \"%s\"", on ? "pause" : "resume", t->name);
        loop_refuse(w, to, &e);
        return;
    }
    loop_answer(w, to, &a);
}

void
resources_pause(struct warden *w, struct waiter to, const struct warden_request *q)
{
    resources_freeze(w, to, q, true);
}

void
resources_resume(struct warden *w, struct waiter to, const struct warden_request *q)
{
    resources_freeze(w, to, q, false);
}

/* The kernel tells whoever holds the descriptor, which only root can make. It goes with the agent.
 */
void
resources_watch(struct warden *w, struct waiter to, const struct warden_request *q)
{
    struct wtask *t = find_running(w, to, q);
    const struct task_pressure *p = q->isolation->pressure;
    if (t == NULL)
        return;
    auto_mem void *ctx = mem_ctx("watch");
    struct answer a = {0};
    const int64_t waits[] = {p ? p->cpu : 0, p ? p->memory : 0, p ? p->io : 0};
    int fds[ARRAY_LEN(waits)];
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        fds[i] = waits[i] > 0 ? cgroup_pressure_open(t->cgroup.task_fd, (enum cgroup_pressure)i,
                                                     waits[i] / NS_PER_US)
                              : -1;
        if (waits[i] > 0 && fds[i] < 0)
            a.msg.warning =
                mem_printf(ctx, "pressure cannot be watched on this client: %s", err_name(fds[i]));
        else
            loop_answer_fd(ctx, &a, (enum warden_fd)(WARDEN_FD_PRESSURE + i), fds[i]);
    }
    loop_answer(w, to, &a);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        fd_close(&fds[i]);
}
