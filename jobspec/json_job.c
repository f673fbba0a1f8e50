/* SPDX-License-Identifier: Apache-2.0
 *
 * The top of a job file in the JSON form of HCL: its members as the blocks that they stand for.
 * What is below is the decoder's to know.
 */
#include <string.h>

#include "common/mem.h"
#include "jobspec/parse.h"

static void
add_block(const void *ctx, struct hcl_body *body, struct block *b)
{
    if ((body->n_blocks & (body->n_blocks - 1)) == 0)
        mem_resize(ctx, body->blocks, struct block *, body->n_blocks > 0 ? body->n_blocks * 2 : 1);
    body->blocks[body->n_blocks++] = b;
}

static bool
object_block(const void *ctx, struct hcl_body *to, const struct attr *a, const struct label *label,
             const struct expr *e, struct hcl_sink *sink)
{
    if (e->kind == EX_TUPLE) {
        for (size_t i = 0; i < e->n; i++)
            if (!object_block(ctx, to, a, label, e->list[i], sink))
                return false;
        return true;
    }
    if (e->kind != EX_OBJECT) {
        diag_error(sink, &e->r, "Incorrect JSON value type",
                   "An object is needed for a block \"%s\".", a->name);
        return false;
    }
    struct block *b = mem_new(ctx, struct block);
    b->type = a->name;
    b->type_r = b->r = a->name_r;
    if (label != NULL) {
        b->labels[0] = *label;
        b->n_labels = 1;
    }
    b->body = body_of_object(ctx, e, sink);
    if (b->body == NULL)
        return false;
    add_block(ctx, to, b);
    return true;
}

/* {"a": {...}, "b": {...}}, or a list of such: a block for each name. */
static bool
labelled_blocks(const void *ctx, struct hcl_body *to, const struct attr *a, const struct expr *e,
                struct hcl_sink *sink)
{
    if (e->kind == EX_TUPLE) {
        for (size_t i = 0; i < e->n; i++)
            if (!labelled_blocks(ctx, to, a, e->list[i], sink))
                return false;
        return true;
    }
    struct hcl_body *names = e->kind == EX_OBJECT ? body_of_object(ctx, e, sink) : NULL;
    if (e->kind != EX_OBJECT)
        diag_error(sink, &e->r, "Incorrect JSON value type",
                   "An object by names is needed for blocks \"%s\".", a->name);
    for (size_t i = 0; names != NULL && i < names->n_attrs; i++) {
        struct label l = {names->attrs[i]->name, names->attrs[i]->name_r};
        if (!object_block(ctx, to, a, &l, names->attrs[i]->expr, sink))
            return false;
    }
    return names != NULL;
}

/* A type is written as text, a validation as an object. */
static bool
fix_variable(const void *ctx, struct hcl_body *v, struct hcl_sink *sink)
{
    size_t n = v->n_attrs;
    v->n_attrs = 0;
    for (size_t i = 0; i < n; i++) {
        struct attr *a = v->attrs[i];
        if (strcmp(a->name, "validation") == 0) {
            if (!object_block(ctx, v, a, NULL, a->expr, sink))
                return false;
            continue;
        }
        const struct value *text = a->expr->kind == EX_LITERAL ? a->expr->value : NULL;
        if (strcmp(a->name, "type") == 0 && text != NULL && text->kind == VALUE_STRING) {
            struct hcl_source *src = mem_new(ctx, struct hcl_source);
            *src = (struct hcl_source){a->expr->r.src->name, text->str.s, text->str.n};
            if ((a->expr = parse_expression(ctx, src, sink)) == NULL)
                return false;
        }
        v->attrs[v->n_attrs++] = a;
    }
    return true;
}

bool
parse_json_job(const void *ctx, struct hcl_body *body, struct hcl_sink *sink)
{
    size_t n = body->n_attrs;
    body->n_attrs = 0;
    for (size_t i = 0; i < n; i++) {
        struct attr *a = body->attrs[i];
        size_t first = body->n_blocks;
        bool named = strcmp(a->name, "job") == 0 || strcmp(a->name, "variable") == 0;
        bool plain = strcmp(a->name, "variables") == 0 || strcmp(a->name, "locals") == 0;
        if (!named && !plain)
            body->attrs[body->n_attrs++] = a; /* told by who looks for the job */
        else if (!(named ? labelled_blocks(ctx, body, a, a->expr, sink)
                         : object_block(ctx, body, a, NULL, a->expr, sink)))
            return false;
        for (size_t k = first; k < body->n_blocks; k++)
            if (strcmp(a->name, "variable") == 0 && !fix_variable(ctx, body->blocks[k]->body, sink))
                return false;
    }
    return true;
}
