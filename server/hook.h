/* SPDX-License-Identifier: Apache-2.0
 *
 * The places where tests hold a server: only in a build with --enable-fault-injection, by the
 * files of tests/hooks/. In any other build what stands here is empty, and no symbol of the program
 * begins with test_hook_ (make check-exports looks).
 *
 * A point is "METHOD:propose" (a write, between the handler's read of the state and its log entry),
 * "METHOD:apply" (its entry, and all behind this in the log), "METHOD:reply" (a write when done, or
 * a read, before its answer), "plan:verify", "plan:propose" or "eval:dequeue". The leader's own
 * word that a node missed its heartbeat is a Node.UpdateStatus with the status "down". What is held
 * is put aside until it is released; nothing blocks but the apply thread, at an apply point.
 */
#ifndef PADDOCK_SERVER_HOOK_H
#define PADDOCK_SERVER_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "server/host.h"

struct core;

/* How what is held goes on: fn(arg), on the apply thread or on the loop. */
struct test_go {
    struct server *s;
    bool apply;
    env_fn *fn;
    void *arg;
};

#ifdef FAULT_INJECTION

/* The body of /v1/test/link: "peer" (a server's name, or its address), "drop", "dup" (parts of 1),
 * "delay_ms" (a number, or least and most), "reorder", "cut" ("in", "out", "both"); what is not
 * said is well. Of Raft's messages alone: calls that are passed on, and gossip, go their way.
 * False: there is no such server. */
bool test_hook_link(struct server *s, const struct value *body);

/* True: held, and go->fn comes later. False: go on at once. Any thread. */
bool test_hook_hold(const char *what, const char *stage, const struct type *t, const void *obj,
                    const struct test_go *go);
/* Apply thread: returns when the entry may be applied. */
void test_hook_apply(const struct intent *in);
/* Follows the log of a core from its beginning (tests/hooks/follow.c). */
void test_hook_follow(struct core *c);
/* Returns a list of the rows that differ from what was heard. Apply thread. */
struct value *test_hook_compare(const void *ctx, struct state_txn *t);
/* Nothing of this server is held any more, nor will be. */
void test_hook_end(struct server *s);
/* No evaluation is handed out but by a step. */
bool test_hook_paused(void);
void test_hook_pause(bool paused);
/* The wall clock of this environment, and with `mono` the other one, moves as tests want it. */
void test_hook_env(struct env *e, bool mono);
void test_hook_clock(int64_t mono_ns, int64_t wall_ns);

/* For HTTP. `match`: a map, NULL: all; a key is found at any depth, "NodeID" also as the ID of a
 * Node. Returns the id of the hold. `count` 0: all that come until it is released. */
uint64_t test_hook_rule(const char *point, const struct value *match, int64_t count);
/* False: there is no such hold. What the hold held goes on in the order of its coming. */
bool test_hook_release(uint64_t id);
/* Asks what the leader knows or does: "step", "broker", "hash", "heard", "ttl", "link",
 * "scheduler", "clock", with the members of /v1/test/'s body. Loop thread; done() comes on it,
 * once. */
typedef void test_answer_fn(void *arg, int status, const char *json);
void test_hook_ask(struct server *s, const char *what, const struct value *body,
                   test_answer_fn *done, void *arg);
/* A list of {"ID", "Point", "Count", "Held": [...]}. */
struct value *test_hook_held(const void *ctx);

#else

static inline bool
test_hook_hold(const char *what, const char *stage, const struct type *t, const void *obj,
               const struct test_go *go)
{
    (void)what;
    (void)stage;
    (void)t;
    (void)obj;
    (void)go;
    return false;
}

static inline void
test_hook_apply(const struct intent *in)
{
    (void)in;
}

static inline void
test_hook_follow(struct core *c)
{
    (void)c;
}

static inline void
test_hook_end(struct server *s)
{
    (void)s;
}

static inline bool
test_hook_paused(void)
{
    return false;
}

static inline void
test_hook_env(struct env *e, bool mono)
{
    (void)e;
    (void)mono;
}

#endif

#endif
