/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/jobspec/help.h"

#include <stdio.h>
#include <string.h>

#include "common/str.h"
#include "jobspec/func/json.h"

static void *
parse(const void *ctx, struct hcl_sink *sink, const char *text)
{
    struct hcl_source *src = mem_new(ctx, struct hcl_source);
    *src = (struct hcl_source){"x", text, strlen(text)};
    return parse_expression(ctx, src, sink);
}

static const char *
first_line(const void *ctx, const struct hcl_diags *d)
{
    const char *s = d->n > 0 ? d->v[0].text : "";
    return mem_strndup(ctx, s, strcspn(s, "\n"));
}

const char *
help_eval(const void *ctx, const char *text)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_sink sink = {ctx, &d};
    struct hcl_eval ev;
    ev_init(&ev, ctx, &sink, 0);
    ev.vars = ev_expr(&ev, NULL,
                      parse(ctx, &sink,
                            "{ s = \"text\", n = 3, l = [\"a\", \"b\", \"c\"], "
                            "m = { a = 1, b = 2 } }"));
    ev.locals = mem_array(ctx, struct hcl_local, 2);
    ev.locals[0] = (struct hcl_local){"one", parse(ctx, &sink, "1"), {0}, NULL, false};
    ev.locals[1] =
        (struct hcl_local){"loop", parse(ctx, &sink, "local.loop + 1"), {0}, NULL, false};
    ev.n_locals = 2;
    ev.names = true;
    ck_assert_uint_eq(d.n, 0);
    struct expr *e = parse(ctx, &sink, text);
    struct value *v = e != NULL ? ev_expr(&ev, NULL, e) : NULL;
    if (v == NULL) {
        ck_assert_uint_ge(d.errors, 1);
        return first_line(ctx, &d);
    }
    ck_assert_msg(d.n == 0, "a value and a diagnostic: %s", d.n > 0 ? d.v[0].text : "");
    auto_buf struct buf b = BUF_INIT(1 << 20);
    json_put_value(ctx, &b, v);
    return mem_strdup(ctx, buf_str(&b));
}

void
help_check(const struct help_row *rows, size_t n)
{
    unsigned bad = 0;
    for (size_t i = 0; i < n; i++) {
        auto_mem void *ctx = mem_ctx("row");
        const char *got = help_eval(ctx, rows[i].expr), *want = rows[i].want;
        bool ok = strcmp(got, want) == 0;
        if (*want == '!') {
            const char *text = strstr(got, ": ");
            ok = text != NULL && str_prefix(text + 2, want + 1);
        }
        if (!ok)
            fprintf(stderr, "%s\n  got  %s\n  want %s\n", rows[i].expr, got, want);
        bad += !ok;
    }
    ck_assert_msg(bad == 0, "%u of %zu rows", bad, n);
}

struct job *
help_job(const void *ctx, const char *text, const char **ret_text)
{
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct jobspec_input in = {.name = "j.hcl", .s = text, .n = strlen(text)};
    struct job *job = NULL;
    int r = jobspec_parse(ctx, &in, &job, &d);
    const char *t = hcl_diags_text(ctx, &d, r == 0);
    if (ret_text != NULL)
        *ret_text = t;
    else
        ck_assert_msg(r == 0, "%s", t);
    ck_assert((r == 0) == (d.errors == 0));
    return r == 0 ? job : NULL;
}

const char *
help_error(const void *ctx, const char *text)
{
    const char *t;
    help_job(ctx, text, &t);
    return mem_strndup(ctx, t, strcspn(t, "\n"));
}
