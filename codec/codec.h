/* SPDX-License-Identifier: Apache-2.0
 *
 * The codec: const field tables (generated from api/schema by build-aux/gen-codec) and one
 * interpreter that reads, writes, clones, compares, hashes, diffs, defaults and checks any struct
 * they describe. It knows no type by name.
 *
 * Layout of a described struct, by (shape, type, flags):
 *
 *   one   bool, int64_t, uint64_t, double, int64_t (duration: ns), int64_t (time: ns since epoch),
 *         const char * (string), struct bytes, struct value *, struct X *
 *   one + F_OPT (scalars)   struct opt_bool / opt_i64 / opt_f64: absent differs from zero
 *   list  struct { E *v; size_t n; }               v == NULL is null, n == 0 with v != NULL is []
 *   map   struct { struct { const char *k; E v; } *v; size_t n; }   sorted by k (strcmp), unique
 *
 * where E is the C type of the element; a struct element is always a pointer. String NULL is
 * "absent" and prints as "" in JSON. A decoder leaves no NULL string and no NULL struct inside a
 * list or map.
 *
 * Ownership: everything a decoder or codec_clone makes is owned, flat, by the returned object; its
 * strings share blocks and are no talloc chunks of their own. So free or steal the returned object
 * only, never a part of it; to keep a part longer, codec_clone that part. Adding to it is fine
 * (list_add, map_put, str_map_set, new strings), with the object as context. Objects are immutable
 * once shared between threads.
 */
#ifndef PADDOCK_CODEC_CODEC_H
#define PADDOCK_CODEC_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "codec/limits.h"
#include "codec/value.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/mem.h"

struct opt_bool { bool set; bool v; };
struct opt_i64 { bool set; int64_t v; };
struct opt_f64 { bool set; double v; };
struct bytes { const uint8_t *v; size_t n; };

struct str_list { const char **v; size_t n; };
struct i64_list { int64_t *v; size_t n; };
struct f64_list { double *v; size_t n; };
struct str_pair { const char *k; const char *v; };
struct str_map { struct str_pair *v; size_t n; };
struct i64_map { struct { const char *k; int64_t v; } *v; size_t n; };
struct f64_map { struct { const char *k; double v; } *v; size_t n; };
struct bool_map { struct { const char *k; bool v; } *v; size_t n; };
struct value_map { struct { const char *k; struct value *v; } *v; size_t n; };
struct strs_map { struct { const char *k; struct str_list v; } *v; size_t n; };

enum field_type {
    FT_BOOL, FT_INT, FT_UINT, FT_FLOAT, FT_DURATION, FT_TIME, FT_STRING, FT_BYTES, FT_VALUE,
    FT_STRUCT, FT_STRINGS /* struct str_list, as a map element only */
};
enum field_shape { FS_ONE, FS_LIST, FS_MAP };

enum {
    F_OPT = 1 << 0,     /* scalar whose absence differs from zero; null in JSON */
    F_OMIT = 1 << 1,    /* JSON: left out when empty */
    F_ATTR = 1 << 2,    /* HCL attribute `hcl` */
    F_BLOCK = 1 << 3,   /* HCL block `hcl`; a map may be an attribute as well */
    F_LABEL = 1 << 4,   /* HCL: taken from the block's label */
    F_KEY = 1 << 5,     /* identifies an element of a list (diff, map-by-label); implied by label */
    F_SERVER = 1 << 6,  /* set by the server: ignored by equality of specs and by diff */
    F_SECRET = 1 << 7,  /* never logged, diffed as <sensitive> */
    F_INPLACE = 1 << 8, /* a change updates the allocation in place; otherwise it replaces it */
    F_LATER = 1 << 9,   /* known, no effect yet: must stay at its default (codec_list_later) */
    F_REQUIRED = 1 << 10, /* must be present in HCL */
    F_DEPRECATED = 1 << 11,
    F_BOX = 1 << 12,  /* of a task: only a driver that isolates can give it (isolation_box) */
    F_FULL = 1 << 13, /* JSON: {} or [] when empty, where another list or map is null */
    F_UNSAID =
        1 << 14 /* Nomad's command line writes it otherwise when it was not said: JSON_UNSAID */
};

struct type;

struct field {
    const char *wire;       /* JSON name */
    const char *hcl;        /* HCL name, NULL: not in HCL */
    const char *dflt;       /* default as text ("300", "30s", "fail"), NULL: none */
    const struct type *sub; /* FT_STRUCT */
    uint64_t max;           /* bytes of a string, elements of a list or map; 0: codec limit */
    uint32_t offset;
    uint16_t id;            /* msgpack key; permanent, never reused, 1..32767 */
    uint16_t flags;
    uint8_t type;           /* enum field_type */
    uint8_t shape;          /* enum field_shape */
    uint8_t wire_len;
};

struct type {
    const char *name; /* wire name, "TaskGroup" */
    size_t size;
    const struct field *fields; /* in schema order */
    size_t n_fields;
    const uint16_t *by_wire; /* indexes of fields sorted by wire name (ASCII case-insensitive) */
    const uint16_t *by_id;   /* sorted by id */
    bool one_of;             /* a union: exactly one of its objects is set (codec_member) */
};

enum {
    JSON_PRETTY = 1 << 0, /* four-space indentation, as Nomad's ?pretty */
    JSON_NO_OMIT = 1 << 1,
    JSON_HIDE_SECRETS = 1 << 2, /* F_SECRET fields are written empty */
    JSON_UNSAID = 1 << 3 /* of empty F_UNSAID fields scalars are null and objects left out; F_OMIT
                            ones are there */
};

/* Field by wire name, case-insensitively as Nomad's JSON; NULL when unknown. */
const struct field *type_field(const struct type *t, const char *wire, size_t len);
/* Field by HCL name. */
const struct field *type_field_hcl(const struct type *t, const char *hcl);
void *type_new(const void *ctx, const struct type *t);
/* The address in an object of the member of that wire name; NULL when its type has none. */
void *type_member(const struct type *t, const void *obj, const char *wire);

/* --- JSON --- */
/* RFC 8259, exact int64; durations as integer ns, or as Go text when reading; times as RFC 3339;
 * bytes as base64. Errors name the path ("Job.TaskGroups[0].Count"), line and column. */
int json_decode(const void *ctx, const struct type *t, struct slice text, struct budget *b,
                void **ret, struct err *e);
/* The same, but an unknown field is an error with a suggestion. */
int json_decode_strict(const void *ctx, const struct type *t, struct slice text, struct budget *b,
                       void **ret, struct err *e);
/* A JSON list of objects (null: none). Any list of structs can be cast to and from it; ret->v, a
 * talloc chunk of ctx, owns everything. */
struct object_list { void **v; size_t n; };
int json_decode_list(const void *ctx, const struct type *t, struct slice text, struct budget *b,
                     struct object_list *ret, struct err *e);
void json_encode(struct buf *out, const struct type *t, const void *obj, unsigned flags);
/* A list of objects: "[...]" (never null). */
void json_encode_list(struct buf *out, const struct type *t, const void *const *objs, size_t n,
                      unsigned flags);
/* An element of such a list, with a comma before it, also before the first. */
void json_encode_row(struct buf *out, const struct type *t, const void *obj, unsigned flags);
int json_decode_value(const void *ctx, struct slice text, struct budget *b, struct value **ret,
                      struct err *e);
void json_encode_value(struct buf *out, const struct value *v, unsigned flags);
void json_put_string(struct buf *out, const char *s, size_t n); /* quoted and escaped */

/* --- msgpack --- */
/* Objects are maps from field id to value; zero, NULL and unset fields are left out; unknown ids
 * are skipped (forward compatibility). */
int mp_decode(const void *ctx, const struct type *t, struct slice in, struct budget *b, void **ret,
              struct err *e);
/* The same, but an unknown id of the outermost object is -ERR_UNSUPPORTED, named: it says more than
 * we can do; and a union with none or several of its objects is -ERR_INVALID. */
int mp_decode_strict(const void *ctx, const struct type *t, struct slice in, struct budget *b,
                     void **ret, struct err *e);
/* Writes an object. A value that mp_decode() would refuse (over a limit of the schema or of the
 * codec) is not written: the buffer's error is -ERR_INVALID. codec_check() has the words for what
 * the schema limits. */
void mp_encode(struct buf *out, const struct type *t, const void *obj);

/* --- generic operations --- */
void *codec_clone(const void *ctx, const struct type *t, const void *obj); /* deep; NULL -> NULL */
/* Deep equality. `ignore`: fields with any of these flags do not count. NULL and "" are equal, and
 * so are null and empty lists and maps; an absent struct or optional scalar differs from a zero
 * one. */
bool codec_equal(const struct type *t, const void *a, const void *b, unsigned ignore);
/* True when every difference between a and b lies in fields (at any depth) flagged F_INPLACE (or
 * F_SERVER). */
bool codec_equal_but_inplace(const struct type *t, const void *a, const void *b);
uint64_t codec_hash(const struct type *t, const void *obj, unsigned ignore); /* XXH3; stable */
/* Fills absent fields that have a default (depth first, only into objects that exist). */
void codec_defaults(const void *ctx, const struct type *t, void *obj);
/* String and element limits of the schema. */
int codec_check(const struct type *t, const void *obj, struct err *e);
/* F_LATER fields that are not at their default: appends a line per path in HCL
 * ("group \"web\": task \"x\": template, artifact"). */
void codec_list_later(const void *ctx, const struct type *t, const void *obj, struct str_list *ret);
/* The id of the one object that is set in a union; 0: none is, or several. */
unsigned codec_member(const struct type *t, const void *obj);
/* The members that go from `src` to `dst`: fields of the same name and kind, the value of an
 * optional scalar, and for a bool whether the struct of that name is there. Made once for many
 * objects. */
struct projection;
const struct projection *projection_new(const void *ctx, const struct type *dst,
                                        const struct type *src);
/* A new object of `dst`, owned by ctx. The object shares what `src` refers to and must not outlive
 * `src`. */
void *codec_project(const void *ctx, const struct projection *p, const void *src);
/* A projection as JSON without decoding what it is made of. Made once for many objects: of an
 * encoded `src` only the members that `needs` names (separated by spaces) are decoded; of `dst`
 * those that `makes` names are taken from a struct, and the others are written from the bytes. It
 * belongs to one thread. */
struct lean;
struct lean *lean_new(const void *ctx, const struct type *dst, const struct type *src,
                      const char *needs, const char *makes);
/* A new object of `src`, owned by ctx, with the members that are needed. The bytes must stay until
 * it is written. */
int lean_open(const void *ctx, struct lean *l, struct slice in, struct budget *b, void **ret,
              struct err *e);
/* Returns the text of a key in a map of strings of the opened object that was not decoded; NULL: it
 * is not there. Owned by ctx. */
const char *lean_text(const void *ctx, const struct lean *l, const char *wire, const char *key);
/* Write, as json_encode and json_encode_row do, an object of `dst`, of which the members that are
 * made count. */
void lean_write(struct buf *out, const struct lean *l, const void *obj, unsigned flags);
void lean_write_row(struct buf *out, const struct lean *l, const void *obj, unsigned flags);
/* True for zero, NULL, "", null, empty list or map, unset. */
bool codec_field_empty(const struct field *f, const void *obj);

/* Maps are sorted arrays. `codec_map_get` returns the address of the element or NULL. */
void *codec_map_find(const void *map, size_t stride, const char *key);
#define map_get(m, key)                                                       \
    ({                                                                        \
        __auto_type _m = &(m);                                                \
        (__typeof__(_m->v))codec_map_find(_m, sizeof(*_m->v), (key));         \
    })
/* Adds or finds `key` in a map being built, keeping it sorted; returns the element (value zeroed
 * when new). The array and a copy of the key are owned by ctx. */
void *codec_map_put(const void *ctx, void *map, size_t stride, const char *key);
#define map_put(ctx, m, key)                                                      \
    ({                                                                            \
        __auto_type _mp = &(m);                                                   \
        (__typeof__(_mp->v))codec_map_put((ctx), _mp, sizeof(*_mp->v), (key));    \
    })
/* Appends to any list field: list_add(ctx, job->task_groups, tg). */
#define list_add(ctx, l, elem)                                                        \
    do {                                                                              \
        __auto_type _l = &(l);                                                        \
        if ((_l->n & (_l->n - 1)) == 0)                                               \
            _l->v = mem_realloc((ctx), (void *)_l->v, sizeof(*_l->v),                 \
                                _l->n ? _l->n * 2 : 1, "list");                       \
        _l->v[_l->n++] = (elem);                                                      \
    } while (0)
bool str_list_has(const struct str_list *l, const char *s);
const char *str_map_get(const struct str_map *m, const char *key); /* NULL when absent */
void str_map_set(const void *ctx, struct str_map *m, const char *key, const char *val);

#endif
