/* SPDX-License-Identifier: Apache-2.0
 *
 * common/: numbers, durations, sizes, times, strings, buffers, files, options, log lines.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/civil.h"
#include "common/clock.h"
#include "common/crc.h"
#include "common/digest.h"
#include "common/duration.h"
#include "common/err.h"
#include "common/fd.h"
#include "common/frame.h"
#include "common/host/notify.h"
#include "common/journal.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/opt.h"
#include "common/siphash.h"
#include "common/str.h"
#include "common/uuid.h"
#include "tests/lib/test.h"

START_TEST(integers)
{
    int64_t i = 7;
    ck_assert_int_eq(num_parse_i64("-9223372036854775808", &i), 0);
    ck_assert(i == INT64_MIN);
    ck_assert_int_eq(num_parse_i64("9223372036854775808", &i), -ERANGE);
    ck_assert_int_eq(num_parse_i64("", &i), -EINVAL);
    ck_assert_int_eq(num_parse_i64("1 ", &i), -EINVAL);
    ck_assert_int_eq(num_parse_i64("0x10", &i), -EINVAL);
    ck_assert(i == INT64_MIN); /* untouched on failure */
    uint64_t u;
    ck_assert_int_eq(num_parse_u64("18446744073709551615", &u), 0);
    ck_assert_int_eq(num_parse_u64("18446744073709551616", &u), -ERANGE);
    double f;
    ck_assert_int_eq(num_parse_f64("1e3", &f), 0);
    ck_assert(f == 1000);
    ck_assert_int_eq(num_parse_f64("nan", &f), -EINVAL);
    ck_assert_int_eq(num_parse_f64("1e999", &f), -ERANGE);
    static const struct {
        const char *s;
        int64_t want; /* < 0: the error */
    } sizes[] = {{"0", 0},
                 {"1024", 1024},
                 {"10GiB", INT64_C(10) << 30},
                 {"500 MB", 500000000},
                 {"1.5t", INT64_C(1500000000000)},
                 {"1.5 tib", INT64_C(3) << 39},
                 {"2k", 2000},
                 {"2Ki", 2048},
                 {"7b", 7},
                 {"7bb", -EINVAL},
                 {"", -EINVAL},
                 {"GiB", -EINVAL},
                 {"-1", -EINVAL},
                 {"0x10", -EINVAL},
                 {"1.2.3", -EINVAL},
                 {".", -EINVAL},
                 {"1 GiB ", -EINVAL},
                 {"10 XB", -EINVAL},
                 {"nan", -EINVAL},
                 {"9000000 TiB", -ERANGE},
                 {"00000000000000000000000000000000001", -EINVAL}};
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        int64_t got = -1;
        int r = num_parse_size(sizes[k].s, &got);
        ck_assert_msg((r < 0 ? r : got) == sizes[k].want, "\"%s\": %d, %lld", sizes[k].s, r,
                      (long long)got);
    }
}
END_TEST

START_TEST(durations)
{
    static const struct {
        const char *in;
        int64_t ns;
        const char *out;
    } rows[] = {
        {"0", 0, "0s"},
        {"30s", 30 * NS_PER_S, "30s"},
        {"1h30m", 5400 * NS_PER_S, "1h30m0s"},
        {"1.5s", 1500 * NS_PER_MS, "1.5s"},
        {"-2ms", -2 * NS_PER_MS, "-2ms"},
        {"1m0.001s", 60 * NS_PER_S + NS_PER_MS, "1m0.001s"},
        {"250us", 250 * NS_PER_US, "250\xc2\xb5s"},
        {"7ns", 7, "7ns"},
        {"2562047h", INT64_C(2562047) * 3600 * NS_PER_S, "2562047h0m0s"},
    };
    char out[DURATION_TEXT];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t ns = -1;
        ck_assert_msg(duration_parse(rows[i].in, &ns) == 0, "%s", rows[i].in);
        ck_assert(ns == rows[i].ns);
        ck_assert_str_eq(duration_format(ns, out), rows[i].out);
    }
    static const char *const bad[] = {"", "5", "s", "1d", "1s2", "1.s.", "9999999h", "1 s", "--1s"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        int64_t ns = 42;
        ck_assert_msg(duration_parse(bad[i], &ns) < 0, "%s", bad[i]);
        ck_assert(ns == 42);
    }
}
END_TEST

START_TEST(sizes_and_times)
{
    char out[TIME_TEXT];
    int64_t ns;
    const char *t = "2026-11-21T20:47:37.5Z";
    ck_assert_int_eq(time_parse(t, strlen(t), &ns), 0);
    ck_assert_str_eq(time_format(ns, out), t);
    t = "2026-11-21T22:47:37.5+02:00";
    int64_t same;
    ck_assert_int_eq(time_parse(t, strlen(t), &same), 0);
    ck_assert(same == ns);
    t = "0001-01-01T00:00:00Z";
    ck_assert_int_eq(time_parse(t, strlen(t), &ns), 0);
    ck_assert(ns == 0);
    ck_assert_str_eq(time_format(0, out), t);
    ck_assert(time_parse("2026-13-01T00:00:00Z", 20, &ns) < 0);
    ck_assert(time_parse("2026-11-21 nonsense!!", 21, &ns) < 0);
}
END_TEST

START_TEST(uuid_and_crc)
{
    char a[UUID_TEXT], b[UUID_TEXT];
    ck_assert(uuid_valid(uuid_make(a)));
    ck_assert_str_ne(a, uuid_make(b));
    ck_assert(!uuid_valid("not-a-uuid"));
    ck_assert(crc32c(0, "123456789", 9) == 0xe3069283u); /* check value of RFC 3720 */
    ck_assert(crc32c(crc32c(0, "1234", 4), "56789", 5) == 0xe3069283u);
}
END_TEST

START_TEST(strings)
{
    ck_assert(str_glob("dc*", "dc1") && str_glob("*", "") && str_glob("a?c*e", "abcdde"));
    ck_assert(!str_glob("dc?", "dc") && !str_glob("a*b", "ac") && str_glob("a\\*", "a*"));
    ck_assert_uint_eq(utf8_cut("h\xc3\xa9", 2), 1);
    ck_assert_uint_eq(utf8_cut("h\xc3\xa9", 3), 3);
    ck_assert_uint_eq(utf8_cut("\x80\x80", 1), 0);
    ck_assert(utf8_valid("h\xc3\xa9", 3));
    ck_assert(!utf8_valid("\xc0\xaf", 2) && !utf8_valid("\xed\xa0\x80", 3) && !utf8_valid("\xf8", 1));
    const char *const names[] = {"count", "constraint", "driver"};
    ck_assert_str_eq(str_nearest("cuont", names, 3), "count");
    ck_assert_ptr_null(str_nearest("zzzzzz", names, 3));
    /* a guess that is far off is worse than none */
    static const char *const far[] = {"args", "eval", "command"};
    ck_assert_ptr_null(str_nearest("imge", far, 3));
    ck_assert_ptr_null(str_nearest("var", far, 3));
    ck_assert_str_eq(str_nearest("agrs", far, 3), "args");
    ck_assert_str_eq(str_nearest("comand", far, 3), "command");
    char s[4];
    ck_assert(!str_copy(s, sizeof(s), "abcdef"));
    ck_assert_str_eq(s, "abc");
}
END_TEST

START_TEST(tame)
{
    static const struct {
        const char *in, *line, *text;
    } rows[] = {
        {"plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "plain \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", NULL},
        {"a\033[2Jb\r\a\x7f", "a?[2Jb???", NULL},
        {"1\n2\t3", "1?2?3", "1\n2\t3"},
        {"\xc2\x9b" "31m\xc2\xa0", "?31m\xc2\xa0", NULL}, /* CSI in one character */
        {"\x9b\xff\xc3", "???", NULL},
        {"a\xe2\x80\xae" "b\xe2\x81\xa6", "a?b?", NULL}, /* writes from right to left */
        {"\xe2\x80", "??", NULL},
        {"", "", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char a[64], b[64];
        str_copy(a, sizeof(a), rows[i].in);
        str_copy(b, sizeof(b), rows[i].in);
        str_tame(a, false);
        str_tame(b, true);
        ck_assert_str_eq(a, rows[i].line);
        ck_assert_str_eq(b, str_or(rows[i].text, rows[i].line));
    }
}
END_TEST

START_TEST(buffers)
{
    struct buf b = BUF_INIT(8);
    buf_puts(&b, "12345678");
    ck_assert_int_eq(buf_error(&b), 0);
    buf_putc(&b, '9');
    ck_assert_int_eq(buf_error(&b), -ERR_LIMIT);
    ck_assert_str_eq(buf_str(&b), "");
    buf_reset(&b);
    buf_printf(&b, "%d", 42);
    buf_put_u16(&b, 0x4142);
    ck_assert_str_eq(buf_str(&b), "42AB");
    buf_consume(&b, 2);
    ck_assert_str_eq(buf_str(&b), "AB");
    buf_done(&b);
}
END_TEST

START_TEST(errors)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(err_errno(&e, ENOENT, "open \"%s\"", "/x"), -ENOENT);
    ck_assert_str_eq(e.text, "open \"/x\": No such file or directory");
    ck_assert_int_eq(err_set(&e, -ERR_LIMIT, "later"), -ERR_LIMIT);
    ck_assert_int_eq(e.code, -ENOENT); /* the first one stays */
    err_prefix(&e, "load config");
    ck_assert_str_eq(e.text, "load config: open \"/x\": No such file or directory");
    ck_assert_int_eq(err_http_status(-ERR_NOT_FOUND), 404);
    ck_assert_int_eq(err_http_status(-EIO), 500);
}
END_TEST

static void
temp_dir(char out[64])
{
    strcpy(out, "/tmp/paddock-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(out));
}

START_TEST(files)
{
    auto_mem void *ctx = mem_ctx("test");
    char dir[64];
    temp_dir(dir);
    auto_fd int d = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(dir_make(d, "a/b/c", 0755), 0);
    ck_assert_int_eq(file_write_atomic(d, "a/b/f", "hello", 5, 0640), 0);
    char *text;
    size_t n;
    ck_assert_int_eq(file_read(ctx, d, "a/b/f", 100, &text, &n), 0);
    ck_assert_uint_eq(n, 5);
    ck_assert_str_eq(text, "hello");
    ck_assert_int_eq(file_read(ctx, d, "a/b/f", 4, &text, &n), -ERR_LIMIT);
    ck_assert_int_eq(symlinkat("/etc", d, "a/out"), 0);
    ck_assert(fd_open_beneath(d, "a/out/passwd", O_RDONLY, 0, true) < 0);
    ck_assert(fd_open_beneath(d, "../x", O_RDONLY, 0, true) < 0);
    int ok = fd_open_beneath(d, "a/b/f", O_RDONLY, 0, false);
    ck_assert_int_ge(ok, 0);
    fd_close(&ok);
    ck_assert_int_eq(dir_remove(d, "a", NULL), 0); /* must not follow a/out */
    ck_assert_int_eq(access("/etc/passwd", F_OK), 0);
    ck_assert_int_eq(faccessat(d, "a", F_OK, 0), -1);
    ck_assert_int_eq(dir_remove(d, "a", NULL), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(options)
{
    auto_mem void *ctx = mem_ctx("test");
    bool dev = false, seen = false;
    const char *addr = NULL;
    int64_t n = 0, d = 0;
    struct opt_list cfg = {NULL, 0};
    const struct opt table[] = {
        {"dev", OPT_BOOL, &dev, NULL, "", &seen},      {"address", OPT_STRING, &addr, "a", "", NULL},
        {"n", OPT_INT, &n, "n", "", NULL},             {"wait", OPT_DURATION, &d, "d", "", NULL},
        {"config", OPT_LIST, &cfg, "path", "", NULL},  {NULL, OPT_BOOL, NULL, NULL, NULL, NULL},
    };
    const struct opt *tables[] = {table, NULL};
    const char *argv[] = {"x",  "-dev", "job.hcl", "--address=http://x", "-n", "3", "-wait", "2m", "-config",
                    "a",  "-config=b", "--", "-rest"};
    struct opt_list args;
    struct err e = ERR_INIT;
    ck_assert_int_eq(opt_parse(ctx, tables, ARRAY_LEN(argv), (char **)argv, &args, &e), 0);
    ck_assert(dev && seen && n == 3 && d == 120 * NS_PER_S && cfg.n == 2);
    ck_assert_str_eq(addr, "http://x");
    ck_assert_uint_eq(args.n, 2);
    ck_assert_str_eq(args.v[1], "-rest");
    const char *command[] = {"x", "-n", "4", "id", "--", "ls", "-n", "--", "x"}; /* of another program */
    ck_assert_int_eq(opt_parse_leading(ctx, tables, ARRAY_LEN(command), (char **)command, &args, &e), 0);
    ck_assert(n == 4 && args.n == 5);
    ck_assert_str_eq(args.v[2], "-n");
    ck_assert_str_eq(args.v[3], "--");
    const char *bad[] = {"x", "-adress=1"};
    ck_assert_int_eq(opt_parse(ctx, tables, 2, (char **)bad, &args, &e), -ERR_INVALID);
    ck_assert_str_eq(e.text, "unknown flag \"-adress\": did you mean \"-address\"?");
    const char *help[] = {"x", "-h"};
    ck_assert_int_eq(opt_parse(ctx, tables, 2, (char **)help, &args, &e), 1);
}
END_TEST

static int lines[2]; /* a pipe that log lines go through */

static void
log_here(enum log_level level, bool json)
{
    ck_assert_int_eq(lines[1] > 0 ? 0 : pipe2(lines, O_CLOEXEC | O_NONBLOCK), 0);
    log_setup(level, json, lines[1]);
}

/* Returns the lines logged since the last call; "": nothing. */
static const char *
logged(void)
{
    static char text[512];
    ssize_t n = read(lines[0], text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    return text;
}

START_TEST(log_lines)
{
    log_here(LOG_INFO, false);
    log_info("client", "task said", "line", "a\nb \"c\"", "n", LOG_U64(7), NULL);
    ck_assert_ptr_nonnull(strstr(logged(), "client: task said line=\"a\\nb \\\"c\\\"\" n=7"));
    log_debug("client", "hidden", NULL);
    ck_assert_str_eq(logged(), "");
    log_here(LOG_INFO, true);
    log_warn("net", "bad \x01", "k", "v", NULL);
    ck_assert_ptr_nonnull(strstr(logged(), "\"@level\":\"warn\",\"@module\":\"net\","
                                           "\"@message\":\"bad \\u0001\",\"k\":\"v\"}"));
}
END_TEST

/* Only what stands in quotes needs escapes for them; the line stays one. */
START_TEST(quotes_of_a_message_are_not_escaped)
{
    log_here(LOG_INFO, false);
    log_info("client", "limits = \"required\" in C:\\x\ny", "k", "\"", NULL);
    const char *got = logged();
    ck_assert_msg(strstr(got, "client: limits = \"required\" in C:\\x\\ny k=\"\\\"\"") != NULL, "%s", got);
    log_here(LOG_INFO, true);
    log_info("client", "\"q\"", NULL);
    got = logged();
    ck_assert_msg(strstr(got, "\"@message\":\"\\\"q\\\"\"}") != NULL, "%s", got);
}
END_TEST

/* One field of a datagram in journald's native form; NULL when it is not there. */
static const char *
journal_value(const char *p, size_t n, const char *name, char *ret, size_t size)
{
    size_t len = strlen(name);
    for (const char *end = p + n; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        ck_assert_ptr_nonnull(nl);
        const char *eq = memchr(p, '=', (size_t)(nl - p));
        const char *v = eq ? eq + 1 : nl + 9;
        size_t key = (size_t)((eq ? eq : nl) - p), vlen = (size_t)(nl - v);
        if (!eq) {
            uint64_t le;
            memcpy(&le, nl + 1, 8);
            vlen = le;
            ck_assert(v + vlen < end && v[vlen] == '\n');
        }
        if (key == len && memcmp(p, name, len) == 0) {
            ck_assert_uint_lt(vlen, size);
            memcpy(ret, v, vlen);
            ret[vlen] = 0;
            return ret;
        }
        p = v + vlen + 1;
    }
    return NULL;
}

static char journal_got[JOURNAL_BYTES_MAX], journal_text[JOURNAL_BYTES_MAX];
static size_t journal_n;

static const char *
journal_next(int fd, const char *name)
{
    if (name == NULL) {
        ssize_t n = recv(fd, journal_got, sizeof(journal_got), MSG_DONTWAIT);
        ck_assert_int_gt(n, 0);
        journal_n = (size_t)n;
        return NULL;
    }
    return journal_value(journal_got, journal_n, name, journal_text, sizeof(journal_text));
}

static int
journal_listen(const char *path)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    (void)str_copy(a.sun_path, sizeof(a.sun_path), path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const void *)&a, sizeof(a)), 0);
    return fd;
}

static char journal_dir[] = "/tmp/paddock-test-XXXXXX";
static void *journal_ctx;
static const char *journal_path;
static int journal_fd, journal_pipe[2];

static void
journal_begin(void)
{
    char stream[64];
    struct stat st;
    journal_ctx = mem_ctx("journal");
    ck_assert_ptr_nonnull(mkdtemp(journal_dir));
    journal_path = mem_printf(journal_ctx, "%s/socket", journal_dir);
    journal_fd = journal_listen(journal_path);
    ck_assert_int_eq(pipe2(journal_pipe, O_CLOEXEC), 0);
    ck_assert_int_eq(fstat(journal_pipe[1], &st), 0);
    unsetenv("JOURNAL_STREAM");
    ck_assert(!journal_open(journal_pipe[1], journal_path));
    setenv("JOURNAL_STREAM", "1:2", 1); /* somebody else's */
    ck_assert(!journal_open(journal_pipe[1], journal_path));
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_setup(LOG_INFO, false, journal_pipe[1]);
    ck_assert(journal_open(journal_pipe[1], journal_path));
}

static void
journal_end(void)
{
    log_setup(LOG_OFF, false, 2);
    ck_assert(!journal_active());
    unlink(journal_path);
    rmdir(journal_dir);
    talloc_free(journal_ctx);
    fd_close(&journal_fd);
    close(journal_pipe[0]);
    close(journal_pipe[1]);
}

START_TEST(journal_fields)
{
    journal_begin();
    log_warn("client", "task said", "alloc_id", "a-1", "line", "two\nlines=2", "none", (char *)NULL,
             NULL);
    (void)journal_next(journal_fd, NULL);
    ck_assert_str_eq(journal_next(-1, "MESSAGE"),
                     "client: task said alloc_id=a-1 line=\"two\\nlines=2\" none=\"\"");
    ck_assert_str_eq(journal_next(-1, "PRIORITY"), "4");
    ck_assert_str_eq(journal_next(-1, "PADDOCK_ROOM"), "client");
    ck_assert_str_eq(journal_next(-1, "PADDOCK_ALLOC_ID"), "a-1");
    ck_assert_str_eq(journal_next(-1, "PADDOCK_LINE"), "two\nlines=2");
    ck_assert_str_eq(journal_next(-1, "PADDOCK_NONE"), "");
    ck_assert_str_eq(journal_next(-1, "SYSLOG_IDENTIFIER"), program_invocation_short_name);

    char *huge = mem_array(journal_ctx, char, 2 * JOURNAL_BYTES_MAX);
    memset(huge, 'x', 2 * JOURNAL_BYTES_MAX - 1);
    log_info("client", "much", "huge", huge, "task", "t", NULL);
    (void)journal_next(journal_fd, NULL);
    ck_assert_ptr_nonnull(journal_next(-1, "MESSAGE"));
    ck_assert_ptr_null(journal_next(-1, "PADDOCK_HUGE")); /* left out whole, what follows is there */
    ck_assert_str_eq(journal_next(-1, "PADDOCK_TASK"), "t");

    /* nobody there any more: lines go where they went before */
    char line[256] = "";
    fd_close(&journal_fd);
    log_info("client", "to the stream", NULL);
    ck_assert_int_gt(read(journal_pipe[0], line, sizeof(line) - 1), 0);
    ck_assert_ptr_nonnull(strstr(line, "client: to the stream\n"));
    journal_end();
}
END_TEST

/* journald hangs: one wait, then lines are lost and counted, then it goes on */
START_TEST(journal_stalls)
{
    int sent = 0, taken = 0;
    journal_begin();
    int64_t begin = clock_mono_ns();
    for (; sent < 2000; sent++)
        log_info("client", "flood", NULL);
    ck_assert_int_lt(clock_mono_ns() - begin, 20 * JOURNAL_WAIT_MS * NS_PER_MS);
    while (recv(journal_fd, journal_got, sizeof(journal_got), MSG_DONTWAIT) > 0)
        taken++;
    ck_assert_int_lt(taken, sent);
    log_info("client", "after", NULL);
    (void)journal_next(journal_fd, NULL);
    ck_assert_str_eq(journal_next(-1, "PADDOCK_LOG_LOST"), mem_printf(journal_ctx, "%d", sent - taken));
    journal_end();
}
END_TEST

START_TEST(notifications)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[64], got[64] = "";
    unsetenv("NOTIFY_SOCKET");
    ck_assert(!notify_active());
    ck_assert_int_eq(notify_send("READY=1"), 0);
    snprintf(name, sizeof(name), "@paddock-test-%d", (int)getpid());
    memcpy(a.sun_path + 1, name + 1, strlen(name) - 1);
    auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    ck_assert_int_eq(bind(fd, (const void *)&a, len), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    ck_assert(notify_active());
    ck_assert_int_eq(notify_send("READY=1\nSTATUS=x"), 0);
    ck_assert_int_eq(recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT), 16);
    ck_assert_str_eq(got, "READY=1\nSTATUS=x");
    setenv("NOTIFY_SOCKET", "vsock:2:1", 1); /* another kind of address: said, not guessed at */
    ck_assert_int_eq(notify_send("READY=1"), -EINVAL);
    setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
    ck_assert_int_eq(notify_send("READY=1"), -ENOENT);

    unsetenv("WATCHDOG_PID");
    unsetenv("WATCHDOG_USEC");
    ck_assert_int_eq(notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "20000000", 1);
    ck_assert_int_eq(notify_watchdog_ns(), 20 * NS_PER_S);
    setenv("WATCHDOG_PID", "1", 1); /* meant for another process */
    ck_assert_int_eq(notify_watchdog_ns(), 0);
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "-1", 1);
    ck_assert_int_eq(notify_watchdog_ns(), 0);
}
END_TEST

static const char *
told(int fd, int *ret_fd)
{
    static char text[1024];
    char room[CMSG_SPACE(sizeof(int))];
    struct iovec v = {.iov_base = text, .iov_len = sizeof(text) - 1};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    text[n > 0 ? n : 0] = '\0';
    if (ret_fd && n > 0 && CMSG_FIRSTHDR(&m))
        memcpy(ret_fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
    return text;
}

/* Takes descriptor 3 before libcheck does, whose file of assertions would be written over. */
__attribute__((constructor)) static void
take_descriptor_3(void)
{
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) < 3)
        ;
}

/* Does what the service manager does: descriptor 3 is the one that it kept. */
static bool
begin_again(int kept, uint32_t failed)
{
    char pid[16];
    ck_assert_int_eq(pwrite(kept, &failed, sizeof(failed), 0), sizeof(failed));
    ck_assert_int_eq(dup2(kept, 3), 3);
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_FDNAMES", "paddock-starts", 1);
    return notify_begin(60);
}

START_TEST(starts_that_fail_are_paced)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char name[64];
    uint32_t n = 0;
    int kept = -1;
    ck_assert(notify_begin(60)); /* nobody to tell */
    snprintf(name, sizeof(name), "@paddock-pace-%d", (int)getpid());
    memcpy(a.sun_path + 1, name + 1, strlen(name) - 1);
    auto_fd int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    ck_assert_int_eq(bind(fd, (const void *)&a, len), 0);
    setenv("NOTIFY_SOCKET", name, 1);

    ck_assert(notify_begin(60));
    ck_assert_str_eq(told(fd, &kept), "FDSTORE=1\nFDNAME=paddock-starts");
    ck_assert_int_ge(kept, 0);
    ck_assert(pread(kept, &n, sizeof(n), 0) == sizeof(n) && n == 1);
    notify_status_failed("the port is taken\nsay another");
    ck_assert_str_eq(told(fd, NULL), "STATUS=Not started: the port is taken");

    ck_assert(begin_again(kept, 4));
    ck_assert_str_eq(told(fd, NULL), "STATUS=Waits 1 s after 4 starts that failed: the port is taken\n"
                                     "EXTEND_TIMEOUT_USEC=61000000");
    ck_assert(pread(kept, &n, sizeof(n), 0) == sizeof(n) && n == 5);
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
    ck_assert(begin_again(kept, 3)); /* at once */
    ck_assert_str_eq(told(fd, NULL), "");

    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, NULL);
    raise(SIGTERM); /* stopped while it waits: the next start is a first one */
    ck_assert(!begin_again(kept, 50));
    ck_assert_ptr_nonnull(strstr(told(fd, NULL), "Waits 59 s after 50 starts that failed: "
                                                 "it ended without a word"));
    ck_assert_str_eq(told(fd, NULL), "FDSTOREREMOVE=1\nFDNAME=paddock-starts");

    ck_assert(begin_again(kept, 1));
    notify_ready("Running");
    ck_assert_str_eq(told(fd, NULL), "READY=1\nSTATUS=Running\nFDSTOREREMOVE=1\nFDNAME=paddock-starts");
    unsetenv("NOTIFY_SOCKET");
}
END_TEST

START_TEST(digests)
{
    static const char zeros[] =
        "sha256:00000000000000000000000000000000000000000000000000000000000000";
    static const char *const bad[] = {"", "sha256:", "sha1:", "00", "sha256:0"};
    uint8_t d[DIGEST_BYTES];
    char text[DIGEST_TEXT];
    auto_mem void *ctx = mem_ctx("test");
    const char *good = mem_printf(ctx, "%saF", zeros);
    ck_assert_int_eq(digest_parse(good, d), 0);
    ck_assert_uint_eq(d[31], 0xaf);
    ck_assert_str_eq(digest_format(d, text), mem_printf(ctx, "%saf", zeros));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        ck_assert_msg(digest_parse(bad[i], d) < 0, "%s", bad[i]);
    ck_assert_int_lt(digest_parse(mem_printf(ctx, "%saFF", zeros), d), 0);
    ck_assert_int_lt(digest_parse(mem_printf(ctx, "%sa", zeros), d), 0);
    ck_assert_int_lt(digest_parse(mem_printf(ctx, "%sag", zeros), d), 0);
    ck_assert_int_lt(digest_parse(mem_printf(ctx, "%s-1", zeros), d), 0);
    ck_assert_int_lt(digest_parse(mem_printf(ctx, "sha512%saf", zeros + 6), d), 0);
    ck_assert_uint_eq(d[31], 0xaf); /* untouched */
}
END_TEST

static int
note_frame(void *arg, uint8_t type, const uint8_t *p, size_t n)
{
    struct buf *seen = arg;
    buf_printf(seen, "%d:%.*s|", type, (int)n, (const char *)p);
    return type == 9 ? 42 : 0;
}

START_TEST(frames)
{
    struct buf stream = BUF_INIT(4096);
    frame_put(&stream, 1, "one", 3);
    frame_put(&stream, 2, NULL, 0);
    frame_put(&stream, 0, "and 32 bytes, the most there may be", 32);
    for (size_t piece = 1; piece <= stream.len; piece++) {
        struct buf rest = BUF_INIT(64), seen = BUF_INIT(4096);
        for (size_t at = 0; at < stream.len; at += piece) {
            size_t n = stream.len - at < piece ? stream.len - at : piece;
            int r = frame_feed(&rest, stream.data + at, n, note_frame, &seen);
            ck_assert(r == 0 || piece > 32);
            if (r < 0)
                break;
        }
        if (piece <= 16)
            ck_assert_str_eq(buf_str(&seen), "1:one|2:|0:and 32 bytes, the most there may|");
        buf_done(&rest);
        buf_done(&seen);
    }
    buf_done(&stream);
    static const struct {
        const char *bytes;
        int want;
    } rows[] = {
        {"\1\0\0\0\0\0\0\0", 0},
        {"\1\1\0\0\0\0\0\0", -ERR_CORRUPT},
        {"\1\0\0\1\0\0\0\0", -ERR_CORRUPT},
        {"\1\0\0\0\0\0\0\41", -ERR_CORRUPT},
        {"\1\0\0\0\377\377\377\377", -ERR_CORRUPT},
        {"\11\0\0\0\0\0\0\0", 42},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf rest = BUF_INIT(64), seen = BUF_INIT(4096);
        ck_assert_int_eq(frame_feed(&rest, rows[i].bytes, 8, note_frame, &seen), rows[i].want);
        buf_done(&rest);
        buf_done(&seen);
    }
}
END_TEST

/* The hashes of the 0 and 8 bytes 00, 01, ... with the key 00, 01, ... (the paper's own vectors). */
START_TEST(keyed_hashes)
{
    const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    struct siphash h;
    siphash_init(&h, key);
    ck_assert_uint_eq(siphash_end(&h), UINT64_C(0x726fdb47dd0e0e31));
    siphash_init(&h, key);
    siphash_add(&h, key[0]);
    ck_assert_uint_eq(siphash_end(&h), UINT64_C(0x93f5f5799a932462));
}
END_TEST

/* The clock is set at `at` (seconds since boot) by `by`; the time of day at `then`, beside what it
 * would be without. */
START_TEST(jumps_of_the_clock)
{
    enum { HOUR = 3600, MONTH = 30 * 24 * HOUR };
    const int64_t year_2026 = 1782000000;
    static const struct {
        int64_t wall; /* of the boot; 0: in 2026 */
        struct {
            int64_t at, by;
        } sets[3];
        int64_t then, beside;
    } rows[] = {
        {0, {{0, 0}}, 100000, 0},
        {0, {{100, 4}}, 101, 4}, /* corrections */
        {0, {{100, -4}}, 101, -4},
        {0, {{100, HOUR}}, 101, 0}, /* doubted */
        {0, {{100, HOUR}}, 690, 0},
        {0, {{100, HOUR}}, 710, HOUR}, /* believed */
        {0, {{100, -HOUR}}, 690, 0},
        {0, {{100, -HOUR}}, 710, -HOUR},
        {0, {{100, HOUR}, {400, -HOUR}}, 100000, 0}, /* and back */
        {0, {{100, HOUR}, {600, 60}}, 1190, 0},        /* another one begins anew */
        {0, {{100, HOUR}, {600, 60}}, 1220, HOUR + 60},
        {0, {{100, MONTH}}, MONTH / 6, 0},
        {0, {{100, MONTH}}, MONTH / 6 + 200, MONTH},
        {10, {{30, 1782000000}}, 31, 1782000000}, /* a machine without a clock: at once */
        {10, {{30, HOUR}}, 31, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct civil c = {0};
        int64_t boot = rows[i].wall ? rows[i].wall : year_2026, now = 0;
        for (int64_t t = 1; t <= rows[i].then; t++) {
            int64_t wall = boot + t;
            for (size_t k = 0; k < ARRAY_LEN(rows[i].sets); k++)
                wall += t >= rows[i].sets[k].at ? rows[i].sets[k].by : 0;
            now = civil_now(&c, t * NS_PER_S, wall * NS_PER_S);
        }
        ck_assert_msg(now == (boot + rows[i].then + rows[i].beside) * NS_PER_S, "row %zu: %lld", i,
                      (long long)(now / NS_PER_S - boot - rows[i].then));
    }
    int64_t a = clock_civil_ns(), b = clock_civil_of(clock_wall_ns());
    ck_assert(b >= a && b - a < 5 * NS_PER_S);
}
END_TEST

TEST_SUITE("common", integers, durations, sizes_and_times, uuid_and_crc, strings, tame, buffers,
           errors, files, options, log_lines, quotes_of_a_message_are_not_escaped,
           journal_fields, journal_stalls, notifications, starts_that_fail_are_paced, digests, frames,
           keyed_hashes, jumps_of_the_clock)
