/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding of bodies by field table; what job.c adds to hcl_decode().
 */
#ifndef PADDOCK_JOBSPEC_DECODE_H
#define PADDOCK_JOBSPEC_DECODE_H

#include "jobspec/ast.h"
#include "jobspec/eval.h"

struct decoder;

/* The hooks of a language beyond its field tables. All may be NULL. */
struct decode_hooks {
    /* An attribute or block that the table does not know: 1 taken, 0 unknown, -1 after a
     * diagnostic. */
    int (*attr)(struct decoder *dc, const struct type *t, void *obj, const struct attr *a,
                const struct hcl_scope *sc);
    int (*block)(struct decoder *dc, const struct type *t, void *obj, const struct block *b,
                 const struct hcl_scope *sc);
    /* The names that hooks take, for suggestions; NULL-terminated, or NULL. */
    const char *const *(*names)(const struct type *t);
};

struct decoder {
    const void *ctx;
    struct hcl_sink *sink;
    unsigned flags;
    struct hcl_eval *ev;
    const struct decode_hooks *hooks;
    size_t blocks;
    bool later; /* fields that have no effect yet are taken: who registers the job refuses them */
};

/* Decodes a block as decode_body does, labels too. */
bool decode_block(struct decoder *dc, const struct block *b, const struct hcl_scope *sc,
                  const struct type *t, void *obj);

/* decode_set.c: one value into one field. */
bool decode_set(struct decoder *dc, const struct field *f, void *obj, const struct value *v,
                const struct hcl_range *r);
/* One entry of a map field. */
bool decode_map_entry(struct decoder *dc, const struct field *f, void *obj, const char *key,
                      const struct value *v, const struct hcl_range *r);
bool decode_at_default(const struct field *f, const void *obj);

#endif
