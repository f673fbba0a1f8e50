/* SPDX-License-Identifier: Apache-2.0
 *
 * Specifications of variables, in HCL and JSON, with what the command line lays over them; then how
 * variables are printed.
 */
#include "cli/var/var.h"

#include <inttypes.h>
#include <unistd.h>

#include "cli/format.h"
#include "cli/jobfile.h"
#include "common/duration.h"
#include "jobspec/hcl.h"

/* --- reading --- */

static bool
spec_text(struct cmd *c, const char *path, struct slice *ret)
{
    struct err e = ERR_INIT;
    char *s = NULL;
    size_t n = 0;

    if (jobfile_read(c, path, &s, &n, &e) < 0) {
        cmd_fail(c, "Failed to read \"%s\": %s", path, e.text);
        return false;
    }
    *ret = SLICE(s, n);
    return true;
}

static struct variable_spec *
spec_hcl(struct cmd *c, const char *name, struct slice text)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_body *body;
    void *obj = NULL;

    if (hcl_parse(c, name, text, 0, &body, &d) == 0 &&
        hcl_decode(c, body, &type_variable_spec, 0, &obj, &d) == 0)
        return obj;
    cmd_fail(c, "Failed to parse variable data: %s", hcl_diags_text(c, &d, false));
    return NULL;
}

static struct variable_spec *
spec_json(struct cmd *c, struct slice text)
{
    struct err e = ERR_INIT;
    void *obj = NULL;

    if (json_decode(c, &type_variable_spec, text, BUDGET(CLI_ANSWER_MAX), &obj, &e) == 0 && obj)
        return obj;
    cmd_fail(c, "Failed to parse variable data: %s", e.code ? e.text : "no variable");
    return NULL;
}

static struct variable_spec *
spec_file(struct cmd *c, const char *path, const char *in)
{
    struct slice text;
    bool known = str_suffix(path, ".hcl") || str_suffix(path, ".json");
    bool hcl = known ? str_suffix(path, ".hcl") : str_eq(in, "hcl");

    if (!known && in && !str_eq(in, "hcl") && !str_eq(in, "json")) {
        cmd_fail(c, "Invalid value for \"-in\"; valid values are [hcl, json]");
        return NULL;
    }
    if (!spec_text(c, path, &text))
        return NULL;
    return hcl ? spec_hcl(c, str_eq(path, "-") ? "<stdin>" : path, text) : spec_json(c, text);
}

/* "key=value"; of "key=@file" and "key=-" the text as it is. */
static bool
spec_item(struct cmd *c, struct variable_spec *s, const char *arg)
{
    const char *eq = strchr(arg, '='), *value = eq ? eq + 1 : NULL;
    struct slice text;

    if (!eq || eq == arg) {
        cmd_fail(c, "failed to parse item \"%s\": write key=value", arg);
        return false;
    }
    if (value[0] == '@' || str_eq(value, "-")) {
        if (!spec_text(c, value[0] == '@' ? value + 1 : value, &text))
            return false;
        value = mem_strndup(c, text.p, text.n);
    } else if (value[0] == '\\' && value[1] == '@') {
        value++;
    }
    str_map_set(c, &s->items, mem_strndup(c, arg, (size_t)(eq - arg)), value);
    return true;
}

struct variable_spec *
var_spec_read(struct cmd *c, const char *in, size_t n_args)
{
    const char *first = c->args[0], *path = NULL;
    struct variable_spec *s = NULL;
    size_t at = 1;

    if (first[0] != '@' && !str_eq(first, "-"))
        path = first;
    const char *file = !path ? first : n_args > 1 && !strchr(c->args[1], '=') ? c->args[1] : NULL;
    if (file) {
        if (!(s = spec_file(c, file[0] == '@' ? file + 1 : file, in)))
            return NULL;
        at += path != NULL;
    } else {
        s = type_new(c, &type_variable_spec);
    }
    s->path = path ? path : s->path;
    for (; at < n_args; at++)
        if (!spec_item(c, s, c->args[at]))
            return NULL;
    return s;
}

char *
var_target(struct cmd *c, const struct variable_spec *s, const char *param, const char *value)
{
    if (!c->namespace && !str_empty(s->namespace))
        c->namespace = s->namespace;
    /* slashes of a path stay as they are */
    char *target = mem_printf(c, "/v1/var/%s", str_or(s->path, ""));

    return param ? api_raw_target(c, mem_printf(c, "%s?%s=%s", target, param, value), NULL)
                 : api_raw_target(c, target, NULL);
}

int
var_conflict(struct cmd *c, uint64_t index, const struct variable *there)
{
    const char *at = there ? fmt_time(c, there->modify_time) : NULL;

    cmd_warn(c, "\nCheck-and-Set conflict\n");
    if (!there || there->modify_index == 0)
        return cmd_fail(c,
                        "    There is no such variable with index %" PRIu64
                        ", or another one holds its lock.",
                        index);
    return cmd_fail(c,
                    "    Your provided check-index (%" PRIu64
                    ") does not match the server-side index (%" PRIu64
                    "),\n    of %s. Say -force, or -check-index=%" PRIu64
                    " before the arguments, to go on.",
                    index, there->modify_index, str_or(at, "an unknown time"),
                    there->modify_index);
}

/* --- printing --- */

bool
var_out_check(struct cmd *c, struct var_out *o, const char *const *words, const char *people)
{
    auto_buf struct buf all = BUF_INIT(1024);

    if (!o->as)
        o->as = o->tmpl ? "go-template" : isatty(fileno(c->out)) ? people : "json";
    for (size_t i = 0; words[i]; i++) {
        if (str_eq(words[i], o->as)) {
            if (str_eq(o->as, "go-template") == (o->tmpl != NULL))
                return true;
            cmd_fail(c, "-out go-template and -template go together");
            return false;
        }
        buf_printf(&all, "%s%s", i ? ", " : "", words[i]);
    }
    cmd_fail(c, "Invalid value for \"-out\"; valid values are [%s]", buf_str(&all));
    return false;
}

static void
print_hcl(struct cmd *c, const struct variable *v)
{
    auto_buf struct buf b = BUF_INIT(CLI_ANSWER_MAX);

    buf_printf(&b, "namespace    = \"%s\"\npath         = \"%s\"\n", str_or(v->namespace, ""),
               str_or(v->path, ""));
    buf_printf(&b, "create_index = %" PRIu64 "  # Set by server\n", v->create_index);
    buf_printf(&b,
               "modify_index = %" PRIu64 "  # Set by server; consulted for check-and-set\n",
               v->modify_index);
    buf_printf(&b, "create_time  = %" PRId64 "  # Set by server\n", v->create_time);
    buf_printf(&b, "modify_time  = %" PRId64 "  # Set by server\n\nitems = {\n", v->modify_time);
    for (size_t i = 0; i < v->items.n; i++) {
        const char *text = str_or(v->items.v[i].v, "");
        buf_puts(&b, "  ");
        json_put_string(&b, v->items.v[i].k, strlen(v->items.v[i].k));
        buf_puts(&b, " = ");
        auto_buf struct buf quoted = BUF_INIT(CLI_ANSWER_MAX);
        json_put_string(&quoted, text, strlen(text));
        for (const char *s = buf_str(&quoted); *s; s++) { /* no template begins in it */
            if ((*s == '$' || *s == '%') && s[1] == '{')
                buf_putc(&b, *s);
            buf_putc(&b, *s);
        }
        buf_putc(&b, '\n');
    }
    buf_puts(&b, "}");
    cmd_say(c, "%s", buf_str(&b));
}

static void
print_table(struct cmd *c, const struct variable *v)
{
    struct table t;

    table_init(&t, c, 2);
    table_row(&t, "Namespace", v->namespace);
    table_row(&t, "Path", v->path);
    table_row(&t, "Create Time", fmt_time(c, v->create_time));
    if (v->create_time != v->modify_time)
        table_row(&t, "Modify Time", fmt_time(c, v->modify_time));
    table_row(&t, "Check Index", fmt_u64(c, v->modify_index));
    if (v->lock) {
        table_row(&t, "Lock ID", v->lock->id);
        table_row(&t, "Lock TTL", v->lock->ttl);
        table_row(&t, "Lock Delay", v->lock->lock_delay);
    }
    table_print_kv(&t);
    print_titled_map(c, "Items", &v->items);
}

int
var_print(struct cmd *c, const struct var_out *o, const struct variable *v)
{
    struct output as = {.json = str_eq(o->as, "json"), .tmpl = o->tmpl};
    int rc = 0;

    if (output_object(c, &as, &type_variable, v, &rc))
        return rc;
    if (str_eq(o->as, "hcl"))
        print_hcl(c, v);
    else if (str_eq(o->as, "table"))
        print_table(c, v);
    return 0;
}
