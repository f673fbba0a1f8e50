/* SPDX-License-Identifier: Apache-2.0
 *
 * User namespaces of real tasks: a range per allocation, sane owners on disk, and what the policy
 * says where the job, a capability or the operator wants another.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/policy.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534 };
static const char other_id[] = "0000002b-89ab-cdef-0123-456789abcdef";

static void
start(struct rig *r)
{
    rig_start(r, 0);
    rig_alloc(r, rig_id, "web", "exec");
}

/* Output of a task that ends, and the uid in its record. */
static char *
run(struct rig *r, const struct launch_spec *s, int64_t *uid)
{
    struct got g, d = {0};
    rig_launch(r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    struct task_record *t = rig_end(r, &g);
    char *out = rig_file(r, rig_id, "alloc/logs/web.stdout.0");
    ck_assert_msg(t->exit_code == 0, "exit code %d: %s%s", (int)t->exit_code, out,
                  rig_file(r, rig_id, "alloc/logs/web.stderr.0"));
    if (uid)
        *uid = t->uid;
    got_free(&g);
    warden_destroy(r->client, rig_id, "web", rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
    return out;
}

static bool
in_host_namespace(struct rig *r, const struct launch_spec *s)
{
    int64_t uid = 0;
    const char *out = run(r, s, &uid);
    ck_assert_int_eq(str_suffix(out, "4294967295\n"), uid == NOBODY); /* the log goes on */
    return uid == NOBODY;
}

static void
refused(struct rig *r, const struct launch_spec *s, const char *why)
{
    struct got g;
    rig_launch(r, s, &g);
    ck_assert_msg(g.err.code != 0 && strstr(g.err.text, why), "%s: \"%s\"", why, g.err.text);
    got_free(&g);
}

START_TEST(a_range_and_sane_owners)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    int64_t uid;
    const char *out = run(&r,
                          rig_spec(&r, rig_id, "web", true,
                                   "read a b c < /proc/self/uid_map; echo $a $b $c; id -u; "
                                   "touch /local/mine /alloc/data/shared /secrets/s /top && "
                                   "stat -c %u /local/mine /secrets /; echo hello > /dev/stdout"),
                          &uid);
    const char *want =
        mem_printf(r.ctx, "0 %u 65536\n65534\n65534\n65534\n65534\nhello\n", POLICY_RANGE_BASE);
    ck_assert_str_eq(out, want);
    ck_assert_int_eq(uid, POLICY_RANGE_BASE + NOBODY);
    static const char *const files[] = {"web/local/mine", "alloc/data/shared", "web/top"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        struct stat st;
        const char *at = mem_printf(r.ctx, "%s/%s/%s", r.policy.alloc_dir, rig_id, files[i]);
        ck_assert_msg(stat(at, &st) == 0 && st.st_uid == NOBODY, "%s: %d", at, (int)st.st_uid);
    }
    rig_stop(&r);
}
END_TEST

static int64_t
launch_sleeper(struct rig *r, const char *id, const char *task)
{
    struct got g;
    rig_launch(r, rig_spec(r, id, task, true, "exec sleep 1000"), &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    int64_t uid = g.rec->uid;
    got_free(&g);
    return uid;
}

START_TEST(one_range_per_allocation_over_a_restart)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    rig_alloc(&r, rig_id, "aside", "exec");
    rig_alloc(&r, other_id, "web", "exec");
    int64_t first = launch_sleeper(&r, rig_id, "web");
    int64_t second = launch_sleeper(&r, other_id, "web");
    ck_assert_int_ne(first, second);
    ck_assert_int_eq(first % 65536, NOBODY);
    rig_kill(&r, SIGKILL);
    rig_spawn(&r);
    warden_client_free(r.client);
    r.client = warden_client_new(r.ctx, r.socket);
    rig_connect(&r);
    ck_assert_int_eq(launch_sleeper(&r, rig_id, "aside"), first);
    rig_stop(&r);
}
END_TEST

/* Three allocations and two ranges: one without a task gives its own away. */
START_TEST(ranges_of_the_idle_are_given_away)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    r.policy.userns_count = 2;
    rig_change_policy(&r);
    static const char third[] = "33333333-3333-4333-8333-333333333333";
    rig_alloc(&r, rig_id, "web", "exec");
    rig_alloc(&r, other_id, "web", "exec");
    rig_alloc(&r, third, "web", "exec");
    int64_t a = launch_sleeper(&r, third, "web"), b = launch_sleeper(&r, rig_id, "web");
    ck_assert_int_ne(a, b);
    refused(&r, rig_spec(&r, other_id, "web", true, "true"), "no range of user ids is left");
    rig_stop(&r);
}
END_TEST

/* Uses up what the kernel counts by user, as far as it gets, and keeps it. */
static const char greedy[] =
    "import ctypes, os, signal, time\n"
    "libc = ctypes.CDLL(None)\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, {34})\n"
    "watches = 0\n"
    "while libc.inotify_init1(0) >= 0: watches += 1\n"
    "signals = 0\n"
    "while libc.sigqueue(os.getpid(), 34, None) == 0: signals += 1\n"
    "print(signals, 'used up', flush=True)\n"
    "time.sleep(1000)\n";
/* And so does who comes later. */
static const char modest[] =
    "import ctypes, os, signal\n"
    "libc = ctypes.CDLL(None)\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, {34})\n"
    "timer = ctypes.c_void_p()\n"
    "print(all(libc.inotify_init1(0) >= 0 for i in range(8)),\n"
    "      all(libc.sigqueue(os.getpid(), 34, None) == 0 for i in range(100)),\n"
    "      libc.timer_create(1, None, ctypes.byref(timer)) == 0)\n";

START_TEST(what_a_task_uses_up_is_its_allocations_alone)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    start(&r);
    rig_alloc(&r, other_id, "aside", "exec");
    rig_launch(&r, rig_python(&r, "web", true, greedy), &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
    rig_await(&r, "web", "used up\n");
    for (int i = 0; i < 8; i++) { /* root of the host */
        auto_fd int fd = inotify_init1(IN_CLOEXEC);
        ck_assert_msg(fd >= 0, "inotify_init1: %s", strerror(errno));
    }
    sigset_t set;
    timer_t timer;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    ck_assert_int_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    for (int i = 0; i < 100; i++)
        ck_assert_msg(sigqueue(getpid(), SIGRTMIN, (union sigval){0}) == 0, "%s", strerror(errno));
    ck_assert_msg(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0, "%s", strerror(errno));
    struct launch_spec *s = rig_python(&r, "aside", true, modest);
    s->alloc_id = other_id;
    rig_launch(&r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    (void)rig_end(&r, &g);
    got_free(&g);
    ck_assert_str_eq(rig_file(&r, other_id, "alloc/logs/aside.stdout.0"), "True True True\n");
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stdout.0"), "8192 used up\n");
    rig_stop(&r);
}
END_TEST

START_TEST(what_the_policy_says)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    static const char show[] = "cat /proc/self/uid_map";
    struct launch_spec *plain = rig_spec(&r, rig_id, "web", true, show);
    struct launch_spec *asks = rig_spec(&r, rig_id, "web", true, show);
    struct launch_spec *net = rig_spec(&r, rig_id, "web", true, show);
    struct launch_spec *own = rig_spec(&r, rig_id, "web", true, show);
    asks->isolation->userns = "host";
    list_add(r.ctx, net->cap_add, "net_bind_service");
    list_add(r.ctx, own->cap_add, "chown");
    refused(&r, asks, "userns_host");
    list_add(r.ctx, r.policy.allowed_caps, "net_bind_service");
    list_add(r.ctx, r.policy.allowed_caps, "chown");
    r.policy.userns_host = true;
    rig_change_policy(&r);
    ck_assert(!in_host_namespace(&r, plain));
    ck_assert(!in_host_namespace(&r, own));
    ck_assert(in_host_namespace(&r, asks));
    ck_assert(in_host_namespace(&r, net));
    r.policy.userns = "required";
    rig_change_policy(&r);
    ck_assert(!in_host_namespace(&r, plain));
    refused(&r, net, "requires");
    r.policy.userns = "off";
    rig_change_policy(&r);
    ck_assert(in_host_namespace(&r, plain));
    rig_stop(&r);
}
END_TEST

/* Files that root of a user namespace writes to a path of the host are root's there. */
static const char leave_setuid[] =
    "import errno, os, stat\n"
    "bad = []\n"
    "def t(name, f):\n"
    "    try: f(); bad.append(name)\n"
    "    except OSError as e: e.errno == errno.EPERM or bad.append((name, e))\n"
    "os.umask(0)\n"
    "f = '/v/file'\n"
    "fd = os.open(f, os.O_CREAT | os.O_RDWR, 0o755)\n"
    "for mode in (0o4755, 0o2755, 0o6711):\n"
    "    t('chmod', lambda: os.chmod(f, mode))\n"
    "    t('fchmod', lambda: os.fchmod(fd, mode))\n"
    "    t('fchmodat', lambda: os.chmod('file', mode, dir_fd=os.open('/v', 0)))\n"
    "    t('open', lambda: os.open('/v/new', os.O_CREAT | os.O_WRONLY, mode))\n"
    "    t('tmpfile', lambda: os.open('/v', os.O_TMPFILE | os.O_WRONLY, mode))\n"
    "    t('mknod', lambda: os.mknod('/v/node', stat.S_IFREG | mode))\n"
    "os.chmod(f, 0o1711)\n"
    "os.close(os.open('/v', os.O_TMPFILE | os.O_RDWR, 0o644))\n"
    "print(os.getuid(), bad)\n";

/* A task without a sandbox in the same allocation walks through its directory, and with it whoever runs as
 * that user: a setuid file that a sandboxed one leaves there would be root's of the host. */
START_TEST(a_neighbour_without_a_sandbox_finds_no_setuid_file)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    r.policy.agent_uid = r.policy.agent_gid = 4321;
    r.policy.denied_users = (struct str_list){0};
    r.policy.userns_root = true;
    list_add(r.ctx, r.policy.allowed_caps, "setfcap");
    rig_change_policy(&r);
    struct launch_spec *s =
        rig_spec(&r, rig_id, "web", true,
                 "cd /alloc/data; cp /usr/bin/id id; chmod 4755 id 2>&1; stat -c %a id");
    s->user = "root";
    const char *out = run(&r, s, NULL);
    ck_assert_msg(strstr(out, "Operation not permitted\n755\n") != NULL, "%s", out);
    list_add(r.ctx, s->cap_add, "setfcap");
    refused(&r, s, "setfcap");
    r.policy.raw_exec = false; /* nobody comes by: it may */
    rig_change_policy(&r);
    s->cap_add.n = 0;
    ck_assert_str_eq(strstr(run(&r, s, NULL), "\n755\n") + 5, "4755\n");
    rig_stop(&r);
}
END_TEST

START_TEST(root_of_a_user_namespace_leaves_nobody_a_setuid_file)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct stat st;
    start(&r);
    const char *dir = mem_printf(r.ctx, "%s/volume", r.dir);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    r.policy.denied_users = (struct str_list){0};
    r.policy.agent_uid = r.policy.agent_gid = 4321; /* else root is the agent's own user */
    list_add(r.ctx, r.policy.bind_allowed, dir);
    list_add(r.ctx, r.policy.allowed_caps, "setfcap");
    list_add(r.ctx, r.policy.allowed_caps, "net_bind_service");
    rig_change_policy(&r);
    struct launch_mount m = {.source = dir, .target = "/v"};
    struct task_seccomp own = {0};
    struct launch_spec *s = rig_python(&r, "web", true, leave_setuid);
    struct launch_spec *low = rig_spec(&r, rig_id, "web", true, "id -u");
    struct launch_spec *raw = rig_spec(&r, rig_id, "web", false, "id -u");
    s->user = low->user = raw->user = "root";
    list_add(r.ctx, low->cap_add, "net_bind_service");
    list_add(r.ctx, s->mounts, &m);
    refused(&r, s, "denied by policy");
    r.policy.userns_root = true;
    rig_change_policy(&r);
    refused(&r, raw, "isolation.userns_root"); /* nor root of the host, by no way */
    refused(&r, low, "isolation.userns_root");
    ck_assert_str_eq(run(&r, s, NULL), "0 []\n");
    own.allow = (struct str_list){(const char *[]){"chmod"}, 1}; /* changes nothing */
    s->isolation->seccomp = &own;
    ck_assert_ptr_nonnull(strstr(run(&r, s, NULL), "0 []\n0 []\n"));
    ck_assert(stat(mem_printf(r.ctx, "%s/file", dir), &st) == 0 && st.st_uid == 0);
    ck_assert_uint_eq(st.st_mode & 07777, 01711);
    list_add(r.ctx, s->cap_add, "setfcap");
    refused(&r, s, "setfcap");
    rig_stop(&r);
}
END_TEST

START_TEST(bad_policies)
{
    struct err e = ERR_INIT;
    struct policy p = {.data_dir = "/d", .alloc_dir = "/d/a", .run_dir = "/r", .userns = "on"};
    ck_assert_int_lt(policy_check(&p, &e), 0);
    p.userns = "auto";
    p.userns_base = 65537;
    ck_assert_int_lt(policy_check(&p, NULL), 0);
    p.userns_base = 4294901760;
    p.userns_count = 2;
    ck_assert_int_lt(policy_check(&p, NULL), 0);
    p.userns_base = 0;
    ck_assert_int_eq(policy_check(&p, NULL), 0);
}
END_TEST

TEST_SUITE_TIMEOUT("userns", 60, a_range_and_sane_owners, one_range_per_allocation_over_a_restart,
                   ranges_of_the_idle_are_given_away,
                   what_a_task_uses_up_is_its_allocations_alone, what_the_policy_says,
                   a_neighbour_without_a_sandbox_finds_no_setuid_file,
                   root_of_a_user_namespace_leaves_nobody_a_setuid_file, bad_policies)
