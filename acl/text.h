/* SPDX-License-Identifier: Apache-2.0
 *
 * The text of a policy as a tree of blocks, texts and lists, whatever it means: HCL of the first
 * version, as policies use it, or JSON. Pure.
 */
#ifndef PADDOCK_ACL_TEXT_H
#define PADDOCK_ACL_TEXT_H

#include <stddef.h>

#include "acl/limits.h"
#include "codec/codec.h"
#include "common/err.h"

enum text_kind {
    TEXT_STRING,
    TEXT_LIST, /* of texts */
    TEXT_BLOCK,
    TEXT_OTHER, /* a number, a bool, null */
};

struct text_node {
    const char *key;
    const char *label; /* NULL: none */
    enum text_kind kind;
    unsigned line;      /* 0: of JSON */
    const char *string; /* also how another value is written */
    struct str_list list;
    struct text_node *first, *next; /* children; siblings in their order */
};

/* *ret is a block without a key, owned by ctx. -ERR_INVALID with words that have the line. */
int text_parse(const void *ctx, const char *text, size_t n, struct text_node **ret, struct err *e);

#endif
