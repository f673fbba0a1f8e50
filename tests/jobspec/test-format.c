/* SPDX-License-Identifier: Apache-2.0
 *
 * The canonical layout, as Nomad 2.0's `nomad fmt` lays these files out.
 */
#include <string.h>

#include "common/buf.h"
#include "common/mem.h"
#include "jobspec/hcl.h"
#include "tests/lib/test.h"

static const struct {
    const char *in, *out;
} rows[] = {
    {"job   \"web\"{\n"
     "datacenters=[\"dc1\",\"dc2\"]   # where\n"
     "   count  =  3#how many\n"
     "\n"
     "meta{\n"
     "a=\"x\"\n"
     "   longer_name   =   \"y\"  // z\n"
     "}\n"
     "   group \"g\"{ count=1 }\n"
     "empty{\n"
     "}\n"
     "none{}\n"
     "}\n",
     "job \"web\" {\n"
     "  datacenters = [\"dc1\", \"dc2\"] # where\n"
     "  count       = 3              #how many\n"
     "\n"
     "  meta {\n"
     "    a           = \"x\"\n"
     "    longer_name = \"y\" // z\n"
     "  }\n"
     "  group \"g\" { count = 1 }\n"
     "  empty {\n"
     "  }\n"
     "  none {}\n"
     "}\n"},
    {"x=-1\n"
     "y=[ -1,a-b,- c,(1+2)*3 ]\n"
     "z=a ?-1:- 1\n"
     "l={for a in b:a=>-a}\n"
     "w=!a&&b\n"
     "d=a . b[ 0 ] . c[*].d\n"
     "f=max( 1,[2,3 ]... )\n"
     "o={ a=1,b = {c=2} }\n"
     "p={}\n"
     "v=[for k,v in [ 1 ]:k if v>1]\n"
     "m={for k,v in x:k=>v...}\n"
     "q=foo.bar [1]\n",
     "x = -1\n"
     "y = [-1, a-b, -c, (1 + 2) * 3]\n"
     "z = a ? -1 : -1\n"
     "l = { for a in b : a => - a }\n"
     "w = !a && b\n"
     "d = a.b[0].c[*].d\n"
     "f = max(1, [2, 3]...)\n"
     "o = { a = 1, b = { c = 2 } }\n"
     "p = {}\n"
     "v = [for k, v in [1] : k if v > 1]\n"
     "m = { for k, v in x : k => v... }\n"
     "q = foo.bar[1]\n"},
    {"t=\"a ${ b }c${d}${ e}%{ if f }g%{endif}\"\n"
     "u=\"${{a=1}}\"\n"
     "h=<<EOT\n"
     "  keep   this ${ x +1 }\n"
     " EOT\n"
     "i    =   <<-EOT\n"
     "    and\n"
     "      this\n"
     "    EOT\n"
     "long = 1\n",
     "t    = \"a ${b}c${d}${e}%{if f}g%{endif}\"\n"
     "u    = \"${ { a = 1 } }\"\n"
     "h    = <<EOT\n"
     "  keep   this ${x + 1}\n"
     " EOT\n"
     "i    = <<-EOT\n"
     "    and\n"
     "      this\n"
     "    EOT\n"
     "long = 1\n"},
    {"list=[\n"
     "1,\n"
     "      -2,   # two\n"
     "  \"three\", /* 3 */ 4,\n"
     "]\n"
     "k=f(g({\n"
     "a=1\n"
     "bb=2\n"
     "}))\n"
     "last=1\n",
     "list = [\n"
     "  1,\n"
     "  -2, # two\n"
     "  \"three\", /* 3 */ 4,\n"
     "]\n"
     "k = f(g({\n"
     "  a  = 1\n"
     "  bb = 2\n"
     "}))\n"
     "last = 1\n"},
    {"# first\n"
     "   // second\n"
     "a=1\n"
     "/* block\n"
     " stays */ b=2\n"
     "      # indented\n"
     "c = \"é\"   # one\n"
     "dd= \"ee\"  # two\n",
     "# first\n"
     "// second\n"
     "a                    = 1\n"
     "/* block\n"
     " stays */ b = 2\n"
     "# indented\n"
     "c  = \"é\"  # one\n"
     "dd = \"ee\" # two\n"},
    {"a=1\r\n"
     "bb=2 # c\r\n"
     "\r\n",
     "a  = 1\r\n"
     "bb = 2 # c\r\n"
     "\r\n"},
    {"# all", "# all"},
    {" /* all */  ", "/* all */  "},
    {"", ""},
    {"a=1 #c",
     "a = 1 #c"},
    {"\n"
     "\n"
     "  \n"
     "a =1",
     "\n"
     "\n"
     "\n"
     "a = 1"},
};

static int
format(const void *ctx, const char *in, size_t n, struct buf *out, struct hcl_diags *d)
{
    *out = (struct buf)BUF_INIT(1 << 20);
    *d = (struct hcl_diags)HCL_DIAGS_INIT;
    return hcl_format(ctx, "x.hcl", in, n, out, d);
}

START_TEST(only_blanks_change)
{
    auto_mem void *ctx = mem_ctx("test");
    struct hcl_diags d;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        auto_buf struct buf once, twice;
        ck_assert_int_eq(format(ctx, rows[i].in, strlen(rows[i].in), &once, &d), 0);
        ck_assert_str_eq(buf_str(&once), rows[i].out);
        ck_assert_int_eq(format(ctx, buf_str(&once), once.len, &twice, &d), 0);
        ck_assert_str_eq(buf_str(&twice), rows[i].out);
    }
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
    auto_mem void *ctx = mem_ctx("test");
    static const char *const bad[] = {"a = [", "a = \"x", "a = <<EOT\nx\n", "/* x", "job {", "a = \xff\n"};
    struct hcl_diags d;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        auto_buf struct buf out;
        ck_assert_int_lt(format(ctx, bad[i], strlen(bad[i]), &out, &d), 0);
        ck_assert_uint_eq(out.len, 0);
        ck_assert_uint_gt(d.n, 0);
    }
}
END_TEST

/* One wide line moves all of its neighbours: the size of what is made has a bound, and so has the work. */
START_TEST(a_layout_has_a_bound)
{
    auto_mem void *ctx = mem_ctx("test");
    auto_buf struct buf in = BUF_INIT(4 << 20);
    auto_buf struct buf out;
    struct hcl_diags d;
    buf_puts(&in, "a = \"");
    for (int i = 0; i < 100000; i++)
        buf_puts(&in, "wide ");
    buf_puts(&in, "\" # c\n");
    for (int i = 0; i < 1000; i++)
        buf_printf(&in, "a%d = 1 # c\n", i);
    ck_assert_int_eq(format(ctx, buf_str(&in), in.len, &out, &d), -ERR_LIMIT);
    ck_assert_uint_eq(d.n, 0);
}
END_TEST

TEST_SUITE("format", only_blanks_change, what_is_no_file_is_refused, a_layout_has_a_bound)
