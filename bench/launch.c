/* SPDX-License-Identifier: Apache-2.0
 *
 * exec launches through warden and shim against a bare vfork+exec of the same static program,
 * interleaved in one session, so that the noise of the machine hits both. Two figures each: until
 * the payload runs (answer of the launch; return of vfork), and until it has ended and is reaped.
 * The bars are on the second: p50 of the host's network <= 7 times; of a network namespace that was
 * made ahead of time (mode none) <= 8, the request that takes it being like the one for the
 * allocation's directories: before, and shown apart; on the bridge with one mapped port <= 25, with
 * all that it takes.
 *
 * It runs in a network namespace of its own: the machine's is not touched.
 *
 * usage: bench/launch [LAUNCHES [PAUSE_MS]]; as root, with a cgroup2 mount.
 */
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup.h"
#include "isolation/policy.h"
#include "isolation/proc.h"
#include "isolation/supervisor.h"
#include "isolation/warden_client.h"

#define ALLOC "01234567-89ab-cdef-0123-456789abcdef"
enum { LAUNCHES = 400, LAUNCHES_MAX = 100000, WARM_UP = 20 };

struct bench {
    void *ctx;
    char dir[64];
    struct policy policy;
    struct warden_client *client;
    struct launch_spec *spec;
    pid_t warden;
    char *noop;
    int pidfd;
    int64_t launch_ns;
    bool failed;
};

struct series {
    double v[LAUNCHES_MAX];
    size_t n;
};
static struct series bare_run, bare_end;
static struct kind {
    const char *mode;
    double bar;
    struct series launch_run, launch_end, plan_run, plan_end, net;
} kinds[] = {{.mode = "host", .bar = 7}, {.mode = "none", .bar = 8}, {.mode = "bridge", .bar = 25}};

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "bench/launch: %s: %s\n", what, why);
    _exit(2);
}

static void
need(int rc, const char *what, const struct err *e)
{
    if (rc < 0)
        die(what, e != NULL && e->text[0] != '\0' ? e->text : err_name(rc));
}

static void
answered(void *arg, const struct err *e, struct warden_reply *r)
{
    struct bench *b = arg;
    if (e != NULL) {
        fprintf(stderr, "%s\n", e->text);
        b->failed = true;
    } else if (r->pidfd >= 0) {
        b->pidfd = TAKE_FD(r->pidfd);
        b->launch_ns = r->msg->records.n > 0 ? r->msg->records.v[0]->launch_time : 0;
    }
}

static void
await(struct bench *b)
{
    need(warden_client_drain(b->client, 10000), "the warden", NULL);
    if (b->failed)
        die("the warden", "refused");
}

static void
start_warden(struct bench *b)
{
    static const char *drivers[] = {"exec"};
    struct err e = ERR_INIT;
    struct cgroup_info info;
    char helpers[4096], self[4096];
    need(cgroup_find(b->ctx, &info, &e), "cgroup2", &e);
    b->policy = (struct policy){
        .drivers = {drivers, 1},
        .data_dir = mem_printf(b->ctx, "%s/data", b->dir),
        .alloc_dir = mem_printf(b->ctx, "%s/data/alloc", b->dir),
        .run_dir = mem_printf(b->ctx, "%s/run", b->dir),
        .agent_user = "nobody",
        .cgroup_root = mem_printf(b->ctx, "%s/paddock-bench-%d", info.mount, (int)getpid()),
        .seccomp = true,
    };
    need(dir_make(AT_FDCWD, b->policy.data_dir, 0755), "data_dir", NULL);
    need(dir_make(AT_FDCWD, b->policy.run_dir, 0755), "run_dir", NULL);
    char *policy = mem_printf(b->ctx, "%s/policy", b->policy.run_dir);
    need(policy_compile(&b->policy, policy, &e), "policy", &e);
    /* bench/launch lies one directory below paddock-warden */
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0 || strrchr(self, '/') == NULL)
        die("readlink", "/proc/self/exe");
    *strrchr(self, '/') = '\0';
    snprintf(helpers, sizeof(helpers), "%.4000s/../paddock-warden", self);
    b->noop = mem_printf(b->ctx, "%s/noop", self);
    b->warden = proc_fork(NULL);
    if (b->warden == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(helpers, "paddock-warden", "-policy", policy, "-log-level", "warn", (char *)NULL);
        die("execute", helpers);
    }
    b->client = warden_client_new(b->ctx, mem_printf(b->ctx, "%s/warden.sock", b->policy.run_dir));
    for (int i = 0; warden_client_connect(b->client, &e) < 0; i++) {
        if (i > 5000)
            die("connect", e.text);
        err_clear(&e);
        (void)poll(NULL, 0, 1);
    }
}

static void
make_task(struct bench *b)
{
    struct warden_task t = {.name = "noop", .driver = "exec"};
    const struct warden_task *v[] = {&t};
    warden_alloc_make(b->client, ALLOC, v, 1, answered, b);
    await(b);
    char *text = NULL;
    size_t n = 0;
    char *to = mem_printf(b->ctx, "%s/" ALLOC "/noop/local/noop", b->policy.alloc_dir);
    need(file_read(b->ctx, AT_FDCWD, b->noop, 1 << 20, &text, &n), b->noop, NULL);
    need(file_write_atomic(AT_FDCWD, to, text, n, 0755), to, NULL);
    b->noop = to;
    struct launch_spec *s = b->spec = type_new(b->ctx, &type_launch_spec);
    s->alloc_id = ALLOC;
    s->task_name = "noop";
    s->driver = "exec";
    s->isolated = true;
    s->command = "/local/noop";
    list_add(s, s->env, "PATH=/usr/bin:/bin");
}

static void
add(struct series *s, int64_t from, int64_t to)
{
    if (s->n < LAUNCHES_MAX)
        s->v[s->n++] = (double)(to - from) / 1e6;
}

static void
make_net(struct bench *b, const struct kind *k)
{
    struct net_request_port port = {.host_ip = "127.0.0.1", .host_port = 20080, .to = 80};
    struct net_request_port *ports[] = {&port};
    struct net_request q = {.mode = k->mode};
    if (str_eq(k->mode, "bridge"))
        q.ports = (struct net_request_port_list){.v = ports, .n = 1};
    warden_net_make(b->client, ALLOC, &q, answered, b);
    await(b);
}

static void
one_launch(struct bench *b, struct kind *k, bool count)
{
    int64_t t0 = clock_mono_ns();
    b->spec->share_net = str_eq(k->mode, "host");
    if (!b->spec->share_net)
        make_net(b, k);
    int64_t net_ns = clock_mono_ns() - t0;
    warden_launch(b->client, b->spec, answered, b);
    await(b);
    int64_t t1 = clock_mono_ns();
    struct pollfd p = {.fd = b->pidfd, .events = POLLIN};
    if (poll(&p, 1, 5000) != 1)
        die("task", "does not end");
    int64_t t2 = clock_mono_ns();
    fd_close(&b->pidfd);
    warden_destroy(b->client, ALLOC, "noop", answered, b); /* not measured */
    await(b);
    if (!b->spec->share_net) {
        warden_net_remove(b->client, ALLOC, answered, b);
        await(b);
    }
    if (count) {
        add(&k->launch_run, t0, t1);
        add(&k->launch_end, t0, t2);
        int64_t before = str_eq(k->mode, "bridge") ? net_ns : 0;
        add(&k->plan_run, 0, before + b->launch_ns);
        add(&k->plan_end, 0, before + b->launch_ns + t2 - t1);
        add(&k->net, 0, net_ns);
    }
}

static void
one_bare(struct bench *b, bool count)
{
    char *argv[] = {b->noop, NULL}, *envp[] = {NULL};
    int64_t t0 = clock_mono_ns();
    pid_t pid = vfork();
    if (pid == 0) {
        execve(b->noop, argv, envp);
        _exit(127);
    }
    int64_t t1 = clock_mono_ns();
    int status = -1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        die("bare vfork+exec", b->noop);
    int64_t t2 = clock_mono_ns();
    if (count) {
        add(&bare_run, t0, t1);
        add(&bare_end, t0, t2);
    }
}

static int
compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
percentile(struct series *s, double p)
{
    qsort(s->v, s->n, sizeof(s->v[0]), compare);
    return s->v[(size_t)(p * (double)(s->n - 1))];
}

static double
report(const char *what, struct series *launch, struct series *bare)
{
    double l50 = percentile(launch, 0.5), b50 = percentile(bare, 0.5);
    printf(
        "  %-24s exec p10 %.3f p50 %.3f p99 %.3f ms   vfork+exec p10 %.3f p50 %.3f p99 %.3f ms   "
        "ratio p10 %.2f p50 %.2f\n",
        what, percentile(launch, 0.1), l50, percentile(launch, 0.99), percentile(bare, 0.1), b50,
        percentile(bare, 0.99), percentile(launch, 0.1) / percentile(bare, 0.1), l50 / b50);
    return l50 / b50;
}

int
main(int argc, char **argv)
{
    int64_t launches = LAUNCHES, pause_ms = 0;
    if (geteuid() != 0) {
        printf("skipped: needs root\n");
        return 0;
    }
    if ((argc > 1 && num_parse_i64(argv[1], &launches) < 0) ||
        (argc > 2 && num_parse_i64(argv[2], &pause_ms) < 0) || launches < 1 || pause_ms < 0 ||
        pause_ms > 10000)
        die("usage", "bench/launch [LAUNCHES [PAUSE_MS]]");
    struct bench b = {.ctx = mem_ctx("bench"), .pidfd = -1};
    str_copy(b.dir, sizeof(b.dir), "/tmp/paddock-bench-XXXXXX");
    if (mkdtemp(b.dir) == NULL || chmod(b.dir, 0755) < 0)
        die("mkdtemp", b.dir);
    if (unshare(CLONE_NEWNET) < 0)
        die("unshare", "a network of our own");
    start_warden(&b);
    make_task(&b);
    for (int64_t i = -WARM_UP; i < launches; i++) {
        (void)poll(NULL, 0, (int)pause_ms);
        one_bare(&b, i >= 0);
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            (void)poll(NULL, 0, (int)pause_ms);
            one_launch(&b, &kinds[k], i >= 0);
        }
    }
    printf("%lld launches, %lld ms between them, interleaved\n", (long long)launches,
           (long long)pause_ms);
    bool met = true;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct kind *k = &kinds[i];
        printf("network mode %s\n", k->mode);
        (void)report("request to running", &k->launch_run, &bare_run);
        (void)report("request to reaped", &k->launch_end, &bare_end);
        (void)report("plan to running", &k->plan_run, &bare_run);
        double ratio = report("plan to reaped", &k->plan_end, &bare_end);
        printf("  request of the network   p10 %.3f p50 %.3f p99 %.3f ms\n",
               percentile(&k->net, 0.1), percentile(&k->net, 0.5), percentile(&k->net, 0.99));
        double spread = percentile(&k->plan_end, 0.99) / percentile(&k->plan_end, 0.5);
        printf("  p99/p50 of exec %.1f   bar: ratio <= %.1f: %s\n", spread, k->bar,
               ratio <= k->bar ? "met" : "MISSED");
        met = met && ratio <= k->bar;
    }
    kill(b.warden, SIGUSR1);
    while (waitpid(b.warden, NULL, 0) < 0)
        ;
    (void)dir_remove(AT_FDCWD, b.dir, NULL);
    warden_client_free(b.client);
    talloc_free(b.ctx);
    return met ? 0 : 1;
}
