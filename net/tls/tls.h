/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS 1.2 and 1.3 by OpenSSL, as filters (net/filter.h) for those who dial and listen.
 *
 * A struct tls is an agent's, or a command's: its certificate, its key, whom it trusts, and the
 * rules. Everybody holds the same one, counted; tls_renew() gives it other texts, which hold for
 * connections to come. Any thread.
 *
 * RPC (and whatever servers speak among themselves) is mutual: each side must present a certificate
 * that a CA of the texts has signed. With verify_server_hostname a server is one whose certificate
 * bears server.<region>.nomad: such a name is wanted of who is dialled, and of who dials for Raft.
 * The rights to methods of RPC are asked for there (server/call/authorize.c).
 * HTTP asks for a certificate of who dials with verify_https_client only, and who comes back may
 * resume its session by a ticket, for TLS_TICKET_S and until the next renewal.
 *
 * A handshake has TLS_HANDSHAKE_MS; of one address TLS_HANDSHAKES run at once, the others wait.
 * A failure is told once a second in the log, with the peer, the certificate's subject and the
 * cure, and to who dialled by stream_why().
 */
#ifndef PADDOCK_NET_TLS_TLS_H
#define PADDOCK_NET_TLS_TLS_H

#include <stdbool.h>

#include "common/err.h"
#include "net/filter.h"

struct tls;

/* Texts in PEM and rules; all is copied, NULL is none. */
struct tls_config {
    const char *ca;   /* CAs, as many as there are; none: those of the machine */
    const char *cert; /* the own certificate, then those between it and its CA */
    const char *key;
    const char *crl;         /* lists of certificates that CAs of `ca` have revoked */
    const char *min_version; /* "tls12", "tls13"; NULL: "tls12" */
    const char *ciphers;     /* of TLS 1.2, Nomad's names with commas; NULL: ours */
    const char *region;      /* the own one; NULL: "global" */
    const char *own_name;    /* a name that the own certificate must bear; NULL: any */
    bool prefer_own_ciphers;
    bool verify_server_hostname;
    bool verify_https_client;
    bool skip_verify; /* of commands: takes any certificate of who is dialled */
    bool quiet;       /* of commands: nothing is logged */
};

/* NULL with an error: a text is damaged, the key is another one's, a certificate has expired, is
 * revoked, or is not signed by a CA of the texts. */
struct tls *tls_new(const struct tls_config *cfg, struct err *e);
/* Takes other texts and rules for connections to come; those there are live on, but for whose
 * certificate a list of them revokes. < 0: they would be refused, and nothing changes. */
int tls_renew(struct tls *t, const struct tls_config *cfg, struct err *e);
struct tls *tls_ref(struct tls *t);
void tls_unref(struct tls *t); /* NULL is fine */

/* Borrowed, and the same all the time: live as long as `t`. NULL gives NULL. */
const struct filter *tls_rpc(struct tls *t);
const struct filter *tls_http(struct tls *t);

#endif
