/* SPDX-License-Identifier: Apache-2.0
 *
 * Carries a template out: a walk over its tree. exec_walk() writes, eval_X() have a value. The
 * place that a mistake names is r->node, which is set where Go sets it. The order is from
 * arguments to commands, pipelines and nodes; the entry is template_exec().
 */
#include <string.h>

#include "common/mem.h"
#include "template/convert.h"
#include "template/fmt.h"
#include "template/funcs.h"
#include "template/limits.h"
#include "template/node.h"
#include "template/run.h"

/* Distinct from all values: nothing came through the pipe. */
static const struct gv_type no_final = {GV_INVALID, 0, "none", NULL, NULL, NULL, false};
#define NO_FINAL ((struct gv){.t = &no_final})

/* The arguments of a command; args[0] is the word itself. */
struct call_args {
    struct node *const *v;
    size_t n;
    struct gv final;
};
#define NO_ARGS ((struct call_args){NULL, 0, NO_FINAL})

static struct gv eval_pipeline(struct run *r, struct gv dot, const struct node *pipe);
static struct gv eval_arg(struct run *r, struct gv dot, const struct gv_type *type,
                          const struct node *n);

static const char *
node_words(struct run *r, const struct node *n)
{
    struct buf b = BUF_INIT(2 * ERR_TEXT_MAX);
    node_write(&b, n, ERR_TEXT_MAX);
    r->memory_max += 4 * ERR_TEXT_MAX;
    r->steps += 1;
    const char *words = run_dup(r, buf_str(&b), b.len);
    buf_done(&b);
    return words;
}

static bool
has_final(struct gv v)
{
    return v.t != &no_final;
}

/* --- variables --- */

static void
var_push(struct run *r, const char *name, struct gv v)
{
    if (r->n_vars == r->cap_vars) {
        struct run_var *more = run_bytes(r, (2 * r->cap_vars + 16) * sizeof(*more));
        if (r->n_vars)
            memcpy(more, r->vars, r->n_vars * sizeof(*more));
        r->vars = more;
        r->cap_vars = 2 * r->cap_vars + 16;
    }
    r->vars[r->n_vars++] = (struct run_var){name, v};
}

static struct run_var *
var_find(struct run *r, const char *name)
{
    run_step(r, (r->n_vars - r->first_var) / 16);
    for (size_t i = r->n_vars; i > r->first_var; i--)
        if (strcmp(r->vars[i - 1].name, name) == 0)
            return &r->vars[i - 1];
    run_fail(r, "undefined variable: %s", name);
}

/* --- types --- */

static bool
can_be_nil(const struct gv_type *t)
{
    return t->kind == GV_NIL || t->kind == GV_VALUE || t->kind == GV_LIST || t->kind == GV_MAP ||
           t->kind == GV_STRUCT;
}

static bool
is_assignable(const struct gv_type *from, const struct gv_type *to)
{
    if (from == to || to->kind == GV_NIL || to->kind == GV_VALUE)
        return true;
    bool same = from->kind == to->kind && (from->kind == GV_LIST || from->kind == GV_MAP);
    return same && from->elem == to->elem && from->key == to->key && !from->pointer && !to->class;
}

static struct gv
validate_type(struct run *r, struct gv v, const struct gv_type *type)
{
    if (!v.t) {
        if (!can_be_nil(type))
            run_fail(r, "invalid value; expected %s", type->name);
        return gv_zero(type);
    }
    if (!is_assignable(v.t, type))
        run_fail(r, "wrong type for value; expected %s; got %s", type->name, gv_type_name(v));
    return v;
}

static struct gv
ideal_constant(struct run *r, const struct node *n)
{
    r->node = n;
    if (!n->v.t)
        run_fail(r, "%.*s overflows int", (int)n->s.n, (const char *)n->s.p);
    return n->v;
}

/* --- calls --- */

static const struct gv_type *
param_type(const char *params, size_t n_params, bool variadic, size_t i)
{
    return function_type(variadic && i >= n_params - 1 ? params[n_params - 1] : params[i]);
}

static struct gv
eval_junction(struct run *r, struct gv dot, const struct function *f, const struct call_args *args)
{
    struct gv v = GV_NONE;
    for (size_t i = 1; i < args->n; i++) {
        v = eval_arg(r, dot, &gv_value, args->v[i]);
        if (gv_truth(v) == (f->special == FUNCTION_OR))
            return v;
    }
    return has_final(args->final) ? args->final : v;
}

static void
call_nothing(struct run *r, const struct node *node, const struct call_args *args,
             const struct gv *v)
{
    const char *name = args->n > 1 ? node_words(r, args->v[1]) : fmt_words(r, v[0]);
    r->node = node;
    r->call = "call";
    if (gv_none(v[0]))
        run_fail(r, "call of nil");
    run_fail(r, "non-function %s of type %s", name, gv_type_name(v[0]));
}

/* Calls f, whose first argument is *self if there is one. */
static struct gv
eval_call(struct run *r, struct gv dot, const struct function *f, const struct gv *self,
          const struct node *node, const struct call_args *args)
{
    size_t n_params = strlen(f->params), given = args->n > 0 ? args->n - 1 : 0;
    bool variadic = n_params > 0 && f->params[n_params - 1] == '.';
    n_params -= variadic;
    size_t fixed = variadic ? n_params - 1 : n_params, n = given + has_final(args->final);
    if (variadic && n < fixed)
        run_fail(r, "wrong number of args for %s: want at least %zu got %zu", f->name, fixed,
                 given);
    if (!variadic && n != n_params)
        run_fail(r, "wrong number of args for %s: want %zu got %zu", f->name, n_params, n);
    if (f->special == FUNCTION_AND || f->special == FUNCTION_OR)
        return eval_junction(r, dot, f, args);
    struct gv *v = run_alloc(r, (n + 2) * sizeof(*v));
    size_t first = self != NULL;
    if (self)
        v[0] = *self;
    for (size_t i = 0; i < given; i++)
        v[first + i] =
            eval_arg(r, dot, param_type(f->params, n_params, variadic, i), args->v[i + 1]);
    if (has_final(args->final))
        v[first + given] =
            validate_type(r, args->final, param_type(f->params, n_params, variadic, n - 1));
    if (f->special == FUNCTION_CALL)
        call_nothing(r, node, args, v);
    const struct node *at = r->node;
    const char *call = r->call;
    r->node = node;
    r->call = f->name;
    struct gv ret = f->fn(r, v, n + first);
    r->node = at;
    r->call = call;
    return ret;
}

static struct gv
call_method(struct run *r, struct gv dot, const struct gv_method *m, struct gv self,
            const struct node *node, const struct call_args *args)
{
    struct function f = {m->name, m->fn, m->params, FUNCTION_PLAIN};
    if (self.t->pointer && gv_is_nil(self)) {
        r->node = node;
        r->call = m->name;
        run_fail(r, "value method %s.%s called using nil *%s pointer", self.t->name + 1, m->name,
                 strrchr(self.t->name, '.') + 1);
    }
    return eval_call(r, dot, &f, &self, node, args);
}

/* --- fields --- */

static struct gv
map_field(struct run *r, const char *name, struct gv map, bool has_args)
{
    if (has_args)
        run_fail(r, "%s is not a method but has arguments", name);
    struct gv *v = gv_map_text(map, name);
    if (v)
        return gv_box(*v, map.t->elem);
    if (r->missing_key == MISSING_ERROR)
        run_fail(r, "map has no entry for key \"%s\"", name);
    return r->missing_key == MISSING_ZERO ? gv_zero(map.t->elem) : GV_NONE;
}

static const char *
static_type(struct gv v)
{
    return v.boxed ? gv_any.name : v.t->name;
}

static struct gv
struct_field(struct run *r, const char *name, struct gv v, bool has_args)
{
    const char *const *fields = v.t->class->fields;
    size_t i = 0;
    while (fields[i] && strcmp(fields[i], name) != 0)
        i++;
    if (!fields[i])
        run_fail(r, "can't evaluate field %s in type %s", name, static_type(v));
    if (v.obj == NULL && !v.t->pointer)
        return GV_LIT("");
    if (v.obj && name[0] >= 'a' && name[0] <= 'z')
        run_fail(r, "%s is an unexported field of struct type %s", name, static_type(v));
    if (v.obj == NULL)
        run_fail(r, "nil pointer evaluating %s.%s", static_type(v), name);
    if (has_args)
        run_fail(r, "%s has arguments but cannot be invoked as function", name);
    return v.obj->f[i];
}

static struct gv
eval_field(struct run *r, struct gv dot, const char *name, const struct node *node,
           const struct call_args *args, struct gv receiver)
{
    if (!receiver.t) {
        if (r->missing_key == MISSING_ERROR)
            run_fail(r, "nil data; no entry for key \"%s\"", name);
        return GV_NONE;
    }
    if (gv_kind(receiver) == GV_NIL)
        run_fail(r, "nil pointer evaluating %s.%s", gv_type_name(receiver), name);
    const struct gv_class *class = receiver.t->class;
    for (size_t i = 0; class && i < class->n_methods; i++)
        if (strcmp(class->methods[i].name, name) == 0)
            return call_method(r, dot, &class->methods[i], receiver, node, args);
    bool has_args = args->n > 1 || has_final(args->final);
    if (gv_kind(receiver) == GV_STRUCT)
        return struct_field(r, name, receiver, has_args);
    bool map = gv_kind(receiver) == GV_MAP &&
               (receiver.t->key == &gv_string || receiver.t->key == &gv_any);
    if (map && receiver.t->pointer && gv_is_nil(receiver))
        run_fail(r, "nil pointer evaluating %s.%s", receiver.t->name, name);
    if (map)
        return map_field(r, name, receiver, has_args);
    run_fail(r, "can't evaluate field %s in type %s", name, static_type(receiver));
}

/* Follows names from the first-th on. */
static struct gv
eval_fields(struct run *r, struct gv dot, struct gv receiver, const struct node *node, size_t first,
            const struct call_args *args)
{
    for (size_t i = first; i + 1 < node->n_names; i++)
        receiver = eval_field(r, dot, node->name[i], node, &NO_ARGS, receiver);
    return eval_field(r, dot, node->name[node->n_names - 1], node, args, receiver);
}

static void
refuse_args(struct run *r, const struct node *word, const struct call_args *args)
{
    if (args->n > 1 || has_final(args->final))
        run_fail(r, "can't give argument to non-function %s", node_words(r, word));
}

static struct gv
eval_variable(struct run *r, struct gv dot, const struct node *n, const struct call_args *args)
{
    r->node = n;
    struct gv v = var_find(r, n->name[0])->v;
    if (n->n_names > 1)
        return eval_fields(r, dot, v, n, 1, args);
    refuse_args(r, n, args);
    return v;
}

static struct gv
eval_chain(struct run *r, struct gv dot, const struct node *n, const struct call_args *args)
{
    r->node = n;
    if (n->pipe->kind == NODE_NIL)
        run_fail(r, "indirection through explicit nil in %s", node_words(r, n));
    return eval_fields(r, dot, eval_arg(r, dot, &gv_value, n->pipe), n, 0, args);
}

static struct gv
eval_function(struct run *r, struct gv dot, const struct node *ident, const struct node *node,
              const struct call_args *args)
{
    r->node = ident;
    return eval_call(r, dot, ident->fn, NULL, node, args);
}

/* --- arguments --- */

/* A constant as an argument of the type of a parameter. */
static struct gv
eval_constant(struct run *r, const struct gv_type *type, const struct node *n)
{
    bool number = n->kind == NODE_NUMBER;
    switch (type->kind) {
    case GV_BOOL:
        if (n->kind == NODE_BOOL)
            return n->v;
        run_fail(r, "expected bool; found %s", node_words(r, n));
    case GV_STRING:
        if (n->kind == NODE_STRING)
            return n->v;
        run_fail(r, "expected string; found %s", node_words(r, n));
    case GV_INT:
        if (number && (n->forms & NUMBER_INT))
            return (struct gv){.t = type, .i = n->i};
        run_fail(r, "expected integer; found %s", node_words(r, n));
    case GV_UINT:
        if (number && (n->forms & NUMBER_UINT))
            return (struct gv){.t = type, .u = n->u};
        run_fail(r, "expected unsigned integer; found %s", node_words(r, n));
    case GV_FLOAT:
        if (number && (n->forms & NUMBER_FLOAT))
            return GV_REAL(n->f);
        run_fail(r, "expected float; found %s", node_words(r, n));
    case GV_NIL:
    case GV_VALUE:
        return number ? ideal_constant(r, n) : n->v;
    default:
        run_fail(r, "can't handle %s for arg of type %s", node_words(r, n), type->name);
    }
}

static struct gv
eval_arg(struct run *r, struct gv dot, const struct gv_type *type, const struct node *n)
{
    struct gv v;
    run_enter(r);
    r->node = n;
    switch (n->kind) {
    case NODE_DOT:
        v = dot;
        break;
    case NODE_NIL:
        if (!can_be_nil(type))
            run_fail(r, "cannot assign nil to %s", type->name);
        run_leave(r);
        return gv_zero(type);
    case NODE_FIELD:
        v = eval_fields(r, dot, dot, n, 0, &NO_ARGS);
        break;
    case NODE_VARIABLE:
        v = eval_variable(r, dot, n, &NO_ARGS);
        break;
    case NODE_PIPE:
        v = eval_pipeline(r, dot, n);
        break;
    case NODE_IDENT:
        v = eval_function(r, dot, n, n, &NO_ARGS);
        break;
    case NODE_CHAIN:
        v = eval_chain(r, dot, n, &NO_ARGS);
        break;
    default:
        run_leave(r);
        return eval_constant(r, type, n);
    }
    run_leave(r);
    return validate_type(r, v, type);
}

/* --- commands --- */

static struct gv
eval_command(struct run *r, struct gv dot, const struct node *cmd, struct gv final)
{
    const struct node *word = cmd->kid[0];
    struct call_args args = {cmd->kid, cmd->n_kids, final};
    switch (word->kind) {
    case NODE_FIELD:
        r->node = word;
        return eval_fields(r, dot, dot, word, 0, &args);
    case NODE_CHAIN:
        return eval_chain(r, dot, word, &args);
    case NODE_IDENT:
        return eval_function(r, dot, word, cmd, &args);
    case NODE_PIPE:
        refuse_args(r, word, &args);
        return eval_pipeline(r, dot, word);
    case NODE_VARIABLE:
        return eval_variable(r, dot, word, &args);
    default:
        break;
    }
    r->node = word;
    refuse_args(r, word, &args);
    if (word->kind == NODE_DOT)
        return dot;
    if (word->kind == NODE_NIL)
        run_fail(r, "nil is not a command");
    return word->kind == NODE_NUMBER ? ideal_constant(r, word) : word->v;
}

static struct gv
eval_pipeline(struct run *r, struct gv dot, const struct node *pipe)
{
    struct gv v = NO_FINAL;
    if (!pipe)
        return GV_NONE;
    run_enter(r);
    r->node = pipe;
    for (size_t i = 0; i < pipe->n_kids; i++) {
        v = eval_command(r, dot, pipe->kid[i], v);
        v.boxed = false;
        if (gv_kind(v) == GV_NIL)
            v = GV_NONE;
    }
    for (size_t i = 0; i < pipe->n_names; i++) {
        if (pipe->assign)
            var_find(r, pipe->name[i])->v = v;
        else
            var_push(r, pipe->name[i], v);
    }
    run_leave(r);
    return v;
}

/* --- nodes --- */

enum walk { WALK_ON, WALK_BREAK, WALK_CONTINUE };

static enum walk exec_walk(struct run *r, struct gv dot, const struct node *n);

static enum walk
walk_branch(struct run *r, struct gv dot, const struct node *n)
{
    size_t mark = r->n_vars;
    enum walk w = WALK_ON;
    struct gv v = eval_pipeline(r, dot, n->pipe);
    if (gv_truth(v))
        w = exec_walk(r, n->kind == NODE_WITH ? v : dot, n->list);
    else if (n->other)
        w = exec_walk(r, dot, n->other);
    r->n_vars = mark;
    return w;
}

/* Takes a turn of a range; false: it was the last. */
static bool
walk_turn(struct run *r, const struct node *n, struct gv index, struct gv elem)
{
    const struct node *p = n->pipe;
    size_t mark = r->n_vars;
    run_step(r, 1);
    if (p->assign) {
        if (p->n_names > 0)
            var_find(r, p->name[0])->v = p->n_names > 1 ? index : elem;
        if (p->n_names > 1)
            var_find(r, p->name[1])->v = elem;
    } else {
        if (p->n_names > 0)
            r->vars[r->n_vars - 1].v = elem;
        if (p->n_names > 1)
            r->vars[r->n_vars - 2].v = index;
    }
    bool on = exec_walk(r, elem, n->list) != WALK_BREAK;
    r->n_vars = mark;
    return on;
}

static bool
range_map(struct run *r, const struct node *n, struct gv v)
{
    size_t count = gv_len(v);
    struct gv_pair *p = run_bytes(r, count * sizeof(*p));
    if (count)
        memcpy(p, v.map->v, count * sizeof(*p));
    for (size_t i = 0; i < count; i++)
        if (!walk_turn(r, n, gv_box(p[i].k, v.t->key), gv_box(p[i].v, v.t->elem)))
            break;
    return count > 0;
}

static bool
range_count(struct run *r, const struct node *n, struct gv v)
{
    if (gv_kind(v) != GV_CHAN) {
        if (n->pipe->n_names > 1)
            run_fail(r, "can't use %s to iterate over more than one variable", fmt_words(r, v));
        bool is_signed = gv_kind(v) == GV_INT;
        for (uint64_t i = 0; is_signed ? (int64_t)i < v.i : i < v.u; i++)
            if (!walk_turn(r, n, GV_NONE, (struct gv){.t = v.t, .u = i}))
                break;
        return is_signed ? v.i > 0 : v.u > 0;
    }
    for (int64_t i = v.from; i < v.to; i++)
        if (!walk_turn(r, n, GV_INTEGER(i - v.from), GV_LONG(i)))
            break;
    return v.from < v.to;
}

static enum walk
walk_range(struct run *r, struct gv dot, const struct node *n)
{
    size_t mark = r->n_vars;
    enum walk w = WALK_ON;
    bool some = false;
    struct gv v = eval_pipeline(r, dot, n->pipe);
    switch (gv_kind(v)) {
    case GV_INT:
    case GV_UINT:
    case GV_CHAN:
        some = range_count(r, n, v);
        break;
    case GV_LIST:
        some = gv_len(v) > 0;
        for (size_t i = 0; i < gv_len(v); i++)
            if (!walk_turn(r, n, GV_INTEGER(i), gv_box(v.list->v[i], v.t->elem)))
                break;
        break;
    case GV_MAP:
        if (v.t->pointer && gv_is_nil(v))
            run_fail(r, "range can't iterate over %s", fmt_words(r, v));
        some = range_map(r, n, v);
        break;
    case GV_INVALID:
        break;
    default:
        run_fail(r, "range can't iterate over %s", fmt_words(r, v));
    }
    if (!some && n->other)
        w = exec_walk(r, dot, n->other);
    r->n_vars = mark;
    return w;
}

/* The root of a template, with `$` and the dot of its own. */
static void
walk_root(struct run *r, const struct node_template *t, struct gv data)
{
    const struct node_template *tmpl = r->tmpl;
    size_t first = r->first_var, mark = r->n_vars;
    r->first_var = mark;
    r->tmpl = t;
    var_push(r, "$", data);
    exec_walk(r, data, t->root);
    r->n_vars = mark;
    r->first_var = first;
    r->tmpl = tmpl;
}

static void
walk_template(struct run *r, struct gv dot, const struct node *n)
{
    run_step(r, r->tree->n_templates / 16);
    const struct node_template *t = node_template_find(r->tree, n->v.s, n->v.n);
    if (!t)
        run_fail(r, "template %.*s not defined", (int)n->s.n, (const char *)n->s.p);
    if (r->depth == r->depth_max)
        run_fail(r, "exceeded maximum template depth (%u)", r->depth_max);
    dot = eval_pipeline(r, dot, n->pipe);
    r->depth++;
    walk_root(r, t, dot);
    r->depth--;
}

static void
print_value(struct run *r, const struct node *n, struct gv v)
{
    r->node = n;
    if (gv_kind(v) == GV_CHAN)
        run_fail(r, "can't print %s of type %s", node_words(r, n), v.t->name);
    if (!v.t)
        text_puts(r, r->out, "<no value>");
    else if (gv_kind(v) == GV_MAP && v.t->pointer && v.map)
        fmt_put(r, r->out, (struct gv){.t = v.t->elem ? &gv_map_any : v.t, .map = v.map});
    else
        fmt_put(r, r->out, v);
}

static enum walk
exec_walk(struct run *r, struct gv dot, const struct node *n)
{
    enum walk w = WALK_ON;
    struct gv v;
    run_enter(r);
    r->node = n;
    switch (n->kind) {
    case NODE_LIST:
        for (size_t i = 0; i < n->n_kids && w == WALK_ON; i++)
            w = exec_walk(r, dot, n->kid[i]);
        break;
    case NODE_TEXT:
        text_put(r, r->out, n->s.p, n->s.n);
        break;
    case NODE_ACTION:
        v = eval_pipeline(r, dot, n->pipe);
        if (n->pipe->n_names == 0)
            print_value(r, n, v);
        break;
    case NODE_IF:
    case NODE_WITH:
        w = walk_branch(r, dot, n);
        break;
    case NODE_RANGE:
        w = walk_range(r, dot, n);
        break;
    case NODE_TEMPLATE:
        walk_template(r, dot, n);
        break;
    default:
        w = n->kind == NODE_BREAK ? WALK_BREAK : WALK_CONTINUE;
    }
    run_leave(r);
    return w;
}

/* For executeTemplate: its text is the result. */
static struct gv
exec_template(struct run *r, const char *name, size_t n, struct gv data)
{
    const struct node_template *t = node_template_find(r->tree, name, n);
    if (!t) {
        struct text words = {NULL, 0, 0};
        text_quote(r, &words, name, n);
        run_fail(r, "template: no template %s associated with template \"%s\"", text_str(r, &words),
                 r->tree->name);
    }
    struct run_frame f = {r->frame, r->tmpl, r->node, r->call};
    struct text text = {NULL, 0, 0}, *out = r->out;
    run_enter(r);
    r->frame = &f;
    r->call = NULL;
    r->out = &text;
    walk_root(r, t, data);
    r->out = out;
    r->call = f.call;
    r->node = f.node;
    r->frame = f.up;
    run_leave(r);
    return text_gv(&text);
}

/* --- a run --- */

static int
exec_guarded(struct run *r, const struct template_input *in)
{
    if (setjmp(r->out_of))
        return r->code;
    r->tree = in->tree;
    r->tmpl = in->tree->main;
    r->node = r->tmpl->root;
    struct gv data =
        convert_value(r, in->data, in->tree->table == TEMPLATE_CLI ? CONVERT_CLI : CONVERT_API);
    walk_root(r, r->tmpl, data);
    return 0;
}

int
template_exec(const void *ctx, const struct template_input *in, struct buf *out,
              struct template_result *res, struct err *e)
{
    struct run r = {.env = in->env, .res = res, .res_ctx = ctx};
    struct text text = {NULL, 0, 0};
    bool strict = in->env && in->env->error_on_missing_key;
    *res = (struct template_result){{NULL, 0}, {NULL, 0}};
    run_init(&r, ctx, in->limits, e);
    r.carry_out = exec_template;
    r.out = &text;
    r.missing_key = in->tree->table == TEMPLATE_CLI ? MISSING_INVALID
                    : strict                        ? MISSING_ERROR
                                                    : MISSING_ZERO;
    int rc = exec_guarded(&r, in);
    buf_put(out, text.s, text.n);
    run_done(&r);
    if (rc == 0 && buf_error(out))
        rc = err_set(e, -ERR_LIMIT, "template: gives more than %zu bytes", out->max);
    return rc;
}
