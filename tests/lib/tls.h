/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates for tests, made on the spot, and a pair of ends that trust each other.
 */
#ifndef PADDOCK_TESTS_TLS_H
#define PADDOCK_TESTS_TLS_H

#include <stdint.h>

#include "net/tls/tls.h"

struct test_pem {
    const char *cert, *key;
};

/* A CA of that name. */
struct test_pem test_ca(const void *ctx, const char *name);
/* A certificate for those names, with commas between them, signed by a CA: from now + from_s on,
 * for so many days. */
struct test_pem test_cert(const void *ctx, struct test_pem ca, const char *names, int64_t from_s,
                          int64_t days);

/* The CA's list of those that it has revoked; a newer one is due next_s seconds from now on. */
const char *test_crl(const void *ctx, struct test_pem ca, const struct test_pem *revoked, size_t n,
                     int64_t next_s);

/* Returns that of server.global.nomad, for both ends; made once, kept. */
struct tls *test_tls(void);

#endif
