/* SPDX-License-Identifier: Apache-2.0
 *
 * Who is there: SWIM (Das, Gupta, Motivala, "SWIM", DSN 2002) with Lifeguard (Dadgar, Phillips,
 * Currey, "Lifeguard: local health awareness for more accurate failure detection", 2017). Pure:
 * time and chance are arguments, packets and events are what comes back.
 *
 * Each server pings another one each second: whom it has not heard for the longest time. One that
 * does not answer is asked for by others; then it is suspect, which it hears first and may deny by
 * a greater incarnation of its own; then failed. News goes with pings and answers, and in packets
 * of its own while there is some. Servers of the own region and of others are two lanes with times
 * of their own.
 *
 * What keeps a server that gets no processor time from a wrong verdict:
 *  - Time in which it stood still does not count: when it is called later than it asked for, its
 *  clock
 *    goes on from there, questions under way are void, and suspects get another round.
 *  - Lifeguard: one that stood still, misses answers, or is itself suspected, waits longer
 *  (`health`). - A suspect that few accuse gets longer; who hears of a suspect asks it too.
 */
#ifndef PADDOCK_SERVER_GOSSIP_SWIM_H
#define PADDOCK_SERVER_GOSSIP_SWIM_H

#include "server/gossip/packet.h"

struct swim;

/* Times in ms. */
struct swim_profile {
    int64_t interval;    /* from one ping to the next */
    int64_t timeout;     /* an answer, before others are asked */
    int64_t suspect_min; /* a suspect that others accuse, too, until it has failed; times log10 of
                            members */
};
extern const struct swim_profile swim_lan, swim_wan;

enum {
    SWIM_HEALTH_MAX = 8,
    SWIM_SUSPECT_FACTOR = 4, /* longest time of a suspect to the shortest */
    SWIM_LATE_MS = 100,      /* later than that: it stood still */
    SWIM_EARLY_MS = 500,     /* a ping that is due so soon goes when one comes, */
    SWIM_SLACK_MS = 100,     /* and the one behind it waits so much longer for another round */
    SWIM_SPREAD_MS = 200,    /* from one packet of news to the next, */
    SWIM_SPREAD_N = 3,       /* to so many */
    SWIM_ASKED_N = 3,        /* others asked about one that does not answer */
    SWIM_TOLD_FACTOR = 8,    /* news is told so often, times log10 of members */
    SWIM_SYNC_MS = 30000,    /* from one exchange of all to the next */
    SWIM_AGAIN_MS = 10000,   /* the same, with one that failed */
    SWIM_LATELY_MS =
        30000, /* news of that age is told to who did not hear; who failed is told so */
    SWIM_REAP_MS = 24 * 3600 * 1000, /* one that failed or left is forgotten */
};

/* The parts whose worth bench/gossip measures: without it, wrong verdicts are more. */
enum {
    SWIM_WITHOUT_STALLS = 1,
    SWIM_WITHOUT_HEALTH = 2,
    SWIM_WITHOUT_DYNAMIC = 4, /* a suspect gets the shortest time, whoever accuses it */
    SWIM_WITHOUT_BUDDY = 8,
};

struct swim_opts {
    const struct server_hello *self; /* cloned; its ID is ours */
    uint32_t incarnation; /* greater than in the life before: seconds of the wall clock */
    uint64_t seed;
    unsigned without; /* 0 but in bench/gossip */
};

struct swim_send {
    uint64_t to;
    const char *addr; /* its gossip address */
    bool sync;        /* `p` is not set: exchange everything with it, over a connection */
    struct packet p;  /* without session and sequence number */
};

enum swim_change { SWIM_JOIN, SWIM_UPDATE, SWIM_FAILED, SWIM_LEAVE, SWIM_REAP };

struct swim_event {
    enum swim_change change;
    const struct server_hello *about;
};

/* The effects of a call; members are owned by ctx, which the caller gives and frees. */
struct swim_out {
    void *ctx;
    struct { struct swim_send *v; size_t n; } sends;
    struct { struct swim_event *v; size_t n; } events;
};

/* -ERR_INVALID: `self` would be refused by others. */
int swim_new(const void *ctx, const struct swim_opts *o, struct swim **ret, struct err *e);
/* `now` in all of them: monotonic ms. What is due. */
void swim_tick(struct swim *s, int64_t now, struct swim_out *out);
/* When the next tick is due; INT64_MAX: never. */
int64_t swim_next(const struct swim *s, int64_t now);
/* A packet that is new (guard.h). */
void swim_take(struct swim *s, int64_t now, const struct packet *p, const char *from,
               struct swim_out *out);
/* Says whether an answer was asked for. */
bool swim_awaits(const struct swim *s, const struct packet *p);
/* Repeats all for a server, at `from`, that did not know us: what was told and asked there lately
 * is told and asked again. */
void swim_again(struct swim *s, uint64_t id, const char *from, struct swim_out *out);
/* Everything that is known, for an exchange, in packets of at most GOSSIP_PACKET_MAX. */
struct swim_sync { struct packet *v; size_t n; };
void swim_all(struct swim *s, const void *ctx, uint64_t to, struct swim_sync *ret);
/* Sets what this server says of itself from now on. */
void swim_set_self(struct swim *s, int64_t now, const struct server_hello *self,
                   struct swim_out *out);
/* This server leaves: it says so, and is not asked any more. */
void swim_leave(struct swim *s, int64_t now, struct swim_out *out);
/* A failed member counts as one that left; `prune`: a member that failed or left is not shown any
 * more. */
void swim_force(struct swim *s, int64_t now, uint64_t id, bool prune, struct swim_out *out);

struct swim_member {
    const struct server_hello *about; /* valid until the next call */
    enum member_state state;
    uint32_t incarnation;
};
/* All of them, this server first. Owned by ctx. */
struct swim_member *swim_members(const struct swim *s, const void *ctx, size_t *ret_n);

struct swim_figures {
    unsigned health;      /* 0: well */
    uint64_t stalls;      /* how often it stood still */
    uint64_t denied;      /* how often it was suspected, and denied that */
    uint64_t foreign;     /* members of another cluster in this region that were refused */
    uint64_t full;        /* members that were one too many */
    uint64_t foreign_id;  /* the last of those, */
    const char *foreign_name; /* and its name; NULL: none */
};
const struct swim_figures *swim_figures(const struct swim *s);

#endif
