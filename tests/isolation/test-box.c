/* SPDX-License-Identifier: Apache-2.0
 *
 * The whole box from its pieces, without warden and shim: templates, mount plan, confinement,
 * filter, cgroup leaves; the attempts run in it. Needs root and cgroup2. Everything happens in
 * children with mount namespaces of their own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/confine/confine.h"
#include "isolation/confine/raw.h"
#include "isolation/confine/seccomp.h"
#include "isolation/probe.h"
#include "isolation/root/base.h"
#include "isolation/root/mounts_apply.h"
#include "tests/attempts/check.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534, OUTPUT_MAX = 256 * 1024 };

struct box {
    const void *ctx;
    char dir[64]; /* of this test: alloc/, task/, base/ */
    char alloc[96];
    char task[96];
    char base[96];
    char cgroup[160];
    bool filter;
    uint64_t caps;
    const char *const *argv;
    const struct mounts_bind *binds;
    size_t n_binds;
    int leak; /* a directory of the host, left open as fd 3; 0: none */
    uint32_t landlock_abi;
    const int *missing; /* system calls that answer ENOSYS; 0 ends */
};

static void
must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(99);
}

static void
must_err(int r, const struct err *e)
{
    if (r >= 0)
        return;
    fprintf(stderr, "%s\n", e->text);
    _exit(98);
}

static void
copy(const char *from, const char *to, mode_t mode)
{
    auto_mem void *tmp = mem_ctx("copy");
    char *text;
    size_t n;
    ck_assert_int_eq(file_read(tmp, AT_FDCWD, from, 16 << 20, &text, &n), 0);
    auto_fd int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fd_write_full(fd, text, n), 0);
    ck_assert_int_eq(fchmod(fd, mode), 0);
}

static void
make_dir(struct box *b, const char *name, uid_t uid, mode_t mode)
{
    const char *path = mem_printf(b->ctx, "%s/%s", b->dir, name);
    ck_assert_int_eq(dir_make(AT_FDCWD, path, 0755), 0);
    ck_assert_int_eq(chown(path, uid, uid), 0);
    ck_assert_int_eq(chmod(path, mode), 0);
}

static void
box_init(struct box *b, const void *ctx)
{
    const char *build = getenv("top_builddir");
    const char *attempt = mem_printf(ctx, "%s/tests/attempts/attempt", build ? build : ".");
    *b = (struct box){.ctx = ctx, .filter = true};
    (void)str_copy(b->dir, sizeof(b->dir), "/tmp/paddock-box-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(b->dir));
    ck_assert_int_eq(chmod(b->dir, 0755), 0);
    (void)snprintf(b->alloc, sizeof(b->alloc), "%s/alloc", b->dir);
    (void)snprintf(b->task, sizeof(b->task), "%s/task", b->dir);
    (void)snprintf(b->base, sizeof(b->base), "%s/base", b->dir);
    make_dir(b, "alloc/data", NOBODY, 0777);
    make_dir(b, "task/local", NOBODY, 0777);
    make_dir(b, "task/tmp", 0, 01777);
    copy(attempt, mem_printf(ctx, "%s/task/local/attempt", b->dir), 0755);
    copy(attempt, mem_printf(ctx, "%s/task/local/setuid-attempt", b->dir), 04755);
    const char *dev = mem_printf(ctx, "%s/task/local/device", b->dir);
    ck_assert_int_eq(mknod(dev, S_IFCHR | 0666, makedev(1, 3)), 0);
    ck_assert_int_eq(chmod(dev, 0666), 0);
    struct cgroup_info info;
    struct err e = ERR_INIT;
    ck_assert_msg(cgroup_find(ctx, &info, &e) == 0, "%s", e.text);
    (void)snprintf(b->cgroup, sizeof(b->cgroup), "%s/paddock-test-%d", info.mount, (int)getpid());
}

static void
box_done(struct box *b)
{
    ck_assert_int_eq(dir_remove(AT_FDCWD, b->dir, NULL), 0);
    ck_assert_int_eq(rmdir(b->cgroup), 0);
}

/* The payload's side, as the shim's vfork child does it. */
static _Noreturn void
payload(const struct box *b, const struct confine *c, const struct seccomp_program *p)
{
    struct confine_exec x = {.work_dir = "/local", .keep_fds = 2};
    if (b->filter)
        x.filter = p->insns, x.n_filter = p->n;
    if (b->leak > 0) {
        must(dup2(b->leak, 3) == 3, "dup2");
        x.keep_fds = 3;
    }
    const char *what = "?";
    int r = confine_task(c, &x, &what);
    static char *const env[] = {(char *)"PATH=/usr/bin:/bin", NULL};
    if (r == 0)
        r = (int)RAW(SYS_execve, b->argv[0], b->argv, env);
    else
        (void)dprintf(2, "confine: %s: %s\n", what, strerror(-r));
    (void)dprintf(2, "payload: %s\n", strerror(-r));
    _exit(97);
}

static _Noreturn void
pid1(const struct box *b, const struct base *base, const struct mounts_plan *plan, const int *trees,
     const struct seccomp_program *prog, const struct seccomp_program *own, int task_fd)
{
    struct mounts_fail f = {0};
    struct err e = ERR_INIT;
    const char *what = "?";
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    must_err(base_enter(base, &e), &e);
    must(confine_signals(&what) == 0, what);
    int r = mounts_apply(plan, trees, mounts_trees(plan), &f);
    if (r < 0) {
        auto_mem void *tmp = mem_ctx("pid1");
        (void)dprintf(2, "mounts: %s: %s: %s\n", mounts_describe(tmp, plan, f.op), f.what,
                      strerror(-r));
        _exit(96);
    }
    struct confine c = {
        .flags = CONFINE_ISOLATED | CONFINE_IDS | CONFINE_NO_NEW_PRIVS | CONFINE_HOSTNAME,
        .uid = NOBODY,
        .gid = NOBODY,
        .caps = b->caps,
        .landlock_abi = b->landlock_abi,
        .hostname = "box-test",
        .n_rlimits = 2,
        .rlimits = {{.resource = RLIMIT_CORE},
                    {.resource = RLIMIT_NOFILE, .soft = 1024, .hard = 1 << 30}},
    };
    r = confine_keyring(&what);
    if (r == 0)
        r = confine_hostname(&c, &what);
    if (r < 0) {
        (void)dprintf(2, "begin: %s: %s\n", what, strerror(-r));
        _exit(95);
    }
    struct clone_args a = {.flags = CLONE_NEWCGROUP | CLONE_INTO_CGROUP | CLONE_VM | CLONE_VFORK,
                           .exit_signal = SIGCHLD,
                           .cgroup = (unsigned)task_fd};
    long pid = RAW(SYS_clone3, &a, sizeof(a));
    if (pid == 0)
        payload(b, &c, prog);
    r = confine_end(own->insns, own->n, 0, &what);
    if (pid < 0 || r < 0)
        _exit(94);
    int st = 0;
    for (;;) {
        long k = RAW(SYS_wait4, -1, &st, 0, NULL);
        if (k == pid)
            (void)RAW(SYS_exit_group, WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st));
    }
}

/* Takes system calls away, as on an older kernel. */
static void
take_away(const int *calls)
{
    struct sock_filter f[16];
    size_t n = 0;
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (; *calls; calls++) {
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)*calls, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog prog = {.len = (unsigned short)n, .filter = f};
    must(RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0, "seccomp");
}

/* The warden's side. */
static _Noreturn void
warden(struct box *b)
{
    struct err e = ERR_INIT;
    const char *keep[] = {b->dir};
    struct base_conf conf = {.dir = b->base, .keep = keep, .n_keep = 1};
    struct base base = {0};
    struct cgroup_root root;
    struct cgroup_task leaves;
    struct seccomp_program prog, own;
    if (b->missing)
        take_away(b->missing);
    must_err(cgroup_root_open(&root, b->cgroup, true, &e), &e);
    must_err(base_make(b->ctx, &conf, &base, &e), &e);
    must_err(seccomp_compile(b->ctx, seccomp_profile_default(), &prog, &e), &e);
    must_err(seccomp_compile(b->ctx, seccomp_profile_shim(), &own, &e), &e);
    must_err(cgroup_shim_make(&root, "alloc", "task", &leaves, &e), &e);
    must_err(cgroup_task_make(&root, "alloc", "task", &leaves, &e), &e);
    struct mounts_spec spec = {.task_dir = b->task,
                               .alloc_dir = b->alloc,
                               .roots = base.roots,
                               .n_roots = base.n_roots,
                               .uid = NOBODY,
                               .gid = NOBODY,
                               .binds = b->binds,
                               .n_binds = b->n_binds};
    struct mounts_plan *plan;
    must_err(mounts_plan(b->ctx, &spec, &plan, &e), &e);
    must(mounts_check(plan, plan->bytes) == 0, "mounts_check");
    int trees[MOUNTS_TREES_MAX];
    struct mounts_fail fail = {0};
    uint32_t n = 0;
    must(mounts_open(plan, -1, mounts_trees(plan), trees, &n, &fail) == 0, "mounts_open");
    int64_t begin = clock_mono_ns();
    struct clone_args a = {.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS |
                                    CLONE_INTO_CGROUP,
                           .exit_signal = SIGCHLD,
                           .cgroup = (unsigned)leaves.shim_fd};
    long pid = RAW(SYS_clone3, &a, sizeof(a));
    if (pid == 0)
        pid1(b, &base, plan, trees, &prog, &own, leaves.task_fd);
    must(pid > 0, "clone3");
    int st = 0;
    must(waitpid((pid_t)pid, &st, 0) == pid, "waitpid");
    fprintf(stderr, "# %u operations, %lld us\n", plan->n_ops,
            (long long)((clock_mono_ns() - begin) / 1000));
    must(cgroup_wait_empty(leaves.task_fd, 5000) == 0, "cgroup_wait_empty");
    cgroup_task_close(&leaves);
    must_err(cgroup_task_remove(&root, "alloc", "task", &e), &e);
    _exit(WIFEXITED(st) ? WEXITSTATUS(st) : 93);
}

/* Runs the box and returns its output; the exit code in *status. */
static char *
box_run(struct box *b, int *status)
{
    int p[2];
    ck_assert_int_eq(pipe(p), 0);
    (void)fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)dup2(p[1], 1);
        (void)dup2(p[1], 2);
        warden(b);
    }
    (void)close(p[1]);
    char *out = mem_array(b->ctx, char, OUTPUT_MAX + 1);
    ssize_t n = fd_read_full(p[0], out, OUTPUT_MAX);
    ck_assert_int_ge(n, 0);
    (void)close(p[0]);
    int st;
    ck_assert_int_eq(waitpid(pid, &st, 0), pid);
    *status = WIFEXITED(st) ? WEXITSTATUS(st) : -WTERMSIG(st);
    return out;
}

START_TEST(attempts_are_refused)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct box b;
    box_init(&b, ctx);
    b.argv = (const char *[]){"/local/attempt", NULL};
    int status;
    const char *out = box_run(&b, &status);
    box_done(&b);
    ck_assert_msg(status == 0, "status %d: %s", status, out);
    int bad = attempt_check(out, attempt_expect, ARRAY_LEN(attempt_expect));
    char buf[64];
    ck_assert_str_eq(attempt_result(out, "hostname", buf), "box-test");
    ck_assert_str_eq(attempt_result(out, "uid", buf), "65534");
    ck_assert_str_eq(attempt_result(out, "groups", buf), "0");
    ck_assert_str_eq(attempt_result(out, "setuid_binary", buf), "65534");
    ck_assert_msg(bad == 0, "%d attempts came out wrong: %s", bad, out);
}
END_TEST

START_TEST(attempts_can_succeed)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct box b;
    box_init(&b, ctx);
    b.filter = false;
    b.argv = (const char *[]){"/local/attempt", "unshare_user", "ptrace_traceme",
                              "keyctl_join",    "io_uring",     NULL};
    int status;
    const char *out = box_run(&b, &status);
    box_done(&b);
    ck_assert_msg(status == 0, "status %d: %s", status, out);
    int bad = attempt_check(out, attempt_unfiltered, ARRAY_LEN(attempt_unfiltered));
    ck_assert_msg(bad == 0, "%d attempts did not succeed: %s", bad, out);
}
END_TEST

START_TEST(programs_of_the_host_run)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct box b;
    box_init(&b, ctx);
    b.argv = (const char *[]){
        "/bin/sh", "-c",
        "set -e; test $$ = 2; id -un; cat /etc/hosts >/dev/null; ls / | sort | tr '\\n' ' ';"
        " sleep 0 & wait; echo x | sed s/x/piped/; python3 -c 'import ssl, threading;"
        " t=threading.Thread(target=print,args=(\"thread\",)); t.start(); t.join()'",
        NULL};
    int status;
    const char *out = box_run(&b, &status);
    box_done(&b);
    ck_assert_msg(status == 0, "status %d: %s", status, out);
    ck_assert_msg(strstr(out, "nobody") && strstr(out, "piped") && strstr(out, "thread"), "%s",
                  out);
}
END_TEST

START_TEST(kept_capabilities_arrive)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct box b;
    box_init(&b, ctx);
    b.caps = UINT64_C(1) << 10 | UINT64_C(1) << 13; /* net_bind_service, net_raw */
    b.argv = (const char *[]){"/local/attempt", "caps",        "sock_raw",
                              "raise_ambient",  "mount_tmpfs", NULL};
    int status;
    const char *out = box_run(&b, &status);
    box_done(&b);
    static const struct attempt_expect want[] = {
        {"A15", "caps", "10"},
        {"A34", "sock_raw", "0"},
        {"A15", "raise_ambient", "EPERM"},
        {"A24", "mount_tmpfs", "EPERM"}};
    ck_assert_msg(status == 0 && attempt_check(out, want, ARRAY_LEN(want)) == 0, "%s", out);
}
END_TEST

START_TEST(binds_of_a_job)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct box b;
    box_init(&b, ctx);
    make_dir(&b, "vol", NOBODY, 0777);
    const char *vol = mem_printf(ctx, "%s/vol", b.dir);
    const struct mounts_bind binds[] = {{.source = vol, .target = "/data/rw"},
                                        {.source = vol, .target = "data/ro", .read_only = true}};
    b.binds = binds;
    b.n_binds = 2;
    b.argv = (const char *[]){
        "/bin/sh", "-c",
        "echo hi >/data/rw/f && cat /data/ro/f && ! touch /data/ro/g 2>&1 && umask", NULL};
    int status;
    const char *out = box_run(&b, &status);
    box_done(&b);
    ck_assert_msg(status == 0 && strstr(out, "hi") && strstr(out, "Read-only"), "%d %s", status,
                  out);
}
END_TEST

/* Without the new mount API there is no box: the warden says so and does not offer exec. */
START_TEST(older_kernels_are_told)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const int cases[][2] = {{SYS_open_tree, 0}, {SYS_move_mount, 0}, {SYS_mount_setattr, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct box b;
        box_init(&b, ctx);
        b.missing = cases[i];
        b.argv = (const char *[]){"/local/attempt", NULL};
        int status;
        const char *out = box_run(&b, &status);
        box_done(&b);
        ck_assert_msg(status == 98 && strstr(out, strerror(ENOSYS)), "case %zu: status %d: %s", i,
                      status, out);
    }
}
END_TEST

/* The second wall: were a directory of the host left open, Landlock keeps the task from what is in
 * it. Without Landlock it is open, so the test can fail. */
START_TEST(second_wall)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct probe p;
    probe_run(&p, NULL);
    for (uint32_t abi = 0; abi <= (uint32_t)p.landlock_abi; abi++) {
        auto_mem void *ctx = mem_ctx("t");
        struct box b;
        box_init(&b, ctx);
        auto_fd int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        b.leak = host;
        b.landlock_abi = abi;
        b.argv = (const char *[]){"/local/attempt", "outside_fd", "write_local",
                                  "write_null",     "mknod_fifo", NULL};
        int status;
        char buf[64];
        const char *out = box_run(&b, &status);
        box_done(&b);
        ck_assert_msg(status == 0, "abi %u: status %d: %s", abi, status, out);
        ck_assert_str_eq(attempt_result(out, "outside_fd", buf), abi < 2 ? "0" : "EACCES");
        ck_assert_str_eq(attempt_result(out, "write_local", buf), "0");
        ck_assert_str_eq(attempt_result(out, "write_null", buf), "0");
        ck_assert_str_eq(attempt_result(out, "mknod_fifo", buf), "0");
    }
}
END_TEST

START_TEST(signals_are_default)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct box b;
    box_init(&b, ctx);
    static const int ignored[] = {SIGINT, SIGQUIT, SIGPIPE, SIGHUP, SIGUSR1};
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
        (void)signal(ignored[i], SIG_IGN);
    sigset_t set;
    (void)sigfillset(&set);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    b.argv = (const char *[]){"/bin/grep", "-E", "Sig(Ign|Blk)", "/proc/self/status", NULL};
    int status;
    const char *out = box_run(&b, &status);
    box_done(&b);
    ck_assert_msg(status == 0 &&
                      strstr(out, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000"),
                  "%d %s", status, out);
}
END_TEST

/* The host's files are the tasks' files, at once for those that run. In a mount namespace of its
 * own, where a file of the test stands for /etc/hosts. */
static _Noreturn void
refresh_child(struct box *b, const char *hosts)
{
    struct err e = ERR_INIT;
    const char *keep[] = {b->dir};
    struct base_conf conf = {.dir = b->base, .keep = keep, .n_keep = 1};
    struct base base = {0};
    const char *seen = mem_printf(b->ctx, "%s/etc/hosts", b->base);
    static const char first[] = "127.0.0.1 first\n", second[] = "127.0.0.1 second\n";
    enum { PRIVATE_REC = 0x44000, BIND = 0x1000 };
    char *text;
    must(file_write_atomic(AT_FDCWD, hosts, first, sizeof(first) - 1, 0644) == 0, "write");
    must(unshare(CLONE_NEWNS) == 0, "unshare");
    must(RAW(SYS_mount, "none", "/", NULL, PRIVATE_REC, NULL) == 0, "private");
    must(RAW(SYS_mount, hosts, "/etc/hosts", NULL, BIND, NULL) == 0, "bind");
    must_err(base_make(b->ctx, &conf, &base, &e), &e);
    must(file_read(b->ctx, AT_FDCWD, seen, 4096, &text, NULL) == 0 && str_eq(text, first), "first");
    auto_fd int fd = open(hosts, O_WRONLY | O_TRUNC | O_CLOEXEC);
    must(fd >= 0 && fd_write_full(fd, second, sizeof(second) - 1) == 0, "rewrite");
    int64_t second_ns = 1000000000;
    must_err(base_refresh(&base, second_ns / 2, &e), &e); /* too early to look again */
    must(file_read(b->ctx, AT_FDCWD, seen, 4096, &text, NULL) == 0 && str_eq(text, first), "early");
    must_err(base_refresh(&base, 2 * second_ns, &e), &e);
    must(file_read(b->ctx, AT_FDCWD, seen, 4096, &text, NULL) == 0 && str_eq(text, second),
         "second");
    must(fchmod(fd, 0600) == 0, "chmod"); /* what the world may not read is not shown */
    must_err(base_refresh(&base, 4 * second_ns, &e), &e);
    must(access(seen, F_OK) < 0 && errno == ENOENT, "unreadable is gone");
    must(open(mem_printf(b->ctx, "%s/etc/new", b->base), O_WRONLY | O_CREAT, 0644) < 0 &&
             errno == EROFS,
         "read-only");
    _exit(0);
}

START_TEST(host_files_are_kept_current)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    auto_mem void *ctx = mem_ctx("t");
    struct box b;
    box_init(&b, ctx);
    const char *hosts = mem_printf(ctx, "%s/hosts", b.dir);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        refresh_child(&b, hosts);
    int st;
    ck_assert_int_eq(waitpid(pid, &st, 0), pid);
    ck_assert_msg(WIFEXITED(st) && WEXITSTATUS(st) == 0, "status %#x", st);
    ck_assert_int_eq(dir_remove(AT_FDCWD, b.dir, NULL), 0);
}
END_TEST

/* The task owns its root: what it plants there before a restart must not move a mount. */
START_TEST(planted_links_stop_the_launch)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const char *const places[] = {"proc", "sys", "dev", "alloc", "secrets", "usr"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        auto_mem void *ctx = mem_ctx("t");
        struct box b;
        box_init(&b, ctx);
        ck_assert_int_eq(symlink("/etc", mem_printf(ctx, "%s/%s", b.task, places[i])), 0);
        b.argv = (const char *[]){"/local/attempt", "caps", NULL};
        int status;
        const char *out = box_run(&b, &status);
        box_done(&b);
        ck_assert_msg(status == 96, "%s: status %d: %s", places[i], status, out);
        ck_assert_msg(strstr(out, "symbolic links"), "%s: %s", places[i], out);
    }
}
END_TEST

TEST_SUITE_TIMEOUT("box", 60, attempts_are_refused, attempts_can_succeed, programs_of_the_host_run,
                   kept_capabilities_arrive, binds_of_a_job, older_kernels_are_told, second_wall,
                   signals_are_default, planted_links_stop_the_launch, host_files_are_kept_current)
