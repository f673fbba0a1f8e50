/* SPDX-License-Identifier: Apache-2.0
 *
 * What a process does to itself on the way into its box: confine.h has the order, which the kernel
 * forces, and the functions here are in the same order. Free-standing: raw system calls, no libc,
 * no memory but the stack, since confine_task() runs in the shim's memory.
 *
 * Each step returns 0 or -errno and leaves its name in *what; the first that fails ends the launch.
 */
#include "isolation/confine/confine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include "isolation/confine/landlock.h"
#include "isolation/confine/raw.h"
#include "isolation/confine/slice.h"

enum { KERNEL_SIGSET_BYTES = 8, SIGNALS_END = 65 };

#define BITS_BASE                                                                                  \
    (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |                               \
     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED)
#define BITS_AMBIENT (SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED)

/* On failure names the step and returns from the caller. */
#define STEP(name, expr)                                                                           \
    do {                                                                                           \
        long r_ = (expr);                                                                          \
        if (r_ < 0) {                                                                              \
            *what = (name);                                                                        \
            return (int)r_;                                                                        \
        }                                                                                          \
    } while (0)

static long
set_caps(uint64_t permitted, uint64_t inheritable)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2];
    for (unsigned i = 0; i < 2; i++) {
        d[i].permitted = (uint32_t)(permitted >> (32 * i));
        d[i].effective = d[i].permitted;
        d[i].inheritable = (uint32_t)(inheritable >> (32 * i));
    }
    return RAW(SYS_capset, &h, d);
}

long
confine_use_cap(unsigned cap, bool use)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2];
    long r = RAW(SYS_capget, &h, d);
    uint32_t bit = UINT32_C(1) << cap % 32, *now = &d[cap / 32].effective;
    if (r < 0 || ((*now & bit) != 0) == use)
        return r < 0 ? r : 0;
    *now ^= bit;
    r = RAW(SYS_capset, &h, d);
    return r < 0 ? r : 1;
}

static long
drop_bounding(uint64_t keep)
{
    for (unsigned i = 0; i < 64; i++) {
        if (keep >> i & 1)
            continue;
        long r = RAW(SYS_prctl, PR_CAPBSET_DROP, i, 0, 0, 0);
        if (r == -EINVAL)
            return 0; /* beyond the kernel's last capability */
        if (r < 0)
            return r;
    }
    return 0;
}

int
confine_keyring(const char **what)
{
    long r = RAW(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0);
    if (r != -ENOSYS)
        STEP("keyctl", r);
    return 0;
}

int
confine_hostname(const struct confine *c, const char **what)
{
    if (c->flags & CONFINE_HOSTNAME)
        STEP("sethostname",
             RAW(SYS_sethostname, c->hostname, strnlen(c->hostname, CONFINE_HOSTNAME_MAX)));
    return 0;
}

int
confine_signals(const char **what)
{
    /* the kernel's struct sigaction: zeroes are SIG_DFL, no flags, empty mask */
    const char none[32] = {0};
    for (int sig = 1; sig < SIGNALS_END; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            STEP("signals", RAW(SYS_rt_sigaction, sig, none, NULL, KERNEL_SIGSET_BYTES));
    return 0;
}

/* A hard limit can only be raised with CAP_SYS_RESOURCE, which containers often withhold: best
 * effort, clamped to what we have, unless a job asks for it. */
static long
set_rlimit(const struct confine_rlimit *l)
{
    uint64_t want[2] = {l->soft, l->hard};
    long r = RAW(SYS_prlimit64, 0, l->resource, want, NULL);
    if (r != -EPERM || l->exact)
        return r;
    uint64_t have[2];
    r = RAW(SYS_prlimit64, 0, l->resource, NULL, have);
    if (r < 0)
        return r;
    if (want[1] > have[1])
        want[1] = have[1];
    if (want[0] > want[1])
        want[0] = want[1];
    return RAW(SYS_prlimit64, 0, l->resource, want, NULL);
}

static int
set_ids(const struct confine *c, const char **what)
{
    if (c->n_groups > CONFINE_GROUPS_MAX) {
        *what = "setgroups";
        return -EINVAL;
    }
    STEP("setgroups", RAW(SYS_setgroups, (size_t)c->n_groups, c->groups));
    STEP("setresgid", RAW(SYS_setresgid, c->gid, c->gid, c->gid));
    STEP("setresuid", RAW(SYS_setresuid, c->uid, c->uid, c->uid));
    return 0;
}

/* Kept capabilities reach the program through the ambient set, the only way that survives execve
 * with no_new_privs and without file capabilities. */
static int
keep_caps(uint64_t caps, const char **what)
{
    if (caps == 0) {
        STEP("ambient set", RAW(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
        STEP("capset", set_caps(0, 0));
        return 0;
    }
    STEP("capset", set_caps(caps | (UINT64_C(1) << CAP_SETPCAP), caps));
    for (unsigned i = 0; i < 64; i++)
        if (caps >> i & 1)
            STEP("ambient set", RAW(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0));
    STEP("securebits", RAW(SYS_prctl, PR_SET_SECUREBITS, BITS_BASE | BITS_AMBIENT, 0, 0, 0));
    STEP("capset", set_caps(caps, caps));
    return 0;
}

static long
load_filter(const struct sock_filter *filter, uint16_t n)
{
    struct sock_fprog prog = {.len = n, .filter = (struct sock_filter *)(uintptr_t)filter};
    return RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
}

/* The descriptor by which others hear of calls and answer. From Linux 5.19 on a signal does not
 * interrupt a call that they have heard of. */
static long
load_listener(const struct sock_filter *filter, uint16_t n)
{
    struct sock_fprog prog = {.len = n, .filter = (struct sock_filter *)(uintptr_t)filter};
    long r = RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                 SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
    return r != -EINVAL
               ? r
               : RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);
}

/* All but those that the payload keeps. */
static long
close_others(const struct confine_exec *x)
{
    unsigned first = (unsigned)(x->program > 0 ? CONFINE_PROGRAM_FD : x->keep_fds) + 1;
    if (x->listener == NULL)
        return RAW(SYS_close_range, first, ~0U, 0);
    unsigned channel = (unsigned)x->listener->channel;
    long r = channel > first ? RAW(SYS_close_range, first, channel - 1, 0) : 0;
    return r < 0 ? r : RAW(SYS_close_range, channel + 1, ~0U, 0);
}

struct net_port {
    uint64_t access;
    uint64_t port;
};

static long
add_ports(long rules, uint64_t access, const uint16_t *ports, uint32_t n)
{
    for (uint32_t i = 0; i < n && i < CONFINE_PORTS_MAX; i++) {
        struct net_port p = {.access = access, .port = ports[i]};
        long r = RAW(SYS_landlock_add_rule, rules, LANDLOCK_NET_PORT, &p, 0);
        if (r < 0)
            return r;
    }
    return 0;
}

/* The second wall: no file outside the task's root, whatever leads there; no device is made; no
 * abstract socket and no signal beyond the task. What is read-only inside is the mounts' part. */
static long
confine_landlock(const struct confine *c)
{
    uint32_t abi = c->landlock_abi;
    uint64_t net = (c->flags & CONFINE_BIND ? LANDLOCK_NET_BIND : 0) |
                   (c->flags & CONFINE_CONNECT ? LANDLOCK_NET_CONNECT : 0);
    if (net != 0 && abi < LANDLOCK_ABI_NET)
        return -EOPNOTSUPP; /* the warden refuses it before */
    if (abi < LANDLOCK_ABI_REFER)
        return 0;
    struct landlock_rules all = {.fs = landlock_fs(abi), .net = net};
    all.scoped = abi >= LANDLOCK_ABI_SCOPE ? LANDLOCK_SCOPES : 0;
    if (c->flags & CONFINE_JOINS) /* whose rules are others; the pid namespace is the task's */
        all.scoped &= ~(uint64_t)LANDLOCK_SCOPE_SIGNALS;
    long rules = RAW(SYS_landlock_create_ruleset, &all, landlock_size(abi), 0);
    if (rules < 0)
        return rules;
    long root = RAW(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);
    struct landlock_path_beneath_attr below = {
        .allowed_access =
            all.fs & ~(uint64_t)(LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK),
        .parent_fd = (int)root,
    };
    long r =
        root < 0 ? root : RAW(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0);
    if (r == 0 && (c->flags & CONFINE_BIND))
        r = add_ports(rules, LANDLOCK_NET_BIND, c->bind, c->n_bind);
    if (r == 0 && (c->flags & CONFINE_CONNECT))
        r = add_ports(rules, LANDLOCK_NET_CONNECT, c->connect, c->n_connect);
    if (r == 0)
        r = RAW(SYS_landlock_restrict_self, rules, 0);
    raw_close(root);
    raw_close(rules);
    return r;
}

/* One of our own files in procfs, and nothing else that a task's root might have there. */
static long
open_attr(const char *path, int flags)
{
    struct statfs fs = {0};
    struct open_how how = {.flags = (unsigned)flags | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS};
    long fd = RAW(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    long r = fd < 0 ? fd : RAW(SYS_fstatfs, fd, &fs);
    if (r == 0 && fs.f_type != PROC_SUPER_MAGIC)
        r = -ENOENT;
    if (r == 0)
        return fd;
    raw_close(fd);
    return r;
}

/* Has the next execution of this process run under the profile; and where it is confined by one
 * already, as contrib/apparmor's of the shim, under both: no_new_privs lets nothing else
 * through. */
static long
confine_apparmor(const char *profile)
{
    static const char unconfined[] = "unconfined";
    char text[CONFINE_APPARMOR_MAX + 8] = "stack ";
    long fd = open_attr("/proc/thread-self/attr/apparmor/current", O_RDONLY);
    long n = fd < 0 ? fd : RAW(SYS_read, fd, text + 8, sizeof(unconfined) - 1);
    raw_close(fd);
    if (n < 0)
        return n;
    if (n == (long)sizeof(unconfined) - 1 && memcmp(text + 8, unconfined, (size_t)n) == 0)
        memcpy(text, "exec ", 6);
    size_t at = strlen(text), len = strnlen(profile, CONFINE_APPARMOR_MAX);
    memcpy(text + at, profile, len);
    fd = open_attr("/proc/thread-self/attr/apparmor/exec", O_WRONLY);
    n = fd < 0 ? fd : RAW(SYS_write, fd, text, at + len);
    raw_close(fd);
    return n;
}

static long
confine_enter(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_MAGICLINKS};
    long fd = RAW(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
    if (fd < 0)
        return fd;
    long r = RAW(SYS_fchdir, fd);
    raw_close(fd);
    return r;
}

/* Moves the program's descriptor to where it is not closed with the rest. */
static long
keep_program(const struct confine_exec *x)
{
    if (x->program == CONFINE_PROGRAM_FD)
        return RAW(SYS_fcntl, x->program, F_SETFD, x->script ? 0 : FD_CLOEXEC);
    return RAW(SYS_dup3, x->program, CONFINE_PROGRAM_FD, x->script ? 0 : O_CLOEXEC);
}

static void
await_root(const uint32_t *built)
{
    while (built != NULL && __atomic_load_n(built, __ATOMIC_ACQUIRE) == 0)
        (void)RAW(SYS_futex, built, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static long
confine_filter(const struct confine_exec *x)
{
    if (x->filter == NULL)
        return 0;
    if (x->listener == NULL)
        return load_filter(x->filter, x->n_filter);
    return x->listener->fd = (int)load_listener(x->filter, x->n_filter);
}

int
confine_task(const struct confine *c, const struct confine_exec *x, const char **what)
{
    const uint64_t none = 0;
    STEP("signals", RAW(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, KERNEL_SIGSET_BYTES));
    STEP("setsid", RAW(SYS_setsid));
    if (x->terminal)
        STEP("controlling terminal", RAW(SYS_ioctl, 0, TIOCSCTTY, 0));
    if (c->n_rlimits > CONFINE_RLIMITS_MAX) {
        *what = CONFINE_RLIMIT_STEP;
        return -EINVAL;
    }
    for (uint32_t i = 0; i < c->n_rlimits; i++)
        STEP(CONFINE_RLIMIT_STEP, set_rlimit(&c->rlimits[i]));
    if (c->flags & CONFINE_CORE_SCHED) /* of this process; its children have it too */
        STEP("core scheduling", RAW(SYS_prctl, PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, 1, 0));
    if (x->apparmor != NULL)
        STEP(CONFINE_APPARMOR_STEP, confine_apparmor(x->apparmor));
    int r = 0;
    if (c->flags & CONFINE_USERNS) /* which gives all capabilities inside, and resets securebits */
        STEP("user namespace", RAW(SYS_setns, x->userns, CLONE_NEWUSER));
    if (c->flags & CONFINE_ISOLATED) { /* before the ids: it needs a capability */
        STEP("securebits",
             RAW(SYS_prctl, PR_SET_SECUREBITS, BITS_BASE | (c->caps ? 0 : BITS_AMBIENT), 0, 0, 0));
        STEP("bounding set", drop_bounding(c->caps));
    }
    if (c->flags & CONFINE_IDS)
        r = set_ids(c, what);
    if (r == 0 && (c->flags & CONFINE_ISOLATED))
        r = keep_caps(c->caps, what);
    if (r < 0)
        return r;
    /* Before a path of the job is used: /proc/self/fd/N of an inherited directory leads out of the
     * new root (test: working_directories_stay_inside). */
    if (x->listener != NULL && x->program > 0 && x->listener->channel == CONFINE_PROGRAM_FD)
        STEP("dup", x->listener->channel = (int)RAW(SYS_fcntl, CONFINE_PROGRAM_FD, F_DUPFD_CLOEXEC,
                                                    CONFINE_PROGRAM_FD + 1));
    if (x->program > 0)
        STEP("dup", keep_program(x));
    STEP("close_range", close_others(x));
    if (c->flags & (CONFINE_NO_NEW_PRIVS | CONFINE_ISOLATED))
        STEP("no_new_privs", RAW(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (c->flags & CONFINE_ISOLATED)
        STEP("landlock", confine_landlock(c));
    slice_set(0);
    bool first = (c->flags & CONFINE_FILTER_FIRST) != 0;
    if (first)
        STEP("seccomp", confine_filter(x));
    await_root(x->built);
    if (x->work_dir != NULL)
        STEP("working directory", confine_enter(x->work_dir));
    if (!first)
        STEP("seccomp", confine_filter(x));
    return 0;
}

int
confine_end(const struct sock_filter *filter, uint16_t n_filter, uint64_t keep, const char **what)
{
    STEP("ambient set", RAW(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
    STEP("capset", set_caps(keep, 0));
    STEP("no_new_privs", RAW(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (filter != NULL)
        STEP("seccomp", load_filter(filter, n_filter));
    return 0;
}
