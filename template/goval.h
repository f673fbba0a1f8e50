/* SPDX-License-Identifier: Apache-2.0
 *
 * Values as Go has them: each with a type, since what a template prints and refuses goes by types.
 * All memory is of one arena, that of a run: nothing is freed before the run ends.
 */
#ifndef PADDOCK_TEMPLATE_GOVAL_H
#define PADDOCK_TEMPLATE_GOVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gv_kind {
    GV_INVALID, /* no value at all, as that of an untyped nil */
    GV_NIL,     /* an interface that holds nothing */
    GV_BOOL,
    GV_INT,
    GV_UINT,
    GV_FLOAT,
    GV_COMPLEX,
    GV_STRING,
    GV_LIST,
    GV_MAP,
    GV_STRUCT, /* fields by name, and methods */
    GV_CHAN,   /* the whole numbers that `loop` counts */
    GV_VALUE,  /* only of parameters: anything, no value too */
    GV_ERROR   /* only of results */
};

struct gv_class;

struct gv_type {
    enum gv_kind kind;
    int bits;         /* of numbers */
    const char *name; /* as %T says it */
    const struct gv_type *elem, *key;
    const struct gv_class *class; /* NULL: it has no methods and no fields */
    bool pointer;                 /* to a thing of this class */
};

struct gv_list;
struct gv_map;
struct gv_struct;

struct gv {
    const struct gv_type *t; /* NULL: GV_INVALID */
    bool boxed;              /* it came out of an interface, and was not piped yet */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        struct {
            const char *s; /* not terminated */
            size_t n;
        };
        struct gv_list *list;  /* NULL: nil */
        struct gv_map *map;    /* NULL: nil */
        struct gv_struct *obj; /* NULL: a nil pointer */
        struct {
            int64_t from, to; /* of a channel */
        };
        struct {
            double re, im;
        };
    };
};

struct gv_list {
    struct gv *v;
    size_t n, cap;
};

struct gv_pair {
    struct gv k, v;
};

/* Sorted by key at all times. */
struct gv_map {
    struct gv_pair *v;
    size_t n, cap;
};

/* Its fields are in the order of the class. */
struct gv_struct {
    const void *data; /* of its methods */
    struct gv f[];
};

struct run;
struct gv_method {
    const char *name;
    struct gv (*fn)(struct run *r, struct gv *a, size_t n); /* a[0] is the receiver */
    const char *params;                                     /* as in funcs.h, without it */
    const struct gv_type *result;
};

struct gv_class {
    const char *const *fields; /* NULL at the end */
    const struct gv_method *methods;
    size_t n_methods;
    bool stringer; /* prints as its String(): its method 0 */
};

extern const struct gv_type gv_any, gv_bool, gv_int, gv_int64, gv_uint64,
    gv_float64, gv_complex, gv_string, gv_value, gv_anys, gv_strings, gv_ints, gv_lists, gv_map_any,
    gv_map_string, gv_map_anys, gv_ports, gv_chan, gv_map_mixed;

/* A value as an element of a list or map of `elem`. */
static inline struct gv
gv_box(struct gv v, const struct gv_type *elem)
{
    v.boxed = elem && elem->kind == GV_NIL;
    return v;
}

static inline enum gv_kind
gv_kind(struct gv v)
{
    return v.t ? v.t->kind : GV_INVALID;
}

/* An interface or nothing at all. */
static inline bool
gv_none(struct gv v)
{
    return v.t == NULL || v.t->kind == GV_NIL;
}

#define GV_NONE ((struct gv){.t = NULL})
#define GV_NULL ((struct gv){.t = &gv_any})
#define GV_TRUE(x) ((struct gv){.t = &gv_bool, .b = (x)})
#define GV_INTEGER(x) ((struct gv){.t = &gv_int, .i = (int64_t)(x)})
#define GV_LONG(x) ((struct gv){.t = &gv_int64, .i = (int64_t)(x)})
#define GV_REAL(x) ((struct gv){.t = &gv_float64, .f = (x)})
/* Empty texts point somewhere too. */
#define GV_TEXT(p, len) ((struct gv){.t = &gv_string, .s = (len) > 0 ? (p) : "", .n = (len)})
#define GV_LIT(text) GV_TEXT((text), sizeof(text) - 1)

/* A nil of its type: a map, list or pointer without anything, an interface that holds nothing. */
bool gv_is_nil(struct gv v);
/* Go's truth of a value. */
bool gv_truth(struct gv v);
/* Elements of a list or map, bytes of a string, 0. */
size_t gv_len(struct gv v);
/* The zero value of a type. */
struct gv gv_zero(const struct gv_type *t);
/* "interface {}", "<nil>" for no value. */
const char *gv_type_name(struct gv v);
/* -1, 0, 1 of keys, strings or numbers. */
int gv_key_compare(struct gv a, struct gv b);

/* The place of a key, or where it would go. */
size_t gv_map_slot(const struct gv_map *m, struct gv k, bool *found);
/* NULL: not there. */
struct gv *gv_map_find(const struct gv_map *m, struct gv k);
struct gv *gv_map_text(struct gv map, const char *key);
void gv_map_drop(struct gv_map *m, struct gv k);
/* A byte of a string, an element of a list, as the element's type has it. */
struct gv gv_at(struct gv v, size_t i);
#endif
