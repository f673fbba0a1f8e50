/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking things up: fields of a type by name, elements of sorted maps by key.
 */
#include "codec/intern.h"

#include <stdlib.h>
#include <strings.h>

#include "common/str.h"

static int
wire_cmp(const char *name, const char *wire, size_t len)
{
    int c = strncasecmp(name, wire, len);
    return c ? c : (unsigned char)name[len];
}

const struct field *
type_field(const struct type *t, const char *wire, size_t len)
{
    size_t lo = 0, hi = t->n_fields;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const struct field *f = &t->fields[t->by_wire[mid]];
        int c = wire_cmp(f->wire, wire, len);
        if (c == 0)
            return f;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const struct field *
type_field_hint(const struct type *t, const char *wire, size_t len, size_t *hint)
{
    const struct field *f;
    if (*hint < t->n_fields) {
        f = &t->fields[*hint];
        if (f->wire_len == len && memcmp(f->wire, wire, len) == 0) {
            ++*hint;
            return f;
        }
    }
    f = type_field(t, wire, len);
    if (f)
        *hint = (size_t)(f - t->fields) + 1;
    return f;
}

const struct field *
type_field_hcl(const struct type *t, const char *hcl)
{
    for (size_t i = 0; i < t->n_fields; i++)
        if (t->fields[i].hcl && strcmp(t->fields[i].hcl, hcl) == 0)
            return &t->fields[i];
    return NULL;
}

const char *
type_nearest(const struct type *t, const char *name, size_t len)
{
    char key[64];
    if (len >= sizeof(key) || t->n_fields > TYPE_FIELDS_MAX)
        return NULL;
    memcpy(key, name, len);
    key[len] = 0;
    const char *names[TYPE_FIELDS_MAX];
    for (size_t i = 0; i < t->n_fields; i++)
        names[i] = t->fields[i].wire;
    return str_nearest(key, names, t->n_fields);
}

void *
type_new(const void *ctx, const struct type *t)
{
    return mem_zalloc(ctx, t->size, t->name);
}

void *
type_member(const struct type *t, const void *obj, const char *wire)
{
    const struct field *f = type_field(t, wire, strlen(wire));
    return f != NULL ? field_ptr(f, obj) : NULL;
}

bool
codec_field_empty(const struct field *f, const void *obj)
{
    return field_empty(f, field_ptr(f, obj));
}

unsigned
codec_member(const struct type *t, const void *obj)
{
    unsigned id = 0, n = 0;

    ASSERT(t->one_of);
    for (size_t i = 0; i < t->n_fields; i++) {
        if (t->fields[i].type != FT_STRUCT || codec_field_empty(&t->fields[i], obj))
            continue;
        id = t->fields[i].id;
        n++;
    }
    return n == 1 ? id : 0;
}

/* --- maps --- */

static const char *
map_key(const void *v, size_t i, size_t stride)
{
    return *(const char *const *)(const void *)((const char *)v + i * stride);
}

/* Index of the first key >= `key`. */
static size_t
map_lower(const struct any_list *m, size_t stride, const char *key)
{
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (strcmp(map_key(m->v, mid, stride), key) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void *
codec_map_find(const void *map, size_t stride, const char *key)
{
    const struct any_list *m = map;
    size_t i = map_lower(m, stride, key);
    if (i < m->n && strcmp(map_key(m->v, i, stride), key) == 0)
        return (char *)m->v + i * stride;
    return NULL;
}

void *
codec_map_put(const void *ctx, void *map, size_t stride, const char *key)
{
    struct any_list *m = map;
    size_t i = map_lower(m, stride, key);
    if (i < m->n && strcmp(map_key(m->v, i, stride), key) == 0)
        return (char *)m->v + i * stride;
    if ((m->n & (m->n - 1)) == 0)
        m->v = mem_realloc(ctx, m->v, stride, m->n ? m->n * 2 : 1, "map");
    char *at = (char *)m->v + i * stride;
    memmove(at + stride, at, (m->n - i) * stride);
    memset(at, 0, stride);
    *(const char **)(void *)at = mem_strdup(ctx, key);
    m->n++;
    return at;
}

static int
pair_cmp(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *
map_sort(void *v, size_t n, size_t stride)
{
    bool sorted = true;
    for (size_t i = 1; i < n && sorted; i++)
        sorted = strcmp(map_key(v, i - 1, stride), map_key(v, i, stride)) < 0;
    if (sorted)
        return NULL;
    qsort(v, n, stride, pair_cmp);
    for (size_t i = 1; i < n; i++)
        if (strcmp(map_key(v, i - 1, stride), map_key(v, i, stride)) == 0)
            return map_key(v, i, stride);
    return NULL;
}

bool
str_list_has(const struct str_list *l, const char *s)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i], s))
            return true;
    return false;
}

const char *
str_map_get(const struct str_map *m, const char *key)
{
    const struct str_pair *p = codec_map_find(m, sizeof(*p), key);
    return p ? p->v : NULL;
}

void
str_map_set(const void *ctx, struct str_map *m, const char *key, const char *val)
{
    struct str_pair *p = codec_map_put(ctx, m, sizeof(*p), key);
    p->v = mem_strdup(ctx, val);
}
