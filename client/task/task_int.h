/* SPDX-License-Identifier: Apache-2.0
 *
 * A task of an allocation here, as the files of client/task share it; task_runner.c makes it.
 */
#ifndef PADDOCK_CLIENT_TASK_TASK_INT_H
#define PADDOCK_CLIENT_TASK_TASK_INT_H

#include "client/ground.h"
#include "client/task/hooks.h"
#include "client/task/task_sm.h"
#include "drivers/driver.h"

struct task_runner;
struct task_handle;
struct handle_events;

/* A task's reports to its allocation. */
struct task_events {
    void (*changed)(struct alloc_core *a);   /* its state: take a step */
    void (*need_ready)(struct alloc_core *a); /* task_runner_ready() follows */
    /* adds the variables of the allocation's hooks to the environment of its tasks; owned by
     * ctx. */
    void (*env)(struct alloc_core *a, const void *ctx, struct str_map *ret);
};

struct cpu_sample {
    int64_t wall_ns;
    int64_t user_us;
    int64_t system_us;
    double user_pct; /* of the last interval that was long enough */
    double system_pct;
};

struct process { /* process.c: -1 while there is none */
    struct watch *watch; /* of `ended` */
    int ended;
    int cgroup;
    int record;
    uint64_t cgroup_id;  /* of its leaf; 0: not read yet */
    struct timer *again; /* the warden is busy with the task: ask soon */
    bool clean;          /* the warden has no record of an earlier launch */
    bool want_adopt;     /* the warden could not be asked: do it when it is back */
    bool want_kill;      /* ... nor told to signal or kill */
    bool want_clean;     /* ... nor to forget what has ended */
    bool want_resize;    /* ... nor told of new limits */
};

struct task_runner { /* an element of the array of its allocation */
    struct alloc_core *ar;
    const struct task_events *events;
    void (*act)(struct task_runner *tr, unsigned acts); /* task_runner_act(), for files below it */
    void (*poststart)(struct task_runner *tr);          /* task_hooks_poststart(), likewise */
    /* task_runner_signal(), likewise */
    void (*signal)(struct task_runner *tr, int sig, const char *why, client_done *done, void *arg);
    const struct str_map *vars; /* of a hook: variables before all others; NULL: none */
    const struct task *task;                            /* in ar->rec->alloc->job */
    const struct driver *driver;                        /* NULL: not in this build */
    struct task_sm sm;
    struct timer *timer;
    bool launching; /* the launch chain is under way */
    bool persisted; /* its intent is durable */
    bool asked;     /* a request that decides the launch is out */
    const char *waits; /* why nothing can be started here, as its last event of that says; static */
    const struct task_handle *handle;
    const struct handle_events *up; /* what the handle reports */
    struct process proc;
    struct engine_task *engine; /* engine.c, instead */
    struct engine_task
        *output; /* ... one that has ended: what it wrote is read until the next start */
    bool adopting;              /* ... what became of it is not known yet */
    bool limits_new;   /* an update changed them: say so */
    char *limits_told; /* which of them do not hold: the last event of that; NULL: none */
    struct cpu_sample cpu;           /* io/stats.c */
    struct { /* what each of hooks.h keeps; NULL: nothing */
#define STATE(name) struct name##_hook *name;
        TASK_HOOKS(STATE)
#undef STATE
    } hook;
    size_t counters_at;              /* bpf_read_net */
    size_t runs_at;                  /* bpf_read_run */
    size_t blocks_at;                /* bpf_read_block */
};

/* Returns a hash of a list of blocks, for a task's record; never 0. */
static inline uint64_t
task_blocks_key(const struct type *t, const void *list)
{
    const struct object_list *l = list;
    uint64_t key = 0;
    for (size_t i = 0; i < l->n; i++)
        key = key * 31 + codec_hash(t, l->v[i], 0);
    return key != 0 ? key : 1;
}

#endif
