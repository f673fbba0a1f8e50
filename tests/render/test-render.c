/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/mem.h"
#include "render/envfile.h"
#include "render/output.h"
#include "tests/lib/test.h"

/* --- lines of variables --- */

static const struct {
    const char *text;
    const char *want; /* NAME=VALUE;...; or the words of a mistake */
} lines[] = {
    {"", ""},
    {"A=1", "A=1;"},
    {"A=1\nB=2\n", "A=1;B=2;"},
    {"  export  A = x y  # said\r\n#B=2\n\n", "A=x y;"},
    {"exported=1", "exported=1;"},
    {"export=1", "export=1;"},
    {"A=", "A=;"},
    {"A=\"a b # c\" ", "A=a b # c;"},
    {"A=' a \\n '", "A= a \\n ;"},
    {"A=a'b c'\"d\"e", "A=ab cde;"},
    {"A=\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "A=\"\\/\b\f\n\r\t;"},
    {"A=\"\\u00e9\\u20ac\\ud83d\\ude00\\ud83d\"", "A=\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbd;"},
    {"a.b/C_1=x", "a.b/C_1=x;"},
    {"A=1\nA=2", "A=2;"},
    {"A=a#b", "A=a;"},
    {"A=1\nnothing", "error on line 2: missing ="},
    {" = x", "error on line 1: empty key"},
    {"1A=x", "error on line 1: key must start with [A-Za-z_] but found '1'"},
    {"A-B=x", "error on line 1: key characters must be [A-Za-z0-9/_.] but found '-'"},
    {"A=\"x", "error on line 1: unmatched \""},
    {"A=\"x\\", "error on line 1: unmatched \""},
    {"A='x", "error on line 1: unmatched '"},
    {"A=\"\\q\"", "error on line 1: invalid escape '\\q'"},
    {"A=\"\\u12\"", "error on line 1: expected 4 hex digits behind \\u"},
    {"A=\"\\u0000\"", "error on line 1: invalid char \\u0000"},
    {"A=\x01", "error on line 1: invalid char '\\x01'"},
};

START_TEST(lines_become_variables)
{
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        auto_mem void *ctx = mem_ctx("test");
        struct err e = ERR_INIT;
        struct str_map m = {0};
        char *got = mem_strdup(ctx, "");
        int r = envfile_parse(ctx, SLICE(lines[i].text, strlen(lines[i].text)), &m, &e);
        for (size_t k = 0; k < m.n; k++)
            got = mem_printf(ctx, "%s%s=%s;", got, m.v[k].k, m.v[k].v);
        ck_assert_msg(strcmp(r < 0 ? e.text : got, lines[i].want) == 0, "%zu: \"%s\": \"%s\"", i,
                      lines[i].text, r < 0 ? e.text : got);
    }
}
END_TEST

START_TEST(a_line_that_is_too_long_is_refused)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct str_map m = {0};
    char *text = mem_array(ctx, char, ENVFILE_LINE_MAX + 2);
    memset(text, 'A', ENVFILE_LINE_MAX + 1);
    text[1] = '=';
    ck_assert_int_eq(envfile_parse(ctx, SLICE(text, ENVFILE_LINE_MAX), &m, &e), -ERR_LIMIT);
    ck_assert_int_eq(envfile_parse(ctx, SLICE(text, ENVFILE_LINE_MAX - 1), &m, &e), 0);
}
END_TEST

/* --- files --- */

static int
open_new(void)
{
    char path[] = "/tmp/paddock-render-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(dir, 0);
    return dir;
}

static void
remove_all(int dir)
{
    char name[64], path[256] = "";
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", dir);
    ck_assert_int_gt(readlink(name, path, sizeof(path) - 1), 0);
    ck_assert_int_eq(dir_remove(AT_FDCWD, path, NULL), 0);
}

static int
put(int dir, const char *path, const char *perms, const char *text, bool *changed)
{
    struct err e = ERR_INIT;
    const struct output_wish w = {.dir = dir, .path = path, .perms = perms, .uid = -1, .gid = -1};
    return output_write(&w, SLICE(text, strlen(text)), changed, &e);
}

START_TEST(a_file_is_replaced_where_it_is_another_one)
{
    auto_mem void *ctx = mem_ctx("test");
    auto_fd int dir = open_new();
    char *text = NULL;
    bool changed = false;
    struct stat first, st;
    ck_assert_int_eq(put(dir, "a/b/c", "", "one", &changed), 0);
    ck_assert(changed);
    ck_assert_int_eq(fstatat(dir, "a/b/c", &first, 0), 0);
    ck_assert_uint_eq(first.st_mode & 07777, 0644);
    ck_assert_int_eq(put(dir, "a/b/c", "600", "one", &changed), 0);
    ck_assert(!changed);
    ck_assert_int_eq(fstatat(dir, "a/b/c", &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_uint_eq(st.st_ino, first.st_ino);
    ck_assert_int_eq(put(dir, "a/b/c", "", "two", &changed), 0);
    ck_assert(changed);
    ck_assert_int_eq(fstatat(dir, "a/b/c", &st, 0), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    ck_assert_int_eq(file_read(ctx, dir, "a/b/c", 100, &text, NULL), 0);
    ck_assert_str_eq(text, "two");
    ck_assert_int_eq(faccessat(dir, "a/b/.c.paddock", F_OK, 0), -1);
    remove_all(dir);
}
END_TEST

START_TEST(a_file_goes_nowhere_else)
{
    auto_fd int dir = open_new();
    bool changed = false;
    struct stat st;
    ck_assert_int_eq(symlinkat("/etc", dir, "out"), 0);
    ck_assert_int_lt(put(dir, "out/paddock-test", "", "x", &changed), 0);
    ck_assert_int_lt(put(dir, "../x", "", "x", &changed), 0);
    ck_assert_int_lt(put(dir, "/x", "", "x", &changed), 0);
    ck_assert_int_lt(put(dir, "", "", "x", &changed), 0);
    ck_assert_int_eq(symlinkat("/etc/hostname", dir, "link"), 0);
    ck_assert_int_eq(put(dir, "link", "", "x", &changed), 0); /* it is replaced itself */
    ck_assert_int_eq(fstatat(dir, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(symlinkat("/etc/hostname", dir, ".d.paddock"), 0); /* of a run that was killed */
    ck_assert_int_eq(put(dir, "d", "", "x", &changed), 0);
    ck_assert_int_eq(mkdirat(dir, "e", 0755), 0);
    ck_assert_int_lt(put(dir, "e", "", "x", &changed), 0);
    remove_all(dir);
}
END_TEST

START_TEST(a_file_belongs_to_the_user)
{
    auto_fd int dir = open_new();
    struct err e = ERR_INIT;
    bool changed = false;
    struct output_wish w = {.dir = dir, .path = "x", .uid = geteuid(), .gid = getegid()};
    ck_assert_int_eq(output_write(&w, SLICE("x", 1), &changed, &e), 0);
    w.uid++;
    ck_assert_int_eq(output_write(&w, SLICE("x", 1), &changed, &e), -ERR_INVALID);
    ck_assert_msg(strstr(e.text, "leave uid out") != NULL, "%s", e.text);
    w.uid--;
    w.gid++;
    ck_assert_int_eq(output_write(&w, SLICE("x", 1), &changed, &e), -ERR_INVALID);
    remove_all(dir);
}
END_TEST

TEST_SUITE("render", lines_become_variables, a_line_that_is_too_long_is_refused,
           a_file_is_replaced_where_it_is_another_one, a_file_goes_nowhere_else,
           a_file_belongs_to_the_user)
