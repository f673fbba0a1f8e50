/* SPDX-License-Identifier: Apache-2.0
 *
 * What network accounting and policy cost: a datagram of 64 bytes over loopback, sent and received by
 * one process, which meets the programs twice. Workers in cgroups with and without them take turns,
 * so that the noise of the machine hits all. No bar: figures for doc/performance.md.
 *
 * usage: bench/net [ROUNDS]; as root, with a cgroup2 mount.
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

#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "isolation/bpf_net.h"
#include "isolation/cgroup.h"
#include "isolation/netrules.h"

enum { ROUNDS = 200, PACKETS = 2000 };

static const char *const kinds[] = {"no programs", "counted", "counted, cloud metadata denied",
                                    "counted, 64 rules of its own"};
enum { KINDS = 4 };

struct worker {
    pid_t pid;
    int ask, answer;
    double v[ROUNDS];
};

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "bench/net: %s: %s\n", what, why);
    _exit(2);
}

static int
udp_to_self(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof(a);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (void *)&a, sizeof(a)) < 0 || getsockname(fd, (void *)&a, &n) < 0 ||
        connect(fd, (void *)&a, sizeof(a)) < 0)
        die("make a socket", strerror(errno));
    return fd;
}

static _Noreturn void
work(int cgroup, int ask, int answer)
{
    char c, text[64] = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (file_put(cgroup, "cgroup.procs", "0") < 0)
        die("enter a cgroup", strerror(errno));
    int fd = udp_to_self();
    while (read(ask, &c, 1) == 1) {
        int64_t t = clock_mono_ns();
        for (int i = 0; i < PACKETS; i++)
            if (send(fd, text, sizeof(text), 0) < 0 || recv(fd, text, sizeof(text), 0) < 0)
                die("send", strerror(errno));
        t = clock_mono_ns() - t;
        if (write(answer, &t, sizeof(t)) != sizeof(t))
            break;
    }
    _exit(0);
}

static void
start(struct worker *w, int cgroup)
{
    int ask[2], answer[2];
    if (pipe2(ask, O_CLOEXEC) < 0 || pipe2(answer, O_CLOEXEC) < 0)
        die("make a pipe", strerror(errno));
    w->pid = fork();
    if (w->pid == 0) {
        close(ask[1]);
        work(cgroup, ask[0], answer[1]);
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
        netrules_compile(ctx, side, 1, metadata, &e) < 0 || netrules_side(ctx, &p, &side[1], &e) < 0 ||
        netrules_compile(ctx, side, 2, own, &e) < 0)
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

static void
measure(struct worker *w, int rounds)
{
    for (int r = -5; r < rounds; r++)
        for (int k = 0; k < KINDS; k++) {
            int64_t t;
            if (write(w[k].ask, "x", 1) != 1 || read(w[k].answer, &t, sizeof(t)) != sizeof(t))
                die("ask a worker", "it has ended");
            if (r >= 0)
                w[k].v[r] = (double)t / PACKETS;
        }
    double base = 0;
    printf("UDP, 64 bytes, loopback, sent and received; best tenth of %d rounds of %d\n", rounds, PACKETS);
    for (int k = 0; k < KINDS; k++) {
        qsort(w[k].v, (size_t)rounds, sizeof(double), by_value);
        double v = w[k].v[rounds / 10];
        base = k == 0 ? v : base;
        printf("  %-34s %7.0f ns  +%.0f ns  (%.1f %%)\n", kinds[k], v, v - base, (v / base - 1) * 100);
    }
}

int
main(int argc, char **argv)
{
    auto_mem void *ctx = mem_ctx("bench");
    struct cgroup_info info;
    struct err e = ERR_INIT;
    int64_t rounds = ROUNDS;
    if (argc > 1 && (num_parse_i64(argv[1], &rounds) < 0 || rounds < 10 || rounds > ROUNDS))
        die("usage", "bench/net [ROUNDS], 10 to 200");
    if (geteuid() != 0 || cgroup_find(ctx, &info, &e) < 0) {
        printf("SKIP root and cgroup2 are needed\n");
        return 0;
    }
    loopback_up();
    char *path = mem_printf(ctx, "%s/paddock-bench-net-%d", info.mount, (int)getpid());
    char *beside = mem_printf(ctx, "%s-beside", path);
    struct cgroup_root root;
    struct bpf_net net;
    struct netrules metadata, own;
    static struct worker w[KINDS];
    struct cgroup_task leaf[KINDS];
    struct cgroup_plan plan = {0};
    make_rules(ctx, &metadata, &own);
    if (cgroup_root_open(&root, path, true, &e) < 0 || bpf_net_open(&net, root.fd, &e) < 0)
        die("attach the programs", e.text);
    (void)mkdir(beside, 0755);
    auto_fd int beside_fd = open(beside, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int k = 0; k < KINDS; k++) {
        const struct netrules *const rules[] = {NULL, NULL, &metadata, &own};
        char *name = mem_printf(ctx, "task%d", k);
        if (k > 0 && (cgroup_task_make(&root, "alloc", name, &plan, &leaf[k], &e) < 0 ||
                      bpf_net_add(&net, leaf[k].id, rules[k], NULL, true, &e) < 0))
            die("make a task's cgroup", e.text);
        start(&w[k], k == 0 ? beside_fd : leaf[k].task_fd);
    }
    measure(w, (int)rounds);
    for (int k = 0; k < KINDS; k++) {
        (void)kill(w[k].pid, SIGKILL);
        (void)waitpid(w[k].pid, NULL, 0);
        if (k == 0)
            continue;
        bpf_net_remove(&net, leaf[k].id);
        cgroup_task_close(&leaf[k]);
        if (cgroup_task_remove(&root, "alloc", mem_printf(ctx, "task%d", k), &e) < 0)
            die("remove a cgroup", e.text);
    }
    bpf_net_close(&net);
    cgroup_root_close(&root);
    return rmdir(path) < 0 || rmdir(beside) < 0;
}
