/* SPDX-License-Identifier: Apache-2.0
 *
 * Network accounting and policy of tasks, and what else programs count for them. Counting that
 * cannot be had is absent and says why; a policy that somebody asked for (the job, or the
 * operator's isolation block) and that cannot be enforced keeps the task from starting. The
 * built-in refusals, of cloud metadata and of where the agent listens, are enforced where they can
 * be.
 */
#include "isolation/warden/bpf.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/bpf/netrules.h"
#include "isolation/launch/policy.h"
#include "isolation/warden/loop.h"

#define ROOM "warden"

/* Notes what came of a try; the log has what is missing. `quiet`: how the host is, the node's
 * attributes say so. */
static void
bpf_tell(const struct warden *w, struct fact *f, const struct err *e, bool quiet, const char *what)
{
    fact_of(f, e);
    if (f->ok || !w->root || quiet)
        return;
    if (e->code == -ERR_UNSUPPORTED) /* a kind of host, and no fault */
        log_info(ROOM, what, "error", e->text, NULL);
    else
        log_warn(ROOM, what, "error", e->text, NULL);
}

void
bpf_start(struct warden *w)
{
    struct err net = ERR_INIT, run = ERR_INIT, block = ERR_INIT;
    if (!w->root || w->cgroup.fd < 0) {
        err_set(&net, -ERR_UNSUPPORTED, "%s",
                w->root ? "no cgroup2 file system is mounted" : "paddock runs without root");
        run = block = net;
    } else {
        (void)bpf_net_open(&w->net, w->cgroup.fd, &net);
        (void)bpf_rows_open(&w->run, &bpf_rows_run, w->cgroup.fd, &run);
        if ((w->cgroup.controllers & CGROUP_IO) == 0) /* requests bear ids of another hierarchy */
            err_set(&block, -ERR_UNSUPPORTED,
                    "disks do not tell whose a request is: the controller io is not on cgroup v2 "
                    "(a hybrid host keeps it on v1), or not handed down to tasks");
        else
            (void)bpf_rows_open(&w->block, &bpf_rows_block, w->cgroup.fd, &block);
    }
    bpf_tell(w, &w->can.bpf_net, &net, false,
             "no network accounting, and no task with a network policy starts");
    bpf_tell(w, &w->can.bpf_run, &run, false, "no accounting of waits and ends");
    bpf_tell(w, &w->can.bpf_block, &block, block.code == -ERR_UNSUPPORTED,
             "no accounting of requests to disks");
}

void
bpf_fds(struct warden *w, const void *ctx, struct answer *a)
{
    loop_answer_fd(ctx, a, WARDEN_FD_COUNTERS, w->net.net);
    loop_answer_fd(ctx, a, WARDEN_FD_RUNS, w->run.map);
    loop_answer_fd(ctx, a, WARDEN_FD_BLOCKS, w->block.map);
    loop_answer_fd(ctx, a, WARDEN_FD_KEEP_BLOCK, w->block.links[0]);
    for (int i = 0; i < BPF_LINKS_MAX; i++)
        loop_answer_fd(ctx, a, (enum warden_fd)(WARDEN_FD_KEEP + i), w->run.links[i]);
}

void
bpf_remove(struct warden *w, const struct wtask *t)
{
    bpf_net_remove(&w->net, t->cgroup.id);
    bpf_rows_remove(&w->run, t->cgroup.id);
    bpf_rows_remove(&w->block, t->cgroup.id);
}

static bool
bpf_polices(const struct warden *w, const struct launch_spec *s)
{
    return s->egress != NULL || s->bind != NULL || w->policy->egress != NULL ||
           w->policy->bind != NULL;
}

int
bpf_check(struct warden *w, const struct launch_spec *s, const struct user *u, struct err *e)
{
    if (!bpf_polices(w, s))
        return 0;
    if (!bpf_net_works(&w->net))
        return err_set(e, -ERR_UNSUPPORTED, "a network policy cannot be enforced here: %s",
                       w->can.bpf_net.why);
    if (!s->isolated && u->uid == 0)
        return err_set(
            e, -ERR_POLICY,
            "a network policy does not bind root outside a sandbox: use the driver exec, "
            "or another user");
    if (s->isolated && s->cap_add.n > 0 &&
        (!w->policy->seccomp || str_eq(s->seccomp, "unconfined")))
        return err_set(e, -ERR_POLICY,
                       "a network policy does not bind a task with capabilities and without a "
                       "seccomp filter");
    return 0;
}

static int
bpf_compile(const void *ctx, const char *what, const struct net_policy *const *policies, size_t n,
            const struct netrules **ret, struct err *e)
{
    struct netrules_side sides[NETRULES_SIDES_MAX];
    size_t used = 0;
    int r = 0;
    for (size_t i = 0; i < n && r == 0; i++)
        if (policies[i] != NULL)
            r = netrules_side(ctx, policies[i], &sides[used++], e);
    struct netrules *rules = used > 0 ? mem_new(ctx, struct netrules) : NULL;
    if (r == 0 && used > 0)
        r = netrules_compile(rules, sides, used, rules, e);
    if (r < 0)
        err_prefix(e, "%s", what);
    *ret = rules;
    return r;
}

static int
compile_both(const struct warden *w, const void *ctx, const struct launch_spec *s,
             struct task_rules *ret, struct err *e)
{
    const struct policy *p = w->policy;
    const struct net_policy agent = {.deny = p->agent_denied};
    const struct net_policy *const out[] = {p->egress, p->metadata ? NULL : netrules_metadata(),
                                            p->agent_denied.n > 0 ? &agent : NULL, s->egress};
    const struct net_policy *const in[] = {p->bind, s->bind};
    int r = bpf_compile(ctx, "egress", out, ARRAY_LEN(out), &ret->egress, e);
    return r < 0 ? r : bpf_compile(ctx, "bind", in, ARRAY_LEN(in), &ret->bind, e);
}

/* Returns the numbers of the devices that the task is given; owned by ctx. */
static struct bpf_devices
find_devices(const void *ctx, const struct base *b, const struct launch_spec *s)
{
    struct bpf_devices d = {mem_array(ctx, struct bpf_device, b->n_devices + 1), 0};
    if (str_list_has(&s->devices, POLICY_KVM))
        d.v[d.n++] = (struct bpf_device){major(b->kvm_number), minor(b->kvm_number), false};
    for (size_t i = 0; i < b->n_devices; i++) {
        const struct base_device *x = &b->devices[i];
        if (x->path != NULL && str_list_has(&s->devices, x->path))
            d.v[d.n++] = (struct bpf_device){major(x->number), minor(x->number), x->block};
    }
    return d;
}

int
bpf_add(struct warden *w, const struct wtask *t, const struct launch_spec *s, struct err *e)
{
    auto_mem void *ctx = mem_ctx("netrules");
    if (w->cgroup.fd >= 0 && !bpf_net_is_for(&w->net, w->cgroup.fd)) { /* it was made anew */
        bpf_net_close(&w->net);
        bpf_rows_close(&w->run);
        bpf_rows_close(&w->block);
        bpf_start(w);
        if (bpf_polices(w, s) && !bpf_net_works(&w->net))
            return bpf_check(w, s, NULL, e);
    }
    (void)bpf_rows_add(&w->run, t->cgroup.id);
    (void)bpf_rows_add(&w->block, t->cgroup.id);
    if (!bpf_net_works(&w->net))
        return 0; /* nobody asked: see bpf_check */
    bool own = s->egress != NULL || s->bind != NULL;
    const struct bpf_devices devices = find_devices(ctx, &w->base, s);
    struct task_rules *rules = own ? NULL : w->rules;
    if (rules == NULL) {
        rules = mem_new(own ? ctx : w->policy, struct task_rules);
        int r = compile_both(w, rules, s, rules, e);
        if (r < 0)
            return r;
        w->rules = own ? w->rules : rules;
    }
    return bpf_net_add(&w->net, t->cgroup.id, rules->egress, rules->bind,
                       s->isolated ? &devices : NULL, e);
}

/* Launched when nothing counted here; the task goes on without what it was launched without. */
void
bpf_adopt(struct warden *w, const struct wtask *t)
{
    struct err e = ERR_INIT;
    (void)bpf_rows_add(&w->run, t->cgroup.id);
    (void)bpf_rows_add(&w->block, t->cgroup.id);
    if (!bpf_net_works(&w->net) || t->cgroup.id == 0 || bpf_net_has(&w->net, t->cgroup.id))
        return;
    if (bpf_net_add(&w->net, t->cgroup.id, NULL, NULL, NULL, &e) < 0)
        log_warn(ROOM, "an adopted task is not counted", "alloc_id", t->alloc, "task", t->name,
                 "error", e.text, NULL);
}
