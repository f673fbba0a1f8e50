/* SPDX-License-Identifier: Apache-2.0
 *
 * exec launches through warden and shim against a bare vfork+exec of the same static program,
 * interleaved in one session, so that the noise of the machine hits both. Two figures each: until
 * the payload runs (answer of the launch; return of vfork), and until it has ended and is reaped.
 * The bars are on the second: p50 of the host's network <= 7 times; of a network namespace that was
 * made ahead of time (mode none) <= 8, the request that takes it being like the one for the
 * allocation's directories: before, and shown apart; on the bridge with one mapped port <= 25, with
 * all that it takes. Where crun and runc are in PATH they run the same program four times in a row
 * and as far apart as ours: what one leaves for the kernel to clear away makes the next of another
 * kind faster or slower. The first of a row is not counted. Each has two rows: with as much of the
 * same protection as it knows (a filter of the same system calls, a user namespace), which is what
 * the bars are about, and with no more than its own `spec` asks for, which has neither; both
 * without that `spec`'s filter of devices where it cannot be loaded.
 * Mode "volumes" is "host" with eight host volumes mounted: the bar is 0.5 ms for each.
 * At the end: whether anything has grown.
 *
 * It runs in a network and a mount namespace of its own, with nothing but cgroup2 at /sys/fs/cgroup
 * (crun refuses hybrid hosts): the machine's are not touched.
 *
 * usage: bench/launch [-n LAUNCHES] [-p PAUSE_MS] [-k host|none|bridge|volumes] [-t TASKS]
 *        [-m MOUNTS]
 *        -t: so many other tasks run meanwhile; -m: so many mounts are on the host. As root. The
 *        data directory is in TMPDIR (/tmp), whose file system pays for the task's record.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/seccomp.h"
#include "isolation/launch/client.h"
#include "isolation/launch/policy.h"
#include "isolation/proc.h"
#include "isolation/supervisor.h"

#define ALLOC "01234567-89ab-cdef-0123-456789abcdef"
enum {
    LAUNCHES = 400,
    LAUNCHES_MAX = 200000,
    WARM_UP = 20,
    PEER_BLOCKS = 5, /* spread over the launches; theirs take tens of milliseconds */
    PEER_RUNS = 5,   /* in each */
    TASKS_MAX = 8000,
    HOGS_MAX = 1024,
    MOUNTS_MAX = 20000,
    SETTLE_MS = 10000, /* the kernel removes cgroups and namespaces later */
    PEER_ID_BASE = 1000000000,
    PEER_PAUSE_MS = 200, /* so that what it removes of a peer's is not in our time */
    VOLUMES = 8,
};
#define VOLUME_BAR_MS 0.5

struct bench {
    void *ctx;
    char dir[64];
    struct policy policy;
    struct warden_client *client;
    struct launch_spec *spec;
    struct launch_mount_list volumes;
    char *noop;
    int ended;
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
    bool volumes; /* of the client, mounted; its bar is of each, not of the whole */
    struct series launch_run, launch_end, clone_run, clone_end, net;
} kinds[] = {{.mode = "host", .bar = 7},
             {.mode = "none", .bar = 8},
             {.mode = "bridge", .bar = 25},
             {.mode = "volumes", .volumes = true}};

/* Other runtimes; a launch is so many times faster than theirs. */
static struct peer {
    const char *name;
    bool same; /* protection; else its own `spec` */
    double bar;
    char path[PATH_MAX]; /* "": not here */
    char dir[PATH_MAX];  /* of the bundle */
    bool devices;        /* with the filter of devices that its own `spec` asks for */
    struct series end;
} peers[] = {{.name = "crun", .same = true, .bar = 10},
             {.name = "runc", .same = true, .bar = 30},
             {.name = "crun", .bar = 10},
             {.name = "runc", .bar = 30}};

/* The amounts that may not grow. */
enum { FDS, ANON_KB, MOUNTS, CGROUPS, NETNS, GROWTH_END };
static const char *const growth_names[] = {"descriptors", "anonymous KB", "mounts", "cgroups",
                                           "network namespaces"};

static void
add(struct series *s, int64_t from, int64_t to)
{
    if (s->n < LAUNCHES_MAX)
        s->v[s->n++] = (double)(to - from) / 1e6;
}

static pid_t warden; /* ours; 0: not started yet */

/* With all of its tasks. */
static void
stop_warden(void)
{
    if (warden > 0 && kill(warden, SIGUSR1) == 0)
        while (waitpid(warden, NULL, 0) < 0)
            ;
}

static _Noreturn void
die(const char *what, const char *why)
{
    fprintf(stderr, "bench/launch: %s: %s\n", what, why);
    stop_warden();
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
    } else if (r->ended >= 0) {
        b->ended = TAKE_FD(r->ended);
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
    for (int i = 0; i < VOLUMES; i++) {
        struct policy_volume *v = mem_new(b->ctx, struct policy_volume);
        struct launch_mount *m = mem_new(b->ctx, struct launch_mount);
        v->name = mem_printf(b->ctx, "v%d", i);
        v->path = mem_printf(b->ctx, "%s/volume%d", b->dir, i);
        *m = (struct launch_mount){
            .source = v->path, .volume = v->name, .target = mem_printf(b->ctx, "/srv/%d", i)};
        need(dir_make(AT_FDCWD, v->path, 0755), v->path, NULL);
        list_add(b->ctx, b->policy.host_volumes, v);
        list_add(b->ctx, b->volumes, m);
    }
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
    warden = proc_fork(NULL);
    if (warden == 0) {
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

/* --- around it --- */

/* Namespaces of our own, so many mounts in them. */
static void
own_namespaces(struct bench *b, int64_t mounts)
{
    static const char where[] = "/sys/fs/cgroup";
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        die("unshare", "a network and mounts of our own");
    auto_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) < 0) /* the port of mode bridge is of its address */
        die("set lo up", strerror(errno));
    (void)umount2(where, MNT_DETACH);
    if (mount("cgroup2", where, "cgroup2", 0, NULL) < 0)
        die("mount cgroup2", where);
    for (int64_t i = 0; i < mounts; i++) {
        const char *dir = mem_printf(b->ctx, "%s/m%lld", b->dir, (long long)i);
        need(dir_make(AT_FDCWD, dir, 0755), dir, NULL);
        if (mount(b->dir, dir, NULL, MS_BIND, NULL) < 0)
            die("mount", dir);
    }
}

static void
one_task(struct bench *b, const char *alloc)
{
    struct warden_task t = {.name = "sleep", .driver = "exec"};
    const struct warden_task *v[] = {&t};
    warden_alloc_make(b->client, &(struct warden_alloc){.id = alloc, .tasks = v, .n = 1}, answered,
                      b);
    await(b);
    struct launch_spec *s = type_new(b->ctx, &type_launch_spec);
    s->alloc_id = alloc;
    s->task_name = t.name;
    s->driver = t.driver;
    s->isolated = s->share_net = true;
    s->command = "/bin/sleep";
    list_add(s, s->args, "infinity");
    warden_launch(b->client, s, answered, b);
    await(b);
    fd_close(&b->ended);
}

static void
other_tasks(struct bench *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        one_task(b, mem_printf(b->ctx, "00000000-0000-0000-0000-%012lld", (long long)i));
}

/* Somebody who computes on every processor, as tasks do. They end with us. */
static void
start_hogs(int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        pid_t pid = proc_fork(NULL);
        need(pid, "fork", NULL);
        if (pid > 0)
            continue;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile uint64_t x = 0;; x++)
            ;
    }
}

/* vfork and exec; the times before, when it runs, and when it is reaped. False: it failed. */
static bool
spawn(const char *const argv[], int64_t t[3])
{
    static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    int status = -1;
    t[0] = clock_mono_ns();
    pid_t pid = vfork();
    if (pid == 0) {
        execve(argv[0], (char **)(uintptr_t)argv, (char **)(uintptr_t)envp);
        _exit(127);
    }
    t[1] = clock_mono_ns();
    bool ended = pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    t[2] = clock_mono_ns();
    return ended;
}

/* The calls that a task may make, without conditions on their arguments. */
static json_t *
same_filter(void)
{
    const struct seccomp_profile *p = seccomp_profile_default();
    json_t *names = json_array();
    for (size_t i = 0; i < p->n_rules; i++)
        if (p->rules[i].verdict == SECCOMP_V_ALLOW)
            (void)json_array_append_new(names, json_pack("s", p->rules[i].name));
    return json_pack("{s:s, s:[s,s,s], s:[{s:o, s:s}]}", "defaultAction", "SCMP_ACT_ERRNO",
                     "architectures", "SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32",
                     "syscalls", "names", names, "action", "SCMP_ACT_ALLOW");
}

static json_t *
same_ids(void)
{
    return json_pack("[{s:i, s:i, s:i}]", "containerID", 0, "hostID", PEER_ID_BASE, "size",
                     POLICY_RANGE_IDS);
}

/* Its own `spec`, with a program that ends. */
static bool
write_bundle(struct bench *b, const struct peer *p)
{
    const char *command =
        mem_printf(b->ctx,
                   "mkdir -p %s/rootfs && cp %s %s/rootfs/noop && chown -R %d:%d %s/rootfs && "
                   "cd %s && rm -f config.json && %s spec",
                   p->dir, b->noop, p->dir, p->same ? PEER_ID_BASE : 0, p->same ? PEER_ID_BASE : 0,
                   p->dir, p->dir, p->path);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    const char *file = mem_printf(b->ctx, "%s/config.json", p->dir);
    int64_t t[3];
    json_t *c = spawn(argv, t) ? json_load_file(file, 0, NULL) : NULL;
    json_t *linux_part = json_object_get(c, "linux");
    bool ok =
        json_object_update_new(json_object_get(c, "process"),
                               json_pack("{s:b, s:[s]}", "terminal", 0, "args", "/noop")) == 0;
    if (!p->devices)
        (void)json_object_del(linux_part, "resources");
    if (p->same) {
        ok = ok && json_array_append_new(json_object_get(linux_part, "namespaces"),
                                         json_pack("{s:s}", "type", "user")) == 0;
        ok = ok &&
             json_object_update_new(linux_part, json_pack("{s:o, s:o, s:o}", "uidMappings",
                                                          same_ids(), "gidMappings", same_ids(),
                                                          "seccomp", same_filter())) == 0;
    }
    ok = ok && json_dump_file(c, file, 0) == 0;
    json_decref(c);
    return ok;
}

/* From a request to the end of what it runs. */
static bool
peer_run(const struct peer *p, int64_t t[3])
{
    char id[32];
    (void)snprintf(id, sizeof(id), "bench-%d", (int)getpid());
    const char *const argv[] = {p->path, "run", "-b", p->dir, id, NULL};
    return spawn(argv, t);
}

static void
find_peer(struct bench *b, struct peer *p)
{
    const char *path = getenv("PATH");
    char *save = NULL, *dirs = mem_strdup(b->ctx, path != NULL ? path : "/usr/bin:/usr/sbin");
    char *d = strtok_r(dirs, ":", &save);
    for (; d != NULL; d = strtok_r(NULL, ":", &save)) {
        (void)snprintf(p->path, sizeof(p->path), "%s/%s", d, p->name);
        if (access(p->path, X_OK) == 0)
            break;
    }
    if (d == NULL) {
        p->path[0] = '\0';
        return;
    }
    (void)snprintf(p->dir, sizeof(p->dir), "%s/%s-%s", b->dir, p->name, p->same ? "same" : "spec");
    int64_t t[3];
    p->devices = true;
    bool runs = write_bundle(b, p) && peer_run(p, t);
    if (!runs) {
        p->devices = false;
        runs = write_bundle(b, p) && peer_run(p, t);
    }
    if (!runs) {
        printf("%s: does not run here\n", p->name);
        p->path[0] = '\0';
    }
}

static void
peer_block(struct peer *p, int64_t pause_ms)
{
    for (int i = 0; i < PEER_RUNS && p->path[0] != '\0'; i++) {
        (void)poll(NULL, 0, (int)pause_ms);
        int64_t t[3];
        if (!peer_run(p, t))
            die("run", p->name);
        if (i > 0)
            add(&p->end, t[0], t[2]);
    }
    (void)poll(NULL, 0, PEER_PAUSE_MS);
}

static int64_t
entries(const char *path)
{
    int64_t n = 0;
    DIR *d = opendir(path);
    while (d != NULL && readdir(d) != NULL)
        n++;
    if (d != NULL)
        closedir(d);
    return n;
}

/* Ends `text` after its first word. */
static char *
first_word(char *text)
{
    text += strspn(text, " \t");
    text[strcspn(text, " \t\n")] = '\0';
    return text;
}

/* The number after `key` in a file, or the number of its lines without one. */
static int64_t
number_in(const void *ctx, const char *path, const char *key)
{
    char *text;
    int64_t n = 0;
    if (file_read(ctx, AT_FDCWD, path, 16 << 20, &text, NULL) < 0)
        return 0;
    if (key != NULL) {
        text = strstr(text, key);
        return text == NULL || num_parse_i64(first_word(text + strlen(key)), &n) < 0 ? 0 : n;
    }
    for (char *p = text; (p = strchr(p, '\n')) != NULL; p++)
        n++;
    return n;
}

/* Measures the warden, the launch pad and the network worker (its children), and what the kernel
 * holds for us. */
static void
measure(struct bench *b, int64_t v[GROWTH_END])
{
    auto_mem void *ctx = mem_ctx("measure");
    char *children, *path = mem_printf(ctx, "/proc/%d/task/%d/children", warden, warden);
    need(file_read(ctx, AT_FDCWD, path, 1 << 20, &children, NULL), path, NULL);
    memset(v, 0, GROWTH_END * sizeof(*v));
    char *save = NULL;
    children = mem_printf(ctx, "%d %s", warden, children);
    int daemons = 3; /* others are shims */
    for (char *p = strtok_r(children, " ", &save); p != NULL && daemons-- > 0;
         p = strtok_r(NULL, " ", &save)) {
        const char *proc = mem_printf(ctx, "/proc/%s", p);
        v[FDS] += entries(mem_printf(ctx, "%s/fd", proc));
        v[ANON_KB] += number_in(ctx, mem_printf(ctx, "%s/status", proc), "RssAnon:");
        v[MOUNTS] += number_in(ctx, mem_printf(ctx, "%s/mountinfo", proc), NULL);
    }
    const char *stat = mem_printf(ctx, "%s/cgroup.stat", b->policy.cgroup_root);
    v[CGROUPS] =
        number_in(ctx, stat, "nr_descendants ") + number_in(ctx, stat, "nr_dying_descendants ");
    v[NETNS] = number_in(ctx, "/proc/slabinfo", "\nnet_namespace ");
}

/* When the network worker has its spares again. */
static void
settle(void)
{
    (void)poll(NULL, 0, 500);
}

static bool
grown(struct bench *b, const int64_t from[GROWTH_END])
{
    int64_t to[GROWTH_END];
    bool more = true;
    for (int64_t end = clock_mono_ns() + SETTLE_MS * NS_PER_MS; more && clock_mono_ns() < end;) {
        settle();
        measure(b, to);
        more = to[FDS] > from[FDS] || to[MOUNTS] > from[MOUNTS] || to[CGROUPS] > from[CGROUPS] ||
               to[ANON_KB] > from[ANON_KB] + from[ANON_KB] / 10;
    }
    for (int i = 0; i < GROWTH_END; i++)
        printf("  %-24s %lld -> %lld\n", growth_names[i], (long long)from[i], (long long)to[i]);
    printf("  bar: no growth (memory: 10 %%): %s\n", more ? "MISSED" : "met");
    return more;
}

/* --- launches --- */

static void
make_task(struct bench *b)
{
    struct warden_task t = {.name = "noop", .driver = "exec"};
    const struct warden_task *v[] = {&t};
    warden_alloc_make(b->client, &(struct warden_alloc){.id = ALLOC, .tasks = v, .n = 1}, answered,
                      b);
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
    b->spec->share_net = k->volumes || str_eq(k->mode, "host");
    b->spec->mounts = k->volumes ? b->volumes : (struct launch_mount_list){NULL, 0};
    if (!b->spec->share_net)
        make_net(b, k);
    int64_t net_ns = clock_mono_ns() - t0;
    warden_launch(b->client, b->spec, answered, b);
    await(b);
    int64_t t1 = clock_mono_ns();
    struct pollfd p = {.fd = b->ended, .events = POLLIN};
    if (poll(&p, 1, 5000) != 1)
        die("task", "does not end");
    int64_t t2 = clock_mono_ns();
    fd_close(&b->ended);
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
        add(&k->clone_run, 0, before + b->launch_ns);
        add(&k->clone_end, 0, before + b->launch_ns + t2 - t1);
        add(&k->net, 0, net_ns);
    }
}

static void
one_bare(struct bench *b, bool count)
{
    const char *const argv[] = {b->noop, NULL};
    int64_t t[3];
    if (!spawn(argv, t))
        die("bare vfork+exec", b->noop);
    if (count) {
        add(&bare_run, t[0], t[1]);
        add(&bare_end, t[0], t[2]);
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

struct options {
    int64_t launches, pause_ms, tasks, mounts, hogs;
    const char *mode; /* NULL: all */
};

static struct options
parse(int argc, char **argv)
{
    static const char usage[] =
        "bench/launch [-n LAUNCHES] [-p PAUSE_MS] [-k host|none|bridge|volumes] "
        "[-t TASKS] [-m MOUNTS] [-b BUSY_LOOPS]";
    struct options o = {.launches = LAUNCHES};
    for (int c; (c = getopt(argc, argv, "n:p:k:t:m:b:")) != -1;) {
        int64_t *to = c == 'n'   ? &o.launches
                      : c == 'p' ? &o.pause_ms
                      : c == 't' ? &o.tasks
                      : c == 'm' ? &o.mounts
                                 : &o.hogs;
        if (c == 'k')
            o.mode = optarg;
        else if (c == '?' || num_parse_i64(optarg, to) < 0 || *to < 0)
            die("usage", usage);
    }
    if (optind < argc || o.launches < 1 || o.launches > LAUNCHES_MAX || o.pause_ms > 10000 ||
        o.tasks > TASKS_MAX || o.mounts > MOUNTS_MAX || o.hogs > HOGS_MAX)
        die("usage", usage);
    return o;
}

static bool
chosen(const struct options *o, const struct kind *k)
{
    bool beside = k == &kinds[0] && o->mode != NULL && str_eq(o->mode, "volumes");
    return o->mode == NULL || str_eq(o->mode, k->mode) || beside;
}

static void
run(struct bench *b, const struct options *o, int64_t before[GROWTH_END])
{
    int64_t peer_every = (o->launches + PEER_BLOCKS - 1) / PEER_BLOCKS;
    for (int64_t i = -WARM_UP; i < o->launches; i++) {
        if (i == 0) {
            settle();
            measure(b, before);
        }
        (void)poll(NULL, 0, (int)o->pause_ms);
        one_bare(b, i >= 0);
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            if (!chosen(o, &kinds[k]))
                continue;
            (void)poll(NULL, 0, (int)o->pause_ms);
            one_launch(b, &kinds[k], i >= 0);
        }
        for (size_t k = 0; i >= 0 && i % peer_every == 0 && k < ARRAY_LEN(peers); k++)
            peer_block(&peers[k], o->pause_ms);
    }
}

/* Beside mode host, run by run interleaved with it. */
static bool
report_volumes(struct kind *k)
{
    if (kinds[0].launch_end.n == 0)
        return true;
    double more = percentile(&k->launch_end, 0.5) - percentile(&kinds[0].launch_end, 0.5);
    bool met = more / VOLUMES <= VOLUME_BAR_MS;
    printf("  %d volumes: p50 %.3f ms more, each %.3f ms   bar: <= %.1f ms: %s\n", VOLUMES, more,
           more / VOLUMES, VOLUME_BAR_MS, met ? "met" : "MISSED");
    return met;
}

static bool
report_kind(struct kind *k)
{
    printf("network mode %s\n", k->mode);
    (void)report("request to running", &k->launch_run, &bare_run);
    (void)report("request to reaped", &k->launch_end, &bare_end);
    (void)report("clone to running", &k->clone_run, &bare_run);
    double ratio = report("clone to reaped", &k->clone_end, &bare_end);
    printf("  request of the network   p10 %.3f p50 %.3f p99 %.3f ms\n", percentile(&k->net, 0.1),
           percentile(&k->net, 0.5), percentile(&k->net, 0.99));
    double spread = percentile(&k->clone_end, 0.99) / percentile(&k->clone_end, 0.5);
    if (k->volumes)
        return report_volumes(k);
    bool met = ratio <= k->bar && spread <= 4;
    printf("  p99/p50 of exec %.1f   bars: ratio <= %.1f, p99/p50 <= 4: %s\n", spread, k->bar,
           met ? "met" : "MISSED");
    return met;
}

/* Beside the host's network mode, from request to end: what is most like a run of theirs. */
static bool
report_peer(struct peer *p)
{
    if (p->end.n == 0 || kinds[0].launch_end.n == 0)
        return true;
    double p50 = percentile(&p->end, 0.5), ratio = p50 / percentile(&kinds[0].launch_end, 0.5);
    printf("%s run, %s%s: p10 %.2f p50 %.2f p99 %.2f ms, %.1f times a request to its end   bar: "
           ">= %.0f: %s\n",
           p->path, p->same ? "the same protection" : "as its spec is",
           p->devices ? "" : ", no filter of devices", percentile(&p->end, 0.1), p50,
           percentile(&p->end, 0.99), ratio, p->bar, ratio >= p->bar ? "met" : "MISSED");
    return ratio >= p->bar;
}

int
main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    if (geteuid() != 0) {
        printf("skipped: needs root\n");
        return 0;
    }
    struct bench b = {.ctx = mem_ctx("bench"), .ended = -1};
    (void)snprintf(b.dir, sizeof(b.dir), "%s/paddock-bench-XXXXXX",
                   str_or(getenv("TMPDIR"), "/tmp"));
    if (mkdtemp(b.dir) == NULL || chmod(b.dir, 0755) < 0)
        die("mkdtemp", b.dir);
    own_namespaces(&b, o.mounts);
    start_warden(&b);
    for (size_t i = 0; i < ARRAY_LEN(peers); i++)
        find_peer(&b, &peers[i]);
    make_task(&b);
    other_tasks(&b, o.tasks);
    start_hogs(o.hogs);
    int64_t before[GROWTH_END], t0 = clock_mono_ns();
    run(&b, &o, before);
    double s = (double)(clock_mono_ns() - t0) / 1e9;
    printf("%lld launches, %lld ms between them, interleaved; beside %lld tasks, %lld mounts "
           "and %lld busy loops; %.1f s\n",
           (long long)o.launches, (long long)o.pause_ms, (long long)o.tasks, (long long)o.mounts,
           (long long)o.hogs, s);
    bool met = true;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        met = (!chosen(&o, &kinds[i]) || report_kind(&kinds[i])) && met;
    for (size_t i = 0; i < ARRAY_LEN(peers); i++)
        met = report_peer(&peers[i]) && met;
    printf("before the first and after the last\n");
    met = !grown(&b, before) && met;
    stop_warden();
    for (int64_t i = 0; i < o.mounts; i++)
        (void)umount2(mem_printf(b.ctx, "%s/m%lld", b.dir, (long long)i), MNT_DETACH);
    (void)dir_remove(AT_FDCWD, b.dir, NULL);
    warden_client_free(b.client);
    talloc_free(b.ctx);
    return met ? 0 : 1;
}
