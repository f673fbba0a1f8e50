/* SPDX-License-Identifier: Apache-2.0
 *
 * What accounting and policy by BPF cost. Network: a datagram of 64 bytes over loopback, sent and
 * received by one process, which meets the programs twice. Scheduler: two processes on one
 * processor that wake each other. Workers in cgroups with and without the programs take turns, so
 * that the noise of the machine hits all. Disks are too noisy for that: what the program takes for
 * a request of 4 KiB is read from the kernel's own measure (bpf_stats_enabled), which is in it,
 * some 20 ns. No bar: figures for doc/performance.md.
 *
 * usage: bench/bpf [ROUNDS]; as root, with a cgroup2 mount.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/bpf/net.h"
#include "isolation/bpf/netrules.h"
#include "isolation/bpf/rows.h"
#include "isolation/bpf/sys.h"
#include "isolation/cgroup/cgroup.h"

enum { ROUNDS = 200, KINDS_MAX = 4 };

struct worker {
    pid_t pid;
    int ask, answer;
    double v[ROUNDS];
};

/* One comparison: a worker per kind; the last `tasks` kinds run in the cgroup of a task. */
struct series {
    const char *title;
    const char *kinds[KINDS_MAX];
    int n, tasks;
    int turns;             /* in one round */
    double per_turn;       /* of what is counted */
    bool switches;         /* the scheduler's programs are there but for the first kind */
    void (*prepare)(void); /* in the worker */
    void (*turn)(void);
    struct worker w[KINDS_MAX];
    struct cgroup_task leaf[KINDS_MAX];
};

struct bench {
    void *ctx;
    struct cgroup_root root;
    int beside; /* a cgroup that the programs know nothing of */
    struct bpf_net net;
    struct bpf_rows run, block;
    const struct netrules *rules[KINDS_MAX];
};

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "bench/bpf: %s: %s\n", what, why);
    _exit(2);
}

/* --- the work --- */

static int udp = -1;

static void
udp_to_self(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof(a);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (udp < 0 || bind(udp, (void *)&a, sizeof(a)) < 0 || getsockname(udp, (void *)&a, &n) < 0 ||
        connect(udp, (void *)&a, sizeof(a)) < 0)
        die("make a socket", strerror(errno));
}

static void
send_to_self(void)
{
    char text[64] = {0};
    if (send(udp, text, sizeof(text), 0) < 0 || recv(udp, text, sizeof(text), 0) < 0)
        die("send", strerror(errno));
}

static int to_peer[2], from_peer[2];

static void
make_peer(void)
{
    char c;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (sched_setaffinity(0, sizeof(one), &one) < 0 || pipe2(to_peer, O_CLOEXEC) < 0 ||
        pipe2(from_peer, O_CLOEXEC) < 0)
        die("make a peer", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        die("make a peer", strerror(errno));
    if (pid > 0)
        return;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (read(to_peer[0], &c, 1) == 1 && write(from_peer[1], &c, 1) == 1)
        ;
    _exit(0);
}

static void
wake_each_other(void)
{
    char c = 0;
    if (write(to_peer[1], &c, 1) != 1 || read(from_peer[0], &c, 1) != 1)
        die("wake the peer", strerror(errno));
}

static _Noreturn void
work(const struct series *s, int cgroup, int ask, int answer)
{
    char c;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (file_put(cgroup, "cgroup.procs", "0") < 0)
        die("enter a cgroup", strerror(errno));
    s->prepare();
    while (read(ask, &c, 1) == 1) {
        int64_t t = clock_mono_ns();
        for (int i = 0; i < s->turns; i++)
            s->turn();
        t = clock_mono_ns() - t;
        if (write(answer, &t, sizeof(t)) != sizeof(t))
            break;
    }
    _exit(0);
}

/* --- the measuring --- */

static void
start(const struct series *s, struct worker *w, int cgroup)
{
    int ask[2], answer[2];
    if (pipe2(ask, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
        die("make a pipe", strerror(errno));
    w->pid = fork();
    if (w->pid == 0) {
        close(ask[1]);
        work(s, cgroup, ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    w->ask = ask[1];
    w->answer = answer[0];
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void
make_rules(const void *ctx, struct netrules *metadata, struct netrules *own)
{
    struct netrules_side side[2];
    struct net_policy p = {0};
    struct err e = ERR_INIT;
    list_add(ctx, p.allow, "127.0.0.0/8");
    for (int i = 0; i < 63; i++)
        list_add(ctx, p.allow, mem_printf(ctx, "127.0.0.%d:%d/udp", i + 2, i + 1000));
    if (netrules_side(ctx, netrules_metadata(), &side[0], &e) < 0 ||
        netrules_compile(ctx, side, 1, metadata, &e) < 0 ||
        netrules_side(ctx, &p, &side[1], &e) < 0 || netrules_compile(ctx, side, 2, own, &e) < 0)
        die("compile rules", e.text);
}

static void
loopback_up(void)
{
    struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (unshare(CLONE_NEWNET) < 0)
        die("make a network namespace", strerror(errno));
    fd_close(&fd);
    fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &q) < 0)
        die("set lo up", strerror(errno));
}

/* The scheduler's programs see every process of the machine: they are taken away for the first
 * kind. */
static void
count_switches(struct bench *b, const struct series *s, bool on)
{
    struct err e = ERR_INIT;
    if (!on) {
        bpf_rows_close(&b->run);
        return;
    }
    if (b->run.rows == NULL && bpf_rows_open(&b->run, &bpf_rows_run, b->root.fd, &e) < 0)
        die("attach the programs", e.text);
    for (int k = s->n - s->tasks; k < s->n; k++)
        (void)bpf_rows_add(&b->run, s->leaf[k].id);
}

static void
start_all(struct bench *b, struct series *s)
{
    const struct bpf_devices none = {NULL, 0};
    struct err e = ERR_INIT;
    for (int k = 0; k < s->n; k++) {
        struct cgroup_task *t = &s->leaf[k];
        bool task = k >= s->n - s->tasks;
        if (task && (cgroup_shim_make(&b->root, "alloc", s->kinds[k], t, &e) < 0 ||
                     cgroup_task_make(&b->root, "alloc", s->kinds[k], t, &e) < 0 ||
                     bpf_net_add(&b->net, t->id, b->rules[k], NULL, &none, &e) < 0))
            die("make a task's cgroup", e.text);
        start(s, &s->w[k], task ? t->task_fd : b->beside);
    }
}

static void
stop_all(struct bench *b, struct series *s)
{
    struct err e = ERR_INIT;
    for (int k = 0; k < s->n; k++) {
        (void)kill(s->w[k].pid, SIGKILL);
        (void)waitpid(s->w[k].pid, NULL, 0);
        if (k < s->n - s->tasks)
            continue;
        bpf_net_remove(&b->net, s->leaf[k].id);
        (void)file_put(s->leaf[k].task_fd, "cgroup.kill", "1");
        cgroup_task_close(&s->leaf[k]);
        while (cgroup_task_remove(&b->root, "alloc", s->kinds[k], &e) == -EBUSY)
            (void)sched_yield(); /* the peer is on its way out */
    }
    bpf_rows_close(&b->run);
}

static void
measure(struct bench *b, struct series *s, int rounds)
{
    start_all(b, s);
    for (int r = -5; r < rounds; r++)
        for (int k = 0; k < s->n; k++) {
            int64_t t;
            struct worker *w = &s->w[k];
            if (s->switches)
                count_switches(b, s, k > 0);
            if (write(w->ask, "x", 1) != 1 || read(w->answer, &t, sizeof(t)) != sizeof(t))
                die("ask a worker", "it has ended");
            if (r >= 0)
                w->v[r] = (double)t / s->turns / s->per_turn;
        }
    double base = 0;
    printf("%s; best tenth of %d rounds of %d\n", s->title, rounds, s->turns);
    for (int k = 0; k < s->n; k++) {
        double *v = s->w[k].v;
        qsort(v, (size_t)rounds, sizeof(double), by_value);
        double x = v[rounds / 10];
        base = k == 0 ? x : base;
        printf("  %-30s %7.0f ns  +%.0f ns  (%.1f %%)\n", s->kinds[k], x, x - base,
               (x / base - 1) * 100);
    }
    stop_all(b, s);
}

static struct series packets = {
    .title = "UDP, 64 bytes, loopback, sent and received",
    .kinds = {"no programs", "counted", "metadata denied", "64 rules of its own"},
    .n = 4,
    .tasks = 3,
    .turns = 2000,
    .per_turn = 1,
    .prepare = udp_to_self,
    .turn = send_to_self,
};
static struct series switches = {
    .title = "context switches of two processes over pipes",
    .kinds = {"no programs", "not a task", "counted"},
    .n = 3,
    .tasks = 1,
    .turns = 2000,
    .per_turn = 2,
    .switches = true,
    .prepare = make_peer,
    .turn = wake_each_other,
};

/* --- disks --- */

enum { DISK_BLOCK = 4096, DISK_BLOCKS = 4096, DISK_READS = 20000 };

struct spent {
    unsigned long long ns, runs;
};

/* A number of a line of /proc/self/fdinfo, as the kernel shows programs and links. */
static unsigned long long
fd_number(int fd, const char *key)
{
    auto_mem void *ctx = mem_ctx("fdinfo");
    char *text = NULL;
    unsigned long long v;
    const char *path = mem_printf(ctx, "/proc/self/fdinfo/%d", fd);
    if (file_read(ctx, AT_FDCWD, path, 4096, &text, NULL) < 0)
        die("look at a program", "no fdinfo");
    const char *at = strstr(text, key);
    if (at == NULL || sscanf(at + strlen(key), ": %llu", &v) != 1)
        die("look at a program", key);
    return v;
}

static struct spent
spent_by(int link)
{
    auto_fd int prog = bpf_prog_by_id((uint32_t)fd_number(link, "prog_id"));
    return (struct spent){fd_number(prog, "run_time_ns"), fd_number(prog, "run_cnt")};
}

static _Noreturn void
read_past_cache(const char *group, const char *path)
{
    void *p = NULL;
    if (file_put(AT_FDCWD, group, "0") < 0 || posix_memalign(&p, DISK_BLOCK, DISK_BLOCK) != 0)
        die("enter a group", strerror(errno));
    int fd = open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
    if (fd < 0)
        die(path, strerror(errno));
    (void)unlink(path);
    for (off_t i = 0; i < DISK_BLOCKS; i++)
        if (pwrite(fd, p, DISK_BLOCK, i * DISK_BLOCK) != DISK_BLOCK)
            die("write", strerror(errno));
    for (int i = 0; i < DISK_READS; i++)
        if (pread(fd, p, DISK_BLOCK, (i * 1237 % DISK_BLOCKS) * (off_t)DISK_BLOCK) != DISK_BLOCK)
            die("read", strerror(errno));
    _exit(0);
}

/* The group is of version 1 where disks know those (wardens attach nothing there). */
static void
measure_disk(struct bench *b, const char *tasks)
{
    static const char stats[] = "/proc/sys/kernel/bpf_stats_enabled";
    struct err e = ERR_INIT;
    struct stat st;
    bool v2 = (b->root.controllers & CGROUP_IO) != 0;
    char *group = v2 ? mem_printf(b->ctx, "%s/disk", tasks)
                     : mem_printf(b->ctx, "/sys/fs/cgroup/blkio/paddock-bench-%d", (int)getpid());
    char *procs = mem_printf(b->ctx, "%s/cgroup.procs", group);
    char *path = mem_printf(b->ctx, "bench-disk.%d", (int)getpid());
    if (mkdir(group, 0755) < 0 || stat(group, &st) < 0 || file_put(AT_FDCWD, stats, "1") < 0) {
        printf("SKIP disks: the io controller, or the kernel's measure of programs, is missing\n");
        return;
    }
    if (bpf_rows_open(&b->block, &bpf_rows_block, b->root.fd, &e) < 0)
        die("attach the program", e.text);
    printf("requests of 4 KiB, one at a time; what the program takes for each\n");
    for (int k = 0; k < 2; k++) {
        if (k == 1)
            (void)bpf_rows_add(&b->block, st.st_ino);
        struct spent before = spent_by(b->block.links[0]);
        pid_t pid = fork();
        if (pid == 0)
            read_past_cache(procs, path);
        (void)waitpid(pid, NULL, 0);
        struct spent after = spent_by(b->block.links[0]);
        printf("  %-30s %7.0f ns  (%llu requests)\n", k == 0 ? "not a task" : "counted",
               (double)(after.ns - before.ns) / (double)(after.runs - before.runs),
               after.runs - before.runs);
    }
    (void)file_put(AT_FDCWD, stats, "0");
    bpf_rows_close(&b->block);
    (void)rmdir(group);
}

int
main(int argc, char **argv)
{
    auto_mem void *ctx = mem_ctx("bench");
    struct cgroup_info info;
    struct err e = ERR_INIT;
    struct netrules metadata, own;
    struct bench b = {.ctx = ctx, .run = BPF_ROWS_NONE, .block = BPF_ROWS_NONE};
    int64_t rounds = ROUNDS;
    if (argc > 1 && (num_parse_i64(argv[1], &rounds) < 0 || rounds < 10 || rounds > ROUNDS))
        die("usage", "bench/bpf [ROUNDS], 10 to 200");
    if (geteuid() != 0 || cgroup_find(ctx, &info, &e) < 0) {
        printf("SKIP root and cgroup2 are needed\n");
        return 0;
    }
    loopback_up();
    char *path = mem_printf(ctx, "%s/paddock-bench-bpf-%d", info.mount, (int)getpid());
    char *beside = mem_printf(ctx, "%s-beside", path);
    make_rules(ctx, &metadata, &own);
    b.rules[2] = &metadata;
    b.rules[3] = &own;
    if (cgroup_root_open(&b.root, path, true, &e) < 0 || bpf_net_open(&b.net, b.root.fd, &e) < 0)
        die("attach the programs", e.text);
    (void)mkdir(beside, 0755);
    b.beside = open(beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    measure(&b, &packets, (int)rounds);
    b.rules[2] = NULL;
    measure(&b, &switches, (int)rounds);
    measure_disk(&b, path);
    bpf_net_close(&b.net);
    fd_close(&b.beside);
    cgroup_root_close(&b.root);
    return rmdir(path) < 0 || rmdir(beside) < 0;
}
