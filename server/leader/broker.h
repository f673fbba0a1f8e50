/* SPDX-License-Identifier: Apache-2.0
 *
 * The evaluation broker: which evaluation is worked on next, and by whom. Pure: time comes in, what
 * to do comes out; the leader's apply thread drives it. It can be rebuilt from the stored
 * evaluations at any time.
 *
 * Invariants: of one job at most one evaluation is ready or outstanding; an id that is known is not
 * enqueued twice (while it is outstanding, the newer version waits for the ack); only the holder of
 * the current token may ack or nack, before its time is over; after BROKER_DELIVERIES deliveries an
 * evaluation goes to the failed list.
 */
#ifndef PADDOCK_SERVER_LEADER_BROKER_H
#define PADDOCK_SERVER_LEADER_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"

enum {
    BROKER_DELIVERIES = 3,
    BROKER_NACK_MS = 60000,        /* an outstanding evaluation that nobody touches */
    BROKER_LATE_MS = 1000,         /* a tick that is later than this: the server stood still */
    BROKER_RETRY_FIRST_MS = 1000,  /* after the first nack */
    BROKER_RETRY_MS = 20000,       /* (n - 1) times this after the n-th */
};

struct broker;

struct broker *broker_new(const void *ctx);
void broker_clear(struct broker *b);
/* BROKER_NACK_MS, but for tests. */
void broker_nack_after(struct broker *b, int64_t ms);
/* While paused nothing is handed out. */
void broker_pause(struct broker *b, bool paused);

/* Clones what it needs. `wall_ns` and `now_ms` are the same moment on two clocks: WaitUntil is wall
 * time, timers are monotonic. */
void broker_enqueue(struct broker *b, const struct evaluation *e, int64_t now_ms, int64_t wall_ns);
/* The best ready evaluation, now outstanding under *ret_token (never 0); NULL when there is none.
 * It lives until the ack or the next nack. */
const struct evaluation *broker_dequeue(struct broker *b, int64_t now_ms, uint64_t *ret_token);
/* False: unknown id or stale token. */
bool broker_ack(struct broker *b, const char *id, uint64_t token, int64_t now_ms, int64_t wall_ns);
bool broker_nack(struct broker *b, const char *id, uint64_t token, int64_t now_ms);
/* Makes the holder's time stand still until broker_touch(), ack or nack: its work waits for the
 * log, which answers in any case. */
bool broker_hold(struct broker *b, const char *id, uint64_t token);
/* The holder shows a sign of life. */
bool broker_touch(struct broker *b, const char *id, uint64_t token, int64_t now_ms);

/* Forgets an evaluation that is not in the state any more. Who holds it keeps it until its ack,
 * nack or time. */
void broker_forget(struct broker *b, const char *id);

/* Moves what is due: delayed ones become ready, forgotten ones are nacked. */
void broker_tick(struct broker *b, int64_t now_ms);
/* Takes note of the wall clock: whoever waits for one of its times comes then also when the clock
 * was set forward. A clock that was set back changes nothing. */
void broker_clock(struct broker *b, int64_t now_ms, int64_t wall_ns);
/* When broker_tick has work next; INT64_MAX: never. */
int64_t broker_next_ms(const struct broker *b);

/* Evaluations that a newer one of the same job made superfluous: to be cancelled in the log.
 * Returns one (owned by ctx) or NULL. */
struct evaluation *broker_take_cancelable(struct broker *b, const void *ctx);
/* Evaluations that were delivered too often: to be marked failed. */
struct evaluation *broker_take_failed(struct broker *b, const void *ctx);

struct broker_stats {
    size_t ready, unacked, pending, waiting, failed;
};
struct broker_stats broker_stats(const struct broker *b);

#ifdef FAULT_INJECTION
/* Does what broker_dequeue() does, for one job ("": any), also while it is paused. */
const struct evaluation *test_hook_dequeue(struct broker *b, const char *job_id, int64_t now_ms,
                                           uint64_t *ret_token);
/* The ids of all: ready, waiting for another of their job, delayed, handed out. */
void test_hook_list(const struct broker *b, void *ctx, struct str_list lists[4]);
#endif

#endif
