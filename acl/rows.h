/* SPDX-License-Identifier: Apache-2.0
 *
 * The labelled rules of several policies as rows of a table, one after the other. Pure.
 */
#ifndef PADDOCK_ACL_ROWS_H
#define PADDOCK_ACL_ROWS_H

#include "acl/acl.h"
#include "acl/match.h"

struct rows {
    struct match_row *v;
    const char **policies; /* of each row */
    size_t n;
};

/* The rows of `kind`, which is one with names: ACL_NAMESPACE ... ACL_VARIABLE. The label of a
 * variable is namespace, zero byte, path. Owned by ctx; labels may be those of `v`. */
void rows_collect(const void *ctx, const struct acl_source *v, size_t n, enum acl_kind kind,
                  struct rows *ret);
/* The bits of a list of capabilities; names that are not known have none. */
uint64_t rows_caps(enum acl_kind kind, const struct str_list *caps);
/* A variable's label; *n are its bytes. */
char *rows_variable(const void *ctx, const char *space, const char *path, size_t *n);

#endif
