/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of the agent's log: when it is rotated, what is kept, and that no line is lost.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/logfile.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/mem.h"
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

TEST_SUITE_FIXTURE("logfile", 10, setup, teardown, a_large_file_is_rotated_and_all_are_kept,
                   so_many_old_ones_are_kept, an_old_file_is_rotated_and_one_that_is_neither_is_not,
                   without_a_new_file_the_old_one_goes_on)
