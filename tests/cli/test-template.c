/* SPDX-License-Identifier: Apache-2.0
 *
 * The templates of -t, as scripts write them; tests/template has the whole language.
 */
#include "codec/codec.h"
#include "common/mem.h"
#include "template/template.h"
#include "tests/lib/test.h"

static const char data[] =
    "{\"ID\":\"web\",\"N\":3,\"Yes\":true,\"No\":false,\"Null\":null,\"F\":1.5,\"L\":[{\"A\":1},{\"A\":2}],"
    "\"E\":[],\"M\":{\"k\":\"v\",\"x.y\":\"z\"},\"Map\":{\"b\":2,\"a\":1},"
    "\"Deep\":{\"t\":{\"Events\":[1,2,3],\"B\":1}}}";

static const struct {
    const char *text;
    const char *want; /* NULL: an error */
} cases[] = {
    {"plain", "plain"},
    {"{{.ID}} {{ .N }} {{.F}} {{.Yes}}", "web 3 1.5 true"},
    {"{{.Missing}}", "<no value>"},
    {"{{.M.k}} {{index .M \"x.y\"}}", "v z"},
    {"{{range .L}}<{{.A}}>{{end}}", "<1><2>"},
    {"{{range .E}}x{{else}}none{{end}}", "none"},
    {"{{range .L}}{{if eq .A 2}}two{{else}}other{{end}},{{end}}", "other,two,"},
    {"{{if .Yes}}y{{end}}{{if .No}}n{{end}}{{if .Null}}n{{end}}", "y"},
    {"{{with .M}}{{.k}}{{end}}", "v"},
    {"{{range .L}}{{$.ID}}{{end}}", "webweb"},
    {"a {{- .ID -}} b", "awebb"},
    {"{{/* comment */}}x", "x"},
    {"{{len .L}} {{len .ID}} {{index .L 1}}", "2 3 map[A:2]"},
    {"{{if not .No}}a{{end}}{{if ne .ID \"web\"}}b{{end}}", "a"},
    {"{{printf \"%s-%d %q%%\" .ID .N .ID}}", "web-3 \"web\"%"},
    {"{{println .ID (len .L)}}", "web 2\n"},
    {"{{`raw \"text\"`}}", "raw \"text\""},
    {"{{.L}}", "[map[A:1] map[A:2]]"},
    /* the parts of Go's that a script uses */
    {"{{range $k, $v := .M}}{{$k}}={{$v}};{{end}}", "k=v;x.y=z;"},
    {"{{range $i, $x := .L}}{{$i}}:{{$x.A}} {{end}}", "0:1 1:2 "},
    {"{{range $x := .L}}{{$x.A}}{{end}}", "12"},
    {"{{$x := .ID}}{{range .L}}{{$x}}{{end}}", "webweb"},
    {"{{$n := 0}}{{range .L}}{{$n = .A}}{{end}}{{$n}}", "2"},
    {"{{$x := 1}}{{if .Yes}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "21"},
    {"{{with $m := .M}}{{$m.k}}{{.k}}{{end}}", "vv"},
    {"{{.ID | printf \"%.2s\"}} {{.ID | printf \"%-5s|%5s|\" .ID}}", "we web  |  web|"},
    {"{{.L | len | printf \"%03d\"}}", "002"},
    {"{{(index .L 1).A}} {{len (index .Deep \"t\").Events}}", "2 3"},
    {"{{(.M).k}} {{(index .L 0).A | printf \"%d\"}}", "v 1"},
    {"{{if eq .ID \"x\"}}a{{else if eq .ID \"web\"}}b{{else}}c{{end}}", "b"},
    {"{{if .No}}a{{else if .No}}b{{else}}c{{end}}", "c"},
    {"{{if .Yes}}a{{else if .Bad.Bad.Bad}}b{{else}}c{{end}}d", "ad"},
    {"{{with .No}}a{{else with .ID}}{{.}}{{end}}", "web"},
    {"{{if and .Yes (gt .N 2) (le .N 3)}}{{or .No .ID}}{{end}}", "web"},
    {"{{print 1 2 \"a\" 3}} {{lt 1 2}} {{ge \"b\" \"a\"}}", "1 2a3 true true"},
    {"{{.Map}}", "map[a:1 b:2]"},
    {"{{printf \"%v %t %5.1f %x\" .L .Yes .F .N}}", "[map[A:1] map[A:2]] true   1.5 3"},
    {"{{len .Null}}{{range .Null}}x{{end}}", "0"},
    {"{{range .N}}x{{end}}{{range .L}}{{break}}{{end}}{{1.5}}", "xxx1.5"},
    {"{{printf \"%d\" .ID}} {{printf \"%s\"}}", "%!d(string=web) %!s(MISSING)"},
    {"{{define \"x\"}}<{{.}}>{{end}}{{template \"x\" .N}}", "<3>"},
    /* never a wrong value */
    {"{{.ID.X}}", NULL},
    {"{{.ID.}}", NULL},
    {"{{len .N}}", NULL},
    {"{{eq .ID 3}}", NULL},
    {"{{$x}}", NULL},
    {"{{$x = 1}}", NULL},
    {"{{if .Yes}}{{$x := 2}}{{end}}{{$x}}", NULL},
    {"{{.ID | .N}}", NULL},
    {"{{.ID | nofunc}}", NULL},
    {"{{(.ID)x}}", NULL},
    {"{{len .L .L}}", NULL},
    {"{{index .M 1}}", NULL},
    {"{{if .Yes}}{{else range .L}}{{end}}", NULL},
    {"{{template \"x\"}}", NULL},
    {"{{$a, $b := .M}}", NULL},
    {"{{end x}}", NULL},
    {"{{", NULL},
    {"{{.ID", NULL},
    {"{{end}}", NULL},
    {"{{else}}", NULL},
    {"{{range .L}}", NULL},
    {"{{if .Yes}}a{{else}}b{{else}}c{{end}}", NULL},
    {"{{nofunc .ID}}", NULL},
    {"{{.ID .N}}", NULL},
    {"{{index .L 9}}", NULL},
    {"{{\"open}}", NULL},
    {"{{(((((((((((((((((((((((((((((((((((((((((((((1}}", NULL},
};

START_TEST(subset)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct value *v = NULL;
    ck_assert_int_eq(json_decode_value(ctx, SLICE(data, strlen(data)), BUDGET(1 << 20), &v, &e), 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        auto_buf struct buf b = BUF_INIT(1 << 20);
        err_clear(&e);
        int rc = template_render(&b, cases[i].text, v, &e);
        ck_assert_msg((rc == 0) == (cases[i].want != NULL), "%s: %s", cases[i].text, e.text);
        if (cases[i].want)
            ck_assert_str_eq(buf_str(&b), cases[i].want);
        else
            ck_assert_ptr_nonnull(strstr(e.text, "template: "));
    }
}
END_TEST

TEST_SUITE("cli template", subset)
