/* SPDX-License-Identifier: Apache-2.0
 *
 * A client in a small world: a real warden with real shims (tests/isolation/rig), and servers that
 * are a table of allocations behind the in-process RPC client.
 */
#ifndef PADDOCK_TESTS_CLIENT_WORLD_H
#define PADDOCK_TESTS_CLIENT_WORLD_H

#include "client/client.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/uuid.h"
#include "net/loop.h"
#include "net/rpc.h"
#include "tests/isolation/rig.h"

enum { WORLD_ALLOCS = 128 };

struct world_alloc {
    struct allocation *a;    /* what the servers want */
    struct allocation *last; /* the last report; NULL: none */
    unsigned reports;
    bool listed;
    bool too_large; /* to be sent */
    struct service_set_request *names; /* what was told last; NULL: nothing */
    unsigned told;                     /* how often a set was taken */
    size_t fewest;                     /* services in a set since it was set to SIZE_MAX */
};

struct world {
    struct rig rig;
    struct loop *loop;
    struct rpc_client *rpc;
    struct client *client;
    struct warden_client *warden;
    struct client_config cfg;
    struct agent_client agent; /* of cfg */
    void *ctx;
    struct world_alloc allocs[WORLD_ALLOCS];
    size_t n;
    uint64_t index;
    struct rpc_call *parked;
    unsigned registrations, heartbeats, updates;
    unsigned gets, jobs_sent;
    size_t per_get; /* allocations sent at once; 0: all */
    enum { UP_TO_DATE, NO_NODE, NO_ALLOC, OLDER_ALLOC } lag; /* of all but the leader */
    int fail_heartbeat; /* code of the next heartbeat's error; 0: none */
    int fail_update;
    int fail_names[2]; /* codes of the next errors of Service.Set, the last first */
    unsigned asked_names;
    struct node *node;
    char secret[UUID_TEXT]; /* of the node, as its calls prove */
    /* draining */
    int fail_drain;               /* code of the next request's error */
    int64_t drain_deadline;       /* of the last request; -99: none came */
    struct rpc_call *drain_watch; /* the read of the node that waits for the drain's end */
};

/* The rig's directories; no client yet. `uid` as rig_start. */
void world_start(struct world *w, unsigned uid);
void world_stop(struct world *w);
void world_client(struct world *w);      /* makes and starts one */
void world_client_stop(struct world *w); /* as an agent that goes down */
void world_client_free(struct world *w); /* its last part: client_stop() is done */
/* An allocation of one task "t": driver, JSON of its config, and what its group has besides (JSON
 * members with a comma in front, or ""). */
struct world_alloc *world_add(struct world *w, const char *type, const char *driver,
                              const char *config, const char *group);
/* A shell script under raw_exec. */
struct world_alloc *world_script(struct world *w, const char *type, const char *script);
/* One more of the same job. */
struct world_alloc *world_another(struct world *w, const struct world_alloc *of);
void world_drained(struct world *w); /* the servers say that the drain is complete */
void world_changed(struct world *w, struct world_alloc *x); /* new index; wakes the list call */
void world_wake(struct world *w); /* answers the list call as it is */
void world_turn(struct world *w); /* a few milliseconds of the loop */
/* Turns until `cond`; fails the test after 15 s. */
#define world_until(w, cond)                                                   \
    do {                                                                       \
        int64_t _end = clock_mono_ns() + 15 * NS_PER_S;                        \
        while (!(cond)) {                                                      \
            ck_assert_msg(clock_mono_ns() < _end, "never came: %s", #cond);    \
            world_turn(w);                                                     \
        }                                                                      \
    } while (0)

const struct task_state *
world_task(const struct world_alloc *x); /* of the last report; may be NULL */
/* The last of that type; NULL: none. */
const struct task_event *world_event(const struct world_alloc *x, const char *type);
bool world_status(const struct world_alloc *x, const char *status);
/* Number of lines of a file below the allocation's directory; -1: no file. */
int world_lines(const struct world *w, const struct world_alloc *x, const char *path);
/* A call that ends in a client_done: waits for it; 0 or the error's code. */
struct world_done {
    bool done;
    struct err e;
};
void world_on_done(void *arg, const struct err *e);
/* Reads a stream to its end; owned by w->ctx. */
char *world_read(struct world *w, const struct client_stream_request *req);

#endif
