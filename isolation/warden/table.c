/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/warden/table.h"

#include <unistd.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"
#include "isolation/warden/bpf.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/net.h"

#define ROOM "warden"

static void
table_fact(const void *ctx, struct warden_info *info, const char *name, bool off,
           const struct fact *f)
{
    str_map_set(ctx, &info->facts, name,
                off     ? "off by the client's policy"
                : f->ok ? "true"
                        : f->why);
}

/* Lists what works here, and why the rest does not: attributes of the node. */
static void
info_facts(struct warden *w, const void *ctx, struct warden_info *info)
{
    const struct policy *p = w->policy;
    for (int i = 0; i < PROBE_N; i++)
        table_fact(ctx, info, probe_name((enum probe_id)i), false, &w->probe.facts[i]);
    /* not what the kernel can, but what tasks get */
    uint32_t all =
        CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS | CGROUP_IO | CGROUP_CPUSET | CGROUP_HUGETLB;
    uint32_t absent = w->cgroup.fd < 0 ? all : all & ~w->cgroup.controllers;
    const char *limits = absent == 0 ? "true"
                                     : mem_printf(ctx, "tasks have no limits of: %s",
                                                  cgroup_controllers_text(ctx, absent));
    str_map_set(ctx, &info->facts, "limits", limits);
    table_fact(ctx, info, "userns", str_eq(p->userns, "off"), &w->can.userns);
    table_fact(ctx, info, "disk_quota", str_eq(p->disk_quota, "off"), &w->can.quota);
    table_fact(ctx, info, "verity", false, &w->can.verity);
    table_fact(ctx, info, "bpf_net", false, &w->can.bpf_net);
    table_fact(ctx, info, "bpf_run", false, &w->can.bpf_run);
    table_fact(ctx, info, "bpf_block", false, &w->can.bpf_block);
    table_fact(ctx, info, "kvm", !str_list_has(&p->allowed_devices, POLICY_KVM), &w->can.kvm);
    table_fact(ctx, info, "netns", w->can.netns.ok && !policy_network(p, "none"), &w->can.netns);
    table_fact(ctx, info, "bridge", w->can.bridge.ok && !policy_network(p, "bridge"),
               &w->can.bridge);
    if (w->root && p->raw_exec)
        str_map_set(ctx, &info->facts, "raw_exec_user", policy_raw_user(p, NULL));
}

void
table_info(struct warden *w, struct waiter to, const struct warden_request *q)
{
    (void)q;
    auto_mem void *ctx = mem_ctx("info");
    struct warden_info info = {.version = PACKAGE_VERSION,
                               .protocol = PROTO_VERSION,
                               .pid = getpid(),
                               .root = w->root,
                               .raw_exec = w->policy->raw_exec,
                               .alloc_dir = w->policy->alloc_dir};
    if (w->cgroup.fd >= 0) {
        info.cgroup_root = w->policy->cgroup_root;
        for (size_t i = 0; i < CGROUP_CONTROLLERS_N; i++)
            if ((w->cgroup.controllers & cgroup_controllers[i].bit) != 0)
                list_add(ctx, info.controllers, cgroup_controllers[i].name);
    }
    if (!w->can.exec.ok)
        list_add(ctx, info.missing, w->can.exec.why);
    for (int i = 0; i < PROBE_N; i++)
        if (w->probe.facts[i].ok)
            list_add(ctx, info.features, probe_name((enum probe_id)i));
    for (size_t i = 0; i < w->n_tasks; i++)
        info.tasks += w->tasks[i]->state != TASK_FINISHED;
    info_facts(w, ctx, &info);
    struct answer a = {.msg = {.info = &info}};
    bpf_fds(w, ctx, &a);
    info.bridge = net_bridge(w);
    loop_answer(w, to, &a);
}

/* Indexed by enum warden_op. */
static void (*const handlers[WARDEN_OP_END])(struct warden *, struct waiter,
                                             const struct warden_request *) = {
#define OP(nr, ID, name, must, may, phases, handler, stub, params, request)                        \
    [WARDEN_##ID] = (handler),
#include "isolation/launch/ops.def"
};

bool
table_serve(struct warden *w, uint64_t conn, enum proto_phase *phase, size_t n)
{
    auto_mem void *ctx = mem_ctx("request");
    struct warden_request *q = NULL;
    struct err e = ERR_INIT;
    if (proto_decode(ctx, w->in, n, *phase, &q, &e) < 0) {
        log_warn(ROOM, "bad request: connection closed", "error", e.text, NULL);
        return false;
    }
    *phase = PROTO_READY;
    log_trace(ROOM, "request", "op", proto_op_name(q->op), "alloc_id", q->alloc_id, "task",
              q->task_name, NULL);
    struct waiter to = {conn, q->seq};
    if (!w->stop_tasks || proto_check(q, PROTO_STOPPING, &e) == 0) {
        ASSERT(handlers[q->op] != NULL);
        handlers[q->op](w, to, q);
        return true;
    }
    err_clear(&e); /* no fault of the sender, who need not know of the stop */
    err_set(&e, -ERR_UNAVAILABLE, "the warden is stopping");
    loop_refuse(w, to, &e);
    return true;
}
