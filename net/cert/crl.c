/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of revoked certificates: see cert.h. OpenSSL parses, checks signatures and looks numbers
 * up; what a list may say is decided here.
 */
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "common/mem.h"
#include "net/cert/cert_int.h"
#include "net/cert/pem.h"

static int
crl_free(struct cert_crl *c)
{
    X509_CRL_free(c->crl);
    return 0;
}

/* Returns whether an extension changes the meaning of a list: a part of the certificates, or those
 * of another CA. */
static bool
crl_is_special(const X509_CRL *crl)
{
    for (int i = 0; i < X509_CRL_get_ext_count(crl); i++)
        if (X509_EXTENSION_get_critical(X509_CRL_get_ext(crl, i)))
            return true;
    return false;
}

static bool
crl_is_signed(const struct cert_crl *c, const struct cert_list *cas)
{
    const X509_NAME *issuer = X509_CRL_get_issuer(c->crl);

    for (size_t i = 0; i < cas->n; i++) {
        X509 *ca = cas->v[i]->x509;
        if (X509_NAME_cmp(issuer, X509_get_subject_name(ca)) == 0 &&
            X509_CRL_verify(c->crl, X509_get0_pubkey(ca)) == 1)
            return true;
    }
    return false;
}

static int
crl_parse(struct cert_crl *c, const struct pem_block *b, const struct cert_list *cas,
          struct err *e)
{
    const unsigned char *p = b->data;

    c->line = b->line;
    c->crl = d2i_X509_CRL(NULL, &p, (long)b->n);
    if (!c->crl || p != b->data + b->n)
        return err_set(e, -ERR_INVALID, "line %zu: the list is damaged", b->line);
    c->issuer = cert_name_text(c, X509_CRL_get_issuer(c->crl));
    if (X509_CRL_get0_nextUpdate(c->crl) &&
        !cert_asn1_time(X509_CRL_get0_nextUpdate(c->crl), &c->next_s))
        return err_set(e, -ERR_INVALID, "line %zu: the list has no times", b->line);
    if (crl_is_special(c->crl))
        return err_set(e, -ERR_UNSUPPORTED,
                       "line %zu: the list of \"%.200s\" is not one of all that its CA revoked",
                       b->line, c->issuer);
    if (!crl_is_signed(c, cas))
        return err_set(e, -ERR_INVALID,
                       "line %zu: the list of \"%.200s\" is not signed by a CA of ca_file", b->line,
                       c->issuer);
    return 0;
}

int
cert_read_crls(const void *ctx, const char *text, size_t n, const struct cert_list *cas,
               struct cert_crl_list *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("crl");
    struct pem_reader r;
    struct pem_block b;
    struct cert_crl_list all = {NULL, 0};
    int rc = pem_init(&r, text, n, e);

    while (rc >= 0 && (rc = pem_next(tmp, &r, &b, e)) > 0) {
        if (strcmp(b.label, "X509 CRL") != 0 || b.headers)
            continue;
        struct cert_crl *c = mem_new(ctx, struct cert_crl);
        talloc_set_destructor(c, crl_free);
        list_add(ctx, all, c);
        rc = crl_parse(c, &b, cas, e);
    }
    ERR_clear_error();
    if (rc == 0 && all.n == 0)
        rc = err_set(e, -ERR_NOT_FOUND, "no list of revoked certificates in PEM is in it");
    if (rc == 0)
        *ret = all;
    for (size_t i = 0; rc < 0 && i < all.n; i++)
        talloc_free(all.v[i]);
    return rc;
}

int64_t
cert_revoked_s(const struct cert_crl_list *l, const X509 *x)
{
    const X509_NAME *issuer = X509_get_issuer_name(x);

    for (size_t i = 0; i < l->n; i++) {
        X509_REVOKED *rev = NULL;
        int64_t at = 1; /* it has no date: no less revoked */
        if (X509_NAME_cmp(issuer, X509_CRL_get_issuer(l->v[i]->crl)) == 0 &&
            X509_CRL_get0_by_serial(l->v[i]->crl, &rev, X509_get0_serialNumber(x)) == 1) {
            (void)cert_asn1_time(X509_REVOKED_get0_revocationDate(rev), &at);
            return at > 0 ? at : 1;
        }
    }
    return 0;
}
