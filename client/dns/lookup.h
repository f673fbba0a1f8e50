/* SPDX-License-Identifier: Apache-2.0
 *
 * Services by name, as the servers know them: a blocking query for each name that somebody asked
 * for of late. So a question costs the servers something only the first time. While no server
 * answers, names are told as they were last.
 *
 * Bounded: LOOKUP_MAX are kept, those that were not asked for longest go first, names without
 * instances sooner; and LOOKUP_NEW_MAX new ones are asked for in a second, whoever makes them up.
 */
#ifndef PADDOCK_CLIENT_DNS_LOOKUP_H
#define PADDOCK_CLIENT_DNS_LOOKUP_H

#include "client/dns/zone.h"
#include "client/ground.h"

enum {
    LOOKUP_MAX = 256,
    LOOKUP_NEW_MAX = 100,  /* in a second */
    LOOKUP_WAIT_MS = 3000, /* for the first answer of a server: resolvers wait for 5 s */
    LOOKUP_WAITS_MAX = 1024
};

struct lookup;

struct lookup_wait { /* of whoever asks */
    struct lookup_wait *prev, *next;
    struct name *of; /* NULL: it does not wait */
    /* Comes once, as lookup_get() would answer by now. */
    void (*found)(struct lookup_wait *w, const struct zone_set *set);
};

struct lookup *lookup_new(struct ground *g); /* owned by it */
/* True: *ret is what is known, good until the next turn of the loop, NULL: nothing can be. False: a
 * server is asked, for which lookup_wait() waits. */
bool lookup_get(struct lookup *ns, const struct zone_service *s, const struct zone_set **ret);
/* At once after that. */
void lookup_wait(struct lookup *ns, const struct zone_service *s, struct lookup_wait *w);
void lookup_unwait(struct lookup_wait *w); /* also when it does not wait */
void lookup_stop(struct lookup *ns);

#endif
