/* SPDX-License-Identifier: Apache-2.0
 *
 * Structural difference of two described objects, as `job plan` shows it. Generic: what a room does
 * with names and special cases is in its `struct diff_rules`. Objects that do not differ give NULL.
 *
 * Scalars become fields with texts (durations in ns, as in JSON; absent is ""); maps of scalars
 * become fields "Meta[key]"; values are flattened the same way ("args[0]"); lists of strings are
 * sets; lists of structs with a F_KEY field are matched by it, others are sets of whole elements.
 * Fields and objects are sorted by name. F_SERVER fields do not count, F_SECRET ones show as
 * "<sensitive>".
 */
#ifndef PADDOCK_CODEC_DIFF_H
#define PADDOCK_CODEC_DIFF_H

#include "codec/codec.h"

enum diff_type { DIFF_NONE, DIFF_ADDED, DIFF_DELETED, DIFF_EDITED };

struct diff_field {
    enum diff_type type;
    const char *name;
    const char *old, *new; /* never NULL */
};
struct diff_field_list { struct diff_field **v; size_t n; };

struct diff_object;
struct diff_object_list { struct diff_object **v; size_t n; };

struct diff_object {
    enum diff_type type;
    const char *name;
    struct diff_field_list fields;
    struct diff_object_list objects;
};

struct diff_rules {
    bool contextual; /* unchanged fields of changed objects too */
    /* True: leave this field of this type out. May be NULL. */
    bool (*skip)(const struct type *t, const struct field *f);
    /* Name of the object made of a field's element ("Constraint" of Constraints); NULL: wire name.
     */
    const char *(*name)(const struct type *t, const struct field *f);
};

/* Either of old and new may be NULL (added, deleted), not both. All is owned by ctx. */
struct diff_object *diff_structs(const void *ctx, const struct diff_rules *r, const char *name,
                                 const struct type *t, const void *old, const void *new);
const char *diff_type_name(enum diff_type t); /* "None", "Added", "Deleted", "Edited" */

#endif
