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
#include "isolation/launch/proto.h"
#include "isolation/limits.h"

struct warden_client;

enum { WARDEN_KEEP = 4 }; /* descriptors that the agent holds open for the warden */

/* An answer. Fds that are not there are -1. The callee takes those it wants with TAKE_FD(); the
 * rest is closed after the call. `msg` is valid during the call only. */
struct warden_reply {
    const struct warden_response *msg;
    union {
        int fds[WARDEN_FD_END]; /* by enum warden_fd, whose order the members have */
        struct {
            int none;
            /* Readable when the task has ended and its record is complete; or when its shim was
             * killed: then the warden completes the record, as soon as it knows. */
            int ended;
            int cgroup; /* directory of the task's cgroup leaf; -1 where there is none (rootless) */
            int record; /* read-only task record: record_read() of isolation/launch/record.h */
            int file;   /* of warden_open: file or directory, read-only; of warden_socket */
            int counters; /* of warden_info, for bpf/read.h: what tasks send and receive */
            int runs;     /* the same: what their processes do */
            int keep[3];  /* held open as long as the agent lives: isolation/bpf/rows.h */
            int pressure[3]; /* of warden_pressure, for WATCH_PRIORITY: as enum cgroup_pressure */
            int blocks;      /* of warden_info: what disks do for tasks */
            int keep_block;  /* the last one of `keep` */
            int exec[3]; /* of warden_exec: input, output, error; a terminal is the second alone */
            int exit;    /* the same: its end; of warden_helper too */
            int helper;  /* of warden_helper: packets to and from it */
        };
    };
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
/* Requests that were made and are not completed. */
size_t warden_client_outstanding(const struct warden_client *c);
/* Counts what the warden said, so that its silence is seen. */
uint64_t warden_client_heard(const struct warden_client *c);
/* Why the last connection ended; static, "" before. */
const char *warden_client_lost(const struct warden_client *c);
/* Sends and receives what can be without blocking and runs completions. 0, or -ERR_CLOSED. */
int warden_client_ready(struct warden_client *c);
/* Called when warden_client_events may have changed from inside a request; optional. */
void warden_client_on_change(struct warden_client *c, void (*fn)(void *arg), void *arg);
/* Blocks until all outstanding requests are completed or `timeout_ms` is over; for tests and tools.
 */
int warden_client_drain(struct warden_client *c, int timeout_ms);

struct warden_alloc {
    const char *id;
    const struct warden_task *const *tasks;
    size_t n;
    int64_t disk_mb; /* MiB on disk, where policy and disk let them be limited */
};
struct warden_put { /* of warden_replace too */
    const char *alloc_id;
    const char *task; /* owner of the file; and the path must begin with it or with "alloc/" */
    const char *path; /* "<task>/secrets/token"; directories on the way are made */
    const void *data; /* at most WARDEN_PUT_MAX bytes a request */
    size_t n;
    int64_t offset; /* 0 truncates first; not of warden_replace */
    unsigned mode;  /* 0: 0644 */
    bool whole;     /* in one piece, at once: by warden_replace */
    const char *owner; /* user, of warden_replace and warden_socket; NULL: the task's */
};

/* The requests: warden_info(c, done, arg), warden_signal(c, alloc_id, task, sig, done, arg) and so
 * on; each is described where its row is. */
#define WARDEN_PARAMS(...) __VA_ARGS__ __VA_OPT__(, )
#define OP(nr, ID, name, must, may, phases, handler, stub, params, request)                        \
    void warden_##stub(struct warden_client *c, WARDEN_PARAMS params warden_done *done, void *arg);
#include "isolation/launch/ops.def"

#endif
