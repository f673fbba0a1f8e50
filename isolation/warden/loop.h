/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of the warden: one epoll set, the connections of the agent and their answers, and
 * children for what blocks. Below all other modules. Everything in warden/ runs on its one thread,
 * called from here: no function may wait for a task, the agent or a disk. What goes is marked, and
 * freed at the end of the turn (warden.sweep).
 */
#ifndef PADDOCK_ISOLATION_WARDEN_LOOP_H
#define PADDOCK_ISOLATION_WARDEN_LOOP_H

#include "isolation/warden/warden.h"

int loop_watch(struct warden *w, struct watch *watch, uint32_t events); /* 0 or -errno */
void loop_unwatch(struct warden *w, struct watch *watch);               /* and closes the fd */
/* Takes one packet (`n` bytes in w->in) of connection `conn`. False: the connection is to be
 * closed. */
typedef bool loop_serve(struct warden *w, uint64_t conn, enum proto_phase *phase, size_t n);
int loop_listen(struct warden *w, loop_serve *serve, struct err *e);
void loop_sweep(struct warden *w); /* closes broken connections */
void loop_close(struct warden *w); /* all of them, and the listener */

/* An answer to one request; `fds` are borrowed. */
struct answer {
    struct warden_response msg;
    int fds[PACKET_FDS_MAX];
    size_t n_fds;
};
/* Adds what is there: `fd` -1 is none. The list is `ctx`'s. */
void loop_answer_fd(const void *ctx, struct answer *a, enum warden_fd kind, int fd);
/* Each request is answered once, by one of these, now or later. Who waits may be gone: then it is
 * nothing. */
void loop_answer(struct warden *w, struct waiter to, struct answer *a);
void loop_refuse(struct warden *w, struct waiter to, const struct err *e);

bool loop_can_fork(const struct warden *w); /* fewer than WARDEN_JOBS_MAX children */
struct loop_work {
    const char *what;
    int (*fn)(struct warden *w, void *arg); /* in a child that has alloc_dir and host_mnt alone */
    void *arg;
    void (*done)(struct warden *w, const struct err *e); /* when it is over, here; may be NULL */
};
/* The waiter gets 0 or the error that `fn` returned. ERR_BUSY where loop_can_fork() is false. */
int loop_fork(struct warden *w, struct waiter to, const struct loop_work *work, struct err *e);

#endif
