/* SPDX-License-Identifier: Apache-2.0
 *
 * Attempts beyond the list of 58: what an attacker thinks of who has read it. Their numbers are
 * B1... in expect.h. Each as in attempt.c.
 */
#include "tests/attempts/attempt.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/if.h>
#include <linux/landlock.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

static long
put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 ? -errno : ret(write(fd, text, strlen(text)));
}

static int
own_file(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
}

/* --- B1: what one may do to oneself leads nowhere --- */

/* A program without a name is as confined as one with a name: its effective uid less ours. */
static long
memfd_exec(void)
{
    int m = memfd_create("x", 0), from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), p[2], st;
    if (m < 0 || from < 0 || pipe(p) < 0)
        return -errno;
    while (sendfile(m, from, NULL, 1 << 20) > 0)
        ;
    if (fchmod(m, 06755) < 0 && fchmod(m, 0755) < 0) /* where raw_exec is on, the first is denied */
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        char *argv[] = {(char *)"attempt", (char *)"-exec", NULL};
        dup2(p[1], 1);
        fexecve(m, argv, argv + 2);
        _exit(errno);
    }
    char b[32] = "";
    close(p[1]);
    ssize_t n = read(p[0], b, sizeof(b) - 1);
    waitpid(pid, &st, 0);
    long euid;
    if (n > 0 && sscanf(b, "%ld", &euid) == 1)
        return labs(euid - (long)geteuid());
    return -(WEXITSTATUS(st) ? WEXITSTATUS(st) : EPROTO);
}
static long
set_exe(void)
{
    return ret(prctl(PR_SET_MM, PR_SET_MM_EXE_FILE, open("/bin/sh", O_RDONLY | O_CLOEXEC), 0, 0));
}
static long
securebits(void)
{
    return ret(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
}
static long
privs_again(void)
{
    return ret(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
}
static long
uid_map(void)
{
    return put("/proc/self/uid_map", "0 0 1");
}
static long
gid_map(void)
{
    return put("/proc/self/gid_map", "0 0 1");
}
static long
own_setgroups(void)
{
    return put("/proc/self/setgroups", "allow");
}
static long
oom_immune(void)
{
    return put("/proc/self/oom_score_adj", "-1000");
}
static long
real_time(void)
{
    return ret(sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}));
}
static long
nicer(void)
{
    return ret(setpriority(PRIO_PROCESS, 0, -5));
}
static long
io_real_time(void)
{
    return CALL(SYS_ioprio_set, 1, 0, 1 << 13);
}
static long
lock_all(void)
{
    return ret(
        mlock(mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 64 << 20));
}
static long
big_pipe(void)
{
    int p[2];
    return pipe(p) < 0 ? -errno : ret(fcntl(p[1], F_SETPIPE_SZ, 256 << 20));
}

/* --- B2: pid 1, which is the shim, by other calls than ptrace --- */

static int
pidfd(void)
{
    return (int)CALL(SYS_pidfd_open, 1, 0);
}
static long
pidfd_kill(void)
{
    return CALL(SYS_pidfd_send_signal, pidfd(), SIGKILL, NULL, 0);
}
static long
stop_pid1(void)
{
    return ret(kill(1, SIGSTOP));
}
static long
queue_pid1(void)
{
    return CALL(SYS_rt_sigqueueinfo, 1, SIGTERM, &(siginfo_t){.si_code = SI_QUEUE});
}
static long
tgkill_pid1(void)
{
    return CALL(SYS_tgkill, 1, 1, SIGKILL);
}
static long
limit_pid1(void)
{
    return ret(prlimit(1, RLIMIT_NOFILE, &(struct rlimit){0, 0}, NULL));
}
/* Each of the sixteen: processor time ends it, a size of files its records, and so on. */
static long
limits_pid1(void)
{
    long best = -EPERM;
    for (int i = 0; i < (int)RLIM_NLIMITS; i++) {
        struct rlimit l;
        long r = ret(prlimit((pid_t)1, (enum __rlimit_resource)i, NULL, &l));
        if (r == 0)
            r = ret(prlimit((pid_t)1, (enum __rlimit_resource)i, &l, NULL));
        best = r == -EPERM ? best : r;
    }
    return best;
}
static long
nice_pid1(void)
{
    return ret(setpriority(PRIO_PROCESS, 1, 19));
}
static long
nice_group_pid1(void)
{
    return ret(setpriority(PRIO_PGRP, 1, 19));
}
static long
batch_pid1(void)
{
    const struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } a = {.size = sizeof(a), .policy = SCHED_BATCH, .nice = 19};
    return CALL(SYS_sched_setattr, 1, &a, 0);
}
static long
affinity_pid1(void)
{
    cpu_set_t s;
    CPU_ZERO(&s);
    CPU_SET(0, &s);
    return ret(sched_setaffinity(1, sizeof(s), &s));
}
static long
idle_pid1(void)
{
    return ret(sched_setscheduler(1, SCHED_IDLE, &(struct sched_param){0}));
}
static long
ioprio_pid1(void)
{
    return CALL(SYS_ioprio_set, 1, 1, 3 << 13);
}
static long
vm_write_pid1(void)
{
    struct iovec {
        void *b;
        size_t n;
    } from = {(char[1]){0}, 1}, to = {(void *)0x10000, 1};
    return CALL(SYS_process_vm_writev, 1, &from, 1, &to, 1, 0);
}
static long
move_group_pid1(void)
{
    return ret(setpgid(1, 0));
}
static long
robust_list_pid1(void)
{
    void *head;
    size_t n;
    return CALL(SYS_get_robust_list, 1, &head, &n);
}
static long
madvise_pid1(void)
{
    struct iovec {
        void *b;
        size_t n;
    } v = {(void *)0x10000, 4096};
    return CALL(SYS_process_madvise, pidfd(), &v, 1, 20 /* MADV_COLD */, 0);
}
static long
mrelease_pid1(void)
{
    return CALL(SYS_process_mrelease, pidfd(), 0);
}
static long
pid1_exe(void)
{
    return open_of("/proc/1/exe", O_RDONLY);
}
static long
pid1_exe_write(void)
{
    return open_of("/proc/1/exe", O_WRONLY);
}
static long
pid1_cwd(void)
{
    return open_of("/proc/1/cwd", O_RDONLY | O_DIRECTORY);
}
static long
pid1_ns(void)
{
    return open_of("/proc/1/ns/mnt", O_RDONLY);
}
static long
pid1_files(void)
{
    return open_of("/proc/1/map_files", O_RDONLY | O_DIRECTORY);
}
static long
pid1_pagemap(void)
{
    return open_of("/proc/1/pagemap", O_RDONLY);
}
static long
pid1_task_mem(void)
{
    return open_of("/proc/1/task/1/mem", O_RDWR);
}
static long
pid1_oom(void)
{
    return put("/proc/1/oom_score_adj", "1000");
}
static long
pid1_oom_of_thread(void)
{
    return put("/proc/1/task/1/oom_score_adj", "1000");
}
static long
pid1_autogroup(void)
{
    return put("/proc/1/autogroup", "19");
}
static long
pid1_slack(void)
{
    return put("/proc/1/timerslack_ns", "1000000000");
}
static long
pid1_name(void)
{
    return put("/proc/1/comm", "x");
}
/* The namespaces of a process by its pidfd, without /proc (6.11). */
static long
pidfd_namespaces(void)
{
    int fd = pidfd();
    long best = fd < 0 ? -errno : -ENOTTY;
    for (int nr = 1; fd >= 0 && nr <= 10; nr++) {
        int r = ioctl(fd, _IO(0xff, nr), 0);
        best = r >= 0 ? 0 : errno != ENOTTY && best < 0 ? -errno : best;
    }
    return best;
}
/* Up from our own namespaces: to the user namespace above. */
static long
parent_userns(void)
{
    int fd = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : ret(ioctl(fd, NS_GET_PARENT));
}
static long
parent_pidns(void)
{
    int fd = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : ret(ioctl(fd, NS_GET_PARENT));
}
static long
list_mounts(void)
{
    return CALL(458 /* listmount */, NULL, NULL, 0, 0);
}

/* --- B3: inodes that are the host's as well --- */

static long
link_host_file(void)
{
    unlink("/local/linked");
    return ret(link("/usr/bin/env", "/local/linked"));
}
static long
host_file_times(void)
{
    return ret(utimensat(AT_FDCWD, "/usr/bin/env", NULL, 0));
}
static long
host_file_mode(void)
{
    return ret(chmod("/usr/bin/env", 0777));
}
/* Tells the kind of a task's standard input. */
static long
stdin_mode(void)
{
    struct stat st;
    return fstat(0, &st) < 0 ? -errno : ret(fchmod(0, st.st_mode & 07777));
}
static long
host_file_owner(void)
{
    return ret(chown("/usr/bin/env", getuid(), getgid()));
}
static long
host_file_attr(void)
{
    return ret(setxattr("/usr/bin/env", "user.x", "y", 1, 0));
}
static long
lease_on_host_file(void)
{
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : ret(fcntl(fd, F_SETLEASE, F_RDLCK));
}
/* The page cache of a file that may be read: through a pipe, and through a private mapping. */
static long
spliced_page(void)
{
    int p[2], fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
    char a, b;
    loff_t at = 1;
    if (fd < 0 || pipe(p) < 0 || pread(fd, &a, 1, 2) != 1 ||
        splice(fd, &at, p[1], NULL, 1, 0) != 1 || write(p[1], "Z", 1) != 1)
        return -errno;
    return pread(fd, &b, 1, 2) != 1 ? -errno : a != b;
}
static long
private_page(void)
{
    int fd = open("/usr/bin/env", O_RDONLY | O_CLOEXEC),
        mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    char *m = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0), a, b;
    if (fd < 0 || m == MAP_FAILED || pread(fd, &a, 1, 2) != 1)
        return -errno;
    if (mem >= 0 && pwrite(mem, "Z", 1, (off_t)(uintptr_t)(m + 2)) < 0)
        return -errno;
    return pread(fd, &b, 1, 2) != 1 ? -errno : a != b;
}
static long
shared_page(void)
{
    return mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, open("/usr/bin/env", O_RDONLY | O_CLOEXEC),
                0) == MAP_FAILED
               ? -errno
               : 0;
}
static long
watch_host_file(void)
{
    return ret(inotify_add_watch(inotify_init1(IN_CLOEXEC), "/usr/bin/env", IN_OPEN)) > 0 ? 0
                                                                                          : -errno;
}
static long
fanotify(void)
{
    return CALL(SYS_fanotify_init, 0, O_RDONLY);
}
static long
fanotify_report(void)
{
    return CALL(SYS_fanotify_init, 0x200 /* FID, allowed without privilege */, O_RDONLY);
}

/* --- B4: what a file of one's own may be made into --- */

static long
file_ioctl(unsigned long request, unsigned long flags)
{
    int fd = own_file("/local/flags");
    return fd < 0 ? -errno : ret(ioctl(fd, request, &flags));
}
static long
make_immutable(void)
{
    return file_ioctl(FS_IOC_SETFLAGS, FS_IMMUTABLE_FL);
}
static long
make_append_only(void)
{
    return file_ioctl(FS_IOC_SETFLAGS, FS_APPEND_FL);
}
/* A19: out of the project that has the allocation's limit on disk, by number, by what is made in a
 * directory, and by the call that came with Linux 6.17. */
static long
leave_project(void)
{
    struct fsxattr a = {0};
    int fd = own_file("/local/flags");
    return fd < 0 ? -errno : ret(ioctl(fd, FS_IOC_FSSETXATTR, &a));
}
static long
leave_project_by_flag(void)
{
    unsigned long flags = 0;
    int fd = open("/local", O_RDONLY | O_DIRECTORY);
    return fd < 0 ? -errno : ret(ioctl(fd, FS_IOC_SETFLAGS, &flags));
}
static long
leave_project_by_call(void)
{
    const char attr[24] = {0};
    return CALL(469 /* file_setattr */, AT_FDCWD, "/local", attr, sizeof(attr), 0);
}
static long
freeze_fs(void)
{
    return file_ioctl(FIFREEZE, 0);
}
static long
shut_fs_down(void)
{
    long r = file_ioctl(_IOR('X', 125, unsigned), 2);
    return r == -ENOTTY ? -EPERM : r; /* a file system that knows no such thing, as tmpfs */
}
static long
file_caps(void)
{
    const unsigned v[] = {0x02000001, 1u << 21, 1u << 21, 0, 0}; /* CAP_SYS_ADMIN, effective */
    close(own_file("/local/caps"));
    return ret(setxattr("/local/caps", "security.capability", v, sizeof(v), 0));
}
static long
trusted_attr(void)
{
    close(own_file("/local/caps"));
    return ret(setxattr("/local/caps", "trusted.x", "y", 1, 0));
}
static long
give_away(void)
{
    close(own_file("/local/given"));
    return ret(chown("/local/given", getuid() == 0 ? 12345 : 0, (gid_t)-1));
}

/* --- B5: the network that is the host's --- */

static int
udp(void)
{
    return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}
static long
opt(int level, int name)
{
    int one = 1;
    return ret(
        setsockopt(level == IPPROTO_TCP ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : udp(),
                   level, name, &one, sizeof(one)));
}
static long
sock_mark(void)
{
    return opt(SOL_SOCKET, SO_MARK);
}
static long
sock_buffer(void)
{
    return opt(SOL_SOCKET, SO_RCVBUFFORCE);
}
static long
sock_priority(void)
{
    return ret(setsockopt(udp(), SOL_SOCKET, SO_PRIORITY, &(int){7}, sizeof(int)));
}
static long
sock_transparent(void)
{
    return opt(IPPROTO_IP, IP_TRANSPARENT);
}
static long
sock_repair(void)
{
    return opt(IPPROTO_TCP, TCP_REPAIR);
}
static long
iptables(void)
{
    return ret(setsockopt(udp(), IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, "", 0));
}
static long
low_port(void)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(81), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return ret(bind(udp(), (void *)&a, sizeof(a)));
}
static long
loopback_down(void)
{
    struct ifreq r = {.ifr_name = "lo", .ifr_flags = 0};
    return ret(ioctl(udp(), SIOCSIFFLAGS, &r));
}
/* A route message that changes a link; the kernel's answer. */
static long
new_link(void)
{
    struct {
        struct nlmsghdr h;
        struct ifinfomsg i;
    } m = {.h = {.nlmsg_len = sizeof(m),
                 .nlmsg_type = RTM_NEWLINK,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
           .i = {.ifi_index = 1, .ifi_change = IFF_UP}};
    struct {
        struct nlmsghdr h;
        struct nlmsgerr e;
        char rest[256];
    } got;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0 || send(fd, &m, sizeof(m), 0) < 0 || recv(fd, &got, sizeof(got), 0) < 0)
        return -errno;
    return got.e.error;
}

/* --- B6: IPC, devices, and boxes in the box --- */

/* Objects of System V that are seen: the host's would be. The test makes one there. */
static long
sysv_seen(void)
{
    struct shm_info i;
    return shmctl(0, SHM_INFO, (void *)&i) < 0 ? -errno : i.used_ids;
}
static long
queue_of_host(void) /* the test makes it on the host */
{
    return ret(mq_open("/paddock-attempt-canary", O_RDONLY)) >= 0 ? 0 : -errno;
}
static long
other_devices(void)
{
    static const char *const v[] = {
        "/dev/fuse",     "/dev/net/tun",     "/dev/kvm",          "/dev/vhost-net",
        "/dev/vsock",    "/dev/userfaultfd", "/dev/loop-control", "/dev/mapper/control",
        "/dev/hpet",     "/dev/uinput",      "/dev/port",         "/dev/kmem",
        "/dev/cuse",     "/dev/snapshot",    "/dev/console",      "/dev/tty1",
        "/dev/watchdog", "/dev/mqueue",      "/dev/hugepages"};
    long n = 0;
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++)
        n += open_of(v[i], O_RDONLY) != -ENOENT;
    return n;
}
/* Sockets of the host by path: none is there. */
static long
host_sockets(void)
{
    static const char *const v[] = {
        "/run/paddock/warden.sock", "/run/dbus/system_bus_socket",     "/var/run/docker.sock",
        "/run/docker.sock",         "/run/containerd/containerd.sock", "/run/systemd/private",
        "/run/systemd/notify",      "/run/systemd/journal/socket"};
    long n = 0;
    for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        strcpy(a.sun_path, v[i]);
        int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        n += connect(fd, (void *)&a, sizeof(a)) == 0 || errno != ENOENT;
        close(fd);
    }
    return n;
}
/* A filter of our own that lets everything pass adds to the one we have; a listener hears us only.
 */
static long
own_filter(unsigned flags)
{
    struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    struct sock_fprog p = {1, &allow};
    long r = CALL(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p);
    return r < 0 ? r : CALL(SYS_keyctl, 1, NULL);
}
static long
filter_over_filter(void)
{
    return own_filter(0);
}
static long
filter_listener(void)
{
    return own_filter(SECCOMP_FILTER_FLAG_NEW_LISTENER);
}
/* A Landlock domain of our own may not give back what ours took. */
static long
landlock_more(void)
{
    struct landlock_ruleset_attr a = {.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE};
    int fd = (int)CALL(SYS_landlock_create_ruleset, &a, sizeof(a), 0);
    if (fd < 0)
        return -errno;
    struct landlock_path_beneath_attr b = {.allowed_access = a.handled_access_fs,
                                           .parent_fd = open("/", O_PATH | O_CLOEXEC)};
    if (CALL(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &b, 0) < 0 ||
        CALL(SYS_landlock_restrict_self, fd, 0) < 0)
        return -errno;
    return open_of("/usr/owned", O_WRONLY | O_CREAT);
}
static long
max_userns(void)
{
    return open_of("/proc/sys/user/max_user_namespaces", O_WRONLY);
}
/* Room on what is kept in memory is bounded; 2 GiB never fit. Bytes of /dev/shm and /secrets, in
 * MiB. */
static long
fill(const char *path)
{
    static char block[1 << 20];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ssize_t n = 0;
    if (fd < 0)
        return -errno;
    for (int i = 0; i < 2048 && (n = write(fd, block, sizeof(block))) > 0; i++)
        ;
    long r = n < 0 ? -errno : 0;
    unlink(path);
    return r;
}
static long
fill_shm(void)
{
    return fill("/dev/shm/full");
}
static long
fill_secrets(void)
{
    return fill("/secrets/full");
}
/* ... and so are inodes there. */
static long
inodes(const char *dir)
{
    char path[64];
    long r = 0, n = 0;
    for (; n < 2000000; n++) {
        snprintf(path, sizeof(path), "%s/i%ld", dir, n);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0) {
            r = -errno;
            break;
        }
        close(fd);
    }
    while (n-- > 0) {
        snprintf(path, sizeof(path), "%s/i%ld", dir, n);
        unlink(path);
    }
    return r;
}
static long
inodes_secrets(void)
{
    return inodes("/secrets");
}

#define A(name)                                                                                    \
    {                                                                                              \
#name, name                                                                                \
    }
const struct attempt more_attempts[] = {
    A(memfd_exec),       A(set_exe),         A(securebits),         A(privs_again),
    A(uid_map),          A(gid_map),         A(own_setgroups),      A(oom_immune),
    A(real_time),        A(nicer),           A(io_real_time),       A(lock_all),
    A(big_pipe),         A(pidfd_kill),      A(stop_pid1),          A(queue_pid1),
    A(tgkill_pid1),      A(limit_pid1),      A(limits_pid1),        A(nice_pid1),
    A(nice_group_pid1),  A(batch_pid1),      A(affinity_pid1),      A(idle_pid1),
    A(ioprio_pid1),      A(vm_write_pid1),   A(move_group_pid1),    A(robust_list_pid1),
    A(madvise_pid1),     A(mrelease_pid1),   A(pid1_exe),           A(pid1_exe_write),
    A(pid1_cwd),         A(pid1_ns),         A(pid1_files),         A(pid1_pagemap),
    A(pid1_task_mem),    A(pid1_oom),        A(pid1_oom_of_thread), A(pid1_autogroup),
    A(pid1_slack),       A(pid1_name),       A(pidfd_namespaces),   A(parent_userns),
    A(parent_pidns),     A(list_mounts),     A(link_host_file),     A(host_file_times),
    A(host_file_mode),   A(stdin_mode), A(host_file_owner), A(host_file_attr),     A(lease_on_host_file),
    A(spliced_page),     A(private_page),    A(shared_page),        A(watch_host_file),
    A(fanotify),         A(fanotify_report), A(make_immutable),     A(make_append_only),
    A(freeze_fs),        A(shut_fs_down),    A(file_caps),          A(trusted_attr),
    A(give_away),        A(sock_mark),       A(sock_buffer),        A(sock_priority),
    A(sock_transparent), A(sock_repair),     A(iptables),           A(low_port),
    A(loopback_down),    A(new_link),        A(sysv_seen),          A(queue_of_host),
    A(other_devices),    A(host_sockets),    A(filter_over_filter), A(filter_listener),
    A(landlock_more),    A(max_userns),      A(fill_shm),           A(fill_secrets),
    A(inodes_secrets),   A(leave_project),   A(leave_project_by_flag), A(leave_project_by_call),
};
const size_t n_more_attempts = sizeof(more_attempts) / sizeof(more_attempts[0]);
