/* SPDX-License-Identifier: Apache-2.0
 *
 * The agent's side of the warden: requests out, answers and file descriptors in. It owns one
 * non-blocking fd and no loop: its user watches `warden_client_fd` and calls `warden_client_ready`.
 *
 *     wc = warden_client_new(ctx, "/run/paddock/warden.sock");
 *     warden_client_connect(wc, e)  -> 0: watch warden_client_fd(wc) for warden_client_events(wc)
 *     ... readable or writable: warden_client_ready(wc)  -> -ERR_CLOSED: stop the watch (before the
 *         call returned the fd was closed), all outstanding requests have got ERR_UNAVAILABLE; try
 *         warden_client_connect again, every 250 ms say; then ask warden_adopt for what was
 *         outstanding: a launch may have happened.
 *
 * Every request gets its completion exactly once, never from inside the call that made it. A
 * request made while not connected is completed with ERR_UNAVAILABLE by the next
 * warden_client_ready or warden_client_connect (warden_client_pending tells that one of these must
 * be called).
 *
 * Thread: any one at a time; in the agent the loop's.
 */
#ifndef PADDOCK_ISOLATION_LAUNCH_CLIENT_H
#define PADDOCK_ISOLATION_LAUNCH_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "api/api.h"
#include "common/err.h"
#include "isolation/limits.h"

struct warden_client;

enum { WARDEN_KEEP = 4 };

/* An answer. Fds that are not there are -1. The callee takes those it wants with TAKE_FD(); the
 * rest is closed after the call. `msg` is valid during the call only. */
struct warden_reply {
    const struct warden_response *msg;
    int ended; /* readable when the task has ended and its record is complete; or when its shim was
                * killed: then the warden completes the record, as soon as it knows */
    int cgroup;   /* directory of the task's cgroup leaf; -1 where there is none (rootless) */
    int record;   /* read-only task record: record_read() of isolation/launch/record.h */
    int file;     /* of warden_open: file or directory, read-only */
    int counters; /* of warden_info, for bpf/read.h: what tasks send and receive */
    int runs;     /* the same: what their processes do */
    int blocks;   /* the same: what disks do for them */
    int pressure[3]; /* of warden_pressure: ready for WATCH_PRIORITY; as enum cgroup_pressure */
    int exec[3]; /* of warden_exec: its input, output, error; with a terminal the second alone */
    int exit;    /* the same: its end */
    int keep[WARDEN_KEEP]; /* to be held open as long as the agent lives: see isolation/bpf/rows.h */
};

/* `e` NULL: done, and `r` is there. Otherwise `e` says why and `r` is NULL. */
typedef void warden_done(void *arg, const struct err *e, struct warden_reply *r);

/* Does not connect. */
struct warden_client *warden_client_new(const void *ctx, const char *socket_path);
/* Outstanding requests are dropped without completion. */
void warden_client_free(struct warden_client *c);
/* 0, or why not. Connecting when connected is 0. */
int warden_client_connect(struct warden_client *c, struct err *e);
bool warden_client_connected(const struct warden_client *c);
int warden_client_fd(const struct warden_client *c); /* -1: not connected */
/* POLLIN, or POLLIN | POLLOUT while something waits to be sent; may change with every request. */
short warden_client_events(const struct warden_client *c);
/* True while requests wait for a failure completion (made while not connected). */
bool warden_client_pending(const struct warden_client *c);
/* Why the last connection ended; static, "" before. */
const char *warden_client_lost(const struct warden_client *c);
/* Sends and receives what can be without blocking and runs completions. 0, or -ERR_CLOSED. */
int warden_client_ready(struct warden_client *c);
/* Called when warden_client_events may have changed from inside a request; optional. */
void warden_client_on_change(struct warden_client *c, void (*fn)(void *arg), void *arg);
/* Blocks until all outstanding requests are completed or `timeout_ms` is over; for tests and tools.
 */
int warden_client_drain(struct warden_client *c, int timeout_ms);

/* What the warden can do here; msg->info. */
void warden_info(struct warden_client *c, warden_done *done, void *arg);
struct warden_alloc {
    const char *id;
    const struct warden_task *const *tasks;
    size_t n;
    int64_t disk_mb; /* what it may have on disk, where the policy and the disk let it be limited */
};
/* <alloc_dir>/<id>/{alloc/{data,logs,tmp},<task>/{local,secrets,tmp}} with owners and modes;
 * making what exists is fine. */
void warden_alloc_make(struct warden_client *c, const struct warden_alloc *a, warden_done *done,
                       void *arg);
/* Removes the directory tree. ERR_BUSY while a task of it runs. */
void warden_alloc_remove(struct warden_client *c, const char *alloc_id, warden_done *done,
                         void *arg);
/* The network that the allocation's tasks share, for launches without share_net; msg->network tells
 * the address in mode bridge. Its directory is there. Made already: the same answer. */
void warden_net_make(struct warden_client *c, const char *alloc_id, const struct net_request *net,
                     warden_done *done, void *arg);
/* After its last task. Unknown: 0. */
void warden_net_remove(struct warden_client *c, const char *alloc_id, warden_done *done, void *arg);
/* Starts the task; completes when the payload's execve succeeded (ended, cgroup, record) or failed
 * (the error names the step and nothing is left behind). At most one per (allocation, task):
 * ERR_CONFLICT while one runs; the record of a finished one is replaced. */
void warden_launch(struct warden_client *c, const struct launch_spec *spec, warden_done *done,
                   void *arg);
/* Runs a command in a running task, as its user and confined as it is. Completes when its execve
 * succeeded or failed. The exit socket then tells one struct exec_exit (isolation/launch/plan.h) when it has
 * ended; who closes it before kills the process, and what that started in its session.
 * ERR_NOT_FOUND when the task does not run, ERR_CONFLICT when it is paused, ERR_BUSY over the bounds. */
void warden_exec(struct warden_client *c, const char *alloc_id, const char *task,
                 const struct exec_request *x, warden_done *done, void *arg);
/* To the payload (not to its children). ERR_NOT_FOUND when it does not run. */
void warden_signal(struct warden_client *c, const char *alloc_id, const char *task, int sig,
                   warden_done *done, void *arg);
/* SIGKILL to everything in the task (cgroup.kill); completes at once, `ended` tells the end. */
void warden_kill(struct warden_client *c, const char *alloc_id, const char *task, warden_done *done,
                 void *arg);
/* Stops all processes of the task where they are, or lets them go on. */
void warden_pause(struct warden_client *c, const char *alloc_id, const char *task, bool on,
                  warden_done *done, void *arg);
/* The limits of `s` for the running task of its name: what they do not set is not limited.
 * msg->warning as in a launch. */
void warden_resize(struct warden_client *c, const struct launch_spec *s, warden_done *done,
                   void *arg);
/* Descriptors that tell of waits of a running task longer than `p` has it. */
void warden_pressure(struct warden_client *c, const char *alloc_id, const char *task,
                     const struct task_pressure *p, warden_done *done, void *arg);
/* After the end: forgets the task: kills what is left, removes its cgroup and record. Unknown task:
 * 0. */
void warden_destroy(struct warden_client *c, const char *alloc_id, const char *task,
                    warden_done *done, void *arg);
/* The living or finished task again, after a restart: ended (living only), cgroup, record fd, and
 * msg->records.v[0]. ERR_NOT_FOUND when nothing is known of it. */
void warden_adopt(struct warden_client *c, const char *alloc_id, const char *task,
                  warden_done *done, void *arg);
/* All tasks that the warden knows; msg->records. */
/* Records in order of (allocation, task), from the first one behind `alloc_id`, `task` (NULL: all);
 * msg->next != 0: there are more, ask behind the last one. */
void warden_list(struct warden_client *c, const char *alloc_id, const char *task, warden_done *done,
                 void *arg);
/* A regular file or directory below the allocation's directory, read-only. Symlinks and everything
 * below <task>/secrets and <task>/private are refused (ERR_FORBIDDEN). */
void warden_open(struct warden_client *c, const char *alloc_id, const char *path, warden_done *done,
                 void *arg);
/* msg->files: one element, name is the last component. Same refusals. */
void warden_stat(struct warden_client *c, const char *alloc_id, const char *path, warden_done *done,
                 void *arg);
/* `alloc_id` NULL: the directories of the allocations themselves, beside others.
 * msg->files from entry `offset` on, at most some hundred; msg->next is the next offset or 0. */
void warden_readdir(struct warden_client *c, const char *alloc_id, const char *path, int64_t offset,
                    warden_done *done, void *arg);

struct warden_put {
    const char *alloc_id;
    const char *task; /* owner of the file; and the path must begin with it or with "alloc/" */
    const char *path; /* "<task>/secrets/token"; directories on the way are made */
    const void *data; /* at most WARDEN_PUT_MAX bytes a request */
    size_t n;
    int64_t offset; /* 0 truncates first */
    unsigned mode;  /* 0: 0644 */
};
void warden_put(struct warden_client *c, const struct warden_put *p, warden_done *done, void *arg);

#endif
