/* SPDX-License-Identifier: Apache-2.0
 *
 * The kinds of objects that people make by name: a line `object` of api/schema each
 * (build-aux/gen-codec). All of a kind but its check is made from that line: table, entries of the
 * log, methods, routes, search. Pure.
 */
#ifndef PADDOCK_API_OBJECT_H
#define PADDOCK_API_OBJECT_H

#include <stdbool.h>

#include "api/api.h"
#include "common/err.h"

struct object_kind {
    const struct type *type; /* has Hash, CreateIndex, ModifyIndex, and its key: */
    const char *key;         /* "Name" */
    const char *table;       /* "node_pools": of the state, and in searches */
    const char *words;       /* "node pool" */
    /* Says whether it may be stored, or, with its name alone, deleted. */
    int (*check)(const void *obj, bool deleted, struct err *e);
};

/* Returns the kind that the method writes; NULL: it is no method of objects. */
const struct object_kind *object_kind_of(enum rpc_id id);
/* Returns the kind of a type that has a line `object`. */
const struct object_kind *object_kind(const struct type *type);
const char *object_key(const struct object_kind *k, const void *obj);
/* Says whether the row is one that all regions share: it has no member Global, or is. */
bool object_is_shared(const struct object_kind *k, const void *obj);

/* Checks what all kinds have: at most OBJECT_TEXT_MAX bytes of a description, OBJECT_META_MAX
 * entries and OBJECT_META_BYTES_MAX bytes of metadata (NULL: it has none). */
int object_check_texts(const char *description, const struct str_map *meta, struct err *e);

/* Checks a name of 1 to OBJECT_NAME_MAX letters, digits and '-'. */
int object_check_name(const char *name, struct err *e);

/* The checks of the kinds, a function each. */
#define OBJECT(TABLE, id, type, ...)                                                               \
    int type##_check(const struct type *obj, bool deleted, struct err *e);
API_OBJECTS(OBJECT)
#undef OBJECT

#endif
