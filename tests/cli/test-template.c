/* SPDX-License-Identifier: Apache-2.0
 *
 * The template subset of -t.
 */
#include "cli/format.h"
#include "tests/lib/test.h"

static const char data[] =
    "{\"ID\":\"web\",\"N\":3,\"Yes\":true,\"No\":false,\"Null\":null,\"F\":1.5,\"L\":[{\"A\":1},{\"A\":2}],"
    "\"E\":[],\"M\":{\"k\":\"v\",\"x.y\":\"z\"}}";

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
    {"{{printf \"%s\"}}", NULL},
    {"{{(((((((((((((((((((((((((((((((((((((((((((((1}}", NULL},
};

START_TEST(subset)
{
    auto_mem void *ctx = mem_ctx("test");
    struct err e = ERR_INIT;
    struct value *v = NULL;
    ck_assert_int_eq(json_decode_value(ctx, data, strlen(data), BUDGET(1 << 20), &v, &e), 0);
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
