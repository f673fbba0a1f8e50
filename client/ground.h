/* SPDX-License-Identifier: Apache-2.0
 *
 * What the modules of the client stand on. Everything lives on the loop's thread.
 *
 *   struct hold         counts what is under way for an object; a hold above counts it as well
 *   struct ground       of the client: handles as client_new made them, how far a stop goes
 *   struct alloc_core   of an allocation, for its tasks and hooks
 *
 * Whoever starts something asynchronous takes the hold of what it needs, to release in the
 * completion. Modules call those below them; what those above must know goes up by a table of
 * events.
 */
#ifndef PADDOCK_CLIENT_GROUND_H
#define PADDOCK_CLIENT_GROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "api/drivers.h"
#include "client/config.h"
#include "common/uuid.h"
#include "isolation/launch/client.h"
#include "net/loop.h"
#include "net/rpc.h"

enum {
    CLIENT_AGAIN_MS = 20,    /* the warden is busy with a task */
    /* the pause process ends for as long as slow tasks do (TimeoutStopSec=60) */
    CLIENT_PAUSE_MS = 90000
};

struct hold {
    struct hold *above; /* NULL: none */
    unsigned n;
    void (*released)(
        void *arg); /* after each release, before that of `above`; may free the object */
    void *arg;
};
void hold_take(struct hold *h);
void hold_release(struct hold *h);

struct artifact_hook;
struct helper;

struct ground { /* a talloc context */
    struct loop *loop;
    struct client_config cfg; /* strings owned */
    struct rpc_client *rpc;
    struct warden_client *warden; /* NULL: no task can start */
    struct link *link;            /* to it */
    struct local *local;
    struct { /* task/helper.c */
        unsigned running;
        struct helper *waiting; /* the first of a list */
    } helpers;
    struct lookups *lookups; /* what tasks ask the servers for */
    struct signings *signings; /* their identities */
    struct volumes *volumes;   /* node/volumes.c */
    char node_id[UUID_TEXT];
    char secret[UUID_TEXT];
    char run[UUID_TEXT]; /* of this process: an agent on a copy of the machine has another */
    struct node *node; /* as it was last registered: a talloc context of node/node.c */
    /* the words of node/engines.h, by driver, that of tests behind them; NULL: the engine is off,
     * or has not said anything yet */
    struct hand_info *engine[DRIVERS_N + 1];
    /* clock_boot_ns() when that was sent which a server answered last, in this boot; 0: not known
     */
    int64_t heard_ns;
    uint64_t report;     /* number of the last one sent; greater than those of earlier runs */
    uint64_t node_index; /* the node's ModifyIndex, as the servers said last */
    int64_t beat_most_ms; /* fenced tasks want a heartbeat so often; 0: as the servers say */
    size_t adopting;   /* tasks whose fate at restart is not known yet */
    bool started;
    bool stopping;
    bool quitting; /* dev: tasks are being ended */
    struct hold hold;
};

/* Returns an envelope that proves to a server which node calls; its texts are borrowed. */
static inline struct rpc_envelope
ground_proof(const struct ground *g)
{
    return (struct rpc_envelope){
        .node_id = g->node_id, .node_secret = g->secret, .agent_run = g->run};
}

enum ready_state { READY_NONE, READY_ASKED, READY_YES, READY_FAILED };

struct alloc_core {
    struct ground *g;
    struct hold hold;
    char id[UUID_TEXT];
    struct client_alloc *rec; /* a talloc context of its own */
    const struct task_group *tg;
    bool stopped; /* the agent goes down: no more callbacks act */
    /* hooks of the allocation: directories, and the network if it has one of its own */
    enum ready_state ready;
    char ready_error[256];
    bool ready_again; /* may succeed when it is tried again */
    struct {          /* artifacts of the group, task/hook_artifact.c */
        struct artifact_hook *fetcher; /* of the task that gets them for all; NULL: none does */
        struct artifact_hook *waiting; /* the first of a list */
    } group;
};
/* The network that its group asks for; NULL: the host's. */
const struct network_resource *alloc_network(const struct alloc_core *a);

/* How long to wait now, with jitter; the next time twice as long. */
int64_t backoff_next(int64_t *backoff_ms);

#endif
