/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding of bodies by field table. See decode.h. In this order: names and their errors; blocks;
 * attributes; the fields of a body in the order of the schema; `dynamic` blocks; bodies of free
 * form.
 *
 * Nothing here knows a type: what a job file has beyond its field tables comes in by the hooks of
 * decode.h. An error does not end the decoding, so that a file is told all of its errors; the
 * budget of the evaluator bounds both.
 */
#include "jobspec/decode.h"

#include <string.h>

#include "common/mem.h"
#include "jobspec/parse.h"

/* Decodes into obj, going on after errors. `r`: what is named when something is missing. False
 * after a diagnostic. */
static bool decode_body(struct decoder *dc, const struct hcl_body *body, const struct hcl_scope *sc,
                        const struct type *t, void *obj, const struct hcl_range *r);
typedef bool decode_each(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
                         void *arg);
/* Calls fn for each block with `dynamic` ones expanded; false when any call or the expansion fails.
 */
static bool decode_blocks(struct decoder *dc, const struct hcl_body *body,
                          const struct hcl_scope *sc, decode_each *fn, void *arg);
/* A body without schema: blocks in it become lists of maps. NULL after a diagnostic. */
static struct value *decode_value(struct decoder *dc, const struct hcl_body *body,
                                  const struct hcl_scope *sc);

enum { FIELDS_MAX = 128, NAMES_MAX = 200, COPY_COST = 1024 };

/* The state of one body while it is decoded. */
struct target {
    const struct type *t;
    void *obj;
    struct hcl_range r;
    bool seen[FIELDS_MAX]; /* by index of the field */
};

static bool
decode_loose(const struct decoder *dc)
{
    return (dc->flags & (HCL_LOOSE | HCL_JSON)) != 0;
}

static bool
refuse_later(struct decoder *dc, const struct hcl_range *r, const char *name)
{
    diag_error(dc->sink, r, "Not supported yet", "\"%s\" is not in this release: remove it.", name);
    return false;
}

/* An argument that may be there as long as its value is what holds anyway. */
static bool
refuse_value(struct decoder *dc, const struct hcl_range *r, const struct field *f)
{
    if (f->dflt == NULL)
        return refuse_later(dc, r, f->hcl);
    diag_error(dc->sink, r, "Not supported yet",
               "\"%s\" has no effect in this release: remove it. (Its default, %s, may be there.)",
               f->hcl, f->dflt);
    return false;
}

/* Counts the steps and bytes of a value that is to be decoded: it is walked and copied. */
static bool
decode_measure(struct decoder *dc, const struct hcl_range *r, const struct value *v)
{
    size_t steps = dc->ev->steps_left;
    return ev_measure(dc->ev, r, v) &&
           ev_charge(dc->ev, r, 0, (steps - dc->ev->steps_left) * COPY_COST);
}

/* --- names --- */

static bool
refuse_unknown(struct decoder *dc, const struct type *t, const struct hcl_range *r,
               const char *name, bool block)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (size_t i = 0; i < t->n_fields && n < NAMES_MAX; i++)
        if (t->fields[i].hcl != NULL && (t->fields[i].flags & (F_ATTR | F_BLOCK)) != 0)
            names[n++] = t->fields[i].hcl;
    const char *const *more =
        dc->hooks != NULL && dc->hooks->names != NULL ? dc->hooks->names(t) : NULL;
    for (; more != NULL && *more != NULL && n < NAMES_MAX; more++)
        names[n++] = *more;
    const char *hint = diag_suggest(dc->sink, name, names, n);
    if (block)
        diag_error(dc->sink, r, "Unsupported block type",
                   "Blocks of type \"%s\" are not expected here.%s", name, hint);
    else
        diag_error(dc->sink, r, "Unsupported argument",
                   "An argument named \"%s\" is not expected here.%s", name, hint);
    return false;
}

static const struct field *
find_field(const struct type *t, const char *name)
{
    const struct field *f = type_field_hcl(t, name);
    return f != NULL && (f->flags & (F_ATTR | F_BLOCK)) != 0 ? f : NULL;
}

static bool
check_later(struct decoder *dc, const struct field *f, const struct target *to,
            const struct hcl_range *r)
{
    if ((f->flags & F_DEPRECATED) != 0)
        diag_warn(dc->sink, r, "Deprecated argument", "\"%s\" has no effect.", f->hcl);
    if ((f->flags & F_LATER) == 0 || dc->later || decode_at_default(f, to->obj))
        return true;
    return refuse_value(dc, r, f);
}

/* --- blocks --- */

/* Appends to a list field of struct pointers. */
static void
decode_append(const void *ctx, void *list, void *elem)
{
    struct {
        void **v;
        size_t n;
    } l;
    memcpy(&l, list, sizeof(l));
    if ((l.n & (l.n - 1)) == 0)
        mem_resize(ctx, l.v, void *, l.n > 0 ? l.n * 2 : 1);
    l.v[l.n++] = elem;
    memcpy(list, &l, sizeof(l));
}

static size_t
count_labels(const struct type *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_fields; i++)
        n += (t->fields[i].flags & F_LABEL) != 0;
    return n;
}

static bool
set_labels(struct decoder *dc, const struct block *b, const struct type *t, void *obj)
{
    size_t need = count_labels(t), at = 0;
    if (b->n_labels != need) {
        if (b->n_labels < need)
            diag_error(dc->sink, &b->r, "Missing label",
                       "A block \"%s\" needs a name: %s \"name\" { ... }.", b->type, b->type);
        else
            diag_error(dc->sink, &b->labels[need].r, "Extraneous label",
                       "A block \"%s\" takes %zu label(s).", b->type, need);
        return false;
    }
    for (size_t i = 0; i < t->n_fields; i++) {
        const struct field *f = &t->fields[i];
        if ((f->flags & F_LABEL) == 0)
            continue;
        const struct label *l = &b->labels[at++];
        struct value *v = value_str(dc->ctx, l->s);
        if (!decode_set(dc, f, obj, v, &l->r))
            return false;
    }
    return true;
}

bool
decode_block(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
             const struct type *t, void *obj)
{
    bool ok = set_labels(dc, b, t, obj);
    return decode_body(dc, b->body, sc, t, obj, &b->r) && ok;
}

static bool
map_from_body(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
              const struct field *f, void *obj)
{
    bool ok = true;
    if (b->n_labels > 0) {
        diag_error(dc->sink, &b->labels[0].r, "Extraneous label", "\"%s\" takes no label.", f->hcl);
        return false;
    }
    for (size_t i = 0; i < b->body->n_attrs; i++) {
        const struct attr *a = b->body->attrs[i];
        struct value *v = ev_expr(dc->ev, sc, a->expr);
        ok = v != NULL && decode_measure(dc, &a->expr->r, v) &&
             decode_map_entry(dc, f, obj, a->name, v, &a->expr->r) && ok;
    }
    for (size_t i = 0; i < b->body->n_blocks; i++) {
        diag_error(dc->sink, &b->body->blocks[i]->r, "Unexpected block",
                   "\"%s\" holds only arguments: name = value.", f->hcl);
        ok = false;
    }
    return ok;
}

static bool
decode_duplicate(struct decoder *dc, const struct block *b)
{
    diag_error(dc->sink, &b->r, "Duplicate block", "Only one \"%s\" block is allowed here.",
               b->type);
    return false;
}

static bool
struct_from_block(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
                  const struct field *f, struct target *to)
{
    void *dst = (char *)to->obj + f->offset;
    void *sub = NULL;
    if (f->shape == FS_ONE) {
        memcpy(&sub, dst, sizeof(sub));
        if (sub != NULL && !decode_loose(dc))
            return decode_duplicate(dc, b);
    }
    if (sub == NULL)
        sub = type_new(dc->ctx, f->sub);
    bool ok = decode_block(dc, b, sc, f->sub, sub);
    if (f->shape == FS_ONE) {
        memcpy(dst, &sub, sizeof(sub));
    } else if (f->shape == FS_LIST) {
        decode_append(dc->ctx, dst, sub);
    } else if (b->n_labels > 0) {
        struct pair {
            const char *k;
            void *v;
        } *e = codec_map_put(dc->ctx, dst, sizeof(struct pair), b->labels[0].s);
        e->v = sub;
    }
    return ok;
}

/* In loose files a block that needs a label may hold one object per label instead. */
static bool decode_unlabelled(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
                              const struct field *f, struct target *to);

static bool
take_block(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
           const struct field *f, struct target *to)
{
    if ((f->flags & F_LATER) != 0 && !dc->later && (f->type == FT_VALUE || f->type == FT_STRUCT))
        return refuse_later(dc, &b->r, f->hcl);
    if (f->type == FT_VALUE && f->shape == FS_ONE) {
        if (to->seen[f - to->t->fields])
            return decode_duplicate(dc, b);
        to->seen[f - to->t->fields] = true;
        struct value *v = decode_value(dc, b->body, sc);
        return v != NULL && decode_measure(dc, &b->r, v) && decode_set(dc, f, to->obj, v, &b->r);
    }
    bool again = to->seen[f - to->t->fields];
    to->seen[f - to->t->fields] = true;
    if (f->type == FT_STRUCT) {
        if (decode_loose(dc) && b->n_labels == 0 && count_labels(f->sub) > 0)
            return decode_unlabelled(dc, b, sc, f, to);
        return struct_from_block(dc, b, sc, f, to);
    }
    if (again && !decode_loose(dc))
        return decode_duplicate(dc, b);
    return map_from_body(dc, b, sc, f, to->obj) && check_later(dc, f, to, &b->r);
}

static bool block_from_attr(struct decoder *dc, const struct attr *a, const struct hcl_scope *sc,
                            const struct field *f, struct target *to, const struct label *label);

static bool
decode_unlabelled(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
                  const struct field *f, struct target *to)
{
    bool ok = true;
    for (size_t i = 0; i < b->body->n_blocks; i++) {
        struct block in = *b->body->blocks[i];
        if (in.n_labels == 0) {
            in.labels[0] = (struct label){in.type, in.type_r};
            in.n_labels = 1;
            in.type = b->type;
        }
        ok = struct_from_block(dc, &in, sc, f, to) && ok;
    }
    for (size_t i = 0; i < b->body->n_attrs; i++) {
        const struct attr *a = b->body->attrs[i];
        struct label l = {a->name, a->name_r};
        ok = block_from_attr(dc, a, sc, f, to, &l) && ok;
    }
    return ok;
}

/* A block that is written as an object, or several as a list of objects. */
static bool
block_from_attr(struct decoder *dc, const struct attr *a, const struct hcl_scope *sc,
                const struct field *f, struct target *to, const struct label *label)
{
    const struct expr *e = a->expr;
    bool ok = true;
    if (e->kind == EX_TUPLE) {
        struct attr one = *a;
        for (size_t i = 0; i < e->n; i++) {
            one.expr = e->list[i];
            ok = block_from_attr(dc, &one, sc, f, to, label) && ok;
        }
        return ok;
    }
    if (e->kind == EX_LITERAL && e->value->kind == VALUE_NULL)
        return true;
    if (e->kind != EX_OBJECT) {
        diag_error(dc->sink, &e->r, "Incorrect value type",
                   "\"%s\" is a block: an object is needed.", a->name);
        return false;
    }
    struct block b = {.type = f->hcl, .type_r = a->name_r, .r = a->name_r};
    b.body = body_of_object(dc->ctx, e, dc->sink);
    if (b.body == NULL)
        return false;
    if (label != NULL) {
        b.labels[0] = *label;
        b.n_labels = 1;
        return struct_from_block(dc, &b, sc, f, to);
    }
    return take_block(dc, &b, sc, f, to);
}

/* --- attributes --- */

/* In loose files a map may be a list of maps. What is no such list comes back as it is. */
static struct value *
merge_maps(struct decoder *dc, struct value *list)
{
    struct value *out = value_map(dc->ctx);
    for (size_t i = 0; i < list->list.n; i++) {
        const struct value *m = list->list.v[i];
        if (m->kind != VALUE_MAP)
            return list;
        for (size_t k = 0; k < m->map.n; k++)
            value_map_set(out, m->map.v[k].k, m->map.v[k].v);
    }
    return out;
}

/* A block that only a hook knows, in JSON: one for each name where all members are objects. 0: none
 * is known by this name. */
static int
hooked_blocks(struct decoder *dc, const struct attr *a, const struct expr *e,
              const struct hcl_scope *sc, struct target *to)
{
    int all = 0;
    if (e->kind == EX_TUPLE) {
        for (size_t i = 0; i < e->n && all >= 0; i++)
            all = hooked_blocks(dc, a, e->list[i], sc, to);
        return all;
    }
    struct hcl_body *body = e->kind == EX_OBJECT ? body_of_object(dc->ctx, e, dc->sink) : NULL;
    if (body == NULL)
        return e->kind == EX_OBJECT ? -1 : 0;
    bool named = body->n_attrs > 0;
    for (size_t i = 0; i < body->n_attrs; i++)
        named = named && body->attrs[i]->expr->kind == EX_OBJECT;
    struct block b = {.type = a->name, .type_r = a->name_r, .r = a->name_r, .body = body};
    if (!named)
        return dc->hooks->block(dc, to->t, to->obj, &b, sc);
    for (size_t i = 0; i < body->n_attrs && all >= 0; i++) {
        b.labels[0] = (struct label){body->attrs[i]->name, body->attrs[i]->name_r};
        b.n_labels = 1;
        b.body = body_of_object(dc->ctx, body->attrs[i]->expr, dc->sink);
        all = b.body != NULL ? dc->hooks->block(dc, to->t, to->obj, &b, sc) : -1;
        if (all == 0)
            break;
    }
    return all;
}

static bool
take_attr(struct decoder *dc, const struct attr *a, const struct hcl_scope *sc, struct target *to)
{
    const struct field *f = find_field(to->t, a->name);
    if (f == NULL && (dc->flags & HCL_JSON) != 0 && dc->hooks != NULL &&
        (a->expr->kind == EX_OBJECT || a->expr->kind == EX_TUPLE)) {
        int r = hooked_blocks(dc, a, a->expr, sc, to);
        if (r != 0)
            return r > 0;
    }
    if (f == NULL) {
        int r = dc->hooks != NULL && dc->hooks->attr != NULL
                    ? dc->hooks->attr(dc, to->t, to->obj, a, sc)
                    : 0;
        return r != 0 ? r > 0 : refuse_unknown(dc, to->t, &a->name_r, a->name, false);
    }
    bool map_like = f->shape == FS_MAP || f->type == FT_VALUE;
    if ((f->flags & F_ATTR) == 0 && !map_like) {
        if (decode_loose(dc))
            return block_from_attr(dc, a, sc, f, to, NULL);
        diag_error(dc->sink, &a->name_r, "Unsupported argument",
                   "\"%s\" is a block, not an argument: write %s { ... } without \"=\".", a->name,
                   a->name);
        return false;
    }
    if ((f->flags & F_ATTR) == 0 && (f->flags & F_LATER) != 0 && !dc->later)
        return refuse_later(dc, &a->name_r, a->name);
    to->seen[f - to->t->fields] = true;
    struct value *v = ev_expr(dc->ev, sc, a->expr);
    if (v == NULL || !decode_measure(dc, &a->expr->r, v))
        return false;
    if (map_like && (f->flags & F_BLOCK) != 0 && decode_loose(dc) && v->kind == VALUE_LIST)
        v = merge_maps(dc, v);
    if (f->type == FT_VALUE && (f->flags & F_BLOCK) != 0 && v->kind != VALUE_MAP &&
        v->kind != VALUE_NULL) {
        diag_error(dc->sink, &a->expr->r, "Incorrect value type", "\"%s\" needs an object.",
                   a->name);
        return false;
    }
    return decode_set(dc, f, to->obj, v, &a->expr->r) && check_later(dc, f, to, &a->name_r);
}

static bool
each_block(struct decoder *dc, const struct block *b, const struct hcl_scope *sc, void *arg)
{
    struct target *to = arg;
    const struct field *f = find_field(to->t, b->type);
    if (f == NULL) {
        int r = dc->hooks != NULL && dc->hooks->block != NULL
                    ? dc->hooks->block(dc, to->t, to->obj, b, sc)
                    : 0;
        return r != 0 ? r > 0 : refuse_unknown(dc, to->t, &b->type_r, b->type, true);
    }
    if ((f->flags & F_BLOCK) != 0 || f->shape == FS_MAP)
        return take_block(dc, b, sc, f, to);
    diag_error(dc->sink, &b->type_r, "Unsupported block type",
               "\"%s\" is an argument, not a block: write %s = value.", b->type, b->type);
    return false;
}

static bool
check_required(struct decoder *dc, const struct target *to)
{
    bool ok = true;
    for (size_t i = 0; i < to->t->n_fields; i++) {
        const struct field *f = &to->t->fields[i];
        if ((f->flags & F_REQUIRED) == 0 || to->seen[i])
            continue;
        diag_error(dc->sink, &to->r, "Missing required argument",
                   "The argument \"%s\" is required, but it is not set.", f->hcl);
        ok = false;
    }
    return ok;
}

static bool
decode_body(struct decoder *dc, const struct hcl_body *body, const struct hcl_scope *sc,
            const struct type *t, void *obj, const struct hcl_range *r)
{
    ASSERT(t->n_fields <= FIELDS_MAX);
    struct target to = {.t = t, .obj = obj, .r = *r};
    bool ok = true;
    for (size_t i = 0; i < body->n_attrs; i++)
        ok = take_attr(dc, body->attrs[i], sc, &to) && ok;
    ok = decode_blocks(dc, body, sc, each_block, &to) && ok;
    return check_required(dc, &to) && ok;
}

/* --- dynamic --- */

struct dynamic {
    const struct expr *for_each, *labels;
    const char *iterator;
    const struct hcl_body *content;
};

static bool
read_dynamic(struct decoder *dc, const struct block *b, struct dynamic *d)
{
    d->iterator = b->labels[0].s;
    for (size_t i = 0; i < b->body->n_attrs; i++) {
        const struct attr *a = b->body->attrs[i];
        if (strcmp(a->name, "for_each") == 0) {
            d->for_each = a->expr;
        } else if (strcmp(a->name, "labels") == 0) {
            d->labels = a->expr;
        } else if (strcmp(a->name, "iterator") == 0 && a->expr->kind == EX_VAR) {
            d->iterator = a->expr->name;
        } else {
            diag_error(dc->sink, &a->name_r, "Unsupported argument",
                       "A dynamic block takes for_each, iterator (a bare name) and labels.");
            return false;
        }
    }
    for (size_t i = 0; i < b->body->n_blocks; i++)
        if (strcmp(b->body->blocks[i]->type, "content") == 0)
            d->content = b->body->blocks[i]->body;
    if (d->for_each != NULL && d->content != NULL)
        return true;
    diag_error(dc->sink, &b->r, "Invalid dynamic block",
               "A dynamic block needs for_each and a content block.");
    return false;
}

static bool
dynamic_labels(struct decoder *dc, const struct dynamic *d, const struct hcl_scope *sc,
               struct block *out)
{
    if (d->labels == NULL)
        return true;
    struct value *v = ev_expr(dc->ev, sc, d->labels);
    if (v == NULL)
        return false;
    bool ok = v->kind == VALUE_LIST && v->list.n <= HCL_LABELS_MAX;
    for (size_t i = 0; ok && i < v->list.n; i++) {
        const char *s = value_text(dc->ctx, v->list.v[i]);
        ok = s != NULL;
        out->labels[i] = (struct label){s, d->labels->r};
        out->n_labels = i + 1;
    }
    if (!ok)
        diag_error(dc->sink, &d->labels->r, "Invalid dynamic block",
                   "labels is a list of strings.");
    return ok;
}

static bool
decode_expand(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
              decode_each *fn, void *arg)
{
    struct dynamic d = {NULL, NULL, NULL, NULL};
    if (!read_dynamic(dc, b, &d))
        return false;
    struct value *coll = ev_expr(dc->ev, sc, d.for_each);
    if (coll == NULL)
        return false;
    if (coll->kind != VALUE_LIST && coll->kind != VALUE_MAP) {
        diag_error(dc->sink, &d.for_each->r, "Invalid dynamic block",
                   "for_each needs a list or a map, this is a %s.", value_kind_name(coll->kind));
        return false;
    }
    bool map = coll->kind == VALUE_MAP, ok = true;
    size_t n = map ? coll->map.n : coll->list.n;
    for (size_t i = 0; i < n; i++) {
        struct value_pair pairs[2] = {{"key", map ? value_str(dc->ctx, coll->map.v[i].k)
                                              : coll->form == FORM_SET
                                                  ? coll->list.v[i]
                                                  : number_counted(dc->ctx, (int64_t)i)},
                                      {"value", map ? coll->map.v[i].v : coll->list.v[i]}};
        struct hcl_scope in = {sc, d.iterator, ev_map(dc->ev, &b->r, pairs, 2)};
        struct block out = {.type = b->labels[0].s, .type_r = b->labels[0].r, .r = b->r};
        out.body = (struct hcl_body *)(uintptr_t)d.content;
        if (in.v == NULL || ++dc->blocks > HCL_BLOCKS_MAX || !ev_charge(dc->ev, &b->r, 100, 1000)) {
            if (!dc->ev->exhausted)
                diag_error(dc->sink, &b->r, "Too many blocks", "dynamic made more than %d blocks.",
                           HCL_BLOCKS_MAX);
            return false;
        }
        ok = dynamic_labels(dc, &d, &in, &out) && fn(dc, &out, &in, arg) && ok;
    }
    return ok;
}

static bool
decode_blocks(struct decoder *dc, const struct hcl_body *body, const struct hcl_scope *sc,
              decode_each *fn, void *arg)
{
    bool ok = true;
    for (size_t i = 0; i < body->n_blocks && !dc->ev->exhausted; i++) {
        const struct block *b = body->blocks[i];
        if (strcmp(b->type, "dynamic") == 0 && b->n_labels == 1 && dc->ev->names)
            ok = decode_expand(dc, b, sc, fn, arg) && ok;
        else
            ok = fn(dc, b, sc, arg) && ok;
    }
    return ok && !dc->ev->exhausted;
}

/* --- free form --- */

static bool
value_block(struct decoder *dc, const struct block *b, const struct hcl_scope *sc, void *arg)
{
    struct value *into = arg;
    struct value *v = decode_value(dc, b->body, sc);
    if (v == NULL)
        return false;
    for (size_t i = b->n_labels; i > 0; i--) {
        struct value *outer = value_map(dc->ctx), *list = value_list(dc->ctx);
        value_list_add(list, v);
        value_map_set(outer, b->labels[i - 1].s, list);
        v = outer;
    }
    struct value *list = value_get(into, b->type);
    if (list == NULL) {
        list = value_list(dc->ctx);
        value_map_set(into, b->type, list);
    } else if (list->kind != VALUE_LIST) {
        diag_error(dc->sink, &b->r, "Duplicate name", "\"%s\" is already set as an argument.",
                   b->type);
        return false;
    }
    value_list_add(list, v);
    return true;
}

static struct value *
decode_value(struct decoder *dc, const struct hcl_body *body, const struct hcl_scope *sc)
{
    struct value *v = value_map(dc->ctx);
    bool ok = true;
    for (size_t i = 0; i < body->n_attrs; i++) {
        struct value *e = ev_expr(dc->ev, sc, body->attrs[i]->expr);
        if (e != NULL)
            value_map_set(v, body->attrs[i]->name, e);
        ok = e != NULL && ok;
    }
    return decode_blocks(dc, body, sc, value_block, v) && ok ? v : NULL;
}

/* --- public --- */

int
hcl_decode(const void *ctx, const struct hcl_body *body, const struct type *t, unsigned flags,
           void **ret, struct hcl_diags *d)
{
    struct hcl_sink sink = {.ctx = ctx, .d = d};
    struct hcl_eval ev;
    ev_init(&ev, ctx, &sink, flags);
    struct decoder dc = {.ctx = ctx, .sink = &sink, .flags = flags, .ev = &ev};
    void *obj = type_new(ctx, t);
    struct hcl_range r = body->r;
    r.end = r.start;
    if (!decode_body(&dc, body, NULL, t, obj, &r))
        return ev.exhausted ? -ERR_LIMIT : -ERR_INVALID;
    *ret = obj;
    return 0;
}
