/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands behind a task: a process of the warden's (process.c), or its driver's engine
 * (engine.c). The runner asks through a row of functions and is told through another; it knows no
 * more of either.
 *
 *   launch:  begin, clear, (the intent is made durable, hooks), start   -> started or failed
 *   end:     exited or vanished -> close, (the outcome is made durable), destroy
 *   restart of the agent: adopt       -> adopted, not_launched or vanished
 *
 * A member that is NULL has nothing to do, or, of those at the end, cannot be asked for.
 */
#ifndef PADDOCK_CLIENT_TASK_HANDLE_H
#define PADDOCK_CLIENT_TASK_HANDLE_H

#include "client/task/task_int.h"
#include "isolation/cgroup/cgroup.h"

struct task_reading {
    struct cgroup_stats cg; /* -1: not known */
    int cgroup;             /* its processes are the task's; -1: there is none */
    bool opened;            /* ... for the reader to close */
    int64_t root;           /* without one: its children are the task's; 0: not known */
    uint64_t id; /* of the cgroup, under which programs of the kernel count; 0: none do */
};

struct task_handle {
    bool (*begin)(struct task_runner *tr); /* what takes long; false: it failed already */
    /* No trace of an earlier launch is left; else go_on comes. */
    bool (*clear)(struct task_runner *tr);
    void (*start)(struct task_runner *tr); /* when its hooks are ready (hooks.h) */
    bool (*abort)(struct task_runner *tr); /* it need not start; false: it may have */
    void (*give_up)(
        struct task_runner *tr); /* it is to end, and still starts: that may take long */
    void (*adopt)(struct task_runner *tr);
    void (*stop)(struct task_runner *tr, int sig); /* politely */
    void (*kill)(struct task_runner *tr);
    void (*close)(struct task_runner *tr);   /* it has ended, or the agent goes down */
    void (*destroy)(struct task_runner *tr); /* its record, when the outcome is durable */
    void (*link_up)(struct task_runner *tr); /* the warden is there, again */
    /* asked of a task that runs */
    void (*signal)(struct task_runner *tr, int sig, client_done *done, void *arg);
    void (*pause)(struct task_runner *tr, bool on, client_done *done, void *arg);
    void (*resize)(struct task_runner *tr); /* its job has other limits */
    /* A command in it; NULL: *e says why not. */
    struct task_exec *(*exec)(struct task_runner *tr, const struct hand_exec *x,
                              const struct task_exec_events *up, void *arg, struct err *e);
    /* Reads the task's use of resources; *ret is all "not known" before. False: nothing is
     * counted. */
    bool (*stats)(struct task_runner *tr, struct task_reading *ret);
    /* Reads output as struct engine does. -ERR_UNSUPPORTED: output is in files of the
     * allocation. */
    int64_t (*logs)(struct task_runner *tr, int stream, int64_t at, void *p, size_t n);
    /* A file in its directories; a whole one also while it runs. */
    void (*put)(struct task_runner *tr, const struct warden_put *put, client_done *done, void *arg);
};

struct handle_events {
    void (*go_on)(struct task_runner *tr); /* with the launch */
    void (*started)(struct task_runner *tr, int64_t started_ns);
    void (*failed)(struct task_runner *tr, const char *type, const char *why, bool recoverable);
    void (*given_up)(struct task_runner *tr); /* it did not start, as asked */
    void (*exited)(struct task_runner *tr, const struct task_exit *x);
    void (*vanished)(struct task_runner *tr); /* while the agent was away */
    /* The task runs, or, `over`, has: `exited` follows. */
    void (*adopted)(struct task_runner *tr, int64_t started_ns, bool over);
    void (*not_launched)(struct task_runner *tr);
    void (*end_it)(struct task_runner *tr); /* what was asked for was lost: stop or kill it again */
};

extern const struct task_handle handle_process, handle_engine;

/* `d` NULL: an earlier release may have started it. */
const struct task_handle *handle_of(const struct driver *d);

void process_init(struct task_runner *tr);
void process_put(struct task_runner *tr, const struct warden_put *put, client_done *done,
                 void *arg);
/* Returns the place of an engine's task. */
struct engine_place engine_place(const struct task_runner *tr);
bool engine_off(const struct task_runner *tr); /* not turned on at this node */
struct task_exec *process_exec(struct task_runner *tr, const struct hand_exec *x,
                               const struct task_exec_events *up, void *arg,
                               struct err *e); /* process_exec.c */

#endif
