/* SPDX-License-Identifier: Apache-2.0
 *
 * Making certificates: see issue.h. Names are put together as objects, never as a line in the
 * language of openssl.cnf, in which a comma of a user's would begin another one.
 */
#include "cli/tls/issue.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "common/mem.h"
#include "common/str.h"

enum { SERIAL_BITS = 128 };

/* All of OpenSSL's own that is freed at the end. */
struct making {
    const struct issue *i;
    X509 *x;
    EVP_PKEY *key;
    BIGNUM *serial;
};

static bool
add_part(X509_NAME *name, int nid, const char *value)
{
    return str_empty(value) || X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8,
                                                          (const unsigned char *)value, -1, -1, 0);
}

static bool
set_subject(struct making *m, struct err *e)
{
    auto_mem void *tmp = mem_ctx("subject");
    const struct issue_subject *s = &m->i->subject;
    char *digits = m->i->number ? BN_bn2dec(m->serial) : NULL;
    const char *called = digits ? mem_printf(tmp, "%s %s", s->name, digits) : s->name;
    const struct {
        int nid;
        const char *option, *value;
    } parts[] = {{NID_countryName, "country", s->country},
                 {NID_stateOrProvinceName, "province", s->province},
                 {NID_localityName, "locality", s->locality},
                 {NID_streetAddress, "street-address", s->street},
                 {NID_postalCode, "postal-code", s->postal_code},
                 {NID_organizationName, "organization", s->organization},
                 {NID_organizationalUnitName, "organizational-unit", s->unit},
                 {NID_commonName, "common-name", called}};

    OPENSSL_free(digits);
    X509_NAME *name = X509_get_subject_name(m->x);
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (!add_part(name, parts[i].nid, parts[i].value)) {
            err_set(e, -ERR_INVALID, "-%s \"%s\" cannot be in a certificate: %s", parts[i].option,
                    parts[i].value,
                    parts[i].nid == NID_countryName ? "a country has two letters, as \"DE\""
                                                    : "too long, or no text");
            return false;
        }
    return X509_set_issuer_name(m->x, m->i->ca ? X509_get_subject_name(m->i->ca->x509) : name) == 1;
}

/* Adds an extension by words that are ours alone. */
static bool
add_known(struct making *m, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, m->i->ca ? m->i->ca->x509 : m->x, m->x, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = ext && X509_add_ext(m->x, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok;
}

static GENERAL_NAME *
name_new(int type, const void *p, size_t n)
{
    GENERAL_NAME *g = GENERAL_NAME_new();
    ASN1_STRING *s = ASN1_STRING_type_new(type == GEN_DNS ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);
    if (!g || !s || !ASN1_STRING_set(s, p, (int)n)) {
        GENERAL_NAME_free(g);
        ASN1_STRING_free(s);
        return NULL;
    }
    GENERAL_NAME_set0_value(g, type, s);
    return g;
}

static bool
push_name(GENERAL_NAMES *all, GENERAL_NAME *g)
{
    if (g && sk_GENERAL_NAME_push(all, g) > 0)
        return true;
    GENERAL_NAME_free(g);
    return false;
}

static bool
push_address(GENERAL_NAMES *all, const char *text)
{
    unsigned char bytes[16];
    if (inet_pton(AF_INET, text, bytes) == 1)
        return push_name(all, name_new(GEN_IPADD, bytes, 4));
    return inet_pton(AF_INET6, text, bytes) == 1 &&
           push_name(all, name_new(GEN_IPADD, bytes, sizeof(bytes)));
}

static bool
add_names(struct making *m)
{
    const struct issue *i = m->i;
    GENERAL_NAMES *all = GENERAL_NAMES_new();
    bool ok = all != NULL;

    for (size_t k = 0; ok && k < i->dns.n; k++)
        ok = push_name(all, name_new(GEN_DNS, i->dns.v[k], strlen(i->dns.v[k])));
    for (size_t k = 0; ok && k < i->ips.n; k++)
        ok = push_address(all, i->ips.v[k]);
    ok = ok && X509_add1_ext_i2d(m->x, NID_subject_alt_name, all, 0, 0) == 1;
    GENERAL_NAMES_free(all);
    return ok;
}

static bool
add_permitted(struct making *m)
{
    NAME_CONSTRAINTS *all = NAME_CONSTRAINTS_new();
    bool ok = all && (all->permittedSubtrees = sk_GENERAL_SUBTREE_new_null()) != NULL;

    for (size_t k = 0; ok && k < m->i->permitted.n; k++) {
        const char *domain = m->i->permitted.v[k];
        GENERAL_SUBTREE *sub = GENERAL_SUBTREE_new();
        GENERAL_NAME *g = name_new(GEN_DNS, domain, strlen(domain));
        ok = sub && g && sk_GENERAL_SUBTREE_push(all->permittedSubtrees, sub) > 0;
        if (ok) {
            GENERAL_NAME_free(sub->base);
            sub->base = g;
        } else {
            GENERAL_SUBTREE_free(sub);
            GENERAL_NAME_free(g);
        }
    }
    ok = ok && X509_add1_ext_i2d(m->x, NID_name_constraints, all, 1, 0) == 1;
    NAME_CONSTRAINTS_free(all);
    return ok;
}

static bool
add_extensions(struct making *m)
{
    bool ca = !m->i->ca;

    return add_known(m, NID_key_usage,
                     ca ? "critical,digitalSignature,keyCertSign,cRLSign"
                        : "critical,digitalSignature,keyEncipherment") &&
           (ca || add_known(m, NID_ext_key_usage, "serverAuth,clientAuth")) &&
           add_known(m, NID_basic_constraints, ca ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
           add_known(m, NID_subject_key_identifier, "hash") &&
           add_known(m, NID_authority_key_identifier, "keyid:always") &&
           (m->i->permitted.n == 0 || add_permitted(m)) &&
           (m->i->dns.n + m->i->ips.n == 0 || add_names(m));
}

static bool
set_dates(struct making *m)
{
    time_t now = (time_t)m->i->now_s;
    return X509_time_adj_ex(X509_getm_notBefore(m->x), 0, 0, &now) &&
           X509_time_adj_ex(X509_getm_notAfter(m->x), (int)m->i->days, 0, &now);
}

static bool
making_run(struct making *m, struct err *e)
{
    m->x = X509_new();
    m->serial = BN_new();
    m->key = EVP_EC_gen("P-256");
    if (!m->x || !m->serial || !m->key ||
        !BN_rand(m->serial, SERIAL_BITS - 1, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) ||
        !BN_to_ASN1_INTEGER(m->serial, X509_get_serialNumber(m->x)) ||
        !X509_set_version(m->x, X509_VERSION_3) || !X509_set_pubkey(m->x, m->key) ||
        !set_dates(m) || !set_subject(m, e) || !add_extensions(m))
        return false;
    return X509_sign(m->x, m->i->ca ? m->i->ca_key->key : m->key, EVP_sha256()) > 0;
}

static const char *
bio_text(const void *ctx, BIO *b)
{
    char *p;
    long n = BIO_get_mem_data(b, &p);
    return mem_strndup(ctx, p, (size_t)n);
}

static bool
making_print(const void *ctx, const struct making *m, const char **ret_cert, const char **ret_key)
{
    BIO *cert = BIO_new(BIO_s_mem()), *key = BIO_new(BIO_s_secmem());
    bool ok = cert && key && PEM_write_bio_X509(cert, m->x) == 1 &&
              PEM_write_bio_PrivateKey_traditional(key, m->key, NULL, NULL, 0, NULL, NULL) == 1;
    if (ok) {
        *ret_cert = bio_text(ctx, cert);
        *ret_key = bio_text(ctx, key);
    }
    BIO_free(cert);
    BIO_free(key);
    return ok;
}

int
issue_make(const void *ctx, const struct issue *i, const char **ret_cert, const char **ret_key,
           struct err *e)
{
    struct making m = {.i = i};
    char why[160] = "out of memory";

    if (!making_run(&m, e) || !making_print(ctx, &m, ret_cert, ret_key)) {
        unsigned long code = ERR_peek_last_error();
        if (code)
            ERR_error_string_n(code, why, sizeof(why));
        err_set(e, -ERR_INTERNAL, "cannot make a certificate: %s", why);
    }
    ERR_clear_error();
    X509_free(m.x);
    EVP_PKEY_free(m.key);
    BN_free(m.serial);
    return e->code;
}
