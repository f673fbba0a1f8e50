/* SPDX-License-Identifier: Apache-2.0
 *
 * Which files may be sealed at all, and what is said where nothing can be. Sealed ones, and who
 * executes them: tests/vm/cases_29_verity.py, since this needs a kernel and a file system with
 * fs-verity.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "common/str.h"
#include "isolation/root/verity.h"
#include "tests/isolation/rig.h"
#include "tests/lib/test.h"

static void
put(const char *path)
{
    ck_assert_int_eq(file_write_atomic(AT_FDCWD, path, "x", 1, 0644), 0);
}

/* A task's root as the shim sees it: the working directory, which becomes the root. */
static void
make_root(void)
{
    static const char *const dirs[] = {"local", "alloc", "volume"};
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        ck_assert_int_eq(mkdir(dirs[i], 0755), 0);
    ck_assert_int_eq(mount("alloc", "alloc", NULL, MS_BIND, NULL), 0);
    ck_assert_int_eq(mount("none", "volume", "tmpfs", 0, NULL), 0);
    put("file");
    put("local/file");
    put("alloc/file");
    put("volume/file");
    ck_assert_int_eq(mkdir("alloc/dir", 0755), 0);
    put("local/named");
    ck_assert_int_eq(link("local/named", "local/twice"), 0);
    ck_assert_int_eq(mkfifo("local/fifo", 0644), 0);
    ck_assert_int_eq(symlink("file", "local/link"), 0);
    ck_assert_int_eq(symlink("local", "dirlink"), 0);
    ck_assert_int_eq(symlink("/alloc", "local/up"), 0);
    ck_assert_int_eq(chroot("."), 0);
}

START_TEST(only_what_is_the_tasks)
{
    TEST_NEED("root");
    static const struct {
        const char *path, *step;
        int error; /* 0: a file that might be sealed */
    } rows[] = {
        {"file", VERITY_MEASURE, 0},
        {"local/file", VERITY_MEASURE, 0},
        {"alloc/file", VERITY_MEASURE, 0},
        {"local/none", VERITY_OPEN, ENOENT},
        {"local/file/x", VERITY_OPEN, ENOTDIR},
        {"local", VERITY_KIND, EISDIR},
        {"alloc/dir", VERITY_KIND, EISDIR},
        {"local/fifo", VERITY_KIND, EINVAL},
        {"local/twice", VERITY_KIND, EMLINK},
        {"local/link", VERITY_OPEN, ELOOP},
        {"dirlink/file", VERITY_OPEN, ELOOP},
        {"local/up/file", VERITY_OPEN, ELOOP},
        {"volume/file", VERITY_OPEN, EXDEV},
        {"alloc/../file", VERITY_OPEN, EXDEV},
        {"../file", VERITY_OPEN, EXDEV},
    };
    char dir[] = "/tmp/paddock-verity-XXXXXX";
    auto_mem void *ctx = mem_ctx("verity");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    auto_fd int old = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(chdir(dir), 0);
    auto_fd int own = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct err e = ERR_INIT;
    bool here = verity_probe(own, &e) == 0;
    make_root();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint8_t digest[VERITY_DIGEST_BYTES];
        const char *step = "";
        long fd = verity_seal(rows[i].path, digest, &step);
        if (rows[i].error == 0 && here) {
            ck_assert_msg(fd >= 0, "%s: %s: %s", rows[i].path, step, strerror((int)-fd));
            ck_assert_int_lt(open(rows[i].path, O_WRONLY | O_CLOEXEC), 0);
            (void)close((int)fd);
            continue;
        }
        ck_assert_str_eq(step, rows[i].step);
        if (rows[i].error == 0)
            ck_assert_msg(fd == -EOPNOTSUPP || fd == -ENOTTY, "%s", strerror((int)-fd));
        else
            ck_assert_msg(fd == -rows[i].error, "%s: %s", rows[i].path, strerror((int)-fd));
        struct err words = ERR_INIT;
        verity_explain(rows[i].path, step, (int)-fd, digest, &words);
        ck_assert_msg(strstr(words.text, rows[i].path) != NULL, "%s", words.text);
    }
    ck_assert_int_eq(fchdir(old), 0);
    ck_assert_int_eq(chroot("."), 0);
    ck_assert_int_eq(umount2(mem_printf(ctx, "%s/alloc", dir), MNT_DETACH), 0);
    ck_assert_int_eq(umount2(mem_printf(ctx, "%s/volume", dir), MNT_DETACH), 0);
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}
END_TEST

START_TEST(nothing_starts_without)
{
    TEST_NEED("root");
    struct rig r;
    struct got g;
    struct stat st;
    rig_start(&r, 0);
    const char *why = rig_fact(&r, "verity");
    if (str_eq(why, "true")) {
        printf("# SKIP verity: /tmp has it\n");
        rig_stop(&r);
        return;
    }
    ck_assert_msg(strstr(why, "no fs-verity") != NULL, "%s", why);
    rig_alloc(&r, rig_id, "web", "exec");
    struct launch_spec *s = rig_spec(&r, rig_id, "web", true, "touch /local/ran");
    struct task_verity v = {.path = "local/x"};
    list_add(s, s->isolation->verity, &v);
    rig_launch(&r, s, &g);
    ck_assert_int_eq(g.err.code, -ERR_UNSUPPORTED);
    ck_assert_msg(strstr(g.err.text, why) != NULL, "%s", g.err.text);
    got_free(&g);
    ck_assert_int_ne(
        stat(mem_printf(r.ctx, "%s/%s/web/local/ran", r.policy.alloc_dir, rig_id), &st), 0);
    rig_stop(&r);
}
END_TEST

TEST_SUITE("verity", only_what_is_the_tasks, nothing_starts_without)
