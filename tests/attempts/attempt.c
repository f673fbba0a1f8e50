/* SPDX-License-Identifier: Apache-2.0
 *
 * The attempts: a static program that runs inside a sandbox and tries to get out, or to use what it
 * must not. Each attempt runs in a child of its own and prints one line, "NAME RESULT": a number
 * from 0 on (what the call returned), the name of an errno, or "signal:N". It judges nothing: the
 * test knows what must happen, and runs it with the filter off as well, to see that the attempts
 * can succeed.
 *
 *   attempt            all attempts, in order
 *   attempt NAME ...   these
 *   attempt -exec      prints the effective uid (for setuid copies)
 *   attempt -swap A B  exchanges the two names for ever
 *
 * The numbers An are those of doc/security.md.
 */
#include "tests/attempts/attempt.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_alg.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <linux/perf_event.h>
#include <linux/vm_sockets.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* One line per attempt. */
/* clang-format off */

extern char **environ;

/* --- who we are --- */

/* How many capabilities, in all five sets together. */
static long
caps(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long n = 0;
    unsigned long long v;
    char which[16];
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Cap%15[a-zA-Z]: %llx", which, &v) == 2)
            n += __builtin_popcountll(v);
    return f ? n : -errno;
}

/* Signals ignored or blocked at the start. */
static long
odd_signals(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256], which[16];
    long n = 0;
    unsigned long long v;
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "Sig%15[a-zA-Z]: %llx", which, &v) == 2 &&
            (strcmp(which, "Ign") == 0 || strcmp(which, "Blk") == 0))
            n += __builtin_popcountll(v);
    return f ? n : -errno;
}

/* A53 A18: hard limits. */
static long
limit_of(int resource)
{
    struct rlimit l;
    return getrlimit(resource, &l) < 0 ? -errno : l.rlim_max == RLIM_INFINITY ? -EOVERFLOW : (long)l.rlim_max;
}
static long core_limit(void) { return limit_of(RLIMIT_CORE); }
static long core_raise(void) { return ret(setrlimit(RLIMIT_CORE, &(struct rlimit){1 << 20, 1 << 20})); }
/* Opens until it is refused; what refuses must be the task's own limit. */
static long
fd_bomb(void)
{
    while (open("/dev/null", O_RDONLY) >= 0)
        ;
    return -errno;
}

/* A21: orphans whose parent is gone are reaped by pid 1. How many zombies remain. */
static long
orphans(void)
{
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            if (fork() == 0)
                _exit(0);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, NULL, 0) < 0)
            return -errno;
    }
    long n = 0;
    for (int round = 0; round < 200; round++) {
        DIR *d = opendir("/proc");
        n = 0;
        for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
            char path[300], line[512] = "";
            snprintf(path, sizeof(path), "/proc/%s/stat", e->d_name);
            FILE *f = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? fopen(path, "r") : NULL;
            n += f && fgets(line, sizeof(line), f) && strstr(line, ") Z ") != NULL;
            if (f)
                fclose(f);
        }
        closedir(d);
        if (n == 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return n;
}

static long
no_new_privs(void)
{
    return ret(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

static long
uid(void)
{
    return (long)getuid();
}

static long
groups(void)
{
    return ret(getgroups(0, NULL));
}

/* A2 */
static long
leaked_fds(void)
{
    long n = 0;
    for (int fd = 3; fd < 65536; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static long
own_pid_namespace(void)
{
    /* processes seen: pid 1, the program, its child that asks; never the host's hundreds */
    long n = 0;
    for (int i = 0; i < 200; i++) { /* the orphans of the attempt before may not be gone yet */
        DIR *d = opendir("/proc");
        if (!d)
            return -errno;
        n = 0;
        for (struct dirent *e; (e = readdir(d)) != NULL;)
            n += e->d_name[0] >= '1' && e->d_name[0] <= '9';
        closedir(d);
        if (n <= 3)
            break;
        (void)poll(NULL, 0, 5);
    }
    return n;
}

/* Mounts without nosuid, or without nodev other than /dev itself. */
static long
loose_mounts(void)
{
    FILE *f = fopen("/proc/self/mounts", "r");
    char line[4096];
    long n = 0;
    while (f && fgets(line, sizeof(line), f)) {
        char where[1024], type[64], opts[1024];
        if (sscanf(line, "%*s %1023s %63s %1023s", where, type, opts) != 3)
            continue;
        int dev = strcmp(where, "/dev") == 0 || strcmp(where, "/dev/pts") == 0 ||
                  strncmp(where, "/proc/", 6) == 0;
        if (!strstr(opts, "nosuid") || (!strstr(opts, "nodev") && !dev)) {
            fprintf(stderr, "loose: %s", line);
            n++;
        }
    }
    return f ? n : -errno;
}

/* Mounts that can be written, beside the task's own places. */
static long
writable_mounts(void)
{
    static const char *const own[] = {"/", "/alloc", "/secrets", "/dev/pts", "/dev/shm", "/proc"};
    FILE *f = fopen("/proc/self/mounts", "r");
    char line[4096];
    long n = 0;
    while (f && fgets(line, sizeof(line), f)) {
        char where[1024], opts[1024];
        if (sscanf(line, "%*s %1023s %*s %1023s", where, opts) != 2 || strncmp(opts, "rw", 2) != 0)
            continue;
        int ok = 0;
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
            ok |= strcmp(where, own[i]) == 0;
        if (!ok) {
            fprintf(stderr, "writable: %s", line);
            n++;
        }
    }
    return f ? n : -errno;
}

static long
cgroup_is_root(void)
{
    FILE *f = fopen("/proc/self/cgroup", "r");
    char line[4096];
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "0::", 3) == 0)
            return strcmp(line, "0::/\n") != 0;
    return -ENOENT;
}

/* --- namespaces and mounts: A3 A22 A24 A25 --- */

static long unshare_user(void) { return ret(unshare(CLONE_NEWUSER)); }
static long unshare_net(void) { return ret(unshare(CLONE_NEWNET)); }
static long unshare_mount(void) { return ret(unshare(CLONE_NEWNS)); }
static long unshare_cgroup(void) { return ret(unshare(CLONE_NEWCGROUP)); }
static long
setns_own(void)
{
    int fd = open("/proc/self/ns/uts", O_RDONLY);
    return fd < 0 ? -errno : ret(setns(fd, 0));
}
static long
clone_newuser(void)
{
    long r = CALL(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
    if (r == 0)
        _exit(0);
    return r;
}
static long clone3_null(void) { return CALL(SYS_clone3, NULL, 0); }
static void *
thread_body(void *arg)
{
    return arg;
}
static long
thread(void)
{
    pthread_t t;
    int r = pthread_create(&t, NULL, thread_body, NULL);
    return r ? -r : -pthread_join(t, NULL);
}
static long
spawn(void)
{
    pid_t pid;
    char *argv[] = {(char *)"attempt", (char *)"-spawned", NULL};
    int st, r = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
    if (r)
        return -r;
    return ret(waitpid(pid, &st, 0)) < 0 ? -errno : WEXITSTATUS(st);
}
static long mount_tmpfs(void) { return ret(mount("x", "/tmp", "tmpfs", 0, NULL)); }
static long mount_bind(void) { return ret(mount("/etc", "/tmp", NULL, MS_BIND, NULL)); }
static long mount_cgroup2(void) { return ret(mount("x", "/tmp", "cgroup2", 0, NULL)); }
static long mount_cgroup1(void) { return ret(mount("x", "/tmp", "cgroup", 0, "net_cls")); }
static long remount_rw(void) { return ret(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL)); }
static long umount_mask(void) { return ret(umount2("/proc/kcore", MNT_DETACH)); }
static long fsopen_proc(void) { return CALL(SYS_fsopen, "proc", 0); }
static long open_tree_root(void) { return CALL(SYS_open_tree, AT_FDCWD, "/", 1); }
static long mount_setattr_root(void) { return CALL(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0); }
static long pivot(void) { return CALL(SYS_pivot_root, ".", "."); }
static long do_chroot(void) { return ret(chroot("/tmp")); }
static long cgroupfs_visible(void) { return ret(open("/sys/fs/cgroup/cgroup.procs", O_RDONLY)); }

/* --- other processes: A10 A11 A12 A56 --- */

static long ptrace_traceme(void) { return ret(ptrace(PTRACE_TRACEME, 0, 0, 0)); }
static long ptrace_seize_1(void) { return ret(ptrace(PTRACE_SEIZE, 1, 0, 0)); }
static long
vm_readv(void)
{
    char b[8];
    struct iovec v = {b, 8};
    return ret(process_vm_readv(1, &v, 1, &v, 1, 0));
}
static long kcmp_1(void) { return CALL(SYS_kcmp, getpid(), 1, 0, 0, 0); }
static long
pidfd_getfd_1(void)
{
    int fd = (int)CALL(SYS_pidfd_open, 1, 0);
    return fd < 0 ? fd : CALL(SYS_pidfd_getfd, fd, 0, 0);
}
long
open_of(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}
static long pid1_environ(void) { return open_of("/proc/1/environ", O_RDONLY); }
static long pid1_mem(void) { return open_of("/proc/1/mem", O_RDWR); }
static long pid1_root(void) { return open_of("/proc/1/root", O_RDONLY); }
static long pid1_maps(void) { return open_of("/proc/1/maps", O_RDONLY); }
static long pid1_fd(void) { return open_of("/proc/1/fd", O_RDONLY); }
static long kill_pid1(void) { return ret(kill(1, SIGKILL)); }
static long keyctl_join(void) { return CALL(SYS_keyctl, 1, NULL) > 0 ? 0 : -errno; }
static long keyctl_describe(void) { return CALL(SYS_keyctl, 6, -4, NULL, 0); }
static long add_key_user(void) { return CALL(SYS_add_key, "user", "x", "y", 1, -2) > 0 ? 0 : -errno; }
static long request_key_user(void) { return CALL(SYS_request_key, "user", "x", NULL, -2); }

/* --- kernel surface: A14 A26-A34 A37 A38 --- */

static long
io_uring(void)
{
    struct io_uring_params p = {0};
    long r = CALL(SYS_io_uring_setup, 1, &p);
    return r > 0 ? 0 : r;
}
static long
bpf_map(void)
{
    union bpf_attr a = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
    return CALL(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a));
}
static long
perf(void)
{
    struct perf_event_attr a = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(a), .exclude_kernel = 1};
    long r = CALL(SYS_perf_event_open, &a, 0, -1, -1, 0);
    return r > 0 ? 0 : r;
}
static long
uffd(void)
{
    long r = CALL(SYS_userfaultfd, 1 /* user mode only */);
    return r > 0 ? 0 : r;
}
static long
handle(void)
{
    struct {
        struct file_handle h;
        char b[8];
    } h = {.h = {.handle_bytes = 8, .handle_type = 1}, .b = {2}};
    int fd = open("/", O_RDONLY);
    return ret(open_by_handle_at(fd, &h.h, O_RDONLY));
}
static long
name_handle(void)
{
    struct {
        struct file_handle h;
        char b[128];
    } h = {.h = {.handle_bytes = 128}};
    int id;
    return ret(name_to_handle_at(AT_FDCWD, "/", &h.h, &id, 0));
}
static long kexec_load(void) { return CALL(SYS_kexec_load, 0, 0, NULL, 0); }
static long kexec_file(void) { return CALL(SYS_kexec_file_load, -1, -1, 0, NULL, 0); }
static long module_init(void) { return CALL(SYS_init_module, NULL, 0, ""); }
static long module_finit(void) { return CALL(SYS_finit_module, -1, "", 0); }
static long module_delete(void) { return CALL(SYS_delete_module, "no_such_module", 0); }
static long do_reboot(void) { return CALL(SYS_reboot, 0xfee1dead, 672274793, 0, NULL); /* CAD off */ }
static long do_swapon(void) { return CALL(SYS_swapon, "/tmp/none", 0); }
static long do_acct(void) { return CALL(SYS_acct, "/tmp/none"); }
static long do_quotactl(void) { return CALL(SYS_quotactl, 0, NULL, 0, NULL); }
static long
set_time(void)
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return ret(settimeofday(&t, NULL));
}
static long
set_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return ret(clock_settime(CLOCK_REALTIME, &t));
}
static long
adjtimex_read(void)
{
    struct timex t = {0};
    long r = ret(adjtimex(&t));
    return r > 0 ? 0 : r;
}
static long
adjtimex_set(void)
{
    struct timex t = {0};
    adjtimex(&t);
    t.modes = ADJ_TICK;
    long r = ret(adjtimex(&t));
    return r > 0 ? 0 : r;
}
static long set_hostname(void) { return ret(sethostname("owned", 5)); }
static long set_domain(void) { return ret(setdomainname("owned", 5)); }
static long personality_exec(void) { return CALL(SYS_personality, 0x400000); }
static long personality_aslr(void) { return CALL(SYS_personality, 0x40000); }
static long read_syslog(void) { return CALL(SYS_syslog, 10 /* size of the buffer */, NULL, 0); }
#ifdef __x86_64__
static long do_iopl(void) { return CALL(SYS_iopl, 3); }
static long do_ioperm(void) { return CALL(SYS_ioperm, 0x80, 1, 1); }
static long
int80(void)
{
    long r = 20; /* getpid of i386 */
    __asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
    return r > 0 ? 0 : r;
}
static long
x32(void)
{
    long r = CALL(SYS_getpid | 0x40000000);
    return r > 0 ? 0 : r;
}
#endif

/* --- sockets: A34 A35 --- */

static long
sock(int family, int type, int protocol)
{
    int fd = socket(family, type, protocol);
    return fd < 0 ? -errno : 0;
}
static long sock_inet(void) { return sock(AF_INET, SOCK_STREAM, 0); }
static long sock_unix(void) { return sock(AF_UNIX, SOCK_STREAM, 0); }
static long sock_raw(void) { return sock(AF_INET, SOCK_RAW, IPPROTO_ICMP); }
static long sock_raw6(void) { return sock(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6); }
static long sock_packet(void) { return sock(AF_PACKET, SOCK_RAW, 0); }
static long sock_vsock(void) { return sock(AF_VSOCK, SOCK_STREAM, 0); }
static long sock_alg(void) { return sock(AF_ALG, SOCK_SEQPACKET, 0); }
static long sock_key(void) { return sock(AF_KEY, SOCK_RAW, 2); }
static long sock_xdp(void) { return sock(AF_XDP, SOCK_RAW, 0); }
static long sock_can(void) { return sock(AF_CAN, SOCK_RAW, 1); }
static long sock_tipc(void) { return sock(AF_TIPC, SOCK_STREAM, 0); }
static long sock_rds(void) { return sock(AF_RDS, SOCK_SEQPACKET, 0); }
static long sock_route(void) { return sock(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE); }
static long sock_netfilter(void) { return sock(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER); }

/* How many were not denied, of all but those that a task has. */
static long
other_pairs(void)
{
    long n = 0;
    int fds[2];
    for (int family = 0; family < 64; family++)
        for (int type = SOCK_STREAM; type <= SOCK_PACKET; type++)
            n += family != AF_UNIX && (socketpair(family, type, 0, fds) == 0 || errno != EPERM);
    return n;
}
static long
other_protocols(void)
{
    long n = 0;
    for (int type = 0; type < 16; type++) {
        for (int p = 0; p < 300; p++) {
            int plain = p == 0 || p == IPPROTO_ICMP || p == IPPROTO_TCP || p == IPPROTO_UDP ||
                        p == IPPROTO_ICMPV6 || p == IPPROTO_UDPLITE || p == IPPROTO_MPTCP;
            if (type == SOCK_RAW || (plain && type <= SOCK_RAW))
                continue;
            n += sock(AF_INET, type, p) != -EPERM;
            n += sock(AF_INET6, type, p) != -EPERM;
        }
    }
    return n;
}
static long
pair_unix(void)
{
    int fds[2];
    return ret(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
}

/* --- what the machine has few of: B8 --- */

static long
aio(void)
{
    unsigned long context = 0;
    return CALL(SYS_io_setup, 1, &context);
}
static long
terminals(void)
{
    for (int i = 0; i < 100; i++)
        if (posix_openpt(O_RDWR | O_NOCTTY) < 0)
            return errno == ENOSPC ? i : -errno;
    return 100;
}

/* --- terminals: A7 --- */

static long
tty_ioctl(unsigned long request, char *arg)
{
    int m = posix_openpt(O_RDWR | O_NOCTTY);
    if (m < 0)
        return -errno;
    return ret(ioctl(m, request, arg));
}
static long tiocsti(void) { return tty_ioctl(TIOCSTI, (char[]){'x'}); }
static long tioclinux(void) { return tty_ioctl(TIOCLINUX, (char[]){2}); }
static long pty_works(void) { return tty_ioctl(TIOCGWINSZ, (char[64]){0}); }

/* --- privilege: A13 A15 A50 --- */

static long set_uid_0(void) { return ret(setresuid(0, 0, 0)); }
static long set_gid_0(void) { return ret(setresgid(0, 0, 0)); }
static long set_groups_0(void) { return CALL(SYS_setgroups, 1, &(gid_t){0}); }
static long
raise_caps(void)
{
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct d[2] = {
        {.effective = 1u << CAP_SYS_ADMIN, .permitted = 1u << CAP_SYS_ADMIN}};
    return CALL(SYS_capset, &h, d);
}
static long
raise_ambient(void)
{
    return ret(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_RAW, 0, 0));
}
static long
node(const char *path, mode_t mode, dev_t dev)
{
    unlink(path);
    return ret(mknod(path, mode, dev));
}
static long mknod_char(void) { return node("/local/c", S_IFCHR | 0666, makedev(1, 1)); }
static long mknod_block(void) { return node("/local/b", S_IFBLK | 0666, makedev(254, 0)); }
static long mknod_fifo(void) { return node("/local/f", S_IFIFO | 0600, 0); }
static long
open_planted_device(void) /* the test made local/device (1:3) from outside */
{
    return open_of("/local/device", O_RDONLY);
}
/* Returns the effective uid that a setuid-root copy of this program sees, planted in local/. */
static long
setuid_binary(void)
{
    int p[2];
    if (pipe(p) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        dup2(p[1], 1);
        execl("/local/setuid-attempt", "attempt", "-exec", (char *)NULL);
        _exit(errno);
    }
    close(p[1]);
    char b[32] = "";
    int st;
    ssize_t n = read(p[0], b, sizeof(b) - 1);
    waitpid(pid, &st, 0);
    long euid = -1;
    if (n > 0 && sscanf(b, "%ld", &euid) == 1)
        return euid;
    return -(WEXITSTATUS(st) ? WEXITSTATUS(st) : EPROTO);
}

/* --- files: A8 A9 A37 A55 --- */

static long write_core_pattern(void) { return open_of("/proc/sys/kernel/core_pattern", O_WRONLY); }
static long write_ns_last_pid(void) { return open_of("/proc/sys/kernel/ns_last_pid", O_WRONLY); }
static long write_sysrq(void) { return open_of("/proc/sysrq-trigger", O_WRONLY); }
static long write_irq(void) { return open_of("/proc/irq/default_smp_affinity", O_WRONLY); }
static long write_usr(void) { return open_of("/usr/owned", O_WRONLY | O_CREAT); }
static long write_etc(void) { return open_of("/etc/owned", O_WRONLY | O_CREAT); }
static long write_passwd(void) { return open_of("/etc/passwd", O_WRONLY); }
static long write_dev(void) { return open_of("/dev/owned", O_WRONLY | O_CREAT); }
static long write_sys(void) { return open_of("/sys/kernel/uevent_helper", O_WRONLY); }
static long write_shell(void) { return open_of("/bin/sh", O_WRONLY); }
static long write_local(void) { return open_of("/local/mine", O_WRONLY | O_CREAT); }
static long write_tmp(void) { return open_of("/tmp/mine", O_WRONLY | O_CREAT); }
static long write_secrets(void) { return open_of("/secrets/mine", O_WRONLY | O_CREAT); }
static long write_alloc(void) { return open_of("/alloc/data/mine", O_WRONLY | O_CREAT); }
static long write_shm(void) { return open_of("/dev/shm/mine", O_WRONLY | O_CREAT); }
static long write_null(void) { return open_of("/dev/null", O_RDWR); }
static long dev_mem(void) { return open_of("/dev/mem", O_RDONLY); }
static long dev_kmsg(void) { return open_of("/dev/kmsg", O_RDONLY); }
static long dev_disk(void) { return open_of("/dev/vda", O_RDONLY); }
static long shadow(void) { return open_of("/etc/shadow", O_RDONLY); }
static long host_root_home(void) { return open_of("/root", O_RDONLY); }
static long host_work(void) { return open_of("/var", O_RDONLY); }
/* A36: an abstract socket of the host; the test listens on it. */
static long
abstract_canary(void)
{
    static const char name[] = "paddock-attempt-canary";
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path + 1, name, sizeof(name) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name));
    return fd < 0 ? -errno : ret(connect(fd, (void *)&a, n));
}
/* A2: through a directory of the host that was left open as 3. */
static long
outside_fd(void)
{
    int fd = openat(3, "etc/passwd", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : 0;
}
static long parent_of_root(void) { return open_of("/../../../../root", O_RDONLY); }

/* Bytes that can be read: a masked file has none. */
static long
bytes_of(const char *path)
{
    char b[4096];
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    return ret(read(fd, b, sizeof(b)));
}
static long read_kcore(void) { return bytes_of("/proc/kcore"); }
static long read_keys(void) { return bytes_of("/proc/keys"); }
static long read_timer_list(void) { return bytes_of("/proc/timer_list"); }
static long read_interrupts(void) { return bytes_of("/proc/interrupts"); }
static long read_kmsg(void) { return bytes_of("/proc/kmsg"); }
static long
entries_of(const char *path)
{
    DIR *d = opendir(path);
    long n = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    return d ? n : -errno;
}
static long sys_firmware(void) { return entries_of("/sys/firmware"); }
static long sys_debug(void) { return entries_of("/sys/kernel/debug"); }
static long sys_tracing(void) { return entries_of("/sys/kernel/tracing"); }
static long sys_bpf(void) { return entries_of("/sys/fs/bpf"); }
static long sys_cgroup(void) { return entries_of("/sys/fs/cgroup"); }
static long proc_acpi(void) { return entries_of("/proc/acpi"); }
/* Kernel addresses other than zero in kallsyms. */
static long
kallsyms(void)
{
    FILE *f = fopen("/proc/kallsyms", "r");
    char line[512];
    long n = 0;
    unsigned long long at;
    for (int i = 0; f && i < 1000 && fgets(line, sizeof(line), f); i++)
        n += sscanf(line, "%llx", &at) == 1 && at != 0;
    return f ? n : -errno;
}

#define A(name) {#name, name}
static const struct attempt attempts[] = {
    A(caps), A(odd_signals), A(core_limit), A(core_raise), A(fd_bomb), A(orphans),
    A(no_new_privs), A(uid), A(groups), A(leaked_fds), A(own_pid_namespace),
    A(loose_mounts),
    A(writable_mounts), A(cgroup_is_root),
    A(unshare_user), A(unshare_net), A(unshare_mount), A(unshare_cgroup), A(setns_own),
    A(clone_newuser), A(clone3_null), A(thread), A(spawn), A(mount_tmpfs), A(mount_bind),
    A(mount_cgroup2), A(mount_cgroup1), A(remount_rw), A(umount_mask), A(fsopen_proc),
    A(open_tree_root), A(mount_setattr_root), A(pivot), A(do_chroot), A(cgroupfs_visible),
    A(ptrace_traceme), A(ptrace_seize_1), A(vm_readv), A(kcmp_1), A(pidfd_getfd_1), A(pid1_environ),
    A(pid1_mem), A(pid1_root), A(pid1_maps), A(pid1_fd), A(kill_pid1), A(keyctl_join),
    A(keyctl_describe), A(add_key_user), A(request_key_user),
    A(io_uring), A(bpf_map), A(perf), A(uffd), A(handle), A(name_handle), A(kexec_load), A(kexec_file),
    A(module_init), A(module_finit), A(module_delete), A(do_reboot), A(do_swapon), A(do_acct),
    A(do_quotactl), A(set_time), A(set_clock), A(adjtimex_read), A(adjtimex_set), A(set_hostname),
    A(set_domain), A(personality_exec), A(personality_aslr), A(read_syslog),
#ifdef __x86_64__
    A(do_iopl), A(do_ioperm), A(int80), A(x32),
#endif
    A(sock_inet), A(sock_unix), A(sock_raw), A(sock_raw6), A(sock_packet), A(sock_vsock), A(sock_alg),
    A(sock_key), A(sock_xdp), A(sock_can), A(sock_tipc), A(sock_rds), A(sock_route), A(sock_netfilter),
    A(other_pairs), A(other_protocols), A(pair_unix), A(aio), A(terminals),
    A(tiocsti), A(tioclinux), A(pty_works),
    A(set_uid_0), A(set_gid_0), A(set_groups_0), A(raise_caps), A(raise_ambient), A(mknod_char),
    A(mknod_block), A(mknod_fifo), A(open_planted_device), A(setuid_binary),
    A(write_core_pattern), A(write_ns_last_pid), A(write_sysrq), A(write_irq), A(write_usr),
    A(write_etc), A(write_passwd), A(write_dev), A(write_sys), A(write_shell), A(write_local),
    A(write_tmp), A(write_secrets), A(write_alloc), A(write_shm), A(write_null), A(dev_mem),
    A(dev_kmsg), A(dev_disk), A(shadow), A(host_root_home), A(host_work), A(parent_of_root),
    A(read_kcore), A(read_keys), A(read_timer_list), A(read_interrupts), A(read_kmsg), A(sys_firmware),
    A(sys_debug), A(sys_tracing), A(sys_bpf), A(sys_cgroup), A(proc_acpi), A(kallsyms),
    A(abstract_canary), A(outside_fd),
};
enum { N_ATTEMPTS = sizeof(attempts) / sizeof(attempts[0]) };

static void
show(const char *name, long r)
{
    if (r >= 0)
        printf("%s %ld\n", name, r);
    else
        printf("%s %s\n", name, strerrorname_np((int)-r) ? strerrorname_np((int)-r) : "E?");
    fflush(stdout);
}

static void
try(const struct attempt *a)
{
    pid_t pid = fork();
    if (pid == 0) {
        show(a->name, a->fn());
        _exit(0);
    }
    int st = 0;
    if (pid < 0 || waitpid(pid, &st, 0) < 0)
        show(a->name, -errno);
    else if (WIFSIGNALED(st))
        printf("%s signal:%d\n", a->name, WTERMSIG(st));
    fflush(stdout);
}

/* All of the table, or those that are named. */
static void
try_all(const struct attempt *a, size_t n, int argc, char **argv)
{
    for (size_t i = 0; i < n; i++) {
        int wanted = argc < 2;
        for (int k = 1; k < argc; k++)
            wanted |= strcmp(argv[k], a[i].name) == 0;
        if (wanted)
            try(&a[i]);
    }
}

int
main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "-exec") == 0) {
        printf("%ld\n", (long)geteuid());
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "-spawned") == 0)
        return 0;
    if (argc == 4 && strcmp(argv[1], "-swap") == 0)
        for (;;) /* it is refused at times: one of them is a mount's place just then */
            if (renameat2(AT_FDCWD, argv[2], AT_FDCWD, argv[3], RENAME_EXCHANGE) < 0)
                (void)poll(NULL, 0, 1);
    try_all(attempts, N_ATTEMPTS, argc, argv);
    try_all(more_attempts, n_more_attempts, argc, argv);
    char host[65] = "";
    gethostname(host, sizeof(host) - 1);
    printf("hostname %s\ndone\n", host);
    return 0;
}
