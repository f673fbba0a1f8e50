/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop of the warden: one epoll set, the connections of the agent and their answers, and
 * children for what blocks. Everything in warden/ runs on its one thread, called from here: no
 * function may wait for a task, the agent or a disk. One event is taken at a time, so nothing that
 * an event freed can be met again; what goes is marked and freed at the end of the turn
 * (warden.sweep).
 */
#ifndef PADDOCK_ISOLATION_WARDEN_LOOP_H
#define PADDOCK_ISOLATION_WARDEN_LOOP_H

#include "isolation/warden/warden.h"

int loop_watch(struct warden *w, struct watch *watch, uint32_t events); /* 0 or -errno */
void loop_unwatch(struct warden *w, struct watch *watch);               /* and closes the fd */
int loop_signals(struct warden *w, struct err *e); /* before anybody can know that we are there */
int loop_listen(struct warden *w, struct err *e);
/* Until a signal ends it; 0, or why it cannot go on. */
int loop_run(struct warden *w, struct err *e);
void loop_done(struct warden *w); /* frees the warden */

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
/* Runs `fn` in a child, which has no descriptor but alloc_dir; the waiter gets 0 or the error that
 * it returned. ERR_BUSY where loop_can_fork() is false. */
int loop_fork(struct warden *w, struct waiter to, const char *what,
              int (*fn)(struct warden *w, void *arg), void *arg, struct err *e);

#endif
