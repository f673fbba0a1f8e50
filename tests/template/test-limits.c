/* SPDX-License-Identifier: Apache-2.0
 *
 * Templates that are hostile, and what a caller hears of a run: limits, refusals, what is missing.
 */
#include <stdatomic.h>
#include <string.h>

#include "common/mem.h"
#include "template/digest.h"
#include "tests/lib/test.h"

static const struct value *the_value;
static enum template_answer the_answer = TEMPLATE_MISSING;

static enum template_answer
answer_all(void *data, const struct template_ask *a, const struct value **ret, struct err *e)
{
    (void)a;
    if (data)
        ++*(int *)data;
    *ret = the_value;
    return the_answer == TEMPLATE_ERROR ? (err_set(e, -ERR_UNAVAILABLE, "no server"), the_answer)
                                        : the_answer;
}

struct outcome {
    int rc;
    struct err e;
    struct template_result res;
};

static struct outcome
carry_out(void *ctx, struct slice text, const struct template_limits *l, struct buf *out)
{
    static const struct template_grammar g = {.name = "t", .table = TEMPLATE_TASK};
    struct outcome o = {.e = ERR_INIT};
    struct template_env env = {
        .ask = answer_all, .digest = template_digest, .now_ns = 1795262395000000000, .ns = "prod"};
    struct template_tree *t;
    o.rc = template_parse(ctx, &g, text, &t, &o.e);
    if (!o.rc)
        o.rc = template_exec(ctx, &(struct template_input){t, NULL, &env, l}, out, &o.res, &o.e);
    return o;
}

static const struct {
    const char *name, *head, *body, *tail; /* the body 100,000 times */
    const char *words;
} nested[] = {
    {"parentheses", "{{", "(", "1}}", "t:1: nested more than 500 deep"},
    {"blocks", "", "{{if 1}}", "", "t:1: nested more than 500 deep"},
    {"ranges", "", "{{range .}}", "", "nested more than 500 deep"},
    {"withs", "", "{{with 1}}", "", "nested more than 500 deep"},
    {"elses", "{{if 0}}", "{{else if 0}}", "{{end}}", "nested more than 500 deep"},
    {"blocks with names", "", "{{block \"b\" .}}", "", "nested more than 500 deep"},
    {"pipes", "{{1", " | print", "}}", NULL},
    {"arguments", "{{print", " 1", "}}", NULL},
    {"fields", "{{(parseJSON \"{}\").a", ".a", "}}", "nil pointer evaluating interface {}.a"},
    {"actions", "", "{{1}}", "", NULL},
    {"variables", "", "{{$x := 1}}", "", NULL},
    {"JSON", "{{parseJSON `", "[", "`}}", "more than 4000 steps wait for each other"},
    {"YAML", "{{parseYAML `", "[", "`}}", "more than 4000 steps wait for each other"},
    {"YAML lists", "{{parseYAML `", "- ", "`}}", "more than 4000 steps wait for each other"},
    {"YAML keys", "{{parseYAML `", "? ", "`}}", NULL},
    {"expressions", "{{regexMatch `", "(", "` `a`}}", "error parsing regexp"},
    {"slashes", "{{sprig_clean `", "../", "`}}", NULL},
    {"keys", "{{explodeMap (sprig_dict `", "a/", "b` 1)}}", "more than"},
    {"definitions", "", "{{define \"a\"}} {{end}}", "", NULL},
    {"versions", "{{sprig_semverCompare `", ">1,", ">1` `1`}}", NULL},
};

START_TEST(nest_100_000_times)
{
    for (size_t i = 0; i < ARRAY_LEN(nested); i++) {
        auto_mem void *ctx = mem_ctx("test");
        auto_buf struct buf text = BUF_INIT(8 << 20), out = BUF_INIT(64 << 20);
        buf_puts(&text, nested[i].head);
        for (int k = 0; k < 100000; k++)
            buf_puts(&text, nested[i].body);
        buf_puts(&text, nested[i].tail);
        struct outcome o = carry_out(ctx, SLICE(text.data, text.len), NULL, &out);
        if (nested[i].words)
            ck_assert_msg(o.rc && strstr(o.e.text, nested[i].words), "%s: %s", nested[i].name,
                          o.e.text);
    }
}
END_TEST

static const struct {
    const char *text, *words;
} endless[] = {
    {"{{range loop 9000000000}}{{end}}", "takes too many steps"},
    {"{{range loop "
     "9000000000}}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{"
     "end}}",
     "gives more than 64 MiB"},
    {"{{define \"r\"}}{{template \"r\"}}{{end}}{{template \"r\"}}",
     "exceeded maximum template depth (1000)"},
    {"{{define \"r\"}}{{executeTemplate \"r\"}}{{end}}{{template \"r\"}}", "wait for each other"},
    {"{{executeTemplate \"t\"}}", "wait for each other"},
    {"{{$x := sprig_list}}{{range loop 100000}}{{$x = sprig_list $x}}{{end}}{{$x}}",
     "in each other"},
    {"{{$x := sprig_list}}{{range loop 100000}}{{$x = sprig_list $x}}{{end}}{{toJSON $x}}",
     "wait for each other"},
    {"{{$x := sprig_list}}{{range loop 100000}}{{$x = sprig_list $x}}{{end}}{{sprig_deepCopy $x}}",
     "wait for each other"},
    {"{{$x := sprig_list}}{{range loop 100000}}{{$x = sprig_list $x}}{{end}}{{sprig_deepEqual $x "
     "(sprig_deepCopy $x)}}",
     "wait for each other"},
    {"{{$d := sprig_dict}}{{$_ := sprig_set $d \"a\" $d}}{{$d}}", "in each other"},
    {"{{$d := sprig_dict}}{{$_ := sprig_set $d \"a\" $d}}{{toYAML $d}}{{toTOML $d}}",
     "wait for each other"},
    {"{{$d := sprig_dict}}{{$_ := sprig_set $d \"a\" $d}}{{mergeMap $d $d}}",
     "wait for each other"},
    {"{{$s := \"a\"}}{{range loop 60}}{{$s = print $s $s}}{{end}}", "MiB of memory"},
    {"{{sprig_repeat 1000000000000 \"ab\"}}", "template: "},
    {"{{sprig_repeat 1000000000000 \"a\"}}", "template: "},
    {"{{sprig_indent 1000000000000 \"a\"}}", "template: "},
    {"{{indent 100000000 \"a\\nb\\nc\\nd\"}}", "MiB of memory"},
    {"{{sprig_until 1000000000}}", "template: "},
    {"{{sprig_seq 0 1 1000000000}}", "template: "},
    {"{{range loop 1000000}}{{printf \"%1000000d\" 1}}{{end}}", "template: "},
    {"{{range $i, $_ := loop 10000}}{{env (print $i)}}{{nomadVar (print $i)}}{{end}}",
     "asks for more than 4096 things"},
    {"{{$s := sprig_repeat 100000 \"a\"}}{{regexMatch \"(a*)*b\" $s}}{{regexMatch \"(a|aa)+$\" "
     "$s}}{{regexMatch \"(x+x+)+y\" $s}}",
     ""},
    {"{{$s := sprig_repeat 200000 \"ab\"}}{{range loop 1000}}{{$_ := sprig_split \"a\" $s}}{{end}}",
     "template: "},
};

START_TEST(end_at_a_limit)
{
    for (size_t i = 0; i < ARRAY_LEN(endless); i++) {
        auto_mem void *ctx = mem_ctx("test");
        auto_buf struct buf out = BUF_INIT(128 << 20);
        struct outcome o =
            carry_out(ctx, SLICE(endless[i].text, strlen(endless[i].text)), NULL, &out);
        ck_assert_msg(strstr(o.e.text, endless[i].words) != NULL, "%s: %s", endless[i].text,
                      o.e.text);
        ck_assert_int_eq(o.rc != 0 || !*endless[i].words, true);
        ck_assert_uint_le(out.len, 64 << 20);
    }
}
END_TEST

START_TEST(stop_when_the_caller_says)
{
    auto_mem void *ctx = mem_ctx("test");
    auto_buf struct buf out = BUF_INIT(1 << 20);
    atomic_bool stop = true;
    struct template_limits l = {.stop = &stop, .steps = UINT64_MAX / 2};
    static const char text[] = "a{{range loop 9000000000}}{{end}}";
    struct outcome o = carry_out(ctx, SLICE(text, sizeof(text) - 1), &l, &out);
    ck_assert_int_eq(o.rc, -ERR_LIMIT);
    ck_assert_str_eq(o.e.text, "template: takes too long");
}
END_TEST

START_TEST(tell_what_is_missing)
{
    auto_mem void *ctx = mem_ctx("test");
    auto_buf struct buf out = BUF_INIT(1 << 20);
    static const char text[] = "x{{nomadVar \"a@ns.eu\"}}{{range nomadService 2 \"k\" "
                               "\"t.web@eu\"}}{{end}}{{nomadVar \"a@ns.eu\"}}"
                               "{{nomadServices}}{{file \"/f\"}}{{nomadVarList "
                               "\"p\"}}{{nomadVarExists \"b\"}}{{env \"E\"}}y";
    static const char *const names[] = {"nomad.var.block(a@ns.eu)",
                                        "nomad.service(t.web@eu:2|k)",
                                        "nomad.services",
                                        "file(/f)",
                                        "nomad.var.list(p@prod.global)",
                                        "nomad.var.get(b@prod.global)"};
    struct outcome o = carry_out(ctx, SLICE(text, sizeof(text) - 1), NULL, &out);
    ck_assert_msg(o.rc == 0, "%s", o.e.text);
    ck_assert_str_eq(buf_str(&out), "x<nil><nil>[][]falsey");
    ck_assert_uint_eq(o.res.missing.n, ARRAY_LEN(names));
    ck_assert_uint_eq(o.res.used.n, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_str_eq(o.res.missing.v[i].name, names[i]);
    const struct template_ask *a = &o.res.missing.v[1];
    ck_assert_int_eq(a->kind, TEMPLATE_SERVICE);
    ck_assert_str_eq(a->key, "web");
    ck_assert_str_eq(a->tag, "t");
    ck_assert_str_eq(a->region, "eu");
    ck_assert_str_eq(a->hash, "k");
    ck_assert_int_eq(a->count, 2);
    ck_assert_str_eq(o.res.missing.v[0].ns, "ns");
    ck_assert_str_eq(o.res.missing.v[4].ns, "");
}
END_TEST

START_TEST(pass_on_mistakes_of_the_caller)
{
    auto_mem void *ctx = mem_ctx("test");
    auto_buf struct buf out = BUF_INIT(1 << 20);
    static const char text[] = "{{nomadVar \"a\"}}";
    the_answer = TEMPLATE_ERROR;
    struct outcome o = carry_out(ctx, SLICE(text, sizeof(text) - 1), NULL, &out);
    the_answer = TEMPLATE_MISSING;
    ck_assert_int_eq(o.rc, -ERR_INVALID);
    ck_assert_str_eq(
        o.e.text, "template: t:1:2: executing \"t\" at <nomadVar \"a\">: error calling nomadVar: "
                  "nomad.var.block(a@prod.global): no server");
}
END_TEST

/* Answers of another shape than the API's are looked through, not trusted. */
START_TEST(take_odd_answers)
{
    auto_mem void *ctx = mem_ctx("test");
    static const char text[] = "{{with nomadVar \"a\"}}{{.x}}{{.Keys}}{{.Metadata}}{{end}}{{range "
                               "nomadService \"w\"}}{{.Name}}{{.Tags}}{{end}}"
                               "{{range nomadServices}}{{.Tags}}{{end}}{{range "
                               "nomadVarList}}{{.Path}}{{end}}{{nomadVarExists \"b\"}}"
                               "{{file \"f\"}}{{env \"E\"}}";
    struct value *map = value_map(ctx), *list = value_list(ctx);
    value_map_set(map, "Items", list);
    value_list_add(list, value_null(ctx));
    value_list_add(list, value_int(ctx, 1));
    value_list_add(list, map);
    const struct value *odd[] = {value_null(ctx), value_int(ctx, 1), value_str(ctx, "x"), map,
                                 list};
    for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
        auto_buf struct buf out = BUF_INIT(1 << 20);
        the_value = odd[i];
        the_answer = TEMPLATE_VALUE;
        struct outcome o = carry_out(ctx, SLICE(text, sizeof(text) - 1), NULL, &out);
        the_answer = TEMPLATE_MISSING;
        ck_assert_msg(o.rc == 0 || o.rc == -ERR_INVALID, "%s", o.e.text);
    }
}
END_TEST

static const struct {
    const char *text;
    int code;
    const char *words;
} refused[] = {
    {"{{env \"A\"}}{{nomadVar \"x\"}}", 0, ""},
    {"{{", -ERR_INVALID, "template: t:1: unclosed action"},
    {"{{nofunc}}", -ERR_INVALID, "function \"nofunc\" not defined"},
    {"\n{{if 1}}{{with secret \"a\"}}{{end}}{{end}}", -ERR_UNSUPPORTED,
     "template: t:2: function \"secret\" asks Vault: use nomadVar"},
    {"{{service \"a\"}}", -ERR_UNSUPPORTED,
     "function \"service\" asks Consul: use nomadService, with services of provider \"nomad\""},
    {"{{keyOrDefault \"a\" \"b\"}}", -ERR_UNSUPPORTED, "asks Consul"},
    {"{{sprig_genCA \"a\" 1}}", -ERR_UNSUPPORTED, "gives another text each time"},
    {"{{sprig_toDate \"a\" \"b\"}}", -ERR_UNSUPPORTED, "use timestamp"},
};

START_TEST(refuse_by_name)
{
    static const struct template_grammar g = {.name = "t", .table = TEMPLATE_TASK};
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct err e = ERR_INIT;
        auto_mem void *ctx = mem_ctx("test");
        struct template_tree *tree;
        int rc =
            template_parse(ctx, &g, SLICE(refused[i].text, strlen(refused[i].text)), &tree, &e);
        ck_assert_msg(rc == refused[i].code && strstr(e.text, refused[i].words), "%s: %s",
                      refused[i].text, e.text);
    }
}
END_TEST

START_TEST(deny_by_pattern)
{
    auto_mem void *ctx = mem_ctx("test");
    static const char text[] = "{{sprig_upper \"a\"}}";
    struct template_grammar g = {.name = "t",
                                 .table = TEMPLATE_TASK,
                                 .left = "<<",
                                 .right = ">>",
                                 .denied = (const char *const[]){"sprig_*", NULL}};
    struct template_tree *t;
    struct template_result res;
    struct err e = ERR_INIT;
    auto_buf struct buf out = BUF_INIT(1 << 20);
    ck_assert_int_eq(template_parse(ctx, &g, SLICE(text, strlen(text)), &t, &e), 0);
    ck_assert_int_eq(
        template_exec(ctx, &(struct template_input){t, NULL, NULL, NULL}, &out, &res, &e), 0);
    ck_assert_str_eq(buf_str(&out), text); /* other delimiters */
    g.left = g.right = NULL;
    ck_assert_int_eq(template_parse(ctx, &g, SLICE(text, strlen(text)), &t, &e), 0);
    ck_assert_int_eq(
        template_exec(ctx, &(struct template_input){t, NULL, NULL, NULL}, &out, &res, &e),
        -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(e.text, "error calling sprig_upper: function is disabled"));
}
END_TEST

TEST_SUITE_TIMEOUT("template limits", 60, nest_100_000_times, end_at_a_limit,
                   stop_when_the_caller_says, tell_what_is_missing, pass_on_mistakes_of_the_caller,
                   take_odd_answers, refuse_by_name, deny_by_pattern)
