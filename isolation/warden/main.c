/* SPDX-License-Identifier: Apache-2.0
 *
 * paddock-warden -policy FILE: start-up. As root it makes its own pruned mount namespace with the
 * templates of tasks' roots; without root it runs raw_exec only.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/host/notify.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/opt.h"
#include "common/str.h"
#include "isolation/cgroup/dir.h"
#include "isolation/confine/slice.h"
#include "isolation/launch/policy.h"
#include "isolation/proc.h"
#include "isolation/supervisor.h"
#include "isolation/warden/adopt.h"
#include "isolation/warden/bpf.h"
#include "isolation/warden/cache.h"
#include "isolation/warden/fence.h"
#include "isolation/warden/files.h"
#include "isolation/warden/helper.h"
#include "isolation/warden/loop.h"
#include "isolation/warden/net.h"
#include "isolation/warden/pad.h"
#include "isolation/warden/table.h"
#include "isolation/warden/turn.h"
#include "isolation/warden/userns.h"

#define ROOM "warden"
#define SHIM_NAME "paddock-shim"

/* The shim's 0, 1 and 2. Our own messages go on to where standard error was. */
static int
null_stdio(int *ret_log, struct err *e)
{
    *ret_log = fcntl(2, F_DUPFD_CLOEXEC, 3);
    auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
        return err_errno(e, errno, "open /dev/null");
    if (null <= 2) /* we were started without it */
        (void)TAKE_FD(null);
    return 0;
}

static int
open_dirs(struct warden *w, struct err *e)
{
    auto_mem void *ctx = mem_ctx("dirs");
    const char *records = mem_printf(ctx, "%s/records", w->policy->data_dir);
    int r = dir_make(AT_FDCWD, w->policy->alloc_dir, w->root ? 0711 : 0755);
    if (r < 0)
        return err_errno(e, -r, "make \"%s\"", w->policy->alloc_dir);
    /* the operator may have symbolic links in it; the mounts of tasks follow none */
    char real[PATH_MAX];
    if (realpath(w->policy->alloc_dir, real) == NULL)
        return err_errno(e, errno, "resolve \"%s\"", w->policy->alloc_dir);
    w->policy->alloc_dir = mem_strdup(w->policy, real);
    r = dir_make(AT_FDCWD, records, 0700);
    if (r < 0)
        return err_errno(e, -r, "make \"%s\"", records);
    w->alloc_dir = open(w->policy->alloc_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->alloc_dir < 0)
        return err_errno(e, errno, "open \"%s\"", w->policy->alloc_dir);
    w->records = open(records, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->records < 0)
        return err_errno(e, errno, "open \"%s\"", records);
    struct stat st;
    if (w->root && (fstat(w->records, &st) < 0 || st.st_uid != 0 || (st.st_mode & 077) != 0))
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" must be root's, mode 0700", records);
    if (w->root && (fstat(w->alloc_dir, &st) < 0 || st.st_uid != 0 || (st.st_mode & 022) != 0))
        return err_set(e, -ERR_FORBIDDEN, "\"%s\" must be root's and writable by nobody else",
                       w->policy->alloc_dir);
    return 0;
}

static int
open_shim(struct warden *w, char dir[PATH_MAX], struct err *e)
{
    int r = supervisor_helpers(dir, PATH_MAX, e);
    if (r < 0)
        return r;
    auto_mem void *ctx = mem_ctx("shim");
    const char *path = mem_printf(ctx, "%s/" SHIM_NAME, dir);
    w->helpers_dir = mem_strdup(w, dir);
    w->shim_exe = open(path, O_PATH | O_CLOEXEC);
    return w->shim_exe < 0 ? err_errno(e, errno, "open the shim \"%s\"", path) : 0;
}

static int
lock_dir(const char *dir, int *ret_fd, struct err *e)
{
    auto_mem void *ctx = mem_ctx("lock");
    const char *path = mem_printf(ctx, "%s/warden.lock", dir);
    auto_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return err_errno(e, errno, "open \"%s\"", path);
    /* a child of a warden that was killed just now may have it for another moment */
    int tries = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0 && ++tries < WARDEN_LOCK_TRIES_MAX)
        (void)poll(NULL, 0, WARDEN_RETRY_MS);
    if (tries == WARDEN_LOCK_TRIES_MAX)
        return err_set(
            e, -ERR_CONFLICT,
            "another warden runs with \"%s\": give this agent another data_dir, or stop the "
            "other one",
            path);
    *ret_fd = TAKE_FD(fd);
    return 0;
}

/* One warden per run directory, which has its socket, and per data directory, which has its tasks:
 * the locks live as long as we do. */
static int
take_locks(struct warden *w, struct err *e)
{
    int r = lock_dir(w->policy->run_dir, &w->lock, e);
    return r == 0 && !str_eq(w->policy->data_dir, w->policy->run_dir)
               ? lock_dir(w->policy->data_dir, &w->data_lock, e)
               : r;
}

/* A pidfd of the one process in the pause process's leaf; -1: no unit holds the tasks. */
static int
find_pause(int root)
{
    char procs[32];
    int64_t pid;
    if (cgroup_read(root, PAUSE_LEAF "/cgroup.procs", procs, sizeof(procs)) < 0)
        return -1;
    procs[strcspn(procs, "\n")] = '\0';
    return num_parse_i64(procs, &pid) == 0 && pid > 0 ? pidfd_open_pid((pid_t)pid) : -1;
}

static int
open_cgroup(struct warden *w, struct err *e)
{
    auto_mem void *ctx = mem_ctx("cgroup");
    w->cgroup.hugetlb = w->policy->hugetlb_max > 0;
    w->cgroup.owner = mem_strdup(w, w->policy->data_dir);
    if (!w->root)
        return 0;
    const char *path = w->policy->cgroup_root;
    if (str_empty(path)) {
        struct cgroup_info info;
        struct err why = ERR_INIT;
        if (cgroup_find(ctx, &info, &why) < 0) {
            log_warn(ROOM, "no cgroup2: exec cannot work here", "error", why.text, NULL);
            return 0;
        }
        path = mem_printf(ctx, "%s/" CGROUP_TASKS_DIR, info.mount);
        w->policy->cgroup_root = mem_strdup(w->policy, path);
    }
    int r = cgroup_root_open(&w->cgroup, path, true, e);
    uint32_t absent = (CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS) & ~w->cgroup.controllers;
    if (r == 0 && absent != 0)
        log_warn(ROOM,
                 "limits of tasks are not enforced: cgroup v2 has not all controllers here "
                 "(isolation.limits = \"required\" refuses such tasks)",
                 "missing", cgroup_controllers_text(ctx, absent), "cgroup", path, NULL);
    w->pause = r == 0 ? find_pause(w->cgroup.fd) : -1;
    return r;
}

static int
compile_filters(struct warden *w, struct err *e)
{
    int r = seccomp_compile(w, seccomp_profile_default(), &w->task_filter, e);
    if (r == 0)
        r = seccomp_compile(w, seccomp_profile_shim(), &w->shim_filter, e);
    if (r == 0)
        r = seccomp_compile(w, seccomp_profile_audit(), &w->audit_filter, e);
    return r < 0 ? r : seccomp_compile(w, seccomp_profile_join(), &w->join_filter, e);
}

static int
make_base(struct warden *w, const char *helpers, struct err *e)
{
    const struct policy *p = w->policy;
    auto_mem void *ctx = mem_ctx("base");
    struct str_list keep = {0};
    const char *const paths[] = {p->alloc_dir, p->data_dir,    p->run_dir,
                                 p->state_dir, p->cgroup_root, helpers};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++)
        if (!str_empty(paths[i]))
            list_add(ctx, keep, paths[i]);
    for (size_t i = 0; i < p->bind_allowed.n; i++)
        list_add(ctx, keep, p->bind_allowed.v[i]);
    for (size_t i = 0; i < p->image_paths.n; i++)
        list_add(ctx, keep, p->image_paths.v[i]);
    for (size_t i = 0; i < p->host_volumes.n; i++)
        list_add(ctx, keep, p->host_volumes.v[i]->path);
    if (!str_empty(p->host_volumes_dir) && dir_make(AT_FDCWD, p->host_volumes_dir, 0700) == 0)
        list_add(ctx, keep, p->host_volumes_dir);
    struct base_conf conf = {
        .dir = mem_printf(w, "%s/base", p->run_dir),
        .bind_roots = p->bind_roots.v,
        .n_bind_roots = p->bind_roots.n,
        .keep = keep.v,
        .n_keep = keep.n,
        .kvm = str_list_has(&p->allowed_devices, POLICY_KVM),
        .devices = p->device_paths.v,
        .n_devices = p->device_paths.n,
    };
    int r = base_make(w, &conf, &w->base, e);
    if (r == 0 && w->base.kvm == 0 && !w->net.foreign)
        fact_yes(&w->can.kvm);
    else if (r == 0 && w->base.kvm == 0)
        fact_no(&w->can.kvm, "the warden started while tasks of another release ran");
    else if (r == 0)
        fact_no(&w->can.kvm, "%s", strerror(-w->base.kvm));
    w->host_mnt = r == 0 ? w->base.host_ns : -1;
    return r;
}

static int
main_prepare(struct warden *w, struct err *e)
{
    char helpers[PATH_MAX];
    int r = proc_boot_id(w->boot_id);
    if (r < 0)
        return err_errno(e, -r, "read the boot id");
    struct rlimit nofile;
    if (getrlimit(RLIMIT_NOFILE, &nofile) == 0 && nofile.rlim_cur < nofile.rlim_max) {
        nofile.rlim_cur = nofile.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &nofile);
    }
    r = helper_reserve(w, e);
    if (r == 0)
        r = take_locks(w, e);
    if (r == 0)
        r = open_shim(w, helpers, e);
    if (r == 0)
        r = open_cgroup(w, e);
    if (r == 0)
        r = compile_filters(w, e);
    if (r < 0)
        return r;
    bpf_start(w);
    probe_run(&w->probe, w->cgroup.fd >= 0 ? w->policy->cgroup_root : NULL);
    probe_exec(&w->probe, &w->can.exec);
    if (!w->root && w->can.exec.ok)
        fact_no(&w->can.exec, "root: paddock runs without root");
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll < 0)
        return err_errno(e, errno, "make an epoll set");
    w->in = mem_array(w, uint8_t, PROTO_PACKET_MAX);
    r = open_dirs(w, e);
    if (r == 0 && w->can.exec.ok)
        r = make_base(w, helpers, e);
    if (r == 0 && w->root) /* again: those of before are of the host's mount namespace */
        r = open_dirs(w, e);
    if (r < 0)
        return r;
    cache_trim(w);
    userns_probe(w);
    files_probe(w);
    r = net_start(w, e);
    return r < 0 ? r : pad_start(w, e);
}

static int
main_run(const char *policy, struct err *e)
{
    struct warden *w = mem_new(NULL, struct warden);
    w->pad = w->host_mnt = w->helper_net = w->listener.fd = w->signals.fd = w->fence.fd = -1;
    w->cgroup.fd = w->cgroup.lock = w->pause = -1;
    w->run = w->block = BPF_ROWS_NONE;
    w->net = (struct bpf_net){.leaf = -1, .net = -1, .rules = -1};
    w->root = geteuid() == 0;
    w->policy_path = policy;
    int r = policy_load(w, policy, &w->policy, e);
    if (r == 0)
        r = main_prepare(w, e);
    if (r == 0)
        r = fence_open(w, e);
    if (r == 0)
        r = adopt_all(w, e);
    if (r == 0)
        r = net_recover(w, e);
    if (r == 0)
        r = turn_signals(w, e);
    if (r == 0)
        r = loop_listen(w, table_serve, e);
    if (r < 0) {
        pad_stop(w);
        return r; /* the program ends */
    }
    ASSERT(w->root || w->cgroup.fd < 0); /* limits are root's */
    files_empty_trash(w);
    log_info(ROOM, "ready", "run_dir", w->policy->run_dir, "exec",
             w->can.exec.ok ? "yes" : w->can.exec.why, "cgroup",
             str_or(w->policy->cgroup_root, "none"), NULL);
    r = turn_run(w, e);
    pad_stop(w);
    helper_kill_all(w);
    net_clear(w);
    if (w->stop_tasks && w->cgroup.fd >= 0)
        cgroup_root_remove(&w->cgroup, w->policy->cgroup_root); /* nothing is left behind */
    turn_done(w);
    return r;
}

int
main(int argc, char **argv)
{
    const char *policy = NULL, *level = "info";
    bool json = false;
    const struct opt table[] = {
        {"policy", OPT_STRING, &policy, "FILE", "The compiled policy (paddock policy)."},
        {"log-level", OPT_STRING, &level, "LEVEL", "trace, debug, info, warn or error."},
        {"log-json", OPT_BOOL, &json, NULL, "Log as JSON."},
        {0}};
    const struct opt *const tables[] = {table, NULL};
    struct err e = ERR_INIT;
    auto_mem void *ctx = mem_ctx("args");
    struct opt_list args;
    int r = opt_parse(ctx, tables, argc, argv, &args, &e);
    if (r != 0 || args.n > 0 || policy == NULL) {
        fprintf(stderr,
                "%s%susage: paddock-warden -policy FILE [-log-level LEVEL] [-log-json]\n"
                "Started by systemd or by `paddock agent`, not by hand.\n",
                e.text, e.text[0] != '\0' ? "\n" : "");
        return r == 1 ? 0 : 1;
    }
    if (!notify_begin(START_PAUSE_FIRST_MAX_S))
        return 0;
    (void)umask(022);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    slice_set(SLICE_SHORT_NS); /* of the pad and of shims too */
    int log_fd = 2;
    r = null_stdio(&log_fd, &e);
    enum log_level l = log_level_parse(level);
    log_setup(l == LOG_LEVEL_INVALID ? LOG_INFO : l, json, log_fd >= 0 ? log_fd : 2);
    if (r == 0)
        r = main_run(policy, &e);
    if (r < 0) {
        log_error(ROOM, e.text, NULL);
        notify_status_failed(e.text);
        return 1;
    }
    return 0;
}
