/* SPDX-License-Identifier: Apache-2.0
 *
 * The warden's files, and an agent that is hostile or meets a warden that dies.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/codec.h"
#include "common/fd.h"
#include "common/host/mounts.h"
#include "common/limits.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/launch/proto.h"
#include "isolation/launch/record.h"
#include "isolation/packet.h"
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

static void
replace(struct rig *r, const char *path, const char *text, bool well)
{
    struct got g = {0};
    struct warden_put p = {.alloc_id = rig_id,
                           .task = "web",
                           .path = path,
                           .data = text,
                           .n = strlen(text),
                           .mode = 0600};
    warden_replace(r->client, &p, rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg((g.err.code == 0) == well, "%s: %d %s", path, g.err.code, g.err.text);
    got_free(&g);
}

START_TEST(replaces_files)
{
    TEST_NEED("root");
    struct rig r;
    struct stat before, after;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    const char *top = mem_printf(r.ctx, "%s/%s/web", r.policy.alloc_dir, rig_id);
    const char *file = mem_printf(r.ctx, "%s/local/t", top);
    replace(&r, "web/local/t", "first", true);
    ck_assert_int_eq(stat(file, &before), 0);
    ck_assert_int_eq(symlink("/etc/passwd", mem_printf(r.ctx, "%s/local/.t.new", top)), 0);
    replace(&r, "web/local/t", "second, longer", true);
    ck_assert_str_eq(rig_file(&r, rig_id, "web/local/t"), "second, longer");
    ck_assert_int_eq(stat(file, &after), 0);
    ck_assert(before.st_ino != after.st_ino && (after.st_mode & 07777) == 0600);
    ck_assert_uint_ne(after.st_uid, 0);
    ck_assert_int_eq(symlink("/etc/passwd", mem_printf(r.ctx, "%s/local/l", top)), 0);
    replace(&r, "web/local/l", "in place of the link", true);
    ck_assert_str_eq(rig_file(&r, rig_id, "web/local/l"), "in place of the link");
    ck_assert_int_eq(mkdir(mem_printf(r.ctx, "%s/local/d", top), 0755), 0);
    replace(&r, "web/local/d", "s", false);
    ck_assert_int_eq(symlink("/etc", mem_printf(r.ctx, "%s/local/e", top)), 0);
    replace(&r, "web/local/e/x", "s", false);
    replace(&r, "alloc/logs/x", "s", false);
    ck_assert_int_ne(access("/etc/x", F_OK), 0);
    ck_assert_int_ne(access(mem_printf(r.ctx, "%s/local/.d.new", top), F_OK), 0);
    struct got g = {0};
    struct warden_put p = {
        .alloc_id = rig_id, .task = "web", .path = "web/local/t", .owner = "65534"};
    warden_replace(r.client, &p, rig_got, &g);
    expect_code(&r, &g, 0, NULL);
    ck_assert_int_eq(stat(file, &after), 0);
    ck_assert_uint_eq(after.st_uid, NOBODY);
    g = (struct got){0};
    p.owner = "nobody-of-that-name";
    warden_replace(r.client, &p, rig_got, &g);
    expect_code(&r, &g, ERR_NOT_FOUND, NULL);
    rig_stop(&r);
}
END_TEST

static int
connect_to(const char *path)
{
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
    return connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0 ? -errno : 0;
}

START_TEST(makes_sockets)
{
    TEST_NEED("root");
    struct rig r;
    struct stat st;
    rig_start(&r, 0);
    rig_alloc(&r, rig_id, "web", "exec");
    const char *top = mem_printf(r.ctx, "%s/%s/web", r.policy.alloc_dir, rig_id);
    const char *path = mem_printf(r.ctx, "%s/private/s", top);
    for (int i = 0; i < 2; i++) { /* the second takes the place of the first */
        struct got g = {0};
        struct warden_put p = {.alloc_id = rig_id, .task = "web", .path = "web/private/s"};
        warden_socket(r.client, &p, rig_got, &g);
        rig_wait(&r, &g);
        ck_assert_msg(g.err.code == 0 && g.file >= 0, "%s", g.err.text);
        ck_assert_int_eq(stat(path, &st), 0);
        ck_assert(S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0600 && st.st_uid != 0);
        ck_assert_int_eq(connect_to(path), 0);
        got_free(&g);
    }
    ck_assert_int_eq(symlink("/etc", mem_printf(r.ctx, "%s/away", top)), 0);
    struct got g = {0};
    struct warden_put p = {.alloc_id = rig_id, .task = "web", .path = "web/away/s"};
    warden_socket(r.client, &p, rig_got, &g);
    rig_wait(&r, &g);
    ck_assert_int_ne(g.err.code, 0);
    got_free(&g);
    ck_assert_int_ne(access("/etc/s", F_OK), 0);
    ck_assert_int_ne(access(mem_printf(r.ctx, "%s/../.socket", top), F_OK), 0);
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
    packet_buffers(fd);
    return fd;
}

/* The warden closes the connection after this packet, and only this connection. */
static void
hostile(struct rig *r, const void *p, size_t n, int pass_fd)
{
    int fd = raw_connect(r);
    ck_assert_int_eq(packet_send(fd, p, n, &pass_fd, pass_fd >= 0), 0);
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
    ck_assert_int_eq(packet_send(fd, h.data, h.len, NULL, 0), 0);
    ck_assert_int_eq(packet_send(fd, b.data, b.len, NULL, 0), 0);
    char buf[8192];
    ck_assert_int_gt(recv(fd, buf, sizeof(buf), 0), 0);
    ck_assert_int_le(recv(fd, buf, sizeof(buf), 0), 0);
    close(fd);
}

#define TASKS_WEB                                                                                  \
    {                                                                                              \
        (struct warden_task *[]){&(struct warden_task){.name = "web"}}, 1                          \
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
    struct net_request_port high = {.host_ip = "127.0.0.1", .host_port = 65536},
                            low = {.host_ip = "127.0.0.1", .host_port = 0},
                            name = {.host_ip = "localhost", .host_port = 80},
                            *v_high[] = {&high}, *v_low[] = {&low}, *v_name[] = {&name}, *v_null[] = {NULL};
    struct net_request host = {.mode = "host"}, cni = {.mode = "cni/x"}, none = {.mode = "none"},
                       bad_high = {.mode = "bridge", .ports = {v_high, 1}},
                       bad_low = {.mode = "bridge", .ports = {v_low, 1}},
                       bad_name = {.mode = "bridge", .ports = {v_name, 1}},
                       bad_null = {.mode = "bridge", .ports = {v_null, 1}},
                       ports = {.mode = "none", .ports = {v_low, 1}};
    const struct warden_request bad[] = {
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id},
        {.op = WARDEN_NET_MAKE, .alloc_id = "../x", .network = &none},
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id, .network = &host},
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id, .network = &cni},
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id, .network = &bad_high},
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id, .network = &bad_low},
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id, .network = &bad_name},
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id, .network = &bad_null},
        {.op = WARDEN_NET_MAKE, .alloc_id = rig_id, .network = &ports},
        {.op = WARDEN_NET_REMOVE, .alloc_id = rig_id, .network = &none},
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
        {.op = WARDEN_ALLOC_MAKE, .alloc_id = rig_id, .disk_mb = -1},
        {.op = WARDEN_ALLOC_MAKE, .alloc_id = rig_id, .disk_mb = INT64_C(1) << 31},
        {.op = WARDEN_ALLOC_REMOVE, .alloc_id = rig_id, .disk_mb = 10},
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

START_TEST(closes_on_hostile_commands)
{
    TEST_NEED("root");
    struct rig r;
    rig_start(&r, 0);
    hostile_request(
        &r, &(struct warden_request){
                .op = WARDEN_DISK_MOVE, .alloc_id = rig_id, .tasks = TASKS_WEB, .from = "../x"});
    hostile_request(
        &r, &(struct warden_request){
                .op = WARDEN_DISK_MOVE, .alloc_id = rig_id, .tasks = TASKS_WEB, .from = rig_id});
    struct warden_volume volumes[] = {
        {.id = NULL},
        {.id = ""},
        {.id = "."},
        {.id = "../x"},
        {.id = "01234567-89ab-cdef-0123-456789abcde/"},
        {.id = rig_id, .mode = 04777},
        {.id = rig_id, .mode = -1},
        {.id = rig_id, .uid = -1},
        {.id = rig_id, .uid = INT64_C(1) << 31},
        {.id = rig_id, .gid = INT64_C(1) << 32},
        {.id = rig_id, .size_mb = -1},
        {.id = rig_id, .size_mb = INT64_C(1) << 31},
    };
    for (size_t i = 0; i < ARRAY_LEN(volumes); i++) {
        hostile_request(&r,
                        &(struct warden_request){.op = WARDEN_VOLUME_MAKE, .volume = &volumes[i]});
        hostile_request(
            &r, &(struct warden_request){.op = WARDEN_VOLUME_REMOVE, .volume = &volumes[i]});
    }
    struct warden_volume good = {.id = rig_id};
    hostile_request(&r, &(struct warden_request){.op = WARDEN_VOLUME_MAKE});
    hostile_request(&r, &(struct warden_request){
                            .op = WARDEN_VOLUME_MAKE, .volume = &good, .alloc_id = rig_id});
    hostile_request(
        &r, &(struct warden_request){
                .op = WARDEN_KILL, .alloc_id = rig_id, .task_name = "web", .volume = &good});
    const char *no_name[] = {""}, *some[] = {"/bin/true"}, *no_env[] = {"x"};
    struct exec_request nothing = {.tty = true}, empty = {.command = {no_name, 1}},
                        env = {.command = {some, 1}, .env = {no_env, 1}},
                        wide = {.command = {some, 1}, .columns = 65536};
    const struct warden_request bad[] = {
        {.op = WARDEN_EXEC, .alloc_id = rig_id, .task_name = "web"},
        {.op = WARDEN_EXEC, .alloc_id = rig_id, .task_name = "web", .exec = &nothing},
        {.op = WARDEN_EXEC, .alloc_id = rig_id, .task_name = "web", .exec = &empty},
        {.op = WARDEN_EXEC, .alloc_id = rig_id, .task_name = "web", .exec = &env},
        {.op = WARDEN_EXEC, .alloc_id = rig_id, .task_name = "web", .exec = &wide},
        {.op = WARDEN_KILL, .alloc_id = rig_id, .task_name = "web", .exec = &wide},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        hostile_request(&r, &bad[i]);
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
    warden_list(r.client, NULL, NULL, rig_got, &a);
    rig_kill(&r, SIGKILL);
    expect_code(&r, &a, ERR_UNAVAILABLE, NULL);
    ck_assert_int_eq(warden_client_fd(r.client), -1);
    warden_list(r.client, NULL, NULL, rig_got, &b);
    ck_assert(!b.done);
    ck_assert(warden_client_pending(r.client));
    expect_code(&r, &b, ERR_UNAVAILABLE, NULL);
    rig_spawn(&r);
    rig_connect(&r);
    b = (struct got){0};
    warden_list(r.client, NULL, NULL, rig_got, &b);
    expect_code(&r, &b, 0, NULL);
    rig_stop(&r);
}
END_TEST

static unsigned
mounts_below(struct rig *r)
{
    char *text;
    unsigned n = 0;
    ck_assert_int_eq(file_read(r->ctx, AT_FDCWD, MOUNTS_FILE, MOUNT_TABLE_MAX, &text, NULL), 0);
    for (struct mount_line m; mounts_next(&text, &m);)
        n += str_prefix(m.point, r->policy.alloc_dir);
    return n;
}

static void
make_with_memory(struct rig *r, int code)
{
    struct warden_task web = {
        .name = "web", .driver = "raw_exec", .secrets_mb = code == 0 ? 2 : 2000};
    struct warden_task x = {.name = "x", .driver = "exec"};
    const struct warden_task *v[] = {&web, &x};
    struct got g = {0};
    warden_alloc_make(r->client, &(struct warden_alloc){.id = rig_id, .tasks = v, .n = 2}, rig_got,
                      &g);
    expect_code(r, &g, code, NULL);
}

/* For the host as for the warden, once, also for a warden that starts later; and it goes with the
 * allocation, wherever a task has moved it to. */
START_TEST(memory_for_secrets)
{
    TEST_NEED("root");
    struct rig r;
    struct statvfs disk, memory;
    rig_start(&r, 0);
    if (!str_eq(rig_fact(&r, "tmpfs_noswap"), "true")) {
        printf("# SKIP tmpfs_noswap: %s\n", rig_fact(&r, "tmpfs_noswap"));
        rig_stop(&r);
        return;
    }
    make_with_memory(&r, ERR_INVALID);
    rig_stop(&r);
    rig_start(&r, 0);
    make_with_memory(&r, 0);
    make_with_memory(&r, 0);
    ck_assert_uint_eq(mounts_below(&r), 1);
    const char *top = mem_printf(r.ctx, "%s/%s", r.policy.alloc_dir, rig_id);
    ck_assert_int_eq(statvfs(mem_printf(r.ctx, "%s/web/secrets", top), &memory), 0);
    ck_assert_int_eq(statvfs(mem_printf(r.ctx, "%s/x/secrets", top), &disk), 0);
    ck_assert_uint_eq(memory.f_blocks * memory.f_frsize, 2 << 20);
    ck_assert_uint_ne(disk.f_fsid, memory.f_fsid);
    struct stat st;
    ck_assert_int_eq(stat(mem_printf(r.ctx, "%s/web/secrets", top), &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    put(&r, "web/secrets/t", "s", 0, 0);
    ck_assert_str_eq(rig_file(&r, rig_id, "web/secrets/t"), "s");
    rig_kill(&r, SIGKILL);
    rig_spawn(&r);
    warden_client_free(r.client);
    r.client = warden_client_new(r.ctx, r.socket);
    rig_connect(&r);
    put(&r, "web/secrets/u", "new", 0, 0);
    ck_assert_str_eq(rig_file(&r, rig_id, "web/secrets/u"), "new");
    make_with_memory(&r, 0);
    ck_assert_uint_eq(mounts_below(&r), 1);
    /* a mount is held where it is only in a namespace that has it */
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        const char *web = mem_printf(r.ctx, "%s/web", top);
        _exit(unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
              chdir(web) < 0 || umount2("secrets", MNT_DETACH) < 0 || mkdir("local/a", 0700) < 0 ||
              rename("secrets", "local/a/b") < 0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(mounts_below(&r), 1);
    struct got g = {0};
    warden_alloc_remove(r.client, rig_id, rig_got, &g);
    expect_code(&r, &g, 0, NULL);
    ck_assert_uint_eq(mounts_below(&r), 0);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("warden-table", 60, writes_files, replaces_files, makes_sockets, reads_files,
                   memory_for_secrets, lists_and_removes, closes_on_hostile_requests,
                   closes_on_hostile_commands, refuses_other_users,
                   completes_requests_when_the_warden_dies)
