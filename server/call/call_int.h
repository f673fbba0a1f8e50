/* SPDX-License-Identifier: Apache-2.0
 *
 * A call at a server, from its frame to its answer: one machine, which endpoint.c begins, and of
 * which forward.c, region.c, node.c, read.c and write.c have a state or two each. Private to these;
 * rows see struct read and struct write.
 *
 *   state       who has the call            leaves it by
 *   PLACING     nobody: who is to answer?   (within the turn)
 *   WAITING     this server                 a leader, a timer: PLACING, FORWARDED; its second is
 *                                           over: failed
 *   FORWARDED   the leader                  its answer: answered; that it leads no more, or is
 *                                           gone: WAITING
 *   ABROAD      another region              its answer, or its silence: answered
 *   AT_NODE     a node                      its answer: answered, and its bytes go on
 *   WORKING     a worker                    its return: answered, PARKED, HELD or PROPOSED;
 *                                           PLACING, if it would park and the leadership was lost
 *                                           meanwhile
 *   PARKED      a watch                     news, its time: WORKING; a lost leadership: PLACING
 *   HELD        a watch                     what the write lacks: PLACING; its time: failed
 *   PROPOSED    the log                     its answer: answered, or WORKING once more
 *
 * In every state the caller may give up (its time over, its connection gone: one event) and the
 * server may stop. Then a call waiting here is answered at once, and a call of somebody else when
 * they give it back; a proposed write is not taken back. States change on the loop thread alone.
 */
#ifndef PADDOCK_SERVER_CALL_CALL_INT_H
#define PADDOCK_SERVER_CALL_CALL_INT_H

#include <stdatomic.h>

#include "server/call/caller.h"
#include "server/call/method.h"

enum call_state {
    CALL_PLACING,
    CALL_WAITING,
    CALL_FORWARDED,
    CALL_ABROAD,
    CALL_AT_NODE,
    CALL_WORKING,
    CALL_PARKED,
    CALL_HELD,
    CALL_PROPOSED,
    CALL_STATES
};

/* The state of a call that the leader answers (forward.c). */
struct forward {
    struct call *next, **at; /* in the list of those that wait, or of those that are sent */
    struct timer *timer;     /* NULL: none */
    struct to_leader *to;    /* sent; NULL: it is not */
    uint64_t id;
    int64_t sent_ms, until_ms;
    bool again; /* asked of the next leader: it was not sent, or it reads */
    bool lost;  /* sent to a leader that was lost, and does not answer */
};

/* The state of a read (read.c). */
struct reading {
    struct read r;
    int64_t deadline_ms;
    uint64_t waits_for; /* the print of the answer that was not news: another one is */
    uint64_t rights_seen; /* when the caller was looked at before it was parked */
    struct server_watch *watch;
    bool last;
};

/* The state of a write (write.c). */
struct writing {
    struct write w;
    const struct write_row *row;
    bool proposed;  /* the worker's word */
    bool written;   /* the log's: it is in the state, or was refused */
    bool heavy;     /* preparing took a while, and so will freeing */
    uint64_t index; /* of the log, with its result */
    uint64_t seen;  /* index of the snapshot */
    struct server_watch *watch; /* held */
    struct fsm_result *res;
};

struct call {
    struct server *s;
    struct rpc_call *rpc;
    const struct rpc_method *method;
    const struct rpc_envelope *env;
    const void *req;
    struct peer_identity from; /* who calls; strings last as long as the connection */
    const char *ns; /* of the envelope; "default" where that names none */
    const char *node_names; /* of the certificate of the node that calls; NULL: nobody asks */
    struct caller *caller;  /* NULL: it was not asked for yet */
    rpc_handler *place; /* with the call as its argument */
    struct gate *gate;  /* of the server: when it is closed, `s` is not touched any more */
    enum call_state state;
    atomic_bool cancelled; /* nobody waits for the answer any more */
    struct err *err;       /* it fails with; memory of who set it. NULL: none */
    union {
        struct forward forward;
        struct abroad *abroad;
        struct relay *relay;
        struct reading reading;
        struct writing writing;
    };
};

void call_enter(struct call *c, enum call_state to);
/* Places it as if it had just come. */
void call_again(struct call *c);
/* The end of the machine, which is memory of what is returned: that is answered next. */
struct rpc_call *call_leave(struct call *c);
void call_fail(struct call *c, const struct err *e);
void call_failf(struct call *c, int code, const char *why);

/* -ERR_FORBIDDEN: its caller may not make it (needs.c). Asked where the call is answered, whenever
 * it is begun anew. */
int authorize(struct call *c, struct err *e);
/* Says whether the request of a method with RPC_GLOBAL makes, changes or deletes a token that is of
 * all regions. */
bool names_global_token(const struct call *c);
/* -ERR_FORBIDDEN: the method is for servers (cap=server) or nodes (cap=client), and the caller's
 * certificate is another one's. Asked before the call is passed on: the next server would take it
 * for ours. */
int authorize_peer(struct call *c, struct err *e);
/* The method is a node's own (cap=client). */
bool call_is_a_nodes(const struct call *c);
/* Says whether its envelope proves, in the state as it is, which node calls. */
bool node_is_proved(const struct call *c);
/* Checks the proof in the envelope of a method that is a node's own: *ret is the node, lean, owned
 * by ctx. NULL: no node calls, or one that registers. -ERR_FORBIDDEN, -ERR_NOT_FOUND: not proved.
 */
int prove_node(const struct call *c, struct state_txn *t, const void *ctx, const struct node **ret,
               struct err *e);

/* --- the states --- */
/* The leader answers it, or this server if it leads meanwhile; without a leader for FORWARD_WAIT_MS
 * it fails. Repeated is only what was refused at the door, not sent, or a read. */
void forward_start(struct call *c);
void forward_give_up(struct call *c);
/* Says whether a call was passed on to the leader of a term, in which this server does not lead:
 * soon, or already. */
bool forward_too_late(const struct call *c);
/* A server of its region answers it. */
void region_start(struct call *c, const char *region);
void region_give_up(struct call *c);
/* The client role of a node answers it. */
void node_start(struct call *c);
void node_give_up(struct call *c);
/* The connection to the leader; NULL: it is this server, or not known (forward.c). */
struct rpc_link *forward_link(struct server *s);
/* Runs the row now, and again each time its tables (or its key) change while the index is not above
 * env->min_index, until its time is over. */
void read_start(struct call *c, const struct read_row *row);
void read_give_up(struct call *c);
void write_start(struct call *c, const struct write_row *row);
void write_give_up(struct call *c);

#endif
