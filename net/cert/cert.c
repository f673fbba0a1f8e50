/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading certificates and keys: see cert.h. OpenSSL parses, and texts and numbers are made of it
 * here, once.
 */
#include "net/cert/cert.h"
#include "net/cert/cert_int.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <time.h>

#include "common/duration.h"
#include "common/mem.h"
#include "common/str.h"
#include "net/cert/pem.h"

/* --- texts --- */

static const char *
cert_text(const void *ctx, const ASN1_STRING *s)
{
    unsigned char *utf8 = NULL;
    int n = s ? ASN1_STRING_to_UTF8(&utf8, s) : -1;
    char *text = n < 0 ? mem_strdup(ctx, "") : mem_strndup(ctx, (const char *)utf8, (size_t)n);

    if (n >= 0 && strlen(text) != (size_t)n)
        text = mem_printf(ctx, "%s?", text); /* a zero byte: another name than it looks */
    OPENSSL_free(utf8);
    str_tame(text, false);
    return text;
}

/* "CN", "O", "POSTALCODE", as Go prints them; a dotted number where there is no name. */
static const char *
attribute_name(const void *ctx, const X509_NAME_ENTRY *entry)
{
    const ASN1_OBJECT *object = X509_NAME_ENTRY_get_object(entry);
    char number[80];
    int nid = OBJ_obj2nid(object);

    if (nid == NID_undef) {
        (void)OBJ_obj2txt(number, sizeof(number), object, 1);
        return mem_strdup(ctx, number);
    }
    char *name = mem_strdup(ctx, OBJ_nid2sn(nid));
    for (char *p = name; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    return name;
}

static void
put_escaped(struct buf *b, const char *s)
{
    for (const char *p = s; *p; p++) {
        if (strchr(",+\"\\<>;", *p) || (p == s && (*p == '#' || *p == ' ')) ||
            (*p == ' ' && p[1] == '\0'))
            buf_putc(b, '\\');
        buf_putc(b, *p);
    }
}

const char *
cert_name_text(const void *ctx, const X509_NAME *name)
{
    auto_buf struct buf b = BUF_INIT(PEM_BLOCK_MAX * 4);
    auto_mem void *tmp = mem_ctx("name");

    for (int i = X509_NAME_entry_count(name) - 1; i >= 0; i--) {
        const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);
        if (b.len > 0)
            buf_putc(&b, ',');
        buf_printf(&b, "%s=", attribute_name(tmp, entry));
        put_escaped(&b, cert_text(tmp, X509_NAME_ENTRY_get_data(entry)));
    }
    return mem_strdup(ctx, buf_str(&b));
}

static const char *
common_name(const void *ctx, const X509_NAME *name)
{
    int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    return at < 0 ? "" : cert_text(ctx, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
}

static const char *
serial_text(const void *ctx, const X509 *x)
{
    BIGNUM *n = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x), NULL);
    char *digits = n ? BN_bn2dec(n) : NULL;
    char *text = mem_strdup(ctx, digits ? digits : "");

    OPENSSL_free(digits);
    BN_free(n);
    return text;
}

static const char *
address_text(const void *ctx, const ASN1_OCTET_STRING *s)
{
    char text[INET6_ADDRSTRLEN] = "";
    int n = ASN1_STRING_length(s);
    if (n == 4 || n == 16)
        (void)inet_ntop(n == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(s), text, sizeof(text));
    return mem_strdup(ctx, text);
}

bool
cert_asn1_time(const ASN1_TIME *t, int64_t *ret_s)
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(t, &tm))
        return false;
    *ret_s = (int64_t)timegm(&tm);
    return true;
}

const char *
cert_time(const void *ctx, int64_t s)
{
    struct tm tm;
    char text[64] = "";
    time_t t = (time_t)s;
    if (gmtime_r(&t, &tm))
        (void)strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S +0000 UTC", &tm);
    return mem_strdup(ctx, text);
}

/* --- certificates --- */

static int
cert_free(struct cert *c)
{
    X509_free(c->x509);
    return 0;
}

static void
read_names(struct cert *c)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(c->x509, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && i < CERT_NAMES_MAX; i++) {
        const GENERAL_NAME *g = sk_GENERAL_NAME_value(names, i);
        if (g->type == GEN_DNS)
            list_add(c, c->dns, cert_text(c, g->d.dNSName));
        else if (g->type == GEN_IPADD)
            list_add(c, c->ips, address_text(c, g->d.iPAddress));
    }
    GENERAL_NAMES_free(names);
}

static void
read_permitted(struct cert *c)
{
    NAME_CONSTRAINTS *all = X509_get_ext_d2i(c->x509, NID_name_constraints, NULL, NULL);
    for (int i = 0; all && i < sk_GENERAL_SUBTREE_num(all->permittedSubtrees) && i < CERT_NAMES_MAX;
         i++) {
        const GENERAL_NAME *g = sk_GENERAL_SUBTREE_value(all->permittedSubtrees, i)->base;
        if (g->type == GEN_DNS)
            list_add(c, c->permitted, cert_text(c, g->d.dNSName));
    }
    NAME_CONSTRAINTS_free(all);
}

static int
cert_parse(struct cert *c, const struct pem_block *b, struct err *e)
{
    const unsigned char *p = b->data;

    c->line = b->line;
    c->x509 = d2i_X509(NULL, &p, (long)b->n);
    if (!c->x509 || p != b->data + b->n)
        return err_set(e, -ERR_INVALID, "line %zu: the certificate is damaged", b->line);
    if (!cert_asn1_time(X509_get0_notBefore(c->x509), &c->from_s) ||
        !cert_asn1_time(X509_get0_notAfter(c->x509), &c->until_s))
        return err_set(e, -ERR_INVALID, "line %zu: the certificate has no times", b->line);
    const EVP_PKEY *key = X509_get0_pubkey(c->x509);
    if (!key || EVP_PKEY_get_bits(key) > CERT_KEY_BITS_MAX)
        return err_set(e, -ERR_UNSUPPORTED, "line %zu: the certificate has a key of unknown kind",
                       b->line);
    if (X509_get_extension_flags(c->x509) & EXFLAG_INVALID)
        return err_set(e, -ERR_INVALID, "line %zu: the certificate has damaged extensions",
                       b->line);
    c->ca = X509_check_ca(c->x509) > 0;
    c->subject = cert_name_text(c, X509_get_subject_name(c->x509));
    c->issuer = cert_name_text(c, X509_get_issuer_name(c->x509));
    c->name = common_name(c, X509_get_subject_name(c->x509));
    c->issuer_name = common_name(c, X509_get_issuer_name(c->x509));
    c->serial = serial_text(c, c->x509);
    read_names(c);
    read_permitted(c);
    return 0;
}

int
cert_read(const void *ctx, const char *text, size_t n, struct cert_list *ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("cert");
    struct pem_reader r;
    struct pem_block b;
    struct cert_list all = {NULL, 0};
    int rc = pem_init(&r, text, n, e);

    while (rc >= 0 && (rc = pem_next(tmp, &r, &b, e)) > 0) {
        if (strcmp(b.label, "CERTIFICATE") != 0 || b.headers)
            continue;
        struct cert *c = mem_new(ctx, struct cert);
        talloc_set_destructor(c, cert_free);
        list_add(ctx, all, c);
        rc = cert_parse(c, &b, e);
    }
    ERR_clear_error();
    if (rc == 0 && all.n == 0)
        rc = err_set(e, -ERR_NOT_FOUND, "no certificate in PEM is in it");
    if (rc == 0)
        *ret = all;
    for (size_t i = 0; rc < 0 && i < all.n; i++)
        talloc_free(all.v[i]);
    return rc;
}

/* --- keys --- */

static int
key_free(struct cert_key *k)
{
    EVP_PKEY_free(k->key);
    return 0;
}

static const struct {
    const char *label;
    int type; /* EVP_PKEY_NONE: the block says so itself */
} key_labels[] = {{"PRIVATE KEY", EVP_PKEY_NONE},
                  {"EC PRIVATE KEY", EVP_PKEY_EC},
                  {"RSA PRIVATE KEY", EVP_PKEY_RSA}};

/* 1: *ret is the key; 0: the block is none. */
static int
key_parse(const struct pem_block *b, EVP_PKEY **ret, struct err *e)
{
    const unsigned char *p = b->data;
    size_t i = 0;

    if (strcmp(b->label, "ENCRYPTED PRIVATE KEY") == 0)
        return err_set(e, -ERR_UNSUPPORTED,
                       "line %zu: the key is encrypted: store it without a "
                       "passphrase (openssl pkey -in old -out new)",
                       b->line);
    while (i < ARRAY_LEN(key_labels) && strcmp(b->label, key_labels[i].label) != 0)
        i++;
    if (i == ARRAY_LEN(key_labels))
        return 0;
    if (b->headers)
        return err_set(e, -ERR_UNSUPPORTED,
                       "line %zu: the key is encrypted: store it without a "
                       "passphrase (openssl pkey -in old -out new)",
                       b->line);
    *ret = key_labels[i].type == EVP_PKEY_NONE
               ? d2i_AutoPrivateKey(NULL, &p, (long)b->n)
               : d2i_PrivateKey(key_labels[i].type, NULL, &p, (long)b->n);
    if (*ret && EVP_PKEY_get_bits(*ret) <= CERT_KEY_BITS_MAX)
        return 1;
    EVP_PKEY_free(*ret);
    return err_set(e, -ERR_INVALID, "line %zu: the key is damaged, or of unknown kind", b->line);
}

int
cert_read_key(const void *ctx, const char *text, size_t n, struct cert_key **ret, struct err *e)
{
    auto_mem void *tmp = mem_ctx("key");
    struct pem_reader r;
    struct pem_block b;
    EVP_PKEY *key = NULL;
    int rc = pem_init(&r, text, n, e);

    while (rc == 0) {
        rc = pem_next(tmp, &r, &b, e);
        if (rc == 0)
            rc = err_set(e, -ERR_NOT_FOUND, "no private key in PEM is in it");
        if (rc < 0)
            break;
        rc = key_parse(&b, &key, e);
        OPENSSL_cleanse(b.data, b.n);
    }
    ERR_clear_error();
    if (rc < 0)
        return rc;
    *ret = mem_new(ctx, struct cert_key);
    (*ret)->key = key;
    talloc_set_destructor(*ret, key_free);
    return 0;
}

bool
cert_fits_key(const struct cert *c, const struct cert_key *k)
{
    bool fits = EVP_PKEY_eq(X509_get0_pubkey(c->x509), k->key) == 1;
    ERR_clear_error();
    return fits;
}
