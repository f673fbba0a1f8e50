/* SPDX-License-Identifier: Apache-2.0
 *
 * The profiles, as data. The default profile follows the allow lists that container engines have
 * proven against real programs, less what turned out to be a way out or needless surface: key
 * rings, tracing of other processes, file handles, io_uring, aio, userfaultfd, bpf, perf,
 * namespaces, mounts, modules, clocks, raw device nodes, odd socket families, and terminal
 * injection.
 */
#include <linux/fs.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/seccomp.h"

#define ALLOW(call)                                                                                \
    {                                                                                              \
        .name = call, .verdict = SECCOMP_V_ALLOW                                                   \
    }
#define ABSENT(call)                                                                               \
    {                                                                                              \
        .name = call, .verdict = SECCOMP_V_ENOSYS                                                  \
    }
#define WHEN(call, list)                                                                           \
    {                                                                                              \
        .name = call, .verdict = SECCOMP_V_ALLOW, .conds = (list), .n_conds = ARRAY_LEN(list)      \
    }
#define UNLESS(call, list)                                                                         \
    {                                                                                              \
        .name = call, .verdict = SECCOMP_V_ALLOW, .invert = true, .conds = (list),                 \
        .n_conds = ARRAY_LEN(list)                                                                 \
    }
/* An int argument equals. */
#define INT_IS(n, v)                                                                               \
    {                                                                                              \
        .arg = (n), .low32 = true, .mask = UINT32_MAX, .value = (v)                                \
    }
#define INT_BITS(n, m, v)                                                                          \
    {                                                                                              \
        .arg = (n), .low32 = true, .mask = (m), .value = (v)                                       \
    }

/* CLONE_NEWTIME shares its bit with the exit signal here: clone(2) cannot ask for it. */
#define NAMESPACE_FLAGS                                                                            \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

static const struct seccomp_cond no_namespace[] = {INT_BITS(0, NAMESPACE_FLAGS, 0)};

/* A family, type or protocol that nobody uses yet makes the kernel load the module for it. So of
 * IPv4 and IPv6 (2 and 10: all but one bit) there are the types up to SOCK_RAW, and their common
 * protocols; for a raw socket, which takes a capability, none is loaded. */
enum { NETLINK_ROUTE_PROTOCOL = 0, TYPE_BITS = 0xf, LATER_TYPES = 0xc };
#define AND_INT_BITS(n, m, v)                                                                      \
    {                                                                                              \
        .arg = (n), .low32 = true, .more = true, .mask = (m), .value = (v)                         \
    }
#define IP_FAMILIES AND_INT_BITS(0, UINT32_MAX & ~(uint32_t)(AF_INET ^ AF_INET6), AF_INET)
#define IP_SOCKET(protocol)                                                                        \
    IP_FAMILIES, AND_INT_BITS(1, LATER_TYPES, 0), INT_IS(2, protocol)
static const struct seccomp_cond plain_sockets[] = {
    INT_IS(0, AF_UNIX),
    IP_SOCKET(IPPROTO_TCP),
    IP_SOCKET(IPPROTO_UDP),
    IP_FAMILIES,
    AND_INT_BITS(1, LATER_TYPES, 0),
    INT_BITS(2, UINT32_MAX & ~(uint32_t)IPPROTO_ICMP, 0), /* 0 and 1 */
    IP_SOCKET(IPPROTO_ICMPV6),
    IP_SOCKET(IPPROTO_UDPLITE),
    IP_SOCKET(IPPROTO_MPTCP),
    IP_FAMILIES,
    INT_BITS(1, TYPE_BITS, SOCK_RAW),
    AND_INT_BITS(0, UINT32_MAX, AF_NETLINK),
    INT_IS(2, NETLINK_ROUTE_PROTOCOL),
};
_Static_assert((AF_INET ^ AF_INET6) == 8 && IPPROTO_IP == 0 && IPPROTO_ICMP == 1, "one bit each");
static const struct seccomp_cond plain_pairs[] = {INT_IS(0, AF_UNIX)};

/* Characters pushed into a terminal's input, the console's selection buffer, line disciplines; the
 * project of a file, and whether what is made in a directory is of the same: whoever owns it may
 * change them, but for user namespaces, and be rid of the allocation's limit on disk (quota.h). */
static const struct seccomp_cond bad_ioctls[] = {
    INT_IS(1, TIOCSTI),           INT_IS(1, TIOCLINUX),       INT_IS(1, TIOCSETD),
    INT_IS(1, FS_IOC_FSSETXATTR), INT_IS(1, FS_IOC_SETFLAGS),
};

/* Plain Linux, 32-bit uname (8), old uname (0x20000), and asking (~0). Never READ_IMPLIES_EXEC or
 * no randomisation. */
static const struct seccomp_cond harmless_personalities[] = {
    INT_BITS(0, UINT32_MAX & ~0x20008u, 0),
    INT_IS(0, UINT32_MAX),
};

/* Regular files, FIFOs and sockets; this bit is in the types of devices (and links, which mknod
 * does not make). */
static const struct seccomp_cond plain_mknod[] = {INT_BITS(1, S_IFCHR, 0)};
static const struct seccomp_cond plain_mknodat[] = {INT_BITS(2, S_IFCHR, 0)};
_Static_assert((S_IFBLK & S_IFCHR) == S_IFCHR, "one bit tells devices");

/* clang-format off */
static const struct seccomp_rule default_rules[] = {
    /* with conditions */
    WHEN("clone", no_namespace),
    WHEN("socket", plain_sockets),
    WHEN("socketpair", plain_pairs),
    UNLESS("ioctl", bad_ioctls),
    WHEN("personality", harmless_personalities),
    WHEN("mknod", plain_mknod),
    WHEN("mknodat", plain_mknodat),
    /* its flags are behind a pointer, out of a filter's sight; libc falls back to clone */
    ABSENT("clone3"),
    /* files */
    ALLOW("access"), ALLOW("chdir"), ALLOW("chmod"), ALLOW("chown"), ALLOW("chown32"),
    ALLOW("close"), ALLOW("close_range"), ALLOW("copy_file_range"), ALLOW("creat"), ALLOW("dup"),
    ALLOW("dup2"), ALLOW("dup3"), ALLOW("faccessat"), ALLOW("faccessat2"), ALLOW("fadvise64"),
    ALLOW("fadvise64_64"), ALLOW("fallocate"), ALLOW("fanotify_mark"), ALLOW("fchdir"),
    ALLOW("fchmod"), ALLOW("fchmodat"), ALLOW("fchmodat2"), ALLOW("fchown"), ALLOW("fchown32"),
    ALLOW("fchownat"), ALLOW("fcntl"), ALLOW("fcntl64"), ALLOW("fdatasync"), ALLOW("fgetxattr"),
    ALLOW("flistxattr"), ALLOW("flock"), ALLOW("fremovexattr"), ALLOW("fsetxattr"), ALLOW("fstat"),
    ALLOW("fstat64"), ALLOW("fstatat64"), ALLOW("fstatfs"), ALLOW("fstatfs64"), ALLOW("fsync"),
    ALLOW("ftruncate"), ALLOW("ftruncate64"), ALLOW("futimesat"), ALLOW("getcwd"),
    ALLOW("getdents"), ALLOW("getdents64"), ALLOW("getxattr"), ALLOW("inotify_add_watch"),
    ALLOW("inotify_init"), ALLOW("inotify_init1"), ALLOW("inotify_rm_watch"), ALLOW("lchown"),
    ALLOW("lchown32"), ALLOW("lgetxattr"), ALLOW("link"), ALLOW("linkat"), ALLOW("listxattr"),
    ALLOW("llistxattr"), ALLOW("_llseek"), ALLOW("lremovexattr"), ALLOW("lseek"),
    ALLOW("lsetxattr"), ALLOW("lstat"), ALLOW("lstat64"), ALLOW("memfd_create"),
    ALLOW("mkdir"), ALLOW("mkdirat"), ALLOW("newfstatat"), ALLOW("open"), ALLOW("openat"),
    ALLOW("openat2"), ALLOW("pipe"), ALLOW("pipe2"), ALLOW("pread64"), ALLOW("preadv"),
    ALLOW("preadv2"), ALLOW("pwrite64"), ALLOW("pwritev"), ALLOW("pwritev2"), ALLOW("read"),
    ALLOW("readahead"), ALLOW("readlink"), ALLOW("readlinkat"), ALLOW("readv"),
    ALLOW("removexattr"), ALLOW("rename"), ALLOW("renameat"), ALLOW("renameat2"), ALLOW("rmdir"),
    ALLOW("sendfile"), ALLOW("sendfile64"), ALLOW("setxattr"), ALLOW("splice"), ALLOW("stat"),
    ALLOW("stat64"), ALLOW("statfs"), ALLOW("statfs64"), ALLOW("statx"), ALLOW("symlink"),
    ALLOW("symlinkat"), ALLOW("sync"), ALLOW("sync_file_range"), ALLOW("syncfs"), ALLOW("tee"),
    ALLOW("truncate"), ALLOW("truncate64"), ALLOW("umask"), ALLOW("unlink"), ALLOW("unlinkat"),
    ALLOW("utime"), ALLOW("utimensat"), ALLOW("utimensat_time64"), ALLOW("utimes"),
    ALLOW("vmsplice"), ALLOW("write"), ALLOW("writev"),
    /* waiting */
    ALLOW("epoll_create"), ALLOW("epoll_create1"), ALLOW("epoll_ctl"), ALLOW("epoll_ctl_old"),
    ALLOW("epoll_pwait"), ALLOW("epoll_pwait2"), ALLOW("epoll_wait"), ALLOW("epoll_wait_old"),
    ALLOW("eventfd"), ALLOW("eventfd2"), ALLOW("_newselect"), ALLOW("pause"), ALLOW("poll"),
    ALLOW("ppoll"), ALLOW("ppoll_time64"), ALLOW("pselect6"), ALLOW("pselect6_time64"),
    ALLOW("select"), ALLOW("signalfd"), ALLOW("signalfd4"), ALLOW("timerfd_create"),
    ALLOW("timerfd_gettime"), ALLOW("timerfd_gettime64"), ALLOW("timerfd_settime"),
    ALLOW("timerfd_settime64"),
    /* memory */
    ALLOW("brk"), ALLOW("madvise"), ALLOW("membarrier"), ALLOW("memfd_secret"), ALLOW("mincore"),
    ALLOW("mlock"), ALLOW("mlock2"), ALLOW("mlockall"), ALLOW("mmap"), ALLOW("mmap2"),
    ALLOW("mprotect"), ALLOW("mremap"), ALLOW("msync"), ALLOW("munlock"), ALLOW("munlockall"),
    ALLOW("munmap"), ALLOW("pkey_alloc"), ALLOW("pkey_free"), ALLOW("pkey_mprotect"),
    ALLOW("process_madvise"), ALLOW("process_mrelease"), ALLOW("remap_file_pages"),
    /* processes and threads */
    ALLOW("alarm"), ALLOW("arch_prctl"), ALLOW("capget"), ALLOW("capset"), ALLOW("execve"),
    ALLOW("execveat"), ALLOW("exit"), ALLOW("exit_group"), ALLOW("fork"), ALLOW("futex"),
    ALLOW("futex_time64"), ALLOW("futex_waitv"), ALLOW("getcpu"), ALLOW("getegid"),
    ALLOW("getegid32"), ALLOW("geteuid"), ALLOW("geteuid32"), ALLOW("getgid"), ALLOW("getgid32"),
    ALLOW("getgroups"), ALLOW("getgroups32"), ALLOW("getitimer"), ALLOW("getpgid"),
    ALLOW("getpgrp"), ALLOW("getpid"), ALLOW("getppid"), ALLOW("getpriority"), ALLOW("getrandom"),
    ALLOW("getresgid"), ALLOW("getresgid32"), ALLOW("getresuid"), ALLOW("getresuid32"),
    ALLOW("getrlimit"), ALLOW("get_robust_list"), ALLOW("getrusage"), ALLOW("getsid"),
    ALLOW("get_thread_area"), ALLOW("gettid"), ALLOW("getuid"), ALLOW("getuid32"),
    ALLOW("ioprio_get"), ALLOW("ioprio_set"), ALLOW("kill"), ALLOW("nice"), ALLOW("pidfd_open"),
    ALLOW("pidfd_send_signal"), ALLOW("prctl"), ALLOW("prlimit64"), ALLOW("restart_syscall"),
    ALLOW("rseq"), ALLOW("rt_sigaction"), ALLOW("rt_sigpending"), ALLOW("rt_sigprocmask"),
    ALLOW("rt_sigqueueinfo"), ALLOW("rt_sigreturn"), ALLOW("rt_sigsuspend"),
    ALLOW("rt_sigtimedwait"), ALLOW("rt_sigtimedwait_time64"), ALLOW("rt_tgsigqueueinfo"),
    ALLOW("sched_getaffinity"), ALLOW("sched_getattr"), ALLOW("sched_getparam"),
    ALLOW("sched_get_priority_max"), ALLOW("sched_get_priority_min"), ALLOW("sched_getscheduler"),
    ALLOW("sched_rr_get_interval"), ALLOW("sched_rr_get_interval_time64"),
    ALLOW("sched_setaffinity"), ALLOW("sched_setattr"), ALLOW("sched_setparam"),
    ALLOW("sched_setscheduler"), ALLOW("sched_yield"), ALLOW("seccomp"), ALLOW("setfsgid"),
    ALLOW("setfsgid32"), ALLOW("setfsuid"), ALLOW("setfsuid32"), ALLOW("setgid"),
    ALLOW("setgid32"), ALLOW("setgroups"), ALLOW("setgroups32"), ALLOW("setitimer"),
    ALLOW("setpgid"), ALLOW("setpriority"), ALLOW("setregid"), ALLOW("setregid32"),
    ALLOW("setresgid"), ALLOW("setresgid32"), ALLOW("setresuid"), ALLOW("setresuid32"),
    ALLOW("setreuid"), ALLOW("setreuid32"), ALLOW("setrlimit"), ALLOW("set_robust_list"),
    ALLOW("setsid"), ALLOW("set_thread_area"), ALLOW("set_tid_address"), ALLOW("setuid"),
    ALLOW("setuid32"), ALLOW("sigaltstack"), ALLOW("sigprocmask"), ALLOW("sigreturn"),
    ALLOW("tgkill"), ALLOW("time"), ALLOW("times"), ALLOW("tkill"), ALLOW("ugetrlimit"),
    ALLOW("vfork"), ALLOW("wait4"), ALLOW("waitid"), ALLOW("waitpid"),
    /* a program may box itself in further */
    ALLOW("landlock_add_rule"), ALLOW("landlock_create_ruleset"), ALLOW("landlock_restrict_self"),
    /* sockets */
    ALLOW("accept"), ALLOW("accept4"), ALLOW("bind"), ALLOW("connect"), ALLOW("getpeername"),
    ALLOW("getsockname"), ALLOW("getsockopt"), ALLOW("listen"), ALLOW("recv"), ALLOW("recvfrom"),
    ALLOW("recvmmsg"), ALLOW("recvmmsg_time64"), ALLOW("recvmsg"), ALLOW("send"),
    ALLOW("sendmmsg"), ALLOW("sendmsg"), ALLOW("sendto"), ALLOW("setsockopt"), ALLOW("shutdown"),

    /* System V and POSIX IPC */
    ALLOW("ipc"), ALLOW("mq_getsetattr"), ALLOW("mq_notify"), ALLOW("mq_open"),
    ALLOW("mq_timedreceive"), ALLOW("mq_timedreceive_time64"), ALLOW("mq_timedsend"),
    ALLOW("mq_timedsend_time64"), ALLOW("mq_unlink"), ALLOW("msgctl"), ALLOW("msgget"),
    ALLOW("msgrcv"), ALLOW("msgsnd"), ALLOW("semctl"), ALLOW("semget"), ALLOW("semop"),
    ALLOW("semtimedop"), ALLOW("semtimedop_time64"), ALLOW("shmat"), ALLOW("shmctl"),
    ALLOW("shmdt"), ALLOW("shmget"),
    /* time: reading, and what the kernel itself ties to CAP_SYS_TIME */
    ALLOW("adjtimex"), ALLOW("clock_adjtime"), ALLOW("clock_adjtime64"), ALLOW("clock_getres"),
    ALLOW("clock_getres_time64"), ALLOW("clock_gettime"), ALLOW("clock_gettime64"),
    ALLOW("clock_nanosleep"), ALLOW("clock_nanosleep_time64"), ALLOW("gettimeofday"),
    ALLOW("nanosleep"), ALLOW("timer_create"), ALLOW("timer_delete"), ALLOW("timer_getoverrun"),
    ALLOW("timer_gettime"), ALLOW("timer_gettime64"), ALLOW("timer_settime"),
    ALLOW("timer_settime64"),
    /* facts */
    ALLOW("sysinfo"), ALLOW("uname"), ALLOW("riscv_flush_icache"),
};
/* clang-format on */

static const struct seccomp_profile default_profile = {
    .name = "default", .rules = default_rules, .n_rules = ARRAY_LEN(default_rules)};

static const struct seccomp_cond not_dumpable[] = {INT_IS(0, PR_SET_DUMPABLE), INT_IS(1, 0)};

/* The shim once the payload prepares itself: waits, tells the warden, moves log bytes, rotates
 * files, writes its record, reaps. It starts, signals, maps and connects nothing. */
/* clang-format off */
#define SHIM_RULES                                                                                 \
    /* until the payload runs */                                                                   \
    ALLOW("futex"),    ALLOW("sendmsg"),      WHEN("prctl", not_dumpable),                         \
    ALLOW("ppoll"),    ALLOW("ppoll_time64"), ALLOW("read"),       ALLOW("pread64"),               \
    ALLOW("pwrite64"), ALLOW("splice"),       ALLOW("close"),      ALLOW("openat"),                \
    ALLOW("statx"),    ALLOW("fchown"),       ALLOW("unlinkat"),   ALLOW("wait4"),                 \
    ALLOW("munmap"),   ALLOW("clock_gettime"), ALLOW("clock_gettime64"), ALLOW("rt_sigreturn"),    \
    ALLOW("restart_syscall"), ALLOW("exit"),  ALLOW("exit_group")
static const struct seccomp_rule shim_rules[] = {SHIM_RULES};
/* clang-format on */

static const struct seccomp_profile shim_profile = {
    .name = "shim", .rules = shim_rules, .n_rules = ARRAY_LEN(shim_rules)};

/* ... and takes the listener of a task's filter, hears of calls and answers them. */
static const struct seccomp_cond notifications[] = {INT_IS(1, (uint32_t)SECCOMP_IOCTL_NOTIF_RECV),
                                                    INT_IS(1, (uint32_t)SECCOMP_IOCTL_NOTIF_SEND)};
static const struct seccomp_rule audit_rules[] = {SHIM_RULES, ALLOW("recvmsg"),
                                                  WHEN("ioctl", notifications)};

static const struct seccomp_profile audit_profile = {
    .name = "audit", .rules = audit_rules, .n_rules = ARRAY_LEN(audit_rules)};

/* A joiner: waits, and ends a session. */
static const struct seccomp_cond sigkill_only[] = {INT_IS(1, SIGKILL)};
/* clang-format off */
static const struct seccomp_rule join_rules[] = {
    ALLOW("futex"),    WHEN("prctl", not_dumpable), /* until the program runs */
    WHEN("pidfd_send_signal", sigkill_only),
    ALLOW("ppoll"),    ALLOW("ppoll_time64"), ALLOW("read"),       ALLOW("lseek"),
    ALLOW("_llseek"),  ALLOW("sendmsg"),      ALLOW("close"),      ALLOW("waitid"),
    ALLOW("wait4"),    ALLOW("getsid"),       ALLOW("pidfd_open"), ALLOW("munmap"),
    ALLOW("rt_sigreturn"), ALLOW("restart_syscall"), ALLOW("exit"), ALLOW("exit_group"),
};
/* clang-format on */

static const struct seccomp_profile join_profile = {
    .name = "join", .rules = join_rules, .n_rules = ARRAY_LEN(join_rules)};

const struct seccomp_profile *
seccomp_profile_join(void)
{
    return &join_profile;
}

const struct seccomp_profile *
seccomp_profile_default(void)
{
    return &default_profile;
}

const struct seccomp_profile *
seccomp_profile_shim(void)
{
    return &shim_profile;
}

const struct seccomp_profile *
seccomp_profile_audit(void)
{
    return &audit_profile;
}

const struct seccomp_profile *
seccomp_profile_find(const char *name)
{
    if (str_empty(name) || strcmp(name, "default") == 0)
        return &default_profile;
    return NULL;
}
