/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two halves of the machine share: members and what is said of them (swim.c), and who is
 * asked (probe.c). Private to server/gossip.
 */
#ifndef PADDOCK_SERVER_GOSSIP_SWIM_INT_H
#define PADDOCK_SERVER_GOSSIP_SWIM_INT_H

#include "server/gossip/swim.h"

#define NEVER INT64_MAX
enum { ACCUSERS_MAX = 2, RELAYS_MAX = 64 };

struct member {
    uint64_t id;
    const struct server_hello *about;
    size_t about_size; /* encoded */
    enum member_state state;
    uint32_t incarnation;
    uint64_t by; /* whose word the state is */
    int64_t since;
    int64_t heard; /* or asked */
    unsigned told; /* how often its news is still to be told */
    bool near; /* of our region */
    struct suspicion {
        int64_t begun, least, most, until;
        unsigned wanted, n;
        uint64_t accusers[ACCUSERS_MAX + 1];
    } suspicion;
};

/* The members of one distance: who was not heard for the longest time is asked. */
struct lane {
    const struct swim_profile *p;
    bool near;
    uint64_t urgent; /* asked next; 0: the turn goes on */
    int64_t next;
    uint64_t began; /* the round that our last question began; 0: it began none, or another server
                       did, too */
    struct question {
        uint64_t token, target; /* token 0: none is open */
        int64_t ask, end;
        bool asked; /* others, too */
        unsigned nacks_due, nacks;
    } q;
};

/* A question that another member had us ask. */
struct relay {
    uint64_t token, target; /* 0: free */
    uint64_t from, from_token;
    char *from_addr, *addr;
    int64_t nack, end;
};

struct swim {
    struct member **v; /* this server first */
    size_t n;
    struct lane lanes[2];
    struct relay relays[RELAYS_MAX];
    uint64_t rng;
    unsigned without; /* SWIM_WITHOUT_ */
    int64_t t, real; /* our clock, which stands while we stand; that of the caller */
    bool begun;      /* there was a call: `real` is set */
    bool left;
    int64_t spread, sync, again; /* when they are due; NEVER: not */
    struct swim_figures figures;
};

/* --- swim.c --- */
uint64_t swim_random(struct swim *s);
struct member *swim_find(const struct swim *s, uint64_t id);
void swim_health(struct swim *s, int by);
/* `by` says that it does not answer. */
void swim_accuse(struct swim *s, struct member *m, uint64_t by, struct swim_out *out);
/* The packet goes, with what news there is. */
void swim_put(struct swim *s, struct swim_out *out, const struct packet *p, const char *addr);
/* Up to `max` of those members that `fits`, by chance. */
size_t swim_choose(struct swim *s,
                   bool (*fits)(const struct swim *s, const struct member *m, uint64_t not ),
                   uint64_t not, struct member **ret, size_t max);

/* --- probe.c --- */
void probe_begin(struct swim *s); /* the lanes */
/* Asks again what is open for member `id`. */
void probe_again(struct swim *s, uint64_t id, struct swim_out *out);
/* There is somebody to ask, perhaps that one at once. */
void probe_wake(struct swim *s, const struct member *m, bool urgent);
void probe_void(struct swim *s); /* what was asked does not count */
int64_t probe_due(const struct swim *s);
void probe_tick(struct swim *s, struct swim_out *out);
void probe_take(struct swim *s, const struct packet *p, const char *from, struct swim_out *out);

#endif
