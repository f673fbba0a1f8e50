/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters between a stream and the socket that carries it (TLS; one of the tests), as other rooms
 * see them: what is handed to whoever dials or listens. How one works: transport_int.h.
 */
#ifndef PADDOCK_NET_FILTER_H
#define PADDOCK_NET_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;
struct transport;

/* A connection, as its filter gets to know it. Strings are valid during the call. */
struct filter_use {
    struct loop *loop;
    bool accepted;        /* the other side dialled */
    const char *peer;     /* its address, for words */
    const char *name;     /* dialled: who is wanted there; NULL: whoever is */
    const char *protocol; /* is spoken over it; both sides name the same */
    const uint8_t *p;     /* bytes of the filter that have come over the carrier already */
    size_t n;
};

struct filter {
    /* Puts a filter on a carrier, which is connected and not read, and takes it. The filter tells
     * its upper side `connected` once, when it carries bytes or cannot. */
    struct transport *(*wrap)(void *arg, struct transport *carrier, const struct filter_use *u);
    void *arg;
};

/* How others are dialled. */
struct dialer {
    struct loop *loop;
    const struct filter *filter; /* NULL: plain; borrowed, also by what is made of the dialer */
    bool falls_back; /* RPC: who closes before the filter is through is dialled without it, once */
    const char *from; /* a numeric address of this machine to connect from; NULL: any */
    bool outside;     /* HTTP: no address of a link or of a metadata service is connected to */
    const char *name; /* who is wanted there, for the filter; NULL: whoever is, or the host's */
};

#endif
