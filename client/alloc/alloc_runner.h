/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocation on this node: its record, its tasks, its directory, its status; and the table of
 * all of them. A runner is freed when it is doomed and nobody holds it (a.hold).
 */
#ifndef PADDOCK_CLIENT_ALLOC_ALLOC_RUNNER_H
#define PADDOCK_CLIENT_ALLOC_ALLOC_RUNNER_H

#include "client/alloc/alloc_sm.h"
#include "client/ground.h"
#include "client/task/task_runner.h"
#include "common/hash.h"

struct alloc_runner;

/* What runners report, never from inside one another. */
struct alloc_events {
    void (*changed)(void *arg, struct alloc_runner *ar); /* what is to be reported, perhaps */
    void (*ended)(void *arg, struct alloc_runner *ar);   /* it is terminal; may come again */
    /* alloc_runner_destroy() is over; e NULL: nothing is left of it, it is freed after this. */
    void (*gone)(void *arg, struct alloc_runner *ar, const struct err *e);
};

/* What an allocation may have besides its directories. */
struct alloc_hook {
    void (*make)(struct alloc_runner *ar);   /* alloc_runner_dirs_done() follows */
    void (*remove)(struct alloc_runner *ar); /* if it is terminal and this not done yet */
    void (*stop)(struct alloc_runner *ar);   /* timers */
};

struct allocs {
    struct ground *g;
    struct alloc_runner *all; /* hash by id */
    const struct alloc_events *events;
    void *arg;
    const struct alloc_hook *network;
    bool crowded;  /* gc.c: too many wait to be removed, what is new waits for its directories */
    bool sweeping; /* sweep.c */
};

struct alloc_runner {
    struct alloc_core a; /* the first: what its tasks see */
    UT_hash_handle hh;
    struct allocs *in;
    struct task_runner *tasks;
    size_t n;
    struct timer *dirs_timer; /* the warden was busy: they are asked for again */
    int64_t dirs_backoff_ms;
    bool stepping;
    bool again;
    bool removed;    /* the server does not know it any more */
    bool collecting; /* its directory is being removed */
    bool doomed;
    const char *status;
    const char *description;
    int64_t ended_ns; /* when it became terminal */
    struct {          /* node/sync.c: what the servers know */
        bool dirty;
        bool in_flight;
        uint64_t sent;    /* hash of the report that is in flight */
        const char *told; /* status of the last report; a constant */
    } report;
    struct { /* gc.c: the queue of those to destroy */
        client_done *done;
        void *arg;
        struct alloc_runner *next;
    } gc;
    struct {          /* network.c */
        bool waiting; /* for ports that another allocation has, which is about to end */
        bool removing;
        bool gone;
        struct timer *timer;
    } network;
};

/* Each of them; the one at hand may go meanwhile. */
#define ALLOCS_EACH(in, ar)                                                                        \
    for (struct alloc_runner *ar = (in)->all, *next_ = ar ? ar->hh.next : NULL; ar;                \
         ar = next_, next_ = ar ? ar->hh.next : NULL)

struct alloc_runner *alloc_runner_find(const struct allocs *in, const char *id);
struct task_runner *alloc_runner_task(struct alloc_runner *ar, const char *task);
bool alloc_runner_terminal(const struct alloc_runner *ar);
/* A new allocation from the server; cloned. */
void alloc_runner_add(struct allocs *in, const struct allocation *a);
/* From the local state, before anything else runs: steals. */
void alloc_runner_restore(struct allocs *in, struct client_alloc *rec, struct client_task **tasks,
                          size_t n);
void alloc_runner_resume(struct alloc_runner *ar); /* adopt, start, kill */
void alloc_runner_update(struct alloc_runner *ar, const struct allocation *a);
/* The server purged it: end it, then forget it. */
void alloc_runner_remove(struct alloc_runner *ar);
void alloc_runner_stop(struct alloc_runner *ar);
/* Removes directory and state of a terminal allocation: gc.c alone, which counts; `gone` comes. */
void alloc_runner_destroy(struct alloc_runner *ar);
void alloc_runner_detach(struct alloc_runner *ar); /* agent goes down: stop timers and watches */
/* All of them: the warden is there, or they need not wait any more. */
void allocs_link_up(struct allocs *in);
void allocs_free(struct allocs *in);
/* What the server is told; owned by ctx, borrows from the runner. */
struct allocation *alloc_runner_report(const void *ctx, const struct alloc_runner *ar);
/* Directories, and the network if it has one of its own, are there (`e` NULL) or not. */
void alloc_runner_dirs_done(struct alloc_runner *ar, const struct err *e);
/* The record changed, which is to be kept and may be to be reported. */
void alloc_runner_persist(struct alloc_runner *ar);

#endif
