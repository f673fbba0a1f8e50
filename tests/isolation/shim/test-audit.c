/* SPDX-License-Identifier: Apache-2.0
 *
 * Mode "audit" of a task's filter, through a whole warden and shim: what is denied is denied as
 * without it, is counted, costs bounded room whatever the task does, and is never let through,
 * whatever becomes of the shim.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/confine.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/record.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

/* Denied by the default profile, and without effect as they are made here. */
static const int denied_calls[] = {
    SYS_bpf,           SYS_acct,         SYS_add_key,          SYS_delete_module,
    SYS_fanotify_init, SYS_finit_module, SYS_fsconfig,         SYS_fsmount,
    SYS_fsopen,        SYS_fspick,       SYS_init_module,      SYS_io_uring_setup,
    SYS_kcmp,          SYS_kexec_load,   SYS_keyctl,           SYS_mount_setattr,
    SYS_move_mount,    SYS_open_tree,    SYS_perf_event_open,  SYS_pidfd_getfd,
    SYS_pivot_root,    SYS_quotactl,     SYS_request_key,      SYS_setdomainname,
    SYS_sethostname,   SYS_setns,        SYS_swapoff,          SYS_swapon,
    SYS_umount2,       SYS_userfaultfd,  SYS_process_vm_readv, SYS_name_to_handle_at,
};
enum { DISTINCT = ARRAY_LEN(denied_calls) };
_Static_assert(DISTINCT > RECORD_CALLS_MAX + 4, "more than are counted one by one");

/* t(number, ...): the errno of a call. */
static struct launch_spec *
audited(struct rig *r, const char *script)
{
    const char *prelude = mem_printf(
        r->ctx,
        "import ctypes, os, sys, threading, time\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "def t(n, *a):\n"
        "    ctypes.set_errno(0)\n"
        "    return ctypes.get_errno() if c.syscall(n, *[ctypes.c_long(x) for x in a]) == -1 else "
        "0\n"
        "def say(*a):\n"
        "    os.write(1, (' '.join(str(x) for x in a) + '\\n').encode())\n"
        "def wait(name):\n"
        "    while not os.path.exists('/local/' + name): time.sleep(0.01)\n"
        "bpf, keyctl, mount, socket, clone3, seccomp, mkdirat = %d, %d, %d, %d, %d, %d, %d\n",
        SYS_bpf, SYS_keyctl, SYS_mount, SYS_socket, SYS_clone3, SYS_seccomp, SYS_mkdirat);
    struct launch_spec *s = rig_python(r, "web", true, mem_printf(r->ctx, "%s%s", prelude, script));
    s->isolation->seccomp = type_new(s, &type_task_seccomp);
    s->isolation->seccomp->mode = "audit";
    return s;
}

/* Makes the file that wait(name) of a task waits for. */
static void
go(struct rig *r, const char *name)
{
    const char *path = mem_printf(r->ctx, "%s/%s/web/local/%s", r->policy.alloc_dir, rig_id, name);
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, "", 0, 0644), 0);
}

static void
begin(struct rig *r)
{
    rig_start(r, 0);
    rig_alloc(r, rig_id, "web", "exec");
}

static void
launch(struct rig *r, const struct launch_spec *s, struct got *g)
{
    rig_launch(r, s, g);
    ck_assert_msg(g->err.code == 0, "%s", g->err.text);
}

/* How often the record says that `name` was denied. */
static int64_t
times(const struct task_record *t, const char *name)
{
    for (size_t i = 0; i < t->denied.n; i++)
        if (str_eq(t->denied.v[i]->name, name))
            return t->denied.v[i]->times;
    return 0;
}

static void
await_times(struct rig *r, int record, const char *name, int64_t want)
{
    int64_t end = clock_mono_ns() + 15 * NS_PER_S;
    for (;;) {
        auto_mem void *tmp = mem_ctx("record");
        struct task_record *t = NULL;
        ck_assert_int_eq(record_read(tmp, record, &t), 0);
        if (times(t, name) >= want)
            return;
        ck_assert_msg(clock_mono_ns() < end, "\"%s\" is counted %lld times, not %lld: %s", name,
                      (long long)times(t, name), (long long)want,
                      rig_file(r, rig_id, "alloc/logs/web.stdout.0"));
        rig_pause(20);
    }
}

/* Time on a processor, in ms. */
static long
busy_ms(pid_t pid)
{
    char path[64], text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    unsigned long user = 0, kernel = 0;
    const char *p = strrchr(text, ')');
    ck_assert_int_eq(
        sscanf(p, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel), 2);
    return (long)(user + kernel) * 1000 / sysconf(_SC_CLK_TCK);
}

/* "VmRSS:" of status, in KiB; "syscw:" of io: calls that write. */
static long
fact(pid_t pid, const char *file, const char *key)
{
    char path[64], line[256];
    long n = -1;
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    while (n < 0 && fgets(line, sizeof(line), f) != NULL)
        if (str_prefix(line, key))
            (void)sscanf(line + strlen(key), "%ld", &n);
    fclose(f);
    ck_assert_int_ge(n, 0);
    return n;
}

START_TEST(denies_as_ever_and_counts)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const char script[] =
        "fds = sorted(os.listdir('/proc/self/fd'))[:-1]\n"
        "got = [t(bpf, 0, 0, 0), t(bpf, 5, 0, 0), t(bpf), t(keyctl, 0, 0), t(socket, 17, 3, 0),\n"
        "       t(clone3, 0, 0), t(socket, 1, 1, 0), t(mount, 0, 0, 0, 0, 0)]\n"
        "no_listener = t(seccomp, 1, 8, 0)\n"
        "say(*got, no_listener, 'fds', *fds)\n";
    struct rig r;
    struct got g;
    begin(&r);
    launch(&r, audited(&r, script), &g);
    struct task_record *t = rig_end(&r, &g);
    char *out = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
    char want[128];
    (void)snprintf(want, sizeof(want), "%d %d %d %d %d %d 0 %d %d fds 0 1 2\n", EPERM, EPERM, EPERM,
                   EPERM, EPERM, ENOSYS, EPERM, EPERM);
    ck_assert_str_eq(out, want);
    ck_assert_int_eq(t->exit_code, 0);
    ck_assert_int_eq(times(t, "bpf"), 3);
    ck_assert_int_eq(times(t, "keyctl"), 1);
    ck_assert_int_eq(times(t, "socket"), 1);
    ck_assert_int_eq(times(t, "mount"), 1);
    ck_assert_int_eq(times(t, "seccomp"), 1);
    ck_assert_int_eq(times(t, "clone3"), 0);
    ck_assert_ptr_nonnull(strstr(record_denied(r.ctx, t), "bpf 3 times, keyctl once"));
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* Four threads make calls that are all denied, for as long as the machine needs: shim and record
 * have what they had, and nobody else does anything for it. */
START_TEST(a_storm_costs_bounded_room)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    const long n = getenv("PADDOCK_LONG") != NULL ? 1000000 : 20000;
    struct rig r;
    struct got g;
    struct stat before, after;
    begin(&r);
    const char *list = "";
    for (size_t i = 0; i < DISTINCT; i++)
        list = mem_printf(r.ctx, "%s%d, ", list, denied_calls[i]);
    const char *script = mem_printf(r.ctx,
                                    "wrong = [t(bpf) != 1]\n"
                                    "def work():\n"
                                    "    for i in range(%ld): wrong[0] += t(bpf) != 1\n"
                                    "say('begin')\n"
                                    "wait('go')\n"
                                    "v = [threading.Thread(target=work) for i in range(4)]\n"
                                    "for x in v: x.start()\n"
                                    "for x in v: x.join()\n"
                                    "for i in [%s]: wrong[0] += t(i, *[-1] * 6) != 1\n"
                                    "say('wrong', int(wrong[0]))\n"
                                    "time.sleep(300)\n",
                                    n / 4, list);
    launch(&r, audited(&r, script), &g);
    rig_await(&r, "web", "begin");
    await_times(&r, g.record, "bpf", 1);
    pid_t shim = (pid_t)g.rec->shim_pid;
    long files = rig_fds(shim), kib = fact(shim, "status", "VmRSS:"),
         writes = fact(shim, "io", "syscw:"), warden = busy_ms(r.warden), own = busy_ms(shim);
    ck_assert_int_eq(fstat(g.record, &before), 0);
    go(&r, "go");
    int64_t begun = clock_mono_ns();
    rig_await(&r, "web", "wrong");
    rig_await(&r, "web", "wrong 0\n");
    await_times(&r, g.record, "bpf", n + 2);
    int64_t took = clock_mono_ns() - begun;
    printf("# %ld denied calls in %lld ms: shim %ld ms, warden %ld ms of processor\n", n,
           (long long)(took / NS_PER_MS), busy_ms(shim) - own, busy_ms(r.warden) - warden);
    ck_assert_int_le(busy_ms(r.warden) - warden, 20);
    ck_assert_int_eq(rig_fds(shim), files);
    ck_assert_int_le(fact(shim, "status", "VmRSS:"), kib + 8);
    ck_assert_int_le(fact(shim, "io", "syscw:") - writes, took / NS_PER_S + 4);
    ck_assert_int_eq(fstat(g.record, &after), 0);
    ck_assert_int_eq(after.st_size, before.st_size);
    struct task_record *t = NULL;
    await_times(&r, g.record, "others", DISTINCT - RECORD_CALLS_MAX);
    ck_assert_int_eq(record_read(r.ctx, g.record, &t), 0);
    ck_assert_uint_eq(t->denied.n, RECORD_CALLS_MAX + 1);
    ck_assert_int_eq(times(t, "bpf"), n + 2);
    ck_assert_int_eq(times(t, "others"), DISTINCT - RECORD_CALLS_MAX);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* Calls that do something where they are let through: a directory is made. */
static const char making[] =
    "path = ctypes.c_char_p(b'/local/made')\n"
    "def make(): return t(mkdirat, -100, ctypes.cast(path, ctypes.c_void_p).value, 0o777)\n"
    "say('first', make())\n"
    "wait('go')\n"
    "say('second', make())\n"
    "wait('again')\n"
    "say('third', make())\n"
    "wait('never')\n";

static struct launch_spec *
maker(struct rig *r)
{
    struct launch_spec *s = audited(r, making);
    list_add(s, s->isolation->seccomp->deny, "mkdir");
    list_add(s, s->isolation->seccomp->deny, "mkdirat");
    return s;
}

static void
nothing_made(struct rig *r)
{
    struct stat st;
    ck_assert_int_lt(
        stat(mem_printf(r->ctx, "%s/%s/web/local/made", r->policy.alloc_dir, rig_id), &st), 0);
}

/* A call waits in the kernel for its answer. */
static void
await_waiting(struct rig *r, pid_t pid)
{
    const char *path = mem_printf(r->ctx, "/proc/%d/syscall", (int)pid);
    const char *want = mem_printf(r->ctx, "%d ", SYS_mkdirat);
    int64_t end = clock_mono_ns() + 15 * NS_PER_S;
    for (;;) {
        char *text = NULL;
        if (file_read(r->ctx, AT_FDCWD, path, 4096, &text, NULL) == 0 && str_prefix(text, want))
            return;
        ck_assert_msg(clock_mono_ns() < end, "the call does not come: %s", text ? text : "?");
        rig_pause(10);
    }
}

/* A shim that is stopped answers nobody; killed, it takes the task with it. */
START_TEST(nothing_is_let_through_without_the_shim)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    begin(&r);
    launch(&r, maker(&r), &g);
    rig_await(&r, "web", mem_printf(r.ctx, "first %d\n", EPERM));
    pid_t shim = (pid_t)g.rec->shim_pid;
    ck_assert_int_eq(kill(shim, SIGSTOP), 0);
    go(&r, "go");
    await_waiting(&r, (pid_t)g.rec->pid);
    nothing_made(&r);
    ck_assert_int_eq(kill(shim, SIGCONT), 0);
    rig_await(&r, "web", mem_printf(r.ctx, "second %d\n", EPERM));
    await_times(&r, g.record, "mkdirat", 2);
    ck_assert_int_eq(kill(shim, SIGSTOP), 0);
    go(&r, "again");
    await_waiting(&r, (pid_t)g.rec->pid);
    ck_assert_int_eq(kill(shim, SIGKILL), 0);
    struct task_record *t = rig_end(&r, &g);
    while (!t->lost) { /* which its warden writes */
        rig_pause(10);
        ck_assert_int_eq(record_read(r.ctx, g.record, &t), 0);
    }
    ck_assert_int_eq(times(t, "mkdirat"), 2); /* of what came to the record */
    ck_assert_ptr_null(strstr(rig_file(&r, rig_id, "alloc/logs/web.stdout.0"), "third"));
    nothing_made(&r);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

static void
no_descriptors(pid_t shim)
{
    int st;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) /* as the shim's user: root may lack CAP_SYS_RESOURCE here */
        _exit(setresuid(CONFINE_SHIM_UID, CONFINE_SHIM_UID, CONFINE_SHIM_UID) < 0 ||
              prlimit(shim, RLIMIT_NOFILE, &(struct rlimit){0}, NULL) < 0);
    ck_assert_int_eq(waitpid(child, &st, 0), child);
    ck_assert_int_eq(st, 0);
}

/* A shim that may not watch its listener closes it: from then on the kernel refuses by itself. */
START_TEST(nothing_is_let_through_without_a_listener)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    begin(&r);
    launch(&r, maker(&r), &g);
    rig_await(&r, "web", mem_printf(r.ctx, "first %d\n", EPERM));
    long files = rig_fds((pid_t)g.rec->shim_pid);
    no_descriptors((pid_t)g.rec->shim_pid);
    go(&r, "go"); /* what wakes it */
    rig_await(&r, "web", "second");
    go(&r, "again");
    rig_await(&r, "web", mem_printf(r.ctx, "third %d\n", ENOSYS));
    ck_assert_int_eq(rig_fds((pid_t)g.rec->shim_pid), files - 1);
    nothing_made(&r);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* The listener is the shim's, which lives through the ends of all others. */
START_TEST(goes_on_with_another_warden)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g, a = {0};
    begin(&r);
    launch(&r, maker(&r), &g);
    rig_await(&r, "web", "first");
    rig_kill(&r, SIGKILL);
    rig_spawn(&r);
    rig_connect(&r);
    warden_adopt(r.client, rig_id, "web", rig_got, &a);
    rig_wait(&r, &a);
    ck_assert_msg(a.err.code == 0, "%s", a.err.text);
    go(&r, "go");
    rig_await(&r, "web", mem_printf(r.ctx, "second %d\n", EPERM));
    await_times(&r, a.record, "mkdirat", 2);
    nothing_made(&r);
    got_free(&a);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* A command in such a task has the plain filter: refused, and not counted. */
START_TEST(joined_commands_are_denied_without_a_count)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const char *const argv[] = {"/bin/mkdir", "/local/made"};
    struct rig r;
    struct got g, x = {0};
    begin(&r);
    launch(&r, maker(&r), &g);
    rig_await(&r, "web", "first");
    const struct exec_request q = {.command = {(const char **)(uintptr_t)argv, 2}};
    warden_exec(r.client, rig_id, "web", &q, rig_got, &x);
    rig_wait(&r, &x);
    ck_assert_msg(x.err.code == 0, "%s", x.err.text);
    struct exec_exit end = {-1, -1};
    struct pollfd p = {.fd = x.exit, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 15000), 1);
    ck_assert_int_eq(recv(x.exit, &end, sizeof(end), 0), sizeof(end));
    ck_assert_int_eq(end.code, 1);
    char text[256] = "";
    ck_assert_int_gt(read(x.exec[2], text, sizeof(text) - 1), 0);
    ck_assert_msg(strstr(text, "Operation not permitted") != NULL, "%s", text);
    go(&r, "go");
    rig_await(&r, "web", "second");
    await_times(&r, g.record, "mkdirat", 2);
    struct task_record *t = NULL;
    ck_assert_int_eq(record_read(r.ctx, g.record, &t), 0);
    ck_assert_int_eq(times(t, "mkdir") + times(t, "mkdirat"), 2);
    nothing_made(&r);
    got_free(&x);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* A launch that fails after its filter is there says why, at once, as without. */
START_TEST(a_start_that_fails_says_why)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    begin(&r);
    struct launch_spec *s = audited(&r, "");
    s->command = "/no/such/program";
    rig_launch(&r, s, &g);
    ck_assert_msg(strstr(g.err.text, "/no/such/program") != NULL, "%s", g.err.text);
    got_free(&g);
    list_add(s, s->isolation->seccomp->deny, "sendmsg");
    rig_launch(&r, s, &g);
    ck_assert_msg(strstr(g.err.text, "sendmsg") != NULL, "%s", g.err.text);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("audit", 120, denies_as_ever_and_counts, a_storm_costs_bounded_room,
                   nothing_is_let_through_without_the_shim,
                   nothing_is_let_through_without_a_listener, goes_on_with_another_warden,
                   joined_commands_are_denied_without_a_count, a_start_that_fails_says_why)
