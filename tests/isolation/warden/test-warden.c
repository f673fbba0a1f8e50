/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden, its shim and its client, with real processes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/launch/proto.h"
#include "isolation/launch/record.h"
#include "isolation/proc.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534 };

static void
expect_code(struct rig *r, struct got *g, int code, const char *text)
{
    rig_wait(r, g);
    ck_assert_msg(g->err.code == -code, "expected %d (%s), got %d: %s", code, err_name(code),
                  g->err.code, g->err.text);
    ck_assert_msg(text == NULL || strstr(g->err.text, text) != NULL, "\"%s\" not in: %s", text,
                  g->err.text);
    got_free(g);
}

static void
run_to_end(struct rig *r, bool isolated, const char *script, int exit_code)
{
    struct got g, d = {0};
    rig_launch(r, rig_spec(r, rig_id, "web", isolated, script), &g);
    struct task_record *t = rig_end(r, &g);
    ck_assert_int_gt(t->finished_at, 0);
    ck_assert_msg(t->exit_code == exit_code && t->signal == 0, "exit code %d signal %d; stderr: %s",
                  (int)t->exit_code, (int)t->signal,
                  rig_file(r, rig_id, "alloc/logs/web.stderr.0"));
    got_free(&g);
    warden_destroy(r->client, rig_id, "web", rig_got, &d);
    expect_code(r, &d, 0, NULL);
}

static void
raw(uid_t uid)
{
    struct rig r;
    rig_start(&r, uid);
    rig_alloc(&r, rig_id, "web", "raw_exec");
    run_to_end(&r, false, "echo out; echo err >&2; id -u; pwd; exit 3", 3);
    char *want = mem_printf(r.ctx, "out\n%d\n%s/%s/web\n", NOBODY, r.policy.alloc_dir, rig_id);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stdout.0"), want);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stderr.0"), "err\n");
    rig_stop(&r);
}

START_TEST(runs_raw_exec)
{
    TEST_NEED("root");
    raw(0);
}
END_TEST

START_TEST(runs_raw_exec_rootless)
{
    TEST_NEED("root");
    raw(NOBODY);
}
END_TEST

/* Without systemd the agents of a machine share the cgroup of all tasks: one that ends leaves it to the
 * others. */
START_TEST(two_wardens_share_a_cgroup)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig one, other;
    rig_start(&one, 0);
    rig_start(&other, 0);
    other.policy.cgroup_root = one.policy.cgroup_root;
    rig_change_policy(&other);
    rig_kill(&other, SIGUSR1);
    ck_assert_msg(access(one.policy.cgroup_root, F_OK) == 0, "it was removed");
    rig_alloc(&one, rig_id, "web", "exec");
    run_to_end(&one, true, "true", 0);
    rig_stop(&one); /* which looks that it is gone */
    rig_stop(&other);
}
END_TEST

START_TEST(runs_exec)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    run_to_end(&r, true,
               "id -u; pwd; echo $$; hostname; cat /proc/self/cgroup | tail -1; touch here; "
               "grep CapEff /proc/self/status; ls /proc/self/fd | wc -l; exit 7",
               7);
    char *out = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
    ck_assert_msg(strstr(out, "65534\n/\n2\n") == out, "%s", out);
    ck_assert_msg(strstr(out, "0::/\n") != NULL, "%s", out);
    ck_assert_msg(strstr(out, "CapEff:\t0000000000000000\n") != NULL, "%s", out);
    rig_stop(&r);
}
END_TEST

static void
destroy(struct rig *r, const char *task)
{
    struct got d = {0};
    warden_destroy(r->client, rig_id, task, rig_got, &d);
    expect_code(r, &d, 0, NULL);
}

/* A filter of the job's own goes in last: what comes before need not be allowed by it. */
START_TEST(what_a_start_needs_may_be_denied)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "pwd; cd / && echo here");
    s->work_dir = "/local";
    s->isolation->seccomp = type_new(s, &type_task_seccomp);
    list_add(s, s->isolation->seccomp->deny, "fchdir");
    list_add(s, s->isolation->seccomp->deny, "chdir");
    list_add(s, s->isolation->seccomp->deny, "openat2");
    list_add(s, s->isolation->seccomp->deny, "futex");
    rig_launch(&r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 2); /* of the shell: it cannot cd */
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stdout.0"), "/local\n");
    got_free(&g);
    rig_stop(&r);
}
END_TEST

START_TEST(a_closed_directory_of_path_holds_nothing)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc_as(&r, rig_id, "web", "raw_exec", "nobody");
    const char *closed = mem_printf(r.ctx, "%s/closed", r.dir);
    const char *open = mem_printf(r.ctx, "%s/open", r.dir);
    ck_assert_int_eq(chmod(r.dir, 0711), 0);
    ck_assert_int_eq(mkdir(closed, 0700), 0);
    ck_assert_int_eq(mkdir(open, 0755), 0);
    auto_fd int fd = creat(mem_printf(r.ctx, "%s/no-program", open), 0644);
    ck_assert_int_ge(fd, 0);
    struct launch_spec *s = rig_spec(&r, rig_id, "web", false, "true");
    s->user = "nobody";
    s->env.v[0] = mem_printf(s, "PATH=%s:%s:/usr/bin:/bin", closed, open);
    s->command = "no-such-program";
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ENOENT, "not found in the task's directory or its PATH");
    s->command = "no-program";
    rig_launch(&r, s, &g);
    expect_code(&r, &g, EACCES, "execute \"no-program\"");
    s->command = "sh";
    rig_launch(&r, s, &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 0);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

START_TEST(reports_failed_launches)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    for (int isolated = 0; isolated < 2; isolated++) {
        struct launch_spec *s = rig_spec(&r, rig_id, "web", isolated, "true");
        s->command = "/no/such/program";
        rig_launch(&r, s, &g);
        expect_code(&r, &g, ENOENT, "execute \"/no/such/program\"");
        s->command = "/etc/passwd";
        rig_launch(&r, s, &g);
        expect_code(&r, &g, EACCES, "execute \"/etc/passwd\"");
        s->command = "/bin/sh";
        s->work_dir = "/no/such/dir";
        rig_launch(&r, s, &g);
        expect_code(&r, &g, ENOENT, "working directory \"/no/such/dir\"");
        struct got l = {0};
        warden_list(r.client, NULL, NULL, rig_got, &l);
        rig_wait(&r, &l);
        ck_assert_uint_eq(l.n_records, 0);
        got_free(&l);
    }
    /* nothing is left: neither cgroups nor records, and the task can be launched */
    ck_assert_int_eq(access(mem_printf(r.ctx, "%s/%s", r.policy.cgroup_root, rig_id), F_OK), -1);
    ck_assert_int_eq(rmdir(mem_printf(r.ctx, "%s/records", r.policy.data_dir)), 0);
    ck_assert_int_eq(mkdir(mem_printf(r.ctx, "%s/records", r.policy.data_dir), 0700), 0);
    rig_stop(&r);
}
END_TEST

START_TEST(refuses_by_policy)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    static const char *const roots[] = {"root", "0", "0:0", "+0", " 0", "00", "-1", "4294967296"};
    for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
        struct launch_spec *s = rig_spec(&r, rig_id, "web", i % 2, "id");
        s->user = roots[i];
        rig_launch(&r, s, &g);
        ck_assert_msg(g.err.code != 0, "ran as \"%s\"", roots[i]);
        got_free(&g);
    }
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "true");
    s->driver = "docker";
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ERR_POLICY, "docker");
    s->driver = "raw_exec"; /* isolated raw_exec, and exec without isolation */
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ERR_POLICY, NULL);
    s->driver = "exec";
    s->isolated = false;
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ERR_POLICY, NULL);
    s = rig_spec(&r, rig_id, "web", true, "true");
    s->seccomp = "unconfined";
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ERR_POLICY, NULL);
    s = rig_spec(&r, rig_id, "web", true, "true");
    list_add(s, s->cap_add, "sys_admin");
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ERR_POLICY, NULL);
    s = rig_spec(&r, rig_id, "web", true, "true");
    struct launch_mount m = {.source = "/root", .target = "/mnt"};
    list_add(s, s->mounts, &m);
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ERR_POLICY, "/root");
    s = rig_spec(&r, rig_id, "web", true, "true");
    s->isolation->apparmor = "paddock-not-allowed";
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ERR_POLICY, "isolation.apparmor_allowed");
    s = rig_spec(&r, "fedcba98-89ab-cdef-0123-456789abcdef", "web", false, "true");
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ENOENT, "directory");
    rig_stop(&r);
}
END_TEST

/* The operator's and the job's, without AppArmor here and with it: nothing starts outside the
 * profile that it was to have. A loaded one: tests/vm. */
START_TEST(refuses_without_the_profile)
{
    TEST_NEED("root");
    static const char *const allowed[] = {"paddock-of-the-job"};
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    r.policy.apparmor = "paddock-of-the-client";
    r.policy.apparmor_allowed = (struct str_list){(const char **)(uintptr_t)allowed, 1};
    rig_change_policy(&r);
    rig_alloc(&r, rig_id, "web", "exec");
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "true");
    for (int own = 0; own < 2; own++) {
        const char *name = own ? allowed[0] : r.policy.apparmor;
        s->isolation->apparmor = own ? name : "";
        rig_launch(&r, s, &g);
        ck_assert_int_ne(g.err.code, 0);
        ck_assert_msg(strstr(g.err.text, name) != NULL, "%s", g.err.text);
        got_free(&g);
    }
    run_to_end(&r, false, "true", 0); /* raw_exec is no sandbox, with a profile neither */
    rig_stop(&r);
}
END_TEST

/* Until the file has `text`. */
static void
await_text(struct rig *r, const char *path, const char *text)
{
    for (int i = 0; i < 12000; i++) { /* an emulated machine is some 25 times slower */
        if (strstr(rig_file(r, rig_id, path), text) != NULL)
            return;
        rig_pause(5);
    }
    ck_abort_msg("\"%s\" never came", text);
}

static void
signals(bool isolated, uid_t uid)
{
    struct rig r;
    struct got g, s = {0}, k = {0};
    rig_start(&r, uid);
    rig_alloc(&r, rig_id, "web", isolated ? "exec" : "raw_exec");
    rig_launch(&r,
               rig_spec(&r, rig_id, "web", isolated,
                        "trap 'echo usr1' USR1; trap 'exit 9' TERM; echo up; "
                        "while :; do sleep 0.02; done"),
               &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    await_text(&r, "alloc/logs/web.stdout.0", "up\n");
    struct got c;
    rig_launch(&r, rig_spec(&r, rig_id, "web", isolated, "true"), &c);
    expect_code(&r, &c, ERR_CONFLICT, "runs already");
    warden_signal(r.client, rig_id, "web", SIGUSR1, rig_got, &s);
    expect_code(&r, &s, 0, NULL);
    await_text(&r, "alloc/logs/web.stdout.0", "usr1\n");
    s = (struct got){0};
    warden_signal(r.client, rig_id, "web", SIGTERM, rig_got, &s);
    expect_code(&r, &s, 0, NULL);
    struct task_record *t = rig_end(&r, &g);
    ck_assert_int_eq(t->exit_code, 9);
    got_free(&g);
    s = (struct got){0};
    warden_signal(r.client, rig_id, "web", SIGTERM, rig_got, &s);
    expect_code(&r, &s, ERR_NOT_FOUND, NULL);

    /* again, over the finished one; with children that have left the session */
    /* rootless there is no cgroup: who leaves the session is out of reach (doc/security.md) */
    rig_launch(&r,
               rig_spec(&r, rig_id, "web", isolated,
                        uid ? "trap '' TERM; echo again; sleep 77777"
                            : "trap '' TERM; setsid sleep 77777 & setsid sh -c 'trap \"\" TERM; "
                              "while :; do sleep 77777; done' & echo again; wait; sleep 77777"),
               &g);
    await_text(&r, "alloc/logs/web.stdout.0", "again\n");
    warden_kill(r.client, rig_id, "web", rig_got, &k);
    expect_code(&r, &k, 0, NULL);
    t = rig_end(&r, &g);
    ck_assert_int_eq(t->signal, SIGKILL);
    got_free(&g);
    destroy(&r, "web");
    destroy(&r, "web"); /* unknown: fine */
    rig_stop(&r);
}

START_TEST(signals_and_kills_exec)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    signals(true, 0);
}
END_TEST

START_TEST(signals_and_kills_raw_exec)
{
    TEST_NEED("root");
    signals(false, 0);
}
END_TEST

START_TEST(signals_and_kills_rootless)
{
    TEST_NEED("root");
    signals(false, NOBODY);
}
END_TEST

static void
adopts(bool isolated, uid_t uid)
{
    struct rig r;
    struct got g, h, a = {0}, b = {0}, l = {0};
    rig_start(&r, uid);
    rig_alloc(&r, rig_id, "web", isolated ? "exec" : "raw_exec");
    rig_alloc(&r, rig_id, "done", isolated ? "exec" : "raw_exec");
    rig_launch(&r,
               rig_spec(&r, rig_id, "web", isolated,
                        "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.02; done"),
               &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    await_text(&r, "alloc/logs/web.stdout.0", "up\n");
    rig_launch(&r, rig_spec(&r, rig_id, "done", isolated, "read x </dev/null; sleep 0.2; exit 4"),
               &h);
    ck_assert_msg(h.err.code == 0, "%s", h.err.text);

    for (struct got *x = &g;;
         x = &h) { /* a signal to the warden's process group misses the tasks */
        ck_assert_int_ne(getpgid((pid_t)x->rec->shim_pid), getpgid(r.warden));
        if (x == &h)
            break;
    }
    rig_kill(&r, SIGKILL); /* one task ends while no warden is there */
    ck_assert_int_eq(rig_end(&r, &h)->exit_code, 4);
    ck_assert_int_eq(warden_client_ready(r.client), -ERR_CLOSED);
    rig_spawn(&r);
    rig_connect(&r);

    warden_list(r.client, NULL, NULL, rig_got, &l);
    rig_wait(&r, &l);
    ck_assert_uint_eq(l.n_records, 2);
    got_free(&l);
    warden_adopt(r.client, rig_id, "web", rig_got, &a);
    rig_wait(&r, &a);
    ck_assert_msg(a.err.code == 0, "%s", a.err.text);
    ck_assert_int_ge(a.ended, 0);
    ck_assert_int_eq(a.rec->finished_at, 0);
    ck_assert_int_eq(a.rec->pid, g.rec->pid);
    ck_assert_int_eq(a.cgroup >= 0, g.cgroup >= 0);
    warden_adopt(r.client, rig_id, "done", rig_got, &b);
    rig_wait(&r, &b);
    ck_assert_msg(b.err.code == 0, "%s", b.err.text);
    ck_assert_int_eq(b.ended, -1);
    ck_assert_int_gt(b.rec->finished_at, 0);
    ck_assert_int_eq(b.rec->exit_code, 4);
    got_free(&b);
    struct got s = {0};
    warden_signal(r.client, rig_id, "web", SIGTERM, rig_got, &s);
    expect_code(&r, &s, 0, NULL);
    struct task_record *t = rig_end(&r, &a);
    ck_assert_int_eq(t->exit_code, 5);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stdout.0"), "up\nbye\n");
    got_free(&a);
    got_free(&g);
    got_free(&h);
    struct got n = {0};
    warden_adopt(r.client, rig_id, "never", rig_got, &n);
    expect_code(&r, &n, ERR_NOT_FOUND, NULL);
    rig_stop(&r);
}

/* It starts nothing any more, and does not leave who asks for it without an answer. */
START_TEST(a_warden_that_stops_says_so)
{
    struct rig r;
    struct got g, late = {0};
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "raw_exec");
    rig_launch(&r, rig_spec(&r, rig_id, "web", false, "sleep 77777"), &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_eq(kill(r.warden, SIGSTOP), 0); /* it meets the signal, then the request */
    ck_assert_int_eq(kill(r.warden, SIGUSR1), 0);
    warden_launch(r.client, rig_spec(&r, rig_id, "late", false, "true"), rig_got, &late);
    ck_assert_int_eq(kill(r.warden, SIGCONT), 0);
    expect_code(&r, &late, ERR_UNAVAILABLE, "the warden is stopping");
    got_free(&g);
    rig_stop(&r);
}
END_TEST

START_TEST(adopts_exec)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    adopts(true, 0);
}
END_TEST

START_TEST(adopts_raw_exec)
{
    TEST_NEED("root");
    adopts(false, 0);
}
END_TEST

START_TEST(adopts_rootless)
{
    TEST_NEED("root");
    adopts(false, NOBODY);
}
END_TEST

static void
loses(bool isolated, uid_t uid)
{
    struct rig r;
    struct got g, a = {0};
    rig_start(&r, uid);
    rig_alloc(&r, rig_id, "web", isolated ? "exec" : "raw_exec");
    rig_launch(&r, rig_spec(&r, rig_id, "web", isolated, "exec sleep 77777"), &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    auto_fd int payload = pidfd_open_pid((pid_t)g.rec->pid);
    ck_assert_int_ge(payload, 0);
    ck_assert_int_eq(kill((pid_t)g.rec->shim_pid, SIGKILL), 0);
    (void)rig_end(&r, &g);
    for (;;) { /* until the warden knows, too */
        warden_adopt(r.client, rig_id, "web", rig_got, &a);
        rig_wait(&r, &a);
        ck_assert_int_eq(a.err.code, 0);
        if (a.ended < 0)
            break;
        (void)rig_end(&r, &a);
        got_free(&a);
        a = (struct got){0};
    }
    ck_assert(a.rec->lost);
    ck_assert_int_gt(a.rec->finished_at, 0);
    struct pollfd p = {.fd = payload, .events = POLLIN}; /* nobody watches it: it is ended */
    ck_assert_int_eq(poll(&p, 1, 5000), 1);
    got_free(&a);
    got_free(&g);
    rig_stop(&r);
}

START_TEST(tells_a_lost_task)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    loses(true, 0);
    loses(false, 0);
    loses(false, NOBODY);
}
END_TEST

static void
rotation(bool isolated)
{
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", isolated ? "exec" : "raw_exec");
    struct launch_logs logs = {.dir = "alloc/logs", .max_files = 3, .max_file_bytes = 1000};
    for (int run = 0; run < 2; run++) {
        struct got g;
        struct launch_spec *s =
            rig_spec(&r, rig_id, "web", isolated,
                     "i=0; while [ $i -lt 500 ]; do echo line$i; i=$((i+1)); done; echo e >&2");
        s->logs = &logs;
        rig_launch(&r, s, &g);
        ck_assert_int_eq(rig_end(&r, &g)->exit_code, 0);
        got_free(&g);
        destroy(&r, "web");
    }
    /* 2 * (10 * 6 + 90 * 7 + 400 * 8) = 7780 bytes: files 0..7, of which 5, 6, 7 are kept */
    const char *dir = mem_printf(r.ctx, "%s/%s/alloc/logs", r.policy.alloc_dir, rig_id);
    struct stat st;
    ck_assert_int_eq(access(mem_printf(r.ctx, "%s/web.stdout.4", dir), F_OK), -1);
    for (int i = 5; i < 8; i++) {
        ck_assert_int_eq(stat(mem_printf(r.ctx, "%s/web.stdout.%d", dir, i), &st), 0);
        ck_assert_int_eq(st.st_size, i < 7 ? 1000 : 780);
    }
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stderr.0"), "e\ne\n");
    const char *last = rig_file(&r, rig_id, "alloc/logs/web.stdout.7");
    ck_assert_msg(str_suffix(last, "line498\nline499\n"), "%s", last);
    rig_stop(&r);
}

START_TEST(rotates_logs)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    rotation(true);
    rotation(false);
}
END_TEST

START_TEST(carries_large_arguments)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "env | wc -c; echo $#");
    char *big = mem_array(s, char, 1001);
    memset(big, 'x', 1000);
    list_add(s, s->args, "sh");
    for (int i = 0; i < 100; i++) {
        list_add(s, s->args, "");
        list_add(s, s->env, mem_printf(s, "V%d=%s", i, big));
    }
    rig_launch(&r, s, &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 0);
    char *out = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
    ck_assert_msg(strstr(out, "\n100\n") != NULL, "%s", out);
    got_free(&g);
    for (int i = 0; i < 400; i++)
        list_add(s, s->env, mem_printf(s, "W%d=%s", i, big));
    rig_launch(&r, s, &g); /* too large for a packet: an error, not a broken connection */
    expect_code(&r, &g, ERR_INVALID, "too large"); /* as all that can never be sent */
    rig_stop(&r);
}
END_TEST

START_TEST(leaves_nothing_behind)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    long fds = 0;
    for (int i = 0; i < 40; i++) {
        struct got g;
        struct launch_spec *s =
            rig_spec(&r, rig_id, "web", i % 2, i % 4 < 2 ? "exit 0" : "sleep 77777");
        if (i % 5 == 4)
            s->command = "/no/such/program";
        rig_launch(&r, s, &g);
        ck_assert_int_eq(g.err.code, i % 5 == 4 ? -ENOENT : 0);
        got_free(&g);
        destroy(&r, "web"); /* also of one that runs: it is killed first */
        if (i == 9)
            fds = rig_fds(r.warden);
    }
    ck_assert_int_eq(rig_fds(r.warden), fds);
    ck_assert_int_eq(access(mem_printf(r.ctx, "%s/%s", r.policy.cgroup_root, rig_id), F_OK), -1);
    rig_stop(&r);
}
END_TEST

START_TEST(gives_three_descriptors_and_the_right_mounts)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    char here[64] = "", *out;
    ck_assert_int_gt(readlink("/proc/self/ns/mnt", here, sizeof(here) - 1), 0);
    static const char script[] =
        "for f in /proc/self/fd/*; do echo ${f##*/}; done; readlink /proc/self/ns/mnt";
    run_to_end(&r, false, script, 0);
    out = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
    /* raw_exec: the host's mounts, not the warden's pruned ones */
    ck_assert_msg(strstr(out, here) != NULL, "%s not in %s", here, out);
    run_to_end(&r, true, "exec >/alloc/data/x; ls /proc/$$/fd", 0);
    out = rig_file(&r, rig_id, "alloc/data/x");
    for (char *p = strtok(out, "\n"); p != NULL; p = strtok(NULL, "\n")) {
        int64_t fd = -1;
        /* the shell keeps copies of its own from 10 on */
        ck_assert_msg(num_parse_i64(p, &fd) == 0 && (fd <= 2 || fd >= 10), "descriptor %s", p);
    }
    rig_stop(&r);
}
END_TEST

START_TEST(bounds_a_flood)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    struct launch_logs logs = {.max_files = 2, .max_file_bytes = 100000};
    struct launch_spec *s = rig_spec(
        &r, rig_id, "web", true, "yes a | head -c 30000000 & yes b | head -c 30000000 >&2; wait");
    s->logs = &logs;
    rig_launch(&r, s, &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 0);
    got_free(&g);
    const char *dir = mem_printf(r.ctx, "%s/%s/alloc/logs", r.policy.alloc_dir, rig_id);
    DIR *d = opendir(dir);
    off_t total = 0;
    size_t files = 0;
    for (struct dirent *de; (de = readdir(d)) != NULL;) {
        struct stat st;
        if (de->d_name[0] == '.')
            continue;
        ck_assert_int_eq(fstatat(dirfd(d), de->d_name, &st, 0), 0);
        ck_assert_int_le(st.st_size, 100000);
        total += st.st_size;
        files++;
    }
    closedir(d);
    ck_assert_uint_le(files, 4);
    ck_assert_msg(total == 400000, "%ld bytes in %zu files", (long)total, files);
    rig_stop(&r);
}
END_TEST

/* Processes below the rig's cgroup. */
static size_t
count_procs(struct rig *r)
{
    size_t n = 0;
    static const char *const leaves[] = {"shim", "task"};
    for (int i = 0; i < 2; i++) {
        char *text = NULL;
        const char *path = mem_printf(r->ctx, "%s/%s/web/%s/cgroup.procs", r->policy.cgroup_root,
                                      rig_id, leaves[i]);
        if (file_read(r->ctx, AT_FDCWD, path, 65536, &text, NULL) == 0)
            for (; *text != '\0'; text++)
                n += *text == '\n';
    }
    return n;
}

START_TEST(survives_a_kill_at_any_instant_of_a_launch)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    size_t adopted = 0, unknown = 0;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "exec sleep 77777");
    struct got first = {0};
    int64_t began = clock_mono_ns();
    rig_launch(&r, s, &first);
    int64_t took = clock_mono_ns() - began; /* the instants cover twice that */
    got_free(&first);
    destroy(&r, "web");
    for (int i = 0; i < 40; i++) {
        struct got l = {0}, a = {0}, again = {0};
        warden_launch(r.client, s, rig_got, &l);
        for (int64_t end = clock_mono_ns() + i * took / 20; clock_mono_ns() < end;)
            ;
        rig_kill(&r, SIGKILL);
        rig_wait(&r, &l); /* an answer may have made it out */
        got_free(&l);
        while (warden_client_ready(r.client) == 0)
            rig_pause(1); /* until the end of the connection is seen as well */
        rig_spawn(&r);
        for (;;) {
            rig_connect(&r);
            warden_adopt(r.client, rig_id, "web", rig_got, &a);
            rig_wait(&r, &a);
            if (a.err.code != -ERR_UNAVAILABLE)
                break;
            got_free(&a); /* a child of the old warden still held its socket: once more */
            a = (struct got){0};
        }
        adopted += a.err.code == 0;
        unknown += a.err.code != 0;
        ck_assert_msg(a.err.code == 0 || a.err.code == -ERR_NOT_FOUND, "%s", a.err.text);
        for (int k = 0; k < 200; k++) { /* never twice: refused, or the only one */
            again = (struct got){0};
            rig_launch(&r, s, &again);
            if (again.err.code != -ERR_BUSY)
                break;
            got_free(&again);
            rig_pause(5);
        }
        if (a.err.code == 0 && a.ended >= 0)
            ck_assert_msg(again.err.code == -ERR_CONFLICT, "%d: %s", again.err.code,
                          again.err.text);
        else
            ck_assert_msg(again.err.code == 0, "%d: %s", again.err.code, again.err.text);
        ck_assert_uint_le(count_procs(&r), 2);
        got_free(&a);
        got_free(&again);
        destroy(&r, "web");
        ck_assert_uint_eq(count_procs(&r), 0);
    }
    ck_assert_uint_gt(unknown, 0); /* both happened */
    ck_assert_uint_gt(adopted, 0);
    rig_stop(&r);
}
END_TEST

/* A job has the limit that it asks for, or hears that it cannot. */
START_TEST(nofile_above_the_hard_limit_is_refused)
{
    struct rig r;
    struct rlimit low = {1000, 1000};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    rig_start(&r, geteuid() == 0 ? 65534 : geteuid());
    rig_alloc(&r, rig_id, "web", "raw_exec");
    for (int nofile = 900; nofile <= 1100; nofile += 200) {
        struct got g;
        struct launch_spec *s = rig_spec(&r, rig_id, "web", false, "ulimit -n");
        s->isolation->nofile = nofile;
        rig_launch(&r, s, &g);
        if (nofile > 1000)
            ck_assert_msg(strstr(g.err.text, "above this client's hard limit"), "%s", g.err.text);
        else
            (void)rig_end(&r, &g);
        got_free(&g);
    }
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("warden", 300, runs_raw_exec, runs_raw_exec_rootless,
                   nofile_above_the_hard_limit_is_refused, runs_exec, two_wardens_share_a_cgroup,
                   what_a_start_needs_may_be_denied, reports_failed_launches,
                   a_closed_directory_of_path_holds_nothing, refuses_by_policy,
                   refuses_without_the_profile, signals_and_kills_exec, signals_and_kills_raw_exec,
                   signals_and_kills_rootless, a_warden_that_stops_says_so, adopts_exec,
                   adopts_raw_exec, adopts_rootless, tells_a_lost_task, rotates_logs,
                   carries_large_arguments, leaves_nothing_behind,
                   gives_three_descriptors_and_the_right_mounts, bounds_a_flood,
                   survives_a_kill_at_any_instant_of_a_launch)
