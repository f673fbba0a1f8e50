/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates, lists of revoked ones (X.509, RFC 5280) and private keys, from texts in PEM that
 * come from outside, and all that would make others refuse them. No file is opened and no
 * connection made here. Any thread, an object by one at a time.
 */
#ifndef PADDOCK_NET_CERT_CERT_H
#define PADDOCK_NET_CERT_CERT_H

#include <openssl/evp.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>

#include "codec/codec.h"
#include "common/err.h"

enum {
    CERT_NAMES_MAX = 1024,     /* names of a certificate that are read */
    CERT_KEY_BITS_MAX = 16384, /* of a key */
    CERT_CHAIN_MAX = 10,       /* certificates between one and its root */
    CERT_WARN_DAYS = 30        /* before the end of one */
};

/* A certificate and what it says; control characters in texts are tamed. */
struct cert {
    X509 *x509;                     /* owned */
    const char *subject, *issuer;   /* "CN=server.global.nomad,O=..." */
    const char *name, *issuer_name; /* their common names, "" without */
    const char *serial;             /* decimal */
    struct str_list dns, ips;       /* the subject's alternative names */
    struct str_list permitted;      /* domains that a CA may sign for; none: all */
    int64_t from_s, until_s;        /* since the epoch */
    bool ca;
    size_t line; /* in its text, from 1 */
};
struct cert_list {
    struct cert **v;
    size_t n;
};

struct cert_key {
    EVP_PKEY *key; /* owned */
};

/* Reads all certificates of a text, in its order, and passes other blocks over. None:
 * -ERR_NOT_FOUND. */
int cert_read(const void *ctx, const char *text, size_t n, struct cert_list *ret, struct err *e);
/* Reads the first private key of a text; none: -ERR_NOT_FOUND. An encrypted one is refused, as
 * nobody is there to ask. */
int cert_read_key(const void *ctx, const char *text, size_t n, struct cert_key **ret,
                  struct err *e);
bool cert_fits_key(const struct cert *c, const struct cert_key *k);

/* A CA's list of those of its certificates that it has revoked. */
struct cert_crl {
    X509_CRL *crl; /* owned */
    const char *issuer;
    int64_t next_s; /* since the epoch: a newer list is due; 0: nobody knows */
    size_t line;
};
struct cert_crl_list {
    struct cert_crl **v;
    size_t n;
};

/* Reads all lists of a text, and passes other blocks over. None: -ERR_NOT_FOUND. Each must be
 * signed by one of the CAs, and say nothing that is not understood here. */
int cert_read_crls(const void *ctx, const char *text, size_t n, const struct cert_list *cas,
                   struct cert_crl_list *ret, struct err *e);
/* Returns since when a certificate is revoked, in seconds since the epoch; 0: it is not. A list
 * that is older than it should be holds on. Any thread, also several at once. */
int64_t cert_revoked_s(const struct cert_crl_list *l, const X509 *x);

/* The certificate that an agent or a command presents, and whom it trusts. */
struct cert_set {
    struct cert_list chain;     /* the own one, then those between it and its CA */
    struct cert_list cas;       /* none: nobody asks who signed */
    const struct cert_key *key; /* NULL: nobody asks whether it fits */
};

/* Adds to `errors` why others would refuse the set at that time, and to `warnings` why they soon
 * will; texts are owned by ctx. The chain is not empty. */
void cert_judge(const void *ctx, const struct cert_set *s, int64_t now_s, struct str_list *errors,
                struct str_list *warnings);

/* Returns whether the certificate bears the name, itself or by a wildcard. */
bool cert_has_name(const struct cert *c, const char *dns);
/* "2027-11-29 22:22:51 +0000 UTC" */
const char *cert_time(const void *ctx, int64_t s);

#endif
