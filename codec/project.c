/* SPDX-License-Identifier: Apache-2.0
 *
 * Projection: an object of one type as far as another type has fields of the same names.
 */
#include "codec/intern.h"

enum how { HOW_COPY, HOW_THERE /* a bool: whether the struct is there */ };

struct projection {
    const struct type *dst;
    size_t n;
    struct {
        uint32_t to, from;
        uint16_t size;
        uint16_t how;
    } v[];
};

static size_t
field_size(const struct field *f)
{
    if (f->shape != FS_ONE)
        return sizeof(struct any_list);
    if (!(f->flags & F_OPT))
        return elem_size(f);
    return f->type == FT_BOOL ? sizeof(struct opt_bool) : sizeof(struct opt_i64);
}

static bool
same_kind(const struct field *a, const struct field *b)
{
    return a->shape == b->shape && a->type == b->type && a->sub == b->sub;
}

const struct projection *
projection_new(const void *ctx, const struct type *dst, const struct type *src)
{
    struct projection *p =
        mem_zalloc(ctx, sizeof(*p) + dst->n_fields * sizeof(p->v[0]), "projection");

    p->dst = dst;
    for (size_t i = 0; i < dst->n_fields; i++) {
        const struct field *to = &dst->fields[i];
        const struct field *from = type_field(src, to->wire, to->wire_len);
        if (from == NULL)
            continue;
        bool there = to->type == FT_BOOL && from->type == FT_STRUCT && to->shape == FS_ONE &&
                     from->shape == FS_ONE && !(to->flags & F_OPT);
        if (!there && (!same_kind(to, from) || ((to->flags & F_OPT) && !(from->flags & F_OPT))))
            continue;
        p->v[p->n].to = to->offset;
        p->v[p->n].from = from->offset;
        if ((from->flags & F_OPT) && !(to->flags & F_OPT))
            p->v[p->n].from += (uint32_t)(from->type == FT_BOOL ? offsetof(struct opt_bool, v)
                                                                : offsetof(struct opt_i64, v));
        p->v[p->n].size = (uint16_t)field_size(to);
        p->v[p->n++].how = there ? HOW_THERE : HOW_COPY;
    }
    return p;
}

void *
codec_project(const void *ctx, const struct projection *p, const void *src)
{
    char *dst = type_new(ctx, p->dst);

    for (size_t i = 0; i < p->n; i++) {
        const char *from = (const char *)src + p->v[i].from;
        if (p->v[i].how == HOW_COPY)
            memcpy(dst + p->v[i].to, from, p->v[i].size);
        else
            *(bool *)(dst + p->v[i].to) = *(const any_ptr *)(const void *)from != NULL;
    }
    return dst;
}
