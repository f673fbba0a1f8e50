/* SPDX-License-Identifier: Apache-2.0
 *
 * path_real() against realpath(3), and on links that others put there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/host/path.h"
#include "common/mem.h"
#include "tests/lib/test.h"

static char top[64];

static void
begin(void)
{
    snprintf(top, sizeof(top), "/tmp/paddock-path-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    ck_assert_int_eq(chdir(top), 0);
    ck_assert_int_eq(mkdir("a", 0755), 0);
    ck_assert_int_eq(mkdir("a/b", 0755), 0);
    ck_assert_int_eq(mkdir("secret", 0700), 0);
    ck_assert_int_eq(symlink("a/b", "rel"), 0);
    ck_assert_int_eq(symlink("../a/../rel/..//.", "a/up"), 0);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    char to[128];
    snprintf(to, sizeof(to), "%s/secret", top);
    ck_assert_int_eq(symlink(to, "abs"), 0);
}

static void
end(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(dir_remove(AT_FDCWD, top, NULL), 0);
}

START_TEST(resolves_as_realpath_does)
{
    static const char *const paths[] = {"",        "/",           "/a/b",    "/a//b/.", "/rel",
                                        "/rel/..", "/a/up",       "/a/up/",  "/abs",    "/abs/..",
                                        "/absent", "/a/up/b",     "/a/none", "/loop",   "/loop/x",
                                        "/../..",  "/../../../.."};
    begin();
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        char path[256], want[PATH_MAX], got[PATH_MAX];
        snprintf(path, sizeof(path), "%s%s", top, paths[i]);
        bool there = realpath(path, want) != NULL;
        int r = path_real(path, got);
        ck_assert_msg(there ? r == 0 && strcmp(got, want) == 0 : r == -errno, "%s: %d", path, r);
    }
    char got[PATH_MAX];
    ck_assert_int_eq(path_real("relative", got), -EINVAL);
    ck_assert_int_eq(path_real("", got), -EINVAL);
    end();
}
END_TEST

/* The owner of a directory with a link in it chooses where that leads. */
START_TEST(follows_nobody_elses_links)
{
    static const struct {
        mode_t mode;
        uid_t dir, link;
        int want;
    } rows[] = {{0755, 0, 0, 0},           {0755, 0, 65534, 0},      {0775, 0, 0, 0},
                {0777, 0, 0, -ELOOP},      {0755, 65534, 0, -ELOOP}, {01777, 0, 0, 0},
                {01777, 0, 65534, -ELOOP}, {01777, 65534, 0, -ELOOP}};
    TEST_NEED("root");
    begin();
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[256], got[PATH_MAX];
        snprintf(path, sizeof(path), "%s/a/up", top);
        ck_assert_int_eq(lchown("a/up", rows[i].link, 0), 0);
        ck_assert_int_eq(chown("a", rows[i].dir, 0), 0);
        ck_assert_int_eq(chmod("a", rows[i].mode), 0);
        int r = path_real(path, got);
        ck_assert_msg(r == rows[i].want, "row %zu: %d", i, r);
    }
    end();
}
END_TEST

TEST_SUITE("path", resolves_as_realpath_does, follows_nobody_elses_links)
