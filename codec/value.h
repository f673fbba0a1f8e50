/* SPDX-License-Identifier: Apache-2.0
 *
 * A dynamic value: what has no schema (driver config) and what HCL expressions evaluate to. A tree
 * owned by one talloc context; values are immutable once shared. Numbers are int64 or double, never
 * converted silently with loss.
 */
#ifndef PADDOCK_CODEC_VALUE_H
#define PADDOCK_CODEC_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum value_kind {
    VALUE_NULL,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_MAP,
    VALUE_BIG /* a number of jobspec/number.h, which leaves that room as one of the others */
};

struct bignum;

struct value;

struct value_pair {
    const char *k;
    struct value *v;
};

struct value {
    enum value_kind kind;
    uint32_t form; /* of jobspec/: bits of a number, type of a collection; 0 elsewhere */
    union {
        bool b;
        int64_t i;
        double f;
        const struct bignum *big;
        struct {
            const char *s; /* NUL-terminated; may hold no inner NUL */
            size_t n;
        } str;
        struct {
            struct value **v;
            size_t n;
        } list;
        struct {
            struct value_pair *v; /* insertion order kept; keys unique */
            size_t n;
        } map;
    };
};

struct value *value_null(const void *ctx);
struct value *value_bool(const void *ctx, bool b);
struct value *value_int(const void *ctx, int64_t i);
struct value *value_float(const void *ctx, double f);
struct value *value_str(const void *ctx, const char *s);
struct value *value_strn(const void *ctx, const char *s, size_t n);
struct value *value_list(const void *ctx);
struct value *value_map(const void *ctx);
/* The child must be owned by the same context or live longer. Amortised O(1). */
void value_list_add(struct value *list, struct value *child);
/* Replaces an existing key. O(n) look-up: maps from outside are bounded by the decoder. */
void value_map_set(struct value *map, const char *key, struct value *child);
/* NULL when absent or `map` is not a map. */
struct value *value_get(const struct value *map, const char *key);
/* Returns a text of the map, "" where there is none. */
const char *value_get_str(const struct value *map, const char *key);
struct value *value_clone(const void *ctx, const struct value *v);
/* Maps compare as sets of pairs; 1 and 1.0 are equal. NULL equals VALUE_NULL. */
bool value_equal(const struct value *a, const struct value *b);
/* -1, 0, 1: a total order for sorting and diffs. */
int value_compare(const struct value *a, const struct value *b);
const char *
value_kind_name(enum value_kind k); /* "string", "number", "bool", "list", "map", "null" */

/* Pointers to the pairs in key order; the caller frees the array. */
const struct value_pair **value_map_sorted(const struct value *map);
/* A key that an insertion-ordered value map holds twice, or NULL. */
const char *value_map_duplicate(const struct value *map);

/* An integral double that int64 holds exactly. */
static inline bool
float_is_int(double f)
{
    return f >= -9223372036854775808.0 && f < 9223372036854775808.0 && f == (double)(int64_t)f;
}

#endif
