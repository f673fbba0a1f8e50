/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates expressions of the job language, one a line of standard input, for the comparison with
 * another evaluator: a line of JSON each, or "error" and why.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "jobspec/func/json.h"
#include "jobspec/parse.h"

static void
evaluate(const char *line)
{
    auto_mem void *ctx = mem_ctx("line");
    struct hcl_diags d = HCL_DIAGS_INIT;
    struct hcl_sink sink = {.ctx = ctx, .d = &d};
    struct hcl_source src = {"x", line, strlen(line)};
    struct hcl_eval ev;
    ev_init(&ev, ctx, &sink, 0);
    const struct expr *e = parse_expression(ctx, &src, &sink);
    const struct value *v = e != NULL ? ev_expr(&ev, NULL, e) : NULL;
    if (v == NULL) {
        const char *why = hcl_diags_text(ctx, &d, false);
        printf("error %.*s\n", (int)strcspn(why, "\n"), why);
        return;
    }
    auto_buf struct buf b = BUF_INIT(16 << 20);
    json_put_value(ctx, &b, v);
    printf("%s\n", buf_str(&b));
}

int
main(void)
{
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        line[line[n - 1] == '\n' ? n - 1 : n] = '\0';
        evaluate(line);
    }
    free(line);
    return 0;
}
