/* SPDX-License-Identifier: Apache-2.0
 *
 * Making certificates: a key of P-256 and a certificate for it, as texts in PEM, signed by itself
 * or by a CA.
 */
#ifndef PADDOCK_CLI_TLS_ISSUE_H
#define PADDOCK_CLI_TLS_ISSUE_H

#include "common/err.h"
#include "net/cert/cert.h"

enum { ISSUE_DAYS_MAX = 36500, ISSUE_NAME_MAX = 64 /* bytes of a common name (RFC 5280) */ };

/* The parts of a subject; NULL or "": not in it. */
struct issue_subject {
    const char *country, *province, *locality, *street, *postal_code, *organization, *unit, *name;
};

struct issue {
    struct issue_subject subject;
    bool number;               /* the serial number follows the name */
    int64_t now_s, days;       /* from when on, and for how long */
    struct str_list permitted; /* of a CA: the only domains that it may sign for; none: all */
    struct str_list dns, ips;
    struct cert *ca; /* NULL: a CA, signed by itself */
    const struct cert_key *ca_key;
};

/* Texts are owned by ctx; the key is to be kept from others. */
int issue_make(const void *ctx, const struct issue *i, const char **ret_cert, const char **ret_key,
               struct err *e);

#endif
