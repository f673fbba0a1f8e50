/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile files: each gives one clear error, soon.
 */
#include <string.h>
#include <time.h>

#include "common/duration.h"
#include "common/str.h"
#include "tests/jobspec/help.h"

static const char *
first_error(const void *ctx, const struct buf *b)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_input in = {.name = "j", .s = (const char *)b->data, .n = b->len};
    struct job *job = NULL;
    int r = jobspec_parse(ctx, &in, &job, &d);
    ck_assert_int_lt(r, 0);
    ck_assert_uint_ge(d.n, 1);
    const char *t = d.v[0].text;
    return mem_strndup(ctx, t, strcspn(t, "\n"));
}

/* Time of a processor: a machine with other work makes nothing slower. */
static int64_t
processor_ns(void)
{
    struct timespec ts;
    ck_assert_int_eq(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts), 0);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static void
expect(const struct buf *b, const char *want)
{
    auto_mem void *ctx = mem_ctx("hostile");
    int64_t start = processor_ns();
    const char *got = first_error(ctx, b);
    const char *text = strstr(got, ": ");
    ck_assert_msg(text != NULL && str_prefix(text + 2, want), "got %s\nwant %s", got, want);
    ck_assert_int_lt(processor_ns() - start, 5 * NS_PER_S);
}

static void
fill(struct buf *b, const char *s, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buf_puts(b, s);
}

START_TEST(garbage)
{
    auto_buf struct buf b = BUF_INIT(8 << 20);
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < 1 << 20; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        buf_putc(&b, (char)x);
    }
    expect(&b, "Not a text file");
    for (size_t i = 0; i < b.len; i++)
        b.data[i] = (uint8_t)(33 + b.data[i] % 94);
    auto_mem void *ctx = mem_ctx("text");
    ck_assert(strlen(first_error(ctx, &b)) < 500);
}
END_TEST

START_TEST(bytes)
{
    auto_buf struct buf b = BUF_INIT(8 << 20);
    buf_put(&b, "job \"a\" {}\n\0", 12);
    expect(&b, "Not a text file; The file is not valid UTF-8: byte 0x00 at offset 11.");
    buf_reset(&b);
    buf_puts(&b, "# \xc3\x28");
    expect(&b, "Not a text file; The file is not valid UTF-8: byte 0xc3 at offset 2.");
    buf_reset(&b);
    fill(&b, "# 7 bytes\n", 500000);
    expect(&b, "File too large");
}
END_TEST

START_TEST(nesting)
{
    static const char *const openers[] = {"[",  "(",  "{ a = ",      "\"${",       "!",   "-",
                                          "x[", "f(", "true ? 1 : ", "[for a in ", "x.*["};
    for (size_t i = 0; i < ARRAY_LEN(openers); i++) {
        auto_buf struct buf b = BUF_INIT(8 << 20);
        buf_puts(&b, "x = ");
        fill(&b, openers[i], 100000);
        expect(&b, "Nested too deeply");
    }
    auto_buf struct buf b = BUF_INIT(8 << 20);
    fill(&b, "a {\n", 100000);
    expect(&b, "Nested too deeply");
    static const char *const chains[] = {"1 + ", "a.b.", "a[0] == "};
    for (size_t i = 0; i < ARRAY_LEN(chains); i++) {
        buf_reset(&b);
        buf_puts(&b, "x = ");
        fill(&b, chains[i], 10000);
        expect(&b, "Expression too deep");
    }
    buf_reset(&b);
    buf_puts(&b, "x = [");
    fill(&b, "1,", 1000000);
    expect(&b, "File too large");
}
END_TEST

static void
body(struct buf *b, const char *locals, const char *expr)
{
    buf_reset(b);
    buf_printf(b,
               "locals {\n%s}\njob \"j\" {\n task \"t\" {\n driver = \"x\"\n config {\n a = %s\n"
               " }\n }\n}\n",
               locals, expr);
}

START_TEST(expansion)
{
    auto_buf struct buf b = BUF_INIT(8 << 20), l = BUF_INIT(8 << 20);
    body(&b, "", "[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]]");
    expect(&b, "Too much to evaluate");
    body(&b, "",
         "join(\"\", [for a in range(1000) : join(\"\", [for b in range(1000) : "
         "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"])])");
    expect(&b, "Too much to evaluate");
    /* 2^60 elements by sharing */
    buf_puts(&l, "l0 = [1, 1]\n");
    for (int i = 1; i < 60; i++)
        buf_printf(&l, "l%d = [local.l%d, local.l%d]\n", i, i - 1, i - 1);
    body(&b, buf_str(&l), "local.l59");
    expect(&b, "Too much to evaluate");
    body(&b, buf_str(&l), "jsonencode(local.l59)");
    expect(&b, "Too much to evaluate");
    body(&b, buf_str(&l), "local.l59 == local.l59");
    expect(&b, "Too much to evaluate");
    body(&b, buf_str(&l), "setproduct(range(1000), range(1000), range(1000))");
    expect(&b, "Too much to evaluate");
    /* depth by sharing, made from the inside out */
    buf_reset(&l);
    buf_puts(&l, "l0 = []\n");
    for (int i = 1; i < 900; i++)
        buf_printf(&l, "l%d = [local.l%d]\n", i, i - 1);
    buf_puts(&l, "all = [");
    for (int i = 0; i < 900; i++)
        buf_printf(&l, "local.l%d,", i);
    buf_puts(&l, "]\n");
    body(&b, buf_str(&l), "jsonencode(local.all)");
    expect(&b, "Nested too deeply");
    body(&b, buf_str(&l), "local.all");
    expect(&b, "Nested too deeply");
    /* the other way round the evaluator itself goes deep */
    body(&b, buf_str(&l), "local.l899");
    expect(&b, "Nested too deeply");
    buf_reset(&l);
    body(&b, "",
         "try([for a in range(1000) : [for b in range(1000) : [for c in range(1000) : 1]]], 1)");
    expect(&b, "Too much to evaluate");
}
END_TEST

START_TEST(dynamic_bombs)
{
    auto_buf struct buf b = BUF_INIT(8 << 20);
    buf_puts(&b,
             "job \"j\" {\n dynamic \"group\" {\n for_each = range(1000)\n labels = [group.value]\n"
             " content {\n dynamic \"constraint\" {\n for_each = range(1000)\n content {}\n }\n }\n"
             " }\n}\n");
    expect(&b, "Too m");
}
END_TEST

/* Names that are wrong a hundred thousand times over: no hint is looked for in vain. */
START_TEST(many_names)
{
    auto_buf struct buf b = BUF_INIT(8 << 20), l = BUF_INIT(8 << 20);
    buf_puts(&b, "locals {\n");
    for (int i = 0; i < 90000; i++)
        buf_printf(&b, "aaaaaaaaaaaa%d = 1\n", i);
    buf_puts(&b, "}\njob \"j\" {}\n");
    expect(&b, "Too many locals");
    buf_reset(&b);
    buf_puts(&b, "job \"j\" {\n");
    for (int i = 0; i < 90000; i++)
        buf_printf(&b, "aaaaaaaaaaaa%d = 1\n", i);
    buf_puts(&b, "}\n");
    expect(&b, "Unsupported argument");
    for (int i = 0; i < 900; i++)
        buf_printf(&l, "some_long_name_of_a_local_%d = 1\n", i);
    body(&b, buf_str(&l),
         "[for i in range(1000) : [for k in range(1000) : can(local.some_long_name_of_a_locl_1)]]");
    expect(&b, "Too much to evaluate");
}
END_TEST

/* Every prefix and every single-byte change of a good file: no crash, and a bad one is told. */
START_TEST(mutations)
{
    static const char good[] =
        "variable \"v\" {\n type = list(string)\n default = [\"a\"]\n}\nlocals { x = 1 }\n"
        "job \"j\" {\n meta { a = \"${upper(\"x\")}${NOMAD_X}\" }\n group \"g\" {\n"
        "  task \"t\" {\n driver = \"x\"\n config {\n"
        "  a = [for k, v in {a = 1} : \"%{if v > 0}${k}%{endif}\"]\n"
        "  b = <<-E\n   x ${~ local.x ~}\n   E\n  c = try(1 / 0, -1) /* c */\n }\n }\n }\n}\n";
    const size_t n = sizeof(good) - 1;
    char text[sizeof(good)];
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 2; k++) {
            static const char with[] = "\"{}[]()$%\n~<.*,=#\\0 e";
            auto_mem void *ctx = mem_ctx("mutation");
            struct hcl_diags d = HCL_DIAGS_INIT;
            memcpy(text, good, n);
            text[i] = with[(i * 7 + k * 5) % (sizeof(with) - 1)];
            struct jobspec_input in = {.name = "j", .s = k == 0 ? good : text, .n = k == 0 ? i : n};
            struct job *job = NULL;
            int r = jobspec_parse(ctx, &in, &job, &d);
            ck_assert((r == 0) == (d.errors == 0));
            ck_assert((r == 0) == (job != NULL));
        }
    }
}
END_TEST

TEST_SUITE_TIMEOUT("limits", 60, garbage, bytes, nesting, expansion, dynamic_bombs, many_names,
                   mutations)
