/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of certificates and keys, as the commands read and write them.
 */
#ifndef PADDOCK_CLI_TLS_FILES_H
#define PADDOCK_CLI_TLS_FILES_H

#include "cli/command.h"
#include "net/cert/cert.h"

/* A new certificate with its key, and where they go. */
struct tls_pair {
    const char *kind, *key_kind; /* "Server Certificate", "Server Certificate key" */
    const char *colon;           /* between them and the file's name */
    const char *cert_path, *key_path;
    const char *cert, *key; /* PEM */
};

/* These say what is wrong, then return false or NULL. */
const char *tls_read_text(struct cmd *c, const char *what, const char *path, size_t *ret_n);
bool tls_read_certs(struct cmd *c, const char *what, const char *path, struct cert_list *ret);
struct cert_key *tls_read_key(struct cmd *c, const char *what, const char *path);
/* Nothing is there yet under the names of the pair. */
bool tls_pair_free(struct cmd *c, const struct tls_pair *p);
/* Writes both, the key for its owner alone, over nothing that exists. */
bool tls_pair_write(struct cmd *c, const struct tls_pair *p);
/* A command of one argument: shows the certificates of a file, of CAs with what they may sign, of
 * others with their names. Returns the exit code. */
int tls_info(struct cmd *c, const char *what, bool of_cas);
/* The text may be a part of a file's name and of a DNS name. */
bool tls_name_valid(const char *s);
#endif
