/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks of PEM (RFC 7468) in a text from outside: bounded and strict. Between blocks there may be
 * any text, as `openssl x509 -text` writes it; in a block there is base64 and nothing else. Pure.
 */
#ifndef PADDOCK_NET_CERT_PEM_H
#define PADDOCK_NET_CERT_PEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum {
    PEM_TEXT_MAX = 1 << 20,   /* bytes of a text */
    PEM_BLOCK_MAX = 64 << 10, /* bytes that a block decodes to */
    PEM_BLOCKS_MAX = 1024,    /* blocks of a text */
    PEM_LABEL_MAX = 64        /* bytes of "CERTIFICATE" */
};

struct pem_reader {
    const char *p, *end;
    size_t line, blocks;
};

struct pem_block {
    char label[PEM_LABEL_MAX + 1];
    size_t line;   /* on which it begins, from 1 */
    bool headers;  /* lines as old encrypted keys have them: nothing is decoded */
    uint8_t *data; /* owned by the context of pem_next() */
    size_t n;
};

/* The text stays the caller's, and must outlive the reader. */
int pem_init(struct pem_reader *r, const char *text, size_t n, struct err *e);
/* 1: *ret is the next block; 0: there is none; < 0: `e` says what is wrong in which line. */
int pem_next(const void *ctx, struct pem_reader *r, struct pem_block *ret, struct err *e);

#endif
