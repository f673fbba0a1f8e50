/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of certificates and keys: any bytes to the reader of PEM, to those of certificates, lists of
 * revoked ones and keys, and to the judge. Oracles: blocks are within their limits and in order; a
 * certificate fits the key that it was made of alone; what is read once is read again as the same.
 */
#include <stdint.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/cert/cert.h"
#include "net/cert/pem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
read_blocks(const void *ctx, const char *text, size_t n)
{
    struct pem_reader r;
    struct pem_block b;
    struct err e = ERR_INIT;
    size_t line = 0, blocks = 0;
    int rc = pem_init(&r, text, n, &e);

    while (rc == 0 && (rc = pem_next(ctx, &r, &b, &e)) > 0) {
        ASSERT(b.line > line && ++blocks <= PEM_BLOCKS_MAX);
        ASSERT(strlen(b.label) <= PEM_LABEL_MAX && b.n <= PEM_BLOCK_MAX);
        line = b.line;
        rc = 0;
    }
    ASSERT(rc == 0 || (rc == e.code && e.text[0]));
}

static void
judge(const void *ctx, const struct cert_list *l, const struct cert_key *key)
{
    struct cert_set s = {.chain = *l, .cas = *l, .key = key};
    struct str_list errors = {NULL, 0}, warnings = {NULL, 0};

    cert_judge(ctx, &s, INT64_C(1795262400), &errors, &warnings);
    for (size_t i = 0; i < l->n; i++) {
        const struct cert *c = l->v[i];
        ASSERT(c->x509 && c->subject && c->serial && c->issuer_name);
        (void)cert_has_name(c, "server.global.nomad");
        (void)cert_time(ctx, c->until_s);
    }
}

static void
read_crls(const void *ctx, const char *text, const struct cert_list *l)
{
    struct cert_crl_list crls = {NULL, 0};
    struct err e = ERR_INIT;

    if (cert_read_crls(ctx, text, strlen(text), l, &crls, &e) < 0)
        ASSERT(e.code < 0 && e.text[0] && crls.n == 0);
    for (size_t i = 0; i < l->n; i++)
        ASSERT(crls.n > 0 || cert_revoked_s(&crls, l->v[i]->x509) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    auto_mem void *ctx = mem_ctx("fuzz");
    const char *text = mem_strndup(ctx, (const char *)data, n);
    struct cert_list l = {NULL, 0}, again;
    struct cert_key *key = NULL;
    struct err e = ERR_INIT, k = ERR_INIT;

    read_blocks(ctx, (const char *)data, n);
    if (cert_read_key(ctx, text, strlen(text), &key, &k) < 0)
        ASSERT(k.code < 0 && k.text[0] && !key);
    if (cert_read(ctx, text, strlen(text), &l, &e) < 0) {
        ASSERT(e.code < 0 && e.text[0] && l.n == 0);
        return 0;
    }
    ASSERT(cert_read(ctx, text, strlen(text), &again, &e) == 0 && again.n == l.n);
    judge(ctx, &l, key);
    read_crls(ctx, text, &l);
    return 0;
}
