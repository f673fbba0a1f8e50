/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection to the warden: made, watched, and made again when it breaks; and what the warden
 * said of itself.
 */
#ifndef PADDOCK_CLIENT_WARDEN_LINK_H
#define PADDOCK_CLIENT_WARDEN_LINK_H

#include "client/ground.h"
#include "isolation/bpf/read.h"

struct link_events {
    void (*up)(void *arg); /* requests can be made, again */
    /* After `up`: the warden told what it can do; also when it cannot be talked to, and when
     * `trouble` begins or ends. */
    void (*info)(void *arg);
};

struct link { /* strings are owned */
    struct ground *g;
    const struct link_events *events;
    void *arg;
    struct watch *watch;
    struct timer *timer;
    struct timer *patience; /* runs while the warden is away, or something waits for its answer */
    uint64_t heard;         /* of the client, when that timer began */
    bool pinged;
    int64_t retry_ms;
    int64_t since_ns;      /* monotonic */
    int64_t refused;       /* the version of its protocol that was complained of */
    int keep[WARDEN_KEEP]; /* kept open for the warden: isolation/bpf/rows.h; -1 */
    /* for others to read */
    bool up;
    const char *trouble; /* why nothing can be started, since a second or more; static; or NULL */
    bool informed;       /* its info was asked for and came */
    bool root;
    bool raw_exec; /* its policy allows it */
    char *missing;
    char *cgroup;
    char *bridge;             /* of network mode bridge; where the fact "bridge" is true */
    struct str_map *facts;    /* what works here, and why not; a context of its own; NULL before */
    struct bpf_read counters; /* what tasks send and receive, their processes and disks do */
};

struct link *link_new(struct ground *g, const struct link_events *events, void *arg);
void link_start(struct link *k);
void link_stop(struct link *k);
/* Closes what is kept open for the warden and read of it. */
void link_close(struct link *k);
/* The warden has another policy: `info` comes. */
void link_reload(struct link *k);
/* A fact that the warden told; NULL: none. */
const char *link_fact(const struct link *k, const char *name);

#endif
