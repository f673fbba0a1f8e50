/* SPDX-License-Identifier: Apache-2.0 */
#include "template/node.h"

#include <string.h>

#include "codec/codec.h"
#include "common/err.h"
#include "template/rune.h"

const struct node_template *
node_template_find(const struct template_tree *t, const char *name, size_t n)
{
    for (const struct node_template *i = t->all; i; i = i->next)
        if (strlen(i->name) == n && memcmp(i->name, name, n) == 0)
            return i;
    return NULL;
}

bool
node_is_empty(const struct node *n)
{
    if (n->kind == NODE_TEXT) {
        const char *s = n->s.p;
        uint32_t c;
        for (size_t i = 0; i < n->s.n;) {
            i += rune_take(s + i, n->s.n - i, &c);
            if (!rune_space(c))
                return false;
        }
        return true;
    }
    for (size_t i = 0; n->kind == NODE_LIST && i < n->n_kids; i++)
        if (!node_is_empty(n->kid[i]))
            return false;
    return n->kind == NODE_LIST;
}

static void
write_names(struct buf *out, const struct node *n, const char *first, const char *between)
{
    for (size_t i = 0; i < n->n_names; i++) {
        buf_puts(out, i == 0 ? first : between);
        buf_puts(out, n->name[i]);
    }
}

static void
write_pipe(struct buf *out, const struct node *n, size_t max)
{
    write_names(out, n, "", ", ");
    if (n->n_names)
        buf_puts(out, n->assign ? " = " : " := ");
    for (size_t i = 0; i < n->n_kids; i++) {
        buf_puts(out, i ? " | " : "");
        node_write(out, n->kid[i], max);
    }
}

static void
write_nested(struct buf *out, const struct node *n, size_t max)
{
    buf_puts(out, n->kind == NODE_PIPE ? "(" : "");
    node_write(out, n, max);
    buf_puts(out, n->kind == NODE_PIPE ? ")" : "");
}

static void
write_branch(struct buf *out, const struct node *n, size_t max)
{
    buf_puts(out, n->kind == NODE_IF ? "{{if " : n->kind == NODE_WITH ? "{{with " : "{{range ");
    write_pipe(out, n->pipe, max);
    buf_puts(out, "}}");
    node_write(out, n->list, max);
    if (n->other) {
        buf_puts(out, "{{else}}");
        node_write(out, n->other, max);
    }
    buf_puts(out, "{{end}}");
}

void
node_write(struct buf *out, const struct node *n, size_t max)
{
    if (out->len > max)
        return;
    switch (n->kind) {
    case NODE_LIST:
    case NODE_COMMAND:
        for (size_t i = 0; i < n->n_kids; i++) {
            buf_puts(out, i && n->kind == NODE_COMMAND ? " " : "");
            n->kind == NODE_COMMAND ? write_nested(out, n->kid[i], max)
                                    : node_write(out, n->kid[i], max);
        }
        return;
    case NODE_ACTION:
        buf_puts(out, "{{");
        write_pipe(out, n->pipe, max);
        buf_puts(out, "}}");
        return;
    case NODE_PIPE:
        write_pipe(out, n, max);
        return;
    case NODE_FIELD:
        write_names(out, n, ".", ".");
        return;
    case NODE_VARIABLE:
        write_names(out, n, "", ".");
        return;
    case NODE_CHAIN:
        write_nested(out, n->pipe, max);
        write_names(out, n, ".", ".");
        return;
    case NODE_IF:
    case NODE_WITH:
    case NODE_RANGE:
        write_branch(out, n, max);
        return;
    case NODE_TEMPLATE:
        buf_puts(out, "{{template ");
        buf_put(out, n->s.p, n->s.n);
        if (n->pipe) {
            buf_putc(out, ' ');
            write_pipe(out, n->pipe, max);
        }
        buf_puts(out, "}}");
        return;
    default:
        buf_put(out, n->s.p, n->s.n);
    }
}
