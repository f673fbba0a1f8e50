/* SPDX-License-Identifier: Apache-2.0
 *
 * The other end of a connection, as far as it has proved itself: by a certificate, or by being this
 * process.
 */
#ifndef PADDOCK_NET_IDENTITY_H
#define PADDOCK_NET_IDENTITY_H

enum peer_kind {
    PEER_OTHER,  /* anybody */
    PEER_NODE,   /* a client of a region */
    PEER_SERVER, /* a server of a region */
};

struct peer_identity {
    enum peer_kind kind;
    const char *name;   /* of its certificate, "local" in this process; "": it has none */
    const char *region; /* of a node or a server; "": in this process, or unknown */
    const char *names;  /* of a node: the other names of its certificate, "a,b"; "": none */
};

#endif
