/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden, its shim and its client, with real processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"
#include "isolation/proc.h"
#include "isolation/proto.h"
#include "isolation/record.h"
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
        warden_list(r.client, rig_got, &l);
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
    s = rig_spec(&r, "fedcba98-89ab-cdef-0123-456789abcdef", "web", false, "true");
    rig_launch(&r, s, &g);
    expect_code(&r, &g, ENOENT, "directory");
    rig_stop(&r);
}
END_TEST

/* Until the file has `text`. */
static void
await_text(struct rig *r, const char *path, const char *text)
{
    for (int i = 0; i < 2000; i++) {
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
    rig_launch(&r,
               rig_spec(&r, rig_id, "web", isolated,
                        "trap '' TERM; setsid sleep 77777 & setsid sh -c 'trap \"\" TERM; "
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

    rig_kill(&r, SIGKILL); /* one task ends while no warden is there */
    ck_assert_int_eq(rig_end(&r, &h)->exit_code, 4);
    ck_assert_int_eq(warden_client_ready(r.client), -ERR_CLOSED);
    rig_spawn(&r);
    rig_connect(&r);

    warden_list(r.client, rig_got, &l);
    rig_wait(&r, &l);
    ck_assert_uint_eq(l.n_records, 2);
    got_free(&l);
    warden_adopt(r.client, rig_id, "web", rig_got, &a);
    rig_wait(&r, &a);
    ck_assert_msg(a.err.code == 0, "%s", a.err.text);
    ck_assert_int_ge(a.pidfd, 0);
    ck_assert_int_eq(a.rec->finished_at, 0);
    ck_assert_int_eq(a.rec->pid, g.rec->pid);
    ck_assert_int_eq(a.cgroup >= 0, g.cgroup >= 0);
    warden_adopt(r.client, rig_id, "done", rig_got, &b);
    rig_wait(&r, &b);
    ck_assert_msg(b.err.code == 0, "%s", b.err.text);
    ck_assert_int_eq(b.pidfd, -1);
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

START_TEST(tells_a_lost_task)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct got g, a = {0};
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    rig_launch(&r, rig_spec(&r, rig_id, "web", true, "sleep 77777"), &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    ck_assert_int_eq(kill((pid_t)g.rec->shim_pid, SIGKILL), 0);
    (void)rig_end(&r, &g);
    warden_adopt(r.client, rig_id, "web", rig_got, &a);
    rig_wait(&r, &a);
    ck_assert_int_eq(a.err.code, 0);
    ck_assert(a.rec->lost);
    ck_assert_int_gt(a.rec->finished_at, 0);
    got_free(&a);
    got_free(&g);
    rig_stop(&r);
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

static void
file_error(struct rig *r, const char *path, int code)
{
    struct got a = {0}, b = {0};
    warden_open(r->client, rig_id, path, rig_got, &a);
    rig_wait(r, &a);
    ck_assert_msg(a.err.code == -code, "%s: %d %s", path, a.err.code, a.err.text);
    got_free(&a);
    warden_stat(r->client, rig_id, path, rig_got, &b);
    rig_wait(r, &b);
    ck_assert_msg(b.err.code == -code || (code == ERR_INVALID && b.err.code == 0), "%s: %d", path,
                  b.err.code);
    got_free(&b);
}

static void
put(struct rig *r, const char *path, const char *text, int64_t offset, int code)
{
    struct got g = {0};
    struct warden_put p = {.alloc_id = rig_id,
                           .task = "web",
                           .path = path,
                           .data = text,
                           .n = strlen(text),
                           .offset = offset};
    warden_put(r->client, &p, rig_got, &g);
    if (code >= 0) {
        expect_code(r, &g, code, NULL);
        return;
    }
    rig_wait(r, &g);
    ck_assert_int_ne(g.err.code, 0);
    got_free(&g);
}

START_TEST(writes_files)
{
    TEST_NEED("root");
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    const char *top = mem_printf(r.ctx, "%s/%s", r.policy.alloc_dir, rig_id);
    put(&r, "web/local/a/b.txt", "hello", 0, 0);
    put(&r, "web/local/a/b.txt", "HE", 5, 0);
    ck_assert_str_eq(rig_file(&r, rig_id, "web/local/a/b.txt"), "helloHE");
    put(&r, "web/secrets/t", "s", 0, 0);
    put(&r, "alloc/logs/x", "s", 0, ERR_FORBIDDEN);
    put(&r, "other/x", "s", 0, ERR_FORBIDDEN);
    put(&r, "web", "s", 0, ERR_FORBIDDEN);
    ck_assert_int_eq(symlink("/etc", mem_printf(r.ctx, "%s/web/local/d", top)), 0);
    ck_assert_int_eq(mkfifo(mem_printf(r.ctx, "%s/web/local/f", top), 0666), 0);
    ck_assert_int_eq(link(mem_printf(r.ctx, "%s/web/local/a/b.txt", top),
                          mem_printf(r.ctx, "%s/web/local/h", top)),
                     0);
    put(&r, "web/local/d/x", "s", 0, -1);
    put(&r, "web/local/f", "s", 0, -1); /* a FIFO without reader must not hang the warden */
    put(&r, "web/local/h", "s", 0, -1);
    ck_assert_str_eq(rig_file(&r, rig_id, "web/local/a/b.txt"), "helloHE");
    rig_stop(&r);
}
END_TEST

START_TEST(reads_files)
{
    TEST_NEED("root");
    struct rig r;
    struct got g = {0};
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    const char *top = mem_printf(r.ctx, "%s/%s", r.policy.alloc_dir, rig_id);
    put(&r, "web/local/a/b.txt", "hello", 0, 0);
    put(&r, "web/secrets/t", "s", 0, 0);
    ck_assert_int_eq(symlink("/etc/passwd", mem_printf(r.ctx, "%s/web/local/p", top)), 0);
    ck_assert_int_eq(symlink("/etc", mem_printf(r.ctx, "%s/web/local/d", top)), 0);
    ck_assert_int_eq(symlink("a", mem_printf(r.ctx, "%s/web/local/c", top)), 0);
    ck_assert_int_eq(mkfifo(mem_printf(r.ctx, "%s/web/local/f", top), 0666), 0);
    file_error(&r, "web/secrets", ERR_FORBIDDEN);
    file_error(&r, "web/secrets/t", ERR_FORBIDDEN);
    file_error(&r, "web/local/p", ERR_FORBIDDEN);
    file_error(&r, "web/local/d/passwd", ERR_FORBIDDEN);
    file_error(&r, "web/local/c/b.txt", ERR_FORBIDDEN);
    file_error(&r, "web/local/f", ERR_INVALID);
    file_error(&r, "web/none", ERR_NOT_FOUND);
    warden_open(r.client, rig_id, "web/local/a/b.txt", rig_got, &g);
    rig_wait(&r, &g);
    char buf[16] = "";
    ck_assert_int_eq(read(g.file, buf, sizeof(buf)), 5);
    ck_assert_int_eq(write(g.file, "x", 1), -1);
    got_free(&g);
    g = (struct got){0};
    warden_stat(r.client, rig_id, "alloc/tmp", rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_str_eq(g.files.v[0]->file_mode, "dtrwxrwxrwx");
    ck_assert_str_eq(g.files.v[0]->name, "tmp");
    got_free(&g);
    rig_stop(&r);
}
END_TEST

START_TEST(lists_and_removes)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    const char *top = mem_printf(r.ctx, "%s/%s", r.policy.alloc_dir, rig_id);
    for (int i = 0; i < 300; i++) {
        int fd = open(mem_printf(r.ctx, "%s/alloc/data/f%d", top, i), O_CREAT | O_WRONLY, 0644);
        ck_assert_int_ge(fd, 0);
        close(fd);
    }
    size_t seen = 0;
    for (int64_t at = 0, first = 1; at != 0 || first; first = 0) {
        g = (struct got){0};
        warden_readdir(r.client, rig_id, "alloc/data", at, rig_got, &g);
        rig_wait(&r, &g);
        ck_assert_int_eq(g.err.code, 0);
        seen += g.files.n;
        at = g.next;
        got_free(&g);
    }
    ck_assert_uint_eq(seen, 300);
    g = (struct got){0};
    warden_alloc_remove(r.client, rig_id, rig_got, &g);
    expect_code(&r, &g, 0, NULL);
    ck_assert_int_eq(access(top, F_OK), -1);
    file_error(&r, "alloc", ERR_NOT_FOUND);
    rig_stop(&r);
}
END_TEST

static int
raw_connect(struct rig *r)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    str_copy(a.sun_path, sizeof(a.sun_path), r->socket);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    proto_buffers(fd);
    return fd;
}

/* The warden closes the connection after this packet, and only this connection. */
static void
hostile(struct rig *r, const void *p, size_t n, int pass_fd)
{
    int fd = raw_connect(r);
    ck_assert_int_eq(proto_send(fd, p, n, &pass_fd, pass_fd >= 0), 0);
    struct pollfd pf = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&pf, 1, 5000), 1);
    char buf[8192];
    ck_assert_int_le(recv(fd, buf, sizeof(buf), 0), 0);
    close(fd);
    struct got g = {0};
    warden_info(r->client, rig_got, &g);
    expect_code(r, &g, 0, NULL);
}

static void
hostile_request(struct rig *r, const struct warden_request *q)
{
    auto_buf struct buf b = BUF_INIT(1 << 20);
    mp_encode(&b, &type_warden_request, q);
    ck_assert_int_eq(buf_error(&b), 0);
    hostile(r, b.data, b.len, -1);
    /* and after a greeting */
    struct warden_request hello = {.op = WARDEN_INFO};
    auto_buf struct buf h = BUF_INIT(4096);
    mp_encode(&h, &type_warden_request, &hello);
    int fd = raw_connect(r);
    ck_assert_int_eq(proto_send(fd, h.data, h.len, NULL, 0), 0);
    ck_assert_int_eq(proto_send(fd, b.data, b.len, NULL, 0), 0);
    char buf[8192];
    ck_assert_int_gt(recv(fd, buf, sizeof(buf), 0), 0);
    ck_assert_int_le(recv(fd, buf, sizeof(buf), 0), 0);
    close(fd);
}

START_TEST(closes_on_hostile_requests)
{
    TEST_NEED("root");
    struct rig r;
    rig_start(&r, 0);
    static uint8_t junk[PROTO_PACKET_MAX + 4096];
    memset(junk, 0xdd, sizeof(junk));
    hostile(&r, "x", 1, -1);
    hostile(&r, "\xdf\xff\xff\xff\xff", 5, -1); /* a map of 4 G entries */
    hostile(&r, junk, 4096, -1);
    hostile(&r, junk, sizeof(junk), -1);
    struct warden_request hello = {.op = WARDEN_INFO};
    auto_buf struct buf h = BUF_INIT(4096);
    mp_encode(&h, &type_warden_request, &hello);
    hostile(&r, h.data, h.len, 0); /* file descriptors are not taken */
    struct launch_spec no_command = {.alloc_id = rig_id, .task_name = "web", .driver = "exec"};
    struct launch_spec up = {
        .alloc_id = rig_id, .task_name = "../web", .driver = "exec", .command = "x"};
    const struct warden_request bad[] = {
        {.op = 0},
        {.op = 999},
        {.op = WARDEN_INFO, .path = "x"}, /* a field that is not the row's */
        {.op = WARDEN_KILL, .alloc_id = rig_id},
        {.op = WARDEN_KILL, .alloc_id = "../../../etc", .task_name = "web"},
        {.op = WARDEN_KILL, .alloc_id = rig_id, .task_name = ".."},
        {.op = WARDEN_KILL, .alloc_id = rig_id, .task_name = "a/b"},
        {.op = WARDEN_KILL, .alloc_id = rig_id, .task_name = "cgroup.kill"},
        {.op = WARDEN_OPEN, .alloc_id = rig_id, .path = "../x"},
        {.op = WARDEN_OPEN, .alloc_id = rig_id, .path = "/etc/passwd"},
        {.op = WARDEN_OPEN, .alloc_id = rig_id, .path = "web//x"},
        {.op = WARDEN_OPEN, .alloc_id = rig_id, .path = "web/./x"},
        {.op = WARDEN_OPEN, .alloc_id = rig_id, .path = "web/x/"},
        {.op = WARDEN_SIGNAL, .alloc_id = rig_id, .task_name = "web", .signal = 65},
        {.op = WARDEN_SIGNAL, .alloc_id = rig_id, .task_name = "web", .signal = -9},
        {.op = WARDEN_PUT, .alloc_id = rig_id, .task_name = "web", .path = "web/x", .mode = 04755},
        {.op = WARDEN_PUT, .alloc_id = rig_id, .task_name = "web", .path = "web/x", .offset = -1},
        {.op = WARDEN_LAUNCH, .spec = &no_command},
        {.op = WARDEN_LAUNCH, .spec = &up},
        {.op = WARDEN_LAUNCH, .alloc_id = rig_id},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        hostile_request(&r, &bad[i]);
    /* before the greeting nothing else is allowed */
    struct warden_request early = {.op = WARDEN_LIST};
    auto_buf struct buf b = BUF_INIT(4096);
    mp_encode(&b, &type_warden_request, &early);
    hostile(&r, b.data, b.len, -1);
    rig_stop(&r);
}
END_TEST

START_TEST(refuses_other_users)
{
    TEST_NEED("root");
    struct rig r;
    rig_start(&r, 0);
    ck_assert_int_eq(chmod(r.socket, 0666), 0);
    ck_assert_int_eq(setresuid(NOBODY, NOBODY, 0), 0);
    int fd = raw_connect(&r);
    char c;
    ck_assert_int_le(recv(fd, &c, 1, 0), 0);
    close(fd);
    ck_assert_int_eq(setresuid(0, 0, 0), 0);
    rig_stop(&r);
}
END_TEST

START_TEST(completes_requests_when_the_warden_dies)
{
    TEST_NEED("root");
    struct rig r;
    struct got a = {0}, b = {0};
    rig_start(&r, 0);
    kill(r.warden, SIGSTOP);
    warden_list(r.client, rig_got, &a);
    rig_kill(&r, SIGKILL);
    expect_code(&r, &a, ERR_UNAVAILABLE, NULL);
    ck_assert_int_eq(warden_client_fd(r.client), -1);
    warden_list(r.client, rig_got, &b);
    ck_assert(!b.done);
    ck_assert(warden_client_pending(r.client));
    expect_code(&r, &b, ERR_UNAVAILABLE, NULL);
    rig_spawn(&r);
    rig_connect(&r);
    b = (struct got){0};
    warden_list(r.client, rig_got, &b);
    expect_code(&r, &b, 0, NULL);
    rig_stop(&r);
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
    expect_code(&r, &g, ERR_LIMIT, "too large");
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("warden", 60, runs_raw_exec, runs_raw_exec_rootless, runs_exec,
                   reports_failed_launches, refuses_by_policy, signals_and_kills_exec,
                   signals_and_kills_raw_exec, signals_and_kills_rootless, adopts_exec,
                   adopts_raw_exec, adopts_rootless, tells_a_lost_task, rotates_logs, writes_files,
                   reads_files, lists_and_removes, closes_on_hostile_requests, refuses_other_users,
                   completes_requests_when_the_warden_dies, carries_large_arguments)
