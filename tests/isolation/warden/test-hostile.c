/* SPDX-License-Identifier: Apache-2.0
 *
 * What a hostile task puts where the warden and the agent look, and a warden with many tasks.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/limits.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/err.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "common/uuid.h"
#include "isolation/launch/plan.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/proto.h"
#include "isolation/launch/record.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

enum { NOBODY = 65534 };

static int
opens(struct rig *r, const char *path, const char *want)
{
    struct got g = {0};
    warden_open(r->client, rig_id, path, rig_got, &g);
    rig_wait(r, &g);
    if (want != NULL)
        ck_assert_msg(strstr(g.err.text, want) != NULL, "\"%s\" not in: %s", want, g.err.text);
    int code = -g.err.code;
    got_free(&g);
    return code;
}

static size_t
list_all(struct rig *r, const char *path, int64_t *ret_slowest_ns)
{
    size_t n = 0;
    int64_t at = 0;
    *ret_slowest_ns = 0;
    do {
        struct got g = {0};
        int64_t begin = clock_mono_ns();
        warden_readdir(r->client, rig_id, path, at, rig_got, &g);
        rig_wait(r, &g);
        int64_t took = clock_mono_ns() - begin;
        *ret_slowest_ns = took > *ret_slowest_ns ? took : *ret_slowest_ns;
        ck_assert_msg(g.err.code == 0, "%s", g.err.text);
        ck_assert_uint_le(g.files.n, PROTO_READDIR_MAX);
        n += g.files.n;
        at = g.next;
        got_free(&g);
    } while (at != 0);
    return n;
}

static char *
path_of(struct rig *r, const char *rel)
{
    return mem_printf(r->ctx, "%s/%s/%s", r->policy.alloc_dir, rig_id, rel);
}

/* Links, sockets, fifos and devices in place of files and directories. */
START_TEST(replaced)
{
    TEST_NEED("root");
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    ck_assert(str_copy(sun.sun_path, sizeof(sun.sun_path), path_of(&r, "web/local/s")));
    auto_fd int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(s, (const void *)&sun, sizeof(sun)), 0);
    ck_assert_int_eq(mkfifo(path_of(&r, "web/local/f"), 0666), 0);
    ck_assert_int_eq(mknod(path_of(&r, "web/local/d"), S_IFCHR | 0666, makedev(1, 5)), 0);
    ck_assert_int_eq(symlink("/proc/self/fd", path_of(&r, "web/local/l")), 0);
    ck_assert_int_eq(symlink("loop", path_of(&r, "web/local/loop")), 0);
    for (const char *const *p =
             (const char *const[]){"web/local/s", "web/local/f", "web/local/d", NULL};
         *p; p++)
        ck_assert_int_eq(opens(&r, *p, "neither a file nor a directory"), ERR_INVALID);
    ck_assert_int_eq(opens(&r, "web/local/l/0", "symbolic link"), ERR_FORBIDDEN);
    ck_assert_int_eq(opens(&r, "web/local/loop", "symbolic link"), ERR_FORBIDDEN);

    /* whole directories of ours */
    ck_assert_int_eq(rename(path_of(&r, "web"), path_of(&r, "was")), 0);
    ck_assert_int_eq(symlink("/etc", path_of(&r, "web")), 0);
    ck_assert_int_eq(opens(&r, "web/passwd", "symbolic link"), ERR_FORBIDDEN);
    ck_assert_int_eq(rename(path_of(&r, "alloc/logs"), path_of(&r, "alloc/old")), 0);
    ck_assert_int_eq(symlink("/var/log", path_of(&r, "alloc/logs")), 0);
    ck_assert_int_eq(opens(&r, "alloc/logs", "symbolic link"), ERR_FORBIDDEN);
    struct got g;
    rig_launch(&r, rig_spec(&r, rig_id, "web", false, "exit 0"), &g);
    ck_assert_int_ne(g.err.code, 0); /* nothing is started in or logs to what the links say */
    got_free(&g);
    g = (struct got){0};
    warden_alloc_remove(r.client, rig_id, rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
    ck_assert_int_eq(access("/etc/passwd", F_OK), 0);
    rig_stop(&r);
}
END_TEST

/* A log that is rotated away while it is opened is there or not: no other answer. */
START_TEST(removed_meanwhile)
{
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    char *path = path_of(&r, "alloc/data/x");
    pid_t child = fork();
    while (child == 0) {
        (void)!close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
        (void)unlink(path);
    }
    for (int i = 0; i < 2000; i++) {
        struct got g = {0};
        warden_open(r.client, rig_id, "alloc/data/x", rig_got, &g);
        rig_wait(&r, &g);
        ck_assert_msg(g.err.code == 0 || g.err.code == -ERR_NOT_FOUND, "%s", g.err.text);
        got_free(&g);
    }
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    rig_stop(&r);
}
END_TEST

/* A link to what the task may not read itself is not read for it. */
START_TEST(linked)
{
    TEST_NEED("root");
    struct rig r;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    int root = open(path_of(&r, "host-secret"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    int own = open(path_of(&r, "web/local/own"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(fchown(own, NOBODY, NOBODY), 0);
    close(root);
    close(own);
    ck_assert_int_eq(link(path_of(&r, "host-secret"), path_of(&r, "web/local/h")), 0);
    ck_assert_int_eq(link(path_of(&r, "host-secret"), path_of(&r, "alloc/data/h")), 0);
    ck_assert_int_eq(link(path_of(&r, "web/local/own"), path_of(&r, "web/local/own2")), 0);
    ck_assert_int_eq(opens(&r, "web/local/h", "several links"), ERR_FORBIDDEN);
    ck_assert_int_eq(opens(&r, "alloc/data/h", "several links"), ERR_FORBIDDEN);
    ck_assert_int_eq(opens(&r, "web/local/own2", NULL), 0);
    rig_stop(&r);
}
END_TEST

/* Many entries, with names that are no text; no page costs what is before it. */
START_TEST(wide)
{
    TEST_NEED("root");
    enum { N = 20000 };
    struct rig r;
    int64_t slowest;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    auto_fd int d = open(path_of(&r, "alloc/data"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[300];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof(name), "%0*d\n\033[31m\xff\xc3", 240, i);
        ck_assert_int_eq(mknodat(d, name, S_IFREG | 0600, 0), 0);
    }
    ck_assert_uint_eq(list_all(&r, "alloc/data", &slowest), N);
    ck_assert_int_lt(slowest, 2 * NS_PER_S);
    struct got g = {0}; /* any cookie of a hostile agent is as good as none */
    warden_readdir(r.client, rig_id, "alloc/data", INT64_MAX, rig_got, &g);
    rig_wait(&r, &g);
    got_free(&g);
    rig_stop(&r);
}
END_TEST

/* Processor time that a process has used, in clock ticks. */
static unsigned long
ticks(pid_t pid)
{
    unsigned long user, sys;
    char path[64], *text, *after;
    void *ctx = mem_ctx("ticks");
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    ck_assert_int_eq(file_read(ctx, AT_FDCWD, path, 4096, &text, NULL), 0);
    after = strrchr(text, ')');
    ck_assert_ptr_nonnull(after);
    ck_assert_int_eq(
        sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys), 2);
    mem_free(ctx);
    return user + sys;
}

/* By who may: shim and task are of one user where the warden is not root. */
static void
limit_descriptors(pid_t pid, rlim_t n)
{
    int st;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
              prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){n, n}, NULL) < 0);
    ck_assert_int_eq(waitpid(child, &st, 0), child);
    ck_assert_int_eq(st, 0);
}

/* A shim under a limit of so few descriptors that poll(2) fails: it does not spin, the logs go on,
 * what needs another file is dropped and not waited for, and the end is told. */
static void
few_descriptors(rlim_t n)
{
    struct rig r;
    struct got g;
    rig_start(&r, NOBODY);
    rig_alloc(&r, rig_id, "web", "raw_exec");
    struct launch_spec *s =
        rig_spec(&r, rig_id, "web", false,
                 "exec <local/go; read x; echo on >&2; read x; head -c 100000 /dev/zero; exit 7");
    struct launch_logs logs = {.dir = "alloc/logs", .max_files = 3, .max_file_bytes = 64 << 10};
    s->logs = &logs;
    ck_assert_int_eq(mkfifo(path_of(&r, "web/local/go"), 0666), 0);
    ck_assert_int_eq(chmod(path_of(&r, "web/local/go"), 0666), 0);
    rig_launch(&r, s, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    struct record x;
    ck_assert_int_eq(record_read_raw(g.record, &x), 0);
    limit_descriptors(x.shim_pid, n);
    auto_fd int go = open(path_of(&r, "web/local/go"), O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(write(go, "\n", 1), 1);
    while (rig_file(&r, rig_id, "alloc/logs/web.stderr.0")[0] == '\0')
        rig_pause(5);
    unsigned long before = ticks(x.shim_pid);
    rig_pause(500);
    ck_assert_uint_lt(ticks(x.shim_pid) - before, (unsigned long)sysconf(_SC_CLK_TCK) / 5);
    ck_assert_int_eq(write(go, "\n", 1), 1);
    struct task_record *t = rig_end(&r, &g);
    ck_assert_int_eq(t->exit_code, 7);
    struct stat st;
    ck_assert_int_eq(stat(path_of(&r, "alloc/logs/web.stdout.0"), &st), 0);
    ck_assert_int_eq(st.st_size, logs.max_file_bytes);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stderr.0"), "on\n");
    got_free(&g);
    rig_stop(&r);
}

START_TEST(shims_without_descriptors)
{
    TEST_NEED("root");
    for (rlim_t n = 0; n < 3; n++)
        few_descriptors(n);
}
END_TEST

static void
write_record(struct rig *r, int i)
{
    struct record x = {.magic = RECORD_MAGIC,
                       .version = SHIM_VERSION,
                       .shim_pid = 1,
                       .run = {.state = RECORD_FINISHED, .finished_ns = 1}};
    snprintf(x.alloc_id, sizeof(x.alloc_id), "%08x-0000-4000-8000-000000000000", (unsigned)i);
    snprintf(x.task, sizeof(x.task), "%0*d", JOB_TASK_NAME_MAX, i);
    snprintf(x.boot_id, sizeof(x.boot_id), "another");
    char *path = mem_printf(r->ctx, "%s/records/%s.%s", r->policy.data_dir, x.alloc_id, x.task);
    auto_fd int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(fd_write_full(fd, &x, sizeof(x)), 0);
}

/* The list has as many tasks as there may be, in pages that fit a packet; and no more are taken
 * up. */
START_TEST(many_tasks)
{
    TEST_NEED("root");
    struct rig r;
    rig_start(&r, 0);
    rig_kill(&r, SIGKILL);
    for (int i = 0; i < 3000; i++)
        write_record(&r, i);
    int fd =
        open(mem_printf(r.ctx, "%s/records/garbage", r.policy.data_dir), O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    rig_spawn(&r);
    (void)warden_client_ready(r.client);
    rig_connect(&r);
    char alloc[UUID_TEXT] = "", task[JOB_TASK_NAME_MAX + 1] = "";
    size_t n = 0;
    for (bool more = true; more;) {
        struct got g = {0};
        warden_list(r.client, n ? alloc : NULL, n ? task : NULL, rig_got, &g);
        rig_wait(&r, &g);
        ck_assert_msg(g.err.code == 0, "%s", g.err.text);
        ck_assert_uint_gt(g.n_records, 0);
        ck_assert_int_lt(strcmp(alloc, g.rec->alloc_id), 0);
        n += g.n_records;
        ck_assert(str_copy(alloc, sizeof(alloc), g.last->alloc_id));
        ck_assert(str_copy(task, sizeof(task), g.last->task_name));
        more = g.next != 0;
        got_free(&g);
    }
    ck_assert_uint_eq(n, 3000);
    rig_stop(&r);
}
END_TEST

static int
volume(struct rig *r, bool make, const char *why)
{
    const struct warden_volume v = {.id = rig_id, .mode = 0700, .uid = NOBODY, .gid = NOBODY};
    struct got g = {0};
    rig_volume(r, make, &v, &g);
    if (why != NULL)
        ck_assert_msg(strstr(g.err.text, why) != NULL, "%s", g.err.text);
    int code = g.err.code;
    got_free(&g);
    return code;
}

/* Something in the place of a volume's directory, or of the directory of all: nothing elsewhere is
 * given away or removed. */
START_TEST(volumes_are_in_their_place)
{
    TEST_NEED("root");
    struct rig r;
    struct err e = ERR_INIT;
    struct stat st;
    rig_start(&r, 0);
    ck_assert_int_ne(volume(&r, true, "no directory for volumes"), 0);
    const char *top = mem_printf(r.ctx, "%s/data/volumes", r.dir);
    const char *at = mem_printf(r.ctx, "%s/%s", top, rig_id);
    const char *away = mem_printf(r.ctx, "%s/away", r.dir);
    const char *inside = mem_printf(r.ctx, "%s/x", away);
    r.policy.host_volumes_dir = top;
    rig_kill(&r, SIGUSR1);
    ck_assert_msg(policy_compile(&r.policy, r.policy_path, &e) == 0, "%s", e.text);
    rig_spawn(&r);
    warden_client_free(r.client);
    r.client = warden_client_new(r.ctx, r.socket);
    rig_connect(&r);

    ck_assert_int_eq(volume(&r, true, NULL), 0);
    ck_assert_int_eq(stat(at, &st), 0);
    ck_assert(st.st_uid == NOBODY && (st.st_mode & 07777) == 0700);
    ck_assert_int_eq(volume(&r, false, NULL), 0);
    ck_assert_int_lt(stat(at, &st), 0);
    ck_assert_int_eq(volume(&r, false, NULL), 0); /* once more */

    ck_assert_int_eq(mkdir(away, 0755), 0);
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, inside, "x", 1, 0600), 0);
    ck_assert_int_eq(symlink(away, at), 0);
    ck_assert_int_ne(volume(&r, true, NULL), 0);
    ck_assert_int_eq(volume(&r, false, NULL), 0); /* the link, and not what it leads to */
    ck_assert_int_lt(lstat(at, &st), 0);
    ck_assert_int_eq(mkfifo(at, 0600), 0);
    ck_assert_int_ne(volume(&r, true, NULL), 0);
    ck_assert_int_eq(unlink(at), 0);
    ck_assert_int_eq(volume(&r, true, NULL), 0);
    ck_assert_int_eq(symlink(away, mem_printf(r.ctx, "%s/link", at)), 0);
    ck_assert_int_eq(volume(&r, false, NULL), 0);

    ck_assert_int_eq(rename(top, mem_printf(r.ctx, "%s-was", top)), 0);
    ck_assert_int_eq(symlink(away, top), 0);
    ck_assert_int_eq(mkdir(mem_printf(r.ctx, "%s/%s", away, rig_id), 0700), 0);
    ck_assert_int_ne(volume(&r, true, "open the directory of volumes"), 0);
    ck_assert_int_ne(volume(&r, false, "open the directory of volumes"), 0);
    ck_assert_int_eq(stat(mem_printf(r.ctx, "%s/%s", away, rig_id), &st), 0);
    ck_assert_int_eq(st.st_uid, 0);
    ck_assert_int_eq(stat(inside, &st), 0);
    ck_assert_int_eq(stat(away, &st), 0);
    ck_assert_int_eq(st.st_uid, 0);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("hostile", 60, replaced, volumes_are_in_their_place, removed_meanwhile, linked,
                   wide, shims_without_descriptors, many_tasks)
