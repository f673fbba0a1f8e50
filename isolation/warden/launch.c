/* SPDX-License-Identifier: Apache-2.0
 *
 * One launch: policy -> the shim's cgroup -> launch pad, and while that forks the shim: the task's
 * cgroup -> plan -> work for the shim, and while that starts the payload: record -> limits ->
 * network policy -> mounts -> the rest of the work. The shim's report comes through the loop.
 */
#include "common/clock.h"
#include "common/duration.h"
#include "isolation/warden/fence.h"
#include "isolation/warden/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/isolation.h"
#include "codec/codec.h"
#include "common/buf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/caps.h"
#include "isolation/confine/landlock.h"
#include "isolation/launch/policy.h"
#include "isolation/proc.h"
#include "isolation/root/mounts.h"
#include "isolation/root/mounts_apply.h"
#include "isolation/warden/bpf.h"
#include "isolation/warden/files.h"
#include "isolation/warden/handlers.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/net.h"
#include "isolation/warden/pad.h"
#include "isolation/warden/resources.h"
#include "isolation/warden/task.h"
#include "isolation/warden/user.h"
#include "isolation/warden/userns.h"

#define ROOM "warden"

/* Everything that a launch holds until the shim has it. */
struct launch {
    const void *ctx; /* the launch's own */
    const struct launch_spec *spec;
    struct user user;
    uint64_t caps;
    struct wtask *task;
    int fds[SHIM_FD_END]; /* owned; -1: absent, or of the task or the warden */
    int status[2];        /* ours, the shim's */
    struct mounts_plan *mounts;
    int trees[MOUNTS_TREES_MAX];
    uint32_t n_trees;
    int userns; /* of the allocation, borrowed; -1: the host's */
    int netns;  /* likewise */
    void *plan;
    size_t plan_n;
    uint32_t log_index[2];
    uint32_t log_first[2];
};

static bool
logs_wanted(const struct launch_spec *s)
{
    return s->logs == NULL || !s->logs->disabled;
}

/* A task without a sandbox walks to its directory through the allocation's, which is closed to all
 * of the host until then. The agent makes both first; to a sandbox the directory is its root. */
static int
open_dirs(struct warden *w, const struct launch *l, struct err *e)
{
    if (l->spec->isolated)
        return 0;
    auto_fd int top = fd_open_beneath(w->alloc_dir, l->spec->alloc_id,
                                      O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0, false);
    if (top >= 0 && fchmod(top, 0711) < 0)
        return err_errno(e, errno, "open the directory of allocation \"%s\" to its task",
                         l->spec->alloc_id);
    const char *path = mem_printf(l->ctx, "%s/%s", l->spec->alloc_id, l->spec->task_name);
    auto_fd int fd =
        fd_open_beneath(w->alloc_dir, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, false);
    if (fd < 0)
        return err_errno(e, -fd, "the task's directory \"%s/%s\"", w->policy->alloc_dir, path);
    return 0;
}

/* Refuses a job that asks to be kept from something by means that this kernel has not. */
static int
check_kernel(const struct warden *w, const struct launch_spec *s, struct err *e)
{
    const struct task_isolation *iso = isolation_of(s->isolation);
    if (isolation_ports(iso) && w->probe.landlock_abi < LANDLOCK_ABI_NET)
        return err_set(e, -ERR_UNSUPPORTED,
                       "landlock: ports need version %d of the kernel's Landlock, here it is %d",
                       LANDLOCK_ABI_NET, w->probe.landlock_abi);
    const struct fact *core = &w->probe.facts[PROBE_CORE_SCHED];
    if (iso->core_sched && !core->ok)
        return err_set(e, -ERR_UNSUPPORTED, "core_sched: %s", core->why);
    if (iso->verity.n > 0 && !w->can.verity.ok)
        return err_set(e, -ERR_UNSUPPORTED, "verity: %s", w->can.verity.why);
    const struct fact *audit = &w->probe.facts[PROBE_SECCOMP_AUDIT];
    if (seccomp_audits(iso->seccomp) && !audit->ok)
        return err_set(e, -ERR_UNSUPPORTED, "seccomp: mode \"audit\": %s", audit->why);
    const struct fact *apparmor = &w->probe.facts[PROBE_APPARMOR];
    const char *profile = policy_apparmor(w->policy, s);
    if (profile[0] != '\0' && !apparmor->ok)
        return err_set(e, -ERR_UNSUPPORTED, "AppArmor profile \"%s\": %s", profile,
                       apparmor->why);
    return 0;
}

/* Will it be in the user namespace of its allocation? */
static bool
goes_inside(const struct warden *w, const struct launch_spec *s, uint64_t caps)
{
    return w->root && s->isolated && userns_wanted(w) &&
           !str_eq(isolation_of(s->isolation)->userns, "host") && !caps_need_host(caps);
}

static bool
launch_has_device(const struct warden *w, const char *path)
{
    for (size_t i = 0; i < w->base.n_devices; i++)
        if (w->base.devices[i].path != NULL && str_eq(w->base.devices[i].path, path))
            return true;
    return false;
}

int
launch_authorise(struct warden *w, const struct launch_spec *s, const bool *inside,
                 struct user *user, uint64_t *caps, struct err *e)
{
    int r = policy_check_launch(w->policy, s, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < s->devices.n; i++)
        if (!str_eq(s->devices.v[i], POLICY_KVM) && !launch_has_device(w, s->devices.v[i]))
            return err_set(e, -ERR_UNSUPPORTED,
                           "device \"%s\": it was not there when the warden started",
                           s->devices.v[i]);
    if (str_list_has(&s->devices, POLICY_KVM) && !w->can.kvm.ok)
        return err_set(e, -ERR_UNSUPPORTED, "device \"" POLICY_KVM "\": %s", w->can.kvm.why);
    if (s->isolated && !w->can.exec.ok)
        return err_set(e, -ERR_UNSUPPORTED, "driver \"%s\" cannot work here: %s", s->driver,
                       w->can.exec.why);
    r = check_kernel(w, s, e);
    if (r < 0)
        return r;
    r = policy_caps(w->policy, s, caps, e);
    if (r < 0)
        return r;
    if (w->root)
        r = user_get(w, s, inside != NULL ? *inside : goes_inside(w, s, *caps), user, e);
    else if (!str_empty(s->user) && !str_eq(s->user, w->policy->agent_user))
        r = err_set(e, -ERR_POLICY,
                    "user \"%s\": paddock runs without root and cannot change users", s->user);
    return r;
}

static int
launch_authorise_plan(struct warden *w, struct launch *l, struct err *e)
{
    const struct launch_spec *s = l->spec;
    int r = launch_authorise(w, s, NULL, &l->user, &l->caps, e);
    if (r == 0)
        r = bpf_check(w, s, &l->user, e);
    if (r == 0 && !s->share_net) {
        l->netns = net_of(w, s->alloc_id, e);
        r = l->netns < 0 ? l->netns : 0;
    }
    return r;
}

/* Which user namespace the payload gets: that of the allocation, unless the job or one of its
 * capabilities asks for the host's or the policy or the kernel has no other. */
static int
make_userns(struct warden *w, struct launch *l, struct err *e)
{
    const struct policy *p = w->policy;
    if (!w->root || !l->spec->isolated || str_eq(p->userns, "off") ||
        str_eq(isolation_of(l->spec->isolation)->userns, "host"))
        return 0;
    bool required = str_eq(p->userns, "required");
    if (!w->can.userns.ok)
        return required
                   ? err_set(e, -ERR_UNSUPPORTED,
                             "this client requires user namespaces, which do not work here: %s",
                             w->can.userns.why)
                   : 0;
    if (caps_need_host(l->caps))
        return required ? err_set(e, -ERR_POLICY,
                                  "cap_add: only capabilities that work in a user namespace are "
                                  "allowed on this client, which requires one")
                        : 0;
    uint32_t top = l->user.uid > l->user.gid ? l->user.uid : l->user.gid;
    for (uint32_t i = 0; i < l->user.n_groups; i++)
        top = l->user.groups[i] > top ? l->user.groups[i] : top;
    if (top >= POLICY_RANGE_IDS)
        return err_set(e, -ERR_POLICY,
                       "user \"%s\" or a group of it has the id %u: a user namespace has the ids "
                       "below %u",
                       str_or(l->spec->user, "nobody"), top, POLICY_RANGE_IDS);
    const struct userns *u = NULL;
    int r = userns_get(w, l->spec->alloc_id, &u, e);
    if (r < 0)
        return r;
    l->userns = u->fd;
    l->task->id_base = u->base;
    return 0;
}

/* Writes the part of a record behind struct record: the confinement of this launch and of whatever
 * joins it. */
static void
put_tail(struct buf *out, const struct policy *p, const struct launch_spec *s, bool userns)
{
    struct launch_spec own = *s;
    own.command = own.work_dir = NULL;
    own.args = own.env = (struct str_list){0};
    own.mounts = (struct launch_mount_list){0};
    struct task_isolation iso = *isolation_of(s->isolation);
    iso.verity = (struct task_verity_list){0}; /* of files, not of who looks at them */
    own.isolation = &iso;
    own.logs = NULL;
    own.resolv = NULL;
    own.egress = own.bind = NULL; /* the kernel has them, for the whole cgroup */
    const struct launched_task t = {
        .spec = &own, .userns = userns, .no_setuid = policy_no_setuid(p, s)};
    mp_encode(out, &type_launched_task, &t);
}

static int
make_record(struct warden *w, struct launch *l, struct err *e)
{
    struct wtask *t = l->task;
    char name[256];
    task_record_name(name, t->alloc, t->name);
    /* left by a run whose removal was given up: the cgroup is this one's now */
    task_record_unlink_doomed(w, t);
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    t->record = openat(w->records, name, flags, 0600);
    if (t->record < 0 && errno == EEXIST && unlinkat(w->records, name, 0) == 0)
        t->record = openat(w->records, name, flags, 0600);
    if (t->record < 0)
        return err_errno(e, errno, "make the task's record");
    if (fd_near_limit(t->record, WARDEN_FDS_KEPT))
        return err_errno(e, EMFILE,
                         "the warden has few file descriptors left: raise its limit of open files");
    struct record r = {.magic = RECORD_MAGIC,
                       .version = SHIM_VERSION,
                       .cgroup_id = t->cgroup.id,
                       .fence = fence_put(l->spec->until),
                       .uid = t->id_base + (w->root ? l->user.uid : (uint32_t)geteuid())};
    str_copy(r.alloc_id, sizeof(r.alloc_id), t->alloc);
    str_copy(r.task, sizeof(r.task), t->name);
    str_copy(r.boot_id, sizeof(r.boot_id), w->boot_id);
    auto_buf struct buf b = BUF_INIT(PROTO_PACKET_MAX);
    buf_put(&b, &r, sizeof(r));
    put_tail(&b, w->policy, l->spec, l->userns >= 0);
    int rc = buf_error(&b) < 0 ? -E2BIG : fd_pwrite_full(t->record, b.data, b.len, 0);
    return rc < 0 ? err_errno(e, -rc, "write the task's record") : 0;
}

static int
make_shim_leaf(struct warden *w, struct wtask *t, struct err *e)
{
    if (w->cgroup.fd < 0)
        return 0;
    int r = cgroup_shim_make(&w->cgroup, t->alloc, t->name, &t->cgroup, e);
    if (r < 0 && cgroup_root_gone(&w->cgroup)) {
        /* along went what was attached to it. A start makes all of that, and goes on with this
         * launch as after a kill -9: the agent asks again */
        log_error(ROOM, "the cgroup of all tasks was removed: the warden has to start again",
                  "cgroup", w->policy->cgroup_root, NULL);
        _exit(1);
    }
    return r;
}

static int
set_limits(struct warden *w, struct launch *l, struct err *e)
{
    struct wtask *t = l->task;
    struct cgroup_plan plan;
    resources_plan(w, l->spec->limits, l->spec->isolation, &plan);
    int r = cgroup_task_limit(&w->cgroup, t->alloc, t->name, &plan, &t->cgroup, e);
    if (r < 0)
        return r;
    resources_warn(t, &plan);
    if ((w->cgroup.controllers & CGROUP_MEMORY) != 0)
        l->fds[SHIM_FD_OOM] =
            openat(t->cgroup.task_fd, "memory.events", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return 0;
}

/* The nodes of the operator's devices that the task is given. */
static const struct mounts_bind *
device_binds(const struct warden *w, const struct launch *l, size_t *ret_n)
{
    const struct str_list *want = &l->spec->devices;
    struct mounts_bind *v = mem_array(l->ctx, struct mounts_bind, want->n + 1);
    for (size_t i = 0; i < w->base.n_devices && *ret_n < want->n; i++)
        if (w->base.devices[i].path != NULL && str_list_has(want, w->base.devices[i].path))
            v[(*ret_n)++] =
                (struct mounts_bind){.source = mem_printf(l->ctx, "%s/dev-%zu", w->base.dir, i),
                                     .target = w->base.devices[i].path,
                                     .file = true};
    return v;
}

static int
mount_plan(struct warden *w, struct launch *l, struct err *e)
{
    const struct launch_spec *s = l->spec;
    struct mounts_bind *binds = mem_array(l->ctx, struct mounts_bind, s->mounts.n);
    for (size_t i = 0; i < s->mounts.n; i++) {
        const struct launch_mount *m = s->mounts.v[i];
        const char *volume =
            str_empty(m->volume) ? NULL : policy_volume_path(l->ctx, w->policy, m->volume);
        const char *source = volume != NULL ? volume : m->source;
        struct stat st;
        if (fstatat(AT_FDCWD, source, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return err_errno(e, errno, "mount of \"%s\"", source);
        binds[i] = (struct mounts_bind){.source = source,
                                        .target = m->target,
                                        .read_only = m->read_only,
                                        .file = !S_ISDIR(st.st_mode)};
    }
    const char *alloc = mem_printf(l->ctx, "%s/%s", w->policy->alloc_dir, s->alloc_id);
    struct mounts_spec spec = {
        .task_dir = mem_printf(l->ctx, "%s/%s", alloc, s->task_name),
        .alloc_dir = mem_printf(l->ctx, "%s/alloc", alloc),
        .roots = w->base.roots,
        .n_roots = w->base.n_roots,
        .binds = binds,
        .n_binds = s->mounts.n,
        .secrets =
            s->secrets_kept ? mem_printf(l->ctx, "%s/%s/secrets", alloc, s->task_name) : NULL,
        .secrets_bytes = (uint64_t)s->secrets_mb << 20,
        .uid = l->user.uid,
        .gid = l->user.gid,
        .id_base = l->task->id_base,
        .proc_absent = w->base.proc_absent,
        .noswap = w->probe.facts[PROBE_TMPFS_NOSWAP].ok,
        .proc_pids = str_eq(isolation_of(s->isolation)->proc, "pid"),
        .resolv = l->task->resolv,
        .kvm = str_list_has(&s->devices, POLICY_KVM) ? mem_printf(l->ctx, "%s/kvm", w->base.dir)
                                                     : NULL,
    };
    spec.devices = device_binds(w, l, &spec.n_devices);
    return mounts_plan(l->ctx, &spec, &l->mounts, e);
}

/* In the base, which is ours alone, until the task runs: a file that is gone cannot be mounted, but
 * may go when it is. */
static int
make_resolv(struct warden *w, struct launch *l, struct err *e)
{
    struct wtask *t = l->task;
    const char *text = l->spec->resolv;
    char name[256];
    if (str_empty(text))
        return 0;
    task_record_name(name, t->alloc, t->name);
    t->resolv = mem_printf(t, "%s/resolv.%s", w->base.dir, name);
    int r = file_write_atomic(AT_FDCWD, t->resolv, text, strlen(text), 0644);
    return r < 0 ? err_errno(e, -r, "write \"%s\"", t->resolv) : 0;
}

/* The default filter, or that of a job which changes it: compiled once for each change. */
int
launch_filter(struct warden *w, const struct launch_spec *s, bool no_setuid,
              const struct seccomp_program **ret, struct err *e)
{
    *ret = NULL;
    if (!s->isolated || !w->policy->seccomp || str_eq(s->seccomp, "unconfined"))
        return 0;
    *ret = &w->task_filter;
    const struct task_seccomp *rules = isolation_of(s->isolation)->seccomp;
    if (rules == NULL && !no_setuid)
        return 0;
    static const struct task_seccomp none;
    rules = rules != NULL ? rules : &none;
    auto_buf struct buf key = BUF_INIT(PROTO_PACKET_MAX);
    buf_put(&key, &no_setuid, sizeof(no_setuid));
    mp_encode(&key, &type_task_seccomp, rules);
    if (buf_error(&key) < 0)
        return err_set(e, -ERR_INVALID, "seccomp: too many names");
    for (size_t i = 0; i < WARDEN_FILTERS_MAX; i++) {
        struct filter_set *f = &w->filters[i];
        *ret = &f->program;
        if (f->key != NULL && talloc_get_size(f->key) == key.len &&
            memcmp(f->key, key.data, key.len) == 0)
            return 0;
    }
    struct filter_set f = {.key = mem_dup(w, key.data, key.len)};
    int r = seccomp_compile_task(f.key, seccomp_profile_default(), rules, no_setuid, &f.program, e);
    if (r < 0) {
        mem_free(f.key);
        return r;
    }
    struct filter_set *at = &w->filters[w->filter_next++ % WARDEN_FILTERS_MAX];
    mem_free(at->key);
    *at = f;
    *ret = &at->program;
    return 0;
}

static int
make_plan(struct warden *w, struct launch *l, struct err *e)
{
    const struct launch_spec *s = l->spec;
    int r = 0;
    if (s->isolated) {
        r = base_refresh(&w->base, clock_mono_ns(), e);
        if (r == 0)
            r = make_resolv(w, l, e);
        if (r == 0)
            r = mount_plan(w, l, e);
        if (r < 0)
            return r;
    }
    const struct seccomp_program *filter;
    r = launch_filter(w, s, policy_no_setuid(w->policy, s), &filter, e);
    if (r < 0)
        return r;
    const struct task_seccomp *rules = isolation_of(s->isolation)->seccomp;
    bool audit = filter != NULL && seccomp_audits(rules);
    struct plan_input in = {
        .spec = s,
        .user = w->root ? &l->user : NULL,
        .mounts = l->mounts,
        .task_filter = filter,
        .own_filter = rules != NULL || policy_no_setuid(w->policy, s),
        .audit = audit,
        .shim_filter = !w->root ? NULL : audit ? &w->audit_filter : &w->shim_filter,
        .apparmor = policy_apparmor(w->policy, s),
        .task_dir = mem_printf(l->ctx, "%s/%s/%s", w->policy->alloc_dir, s->alloc_id, s->task_name),
        .caps = l->caps,
        .cgroup = w->cgroup.fd >= 0,
        .oom = w->cgroup.fd >= 0 && (w->cgroup.controllers & CGROUP_MEMORY) != 0,
        .userns = l->userns >= 0,
        .id_base = l->task->id_base,
        .landlock_abi = w->probe.landlock_abi,
        .logs = l->fds[SHIM_FD_LOGS] >= 0,
        .log_index = {l->log_index[0], l->log_index[1]},
        .log_first = {l->log_first[0], l->log_first[1]},
        .log_gid = (uint32_t)w->policy->agent_gid,
    };
    r = plan_make(l->task, &in, &l->plan, &l->plan_n, e);
    if (r < 0)
        return r;
    int fd = memfd_create("plan", MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "make the plan's memory");
    l->fds[SHIM_FD_PLAN] = fd;
    r = fd_pwrite_full(fd, l->plan, l->plan_n, 0);
    return r < 0 ? err_errno(e, -r, "write the plan") : 0;
}

/* The sources of the mounts: what of the host goes into the box. The first is its root. */
static int
open_trees(struct launch *l, uint32_t upto, struct err *e)
{
    struct mounts_fail f = {0};
    if (l->mounts == NULL)
        return 0;
    ASSERT(upto <= MOUNTS_TREES_MAX && l->n_trees <= upto);
    int r = mounts_open(l->mounts, l->userns, upto, l->trees, &l->n_trees, &f);
    return r < 0 ? err_errno(e, -r, "build the root: %s: %s",
                             mounts_describe(l->ctx, l->mounts, f.op), f.what)
                 : 0;
}

static int
request_shim(struct warden *w, struct launch *l, struct err *e)
{
    const struct launch_spec *s = l->spec;
    struct pad_request q = {.want = PAD_SHIM};
    snprintf(q.title, sizeof(q.title), "%.8s/%.48s", s->alloc_id, s->task_name);
    if (s->isolated)
        q.clone_flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
    int r = pad_socket(l->status, e);
    return r < 0 ? r : pad_request(w, &q, l->status[1], l->task->cgroup.shim_fd, e);
}

/* For statistics, without cgroups; who holds the lock on the record is the shim in any case. */
static int
record_shim(struct wtask *t, struct err *e)
{
    const int32_t pid = t->shim_pid;
    int r = fd_pwrite_full(t->record, &pid, sizeof(pid), offsetof(struct record, shim_pid));
    return r < 0 ? err_errno(e, -r, "write the task's record") : 0;
}

static int
take_shim(struct warden *w, struct wtask *t, struct err *e)
{
    int pidfd = -1;
    int pid = pad_take(w, &pidfd, e);
    if (pid < 0)
        return pid;
    t->shim.fd = pidfd;
    t->shim_pid = pid;
    int r = loop_watch(w, &t->shim, EPOLLIN);
    return r < 0 ? err_errno(e, -r, "watch the shim") : record_shim(t, e);
}

/* Opens directories and cgroup, and makes the plan: all that the shim is cloned with. */
static int
launch_prepare(struct warden *w, struct launch *l, struct err *e)
{
    struct wtask *t = l->task;
    int r = open_dirs(w, l, e);
    if (r == 0 && w->cgroup.fd >= 0)
        r = cgroup_task_make(&w->cgroup, t->alloc, t->name, &t->cgroup, e);
    if (r == 0 && logs_wanted(l->spec))
        r = files_logs(w, l->spec, &l->fds[SHIM_FD_LOGS], l->log_index, l->log_first, e);
    if (r == 0)
        r = make_plan(w, l, e);
    return r == 0 ? open_trees(l, 1, e) : r;
}

/* Prepares what the shim executes the payload with: its identity and its limits come before its
 * mounts. */
static int
prepare_rest(struct warden *w, struct launch *l, struct err *e)
{
    int r = make_record(w, l, e);
    if (r == 0 && w->cgroup.fd >= 0)
        r = set_limits(w, l, e);
    else if (r == 0 && l->spec->limits != NULL && l->spec->limits->memory_max > 0)
        l->task->warning =
            mem_strdup(l->task, "limits not enforced: Paddock runs without root, and so "
                                "without cgroups");
    if (r == 0 && w->cgroup.fd >= 0)
        r = bpf_add(w, l->task, l->spec, e);
    return r == 0 ? open_trees(l, MOUNTS_TREES_MAX, e) : r;
}

static int
give_work(struct warden *w, struct launch *l, struct err *e)
{
    int fds[SHIM_FD_END];
    memset(fds, 0xff, sizeof(fds));
    fds[SHIM_FD_PLAN] = l->fds[SHIM_FD_PLAN];
    fds[SHIM_FD_CGROUP] = l->task->cgroup.task_fd;
    fds[SHIM_FD_USERNS] = l->userns;
    fds[SHIM_FD_NETNS] = l->netns;
    fds[SHIM_FD_HOST] = l->spec->isolated ? -1 : w->host_mnt;
    return pad_work(l->status[0], fds, l->trees, l->n_trees > 0, e);
}

static int
give_rest(const struct warden *w, struct launch *l, struct err *e)
{
    uint32_t given = l->n_trees > 0;
    int fds[SHIM_FD_END];
    memset(fds, 0xff, sizeof(fds));
    fds[SHIM_FD_RECORD] = l->task->record;
    fds[SHIM_FD_LOGS] = l->fds[SHIM_FD_LOGS];
    fds[SHIM_FD_OOM] = l->fds[SHIM_FD_OOM];
    fds[SHIM_FD_PAUSE] = w->pause;
    return pad_work(l->status[0], fds, l->trees + given, l->n_trees - given, e);
}

static void
finish_launch(struct warden *w, struct wtask *t)
{
    loop_unwatch(w, &t->status);
    mem_free(t->plan);
    if (t->resolv != NULL)
        (void)unlink(t->resolv);
    mem_free(t->resolv);
    task_deadline(w, t, 0);
}

/* Takes the pad's answer, if it has been asked for this one and has not been heard yet. */
static int
launch_settle_task(struct warden *w, struct wtask *t, struct err *e)
{
    if (w->unsettled != t)
        return 0;
    w->unsettled = NULL;
    return take_shim(w, t, e);
}

static void
launch_failed(struct warden *w, struct wtask *t, const struct err *e)
{
    struct err other = ERR_INIT;
    (void)launch_settle_task(w, t, &other);
    log_info(ROOM, "launch failed", "alloc_id", t->alloc, "task", t->name, "error", e->text, NULL);
    t->failure = mem_dup(t, e, sizeof(*e));
    err_prefix(t->failure, "task \"%s\"", t->name);
    finish_launch(w, t);
    task_kill_now(w, t);
    task_forget(w, t);
}

/* The shim's report, or its end before one. */
static void
status_event(struct warden *w, struct watch *watch, uint32_t events)
{
    (void)events;
    struct wtask *t = WATCH_OWNER(watch, struct wtask, status);
    struct pad_fds fds = {.n = 0};
    struct err e = ERR_INIT;
    if (!pad_report(watch->fd, "shim", t->plan, 1, &fds, &e))
        return;
    if (e.code == 0)
        t->payload = TAKE_FD(fds.v[0]);
    for (size_t i = 0; i < fds.n; i++)
        fd_close(&fds.v[i]);
    if (e.code != 0) {
        launch_failed(w, t, &e);
        return;
    }
    t->launch_ns = clock_mono_ns() - t->requested_ns;
    t->state = TASK_RUNNING;
    t->pid = proc_pidfd_pid(t->payload);
    (void)shutdown(watch->fd, SHUT_WR); /* nobody has a word for the shim */
    task_decided(w, t, true);
    finish_launch(w, t);
    log_debug(ROOM, "task started", "alloc_id", t->alloc, "task", t->name, "pid", LOG_I64(t->pid),
              NULL);
}

bool
launch_settle(struct warden *w)
{
    struct err e = ERR_INIT;
    struct wtask *t = w->unsettled;
    if (t == NULL || launch_settle_task(w, t, &e) >= 0)
        return true;
    launch_failed(w, t, &e);
    return false;
}

static void
launch_close(struct launch *l)
{
    for (int i = 0; i < SHIM_FD_END; i++)
        fd_close(&l->fds[i]);
    for (uint32_t i = 0; i < l->n_trees; i++)
        fd_close(&l->trees[i]);
    fd_close(&l->status[0]);
    fd_close(&l->status[1]);
}

static int
launch_run(struct warden *w, struct launch *l, struct err *e)
{
    struct wtask *t = l->task;
    int r = make_userns(w, l, e);
    if (r == 0)
        r = make_shim_leaf(w, t, e);
    t->requested_ns = clock_mono_ns();
    if (r == 0)
        r = request_shim(w, l, e);
    if (r < 0)
        return r;
    w->unsettled = t;
    /* a process that is born in a cgroup can be ended by it: such a shim may begin before its pid
     * is known, for which nobody waits */
    bool early = t->cgroup.shim_fd >= 0;
    r = launch_prepare(w, l, e);
    if (r == 0 && early)
        r = give_work(w, l, e);
    if (r == 0)
        r = prepare_rest(w, l, e);
    if (r == 0 && !early)
        r = launch_settle_task(w, t, e);
    if (r == 0 && !early)
        r = give_work(w, l, e);
    if (r == 0)
        r = give_rest(w, l, e);
    if (r < 0)
        return r;
    t->status = (struct watch){TAKE_FD(l->status[0]), status_event};
    t->plan = TAKE(l->plan);
    r = loop_watch(w, &t->status, EPOLLIN);
    return r < 0 ? err_errno(e, -r, "watch the shim") : 0;
}

/* Whoever heard of the end of a task by the shim's last word may ask for the next before the shim
 * has died, within a fraction of a millisecond. */
static struct wtask *
find_ended(struct warden *w, const struct launch_spec *s)
{
    struct wtask *t = task_find_now(w, s->alloc_id, s->task_name);
    if (t == NULL || !task_ended(t) || t->shim.fd < 0)
        return t;
    struct pollfd p = {.fd = t->shim.fd, .events = POLLIN};
    (void)poll(&p, 1, WARDEN_SHIM_EXIT_MS);
    return task_find_now(w, s->alloc_id, s->task_name);
}

/* A finished task of the same name makes way; a living one does not. */
static int
make_room(struct warden *w, const struct launch_spec *s, struct err *e)
{
    struct wtask *t = find_ended(w, s);
    if (t == NULL && w->n_tasks >= WARDEN_TASKS_MAX)
        return err_set(e, -ERR_LIMIT, "%d tasks are here already", WARDEN_TASKS_MAX);
    if (task_remains(w, s->alloc_id, s->task_name))
        return err_set(e, -ERR_BUSY, "the last run of task \"%s\" is still being removed",
                       s->task_name);
    if (t == NULL)
        return 0;
    if (t->state != TASK_FINISHED || t->destroying)
        return err_set(e, -ERR_CONFLICT, "task \"%s\" of allocation \"%s\" runs already",
                       s->task_name, s->alloc_id);
    task_kill_now(w, t);
    task_forget(w, t);
    if (!t->gone)
        return err_set(e, -ERR_BUSY, "the last run of task \"%s\" is still being removed",
                       s->task_name);
    return 0; /* freed at the end of the turn */
}

void
launch_task(struct warden *w, struct waiter to, const struct warden_request *q)
{
    const struct launch_spec *s = q->spec;
    auto_mem void *ctx = mem_ctx("launch");
    struct err e = ERR_INIT;
    struct launch l = {.ctx = ctx, .spec = s, .status = {-1, -1}, .userns = -1, .netns = -1};
    memset(l.fds, 0xff, sizeof(l.fds));
    (void)launch_settle(w);
    if (s->isolated)
        pad_wake(w);
    int r = launch_authorise_plan(w, &l, &e);
    if (r == 0 && fence_is_over(s->until))
        r = err_set(&e, -ERR_CONFLICT, "it is fenced: it may not start before a server was heard");
    if (r == 0)
        r = make_room(w, s, &e);
    if (r < 0) {
        err_prefix(&e, "task \"%s\"", s->task_name);
        loop_refuse(w, to, &e);
        return;
    }
    l.task = task_add(w, s->alloc_id, s->task_name);
    l.task->launch = to;
    l.task->fence_ms = s->until;
    int64_t most_ms =
        WARDEN_LAUNCH_MS + (isolation_of(s->isolation)->verity.n > 0 ? WARDEN_SEAL_MS : 0);
    task_deadline(w, l.task, clock_mono_ns() + most_ms * NS_PER_MS);
    if (launch_run(w, &l, &e) < 0)
        launch_failed(w, l.task, &e);
    else
        fence_task(w, l.task, s->until);
    launch_close(&l);
}
