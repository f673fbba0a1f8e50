/* SPDX-License-Identifier: Apache-2.0
 *
 * What is counted of the processes of tasks and of their requests to disks.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/loop.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/bpf/read.h"
#include "isolation/bpf/rows.h"
#include "isolation/cgroup/cgroup.h"
#include "isolation/launch/policy.h"
#include "isolation/launch/record.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

/* Asks for the counters; what is to be kept open stays in `g`. */
static void
open_runs(struct rig *r, struct bpf_read *ret, struct got *g)
{
    *g = (struct got){0};
    warden_info(r->client, rig_got, g);
    rig_wait(r, g);
    ck_assert_msg(g->err.code == 0, "%s", g->err.text);
    ck_assert_int_ge(g->runs, 0);
    ck_assert_int_eq(bpf_read_open_runs(ret, g->runs), 0);
}

START_TEST(counts_processes_and_waits)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct bpf_read read = {0};
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_run")) {
        struct got g, keep, again, d = {0};
        struct bpf_run_counts n, m;
        uint64_t waits = 0;
        size_t hint = 0;
        rig_alloc(&r, rig_id, "web", "exec");
        rig_launch(&r,
                   rig_spec(&r, rig_id, "web", true,
                            "i=0; while [ $i -lt 50 ]; do /bin/true; i=$((i+1)); done; echo done; "
                            "exec sleep 1000"),
                   &g);
        rig_await(&r, "web", "done");
        open_runs(&r, &read, &keep);
        int64_t end = clock_mono_ns() + 10 * NS_PER_S;
        do { /* the last exec comes after its word */
            ck_assert(bpf_read_run(&read, rig_leaf(&g), &hint, &n));
            rig_pause(5);
        } while (n.execs < 52 && clock_mono_ns() < end);
        ck_assert_uint_eq(n.execs, 52); /* sh, 50 times true, sleep */
        ck_assert_uint_eq(n.exits, 50);
        ck_assert_uint_eq(n.ooms, 0);
        for (size_t i = 0; i < BPF_WAIT_BUCKETS; i++)
            waits += n.waits[i];
        ck_assert_uint_ge(waits, 100); /* each of them, and the shell after each */
        ck_assert_uint_gt(n.wait_ns, 0);
        /* the agent holds the links: a new warden goes on with the same counters */
        rig_kill(&r, SIGKILL);
        ck_assert_int_eq(warden_client_ready(r.client), -ERR_CLOSED);
        rig_spawn(&r);
        rig_connect(&r);
        open_runs(&r, &read, &again);
        ck_assert(bpf_read_run(&read, rig_leaf(&g), &hint, &m));
        ck_assert_uint_eq(m.execs, 52);
        ck_assert_uint_ge(m.wait_ns, n.wait_ns);
        uint64_t id = rig_leaf(&g);
        warden_destroy(r.client, rig_id, "web", rig_got, &d);
        rig_wait(&r, &d);
        ck_assert(!bpf_read_run(&read, id, &hint, &m));
        got_free(&d);
        got_free(&keep);
        got_free(&again);
        got_free(&g);
    }
    bpf_read_close(&read);
    rig_stop(&r);
}
END_TEST

/* The kernel ends a task's process: who it was is there as soon as the end is. Memory is not controlled
 * on version 2 of a hybrid host, so version 1 limits the process here. */
START_TEST(names_the_victim)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    char v1[96];
    snprintf(v1, sizeof(v1), "/sys/fs/cgroup/memory/paddock-rig-%d", (int)getpid());
    if (mkdir(v1, 0755) < 0) {
        printf("# SKIP no memory controller of version 1\n");
        return;
    }
    struct rig r;
    struct bpf_read read = {0};
    rig_start(&r, 0);
    if (rig_has(&r, "bpf_run")) {
        struct got g, keep;
        struct bpf_run_counts n;
        size_t hint = 0;
        rig_alloc(&r, rig_id, "web", "exec");
        rig_launch(&r,
                   rig_python(&r, "web", true,
                          "import os,time\nprint('up',flush=True)\n"
                          "while not os.path.exists('/local/go'): time.sleep(0.01)\n"
                          "b=bytearray(256<<20)\n"),
                   &g);
        rig_await(&r, "web", "up");
        open_runs(&r, &read, &keep);
        ck_assert_int_eq(file_put(AT_FDCWD, mem_printf(r.ctx, "%s/memory.limit_in_bytes", v1), "48M"), 0);
        (void)file_put(AT_FDCWD, mem_printf(r.ctx, "%s/memory.memsw.limit_in_bytes", v1), "48M");
        ck_assert_int_eq(file_put(AT_FDCWD, mem_printf(r.ctx, "%s/cgroup.procs", v1),
                                  mem_printf(r.ctx, "%d", (int)g.rec->pid)), 0);
        char *go = mem_printf(r.ctx, "%s/%s/web/local/go", r.policy.alloc_dir, rig_id);
        ck_assert_int_eq(file_write_atomic(AT_FDCWD, go, "", 0, 0644), 0);
        struct task_record *t = rig_end(&r, &g);
        ck_assert_int_eq(t->signal, SIGKILL);
        ck_assert(bpf_read_run(&read, rig_leaf(&g), &hint, &n));
        ck_assert_uint_eq(n.ooms, 1);
        ck_assert_uint_eq(n.oom_pid, (uint64_t)g.rec->pid);
        ck_assert_msg(str_prefix(n.oom_comm, "python3"), "%s", n.oom_comm);
        got_free(&keep);
        got_free(&g);
    }
    bpf_read_close(&read);
    rig_stop(&r);
    ck_assert_int_eq(rmdir(v1), 0);
}
END_TEST

enum { BLOCK = 65536, BLOCKS = 64 };

/* Writes and reads 4 MiB past the cache, as a member of `cgroup`; what it exits with is errno. */
static int
use_disk(const char *cgroup, const char *path)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        void *p = NULL;
        int fd = file_put(AT_FDCWD, cgroup, "0") < 0 || posix_memalign(&p, BLOCK, BLOCK) != 0
                     ? -1
                     : open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
        bool good = fd >= 0;
        for (int i = 0; good && i < BLOCKS; i++)
            good = pwrite(fd, p, BLOCK, (off_t)i * BLOCK) == BLOCK;
        for (int i = 0; good && i < BLOCKS; i++)
            good = pread(fd, p, BLOCK, (off_t)i * BLOCK) == BLOCK;
        _exit(good ? 0 : errno);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A group of version 1, where disks know those: told the id of one, the programs count it. (Wardens tell
 * none: ids of two hierarchies could be the same.) */
struct group {
    struct bpf_rows rows;
    struct bpf_read read;
    const char *dir, *procs;
    uint64_t id;
};

static bool
group_start(struct rig *r, struct group *g)
{
    struct err e = ERR_INIT;
    struct stat st;
    *g = (struct group){.rows = BPF_ROWS_NONE};
    g->dir = mem_printf(r->ctx, "/sys/fs/cgroup/blkio/paddock-rig-%d", (int)getpid());
    g->procs = mem_printf(r->ctx, "%s/cgroup.procs", g->dir);
    if (!rig_has(r, "bpf_run"))
        return false;
    if (mkdir(g->dir, 0755) < 0 || stat(g->dir, &st) < 0) {
        printf("# SKIP no io controller of version 1\n");
        return false;
    }
    auto_fd int tasks = open(r->policy.cgroup_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_msg(bpf_rows_open(&g->rows, &bpf_rows_block, tasks, &e) == 0, "%s", e.text);
    g->id = st.st_ino;
    ck_assert(bpf_rows_add(&g->rows, g->id));
    ck_assert_int_eq(bpf_read_open_blocks(&g->read, g->rows.map), 0);
    return true;
}

static struct bpf_block_counts
group_end(struct group *g)
{
    struct bpf_block_counts n = {0};
    size_t hint = 0;
    ck_assert(bpf_read_block(&g->read, g->id, &hint, &n));
    bpf_read_close(&g->read);
    bpf_rows_close(&g->rows);
    ck_assert_int_eq(rmdir(g->dir), 0);
    return n;
}

/* A guest's kernel may run no program in the interrupts that meet its host's agent (seen on Firecracker:
 * every request that ended over a thread of its init was missing). Of some tries one meets none of them. */
START_TEST(programs_for_disks_count)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct group g;
    bool exact = false;
    rig_start(&r, 0);
    for (int i = 0; i < 8 && !exact && group_start(&r, &g); i++) {
        int rc = use_disk(g.procs, mem_printf(r.ctx, "%s/disk", r.dir));
        struct bpf_block_counts n = group_end(&g);
        if (rc != 0 || n.reads + n.writes == 0) { /* O_DIRECT is refused, or no queue of requests */
            printf("# SKIP %s is on no disk with requests: %s\n", r.dir, strerror(rc));
            break;
        }
        printf("# try %d: %" PRIu64 " bytes written, %" PRIu64 " read\n", i, n.write_bytes, n.read_bytes);
        exact = n.write_bytes == BLOCK * BLOCKS && n.read_bytes == BLOCK * BLOCKS;
        /* the file system's own: a map of free blocks that nobody had read yet */
        ck_assert_uint_le(n.write_bytes, BLOCK * BLOCKS * 101 / 100);
        ck_assert_uint_le(n.read_bytes, BLOCK * BLOCKS * 101 / 100);
        ck_assert_uint_eq(n.errors, 0);
        ck_assert(exact || i < 7);
    }
    rig_stop(&r);
}
END_TEST

/* A disk that has less than it says: a file without its blocks on a file system that is full. */
static int
false_disk(struct rig *r, char path[32])
{
    struct loop_config c = {.info.lo_flags = LO_FLAGS_AUTOCLEAR};
    char *dir = mem_printf(r->ctx, "%s/small", r->dir);
    auto_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int number = control >= 0 ? ioctl(control, LOOP_CTL_GET_FREE) : -1;
    if (number < 0)
        return -1;
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(mount("none", dir, "tmpfs", 0, "size=512k"), 0);
    auto_fd int file = open(mem_printf(r->ctx, "%s/disk", dir), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(ftruncate(file, BLOCK * BLOCKS), 0);
    c.fd = (uint32_t)file;
    snprintf(path, 32, "/dev/loop%d", number);
    auto_fd int loop = open(path, O_RDWR | O_CLOEXEC);
    bool good = loop >= 0 && ioctl(loop, LOOP_CONFIGURE, &c) == 0;
    ck_assert_int_eq(umount2(dir, MNT_DETACH), 0);
    ck_assert_int_eq(rmdir(dir), 0);
    return good ? TAKE_FD(loop) : -1;
}

START_TEST(failed_requests_are_told)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct group g;
    char path[32];
    rig_start(&r, 0);
    auto_fd int loop = false_disk(&r, path);
    if (loop < 0) {
        printf("# SKIP no loop device: %s\n", strerror(errno));
    } else if (group_start(&r, &g)) {
        int rc = use_disk(g.procs, path);
        struct bpf_block_counts n = group_end(&g);
        ck_assert_msg(rc == EIO || rc == ENOSPC, "%s", strerror(rc));
        ck_assert_uint_ge(n.errors, 1);
        ck_assert_uint_ge(n.writes, 1);
        ck_assert_uint_eq(n.write_bytes, n.writes * BLOCK); /* nothing of what failed */
        ck_assert_uint_le(n.write_bytes, 512 << 10);
    }
    rig_stop(&r);
}
END_TEST

/* The kernel's own sums are the other witness: they have what the task's programs were read from, too. */
START_TEST(counts_requests_to_disks)
{
    TEST_NEED("root");
    TEST_NEED("cgroup2");
    struct rig r;
    struct bpf_read read = {0};
    struct got g, keep = {0}, again = {0}, d = {0};
    rig_start(&r, 0);
    const char *why = rig_fact(&r, "bpf_block");
    warden_info(r.client, rig_got, &keep);
    rig_wait(&r, &keep);
    ck_assert_int_eq(keep.blocks >= 0, str_eq(why, "true"));
    if (!str_eq(why, "true")) {
        ck_assert_str_ne(why, "");
        printf("# SKIP bpf_block: %s\n", why);
    } else {
        struct bpf_block_counts n;
        struct cgroup_stats cg;
        uint64_t all = 0;
        size_t hint = 0;
        rig_alloc(&r, rig_id, "web", "exec");
        rig_launch(&r,
                   rig_spec(&r, rig_id, "web", true,
                            "dd if=/dev/zero of=/local/x bs=64k count=256 oflag=direct 2>/dev/null && "
                            "dd if=/local/x of=/dev/null bs=64k iflag=direct 2>/dev/null && "
                            "echo done; exec sleep 1000"),
                   &g);
        rig_await(&r, "web", "done");
        ck_assert_int_eq(bpf_read_open_blocks(&read, keep.blocks), 0);
        ck_assert(bpf_read_block(&read, rig_leaf(&g), &hint, &n));
        ck_assert_int_eq(cgroup_stats_read(g.cgroup, &cg), 0);
        for (size_t i = 0; i < BPF_TIME_BUCKETS; i++)
            all += n.times[i];
        rig_near(n.write_bytes, 16 << 20, "bytes written");
        rig_near(n.write_bytes, (uint64_t)cg.io_wbytes, "bytes written, by io.stat");
        rig_near(n.read_bytes, (uint64_t)cg.io_rbytes, "bytes read, by io.stat");
        ck_assert_uint_ge(n.read_bytes, 16 << 20);
        ck_assert_uint_eq(n.errors, 0);
        ck_assert_uint_eq(all, n.reads + n.writes);
        ck_assert_uint_gt(n.time_ns, 0);
        struct bpf_block_counts m;
        rig_kill(&r, SIGKILL); /* we hold the link as the agent does: a new warden goes on */
        ck_assert_int_eq(warden_client_ready(r.client), -ERR_CLOSED);
        rig_spawn(&r);
        rig_connect(&r);
        warden_info(r.client, rig_got, &again);
        rig_wait(&r, &again);
        ck_assert_int_eq(bpf_read_open_blocks(&read, again.blocks), 0);
        ck_assert(bpf_read_block(&read, rig_leaf(&g), &hint, &m));
        ck_assert_uint_eq(m.writes, n.writes);
        ck_assert_uint_ge(m.write_bytes, n.write_bytes);
        got_free(&again);
        uint64_t id = rig_leaf(&g);
        warden_destroy(r.client, rig_id, "web", rig_got, &d);
        rig_wait(&r, &d);
        ck_assert(!bpf_read_block(&read, id, &hint, &n));
        got_free(&d);
        got_free(&g);
    }
    got_free(&keep);
    bpf_read_close(&read);
    rig_stop(&r);
}
END_TEST

TEST_SUITE_TIMEOUT("counts", 60, counts_processes_and_waits, names_the_victim, programs_for_disks_count,
                   failed_requests_are_told, counts_requests_to_disks)
