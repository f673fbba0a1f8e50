/* SPDX-License-Identifier: Apache-2.0
 *
 * The fault layer itself, and files that are written whole (ids, policies): at every instant there is
 * the old content or the new one.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/err.h"
#include "common/fd.h"
#include "common/mem.h"
#include "tests/lib/crash.h"
#include "tests/lib/faults.h"
#include "tests/lib/test.h"

enum { ROUNDS = 4, CONTENT = 3000 };

static char dir[] = "/tmp/paddock-faults-XXXXXX";

static void
clean(void)
{
    faults_set(NULL);
    (void)dir_remove(AT_FDCWD, dir, NULL);
}

static int
open_file(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    atexit(clean);
    char path[64];
    snprintf(path, sizeof(path), "%s/a", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    return fd;
}

START_TEST(kth_call_fails)
{
    int fd = open_file();
    faults_set("write */a 2 fail ENOSPC\nsync */a 1+ fail EIO\nopen */b 1 fail EMFILE");
    ck_assert_int_eq(write(fd, "abc", 3), 3);
    ck_assert_int_eq(pwrite(fd, "def", 3, 3), -1);
    ck_assert_int_eq(errno, ENOSPC);
    struct iovec v[2] = {{(void *)(uintptr_t) "gh", 2}, {(void *)(uintptr_t) "i", 1}};
    ck_assert_int_eq(pwritev(fd, v, 2, 3), 3);
    ck_assert_int_eq(fsync(fd), -1);
    ck_assert_int_eq(fdatasync(fd), -1);
    ck_assert_int_eq(errno, EIO);
    ck_assert_int_eq(openat(AT_FDCWD, "/tmp/b", O_RDONLY | O_CLOEXEC), -1);
    ck_assert_int_eq(errno, EMFILE);
    ck_assert_uint_eq(faults_calls(0), 3);
    ck_assert_uint_eq(faults_made(), 4);
    char b[8] = "";
    ck_assert_int_eq(pread(fd, b, sizeof(b), 0), 6);
    ck_assert_str_eq(b, "abcghi");
    close(fd);
}
END_TEST

START_TEST(writes_are_torn)
{
    int fd = open_file();
    faults_set("write */a 1 short ENOSPC");
    ck_assert_int_eq(fd_write_full(fd, "abcdef", 6), -ENOSPC);
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_size, 3);
    faults_set("write */a 1 tear EIO");
    ck_assert_int_eq(fd_pwrite_full(fd, "uvwxyz", 6, 0), -EIO);
    char b[8] = "";
    ck_assert_int_eq(pread(fd, b, sizeof(b), 0), 3);
    ck_assert_str_eq(b, "uvw");
    close(fd);
}
END_TEST

/* --- file_write_atomic --- */

static int
look(const char *at, uint64_t *ret)
{
    auto_mem void *tmp = mem_ctx("look");
    char *text = NULL;
    size_t n = 0;
    int rc = file_read(tmp, AT_FDCWD, mem_printf(tmp, "%s/file", at), CONTENT, &text, &n);
    if (rc < 0)
        return rc;
    ck_assert_uint_eq(n, CONTENT);
    for (size_t i = 1; i < n; i++)
        ck_assert_int_eq(text[i], text[0]);
    *ret = (uint64_t)(text[0] - 'a' + 1);
    return 0;
}

static void
replace(const char *at)
{
    auto_mem void *tmp = mem_ctx("replace");
    char text[CONTENT];
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        memset(text, 'a' + (int)i - 1, sizeof(text));
        if (file_write_atomic(AT_FDCWD, mem_printf(tmp, "%s/file", at), text, CONTENT, 0600) == 0)
            acknowledged(i);
    }
}

static void
is_whole(const char *at, uint64_t n, bool power)
{
    (void)power;
    uint64_t got = 0;
    int rc = look(at, &got);
    ck_assert_msg(rc == 0 || (rc == -ENOENT && n == 0), "%s", err_name(rc));
    ck_assert_uint_ge(got, n);
    replace(at); /* and it can be written again, with nothing left beside it */
}

START_TEST(files_are_whole_under_errors)
{
    static const char *const actions[] = {"fail EIO", "fail ENOSPC", "short ENOSPC", "tear EIO", "exit"};
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        struct crash c = {.classes = "all", .pattern = "*", .action = actions[i], .work = replace,
                          .check = is_whole};
        ck_assert_uint_ge(crash_run(&c), ROUNDS * 5);
    }
}
END_TEST

START_TEST(files_are_whole_after_a_power_cut)
{
    struct crash c = {.classes = "all", .pattern = "*", .action = "cut", .work = replace,
                      .check = is_whole, .seeds = crash_long() ? 200 : 10};
    ck_assert_uint_ge(crash_run(&c), ROUNDS * 5);
}
END_TEST

static void *
ends(void *arg)
{
    return arg;
}

static _Noreturn void *
starts_others(void *arg)
{
    (void)arg;
    for (;;) {
        pthread_t t;
        if (pthread_create(&t, NULL, ends, NULL) == 0)
            pthread_join(t, NULL);
    }
}

static void
replace_beside_threads(const char *at)
{
    pthread_t t;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&t, NULL, starts_others, NULL), 0);
    replace(at);
}

/* The cut once waited for ever for a thread that had been told to stand still and ended instead. */
START_TEST(a_cut_meets_threads_that_come_and_go)
{
    struct crash c = {.classes = "all", .pattern = "*", .action = "cut",
                      .work = replace_beside_threads, .check = is_whole, .seeds = 2};
    ck_assert_uint_ge(crash_run(&c), ROUNDS * 5);
}
END_TEST

/* --- a cut of which nothing is left to chance --- */

static void
put(const char *name, const char *text, int flags)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/disk/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fd_pwrite_full(fd, text, strlen(text), 0), 0);
    if (flags != 0)
        ck_assert_int_eq(fsync(fd), 0);
    close(fd);
}

static void
holds(const char *name, const char *text)
{
    auto_mem void *tmp = mem_ctx("holds");
    char *got = NULL;
    size_t n = 0;
    int rc = file_read(tmp, AT_FDCWD, mem_printf(tmp, "%s/disk/%s", dir, name), 100, &got, &n);
    if (text == NULL)
        ck_assert_int_eq(rc, -ENOENT);
    else
        ck_assert_msg(rc == 0 && strcmp(got, text) == 0, "%s holds %s", name, rc == 0 ? got : "-");
}

static _Noreturn void
writes_and_is_cut(void)
{
    char rules[100], from[64], to[64];
    snprintf(from, sizeof(from), "%s/disk", dir);
    snprintf(rules, sizeof(rules), "disk %s", from);
    faults_set(rules);
    put("a", "synced", 1);
    put("b", "synced", 1);
    int fd = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(fsync(fd), 0);
    put("a", "unsynced, and longer", 0);
    snprintf(rules, sizeof(rules), "write */c 9 fail EIO\ndisk %s/disk", dir);
    faults_set(rules); /* the same disk goes on */
    put("c", "its name is not synced", 1);
    snprintf(from, sizeof(from), "%s/disk/c", dir);
    snprintf(to, sizeof(to), "%s/disk/b", dir);
    ck_assert_int_eq(rename(from, to), 0);
    (void)faults_cut(0);
    _exit(1);
}

START_TEST(what_was_not_synced_is_gone)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    atexit(clean);
    auto_mem void *tmp = mem_ctx("disk");
    ck_assert_int_eq(dir_make(AT_FDCWD, mem_printf(tmp, "%s/disk", dir), 0700), 0);
    ck_assert(!faults_cut(0)); /* there is no disk */
    pid_t pid = fork();
    if (pid == 0)
        writes_and_is_cut();
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == FAULTS_EXIT);
    holds("a", "synced");
    holds("b", "synced");
    holds("c", NULL);
}
END_TEST

static void *
syncs(void *arg)
{
    int rc = fsync(*(int *)arg);
    ck_assert_int_eq(rc, 0);
    return NULL;
}

START_TEST(a_call_waits_until_the_rules_go)
{
    int fd = open_file();
    pthread_t t;
    faults_set("sync */a 1 wait");
    ck_assert_int_eq(pthread_create(&t, NULL, syncs, &fd), 0);
    while (faults_made() == 0)
        sched_yield();
    ck_assert_int_eq(write(fd, "abc", 3), 3); /* others go on */
    faults_set(NULL);
    ck_assert_int_eq(pthread_join(t, NULL), 0);
    close(fd);
}
END_TEST

TEST_SUITE_TIMEOUT("faults", 120, kth_call_fails, writes_are_torn, files_are_whole_under_errors,
                   files_are_whole_after_a_power_cut, a_cut_meets_threads_that_come_and_go,
                   what_was_not_synced_is_gone, a_call_waits_until_the_rules_go)
