/* SPDX-License-Identifier: Apache-2.0
 *
 * Filter expressions: types of operands, and matching against objects by their field tables.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "agent/filter_int.h"
#include "agent/limits.h"
#include "common/mem.h"
#include "common/num.h"
#include "common/str.h"

/* What a selector chooses: a value of `type` in `shape` at an address. */
struct place {
    const void *at;
    uint8_t type, shape;
    const struct field *field;
    bool opt;
};

static void
place_of(const struct selector *s, struct place *p)
{
    const struct selector_step *last = &s->steps[s->n - 1];

    p->field = last->field;
    p->type = last->field->type;
    p->shape = last->key ? FS_ONE : last->field->shape;
    p->opt = !last->key && (last->field->flags & F_OPT);
    if (last->key && p->type == FT_STRINGS) {
        p->type = FT_STRING;
        p->shape = FS_LIST;
    }
}

static size_t
elem_size(uint8_t type)
{
    switch (type) {
    case FT_BOOL: return sizeof(bool);
    case FT_STRINGS: return sizeof(struct str_list);
    case FT_FLOAT: return sizeof(double);
    case FT_BYTES: return sizeof(struct bytes);
    case FT_STRING:
    case FT_VALUE:
    case FT_STRUCT: return sizeof(void *);
    default: return sizeof(int64_t);
    }
}

/* A map's element is {key, value}, the value aligned as a pointer is. */
static const void *
map_value(const void *map, uint8_t type, const char *key)
{
    size_t size = elem_size(type) < sizeof(void *) ? sizeof(void *) : elem_size(type);
    const char *e = codec_map_find(map, sizeof(const char *) + size, key);
    return e ? e + sizeof(const char *) : NULL;
}

/* The address that the selector chooses in obj; NULL: absent. */
static const void *
resolve(const struct selector *s, const void *obj)
{
    const void *at = obj; /* a struct while a field step follows */

    for (size_t i = 0; i < s->n && at; i++) {
        const struct selector_step *st = &s->steps[i];
        bool more = i + 1 < s->n;
        if (st->key)
            at = map_value(at, st->field->type, st->key);
        else
            at = (const char *)at + st->field->offset;
        bool is_struct = st->field->type == FT_STRUCT && (st->key || st->field->shape == FS_ONE);
        if (at && more && is_struct)
            at = *(void *const *)at;
    }
    return at;
}

static int
check_regex(const void *ctx, struct node_expr *n, struct err *e)
{
    int code;
    PCRE2_SIZE off;
    (void)ctx;
    if (strlen(n->value) > FILTER_REGEX_MAX)
        return err_set(e, -ERR_LIMIT, "regular expression is longer than %d bytes", FILTER_REGEX_MAX);
    n->regex = pcre2_compile((PCRE2_SPTR)n->value, PCRE2_ZERO_TERMINATED,
                             PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &off, NULL);
    if (!n->regex)
        return err_set(e, -ERR_INVALID, "malformed regular expression '%s'", n->value);
    return 0;
}

static int
regex_free(struct node_expr *n)
{
    pcre2_code_free(n->regex);
    return 0;
}

static int
check_value(struct node_expr *n, const struct place *p, struct err *e)
{
    int r = 0;

    switch (p->type) {
    case FT_BOOL: r = num_parse_bool(n->value, &n->boolean); break;
    case FT_UINT: {
        uint64_t u = 0;
        r = num_parse_u64(n->value, &u);
        n->integer = (int64_t)u;
        break;
    }
    case FT_INT:
    case FT_DURATION:
        r = num_parse_i64(n->value, &n->integer);
        if (r < 0 && p->type == FT_DURATION)
            r = duration_parse(n->value, &n->integer);
        break;
    case FT_TIME: r = time_parse(n->value, strlen(n->value), &n->integer); break;
    case FT_FLOAT: r = num_parse_f64(n->value, &n->number); break;
    case FT_STRING: break;
    default: r = -1; break;
    }
    if (r < 0)
        return err_set(e, -ERR_INVALID, "field '%s' cannot be compared with '%s'", p->field->wire,
                       n->value);
    return 0;
}

int
filter_check(const void *ctx, struct node_expr *n, struct err *e)
{
    struct place p;

    place_of(&n->sel, &p);
    switch (n->op) {
    case OP_EQUAL:
        if (p.shape != FS_ONE)
            return err_set(e, -ERR_INVALID, "field '%s' is a collection: use contains or in",
                           p.field->wire);
        return check_value(n, &p, e);
    case OP_CONTAINS:
        if (p.shape == FS_MAP)
            return 0; /* keys */
        if (p.type != FT_STRING && p.shape != FS_LIST)
            return err_set(e, -ERR_INVALID, "field '%s' cannot contain anything", p.field->wire);
        return check_value(n, &p, e);
    case OP_MATCHES:
        if (p.type != FT_STRING || p.shape != FS_ONE)
            return err_set(e, -ERR_INVALID, "field '%s' is no text", p.field->wire);
        if (check_regex(ctx, n, e) < 0)
            return -ERR_INVALID;
        talloc_set_destructor(n, regex_free);
        return 0;
    default: return 0;
    }
}

static bool
equal_at(const struct node_expr *n, const struct place *p)
{
    if (p->opt) {
        const struct opt_i64 *o = p->at;
        const struct opt_bool *b = p->at;
        const struct opt_f64 *d = p->at;
        if (p->type == FT_BOOL)
            return b->set && b->v == n->boolean;
        if (p->type == FT_FLOAT)
            return d->set && !(d->v < n->number) && !(d->v > n->number);
        return o->set && o->v == n->integer;
    }
    switch (p->type) {
    case FT_BOOL: return *(const bool *)p->at == n->boolean;
    case FT_FLOAT: {
        double d = *(const double *)p->at;
        return !(d < n->number) && !(d > n->number);
    }
    case FT_STRING: return str_eq(*(const char *const *)p->at, n->value);
    default: return *(const int64_t *)p->at == n->integer;
    }
}

static bool
contains_at(const struct node_expr *n, const struct place *p)
{
    if (p->shape == FS_MAP)
        return map_value(p->at, p->type, n->value) != NULL;
    if (p->shape == FS_LIST) {
        struct {
            const char *v;
            size_t n;
        } l;
        memcpy(&l, p->at, sizeof(l));
        for (size_t i = 0; i < l.n; i++) {
            struct place e = {.at = l.v + i * elem_size(p->type), .type = p->type};
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
    pcre2_match_data *md = pcre2_match_data_create(1, NULL);
    pcre2_match_context *mc = pcre2_match_context_create(NULL);
    int r = -1;

    if (md && mc) {
        pcre2_set_match_limit(mc, FILTER_REGEX_STEPS_MAX);
        pcre2_set_depth_limit(mc, 1000);
        r = pcre2_match(n->regex, (PCRE2_SPTR)str_or(s, ""), PCRE2_ZERO_TERMINATED, 0, 0, md, mc);
    }
    pcre2_match_data_free(md);
    pcre2_match_context_free(mc);
    return r >= 0;
}

static bool
empty_at(const struct place *p)
{
    struct {
        const void *v;
        size_t n;
    } l;
    if (p->shape != FS_ONE) {
        memcpy(&l, p->at, sizeof(l));
        return l.n == 0;
    }
    switch (p->type) {
    case FT_STRING: return str_empty(*(const char *const *)p->at);
    case FT_STRUCT:
    case FT_VALUE: return *(void *const *)p->at == NULL;
    case FT_BYTES: return ((const struct bytes *)p->at)->n == 0;
    default: return false;
    }
}

static bool
match_leaf(const struct node_expr *n, const void *obj)
{
    struct place p;
    bool r;

    place_of(&n->sel, &p);
    p.at = resolve(&n->sel, obj);
    if (!p.at)
        r = n->op == OP_EMPTY; /* absent equals nothing and is empty */
    else if (n->op == OP_EQUAL)
        r = equal_at(n, &p);
    else if (n->op == OP_CONTAINS)
        r = contains_at(n, &p);
    else if (n->op == OP_MATCHES)
        r = matches_at(n, &p);
    else
        r = empty_at(&p);
    return r != n->negate;
}

/* Depth is bounded by FILTER_DEPTH_MAX when compiled. */
static bool
match_expr(const struct node_expr *n, const void *obj)
{
    switch (n->op) {
    case OP_NOT: return !match_expr(n->a, obj);
    case OP_AND:
        for (const struct node_expr *x = n->a; x; x = x->next)
            if (!match_expr(x, obj))
                return false;
        return true;
    case OP_OR:
        for (const struct node_expr *x = n->a; x; x = x->next)
            if (match_expr(x, obj))
                return true;
        return false;
    default: return match_leaf(n, obj);
    }
}

bool
filter_match(const struct filter *f, const void *obj)
{
    return match_expr(f->root, obj);
}
