/* SPDX-License-Identifier: Apache-2.0
 *
 * The attempts in a real exec task: agent's client, warden, shim, payload.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "isolation/launch/policy.h"
#include "isolation/probe.h"
#include "tests/attempts/check.h"
#include "tests/attempts/watch.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534, AGENT = 65533 };
static const char raw_id[] = "0000002b-89ab-cdef-0123-456789abcdef";

static const char *
local(const struct rig *r, const char *name)
{
    return mem_printf(r->ctx, "%s/%s/web/local/%s", r->policy.alloc_dir, rig_id, name);
}

/* Plants the files that the tasks of these tests find in their local/. */
static void
plant_all(struct rig *r)
{
    rig_plant(r, "attempt", "attempt", 0755);
    rig_plant(r, "attempt", "setuid-attempt", 04755);
    ck_assert_int_eq(mknod(local(r, "device"), S_IFCHR | 0666, makedev(1, 3)), 0);
    ck_assert_int_eq(chmod(local(r, "device"), 0666), 0);
}

static void
start(struct rig *r)
{
    /* the signals that a background shell ignores for its children must not reach a task so */
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGQUIT, SIG_IGN);
    rig_start(r, 0);
    rig_alloc(r, rig_id, "web", "exec");
    plant_all(r);
}

/* Post-conditions of every run: nothing of the host changed, the canary is unread, the warden
 * answers. */
static void
unharmed(struct rig *r, struct watch *w, const char *out)
{
    struct got g = {0};
    watch_end(w, out);
    int64_t begin = clock_mono_ns();
    warden_info(r->client, rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_lt(clock_mono_ns() - begin, NS_PER_S);
    got_free(&g);
}

static char *
run(struct rig *r, const struct launch_spec *s)
{
    struct watch w;
    struct got g, d = {0};
    watch_begin(&w, r->dir);
    rig_launch(r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    struct task_record *t = rig_end(r, &g);
    char *out = rig_file(r, rig_id, "alloc/logs/web.stdout.0");
    ck_assert_msg(t->exit_code == 0 && t->signal == 0, "exit code %d, signal %d: %s %s",
                  (int)t->exit_code, (int)t->signal, out,
                  rig_file(r, rig_id, "alloc/logs/web.stderr.0"));
    got_free(&g);
    warden_destroy(r->client, rig_id, "web", rig_got, &d);
    rig_wait(r, &d);
    ck_assert_msg(d.err.code == 0, "%s", d.err.text);
    got_free(&d);
    unharmed(r, &w, out);
    return out;
}

static void
refused(struct rig *r, const struct launch_spec *s, const char *what)
{
    struct got g;
    rig_launch(r, s, &g);
    ck_assert_msg(g.err.code != 0, "%s", what);
    ck_assert_msg(g.err.text[0] != 0, "%s", what);
    got_free(&g);
}

/* Listens where `attempt` tries to connect from inside. */
static int
listen_canary(void)
{
    static const char name[] = "paddock-attempt-canary";
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(a.sun_path + 1, name, sizeof(name) - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name));
    ck_assert_int_eq(bind(fd, (void *)&a, n), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

START_TEST(all_are_refused_in_an_exec_task)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    struct probe p;
    probe_run(&p, NULL);
    auto_fd int canary = listen_canary();
    char host[65] = "", buf[64];
    ck_assert_int_eq(gethostname(host, sizeof(host) - 1), 0);
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "exec /local/attempt");
    s->hostname = "attempt-box";
    const char *out = run(&r, s);
    int bad = attempt_table(out, attempt_expect, ARRAY_LEN(attempt_expect)) +
              attempt_table(out, attempt_expect_more, ARRAY_LEN(attempt_expect_more));
    ck_assert_msg(bad == 0, "%d attempts came out wrong: %s", bad, out);
    ck_assert_str_eq(attempt_result(out, "uid", buf), "65534");
    ck_assert_str_eq(attempt_result(out, "groups", buf), "1");
    ck_assert_str_eq(attempt_result(out, "setuid_binary", buf), "65534");
    ck_assert_str_eq(attempt_result(out, "hostname", buf), "attempt-box");
    /* older kernels cannot: the host's network namespace is shared, and doc/security.md says so */
    ck_assert_str_eq(attempt_result(out, "abstract_canary", buf),
                     p.landlock_abi >= 6 ? "EPERM" : "0");
    ck_assert_int_eq(accept(canary, NULL, NULL) >= 0, p.landlock_abi < 6);
    char after[65] = "";
    ck_assert_int_eq(gethostname(after, sizeof(after) - 1), 0);
    ck_assert_str_eq(host, after);
    rig_stop(&r);
}
END_TEST

/* Other profiles that an operator may choose: without a user namespace, and tasks that are root.
 * What comes out otherwise there is said here, the rest is as in the default one. */
struct profile {
    const char *name, *user, *userns;
    const struct attempt_expect *other;
    size_t n;
    bool audit; /* the filter tells what it denies */
};

/* The host's root without a capability and behind the filter: what root owns is in reach of the
 * mode bits alone, so what keeps it away is that it is not there, read-only, or in no rule of
 * Landlock's. Its shim is of another user, and what root owns of that in /proc is read-only. */
static const struct attempt_expect host_root[] = {
    {"A15", "set_uid_0", "0"},
    {"A15", "set_gid_0", "0"},
    {"A11", "pid1_fd", "0"}, /* the directory; what is in it is refused (pid1_root and the like) */
    {"A5", "pid1_files", "0"},
    {"B3", "lease_on_host_file", "0"},
    {"A24", "write_shell", "EROFS|ETXTBSY"}, /* while somebody runs it */
    {"A11", "pid1_mem", "EROFS"},
    {"A5", "pid1_task_mem", "EROFS"},
    {"A5", "pid1_oom", "EROFS"},
    {"A5", "pid1_oom_of_thread", "EROFS"},
    {"A5", "pid1_autogroup", "EROFS|ENOENT"},
    {"A5", "pid1_slack", "EROFS"},
    {"A5", "pid1_name", "EROFS"},
};
static const struct attempt_expect own_root[] = {
    {"A15", "set_uid_0", "0"},
    {"A15", "set_gid_0", "0"},
};

static const struct profile profiles[] = {
    {"nobody, the host's user namespace", "", "off", NULL, 0},
    {"root of its own user namespace", "root", "required", own_root, ARRAY_LEN(own_root)},
    {"root of the host", "root", "off", host_root, ARRAY_LEN(host_root)},
    {.name = "nobody, audited", .user = "", .userns = "required", .audit = true},
};

static const struct attempt_expect *
of_profile(const struct profile *p, const struct attempt_expect *t)
{
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->other[i].name, t->name) == 0)
            return &p->other[i];
    return t;
}

static int
check_profile(const struct profile *p, const char *out, const struct attempt_expect *t, size_t n)
{
    int bad = 0;
    for (size_t i = 0; i < n; i++)
        bad += !attempt_ok(out, of_profile(p, &t[i]));
    printf("# %s: %zu of %zu as expected\n", p->name, n - (size_t)bad, n);
    return bad;
}

/* An operator who denies somebody else, and whose agent is not root. */
static void
allow_root(struct rig *r)
{
    static const char *somebody[] = {"daemon"};
    r->policy.denied_users = (struct str_list){somebody, 1};
    r->policy.agent_uid = r->policy.agent_gid = AGENT;
}

static void
in_profile(const struct profile *p)
{
    struct rig r;
    rig_start(&r, 0);
    allow_root(&r);
    r.policy.userns = p->userns;
    rig_change_policy(&r);
    rig_alloc_as(&r, rig_id, "web", "exec", p->user);
    plant_all(&r);
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "exec /local/attempt");
    s->user = p->user;
    if (p->audit) {
        s->isolation->seccomp = type_new(s, &type_task_seccomp);
        s->isolation->seccomp->mode = "audit";
    }
    const char *out = run(&r, s);
    int bad = check_profile(p, out, attempt_expect, ARRAY_LEN(attempt_expect)) +
              check_profile(p, out, attempt_expect_more, ARRAY_LEN(attempt_expect_more));
    ck_assert_msg(bad == 0, "%s: %d attempts came out wrong", p->name, bad);
    rig_stop(&r);
}

START_TEST(in_the_user_namespace_of_the_host)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    in_profile(&profiles[0]);
}
END_TEST

START_TEST(as_root_of_its_user_namespace)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    TEST_NEED("userns");
    in_profile(&profiles[1]);
}
END_TEST

/* Each with the same answer as of the plain filter. */
START_TEST(in_an_audited_task)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    TEST_NEED("userns");
    in_profile(&profiles[3]);
}
END_TEST

START_TEST(as_root_of_the_host)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    in_profile(&profiles[2]);
}
END_TEST

/* A1: a script whose interpreter is the program that is about to start it, which is the shim. */
START_TEST(the_launcher_is_no_interpreter)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    static const char *const interpreters[] = {"/proc/self/exe", "/proc/1/exe", "/proc/self/fd/3",
                                               "/proc/thread-self/exe"};
    allow_root(&r);
    r.policy.userns = "off"; /* the worst: the host's root owns what it would overwrite */
    rig_change_policy(&r);
    for (size_t i = 0; i < ARRAY_LEN(interpreters); i++) {
        const char *text = mem_printf(r.ctx, "#!%s\n", interpreters[i]);
        ck_assert_int_eq(file_write_atomic(AT_FDCWD, local(&r, "script"), text, strlen(text), 0755),
                         0);
        struct watch w;
        struct got g;
        watch_begin(&w, r.dir);
        struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "");
        s->user = "root";
        s->command = "/local/script";
        rig_launch(&r, s, &g);
        ck_assert_msg(g.err.code != 0, "%s was the interpreter", interpreters[i]);
        got_free(&g);
        unharmed(&r, &w, NULL);
    }
    rig_stop(&r);
}
END_TEST

/* A57: whatever a server sends, a driver that the operator did not allow is not run; nor is one
 * that calls itself otherwise. */
START_TEST(drivers_that_are_off)
{
    TEST_NEED("root");
    static const char *only[] = {"exec"};
    static const char *const names[] = {"raw_exec", "docker",     "qemu",      "java",
                                        "podman",   "Raw_exec",   "raw_exec ", "exec,raw_exec",
                                        "",         "mock_driver"};
    struct rig r;
    struct watch w;
    start(&r);
    r.policy.raw_exec = false;
    r.policy.drivers = (struct str_list){only, 1};
    rig_change_policy(&r);
    watch_begin(&w, r.dir);
    for (int isolated = 0; isolated < 2; isolated++)
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
            struct launch_spec *s = rig_spec(&r, rig_id, "web", isolated, "true");
            s->driver = names[i];
            struct got g;
            rig_launch(&r, s, &g);
            ck_assert_msg(g.err.code != 0, "driver \"%s\" was started", names[i]);
            got_free(&g);
            (void)warden_client_ready(r.client);
            if (warden_client_fd(r.client) < 0) /* no driver at all is no request */
                rig_connect(&r);
        }
    struct launch_spec *s = rig_spec(&r, rig_id, "web", false, "true");
    s->driver = "exec"; /* the name of one that is on, without its sandbox */
    refused(&r, s, "exec that is not isolated");
    unharmed(&r, &w, NULL);
    printf("# A57 refused (%zu of %zu)\n", 2 * ARRAY_LEN(names) + 1, 2 * ARRAY_LEN(names) + 1);
    rig_stop(&r);
}
END_TEST

/* So that the tests above can fail. */
START_TEST(some_succeed_without_the_filter)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    r.policy.seccomp = false;
    rig_change_policy(&r);
    const char *out =
        run(&r, rig_spec(&r, rig_id, "web", true,
                         "exec /local/attempt unshare_user ptrace_traceme keyctl_join "
                         "io_uring caps no_new_privs mount_tmpfs"));
    int bad = attempt_check(out, attempt_unfiltered, ARRAY_LEN(attempt_unfiltered));
    ck_assert_msg(bad == 0, "%d attempts did not succeed: %s", bad, out);
    static const struct attempt_expect still[] = {
        {"A15", "caps", "0"}, {"A15", "no_new_privs", "1"}, {"A24", "mount_tmpfs", "EPERM"}};
    ck_assert_msg(attempt_check(out, still, ARRAY_LEN(still)) == 0, "%s", out);
    rig_stop(&r);
}
END_TEST

/* A50: nobody becomes root by spelling it otherwise; before anything is started. */
START_TEST(root_by_no_spelling)
{
    TEST_NEED("root");
    static const char *const users[] = {"root",        "0",          "0:0",    "+0", " 0",
                                        "00",          "0x0",        "-0",     "#0", "root:root",
                                        "nobody:root", "4294967296", "../root"};
    struct rig r;
    start(&r);
    for (int isolated = 0; isolated < 2; isolated++)
        for (size_t i = 0; i < ARRAY_LEN(users); i++) {
            struct launch_spec *s = rig_spec(&r, rig_id, "web", isolated, "true");
            s->user = users[i];
            refused(&r, s, users[i]);
        }
    rig_stop(&r);
}
END_TEST

/* A2: a working directory that is a leaked fd, or climbs, does not start. */
START_TEST(working_directories_stay_inside)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    for (int fd = 3; fd <= 40; fd++) {
        struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "true");
        s->work_dir = mem_printf(r.ctx, "/proc/self/fd/%d", fd);
        refused(&r, s, s->work_dir);
        s->work_dir = mem_printf(r.ctx, "/proc/self/fd/%d/../..", fd);
        refused(&r, s, s->work_dir);
        s->work_dir = "/";
        s->command = mem_printf(r.ctx, "/proc/self/fd/%d", fd);
        refused(&r, s, s->command);
    }
    struct launch_spec *s =
        rig_spec(&r, rig_id, "web", true, "pwd; ls -d /root /var /work 2>&1 | wc -l");
    s->work_dir = "/local/../../../..";
    struct got g;
    rig_launch(&r, s, &g);
    if (g.err.code == 0) { /* in the task's root ".." ends at the top */
        (void)rig_end(&r, &g);
        const char *out = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
        ck_assert_msg(strncmp(out, "/\n", 2) == 0, "%s", out);
    }
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* A4, the standing part: links that a task leaves in its root for the next start. */
START_TEST(planted_links_stop_the_next_start)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    static const char *const places[] = {"proc", "dev", "sys", "alloc", "secrets", "usr", "etc"};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        const char *at = mem_printf(r.ctx, "%s/%s/web/%s", r.policy.alloc_dir, rig_id, places[i]);
        (void)rmdir(at);
        ck_assert_int_eq(symlink("/etc", at), 0);
        refused(&r, rig_spec(&r, rig_id, "web", true, "true"), places[i]);
        ck_assert_int_eq(unlink(at), 0);
    }
    /* and nothing is broken for good */
    (void)run(&r, rig_spec(&r, rig_id, "web", true, "true"));
    rig_stop(&r);
}
END_TEST

/* One start of the task db with a mount where web exchanges a directory and a link; whether it
 * started. */
static bool
mount_in_a_race(struct rig *r, const char *source)
{
    struct launch_spec *s = rig_spec(
        r, rig_id, "db", true,
        "for d in / /etc /usr /proc/1 /alloc /local; do test ! -e $d/mark || echo $d; done");
    struct launch_mount *m = type_new(s, &type_launch_mount);
    *m = (struct launch_mount){.source = source, .target = "/alloc/data/spot", .read_only = true};
    list_add(s, s->mounts, m);
    struct got g, d = {0};
    rig_launch(r, s, &g);
    bool started = g.err.code == 0;
    if (started)
        ck_assert_int_eq(rig_end(r, &g)->exit_code, 0);
    got_free(&g);
    if (started)
        ck_assert_str_eq(rig_file(r, rig_id, "alloc/logs/db.stdout.0"), "");
    warden_destroy(r->client, rig_id, "db", rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
    talloc_free(s);
    return started;
}

/* A4, the race. */
START_TEST(places_of_mounts_are_not_exchanged)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const char *const links[] = {"/", "/etc", "../../../../..", "/proc/1/root/etc"};
    const char *many = getenv("PADDOCK_LONG");
    size_t rounds = many != NULL && *many == '1' ? 150 : 60, started = 0, refused_ = 0;
    struct rig r;
    struct watch w;
    start(&r);
    static const char *allowed[1];
    allowed[0] = mem_printf(r.ctx, "%s/allowed", r.dir);
    ck_assert_int_eq(mkdir(allowed[0], 0755), 0);
    ck_assert_int_eq(
        file_write_atomic(AT_FDCWD, mem_printf(r.ctx, "%s/mark", allowed[0]), "x", 1, 0644), 0);
    r.policy.bind_allowed = (struct str_list){allowed, 1};
    rig_change_policy(&r);
    rig_alloc(&r, rig_id, "db", "exec");
    watch_begin(&w, r.dir);
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        struct got g, d = {0};
        const char *script = mem_printf(
            r.ctx,
            "cd /alloc/data; rm -rf spot link; mkdir spot; ln -s %s link; : >/local/ready%zu;"
            "exec /local/attempt -swap /alloc/data/spot /alloc/data/link",
            links[i], i);
        rig_launch(&r, rig_spec(&r, rig_id, "web", true, script), &g);
        ck_assert_msg(g.err.code == 0, "%s", g.err.text);
        while (access(local(&r, mem_printf(r.ctx, "ready%zu", i)), F_OK) < 0)
            rig_pause(2); /* else the place is made by the other task's start, and root's */
        for (size_t k = 0; k < rounds; k++)
            *(mount_in_a_race(&r, allowed[0]) ? &started : &refused_) += 1;
        got_free(&g);
        warden_kill(r.client, rig_id, "web", rig_got, &d);
        rig_wait(&r, &d);
        got_free(&d);
        d = (struct got){0};
        warden_destroy(r.client, rig_id, "web", rig_got, &d);
        rig_wait(&r, &d);
        got_free(&d);
    }
    unharmed(&r, &w, NULL);
    printf("# A4 refused (%zu), mounted on the directory (%zu)\n", refused_, started);
    ck_assert_msg(started > 0 && refused_ > 0, "%zu started, %zu refused: that was no race",
                  started, refused_);
    rig_stop(&r);
}
END_TEST

/* A link that the operator makes is followed; only tasks are not trusted. */
START_TEST(data_directory_behind_a_link)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    ck_assert_int_eq(symlink("data", mem_printf(r.ctx, "%s/link", r.dir)), 0);
    ck_assert_int_eq(symlink("run", mem_printf(r.ctx, "%s/runlink", r.dir)), 0);
    r.policy.data_dir = mem_printf(r.ctx, "%s/link", r.dir);
    r.policy.alloc_dir = mem_printf(r.ctx, "%s/link/alloc", r.dir);
    r.policy.run_dir = mem_printf(r.ctx, "%s/runlink", r.dir);
    rig_change_policy(&r);
    const char *out =
        run(&r, rig_spec(&r, rig_id, "web", true, "test -e /alloc/data && echo fine"));
    ck_assert_str_eq(out, "fine\n");
    rig_stop(&r);
}
END_TEST

START_TEST(raw_exec_has_default_signals_too)
{
    TEST_NEED("root");
    struct rig r;
    start(&r);
    const char *out = run(&r, rig_spec(&r, rig_id, "web", false, "grep SigIgn /proc/self/status"));
    ck_assert_str_eq(out, "SigIgn:\t0000000000000000\n");
    rig_stop(&r);
}
END_TEST

/* Opens the file as another user of the host: 0 or -errno. */
static int
as_nobody(const char *path)
{
    int st;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
            setresuid(NOBODY, NOBODY, NOBODY) < 0)
            _exit(255);
        _exit(open(path, O_PATH | O_CLOEXEC) < 0 ? errno : 0);
    }
    ck_assert_int_eq(waitpid(pid, &st, 0), pid);
    ck_assert(WIFEXITED(st) && WEXITSTATUS(st) != 255);
    return -WEXITSTATUS(st);
}

/* B7: a program that root of a user namespace made setuid is setuid-root on the disk, and
 * /alloc/data may be written by all: no user of the host gets there. What raw_exec opens is told by
 * README. */
START_TEST(users_of_the_host_are_kept_out)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    static const char *const paths[] = {
        "", "/web", "/web/local/setuid-attempt", "/alloc/data", "/alloc/tmp", "/alloc/logs"};
    struct rig r;
    start(&r);
    r.policy.raw_exec = false; /* else the bits are denied */
    rig_change_policy(&r);
    (void)run(&r, rig_spec(&r, rig_id, "web", true, "cp /bin/true /local/x; chmod 6755 /local/x"));
    for (size_t i = 1; i < ARRAY_LEN(paths); i++)
        ck_assert_int_eq(
            as_nobody(mem_printf(r.ctx, "%s/%s%s", r.policy.alloc_dir, rig_id, paths[i])), -EACCES);
    r.policy.raw_exec = true;
    rig_change_policy(&r);
    rig_alloc(&r, raw_id, "raw", "raw_exec");
    struct got g;
    rig_launch(&r, rig_spec(&r, raw_id, "raw", false, "pwd"), &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 0);
    got_free(&g);
    ck_assert_int_eq(as_nobody(mem_printf(r.ctx, "%s/%s/raw", r.policy.alloc_dir, raw_id)), 0);
    struct stat st;
    ck_assert_int_eq(stat(mem_printf(r.ctx, "%s/%s", r.policy.alloc_dir, raw_id), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0711); /* walked through, not listed */
    rig_stop(&r);
}
END_TEST

/* A16-like without controllers: children that daemonise end with the task (A58). */
START_TEST(nothing_outlives_the_task)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    start(&r);
    struct got g, d = {0};
    rig_launch(
        &r,
        rig_spec(&r, rig_id, "web", true,
                 "trap '' TERM HUP; for i in 1 2 3 4 5 6 7 8 9 10; do"
                 " (setsid sh -c 'while :; do sleep 100 & wait; done' &) & done; wait; exit 0"),
        &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    (void)rig_end(&r, &g);
    got_free(&g);
    warden_destroy(r.client, rig_id, "web", rig_got, &d);
    rig_wait(&r, &d);
    ck_assert_msg(d.err.code == 0, "%s", d.err.text);
    got_free(&d);
    rig_stop(&r); /* checks that no cgroup is left */
}
END_TEST

TEST_SUITE_TIMEOUT("attempts", 60, all_are_refused_in_an_exec_task, some_succeed_without_the_filter,
                   in_the_user_namespace_of_the_host, as_root_of_its_user_namespace,
                   as_root_of_the_host, in_an_audited_task, the_launcher_is_no_interpreter,
                   drivers_that_are_off, root_by_no_spelling, working_directories_stay_inside,
                   planted_links_stop_the_next_start, places_of_mounts_are_not_exchanged,
                   data_directory_behind_a_link, raw_exec_has_default_signals_too,
                   users_of_the_host_are_kept_out, nothing_outlives_the_task)
