/* SPDX-License-Identifier: Apache-2.0
 *
 * alloc logs and alloc fs against recorded answers: which bytes are printed.
 */
#include <stdlib.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/stream.h"
#include "common/fd.h"
#include "tests/cli/fake.h"
#include "tests/lib/test.h"

#define LOGS "GET /v1/client/fs/logs/" ALLOC_ID "?task=t&type="
#define FIND_ALLOC                                                                                \
    {"GET /v1/allocations?prefix=", 200, "[" ALLOC_STUB "]"},                                     \
        {"GET /v1/allocation/" ALLOC_ID, 200, ALLOC}

START_TEST(alloc_logs_and_files)
{
    fake_answers((const struct answer[]){
        FIND_ALLOC,
        {"GET /v1/client/fs/logs/" ALLOC_ID, 200, "one\ntwo\nthree\n"},
        {"GET /v1/client/fs/stat/" ALLOC_ID "?path=%2F", 200, "{\"Name\":\"/\",\"IsDir\":true}"},
        {"GET /v1/client/fs/ls/" ALLOC_ID, 200,
         "[{\"Name\":\"t\",\"IsDir\":true,\"FileMode\":\"drwxr-xr-x\",\"Size\":4096},"
         "{\"Name\":\"a\",\"FileMode\":\"-rw-r--r--\",\"Size\":5}]"},
        {NULL, 0, NULL}});
    check_out("alloc logs bbbb", 0, "one\ntwo\nthree\n");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "task=t&type=stdout&follow=false&plain=true"));
    check_out("alloc logs -stderr -n 2 bbbb t", 0, "two\nthree\n");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "type=stderr&follow=false&plain=true&origin=end"));
    check_err("alloc logs bbbb x", 1, "Could not find task \"x\" in allocation \"bbbbbbbb\"; it has:"
                                      "\n  * t\n");
    check_out("alloc fs bbbb", 0,
              "Mode        Size     Modified Time  Name\n"
              "-rw-r--r--  5 B      <none>         a\n"
              "drwxr-xr-x  4.0 KiB  <none>         t/\n");
    check_out("alloc fs -H bbbb", 0, /* for programs */
              "Mode        Size  Modified Time  Name\n"
              "-rw-r--r--  5     <none>         a\n"
              "drwxr-xr-x  4096  <none>         t/\n");
}
END_TEST

START_TEST(logs_that_are_not_there_say_why)
{
#define NEVER                                                                                      \
    "{\"ID\":\"" ALLOC_ID                                                                          \
    "\",\"TaskGroup\":\"a\",\"ClientStatus\":\"pending\",\"Job\":{\"TaskGroups\":[{"               \
    "\"Name\":\"a\",\"Tasks\":[{\"Name\":\"t\"}]}]},\"TaskStates\":{\"t\":{\"State\":\"pending\"}" \
    "}}"
    fake_answers((const struct answer[]){
        FIND_ALLOC,
        {"GET /v1/client/fs/logs/", 404, "Unknown allocation \"" ALLOC_ID "\": its files"},
        {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("alloc logs bbbb"), 1);
    ck_assert_msg(
        strstr(fake_err(), "its files)\nIts events are still told: paddock alloc status"),
        "%s", fake_err());
    fake_answers((const struct answer[]){{"GET /v1/allocations?prefix=", 200, "[" ALLOC_STUB "]"},
                                         {"GET /v1/allocation/" ALLOC_ID, 200, NEVER},
                                         {"GET /v1/client/fs/logs/", 200, ""},
                                         {NULL, 0, NULL}});
    check_err("alloc logs bbbb", 1,
              "Error reading logs: task \"t\" has not started yet. No logs available; "
              "why: paddock alloc why bbbbbbbb\n");
    check_out("alloc logs -f -stdout bbbb", 0, "");
}
END_TEST

/* Lines that are there when following begins are printed from a line's beginning on. */
START_TEST(following_begins_with_whole_lines)
{
    fake_answers((const struct answer[]){
        FIND_ALLOC,
        {LOGS "stdout&follow=false", 200, "l1\nl2\nl3\n"},
        {LOGS "stdout&follow=true", 200, "l1\nl2\nl3\nl4\nl5\nl6\n"},
        {LOGS "stderr&follow=false", 404, "no log yet"},
        {LOGS "stderr&follow=true", 200, "e1\ne2\ne3\n"},
        {NULL, 0, NULL}});
    check_out("alloc logs -f -tail -n 2 bbbb", 0, "l2\nl3\nl4\nl5\nl6\n");
    check_out("alloc logs -f -n 1 bbbb", 0, "l3\nl4\nl5\nl6\n");
    check_out("alloc logs -f -stdout -n 2 bbbb", 0, "l2\nl3\nl4\nl5\nl6\n");
    check_out("alloc logs -f -n 0 bbbb", 0, "l4\nl5\nl6\n");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "follow=true&plain=true&origin=end"));
    check_out("alloc logs -f -tail -n 2 -stderr bbbb", 0, "e1\ne2\ne3\n");
    check_out("alloc logs -f -stderr bbbb", 0, "e1\ne2\ne3\n");
    ck_assert_ptr_nonnull(strstr(fake_asked(), "follow=true&plain=true&origin=start&offset=0"));
    check_err("alloc logs -n 1 -c 1 bbbb", 1, "Error reading logs: both -n and -c set\n");
    check_err("alloc logs -stdout -stderr bbbb", 1,
              "Unable to support both -stdout and -stderr: -f alone follows both\n");
}
END_TEST

START_TEST(lines_longer_than_a_window)
{
    static char body[200 << 10];
    memset(body, 'x', sizeof(body) - 1);
    body[10] = '\n';
    body[100 << 10] = '\n';
    fake_answers((const struct answer[]){FIND_ALLOC, {LOGS "stdout", 200, body}, {NULL, 0, NULL}});
    ck_assert_int_eq(fake_run("alloc logs -tail -n 2 bbbb"), 0);
    ck_assert_uint_eq(strlen(fake_out()), sizeof(body) - 1 - 11);
    ck_assert_ptr_nonnull(strstr(fake_asked(), "offset=65536"));
    ck_assert_ptr_nonnull(strstr(fake_asked(), "offset=524288"));
}
END_TEST

#define STAT "GET /v1/client/fs/stat/" ALLOC_ID

START_TEST(a_file_is_followed_from_a_line_on)
{
    fake_answers((const struct answer[]){
        FIND_ALLOC,
        {STAT, 200, "{\"Name\":\"f\",\"Size\":9}"},
        {"GET /v1/client/fs/readat/" ALLOC_ID "?path=f&offset=0&limit=9", 200, "l1\nl2\nl3\n"},
        {"GET /v1/client/fs/readat/" ALLOC_ID "?path=f&offset=5&limit=4", 200, "\nl3\n"},
        {"GET /v1/client/fs/stream/" ALLOC_ID "?path=f&follow=true&origin=start&offset=3", 200,
         "{\"Data\":\"bDIKbDMK\",\"File\":\"f\"}{}"},
        {NULL, 0, NULL}});
    check_out("alloc fs -f -tail -n 2 bbbb f", 0, "l2\nl3\n");
    check_out("alloc fs -tail -n 2 bbbb f", 0, "l2\nl3\n");
    check_out("alloc fs -tail -c 4 bbbb f", 0, "\nl3\n");
    check_err("alloc fs -c 4 -n 2 bbbb f", 1, "Both -n and -c are not allowed\n");
    check_out("alloc fs -stat bbbb f", 0,
              "Mode    Size  Modified Time  Content Type  Name\n"
              "<none>  9 B   <none>         <none>        f\n");
}
END_TEST

/* It ends in a slash already. */
START_TEST(the_top_of_an_allocation_is_one_slash)
{
    fake_answers((const struct answer[]){
        FIND_ALLOC, {STAT, 200, "{\"Name\":\"/\",\"IsDir\":true,\"Size\":7}"}, {NULL, 0, NULL}});
    check_out("alloc fs -stat bbbb /", 0,
              "Mode    Size  Modified Time  Content Type  Name\n"
              "<none>  7 B   <none>         <none>        /\n");
}
END_TEST

/* The next question must not be answered with the state before. */
START_TEST(a_pause_is_seen_when_it_returns)
{
#define PAUSED(p) "{\"ID\":\"" ALLOC_ID "\",\"TaskGroup\":\"a\",\"Job\":{\"TaskGroups\":[{\"Name\":\"a\"," \
    "\"Tasks\":[{\"Name\":\"t\"}]}]},\"TaskStates\":{\"e\":{\"State\":\"dead\"}," \
    "\"t\":{\"State\":\"running\",\"Paused\":\"" p "\"}}}"
    fake_answers((const struct answer[]){
        {"GET /v1/allocations?prefix=", 200, "[" ALLOC_STUB "]"},
        {"GET /v1/allocation/" ALLOC_ID, 200, PAUSED("pause")},
        {"PUT /v1/client/allocation/" ALLOC_ID "/pause", 200, "null"},
        {NULL, 0, NULL}});
    check_out("alloc pause bbbb t", 0, "");
    const char *put = strstr(fake_asked(), "PUT ");
    ck_assert(put && strstr(put, "GET /v1/allocation/" ALLOC_ID));
    check_out("alloc pause -status bbbb", 0, "e: ended\nt: pause\n");
}
END_TEST

static const struct {
    const char *text;
    int64_t lines;
    bool found;
    size_t at;
} tails[] = {
    {"", 2, false, 0},        {"a\nb\nc\n", 2, true, 2}, {"a\nb\nc", 2, true, 2},
    {"a\nb\n", 2, false, 0}, {"\n\n\n", 2, true, 1},    {"a\nb", 0, true, 3},
};

START_TEST(where_the_last_lines_begin)
{
    for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
        size_t at = 99, n = strlen(tails[i].text);
        bool found = tail_start((const uint8_t *)tails[i].text, n, tails[i].lines, &at);
        ck_assert_msg(found == tails[i].found && at == tails[i].at, "%zu: %d %zu", i, found, at);
    }
}
END_TEST

static void
put_file(const char *dir, const char *name, const char *text)
{
    int d = open(dir, O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(file_write_atomic(d, name, text, strlen(text), 0640), 0);
    close(d);
}

static const char *
text_of(const void *ctx, const char *dir, const char *name)
{
    char *s;
    size_t n;
    ck_assert_int_eq(file_read(ctx, AT_FDCWD, mem_printf(ctx, "%s/%s", dir, name), 1 << 20, &s, &n), 0);
    return s;
}

/* In place: the file stays the same one. */
START_TEST(files_are_laid_out)
{
    auto_mem void *ctx = mem_ctx("test");
    char dir[] = "/tmp/paddock-cli-XXXXXX";
    struct stat before, after;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char *sub = mem_printf(ctx, "%s/sub", dir), *a = mem_printf(ctx, "%s/a.hcl", dir);
    ck_assert_int_eq(mkdir(sub, 0755), 0);
    put_file(dir, "a.hcl", "a=1   \nbb=2\n");
    put_file(dir, "b.nomad", "b = 1\n");
    put_file(dir, "c.txt", "c=1\n");
    put_file(sub, "d.nomad", "d=1\n");
    check_out(mem_printf(ctx, "fmt -check %s", dir), 1, mem_printf(ctx, "%s\n", a));
    check_out(mem_printf(ctx, "fmt -list=false -write=false %s", a), 0, "a  = 1\nbb = 2\n");
    ck_assert_str_eq(text_of(ctx, dir, "a.hcl"), "a=1   \nbb=2\n");
    ck_assert_int_eq(stat(a, &before), 0);
    check_out(mem_printf(ctx, "fmt %s", dir), 0, mem_printf(ctx, "%s\n", a));
    ck_assert_int_eq(stat(a, &after), 0);
    ck_assert(before.st_ino == after.st_ino && before.st_mode == after.st_mode);
    ck_assert_str_eq(text_of(ctx, dir, "a.hcl"), "a  = 1\nbb = 2\n");
    ck_assert_str_eq(text_of(ctx, dir, "sub/d.nomad"), "d=1\n");
    check_out(mem_printf(ctx, "fmt -check %s", dir), 0, "");
    check_out(mem_printf(ctx, "fmt -recursive %s", dir), 0, mem_printf(ctx, "%s/d.nomad\n", sub));
    ck_assert_str_eq(text_of(ctx, dir, "sub/d.nomad"), "d = 1\n");
    ck_assert_str_eq(text_of(ctx, dir, "c.txt"), "c=1\n");
    check_err(mem_printf(ctx, "fmt %s/c.txt", dir), 1,
              mem_printf(ctx, "%s/c.txt: only files whose names end in .nomad or .hcl are formatted\n",
                         dir));
    check_err(mem_printf(ctx, "fmt %s/no.hcl", dir), 1,
              mem_printf(ctx, "%s/no.hcl: No such file or directory\n", dir));
    /* a file that is not valid stays as it is */
    put_file(dir, "a.hcl", "a=[\n");
    ck_assert_int_eq(fake_run(mem_printf(ctx, "fmt %s", dir)), 1);
    ck_assert_ptr_nonnull(strstr(fake_err(), "/a.hcl:"));
    ck_assert_str_eq(text_of(ctx, dir, "a.hcl"), "a=[\n");
    check_out("fmt -", 0, "");
    ck_assert_int_eq(dir_remove(AT_FDCWD, dir, NULL), 0);
}
END_TEST

TEST_SUITE("cli files", alloc_logs_and_files, logs_that_are_not_there_say_why,
           following_begins_with_whole_lines, lines_longer_than_a_window,
           a_file_is_followed_from_a_line_on, the_top_of_an_allocation_is_one_slash,
           a_pause_is_seen_when_it_returns, where_the_last_lines_begin, files_are_laid_out)
