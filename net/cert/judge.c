/* SPDX-License-Identifier: Apache-2.0
 *
 * Judging certificates as the other end of a connection will: dates, key, chain, names.
 */
#include <inttypes.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"
#include "net/cert/cert.h"

enum { DAY_S = 24 * 60 * 60 };

struct judge {
    const void *ctx;
    const struct cert_set *s;
    int64_t now_s;
    struct str_list *errors, *warnings;
};

static const char *
cert_called(const struct cert *c)
{
    return str_or(c->name, str_or(c->subject, "without a name"));
}

/* Returns whether the dates say yes. */
static bool
judge_dates(struct judge *j, const struct cert *c, const char *what)
{
    const char *text = NULL;

    if (c->from_s > j->now_s)
        text = mem_printf(j->ctx, "%s \"%s\" is not valid before %s: wait, or set the clock right",
                          what, cert_called(c), cert_time(j->ctx, c->from_s));
    else if (c->until_s < j->now_s)
        text = mem_printf(j->ctx, "%s \"%s\" has expired at %s: make a new one", what,
                          cert_called(c), cert_time(j->ctx, c->until_s));
    if (text) {
        list_add(j->ctx, *j->errors, text);
        return false;
    }
    if (c->until_s - j->now_s < (int64_t)CERT_WARN_DAYS * DAY_S)
        list_add(j->ctx, *j->warnings,
                 mem_printf(j->ctx, "%s \"%s\" expires at %s, in %" PRId64 " days", what,
                            cert_called(c), cert_time(j->ctx, c->until_s),
                            (c->until_s - j->now_s) / DAY_S));
    return true;
}

/* Says why the chain was refused; `c` is the certificate at which it broke. */
static const char *
chain_error(struct judge *j, int code, const struct cert *own, X509 *at)
{
    struct cert_list lists[] = {j->s->chain, j->s->cas};
    const struct cert *c = own;

    for (size_t k = 0; k < ARRAY_LEN(lists); k++)
        for (size_t i = 0; at && i < lists[k].n; i++)
            if (X509_cmp(lists[k].v[i]->x509, at) == 0)
                c = lists[k].v[i];
    switch (code) {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return mem_printf(j->ctx,
                          "certificate \"%s\" is signed by \"%s\", which is not among the CAs",
                          cert_called(c), str_or(c->issuer_name, c->issuer));
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
        return mem_printf(j->ctx, "certificate \"%s\" is signed by itself and not among the CAs",
                          cert_called(c));
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
        return mem_printf(j->ctx,
                          "certificate \"%s\" names \"%s\" as its CA, whose key did not sign it",
                          cert_called(c), str_or(c->issuer_name, c->issuer));
    case X509_V_ERR_INVALID_PURPOSE:
        return mem_printf(
            j->ctx,
            "certificate \"%s\" is not made for both ends of a connection (its extended "
            "key usage)",
            cert_called(c));
    case X509_V_ERR_PERMITTED_VIOLATION:
    case X509_V_ERR_EXCLUDED_VIOLATION:
        return mem_printf(j->ctx, "certificate \"%s\" bears a name that its CA may not sign for",
                          cert_called(own));
    default:
        return mem_printf(j->ctx, "certificate \"%s\": %s", cert_called(c),
                          X509_verify_cert_error_string(code));
    }
}

static STACK_OF(X509) * cert_stack(const struct cert_list *l, size_t from)
{
    STACK_OF(X509) *all = sk_X509_new_null();
    for (size_t i = from; all && i < l->n; i++)
        (void)sk_X509_push(all, l->v[i]->x509);
    return all;
}

/* Returns whether the chain holds for one end of a connection. */
static bool
judge_chain(struct judge *j, int purpose)
{
    const struct cert *own = j->s->chain.v[0];
    STACK_OF(X509) *cas = cert_stack(&j->s->cas, 0), *between = cert_stack(&j->s->chain, 1);
    X509_STORE_CTX *x = X509_STORE_CTX_new();
    X509_STORE *store = X509_STORE_new();
    bool ok =
        cas && between && x && store && X509_STORE_CTX_init(x, store, own->x509, between) == 1;

    if (ok) {
        X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(x);
        X509_STORE_CTX_set0_trusted_stack(x, cas);
        (void)X509_STORE_CTX_set_purpose(x, purpose);
        X509_VERIFY_PARAM_set_time(p, (time_t)j->now_s);
        X509_VERIFY_PARAM_set_depth(p, CERT_CHAIN_MAX);
        (void)X509_VERIFY_PARAM_set_flags(p, X509_V_FLAG_PARTIAL_CHAIN);
        ok = X509_verify_cert(x) == 1;
    }
    if (!ok)
        list_add(j->ctx, *j->errors,
                 chain_error(j, x ? X509_STORE_CTX_get_error(x) : X509_V_ERR_OUT_OF_MEM, own,
                             x ? X509_STORE_CTX_get_current_cert(x) : NULL));
    X509_STORE_CTX_free(x);
    X509_STORE_free(store);
    sk_X509_free(cas);
    sk_X509_free(between);
    ERR_clear_error();
    return ok;
}

void
cert_judge(const void *ctx, const struct cert_set *s, int64_t now_s, struct str_list *errors,
           struct str_list *warnings)
{
    struct judge j = {ctx, s, now_s, errors, warnings};
    bool dates = true;

    ASSERT(s->chain.n > 0);
    for (size_t i = 0; i < s->chain.n; i++)
        dates &= judge_dates(&j, s->chain.v[i], i ? "certificate of a CA" : "certificate");
    if (s->key && !cert_fits_key(s->chain.v[0], s->key))
        list_add(ctx, *errors,
                 mem_printf(ctx, "the key is not that of certificate \"%s\"",
                            cert_called(s->chain.v[0])));
    if (!dates || s->cas.n == 0)
        return;
    if (judge_chain(&j, X509_PURPOSE_SSL_SERVER))
        (void)judge_chain(&j, X509_PURPOSE_SSL_CLIENT);
}

bool
cert_has_name(const struct cert *c, const char *dns)
{
    return X509_check_host(c->x509, dns, strlen(dns), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, NULL) ==
           1;
}
