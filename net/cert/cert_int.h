/* SPDX-License-Identifier: Apache-2.0
 *
 * Private to net/cert/.
 */
#ifndef PADDOCK_NET_CERT_CERT_INT_H
#define PADDOCK_NET_CERT_CERT_INT_H

#include "net/cert/cert.h"

/* Prints a name as RFC 2253 has it: its last part first. */
const char *cert_name_text(const void *ctx, const X509_NAME *name);
/* Reads a time, in seconds since the epoch; false: it is none. */
bool cert_asn1_time(const ASN1_TIME *t, int64_t *ret_s);

#endif
