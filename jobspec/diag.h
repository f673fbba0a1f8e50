/* SPDX-License-Identifier: Apache-2.0
 *
 * Positions in sources and the making of diagnostics.
 */
#ifndef PADDOCK_JOBSPEC_DIAG_H
#define PADDOCK_JOBSPEC_DIAG_H

#include <stdint.h>

#include "jobspec/hcl.h"

struct hcl_source {
    const char *name;
    const char *s;
    size_t n;
};

struct hcl_pos {
    uint32_t byte; /* from 0 */
    uint32_t line; /* from 1 */
    uint32_t col;  /* code points, from 1 */
};

struct hcl_range {
    const struct hcl_source *src; /* NULL: no position */
    struct hcl_pos start;
    struct hcl_pos end; /* the first byte after it */
};

/* The place where diagnostics go. */
struct hcl_sink {
    const void *ctx;
    struct hcl_diags *d;
    bool quiet; /* errors are counted, nothing is kept: inside try() and can() */
};

/* "name:3,5-12: Summary; Detail." with the source line and a caret. Returns -ERR_INVALID. */
int diag_error(struct hcl_sink *sink, const struct hcl_range *r, const char *summary,
               const char *detail, ...) __attribute__((format(printf, 4, 5)));
void diag_warn(struct hcl_sink *sink, const struct hcl_range *r, const char *summary,
               const char *detail, ...) __attribute__((format(printf, 4, 5)));
/* From the start of a to the end of b. */
struct hcl_range range_join(const struct hcl_range *a, const struct hcl_range *b);
/* False when one more diagnostic would not be kept: hints would be work for nothing. */
bool diag_wanted(const struct hcl_sink *sink);
/* " Did you mean "x"?" or "". Owned by the sink's context. */
const char *diag_suggest(const struct hcl_sink *sink, const char *given, const char *const *names,
                         size_t n);

#endif
