/* SPDX-License-Identifier: Apache-2.0
 *
 * dir_remove() on what a hostile task leaves behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "tests/lib/test.h"

/* copied from <linux/fs.h>, which does not go with <sys/mount.h> */
#define SETFLAGS _IOW('f', 2, long)
#define IMMUTABLE 0x10

static char top[64];
static int at = -1;

static void
begin(void)
{
    snprintf(top, sizeof(top), "/tmp/paddock-remove-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(at, 0);
    ck_assert_int_eq(mkdirat(at, "a", 0755), 0);
}

static void
removed(void)
{
    struct err e = ERR_INIT;
    ck_assert_msg(dir_remove(at, "a", &e) == 0, "%s", e.text);
    ck_assert_int_eq(faccessat(at, "a", F_OK, AT_SYMLINK_NOFOLLOW), -1);
    ck_assert_int_eq(rmdir(top), 0);
}

/* A chain of directories, made from the bottom since no path is as long. */
static void
chain(const char *name, int levels)
{
    auto_fd int d = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(mkdirat(d, "x", 0755), 0);
    for (int i = 1; i < levels; i++) {
        ck_assert_int_eq(mkdirat(d, "y", 0755), 0);
        ck_assert_int_eq(renameat(d, "x", d, "y/x"), 0);
        ck_assert_int_eq(renameat(d, "y", d, "x"), 0);
    }
    ck_assert_int_eq(renameat(d, "x", at, name), 0);
}

START_TEST(deep)
{
    begin();
    chain("a/deep", 10000);
    chain("a/deeper", 700);
    /* neither fds nor stack depend on the depth */
    struct rlimit fds = {80, 80}, stack = {256 << 10, 256 << 10};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &fds), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_STACK, &stack), 0);
    removed();
}
END_TEST

START_TEST(wide)
{
    begin();
    char name[64];
    for (int i = 0; i < 30000; i++) {
        snprintf(name, sizeof(name), "a/%d\n\033[2J\xff%d", i, i % 7);
        ck_assert_int_eq(mknodat(at, name, S_IFREG | 0600, 0), 0);
    }
    removed();
}
END_TEST

START_TEST(kinds)
{
    begin();
    struct sockaddr_un sun = {.sun_family = AF_UNIX};
    snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/a/socket", top);
    auto_fd int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(s, (const void *)&sun, sizeof(sun)), 0);
    ck_assert_int_eq(mknodat(at, "a/fifo", S_IFIFO | 0600, 0), 0);
    ck_assert_int_eq(symlinkat("/", at, "a/root"), 0);
    ck_assert_int_eq(symlinkat("nowhere", at, "a/dangling"), 0);
    auto_fd int f = openat(at, "a/sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0);
    ck_assert_int_eq(ftruncate(f, INT64_C(1) << 40), 0);
    ck_assert_int_eq(linkat(at, "a/sparse", at, "a/link", 0), 0);
    ck_assert_int_eq(dir_make(at, "a/no/entry/here", 0755), 0);
    ck_assert_int_eq(fchmodat(at, "a/no/entry/here", 0, 0), 0);
    ck_assert_int_eq(fchmodat(at, "a/no/entry", 0, 0), 0);
    ck_assert_int_eq(fchmodat(at, "a/no", 0, 0), 0);
    if (geteuid() == 0) { /* as somebody who may not override permissions */
        ck_assert_int_eq(fchownat(at, "a", 65534, 65534, 0), 0);
        ck_assert_int_eq(fchownat(at, "a/no", 65534, 65534, 0), 0);
        ck_assert_int_eq(fchownat(at, "a/no/entry", 65534, 65534, 0), 0);
        ck_assert_int_eq(fchownat(at, "a/no/entry/here", 65534, 65534, 0), 0);
        ck_assert_int_eq(fchmod(at, 0777), 0);
        ck_assert_int_eq(seteuid(65534), 0);
    }
    struct err e = ERR_INIT;
    ck_assert_msg(dir_remove(at, "a", &e) == 0, "%s", e.text);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    removed();
}
END_TEST

/* A file that cannot go is named; the rest goes. */
START_TEST(immutable)
{
    TEST_NEED("root");
    begin();
    ck_assert_int_eq(dir_make(at, "a/b/c", 0755), 0);
    chain("a/deep", 300);
    ck_assert_int_eq(mknodat(at, "a/x", S_IFREG | 0600, 0), 0);
    auto_fd int f = openat(at, "a/b/f", O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    int flags = IMMUTABLE, none = 0;
    if (ioctl(f, SETFLAGS, &flags) < 0) {
        removed();
        fprintf(stderr, "SKIP immutable: the file system of /tmp has no such files\n");
        return;
    }
    struct err e = ERR_INIT;
    ck_assert_int_eq(dir_remove(at, "a", &e), -EPERM);
    ck_assert_str_eq(e.text, "remove \"a/b/f\" (is it immutable or append-only? chattr -i -a): "
                             "Operation not permitted");
    ck_assert_int_eq(faccessat(at, "a/x", F_OK, 0), -1);
    ck_assert_int_eq(faccessat(at, "a/deep", F_OK, 0), -1);
    ck_assert_int_eq(ioctl(f, SETFLAGS, &none), 0);
    removed();
}
END_TEST

START_TEST(mounted)
{
    TEST_NEED("root");
    begin();
    ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
    ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    fd_close(&at); /* of the namespace that we left */
    at = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(dir_make(at, "a/b/m", 0755), 0);
    ck_assert_int_eq(mknodat(at, "a/x", S_IFREG | 0600, 0), 0);
    char path[128];
    snprintf(path, sizeof(path), "%s/a/b/m", top);
    ck_assert_int_eq(mount("tmpfs", path, "tmpfs", 0, NULL), 0);
    ck_assert_int_eq(mknodat(at, "a/b/m/kept", S_IFREG | 0600, 0), 0);
    struct err e = ERR_INIT;
    ck_assert_int_eq(dir_remove(at, "a", &e), -EXDEV);
    ck_assert_msg(strstr(e.text, "remove \"a/b/m\" (something is mounted there: umount it)") !=
                      NULL,
                  "%s", e.text);
    ck_assert_int_eq(faccessat(at, "a/x", F_OK, 0), -1);
    ck_assert_int_eq(faccessat(at, "a/b/m/kept", F_OK, 0), 0);
    ck_assert_int_eq(umount2(path, MNT_DETACH), 0);
    removed();
}
END_TEST

/* Killed at any instant, the next one ends it. */
START_TEST(resumed)
{
    begin();
    chain("a/deep", 3000);
    for (int round = 0; round < 20 && faccessat(at, "a", F_OK, 0) == 0; round++) {
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            alarm(0);
            (void)signal(SIGALRM, SIG_DFL); /* libcheck's own handler kills the whole test */
            struct itimerval soon = {.it_value = {0, 500}};
            (void)setitimer(ITIMER_REAL, &soon, NULL);
            (void)dir_remove(at, "a", NULL);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    }
    removed();
}
END_TEST

TEST_SUITE_TIMEOUT("remove", 60, deep, wide, kinds, immutable, mounted, resumed)
