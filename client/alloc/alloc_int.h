/* SPDX-License-Identifier: Apache-2.0
 *
 * An allocation, as the files of client/alloc share it; alloc_runner.c makes it.
 */
#ifndef PADDOCK_CLIENT_ALLOC_ALLOC_INT_H
#define PADDOCK_CLIENT_ALLOC_ALLOC_INT_H

#include "client/alloc/alloc_sm.h"
#include "client/alloc/hooks.h"
#include "client/ground.h"
#include "client/task/task_runner.h"
#include "common/hash.h"

struct alloc_runner;

/* The reports of runners, which come never from inside one another. */
struct alloc_events {
    void (*changed)(void *arg, struct alloc_runner *ar); /* what is to be reported, perhaps */
    void (*ended)(void *arg, struct alloc_runner *ar);   /* it is terminal; may come again */
    void (*named)(void *arg, struct alloc_runner *ar); /* names.set is another one */
    /* alloc_runner_destroy() is over; e NULL: nothing is left of it, it is freed after this. */
    void (*gone)(void *arg, struct alloc_runner *ar, const struct err *e);
};

struct allocs {
    struct ground *g;
    struct alloc_runner *all; /* hash by id */
    const struct alloc_events *events;
    void *arg;
    struct prober *prober;
    bool crowded;  /* gc.c: too many wait to be removed, what is new waits for its directories */
    bool sweeping; /* sweep.c */
};

struct alloc_runner {
    struct alloc_core a; /* the first: what its tasks see */
    UT_hash_handle hh;
    struct allocs *in;
    struct task_runner *tasks;
    size_t n;
    struct {                 /* hooks.c */
        struct timer *timer; /* the warden was busy: they are asked for again */
        int64_t backoff_ms;
    } hooks;
    bool stepping;
    bool again;
    bool removed;    /* the server does not know it any more */
    bool collecting; /* its directory is being removed */
    bool doomed;
    unsigned lent; /* hook_disk.c: others that take over its disk, which stays until they have it */
    const char *status;
    const char *description;
    int64_t ended_ns; /* when it became terminal */
    struct {          /* node/sync.c: what the servers know */
        bool dirty;
        bool in_flight;
        uint64_t sent;    /* hash of the report that is in flight */
        const char *told; /* status of the last report; a constant */
    } report;
    struct check_watches *checks; /* check_watch.c; NULL: none */
    struct { /* node/announce.c: under which names the servers are to know it */
        const struct service_set_request *set; /* of hook_services.c; NULL: it never had any */
        bool dirty;                            /* the servers have not taken it */
        bool refused;                          /* ... and never will */
        uint64_t call;
        struct timer *timer;
        int64_t backoff_ms;
    } names;
    struct { /* gc.c: the queue of those to destroy */
        const char *why;
        client_done *done;
        void *arg;
        struct alloc_runner *next;
    } gc;
    struct { /* what each of hooks.h keeps; NULL: nothing */
#define STATE(name) struct name##_hook *name;
        ALLOC_HOOKS(STATE)
#undef STATE
    } hook;
};

/* Each of them; the one at hand may go meanwhile. */
#define ALLOCS_EACH(in, ar)                                                                        \
    for (struct alloc_runner *ar = (in)->all, *next_ = ar ? ar->hh.next : NULL; ar;                \
         ar = next_, next_ = ar ? ar->hh.next : NULL)

#endif
