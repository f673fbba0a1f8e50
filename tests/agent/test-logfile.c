/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of the agent's log: when it is rotated, what is kept, and that no line is lost.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/logfile.h"
#include "agent/syslog.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/str.h"
#include "tests/lib/test.h"

enum { LINES = 400 };
static char dir[64], file[128];

static void
setup(void)
{
    snprintf(dir, sizeof(dir), "/tmp/paddock-logfile-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/agent.log", dir);
}

static void
teardown(void)
{
    log_on_written(NULL);
    log_setup(LOG_INFO, false, STDERR_FILENO);
    struct err e = ERR_INIT;
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, &e), 0);
}

static void
begin(struct agent_config c)
{
    c.log_file = file;
    int fd = logfile_open(&c);
    ck_assert_int_ge(fd, 0);
    log_setup(LOG_INFO, false, fd);
}

static void
say(int n)
{
    for (int i = 0; i < n; i++)
        log_info("test", "a line of some eighty bytes, so that it does not take too many", NULL);
}

/* Files, and the lines in all of them. */
static size_t
count(size_t *ret_lines)
{
    auto_mem void *tmp = mem_ctx("count");
    DIR *d = opendir(dir);
    size_t files = 0;

    *ret_lines = 0;
    for (const struct dirent *x; (x = readdir(d)) != NULL;) {
        char *text = NULL;
        size_t n = 0;
        if (x->d_name[0] == '.')
            continue;
        files++;
        ck_assert_int_eq(file_read(tmp, dirfd(d), x->d_name, 1 << 20, &text, &n), 0);
        for (size_t i = 0; i < n; i++)
            *ret_lines += text[i] == '\n';
    }
    closedir(d);
    return files;
}

START_TEST(a_large_file_is_rotated_and_all_are_kept)
{
    size_t lines;
    begin((struct agent_config){.log_rotate_bytes = 4096});
    say(LINES);
    size_t files = count(&lines);
    ck_assert_uint_eq(lines, LINES);
    ck_assert_uint_ge(files, 8);
    ck_assert_uint_le(files, 14);
}
END_TEST

START_TEST(so_many_old_ones_are_kept)
{
    size_t lines;
    begin((struct agent_config){.log_rotate_bytes = 4096, .log_rotate_max_files = 2});
    char notes[128];
    snprintf(notes, sizeof(notes), "%s/agent-notes.log", dir);
    int fd = open(notes, O_CREAT | O_WRONLY, 0600);
    ck_assert_int_ge(fd, 0); /* not ours, whatever it is called */
    fd_close(&fd);
    say(LINES);
    ck_assert_uint_eq(count(&lines), 4);
    begin((struct agent_config){.log_rotate_bytes = 4096, .log_rotate_max_files = -1});
    say(LINES);
    ck_assert_uint_eq(count(&lines), 4);
}
END_TEST

START_TEST(an_old_file_is_rotated_and_one_that_is_neither_is_not)
{
    size_t lines;
    begin((struct agent_config){.log_rotate_duration = 1});
    say(3);
    ck_assert_uint_eq(count(&lines), 4);
    ck_assert_uint_eq(lines, 3);
    begin((struct agent_config){0});
    say(LINES);
    ck_assert_uint_eq(count(&lines), 4);
    ck_assert_uint_eq(lines, LINES + 3);
}
END_TEST

START_TEST(without_a_new_file_the_old_one_goes_on)
{
    size_t lines;
    char away[128];
    begin((struct agent_config){.log_rotate_bytes = 4096});
    say(1);
    snprintf(away, sizeof(away), "%s.away", dir);
    ck_assert_int_eq(rename(dir, away), 0);
    say(LINES);
    ck_assert_int_eq(rename(away, dir), 0);
    ck_assert_uint_eq(count(&lines), 1);
    ck_assert_uint_eq(lines, LINES + 1);
    struct agent_config c = {.log_file = "/nowhere/agent.log"};
    ck_assert_int_lt(logfile_open(&c), 0);
}
END_TEST

static int
daemon_at(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(path);
    ck_assert(str_copy(a.sun_path, sizeof(a.sun_path), path));
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static const char *
message(int fd)
{
    static char text[16 << 10];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

START_TEST(lines_go_to_syslog_and_a_daemon_that_is_gone_stops_nobody)
{
    struct err e = ERR_INIT;
    char path[128];
    begin((struct agent_config){0});
    snprintf(path, sizeof(path), "%s/log", dir);
    static const char *const none[] = {"LOCAL8", "LOCAL", "LOCAL33", ""}, *const some[] = {
        "local3", "Daemon", "USER"};
    for (size_t k = 0; k < ARRAY_LEN(none); k++) {
        e = (struct err)ERR_INIT;
        ck_assert_int_eq(syslog_open(path, none[k], LOG_WARN, &e), -ERR_INVALID);
    }
    for (size_t k = 0; k < ARRAY_LEN(some); k++) { /* but nobody is there */
        e = (struct err)ERR_INIT;
        ck_assert_int_eq(syslog_open(path, some[k], LOG_WARN, &e), -ENOENT);
    }
    int fd = daemon_at(path);
    e = (struct err)ERR_INIT;
    ck_assert_int_eq(syslog_open(path, "LOCAL0", LOG_WARN, &e), 0);
    log_info("test", "not asked for", NULL);
    log_warn("test", "asked for", "key", "a b", NULL);
    const char *m = message(fd);
    ck_assert_msg(strncmp(m, "<132>", 5) == 0, "%s", m);
    ck_assert_ptr_nonnull(strstr(m, " paddock["));
    const char *want = "]: test: asked for key=\"a b\"";
    ck_assert_msg(str_suffix(m, want), "%s", m);
    log_error("test", "worse", NULL);
    ck_assert(strncmp(message(fd), "<131>", 5) == 0);
    for (int i = 0; i < 1000; i++) /* more than it takes */
        log_warn("test", "many", NULL);
    fd_close(&fd);
    log_warn("test", "nobody is there", NULL);
    fd = daemon_at(path);
    for (int i = 0; i < 2000 && *message(fd) == '\0'; i++) {
        (void)poll(NULL, 0, 5);
        log_warn("test", "again", NULL);
    }
    log_warn("test", "at last", NULL);
    ck_assert_ptr_nonnull(strstr(message(fd), "at last"));
    fd_close(&fd);
}
END_TEST

TEST_SUITE_FIXTURE("logfile", 30, setup, teardown,
                   lines_go_to_syslog_and_a_daemon_that_is_gone_stops_nobody,
                   a_large_file_is_rotated_and_all_are_kept, so_many_old_ones_are_kept,
                   an_old_file_is_rotated_and_one_that_is_neither_is_not,
                   without_a_new_file_the_old_one_goes_on)
