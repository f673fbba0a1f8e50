/* SPDX-License-Identifier: Apache-2.0
 *
 * What an allocation may have on disk: on a file system of the test's own (ext4 with project quotas
 * in a file), where the kernel has them; and what is said where it has not.
 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/confine/raw.h"
#include "isolation/root/quota.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

#define MIB (UINT64_C(1) << 20)
enum { DISK_MB = 192, SIZE_MB = 16, NOBODY = 65534 };
static const char other_id[] = "0000002b-89ab-cdef-0123-456789abcdef";
static const char third_id[] = "0000002c-89ab-cdef-0123-456789abcdef";

START_TEST(a_part_of_the_inodes)
{
    ck_assert_uint_eq(quota_size(300, 100 << 10, 0).inodes, 0);
    ck_assert_uint_eq(quota_size(300, 0, 1 << 20).inodes, 0);
    ck_assert_uint_eq(quota_size(300, 0, 1 << 20).bytes, 300 * MIB);
    ck_assert_uint_eq(quota_size(256, 1024 * MIB, 65536).inodes, 16384);
    ck_assert_uint_eq(quota_size(1, 1024 * MIB, 65536).inodes, QUOTA_INODES_MIN);
    ck_assert_uint_eq(quota_size(4096, 1024 * MIB, 65536).inodes, 65536);
    struct quota_size most = quota_size(QUOTA_MB_MAX, UINT64_MAX, UINT64_MAX);
    ck_assert_uint_eq(most.bytes, (uint64_t)QUOTA_MB_MAX * MIB);
    ck_assert_uint_eq(most.inodes, most.bytes);
}
END_TEST

START_TEST(a_file_system_without)
{
    char path[] = "/dev/shm/quota-XXXXXX";
    struct err e = ERR_INIT;
    uint32_t next = 0;
    if (mkdtemp(path) == NULL) {
        printf("# SKIP tmpfs: no /dev/shm\n");
        return;
    }
    auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(quota_probe(fd, &e), -ERR_UNSUPPORTED);
    ck_assert_msg(strstr(e.text, "prjquota") || strstr(e.text, "quotactl_fd"), "%s", e.text);
    err_clear(&e);
    ck_assert_int_lt(quota_set(fd, 10, &next, &e), 0);
    ck_assert_uint_eq(quota_project(fd), 0);
    ck_assert_int_eq(quota_lift(fd), 0); /* nothing of ours */
    ck_assert_int_eq(rmdir(path), 0);    /* and nothing is left in it */
}
END_TEST

/* --- wardens --- */

static int
alloc_make(struct rig *r, const char *id, int64_t mb, const char *why)
{
    struct warden_task t = {.name = "web", .driver = "exec"}, x = {.name = "x", .driver = "exec"};
    const struct warden_task *v[] = {&t, &x};
    const struct warden_alloc a = {.id = id, .tasks = v, .n = 2, .disk_mb = mb};
    struct got g = {0};
    warden_alloc_make(r->client, &a, rig_got, &g);
    rig_wait(r, &g);
    return got_expect(&g, why);
}

static void
alloc_remove(struct rig *r, const char *id)
{
    struct got g = {0};
    warden_alloc_remove(r->client, id, rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg(g.err.code == 0, "%s", g.err.text);
    got_free(&g);
}

static void
restart(struct rig *r)
{
    rig_kill(r, SIGKILL);
    rig_spawn(r);
    warden_client_free(r->client);
    r->client = warden_client_new(r->ctx, r->socket);
    rig_connect(r);
}

START_TEST(a_kernel_without)
{
    TEST_NEED("root"); /* to have a filter over a warden */
    struct rig r;
    rig_start(&r, 0);
    r.denied[r.n_denied++] = (struct rig_denied){SYS_quotactl_fd, ENOSYS};
    restart(&r);
    ck_assert_str_eq(rig_fact(&r, "disk_quota"), "quotactl_fd: not in this kernel");
    alloc_make(&r, rig_id, 10, NULL);
    rig_stop(&r);
}
END_TEST

START_TEST(what_the_policy_says)
{
    struct rig r;
    struct stat st;
    rig_start(&r, geteuid());
    if (str_eq(rig_fact(&r, "disk_quota"), "true")) {
        printf("# SKIP disk_quota: /tmp has project quotas\n");
        rig_stop(&r);
        return;
    }
    const char *why = rig_fact(&r, "disk_quota");
    ck_assert_msg(strlen(why) > 10, "%s", why);
    alloc_make(&r, rig_id, 10, NULL);
    r.policy.disk_quota = "required";
    rig_change_policy(&r);
    ck_assert_int_eq(alloc_make(&r, other_id, 10, why), -ERR_POLICY);
    ck_assert_int_eq(alloc_make(&r, other_id, 0, "no size"), -ERR_POLICY);
    const char *web = mem_printf(r.ctx, "%s/%s/web", r.policy.alloc_dir, other_id);
    ck_assert_int_ne(stat(web, &st), 0);
    alloc_remove(&r, other_id);
    r.policy.disk_quota = "off";
    rig_change_policy(&r);
    alloc_make(&r, other_id, 10, NULL);
    ck_assert_str_eq(rig_fact(&r, "disk_quota"), "off by the client's policy");
    rig_stop(&r);
}
END_TEST

static int
volume(struct rig *r, bool make, int64_t mb, const char *why)
{
    const struct warden_volume v = {.id = other_id, .mode = 0700, .size_mb = mb};
    struct got g = {0};
    rig_volume(r, make, &v, &g);
    return got_expect(&g, why);
}

START_TEST(volumes_where_there_are_none)
{
    TEST_NEED("root");
    struct rig r;
    struct stat st;
    rig_start(&r, 0);
    r.policy.host_volumes_dir = mem_printf(r.ctx, "%s/volumes", r.dir);
    rig_change_policy(&r);
    if (!str_eq(rig_fact(&r, "disk_quota"), "true")) {
        const char *path = mem_printf(r.ctx, "%s/%s", r.policy.host_volumes_dir, other_id);
        ck_assert_int_eq(volume(&r, true, 10, "to 10 MiB (parameter size): "), -ERR_UNSUPPORTED);
        ck_assert_int_ne(stat(path, &st), 0);
        volume(&r, true, 0, NULL);
        ck_assert_int_eq(stat(path, &st), 0);
        volume(&r, true, 10, "parameter size");
        ck_assert_int_eq(stat(path, &st), 0);
        volume(&r, false, 10, NULL);
        ck_assert_int_ne(stat(path, &st), 0);
    }
    rig_stop(&r);
}
END_TEST

/* --- on a disk --- */

static bool
ran(const char *const argv[])
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        auto_fd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status == 0;
}

/* A rig whose alloc_dir is a file system of its own. */
static bool
disk_start(struct rig *r)
{
    if (!test_need("root") || !test_need("cgroup2"))
        return false;
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    rig_start(r, 0);
    const char *image = mem_printf(r->ctx, "%s/disk", r->dir);
    const char *const make[] = {"mkfs.ext4",          "-q",  "-O", "project,quota", "-E",
                                "quotatype=prjquota", image, NULL};
    const char *const attach[] = {"mount", "-o", "loop,prjquota", image, r->policy.alloc_dir, NULL};
    auto_fd int fd = open(image, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(fd, (off_t)(DISK_MB * MIB)), 0);
    const char *why = !ran(make)     ? "mkfs.ext4 makes no file system with project quotas"
                      : !ran(attach) ? "this kernel mounts no ext4 with project quotas"
                                     : NULL;
    if (why != NULL) {
        printf("# SKIP disk_quota: %s\n", why);
        rig_stop(r);
        return false;
    }
    restart(r);
    ck_assert_str_eq(rig_fact(r, "disk_quota"), "true");
    return true;
}

static void
disk_stop(struct rig *r)
{
    rig_kill(r, SIGUSR1);
    ck_assert_int_eq(umount2(r->policy.alloc_dir, MNT_DETACH), 0);
    rig_stop(r);
}

static int
dir_of(struct rig *r, const char *id)
{
    int fd = open(mem_printf(r->ctx, "%s/%s", r->policy.alloc_dir, id),
                  O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    return fd;
}

static uint32_t
project(struct rig *r, const char *id)
{
    auto_fd int fd = dir_of(r, id);
    return quota_project(fd);
}

static struct if_dqblk
usage(struct rig *r, uint32_t id)
{
    struct if_dqblk q = {0};
    auto_fd int fd = open(r->policy.alloc_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(RAW(SYS_quotactl_fd, fd, (uint32_t)Q_GETQUOTA << SUBCMDSHIFT | 2, id, &q), 0);
    return q;
}

/* The limits are off when the removal is told; the last directory's inode goes with the last mount of
 * the task's namespace, which the kernel takes down a moment after its last process. */
static void
given_back(struct rig *r, uint32_t id)
{
    struct if_dqblk q = usage(r, id);
    ck_assert_uint_eq(q.dqb_bhardlimit, 0);
    ck_assert_uint_eq(q.dqb_ihardlimit, 0);
    int tries = 0;
    for (; q.dqb_curspace + q.dqb_curinodes != 0 && tries < 1000; tries++) {
        (void)poll(NULL, 0, 10);
        q = usage(r, id);
    }
    if (tries > 0)
        printf("# project %u: empty after %d tries\n", id, tries);
    ck_assert_uint_eq(q.dqb_curspace, 0);
    ck_assert_uint_eq(q.dqb_curinodes, 0);
}

#define FILL                                                                                       \
    "import os\n"                                                                                  \
    "def fill(path):\n"                                                                            \
    "    f = os.open(path, os.O_WRONLY | os.O_CREAT)\n"                                            \
    "    try:\n"                                                                                   \
    "        while True: os.write(f, bytes(65536))\n"                                              \
    "    except OSError as e: os.write(1, b'%d\\n' % e.errno)\n"

static struct task_record *
run(struct rig *r, const char *id, const char *code)
{
    struct got g, d = {0};
    struct launch_spec *s = rig_python(r, "web", true, code);
    s->alloc_id = id;
    rig_launch(r, s, &g);
    struct task_record *t = rig_end(r, &g);
    got_free(&g);
    warden_destroy(r->client, id, "web", rig_got, &d);
    rig_wait(r, &d);
    got_free(&d);
    return t;
}

static void
clear_logs(struct rig *r, const char *id)
{
    (void)unlink(mem_printf(r->ctx, "%s/%s/alloc/logs/web.stdout.0", r->policy.alloc_dir, id));
    (void)unlink(mem_printf(r->ctx, "%s/%s/alloc/logs/web.stderr.0", r->policy.alloc_dir, id));
}

static const char *
says(struct rig *r, const char *id, const char *code)
{
    clear_logs(r, id);
    struct task_record *t = run(r, id, code);
    ck_assert_msg(t->exit_code == 0, "exit %d: %s", (int)t->exit_code,
                  rig_file(r, id, "alloc/logs/web.stderr.0"));
    return rig_file(r, id, "alloc/logs/web.stdout.0");
}

START_TEST(bytes)
{
    struct rig r;
    if (!disk_start(&r))
        return;
    alloc_make(&r, rig_id, SIZE_MB, NULL);
    alloc_make(&r, other_id, SIZE_MB, NULL);
    uint32_t one = project(&r, rig_id), two = project(&r, other_id);
    ck_assert(one >= QUOTA_BASE && two >= QUOTA_BASE && one != two);
    ck_assert_uint_eq(usage(&r, one).dqb_bhardlimit << 10, SIZE_MB * MIB);
    /* to the last block, wherever in the task; its log drops what finds no room, and says so */
    struct task_record *t = run(&r, rig_id,
                                FILL "os.write(1, b'first')\n"
                                     "fill('/local/a')\nfill('/tmp/b')\nfill('/alloc/data/c')\n"
                                     "for i in range(64): os.write(1, bytes(65536))\n"
                                     "os._exit(7)");
    ck_assert_int_eq(t->exit_code, 7);
    ck_assert_int_gt(t->log_errors, 0);
    const char *log = rig_file(&r, rig_id, "alloc/logs/web.stdout.0");
    ck_assert_msg(str_prefix(log, "first"), "%.64s", log);
    rig_near(usage(&r, one).dqb_curspace, SIZE_MB * MIB, "bytes");
    /* a further task of it starts all the same */
    struct got g;
    struct launch_spec *s = rig_spec(&r, rig_id, "x", true, "exit 8");
    rig_launch(&r, s, &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 8);
    got_free(&g);
    /* another one has all of its own */
    ck_assert_str_eq(says(&r, other_id, FILL "fill('/local/a')\nos.remove('/local/a')"), "122\n");
    /* kept over a restart, and by who asks again; with another size where it is another */
    restart(&r);
    alloc_make(&r, rig_id, SIZE_MB, NULL);
    ck_assert_uint_eq(project(&r, rig_id), one);
    ck_assert_uint_eq(usage(&r, one).dqb_bhardlimit << 10, SIZE_MB * MIB);
    alloc_make(&r, third_id, SIZE_MB, NULL);
    ck_assert(project(&r, third_id) != one && project(&r, third_id) != two);
    alloc_make(&r, rig_id, 2 * SIZE_MB, NULL);
    ck_assert_str_eq(says(&r, rig_id, FILL "fill('/local/d')\nos.remove('/local/d')"), "122\n");
    /* and given back */
    alloc_remove(&r, rig_id);
    given_back(&r, one);
    disk_stop(&r);
}
END_TEST

START_TEST(inodes)
{
    struct rig r;
    if (!disk_start(&r))
        return;
    alloc_make(&r, rig_id, SIZE_MB, NULL);
    uint64_t most = usage(&r, project(&r, rig_id)).dqb_ihardlimit;
    ck_assert_uint_ge(most, QUOTA_INODES_MIN);
    const char *out = says(&r, rig_id,
                           "import os\n"
                           "n = 0\n"
                           "try:\n"
                           "    while True:\n"
                           "        os.mknod('/local/%d' % n); n += 1\n"
                           "except OSError as e: print(e.errno)\n"
                           "for i in range(n): os.remove('/local/%d' % i)");
    ck_assert_str_eq(out, "122\n");
    ck_assert_uint_lt(usage(&r, project(&r, rig_id)).dqb_curinodes, 32);
    disk_stop(&r);
}
END_TEST

/* A warden finds the directories that a warden killed between two steps has left, and those of
 * before there were limits. */
START_TEST(what_is_found)
{
    struct rig r;
    if (!disk_start(&r))
        return;
    const char *path = mem_printf(r.ctx, "%s/%s", r.policy.alloc_dir, rig_id);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    alloc_make(&r, rig_id, SIZE_MB, NULL);
    uint32_t one = project(&r, rig_id);
    ck_assert_uint_ne(one, 0);
    auto_fd int fd = dir_of(&r, rig_id);
    ck_assert_int_eq(quota_lift(fd), 0);
    alloc_make(&r, rig_id, SIZE_MB, NULL);
    ck_assert_uint_eq(project(&r, rig_id), one);
    ck_assert_uint_eq(usage(&r, one).dqb_bhardlimit << 10, SIZE_MB * MIB);
    r.policy.disk_quota = "off";
    rig_change_policy(&r);
    alloc_make(&r, other_id, SIZE_MB, NULL);
    ck_assert_uint_eq(project(&r, other_id), 0);
    r.policy.disk_quota = "auto";
    rig_change_policy(&r);
    alloc_make(&r, other_id, SIZE_MB, NULL);
    ck_assert_uint_eq(project(&r, other_id), 0);
    r.policy.disk_quota = "required";
    rig_change_policy(&r);
    ck_assert_int_eq(alloc_make(&r, other_id, SIZE_MB, "before there were limits"), -ERR_CONFLICT);
    ck_assert_int_eq(alloc_make(&r, third_id, 0, "no size"), -ERR_POLICY);
    /* a project of somebody else's in our range is left alone, even if its files are elsewhere */
    const char *theirs = mem_printf(r.ctx, "%s/theirs", r.policy.alloc_dir);
    ck_assert_int_eq(mkdir(theirs, 0700), 0);
    auto_fd int dir = open(theirs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t next = 1;
    struct err e = ERR_INIT;
    ck_assert_msg(quota_set(dir, 1, &next, &e) == 0, "%s", e.text);
    uint32_t taken = quota_project(dir);
    alloc_remove(&r, other_id);
    alloc_make(&r, other_id, SIZE_MB, NULL);
    ck_assert(project(&r, other_id) != taken && project(&r, other_id) != one);
    disk_stop(&r);
}
END_TEST

/* The files of a volume count there; another size holds at once. */
START_TEST(volumes_of_a_size)
{
    struct rig r;
    if (!disk_start(&r))
        return;
    r.policy.host_volumes_dir = mem_printf(r.ctx, "%s/volumes", r.policy.alloc_dir);
    rig_change_policy(&r);
    const char *path = mem_printf(r.ctx, "%s/%s", r.policy.host_volumes_dir, other_id);
    const char *file = mem_printf(r.ctx, "%s/f", path);
    static const uint8_t block[MIB];
    volume(&r, true, SIZE_MB, NULL);
    auto_fd int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint32_t id = quota_project(dir);
    ck_assert_uint_ge(id, QUOTA_BASE);
    ck_assert_uint_eq(usage(&r, id).dqb_bhardlimit << 10, SIZE_MB * MIB);
    auto_fd int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, block, sizeof(block)), sizeof(block));
    ck_assert_int_eq(fsync(fd), 0);
    ck_assert_uint_ge(usage(&r, id).dqb_curspace, MIB);
    volume(&r, true, 2 * SIZE_MB, NULL);
    ck_assert_uint_eq(quota_project(dir), id);
    ck_assert_uint_eq(usage(&r, id).dqb_bhardlimit << 10, 2 * SIZE_MB * MIB);
    volume(&r, true, 0, NULL);
    ck_assert_uint_eq(usage(&r, id).dqb_bhardlimit, 0);
    volume(&r, true, SIZE_MB, NULL);
    fd_close(&fd);
    fd_close(&dir);
    volume(&r, false, 0, NULL);
    given_back(&r, id);
    /* the file would not count */
    volume(&r, true, 0, NULL);
    fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(volume(&r, true, SIZE_MB, "before there were limits"), -ERR_CONFLICT);
    fd_close(&fd);
    volume(&r, false, 0, NULL);
    disk_stop(&r);
}
END_TEST

static void
disk_move(struct rig *r, const char *to, const char *from, const char *why)
{
    struct warden_task t = {.name = "web", .driver = "exec"};
    const struct warden_task *v[] = {&t};
    const struct warden_alloc a = {.id = to, .tasks = v, .n = 1};
    struct got g = {0};
    warden_disk_move(r->client, &a, from, rig_got, &g);
    rig_wait(r, &g);
    ck_assert_msg(why == NULL ? g.err.code == 0 : strstr(g.err.text, why) != NULL, "%s",
                  g.err.text);
    got_free(&g);
}

/* All that moves counts where it goes, and no more where it was. */
START_TEST(a_disk_that_is_handed_on)
{
    struct rig r;
    if (!disk_start(&r))
        return;
    alloc_make(&r, rig_id, SIZE_MB, NULL);
    alloc_make(&r, other_id, SIZE_MB, NULL);
    ck_assert_str_eq(says(&r, rig_id,
                          "import os\nos.makedirs('/local/a/b/c')\n"
                          "open('/local/a/b/c/f', 'wb').write(bytes(4 << 20))\n"
                          "open('/alloc/data/g', 'wb').write(bytes(4 << 20))\n"
                          "os.symlink('/etc/passwd', '/alloc/data/l')\nos.mkfifo('/alloc/data/p')\n"
                          "os.link('/local/a/b/c/f', '/local/h')\nprint('made')"),
                     "made\n");
    disk_move(&r, other_id, rig_id, NULL);
    disk_move(&r, other_id, rig_id, NULL); /* once more: done already */
    uint32_t one = project(&r, rig_id), two = project(&r, other_id);
    rig_near(usage(&r, two).dqb_curspace, 8 * MIB, "bytes moved");
    ck_assert_uint_lt(usage(&r, one).dqb_curspace, MIB);
    ck_assert_str_eq(says(&r, other_id,
                          FILL "import os\nprint(sorted(os.listdir('/alloc/data')), "
                               "os.path.getsize('/local/h'), os.readlink('/alloc/data/l'), "
                               "flush=True)\n"
                               "fill('/local/a/more')\nos.remove('/local/a/more')"),
                     "['g', 'l', 'p'] 4194304 /etc/passwd\n122\n");
    /* neither into what is there, nor from what runs, nor from nowhere */
    struct got g;
    alloc_make(&r, third_id, SIZE_MB, NULL);
    struct launch_spec *s = rig_spec(&r, other_id, "web", true, "exec sleep 1000");
    rig_launch(&r, s, &g);
    disk_move(&r, third_id, other_id, "still runs");
    disk_move(&r, other_id, third_id, "still runs");
    disk_move(&r, other_id, "0000002d-89ab-cdef-0123-456789abcdef", "still runs");
    got_free(&g);
    disk_move(&r, third_id, "0000002d-89ab-cdef-0123-456789abcdef", "has no directory");
    disk_stop(&r);
}
END_TEST

/* FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR, FS_IOC_GETFLAGS, FS_IOC_SETFLAGS; FS_PROJINHERIT_FL. */
#define LEAVE                                                                                      \
    "import fcntl, os, struct\n"                                                                   \
    "def attempt(f):\n"                                                                            \
    "    try: f(); print('done')\n"                                                                \
    "    except OSError as e: print(e.errno)\n"                                                    \
    "d = os.open('/local', os.O_RDONLY)\n"                                                         \
    "old = list(struct.unpack('5I8x', fcntl.ioctl(d, 0x801c581f, bytes(28))))\n"                   \
    "def project():\n"                                                                             \
    "    fcntl.ioctl(d, 0x401c5820, struct.pack('5I8x', *old[:3], 0, old[4]))\n"                   \
    "def inherit():\n"                                                                             \
    "    flags, = struct.unpack('L', fcntl.ioctl(d, 0x80086601, bytes(8)))\n"                      \
    "    assert flags & 0x20000000\n"                                                              \
    "    fcntl.ioctl(d, 0x40086602, struct.pack('L', flags & ~0x20000000))\n"                      \
    "attempt(project)\nattempt(inherit)\n"                                                         \
    "os.close(os.open('/local/a', os.O_CREAT))\n"                                                  \
    "attempt(lambda: os.link('/local/a', '/alloc/data/a'))\n"

START_TEST(a_task_stays_in_its_project)
{
    struct rig r;
    if (!disk_start(&r))
        return;
    r.policy.userns_host = true;
    rig_change_policy(&r);
    alloc_make(&r, rig_id, SIZE_MB, NULL);
    /* in a user namespace; and in the host's, where only the filter refuses: to link within one's
     * own allocation is fine, but those are two mounts */
    ck_assert_str_eq(says(&r, rig_id, LEAVE), "1\n1\n18\n");
    struct got g;
    struct launch_spec *s = rig_python(&r, "x", true, LEAVE);
    s->isolation->userns = "host";
    rig_launch(&r, s, &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 0);
    got_free(&g);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/x.stdout.0"), "1\n1\n18\n");
    /* without the filter the kernel refuses by itself, but for owners in the host's namespace */
    r.policy.seccomp = false;
    rig_change_policy(&r);
    clear_logs(&r, rig_id);
    s = rig_python(&r, "web", true, LEAVE);
    s->seccomp = "unconfined";
    rig_launch(&r, s, &g);
    ck_assert_int_eq(rig_end(&r, &g)->exit_code, 0);
    got_free(&g);
    ck_assert_str_eq(rig_file(&r, rig_id, "alloc/logs/web.stdout.0"), "22\n22\n18\n");
    disk_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("quota", 60, a_part_of_the_inodes, a_file_system_without, a_kernel_without,
                   what_the_policy_says, volumes_where_there_are_none, bytes, inodes, what_is_found,
                   volumes_of_a_size, a_disk_that_is_handed_on, a_task_stays_in_its_project)
