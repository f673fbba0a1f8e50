/* SPDX-License-Identifier: Apache-2.0 */
#include "template/template.h"

#include <string.h>

#include "common/mem.h"

int
template_render(struct buf *out, const char *text, const struct value *v, struct err *e)
{
    auto_mem void *ctx = mem_ctx("template");
    static const struct template_grammar g = {.name = "format", .table = TEMPLATE_CLI};
    struct template_tree *tree;
    struct template_result res;
    int rc = template_parse(ctx, &g, SLICE(text, strlen(text)), &tree, e);
    if (!rc)
        rc = template_exec(ctx, &(struct template_input){tree, v, NULL, NULL}, out, &res, e);
    return rc ? err_prefix(e, "Error formatting the data") : 0;
}
