/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions: types of operands, and matching against objects by their field tables. A
 * place is an address together with the field that says how to read it. First steps into an object;
 * then filter_check(), the types at compile time; then the operators and `any` and `all`; last the
 * expression.
 */
#include <string.h>

#include "api/filter/filter_int.h"
#include "common/duration.h"
#include "common/num.h"
#include "common/regex.h"
#include "common/str.h"

/* An address of what a selector chose; of a struct, that of the struct itself. NULL: it is not
 * there. */
struct place {
    const void *at;
    const struct spot *spot;
};

struct match {
    const void *obj;
    const void *vars[FILTER_VARS_MAX];
    int64_t numbers[FILTER_VARS_MAX]; /* vars of elements' numbers point here */
    unsigned steps;
};

struct any_list {
    const char *v;
    size_t n;
};

struct spot
spot_element(const struct spot *s)
{
    struct spot r = *s;
    r.opt = false;
    r.shape = FS_ONE;
    if (s->type == FT_STRINGS) {
        r.type = FT_STRING;
        r.shape = FS_LIST;
    }
    return r;
}

static size_t
elem_size(uint8_t type)
{
    switch (type) {
    case FT_BOOL:
        return sizeof(bool);
    case FT_STRINGS:
        return sizeof(struct str_list);
    case FT_FLOAT:
        return sizeof(double);
    case FT_BYTES:
        return sizeof(struct bytes);
    case FT_STRING:
    case FT_VALUE:
    case FT_STRUCT:
        return sizeof(void *);
    default:
        return sizeof(int64_t);
    }
}

/* A map's element is {key, value}, the value aligned as a pointer is. */
static size_t
pair_size(uint8_t type)
{
    size_t size = elem_size(type);
    return sizeof(const char *) + (size < sizeof(void *) ? sizeof(void *) : size);
}

static struct any_list
filter_match_elements(const void *at)
{
    struct any_list l;
    memcpy(&l, at, sizeof(l));
    return l;
}

static const void *
filter_match_deref(const struct spot *s, const void *at)
{
    return at && s->shape == FS_ONE && s->type == FT_STRUCT ? *(void *const *)at : at;
}

static const void *
step_into(const struct selector_step *st, const struct spot *s, const void *at)
{
    if (st->field)
        return (const char *)at + st->field->offset;
    if (s->shape == FS_MAP) {
        const char *e = codec_map_find(at, pair_size(s->type), st->key);
        return e ? e + sizeof(const char *) : NULL;
    }
    struct any_list l = filter_match_elements(at);
    return st->index < l.n ? l.v + st->index * elem_size(s->type) : NULL;
}

static const void *
filter_match_resolve(const struct match *m, const struct selector *sel)
{
    const void *at = sel->var < 0 ? m->obj : m->vars[sel->var];
    struct spot s = sel->start;

    for (size_t i = 0; i < sel->n && at; i++) {
        const struct selector_step *st = &sel->steps[i];
        at = step_into(st, &s, at);
        if (st->field)
            s = (struct spot){.type = st->field->type, .shape = st->field->shape};
        else
            s = spot_element(&s);
        at = filter_match_deref(&s, at);
    }
    return at;
}

static int
check_regex(struct node_expr *n, struct err *e)
{
    if (strlen(n->value) > FILTER_REGEX_MAX)
        return err_set(e, -ERR_LIMIT, "regular expression is longer than %d bytes",
                       FILTER_REGEX_MAX);
    n->regex = regex_new(n, n->value, strlen(n->value), FILTER_REGEX_STEPS_MAX, e);
    return n->regex ? 0 : -ERR_INVALID;
}

static int
check_value(struct node_expr *n, struct err *e)
{
    int r = 0;

    switch (n->sel.spot.type) {
    case FT_BOOL:
        r = num_parse_bool(n->value, &n->boolean);
        break;
    case FT_UINT: {
        uint64_t u = 0;
        r = num_parse_u64(n->value, &u);
        n->integer = (int64_t)u;
        break;
    }
    case FT_INT:
    case FT_DURATION:
        r = num_parse_i64(n->value, &n->integer);
        if (r < 0 && n->sel.spot.type == FT_DURATION)
            r = duration_parse(n->value, &n->integer);
        break;
    case FT_TIME:
        r = time_parse(n->value, strlen(n->value), &n->integer);
        break;
    case FT_FLOAT:
        r = num_parse_f64(n->value, &n->number);
        break;
    case FT_STRING:
        break;
    default:
        r = -1;
        break;
    }
    if (r < 0)
        return err_set(e, -ERR_INVALID, "field '%s' cannot be compared with '%s'", n->sel.spot.name,
                       n->value);
    return 0;
}

static int
check_nil(const struct spot *s, struct err *e)
{
    if (s->shape == FS_ONE && s->type != FT_STRUCT && s->type != FT_VALUE && !s->opt)
        return err_set(e, -ERR_INVALID, "field '%s' is never nil", s->name);
    return 0;
}

static int
check_empty(const struct spot *s, struct err *e)
{
    if (s->shape == FS_ONE && s->type != FT_STRING && s->type != FT_BYTES)
        return err_set(e, -ERR_INVALID, "field '%s' cannot be empty%s", s->name,
                       s->type == FT_STRUCT || s->opt ? ": use is nil" : "");
    return 0;
}

int
filter_check(struct node_expr *n, struct err *e)
{
    const struct spot *s = &n->sel.spot;

    switch (n->op) {
    case OP_EQUAL:
        if (s->shape != FS_ONE)
            return err_set(e, -ERR_INVALID, "field '%s' is a collection: use contains or in",
                           s->name);
        return check_value(n, e);
    case OP_CONTAINS:
        if (s->shape == FS_MAP)
            return 0; /* keys */
        if (s->type != FT_STRING && s->shape != FS_LIST)
            return err_set(e, -ERR_INVALID, "field '%s' cannot contain anything", s->name);
        return check_value(n, e);
    case OP_MATCHES:
        if (s->type != FT_STRING || s->shape != FS_ONE)
            return err_set(e, -ERR_INVALID, "field '%s' is no text", s->name);
        return check_regex(n, e) < 0 ? -ERR_INVALID : 0;
    case OP_EMPTY:
        return check_empty(s, e);
    case OP_NIL:
        return check_nil(s, e);
    default:
        return 0;
    }
}

static bool
equal_at(const struct node_expr *n, const struct place *p)
{
    if (p->spot->opt) {
        const struct opt_i64 *o = p->at;
        const struct opt_bool *b = p->at;
        const struct opt_f64 *d = p->at;
        if (p->spot->type == FT_BOOL)
            return b->set && b->v == n->boolean;
        if (p->spot->type == FT_FLOAT)
            return d->set && !(d->v < n->number) && !(d->v > n->number);
        return o->set && o->v == n->integer;
    }
    switch (p->spot->type) {
    case FT_BOOL:
        return *(const bool *)p->at == n->boolean;
    case FT_FLOAT: {
        double d = *(const double *)p->at;
        return !(d < n->number) && !(d > n->number);
    }
    case FT_STRING:
        return str_eq(*(const char *const *)p->at, n->value);
    default:
        return *(const int64_t *)p->at == n->integer;
    }
}

static bool
contains_at(const struct node_expr *n, const struct place *p)
{
    uint8_t type = p->spot->type;

    if (p->spot->shape == FS_MAP)
        return codec_map_find(p->at, pair_size(type), n->value) != NULL;
    if (p->spot->shape == FS_LIST) {
        struct any_list l = filter_match_elements(p->at);
        struct spot s = spot_element(p->spot);
        for (size_t i = 0; i < l.n; i++) {
            struct place e = {.at = l.v + i * elem_size(type), .spot = &s};
            if (equal_at(n, &e))
                return true;
        }
        return false;
    }
    const char *s = *(const char *const *)p->at;
    return s && strstr(s, n->value) != NULL;
}

static bool
matches_at(const struct node_expr *n, const struct place *p)
{
    const char *s = *(const char *const *)p->at;
    return regex_matches(n->regex, str_or(s, ""));
}

static bool
empty_at(const struct place *p)
{
    if (p->spot->shape != FS_ONE)
        return filter_match_elements(p->at).n == 0;
    if (p->spot->type == FT_STRING)
        return str_empty(*(const char *const *)p->at);
    return ((const struct bytes *)p->at)->n == 0;
}

static bool
nil_at(const struct place *p)
{
    if (p->spot->shape != FS_ONE)
        return filter_match_elements(p->at).v == NULL;
    if (p->spot->opt) /* `set` is the first member of each */
        return !*(const bool *)p->at;
    /* a struct that is there is not */
    return p->spot->type == FT_VALUE && *(void *const *)p->at == NULL;
}

static bool
match_leaf(const struct match *m, const struct node_expr *n)
{
    struct place p = {.at = filter_match_resolve(m, &n->sel), .spot = &n->sel.spot};
    bool r;

    if (!p.at)
        r = n->op == OP_EMPTY || n->op == OP_NIL; /* absent equals nothing */
    else if (n->op == OP_EQUAL)
        r = equal_at(n, &p);
    else if (n->op == OP_CONTAINS)
        r = contains_at(n, &p);
    else if (n->op == OP_MATCHES)
        r = matches_at(n, &p);
    else
        r = n->op == OP_NIL ? nil_at(&p) : empty_at(&p);
    return r != n->negate;
}

static bool match_expr(struct match *m, const struct node_expr *n);

static bool
match_each(struct match *m, const struct node_expr *n)
{
    const struct spot *s = &n->sel.spot;
    const void *at = filter_match_resolve(m, &n->sel);
    struct any_list l = at ? filter_match_elements(at) : (struct any_list){0};
    bool map = s->shape == FS_MAP, any = n->op == OP_ANY;
    size_t size = map ? pair_size(s->type) : elem_size(s->type);
    struct spot element = spot_element(s);

    for (size_t i = 0; i < l.n && m->steps < FILTER_STEPS_MAX; i++) {
        const char *e = l.v + i * size;
        if (n->key_var >= 0) {
            m->numbers[n->key_var] = (int64_t)i;
            m->vars[n->key_var] = map ? (const void *)e : &m->numbers[n->key_var];
        }
        if (n->value_var >= 0)
            m->vars[n->value_var] =
                filter_match_deref(&element, map ? e + sizeof(const char *) : e);
        if (match_expr(m, n->a) == any)
            return any;
    }
    return !any;
}

/* Depth is bounded by FILTER_DEPTH_MAX when compiled. */
static bool
match_expr(struct match *m, const struct node_expr *n)
{
    m->steps++;
    switch (n->op) {
    case OP_NOT:
        return !match_expr(m, n->a);
    case OP_AND:
        for (const struct node_expr *x = n->a; x; x = x->next)
            if (!match_expr(m, x))
                return false;
        return true;
    case OP_OR:
        for (const struct node_expr *x = n->a; x; x = x->next)
            if (match_expr(m, x))
                return true;
        return false;
    case OP_ANY:
    case OP_ALL:
        return match_each(m, n);
    case OP_MATCHES:
        m->steps += FILTER_STEPS_MAX / 1000;
        return match_leaf(m, n);
    default:
        return match_leaf(m, n);
    }
}

bool
filter_match(const struct filter *f, const void *obj)
{
    struct match m = {.obj = obj};
    bool r = match_expr(&m, f->root);
    return r && m.steps < FILTER_STEPS_MAX;
}
