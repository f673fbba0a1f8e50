/* SPDX-License-Identifier: Apache-2.0
 *
 * What this kernel lets this process do, found by trying: see probe.h. In this order: facts, each
 * with its reason when absent; system calls, made with arguments that must be refused; namespaces
 * and file systems; cgroups; AppArmor; probe_run(), which does all that; and probe_exec(), which a
 * caller may repeat.
 *
 * What would change this process is tried by a child, which ends at once.
 */
#include "isolation/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/raw.h"
#include "isolation/limits.h"

static const struct {
    const char *name;
    bool needed;
} facts[] = {
#define PROBE_ROW(id, name, needed) [PROBE_##id] = {name, needed},
    PROBE_FACTS(PROBE_ROW)
#undef PROBE_ROW
};

const char *
probe_name(enum probe_id id)
{
    return facts[id].name;
}

void
fact_yes(struct fact *f)
{
    *f = (struct fact){.ok = true};
}

void
fact_no(struct fact *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    f->ok = false;
    (void)vsnprintf(f->why, sizeof(f->why), fmt, ap);
    va_end(ap);
    ASSERT(f->why[0] != '\0');
}

void
fact_of(struct fact *f, const struct err *e)
{
    if (e->code == 0)
        fact_yes(f);
    else
        fact_no(f, "%s", e->text);
}

static void
probe_yes(struct probe *p, enum probe_id id)
{
    fact_yes(&p->facts[id]);
}

static void
probe_no(struct probe *p, enum probe_id id, const char *reason)
{
    fact_no(&p->facts[id], "%s", reason);
}

static void
probe_because(struct probe *p, enum probe_id id, long r, const char *what)
{
    fact_no(&p->facts[id], "%s: %s", what, strerror((int)-r));
}

/* Takes the answer of a try: a negative error says no. */
static void
probe_result(struct probe *p, enum probe_id id, long r, const char *what)
{
    if (r < 0)
        probe_because(p, id, r, what);
    else
        probe_yes(p, id);
}

/* A call made with arguments that the kernel must refuse: any answer but "no such call" (or a
 * filter's refusal, which looks like EPERM) means that it is there. */
static void
probe_present(struct probe *p, enum probe_id id, const char *what, long r)
{
    if (r == -ENOSYS || r == -EPERM || r == -EOPNOTSUPP)
        probe_because(p, id, r, what);
    else
        probe_yes(p, id);
}

static void
probe_calls(struct probe *p)
{
    const char page[64] = {0};
    /* a size that no version of the struct has had: EINVAL; ENOSYS without the call */
    probe_present(p, PROBE_CLONE3, "clone3", RAW(SYS_clone3, page, 1));
    probe_present(p, PROBE_OPENAT2, "openat2", RAW(SYS_openat2, AT_FDCWD, "/", page, 1));
    probe_present(p, PROBE_CLOSE_RANGE, "close_range", RAW(SYS_close_range, 1U, 0U, 0U));
    long fd = RAW(SYS_pidfd_open, getpid(), 0);
    if (fd < 0) {
        probe_because(p, PROBE_PIDFD, fd, "pidfd_open");
    } else {
        probe_present(p, PROBE_PIDFD, "pidfd_send_signal",
                      RAW(SYS_pidfd_send_signal, fd, 0, NULL, 0));
        raw_close(fd);
    }
    /* filters of container hosts deny these two alone */
    probe_present(p, PROBE_SETNS, "setns", RAW(SYS_setns, -1, 0));
    long key = RAW(SYS_keyctl, KEYCTL_DESCRIBE, 0, NULL, 0, 0);
    if (key == -ENOSYS) /* a kernel without keys: nothing to keep from tasks */
        probe_yes(p, PROBE_KEYRING);
    else
        probe_present(p, PROBE_KEYRING, "keyctl", key);
    /* bad fds: EBADF once the capability and the call are there */
    probe_present(p, PROBE_MOUNT_API, "move_mount", RAW(SYS_move_mount, -1, "", -1, "", ~0U));
    probe_present(p, PROBE_MOUNT_SETATTR, "mount_setattr",
                  RAW(SYS_mount_setattr, -1, "", 0, page, 1));
    uint32_t act = SECCOMP_RET_KILL_PROCESS;
    probe_present(p, PROBE_SECCOMP, "seccomp", RAW(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &act));
    act = SECCOMP_RET_USER_NOTIF;
    probe_present(p, PROBE_SECCOMP_AUDIT, "user notification of seccomp",
                  RAW(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &act));
    uint64_t cookie = 0; /* EINVAL where the kernel was built without it, ENODEV without siblings */
    long core = RAW(SYS_prctl, PR_SCHED_CORE, PR_SCHED_CORE_GET, 0, 0, &cookie);
    probe_result(p, PROBE_CORE_SCHED, core, "prctl(PR_SCHED_CORE)");
    long abi = RAW(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 0) {
        probe_because(p, PROBE_LANDLOCK, abi, "landlock_create_ruleset");
    } else {
        probe_yes(p, PROBE_LANDLOCK);
        p->landlock_abi = (int)abi;
    }
}

/* Makes a child with `flags` that exits at once: 0, or why not. */
static long
try_clone(uint64_t flags, int cgroup)
{
    struct clone_args a = {.flags = flags, .exit_signal = SIGCHLD};
    if (flags & CLONE_INTO_CGROUP)
        a.cgroup = (uint64_t)(unsigned)cgroup;
    long pid = RAW(SYS_clone3, &a, sizeof(a));
    if (pid == 0)
        for (;;)
            (void)RAW(SYS_exit_group, 0);
    if (pid > 0)
        while (RAW(SYS_wait4, pid, NULL, 0, NULL) == -EINTR)
            ;
    return pid < 0 ? pid : 0;
}

static void
probe_namespaces(struct probe *p)
{
    if (!p->root) {
        probe_no(p, PROBE_NAMESPACES, "not root");
    } else {
        long r = try_clone(
            CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP, -1);
        probe_result(p, PROBE_NAMESPACES, r, "clone3");
    }
    long r = try_clone(CLONE_NEWUSER, -1);
    probe_result(p, PROBE_USERNS, r, "clone3");
    struct stat st;
    if (stat("/proc/self/ns/time", &st) == 0)
        probe_yes(p, PROBE_TIMENS);
    else
        probe_no(p, PROBE_TIMENS, "/proc/self/ns/time is missing");
}

static void
probe_tmpfs(struct probe *p)
{
    long fs = p->root ? RAW(SYS_fsopen, "tmpfs", 1 /* FSOPEN_CLOEXEC */) : -EPERM;
    if (fs < 0) {
        probe_because(p, PROBE_TMPFS_NOSWAP, fs, p->root ? "fsopen" : "not root");
        return;
    }
    long r = RAW(SYS_fsconfig, fs, FSCONFIG_SET_FLAG, "noswap", NULL, 0);
    probe_result(p, PROBE_TMPFS_NOSWAP, r, "tmpfs option noswap");
    raw_close(fs);
}

/* --- cgroups --- */

/* Another agent of this machine may remove the directory while we try in it: it is made again. */
static void
probe_in_child(struct probe *p, int dirfd)
{
    static const char name[] = "paddock-probe";
    long r = -ENOENT;
    int k = -ENOENT;
    for (int tries = 0; tries < WARDEN_LOCK_TRIES_MAX; tries++) {
        if (mkdirat(dirfd, name, 0755) < 0 && errno != EEXIST) {
            probe_because(p, PROBE_CLONE_INTO_CGROUP, -errno, "mkdir in the cgroup root");
            probe_no(p, PROBE_CGROUP_KILL, p->facts[PROBE_CLONE_INTO_CGROUP].why);
            return;
        }
        auto_fd int fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? -errno : try_clone(CLONE_INTO_CGROUP, fd);
        k = file_put(fd, "cgroup.kill", "1");
        bool gone = faccessat(fd, "cgroup.procs", F_OK, 0) < 0;
        (void)unlinkat(dirfd, name, AT_REMOVEDIR);
        if (!gone || (r == 0 && k == 0))
            break;
    }
    probe_result(p, PROBE_CLONE_INTO_CGROUP, r, "clone3 into a cgroup");
    probe_result(p, PROBE_CGROUP_KILL, k, "cgroup.kill");
}

static void
probe_cgroup(struct probe *p, const char *root)
{
    static const struct {
        enum probe_id id;
        uint32_t bit;
    } needs[] = {{PROBE_CGROUP_CPU, CGROUP_CPU},
                 {PROBE_CGROUP_MEMORY, CGROUP_MEMORY},
                 {PROBE_CGROUP_PIDS, CGROUP_PIDS}};
    auto_mem void *tmp = mem_ctx("probe_cgroup");
    struct cgroup_info info = {0};
    struct err e = ERR_INIT;
    if (cgroup_find(tmp, &info, &e) < 0) {
        static const enum probe_id all[] = {PROBE_CGROUP2,           PROBE_CGROUP_KILL,
                                            PROBE_CLONE_INTO_CGROUP, PROBE_CGROUP_CPU,
                                            PROBE_CGROUP_MEMORY,     PROBE_CGROUP_PIDS};
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
            probe_no(p, all[i], "no cgroup2 file system is mounted");
        return;
    }
    probe_yes(p, PROBE_CGROUP2);
    (void)str_copy(p->cgroup_mount, sizeof(p->cgroup_mount), info.mount);
    p->controllers = info.controllers;
    for (size_t i = 0; i < ARRAY_LEN(needs); i++)
        if (info.controllers & needs[i].bit)
            probe_yes(p, needs[i].id);
        else
            probe_no(p, needs[i].id,
                     "controller is not on cgroup v2 (a hybrid host keeps it on v1)");
    auto_fd int fd = open(root ? root : info.mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && root != NULL && p->root) {
        probe_in_child(p, fd);
        return;
    }
    /* Without the right to make one: a cgroup that is not the root shows the file; clone3 has taken
     * a cgroup since long before it (5.7, 5.14). */
    struct stat st;
    const char *why = "not tried: no right to make a cgroup";
    bool seen = fd >= 0 && fstatat(fd, CGROUP_TASKS_DIR "/cgroup.kill", &st, 0) == 0;
    seen ? probe_yes(p, PROBE_CGROUP_KILL) : probe_no(p, PROBE_CGROUP_KILL, why);
    seen && p->facts[PROBE_CLONE3].ok ? probe_yes(p, PROBE_CLONE_INTO_CGROUP)
                                      : probe_no(p, PROBE_CLONE_INTO_CGROUP, why);
}

/* Reads the profile that confines us, which is readable only where AppArmor is enabled. */
static void
probe_apparmor(struct probe *p)
{
    char now[16];
    auto_fd int fd = open("/proc/self/attr/apparmor/current", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, now, sizeof(now));
    if (n > 0)
        probe_yes(p, PROBE_APPARMOR);
    else
        probe_because(p, PROBE_APPARMOR, n < 0 ? -errno : -ENODATA,
                      fd < 0 ? "not in this kernel" : "not enabled");
}

static bool
is_root(void)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {{0}};
    return geteuid() == 0 && RAW(SYS_capget, &h, d) == 0 && (d[0].effective >> CAP_SYS_ADMIN & 1);
}

void
probe_run(struct probe *p, const char *cgroup_root)
{
    *p = (struct probe){.root = is_root()};
    probe_calls(p);
    probe_namespaces(p);
    probe_tmpfs(p);
    probe_cgroup(p, cgroup_root);
    probe_apparmor(p);
    struct stat st;
    if (stat("/proc/pressure/cpu", &st) == 0)
        probe_yes(p, PROBE_PSI);
    else
        probe_no(p, PROBE_PSI, "/proc/pressure is missing");
}

void
probe_exec(const struct probe *p, struct fact *ret)
{
    fact_yes(ret);
    for (int i = 0; i < PROBE_N && ret->ok; i++)
        if (facts[i].needed && !p->facts[i].ok)
            fact_no(ret, "%s: %s", facts[i].name, p->facts[i].why);
}
