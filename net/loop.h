/* SPDX-License-Identifier: Apache-2.0
 *
 * The event loop: a thin wrapper over libuv (only net/ includes <uv.h>). One loop per I/O thread;
 * all functions but loop_post and loop_stop are called on the thread that runs the loop (or before
 * the loop runs).
 *
 * Rules: nothing on the loop blocks. A callback comes exactly once per event and never from inside
 * the call that started it. Closing is counted: memory goes when libuv has closed the last handle,
 * and loop_free aborts when somebody left a timer, watch or stream open. A loop without work
 * sleeps.
 */
#ifndef PADDOCK_NET_LOOP_H
#define PADDOCK_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct timer;
struct watch;

typedef void loop_fn(void *arg);

struct loop *loop_new(void);
/* Until loop_stop. May be run again. */
void loop_run(struct loop *l);
/* The longest time that loop_run() did not look for events since this was asked last, ns. Any
 * thread. */
int64_t loop_longest_turn_ns(struct loop *l);
/* Makes loop_run return after the current turn. Thread-safe. */
void loop_stop(struct loop *l);
/* Runs the loop until *flag is true or `timeout_ms` (< 0: for ever) is over; the final value of
 * *flag. For synchronous helpers and tests; not from inside a callback. */
bool loop_run_until(struct loop *l, const bool *flag, int64_t timeout_ms);
/* Runs what is still posted, waits for closing handles and worker threads, frees. Aborts, naming
 * them, when handles were left open. */
void loop_free(struct loop *l);

/* Monotonic milliseconds as of the start of this turn. */
int64_t loop_now_ms(const struct loop *l);

/* Runs fn(arg) on the loop thread in a later turn; order is kept. Thread-safe. After loop_stop the
 * functions are kept and run by loop_free at the latest. */
void loop_post(struct loop *l, loop_fn *fn, void *arg);

/* One-shot. Freed after firing or stop: forget the pointer in both cases (in fn, first thing).
 * A delay <= 0 fires in the next turn. */
struct timer *timer_start(struct loop *l, int64_t delay_ms, loop_fn *fn, void *arg);
void timer_stop(struct timer *t); /* NULL is fine */

/* Level-triggered readiness of an fd, which is borrowed and must stay open until watch_stop.
 * `events` given to fn may hold both, or WATCH_ERROR (treat as readable: the next read tells). */
enum { WATCH_READ = 1, WATCH_WRITE = 2, WATCH_ERROR = 4, WATCH_PRIORITY = 8 /* POLLPRI */ };
typedef void watch_fn(void *arg, int fd, unsigned events);
/* NULL when the fd cannot be polled (a regular file). */
struct watch *watch_fd(struct loop *l, int fd, unsigned events, watch_fn *fn, void *arg);
void watch_set(struct watch *w, unsigned events);
void watch_stop(struct watch *w); /* NULL is fine */

/* `work` on a worker thread (4 of them; may block on disk, not on the network), then `done` on the
 * loop. `done` may be NULL. */
void loop_work(struct loop *l, loop_fn *work, loop_fn *done, void *arg);

/* For the loop of a daemon: memory goes back to the system when a burst of work is over. */
void loop_give_back(struct loop *l);

/* A signal, as long as the loop lives. Signals of one number coalesce. SIGPIPE is ignored from
 * loop_new on. */
typedef void signal_fn(void *arg, int sig);
void loop_on_signal(struct loop *l, int sig, signal_fn *fn, void *arg);

#endif
