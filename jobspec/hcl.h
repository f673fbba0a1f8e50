/* SPDX-License-Identifier: Apache-2.0
 *
 * HCL for everybody: parse a file into a body, decode a body into a struct by its field table, and
 * the diagnostics of both. Pure: names, bytes and values come in, trees and texts come out.
 *
 * Everything returned, texts of diagnostics too, is owned by the `ctx` of the call that made it.
 */
#ifndef PADDOCK_JOBSPEC_HCL_H
#define PADDOCK_JOBSPEC_HCL_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/codec.h"
#include "jobspec/limits.h"

/* Named limits (doc: paddock-job(5)). */

enum {
    HCL_LOOSE = 1 << 0,    /* HCL1 habits of agent configuration: commas, `=` before a block body,
                            * blocks as objects or lists of objects, a string where a list of one is
                            * meant, "true" for true */
    HCL_JSON = 1 << 1,     /* the JSON form of a body (implies the freedoms of HCL_LOOSE) */
    HCL_LITERAL = 1 << 2,  /* no functions or variables: "${…}" stays as it is written */
    HCL_TEMPLATES = 1 << 3 /* texts of the JSON form are templates, as those in quotes are in HCL */
};

struct hcl_diag {
    bool warning;
    /* "web.hcl:3,5-12: Unsupported argument; An argument named \"x\" is not expected here.", then
     * the source line and a caret line. */
    const char *text;
};

struct hcl_diags {
    struct hcl_diag v[HCL_DIAGS_MAX];
    size_t n;
    size_t errors; /* all that were seen, kept or not */
};

#define HCL_DIAGS_INIT                                                                             \
    {                                                                                              \
        {{false, NULL}}, 0, 0                                                                      \
    }

/* All diagnostics (errors only, or warnings too), one paragraph each; "" when there are none. */
char *hcl_diags_text(const void *ctx, const struct hcl_diags *d, bool warnings);

struct hcl_body;

/* 0, or -ERR_INVALID / -ERR_LIMIT with at least one diagnostic. `text` must live as long as
 * ctx. */
int hcl_parse(const void *ctx, const char *name, struct slice text, unsigned flags,
              struct hcl_body **ret, struct hcl_diags *d);

/* The file in its canonical layout, as hclwrite and `nomad fmt` have it, is appended to `out`: only
 * blanks change. Columns are counted in code points. As hcl_parse() where it is not valid. */
struct buf;
int hcl_format(const void *ctx, const char *name, const char *s, size_t n, struct buf *out,
               struct hcl_diags *d);

/* Decodes by field table: unknown names are errors with a suggestion, F_LATER fields that are not
 * at their default are errors, F_REQUIRED ones must be there. Defaults are not filled in. Reports
 * as many errors as it finds. `flags` as given to hcl_parse. */
int hcl_decode(const void *ctx, const struct hcl_body *body, const struct type *t, unsigned flags,
               void **ret, struct hcl_diags *d);

#endif
